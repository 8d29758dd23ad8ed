"""Whether a release of a judge agrees with itself: facts, rows, gate and claim.

The agreement with raters is recomputed from the rows, with its intervals, and the gate
is decided again by the protocol. F1 is recomputed from its counts; what its interval,
a bias and the repeats rest on stays where the cases are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loop.core.check_findings import Finding, broken, join_problems
from loop.core.errors import DataError
from loop.core.records import Status
from loop.core.safe_text import format_csv
from loop.core.yaml_files import check_model
from loop.documents.tables import neutralise
from loop.evaluate.gates import combine_verdicts
from loop.evaluate.protocol import JudgingRules, Protocol
from loop.judge.counts import find_score
from loop.judge.ensemble_versions import (
    judge_pins,
    parse_ensemble,
    refit,
)
from loop.judge.judge_gates import (
    CopyCounts,
    JudgeAspect,
    JudgeEvidence,
    JudgeGate,
    decide_judge_gate,
)
from loop.judge.rated_rows import (
    RatedRow,
    digest_error_counts,
    digest_rows,
    in_row_order,
)
from loop.release.consistency import differs, override_problems
from loop.release.facts import FACTS
from loop.release.folder import ENSEMBLES, ROWS, ensemble_names, shown
from loop.release.judge_facts import (
    AgreementFacts,
    CheckFacts,
    EnsembleFacts,
    ErrorFacts,
    EstimateFacts,
    JudgeEvaluationFacts,
    JudgeReleaseFacts,
    agreement_facts,
    check_facts_of,
    ensemble_facts,
)
from loop.score.experts.ratings import Ratings
from loop.score.metrics.base import Direction
from loop.stats.correlation import Correlations, correlate

_COLUMNS: Final = ("cohort", "unit", "score", "points")
_PARENT: Final = "parent_score"
"""Column that is there only where the parent is held beside."""

MOST_ROWS: Final = 10_000
"""Rows of a table that are measured again: agreement takes the square of them."""


def rows_table(tables: Sequence[tuple[str, Sequence[RatedRow]]]) -> bytes:
    """Return the rows of each cohort as CSV, all digits kept.

    A table once written must come out again byte for byte, as `verify` compares it.

    Parameters
    ----------
    tables
        Name of a cohort and its rows, in their order.
    """
    compared = any(one.parent is not None for _, rows in tables for one in rows)
    columns = (*_COLUMNS, _PARENT) if compared else _COLUMNS
    cells = [
        [
            neutralise(cohort),
            str(one.unit),
            *map(_cell, (one.score, one.points, *([one.parent] if compared else []))),
        ]
        for cohort, rows in tables
        for one in rows
    ]
    return format_csv(columns, cells).encode("utf-8", "backslashreplace")


def _cell(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def parse_rows(raw: bytes) -> dict[str, tuple[RatedRow, ...]]:
    """Return the rows of each cohort of a table that `rows_table` wrote.

    Raises
    ------
    DataError
        It is no such table, or has more than `MOST_ROWS` rows.
    """
    wrong = DataError(
        f"{ROWS} is not a table as ranloop writes it. Take the release anew from its "
        "maker."
    )
    try:
        header, *lines = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise wrong from error
    if tuple(header) not in (_COLUMNS, (*_COLUMNS, _PARENT)) or len(lines) > MOST_ROWS:
        raise wrong
    found: dict[str, list[RatedRow]] = {}
    for line in lines:
        if len(line) != len(header):
            raise wrong
        try:
            score, points, *parent = (float(one) if one else None for one in line[2:])
            row = RatedRow(int(line[1]), score, points or 0.0, *parent)
        except ValueError as error:
            raise wrong from error
        values = [one for one in (score, points, *parent) if one is not None]
        if points is None or not np.isfinite(values).all():
            raise wrong
        found.setdefault(line[0], []).append(row)
    return {cohort: tuple(rows) for cohort, rows in found.items()}


def check_rows(raw: bytes | None, facts: JudgeReleaseFacts) -> Finding:
    """Return whether the rows are those that ``release.json`` names, in their order."""
    if raw is None:
        return broken(ROWS, "not checked: it is missing")
    try:
        found = parse_rows(raw)
    except DataError as error:
        return broken(ROWS, str(error))
    problems = list(_row_problems(raw, found, facts))
    rows = sum(map(len, found.values()))
    return join_problems(ROWS, problems, f"{rows} rows, as named in release.json")


def _row_problems(
    raw: bytes,
    found: Mapping[str, tuple[RatedRow, ...]],
    facts: JudgeReleaseFacts,
) -> Iterator[str]:
    wanted = [one.cohort for one in facts.evaluations if one.rows]
    if list(found) != [neutralise(one) for one in wanted]:
        yield "its cohorts are not those of the evaluations, in their order"
        return
    for evaluation in facts.evaluations:
        where, rows = shown(evaluation.cohort), _rows_of(found, evaluation)
        if len(rows) != evaluation.rows:
            yield f"{where}: {len(rows)} rows, release.json names {evaluation.rows}"
        elif digest_rows(rows) != evaluation.rows_digest:
            yield f"{where}: its rows are not those of release.json"
        elif rows != in_row_order(rows):
            yield f"{where}: its rows are not in their one order"
    tables = [(one.cohort, _rows_of(found, one)) for one in facts.evaluations]
    if raw != rows_table(tables):
        yield "its cells are right, and not written as ranloop writes them"


def _rows_of(
    found: Mapping[str, tuple[RatedRow, ...]], evaluation: JudgeEvaluationFacts
) -> tuple[RatedRow, ...]:
    return found.get(neutralise(evaluation.cohort), ())


def check_ensembles(
    files: Mapping[str, bytes], facts: JudgeReleaseFacts
) -> tuple[Finding, ...]:
    """Return whether the ensembles are as named, and follow from their rows.

    Coefficients are fitted again. What an ensemble is worth out of fold is not
    measured again.
    """
    named = [name for one in facts.ensembles for name in ensemble_names(one.ref)]
    problems = [
        f"{name} is not named in {FACTS}"
        for name in sorted(files)
        if name.startswith(f"{ENSEMBLES}/") and name not in named
    ]
    problems += [
        f"{shown(one.ref)}: {problem}"
        for one in facts.ensembles
        for problem in _ensemble_problems(files, facts, one)
    ]
    if not problems and not facts.ensembles:
        return ()
    number = len(facts.ensembles)
    good = f"{number}, as named; their rows give their coefficients"
    return (join_problems(ENSEMBLES, problems, good),)


def _ensemble_problems(
    files: Mapping[str, bytes], facts: JudgeReleaseFacts, said: EnsembleFacts
) -> Iterator[str]:
    raw, rows = map(files.get, ensemble_names(said.ref))
    name, _, number = said.ref.partition("@v")
    if raw is None or rows is None:
        yield "a file of it is missing"
        return
    if rows.count(b"\n") > MOST_ROWS:
        yield f"it has more than {MOST_ROWS:,} rows"
        return
    try:
        found = parse_ensemble(name, int(number), raw, rows, Path(ENSEMBLES))
        made, same = ensemble_facts(found), refit(found)
    except (DataError, ValueError):
        yield "its files cannot be read, or are not of one ensemble"
        return
    if made != said:
        yield f"{FACTS} says of it what its files do not"
    if not same:
        yield "its rows give other coefficients"
    pins = judge_pins(found, facts.release.digest)
    if not pins:
        yield "the judge is not a member of it"
    if any(one.identity != facts.engine.digest for one in pins):
        yield "the judge was asked otherwise as a member of it"


def check_judge_numbers(
    facts: JudgeReleaseFacts, raw: bytes | None
) -> tuple[Finding, ...]:
    """Return whether each evaluation says what its rows and its counts say.

    Made again from the rows: tau-b, Spearman and Pearson with their intervals, every
    check of the gate, and the verdict; from the counts: F1, and the copy test.

    Parameters
    ----------
    raw
        The table of rows.
    """
    try:
        protocol = check_model(
            facts.protocol.content, Protocol, "protocol.content of release.json"
        )
        found = parse_rows(raw or b"")
        find_score(facts.score.name)
    except DataError as error:
        return (broken("numbers", str(error)),)
    except StopIteration:
        return (broken("numbers", "its score is not one that ranloop knows"),)
    rules = protocol.judging
    if rules is None:
        return (broken("numbers", "the protocol claims nothing of judges"),)
    if rules.score != facts.score.name:
        return (broken("numbers", "its score is not the one of the protocol"),)
    return tuple(
        _check_evaluation(one, _rows_of(found, one), rules, protocol.confidence)
        for one in facts.evaluations
    )


def _check_evaluation(
    evaluation: JudgeEvaluationFacts,
    rows: tuple[RatedRow, ...],
    rules: JudgingRules,
    confidence: float,
) -> Finding:
    check = f"numbers on {shown(evaluation.cohort)}"
    problems = [*_whole_problems(evaluation), *_error_problems(evaluation)]
    problems += _agreement_problems(evaluation, rows, rules)
    try:
        gate = decide_again(evaluation, rows, rules, confidence)
    except ValueError:
        problems.append("its gate cannot be decided from its rows")
    else:
        problems += _gate_problems(evaluation, gate)
    name = rules.measure.words
    return join_problems(
        check, problems, f"{name} and the gate recomputed from {len(rows)} rows"
    )


def _whole_problems(evaluation: JudgeEvaluationFacts) -> Iterator[str]:
    if sum(evaluation.statuses.values()) != evaluation.cases:
        yield "the outcomes do not add up to the pairs"
    if evaluation.rows > evaluation.cases:
        yield "more pairs were rated than there are"
    copies = evaluation.copies
    if copies.best + copies.unanswered > copies.pairs:
        yield "the copy test counts more copies than there are"


def _error_problems(evaluation: JudgeEvaluationFacts) -> Iterator[str]:
    for one in evaluation.errors:
        counted = 2 * one.tp + one.fp + one.fn
        f1 = 2 * one.tp / counted if counted else None
        if min(one.tp, one.fp, one.fn) < 0 or differs(one.f1.value, f1):
            yield f"{shown(one.name)}: F1 is not what its counts give"
        if not _encloses(one.f1):
            yield f"{shown(one.name)}: F1 lies outside its interval"
    made = digest_error_counts(one.counted for one in evaluation.errors)
    if evaluation.counts_digest != made:
        yield "the digest of the counts of errors is not theirs"
    for floor in evaluation.floors:
        told = _group(evaluation, floor.group.value)
        if told is None or differs(told.f1.value, floor.f1.value):
            yield f"the F1 of {floor.group.value} in the gate is not the one counted"
        if not _encloses(floor.f1):
            yield f"the F1 of {floor.group.value} lies outside its limits"


def _group(evaluation: JudgeEvaluationFacts, group: str) -> ErrorFacts | None:
    """Return the errors of a group, which is named in the plural."""
    name = f"{group.replace('_', ' ')}s"
    return next((one for one in evaluation.errors if one.name == name), None)


def _encloses(found: EstimateFacts) -> bool:
    value, low, high = found.value, found.low, found.high
    if low is None or high is None:
        return low is high
    return low <= high and (value is None or 0 <= low <= high <= 1)


def _agreement_problems(
    evaluation: JudgeEvaluationFacts, rows: tuple[RatedRow, ...], rules: JudgingRules
) -> Iterator[str]:
    said = evaluation.agreement
    found = agree_again(evaluation, rows, find_score(rules.score).direction)
    made = agreement_facts(found, one_rater=said.one_rater, two_raters=said.two_raters)
    if (said.n, said.units) != (made.n, made.units):
        yield f"it says {said.n} pairs of {said.units} units, its rows are others"
    for name, told, again in _coefficients(said, made):
        if differs(told.value, again.value):
            yield f"{name} is not what its rows give"
        elif differs(told.low, again.low) or differs(told.high, again.high):
            yield f"{name}: its interval is not what its rows give"


def _coefficients(
    said: AgreementFacts, made: AgreementFacts
) -> Iterator[tuple[str, EstimateFacts, EstimateFacts]]:
    yield "tau-b", said.tau_b, made.tau_b
    yield "Spearman's coefficient", said.spearman, made.spearman
    yield "Pearson's coefficient", said.pearson, made.pearson


def agree_again(
    evaluation: JudgeEvaluationFacts,
    rows: tuple[RatedRow, ...],
    direction: Direction,
) -> Correlations | None:
    """Return the agreement of the rows; None where fewer than two have a score."""
    units, points, scores, _ = _columns(rows)
    both = ~np.isnan(scores)
    if both.sum() < 2:
        return None
    sign = -1 if direction is Direction.LOWER else 1
    return correlate(
        sign * scores[both],
        points[both],
        units[both],
        resamples=evaluation.resamples,
        seed=evaluation.seed,
    )


def _columns(rows: tuple[RatedRow, ...]) -> tuple[NDArray[np.float64], ...]:
    """Return units, points, scores and the parent's scores; NaN for what is missing."""
    table = np.array(
        [(one.unit, one.points, one.score, one.parent) for one in rows],
        dtype=np.float64,
    ).reshape(-1, 4)
    units, points, scores, parent = table.T
    return units, points, scores, parent


def decide_again(
    evaluation: JudgeEvaluationFacts,
    rows: tuple[RatedRow, ...],
    rules: JudgingRules,
    confidence: float,
) -> JudgeGate:
    """Return the gate from the rows, the counts and the limits that are shipped.

    Raises
    ------
    ValueError
        The numbers cannot be those of a gate.
    """
    units, points, scores, parent = _columns(rows)
    answered = evaluation.statuses.get(Status.ANSWERED.value, 0)
    copies = evaluation.copies
    # A parent without any score is held beside it all the same, and decides nothing.
    compared = any(one.aspect is JudgeAspect.PARENT for one in evaluation.gate)
    return decide_judge_gate(
        JudgeEvidence(
            scores=scores,
            ratings=Ratings(
                ids=tuple(map(str, range(len(rows)))),
                systems=("",) * len(rows),
                raters=("mean",),
                scores=points[:, None],
                scale=(0.0, 1.0),
            ),
            units=units,
            unanswered=1 - answered / max(1, evaluation.cases),
            direction=find_score(rules.score).direction,
            f1={one.group: one.f1.estimate for one in evaluation.floors},
            copies=CopyCounts(copies.pairs, copies.best, copies.unanswered)
            if copies.pairs
            else None,
            parent=None if np.isnan(parent).all() and not compared else parent,
        ),
        rules,
        confidence=confidence,
        resamples=evaluation.resamples,
        seed=evaluation.seed,
    )


def _gate_problems(evaluation: JudgeEvaluationFacts, gate: JudgeGate) -> Iterator[str]:
    made = [check_facts_of(one) for one in gate.checks]
    if [one.aspect for one in made] != [one.aspect for one in evaluation.gate]:
        yield "its gate has other checks than the protocol"
        return
    for said, again in zip(evaluation.gate, made, strict=True):
        if said.verdict is not again.verdict:
            yield (
                f"{shown(said.what)}: the gate says {said.verdict}, its rows and "
                f"counts give {again.verdict}"
            )
        elif not _same_numbers(said, again):
            yield f"{shown(said.what)}: not the numbers that its rows and counts give"
    verdict = combine_verdicts(one.verdict for one in evaluation.gate)
    if evaluation.verdict is not verdict:
        yield f"the verdict is {evaluation.verdict}, its gate gives {verdict}"


def _same_numbers(said: CheckFacts, made: CheckFacts) -> bool:
    return not any(
        differs(getattr(said, name), getattr(made, name))
        for name in ("observed", "limit", "threshold")
    )


def check_judge_claim(facts: JudgeReleaseFacts) -> Finding:
    """Return whether the claim is the protocol's, and follows from its gate."""
    claim = facts.claim
    problems = [*override_problems(facts)]
    tested = [one for one in facts.evaluations if one.cohort == claim.cohort]
    if not tested:
        problems.append("it is about a cohort without an evaluation")
    elif claim.verdict is not tested[0].verdict:
        problems.append(
            f"its verdict is {claim.verdict}, the gate gives {tested[0].verdict}"
        )
    suspicious = any(one.suspicious for one in facts.evaluations)
    if suspicious and not facts.frozen.override.strip():
        problems.append("a number is suspicious, and no override answers it")
    good = f"{claim.kind} on {shown(claim.cohort)}: {claim.verdict}"
    return join_problems("claim", problems, good)

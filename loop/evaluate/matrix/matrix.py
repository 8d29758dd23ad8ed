"""From runs of one prompt version to a matrix: the same cases, measured and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, EngineError
from loop.core.records import Status, Value, ValueCode
from loop.documents.numbers import share
from loop.evaluate.align import AlignedPairs, Codes, count_uncertain
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.inputs import Inputs
from loop.evaluate.matrix.records import (
    EngineColumn,
    EngineRank,
    Floor,
    Matrix,
    MatrixCell,
    MatrixRow,
    Paired,
)
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Evaluation, LabelResult
from loop.labels.taxonomy import Taxonomy
from loop.stats.paired import holm, mcnemar_exact, sign_flip_p


def matrix_notes(
    columns: Sequence[EngineColumn], rows: Sequence[MatrixRow], cases: int
) -> Iterator[str]:
    """Yield the caveats, most important first.

    Parameters
    ----------
    cases
        Cases that every run holds.
    """
    if any(column.left_out for column in columns):
        left = ", ".join(
            f"{one.key} {one.left_out}" for one in columns if one.evaluation
        )
        yield (
            f"The runs hold different cases: every column counts the {cases} cases "
            f"that all of them hold. Left out: {left}."
        )
    done = {
        column.key: column.evaluation
        for column in columns
        if column.evaluation is not None
    }
    yield from _unlike(done)
    yield from _of_other_labels(columns, rows)
    unranked = sum(not row.ranked for row in rows)
    if unranked:
        yield (
            f"No engine is ranked on {unranked} of {len(rows)} labels: too few cases, "
            "positives or readable answers, or no other engine to rank against."
        )
    yield from _said_of(done)


def _of_other_labels(
    columns: Sequence[EngineColumn], rows: Sequence[MatrixRow]
) -> Iterator[str]:
    """Say when averages are of different labels, and what they are on common ones."""
    asked: dict[str, list[LabelResult]] = {}
    for place, column in enumerate(columns):
        cells = [row.cells[place] for row in rows if row.comparable]
        if column.evaluation is not None:
            asked[column.key] = [
                cell.result
                for cell in cells
                if cell is not None
                and (cell.result.confusion.n or not cell.result.excluded.not_asked)
            ]
    known = [{one.label for one in results} for results in asked.values()]
    shared = set.intersection(*known)
    if all(labels == shared for labels in known):
        return
    numbers = ", ".join(f"{key} {len(results)}" for key, results in asked.items())
    means = []
    for key, results in asked.items():
        f1 = [one.confusion.f1 for one in results if one.label in shared]
        scored = [value for value in f1 if value is not None]
        mean = sum(scored) / len(scored) if scored else None
        means.append(f"{key} {share(mean)} of {len(scored)}")
    yield (
        "Averages are of the labels that each engine was asked for, so they do not "
        f"compare: {numbers}. On the {len(shared)} that all were asked for, macro-F1 "
        f"(labels with an F1) is {', '.join(means)}."
    )


def _unlike(done: Mapping[str, Evaluation]) -> Iterator[str]:
    """Say when the engines were not asked alike, and in what."""
    asked = {key: _parameters(one) for key, one in done.items()}
    names = dict.fromkeys(name for how in asked.values() for name in how)
    unlike = [text for name in names if (text := _differences(name, asked))]
    if unlike:
        yield f"The engines were asked differently: {'; '.join(unlike)}."


def _differences(name: str, asked: Mapping[str, Mapping[str, object]]) -> str:
    """Return the values of one parameter with their engines, if they differ."""
    engines: dict[object, list[str]] = {}
    for key, how in asked.items():
        engines.setdefault(how.get(name, "none"), []).append(key)
    if len(engines) < 2:
        return ""
    values = (f"{value} ({', '.join(keys)})" for value, keys in engines.items())
    return f"{name} {', '.join(values)}"


def _said_of(done: Mapping[str, Evaluation]) -> Iterator[str]:
    """Yield the notes of the evaluations, each once, with the engines it is about."""
    about: dict[str, list[str]] = {}
    for key, one in done.items():
        late = ("The protocol was registered after the run began.",)
        for text in (*(late if one.registered_late else ()), *one.notes):
            about.setdefault(text, []).append(key)
    for text, keys in about.items():
        yield text if len(keys) == len(done) else f"{', '.join(keys)}: {text}"


def _parameters(evaluation: Evaluation) -> Mapping[str, object]:
    """Return parameters and draw as the manifest has them."""
    spec = evaluation.run.manifest.get("spec")
    if not isinstance(spec, Mapping):
        return {"draw": 0}
    return {**spec.get("parameters", {}), "draw": spec.get("draw", 0)}


def rank_label(
    results: Sequence[LabelResult | None],
    truth: Codes,
    answers: Sequence[Codes | None],
    protocol: Protocol,
) -> tuple[MatrixCell | None, ...]:
    """Return one cell per engine with its standing on the label.

    Only engines with the protocol's minimum evidence are ranked, only against another
    one, and on no label that the reference cannot judge. The highest observed accuracy
    is the best, ties included. Every other engine is tested against the best on the
    cases that both decide, by McNemar's exact test at the protocol's ``alpha``,
    corrected by Holm over the engines of the label; with several best, against the one
    it differs from least. Where an engine was asked several times, by the sign-flip
    test of each case's mean, which is McNemar's for one draw.

    Parameters
    ----------
    results
        One per engine; None for an engine without a run.
    truth
        Reference codes 1, 0, or -1 for excluded, shape ``(n_cases,)``.
    answers
        Per engine the values as `ValueCode`, same order of cases; shape
        ``(n_draws, n_cases)`` or, for one draw, ``(n_cases,)``.
    """
    able = {
        place: result
        for place, result in enumerate(results)
        if result is not None and result.comparable and has_enough(result, protocol)
    }
    best = _highest({place: _share(result) for place, result in able.items()})
    firm = _highest({place: _firm_share(result) for place, result in able.items()})
    tests = _test_others(truth, answers, best, [i for i in able if i not in best])

    def cell(place: int, result: LabelResult) -> MatrixCell:
        paired = tests.get(place)
        standing = _standing(paired, place in best, protocol.alpha)
        if len(able) < 2:
            standing = EngineRank.UNRANKED
        return MatrixCell(
            result=result,
            enough=place in able,
            standing=standing,
            paired=paired,
            rests_on_uncertain=standing is EngineRank.BEST and place not in firm,
        )

    return tuple(
        None if result is None else cell(place, result)
        for place, result in enumerate(results)
    )


def has_enough(result: LabelResult, protocol: Protocol) -> bool:
    """Whether a label of one engine has the protocol's minimum evidence.

    That is enough cases, positives and negatives, and few enough unreadable answers;
    without these the gate is ``INSUFFICIENT`` whatever the accuracy.
    """
    counts, excluded = result.confusion, result.excluded
    unanswered = excluded.by_answer - excluded.uncertain_predicted
    usable = counts.n + excluded.by_answer
    return (
        counts.n >= protocol.min_cases * result.draws
        and counts.positives >= protocol.min_positives * result.draws
        and counts.negatives >= protocol.min_negatives * result.draws
        and unanswered <= protocol.max_unanswered * usable
    )


def _standing(paired: Paired | None, best: bool, alpha: float) -> EngineRank:
    if best:
        return EngineRank.BEST
    if paired is None:
        return EngineRank.UNRANKED
    shown = paired.p_holm <= alpha and paired.lost > paired.gained
    return EngineRank.WORSE if shown else EngineRank.LEVEL


def _share(result: LabelResult) -> Fraction:
    """Return the accuracy exactly: a tie must not hang on rounding."""
    return Fraction(result.confusion.correct, result.confusion.n)


def _firm_share(result: LabelResult) -> Fraction:
    """Return the accuracy with every uncertain answer counted as wrong."""
    counts, uncertain = result.confusion, result.excluded.uncertain_predicted
    return Fraction(counts.correct, counts.n + uncertain)


def _highest(shares: Mapping[int, Fraction]) -> frozenset[int]:
    top = max(shares.values(), default=None)
    return frozenset(place for place, share in shares.items() if share == top)


def _test_others(
    truth: Codes,
    answers: Sequence[Codes | None],
    best: frozenset[int],
    others: Sequence[int],
) -> dict[int, Paired]:
    """Test each of `others` against the nearest of the best."""
    nearest = [
        max(
            (_differ(truth, answers[one], answers[other]) for one in sorted(best)),
            key=lambda found: (found.lost <= found.gained, found.p),
        )
        for other in others
    ]
    adjusted = holm([found.p for found in nearest])
    return {
        other: found._replace(p_holm=p_holm)
        for other, found, p_holm in zip(others, nearest, adjusted, strict=True)
    }


def _differ(truth: Codes, best: Codes | None, other: Codes | None) -> Paired:
    """Return on how many decided cases only the best, and only the other, is right.

    Over several draws: in which it is right more often.
    """
    if best is None or other is None:
        return Paired(0, 0, 1.0, 1.0)
    (right, n), (others, m) = _count_right(truth, best), _count_right(truth, other)
    differences = others * n - right * m
    lost = int(np.count_nonzero(differences < 0))
    gained = int(np.count_nonzero(differences > 0))
    if max(n.max(initial=0), m.max(initial=0)) <= 1:
        p = mcnemar_exact(lost, gained)
    else:
        p = min(1.0, 2 * min(sign_flip_p(differences), sign_flip_p(-differences)))
    return Paired(lost, gained, p, p)


class _RightDraws(NamedTuple):
    """How often each case is right, and how often it is decided."""

    right: NDArray[np.int64]
    decided: NDArray[np.int64]


def _count_right(truth: Codes, answers: Codes) -> _RightDraws:
    draws = np.atleast_2d(answers)
    decided = (truth >= 0) & (draws >= 0)
    right = decided & (draws == truth)
    return _RightDraws(right.sum(axis=0), decided.sum(axis=0))


class MatrixEntry(NamedTuple):
    """One engine on its way into a matrix."""

    engine: str
    inputs: Inputs | None
    """Its run as read; None when the engine failed as a whole."""

    failure: str = ""
    """Why there is no run."""


def build_matrix(
    entries: Sequence[MatrixEntry],
    *,
    registered: str = "",
    resamples: int = 2000,
    seed: int = 0,
) -> Matrix:
    """Return the label x engine table of `entries`, in their order.

    All columns are measured on the same cases: those that every run holds. What is
    left out of a run is counted and said.

    Parameters
    ----------
    registered
        When the ledger first saw the protocol, UTC; empty when it has not.

    Raises
    ------
    DataError
        The runs are of different prompt versions, cohorts or references, a run is
        named twice, or the runs share no case.
    EngineError
        No engine has a run.
    """
    runs = [entry.inputs for entry in entries if entry.inputs is not None]
    if not runs:
        raise EngineError(
            "no engine has a run: "
            + "; ".join(f"{entry.engine}: {entry.failure}" for entry in entries)
        )
    check_alike(runs)
    shared = {run.run.run_id: run for run in _on_shared_cases(runs)}
    columns = tuple(
        _column(number, entry, shared, registered, resamples, seed)
        for number, entry in enumerate(entries)
    )
    first = next(iter(shared.values()))
    rows = _rows(columns, shared, first)
    return Matrix(
        prompt=first.run.prompt,
        prompt_digest=first.run.prompt_digest,
        cohort=first.cohort,
        protocol=first.protocol,
        protocol_digest=first.protocol_digest,
        cases=len(first.pairs.case_ids),
        columns=columns,
        rows=rows,
        floor=_floor(rows, first.protocol.accuracy),
        notes=tuple(matrix_notes(columns, rows, len(first.pairs.case_ids))),
    )


def check_alike(runs: Sequence[Inputs]) -> None:
    """Refuse runs that do not belong into one matrix.

    Raises
    ------
    DataError
        Another prompt version, cohort or reference, or the same run twice.
    """
    first = runs[0]
    for run in runs[1:]:
        for what, ours, theirs in (
            ("prompt version", _prompt(first), _prompt(run)),
            ("cohort", first.cohort.digest, run.cohort.digest),
            ("reference", first.cohort.reference_digest, run.cohort.reference_digest),
        ):
            if ours != theirs:
                raise DataError(
                    f"runs {first.run.run_id} and {run.run.run_id} are not of the same "
                    f"{what} ({ours[:12]} and {theirs[:12]}). A matrix holds one "
                    "prompt version on one cohort; see `ranloop compare` for two "
                    "versions."
                )
    ids = [run.run.run_id for run in runs]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"run {twice} is named twice. Name each run once.")


def _prompt(run: Inputs) -> str:
    return run.run.prompt_digest


def _on_shared_cases(runs: Sequence[Inputs]) -> list[Inputs]:
    """Return `runs` with the cases that all of them hold, in one order."""
    common = set.intersection(*(set(run.pairs.case_ids) for run in runs))
    order = [case for case in runs[0].pairs.case_ids if case in common]
    if not order:
        ids = ", ".join(run.run.run_id for run in runs)
        raise DataError(
            f"runs {ids} have no case in common. Run each engine on the same cases."
        )
    return [_restrict(run, order) for run in runs]


def _restrict(run: Inputs, case_ids: Sequence[str]) -> Inputs:
    """Return `run` with only `case_ids`, in that order."""
    if run.pairs.case_ids == tuple(case_ids):
        return run
    where = {case: row for row, case in enumerate(run.pairs.case_ids)}
    rows = np.array([where[case] for case in case_ids], dtype=np.int64)
    kept, *further = (_take(pairs, rows) for pairs in (run.pairs, *run.further))
    patients = tuple(run.patients[row] for row in rows)
    return replace(run, pairs=kept, further=tuple(further), patients=patients)


def _take(pairs: AlignedPairs, rows: NDArray[np.int64]) -> AlignedPairs:
    """Return the cases in these rows."""
    predicted = pairs.predicted[rows]
    return replace(
        pairs,
        case_ids=tuple(pairs.case_ids[row] for row in rows),
        reference=pairs.reference[rows],
        predicted=predicted,
        statuses=_statuses(predicted),
        not_run=pairs.not_run + len(pairs.case_ids) - len(rows),
    )


def _statuses(predicted: Codes) -> dict[Status, int]:
    """Count how cases ended: an answer that is missing says why."""
    failed = (predicted == ValueCode.FAILED).any(axis=1)
    unparsed = (predicted == ValueCode.UNPARSED).any(axis=1) & ~failed
    return {
        Status.ANSWERED: int((~failed & ~unparsed).sum()),
        Status.UNPARSED: int(unparsed.sum()),
        Status.ENGINE_FAILED: int(failed.sum()),
    }


def _column(
    number: int,
    entry: MatrixEntry,
    shared: Mapping[str, Inputs],
    registered: str,
    resamples: int,
    seed: int,
) -> EngineColumn:
    key = _key(number)
    if entry.inputs is None:
        return EngineColumn(
            key=key, engine=entry.engine, failure=" ".join(entry.failure.split())
        )
    run = shared[entry.inputs.run.run_id]
    evaluation = evaluate_inputs(run, resamples=resamples, seed=seed)
    return EngineColumn(
        key=key,
        engine=entry.engine,
        evaluation=replace(evaluation, registered=registered),
        left_out=len(entry.inputs.pairs.case_ids) - len(run.pairs.case_ids),
    )


def _key(number: int) -> str:
    """Return A to Z, then A2 to Z2, and so on."""
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn + 1) if turn else "")


def _rows(
    columns: Sequence[EngineColumn], shared: Mapping[str, Inputs], first: Inputs
) -> tuple[MatrixRow, ...]:
    """Return every label, in published order, with its engines ranked."""
    finding_nothing = _answers_without_finding(first.taxonomy)
    truth = first.pairs.binary_reference
    rows = []
    for place, label in enumerate(first.pairs.labels):
        results = [
            None if column.evaluation is None else column.evaluation.labels[place]
            for column in columns
        ]
        answers = [
            None
            if column.evaluation is None
            else _stack(shared[column.evaluation.run.run_id], place, truth[:, place])
            for column in columns
        ]
        marks = truth[:, place]
        usable = int((marks >= 0).sum())
        right = int((marks == finding_nothing[label]).sum())
        rows.append(
            MatrixRow(
                label=label,
                name=first.taxonomy.find(label).name,
                positives=int((marks == 1).sum()),
                usable=usable,
                floor=right / usable if usable else None,
                cells=rank_label(results, marks, answers, first.protocol),
            )
        )
    return tuple(rows)


def _stack(run: Inputs, place: int, truth: Codes) -> Codes:
    """Return what every draw's answers to one label count as, (n_draws, n_cases)."""
    draws = (run.pairs, *run.further)
    answers = np.stack([one.predicted[:, place] for one in draws])
    return count_uncertain(answers, truth, run.protocol.policy)


def _answers_without_finding(taxonomy: Taxonomy) -> dict[str, int]:
    """Return the code per label of an engine that finds nothing in any case."""
    absent = dict.fromkeys(taxonomy.extracted, Value.ABSENT)
    derived = taxonomy.derive_no_finding(absent)
    codes = dict.fromkeys(taxonomy.ids, int(derived is Value.PRESENT))
    return codes | dict.fromkeys(absent, 0)


def _floor(rows: Sequence[MatrixRow], threshold: float) -> Floor:
    floors = [row.floor for row in rows if row.comparable and row.floor is not None]
    mean = sum(floors) / len(floors) if floors else None
    return Floor(mean, sum(share >= threshold for share in floors))

"""Whether a release agrees with itself: facts, claim, table and counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from math import isclose

import numpy as np

from loop.core.check_findings import Finding, broken, join_problems, ok
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import UncertainAnswers
from loop.core.yaml_files import check_model
from loop.evaluate.gates import (
    NO_HEDGES,
    Gate,
    GateVerdict,
    LabelEvidence,
    combine_verdicts,
    decide_gate,
)
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import digest_counts
from loop.evaluate.results import claim_level, decide_claim, left_out_of
from loop.prompts.version import PromptVersion
from loop.release.documents.spreadsheet import evaluation_table
from loop.release.facts import (
    DRAWN_FORMAT,
    ClaimFacts,
    EvaluationFacts,
    LabelFacts,
    RateFacts,
    ReleasedFacts,
    ReleaseFacts,
)
from loop.release.folder import SCHEMA, TABLE, shown
from loop.release.judge_facts import JudgeReleaseFacts, shots_facts
from loop.release.release_json import AnyFacts, predicate_of
from loop.release.rendering import read_prompt, render_files, render_sandboxed
from loop.release.statement import ENVELOPE, Statement
from loop.stats.confusion import average_f1, effective_labels, micro_f1
from loop.stats.intervals import clopper_pearson
from loop.stats.kappa import cohen_kappa
from loop.stats.power import exact_p


def check_agreement(statement: Statement | None, facts: AnyFacts) -> Finding:
    """Return whether the statement is one about these facts."""
    if statement is None:
        return broken("agreement", "not checked: there is no statement")
    expected = predicate_of(facts)
    found = statement.predicate
    problems = [
        f"the statement and release.json differ in {key}"
        for key in expected
        if found.get(key) != expected[key]
        or type(found[key]) is not type(expected[key])
    ]
    if set(found) - set(expected):
        problems.append("the statement says things that release.json does not")
    frozen = facts.frozen
    signed = (frozen.actor, frozen.role, frozen.meaning)
    if signed not in {(one.name, one.role, one.meaning) for one in statement.approvals}:
        problems.append("whoever froze it is not among those who signed")
    return join_problems("agreement", problems, f"{ENVELOPE} and release.json agree")


def check_facts(facts: AnyFacts) -> Finding:
    """Return whether the parts of ``release.json`` agree with each other."""
    return join_problems("release.json", list(_fact_problems(facts)), "its parts agree")


def not_comparable_in(
    facts: ReleaseFacts, evaluation: EvaluationFacts
) -> Mapping[str, str]:
    """Return the labels that the reference of an evaluation cannot judge, and why."""
    return next(
        (one.not_comparable for one in facts.cohorts if one.name == evaluation.cohort),
        {},
    )


def _fact_problems(facts: AnyFacts) -> Iterator[str]:
    release, evaluations = facts.release, facts.evaluations
    if release.name != f"{release.prompt}-v{release.version}":
        yield "the name is not that of the prompt and its version"
    if release.ref != f"{release.prompt}@v{release.version}":
        yield "the reference is not that of the prompt and its version"
    roles = {one.name: one.role for one in facts.cohorts}
    measured = [one.cohort for one in evaluations]
    if len(set(measured)) != len(measured) or len(roles) != len(facts.cohorts):
        yield "a cohort is listed twice"
    for one in evaluations:
        if roles.get(one.cohort) != one.role:
            yield f"an evaluation gives {one.cohort!r} another role than its cohort"
        late = facts.protocol.registered > f"{one.created[:19]}Z"
        if late and not one.registered_late:
            yield f"the protocol is younger than the run on {one.cohort!r}, unsaid"
    if facts.development_only == ("holdout" in {one.role for one in evaluations}):
        yield "whether it rests on development data only is not what it says"
    engine = facts.engine.model_dump(exclude={"digest"})
    if digest_json(engine) != facts.engine.digest:
        yield "the digest of the engine is not that of its identity and parameters"
    yield from _draw_problems(facts)
    yield from _opening_problems(facts)


def _draw_problems(facts: AnyFacts) -> Iterator[str]:
    drawn = any(one.draws > 1 for one in facts.evaluations)
    judge = isinstance(facts, JudgeReleaseFacts)
    if not judge and drawn != (facts.format == DRAWN_FORMAT):
        yield "the format is not that of as many draws"
    for one in facts.evaluations:
        wanted = one.draws if one.draws > 1 else 0
        if len(set(one.runs)) != wanted or (one.runs and one.run not in one.runs):
            yield f"the runs on {one.cohort!r} are not those of its draws"


def _opening_problems(facts: AnyFacts) -> Iterator[str]:
    numbers = [one.number for one in facts.openings]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "the openings of the holdout are not numbered from 1 without gaps"
    if any(one.number > one.budget for one in facts.openings):
        yield "the holdout was opened more often than its budget allows"
    if not facts.development_only and not numbers:
        yield "a holdout was evaluated and no opening of it is listed"


def check_prompt(
    files: Mapping[str, bytes], facts: AnyFacts, *, vouched: bool
) -> tuple[Finding, Finding]:
    """Return whether the prompt shipped is the one named, and renders as shipped.

    Parameters
    ----------
    vouched
        Whether somebody trusted signed these files; the templates of a stranger are
        rendered apart, with limits. Another prompt than named is not rendered.
    """
    try:
        version = read_prompt(files)
    except DataError as error:
        return (
            broken("prompt", str(error)),
            broken("rendered", "not checked: the prompt cannot be read"),
        )
    problems = list(_prompt_problems(version, facts.release))
    told = facts.shots if isinstance(facts, JudgeReleaseFacts) else None
    if told != shots_facts(version):
        problems.append("the shots of the prompt are not those of release.json")
    read = facts.reads if isinstance(facts, JudgeReleaseFacts) else []
    named = [(one.ref, one.digest) for one in version.reads]
    if [(one.ref, one.digest) for one in read] != named:
        problems.append("what the prompt reads is not what release.json names")
    prompt = join_problems(
        "prompt", problems, f"digest {version.digest[:16]}, as named"
    )
    if problems:
        unsure = "not checked: it is another prompt than release.json names"
        return prompt, broken("rendered", unsure)
    return prompt, _check_rendered(version, files, vouched=vouched)


def _prompt_problems(version: PromptVersion, release: ReleasedFacts) -> Iterator[str]:
    for name, said, found in (
        ("digest", release.digest, version.digest),
        ("name", release.prompt, version.name),
        ("version", release.version, version.number),
        ("parent", release.parent, version.parent),
        ("author", release.author, version.author),
        ("time", release.time, version.time),
        ("why", release.why, version.why),
        ("plan", release.plan, version.plan),
        ("labels", release.labels, list(version.labels)),
    ):
        if said != found:
            yield f"the prompt and release.json differ in {name}"
    # The parser's version may rise; which contract it is may not change.
    if release.contract.partition("/")[0] != version.contract:
        yield "the prompt and release.json differ in contract"


def _check_rendered(
    version: PromptVersion, files: Mapping[str, bytes], *, vouched: bool
) -> Finding:
    try:
        made = render_files(version) if vouched else render_sandboxed(version)
    except DataError as error:
        return broken("rendered", str(error))
    shipped = {
        name: raw
        for name, raw in files.items()
        if name == SCHEMA or name.startswith("rendered/")
    }
    problems = [
        f"{name} is not what the prompt renders to"
        for name in sorted(set(made) | set(shipped))
        if made.get(name) != shipped.get(name)
    ]
    if problems:
        return join_problems("rendered", problems, "")
    return ok("rendered", f"{len(made)} files are what the prompt renders to")


TOLERANCE = 1e-9
"""Largest difference of a number from what its counts give."""


def check_numbers(facts: ReleaseFacts) -> tuple[Finding, ...]:
    """Return whether each evaluation says what its own counts say.

    Made again: accuracy, sensitivity and specificity with their exact intervals, F1,
    kappa with its asymptotic interval, macro- and micro-F1, every gate that the counts
    decide, and the overall verdict. A label is out of these only if its cohort says
    that the reference cannot judge it, and for the reason it gives. Bootstrap limits
    need the cases and are taken as given.
    """
    try:
        protocol = check_model(
            facts.protocol.content, Protocol, "protocol.content of release.json"
        )
    except DataError as error:
        return (broken("numbers", str(error)),)
    return tuple(
        _check_evaluation(one, protocol, not_comparable_in(facts, one))
        for one in facts.evaluations
    )


def differs(recorded: float | None, made: float | None) -> bool:
    """Whether two numbers are not the same to `TOLERANCE`; None is only like None.

    Examples
    --------
    >>> differs(0.1 + 0.2, 0.3), differs(None, 0.0), differs(None, None)
    (False, True, False)
    """
    if recorded is None or made is None:
        return recorded is not made
    return not isclose(recorded, made, rel_tol=0.0, abs_tol=TOLERANCE)


def _check_evaluation(
    evaluation: EvaluationFacts, protocol: Protocol, without: Mapping[str, str]
) -> Finding:
    problems = [
        f"{shown(label.label)}: {problem}"
        for label in evaluation.labels
        for problem in (
            *_label_problems(label, evaluation, protocol),
            *_gate_problems(label, evaluation, protocol, without.get(label.label, "")),
        )
    ]
    problems.extend(_whole_problems(evaluation, protocol))
    problems.extend(_average_problems(evaluation, protocol))
    check = f"numbers on {shown(evaluation.cohort)}"
    count = len(evaluation.labels)
    return join_problems(
        check, problems, f"{count} labels recomputed from their counts"
    )


def _label_problems(
    label: LabelFacts, evaluation: EvaluationFacts, protocol: Protocol
) -> Iterator[str]:
    counts, level = label.confusion, protocol.confidence
    if label.n != counts.n:
        yield f"n is {label.n}, its counts add up to {counts.n}"
    total = counts.n + label.exclusions.total
    if total != evaluation.cases * evaluation.draws:
        yield (
            f"{total} answers are accounted for, {evaluation.cases} cases were asked "
            f"{evaluation.draws} times"
            if evaluation.draws > 1
            else f"{total} cases are accounted for, the run has {evaluation.cases}"
        )
    for name, said, part, whole in (
        ("accuracy", label.accuracy, counts.correct, counts.n),
        ("sensitivity", label.sensitivity, counts.tp, counts.positives),
        ("specificity", label.specificity, counts.tn, counts.negatives),
    ):
        yield from _share_problems(name, said, part, whole, level, evaluation.draws)
    if differs(label.f1, counts.f1):
        yield "f1 is not what its counts give"
    kappa = cohen_kappa(counts, confidence=level, draws=evaluation.draws)
    for name, number, made in (
        ("value", label.kappa.value, kappa.value),
        ("low", label.kappa.low, kappa.low),
        ("high", label.kappa.high, kappa.high),
    ):
        if differs(number, made):
            yield f"kappa ({name}) is not what its counts give"
    yield from _hedge_problems(label, protocol)


def _share_problems(
    name: str, rate: RateFacts, part: int, whole: int, level: float, draws: int
) -> Iterator[str]:
    """Compare a share and its interval; without a denominator there is neither."""
    if not whole:
        nothing = rate.low, rate.high
        if rate.value is not None or nothing not in ((None, None), (0, 1)):
            yield f"{name} has a value without a denominator"
        return
    if differs(rate.value, part / whole):
        yield f"{name} is not what its counts give"
    low, high = clopper_pearson(part, whole, confidence=level, draws=draws)
    if differs(rate.low, low) or differs(rate.high, high):
        yield f"{name}: its interval is not what its counts give"


def _hedge_problems(label: LabelFacts, protocol: Protocol) -> Iterator[str]:
    """Compare the uncertain answers with what the policy makes of them."""
    counts, (positives, negatives) = label.confusion, label.hedges
    left_out = label.exclusions.uncertain_predicted
    if (label.answered_uncertain is None) != (protocol.uncertain_answers is None):
        yield "whether its uncertain answers are told is not as the protocol asks"
        return
    policy = protocol.policy
    if policy is UncertainAnswers.EXCLUDED:
        if label.answered_uncertain and positives + negatives != left_out:
            yield "its uncertain answers are not those left out"
        return
    room = {
        UncertainAnswers.WRONG: (counts.fn, counts.fp),
        UncertainAnswers.ABSENT: (counts.fn, counts.tn),
        UncertainAnswers.PRESENT: (counts.tp, counts.fp),
    }[policy]
    if left_out or positives > room[0] or negatives > room[1]:
        yield f"its uncertain answers are not counted as {policy}"


def _gate_problems(
    label: LabelFacts,
    evaluation: EvaluationFacts,
    protocol: Protocol,
    not_comparable: str,
) -> Iterator[str]:
    recorded = label.gate.verdict
    gate = decide_again(
        label, protocol, draws=evaluation.draws, not_comparable=not_comparable
    )
    made = gate.verdict
    if recorded is made:
        if not_comparable and tuple(label.gate.reasons) != gate.reasons:
            yield "it is not comparable for another reason than its cohort gives"
        return
    if GateVerdict.NOT_COMPARABLE in (recorded, made):
        yield (
            f"its gate says {recorded}, and its cohort says that the reference "
            f"{'cannot' if not_comparable else 'can'} judge it"
        )
        return
    # A limit over patients who repeat can only take a pass away, and needs the cases.
    repeated = evaluation.method.units != evaluation.cases
    by_patient = protocol.rule == "lower" and repeated
    if made is GateVerdict.PASS and recorded is GateVerdict.INSUFFICIENT and by_patient:
        return
    yield f"its gate says {recorded}, its counts give {made}"


def decide_again(
    label: LabelFacts,
    protocol: Protocol,
    *,
    draws: int = 1,
    not_comparable: str = "",
) -> Gate:
    """Return the gate of a label from its shipped counts and bootstrap limits.

    Parameters
    ----------
    draws
        Over which the counts are added up.
    not_comparable
        Why the reference cannot judge the label; empty where it can.
    """
    counts, excluded = label.confusion, label.exclusions
    kappa = cohen_kappa(counts, confidence=protocol.confidence, draws=draws)
    unanswered = excluded.unparsed + excluded.failed + excluded.not_asked
    evidence = LabelEvidence(
        confusion=counts,
        kappa=kappa,
        kappa_bootstrap=label.kappa_bootstrap.estimate,
        unanswered=unanswered,
        usable=counts.n + unanswered + excluded.uncertain_predicted,
        hedges=label.hedges if excluded.uncertain_predicted else NO_HEDGES,
        asked=counts.n > 0 or excluded.not_asked == 0,
        draws=draws,
        not_comparable=not_comparable,
    )
    return decide_gate(evidence, protocol)


def _whole_problems(evaluation: EvaluationFacts, protocol: Protocol) -> Iterator[str]:
    """Compare what is said of the evaluation as a whole with its labels."""
    labels = evaluation.labels
    signs = {one for one in evaluation.signature.split("|") if one.startswith("unc:")}
    if signs and signs != {protocol.policy.sign}:
        yield "its signature names another policy for uncertain answers"
    left_out = {label.label for label in labels if not label.comparable}
    if left_out_of(evaluation.signature) != left_out:
        yield "its signature names other labels that are left out"
    if len({label.label for label in labels}) != len(labels):
        yield "a label is listed twice"
    if sum(evaluation.statuses.values()) != evaluation.cases * evaluation.draws:
        yield "the outcomes do not add up to the cases"
    verdict = combine_verdicts(label.gate.verdict for label in labels)
    if verdict is GateVerdict.PASS and evaluation.not_run:
        verdict = GateVerdict.INSUFFICIENT
    if evaluation.verdict != verdict:
        yield f"the verdict is {evaluation.verdict}, its gates give {verdict}"
    if evaluation.counts_digest != shipped_digest(labels):
        yield "the digest of the counts is not theirs"


def shipped_digest(labels: Sequence[LabelFacts]) -> str:
    """Sha256 over the counts of every label, as the ledger records it."""
    return digest_counts(
        (label.label, label.confusion, label.exclusions) for label in labels
    )


def _average_problems(evaluation: EvaluationFacts, protocol: Protocol) -> Iterator[str]:
    rows = [tuple(label.confusion) for label in evaluation.comparable]
    counts = np.array(rows, dtype=np.int64).reshape(-1, 4)
    least = protocol.min_positives * evaluation.draws
    enough = counts[:, 0] + counts[:, 2] >= least
    for name, said, chosen, mean in (
        ("macro", evaluation.macro, counts, average_f1),
        ("supported", evaluation.supported, counts[enough], average_f1),
        ("micro", evaluation.micro, counts, micro_f1),
    ):
        labels = int(effective_labels(chosen)) if len(chosen) else 0
        made = float(mean(chosen, zero_division="skip")) if labels else None
        if differs(said.value, made):
            yield f"{name} F1 is not what the counts give"
        if said.labels != labels:
            yield f"{name} F1 is over {labels} labels, not as said"


def check_claim(facts: ReleaseFacts) -> Finding:
    """Return whether the claim is the protocol's, and follows from the counts.

    The p-values, their adjustment by Holm, and which labels are certified are made
    again.
    """
    claim = facts.claim
    try:
        protocol = check_model(
            facts.protocol.content, Protocol, "protocol.content of release.json"
        )
    except DataError as error:
        return broken("claim", str(error))
    good = f"{claim.kind} on {shown(claim.cohort)}: {claim.verdict}"
    problems = [*_form_problems(facts, claim, protocol)]
    tested = [one for one in facts.evaluations if one.cohort == claim.cohort]
    if tested:
        problems.extend(_number_problems(claim, tested[0], protocol))
    else:
        problems.append("it is about a cohort without an evaluation")
    return join_problems("claim", problems, good)


def _form_problems(
    facts: ReleaseFacts, claim: ClaimFacts, protocol: Protocol
) -> Iterator[str]:
    """Compare the claim with the protocol, and with why it was released."""
    if claim.kind != protocol.claim:
        yield "it is another claim than the protocol's"
    if differs(claim.alpha, claim_level(protocol)):
        yield "its level is not the protocol's"
    yield from override_problems(facts)


def override_problems(facts: AnyFacts) -> Iterator[str]:
    """Yield what stood against a release and was not answered by an override."""
    claim = facts.claim
    if claim.verdict != GateVerdict.PASS and not facts.frozen.override.strip():
        yield "its gate does not pass, and no override says why it was released"
    if facts.frozen.objections and not facts.frozen.override.strip():
        yield "something stood against it, and no override says why it was released"
    roles = {one.cohort: one.role for one in facts.evaluations}
    if not facts.development_only and roles.get(claim.cohort) != "holdout":
        yield "a holdout was evaluated, and it is not about the holdout"


def _number_problems(
    claim: ClaimFacts, evaluation: EvaluationFacts, protocol: Protocol
) -> Iterator[str]:
    """Make the tests of the claim again from the counts of its cohort."""
    labels = evaluation.comparable
    claimed = [one.label for one in claim.labels]
    if (claimed or claim.kind == "subset") and claimed != [
        label.label for label in labels
    ]:
        yield "it is not about every label that can be judged, in their order"
        return
    counts = [label.confusion for label in labels]
    p_values = [
        exact_p(one.correct, one.n, protocol.accuracy, draws=evaluation.draws)
        for one in counts
    ]
    gates = [label.gate.verdict for label in labels]
    whole = not evaluation.not_run
    made = decide_claim(gates, p_values, protocol, whole=whole)
    for one, p, p_holm, certified in zip(
        claim.labels, p_values, made.p_holm, made.certified, strict=False
    ):
        name = shown(one.label)
        if one.p is not None and differs(one.p, p):
            yield f"{name}: p is not what its counts give"
        if one.p_holm is not None and differs(one.p_holm, p_holm):
            yield f"{name}: the adjusted p is not what the counts give"
        if one.certified not in (None, certified):
            yield f"{name}: whether it is certified is not what the counts give"
    if claim.verdict != made.verdict:
        yield f"its verdict is {claim.verdict}, the gates give {made.verdict}"


def check_table(raw: bytes | None, facts: ReleaseFacts) -> Finding:
    """Return whether the table is, byte for byte, what ``release.json`` gives."""
    if raw is None:
        return broken(TABLE, "not checked: it is missing")
    made = evaluation_table(facts)
    rows = sum(len(one.labels) for one in facts.evaluations)
    problems = [] if raw == made else list(_table_problems(raw, made))
    return join_problems(TABLE, problems, f"{rows} rows as in release.json")


def _table_problems(raw: bytes, made: bytes) -> Iterator[str]:
    """Say where a table first differs from what it should be."""
    try:
        found, wanted = (
            list(csv.reader(io.StringIO(one.decode("utf-8"), newline="")))
            for one in (raw, made)
        )
    except (UnicodeDecodeError, csv.Error):
        yield "it is not a table in UTF-8, or has cells that are too long to compare"
        return
    if found[:1] != wanted[:1]:
        yield "its columns are not those of a release, in their order"
        return
    if len(found) != len(wanted):
        rows = len(wanted) - 1
        yield f"it has {len(found) - 1} rows, release.json has {rows}"
    for number, (row, right) in enumerate(zip(found, wanted, strict=False), 1):
        if len(row) != len(right):
            yield f"line {number} has {len(row)} cells, the header {len(right)}"
            return
        for name, cell, value in zip(wanted[0], row, right, strict=True):
            if cell != value:
                yield f"line {number}: {name} is not as in release.json"
                return
    if found == wanted:
        yield "its cells are right, and not written as ranloop writes them"

"""A judge that is to be released: measured against raters, then once on a holdout.

The order is that of extractors, see `loop.release.candidate`; what differs is what a
judge is held against.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.gates import GateVerdict, describe_verdicts
from loop.evaluate.protocol import (
    JudgingRules,
    Protocol,
    protocol_digest,
    read_protocol,
    register_protocol,
)
from loop.judge.judge_comparison import JudgeComparison, compare_judge_runs
from loop.judge.judge_evaluation import (
    JudgeEvaluation,
    claimed_score,
    evaluate_judge_run,
    record_judge_evaluation,
)
from loop.labels.cohort import read_record
from loop.labels.sealing import Opening
from loop.prompts.catalog import find_parent
from loop.prompts.version import PromptVersion
from loop.release.candidate import (
    FreezeRequest,
    Holdout,
    How,
    MeasuredVersion,
    Showing,
    Watching,
    ask_draws,
    is_registered_late,
    open_once,
    order_objections,
    read_committed,
)
from loop.release.change import Base, find_base
from loop.release.facts import ReleaseModel
from loop.release.judge_facts import (
    JudgeClaimFacts,
    JudgeEvaluationFacts,
    RatedCohort,
    RowFacts,
)
from loop.release.judge_provenance import (
    is_late,
    judge_evaluation_facts,
    judge_protocol_facts,
    rated_cohort_facts,
    row_facts,
)
from loop.run.asking import HeldEngine
from loop.run.manifest import read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCandidate(MeasuredVersion):
    """A judge as it was measured on the dev cohort."""

    evaluation: JudgeEvaluation
    """On the dev cohort; it has a gate."""

    claim: JudgeClaimFacts
    """What the dev cohort would let it claim."""

    base: Base
    """The release in use, or its parent."""

    comparison: JudgeComparison | None
    """With `base`; None for the first version of a prompt."""


class JudgeHoldoutResult(ReleaseModel):
    """What an opening showed of a judge, as the vault keeps it."""

    evaluation: JudgeEvaluationFacts
    claim: JudgeClaimFacts
    cohort: RatedCohort
    rows: list[RowFacts]
    """Of its rated pairs, without a case: `verify` measures the agreement on them."""


def read_judge_candidate(
    workspace: WorkspacePaths,
    request: FreezeRequest,
    engine: HeldEngine,
    actor: Actor,
    watching: Watching,
) -> JudgeCandidate:
    """Return the judge that `request` names, measured on its dev cohort.

    What it is held against, its parent or the release in use, is asked first. Runs of
    the same question that are in the store are taken; the evaluation goes into the
    ledger, once.

    Raises
    ------
    DataError
        The version is a draft or was edited, the cohort is not a dev cohort or has no
        points of raters, or the protocol claims nothing of judges.
    EngineError
        The engine cannot answer.
    """
    version = read_committed(workspace, request)
    protocol = read_protocol(workspace)
    rules = _require_claim(protocol, version)
    _require_points(workspace, request.cohort)
    register_protocol(workspace, actor)
    late = is_registered_late(workspace, version, request.cohort)

    def ask(one: PromptVersion) -> tuple[str, ...]:
        return ask_draws(workspace, one.ref, request.cohort, engine, actor, watching)

    base = find_base(workspace, version)
    before = ask(base.version) if base.version else ()
    parent = find_parent(workspace, version)
    is_base = bool(parent and base.version and parent.digest == base.version.digest)
    if parent is not None and rules.margin is not None and not is_base:
        ask(parent)
    runs = ask(version)
    evaluation = evaluate_judge_run(workspace, runs[0])
    record_judge_evaluation(workspace, evaluation, actor)
    comparison = None
    if before:
        level = protocol.confidence
        comparison = compare_judge_runs(
            workspace, before[0], runs[0], rules, confidence=level
        )
    known = judge_protocol_facts(workspace, evaluation)
    late = late or is_late(known.registered, evaluation)
    losses = () if is_base else _losses(comparison, base, rules)
    return JudgeCandidate(
        version=version,
        protocol_digest=protocol_digest(workspace),
        objections=(
            *_gate_objections(evaluation),
            *order_objections(version, request.cohort, actor, late=late),
            *losses,
        ),
        manifest=read_manifest(workspace, runs[0]),
        runs=runs,
        evaluation=evaluation,
        claim=_claim(evaluation),
        base=base,
        comparison=comparison,
    )


def _require_claim(protocol: Protocol, version: PromptVersion) -> JudgingRules:
    if protocol.judging is None:
        raise DataError(
            f"nothing is claimed of {version.ref}: labels/protocol.yaml has no section "
            "judging. Write one, with the agreement that a judge must reach, before it "
            "is measured; nothing was measured now, and no holdout was opened."
        )
    claimed_score(version, protocol.judging.score)
    return protocol.judging


def _require_points(workspace: WorkspacePaths, cohort: str) -> None:
    """Refuse a cohort without points, before anything is asked or opened."""
    ratings = read_record(workspace, cohort).ratings
    if not ratings or "ratings" not in ratings[max(ratings)]:
        raise DataError(
            f"cohort {cohort} has no points of raters, and a judge is held against "
            f"them. Add them with `ranloop cohort ratings {cohort} --ratings FILE`."
        )


def _gate_objections(found: JudgeEvaluation) -> Iterator[str]:
    gate = found.gate
    if gate is None:
        return
    if gate.verdict is not GateVerdict.PASS:
        tally = describe_verdicts(one.verdict for one in gate.checks)
        yield f"the gate on {found.cohort} says {gate.verdict.value} ({tally})"
    for words in gate.suspicious:
        yield f"suspicious on {found.cohort}: {words}"


def _losses(
    found: JudgeComparison | None, base: Base, rules: JudgingRules
) -> Iterator[str]:
    """Yield that it may agree less than the release in use, beyond the margin.

    What the parent is worth, the gate itself asks.
    """
    if found is None or base.version is None or rules.margin is None:
        return
    low = found.difference.low
    if low is None or low <= -rules.margin:
        yield (
            f"{found.agreement.name}: may be below that of {base.version.ref} by more "
            "than the protocol's margin"
        )


def _claim(found: JudgeEvaluation) -> JudgeClaimFacts:
    verdict = found.gate.verdict if found.gate else GateVerdict.INSUFFICIENT
    return JudgeClaimFacts(kind="judging", verdict=verdict, cohort=found.cohort)


def open_for_judge(
    workspace: WorkspacePaths,
    candidate: JudgeCandidate,
    request: FreezeRequest,
    engine: HeldEngine,
    how: How,
) -> Holdout[JudgeHoldoutResult]:
    """Return what the holdout says of a judge; see `loop.release.candidate.open_once`.

    Raises
    ------
    DataError
        The holdout has no points of raters: it is not opened then.
    """
    _require_points(workspace, request.holdout)

    def measure(run: str, opening: Opening) -> JudgeHoldoutResult:
        found = evaluate_judge_run(workspace, run, opening=opening)
        record_judge_evaluation(workspace, found, how.actor)
        return JudgeHoldoutResult(
            evaluation=judge_evaluation_facts(workspace, found),
            claim=_claim(found),
            cohort=rated_cohort_facts(workspace, found),
            rows=row_facts(found.rows),
        )

    showing = Showing(JudgeHoldoutResult, measure)
    return open_once(workspace, candidate, request, engine, how, showing)


def holdout_objections(result: JudgeHoldoutResult) -> Iterator[str]:
    """Yield why what a holdout showed stands against the release."""
    found = result.evaluation
    if found.verdict is not GateVerdict.PASS:
        tally = describe_verdicts(one.verdict for one in found.gate)
        yield f"the gate on {found.cohort} says {found.verdict.value} ({tally})"
    for words in found.suspicious:
        yield f"suspicious on {found.cohort}: {words}"

"""What a release of a judge says of each evaluation, of its cohorts and its history.

Every number and every interval is there, and of single pairs only the rows that
`loop.judge.rated_rows` makes: what is said of a holdout may be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import find_registration, protocol_digest, read_protocol
from loop.evaluate.score_history import read_versions
from loop.judge.counts import JudgeScore
from loop.judge.judge_comparison import JudgeComparison, NumberChange
from loop.judge.judge_evaluation import (
    EMPTY,
    RESAMPLES,
    JudgeEvaluation,
    copy_counts,
)
from loop.judge.meta_evaluation import ScoreBias, mean_tau_b
from loop.judge.rated_rows import RatedRow, digest_rows
from loop.labels.cohort import read_cohort
from loop.labels.error_categories import read_errors
from loop.labels.expert_ratings import OVERALL
from loop.prompts.version import PromptVersion
from loop.release.change import Base, diff_facts
from loop.release.facts import ProtocolFacts
from loop.release.judge_facts import (
    AgreementFacts,
    BiasFacts,
    CategoriesFacts,
    ChangedScoreFacts,
    CopyFacts,
    ErrorFacts,
    FloorFacts,
    JudgeChangeFacts,
    JudgeEvaluationFacts,
    PastJudgeFacts,
    RatedCohort,
    ReadFacts,
    RepeatFacts,
    RowFacts,
    ScoreFacts,
    agreement_facts,
    check_facts_of,
    estimate_facts,
)
from loop.score.experts.error_agreement import GroupAgreement
from loop.score.metrics.base import Direction

SEED: Final = 0
"""Of every interval; see `RESAMPLES`."""


def rated_cohort_facts(
    workspace: WorkspacePaths, found: JudgeEvaluation
) -> RatedCohort:
    """Return what a release says of one cohort of rated pairs: names and digests.

    Raises
    ------
    DataError
        The cohort is no longer as recorded.
    """
    cohort = read_cohort(workspace, found.cohort)
    return RatedCohort(
        name=cohort.name,
        role=cohort.role.value,
        source=cohort.source,
        licence=cohort.licence,
        citation=cohort.citation,
        language=cohort.language,
        digest=cohort.digest,
        cases=len(cohort.cases),
        references=len({one.reference_id for one in cohort.cases}),
        synthetic=cohort.synthetic,
        patients_known=cohort.patients_known,
        ratings=found.ratings,
        ratings_digest=found.ratings_digest,
        raters=found.raters,
        dimension=OVERALL,
        scale=found.scale,
    )


def judge_protocol_facts(
    workspace: WorkspacePaths, found: JudgeEvaluation
) -> ProtocolFacts:
    """Return the protocol an evaluation was judged by, and when it was registered."""
    digest = protocol_digest(workspace)
    entry = find_registration(workspace, digest)
    registered = entry.time if entry else ""
    return ProtocolFacts(
        digest=digest,
        registered=registered,
        late=is_late(registered, found),
        content=read_protocol(workspace).model_dump(mode="json"),
    )


def is_late(registered: str, found: JudgeEvaluation) -> bool:
    """Whether the claim was not yet fixed when the run began."""
    return not registered or registered > f"{found.run.created[:19]}Z"


def judge_evaluation_facts(
    workspace: WorkspacePaths, found: JudgeEvaluation
) -> JudgeEvaluationFacts:
    """Return an evaluation by a gate: numbers, and the digest of its rows.

    Raises
    ------
    ValueError
        It has no gate.
    """
    if found.gate is None:
        raise ValueError(f"the evaluation of run {found.run.id} has no gate")
    cohort = read_cohort(workspace, found.cohort)
    entry = find_registration(workspace, protocol_digest(workspace))
    copies = copy_counts(found.meta.copies)
    floors = {group for group, _ in _floors(workspace)}
    return JudgeEvaluationFacts(
        cohort=found.cohort,
        role=cohort.role.value,
        run=found.run.id,
        draws=found.draws,
        runs=list(found.runs) if found.draws > 1 else [],
        created=found.run.created,
        cases=len(cohort.cases),
        statuses={one.value: number for one, number in found.statuses.items()},
        verdict=found.gate.verdict,
        registered_late=is_late(entry.time if entry else "", found),
        rows=len(found.rows),
        rows_digest=digest_rows(found.rows),
        unit="patient" if cohort.patients_known else "reference",
        resamples=RESAMPLES,
        seed=SEED,
        agreement=_agreement(found),
        errors=[_error(one) for one in found.significant],
        counts_digest=found.counts_digest,
        floors=[
            FloorFacts(group=group, f1=estimate_facts(one.f1))
            for group, one in found.f1.items()
            if group in floors
        ],
        bias=[_bias(one) for one in (found.meta.length, found.meta.position)],
        copies=CopyFacts(
            pairs=copies.pairs if copies else 0,
            best=copies.best if copies else 0,
            unanswered=copies.unanswered if copies else 0,
        ),
        repeats=_repeats(found),
        gate=[check_facts_of(one) for one in found.gate.checks],
        suspicious=list(found.gate.suspicious),
        signature=_sign(workspace, found),
    )


def _floors(workspace: WorkspacePaths) -> list[tuple[object, float]]:
    rules = read_protocol(workspace).judging
    return [] if rules is None else list(rules.f1_floors.items())


def _agreement(found: JudgeEvaluation) -> AgreementFacts:
    ratings = found.meta.ratings
    return agreement_facts(
        found.claimed,
        one_rater=mean_tau_b(ratings.each) if ratings else None,
        two_raters=mean_tau_b(ratings.pairs) if ratings else None,
    )


def _error(found: GroupAgreement) -> ErrorFacts:
    counts = found.judge
    return ErrorFacts(
        name=found.group.name.replace("_", " "),
        categories=list(found.group.categories),
        n=counts.n,
        tp=counts.true,
        fp=counts.found - counts.true,
        fn=counts.expected - counts.true,
        f1=estimate_facts(counts.f1),
        two_raters=found.f1_pairs,
    )


def _bias(found: ScoreBias) -> BiasFacts:
    beside = found.beside
    return BiasFacts(
        by="length" if found.by == "length" else "position",
        scores=estimate_facts(found.scores.tau_b),
        ratings=beside.ratings.value if beside else None,
        difference=estimate_facts(beside.difference) if beside else None,
    )


def _repeats(found: JudgeEvaluation) -> RepeatFacts | None:
    told = found.meta.consistency
    if told is None:
        return None
    return RepeatFacts(
        pairs=told.pairs,
        incomplete=told.incomplete,
        sd=estimate_facts(told.sd),
        identical=estimate_facts(told.identical),
        icc=estimate_facts(told.icc),
    )


def _sign(workspace: WorkspacePaths, found: JudgeEvaluation) -> str:
    """Return the conventions behind the numbers, as one line."""
    errors = read_errors(workspace.labels)
    cohort = read_cohort(workspace, found.cohort)
    parts: tuple[str, ...] = (
        f"judge:{found.score.name}",
        f"prompt:{found.run.spec.prompt}:{found.run.spec.prompt_digest[:12]}",
        f"engine:{found.run.spec.engine}",
        f"ratings:{found.against}:{found.ratings_digest[:12]}",
        f"dim:{OVERALL}",
        f"raters:mean-of-{found.raters}",
        f"empty:{EMPTY.value}",
        f"errors:v{errors.version}:{errors.digest[:12]}:median",
        f"unit:{'patient' if cohort.patients_known else 'reference'}",
        f"boot:{RESAMPLES}:seed{SEED}",
        f"n:{len(found.rows)}",
    )
    if found.shots is not None:
        parts = (*parts, found.shots.sign, f"pairs:{cohort.digest[:12]}")
    return "|".join(parts)


def row_facts(rows: Sequence[RatedRow]) -> list[RowFacts]:
    """Return rows as the vault keeps them."""
    return [RowFacts(**one._asdict()) for one in rows]


def score_facts(score: JudgeScore) -> ScoreFacts:
    """Return the claimed score, with its weights where it has some."""
    return ScoreFacts(
        name=score.name,
        title=score.title,
        about=score.about,
        weights=None if score.weights is None else list(score.weights),
        better="lower" if score.direction is Direction.LOWER else "higher",
    )


def categories_facts(workspace: WorkspacePaths) -> CategoriesFacts:
    """Return which categories of errors there were.

    Raises
    ------
    DataError
        The file is missing or malformed.
    """
    found = read_errors(workspace.labels)
    return CategoriesFacts(version=found.version, digest=found.digest)


def read_facts(version: PromptVersion) -> list[ReadFacts]:
    """Return the versions that a judge reads, by reference and digest."""
    return [ReadFacts(ref=one.ref, digest=one.digest) for one in version.reads]


def judge_change_facts(
    version: PromptVersion, base: Base, found: JudgeComparison | None
) -> JudgeChangeFacts:
    """Return what `version` changes, in words and in agreement on the dev cohort."""
    return JudgeChangeFacts(
        **diff_facts(version, base)._asdict(),
        agreement=None if found is None else _changed(found.agreement),
        difference=None if found is None else estimate_facts(found.difference),
        f1=[] if found is None else [_changed(one) for one in found.f1],
    )


def _changed(found: NumberChange) -> ChangedScoreFacts:
    return ChangedScoreFacts(**found._asdict())


def judge_history_facts(
    workspace: WorkspacePaths, prompt: str, cohort: str
) -> list[PastJudgeFacts]:
    """Return every version and draft of `prompt` with its agreement on a dev cohort.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    entries = [
        entry
        for entry in read_ledger(workspace.ledger)
        if entry.action == "judge_evaluated" and entry.payload.get("cohort") == cohort
    ]
    rows = []
    for row in read_versions(workspace, prompt):
        newest = _newest(entries, row.digest)
        rows.append(
            PastJudgeFacts(
                ref=row.ref,
                digest=row.digest,
                time=row.when,
                author=row.who,
                why=row.why,
                verdicts=row.verdicts,
                verdict_roles=dict(row.verdict_roles),
                status=row.status.value,
                observed=float(newest["observed"]) if newest else None,
                measured=_measured(newest) if newest else "",
            )
        )
    return rows


def _newest(entries: Sequence[LedgerEntry], digest: str) -> Mapping[str, Any] | None:
    """Return the newest recorded agreement of a version; None without any."""
    return next(
        (
            entry.payload
            for entry in reversed(entries)
            if entry.payload.get("prompt_digest") == digest
            and entry.payload.get("observed")
        ),
        None,
    )


def _measured(payload: Mapping[str, Any]) -> str:
    return f"{payload['score']}, {payload['engine']}, {payload['ratings']}"

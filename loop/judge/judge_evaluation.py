"""A judge's run held against what experts say of its cohort, and its gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loop.core.config import ModelPrice, read_config
from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask, Status
from loop.evaluate.evaluation import find_parent_run
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import read_protocol, register_protocol
from loop.evaluate.recording import digest_answers
from loop.evaluate.stability import find_draws
from loop.judge.counts import (
    JudgeCounts,
    JudgeScore,
    OwnAgainstCounts,
    answer_fields,
    compare_own,
    find_score,
    read_counts,
    require_score,
    score_counts,
    scores_of,
)
from loop.judge.gate_text import judge_gate_notes, judge_gate_rows
from loop.judge.judge_gates import (
    CopyCounts,
    JudgeAspect,
    JudgeEvidence,
    JudgeGate,
    decide_judge_gate,
)
from loop.judge.meta_evaluation import (
    JudgeCost,
    JudgedTexts,
    JudgeMetaEvaluation,
    evaluate_judge,
)
from loop.judge.meta_text import judge_meta_data, judge_meta_said
from loop.judge.rated_rows import (
    RatedRow,
    digest_error_counts,
    digest_rows,
    number_units,
    rated_rows,
)
from loop.judge.repeats import CopyTest
from loop.judge.score_bins import ScoreBin, bins_data, score_bins
from loop.judge.shots import shot_notes, shots_data
from loop.labels.cohort import CONTEXT, Cohort, iter_items, read_cohort
from loop.labels.error_categories import ErrorGroup, read_errors
from loop.labels.expert_ratings import ExpertRatings, read_ratings_of
from loop.labels.sealing import Opening
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.shot_records import Shots
from loop.prompts.version import PromptVersion
from loop.run.cost import price_run
from loop.run.manifest import find_run
from loop.run.runner import ItemAnswer
from loop.run.store import RunRecord, Store, open_store, read_values, split_keys
from loop.run.task_fields import task_of
from loop.score.experts.documents import DAGGER
from loop.score.experts.error_agreement import (
    CountF1,
    GroupAgreement,
    category_groups,
    count_f1,
    median_given,
)
from loop.score.experts.error_counts import Empty
from loop.score.experts.error_tables import SIGNIFICANCES, ErrorTable
from loop.score.experts.ratings import Ratings, as_ratings
from loop.score.metrics.base import Direction
from loop.stats.correlation import Correlations, correlate, is_shown, kendall_p

RESAMPLES: Final = 2_000
"""Of every interval here."""

NOT_SHOWN: Final = (
    "tau-b is not shown to differ from 0: p is 0.05 or more by Kendall's test, "
    "two-sided, which treats pairs as independent, or the interval over {unit}s "
    "includes 0 or cannot be estimated."
)
"""What the mark means; the unit is what was resampled."""

EMPTY: Final = Empty.ONE
"""What a pair without matches and errors scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAgreement:
    """How one score of a judge agrees with the mean of the raters."""

    score: JudgeScore
    found: Correlations
    """Of the score turned so that more is better."""

    p: float | None
    """Of Kendall's test that tau-b is 0; see `loop.stats.correlation.kendall_p`."""

    @property
    def shown(self) -> bool:
        """Whether tau-b is shown to differ from 0, by its test and its interval."""
        return is_shown(self.found, self.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEvaluation:
    """What a judge's run is worth, as far as experts say."""

    run: RunRecord
    runs: tuple[str, ...]
    """Runs of the same pairs by the same judge that were taken together, by draw."""

    cohort: str
    statuses: Mapping[Status, int]
    """Outcomes of the first draw."""

    against: str
    """What experts say, with its version, for example ``"rp:ratings1"``."""

    ratings: int
    """That version, from 1."""

    ratings_digest: str
    raters: int
    """Who gave points; 0 where nobody did."""

    scale: str
    """Of the points, for example ``"1-5"``; empty without points."""

    rows: tuple[RatedRow, ...]
    """What `score` and the raters say of each rated pair, in the order of
    `loop.judge.rated_rows`; empty without points."""

    f1: Mapping[ErrorGroup, CountF1]
    """Significant errors by group against the raters' median, with one-sided limits at
    the protocol's confidence; empty where nobody marked errors."""

    score: JudgeScore
    """The score that the protocol holds against the raters; without a protocol of
    judges GREEN, or else the first that the judge has."""

    agreement: tuple[ScoreAgreement, ...]
    """Each score against points, the best first; empty without points."""

    meta: JudgeMetaEvaluation
    """Of `score` and of the counts."""

    own: OwnAgainstCounts
    bins: tuple[ScoreBin, ...]
    """How `score` is spread over the pairs."""

    without_context: bool = False
    """Whether the judge reads what is known of the patient, and the cohort has none."""

    gate: JudgeGate | None
    """None where the protocol says nothing of judges, or nobody gave points."""

    shots: Shots | None = None
    """Which examples the judge was shown."""

    @property
    def significant(self) -> tuple[GroupAgreement, ...]:
        """Significant errors against the raters' median: all, by group, by category.

        Empty where nobody marked errors.
        """
        return tuple(
            one
            for found in self.meta.errors
            if not found.all_errors
            for one in (found.total, *found.groups, *found.categories)
        )

    @property
    def counts_digest(self) -> str:
        """Sha256 over the counts of `significant`; see `digest_error_counts`."""
        return digest_error_counts(
            (one.group.categories, one.judge.true, one.judge.found, one.judge.expected)
            for one in self.significant
        )

    @property
    def claimed(self) -> Correlations | None:
        """The agreement of `score`; None where fewer than two pairs have both."""
        return next(
            (one.found for one in self.agreement if one.score == self.score), None
        )

    @property
    def draws(self) -> int:
        """How often each pair was asked."""
        return len(self.runs)

    @property
    def observed(self) -> float | None:
        """The agreement that is claimed; None without a gate, or not estimable."""
        checks = () if self.gate is None else self.gate.checks
        return next(
            (one.observed for one in checks if one.aspect is JudgeAspect.AGREEMENT),
            None,
        )


def evaluate_judge_run(
    workspace: WorkspacePaths, run_ref: str, *, opening: Opening | None = None
) -> JudgeEvaluation:
    """Return a judge's run held against the newest ratings of its cohort.

    Further draws of it, as ``--repeats`` makes them, show how far it says the same
    twice. Whichever of them is named, the first stands for all: none can be chosen for
    what it shows.

    Parameters
    ----------
    opening
        What lets the ratings of a holdout be read; nothing else does. Nothing is held
        against the parent version there: the opening is for this one.

    Raises
    ------
    DataError
        There is no such run, it asked a part of the cohort only, its version is not
        among the prompts, or experts said nothing of the cohort.
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    StoreError
        The store cannot be read.
    """
    run = find_run(workspace, run_ref)
    if run.spec.limit is not None:
        raise DataError(
            f"run {run.id} asked the first {run.spec.limit} pairs only, and a gate is "
            "of the whole cohort. Run it without --limit."
        )
    version = version_of(workspace, run)
    draws = find_draws(workspace, run)
    run = draws[0]
    cohort = read_cohort(workspace, run.spec.cohort)
    given = read_ratings_of(workspace, cohort.name, opening=opening)
    protocol = read_protocol(workspace)
    rules = protocol.judging
    contract = get_contract(version.contract)
    score = claimed_score(version, None if rules is None else rules.score)
    with open_store(workspace) as store:
        counts = [run_counts(store, one, version) for one in draws]
        cost = run_cost(store, run, read_config(workspace).prices)
    first = counts[0]
    points = rated_points(given) if given.dimensions else None
    experts = expert_table(workspace, given)
    parent = None
    if rules is not None and rules.margin is not None and opening is None:
        parent = _parent_scores(workspace, run, score)
    known = cohort.patients_known
    owners = {one.case_id: one.patient for one in cohort.cases} if known else None
    judged = _judged(workspace, cohort, version, score, counts)
    units = np.array([one.patient or one.reference_id for one in cohort.cases])
    if points is not None:
        compared = [] if parent is None else [parent]
        units = number_units(units, points.consensus, judged.scores[0], *compared)
    else:
        units = np.unique(units, return_inverse=True)[1]
    meta = evaluate_judge(
        judged,
        experts=experts
        if contract.counts_errors and first.count(Status.ANSWERED)
        else None,
        ratings=points,
        patients=owners,
        units=units,
        cost=cost,
        resamples=RESAMPLES,
    )
    f1 = {}
    if experts is not None and contract.counts_errors:
        f1 = _group_f1(experts, judged, units, protocol.confidence)
    gate = None
    if rules is not None and points is not None:
        evidence = JudgeEvidence(
            scores=judged.scores[0],
            ratings=points,
            units=units,
            unanswered=1 - first.count(Status.ANSWERED) / max(1, len(cohort.cases)),
            direction=score.direction,
            f1={group: found.f1 for group, found in f1.items()},
            copies=copy_counts(meta.copies),
            parent=parent,
        )
        gate = decide_judge_gate(evidence, rules, confidence=protocol.confidence)
    return JudgeEvaluation(
        run=run,
        runs=tuple(one.id for one in draws),
        cohort=cohort.name,
        statuses={one: first.count(one) for one in Status},
        against=given.ref,
        ratings=given.number,
        ratings_digest=given.digest,
        raters=0 if points is None else len(points.raters),
        scale="" if points is None else given.points().scale.words,
        rows=()
        if points is None
        else rated_rows(units, points.consensus, judged.scores[0], parent),
        f1=f1,
        score=score,
        agreement=()
        if points is None
        else score_agreement(scores_of(contract), first, points, units),
        meta=meta,
        own=compare_own(first, contract, EMPTY),
        bins=score_bins(judged.scores[0], score.low, score.high),
        without_context=CONTEXT in version.inputs and CONTEXT not in cohort.inputs,
        gate=gate,
        shots=version.shots,
    )


def claimed_score(version: PromptVersion, name: str | None) -> JudgeScore:
    """Return the score of a judge that is held against raters.

    Parameters
    ----------
    name
        As the protocol calls it; None: it says nothing of judges, and the judge's first
        score is taken, which is GREEN where its answers have it.

    Raises
    ------
    DataError
        The answers of the judge cannot have it, or have no score at all.
    """
    contract = get_contract(version.contract)
    if name is not None:
        return require_score(contract, name)
    scores = scores_of(contract)
    if not scores:
        raise DataError(
            f"{version.ref} gives no score: answers in its contract {contract.name} "
            "have none. Name another judge."
        )
    return scores[0]


def version_of(workspace: WorkspacePaths, run: RunRecord) -> PromptVersion:
    """Return the version that a run asked, as it was.

    Raises
    ------
    DataError
        It is not among the prompts, was edited, or is no judge.
    """
    version = read_version(workspace, run.spec.prompt)
    if version.digest != run.spec.prompt_digest or (
        task_of(version) is not PromptTask.JUDGE
    ):
        raise DataError(
            f"run {run.id} asked {run.spec.prompt} with digest "
            f"{run.spec.prompt_digest[:12]}, which is {version.digest[:12]} now. "
            "Restore that version, or run it again."
        )
    return version


def run_counts(store: Store, run: RunRecord, version: PromptVersion) -> JudgeCounts:
    """Return the counts of a judge's run, in cohort order.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    contract = get_contract(version.contract)
    names = answer_fields(version.labels, contract)
    answers = [
        ItemAnswer(one.status, tuple([one.values.get(name) for name in names]))
        for one in read_values(store, run)
    ]
    return read_counts(answers, version.labels, contract)


def _judged(
    workspace: WorkspacePaths,
    cohort: Cohort,
    version: PromptVersion,
    score: JudgeScore,
    counts: Sequence[JudgeCounts],
) -> JudgedTexts:
    """Return what the judge said, draw by draw, beside the texts."""
    texts = [item.variables for item in iter_items(workspace, cohort)]
    return JudgedTexts(
        keys=tuple((case, "") for case in cohort.case_ids),
        references=[one["reference"] for one in texts],
        candidates=[one["candidate"] for one in texts],
        scores=np.stack([score_counts(one, score, EMPTY) for one in counts]),
        counts=np.stack([one.by_weight for one in counts]),
        categories=counts[0].categories,
        lower=score.direction is Direction.LOWER,
        best=score.best,
        name=version.ref,
    )


def rated_points(given: ExpertRatings) -> Ratings:
    """Return the points of every rater for every pair, in cohort order.

    Raises
    ------
    DataError
        Nobody gave points.
    """
    return as_ratings(given.points(), [(case, "") for case in given.case_ids])


def score_agreement(
    scores: Sequence[JudgeScore],
    counts: JudgeCounts,
    points: Ratings,
    units: NDArray[Any],
) -> tuple[ScoreAgreement, ...]:
    """Return how each score agrees with the mean of the raters, the best first.

    A score that fewer than two rated pairs have is left out.
    """
    consensus = points.consensus
    found = []
    for score in scores:
        values = score_counts(counts, score, EMPTY)
        both = ~np.isnan(values) & ~np.isnan(consensus)
        if both.sum() > 1:
            sign = -1 if score.direction is Direction.LOWER else 1
            own, theirs = sign * values[both], consensus[both]
            told = correlate(own, theirs, units[both], resamples=RESAMPLES)
            p = kendall_p(own, theirs)
            found.append(ScoreAgreement(score=score, found=told, p=p))
    return tuple(sorted(found, key=_rank))


def _rank(one: ScoreAgreement) -> float:
    value = one.found.tau_b.value
    return np.inf if value is None else -value


def expert_table(workspace: WorkspacePaths, given: ExpertRatings) -> ErrorTable | None:
    """Return the errors that experts marked, counted, in cohort order.

    None where nobody marked errors.

    Raises
    ------
    DataError
        The categories of errors cannot be read.
    """
    if not given.given.errors:
        return None
    found = given.counts(read_errors(workspace.labels))
    weights = [found.significances.index(one) for one in SIGNIFICANCES]
    return ErrorTable(
        keys=tuple((case, "") for case in found.case_ids),
        raters=found.raters,
        categories=found.categories,
        counts=found.counts[..., weights],
    )


def expert_median(
    experts: ErrorTable, category: str, weight: str = ""
) -> NDArray[np.float64]:
    """Return the experts' median count of each pair; NaN where they do not decide.

    They do not where the median is no whole number. Without a weight errors of either
    significance count.
    """
    both = experts.counts[:, :, experts.categories.index(category)]
    chosen = both[..., SIGNIFICANCES.index(weight)] if weight else both.sum(axis=-1)
    median = median_given(chosen)
    return np.where(median == np.floor(median), median, np.nan)


def _group_f1(
    experts: ErrorTable, judged: JudgedTexts, units: NDArray[Any], confidence: float
) -> dict[ErrorGroup, CountF1]:
    """Return the F1 of significant errors by group, against the raters' median.

    Ends of the intervals are one-sided limits at `confidence`.
    """
    theirs = experts.rows(judged.keys)
    own = judged.table.rows(judged.keys)
    found = {}
    for group, known in zip(ErrorGroup, category_groups(), strict=True):
        found[group] = count_f1(
            own.totals(known.categories, all_errors=False)[:, 0],
            median_given(theirs.totals(known.categories, all_errors=False)),
            units=units,
            resamples=RESAMPLES,
            confidence=2 * confidence - 1,
        )
    return found


def copy_counts(found: CopyTest) -> CopyCounts | None:
    """Return the copy test as the gate takes it; None without a copy."""
    if not found.copies:
        return None
    best = found.copies - len(found.wrong) - found.unanswered
    return CopyCounts(found.copies, best, found.unanswered)


def _parent_scores(
    workspace: WorkspacePaths, run: RunRecord, score: JudgeScore
) -> NDArray[np.float64] | None:
    """Return the parent version's scores of the same pairs; None without a run.

    Of several draws the first stands for all, as it does for the version itself.
    """
    before = find_parent_run(workspace, run.id)
    if before is None:
        return None
    record, *_ = find_draws(workspace, find_run(workspace, before))
    version = version_of(workspace, record)
    with open_store(workspace) as store:
        return score_counts(run_counts(store, record, version), score, EMPTY)


def run_cost(
    store: Store, run: RunRecord, prices: Mapping[str, ModelPrice]
) -> JudgeCost:
    """Return what the answers of a run took, as the engine counted it.

    Of the pairs whose answers are all stored.

    Parameters
    ----------
    prices
        By model, as the settings of the workspace name them.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    asked = [split_keys(keys) for _, keys in store.read_keys(run.id)]
    found = store.find_completions([key for keys in asked for key in keys])
    stored = [keys for keys in asked if keys and all(key in found for key in keys)]
    answers = [found[key] for keys in stored for key in keys]
    tokens = [
        one.prompt_tokens + one.completion_tokens
        for one in answers
        if one.prompt_tokens is not None and one.completion_tokens is not None
    ]
    # A sum over some of the calls would be taken for one over all of them.
    counted = bool(answers) and len(tokens) == len(answers)
    price = price_run(run, prices) if counted else None
    return JudgeCost(
        pairs=len(stored),
        calls=len(answers),
        seconds=sum(one.latency_s for one in answers) if answers else None,
        tokens=sum(tokens) if counted else None,
        price=None if price is None else price.amount,
        currency="" if price is None else price.currency,
    )


def recount_rows(
    workspace: WorkspacePaths, run: RunRecord, *, score: str, ratings: int
) -> tuple[str, ...]:
    """Return the digests that the rows of a run on an open cohort can have.

    Without the parent's scores, and with those of each of its runs on these pairs:
    which were recorded, the protocol and the runs of that time decided.

    Raises
    ------
    DataError
        The version, the cohort or the ratings are not as recorded.
    SealedError
        The cohort is a holdout.
    StoreError
        The store cannot be read.
    """
    version, wanted = version_of(workspace, run), find_score(score)
    cohort = read_cohort(workspace, run.spec.cohort)
    given = read_ratings_of(workspace, cohort.name, ratings)
    points = rated_points(given).consensus
    parent = find_parent(workspace, version)
    with open_store(workspace) as store:
        scores = score_counts(run_counts(store, run, version), wanted, EMPTY)
        earlier = [
            score_counts(run_counts(store, one, parent), wanted, EMPTY)
            for one in store.find_runs(finished=True)
            if parent is not None
            and one.spec.limit is None
            and one.spec.prompt_digest == parent.digest
            and one.spec.cohort_digest == run.spec.cohort_digest
        ]
    names = np.array([one.patient or one.reference_id for one in cohort.cases])
    found = [rated_rows(number_units(names, points, scores), points, scores)]
    for before in earlier:
        units = number_units(names, points, scores, before)
        found.append(rated_rows(units, points, scores, before))
    return tuple(map(digest_rows, found))


def record_judge_evaluation(
    workspace: WorkspacePaths, found: JudgeEvaluation, actor: Actor
) -> None:
    """Write the evaluation into the ledger, once.

    Raises
    ------
    LedgerError
        The ledger's chain is broken.
    WriteError
        The ledger cannot be written.
    """
    protocol = register_protocol(workspace, actor)
    best = found.agreement[0] if found.agreement else None
    tau = None if best is None else best.found.tau_b.value
    with open_store(workspace) as store:
        answers = digest_answers(store, found.runs)
    payload = {
        "run": found.run.id,
        "prompt_digest": found.run.spec.prompt_digest,
        "cohort": found.cohort,
        "cohort_digest": found.run.spec.cohort_digest,
        "ratings": found.against,
        "ratings_digest": found.ratings_digest,
        "protocol": protocol.payload["digest"],
        "engine": found.run.spec.engine,
        "best": "" if best is None else best.score.name,
        "tau_b": "" if tau is None else f"{tau:.4f}",
        "score": found.score.name,
        "observed": "" if found.observed is None else f"{found.observed:.4f}",
        "draws": found.draws,
        **({"runs": list(found.runs)} if found.draws > 1 else {}),
        "verdict": "" if found.gate is None else found.gate.verdict.value,
        "rows_digest": digest_rows(found.rows),
        "counts_digest": found.counts_digest,
        "answers_digest": answers,
    }
    wanted = digest_json(payload)
    if any(
        entry.action == "judge_evaluated" and digest_json(dict(entry.payload)) == wanted
        for entry in read_ledger(workspace.ledger)
    ):
        return
    event = Event(
        action="judge_evaluated",
        subject=found.run.spec.prompt,
        reason=f"run {found.run.id} on {found.cohort}",
        payload=payload,
    )
    append_event(workspace.ledger, event, actor)


def passes(found: JudgeEvaluation) -> bool:
    """Whether the protocol's claim about the judge holds, or there is none."""
    return found.gate is None or found.gate.verdict is GateVerdict.PASS


def judge_evaluation_notes(found: JudgeEvaluation) -> tuple[str, ...]:
    """Return what must be known beside the tables of errors, as sentences."""
    told = [*judge_meta_said(replace(found.meta, errors=()))]
    if not all(one.shown for one in found.agreement):
        told.insert(0, f"{DAGGER}: {NOT_SHOWN.format(unit=found.meta.unit)}")
    if found.shots is not None:
        told += shot_notes(found.shots, found.run.spec.engine)
    if found.own.words:
        told.append(f"The judge's {found.own.words}.")
    if found.without_context:
        told.append(
            f"{found.run.spec.prompt} reads what is known of the patient, and cohort "
            f"{found.cohort} has no column context: all pairs were judged without it."
        )
    if found.gate is None:
        told.append(
            "There is no gate: labels/protocol.yaml has no section judging, or nobody "
            "gave points."
        )
    else:
        told += judge_gate_notes(found.gate)
    return tuple(told)


def judge_evaluation_data(found: JudgeEvaluation) -> dict[str, Any]:
    """Return the evaluation as JSON data."""
    gate = None
    if found.gate is not None:
        gate = {
            "verdict": found.gate.verdict.value,
            "checks": [one._asdict() for one in judge_gate_rows(found.gate)],
            "suspicious": list(found.gate.suspicious),
        }
    return {
        "run": found.run.id,
        "draws": found.draws,
        "prompt": found.run.spec.prompt,
        "prompt_digest": found.run.spec.prompt_digest,
        "engine": found.run.spec.engine,
        **({"shots": shots_data(found.shots)} if found.shots else {}),
        "cohort": found.cohort,
        "outcomes": {one.value: count for one, count in found.statuses.items()},
        "against": found.against,
        "ratings_digest": found.ratings_digest,
        "score": found.score.name,
        "agreement": [
            {
                "score": one.score.name,
                "direction": one.score.direction.value,
                "n": one.found.n,
                "tau_b": one.found.tau_b._asdict(),
                "kendall_p": one.p,
                "shown": one.shown,
                "spearman": one.found.spearman._asdict(),
                "pearson": one.found.pearson._asdict(),
            }
            for one in found.agreement
        ],
        "own_against_counts": found.own.data,
        "spread": bins_data(found.bins),
        "meta": judge_meta_data(found.meta),
        "gate": gate,
    }

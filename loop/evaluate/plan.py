"""How many cases a protocol's claim needs on a cohort, label by label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, nextafter
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers
from loop.evaluate.align import (
    Codes,
    count_uncertain,
    decided_reference,
    in_order,
    read_codes,
)
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.cohort import Cohort, CohortRole, read_cohort, read_cohort_file
from loop.labels.reference import read_reference, require_random
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import list_prompts, read_version
from loop.run.manifest import find_run
from loop.run.store import RunRecord, open_store
from loop.stats.confusion import Confusion, count_confusions
from loop.stats.paired import holm
from loop.stats.planning import cases_for_positives
from loop.stats.power import (
    Bar,
    Rates,
    Size,
    exact_p,
    flawless_cases,
    size_for_power,
    sizes_for_both,
)

POWERS = (0.8, 0.9)
"""Chances of certifying that sizes are given for. Where each of two limits holds with
the second, both hold with the first, by Bonferroni's inequality."""

_NEVER = (Size(None, None),) * len(POWERS)


class Goal(NamedTuple):
    """What the lower limits of a label must reach."""

    accuracy: Bar
    sensitivity: Bar


class Counted(NamedTuple):
    """What is known of one label before it is planned."""

    label: str
    name: str
    cases: int
    """Cases of the cohort whose reference decides the label."""

    positives: int
    observed: Confusion | None = None
    """Counts of a run over them; None without a run."""

    @property
    def negatives(self) -> int:
        """Cases whose reference says absent."""
        return self.cases - self.positives

    @property
    def prevalence(self) -> float | None:
        """Share of positives; None without cases."""
        return self.positives / self.cases if self.cases else None


class Needed(NamedTuple):
    """What one supposed accuracy needs, one size per power of `POWERS`."""

    accuracy: float
    """Supposed true accuracy."""

    sensitivity: float
    """Supposed true sensitivity."""

    cases: tuple[Size, ...]
    """Cases for the accuracy alone."""

    positives: tuple[Size, ...]
    """Positives for the sensitivity alone."""

    both: tuple[Size, ...] = _NEVER
    """Random cases for both together; never where no prevalence is known."""


class Collect(NamedTuple):
    """What to add to a cohort so that both limits hold with the first power."""

    accuracy: float
    """The true accuracy that is supposed."""

    random: int
    """More cases if drawn at random; 0 when there are enough."""

    positives: int
    """More positives if they are chosen; 0 where choosing them saves no case."""

    others: int
    """Further cases beside those positives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """One label of a plan."""

    counted: Counted
    candidates: tuple[Needed, ...]
    """One per supposed accuracy."""

    observed: Needed | None
    """For the rates of the run; None where it scored no positives or no negatives."""

    kappa_asks: float | None
    """Accuracy at which kappa reaches its threshold if misses and false alarms are as
    many; None without positives or negatives."""

    obstacles: tuple[str, ...]
    """Why these cases can never certify the label, even without an error."""

    remedy: str
    """What removes the obstacles; empty without any."""

    collect: Collect | None
    """None where the supposed accuracy can be certified with no number of cases."""


def need_alone(accuracy: float, goal: Goal) -> Needed:
    """Return what a supposed accuracy needs, without regard to any prevalence.

    Errors fall on positives and negatives alike, so it is the sensitivity as well.

    Raises
    ------
    ValueError
        `accuracy` is not in [0, 1].
    """
    return Needed(
        accuracy,
        accuracy,
        tuple(size_for_power(accuracy, goal.accuracy, power=one) for one in POWERS),
        tuple(size_for_power(accuracy, goal.sensitivity, power=one) for one in POWERS),
    )


def plan_labels(
    labels: Sequence[Counted],
    protocol: Protocol,
    goal: Goal,
    candidates: Sequence[float],
) -> tuple[LabelPlan, ...]:
    """Return the plan of every label of a claim.

    Parameters
    ----------
    labels
        The whole family: a claim on a subset is corrected for its size.
    protocol
        Its thresholds and minimum numbers; the rule is taken as ``lower``.
    goal
        The limits that the claim asks for.
    candidates
        Supposed true accuracies in [0, 1], at least one.

    Raises
    ------
    ValueError
        A candidate is outside [0, 1].
    """
    flawless = [exact_p(one.cases, one.cases, protocol.accuracy) for one in labels]
    # A label that is certified among many passes its own gate as well.
    levels = [(flawless, 1 - protocol.confidence)]
    if protocol.claim == "subset":
        levels.append((holm(flawless), protocol.alpha))
    return tuple(
        _plan(
            one,
            protocol,
            goal,
            candidates,
            reachable=all(p[at] <= level * (1 + 1e-12) for p, level in levels),
        )
        for at, one in enumerate(labels)
    )


def accuracy_for_kappa(prevalence: float, kappa: float) -> float:
    """Return the accuracy at which Cohen's kappa is `kappa`.

    Parameters
    ----------
    prevalence
        Share of positives in (0, 1).
    kappa
        Kappa in [0, 1].

    Returns
    -------
    float
        ``1 - 2 p (1 - p) (1 - kappa)``, for as many misses as false alarms.

    References
    ----------
    Cohen J. Educ Psychol Meas 1960;20:37-46, with equal margins.

    Examples
    --------
    >>> round(accuracy_for_kappa(0.02, 0.8), 4), round(accuracy_for_kappa(0.5, 0.8), 4)
    (0.9922, 0.9)
    """
    return 1 - 2 * prevalence * (1 - prevalence) * (1 - kappa)


def _plan(
    one: Counted,
    protocol: Protocol,
    goal: Goal,
    candidates: Sequence[float],
    *,
    reachable: bool,
) -> LabelPlan:
    share = one.prevalence
    mixed = share is not None and 0 < share < 1
    needed = tuple(_need(candidate, share, goal) for candidate in candidates)
    observed = _need_observed(one.observed, goal)
    short = _Short(one, protocol, goal, reachable=reachable)
    return LabelPlan(
        counted=one,
        candidates=needed,
        observed=observed,
        kappa_asks=accuracy_for_kappa(share or 0.0, protocol.kappa) if mixed else None,
        obstacles=tuple(short.reasons()),
        remedy=short.remedy(),
        collect=_collect(one, protocol, _supposed(needed, observed)),
    )


def _need(accuracy: float, prevalence: float | None, goal: Goal) -> Needed:
    alone = need_alone(accuracy, goal)
    if prevalence is None or not 0 < prevalence < 1:
        return alone
    rates = Rates(accuracy, accuracy)
    return alone._replace(both=sizes_for_both(rates, prevalence, *goal, POWERS))


def _need_observed(counts: Confusion | None, goal: Goal) -> Needed | None:
    """Return what the rates of a run need, at the prevalence of its scored cases."""
    if counts is None or not counts.positives or not counts.negatives:
        return None
    rates = Rates(counts.tp / counts.positives, counts.tn / counts.negatives)
    accuracy, share = counts.correct / counts.n, counts.positives / counts.n
    return Needed(
        accuracy,
        rates.sensitivity,
        need_alone(accuracy, goal).cases,
        need_alone(rates.sensitivity, goal).positives,
        sizes_for_both(rates, share, *goal, POWERS),
    )


def _supposed(candidates: Sequence[Needed], observed: Needed | None) -> Needed:
    """Return what to collect for: the middle candidate, or the run where it asks more.

    A run without an error does not show that there is none, and prompts are revised
    on the cases it was made on.
    """
    middle = candidates[len(candidates) // 2]
    if observed is None:
        return middle
    return max(middle, observed, key=lambda one: one.both[0].safe or 0)


def _collect(one: Counted, protocol: Protocol, needed: Needed) -> Collect | None:
    share = one.prevalence
    both, cases = needed.both[0].safe, needed.cases[-1].safe
    positives = needed.positives[-1].safe
    if not share or both is None or cases is None or positives is None:
        return None
    rarest = max(protocol.min_positives / share, protocol.min_negatives / (1 - share))
    random = max(both, protocol.min_cases, ceil(rarest - 1e-9)) - one.cases
    if random <= 0:
        return Collect(needed.accuracy, 0, 0, 0)
    chosen = max(max(positives, protocol.min_positives) - one.positives, 0)
    others = max(max(cases, protocol.min_cases) - one.cases - chosen, 0)
    if chosen + others >= random:
        chosen = others = 0
    return Collect(needed.accuracy, random, chosen, others)


def positives_wanted(protocol: Protocol, labels: int) -> int:
    """Return how many positives can certify a label, if all of them are found.

    Parameters
    ----------
    labels
        In the claim.
    """
    levels = plan_levels(protocol, labels, ())
    return _fewest_positives(protocol, next(one.goal for one in levels if one.used))


def _fewest_positives(protocol: Protocol, goal: Goal) -> int:
    return max(flawless_cases(goal.sensitivity), protocol.min_positives)


class _Short:
    """What a label lacks before even a flawless result could certify it."""

    __slots__ = ("cases", "counted", "negatives", "positives", "protocol")

    def __init__(
        self, counted: Counted, protocol: Protocol, goal: Goal, *, reachable: bool
    ) -> None:
        self.counted = counted
        self.protocol = protocol
        self.positives = _fewest_positives(protocol, goal)
        self.negatives = protocol.min_negatives
        # Holm's last step is easier than its first: what is reachable may stay.
        least = 0 if reachable else flawless_cases(goal.accuracy)
        self.cases = max(protocol.min_cases, least)

    def reasons(self) -> Iterator[str]:
        """Yield what is short, as ``have of at least want``."""
        have = self.counted
        for what, number, wanted in (
            ("cases", have.cases, self.cases),
            ("positives", have.positives, self.positives),
            ("negatives", have.negatives, self.negatives),
        ):
            if number < wanted:
                yield f"{number:,} of at least {wanted:,} {what}"

    def remedy(self) -> str:
        """Return how many chosen or random cases bring what is short."""
        have = self.counted
        positives = max(self.positives - have.positives, 0)
        negatives = max(self.negatives - have.negatives, 0)
        cases = max(self.cases - have.cases, 0)
        if not (positives or negatives or cases):
            return ""
        if not (positives or negatives):
            return counted(cases, "more case")
        chosen = _chosen(positives, negatives, cases)
        random = [
            cases_for_positives(positives, have.positives, have.cases),
            cases_for_positives(negatives, have.negatives, have.cases),
        ]
        if None in random:
            return f"{chosen}; none has been seen, so random cases cannot be counted on"
        most = max(cases, *(number or 0 for number in random))
        return f"{chosen}, or about {most:,} more random cases"


def _chosen(positives: int, negatives: int, cases: int) -> str:
    rest = max(cases - positives - negatives, 0)
    parts = (
        (positives, "chosen positive"),
        (negatives, "chosen negative"),
        (rest, "other case"),
    )
    *told, last = [counted(n, what) for n, what in parts if n] or [""]
    return f"{', '.join(told)} and {last}" if told else last


CANDIDATES = (0.99, 0.98, 0.97)
"""True accuracies that are supposed unless others are named."""

_HIGHEST = nextafter(1.0, 0.0)
"""No level is certainty, however small alpha is."""


class PlanLevel(NamedTuple):
    """One way to ask for the limits, and what it needs of any label."""

    name: str
    goal: Goal
    used: bool
    """Whether the protocol's claim asks for this one."""

    flawless_cases: int
    """Fewest cases, all right, that certify the accuracy."""

    flawless_positives: int
    """Fewest positives, all found, that certify the sensitivity."""

    candidates: tuple[Needed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizePlan:
    """What a protocol's claim needs on a cohort."""

    cohort: str
    cohort_digest: str
    cases: int
    reference: int
    """Number of the reference version whose prevalences are planned with."""

    run: str
    """Id of the run whose rates were observed; empty without one."""

    prompt: str
    """Version that run asked; empty without one."""

    protocol: Protocol
    levels: tuple[PlanLevel, ...]
    """One-sided, two-sided, and one-sided with Bonferroni's correction, which is the
    first step of Holm's."""

    labels: tuple[LabelPlan, ...]
    """Those that the reference can judge."""

    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Name of each other label to why the reference cannot judge it: no number of cases
    would do."""

    @property
    def certifies(self) -> bool:
        """Whether the protocol's rule can certify anything."""
        return self.protocol.rule == "lower"

    @property
    def used(self) -> PlanLevel:
        """The level that the protocol's claim asks for."""
        return next(level for level in self.levels if level.used)


def plan_cohort(
    workspace: WorkspacePaths,
    cohort: str,
    run: RunRecord | None = None,
    *,
    candidates: Sequence[float] = CANDIDATES,
) -> SampleSizePlan:
    """Return what each label needs so that the protocol's claim can be certified.

    Nothing is recorded. The newest reference version gives the prevalences.

    Parameters
    ----------
    cohort
        A cohort whose labels may be seen.
    run
        A finished run on it; adds what it observed.
    candidates
        Supposed true accuracies in (0, 1], at least one.

    Raises
    ------
    ValueError
        There is no candidate, or one that is no share above 0.
    DataError
        The cohort is a holdout, the run is of other cases, or a file is missing or
        wrong.
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    if not candidates or not all(0 < one <= 1 for one in candidates):
        said = ", ".join(f"{one:g}" for one in candidates) or "none"
        raise ValueError(f"supposed accuracies are shares above 0, got {said}")
    pinned = _read_open(workspace, cohort)
    taxonomy = read_taxonomy(workspace.labels)
    without = pinned.not_comparable
    standard = require_random(read_reference(workspace, cohort))
    truth = decided_reference(standard, pinned.case_ids, taxonomy)
    protocol = read_protocol(workspace)
    family = [label for label in taxonomy.ids if label not in without]
    levels = plan_levels(protocol, len(family), candidates)
    goal = next(level.goal for level in levels if level.used)
    observed = _observe(
        workspace, run, pinned, truth, taxonomy=taxonomy, policy=protocol.policy
    )
    counted = [
        one for one in _count(taxonomy, truth, observed) if one.label not in without
    ]
    return SampleSizePlan(
        cohort=cohort,
        cohort_digest=pinned.digest,
        cases=len(pinned.case_ids),
        reference=standard.number,
        run=run.id if run else "",
        prompt=run.spec.prompt if run else "",
        protocol=protocol,
        levels=levels,
        labels=plan_labels(counted, protocol, goal, candidates),
        not_comparable={
            taxonomy.find(label).name: without[label]
            for label in taxonomy.ids
            if label in without
        },
    )


def find_planned_run(
    workspace: WorkspacePaths, wanted: str, cohort: str = ""
) -> RunRecord:
    """Return the run to plan with.

    Parameters
    ----------
    wanted
        A prompt version (``extractor@v3``), a prompt name, or what `find_run` takes.
    cohort
        Where the newest run of the prompt is looked for; empty for anywhere.

    Raises
    ------
    DataError
        There is no such prompt or finished run.
    StoreError
        The store cannot be read.
    """
    name, _, selector = wanted.partition("@")
    if name not in list_prompts(workspace):
        return find_run(workspace, wanted)
    ref = read_version(workspace, wanted).ref if selector else name
    return find_run(workspace, f"latest:{ref}:{cohort}" if cohort else f"latest:{ref}")


def plan_levels(
    protocol: Protocol, labels: int, candidates: Sequence[float]
) -> tuple[PlanLevel, ...]:
    """Return the ways to ask for the limits of a claim on so many labels.

    The sensitivity is judged by every gate at the protocol's confidence: a correction
    for the number of labels is of the accuracy, which Holm's test is about.
    """
    level, subset = protocol.confidence, protocol.claim == "subset"
    family = max(1 - protocol.alpha / max(labels, 1), level)
    percent = f"{100 * level:g} %"
    asked = (
        (f"one-sided {percent}", level, level, not subset),
        (f"two-sided {percent}", (1 + level) / 2, (1 + level) / 2, False),
        (f"one-sided, alpha/{labels}", family, level, subset),
    )
    return tuple(
        _level(
            name,
            Goal(
                Bar(protocol.accuracy, min(accuracy, _HIGHEST)),
                Bar(protocol.sensitivity_floor, min(sensitivity, _HIGHEST)),
            ),
            candidates,
            used=used,
        )
        for name, accuracy, sensitivity, used in asked
    )


def _level(
    name: str, goal: Goal, candidates: Sequence[float], *, used: bool
) -> PlanLevel:
    cases, positives = map(flawless_cases, goal)
    supposed = tuple(need_alone(one, goal) for one in candidates)
    return PlanLevel(name, goal, used, cases, positives, supposed)


def _read_open(workspace: WorkspacePaths, cohort: str) -> Cohort:
    """Return the cohort unless its labels are to stay unseen."""
    if read_cohort_file(workspace, cohort).role is CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {cohort} is a holdout: how frequent its labels are stays sealed. "
            "Plan with a development cohort; the sizes hold wherever labels are as "
            "frequent as there."
        )
    return read_cohort(workspace, cohort)


def _observe(
    workspace: WorkspacePaths,
    run: RunRecord | None,
    cohort: Cohort,
    truth: Codes,
    *,
    taxonomy: Taxonomy,
    policy: UncertainAnswers,
) -> list[Confusion | None]:
    """Return the counts of a run per label; None everywhere without one."""
    if run is None:
        return [None] * len(taxonomy.ids)
    if (run.spec.cohort, run.spec.cohort_digest) != (cohort.name, cohort.digest):
        raise DataError(
            f"run {run.id} asked other cases than cohort {cohort.name} holds. Name a "
            f"run on {cohort.name}, or run the prompt on it again."
        )
    with open_store(workspace) as store:
        table = read_codes(store, run, taxonomy)
    known = set(table.case_ids)
    asked = [case in known for case in cohort.case_ids]
    ids = tuple(case for case in cohort.case_ids if case in known)
    answers = count_uncertain(in_order(table, ids), truth[asked], policy)
    rows = count_confusions(truth[asked], answers)
    return [Confusion(*map(int, row)) for row in rows]


def _count(
    taxonomy: Taxonomy, truth: Codes, seen: Sequence[Confusion | None]
) -> list[Counted]:
    return [
        Counted(
            label,
            taxonomy.find(label).name,
            int((column >= 0).sum()),
            int((column == 1).sum()),
            observed,
        )
        for label, column, observed in zip(taxonomy.ids, truth.T, seen, strict=True)
    ]

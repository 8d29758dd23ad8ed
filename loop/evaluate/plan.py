"""How many cases a protocol's claim needs on a cohort, label by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nextafter
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.evaluate.codes import decided_reference, in_order, read_codes
from loop.evaluate.needs import (
    Counted,
    Goal,
    LabelPlan,
    Needed,
    need_alone,
    plan_labels,
)
from loop.evaluate.pairs import Codes
from loop.evaluate.protocol import Protocol, read_protocol
from loop.labels.cohort import Cohort, CohortRole, read_cohort, read_cohort_file
from loop.labels.reference import read_reference
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import list_prompts, read_version
from loop.run.manifest import find_run
from loop.run.store import RunRecord, open_store
from loop.stats.confusion import Confusion, count_confusions
from loop.stats.power import Bar, flawless_cases

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

    @property
    def certifies(self) -> bool:
        """Whether the protocol's rule can certify anything."""
        return self.protocol.rule == "lower"

    @property
    def used(self) -> PlanLevel:
        """The level that the protocol's claim asks for."""
        return next(level for level in self.levels if level.used)


def plan_cohort(
    workspace: Workspace,
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
    DataError
        The cohort is a holdout, the run is of other cases, or a file is missing or
        wrong.
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    pinned = _read_open(workspace, cohort)
    taxonomy = read_taxonomy(workspace.labels)
    standard = read_reference(workspace, cohort)
    truth = decided_reference(standard, pinned.case_ids, taxonomy.ids)
    protocol = read_protocol(workspace)
    levels = plan_levels(protocol, len(taxonomy.ids), candidates)
    goal = next(level.goal for level in levels if level.used)
    counted = _count(taxonomy, truth, _observe(workspace, run, pinned, truth, taxonomy))
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
    )


def find_planned_run(workspace: Workspace, wanted: str, cohort: str = "") -> RunRecord:
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


def _read_open(workspace: Workspace, cohort: str) -> Cohort:
    """Return the cohort unless its labels are to stay unseen."""
    if read_cohort_file(workspace, cohort).role is CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {cohort} is a holdout: how frequent its labels are stays sealed. "
            "Plan with a development cohort; the sizes hold wherever labels are as "
            "frequent as there."
        )
    return read_cohort(workspace, cohort)


def _observe(
    workspace: Workspace,
    run: RunRecord | None,
    cohort: Cohort,
    truth: Codes,
    taxonomy: Taxonomy,
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
    rows = count_confusions(truth[asked], in_order(table, ids))
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

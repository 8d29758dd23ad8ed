"""How a prompt's exemplars stand to what a cohort has of each label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from loop.core.check_findings import Finding, warning
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Value
from loop.evaluate.plan import Counted, plan_cohort
from loop.evaluate.protocol import Protocol
from loop.labels.cohort import read_cohort, require_inputs
from loop.prompts.stages import given_texts
from loop.prompts.version import PromptVersion

RARE_WANTED = 3
"""Exemplars that a label is given where positives are too rare for its gate."""


class ExemplarCoverage(NamedTuple):
    """The exemplars of one label beside its cases."""

    counted: Counted
    """Cases and positives of the cohort, by its reference."""

    present: int
    """Exemplars in which the finding is present."""

    alike: int
    """Exemplars that look like it and are absent or uncertain."""

    lacking: str
    """What the gate lacks to judge the label on the cohort; empty if nothing."""

    @property
    def wanted(self) -> int:
        """Exemplars wanted: two, one of each kind; `RARE_WANTED` for a rare label.

        A rare label's errors do not come to light on the cohort, so that its rules are
        shown rather than learnt from verdicts.
        """
        return RARE_WANTED if self.lacking else 2


def count_exemplars(
    workspace: WorkspacePaths, version: PromptVersion, cohort: str
) -> tuple[ExemplarCoverage, ...]:
    """Return the exemplars of each label that `version` asks for, in its order.

    Parameters
    ----------
    cohort
        A cohort whose labels may be seen; its newest reference is counted. One of
        pairs has no labels to count.

    Raises
    ------
    DataError
        The cohort is a holdout, is not there, a file of it is wrong, or its cases do
        not have what `version` reads.
    """
    members = read_cohort(workspace, cohort)
    require_inputs(members, version.ref, given_texts(version.inputs))
    if members.holds_pairs:
        return ()
    plan = plan_cohort(workspace, cohort)
    counted = {one.counted.label: one.counted for one in plan.labels}
    return tuple(
        ExemplarCoverage(
            counted=counted[guide.label],
            present=sum(one.value == Value.PRESENT for one in guide.exemplars),
            alike=sum(one.value != Value.PRESENT for one in guide.exemplars),
            lacking=_lacking(counted[guide.label], plan.protocol),
        )
        for guide in version.guides
        if guide.label in counted
    )


def lint_exemplars(rows: Iterable[ExemplarCoverage], cohort: str) -> list[Finding]:
    """Return a warning for each label with fewer exemplars than are wanted."""
    return [
        warning("lint", what, where=f"guide {row.counted.label}")
        for row in rows
        if (what := _wanting(row, cohort))
    ]


def _wanting(row: ExemplarCoverage, cohort: str) -> str:
    """Return what a label's exemplars lack, in words; empty if nothing."""
    total = row.present + row.alike
    made = counted(total, "exemplar")
    if total >= row.wanted:
        if not row.alike:
            return f"{made}, none that only looks like it"
        return "" if row.present else f"{made}, none that is present"
    why = f"{cohort} has {row.lacking}" if row.lacking else "one of each kind"
    return f"{made}, {row.wanted} wanted: {why}"


def _lacking(counted: Counted, protocol: Protocol) -> str:
    parts = (
        (counted.positives, protocol.min_positives, "positives"),
        (counted.negatives, protocol.min_negatives, "negatives"),
        (counted.cases, protocol.min_cases, "cases"),
    )
    return ", ".join(
        f"{found} of {needed} {what}" for found, needed, what in parts if found < needed
    )

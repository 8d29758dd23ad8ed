"""How many cells a system is scored on: a cell is one label of one case."""

from __future__ import annotations

from typing import NamedTuple

from loop.documents.numbers import count, percent
from loop.score.records import Uncertain
from loop.score.result import RanScore, SystemScore

_APART = 0.02
"""Shares of cells that differ by more than this are not passed over in silence."""

_OF_FINDINGS = 0.1
"""Nor are more cells than this share of the reference's findings: most cells hold none,
so that who hedges each of its errors leaves out few of all cells."""


class Cells(NamedTuple):
    """The cells of one system, each counted once."""

    decided: int
    """Present or absent on both sides: what the scores are of."""

    uncertain: int
    """Left out, because a side is uncertain."""

    unanswered: int
    """Left out, because a side has no answer, or a blank."""

    unpaired: int
    """Left out, because the reference has no candidate."""

    @property
    def total(self) -> int:
        """All cells of all references."""
        return sum(self)

    @property
    def share(self) -> float | None:
        """Share that is scored; None where there is no cell."""
        return self.decided / self.total if self.total else None


def count_cells(system: SystemScore, score: RanScore) -> Cells:
    """Return what became of every label of every reference under one system."""
    counted = [(one.counts.n, one.uncertain, one.unanswered) for one in system.labels]
    decided, uncertain, unanswered = map(sum, zip(*counted, strict=True))
    paired = decided + uncertain + unanswered
    whole = score.n_cases * len(score.labels)
    return Cells(decided, uncertain, unanswered, max(whole - paired, 0))


def scored_words(cells: Cells) -> str:
    """Return the share of cells that is scored, with its counts.

    Examples
    --------
    >>> scored_words(Cells(90, 6, 4, 0))
    '90.0 % (90 of 100)'
    """
    return f"{percent(cells.share)} ({count(cells.decided)} of {count(cells.total)})"


def unequal_coverage_sentence(score: RanScore) -> str:
    """Return a warning if systems are scored on different numbers of cells, or ""."""
    shares = [
        (found, one.system)
        for one in score.systems
        if (found := count_cells(one, score).share) is not None
    ]
    if len(shares) < 2:
        return ""
    (least, spared), (most, other) = min(shares), max(shares)
    fewer = round((most - least) * score.n_cases * len(score.labels))
    findings = max(_count_findings(one) for one in score.systems)
    if most - least <= _APART and fewer <= _OF_FINDINGS * findings:
        return ""
    again = ""
    if score.conventions.uncertain is Uncertain.EXCLUDED:
        again = " Score again with --uncertain pos or neg to count what is uncertain."
    return (
        f"{spared} is scored on {percent(least)} of the cells, {other} on "
        f"{percent(most)}: {count(fewer)} cells fewer, where the reference has "
        f"{count(findings)} findings. What a system hedges, does not answer or leaves "
        "out is not held against it, neither in its rank nor in the differences: it "
        f"may owe its score to that.{again} What has no answer stays out under every "
        "option."
    )


def _count_findings(system: SystemScore) -> int:
    """Return how many scored cells of the reference are present."""
    return sum(one.counts.tp + one.counts.fn for one in system.labels)


def occurring_sentence(score: RanScore) -> str:
    """Return that means are over different labels; empty where they are not."""
    numbers = [one.effective_labels for one in score.systems]
    if score.conventions.zero_division != "skip" or len(set(numbers)) < 2:
        return ""
    return (
        f"The mean is over {min(numbers)} to {max(numbers)} of {len(score.labels)} "
        "labels, not over the same for every system: under zero_division skip a label "
        "counts for a system only if the system or the reference has it in a scored "
        "cell."
    )

"""What scoring returns: per system, per label, per pair of systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loop.score.records import Conventions, Coverage, ExtractorFacts
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate


class LabelScore(NamedTuple):
    """One label of one system."""

    label: str
    """Label id."""

    counts: Confusion
    """Over the cases where both sides are decided; rates are its properties."""

    uncertain: int
    """Pairs left out because a side is uncertain."""

    unanswered: int
    """Pairs left out because an engine gave no value, or a label cell is blank."""

    f1: float | None
    """None without a positive on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemScore:
    """All numbers of one system."""

    system: str
    n: int
    """Cases with at least one decided label."""

    ran_score: Estimate
    """Macro-F1 over the labels, with its bootstrap interval."""

    effective_labels: int
    """Labels whose F1 is defined: the mean is over these under ``skip``."""

    micro_f1: Estimate
    micro_precision: float | None
    micro_recall: float | None
    micro_accuracy: float | None
    """Share of decided cells that agree."""

    macro_precision: float | None
    """Mean over the same labels as the macro-F1; an undefined one counts 0."""

    macro_recall: float | None
    macro_accuracy: float | None
    """Mean over the labels with a decided pair."""

    labels: tuple[LabelScore, ...]
    rank: int
    """1 is best; systems with equal scores share a rank."""

    best: float
    """Share of resamples in which it is the best, ties shared."""

    perfect: float | None
    """What a perfect copy of the references scores under the same conventions: below
    1 under ``zero`` when labels never occur, None under ``skip`` when none does."""

    corrected: Estimate | None = None
    """Ran Score with the extractor's own errors taken out; None if not asked for."""

    signature: str = ""
    """Every convention of `ran_score`, for example
    ``"ran|extractor@v7:3f2a|rules|unc:excl|zd:skip|nf:ran|L:19/21|n:3000"``."""


class SystemDifference(NamedTuple):
    """Two systems on the cells that both and the reference decide."""

    better: str
    """The one with the higher score on these cells; of equal ones the first."""

    worse: str
    difference: Estimate
    """Ran Score of `better` minus that of `worse`, with its paired interval."""

    p: float | None
    """Two-sided, from exchanging the two systems' answers case by case."""

    p_holm: float | None
    """The same, adjusted for all pairs of systems."""

    exact: bool
    """Whether every exchange was counted, not a sample of them."""


class CaseScore(NamedTuple):
    """One candidate against its reference."""

    system: str
    case_id: str
    f1: float | None
    """F1 over the labels of this case; 1 when nothing is positive on both sides; None
    when no label is decided."""

    errors: int
    """Labels invented plus labels missed."""

    missed: tuple[str, ...]
    """Label ids that only the reference has."""

    invented: tuple[str, ...]
    """Label ids that only the candidate has."""

    decided: int
    """Labels that both sides decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanScore:
    """The result of `loop.score.ran.score`: a ranking with everything behind it."""

    systems: tuple[SystemScore, ...]
    """Best first."""

    differences: tuple[SystemDifference, ...]
    """Every pair of systems; empty for one system."""

    cases: tuple[CaseScore, ...]
    """Every pair of texts, systems in the order given, cases by id."""

    conventions: Conventions
    extractor: ExtractorFacts
    labels: tuple[str, ...]
    n_cases: int
    n_patients: int | None
    resamples: int
    permutations: int
    seed: int
    confidence: float
    coverage: tuple[Coverage, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What `SystemScore.corrected` assumes, as sentences."""

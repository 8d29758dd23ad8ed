"""How far a score rests on its extractor: without its errors, and by another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.score.records import ExtractorFacts, RanScore, SystemScore, Uncertain
from loop.stats.confusion import Confusion, ZeroDivision, f1_columns
from loop.stats.correction import CorrectedF1, corrected_macro_f1
from loop.stats.correlation import tau_b
from loop.stats.intervals import Estimate
from loop.stats.resampling import Resampling

ASSUMPTIONS: Final = (
    "One extractor read both sides, and nobody corrected what it read.",
    "It errs on these texts as often as on the cases where its sensitivity and "
    "specificity were measured. If it was revised on those cases, it errs more often "
    "elsewhere, and too little is corrected.",
    "Given what the two texts really say, its error on the one does not depend on its "
    "error on the other. Where both share a wording that it misreads, the corrected "
    "score is too high.",
    "The reference labels by which its errors were measured are right.",
    "No Finding, where it is a label, was derived there as it is here.",
    "The interval takes in the choice of cases and how few cases the errors were "
    "measured on, and none of these assumptions.",
)
"""What every corrected score rests on, as sentences."""

_UNCERTAIN: Final[Mapping[Uncertain, str]] = MappingProxyType(
    {
        Uncertain.WRONG: "An uncertain value of a candidate is wrong here, and one of "
        "a reference leaves the pair out. Its errors were measured on decided "
        "answers, and are taken to be no others with them.",
        Uncertain.EXCLUDED: "Uncertain and unanswered pairs are left out, here as "
        "there.",
        Uncertain.PRESENT: "Uncertain values count as present here. Its errors were "
        "measured without them, and are taken to be no others with them.",
        Uncertain.ABSENT: "Uncertain values count as absent here. Its errors were "
        "measured without them, and are taken to be no others with them.",
    }
)


class Corrections(NamedTuple):
    """Scores without the extractor's errors, and what they assume."""

    estimates: tuple[Estimate, ...]
    """One per system, in the order given."""

    assumptions: tuple[str, ...]


def correct(
    codes: tuple[NDArray[np.int8], NDArray[np.int8]],
    labels: Sequence[str],
    errors: Mapping[str, Confusion],
    *,
    uncertain: Uncertain = Uncertain.EXCLUDED,
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
) -> Corrections:
    """Return the macro-F1 of every system with the extractor's errors taken out.

    Parameters
    ----------
    codes
        References, shape ``(n_cases, n_labels)``, and candidates, shape
        ``(n_systems, n_cases, n_labels)``: 1, 0, -1.
    labels
        Label ids.
    errors
        Label id to the extractor's confusion counts against a reference standard,
        for example on its development cohort. A label without an entry, or whose
        errors are too many to tell present from absent, stays as it was read. They
        are taken to have been counted without uncertain values.
    uncertain
        The policy that made `codes`; it is among what the scores assume.
    zero_division
        As for `loop.stats.confusion.average_f1`.
    **resampling
        As for `loop.stats.bootstrap.bootstrap_f1`.

    Raises
    ------
    ValueError
        `errors` names a label that is not among `labels`.

    References
    ----------
    Rogan WJ, Gladen B. Am J Epidemiol 1978;107:71-76.
    """
    strange = sorted(set(errors) - set(labels))
    if strange:
        raise ValueError(f"errors are given for labels that are not scored: {strange}")
    reference, candidates = codes
    results = corrected_macro_f1(
        reference,
        candidates,
        [errors.get(label) for label in labels],
        zero_division=zero_division,
        **resampling,
    )
    told = (
        *ASSUMPTIONS,
        _UNCERTAIN[uncertain],
        *_say_labels(results[0], labels),
        *_say_clipped(results),
        *_say_emptied(results, f1_columns(reference, candidates)),
    )
    return Corrections(tuple(result.estimate for result in results), told)


def _say_labels(result: CorrectedF1, labels: Sequence[str]) -> list[str]:
    """Say which labels stay as read, when any does."""
    pairs = zip(labels, result.corrected, strict=True)
    kept = [label for label, corrected in pairs if not corrected]
    if not kept:
        return []
    return [
        f"{len(labels) - len(kept)} of {len(labels)} labels are corrected. As read, "
        "for want of measured errors or because they are too many to invert: "
        f"{', '.join(kept)}."
    ]


def _say_clipped(results: Sequence[CorrectedF1]) -> list[str]:
    """Say how often a corrected share was impossible."""
    clipped = sum(result.clipped for result in results)
    if not clipped:
        return []
    cells = sum(sum(result.corrected) for result in results)
    return [
        f"In {clipped} of {cells} corrected labels, counted over all systems, a share "
        "of cases came out where none can be, and was moved to the nearest limit: "
        "there the measured errors are more than these texts can hold."
    ]


def _say_emptied(
    results: Sequence[CorrectedF1], columns: NDArray[np.int8]
) -> list[str]:
    """Say how many labels the correction leaves without a positive."""
    weight = np.split(columns, 2, axis=-1)[1].any(axis=1)
    empty = np.array([[one is None for one in result.labels] for result in results])
    emptied = int((weight & empty).sum())
    if not emptied:
        return []
    return [
        f"{emptied} labels, counted over all systems, have positives as read and none "
        "when corrected: the measured errors explain them all. Such a label counts as "
        "one that neither side has."
    ]


class PanelRow(NamedTuple):
    """One system as two extractors see it."""

    system: str
    first: Estimate
    """Ran Score as the first extractor reads the texts."""

    second: Estimate
    first_rank: int
    second_rank: int
    cases: int
    """Cases whose F1 is defined under both."""

    equal: float | None
    """Share of these cases with the same F1; None without one."""

    gap: float | None
    """Mean absolute difference of the F1 of a case; None without one."""

    tau: float | None
    """Kendall's tau-b between the two F1 of each case; None where one is constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityPanel:
    """What stays and what changes when another extractor reads both sides."""

    first: ExtractorFacts
    second: ExtractorFacts
    systems: tuple[PanelRow, ...]
    """In the order of the first ranking."""

    tau: float | None
    """Kendall's tau-b between the two scores of the systems; None for fewer than two
    systems with both scores, or where one extractor gives all the same."""

    swapped: tuple[tuple[str, str], ...]
    """Pairs of systems that change places, the better one of the first ranking first;
    a tie on one side is no change."""


def panel(first: RanScore, second: RanScore) -> SensitivityPanel:
    """Return two results on the same systems side by side.

    Parameters
    ----------
    first, second
        Scores of the same systems under the same conventions, by two extractors.

    Raises
    ------
    ValueError
        Systems, labels or conventions differ: then the extractor is not the only
        difference.

    References
    ----------
    Kendall MG. Biometrika 1945;33:239-251 (tau-b).
    """
    _check_comparable(first, second)
    others = {score.system: score for score in second.systems}
    pairs = [(score, others[score.system]) for score in first.systems]
    cases = _cases_by_system(first), _cases_by_system(second)
    scores = [(a.ran_score.value, b.ran_score.value) for a, b in pairs]
    return SensitivityPanel(
        first=first.extractor,
        second=second.extractor,
        systems=tuple(_panel_row(a, b, *cases) for a, b in pairs),
        tau=_tau([(a, b) for a, b in scores if a is not None and b is not None]),
        swapped=tuple(_swapped(pairs)),
    )


_Cases = Mapping[str, Mapping[str, float]]
"""System to case id to F1, where it is defined."""


def _check_comparable(first: RanScore, second: RanScore) -> None:
    named = [sorted(score.system for score in one.systems) for one in (first, second)]
    if named[0] != named[1]:
        raise ValueError(f"need the same systems, got {named[0]} and {named[1]}")
    if first.labels != second.labels:
        raise ValueError("need the same labels in the same order on both sides")
    if first.conventions != second.conventions:
        raise ValueError(
            "need the same conventions, got "
            f"{first.conventions} and {second.conventions}"
        )


def _cases_by_system(result: RanScore) -> _Cases:
    table: dict[str, dict[str, float]] = {}
    for case in result.cases:
        if case.f1 is not None:
            table.setdefault(case.system, {})[case.case_id] = case.f1
    return table


def _panel_row(
    a: SystemScore, b: SystemScore, before: _Cases, after: _Cases
) -> PanelRow:
    ours, theirs = before.get(a.system, {}), after.get(a.system, {})
    pairs = [(ours[case], theirs[case]) for case in ours if case in theirs]
    gaps = [abs(one - other) for one, other in pairs]
    return PanelRow(
        system=a.system,
        first=a.ran_score,
        second=b.ran_score,
        first_rank=a.rank,
        second_rank=b.rank,
        cases=len(pairs),
        equal=gaps.count(0.0) / len(gaps) if gaps else None,
        gap=float(np.mean(gaps)) if gaps else None,
        tau=_tau(pairs),
    )


def _tau(pairs: list[tuple[float, float]]) -> float | None:
    found = tau_b(*np.array(pairs).reshape(-1, 2).T)
    return None if np.isnan(found) else found


def _swapped(
    pairs: list[tuple[SystemScore, SystemScore]],
) -> Iterator[tuple[str, str]]:
    for (a, a_then), (b, b_then) in combinations(pairs, 2):
        if (a.rank - b.rank) * (a_then.rank - b_then.rank) < 0:
            yield a.system, b.system

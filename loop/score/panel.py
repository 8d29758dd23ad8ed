"""Two extractors side by side: how much of a ranking depends on which one read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from loop.score.records import ExtractorFacts
from loop.score.result import RanScore, SystemScore
from loop.stats.intervals import Estimate


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
    _check(first, second)
    others = {score.system: score for score in second.systems}
    pairs = [(score, others[score.system]) for score in first.systems]
    cases = _cases_by_system(first), _cases_by_system(second)
    scores = [(a.ran_score.value, b.ran_score.value) for a, b in pairs]
    return SensitivityPanel(
        first=first.extractor,
        second=second.extractor,
        systems=tuple(_row(a, b, *cases) for a, b in pairs),
        tau=_tau([(a, b) for a, b in scores if a is not None and b is not None]),
        swapped=tuple(_swapped(pairs)),
    )


_Cases = Mapping[str, Mapping[str, float]]
"""System to case id to F1, where it is defined."""


def _check(first: RanScore, second: RanScore) -> None:
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


def _row(a: SystemScore, b: SystemScore, before: _Cases, after: _Cases) -> PanelRow:
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
    if any(len(set(side)) < 2 for side in zip(*pairs, strict=True)) or not pairs:
        return None
    return float(kendalltau(*zip(*pairs, strict=True)).statistic)


def _swapped(
    pairs: list[tuple[SystemScore, SystemScore]],
) -> Iterator[tuple[str, str]]:
    for (a, a_then), (b, b_then) in combinations(pairs, 2):
        if (a.rank - b.rank) * (a_then.rank - b_then.rank) < 0:
            yield a.system, b.system

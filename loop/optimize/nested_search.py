"""A search repeated over nested splits: what it is worth, and what it ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from loop.optimize.estimate import NestedEstimate, estimate_nested
from loop.optimize.objective import CandidateScore, Objective
from loop.optimize.proposals import INSTRUCTIONS, Proposed
from loop.optimize.reflect import Reflector
from loop.optimize.splits import NestedSplit, Rows, SeenCases
from loop.optimize.terms import TermProposal
from loop.prompts.version import PromptVersion
from loop.run.cost import EngineUse

Propose = Callable[[SeenCases, int], Proposed]
"""Proposes wordings from the cases that it may see, with a seed."""

MOST_KEPT: Final = 3
"""Wordings of a Pareto set that become drafts at most."""


MOST_COMPARED: Final = 10
"""Wordings, the best first, among which the Pareto set is looked for."""


class AcceptedScore(NamedTuple):
    """Scores with so many proposals accepted, those that promise the most first."""

    accepted: int
    search: float | None
    """Score on all cases, with the proposals mined on them."""

    estimate: float | None
    """The same over the pooled estimate cases, with the proposals of each split."""


class SearchEffort(NamedTuple):
    """What a search took, besides scoring its wordings."""

    tested: int = 0
    """Wordings whose contrast with a label was tested, added up over labels, in the
    mining that tested the most: others test nearly the same ones."""

    calls: int = 0
    """Cases of candidates that the optimizer scored."""

    proposed: int = 0
    """Texts that were proposed, refused ones included."""

    refused: tuple[tuple[str, int], ...] = ()
    """Why texts were refused, and how often, by name."""

    reflections: int = 0
    """Questions that the reflecting engine answered."""


class Conclusion(NamedTuple):
    """What a search ends with, found with all cases."""

    kept: tuple[PromptVersion, ...] = ()
    """Wordings to make drafts of, the best first."""

    proposals: tuple[TermProposal, ...] = ()
    """What `kept` is made of, where that is terms; reported even without a draft."""


class GuideEffect(NamedTuple):
    """What became of the answers about one label whose guide was changed.

    On all cases that were searched, with all that the wording changes; of changed
    instructions, about the labels whose guides stay.
    """

    component: str
    """The label, or ``"system.jinja"``."""

    fixed: tuple[str, ...]
    """Cases answered wrongly before and rightly now."""

    broken: tuple[str, ...]
    """The other way round."""

    before: float | None
    """Score of the label, or the mean of these labels; None where it is undefined."""

    after: float | None


class WordingFinder(Protocol):
    """How one optimizer finds wordings."""

    @property
    def effort(self) -> SearchEffort:
        """What it took so far."""

    @property
    def reflecting(self) -> EngineUse | None:
        """What was asked so far of what proposes; None where it is no engine."""

    def find(self, cases: SeenCases, seed: int) -> PromptVersion:
        """Return what it ends with in one split; the parent where nothing is better."""

    def conclude(
        self, splits: Sequence[NestedSplit], seed: int, *, better: bool
    ) -> Conclusion:
        """Return what it ends with on all cases.

        Parameters
        ----------
        better
            Whether the pooled estimate is; nothing is kept where it is not.
        """

    def draw_curve(
        self, splits: Sequence[NestedSplit], proposals: Sequence[TermProposal]
    ) -> tuple[AcceptedScore, ...]:
        """Return scores by how many proposals are accepted; nothing is chosen by it."""


class NestedSearch(NamedTuple):
    """What a search found, and what that is worth on cases it did not see."""

    estimate: NestedEstimate
    conclusion: Conclusion


def search_nested(
    objective: Objective,
    finder: WordingFinder,
    splits: Sequence[NestedSplit],
    *,
    seed: int = 0,
    tell: Callable[[int], object] = lambda done: None,
) -> NestedSearch:
    """Return what `finder` finds, and its worth pooled over nested splits.

    What it finds in each split is scored on the split's `estimate`, which it is not
    shown. What it ends with is found with all cases, and the pooled estimate says what
    such a search is worth.

    Parameters
    ----------
    tell
        Told how many searches are done: one a split, and one more.

    Raises
    ------
    EngineError
        An engine failed too often.
    """
    found: list[PromptVersion] = []
    for number, split in enumerate(splits):
        found.append(finder.find(split.seen, seed + number))
        tell(number + 1)
    estimate = estimate_nested(objective, splits, found, seed=seed)
    conclusion = finder.conclude(splits, seed + len(splits), better=estimate.better)
    tell(len(splits) + 1)
    return NestedSearch(estimate, conclusion)


class RankedFinder:
    """Takes the best of what an optimizer proposes.

    In each split it proposes from `search`, the best wording on `select` is taken, and
    guides by which their label loses are put back. The last search also sees the cases
    that estimated the first split, and there is none where nothing was better.
    """

    def __init__(
        self,
        objective: Objective,
        propose: Propose,
        reflector: Reflector | None = None,
    ) -> None:
        """Prepare to search.

        Parameters
        ----------
        propose
            Called once a split and once more.
        reflector
            What `propose` asks, whose answers are counted.
        """
        self._objective = objective
        self._propose_from = propose
        self._reflector = reflector
        self._rounds: list[Proposed] = []

    @property
    def effort(self) -> SearchEffort:
        """What it took so far."""
        refused: Counter[str] = Counter()
        for one in self._rounds:
            refused.update({why.value: count for why, count in one.refused.items()})
        return SearchEffort(
            calls=sum(one.calls for one in self._rounds),
            proposed=sum(one.proposals for one in self._rounds),
            refused=tuple(sorted(refused.items())),
            reflections=self._reflector.answered if self._reflector else 0,
        )

    @property
    def reflecting(self) -> EngineUse | None:
        """What the reflecting engine was asked so far; None without one."""
        return self._reflector.use if self._reflector else None

    def find(self, cases: SeenCases, seed: int) -> PromptVersion:
        """Return the best wording of one split; the parent where none is better."""
        ranked = self._propose(cases, seed)
        if not ranked:
            return self._objective.ground.version
        return put_back(self._objective, ranked[0], cases.known)

    def conclude(
        self, splits: Sequence[NestedSplit], seed: int, *, better: bool
    ) -> Conclusion:
        """Return the Pareto set of the last search, the best first."""
        if not better:
            return Conclusion()
        objective, first = self._objective, splits[0]
        last = SeenCases(np.union1d(first.search, first.estimate), first.select)
        ranked = self._propose(last, seed)
        # Where asking costs nothing, all cases say which wording is best on which
        # label.
        free = objective.engine.name.partition(":")[0] == "rules"
        rows = last.known if free else last.select
        pareto = find_pareto(objective, ranked[:MOST_COMPARED], rows)[:MOST_KEPT]
        mended = (put_back(objective, one, last.known) for one in pareto)
        parent = objective.ground.version.digest
        kept = dict.fromkeys(one for one in mended if one.digest != parent)
        return Conclusion(tuple(kept))

    def draw_curve(
        self, splits: Sequence[NestedSplit], proposals: Sequence[TermProposal]
    ) -> tuple[AcceptedScore, ...]:
        """Return nothing: whole wordings are not accepted one by one."""
        return ()

    def _propose(self, cases: SeenCases, seed: int) -> tuple[PromptVersion, ...]:
        proposed = self._propose_from(cases, seed)
        self._rounds.append(proposed)
        return rank_candidates(self._objective, proposed.candidates, cases)


def rank_candidates(
    objective: Objective, candidates: Sequence[PromptVersion], cases: SeenCases
) -> tuple[PromptVersion, ...]:
    """Return the candidates that beat the parent on `select`, the best first.

    By the score on `select`; where several are best there, on `search`. Among equals
    the one found first. A case that the engine failed on is left out of both sides.
    """
    parent = objective.ground.version

    def gain(candidate: PromptVersion, rows: Rows) -> float:
        before, after = (objective.answers(one, rows) for one in (parent, candidate))
        old = objective.score(before, rows, beside=after).value
        new = objective.score(after, rows, beside=before).value
        return 0.0 if new is None else new - (old or 0.0)

    gains = [(gain(one, cases.select), one) for one in dict.fromkeys(candidates)]
    ranked = sorted((one for one in gains if one[0] > 0), key=lambda one: -one[0])
    best = [one for one in ranked if one[0] == ranked[0][0]]
    if len(best) > 1:
        # Only these are asked about the other cases: each is a whole run of them.
        best.sort(key=lambda one: -gain(one[1], cases.search))
    return tuple(one for _, one in (*best, *ranked[len(best) :]))


def put_back(
    objective: Objective, candidate: PromptVersion, rows: Rows
) -> PromptVersion:
    """Return `candidate` with the parent's guide for each label that loses by its own.

    A label loses if fewer of its answers, or of its answers to positive cases, are
    right on `rows`, or if its counts are further from the readers': a check of the
    draft would object to it.
    """
    parent = objective.ground.version
    before, after = (objective.answers(one, rows) for one in (parent, candidate))
    old = objective.score(before, rows, beside=after)
    new = objective.score(after, rows, beside=before)
    loses = _sum_points(new) < _sum_points(old)
    loses |= _sum_points(new, positive=True) < _sum_points(old, positive=True)
    losing = {
        label
        for label, lost in zip(objective.ground.labels, loses, strict=True)
        if lost
    }
    guides = {guide.label: guide for guide in parent.guides}
    return replace(
        candidate,
        guides=tuple(
            guides[one.label] if one.label in losing else one
            for one in candidate.guides
        ),
    )


def _sum_points(
    score: CandidateScore, *, positive: bool = False
) -> NDArray[np.float64]:
    """Return the points of each label, of all cases or of those with a finding."""
    counted = np.nan_to_num(score.points)
    if positive:
        counted = np.where(score.truth == 1, counted, 0.0)
    # Points are fractions where readers differ: what rounding adds is no loss.
    return np.asarray(counted.sum(axis=0).round(9))


def find_pareto(
    objective: Objective, candidates: Sequence[PromptVersion], rows: Rows
) -> tuple[PromptVersion, ...]:
    """Return the candidates that no other one equals or beats on every label.

    Labels are compared by their scores on `rows`, those not scored left out, and cases
    on which the engine failed for any candidate. Of equals the first is kept; the order
    stays.
    """
    ground = objective.ground
    answers = [objective.answers(one, rows) for one in candidates]
    fine = np.ones(len(rows), dtype=bool)
    for told in answers:
        fine &= ~ground.lost(told)
    points: list[NDArray[np.float64]] = [
        # Undefined is the F1 of nothing to find and nothing found: none is better.
        np.nan_to_num(
            objective.score(told[fine], rows[fine]).by_label[ground.scored],
            nan=ground.best,
        )
        for told in answers
    ]
    kept = [
        number
        for number, point in enumerate(points)
        if not any(
            (other >= point).all() and ((other > point).any() or rival < number)
            for rival, other in enumerate(points)
            if rival != number
        )
    ]
    return tuple(candidates[number] for number in kept)


def find_effects(
    objective: Objective, candidate: PromptVersion
) -> tuple[GuideEffect, ...]:
    """Return what became of the answers about each label whose guide is changed.

    On all cases, asked about what is not known yet; nothing is chosen by it.
    """
    ground = objective.ground
    parent, labels = ground.version, ground.labels
    before, after = (objective.answers(one) for one in (parent, candidate))
    every = np.arange(len(ground.items))
    was, now = (ground.wrong(one, every) for one in (before, after))
    kept = ~(ground.lost(before) | ground.lost(after))
    old = objective.score(before, beside=after).by_label
    new = objective.score(after, beside=before).by_label
    changed = [
        guide.label
        for guide in candidate.guides
        if guide.label in labels and guide != parent.guide(guide.label)
    ]
    parts = {label: [labels.index(label)] for label in changed}
    if candidate.system != parent.system:
        # Of changed guides their own rows tell.
        parts[INSTRUCTIONS] = [
            place for place, one in enumerate(labels) if one not in changed
        ]

    def mean(scores: NDArray[np.float64]) -> float | None:
        known = scores[~np.isnan(scores)]
        return float(known.mean()) if known.size else None

    def cases(found: NDArray[np.bool_]) -> tuple[str, ...]:
        rows = np.flatnonzero(found.any(axis=1) & kept)
        return tuple(ground.case_ids[row] for row in rows)

    return tuple(
        GuideEffect(
            name,
            cases((was & ~now)[:, columns]),
            cases((now & ~was)[:, columns]),
            mean(old[columns]),
            mean(new[columns]),
        )
        for name, columns in parts.items()
    )

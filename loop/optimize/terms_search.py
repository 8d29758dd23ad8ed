"""Searches with mined terms: the select part decides how much a term must promise.

Terms and exclusions are mined on the search part of a split, once for each level of
gain that they may be asked to promise. The level that does best on the select part is
taken, and what the split ends with is mined with it on both parts. The proposals
themselves are mined on all cases. No language model is asked what to propose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from loop.optimize.nested_search import AcceptedScore, Conclusion, SearchEffort
from loop.optimize.objective import Objective
from loop.optimize.splits import NestedSplit, Rows, SeenCases
from loop.optimize.terms import LEVELS, TermMiner, TermProposal, apply_proposals
from loop.prompts.version import PromptVersion

CURVE_POINTS: Final = 6
"""Points of the curve after its first, at most."""


class TermFinder:
    """Finds wordings by terms and exclusions that are mined from errors."""

    def __init__(
        self,
        objective: Objective,
        miner: TermMiner,
        *,
        labels: Collection[str],
        budget: int,
    ) -> None:
        """Prepare to mine.

        Parameters
        ----------
        labels
            Labels whose guides may change.
        budget
            Proposals that are accepted, at most.
        """
        self._objective = objective
        self._miner = miner
        self._labels = labels
        self._budget = budget
        self._tested = 0
        self._selected: list[list[float]] = []
        self._chains: list[tuple[TermProposal, ...]] = []

    @property
    def effort(self) -> SearchEffort:
        """What it took so far."""
        return SearchEffort(tested=self._tested)

    @property
    def reflecting(self) -> None:
        """No engine is asked what to propose."""
        return None

    def find(self, cases: SeenCases, seed: int) -> PromptVersion:
        """Return the parent with what is mined on the cases of one split."""
        objective, scores = self._objective, []
        for level in LEVELS:
            made = self._with(self._mine(cases.search, level))
            answers = objective.answers(made, cases.select)
            score = objective.score(answers, cases.select).value
            scores.append(-1 if score is None else score)
        self._selected.append(scores)
        chain = self._mine(cases.known, LEVELS[int(np.argmax(scores))])
        self._chains.append(chain)
        return self._with(chain)

    def conclude(
        self, splits: Sequence[NestedSplit], seed: int, *, better: bool
    ) -> Conclusion:
        """Return the proposals mined on all cases, and the parent with all of them.

        They are reported even where they are not better: mining asks nothing.
        """
        level = LEVELS[int(np.mean(self._selected, axis=0).argmax())]
        proposals = self._mine(np.arange(len(self._objective.ground.items)), level)
        kept = (self._with(proposals),) if better and proposals else ()
        return Conclusion(kept, proposals)

    def draw_curve(
        self, splits: Sequence[NestedSplit], proposals: Sequence[TermProposal]
    ) -> tuple[AcceptedScore, ...]:
        """Return scores by how many proposals are accepted; nothing is chosen by it."""
        objective, total = self._objective, len(proposals)
        steps = np.unique(
            np.linspace(0, total, min(total, CURVE_POINTS) + 1).round().astype(int)
        )
        pooled = np.concatenate([split.estimate for split in splits])
        points = []
        for accepted in map(int, steps):
            whole = self._with(proposals[:accepted])
            parts = []
            for chain, split in zip(self._chains, splits, strict=True):
                # So much of each chain, since chains differ in length.
                part = chain[: round(accepted * len(chain) / max(total, 1))]
                parts.append(objective.answers(self._with(part), split.estimate))
            points.append(
                AcceptedScore(
                    accepted,
                    objective.score(objective.answers(whole)).value,
                    objective.score(np.concatenate(parts), pooled).value,
                )
            )
        return tuple(points)

    def _mine(self, rows: Rows, least_gain: float) -> tuple[TermProposal, ...]:
        made = self._miner.mine(rows, self._labels, least_gain=least_gain)
        # Each mining tests nearly the same wordings: added up, they would count often.
        self._tested = max(self._tested, made.tested)
        return made.proposals[: self._budget]

    def _with(self, proposals: Sequence[TermProposal]) -> PromptVersion:
        ground = self._objective.ground
        language = ground.items[0].language if ground.items else "en"
        guides = apply_proposals(ground.version, proposals, language)
        return self._objective.candidate(guides)

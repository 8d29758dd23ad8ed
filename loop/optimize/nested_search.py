"""A search repeated over nested splits: what it is worth, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.optimize.estimate import NestedEstimate, estimate_nested
from loop.optimize.objective import Objective
from loop.optimize.proposals import Proposed
from loop.optimize.splits import NestedSplit, Rows, SeenCases
from loop.prompts.version import PromptVersion

Propose = Callable[[SeenCases, int], Proposed]
"""Proposes wordings from the cases that it may see, with a seed."""

MOST_KEPT: Final = 3
"""Wordings of a Pareto set that become drafts at most."""


MOST_COMPARED: Final = 10
"""Wordings, the best first, among which the Pareto set is looked for."""


class NestedSearch(NamedTuple):
    """What a search found, and what that is worth on cases it did not see."""

    estimate: NestedEstimate
    kept: tuple[PromptVersion, ...]
    """The Pareto set of the last search, the best first; empty where the estimate is
    not better than the parent."""

    rounds: tuple[Proposed, ...]
    """What was proposed in each split, and in the last search."""


def search_nested(
    objective: Objective,
    propose: Propose,
    splits: Sequence[NestedSplit],
    *,
    seed: int = 0,
    tell: Callable[[int], object] = lambda done: None,
) -> NestedSearch:
    """Return what `propose` finds, and its worth pooled over nested splits.

    In each split it proposes from `search`, the best wording on `select` is taken,
    guides by which their label loses are put back, and what remains is scored on
    `estimate`. The last search also sees the cases that estimated the
    first split: what it ends with was found with all cases, and the pooled estimate
    says what such a search is worth. There is none where that is no better.

    Parameters
    ----------
    propose
        Called once a split and once more.
    tell
        Told how many of these are done.

    Raises
    ------
    EngineError
        An engine failed too often.
    """
    rounds: list[Proposed] = []
    found: list[PromptVersion] = []
    for number, split in enumerate(splits):
        proposed = propose(split.seen, seed + number)
        rounds.append(proposed)
        best = rank_candidates(objective, proposed.candidates, split)
        found.append(
            put_back(objective, best[0], split.known)
            if best
            else objective.ground.version
        )
        tell(number + 1)
    estimate = estimate_nested(objective, splits, found, seed=seed)
    if not estimate.better:
        return NestedSearch(estimate, (), tuple(rounds))
    first = splits[0]
    last = first._replace(
        search=np.union1d(first.search, first.estimate),
        estimate=np.array([], dtype=np.intp),
    )
    proposed = propose(last.seen, seed + len(splits))
    rounds.append(proposed)
    tell(len(splits) + 1)
    ranked = rank_candidates(objective, proposed.candidates, last)
    # Where asking costs nothing, all cases say which wording is best on which label.
    free = objective.engine.name.partition(":")[0] == "rules"
    rows = last.known if free else last.select
    pareto = find_pareto(objective, ranked[:MOST_COMPARED], rows)[:MOST_KEPT]
    mended = (put_back(objective, one, last.known) for one in pareto)
    kept = [one for one in mended if one.digest != objective.ground.version.digest]
    return NestedSearch(estimate, tuple(dict.fromkeys(kept)), tuple(rounds))


def rank_candidates(
    objective: Objective, candidates: Sequence[PromptVersion], split: NestedSplit
) -> tuple[PromptVersion, ...]:
    """Return the candidates that beat the parent on `select`, the best first.

    By macro-F1 on `select`; where several are best there, on `search`. Among equals
    the one found first. A case that the engine failed on is left out of both sides.
    """
    parent = objective.ground.version

    def gain(candidate: PromptVersion, rows: Rows) -> float:
        before, after = (objective.answers(one, rows) for one in (parent, candidate))
        old = objective.score(before, rows, beside=after).macro_f1
        new = objective.score(after, rows, beside=before).macro_f1
        return 0.0 if new is None else new - (old or 0.0)

    gains = [(gain(one, split.select), one) for one in dict.fromkeys(candidates)]
    ranked = sorted((one for one in gains if one[0] > 0), key=lambda one: -one[0])
    best = [one for one in ranked if one[0] == ranked[0][0]]
    if len(best) > 1:
        # Only these are asked about the other cases: each is a whole run of them.
        best.sort(key=lambda one: -gain(one[1], split.search))
    return tuple(one for _, one in (*best, *ranked[len(best) :]))


def put_back(
    objective: Objective, candidate: PromptVersion, rows: Rows
) -> PromptVersion:
    """Return `candidate` with the parent's guide for each label that loses by its own.

    A label loses if fewer of its answers, or of its answers to positive cases, are
    right on `rows`: a check of the draft would object to it.
    """
    parent = objective.ground.version
    before, after = (objective.answers(one, rows) for one in (parent, candidate))
    old = objective.score(before, rows, beside=after).counts
    new = objective.score(after, rows, beside=before).counts
    # Counts are true and false positives, false and true negatives.
    loses = (new[:, [0, 3]].sum(axis=1) < old[:, [0, 3]].sum(axis=1)) | (
        new[:, 0] < old[:, 0]
    )
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


def find_pareto(
    objective: Objective, candidates: Sequence[PromptVersion], rows: Rows
) -> tuple[PromptVersion, ...]:
    """Return the candidates that no other one equals or beats on every label.

    Labels are compared by F1 on `rows`, those that are not scored left out. Of equals
    the first is kept; the order stays.
    """
    scored = objective.ground.scored
    points: list[NDArray[np.float64]] = [
        np.nan_to_num(objective.score(objective.answers(one, rows), rows).f1[scored])
        for one in candidates
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

"""What a search is worth on cases that it did not see, pooled over nested splits.

What was found in each split is scored on that split's estimate cases, beside the
parent, and the answers are put together: with five splits each case is answered once,
by a wording that was found without it. That measures the search. The wording it ends
with was found with all cases, and its score on them says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from loop.optimize.ground import (
    AgreementGain,
    Answers,
    LabelGround,
    PooledScores,
)
from loop.optimize.objective import Objective
from loop.optimize.splits import NestedSplit, Rows
from loop.prompts.version import PromptVersion
from loop.stats.resampling import Bootstrap

RESAMPLES: Final = 1000
"""Default number of resamples."""


class PartScores(NamedTuple):
    """Scores of the parent and of what was found, on one part of a split."""

    parent: float | None
    found: float | None


class SplitScores(NamedTuple):
    """One nested split: what was found in it, on its parts."""

    search: PartScores
    select: PartScores
    estimate: PartScores


PARTS: Final = SplitScores._fields
"""Names of the parts of a split."""


class LabelGain(NamedTuple):
    """One label over the pooled estimate cases."""

    label: str
    positives: int
    """Decided positives, each case counted once."""

    estimable: bool
    """Whether these reach the protocol's minimum; else nothing is claimed of it."""

    parent: float | None
    """Score of the parent, F1 or the negative mean distance; None where undefined."""

    found: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedEstimate:
    """The pooled estimate of a search, and how far its own scores were off."""

    splits: tuple[SplitScores, ...]
    parent: Bootstrap
    """Score of the parent over the pooled estimate cases."""

    found: Bootstrap
    """Score of what was found in each split, over the same cases."""

    gain: Bootstrap
    """The difference, on the same resamples."""

    kappa_gain: Bootstrap
    """The same of the mean of a kappa over labels, 0 where it is undefined: Cohen's, of
    counts weighted by distance. A wording that only answers "present" more often, or
    only counts fewer errors, gains by its score and has no more kappa."""

    labels: tuple[LabelGain, ...]
    cases: int
    """Cases that were estimated on, each counted once."""

    left_out: int
    """Cases that the engine failed on, for the parent or for what was found."""

    unit: str
    """What was resampled: ``"patient"``, ``"case"`` or ``"reference"``."""

    score: str = LabelGround.score_name
    """What scores are: ``"macro-F1"``, or ``"negative distance"`` of a judge."""

    agreement: AgreementGain | None = None
    """Of a judge: with the raters, on the same cases; nothing is chosen by it."""

    @property
    def counts_errors(self) -> bool:
        """Whether it is of a judge, whose counts are nearer or further."""
        return self.score != LabelGround.score_name

    @property
    def better(self) -> bool:
        """Whether both gains are above 0 by more than chance.

        Where every resample gives the same gain in the score, whether the intervals of
        the two scores are apart, and kappa gains.
        """
        if (self.kappa_gain.low or 0.0) <= 0:
            return False
        if self.gain.low is None:
            limits = self.found.low, self.parent.high
            return None not in limits and limits[0] > limits[1]  # type: ignore[operator]
        return self.gain.low > 0

    def mean(self, part: str) -> PartScores:
        """Return the mean over splits of ``"search"``, ``"select"`` or ``"estimate"``.

        Of the splits in which both are defined.
        """
        scores = [getattr(one, part) for one in self.splits]
        known = [one for one in scores if None not in one]
        if not known:
            return PartScores(None, None)
        parent, found = np.mean(np.array(known, dtype=float), axis=0)
        return PartScores(float(parent), float(found))


def estimate_nested(
    objective: Objective,
    splits: Sequence[NestedSplit],
    found: Sequence[PromptVersion],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> NestedEstimate:
    """Return what a search found in each split, scored on cases that it did not see.

    Parameters
    ----------
    found
        What the search ended with in each split; the parent where it found nothing.

    Raises
    ------
    ValueError
        There is not one wording per split.
    EngineError
        As `Objective.answers` raises it.
    """
    ground = objective.ground
    parent = ground.version
    rows: list[Rows] = []
    sides: list[tuple[Answers, Answers]] = []
    scores: list[SplitScores] = []
    for split, wording in zip(splits, found, strict=True):
        scores.append(
            SplitScores(*(_score_part(objective, wording, part) for part in split))
        )
        rows.append(split.estimate)
        sides.append(
            (
                objective.answers(parent, split.estimate),
                objective.answers(wording, split.estimate),
            )
        )
    pooled = np.concatenate(rows)
    before, after = (np.concatenate(side) for side in zip(*sides, strict=True))
    lost = ground.lost(before) | ground.lost(after)
    left_out = len(np.unique(pooled[lost]))
    pooled, before, after = pooled[~lost], before[~lost], after[~lost]
    cases = np.unique(pooled)
    positives = (ground.truth[cases] == 1).sum(axis=0)
    estimable = ground.scored & (positives >= ground.protocol.min_positives)
    shown = np.flatnonzero(estimable)
    nothing = Bootstrap(None, None, None, resamples, 0)
    measured = PooledScores(nothing, nothing, nothing, nothing)
    if shown.size and pooled.size:
        measured = ground.pool(
            before,
            after,
            pooled,
            shown,
            units=ground.clusters.units[pooled],
            resamples=resamples,
            seed=seed,
        )
    known = [ground.total(side, pooled).by_label for side in (before, after)]
    return NestedEstimate(
        splits=tuple(scores),
        parent=measured.parent,
        found=measured.found,
        gain=measured.gain,
        kappa_gain=measured.kappa_gain,
        labels=tuple(
            LabelGain(label, int(count), bool(shown), _defined(was), _defined(now))
            for label, count, shown, was, now in zip(
                ground.labels, positives, estimable, *known, strict=True
            )
        ),
        cases=len(cases),
        left_out=left_out,
        unit=ground.clusters.unit,
        score=ground.score_name,
        agreement=measured.agreement,
    )


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _score_part(objective: Objective, found: PromptVersion, rows: Rows) -> PartScores:
    """Return the scores of both on some cases, those of failures left out."""
    before = objective.answers(objective.ground.version, rows)
    after = objective.answers(found, rows)
    return PartScores(
        objective.score(before, rows, beside=after).value,
        objective.score(after, rows, beside=before).value,
    )

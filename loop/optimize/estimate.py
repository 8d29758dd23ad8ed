"""What a search is worth on cases that it did not see, pooled over nested splits.

What was found in each split is scored on that split's estimate cases, beside the
parent, and the answers are put together: with five splits each case is answered once,
by a wording that was found without it. That measures the search. The wording it ends
with was found with all cases, and its score on them says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from loop.core.records import ValueCode
from loop.evaluate.align import Codes
from loop.optimize.objective import Objective
from loop.optimize.splits import NestedSplit, Rows
from loop.prompts.version import PromptVersion
from loop.stats.bootstrap import bootstrap_f1, bootstrap_f1_difference
from loop.stats.confusion import count_confusions, kappas, pair_indicators
from loop.stats.resampling import Bootstrap, DrawResampling, bootstrap

RESAMPLES: Final = 1000
"""Default number of resamples."""


class PartScores(NamedTuple):
    """Macro-F1 of the parent and of what was found, on one part of a split."""

    parent: float | None
    found: float | None


class SplitScores(NamedTuple):
    """One nested split: what was found in it, on its parts."""

    search: PartScores
    select: PartScores
    estimate: PartScores


class LabelGain(NamedTuple):
    """One label over the pooled estimate cases."""

    label: str
    positives: int
    """Decided positives, each case counted once."""

    estimable: bool
    """Whether these reach the protocol's minimum; else nothing is claimed of it."""

    parent: float | None
    """F1 of the parent; None where undefined."""

    found: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedEstimate:
    """The pooled estimate of a search, and how far its own scores were off."""

    splits: tuple[SplitScores, ...]
    parent: Bootstrap
    """Macro-F1 of the parent over the pooled estimate cases."""

    found: Bootstrap
    """Macro-F1 of what was found in each split, over the same cases."""

    gain: Bootstrap
    """The difference, on the same resamples."""

    kappa_gain: Bootstrap
    """The same of the mean of Cohen's kappa over labels, 0 where it is undefined: a
    wording that only answers "present" more often gains F1, and no kappa."""

    labels: tuple[LabelGain, ...]
    cases: int
    """Cases that were estimated on, each counted once."""

    left_out: int
    """Cases that the engine failed on, for the parent or for what was found."""

    unit: str
    """What was resampled: ``"patient"`` or ``"case"``."""

    @property
    def better(self) -> bool:
        """Whether both gains are above 0 by more than chance.

        Where every resample gives the same gain, whether the intervals of the two F1
        are apart.
        """
        if self.gain.low is None:
            limits = self.found.low, self.parent.high
            return None not in limits and limits[0] > limits[1]  # type: ignore[operator]
        return self.gain.low > 0 and (self.kappa_gain.low or 0.0) > 0

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
    sides: list[tuple[Codes, Codes]] = []
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
    lost = ((before == ValueCode.FAILED) | (after == ValueCode.FAILED)).any(axis=1)
    left_out = len(np.unique(pooled[lost]))
    pooled, before, after = pooled[~lost], before[~lost], after[~lost]
    cases = np.unique(pooled)
    positives = (ground.truth[cases] == 1).sum(axis=0)
    estimable = ground.scored & (positives >= ground.protocol.min_positives)
    truth = ground.truth[pooled]
    before, after = objective.decided(before, truth), objective.decided(after, truth)
    units = ground.clusters.units[pooled]
    shown = np.flatnonzero(estimable)

    def measure(answers: Codes) -> Bootstrap:
        if not shown.size or not len(truth):
            return Bootstrap(None, None, None, resamples, 0)
        return bootstrap_f1(
            truth[:, shown],
            answers[:, shown],
            units=units,
            resamples=resamples,
            seed=seed,
        )

    gain = kappa_gain = Bootstrap(None, None, None, resamples, 0)
    if shown.size and len(truth):
        kappa_gain = _kappa_gain(
            truth[:, shown],
            before[:, shown],
            after[:, shown],
            units=units,
            resamples=resamples,
            seed=seed,
        )
        gain = bootstrap_f1_difference(
            truth[:, shown],
            before[:, shown],
            after[:, shown],
            units=units,
            resamples=resamples,
            seed=seed,
        )
    return NestedEstimate(
        splits=tuple(scores),
        parent=measure(before),
        found=measure(after),
        gain=gain,
        kappa_gain=kappa_gain,
        labels=tuple(
            LabelGain(label, int(count), bool(known), was, now)
            for label, count, known, was, now in zip(
                ground.labels,
                positives,
                estimable,
                _f1(truth, before),
                _f1(truth, after),
                strict=True,
            )
        ),
        cases=len(cases),
        left_out=left_out,
        unit=ground.clusters.unit,
    )


def _kappa_gain(
    truth: Codes, before: Codes, after: Codes, **resampling: Unpack[DrawResampling]
) -> Bootstrap:
    """Return the gain in the mean kappa over labels, with its interval."""
    sides = (pair_indicators(truth, answers) for answers in (before, after))
    columns = np.hstack(
        [side.reshape(len(truth), -1).astype(np.int8) for side in sides]
    )

    def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        tables = sums.reshape(len(sums), 2, -1, 4)
        mean = np.nan_to_num(kappas(tables)).mean(axis=2)
        return np.asarray(mean[:, 1] - mean[:, 0])

    return bootstrap(columns, statistic, **resampling)[0]


def _score_part(objective: Objective, found: PromptVersion, rows: Rows) -> PartScores:
    """Return the macro-F1 of both on some cases, those of failures left out."""
    before = objective.answers(objective.ground.version, rows)
    after = objective.answers(found, rows)
    return PartScores(
        objective.score(before, rows, beside=after).macro_f1,
        objective.score(after, rows, beside=before).macro_f1,
    )


def _f1(truth: Codes, answers: Codes) -> list[float | None]:
    counts: NDArray[np.int64] = count_confusions(truth, answers)
    weight = 2 * counts[:, 0] + counts[:, 1] + counts[:, 2]
    return [
        float(2 * hits / whole) if whole else None
        for hits, whole in zip(counts[:, 0], weight, strict=True)
    ]

"""Time discrimination and robustness against the plain loop over scikit-learn.

Run ``python -m tests.bench.bench_discrimination`` from the repository root. Both sides
run in this process on the same synthetic scores. The plain loop is what a notebook
does: take the pairs of the references that a resample draws, and call
``roc_auc_score`` on all of them and on each kind; it is timed on a few resamples and
scaled up, which the output says, and on the scores themselves both sides must give the
same areas.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from sklearn.metrics import roc_auc_score

from loop.judge.discrimination import (
    MarkedPairs,
    PairScores,
    measure_discrimination,
)

REFERENCES, METRICS, RESAMPLES = 200, 10, 10_000
KINDS = ("a", "b", "c")
TRIED = 10
"""Resamples on which the plain loop is timed."""


def make_pairs() -> MarkedPairs:
    """Return 1,200 pairs: three errors and three rewordings of each reference."""
    size = 2 * len(KINDS)
    ids = [f"p{place}" for place in range(size * REFERENCES)]
    units = np.repeat(np.arange(REFERENCES), size)
    return MarkedPairs(
        ids=tuple(ids),
        reference_ids=tuple(f"r{unit:03d}" for unit in units),
        references=("",) * len(ids),
        candidates=("",) * len(ids),
        kinds=(*KINDS, "x", "y", "z") * REFERENCES,
        significant=np.tile([True] * len(KINDS) + [False] * len(KINDS), REFERENCES),
        numbers=np.ones(len(ids), dtype=np.int64),
        severities=np.ones(len(ids), dtype=np.int64),
    )


def make_scores(pairs: MarkedPairs) -> list[PairScores]:
    """Return metrics, better and worse, half of them with many ties and flags."""
    rng = np.random.default_rng(7)
    found = []
    for place in range(METRICS):
        noise = rng.normal(size=len(pairs.ids)) * (0.5 + place / 3)
        values = noise - pairs.significant
        tied = place % 2 == 0
        found.append(
            PairScores(
                name=f"m{place}",
                title=f"m{place}",
                lower=False,
                values=values.round(1) if tied else values,
                signature=f"m{place}",
                flags=(values < -0.5).astype(float) if tied else None,
            )
        )
    return found


def plain(pairs: MarkedPairs, scores: PairScores, rows: np.ndarray) -> list[float]:
    """Return the areas of all kinds and of each, as scikit-learn computes them."""
    kinds = np.array(pairs.kinds)[rows]
    right, values = ~pairs.significant[rows], scores.values[rows]
    areas = [roc_auc_score(right, values)]
    for kind in KINDS:
        kept = right | (kinds == kind)
        areas.append(roc_auc_score(right[kept], values[kept]))
    return [float(area) for area in areas]


def main() -> None:
    """Time both sides and print the ratio."""
    pairs = make_pairs()
    metrics = make_scores(pairs)
    start = perf_counter()
    found = [measure_discrimination(pairs, one, resamples=RESAMPLES) for one in metrics]
    ours = perf_counter() - start
    everything = np.arange(len(pairs.ids))
    for one, scores in zip(found, metrics, strict=True):
        areas = [one.auc.value, *(row.auc.value for row in one.kinds if row.auc)]
        assert np.allclose(areas, plain(pairs, scores, everything))
    rng = np.random.default_rng(0)
    by_unit = everything.reshape(REFERENCES, -1)
    start = perf_counter()
    for _ in range(TRIED):
        rows = by_unit[rng.integers(REFERENCES, size=REFERENCES)].ravel()
        for scores in metrics:
            plain(pairs, scores, rows)
    loop = (perf_counter() - start) / TRIED * RESAMPLES
    print(f"{len(pairs.ids):,} pairs, {METRICS} metrics, {RESAMPLES:,} resamples")
    print(f"ours {ours:.2f} s; plain loop {loop:.0f} s, scaled from {TRIED} resamples")
    print(f"{loop / ours:.0f} times as fast")


if __name__ == "__main__":
    main()

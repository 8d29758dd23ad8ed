"""Time the meta-evaluation of metrics against the plain loop over scipy.

Run ``python tests/bench/bench_meta_evaluate.py`` with the package installed. Both sides
run in this process on the same synthetic scores and ratings. The plain loop is what a
notebook does: take the rows of a resample, or exchange the ranks of two metrics, and
call ``kendalltau``, ``spearmanr`` and ``pearsonr`` again. It is timed on a few of the
very same resamples and exchanges and scaled up, which the output says; on those the
script checks that both sides give the same coefficients.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr

from loop.score.experts.meta import meta_evaluate
from loop.score.experts.metric_scores import ScoredMetric, ScoreTable
from loop.score.experts.ratings import Ratings, mean_given
from loop.stats.correlation import correlate
from loop.stats.resampling import draw_units

CANDIDATES, METRICS, RATERS = 200, 10, 3
TRIED = 20
"""Resamples and exchanges on which the plain loop is timed."""


def make_study(per_case: int) -> tuple[ScoreTable, Ratings]:
    """Return metrics, better and worse, some of them with many ties, and raters."""
    rng = np.random.default_rng(7)
    ids = tuple(f"c{row // per_case:03d}" for row in range(CANDIDATES))
    systems = tuple(f"s{row % per_case}" for row in range(CANDIDATES))
    quality = rng.normal(size=(CANDIDATES, 1))
    noise = rng.normal(size=(CANDIDATES, RATERS))
    points = np.clip(np.round(3 + quality + 0.6 * noise), 1, 5)
    spread = np.linspace(0.3, 2, METRICS)
    values = quality + rng.normal(size=(CANDIDATES, METRICS)) * spread
    values[:, 3:5] = values[:, 3:5].round()
    metrics = tuple(ScoredMetric(f"m{place}", f"m{place}") for place in range(METRICS))
    keys = tuple(zip(ids, systems, strict=True))
    raters = tuple(f"r{place}" for place in range(RATERS))
    return (
        ScoreTable(keys=keys, metrics=metrics, values=values),
        Ratings(ids=ids, systems=systems, raters=raters, scores=points, scale=(1, 5)),
    )


def coefficients(x: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the three coefficients as scipy computes them."""
    return [float(one(x, y).statistic) for one in (kendalltau, spearmanr, pearsonr)]


def time_resamples(x: np.ndarray, y: np.ndarray, units: np.ndarray) -> float:
    """Return the seconds of one plain resample, after a check of the same limits."""
    position = np.unique(units, return_inverse=True)[1]
    rows = [np.flatnonzero(position == unit) for unit in range(position.max() + 1)]
    [drawn] = draw_units(len(rows), TRIED, np.random.default_rng(0))
    start = process_time()
    taken = [np.concatenate([rows[unit] for unit in line]) for line in drawn]
    values = [coefficients(x[one], y[one]) for one in taken]
    seconds = (process_time() - start) / TRIED
    ours = correlate(x, y, units, resamples=TRIED)
    limits = np.quantile(values, [0.025, 0.975], axis=0).T
    for one, (low, high) in zip(ours[:3], limits, strict=True):
        np.testing.assert_allclose((one.low, one.high), (low, high), atol=1e-12)
    return seconds


def time_exchanges(x: np.ndarray, y: np.ndarray, rating: np.ndarray) -> float:
    """Return the seconds of one plain exchange of two metrics."""
    ranks = np.stack([rankdata(x), rankdata(y)])
    rng = np.random.default_rng(0)
    start = process_time()
    for swap in rng.integers(2, size=(TRIED, len(x)), dtype=np.bool_):
        for one in np.where(swap, ranks[::-1], ranks):
            kendalltau(one, rating)
    return (process_time() - start) / TRIED


def main() -> None:
    """Print both times, and how often the one goes into the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    draws = parser.parse_args().draws
    for per_case in (2, 1):
        scores, ratings = make_study(per_case)
        wall, start = perf_counter(), process_time()
        meta_evaluate(scores, ratings, resamples=draws, permutations=draws)
        ours, wall = process_time() - start, perf_counter() - wall
        mean = mean_given(ratings.scores)
        first, second = scores.values[:, 0], scores.values[:, 1]
        correlations = METRICS * (1 + RATERS) + RATERS * (RATERS - 1) // 2 + RATERS
        tests = METRICS * (METRICS - 1) // 2
        plain = draws * (
            correlations * time_resamples(first, mean, np.array(ratings.ids))
            + tests * time_exchanges(first, second, mean)
        )
        print(
            f"{METRICS} metrics, {CANDIDATES} candidates, {per_case} per case, "
            f"{RATERS} raters, {draws:,} resamples and exchanges: {ours:.2f} s of "
            f"processor ({wall:.2f} s passed); the plain loop, scaled up from {TRIED} "
            f"of each and without preferences and alpha: {plain:,.0f} s, "
            f"{plain / ours:,.0f} times as long; equal limits to 1e-12"
        )


if __name__ == "__main__":
    main()

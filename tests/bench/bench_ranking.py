"""Time the ranking of systems and all paired tests against the plain loop.

Run ``python tests/bench/bench_ranking.py`` with the package installed. Both sides run
in this process on the same synthetic labels. The plain loop is what existing tools do:
index the rows of a resample, or exchange the rows of two systems, and call
scikit-learn's ``f1_score`` again. It is timed on a few of the very same resamples and
exchanges and scaled up, which the output says; on those the script checks that all
scores agree. It is timed on the narrow codes of this package and on the integers that
a table read from a file has.
"""

from __future__ import annotations

import argparse
import resource
from itertools import combinations
from time import perf_counter

import numpy as np
from sklearn.metrics import f1_score

from loop.stats.confusion import f1_columns, mean_f1
from loop.stats.resampling import draw_units
from loop.stats.systems import compare_systems, rank_systems, tabulate_pairs

POLICY = "zero"


def make_table(
    n_systems: int, n_cases: int, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a reference, prevalences 0.2 % to 40 %, and worse and worse systems."""
    rng = np.random.default_rng(1)
    prevalence = np.geomspace(0.002, 0.4, n_labels)
    reference = rng.random((n_cases, n_labels)) < prevalence
    share = np.linspace(0.02, 0.1, n_systems)[:, None, None]
    wrong = rng.random((n_systems, n_cases, n_labels)) < share
    return reference.astype(np.int8), (reference ^ wrong).astype(np.int8)


def time_best(function, repeats: int) -> float:
    """Return the shortest of several wall times, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def macro(reference: np.ndarray, candidate: np.ndarray) -> float:
    """Return the macro F1 the plain way."""
    return f1_score(reference, candidate, average="macro", zero_division=0)


def resample_plainly(
    reference: np.ndarray, candidates: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Return the score of every system on every resample."""
    return np.array(
        [[macro(reference[rows], one[rows]) for one in candidates] for rows in drawn]
    )


def exchange_plainly(
    reference: np.ndarray, candidates: np.ndarray, swaps: np.ndarray
) -> np.ndarray:
    """Return the difference of every pair of systems after every exchange."""
    return np.array(
        [
            [
                macro(reference, np.where(swap[:, None], second, first))
                - macro(reference, np.where(swap[:, None], first, second))
                for first, second in combinations(candidates, 2)
            ]
            for swap in swaps
        ]
    )


def check_equal(
    reference: np.ndarray, candidates: np.ndarray, drawn: np.ndarray, swaps: np.ndarray
) -> None:
    """Raise AssertionError unless both ways score these draws alike."""
    weights = np.array([np.bincount(rows, minlength=len(reference)) for rows in drawn])
    table = tabulate_pairs(reference, candidates, None, POLICY)
    sums = (weights @ table.alone).reshape(len(drawn), len(candidates), 2, -1)
    scores = mean_f1(
        sums[:, :, 0].astype(float), sums[:, :, 1].astype(float), zero_division=POLICY
    )
    plain = resample_plainly(reference, candidates, drawn)
    assert np.abs(scores - plain).max() < 1e-12
    pairs = list(combinations(range(len(candidates)), 2))
    resampled = table.differences(table.sums(weights))
    expected = [plain[:, first] - plain[:, second] for first, second in pairs]
    assert np.abs(resampled - np.transpose(expected)).max() < 1e-12
    moved = table.sums(swaps)
    exchanged = table.differences(table.whole - moved + moved[..., ::-1, :])
    plain = exchange_plainly(reference, candidates, swaps)
    assert np.abs(exchanged - plain).max() < 1e-12


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=7)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--labels", type=int, default=21)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--naive", type=int, default=5, help="draws timed plainly")
    options = parser.parse_args()
    reference, candidates = make_table(options.systems, options.cases, options.labels)
    rng = np.random.default_rng(0)
    drawn = np.concatenate(list(draw_units(options.cases, options.naive, rng)))
    swaps = rng.integers(2, size=drawn.shape, dtype=np.bool_)
    check_equal(reference, candidates, drawn, swaps)

    def rank(codes: np.ndarray) -> None:
        columns = np.stack([f1_columns(reference, one) for one in codes])
        rank_systems(columns, zero_division=POLICY, resamples=options.draws)

    def compare(codes: np.ndarray) -> None:
        compare_systems(
            reference,
            codes,
            zero_division=POLICY,
            resamples=options.draws,
            permutations=options.draws,
        )

    undecided = candidates.copy()
    undecided[np.random.default_rng(2).random(candidates.shape) < 0.05] = -1
    ranking = time_best(lambda: rank(candidates), repeats=3)
    testing = time_best(lambda: compare(candidates), repeats=3)
    open_too = time_best(lambda: compare(undecided), repeats=3)
    fast = ranking + testing
    n_pairs = options.systems * (options.systems - 1) // 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{options.systems} systems ({n_pairs} pairs) x {options.cases:,} cases x "
        f"{options.labels} labels, {options.draws:,} resamples and exchanges\n"
        f"scores within 1e-12 on {options.naive} shared resamples and exchanges\n"
        f"ranking              {ranking:9.2f} s  (whole call, best of 3)\n"
        f"intervals and tests  {testing:9.2f} s  ({open_too:.2f} s if 5 % are open)\n"
        f"peak memory          {peak:9.0f} MiB"
    )
    for kind in (np.int8, np.int64):
        truth, answers = reference.astype(kind), candidates.astype(kind)
        resampling = time_best(
            lambda t=truth, a=answers: resample_plainly(t, a, drawn), repeats=2
        )
        exchanging = time_best(
            lambda t=truth, a=answers: exchange_plainly(t, a, swaps), repeats=2
        )
        scaled = (resampling + exchanging) / options.naive * options.draws
        print(
            f"plain loop, {kind.__name__:<7} {scaled:11.0f} s  (scaled from "
            f"{options.naive} of each in {resampling:.2f} + {exchanging:.2f} s, best "
            f"of 2)   ratio {scaled / fast:.0f}"
        )


if __name__ == "__main__":
    main()

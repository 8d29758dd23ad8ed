"""Time the bootstrap of macro F1 against the plain scikit-learn loop.

Run ``python tests/bench/bench_bootstrap.py`` with the package installed. Both sides run
in this process on the same synthetic table. The plain loop is timed on a few of the
very same resamples and scaled up, which the output says; on those the script checks
that all confusion counts are equal and all scores agree. It is timed on the narrow
codes of this package and on the integers that a table read from a file has.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from sklearn.metrics import f1_score, multilabel_confusion_matrix

from loop.stats.bootstrap import bootstrap_f1
from loop.stats.confusion import average_f1, pair_indicators
from loop.stats.resampling import draw_units, resample_sums


def make_table(n_cases: int, n_labels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return reference and prediction with prevalences from 0.2 % to 40 %."""
    rng = np.random.default_rng(seed)
    prevalence = np.geomspace(0.002, 0.4, n_labels)
    reference = rng.random((n_cases, n_labels)) < prevalence
    wrong = rng.random((n_cases, n_labels)) < 0.03
    return reference.astype(np.int8), (reference ^ wrong).astype(np.int8)


def time_best(function, repeats: int) -> float:
    """Return the shortest of several wall times, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def score_rows(reference: np.ndarray, predicted: np.ndarray, rows: np.ndarray) -> float:
    """Return the macro F1 of one resample the plain way."""
    return f1_score(reference[rows], predicted[rows], average="macro", zero_division=0)


def check_equal(reference: np.ndarray, predicted: np.ndarray, drawn: np.ndarray):
    """Raise AssertionError unless both ways count and score these resamples alike."""
    n_cases, n_labels = reference.shape
    cells = pair_indicators(reference, predicted).reshape(n_cases, -1)
    sums = resample_sums(cells, len(drawn), np.random.default_rng(0))
    counts = sums.reshape(-1, n_labels, 4)
    scores = average_f1(counts, zero_division="zero")
    for rows, found, score in zip(drawn, counts, scores, strict=True):
        naive = multilabel_confusion_matrix(reference[rows], predicted[rows])
        assert np.array_equal(found, naive[:, [1, 0, 1, 0], [1, 1, 0, 0]])
        assert abs(score - score_rows(reference, predicted, rows)) < 1e-12


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--labels", type=int, default=21)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--naive", type=int, default=30, help="naive resamples timed")
    options = parser.parse_args()
    reference, predicted = make_table(options.cases, options.labels, seed=1)
    blocks = draw_units(options.cases, options.naive, np.random.default_rng(0))
    drawn = np.concatenate(list(blocks))
    check_equal(reference, predicted, drawn)

    fast = time_best(
        lambda: bootstrap_f1(
            reference, predicted, zero_division="zero", resamples=options.resamples
        ),
        repeats=5,
    )
    print(
        f"macro F1, {options.resamples:,} resamples of {options.cases:,} x "
        f"{options.labels}\n"
        f"counts equal, scores within 1e-12, on {options.naive} shared resamples\n"
        f"vectorised           {fast:8.3f} s  (whole call, best of 5)"
    )
    for kind in (np.int8, np.int64):
        truth, answer = reference.astype(kind), predicted.astype(kind)
        naive = time_best(
            lambda t=truth, a=answer: [score_rows(t, a, rows) for rows in drawn],
            repeats=3,
        )
        scaled = naive / options.naive * options.resamples
        print(
            f"plain loop, {kind.__name__:<7} {scaled:9.2f} s  (scaled from "
            f"{options.naive} resamples in {naive:.3f} s, best of 3)   "
            f"ratio {scaled / fast:.0f}"
        )


if __name__ == "__main__":
    main()

"""What the lexical metrics count in pairs of texts, on as many cores as asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from loop.score.metrics.bleu import count_bleu
from loop.score.metrics.chrf import count_chrf
from loop.score.metrics.meteor import measure_meteor
from loop.score.metrics.rouge import measure_rouge

Counting = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]

KINDS: Mapping[str, Counting] = MappingProxyType(
    {
        "bleu": count_bleu,
        "chrf": count_chrf,
        "rouge": measure_rouge,
        "meteor": measure_meteor,
    }
)
"""From references and candidates to rows, one per pair."""

_WORTH = 2_000_000
"""Characters of all pairs from which on another process saves time."""


def measure(
    kinds: Iterable[str],
    references: Sequence[str],
    candidates: Sequence[str],
    *,
    workers: int = 1,
) -> dict[str, NDArray[np.float64]]:
    """Return the counts of every pair, by kind; equal pairs are counted once.

    Parameters
    ----------
    kinds
        Names from `KINDS`.
    references, candidates
        Texts of equal number.
    workers
        Processes, this one included. More than one are used for long work only.

    Returns
    -------
    dict[str, NDArray[np.float64]]
        Per kind shape ``(n_pairs, n_columns)``; the same for every `workers`.

    Raises
    ------
    ValueError
        `workers` is below 1, or the numbers of texts differ.
    """
    if workers < 1:
        raise ValueError(f"workers must be >= 1, got {workers}")
    pairs = list(zip(references, candidates, strict=True))
    distinct = list(dict.fromkeys(pairs))
    wanted = [kind for kind in KINDS if kind in set(kinds)]
    if not wanted or not pairs:
        return {kind: KINDS[kind](references, candidates) for kind in wanted}
    shares = _shares(distinct, workers)
    with ThreadPoolExecutor(len(shares)) as threads:
        rest = [threads.submit(_elsewhere, wanted, share) for share in shares[1:]]
        parts = [count_pairs(wanted, shares[0]), *(one.result() for one in rest)]
    place = {pair: row for row, pair in enumerate(p for s in shares for p in s)}
    rows = [place[pair] for pair in pairs]
    return {kind: np.concatenate([p[kind] for p in parts])[rows] for kind in wanted}


def count_pairs(
    kinds: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> dict[str, NDArray[np.float64]]:
    """Return the counts of every pair, by kind, made in this process."""
    references = [reference for reference, _ in pairs]
    candidates = [candidate for _, candidate in pairs]
    return {kind: KINDS[kind](references, candidates) for kind in kinds}


def _shares(pairs: list[tuple[str, str]], workers: int) -> list[list[tuple[str, str]]]:
    """Return the pairs dealt out so that every share is about as long."""
    length = sum(len(reference) + len(candidate) for reference, candidate in pairs)
    number = min(workers, len(pairs), 1 + length // _WORTH)
    ordered = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    return [ordered[start::number] for start in range(number)]


def _elsewhere(
    kinds: list[str], pairs: list[tuple[str, str]]
) -> dict[str, NDArray[np.float64]]:
    """Return `count_pairs` made by another process, or here if that one ends badly.

    An interpreter of its own, not `multiprocessing`: that would run the user's script
    once more, and forks what has threads.
    """
    path = os.pathsep.join(place for place in sys.path if place)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "loop.score.metrics.word_counts"],
        input=json.dumps({"kinds": kinds, "pairs": pairs}).encode("ascii"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode:
        return count_pairs(kinds, pairs)
    answer = json.loads(done.stdout)
    return {kind: np.asarray(answer[kind], dtype=np.float64) for kind in kinds}


def main() -> None:
    """Count in a process of its own: kinds and pairs in, counts out, both as JSON."""
    asked = json.load(sys.stdin)
    counts = count_pairs(asked["kinds"], asked["pairs"])
    json.dump({kind: rows.tolist() for kind, rows in counts.items()}, sys.stdout)


if __name__ == "__main__":
    main()

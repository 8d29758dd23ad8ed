"""chrF: character n-gram counts of every pair, and scores from summed counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDERS = 6
WIDTH = 3 * ORDERS
BETA = 2


def count_chrf(
    references: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """Return the character n-gram counts of every pair.

    The counts are sacrebleu's, made by sorting numbers instead of hashing texts.

    Parameters
    ----------
    references, candidates
        Texts of equal number, compared in lower case and without white space.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs, 18)``: n-grams of the candidate, of the reference, and
        clipped matches, for each of the orders 1 to 6.

    References
    ----------
    Popović M. chrF: character n-gram F-score for automatic MT evaluation. WMT
    2015:392-395.

    Examples
    --------
    >>> count_chrf(["abab"], ["ab b"])[0, :6].tolist()
    [3.0, 4.0, 3.0, 2.0, 3.0, 1.0]
    """
    counts = np.zeros((len(references), WIDTH))
    for row, reference, candidate in zip(counts, references, candidates, strict=True):
        row[:] = _count_pair(_characters(reference), _characters(candidate))
    return counts


def _characters(text: str) -> NDArray[np.int64]:
    plain = "".join(text.lower().split())
    coded = plain.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(coded, dtype="<u4").astype(np.int64)


def _count_pair(truth: NDArray[np.int64], told: NDArray[np.int64]) -> list[int]:
    """Return candidate, reference and shared n-grams of every order.

    An n-gram is a number: that of its first characters among all such, and its last
    character. Numbers stay small, so that any text fits.
    """
    letters = np.unique(np.concatenate([truth, told]), return_inverse=True)[1]
    last = [letters[: len(truth)], letters[len(truth) :]]
    grams, found = list(last), []
    for order in range(ORDERS):
        if order:
            grams = [
                gram[:-1] * (len(letters) + 1) + letter[order:]
                for gram, letter in zip(grams, last, strict=True)
            ]
        size = len(grams[0])
        number = np.unique(np.concatenate(grams), return_inverse=True)[1]
        grams = [number[:size], number[size:]]
        kinds = int(number.max(initial=-1)) + 1
        ours, theirs = (np.bincount(gram, minlength=kinds) for gram in grams)
        # As in sacrebleu, an order that the reference is too short for has no n-grams.
        told_grams = len(grams[1]) if size else 0
        found += [told_grams, size, int(np.minimum(ours, theirs).sum())]
    return found


def chrf_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return chrF from counts, of one pair or summed over many.

    Parameters
    ----------
    counts
        As `count_chrf` returns them, shape ``(n, 18)``.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n,)``, in [0, 1]; recall counts twice as much as precision. 0 where
        no order is on both sides.

    References
    ----------
    Popović M. WMT 2015:392-395; orders that one side lacks are left out, as sacrebleu
    does.
    """
    told, truth, shared = (counts[:, start::3] for start in range(3))
    both = (told > 0) & (truth > 0)
    size = np.maximum(both.sum(axis=1), 1)
    precision = _ratio(shared, told, both).sum(axis=1) / size
    recall = _ratio(shared, truth, both).sum(axis=1) / size
    weight = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    return _ratio(product, weight, weight > 0)


def _ratio(
    part: NDArray[np.float64], whole: NDArray[np.float64], where: NDArray[np.bool_]
) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros_like(part), where=where)

"""chrF: character n-gram counts of every pair from sacrebleu, and scores of sums."""

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
    from sacrebleu.metrics.chrf import CHRF

    # Its public methods give scores; a bootstrap needs the counts they are made of.
    scorer = CHRF(char_order=ORDERS, beta=BETA, lowercase=True)
    counts = scorer._extract_corpus_statistics(candidates, [references])
    return np.array(counts, dtype=np.float64).reshape(len(references), WIDTH)


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

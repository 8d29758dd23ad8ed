"""BLEU: n-gram counts of every pair from sacrebleu, and scores from summed counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loop.labels.language import IDEOGRAPHS

ORDERS = 4
WIDTH = 2 + 2 * ORDERS
"""Columns: tokens of the candidate, of the reference, matches and n-grams by order."""

_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")


def count_bleu(
    references: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """Return the n-gram counts of every pair, from which every BLEU can be made.

    Parameters
    ----------
    references, candidates
        Texts of equal number. They are compared in lower case, with sacrebleu's
        tokenizer ``13a``, or ``zh`` for a pair with a Chinese character.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs, 10)``: tokens of the candidate, tokens of the reference,
        clipped matches of orders 1 to 4, n-grams of the candidate of orders 1 to 4.

    References
    ----------
    Post M. A call for clarity in reporting BLEU scores. WMT 2018:186-191.

    Examples
    --------
    >>> count_bleu(["no pleural effusion"], ["no effusion"]).tolist()
    [[2.0, 3.0, 2.0, 0.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0]]
    """
    from sacrebleu.metrics.bleu import BLEU

    scorers = {
        name: BLEU(lowercase=True, tokenize=name, effective_order=True)
        for name in ("13a", "zh")
    }
    counts = np.zeros((len(references), WIDTH))
    for row, reference, candidate in zip(counts, references, candidates, strict=True):
        eastern = _IDEOGRAPH.search(reference) or _IDEOGRAPH.search(candidate)
        scorer = scorers["zh" if eastern else "13a"]
        found = scorer.sentence_score(candidate, [reference])
        row[:] = [found.sys_len, found.ref_len, *found.counts, *found.totals]
    return counts


def bleu_of(
    counts: NDArray[np.float64], order: int, *, effective: bool
) -> NDArray[np.float64]:
    """Return BLEU from counts, of one pair or summed over many.

    Parameters
    ----------
    counts
        As `count_bleu` returns them, shape ``(n, 10)``.
    order
        Longest n-gram, 1 to 4.
    effective
        Whether orders for which the candidate is too short are left out of the mean,
        as is usual for single pairs. Otherwise such a text scores 0.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n,)``, in [0, 1]. An order without a match is smoothed
        exponentially (``exp``, as in mteval); without any match BLEU is 0.

    References
    ----------
    Papineni K et al. BLEU. ACL 2002:311-318. Smoothing: Chen B, Cherry C. WMT
    2014:362-367, method 3.

    Examples
    --------
    >>> counts = np.array([[11, 12, 4, 2, 0, 0, 11, 10, 9, 8]], dtype=float)
    >>> round(float(bleu_of(counts, 2, effective=False)[0]), 5)
    0.24624
    """
    candidate, reference = counts[:, 0], counts[:, 1]
    matches, totals = counts[:, 2 : 2 + order], counts[:, 6 : 6 + order]
    there = totals > 0
    halvings = np.cumsum((matches == 0) & there, axis=1)
    smoothed = np.where(matches > 0, matches, 0.5**halvings)
    precision = np.divide(smoothed, totals, out=np.ones_like(totals), where=there)
    used = there.sum(axis=1) if effective else order
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.exp(np.log(precision).sum(axis=1) / used)
        brevity = np.exp(np.minimum(0.0, 1 - reference / candidate))
    scored = (matches > 0).any(axis=1)
    if not effective:
        scored &= there.all(axis=1)
    return np.where(scored, brevity * mean, 0.0)

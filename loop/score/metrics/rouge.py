"""ROUGE: n-gram overlap from rouge-score, longest common subsequence by bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loop.labels.texts import words

COLUMNS = ("rouge_1", "rouge_2", "rouge_l", "rouge_1_recall")
LARGEST = 10**11
"""Product of the two numbers of words beyond which ROUGE-L would take minutes."""


class _Words:
    """Words as `loop.labels.texts` finds them.

    On ASCII text the same as the tokenizer of rouge-score; that one silently drops
    every letter with an accent and every Chinese character.
    """

    def tokenize(self, text: str) -> list[str]:
        return words(text)


def measure_rouge(
    references: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """Return the ROUGE scores of every pair.

    Parameters
    ----------
    references, candidates
        Texts of equal number.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs, 4)``, in [0, 1]: F of ROUGE-1, ROUGE-2, ROUGE-L, and recall
        of ROUGE-1; no stemming. A text without words scores 0. ROUGE-L is NaN where
        the product of the two numbers of words is above `LARGEST`.

    References
    ----------
    Lin CY. ROUGE: a package for automatic evaluation of summaries. ACL workshop on
    text summarization 2004:74-81.

    Examples
    --------
    >>> measure_rouge(["No pleural effusion."], ["Effusion: no"]).round(3).tolist()
    [[0.8, 0.0, 0.4, 0.667]]
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2"], tokenizer=_Words())
    scores = np.zeros((len(references), len(COLUMNS)))
    for row, reference, candidate in zip(scores, references, candidates, strict=True):
        found = scorer.score(reference, candidate)
        one, two = found["rouge1"], found["rouge2"]
        longest = _rouge_l(words(reference), words(candidate))
        row[:] = one.fmeasure, two.fmeasure, longest, one.recall
    return scores


def _rouge_l(reference: list[str], candidate: list[str]) -> float:
    if len(reference) * len(candidate) > LARGEST:
        return float("nan")
    total = len(reference) + len(candidate)
    return 2 * common_length(reference, candidate) / total if total else 0.0


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    One row of the usual table is one integer, so that a row costs a few machine
    operations instead of a loop over words.

    References
    ----------
    Hyyrö H. Bit-parallel LCS-length computation revisited. AWOCA 2004:16-27.

    Examples
    --------
    >>> common_length("no pleural effusion seen".split(), "no effusion".split())
    2
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    mask = (1 << len(first)) - 1
    row = mask
    for word in second:
        hits = row & places.get(word, 0)
        row = ((row + hits) | (row - hits)) & mask
    return len(first) - row.bit_count()

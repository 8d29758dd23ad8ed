"""ROUGE by rouge-score, on words that keep every letter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loop.labels.language import words

COLUMNS = ("rouge_1", "rouge_2", "rouge_l", "rouge_1_recall")
LARGEST = 10_000_000
"""Product of the two numbers of words beyond which ROUGE-L would take gigabytes: the
library's table has a cell for each."""


class _Words:
    """Words as `loop.labels.language` finds them.

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

    short = RougeScorer(["rouge1", "rouge2"], tokenizer=_Words())
    full = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=_Words())
    scores = np.full((len(references), len(COLUMNS)), np.nan)
    for row, reference, candidate in zip(scores, references, candidates, strict=True):
        fits = len(words(reference)) * len(words(candidate)) <= LARGEST
        found = (full if fits else short).score(reference, candidate)
        one, two = found["rouge1"], found["rouge2"]
        row[:2] = one.fmeasure, two.fmeasure
        row[3] = one.recall
        if fits:
            row[2] = found["rougeL"].fmeasure
    return scores

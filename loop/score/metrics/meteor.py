"""METEOR by nltk, with WordNet's synonyms where its data are on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from loop.labels.language import words

LARGEST = 25_000_000
"""Product of the two numbers of words beyond which matching could take minutes."""


class _NoSynonyms:
    """Stands for a WordNet without a word, so that nltk looks nothing up."""

    def synsets(self, word: str) -> list[object]:
        return []


class _Remembering:
    """Porter's stemmer and WordNet, each asked once for a word."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer

        self.stem = cache(PorterStemmer().stem)
        self.synsets = cache(_find_wordnet().synsets)


def wordnet_version() -> str | None:
    """Return the version of the WordNet that nltk finds here, for example ``"3.0"``.

    None where it can read none; nothing is ever downloaded. ``"unknown"`` where the
    data do not say.
    """
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
        return wordnet.get_version() or "unknown"
    except (LookupError, OSError, BadZipFile, ValueError):
        # Not there, or damaged: either way no synonym is known, and the score says so.
        return None


def measure_meteor(
    references: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """Return the METEOR score of every pair.

    Parameters
    ----------
    references, candidates
        Texts of equal number.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(n_pairs, 1)``, in [0, 1]; 0 without a common word, NaN where the
        product of the two numbers of words is above `LARGEST`. nltk looks synonyms up
        by the stem of a word, so it finds fewer than WordNet has.

    References
    ----------
    Lavie A, Agarwal A. METEOR. WMT 2007:228-231; alpha 0.9, beta 3, gamma 0.5.
    """
    asked = _Remembering()
    scores = np.full((len(references), 1), np.nan)
    for row, reference, candidate in zip(scores, references, candidates, strict=True):
        truth, told = words(reference), words(candidate)
        if len(truth) * len(told) <= LARGEST:
            row[0] = _meteor(truth, told, asked)
    return scores


def meteor(reference: Sequence[str], candidate: Sequence[str]) -> float:
    """Return METEOR of two lists of words, in [0, 1].

    Examples
    --------
    >>> round(meteor("no pleural effusions".split(), "no effusion".split()), 4)
    0.3448
    """
    return _meteor(reference, candidate, _Remembering())


def _meteor(
    reference: Sequence[str], candidate: Sequence[str], asked: _Remembering
) -> float:
    from nltk.translate.meteor_score import single_meteor_score

    return float(
        single_meteor_score(reference, candidate, stemmer=asked, wordnet=asked)
    )


def _find_wordnet() -> _NoSynonyms:
    """Return nltk's WordNet, or what knows no synonym."""
    if wordnet_version() is None:
        return _NoSynonyms()
    from nltk.corpus import wordnet

    found: _NoSynonyms = wordnet
    return found

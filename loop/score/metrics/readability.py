"""What describes a candidate: Flesch reading ease by stated rules, and length."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.labels.language import words
from loop.score.metrics.base import (
    Direction,
    Metric,
    MetricInput,
    MetricOptions,
    Scores,
    Unavailable,
    both_texts,
    count_defined,
    mean_scores,
    sign,
)
from loop.stats.confusion import divide

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_END = re.compile(r"[.!?]+(?=\s|$)|\n\s*\n")


class TextCounts(NamedTuple):
    """What Flesch's formula needs of a text."""

    words: int
    sentences: int
    syllables: int


def count_text(text: str) -> TextCounts:
    """Return words, sentences and syllables of an English text.

    A word is a run of letters with inner apostrophes and hyphens; numbers are none. A
    sentence ends at ``.``, ``!`` or ``?`` before white space, or at an empty line, and
    has a word. Syllables are what pyphen's American English hyphenation finds.

    Examples
    --------
    >>> count_text("Heart size is normal. 3.5 cm nodule.")
    TextCounts(words=6, sentences=2, syllables=8)
    """
    sentences = [_WORD.findall(part) for part in _END.split(text)]
    found = [word for sentence in sentences for word in sentence]
    return TextCounts(
        len(found), sum(map(bool, sentences)), sum(map(count_syllables, found))
    )


@lru_cache(maxsize=2**16)
def count_syllables(word: str) -> int:
    """Return the parts that pyphen hyphenates a word into, 1 or more.

    The parts of a word written with hyphens count one by one.

    Examples
    --------
    >>> count_syllables("pneumonia"), count_syllables("x-ray")
    (3, 2)
    """
    positions = _hyphens().positions
    return sum(len(positions(part)) + 1 for part in word.lower().split("-"))


def reading_ease(counts: TextCounts) -> float | None:
    """Return the Flesch reading ease; None for an empty text.

    Higher reads easier, which says nothing about whether it is true. Usually 0 to
    100, without a bound on either side.

    References
    ----------
    Flesch R. A new readability yardstick. J Appl Psychol 1948;32:221-233.

    Examples
    --------
    >>> round(reading_ease(TextCounts(words=5, sentences=1, syllables=8)), 2)
    66.4
    """
    words, sentences, syllables = counts
    if not words:
        return None
    return 206.835 - 1.015 * words / sentences - 84.6 * syllables / words


@cache
def _hyphens() -> Any:
    from pyphen import Pyphen

    return Pyphen(lang="en_US")


Compare = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def _flesch(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    texts = both_texts(side, "flesch")
    if isinstance(texts, Unavailable):
        return texts
    foreign = 0
    values = np.full(len(texts.candidates), np.nan)
    for row, text in enumerate(texts.candidates):
        if side.languages and side.languages[row] != "en":
            foreign += 1
            continue
        ease = reading_ease(count_text(text))
        values[row] = np.nan if ease is None else ease
    fields = ("sent:.!?", "words:letters", "syl:en_US", "mean:cases")
    signature = sign("flesch", *fields, library="pyphen", n=count_defined(values))
    return mean_scores(values, signature, _why_undefined(values, foreign))


def _why_undefined(values: NDArray[np.float64], foreign: int) -> tuple[str, ...]:
    wordless = len(values) - count_defined(values) - foreign
    reasons = (
        (foreign, "not known to be in English"),
        (wordless, "without a word"),
    )
    return tuple(
        f"undefined for {n} of {len(values)} cases: {why}" for n, why in reasons if n
    )


def _length(
    side: MetricInput, options: MetricOptions, *, name: str, compare: Compare
) -> Scores | Unavailable:
    """Return what `compare` makes of the words of both sides."""
    texts = both_texts(side, name)
    if isinstance(texts, Unavailable):
        return texts
    counts = [np.array([len(words(text)) for text in part], float) for part in texts]
    values = compare(*counts)
    signature = sign(name, "tok:words", "mean:cases", n=count_defined(values))
    return mean_scores(values, signature)


def _own(
    reference: NDArray[np.float64], candidate: NDArray[np.float64]
) -> NDArray[np.float64]:
    return candidate


def _distance(
    reference: NDArray[np.float64], candidate: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.abs(candidate - reference)


def _ratio(
    reference: NDArray[np.float64], candidate: NDArray[np.float64]
) -> NDArray[np.float64]:
    return divide(candidate, reference)


_COUNTED = (
    "Words as ranloop counts them: a run of letters or digits, or a Chinese character"
)

READING: tuple[Metric, ...] = (
    Metric(
        name="flesch",
        title="Flesch reading ease",
        direction=Direction.NEITHER,
        low=None,
        high=None,
        needs="texts in English",
        about="How easily a candidate reads, from the lengths of its sentences and "
        "words; higher is easier, not truer.",
        reference="Flesch R. J Appl Psychol 1948;32:221-233",
        score=_flesch,
        family="reading",
    ),
    Metric(
        name="n_words",
        title="Words",
        direction=Direction.NEITHER,
        low=0.0,
        high=None,
        needs="texts",
        about="Words of a candidate.",
        reference=_COUNTED,
        score=partial(_length, name="n_words", compare=_own),
        family="reading",
    ),
    Metric(
        name="length_ratio",
        title="Length ratio",
        direction=Direction.NEITHER,
        low=0.0,
        high=None,
        needs="texts",
        about="Words of a candidate per word of its reference.",
        reference=_COUNTED,
        score=partial(_length, name="length_ratio", compare=_ratio),
        family="reading",
    ),
    Metric(
        name="length_difference",
        title="Length difference",
        direction=Direction.LOWER,
        low=0.0,
        high=None,
        needs="texts",
        about="Words by which a candidate is longer or shorter than its reference: "
        "what a metric of content must beat.",
        reference=_COUNTED,
        score=partial(_length, name="length_difference", compare=_distance),
        family="reading",
    ),
)

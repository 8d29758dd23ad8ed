"""The entries of the registry that describe a candidate: reading ease and length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loop.labels.texts import words
from loop.score.metric import (
    Direction,
    Metric,
    MetricOptions,
    Scores,
    Side,
    Unavailable,
)
from loop.score.metrics.readability import count_text, reading_ease
from loop.score.metrics.texts import both_texts, mean_scores, sign


def _flesch(side: Side, options: MetricOptions) -> Scores | Unavailable:
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
    signature = sign("flesch", *fields, library="pyphen", n=_defined(values))
    return mean_scores(values, signature, _why_undefined(values, foreign))


def _why_undefined(values: NDArray[np.float64], foreign: int) -> tuple[str, ...]:
    wordless = len(values) - _defined(values) - foreign
    reasons = (
        (foreign, "not known to be in English"),
        (wordless, "without a word"),
    )
    return tuple(
        f"undefined for {n} of {len(values)} cases: {why}" for n, why in reasons if n
    )


def _n_words(side: Side, options: MetricOptions) -> Scores | Unavailable:
    counts = _lengths(side, "n_words")
    if isinstance(counts, Unavailable):
        return counts
    return _described("n_words", counts[1])


def _length_ratio(side: Side, options: MetricOptions) -> Scores | Unavailable:
    counts = _lengths(side, "length_ratio")
    if isinstance(counts, Unavailable):
        return counts
    reference, candidate = counts
    ratio = np.full(len(reference), np.nan)
    np.divide(candidate, reference, out=ratio, where=reference > 0)
    return _described("length_ratio", ratio)


def _length_difference(side: Side, options: MetricOptions) -> Scores | Unavailable:
    counts = _lengths(side, "length_difference")
    if isinstance(counts, Unavailable):
        return counts
    return _described("length_difference", np.abs(counts[1] - counts[0]))


def _lengths(side: Side, metric: str) -> NDArray[np.float64] | Unavailable:
    """Return words of the references and of the candidates, shape ``(2, n_pairs)``."""
    texts = both_texts(side, metric)
    if isinstance(texts, Unavailable):
        return texts
    return np.array([[len(words(text)) for text in part] for part in texts], float)


def _described(name: str, values: NDArray[np.float64]) -> Scores:
    return mean_scores(
        values, sign(name, "tok:words", "mean:cases", n=_defined(values))
    )


def _defined(values: NDArray[np.float64]) -> int:
    return int((~np.isnan(values)).sum())


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
        score=_n_words,
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
        score=_length_ratio,
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
        score=_length_difference,
        family="reading",
    ),
)

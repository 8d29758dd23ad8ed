"""The metrics that compare words: BLEU, ROUGE, METEOR, chrF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from loop.score.metrics import meteor, rouge
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
from loop.score.metrics.bleu import bleu_of
from loop.score.metrics.chrf import chrf_of
from loop.score.metrics.word_counts import measure

Combine = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Score = Callable[[MetricInput, MetricOptions], Scores | Unavailable]

_BLIND = "It sees neither negation nor which words matter."


def _counts(
    side: MetricInput, options: MetricOptions, kind: str, metric: str
) -> NDArray[np.float64] | Unavailable:
    if kind in side.measured:
        return side.measured[kind]
    texts = both_texts(side, metric)
    if isinstance(texts, Unavailable):
        return texts
    return measure([kind], *texts, workers=options.workers)[kind]


def _bleu(
    side: MetricInput, options: MetricOptions, *, name: str, order: int
) -> Scores | Unavailable:
    counts = _counts(side, options, "bleu", name)
    if isinstance(counts, Unavailable):
        return counts
    combine = partial(bleu_of, order=order, effective=False)
    fields = ("case:lc", "eff:no", "tok:13a+zh", "smooth:exp", "per-case:eff:yes")
    return Scores(
        per_case=bleu_of(counts, order, effective=True),
        value=_summed(counts, combine),
        signature=sign(name, *fields, library="sacrebleu", n=len(counts)),
        parts=counts,
        combine=combine,
    )


def _chrf(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    counts = _counts(side, options, "chrf", "chrf")
    if isinstance(counts, Unavailable):
        return counts
    fields = ("beta:2", "char:6", "word:0", "case:lc", "space:no")
    return Scores(
        per_case=chrf_of(counts),
        value=_summed(counts, chrf_of),
        signature=sign("chrf", *fields, library="sacrebleu", n=len(counts)),
        parts=counts,
        combine=chrf_of,
    )


def _rouge(
    side: MetricInput, options: MetricOptions, *, name: str
) -> Scores | Unavailable:
    counts = _counts(side, options, "rouge", name)
    if isinstance(counts, Unavailable):
        return counts
    per_case = counts[:, rouge.COLUMNS.index(name)]
    measured = "R" if name.endswith("recall") else "F"
    fields = (measured, "stem:no", "tok:words", "mean:cases")
    signature = sign(name, *fields, library="rouge-score", n=count_defined(per_case))
    return mean_scores(per_case, signature, _beyond(per_case, rouge.LARGEST))


def _meteor(side: MetricInput, options: MetricOptions) -> Scores | Unavailable:
    counts = _counts(side, options, "meteor", "meteor")
    if isinstance(counts, Unavailable):
        return counts
    per_case = counts[:, 0]
    version = meteor.wordnet_version()
    synonyms = "none" if version is None else f"wordnet-{version}"
    fields = ("a:0.9", "b:3", "g:0.5", "stem:porter", f"syn:{synonyms}", "tok:words")
    signature = sign(
        "meteor", *fields, "mean:cases", library="nltk", n=count_defined(per_case)
    )
    return mean_scores(per_case, signature, _beyond(per_case, meteor.LARGEST))


def _summed(counts: NDArray[np.float64], combine: Combine) -> float | None:
    if not len(counts):
        return None
    return float(combine(counts.sum(axis=0)[None])[0])


def _beyond(per_case: NDArray[np.float64], limit: int) -> tuple[str, ...]:
    """Return how many pairs were too long to match, if any was."""
    why = f"the numbers of words multiply to more than {limit:,}"
    skipped = len(per_case) - count_defined(per_case)
    told = f"undefined for {skipped} of {len(per_case)} cases: {why}"
    return (told,) if skipped else ()


def _entry(name: str, title: str, score: Score, about: str, reference: str) -> Metric:
    return Metric(
        name=name,
        title=title,
        direction=Direction.HIGHER,
        low=0.0,
        high=1.0,
        needs="texts",
        about=f"{about} {_BLIND}",
        reference=reference,
        score=score,
    )


_PAPINENI = "Papineni K et al. ACL 2002:311-318; Post M. WMT 2018:186-191"
_LIN = "Lin CY. ACL workshop on text summarization 2004:74-81"

OVERLAP: tuple[Metric, ...] = (
    *(
        _entry(
            f"bleu_{order}",
            f"BLEU-{order}",
            partial(_bleu, name=f"bleu_{order}", order=order),
            f"Precision of {'' if order == 1 else f'runs of up to {order} '}words, "
            "with a penalty for brevity.",
            _PAPINENI,
        )
        for order in range(1, 5)
    ),
    _entry(
        "rouge_1",
        "ROUGE-1",
        partial(_rouge, name="rouge_1"),
        "F of shared words.",
        _LIN,
    ),
    _entry(
        "rouge_1_recall",
        "ROUGE-1 recall",
        partial(_rouge, name="rouge_1_recall"),
        "Share of the reference's words in the candidate.",
        _LIN,
    ),
    _entry(
        "rouge_2",
        "ROUGE-2",
        partial(_rouge, name="rouge_2"),
        "F of shared pairs of words, across sentences too.",
        _LIN,
    ),
    _entry(
        "rouge_l",
        "ROUGE-L",
        partial(_rouge, name="rouge_l"),
        "F of the longest common subsequence of words.",
        _LIN,
    ),
    _entry(
        "meteor",
        "METEOR",
        _meteor,
        "Weighted F of words equal in form, stem or (with WordNet) meaning, less for "
        "broken order.",
        "Lavie A, Agarwal A. WMT 2007:228-231",
    ),
    _entry(
        "chrf",
        "chrF",
        _chrf,
        "F of shared runs of up to 6 characters, recall counted twice.",
        "Popović M. WMT 2015:392-395",
    ),
)

KIND_OF: Mapping[str, str] = MappingProxyType(
    {metric.name: metric.name.partition("_")[0] for metric in OVERLAP}
)
"""The counts of `loop.score.metrics.word_counts` that a metric is made from."""

"""The embedded judge as metrics: its own score, and GREEN's formulas on its counts.

It needs no model and is none: findings are read with the guides of the newest shipped
extractor, and compared by the weights of ``labels/judging.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_bytes
from loop.core.errors import EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import REVISION
from loop.engines.rules.judging import GreenCategory, judge_answer
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.vocabulary import has_cjk
from loop.engines.rules.weights import read_judging
from loop.labels.language import guess_language
from loop.prompts.catalog import read_version
from loop.score.experts.error_counts import share_matched
from loop.score.experts.error_tables import ErrorTable
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

_OSTMEIER = "Ostmeier S et al. Findings of EMNLP 2024:374-390"
_BY_HAND = (
    "Of findings and errors that the embedded judge counts; it is no language model "
    "and reads English only."
)


class _EmbeddedJudge(NamedTuple):
    reader: FindingReader
    signature: tuple[str, ...]
    """What it reads with."""


class _PairCounts(NamedTuple):
    """What the judge says of pairs."""

    score: NDArray[np.float64]
    counts: NDArray[np.float64]
    """Shape ``(n_pairs, 3)``: matched, significant errors, insignificant errors."""

    errors: NDArray[np.float64]
    """Shape ``(n_pairs, n_categories, 2)``: by `GreenCategory` and significance."""

    signature: tuple[str, ...]
    notes: tuple[str, ...]


@lru_cache(maxsize=1)
def _open_judge() -> _EmbeddedJudge:
    labels = bundled() / "labels"
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    weights = digest_bytes((labels / "judging.yaml").read_bytes())
    return _EmbeddedJudge(
        FindingReader(version.guides, read_cues(labels), read_judging()),
        (
            f"rules:{REVISION}",
            f"guides:{version.ref}:{version.digest[:8]}",
            f"weights:{weights[:8]}",
        ),
    )


@lru_cache(maxsize=2)
def _count(
    references: tuple[str, ...], candidates: tuple[str, ...], languages: tuple[str, ...]
) -> _PairCounts:
    """Judge every pair once; all metrics of a system ask for the same pairs."""
    judge = _open_judge()
    table = np.full((len(references), 4), np.nan)
    errors = np.full((len(references), len(GreenCategory), 2), np.nan)
    silent = foreign = 0
    for row, pair in enumerate(zip(references, candidates, strict=True)):
        reference, candidate = pair
        texts = [text for text in pair if text.strip()]
        told = {languages[row]} if languages else set(map(guess_language, texts))
        if told - {judge.reader.data.language} or any(map(has_cjk, texts)):
            foreign += 1
            continue
        try:
            said = judge_answer(judge.reader, reference, candidate)
        except EngineError:
            silent += 1
            continue
        table[row] = (
            said.score,
            len(said.matched),
            said.count(*GreenCategory),
            said.count(*GreenCategory, significant=False),
        )
        errors[row] = [
            [said.count(one), said.count(one, significant=False)]
            for one in GreenCategory
        ]
    notes = [
        f"undefined for {count} of {len(references)} cases: {why}"
        for count, why in (
            (foreign, "not in English"),
            (silent, "the reference holds nothing to read"),
        )
        if count
    ]
    return _PairCounts(table[:, 0], table[:, 1:], errors, judge.signature, tuple(notes))


def count_errors(
    references: Mapping[str, str], candidates: Mapping[str, Mapping[str, str]]
) -> ErrorTable:
    """Return the errors of each category that the embedded judge counts.

    Parameters
    ----------
    references
        Text by case id.
    candidates
        Text by system and case id; cases without a reference are left out.

    Returns
    -------
    ErrorTable
        Of one rater, the judge; NaN where it cannot read a pair.
    """
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    for system, texts in candidates.items():
        ids = [case for case in references if case in texts]
        pairs = (
            tuple(references[case] for case in ids),
            tuple(texts[case] for case in ids),
        )
        counted = _count(*pairs, ())
        found |= {
            (case, system): row for case, row in zip(ids, counted.errors, strict=True)
        }
    keys = tuple(sorted(found))
    empty = np.empty((0, len(GreenCategory), 2))
    rows = np.stack([found[key] for key in keys]) if keys else empty
    return ErrorTable(
        keys=keys,
        raters=("judge",),
        categories=tuple(GreenCategory),
        counts=rows[:, None],
        signature="|".join(("judge_errors", *_open_judge().signature)),
    )


def _measure(
    side: MetricInput,
    options: MetricOptions,
    *,
    name: str,
    value: Callable[[_PairCounts], NDArray[np.float64]],
    more: tuple[str, ...],
) -> Scores | Unavailable:
    texts = both_texts(side, name)
    if isinstance(texts, Unavailable):
        return texts
    counted = _count(*texts, side.languages)
    per_case = value(counted)
    fields = (*counted.signature, *more, "mean:cases")
    signature = sign(name, *fields, n=count_defined(per_case))
    return mean_scores(per_case, signature, counted.notes)


def _shared(
    counted: _PairCounts, *, significant: float = 1.0, insignificant: float = 0.0
) -> NDArray[np.float64]:
    """Return a formula of GREEN's kind; 1 where there is nothing to match or to err."""
    shares = share_matched(
        counted.counts, significant=significant, insignificant=insignificant
    )
    empty = np.isnan(shares) & ~np.isnan(counted.score)
    return np.where(empty, 1.0, shares)


def _entry(
    name: str,
    title: str,
    value: Callable[[_PairCounts], NDArray[np.float64]],
    about: str,
    *more: str,
    direction: Direction = Direction.HIGHER,
) -> Metric:
    return Metric(
        name=name,
        title=title,
        direction=direction,
        low=0.0,
        high=1.0 if direction is Direction.HIGHER else None,
        needs="texts",
        about=f"{about} {_BY_HAND}",
        reference=_OSTMEIER,
        score=partial(_measure, name=name, value=value, more=more),
        family="judge",
    )


JUDGE: tuple[Metric, ...] = (
    _entry(
        "judge",
        "Embedded judge",
        lambda counted: counted.score,
        "What matched findings are worth, of that and what errors take away.",
    ),
    _entry(
        "judge_green",
        "GREEN, embedded judge",
        _shared,
        "Matched findings, of these and significant errors: M / (M + S).",
        "empty:1",
    ),
    _entry(
        "judge_green_f1",
        "GREEN-F1, embedded judge",
        partial(_shared, significant=0.5),
        "2M / (2M + S); orders candidates as GREEN does.",
        "empty:1",
    ),
    _entry(
        "judge_formula",
        "Formula, embedded judge",
        partial(_shared, significant=2.0, insignificant=0.5),
        "M / (M + 2S + 0.5I): insignificant errors count, too.",
        "empty:1",
    ),
    _entry(
        "judge_errors",
        "GREEN-EC, embedded judge",
        lambda counted: counted.counts[:, 1],
        "Significant errors, S.",
        direction=Direction.LOWER,
    ),
)
"""The embedded judge's metrics, its own score first."""

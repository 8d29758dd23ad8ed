"""One metric: what it needs, which way is better, and what it says of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.records import Codes, ExtractorFacts, NoFinding, Uncertain
from loop.stats.confusion import ZeroDivision

_GIVEN: Final = ExtractorFacts(ref="given", digest="", engine="")


class Direction(StrEnum):
    """Which way a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"
    """It describes; it does not grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInput:
    """What a metric is given of one system: pairs that have a candidate."""

    system: str
    case_ids: tuple[str, ...]
    references: tuple[str, ...] | None
    """Texts; None when only labels were given."""

    candidates: tuple[str, ...] | None
    languages: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    """What is known of each patient beside the texts; empty where nothing is."""

    labels: tuple[str, ...]
    """Label ids of the codes."""

    reference_codes: Codes
    candidate_codes: Codes
    comparable: tuple[str, ...]
    """Label ids with a CheXpert counterpart."""

    extractor: ExtractorFacts = _GIVEN
    """What read the codes, for their signatures."""

    no_finding: NoFinding = NoFinding.RAN
    measured: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Counts of every pair that several metrics share, by kind, where already made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """What a user may set."""

    bertscore_model: Path | None = None
    """Folder of a local encoder."""

    bertscore_layer: int | None = None
    uncertain: Uncertain = Uncertain.WRONG
    zero_division: ZeroDivision = "skip"
    reading: str = ""
    """As of `Conventions`."""

    workers: int = 2
    """Processes for the metrics that are slow in Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one metric says of one system."""

    per_case: NDArray[np.float64]
    """Shape ``(n_pairs,)``; NaN where undefined."""

    value: float | None
    """Of the system: the mean of `per_case`, or the metric's own corpus value."""

    signature: str
    """Library, version and every convention, for example
    ``"rouge_l|F|stem:no|tok:words|rouge-score:0.1.2"``."""

    parts: NDArray[Any] | None = None
    """Counts per case from which a corpus value is made; None when it is the mean."""

    combine: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    """From summed `parts`, shape ``(n, n_parts)``, to corpus values ``(n,)``."""

    notes: tuple[str, ...] = ()


class Unavailable(NamedTuple):
    """Why a metric did not run; the others go on."""

    metric: str
    reason: str
    """What is missing and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One entry of the registry."""

    name: str
    """Identifier, for example ``"rouge_l"``."""

    title: str
    """Name as published, for example ``"ROUGE-L"``."""

    direction: Direction
    low: float | None
    """Least possible value; None without a bound."""

    high: float | None
    needs: str
    """Empty, or what must be there: an extra, a model, texts."""

    about: str
    """One sentence: what it measures, and what it does not see."""

    reference: str
    """Where it was published."""

    score: Callable[[MetricInput, MetricOptions], Scores | Unavailable]
    family: str = "text"
    """``"labels"``, ``"judge"``, ``"text"`` or ``"reading"``."""


class PairTexts(NamedTuple):
    """Both sides of every pair."""

    references: tuple[str, ...]
    candidates: tuple[str, ...]


def both_texts(side: MetricInput, metric: str) -> PairTexts | Unavailable:
    """Return the texts of a side, or that labels were given instead."""
    if side.references is None:
        return Unavailable(metric, _lacking("references"))
    if side.candidates is None:
        return Unavailable(metric, _lacking("candidates"))
    return PairTexts(side.references, side.candidates)


def sign(metric: str, *fields: str, library: str = "", n: int) -> str:
    """Return a signature: name, conventions, library with its version, cases.

    Examples
    --------
    >>> sign("length_ratio", "tok:words", n=3)
    'length_ratio|tok:words|n:3'
    """
    used = [f"{library}:{version(library)}"] if library else []
    return "|".join([metric, *fields, *used, f"n:{n}"])


def count_defined(values: NDArray[np.float64]) -> int:
    """Return how many values are defined."""
    return int((~np.isnan(values)).sum())


def mean_scores(
    values: NDArray[np.float64], signature: str, notes: tuple[str, ...] = ()
) -> Scores:
    """Return scores whose system value is the mean over the defined cases."""
    defined = values[~np.isnan(values)]
    value = float(defined.mean()) if defined.size else None
    return Scores(per_case=values, value=value, signature=signature, notes=notes)


def _lacking(what: str) -> str:
    return (
        f"the {what} of this system are labels, not texts. Give files with a text "
        "column to have it."
    )

"""From joined and graded pairs to everything a document tells about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.score.confused import confusions
from loop.score.documents.document import ScoreDocument, describe_sources
from loop.score.documents.experts import Experts, describe_experts
from loop.score.experts.ratings import Ratings
from loop.score.metric import MetricOptions
from loop.score.metrics.run import run_metrics
from loop.score.metrics.sheet import MetricCorrelations, ScoreSheet, correlation_matrix
from loop.score.panel import panel
from loop.score.ran import score
from loop.score.records import Conventions, Graded, Joined
from loop.score.result import RanScore
from loop.stats.confusion import Confusion

LABEL_SCORES = ("ran_score", "ran_errors")
"""Metrics that are there whatever was asked for: they come with the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How pairs are counted."""

    conventions: Conventions = field(default_factory=Conventions)
    metrics: tuple[str, ...] = ("all",)
    """Names or families; empty for the label scores alone."""

    options: MetricOptions = field(default_factory=MetricOptions)
    resamples: int = 10_000
    permutations: int = 10_000
    seed: int = 0
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read of the pairs."""

    joined: Joined
    graded: Graded
    second: Graded | None = None
    """The same pairs read by a second extractor."""

    errors: Mapping[str, Confusion] | None = None
    """The extractor's own errors by label; None for no correction."""

    ratings: Ratings | None = None
    """Experts' points for some of the candidates."""

    remarks: tuple[str, ...] = ()


def build_document(read: Read, taxonomy: Taxonomy, counting: Counting) -> ScoreDocument:
    """Return everything that is told of the pairs.

    Raises
    ------
    DataError
        A metric is unknown, or the ratings are of no candidate here.
    """
    joined, graded = read.joined, read.graded
    found = _rank(graded, joined, counting, read.errors)
    sheet = _with_interval(_measure(read, taxonomy, counting), found)
    second = None if read.second is None else _rank(read.second, joined, counting)
    twins = find_twins(sheet)
    between = _without(correlation_matrix(sheet), twins)
    return ScoreDocument(
        score=found,
        names={label.id: label.name for label in taxonomy.labels},
        sheet=sheet,
        sources=describe_sources(joined),
        confused=confusions(
            findings_of(graded), counting.conventions, coverage=joined.coverage
        ),
        correlations=between if len(between.metrics) > 1 else None,
        twins=twins,
        outcomes=graded.outcomes,
        panel=None if second is None else panel(found, second),
        experts=_experts(sheet, read, counting.seed),
        problems=graded.problems,
        remarks=read.remarks,
    )


def findings_of(graded: Graded) -> Graded:
    """Return `graded` without "No Finding".

    It is missed wherever something is invented in a clear case, and invented wherever
    everything is missed: that says nothing of what is taken for what.
    """
    kept = [place for place, name in enumerate(graded.labels) if name != NO_FINDING]
    return replace(
        graded,
        labels=tuple(graded.labels[place] for place in kept),
        reference=graded.reference[:, kept],
        candidates=graded.candidates[:, :, kept],
    )


def _experts(sheet: ScoreSheet, read: Read, seed: int) -> Experts | None:
    if read.ratings is None:
        return None
    ids, patients = read.joined.case_ids, read.joined.patients
    owners = None if patients is None else dict(zip(ids, patients, strict=True))
    return describe_experts(sheet, read.ratings, patients=owners, seed=seed)


def find_twins(sheet: ScoreSheet) -> dict[str, str]:
    """Return the metrics whose every value is that of an earlier one, mapped to it.

    Macro and micro averages of one thing differ for systems, not for single cases.
    """
    values: dict[str, list[NDArray[np.float64]]] = {}
    for one in sheet.results:
        values.setdefault(one.metric.name, []).append(one.per_case)
    first: dict[bytes, str] = {}
    twins = {}
    for name, columns in values.items():
        seen = first.setdefault(np.concatenate(columns).tobytes(), name)
        if seen != name:
            twins[name] = seen
    return twins


def _with_interval(sheet: ScoreSheet, found: RanScore) -> ScoreSheet:
    """Return `sheet` with the Ran Scores of the ranking: one number, one interval.

    The ranking draws the same cases for all systems, a metric those of each.
    """
    ranked = {one.system: one.ran_score for one in found.systems}
    results = tuple(
        one._replace(estimate=ranked[one.system])
        if one.metric.name == LABEL_SCORES[0]
        else one
        for one in sheet.results
    )
    return replace(sheet, results=results)


def _without(found: MetricCorrelations, twins: Mapping[str, str]) -> MetricCorrelations:
    kept = [place for place, name in enumerate(found.metrics) if name not in twins]
    return MetricCorrelations(
        tuple(found.metrics[place] for place in kept),
        found.tau_b[np.ix_(kept, kept)],
        found.n[np.ix_(kept, kept)],
    )


def _rank(
    graded: Graded,
    joined: Joined,
    counting: Counting,
    errors: Mapping[str, Confusion] | None = None,
) -> RanScore:
    return score(
        graded,
        counting.conventions,
        coverage=joined.coverage,
        errors=errors,
        resamples=counting.resamples,
        permutations=counting.permutations,
        seed=counting.seed,
        confidence=counting.confidence,
    )


def _measure(read: Read, taxonomy: Taxonomy, counting: Counting) -> ScoreSheet:
    return run_metrics(
        read.joined,
        read.graded,
        taxonomy,
        (*LABEL_SCORES, *counting.metrics),
        counting.options,
        resamples=counting.resamples,
        seed=counting.seed,
        confidence=counting.confidence,
    )

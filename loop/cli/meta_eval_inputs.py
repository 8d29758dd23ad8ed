"""What ``meta-eval`` works on: ratings, and scores from files or of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from loop.cli.console import material, note
from loop.cli.score_labels import ExtractorOptions, read_labels
from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.run.asking import EngineOptions
from loop.score.experts.counts import count_agreement
from loop.score.experts.documents import MetaDocument
from loop.score.experts.meta import meta_evaluate
from loop.score.experts.radpref import RadPref, read_radpref
from loop.score.experts.ratings import Ratings
from loop.score.experts.reading import read_ratings
from loop.score.experts.scores import ScoredMetric, ScoreTable, read_scores
from loop.score.grading import ungraded
from loop.score.joining import join_texts
from loop.score.metric import Direction, Metric, MetricOptions
from loop.score.metrics.registry import ALL, METRICS, find
from loop.score.metrics.run import run_metrics
from loop.score.metrics.sheet import ScoreSheet
from loop.score.records import Joined, NoFinding
from loop.score.scoring import Read

_DESCRIBES = "describes and does not grade; taken as higher is better"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScoringOptions:
    """How texts are scored, where there are no scores."""

    metrics: tuple[str, ...]
    extractor: str | None
    release: str | None
    engine: str | None
    bertscore_model: Path | None


class ResamplingOptions(NamedTuple):
    """How much is drawn, and from which seed."""

    resamples: int
    permutations: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaEvaluationRequest:
    """What is compared with what."""

    scores: tuple[Path, ...]
    """Files of scores; none: the texts of RadPref are scored."""

    ratings: Path | None
    radpref: Path | None
    """Exactly one of these two is given."""

    scale: tuple[float, float] | None
    metrics: tuple[str, ...]
    lower: tuple[str, ...]
    texts: TextScoringOptions
    meant: ResamplingOptions
    quiet: bool


class MetaEvaluationResult(NamedTuple):
    """What came of it."""

    document: MetaDocument
    sheet: ScoreSheet | None
    """Scores, where texts were scored."""


class _TextScores(NamedTuple):
    table: ScoreTable
    sheet: ScoreSheet | None = None
    notes: tuple[str, ...] = ()


def evaluate(
    request: MetaEvaluationRequest, workspace: Workspace | None
) -> MetaEvaluationResult:
    """Return how well the metrics of `request` agree with its raters.

    Raises
    ------
    DataError
        A file is wrong, or scores and ratings have no candidate in common.
    EngineError
        The engine cannot read the texts.
    """
    rated = None if request.radpref is None else read_radpref(request.radpref)
    ratings = _ratings(request, rated)
    scored = _scored(request, rated, workspace)
    patients = rated.patients if rated else None
    meant = request.meant
    result = meta_evaluate(scored.table, ratings, patients=patients, **meant._asdict())
    counts = rated and count_agreement(
        ratings,
        rated.counts,
        patients=patients,
        resamples=meant.resamples,
        seed=meant.seed,
    )
    notes = list(scored.notes)
    if ratings.repeated:
        notes.append(f"{ratings.repeated} repeated ratings were used once.")
    document = MetaDocument(
        source=_source(request),
        result=result,
        counts=counts or (),
        files=_files(request, rated),
        notes=tuple(notes),
    )
    return MetaEvaluationResult(document, scored.sheet)


def _ratings(request: MetaEvaluationRequest, rated: RadPref | None) -> Ratings:
    if rated is not None:
        return rated.ratings
    if request.ratings is None:
        raise ValueError("neither ratings nor RadPref are given")
    return read_ratings(request.ratings, scale=request.scale)


def _scored(
    request: MetaEvaluationRequest, rated: RadPref | None, workspace: Workspace | None
) -> _TextScores:
    if request.scores or rated is None:
        known = {
            name: known_metric(metric, request.lower)
            for name, metric in METRICS.items()
        }
        known |= {
            name: ScoredMetric(name, name, lower=True, note="lower by --lower")
            for name in request.lower
            if name not in METRICS
        }
        table = read_scores(request.scores, known, wanted=request.metrics)
        _check_lower(table, request.lower)
        return _grading(_TextScores(table), request)
    # Reading texts needs engines, and pandas: heavy for who brings scores.
    scored = score_texts(rated, request.texts, workspace, quiet=request.quiet)
    metrics = tuple(
        known_metric(METRICS[one.name], request.lower, one.signature)
        for one in scored.table.metrics
    )
    table = replace(scored.table, metrics=metrics)
    _check_lower(table, request.lower)
    return _grading(_TextScores(table, scored.sheet, scored.notes), request)


def _check_lower(table: ScoreTable, lower: Sequence[str]) -> None:
    """Refuse a direction for what is not there, or against what is known."""
    for name in lower:
        known = METRICS.get(name)
        if name not in [metric.name for metric in table.metrics]:
            raise DataError(f"--lower {name}: there is no such metric. Correct it.")
        if known is not None and known.direction is not Direction.NEITHER:
            raise DataError(
                f"--lower {name}: ranloop knows that {known.direction.value} is better "
                "there. Leave it out."
            )


def known_metric(
    metric: Metric, lower: Sequence[str], signature: str = ""
) -> ScoredMetric:
    """Return a metric of the registry as the comparison with raters needs it."""
    neither = metric.direction is Direction.NEITHER
    less = metric.direction is Direction.LOWER
    return ScoredMetric(
        metric.name,
        metric.title,
        lower=less or (neither and metric.name in lower),
        note=_DESCRIBES if neither else "",
        signature=signature,
    )


def _grading(scored: _TextScores, request: MetaEvaluationRequest) -> _TextScores:
    """Leave out what only describes, unless it was named."""
    table = scored.table
    kept = [
        place
        for place, metric in enumerate(table.metrics)
        if metric.note != _DESCRIBES or metric.name in request.metrics
    ]
    if not kept or len(kept) == len(table.metrics):
        return scored
    dropped = [one.name for place, one in enumerate(table.metrics) if place not in kept]
    grading = ScoreTable(
        keys=table.keys,
        metrics=tuple(table.metrics[place] for place in kept),
        values=table.values[:, kept],
        unavailable=table.unavailable,
    )
    said = (
        f"Left out, because they describe and do not grade: {', '.join(dropped)}. "
        "Name one with --metric to see it."
    )
    return _TextScores(grading, scored.sheet, (*scored.notes, said))


def _source(request: MetaEvaluationRequest) -> str:
    if request.ratings is not None:
        return request.ratings.name
    return "RadPref"


def _files(
    request: MetaEvaluationRequest, rated: RadPref | None
) -> tuple[tuple[str, str], ...]:
    named = () if request.ratings is None else (request.ratings,)
    read = tuple((path.name, _digest(path)) for path in (*named, *request.scores))
    return (*(rated.files if rated else ()), *read)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class ScoredTexts(NamedTuple):
    """What the metrics say of the texts."""

    table: ScoreTable
    sheet: ScoreSheet
    notes: tuple[str, ...]


def score_texts(
    rated: RadPref,
    texts: TextScoringOptions,
    workspace: Workspace | None,
    *,
    quiet: bool,
) -> ScoredTexts:
    """Return every metric's value of every candidate.

    Labels are read, which may ask a model for hours, only for metrics of labels.

    Raises
    ------
    DataError
        There is no such metric or extractor.
    EngineError
        The engine cannot read the texts.
    typer.BadParameter
        An extractor is named and no metric needs one.
    """
    names = texts.metrics or (ALL,)
    labels = any(metric.family == "labels" for metric in find(names))
    taxonomy = read_taxonomy(material(workspace).labels)
    joined = join_texts(
        rated.references, rated.candidates, taxonomy, patients=rated.patients
    )
    if labels:
        read = _read(workspace, joined, taxonomy, texts, quiet=quiet)
        graded, remarks = read.graded, read.remarks
    else:
        _refuse_extractor(texts)
        graded, remarks = ungraded(joined, taxonomy), ()
    if not quiet:
        note("scoring the texts")
    options = MetricOptions(bertscore_model=texts.bertscore_model)
    # The sheet's own intervals are of systems; here only the values per case count.
    sheet = run_metrics(joined, graded, taxonomy, names, options, resamples=1)
    notes = (*joined.notes, *remarks)
    left = len(joined.empty_references)
    if left:
        notes += (f"{left} references without a word are left out.",)
    return ScoredTexts(tabulate(sheet), sheet, notes)


def _refuse_extractor(texts: TextScoringOptions) -> None:
    """Refuse options that would do nothing."""
    if any(one is not None for one in (texts.extractor, texts.release, texts.engine)):
        raise typer.BadParameter(
            "--extractor, --release and --engine read labels, which no metric named "
            "here needs: leave them out, or name a metric of labels"
        )


def _read(
    workspace: Workspace | None,
    joined: Joined,
    taxonomy: Taxonomy,
    texts: TextScoringOptions,
    *,
    quiet: bool,
) -> Read:
    """Return the labels of both sides, read as the user wishes."""
    wish = ExtractorOptions(
        version=texts.extractor,
        release=texts.release,
        engine=texts.engine,
        also=None,
        also_engine="rules",
        bias=None,
        asking=EngineOptions(tell=note),
    )
    return read_labels(workspace, joined, taxonomy, wish, NoFinding.RAN, quiet=quiet)


def tabulate(sheet: ScoreSheet) -> ScoreTable:
    """Return the per-case values of a sheet."""
    keys = tuple(
        sorted((case, each) for each in sheet.systems for case in sheet.case_ids[each])
    )
    places = {key: place for place, key in enumerate(keys)}
    metrics: dict[str, ScoredMetric] = {}
    # Those of the systems, each once: n and labels that count may differ.
    signatures: dict[str, dict[str, None]] = {}
    columns: dict[str, list[float]] = {}
    for one in sheet.results:
        name = one.metric.name
        signed = signatures.setdefault(name, {})
        signed[one.signature] = None
        metrics[name] = ScoredMetric(
            name, one.metric.title, signature=" and ".join(signed)
        )
        column = columns.setdefault(name, [np.nan] * len(keys))
        cases = sheet.case_ids[one.system]
        for case, value in zip(cases, one.per_case.tolist(), strict=True):
            column[places[case, one.system]] = value
    return ScoreTable(
        keys=keys,
        metrics=tuple(metrics.values()),
        values=np.array(list(columns.values())).T.reshape(len(keys), len(metrics)),
        unavailable=tuple((one.metric, one.reason) for one in sheet.unavailable),
    )

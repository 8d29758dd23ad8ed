"""The texts of RadPref scored by every metric, for ``meta-eval``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import typer

from loop.cli.console import note
from loop.cli.meta_eval_inputs import TextScoringOptions
from loop.cli.score_inputs import material
from loop.cli.score_labels import ExtractorOptions, read_labels
from loop.core.paths import Workspace
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.report.score.build import Read
from loop.run.asking import EngineOptions
from loop.score.experts.radpref import RadPref
from loop.score.experts.scores import ScoredMetric, ScoreTable
from loop.score.grading import ungraded
from loop.score.joining import join_texts
from loop.score.metric import MetricOptions
from loop.score.metrics.registry import ALL, find
from loop.score.metrics.run import run_metrics
from loop.score.metrics.sheet import ScoreSheet
from loop.score.records import Joined, NoFinding


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

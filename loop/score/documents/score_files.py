"""A score as a page, as Markdown, as JSON data, and the folder that holds them all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from loop import __version__
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import (
    folder_beside,
    replace_folder,
    write_atomic,
    write_error,
)
from loop.core.nouns import counted
from loop.core.safe_text import format_csv, quoted
from loop.documents.charts import (
    Grid,
    GridCell,
    tint_colour,
    tint_percent,
)
from loop.documents.svg import DARK, LIGHT
from loop.documents.tables import neutralise
from loop.documents.templates import render_template, shipped_templates
from loop.score.bias import SensitivityPanel
from loop.score.counting import Confused
from loop.score.documents.figures import (
    differences_figure,
    f1_grid,
    figure_files,
    invented_grid,
    left_out_grid,
    metrics_grid,
    missed_grid,
    ranking_figure,
)
from loop.score.documents.sentences import (
    COMPARABLE,
    READINGS,
    WAYS,
    Cells,
    agreement_line,
    caution_sentences,
    comparison_sentence,
    convention_sentences,
    count_cells,
    coverage_lines,
    extractor_name,
    left_out_line,
    moves_sentence,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    scored_words,
    verdict_words,
)
from loop.score.metrics.base import Metric
from loop.score.metrics.score_sheet import (
    MetricCorrelations,
    MetricResult,
    format_per_case,
)
from loop.score.records import (
    CaseScore,
    Coverage,
    ExtractorFacts,
    LabelScore,
    RanScore,
    SystemDifference,
    SystemScore,
)
from loop.score.scoring import Experts, ScoreDocument, metric_rows, worst_cases
from loop.stats.intervals import Estimate


def render_score_markdown(
    document: ScoreDocument, *, templates: Path | None = None
) -> str:
    """Return the score as a Markdown document.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    folder = templates or shipped_templates()
    return render_template(folder, "score.md.jinja", document_variables(document))


def render_errors_csv(document: ScoreDocument) -> str:
    """Return one row per case, system and label that is missed or invented.

    Ids and labels only, safe to open in a spreadsheet.
    """
    rows = [
        [neutralise(cell) for cell in (case.case_id, case.system, label, error)]
        for case in document.score.cases
        for error, labels in (("missed", case.missed), ("invented", case.invented))
        for label in labels
    ]
    return format_csv(("id", "system", "label", "error"), rows)


def render_score_html(document: ScoreDocument, *, templates: Path | None = None) -> str:
    """Return the score as one HTML page.

    The page holds counts, ids and digests, never a text of a case.

    Parameters
    ----------
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    differences = differences_figure(document)
    variables = {
        **document_variables(document),
        # Figures escape all text in them themselves.
        "ranking": Markup(ranking_figure(document)),
        "differences": None if differences is None else Markup(differences),
        "tint": _tint,
        "light": LIGHT,
        "dark": DARK,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "score.html.jinja", variables)


def _tint(grid: Grid, cell: GridCell) -> str:
    """Return the style of a cell: its colour mixed with nothing."""
    share = tint_percent(cell)
    if not share:
        return ""
    colour = f"var(--{tint_colour(grid, cell)})"
    return f"background: color-mix(in srgb, {colour} {share}%, transparent)"


FIGURES = "figures"
_OWN = ("score.html", "score.md", "scores.json", "per_case.csv", "errors.csv", FIGURES)


def render_files(
    document: ScoreDocument, *, templates: Path | None = None
) -> Mapping[str, bytes]:
    """Return the content of every file by its path within the folder.

    Raises
    ------
    DataError
        A template is missing or wrong.
    """
    texts = {
        "score.html": render_score_html(document, templates=templates),
        "score.md": render_score_markdown(document, templates=templates),
        "errors.csv": render_errors_csv(document),
        **{f"{FIGURES}/{name}": one for name, one in figure_files(document).items()},
    }
    files = {name: text.encode("utf-8") for name, text in texts.items()}
    files["per_case.csv"] = format_per_case(document.sheet)
    beside = [
        {"name": name, "sha256": digest_bytes(files[name])} for name in sorted(files)
    ]
    data = {**score_data(document), "written_beside": beside}
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return {**files, "scores.json": text.encode("utf-8")}


def check_folder(folder: Path, own: Collection[str] = ()) -> None:
    """Refuse a folder that cannot be made, or holds what no earlier score left there.

    Parameters
    ----------
    own
        Names of the files that may be there; default those of a score.

    Raises
    ------
    DataError
        It is a file, or holds files of someone else.
    WriteError
        Nothing can be written where it is to lie.
    """
    if not folder.exists():
        _try_to_write(folder)
        return
    if not folder.is_dir():
        raise DataError(f"{folder} is a file. Name a folder for the documents.")
    strange = sorted(
        one.name for one in folder.iterdir() if one.name not in (own or _OWN)
    )
    if strange:
        raise DataError(
            f"{folder} holds other files, for example {quoted(strange[0])}, which are "
            "not touched. Name a new folder, or one with documents of the same command."
        )
    _try_to_write(folder)


def _try_to_write(folder: Path) -> None:
    """Make and remove a folder beside `folder`: permissions tell too little."""
    target = folder.resolve()
    beside = next(one for one in target.parents if one.exists())
    try:
        os.rmdir(tempfile.mkdtemp(dir=beside, prefix=f".{target.name}."))
    except OSError as error:
        raise write_error(folder, error) from error


def write_folder(
    folder: Path, files: Mapping[str, bytes], own: Collection[str] = ()
) -> None:
    """Write `files` as the folder `folder`: all of them, or none.

    The documents of an earlier score there are replaced as a whole; killed in between,
    they lie beside it under a name that begins with a dot.

    Parameters
    ----------
    own
        As for `check_folder`.

    Raises
    ------
    DataError
        The folder holds files of someone else.
    WriteError
        It cannot be written; what was there before is unchanged.
    """
    check_folder(folder, own)
    target = folder.resolve()
    with folder_beside(target) as building:
        for name, data in files.items():
            write_atomic(building / name, data)
        building.chmod(0o755)
        replace_folder(building, target)


class SystemView(NamedTuple):
    """One system as it is shown."""

    key: str
    """Its letter."""

    score: SystemScore
    cells: Cells
    left_out: str
    """How many cells are decided, and why others are not."""

    confused: tuple[Confused, ...]
    worst: tuple[CaseScore, ...]


class MetricView(NamedTuple):
    """One metric as it is shown."""

    metric: Metric
    range: str
    way: str
    results: tuple[MetricResult | None, ...]
    """One per system, best first."""

    signatures: tuple[str, ...]
    """Different ones only: usually one for all systems."""

    notes: tuple[str, ...]


def document_variables(document: ScoreDocument) -> dict[str, Any]:
    """Return the variables of both templates."""
    score = document.score
    perfect = {
        perfect_sentence(one, score): one.perfect is not None and one.perfect >= 1
        for one in score.systems
    }
    return {
        "document": document,
        "score": score,
        "names": document.names,
        "systems": [_show_system(document, one) for one in score.systems],
        "title": title_of(document),
        "extractor": extractor_name(score.extractor),
        "perfect": perfect,
        "uneven": caution_sentences(score),
        "scored_words": scored_words,
        "comparable": COMPARABLE,
        "moves": moves_sentence(score),
        "readings": READINGS,
        "comparison": comparison_sentence(score),
        "verdicts": [verdict_words(one) for one in document.differences],
        "grids": {
            "f1": f1_grid(document),
            "missed": missed_grid(document),
            "invented": invented_grid(document),
            "left_out": left_out_grid(document),
            "metrics": metrics_grid(document),
        },
        "metrics": metric_views(document),
        "coverage": coverage_lines(document),
        "outcomes": outcome_line(document.outcomes) if document.outcomes else "",
        "problems": [problem_line(one) for one in document.problems],
        "experts": _expert_lines(document),
        "conventions": convention_sentences(score),
        "version": __version__,
    }


def title_of(document: ScoreDocument) -> str:
    """Return what was scored, for example ``"3 systems on 300 cases"``."""
    systems, cases = len(document.score.systems), document.score.n_cases
    first = document.score.systems[0].system if systems == 1 else f"{systems} systems"
    return f"{first} on {counted(cases, 'case')}"


def _show_system(document: ScoreDocument, one: SystemScore) -> SystemView:
    mine = tuple(each for each in document.confused if each.system == one.system)
    key, worst = document.keys[one.system], worst_cases(document.score, one)
    score = document.score
    cells, told = count_cells(one, score), left_out_line(one, score)
    return SystemView(key, one, cells, told, mine, worst)


def metric_views(document: ScoreDocument) -> list[MetricView]:
    """Return every metric that ran, as it is shown."""
    return [
        MetricView(
            metric,
            range_words(metric),
            WAYS[metric.direction],
            results,
            _once(tuple(one.signature for one in results if one)),
            _once(tuple(text for one in results if one for text in one.notes)),
        )
        for metric, results in metric_rows(document)
    ]


def _expert_lines(document: ScoreDocument) -> tuple[str, ...]:
    experts = document.experts
    return (agreement_line(experts), rated_line(experts)) if experts else ()


def _once(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


FORMAT = "ranloop-score-1"
"""Name of the shape; another number means that readers must look again."""


def score_data(document: ScoreDocument) -> dict[str, Any]:
    """Return `document` as JSON data; a number that has no meaning is null.

    Scores of single candidates are not part of it: they are in ``per_case.csv``.
    """
    score = document.score
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "cases": score.n_cases,
        "patients": score.n_patients,
        "labels": list(score.labels),
        "label_names": {label: document.names[label] for label in score.labels},
        "conventions": {
            "uncertain": score.conventions.uncertain.value,
            "zero_division": score.conventions.zero_division,
            "no_finding": score.conventions.no_finding.value,
            "reading": score.conventions.reading or None,
        },
        "extractor": {**_extractor(score.extractor), "outcomes": _outcomes(document)},
        "sampling": {
            "resamples": score.resamples,
            "permutations": score.permutations,
            "seed": score.seed,
            "confidence": score.confidence,
        },
        "systems": [_system_data(score, one) for one in score.systems],
        "differences": [_difference(one) for one in document.differences],
        "confusions": [one._asdict() for one in document.confused],
        "metrics": _metrics(document),
        "metrics_not_run": [one._asdict() for one in document.sheet.unavailable],
        "correlations": _correlations(document.correlations),
        "same_values_as": dict(document.twins),
        "coverage": [_coverage(one) for one in score.coverage],
        "empty_references": list(document.sources.empty_references),
        "repeated_references": list(document.sources.repeated_references),
        "languages": dict(document.sources.languages),
        "files": [
            {"name": name, "sha256": digest} for name, digest in document.sources.files
        ],
        "assumptions": list(score.assumptions),
        "second_extractor": None if document.panel is None else _panel(document.panel),
        "experts": None if document.experts is None else _experts(document.experts),
        "problems": [one._asdict() for one in document.problems],
        "remarks": [*document.remarks, *document.sources.notes],
    }


def _extractor(extractor: ExtractorFacts) -> dict[str, Any]:
    asked = json.loads(extractor.asked) if extractor.asked else None
    return {**asdict(extractor), "asked": asked}


def _outcomes(document: ScoreDocument) -> dict[str, int] | None:
    return None if document.outcomes is None else dict(document.outcomes)


def _estimate(one: Estimate | None) -> dict[str, Any] | None:
    return None if one is None else one._asdict()


def _system_data(score: RanScore, one: SystemScore) -> dict[str, Any]:
    averages = (
        *("micro_precision", "micro_recall", "micro_accuracy"),
        *("macro_precision", "macro_recall", "macro_accuracy"),
    )
    cells = count_cells(one, score)
    return {
        "system": one.system,
        "rank": one.rank,
        "probability_best": one.best,
        "cases": one.n,
        "cells": {**cells._asdict(), "share": cells.share},
        "ran_score": _estimate(one.ran_score),
        "ran_score_if_uncertain": {
            reading.uncertain.value: {
                "ran_score": reading.ran_score,
                "cells": reading.cells,
            }
            for reading in one.readings
        },
        "effective_labels": one.effective_labels,
        "perfect_copy": one.perfect,
        "micro_f1": _estimate(one.micro_f1),
        **{name: getattr(one, name) for name in averages},
        "corrected": _estimate(one.corrected),
        "signature": one.signature,
        "labels": [_label(each) for each in one.labels],
        "worst_cases": [case._asdict() for case in worst_cases(score, one)],
    }


def _label(one: LabelScore) -> dict[str, Any]:
    counts = one.counts
    return {
        "label": one.label,
        **counts._asdict(),
        "n": counts.n,
        "uncertain": one.uncertain,
        "unanswered": one.unanswered,
        "f1": one.f1,
        "precision": counts.precision,
        "recall": counts.recall,
        "specificity": counts.specificity,
        "accuracy": counts.accuracy,
        "false_negative_rate": _complement(counts.recall),
        "false_positive_rate": _complement(counts.specificity),
    }


def _complement(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _difference(one: SystemDifference) -> dict[str, Any]:
    return {**one._asdict(), "difference": _estimate(one.difference)}


def _metrics(document: ScoreDocument) -> list[dict[str, Any]]:
    return [
        {
            **_facts(metric),
            "systems": [_result(one) for one in results if one is not None],
        }
        for metric, results in metric_rows(document)
    ]


def _facts(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "title": metric.title,
        "family": metric.family,
        "direction": metric.direction.value,
        "low": metric.low,
        "high": metric.high,
    }


def metric_data(metric: Metric) -> dict[str, Any]:
    """Return one entry of the registry as JSON data."""
    words = {"needs": metric.needs, "about": metric.about}
    return {**_facts(metric), **words, "reference": metric.reference}


def _result(one: MetricResult) -> dict[str, Any]:
    return {
        "system": one.system,
        "estimate": _estimate(one.estimate),
        "n": one.n,
        "undefined": one.undefined,
        "signature": one.signature,
        "notes": list(one.notes),
    }


def _correlations(found: MetricCorrelations | None) -> dict[str, Any] | None:
    if found is None:
        return None
    tau = [
        [None if np.isnan(value) else float(value) for value in row]
        for row in found.tau_b
    ]
    return {"metrics": list(found.metrics), "tau_b": tau, "n": found.n.tolist()}


def _coverage(one: Coverage) -> dict[str, Any]:
    fields = one._asdict()
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
    }


def _experts(experts: Experts) -> dict[str, Any]:
    found = experts.agreement
    return {
        "raters": list(experts.raters),
        "scale": list(experts.scale),
        "rated": experts.rated,
        "unrated": experts.unrated,
        "unscored": experts.unscored,
        "alpha_ordinal": _estimate(found.ordinal),
        "alpha_interval": _estimate(found.interval),
        "icc_2_1": _estimate(found.icc),
        "tau_b_of_raters": found.tau_b,
        "mean_points": [one._asdict() for one in experts.points],
        "metrics": [
            {
                "name": one.name,
                "negated": one.negated,
                "n": one.found.n,
                "tau_b": _estimate(one.found.tau_b),
                "spearman": _estimate(one.found.spearman),
                "pearson": _estimate(one.found.pearson),
            }
            for one in experts.metrics
        ],
    }


def _panel(panel: SensitivityPanel) -> dict[str, Any]:
    return {
        "first": _extractor(panel.first),
        "second": _extractor(panel.second),
        "tau": panel.tau,
        "swapped": [list(pair) for pair in panel.swapped],
        "systems": [
            {
                **row._asdict(),
                "first": _estimate(row.first),
                "second": _estimate(row.second),
            }
            for row in panel.systems
        ],
    }

"""A score as JSON data, the shape of ``scores.json`` and ``ranloop score --json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from loop import __version__
from loop.score.bias import SensitivityPanel
from loop.score.documents.words import count_cells
from loop.score.metrics.base import Metric
from loop.score.metrics.score_sheet import MetricCorrelations, MetricResult
from loop.score.records import (
    Coverage,
    ExtractorFacts,
    LabelScore,
    RanScore,
    SystemDifference,
    SystemScore,
)
from loop.score.scoring import Experts, ScoreDocument, metric_rows, worst_cases
from loop.stats.intervals import Estimate

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
        "systems": [_system(score, one) for one in score.systems],
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


def _system(score: RanScore, one: SystemScore) -> dict[str, Any]:
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

"""A meta-evaluation as JSON data, the shape of ``--json``."""

from __future__ import annotations

from typing import Any

from loop import __version__
from loop.report.experts.words import MetaDocument
from loop.score.experts.agreement import RaterAgreement
from loop.score.experts.comparing import MetricComparison
from loop.score.experts.counts import CountAgreement
from loop.score.experts.meta import MetricAgreement
from loop.score.experts.scores import Key
from loop.stats.correlation import Correlations
from loop.stats.intervals import Estimate
from loop.stats.preference import Preference

FORMAT = "ranloop-meta-eval-1"
"""Name of the shape; another number means that readers must look again."""


def meta_data(document: MetaDocument) -> dict[str, Any]:
    """Return `document` as JSON data; a number that has no meaning is null."""
    result = document.result
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "source": document.source,
        "files": [{"name": name, "sha256": sha} for name, sha in document.files],
        "notes": list(document.notes),
        "candidates": result.candidates,
        "cases": result.cases,
        "patients": result.patients,
        "systems": list(result.systems),
        "raters": list(result.raters),
        "scale": list(result.scale),
        "pairs": {
            "all": result.pairs,
            "unanimous": result.unanimous,
            "every_rater_tied": result.tied,
        },
        "bootstrap": {
            "unit": "case" if result.patients is None else "patient",
            "resamples": result.resamples,
            "seed": result.seed,
            "confidence": result.confidence,
        },
        "permutations": result.permutations,
        "metrics": [_metric(one, result.raters) for one in result.metrics],
        "comparisons": [_comparison(one) for one in result.comparisons],
        "raters_agreement": _agreement(result.agreement),
        "own_counts": [_counts(one, result.raters) for one in document.counts],
        "unavailable": [
            {"metric": name, "reason": reason} for name, reason in result.unavailable
        ],
        "unscored": [_key(key) for key in result.unscored],
        "unrated": [_key(key) for key in result.unrated],
    }


def _metric(one: MetricAgreement, raters: tuple[str, ...]) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "title": one.metric.title,
        "same_values": [other.name for other in one.same],
        "negated": one.metric.lower,
        "note": one.metric.note,
        "signature": one.metric.signature,
        "undefined": one.undefined,
        "consensus": _correlations(one.consensus),
        "raters": _by_rater(raters, one.raters),
        "preference": _preference(one.preference),
        "unanimous": _preference(one.unanimous),
    }


def _comparison(one: MetricComparison) -> dict[str, Any]:
    return {
        "better": one.better,
        "worse": one.worse,
        "candidates": one.tau_b.n,
        "units": one.tau_b.n_units,
        "tau_b_difference": one.tau_b.difference,
        "p": one.tau_b.p,
        "p_holm": one.p_tau_b,
        "exact": one.tau_b.exact,
        "pearson_difference": one.pearson,
        "williams_t": one.williams.t,
        "williams_df": one.williams.df,
        "williams_p": one.williams.p,
        "williams_p_holm": one.p_williams,
    }


def _agreement(found: RaterAgreement) -> dict[str, Any]:
    return {
        "candidates": found.candidates,
        "rated_by_all": found.complete,
        "ratings_missing": found.missing,
        "mean_tau_b_of_pairs": found.tau_b,
        "mean_tau_b_with_the_rest": found.tau_b_rest,
        "krippendorff_alpha_ordinal": _estimate(found.ordinal),
        "krippendorff_alpha_interval": _estimate(found.interval),
        "icc_2_1": _estimate(found.icc),
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "same_points": pair.same,
                **_correlations(pair.correlations),
            }
            for pair in found.pairs
        ],
        "with_the_rest": [
            {"rater": one.rater, **_correlations(one.correlations)}
            for one in found.rest
        ],
    }


def _counts(one: CountAgreement, raters: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": one.name,
        "formula": one.formula,
        "empty": None if one.empty is None else one.empty.value,
        "mean_tau_b": one.tau_b,
        "raters": _by_rater(raters, one.raters),
        "unanimous": _preference(one.unanimous),
    }


def _by_rater(
    raters: tuple[str, ...], found: tuple[Correlations, ...]
) -> dict[str, Any]:
    return {rater: _correlations(one) for rater, one in zip(raters, found, strict=True)}


def _correlations(found: Correlations) -> dict[str, Any]:
    return {
        "candidates": found.n,
        "units": found.n_units,
        "tau_b": _estimate(found.tau_b),
        "spearman": _estimate(found.spearman),
        "pearson": _estimate(found.pearson),
    }


def _preference(found: Preference) -> dict[str, Any]:
    return {
        "right": found.right,
        "wrong": found.wrong,
        "tied": found.tied,
        "raters_tied": found.rater_ties,
        "undefined": found.undefined,
        "accuracy": _estimate(found.accuracy),
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    return found._asdict()


def _key(key: Key) -> dict[str, str]:
    return {"id": key[0], "system": key[1]}

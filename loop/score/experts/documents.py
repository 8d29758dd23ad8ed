"""A meta-evaluation as a page, as Markdown, as JSON data and as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from loop import __version__
from loop.core.nouns import counted
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    count,
    interval,
    listed,
    p_value,
    share,
)
from loop.documents.svg import (
    DARK,
    LIGHT,
    Axis,
    cut,
    figure,
    group,
    ink,
    line,
    path,
    text,
)
from loop.documents.templates import render_template, shipped_templates
from loop.score.experts import documents as words
from loop.score.experts.error_agreement import (
    BiasBin,
    CountF1,
    ErrorAgreement,
    GroupAgreement,
)
from loop.score.experts.error_counts import CountAgreement
from loop.score.experts.meta import (
    MetaDocument,
    MetaEvaluation,
    MetricAgreement,
    MetricComparison,
)
from loop.score.experts.metric_scores import Key, ScoredMetric
from loop.score.experts.ratings import RaterAgreement
from loop.score.experts.strata import LEAST_UNITS, StratumAgreement
from loop.stats.correlation import Correlations, Preference
from loop.stats.intervals import Estimate

DAGGER: Final = "\N{DAGGER}"
"""Mark of a tau-b that is not shown to differ from 0."""

LEVEL: Final = 0.05
"""Adjusted p-value below which two metrics are said to differ."""

_LISTED: Final = 5
"""Ids that are named before the others are only counted."""


def extent(result: MetaEvaluation) -> str:
    """Return what was compared, in one line."""
    patients = (
        "" if result.patients is None else f" of {counted(result.patients, 'patient')}"
    )
    return (
        f"{counted(result.candidates, 'candidate')} for "
        f"{counted(result.cases, 'case')}{patients}, "
        f"{counted(len(result.systems), 'system')}, "
        f"{counted(len(result.raters), 'rater')}, "
        f"{result.against} {result.scale[0]:g} to {result.scale[1]:g}"
    )


def headline(result: MetaEvaluation) -> str:
    """Return which metric agrees best, and which others are not worse by the test."""
    first = next(iter(result.metrics), None)
    if first is None or first.consensus.tau_b.value is None:
        return "No metric has a rank correlation with the raters."
    text = _first_words(result, first)
    others = [one for one in against_best(result) if one.p_tau_b is not None]
    if not others:
        return text
    told = [one for one in others if (one.p_tau_b or 0.0) < LEVEL]
    titles = {one.metric.name: one.metric.title for one in result.metrics}
    above = [titles[one.better] for one in told if one.better != first.metric.name]
    if above:
        text += (
            " On the candidates that both define, better than it: "
            f"{listed(above, _LISTED)}."
        )
    worse = len(told) - len(above)
    test = f"permutation test, Holm-adjusted p below {LEVEL:g}"
    if not worse:
        return f"{text} It is not shown to be better than any other ({test})."
    if worse == len(others):
        return f"{text} It is better than every other ({test})."
    return (
        f"{text} It is better than {worse} of the {len(others)} others ({test}); for "
        "the rest that is not shown."
    )


def _first_words(result: MetaEvaluation, first: MetricAgreement) -> str:
    """Return what the first metric reaches, and on how little if not on all."""
    tau = f"{share(first.consensus.tau_b.value)} {interval(first.consensus.tau_b)}"
    if first.undefined:
        return (
            f"{first.metric.title} has the highest tau-b with the mean of the raters, "
            f"{tau}, but none for {count(first.undefined)} of "
            f"{count(result.candidates)} candidates."
        )
    how = "agrees best" if len(result.metrics) > 1 else "agrees"
    return f"{first.metric.title} {how} with the mean of the raters: tau-b {tau}."


def ceiling(result: MetaEvaluation) -> str:
    """Return how well the raters agree among themselves."""
    found = result.agreement
    if found.tau_b is None:
        return "There is no second rater: how well raters agree is not known."
    return (
        f"Two raters agree with each other with a mean tau-b of {share(found.tau_b)}, "
        f"one rater with the mean of the others with {share(found.tau_b_rest)}. "
        "A metric cannot be expected to agree with one rater more than another rater "
        "does; the mean of several raters is steadier, so agreement with it can be "
        "higher."
    )


def against_best(result: MetaEvaluation) -> tuple[MetricComparison, ...]:
    """Return the comparisons that the first metric takes part in."""
    if not result.metrics:
        return ()
    name = result.metrics[0].metric.name
    return tuple(one for one in result.comparisons if name in (one.better, one.worse))


def direction(metric: ScoredMetric) -> str:
    """Return which way a metric is better."""
    return "lower is better, negated" if metric.lower else "higher is better"


def remarks(one: MetricAgreement, agreement: RaterAgreement | None = None) -> str:
    """Return what must be known of one metric's numbers.

    Parameters
    ----------
    agreement
        Of the raters: above it a metric is suspicious.
    """
    parts = [direction(one.metric) if one.metric.lower else "", one.metric.note]
    if one.same:
        alike = ", ".join(other.title for other in one.same)
        parts.append(f"the same value for every candidate: {alike}")
    if one.undefined:
        parts.append(f"undefined for {one.undefined}")
    if one.consensus.tau_b.value is not None and not one.shown:
        parts.append(
            f"{DAGGER} tau-b is not shown to differ from 0: Kendall's test p "
            f"{optional_p(one.p)}, interval {interval(one.consensus.tau_b)}"
        )
    if agreement is not None and one.is_suspicious(agreement):
        parts.append(
            f"suspicious: mean tau-b {share(one.tau_b_each)} with one rater is above "
            f"the {share(agreement.tau_b)} of two raters; check whether it was "
            "trained on these ratings"
        )
    return "; ".join(part for part in parts if part)


def optional_p(p: float | None) -> str:
    """Return a p-value, or a dash where there is none."""
    return NOT_ESTIMABLE if p is None else p_value(p)


def left_out(result: MetaEvaluation) -> tuple[str, ...]:
    """Return who is in only one of the files, as sentences."""
    found = []
    for keys, what in (
        (result.unscored, "rated but without scores"),
        (result.unrated, "scored but without a rating"),
    ):
        if keys:
            named = listed((f"{case} ({system})" for case, system in keys), _LISTED)
            found.append(
                f"{counted(len(keys), 'candidate')} {what}, left out: {named}."
            )
    if result.agreement.missing:
        cells = result.agreement.candidates * len(result.raters)
        found.append(
            f"{result.agreement.missing} of {count(cells)} ratings are missing."
        )
    return tuple(found)


def method(result: MetaEvaluation) -> tuple[str, ...]:
    """Return how the numbers were made, as sentences."""
    unit = "cases" if result.patients is None else "patients"
    level = f"{100 * result.confidence:g} %"
    return (
        f"Intervals: {level} percentile bootstrap, {count(result.resamples)} resamples "
        f"of {unit} with all their candidates, seed {result.seed}. They describe each "
        "metric alone: two metrics are compared by the tests, not by whether their "
        "intervals overlap.",
        "Every value is of one candidate: Ran Score, or a macro- or micro-F1, is here "
        "the F1 over the labels of one case, which is no mean over labels. The mean "
        "of such values is not the score of a system.",
        "tau-b is Kendall's with ties; correlations are over all candidates, those of "
        "one case as well as those of different cases. Lower-is-better metrics are "
        "negated first, so that agreement is positive everywhere.",
        "A pair is two candidates of one case. The metric is right when it prefers the "
        "one that the raters' mean prefers, tied when it gives both the same value; "
        "accuracy is right out of right, wrong and tied. Pairs to which the raters' "
        "mean gives the same points are left out and counted. A metric of labels gives "
        "two candidates with the same labels the same value; these ties count against "
        "its accuracy, and metrics of words, which hardly ever tie, win by that: read "
        "right and wrong too.",
        "Difference of tau-b: the two metrics' ranks are exchanged case by case, "
        f"{count(result.permutations)} times, or all ways where there are fewer. "
        "Williams' test compares Pearson correlations and takes candidates for "
        "independent, which two of one case are not. p-values are Holm-adjusted over "
        f"all {len(result.comparisons)} pairs of metrics.",
        "Krippendorff's alpha uses every candidate with two ratings; ICC(2,1), the "
        "absolute agreement of one rater, those that every rater rated.",
    )


def errors_said(one: ErrorAgreement) -> tuple[str, ...]:
    """Return what must be known of a judge's error counts, as sentences."""
    unit = "patients" if one.by_patient else "cases"
    found = [
        f"{one.judge} on {counted(one.candidates, 'candidate')} of {one.units} {unit}, "
        f"held against {one.against}. F1 is micro over candidates, true positives the "
        "sum of the smaller counts: two different errors of one kind count as a hit.",
        f"tau-b of the number of errors with the experts' number: "
        f"{share(one.tau_b.value)} {interval(one.tau_b)}.",
    ]
    if one.wording is not None:
        judge = ""
        if one.wording.judge is not None:
            judge = f"; the judge counts {one.wording.judge:g} in all candidates"
        found.append(
            f"Errors of wording (category g): the experts count "
            f"{one.wording.experts:g} in {counted(one.wording.candidates, 'candidate')}"
            f"{judge}. They are not clinical, and are part of no other number."
        )
    if one.unanswered:
        found.append(
            f"{counted(one.unanswered, 'candidate')} left out: the judge gave no "
            f"readable answer{', or none on insignificant errors' * one.all_errors}."
        )
    odd = [each.group.name for each in (*one.groups, one.total) if each.suspicious]
    if odd:
        found.append(
            f"Suspicious: for {listed(odd, _LISTED)} the judge agrees with one rater "
            "more than another rater does. That is no merit: look for a judge that was "
            "made with these counts, or raters who saw it."
        )
    return tuple(found)


STRATA: Final = ("by", "stratum", "metric", "n", "tau-b")
"""Head of the table of strata."""


def stratum_rows(
    strata: Iterable[tuple[str, StratumAgreement]],
) -> list[tuple[str, ...]]:
    """Return a row for every stratum and metric, all metrics of a stratum together.

    Parameters
    ----------
    strata
        Name of a metric or column, with its agreement in one stratum.
    """
    rows = []
    for name, one in strata:
        said = "not estimable"
        if one.tau_b.value is not None:
            mark = "" if one.shown else DAGGER
            said = f"{share(one.tau_b.value)} {interval(one.tau_b)}{mark}"
        stratum = one.stratum or "(not named)"
        rows.append((one.by, stratum, name, count(one.n), said))
    return sorted(rows, key=lambda row: row[:2])


STRATA_SAID: Final = (
    f"tau-b with the mean of the raters within strata. Strata of fewer than "
    f"{LEAST_UNITS} cases or patients have no estimate; p is not adjusted for the "
    f"number of strata. {DAGGER}: not shown to differ from 0, by Kendall's test or by "
    "the interval."
)
"""What must be known of the table of strata."""


def bias_bins(one: ErrorAgreement) -> tuple[BiasBin, ...]:
    """Return the bins of the bias curve that hold a candidate."""
    return tuple(each for each in one.bias if each.n)


def render_meta_markdown(
    document: MetaDocument, *, templates: Path | None = None
) -> str:
    """Return the meta-evaluation as Markdown.

    The document holds numbers, ids and digests, never the text of a case.

    Parameters
    ----------
    document
        What to show.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    folder = templates or shipped_templates()
    return render_template(folder, "meta_eval.md.jinja", variables(document))


def variables(document: MetaDocument) -> dict[str, Any]:
    """Return what both templates may use."""
    result = document.result
    return {
        "document": document,
        "result": result,
        "extent": words.extent(result),
        "headline": words.headline(result),
        "ceiling": words.ceiling(result),
        "remarks": {
            one.metric.name: words.remarks(one, result.agreement)
            for one in result.metrics
        },
        "titles": {one.metric.name: one.metric.title for one in result.metrics},
        "against_best": words.against_best(result),
        "left_out": words.left_out(result),
        "method": words.method(result),
        "p": words.optional_p,
        "errors_said": words.errors_said,
        "bias_bins": words.bias_bins,
        "strata_header": STRATA,
        "strata": stratum_rows(
            (one.metric.title, one.agreement) for one in document.strata
        ),
        "strata_said": STRATA_SAID,
        "version": __version__,
    }


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
        "against": result.against,
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
        "metrics": [_metric(one, result) for one in result.metrics],
        "comparisons": [_comparison(one) for one in result.comparisons],
        "raters_agreement": _agreement(result.agreement),
        "own_counts": [_counts(one, result.raters) for one in document.counts],
        "strata": [
            {
                "metric": one.metric.name,
                **one.agreement._asdict(),
                "tau_b": _estimate(one.agreement.tau_b),
            }
            for one in document.strata
        ],
        "judge_errors": [error_data(one) for one in document.errors],
        "unavailable": [
            {"metric": name, "reason": reason} for name, reason in result.unavailable
        ],
        "unscored": [_key(key) for key in result.unscored],
        "unrated": [_key(key) for key in result.unrated],
    }


def _metric(one: MetricAgreement, result: MetaEvaluation) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "title": one.metric.title,
        "same_values": [other.name for other in one.same],
        "negated": one.metric.lower,
        "note": one.metric.note,
        "signature": one.metric.signature,
        "undefined": one.undefined,
        "consensus": correlation_data(one.consensus),
        "kendall_p": one.p,
        "shown": one.shown,
        "raters": _by_rater(result.raters, one.raters),
        "mean_tau_b_with_one_rater": one.tau_b_each,
        "suspicious": one.is_suspicious(result.agreement),
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
                **correlation_data(pair.correlations),
            }
            for pair in found.pairs
        ],
        "with_the_rest": [
            {"rater": one.rater, **correlation_data(one.correlations)}
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


def error_data(one: ErrorAgreement) -> dict[str, Any]:
    """Return a judge's error counts against experts' as JSON data."""
    return {
        "judge": one.judge,
        "signature": one.signature,
        "against": one.against,
        "insignificant_counted": one.all_errors,
        "candidates": one.candidates,
        "unanswered": one.unanswered,
        "units": one.units,
        "unit": "patient" if one.by_patient else "case",
        "tau_b": _estimate(one.tau_b),
        "total": _group(one.total),
        "groups": [_group(each) for each in one.groups],
        "categories": [_group(each) for each in one.categories],
        "bias": [
            {
                "true_errors": each.errors,
                "candidates": each.n,
                "difference": _estimate(each.difference),
            }
            for each in one.bias
        ],
        "wording": None if one.wording is None else one.wording._asdict(),
        "without_true_errors": one.without,
        "above_the_last": one.above,
    }


def _group(one: GroupAgreement) -> dict[str, Any]:
    return {
        "group": one.group.name,
        "categories": list(one.group.categories),
        "judge": _count_f1(one.judge),
        "difference": _estimate(one.difference),
        "with_one_rater": _several(one.f1_each, one.each),
        "two_raters": _several(one.f1_pairs, one.pairs),
        "one_rater_with_the_rest": _several(one.f1_rest, one.rest),
        "suspicious": one.suspicious,
    }


def _several(mean: float | None, found: tuple[CountF1, ...]) -> dict[str, Any]:
    return {"mean_f1": mean, "each": [_count_f1(one) for one in found]}


def _count_f1(found: CountF1) -> dict[str, Any]:
    return {
        "true": found.true,
        "found": found.found,
        "expected": found.expected,
        "precision": found.precision,
        "recall": found.recall,
        "f1": _estimate(found.f1),
        "candidates": found.n,
    }


def _by_rater(
    raters: tuple[str, ...], found: tuple[Correlations, ...]
) -> dict[str, Any]:
    return {
        rater: correlation_data(one) for rater, one in zip(raters, found, strict=True)
    }


def correlation_data(found: Correlations) -> dict[str, Any]:
    """Return three coefficients with their intervals as JSON data."""
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


_NAMES, _PLOT, _NUMBERS = 200.0, 340.0, 200.0
"""Widths of the three columns, pixels."""

_WIDTH = _NAMES + _PLOT + _NUMBERS
_TOP, _ROW = 46.0, 24.0
_STEP = 0.2
_EDGE = 20.4
"""Pixels of the plot kept free on both sides."""


def agreement_svg(result: MetaEvaluation) -> str:
    """Return one row per metric: tau-b with the mean of the raters, its interval.

    A dashed line shows how well two raters agree with each other.
    """
    axis = _axis(result)
    bottom = _TOP + _ROW * len(result.metrics)
    rows = [
        _row(one, axis, _TOP + _ROW * (place + 0.5))
        for place, one in enumerate(result.metrics)
    ]
    said = [_said(one) for one in result.metrics]
    return figure(
        (_WIDTH, bottom + 8),
        "Tau-b of each metric with the mean of the raters",
        ". ".join(said) or "There is no metric.",
        *_grid(axis, bottom),
        *_ceiling(result.agreement.tau_b, axis, bottom),
        *rows,
    )


def _axis(result: MetaEvaluation) -> Axis:
    """Return an axis from the lowest limit, 0 at most, up to 1."""
    values = [
        value
        for one in result.metrics
        for value in one.consensus.tau_b[:3]
        if value is not None
    ]
    low = max(floor(min([0.0, *values]) / _STEP + 1e-9) * _STEP, -1.0)
    steps = round((1 - low) / _STEP)
    ticks = tuple(round(low + _STEP * step, 1) for step in range(steps + 1))
    return Axis(round(low, 1), 1.0, ticks, _NAMES + _EDGE, _PLOT - 2 * _EDGE)


def _grid(axis: Axis, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks:
        x, zero = axis.x(tick), tick == 0
        colour = "line" if zero else "grid"
        parts.append(line((x, _TOP), (x, bottom), colour=colour))
        words = share(tick, 1)
        parts.append(text(x, _TOP - 8, words, anchor="middle", colour="soft"))
    right = _NAMES + _PLOT + 12
    return [
        *parts,
        text(right, _TOP - 8, "tau-b", colour="soft"),
        text(_WIDTH, _TOP - 8, "n", anchor="end", colour="soft"),
    ]


def _ceiling(tau_b: float | None, axis: Axis, bottom: float) -> list[str]:
    if tau_b is None:
        return []
    x, words = axis.x(tau_b), f"two raters: {share(tau_b)}"
    return [
        line((x, _TOP - 4), (x, bottom), colour="ink", width=1.2, dashes="4 3"),
        text(x, _TOP - 30, words, anchor="middle", colour="ink"),
    ]


def _row(one: MetricAgreement, axis: Axis, y: float) -> str:
    found = one.consensus.tau_b
    numbers = share(found.value)
    if found.low is not None:
        numbers += f" {interval(found)}"
    parts = [
        text(0, y + 4, cut(one.metric.title, _NAMES - 12)),
        text(_NAMES + _PLOT + 12, y + 4, numbers),
        text(_WIDTH, y + 4, count(one.consensus.n), anchor="end"),
    ]
    if found.low is not None and found.high is not None:
        low, high = axis.x(found.low), axis.x(found.high)
        parts.append(line((low, y), (high, y), colour="accent", width=2))
        parts += [path(f"M{x:g} {y - 4:g}v8", colour="accent") for x in (low, high)]
    if found.value is not None:
        x = axis.x(found.value)
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{ink("accent")}"/>')
    return group(_said(one), *parts)


def _said(one: MetricAgreement) -> str:
    found = one.consensus.tau_b
    if found.value is None:
        return f"{one.metric.title}: no rank correlation"
    return f"{one.metric.title}: tau-b {share(found.value)}, interval {interval(found)}"


def render_meta_html(document: MetaDocument, *, templates: Path | None = None) -> str:
    """Return the meta-evaluation as one HTML page.

    The page holds numbers, ids and digests, never the text of a case.

    Parameters
    ----------
    document
        What to show.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    shown = {
        **variables(document),
        "light": dict(LIGHT),
        "dark": dict(DARK),
        # The figure escapes every text it is given.
        "figure": Markup(agreement_svg(document.result)),
    }
    folder = templates or shipped_templates()
    return render_template(folder, "meta_eval.html.jinja", shown)

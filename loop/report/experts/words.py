"""A meta-evaluation in sentences, the same in every document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loop.report.numbers import NOT_ESTIMABLE, count, interval, listed, p_value, share
from loop.score.experts.comparing import MetricComparison
from loop.score.experts.counts import CountAgreement
from loop.score.experts.meta import MetaEvaluation, MetricAgreement
from loop.score.experts.scores import ScoredMetric

LEVEL: Final = 0.05
"""Adjusted p-value below which two metrics are said to differ."""

_LISTED: Final = 5
"""Ids that are named before the others are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaDocument:
    """A meta-evaluation and where it comes from."""

    source: str
    """What was rated, for example ``"RadPref"`` or the name of a file."""

    result: MetaEvaluation
    counts: tuple[CountAgreement, ...] = ()
    """Of formulas on the raters' own counts; empty where there are none."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each file that was read."""

    notes: tuple[str, ...] = ()
    """What else must be known, as sentences."""


def extent(result: MetaEvaluation) -> str:
    """Return what was compared, in one line."""
    patients = (
        "" if result.patients is None else f" of {_number(result.patients, 'patient')}"
    )
    return (
        f"{_number(result.candidates, 'candidate')} for "
        f"{_number(result.cases, 'case')}{patients}, "
        f"{_number(len(result.systems), 'system')}, "
        f"{_number(len(result.raters), 'rater')}, "
        f"points {result.scale[0]:g} to {result.scale[1]:g}"
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


def remarks(one: MetricAgreement) -> str:
    """Return what must be known of one metric's numbers."""
    parts = [direction(one.metric) if one.metric.lower else "", one.metric.note]
    if one.same:
        alike = ", ".join(other.title for other in one.same)
        parts.append(f"the same value for every candidate: {alike}")
    if one.undefined:
        parts.append(f"undefined for {one.undefined}")
    return "; ".join(part for part in parts if part)


def optional_p(p: float | None) -> str:
    """Return a p-value, or a dash where there is none."""
    return NOT_ESTIMABLE if p is None else p_value(p)


def left_out(result: MetaEvaluation) -> tuple[str, ...]:
    """Return who is in only one of the files, as sentences."""
    found = []
    for keys, words in (
        (result.unscored, "rated but without scores"),
        (result.unrated, "scored but without a rating"),
    ):
        if keys:
            named = listed((f"{case} ({system})" for case, system in keys), _LISTED)
            found.append(
                f"{_number(len(keys), 'candidate')} {words}, left out: {named}."
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


def _number(number: int, word: str) -> str:
    return f"{count(number)} {word}{'' if number == 1 else 's'}"

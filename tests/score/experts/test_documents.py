"""A meta-evaluation as documents: every number, nothing hostile, no script."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from loop import __version__
from loop.documents.numbers import share, signed
from loop.score.experts import documents as words
from loop.score.experts.documents import (
    MetaDocument,
    agreement_svg,
    error_data,
    meta_data,
    render_meta_html,
    render_meta_markdown,
)
from loop.score.experts.error_agreement import (
    BiasBin,
    CategoryGroup,
    CountF1,
    ErrorAgreement,
    GroupAgreement,
    WordingCount,
)
from loop.score.experts.error_counts import CountAgreement, Empty, count_agreement
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.meta import (
    MetaEvaluation,
    MetricAgreement,
    MetricComparison,
    MetricStratum,
    hold_errors,
    meta_evaluate,
)
from loop.score.experts.metric_scores import ScoredMetric, ScoreTable
from loop.score.experts.ratings import (
    OneAgainstRest,
    RaterAgreement,
    RaterPair,
    Ratings,
    unit_codes,
)
from loop.score.experts.strata import StratumAgreement
from loop.stats.correlation import Correlations, Preference
from loop.stats.dependent import MetricTest, WilliamsTest
from loop.stats.intervals import Estimate

HOSTILE = "<script>alert(1)</script>|\u202e\x1b[31m"
NA = np.nan


def make(*, raters=3, metrics=3, lost=True):
    """Return a document of made-up scores and ratings of 20 cases."""
    rng = np.random.default_rng(2)
    keys = [(f"c{case:02}", system) for case in range(20) for system in "xy"]
    truth = rng.normal(size=40)
    points = np.clip(np.round(3 + truth[:, None] + rng.normal(0, 0.5, (40, 3))), 1, 5)
    if lost:
        points[3, 0] = NA
    ratings = Ratings(
        ids=tuple(case for case, _ in keys),
        systems=tuple(system for _, system in keys),
        raters=("ann", "ben", HOSTILE)[:raters],
        scores=points[:, :raters],
        scale=(1, 5),
    )
    values = np.column_stack(
        [truth + rng.normal(0, 0.3, 40), 4 - truth, rng.normal(size=40)]
    )
    values[:2, 0] = NA if lost else 0.0
    names = (
        ScoredMetric("good", "Good", note=HOSTILE, signature="good|v:1"),
        ScoredMetric("errors", "Errors", lower=True),
        ScoredMetric("noise", HOSTILE),
    )
    scores = ScoreTable(
        keys=tuple(keys[1:]) if lost else tuple(keys),
        metrics=names[:metrics],
        values=values[1 if lost else 0 :, :metrics],
        unavailable=(("bertscore", "no model; name one"),),
    )
    counts = rng.integers(0, 3, size=(40, raters, 3)).astype(float)
    errors = [
        ErrorTable(
            keys=ratings.keys,
            raters=names,
            categories=("false_finding", "omission", "severity"),
            counts=rng.integers(0, 3, size=(40, len(names), 3, 2)).astype(float),
        )
        for names in (("judge",), ratings.raters)
    ]
    errors[0].counts[0] = NA
    document = MetaDocument(
        source=HOSTILE,
        result=meta_evaluate(scores, ratings, resamples=60, permutations=99),
        counts=count_agreement(ratings, counts, resamples=60),
        files=(("ratings.csv", "0" * 64),),
        notes=("A note.",),
    )
    return hold_errors(document, *errors, name=HOSTILE)


@pytest.fixture(scope="module")
def document():
    """Return a document with something missing everywhere."""
    return make()


@pytest.mark.parametrize("render", [render_meta_html, render_meta_markdown])
def test_every_metric_and_number_is_told(document, render):
    """tau-b, its interval, each rater, pairs, tests, raters and what is left out."""
    text = render(document)
    for one in document.result.metrics:
        for estimate in (*one.consensus[:3], one.preference.accuracy):
            assert share(estimate.value) in text
            assert f"[{share(estimate.low)}, {share(estimate.high)}]" in text
        for rater in one.raters:
            assert share(rater.tau_b.value) in text
    for said in (
        "lower is better, negated",
        "undefined for 1",
        "rated but without scores, left out: c00 (x)",
        "1 of 120 ratings are missing",
        "no model; name one",
        "good|v:1",
        "0" * 64,
        "A note.",
        "M / (M + S)",
        share(document.result.agreement.icc.value),
    ):
        assert said in text.replace("&#124;", "|").replace("\\_", "_")


@pytest.mark.parametrize("render", [render_meta_html, render_meta_markdown])
def test_error_counts_are_told_with_the_experts_own_beside(document, render):
    """F1 of every group, what it was held against, and the bias by true errors."""
    text = render(document)
    assert [one.all_errors for one in document.errors] == [False, True]
    for found in document.errors:
        assert found.against in unescape(text)
        for one in (*found.groups, found.total):
            assert f"[{share(one.judge.f1.low)}, {share(one.judge.f1.high)}]" in text
            assert share(one.f1_pairs) in text and share(one.f1_rest) in text
        for each in words.bias_bins(found):
            assert signed(each.difference.value, 2) in text
    assert "1 candidate left out: the judge gave no readable answer." in text


def test_suspicious_agreement_of_counts_is_called_so(document):
    """Above two raters it is marked in the table and told what to look for."""
    first = document.errors[0]

    def with_pairs(value):
        f1 = first.total.judge.f1._replace(value=value)
        pair = first.total.judge._replace(f1=f1)
        return replace(first, groups=(), total=first.total._replace(pairs=(pair,)))

    odd = with_pairs(0.1)
    told = " ".join(words.errors_said(odd))
    assert "Suspicious: for all categories the judge agrees with one rater more" in told
    assert "no merit" in told
    page = render_meta_html(replace(document, errors=(odd,)))
    assert "suspicious: above two raters" in page
    assert "Suspicious" not in " ".join(words.errors_said(with_pairs(1.0)))


def test_suspicious_agreement_of_a_metric_is_called_so(document):
    """With both numbers."""
    result = document.result
    one = result.metrics[0]

    def ceiling(value):
        pair = result.agreement.pairs[0]
        tau_b = pair.correlations.tau_b._replace(value=value)
        correlations = pair.correlations._replace(tau_b=tau_b)
        return replace(
            result.agreement, pairs=(pair._replace(correlations=correlations),)
        )

    told = words.remarks(one, ceiling(0.25))
    assert f"suspicious: mean tau-b {share(one.tau_b_each)} with one rater" in told
    assert "above the 0.250 of two raters" in told
    assert "suspicious" not in words.remarks(one, ceiling(1.0))


def test_the_page_needs_nothing_and_runs_nothing(document):
    """No script, no network; names from files are shown as text."""
    page = render_meta_html(document)
    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert not re.search(r"(src|href)=", page)
    assert "default-src 'none'" in page


def test_names_stay_one_cell_in_markdown(document):
    """A bar or a tag in a name breaks no table."""
    text = render_meta_markdown(document)
    assert "<script" not in text
    table = text.split("## Metrics")[1].split("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {10}


def test_the_figure_is_one_row_per_metric_in_well_formed_xml(document):
    """It stands alone as a file, and says in words what it shows."""
    root = ET.fromstring(agreement_svg(document.result))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == len(document.result.metrics)
    about = root.find(f"{space}desc").text
    for one in document.result.metrics:
        assert share(one.consensus.tau_b.value) in about
    assert "two raters" in "".join(root.itertext())


def test_the_figure_holds_every_mark(document):
    """Nothing is drawn beyond the edges, negative correlations included."""
    svg = agreement_svg(document.result)
    width = float(re.search(r'width="([0-9.]+)"', svg)[1])
    places = [float(x) for x in re.findall(r'c?x[12]?="(-?[0-9.]+)"', svg)]
    assert min(places) >= 0
    assert max(places) <= width


def test_data_are_json_without_nan(document):
    """What has no meaning is null."""
    text = json.dumps(meta_data(document), allow_nan=False)
    data = json.loads(text)
    assert [one["metric"] for one in data["metrics"]] == [
        one.metric.name for one in document.result.metrics
    ]
    first = data["metrics"][0]
    assert set(first["raters"]) == set(document.result.raters)
    assert data["bootstrap"] == {
        "unit": "case",
        "resamples": 60,
        "seed": 0,
        "confidence": 0.95,
    }
    assert data["unscored"] == [{"id": "c00", "system": "x"}]
    assert len(data["comparisons"]) == 3
    assert data["against"] == "points" and first["suspicious"] in (True, False)
    judged = data["judge_errors"][1]
    assert (judged["insignificant_counted"], judged["unanswered"]) == (True, 1)
    assert [one["group"] for one in judged["groups"]] == [
        "false predictions",
        "omissions",
        "attributes",
    ]
    assert len(judged["bias"]) == 12 and len(judged["total"]["two_raters"]["each"]) == 3


@pytest.mark.parametrize("render", [render_meta_html, render_meta_markdown])
def test_one_metric_and_one_rater_make_a_document_too(render):
    """No comparison and no ceiling, and the document says so."""
    text = render(make(raters=1, metrics=1, lost=False))
    assert "There is no second rater" in text
    assert "The best metric against the others" not in text
    assert "agrees with the mean" in text and "agrees best" not in text
    assert "nan" not in text.casefold().replace("unanimous", "").replace("finance", "")


def test_the_headline_says_what_is_shown_and_what_is_not():
    """Being first is not being better."""
    found = make(lost=False).result
    assert "agrees best with the mean of the raters: tau-b" in words.headline(found)
    assert "is better than 1 of the 2 others" in words.headline(found)
    assert found.metrics[-1].metric.name == "noise"
    kept = [one for one in found.comparisons if "noise" in (one.better, one.worse)]
    every = words.headline(replace(found, comparisons=tuple(kept)))
    assert "is better than every other" in every and "the rest" not in every


def test_a_metric_that_leaves_out_what_it_gets_wrong_is_not_called_better():
    """First by what it defines, and worse where the others can be compared with it."""
    found = make(lost=False).result
    first, *others = found.metrics
    blank = first._replace(undefined=30)
    lost = [
        one._replace(better=one.worse, worse=one.better, p_tau_b=0.001)
        for one in found.comparisons
        if first.metric.name == one.better
    ]
    partial = replace(found, metrics=(blank, *others), comparisons=tuple(lost))
    told = words.headline(partial)
    assert "Errors has the highest tau-b" in told
    assert "but none for 30 of 40 candidates" in told
    assert "On the candidates that both define, better than it: Good, " in told
    assert "It is not shown to be better" in told


def test_units_of_the_intervals_are_named(document):
    """Whether patients or cases were resampled decides how wide they are."""
    assert "resamples of cases" in words.method(document.result)[0]
    assert unit_codes(("a",), None).tolist() == ["a"]


def test_an_interval_is_drawn_where_there_is_one(document):
    """A line from limit to limit and a mark at both, for each metric that has them."""
    with_limits = [
        one for one in document.result.metrics if one.consensus.tau_b.low is not None
    ]
    svg = agreement_svg(document.result)
    assert with_limits
    assert len(re.findall(r'<path [^>]*d="M[0-9.]+ [0-9.]+v8"', svg)) == 2 * len(
        with_limits
    )


NONE = Estimate(None, None, None, "none")


def at(value, low=None, high=None):
    """Return the correlations of one tau-b; the others are a tenth more and less."""
    tau = Estimate(value, low, high)
    if value is None:
        return Correlations(NONE, NONE, NONE, 39, 20)
    more = tau._replace(value=value + 0.1)
    less = tau._replace(value=value - 0.1)
    return Correlations(tau, more, less, 39, 20)


def agreed(name, tau, *, each=(0.5, 0.6), undefined=0, p=0.001, **metric):
    """Return a metric with its tau-b with the mean and with each of two raters."""
    return MetricAgreement(
        metric=ScoredMetric(name, name.title(), **metric),
        same=(),
        undefined=undefined,
        consensus=tau,
        raters=tuple(at(one, 0.1, 0.9) for one in each),
        preference=Preference(7, 2, 1, 3, 4, Estimate(0.7, 0.5, 0.9)),
        unanimous=Preference(5, 1, 0, 0, 2, NONE),
        p=p,
    )


def compared(better, worse, p=0.01):
    """Return a comparison of two metrics."""
    return MetricComparison(
        better=better,
        worse=worse,
        tau_b=MetricTest(0.25, 0.004, False, 38, 19),
        p_tau_b=p,
        pearson=0.2,
        williams=WilliamsTest(2.5, 35, 0.017),
        p_williams=0.034,
    )


def result_of(*metrics, tau=0.7, **others):
    """Return a whole evaluation by hand: two raters and these metrics."""
    pair = RaterPair("ann", "ben", at(tau, 0.5, 0.9), 0.375)
    agreement = RaterAgreement(
        pairs=(pair,),
        rest=(
            OneAgainstRest("ann", at(tau, 0.5, 0.9)),
            OneAgainstRest("ben", at(None if tau is None else tau + 0.1)),
        ),
        ordinal=Estimate(0.8, 0.7, 0.9),
        interval=NONE,
        icc=Estimate(0.75, 0.6, 0.85),
        candidates=40,
        complete=37,
        missing=3,
    )
    fields = {
        "metrics": metrics,
        "comparisons": (),
        "agreement": agreement,
        "raters": ("ann", "ben"),
        "systems": ("x", "y"),
        "scale": (1.0, 5.0),
        "candidates": 40,
        "cases": 20,
        "patients": None,
        "pairs": 19,
        "unanimous": 11,
        "tied": 2,
        "unscored": (),
        "unrated": (),
        "unavailable": (),
        "resamples": 2000,
        "permutations": 10_000,
        "seed": 4,
    }
    return MetaEvaluation(**{**fields, **others})


def test_what_was_compared_is_told_in_one_line():
    """Candidates, cases, perhaps patients, systems, raters and the scale."""
    plain = result_of()
    assert words.extent(plain) == (
        "40 candidates for 20 cases, 2 systems, 2 raters, points 1 to 5"
    )
    one = replace(
        plain, candidates=1, cases=1, patients=1, systems=("x",), against="errors"
    )
    assert words.extent(one) == (
        "1 candidate for 1 case of 1 patient, 1 system, 2 raters, errors 1 to 5"
    )


def test_the_headline_counts_who_is_worse_by_the_test():
    """Below the level, and not at it; who has no p counts among none."""
    best = agreed("best", at(0.6, 0.5, 0.7))
    rest = [agreed(name, at(0.5, 0.4, 0.6)) for name in ("second", "third", "fourth")]
    pairs = (
        compared("best", "second", 0.0499),
        compared("best", "third", 0.05),
        compared("best", "fourth", None),
        compared("second", "third", 0.001),
    )
    first = "Best agrees best with the mean of the raters: tau-b 0.600 [0.500, 0.700]."
    test = "(permutation test, Holm-adjusted p below 0.05)"
    result = result_of(best, *rest, comparisons=pairs)
    assert words.against_best(result) == pairs[:3]
    assert words.headline(result) == (
        f"{first} It is better than 1 of the 2 others {test}; for the rest that is not "
        "shown."
    )
    none = replace(result, comparisons=pairs[1:])
    assert words.headline(none) == (
        f"{first} It is not shown to be better than any other {test}."
    )
    every = replace(result, comparisons=(pairs[0], *pairs[2:]))
    assert words.headline(every) == f"{first} It is better than every other {test}."
    untested = replace(result, metrics=(best, rest[0]), comparisons=pairs[2:])
    assert words.headline(untested) == first
    turned = (compared("second", "best", 0.0), *pairs[:1], *pairs[1:3])
    told = words.headline(replace(result, comparisons=turned))
    assert told == (
        f"{first} On the candidates that both define, better than it: Second. It is "
        f"better than 1 of the 3 others {test}; for the rest that is not shown."
    )


def test_without_a_metric_or_a_number_there_is_nothing_best():
    """No metric at all, and one without a rank correlation."""
    said = "No metric has a rank correlation with the raters."
    assert words.headline(result_of()) == said
    assert words.headline(result_of(agreed("flat", at(None)))) == said
    assert words.against_best(result_of()) == ()


def test_the_ceiling_is_what_raters_reach():
    """Of two raters, and of one with the others; or that nobody can tell."""
    assert words.ceiling(result_of(tau=0.7)).startswith(
        "Two raters agree with each other with a mean tau-b of 0.700, one rater with "
        "the mean of the others with 0.750. A metric"
    )
    assert words.ceiling(result_of(tau=None)).startswith("There is no second rater")


def test_remarks_name_what_is_odd_of_a_metric_and_nothing_else():
    """Direction, note, twins, gaps, what is not shown; none where all is well."""
    plain = agreed("m", at(0.6, 0.5, 0.7))
    agreement = result_of(tau=0.55).agreement
    assert words.remarks(plain) == words.remarks(plain, agreement) == ""
    odd = agreed("m", at(0.1, -0.1, 0.3), undefined=3, p=None, lower=True, note="why")
    odd = odd._replace(same=(ScoredMetric("a", "A"), ScoredMetric("b", "B")))
    assert words.remarks(odd) == (
        "lower is better, negated; why; the same value for every candidate: A, B; "
        f"undefined for 3; {words.DAGGER} tau-b is not shown to differ from 0: "
        "Kendall's test p –, interval [\N{MINUS SIGN}0.100, 0.300]"
    )
    unknown = agreed("m", at(None), p=None)
    assert words.remarks(unknown) == ""
    low = result_of(tau=0.549).agreement
    assert words.remarks(plain, low) == (
        "suspicious: mean tau-b 0.550 with one rater is above the 0.549 of two raters; "
        "check whether it was trained on these ratings"
    )
    assert words.direction(odd.metric) == "lower is better, negated"
    assert words.direction(plain.metric) == "higher is better"
    assert [words.optional_p(one) for one in (None, 0.04)] == ["–", "0.040"]


def test_who_is_in_one_file_only_is_counted_and_named():
    """Five at most; missing ratings are of candidates times raters."""
    keys = tuple((f"c{n}", "x") for n in range(7))
    result = result_of(unscored=keys[:1], unrated=keys)
    assert words.left_out(result) == (
        "1 candidate rated but without scores, left out: c0 (x).",
        "7 candidates scored but without a rating, left out: c0 (x), c1 (x), c2 (x), "
        "c3 (x), c4 (x) and 2 more.",
        "3 of 80 ratings are missing.",
    )
    whole = replace(result.agreement, missing=0)
    assert words.left_out(result_of(agreement=whole)) == ()


def test_the_method_says_what_was_resampled_and_adjusted_for():
    """With level, numbers and seed."""
    pairs = (compared("a", "b"), compared("a", "c"), compared("b", "c"))
    told = words.method(result_of(comparisons=pairs, confidence=0.9))
    assert told[0].startswith(
        "Intervals: 90 % percentile bootstrap, 2000 resamples of cases with all their "
        "candidates, seed 4."
    )
    assert "10,000 times, or all ways" in told[4]
    assert "over all 3 pairs of metrics" in told[4]
    grouped = words.method(result_of(patients=11))
    assert "2000 resamples of patients with" in grouped[0]
    assert grouped[0].startswith("Intervals: 95 %")


def test_what_must_be_known_of_error_counts_is_told(document):
    """Units, wording, what has no answer; nothing that is not the case."""
    plain = replace(
        document.errors[0],
        candidates=1,
        units=7,
        by_patient=False,
        unanswered=0,
        wording=None,
        groups=(),
        tau_b=Estimate(0.25, 0.1, 0.4),
        total=document.errors[0].total._replace(pairs=()),
    )
    first, second = words.errors_said(plain)
    assert f"on 1 candidate of 7 cases, held against {plain.against}." in first
    assert second == (
        "tau-b of the number of errors with the experts' number: 0.250 [0.100, 0.400]."
    )
    more = replace(plain, by_patient=True, unanswered=2, all_errors=True)
    first, _, left = words.errors_said(more)
    assert "of 7 patients, held" in first
    assert left == (
        "2 candidates left out: the judge gave no readable answer, or none on "
        "insignificant errors."
    )
    _, _, only = words.errors_said(replace(more, all_errors=False))
    assert only == "2 candidates left out: the judge gave no readable answer."
    _, _, worded = words.errors_said(replace(plain, wording=WordingCount(2.5, 2, None)))
    assert worded == (
        "Errors of wording (category g): the experts count 2.5 in 2 candidates. They "
        "are not clinical, and are part of no other number."
    )
    _, _, both = words.errors_said(replace(plain, wording=WordingCount(2.5, 2, 0.0)))
    assert "in 2 candidates; the judge counts 0 in all candidates." in both


def test_only_bins_with_a_candidate_are_shown(document):
    """Of twelve most may be empty."""
    one = document.errors[0]
    bins = (BiasBin(1, 0, NONE), BiasBin(2, 1, NONE), BiasBin(3, 2, NONE))
    assert words.bias_bins(replace(one, bias=bins)) == bins[1:]


def test_strata_stand_together_whatever_the_order_of_metrics():
    """By column and name; metrics within keep theirs; a small one has no number."""

    def one(by, stratum, value, shown=True):
        tau = NONE if value is None else Estimate(value, 0.1, 0.9)
        return StratumAgreement(by, stratum, tau, shown, 12_000, 5)

    rows = words.stratum_rows(
        [
            ("Z", one("side", "left", 0.5)),
            ("Z", one("body", "", 0.4, shown=False)),
            ("A", one("side", "left", None)),
            ("A", one("body", "", 0.3)),
        ]
    )
    assert rows == [
        ("body", "(not named)", "Z", "12,000", f"0.400 [0.100, 0.900]{words.DAGGER}"),
        ("body", "(not named)", "A", "12,000", "0.300 [0.100, 0.900]"),
        ("side", "left", "Z", "12,000", "0.500 [0.100, 0.900]"),
        ("side", "left", "A", "12,000", "not estimable"),
    ]


def told(estimate):
    """Return an estimate as data."""
    names = ("value", "low", "high", "note")
    return dict(zip(names, estimate, strict=True))


def correlated(found):
    """Return correlations as data."""
    return {
        "candidates": found.n,
        "units": found.n_units,
        "tau_b": told(found.tau_b),
        "spearman": told(found.spearman),
        "pearson": told(found.pearson),
    }


def test_the_data_hold_every_number_in_its_place():
    """The whole of a small evaluation, by hand."""
    metric = agreed("m", at(0.6, 0.5, 0.7), undefined=1, lower=True, signature="m|v1")
    metric = metric._replace(same=(ScoredMetric("n", "N"),))
    within = StratumAgreement("side", "left", Estimate(0.4, 0.1, 0.6), False, 20, 10)
    counts = CountAgreement(
        "GREEN",
        "M / (M + S)",
        Empty.SKIP,
        (at(0.5), at(0.7)),
        Preference(1, 2, 3, 4, 5, NONE),
    )
    document = MetaDocument(
        source="made up",
        result=result_of(
            metric,
            comparisons=(compared("m", "k"),),
            unscored=(("c1", "x"),),
            unrated=(("c2", "y"),),
            unavailable=(("bleu", "no texts"),),
        ),
        counts=(counts, counts._replace(empty=None)),
        strata=(MetricStratum(metric.metric, within),),
        files=(("r.csv", "0" * 64),),
        notes=("A note.",),
    )
    data = meta_data(document)
    pair = document.result.agreement.pairs[0].correlations
    rest = [one.correlations for one in document.result.agreement.rest]
    own = {
        "name": "GREEN",
        "formula": "M / (M + S)",
        "empty": "skip",
        "mean_tau_b": pytest.approx(0.6),
        "raters": {"ann": correlated(at(0.5)), "ben": correlated(at(0.7))},
        "unanimous": {
            "right": 1,
            "wrong": 2,
            "tied": 3,
            "raters_tied": 4,
            "undefined": 5,
            "accuracy": told(NONE),
        },
    }
    assert data == {
        "format": "ranloop-meta-eval-1",
        "ranloop": __version__,
        "source": "made up",
        "files": [{"name": "r.csv", "sha256": "0" * 64}],
        "notes": ["A note."],
        "candidates": 40,
        "cases": 20,
        "patients": None,
        "systems": ["x", "y"],
        "raters": ["ann", "ben"],
        "scale": [1.0, 5.0],
        "against": "points",
        "pairs": {"all": 19, "unanimous": 11, "every_rater_tied": 2},
        "bootstrap": {
            "unit": "case",
            "resamples": 2000,
            "seed": 4,
            "confidence": 0.95,
        },
        "permutations": 10_000,
        "metrics": [
            {
                "metric": "m",
                "title": "M",
                "same_values": ["n"],
                "negated": True,
                "note": "",
                "signature": "m|v1",
                "undefined": 1,
                "consensus": correlated(metric.consensus),
                "kendall_p": 0.001,
                "shown": True,
                "raters": {
                    "ann": correlated(metric.raters[0]),
                    "ben": correlated(metric.raters[1]),
                },
                "mean_tau_b_with_one_rater": 0.55,
                "suspicious": False,
                "preference": {
                    "right": 7,
                    "wrong": 2,
                    "tied": 1,
                    "raters_tied": 3,
                    "undefined": 4,
                    "accuracy": told(Estimate(0.7, 0.5, 0.9)),
                },
                "unanimous": {
                    "right": 5,
                    "wrong": 1,
                    "tied": 0,
                    "raters_tied": 0,
                    "undefined": 2,
                    "accuracy": told(NONE),
                },
            }
        ],
        "comparisons": [
            {
                "better": "m",
                "worse": "k",
                "candidates": 38,
                "units": 19,
                "tau_b_difference": 0.25,
                "p": 0.004,
                "p_holm": 0.01,
                "exact": False,
                "pearson_difference": 0.2,
                "williams_t": 2.5,
                "williams_df": 35,
                "williams_p": 0.017,
                "williams_p_holm": 0.034,
            }
        ],
        "raters_agreement": {
            "candidates": 40,
            "rated_by_all": 37,
            "ratings_missing": 3,
            "mean_tau_b_of_pairs": 0.7,
            "mean_tau_b_with_the_rest": pytest.approx(0.75),
            "krippendorff_alpha_ordinal": told(Estimate(0.8, 0.7, 0.9)),
            "krippendorff_alpha_interval": told(NONE),
            "icc_2_1": told(Estimate(0.75, 0.6, 0.85)),
            "pairs": [
                {
                    "first": "ann",
                    "second": "ben",
                    "same_points": 0.375,
                    **correlated(pair),
                }
            ],
            "with_the_rest": [
                {"rater": "ann", **correlated(rest[0])},
                {"rater": "ben", **correlated(rest[1])},
            ],
        },
        "own_counts": [own, {**own, "empty": None}],
        "strata": [
            {
                "metric": "m",
                "by": "side",
                "stratum": "left",
                "tau_b": told(within.tau_b),
                "shown": False,
                "n": 20,
                "n_units": 10,
            }
        ],
        "judge_errors": [],
        "unavailable": [{"metric": "bleu", "reason": "no texts"}],
        "unscored": [{"id": "c1", "system": "x"}],
        "unrated": [{"id": "c2", "system": "y"}],
    }
    grouped = replace(document, result=replace(document.result, patients=9))
    again = meta_data(grouped)
    assert (again["patients"], again["bootstrap"]["unit"]) == (9, "patient")


def test_a_judges_counts_are_data_with_both_sides():
    """True, found and expected, of the judge and among raters; the bias by number."""
    f1 = CountF1(2.0, 4.0, 3.0, 0.5, 2 / 3, Estimate(4 / 7, 0.2, 0.8), 9)
    low = f1._replace(f1=Estimate(0.25, None, None))
    group = GroupAgreement(
        group=CategoryGroup("omissions", ("omission", "omitted_change")),
        judge=f1,
        each=(f1, low),
        pairs=(low,),
        rest=(),
        difference=Estimate(0.5, 0.1, 0.9),
    )
    whole = group._replace(group=CategoryGroup("all", ()), pairs=(f1,))
    found = ErrorAgreement(
        judge="J",
        signature="j|v1",
        against="one expert's counts",
        all_errors=True,
        groups=(group,),
        categories=(),
        total=whole,
        wording=WordingCount(2.0, 1, None),
        tau_b=Estimate(0.3, 0.1, 0.5),
        bias=(BiasBin(1, 4, Estimate(0.5, 0.0, 1.0)),),
        without=3,
        above=2,
        candidates=9,
        unanswered=1,
        units=8,
        by_patient=True,
    )
    counted = {
        "true": 2.0,
        "found": 4.0,
        "expected": 3.0,
        "precision": 0.5,
        "recall": 2 / 3,
        "f1": told(f1.f1),
        "candidates": 9,
    }
    less = {**counted, "f1": told(low.f1)}
    omissions = {
        "group": "omissions",
        "categories": ["omission", "omitted_change"],
        "judge": counted,
        "difference": told(group.difference),
        "with_one_rater": {
            "mean_f1": pytest.approx((4 / 7 + 0.25) / 2),
            "each": [counted, less],
        },
        "two_raters": {"mean_f1": 0.25, "each": [less]},
        "one_rater_with_the_rest": {"mean_f1": None, "each": []},
        "suspicious": True,
    }
    assert error_data(found) == {
        "judge": "J",
        "signature": "j|v1",
        "against": "one expert's counts",
        "insignificant_counted": True,
        "candidates": 9,
        "unanswered": 1,
        "units": 8,
        "unit": "patient",
        "tau_b": told(found.tau_b),
        "total": {
            **omissions,
            "group": "all",
            "categories": [],
            "two_raters": {"mean_f1": 4 / 7, "each": [counted]},
            "suspicious": False,
        },
        "groups": [omissions],
        "categories": [],
        "bias": [
            {
                "true_errors": 1,
                "candidates": 4,
                "difference": told(Estimate(0.5, 0.0, 1.0)),
            }
        ],
        "wording": {"experts": 2.0, "candidates": 1, "judge": None},
        "without_true_errors": 3,
        "above_the_last": 2,
    }
    told_again = error_data(replace(found, by_patient=False, wording=None))
    assert (told_again["unit"], told_again["wording"]) == ("case", None)


SVG = "{http://www.w3.org/2000/svg}"


def drawn(*metrics, **others):
    """Return the figure of these metrics as a tree."""
    return ET.fromstring(agreement_svg(result_of(*metrics, **others)))


def ticks(root):
    """Return the numbers over the plot, in order."""
    found = [one for one in root.findall(f"{SVG}text") if one.get("y") == "38"]
    return [one.text for one in found if one.get("text-anchor") == "middle"]


@pytest.mark.parametrize(
    ("low", "first"),
    [
        (0.1, "0.0"),
        (-0.01, "\N{MINUS SIGN}0.2"),
        (-0.2, "\N{MINUS SIGN}0.2"),
        (-0.21, "\N{MINUS SIGN}0.4"),
        (-1.0, "\N{MINUS SIGN}1.0"),
    ],
)
def test_the_axis_begins_at_the_lowest_limit_and_ends_at_one(low, first):
    """At a fifth at or below it, and never above 0."""
    found = ticks(drawn(agreed("m", at(0.3, low, 0.5)), agreed("k", at(None))))
    assert (found[0], found[-1]) == (first, "1.0")
    values = [float(one.replace("\N{MINUS SIGN}", "-")) for one in found]
    assert values == pytest.approx(np.arange(values[0], 1.01, 0.2), abs=1e-9)


def test_each_metric_is_a_row_at_its_height_and_place():
    """Point and limits lie where the axis from 0 to 1 has them, 299.2 pixels wide."""
    root = drawn(agreed("m", at(0.5, 0.25, 0.75)), agreed("k", at(0.2)), tau=0.75)
    first, second = root.findall(f"{SVG}g")
    names = [one.text for one in first.findall(f"{SVG}text")]
    assert names == ["M", "0.500 [0.250, 0.750]", "39"]
    assert [one.text for one in second.findall(f"{SVG}text")] == ["K", "0.200", "39"]
    assert first.find(f"{SVG}title").text == "M: tau-b 0.500, interval [0.250, 0.750]"
    assert second.find(f"{SVG}title").text == "K: tau-b 0.200, interval –"
    circles = [one.find(f"{SVG}circle") for one in (first, second)]
    assert [(one.get("cx"), one.get("cy")) for one in circles] == [
        ("370", "58"),
        ("280.24", "82"),
    ]
    (line,) = first.findall(f"{SVG}line")
    assert [line.get(one) for one in ("x1", "y1", "x2", "y2")] == [
        "295.2",
        "58",
        "444.8",
        "58",
    ]
    stops = [one.get("d") for one in first.findall(f"{SVG}path")]
    assert stops == ["M295.2 54v8", "M444.8 54v8"]
    assert second.findall(f"{SVG}line") == second.findall(f"{SVG}path") == []
    (ceiling,) = [
        one for one in root.findall(f"{SVG}line") if one.get("stroke-dasharray")
    ]
    assert [ceiling.get(one) for one in ("x1", "y1", "x2", "y2")] == [
        "444.8",
        "42",
        "444.8",
        "94",
    ]
    assert "two raters: 0.750" in [one.text for one in root.findall(f"{SVG}text")]
    assert (root.get("width"), root.get("height")) == ("740", "102")


def test_what_cannot_be_drawn_is_told():
    """No metric, no correlation, no second rater: no mark, and words in its place."""
    empty = drawn(tau=None)
    assert empty.find(f"{SVG}desc").text == "There is no metric."
    assert empty.findall(f"{SVG}g") == []
    assert not [one for one in empty.iter() if one.get("stroke-dasharray")]
    flat = drawn(agreed("m", at(None)))
    (row,) = flat.findall(f"{SVG}g")
    assert row.find(f"{SVG}title").text == "M: no rank correlation"
    assert row.find(f"{SVG}circle") is None
    assert [one.text for one in row.findall(f"{SVG}text")] == ["M", "–", "39"]


def test_zero_stands_out_on_the_axis():
    """Left of it a metric agrees against the raters."""
    root = drawn(agreed("m", at(0.3, -0.1, 0.5)))
    colours = [one.get("stroke") for one in root.findall(f"{SVG}line")]
    upright = [one for one in colours if "--line" in one or "--grid" in one]
    assert ["--line" in one for one in upright] == [False, True, *[False] * 5]

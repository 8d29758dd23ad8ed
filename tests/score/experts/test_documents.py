"""A meta-evaluation as documents: every number, nothing hostile, no script."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from loop.documents.numbers import share, signed
from loop.score.experts import documents as words
from loop.score.experts.documents import (
    MetaDocument,
    agreement_svg,
    meta_data,
    render_meta_html,
    render_meta_markdown,
)
from loop.score.experts.error_counts import count_agreement
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.meta import hold_errors, meta_evaluate
from loop.score.experts.metric_scores import ScoredMetric, ScoreTable
from loop.score.experts.ratings import Ratings, unit_codes

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

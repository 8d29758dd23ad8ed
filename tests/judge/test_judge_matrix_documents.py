"""Judges side by side in words and data: every number in its row, cell and field."""

import csv
import io
from dataclasses import asdict, replace

import pytest

from loop import __version__
from loop.core.records import Status
from loop.documents.numbers import signed, signed_interval
from loop.judge.counts import find_score
from loop.judge.judge_evaluation import ScoreAgreement
from loop.judge.judge_matrix import (
    ColumnComparison,
    ColumnScore,
    JudgeColumn,
    JudgeMatrix,
    WithoutEffect,
)
from loop.judge.judge_matrix_documents import (
    bias_svg,
    column_strata,
    comparison_rows,
    judge_figures,
    judge_matrix_data,
    judge_matrix_notes,
    judge_rows,
    render_judge_matrix_csv,
    render_judge_matrix_markdown,
    spread_svg,
)
from loop.judge.meta_evaluation import JudgeCost, evaluate_judge
from loop.judge.score_bins import ScoreBin, bins_data
from loop.score.experts.documents import correlation_data, error_data
from loop.score.experts.strata import StratumAgreement
from loop.stats.correlation import Correlations
from loop.stats.dependent import MetricTest
from loop.stats.intervals import Estimate, Interval
from tests.judge.test_meta_evaluation import experts_for, judged

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def estimate(value, low=None, high=None):
    """Return an estimate, with limits 0.1 from it where none are named."""
    near = (round(value - 0.1, 3), round(value + 0.1, 3))
    return Estimate(value, *(near if low is None else (low, high)))


def scored(name, mean, n, tau_b, p):
    """Return a score of a column, with an agreement that no other one has."""
    others = (estimate(round(tau_b.value + step, 3)) for step in (0.01, 0.02))
    found = Correlations(tau_b, *others, n - 1, n - 2)
    score = find_score(name)
    return ColumnScore(score, mean, n, ScoreAgreement(score=score, found=found, p=p))


@pytest.fixture(scope="module")
def errors():
    """Return significant errors of a made-up judge against experts'."""
    one = judged()
    return evaluate_judge(one, experts=experts_for(one.keys), resamples=9).errors[0]


@pytest.fixture
def matrix(errors):
    """Return four columns: two with scores, one without a run, one unreadable."""
    ends = dict(zip(Status, (7, 2, 1), strict=True))
    shown = scored("green", 0.75, 7, estimate(0.6), 0.001)
    hidden = scored("errors", 1.25, 6, estimate(0.05, -0.2, 0.3), 0.7)
    good = JudgeColumn(
        key="A",
        prompt="green@v1",
        engine="rules",
        run="r1",
        statuses=ends,
        unparsed=Interval(0.025, 0.556),
        scores=(shown, hidden, ColumnScore(find_score("own"), 0.5, 1, None)),
        chosen="green",
        bins=(ScoreBin(0.0, 0.5, 3, 0.6), ScoreBin(0.5, 1.0, 1, 0.4)),
        errors=errors,
        cost=JudgeCost(pairs=8, calls=9, seconds=2.0, tokens=9_880, price=1.0,
                       currency="EUR"),
        cut_off=0,
        strata=(StratumAgreement("modality", "CT", estimate(0.4), True, 12, 11),
                StratumAgreement("modality", "", Estimate(None, None, None), False,
                                 3, 2)),
    )  # fmt: skip
    other = replace(
        good,
        key="B",
        prompt="chexprompt@v1",
        engine="told:x",
        run="r2",
        statuses=dict(zip(Status, (10, 0, 0), strict=True)),
        scores=(hidden,),
        chosen="errors",
        bins=(ScoreBin(0.0, 0.0, 1, 1.0),),
        errors=None,
        cost=JudgeCost(pairs=0, calls=0, currency="EUR"),
        cut_off=12,
        strata=(StratumAgreement("modality", "CT", estimate(0.1, -0.1, 0.3), False,
                                 12, 11),),
    )  # fmt: skip
    lost = JudgeColumn(
        key="C",
        prompt="mine@v1",
        engine="told:y",
        failure="there is no server.",
        statuses=dict.fromkeys(Status, 0),
        unparsed=Interval(0.0, 1.0),
    )
    silent = replace(
        lost,
        key="D",
        run="r4",
        failure="",
        statuses=dict(zip(Status, (0, 10, 0), strict=True)),
        cost=JudgeCost(pairs=10, calls=10, seconds=1.0, price=2.0),
    )
    return JudgeMatrix(
        cohort="rp",
        synthetic=True,
        pairs=10,
        against="rp:ratings3",
        raters=2,
        scale="1-5",
        unit="patient",
        units=9,
        ceiling=0.7,
        columns=(good, other, lost, silent),
        comparisons=(
            ColumnComparison("B", "A", MetricTest(0.25, 0.04, True, 6, 5), 0.08),
            ColumnComparison("A", "B", MetricTest(None, None, False, 1, 1), None),
        ),
        strata="strata.csv",
        without_effect=(WithoutEffect("green@v1", "told:z", ("low", "high")),),
    )


def test_each_row_has_a_cell_of_every_column(matrix, errors):
    """A dash where a column has no such number, and never a 0."""
    f1, bias = errors.total.judge.f1, errors.total.difference
    no_run = (DASH, DASH)
    assert [tuple(one) for one in judge_rows(matrix)] == [
        ("tau-b, GREEN", ("0.600 [0.500, 0.700]", DASH, *no_run)),
        ("tau-b, GREEN-EC", (*[f"0.050 [{MINUS}0.200, 0.300]†"] * 2, *no_run)),
        ("tau-b, own score", (DASH, DASH, *no_run)),
        ("compared by, scored pairs", ("GREEN, 7", "GREEN-EC, 6", DASH, "no score")),
        ("answered", ("7", "10", DASH, "0")),
        (
            "unparsed",
            (
                *("0.200 [0.025, 0.556]", "0.000 [0.025, 0.556]"),
                *(DASH, "1.000 [0.000, 1.000]"),
            ),
        ),
        ("engine failed", ("1", "0", DASH, "0")),
        (
            "F1 of significant errors",
            (f"{f1.value:.3f} [{f1.low:.3f}, {f1.high:.3f}]", DASH, *no_run),
        ),
        (
            "errors, judge minus experts",
            (
                f"{signed(bias.value, 2)} {signed_interval(bias, 2)}",
                *(DASH, *no_run),
            ),
        ),
        ("seconds a pair", ("0.250", DASH, DASH, "0.100")),
        ("tokens a pair", ("1,235", DASH, DASH, DASH)),
        ("price a pair", ("0.1250 EUR", DASH, DASH, "0.2000")),
    ]


def test_comparisons_and_strata_are_rows(matrix):
    """By the keys of columns; what is undefined is a dash, or said."""
    assert comparison_rows(matrix) == [
        ("B", "A", "+0.250", "0.040", "0.080", "6"),
        ("A", "B", DASH, DASH, DASH, "1"),
    ]
    assert column_strata(matrix) == [
        ("modality", "(not named)", "A", "3", "not estimable"),
        ("modality", "CT", "A", "12", "0.400 [0.300, 0.500]"),
        ("modality", "CT", "B", "12", f"0.100 [{MINUS}0.100, 0.300]†"),
    ]


def test_every_note_that_applies_is_there_once(matrix):
    """In order: the numbers, the comparisons, single columns, the strata."""
    assert judge_matrix_notes(matrix) == [
        "tau-b is with the mean of 2 raters (rp:ratings3, points 1-5). Intervals are "
        "of 95 %, by bootstrap over 9 patients. Where lower is better, the sign is "
        "turned, so agreement is always positive.",
        "†: tau-b is not shown to differ from 0: p is 0.05 or more by Kendall's test, "
        "two-sided, which treats pairs as independent, or the interval over patients "
        "includes 0 or cannot be estimated.",
        "Two raters have a mean tau-b of 0.700 with each other. No judge can be "
        "expected to agree with one rater more than another rater does; the mean of "
        "several raters is easier to agree with.",
        "Differences of tau-b are tested by exchanging the ranks of two columns, "
        "patient by patient, on the pairs that both score: 10,000 exchanges, or all "
        "where there are fewer. p is Holm-adjusted over all comparisons (2). The best "
        "column is chosen on the same pairs it is tested on: confirm a choice of judge "
        "on other pairs.",
        "green@v1 with told:z: thinking low, high has no effect: a test question is "
        "answered word by word as without it. Nothing was asked with it; the column "
        "without a level stands for it, too.",
        "B, chexprompt@v1 with told:x: answers that were cut off at max_tokens: 12. "
        "Thoughts count towards it: ask with more by `ranloop run --max-tokens`, and "
        "name that run with --run.",
        "C, mine@v1 with told:y: there is no server.",
        "D, mine@v1 with told:y: no answer can be read, so no score and no agreement "
        "is known. That is not an agreement of 0.",
        "Seconds and tokens count the answers that are kept; the price includes "
        "unreadable answers that were asked for again.",
        "Columns are compared by different scores, since not every judge has the same: "
        "their orders are compared, not their values.",
        "The engine rules is not a language model; its seconds are those of this "
        "machine.",
        "Strata are those of strata.csv; tau-b is of the score that columns are "
        "compared by. Strata of fewer than 10 patients have no estimate, and p is not "
        "adjusted for the number of strata.",
    ]


def test_what_does_not_apply_is_not_said(matrix):
    """One column of one rater, whose tau-b is shown and whose answers can be read."""
    good = matrix.columns[0]
    alone = replace(
        good,
        engine="told",
        scores=good.scores[:1],
        statuses=dict(zip(Status, (10, 0, 0), strict=True)),
    )
    bare = replace(
        matrix,
        columns=(alone, replace(alone, key="B")),
        comparisons=(),
        raters=1,
        ceiling=None,
        strata="",
        without_effect=(),
    )
    assert judge_matrix_notes(bare) == [
        "tau-b is with the mean of 1 rater (rp:ratings3, points 1-5). Intervals are of "
        "95 %, by bootstrap over 9 patients. Where lower is better, the sign is "
        "turned, so agreement is always positive."
    ]
    assert not bare.failed and matrix.failed


def test_a_score_without_an_estimate_has_no_cell(matrix):
    """Its tau-b cannot be estimated: a dash, without a mark."""
    good = matrix.columns[0]
    none = Correlations(*[Estimate(None, None, None)] * 3, 3, 3)
    flat = good.scores[0]._replace(
        agreement=replace(good.scores[0].agreement, found=none)
    )
    column = replace(good, scores=(flat,))
    (row, *_) = judge_rows(replace(matrix, columns=(column,)))
    assert row == ("tau-b, GREEN", (DASH,))


def test_the_table_has_a_row_for_each_column_and_score(matrix):
    """A column without a score keeps one row, with empty cells."""
    rows = list(csv.DictReader(io.StringIO(render_judge_matrix_csv(matrix))))
    first = {
        "key": "A", "prompt": "green@v1", "engine": "rules", "run": "r1",
        "score": "green", "better": "higher is better", "n": "7", "mean": "0.75",
        "tau_b": "0.6", "tau_b_low": "0.5", "tau_b_high": "0.7",
        "kendall_p": "0.001", "shown": "1", "spearman": "0.61", "pearson": "0.62",
        "compared_by": "1", "answered": "7", "unparsed": "2", "engine_failed": "1",
        "seconds_per_pair": "0.25", "tokens_per_pair": "1235",
        "price_per_pair": "0.125", "currency": "EUR", "failure": "",
    }  # fmt: skip
    second = {
        "score": "errors", "better": "lower is better", "n": "6", "mean": "1.25",
        "tau_b": "0.05", "tau_b_low": "-0.2", "tau_b_high": "0.3",
        "kendall_p": "0.7", "shown": "0", "spearman": "0.06", "pearson": "0.07",
        "compared_by": "0",
    }  # fmt: skip
    nothing = dict.fromkeys(("tau_b", "tau_b_low", "tau_b_high", "kendall_p"), "")
    nothing |= dict.fromkeys(("shown", "spearman", "pearson"), "")
    third = {"score": "own", "n": "1", "mean": "0.5", "compared_by": "0", **nothing}
    empty = dict.fromkeys(first, "")
    assert rows == [
        first,
        {**first, **second},
        {**first, **third},
        {
            **first,
            **second,
            "key": "B",
            "prompt": "chexprompt@v1",
            "engine": "told:x",
            "run": "r2",
            "compared_by": "1",
            "answered": "10",
            "unparsed": "0",
            "engine_failed": "0",
            "seconds_per_pair": "",
            "tokens_per_pair": "",
            "price_per_pair": "",
        },
        {
            **empty,
            "key": "C",
            "prompt": "mine@v1",
            "engine": "told:y",
            "compared_by": "0",
            "failure": "there is no server.",
        },
        {
            **empty,
            "key": "D",
            "prompt": "mine@v1",
            "engine": "told:y",
            "run": "r4",
            "compared_by": "0",
            "answered": "0",
            "unparsed": "10",
            "engine_failed": "0",
            "seconds_per_pair": "0.1",
            "price_per_pair": "0.2",
        },
    ]


def test_the_data_have_every_column_and_comparison(matrix, errors):
    """What has no meaning is null."""
    data = judge_matrix_data(matrix)
    columns, comparisons = data.pop("columns"), data.pop("comparisons")
    assert data == {
        "format": "ranloop-judge-matrix-1",
        "ranloop": __version__,
        "cohort": "rp",
        "synthetic": True,
        "pairs": 10,
        "against": "rp:ratings3",
        "raters": 2,
        "scale": "1-5",
        "unit": "patient",
        "units": 9,
        "mean_tau_b_of_two_raters": 0.7,
        "without_effect": [
            {"prompt": "green@v1", "engine": "told:z", "thinking": ["low", "high"]}
        ],
        "notes": judge_matrix_notes(matrix),
    }
    assert comparisons == [
        {
            "higher": "B", "lower": "A", "difference_of_tau_b": 0.25, "p": 0.04,
            "p_holm": 0.08, "exact": True, "pairs": 6, "units": 5,
        },
        {
            "higher": "A", "lower": "B", "difference_of_tau_b": None, "p": None,
            "p_holm": None, "exact": False, "pairs": 1, "units": 1,
        },
    ]  # fmt: skip
    good = matrix.columns[0]
    assert columns[0] == {
        "key": "A",
        "prompt": "green@v1",
        "engine": "rules",
        "run": "r1",
        "failure": None,
        "outcomes": {"answered": 7, "unparsed": 2, "engine_failed": 1},
        "cut_off": 0,
        "unparsed_limits": [0.025, 0.556],
        "compared_by": "green",
        "scores": [
            {
                "score": "green",
                "title": "GREEN",
                "direction": "higher",
                "n": 7,
                "mean": 0.75,
                "agreement": {
                    **correlation_data(good.scores[0].agreement.found),
                    "kendall_p": 0.001,
                    "shown": True,
                },
            },
            {
                "score": "errors",
                "title": "GREEN-EC",
                "direction": "lower",
                "n": 6,
                "mean": 1.25,
                "agreement": {
                    **correlation_data(good.scores[1].agreement.found),
                    "kendall_p": 0.7,
                    "shown": False,
                },
            },
            {
                "score": "own",
                "title": "own score",
                "direction": "higher",
                "n": 1,
                "mean": 0.5,
                "agreement": None,
            },
        ],
        "spread": bins_data(good.bins),
        "errors": error_data(errors),
        "strata": [
            {
                "by": "modality",
                "stratum": "CT",
                "shown": True,
                "n": 12,
                "n_units": 11,
                "tau_b": estimate(0.4)._asdict(),
            },
            {
                "by": "modality",
                "stratum": "",
                "shown": False,
                "n": 3,
                "n_units": 2,
                "tau_b": Estimate(None, None, None)._asdict(),
            },
        ],
        "cost": {
            **asdict(good.cost),
            "seconds_per_pair": 0.25,
            "tokens_per_pair": 1235.0,
            "price_per_pair": 0.125,
        },
    }
    assert columns[2] == {
        "key": "C",
        "prompt": "mine@v1",
        "engine": "told:y",
        "run": None,
        "failure": "there is no server.",
        "outcomes": {"answered": 0, "unparsed": 0, "engine_failed": 0},
        "cut_off": 0,
        "unparsed_limits": None,
        "compared_by": None,
        "scores": [],
        "spread": [],
        "errors": None,
        "strata": [],
        "cost": None,
    }


def test_figures_are_of_columns_with_scores(matrix, errors):
    """The spread of each, and the bias where experts marked errors."""
    first, second = judge_figures(matrix)
    assert (first.column.key, second.column.key) == ("A", "B")
    assert second.bias is None and first.bias == bias_svg(matrix.columns[0])
    spread = spread_svg(matrix.columns[0])
    assert first.spread == spread
    for words in (
        "A green@v1, rules: share of pairs by GREEN",
        "0-0.5: 3 pairs, 0.600",
        "0.5-1: 1 pair, 0.400",
    ):
        assert words in spread
    drawn = bias_svg(matrix.columns[0])
    assert "A green@v1, rules: bias by true errors" in drawn
    for one in errors.bias:
        words = f"{one.errors} true errors, {one.n} pair"
        assert (words in drawn) is (one.difference.value is not None)
        if one.difference.value is not None:
            said = signed(one.difference.value, 2)
            assert f": {said}" in drawn


def test_a_template_of_ones_own_is_used_where_there_is_one(matrix, tmp_path):
    """A folder that is older than this document has none: the shipped one is used."""
    shipped = render_judge_matrix_markdown(matrix)
    assert render_judge_matrix_markdown(matrix, templates=tmp_path) == shipped
    own = tmp_path / "judge_matrix.md.jinja"
    own.write_text("Mine: {{ matrix.columns | length }}.\n")
    mine = render_judge_matrix_markdown(matrix, templates=tmp_path)
    assert mine == f"Mine: {len(matrix.columns)}.\n"

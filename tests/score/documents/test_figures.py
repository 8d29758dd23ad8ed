"""Figures of a score are XML that describes itself, on the page and as files."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from loop.documents.charts import (
    STRONGEST,
    Grid,
    GridCell,
    IntervalRow,
    grid_svg,
    interval_rows,
    tint_percent,
)
from loop.documents.svg import as_file, fit_axis
from loop.score.documents.figures import (
    correlation_grid,
    differences_figure,
    f1_grid,
    figure_files,
    invented_grid,
    left_out_grid,
    metrics_grid,
    missed_grid,
    ranking_figure,
)
from loop.score.metrics.score_sheet import MetricCorrelations
from loop.score.records import LabelScore
from loop.stats.confusion import Confusion
from loop.stats.intervals import Estimate
from tests.documents.figures_scenes import SVG, parsed, words
from tests.score.documents.score_scenes import (
    LABELS,
    NAMES,
    document_of,
    ran_score,
)

NASTY = '"><script>alert(1)</script>&\x1b[31m\u202e\x00'


@pytest.fixture(scope="module")
def document():
    """Return three systems."""
    return document_of("first", "second", "third")


def points(figure):
    """Return the x of every point, in the order of rows."""
    root = parsed(figure)
    return [float(one.get("cx")) for one in root.iter(f"{SVG}circle")]


def test_better_systems_stand_further_right(document):
    """0.80, 0.69 and 0.58 are 0.11 apart: so are their points."""
    first, second, third = points(ranking_figure(document))
    assert first > second > third
    assert first - second == pytest.approx(second - third, abs=0.02)


def test_every_pair_has_a_row_and_one_system_has_none(document):
    """Three systems make three pairs."""
    assert len(points(differences_figure(document))) == 3
    assert differences_figure(document_of("only")) is None


@pytest.mark.parametrize(
    "values", [[], [0.5], [0.0], [1.0, 1.0], [-0.2, 0.9], [0.4999, 0.5001], [-40, 180]]
)
def test_an_axis_holds_its_values_between_few_round_ticks(values):
    """Any scores give an axis that can be read, equal ones and none at all too."""
    axis = fit_axis(values, 100, 200)
    assert all(axis.low - 1e-9 <= value <= axis.high + 1e-9 for value in values)
    assert 2 <= len(axis.ticks) <= 9
    steps = [b - a for a, b in pairwise(axis.ticks)]
    assert max(steps) == pytest.approx(min(steps))
    assert (axis.x(axis.low), axis.x(axis.high)) == (100, 300)


def test_a_row_without_an_estimate_has_a_dash_and_no_point():
    """A score that is not defined is not drawn at 0."""
    row = IntervalRow("a", Estimate(None, None, None, "no label"))
    figure = interval_rows("t", [row], heads=("score", ""))
    assert points(figure) == []
    assert "\N{EN DASH}" in words(parsed(figure))


def test_grids_show_counts_under_every_number(document):
    """An F1 of 0.92 from 27 found, 2 invented, 3 missed says how much it rests on."""
    assert f1_grid(document).cells[0][0][:1] == ("0.92",)
    assert f1_grid(document).cells[0][0].below == "27 · 2 · 3"
    assert missed_grid(document).cells[0][0].below == "3 of 30"
    assert invented_grid(document).cells[0][0].below == "2 of 268"
    assert left_out_grid(document).cells[0][0].below == "2 · 0"


def test_the_highest_rate_of_a_table_takes_the_full_tint(document):
    """The eye finds the worst label; an undefined one has no tint at all."""
    tints = [cell.tint for row in missed_grid(document).cells for cell in row]
    assert max(tint for tint in tints if tint is not None) == 1.0
    assert None in tints


def test_tints_never_drown_the_number():
    """The strongest is the one whose contrast the palette's tests check."""
    for tint in (None, 0.0, 0.5, 1.0, -1.0, 7.0):
        assert 0 <= tint_percent(GridCell("1", "t", tint)) <= 100 * STRONGEST


def test_nothing_runs_and_names_are_text():
    """Names come from files; a figure holds them as words."""
    grid = Grid(
        title=NASTY,
        rows=(NASTY,),
        columns=(NASTY,),
        cells=((GridCell(NASTY, NASTY, 0.5, NASTY),),),
    )
    row = IntervalRow(NASTY, Estimate(0.5, 0.4, 0.6), NASTY)
    for figure in (grid_svg(grid), interval_rows(NASTY, [row], heads=("a", "b"))):
        parsed(figure)
        assert "<script" not in figure
        assert not set(figure) & {"\x1b", "\u202e", "\x00"}
        assert not re.search(r"href|url\(|\son\w+=|\sid=", figure)


def test_a_file_brings_its_colours_and_its_paper(document):
    """Programs for documents know no CSS properties and may have dark paper."""
    files = figure_files(document)
    assert set(files) == {
        "ranking.svg",
        "differences.svg",
        "f1_by_label.svg",
        "missed_by_label.svg",
        "invented_by_label.svg",
        "metric_correlations.svg",
    }
    for text in files.values():
        root = parsed(text)
        assert "var(" not in text
        paper = root.find(f"{SVG}rect")
        assert paper.get("fill") == "#ffffff"
        assert paper.get("width") == root.get("width")


def test_only_a_figure_becomes_a_file():
    """Anything else is refused by name, not written half."""
    with pytest.raises(ValueError, match="not a figure"):
        as_file("<p>text</p>")


@pytest.fixture
def small():
    """Return two labels of two systems; nobody has the second label."""
    score = ran_score(("a", "b"))
    counts = (
        (Confusion(8, 1, 2, 9), Confusion(5, 4, 5, 6)),
        (Confusion(0, 0, 0, 20), Confusion(0, 0, 0, 0)),
    )
    left = ((0, 0), (3, 2)), ((0, 0), (0, 20))
    systems = tuple(
        replace(
            one,
            labels=tuple(
                LabelScore(label, counts[row][column], *left[row][column], f1)
                for row, label in enumerate(LABELS[:2])
                for f1 in [counts[row][column].f1]
            ),
        )
        for column, one in enumerate(score.systems)
    )
    return document_of(
        "a", "b", score=replace(score, systems=systems, labels=LABELS[:2])
    )


def test_a_grid_is_its_numbers_their_words_and_their_tints(small):
    """Every cell as a whole: found, invented, missed; by hand."""
    names = tuple(NAMES[one] for one in LABELS[:2])
    first, second = names
    assert f1_grid(small) == Grid(
        title="F1 of every label and system",
        rows=names,
        columns=("A a", "B b"),
        cells=(
            (
                GridCell(
                    "0.84",
                    f"{first}, a: F1 0.842, found 8, invented 1, missed 2, of 20 pairs",
                    16 / 19,
                    "8 · 1 · 2",
                ),
                GridCell(
                    "0.53",
                    f"{first}, b: F1 0.526, found 5, invented 4, missed 5, of 20 pairs",
                    10 / 19,
                    "5 · 4 · 5",
                ),
            ),
            (
                GridCell(
                    "–", f"{second}, a: F1 not defined, no case has it on either side"
                ),
                GridCell("–", f"{second}, b: F1 not defined, no pair is decided"),
            ),
        ),
    )
    assert missed_grid(small).cells == (
        (
            GridCell(
                "0.200",
                f"{first}, a: 0.200, 2 of 10 present in the reference",
                0.4,
                "2 of 10",
            ),
            GridCell(
                "0.500",
                f"{first}, b: 0.500, 5 of 10 present in the reference",
                1.0,
                "5 of 10",
            ),
        ),
        (
            GridCell(
                "–", f"{second}, a: no case present in the reference", None, "0 of 0"
            ),
            GridCell(
                "–", f"{second}, b: no case present in the reference", None, "0 of 0"
            ),
        ),
    )
    assert invented_grid(small).cells == (
        (
            GridCell(
                "0.100",
                f"{first}, a: 0.100, 1 of 10 absent in the reference",
                0.25,
                "1 of 10",
            ),
            GridCell(
                "0.400",
                f"{first}, b: 0.400, 4 of 10 absent in the reference",
                1.0,
                "4 of 10",
            ),
        ),
        (
            GridCell(
                "0.000",
                f"{second}, a: 0.000, 0 of 20 absent in the reference",
                0.0,
                "0 of 20",
            ),
            GridCell(
                "–", f"{second}, b: no case absent in the reference", None, "0 of 0"
            ),
        ),
    )
    assert left_out_grid(small).cells == (
        (
            GridCell("0", f"{first}, a: 0 uncertain, 0 without a value", 0.0),
            GridCell(
                "5", f"{first}, b: 3 uncertain, 2 without a value", 5 / 25, "3 · 2"
            ),
        ),
        (
            GridCell("0", f"{second}, a: 0 uncertain, 0 without a value", 0.0),
            GridCell(
                "20", f"{second}, b: 0 uncertain, 20 without a value", 1.0, "0 · 20"
            ),
        ),
    )


def test_tiny_rates_stay_pale(small):
    """One of a hundred is a fifth of the least that takes the full tint."""
    labels = tuple(
        one._replace(counts=Confusion(99, 0, 1, 1), uncertain=0, unanswered=0)
        for one in small.score.systems[0].labels
    )
    systems = tuple(replace(one, labels=labels) for one in small.score.systems)
    pale = replace(small, score=replace(small.score, systems=systems))
    tints = {cell.tint for row in missed_grid(pale).cells for cell in row}
    assert sorted(tints) == [pytest.approx(0.2)]
    assert left_out_grid(pale) is None
    one = labels[1]._replace(unanswered=1)
    lacking = replace(systems[0], labels=(labels[0], one))
    kept = replace(pale, score=replace(pale.score, systems=(lacking, systems[1])))
    assert left_out_grid(kept).cells[1][0].shown == "1"


def test_metrics_are_numbered_in_the_table_of_their_correlations():
    """Nothing stands on the diagonal, and what has no order has a dash."""
    found = MetricCorrelations(
        ("x", "y"),
        np.array([[1.0, -0.25], [np.nan, 1.0]]),
        np.array([[7, 5], [4, 7]]),
    )
    grid = correlation_grid(found)
    assert (grid.rows, grid.columns) == (("1 x", "2 y"), ("1", "2"))
    assert grid.cells == (
        (
            GridCell("", "x"),
            GridCell(
                "\N{MINUS SIGN}0.25",
                "x and y: tau-b \N{MINUS SIGN}0.250, 5 candidates",
                -0.25,
            ),
        ),
        (
            GridCell("–", "y and x: not estimable, 4 candidates"),
            GridCell("", "y"),
        ),
    )
    assert metrics_grid(document_of("a", correlations=None)) is None
    assert metrics_grid(document_of("a", correlations=found)) == grid


def test_rows_of_a_ranking_and_of_differences_are_told_in_words(small):
    """Rank, letter and name; the share of resamples in which it is the best."""
    about = parsed(ranking_figure(small)).find(f"{SVG}desc").text
    assert about == (
        "1. A a: 0.800 [0.760, 0.840], 90 %. 2. B b: 0.690 [0.650, 0.730], 50 %"
    )
    about = parsed(differences_figure(small)).find(f"{SVG}desc").text
    assert about == "A over B: a, b: +0.110 [+0.020, +0.200], 0.030"
    (pair,) = small.score.differences
    untold = replace(small.score, differences=(pair._replace(p_holm=None),))
    drawn = differences_figure(replace(small, score=untold))
    assert parsed(drawn).find(f"{SVG}desc").text.endswith("+0.200], –")
    assert "+0.110 [+0.020, +0.200]" in " ".join(words(parsed(drawn)))


def test_a_figure_that_is_not_there_is_no_file():
    """One system has no differences, one metric no correlations."""
    files = figure_files(document_of("only", correlations=None))
    assert set(files) == {
        "ranking.svg",
        "f1_by_label.svg",
        "missed_by_label.svg",
        "invented_by_label.svg",
    }

"""Figures of a score are XML that describes itself, on the page and as files."""

import re
from itertools import pairwise

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
    differences_figure,
    f1_grid,
    figure_files,
    invented_grid,
    left_out_grid,
    missed_grid,
    ranking_figure,
)
from loop.stats.intervals import Estimate
from tests.documents.figures_scenes import SVG, parsed, words
from tests.score.documents.score_scenes import document_of

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

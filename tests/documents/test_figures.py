"""Figures are XML that describes itself, puts marks where numbers are, and escapes."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from loop.documents.charts import (
    STRONGEST,
    CurvePoint,
    ShareBar,
    bars_svg,
    curve_svg,
    kappa_heatmap,
)
from loop.documents.numbers import interval
from loop.documents.svg import (
    DARK,
    GRAPHICS,
    LIGHT,
    SMALL,
    TEXT,
    cut,
    fit_axis,
    ink,
    text_width,
)
from loop.evaluate.history_figures import lineage_svg, version_chart
from loop.evaluate.tried import WordingStatus
from loop.stats.intervals import Estimate
from loop.stats.kappa import PairAgreement
from tests.documents.figures_scenes import SVG, lineage, node, parsed, score, words

NASTY = '"><script>alert(1)</script>&\x1b[31m\u202e\x00'


def pair(first, second, kappa):
    """Return the agreement of two readers."""
    return PairAgreement(first, second, Estimate(kappa, None, None), 50)


def every_figure():
    """Return one of each figure."""
    return (
        version_chart([score(n) for n in range(1, 8)]),
        lineage_svg(lineage(5, drafts=(1, 1, 3), aliases={5: ("production",)})),
        kappa_heatmap(["A", "B", "C"], [pair(0, 1, 0.5), pair(0, 2, None)]),
    )


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast ratio of two colours, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def blended(over, under, share):
    """Return the colour of `over` at opacity `share` on `under`."""
    pairs = ((int(over[p : p + 2], 16), int(under[p : p + 2], 16)) for p in (1, 3, 5))
    mixed = [round(share * top + (1 - share) * below) for top, below in pairs]
    return "#" + "".join(f"{value:02x}" for value in mixed)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_from_their_paper(colours):
    """4.5 to 1 for text, 3 to 1 for lines that carry meaning; also text in bars."""
    paper = colours["paper"]
    for name in TEXT:
        assert contrast(colours[name], paper) >= 4.5, name
    for name in GRAPHICS:
        assert contrast(colours[name], paper) >= 3, name
    tinted = blended(colours["accent"], paper, STRONGEST)
    assert contrast(colours["ink"], tinted) >= 4.5


def test_contrast_is_that_of_the_standard():
    """Black on white is 21; a grey of WCAG's own examples is 4.5."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_colour_is_a_property_with_a_value_to_fall_back_on():
    """A page gives its own colours, light or dark; without them figures still show."""
    for figure in every_figure():
        parsed(figure)
        used = re.findall(r'(?:fill|stroke)="([^"]+)"', figure)
        assert used
        for colour in set(used) - {"none", "transparent"}:
            assert re.fullmatch(r"var\(--[a-z]+,#[0-9a-f]{6}\)", colour)
    assert set(LIGHT) == set(DARK)
    assert ink("pass").startswith("var(--pass,")


def test_nothing_runs_and_nothing_is_loaded():
    """A figure is data: no script, no link, no font from elsewhere, no id to clash."""
    for figure in every_figure():
        assert not re.search(r"<script|href|url\(|@import|\son\w+=|\sid=", figure)
        sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', figure)]
        assert min(sizes) >= SMALL == 11


def test_hostile_names_are_text():
    """Names from files reach the page as words, without control characters."""
    graph = lineage(2, aliases={1: (NASTY,)})
    graph = replace(
        graph, prompt=NASTY, nodes=(node(NASTY, 1, why=NASTY), *graph.nodes)
    )
    for figure in (
        version_chart([score(1, ref=NASTY)]),
        lineage_svg(graph),
        kappa_heatmap([NASTY, "B"], [pair(0, 1, 0.5)]),
    ):
        parsed(figure)
        assert "<script" not in figure
        assert not set(figure) & {"\x1b", "\u202e", "\x00"}


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_versions_stand_from_left_to_right_and_higher_scores_higher(count):
    """The chart keeps the order of both axes, for one version and for sixty."""
    root = parsed(version_chart([score(n) for n in range(1, count + 1)]))
    points = [one for one in root.iter(f"{SVG}circle") if one.get("class") == "point"]
    across = [float(one.get("cx")) for one in points]
    down = [float(one.get("cy")) for one in points]
    assert len(points) == count
    assert across == sorted(set(across))
    assert down == sorted(set(down), reverse=True)
    assert max(across) < float(root.get("width"))
    assert f"v{count}" in words(root)


def test_a_version_without_a_score_keeps_its_place_and_breaks_the_line():
    """A gap is a gap, not a straight line over it."""
    rows = [score(1), score(2, macro_f1=None, low=None, high=None), score(3)]
    figure = version_chart(rows)
    root = parsed(figure)
    (curve,) = (
        one.get("d")
        for one in root.iter(f"{SVG}path")
        if "M" in one.get("d") and one.get("stroke") == ink("accent")
    )
    assert curve.count("M") == 2 and "L" not in curve
    assert "\N{EN DASH}" in words(root)


def test_what_cannot_be_compared_is_hollow_and_said():
    """Another reference or a draft: outside the line, and in the description."""
    rows = [
        score(1),
        score(2, comparable=False),
        score(0, status=WordingStatus.REJECTED),
    ]
    figure = version_chart(rows)
    root = parsed(figure)
    points = [one for one in root.iter(f"{SVG}circle") if one.get("class") == "point"]
    assert [one.get("fill") == ink("paper") for one in points] == [False, True, True]
    about = root.find(f"{SVG}desc").text
    assert "not comparable" in about and "rejected" in about


def test_a_draft_without_a_score_is_not_in_the_chart():
    """It has nothing to show there; the lineage shows it."""
    root = parsed(version_chart([score(1), score(0, macro_f1=None)]))
    assert "draft" not in words(root)


def test_labels_are_stacked_to_their_number():
    """The heights of a bar are in the ratio of its counts."""
    root = parsed(version_chart([score(1)]))
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("rx") == "2"]
    passed, _, failed = (float(one.get("height")) + 1 for one in bars)
    assert passed / failed == pytest.approx(10 / 6, rel=0.01)
    assert {"10", "5", "6"} <= set(words(root))
    # The fullest bar fills the panel, whose top and bottom are 80 pixels apart.
    assert sum(float(one.get("height")) + 1 for one in bars) == pytest.approx(80, abs=1)


@pytest.mark.parametrize("count", [1, 3, 60])
def test_versions_are_in_a_row_and_drafts_below_their_parent(count):
    """Left to right by number; a draft hangs under what it was revised from."""
    root = parsed(lineage_svg(lineage(count, drafts=(1, 1, count))))
    tags = {one.text: one for one in root.iter(f"{SVG}text")}
    across = [float(tags[f"v{n}"].get("x")) for n in range(1, count + 1)]
    assert across == sorted(set(across))
    row = float(tags["v1"].get("y"))
    for one in root.iter(f"{SVG}text"):
        if one.text in ("rejected", "draft"):
            assert float(one.get("y")) > row
            assert float(one.get("y")) < float(root.get("height"))
    assert sum(word in ("rejected", "draft") for word in words(root)) == 3


def test_aliases_stand_above_their_version_and_long_ones_are_cut():
    """Two aliases do not lie on each other; the whole name is in the title."""
    long = "a-very-long-alias-that-fits-nowhere"
    figure = lineage_svg(lineage(2, aliases={2: ("production", long)}))
    root = parsed(figure)
    tags = {one.text: float(one.get("y")) for one in root.iter(f"{SVG}text")}
    shown = next(word for word in tags if word.startswith("a-very"))
    assert tags[shown] < tags["production"] < tags["v2"]
    assert shown.endswith("\N{HORIZONTAL ELLIPSIS}") and long in figure


def test_a_revision_of_an_older_version_is_a_curve():
    """It does not run through the versions between."""
    figure = lineage_svg(lineage(4, far=((1, 4),)))
    assert re.search(r'd="M[\d.]+ [\d.]+C', figure)
    assert not re.search(r'd="M[\d.]+ [\d.]+C', lineage_svg(lineage(4)))


def test_nothing_to_show_is_a_figure_too():
    """An empty page says so instead of failing."""
    for figure in (
        version_chart([]),
        lineage_svg(lineage(0)),
        kappa_heatmap([], []),
    ):
        parsed(figure)
        assert not re.search(r"\b(nan|None|inf)\b", figure)


def test_each_pair_of_readers_has_two_cells_and_none_with_itself():
    """The table is symmetric; a missing pair shows a dash."""
    figure = kappa_heatmap(["A", "B", "C"], [pair(0, 1, 0.25), pair(1, 2, -0.5)])
    root = parsed(figure)
    found = words(root)
    assert found.count("0.25") == 2 and found.count("\N{MINUS SIGN}0.50") == 2
    assert found.count("\N{EN DASH}") == 2
    tints = [float(one.get("fill-opacity")) for one in root.iter(f"{SVG}rect")]
    assert max(tints) == pytest.approx(0.25 * STRONGEST) and min(tints) == 0


def test_text_is_cut_to_its_room():
    """A long name does not run into the plot; a full-width one counts double."""
    assert cut("short", 100) == "short"
    for name in ("a" * 80, "\u80ba" * 40):
        assert text_width(cut(name, 100)) <= 100


def test_a_pair_of_readers_is_told_with_its_interval():
    """Where there is one; a pair without kappa has none."""
    sure = PairAgreement(0, 1, Estimate(0.5, 0.4, 0.6), 50)
    figure = kappa_heatmap(["A", "B", "C"], [sure, pair(0, 2, 0.3)])
    told = [one.text for one in parsed(figure).iter(f"{SVG}title")]
    assert f"A and B: kappa 0.500 {interval(sure.kappa)}, 50 cases" in told
    assert "A and C: kappa 0.300, 50 cases" in told


def test_what_does_not_compare_is_drawn_hollow_and_said_in_the_legend():
    """Its interval is as pale as its point; gates have their words."""
    solid = version_chart([score(1)])
    hollow = version_chart([score(1, status=WordingStatus.REJECTED)])
    lines = [
        [one.get("stroke") for one in parsed(figure).iter(f"{SVG}line")]
        for figure in (solid, hollow)
    ]
    assert lines[0].count(ink("accent")) == lines[1].count(ink("accent")) + 3
    for word in ("pass", "lacks evidence", "fail", "draft, or not comparable"):
        assert word in words(parsed(solid))


def heights(lowest):
    """Return ticks with their heights, and those of a point and its interval."""
    row = score(1, macro_f1=0.97, low=lowest, high=1.0)
    root = parsed(version_chart([row]))
    ticks = {
        float(one.text): float(one.get("y")) - 4
        for one in root.iter(f"{SVG}text")
        if re.fullmatch(r"[01]\.\d", one.text or "")
    }
    (point,) = (o for o in root.iter(f"{SVG}circle") if o.get("class") == "point")
    ends = {
        float(one.get(side))
        for one in root.iter(f"{SVG}line")
        for side in ("y1", "y2")
        if one.get("stroke") == ink("accent")
    }
    (column,) = (
        one for one in root.iter(f"{SVG}rect") if one.get("fill") == "transparent"
    )
    assert ticks[1.0] == float(column.get("y"))
    return ticks, float(point.get("cy")), ends


@pytest.mark.parametrize("lowest", [0.0, 0.2, 0.5, 0.83, 0.93])
def test_scores_stand_where_the_axis_says_and_fill_their_panel(lowest):
    """The axis ends at 1 on top; it begins at a tick not above the lowest limit."""
    ticks, point, ends = heights(lowest)
    high, low = ticks[1.0], ticks[min(ticks)]

    def at(value):
        return high + (low - high) * (1 - value) / (1 - min(ticks))

    for tick, y in ticks.items():
        assert y == pytest.approx(at(tick), abs=0.02)
    assert point == pytest.approx(at(0.97), abs=0.02)
    assert sorted(ends) == pytest.approx([at(1.0), at(lowest)], abs=0.02)
    assert min(ticks) <= lowest < min(ticks) + 0.1
    assert (high, low) == (heights(0.0)[0][1.0], heights(0.0)[0][0.0])


def test_a_bar_is_as_high_as_its_share():
    """The largest fills the figure, and says its share; names are text."""
    bars = [
        ShareBar(NASTY, 0.5, "half"),
        ShareBar("b", 0.25, "quarter"),
        ShareBar("c", 0.0, "none"),
    ]
    svg = bars_svg("spread", bars, "score")
    tree = parsed(svg)
    high = [float(one.get("height")) for one in tree.iter(f"{SVG}rect")]
    assert high == [108.0, 54.0, 0.0]
    assert {"0.50", "score"} <= set(words(tree))
    assert "no score" in words(parsed(bars_svg("spread", [], "score")))


def test_a_curve_has_its_zero_between_too_many_and_too_few():
    """What is above zero stands above the line; a point without interval has none."""
    points = [
        CurvePoint(1, 0.5, 0.1, 0.9, "one"),
        CurvePoint(2, 0.0, None, None, "two"),
        CurvePoint(7, -3.0, -4.0, -2.0, "seven"),
    ]
    svg = curve_svg("bias", points, (NASTY, "judge minus experts"))
    tree = parsed(svg)
    circles = list(tree.iter(f"{SVG}circle"))
    above, zero, below = (float(one.get("cy")) for one in circles)
    assert above < zero < below
    assert [float(one.get("cx")) for one in circles] == pytest.approx(
        [44 + 300 * x / 8 for x in (1, 2, 7)]
    )
    lines = [one for one in tree.iter(f"{SVG}line") if one.get("x1") == one.get("x2")]
    assert len(lines) == 2
    level = [one for one in tree.iter(f"{SVG}line") if "line" in one.get("stroke")]
    assert {float(one.get("y1")) for one in level} == {zero}
    assert "nothing to show" in words(parsed(curve_svg("bias", [], ("a", "b"))))


@pytest.mark.parametrize("most", [0.004, 0.9, 7.0, 163.0, 52_000.0, -1_234_567.0])
def test_values_of_any_size_have_round_ticks_and_labels_that_fit(most):
    """No label begins left of the figure; what is shown lies between two ticks."""
    axis = fit_axis([0.0, most], 0.0, 100.0)
    steps = {round(b - a, 6) for a, b in pairwise(axis.ticks)}
    assert len(steps) == 1
    assert f"{steps.pop():.0e}"[0] in "125"
    assert 2 <= len(axis.ticks) <= 8
    assert axis.low <= min(most, 0.0)
    assert max(most, 0.0) <= axis.high
    tree = parsed(curve_svg("bias", [CurvePoint(1, most, None, None, "one")], "ab"))
    ends = [one for one in tree.iter(f"{SVG}text") if one.get("text-anchor") == "end"]
    assert len(ends) == len(axis.ticks)
    assert all(float(one.get("x")) - text_width(one.text) >= 0 for one in ends)

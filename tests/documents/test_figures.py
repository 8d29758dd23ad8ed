"""Figures are XML that describes itself, puts marks where numbers are, and escapes."""

import re
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from loop.documents import svg as shapes
from loop.documents.charts import (
    STRONGEST,
    CurvePoint,
    Grid,
    GridCell,
    IntervalRow,
    ShareBar,
    bars_svg,
    curve_svg,
    grid_svg,
    interval_rows,
    kappa_heatmap,
    tint_colour,
    tint_percent,
)
from loop.documents.numbers import interval
from loop.documents.svg import (
    DARK,
    GRAPHICS,
    LIGHT,
    SMALL,
    TEXT,
    Axis,
    as_file,
    cut,
    fit_axis,
    ink,
    percent_axis,
    text_width,
    tick_labels,
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
    single = [PairAgreement(0, 1, Estimate(None, None, None), 1)]
    (told,) = parsed(kappa_heatmap(["A", "B"], single)).iter(f"{SVG}desc")
    assert told.text == "A and B: kappa \N{EN DASH}, 1 case"


def test_a_figure_is_told_in_the_words_of_its_marks():
    """An empty one says so, or its reader would think that its words were lost."""
    grid = Grid(title="T", rows=(), columns=(), cells=())
    cells = ((GridCell("1", "one"), GridCell("2", "two")), (GridCell("3", "three"),))
    filled = Grid(title="T", rows=("r", "s"), columns=("c", "d"), cells=cells)
    points = [CurvePoint(k, 0.5, None, None, f"at {k}") for k in (1, 2)]
    bars = [ShareBar("a", 0.5, "half"), ShareBar("b", 0.5, "the rest")]
    pairs = [pair(0, 1, 0.5), pair(1, 2, 0.25)]
    told = {
        "There is no number.": grid_svg(grid),
        "one. two. three": grid_svg(filled),
        "There is no point.": curve_svg("T", [], ("a", "b")),
        "at 1. at 2": curve_svg("T", points, ("a", "b")),
        "There is no score.": bars_svg("T", [], "a"),
        "half. the rest": bars_svg("T", bars, "a"),
        "There is no pair of readers.": kappa_heatmap(["A"], []),
        "A and B: kappa 0.500, 50 cases. B and C: kappa 0.250, 50 cases": (
            kappa_heatmap(["A", "B", "C"], pairs)
        ),
    }
    for about, figure in told.items():
        assert parsed(figure).find(f"{SVG}desc").text == about


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


def test_text_that_just_fits_is_not_cut():
    """Ten characters of 12 pixels take 69.6; a pixel less, and one gives way."""
    words = "abcdefghij"
    room = text_width(words)
    assert room == pytest.approx(69.6)
    assert cut(words, room) == words
    assert cut(words, room - 1) == "abcdefgh\N{HORIZONTAL ELLIPSIS}"
    assert cut("ab cdefghij", text_width("abcd")) == "ab\N{HORIZONTAL ELLIPSIS}"
    assert cut(words, 0) == "\N{HORIZONTAL ELLIPSIS}"
    # From U+2E81 on a character is as wide as two.
    assert text_width("\u2e80") == text_width("a")
    assert text_width("\u2e81") == text_width("aa")


@pytest.mark.parametrize(
    ("ticks", "plain", "with_sign"),
    [
        ((0.0, 5.0), ("0.0", "5.0"), ("0", "+5.0")),
        ((0.0, 10.0), ("0", "10"), ("0", "+10")),
        ((-10.0, 0.0), ("-10", "0"), ("\N{MINUS SIGN}10", "0")),
        ((0.0, 2.5, 10.0), ("0.0", "2.5", "10.0"), ("0", "+2.5", "+10.0")),
        ((0.0, 0.25), ("0.00", "0.25"), ("0", "+0.25")),
        ((), (), ()),
    ],
)
def test_ticks_have_as_many_decimals_as_they_need(ticks, plain, with_sign):
    """None from 10 on, if all are whole; two where one is not enough."""
    assert tick_labels(ticks) == plain
    assert tick_labels(ticks, sign=True) == with_sign


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        # One value lies between two ticks; one on a tick is the left end.
        ((0.553,), (0.55, 0.56)),
        ((0.5,), (0.5, 0.51)),
        ((0.0, 0.06), (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06)),
        ((0.0, 0.061), (0.0, 0.02, 0.04, 0.06, 0.08)),
        ((-1.0, 2.0), (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)),
        ((0.0, 6.0), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
        ((0.0, 6.5), (0.0, 2.0, 4.0, 6.0, 8.0)),
        ((0.0, 13.0), (0.0, 5.0, 10.0, 15.0)),
        ((0.0, 31.0), (0.0, 10.0, 20.0, 30.0, 40.0)),
    ],
)
def test_an_axis_has_at_most_six_steps_of_a_round_size(values, ticks):
    """It begins and ends at the ticks beside the least and the largest value."""
    axis = fit_axis(values, 10.0, 200.0)
    assert axis.ticks == ticks
    assert (axis.low, axis.high) == (ticks[0], ticks[-1])
    assert (axis.x(axis.low), axis.x(axis.high)) == (10.0, 210.0)
    assert axis.x((axis.low + axis.high) / 2) == pytest.approx(110.0, abs=1e-3)


def test_only_what_lies_beyond_an_end_is_cut_off():
    """The ends themselves, and what rounding leaves beside them, are inside."""
    axis = Axis(0.0, 1.0, (), 0.0, 100.0)
    assert [axis.cuts(v) for v in (0.0, 1.0, -1e-10, 1 + 1e-10)] == [False] * 4
    assert [axis.cuts(v) for v in (-1e-8, 1 + 1e-8)] == [True] * 2
    assert [axis.x(v) for v in (-1.0, 0.0, 1.0, 2.0)] == [0.0, 0.0, 100.0, 100.0]
    assert [percent_axis(0.0, 1.0, ()).x(v) for v in (0.0, 1.0)] == [6.0, 94.0]


def test_a_row_without_a_value_or_without_limits_shows_what_there_is():
    """A point alone, an interval alone, or neither; zero is a value."""
    rows = [
        IntervalRow("both", Estimate(0.5, 0.25, 0.75), "n 9"),
        IntervalRow("zero", Estimate(0.0, 0.0, 0.5)),
        IntervalRow("bare", Estimate(0.5, None, None)),
        IntervalRow("none", Estimate(None, None, None)),
    ]
    for signed, told in (
        (
            False,
            [
                "both: 0.500 [0.250, 0.750], n 9", "zero: 0.000 [0.000, 0.500]",
                "bare: 0.500", "none: \N{EN DASH}",
            ],
        ),
        (
            True,
            [
                "both: +0.500 [+0.250, +0.750], n 9", "zero: 0.000 [0.000, +0.500]",
                "bare: +0.500", "none: \N{EN DASH}",
            ],
        ),
    ):  # fmt: skip
        root = parsed(interval_rows("T", rows, heads=("value", ""), signed_axis=signed))
        groups = list(root.iter(f"{SVG}g"))
        assert [one.find(f"{SVG}title").text for one in groups] == told
        drawn = [
            (one.find(f"{SVG}circle") is not None, one.find(f"{SVG}line") is not None)
            for one in groups
        ]
        assert drawn == [(True, True), (True, True), (True, False), (False, False)]
        stands = [one.text == "n 9" for one in groups[0].iter(f"{SVG}text")]
        assert stands.count(True) == 1
        # The line at zero stands out on an axis of differences only.
        upright = [one for one in root.iter(f"{SVG}line") if one.get("y1") == "34"]
        strong = [one for one in upright if one.get("stroke") == ink("line")]
        assert len(strong) == signed


def test_a_column_at_the_right_end_is_there_where_it_has_a_head():
    """Without one the figure is narrower."""
    row = [IntervalRow("a", Estimate(0.5, 0.4, 0.6), "9")]
    wide, narrow = (
        float(parsed(interval_rows("T", row, heads=("v", head))).get("width"))
        for head in ("n", "")
    )
    assert wide - narrow == 110
    empty = parsed(interval_rows("T", [], heads=("v", "")))
    assert empty.find(f"{SVG}desc").text == "There is no row."


def test_an_axis_of_differences_holds_zero():
    """Where all are above it, they are seen to be."""
    rows = [IntervalRow("a", Estimate(0.5, 0.4, 0.6))]
    shown = [
        words(parsed(interval_rows("T", rows, heads=("v", ""), signed_axis=signed)))
        for signed in (True, False)
    ]
    assert shown[0][0] == "0"
    assert not {"0", "0.0", "0.00"} & {*shown[1]}


@pytest.mark.parametrize(
    ("tint", "percent", "colour"),
    [
        (None, 0, "accent"), (0.0, 0, "accent"), (0.5, 18, "accent"),
        (1.0, 36, "accent"), (2.0, 36, "accent"), (-0.5, 18, "fail"),
        (-1.0, 36, "fail"), (-7.0, 36, "fail"),
    ],
)  # fmt: skip
def test_a_cell_is_tinted_by_its_size_and_coloured_by_its_sign(tint, percent, colour):
    """At most as much as ink on it stays readable; no number has no tint."""
    cell = GridCell("x", "about", tint, "n 9")
    grid = Grid(title="T", rows=("r",), columns=("c",), cells=((cell,),))
    assert (tint_percent(cell), tint_colour(grid, cell)) == (percent, colour)
    (box,) = parsed(grid_svg(grid)).iter(f"{SVG}rect")
    assert float(box.get("fill-opacity")) == percent / 100
    assert box.get("fill") == ink(colour)


def test_a_file_brings_its_paper_and_its_colours():
    """Sixteen pixels on every side; what is no figure of ours is refused."""
    plain = as_file(shapes.figure((100, 50), "T", "About.", shapes.text(0, 0, "word")))
    root = parsed(plain.partition("\n")[2])
    assert [root.get(name) for name in ("width", "height", "viewBox")] == [
        "132", "82", "-16 -16 132 82",
    ]  # fmt: skip
    (paper,) = root.iter(f"{SVG}rect")
    assert [paper.get(name) for name in ("x", "y", "width", "height")] == [
        "-16", "-16", "132", "82",
    ]  # fmt: skip
    assert "var(" not in plain and LIGHT["ink"] in plain
    with pytest.raises(ValueError, match="this is not a figure"):
        as_file("<svg></svg>")


def test_no_score_at_all_has_no_bar_that_is_divided_by():
    """Shares of 0 are drawn without a height."""
    bars = [ShareBar("a", 0.0, "none"), ShareBar("b", 0.0, "none")]
    root = parsed(bars_svg("T", bars, "score"))
    assert [float(one.get("height")) for one in root.iter(f"{SVG}rect")] == [0, 0]


def test_the_first_the_middle_and_the_last_bar_are_named():
    """The first where the bars begin, the last where they end; a single one once."""
    places = {
        1: {"b0": ("end", 344)},
        2: {"b0": (None, 44), "b1": ("end", 344)},
        5: {"b0": (None, 44), "b2": ("middle", 194), "b4": ("end", 344)},
    }
    for count, named in places.items():
        bars = [ShareBar(f"b{k}", 0.2, "x") for k in range(count)]
        shown = {
            one.text: (one.get("text-anchor"), float(one.get("x")))
            for one in parsed(bars_svg("T", bars, "score")).iter(f"{SVG}text")
            if one.text.startswith("b")
        }
        assert shown == named


@pytest.mark.parametrize(
    ("shown", "below", "column", "wide"),
    [
        ("1", "", "c", 44),
        # Ten characters and 12 pixels beside them, whichever text is the longest.
        ("0123456789", "", "c", 81.6),
        ("1", "0123456789", "c", 81.6),
        ("1", "", "0123456789", 81.6),
        ("1", "", "a very long name of a column", 104),
    ],
)
def test_a_column_is_as_wide_as_its_longest_text(shown, below, column, wide):
    """Within limits: a long name is cut, and a digit is no sliver."""
    cells = tuple((GridCell(shown, "x", 1.0, below),) * 2 for _ in range(1))
    grid = Grid(title="T", rows=("r",), columns=(column, "d"), cells=cells)
    one, other = parsed(grid_svg(grid)).iter(f"{SVG}rect")
    step = float(other.get("x")) - float(one.get("x"))
    assert step == pytest.approx(wide, abs=0.01)
    assert float(one.get("width")) == pytest.approx(wide - 2, abs=0.01)


def drawings():
    """Return a chart of each kind, with several marks each."""
    rows = [IntervalRow(f"row {k}", Estimate(0.2 * k, 0.1 * k, 0.9)) for k in (1, 2, 3)]
    points = [CurvePoint(k, k - 2.0, k - 2.5, k - 1.5, "x") for k in (1, 2, 3)]
    cells = tuple((GridCell("0.5", "x", 0.5, "1/2"),) * 3 for _ in "ab")
    grid = Grid(title="T", rows=("r1", "r2"), columns=("c1", "c2", "c3"), cells=cells)
    return {
        "rows": interval_rows("T", rows, heads=("value", "n")),
        "bars": bars_svg("T", [ShareBar("b", 0.1 * k, "x") for k in (1, 2, 3)], "foot"),
        "curve": curve_svg("T", points, ("foot", "side")),
        "grid": grid_svg(grid),
        "pairs": kappa_heatmap(["A", "B", "C"], [pair(0, 1, 0.5), pair(1, 2, 0.1)]),
    }


@pytest.mark.parametrize("kind", ["rows", "bars", "curve", "grid", "pairs"])
def test_nothing_is_drawn_outside_its_figure(kind):
    """Every word and mark lies between the edges, and no two words on each other."""
    root = parsed(drawings()[kind])
    wide, high = (float(root.get(side)) for side in ("width", "height"))
    places = []
    for one in root.iter(f"{SVG}text"):
        size = float(one.get("font-size", 12))
        width = text_width(one.text or "", size)
        shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
        left = float(one.get("x")) - width * shift[one.get("text-anchor", "start")]
        y = float(one.get("y"))
        assert left >= 0 and left + width <= wide, one.text
        assert 0.8 * size <= y <= high, one.text
        if width:
            places.append((left, left + width, y - 0.6 * size, y))
    for first, other in combinations(places, 2):
        across = first[0] < other[1] and other[0] < first[1]
        assert not (across and first[2] < other[3] and other[2] < first[3])
    for one in root.iter(f"{SVG}rect"):
        x, y, width, height = (
            float(one.get(name)) for name in ("x", "y", "width", "height")
        )
        assert x >= 0 and x + width <= wide
        assert y >= 0 and y + height <= high
    for one in root.iter(f"{SVG}circle"):
        assert 5 <= float(one.get("cy")) <= high - 5
    for one in root.iter(f"{SVG}line"):
        for end in "12":
            assert 0 <= float(one.get(f"x{end}")) <= wide
            assert 0 <= float(one.get(f"y{end}")) <= high


def test_words_are_level_with_what_they_say():
    """The baseline is four pixels below the middle of a mark, a line or a cell."""
    found = {kind: parsed(one) for kind, one in drawings().items()}
    for group in found["rows"].iter(f"{SVG}g"):
        y = float(group.find(f"{SVG}circle").get("cy"))
        assert {float(one.get("y")) for one in group.iter(f"{SVG}text")} == {y + 4}
    for kind in ("bars", "curve"):
        ends = {
            float(one.get("y")) - 4
            for one in found[kind].iter(f"{SVG}text")
            if one.get("text-anchor") == "end" and float(one.get("x")) < 44
        }
        level = {
            float(one.get("y1"))
            for one in found[kind].iter(f"{SVG}line")
            if one.get("y1") == one.get("y2")
        }
        assert ends == level
    for group in found["pairs"].iter(f"{SVG}g"):
        box, word = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        middle = float(box.get("y")) + float(box.get("height")) / 2
        assert float(word.get("y")) == middle + 4


@pytest.mark.parametrize(
    ("kind", "names", "heads"),
    [("grid", ["r1", "r2"], ["c1", "c2", "c3"]), ("pairs", [*"ABC"], [*"ABC"])],
)
def test_names_stand_beside_their_row_and_over_their_column(kind, names, heads):
    """Level with the middle of its cells, left of them all, and above them all."""
    root = parsed(drawings()[kind])
    boxes = [
        [float(one.get(name)) for name in ("x", "y", "width", "height")]
        for one in root.iter(f"{SVG}rect")
    ]
    middles = sorted({y + high / 2 for _, y, _, high in boxes})
    centres = sorted({round(x + wide / 2, 2) for x, _, wide, _ in boxes})
    sides = [one for one in root.iter(f"{SVG}text") if one.get("text-anchor") == "end"]
    assert [one.text for one in sides] == names
    assert [float(one.get("y")) - 4 for one in sides] == middles
    assert all(float(one.get("x")) < min(box[0] for box in boxes) for one in sides)
    tops = [
        one
        for one in root.iter(f"{SVG}text")
        if one.get("text-anchor") == "middle"
        and float(one.get("y")) < min(box[1] for box in boxes)
    ]
    assert [one.text for one in tops] == heads
    assert [float(one.get("x")) for one in tops] == pytest.approx(centres, abs=0.02)


def test_a_cell_shows_what_stands_below_its_number():
    """In small, and only where there is something; else the number is alone."""
    for below, shown in (("1/2", ["0.5", "1/2"]), ("", ["0.5"])):
        cells = ((GridCell("0.5", "x", 0.5, below),),)
        grid = Grid(title="T", rows=("r",), columns=("c",), cells=cells)
        assert words(parsed(grid_svg(grid)))[2:] == shown


def test_each_axis_of_a_curve_has_its_own_caption():
    """That of the vertical one stands on top, that of the horizontal one below."""
    root = parsed(drawings()["curve"])
    places = {one.text: float(one.get("y")) for one in root.iter(f"{SVG}text")}
    assert places["side"] == min(places.values())
    assert places["foot"] == max(places.values())


def test_lines_run_through_the_whole_plot():
    """Level ones from its left to its right end, upright ones over all rows."""
    found = {kind: parsed(one) for kind, one in drawings().items()}
    for kind, sides in (("bars", {(44, 344)}), ("curve", {(44, 344)})):
        level = {
            (float(one.get("x1")), float(one.get("x2")))
            for one in found[kind].iter(f"{SVG}line")
            if one.get("y1") == one.get("y2")
        }
        assert level == sides
    rows = found["rows"]
    upright = {
        (float(one.get("y1")), float(one.get("y2")))
        for one in rows.iter(f"{SVG}line")
        if one.get("x1") == one.get("x2")
    }
    # Three rows of 26 pixels below a head of 34.
    assert upright == {(34, 34 + 3 * 26)}
    heights = [float(one.get("cy")) for one in rows.iter(f"{SVG}circle")]
    assert heights == [34 + 26 * (k + 0.5) for k in range(3)]
    for kind, cells in (("grid", 6), ("pairs", 6)):
        boxes = list(found[kind].iter(f"{SVG}rect"))
        assert len(boxes) == cells
    # A reader with himself is a stroke through the cell, between its corners.
    boxes = [float(one.get("x")) for one in found["pairs"].iter(f"{SVG}rect")]
    for place, one in enumerate(found["pairs"].iter(f"{SVG}line")):
        left = min(boxes) - 1 + 62 * place
        ends = [float(one.get("x1")), float(one.get("x2"))]
        assert ends == pytest.approx([left + 10, left + 52])
        top = 30 + 34 * place
        assert (float(one.get("y1")), float(one.get("y2"))) == (top + 6, top + 28)


@pytest.mark.parametrize(
    ("low", "high", "path"),
    [(0.25, 0.75, "M50 6v8M150 6v8"), (-1.0, 2.0, "M0 6v8M200 6v8")],
)
def test_an_interval_is_a_line_with_a_stop_at_each_end(low, high, path):
    """Held at the ends of the axis."""
    axis = Axis(0.0, 1.0, (), 0.0, 200.0)
    root = parsed(
        shapes.figure((200, 20), "T", "A.", shapes.draw_interval(axis, 10, low, high))
    )
    (line,) = root.iter(f"{SVG}line")
    (stops,) = root.iter(f"{SVG}path")
    assert (line.get("y1"), line.get("y2")) == ("10", "10")
    assert [float(line.get(end)) for end in ("x1", "x2")] == [
        axis.x(low),
        axis.x(high),
    ]
    assert stops.get("d") == path
    assert {line.get("stroke"), stops.get("stroke")} == {ink("accent")}


def test_shapes_are_what_they_are_called():
    """Whole elements, with defaults left out."""
    ink_, line_ = ink("ink"), ink("line")
    assert shapes.text(1, 2.5, "a < b") == (
        f'<text x="1" y="2.5" fill="{ink_}">a &lt; b</text>'
    )
    assert shapes.text(1, 2, "a", anchor="end", colour="line", weight=600) == (
        f'<text x="1" y="2" fill="{line_}" text-anchor="end" font-weight="600">a</text>'
    )
    assert shapes.line((1, 2), (3, 4)) == (
        f'<line x1="1" y1="2" x2="3" y2="4" stroke="{line_}" stroke-width="1"/>'
    )
    assert shapes.line((1, 2), (3, 4), width=1.5, dashes="2 3") == (
        f'<line x1="1" y1="2" x2="3" y2="4" stroke="{line_}" stroke-width="1.5" '
        'stroke-dasharray="2 3"/>'
    )
    assert shapes.path("M0 0") == (
        f'<path d="M0 0" fill="none" stroke="{line_}" stroke-width="1.5"/>'
    )
    assert shapes.rect((1, 2), (3, 4), fill="red") == (
        '<rect x="1" y="2" width="3" height="4" rx="2" fill="red"></rect>'
    )
    assert shapes.rect((1, 2), (3, 4), fill="red", stroke="ink", title="a&b") == (
        f'<rect x="1" y="2" width="3" height="4" rx="2" fill="red" stroke="{ink_}">'
        "<title>a&amp;b</title></rect>"
    )
    assert shapes.group("a\n b", "<p/>", "<q/>") == "<g><title>a b</title><p/><q/></g>"


def test_ticks_are_drawn_with_their_labels_above_the_plot():
    """Zero stands out on an axis of differences alone."""
    axis = Axis(-1.0, 1.0, (-1.0, 0.0, 1.0), 10.0, 100.0)
    for sign, colours in (
        (True, [ink("grid"), ink("line"), ink("grid")]),
        (False, [ink("grid")] * 3),
    ):
        parts = shapes.draw_axis(axis, 30, 80, sign=sign)
        root = parsed(shapes.figure((120, 90), "T", "A.", *parts))
        lines = list(root.iter(f"{SVG}line"))
        assert [one.get("stroke") for one in lines] == colours
        assert [
            [one.get(name) for name in ("x1", "y1", "x2", "y2")] for one in lines
        ] == [[x, "30", x, "80"] for x in ("10", "60", "110")]
        labels = list(root.iter(f"{SVG}text"))
        assert [one.text for one in labels] == list(tick_labels(axis.ticks, sign=sign))
        assert [(one.get("x"), one.get("y")) for one in labels] == [
            (x, "20") for x in ("10", "60", "110")
        ]


@pytest.mark.parametrize(
    ("low", "high", "drawn"),
    [(-0.5, 1.5, True), (None, 1.5, False), (-0.5, None, False), (None, None, False)],
)
def test_a_point_has_an_interval_where_both_its_limits_are_known(low, high, drawn):
    """One limit alone is none; the axis still holds it."""
    root = parsed(curve_svg("T", [CurvePoint(1, 0.5, low, high, "one")], ("a", "b")))
    (mark,) = root.iter(f"{SVG}g")
    lines = list(mark.iter(f"{SVG}line"))
    assert len(lines) == drawn
    level = {
        one.text: float(one.get("y")) - 4
        for one in root.iter(f"{SVG}text")
        if one.get("text-anchor") == "end"
    }
    ends = [end for end in (0.5, low, high, 0.0) if end is not None]
    shown = [float(one.replace("\N{MINUS SIGN}", "-")) for one in level]
    assert min(shown) <= min(ends) and max(ends) <= max(shown)
    if drawn:
        assert [lines[0].get(end) for end in ("x1", "x2")] == [
            mark.find(f"{SVG}circle").get("cx")
        ] * 2
        heights = [level["\N{MINUS SIGN}0.5"], level["+1.5"]]
        assert [float(lines[0].get(end)) for end in ("y1", "y2")] == heights
    # A row of a chart of intervals likewise.
    row = IntervalRow("one", Estimate(0.5, low, high))
    (mark,) = parsed(interval_rows("T", [row], heads=("v", ""))).iter(f"{SVG}g")
    assert len(list(mark.iter(f"{SVG}line"))) == drawn


def test_names_are_cut_to_their_column():
    """Beside rows at most 150, 198 or 210 pixels; over columns six less than theirs."""
    long = "a name that is far too long for any of the columns it may stand in"
    readers = parsed(kappa_heatmap([long, "B"], [pair(0, 1, 0.5)]))
    cells = ((GridCell("0.5", "x", 0.5),) * 2,)
    grid = parsed(
        grid_svg(Grid(title="T", rows=(long,), columns=(long, "c"), cells=cells))
    )
    rows = parsed(
        interval_rows("T", [IntervalRow(long, Estimate(1, 0, 1))], heads=("v", ""))
    )
    for root, rooms in ((readers, [150, 56]), (grid, [98, 210]), (rows, [198])):
        shown = [word for word in words(root) if word.startswith("a na")]
        assert len(shown) == len(rooms)
        for name, room in zip(shown, rooms, strict=True):
            assert name == cut(long, room)
            # One more character would not fit.
            assert room - 14 < text_width(name) <= room


def placed(figure):
    """Return where each mark of a figure stands: kind, place and size, and words."""
    root = parsed(figure)
    found = [("figure", f"{root.get('width')} {root.get('height')}")]
    of = {
        "path": ("d",),
        "line": ("x1", "y1", "x2", "y2"),
        "rect": ("x", "y", "width", "height"),
        "circle": ("cx", "cy", "r"),
        "text": ("x", "y"),
    }
    for one in root.iter():
        kind = one.tag.removeprefix(SVG)
        if kind in of:
            place = " ".join(one.get(name) for name in of[kind])
            found.append((kind, place, *([one.text] if kind == "text" else [])))
    return found


def test_a_lineage_joins_each_version_with_what_was_made_of_it():
    """Boxes of 52 by 30, 96 apart; arrows end before them, drafts hang 30 apart.

    Two aliases take 22 each above the row, and the curve above it 26.
    """
    graph = lineage(4, drafts=(2, 2), far=((1, 4),), aliases={2: ("ward", "lab")})
    assert placed(lineage_svg(graph)) == [
        ("figure", "464 224"),
        ("path", "M58 100C74 70 314 70 330 100m-7 -3l7 3l0 -7"),
        ("line", "76 115 118 115"),
        ("path", "M114 111l5 4l-5 4"),
        ("path", "M134 150V161Q134 167 147 167"),
        ("path", "M134 150V191Q134 197 147 197"),
        ("line", "172 115 214 115"),
        ("path", "M210 111l5 4l-5 4"),
        ("rect", "24 100 52 30"),
        ("text", "50 119", "v1"),
        ("text", "50 145", "2026-01-05"),
        ("rect", "120 100 52 30"),
        ("text", "146 119", "v2"),
        ("text", "146 145", "2026-01-05"),
        ("rect", "127.24 78 37.52 18"),
        ("text", "146 91", "ward"),
        ("rect", "130.43 56 31.14 18"),
        ("text", "146 69", "lab"),
        ("path", "M152 163l8 8m0-8l-8 8"),
        ("text", "166 171", "rejected"),
        ("circle", "156 197 5"),
        ("text", "166 201", "draft"),
        ("rect", "216 100 52 30"),
        ("text", "242 119", "v3"),
        ("text", "242 145", "2026-01-05"),
        ("rect", "312 100 52 30"),
        ("text", "338 119", "v4"),
        ("text", "338 145", "2026-01-05"),
    ]
    assert placed(lineage_svg(lineage(1)))[:2] == [
        ("figure", "260 94"),
        ("rect", "24 30 52 30"),
    ]


AXES = [
    ("circle", "14 338 5.5"),
    ("text", "26 342", "pass"),
    ("path", "M74 331.5l6.5 6.5l-6.5 6.5l-6.5-6.5Z"),
    ("text", "86 342", "lacks evidence"),
    ("rect", "187 333 10 10"),
    ("text", "204 342", "fail"),
    ("circle", "248 338 4.5"),
    ("text", "260 342", "draft, or not comparable"),
    ("text", "8 30", "macro-F1"),
    ("text", "8 212", "labels"),
    ("line", "46 190 446 190"),
    ("text", "38 194", "0.5"),
    ("line", "46 160.8 446 160.8"),
    ("text", "38 164.8", "0.6"),
    ("line", "46 131.6 446 131.6"),
    ("text", "38 135.6", "0.7"),
    ("line", "46 102.4 446 102.4"),
    ("text", "38 106.4", "0.8"),
    ("line", "46 73.2 446 73.2"),
    ("text", "38 77.2", "0.9"),
    ("line", "46 44 446 44"),
    ("text", "38 48", "1.0"),
    ("line", "46 306 446 306"),
    ("text", "38 234", "20"),
    ("text", "38 306", "0"),
]
"""Scores from 0.5 to 1 over 146 pixels, 20 labels over 80."""


def test_a_chart_puts_every_version_in_its_column():
    """92 pixels each, the first in the middle of the first: 46 + 46.

    0.6 is a fifth of the way up from 190, and half of the labels half of the way.
    """
    labels = {"labels_passed": 10, "labels_insufficient": 2, "labels_failed": 8}
    nothing = dict.fromkeys(labels)
    rows = [
        score(1, macro_f1=0.6, low=0.5, high=0.75, **labels),
        score(2, macro_f1=None, low=None, high=None, **nothing),
        score(0, macro_f1=0.75, status=WordingStatus.DRAFT, low=None, **nothing),
        score(3, macro_f1=1.0, low=None, high=None, **nothing),
    ]
    assert placed(version_chart(rows)) == [
        ("figure", "464 356"),
        *AXES,
        ("path", "M92 160.8M368 44"),
        ("text", "92 324", "v1"),
        ("rect", "46 44 92 262"),
        ("line", "92 190 92 117"),
        ("line", "88 190 96 190"),
        ("line", "88 117 96 117"),
        ("circle", "92 160.8 4.5"),
        ("rect", "75 266.5 34 39"),
        ("text", "92 290", "10"),
        ("rect", "76 259 32 6"),
        ("rect", "75 226.5 34 31"),
        ("text", "92 246", "8"),
        ("text", "184 324", "v2"),
        ("rect", "138 44 92 262"),
        ("text", "184 184", "\N{EN DASH}"),
        ("text", "276 324", "draft"),
        ("rect", "230 44 92 262"),
        ("circle", "276 117 4.5"),
        ("text", "368 324", "v3"),
        ("rect", "322 44 92 262"),
        ("circle", "368 44 4.5"),
    ]
    joined = placed(version_chart([rows[0], rows[2], rows[3]]))
    assert ("path", "M92 160.8L276 44") in joined


@pytest.mark.parametrize(
    ("count", "width", "step"),
    [(1, 464, 92), (4, 464, 92), (6, 616, 92), (7, 658, 84.8571), (20, 744, 34)],
)
def test_a_version_has_room_between_34_and_92_pixels(count, width, step):
    """As many as fit are spread over 594 pixels; a few leave the figure its width."""
    found = placed(version_chart([score(n) for n in range(1, count + 1)]))
    assert found[0] == ("figure", f"{width} 356")
    columns = [one[1] for one in found if one[0] == "rect" and one[1].endswith(" 262")]
    assert len(columns) == count
    assert {one.split()[2] for one in columns} == {f"{step:g}"}

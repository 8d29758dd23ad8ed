"""Printed numbers, tables and templates: rounded once, and nothing in them runs."""

import doctest
import os

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.documents import numbers, templates
from loop.documents.tables import format_rows, neutralise
from loop.evaluate import documents as evaluation_text
from loop.stats.intervals import Estimate


def test_examples_in_the_docstrings_hold():
    """The docstrings show what is printed."""
    for module in (numbers, templates, evaluation_text):
        assert doctest.testmod(module).failed == 0


def test_small_p_values_are_not_zero():
    """A printed 0.000 would claim certainty."""
    assert numbers.p_value(1e-12) == "< 0.001"
    assert numbers.p_value(0.001) == "0.001"


def test_long_lists_say_what_they_leave_out():
    """A list cut without saying so would be a silent loss."""
    assert numbers.listed("abc", most=2) == "a, b and 1 more"
    assert numbers.listed("ab", most=2) == "a, b"
    assert numbers.listed("", most=2) == ""
    assert numbers.listed(map(str, range(41))).endswith("38, 39 and 1 more")
    assert numbers.listed(map(str, range(40))).endswith("38, 39")


DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("number", "plain", "with_sign"),
    [
        (None, DASH, DASH),
        (0.0, "0.000", "0.000"),
        (-0.0, "0.000", "0.000"),
        # What rounds to zero has no sign, from either side.
        (0.0004, "0.000", "0.000"),
        (-0.0004, "0.000", "0.000"),
        (0.0006, "0.001", "+0.001"),
        (-0.0006, f"{MINUS}0.001", f"{MINUS}0.001"),
        (1.0, "1.000", "+1.000"),
        (-12.5, f"{MINUS}12.500", f"{MINUS}12.500"),
    ],
)
def test_a_sign_is_printed_only_of_what_is_not_zero(number, plain, with_sign):
    """A minus before 0.000 would say which side of it a rounded number is on."""
    assert numbers.share(number) == plain
    assert numbers.signed(number) == with_sign


def test_limits_are_printed_with_both_ends_or_not_at_all():
    """One end alone is no interval, and a limit of 0 is one."""
    for low, high in ((None, 0.5), (0.5, None), (None, None)):
        assert numbers.interval(Estimate(0.5, low, high)) == DASH
        assert numbers.signed_interval(Estimate(0.5, low, high)) == DASH
    assert numbers.interval(None) == numbers.signed_interval(None) == DASH
    both = Estimate(0.1, 0.0, 0.25)
    assert numbers.interval(both, 2) == "[0.00, 0.25]"
    assert numbers.signed_interval(both, 2) == "[0.00, +0.25]"


def test_p_values_are_never_printed_as_zero_just_below_the_limit():
    """0.0009999 rounds to 0.001, and is below it."""
    assert numbers.p_value(0.0009999) == "< 0.001"
    assert numbers.p_value(0.0010001) == "0.001"


def test_counts_have_separators_from_ten_thousand_on():
    """Below that, four digits are read at a glance; 0 is a count."""
    assert [numbers.count(n) for n in (0, 9_999, 10_000, 1_234_567, None)] == [
        "0", "9999", "10,000", "1,234,567", DASH,
    ]  # fmt: skip


def test_percentages_of_nothing_and_of_all():
    """None is no share, and 0 is one."""
    assert [numbers.percent(one) for one in (None, 0.0, 1.0)] == [
        DASH, "0.0 %", "100.0 %",
    ]  # fmt: skip
    assert numbers.percent(0.1234, digits=2) == "12.34 %"


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        (None, ""), (0, "0"), (-1, "-1"), (-0.25, "-0.25"), (1 / 3, "0.333333"),
        (True, "True"), ("=1", "'=1"), ("-1", "'-1"), ("1", "1"), ("", ""),
    ],
)  # fmt: skip
def test_only_text_can_be_taken_for_a_formula(cell, safe):
    """A negative number stays one; text that begins like a formula is shielded."""
    assert neutralise(cell) == safe


def test_rows_of_a_table_need_not_have_the_same_cells():
    """Names come in the order in which they first appear, or as they are given."""
    rows = [{"b": 1, "a": 2}, {"c": 3}]
    assert format_rows(rows).splitlines() == ["b,a,c", "1,2,", ",,3"]
    assert format_rows(rows, ["a"]).splitlines() == ["a", "2", '""']
    assert format_rows([], ["a", "b"]).splitlines() == ["a,b"]


def test_only_the_text_of_html_is_escaped(tmp_path):
    """In Markdown a filter does it; what cannot be seen is spelled out in both."""
    for name, shown in (("a.md", "<b>"), ("a.html.jinja", "&lt;b&gt;")):
        (tmp_path / name).write_text("{{ word }}\n", "utf-8")
        said = templates.render_template(tmp_path, name, {"word": "<b>\x1b"})
        assert said.startswith(shown)
        assert "\x1b" not in said


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (None, r"x\.md: the template cannot be rendered \(TemplateNotFound"),
        ("a\n{% if %}", r"x\.md, line 2: .*TemplateSyntaxError"),
        ("{{ unknown }}", r"x\.md: .*UndefinedError: 'unknown' is undefined"),
        ("{{ ''.__class__.mro() }}", r"x\.md: .*SecurityError"),
    ],
)
def test_a_template_that_cannot_be_rendered_is_named(tmp_path, text, where):
    """With its line where that is known; nothing unsafe in it runs."""
    if text is not None:
        (tmp_path / "x.md").write_text(text, "utf-8")
    with pytest.raises(DataError, match=where):
        templates.render_template(tmp_path, "x.md", {})


def test_a_template_that_was_corrected_is_rendered_as_it_is_now(tmp_path):
    """Each is compiled once: also what it includes may change meanwhile."""
    (tmp_path / "part.md").write_text("{{ wrong }}", "utf-8")
    (tmp_path / "whole.md").write_text("{% include 'part.md' %}", "utf-8")
    with pytest.raises(DataError, match="'wrong' is undefined"):
        templates.render_template(tmp_path, "whole.md", {})
    for second, text in enumerate(("right", "and again")):
        (tmp_path / "part.md").write_text(text, "utf-8")
        os.utime(tmp_path / "part.md", (second, second))
        assert templates.render_template(tmp_path, "whole.md", {}) == text


def test_a_workspace_may_have_templates_of_its_own(tmp_path):
    """Only where there is a folder of them; a file of that name is none."""
    paths = WorkspacePaths(tmp_path)
    assert templates.template_folder(paths) == templates.shipped_templates()
    own = tmp_path / "reports" / "templates"
    own.parent.mkdir()
    own.touch()
    assert templates.template_folder(paths) == templates.shipped_templates()
    own.unlink()
    own.mkdir()
    assert templates.template_folder(paths) == own


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a|b <i>", "a&#124;b &lt;i>"),
        ("*a* _b_ `c` [d](e)", "\\*a\\* \\_b\\_ \\`c\\` \\[d\\](e)"),
        ("a\\|b", "a\\\\&#124;b"),
        ("a & b &lt;", "a &amp; b &amp;lt;"),
        ("  two\n lines\t", "two lines"),
        (0.5, "0.5"),
        ("", ""),
    ],
)
def test_a_cell_of_markdown_stays_one_cell_of_plain_words(text, cell):
    """Whatever would be a mark, a tag, a line or a column there."""
    assert templates.markdown_cell(text) == cell

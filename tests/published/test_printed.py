"""Files of tables as people have them: other signs, merged headers, and worse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError
from loop.published.claims import Notes, read_notes
from loop.published.printed import (
    Number,
    PrintedCell,
    TextTable,
    decimal_commas,
    read_cell,
    read_grids,
)
from loop.published.result_table import make_table, read_columns
from loop.published.table_audit import audit_tables, read_tables


@pytest.mark.parametrize(
    ("text", "value", "low", "high"),
    [
        ("0.987 (0.967-0.996)", 0.987, 0.967, 0.996),
        ("0.987 [0.967, 0.996]", 0.987, 0.967, 0.996),
        ("98.7% (96.7\N{EN DASH}99.6)", 0.987, 0.967, 0.996),
        ("**0.987** (95% CI: 0.967 to 0.996)", 0.987, 0.967, 0.996),
        ("[0.967; 0.996]", None, 0.967, 0.996),
        ("\N{MINUS SIGN}0.013\N{DAGGER}", -0.013, None, None),
        ("+.5<sup>a</sup>", 0.5, None, None),
        ("3,528", 3528, None, None),
        ("12,345,678", 12345678, None, None),
    ],
)
def test_a_cell_is_read_in_any_of_the_usual_forms(text, value, low, high):
    """Percent signs, dashes, marks, brackets, thousands."""
    cell = read_cell(text)
    assert (cell.value.value if cell.value else None) == pytest.approx(value)
    if low is not None:
        assert [one.value for one in cell.limits] == pytest.approx([low, high])


@pytest.mark.parametrize(
    "text",
    ["nan", "-", "\N{EM DASH}", "inf", "<0.001", "0.98 ± 0.01", "1e5", "n/a", ""],
)
def test_what_is_no_plain_number_is_no_number(text):
    """Nothing is guessed: such a cell is left out of every check."""
    assert not read_cell(text).numeric


def test_decimal_commas_are_told_from_thousands():
    """A comma before other than three digits, or after a zero, is decimal."""
    assert decimal_commas(["0,987 (0,967-0,996)", "1,000"])
    assert not decimal_commas(["3,528", "0.987"])
    assert not decimal_commas(["3,528"])
    assert read_cell("0,987", comma=True).value.value == 0.987


def test_a_table_with_decimal_commas_and_semicolons_is_read(tmp_path):
    """As a German spreadsheet saves it, with a byte order mark."""
    path = tmp_path / "t.csv"
    path.write_text("\ufeffLabel;Precision;Recall;F1\nA;0,500;1,000;0,667\n", "utf-8")
    (found,) = audit_tables(read_tables([path], Notes())).about("F1 from P and R")
    assert found.severity is FindingSeverity.OK


def test_percentages_under_a_percent_header_are_shares(tmp_path):
    """98.7 under ``Accuracy (%)`` is 0.987 with a unit of 0.001."""
    path = tmp_path / "t.csv"
    path.write_text("Label,Accuracy (%),n\nA,98.7,300\nB,100,300\n", "utf-8")
    (table,) = read_tables([path], Notes())
    assert table.rows[0].cells[1].value == pytest.approx((0.987, 0.001))
    assert table.cases(table.rows[0], table.columns[0]) == 300


def test_a_header_of_two_rows_is_joined(tmp_path):
    """Merged cells arrive as blanks to the right."""
    path = tmp_path / "t.csv"
    path.write_text(
        "Label,Precision,,Recall,\n,pre,post,pre,post\nA,0.5,0.6,0.7,0.8\n", "utf-8"
    )
    (grid,) = read_grids(path)
    assert grid.header == (
        "Label", "Precision pre", "Precision post", "Recall pre", "Recall post",
    )  # fmt: skip


def test_a_table_lying_on_its_side_is_turned():
    """Measures in the first column, systems in the header."""
    rows = (("Accuracy", "0.90", "0.80"), ("Recall", "0.50", "0.60"))
    table = make_table(TextTable("T", "", ("Measure", "A", "B"), rows, 0))
    assert [column.measure for column in table.columns] == ["accuracy", "recall"]
    assert [row.name for row in table.results] == ["A", "B"]


def test_interval_columns_belong_to_their_value():
    """A bare CI column is that of the value to its left; a named one of its system."""
    header = ["Label", "A accuracy", "95% CI", "B accuracy", "B lower", "B upper"]
    columns = read_columns(header, 1)
    assert [(c.system, c.measure, c.part) for c in columns] == [
        ("A", "accuracy", ""), ("A", "accuracy", "limits"),
        ("B", "accuracy", ""), ("B", "accuracy", "low"), ("B", "accuracy", "high"),
    ]  # fmt: skip


def test_ragged_and_repeated_rows_are_said(tmp_path):
    """They are read as far as they go, and the reader is told."""
    path = tmp_path / "t.csv"
    path.write_text("Label,F1,Recall\nA,0.5\nB,0.5,0.6,0.7\nB,0.1,0.2\n", "utf-8")
    (found,) = audit_tables(read_tables([path], Notes())).about("file")
    assert "2 rows have more or fewer cells" in found.what
    assert "occur twice: B" in found.what


def test_averages_over_parts_of_the_rows_are_not_judged(tmp_path):
    """Which rows each is over is not known, so it is said and left alone."""
    path = tmp_path / "t.csv"
    path.write_text(
        "Label,F1\nA,0.1\nB,0.3\nAverage,0.2\nC,0.9\nMean (all),0.5\nAverage,0.9\n",
        "utf-8",
    )
    audit = audit_tables(read_tables([path], Notes()))
    assert audit.about("column mean") == []
    (found,) = audit.about("file")
    assert "not checked: Average; Mean (all); Average" in found.what


def test_rows_of_label_and_model_are_read(tmp_path):
    """A long table: two columns of names, and cases per row."""
    path = tmp_path / "t.csv"
    path.write_text(
        "Label,Model,n,Accuracy,Precision,Recall\n"
        "A,X,100,0.900,0.500,0.500\nA,Y,100,0.850,0.333,0.500\n"
        "B,X,100,0.900,0.900,0.900\nB,Y,100,0.800,0.800,0.800\n"
        "Average,X,,0.500,0.500,0.500\n",
        "utf-8",
    )
    audit = audit_tables(read_tables([path], Notes()))
    shares = {one.part: one.severity for one in audit.about("share of positives")}
    assert shares == {"results A": FindingSeverity.OK, "results B": FindingSeverity.OK}
    assert audit.about("column mean") == []


def test_markup_in_a_cell_stays_text(tmp_path):
    """A script in a name is a name."""
    path = tmp_path / "t.md"
    path.write_text("| L | F1 |\n|---|---|\n| <b>A</b><script>x | 0.5 |\n", "utf-8")
    (table,) = read_tables([path], Notes())
    assert table.rows[0].name == "A x"


def test_an_escaped_bar_stays_in_its_cell(tmp_path):
    r"""``a\|b`` is one cell of Markdown."""
    path = tmp_path / "t.md"
    path.write_text("| L | F1 |\n|:--|--:|\n| a\\|b | 0.5 |\n", "utf-8")
    assert read_grids(path)[0].rows == (("a|b", "0.5"),)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "holds no table"),
        ("t.md", "words\n\nmore words\n", "holds no table"),
        ("t.csv", "a,b\n" + "1,2\n" * 6000, "more than 1000 rows"),
        ("t.csv", ",".join("x" * 300) + "\n" + "1," * 300, "100 columns"),
        ("t.csv", "x" * 5_000_001, "Name a file"),
        ("t.csv", 'a,b\n"' + "x" * 200_000 + '",2\n', "is not CSV"),
    ],
    ids=["empty", "no table", "long", "wide", "large", "field"],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, name, text, message):
    """The message says what to do instead."""
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=message):
        read_grids(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """A spreadsheet file is not a CSV file."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read_grids(path)
    with pytest.raises(DataError, match="is not a file"):
        read_grids(tmp_path)


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["0", "1", "1.000", "0.5", "-1", "1e9", "99999999999", "0/0", "3/0", "5/3 (9%)",
         "100%", "0 (0-0)", "[1, 0]", "nan", "1.5 (2-3)", "0,5", "Average", "Total"]
    ),
)  # fmt: skip
HEADERS = st.sampled_from(
    ["Label", "Model", "Accuracy", "Precision", "Recall", "F1", "F1 pre", "F1 post",
     "Accuracy pre", "Accuracy post (n = 0)", "Delta F1", "95% CI", "n", "TP", "FN",
     "Kappa", "Average", "", "Accuracy (n = 99999999999)", "Gap to Model", "Total"]
)  # fmt: skip


@given(
    st.lists(HEADERS, min_size=1, max_size=7),
    st.lists(st.lists(CELLS, min_size=1, max_size=8), min_size=1, max_size=6),
    st.sampled_from([None, 1, 2, 150]),
)
def test_no_table_breaks_the_auditor(header, rows, n):
    """Whatever cells hold, every check comes to an end with a result."""
    width = len(header)
    body = tuple(tuple((row + [""] * width)[:width]) for row in rows)
    table = make_table(TextTable("T", "", tuple(header), body, 0), n=n)
    for finding in audit_tables([table]).findings:
        assert finding.what


@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text):
    """A file is a table or is refused."""
    from loop.published.printed import _csv_blocks, _markdown_blocks

    _markdown_blocks(text)
    try:
        _csv_blocks(text, "t.csv")
    except DataError as error:
        assert "not CSV" in str(error)


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ("claims: [{kind: guess, table: T}]", "does not have the expected form"),
        ("tables: {T: {cases: 3}}", "no such field"),
        ("tables: {U: {n: 3}}", "no table 'u'"),
        ("tables: {t: {comparable: [Z]}}", "no row 'z'"),
        ("claims: [{kind: count, table: t, column: Q, at_least: 1, count: 1}]",
         "no t: column 'Q'"),
    ],
)  # fmt: skip
def test_notes_that_fit_no_table_are_refused(tmp_path, notes, message):
    """A misspelt name must not pass as a claim that was checked."""
    (tmp_path / "t.csv").write_text("Label,F1\nA,0.5\n", "utf-8")
    (tmp_path / "n.yaml").write_text(notes, "utf-8")
    with pytest.raises(DataError, match=message):
        known = read_notes(tmp_path / "n.yaml")
        audit_tables(read_tables([tmp_path / "t.csv"], known), known)


def test_a_row_with_too_many_tables_to_list_is_not_known(tmp_path):
    """Nothing was searched, so nothing can be found possible or impossible."""
    path = tmp_path / "t.csv"
    rows = "Wide,2000,0.900,0.800,-\n", "Narrow,2000,0.900,0.800,0.700\n"
    head = "Label,n,Accuracy,Precision,Recall\n"
    path.write_text(head + "".join(rows), "utf-8")
    (both,) = audit_tables(read_tables([path], Notes())).about("confusion tables")
    assert (both.severity, both.numbers["rows"]) == (FindingSeverity.OK, 2)
    assert both.numbers["impossible"] == []
    assert list(both.numbers["solutions"]) == ["Narrow"]
    path.write_text(head + rows[0], "utf-8")
    (wide,) = audit_tables(read_tables([path], Notes())).about("confusion tables")
    assert (wide.severity, wide.numbers["solutions"]) == (FindingSeverity.NOTE, {})


BLANK = "a,b\nx,1\n" + (" " * 50_000 + "\n") * 100
"""A table, and lines without anything."""


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a,b\n" + "x,1\n" * 999, True),
        ("a,b\n" + "x,1\n" * 1000, False),
        (",".join(["a"] * 100) + "\n" + ",".join(["1"] * 100), True),
        (",".join(["a"] * 101) + "\n" + ",".join(["1"] * 101), False),
        ("a,b\nx,1\n\n" * 50, True),
        ("a,b\nx,1\n\n" * 51, False),
        (BLANK[:5_000_000], True),
        (BLANK[:5_000_001], False),
    ],
    ids=["rows", "row", "columns", "column", "tables", "table", "bytes", "byte"],
)
def test_a_file_may_be_as_large_as_its_limits(tmp_path, text, fits):
    """A thousand rows with the header, 100 columns, 50 tables, five megabytes."""
    path = tmp_path / "t.csv"
    path.write_text(text, "utf-8")
    if fits:
        assert read_grids(path)
        return
    with pytest.raises(DataError, match="more than"):
        read_grids(path)


@pytest.mark.parametrize(
    ("value", "unit", "low", "high", "decimals", "shown"),
    [
        # Half a unit, and a twentieth for a value that was rounded twice.
        (0.987, 0.001, 0.98645, 0.98755, 3, "0.987"),
        (0.5, 0.1, 0.445, 0.555, 1, "0.5"),
        (3528, 1, 3527.45, 3528.55, 0, "3528"),
    ],
)
def test_a_printed_number_stands_for_half_a_unit_on_both_sides(
    value, unit, low, high, decimals, shown
):
    """And a percentage for the same share of a hundred."""
    number = Number(value, unit)
    assert (number.low, number.high) == pytest.approx((low, high), abs=2e-9)
    assert (number.decimals, number.shown()) == (decimals, shown)
    hundred = Number(100 * value, 100 * unit).scaled(0.01)
    assert hundred == pytest.approx(number)


@pytest.mark.parametrize(
    ("text", "value", "cases", "of"),
    [
        ("74 (49.3%)", 0.493, 74, None),
        ("74/150 (0.493)", 0.493, 74, 150),
        ("3,528/6,300 (56.0%)", 0.56, 3528, 6300),
        ("3/4", 0.75, 3, 4),
        ("3/0", None, 3, 0),
        # Without a percent sign or a denominator it may be a mean and its deviation.
        ("74 (49.3)", None, None, None),
        ("49.3", 49.3, None, None),
    ],
)
def test_a_count_stands_beside_its_share(text, value, cases, of):
    """Where the cell says that it is one."""
    cell = read_cell(text)
    assert (cell.value and cell.value.value) == (value and pytest.approx(value))
    assert (cell.cases, cell.of) == (cases, of)


def written(folder, name, text):
    """Return the tables of a file with this text."""
    path = folder / name
    path.write_text(text, "utf-8")
    return read_grids(path)


def grid(name, caption, header, *rows, ragged=0):
    """Return a table of text."""
    return TextTable(name, caption, tuple(header), tuple(map(tuple, rows)), ragged)


def test_tables_of_a_csv_file_have_their_captions_and_names(tmp_path):
    """Lines of one cell before a header; a number in the caption is the name."""
    text = (
        "Table 2. One\n\nmore words,\nLabel,F1\nA,0.5\n\n\nTable S3b: other\nLabel,F1\n"
        "B,0.6\n\nlonely\n\nLabel,F1\nC,0.1\n\nLabel,F1\n"
    )
    assert written(tmp_path, "two.csv", text) == [
        grid("Table 2", "Table 2. One more words", ["Label", "F1"], ["A", "0.5"]),
        grid("Table S3b", "Table S3b: other", ["Label", "F1"], ["B", "0.6"]),
        grid("two #3", "lonely", ["Label", "F1"], ["C", "0.1"]),
    ]


@pytest.mark.parametrize("suffix", ["md", "MARKDOWN"])
def test_tables_of_a_markdown_file_have_the_line_of_text_before_them(tmp_path, suffix):
    """A line with a bar is none, nor one more than three lines above."""
    text = (
        "# Table 4 **F1**\n\n| a | b |\n|---|---|\n| x | 0.5 |\n| y | 0.6\n\n"
        "text | with bar\n\nfar\n\n\n\n| c | d |\n|:-:|--|\n| e | f |\n\n"
        "near\n\n\nc | d\n-|-\ne | f\n\n| g |\n|---|\n"
    )
    assert written(tmp_path, f"t.{suffix}", text) == [
        grid("Table 4", "Table 4 F1", ["a", "b"], ["x", "0.5"], ["y", "0.6"]),
        grid("t #2", "", ["c", "d"], ["e", "f"]),
        grid("t #3", "near", ["c", "d"], ["e", "f"]),
    ]


@pytest.mark.parametrize(
    ("text", "header", "row"),
    [
        ("a,b\n1,2\n", ["a", "b"], ["1", "2"]),
        ("a;b;c\n1,5;2;3\n", ["a", "b", "c"], ["1,5", "2", "3"]),
        ("a\tb, c\n1\t2\n", ["a", "b, c"], ["1", "2"]),
        ("a|b\n1|2\n", ["a", "b"], ["1", "2"]),
        # Of two in all lines the comma stands behind; of one in more lines it counts.
        ("a,b;c\n1,5;2\n", ["a,b", "c"], ["1,5", "2"]),
        ("a,b\n1;2,3\n", ["a", "b"], ["1;2", "3"]),
        ("\n\n a , b\n1,2\n", ["a", "b"], ["1", "2"]),
    ],
)
def test_the_delimiter_is_what_divides_the_most_lines(tmp_path, text, header, row):
    """A comma inside of cells is no delimiter where a semicolon divides them."""
    assert written(tmp_path, "t.csv", text) == [grid("t", "", header, row)]


def test_up_to_three_rows_without_a_number_are_the_header(tmp_path):
    """An empty upper cell takes its left neighbour's; one row stays a row."""
    text = "Label,A,,B,\n,pre,post,pre,post\nx,0.1,0.2,0.3,0.4\n"
    assert written(tmp_path, "t.csv", text) == [
        grid(
            "t", "", ["Label", "A pre", "A post", "B pre", "B post"],
            ["x", "0.1", "0.2", "0.3", "0.4"],
        )
    ]  # fmt: skip
    text = "Label,A,A\nk,m,n\nk,o,p\nk,q,r\ns,t,u\n"
    assert written(tmp_path, "t.csv", text) == [
        grid("t", "", ["Label k", "A m o", "A n p"], ["k", "q", "r"], ["s", "t", "u"])
    ]
    assert written(tmp_path, "t.csv", "L,A\nk,m\n") == [
        grid("t", "", ["L", "A"], ["k", "m"])
    ]
    # Dashes and numbers begin the rows.
    for first in ("-", "0.5", "0.5 (0.1-0.9)"):
        assert written(tmp_path, "t.csv", f"L,A\nk,{first}\ns,t\n") == [
            grid("t", "", ["L", "A"], ["k", first], ["s", "t"])
        ]


def test_rows_are_as_long_as_the_header(tmp_path):
    """Filled cells beyond it and missing ones are counted, empty ones are not."""
    text = "L,A,B\nx,1,2,3\ny,1\nz,1,2,\nw,1,2\n"
    assert written(tmp_path, "t.csv", text) == [
        grid(
            "t", "", ["L", "A", "B"], ["x", "1", "2"], ["y", "1", ""], ["z", "1", "2"],
            ["w", "1", "2"], ragged=2,
        )
    ]  # fmt: skip
    text = "| L | A |\n|---|---|\n| x | 1 |\n|  |  |\n| y | 2 |\n"
    assert written(tmp_path, "t.md", text) == [
        grid("t", "", ["L", "A"], ["x", "1"], ["y", "2"])
    ]


@pytest.mark.parametrize(
    ("text", "comma"),
    [
        ("0,5", True),
        ("12,5", True),
        ("1,2345", True),
        ("1,50 (1,20-1,80)", True),
        ("1,000", False),
        ("10,000", False),
        ("0.5", False),
        ("3,14,15", False),
        ("words, words", False),
    ],
)
def test_a_comma_is_decimal_where_it_divides_no_thousands(text, comma):
    """One such cell is enough; a point anywhere is enough against it."""
    assert decimal_commas(["1,000", text]) == comma
    assert not decimal_commas([text, "0.5"])


@pytest.mark.parametrize(
    ("text", "comma", "cell"),
    [
        ("1,234", False, PrintedCell("1,234", Number(1234, 1))),
        ("1,234", True, PrintedCell("1,234", Number(1.234, 0.001))),
        ("98.7%", False, PrintedCell("98.7%", Number(0.987, 0.001))),
        ("4 (4.9%)", False, PrintedCell("4 (4.9%)", Number(0.049, 0.001), None, 4)),
        ("3/4", False, PrintedCell("3/4", Number(0.75, 1e-12), None, 3, 4)),
        ("0/0", False, PrintedCell("0/0", None, None, 0, 0)),
        ("good", False, PrintedCell("good")),
        ("5" * 200, False, PrintedCell("5" * 200, Number(float("5" * 200), 1))),
        ("5" * 201, False, PrintedCell("5" * 201)),
        (
            "98.7% (96.7-99)",
            False,
            PrintedCell(
                "98.7% (96.7-99)",
                Number(0.987, 0.001),
                (Number(0.967, 0.001), Number(0.99, 0.01)),
            ),
        ),
        (
            "[0.1; 0.25]",
            False,
            PrintedCell("[0.1; 0.25]", None, (Number(0.1, 0.1), Number(0.25, 0.01))),
        ),
    ],
)  # fmt: skip
def test_a_cell_is_read_whole(text, comma, cell):
    """Each number with the unit of its last digit, and nothing beside it."""
    found = read_cell(text, comma=comma)
    assert (found.text, found.cases, found.of) == (cell.text, cell.cases, cell.of)
    for mine, other in (
        (found.value, cell.value),
        *zip(found.limits or (), cell.limits or (), strict=True),
    ):
        assert (mine is None) == (other is None)
        assert mine is None or mine == pytest.approx(other)


def test_a_file_that_cannot_be_looked_at_is_told(tmp_path, monkeypatch):
    """With what the system says; and a quote that is never closed."""

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n", "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.is_file", refuse)
        with pytest.raises(
            DataError, match=r"cannot read .*t\.csv: Permission denied\."
        ):
            read_grids(path)
    path.write_text("a,b\n1," + "x" * 100_000 + "\n", "utf-8")
    assert len(read_grids(path)[0].rows) == 1
    path.write_text("a,b\n1," + "x" * 100_001 + "\n", "utf-8")
    with pytest.raises(DataError, match="a cell of more than 100,000 characters"):
        read_grids(path)


def test_a_row_set_apart_by_an_empty_line_is_a_row_of_its_table(tmp_path):
    """An average must not be lost unread, and is checked as any other."""
    text = "Label,F1\nA,0.5\nB,0.6\n,\nAverage,0.9\n\nMedian,0.6\n"
    assert written(tmp_path, "t.csv", text) == [
        grid(
            "t", "", ["Label", "F1"], ["A", "0.5"], ["B", "0.6"], ["Average", "0.9"],
            ["Median", "0.6"],
        )
    ]  # fmt: skip
    audit = audit_tables(read_tables([tmp_path / "t.csv"], Notes()))
    (found,) = audit.about("column mean")
    assert found.severity is FindingSeverity.BROKEN
    # With a caption, or without a number, or two rows of them, it is no such row.
    for rest in ("Table 2\nB,0.1\n", "Label,F1\n", "X,Y\nB,0.1\n"):
        first, *others = written(tmp_path, "t.csv", f"L,F1\nA,0.5\n\n{rest}")
        assert first == grid("t", "", ["L", "F1"], ["A", "0.5"])
        assert others == [grid("t #2", "", ["X", "Y"], ["B", "0.1"])] * ("X" in rest)
    # Before any table there is none to belong to.
    (only,) = written(tmp_path, "t.csv", "A,0.5\n\nL,F1\nA,0.5\n")
    assert only == grid("t", "", ["L", "F1"], ["A", "0.5"])

"""Files and notes made one audit, and what was not understood."""

import pytest

from loop.core.errors import DataError
from loop.published.claims import Notes
from loop.published.table_audit import audit_tables, read_tables
from tests.published.tables import audited, only, table_of, whole


def write(folder, name, text):
    """Write a file of one table."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_notes_stand_before_what_is_given_for_all_tables(tmp_path):
    """Cases and measure of the notes, else those given; a caption states its own."""
    paths = [
        write(tmp_path, f"{name}.csv", f"{caption}Label,X\nA,0.5\nB,0.6\n")
        for name, caption in (("one", ""), ("two", ""), ("three", "Cases (n = 70)\n"))
    ]
    about = {"ONE": {"n": 50, "measure": "recall", "comparable": ["a"],
                     "shared_reference": False}}  # fmt: skip
    notes = Notes.model_validate({"tables": about})
    tables = read_tables(paths, notes, n=90, measure="f1")
    found = [
        (one.name, one.n, one.columns[0].measure, set(one.comparable), one.shared)
        for one in tables
    ]
    assert found == [
        ("one", 50, "recall", {"a"}, False),
        ("two", 90, "f1", set(), True),
        ("three", 90, "f1", set(), True),
    ]
    plain = read_tables(paths[1:], Notes())
    assert [(one.n, one.columns[0].measure) for one in plain] == [(None, ""), (70, "")]


def test_two_tables_of_one_name_are_refused_in_any_case(tmp_path):
    """The first by its name is told."""
    text = "Label,F1\nA,0.5\n"
    paths = [
        write(tmp_path, name, text) for name in ("b.csv", "B.md", "a.csv", "A.csv")
    ]
    paths[1].write_text("| Label | F1 |\n|---|---|\n| A | 0.5 |\n", "utf-8")
    with pytest.raises(DataError, match="two tables are called 'a'"):
        read_tables(paths, Notes())
    assert len(read_tables(paths[:1] + paths[2:3], Notes())) == 2


def test_notes_about_no_table_are_refused_with_the_tables_there_are(tmp_path):
    """Also where they are about a row that is not there."""
    paths = [write(tmp_path, f"{one}.csv", "Label,F1\nA,0.5\n") for one in ("q", "p")]
    notes = Notes.model_validate({"tables": {"p": {}, "x": {}, "w": {}}})
    with pytest.raises(DataError) as caught:
        read_tables(paths, notes)
    assert str(caught.value) == (
        "notes: there is no table 'w'. There are: q, p. Correct the name."
    )
    notes = Notes.model_validate({"tables": {"p": {"comparable": ["a", "z", "y"]}}})
    with pytest.raises(DataError) as caught:
        read_tables(paths, notes)
    assert str(caught.value) == (
        "notes: p has no row 'y'. Correct the list of comparable rows."
    )


def test_columns_without_a_measure_are_told():
    """Those with a number; words, counts beside shares and named ones are known."""
    rows = [["Label", "X", "Y", "Words", "F1", "A (n = 30)"]]
    rows += [["a", "0.5", "-", "good", "0.5", "9 (30.0%)"]]
    rows += [["b", "-", "0.6", "better", "0.5", "-"]]
    assert whole(only(audited(rows), "columns")) == (
        "X, Y",
        "note",
        "No measure is named for these columns, so they were only compared with "
        "others. Name it with --measure or in the notes.",
        {"columns": ["X", "Y"]},
    )
    assert audited([["Label", "F1"], ["a", "0.5"]]).about("columns") == []


def test_what_is_odd_in_a_file_is_told():
    """Rows that occur twice in any case, and those that are taken for summaries."""
    rows = [["Label", "F1"], ["b", "0.1"], ["B", "0.2"], ["a", "0.3"], ["A", "0.4"]]
    rows += [["c", "0.5"], ["total", "1"], ["all", "2"]]
    assert whole(only(audited(rows), "file")) == (
        "rows",
        "note",
        "rows that occur twice: A, B, a, b; rows taken for summaries and not checked: "
        "total; all.",
        {},
    )


def test_at_most_five_odd_rows_are_told():
    """Of each kind."""
    rows = [["Label", "F1"], *([f"L{k}", "0.1"] for k in (*range(6), *range(6)))]
    rows += [[f"total {k}", "1"] for k in range(6)]
    assert only(audited(rows), "file").what == (
        "rows that occur twice: L0, L1, L2, L3, L4; rows taken for summaries and not "
        "checked: total 0; total 1; total 2; total 3; total 4."
    )


@pytest.mark.parametrize(
    ("header", "row", "options", "missing"),
    [
        (["Label", "Accuracy", "Recall"], ["a", "0.9", "0.9"], {}, True),
        (["Label", "Accuracy", "Recall"], ["a", "0.9", "0.9"], {"n": 20}, False),
        (["Label", "Accuracy", "Recall", "n"], ["a", "0.9", "0.9", "20"], {}, False),
        (["Label", "Accuracy (n = 9)", "Recall"], ["a", "0.9", "0.9"], {}, False),
        # One rate says too little about its table, as do two without P, R or F1.
        (["Label", "Recall"], ["a", "0.9"], {}, False),
        (["Label", "Accuracy", "Specificity"], ["a", "0.9", "0.9"], {}, False),
        (["Label", "Accuracy", "Recall"], ["a", "0.9", "-"], {}, False),
        # Of two sets of results one is enough.
        (
            ["Label", "A recall", "B accuracy", "B recall"],
            ["a", "0.9", "1", "1"],
            {},
            True,
        ),
    ],
)
def test_that_no_number_of_cases_is_stated_is_told_where_one_could_be_used(
    header, row, options, missing
):
    """So that silence is not mistaken for a pass."""
    found = audited([header, row], **options).about("cases")
    assert len(found) == missing
    if missing:
        assert whole(found[0])[:2] == ("n", "note")
        assert "--n" in found[0].what


def test_findings_are_counted_and_found_by_check_table_and_part():
    """Of one table, of one part of it, or all."""
    rows = [
        ["Label", "A F1", "B F1"],
        *([f"L{k}", f"0.{k}1", f"0.{k}1"] for k in range(6)),
    ]
    tables = [table_of(rows, name=name) for name in ("one", "two")]
    audit = audit_tables(tables)
    every = audit.about("equal columns")
    assert len(every) == 6
    assert [one.part for one in audit.about("equal columns", "two")] == [
        "A F1 = two, B F1"
    ]
    parts = audit.about("equal columns", "one", "A F1 = one, B F1")
    assert [one.where for one in parts] == ["one"]
    assert audit.about("equal columns", "three") == []
    assert sum(
        audit.count(one) for one in {one.severity for one in audit.findings}
    ) == (len(audit.findings))
    assert audit.count(every[0].severity) == 6


def test_equal_columns_are_told_with_what_else_equals_them():
    """Before is the same as the other table; after is so in two of five rows."""
    values = ["0.1", "0.2", "0.3", "0.4", "0.5"]
    after = ["0.1", "0.2", "0.9", "0.8", "0.7"]
    first = table_of(
        [["Label", "F1"], *([f"L{k}", one] for k, one in enumerate(values))], name="one"
    )
    rows = [["Label", "F1 pre", "F1 post", "B F1 post", "Recall post"]]
    rows += [[f"l{k}", one, after[k], "0.6", one] for k, one in enumerate(values)]
    second = table_of(rows, name="two")
    found = [
        one
        for one in audit_tables([first, second]).about("equal columns")
        if one.part == "F1 = two, F1 pre"
    ]
    assert [whole(one) for one in found] == [
        (
            "F1 = two, F1 pre",
            "note",
            "The two columns hold the same numbers in 5 of 5 rows: they are one "
            "measurement, or one was copied; they cannot be two. It equals 'F1 post' "
            "of the same table in 2.",
            {
                "first": ["one", "F1"],
                "second": ["two", "F1 pre"],
                "rows": 5,
                "siblings": {"F1 post": 2},
            },
        )
    ]


def test_columns_that_are_equal_by_chance_do_not_end_the_search():
    """Without common rows, or with one number in all of them; the next pair is told."""
    names = [f"L{k}" for k in range(5)]
    other = table_of(
        [["Label", "F1"], *([f"M{k}", f"0.{k}"] for k in range(5))], name="other"
    )
    rows = [["Label", "A F1", "B F1", "A recall", "B recall", "C recall"]]
    rows += [
        [name, "0.5", "0.5", f"0.{k + 1}", f"0.{k + 1}", f"0.{k + 2}"]
        for k, name in enumerate(names)
    ]
    found = audit_tables([other, table_of(rows)]).about("equal columns")
    assert [one.part for one in found] == ["A recall = T, B recall"]


def test_siblings_of_either_column_are_told():
    """After in the first table equals the second's column in three of six rows."""
    header = ["Label", "F1 pre", "F1 post", "F1 pre again"]
    values = ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]
    after = ["0.1", "0.2", "0.3", "0.9", "0.8", "0.7"]
    rows = [header, *([f"L{k}", values[k], after[k], "0.9"] for k in range(6))]
    first = table_of(rows, name="one")
    second = table_of([["Label", "F1"], *([f"l{k}", values[k]] for k in range(6))])
    (found,) = audit_tables([first, second]).about("equal columns")
    assert found.numbers == {
        "first": ["one", "F1 pre"],
        "second": ["T", "F1"],
        "rows": 6,
        "siblings": {"F1 post": 3},
    }
    assert found.what.endswith("It equals 'F1 post' of the same table in 3.")

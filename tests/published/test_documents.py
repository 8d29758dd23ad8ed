"""The documents of an audit: findings by table and weight, and plain data."""

import pytest

from loop.core.check_findings import FindingSeverity
from loop.core.errors import DataError
from loop.published.documents import (
    WORDS,
    TableSection,
    published_data,
    read_as,
    render_html,
    render_markdown,
    sections,
)
from loop.published.table_audit import audit_tables
from tests.published.tables import audited, table_of

ROWS = [
    ["Label", "A precision pre", "A recall pre", "A F1 pre", "Delta F1 (n = 30)"],
    ["a", "0.500", "0.500", "0.500", "0.1"],
    ["b", "0.800", "0.600", "0.500", "0.1"],
]


def test_plain_data_are_the_table_as_it_was_read_and_every_finding():
    """Each column with its meaning; a standing in words for each finding."""
    audit = audited(ROWS, "Table 1. Labels", n=20)
    data = published_data(audit, ["one.csv", "two.csv"])
    column = {
        "measure": "f1",
        "part": "",
        "system": "A",
        "time": "before",
        "average": "",
    }
    first = {**column, "difference": False, "n": None}
    assert data["files"] == ["one.csv", "two.csv"]
    assert data["tables"] == [
        {
            "name": "T",
            "caption": "Table 1. Labels",
            "n": 20,
            "rows": 2,
            "rows_are": "labels",
            "columns": [
                {"header": "A precision pre", **first, "measure": "precision"},
                {"header": "A recall pre", **first, "measure": "recall"},
                {"header": "A F1 pre", **first},
                {
                    "header": "Delta F1 (n = 30)", **column, "system": "", "time": "",
                    "difference": True, "n": 30,
                },
            ],
        }
    ]  # fmt: skip
    assert data["findings"] == [
        {
            "check": one.check,
            "table": "T",
            "subject": one.part,
            "standing": WORDS[one.severity],
            "text": one.what,
            "numbers": dict(one.numbers),
        }
        for one in audit.findings
    ]
    standings = [one["standing"] for one in data["findings"]]
    assert data["counts"] == {word: standings.count(word) for word in WORDS.values()}
    assert data["counts"]["does not hold"] == 2


def test_rows_of_models_are_told_as_systems():
    """In data and in words."""
    rows = [["Model", "Accuracy", "Recall"], ["A", "0.5", "0.6"]]
    audit = audited(rows)
    assert published_data(audit, [])["tables"][0]["rows_are"] == "systems"
    assert read_as(audit.tables[0]) == (
        "1 x system, columns of accuracy, recall; n not stated for the whole table."
    )


def test_a_table_is_told_as_it_was_read():
    """A measure once, whatever the number of its columns; summaries are no rows."""
    rows = [["Label", "A F1", "B F1", "X"], ["a", "0.5", "0.6", "1"]]
    rows += [["average", "0.5", "0.6", "1"]]
    table = table_of(rows, n=300)
    assert read_as(table) == "1 x label or category, columns of f1; n = 300."
    bare = table_of([["Label", "X"], ["a", "1"]])
    assert read_as(bare) == (
        "1 x label or category, no column of a measure; n not stated for the whole "
        "table."
    )


@pytest.mark.parametrize(
    ("caption", "title"),
    [
        ("", "Table 2"),
        ("Accuracy of five models", "Table 2: Accuracy of five models"),
        ("TABLE 2. Accuracy", "TABLE 2. Accuracy"),
    ],
)
def test_a_title_is_the_caption_after_the_name(caption, title):
    """Unless it begins with the name."""
    table = table_of([["Label", "F1"], ["a", "0.5"]], caption, name="Table 2")
    assert TableSection(table, "", ()).title == title


def test_findings_stand_under_their_table_what_does_not_hold_first():
    """Then what cannot be decided; each once and in its order."""
    one = table_of(ROWS, name="one")
    two = table_of(ROWS[:2], name="two")
    audit = audit_tables([one, two])
    parts = sections(audit)
    assert [part.table for part in parts] == [one, two]
    assert [part.read for part in parts] == [read_as(one), read_as(two)]
    order = [FindingSeverity.BROKEN, FindingSeverity.NOTE, FindingSeverity.OK]
    for part in parts:
        mine = [found for found in audit.findings if found.where == part.table.name]
        expected = sorted(mine, key=lambda found: order.index(found.severity))
        assert list(part.findings) == expected
    assert parts[0].findings[0].severity is FindingSeverity.BROKEN


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_a_document_names_its_files_counts_and_every_finding(render):
    """Whatever its form."""
    audit = audited(
        [["Label", "precision", "recall", "F1"], ["a", "0.5", "0.5", "0.9"]]
    )
    text = render(audit, ["one.csv", "two.csv"])
    for words in ("one.csv", "two.csv", "does not hold", "F1 from P and R", "T"):
        assert words in text
    assert "not so: a: printed 0.9, from P and R 0.5000" in text


@pytest.mark.parametrize(
    ("render", "name"),
    [(render_markdown, "published.md.jinja"), (render_html, "published.html.jinja")],
)
def test_templates_of_ones_own_are_used(tmp_path, render, name):
    """With every variable; a folder without the template is refused."""
    audit = audited(ROWS)
    with pytest.raises(DataError, match="cannot be rendered"):
        render(audit, [], templates=tmp_path)
    template = (
        "{{ sources|join(';') }}|{{ sections|length }}|{{ sections[0].table.name }}|"
        "{% for severity, many in counts %}{{ words[severity] }} {{ many }},{% endfor "
        "%}|{{ version and 1 }}"
    )
    (tmp_path / name).write_text(template, "utf-8")
    counts = "".join(f"{word} {audit.count(one)}," for one, word in WORDS.items())
    text = render(audit, ["a", "b"], templates=tmp_path)
    assert text == f"a;b|1|T|{counts}|1"

"""Text in the facts of a release is data in every document."""

import csv
import io
import re

import pytest

from loop.release.documents.documents import render_documents
from tests.release.documents.example import full_facts, spoiled
from tests.release.documents.test_documents import documents, outline
from tests.release.small import typed

MARKUP = '"><script>alert(1)</script><img src=x onerror=y>'


def test_markup_stays_text_on_the_page():
    """No name, reason or note can bring a tag or an attribute."""
    page = documents(spoiled(typed(full_facts()), MARKUP))["card.html"]
    parsed = outline(page)
    plain = outline(documents(full_facts())["card.html"])
    tags, expected = (
        [tag for tag, _ in one.tags if tag != "code"] for one in (parsed, plain)
    )
    assert tags == expected
    assert not any(name.startswith("on") for _, has in parsed.tags for name in has)
    assert "<script>alert(1)</script>" in "".join(parsed.words)


def test_page_asks_for_nothing():
    """The page works unplugged: nothing is loaded, nothing runs."""
    page = documents(full_facts())["card.html"]
    tags = outline(page).tags
    assert not {"script", "link", "iframe", "img", "object"} & {t for t, _ in tags}
    assert not re.search(r"https?://|url\(|@import", page)
    policy = next(has["content"] for _, has in tags if "http-equiv" in has)
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    "text",
    [
        *("# heading ", "> quote ", "- item ", "+ item ", "=== ", "~~~ ", "--- "),
        *("| cell ", "`code ", "**bold** ", "[a](b) ", "![a](b) ", "<b>", "\\"),
        *("a\n\n# heading ", "a\r\n| b ", "a\u2028# b ", "a\x0b# b "),
    ],
)
@pytest.mark.parametrize("name", ["card.md", "mi-clear-llm.md", "change-record.md"])
def test_markdown_in_a_fact_changes_no_structure(name, text):
    """The same headings, tables and items as without it, line by line."""

    def shape(document):
        body = document.split("\n---\n")[-1]
        return [re.match(r"#+ |- |> |\|?", line)[0] for line in body.split("\n")]

    def cells(document):
        body = document.split("\n---\n")[-1]
        return [line.count("|") for line in body.split("\n") if line[:1] == "|"]

    plain, hostile = (
        documents(facts)[name]
        for facts in (full_facts(), spoiled(typed(full_facts()), text))
    )
    assert shape(hostile) == shape(plain)
    assert cells(hostile) == cells(plain)
    assert not re.search(r"(?m)^(- )?(> )?[#>+=~] ?", _without_own_marks(hostile))
    assert "<b>" not in hostile
    assert not re.search(r"(?<!\\)\[a(?<!\\)\]", hostile)


def _without_own_marks(document):
    """Return the body without the headings and quotes the document itself has."""
    body = document.split("\n---\n")[-1]
    return re.sub(r"(?m)^(#+|>) ?", "", body)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "  =", "\n="])
def test_no_cell_of_the_table_is_a_formula(start):
    """A spreadsheet runs what begins like one."""
    raw = render_documents(spoiled(typed(full_facts()), f"{start}cmd|"))[
        "evaluation.csv"
    ]
    rows = list(csv.reader(io.StringIO(raw.decode(), newline="")))
    assert len({len(row) for row in rows}) == 1
    for row in rows[1:]:
        for cell in row:
            assert not cell.lstrip(" ").startswith(("=", "+", "@", "\t", "\r", "-c"))


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "\x00", "\ud800", "\x9b"])
def test_controls_and_surrogates_are_spelled_out(text):
    """A card may be shown in a terminal, and its bytes must be UTF-8."""
    for name, raw in render_documents(spoiled(typed(full_facts()), text)).items():
        assert text not in raw.decode("utf-8"), name


def test_jinja_in_a_fact_is_not_evaluated():
    """A reason is data, never template source."""
    text = documents(spoiled(typed(full_facts()), "{{ 7 * 7 }}{% raw %}"))
    assert "{{ 7 \\* 7 }}{% raw %}" in text["card.md"]
    assert "{{ 7 * 7 }}" in text["card.html"]

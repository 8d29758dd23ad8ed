"""Texts of failing cases: found by plain words, taken apart without moving a place."""

import pytest

from loop.core.errors import DataError
from loop.core.records import Span
from loop.labels.cohort import texts_path
from loop.review.queue.build import CaseTexts, find_sections
from loop.review.queue.records import TextSection
from tests.review.scenes import add_cohort

ROWS = [
    ("a", "FINDINGS:\nLungs (clear) [sic] 5.*\n\nIMPRESSION:\nOedème.", 0, 0),
    ("b", "Cafe\u0301 heart, STRASSE.", 0, 0),
    ("c", "Never asked for.", 0, 0),
]


@pytest.fixture
def texts(workspace, tmp_path):
    """Return the texts of two of three cases."""
    add_cohort(workspace, tmp_path, ROWS)
    return CaseTexts(workspace, "dev", {"a", "b"})


@pytest.mark.parametrize(
    ("words", "cases"),
    [
        ("CLEAR", "a"),
        ("(clear) [", "a"),
        ("5.*", "a"),
        (".*", "a"),
        ("café", "b"),
        ("CAFE\u0301 HEART", "b"),
        ("straße", "b"),
        ("OEDÈME", "a"),
        ("^", ""),
        ("asked", ""),
        ("e", "ab"),
    ],
)
def test_words_are_found_in_any_case_and_are_no_pattern(texts, words, cases):
    """A clinician types what stands there."""
    assert texts.find(words) == frozenset(cases)


def test_only_failing_cases_can_be_read(texts):
    """The queue shows what it is about, and nothing else."""
    assert texts.read("a").startswith("FINDINGS")
    with pytest.raises(DataError, match=r"'c' is not among.*Choose one"):
        texts.read("c")


def test_texts_are_read_once(texts, workspace):
    """The file may be away afterwards."""
    texts.read("a")
    texts_path(workspace, "dev").unlink()
    assert texts.find("heart") == {"b"}
    assert not texts.here


def spans(text, *phrases):
    """Return the place of each phrase, the last one in the text."""
    return [Span(text.rindex(one), text.rindex(one) + len(one)) for one in phrases]


def test_each_phrase_is_in_its_own_section():
    """Also when the same words stand in both."""
    text = (
        "INDICATION: Edema?\n\nFINDINGS: Mild edema. Clear bones.\n\nIMPRESSION: Edema."
    )
    found = find_sections(text, [*spans(text, "Edema", "Mild", "bones"), Span(12, 17)])
    assert found == [
        TextSection.IMPRESSION,
        TextSection.FINDINGS,
        TextSection.FINDINGS,
        TextSection.OTHER,
    ]


def test_a_text_without_headings_has_unknown_sections():
    """Nothing is claimed about its parts."""
    assert find_sections("Mild edema.", [Span(0, 4), Span(5, 10)]) == [None, None]


def test_a_span_beyond_the_text_is_no_error():
    """An engine may count wrongly."""
    text = "FINDINGS: Clear.\n\nIMPRESSION: Normal."
    assert find_sections(text, [Span(500, 510)]) == [TextSection.IMPRESSION]


def test_without_phrases_nothing_is_looked_for():
    """A false negative has no evidence."""
    assert find_sections("FINDINGS: Clear.", []) == []

"""The marks in a case text, on their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Span
from loop.ui.pages.review.segments import cut_text, find_headings, find_hits

spans = st.builds(
    lambda start, size: Span(start, start + size),
    st.integers(0, 30),
    st.integers(0, 30),
)


@given(st.text(max_size=40), st.dictionaries(st.sampled_from("xyz"), st.lists(spans)))
def test_the_pieces_joined_are_the_text_whatever_overlaps(text, evidence):
    """No character is lost, doubled or moved by marking."""
    parts = cut_text(text, evidence)
    assert "".join(part.text for part in parts) == text
    at = 0
    for part in parts:
        covering = {
            label
            for label, marked in evidence.items()
            for one in marked
            if one.start <= at < min(one.end, len(text))
        }
        assert set(part.labels) == covering
        at += len(part.text)


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("FINDINGS:\nClear.\n\nImpression: none", ["FINDINGS:", "Impression:"]),
        ("Lungs clear. IMPRESSION: stable.", ["IMPRESSION:"]),
        ("The impression: stable at 10:30. Note: none", []),
        ("影像学表现：双肺清晰。", ["影像学表现："]),
    ],
)
def test_headings_are_those_that_take_a_text_apart(text, headings):
    """A colon in prose is no heading."""
    found = find_headings(text)
    assert [text[one.start : one.end] for one in found] == headings


def test_words_that_were_searched_for_are_marked_beside_the_evidence():
    """In any case, across its borders, and as plain characters."""
    text = "Wet (lungs) today"
    parts = cut_text(text, {"x": [Span(0, 6)]}, find_hits(text, "(LUNGS)"))
    assert [(one.text, one.labels, one.hit) for one in parts] == [
        ("Wet ", ("x",), False),
        ("(l", ("x",), True),
        ("ungs)", (), True),
        (" today", (), False),
    ]

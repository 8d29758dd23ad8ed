"""Sentences of reports as numbered lines: where one ends, and where it goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.numbered_lines import number_lines, split_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Clear lungs. No effusion.", ["Clear lungs.", "No effusion."]),
        ("Nodule of 1.5 cm. Stable.", ["Nodule of 1.5 cm.", "Stable."]),
        ("Seen by Dr. Low. Stable.", ["Seen by Dr. Low.", "Stable."]),
        ("Seen by J. Low. Stable.", ["Seen by J. Low.", "Stable."]),
        ("Lines, e.g. A tube. Stable.", ["Lines, e.g. A tube.", "Stable."]),
        ("1. Effusion. 2. Nodule.", ["1. Effusion.", "2. Nodule."]),
        ("Effusion, 2 cm. in depth.", ["Effusion, 2 cm. in depth."]),
        ("FINDINGS:\nClear.\n\nNormal", ["FINDINGS:", "Clear.", "Normal"]),
        ("Is it new? Yes! It is.", ["Is it new?", "Yes!", "It is."]),
        ("Effusion? No. Nodule.", ["Effusion?", "No.", "Nodule."]),
        ('He said "clear." Then left.', ['He said "clear."', "Then left."]),
        ("...\n---\n", []),
        ("", []),
        ("Clear.Normal.", ["Clear.Normal."]),
        ("12. Effusion.", ["12. Effusion."]),
        ("(2. Effusion.", ["(2. Effusion."]),
        ("123. Effusion.", ["123.", "Effusion."]),
        ("Nodule 2. Effusion.", ["Nodule 2.", "Effusion."]),
        ("Grade b. Stable.", ["Grade b.", "Stable."]),
        ("Grade B. Stable.", ["Grade B. Stable."]),
        ("Seen at 5 p.m. Stable.", ["Seen at 5 p.m. Stable."]),
        ("See FIG. Two. Stable.", ["See FIG. Two.", "Stable."]),
        ("Cadr. Low.", ["Cadr.", "Low."]),
        ("Really? no change.", ["Really?", "no change."]),
        ("(Stable.) Clear.", ["(Stable.)", "Clear."]),
        ("Well... Clear.", ["Well...", "Clear."]),
        ("Clear?Normal", ["Clear?Normal"]),
        ("肺清。心正常！好", ["肺清。", "心正常！", "好"]),
        ("  Clear.  \r\n  Normal  ", ["Clear.", "Normal"]),
    ],
)
def test_where_a_line_ends(text, lines):
    """A number, a list item, an initial and an abbreviation go on."""
    assert [text[one.start : one.end] for one in split_lines(text)] == lines


@given(st.text(alphabet='aB1. ,?!\n\r\t"(2)', max_size=80))
def test_lines_are_the_text_in_order(text):
    """None overlaps another, and every letter and digit is in one."""
    found = split_lines(text)
    ends = [0, *(one.end for one in found)]
    assert all(one.start >= end for one, end in zip(found, ends, strict=False))
    kept = "".join(text[one.start : one.end] for one in found)
    said = [char for char in text if char.isalnum()]
    assert [char for char in kept if char.isalnum()] == said


def test_a_number_stands_before_each_line():
    """The first is 0, as published."""
    assert number_lines("Clear. Normal heart\n") == "[0] Clear.\n[1] Normal heart"

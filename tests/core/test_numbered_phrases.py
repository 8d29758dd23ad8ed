"""Phrases as numbered lines: what is written is what is read."""

from loop.core.numbered_phrases import number_phrases, split_phrases


def test_phrases_come_back_as_they_were():
    """Also a tenth one, and one that begins like a number of its own."""
    phrases = ("left effusion", "[3] mm nodule", "", *"abcdefgh")
    assert split_phrases(number_phrases(phrases)) == phrases
    assert number_phrases(phrases).endswith("\n[10] h")
    assert number_phrases(()) == ""
    assert split_phrases("") == ()


def test_lines_of_another_form_are_no_phrases():
    """A number without brackets, or none at all, is of another text."""
    assert split_phrases("Phrases:\n[0] a\n1 b\n[x] c\n[2]d\n [3] e") == ("a",)

"""Changes of a text: applied and taken back exactly, and what is wrong with others."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.judge.injection.text_changes import (
    EditOption,
    TextChange,
    apply_changes,
    combine,
    fits_beside,
    tight_change,
    undo_changes,
    why_wrong,
)


def change(start, before, after, kind="omission", tag="sentence", error=1):
    """Return a change."""
    return TextChange(
        kind=kind,
        tag=tag,
        start=start,
        end=start + len(before),
        before=before,
        after=after,
        error=error,
    )


@st.composite
def changed_texts(draw):
    """Draw a text and changes of it that do not overlap."""
    parts = draw(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=6))
    text, changes = "", []
    for number, (kept, before, after) in enumerate(parts, 1):
        text += kept
        changes.append(change(len(text), before, after, error=number))
        text += before
    return text, changes


@given(changed_texts())
def test_changes_are_undone(given_text):
    """Whatever is changed into whatever."""
    text, changes = given_text
    assert undo_changes(apply_changes(text, changes), changes) == text


@given(st.text(), st.text(alphabet="ab ", max_size=20), st.text(alphabet="ab "))
def test_a_tight_change_gives_the_same_text(before, old, new):
    """However much of it stays."""
    text = f"{before}{old}."
    span = (len(before), len(before) + len(old))
    one = tight_change("style", "pattern", text, span, new)
    assert apply_changes(text, [one]) == f"{before}{new}."


def test_a_tight_change_keeps_whole_words():
    """From "mild" to "marked" is no change of "ild"."""
    one = tight_change("severity", "degree", "mild edema", (0, 10), "marked edema")
    assert (one.before, one.after) == ("mild", "marked")


def test_what_does_not_fit_is_refused():
    """A change of other words, and two of the same ones."""
    with pytest.raises(ValueError, match="does not fit"):
        apply_changes("abc", [change(0, "x", "y")])
    with pytest.raises(ValueError, match="does not fit"):
        apply_changes("abc", [change(0, "ab", ""), change(1, "b", "c")])


@pytest.mark.parametrize(
    ("candidate", "made", "number", "reason"),
    [
        ("b", [change(0, "a", "")], 1, ""),
        ("b", [change(0, "a", "", kind="style")], 1, "another kind"),
        ("b", [change(0, "a", "")], 2, "another number"),
        ("c", [change(0, "a", "")], 1, "do not give the candidate"),
        ("ab", [], 0, "nothing is changed"),
        ("xb", [change(0, "a", "x")], 1, "adds a statement"),
        ("xb", [change(0, "a", "x", tag="omission_by_negation")], 1, ""),
        ("b", [change(0, "b", "")], 1, "do not give the candidate"),
    ],
)
def test_why_a_variant_is_wrong(candidate, made, number, reason):
    """Each reason for which it is left out."""
    found = why_wrong("ab", candidate, made, kind="omission", number=number)
    assert reason in found
    assert bool(found) is bool(reason)


def test_two_errors_share_no_sentence_and_no_finding():
    """One error a sentence, and each of its own finding."""
    one = EditOption((change(0, "a", ""),), frozenset({0}), frozenset({"edema"}))
    other = EditOption((change(5, "b", ""),), frozenset({1}), frozenset({"nodule"}))
    assert fits_beside(other, [one])
    assert not fits_beside(other._replace(lines=frozenset({0})), [one])
    assert not fits_beside(other._replace(keys=frozenset({"edema"})), [one])
    there = (replace(other.changes[0], start=0, end=1),)
    assert not fits_beside(other._replace(changes=there), [one])
    assert [each.error for each in combine([other, one])] == [2, 1]

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


@pytest.mark.parametrize(
    ("text", "span", "new", "wanted"),
    [
        # What stays at either end is no part of it, but no word is cut.
        ("A small mass left.", (0, 17), "A large mass left", (2, "small", "large")),
        ("mild edema", (0, 10), "mild edemas", (5, "edema", "edemas")),
        ("no edema", (0, 8), "no", (2, " edema", "")),
        ("edema", (0, 5), "no edema", (0, "", "no ")),
        ("so so", (0, 5), "so so so", (5, "", " so")),
        ("x. edema", (3, 8), "mass", (3, "edema", "mass")),
        ("12 mm", (0, 5), "12 cm", (3, "mm", "cm")),
        ("12 mm", (0, 5), "13 mm", (0, "12", "13")),
        ("edema", (0, 5), "edema", (5, "", "")),
    ],
)  # fmt: skip
def test_a_tight_change_is_of_the_words_that_differ(text, span, new, wanted):
    """By place, and by the words before and after it."""
    one = tight_change("style", "pattern", text, span, new)
    assert (one.start, one.before, one.after) == wanted
    assert (one.end, one.kind, one.tag, one.error) == (
        one.start + len(one.before), "style", "pattern", 1,
    )  # fmt: skip


def test_changes_are_made_in_the_order_of_the_text():
    """Whatever order they are given in; two may meet, and one may only add."""
    changes = [change(4, "four", "4"), change(0, "one", "1"), change(3, " ", "")]
    assert apply_changes("one four", changes) == "14"
    assert undo_changes("14", changes) == "one four"
    added = [change(3, "", "!"), change(0, "", ">")]
    assert apply_changes("abc", added) == ">abc!"
    assert undo_changes(">abc!", added) == "abc"
    with pytest.raises(ValueError, match="a change at 1 does not fit the text"):
        undo_changes("abc", [change(1, "x", "q")])


def test_what_a_change_is_goes_into_the_file():
    """Every field under its name."""
    one = change(2, "ab", "c", kind="location", tag="side", error=3)
    assert one.data() == {
        "kind": "location",
        "tag": "side",
        "error": 3,
        "start": 2,
        "end": 4,
        "before": "ab",
        "after": "c",
    }
    other = replace(one, start=7, end=9)
    both = EditOption((one, other), frozenset())
    assert both.name == "side:2:4:c|side:7:9:c"


@pytest.mark.parametrize(
    ("start", "before", "fits"),
    [
        # Beside a change from 4 to 6, and an addition at 9.
        (2, "ab", True),
        (6, "ab", True),
        (5, "a", False),
        (3, "ab", False),
        (9, "", False),
        (9, "a", True),
        (8, "a", True),
        (8, "ab", False),
        (10, "", True),
        (4, "", True),
        (5, "", False),
    ],
)
def test_a_place_is_changed_once(start, before, fits):
    """Changes may meet; two that only add at one place have no order."""
    taken = EditOption(
        (change(4, "xy", "z"), change(9, "", "w")), frozenset({0}), frozenset({"edema"})
    )
    one = EditOption((change(start, before, "q"),), frozenset({1}), frozenset())
    assert fits_beside(one, [taken]) is fits
    assert fits_beside(one, [])


def test_changes_of_several_options_stand_in_the_order_of_the_text():
    """Each with the number of its option, whichever comes first in the text."""
    first = EditOption((change(9, "a", ""), change(1, "b", "")), frozenset())
    second = EditOption((change(5, "c", ""),), frozenset())
    assert [(one.start, one.error) for one in combine([first, second])] == [
        (1, 1),
        (5, 2),
        (9, 1),
    ]


@pytest.mark.parametrize(
    ("made", "candidate", "words"),
    [
        ([change(0, "a", "", error=2)], "bc", "another number of errors"),
        ([change(0, "a", ""), change(2, "c", "", error=2)], "b", ""),
        ([change(0, "a", ""), change(2, "c", "")], "b", "another number of errors"),
        ([change(0, "a", "a", error=1), change(2, "c", "", error=2)], "ab",
         "nothing is changed"),
        ([change(0, "a", ""), change(1, "b", "\n", error=2)], "\nc", ""),
        ([change(0, "a", ""), change(1, "b", "x", tag="renumbered", error=2)], "xc",
         ""),
        ([change(0, "a", ""), change(1, "b", "x", error=2)], "xc",
         "an omission adds a statement"),
    ],
)  # fmt: skip
def test_why_two_errors_are_wrong(made, candidate, words):
    """Each one counts, and so does what an omission writes."""
    assert why_wrong("abc", candidate, made, kind="omission", number=2) == words

"""A prompt version is an immutable value whose identity is its digest."""

import dataclasses

import pytest

from loop.core.records import Guide, Lexicon
from loop.prompts.version import CallPlan


def test_cannot_be_edited_in_place(first):
    """Revising makes a new version."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.system = "other"


def test_digest_ignores_what_does_not_change_behaviour(first):
    """The same wording under another number, author and reason is the same prompt."""
    again = dataclasses.replace(
        first, number=7, parent="0" * 64, author="B", time="", why="", verdicts=("x",)
    )
    assert again.digest == first.digest


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Read it.\n"},
        {"user": "{{ text }}"},
        {"plan": CallPlan.PER_LABEL},
        {"contract": "scores"},
        {"name": "other"},
    ],
)
def test_digest_changes_with_everything_that_changes_behaviour(first, change):
    """Two different prompts never share an identity."""
    assert dataclasses.replace(first, **change).digest != first.digest


@pytest.mark.parametrize("name", ["counts", "does_not_count", "uncertain_when"])
def test_digest_changes_with_guidance(first, name):
    """What counts is part of what is asked."""
    guide = dataclasses.replace(first.guides[0], **{name: ("wet",)})
    changed = dataclasses.replace(first, guides=(guide, *first.guides[1:]))
    assert changed.digest != first.digest


def test_digest_changes_with_the_lexicon(first):
    """It changes what `rules` answers, though no model is shown it."""
    guide = dataclasses.replace(
        first.guides[0], lexicon=(Lexicon(language="en", terms=("wet",)),)
    )
    changed = dataclasses.replace(first, guides=(guide, *first.guides[1:]))
    assert changed.digest != first.digest


def test_digest_depends_on_the_order_of_guides(first):
    """Models read in order."""
    turned = dataclasses.replace(first, guides=first.guides[::-1])
    assert turned.digest != first.digest


@pytest.mark.parametrize("name", ["", "../up", "A", "1st", "a b", "a/b"])
def test_a_name_is_safe_as_a_folder(first, name):
    """A name from the command line never becomes a path elsewhere."""
    with pytest.raises(ValueError, match="snake_case"):
        dataclasses.replace(first, name=name)


def test_a_label_has_one_guide(first):
    """Two guides of one label would contradict each other in silence."""
    twice = (*first.guides, Guide(label="edema", name="E", definition="again"))
    with pytest.raises(ValueError, match="two guides"):
        dataclasses.replace(first, guides=twice)


def test_a_draft_has_an_id_and_no_number(first):
    """Only a commit gives a number."""
    draft = dataclasses.replace(first, number=0, draft="d1")
    assert draft.ref == "tiny@draft:d1"
    with pytest.raises(ValueError, match="a draft has number 0"):
        dataclasses.replace(first, draft="d1")

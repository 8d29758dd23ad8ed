"""The records of every room: codes that cannot be confused, and what is derived."""

import dataclasses

import pytest

from loop.core.records import (
    Entry,
    Field,
    Guide,
    Item,
    Lexicon,
    Message,
    Prompt,
    PromptFrame,
    Span,
    UncertainAnswers,
    ValueCode,
)


def test_no_two_codes_of_an_array_are_one_number():
    """Only 0 and 1 are ever scored, and 2 as absent: all else lies below nought."""
    assert {code.name for code in ValueCode} == {*ValueCode.__members__}
    assert (ValueCode.ABSENT, ValueCode.PRESENT, ValueCode.NOT_CODED) == (0, 1, 2)
    scored = {ValueCode.ABSENT, ValueCode.PRESENT, ValueCode.NOT_CODED}
    assert all(code < 0 for code in ValueCode if code not in scored)


@pytest.mark.parametrize(
    ("counted", "sign", "words"),
    [
        (UncertainAnswers.WRONG, "unc:wrong", "wrong"),
        (UncertainAnswers.ABSENT, "unc:neg", "read as absent"),
        (UncertainAnswers.PRESENT, "unc:pos", "read as present"),
        (UncertainAnswers.EXCLUDED, "unc:excl", "left out"),
    ],
)
def test_what_an_uncertain_answer_counts_as_is_signed_and_said(counted, sign, words):
    """A signature without it would compare what is not alike."""
    assert (counted.sign, counted.words) == (sign, words)


def test_only_later_fields_that_are_filled_are_part_of_a_guide_s_identity():
    """A guide from before they existed keeps its digest; its own empty lists stay."""
    guide = Guide(label="edema", name="Edema", definition="Fluid.")
    bare = {"label": "edema", "name": "Edema", "definition": "Fluid."}
    lists = ("terms", "exclusions", "clarifications", "exemplars", "implies")
    bare |= dict.fromkeys(lists, ())
    assert guide.identity == bare
    for name in ("counts", "does_not_count", "uncertain_when"):
        longer = dataclasses.replace(guide, **{name: ("wet",)})
        assert longer.identity == {**bare, name: ("wet",)}
    lexicon = Lexicon(language="en", terms=("wet",))
    longer = dataclasses.replace(guide, lexicon=(lexicon,))
    assert longer.identity == {**bare, "lexicon": (dataclasses.asdict(lexicon),)}
    assert longer.parts == (longer, lexicon)


def test_a_place_names_its_text_unless_there_is_but_one():
    """Runs from before there were pairs read as they did."""
    assert Span(1, 4).data == [1, 4]
    assert Span(1, 4, "candidate").data == [1, 4, "candidate"]


def test_the_places_of_an_answer_are_its_own_and_those_of_what_it_lists():
    """In that order."""
    one, two, three = Span(0, 1), Span(2, 3, "reference"), Span(4, 5)
    entries = (Entry("a", spans=(two, three)), Entry("b"))
    assert Field(2, (one,), entries).places == (one, two, three)
    assert Field(0).places == ()


def test_the_case_ends_the_last_message_and_no_other():
    """The frame is the same for all cases."""
    frame = PromptFrame(
        call="joint",
        messages=(Message("system", "Read. "), Message("user", "Text: ")),
        fields=("edema",),
        schema={},
    )
    prompt = Prompt(frame=frame, tail="Clear.", item=Item(id="a1", variables={}))
    assert prompt.messages == (
        Message("system", "Read. "),
        Message("user", "Text: Clear."),
    )


def test_a_code_is_said_in_words():
    """Of small letters, with spaces."""
    assert [code.words for code in ValueCode] == [
        *("absent", "present", "not coded", "uncertain", "no majority", "missing"),
        *("unparsed", "failed", "not asked", "unanswered", "not voted"),
    ]

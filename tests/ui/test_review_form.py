"""The verdict form and the marks in a text, on their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Exemplar, Span, Value
from loop.review.verdict import Context, Edits, Judgement, Verdict
from loop.ui.pages.review.form import (
    CAUSES,
    Form,
    fields_of,
    form_of,
    missing,
)
from loop.ui.pages.review.segments import cut_text, find_headings

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


@pytest.mark.parametrize(
    ("form", "lacks"),
    [
        (Form(), ("what is wrong",)),
        (Form(judgement="model_wrong"), ()),
        (Form(judgement="source_text_defect", action="term"), ()),
        (Form(judgement="reference_wrong"), ("the right value",)),
        (Form(judgement="model_wrong", action="term"), ("the phrase",)),
        (
            Form(judgement="model_wrong", action="clarification", phrase="a"),
            ("the right value",),
        ),
        (
            Form(judgement="model_wrong", action="negative_exemplar", phrase="a"),
            ("the statement in your own words",),
        ),
        (
            Form(
                judgement="model_wrong",
                action="positive_exemplar",
                phrase="fluid",
                paraphrase="Some water.",
            ),
            ("the phrase inside your own words",),
        ),
    ],
)
def test_what_is_missing_depends_on_what_is_chosen(form, lacks):
    """Only what matters for the choice is asked for."""
    assert missing(form) == lacks


def test_a_form_from_outside_holds_only_what_its_fields_may():
    """A changed or old kept form must not break the page."""
    odd = {"judgement": "hang", "value": 3, "phrase": ["x"], "anchor": "yes", "z": 1}
    assert Form.of(odd) == Form()


def test_a_verdict_comes_back_as_the_form_it_was_made_with():
    """Changing an answer begins with that answer."""
    example = Exemplar(text="No fluid.", value=Value.ABSENT, evidence="No fluid")
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        context=Context.NEGATION,
        case_ids=("a",),
        edits=Edits(exemplars=(example,)),
        comment="hm",
        anchor=True,
    )
    form = form_of(verdict)
    assert form.action == "negative_exemplar" and form.phrase == "No fluid"
    fields = fields_of(form, "a", "edema")
    assert fields["exemplars"][0]["text"] == "No fluid."
    assert (fields["anchor"], fields["comment"]) == (True, "hm")


def test_a_verdict_that_says_more_has_no_form():
    """A form that showed a part of it would take the rest away unseen."""
    two = Edits(terms=("a", "b"))
    implied = Edits(implies=("edema",))
    for edits in (two, implied):
        verdict = Verdict(
            label="edema",
            judgement=Judgement.MODEL_WRONG,
            case_ids=("a",),
            edits=edits,
        )
        assert form_of(verdict) is None


def test_every_cause_can_be_chosen():
    """The menu cannot fall behind the record."""
    assert {key for _, key in CAUSES} == {one.value for one in Context}


def test_a_text_without_end_is_not_handed_in():
    """A pasted book is a slip; it is said, and the form stays as it is."""
    form = Form(judgement="model_wrong", comment="x" * 8001)
    assert missing(form) == ("a shorter note (at most 8,000 characters)",)
    assert missing(form._replace(comment="x" * 8000)) == ()

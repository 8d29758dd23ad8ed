"""A form on a screen says the same as a verdict file, and is checked as strictly."""

from dataclasses import fields

import pytest

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Exemplar, Guide, Lexicon, Value
from loop.labels.taxonomy import read_taxonomy
from loop.review.verdict import (
    GUIDANCE_LISTS,
    GUIDE_LISTS,
    LEXICON_LISTS,
    Context,
    Edits,
    Judgement,
    Severity,
    build_from_form,
)

FORM = {"cases": ["a"], "label": "edema", "judgement": "model_wrong"}

EXAMPLE = {"text": "The lungs are wet.", "value": "present", "evidence": "Lungs"}


@pytest.fixture
def build(labels_folder):
    """Return a function that builds a verdict from a changed form."""
    taxonomy = read_taxonomy(labels_folder)

    def built(**changes):
        return build_from_form(
            FORM | changes, reviewer="Ann", taxonomy=taxonomy, case_ids={"a", "b"}
        )

    return built


def test_a_whole_form_becomes_a_verdict(build):
    """Every field arrives, blanks at the ends do not."""
    verdict = build(
        severity="minor",
        context="negation",
        terms=[" wet lungs ", ""],
        exemplars=[EXAMPLE],
        correct_value="present",
        comment="  why  ",
        anchor=True,
    )
    assert (verdict.severity, verdict.context) == (Severity.MINOR, Context.NEGATION)
    assert verdict.edits.terms == ("wet lungs",)
    assert verdict.edits.exemplars == (
        Exemplar(text="The lungs are wet.", value=Value.PRESENT, evidence="Lungs"),
    )
    assert (verdict.reviewer, verdict.comment, verdict.anchor) == ("Ann", "why", True)


def test_empty_fields_do_not_count(build):
    """A form sends all of its boxes, filled or not."""
    empty = build(
        terms=[], exclusions="", correct_value=None, comment=" ", exemplars=[{}]
    )
    assert empty == build()


def test_what_was_not_chosen_is_not_said(build):
    """Neither a severity nor a cause stands in a verdict unless somebody chose it."""
    for said in (build(), build(severity="", context=None)):
        assert (said.severity, said.context) == (None, None)


def test_the_reviewer_is_never_taken_from_the_form(build):
    """Identity comes from the session."""
    assert build(reviewer="Somebody Else").reviewer == "Ann"


def test_evidence_must_stand_in_its_paraphrase(build):
    """Lint would refuse the draft later; the clinician hears it now."""
    example = EXAMPLE | {"evidence": "fluid"}
    with pytest.raises(DataError, match=r"exemplar 1: .*Use the phrase"):
        build(exemplars=[example])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"judgement": "nonsense"}, "judgement: "),
        ({"cases": ["zzz"]}, "no case 'zzz'"),
        ({"cases": []}, "needs a comment that says why"),
        ({"judgement": "reference_wrong"}, "needs case_id and correct_value"),
        ({"action": "add_term"}, "action add_term needs terms"),
        ({"extra": "x"}, "there is no such field"),
        ({"comment": "half \ud800"}, "character 6 of a field is incomplete"),
        ({"terms": ["half \ud800"]}, "Delete it and type it again"),
        ({"exemplars": [EXAMPLE | {"why": "\udfff"}]}, "character 1 of a field"),
    ],
)
def test_a_wrong_form_is_refused_with_a_way_out(build, changes, message):
    """The same words as for a file."""
    with pytest.raises(DataError, match=message):
        build(**changes)


def test_an_unknown_label_is_refused(build):
    """Also when a hand-made request sends it."""
    with pytest.raises(UnknownLabelError, match="no label"):
        build(label="<script>")


def test_markup_is_kept_as_text(build):
    """Nothing is stripped or read as HTML: showing it safely is the screen's part."""
    hostile = "<script>alert(1)</script> =1+1 \u202e\x1b[31m"
    assert build(comment=hostile).comment == hostile
    assert build().judgement is Judgement.MODEL_WRONG


def test_one_list_names_everything_a_verdict_edits_in_a_guide():
    """A list that a guide gains cannot be forgotten by an edit or a merge."""
    named = [one.name for one in GUIDE_LISTS]
    assert [field.name for field in fields(Edits)] == [
        *named,
        *(one.removals for one in GUIDE_LISTS),
        "general_rules",
    ]
    rest = {"label", "name", "definition", "lexicon"}
    guidance = {one.name for one in GUIDANCE_LISTS}
    assert {field.name for field in fields(Guide)} == rest | guidance | set(named)
    lists = {field.name for field in fields(Lexicon)} - {"language"}
    assert {one.name for one in LEXICON_LISTS} == lists

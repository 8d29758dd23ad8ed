"""The verdict form on its own."""

import pytest

from loop.core.records import Clarification, Exemplar, Guide, Mark, Value
from loop.evaluate.failures import Failure, FailureKind
from loop.labels.taxonomy import NO_FINDING
from loop.review.queue.records import Cause, QueueItem, Reasons, RightAnswer
from loop.review.revise.draft import READ_BY
from loop.review.verdict import Context, Edits, Judgement, Severity, Verdict
from loop.ui.pages.review.verdict_form import (
    ACTION_PARTS,
    ACTIONS,
    CAUSES,
    ReviewForm,
    describe,
    fields_of,
    form_of,
    missing,
    suggest,
    warn_of_copied_words,
    with_part,
)


@pytest.mark.parametrize(
    ("form", "lacks"),
    [
        (ReviewForm(), ("what is wrong",)),
        (ReviewForm(judgement="model_wrong"), ()),
        (ReviewForm(judgement="source_text_defect", action="term"), ()),
        (ReviewForm(judgement="reference_wrong"), ("the right value",)),
        (ReviewForm(judgement="model_wrong", action="term"), ("the phrase",)),
        (
            ReviewForm(judgement="model_wrong", action="clarification", phrase="a"),
            ("the right value",),
        ),
        (
            ReviewForm(judgement="model_wrong", action="negative_exemplar", phrase="a"),
            ("the statement in your own words",),
        ),
        (
            ReviewForm(
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
    assert ReviewForm.of({"severity": "", "cause": ""}) == ReviewForm()
    odd = {"judgement": "hang", "value": 3, "phrase": ["x"], "anchor": "yes", "z": 1}
    assert ReviewForm.of(odd) == ReviewForm()


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
    fields = fields_of(form, ["a"], "edema")
    assert fields["exemplars"][0]["text"] == "No fluid."
    assert (fields["anchor"], fields["comment"]) == (True, "hm")


def test_a_general_rule_takes_a_sentence_and_no_phrase():
    """It holds for every label, and reads back as it was given."""
    form = ReviewForm(judgement="model_wrong", action="general_rule", phrase="left")
    assert missing(form) == ("the rule in words",)
    form = form._replace(rule=" What a drain has emptied is absent. ")
    assert missing(form) == ()
    assert missing(form._replace(rule="a" * 501)) == (
        "a shorter rule (at most 500 characters)",
    )
    fields = fields_of(form, ["a"], "edema")
    assert fields["general_rules"] == ["What a drain has emptied is absent."]
    assert not {"terms", "clarifications", "exemplars"} & set(fields)
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=("a",),
        edits=Edits(general_rules=("A rule.",)),
    )
    again = form_of(verdict)
    assert (again.action, again.rule) == ("general_rule", "A rule.")
    assert describe(again) == "model wrong, general rule \u201cA rule.\u201d"


def test_a_general_rule_copied_from_the_case_is_warned_of():
    """An instruction must not carry a report's words."""
    text = "The tip of the new catheter lies in the lower third of the vein today."
    form = ReviewForm(judgement="model_wrong", action="general_rule", rule=text)
    assert "copied from the case" in warn_of_copied_words(form, text)


def test_every_action_says_who_reads_it():
    """None is left out of the list beside them."""
    offered = {
        name.removeprefix("Positive ").removeprefix("Negative ").capitalize()
        for name, key in ACTIONS
        if key != "none"
    }
    assert offered == set(ACTION_PARTS)
    assert {part for part, _ in ACTION_PARTS.values()} <= set(READ_BY)


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
    assert {key for _, key in CAUSES} - {""} == {one.value for one in Context}


def test_nothing_is_chosen_beforehand():
    """A severity or cause that nobody chose would be recorded as theirs."""
    assert (ReviewForm().severity, ReviewForm().cause) == (None, None)
    said = Verdict(label="edema", judgement=Judgement.MODEL_WRONG, case_ids=("a",))
    assert (form_of(said).severity, form_of(said).cause) == (None, None)


def item(kind, predicted, reference, label="edema", causes=()):
    """Return a failing pair."""
    failure = Failure("a", label, kind, predicted, reference, ())
    return QueueItem(failure=failure, place=1, reasons=Reasons(), causes=causes)


GUIDE = Guide(label="edema", name="Edema", definition="Water.", terms=("wet lungs",))
WRONG = ReviewForm(judgement="model_wrong")


@pytest.mark.parametrize(
    ("kind", "predicted", "reference", "phrase", "form"),
    [
        ("false_positive", "present", "absent", "", {"value": "absent"}),
        (
            "false_positive",
            "present",
            "not_coded",
            "wet cough",
            {"value": "absent", "action": "exclusion", "phrase": "wet cough"},
        ),
        ("false_positive", "present", "absent", "Wet lungs", {"value": "absent"}),
        ("false_positive", "present", "absent", "edema", {"value": "absent"}),
        ("false_negative", "absent", "present", "", {"value": "present"}),
        ("uncertain", "uncertain", "present", "hazy", {"value": "present"}),
        ("unparsed", None, None, "", None),
    ],
)
def test_the_likely_correction_is_that_the_reference_is_right(
    kind, predicted, reference, phrase, form
):
    """A label's own name or term is never suggested as an exclusion from it."""
    one = item(
        FailureKind(kind),
        Value(predicted) if predicted else None,
        Mark(reference) if reference else None,
    )
    wanted = WRONG._replace(**form) if form else None
    assert suggest(one, phrase, GUIDE) == wanted
    if wanted:
        assert missing(wanted) == ()


def test_no_finding_is_never_suggested_as_the_models_fault():
    """A failing label explains it; without one the reference contradicts itself."""
    said = (FailureKind.FALSE_NEGATIVE, Value.ABSENT, Mark.PRESENT, NO_FINDING)
    failing = Cause("edema", Value.PRESENT, Mark.ABSENT, True)
    assert suggest(item(*said, (failing,)), "", None) is None
    alone = suggest(item(*said, (failing._replace(fails=False),)), "", None)
    assert alone == ReviewForm(judgement="reference_wrong", value="absent")


def test_a_text_without_end_is_not_handed_in():
    """A pasted book is a slip; it is said, and the form stays as it is."""
    form = ReviewForm(judgement="model_wrong", comment="x" * 8001)
    assert missing(form) == ("a shorter note (at most 8,000 characters)",)
    assert missing(form._replace(comment="x" * 8000)) == ()


FILLED = ReviewForm(
    judgement="model_wrong",
    value="absent",
    severity="major",
    cause="negation",
    phrase=" wet lungs ",
    rule=" a rule ",
    paraphrase="No wet lungs.",
    comment="a note",
    anchor=True,
)
PLAIN = {
    "cases": ["c1", "c2"],
    "label": "edema",
    "judgement": "model_wrong",
    "severity": "major",
    "context": "negation",
    "correct_value": "absent",
    "comment": "a note",
    "anchor": True,
}


@pytest.mark.parametrize(
    ("action", "wording"),
    [
        ("none", {}),
        ("term", {"terms": ["wet lungs"]}),
        ("exclusion", {"exclusions": ["wet lungs"]}),
        (
            "clarification",
            {
                "clarifications": [
                    {"phrase": "wet lungs", "value": "absent", "note": " a rule "}
                ]
            },
        ),
        (
            "positive_exemplar",
            {
                "exemplars": [
                    {
                        "text": "No wet lungs.",
                        "value": "present",
                        "evidence": "wet lungs",
                    }
                ]
            },
        ),
        (
            "negative_exemplar",
            {
                "exemplars": [
                    {
                        "text": "No wet lungs.",
                        "value": "absent",
                        "evidence": "wet lungs",
                    }
                ]
            },
        ),
        ("general_rule", {"general_rules": ["a rule"]}),
    ],
)
def test_a_form_is_a_verdict_with_the_wording_of_its_action(action, wording):
    """What other actions would take stays in the form, and out of the verdict."""
    form = FILLED._replace(action=action)
    assert fields_of(form, ("c1", "c2"), "edema") == PLAIN | wording
    vague = form._replace(judgement="guideline_ambiguous")
    told = PLAIN | {"judgement": "guideline_ambiguous"} | wording
    assert fields_of(vague, ("c1", "c2"), "edema") == told
    reference = form._replace(judgement="reference_wrong")
    told = PLAIN | {"judgement": "reference_wrong"}
    assert fields_of(reference, ("c1", "c2"), "edema") == told
    right = form._replace(judgement="answer_right")
    nothing = {"judgement": "answer_right", "correct_value": None, "anchor": False}
    assert fields_of(right, ("c1", "c2"), "edema") == PLAIN | nothing


@pytest.mark.parametrize(
    ("edits", "form"),
    [
        ({"terms": ("a",)}, {"action": "term", "phrase": "a"}),
        ({"exclusions": ("a",)}, {"action": "exclusion", "phrase": "a"}),
        (
            {
                "clarifications": (
                    Clarification(phrase="a", value=Value.UNCERTAIN, note="n"),
                )
            },
            {
                "action": "clarification",
                "phrase": "a",
                "rule": "n",
                "value": "uncertain",
            },
        ),
        (
            {"exemplars": (Exemplar(text="An a.", value=Value.PRESENT, evidence="a"),)},
            {"action": "positive_exemplar", "phrase": "a", "paraphrase": "An a."},
        ),
        ({"general_rules": ("r",)}, {"action": "general_rule", "rule": "r"}),
        # There is no example of an uncertain value in the form.
        (
            {
                "exemplars": (
                    Exemplar(text="An a.", value=Value.UNCERTAIN, evidence="a"),
                )
            },
            None,
        ),
        ({"remove_terms": ("a",)}, None),
        ({"terms": ("a",), "general_rules": ("r",)}, None),
    ],
)
def test_a_verdict_is_a_form_where_the_form_can_hold_it(edits, form):
    """All of it, or none: what would be left out would be lost."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        severity=Severity.MINOR,
        context=Context.LANGUAGE,
        case_ids=("c1",),
        correct_value=Value.PRESENT,
        edits=Edits(**edits),
        comment="note",
        anchor=True,
    )
    whole = ReviewForm(
        judgement="model_wrong",
        value="present",
        severity="minor",
        cause="language",
        comment="note",
        anchor=True,
    )
    assert form_of(verdict) == (None if form is None else whole._replace(**form))


@pytest.mark.parametrize(
    ("part", "value", "changed"),
    [
        ("term", "", {"action": "term"}),
        ("exclusion", "present", {"action": "exclusion"}),
        ("clarification", "absent", {"action": "clarification", "value": "absent"}),
        ("exemplar", "present", {"action": "positive_exemplar"}),
        ("exemplar", "absent", {"action": "negative_exemplar"}),
        ("exemplar", "uncertain", {"action": "none"}),
        ("name", "", {"action": "none"}),
    ],
)
def test_a_phrase_becomes_a_part_of_the_guide_and_the_rest_stays(part, value, changed):
    """A judgement that asks for no wording becomes one that does."""
    form = FILLED._replace(judgement="guideline_ambiguous", value="uncertain")
    wanted = form._replace(phrase="fat pad", **changed)
    assert with_part(form, part, value, "fat pad") == wanted
    right = form._replace(judgement="answer_right")
    found = with_part(right, part, value, "fat pad")
    assert found == wanted._replace(judgement="model_wrong")


@pytest.mark.parametrize(
    ("name", "limit", "word"),
    [
        ("phrase", 8000, "phrase"),
        ("rule", 8000, "rule"),
        ("paraphrase", 8000, "statement"),
        ("comment", 8000, "note"),
    ],
)
def test_a_text_may_be_as_long_as_its_limit(name, limit, word):
    """White space at its ends does not count; one character more is too long."""
    form = ReviewForm(judgement="reference_wrong", value="absent")
    assert missing(form._replace(**{name: f" {'x' * limit} "})) == ()
    assert missing(form._replace(**{name: "x" * (limit + 1)})) == (
        f"a shorter {word} (at most {limit:,} characters)",
    )


def test_a_general_rule_is_short_only_where_it_is_one():
    """Another judgement leaves it aside."""
    form = ReviewForm(judgement="model_wrong", action="general_rule", rule="x" * 500)
    assert missing(form) == ()
    assert missing(form._replace(judgement="source_text_defect", rule="x" * 501)) == ()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, ""),
        ({"value": "absent"}, "right value absent"),
        ({"judgement": "answer_right"}, "nothing wrong"),
        (
            {"judgement": "model_wrong", "value": "present", "action": "term"},
            "model wrong, right value present, term “wet”",
        ),
        (
            {"judgement": "model_wrong", "action": "general_rule", "rule": "all"},
            "model wrong, general rule “all”",
        ),
        (
            {"judgement": "source_text_defect", "action": "term"},
            "report text problem",
        ),
    ],
)
def test_a_form_is_described_by_what_counts(form, words):
    """What a judgement leaves aside is left out."""
    assert describe(ReviewForm(phrase="wet")._replace(**form)) == words


def test_only_examples_and_general_rules_can_be_copied():
    """Of another action the words are the case's own on purpose."""
    text = "The tip of the new catheter lies in the lower third of the vein today."
    form = ReviewForm(judgement="model_wrong", rule=text, paraphrase=text, phrase=text)
    copied = {
        action: bool(warn_of_copied_words(form._replace(action=action), text))
        for _, action in ACTIONS
    }
    assert [action for action, said in copied.items() if said] == [
        *("positive_exemplar", "negative_exemplar", "general_rule")
    ]
    right = form._replace(judgement="answer_right", action="positive_exemplar")
    assert warn_of_copied_words(right, text) == ""
    own = form._replace(action="positive_exemplar", paraphrase="My own words.")
    assert warn_of_copied_words(own, text) == ""


def test_a_drawn_right_answer_is_taken_to_be_right():
    """And nothing is suggested of a case without an answer, or a reference."""
    right = RightAnswer("a", "edema", Value.PRESENT, Mark.PRESENT, ())
    found = QueueItem(failure=right, place=1, reasons=Reasons())
    assert suggest(found, "", GUIDE) == ReviewForm(judgement="answer_right")
    none = item(FailureKind.ENGINE_FAILED, None, Mark.PRESENT, "")
    assert suggest(none, "", GUIDE) is None
    free = item(FailureKind.FALSE_POSITIVE, Value.PRESENT, Mark.ABSENT)
    assert suggest(free, "edema", None) == WRONG._replace(
        value="absent", action="exclusion", phrase="edema"
    )
    silent = item(FailureKind.FALSE_NEGATIVE, None, Mark.PRESENT, NO_FINDING)
    assert suggest(silent, "", GUIDE) is None

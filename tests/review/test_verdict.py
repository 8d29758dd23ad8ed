"""A form on a screen says the same as a verdict file, and is checked as strictly."""

import hashlib
import json
from dataclasses import fields, replace

import pytest
from pydantic import ValidationError

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import (
    Clarification,
    ErrorWeight,
    Exemplar,
    Guide,
    Lexicon,
    Value,
)
from loop.labels.error_categories import read_errors
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.lint import fold_phrase
from loop.review.verdict import (
    GUIDANCE_LISTS,
    GUIDE_LISTS,
    LEXICON_LISTS,
    Context,
    Edits,
    ErrorVerdict,
    Judgement,
    Severity,
    Verdict,
    VerdictForm,
    build_from_form,
    check_verdicts,
)

FORM = {"cases": ["a"], "label": "edema", "judgement": "model_wrong"}

EXAMPLE = {"text": "The lungs are wet.", "value": "present", "evidence": "Lungs"}


@pytest.fixture
def build(labels_folder):
    """Return a function that builds a verdict from a changed form."""
    taxonomy = read_taxonomy(labels_folder)

    def built(**changes):
        return build_from_form(
            FORM | changes, reviewer="Ann", asked=taxonomy, case_ids={"a", "b"}
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


RIGHT, WRONG = Judgement.ANSWER_RIGHT, Judgement.REFERENCE_WRONG
TERM = Edits(terms=("wet",))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"judgement": WRONG, "correct_value": Value.ABSENT}, ""),
        ({"judgement": WRONG}, "needs case_id and correct_value"),
        (
            {"judgement": WRONG, "correct_value": Value.ABSENT, "case_ids": ()},
            "needs case_id and correct_value",
        ),
        (
            {"judgement": WRONG, "correct_value": Value.ABSENT, "edits": TERM},
            "never changes the prompt",
        ),
        ({"judgement": Judgement.SOURCE_TEXT_DEFECT, "anchor": True}, ""),
        ({"judgement": Judgement.SOURCE_TEXT_DEFECT, "edits": TERM}, "recorded only"),
        ({"judgement": RIGHT}, ""),
        ({"judgement": RIGHT, "anchor": True}, "leave out anchor and correct_value"),
        (
            {"judgement": RIGHT, "correct_value": Value.ABSENT},
            "leave out anchor and correct_value",
        ),
        ({"judgement": RIGHT, "case_ids": ()}, "answer_right needs case_id"),
        ({"case_ids": ()}, ""),
        ({"case_ids": (), "comment": " "}, "needs a comment that says why"),
        ({"case_ids": (), "anchor": True}, "anchor needs case_id"),
        ({"edits": Edits(general_rules=("x" * 500,))}, ""),
        (
            {"edits": Edits(general_rules=("x", "x" * 501))},
            "general rule 2 has 501 characters",
        ),
    ],
)
def test_a_verdict_does_not_contradict_itself(changes, problem):
    """Each beside its neighbour that may be said."""
    said = {"label": "edema", "case_ids": ("a",), "comment": "why"}
    said |= {"judgement": Judgement.MODEL_WRONG, **changes}
    if problem:
        with pytest.raises(ValueError, match=problem):
            Verdict(**said)
    else:
        Verdict(**said)


@pytest.mark.parametrize("judgement", Judgement)
def test_what_asks_for_no_wording_targets_nothing(judgement):
    """A corrected reference and what is recorded only put no answer right."""
    value = Value.ABSENT if judgement is WRONG else None
    made = Verdict(
        label="edema", judgement=judgement, case_ids=("a", "b"), correct_value=value
    )
    asks = judgement in (Judgement.MODEL_WRONG, Judgement.GUIDELINE_AMBIGUOUS)
    assert made.targets == ((("a", "edema"), ("b", "edema")) if asks else ())


def test_a_general_rule_is_no_change_of_a_guide():
    """It stands in the instructions, for every label."""
    rules = Edits(general_rules=("Old findings count.", "So do new ones."))
    assert (rules.count, rules.in_guide, bool(rules)) == (2, False, True)
    both = replace(rules, terms=("wet",))
    assert (both.count, both.in_guide) == (3, True)
    assert (Edits().count, Edits().in_guide, bool(Edits())) == (0, False, False)


def test_labels_are_kept_by_their_ids(build):
    """However they were written, also those that follow and that no longer do."""
    made = build(
        label="Edema", implies=["Pleural Effusion"], remove_implies=["Lung Lesion"]
    )
    assert made.label == "edema"
    assert made.edits.implies == ("pleural_effusion",)
    assert made.edits.remove_implies == ("lung_lesion",)


@pytest.mark.parametrize(
    ("changes", "edits"),
    [
        (
            {"action": "add_exclusion", "phrase": "dry"},
            Edits(exclusions=("dry",)),
        ),
        (
            {"action": "remove_clarification", "phrase": "dry"},
            Edits(remove_clarifications=("dry",)),
        ),
        (
            {"action": "add_exclusion", "phrase": "dry", "exclusions": ["not wet"]},
            Edits(exclusions=("not wet",)),
        ),
        (
            {"action": "clarify", "phrase": "dry", "value": "absent"},
            Edits(clarifications=(Clarification(phrase="dry", value=Value.ABSENT),)),
        ),
    ],
)
def test_a_phrase_is_what_the_action_makes_of_it(build, changes, edits):
    """One box serves several actions."""
    assert build(**changes).edits == edits


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"case": "b"}, "same thing; keep one"),
        (
            {
                "phrase": "dry",
                "value": "absent",
                "clarifications": [{"phrase": "wet", "value": "present"}],
            },
            "use either phrase and value, or clarifications",
        ),
    ],
)
def test_what_is_said_in_two_ways_is_refused(build, changes, message):
    """Nobody knows which of them was meant."""
    with pytest.raises(DataError, match=message):
        build(**changes)


def test_two_verdicts_name_one_right_value(labels_folder):
    """Of one case and label; those that name none disagree with nobody."""
    taxonomy = read_taxonomy(labels_folder)

    def one(value, case="a"):
        return Verdict(
            label="edema",
            judgement=Judgement.MODEL_WRONG,
            case_ids=(case,),
            correct_value=value,
        )

    present = one(Value.PRESENT)
    for fine in (present, one(None), one(Value.ABSENT, "b")):
        assert len(check_verdicts((present, fine), taxonomy, {"a", "b"})) == 2
    with pytest.raises(DataError, match="verdicts 1 and 2 disagree on edema"):
        check_verdicts((present, one(Value.ABSENT)), taxonomy, {"a"})


SMALL = {"words": "small for large", "said": "significant", "right": "insignificant"}
ON_A_JUDGE = FORM | {"label": "Wrong severity"}


def on_a_judge(labels_folder, **changes):
    """Return the verdict of a form about a judge."""
    return build_from_form(
        ON_A_JUDGE | changes,
        reviewer="Ann",
        asked=read_errors(labels_folder),
        case_ids={"a", "b"},
    )


def test_a_verdict_on_a_judge_lists_the_errors_of_a_category(labels_folder):
    """As the judge weighs them and as it should; what is right are counts."""
    missed = {"said": "no_error", "right": "significant"}
    wrong = {"words": "x", "said": "significant", "right": "no_error"}
    rule = {"phrase": "small for large", "value": "insignificant"}
    said = on_a_judge(
        labels_folder, errors=[SMALL, missed, wrong], clarifications=[rule]
    )
    assert said.label == "severity"
    assert said.errors[0].right is ErrorWeight.INSIGNIFICANT
    assert said.correct_counts == (1, 1)
    assert said.targets == (("a", "severity"),)
    assert on_a_judge(labels_folder).correct_counts is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"correct_value": "present"}, "correct_value is of labels"),
        ({"terms": ["effusion"]}, "the guide of a category has no terms"),
        ({"remove_implies": ["severity"]}, "has no implies"),
        (
            {"clarifications": [{"phrase": "small", "value": "present"}]},
            "present is said of a label. An error is one of significant",
        ),
        ({"errors": [SMALL], "cases": ["a", "b"]}, "errors are those of one case"),
        (
            {"errors": [SMALL], "judgement": "answer_right"},
            "answer_right is recorded only",
        ),
        (
            {
                "judgement": "reference_wrong",
                "cases": ["a"],
                "correct_value": "present",
            },
            "What raters say of a pair stays theirs",
        ),
        ({"label": "edema"}, "no category of errors is called 'edema'"),
        ({"errors": [{"words": "x", "said": "significant"}]}, "right"),
    ],
)
def test_what_nobody_can_say_of_a_judge_is_refused(labels_folder, changes, message):
    """With what can be said instead."""
    with pytest.raises((DataError, UnknownLabelError), match=message):
        on_a_judge(labels_folder, **changes)


def test_what_nobody_can_say_of_a_label_is_refused(build):
    """Errors and their weights are of judges."""
    with pytest.raises(DataError, match="errors are those of a judge"):
        build(errors=[SMALL])
    rule = {"phrase": "wet", "value": "significant"}
    with pytest.raises(DataError, match="significant is said of an error"):
        build(clarifications=[rule])


def test_two_verdicts_count_the_same_errors(labels_folder):
    """Of one pair and category."""
    one = on_a_judge(labels_folder, errors=[SMALL])
    other = on_a_judge(labels_folder, errors=[SMALL, SMALL])
    asked = read_errors(labels_folder)
    assert len(check_verdicts((one, one), asked, {"a"})) == 2
    with pytest.raises(DataError, match="0 significant and 1 insignificant errors"):
        check_verdicts((one, other), asked, {"a"})


def test_a_verdict_without_errors_keeps_the_id_it_had():
    """What was said before there were any."""
    said = Verdict(
        label="edema", judgement=Judgement.MODEL_WRONG, case_ids=("a",), reviewer="Ann"
    )
    assert "errors" not in said.data
    error = ErrorVerdict(
        words="", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight.NO_ERROR
    )
    assert replace(said, errors=(error,)).id != said.id


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


def test_all_that_a_verdict_says_is_its_data_and_makes_its_id():
    """Rules and errors only where there are any: what was said before keeps its id."""
    plain = Verdict(
        label="edema", judgement=Judgement.MODEL_WRONG, case_ids=("a",), reviewer="Ann"
    )
    lists = [one.name for one in GUIDE_LISTS] + [one.removals for one in GUIDE_LISTS]
    data = {
        "label": "edema",
        "judgement": "model_wrong",
        "severity": None,
        "context": None,
        "case_ids": ("a",),
        "edits": dict.fromkeys(lists, ()),
        "correct_value": None,
        "reviewer": "Ann",
        "comment": "",
        "anchor": False,
    }
    assert plain.data == data
    spelled = json.dumps(data, sort_keys=True, separators=(",", ":"))
    assert plain.id == hashlib.sha256(spelled.encode()).hexdigest()[:12]
    error = ErrorVerdict(
        words="x", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight.NO_ERROR
    )
    more = replace(plain, edits=Edits(general_rules=("Read all.",)), errors=(error,))
    said = {"words": "x", "said": "significant", "right": "no_error"}
    assert more.data == data | {
        "edits": data["edits"] | {"general_rules": ("Read all.",)},
        "errors": (said,),
    }


NO_ERRORS_HERE = "recorded only: leave out errors"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"case_ids": (), "comment": "why"}, "errors are those of one case"),
        ({"case_ids": ("a", "b")}, "errors are those of one case"),
        ({"judgement": Judgement.SOURCE_TEXT_DEFECT}, NO_ERRORS_HERE),
        ({"judgement": Judgement.ANSWER_RIGHT}, NO_ERRORS_HERE),
        ({"judgement": Judgement.GUIDELINE_AMBIGUOUS}, ""),
        ({"edits": Edits(general_rules=("x" * 1234,))}, "rule 1 has 1,234 characters"),
    ],
)
def test_errors_are_of_one_case_and_of_what_is_wrong(changes, problem):
    """Neither of the guide as such nor of what is recorded only."""
    error = ErrorVerdict(
        words="x", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight.NO_ERROR
    )
    said = {"label": "severity", "case_ids": ("a",), "errors": (error,)}
    said |= {"judgement": Judgement.MODEL_WRONG, **changes}
    if problem:
        with pytest.raises(ValueError, match=problem):
            Verdict(**said)
    else:
        assert Verdict(**said).correct_counts == (0, 0)


def test_errors_are_counted_by_what_they_should_weigh():
    """Two of one weight and one of the other, and what is none in neither."""
    serious, minor, none = (
        ErrorWeight.SIGNIFICANT,
        ErrorWeight.INSIGNIFICANT,
        ErrorWeight.NO_ERROR,
    )
    errors = tuple(
        ErrorVerdict(words=f"{n}", said=minor, right=right)
        for n, right in enumerate((minor, none, serious, minor))
    )
    made = Verdict(
        label="severity",
        judgement=Judgement.MODEL_WRONG,
        case_ids=("a",),
        errors=errors,
    )
    assert made.correct_counts == (1, 2)


def labelled(label="edema", judgement=Judgement.MODEL_WRONG, **changes):
    """Return a verdict on case a."""
    fields_ = {"label": label, "judgement": judgement, "case_ids": ("a",)}
    return Verdict(**(fields_ | changes))


@pytest.mark.parametrize("judgement", Judgement)
def test_of_no_finding_only_the_reference_or_the_text_is_judged(
    labels_folder, judgement
):
    """An answer that follows from others is wrong where one of them is."""
    value = Value.ABSENT if judgement is WRONG else None
    both = (labelled(), labelled("No Finding", judgement, correct_value=value))
    asked = read_taxonomy(labels_folder)
    if judgement in (Judgement.MODEL_WRONG, Judgement.GUIDELINE_AMBIGUOUS):
        with pytest.raises(DataError, match="verdict 2: No Finding is derived"):
            check_verdicts(both, asked, {"a"})
    else:
        assert check_verdicts(both, asked, {"a"})[1].label == "no_finding"


def test_the_verdict_that_names_what_is_not_there_is_told_by_its_number(labels_folder):
    """A case, a label, and what one implies or no longer implies."""
    asked = read_taxonomy(labels_folder)
    for wrong, kind in (
        (labelled(case_ids=("a", "y", "z")), DataError),
        (labelled("nothing"), UnknownLabelError),
        (labelled(edits=Edits(implies=("edema", "nothing"))), UnknownLabelError),
        (labelled(edits=Edits(remove_implies=("nothing",))), UnknownLabelError),
    ):
        with pytest.raises(kind, match=r"verdict 2: .*('y'|'nothing')"):
            check_verdicts((labelled(), wrong, labelled()), asked, {"a"})


def test_those_that_leave_open_what_is_right_hide_no_disagreement(labels_folder):
    """The first of each value is named, with what both call right."""
    said = [None, Value.PRESENT, None, Value.PRESENT, Value.ABSENT]
    verdicts = [labelled(correct_value=value) for value in said]
    with pytest.raises(DataError) as caught:
        check_verdicts(verdicts, read_taxonomy(labels_folder), {"a"})
    assert str(caught.value).startswith(
        "verdicts 2 and 5 disagree on edema of case 'a': correct_value present and "
        "correct_value absent. "
    )
    other = replace(verdicts[4], label="fracture")
    asked = read_taxonomy(labels_folder)
    assert len(check_verdicts((*verdicts[:4], other), asked, {"a"})) == 5


@pytest.mark.parametrize("name", [field.name for field in fields(Edits)])
def test_a_guide_of_a_category_has_three_lists(labels_folder, name):
    """Rules, examples and general rules; the others are of labels."""
    rows = {
        "clarifications": Clarification(phrase="x", value=ErrorWeight.SIGNIFICANT),
        "exemplars": Exemplar(text="x", value=ErrorWeight.NO_ERROR, evidence="x"),
    }
    row = rows.get(name, "severity" if "implies" in name else "x")
    asked = read_errors(labels_folder)
    both = (labelled("severity"), labelled("severity", edits=Edits(**{name: (row,)})))
    if name.removeprefix("remove_") in ("clarifications", "exemplars", "general_rules"):
        assert check_verdicts(both, asked, {"a"}) == both
    else:
        kind = name.removeprefix("remove_")
        said = f"verdict 2: the guide of a category has no {kind}. Say it with one of "
        with pytest.raises(DataError, match=said):
            check_verdicts(both, asked, {"a"})


@pytest.mark.parametrize("name", ["clarifications", "exemplars"])
def test_a_value_is_of_what_is_asked(labels_folder, name):
    """Of the second row as of the first."""

    def rows(*values):
        if name == "exemplars":
            return [Exemplar(text="x", value=one, evidence="x") for one in values]
        return [Clarification(phrase=f"{one}", value=one) for one in values]

    def check(label, asked, *values):
        edits = Edits(**{name: tuple(rows(*values))})
        return check_verdicts((labelled(label, edits=edits),), asked, {"a"})

    errors, labels = read_errors(labels_folder), read_taxonomy(labels_folder)
    good, bad = ErrorWeight.SIGNIFICANT, Value.PRESENT
    assert check("severity", errors, good, good)
    with pytest.raises(DataError, match="verdict 1: present is said of a label"):
        check("severity", errors, good, bad)
    assert check("edema", labels, bad, bad)
    with pytest.raises(DataError, match="verdict 1: significant is said of an error"):
        check("edema", labels, bad, good)


def test_empty_parts_of_a_field_do_not_count(build):
    """However deep they are; blanks at the ends neither."""
    made = build(
        cases=(None, " a ", ""),
        terms=["", None, [], {}, " wet "],
        clarifications=[{"phrase": " dry ", "value": "absent", "note": None}],
        exemplars=[
            {},
            EXAMPLE | {"text": " Wet lungs. ", "evidence": "wET", "why": ""},
        ],
        general_rules=" Read all. ",
    )
    assert made.case_ids == ("a",)
    assert made.edits == Edits(
        terms=("wet",),
        clarifications=(Clarification(phrase="dry", value=Value.ABSENT),),
        exemplars=(Exemplar(text="Wet lungs.", value=Value.PRESENT, evidence="wET"),),
        general_rules=("Read all.",),
    )


def test_the_exemplar_without_its_evidence_is_named(build):
    """The second of three."""
    wrong = EXAMPLE | {"text": "Dry."}
    with pytest.raises(DataError, match="the verdict, exemplar 2: its evidence"):
        build(exemplars=[EXAMPLE, wrong, EXAMPLE])


@pytest.mark.parametrize(
    ("changes", "edits"),
    [
        ({"action": "none"}, {}),
        ({"action": "remove_exemplar", "exemplars": "x"}, {"remove_exemplars": "x"}),
        (
            {"action": "remove_implication", "implies": ["Edema"]},
            {"remove_implies": "edema"},
        ),
        ({"action": "remove_term", "remove_terms": "x"}, {"remove_terms": "x"}),
        ({"action": "add_general_rule", "general_rule": "x"}, {"general_rules": "x"}),
        (
            {
                "action": "remove_clarification",
                "phrase": "x",
                "remove_clarifications": ["y"],
            },
            {"remove_clarifications": "y"},
        ),
    ],
)
def test_an_action_takes_its_content_from_its_list(build, changes, edits):
    """What is taken out may be named as what is put in is."""
    wanted = Edits(**{name: (row,) for name, row in edits.items()})
    assert build(**changes).edits == wanted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": "remove_term"}, "action remove_term needs terms"),
        (
            {"action": "remove_exemplar", "terms": "x"},
            "remove_exemplar needs exemplars",
        ),
        (
            {"action": "none", "terms": "x", "exclusions": "y"},
            "action none, but exclusions, terms given",
        ),
        ({"case_id": "b"}, "'case_id' and 'cases' are the same thing; keep one"),
        (
            {"action": "add_terms", "terms": "x"},
            "action 'add_terms' is none of add_term",
        ),
    ],
)
def test_what_an_action_lacks_is_named(build, changes, message):
    """By the name that is written in a file."""
    with pytest.raises(DataError, match=message):
        build(**changes)


RULE = {"phrase": "p", "value": "uncertain", "note": "why"}
ONE_ERROR = {"words": "w", "said": "significant", "right": "no_error"}


@pytest.mark.parametrize(
    ("name", "usual", "value"),
    [
        ("case", "cases", "b"),
        ("case_id", "cases", "b"),
        ("case_ids", "cases", ["b", "a"]),
        ("term", "terms", "x"),
        ("exclusion", "exclusions", "x"),
        ("clarification", "clarifications", RULE),
        ("exemplar", "exemplars", EXAMPLE),
        ("implication", "implies", "fracture"),
        ("implications", "implies", ["fracture"]),
        ("general_rule", "general_rules", "x"),
        ("error", "errors", ONE_ERROR),
        ("cause", "context", "negation"),
        ("remove_term", "remove_terms", "x"),
        ("remove_exclusion", "remove_exclusions", "x"),
        ("remove_clarification", "remove_clarifications", "x"),
        ("remove_exemplar", "remove_exemplars", "x"),
    ],
)
def test_a_field_may_be_called_otherwise(name, usual, value):
    """As one writes it who has one of it; under two names at once it is refused."""
    form = {key: said for key, said in FORM.items() if key != usual}
    form["comment"] = "x"
    one, other = (
        VerdictForm.model_validate(form | {key: value}).as_verdict("Ann")
        for key in (name, usual)
    )
    assert one == other
    assert one != VerdictForm.model_validate(form).as_verdict("Ann")
    with pytest.raises(ValidationError, match="are the same thing; keep one"):
        VerdictForm.model_validate(form | {name: value, usual: value})


def test_rows_of_a_guide_are_told_apart_by_their_folded_wording():
    """Labels by their ids, which are written in one way."""
    keys = {one.name: one.key for one in (*GUIDE_LISTS, *GUIDANCE_LISTS)}
    rule = Clarification(phrase="Wet  Lungs", value=Value.PRESENT)
    example = Exemplar(text="Wet  Lungs", value=Value.PRESENT, evidence="Wet")
    rows = {"clarifications": rule, "exemplars": example}
    found = {name: key(rows.get(name, "Wet  Lungs")) for name, key in keys.items()}
    assert found.pop("implies") == "Wet  Lungs"
    assert set(found.values()) == {fold_phrase("Wet  Lungs")}
    assert fold_phrase("Wet  Lungs") == "wet lungs"

"""Answers of judges that score, count, correct lines, weigh or rate: what is read."""

import json

import pytest

from loop.core.records import Item
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.line_corrections import SEVERITIES
from loop.prompts.outputs.weighted_errors import (
    WeightedFinding,
    crimson_score,
)
from tests.prompts.outputs.judging import CATEGORIES, PAIR, answer, counts_of

EMPTY = {name: [] for name in CATEGORIES}
SECTIONS = {
    "explanation": "They differ.",
    "significant_errors": {**EMPTY, "location": ["the side"]},
    "insignificant_errors": {**EMPTY, "severity": ["small for tiny"]},
    "matched_findings": ["normal heart", "no fluid", "no air"],
}
TEXT = answer("(c) Place: 1. the side", "3. a; b; c", "(d) Severity: 1. x")
SCORE = "\n[Overall Accuracy Score]:\n"


def read(name, text, item=PAIR):
    """Return the reading of an answer in a contract."""
    written = text if isinstance(text, str) else json.dumps(text)
    return get_contract(name).read(written, CATEGORIES, item)


def values(reading, *names):
    """Return the values of fields; None where the answer cannot be read."""
    if reading.fields is None:
        return None
    return tuple(reading.fields[name].value for name in names)


@pytest.mark.parametrize(
    ("printed", "score", "repaired"),
    [
        ("0.85", 0.85, False),
        ("1.00", 1.0, False),
        ("0.00\n", 0.0, False),
        ("**0.85**", 0.85, False),
        ("0.9", 0.9, True),
        ("1", 1.0, True),
        (".85", 0.85, True),
        ("0.850", 0.85, True),
        ("0.85.", 0.85, True),
        ("0.85/1.00", 0.85, True),
        ("0.85 out of 1", 0.85, True),
        ("85 %", 0.85, True),
        ("85%", 0.85, True),
        ("100 %", 1.0, True),
        ("0 %", 0.0, True),
        ("0", None, False),
        ("0.", None, False),
        ("1.05", None, False),
        ("-0.2", None, False),
        ("120 %", None, False),
        ("85", None, False),
        ("8.5/10", None, False),
        ("0,85", None, False),
        ("0.85 or 0.90", None, False),
        ("0.8 5", None, False),
        ("0.85\n0.90", None, False),
        ("high", None, False),
        ("0.85 would be too high", None, False),
        ("", None, False),
    ],
)
def test_a_printed_score_is_one_number_or_none(printed, score, repaired):
    """A percentage is converted; what may be two numbers or a cut one is neither."""
    found = read("green_text_scored", TEXT + SCORE + printed)
    assert values(found, "score") == (None if score is None else (score,))
    said = [one for one in found.repairs if one.startswith("score: ")]
    assert bool(said) is repaired or score is None
    alone = read("overall_score_text", f"[Explanation]:\nSo.\n{SCORE}{printed}")
    assert values(alone, "score") == values(found, "score")


@pytest.mark.parametrize("name", ["green_sections_scored", "green_text_scored"])
def test_counts_and_the_own_score_stand_side_by_side(name):
    """Both forms are read by both, whichever was asked for; spelling is a repair."""
    for text in (
        {**SECTIONS, "overall_score": 0.85},
        TEXT + SCORE + "0.85",
        TEXT + SCORE.replace("Accuracy", "accuracy") + "0.85",
        TEXT + "\n**Overall Accuracy Score**: 0.85",
        {**SECTIONS, "Overall Score": "0.85"},
    ):
        found = read(name, text)
        assert counts_of(found.fields) == (3, 1, 1)
        assert values(found, "score") == (0.85,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SECTIONS, "score: the section is missing"),
        (TEXT, "score: the section is missing"),
        ({**SECTIONS, "overall_score": None}, "score: the section is missing"),
        ({**SECTIONS, "overall_score": 1.2}, "score: it is not between 0 and 1"),
        ({**SECTIONS, "overall_score": -0.1}, "score: it is not between 0 and 1"),
        ({**SECTIONS, "overall_score": True}, "score: there is no number"),
        ({**SECTIONS, "overall_score": 0.85, "rules_score": 0.1}, "not asked for"),
        (TEXT + SCORE + "0.85\n" + SCORE + "0.85", "there are two such sections"),
        (SCORE + "0.85\n" + TEXT, "the sections are not in their order"),
        (
            json.dumps({**SECTIONS, "overall_score": 0.5})[:-1]
            + ', "overall_score":1}',
            "a key occurs twice",
        ),
    ],
)
def test_an_answer_without_its_one_score_is_unreadable(text, problem):
    """No score is made of the counts instead."""
    found = read("green_sections_scored", text)
    assert found.fields is None and problem in found.problem


@pytest.mark.parametrize(
    ("score", "remark"),
    [(0.55, False), (0.5455, False), (0.551, True), (0.95, True)],
)
def test_a_formula_is_computed_again(score, remark):
    """3 / (3 + 2 + 0.5) is 0.5455; what the judge wrote stays what it wrote."""
    in_json = read("green_formula", {**SECTIONS, "formula_score": score})
    in_text = read("green_formula_text", f"{TEXT}{SCORE}{score}")
    for found in (in_json, in_text):
        assert values(found, "score") == (score,)
        assert ("score: it is not what its counts give" in found.repairs) is remark
    nothing = {**SECTIONS, "significant_errors": EMPTY, "insignificant_errors": EMPTY}
    nothing = {**nothing, "matched_findings": [], "formula_score": score}
    told = read("green_formula", nothing)
    assert values(told, "score") == (score,) and told.repairs
    assert not read("green_formula", {**nothing, "formula_score": 1.0}).repairs
    silent = answer("(c) Place: 1. the side", "3. a; b; c", "") + f"{SCORE}0.60"
    assert any("not computed again" in one for one in read("green_formula", silent)[1])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ({"explanation": "So.", "overall_score": 0.6}, 0.6),
        ({"explanation": "So.", "overall_score": 1}, 1.0),
        ({"overall_score": 0.6}, 0.6),
        ({"explanation": "So.", "Overall accuracy score": "60 %"}, 0.6),
        ("```json\n" + '{"explanation": "So.", "overall_score": 0.6}\n```', 0.6),
        ("<think>0.9</think>[Overall Accuracy Score]: 0.60", 0.6),
        ({"explanation": "So."}, None),
        ({"explanation": "So.", "overall_score": 60}, None),
        ('{"explanation": "So.", "overall_score": 0.6', None),
        ('{"explanation": "So.", "overall_score": 0.6} or 0.7', None),
        ('{"overall_score": 0.6, "overall_score": 0.7}', None),
        ("0.6", None),
        ("", None),
    ],
)
def test_a_score_alone(text, score):
    """With an explanation or without, and never without the number."""
    found = read("overall_score", text)
    assert values(found, "score") == (None if score is None else (score,))


LINES = (
    "Number of clinically significant errors by type: "
    "[(A, 1), (B, 0), (C, 2), (D, 0), (E, 0), (F, 0)]\n"
    "Number of clinically insignificant errors by type: "
    "[(A, 0), (B, 0), (C, 0), (D, 1), (E, 0), (F, 0)]"
)
SIGNIFICANT = [f"significant.{name}" for name in CATEGORIES]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        (LINES, False),
        (LINES.replace("(", "[").replace(")", "]"), True),
        (LINES.replace("[(", "((").replace(")]", "))"), True),
        (LINES + "\nExplanation: (A, 9) is wrong.", True),
        (LINES.upper(), True),
        (LINES.replace("(A", "('A'"), True),
        (LINES.replace(", 1)", ": 1)"), True),
        ("Here is my answer.\n" + LINES, True),
        ("\n".join(reversed(LINES.split("\n"))), True),
        (LINES.replace("Number", "**Number").replace("type:", "type:**"), True),
    ],
)
def test_two_lines_of_counts(text, repaired):
    """Round or square brackets; everything from the explanation on is dropped."""
    found = read("error_counts_text", text)
    assert values(found, *SIGNIFICANT) == (1, 0, 2, 0, 0, 0)
    assert values(found, "insignificant.severity") == (1,)
    assert "matched" not in found.fields
    assert bool(found.repairs) is repaired


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LINES.split("\n")[0], "insignificant: the line is missing"),
        (LINES.split("\n")[1], "significant: the line is missing"),
        ("Explanation: none.\n" + LINES, "significant: the line is missing"),
        ("In all 3 errors.", "there is no JSON object in the answer"),
        (json.dumps({"x": LINES}), "the answer: a key that was not asked for"),
        ("{} " + LINES, "there are words beside the answer, which may say more"),
        (LINES.replace(", (F, 0)", ""), "significant: nothing is said of F"),
        (LINES.replace("(B, 0)", "(A, 0)"), "significant: a category occurs twice"),
        (LINES.replace("(F, 0)", "(F, 0), (G, 1)"), "that was not asked for"),
        (LINES.replace("(C, 2)", "(C, two)"), "something that is not a count"),
        (LINES.replace("(C, 2)", "(C, -2)"), "something that is not a count"),
        (LINES.replace("(C, 2)", "(C, 1-2)"), "something that is not a count"),
        (LINES.replace("(C, 2)", "(C, 2.5)"), "something that is not a count"),
        (LINES[:-5], "insignificant: something that is not a count"),
        (LINES + " and maybe one more", "insignificant: something that is not a count"),
        (LINES + "\n" + LINES, "there are two such lines"),
        ("In all 3.\n" + LINES, "there are numbers before the two lines"),
    ],
)
def test_lines_that_do_not_say_all_are_unreadable(text, problem):
    """A category that is not there is not a category without errors."""
    found = read("error_counts_text", text)
    assert found.fields is None
    assert problem in found.problem


def counted(**changed):
    """Return an answer of `error_counts` in JSON."""
    none = dict.fromkeys(CATEGORIES, 0)
    return {"significant_counts": {**none, **changed}, "insignificant_counts": none}


def test_counts_in_json():
    """By id, or by letter; a count is a whole number."""
    assert values(read("error_counts", counted(location=2)), *SIGNIFICANT) == (
        *(0, 0, 2),
        *(0, 0, 0),
    )
    letters = {"A": 0, "B": 0, "C": 2, "D": 0, "E": 0, "F": 0}
    spelled = {"significant_errors": letters, "insignificant_errors": letters}
    assert values(read("error_counts", spelled), SIGNIFICANT[2]) == (2,)


@pytest.mark.parametrize(
    "text",
    [
        counted(location=-1),
        counted(location=1.5),
        counted(location="many"),
        counted(location=True),
        counted(other=1),
        {"significant_counts": counted()["significant_counts"]},
        {**counted(), "insignificant_counts": {"omission": 0}},
        json.dumps(counted()).replace('"omission": 0', '"omission": 0, "omission": 1'),
    ],
)
def test_counts_that_are_missing_or_no_numbers_are_unreadable(text):
    """Nothing is taken for 0 that is not said to be."""
    assert read("error_counts", text).fields is None


CANDIDATE = Item(
    id="p",
    variables={
        "reference": "Small left effusion. Rib fracture.",
        "candidate": "1. Small right effusion of 1.5 cm. Heart normal.\nLungs clear.",
    },
)
LINE_NUMBERS = ("line_sum", "line_max", "line_mean")


def corrected(severity="Urgent error", **changed):
    """Return a correction."""
    return {
        "corrections": "Small left effusion.",
        "clinical severity": severity,
        "comments": "The side.",
        "error category": ["location"],
        **changed,
    }


def test_nothing_to_correct_is_no_error():
    """An empty object says so; an empty answer says nothing."""
    assert values(read("line_corrections", "{}", CANDIDATE), *LINE_NUMBERS) == (0, 0, 0)
    assert read("line_corrections", "", CANDIDATE).fields is None
    assert read("line_corrections", "{} but see below", CANDIDATE).fields is None
    assert read("line_corrections", "[{}]", CANDIDATE).fields is None
    assert read("line_corrections", "{", CANDIDATE).fields is None


def test_a_candidate_without_a_line_has_nothing_wrong_until_one_is_missing():
    """The mean over no line is 0, and over the one to be inserted its severity."""
    empty = Item(id="p", variables={"reference": "Rib fracture.", "candidate": ""})
    assert values(read("line_corrections", "{}", empty), *LINE_NUMBERS) == (0, 0, 0)
    found = read("line_corrections", {"None": corrected()}, empty)
    assert values(found, *LINE_NUMBERS) == (3, 3, 3)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_severities_have_their_published_worth(severity):
    """No error and an invalid comparison are worth 0, an emergent error 4."""
    found = read("line_corrections", {"0": corrected(severity)}, CANDIDATE)
    worth = SEVERITIES[severity]
    assert values(found, *LINE_NUMBERS) == (worth, worth, pytest.approx(worth / 3))
    other = severity.lower().replace("nonurgent", "non-urgent").removesuffix(" error")
    spelled = read("line_corrections", {"0": corrected(other)}, CANDIDATE)
    if severity != "No error":
        assert values(spelled, "line_sum") == (worth,) and spelled.repairs


def test_every_inserted_line_counts():
    """A plain JSON reader keeps the last of repeated keys; the mean is over 3 + 2."""
    one = json.dumps(corrected("Not actionable"))
    two = json.dumps(corrected("Emergent error"))
    for text in (
        f'{{"0": {two}, "None": {one}, "None": {two}}}',
        f'{{"[0]": {two}, "None": {one}, "None": {two}}}',
    ):
        found = read("line_corrections", text, CANDIDATE)
        assert values(found, *LINE_NUMBERS) == (9, 4, 9 / 5)
        entries = found.fields["line_sum"].entries
        spans = [entry.spans for entry in entries]
        assert spans[1:] == [(), ()]
        start, end, name = spans[0][0]
        text = CANDIDATE.variables[name][start:end]
        assert text == "1. Small right effusion of 1.5 cm."
        assert [entry.category for entry in entries] == ["location"] * 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ({"3": corrected()}, "the candidate has no such line"),
        ({"-1": corrected()}, "its key is not a line number"),
        ({"first": corrected()}, "its key is not a line number"),
        ({"0": corrected("Severe")}, "a severity that is not known"),
        ({"0": corrected("")}, "a severity that is not known"),
        ({"0": corrected("no")}, "a severity that is not known"),
        ({"0": corrected("Not actionable (or urgent)")}, "severity that is not known"),
        ({"0": corrected(3)}, "a severity that is not known"),
        ({"0": "Small left effusion."}, "it is not an object"),
        ({"0": {"clinical severity": "Urgent error"}}, "what to correct"),
        ({"0": {"corrections": "Left."}}, "a severity that is not known"),
        (
            f'{{"0": {json.dumps(corrected())}, "0": {json.dumps(corrected())}}}',
            "its line is corrected twice",
        ),
        (corrected(), "its key is not a line number"),
        (json.dumps({"0": corrected()})[:-1], "not readable as JSON"),
        ([], "there is no JSON object"),
    ],
)
def test_corrections_that_cannot_be_meant_are_unreadable(text, problem):
    """Of lines that are not there, or of a severity that nobody knows."""
    found = read("line_corrections", text, CANDIDATE)
    assert found.fields is None and problem in found.problem


def test_a_category_decides_nothing():
    """Severity is what is scored; an unknown category is a repair."""
    said = {"0": corrected(**{"error category": ["style"]})}
    found = read("line_corrections", said, CANDIDATE)
    assert values(found, "line_sum") == (3,) and found.repairs


def finding(weight, words="x", attributes=None):
    """Return a finding as an answer lists it."""
    listed = {"finding": words, "weight": weight}
    if attributes is not None:
        listed["attribute_errors"] = [
            {"type": kind, "severity": severity} for kind, severity in attributes
        ]
    return listed


def weighted(matched=(), missed=(), false=()):
    """Return an answer of `error_list_weighted`."""
    return {
        "matched_findings": list(matched),
        "missed_findings": list(missed),
        "false_findings": list(false),
    }


URGENT, ACTIONABLE = "urgent", "actionable_not_urgent"
MINOR, BENIGN = "not_actionable_not_urgent", "benign_expected"


@pytest.mark.parametrize(
    ("said", "score"),
    [
        (weighted(), 1.0),
        (weighted(false=[finding(ACTIONABLE)]), -0.3333),
        (
            weighted(
                [finding(URGENT, "a", [("location", "significant")])],
                [finding(ACTIONABLE, "b")],
                [finding(MINOR, "c")],
            ),
            0.2778,
        ),
        (
            weighted(
                missed=[finding(URGENT, "a"), finding(ACTIONABLE, "b")],
                false=[finding(URGENT, "c")],
            ),
            -0.5,
        ),
        (weighted([finding(URGENT, "a", [])]), 1.0),
        (weighted([finding(URGENT, "a", [("location", "negligible")])]), 1.0),
        (weighted(missed=[finding(URGENT)]), 0.0),
        (weighted([finding(BENIGN, "a", [("severity", "significant")])]), 1.0),
        (weighted(false=[finding(BENIGN)]), 1.0),
    ],
)
def test_crimson_is_computed_from_the_lists(said, score):
    """The published worked numbers first; a missed finding acts by the divisor."""
    found = read("error_list_weighted", said)
    assert values(found, "crimson") == (score,)
    loose = "```json\n" + json.dumps(said)[:-1] + ",}\n```"
    assert values(read("error_list_weighted", loose), "crimson") == (score,)


def test_crimson_never_rises_with_a_false_finding():
    """And stays above -1, however many there are."""
    matched = [WeightedFinding("a", URGENT)]
    false = [WeightedFinding(str(n), URGENT) for n in range(40)]
    scores = [crimson_score(matched, [], false[:n]) for n in range(40)]
    assert scores == sorted(scores, reverse=True) and min(scores) > -1


@pytest.mark.parametrize(
    "text",
    [
        {"matched_findings": [], "missed_findings": []},
        weighted(false=[finding("severe")]),
        weighted(false=[finding("benign_expected (or urgent)")]),
        weighted(false=[finding(None)]),
        weighted(false=[{"finding": "x"}]),
        weighted(false=[{"weight": URGENT}]),
        weighted(false=["x"]),
        weighted(matched=[finding(URGENT)]),
        weighted(matched=[{**finding(URGENT), "attribute_errors": None}]),
        weighted(matched=[finding(URGENT, " ", [])]),
        weighted(missed=[finding(URGENT, "")]),
        weighted(matched=[finding(URGENT, "a", [("colour", "significant")])]),
        weighted(matched=[finding(URGENT, "a", [("location", "grave")])]),
        weighted(matched=[finding(URGENT, "a", [("location", 1)])]),
        weighted(matched=[finding(URGENT, "a", [(None, "significant")])]),
        weighted(matched=[finding(URGENT, "a", [(["location"], "significant")])]),
        {**weighted(), "missed_findings": "none"},
        {**weighted(), "false_findings": {}},
        weighted(false=[finding(URGENT), finding(MINOR)]),
        json.dumps(weighted())[:-1],
        json.dumps(weighted()) + " and an urgent one",
        json.dumps(weighted(false=[finding(URGENT)]))[:-1] + ', "false_findings": []}',
    ],
)
def test_what_is_not_weighed_is_unreadable(text):
    """The published implementation takes 0.25 for a weight that it does not know."""
    assert read("error_list_weighted", text).fields is None


def test_weights_are_found_however_they_are_spelled():
    """With hyphens, spaces or capitals; a finding twice is one."""
    said = weighted(
        false=[finding("Actionable, not urgent"), finding("ACTIONABLE-NOT urgent")]
    )
    found = read("error_list_weighted", said)
    assert values(found, "crimson", "false") == (-0.3333, 1) and found.repairs


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("Good. [RESULT] 4", 4),
        ("Good.\n[RESULT] 4\n", 4),
        ("Good. [RESULT]: 4", 4),
        ("Good. [result] (4)", 4),
        ("Good. [SCORE] 4/5", 4),
        ("Good. Score: 4", 4),
        ("Good. Result: [4]", 4),
        ("So it has a score of 4", 4),
        ("Good. [RESULT] 4 out of 5", 4),
        ("[RESULT] 4", 4),
        ("<think>[RESULT] 1</think>Good. [RESULT] 4", 4),
        ("Good. [RESULT] 0", None),
        ("Good. [RESULT] 6", None),
        ("Good. [RESULT] 45", None),
        ("Good. [RESULT] 4.5", None),
        ("Good. [RESULT] 4/10", None),
        ("Good. [RESULT] four", None),
        ("Good. [RESULT]", None),
        ("Good. [RESULT] 4 is what I give", None),
        ("Good. [RESULT] 4.", None),
        ("[RESULT] 2 or rather [RESULT] 4", None),
        ("[RESULT] 2 The last one had a score of 4", None),
        ("Score: 2\nScore: 4", None),
        ("Score of the side: 2. [RESULT] 4", 4),
        ("This is not a score of 4", None),
        ("I can't give it a score: 4", None),
        ("Nothing that is not said. Score: 4", 4),
        ("Good. 4", None),
        ("Good. [RESULT] -4", None),
        ("", None),
        ('{"feedback": "Good.", "rating": 4}', 4),
        ('{"rating": "4"}', 4),
        ('{"feedback": "Good.", "rating": 4.0}', None),
        ('{"feedback": "Good.", "rating": 9}', None),
        ('{"feedback": "Good."}', None),
        ('{"feedback": "Good.", "rating": 4, "rating": 5}', None),
        ('{"feedback": "Good.", "rating": 4', None),
        ('{"feedback": "Good.", "rating": 4} or rather 3', None),
    ],
)
def test_a_rating_ends_the_text(text, rating):
    """With the published markers, and a whole number from 1 to 5."""
    for name in ("rating", "rating_text"):
        found = read(name, text)
        assert values(found, "rating") == (None if rating is None else (rating,))


@pytest.mark.parametrize(
    ("end", "noted"),
    [
        *(("[RESULT] 4", False), ("[RESULT]: 4", False), ("[SCORE] 4", True)),
        *(("Score: 4", True), ("[RESULT] (4)", True), ("[RESULT] 4/5", True)),
    ],
)
def test_a_result_that_is_not_written_as_asked_is_a_repair(end, noted):
    """A judge that always does so should be told another form."""
    repairs = read("rating_text", f"Good. {end}").repairs
    assert ("a result spelled differently" in repairs) == noted


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("The first is better. [RESULT] A", "A"),
        ("The second is better.\n[RESULT] B\n", "B"),
        ("The second is better. Result: (B)", "B"),
        ("Neither. [RESULT] C", None),
        ("[RESULT] A\nResult: B", None),
        ("Result: A. Result: B", None),
        ("Both. [RESULT] AB", None),
        ("Both. [RESULT] A or B", None),
        ("The first. [RESULT] a", None),
        ("The first. A", None),
        ('{"feedback": "The first.", "preference": "A"}', "A"),
        ('{"feedback": "None.", "preference": "C"}', None),
        ('{"feedback": "Both.", "preference": "A, B"}', None),
        ('{"feedback": "Both.", "preference": ["A"]}', None),
    ],
)
def test_a_preference_is_a_or_b(text, side):
    """There is no third, and no tie."""
    for name in ("preference", "preference_text"):
        found = read(name, text)
        assert values(found, "preference") == (None if side is None else (side,))


@pytest.mark.parametrize("fence", [False, True])
@pytest.mark.parametrize(("corrections", "is_read"), [(200, True), (201, False)])
def test_two_hundred_corrections_are_read_and_no_more(corrections, is_read, fence):
    """What is left out of a candidate has no line, so that its key may repeat."""
    said = {
        "corrections": "Rib fracture.",
        "clinical severity": next(iter(SEVERITIES)),
        "comments": "",
        "error category": ["omission"],
    }
    whole = ", ".join([f'"None": {json.dumps(said)}'] * corrections)
    text = f"```\n{{{whole}}}\n```" if fence else f"{{{whole}}}"
    found = read("line_corrections", text)
    assert (found.fields is not None) is is_read
    if is_read:
        assert sum(len(one.entries) for one in found.fields.values()) == corrections
    else:
        assert found.problem == "there are more than 200 corrections"


@pytest.mark.parametrize(
    ("named", "category"),
    [
        (["omission", "location"], "omission"),
        (["style", "Location", "omission"], "location"),
        ([3, "severity"], "severity"),
        ([], ""),
    ],
)
@pytest.mark.parametrize("fence", [False, True])
def test_the_first_category_that_was_asked_for_is_kept(named, category, fence):
    """As the schema has it, or repaired; no number hangs on it."""
    text = json.dumps({"0": corrected(**{"error category": named})})
    found = read("line_corrections", f"```\n{text}\n```" if fence else text, CANDIDATE)
    (entry,) = found.fields["line_sum"].entries
    assert (entry.category, found.fields["line_sum"].value) == (category, 3)


def test_what_is_false_is_weighed_against_what_is_right():
    """By half a point more either way: a third below 0, and half of what there is."""
    half = WeightedFinding("a", "actionable_not_urgent")
    urgent = WeightedFinding("b", "urgent")
    assert crimson_score([half], [], [urgent]) == -0.3333
    assert crimson_score([urgent], [], [half]) == 0.5
    assert crimson_score([half], [], [half]) == 0.0

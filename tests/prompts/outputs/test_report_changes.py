"""Changes of a report as a model states them, and what a validator says of them."""

import json
import random
from collections import Counter

import pytest

from loop.core.records import Item
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.report_changes import MOST_CHANGES, stated_rewrite
from tests.prompts.outputs.test_judge_fuzz import ANSWERS, JUNK, damaged

CHANGES, PLAUSIBLE = get_contract("changes"), get_contract("plausible")
ITEM = Item(id="p", variables={"text": "Small effusion. Normal heart."})
CHANGE = {
    "sentence_index": 0,
    "original": "Small",
    "modified": "Large",
    "explanation": "e",
    "severity": "major",
    "harm_potential": "h",
}
REPORT = "Large effusion. Normal heart."
GOOD = {"modified_report": REPORT, "changes_detail": [CHANGE]}


def read(text):
    """Return what an answer states, or why it cannot be read."""
    reading = CHANGES.read(text, ("severity_kind",), ITEM)
    if reading.fields is None:
        return reading.problem
    said = stated_rewrite(reading.fields)
    assert reading.fields["severity_kind"].value == len(said.changes)
    return said.report, [one[:3] for one in said.changes]


def changed(**said):
    """Return the answer with its one change otherwise."""
    return json.dumps({**GOOD, "changes_detail": [{**CHANGE, **said}]})


STATED = (REPORT, [(0, "Small", "Large")])
SHORT = {key: CHANGE[key] for key in ("sentence_index", "original", "modified")}
CURLY = json.dumps({**GOOD, "changes_detail": [SHORT]})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"<think>{json.dumps({})}</think>{json.dumps(GOOD)}",
        CURLY,
        CURLY.replace('"', "\u201c"),
        json.dumps({**GOOD, "changes_detail": CHANGE}),
        changed(sentence_index="0"),
        changed(harm_potential=None),
        json.dumps({**GOOD, "note": "done"}),
    ],
)
def test_changes_are_read_as_they_are_stated(text):
    """As published, with what models leave out or write otherwise."""
    assert read(text) == STATED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no answer"),
        ("Large effusion.", "object"),
        (json.dumps({"modified_report": REPORT}), "changes_detail is missing"),
        (json.dumps({**GOOD, "modified_report": " "}), "is not a text"),
        (json.dumps({**GOOD, "changes_detail": "none"}), "is not a list"),
        (json.dumps({**GOOD, "changes_detail": [1]}), "is not an object"),
        (changed(sentence_index=-1), "which sentence it is in"),
        (changed(sentence_index=1.5), "which sentence it is in"),
        (changed(sentence_index=True), "which sentence it is in"),
        (changed(original=3), "original is not a text"),
        (changed(modified="Small"), "changes nothing"),
        (json.dumps(GOOD)[:-3], "JSON"),
        (json.dumps(GOOD).replace('"original"', '"modified"'), "twice"),
        (
            json.dumps({**GOOD, "changes_detail": [CHANGE] * (MOST_CHANGES + 1)}),
            "more than 20 changes",
        ),
        (json.dumps(GOOD) + json.dumps({**GOOD, "modified_report": "x"}), "different"),
    ],
)
def test_what_states_no_changes_is_not_read(text, problem):
    """A change that is guessed would become an error that is known."""
    assert problem in read(text)


def plausible(text):
    """Return what an answer says, or why it cannot be read."""
    reading = PLAUSIBLE.read(text, ("plausible",), ITEM)
    return reading.problem or bool(reading.fields["plausible"].value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"plausible": true, "reason": "ok"}', True),
        ('{"plausible": false, "reason": "no such organ"}', False),
        ('{"plausible": true}', True),
        ('{"plausible": "yes", "reason": "ok"}', True),
        ('```\n{"plausible": "false", "reason": "x"}\n```', False),
    ],
)
def test_a_validator_is_read_as_it_says(text, said):
    """True or false, in JSON."""
    assert plausible(text) is said


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Plausible.", "object"),
        ('{"plausible": null, "reason": "ok"}', "does not say whether"),
        ('{"plausible": "perhaps", "reason": "ok"}', "does not say whether"),
        ('{"plausible": 1, "reason": "ok"}', "does not say whether"),
        ('{"plausible": false, "reason": "ok"}', "implausible and ok"),
        ('{"plausible": true, "plausible": false, "reason": "x"}', "twice"),
        ('{"reason": "ok"}', "does not say whether"),
        ('{"plausible": true, "reason": "ok"} but not quite', "words beside"),
    ],
)
def test_a_validator_that_does_not_say_is_not_believed(text, problem):
    """Nothing that cannot be read lets a variant pass."""
    assert isinstance(said := plausible(text), str), said
    assert problem in said


def make_changes(draw):
    """Return an answer with up to three changes, and what it states."""
    number = draw.randint(0, 3)
    changes = [
        {**CHANGE, "sentence_index": n, "original": f"old {chr(97 + n)}"}
        for n in range(number)
    ]
    data = {"modified_report": REPORT, "changes_detail": changes}
    return json.dumps(data), (
        REPORT,
        [(n, f"old {chr(97 + n)}", "Large") for n in range(number)],
    )


def make_plausible(draw):
    """Return what a validator says, and whether it finds no fault."""
    said = draw.random() < 0.5
    reason = "ok" if said else "no such organ"
    return json.dumps({"plausible": said, "reason": reason}), said


@pytest.mark.slow
def test_a_damaged_answer_states_no_other_number_of_changes():
    """Words may be damaged, which code then refuses; no change is lost or made."""
    draw = random.Random(20261126)
    ends = Counter()
    for _ in range(ANSWERS):
        whole, truth = make_changes(draw)
        assert read(whole) == truth
        found = read(text := damaged(whole, draw))
        ends[isinstance(found, str)] += 1
        if not isinstance(found, str):
            assert [one[0] for one in found[1]] == [one[0] for one in truth[1]], text
    assert min(ends.values()) >= ANSWERS / 10


@pytest.mark.slow
def test_a_damaged_validator_says_what_it_said_or_nothing():
    """No stray mark lets a variant pass."""
    draw = random.Random(20261126)
    ends = Counter()
    for _ in range(ANSWERS):
        whole, truth = make_plausible(draw)
        assert plausible(whole) is truth
        found = plausible(text := damaged(whole, draw))
        ends[isinstance(found, str)] += 1
        if not isinstance(found, str):
            assert found is truth, text
    assert min(ends.values()) >= ANSWERS / 20


@pytest.mark.slow
@pytest.mark.parametrize("contract", [CHANGES, PLAUSIBLE], ids=lambda one: one.name)
def test_nothing_that_is_written_about_changes_raises(contract):
    """A model may write anything; each end is fields or a problem."""
    draw = random.Random(7)
    for _ in range(ANSWERS):
        text, _ = draw.choice((make_changes, make_plausible))(draw)
        for _ in range(draw.randint(0, 6)):
            at = draw.randrange(len(text) + 1)
            end = min(at + draw.choice((0, 0, 1, 5, 40)), len(text))
            text = text[:at] + draw.choice(JUNK) + text[end:]
        reading = contract.read(text, ("kind",), ITEM)
        assert (reading.fields is None) is bool(reading.problem)

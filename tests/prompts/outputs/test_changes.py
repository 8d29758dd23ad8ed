"""Changed reports and looks at them, read as they stand: strictly, loosely, or not."""

import json
import random
from collections import Counter

import pytest

from loop.core.records import Item, Reading
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.report_changes import (
    MOST_CHANGES,
    StatedChange,
    StatedRewrite,
    stated_rewrite,
)
from loop.run.database import FieldEncoder, decode_fields
from tests.prompts.outputs.test_judge_fuzz import (
    ANSWERS,
    JUNK,
    MARKS,
    damaged,
    scrawled,
)

CHANGES, PLAUSIBLE = get_contract("changes"), get_contract("plausible")
FIELDS = ("severity",)
ITEM = Item(id="a", variables={"text": "Small left effusion. Normal heart."})
ONE = {
    "sentence_index": 0,
    "original": "Small left effusion.",
    "modified": "Large left effusion.",
    "explanation": "It grew.",
    "severity": "major",
    "harm_potential": "",
}
WHOLE = {
    "modified_report": "Large left effusion. Normal heart.",
    "changes_detail": [ONE],
}
SAID = StatedRewrite(WHOLE["modified_report"], (StatedChange(0, *[*ONE.values()][1:]),))
LEFT, RIGHT = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"


def read(data, contract=CHANGES):
    """Return the reading of an answer, or of its data."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return contract.read(text, FIELDS, ITEM)


def said(data):
    """Return what an answer states; None where it cannot be read."""
    reading = read(data)
    return None if reading.fields is None else stated_rewrite(reading.fields)


def one(**changes):
    """Return an answer whose one change is changed; None leaves a key out."""
    made = {key: value for key, value in {**ONE, **changes}.items() if value is not ...}
    return {**WHOLE, "changes_detail": [made]}


def test_an_answer_that_follows_the_schema_needs_no_repair():
    """Every part of it is there, and can be stored and read again."""
    reading = read(WHOLE)
    assert reading.repairs == () and stated_rewrite(reading.fields) == SAID
    assert reading.fields["severity"].value == 1
    stored = decode_fields(FieldEncoder().encode(reading.fields))
    assert stated_rewrite(stored) == SAID


def test_the_kind_that_was_asked_for_has_the_number_of_changes():
    """Whatever the kind is called."""
    fields = CHANGES.read(json.dumps(WHOLE), ("omission",), ITEM).fields
    assert fields["omission"].value == 1
    none = {**WHOLE, "changes_detail": []}
    fields = CHANGES.read(json.dumps(none), ("omission",), ITEM).fields
    assert fields["omission"].value == 0
    assert stated_rewrite(fields) == StatedRewrite(WHOLE["modified_report"], ())


def curly(text):
    """Return JSON with the quotation marks of a word processor."""
    parts = text.split('"')
    return "".join(
        part + ("" if n == len(parts) - 1 else (LEFT, RIGHT)[n % 2])
        for n, part in enumerate(parts)
    )


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{json.dumps(WHOLE)}\n```",
        f"<think>Which one? {{}}</think>{json.dumps(WHOLE)}",
        f"Here is the report:\n{json.dumps(WHOLE)}",
        json.dumps(WHOLE).replace("modified_report", "Modified Report"),
        json.dumps(WHOLE).replace('"sentence_index": 0', '"sentence_index": "0"'),
        json.dumps(WHOLE)[:-1] + ', "note": "done"}',
        repr(WHOLE),
        json.dumps({**WHOLE, "changes_detail": ONE}),
        curly(json.dumps(WHOLE)),
    ],
)
def test_what_models_write_besides_is_read_and_noted(text):
    """It says the same."""
    reading = read(text)
    assert stated_rewrite(reading.fields) == SAID
    assert reading.repairs


def test_curly_quotes_inside_straight_ones_are_words_of_the_report():
    """They stay as they are."""
    data = {**WHOLE, "modified_report": f"{LEFT}Large{RIGHT} left effusion."}
    assert said(data).report == data["modified_report"]
    fenced = f"```\n{json.dumps(data, ensure_ascii=False)}\n```"
    assert said(fenced).report == data["modified_report"]


def test_keys_may_be_missing_that_decide_nothing():
    """And a removal may be null."""
    bare = one(explanation=..., severity=..., harm_potential=...)
    assert said(bare).changes == (StatedChange(0, ONE["original"], ONE["modified"]),)
    assert said(one(modified=None)).changes[0].modified == ""
    assert said(one(modified="")).changes[0].modified == ""
    assert said(one(original="")).changes[0].original == ""


@pytest.mark.parametrize(
    "answer",
    [
        *("", "{}", "[]", "null", "Large left effusion.", json.dumps(WHOLE)[:-2]),
        {"modified_report": "x"},
        {"changes_detail": [ONE]},
        {**WHOLE, "modified_report": "  "},
        {**WHOLE, "modified_report": ["x"]},
        {**WHOLE, "changes_detail": "none"},
        {**WHOLE, "changes_detail": ["none"]},
        {**WHOLE, "changes_detail": [ONE] * (MOST_CHANGES + 1)},
        *(
            one(sentence_index=value)
            for value in (..., None, -1, 1.5, True, "two", "٣")
        ),
        one(original=...),
        one(modified=...),
        one(original=3),
        one(explanation=[1]),
        one(modified=ONE["original"]),
        one(original="", modified=""),
        json.dumps(WHOLE)[:-1] + ', "modified_report": "other"}',
        json.dumps(WHOLE).replace('"original"', '"modified": "x", "original"'),
        json.dumps(WHOLE) + json.dumps({**WHOLE, "changes_detail": []}),
        f"<think>{json.dumps(WHOLE)}",
    ],
)
def test_what_is_not_clear_is_not_read(answer):
    """With the reason, and without a word of the report."""
    reading = read(answer)
    assert reading.fields is None and reading.problem
    assert "ffusion" not in reading.problem


def test_a_validator_is_read_as_it_says():
    """With its reason; whatever stands around."""
    for text, value, reason in (
        ('{"plausible": true, "reason": "ok"}', 1, "ok"),
        ('{"plausible": false, "reason": "not seen on film"}', 0, "not seen on film"),
        ('```\n{"Plausible": "No", "reason": "wrong region"}\n```', 0, "wrong region"),
        ('<think>hm</think>{"plausible": true}', 1, ""),
        ('{"plausible": true, "reason": null}', 1, ""),
        ('{"plausible": false}', 0, ""),
    ):
        field = read(text, PLAUSIBLE).fields["plausible"]
        assert (field.value, field.entries[0].words) == (value, reason)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "true", "plausible", '{"plausible": 1, "reason": "ok"}'),
        '{"plausible": false, "reason": "ok"}',
        '{"plausible": null, "reason": "ok"}',
        '{"plausible": "perhaps", "reason": "ok"}',
        '{"plausible": true, "plausible": false, "reason": "x"}',
        '{"plausible": true, "reason": ["x"]}',
        'Not plausible at all. {"plausible": true, "reason": "ok"}',
        '{"plausible": true, "reason": "ok"} {"plausible": false, "reason": "x"}',
        '{"plausible": true, "reason": "ok", "but": "not"}',
    ],
)
def test_a_validator_that_is_not_clear_is_not_read(text):
    """Nothing is plausible because it could not be read."""
    reading = read(text, PLAUSIBLE)
    assert reading.fields is None and reading.problem


def rewrites(draw):
    """Return an answer, and what it states."""
    changes = [
        {
            **ONE,
            "sentence_index": 2 * number,
            "original": f"words {chr(97 + number)}",
            "modified": draw.choice(("", f"other {chr(97 + number)}")),
        }
        for number in range(draw.randint(0, 4))
    ]
    report = "Large left effusion. " * draw.randint(1, 3)
    data = {"modified_report": report, "changes_detail": changes}
    stated = tuple(StatedChange(*change.values()) for change in changes)
    return json.dumps(data), StatedRewrite(report, stated)


@pytest.mark.slow
def test_of_a_damaged_answer_no_change_is_lost_or_moved():
    """A stray mark in words is for the code that holds them against the report."""
    draw, ends = random.Random(3), Counter()
    for _ in range(ANSWERS):
        whole, truth = rewrites(draw)
        assert said(whole) == truth
        found = said(damaged(whole, draw))
        ends[found is not None] += 1
        if found is not None:
            assert len(found.changes) == len(truth.changes)
            places = [each.sentence for each in found.changes]
            assert places == [each.sentence for each in truth.changes]
    assert ends[True] >= ANSWERS / 10 and ends[False] >= ANSWERS / 10


@pytest.mark.slow
def test_a_damaged_look_says_what_it_said_or_nothing():
    """Whatever is put into it."""
    draw, ends = random.Random(4), Counter()
    for _ in range(ANSWERS):
        truth = draw.random() < 0.5
        text = json.dumps({"plausible": truth, "reason": "ok" if truth else "region"})
        fields = read(damaged(text, draw), PLAUSIBLE).fields
        ends[fields is not None] += 1
        assert fields is None or bool(fields["plausible"].value) is truth
    assert ends[True] >= ANSWERS / 10 and ends[False] >= ANSWERS / 10


@pytest.mark.slow
@pytest.mark.parametrize("contract", [CHANGES, PLAUSIBLE], ids=lambda one: one.name)
def test_nothing_that_is_written_raises(contract):
    """A model may write anything; each end is fields or a problem."""
    draw = random.Random(5)
    for _ in range(ANSWERS):
        text = draw.choice([rewrites(draw)[0], '{"plausible": true, "reason": "ok"}'])
        text = scrawled(text, draw, (*JUNK, *MARKS, LEFT))
        reading = contract.read(text, FIELDS, ITEM)
        assert isinstance(reading, Reading)
        assert (reading.fields is None) is bool(reading.problem)


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 400_000, '"' * 400_000, LEFT * 100_000, "<think>" * 50_000),
        '{"changes_detail": [' + "{}," * 100_000,
        json.dumps({**WHOLE, "modified_report": "x " * 190_000}),
        "x" * 500_000,
    ],
    ids=lambda text: text[:12],
)
def test_an_answer_of_any_length_is_read_in_time_that_grows_with_it(text):
    """Else this takes hours."""
    for contract in (CHANGES, PLAUSIBLE):
        assert isinstance(contract.read(text, FIELDS, ITEM), Reading)


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```"])
def test_an_answer_at_its_limits_is_read(form):
    """Twenty changes, in the first sentence or in the last that has a number."""
    before, _, after = form.partition("{}")
    for data, last in (
        ({**WHOLE, "changes_detail": [ONE] * MOST_CHANGES}, 0),
        (one(sentence_index=0), 0),
        (one(sentence_index=9_999), 9_999),
    ):
        changes = said(f"{before}{json.dumps(data)}{after}").changes
        assert len(changes) == len(data["changes_detail"])
        assert changes[-1][0] == last
    for number in (-1, 10_000, "10000", "-1"):
        assert said(f"{before}{json.dumps(one(sentence_index=number))}{after}") is None
    assert said(one(sentence_index=" 9999 ")).changes[0][0] == 9_999


def test_a_schema_allows_what_is_read_and_asks_for_every_key():
    """A server that holds a model to less would make it leave changes out."""
    schema = CHANGES.schema(FIELDS)
    listed = schema["properties"]["changes_detail"]
    change = listed["items"]
    assert listed["maxItems"] == MOST_CHANGES == 20
    number = change["properties"]["sentence_index"]
    assert number == {"type": "integer", "minimum": 0, "maximum": 9_999}
    assert change["required"] == [*change["properties"]] == [*ONE]
    assert schema["required"] == [*schema["properties"]] == [*WHOLE]
    assert schema["additionalProperties"] is change["additionalProperties"] is False

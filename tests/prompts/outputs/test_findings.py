"""The contract findings: what the list says, and that no list says nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Field, Item, Span, Value
from loop.prompts.outputs.evidence import MAX_QUOTE
from loop.prompts.outputs.findings import Findings, read_loosely
from loop.prompts.outputs.label_values import MAX_CHARS, LabelValues
from tests.calls import count_calls

FIELDS = ("edema", "pleural_effusion", "cavity_cyst")
TEXT = "FINDINGS: No edema. Small left pleural effusion, small left cyst?"
ITEM = Item(id="case-1", variables={"text": TEXT})
CONTRACT = Findings()
ABSENT = {name: Field(Value.ABSENT) for name in FIELDS}


def read(answer, fields=FIELDS):
    """Return the reading of `answer`, spelled as JSON unless it is text."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return CONTRACT.read(text, fields, ITEM)


def finding(label, value="present", **more):
    """Return one entry of the list."""
    return {"label": label, "value": value, **more}


EFFUSION = finding("pleural_effusion", evidence="pleural effusion")
CYST = finding("cavity_cyst", "uncertain", evidence="small left cyst?")
PLAIN = json.dumps({"findings": [EFFUSION, CYST]})
FOUND = ABSENT | {
    "pleural_effusion": Field(Value.PRESENT, (Span(31, 47),)),
    "cavity_cyst": Field(Value.UNCERTAIN, (Span(49, 65),)),
}


def test_labels_that_are_not_listed_are_absent():
    """The list is the statement about every label asked for."""
    reading = read(PLAIN)
    assert reading.fields == FOUND
    assert tuple(reading.fields) == FIELDS
    assert (reading.repairs, reading.problem) == ((), "")


def test_an_empty_list_says_that_every_label_is_absent():
    """The list is there and closed: an answer, not a silence."""
    assert read('{"findings": []}').fields == ABSENT


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "the answer is empty"),
        ("{}", "there is no list of findings"),
        ("[]", "there is no JSON object"),
        ("none", "there is no JSON object"),
        ("absent", "there is no JSON object"),
        ("No findings.", "there is no JSON object"),
        ('{"findings": [', "not readable as JSON"),
        (PLAIN[:-1], "not readable as JSON"),
        (PLAIN[:-2], "not readable as JSON"),
        (PLAIN[:60], "not readable as JSON"),
        ('{"findings": null}', "the findings are not a list"),
        ('{"findings": "none"}', "the findings are not a list"),
        ('{"findings": {"edema": "present"}}', "the findings are not a list"),
        ('{"result": {"findings": []}}', "there is no list of findings"),
        ('{"findings": [], "edema": "present"}', "1 field(s) that were not asked for"),
        (f"<think>{PLAIN}</think>", "there is no answer after thinking"),
        (f'{{"findings": []}} or rather {PLAIN}', "2 different objects"),
        ('{"findings": [], "Findings": [1]}', "two different lists of findings"),
        ('{"findings": ["edema"]}', "finding 1 is not an object"),
        ('{"findings": [[]]}', "finding 1 is not an object"),
        ({"findings": [EFFUSION, {"value": "present"}]}, "finding 2 has no label"),
        ({"findings": [{"label": None, "value": 1}]}, "finding 1 has no label"),
        ({"findings": [{"label": "edema"}]}, "no value for edema"),
        ({"findings": [finding("edema", "maybe")]}, "the value of edema"),
        ({"findings": [finding("fracture")]}, "1 finding(s) that were not asked for"),
        ({"findings": [finding("no_finding")]}, "1 finding(s) that were not asked for"),
        (
            {"findings": [finding("edema"), finding("edema", "uncertain")]},
            "two different values for edema",
        ),
        (
            {"findings": [finding("edema"), finding("Edema", "absent")]},
            "two different values for edema",
        ),
        (
            '{"findings": [{"label": "edema", "value": "present", "value": "absent"}]}',
            "two different value keys for edema",
        ),
        (
            '{"findings": [{"label": "edema", "Label": "cavity_cyst", "value": 1}]}',
            "finding 1 has two different labels",
        ),
    ],
)
def test_without_one_whole_list_of_known_labels_nothing_is_read(answer, problem):
    """Silence about a label is only absent where the list is there to be silent."""
    reading = read(answer)
    assert reading.fields is None
    assert problem in reading.problem


@pytest.mark.parametrize(
    "answer",
    [
        'I cannot help with that. {"findings": []}',
        '{"findings": []}\nCorrection: edema is present.',
        f"Here you are: {PLAIN}",
        f"{PLAIN} 另有肺水肿",
    ],
)
def test_words_beside_the_list_may_say_what_it_leaves_out(answer):
    """A refusal or an afterthought must not end as absent."""
    reading = read(answer)
    assert reading.fields is None
    assert "words beside the answer" in reading.problem


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        (f"```json\n{PLAIN}\n```", "code fence removed"),
        (f"<think>Edema? {{no}}</think>\n{PLAIN}", "thinking removed"),
        (f"[{PLAIN}]", "text around the object removed"),
        (f"{PLAIN}\n{PLAIN}", "the same object given more than once"),
        (PLAIN[:-2] + ",]}", "trailing comma removed"),
        (PLAIN.replace('"', "'"), "single quotes read as double quotes"),
        (
            PLAIN.replace('"pleural_effusion"', '"Pleural Effusion"'),
            "pleural_effusion: label spelled differently",
        ),
        (
            PLAIN.replace('"present"', '"yes"'),
            "pleural_effusion: value spelled differently",
        ),
        (PLAIN.replace('"findings"', '"Findings"'), "list of findings spelled"),
        (
            json.dumps({"findings": [EFFUSION, CYST, EFFUSION]}),
            "pleural_effusion: given more than once",
        ),
        (
            json.dumps({"findings": [EFFUSION, CYST, finding("edema", "absent")]}),
            "edema: absent although listed",
        ),
        (
            json.dumps({"findings": [{**EFFUSION, "side": "left"}, CYST]}),
            "pleural_effusion: a key that is not value or evidence ignored",
        ),
    ],
)
def test_one_meaning_is_read_and_the_repair_recorded(text, repair):
    """What a model puts around the list or spells in its own way."""
    reading = read(text)
    assert reading.fields == FOUND
    assert any(repair in one for one in reading.repairs)


def test_spans_are_read_as_the_rules_give_them():
    """An engine that knows the place need not quote."""
    reading = read({"findings": [finding("pleural_effusion", span=[31, 47])]})
    assert reading.fields["pleural_effusion"].spans == (Span(31, 47),)
    assert reading.repairs == ()


def test_the_schema_bounds_everything():
    """No longer than one short entry a label, of labels and values asked for."""
    schema = CONTRACT.schema(FIELDS)
    listed = schema["properties"]["findings"]
    item = listed["items"]
    assert listed["maxItems"] == len(FIELDS)
    assert item["properties"]["label"]["enum"] == list(FIELDS)
    assert item["properties"]["value"]["enum"] == ["present", "uncertain"]
    assert item["properties"]["evidence"]["maxLength"] == MAX_QUOTE
    assert item["required"] == list(item["properties"])
    assert schema["additionalProperties"] is item["additionalProperties"] is False


@pytest.mark.parametrize(
    "garbage",
    [
        "[" * MAX_CHARS,
        '{"findings":[' * 30_000,
        '{"findings":[' + "{}," * 130_000,
        '{"findings":[' + '{"label":"edema","value":1},' * 14_000,
        '{"findings":"' + "\\" * 390_000,
        "x" * 5_000_000,
        "\ud800" * 1000,
    ],
)
def test_garbage_is_looked_at_once_and_unparsed(garbage):
    """Neither depth nor length may hang or crash the run."""
    reading = read(garbage)
    assert reading.fields is None
    assert reading.problem
    assert count_calls(lambda: read(garbage)) < 10 * len(garbage)


pieces = st.sampled_from(
    [
        "{", "}", "[", "]", ",", ":", '"', "'", "\\", "edema", "label", "present",
        '"findings":[', '{"findings": []}', '{"label":"edema","value":1}', "<think>",
        "</think>", "```", "\n", " ", "1", "null", PLAIN, "\ufeff",
    ]
)  # fmt: skip


@given(st.lists(pieces | st.text(max_size=5), max_size=30).map("".join))
def test_no_text_gives_fields_without_a_closed_list(text):
    """Fields only ever come from an object with a list that ends."""
    reading = read(text)
    assert (reading.fields is None) == bool(reading.problem)
    if reading.fields is not None:
        assert tuple(reading.fields) == FIELDS
        assert "findings" in text.casefold()
        assert "]" in text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["findings", "label", "value", "evidence", "span"]),
                inner | st.sampled_from([*FIELDS, "present", "absent"]),
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_no_json_crashes_the_reader(answer):
    """Whatever JSON comes back is either all fields or a problem."""
    reading = read({"findings": answer})
    assert (reading.fields is None) == bool(reading.problem)
    assert reading.fields is None or tuple(reading.fields) == FIELDS


@given(st.integers(0, len(PLAIN) - 1))
def test_a_cut_off_answer_is_never_read(length):
    """A shorter list would turn the findings that are missing into absent."""
    assert read(PLAIN[:length]).fields is None


def test_the_strict_reader_agrees_with_the_tolerant_one():
    """Two readers of one form must not differ."""
    assert read(PLAIN) == read_loosely(PLAIN, FIELDS, TEXT)


def test_problems_and_repairs_never_quote_the_answer():
    """An answer may quote the case, and problems are printed and logged."""
    secret = "Jane Roe"
    for answer in (
        secret,
        {"findings": secret},
        {"findings": [secret]},
        {"findings": [finding(secret)]},
        {"findings": [finding("edema", secret)]},
        {"findings": [finding("edema", evidence=secret)]},
        {"findings": [{**EFFUSION, secret: 1}]},
        {"findings": [], secret: 1},
    ):
        reading = read(answer)
        assert secret not in reading.problem + "".join(reading.repairs)


@pytest.mark.parametrize(
    ("length", "long"), [(MAX_CHARS, False), (MAX_CHARS + 1, True)]
)
def test_an_answer_may_be_as_long_as_the_limit(length, long):
    """In both contracts of labels; one character more is not looked at."""
    full = json.dumps({name: "absent" for name in FIELDS})
    for contract, answer in ((CONTRACT, '{"findings": []}'), (LabelValues(), full)):
        reading = contract.read(answer.ljust(length), FIELDS, ITEM)
        if long:
            assert reading.fields is None
            assert reading.problem == "the answer is longer than 400,000 chars"
        else:
            assert reading.fields == ABSENT


@pytest.mark.parametrize(("length", "found"), [(2000, True), (2001, False)])
def test_a_quote_in_another_case_is_looked_for_up_to_a_length(length, found):
    """A longer one is not: a search that may differ at each letter takes long."""
    source = f"{'A' * length}."
    item = Item(id="case-1", variables={"text": source})
    for contract, answer in (
        (CONTRACT, {"findings": [finding("edema", evidence="a" * length)]}),
        (LabelValues(), {"edema": {"value": "present", "evidence": "a" * length}}),
    ):
        field = contract.read(json.dumps(answer), ("edema",), item).fields["edema"]
        assert field == Field(Value.PRESENT, (Span(0, length),) if found else ())

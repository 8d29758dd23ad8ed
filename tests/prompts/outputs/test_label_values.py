"""The contract label_values: the strict form, and what is never read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.records import Field, Item, Span, Value
from loop.prompts.outputs.base import CONTRACTS, get_contract
from loop.prompts.outputs.evidence import MAX_QUOTE
from loop.prompts.outputs.label_values import MAX_CHARS, LabelValues
from tests.calls import count_calls

FIELDS = ("edema", "pleural_effusion", "cavity_cyst")
TEXT = "FINDINGS: No edema. Small left pleural effusion, small left cyst?"
ITEM = Item(id="case-1", variables={"text": TEXT})
CONTRACT = LabelValues()


def read(answer, fields=FIELDS):
    """Return the reading of `answer`, spelled as JSON unless it is text."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return CONTRACT.read(text, fields, ITEM)


def entry(value, **evidence):
    """Return one entry of an answer."""
    return {"value": value, **evidence}


ANSWER = {
    "edema": entry("absent", evidence="No edema", span=[10, 18]),
    "pleural_effusion": entry("present", evidence="pleural effusion"),
    "cavity_cyst": entry("uncertain", span=[49, 64]),
}


def test_the_strict_form_is_read_without_repairs():
    """Value, quote and span of each label come out as they went in."""
    reading = read(ANSWER)
    assert reading.fields == {
        "edema": Field(Value.ABSENT, (Span(10, 18),)),
        "pleural_effusion": Field(Value.PRESENT, (Span(31, 47),)),
        "cavity_cyst": Field(Value.UNCERTAIN, (Span(49, 64),)),
    }
    assert (reading.repairs, reading.problem) == ((), "")


@pytest.mark.parametrize(
    ("fields", "answer", "taken"),
    [
        (FIELDS[:1], {"value": "absent"}, True),
        (FIELDS[:1], {"Value": "absent", "span": [10, 18]}, True),
        (FIELDS[:1], entry("absent", evidence="No edema", span=[10, 18]), True),
        (FIELDS[:1], {"value": "absent", "why": "clear"}, False),
        (FIELDS[:1], {"evidence": "No edema"}, False),
        (FIELDS[:2], {"value": "absent"}, False),
    ],
)
def test_an_entry_alone_is_that_of_the_only_label_asked(fields, answer, taken):
    """With any of its parts, and with nothing else beside them."""
    reading = read(answer, fields)
    assert (reading.problem == "") is taken
    assert (
        "answer without its label taken for the only one asked" in reading.repairs
    ) is taken
    if taken:
        assert reading.fields["edema"].value is Value.ABSENT


def test_a_label_named_like_a_part_is_no_entry_alone():
    """Its own name comes first."""
    reading = read({"value": "present"}, ("value",))
    assert reading.fields == {"value": Field(Value.PRESENT)}
    assert "taken for the only one" not in "".join(reading.repairs)


@pytest.mark.parametrize("quote", ["FINDINGS", "small left"])
def test_of_a_quote_that_occurs_twice_the_first_is_taken(quote):
    """And it is said, also where the text begins with it."""
    text = f"{TEXT.replace('Small', 'small')} FINDINGS"
    answer = {"edema": entry("absent", evidence=quote)}
    item = Item(id="case-1", variables={"text": text})
    reading = CONTRACT.read(json.dumps(answer), FIELDS[:1], item)
    start = text.index(quote)
    place = Span(start, start + len(quote))
    assert reading.fields == {"edema": Field(Value.ABSENT, (place,))}
    assert reading.repairs == ("edema: evidence occurs more than once, first taken",)


def test_values_are_the_enum_and_fields_keep_the_order_asked():
    """Downstream compares enum members, never text."""
    fields = read({name: ANSWER[name] for name in reversed(FIELDS)}).fields
    assert all(isinstance(field.value, Value) for field in fields.values())
    assert tuple(fields) == FIELDS


def test_a_finding_that_is_not_mentioned_has_no_span():
    """Negated and not mentioned are both absent; only evidence tells them apart."""
    reading = read({name: entry("absent") for name in FIELDS})
    assert reading.fields["edema"] == Field(Value.ABSENT)


def test_colons_in_the_evidence_do_not_spoil_the_strict_form():
    """Colons are counted to find repeated keys; quotes may hold some."""
    reading = read(ANSWER | {"edema": entry("absent", evidence="FINDINGS: No edema")})
    assert reading.fields["edema"].spans == (Span(0, 18),)
    assert reading.repairs == ()


@pytest.mark.parametrize(
    "second", ['"edema":{"value":"present"}', '"edema":"present"', '"Edema":1']
)
def test_a_label_answered_twice_with_different_values_is_unparsed(second):
    """JSON parsers silently keep the last of repeated keys: that would be a guess."""
    first = json.dumps(ANSWER)[:-1]
    reading = read(f"{first},{second}}}")
    assert reading.fields is None
    assert "edema" in reading.problem


def test_a_repeated_value_key_is_unparsed():
    """The same holds inside an entry."""
    rest = json.dumps({name: entry("absent") for name in FIELDS[1:]})[1:]
    reading = read('{"edema":{"value":"present","value":"absent"},' + rest)
    assert reading.problem == "two different value keys for edema"


def test_missing_labels_are_named():
    """An answer that leaves labels out is not an answer of absent."""
    reading = read({"edema": entry("absent")})
    assert reading.fields is None
    assert reading.problem == "no answer for pleural_effusion, cavity_cyst"


def test_labels_not_asked_for_are_refused_without_quoting_them():
    """A made-up label may quote the case, so only their number is told."""
    reading = read({**ANSWER, "Small left pleural": entry("present")})
    assert reading.fields is None
    assert reading.problem == "1 field(s) that were not asked for"


@pytest.mark.parametrize("word", ["maybe", "", "2", 2, 0.5, None, [], {"a": 1}, "-2"])
def test_values_outside_the_table_are_unparsed(word):
    """What is not understood is never absent."""
    reading = read(ANSWER | {"edema": entry(word)})
    assert reading.fields is None
    assert "edema" in reading.problem


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("Present", Value.PRESENT),
        ("YES", Value.PRESENT),
        (" positive ", Value.PRESENT),
        (1, Value.PRESENT),
        (1.0, Value.PRESENT),
        ("1", Value.PRESENT),
        (True, Value.PRESENT),
        ("no", Value.ABSENT),
        ("negative", Value.ABSENT),
        (0, Value.ABSENT),
        (False, Value.ABSENT),
        (-1, Value.UNCERTAIN),
        ("-1", Value.UNCERTAIN),
        ("possible", Value.UNCERTAIN),
    ],
)
def test_every_word_of_the_table_is_read_and_recorded(word, value):
    """Both as an entry's value and bare, with one repair naming the label."""
    nested = read(ANSWER | {"edema": entry(word)})
    bare = read(ANSWER | {"edema": word})
    assert nested.fields["edema"] == bare.fields["edema"] == Field(value)
    assert nested.repairs == ("edema: value spelled differently",)
    assert "edema: bare value" in bare.repairs


def test_the_schema_asks_for_exactly_the_fields():
    """Servers that constrain decoding to the schema make strict answers."""
    schema = CONTRACT.schema(("edema", "fracture"))
    assert list(schema["properties"]) == schema["required"] == ["edema", "fracture"]
    assert schema["additionalProperties"] is False
    plain, mentioned = schema["properties"]["edema"]["anyOf"]
    assert plain == {"type": "string", "enum": ["absent"]}
    assert mentioned["required"] == list(mentioned["properties"])


def test_a_model_is_asked_for_short_quotes_and_for_no_offsets():
    """Unbounded, a rambling model fills its budget; offsets it can only make up."""
    _, mentioned = CONTRACT.schema(("edema",))["properties"]["edema"]["anyOf"]
    assert list(mentioned["properties"]) == ["value", "evidence"]
    assert mentioned["properties"]["evidence"]["maxLength"] == MAX_QUOTE


def test_a_quote_that_was_cut_off_is_still_found():
    """What a server cuts at the bound still begins as the text does."""
    text = "There is " + "a very small effusion and " * 10
    item = Item(id="1", variables={"text": text})
    answer = json.dumps({"edema": entry("present", evidence=text[:MAX_QUOTE])})
    reading = CONTRACT.read(answer, ("edema",), item)
    assert reading.fields["edema"].spans == (Span(0, MAX_QUOTE),)
    assert reading.repairs == ()


def test_plain_absent_is_the_strict_form_of_a_label_not_mentioned():
    """Most labels of most reports: no repair, no evidence."""
    item = Item(id="1", variables={"text": "Edema."})
    edema = '{"value": "present", "evidence": "Edema"}'
    answer = f'{{"edema": {edema}, "fracture": "absent"}}'
    reading = CONTRACT.read(answer, ("edema", "fracture"), item)
    assert reading.repairs == ()
    assert reading.fields["fracture"] == Field(Value.ABSENT)


@pytest.mark.parametrize("word", ["present", "uncertain"])
def test_other_plain_words_are_repaired(word):
    """A finding that is there should have said where."""
    item = Item(id="1", variables={"text": "Edema."})
    reading = CONTRACT.read(f'{{"edema": "{word}"}}', ("edema",), item)
    assert reading.fields["edema"].value == word
    assert reading.repairs == ("edema: bare value",)


def test_the_contract_is_found_by_name():
    """prompt.yaml names its contract."""
    assert [get_contract(name).name for name in CONTRACTS] == list(CONTRACTS)
    with pytest.raises(DataError, match=r"known: binary, .*label_val.*--contract"):
        get_contract("label_valeus")


@pytest.mark.parametrize(
    "garbage",
    [
        "[" * MAX_CHARS,
        '{"a":' * 80_000,
        "{" * MAX_CHARS,
        '"' * MAX_CHARS,
        "{'" * 200_000,
        "<think>" * 50_000,
        "<think></think>" * 26_000,
        "```\n" * 100_000,
        "```" + " " * 390_000 + "x y",
        "{}" * 200_000,
        '{"a":[' + "1," * 190_000,
        "(" * MAX_CHARS,
        '{"' + "(" * 390_000 + '":1}',
        '{"edema":' + "9" * 390_000 + "}",
        '{"edema":"' + "\\" * 390_000,
        "x" * 5_000_000,
        "\ud800" * 1000,
        "\x00" * 1000,
    ],
)
def test_garbage_is_looked_at_once_and_unparsed(garbage):
    """Models loop; neither depth nor length may hang or crash the run."""
    reading = read(garbage)
    assert reading.fields is None
    assert reading.problem
    assert count_calls(lambda: read(garbage)) < 10 * len(garbage)


answers = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*FIELDS, "value", "evidence", "span", "Edema"])
            | st.text(),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(answers)
def test_no_json_crashes_the_reader(answer):
    """Whatever JSON comes back is either all fields or a problem."""
    reading = read(json.dumps(answer))
    assert (reading.fields is None) == bool(reading.problem)
    assert reading.fields is None or tuple(reading.fields) == FIELDS


pieces = st.sampled_from(
    [
        "{", "}", "[", "]", ",", ":", '"', "'", "\\", "edema", "value", "present",
        '"edema"', '{"value":"absent"}', "<think>", "</think>", "```", "```json\n",
        "\n", " ", "1", "-1", "True", "null", json.dumps(ANSWER), "\ufeff", "\\u12",
    ]
)  # fmt: skip


@given(st.lists(pieces | st.text(max_size=5), max_size=30).map("".join))
def test_no_text_crashes_the_reader(text):
    """Broken JSON, tags and quotes in any order."""
    for fields in (FIELDS, ("edema",)):
        reading = read(text, fields)
        assert (reading.fields is None) == bool(reading.problem)


@given(
    st.fixed_dictionaries(
        {name: st.sampled_from([value.value for value in Value]) for name in FIELDS}
    ),
    st.sampled_from(["{}", "```json\n{}\n```", "<think>{{}}</think>{}", "Sure: {} ok"]),
    st.sampled_from([None, 2]),
)
def test_wrapping_never_changes_a_value(values, wrapping, indent):
    """Repairs remove what is around an answer and nothing else."""
    answer = json.dumps({name: entry(v) for name, v in values.items()}, indent=indent)
    reading = read(wrapping.format(answer))
    assert {name: field.value for name, field in reading.fields.items()} == values
    assert bool(reading.repairs) == (wrapping != "{}")


@given(st.text(alphabet="ab :\n", min_size=1, max_size=12), st.text("ab :\n"))
def test_spans_always_lie_inside_the_text(quote, text):
    """Whatever is quoted, a span that comes back holds text of the case."""
    item = Item(id="c", variables={"text": text})
    answer = json.dumps({"edema": entry("present", evidence=quote, span=[0, 3])})
    field = CONTRACT.read(answer, ("edema",), item).fields["edema"]
    for span in field.spans:
        assert 0 <= span.start < span.end <= len(text)
        held = text[span.start : span.end]
        assert held.split() == quote.split()


def test_problems_and_repairs_never_quote_the_answer():
    """An answer may quote the case, and problems are printed and logged."""
    secret = "Jane Roe"
    for answer in (
        secret,
        f'{{"{secret}": 1}}',
        f'{{"edema": {{"value": "{secret}"}}}}',
        json.dumps({**ANSWER, "edema": entry("absent", evidence=secret)}),
        json.dumps({**ANSWER, "edema": {**entry("absent"), secret: 1}}),
        json.dumps(ANSWER)[:-5] + secret,
    ):
        reading = read(answer)
        assert secret not in reading.problem + "".join(reading.repairs)

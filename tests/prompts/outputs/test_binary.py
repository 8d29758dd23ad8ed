"""The contract ``binary``: present or absent, and no way to hedge."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.records import Item, PromptTask, Span, Value
from loop.prompts.outputs.base import get_contract, list_contracts
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.outputs.label_values import LabelValues

FIELDS = ("edema", "fracture")
ITEM = Item(id="c", variables={"text": "Mild edema. Possible fracture."})
UNSURE = ("uncertain", "Uncertain", "possible", "-1", -1)


def read(answer):
    """Read an answer, written as JSON unless it is text already."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return BinaryValues().read(text, FIELDS, ITEM)


def test_present_and_absent_are_read_with_their_evidence():
    """The same form and the same evidence as in `label_values`."""
    reading = read(
        {"edema": {"value": "present", "evidence": "Mild edema"}, "fracture": "absent"}
    )
    assert [one.value for one in reading.fields.values()] == ["present", "absent"]
    assert reading.fields["edema"].spans == (Span(0, 10),)
    assert reading.repairs == ()


@pytest.mark.parametrize("word", UNSURE)
@pytest.mark.parametrize("bare", [True, False])
def test_an_uncertain_answer_is_unreadable_and_never_a_value(word, bare):
    """By whatever word: it becomes neither absent nor present."""
    entry = word if bare else {"value": word, "evidence": "Possible fracture"}
    reading = read({"edema": "absent", "fracture": entry})
    assert reading.fields is None
    assert "uncertain for fracture" in reading.problem
    assert "Possible" not in reading.problem


@pytest.mark.parametrize(
    "around", ["{}", "```json\n{}\n```", "<think>uncertain?</think>{}", "So: {}"]
)
def test_the_tolerant_reader_repairs_the_same_faults(around):
    """Fences, thinking and spelling, and not the value."""
    for word, fields in (("Yes", "present"), ("possible", None)):
        answer = json.dumps({"Edema": word, "fracture": "no"})
        reading = read(around.replace("{}", answer))
        if fields is None:
            assert reading.fields is None
        else:
            assert reading.fields["edema"].value == fields
            assert reading.repairs


def test_the_schema_offers_two_values():
    """A server that enforces it cannot give the third."""
    text = json.dumps(BinaryValues().schema(FIELDS))
    assert '"enum": ["present", "absent"]' in text and "uncertain" not in text
    assert "uncertain" in json.dumps(LabelValues().schema(FIELDS))
    assert "uncertain" not in BinaryValues().instruction


@given(st.fixed_dictionaries(dict.fromkeys(FIELDS, st.sampled_from(list(Value)))))
def test_both_contracts_read_the_same_of_decided_answers(values):
    """What has no uncertain answer is the same in `label_values`."""
    text = json.dumps({name: {"value": value} for name, value in values.items()})
    binary, full = (
        one.read(text, FIELDS, ITEM) for one in (BinaryValues(), LabelValues())
    )
    if Value.UNCERTAIN in values.values():
        assert binary.fields is None and full.fields is not None
    else:
        assert binary == full


@given(st.text() | st.sampled_from(['{"edema":', "uncertain", "I cannot tell"]))
def test_nothing_raises(text):
    """A model may write anything."""
    assert read(text).fields is None or read(text).problem == ""


def test_it_is_a_contract_by_its_name():
    """`prompt.yaml` names it; an unknown name is refused with the known ones."""
    assert get_contract("binary").name == "binary"
    assert list_contracts(PromptTask.EXTRACT)[-1] == "binary"
    with pytest.raises(DataError, match="binary, findings, label_values"):
        get_contract("binry", PromptTask.EXTRACT)

"""Both contracts read equivalent answers to the same predictions."""

import json

from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Item, Value
from loop.prompts.outputs.findings import Findings
from loop.prompts.outputs.label_values import LabelValues

FIELDS = ("edema", "pleural_effusion", "cavity_cyst", "calcification")
TEXT = 'Edema: none. "Fluid" {left}, no cyst. Édème, 肺 {x},'
ITEM = Item(id="c", variables={"text": TEXT})
FORMS = ("{}", "```json\n{}\n```", "<think>edema?</think>{}", "[{}]")


@st.composite
def entries(draw):
    """Draw what is said of one label: nothing, or a value that may be quoted."""
    value = draw(st.sampled_from([value.value for value in Value]))
    if value == "absent":
        return None
    start = draw(st.integers(0, len(TEXT) - 1))
    end = draw(st.integers(start + 1, len(TEXT)))
    evidence = draw(st.sampled_from(["", TEXT[start:end], "not in the text"]))
    entry = {"value": value, "evidence": evidence}
    if draw(st.booleans()):
        entry["span"] = [start, end]
    return entry


answers = st.fixed_dictionaries({name: entries() for name in FIELDS})


def full(answer):
    """Return an answer in the contract label_values."""
    return json.dumps({name: entry or "absent" for name, entry in answer.items()})


def compact(answer):
    """Return the same answer in the contract findings."""
    listed = [{"label": name, **one} for name, one in answer.items() if one]
    return json.dumps({"findings": listed})


@given(answers, st.sampled_from(FORMS), st.permutations(FIELDS))
def test_equivalent_answers_give_the_same_fields(answer, form, order):
    """Values, spans and repairs, whatever stands around and in whichever order."""
    answer = {name: answer[name] for name in order}
    before, _, after = form.partition("{}")
    one = LabelValues().read(before + full(answer) + after, FIELDS, ITEM)
    other = Findings().read(before + compact(answer) + after, FIELDS, ITEM)
    assert one.problem == other.problem == ""
    assert one == other
    assert tuple(one.fields) == tuple(other.fields) == FIELDS


@given(answers)
def test_neither_contract_reads_the_other(answer):
    """A full answer must not pass for an empty list, nor a list for a full answer."""
    assert LabelValues().read(compact(answer), FIELDS, ITEM).fields is None
    assert Findings().read(full(answer), FIELDS, ITEM).fields is None


@given(answers, st.data())
def test_a_cut_off_answer_is_read_by_neither(answer, data):
    """Truncation is the commonest fault of constrained answers."""
    for contract, text in (
        (LabelValues(), full(answer)),
        (Findings(), compact(answer)),
    ):
        length = data.draw(st.integers(0, len(text) - 1))
        assert contract.read(text[:length], FIELDS, ITEM).fields is None

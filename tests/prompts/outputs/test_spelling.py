"""One answer in every JSON spelling gives one reading."""

import json

from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Item, Value
from loop.prompts.outputs.label_values import LabelValues, read_loosely

FIELDS = ("edema", "pleural_effusion", "cavity_cyst")
TEXT = 'Edema: none. "Fluid" {left}, no cyst. Édème, 肺 {x},'
ITEM = Item(id="c", variables={"text": TEXT})


@st.composite
def entries(draw):
    """Draw an entry that quotes the text, or not."""
    entry = {"value": draw(st.sampled_from([value.value for value in Value]))}
    if draw(st.booleans()):
        start = draw(st.integers(0, len(TEXT) - 1))
        end = draw(st.integers(start + 1, len(TEXT)))
        entry |= {"evidence": TEXT[start:end], "span": [start, end]}
    return entry


@given(
    st.fixed_dictionaries({name: entries() for name in FIELDS}), st.permutations(FIELDS)
)
def test_spelling_order_and_spacing_do_not_matter(answer, order):
    """Whatever is quoted: braces, quotation marks, colons, other scripts."""
    answer = {name: answer[name] for name in order}
    spelled = json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    reading = LabelValues().read(spelled, FIELDS, ITEM)
    assert reading == LabelValues().read(json.dumps(answer, indent=2), FIELDS, ITEM)
    assert reading == read_loosely(spelled, FIELDS, TEXT)
    assert (reading.problem, reading.repairs) == ("", ())
    for name, entry in answer.items():
        assert reading.fields[name].value == entry["value"]
        quotes = [TEXT[one.start : one.end] for one in reading.fields[name].spans]
        assert quotes == ([entry["evidence"]] if "evidence" in entry else [])

"""Fields in the store: exact both ways."""

import json

from hypothesis import given
from hypothesis import strategies as st

from loop.core.records import Field, Span, Value
from loop.run.database import FieldEncoder, decode_fields

spans = st.builds(Span, st.integers(0, 10**6), st.integers(0, 10**6))
values = (
    st.sampled_from(Value)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
fields = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.builds(Field, values, st.lists(spans, max_size=3).map(tuple)),
    max_size=6,
)


@given(st.lists(fields, max_size=4))
def test_what_is_encoded_is_decoded(many):
    """Also with one encoder for all, which remembers spellings."""
    encoder = FieldEncoder()
    shared = Field(Value.ABSENT)
    for one in many:
        one = {**one, "shared": shared}
        text = encoder.encode(one)
        assert decode_fields(text) == one
        json.loads(text)


def test_values_become_the_enum_again():
    """Judges' words stay words."""
    encoder = FieldEncoder()
    text = encoder.encode(
        {"a": Field(Value.PRESENT), "b": Field("good"), "c": Field(3)}
    )
    assert text == '{"a":"present","b":"good","c":3}'
    decoded = decode_fields(text)
    assert decoded["a"].value is Value.PRESENT
    assert decoded["b"].value == "good"


def test_a_remembered_spelling_is_not_used_for_another_field():
    """Spellings are remembered by identity."""
    encoder = FieldEncoder()
    assert encoder.encode({"a": Field(Value.ABSENT)}) == '{"a":"absent"}'
    assert encoder.encode({"a": Field(Value.PRESENT)}) == '{"a":"present"}'
    spans = (Span(1, 2),)
    assert (
        encoder.encode({"a": Field(Value.ABSENT, spans)}) == '{"a":["absent",[[1,2]]]}'
    )

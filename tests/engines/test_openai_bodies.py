"""A request is the frame's bytes, prepared once, and the case's own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.config import ServingSettings
from loop.engines.openai.bodies import make_envelope
from loop.engines.openai.endpoint import Endpoint
from tests.engines.scripted import FRAME, make_prompt, make_settings


def envelope(extra_body=None, constrained=True, **options):
    """Return the envelope of the frame."""
    endpoint = Endpoint(
        url="http://127.0.0.1/v1",
        model="m",
        serving=ServingSettings(),
        extra_body=extra_body or {},
    )
    settings = make_settings(**options)
    return make_envelope(FRAME, endpoint, settings, constrained=constrained)


@given(st.text())
def test_any_text_arrives_as_it_is(text):
    """Quotes, backslashes, control characters, every script."""
    messages = json.loads(envelope().body(text))["messages"]
    expected = make_prompt(text).messages
    assert [(m["role"], m["content"]) for m in messages] == [tuple(m) for m in expected]


def test_half_a_surrogate_pair_is_sent_as_a_question_mark():
    """It is no text, and strict servers refuse the whole request."""
    body = envelope().body("a\ud800b")
    assert json.loads(body)["messages"][-1]["content"] == "Case: a?b"


def test_the_request_asks_for_the_schema_and_the_parameters():
    """The names that today's servers read."""
    body = json.loads(envelope(temperature=0.5, max_tokens=7, seed=3).body("x"))
    del body["messages"]
    answer = {"name": "answer", "schema": FRAME.schema, "strict": True}
    assert body == {
        "model": "m",
        "max_tokens": 7,
        "temperature": 0.5,
        "seed": 3,
        "response_format": {"type": "json_schema", "json_schema": answer},
    }


def test_without_enforcement_no_schema_is_sent():
    """A server that refuses schemas must not see one."""
    assert "response_format" not in json.loads(envelope(constrained=False).body("x"))


def test_extra_fields_add_replace_and_take_away():
    """Hosted models differ in what they accept."""
    extra = {"seed": None, "max_tokens": None, "max_completion_tokens": 9, "top_k": 1}
    body = json.loads(envelope(extra).body("x"))
    assert "seed" not in body
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["top_k"]) == (9, 1)


@pytest.mark.parametrize(
    "extra", [{}, {"max_tokens": None, "max_completion_tokens": 9}]
)
def test_the_blank_request_asks_for_one_token_and_holds_no_case(extra):
    """It finds out whether the frame itself is refused."""
    body = json.loads(envelope(extra).blank())
    assert body["messages"][-1]["content"] == "Case: "
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    assert sorted(limits, key=str) == [1, None]

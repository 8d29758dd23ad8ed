"""Requests are the frame and the case; responses are untrusted, one completion each."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.config import ServingSettings
from loop.core.records import Completion
from loop.engines.openai.client import Endpoint
from loop.engines.openai.completions import (
    UnreadableAnswerError,
    chat_body,
    make_prefix,
    one_line,
    read_answer,
    read_error,
    read_fingerprint,
)
from tests.engines.scripted import FRAME, chat, make_prompt, make_settings


def prefix(extra_body=None, constrained=True, frame=FRAME, **options):
    """Return the prefix of the frame."""
    endpoint = Endpoint(
        url="http://127.0.0.1/v1",
        model="m",
        serving=ServingSettings(),
        extra_body=extra_body or {},
    )
    settings = make_settings(**options)
    return make_prefix(frame, endpoint, settings, constrained=constrained)


@given(st.text())
def test_any_text_arrives_as_it_is(text):
    """Quotes, backslashes, control characters, every script."""
    messages = json.loads(prefix().body(text))["messages"]
    expected = make_prompt(text).messages
    assert [(m["role"], m["content"]) for m in messages] == [tuple(m) for m in expected]


def test_half_a_surrogate_pair_is_sent_as_a_question_mark():
    """It is no text, and strict servers refuse the whole request."""
    body = prefix().body("a\ud800b")
    assert json.loads(body)["messages"][-1]["content"] == "Case: a?b"


def test_the_request_asks_for_the_schema_and_the_parameters():
    """The names that today's servers read."""
    body = json.loads(prefix(temperature=0.5, max_tokens=7, seed=3).body("x"))
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
    assert "response_format" not in json.loads(prefix(constrained=False).body("x"))


def test_a_contract_in_free_text_sends_no_schema():
    """An empty schema would be an error, or take any JSON and no text."""
    assert "response_format" not in json.loads(
        prefix(frame=replace(FRAME, schema={})).body("x")
    )


def test_extra_fields_add_replace_and_take_away():
    """Hosted models differ in what they accept."""
    extra = {"seed": None, "max_tokens": None, "max_completion_tokens": 9, "top_k": 1}
    body = json.loads(prefix(extra).body("x"))
    assert "seed" not in body
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["top_k"]) == (9, 1)


@pytest.mark.parametrize(
    "extra",
    [{}, {"max_tokens": None, "max_completion_tokens": 9}, {"max_tokens": None}],
)
def test_the_blank_request_asks_for_one_token_and_holds_no_case(extra):
    """It finds out whether the frame itself is refused."""
    body = json.loads(prefix(extra).blank())
    assert body["messages"][-1]["content"] == "Case: "
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    assert sorted(limits, key=str) == [1, None]


def read(body):
    """Read a body given as data."""
    return read_answer(json.dumps(body).encode(), 0.5)


def test_an_answer_has_text_and_tokens():
    """What servers agree on."""
    assert read(chat("hi")) == Completion("hi", "stop", "", 0.5, 10, 2, 8)


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (chat("hi", "length"), "hi", "length"),
        (chat("", "stop"), "", "stop"),
        (chat(None, "stop"), "", "stop"),
        (chat(None, "stop", refusal="I cannot"), "", "refusal"),
        (chat("", "content_filter"), "", "refusal"),
        (chat("{}", "stop", refusal=None), "{}", "stop"),
        (chat("{}", "stop", reasoning_content="hm"), "{}", "stop"),
        (chat("", "length", reasoning_content="hm"), "<think>hm", "length"),
        (chat(None, "stop", reasoning="hm"), "<think>hm", "stop"),
        (chat("<think>a</think>{}"), "<think>a</think>{}", "stop"),
        (chat("", "stop", reasoning={"effort": 1}), "", "stop"),
    ],
)
def test_each_kind_of_answer_becomes_its_completion(body, text, finish):
    """Thinking in a field of its own is not an answer, and not nothing either."""
    completion = read(body)
    assert (completion.text, completion.finish_reason) == (text, finish)


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        *((word, "stop") for word in ("eos_token", "stop_sequence", "end_turn")),
        *((word, "stop") for word in ("tool_calls", "function_call")),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
    ],
)
def test_every_servers_word_for_an_end_is_understood(said, finish):
    """An answer that was finished is one, whatever the server calls it."""
    assert read(chat("hi", said)).finish_reason == finish


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_beside_an_answer_is_kept_apart_from_it(name):
    """It is shown to who asks, and never read for values."""
    kept = read(chat("{}", "stop", **{name: "hm"}))
    assert (kept.text, kept.thinking) == ("{}", "hm")
    alone = read(chat("", "stop", **{name: "hm"}))
    assert (alone.text, alone.thinking) == ("<think>hm", "")


@pytest.mark.parametrize(("said", "kept"), [("fp", "fp"), ("", None), (7, None)])
def test_a_fingerprint_is_a_word_or_none(said, kept):
    """An empty one would make two servers the same."""
    body = chat("hi") | {"system_fingerprint": said}
    assert read_fingerprint(json.dumps(body).encode()) == kept


@pytest.mark.parametrize("finish", [None, "", "abort", "error", "unheard_of"])
def test_an_answer_without_a_known_end_is_half_an_answer(finish):
    """A server that was stopped says so here; half an answer is no answer."""
    with pytest.raises(UnreadableAnswerError, match="unfinished"):
        read(chat("{", finish))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b'{"choices": [',
        b'{"choices": []}',
        b'{"choices": [{"finish_reason": "stop"}]}',
        b'{"error": {"message": "overloaded"}}',
        b"[]",
        b"null",
        json.dumps(chat("hi")).encode().replace(b"hi", b"\xff\xfe"),
        json.dumps(chat("hi")).encode().replace(b'"hi"', b'["hi"]'),
        json.dumps(chat("hi")).encode().replace(b'"hi"', b'"\\ud800"'),
        b"[" * 100_000,
    ],
)
def test_what_is_no_completion_is_unreadable(body):
    """HTTP 200 alone proves nothing."""
    with pytest.raises(UnreadableAnswerError, match=r"not JSON|not a chat"):
        read_answer(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_unreadable(body):
    """No third way."""
    with pytest.raises(UnreadableAnswerError):
        read_answer(body)


@pytest.mark.parametrize("count", [-1, 2**63, 1.5, "7", None, True, [1]])
def test_a_count_that_is_none_is_left_out(count):
    """An answer is not worth less for its statistics, which the store must hold."""
    body = chat("hi")
    body["usage"] = {"prompt_tokens": count, "prompt_tokens_details": count}
    assert read(body)[4:7] == (None, None, None)
    body["usage"] = {"prompt_tokens": 0, "completion_tokens": 2**40}
    assert read(body)[4:6] == (0, 2**40)
    body["usage"] = {"prompt_tokens": 2**40 + 1}
    assert read(body)[4] is None


@pytest.mark.parametrize(
    "error",
    [
        {"message": "This model's maximum context length is 512 tokens.", "code": 400},
        {"code": "context_length_exceeded", "message": ""},
        {"type": "exceed_context_size_error", "n_ctx": 8, "code": 400},
        {"message": "the request exceeds the available context size (8)"},
        {"message": "Prompt length is longer than the model's context length"},
    ],
)
def test_every_servers_way_to_say_too_long_is_understood(error):
    """By vLLM, OpenAI, llama.cpp and SGLang."""
    assert read_error(json.dumps({"error": error}).encode()).too_long
    assert read_error(json.dumps(error).encode()).too_long


@pytest.mark.parametrize("body", [b"", b"\xff", b"[1]", b'{"error": null}', b"{}"])
def test_an_error_that_says_nothing_is_read_too(body):
    """Proxies answer anything."""
    said = read_error(body)
    assert not said.too_long
    assert said.code == ""


def test_only_a_word_of_code_counts_as_one():
    """The code goes into an outcome, and a server may repeat the case anywhere."""
    for code in ("Mr Smith has edema", "smith", 400, "x" * 200):
        assert read_error(json.dumps({"code": code}).encode()).code == ""
    assert read_error(b'{"code": "invalid_value"}').code == "invalid_value"
    assert read_error(b'{"code": 400, "type": "BadValueError"}').code == "BadValueError"
    assert read_error(b'{"detail": "context window of 9"}').too_long


def test_a_servers_words_become_one_short_line_without_the_key():
    """They are shown on a terminal."""
    line = one_line("no\x1b[2J\nkey sk-1 " + "x" * 500, secret="sk-1")
    assert line.isprintable()
    assert line.startswith("no [2J key ***")
    assert len(line) == 300
    assert line.endswith("x...")
    assert one_line("x" * 300) == "x" * 300


def test_a_streamed_request_is_the_same_with_two_more_fields():
    """Tokens are counted at its end; nothing else is asked otherwise."""
    plain = json.loads(prefix().body("x"))
    streamed = json.loads(prefix().body("x", streamed=True))
    assert streamed == {
        **plain, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip


def test_a_whole_request_is_made_of_fields_and_messages():
    """Also without a field."""
    said = [("system", 'Say "é".'), ("user", "x")]
    messages = [{"role": role, "content": content} for role, content in said]
    assert json.loads(chat_body({}, *said)) == {"messages": messages}
    fields = {"model": "m", "n": 1}
    assert json.loads(chat_body(fields, *said)) == {**fields, "messages": messages}


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        ({"error": {"message": "No.", "code": "not_there", "type": "BadError"}},
         "No.", "not_there"),
        ({"error": {"message": "No.", "code": 4, "type": "BadValueError"}},
         "No.", "BadValueError"),
        ({"message": "No.", "type": "x"}, "No.", ""),
        ({"error": "No."}, "No.", ""),
        ({"error": {"detail": "No."}}, "No.", ""),
        ({"detail": [{"msg": "No."}]}, "[{'msg': 'No.'}]", ""),
        ({"other": 1}, "", ""),
        ([1, 2], "[1, 2]", ""),
        ("No.", "No.", ""),
    ],
)  # fmt: skip
def test_what_a_server_says_of_a_refusal_is_found(body, words, code):
    """In each of the forms that servers have."""
    assert read_error(json.dumps(body).encode()) == (words, code, False)
    assert read_error(b"<html> busy").words == "<html> busy"
    assert read_error(b"x" * 2000).words == "x" * 1000


@pytest.mark.parametrize(("place", "too_long"), [(1995, True), (1996, False)])
def test_only_the_beginning_of_a_refusal_is_read(place, too_long):
    """A server may repeat the whole prompt, and a report may say anything."""
    words = "y" * (place - 1) + " n_ctx " + "y" * 500
    said = read_error(json.dumps({"message": words}).encode())
    found = said.too_long
    assert found is too_long


def test_tokens_that_were_cached_are_counted_where_they_are_told():
    """Details may be missing, or no object."""
    body = chat("hi")
    for details, cached in (
        ({"cached_tokens": 5}, 5),
        ({"cached_tokens": 0}, 0),
        ({}, None),
        ([5], None),
        (None, None),
    ):
        body["usage"] = {
            "prompt_tokens": 7, "completion_tokens": 3,
            "prompt_tokens_details": details,
        }  # fmt: skip
        assert read(body)[4:7] == (7, 3, cached)
    body["usage"] = [1]
    assert read(body)[4:7] == (None, None, None)

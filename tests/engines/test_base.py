"""Engine names: what is asked, and where, and nothing secret shown."""

import copy
from pathlib import Path

import pytest

from loop.core.errors import EngineError, UnknownEngineError
from loop.core.paths import bundled
from loop.engines import base
from loop.engines.base import (
    ModelName,
    Settings,
    check_scheme,
    check_thinking,
    find_model,
    get_engine,
    masked,
    register,
    split_name,
    with_thinking,
)
from loop.run.asking import load_engine


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Qwen/Qwen3-14B", ("Qwen/Qwen3-14B", None, None)),
        ("m@http://h:1/v1", ("m", None, "http://h:1/v1")),
        ("m@HTTPS://h/v1", ("m", None, "HTTPS://h/v1")),
        ("a@b#x@https://h/v1", ("a@b", "x", "https://h/v1")),
        ("a#b#c", ("a#b", "c", None)),
        ("m@http://h/v1#x", ("m", None, "http://h/v1#x")),
        ("m:7b@q4", ("m:7b@q4", None, None)),
    ],
)
def test_a_name_has_a_model_an_adapter_and_a_url(name, parts):
    """Models may hold every other sign."""
    assert split_name(name) == ModelName(*parts)


@pytest.mark.parametrize("name", ["", "@http://h/v1", "#x", "m#", "m#@http://h"])
def test_a_name_without_a_model_shows_the_form(name):
    """The message gives an example that works."""
    with pytest.raises(EngineError, match=r"scheme:model.*for example openai:"):
        split_name(name)


@pytest.mark.parametrize("name", ["m@127.0.0.1:8000/v1", "m@gpu.example:80", "m@h:1"])
def test_an_address_without_http_is_no_part_of_a_model(name):
    """Else the question goes to another server than the one that was named."""
    place = name.removeprefix("m@")
    with pytest.raises(EngineError, match=f"Write @http://{place}"):
        split_name(name)


@pytest.mark.parametrize("scheme", ["openai", "vllm"])
def test_a_password_in_a_url_is_refused_before_anything_prints_the_name(scheme):
    """A run begins by saying which engine it asks."""
    settings = Settings(labels=Path("labels"))
    with pytest.raises(EngineError, match="holds a user name or a password") as caught:
        load_engine(f"{scheme}:m@http://me:hunter2@127.0.0.1/v1", settings)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("vllm:m@HTTP://me:hunter2@h:1/v1", "vllm:m@HTTP://***"),
        ("openai:m@https://h/v1?key=hunter2", "openai:m@https://***"),
        ("openai:m@http://h/v1#hunter2", "openai:m@http://***"),
        ("openai:me@m#a@http://h/v1/@x", "openai:me@m#a@http://h/v1/@x"),
        ("rules", "rules"),
    ],
)
def test_only_what_may_be_secret_is_masked(name, shown):
    """Other names must stay recognisable."""
    assert masked(name) == shown


def test_two_engines_cannot_have_one_name():
    """Whose answers are stored under it would depend on what was imported last."""
    load_engine("rules", Settings(labels=bundled() / "labels"))
    with pytest.raises(ValueError, match="'rules' is already registered"):
        register("rules")(lambda rest, settings: None)


@pytest.mark.parametrize(
    ("extra", "level", "fields"),
    [
        ({}, "default", {}),
        ({"a": 1}, "low", {"a": 1, "reasoning_effort": "low"}),
        ({"a": 1}, "512", {"a": 1, "thinking_token_budget": 512}),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "b": 2}},
            "none",
            {"chat_template_kwargs": {"b": 2}, "reasoning_effort": "none"},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False}, "a": 1},
            "2048",
            {"a": 1, "thinking_token_budget": 2048},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False}},
            "default",
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            {"chat_template_kwargs": "text"},
            "low",
            {"chat_template_kwargs": "text", "reasoning_effort": "low"},
        ),
    ],
)
def test_a_level_of_thinking_goes_before_the_switch_of_the_settings(
    extra, level, fields
):
    """What else is always sent stays, and the settings themselves are not changed."""
    before = copy.deepcopy(extra)
    assert with_thinking(extra, level) == fields
    assert extra == before


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (" Default ", "default"),
        ("medium", "medium"),
        ("1", "1"),
        ("10000000", "10000000"),
        ("00000000000000000007", "7"),
        ("000000000000000000007", None),
        ("10000001", None),
        ("0", None),
        ("1.0", None),
    ],
)
def test_a_budget_of_thinking_has_a_largest_number(words, level):
    """Zero is none, and more digits than a number needs are not read."""
    if level is None:
        with pytest.raises(ValueError, match="tokens up to 10,000,000, and not"):
            check_thinking(words)
        return
    assert check_thinking(words) == level


def test_an_engine_that_is_not_there_is_refused_with_those_that_are(monkeypatch):
    """Also with what ships and was not loaded; the nearest one is named."""
    made = []
    factories = {"rules": lambda rest, _: made.append(rest), "openai": None}
    monkeypatch.setattr(base, "_FACTORIES", factories)
    settings = Settings(labels=Path("labels"))
    get_engine("rules:a:b", settings)
    get_engine("rules", settings)
    assert made == ["a:b", ""]
    form = (
        "Name an engine as scheme:model, for example "
        "openai:MODEL@http://127.0.0.1:8000/v1, or plain `rules`."
    )
    for name, shipped, said in (
        ("rulse:x", (), "'rulse' (known: openai, rules). Did you mean 'rules'? "),
        ("zzz", (), "'zzz' (known: openai, rules). "),
        ("vlm", ("vllm",), "'vlm' (known: openai, rules, vllm). Did you mean 'vllm'? "),
    ):
        with pytest.raises(UnknownEngineError) as refused:
            check_scheme(name, shipped)
        assert str(refused.value) == f"no engine {said}{form}"
    check_scheme("vllm:m", ("vllm",))
    monkeypatch.setattr(base, "_FACTORIES", {})
    with pytest.raises(UnknownEngineError, match=r"\(known: none\)"):
        get_engine("rules", settings)


def test_only_a_model_server_has_a_model():
    """Of other engines the part after the colon is no model."""
    assert find_model("openai:m#a@http://h/v1") == ("m", "a", "http://h/v1")
    assert find_model("vllm:m") == ("m", None, None)
    for name in ("rules", "replay:latest", "openaim:m"):
        assert find_model(name) is None
    with pytest.raises(EngineError, match="has no model"):
        find_model("vllm")

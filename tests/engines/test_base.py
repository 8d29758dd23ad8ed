"""Engine names: what is asked, and where, and nothing secret shown."""

from pathlib import Path

import pytest

from loop.core.errors import EngineError
from loop.core.paths import bundled
from loop.engines.base import ModelName, Settings, masked, register, split_name
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

"""Engine names and endpoints: what is asked, where, and as whom."""

from pathlib import Path

import pytest

from loop.core.config import ServingSettings
from loop.core.errors import EngineError
from loop.engines.base import Settings
from loop.engines.names import ModelName, masked, split_name
from loop.engines.openai.endpoint import Endpoint, checked_url, read_key
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


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1/v1",
        "http://hunter2@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=hunter2",
        "http://127.0.0.1/v1#hunter2",
        "ftp://hunter2/v1",
        "hunter2",
        "http:///hunter2",
        "http://127.0.0.1:hunter2/v1",
        "http://127.0.0.1:0/hunter2",
        "http://[hunter2/v1",
        "http://127.0.0.1/v1\nhunter2",
        "http://127.0.0.1/v 1/hunter2",
    ],
)
def test_a_url_that_is_no_plain_base_is_refused_unquoted(url):
    """What people put into URLs is often a secret."""
    with pytest.raises(EngineError, match="Give it as http://127") as caught:
        checked_url(url)
    assert "hunter2" not in str(caught.value)


def test_slashes_at_the_end_do_not_matter():
    """One server has one spelling, so one cache."""
    assert checked_url("http://127.0.0.1:8000/v1//") == "http://127.0.0.1:8000/v1"


def test_the_key_comes_from_the_named_variable(monkeypatch):
    """And from nowhere else."""
    serving = ServingSettings(key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk-1")
    assert read_key(serving) == "sk-1"
    monkeypatch.setenv("MY_KEY", "")
    assert read_key(serving) is None


@pytest.mark.parametrize("key", ["sk-1\n", "sk 1", "sk-é", "sk\t1"])
def test_a_key_that_no_header_can_hold_is_refused_unquoted(monkeypatch, key):
    """A line end from a file would become a second header."""
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(EngineError, match="MY_KEY") as caught:
        read_key(ServingSettings(key_env="MY_KEY"))
    assert key.strip() not in str(caught.value)


def test_the_key_is_not_in_the_endpoints_repr():
    """Records end up in messages."""
    endpoint = Endpoint(
        url="http://127.0.0.1/v1", model="m", serving=ServingSettings(), key="sk-1"
    )
    assert "sk-1" not in repr(endpoint)


@pytest.mark.parametrize("field", ["messages", "stream", "n"])
def test_extra_fields_may_not_replace_what_the_engine_depends_on(field):
    """A streamed answer could not be read."""
    with pytest.raises(EngineError, match=field):
        Endpoint(
            url="http://127.0.0.1/v1",
            model="m",
            serving=ServingSettings(),
            extra_body={field: True},
        )


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

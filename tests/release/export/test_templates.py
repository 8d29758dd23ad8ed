"""Exported templates render to exactly the messages that were measured."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loop.core.records import Item
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import environment, plan_prompts
from loop.release.export.templates import call_files, escape, template
from tests.release.export.scenes import PER_LABEL, TEXTS, VERSION

ENVIRONMENTS = (
    Environment(),
    Environment(keep_trailing_newline=True),
    Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined),
    ImmutableSandboxedEnvironment(),
    environment(),
)


def rendered(files, prefix, environment, text):
    """Return the messages that the exported templates give for one case."""
    return [
        environment.from_string(files[f"{prefix}{name}.jinja"].decode()).render(
            text=text
        )
        for name in ("system", "user")
    ]


def planned(version):
    """Return the calls of a version."""
    return plan_prompts(version, get_contract(version.contract).schema).calls


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("version", [VERSION, PER_LABEL])
@pytest.mark.parametrize("text", TEXTS.values())
def test_any_environment_gives_the_same_messages(environment, version, text):
    """White space settings are the loader's; the prompt must not depend on them."""
    for call in planned(version):
        files = call_files(call, "x.")
        prompt = call.prompt(Item(id="a", variables={"text": text}))
        expected = [message.content for message in prompt.messages]
        assert rendered(files, "x.", environment, text) == expected


def test_the_shipped_prompt_renders_alike(workspace):
    """The real thing, all labels."""
    (call,) = planned(read_version(workspace, "extractor@v1"))
    prompt = call.prompt(Item(id="a", variables={"text": "Clear.\n"}))
    expected = [message.content for message in prompt.messages]
    assert rendered(call_files(call, ""), "", Environment(), "Clear.\n") == expected


@given(
    st.lists(
        st.text(alphabet="{}%#-+ \n\r\t'\"\\a|x", max_size=12), min_size=1, max_size=3
    ),
    st.sampled_from(ENVIRONMENTS),
)
def test_static_text_survives_whatever_it_holds(parts, environment):
    """Also where it touches the expression that inserts the case."""
    pairs = [("{{ text }}" if number else None, p) for number, p in enumerate(parts)]
    made = environment.from_string(template(pairs)).render(text="{%\r\n")
    assert made == "{%\r\n".join(parts)


def test_the_templates_need_the_text_and_nothing_else():
    """Guides and fields are rendered already."""
    (call,) = planned(VERSION)
    files = call_files(call, "")
    strict = Environment(undefined=StrictUndefined)
    assert strict.from_string(files["system.jinja"].decode()).render()
    with pytest.raises(UndefinedError, match="'text'"):
        strict.from_string(files["user.jinja"].decode()).render()


def test_the_schema_keeps_the_order_of_the_labels():
    """A constrained model answers in that order."""
    (call,) = planned(VERSION)
    schema = json.loads(call_files(call, "")["schema.json"])
    assert schema == call.frame.schema
    assert list(schema["properties"]) == ["edema", "fracture"]


def test_plain_text_stays_readable():
    """Only what Jinja would read is written otherwise."""
    assert escape('Answer {"edema": 1} %} }}\n') == 'Answer {"edema": 1} %} }}\n'

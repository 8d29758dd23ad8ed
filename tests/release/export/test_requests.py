"""Requests of a batch and templates: what services take, and what was measured."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loop.core.errors import DataError
from loop.core.records import Item
from loop.engines.vllm.batch import read_results
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import environment, plan_prompts
from loop.release.export.records import ExportTarget
from loop.release.export.requests import (
    RequestForm,
    accepted_schema,
    call_files,
    escape,
    response_format,
    template,
)
from tests.release.export.scenes import ASKING, PER_LABEL, TEXTS, VERSION, items

BATCHES = (ExportTarget.OPENAI_BATCH, ExportTarget.VLLM_BATCH)


def form(target, version=VERSION, asking=ASKING):
    """Return what writes the requests of a version."""
    plan = plan_prompts(version, get_contract(version.contract).schema)
    return RequestForm(version, plan, asking, target)


@pytest.mark.parametrize("target", BATCHES)
@pytest.mark.parametrize("item", items(), ids=lambda item: item.id)
def test_a_request_holds_exactly_the_messages_of_the_prompt(target, item):
    """One line each, whatever the text holds."""
    made = form(target)
    line = made.line(0, item)
    assert line.count(b"\n") == 1
    data = json.loads(line)
    assert (data["custom_id"], data["method"]) == (item.id, "POST")
    assert data["url"] == "/v1/chat/completions"
    expected = [message._asdict() for message in made.calls[0].prompt(item).messages]
    assert data["body"]["messages"] == expected


def entry(**evidence):
    """Return the schema of one label, with the bounds of its evidence."""
    return {
        "anyOf": [
            {"type": "string", "enum": ["absent"]},
            {
                "type": "object",
                "properties": {
                    "value": {
                        "type": "string",
                        "enum": ["present", "absent", "uncertain"],
                    },
                    "evidence": {"type": "string", **evidence},
                },
                "required": ["value", "evidence"],
                "additionalProperties": False,
            },
        ]
    }


@pytest.mark.parametrize(
    ("target", "limit", "evidence", "named"),
    [
        (
            ExportTarget.VLLM_BATCH,
            "max_tokens",
            {"maxLength": 120},
            {
                "metadata": {
                    "ranloop_prompt": "tiny@v1",
                    "ranloop_digest": VERSION.digest,
                }
            },
        ),
        (
            ExportTarget.OPENAI_BATCH,
            "max_completion_tokens",
            {},
            {"prompt_cache_key": VERSION.digest},
        ),
    ],
)
def test_a_request_asks_what_was_measured_and_names_the_prompt(
    target, limit, evidence, named
):
    """To vLLM what our engine sends, the name besides; it leaves alone what is new.

    OpenAI refuses metadata without `store`, and a key of more than 64 characters.
    """
    body = json.loads(form(target).line(0, items()[0]))["body"]
    del body["messages"]
    assert body == {
        "model": "Some/Model",
        limit: 300,
        "temperature": 0.0,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "schema": {
                    "type": "object",
                    "properties": {
                        "edema": entry(**evidence),
                        "fracture": entry(**evidence),
                    },
                    "required": ["edema", "fracture"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        },
        **named,
    }
    assert len(VERSION.digest) == 64


PAIR = replace(
    VERSION,
    inputs=("reference", "candidate"),
    user="A:\n{{ reference }}\nB:\n{{ candidate }}\nWhat differs?\n",
)


@pytest.mark.parametrize("target", BATCHES)
def test_a_request_about_two_texts_is_read_back_and_templated(target):
    """Each ends where the prompt's own words begin, and none is taken for the other."""
    made = form(target, PAIR)
    texts = {"reference": "No edema.\nB", "candidate": "Edema.\nA:\n"}
    item = Item(id="p1", variables=texts)
    line = made.line(0, item)
    assert made.read(line, 0) == item
    source = Environment().from_string(made.template(0))
    assert json.loads(source.render(custom_id="p1", **texts)) == json.loads(line)
    mixed = Item(id="p2", variables={"reference": "x\nB:\ny", "candidate": "z"})
    with pytest.raises(DataError) as refused:
        made.line(0, mixed)
    assert str(refused.value) == (
        "case 'p2': a text holds what the prompt puts between its inputs, so that a "
        "request could not be read back. Leave it out."
    )
    twice = Item(id="p3", variables={"reference": "x", "candidate": "y\nB:\nz"})
    assert made.read(made.line(0, twice), 0) == twice


def test_a_contract_in_free_text_asks_for_no_schema():
    """As the engine does."""
    assert response_format(get_contract("green_text").schema(["omission"])) is None
    assert response_format(get_contract("green_sections").schema(["omission"]))


def test_openais_schema_has_only_what_strict_mode_takes():
    """Nothing else is taken away, nor a label that is called like a keyword."""
    schema = get_contract("label_values").schema(["edema", "maxLength"])
    made = accepted_schema(schema)
    assert list(made["properties"]) == ["edema", "maxLength"]
    assert '"maxLength": 120' not in json.dumps(made)
    entry = made["properties"]["edema"]["anyOf"][1]
    assert entry["required"] == ["value", "evidence"]
    assert entry["additionalProperties"] is False


@pytest.mark.parametrize("target", BATCHES)
@pytest.mark.parametrize("version", [VERSION, PER_LABEL])
def test_a_template_renders_to_the_request(target, version):
    """So that a system can make requests of its own cases."""
    made = form(target, version)
    for number, call in enumerate(made.calls):
        source = Environment().from_string(made.template(number))
        for item in items():
            name = made.custom_id(item.id, call)
            line = source.render(custom_id=name, text=item.variables["text"])
            assert json.loads(line) == json.loads(made.line(number, item))


@pytest.mark.parametrize("target", BATCHES)
@pytest.mark.parametrize("version", [VERSION, PER_LABEL])
def test_a_request_is_read_back_to_its_case(target, version):
    """And nothing else is."""
    made = form(target, version)
    for number in range(len(made.calls)):
        for item in items():
            line = made.line(number, item)
            assert made.read(line, number) == item
            assert made.read(line.replace(b"absent", b"ABSENT", 1), number) is None
    for bad in (b"", b"\n", b"[]\n", b'{"custom_id":1}\n', b"\xff\n", b"[" * 99_999):
        assert made.read(bad, 0) is None


def test_requests_of_one_call_a_label_have_names_of_their_own():
    """Services refuse a file in which a name appears twice."""
    made = form(ExportTarget.OPENAI_BATCH, PER_LABEL)
    names = [
        made.custom_id(item.id, call)
        for item in items({**TEXTS, "c": "x"})
        for call in made.calls
    ]
    assert len(set(names)) == len(names) == 8
    assert names[:2] == ["a::edema", "a::fracture"]


def test_settings_of_the_release_take_fields_away_and_add_some():
    """As the engine that was measured did."""
    extra = {
        "temperature": None,
        "seed": 8,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    made = form(ExportTarget.VLLM_BATCH, asking=replace(ASKING, extra=extra))
    body = json.loads(made.line(0, items()[0]))["body"]
    assert "temperature" not in body
    assert (body["seed"], body["max_tokens"]) == (8, 300)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_half_of_a_character_pair_is_refused_by_case_id():
    """It is no text; the message does not show it."""
    item = Item(id="c9", variables={"text": "zebra \ud800"})
    with pytest.raises(DataError, match=r"case 'c9'.*UTF-8") as caught:
        form(ExportTarget.VLLM_BATCH).line(0, item)
    assert "zebra" not in str(caught.value)


def test_inputs_side_by_side_are_refused_with_the_way_out():
    """A request is read back from its words: inputs without any between are not."""
    pair = replace(VERSION, inputs=("text", "other"), user="{{ text }}{{ other }}")
    with pytest.raises(DataError, match=r"\(text, other\) side by side.*jinja"):
        form(ExportTarget.VLLM_BATCH, pair)


def test_marks_in_the_prompt_are_refused():
    """The template would be cut at the wrong place."""
    odd = replace(VERSION, system="\ue000text\ue001")
    with pytest.raises(DataError, match="U\\+E000"):
        form(ExportTarget.VLLM_BATCH, odd).template(0)


OPENAI_ANSWER = {
    "id": "batch_req_123",
    "custom_id": "a",
    "response": {
        "status_code": 200,
        "request_id": "0af1",
        "body": {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1724858089,
            "model": "some-model",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": '{"edema":{"value":"absent","evidence":"No edema"},'
                        '"fracture":"absent"}',
                        "refusal": None,
                    },
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 24, "completion_tokens": 8, "total_tokens": 32},
            "system_fingerprint": "fp_f33667828e",
        },
    },
    "error": None,
}
VLLM_ANSWER = {
    **OPENAI_ANSWER,
    "id": "vllm-abc",
    "response": {**OPENAI_ANSWER["response"], "request_id": "vllm-batch-abc"},
}


@pytest.mark.parametrize("answer", [OPENAI_ANSWER, VLLM_ANSWER])
def test_answers_of_a_batch_are_read_by_the_contract(answer, tmp_path):
    """As both services write them; the name is the case id, in any order."""
    path = tmp_path / "answers.jsonl"
    refused = {**answer, "custom_id": "b 2", "response": {"status_code": 400}}
    path.write_text("".join(json.dumps(line) + "\n" for line in (refused, answer)))
    bad, good = read_results(path, checks=False)
    assert (bad.name, bad.completion.finish_reason) == ("b 2", "error")
    item = next(item for item in items() if item.id == good.name)
    reading = get_contract("label_values").read(
        good.completion.text, VERSION.labels, item
    )
    assert reading.fields["edema"].value == "absent"
    (span,) = reading.fields["edema"].spans
    assert TEXTS["a"][span.start : span.end] == "No edema"


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

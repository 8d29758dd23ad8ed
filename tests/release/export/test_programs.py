"""Saved DSPy programs: plain DSPy loads them, and they send what was measured."""

import json
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.records import Message, PromptFrame
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import Call, plan_prompts
from loop.release.export import load_export
from loop.release.export.programs import save_program, with_versions_of
from tests.release.export.scenes import (
    ASKING,
    PER_LABEL,
    TEXTS,
    VERSION,
    exported,
    items,
)
from tests.release.export.test_edited_export import edit, reseal

pytestmark = pytest.mark.slow

# What a production system would write, with an engine that keeps what it is sent.
LOADING = """
import json, sys
sys.modules["loop"] = None
import dspy
from dspy.lm15 import Message, Response, TextPart, Usage, response_to_events

class Engine:
    supports_response_schema = True
    supported_params = ("response_format", "temperature", "max_tokens", "seed")
    sent = []
    def complete(self, request):
        self.sent.append({
            "messages": [["system", request.system],
                         ["user", request.messages[0].text]],
            "count": len(request.messages),
            "format": request.config.response_format,
            "temperature": request.config.temperature,
            "max_tokens": request.config.max_tokens,
            "seed": request.config.seed,
        })
        return Response(id="r", model=request.model, finish_reason="stop",
                        message=Message.assistant([TextPart('{"edema": "absent"}')]),
                        usage=Usage(input_tokens=1, output_tokens=1))
    def stream(self, request):
        return response_to_events(self.complete(request))
    def close(self):
        pass

engine = Engine()
dspy.configure(lm=dspy.LM("local/x", engine=engine, cache=False))
"""
ASKING_ALL = """
from program import load
texts, calls = json.loads(sys.stdin.read())
answers = [load(call=call)(text=text).answer for call in calls for text in texts]
print(json.dumps({"sent": engine.sent, "answers": answers}))
"""


def run_there(folder, code, data=None):
    """Run `code` in the folder of an export, where ranloop cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING + textwrap.dedent(code)],
        cwd=folder,
        input=json.dumps(data),
        capture_output=True,
        text=True,
        check=False,
        env={
            "HOME": str(folder.parent),
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("version", [VERSION, PER_LABEL], ids=["joint", "per_label"])
def test_the_program_sends_exactly_the_messages_of_the_prompt(
    workspace, tmp_path, version
):
    """With the schema, the seed and the limit, and without ranloop."""
    folder = exported(workspace, tmp_path / "x", "dspy", version=version)
    plan = plan_prompts(version, get_contract(version.contract).schema)
    joint = version is VERSION
    calls = ["" if joint else call.frame.call for call in plan.calls]
    found = run_there(folder, ASKING_ALL, [list(TEXTS.values()), calls])
    expected = [
        [list(message) for message in call.prompt(item).messages]
        for call in plan.calls
        for item in items()
    ]
    assert [sent["messages"] for sent in found["sent"]] == expected
    first = found["sent"][0]
    assert first["format"]["schema"] == plan.calls[0].frame.schema
    asked = [first[name] for name in ("count", "temperature", "max_tokens", "seed")]
    assert asked == [1, 0.0, 300, 7]
    assert set(found["answers"]) == {'{"edema": "absent"}'}


def test_plain_dspy_loads_the_state_and_the_digest_is_in_it(workspace, tmp_path):
    """Its own adapters send other words, which the export says."""
    folder = exported(workspace, tmp_path / "x", "dspy")
    code = """
    program = dspy.Predict("text -> answer")
    program.load("program.json")
    from dspy.utils.exceptions import AdapterParseError
    try:
        program(text="Clear.")
    except AdapterParseError:
        pass
    print(json.dumps([program.signature.instructions, engine.sent]))
    """
    instructions, (sent, *_) = run_there(folder, code)
    assert instructions == "Read {{ braces }}, {% tags %} and <b>&amp;."
    assert sent["messages"][1][1] != "Clear."
    state = json.loads((folder / "program.json").read_text("utf-8"))
    assert state["metadata"]["ranloop"]["digest"] == VERSION.digest
    remarks = load_export(folder).manifest.remarks
    assert any("sends other messages" in remark for remark in remarks)


def test_a_program_that_an_optimizer_changed_is_not_the_prompt(workspace, tmp_path):
    """It says so instead of sending half of each."""
    folder = exported(workspace, tmp_path / "x", "dspy")
    code = """
    from program import load
    said = []
    for change in ("instructions", "demos"):
        program = load()
        if change == "demos":
            program.predict.demos = [{"text": "a", "answer": "b"}]
        else:
            changed = program.predict.signature.with_instructions("Other.")
            program.predict.signature = changed
        try:
            program(text="Clear.")
        except ValueError as error:
            said.append(str(error))
    print(json.dumps(said))
    """
    said = run_there(folder, code)
    assert len(said) == 2
    assert all("not the exported prompt any more" in one for one in said)


def test_a_changed_program_is_not_loaded(workspace, tmp_path):
    """Neither by its own code nor by ranloop."""
    folder = exported(workspace, tmp_path / "x", "dspy")
    assert load_export(folder).prompt_digest == VERSION.digest
    edit(folder / "program.json", "肋骨骨折", "骨折")
    code = """
    from program import load
    try:
        load()
    except ValueError as error:
        print(json.dumps(str(error)))
    """
    assert "was changed after it was exported" in run_there(folder, code)
    with pytest.raises(DataError, match=r"program\.json is not what"):
        load_export(folder)
    reseal(folder)
    with pytest.raises(DataError, match=r"program\.json is not what"):
        load_export(folder)


def test_changed_code_is_refused(workspace, tmp_path):
    """It would be run."""
    folder = exported(workspace, tmp_path / "x", "dspy")
    edit(folder / "program.py", "import hashlib", "import os, hashlib")
    reseal(folder)
    with pytest.raises(DataError, match=r"program\.py is not what"):
        load_export(folder)


def test_other_package_versions_are_no_other_prompt():
    """A program saved under another Python is the same; nothing else may differ."""
    state = {"metadata": {"dependency_versions": {"python": "3.11"}, "ranloop": {}}}
    made = json.dumps(state).encode()
    other = {"metadata": {"dependency_versions": {"python": "3.13"}, "ranloop": 1}}
    again = json.loads(with_versions_of(made, json.dumps(other).encode()))
    assert again["metadata"] == {
        "dependency_versions": {"python": "3.13"},
        "ranloop": {},
    }
    for odd in (b"", b"[]", b"{}", json.dumps({"metadata": {}}).encode()):
        assert with_versions_of(made, odd) == made


@pytest.mark.parametrize(
    ("versions", "taken"),
    [
        ({"python": "3" * 39}, True),
        ({"python": "3" * 40}, False),
        ({"python": 3}, False),
        ({"python": "3.13", "more": "1"}, False),
        ({}, False),
        (["python"], False),
    ],
)
def test_only_versions_are_taken_over(versions, taken):
    """A word of a prompt has no place among them."""
    state = {"metadata": {"dependency_versions": {"python": "3.11"}}}
    made = json.dumps(state).encode()
    stored = json.dumps({"metadata": {"dependency_versions": versions}}).encode()
    again = json.loads(with_versions_of(made, stored))
    assert (again != state) == taken
    assert again["metadata"]["dependency_versions"] == (
        versions if taken else {"python": "3.11"}
    )


SCHEMA = {"type": "object"}
CALL = Call(
    frame=PromptFrame(
        messages=(Message("system", "  Read it.\n\n"), Message("user", "Case:\n")),
        schema=SCHEMA,
        fields=("edema",),
        call="edema",
    ),
    pieces=(("reference", "\nand\n"), ("candidate", "\n")),
)
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
}


@pytest.mark.parametrize(
    ("extra", "asked"),
    [
        (
            {},
            {
                "temperature": 0.0,
                "max_tokens": 300,
                "seed": 7,
                "response_format": FORMAT,
            },
        ),
        (
            {"seed": 8, "temperature": None, "top_k": 5},
            {
                "max_tokens": 300,
                "seed": 8,
                "response_format": FORMAT,
                "extra_body": {"top_k": 5},
            },
        ),
    ],
)
def test_a_saved_program_holds_what_dspy_does_not_keep(extra, asked):
    """The messages as they are, and how they are asked: fields added, taken away."""
    asking = replace(ASKING, extra=extra)
    data = json.loads(save_program(VERSION, "label_values/1", CALL, asking))
    assert data["signature"]["instructions"] == "Read it."
    assert data["metadata"]["ranloop"] == {
        "prompt": "tiny@v1",
        "digest": VERSION.digest,
        "contract": "label_values/1",
        "call": "edema",
        "labels": ["edema"],
        "instructions": "Read it.",
        "system": "  Read it.\n\n",
        "before": "Case:\n",
        "inputs": [["reference", "\nand\n"], ["candidate", "\n"]],
        "asking": asked,
    }

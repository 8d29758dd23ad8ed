"""The verb ``serve`` on the command line, with what passes for vLLM."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import serve as verb
from loop.core.config import read_config
from loop.core.errors import EngineError
from loop.engines.base import Settings, get_engine
from loop.engines.vllm.engine import VllmEngine
from loop.engines.vllm.running import find_running
from tests.engines.stand_in_vllm import make_environment

PROGRAM = """
import typer
from loop.cli import serve
from loop.cli.console import reported_errors
app = typer.Typer(pretty_exceptions_enable=False)
app.callback()(lambda: None)
serve.register(app)
with reported_errors():
    app()
"""


@pytest.fixture
def app():
    """Return an app with this verb and a second one, as the real one has."""
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    return app


@pytest.fixture
def python(workspace, tmp_path):
    """Configure an interpreter that passes for one with vLLM."""
    made = make_environment(tmp_path / "env")
    workspace.config.write_text(f"engines: {{vllm: {{python: {made}}}}}\n")
    return made


@contextmanager
def serving(workspace, *arguments):
    """Run the verb as a process and yield it once it is ready, with what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", "-w", workspace.root, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = []
        while not lines or lines[-1].rstrip() not in ("Stop it with Ctrl-C.", "}", ""):
            lines.append(process.stdout.readline())
        yield process, "".join(lines)
    finally:
        process.kill()
        process.communicate()


def serve_files(workspace):
    """Return the names in the folder of logs and records, without their ends."""
    return sorted(path.suffix for path in (workspace.private / "serve").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_is_kept_until_it_is_asked_to_end(workspace, python, number):
    """Found by engines meanwhile; Ctrl-C and TERM are no errors; nothing is left."""
    with serving(workspace, "m") as (process, printed):
        assert "engine  vllm:m\n" in printed
        running = find_running(workspace.private / "serve", "m", None)
        assert running.pid == process.pid
        assert running.url in printed
        process.send_signal(number)
        assert process.wait(20) == 0
    assert serve_files(workspace) == []


@pytest.mark.slow
def test_an_engine_of_the_same_workspace_uses_the_server(workspace, python):
    """It starts none of its own."""
    remarks = []
    settings = Settings(
        labels=workspace.labels,
        private=workspace.private,
        config=read_config(workspace),
        tell=remarks.append,
    )
    with serving(workspace, "m"), get_engine("vllm:m", settings) as engine:
        assert isinstance(engine, VllmEngine)
    assert "asking the vLLM server at" in remarks[0]
    assert len(remarks) == 1


@pytest.mark.slow
def test_options_reach_the_server_and_its_record(workspace, python, tmp_path):
    """They replace the config's settings, and count as what can change an answer."""
    (tmp_path / "adapter").mkdir()
    told = '{"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}'
    (tmp_path / "adapter" / "adapter_config.json").write_text(told)
    options = [
        *("m", "--json", "--dtype", "float32", "--max-model-len", "99"),
        *("--no-prefix-caching", "--no-enable-thinking", "--batch-invariant"),
        *("--lora", f"chest={tmp_path / 'adapter'}", "--", "--max-num-seqs", "3"),
    ]
    with serving(workspace, *options) as (_, printed):
        assert json.loads(printed)["engines"] == ["vllm:m", "vllm:m#chest"]
        running = find_running(workspace.private / "serve", "m", "chest")
    settings = running.served["settings"]
    assert settings["dtype"] == "float32"
    assert settings["max_model_len"] == 99
    assert settings["enable_prefix_caching"] is False
    assert settings["enable_thinking"] is False
    assert settings["batch_invariant"] is True
    assert settings["extra_args"] == ["--max-num-seqs", "3"]


@pytest.mark.slow
def test_a_server_that_dies_twice_ends_the_command(workspace, python, tmp_path):
    """After one restart; the log is kept and named."""
    with serving(workspace, "m") as (process, _):
        guards = set()
        end = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < end:
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            for guard in listed.read_text().split():
                file = Path(f"/proc/{guard}/task/{guard}/children")
                inner = file.read_text().split() if file.exists() else []
                if guard not in guards and inner:
                    guards.add(guard)
                    time.sleep(0.3)
                    os.kill(int(inner[0]), signal.SIGKILL)
            time.sleep(0.05)
        assert process.returncode == 1
        errors = process.stderr.read()
    assert len(guards) == 2
    assert "was started again" in errors or "ended before it was ready" in errors
    assert serve_files(workspace) == [".log"]


def test_a_missing_vllm_is_an_error_of_ours(app, workspace, monkeypatch):
    """With the commands that make an environment."""
    workspace.config.write_text("engines: {vllm: {python: /nowhere/python}}\n")
    result = CliRunner().invoke(app, ["serve", "m", "-w", str(workspace.root)])
    assert isinstance(result.exception, EngineError)
    assert "python3 -m venv" in str(result.exception)


@pytest.mark.parametrize(
    "wrong", [["--lora", "chest"], ["--tensor-parallel-size", "0"], ["--port", "0"]]
)
def test_a_wrong_option_is_a_usage_error(app, workspace, wrong):
    """Exit code 2 is for the command line itself."""
    result = CliRunner().invoke(app, ["serve", "m", "-w", str(workspace.root), *wrong])
    assert result.exit_code == 2
    assert wrong[0] in result.output


def test_the_server_may_not_be_moved_off_loopback(app, workspace, python):
    """Further arguments do not undo the guard."""
    arguments = ["serve", "m", "-w", str(workspace.root), "--", "--host", "0.0.0.0"]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, EngineError)
    assert "--host may not be" in str(result.exception)

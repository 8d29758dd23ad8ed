"""A workbench in a process of its own, and browser tabs on it without a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

PASSWORD = "correct horse battery"
_IDLE_S = 2.0
"""A connection unused for so long is opened anew, before the server closes it."""


class Server(NamedTuple):
    """A server that listens."""

    url: str
    pid: int
    start_s: float
    """From the start of its process until it listens."""

    @property
    def cpu_s(self) -> float:
        """Time it has spent computing so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_mib(self) -> float:
        """Most memory it had resident at any time so far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        if found is None:
            raise RuntimeError("this system does not say how much memory is resident")
        return int(found[1]) / 1024


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """Run ``python -m`` with `command`, which prints its URL as JSON, and yield it."""
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True
    )
    if process.stdout is None:
        raise RuntimeError("no pipe to the server")
    try:
        said = ""
        while not said.rstrip().endswith("}"):
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{command[0]} ended before it listened")
            said += line
        spent = perf_counter() - start
        yield Server(json.loads(said)["url"].rstrip("/"), process.pid, spent)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


class Session:
    """One connection to a server, with the cookie it was given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookie = ""
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._used = perf_counter()

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the body of the answer.

        Raises
        ------
        RuntimeError
            The server refused, or it went wrong.
        """
        if perf_counter() - self._used > _IDLE_S:
            self._connection.close()
        headers = {"Cookie": self.cookie, "Origin": self.url}
        if path != "/sign-in":
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        self._used = perf_counter()
        if answer.status >= 400:
            told = content[:300].decode("utf-8", "replace")
            raise RuntimeError(f"{method} {path}: {answer.status} {told}")
        given = answer.headers.get("set-cookie", "").partition(";")[0]
        self.cookie = given or self.cookie
        return content

    def sign_in(self, name: str) -> None:
        """Hand in the form of the sign-in."""
        form = {"name": name, "password": PASSWORD}
        self.ask("POST", "/sign-in", urlencode(form).encode())
        if not self.cookie:
            raise RuntimeError(f"{name} was not signed in")


def config_in(page: str) -> dict[str, Any]:
    """Return what Gradio tells its front end of components and functions."""
    _, _, found = page.partition("window.gradio_config = ")
    config, _ = json.JSONDecoder().raw_decode(found)
    return config


class Tab:
    """One browser tab: keeps what its components hold, as the page does."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        # As a browser's tab names itself.
        self._name = re.sub(r"\W", "", name)
        config = config_in(session.ask("GET", "/").decode())
        self._values: dict[int, Any] = {}
        self._ids: dict[str, int] = {}
        for one in config["components"]:
            self._values[one["id"]] = one["props"].get("value")
            if one["props"].get("elem_id"):
                self._ids[one["props"]["elem_id"]] = one["id"]
        self._states = {c["id"] for c in config["components"] if c["type"] == "state"}
        self._events = {one["api_name"]: one for one in config["dependencies"]}

    def __getitem__(self, elem_id: str) -> Any:
        """Return what a component holds."""
        return self._values[self._ids[elem_id]]

    def __setitem__(self, elem_id: str, value: Any) -> None:
        """Fill in a component."""
        self._values[self._ids[elem_id]] = value

    def do(self, event: str, data: Mapping[str, Any] | None = None) -> float:
        """Send an event, take over what it answers, and return its time, seconds."""
        wired = self._events[event]
        held = ((i, self._values[i]) for i in wired["inputs"])
        given = [None if i in self._states else value for i, value in held]
        call = {"data": given, "event_data": data, "session_hash": self._name}
        body = json.dumps(call).encode()
        start = perf_counter()
        answer = self._session.ask("POST", f"/gradio_api/run/{event}", body)
        spent = perf_counter() - start
        for i, new in zip(wired["outputs"], json.loads(answer)["data"], strict=True):
            if not (isinstance(new, dict) and new.get("__type__") == "update"):
                self._values[i] = new
            elif "value" in new:
                self._values[i] = new["value"]
        return spent

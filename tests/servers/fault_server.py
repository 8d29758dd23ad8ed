"""A chat server that fails by plan, and keeps an exact account of what it did.

A case is known by the number in its text (``Film 000123``). For each case a plan gives
the faults of its first requests, in order; after those it is answered. What is answered
depends on the number, so that a mixed-up answer shows.
"""

import asyncio
import json
import random
import re
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from typing import NamedTuple

from tests.servers.answers import http, json_http, models, plain_answer
from tests.servers.faults import FAULTS, Wire, answer

LABELS = ("edema", "fracture")
_VALUES = ("present", "absent", "uncertain")
_FILM = re.compile(r"Film (\d{6})")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def text_of(number):
    """Return the text of case `number`; its odd words must never be seen elsewhere."""
    return f"Film {number:06} shows a quokka beside Mrs Zyzzogeton."


def values_of(number):
    """Return the value of each label that the server answers for case `number`."""
    return {
        label: _VALUES[(number // 3**place) % 3] for place, label in enumerate(LABELS)
    }


class Served(NamedTuple):
    """One request as the server saw it."""

    number: int
    """Number of the case."""

    attempt: int
    """How often it had been asked before, from 0."""

    did: str
    """Name of the fault, or ``"answer"``."""

    sent: int
    """Bytes sent, as far as the client took them."""


class FaultServer:
    """The server in a thread of its own; a context manager.

    Parameters
    ----------
    plan
        Case number to the names of its first faults.
    tls
        An ``ssl.SSLContext`` to serve https.
    """

    def __init__(self, plan=lambda number: (), *, model="tiny", tls=None):
        self.plan = plan
        self.model = model
        self.account: list[Served] = []
        self.probes = 0
        self.hooks = []
        """Each is awaited with every case's number; True: it answered itself."""

        self.now = 0
        """Requests of cases under way."""

        self.highest = 0
        self._tls = tls
        self._asked = Counter()
        self._ready = threading.Event()
        self._tasks = set()
        self._thread = threading.Thread(target=self._run, name="faults", daemon=True)

    def __enter__(self):
        self._thread.start()
        self._ready.wait(60)
        return self

    def __exit__(self, *problem):
        self.stop()

    def stop(self):
        """Close everything at once; again is harmless."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    @property
    def url(self):
        """Where to ask."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

    def did(self):
        """Return how often each thing was done."""
        return Counter(served.did for served in self.account)

    def per_case(self):
        """Return what was done for each case, in order."""
        cases = defaultdict(list)
        for served in sorted(self.account):
            cases[served.number].append(served.did)
        return dict(cases)

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, backlog=1024, ssl=self._tls
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        for listening in server.sockets:
            self._loop.remove_reader(listening)
        # What was accepted just now becomes a connection within three rounds.
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _connected(self, reader, writer):
        """Begin to serve; the connection ends with it, even where it is not begun."""
        serving = asyncio.create_task(self._listen(reader, writer))
        self._tasks.add(serving)
        serving.add_done_callback(self._tasks.discard)
        serving.add_done_callback(lambda _: writer.transport.abort())

    async def _listen(self, reader, writer):
        """Serve until the client goes away or the server stops."""
        with suppress(OSError, EOFError):
            await self._talk(reader, writer)

    async def _talk(self, reader, writer):
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            wire = Wire(reader, writer)
            if not head.startswith(b"POST /v1/chat/completions "):
                await wire.send(self._page(head.split()[1]))
                continue
            request = json.loads(body)
            film = _FILM.search(request["messages"][-1]["content"])
            if film is None:
                self.probes += 1
                await wire.send(json_http(200, plain_answer(request)))
            else:
                await self._serve_case(wire, int(film[1]))

    def _page(self, path):
        return models(self.model) if path == b"/v1/models" else http(404, b"{}")

    async def _serve_case(self, wire, number):
        attempt = self._asked[number]
        self._asked[number] += 1
        self.now += 1
        self.highest = max(self.highest, self.now)
        planned = self.plan(number)
        did = planned[attempt] if attempt < len(planned) else "answer"
        send = FAULTS[did].send if did in FAULTS else answer
        try:
            for hook in self.hooks:
                hooked = await hook(wire, number)
                if hooked:
                    did = hooked
                    return
            await send(wire, json.dumps(values_of(number)))
        finally:
            self.now -= 1
            self.account.append(Served(number, attempt, did, wire.sent))


def seeded_plan(seed, share, faults, *, persistent=(), attempts=1):
    """Return a plan in which a `share` of the cases meets faults.

    A case with faults meets one to three of `faults`, then its answer; one in twenty of
    them meets one of `persistent` for all its `attempts`.
    """

    def plan(number):
        rng = random.Random(f"{seed}:{number}")
        if rng.random() >= share:
            return ()
        if persistent and rng.random() < 0.05:
            return (rng.choice(persistent),) * attempts
        return tuple(rng.choices(faults, k=rng.choice((1, 1, 1, 2, 3))))

    return plan

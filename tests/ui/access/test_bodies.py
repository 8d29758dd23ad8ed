"""Bodies that stop in the middle, or never come, end, and no log has a word of them."""

import asyncio
import socket
import struct
import time

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from loop.ui.access.bodies import Arrival, Body, BodyLimits
from loop.ui.access.gate import build_gate
from loop.ui.access.http_protocol import TimedProtocol
from tests.ui.access.conftest import Behind
from tests.ui.access.served import Client, serving
from tests.ui.conftest import awaited
from tests.ui.visits import until

RUN = "/gradio_api/run/predict"
UPLOAD = "/upload"
WORDS = b"left effusion"
PATHS = ("/sign-in", RUN, UPLOAD)

HURRY_S = 1.0
"""Short to wait for, and long enough for what comes at once on a busy machine."""


class Hasty(TimedProtocol):
    """The protocol, in a hurry."""

    patience_s = HURRY_S


@pytest.fixture
def hasty(access):
    """Return a client of a server that waits for a second."""
    gate = build_gate(
        Behind(access), access, limits=BodyLimits(whole_s=HURRY_S, upload_rate=1000)
    )
    with serving(gate, http=Hasty) as port:
        client = Client(port)
        client.sign_in("editor")
        yield client


def rest_of(connection):
    """Return what the server says until it closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def reset(connection):
    """Close a connection as a process that is killed does."""
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    connection.close()


def drip(connection, text):
    """Send a byte at a time; an error says that the other end has had enough."""
    for byte in text:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def head(path, length=1000):
    """Return how a request with a body begins."""
    return f"POST {path} HTTP/1.1\r\nContent-Length: {length}"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_a_body_that_stops_leaves_no_trace(client, caplog, path, leave):
    """A closed laptop is no fault, and its words belong in no log."""
    client.sign_in("editor")
    with client.sent(head(path), WORDS) as connection:
        leave(connection)
    # Whatever the server makes of it, it does before it has answered this.
    assert until(lambda: client.get("/theme.css").status == 200)
    time.sleep(0.1)
    assert caplog.text == ""


@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_who_leaves_in_the_middle_of_an_answer_leaves_no_trace(access, caplog, leave):
    """A page that is closed while it loads, or while a table is sent."""
    ended = []

    async def long(scope, receive, send):
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(200):
                body = {"body": WORDS * 10_000, "more_body": True}
                await send({"type": "http.response.body", **body})
                await asyncio.sleep(0.001)
            await send({"type": "http.response.body", "body": b""})
        finally:
            ended.append(scope["path"])

    with serving(build_gate(long, access)) as port:
        client = Client(port)
        client.sign_in("editor")
        with client.sent("GET /theme.css HTTP/1.1") as connection:
            assert connection.recv(10)
            leave(connection)
        until(lambda: ended)
    assert caplog.text == ""


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_does_not_come_is_answered_and_ends(hasty, caplog, path):
    """Else a hundred of them hold a hundred connections for ever."""
    with hasty.sent(head(path), WORDS) as connection:
        said = rest_of(connection)
    assert said.startswith("HTTP/1.1 408 ")
    assert "connection: close" in said.lower()
    assert "did not arrive in time" in said
    assert "effusion" not in said + caplog.text
    assert caplog.text == ""


def test_a_form_that_drips_ends_too(hasty):
    """The time is for all of it, not from one byte to the next."""
    with hasty.sent(head(RUN), b"{") as connection, pytest.raises(OSError):
        drip(connection, b" " * 100)


def test_an_upload_has_the_time_that_its_bytes_take(hasty):
    """A large file over a slow line arrives; one that stands still does not."""
    part = b"x" * 100_000
    with hasty.sent(head(UPLOAD, 3 * len(part)), part) as connection:
        for _ in range(2):
            # Both together are longer than an event may take; these bytes may 100 s.
            time.sleep(0.7 * HURRY_S)
            connection.sendall(part)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    with hasty.sent(head(UPLOAD, 3000), b"x" * 100) as connection:
        assert rest_of(connection).startswith("HTTP/1.1 408 ")


@pytest.mark.parametrize("begun", ["", "GET", "GET / HTTP/1.1\r\nHost: a\r\n"])
def test_headers_that_do_not_come_end(hasty, begun):
    """On a connection that is new."""
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=20) as connection:
        connection.sendall(begun.encode())
        assert rest_of(connection) == ""


def test_headers_that_drip_end(hasty):
    """On a connection that was used before, from one byte to the next."""
    with hasty.sent("GET /theme.css HTTP/1.1") as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(OSError):
            drip(connection, b"GET / HTTP/1.1\r\nX: " + b"x" * 100)


def test_a_rest_that_nobody_reads_ends(hasty):
    """The refusal of what is too long comes at once, its body never."""
    with hasty.sent(head(RUN, 10**12), b"{") as connection:
        assert rest_of(connection).startswith("HTTP/1.1 413 ")


def test_an_answer_that_nobody_reads_ends(access, caplog):
    """Else what it is made of stays in memory as long as they like."""
    ended = []

    async def long(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            body = {"body": b"x" * 2**20, "more_body": True}
            await send({"type": "http.response.body", **body})
        ended.append(scope["path"])

    with serving(build_gate(long, access), http=Hasty) as port:
        client = Client(port)
        client.sign_in("editor")
        with client.sent("GET /theme.css HTTP/1.1"):
            until(lambda: ended)
    assert caplog.text == ""


def test_an_answer_without_end_is_not_cut(hasty):
    """Patience is for waiting only."""
    with hasty.listen("/gradio_api/heartbeat/one") as stream:
        began = time.monotonic()
        while time.monotonic() - began < 1.5 * HURRY_S:
            assert stream.read(12) == b"data: here\n\n"


def test_a_quiet_connection_is_used_again(client):
    """An answer does not end it."""
    client.sign_in("editor")
    with client.sent("GET /theme.css HTTP/1.1") as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        time.sleep(0.1)
        again = f"GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n"
        connection.sendall(again.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_what_an_application_makes_of_half_a_body_is_not_sent(access, caplog):
    """It may take the end of the time for the end of the file."""

    async def eager(scope, receive, send):
        try:
            await Request(scope, receive).body()
        except Exception:
            await JSONResponse({"taken": True})(scope, receive, send)
            raise

    gate = build_gate(eager, access, limits=BodyLimits(whole_s=HURRY_S))
    with serving(gate) as port:
        client = Client(port)
        client.sign_in("editor")
        with client.sent(head(UPLOAD), WORDS) as connection:
            said = rest_of(connection)
    assert said.startswith("HTTP/1.1 408 ")
    assert "taken" not in said
    assert caplog.text == ""


def test_what_was_read_is_given_once_more(access):
    """The application reads it as if nobody had."""
    came = iter(
        [
            {"type": "http.request", "body": b"one ", "more_body": True},
            {"type": "http.request", "body": b"two", "more_body": False},
            {"type": "http.disconnect"},
        ]
    )

    async def receive():
        return next(came)

    async def read():
        body = Body(receive, 5.0)
        whole = await body.read()
        again = await body.receive(), await body.receive()
        return whole, again, body.arrival

    whole, again, arrival = awaited(read)
    assert whole == b"one two"
    assert again[0] == {"type": "http.request", "body": whole, "more_body": False}
    assert again[1] == {"type": "http.disconnect"}
    assert arrival is Arrival.WHOLE


def came(*messages):
    """Return what gives these messages, and ends after them as a timer does."""
    waiting = list(messages)

    async def receive():
        if waiting:
            return waiting.pop(0)
        raise TimeoutError

    return receive


PART = {"type": "http.request", "body": b"one", "more_body": True}
GONE = {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("messages", "read", "arrival"),
    [
        ([PART, {"type": "http.request", "body": b"two"}], b"onetwo", Arrival.WHOLE),
        ([{"type": "http.request"}], b"", Arrival.WHOLE),
        ([PART, GONE], b"one", Arrival.CUT),
        ([GONE], b"", Arrival.CUT),
        ([PART], b"one", Arrival.LATE),
        ([], b"", Arrival.LATE),
    ],
)
def test_a_body_is_whole_cut_or_late(messages, read, arrival):
    """And stays so: what is asked after that hears that nobody is there."""

    async def ask():
        body = Body(came(*messages), 60.0)
        return await body.read(), body.arrival, await body.receive(), body

    found, became, again, body = awaited(ask)
    assert (found, became) == (read, arrival)
    assert again == {"type": "http.request", "body": read, "more_body": False}
    if arrival is not Arrival.WHOLE:
        assert awaited(body.receive) == GONE
    assert body.arrival is arrival


def test_a_request_without_a_body_is_not_timed():
    """What comes is passed on as it is."""
    body = Body(came(PART, GONE))
    assert body.arrival is Arrival.WHOLE
    assert [awaited(body.receive) for _ in range(2)] == [PART, GONE]
    assert body.arrival is Arrival.WHOLE


def test_bytes_prolong_the_time_of_an_upload_only():
    """Each by as much as it may take at the slowest rate."""

    async def end_of(rate):
        body = Body(came(PART, PART), 5.0, rate)
        before = body._end
        await body.receive()
        await body.receive()
        return body._end - before

    assert awaited(lambda: end_of(0.0)) == 0
    assert awaited(lambda: end_of(2.0)) == pytest.approx(3.0)

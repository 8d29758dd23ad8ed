"""What can go wrong on the way from a chat server to its client, byte by byte.

Each fault is a coroutine that is given the wire of one connection and the good answer
to one request; `FAULTS` names them and says what a client must make of each.
"""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from typing import NamedTuple

from tests.servers.answers import completion, http, json_http

HUGE = 300 * 2**20
"""Size that a huge body claims, bytes."""

_CHUNK = b"7" * 65_536


class End(StrEnum):
    """What a client must make of a fault."""

    AGAIN = "again"
    """The request is sent again."""

    ANSWERED = "answered"
    """It is an answer, however odd: the case is answered."""

    UNPARSED = "unparsed"
    """It is an answer that cannot be read: the case is unparsed, nothing sent again."""


class Wire:
    """One connection, seen from the server."""

    def __init__(self, reader, writer):
        """Take both directions."""
        self.reader, self.writer = reader, writer
        self.sent = 0

    async def send(self, data):
        """Send bytes and wait until the client takes them."""
        self.writer.write(data)
        await self.writer.drain()
        self.sent += len(data)

    async def reset(self):
        """End the connection with a TCP reset."""
        connection = self.writer.get_extra_info("socket")
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def gone(self):
        """Wait until the client ends the connection."""
        while await self.reader.read(65_536):
            pass


Send = Callable[[Wire, str], Awaitable[None]]
"""Answers one request; the second argument is the content of a good answer."""


class Fault(NamedTuple):
    """One thing that goes wrong."""

    send: Send
    end: End


FAULTS: dict[str, Fault] = {}
"""Faults by name."""


def fault(end):
    """Register a coroutine as a fault under its name."""

    def add(send):
        FAULTS[send.__name__] = Fault(send, end)
        return send

    return add


def _good(content):
    return json_http(200, completion(content))


async def answer(wire, content):
    """Answer as a good server does."""
    await wire.send(_good(content))


def _status(name, status, *headers):
    """Register the answer with an error status."""

    async def send(wire, content):
        later = datetime.now(UTC) + timedelta(seconds=1)
        filled = [
            (key, value or format_datetime(later, True)) for key, value in headers
        ]
        # Servers quote what they were sent: it must not come out of the engine.
        problem = {"error": {"message": f"cannot do {content}", "code": status}}
        await wire.send(json_http(status, problem, headers=filled))

    FAULTS[name] = Fault(send, End.AGAIN)


for _code in (408, 409, 425, 429, 500, 502, 503):
    _status(f"status_{_code}", _code)
_status("retry_after_0", 429, ("Retry-After", "0"))
_status("retry_after_1", 503, ("Retry-After", "1"))
_status("retry_after_date", 429, ("Retry-After", ""))
_status("retry_after_nonsense", 429, ("Retry-After", "soon"))


@fault(End.AGAIN)
async def hang(wire, content):
    """Take the request and say nothing."""
    await wire.gone()


@fault(End.AGAIN)
async def drip_for_ever(wire, content):
    """Send the answer so slowly that no client can wait for it."""
    for byte in _good(content):
        await wire.send(bytes([byte]))
        await asyncio.sleep(0.5)


@fault(End.ANSWERED)
async def drip(wire, content):
    """Send the answer in many small pieces."""
    data = _good(content)
    for start in range(0, len(data), 40):
        await wire.send(data[start : start + 40])
        await asyncio.sleep(0.002)


@fault(End.AGAIN)
async def reset_before_headers(wire, content):
    """Reset the connection instead of answering."""
    await wire.reset()


@fault(End.AGAIN)
async def reset_after_headers(wire, content):
    """Reset the connection between head and body."""
    await wire.send(_good(content).split(b"{")[0])
    await asyncio.sleep(0.01)
    await wire.reset()


@fault(End.AGAIN)
async def close_before_headers(wire, content):
    """Close the connection instead of answering."""
    wire.writer.close()


@fault(End.AGAIN)
async def half_closed_body(wire, content):
    """Send half the body and then no more, but keep listening."""
    await wire.send(_good(content)[:-40])
    wire.writer.write_eof()
    await wire.gone()


@fault(End.AGAIN)
async def half_a_head(wire, content):
    """Close the connection in the middle of a header."""
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    wire.writer.close()


@fault(End.AGAIN)
async def no_http(wire, content):
    """Answer in another protocol."""
    await wire.send(b"\x15\x03\x01\x00\x02\x02\x28 this is not HTTP\r\n\r\n")
    wire.writer.close()


@fault(End.AGAIN)
async def length_too_long(wire, content):
    """Claim more bytes than there are."""
    body = json.dumps(completion(content)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + 100}\r\n\r\n"
    await wire.send(head.encode() + body)
    wire.writer.close()


@fault(End.AGAIN)
async def length_too_short(wire, content):
    """Claim fewer bytes than there are."""
    body = json.dumps(completion(content)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) - 10}\r\n\r\n"
    await wire.send(head.encode() + body)
    wire.writer.close()


@fault(End.AGAIN)
async def broken_chunks(wire, content):
    """Send chunks whose lengths are no numbers."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    await wire.send(head + b'5\r\n{"a":\r\nzz\r\nnonsense\r\n')
    wire.writer.close()


@fault(End.AGAIN)
async def garbage_json(wire, content):
    """Send a body that is no JSON."""
    await wire.send(http(200, b'{"choices": [{"message": {"content": "' + b"\\u12"))


@fault(End.AGAIN)
async def no_json(wire, content):
    """Send the page of some proxy."""
    page = b"<html><body>Sign in to the network</body></html>"
    await wire.send(http(200, page, content="text/html"))


@fault(End.AGAIN)
async def other_shape(wire, content):
    """Send JSON of another service."""
    await wire.send(json_http(200, {"result": [content], "ok": True}))


@fault(End.AGAIN)
async def no_choices(wire, content):
    """Send a completion without any choice."""
    await wire.send(json_http(200, {**completion(content), "choices": []}))


@fault(End.AGAIN)
async def error_with_status_200(wire, content):
    """Send an error that claims to be none."""
    await wire.send(json_http(200, {"error": {"message": f"no room for {content}"}}))


@fault(End.AGAIN)
async def invalid_utf8(wire, content):
    """Send bytes that are no text."""
    body = json.dumps(completion(content)).encode()
    await wire.send(http(200, body.replace(b"assistant", b"assist\xff\xfent")))


@fault(End.AGAIN)
async def huge_body(wire, content):
    """Claim hundreds of megabytes and send them as long as they are taken."""
    await wire.send(f"HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n".encode())
    while wire.sent < HUGE:
        await wire.send(_CHUNK)


@fault(End.AGAIN)
async def endless_chunks(wire, content):
    """Stream hundreds of megabytes without saying how many."""
    await wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while wire.sent < HUGE:
        await wire.send(b"10000\r\n" + _CHUNK + b"\r\n")


@fault(End.AGAIN)
async def huge_header(wire, content):
    """Send a header that does not end."""
    await wire.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while wire.sent < HUGE:
        await wire.send(_CHUNK)


@fault(End.ANSWERED)
async def thinking(wire, content):
    """Think aloud before the answer."""
    await answer(wire, f"<think>Is it {{}}? It may be.</think>\n{content}")


@fault(End.ANSWERED)
async def reasoning_beside(wire, content):
    """Give the reasoning in a field of its own."""
    data = completion(content, reasoning_content='{"edema": "present"}')
    await wire.send(json_http(200, data))


@fault(End.ANSWERED)
async def fenced(wire, content):
    """Put the answer between code fences."""
    await answer(wire, f"```json\n{content}\n```")


@fault(End.ANSWERED)
async def no_usage(wire, content):
    """Leave the usage out."""
    data = completion(content)
    del data["usage"]
    await wire.send(json_http(200, data))


@fault(End.UNPARSED)
async def duplicated_keys(wire, content):
    """Answer one field twice, and not the same."""
    other = "absent" if json.loads(content)["edema"] == "present" else "present"
    await answer(wire, content.replace("{", f'{{"edema": "{other}", ', 1))


@fault(End.UNPARSED)
async def other_schema(wire, content):
    """Answer another question."""
    await answer(wire, '{"finding": "effusion", "status": "present"}')


@fault(End.UNPARSED)
async def cut_off(wire, content):
    """End the answer at the token limit."""
    await wire.send(json_http(200, completion(content[:10], finish="length")))


@fault(End.UNPARSED)
async def refusal(wire, content):
    """Decline to answer."""
    data = completion(None, refusal=f"I cannot help with {content}")
    await wire.send(json_http(200, data))


@fault(End.UNPARSED)
async def filtered(wire, content):
    """Let a content filter take the answer away."""
    await wire.send(json_http(200, completion("", finish="content_filter")))


@fault(End.UNPARSED)
async def empty(wire, content):
    """Answer with no text."""
    await answer(wire, "")


@fault(End.UNPARSED)
async def null_content(wire, content):
    """Answer with nothing where text should be."""
    await answer(wire, None)


@fault(End.UNPARSED)
async def thinking_without_end(wire, content):
    """Think aloud and never answer."""
    await answer(wire, f"<think>Perhaps {content}")


@fault(End.UNPARSED)
async def reasoning_alone(wire, content):
    """Put everything into the reasoning field."""
    await wire.send(json_http(200, completion("", reasoning_content=content)))


@fault(End.UNPARSED)
async def prose(wire, content):
    """Answer in words."""
    await answer(wire, "There may be an effusion, but I am not sure.")

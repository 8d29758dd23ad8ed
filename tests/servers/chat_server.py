"""A chat server that costs next to nothing: what is measured is its client.

Run ``python tests/servers/chat_server.py --latency-ms 50``; it prints its URL. Every
long request gets the same prepared bytes; only short ones, such as a start-up probe,
are read at all.
"""

import argparse
import asyncio
import json
import re
import signal

from tests.servers.answers import completion, json_http, models, plain_answer

SHORT = 2048
"""Bodies up to this size are read and answered as they ask, bytes."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NOT_FOUND = json_http(404, {"error": {"message": "no such page", "code": 404}})


class ChatProtocol(asyncio.Protocol):
    """One connection: requests in, prepared answers out, one at a time."""

    def __init__(self, answer, latency_s, model):
        """Take the answer to every long request."""
        self._answer = answer
        self._latency_s = latency_s
        self._models = models(model)
        self._buffer = bytearray()
        self._wanted = 0

    def connection_made(self, transport):
        """Keep the way back."""
        self._transport = transport

    def data_received(self, data):
        """Answer as soon as a request is complete."""
        buffer = self._buffer
        buffer += data
        while buffer:
            if not self._wanted:
                end = buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                length = _LENGTH.search(buffer, 0, end + 2)
                self._body = end + 4
                self._wanted = end + 4 + (int(length[1]) if length else 0)
            if len(buffer) < self._wanted:
                return
            self._reply(self._response())
            del buffer[: self._wanted]
            self._wanted = 0

    def _response(self):
        buffer = self._buffer
        if buffer.startswith(b"GET /v1/models"):
            return self._models
        if not buffer.startswith(b"POST /v1/chat/completions"):
            return _NOT_FOUND
        if self._wanted - self._body > SHORT:
            return self._answer
        request = json.loads(buffer[self._body : self._wanted])
        return json_http(200, plain_answer(request))

    def _reply(self, response):
        if self._latency_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self._latency_s, self._write, response)
        else:
            self._transport.write(response)

    def _write(self, response):
        if not self._transport.is_closing():
            self._transport.write(response)


async def serve(options):
    """Serve until the process is told to stop."""
    loop = asyncio.get_running_loop()
    stop = loop.create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: stop.done() or stop.set_result(None))
    answer = json_http(200, completion(options.answer, model=options.model))
    server = await loop.create_server(
        lambda: ChatProtocol(answer, options.latency_ms / 1000, options.model),
        "127.0.0.1",
        options.port,
        backlog=1024,
    )
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    await stop


def main():
    """Serve with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--answer", default="{}", help="text of every long answer")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()

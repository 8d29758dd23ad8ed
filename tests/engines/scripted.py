"""A small chat server in a thread: it answers the probe, and cases by a script."""

import asyncio
import json
import threading
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from loop.core.config import Config, ServingSettings
from loop.core.records import Item, Message, Prompt, PromptFrame
from loop.engines.base import Settings
from loop.engines.openai import ChatEngine, Endpoint

FRAME = PromptFrame(
    call="joint",
    messages=(Message("system", 'Say "yes" or\nno.'), Message("user", "Case: ")),
    fields=("edema",),
    schema={"type": "object", "properties": {"edema": {"enum": ["absent"]}}},
)


def chat(text="{}", finish="stop", **message):
    """Return the body of a chat completion."""
    return {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 8},
        },
        "system_fingerprint": "fp-1",
    }


DONE = b"data: [DONE]\n\n"

CUT = object()
"""In place of a piece of a stream: the connection breaks."""


def event(data):
    """Return an event that carries `data`."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def part(finish=None, **delta):
    """Return the event that carries one piece of an answer."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def events(data, size=4):
    """Return what a server streams instead of `data`, `size` characters at a time."""
    (choice,) = data["choices"]
    message = dict(choice["message"])
    pieces = [part(role=message.pop("role"), content="")]
    for name in sorted(message, reverse=True):
        text = message[name] or ""
        cuts = range(0, len(text), size)
        pieces += [part(**{name: text[at : at + size]}) for at in cuts]
    pieces.append(part(choice["finish_reason"]))
    if "usage" in data:
        pieces.append(event({"choices": [], "usage": data["usage"]}))
    return [*pieces, DONE]


def streaming(script, size=4):
    """Return `script` as a server does it that streams where it is asked to."""

    def answer(body):
        data = script(body)
        if not body.get("stream"):
            return data
        assert body["stream_options"] == {"include_usage": True}
        return events(data, size)

    return answer


def obey(body):
    """Answer as a server that enforces the schema."""
    wanted = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    values = {k: v["enum"][0] for k, v in wanted.get("properties", {}).items()}
    return chat(json.dumps(values, indent=1))


def ignore(body):
    """Answer as a server that ignores the schema and does as the prompt says."""
    return chat(body["messages"][-1]["content"].rpartition(": ")[2])


def is_case(body):
    """Whether a request holds a case; the frame alone does not."""
    return body["messages"][-1]["content"].startswith("Case: text")


class Scripted:
    """Answers cases with `case`, everything else with `other`; keeps what it saw.

    A script takes a request's body and returns a body, ``(status, body)`` or
    ``(status, body, headers)``, or a coroutine that does. A list is a body that is
    streamed: bytes, `CUT`, and functions, each of which is waited for in a thread.
    """

    def __init__(self, case=obey, other=obey, pages=None):
        self.case, self.other = case, other
        self.pages = {"/v1/models": {"data": [{"id": "m", "created": 1}]}}
        self.pages.update(pages or {})
        self.seen = []
        """(headers, body) of every chat completion request."""

    @property
    def cases(self):
        """The bodies of the requests that held a case."""
        return [body for _, body in self.seen if is_case(body)]

    async def handle(self, request):
        """Answer one request."""
        if request.method == "GET":
            said = self.pages.get(request.path, (404, {"error": "no such page"}))
        else:
            body = json.loads(await request.read())
            self.seen.append((dict(request.headers), body))
            said = (self.case if is_case(body) else self.other)(body)
            if asyncio.iscoroutine(said):
                said = await said
        status, data, headers = (
            *(said if isinstance(said, tuple) else (200, said)),
            {},
        )[:3]
        if isinstance(data, list):
            return await self._stream(request, status, data, headers)
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        return web.Response(status=status, body=raw, headers=headers)

    async def _stream(self, request, status, pieces, headers):
        response = web.StreamResponse(status=status, headers=headers)
        response.content_type = "text/event-stream"
        await response.prepare(request)
        for piece in pieces:
            if piece is CUT:
                request.transport.abort()
            elif callable(piece):
                await asyncio.to_thread(piece)
            else:
                await response.write(piece)
        return response


@contextmanager
def serving(script, host="127.0.0.1", tls=None, port=0):
    """Serve `script` and yield the URL; port 0 is any."""
    started, box = threading.Event(), {}

    async def main():
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", script.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
        bound = runner.addresses[0][1]
        box["url"] = f"{'https' if tls else 'http'}://{host}:{bound}/v1"
        box["loop"], box["end"] = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await box["end"].wait()
        open_ones = [one.transport for one in runner.server.connections]
        await runner.cleanup()
        # What a client that is gone has not taken would keep its connection open.
        for transport in filter(None, open_ones):
            transport.abort()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    started.wait()
    try:
        yield box["url"]
    finally:
        box["loop"].call_soon_threadsafe(box["end"].set)
        thread.join()


def make_settings(hosts=(), **options):
    """Return engine settings."""
    config = Config(hosts=hosts)
    return Settings(labels=Path("labels"), config=config, **options)


def make_engine(
    url, settings=None, *, key=None, extra_body=None, revive=None, **serving
):
    """Return an engine that is not entered yet."""
    endpoint = Endpoint(
        url=url,
        model="m",
        serving=ServingSettings(**serving),
        key=key,
        extra_body=extra_body or {},
    )
    return ChatEngine("openai", endpoint, settings or make_settings(), revive=revive)


def make_prompts(count, frame=FRAME):
    """Yield numbered prompts."""
    for number in range(count):
        yield make_prompt(f"text {number}", frame)


def make_prompt(text, frame=FRAME):
    """Return the prompt of one case."""
    return Prompt(frame=frame, tail=text, item=Item(id="c", variables={"text": text}))


def ask(script, count=1, settings=None, **options):
    """Return the completions of numbered cases, in order, and the account."""
    with serving(script) as url, make_engine(url, settings, **options) as engine:
        found = dict(engine.complete(make_prompts(count)))
        return [found[number] for number in range(count)], engine.account()


def is_balanced(account):
    """Whether every request is in exactly one column."""
    ended = account["answered"] + sum(account["retried"].values())
    return account["requests"] == ended + sum(account["failed"].values())

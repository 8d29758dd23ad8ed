"""What is learnt of a server before it is asked, and whether it is still the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from random import Random
from typing import Any, NamedTuple

from pydantic_core import from_json

from loop.core.digests import digest_json, digest_text
from loop.core.errors import EngineError, NoEffectError
from loop.core.records import Completion
from loop.engines.base import DEFAULT_THINKING, Settings
from loop.engines.openai.client import (
    Endpoint,
    EndpointClient,
    LinkError,
    RefusedError,
    Reply,
)
from loop.engines.openai.completions import (
    UnreadableAnswerError,
    chat_body,
    one_line,
    read_answer,
    read_error,
    read_fingerprint,
    request_fields,
    with_limit,
)
from loop.engines.openai.retrying import (
    PUSH_BACK,
    is_transient,
    send_until_ready,
)


class Contradiction:
    """A prompt that asks for one answer and a schema that allows only another."""

    def __init__(self, rng: Random) -> None:
        self._name, self._value, self._other = (
            f"{rng.getrandbits(32):08x}" for _ in range(3)
        )

    @property
    def message(self) -> tuple[str, str]:
        """Role and content of the prompt."""
        wanted = json.dumps({"answer": self._other}, separators=(",", ":"))
        return "user", f"Answer with exactly this JSON and nothing else: {wanted}"

    @property
    def schema(self) -> dict[str, object]:
        """The schema, which allows one answer."""
        return {
            "type": "object",
            "properties": {self._name: {"type": "string", "enum": [self._value]}},
            "required": [self._name],
            "additionalProperties": False,
        }

    def schema_won(self, text: str, finish: str) -> bool:
        """Whether an answer is the only one allowed, or begins it and was cut off."""
        valid = json.dumps({self._name: self._value}, separators=(",", ":"))
        answer = after_thinking(text)
        begun = bool(answer) and finish == "length" and valid.startswith(answer)
        return answer == valid or begun


def after_thinking(text: str) -> str:
    """Return an answer without thinking and without white space."""
    if text.startswith("<think>") and "</think>" not in text:
        return ""
    return "".join(text.rpartition("</think>")[2].split())


_SHORT, _LONG = 160, 2048
"""Output tokens of the schema's probe: for an answer, and for one after thinking."""

_SMALL_BUDGET = 8
"""Tokens; too few for a thought, so that a server that keeps the limit cuts it off."""

_PUZZLE = (
    "user",
    "A bus has 7 passengers. At each of three stops 2 get off and 3 get on. How many "
    "passengers has it then?",
)
"""Role and content of a question that a model may think about: no text of a case."""


class Probed(NamedTuple):
    """What the probe found."""

    constrained: bool
    """Whether answers follow the schema."""

    server: Mapping[str, object]
    """What tells this server from others; part of every cache key."""


class Probe:
    """Asks one endpoint, before any case is sent."""

    def __init__(
        self,
        client: EndpointClient,
        endpoint: Endpoint,
        settings: Settings,
        rng: Random,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._settings = settings
        self._rng = rng
        self._thinks = False
        """Whether thoughts came back at the level that is asked for."""
        self._thinks_within = False
        """The same, before an answer that a schema constrains."""

    async def run(self) -> Probed:
        """Return what the server is and does.

        Raises
        ------
        EngineError
            There is no such server or model, it refuses, or it does not enforce the
            schema and may not be used without.
        """
        listed = find_model(await self._list_models(), self._endpoint)
        self._check_length(listed.max_model_len)
        server = {**listed.facts, **await read_server(self._client, self._endpoint)}
        fingerprint = await self._complete_two_tokens()
        if fingerprint is not None:
            server["system_fingerprint"] = fingerprint
        if self._settings.thinking != DEFAULT_THINKING:
            await self._check_thinking(listed.max_model_len)
        constrained = await self._check_schema()
        if constrained and self._thinks and not self._thinks_within:
            self._settings.tell(
                f"{self._endpoint.model} thinks about a free question and not where a "
                "JSON schema constrains its answer, as without a reasoning parser: "
                f"thinking {self._settings.thinking} may be none in a run. Serve it "
                "with a reasoning parser"
            )
        return Probed(constrained, server)

    @property
    def _plain(self) -> Settings:
        """The settings without a level of thinking."""
        return replace(self._settings, thinking=DEFAULT_THINKING)

    async def _check_thinking(self, room: int | None) -> None:
        """Check that the level of thinking that is asked for changes an answer.

        A budget is tried as a small one: thoughts about a puzzle may end before a
        large one does, and those about a case not. Answers that were cut off alike are
        asked for again, with more tokens.

        Parameters
        ----------
        room
            Longest prompt and answer together, tokens; None when it is not known.

        Raises
        ------
        NoEffectError
            A question is answered word by word as without it, in as many tokens, and
            no thoughts come back: a template without thinking ignores the level, with
            HTTP 200.
        EngineError
            The server refuses it, or answers in a form that cannot be read.
        """
        level = self._settings.thinking
        tried = level
        if level.isdecimal():
            tried = str(min(int(level), _SMALL_BUDGET))
        most = min(_LONG, self._most_tokens(), room - _SHORT if room else _LONG)
        for tokens in dict.fromkeys((_SHORT, max(_SHORT, most))):
            plain = await self._think(DEFAULT_THINKING, tokens)
            asked = await self._think(tried, tokens)
            if asked != plain or asked.finish_reason != "length":
                break
        if asked == plain:
            raise NoEffectError(
                f"thinking {level} has no effect on {self._endpoint.model} at "
                f"{self._endpoint.url}: a test question is answered word by word as "
                "without it. Leave out --thinking (with a release: --thinking "
                "default), or serve a model whose template can think, with a "
                "reasoning parser."
            )
        self._thinks = _has_thoughts(asked)
        sure = asked.prompt_tokens != plain.prompt_tokens
        sure |= _has_thoughts(asked) != _has_thoughts(plain)
        if not sure and await self._think(DEFAULT_THINKING, tokens) != plain:
            self._settings.tell(
                f"{self._endpoint.model} answers a test question differently each "
                f"time, so it cannot be told whether thinking {level} changes "
                "anything: a difference between levels may be chance"
            )

    def _most_tokens(self) -> int:
        """Return the most tokens of an answer, as a run asks for them."""
        fields = request_fields(self._endpoint, self._settings, None)
        told = (fields.get("max_tokens"), fields.get("max_completion_tokens"))
        return max((one for one in told if isinstance(one, int)), default=_LONG)

    async def _think(self, level: str, tokens: int) -> Completion:
        """Return the answer to a puzzle, at a level of thinking."""
        settings = replace(self._settings, thinking=level)
        fields = request_fields(self._endpoint, settings, None)
        reply = await self._ask(chat_body(with_limit(fields, tokens), _PUZZLE))
        if reply.status == 200:
            try:
                # What was cached of the prompt is no difference between two answers.
                return read_answer(reply.body)._replace(cached_tokens=None)
            except UnreadableAnswerError as error:
                raise EngineError(
                    f"{self._endpoint.url} answered a test question with {error}, so "
                    f"it cannot be told whether thinking {self._settings.thinking} "
                    "changes anything. See to the server, or leave out --thinking."
                ) from error
        known = reply.status in (401, 403) or 300 <= reply.status < 400
        if known or is_transient(reply.status) or level == DEFAULT_THINKING:
            raise self._refused(reply)
        said = read_error(reply.body).words
        words = one_line(said, secret=self._endpoint.key)
        raise EngineError(
            f"{self._endpoint.url} refuses thinking {self._settings.thinking} (HTTP "
            f"{reply.status}); it says: {words or 'nothing else'}\nServe the model "
            "with a reasoning parser, or leave out --thinking (with a release: "
            "--thinking default)."
        )

    async def _list_models(self) -> Reply:
        url = self._endpoint.url + "/models"
        try:
            reply = await send_until_ready(
                lambda: self._client.get(url),
                self._endpoint.serving.patience_s,
                self._rng,
                self._settings.tell,
            )
        except LinkError as error:
            raise self._unreachable(error) from error
        if reply.status in (401, 403, *PUSH_BACK) or 300 <= reply.status < 400:
            raise self._refused(reply)
        return reply

    def _check_length(self, most: int | None) -> None:
        """Check that an answer of full length leaves room for a prompt."""
        wanted = request_fields(self._endpoint, self._settings, None).get("max_tokens")
        if most is not None and isinstance(wanted, int) and wanted >= most:
            raise EngineError(
                f"answers of up to {wanted} tokens (max_tokens) leave no room for a "
                f"prompt: the model is served with {most} tokens for both. Lower "
                "max_tokens, or serve the model with a longer context."
            )

    async def _complete_two_tokens(self) -> str | None:
        """Return the server's fingerprint, if it has one."""
        # Without a level of thinking: whether that is refused is asked separately.
        fields = with_limit(request_fields(self._endpoint, self._plain, None), 2)
        reply = await self._ask(chat_body(fields, ("user", "Say yes.")))
        if reply.status != 200:
            raise self._refused(reply)
        try:
            return read_fingerprint(reply.body)
        except UnreadableAnswerError as error:
            raise EngineError(
                f"{self._endpoint.url} does not answer like an OpenAI-compatible "
                f"server: {error}. Check that the URL ends where /chat/completions "
                "follows, mostly in /v1."
            ) from error

    async def _check_schema(self) -> bool:
        """Return whether the schema is enforced.

        Raises
        ------
        EngineError
            It is not, and `allow_unconstrained` is not set.
        """
        problem = await self._schema_problem()
        if not problem:
            return True
        if not self._settings.allow_unconstrained:
            raise EngineError(
                f"{self._endpoint.url} does not enforce the JSON schema of an answer: "
                f"{problem}. Serve the model with structured output, or accept free "
                "answers with --allow-unconstrained."
            )
        self._settings.tell(
            f"the server does not enforce the JSON schema of an answer ({problem}): "
            "no schema is sent, and every answer is read tolerantly"
        )
        return False

    async def _schema_problem(self) -> str:
        """Say how the server shows that it does not enforce a schema; empty if not."""
        question = Contradiction(self._rng)
        fields = request_fields(self._endpoint, self._settings, question.schema)
        for tokens in (_SHORT, _LONG):
            reply = await self._ask(
                chat_body(with_limit(fields, tokens), question.message)
            )
            if reply.status in PUSH_BACK:
                # Too busy to tell is no sign that nothing is enforced.
                raise self._refused(reply)
            if reply.status != 200:
                said = read_error(reply.body).words
                words = one_line(said, secret=self._endpoint.key)
                return f"it refuses one (HTTP {reply.status}): {words}"
            try:
                answer = read_answer(reply.body)
            except UnreadableAnswerError as error:
                return f"asked for one, its response was {error}"
            self._thinks_within = _has_thoughts(answer)
            if after_thinking(answer.text):
                break
        else:
            return f"its answer was empty after {_LONG} tokens of thinking"
        if question.schema_won(answer.text, answer.finish_reason):
            return ""
        return "its answer was another than the only one allowed"

    async def _ask(self, body: bytes) -> Reply:
        try:
            return await send_until_ready(
                lambda: self._client.ask(body),
                self._endpoint.serving.patience_s,
                self._rng,
                self._settings.tell,
            )
        except LinkError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: LinkError) -> EngineError:
        return EngineError(
            f"no answer from {self._endpoint.url}: {error}. Start the server there, or "
            "correct `url` in .ranloop/config.yaml or after @ in the engine's name."
        )

    def _refused(self, reply: Reply) -> EngineError:
        """Return what a refusal of the probe means."""
        url, status = self._endpoint.url, reply.status
        if status in (401, 403):
            # Not the server's words: they tend to repeat the key.
            given = "the API key" if self._endpoint.key else "requests without API key"
            return EngineError(
                f"{url} does not accept {given} (HTTP {status}). Set the environment "
                f"variable {self._endpoint.serving.key_env} to a valid key."
            )
        if 300 <= status < 400:
            return EngineError(
                f"{url} answers with a redirect (HTTP {status}), and redirects are not "
                "followed with case text. Give the URL where the server really is."
            )
        said = one_line(read_error(reply.body).words, secret=self._endpoint.key)
        if is_transient(status):
            return EngineError(
                f"{url} was busy or broken for {self._endpoint.serving.patience_s:g} s "
                f"(HTTP {status}); it says: {said or 'nothing else'}\n"
                "See to the server, or wait until it is free; then run the same "
                "command again."
            )
        return EngineError(
            f"{url} refuses a short request for {self._endpoint.model!r} (HTTP "
            f"{status}); it says: {said or 'nothing else'}\nCorrect the engine's name, "
            "or fields in extra_body in .ranloop/config.yaml."
        )


def _has_thoughts(answer: Completion) -> bool:
    """Whether thoughts came back, apart from the text or at its beginning."""
    return bool(answer.thinking) or answer.text.lstrip().startswith("<think>")


_STABLE = ("id", "root", "parent", "owned_by", "max_model_len", "meta")
"""Fields of a listed model that do not change when the server starts again."""

_SHOWN = 8
"""How many served models a message names."""


class Listed(NamedTuple):
    """One entry of a server's model list."""

    facts: Mapping[str, Any]
    """The fields that identify the model; empty when the server has no list."""

    @property
    def max_model_len(self) -> int | None:
        """Longest prompt and answer together, tokens; None when it is not said."""
        length = self.facts.get("max_model_len")
        return length if type(length) is int and length > 0 else None


def find_model(reply: Reply, endpoint: Endpoint) -> Listed:
    """Return the entry of the endpoint's model in the response to ``GET /models``.

    Raises
    ------
    EngineError
        The server has a list and the model is not in it.
    """
    data = _json(reply)
    listed = data.get("data") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        return Listed({})
    entries = [one for one in listed if isinstance(one, dict)]
    for entry in entries:
        if entry.get("id") == endpoint.model:
            return Listed({name: entry[name] for name in _STABLE if entry.get(name)})
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    raise EngineError(
        f"{endpoint.url} does not serve {endpoint.model!r}; it serves "
        f"{_name_some(endpoint.model, names)}. Name one of these after the scheme of "
        "the engine, or start the server with the model you want."
    )


async def read_server(client: EndpointClient, endpoint: Endpoint) -> dict[str, object]:
    """Return what the server tells of itself: its version, llama.cpp's properties.

    A server that offers neither gives an empty answer.
    """
    facts: dict[str, object] = {}
    version = await _fetch(client, endpoint.root + "/version")
    if isinstance(found := version.get("version"), str):
        facts["version"] = found
    props = await _fetch(client, endpoint.root + "/props")
    for name in ("build_info", "model_path"):
        if isinstance(found := props.get(name), str):
            facts[name] = found
    if isinstance(found := props.get("chat_template"), str):
        facts["chat_template"] = digest_text(found)
    if isinstance(found := props.get("default_generation_settings"), dict):
        facts["n_ctx"] = found.get("n_ctx")
    return facts


async def _fetch(client: EndpointClient, url: str) -> Mapping[str, Any]:
    """Return a JSON object; empty when there is none."""
    try:
        data = _json(await client.get(url))
    except LinkError:
        return {}
    return data if isinstance(data, dict) else {}


def _json(reply: Reply) -> object:
    if reply.status != 200:
        return None
    try:
        data: object = from_json(reply.body, allow_inf_nan=False)
        digest_json(data)
    except ValueError:
        return None
    return data


def _name_some(model: str, names: list[str]) -> str:
    """Return the served names, those like `model` first."""
    if not names:
        return "nothing"
    like = get_close_matches(model, names, n=_SHOWN, cutoff=0.3)
    first = [*like, *(name for name in names if name not in like)][:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(one_line(name, most=100) for name in first) + more


class SameServer:
    """Looks again at what a server tells of itself, once nobody can be sure of it.

    While a run waits for a server that is gone, another model may be started in its
    place. Its answers would be stored as those of the first.

    Parameters
    ----------
    known
        What the probe learnt.
    doubtful
        Whether the server was out of sight already.
    """

    def __init__(
        self, client: EndpointClient, known: Mapping[str, object], *, doubtful: bool
    ) -> None:
        self.doubtful = doubtful
        self._client = client
        self._known = known
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Return once the server is known to be the same.

        Raises
        ------
        LinkError
            It is not there, or not ready.
        EngineError
            It is another one, or serves another model.
        """
        async with self._lock:
            if not self.doubtful:
                return
            endpoint = self._client.endpoint
            reply = await self._client.get(endpoint.url + "/models")
            if is_transient(reply.status):
                raise RefusedError("server not ready")
            listed = find_model(reply, endpoint).facts
            told = {**listed, **await read_server(self._client, endpoint)}
            # What it does not tell now, as while it loads, says nothing.
            changed = [
                name
                for name in told.keys() & self._known.keys()
                if told[name] != self._known[name]
            ]
            if changed:
                raise EngineError(
                    f"{endpoint.url} is no longer the server that was probed: it "
                    f"reports another {', '.join(sorted(changed))}. Run the same "
                    "command again to ask it as it is now; what was answered is kept "
                    "under what it was."
                )
            self.doubtful = False

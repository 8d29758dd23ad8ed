"""The requests without a case that go before a batch: is it a model, does it obey."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from random import Random

from loop.core.errors import EngineError
from loop.engines.base import Settings
from loop.engines.openai.answers import one_line
from loop.engines.openai.bodies import Envelope, chat_body, request_fields, with_limit
from loop.engines.openai.endpoint import Endpoint
from loop.engines.vllm.batch_files import Line, Result, check_name, make_line

_YES, _SCHEMA = check_name("yes"), check_name("schema")
_SCHEMA_TOKENS = 160


class BatchChecks:
    """The probe's two requests, and one for each frame, for one batch runner."""

    def __init__(self, endpoint: Endpoint, settings: Settings, rng: Random) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._field, self._value, self._other = (
            f"{rng.getrandbits(32):08x}" for _ in range(3)
        )

    def lines(self) -> Iterator[Line]:
        """Yield the probe: two tokens, then a schema that contradicts the prompt."""
        endpoint, settings = self._endpoint, self._settings
        plain = with_limit(request_fields(endpoint, settings, None), 2)
        yield make_line(_YES, chat_body(plain, ("user", "Say yes.")))
        schema = {
            "type": "object",
            "properties": {self._field: {"type": "string", "enum": [self._value]}},
            "required": [self._field],
            "additionalProperties": False,
        }
        bound = with_limit(request_fields(endpoint, settings, schema), _SCHEMA_TOKENS)
        wanted = json.dumps({"answer": self._other})
        words = f"Answer with exactly this JSON and nothing else: {wanted}"
        yield make_line(_SCHEMA, chat_body(bound, ("user", words)))

    def frame_line(self, number: int, envelope: Envelope) -> Line:
        """Return the request for one token after a frame without any case."""
        return make_line(check_name(f"frame-{number}"), envelope.blank())

    def settle(self, results: Iterable[Result]) -> None:
        """Check what came back.

        Raises
        ------
        EngineError
            vLLM refuses a check, or does not enforce the schema.
        """
        found = {result.name: result for result in results}
        for name, result in found.items():
            if result.status != 200:
                said = one_line(result.refusal.words if result.refusal else "")
                raise EngineError(
                    f"vLLM's batch runner refuses a request without any case in it "
                    f"({name}, HTTP {result.status}); it says: {said or 'nothing'}\n"
                    "Correct the prompt, the schema or extra_body in "
                    ".ranloop/config.yaml, then run again."
                )
        schema = found.get(_SCHEMA)
        if schema is not None and not self._obeys(schema):
            raise EngineError(
                "vLLM's batch runner does not enforce the JSON schema of an answer. "
                "Use the server instead: leave out --batch; with "
                "--allow-unconstrained it is asked without a schema."
            )

    def _obeys(self, result: Result) -> bool:
        """Return whether the answer is the only one the schema allows, or begins it."""
        text, finish, *_ = result.completion
        valid = json.dumps({self._field: self._value}, separators=(",", ":"))
        answer = "".join(text.rpartition("</think>")[2].split())
        return answer == valid or (finish == "length" and valid.startswith(answer))

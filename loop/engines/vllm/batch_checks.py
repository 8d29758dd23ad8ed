"""The requests without a case that go before a batch: is it a model, does it obey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from loop.core.errors import EngineError
from loop.engines.base import Settings
from loop.engines.openai.answers import one_line
from loop.engines.openai.bodies import (
    RequestPrefix,
    chat_body,
    request_fields,
    with_limit,
)
from loop.engines.openai.contradiction import Contradiction
from loop.engines.openai.endpoint import Endpoint
from loop.engines.vllm.batch_files import (
    BatchRequest,
    BatchResponse,
    check_name,
    make_line,
)

_YES, _SCHEMA = check_name("yes"), check_name("schema")
_SCHEMA_TOKENS = 160


class BatchChecks:
    """The probe's two requests, and one for each frame, for one batch runner."""

    def __init__(self, endpoint: Endpoint, settings: Settings, rng: Random) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._question = Contradiction(rng)
        self._awaited: set[str] = set()

    def lines(self) -> Iterator[BatchRequest]:
        """Yield the probe: two tokens, then a schema that contradicts the prompt."""
        endpoint, settings = self._endpoint, self._settings
        plain = with_limit(request_fields(endpoint, settings, None), 2)
        yield make_line(_YES, chat_body(plain, ("user", "Say yes.")))
        schema = self._question.schema
        bound = with_limit(request_fields(endpoint, settings, schema), _SCHEMA_TOKENS)
        yield make_line(_SCHEMA, chat_body(bound, self._question.message))

    def frame_line(self, number: int, envelope: RequestPrefix) -> BatchRequest:
        """Return the request for one token after a frame without any case."""
        return make_line(check_name(f"frame-{number}"), envelope.blank())

    def await_line(self, line: BatchRequest) -> None:
        """Learn that `line` is handed over: if it is a check, it must come back."""
        if line.is_check:
            self._awaited.add(line.name)

    def settle(self, results: Iterable[BatchResponse]) -> None:
        """Check what came back.

        Raises
        ------
        EngineError
            vLLM refuses a check or leaves one out, or does not enforce the schema.
        """
        found = {result.name: result for result in results}
        lost = self._awaited - found.keys()
        self._awaited.clear()
        if lost:
            raise EngineError(
                f"vLLM's batch runner returned nothing for {', '.join(sorted(lost))}, "
                "so nobody knows whether it enforces the schema; no answer is taken. "
                "Run the same command again, or leave out --batch."
            )
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
        if schema is not None and not self._question.schema_won(*schema.completion[:2]):
            raise EngineError(
                "vLLM's batch runner does not enforce the JSON schema of an answer. "
                "Use the server instead: leave out --batch; with "
                "--allow-unconstrained it is asked without a schema."
            )

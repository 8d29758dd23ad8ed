"""The engine ``replay``: gives an earlier run's answers again, without any model.

For a parser, a gate or a reference that changed: what the model said is in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from types import TracebackType

from loop.core.errors import EngineError
from loop.core.records import Completion, Prompt
from loop.engines.base import Archive, Settings, register

_BLOCK = 256
"""Answers looked up at a time."""


class ReplayEngine:
    """Answers each prompt as it was answered in the run of its archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._open = ExitStack()

    def __enter__(self) -> ReplayEngine:
        if isinstance(self._archive, AbstractContextManager):
            self._open.enter_context(self._archive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def identity(self) -> Mapping[str, object]:
        """Return the run that is replayed and the identity of its engine."""
        source = dict(self._archive.identity())
        kept = {"constrained": source["constrained"]} if "constrained" in source else {}
        return {
            "engine": "replay",
            "run": self._archive.run_id,
            "source": source,
            **kept,
        }

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` in order; see `Engine.complete`.

        A prompt whose answer is not stored, because the engine failed then, fails
        again.
        """
        stream = iter(prompts)
        index = 0
        while block := list(islice(stream, _BLOCK)):
            for found in self._archive.find(block):
                yield index, found or Completion("", "error", self._missing())
                index += 1

    def _missing(self) -> str:
        return f"run {self._archive.run_id} has no stored answer"


@register("replay")
def make_replay(rest: str, settings: Settings) -> ReplayEngine:
    """Return the engine that replays ``settings.archive``.

    Raises
    ------
    EngineError
        There is no archive: the engine is made by a run, which finds it.
    """
    if settings.archive is None:
        raise EngineError(
            f"replay:{rest} has no stored run to read. Use it with `ranloop run`."
        )
    return ReplayEngine(settings.archive)

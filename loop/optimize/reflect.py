"""Asks an engine to reflect on answers: a question in, a proposed text out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from loop.core.config import read_config
from loop.core.digests import digest_json
from loop.core.errors import EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Item, Message, Prompt, PromptFrame
from loop.engines.base import find_model
from loop.run.asking import HeldEngine
from loop.run.cost import EngineUse
from loop.run.execute import Usage, UsageCount

_WITHOUT_WORDS: Final = frozenset({"rules", "chexbert", "replay"})
"""Engines that write no text of their own."""

_MOST_FAILED: Final = 0.5
"""Share of questions without an answer above which a search stops."""

_FEWEST: Final = 4
"""Questions without an answer, below which a search goes on."""

_KIND: Final = "reflection"

_CUT: Final = {
    "length": "the answer was cut off: allow it more tokens",
    "refusal": "the model refused to answer",
}


class Memory(Protocol):
    """Keeps what was answered, so that a killed search asks nothing twice."""

    def recall(self, kind: str, key: str) -> Any | None:
        """Return what was remembered under a kind and key; None for nothing."""

    def remember(self, kind: str, key: str, value: object) -> None:
        """Keep JSON data under a kind and key."""


def require_language_model(
    engine: str, *, asked_by: str, others: Sequence[str]
) -> None:
    """Refuse an engine that cannot propose texts.

    Parameters
    ----------
    engine
        Engine name; empty for none.
    asked_by
        The optimizer that needs it.
    others
        Optimizers that work without one.

    Raises
    ------
    EngineError
        It is no language model; names the optimizers that need none.
    """
    if engine and engine.partition(":")[0] not in _WITHOUT_WORDS:
        return
    said = f"{engine} cannot reflect" if engine else "none was named"
    raise EngineError(
        f"{asked_by} needs a language model that proposes texts, and {said}. Name one "
        "with --reflect, for example openai:MODEL@http://127.0.0.1:8000/v1, or choose "
        f"{', '.join(others)}, which work without one."
    )


def is_on_this_machine(workspace: WorkspacePaths, engine: str) -> bool:
    """Whether what `engine` is asked stays on this machine.

    Only where its address says so: a name other than ``localhost`` may be any machine.

    Raises
    ------
    DataError
        The settings of this machine are malformed.
    EngineError
        The engine's name is malformed.
    """
    model = find_model(engine)
    if model is None or engine.startswith("vllm:"):
        return True
    host = (
        urlsplit(model.url or read_config(workspace).engines.openai.url).hostname or ""
    )
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Reflector:
    """Asks one engine questions, and counts those without an answer.

    The same question asked again in one search is another draw: the engine's seed
    counts on, and each answer is remembered by itself.
    """

    def __init__(self, engine: HeldEngine, memory: Memory) -> None:
        """Prepare to ask `engine`, which is opened by the first question."""
        self._engine = engine
        self._memory = memory
        self._times: Counter[str] = Counter()
        self.use = EngineUse(engine.name)
        """What the engine was asked; what it answered before a kill is ``cached``."""

        self.answered = 0
        """Questions with an answer, remembered ones included."""

        self.failures: Counter[str] = Counter()
        """Why questions have no answer, and how often."""

    def ask(self, question: str) -> str | None:
        """Return the answer to `question`; None where there is none.

        Raises
        ------
        EngineError
            The engine as a whole failed, or more than half of the questions have no
            answer. What was answered is remembered.
        """
        draw = self._times[question]
        self._times[question] += 1
        key = digest_json([question, draw])
        known = self._memory.recall(_KIND, key)
        if known is not None:
            self.answered += 1
            text, used = _recalled(known)
            self.use = self.use.plus(cached=1, used=used)
            return text
        completion = self._complete(question, draw)
        spent = UsageCount()
        spent.add(completion)
        failed = completion.finish_reason == "error" and not spent.answers
        self.use = self.use.plus(asked=1, unanswered=int(failed), used=spent.total)
        text = completion.text.encode("utf-8", "replace").decode("utf-8")
        if completion.finish_reason == "stop" and text.strip():
            self._memory.remember(_KIND, key, {"text": text, "used": [*spent.total]})
            self.answered += 1
            return text
        reason = completion.error or _CUT.get(completion.finish_reason, "empty answer")
        self.failures[reason] += 1
        self._require_answers(reason)
        return None

    def _complete(self, question: str, draw: int) -> Completion:
        frame = PromptFrame(
            call="reflect", messages=(Message("user", ""),), fields=(), schema={}
        )
        item = Item(id=f"question {self.use.asked}", variables={"text": question})
        self._engine.identity()
        engine = self._engine.redraw(draw) if draw else self._engine
        found = engine.complete(iter([Prompt(frame=frame, tail=question, item=item)]))
        for _, completion in found:
            return completion
        return Completion("", "error", "the engine returned nothing")

    def _require_answers(self, reason: str) -> None:
        failed = self.failures.total()
        total = failed + self.answered
        if failed < _FEWEST or failed <= _MOST_FAILED * total:
            return
        raise EngineError(
            f"{self._engine.name} gave no answer to {failed} of {total} questions "
            f"({reason}). Repair it and start the same search again; what it answered "
            "is not asked twice."
        )


def _recalled(known: Any) -> tuple[str, Usage]:
    """Return a remembered answer, and its tokens: an earlier version kept none."""
    if isinstance(known, str):
        return known, Usage()
    return str(known["text"]), Usage(*known["used"])

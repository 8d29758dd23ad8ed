"""The seam between loop and whatever produces text: engines, settings, names."""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from loop.core.config import Config
from loop.core.errors import EngineError, UnknownEngineError
from loop.core.records import Completion, Prompt, PromptTask
from loop.core.safe_text import quoted


class Archive(Protocol):
    """The stored completions of an earlier run."""

    run_id: str

    def identity(self) -> Mapping[str, object]:
        """Return the identity of the engine that answered then."""
        ...

    def find(self, prompts: Sequence[Prompt]) -> list[Completion | None]:
        """Return what was answered to each prompt; None where nothing is stored."""
        ...


def ignore_progress(remark: str) -> None:
    """Ignore a progress message."""


DEFAULT_THINKING: Final = "default"
"""As much as the server lets its model think, without being told."""

NO_THINKING: Final = "none"

LEVELS: Final = (NO_THINKING, "low", "medium", "high")
"""Levels of thinking that a request can name, from the least."""

_MOST_BUDGET: Final = 10_000_000
_MOST_DIGITS: Final = 20
_SWITCH: Final = "enable_thinking"


def check_thinking(words: str) -> str:
    """Return a level of thinking: ``default``, one of `LEVELS`, or a budget of tokens.

    Raises
    ------
    ValueError
        It is none of these.

    Examples
    --------
    >>> check_thinking(" Low "), check_thinking("2048")
    ('low', '2048')
    """
    level = words.strip().casefold()
    if level in (DEFAULT_THINKING, *LEVELS):
        return level
    # Python refuses to read thousands of digits, and its message is not for users.
    whole = level.isascii() and level.isdecimal() and len(level) <= _MOST_DIGITS
    if whole and 0 < int(level) <= _MOST_BUDGET:
        return str(int(level))
    raise ValueError(
        f"thinking is {DEFAULT_THINKING}, {', '.join(LEVELS)} or a number of tokens "
        f"up to {_MOST_BUDGET:,}, and not {quoted(words)}"
    )


def thinking_fields(level: str) -> dict[str, object]:
    """Return the fields of a request that ask for a level of thinking.

    ``reasoning_effort`` is OpenAI's field and vLLM's; a budget of tokens is vLLM's,
    which takes it only from a server with a reasoning parser.
    """
    if level == DEFAULT_THINKING:
        return {}
    if level.isdecimal():
        return {"thinking_token_budget": int(level)}
    return {"reasoning_effort": level}


def with_thinking(extra: Mapping[str, object], level: str) -> dict[str, object]:
    """Return the further fields of a request, with a level of thinking.

    A level goes before what the settings always send: vLLM lets ``enable_thinking`` of
    ``chat_template_kwargs`` win over ``reasoning_effort``, so it is left out.

    Examples
    --------
    >>> always = {"chat_template_kwargs": {"enable_thinking": False}}
    >>> with_thinking(always, "low")
    {'reasoning_effort': 'low'}
    >>> with_thinking(always, "default") == always
    True
    """
    fields = dict(extra)
    template = fields.get("chat_template_kwargs")
    if level != DEFAULT_THINKING and isinstance(template, dict):
        kept = {name: one for name, one in template.items() if name != _SWITCH}
        fields["chat_template_kwargs"] = kept
        if not kept:
            del fields["chat_template_kwargs"]
    return fields | thinking_fields(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an engine is made with, besides its name."""

    labels: Path
    """The workspace's ``labels/`` folder, for engines that read data there."""

    private: Path | None = None
    """The workspace's ``.ranloop/``, for engines that keep files; None for none."""

    config: Config = field(default_factory=Config)
    temperature: float = 0.0
    max_tokens: int = 2048
    """Most output tokens of one answer."""

    seed: int = 0
    thinking: str = DEFAULT_THINKING
    """How much a model thinks, see `check_thinking`."""

    allow_unconstrained: bool = False
    """Whether to go on with a server that does not enforce the JSON schema."""

    batch: bool = False
    """Whether to answer everything in one offline batch, where the engine can."""

    archive: Archive | None = None
    """For ``replay``: the run whose answers are given again."""

    tell: Callable[[str], None] = ignore_progress
    """Takes remarks a person should see while the engine works; never case text."""


class Engine(Protocol):
    """Anything that turns prompts into completions.

    An engine knows nothing of labels, cases or scores: prompts in, text out.

    An engine that holds something open, such as a server, is a context manager too:
    it is entered before anything is asked of it, its identity included. It may be
    `Accounting`, `LanguageBound`, `Redrawing`, `Repeatable`, `Streaming` and
    `TaskBound` besides.
    """

    def identity(self) -> Mapping[str, object]:
        """Return everything that can change an answer, as JSON data.

        ``"constrained": False`` says that answers need not follow the schema.
        """
        ...

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` for every prompt, as they finish.

        `prompts` may be an endless-looking stream: an engine takes what it can work
        on and never needs the whole of it. ``index`` counts from 0 in that stream.

        Raises
        ------
        EngineError
            The engine as a whole failed. A failure on a single prompt is not
            raised: it comes back with ``finish_reason="error"``.
        """
        ...


@runtime_checkable
class Accounting(Protocol):
    """An engine that counts what it did."""

    def account(self) -> Mapping[str, object]:
        """Return the counts so far, as JSON data."""
        ...


@runtime_checkable
class Redrawing(Protocol):
    """An engine whose answers depend on a seed."""

    def redraw(self, draw: int) -> Engine:
        """Return this engine, as open as it is, with `draw` added to its seed."""
        ...


@runtime_checkable
class Repeatable(Protocol):
    """An engine that may answer the same prompt otherwise when it is asked again."""

    @property
    def retry_unreadable(self) -> int:
        """How often to ask a prompt again whose answer cannot be read."""
        ...


@runtime_checkable
class Streaming(Engine, Protocol):
    """An engine that can tell what it writes while it writes it."""

    def stream(
        self, prompts: Iterable[Prompt], tell: Callable[[int, str], None]
    ) -> Iterator[tuple[int, Completion]]:
        """Yield what `Engine.complete` yields; the completions are the same.

        Parameters
        ----------
        tell
            Told the index of a prompt and all that is written of its answer so far,
            reasoning that stands apart left out, from the thread that draws the
            completions; shorter than before where an answer begins again. One that
            takes its time holds up no server: it is told less often.
        """
        ...


@runtime_checkable
class LanguageBound(Protocol):
    """An engine that reads texts of some languages only."""

    @property
    def languages(self) -> Collection[str]:
        """The languages it reads, ISO 639-1."""
        ...


@runtime_checkable
class TaskBound(Protocol):
    """An engine that answers the prompts of each task by other data."""

    def for_task(self, task: PromptTask) -> Engine:
        """Return the engine that answers prompts of `task`."""
        ...


EngineFactory = Callable[[str, Settings], Engine]
_FACTORIES: dict[str, EngineFactory] = {}


def register(scheme: str) -> Callable[[EngineFactory], EngineFactory]:
    """Register a factory for engine names that are `scheme` or ``scheme:...``."""

    def add(factory: EngineFactory) -> EngineFactory:
        if scheme in _FACTORIES:
            raise ValueError(f"engine scheme {scheme!r} is already registered")
        _FACTORIES[scheme] = factory
        return factory

    return add


def get_engine(name: str, settings: Settings) -> Engine:
    """Return the engine called `name`, for example ``"rules"``.

    Raises
    ------
    UnknownEngineError
        The part before the colon is not a registered scheme.
    """
    check_scheme(name)
    scheme, _, rest = name.partition(":")
    return _FACTORIES[scheme](rest, settings)


def check_scheme(name: str, shipped: Collection[str] = ()) -> None:
    """Refuse the name of an engine that does not exist.

    Raises
    ------
    UnknownEngineError
        The part before the colon is neither registered nor one of `shipped`.
    """
    scheme = name.partition(":")[0]
    known = sorted({*_FACTORIES, *shipped})
    if scheme in known:
        return
    close = get_close_matches(scheme, known, n=1)
    raise UnknownEngineError(
        f"no engine {scheme!r} (known: {', '.join(known) or 'none'}). "
        + (f"Did you mean {close[0]!r}? " if close else "")
        + "Name an engine as scheme:model, for example "
        "openai:MODEL@http://127.0.0.1:8000/v1, or plain `rules`."
    )


_URL = re.compile(r"@(?=https?://)", re.IGNORECASE)
_NO_SCHEME = re.compile(r"@(?P<place>[\w.-]+:[0-9]+(?:/[\w./-]*)?)$")
"""A host and a port: else the model's name would swallow where to ask."""

_SECRET = re.compile(
    r"(@https?://)(?:[^/?#]*@|[^?#]*[?#]).*", re.IGNORECASE | re.DOTALL
)


class ModelName(NamedTuple):
    """The parts of an engine's name after its scheme."""

    model: str
    """Name of the model as the server knows it; it may hold ``/``, ``:`` and ``@``."""

    adapter: str | None = None
    """Name of a LoRA adapter; None for the model alone."""

    url: str | None = None
    """Where to ask; None for the configured place."""


def split_name(rest: str) -> ModelName:
    """Return the parts of an engine's name without its scheme.

    A URL begins at the first ``@http://`` or ``@https://``, an adapter at the last
    ``#`` before it.

    Raises
    ------
    EngineError
        There is no model, an empty adapter, or a host and port without http://.

    Examples
    --------
    >>> split_name("Qwen/Qwen3-14B@http://127.0.0.1:8000/v1").url
    'http://127.0.0.1:8000/v1'
    >>> split_name("me@home/model#chest")
    ModelName(model='me@home/model', adapter='chest', url=None)
    """
    name, *urls = _URL.split(rest, maxsplit=1)
    model, sharp, adapter = name.rpartition("#")
    if not sharp:
        model = name
    if not model or (sharp and not adapter):
        raise EngineError(
            f"the engine's name has no {'adapter after #' if model else 'model'}. Name "
            "it as scheme:model[#adapter][@url], for example "
            "openai:Qwen/Qwen3-14B@http://127.0.0.1:8000/v1."
        )
    if not urls and (found := _NO_SCHEME.search(name)):
        raise EngineError(
            f"{found['place']} in the engine's name is not an address. Write "
            f"@http://{found['place']}, or @https:// where the server has it."
        )
    return ModelName(model, adapter if sharp else None, urls[0] if urls else None)


def find_model(engine: str) -> ModelName | None:
    """Return the language model that `engine` asks; None where it asks none.

    Raises
    ------
    EngineError
        The name of the model is malformed; see `split_name`.
    """
    scheme, _, rest = engine.partition(":")
    return split_name(rest) if scheme in ("openai", "vllm") else None


def masked(name: str) -> str:
    """Return an engine's name without what may be secret in its URL.

    Such a URL is refused; the refusal must not show it either.

    Examples
    --------
    >>> masked("openai:model@https://me:word@127.0.0.1/v1")
    'openai:model@https://***'
    >>> masked("openai:me@home/model@http://127.0.0.1/v1")
    'openai:me@home/model@http://127.0.0.1/v1'
    """
    return _SECRET.sub(r"\1***", name)

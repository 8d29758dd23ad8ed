"""Which engine a run asks, how, and for how long it stays open."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from loop.core.config import read_config
from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Prompt, PromptTask
from loop.engines.base import (
    DEFAULT_THINKING,
    Accounting,
    Archive,
    Engine,
    Redrawing,
    Repeatable,
    Settings,
    Streaming,
    TaskBound,
    check_scheme,
    check_thinking,
    find_model,
    get_engine,
    ignore_progress,
)
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.prompts.outputs.base import Contract
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion

_ENGINES: Mapping[str, str] = MappingProxyType(
    {
        "rules": "loop.engines.rules",
        "openai": "loop.engines.openai",
        "vllm": "loop.engines.vllm",
        "replay": "loop.engines.replay",
        "chexbert": "loop.engines.chexbert",
    }
)
"""Module that registers each shipped engine, imported when it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How an engine is asked, besides which one."""

    temperature: float = 0.0
    max_tokens: int = 2048
    """Most output tokens of one answer."""

    seed: int = 0
    """Seed of draw 0; each further draw adds one."""

    thinking: str = DEFAULT_THINKING
    """How much a model thinks: ``default``, ``none``, ``low``, ``medium``, ``high``, or
    a budget of tokens. A level that changes nothing is refused as the engine opens."""

    allow_unconstrained: bool = False
    """Whether a server that does not enforce the JSON schema may be asked."""

    batch: bool = False
    """Whether to answer everything in one offline batch, where the engine can."""

    tell: Callable[[str], None] = ignore_progress
    """Takes remarks a person should see while the engine works."""


class ChosenEngine(NamedTuple):
    """An engine, its full name, and what it is asked with."""

    name: str
    engine: Engine
    parameters: Mapping[str, Any]


def choose_engine(
    workspace: WorkspacePaths,
    name: str,
    asking: EngineOptions,
    archive: Archive | None = None,
    task: PromptTask = PromptTask.EXTRACT,
) -> ChosenEngine:
    """Return the engine called `name`, made and not opened.

    Parameters
    ----------
    archive
        For ``replay``: the run whose answers are given again.
    task
        What the prompts are for that it is to answer.

    Raises
    ------
    UnknownEngineError
        There is no such engine.
    EngineError
        The name or a setting cannot be used.
    """
    thinking = find_thinking(name, asking)
    settings = Settings(
        labels=workspace.labels,
        private=workspace.private,
        config=read_config(workspace),
        temperature=asking.temperature,
        max_tokens=asking.max_tokens,
        seed=asking.seed,
        thinking=thinking,
        allow_unconstrained=asking.allow_unconstrained,
        batch=asking.batch,
        archive=archive,
        tell=asking.tell,
    )
    parameters = {
        "temperature": asking.temperature,
        "max_tokens": asking.max_tokens,
        "seed": asking.seed,
        **({} if thinking == DEFAULT_THINKING else {"thinking": thinking}),
    }
    return ChosenEngine(name, for_task(load_engine(name, settings), task), parameters)


def find_thinking(name: str, asking: EngineOptions) -> str:
    """Return the level of thinking that an engine is asked for.

    Raises
    ------
    EngineError
        It is no level, or the engine is no language model.
    """
    try:
        thinking = check_thinking(asking.thinking)
    except ValueError as error:
        raise EngineError(f"{error}. Correct it.") from error
    if thinking != DEFAULT_THINKING and find_model(name) is None:
        raise EngineError(
            f"{name} is no language model and does not think: leave out --thinking."
        )
    return thinking


def for_task(engine: Engine, task: PromptTask) -> Engine:
    """Return `engine` as it answers prompts of `task`."""
    return engine.for_task(task) if isinstance(engine, TaskBound) else engine


def load_engine(name: str, settings: Settings) -> Engine:
    """Return the engine called `name`, importing what registers it.

    Raises
    ------
    UnknownEngineError
        There is no such engine.
    """
    check_engine(name)
    module = _ENGINES.get(name.partition(":")[0])
    if module is not None:
        importlib.import_module(module)
    return get_engine(name, settings)


def check_engine(name: str) -> None:
    """Refuse an engine that does not exist, without importing one.

    Raises
    ------
    UnknownEngineError
        There is no such engine.
    """
    check_scheme(name, _ENGINES)


@contextmanager
def opened(engine: Engine) -> Iterator[Engine]:
    """Hold `engine` open for the length of the block, if it holds anything open."""
    if isinstance(engine, AbstractContextManager):
        with engine:
            yield engine
    else:
        yield engine


def count_retries(engine: Engine) -> int:
    """Return how often to ask `engine` again when an answer cannot be read."""
    return engine.retry_unreadable if isinstance(engine, Repeatable) else 0


def labels_of(engine: str) -> tuple[str, ...]:
    """Return the labels that an engine knows; none for one that is asked anything."""
    if engine.partition(":")[0] != "chexbert":
        return ()
    labels: tuple[str, ...] = importlib.import_module(_ENGINES["chexbert"]).HEADS
    return labels


def name_no_finding(taxonomy: Taxonomy, engine: str) -> str:
    """Return how "No Finding" comes about: ``"read"``, or the policy that derives it.

    Empty where the taxonomy has no such label.
    """
    if not taxonomy.derives:
        return ""
    read = NO_FINDING in labels_of(engine)
    return "read" if read else taxonomy.no_finding_policy.value


def plan_calls(
    version: PromptVersion, contract: Contract, labels: Sequence[str] = ()
) -> PromptPlan:
    """Return what `version` asks about each item.

    Parameters
    ----------
    labels
        What the engine knows, see `labels_of`: it is asked about these alone, in one
        call, and about "No Finding" if it knows that. None for an engine that is asked
        anything.

    Raises
    ------
    DataError
        The version asks for nothing that the engine knows, or cannot be rendered.
    """
    if not labels:
        return plan_prompts(version, contract.schema)
    known = tuple(guide for guide in version.guides if guide.label in labels)
    if not known:
        raise DataError(
            f"{version.ref} asks for no label that the engine knows: it answers "
            f"{', '.join(labels)}. Name another version or engine."
        )
    narrowed = replace(version, guides=known, plan=CallPlan.JOINT)
    plan = plan_prompts(narrowed, contract.schema)
    (call,) = plan.calls
    fields = call.frame.fields
    if NO_FINDING in labels and NO_FINDING not in fields:
        fields = (*fields, NO_FINDING)
    frame = replace(call.frame, fields=fields, schema=contract.schema(fields))
    return replace(plan, calls=(replace(call, frame=frame),))


def has_chance(engine: Engine) -> bool:
    """Return whether `engine` may answer the same prompt otherwise another time."""
    asked = engine.inner if isinstance(engine, HeldEngine) else engine
    return isinstance(asked, Repeatable)


class HeldEngine:
    """An engine that several runs ask: opened by the first, closed by its holder."""

    def __init__(self, chosen: ChosenEngine, stack: ExitStack) -> None:
        self.name = chosen.name
        self.parameters = chosen.parameters
        self.inner = chosen.engine
        self._stack: ExitStack | None = stack
        self._stopped = False

    def stop(self) -> None:
        """End what is asked, from another thread; whoever waits for it gets an error.

        Nothing can be asked afterwards.
        """
        self._stopped = True
        if isinstance(self.inner, AbstractContextManager):
            self.inner.__exit__(None, None, None)

    @property
    def asker(self) -> dict[str, object]:
        """Name, parameters and identity; opens the engine.

        Raises
        ------
        EngineError
            It was stopped, or cannot be opened.
        """
        return {
            "name": self.name,
            "parameters": dict(self.parameters),
            "identity": dict(self.identity()),
        }

    def identity(self) -> Mapping[str, object]:
        """Return the engine's identity, opening it if nobody has yet.

        Raises
        ------
        EngineError
            It was stopped, or cannot be opened.
        """
        if self._stopped:
            raise EngineError(f"{self.name} was stopped. Ask it again.")
        if self._stack is not None:
            self._stack.enter_context(opened(self.inner))
            self._stack = None
        return self.inner.identity()

    @property
    def retry_unreadable(self) -> int:
        """How often to ask a prompt again whose answer cannot be read; 0 for never."""
        return count_retries(self.inner)

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield what the engine answers; see `Engine.complete`."""
        return self.inner.complete(prompts)

    def stream(
        self, prompts: Iterable[Prompt], tell: Callable[[int, str], None]
    ) -> Iterator[tuple[int, Completion]]:
        """Yield what the engine answers; told is nothing by one that cannot stream."""
        if isinstance(self.inner, Streaming):
            return self.inner.stream(prompts, tell)
        return self.inner.complete(prompts)

    def for_task(self, task: PromptTask) -> HeldEngine:
        """Return the engine as it answers prompts of `task`."""
        if not isinstance(self.inner, TaskBound):
            return self
        chosen = ChosenEngine(self.name, self.inner.for_task(task), self.parameters)
        return HeldEngine(chosen, ExitStack())

    def redraw(self, draw: int) -> Engine:
        """Return the engine, open, with `draw` added to its seed if it has one."""
        self.identity()
        return self.inner.redraw(draw) if isinstance(self.inner, Redrawing) else self

    def account(self) -> Mapping[str, object]:
        """Return what the engine counted so far; nothing for one that does not."""
        return self.inner.account() if isinstance(self.inner, Accounting) else {}


@contextmanager
def hold_engine(
    workspace: WorkspacePaths,
    name: str,
    asking: EngineOptions | None = None,
    task: PromptTask = PromptTask.EXTRACT,
) -> Iterator[HeldEngine]:
    """Hold one engine for all runs of the block: a server takes minutes to start.

    Parameters
    ----------
    task
        What the prompts are for that it is to answer.

    Raises
    ------
    EngineError
        There is no such engine, or it is a replay, which belongs to one run.
    """
    if name.partition(":")[0] == "replay":
        raise EngineError(
            f"{name} gives the answers of one run again and cannot answer anything "
            "else. Name an engine that gives new answers."
        )
    with ExitStack() as stack:
        chosen = choose_engine(workspace, name, asking or EngineOptions(), task=task)
        yield HeldEngine(chosen, stack)

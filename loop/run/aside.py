"""Questions that are no run: nothing of them is an outcome, in a history, or latest.

They are asked in draws of their own, which neither a run nor a check of a draft asks:
whoever has seen the answers has seen nothing that a check is going to rest on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.errors import EngineError
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Item, Outcome, Prompt, Status
from loop.engines.base import Engine, Streaming
from loop.engines.rules.engine import RulesEngine, RulesExplanation
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.tolerant import strip_thinking
from loop.prompts.render import PromptPlan, space_out
from loop.prompts.version import PromptVersion
from loop.run.asking import (
    EngineOptions,
    HeldEngine,
    choose_engine,
    count_retries,
    has_chance,
    labels_of,
    plan_calls,
)
from loop.run.execute import Work, ask_aside
from loop.run.pool_shots import with_shots
from loop.run.spec import BLANK_LINES, RunSpec
from loop.run.store import Store
from loop.run.task_fields import require_fields

_SEEDS = 1_000_000
"""Added to the seed of each draw, so that no run's draw has the same."""

_BLANK = " "
"""What the blank lines of a draw hold; those of a run's draw hold nothing."""


class Heard(NamedTuple):
    """What a server has written so far of one answer that is still being written."""

    version: str
    """The version or draft that is asked, by its full name."""

    draw: int
    """0 for what is asked once, else from 1."""

    call: int
    """Which call of all, from 1: in the order of the items, then of the plan."""

    calls: int
    """How many calls there are: those of the plan that are asked, times the items."""

    text: str
    """All of it, thinking left out; shorter than before where the answer begins
    again. Private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAside:
    """What one version answers to some items."""

    draws: tuple[tuple[Outcome, ...], ...]
    """Of each draw the outcomes, in the order of the items."""

    rules: Mapping[str, RulesExplanation]
    """Label to why `rules` answers the first item so; empty for other engines."""


def ask_version(  # noqa: PLR0913  each is something else that a try may want
    workspace: WorkspacePaths,
    store: Store,
    version: PromptVersion,
    items: Sequence[Item],
    engine: HeldEngine,
    *,
    label: str = "",
    draws: int | None = None,
    keep: bool = True,
    heard: Callable[[Heard], None] | None = None,
) -> AskedAside:
    """Return what `version` answers to `items`, and keep no run of it.

    Asked once, that is the answer of a run's draw 0, from the store where it is there;
    a check leaves that draw out. Asked several times, no draw is that of any run.

    Parameters
    ----------
    label
        Only the calls that ask about this label; empty for all.
    draws
        How often, of an engine with chance in it; None for once.
    keep
        Whether new answers are stored; not those to a text that nobody imported.
    heard
        Told what a server writes, while it writes it. Not called for an answer from
        the store, of ``rules`` or of ``replay``, which is there at once.

    Raises
    ------
    DataError
        The version cannot be rendered, or asks for no label of the taxonomy.
    EngineError
        The engine failed, or repeats itself and is to be asked several times.
    StoreError
        The store cannot be read or written.
    """
    require_fields(workspace, version)
    contract = get_contract(version.contract)
    version = with_shots(workspace, version)
    plan = plan_version(version, labels=labels_of(engine.name))
    if label:
        asking = tuple(one for one in plan.calls if label in one.frame.fields)
        plan = replace(plan, calls=asking)
    rules = _find_rules(workspace, version, engine)
    spec = RunSpec(
        prompt=version.ref,
        prompt_digest=version.digest,
        contract=f"{contract.name}/{contract.version}",
        cohort="",
        cohort_digest="",
        engine=engine.name,
        parameters=engine.parameters,
    )
    work = Work(
        items=items, plan=plan, contract=contract, retries=count_retries(engine)
    )
    answers = []
    for draw in _choose_draws(engine, draws):
        if not plan.calls:
            silent = (Outcome(item_id=one.id, status=Status.ANSWERED) for one in items)
            answers.append(tuple(silent))
            continue
        drawn, again, spaced = spec, work, plan
        asked: Engine = rules or engine
        if draw:
            drawn = _drawn_aside(spec, draw)
            asked = engine.redraw(_SEEDS + draw)
            spaced = space_out(plan, draw, _BLANK)
            again = replace(work, plan=spaced)
        if heard is not None and isinstance(asked, Streaming):
            asked = _Overheard(
                engine=asked,
                heard=heard,
                version=version.ref,
                draw=draw,
                plan=spaced,
                items=items,
            )
        answers.append(ask_aside(drawn, again, asked, store, keep=keep))
    why = _explain(rules, plan, items[0]) if rules and items else {}
    return AskedAside(draws=tuple(answers), rules=why)


_TAG = re.compile(r"\s*<\w*\Z")
"""The beginning of a text that may become the tag with which thinking begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overheard:
    """An engine that is asked aside, while what it writes is told."""

    engine: Streaming
    heard: Callable[[Heard], None]
    version: str
    draw: int
    plan: PromptPlan
    """What is asked of each item."""

    items: Sequence[Item]

    def identity(self) -> Mapping[str, object]:
        """Return the engine's identity: an answer is the same, streamed or not."""
        return self.engine.identity()

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield what the engine answers."""
        names = {name: at for at, name in enumerate(self.plan.names)}
        places = {item.id: at * len(names) for at, item in enumerate(self.items)}
        calls = len(names) * len(places)
        asked: list[int] = []
        told: dict[int, str] = {}

        def ask() -> Iterator[Prompt]:
            for prompt in prompts:
                asked.append(places[prompt.item.id] + names[prompt.frame.call] + 1)
                yield prompt

        def tell(index: int, text: str) -> None:
            written = "" if _TAG.fullmatch(text) else strip_thinking(text).text
            if written != told.get(index, ""):
                told[index] = written
                self.heard(Heard(self.version, self.draw, asked[index], calls, written))

        return self.engine.stream(ask(), tell)


def _choose_draws(engine: HeldEngine, draws: int | None) -> Sequence[int]:
    if draws in (None, 1):
        return (0,)
    if not has_chance(engine):
        raise EngineError(
            f"{engine.name} answers the same prompt in the same way each time, so more "
            "draws show nothing. Leave out --draws."
        )
    return range(1, (draws or 1) + 1)


def _drawn_aside(spec: RunSpec, draw: int) -> RunSpec:
    seed = spec.parameters["seed"] + _SEEDS + draw
    parameters = {**spec.parameters, "seed": seed, BLANK_LINES: draw}
    return replace(spec, draw=draw, parameters=parameters)


def _find_rules(
    workspace: WorkspacePaths, version: PromptVersion, engine: HeldEngine
) -> RulesEngine | None:
    if not isinstance(engine.inner, RulesEngine):
        return None
    return rules_for(workspace, version, digest_json(dict(engine.identity())))


@lru_cache(maxsize=8)
def plan_version(
    version: PromptVersion, lines: int = 0, labels: tuple[str, ...] = ()
) -> PromptPlan:
    """Return what a version asks, with so many more blank lines; kept.

    `labels` are what the engine knows, see `loop.run.asking.plan_calls`.

    One looks at many cases of one version.
    """
    plan = plan_calls(version, get_contract(version.contract), labels)
    return space_out(plan, lines) if lines else plan


@lru_cache(maxsize=8)
def rules_for(
    workspace: WorkspacePaths, version: PromptVersion, cues: str
) -> RulesEngine:
    """Return `rules` for the prompts of one version, which it compiles only once.

    Parameters
    ----------
    cues
        Digest of its identity: other cues are another engine.
    """
    engine = choose_engine(workspace, "rules", EngineOptions()).engine
    if not isinstance(engine, RulesEngine):
        raise TypeError(f"rules is made as {type(engine).__name__}")
    return engine


def _explain(
    rules: RulesEngine, plan: PromptPlan, item: Item
) -> dict[str, RulesExplanation]:
    return {
        label: explained
        for prompt in plan(item)
        if (explained := rules.explain(prompt)) is not None
        for label in prompt.frame.fields
    }

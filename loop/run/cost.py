"""What a run would ask and cost, counted without asking anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from loop.core.config import Config, ModelPrice, read_config
from loop.core.paths import WorkspacePaths
from loop.core.records import Item, Mark, PromptTask
from loop.engines.base import DEFAULT_THINKING, NO_THINKING, find_model, masked
from loop.labels.cohort import (
    CohortRole,
    iter_items,
    read_cohort,
    read_cohort_file,
    require_inputs,
)
from loop.labels.reference import Reference, list_references, read_reference
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract, list_exchangeable
from loop.prompts.outputs.judged import MATCHES
from loop.prompts.outputs.mean_answer import EVIDENCE
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.stages import given_texts, stage_item
from loop.prompts.version import CallPlan, PromptVersion, can_exchange, with_contract
from loop.run.asking import EngineOptions, check_engine, find_thinking
from loop.run.execute import Usage
from loop.run.pool_shots import with_shots
from loop.run.reference_implementation import ANSWER, in_published_layout
from loop.run.store import RunRecord
from loop.run.task import check_open
from loop.run.tokens import Count, TokenCounter, find_counter

_FOUND = 2.1
"""Labels of a case that are not absent, without a reference: `rules` on Open-i."""

_NEGATED = 2.6
"""Labels of a case that its text negates by name: `rules` on Open-i."""

_ERRORS = 2.6
"""Errors of a judged pair: radiologists on RadPref."""

_END = 1
"""Tokens that end an answer."""


_ASSUMED = f"{len(EVIDENCE.split())} words of evidence, {_NEGATED} negated labels"


class Expectation(NamedTuple):
    """How often each label will be answered with something to say."""

    found: Mapping[str, float]
    """Label to the share of cases in which it is present or uncertain."""

    negated: float
    """Share of cases in which any one label is negated by name."""

    basis: str
    """Where this comes from, in words."""


def expect_findings(
    workspace: WorkspacePaths, cohort: str, labels: Sequence[str]
) -> Expectation:
    """Return what the newest reference of `cohort` lets expect, else an assumption.

    How often a label occurs in a holdout is not asked: its reference is sealed.
    """
    sealed = read_cohort_file(workspace, cohort).role is CohortRole.HOLDOUT
    if not sealed and list_references(workspace, cohort):
        reference = read_reference(workspace, cohort)
        found = {
            label: _share(reference, label)
            for label in labels
            if label in reference.labels
        }
        if found:
            basis = f"prevalences of {reference.ref}; assumed: {_ASSUMED}"
            rest = sum(found.values()) / len(found)
            shares = {label: found.get(label, rest) for label in labels}
            return Expectation(shares, _NEGATED / len(labels), basis)
    return _assume(labels)


def _assume(labels: Sequence[str]) -> Expectation:
    """Return what is assumed of reports without a reference."""
    basis = f"no reference; assumed: {_FOUND} labels found, {_ASSUMED}"
    shares = dict.fromkeys(labels, _FOUND / len(labels))
    return Expectation(shares, _NEGATED / len(labels), basis)


def expect_errors(categories: Sequence[str]) -> Expectation:
    """Return what is assumed of pairs that a judge is asked about."""
    words = len(EVIDENCE.split())
    basis = (
        f"no counts; assumed: {_ERRORS} errors and {MATCHES} matched findings a pair, "
        f"{words} words each"
    )
    return Expectation(dict.fromkeys(categories, _ERRORS / len(categories)), 0.0, basis)


def _share(reference: Reference, label: str) -> float:
    """Share of the cases somebody looked at in which a label is not absent."""
    counts = reference.counts(label)
    looked = sum(counts.values()) - counts[Mark.MISSING]
    found = counts[Mark.PRESENT] + counts[Mark.UNCERTAIN]
    return found / looked if looked else 0.0


def count_answer(
    contract: str, labels: Sequence[str], expected: Expectation, count: Count
) -> float:
    """Return the tokens of the mean answer about `labels` in `contract`.

    Raises
    ------
    DataError
        There is no such contract.
    """
    parts = get_contract(contract).mean_answer(labels, expected.found, expected.negated)
    return _END + sum(part.times * count(part.text) for part in parts)


class PromptLayout(StrEnum):
    """How the same clinical content is asked."""

    JOINT = "joint"
    PER_LABEL = "per_label"
    REFERENCE = "reference"
    """As the published reference implementation does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one way of asking takes for the whole cohort."""

    layout: PromptLayout
    contract: str
    """Output contract; ``"one digit"`` for the published layout."""

    chosen: bool
    """Whether the prompt version asks this way."""

    requests: int
    """At most: what is stored already, and what is asked twice, is not sent."""

    prompt_tokens: int
    """Of all requests, without the marks of a chat template (about ten a request)."""

    prefix_tokens: int
    """Those of them before the case text: the same in every case."""

    frame_tokens: int
    """Prefix tokens of one case: what a server reads once and then has cached."""

    output_tokens: int
    """Expected, of all answers."""

    cost: float | None
    """In the currency of the model's price; None without a price."""

    @property
    def prefix_share(self) -> float:
        """Share of the prompt tokens that are in the common prefix, 0 to 1."""
        return self.prefix_tokens / self.prompt_tokens

    @property
    def uncached_tokens(self) -> int:
        """Prompt tokens to be read if the cache keeps every frame: each frame once.

        Servers cache whole blocks, so the last block of a frame may be read anew in
        each request besides: up to 15 tokens where a block has 16.
        """
        return self.prompt_tokens - self.prefix_tokens + self.frame_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a prompt version would ask about a cohort, and other ways to ask it."""

    prompt: str
    cohort: str
    engine: str
    cases: int
    characters: int
    """Of all case texts together."""

    counter: TokenCounter
    expectation: Expectation
    price: ModelPrice | None
    shapes: tuple[Shape, ...]
    """The chosen one first, the published layout last, where there is one."""

    thinking: str = DEFAULT_THINKING
    """Level that the model is asked for, see `loop.engines.base.check_thinking`."""

    @property
    def thinking_remark(self) -> str:
        """That no number holds what the model thinks; empty if it is not asked to."""
        if self.thinking in (DEFAULT_THINKING, NO_THINKING):
            return ""
        return (
            f"{self.thinking}: what the model thinks before its answer is not in these "
            "numbers"
        )

    @property
    def chosen(self) -> Shape:
        """How the prompt version asks."""
        return self.shapes[0]

    @property
    def published(self) -> Shape | None:
        """The same content in the published layout, which only asks for labels."""
        last = self.shapes[-1]
        return last if last.layout is PromptLayout.REFERENCE else None

    def times_fewer(self, shape: Shape) -> float | None:
        """How many times the uncached tokens of `shape` the published layout has."""
        if self.published is None:
            return None
        return self.published.uncached_tokens / shape.uncached_tokens


class LayoutPlan(NamedTuple):
    """One way to ask, before anything is counted."""

    layout: PromptLayout
    contract: str
    plan: PromptPlan


class _CohortSize(NamedTuple):
    """What was counted over the cohort."""

    cases: int
    characters: int
    tokens: int
    """Of all case texts, each once."""

    stage_tokens: tuple[int, ...] = ()
    """Of the texts that each call of a first stage is asked about."""


def estimate_run(
    workspace: WorkspacePaths,
    prompt: str | PromptVersion,
    cohort: str,
    *,
    engine: str = "rules",
    limit: int | None = None,
    asking: EngineOptions | None = None,
) -> DryRun:
    """Return what a run would take, without opening the engine or sending anything.

    The cohort is read as a stream. Parameters are those of `prepare_run`. An answer
    has at most as many tokens as `asking` gives it; thoughts are not counted.

    Raises
    ------
    DataError
        The version, the cohort or its contract cannot be used.
    EngineError
        There is no such engine, its name has no model where it needs one, or it cannot
        think as it is asked to.
    ValueError
        `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    check_engine(engine)
    version = read_version(workspace, prompt) if isinstance(prompt, str) else prompt
    version = with_shots(workspace, version)
    members = read_cohort(workspace, cohort)
    check_open(members)
    require_inputs(members, version.ref, given_texts(version.inputs))
    if get_contract(version.contract).task is PromptTask.EXTRACT:
        expectation = expect_findings(workspace, cohort, version.labels)
    else:
        expectation = expect_errors(version.labels)
    items = islice(iter_items(workspace, members), limit)
    return _estimate(
        read_config(workspace),
        version,
        items,
        expectation,
        name=cohort,
        engine=engine,
        asking=asking or EngineOptions(),
    )


def estimate_texts(
    workspace: WorkspacePaths,
    version: PromptVersion,
    name: str,
    items: Iterator[Item],
    *,
    engine: str = "rules",
    asking: EngineOptions | None = None,
) -> DryRun:
    """Return what asking an extractor about texts of no cohort would take.

    Parameters
    ----------
    name
        What the texts are called.
    items
        Read once, as a stream.
    asking
        As for `estimate_run`.

    Raises
    ------
    DataError
        The version's contract cannot be used.
    EngineError
        As of `estimate_run`.
    """
    check_engine(engine)
    return _estimate(
        read_config(workspace),
        version,
        items,
        _assume(version.labels),
        name=name,
        engine=engine,
        asking=asking or EngineOptions(),
    )


def _estimate(
    config: Config,
    version: PromptVersion,
    items: Iterator[Item],
    expectation: Expectation,
    *,
    name: str,
    engine: str,
    asking: EngineOptions,
) -> DryRun:
    thinking = find_thinking(engine, asking)
    model = asked_model(engine)
    counter = find_counter(model, model_revision(engine, config))
    ways = tuple(list_ways(version))
    read = _read_cohort(items, ways[0].plan, counter.count)
    price = config.prices.get(model) if model else None
    return DryRun(
        prompt=version.ref,
        cohort=name,
        engine=engine,
        cases=read.cases,
        characters=read.characters,
        counter=counter,
        expectation=expectation,
        price=price,
        shapes=tuple(
            _priced(
                _shape(way, read, expectation, counter.count, asking.max_tokens),
                price,
                number == 0,
            )
            for number, way in enumerate(ways)
        ),
        thinking=thinking,
    )


class RunCost(NamedTuple):
    """What all answers of a run cost by the prices of today."""

    amount: float
    currency: str


class EngineUse(NamedTuple):
    """What some work that is no run asked of one engine."""

    engine: str
    asked: int = 0
    """Prompts the engine was asked, those that failed included."""

    cached: int = 0
    """Prompts whose answer was there already, among them those that the same work
    asked before it was interrupted."""

    unanswered: int = 0
    """Calls that failed, and of whose tokens nothing is known."""

    used: Usage = Usage()
    """Tokens of all answers, stored ones included, as far as the engine counted."""

    @property
    def requests(self) -> int:
        """Prompts that an answer was wanted for."""
        return self.asked + self.cached

    @property
    def counted(self) -> bool:
        """Whether the tokens of every answer are known."""
        return not _uncounted(self.counts)

    @property
    def counts(self) -> Mapping[str, int]:
        """All of it as a run keeps it."""
        return {
            "asked": self.asked,
            "cached": self.cached,
            "unanswered": self.unanswered,
            **self.used._asdict(),
        }

    def plus(
        self, *, asked: int = 0, cached: int = 0, unanswered: int = 0, used: Usage
    ) -> EngineUse:
        """Return it with more that was asked."""
        return EngineUse(
            self.engine,
            self.asked + asked,
            self.cached + cached,
            self.unanswered + unanswered,
            Usage(*map(sum, zip(self.used, used, strict=True))),
        )


def price_run(run: RunRecord, prices: Mapping[str, ModelPrice]) -> RunCost | None:
    """Return what the answers of `run` cost, those from the store included.

    None without a price for its model, or where the tokens of some answer are not
    known: a sum over the others would be taken for one over all. A call that failed
    has no answer, so it leaves the sum as it is.
    """
    return _price(run.spec.engine, run.counts, prices)


def price_use(use: EngineUse, prices: Mapping[str, ModelPrice]) -> RunCost | None:
    """Return what all answers cost that some work had, as `price_run` does of a run."""
    return _price(use.engine, use.counts, prices)


def _price(
    engine: str, counts: Mapping[str, int], prices: Mapping[str, ModelPrice]
) -> RunCost | None:
    model = asked_model(engine)
    price = prices.get(model) if model else None
    if price is None or _uncounted(counts):
        return None
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    return RunCost(price.cost(*(counts.get(name, 0) for name in names)), price.currency)


def _uncounted(counts: Mapping[str, int]) -> bool:
    """Whether the tokens of some answer are not known, or there is no answer."""
    if "answers" not in counts:
        return True
    calls = counts.get("asked", 0) + counts.get("cached", 0)
    # An earlier version kept no failed calls, only failed items: one call of each.
    failed = counts.get("unanswered", counts.get("failed", 0))
    return calls - failed > counts["answers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSum:
    """The runs of one prompt with one engine in one week, and what they cost."""

    week: str
    """ISO 8601 of when they began, ``2026-W48``, UTC."""

    prompt: str
    """Without its version."""

    engine: str
    """Without secrets of its address."""

    runs: int
    asked: int
    """Prompts the engine was asked."""

    stored: int
    """Prompts whose answer was there already."""

    prompt_tokens: int
    completion_tokens: int
    unpriced: int
    """Runs with a model without a price, or with answers of unknown length."""

    amount: float
    """Of all answers of the others, those from the store included."""

    fresh: float
    """The part of `amount` that these runs asked themselves, by the number of prompts.

    What a run had asked before it was interrupted counts as stored.
    """

    currency: str
    """Empty where nothing has a price."""


def sum_costs(
    runs: Iterable[RunRecord], prices: Mapping[str, ModelPrice]
) -> tuple[CostSum, ...]:
    """Return what runs cost by week, prompt and engine, the newest week first."""
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for run in runs:
        week = "{}-W{:02}".format(*datetime.fromisoformat(run.created).isocalendar())
        prompt = run.spec.prompt.partition("@")[0]
        groups.setdefault((week, prompt, masked(run.spec.engine)), []).append(run)
    sums = [
        _sum_cost(key, found, [price_run(run, prices) for run in found])
        for key, found in groups.items()
    ]
    return tuple(
        sorted(sorted(sums, key=_place), key=lambda one: one.week, reverse=True)
    )


def _place(one: CostSum) -> tuple[str, str]:
    return one.prompt, one.engine


def _sum_cost(
    key: tuple[str, str, str],
    runs: Sequence[RunRecord],
    costs: Sequence[RunCost | None],
) -> CostSum:
    def total(name: str) -> int:
        return sum(run.counts.get(name, 0) for run in runs)

    known = [one for one in costs if one is not None]
    fresh = [
        one.amount * _fresh_share(run)
        for run, one in zip(runs, costs, strict=True)
        if one is not None
    ]
    models = sum(asked_model(run.spec.engine) is not None for run in runs)
    return CostSum(
        week=key[0],
        prompt=key[1],
        engine=key[2],
        runs=len(runs),
        asked=total("asked"),
        stored=total("cached"),
        prompt_tokens=total("prompt_tokens"),
        completion_tokens=total("completion_tokens"),
        unpriced=models - len(known),
        amount=sum(one.amount for one in known),
        fresh=sum(fresh),
        currency=known[0].currency if known else "",
    )


def _fresh_share(run: RunRecord) -> float:
    asked, stored = run.counts.get("asked", 0), run.counts.get("cached", 0)
    return asked / (asked + stored) if asked + stored else 1.0


def asked_model(engine: str) -> str | None:
    """Return the model an engine asks; None where there is none to count for."""
    found = find_model(engine)
    return found.model if found else None


def model_revision(engine: str, config: Config) -> str | None:
    """Return the revision of the model that an engine asks, by these settings."""
    scheme = engine.partition(":")[0]
    serving = config.engines.vllm if scheme == "vllm" else config.engines.openai
    return serving.revision


def list_ways(version: PromptVersion) -> Iterator[LayoutPlan]:
    """Yield the version's own way first, then the others, the published one last.

    A version that does not extract labels is asked in its own call plan only.
    """
    chosen = (version.plan, version.contract)
    own = get_contract(version.contract)
    extracts = own.task is PromptTask.EXTRACT
    names = list_exchangeable(own) if can_exchange(version) else (version.contract,)
    plans = tuple(CallPlan) if extracts else (version.plan,)
    pairs = [(plan, name) for plan in plans for name in names]
    for plan, name in (chosen, *(pair for pair in pairs if pair != chosen)):
        contract = get_contract(name)
        asked = version
        if name != version.contract:
            asked = with_contract(version, name, contract.instruction)
        calls = plan_prompts(replace(asked, plan=plan), contract.schema)
        yield LayoutPlan(PromptLayout(plan), name, calls)
    if not extracts:
        return
    published = plan_prompts(in_published_layout(version), lambda fields: {})
    yield LayoutPlan(PromptLayout.REFERENCE, "one digit", published)


def _read_cohort(items: Iterator[Item], plan: PromptPlan, count: Count) -> _CohortSize:
    """Count the case texts once: every way of asking inserts the same ones.

    What a first stage will find is not known: it is taken to be as long as the text
    that it reads, or of two texts the first.
    """
    cases = characters = tokens = 0
    call = plan.calls[0]
    stages = [0] * len(plan.stages)
    for item in items:
        own = item.variables
        for number, stage in enumerate(plan.stages):
            read = tuple(stage_item(stage.name, item).variables.values())
            stages[number] += sum(map(count, read))
            own = {**own, stage.name: read[0]}
        call.prompt(replace(item, variables=own))  # says which input a case lacks
        shown = call.put_in(own)
        texts = [shown[name] for name, _ in call.pieces]
        cases += 1
        characters += sum(map(len, texts))
        tokens += sum(map(count, texts))
    return _CohortSize(cases, characters, tokens, tuple(stages))


def _shape(
    way: LayoutPlan,
    read: _CohortSize,
    expected: Expectation,
    count: Count,
    max_tokens: int,
) -> Shape:
    frames = rest = 0
    output = 0.0
    for call in way.plan.calls:
        frames += sum(count(message.content) for message in call.frame.messages)
        rest += sum(count(after) for _, after in call.pieces)
        output += _count_output(way, call.frame.fields, expected, count)
    calls = len(way.plan.calls)
    tokens = calls * read.tokens + sum(read.stage_tokens)
    for stage in way.plan.stages:
        frame = stage.call.frame
        frames += sum(count(message.content) for message in frame.messages)
        rest += sum(count(after) for _, after in stage.call.pieces)
        parts = stage.contract.mean_answer(
            frame.fields, expected.found, expected.negated
        )
        output += _END + sum(part.times * count(part.text) for part in parts)
    prefix = frames * read.cases
    requests = len(way.plan.names) * read.cases
    return Shape(
        layout=way.layout,
        contract=way.contract,
        chosen=False,
        requests=requests,
        prompt_tokens=prefix + rest * read.cases + tokens,
        prefix_tokens=prefix,
        frame_tokens=frames,
        output_tokens=min(round(output * read.cases), max_tokens * requests),
        cost=None,
    )


def _count_output(
    way: LayoutPlan, fields: tuple[str, ...], expected: Expectation, count: Count
) -> float:
    if way.layout is PromptLayout.REFERENCE:
        return count(ANSWER) + 1
    return count_answer(way.contract, fields, expected, count)


def _priced(shape: Shape, price: ModelPrice | None, chosen: bool) -> Shape:
    """Return `shape` with what it costs where the frames stay cached."""
    if price is None:
        return replace(shape, chosen=chosen)
    cached = shape.prompt_tokens - shape.uncached_tokens
    cost = price.cost(shape.prompt_tokens, shape.output_tokens, cached)
    return replace(shape, chosen=chosen, cost=cost)

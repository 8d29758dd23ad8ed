"""What a run would ask and cost, counted without asking anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from loop.core.config import Config, ModelPrice, read_config
from loop.core.paths import WorkspacePaths
from loop.core.records import Item, Mark
from loop.engines.base import split_name
from loop.labels.cohort import CohortRole, iter_items, read_cohort, read_cohort_file
from loop.labels.reference import Reference, list_references, read_reference
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import CONTRACTS, get_contract
from loop.prompts.render import PromptPlan, plan_prompts
from loop.prompts.version import CallPlan, PromptVersion, can_exchange, with_contract
from loop.run.asking import check_engine
from loop.run.reference_implementation import ANSWER, in_published_layout
from loop.run.task import check_open
from loop.run.tokens import Count, TokenCounter, find_counter

EVIDENCE = "mild prominence of the right hilum"
"""What an answer is taken to quote for one label: six words."""

_FOUND = 2.1
"""Labels of a case that are not absent, without a reference: `rules` on Open-i."""

_NEGATED = 2.6
"""Labels of a case that its text negates by name: `rules` on Open-i."""

_END = 1
"""Tokens that end an answer."""


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
    negated = _NEGATED / len(labels)
    assumed = f"{len(EVIDENCE.split())} words of evidence, {_NEGATED} negated labels"
    sealed = read_cohort_file(workspace, cohort).role is CohortRole.HOLDOUT
    if not sealed and list_references(workspace, cohort):
        reference = read_reference(workspace, cohort)
        found = {
            label: _share(reference, label)
            for label in labels
            if label in reference.labels
        }
        if found:
            basis = f"prevalences of {reference.ref}; assumed: {assumed}"
            rest = sum(found.values()) / len(found)
            shares = {label: found.get(label, rest) for label in labels}
            return Expectation(shares, negated, basis)
    basis = f"no reference; assumed: {_FOUND} labels found, {assumed}"
    return Expectation(dict.fromkeys(labels, _FOUND / len(labels)), negated, basis)


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
    ValueError
        Nobody has said here what an answer in that contract looks like.
    """
    if contract == "findings":
        return _END + _count_list(labels, expected, count)
    if contract in ("label_values", "binary"):
        return _END + _count_values(labels, expected, count)
    raise ValueError(
        f"contract must be one of {', '.join(CONTRACTS)}, got {contract!r}"
    )


def _count_values(labels: Sequence[str], expected: Expectation, count: Count) -> float:
    entry = {"value": "present", "evidence": EVIDENCE}
    longer = count(json.dumps(entry)) - count('"absent"')
    plain = count(json.dumps(dict.fromkeys(labels, "absent")))
    often = sum(expected.found[label] + expected.negated for label in labels)
    return plain + often * longer


def _count_list(labels: Sequence[str], expected: Expectation, count: Count) -> float:
    entries = (
        expected.found[label]
        * count(
            json.dumps({"label": label, "value": "present", "evidence": EVIDENCE}) + ","
        )
        for label in labels
    )
    return count(json.dumps({"findings": []})) + sum(entries)


_MILLION = 1_000_000


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
    """The chosen one first, the published layout last."""

    @property
    def chosen(self) -> Shape:
        """How the prompt version asks."""
        return self.shapes[0]

    @property
    def published(self) -> Shape:
        """The same content in the published layout."""
        return self.shapes[-1]

    def times_fewer(self, shape: Shape) -> float:
        """How many times the uncached tokens of `shape` the published layout has."""
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


def estimate_run(
    workspace: WorkspacePaths,
    prompt: str | PromptVersion,
    cohort: str,
    *,
    engine: str = "rules",
    limit: int | None = None,
) -> DryRun:
    """Return what a run would take, without opening the engine or sending anything.

    The cohort is read as a stream. Parameters are those of `prepare_run`.

    Raises
    ------
    DataError
        The version, the cohort or its contract cannot be used.
    EngineError
        There is no such engine, or its name has no model where it needs one.
    ValueError
        `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    check_engine(engine)
    version = read_version(workspace, prompt) if isinstance(prompt, str) else prompt
    members = read_cohort(workspace, cohort)
    check_open(members)
    config = read_config(workspace)
    model = asked_model(engine)
    counter = find_counter(model, _revision(engine, config))
    ways = tuple(list_ways(version))
    items = islice(iter_items(workspace, members), limit)
    read = _read_cohort(items, ways[0].plan, counter.count)
    expectation = expect_findings(workspace, cohort, version.labels)
    price = config.prices.get(model) if model else None
    return DryRun(
        prompt=version.ref,
        cohort=cohort,
        engine=engine,
        cases=read.cases,
        characters=read.characters,
        counter=counter,
        expectation=expectation,
        price=price,
        shapes=tuple(
            _priced(_shape(way, read, expectation, counter.count), price, number == 0)
            for number, way in enumerate(ways)
        ),
    )


def asked_model(engine: str) -> str | None:
    """Return the model an engine asks; None where there is none to count for."""
    scheme, _, rest = engine.partition(":")
    return split_name(rest).model if scheme in ("openai", "vllm") else None


def _revision(engine: str, config: Config) -> str | None:
    scheme = engine.partition(":")[0]
    serving = config.engines.vllm if scheme == "vllm" else config.engines.openai
    return serving.revision


def list_ways(version: PromptVersion) -> Iterator[LayoutPlan]:
    """Yield the version's own way first, then the others, the published one last."""
    chosen = (version.plan, version.contract)
    names = CONTRACTS if can_exchange(version) else (version.contract,)
    pairs = [(plan, name) for plan in CallPlan for name in names]
    for plan, name in (chosen, *(pair for pair in pairs if pair != chosen)):
        contract = get_contract(name)
        asked = version
        if name != version.contract:
            asked = with_contract(version, name, contract.instruction)
        calls = plan_prompts(replace(asked, plan=plan), contract.schema)
        yield LayoutPlan(PromptLayout(plan), name, calls)
    published = plan_prompts(in_published_layout(version), lambda fields: {})
    yield LayoutPlan(PromptLayout.REFERENCE, "one digit", published)


def _read_cohort(items: Iterator[Item], plan: PromptPlan, count: Count) -> _CohortSize:
    """Count the case texts once: every way of asking inserts the same ones."""
    cases = characters = tokens = 0
    call = plan.calls[0]
    for item in items:
        call.prompt(item)  # says which input a case lacks
        texts = [item.variables[name] for name, _ in call.pieces]
        cases += 1
        characters += sum(map(len, texts))
        tokens += sum(map(count, texts))
    return _CohortSize(cases, characters, tokens)


def _shape(
    way: LayoutPlan, read: _CohortSize, expected: Expectation, count: Count
) -> Shape:
    frames = rest = 0
    output = 0.0
    for call in way.plan.calls:
        frames += sum(count(message.content) for message in call.frame.messages)
        rest += sum(count(after) for _, after in call.pieces)
        output += _count_output(way, call.frame.fields, expected, count)
    calls = len(way.plan.calls)
    prefix = frames * read.cases
    return Shape(
        layout=way.layout,
        contract=way.contract,
        chosen=False,
        requests=calls * read.cases,
        prompt_tokens=prefix + rest * read.cases + calls * read.tokens,
        prefix_tokens=prefix,
        frame_tokens=frames,
        output_tokens=round(output * read.cases),
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
    cached_price = price.input if price.cached_input is None else price.cached_input
    cached = shape.prompt_tokens - shape.uncached_tokens
    cost = (
        shape.uncached_tokens * price.input
        + cached * cached_price
        + shape.output_tokens * price.output
    ) / _MILLION
    return replace(shape, chosen=chosen, cost=cost)

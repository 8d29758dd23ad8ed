"""What a search would ask and cost at most, counted without asking anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from loop.core.config import ModelPrice, read_config
from loop.core.paths import WorkspacePaths
from loop.optimize.gepa_search import MINIBATCH, question_templates
from loop.optimize.ground import SearchGround
from loop.optimize.nearest import list_approved
from loop.optimize.nested_search import MOST_COMPARED, MOST_KEPT
from loop.optimize.objective import read_search_ground
from loop.optimize.proposals import INSTRUCTIONS, list_components
from loop.optimize.search import (
    find_base,
    not_estimable,
    require_labels_of_text,
    split_ground,
)
from loop.optimize.search_labels import FAILING, require_labels
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.optimize.splits import NestedSplit
from loop.optimize.terms import LEVELS
from loop.optimize.terms_search import CURVE_POINTS
from loop.prompts.version import PromptVersion
from loop.review.status import read_kept
from loop.run.cost import DryRun, asked_model, estimate_run
from loop.run.store import open_store
from loop.run.task_fields import task_of
from loop.run.tokens import find_counter

_MOST_MIPRO: Final = 6
"""Guides that MIPROv2 proposes for one label at most."""


class SearchedPart(NamedTuple):
    """One part of the nested splits."""

    name: str
    cases: tuple[int, ...]
    """Of each split."""

    positives: tuple[int, int]
    """Fewest and most positives of a label, over labels that are scored and splits."""


class AskingForecast(NamedTuple):
    """What one engine is asked at most."""

    engine: str
    requests: int
    prompt_tokens: int
    """0 of `rules`, which reads no tokens; so are those of the output."""

    output_tokens: int
    cost: float | None
    """In the currency of the model's price; None without one."""

    currency: str


class SearchForecast(NamedTuple):
    """What a search would take."""

    prompt: str
    cohort: str
    optimizer: Optimizer
    labels: tuple[str, ...]
    """As asked for, none for all: which fail is known once the version was asked."""

    not_estimable: tuple[str, ...]
    """Labels below the protocol's minimum of positives."""

    cases: int
    parts: tuple[SearchedPart, ...]
    answering: AskingForecast
    reflecting: AskingForecast | None
    """None for an optimizer that asks no language model what to propose."""

    exact: bool
    """Whether tokens were counted with the models' own tokenizers."""


def forecast_search(
    workspace: WorkspacePaths, request: SearchRequest
) -> SearchForecast:
    """Return what a search would ask at most; nothing is asked, and nothing recorded.

    The engine that reflects need not be named: its questions are counted all the same.
    What is stored already is not asked again, and a search ends before its budget
    where nothing is wrong any more: most searches take less.

    Raises
    ------
    DataError
        The prompt or the cohort cannot be searched.
    ConflictError
        The prompt is not the newest version and this is no study.
    EngineError
        An engine is not there, or cannot reflect.
    """
    if request.reflect:
        request.optimizer.check_reflects(request.reflect)
    base = find_base(workspace, request)
    ground = read_search_ground(workspace, base, request.cohort)
    require_labels(ground, request.wanted)
    if request.optimizer is Optimizer.TERMS:
        require_labels_of_text(ground)
    splits = split_ground(ground, request)
    run = estimate_run(workspace, base, request.cohort, engine=request.engine)
    scored = ground.scored
    parts = []
    for place, name in enumerate(("search", "select", "estimate")):
        rows = [split[place] for split in splits]
        found = [(ground.truth[one] == 1).sum(axis=0)[scored] for one in rows]
        counts = np.concatenate(found) if scored.any() else np.array([0])
        parts.append(
            SearchedPart(
                name,
                tuple(len(one) for one in rows),
                (int(counts.min()), int(counts.max())),
            )
        )
    labels = [one for one in request.wanted if one != FAILING]
    if FAILING in request.wanted or not labels:
        labels = list(ground.labels)
    if request.optimizer is Optimizer.TERMS:
        asked = _count_terms(splits, run.cases)
    else:
        exemplars = _count_exemplars(workspace, base, request, labels)
        asked = _count_ranked(
            request, splits, cases=run.cases, labels=len(labels), exemplars=exemplars
        )
    answering, exact = _answering(run, asked)
    reflecting = None
    if request.optimizer.reflects:
        reflecting, known = _reflecting(workspace, request, ground, labels)
        exact = exact and known
    return SearchForecast(
        prompt=base.ref,
        cohort=request.cohort,
        optimizer=request.optimizer,
        labels=request.wanted,
        not_estimable=not_estimable(ground),
        cases=len(ground.items),
        parts=tuple(parts),
        answering=answering,
        reflecting=reflecting,
        exact=exact,
    )


def _answering(run: DryRun, asked: int) -> tuple[AskingForecast, bool]:
    """Return what asking about so many cases takes, and if tokens are exact."""
    times = asked / run.cases
    shape, free = run.chosen, run.engine.partition(":")[0] == "rules"
    forecast = AskingForecast(
        engine=run.engine,
        requests=round(shape.requests * times),
        prompt_tokens=0 if free else round(shape.prompt_tokens * times),
        output_tokens=0 if free else round(shape.output_tokens * times),
        cost=None if shape.cost is None else shape.cost * times,
        currency=run.price.currency if run.price else "",
    )
    return forecast, free or run.counter.exact


def _count_terms(splits: Sequence[NestedSplit], cases: int) -> int:
    """Return the cases that a search for terms asks about at most.

    In each split every level on `select`, what it ends with on all parts, and the
    points of the curve on `estimate`; on all cases the version itself and the curve.
    """
    return (CURVE_POINTS + 2) * cases + sum(
        len(one.search)
        + (len(LEVELS) + 1) * len(one.select)
        + (CURVE_POINTS + 1) * len(one.estimate)
        for one in splits
    )


def _count_ranked(
    request: SearchRequest,
    splits: Sequence[NestedSplit],
    *,
    cases: int,
    labels: int,
    exemplars: int,
) -> int:
    """Return the cases that a search for whole wordings asks about at most.

    The version itself about every case; in each search what the optimizer scores, and
    the wordings that are equally good on `select` on `search` as well; then what was
    found in each split, and what is kept, about every case, before and after guides
    that lose are put back. With `rules` all cases say what is kept.
    """
    optimizer, first = request.optimizer, splits[0]
    sizes = [(len(one.search), len(one.select)) for one in splits]
    sizes.append((len(first.search) + len(first.estimate), len(first.select)))
    asked = cases + 2 * (len(splits) + MOST_KEPT) * cases
    if request.engine.partition(":")[0] == "rules":
        asked += MOST_COMPARED * cases
    for search, select in sizes:
        if optimizer is Optimizer.GEPA:
            # Its last round may begin with one case of the budget left.
            wordings = request.limit // select + 1
            asked += request.limit + 2 * MINIBATCH + select
        elif optimizer is Optimizer.MIPRO:
            wordings = max(2, request.limit // select)
            asked += wordings * select + _MOST_MIPRO * exemplars
        else:
            # One a label, and one with all.
            wordings = labels + 1
            asked += wordings * select
            asked += exemplars if optimizer is Optimizer.BOOTSTRAP else 0
        asked += wordings * search
    return asked


def _count_exemplars(
    workspace: WorkspacePaths,
    base: PromptVersion,
    request: SearchRequest,
    labels: Sequence[str],
) -> int:
    """Return how many approved exemplars there are, which DSPy asks about."""
    with open_store(workspace) as store:
        kept = read_kept(store, workspace, request.cohort)
    approved = list_approved(workspace, base, kept)
    return sum(len(approved.get(label, ())) for label in labels)


def _reflecting(
    workspace: WorkspacePaths,
    request: SearchRequest,
    ground: SearchGround,
    labels: Sequence[str],
) -> tuple[AskingForecast, bool]:
    """Return what the reflecting engine is asked at most, and if tokens are exact."""
    searches = request.splits + 1
    components = list_components(ground.version)
    names = [one for one in labels if one in components]
    counter = find_counter(asked_model(request.reflect))
    guide = max(counter.count(components[name]) for name in names)
    asked = question_templates([*names, INSTRUCTIONS], task_of(ground.version))
    task = max(map(counter.count, asked.values()))
    rows = range(len(ground.items))
    texts = [text for row in rows for text in ground.texts(row).values()]
    text = sum(map(counter.count, texts)) / len(ground.items)
    if request.optimizer is Optimizer.GEPA:
        questions = searches * (request.limit // MINIBATCH + 1)
        shown = guide + task + MINIBATCH * text
    else:
        questions = searches * _MOST_MIPRO * len(names)
        shown = guide + task
    price = _price(workspace, request.reflect)
    prompt, output = round(questions * shown), round(questions * guide)
    forecast = AskingForecast(
        engine=request.reflect or "any, with --reflect",
        requests=questions,
        prompt_tokens=prompt,
        output_tokens=output,
        cost=price.cost(prompt, output, 0) if price else None,
        currency=price.currency if price else "",
    )
    return forecast, counter.exact


def _price(workspace: WorkspacePaths, engine: str) -> ModelPrice | None:
    model = asked_model(engine)
    return read_config(workspace).prices.get(model) if model else None

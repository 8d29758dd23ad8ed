"""Whether the model behind a name is still the one whose answers are stored.

A server tells what it calls its model, seldom which weights it holds. Before stored
answers are used with new ones, a few stored prompts are asked again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from loop.core.errors import EngineError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Prompt
from loop.labels.cohort import iter_items, read_cohort
from loop.prompts.outputs.base import Contract
from loop.prompts.render import PromptPlan, space_out
from loop.prompts.version import PromptVersion
from loop.run.asking import HeldEngine
from loop.run.manifest import read_manifest
from loop.run.spec import undrawn
from loop.run.store import RunRecord, Store
from loop.run.task import StoredRun, Task, prepare_run
from loop.stats.power import exact_p

PROMPTS = 20
"""Stored prompts that are asked again, twice each."""

ALPHA = 0.025
"""Level of each of two tests: of the words, and of the values."""


class Canary(NamedTuple):
    """What became of stored prompts that were asked twice more."""

    run: str
    """Id of the stored run."""

    prompts: int
    words: tuple[int, int]
    """Prompts of which only the stored answer differs in its words, and of which only
    one of the two new ones does."""

    values: tuple[int, int]
    """The same for the values that were read from it."""

    @property
    def changed(self) -> bool:
        """Whether the stored answers are the odd ones out too often for chance.

        Of three answers by one model each is as likely to be the one that differs from
        the other two; the stored one is so with a chance of one third, however much
        the model wavers.
        """
        return any(
            exact_p(stored, stored + new, 1 / 3) <= ALPHA
            for stored, new in (self.words, self.values)
        )


def require_same_model(
    workspace: WorkspacePaths,
    store: Store,
    version: PromptVersion,
    cohort: str,
    engine: HeldEngine,
    draws: Collection[int],
    actor: Actor,
) -> Canary | None:
    """Ask some stored prompts of `version` again, and return what came of it.

    That the model changed is written into the ledger, once for a stored run.

    Parameters
    ----------
    draws
        Draws of `version` on `cohort` whose stored answers are to be used.
    actor
        Who asks.

    Returns
    -------
    Canary or None
        None where nothing is stored that would be used.

    Raises
    ------
    EngineError
        The stored answers are another model's.
    """
    task = prepare_run(workspace, version.ref, cohort, engine=engine)
    run = _find_stored(workspace, store, task, engine, draws)
    if run is None:
        return None
    canary = _ask(workspace, task, engine, run)
    if not canary.changed:
        return canary
    odd = max(canary.words[0], canary.values[0])
    _record(workspace, engine, cohort, canary, actor)
    raise EngineError(
        f"the model behind {engine.name} has changed: of {canary.prompts} prompts of "
        f"run {run.id} that were asked twice more, {odd} are answered alike now and "
        "otherwise then. Its stored answers cannot be compared with new ones. Name "
        "what answers now with `revision` in .ranloop/config.yaml (any words, such as "
        "the date), so that everything is asked again."
    )


def _record(
    workspace: WorkspacePaths,
    engine: HeldEngine,
    cohort: str,
    canary: Canary,
    actor: Actor,
) -> None:
    known = (
        entry.action == "model_changed" and entry.payload.get("run") == canary.run
        for entry in read_ledger(workspace.ledger)
    )
    if any(known):
        return
    event = Event(
        action="model_changed",
        subject=engine.name,
        reason="stored answers are not those of the model that answers now",
        payload={
            "run": canary.run,
            "cohort": cohort,
            "prompts": canary.prompts,
            "other_words": canary.words[0],
            "other_values": canary.values[0],
        },
    )
    append_event(workspace.ledger, event, actor)


def _find_stored(
    workspace: WorkspacePaths,
    store: Store,
    task: Task,
    engine: HeldEngine,
    draws: Collection[int],
) -> RunRecord | None:
    """Return the newest finished run whose answers `engine` would take for its own."""
    wanted, identity = task.spec, dict(engine.identity())
    for run in store.find_runs(finished=True):
        spec = run.spec
        same = (
            spec.draw in draws
            and spec.engine == wanted.engine
            and spec.prompt_digest == wanted.prompt_digest
            and spec.cohort_digest == wanted.cohort_digest
            and undrawn(spec) == dict(wanted.parameters)
        )
        if same and read_manifest(workspace, run.id)["engine_identity"] == identity:
            return run
    return None


def _ask(
    workspace: WorkspacePaths, task: Task, engine: HeldEngine, run: RunRecord
) -> Canary:
    """Ask `PROMPTS` prompts of `run` twice more; which ones depends on its id."""
    draw, rng = run.spec.draw, random.Random(run.id)
    cohort = read_cohort(workspace, run.spec.cohort)
    ids = [case.case_id for case in cohort.cases[: run.spec.limit]]
    chosen = set(rng.sample(ids, min(PROMPTS, len(ids))))
    plan = space_out(task.plan, draw)
    prompts = [
        # Of a judge in stages the first: what it asks later depends on that answer.
        rng.choice([one.prompt(item) for one in plan.stages] or plan(item))
        for item in iter_items(workspace, cohort)
        if item.id in chosen
    ]
    with StoredRun(workspace, run.id, plan.names) as archive:
        stored = archive.find(prompts)
    asked = engine.redraw(draw) if draw else engine
    answers = [stored, *(_answers(asked.complete(prompts), prompts) for _ in range(2))]
    complete = [
        (prompt, three)
        for prompt, *three in zip(prompts, *answers, strict=True)
        if all(one is not None and one.finish_reason != "error" for one in three)
    ]
    return Canary(
        run=run.id,
        prompts=len(complete),
        words=_count_odd(complete, lambda _, answer: answer.text),
        values=_count_odd(complete, _reader(task.work.contract, plan)),
    )


def _answers(
    completions: Iterable[tuple[int, Completion]], prompts: Sequence[Prompt]
) -> list[Completion | None]:
    found = dict(completions)
    return [found.get(number) for number in range(len(prompts))]


_Read = Callable[[Prompt, Completion], object]


def _reader(contract: Contract, plan: PromptPlan) -> _Read:
    """Return what reads the values of an answer; what cannot be read is one of them."""
    stages = {one.name: one.contract for one in plan.stages}

    def read(prompt: Prompt, answer: Completion) -> object:
        reads = stages.get(prompt.frame.call, contract)
        reading = reads.read(answer.text, prompt.frame.fields, prompt.item)
        fields = reading.fields or {}
        return {name: str(field.value) for name, field in fields.items()}

    return read


def _count_odd(
    complete: Sequence[tuple[Prompt, Sequence[Completion | None]]], read: _Read
) -> tuple[int, int]:
    """Return how often only the stored answer differs, and how often only a new one."""
    stored = new = 0
    for prompt, three in complete:
        then, first, second = (read(prompt, one) for one in three if one is not None)
        stored += first == second != then
        new += first != second and then in (first, second)
    return stored, new

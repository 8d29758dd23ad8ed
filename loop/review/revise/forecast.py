"""What a check would ask and cost, and what it could find: nothing is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.evaluate.inputs import read_inputs
from loop.evaluate.protocol import read_protocol
from loop.evaluate.stability import measure_stability
from loop.labels.reference import Reference, read_reference
from loop.prompts.catalog import read_version
from loop.review.revise.begin import require_dev
from loop.review.revise.draft_files import read_about, read_line
from loop.review.revise.draws import ShareName, find_least_loss
from loop.review.revise.run_check import Examination, choose_looks
from loop.run.asking import choose_engine, has_chance
from loop.run.canary import PROMPTS
from loop.run.cost import estimate_run
from loop.run.manifest import find_run
from loop.stats.paired import spend_alpha

ASSUMED_CHURN = 0.02
"""Share of answers taken to differ between two draws where nobody has measured it."""


class LeastLoss(NamedTuple):
    """What loss of one share a check would find."""

    label: str
    share: ShareName
    n: int
    least: float | None
    """About the smallest share of the cases; None where not even all would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A check that was not made."""

    parent: str
    draft: str
    """The same as `parent` while no draft is made; it is then taken for as long."""

    cohort: str
    engine: str
    draws: int
    """Of each version at the first look."""

    max_draws: int
    """Of each version at the last look, if the ones before leave it undecided."""

    cases: int
    requests: int
    """At the first look, at most: what is stored already is not sent."""

    prompt_tokens: int
    output_tokens: int
    cost: float | None
    """None without a price of the model."""

    currency: str
    counted: str
    """How exactly tokens were counted, in words."""

    churn: str
    """Where the churn comes from, in words; empty for an engine without chance."""

    losses: tuple[LeastLoss, ...]
    """Empty for an engine without chance: it shows every answer that changed."""


def forecast_check(
    workspace: WorkspacePaths, prompt: str, how: Examination | None = None
) -> Forecast:
    """Return what checking the draft `prompt` would take and could find.

    Parameters
    ----------
    prompt
        A draft, or a version of which one is to be made.

    Raises
    ------
    DataError
        There is no such prompt, or nothing names its cohort.
    EngineError
        There is no such engine.
    """
    how = how or Examination()
    draft = parent = read_version(workspace, prompt)
    named = how.cohort
    if draft.draft:
        parent = read_line(workspace, prompt).parent
        named = named or read_about(workspace, draft).cohort
    cohort = require_dev(workspace, named)
    protocol = read_protocol(workspace)
    chance = has_chance(choose_engine(workspace, how.engine, how.asking).engine)
    looks = choose_looks(protocol, how.draws, how.max_draws) if chance else (1,)
    draws = looks[0]
    runs = [
        estimate_run(workspace, one.ref, cohort.name, engine=how.engine)
        for one in (parent, draft)
    ]
    shapes = [one.chosen for one in runs]
    costs = [one.cost for one in shapes if one.cost is not None]
    price = runs[0].price
    churn, basis = _find_churn(workspace, parent.ref, cohort.name, how.engine)
    losses: tuple[LeastLoss, ...] = ()
    if chance:
        reference = read_reference(workspace, cohort.name)
        level = spend_alpha(protocol.alpha, 1)
        losses = _find_losses(reference, churn, draws, level)
    return Forecast(
        parent=parent.ref,
        draft=draft.ref,
        cohort=cohort.name,
        engine=how.engine,
        draws=draws,
        max_draws=looks[-1],
        cases=runs[0].cases,
        requests=draws * sum(one.requests for one in shapes)
        + (2 * min(PROMPTS, runs[0].cases) if chance else 0),
        prompt_tokens=draws * sum(one.prompt_tokens for one in shapes),
        output_tokens=draws * sum(one.output_tokens for one in shapes),
        cost=draws * sum(costs) if len(costs) == len(shapes) else None,
        currency=price.currency if price else "",
        counted=runs[0].counter.remark,
        churn=basis if chance else "",
        losses=losses,
    )


def _find_churn(
    workspace: WorkspacePaths, parent: str, cohort: str, engine: str
) -> tuple[dict[str, float], str]:
    """Return how often two draws of each label differ, where it was measured."""
    assumed = f"assumed: {100 * ASSUMED_CHURN:g} % of answers differ between two draws"
    try:
        run = find_run(workspace, f"latest:{parent}:{cohort}")
    except DataError:
        return {}, assumed
    inputs = read_inputs(workspace, run.id)
    stability = measure_stability(workspace, inputs)
    if run.spec.engine != engine or stability is None:
        return {}, assumed
    rates = {
        label: flips.disagreement
        for label, flips in zip(inputs.pairs.labels, stability.labels, strict=True)
        if flips.disagreement is not None
    }
    return rates, f"measured over {stability.draws} draws of {parent}"


def _find_losses(
    reference: Reference, churn: dict[str, float], draws: int, alpha: float
) -> tuple[LeastLoss, ...]:
    """Return what each share of each label could show; corrected over all of them.

    Between means over k draws a case differs with a variance of the share of draws
    that differ, over k: half of it from each version.
    """
    cases = [
        (label, share, sum(counts[mark] for mark in marks))
        for label in reference.labels
        for counts in [reference.counts(label)]
        for share, marks in (
            (ShareName.SENSITIVITY, (Mark.PRESENT,)),
            (ShareName.SPECIFICITY, (Mark.ABSENT, Mark.NOT_CODED)),
        )
    ]
    tests = sum(n > 0 for _, _, n in cases)
    return tuple(
        LeastLoss(
            label,
            share,
            n,
            find_least_loss(
                n * churn.get(label, ASSUMED_CHURN) / draws, n, alpha / tests
            ),
        )
        for label, share, n in cases
        if n
    )

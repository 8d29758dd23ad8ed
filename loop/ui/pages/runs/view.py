"""What the page Runs shows: runs, jobs, the cases of a run, runs side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import gradio as gr

from loop.core.config import ModelPrice, read_config
from loop.core.people.users import Right
from loop.core.records import Status, ValueCode
from loop.engines.base import masked
from loop.evaluate.compare import AnswerDifference, LabelChange, list_differences
from loop.evaluate.protocol import list_policies
from loop.review.job_work import JobPart
from loop.run.cost import CostSum, asked_model, price_run, sum_costs
from loop.run.jobs import JobRecord, JobRequest, JobState, list_jobs
from loop.run.prune import Pruned
from loop.run.store import RunRecord
from loop.run.trace import UnansweredCause, read_unanswered
from loop.ui.context import AppContext
from loop.ui.html import notice, show
from loop.ui.pages.base import SAME
from loop.ui.pages.runs.state import (
    NEWS_SHOWN,
    ComparedRuns,
    RunsPlace,
    find_runs,
    require_shown,
)
from loop.ui.wiring import Visit

ON_A_PAGE = 50

CASES_SHOWN = 100
"""Cases of a run, or of a cause, that are listed at once."""

CAUSES_SHOWN = 8
"""Causes that are listed at once, the most frequent ones."""

JOBS_SHOWN = 10

COSTS_SHOWN = 200
"""Weeks, prompts and engines whose costs are listed."""


class RunsOutputs(NamedTuple):
    """What each component of the page shows."""

    place: Any = SAME
    news: Any = SAME
    form: Any = SAME
    kind: Any = SAME
    subject: Any = SAME
    engine: Any = SAME
    engines: Any = SAME
    draws: Any = SAME
    estimate: Any = SAME
    jobs: Any = SAME
    timer: Any = SAME
    detail: Any = SAME
    finder: Any = SAME
    differences: Any = SAME
    trace: Any = SAME
    runs: Any = SAME
    costs: Any = SAME
    pruned: Any = SAME


class RunRow(NamedTuple):
    """One run in the table."""

    run: RunRecord
    engine: str
    """Its name without secrets."""

    policy: str
    """What uncertain answers counted as when it began; empty where it is unknown."""

    cost: str
    """Of all its answers; empty without a price."""


class JobRow(NamedTuple):
    """One job in the table."""

    job: JobRecord
    pace: str
    """Rate and time left, while it goes on."""


class ComparedLabel(NamedTuple):
    """One label of runs side by side."""

    name: str
    label: str
    present: tuple[int, ...]
    """In how many cases each run says so."""

    changes: tuple[LabelChange, ...]
    """Of each run against the first; none without a reference."""

    differing: int
    """Cases on which not all runs say the same."""


class AnswerCell(NamedTuple):
    """What one run said of one case and label."""

    run: str
    words: str
    right: bool | None
    """None where the reference decides nothing, or the answer does not."""


class DifferenceRow(NamedTuple):
    """One case and label on which runs differ."""

    case_id: str
    label: str
    reference: str
    cells: tuple[AnswerCell, ...]


def render_jobs(visit: Visit, said: str = "") -> tuple[str, Any]:
    """Return the table of jobs, and a timer that looks again while one goes on."""
    context = visit.context
    context.queue.dispatch()
    going = list_jobs(context.store, states=(JobState.QUEUED, JobState.RUNNING))
    latest = list_jobs(context.store, most=JOBS_SHOWN)
    # However old it is, a job that goes on is shown.
    found = {job.number: job for job in (*latest, *going)}
    shown = show(
        "runs_jobs.html.jinja",
        jobs=[
            JobRow(job, pace_of(job, context.now()))
            for _, job in sorted(found.items(), reverse=True)
        ],
        may=visit.user.may(Right.REVISE),
        said=said,
    )
    return shown, gr.Timer(active=bool(going))


def render_news(ended: Sequence[JobRecord]) -> str:
    """Return how jobs ended since a person last looked; empty without any."""
    if not ended:
        return ""
    return show("runs_news.html.jinja", jobs=ended, most=NEWS_SHOWN)


def render_estimate(wanted: JobRequest, parts: Sequence[JobPart]) -> str:
    """Return what a job would ask and cost; nothing was sent."""
    if not parts:
        return notice(
            f"The {wanted.title} asks no engine and costs nothing. It scores the run "
            "against the newest reference, and the ledger records it.",
            title="Estimate; nothing was sent",
        )
    sums: dict[str, float] = {}
    for part in parts:
        price, cost = part.estimate.price, part.estimate.chosen.cost
        if price is not None and cost is not None:
            sums[price.currency] = sums.get(price.currency, 0) + part.draws * cost
    return show(
        "runs_estimate.html.jinja",
        title=wanted.title,
        parts=[(part, masked(part.estimate.engine)) for part in parts],
        sums=[f"{amount:,.4f} {currency}" for currency, amount in sums.items()],
        unpriced=sum(
            part.estimate.price is None
            and asked_model(part.estimate.engine) is not None
            for part in parts
        ),
    )


def pace_of(job: JobRecord, now: datetime) -> str:
    """Return rate and time left of the present step, as far as they can be told."""
    begun = job.step_begun
    if job.state is not JobState.RUNNING or not job.done or begun is None:
        return ""
    spent = (now - datetime.fromisoformat(begun)).total_seconds()
    # A clock that was set back tells no rate.
    if spent <= 0:
        return ""
    rate = job.done / spent
    left = (job.total - job.done) / rate
    return f"{rate:,.1f} cases/s, about {max(round(left), 0):,} s left"


class RunsTable(NamedTuple):
    """One page of the table of runs."""

    place: RunsPlace
    """With the runs that are in it."""

    html: str
    costs: str
    """What all runs that fit cost, by week, prompt and engine."""


def render_runs(
    context: AppContext, words: str, number: int, place: RunsPlace
) -> RunsTable:
    """Return one page of the runs that have all of `words` in them."""
    found = find_runs(context, words)
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    number = min(max(number, 1), pages)
    prices = read_config(context.workspace).prices
    policies = list_policies(context.workspace)
    shown = found[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    place = place._replace(listed=tuple(run.id for run in shown))
    html = show(
        "runs.html.jinja",
        rows=[
            RunRow(
                run,
                masked(run.spec.engine),
                policies.get(run.spec.protocol_digest or "", ""),
                _cost_of(run, prices),
            )
            for run in shown
        ],
        ticked=place.ticked,
        elsewhere=len(set(place.ticked) - set(place.listed)),
        found=len(found),
        number=number,
        pages=pages,
    )
    sums = sum_costs(found, prices)
    return RunsTable(place, html, _render_costs(sums, bool(words.strip())))


def _cost_of(run: RunRecord, prices: Mapping[str, ModelPrice]) -> str:
    cost = price_run(run, prices)
    return f"{cost.amount:,.4f} {cost.currency}" if cost else ""


def _render_costs(sums: Sequence[CostSum], some: bool) -> str:
    totals: dict[str, float] = {}
    for one in sums:
        if one.currency:
            totals[one.currency] = totals.get(one.currency, 0) + one.fresh
    return show(
        "runs_costs.html.jinja",
        sums=sums[:COSTS_SHOWN],
        more=len(sums) - COSTS_SHOWN,
        totals=[f"{amount:,.4f} {currency}" for currency, amount in totals.items()],
        some=some,
    )


def render_pruned(visit: Visit, found: Pruned | None, *, removed: bool = False) -> str:
    """Return what stored answers may go, or went; empty for who may not remove them.

    Parameters
    ----------
    found
        None before anybody looked.
    """
    if not visit.user.may(Right.REVISE):
        return ""
    return show("runs_pruned.html.jinja", found=found, removed=removed)


def render_cases(visit: Visit, run_id: str, start: int = 0) -> str:
    """Return the cases of a run: those without an answer by cause, then all.

    Parameters
    ----------
    start
        Place of the first case listed, in the order of the cohort.
    """
    context = visit.context
    (run,) = require_shown(context, [run_id])
    total = sum(run.counts.get(_COUNTED[status], 0) for status in Status)
    start = min(max(start, 0), max(total - 1, 0)) // CASES_SHOWN * CASES_SHOWN
    unanswered = context.cache.get(
        ("unanswered", run.id, run.finished),
        lambda: read_unanswered(context.workspace, run.id, context.store),
    )
    return show(
        "runs_cases.html.jinja",
        run=run,
        engine=masked(run.spec.engine),
        causes=_alike(unanswered.causes),
        counts={one: run.counts.get(name, 0) for one, name in _COUNTED.items()},
        items=context.store.list_items(run, start, CASES_SHOWN),
        start=start,
        total=total,
        step=CASES_SHOWN,
        often=CAUSES_SHOWN,
        may=visit.user.may(Right.REVISE),
    )


def _alike(causes: Sequence[UnansweredCause]) -> list[UnansweredCause]:
    """Return causes that differ in numbers alone as one, the most frequent first."""
    groups: dict[tuple[Status, str], list[UnansweredCause]] = {}
    for one in causes:
        wording = re.sub(r"\d+", "\N{HORIZONTAL ELLIPSIS}", one.problem)
        groups.setdefault((one.status, wording), []).append(one)
    joined = [
        same[0]
        if len(same) == 1
        else UnansweredCause(*key, tuple(case for one in same for case in one.cases))
        for key, same in groups.items()
    ]
    return sorted(joined, key=lambda one: -len(one.cases))


_COUNTED = {
    Status.ANSWERED: "answered",
    Status.UNPARSED: "unparsed",
    Status.ENGINE_FAILED: "failed",
}
"""Under which name the counts of a run have each status."""


def render_compared(found: ComparedRuns) -> str:
    """Return several runs on the same cases, label by label."""
    shared = found.shared
    differing = shared.differing
    counts = differing.sum(axis=0)
    said = [(codes == ValueCode.PRESENT).sum(axis=0) for codes in shared.answers]
    return show(
        "runs_compared.html.jinja",
        runs=[(found.letter(i), r, masked(r.spec.engine)) for i, r in _numbered(found)],
        comparisons=found.comparisons,
        rows=[
            ComparedLabel(
                name=found.names[label],
                label=label,
                present=tuple(int(one[at]) for one in said),
                changes=tuple(one.labels[at] for one in found.comparisons),
                differing=int(counts[at]),
            )
            for at, label in enumerate(shared.labels)
        ],
        answers=int(counts.sum()),
        cases=int(differing.any(axis=1).sum()),
        shared=len(shared.case_ids),
        two=len(found.comparisons) == 1,
    )


def _numbered(found: ComparedRuns) -> list[tuple[int, RunRecord]]:
    return list(enumerate(found.runs))


def render_differences(found: ComparedRuns, label: str, start: int = 0) -> str:
    """Return the cases on which runs differ about one label, or about any.

    Parameters
    ----------
    label
        Its id; empty for every label, each case and label in a row of its own.
    start
        Number of the first row listed, from 0.
    """
    shared = found.shared
    names = found.names
    counts = dict(zip(shared.labels, shared.differing.sum(axis=0), strict=True))
    total = int(counts.get(label, 0)) if label else int(sum(counts.values()))
    start = min(max(start, 0), max(total - 1, 0)) // CASES_SHOWN * CASES_SHOWN
    rows = list_differences(shared, label, start=start, most=CASES_SHOWN)
    return show(
        "runs_differences.html.jinja",
        title=names.get(label, "Any label"),
        label=label,
        names=names,
        letters=[(found.letter(place), run.id) for place, run in _numbered(found)],
        rows=[_difference(found, row) for row in rows],
        start=start,
        total=total,
        step=CASES_SHOWN,
    )


def _difference(found: ComparedRuns, row: AnswerDifference) -> DifferenceRow:
    """Return one case and label with whether each answer is as the reference."""
    truth = {ValueCode.NOT_CODED: ValueCode.ABSENT}.get(row.reference, row.reference)
    cells = tuple(
        AnswerCell(run.id, code.words, code is truth if min(code, truth) >= 0 else None)
        for run, code in zip(found.runs, row.answers, strict=True)
    )
    return DifferenceRow(row.case_id, row.label, row.reference.words, cells)

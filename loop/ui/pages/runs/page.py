"""The page Runs: its components, what they show, and what happens on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import gradio as gr

from loop.core.config import ModelPrice, read_config
from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.engines.base import masked
from loop.prompts.catalog import list_versions
from loop.review.job_work import start_job
from loop.run.cost import asked_model, estimate_run
from loop.run.jobs import JobKind, JobQueue, JobRecord, JobRequest, JobState, list_jobs
from loop.run.manifest import list_runs
from loop.run.store import RunRecord
from loop.ui.context import AppContext
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, show
from loop.ui.pages.base import SAME, Page
from loop.ui.pages.revise.state import known_engines
from loop.ui.wiring import EventRegistry, Visit

ON_A_PAGE = 50

JOBS_SHOWN = 10

DRAWS = ("1", "2", "3", "5", "10")
"""Draws that may be chosen."""


class RunsOutputs(NamedTuple):
    """What each component of the page shows."""

    form: Any = SAME
    version: Any = SAME
    engine: Any = SAME
    estimate: Any = SAME
    jobs: Any = SAME
    timer: Any = SAME
    runs: Any = SAME


class RunRow(NamedTuple):
    """One run in the table."""

    run: RunRecord
    engine: str
    """Its name without secrets."""

    cost: str
    """Of all its answers; empty without a price."""


class JobRow(NamedTuple):
    """One job in the table."""

    job: JobRecord
    pace: str
    """Rate and time left, while it goes on."""


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Runs", id="runs", elem_id="tab-runs") as tab:
        with gr.Column(visible=False, elem_id="runs-form") as form:
            with gr.Row(elem_classes="entry"):
                version = gr.Dropdown([], label="Version", elem_id="runs-version")
                engine = gr.Dropdown([], label="Engine", elem_id="runs-engine")
                draws = gr.Dropdown(
                    list(DRAWS), value="1", label="Draws", elem_id="runs-draws"
                )
                ask = gr.Button("Estimate", elem_id="runs-ask")
                begin = gr.Button("Start run", variant="primary", elem_id="runs-start")
            estimate = panel(elem_id="runs-estimate")
        jobs = panel(elem_id="runs-jobs")
        timer = gr.Timer(1, active=False)
        words = gr.Textbox(
            label="Run, prompt, cohort, engine or person, then Enter",
            elem_id="runs-words",
        )
        runs = panel(notice("Reading the runs.", kind="wait"), elem_id="runs-list")
    outputs = RunsOutputs(form, version, engine, estimate, jobs, timer, runs)
    chosen = (*header.selection, version, engine, draws)
    for what, listener, handler, right, inputs, shown in (
        ("estimate", ask.click, estimate_chosen, Right.SEE, chosen, [estimate]),
        ("start", begin.click, start, Right.REVISE, chosen, [jobs, timer]),
        ("job", jobs.act, act, Right.REVISE, (), [jobs, timer]),
        ("tick", timer.tick, tick, Right.SEE, (words,), [jobs, timer, runs]),
        ("find", words.submit, turn, Right.SEE, (words,), [runs]),
        ("turn", runs.act, turn, Right.SEE, (words,), [runs]),
    ):
        registry.on(
            listener,
            handler,
            right=right,
            name=f"runs_{what}",
            inputs=inputs,
            outputs=shown,
        )
    return Page(
        name="runs",
        right=Right.SEE,
        tab=tab,
        refresh=refresh,
        inputs=(words,),
        outputs=list(outputs),
    )


def refresh(
    visit: Visit, prompt: str | None, cohort: str | None, words: str | None = ""
) -> RunsOutputs:
    """Return the whole page."""
    context = visit.context
    numbers = list_versions(context.workspace, prompt) if prompt else ()
    versions = [f"{prompt}@v{number}" for number in numbers]
    engines = known_engines(context, prompt or "", cohort or "")
    jobs, timer = _jobs(visit)
    return RunsOutputs(
        form=gr.Column(visible=visit.user.may(Right.REVISE) and bool(versions)),
        version=gr.Dropdown(choices=versions, value=versions[-1] if versions else None),
        engine=gr.Dropdown(choices=list(engines), value=engines[0]),
        estimate="",
        jobs=jobs,
        timer=timer,
        runs=render_runs(context, words or "", 1),
    )


def _queue(context: AppContext) -> JobQueue:
    return JobQueue(workspace=context.workspace, store=context.store, now=context.now)


def _jobs(visit: Visit, said: str = "") -> tuple[str, Any]:
    """Return the table of jobs, and a timer that looks again while one goes on."""
    context = visit.context
    queue = _queue(context)
    queue.dispatch()
    going = list_jobs(context.store, states=(JobState.QUEUED, JobState.RUNNING))
    latest = list_jobs(context.store, most=JOBS_SHOWN)
    # However old it is, a job that goes on is shown.
    found = {job.number: job for job in (*latest, *going)}
    shown = show(
        "runs_jobs.html.jinja",
        jobs=[
            JobRow(job, _pace(job, context.now()))
            for _, job in sorted(found.items(), reverse=True)
        ],
        may=visit.user.may(Right.REVISE),
        said=said,
    )
    return shown, gr.Timer(active=bool(going))


def _pace(job: JobRecord, now: datetime) -> str:
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


def _request(visit: Visit, prompt: Any, cohort: Any, *chosen: Any) -> JobRequest:
    """Return what is chosen as a run; values of a request may be anything."""
    version, engine, draws = chosen
    known = known_engines(visit.context, str(prompt), str(cohort))
    if engine not in known or draws not in DRAWS or not version or not cohort:
        raise DataError(
            "choose a version, a cohort, draws and an engine that finished a run here. "
            "Another engine is asked first with `ranloop run --engine`."
        )
    return JobRequest(
        kind=JobKind.RUN,
        prompt=version,
        cohort=cohort,
        engines=(engine,),
        draws=int(draws) if int(draws) > 1 else None,
    )


def estimate_chosen(visit: Visit, prompt: Any, cohort: Any, *chosen: Any) -> str:
    """Return what the chosen run would ask and cost; nothing is sent."""
    wanted = _request(visit, prompt, cohort, *chosen)
    found = estimate_run(
        visit.context.workspace, wanted.prompt, wanted.cohort, engine=wanted.engines[0]
    )
    draws, one = wanted.draws or 1, found.chosen
    cost = "no price is known for it"
    if one.cost is not None and found.price is not None:
        cost = f"about {draws * one.cost:,.4f} {found.price.currency}"
    return notice(
        f"{found.prompt} on {found.cohort} with {masked(found.engine)}: at most "
        f"{draws * one.requests:,} requests for {found.cases:,} cases, "
        f"{draws * one.prompt_tokens:,} prompt tokens, about "
        f"{draws * one.output_tokens:,} output tokens; {cost}. What is answered "
        "already is not asked again.",
        title="Estimate; nothing was sent",
    )


def start(visit: Visit, prompt: Any, cohort: Any, *chosen: Any) -> tuple[str, Any]:
    """Start the chosen run."""
    wanted = _request(visit, prompt, cohort, *chosen)
    who = visit.actor
    job = start_job(_queue(visit.context), wanted, who.name, who.role)
    return _jobs(visit, f"Job {job.number} was started.")


def act(visit: Visit) -> tuple[str, Any]:
    """Stop or resume the job that was clicked."""
    number, queue = str(visit.data.get("number", "")), _queue(visit.context)
    if not number.isascii() or not number.isdecimal() or len(number) > 18:
        raise DataError("there is no such job. Open the page again.")
    if visit.data.get("act") == "resume":
        queue.resume(int(number), visit.actor.name, visit.actor.role)
        return _jobs(visit, f"Job {number} was resumed.")
    now = visit.data.get("now") == "yes"
    queue.stop(int(number), visit.actor.name, at_once=now)
    return _jobs(visit, f"Job {number} was told to stop.")


def tick(visit: Visit, words: str | None) -> tuple[str, Any, Any]:
    """Return the jobs as they are now; the runs too once the last job has ended."""
    jobs, timer = _jobs(visit)
    runs = SAME if timer.active else render_runs(visit.context, words or "", 1)
    return jobs, timer, runs


def turn(visit: Visit, words: str | None) -> str:
    """Return the runs that fit; the page that a click asks for, else the first."""
    page = str(visit.data.get("page", "1"))
    number = int(page) if page.isdecimal() and len(page) < 10 else 1
    return render_runs(visit.context, words or "", number)


def render_runs(context: AppContext, words: str, number: int) -> str:
    """Return one page of the runs that have all of `words` in them."""
    found = _find(context, words)
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    number = min(max(number, 1), pages)
    prices = read_config(context.workspace).prices
    rows = [
        RunRow(run, masked(run.spec.engine), _cost(run, prices))
        for run in found[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    ]
    return show(
        "runs.html.jinja", rows=rows, found=len(found), number=number, pages=pages
    )


def _find(context: AppContext, words: str) -> list[RunRecord]:
    """Return the runs that fit, newest first; none on a holdout."""
    wanted = words.casefold().split()
    return [
        run
        for run in list_runs(context.workspace, context.store)
        if all(word in _words(run) for word in wanted)
    ]


def _words(run: RunRecord) -> str:
    spec = run.spec
    parts = (
        run.id,
        spec.prompt,
        spec.cohort,
        masked(spec.engine),
        run.actor or "unknown",
    )
    return " ".join(parts).casefold()


def _cost(run: RunRecord, prices: Mapping[str, ModelPrice]) -> str:
    """Return what the answers of `run` cost by the price of today; empty without."""
    model = asked_model(run.spec.engine)
    price = prices.get(model) if model else None
    if price is None or "prompt_tokens" not in run.counts:
        return ""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    cost = price.cost(*(run.counts.get(name, 0) for name in names))
    return f"{cost:,.4f} {price.currency}"

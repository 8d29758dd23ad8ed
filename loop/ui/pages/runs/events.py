"""What happens on the page Runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import ConflictError, DataError
from loop.core.people.users import Right
from loop.engines.base import masked
from loop.prompts.catalog import list_versions
from loop.review.job_work import estimate_job, start_job
from loop.review.revise.draft import list_open_drafts
from loop.run.cost import asked_model
from loop.run.jobs import JobKind, JobRequest
from loop.run.manifest import list_runs
from loop.run.prune import prune_completions
from loop.run.trace import read_trace
from loop.ui.context import AppContext
from loop.ui.html import notice
from loop.ui.pages.base import SAME
from loop.ui.pages.revise.state import answered_freely, known_engines
from loop.ui.pages.runs.state import (
    RunsPlace,
    compare_chosen,
    follow_run,
    require_shown,
    run_followed,
    take_news,
)
from loop.ui.pages.runs.view import (
    RunsOutputs,
    RunsTable,
    render_cases,
    render_compared,
    render_differences,
    render_estimate,
    render_jobs,
    render_news,
    render_pruned,
    render_runs,
)
from loop.ui.trace_panel import render_trace
from loop.ui.wiring import Visit

KINDS = {
    "Run": JobKind.RUN.value,
    "Evaluation": JobKind.EVALUATION.value,
    "Matrix of engines": JobKind.MATRIX.value,
    "Check of a draft": JobKind.CHECK.value,
}
"""What may be started, and how the page calls it."""

DRAWS = ("1", "2", "3", "5", "10")
"""Draws that may be chosen."""

PROTOCOLS = "as the protocol says"
"""The choice of draws that leaves them to the protocol."""

RUNS_OFFERED = 50
"""Runs that may be chosen for an evaluation; any other is opened from the table."""

TRACE_TURN = "runs-trace-turn"
"""Id of the button that folds up the trace of a case."""


def refresh(
    visit: Visit,
    prompt: str | None,
    cohort: str | None,
    words: str | None = "",
    place: RunsPlace | None = None,
) -> RunsOutputs:
    """Return the whole page, with the run that was looked at last."""
    context = visit.context
    versions = list_versions(context.workspace, prompt) if prompt else ()
    jobs, timer = render_jobs(visit)
    table = render_runs(context, words or "", 1, _known(place))
    outputs = choose_kind(visit, prompt, cohort, "run")._replace(
        kind=gr.Dropdown(choices=list(KINDS.items()), value="run"),
        news=render_news(take_news(visit)),
        form=gr.Column(visible=visit.user.may(Right.REVISE) and bool(versions)),
        jobs=jobs,
        timer=timer,
        runs=table.html,
        costs=table.costs,
        pruned=render_pruned(visit, None),
    )
    return _on(outputs, _reopened(visit, table.place))


def _reopened(visit: Visit, place: RunsPlace) -> RunsOutputs:
    """Return the page with the run that was looked at last, if it still is there."""
    run = run_followed(visit)
    if run:
        try:
            return _open_run(visit, place, run)
        except DataError:
            follow_run(visit, "")
    return _close(place)


def _on(outputs: RunsOutputs, changes: RunsOutputs) -> RunsOutputs:
    """Return `outputs` with what `changes` shows."""
    told = {k: v for k, v in changes._asdict().items() if v is not SAME}
    return outputs._replace(**told)


def _known(place: RunsPlace | None) -> RunsPlace:
    return place if isinstance(place, RunsPlace) else RunsPlace()


class WorkForm(NamedTuple):
    """What is chosen to be started; values of a request may be anything."""

    kind: Any
    subject: Any
    """A version, of an evaluation a run, of a check a draft."""

    engine: Any
    engines: Any
    """Of a matrix."""

    draws: Any


def choose_kind(
    visit: Visit, prompt: str | None, cohort: str | None, kind: str | None
) -> RunsOutputs:
    """Return the fields that work of this kind takes."""
    context = visit.context
    wanted = JobKind(kind) if kind and kind in KINDS.values() else JobKind.RUN
    subjects = _list_subjects(context, prompt or "", cohort or "", wanted)
    engines = known_engines(context, prompt or "", cohort or "")
    draws = [PROTOCOLS, *DRAWS] if wanted is JobKind.CHECK else list(DRAWS)
    one = wanted in (JobKind.RUN, JobKind.CHECK)
    return RunsOutputs(
        subject=gr.Dropdown(
            choices=subjects,
            value=subjects[0][1] if subjects else None,
            label=_SUBJECTS[wanted],
        ),
        engine=gr.Dropdown(choices=list(engines), value=engines[0], visible=one),
        engines=gr.CheckboxGroup(
            choices=[(masked(name), name) for name in engines],
            value=list(engines[:2]),
            visible=wanted is JobKind.MATRIX,
        ),
        draws=gr.Dropdown(choices=draws, value=draws[0], visible=one),
        estimate="",
    )


_SUBJECTS = {
    JobKind.RUN: "Version",
    JobKind.EVALUATION: "Run",
    JobKind.MATRIX: "Version",
    JobKind.CHECK: "Draft",
}
"""What the field for the subject of work is called."""


def _list_subjects(
    context: AppContext, prompt: str, cohort: str, kind: JobKind
) -> list[tuple[str, str]]:
    """Return what may be chosen for work of `kind`, the newest first."""
    if not prompt or not cohort:
        return []
    if kind is JobKind.CHECK:
        drafts = list_open_drafts(context.workspace, context.store, prompt)
        # A damaged one is not offered first; why it is refused is said on a press.
        ordered = sorted(reversed(drafts), key=lambda one: bool(one.problem))
        broken = ", cannot be used"
        return [(f"{one.ref}{broken * bool(one.problem)}", one.ref) for one in ordered]
    if kind is JobKind.EVALUATION:
        found = [
            run
            for run in list_runs(context.workspace, context.store)
            if run.finished
            and run.spec.cohort == cohort
            and run.spec.prompt.partition("@")[0] == prompt
        ]
        return [
            (f"{run.id} {run.spec.prompt}, {masked(run.spec.engine)}", run.id)
            for run in found[:RUNS_OFFERED]
        ]
    numbers = reversed(list_versions(context.workspace, prompt))
    return [(f"{prompt}@v{number}",) * 2 for number in numbers]


def _request(visit: Visit, prompt: Any, cohort: Any, form: WorkForm) -> JobRequest:
    """Return what is chosen.

    Raises
    ------
    DataError
        Something is missing, or is none that the page offers.
    """
    context = visit.context
    if form.kind not in KINDS.values() or type(form.subject) is not str:
        raise DataError("choose what is to be done, and of what.")
    kind = JobKind(form.kind)
    if kind is JobKind.EVALUATION:
        (run,) = require_shown(context, [form.subject])
        return JobRequest(kind=kind, run=run.id)
    matrix = kind is JobKind.MATRIX
    engines = form.engines if matrix else [form.engine]
    known = known_engines(context, str(prompt), str(cohort))
    asked = isinstance(engines, list) and engines and set(map(str, engines)) <= {*known}
    if not asked or type(cohort) is not str or not cohort:
        raise DataError(
            "choose a cohort, draws and an engine that finished a run here. Another "
            "engine is asked first with `ranloop run --engine`."
        )
    return JobRequest(
        kind=kind,
        prompt="" if kind is JobKind.CHECK else form.subject,
        draft=form.subject if kind is JobKind.CHECK else "",
        cohort=cohort,
        engines=tuple(engines),
        draws=None if matrix else _draws(kind, form.draws),
        allow_unconstrained=any(
            answered_freely(context, engine, cohort) for engine in engines
        ),
    )


def _draws(kind: JobKind, chosen: Any) -> int | None:
    """Return how often to ask; None for once, and for what the protocol says."""
    if kind is JobKind.CHECK and chosen == PROTOCOLS:
        return None
    if chosen not in DRAWS:
        raise DataError("choose draws that the page offers.")
    return int(chosen) if chosen != "1" or kind is JobKind.CHECK else None


def estimate_chosen(
    visit: Visit, place: RunsPlace | None, prompt: Any, cohort: Any, *chosen: Any
) -> RunsOutputs:
    """Return what the chosen work would ask and cost; nothing is sent."""
    wanted = _request(visit, prompt, cohort, WorkForm(*chosen))
    shown = render_estimate(wanted, estimate_job(visit.context.workspace, wanted))
    return RunsOutputs(place=_known(place)._replace(estimated=wanted), estimate=shown)


def start(
    visit: Visit, place: RunsPlace | None, prompt: Any, cohort: Any, *chosen: Any
) -> RunsOutputs:
    """Start the chosen work; what a model is asked, once its estimate was shown."""
    wanted = _request(visit, prompt, cohort, WorkForm(*chosen))
    paid = any(asked_model(engine) for engine in wanted.engines)
    if paid and _known(place).estimated != wanted:
        outputs = estimate_chosen(visit, place, prompt, cohort, *chosen)
        said = notice(
            "Press Start once more to start it.", title="Not started: a model is asked"
        )
        return outputs._replace(estimate=f"{outputs.estimate}{said}")
    jobs, timer = _start(visit, wanted)
    return RunsOutputs(
        place=_known(place)._replace(estimated=None),
        estimate="",
        jobs=jobs,
        timer=timer,
    )


def _start(visit: Visit, wanted: JobRequest) -> tuple[str, Any]:
    who = visit.actor
    job = start_job(visit.context.queue, wanted, who.name, who.role)
    return render_jobs(visit, f"Job {job.number} was started.")


def act_on_jobs(visit: Visit) -> tuple[str, Any]:
    """Stop or resume the job that was clicked."""
    number, queue = str(visit.data.get("number", "")), visit.context.queue
    if not number.isascii() or not number.isdecimal() or len(number) > 18:
        raise DataError("there is no such job. Open the page again.")
    if visit.data.get("act") == "resume":
        queue.resume(int(number), visit.actor.name, visit.actor.role)
        return render_jobs(visit, f"Job {number} was resumed.")
    now = visit.data.get("now") == "yes"
    queue.stop(int(number), visit.actor.name, at_once=now)
    return render_jobs(visit, f"Job {number} was told to stop.")


def tick(visit: Visit, words: str | None, place: RunsPlace | None) -> RunsOutputs:
    """Return the jobs as they are now; the runs too once the last job has ended."""
    jobs, timer = render_jobs(visit)
    ended = take_news(visit)
    news = render_news(ended) if ended else SAME
    outputs = RunsOutputs(news=news, jobs=jobs, timer=timer)
    if timer.active:
        return outputs
    table = render_runs(visit.context, words or "", 1, _known(place))
    return _on(outputs, _show_table(table))


def find(visit: Visit, words: str | None, place: RunsPlace | None) -> RunsOutputs:
    """Return the first page of the runs that fit."""
    return _show_table(render_runs(visit.context, words or "", 1, _known(place)))


def _show_table(table: RunsTable) -> RunsOutputs:
    return RunsOutputs(place=table.place, runs=table.html, costs=table.costs)


def tick_run(visit: Visit, place: RunsPlace | None) -> RunsPlace:
    """Keep which runs are ticked."""
    return _known(place).with_ticks(visit.data)


def act_on_runs(
    visit: Visit, words: str | None, place: RunsPlace | None
) -> RunsOutputs:
    """Turn the pages of the table, open a run, or compare those that are ticked."""
    place = _known(place).with_ticks(visit.data)
    match visit.data.get("do"):
        case "cases":
            return _open_run(visit, place, str(visit.data.get("run", "")))
        case "compare":
            return _compare(visit, place)
        case "untick":
            place = place._replace(ticked=())
    number = max(_number(visit, "page"), 1)
    return _show_table(render_runs(visit.context, words or "", number, place))


def _number(visit: Visit, name: str) -> int:
    """Return a number that a click says, 0 where it says none."""
    text = str(visit.data.get(name, ""))
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _open_run(
    visit: Visit, place: RunsPlace, run: str, start_at: int = 0
) -> RunsOutputs:
    shown = render_cases(visit, run, start_at)
    follow_run(visit, run)
    return _close(place)._replace(
        place=place._replace(run=run, compared=()),
        detail=shown,
        finder=gr.Row(visible=True),
    )


def _compare(visit: Visit, place: RunsPlace) -> RunsOutputs:
    found = compare_chosen(visit.context, place.ticked)
    ids = tuple(run.id for run in found.runs)
    return _close(place)._replace(
        place=place._replace(run="", compared=ids), detail=render_compared(found)
    )


def _close(place: RunsPlace) -> RunsOutputs:
    """Return the page with nothing open."""
    return RunsOutputs(
        place=place._replace(run="", compared=()),
        detail="",
        finder=gr.Row(visible=False),
        differences="",
        trace="",
    )


def act_on_detail(visit: Visit, place: RunsPlace | None) -> RunsOutputs:
    """Open a case, list others, or close what is open."""
    place = _known(place)
    match visit.data.get("act"):
        case "trace":
            case = str(visit.data.get("case", ""))
            run = str(visit.data.get("run", ""))
            label = str(visit.data.get("label", ""))
            return RunsOutputs(trace=_trace(visit, run, case, label))
        case "cases":
            run = str(visit.data.get("run", ""))
            return _open_run(visit, place, run, _number(visit, "start"))
        case "differ":
            found = compare_chosen(visit.context, place.compared)
            label = str(visit.data.get("label", ""))
            shown = render_differences(found, label, _number(visit, "start"))
            return RunsOutputs(differences=shown, trace="")
        case "fold":
            return RunsOutputs(differences="", trace="")
        case "close":
            follow_run(visit, "")
            return _close(place)
    return RunsOutputs()


def find_case(visit: Visit, case: str | None, place: RunsPlace | None) -> str:
    """Return the trace of the case that was named, in the run that is open."""
    run = _known(place).run
    if not run or not (case or "").strip():
        raise DataError("name a case of the run that is open, by its id.")
    return _trace(visit, run, str(case).strip(), "")


def _trace(visit: Visit, run: str, case: str, label: str) -> str:
    context = visit.context
    trace = read_trace(context.workspace, run, case, store=context.store)
    return render_trace(trace, turn=TRACE_TURN, label=label)


def fold_trace(visit: Visit) -> str:
    """Return the trace folded up."""
    return ""


def evaluate_run_shown(visit: Visit) -> tuple[str, Any]:
    """Start the evaluation of the run whose cases are shown."""
    (run,) = require_shown(visit.context, [str(visit.data.get("run", ""))])
    return _start(visit, JobRequest(kind=JobKind.EVALUATION, run=run.id))


def prune(visit: Visit) -> str:
    """Show which stored answers may go, or remove those that were shown.

    Raises
    ------
    ConflictError
        A run is under way, or other answers may go than were shown; none was removed.
    """
    act, place = visit.data.get("act"), visit.context.workspace
    if act not in ("size", "prune"):
        return render_pruned(visit, None)
    found = prune_completions(place, dry_run=True)
    if act == "size":
        return render_pruned(visit, found)
    if str(found.answers) != visit.data.get("answers"):
        raise ConflictError(
            f"{found.answers:,} stored answers may go by now, others than were shown. "
            "Nothing was removed. Look again, and decide then."
        )
    return render_pruned(visit, prune_completions(place), removed=True)

"""The panel Agreement: how far readers agree, and the model beside them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import ConflictError, DataError
from loop.core.people.users import Right
from loop.documents.charts import kappa_heatmap
from loop.evaluate.ceiling import Ceiling, CeilingRow, measure_run_ceiling
from loop.evaluate.inputs import read_inputs
from loop.labels.ballots import Votes
from loop.labels.reader_agreement import (
    POOLED,
    AgreementReport,
    LabelAgreement,
    measure_agreement,
)
from loop.review.reading.assignment import Assignment, read_basis
from loop.run.store import RunRecord
from loop.ui.background import Job
from loop.ui.context import AppContext
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, show
from loop.ui.pages.base import SAME
from loop.ui.pages.readers import assignment_form, publication_form
from loop.ui.pages.readers.base import ReadersPanel
from loop.ui.pages.readers.state import open_assignment, open_votes
from loop.ui.wiring import EventRegistry, Visit

NAME, TITLE = "agreement", "Agreement"


class AgreementOutputs(NamedTuple):
    """The components that say how far readers agree, or what these show."""

    report: Any = SAME
    label: Any = SAME
    timer: Any = SAME


class MeasuredAgreement(NamedTuple):
    """Readers among themselves, and the model beside them."""

    report: AgreementReport
    ceiling: Ceiling | None
    """None without a run to hold against them."""

    run: str
    """Which run, or why there is none."""


class AgreementRequest(NamedTuple):
    """What is to be worked out, and the key under which it is kept."""

    key: str
    assignment: Assignment
    votes: Votes
    run: RunRecord | None
    why: str
    """Why there is no run."""


class AgreementRow(NamedTuple):
    """One label: readers among themselves, one against the rest, the model."""

    among: LabelAgreement
    beside: CeilingRow | None


def build(registry: EventRegistry, header: PageHeader) -> ReadersPanel:
    """Add the panel and connect it."""
    with gr.Column(visible=False, elem_id="part-agreement") as box:
        label = gr.Dropdown(
            [("All labels", POOLED)],
            value=POOLED,
            label="Pairs and readers of",
            elem_id="agreement-label",
        )
        report = panel(notice("Opening.", kind="wait"), elem_id="agreement")
        timer = gr.Timer(1, active=False)
        publish = publication_form.build()
        assign = assignment_form.build()
    inputs = [*header.selection, label]
    outputs = AgreementOutputs(report=report, label=label, timer=timer)
    for listener, name in (
        (label.input, "agreement_by_label"),
        (timer.tick, "agreement_wait"),
        (report.act, "agreement_again"),
    ):
        registry.on(
            listener,
            measure_again if name == "agreement_again" else show_agreement,
            right=Right.SEE,
            name=name,
            inputs=inputs,
            outputs=outputs,
        )
    publication_form.connect(
        registry, header, publish, label, show_agreement, [*outputs, *publish.outputs]
    )
    assignment_form.connect(
        registry, header, assign, publish.outputs, publication_form.show_publishable
    )
    return ReadersPanel(
        name=NAME,
        title=TITLE,
        right=Right.SEE,
        box=box,
        show=open_,
        inputs=[label],
        outputs=[*outputs, *publish.outputs, *assign.outputs],
    )


def open_(
    visit: Visit, prompt: str | None, cohort: str | None, label: str | None
) -> list[Any]:
    """Return the numbers, or how far they are, and what can be published."""
    return [
        *show_agreement(visit, prompt, cohort, label),
        *publication_form.show_publishable(visit, cohort),
        *assignment_form.show_assigning(visit, cohort),
    ]


def show_agreement(
    visit: Visit, prompt: str | None, cohort: str | None, label: str | None
) -> AgreementOutputs:
    """Return the numbers of `label`, starting to work them out where nobody has."""
    try:
        wanted = _wanted(visit, prompt, cohort)
    except DataError as error:
        empty = notice(str(error), title="No agreement to show")
        return _closed(empty)
    jobs = visit.context.jobs
    progress = jobs.progress_of(wanted.key)
    if progress is None:
        # Somebody else may have started it in between: then it is theirs.
        with suppress(ConflictError):
            work = partial(_measure, visit.context, wanted)
            jobs.start(wanted.key, visit.user.name, work)
        progress = jobs.progress_of(wanted.key)
    if progress is None or not progress.finished:
        what = progress.what if progress else "starting"
        wait = notice(f"{what.capitalize()}.", kind="wait", title="Working it out")
        return AgreementOutputs(report=wait, timer=gr.Timer(active=True))
    if progress.error:
        failed = show("readers_failed.html.jinja", error=progress.error)
        return _closed(failed)
    return _shown(wanted.assignment, progress.result, label)


def measure_again(
    visit: Visit, prompt: str | None, cohort: str | None, label: str | None
) -> AgreementOutputs:
    """Work the numbers out once more, after an error."""
    visit.context.jobs.forget(_wanted(visit, prompt, cohort).key)
    return show_agreement(visit, prompt, cohort, label)


def _closed(said: str) -> AgreementOutputs:
    """Return the outputs where there are no numbers to choose among."""
    return AgreementOutputs(
        report=said, label=gr.Dropdown(visible=False), timer=gr.Timer(active=False)
    )


def _wanted(visit: Visit, prompt: str | None, cohort: str | None) -> AgreementRequest:
    """Return what is to be worked out for what is chosen at the top."""
    context, assignment = visit.context, open_assignment(visit, cohort)
    basis = read_basis(context.workspace, assignment)
    votes = open_votes(context, assignment, basis)
    if votes is None:
        raise DataError(
            f"nobody has voted on cohort {assignment.cohort.name!r}. Readings become "
            "votes below, once they are complete; votes made elsewhere are added under "
            "Files."
        )
    if len(votes.readers) < 2:
        raise DataError(
            "there are votes of one reader only. Agreement needs two: let another "
            "read, and publish the readings."
        )
    run, why = _run(context, assignment, prompt)
    key = "agreement " + " ".join(map(str, (*basis, run.id if run else why)))
    return AgreementRequest(key, assignment, votes, run, why)


def _run(
    context: AppContext, assignment: Assignment, prompt: str | None
) -> tuple[RunRecord | None, str]:
    """Return the run to hold against the readers, or why there is none."""
    cohort = assignment.cohort
    try:
        run = context.latest_run(prompt or "", cohort.name)
    except DataError:
        return None, f"no finished run of {prompt or 'a prompt'} on this cohort"
    if run.spec.cohort_digest != cohort.digest:
        return None, "the newest run asked other cases than the cohort holds now"
    return run, ""


def _measure(
    context: AppContext, wanted: AgreementRequest, job: Job
) -> MeasuredAgreement:
    assignment = wanted.assignment
    job.step("agreement of the readers, with 2,000 bootstrap resamples a label")
    report = measure_agreement(
        wanted.votes, assignment.taxonomy, cohort=assignment.cohort.name
    )
    if wanted.run is None:
        return MeasuredAgreement(report, None, wanted.why)
    job.step("the model beside the readers, with 1,000 bootstrap resamples")
    inputs = read_inputs(context.workspace, wanted.run.id)
    ceiling = measure_run_ceiling(inputs, wanted.votes)
    return MeasuredAgreement(
        report, ceiling, f"{inputs.run.prompt}, run {inputs.run.run_id}"
    )


def _shown(
    assignment: Assignment, found: MeasuredAgreement, label: str | None
) -> AgreementOutputs:
    report, ceiling = found.report, found.ceiling
    beside = {row.label: row for row in ceiling.labels} if ceiling else {}
    if ceiling:
        beside[POOLED] = ceiling.pooled
    every = [report.pooled, *report.labels]
    lines = [AgreementRow(one, beside.get(one.label)) for one in every]
    chosen = next((one for one in lines if one.among.label == label), lines[0])
    page = show(
        "readers_agreement.html.jinja",
        report=report,
        ceiling=ceiling,
        run=found.run,
        synthetic=assignment.cohort.synthetic,
        lines=lines,
        pooled=lines[0],
        chosen=chosen,
        heatmap=kappa_heatmap(report.readers, chosen.among.pairs),
    )
    choices = [(one.name, one.label) for one in every]
    picker = gr.Dropdown(choices=choices, value=chosen.among.label, visible=True)
    return AgreementOutputs(report=page, label=picker, timer=gr.Timer(active=False))

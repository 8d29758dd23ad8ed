"""The page Overview: how the newest version stands against its gates."""

from __future__ import annotations

from typing import NamedTuple

import gradio as gr

from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right
from loop.core.records import Status
from loop.documents.svg import Axis, tick_labels
from loop.evaluate.compare import Comparison, LabelChange, compare_runs
from loop.evaluate.documents import ForestMark, accuracy_axis, accuracy_mark
from loop.evaluate.evaluation import find_parent_run
from loop.evaluate.gates import Gate
from loop.evaluate.results import Evaluation, LabelResult
from loop.evaluate.tried_text import selection_note, selection_remarks
from loop.labels.cohort import read_record
from loop.run.store import RunRecord
from loop.run.task_fields import is_judge_run
from loop.ui.context import AppContext
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, show
from loop.ui.pages.base import Page
from loop.ui.wiring import EventRegistry, Visit


class GateRow(NamedTuple):
    """One label in the gate table."""

    result: LabelResult
    mark: ForestMark
    change: LabelChange | None
    why: str


class ForestAxis(NamedTuple):
    """The axis of the forest plot, positions in percent."""

    ticks: tuple[tuple[float, str], ...]
    line: float


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Overview", id="overview", elem_id="tab-overview") as tab:
        table = panel(notice("Working out the gates.", kind="wait"), elem_id="overview")
    return Page(
        name="overview",
        right=Right.SEE,
        tab=tab,
        refresh=refresh,
        outputs=[table],
        links=[table],
    )


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> str:
    """Return the page for a prompt on a cohort."""
    if not prompt or not cohort:
        return notice(
            "Add a cohort under Files, or with `ranloop cohort import`.",
            title="No cohort yet",
        )
    context = visit.context
    run = context.latest_run(prompt, cohort)
    if is_judge_run(run):
        record = read_record(context.workspace, cohort)
        rests = (record.newest_digest, *context.tried_mark(), *context.standing(run))
        return context.cache.get(
            ("judge", *rests), lambda: render_judge(context.workspace, run)
        )
    return context.cache.get(
        ("overview", *context.standing(run)), lambda: render(context, run)
    )


def render(context: AppContext, run: RunRecord) -> str:
    """Return the page of one run."""
    evaluation = context.evaluation(run)
    comparison = compare_with_parent(context, run)
    selection = context.selection(run)
    axis = accuracy_axis(evaluation)
    return show(
        "overview.html.jinja",
        evaluation=evaluation,
        comparison=comparison,
        rows=_rows(evaluation, comparison, axis),
        plot=_plot(axis, evaluation.protocol.accuracy),
        verdicts=list(evaluation.verdicts),
        unparsed=evaluation.statuses[Status.UNPARSED],
        failed=evaluation.statuses[Status.ENGINE_FAILED],
        selection=selection,
        remarks=(*selection_remarks(selection), selection_note(selection)),
    )


def render_judge(workspace: WorkspacePaths, run: RunRecord) -> str:
    """Return the page of one run of a judge: against readers, and its gate."""
    # Heavy, and of no use to a workbench without judges.
    from loop.judge.gate_text import judge_gate_rows
    from loop.judge.judge_evaluation import (
        evaluate_judge_run,
        judge_evaluation_notes,
    )
    from loop.score.documents.sentences import WAYS

    found = evaluate_judge_run(workspace, run.id)
    return show(
        "overview_judge.html.jinja",
        found=found,
        ways=WAYS,
        checks=() if found.gate is None else judge_gate_rows(found.gate),
        remarks=judge_evaluation_notes(found),
        unparsed=found.statuses[Status.UNPARSED],
        failed=found.statuses[Status.ENGINE_FAILED],
    )


def compare_with_parent(context: AppContext, run: RunRecord) -> Comparison | None:
    """Return the run against the newest run of its parent version, if there is one."""
    before = find_parent_run(context.workspace, run.id)
    if before is None:
        return None
    key = ("comparison", before, *context.standing(run))
    return context.cache.get(
        key, lambda: compare_runs(context.workspace, before, run.id)
    )


def _rows(
    evaluation: Evaluation, comparison: Comparison | None, axis: Axis
) -> list[GateRow]:
    changes = {one.label: one for one in comparison.labels} if comparison else {}
    confidence = evaluation.protocol.confidence
    return [
        GateRow(
            result,
            accuracy_mark(result, axis, confidence),
            changes.get(result.label),
            _why(result.gate),
        )
        for result in evaluation.labels
    ]


def _why(gate: Gate) -> str:
    """Return what kept a label from passing and what it needs, in one line."""
    return "; ".join(part for part in (*gate.reasons, gate.needs) if part)


def _plot(axis: Axis, threshold: float) -> ForestAxis:
    texts = tick_labels(axis.ticks)
    ticks = tuple((axis.x(t), text) for t, text in zip(axis.ticks, texts, strict=True))
    return ForestAxis(ticks, axis.x(threshold))

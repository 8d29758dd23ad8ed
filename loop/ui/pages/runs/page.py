"""The page Runs: its components, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.html import form_panel, notice, panel
from loop.ui.pages.base import Page
from loop.ui.pages.runs import events
from loop.ui.pages.runs.state import RunsPlace
from loop.ui.pages.runs.view import RunsOutputs
from loop.ui.wiring import EventRegistry

_SEE = "() => window.ranloopSeeOpened()"
"""Brings what a button has opened into view, and takes the keyboard there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsComponents:
    """The components whose names `RunsOutputs` has, and what starts and finds."""

    place: gr.State
    news: gr.HTML
    form: gr.Column
    kind: gr.Dropdown
    subject: gr.Dropdown
    engine: gr.Dropdown
    engines: gr.CheckboxGroup
    draws: gr.Dropdown
    estimate: gr.HTML
    jobs: gr.HTML
    timer: gr.Timer
    detail: gr.HTML
    finder: gr.Row
    differences: gr.HTML
    trace: gr.HTML
    runs: gr.HTML
    costs: gr.HTML
    pruned: gr.HTML
    ask: gr.Button
    begin: gr.Button
    case: gr.Textbox
    words: gr.Textbox

    @property
    def outputs(self) -> list[Any]:
        """All that is shown, in the order of `RunsOutputs`."""
        return [getattr(self, name) for name in RunsOutputs._fields]


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Runs", id="runs", elem_id="tab-runs") as tab:
        parts = _lay_out()
    _connect_jobs(registry, header, parts)
    _connect_runs(registry, parts)
    return Page(
        name="runs",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        inputs=(parts.words, parts.place),
        outputs=parts.outputs,
    )


def _lay_out() -> RunsComponents:
    found: dict[str, Any] = {"place": gr.State(RunsPlace())}
    found["news"] = panel(elem_id="runs-news")
    found["detail"] = form_panel(elem_id="runs-detail")
    with gr.Row(visible=False, elem_classes="entry") as found["finder"]:
        found["case"] = gr.Textbox(
            label="Case id of this run, then Enter", elem_id="runs-case"
        )
    found["differences"] = panel(elem_id="runs-differ")
    found["trace"] = panel(elem_id="runs-trace")
    with gr.Column(visible=False, elem_id="runs-form") as found["form"]:
        _lay_out_form(found)
    found["jobs"] = panel(elem_id="runs-jobs")
    found["timer"] = gr.Timer(1, active=False)
    found["words"] = gr.Textbox(
        label="Run, prompt, cohort, engine or person, then Enter", elem_id="runs-words"
    )
    waiting = notice("Reading the runs.", kind="wait")
    found["runs"] = form_panel(waiting, elem_id="runs-list")
    found["costs"] = panel(elem_id="runs-costs")
    found["pruned"] = panel(elem_id="runs-pruned")
    return RunsComponents(**found)


def _lay_out_form(found: dict[str, Any]) -> None:
    with gr.Row(elem_classes="entry"):
        found["kind"] = gr.Dropdown(
            list(events.KINDS.items()),
            value="run",
            label="Start",
            elem_id="runs-kind",
        )
        found["subject"] = gr.Dropdown([], label="Version", elem_id="runs-subject")
        found["engine"] = gr.Dropdown([], label="Engine", elem_id="runs-engine")
        found["engines"] = gr.CheckboxGroup(
            [], label="Engines", visible=False, elem_id="runs-engines"
        )
        found["draws"] = gr.Dropdown(
            list(events.DRAWS), value="1", label="Draws", elem_id="runs-draws"
        )
        found["ask"] = gr.Button("Estimate", elem_id="runs-ask")
        found["begin"] = gr.Button("Start", variant="primary", elem_id="runs-start")
    found["estimate"] = panel(elem_id="runs-estimate")


def _connect_jobs(
    registry: EventRegistry, header: PageHeader, parts: RunsComponents
) -> None:
    form = (parts.kind, parts.subject, parts.engine, parts.engines, parts.draws)
    chosen = (parts.place, *header.selection, *form)
    shown = [parts.jobs, parts.timer]
    for what, listener, handler, right, inputs, outputs in (
        (
            "estimate",
            parts.ask.click,
            events.estimate_chosen,
            Right.SEE,
            chosen,
            parts.outputs,
        ),
        (
            "kind",
            parts.kind.input,
            events.choose_kind,
            Right.SEE,
            (*header.selection, parts.kind),
            parts.outputs,
        ),
        ("start", parts.begin.click, events.start, Right.REVISE, chosen, parts.outputs),
        ("job", parts.jobs.act, events.act_on_jobs, Right.REVISE, (), shown),
        (
            "prune",
            parts.pruned.act,
            events.prune,
            Right.REVISE,
            (),
            [parts.pruned],
        ),
        (
            "evaluate",
            parts.detail.do,
            events.evaluate_run_shown,
            Right.REVISE,
            (),
            shown,
        ),
        (
            "tick",
            parts.timer.tick,
            events.tick,
            Right.SEE,
            (parts.words, parts.place),
            parts.outputs,
        ),
    ):
        registry.on(
            listener,
            handler,
            right=right,
            name=f"runs_{what}",
            inputs=inputs,
            outputs=outputs,
        )


def _connect_runs(registry: EventRegistry, parts: RunsComponents) -> None:
    table = (parts.words, parts.place)
    for what, listener, handler, inputs, outputs in (
        ("find", parts.words.submit, events.find, table, parts.outputs),
        ("choose", parts.runs.tick, events.tick_run, (parts.place,), [parts.place]),
        ("case", parts.case.submit, events.find_case, (parts.case, parts.place), None),
        ("fold", parts.trace.act, events.fold_trace, (), None),
        ("act", parts.runs.do, events.act_on_runs, table, parts.outputs),
        (
            "open",
            parts.detail.act,
            events.act_on_detail,
            (parts.place,),
            parts.outputs,
        ),
        ("news", parts.news.act, events.act_on_detail, (parts.place,), parts.outputs),
        (
            "differ",
            parts.differences.act,
            events.act_on_detail,
            (parts.place,),
            parts.outputs,
        ),
    ):
        done = registry.on(
            listener,
            handler,
            right=Right.SEE,
            name=f"runs_{what}",
            inputs=inputs,
            outputs=[parts.trace] if outputs is None else outputs,
            show_progress="minimal" if what == "act" else "hidden",
        )
        if what in ("act", "case", "open", "differ", "news"):
            done.success(None, js=_SEE, queue=False)

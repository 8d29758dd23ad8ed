"""The section Adjudicate: what readers do not agree on, and a panel's decisions."""

from __future__ import annotations

from typing import Any

import gradio as gr

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.core.records import Mark
from loop.review.reading.adjudication import (
    DECIDABLE,
    adjudicate,
    decide,
    drop_pending,
    keep_pending,
    keep_reason,
    require_current,
)
from loop.ui.header import PageHeader
from loop.ui.html import notice, typing_in
from loop.ui.pages.readers.at_hand import open_assignment
from loop.ui.pages.readers.disputed import (
    ALL,
    DECIDED,
    OPEN,
    PER_PAGE,
    WAITING,
    DisputeFilter,
    DisputesView,
    find_scene,
    save_button,
    show_scene,
)
from loop.ui.pages.readers.section import ReadersSection, on_act, ordered_panel
from loop.ui.wiring import EventRegistry, Visit

NAME, TITLE = "adjudicate", "Adjudicate"


def build(registry: EventRegistry, header: PageHeader) -> ReadersSection:
    """Add the section and connect it."""
    with gr.Column(visible=False, elem_id="part-adjudicate") as box:
        with gr.Row(elem_id="disputes-filter"):
            label = gr.Dropdown(
                [("All labels", "")], value="", label="Label", elem_id="disputes-label"
            )
            states = [OPEN, WAITING, DECIDED, ALL]
            state = gr.Radio(states, value=OPEN, label="Show", elem_id="disputes-state")
            names = gr.Checkbox(
                label="Show readers' names", elem_id="disputes-names", visible=False
            )
        disputes = ordered_panel("disputes")
        with gr.Row(elem_id="adjudicate-bar"):
            why = gr.Textbox(
                label="How the decisions were reached (kept in the ledger)",
                elem_id="adjudicate-why",
                max_lines=2,
            )
            save = gr.Button("Save decisions", elem_id="adjudicate-save")
        typed = typing_in("#adjudicate-why", elem_id="adjudicate-why-typed")
    filters = [label, state, names]
    inputs = [*header.selection, *filters]
    outputs = [disputes, label, names, why, save]
    _connect_filters(registry, filters, inputs, outputs)
    on_act(
        registry,
        disputes,
        act,
        right=Right.ADJUDICATE,
        name="adjudicate_act",
        inputs=inputs,
        outputs=outputs,
    )
    registry.on(
        typed.typed,
        keep_why,
        right=Right.ADJUDICATE,
        name="adjudicate_why",
        inputs=[*header.selection, why],
        trigger_mode="always_last",
    )
    registry.on(
        save.click,
        save_all,
        right=Right.ADJUDICATE,
        name="adjudicate_save",
        inputs=[*inputs, why],
        outputs=outputs,
    )
    return ReadersSection(
        name=NAME,
        title=TITLE,
        right=Right.ADJUDICATE,
        box=box,
        show=open_,
        inputs=filters,
        outputs=outputs,
    )


def _connect_filters(
    registry: EventRegistry, filters: list[Any], inputs: list[Any], outputs: list[Any]
) -> None:
    for component in filters:
        registry.on(
            component.input,
            open_,
            right=Right.ADJUDICATE,
            name=f"adjudicate_by_{component.elem_id.removeprefix('disputes-')}",
            inputs=inputs,
            outputs=outputs,
        )


def open_(
    visit: Visit, _prompt: str | None, cohort: str | None, *chosen: Any
) -> list[Any]:
    """Return the list, the first dispute in it, and what waits to be saved."""
    try:
        scene = find_scene(visit, cohort, DisputeFilter(*chosen))
    except DataError as error:
        why = notice(str(error), title="There is nothing to adjudicate yet")
        return [why, gr.skip(), gr.skip(), gr.skip(), save_button(0)]
    return show_scene(visit, scene, why=scene.pending.why)


def act(
    visit: Visit, _prompt: str | None, cohort: str | None, *chosen: Any
) -> list[Any]:
    """Go to another dispute, or decide the one looked at; return the outputs.

    Raises
    ------
    DataError
        The dispute is unknown, or nobody can decide so; nothing was kept.
    """
    scene = find_scene(visit, cohort, DisputeFilter(*chosen))
    doing = str(visit.data.get("act"))
    if doing == "decide":
        scene = _decide(visit, scene)
    elif doing == "page":
        scene = scene._replace(at=_whole(visit.data.get("to")) * PER_PAGE)
    elif doing in ("before", "after"):
        scene = scene._replace(at=scene.at + (1 if doing == "after" else -1))
    elif doing != "open":
        raise DataError("the page asked for something unknown. Load it again.")
    last = max(len(scene.rows) - 1, 0)
    return show_scene(visit, scene._replace(at=min(max(scene.at, 0), last)))


def keep_why(
    visit: Visit, _prompt: str | None, cohort: str | None, why: str | None
) -> None:
    """Keep the reason as far as it is written."""
    context, assignment = visit.context, open_assignment(visit, cohort)
    keep_reason(context.store, visit.actor, assignment, str(why or ""), context.now)


def save_all(
    visit: Visit, _prompt: str | None, cohort: str | None, *values: Any
) -> list[Any]:
    """Put everything decided into one new reference version; return the outputs.

    Raises
    ------
    ConflictError
        Somebody else decided one of the disputes meanwhile; nothing was saved.
    DataError
        Nothing is decided, or there is no reason; nothing was saved.
    """
    *chosen, why = values
    scene = find_scene(visit, cohort, DisputeFilter(*chosen))
    if not scene.pending.decisions:
        raise DataError("every decision is saved already. Decide first.")
    if not str(why or "").strip():
        raise DataError(
            "an adjudication needs a reason. Write how the decisions were reached; "
            "the ledger records it."
        )
    require_current(scene.pending, scene.disputes)
    made = adjudicate(
        visit.context.workspace,
        scene.assignment,
        scene.pending.decisions,
        actor=visit.actor,
        why=str(why),
    )
    drop_pending(visit.context.store, visit.actor, scene.assignment)
    return show_scene(
        visit, find_scene(visit, cohort, DisputeFilter(*chosen)), made, why=""
    )


def _decide(visit: Visit, scene: DisputesView) -> DisputesView:
    """Keep a decision on the dispute that the page shows; the same twice is none."""
    shown = visit.data.get("case"), visit.data.get("label")
    row = next((r for r in scene.rows if (r.case_id, r.label) == shown), None)
    if row is None:
        raise DataError("this is no longer in dispute. Choose another one.")
    marks = {mark.value: mark for mark in DECIDABLE}
    mark = marks.get(str(visit.data.get("mark")), Mark.MISSING)
    again = scene.pending.of(row) is mark and not scene.pending.overtaken(row)
    pending = decide(scene.pending, row, None if again else mark)
    context = visit.context
    keep_pending(context.store, visit.actor, scene.assignment, pending, context.now)
    return scene._replace(pending=pending)


def _whole(number: object) -> int:
    """Return what the browser sent as a number, 0 where it is none."""
    text = str(number)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0

"""The section Adjudicate: what readers do not agree on, and a panel's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.records import Mark
from loop.labels.cohort import Role
from loop.people.users import Right
from loop.review.reading.adjudication import DECIDABLE, Adjudicated, adjudicate
from loop.review.reading.assignment import Assignment
from loop.review.reading.disputes import Dispute, Disputes
from loop.review.reading.pending import (
    Pending,
    decide,
    drop_pending,
    keep_pending,
    read_pending,
    require_current,
)
from loop.review.reading.sheet import open_sheet
from loop.ui.chrome import Chrome
from loop.ui.pages.readers.at_hand import open_assignment, open_disputes
from loop.ui.pages.readers.section import Section, on_act, ordered_panel
from loop.ui.show import notice, show
from loop.ui.wiring import Visit, Wire

NAME = "adjudicate"
PER_PAGE = 40
"""Disputes in the list at a time."""

OPEN, WAITING, DECIDED, ALL = "open", "decided here, not saved", "decided", "all"


class Chosen(NamedTuple):
    """What the list is narrowed to, as the browser says."""

    label: str | None
    state: str | None
    names: bool | None


class Scene(NamedTuple):
    """Everything that the section shows."""

    assignment: Assignment
    disputes: Disputes
    pending: Pending
    rows: Sequence[Dispute]
    """Those that are listed."""

    at: int
    """Which of them is looked at; 0 without any."""


def build(wire: Wire, chrome: Chrome) -> Section:
    """Add the section and connect it."""
    with gr.Tab("Adjudicate", id=NAME, elem_id="tab-adjudicate") as tab:
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
                label="How the decisions were reached (stands in the ledger)",
                elem_id="adjudicate-why",
                max_lines=2,
            )
            save = gr.Button("Save decisions", elem_id="adjudicate-save")
    filters = [label, state, names]
    inputs = [*chrome.context, *filters]
    outputs = [disputes, label, names, why, save]
    _wire_filters(wire, filters, inputs, outputs)
    on_act(
        wire,
        disputes,
        act,
        right=Right.ADJUDICATE,
        name="adjudicate_act",
        inputs=inputs,
        outputs=outputs,
    )
    wire.on(
        why.input,
        keep_why,
        right=Right.ADJUDICATE,
        name="adjudicate_why",
        inputs=[*inputs, why],
        trigger_mode="always_last",
    )
    wire.on(
        save.click,
        save_all,
        right=Right.ADJUDICATE,
        name="adjudicate_save",
        inputs=[*inputs, why],
        outputs=outputs,
    )
    return Section(
        name=NAME,
        right=Right.ADJUDICATE,
        tab=tab,
        show=open_,
        inputs=filters,
        outputs=outputs,
    )


def _wire_filters(
    wire: Wire, filters: list[Any], inputs: list[Any], outputs: list[Any]
) -> None:
    for component in filters:
        wire.on(
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
        scene = _scene(visit, cohort, Chosen(*chosen))
    except DataError as error:
        why = notice(str(error), title="There is nothing to adjudicate yet")
        return [why, gr.skip(), gr.skip(), gr.skip(), _button(0)]
    return _outputs(visit, scene)


def act(
    visit: Visit, _prompt: str | None, cohort: str | None, *chosen: Any
) -> list[Any]:
    """Go to another dispute, or decide the one looked at; return the outputs.

    Raises
    ------
    DataError
        The dispute is unknown, or nobody can decide so; nothing was kept.
    """
    scene = _scene(visit, cohort, Chosen(*chosen))
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
    return _outputs(visit, scene._replace(at=min(max(scene.at, 0), last)))


def keep_why(
    visit: Visit, _prompt: str | None, cohort: str | None, *values: Any
) -> None:
    """Keep the reason as far as it is written."""
    *chosen, why = values
    scene = _scene(visit, cohort, Chosen(*chosen))
    kept = Pending(
        decisions=scene.pending.decisions, over=scene.pending.over, why=str(why or "")
    )
    _keep(visit, scene.assignment, kept)


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
    scene = _scene(visit, cohort, Chosen(*chosen))
    if not scene.pending.decisions:
        raise DataError("nothing is decided that is not saved. Decide first.")
    if not str(why or "").strip():
        raise DataError(
            "an adjudication needs a reason. Write how the decisions were reached; it "
            "stands in the ledger."
        )
    require_current(scene.pending, scene.disputes)
    made = adjudicate(
        visit.desk.workspace,
        scene.assignment,
        scene.pending.decisions,
        actor=visit.actor,
        why=str(why),
    )
    drop_pending(visit.desk.store, visit.actor, scene.assignment)
    return _outputs(visit, _scene(visit, cohort, Chosen(*chosen)), made)


def _scene(visit: Visit, cohort: str | None, chosen: Chosen) -> Scene:
    assignment = open_assignment(visit, cohort)
    named = bool(chosen.names) and visit.user.may(Right.MANAGE)
    disputes = open_disputes(visit.desk, assignment, anonymous=not named)
    pending = read_pending(visit.desk.store, visit.actor, assignment, disputes)
    rows = [row for row in disputes.rows if _listed(row, chosen, pending)]
    pair = visit.data.get("case"), visit.data.get("label")
    found = (n for n, row in enumerate(rows) if (row.case_id, row.label) == pair)
    return Scene(assignment, disputes, pending, rows, next(found, 0))


def _listed(row: Dispute, chosen: Chosen, pending: Pending) -> bool:
    if chosen.label and row.label != chosen.label:
        return False
    waits = pending.of(row) is not None
    return {
        WAITING: waits,
        DECIDED: row.decided,
        ALL: True,
    }.get(chosen.state or OPEN, not row.decided or waits)


def _decide(visit: Visit, scene: Scene) -> Scene:
    """Keep a decision on the dispute that the page shows; the same twice is none."""
    shown = visit.data.get("case"), visit.data.get("label")
    row = next((r for r in scene.rows if (r.case_id, r.label) == shown), None)
    if row is None:
        raise DataError("this is no longer in dispute. Choose another one.")
    marks = {mark.value: mark for mark in DECIDABLE}
    mark = marks.get(str(visit.data.get("mark")), Mark.MISSING)
    again = scene.pending.of(row) is mark and not scene.pending.overtaken(row)
    pending = decide(scene.pending, row, None if again else mark)
    _keep(visit, scene.assignment, pending)
    return scene._replace(pending=pending)


def _keep(visit: Visit, assignment: Assignment, pending: Pending) -> None:
    desk = visit.desk
    keep_pending(desk.store, visit.actor, assignment, pending, desk.now)


def _outputs(visit: Visit, scene: Scene, made: Adjudicated | None = None) -> list[Any]:
    names = {row.label for row in scene.disputes.rows}
    taxonomy = scene.assignment.taxonomy
    labels = [(one.name, one.id) for one in taxonomy.labels if one.id in names]
    return [
        _panel(visit, scene, made),
        gr.Dropdown(choices=[("All labels", ""), *labels]),
        gr.Checkbox(visible=visit.user.may(Right.MANAGE)),
        gr.Textbox(value=scene.pending.why),
        _button(len(scene.pending.decisions)),
    ]


def _button(waiting: int) -> Any:
    noun = "decision" if waiting == 1 else "decisions"
    return gr.Button(
        value=f"Save {waiting} {noun}" if waiting else "Nothing to save",
        variant="primary" if waiting else "secondary",
        interactive=bool(waiting),
    )


def _panel(visit: Visit, scene: Scene, made: Adjudicated | None) -> str:
    row = scene.rows[scene.at] if scene.rows else None
    first = scene.at - scene.at % PER_PAGE
    assignment, desk = scene.assignment, visit.desk
    store, reader = desk.store, visit.user.name
    return show(
        "readers_disputes.html.jinja",
        disputes=scene.disputes,
        holdout=assignment.cohort.role is Role.HOLDOUT,
        label=assignment.taxonomy.find,
        rows=scene.rows,
        listed=scene.rows[first : first + PER_PAGE],
        page=first // PER_PAGE,
        pages=-(-len(scene.rows) // PER_PAGE),
        at=scene.at,
        row=row,
        text=open_sheet(desk.workspace, store, assignment, reader, row.case_id).text
        if row
        else "",
        pending=scene.pending,
        marks=DECIDABLE,
        made=made,
    )


def _whole(number: object) -> int:
    """Return what the browser sent as a number, 0 where it is none."""
    text = str(number)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0

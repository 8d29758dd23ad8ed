"""The panel Adjudicate: what readers do not agree on, and a panel's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.people.users import Right
from loop.core.records import Mark
from loop.review.reading.adjudication import (
    DECIDABLE,
    Adjudicated,
    Pending,
    adjudicate,
    decide,
    drop_pending,
    keep_pending,
    keep_reason,
    read_pending,
    require_current,
)
from loop.review.reading.answers import open_sheet, read_comments
from loop.review.reading.assignment import Assignment, read_basis, voting_names
from loop.review.reading.disputes import Dispute, Disputes, reader_letters
from loop.ui.header import PageHeader
from loop.ui.html import notice, show, typing_in
from loop.ui.pages.base import SAME
from loop.ui.pages.readers.base import ReadersPanel, on_act, ordered_panel
from loop.ui.pages.readers.state import open_assignment, open_disputes, open_turnout
from loop.ui.wiring import EventRegistry, Visit

NAME, TITLE = "adjudicate", "Adjudicate"

PER_PAGE = 40
"""Disputes in the list at a time."""

OPEN, WAITING, DECIDED, ALL = "open", "mine, not saved", "decided", "all"
"""What the list can be narrowed to."""


class DisputeFilter(NamedTuple):
    """What the list is narrowed to, as the browser says."""

    label: str | None
    state: str | None
    names: bool | None


class DisputesView(NamedTuple):
    """Everything that the panel shows."""

    assignment: Assignment
    disputes: Disputes
    pending: Pending
    named: bool
    """Whether readers are shown by name, not by letter."""

    rows: Sequence[Dispute]
    """Those that are listed."""

    at: int
    """Which of them is looked at; 0 without any."""


class AdjudicationOutputs(NamedTuple):
    """The components that the panel's events set, or what these show."""

    disputes: Any = SAME
    label: Any = SAME
    names: Any = SAME
    why: Any = SAME
    save: Any = SAME


def build(registry: EventRegistry, header: PageHeader) -> ReadersPanel:
    """Add the panel and connect it."""
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
    outputs = AdjudicationOutputs(
        disputes=disputes, label=label, names=names, why=why, save=save
    )
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
    return ReadersPanel(
        name=NAME,
        title=TITLE,
        right=Right.ADJUDICATE,
        box=box,
        show=open_,
        inputs=filters,
        outputs=outputs,
    )


def _connect_filters(
    registry: EventRegistry,
    filters: list[Any],
    inputs: list[Any],
    outputs: AdjudicationOutputs,
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
) -> AdjudicationOutputs:
    """Return the list, the first dispute in it, and what waits to be saved."""
    try:
        view = read_disputes_view(visit, cohort, DisputeFilter(*chosen))
    except DataError as error:
        said = notice(str(error), title="There is nothing to adjudicate yet")
        return AdjudicationOutputs(disputes=said, save=save_button(0))
    return show_disputes(visit, view, why=view.pending.why)


def act(
    visit: Visit, _prompt: str | None, cohort: str | None, *chosen: Any
) -> AdjudicationOutputs:
    """Go to another dispute, or decide the one looked at; return the outputs.

    Raises
    ------
    DataError
        The dispute is unknown, or nobody can decide so; nothing was kept.
    """
    view = read_disputes_view(visit, cohort, DisputeFilter(*chosen))
    doing = str(visit.data.get("act"))
    if doing == "decide":
        view = _decide(visit, view)
    elif doing == "page":
        view = view._replace(at=_whole(visit.data.get("to")) * PER_PAGE)
    elif doing in ("before", "after"):
        view = view._replace(at=view.at + (1 if doing == "after" else -1))
    elif doing != "open":
        raise DataError("the page asked for something unknown. Load it again.")
    last = max(len(view.rows) - 1, 0)
    return show_disputes(visit, view._replace(at=min(max(view.at, 0), last)))


def keep_why(
    visit: Visit, _prompt: str | None, cohort: str | None, why: str | None
) -> None:
    """Keep the reason as far as it is written."""
    context, assignment = visit.context, open_assignment(visit, cohort)
    keep_reason(context.store, visit.actor, assignment, str(why or ""), context.now)


def save_all(
    visit: Visit, _prompt: str | None, cohort: str | None, *values: Any
) -> AdjudicationOutputs:
    """Put everything decided into one new reference version; return the outputs.

    Raises
    ------
    ConflictError
        Somebody else decided one of the disputes meanwhile; nothing was saved.
    DataError
        Nothing is decided, or there is no reason; nothing was saved.
    """
    *chosen, why = values
    view = read_disputes_view(visit, cohort, DisputeFilter(*chosen))
    if not view.pending.decisions:
        raise DataError("every decision is saved already. Decide first.")
    if not str(why or "").strip():
        raise DataError(
            "an adjudication needs a reason. Write how the decisions were reached; "
            "the ledger records it."
        )
    require_current(view.pending, view.disputes)
    made = adjudicate(
        visit.context.workspace,
        view.assignment,
        view.pending.decisions,
        actor=visit.actor,
        why=str(why),
    )
    drop_pending(visit.context.store, visit.actor, view.assignment)
    return show_disputes(
        visit, read_disputes_view(visit, cohort, DisputeFilter(*chosen)), made, why=""
    )


def _decide(visit: Visit, view: DisputesView) -> DisputesView:
    """Keep a decision on the dispute that the page shows; the same twice is none."""
    shown = visit.data.get("case"), visit.data.get("label")
    row = next((r for r in view.rows if (r.case_id, r.label) == shown), None)
    if row is None:
        raise DataError("this is no longer in dispute. Choose another one.")
    marks = {mark.value: mark for mark in DECIDABLE}
    mark = marks.get(str(visit.data.get("mark")), Mark.MISSING)
    again = view.pending.of(row) is mark and not view.pending.overtaken(row)
    pending = decide(view.pending, row, None if again else mark)
    context = visit.context
    keep_pending(context.store, visit.actor, view.assignment, pending, context.now)
    return view._replace(pending=pending)


def _whole(number: object) -> int:
    """Return what the browser sent as a number, 0 where it is none."""
    text = str(number)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def read_disputes_view(
    visit: Visit, cohort: str | None, chosen: DisputeFilter
) -> DisputesView:
    """Return what is shown for what is chosen; the dispute is the one the page names.

    Raises
    ------
    DataError
        There are no votes, or the cohort is not for this visitor.
    """
    assignment = open_assignment(visit, cohort)
    named = bool(chosen.names) and visit.user.may(Right.MANAGE)
    disputes = open_disputes(visit.context, assignment, anonymous=not named)
    pending = read_pending(visit.context.store, visit.actor, assignment, disputes)
    rows = [row for row in disputes.rows if _listed(row, chosen, pending)]
    pair = visit.data.get("case"), visit.data.get("label")
    found = (n for n, row in enumerate(rows) if (row.case_id, row.label) == pair)
    return DisputesView(assignment, disputes, pending, named, rows, next(found, 0))


def _listed(row: Dispute, chosen: DisputeFilter, pending: Pending) -> bool:
    if chosen.label and row.label != chosen.label:
        return False
    waits = pending.of(row) is not None
    return {
        WAITING: waits,
        DECIDED: row.decided,
        ALL: True,
    }.get(chosen.state or OPEN, not row.decided or waits)


def show_disputes(
    visit: Visit,
    view: DisputesView,
    made: Adjudicated | None = None,
    why: str | None = None,
) -> AdjudicationOutputs:
    """Return the outputs; the reason is left alone unless `why` is given."""
    names = {row.label for row in view.disputes.rows}
    taxonomy = view.assignment.taxonomy
    labels = [(one.name, one.id) for one in taxonomy.labels if one.id in names]
    return AdjudicationOutputs(
        disputes=_render_disputes(visit, view, made),
        label=gr.Dropdown(choices=[("All labels", ""), *labels]),
        names=gr.Checkbox(visible=visit.user.may(Right.MANAGE)),
        why=SAME if why is None else gr.Textbox(value=why),
        save=save_button(len(view.pending.decisions)),
    )


def save_button(waiting: int) -> Any:
    """Return the button that saves so many decisions."""
    return gr.Button(
        value=f"Save {counted(waiting, 'decision')}" if waiting else "Nothing to save",
        variant="primary" if waiting else "secondary",
        interactive=bool(waiting),
    )


def _comments(visit: Visit, view: DisputesView, case_id: str) -> list[tuple[str, str]]:
    """Return what readers who voted noted on a case, named as their votes are."""
    context, assignment = visit.context, view.assignment
    basis = read_basis(context.workspace, assignment)
    turnout = open_turnout(context, assignment, basis)
    if turnout is None:
        return []
    letters = reader_letters(assignment.cohort, turnout.readers, case_id)
    found = []
    for one in read_comments(context.store, assignment, case_id):
        for name in voting_names(context.workspace, turnout.readers, one.reader):
            found.append((name if view.named else letters[name], one.comment))
    return sorted(found)


def _render_disputes(visit: Visit, view: DisputesView, made: Adjudicated | None) -> str:
    row = view.rows[view.at] if view.rows else None
    first = view.at - view.at % PER_PAGE
    assignment, context = view.assignment, visit.context
    store, reader = context.store, visit.user.name
    return show(
        "readers_disputes.html.jinja",
        disputes=view.disputes,
        label=assignment.taxonomy.find,
        rows=view.rows,
        listed=view.rows[first : first + PER_PAGE],
        page=first // PER_PAGE,
        pages=-(-len(view.rows) // PER_PAGE),
        at=view.at,
        row=row,
        text=open_sheet(context.workspace, store, assignment, reader, row.case_id).text
        if row
        else "",
        comments=_comments(visit, view, row.case_id) if row else (),
        pending=view.pending,
        marks=DECIDABLE,
        made=made,
    )

"""What the section Adjudicate shows: the list of disputes, and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.people.users import Right
from loop.review.reading.adjudication import (
    DECIDABLE,
    Adjudicated,
    Pending,
    read_pending,
)
from loop.review.reading.answers import open_sheet, read_comments
from loop.review.reading.assignment import Assignment, read_basis, voting_names
from loop.review.reading.disputes import Dispute, Disputes, reader_letters
from loop.ui.pages.readers.at_hand import open_assignment, open_disputes, open_turnout
from loop.ui.show import show
from loop.ui.wiring import Visit

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
    """Everything that the section shows."""

    assignment: Assignment
    disputes: Disputes
    pending: Pending
    named: bool
    """Whether readers are shown by name, not by letter."""

    rows: Sequence[Dispute]
    """Those that are listed."""

    at: int
    """Which of them is looked at; 0 without any."""


def find_scene(visit: Visit, cohort: str | None, chosen: DisputeFilter) -> DisputesView:
    """Return what is shown for what is chosen; the dispute is the one the page names.

    Raises
    ------
    DataError
        There are no votes, or the cohort is not for this visitor.
    """
    assignment = open_assignment(visit, cohort)
    named = bool(chosen.names) and visit.user.may(Right.MANAGE)
    disputes = open_disputes(visit.desk, assignment, anonymous=not named)
    pending = read_pending(visit.desk.store, visit.actor, assignment, disputes)
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


def show_scene(
    visit: Visit,
    scene: DisputesView,
    made: Adjudicated | None = None,
    why: str | None = None,
) -> list[Any]:
    """Return the outputs; the reason is left alone unless `why` is given."""
    names = {row.label for row in scene.disputes.rows}
    taxonomy = scene.assignment.taxonomy
    labels = [(one.name, one.id) for one in taxonomy.labels if one.id in names]
    return [
        _panel(visit, scene, made),
        gr.Dropdown(choices=[("All labels", ""), *labels]),
        gr.Checkbox(visible=visit.user.may(Right.MANAGE)),
        gr.skip() if why is None else gr.Textbox(value=why),
        save_button(len(scene.pending.decisions)),
    ]


def save_button(waiting: int) -> Any:
    """Return the button that saves so many decisions."""
    noun = "decision" if waiting == 1 else "decisions"
    return gr.Button(
        value=f"Save {waiting} {noun}" if waiting else "Nothing to save",
        variant="primary" if waiting else "secondary",
        interactive=bool(waiting),
    )


def _comments(visit: Visit, scene: DisputesView, case_id: str) -> list[tuple[str, str]]:
    """Return what readers who voted noted on a case, named as their votes are."""
    desk, assignment = visit.desk, scene.assignment
    basis = read_basis(desk.workspace, assignment)
    turnout = open_turnout(desk, assignment, basis)
    if turnout is None:
        return []
    letters = reader_letters(assignment.cohort, turnout.readers, case_id)
    found = []
    for one in read_comments(desk.store, assignment, case_id):
        for name in voting_names(desk.workspace, turnout.readers, one.reader):
            found.append((name if scene.named else letters[name], one.comment))
    return sorted(found)


def _panel(visit: Visit, scene: DisputesView, made: Adjudicated | None) -> str:
    row = scene.rows[scene.at] if scene.rows else None
    first = scene.at - scene.at % PER_PAGE
    assignment, desk = scene.assignment, visit.desk
    store, reader = desk.store, visit.user.name
    return show(
        "readers_disputes.html.jinja",
        disputes=scene.disputes,
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
        comments=_comments(visit, scene, row.case_id) if row else (),
        pending=scene.pending,
        marks=DECIDABLE,
        made=made,
    )

"""What the page's events return: every component as it shall be shown."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from loop.evaluate.failures import ALL_LABELS
from loop.people.users import Right
from loop.review.working import read_working
from loop.ui.pages.review.form import (
    Form,
    missing,
    warn,
)
from loop.ui.pages.review.ground import (
    Sight,
    label_name,
    look,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.layout import ALL
from loop.ui.pages.review.place import (
    Filters,
    Place,
    keep_place,
)
from loop.ui.pages.review.views import (
    render_case,
    render_queue,
    render_remark,
    render_said,
)
from loop.ui.show import notice, show
from loop.ui.wiring import Visit

FILTERS = len(Filters._fields)
FIELDS = len(Form._fields)


class Status(NamedTuple):
    """What the line under the form says."""

    done: str = ""
    trouble: str = ""
    kept: str = ""
    """Time of day, UTC."""

    lacks: tuple[str, ...] = ()
    copied: str = ""


def show_all(visit: Visit, place: Place, filters: Filters) -> list[Any]:
    """Return the filters with their choices, then what `show_pair` returns."""
    sight = look(visit.desk, place, filters)
    return [*_menus(visit, place, sight, filters), *show_pair(visit, place, filters)]


def _menus(visit: Visit, place: Place, sight: Sight, filters: Filters) -> list[Any]:
    taxonomy = taxonomy_of(visit.desk, place)
    failing = [item.label for item in sight.queue.items]
    labels = [
        ALL,
        *(
            (f"{label_name(taxonomy, label)} ({failing.count(label)})", label)
            for label in taxonomy.ids
            if label in failing or label == filters.label
        ),
    ]
    names = sorted({name for one in sight.queue.items for name in one.reviewers})
    people = [ALL, *((name, name) for name in names)]
    who = filters.reviewer if filters.reviewer in names else ""
    return [
        filters.search,
        gr.Dropdown(choices=labels, value=filters.label),
        filters.kind,
        filters.section,
        filters.status,
        gr.Dropdown(choices=people, value=who),
    ]


def show_closed(text: str) -> list[Any]:
    """Return the page with nothing to review, and why."""
    fields = [gr.skip()] * FIELDS
    shown = [
        Place(),
        "0",
        "",
        "",
        notice(text, title="Nothing to review here"),
        _visible(False),
        "",
        "",
        gr.Column(visible=False),
        gr.skip(),
        *fields,
    ]
    return [*([gr.skip()] * FILTERS), *shown]


def _visible(shown: bool) -> gr.Column:
    """Return the form's column shown or hidden; hidden it keeps its fields."""
    return gr.Column(visible=True if shown else "hidden")


def show_pair(
    visit: Visit, place: Place, filters: Filters, said: str = ""
) -> list[Any]:
    """Return what a move through the queue sets, with the form of the open pair."""
    sight = look(visit.desk, place, filters)
    keep_place(visit, place, filters)
    kept = read_working(visit.desk.store, visit.actor, place.subject)
    form = Form.of(kept.payload) if kept else Form()
    status = Status(done=said, kept=kept.saved[11:19] if kept else "")
    if kept:
        status = note_form(status, form, sight)
    return [*_panels(visit, place, sight, status), *form]


def show_again(
    visit: Visit, place: Place, filters: Filters, status: Status
) -> list[Any]:
    """Return the panels anew and leave the form as it is on the screen."""
    sight = look(visit.desk, place, filters)
    return [*_panels(visit, place, sight, status), *([gr.skip()] * FIELDS)]


def _panels(visit: Visit, place: Place, sight: Sight, status: Status) -> list[Any]:
    item = sight.item
    may = visit.user.may(Right.JUDGE)
    mine = [v for v in verdicts_on(sight) if v.verdict.reviewer == visit.user.name]
    held = item is not None and item.reserved_by == visit.user.name
    return [
        place,
        str(place.serial),
        render_remark(visit, place),
        render_queue(visit, place, sight),
        render_case(visit, place, sight),
        _visible(may and item is not None and item.label != ALL_LABELS),
        render_status(status) if may else "",
        render_said(visit, place, sight),
        gr.Column(visible=bool(mine) and may),
        gr.Button("Give back" if held else "Reserve"),
    ]


def render_status(status: Status) -> str:
    """Return the line under the form."""
    return show("review_status.html.jinja", **status._asdict())


def note_form(status: Status, form: Form, sight: Sight) -> Status:
    """Return the status with what the form lacks and what it copies."""
    text = ""
    if sight.item and sight.queue.texts.here:
        text = sight.queue.texts.read(sight.item.case_id)
    return status._replace(lacks=missing(form), copied=warn(form, text))

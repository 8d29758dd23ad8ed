"""What the page's events return: every component as it shall be shown."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from loop.core.people.users import Right
from loop.review.queue.build import Queue
from loop.review.working import read_working
from loop.ui.html import notice, show
from loop.ui.pages.review.form import (
    ReviewForm,
    missing,
    warn,
)
from loop.ui.pages.review.layout import ALL, Panels
from loop.ui.pages.review.place import (
    Filters,
    Place,
    keep_place,
)
from loop.ui.pages.review.state import (
    Sight,
    label_name,
    look,
    taxonomy_of,
)
from loop.ui.pages.review.views import (
    render_alike,
    render_case,
    render_offer,
    render_queue,
    render_remark,
    render_said,
)
from loop.ui.wiring import Visit

FILTERS = len(Filters._fields)
FIELDS = len(ReviewForm._fields)


class FormStatus(NamedTuple):
    """What the line under the form says."""

    done: str = ""
    until: str = ""
    """When what is done ends by itself: UTC, ISO 8601."""

    trouble: str = ""
    kept: str = ""
    """UTC, ISO 8601."""

    lacks: tuple[str, ...] = ()
    copied: str = ""


def show_all(visit: Visit, place: Place, filters: Filters, said: str = "") -> list[Any]:
    """Return the filters with their choices, then what `show_pair` returns."""
    sight = look(visit, place, filters)
    menus = _menus(visit, place, sight.queue, filters)
    return [*menus, *show_pair(visit, place, filters, said)]


def _menus(visit: Visit, place: Place, queue: Queue, filters: Filters) -> list[Any]:
    taxonomy = taxonomy_of(visit.context, place)
    failing = [item.label for item in queue.failing]
    labels = [
        ALL,
        *(
            (f"{label_name(taxonomy, label)} ({failing.count(label)})", label)
            for label in taxonomy.ids
            if label in failing or label == filters.label
        ),
    ]
    names = sorted({name for one in queue.items for name in one.reviewers})
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
    panels = Panels(
        place=Place(),
        token="",
        case=notice(text, title="Nothing to review here"),
        offer=show("review_closed.html.jinja"),
    )
    return [*([gr.skip()] * FILTERS), *panels, *ReviewForm()]


def show_pair(
    visit: Visit, place: Place, filters: Filters, said: str = "", trouble: str = ""
) -> list[Any]:
    """Return what a move through the queue sets, with the form of the open pair."""
    sight = look(visit, place, filters)
    keep_place(visit, place, filters)
    kept = read_working(visit.context.store, visit.actor, place.subject)
    form = ReviewForm.of(kept.payload) if kept else ReviewForm()
    status = FormStatus(done=said, trouble=trouble, kept=kept.saved if kept else "")
    if kept:
        status = note_form(status, form, sight)
    return [*show_panels(visit, place, filters, sight, status), *form]


def show_again(
    visit: Visit, place: Place, filters: Filters, status: FormStatus
) -> list[Any]:
    """Return the panels anew and leave the form as it is on the screen."""
    sight = look(visit, place, filters)
    panels = show_panels(visit, place, filters, sight, status)
    return [*panels, *([gr.skip()] * FIELDS)]


def show_panels(
    visit: Visit, place: Place, filters: Filters, sight: Sight, status: FormStatus
) -> Panels:
    """Return everything but the form's fields.

    Plain values all: Gradio rebuilds a component for each one that is updated or
    skipped, which takes longer than what is shown.
    """
    item = sight.item
    held = item is not None and item.reserved_by == visit.user.name
    return Panels(
        place=place,
        token=place.token,
        remark=render_remark(visit, place),
        queue=render_queue(visit, place, sight, filters),
        case=render_case(visit, place, sight, filters.search),
        offer=render_offer(visit, place, sight),
        status=render_status(status, place) if visit.user.may(Right.JUDGE) else "",
        alike=render_alike(visit, place, sight),
        said=render_said(visit, place, sight),
        reserve="Give back" if held else "Reserve",
    )


def render_status(status: FormStatus, place: Place) -> str:
    """Return the line under the form."""
    return show("review_status.html.jinja", **status._asdict(), last=place.last)


def note_form(status: FormStatus, form: ReviewForm, sight: Sight) -> FormStatus:
    """Return the status with what the form lacks and what it copies."""
    text = ""
    if form.worded and sight.item and sight.queue.texts.here:
        text = sight.queue.texts.read(sight.item.case_id)
    return status._replace(lacks=missing(form), copied=warn(form, text))

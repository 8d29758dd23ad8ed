"""Going through the queue: opening, choosing, filtering, going on."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.review.working import read_working
from loop.ui.pages.review.place import (
    FOLLOW,
    Filters,
    Place,
    blind_kept,
    find_place,
    keep_blind,
    keep_place,
    next_open,
    place_kept,
    step,
)
from loop.ui.pages.review.showing import (
    FormStatus,
    show_again,
    show_all,
    show_closed,
    show_pair,
)
from loop.ui.pages.review.state import (
    look,
    newest_place,
    place_on,
    taxonomy_of,
)
from loop.ui.wiring import Visit


def refresh(
    visit: Visit, prompt: str | None, cohort: str | None, place: Place, *filters: Any
) -> list[Any]:
    """Return everything when the page is opened or chosen again.

    What is open in this tab stays, even if a newer run exists; a new tab goes on where
    its visitor was.
    """
    if not prompt or not cohort:
        return show_closed("Add a cohort under Files, or with `ranloop cohort import`.")
    wanted, said = Filters.of(filters), ""
    try:
        if (place.prompt, place.cohort) != (prompt, cohort) or not place.run:
            newest = newest_place(visit.context, prompt, cohort)
            place, wanted, said = _resume(visit, newest)
        return show_all(visit, place, wanted, said)
    except DataError as error:
        return show_closed(str(error))


def open_on_label(
    visit: Visit, prompt: str, cohort: str, label: str, place: Place, case: str = ""
) -> list[Any]:
    """Return everything with the first pair of one label open; as `refresh` does.

    With a `case` that fails there, that pair is opened.

    Raises
    ------
    DataError
        There is no run, or the cohort is a holdout.
    """
    if (place.prompt, place.cohort) != (prompt, cohort) or not place.run:
        place = newest_place(visit.context, prompt, cohort)
        place = place._replace(blind=blind_kept(visit))
    known = taxonomy_of(visit.context, place)
    wanted = Filters(label=label if label in known.ids else "")
    sight = look(visit, place, wanted)
    meant = (one for one in sight.items if case and one.case_id == case)
    failing = [one for one in sight.items if not one.right]
    first = next(meant, None) or next_open(failing, None)
    first = first or next(iter(sight.items), None)
    return show_all(visit, place.at(first), wanted)


class Resumed(NamedTuple):
    """Where a visitor goes on."""

    place: Place
    filters: Filters
    said: str
    """That a link named what is not there, or nothing."""


def _resume(visit: Visit, newest: Place) -> Resumed:
    """Return where a visitor was, on the run of an unfinished form if there is one."""
    newest = newest._replace(blind=blind_kept(visit))
    kept = place_kept(visit, newest)
    before = newest
    if kept.run not in ("", newest.run):
        older = place_on(visit.context, newest.prompt, newest.cohort, kept.run)
        form = older and _replaced(older, kept.case, kept.label)
        begun = form and read_working(visit.context.store, visit.actor, form.subject)
        before = older if older and begun else newest
        before = before._replace(blind=newest.blind)
    sight = look(visit, before, kept.filters)
    meant = sight.queue.find(kept.case, kept.label)
    said = ""
    if kept.linked and meant is None:
        said = "The pair that the link names is not among the failing ones here."
    item = meant or next_open(sight.items, None) or next(iter(sight.items), None)
    return Resumed(before.at(item), kept.filters, said)


def _replaced(place: Place, case: str, label: str) -> Place:
    return place._replace(case=case, label=label)


def choose(visit: Visit, place: Place, *values: Any) -> Any:
    """Open a pair of the list, turn its page, or hide what others said."""
    filters = Filters.of(values)
    data = visit.data
    if data.get("act") == "blind":
        keep_blind(visit, not place.blind)
        place = place._replace(blind=not place.blind)
        return show_again(visit, place, filters, FormStatus())
    if data.get("act") == "page":
        start = str(data.get("start", ""))
        whole = start.isascii() and start.isdecimal() and len(start) < 8
        at = int(start) if whole else FOLLOW
        return show_again(visit, place._replace(start=at), filters, FormStatus())
    sight = look(visit, place, filters)
    case, label = str(data.get("case", "")), str(data.get("label", ""))
    item = sight.queue.find(case, label)
    if item is None:
        raise DataError("this pair is not in the queue. Choose one of the list.")
    return show_pair(visit, place.at(item), filters)


def turn(visit: Visit, place: Place, *values: Any) -> Any:
    """Do what a button of the open case says: go on, go back, mark more."""
    filters = Filters.of(values)
    act = visit.data.get("act")
    if act == "wide":
        return show_again(
            visit, place._replace(wide=not place.wide), filters, FormStatus()
        )
    sight = look(visit, place, filters)
    if act not in ("next", "previous") or not sight.items:
        return gr.skip()
    item = step(sight.items, sight.item, 1 if act == "next" else -1)
    if item is sight.item:
        end = "last" if act == "next" else "first"
        status = FormStatus(done=f"This is the {end} pair of the list.")
        return show_again(visit, place, filters, status)
    return show_pair(visit, place.at(item), filters)


def narrow(visit: Visit, place: Place, *values: Any) -> Any:
    """Apply changed filters, and open their first pair unless the open one fits."""
    filters = Filters.of(values)
    place = place._replace(start=FOLLOW)
    sight = look(visit, place, filters)
    if not sight.items or find_place(sight.items, sight.item) is not None:
        keep_place(visit, place, filters)
        return show_again(visit, place, filters, FormStatus())
    first = next_open(sight.items, None) or sight.items[0]
    return show_pair(visit, place.at(first), filters)


def renew(visit: Visit, place: Place, *values: Any) -> Any:
    """Open the newest run and reference, on the same pair if it still fails there."""
    filters = Filters.of(values)
    newest = newest_place(visit.context, place.prompt, place.cohort)
    newest = newest._replace(
        serial=place.serial, wide=place.wide, blind=place.blind, last=place.last
    )
    sight = look(visit, newest, filters)
    item = sight.queue.find(*place.pair) or next_open(sight.items, None)
    return show_pair(visit, newest.at(item), filters)

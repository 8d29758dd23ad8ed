"""What a reviewer says: the form kept, handed in, changed, taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from loop.core.errors import DataError, UnknownLabelError
from loop.evaluate.failures import ALL_LABELS
from loop.review.entry import build_from_form
from loop.review.queue.records import QueueItem
from loop.review.record import Circumstances
from loop.review.reservations import release, reserve
from loop.review.submit import submit_verdict, withdraw_verdict
from loop.review.working import drop_working, keep_working
from loop.ui.pages.review.form import (
    Form,
    fields_of,
    form_of,
    missing,
)
from loop.ui.pages.review.ground import (
    Sight,
    cohort_facts,
    label_name,
    look,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.place import (
    Filters,
    Place,
    next_open,
)
from loop.ui.pages.review.showing import (
    FILTERS,
    Status,
    note_form,
    render_status,
    show_again,
    show_pair,
)
from loop.ui.wiring import Visit


def keep_form(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form as it is being filled in."""
    if token != str(place.serial):
        return gr.skip()
    status = _keep(visit, place, _form(values))
    return render_status(status)


def take_text(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form with the marked words as its phrase."""
    if token != str(place.serial):
        return [gr.skip(), gr.skip()]
    *fields, marked = values
    words = " ".join(marked.split()) if isinstance(marked, str) else ""
    if not words:
        trouble = "Mark some words in the case text first."
        return [gr.skip(), render_status(Status(trouble=trouble))]
    status = _keep(visit, place, _form(fields)._replace(phrase=words))
    return [words, render_status(status)]


def _form(values: Sequence[Any]) -> Form:
    return Form.of(dict(zip(Form._fields, values, strict=True)))


def _keep(visit: Visit, place: Place, form: Form) -> Status:
    """Keep an unfinished form; an empty one is forgotten."""
    desk = visit.desk
    if form == Form():
        drop_working(desk.store, visit.actor, place.subject)
        return Status()
    keep_working(desk.store, visit.actor, place.subject, form._asdict(), desk.now)
    sight = look(desk, place, Filters())
    return note_form(Status(kept=f"{desk.now():%H:%M:%S}"), form, sight)


def hand_in(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the verdict and open the next pair that waits for one."""
    if token != str(place.serial):
        return gr.skip()
    filters, form = Filters.of(values[:FILTERS]), _form(values[FILTERS:])
    sight = look(visit.desk, place, filters)
    item = sight.item
    if item is None or item.label == ALL_LABELS:
        raise DataError("no pair is open. Choose one of the list.")
    lacks = missing(form)
    if lacks:
        trouble = f"Not submitted: still missing {', '.join(lacks)}."
        return _refused(visit, place, filters, trouble)
    try:
        _submit(visit, place, sight, form)
    except (DataError, UnknownLabelError) as error:
        return _refused(visit, place, filters, f"Not submitted: {error}")
    return _go_on(visit, place, filters, item)


def _refused(visit: Visit, place: Place, filters: Filters, trouble: str) -> list[Any]:
    return show_again(visit, place, filters, Status(trouble=trouble))


def _submit(visit: Visit, place: Place, sight: Sight, form: Form) -> None:
    """Keep the verdict and drop the unfinished form, in one transaction."""
    desk, line = visit.desk, sight.queue.line
    verdict = build_from_form(
        fields_of(form, place.case, place.label),
        reviewer=visit.actor.name,
        taxonomy=taxonomy_of(desk, place),
        case_ids=cohort_facts(desk, place).case_ids,
    )
    made_on = Circumstances(line.cohort, line.prompt, "", line.run_id)
    submit_verdict(desk.store, verdict, made_on, desk.now, finishing=place.subject)
    release(desk.store, place.cohort, place.case, visit.actor)


def _go_on(visit: Visit, place: Place, filters: Filters, item: QueueItem) -> list[Any]:
    """Return the page with the next pair that waits, and that the last was saved."""
    name = label_name(taxonomy_of(visit.desk, place), item.label)
    saved = f"Saved {name}, {item.case_id}, {visit.desk.now():%H:%M:%S} UTC."
    if item.reserved_by not in ("", visit.user.name):
        saved += f" {item.reserved_by} has the case reserved: both answers are kept."
    sight = look(visit.desk, place, filters)
    following = next_open(sight.items, item)
    if following is None:
        saved += " Nothing in this list waits for an answer any more."
        return show_pair(visit, place.at(item), filters, saved)
    return show_pair(visit, place.at(following), filters, saved)


def toggle_reserve(visit: Visit, place: Place, *values: Any) -> Any:
    """Reserve the open case for twenty minutes, or give it back."""
    filters = Filters.of(values)
    desk = visit.desk
    sight = look(desk, place, filters)
    if sight.item is None:
        raise DataError("no pair is open. Choose one of the list.")
    if sight.item.reserved_by == visit.user.name:
        release(desk.store, place.cohort, place.case, visit.actor)
        done = Status(done="Given back.")
    else:
        held = reserve(desk.store, place.cohort, place.case, visit.actor, desk.now)
        who = "you" if held.actor == visit.actor.name else held.actor
        done = Status(done=f"Reserved by {who} until {held.until[11:16]} UTC.")
    return show_again(visit, place, filters, done)


def change(visit: Visit, place: Place, *values: Any) -> Any:
    """Fill the form with an own verdict, to be handed in again in its place."""
    sight = look(visit.desk, place, Filters.of(values))
    wanted = str(visit.data.get("id", ""))
    for one in verdicts_on(sight):
        form = form_of(one.verdict)
        if one.id == wanted and one.verdict.reviewer == visit.user.name and form:
            status = _keep(visit, place, form)._replace(
                done="Change it and submit: it takes the place of what you said."
            )
            return [render_status(status), *form]
    raise DataError("this verdict is not yours, or not any more. Open the pair again.")


def take_back(visit: Visit, place: Place, reason: str, *values: Any) -> Any:
    """Withdraw one's own verdicts on the open pair."""
    filters = Filters.of(values)
    sight = look(visit.desk, place, filters)
    for one in verdicts_on(sight):
        if one.verdict.reviewer == visit.actor.name:
            ref = f"{place.cohort}:{one.id}"
            withdraw_verdict(
                visit.desk.store, ref, visit.actor, reason or "", visit.desk.now
            )
    done = Status(done="Taken back; it stays in the record with your reason.")
    return ["", *show_again(visit, place, filters, done)]

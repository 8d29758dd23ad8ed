"""What happens on each event of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError, UnknownLabelError
from loop.evaluate.failures import ALL_LABELS
from loop.people.users import Right
from loop.review.entry import build_from_form
from loop.review.queue.records import QueueItem
from loop.review.record import Circumstances
from loop.review.reservations import release, reserve
from loop.review.submit import submit_verdict, withdraw_verdict
from loop.review.working import drop_working, keep_working, read_working
from loop.ui.pages.review.form import (
    Form,
    fields_of,
    form_of,
    missing,
    warn,
)
from loop.ui.pages.review.ground import (
    Sight,
    cohort_facts,
    label_name,
    look,
    newest_place,
    place_on,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.layout import ALL
from loop.ui.pages.review.place import (
    FOLLOW,
    Filters,
    Place,
    keep_place,
    next_open,
    place_kept,
    step,
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


def refresh(
    visit: Visit, prompt: str | None, cohort: str | None, place: Place, *filters: Any
) -> list[Any]:
    """Return everything when the page is opened or chosen again.

    What is open in this tab stays, even if a newer run exists; a new tab goes on where
    its visitor was.
    """
    if not prompt or not cohort:
        return _closed("Add a cohort under Files, or with `ranloop cohort import`.")
    wanted = Filters.of(filters)
    try:
        if (place.prompt, place.cohort) != (prompt, cohort) or not place.run:
            place, wanted = _resume(visit, newest_place(visit.desk, prompt, cohort))
        return _show_all(visit, place, wanted)
    except DataError as error:
        return _closed(str(error))


def open_on_label(
    visit: Visit, prompt: str, cohort: str, label: str, place: Place
) -> list[Any]:
    """Return everything with the first pair of one label open; as `refresh` does.

    Raises
    ------
    DataError
        There is no run, or the cohort is a holdout.
    """
    if (place.prompt, place.cohort) != (prompt, cohort) or not place.run:
        place = newest_place(visit.desk, prompt, cohort)
    known = taxonomy_of(visit.desk, place)
    wanted = Filters(label=label if label in known.ids else "")
    sight = look(visit.desk, place, wanted)
    first = next_open(sight.items, None) or next(iter(sight.items), None)
    return _show_all(visit, place.at(first), wanted)


def _resume(visit: Visit, newest: Place) -> tuple[Place, Filters]:
    """Return where a visitor was, on the run of an unfinished form if there is one."""
    kept = place_kept(visit, newest)
    before = newest
    if kept.run not in ("", newest.run):
        older = place_on(visit.desk, newest.prompt, newest.cohort, kept.run)
        form = older and _replaced(older, kept.case, kept.label)
        begun = form and read_working(visit.desk.store, visit.actor, form.subject)
        before = older if older and begun else newest
    sight = look(visit.desk, before, kept.filters)
    item = sight.queue.find(kept.case, kept.label)
    item = item or next_open(sight.items, None) or next(iter(sight.items), None)
    return before.at(item), kept.filters


def _replaced(place: Place, case: str, label: str) -> Place:
    return place._replace(case=case, label=label)


def _show_all(visit: Visit, place: Place, filters: Filters) -> list[Any]:
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


def _closed(text: str) -> list[Any]:
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
        status = _noted(status, form, sight)
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
        _render_status(status) if may else "",
        render_said(visit, place, sight),
        gr.Column(visible=bool(mine) and may),
        gr.Button("Give back" if held else "Reserve"),
    ]


def _render_status(status: Status) -> str:
    return show("review_status.html.jinja", **status._asdict())


def _noted(status: Status, form: Form, sight: Sight) -> Status:
    """Return the status with what the form lacks and what it copies."""
    text = ""
    if sight.item and sight.queue.texts.here:
        text = sight.queue.texts.read(sight.item.case_id)
    return status._replace(lacks=missing(form), copied=warn(form, text))


def choose(visit: Visit, place: Place, *values: Any) -> Any:
    """Open a pair of the list, or turn its page."""
    filters = Filters.of(values)
    data = visit.data
    if data.get("act") == "page":
        start = str(data.get("start", ""))
        at = int(start) if start.isascii() and start.isdecimal() else FOLLOW
        return show_again(visit, place._replace(start=at), filters, Status())
    sight = look(visit.desk, place, filters)
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
        return show_again(visit, place._replace(wide=not place.wide), filters, Status())
    sight = look(visit.desk, place, filters)
    if act not in ("next", "previous") or not sight.items:
        return gr.skip()
    item = step(sight.items, sight.item, 1 if act == "next" else -1)
    if item is sight.item:
        end = "last" if act == "next" else "first"
        status = Status(done=f"This is the {end} pair of the list.")
        return show_again(visit, place, filters, status)
    return show_pair(visit, place.at(item), filters)


def narrow(visit: Visit, place: Place, *values: Any) -> Any:
    """Apply changed filters, and open their first pair unless the open one fits."""
    filters = Filters.of(values)
    place = place._replace(start=FOLLOW)
    sight = look(visit.desk, place, filters)
    if not sight.items or sight.item in sight.items:
        keep_place(visit, place, filters)
        return show_again(visit, place, filters, Status())
    first = next_open(sight.items, None) or sight.items[0]
    return show_pair(visit, place.at(first), filters)


def renew(visit: Visit, place: Place, *values: Any) -> Any:
    """Open the newest run and reference, on the same pair if it still fails there."""
    filters = Filters.of(values)
    newest = newest_place(visit.desk, place.prompt, place.cohort)
    newest = newest._replace(serial=place.serial, wide=place.wide)
    sight = look(visit.desk, newest, filters)
    item = sight.queue.find(*place.pair) or next_open(sight.items, None)
    return show_pair(visit, newest.at(item), filters)


def keep_form(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form as it is being filled in."""
    if token != str(place.serial):
        return gr.skip()
    status = _keep(visit, place, _form(values))
    return _render_status(status)


def take_text(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form with the marked words as its phrase."""
    if token != str(place.serial):
        return [gr.skip(), gr.skip()]
    *fields, marked = values
    words = " ".join(marked.split()) if isinstance(marked, str) else ""
    if not words:
        trouble = "Mark some words in the case text first."
        return [gr.skip(), _render_status(Status(trouble=trouble))]
    status = _keep(visit, place, _form(fields)._replace(phrase=words))
    return [words, _render_status(status)]


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
    return _noted(Status(kept=f"{desk.now():%H:%M:%S}"), form, sight)


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
            return [_render_status(status), *form]
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

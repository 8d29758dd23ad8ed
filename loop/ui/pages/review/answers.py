"""What a reviewer says: the form kept, handed in, undone, changed, withdrawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from loop.core.errors import DataError, UnknownLabelError
from loop.core.people.users import Right
from loop.evaluate.failures import ALL_LABELS
from loop.review.queue.records import Persistence, QueueItem
from loop.review.status import VerdictState
from loop.review.submit import VerdictContext, stamp, submit_verdict, withdraw_verdict
from loop.review.verdict import Judgement, build_from_form
from loop.review.working import drop_working, keep_working, release, reserve
from loop.ui.pages.review.form import ReviewForm, fields_of, form_of, missing
from loop.ui.pages.review.moves import choose
from loop.ui.pages.review.place import Filters, Place, Submission, next_open
from loop.ui.pages.review.showing import (
    FILTERS,
    FormStatus,
    note_form,
    render_status,
    show_again,
    show_pair,
    show_panels,
)
from loop.ui.pages.review.state import (
    Sight,
    cohort_facts,
    find_alike,
    label_name,
    look,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.views import render_together, suggest_for
from loop.ui.wiring import Visit

UNDONE = "undone by its author right after it was given"
"""Reason that an undone verdict is withdrawn with."""


def _is_current(place: Place, token: object) -> bool:
    """Return whether the form on the page is that of the pair that is open.

    It is not where a second click, or a late text, comes after a submission.

    Raises
    ------
    DataError
        Nothing is open: the server has forgotten the tab, or was started again.
    """
    if not place.run:
        raise DataError(
            "the server does not know this tab any more. Nothing was saved: copy what "
            "you typed, and load the page again."
        )
    return token == place.token


def keep_form(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form as it is being filled in."""
    if not _is_current(place, token):
        return gr.skip()
    return render_status(_keep(visit, place, _form(values)), place)


def take_text(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form with the marked words as its phrase."""
    if not _is_current(place, token):
        return [gr.skip(), gr.skip()]
    *fields, marked = values
    words = " ".join(marked.split()) if isinstance(marked, str) else ""
    if not words:
        trouble = "Mark some words in the case text first."
        return [gr.skip(), render_status(FormStatus(trouble=trouble), place)]
    status = _keep(visit, place, _form(fields)._replace(phrase=words))
    return [words, render_status(status, place)]


def _form(values: Sequence[Any]) -> ReviewForm:
    return ReviewForm.of(dict(zip(ReviewForm._fields, values, strict=True)))


def _keep(visit: Visit, place: Place, form: ReviewForm) -> FormStatus:
    """Keep an unfinished form; an empty one is forgotten."""
    desk = visit.desk
    if form == ReviewForm():
        drop_working(desk.store, visit.actor, place.subject)
        return FormStatus()
    keep_working(desk.store, visit.actor, place.subject, form._asdict(), desk.now)
    status = FormStatus(kept=stamp(desk.now()))
    if not form.worded:
        return status._replace(lacks=missing(form))
    return note_form(status, form, look(visit, place, Filters()))


def hand_in(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the verdict and open the next pair that waits for one."""
    filters, form = Filters.of(values[:FILTERS]), _form(values[FILTERS:])
    if not _is_current(place, token):
        return _overtaken(visit, place, token, filters)
    return _hand_in(visit, place, filters, form)


def _overtaken(visit: Visit, place: Place, token: object, filters: Filters) -> Any:
    """Return the open pair with its form, and that the one sent was of another.

    The second click of two says nothing: the verdict was kept at the first.
    """
    if place.last and place.last.token == token:
        return gr.skip()
    trouble = (
        "Nothing was done: the form was that of another pair. This is the open one."
    )
    return show_pair(visit, place, filters, trouble=trouble)


def hand_in_together(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep one verdict on the open pair and on the ticked ones that are like it."""
    filters, form = Filters.of(values[:FILTERS]), _form(values[FILTERS:])
    if visit.data.get("act") == "fold":
        return show_again(visit, place, filters, FormStatus())
    if not _is_current(place, token):
        return _overtaken(visit, place, token, filters)
    like = find_alike(visit, place, look(visit, place, filters))
    ticked = _read_cases(visit.data.get("cases"))
    more = [one.case_id for one in like if one.case_id in ticked]
    if ticked - set(more):
        raise DataError(
            "a ticked case is not like the open one, or not any more. Open the list "
            "again."
        )
    return _hand_in(visit, place, filters, form, more)


def _read_cases(value: object) -> set[str]:
    """Return the case ids that a browser sent as JSON; nothing of what is none."""
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        found = []
    if not isinstance(found, list):
        return set()
    return {one for one in found if isinstance(one, str)}


def _hand_in(
    visit: Visit,
    place: Place,
    filters: Filters,
    form: ReviewForm,
    more: Sequence[str] = (),
) -> list[Any]:
    """Keep one verdict on the open pair and on `more` cases of its label."""
    sight = look(visit, place, filters)
    item = sight.item
    if item is None or item.label == ALL_LABELS:
        raise DataError("no pair is open. Choose one of the list.")
    if form.judgement == Judgement.ANSWER_RIGHT and not item.right:
        trouble = (
            "Not submitted: the answer contradicts the reference here, so something is "
            "wrong. Choose what."
        )
        return _refused(visit, place, filters, trouble)
    lacks = missing(form)
    if lacks:
        trouble = f"Not submitted: still missing {', '.join(lacks)}."
        return _refused(visit, place, filters, trouble)
    try:
        key = _submit(visit, place, sight, form, more)
    except (DataError, UnknownLabelError) as error:
        return _refused(visit, place, filters, f"Not submitted: {error}")
    last = Submission(key, place.case, place.label, place.token)
    return _go_on(visit, place._replace(last=last), filters, item, len(more))


def _refused(visit: Visit, place: Place, filters: Filters, trouble: str) -> list[Any]:
    return show_again(visit, place, filters, FormStatus(trouble=trouble))


def _submit(
    visit: Visit, place: Place, sight: Sight, form: ReviewForm, more: Sequence[str]
) -> str:
    """Keep the verdict, drop the unfinished form, and return the verdict's id."""
    desk, line = visit.desk, sight.queue.line
    verdict = build_from_form(
        fields_of(form, [place.case, *more], place.label),
        reviewer=visit.actor.name,
        taxonomy=taxonomy_of(desk, place),
        case_ids=cohort_facts(desk, place).case_ids,
    )
    flips, item = "", sight.item
    if item is not None and item.reasons.persistence is Persistence.FLIPS:
        flips = f"{item.reasons.fails} of {item.reasons.draws}"
    made_on = VerdictContext(line.cohort, line.prompt, "", line.run_id, flips)
    key = submit_verdict(
        desk.store, verdict, made_on, desk.now, finishing=place.subject
    )
    if sight.item and sight.item.reserved_by == visit.user.name:
        release(desk.store, place.cohort, place.case, visit.actor)
    return key


def _go_on(
    visit: Visit, place: Place, filters: Filters, item: QueueItem, more: int
) -> list[Any]:
    """Return the page with the next pair that waits, and that the last was saved."""
    name = label_name(taxonomy_of(visit.desk, place), item.label)
    also = f" and {more} more case{'' if more == 1 else 's'}" if more else ""
    saved = f"Saved {name}, {item.case_id}{also}."
    if item.reserved_by not in ("", visit.user.name):
        saved += f" {item.reserved_by} has the case reserved: both answers are kept."
    sight = look(visit, place, filters)
    following = next_open(sight.items, item)
    if following is None:
        saved += " Nothing in this list waits for an answer any more."
        return show_pair(visit, place.at(item), filters, saved)
    return show_pair(visit, place.at(following), filters, saved)


def undo(visit: Visit, place: Place, *values: Any) -> Any:
    """Withdraw the tab's last verdict and open its pair with the form as it was."""
    filters = Filters.of(values)
    last = place.last
    if last is None:
        raise DataError(
            "there is no verdict of this tab to undo. Withdraw an earlier one on its "
            "own pair."
        )
    sight = look(visit, place, filters)
    kept = next((one for one in sight.kept if one.id == last.id), None)
    own = kept is not None and kept.verdict.reviewer == visit.actor.name
    if kept is None or not own or kept.state is not VerdictState.OPEN:
        became = kept.state.value if kept and own else "not yours"
        trouble = f"Not undone: the verdict on {last.case} is {became} by now."
        place = place._replace(last=None)
        return show_again(visit, place, filters, FormStatus(trouble=trouble))
    desk, ref = visit.desk, f"{place.cohort}:{kept.id}"
    withdraw_verdict(desk.store, ref, visit.actor, UNDONE, desk.now)
    item = sight.queue.find(last.case, last.label)
    cases = len(kept.verdict.case_ids)
    said = f"Undone on {cases} cases." if cases > 1 else "Undone."
    if item is None:
        said = f"{said} {last.case} does not fail any more in what is open now."
        return show_again(
            visit, place._replace(last=None), filters, FormStatus(done=said)
        )
    place = place._replace(last=None).at(item)
    form = form_of(kept.verdict)
    if form:
        keep_working(desk.store, visit.actor, place.subject, form._asdict(), desk.now)
    return show_pair(visit, place, filters, f"{said} The form is as you filled it.")


def take_offer(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Open a label that "No Finding" follows from, or fill in the likely correction."""
    filters, form = Filters.of(values[:FILTERS]), _form(values[FILTERS:])
    if not _is_current(place, token):
        return _overtaken(visit, place, token, filters)
    if visit.data.get("act") == "open":
        return choose(visit, place, *filters)
    # Looking takes less than judging, which only who may judge is offered.
    visit.user.actor(Right.JUDGE)
    sight = look(visit, place, filters)
    likely = suggest_for(visit, sight)
    mine = any(v.verdict.reviewer == visit.user.name for v in verdicts_on(sight))
    if likely is None or mine or form != ReviewForm():
        trouble = (
            "Nothing is suggested any more: the form holds something already, or you "
            "have judged this pair."
        )
        return show_again(visit, place, filters, FormStatus(trouble=trouble))
    status = _keep(visit, place, likely)
    status = status._replace(done="Filled in, not submitted: look at it first.")
    return [*show_panels(visit, place, filters, sight, status), *likely]


def list_alike(visit: Visit, place: Place) -> Any:
    """Return the pairs that are like the open one, to be ticked."""
    return render_together(visit, place, look(visit, place, Filters()))


def toggle_reserve(visit: Visit, place: Place, *values: Any) -> Any:
    """Reserve the open case for twenty minutes, or give it back."""
    filters = Filters.of(values)
    desk = visit.desk
    sight = look(visit, place, filters)
    if sight.item is None:
        raise DataError("no pair is open. Choose one of the list.")
    if sight.item.reserved_by == visit.user.name:
        release(desk.store, place.cohort, place.case, visit.actor)
        done = FormStatus(done="Given back.")
    else:
        held = reserve(desk.store, place.cohort, place.case, visit.actor, desk.now)
        who = "you" if held.actor == visit.actor.name else held.actor
        done = FormStatus(done=f"Reserved by {who} until", until=held.until)
    sight = look(visit, place, filters)
    return show_panels(visit, place, filters, sight, done)


def change(visit: Visit, place: Place, *values: Any) -> Any:
    """Fill the form with an own verdict, to be handed in again in its place."""
    sight = look(visit, place, Filters.of(values))
    wanted = str(visit.data.get("id", ""))
    for one in verdicts_on(sight):
        form = form_of(one.verdict)
        if one.id == wanted and one.verdict.reviewer == visit.user.name and form:
            status = _keep(visit, place, form)._replace(
                done="Change it and submit: it takes the place of what you said."
            )
            return [render_status(status, place), *form]
    raise DataError("this verdict is not yours, or not any more. Open the pair again.")


def take_back(visit: Visit, place: Place, reason: Any, *values: Any) -> Any:
    """Withdraw one's own verdicts on the open pair."""
    why = reason if isinstance(reason, str) else ""
    filters = Filters.of(values)
    sight = look(visit, place, filters)
    cases = 0
    for one in verdicts_on(sight):
        if one.verdict.reviewer == visit.actor.name:
            cases += len(one.verdict.case_ids)
            ref = f"{place.cohort}:{one.id}"
            withdraw_verdict(visit.desk.store, ref, visit.actor, why, visit.desk.now)
    on = f" on all {cases} cases it was given for" if cases > 1 else ""
    done = FormStatus(done=f"Withdrawn{on}; it stays in the record with your reason.")
    sight = look(visit, place, filters)
    return ["", *show_panels(visit, place, filters, sight, done)]

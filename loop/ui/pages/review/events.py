"""What visitors do on the page Review: go through the queue, judge, take back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from loop.core.errors import DataError, UnknownLabelError
from loop.core.nouns import counted
from loop.core.people.users import Right
from loop.evaluate.failures import ALL_LABELS
from loop.labels.cohort import read_cohort
from loop.review.queue.records import Persistence, QueueItem
from loop.review.revise.blocked import refuse_blocked
from loop.review.revise.phrases import PhraseRequest, PhraseTryout, try_phrase
from loop.review.revise.tryout import TryRequest, try_case, try_pairs
from loop.review.status import VerdictState
from loop.review.submit import (
    VerdictContext,
    load_verdicts,
    stamp,
    submit_verdict,
    withdraw_verdict,
)
from loop.review.verdict import Judgement, Verdict, build_from_form
from loop.review.working import (
    drop_working,
    keep_working,
    read_working,
    release,
    reserve,
)
from loop.run.asking import HeldEngine, hold_engine
from loop.run.manifest import find_run, ran_freely
from loop.run.store import RunRecord
from loop.run.trace import read_trace
from loop.ui import trying
from loop.ui.pages.base import SAME
from loop.ui.pages.review.state import (
    FOLLOW,
    Filters,
    Place,
    ReviewState,
    Submission,
    blind_kept,
    cohort_facts,
    find_alike,
    find_place,
    keep_blind,
    keep_place,
    label_name,
    newest_place,
    next_open,
    phrase_base,
    place_kept,
    place_on,
    read_state,
    sampled_cases,
    step,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.verdict_form import (
    ReviewForm,
    fields_of,
    form_of,
    missing,
    with_part,
)
from loop.ui.pages.review.view import (
    FIELDS,
    FILTERS,
    PHRASE_TURN,
    TOGETHER,
    TRACE_TURN,
    FormStatus,
    fold_phrases,
    fold_try,
    note_form,
    render_status,
    render_together,
    show_again,
    show_all,
    show_closed,
    show_pair,
    show_panels,
    show_try,
    suggest_for,
)
from loop.ui.pages.revise.state import DEFAULT_ENGINE
from loop.ui.phrase_panel import render_phrase
from loop.ui.trace_panel import render_trace
from loop.ui.tryout_panel import DRAWS, Found, render_heard
from loop.ui.wiring import Visit

UNDONE = "undone by its author right after it was given"
"""Reason that an undone verdict is withdrawn with."""


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
        if read_cohort(visit.context.workspace, cohort).holds_pairs:
            return show_closed(f"{cohort} holds pairs: they are on the page Judges.")
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
    state = read_state(visit, place, wanted)
    meant = (one for one in state.items if case and one.case_id == case)
    failing = [one for one in state.items if not one.right]
    first = next(meant, None) or next_open(failing, None)
    first = first or next(iter(state.items), None)
    return show_all(visit, place.at(first), wanted)


class Resumed(NamedTuple):
    """Where a visitor goes on."""

    place: Place
    filters: Filters
    said: str
    """That a link or a filter named what is not there, or nothing."""


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
    filters, said = kept.filters, ""
    try:
        sampled_cases(visit.context, before, filters.sample)
    except DataError as error:
        filters, said = filters._replace(sample=""), str(error)
    state = read_state(visit, before, filters)
    meant = state.queue.find(kept.case, kept.label)
    if kept.linked and meant is None:
        said = "The pair that the link names is not among the failing ones here."
    item = meant or next_open(state.items, None) or next(iter(state.items), None)
    return Resumed(before.at(item), filters, said)


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
    state = read_state(visit, place, filters)
    case, label = str(data.get("case", "")), str(data.get("label", ""))
    item = state.queue.find(case, label)
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
    state = read_state(visit, place, filters)
    if act not in ("next", "previous") or not state.items:
        return SAME
    item = step(state.items, state.item, 1 if act == "next" else -1)
    if item is state.item:
        end = "last" if act == "next" else "first"
        status = FormStatus(done=f"This is the {end} pair of the list.")
        return show_again(visit, place, filters, status)
    return show_pair(visit, place.at(item), filters)


def narrow(visit: Visit, place: Place, *values: Any) -> Any:
    """Apply changed filters, and open their first pair unless the open one fits."""
    filters = Filters.of(values)
    place = place._replace(start=FOLLOW)
    state = read_state(visit, place, filters)
    if not state.items or find_place(state.items, state.item) is not None:
        keep_place(visit, place, filters)
        return show_again(visit, place, filters, FormStatus())
    first = next_open(state.items, None) or state.items[0]
    return show_pair(visit, place.at(first), filters)


def turn_trace(visit: Visit, place: Place, *values: Any) -> Any:
    """Show what was asked about the open case and what came back, or fold it up.

    Raises
    ------
    DataError
        No case is open, or its text or prompt is not here.
    """
    if visit.data.get("act") != "close":
        if not place.case:
            raise DataError("no case is open. Choose a pair of the list.")
        context = visit.context
        label = place.label if place.label != ALL_LABELS else ""
        trace = read_trace(
            context.workspace, place.run, place.case, store=context.store
        )
        return render_trace(trace, turn=TRACE_TURN, label=label)
    return render_trace(None, turn=TRACE_TURN)


def turn_phrase(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Say what marked words could become, or fill the form with one of these.

    The words are those that are marked in the case, or the phrase of the form.

    Raises
    ------
    DataError
        The words are none to be tried, or the prompt is not here.
    """
    *fields, words = values
    unchanged = [SAME, *([SAME] * FIELDS)]
    if not _is_current(place, token):
        return [SAME, *unchanged]
    data, state = visit.data, read_state(visit, place, Filters())
    if data.get("act") == "fill":
        part, value = str(data.get("part", "")), str(data.get("value", ""))
        form = with_part(_form(fields), part, value, _read_text(data.get("phrase")))
        status = _keep(visit, place, form)
        status = status._replace(done="Filled in, not submitted: look at it first.")
        return [SAME, render_status(status, place), *form]
    said = words.strip() if isinstance(words, str) else ""
    if not said or data.get("act") == "close":
        asked = data.get("act") == "open" and not data.get("phrase")
        trouble = "Mark words in the text first, or type a phrase." if asked else ""
        return [fold_phrases(visit, state, trouble), *unchanged]
    found = _try_phrase(visit, place, state, said)
    name = label_name(taxonomy_of(visit.context, place), found.label)
    return [render_phrase(found, turn=PHRASE_TURN, name=name), *unchanged]


def _try_phrase(
    visit: Visit, place: Place, state: ReviewState, words: str
) -> PhraseTryout:
    context, line = visit.context, state.queue.line
    run = find_run(context.workspace, place.run)
    request = PhraseRequest(
        line.prompt, place.label, words, line.cohort, run.spec.engine
    )
    base = phrase_base(context, line.prompt, line.cohort)
    return try_phrase(
        context.workspace,
        context.store,
        request,
        visit.actor,
        base=base,
        run=run,
        now=context.now,
    )


def turn_try(visit: Visit, place: Place, token: str, *fields: Any) -> Any:
    """Try the form as it is: the answer with what it asks for, beside the one without.

    `rules` answers at once, about all pairs that are like the open one and those that
    are pinned. Another engine is asked about the open case, while `poll_try` waits.

    Raises
    ------
    DataError
        The form is none that can be tried, or the prompt is not here.
    ConflictError
        The visitor has a try of this pair under way.
    """
    if not _is_current(place, token):
        return [SAME, SAME, SAME]
    context, state = visit.context, read_state(visit, place, Filters())
    act, off = visit.data.get("act"), trying.clock(active=False)
    trying.stop_tries(visit, place.token)
    if act in ("stop", "close"):
        said = "Stopped." if act == "stop" else ""
        return [fold_try(visit, state, said), "", off]
    form = _form(fields)
    lacks = missing(form)
    if lacks or not form.worded:
        why = ", ".join(lacks) or "a suggested change"
        return [fold_try(visit, state, f"Still missing: {why}."), "", off]
    request = _try_request(visit, place, state, form)
    run = find_run(context.workspace, place.run)
    if run.spec.engine != DEFAULT_ENGINE:
        _start_try(visit, place, request, run)
        asking = show_try(asking=run.spec.engine)
        return [asking, "", trying.clock(active=True)]
    case = str(visit.data.get("case", place.case))
    what = context.workspace, context.store, request
    with hold_engine(context.workspace, DEFAULT_ENGINE) as held:
        pairs = try_pairs(*what, visit.actor, engine=held, now=context.now)
        found = try_case(*what, case, visit.actor, engine=held, now=context.now)
    return [show_try(Found(pairs, found, place.label)), "", off]


def _try_request(
    visit: Visit, place: Place, state: ReviewState, form: ReviewForm
) -> TryRequest:
    like = [one.case_id for one in find_alike(visit, place, state)[:TOGETHER]]
    verdict = build_from_form(
        fields_of(form, [place.case, *like], place.label),
        reviewer=visit.actor.name,
        asked=taxonomy_of(visit.context, place),
        case_ids=cohort_facts(visit.context, place).case_ids,
    )
    line = state.queue.line
    return TryRequest(prompt=line.prompt, cohort=line.cohort, verdict=verdict)


def _start_try(visit: Visit, place: Place, request: TryRequest, run: RunRecord) -> None:
    """Ask the engine of a run about the open case."""
    context, actor = visit.context, visit.actor
    free = ran_freely(context.workspace, run.id)
    draws = DRAWS if visit.data.get("draws") else None
    request = replace(request, label=place.label, draws=draws)

    def ask(held: HeldEngine, heard: trying.Listener) -> Found:
        found = try_case(
            context.workspace,
            context.store,
            request,
            place.case,
            actor,
            engine=held,
            now=context.now,
            heard=heard,
        )
        return Found(case=found, label=place.label)

    trying.start_try(visit, place.token, run.spec.engine, ask, free=free)


def poll_try(visit: Visit, place: Place) -> Any:
    """Show what the engine has answered, or has written so far.

    What was asked about a pair that is no longer open is stopped.
    """
    progress = trying.take_try(visit, place.token)
    off = trying.clock(active=False)
    if progress is None:
        trying.stop_tries(visit, place.token)
        return [SAME, "", off]
    if not progress.finished:
        return [SAME, render_heard(progress.heard), SAME]
    state = read_state(visit, place, Filters())
    if progress.error:
        return [fold_try(visit, state, progress.error), "", off]
    return [show_try(progress.result), "", off]


def renew(visit: Visit, place: Place, *values: Any) -> Any:
    """Open the newest run and reference, on the same pair if it still fails there."""
    filters = Filters.of(values)
    newest = newest_place(visit.context, place.prompt, place.cohort)
    newest = newest._replace(
        serial=place.serial, wide=place.wide, blind=place.blind, last=place.last
    )
    state = read_state(visit, newest, filters)
    item = state.queue.find(*place.pair) or next_open(state.items, None)
    return show_pair(visit, newest.at(item), filters)


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
        return SAME
    return render_status(_keep(visit, place, _form(values)), place)


def take_text(visit: Visit, place: Place, token: str, *values: Any) -> Any:
    """Keep the form with the marked words as its phrase."""
    if not _is_current(place, token):
        return [SAME, SAME]
    *fields, marked = values
    words = " ".join(marked.split()) if isinstance(marked, str) else ""
    if not words:
        trouble = "Mark some words in the case text first."
        return [SAME, render_status(FormStatus(trouble=trouble), place)]
    status = _keep(visit, place, _form(fields)._replace(phrase=words))
    return [words, render_status(status, place)]


def _form(values: Sequence[Any]) -> ReviewForm:
    return ReviewForm.of(dict(zip(ReviewForm._fields, values, strict=True)))


def _keep(visit: Visit, place: Place, form: ReviewForm) -> FormStatus:
    """Keep an unfinished form; an empty one is forgotten."""
    context = visit.context
    if form == ReviewForm():
        drop_working(context.store, visit.actor, place.subject)
        return FormStatus()
    keep_working(context.store, visit.actor, place.subject, form._asdict(), context.now)
    status = FormStatus(kept=stamp(context.now()))
    if not form.worded:
        return status._replace(lacks=missing(form))
    return note_form(status, form, read_state(visit, place, Filters()))


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
        return SAME
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
    like = find_alike(visit, place, read_state(visit, place, filters))
    ticked = _read_cases(visit.data.get("cases"))
    more = [one.case_id for one in like if one.case_id in ticked]
    if ticked - set(more):
        raise DataError(
            "a ticked case is not like the open one, or not any more. Open the list "
            "again."
        )
    return _hand_in(visit, place, filters, form, more)


def _read_text(value: object) -> str:
    """Return a text that a page sent as JSON, every character as it is; or nothing."""
    try:
        found = json.loads(value) if isinstance(value, str) else ""
    except (ValueError, RecursionError):
        found = ""
    return found if isinstance(found, str) else ""


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
    state = read_state(visit, place, filters)
    item = state.item
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
        key = _submit(visit, place, state, form, more)
    except (DataError, UnknownLabelError) as error:
        said = str(error).removeprefix("verdict 1: ").removeprefix("verdict 1, ")
        return _refused(visit, place, filters, f"Not submitted: {said}")
    last = Submission(key, place.case, place.label, place.token)
    return _go_on(visit, place._replace(last=last), filters, item, len(more))


def _refused(visit: Visit, place: Place, filters: Filters, trouble: str) -> list[Any]:
    return show_again(visit, place, filters, FormStatus(trouble=trouble))


def _submit(
    visit: Visit,
    place: Place,
    state: ReviewState,
    form: ReviewForm,
    more: Sequence[str],
) -> str:
    """Keep the verdict, drop the unfinished form, and return the verdict's id."""
    context, line = visit.context, state.queue.line
    verdict = build_from_form(
        fields_of(form, [place.case, *more], place.label),
        reviewer=visit.actor.name,
        asked=taxonomy_of(context, place),
        case_ids=cohort_facts(context, place).case_ids,
    )
    _refuse_blocked(visit, place, verdict, line.prompt)
    flips, item = "", state.item
    if item is not None and item.reasons.persistence is Persistence.FLIPS:
        flips = f"{item.reasons.fails} of {item.reasons.draws}"
    made_on = VerdictContext(line.cohort, line.prompt, "", line.run_id, flips)
    key = submit_verdict(
        context.store, verdict, made_on, context.now, finishing=place.subject
    )
    if state.item and state.item.reserved_by == visit.user.name:
        release(context.store, place.cohort, place.case, visit.actor)
    return key


def _refuse_blocked(visit: Visit, place: Place, verdict: Verdict, prompt: str) -> None:
    """Refuse a verdict that no draft could be made from, unless it is kept already."""
    if not verdict.edits:
        return
    context = visit.context
    kept = load_verdicts(context.store, place.cohort, [verdict.id])
    cohort = read_cohort(context.workspace, place.cohort)
    refuse_blocked(
        context.workspace,
        (verdict,),
        prompt=prompt,
        cohort=cohort,
        known=[one.id for one in kept],
    )


def _go_on(
    visit: Visit, place: Place, filters: Filters, item: QueueItem, more: int
) -> list[Any]:
    """Return the page with the next pair that waits, and that the last was saved."""
    name = label_name(taxonomy_of(visit.context, place), item.label)
    also = f" and {counted(more, 'more case')}" if more else ""
    saved = f"Saved {name}, {item.case_id}{also}."
    if item.reserved_by not in ("", visit.user.name):
        saved += f" {item.reserved_by} has the case reserved: both answers are kept."
    state = read_state(visit, place, filters)
    following = next_open(state.items, item)
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
    state = read_state(visit, place, filters)
    kept = next((one for one in state.kept if one.id == last.id), None)
    own = kept is not None and kept.verdict.reviewer == visit.actor.name
    if kept is None or not own or kept.state is not VerdictState.OPEN:
        became = kept.state.value if kept and own else "not yours"
        trouble = f"Not undone: the verdict on {last.case} is {became} by now."
        place = place._replace(last=None)
        return show_again(visit, place, filters, FormStatus(trouble=trouble))
    context, ref = visit.context, f"{place.cohort}:{kept.id}"
    withdraw_verdict(context.store, ref, visit.actor, UNDONE, context.now)
    item = state.queue.find(last.case, last.label)
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
        keep_working(
            context.store, visit.actor, place.subject, form._asdict(), context.now
        )
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
    state = read_state(visit, place, filters)
    likely = suggest_for(visit, state)
    mine = any(v.verdict.reviewer == visit.user.name for v in verdicts_on(state))
    if likely is None or mine or form != ReviewForm():
        trouble = (
            "Nothing is suggested any more: the form holds something already, or you "
            "have judged this pair."
        )
        return show_again(visit, place, filters, FormStatus(trouble=trouble))
    status = _keep(visit, place, likely)
    status = status._replace(done="Filled in, not submitted: look at it first.")
    return [*show_panels(visit, place, filters, state, status), *likely]


def list_alike(visit: Visit, place: Place) -> Any:
    """Return the pairs that are like the open one, to be ticked."""
    return render_together(visit, place, read_state(visit, place, Filters()))


def toggle_reserve(visit: Visit, place: Place, *values: Any) -> Any:
    """Reserve the open case for twenty minutes, or give it back."""
    filters = Filters.of(values)
    context = visit.context
    state = read_state(visit, place, filters)
    if state.item is None:
        raise DataError("no pair is open. Choose one of the list.")
    if state.item.reserved_by == visit.user.name:
        release(context.store, place.cohort, place.case, visit.actor)
        done = FormStatus(done="Given back.")
    else:
        held = reserve(
            context.store, place.cohort, place.case, visit.actor, context.now
        )
        who = "you" if held.actor == visit.actor.name else held.actor
        done = FormStatus(done=f"Reserved by {who} until", until=held.until)
    state = read_state(visit, place, filters)
    return show_panels(visit, place, filters, state, done)


def change(visit: Visit, place: Place, *values: Any) -> Any:
    """Fill the form with an own verdict, to be handed in again in its place."""
    state = read_state(visit, place, Filters.of(values))
    wanted = str(visit.data.get("id", ""))
    for one in verdicts_on(state):
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
    state = read_state(visit, place, filters)
    cases = 0
    for one in verdicts_on(state):
        if one.verdict.reviewer == visit.actor.name:
            cases += len(one.verdict.case_ids)
            ref = f"{place.cohort}:{one.id}"
            withdraw_verdict(
                visit.context.store, ref, visit.actor, why, visit.context.now
            )
    on = f" on all {cases} cases it was given for" if cases > 1 else ""
    done = FormStatus(done=f"Withdrawn{on}; it stays in the record with your reason.")
    state = read_state(visit, place, filters)
    return ["", *show_panels(visit, place, filters, state, done)]

"""What the page Review shows: the queue, the open case, what was said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr
from markupsafe import Markup

from loop.core.nouns import counted
from loop.core.people.users import Right
from loop.core.records import Guide, Span, Value
from loop.evaluate.failures import ALL_LABELS, FailureKind
from loop.labels.language import guess_language
from loop.labels.named_samples import list_samples
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.prompts.catalog import parse_ref
from loop.review.queue.build import Queue
from loop.review.queue.progress import measure_pace
from loop.review.queue.records import (
    OtherAnswer,
    Persistence,
    QueueItem,
    ReviewStatus,
    RightKind,
)
from loop.review.queue.value import AUDIT_EVERY, RIGHT_EVERY
from loop.review.status import KeptVerdict
from loop.review.verdict import Edits
from loop.review.working import read_working
from loop.ui.html import notice, show
from loop.ui.pages.base import SAME
from loop.ui.pages.review.segments import Segment, cut_text, find_hits
from loop.ui.pages.review.state import (
    FOLLOW,
    PAGE_SIZE,
    Filters,
    Place,
    ReviewState,
    RunName,
    cohort_facts,
    evidence_of,
    find_alike,
    find_newer,
    find_place,
    guides_of,
    keep_place,
    label_name,
    link_of,
    name_run,
    phrases_of,
    read_state,
    said_by,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.verdict_form import (
    JUDGEMENTS,
    ReviewForm,
    describe,
    form_of,
    missing,
    suggest,
    warn_of_copied_words,
)
from loop.ui.phrase_panel import render_phrase
from loop.ui.trace_panel import render_trace
from loop.ui.tryout_panel import NOTHING, Found, TryTurn, render_tryout
from loop.ui.wiring import Visit

ALL = ("All", "")
TRACE_TURN = "review-trace-turn"
"""Id of the button that opens the trace of the open case, and folds it up."""

PHRASE_TURN = "review-phrase-turn"
"""Id of the button that asks what the words that are marked could become."""

TRY_TURN = TryTurn(
    "review-try-turn",
    ask="Try the form on this case, before it is submitted",
    key="T",
    form=True,
)
"""The button that tries the form, or stops the try."""

FILTERS = len(Filters._fields)
FIELDS = len(ReviewForm._fields)

KIND_MARKS: Mapping[FailureKind | RightKind, tuple[str, str]] = {
    FailureKind.FALSE_POSITIVE: ("▲", "false positive"),
    FailureKind.FALSE_NEGATIVE: ("▽", "false negative"),
    FailureKind.UNCERTAIN: ("◇", "answered uncertain"),
    FailureKind.UNPARSED: ("⊘", "unparsed"),
    FailureKind.ENGINE_FAILED: ("⊗", "engine failed"),
    RightKind.RIGHT: ("✓", "right, drawn at random"),
}
"""Shape and word of each kind of pair; colour never stands alone."""

PROGRESS_MARKS = {
    ReviewStatus.UNREVIEWED: "",
    ReviewStatus.REVIEWED: "✓",
    ReviewStatus.ADDRESSED: "✓✓",
    ReviewStatus.RETURNED: "↺",
}

_LINES = 4000
"""Pairs of the list that are kept as they were shown; a few megabytes."""

TOGETHER = 50
"""Pairs that one verdict is applied to at once."""

_AROUND = 60
"""Characters shown on each side of a phrase in the list of like pairs."""


class ReviewOutputs(NamedTuple):
    """What every move through the queue sets, besides the form's fields.

    A value for each component of this name in `ReviewComponents`, in the order of the
    outputs.
    """

    place: Any
    token: str
    remark: str = ""
    queue: str = ""
    case: str = ""
    trace: str = ""
    phrases: str = ""
    tried: str = ""
    offer: str = ""
    status: str = ""
    alike: str = ""
    together: str = ""
    said: str = ""
    reserve: str = "Reserve"


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
    state = read_state(visit, place, filters)
    menus = _menus(visit, place, state.queue, filters)
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
    drawn = list_samples(visit.context.workspace, place.cohort)
    samples = [ALL, *((name, name) for name in drawn)]
    shown: dict[str, Any] = {
        **filters._asdict(),
        "sample": gr.Dropdown(
            choices=samples,
            value=filters.sample if filters.sample in drawn else "",
            visible=bool(drawn),
        ),
        "label": gr.Dropdown(choices=labels, value=filters.label),
        "reviewer": gr.Dropdown(choices=people, value=who),
    }
    return [shown[name] for name in Filters._fields]


def show_closed(text: str) -> list[Any]:
    """Return the page with nothing to review, and why."""
    outputs = ReviewOutputs(
        place=Place(),
        token="",
        case=notice(text, title="Nothing to review here"),
        offer=show("review_closed.html.jinja"),
    )
    return [*([SAME] * FILTERS), *outputs, *ReviewForm()]


def show_pair(
    visit: Visit, place: Place, filters: Filters, said: str = "", trouble: str = ""
) -> list[Any]:
    """Return what a move through the queue sets, with the form of the open pair."""
    state = read_state(visit, place, filters)
    keep_place(visit, place, filters)
    kept = read_working(visit.context.store, visit.actor, place.subject)
    form = ReviewForm.of(kept.payload) if kept else ReviewForm()
    status = FormStatus(done=said, trouble=trouble, kept=kept.saved if kept else "")
    if kept:
        status = note_form(status, form, state)
    return [*show_panels(visit, place, filters, state, status), *form]


def show_again(
    visit: Visit, place: Place, filters: Filters, status: FormStatus
) -> list[Any]:
    """Return the panels anew and leave the form as it is on the screen."""
    state = read_state(visit, place, filters)
    outputs = show_panels(visit, place, filters, state, status)
    return [*outputs, *([SAME] * FIELDS)]


def show_panels(
    visit: Visit, place: Place, filters: Filters, state: ReviewState, status: FormStatus
) -> ReviewOutputs:
    """Return everything but the form's fields.

    Plain values all: Gradio rebuilds a component for each one that is updated or
    skipped, which takes longer than what is shown.
    """
    item = state.item
    held = item is not None and item.reserved_by == visit.user.name
    return ReviewOutputs(
        place=place,
        token=place.token,
        remark=render_remark(visit, place),
        queue=render_queue(visit, place, state, filters),
        case=render_case(visit, place, state, filters.search),
        trace=render_trace(None, turn=TRACE_TURN) if item else "",
        phrases=fold_phrases(visit, state),
        tried=fold_try(visit, state),
        offer=render_offer(visit, place, state),
        status=render_status(status, place) if visit.user.may(Right.JUDGE) else "",
        alike=render_alike(visit, place, state),
        said=render_said(visit, place, state),
        reserve="Give back" if held else "Reserve",
    )


def render_status(status: FormStatus, place: Place) -> str:
    """Return the line under the form."""
    return show("review_status.html.jinja", **status._asdict(), last=place.last)


def note_form(status: FormStatus, form: ReviewForm, state: ReviewState) -> FormStatus:
    """Return the status with what the form lacks and what it copies."""
    text = ""
    if form.worded and state.item and state.queue.texts.here:
        text = state.queue.texts.read(state.item.case_id)
    return status._replace(lacks=missing(form), copied=warn_of_copied_words(form, text))


class ShownVerdict(NamedTuple):
    """One verdict on the open pair, in words."""

    kept: KeptVerdict
    mine: bool
    judgement: str
    asks: tuple[str, ...]
    changeable: bool
    """Whether the form can hold all of it."""

    run: RunName
    """What was judged."""


def render_remark(visit: Visit, place: Place) -> str:
    """Return what is newer than the page, or whose texts these are."""
    return show(
        "review_remark.html.jinja",
        newer=find_newer(visit.context, place),
        reference=place.reference,
        synthetic=cohort_facts(visit.context, place).synthetic,
    )


def render_queue(
    visit: Visit, place: Place, state: ReviewState, filters: Filters
) -> str:
    """Return one page of the list."""
    start = _start(place, state)
    taxonomy = taxonomy_of(visit.context, place)
    shown = state.items[start : start + PAGE_SIZE]
    made: dict[object, Markup] = visit.context.cache.get(
        ("lines", place.run, place.reference, place.stamp), dict
    )
    lines = [_line(made, item, taxonomy, place) for item in shown]
    times = [one.created for one in said_by(visit, state)]
    may = visit.user.may(Right.JUDGE)
    total = visit.context.cache.get(
        ("failing", place.run, place.reference, place.stamp),
        lambda: len(state.queue.failing),
    )
    every = len(state.items) == len(state.queue.items)
    failing = total if every else sum(not one.right for one in state.items)
    return show(
        "review_queue.html.jinja",
        lines=Markup("").join(lines),
        pace=measure_pace(state.items, visit.user.name, times) if may else None,
        blind=place.blind,
        menus=json.dumps(filters[1:], ensure_ascii=False, separators=(",", ":")),
        start=start,
        size=PAGE_SIZE,
        listed=len(state.items),
        failing=failing,
        total=total,
        right=len(state.items) - failing,
        right_drawn=len(state.queue.items) - total,
        right_total=state.queue.right_total,
        right_every=RIGHT_EVERY,
        audit_every=AUDIT_EVERY,
    )


def _start(place: Place, state: ReviewState) -> int:
    """Return the index of the first pair listed: a whole number of pages."""
    if place.start != FOLLOW:
        start = place.start
    else:
        start = find_place(state.items, state.item) or 0
    last = max(len(state.items) - 1, 0)
    return min(max(start, 0), last) // PAGE_SIZE * PAGE_SIZE


def _line(
    made: dict[object, Markup], item: QueueItem, taxonomy: Taxonomy, place: Place
) -> Markup:
    """Return one pair of the list, made once for each way in which it is shown."""
    current = (item.case_id, item.label) == place.pair
    key = (item.place, item.progress, item.reviewers, item.reserved_by, current)
    line = made.get(key)
    if line is None:
        glyph, kind = KIND_MARKS[item.failure.kind]
        html = show(
            "review_pair.html.jinja",
            name=label_name(taxonomy, item.label),
            kind=kind,
            kind_id=item.failure.kind.value,
            glyph=glyph,
            case=item.case_id,
            label=item.label,
            current=current,
            reasons="; ".join(item.reasons.words),
            why=", ".join(shorten(item)),
            mark=PROGRESS_MARKS[item.progress],
            progress=item.progress.value,
            reviewers=", ".join(item.reviewers),
            reserved_by=item.reserved_by,
        )
        if len(made) >= _LINES:
            made.clear()
        line = made[key] = Markup(html)
    return line


def shorten(item: QueueItem) -> list[str]:
    """Return why a pair is worth a read_state, in a word or two for each reason."""
    short = []
    if item.reasons.rare:
        short.append("rare")
    if item.reasons.gate:
        short.append(item.reasons.gate)
    if item.reasons.persistence is Persistence.FLIPS:
        short.append(f"fails in {item.reasons.fails} of {item.reasons.draws}")
    versions = (one.value for one in item.others if not one.draw)
    if any(value is not item.failure.predicted for value in versions):
        short.append("versions disagree")
    if len(item.votes) > 1:
        short.append("readers disagree")
    return short + (["audit"] if item.audit else [])


def render_case(visit: Visit, place: Place, state: ReviewState, search: str) -> str:
    """Return the open case with what is known of it, or why none is open."""
    item = state.item
    if item is None:
        return _nothing_open(state)
    context = visit.context
    taxonomy = taxonomy_of(context, place)
    text = state.queue.texts.read(item.case_id) if state.queue.texts.here else None
    glyph, kind = KIND_MARKS[item.failure.kind]
    return show(
        "review_case.html.jinja",
        name=label_name(taxonomy, item.label),
        glyph=glyph,
        kind=kind,
        link=link_of(place),
        item=item,
        failure=item.failure,
        position=_position(state, item),
        language=_language(visit, place, text or ""),
        segments=_segments(visit, place, state, text, search),
        wide=place.wide,
        phrases=phrases_of(state, item),
        versions=_versions(item),
        run=state.queue.line,
        held=next((r for r in state.reservations if r.case_id == item.case_id), None),
        me=visit.user.name,
        guide=_guide(visit, state),
        names={label.id: label.name for label in taxonomy.labels},
    )


def _nothing_open(state: ReviewState) -> str:
    if not state.queue.items:
        return notice(
            "Every answer of this run agrees with the reference.",
            kind="good",
            title="No failing cases",
        )
    return notice(
        "Choose a pair of the list, or clear the filters.", title="Nothing open"
    )


def _position(state: ReviewState, item: QueueItem) -> str:
    """Return where the pair is among those that the filters let through."""
    at = find_place(state.items, item)
    if at is None:
        return "not among the pairs of these filters"
    return f"{at + 1:,} of {len(state.items):,}"


def _language(visit: Visit, place: Place, text: str) -> str:
    said = cohort_facts(visit.context, place).language
    return guess_language(text) if said == "mixed" else said


class Piece(NamedTuple):
    """A stretch of the case text as it is shown."""

    text: str
    heading: bool
    own: bool
    """Whether the label under review is among those it is evidence of."""

    title: str
    hit: bool
    """Whether it is what was searched for."""


def _segments(
    visit: Visit, place: Place, state: ReviewState, text: str | None, search: str
) -> list[Piece] | None:
    """Return the text in pieces; None when it is not on this machine."""
    if text is None or state.item is None:
        return None
    own = state.item.label
    evidence: dict[str, Sequence[Span]] = {own: state.item.failure.spans}
    if place.wide or own == ALL_LABELS:
        evidence = {**evidence_of(visit.context, state), **evidence}
    taxonomy, hits = taxonomy_of(visit.context, place), find_hits(text, search.strip())
    return [_piece(one, own, taxonomy) for one in cut_text(text, evidence, hits)]


def _piece(segment: Segment, own: str, taxonomy: Taxonomy) -> Piece:
    names = ", ".join(label_name(taxonomy, label) for label in segment.labels)
    mine = own in segment.labels
    return Piece(segment.text, segment.heading, mine, names, segment.hit)


def _versions(item: QueueItem) -> list[tuple[str, str]]:
    """Return the other runs and what each said, in words."""
    return [(_run_name(one), one.value or "no answer") for one in item.others]


def _run_name(one: OtherAnswer) -> str:
    name = parse_ref(one.prompt).selector
    return f"{name}, repeat {one.draw}" if one.draw else name


def _guide(visit: Visit, state: ReviewState) -> Guide | None:
    item, line = state.item, state.queue.line
    guides = guides_of(visit.context, line.prompt)
    return guides.get(item.label) if item else None


def render_offer(visit: Visit, place: Place, state: ReviewState) -> str:
    """Return what the page offers for the open pair, above the form.

    Of "No Finding" that is the way to the labels that make it so; of other pairs the
    likely correction, until the visitor has said something.
    """
    item = state.item
    judged = item is not None and visit.user.name in item.reviewers
    likely = None if judged else suggest_for(visit, state)
    taxonomy = taxonomy_of(visit.context, place)
    return show(
        "review_offer.html.jinja",
        may=visit.user.may(Right.JUDGE),
        open=item is not None,
        silent=item is not None and item.label == ALL_LABELS,
        right=item is not None and item.right,
        derived=item is not None and item.label == NO_FINDING,
        causes=item.causes if item else (),
        case=item.case_id if item else "",
        names={label.id: label.name for label in taxonomy.labels},
        suggested=describe(likely) if likely else "",
    )


def suggest_for(visit: Visit, state: ReviewState) -> ReviewForm | None:
    """Return the likely correction of the open pair, or None; see `suggest`."""
    item = state.item
    if item is None:
        return None
    phrase = next(iter(phrases_of(state, item)), "")
    return suggest(item, phrase, _guide(visit, state))


def fold_phrases(visit: Visit, state: ReviewState, trouble: str = "") -> str:
    """Return the button that asks what marked words could become.

    Nothing where there are no words to mark, no guide for them, or no right to judge.
    """
    if not _is_worded(visit, state):
        return ""
    return render_phrase(None, turn=PHRASE_TURN, trouble=trouble)


def fold_try(visit: Visit, state: ReviewState, said: str = "") -> str:
    """Return the button that tries the form, or nothing; as `fold_phrases`."""
    return show_try(said=said) if _is_worded(visit, state) else ""


def show_try(found: Found = NOTHING, *, said: str = "", asking: str = "") -> str:
    """Return what the form would make of the open case; see `render_tryout`."""
    return render_tryout(found, turn=TRY_TURN, said=said, asking=asking)


def _is_worded(visit: Visit, state: ReviewState) -> bool:
    """Whether the visitor may ask for another wording of the open pair's guide."""
    there = visit.user.may(Right.JUDGE) and _guide(visit, state) is not None
    return there and state.queue.texts.here


def render_alike(visit: Visit, place: Place, state: ReviewState) -> str:
    """Return how many pairs are like the open one, or nothing."""
    if not visit.user.may(Right.JUDGE):
        return ""
    found = find_alike(visit, place, state)
    return show("review_alike.html.jinja", count=len(found)) if found else ""


class Occurrence(NamedTuple):
    """A phrase where it stands in a case."""

    case: str
    before: str
    phrase: str
    after: str


def render_together(visit: Visit, place: Place, state: ReviewState) -> str:
    """Return the pairs that are like the open one, to be ticked."""
    found, item = find_alike(visit, place, state), state.item
    if item is None or not found:
        return ""
    rows = [_occurrence(state, one) for one in found[:TOGETHER]]
    return show(
        "review_together.html.jinja",
        name=label_name(taxonomy_of(visit.context, place), item.label),
        phrases=phrases_of(state, item),
        language=cohort_facts(visit.context, place).language,
        rows=rows,
        more=len(found) - len(rows),
        cases=json.dumps([row.case for row in rows]),
    )


def _occurrence(state: ReviewState, item: QueueItem) -> Occurrence:
    text, span = state.queue.texts.read(item.case_id), item.failure.spans[0]
    before = text[max(span.start - _AROUND, 0) : span.start]
    after = text[span.end : span.end + _AROUND]
    return Occurrence(item.case_id, before, text[span.start : span.end], after)


def render_said(visit: Visit, place: Place, state: ReviewState) -> str:
    """Return the verdicts on the open pair: one's own first, the others below."""
    said = [_said(visit, one) for one in verdicts_on(state)]
    item = state.item
    return show(
        "review_said.html.jinja",
        said=sorted(said, key=lambda one: not one.mine),
        silent=item is not None and item.label == ALL_LABELS,
        kind=KIND_MARKS[item.failure.kind][1] if item else "",
        may=visit.user.may(Right.JUDGE),
        open=item is not None,
        hidden=state.hidden,
    )


def _said(visit: Visit, kept: KeptVerdict) -> ShownVerdict:
    words = {key: word for word, key in JUDGEMENTS}
    verdict = kept.verdict
    return ShownVerdict(
        kept,
        verdict.reviewer == visit.user.name,
        words[verdict.judgement.value],
        _asks(verdict.edits),
        form_of(verdict) is not None,
        name_run(visit.context, kept.circumstances.run),
    )


_EXAMPLE: Mapping[str, str] = {
    Value.PRESENT: "Positive exemplar",
    Value.ABSENT: "Negative exemplar",
}


def _asks(edits: Edits) -> tuple[str, ...]:
    """Return each change that a verdict asks for, in words."""
    rules = [
        f"Clarification: {one.phrase} means {one.value}. {one.note}".strip()
        for one in edits.clarifications
    ]
    examples = [
        f"{_EXAMPLE.get(one.value, 'Exemplar')}: {one.text} ({one.evidence})"
        for one in edits.exemplars
    ]
    asked = (
        *(f"Term: {one}" for one in edits.terms),
        *(f"Exclusion: {one}" for one in edits.exclusions),
        *rules,
        *examples,
        *(f"General rule: {one}" for one in edits.general_rules),
    )
    rest = edits.count - len(asked)
    return (*asked, counted(rest, "more change")) if rest else asked

"""What the page shows: the list of the queue, the open case, what was said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop.core.records import Guide, Span, Value
from loop.evaluate.failures import ALL_LABELS, Kind
from loop.labels.language import guess_language
from loop.labels.taxonomy import Taxonomy
from loop.people.users import Right
from loop.prompts.catalog import parse_ref
from loop.review.kept import KeptVerdict
from loop.review.queue.records import OtherAnswer, Progress, QueueItem
from loop.review.queue.value import AUDIT_EVERY
from loop.review.verdict import Edits
from loop.ui.pages.review.form import JUDGEMENTS, form_of
from loop.ui.pages.review.ground import (
    Sight,
    cohort_facts,
    evidence_of,
    guides_of,
    label_name,
    stale_text,
    taxonomy_of,
    verdicts_on,
)
from loop.ui.pages.review.place import FOLLOW, PAGE_SIZE, Place
from loop.ui.pages.review.segments import Segment, cut_text
from loop.ui.show import notice, show
from loop.ui.wiring import Visit

KIND_MARKS = {
    Kind.FALSE_POSITIVE: ("▲", "false positive"),
    Kind.FALSE_NEGATIVE: ("▽", "false negative"),
    Kind.UNCERTAIN: ("◇", "answered uncertain"),
    Kind.UNPARSED: ("⊘", "unparsed"),
    Kind.ENGINE_FAILED: ("⊗", "engine failed"),
}
"""Shape and word of each kind of failure; colour never stands alone."""

PROGRESS_MARKS = {
    Progress.UNREVIEWED: "",
    Progress.REVIEWED: "✓",
    Progress.ADDRESSED: "✓✓",
    Progress.RETURNED: "↺",
}


class Line(NamedTuple):
    """One pair in the list."""

    item: QueueItem
    name: str
    glyph: str
    kind: str
    why: str
    """Reasons in short."""

    mark: str
    current: bool


class Said(NamedTuple):
    """One verdict on the open pair, in words."""

    kept: KeptVerdict
    mine: bool
    judgement: str
    asks: tuple[str, ...]
    changeable: bool
    """Whether the form can hold all of it."""


def render_remark(visit: Visit, place: Place) -> str:
    """Return what is newer than the page, or whose texts these are."""
    return show(
        "review_remark.html.jinja",
        stale=stale_text(visit.desk, place),
        synthetic=cohort_facts(visit.desk, place).synthetic,
    )


def render_queue(visit: Visit, place: Place, sight: Sight) -> str:
    """Return one page of the list."""
    start = _start(place, sight)
    taxonomy = taxonomy_of(visit.desk, place)
    shown = sight.items[start : start + PAGE_SIZE]
    return show(
        "review_queue.html.jinja",
        lines=[_line(item, taxonomy, place) for item in shown],
        start=start,
        size=PAGE_SIZE,
        matching=len(sight.items),
        total=len(sight.queue.items),
        audit_every=AUDIT_EVERY,
    )


def _start(place: Place, sight: Sight) -> int:
    """Return the index of the first pair listed: a whole number of pages."""
    if place.start != FOLLOW:
        start = place.start
    else:
        at = (n for n, item in enumerate(sight.items) if item is sight.item)
        start = next(at, 0)
    last = max(len(sight.items) - 1, 0)
    return min(max(start, 0), last) // PAGE_SIZE * PAGE_SIZE


def _line(item: QueueItem, taxonomy: Taxonomy, place: Place) -> Line:
    glyph, kind = KIND_MARKS[item.failure.kind]
    name = label_name(taxonomy, item.label)
    current = (item.case_id, item.label) == place.pair
    mark = PROGRESS_MARKS[item.progress]
    return Line(item, name, glyph, kind, ", ".join(shorten(item)), mark, current)


def shorten(item: QueueItem) -> list[str]:
    """Return why a pair is worth a look, in a word or two for each reason."""
    short = []
    if item.reasons.rare:
        short.append("rare")
    if item.reasons.near and item.label != ALL_LABELS:
        short.append(f"{round(1 / item.reasons.near)} from gate")
    if any(one.value is not item.failure.predicted for one in item.others):
        short.append("versions disagree")
    if len(item.votes) > 1:
        short.append("readers disagree")
    return short + (["audit"] if item.audit else [])


def render_case(visit: Visit, place: Place, sight: Sight) -> str:
    """Return the open case with what is known of it, or why none is open."""
    item = sight.item
    if item is None:
        return _nothing_open(sight)
    desk = visit.desk
    taxonomy = taxonomy_of(desk, place)
    text = sight.queue.texts.read(item.case_id) if sight.queue.texts.here else None
    line = _line(item, taxonomy, place)
    return show(
        "review_case.html.jinja",
        line=line,
        item=item,
        failure=item.failure,
        position=_position(sight, item),
        language=_language(visit, place, text or ""),
        segments=_segments(visit, place, sight, taxonomy, text),
        wide=place.wide,
        phrases=_phrases(item, text or ""),
        versions=_versions(item),
        run=sight.queue.line,
        held=next((r for r in sight.reservations if r.case_id == item.case_id), None),
        me=visit.user.name,
        guide=_guide(visit, sight),
        names={label.id: label.name for label in taxonomy.labels},
    )


def _nothing_open(sight: Sight) -> str:
    if not sight.queue.items:
        return notice(
            "Every answer of this run agrees with the reference.",
            kind="good",
            title="No failing cases",
        )
    return notice(
        "Choose a pair of the list, or clear the filters.", title="Nothing open"
    )


def _position(sight: Sight, item: QueueItem) -> str:
    """Return where the pair is among those that the filters let through."""
    places = [one.place for one in sight.items]
    if item.place in places:
        return f"{places.index(item.place) + 1} of {len(places)}"
    return "not among the pairs of these filters"


def _language(visit: Visit, place: Place, text: str) -> str:
    said = cohort_facts(visit.desk, place).language
    return guess_language(text) if said == "mixed" else said


class Piece(NamedTuple):
    """A stretch of the case text as it is shown."""

    text: str
    heading: bool
    own: bool
    """Whether the label under review is among those it is evidence of."""

    title: str


def _segments(
    visit: Visit, place: Place, sight: Sight, taxonomy: Taxonomy, text: str | None
) -> list[Piece] | None:
    """Return the text in pieces; None when it is not on this machine."""
    if text is None or sight.item is None:
        return None
    own = sight.item.label
    evidence: dict[str, Sequence[Span]] = {own: sight.item.failure.spans}
    if place.wide or own == ALL_LABELS:
        evidence = {**evidence_of(visit.desk, sight), **evidence}
    return [_piece(one, own, taxonomy) for one in cut_text(text, evidence)]


def _piece(segment: Segment, own: str, taxonomy: Taxonomy) -> Piece:
    names = ", ".join(label_name(taxonomy, label) for label in segment.labels)
    return Piece(segment.text, segment.heading, own in segment.labels, names)


def _phrases(item: QueueItem, text: str) -> list[str]:
    spans = item.failure.spans
    return list(dict.fromkeys(text[one.start : one.end].strip() for one in spans))


def _versions(item: QueueItem) -> list[tuple[str, str]]:
    """Return the other runs and what each said, in words."""
    return [(_run_name(one), one.value or "no answer") for one in item.others]


def _run_name(one: OtherAnswer) -> str:
    name = parse_ref(one.prompt).selector
    return f"{name}, repeat {one.draw}" if one.draw else name


def _guide(visit: Visit, sight: Sight) -> Guide | None:
    item, line = sight.item, sight.queue.line
    guides = guides_of(visit.desk, line.prompt)
    return guides.get(item.label) if item else None


def render_said(visit: Visit, place: Place, sight: Sight) -> str:
    """Return the verdicts on the open pair: one's own first, the others below."""
    said = [_said(visit, one) for one in verdicts_on(sight)]
    item = sight.item
    return show(
        "review_said.html.jinja",
        said=sorted(said, key=lambda one: not one.mine),
        silent=item is not None and item.label == ALL_LABELS,
        kind=KIND_MARKS[item.failure.kind][1] if item else "",
        may=visit.user.may(Right.JUDGE),
        open=item is not None,
    )


def _said(visit: Visit, kept: KeptVerdict) -> Said:
    words = {key: word for word, key in JUDGEMENTS}
    verdict = kept.verdict
    return Said(
        kept,
        verdict.reviewer == visit.user.name,
        words[verdict.judgement.value],
        _asks(verdict.edits),
        form_of(verdict) is not None,
    )


_EXAMPLE = {Value.PRESENT: "Positive exemplar", Value.ABSENT: "Negative exemplar"}


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
    )
    rest = edits.count - len(asked)
    return (*asked, f"{rest} more changes") if rest else asked

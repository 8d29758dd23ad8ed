"""What the page Review rests on: where a visitor stands, and what is seen there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import urlencode

from loop.core.errors import DataError
from loop.core.records import Guide, Span
from loop.evaluate.failures import ALL_LABELS, FailureKind
from loop.evaluate.protocol import protocol_digest
from loop.labels.cohort import read_cohort, read_record
from loop.labels.named_samples import list_samples, read_sampled_cases
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import read_version
from loop.review.queue.build import Queue, build_queue
from loop.review.queue.progress import MarkedQueue, hide_others
from loop.review.queue.records import (
    Persistence,
    QueueFilter,
    QueueItem,
    ReviewStatus,
    RightKind,
    TextSection,
)
from loop.review.queue.value import RIGHT_EVERY
from loop.review.revise.phrases import PhraseBase, find_base, phrase_key
from loop.review.status import KeptVerdict, VerdictState
from loop.review.working import (
    Reservation,
    keep_working,
    list_reservations,
    read_working,
)
from loop.run.manifest import find_run, name_part
from loop.run.store import RunRecord
from loop.ui.context import AppContext
from loop.ui.wiring import Visit

PAGE_SIZE = 40
"""Pairs of the queue that are listed at once."""

FOLLOW = -1
"""As the start of a list: wherever the open pair is."""

_BLIND = "review-blind"
"""Subject under which a person's wish to judge first is kept."""

_OPEN = frozenset({ReviewStatus.UNREVIEWED, ReviewStatus.RETURNED})

LONGEST_FILTER = 200
"""Characters of a filter, or of what is searched for."""

RESERVED = "reserved"
"""A status beside those of `ReviewStatus`."""

_STANDS = frozenset({VerdictState.OPEN, VerdictState.ADDRESSED})

_FINISHED = "SELECT count(*) FROM runs WHERE finished IS NOT NULL"

Evidence = Mapping[str, Mapping[str, Sequence[Span]]]
"""Case id to label to where its evidence stands."""


class Submission(NamedTuple):
    """The last verdict of a tab, which it may undo."""

    id: str
    """Under which it is kept in its cohort."""

    case: str
    label: str
    token: str
    """Of the form that was handed in."""


class Place(NamedTuple):
    """What one browser tab has open; kept on the server."""

    prompt: str = ""
    cohort: str = ""
    run: str = ""
    """Empty until something is open."""

    reference: int = 0
    stamp: tuple[str, ...] = ()
    """What else the order of the queue rested on when it was opened."""

    case: str = ""
    label: str = ""
    serial: int = 0
    """Counts the pairs opened: one that is opened again gets another token."""

    wide: bool = False
    """Whether the evidence of all labels is marked."""

    start: int = FOLLOW
    """First pair listed, an index."""

    blind: bool = False
    """Whether others' verdicts are hidden on pairs that the visitor has not judged."""

    last: Submission | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """Case id and label that are open."""
        return self.case, self.label

    @property
    def token(self) -> str:
        """What a form sends, so that it is not taken for that of another pair."""
        return f"{self.serial}:{self.label}:{self.case}"

    @property
    def subject(self) -> str:
        """Under which an unfinished form is kept."""
        return f"form:{self.run}:{self.case}:{self.label}"

    def at(self, item: QueueItem | None) -> Place:
        """Return the place with another pair open; none at all for None."""
        case, label = (item.case_id, item.label) if item else ("", "")
        serial = self.serial + 1
        return self._replace(case=case, label=label, serial=serial, start=FOLLOW)


class Filters(NamedTuple):
    """What a visitor wants to see of the queue; an empty field means all."""

    search: str = ""
    label: str = ""
    kind: str = ""
    section: str = ""
    status: str = ""
    reviewer: str = ""
    sample: str = ""
    """Name of drawn cases, see `loop.labels.named_samples`."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Filters:
        """Return the filters that a browser sent, cut where they are too long."""
        known = (value if isinstance(value, str) else "" for value in values)
        return cls(*(value[:LONGEST_FILTER] for value in known))

    def wanted(self, cases: frozenset[str] = frozenset()) -> QueueFilter:
        """Return the filter of the queue; what it does not know lets all through.

        Parameters
        ----------
        cases
            Ids of the cases of the sample; empty for none.
        """
        return QueueFilter(
            cases=cases,
            labels=frozenset(filter(None, [self.label])),
            kinds=frozenset(
                kind for kind in (*FailureKind, *RightKind) if kind == self.kind
            ),
            sections=frozenset(one for one in TextSection if one == self.section),
            text=self.search.strip(),
            reviewers=frozenset(filter(None, [self.reviewer])),
            progress=frozenset(one for one in ReviewStatus if one == self.status),
            reserved=True if self.status == RESERVED else None,
            draws=next((one for one in Persistence if one == self.status), None),
        )


def step(items: Sequence[QueueItem], now: QueueItem | None, by: int) -> QueueItem:
    """Return the item after `now` (`by` 1) or before it (-1), the last at the end.

    An item that has left the list counts with its place in the whole queue.

    Raises
    ------
    ValueError
        There are no items.
    """
    if not items:
        raise ValueError("nothing to go through")
    if now is None:
        return items[0]
    ahead = (one for one in items if one.place > now.place)
    behind = (one for one in reversed(items) if one.place < now.place)
    return next(ahead, items[-1]) if by > 0 else next(behind, items[0])


def next_open(items: Sequence[QueueItem], now: QueueItem | None) -> QueueItem | None:
    """Return the next item that waits for a verdict, from the top after the last.

    Cases without any answer wait for no verdict, and those that somebody has reserved
    are left to them. None when nothing waits.
    """
    after = now.place if now else 0
    at = bisect_right(items, after, key=lambda one: one.place)
    in_turn = chain(islice(items, at, None), islice(items, at))
    return next((one for one in in_turn if _waits(one) and one.place != after), None)


def _waits(item: QueueItem) -> bool:
    return bool(item.progress in _OPEN and item.label and not item.reserved_by)


def find_place(items: Sequence[QueueItem], item: QueueItem | None) -> int | None:
    """Return the index of `item` among items in the order of the queue, or None."""
    if item is None:
        return None
    at = bisect_left(items, item.place, key=lambda one: one.place)
    found = at < len(items) and items[at].place == item.place
    return at if found else None


def keep_place(visit: Visit, place: Place, filters: Filters) -> None:
    """Remember the open pair and the filters, but not what was searched for."""
    payload = {
        "run": place.run,
        "case": place.case,
        "label": place.label,
        "filters": filters._replace(search="")._asdict(),
    }
    _keep(visit, _subject(place.prompt, place.cohort), payload)


def follow_link(visit: Visit, prompt: str, cohort: str, pair: tuple[str, str]) -> None:
    """Have the page open next on a pair that an address names, without filters."""
    case, label = pair
    payload = {"case": case, "label": label, "linked": True}
    _keep(visit, _subject(prompt, cohort), payload)


def link_of(place: Place) -> str:
    """Return the address, in this workbench, that opens the same pair."""
    asked = {
        "case": place.case,
        "label": place.label,
        "prompt": place.prompt,
        "cohort": place.cohort,
    }
    return f"/?{urlencode(asked)}"


def keep_blind(visit: Visit, blind: bool) -> None:
    """Remember whether a person wants to judge before they see what others said."""
    _keep(visit, _BLIND, {"blind": blind})


def blind_kept(visit: Visit) -> bool:
    """Return what `keep_blind` remembered; False at first."""
    kept = read_working(visit.context.store, visit.actor, _BLIND)
    return bool(kept and kept.payload.get("blind") is True)


def _keep(visit: Visit, subject: str, payload: Mapping[str, Any]) -> None:
    keep_working(visit.context.store, visit.actor, subject, payload, visit.context.now)


class ResumePoint(NamedTuple):
    """What was open the last time."""

    run: str
    case: str
    label: str
    filters: Filters
    linked: bool
    """Whether an address named it."""


def place_kept(visit: Visit, place: Place) -> ResumePoint:
    """Return what was open last on this prompt and cohort; empty for a first visit."""
    subject = _subject(place.prompt, place.cohort)
    kept = read_working(visit.context.store, visit.actor, subject)
    data: Mapping[str, Any] = kept.payload if kept else {}
    chosen = data.get("filters")
    known = chosen if isinstance(chosen, dict) else {}
    filters = Filters.of([known.get(name, "") for name in Filters._fields])
    run, case, label = (str(data.get(name, "")) for name in ("run", "case", "label"))
    return ResumePoint(run, case, label, filters, data.get("linked") is True)


def _subject(prompt: str, cohort: str) -> str:
    return f"review:{prompt}:{cohort}"


class ReviewState(NamedTuple):
    """What a visitor sees of the queue just now."""

    queue: Queue
    """All failing pairs and the right answers drawn, marked with progress."""

    items: tuple[QueueItem, ...]
    """Those that the filters let through."""

    item: QueueItem | None
    """The one that is open."""

    kept: tuple[KeptVerdict, ...]
    reservations: tuple[Reservation, ...]
    hidden: bool
    """Whether what others said of the open pair is kept from the visitor."""


class RunName(NamedTuple):
    """How people know a run: what was asked, and when it was done."""

    prompt: str
    """Version reference; empty for a run that is gone."""

    time: str
    """UTC, ISO 8601."""

    part: str = ""
    """Which cases of its cohort it asked; empty where it asked all."""


class Newer(NamedTuple):
    """What is newer than what a page shows."""

    shown: RunName | None
    run: RunName | None
    reference: int
    """Number of the newer reference; 0 where it is the run that is newer."""


class ReviewCohort(NamedTuple):
    """What is needed of a cohort besides its failing cases."""

    language: str
    case_ids: frozenset[str]
    synthetic: bool


def newest_place(context: AppContext, prompt: str, cohort: str) -> Place:
    """Return the place on the newest run and reference, with nothing open yet.

    Raises
    ------
    DataError
        There is no finished run, or the cohort is not as recorded.
    """
    return _place(context, prompt, cohort, context.latest_run(prompt, cohort))


def place_on(context: AppContext, prompt: str, cohort: str, run: str) -> Place | None:
    """Return the place on a run that was open before; None when it is of no use."""
    try:
        record = find_run(context.workspace, run)
    except DataError:
        return None
    fits = record.spec.cohort == cohort
    of = record.spec.prompt.partition("@")[0] == prompt
    return _place(context, prompt, cohort, record) if fits and of else None


def _place(context: AppContext, prompt: str, cohort: str, run: RunRecord) -> Place:
    record = read_record(context.workspace, cohort)
    ((runs,),) = context.store.read(_FINISHED)
    stamp = (
        protocol_digest(context.workspace),
        read_taxonomy(context.workspace.labels).digest,
        record.votes or "",
        str(runs),
    )
    return Place(prompt, cohort, run.id, record.newest, stamp)


def read_state(visit: Visit, place: Place, filters: Filters) -> ReviewState:
    """Return what is to be seen from `place`.

    Who judges first and then looks sees a pair as if nobody had judged it, in the list
    as well, until they have a verdict on it themselves.

    Raises
    ------
    DataError
        Nothing is open yet, or a text is looked for and the texts are not here.
    """
    if not place.run:
        raise DataError("nothing is open in this tab. Open the page Review again.")
    context = visit.context
    kept = context.kept_verdicts(place.cohort)
    reserved = list_reservations(context.store, place.cohort, context.now)
    marks = context.cache.get(_key("queue", place), lambda: _marks(context, place))
    queue = marks.mark(kept, reserved)
    if place.blind:
        queue = hide_others(queue, visit.user.name)
    drawn = sampled_cases(context, place, filters.sample)
    items = queue.filtered(filters.wanted(drawn))
    item = queue.find(*place.pair) if place.case else None
    judged = item is not None and visit.user.name in item.reviewers
    return ReviewState(queue, items, item, kept, reserved, place.blind and not judged)


def sampled_cases(context: AppContext, place: Place, name: str) -> frozenset[str]:
    """Return the cases that were drawn under a name; none where there is no such name.

    Raises
    ------
    DataError
        Its file was damaged, or the cohort was imported again since.
    """
    workspace, cohort = context.workspace, place.cohort
    if not name or name not in list_samples(workspace, cohort):
        return frozenset()
    return context.cache.get(
        ("sample", place.run, cohort, name),
        lambda: frozenset(read_sampled_cases(workspace, cohort, name)),
    )


def _key(what: str, place: Place) -> tuple[object, ...]:
    """Return what names a thing that follows from the queue alone."""
    return what, place.run, place.reference, place.stamp


def _marks(context: AppContext, place: Place) -> MarkedQueue:
    return MarkedQueue(
        build_queue(
            context.workspace,
            context.store,
            place.run,
            reference=place.reference,
            right_every=RIGHT_EVERY,
        )
    )


def taxonomy_of(context: AppContext, place: Place) -> Taxonomy:
    """Return the taxonomy as it was when the page was opened."""
    key = ("taxonomy", place.stamp)
    return context.cache.get(key, lambda: read_taxonomy(context.workspace.labels))


def label_name(taxonomy: Taxonomy, label: str) -> str:
    """Return a label as published; a case without any answer has a name as well."""
    return "All labels" if label == ALL_LABELS else taxonomy.find(label).name


def guides_of(context: AppContext, prompt_ref: str) -> Mapping[str, Guide]:
    """Return the guides of a committed version by label, or none if it is gone."""

    def make() -> Mapping[str, Guide]:
        try:
            version = read_version(context.workspace, prompt_ref)
        except DataError:
            return {}
        return {guide.label: guide for guide in version.guides}

    return context.cache.get(("guides", prompt_ref), make)


def phrase_base(context: AppContext, prompt_ref: str, cohort: str) -> PhraseBase:
    """Return what phrases are tried on; kept, since people mark words after words.

    Raises
    ------
    DataError
        The prompt or the texts are not here, or the cohort is none to revise on.
    """
    version, members = find_base(context.workspace, prompt_ref, cohort)
    return context.cache.get(
        ("phrases", *phrase_key(context.workspace, version, members)),
        lambda: PhraseBase(context.workspace, version, members),
    )


def cohort_facts(context: AppContext, place: Place) -> ReviewCohort:
    """Return language and case ids of the cohort of the run."""

    def make() -> ReviewCohort:
        cohort = read_cohort(context.workspace, place.cohort)
        return ReviewCohort(
            cohort.language, frozenset(cohort.case_ids), cohort.synthetic
        )

    return context.cache.get(("cohort", place.run), make)


def evidence_of(
    context: AppContext, state: ReviewState
) -> Mapping[str, Sequence[Span]]:
    """Return the evidence of every label that the model gave for the open case."""
    if state.item is None:
        return {}
    run = state.queue.line.run_id

    def make() -> Evidence:
        wanted = frozenset(item.case_id for item in state.queue.items)
        return {
            outcome.item_id: {k: f.spans for k, f in outcome.fields.items() if f.spans}
            for outcome in context.store.read_outcomes(run)
            if outcome.item_id in wanted
        }

    found = context.cache.get(("evidence", run), make)
    return found.get(state.item.case_id, {})


def phrases_of(state: ReviewState, item: QueueItem) -> tuple[str, ...]:
    """Return the words that the model gave as its evidence, each once."""
    spans = item.failure.spans
    if not spans or not state.queue.texts.here:
        return ()
    text = state.queue.texts.read(item.case_id)
    found = (text[one.start : one.end].strip() for one in spans)
    return tuple(dict.fromkeys(filter(None, found)))


def find_alike(visit: Visit, place: Place, state: ReviewState) -> tuple[QueueItem, ...]:
    """Return the other pairs that could get the verdict on the open one.

    They have its label, fail as it does, on the same words (case and spaces do not
    count), and the visitor has not judged them.
    """
    item = state.item
    if item is None or item.right or not phrases_of(state, item):
        return ()

    def make() -> Mapping[object, Sequence[int]]:
        groups: dict[object, list[int]] = {}
        for at, one in enumerate(state.queue.items):
            if one.failure.spans and not one.right:
                groups.setdefault(_group(state, one), []).append(at)
        return groups

    groups = visit.context.cache.get(_key("alike", place), make)
    found = (state.queue.items[at] for at in groups.get(_group(state, item), ()))
    return tuple(
        one
        for one in found
        if one.place != item.place and visit.user.name not in one.reviewers
    )


def _group(state: ReviewState, item: QueueItem) -> object:
    words = (" ".join(one.casefold().split()) for one in phrases_of(state, item))
    return item.label, item.failure.kind, frozenset(words)


def said_by(visit: Visit, state: ReviewState) -> list[KeptVerdict]:
    """Return what the visitor said of this cohort and did not take back."""
    name = visit.user.name
    return [
        one
        for one in state.kept
        if one.verdict.reviewer == name and one.withdrawal is None
    ]


def name_run(context: AppContext, run: str) -> RunName:
    """Return how people know a run."""

    def make() -> RunName:
        try:
            record = find_run(context.workspace, run)
        except DataError:
            return RunName("", "")
        finished = record.finished or record.created
        return RunName(record.spec.prompt, finished, name_part(record))

    return context.cache.get(("run", run), make)


def verdicts_on(state: ReviewState) -> list[KeptVerdict]:
    """Return what was said of the open pair and still stands, oldest first."""
    if state.item is None or state.hidden:
        return []
    pair = (state.item.case_id, state.item.label)
    return [one for one in state.kept if one.state in _STANDS and pair in one.pairs]


def find_newer(context: AppContext, place: Place) -> Newer | None:
    """Return what is newer than what the page was opened on, or None."""
    ((runs,),) = context.store.read(_FINISHED)
    newest = context.cache.get(
        ("newest run", place.prompt, place.cohort, runs),
        lambda: context.latest_run(place.prompt, place.cohort),
    )
    if newest.id != place.run:
        shown = name_run(context, place.run)
        return Newer(shown, name_run(context, newest.id), 0)
    number = read_record(context.workspace, place.cohort).newest
    return Newer(None, None, number) if number != place.reference else None

"""What the page rests on: the queue of a run, verdicts, guides, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.records import Guide, Span
from loop.evaluate.failures import ALL_LABELS
from loop.evaluate.protocol import protocol_digest
from loop.labels.cohort import read_cohort, read_record
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import read_version
from loop.review.queue.build import Queue, build_queue
from loop.review.queue.progress import MarkedQueue, hide_others
from loop.review.queue.records import QueueItem
from loop.review.queue.value import RIGHT_EVERY
from loop.review.status import KeptVerdict, Verdicts, VerdictState
from loop.review.working import Reservation, list_reservations
from loop.run.manifest import find_run
from loop.run.store import RunRecord
from loop.ui.desk import Desk
from loop.ui.pages.review.place import Filters, Place
from loop.ui.wiring import Visit

_STANDS = frozenset({VerdictState.OPEN, VerdictState.ADDRESSED})

_FINISHED = "SELECT count(*) FROM runs WHERE finished IS NOT NULL"

Evidence = Mapping[str, Mapping[str, Sequence[Span]]]
"""Case id to label to where its evidence stands."""


class Sight(NamedTuple):
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


def newest_place(desk: Desk, prompt: str, cohort: str) -> Place:
    """Return the place on the newest run and reference, with nothing open yet.

    Raises
    ------
    DataError
        There is no finished run, or the cohort is not as recorded.
    """
    return _place(desk, prompt, cohort, desk.latest_run(prompt, cohort))


def place_on(desk: Desk, prompt: str, cohort: str, run: str) -> Place | None:
    """Return the place on a run that was open before; None when it is of no use."""
    try:
        record = find_run(desk.workspace, run)
    except DataError:
        return None
    fits = record.spec.cohort == cohort
    of = record.spec.prompt.partition("@")[0] == prompt
    return _place(desk, prompt, cohort, record) if fits and of else None


def _place(desk: Desk, prompt: str, cohort: str, run: RunRecord) -> Place:
    record = read_record(desk.workspace, cohort)
    ((runs,),) = desk.store.read(_FINISHED)
    stamp = (
        protocol_digest(desk.workspace),
        read_taxonomy(desk.workspace.labels).digest,
        record.votes or "",
        str(runs),
    )
    return Place(prompt, cohort, run.id, record.newest, stamp)


def look(visit: Visit, place: Place, filters: Filters) -> Sight:
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
    desk = visit.desk
    kept = desk.memo.get(
        ("verdicts",), lambda: Verdicts(desk.store, desk.workspace)
    ).read(place.cohort)
    reserved = list_reservations(desk.store, place.cohort, desk.now)
    marks = desk.memo.get(_key("queue", place), lambda: _marks(desk, place))
    queue = marks.mark(kept, reserved)
    if place.blind:
        queue = hide_others(queue, visit.user.name)
    items = queue.filtered(filters.wanted())
    item = queue.find(*place.pair) if place.case else None
    judged = item is not None and visit.user.name in item.reviewers
    return Sight(queue, items, item, kept, reserved, place.blind and not judged)


def _key(what: str, place: Place) -> tuple[object, ...]:
    """Return what names a thing that follows from the queue alone."""
    return what, place.run, place.reference, place.stamp


def _marks(desk: Desk, place: Place) -> MarkedQueue:
    return MarkedQueue(
        build_queue(
            desk.workspace,
            desk.store,
            place.run,
            reference=place.reference,
            right_every=RIGHT_EVERY,
        )
    )


def taxonomy_of(desk: Desk, place: Place) -> Taxonomy:
    """Return the taxonomy as it was when the page was opened."""
    key = ("taxonomy", place.stamp)
    return desk.memo.get(key, lambda: read_taxonomy(desk.workspace.labels))


def label_name(taxonomy: Taxonomy, label: str) -> str:
    """Return a label as published; a case without any answer has a name as well."""
    return "All labels" if label == ALL_LABELS else taxonomy.find(label).name


def guides_of(desk: Desk, prompt_ref: str) -> Mapping[str, Guide]:
    """Return the guides of a committed version by label, or none if it is gone."""

    def make() -> Mapping[str, Guide]:
        try:
            version = read_version(desk.workspace, prompt_ref)
        except DataError:
            return {}
        return {guide.label: guide for guide in version.guides}

    return desk.memo.get(("guides", prompt_ref), make)


def cohort_facts(desk: Desk, place: Place) -> ReviewCohort:
    """Return language and case ids of the cohort of the run."""

    def make() -> ReviewCohort:
        cohort = read_cohort(desk.workspace, place.cohort)
        return ReviewCohort(
            cohort.language, frozenset(cohort.case_ids), cohort.synthetic
        )

    return desk.memo.get(("cohort", place.run), make)


def evidence_of(desk: Desk, sight: Sight) -> Mapping[str, Sequence[Span]]:
    """Return the evidence of every label that the model gave for the open case."""
    if sight.item is None:
        return {}
    run = sight.queue.line.run_id

    def make() -> Evidence:
        wanted = frozenset(item.case_id for item in sight.queue.items)
        return {
            outcome.item_id: {k: f.spans for k, f in outcome.fields.items() if f.spans}
            for outcome in desk.store.read_outcomes(run)
            if outcome.item_id in wanted
        }

    found = desk.memo.get(("evidence", run), make)
    return found.get(sight.item.case_id, {})


def phrases_of(sight: Sight, item: QueueItem) -> tuple[str, ...]:
    """Return the words that the model gave as its evidence, each once."""
    spans = item.failure.spans
    if not spans or not sight.queue.texts.here:
        return ()
    text = sight.queue.texts.read(item.case_id)
    found = (text[one.start : one.end].strip() for one in spans)
    return tuple(dict.fromkeys(filter(None, found)))


def find_alike(visit: Visit, place: Place, sight: Sight) -> tuple[QueueItem, ...]:
    """Return the other pairs that could get the verdict on the open one.

    They have its label, fail as it does, on the same words (case and spaces do not
    count), and the visitor has not judged them.
    """
    item = sight.item
    if item is None or item.right or not phrases_of(sight, item):
        return ()

    def make() -> Mapping[object, Sequence[int]]:
        groups: dict[object, list[int]] = {}
        for at, one in enumerate(sight.queue.items):
            if one.failure.spans and not one.right:
                groups.setdefault(_group(sight, one), []).append(at)
        return groups

    groups = visit.desk.memo.get(_key("alike", place), make)
    found = (sight.queue.items[at] for at in groups.get(_group(sight, item), ()))
    return tuple(
        one
        for one in found
        if one.place != item.place and visit.user.name not in one.reviewers
    )


def _group(sight: Sight, item: QueueItem) -> object:
    words = (" ".join(one.casefold().split()) for one in phrases_of(sight, item))
    return item.label, item.failure.kind, frozenset(words)


def said_by(visit: Visit, sight: Sight) -> list[KeptVerdict]:
    """Return what the visitor said of this cohort and did not take back."""
    name = visit.user.name
    return [
        one
        for one in sight.kept
        if one.verdict.reviewer == name and one.withdrawal is None
    ]


def name_run(desk: Desk, run: str) -> RunName:
    """Return how people know a run."""

    def make() -> RunName:
        try:
            record = find_run(desk.workspace, run)
        except DataError:
            return RunName("", "")
        return RunName(record.spec.prompt, record.finished or record.created)

    return desk.memo.get(("run", run), make)


def verdicts_on(sight: Sight) -> list[KeptVerdict]:
    """Return what was said of the open pair and still stands, oldest first."""
    if sight.item is None or sight.hidden:
        return []
    pair = (sight.item.case_id, sight.item.label)
    return [one for one in sight.kept if one.state in _STANDS and pair in one.pairs]


def find_newer(desk: Desk, place: Place) -> Newer | None:
    """Return what is newer than what the page was opened on, or None."""
    ((runs,),) = desk.store.read(_FINISHED)
    newest = desk.memo.get(
        ("newest run", place.prompt, place.cohort, runs),
        lambda: desk.latest_run(place.prompt, place.cohort),
    )
    if newest.id != place.run:
        shown = name_run(desk, place.run)
        return Newer(shown, name_run(desk, newest.id), 0)
    number = read_record(desk.workspace, place.cohort).newest
    return Newer(None, None, number) if number != place.reference else None

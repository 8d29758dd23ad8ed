"""What the page rests on: the queue of a run, verdicts, guides, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.records import Guide, Span
from loop.evaluate.failures import ALL_LABELS
from loop.evaluate.protocol import protocol_digest
from loop.labels.cohort import read_cohort
from loop.labels.recorded import read_record
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.catalog import read_version
from loop.review.kept import KeptVerdict, Verdicts, VerdictState
from loop.review.queue.build import Queue, build_queue
from loop.review.queue.progress import mark_progress
from loop.review.queue.records import QueueItem
from loop.review.reservations import Reservation, list_reservations
from loop.run.manifest import find_run
from loop.run.store import RunRecord
from loop.ui.desk import Desk
from loop.ui.pages.review.place import Filters, Place

_STANDS = frozenset({VerdictState.OPEN, VerdictState.ADDRESSED})

Evidence = Mapping[str, Mapping[str, Sequence[Span]]]
"""Case id to label to where its evidence stands."""


class Sight(NamedTuple):
    """What a visitor sees of the queue just now."""

    queue: Queue
    """All failing pairs, marked with progress."""

    items: tuple[QueueItem, ...]
    """Those that the filters let through."""

    item: QueueItem | None
    """The one that is open."""

    kept: tuple[KeptVerdict, ...]
    reservations: tuple[Reservation, ...]


class CohortFacts(NamedTuple):
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
    ((runs,),) = desk.store.read("SELECT count(*) FROM runs WHERE finished IS NOT NULL")
    stamp = (
        protocol_digest(desk.workspace),
        read_taxonomy(desk.workspace.labels).digest,
        record.votes or "",
        str(runs),
    )
    return Place(prompt, cohort, run.id, record.newest, stamp)


def look(desk: Desk, place: Place, filters: Filters) -> Sight:
    """Return what is to be seen from `place`.

    Raises
    ------
    DataError
        Nothing is open yet, or a text is looked for and the texts are not here.
    """
    if not place.run:
        raise DataError("nothing is open in this tab. Open the page Review again.")
    kept = desk.memo.get(
        ("verdicts",), lambda: Verdicts(desk.store, desk.workspace)
    ).read(place.cohort)
    reserved = list_reservations(desk.store, place.cohort, desk.now)
    queue = _marked(desk, place, kept, reserved)
    items = queue.filtered(filters.wanted())
    item = queue.find(*place.pair) if place.case else None
    return Sight(queue, items, item, kept, reserved)


class _Last:
    """The queue as it was marked last; new marks touch only what they change."""

    def __init__(self, queue: Queue) -> None:
        self.marked: tuple[object, Queue] = ((), queue)


def _marked(
    desk: Desk,
    place: Place,
    kept: tuple[KeptVerdict, ...],
    reserved: tuple[Reservation, ...],
) -> Queue:
    """Return the queue with progress; verdicts that stay the same stay the object."""
    key = ("queue", place.run, place.reference, place.stamp)
    last = desk.memo.get(key, lambda: _Last(_build(desk, place)))
    marks, marked = last.marked
    if marks != (kept, reserved):
        marked = mark_progress(marked, kept, reserved)
        last.marked = ((kept, reserved), marked)
    return marked


def _build(desk: Desk, place: Place) -> Queue:
    return build_queue(desk.workspace, desk.store, place.run, reference=place.reference)


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


def cohort_facts(desk: Desk, place: Place) -> CohortFacts:
    """Return language and case ids of the cohort of the run."""

    def make() -> CohortFacts:
        cohort = read_cohort(desk.workspace, place.cohort)
        return CohortFacts(
            cohort.language, frozenset(cohort.case_ids), cohort.synthetic
        )

    return desk.memo.get(("cohort", place.run), make)


def evidence_of(desk: Desk, sight: Sight) -> Mapping[str, Sequence[Span]]:
    """Return the evidence of every label that the model gave for the open case."""
    if sight.item is None:
        return {}
    run = sight.queue.line.run_id
    wanted = frozenset(item.case_id for item in sight.queue.items)

    def make() -> Evidence:
        return {
            outcome.item_id: {k: f.spans for k, f in outcome.fields.items() if f.spans}
            for outcome in desk.store.read_outcomes(run)
            if outcome.item_id in wanted
        }

    found = desk.memo.get(("evidence", run), make)
    return found.get(sight.item.case_id, {})


def verdicts_on(sight: Sight) -> list[KeptVerdict]:
    """Return what was said of the open pair and still stands, oldest first."""
    if sight.item is None:
        return []
    pair = (sight.item.case_id, sight.item.label)
    return [one for one in sight.kept if one.state in _STANDS and pair in one.pairs]


def stale_text(desk: Desk, place: Place) -> str:
    """Return what is newer than what the page was opened on, or nothing."""
    newest = desk.latest_run(place.prompt, place.cohort)
    if newest.id != place.run:
        return (
            f"There is a newer run, {newest.id} of {newest.spec.prompt}. This page "
            f"still shows run {place.run}, and answers given here name that run."
        )
    number = read_record(desk.workspace, place.cohort).newest
    if number != place.reference:
        return (
            f"The reference has a newer version, {number}. This page still shows "
            f"version {place.reference}."
        )
    return ""

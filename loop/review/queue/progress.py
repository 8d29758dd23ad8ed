"""How far the review of a queue is: verdicts and reservations laid over its items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from statistics import median
from threading import Lock
from typing import NamedTuple

from loop.review.queue.build import Queue
from loop.review.queue.records import QueueItem, ReviewStatus, RightKind, RunLine
from loop.review.status import KeptVerdict, VerdictState
from loop.review.working import Reservation

Pair = tuple[str, str]

PAUSE_S = 300
"""Seconds without a verdict that are a pause and not a slow case."""

FEWEST = 5
"""Submissions from which on a pace is told."""

_RECENT = 40
"""Submissions that a pace is taken from."""

_STANDING = frozenset({VerdictState.OPEN, VerdictState.ADDRESSED})


def mark_progress(
    queue: Queue, kept: Sequence[KeptVerdict], reserved: Iterable[Reservation] = ()
) -> Queue:
    """Return the queue with who has judged each item and who has reserved its case.

    An item is open to review again when everything said of it was answered before the
    run under review, and it fails all the same. Withdrawn and superseded verdicts do
    not count.

    Parameters
    ----------
    kept
        Verdicts on the queue's cohort; of any run.
    reserved
        Reservations of the cohort that have not ended.
    """
    by_pair: dict[Pair, list[KeptVerdict]] = {}
    for one in kept:
        if one.state in _STANDING:
            for pair in one.pairs:
                by_pair.setdefault(pair, []).append(one)
    holders = {one.case_id: one.actor for one in reserved}
    items = tuple(_marked(item, by_pair, holders, queue.line) for item in queue.items)
    return replace(queue, items=items)


def hide_others(queue: Queue, reviewer: str) -> Queue:
    """Return a marked queue as who judges blind to others may see it.

    What `reviewer` has judged stays as it is; all else looks as if nobody had.
    """
    items = tuple(
        item
        if not item.reviewers or reviewer in item.reviewers
        else replace(item, reviewers=(), progress=ReviewStatus.UNREVIEWED)
        for item in queue.items
    )
    return replace(queue, items=items)


class ReviewPace(NamedTuple):
    """How far one reviewer is with some items."""

    judged: int
    total: int
    minutes: int | None
    """For what is left, at the pace of late; None until that is known."""


def measure_pace(
    items: Iterable[QueueItem], reviewer: str, times: Sequence[str]
) -> ReviewPace:
    """Return how much `reviewer` has judged and how long the rest would take.

    The pace is the median time between two of the last submissions; longer pauses than
    `PAUSE_S` are none of it. It is known from `FEWEST` submissions on.

    Parameters
    ----------
    items
        Those to judge; what cannot be judged, or is right, does not count.
    times
        When the reviewer handed in verdicts, ISO 8601, oldest first.

    Examples
    --------
    >>> times = [f"2026-01-05T09:0{minute}:00Z" for minute in range(5)]
    >>> measure_pace([], "Ann", times)
    ReviewPace(judged=0, total=0, minutes=0)
    """
    # Thousands of times for each verdict: without the detour over the properties.
    said = [
        item.reviewers
        for item in items
        if item.failure.label and item.failure.kind is not RightKind.RIGHT
    ]
    total = len(said)
    judged = sum(1 for names in said if names and reviewer in names)
    if len(times) < FEWEST:
        return ReviewPace(judged, total, None)
    recent = [datetime.fromisoformat(one) for one in times[-_RECENT:]]
    gaps = [(b - a).total_seconds() for a, b in pairwise(recent)]
    gaps = [gap for gap in gaps if gap <= PAUSE_S]
    if not gaps:
        return ReviewPace(judged, total, None)
    return ReviewPace(judged, total, round((total - judged) * median(gaps) / 60))


class MarkedQueue:
    """A queue that is marked again and again; what did not change costs nothing.

    Its method may be called from any thread, and gives what `mark_progress` would.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._lock = Lock()
        self._kept: Sequence[KeptVerdict] = ()
        self._by_id: dict[str, KeptVerdict] = {}
        self._by_pair: dict[Pair, dict[str, KeptVerdict]] = {}
        self._holders: dict[str, str] = {}

    def mark(
        self, kept: Sequence[KeptVerdict], reserved: Iterable[Reservation]
    ) -> Queue:
        """Return the queue as it is now; see `mark_progress`."""
        holders = {one.case_id: one.actor for one in reserved}
        index = self._queue.index
        with self._lock:
            pairs = self._take(kept) if kept is not self._kept else set()
            self._kept = kept
            changed = {index.pairs[pair] for pair in pairs if pair in index.pairs}
            for case_id in {
                case for case, _ in holders.items() ^ self._holders.items()
            }:
                changed.update(index.cases.get(case_id, ()))
            self._holders = holders
            if changed:
                self._queue = self._marked(changed)
            return self._queue

    def _take(self, kept: Sequence[KeptVerdict]) -> set[Pair]:
        """Take over what was said and return the pairs of which something changed."""
        changed: set[Pair] = set()
        fresh = [one for one in kept if self._by_id.get(one.id) is not one]
        gone = [one for one in fresh if one.id in self._by_id]
        if len(kept) - len(fresh) + len(gone) != len(self._by_id):
            ids = {one.id for one in kept}
            gone.extend(one for one in self._by_id.values() if one.id not in ids)
        for one in gone:
            before = self._by_id.pop(one.id)
            for pair in before.pairs:
                self._by_pair.get(pair, {}).pop(one.id, None)
                changed.add(pair)
        for one in fresh:
            self._by_id[one.id] = one
            if one.state in _STANDING:
                for pair in one.pairs:
                    self._by_pair.setdefault(pair, {})[one.id] = one
                    changed.add(pair)
        return changed

    def _marked(self, changed: Iterable[int]) -> Queue:
        items = list(self._queue.items)
        for at in changed:
            item = items[at]
            pair = (item.case_id, item.label)
            by_age = sorted(
                self._by_pair.get(pair, {}).values(),
                key=lambda one: (one.created, one.id),
            )
            line = self._queue.line
            items[at] = _marked(item, {pair: by_age}, self._holders, line)
        return replace(self._queue, items=tuple(items))


def _marked(
    item: QueueItem,
    by_pair: Mapping[Pair, Sequence[KeptVerdict]],
    holders: Mapping[str, str],
    line: RunLine,
) -> QueueItem:
    """Return the item as it is now; the same one when nothing changed."""
    case_id = item.failure.case_id
    verdicts = by_pair.get((case_id, item.failure.label), ())
    reviewers: tuple[str, ...] = ()
    if verdicts:
        reviewers = tuple(dict.fromkeys(one.verdict.reviewer for one in verdicts))
    now = (reviewers, _progress(verdicts, line), holders.get(case_id, ""))
    if item.right and now[1] is ReviewStatus.RETURNED:
        # Nothing is left to put right where nothing fails.
        now = (reviewers, ReviewStatus.ADDRESSED, now[2])
    if now == (item.reviewers, item.progress, item.reserved_by):
        return item
    return replace(item, reviewers=now[0], progress=now[1], reserved_by=now[2])


def _progress(verdicts: Sequence[KeptVerdict], line: RunLine) -> ReviewStatus:
    if not verdicts:
        return ReviewStatus.UNREVIEWED
    if any(one.state is VerdictState.OPEN for one in verdicts):
        return ReviewStatus.REVIEWED
    before = all(_answered_before(one.addressed_by, line) for one in verdicts)
    return ReviewStatus.RETURNED if before else ReviewStatus.ADDRESSED


def _answered_before(answer: str, line: RunLine) -> bool:
    """Whether a version or reference was part of what the queue was made from."""
    if answer.startswith(f"{line.cohort}:ref"):
        return int(answer.removeprefix(f"{line.cohort}:ref")) <= line.reference
    name, _, selector = line.prompt.partition("@")
    of, _, tag = answer.partition("@")
    # A draft was begun from the newest version.
    later = selector.startswith("draft") or int(tag[1:]) <= int(selector[1:])
    return of == name and later

"""How far the review of a queue is: verdicts and reservations laid over its items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from loop.review.kept import KeptVerdict, VerdictState
from loop.review.queue.build import Queue
from loop.review.queue.records import Progress, QueueItem, RunLine
from loop.review.reservations import Reservation

Pair = tuple[str, str]


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
        if one.state in (VerdictState.OPEN, VerdictState.ADDRESSED):
            for pair in one.pairs:
                by_pair.setdefault(pair, []).append(one)
    holders = {one.case_id: one.actor for one in reserved}
    items = tuple(_marked(item, by_pair, holders, queue.line) for item in queue.items)
    return replace(queue, items=items)


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
    if now == (item.reviewers, item.progress, item.reserved_by):
        return item
    return replace(item, reviewers=now[0], progress=now[1], reserved_by=now[2])


def _progress(verdicts: Sequence[KeptVerdict], line: RunLine) -> Progress:
    if not verdicts:
        return Progress.UNREVIEWED
    if any(one.state is VerdictState.OPEN for one in verdicts):
        return Progress.REVIEWED
    before = all(_answered_before(one.addressed_by, line) for one in verdicts)
    return Progress.RETURNED if before else Progress.ADDRESSED


def _answered_before(answer: str, line: RunLine) -> bool:
    """Whether a version or reference was part of what the queue was made from."""
    if answer.startswith(f"{line.cohort}:ref"):
        return int(answer.removeprefix(f"{line.cohort}:ref")) <= line.reference
    name, _, selector = line.prompt.partition("@")
    of, _, tag = answer.partition("@")
    # A draft was begun from the newest version.
    later = selector.startswith("draft") or int(tag[1:]) <= int(selector[1:])
    return of == name and later

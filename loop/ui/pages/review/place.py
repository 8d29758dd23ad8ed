"""Where a visitor stands in the queue: ids only, never a text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import urlencode

from loop.evaluate.failures import FailureKind
from loop.review.queue.records import (
    Persistence,
    QueueFilter,
    QueueItem,
    ReviewStatus,
    RightKind,
    TextSection,
)
from loop.review.working import keep_working, read_working
from loop.ui.wiring import Visit

PAGE_SIZE = 40
"""Pairs of the queue that are listed at once."""

FOLLOW = -1
"""As the start of a list: wherever the open pair is."""

_BLIND = "review-blind"
"""Subject under which a person's wish to judge first is kept."""

_OPEN = frozenset({ReviewStatus.UNREVIEWED, ReviewStatus.RETURNED})


class Submission(NamedTuple):
    """The last verdict of a tab, which it may undo."""

    id: str
    """Under which it is kept in its cohort."""

    case: str
    label: str
    token: str
    """Of the form that was handed in."""


LONGEST = 200
"""Characters of a filter, or of what is searched for."""


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

    @classmethod
    def of(cls, values: Sequence[Any]) -> Filters:
        """Return the filters that a browser sent, cut where they are too long."""
        known = (value if isinstance(value, str) else "" for value in values)
        return cls(*(value[:LONGEST] for value in known))

    def wanted(self) -> QueueFilter:
        """Return the filter of the queue; what it does not know lets all through."""
        return QueueFilter(
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


RESERVED = "reserved"
"""A status beside those of `ReviewStatus`."""


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

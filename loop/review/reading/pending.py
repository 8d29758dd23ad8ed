"""Decisions of an adjudicator that are not in a reference version yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.ledger import Actor
from loop.core.records import Mark
from loop.review.reading.adjudication import DECIDABLE
from loop.review.reading.assignment import Assignment, utc_now
from loop.review.reading.disputes import Dispute, Disputes
from loop.review.working import drop_working, keep_working, read_working
from loop.run.store import Store

Pair = tuple[str, str]
"""Case id and label id."""

MOST = 500
"""Decisions that may wait; each version should be one sitting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What one adjudicator has decided and not saved."""

    decisions: Mapping[Pair, Mark] = field(default_factory=dict)
    over: Mapping[Pair, str] = field(default_factory=dict)
    """What a panel had decided on the pair when it was decided here; empty: nothing."""

    why: str = ""
    """The reason, as far as it is written; kept apart with `keep_reason`."""

    def of(self, dispute: Dispute) -> Mark | None:
        """Return what was decided on `dispute`; None: nothing."""
        return self.decisions.get((dispute.case_id, dispute.label))

    def overtaken(self, dispute: Dispute) -> bool:
        """Whether somebody else has decided on `dispute` since, and otherwise."""
        pair = dispute.case_id, dispute.label
        if pair not in self.decisions or dispute.mark is self.decisions[pair]:
            return False
        return self.over[pair] != _decided(dispute)


def read_pending(
    store: Store, actor: Actor, assignment: Assignment, disputes: Disputes
) -> Pending:
    """Return what `actor` has decided on `disputes` and not saved.

    Decisions on pairs that are no longer in dispute are left out.

    Raises
    ------
    StoreError
        Something other than ranloop changed it.
    """
    kept = read_working(store, actor, _subject(assignment))
    written = read_working(store, actor, _reason_subject(assignment))
    why = str(written.payload.get("why", "")) if written else ""
    if kept is None:
        return Pending(why=why)
    known = {(row.case_id, row.label) for row in disputes.rows}
    try:
        rows = [(tuple(row[:2]), Mark(row[2]), str(row[3])) for row in _rows(kept)]
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise StoreError(
            f"decisions that {actor.name} began cannot be read; something other than "
            "ranloop changed them. Drop them and decide again."
        ) from error
    return Pending(
        decisions={pair: mark for pair, mark, _ in rows if pair in known},
        over={pair: was for pair, _, was in rows if pair in known},
        why=why,
    )


def decide(pending: Pending, dispute: Dispute, mark: Mark | None) -> Pending:
    """Return `pending` with a decision on one dispute; None takes it back.

    Raises
    ------
    DataError
        Too many wait, or nobody can decide on that mark.
    """
    pair = dispute.case_id, dispute.label
    decisions, over = dict(pending.decisions), dict(pending.over)
    decisions.pop(pair, None)
    over.pop(pair, None)
    if mark is not None:
        if mark not in DECIDABLE:
            raise DataError(f"nobody can decide on {mark.value!r}. Choose another.")
        if len(decisions) >= MOST:
            raise DataError(
                f"{MOST} decisions wait to be saved. Save them first, then go on."
            )
        decisions[pair], over[pair] = mark, _decided(dispute)
    return replace(pending, decisions=decisions, over=over)


def keep_pending(
    store: Store,
    actor: Actor,
    assignment: Assignment,
    pending: Pending,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Keep the decisions that are not saved, for after a reload or a crash.

    Raises
    ------
    StoreError
        The store cannot be written; what was kept before is unchanged.
    """
    rows = [
        [*pair, mark.value, pending.over[pair]]
        for pair, mark in pending.decisions.items()
    ]
    keep_working(store, actor, _subject(assignment), {"decisions": rows}, now)


def keep_reason(
    store: Store,
    actor: Actor,
    assignment: Assignment,
    why: str,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Keep the reason as far as it is written, while decisions go on beside it.

    Raises
    ------
    DataError
        It is too long to be kept.
    StoreError
        The store cannot be written; what was kept before is unchanged.
    """
    keep_working(store, actor, _reason_subject(assignment), {"why": why}, now)


def drop_pending(store: Store, actor: Actor, assignment: Assignment) -> None:
    """Forget decisions that were saved, or shall not be.

    Raises
    ------
    StoreError
        The store cannot be written.
    """
    drop_working(store, actor, _subject(assignment))
    drop_working(store, actor, _reason_subject(assignment))


def require_current(pending: Pending, disputes: Disputes) -> None:
    """Refuse to save over what somebody else decided meanwhile.

    Raises
    ------
    ConflictError
        There is such a decision; says on how many disputes.
    """
    overtaken = sum(pending.overtaken(row) for row in disputes.rows)
    if overtaken:
        raise ConflictError(
            f"{overtaken} of these disputes were decided otherwise by somebody else "
            "since you decided on them; nothing was saved. They are marked: look at "
            "each, decide again or take your decision back, and save."
        )


def _decided(dispute: Dispute) -> str:
    return dispute.mark.value if dispute.decided else ""


def _rows(kept: Any) -> list[Any]:
    rows: list[Any] = kept.payload["decisions"]
    return rows


def _subject(assignment: Assignment) -> str:
    return f"adjudicate:{assignment.key}"


def _reason_subject(assignment: Assignment) -> str:
    return f"adjudicate-why:{assignment.key}"

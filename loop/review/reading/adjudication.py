"""Decisions over disputed votes: a new reference version, recorded with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, DataError, StoreError
from loop.core.files import locked
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.core.safe_text import quoted
from loop.labels.ballots import votes_lock
from loop.labels.cohort import CohortRecord, read_record
from loop.labels.majority import (
    Decisions,
    decide_marks,
    decision_facts,
    newest_rule,
    recorded_decisions,
)
from loop.labels.reference import (
    commit_version,
    format_reference,
    read_reference,
    version_lock,
)
from loop.review.reading.assignment import PSEUDONYM, Assignment, pseudonym_of
from loop.review.reading.disputes import Dispute, Disputes, read_disputes
from loop.review.working import drop_working, keep_working, read_working
from loop.run.store import Store

DECIDABLE = (Mark.PRESENT, Mark.ABSENT, Mark.UNCERTAIN, Mark.NO_MAJORITY)
"""Marks a panel can decide on; `NO_MAJORITY` leaves the pair out of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudicated:
    """What became of decisions."""

    cohort: str
    reference: int
    """Number of the version that holds them."""

    decided: int
    """Decisions that are new, also where they confirm the majority."""

    changed: int
    """Marks that differ from the version before, "No Finding" included."""

    own: int
    """Decisions on pairs that the adjudicator had voted on; allowed, and recorded."""

    open: int
    """Disputes that nobody has decided yet."""


def adjudicate(
    workspace: WorkspacePaths,
    assignment: Assignment,
    decisions: Decisions,
    *,
    actor: Actor,
    why: str,
) -> Adjudicated:
    """Put a panel's decisions over disputed votes into a new reference version.

    "No Finding" of these cases follows anew from their labels, unless the readers
    labelled it: then it is decided on like any other. The same decisions once
    more change nothing. Votes that come in later leave a decision alone unless they
    change a vote that it was made over; see `loop.labels.majority`.

    Parameters
    ----------
    decisions
        ``(case id, label id)`` to present, absent, uncertain or no_majority.
    why
        Reason, for the ledger: how the panel came to it.

    Raises
    ------
    DataError
        There is no reason, or a pair is not in dispute; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    if not why.strip():
        raise DataError(
            "an adjudication needs a reason: the ledger records it. Say how the "
            "decisions were reached, with --why."
        )
    name = assignment.cohort.name
    with locked(votes_lock(workspace, name)), locked(version_lock(workspace, name)):
        disputes = read_disputes(workspace, assignment)
        known = {(row.case_id, row.label): row for row in disputes.rows}
        _check(decisions, known, name)
        new = {p: m for p, m in decisions.items() if not _stands(known[p], m)}
        own = _count_own(workspace, [known[pair] for pair in new], actor)
        made = _Made(disputes.reference, 0)
        if new:
            made = _write(workspace, assignment, new, own, actor=actor, why=why.strip())
    return Adjudicated(
        cohort=name,
        reference=made.number,
        decided=len(new),
        changed=made.changed,
        own=own,
        open=disputes.open - sum(not known[pair].decided for pair in new),
    )


class _Made(NamedTuple):
    number: int
    changed: int


def _check(
    decisions: Decisions, known: Mapping[tuple[str, str], Dispute], cohort_name: str
) -> None:
    """Refuse marks that nobody can decide on, and pairs without a dispute."""
    for (case_id, label), mark in decisions.items():
        if mark not in DECIDABLE:
            raise ValueError(f"a panel cannot decide on {mark!r}")
        if (case_id, label) not in known:
            raise DataError(
                f"cohort {cohort_name!r} has no dispute over {quoted(label)} of case "
                f"{quoted(case_id)}. See `ranloop reading disputes {cohort_name}`; a "
                "mark that all readers agree on is corrected with a verdict "
                "reference_wrong."
            )


def _stands(dispute: Dispute, mark: Mark) -> bool:
    return dispute.decided and dispute.mark is mark


def _count_own(workspace: WorkspacePaths, rows: Sequence[Dispute], actor: Actor) -> int:
    """Count the pairs on which `actor` has voted, under the name or its pseudonym."""
    voters = {ballot.reader for row in rows for ballot in row.ballots}
    names = {name for name in voters if name.casefold() == actor.name.casefold()}
    if any(name.startswith(PSEUDONYM) for name in voters):
        names.add(pseudonym_of(workspace, actor.name))
    return sum(any(one.reader in names for one in row.ballots) for row in rows)


def _write(
    workspace: WorkspacePaths,
    assignment: Assignment,
    decisions: Decisions,
    own: int,
    *,
    actor: Actor,
    why: str,
) -> _Made:
    """Write the version with `decisions`, or record the newest once more with them."""
    record = read_record(workspace, assignment.cohort.name)
    reference = read_reference(workspace, assignment.cohort.name)
    before = recorded_decisions(record)
    named = (reference.case_ids, reference.labels)
    every = {pair: m for pair, m in before.items() if reference.mark(*pair) is m}
    every |= decisions
    marks = decide_marks(
        named,
        reference.marks,
        every,
        assignment.taxonomy,
        no_finding_read=newest_rule(record).no_finding_read,
    )
    changed = int((marks != reference.marks).sum())
    facts: dict[str, Any] = {"own_votes": own}
    if changed:
        facts |= {"corrects": reference.number, "corrected": changed}
        facts["adjudicated"] = decision_facts(decisions)
    else:
        facts = {**_kept_facts(record, reference.number), **facts}
        facts["adjudicated"] = decision_facts(every)
    number = reference.number + bool(changed)
    raw = format_reference(*named, marks)
    commit_version(
        workspace,
        assignment.cohort,
        number,
        raw,
        actor=actor,
        reason=why,
        facts=facts,
    )
    return _Made(number, changed)


def _kept_facts(record: CohortRecord, number: int) -> dict[str, Any]:
    """Return what was recorded of a version beside its name, to be recorded again."""
    own = ("cohort", "cohort_digest", "number", "digest")
    known = record.references.get(number, {})
    return {name: value for name, value in known.items() if name not in own}


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
    now: Clock = utc_now,
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
    now: Clock = utc_now,
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

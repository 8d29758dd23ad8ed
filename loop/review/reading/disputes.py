"""Disputes: pairs of case and label on which the readers did not agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import framed
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, Value, ValueCode
from loop.labels.ballots import VOTE_CODES, Votes, read_cohort_votes
from loop.labels.cohort import Cohort, read_record
from loop.labels.majority import (
    Decisions,
    MajorityRule,
    find_disputed,
    majority,
    newest_rule,
    recorded_decisions,
)
from loop.labels.reference import MARKS, Marks, Reference, read_reference
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.review.reading.assignment import Assignment

_VALUES = {code: value for value, code in VOTE_CODES.items()}


class Ballot(NamedTuple):
    """What one reader said."""

    reader: str
    """Name, or a letter that holds for one case only."""

    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """One case and label that the readers did not agree on."""

    case_id: str
    label: str
    """Label id."""

    counts: Mapping[Value, int]
    """Votes for each value, zeros included."""

    not_voted: int
    """Readers of the cohort without a vote on it."""

    ballots: tuple[Ballot, ...]
    """In the order of the readers' names or letters."""

    votes_say: Mark
    """What the majority makes of it; `NO_MAJORITY` without one."""

    mark: Mark
    """What the newest reference version says."""

    decided: bool
    """Whether a panel decided it over these votes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputes:
    """Everything the readers of a cohort did not agree on."""

    cohort: str
    reference: int
    """Newest reference version."""

    readers: int
    rule: MajorityRule
    """What makes a mark, as recorded with the votes."""

    pairs: int
    """Pairs of case and label with a vote."""

    rows: tuple[Dispute, ...]
    """Open before decided, no majority before a split majority, then by how few more
    votes the leading value has, then in the order of the cohort."""

    @property
    def open(self) -> int:
        """Disputes that no panel has decided."""
        return sum(not row.decided for row in self.rows)


def read_disputes(
    workspace: WorkspacePaths, assignment: Assignment, *, anonymous: bool = False
) -> Disputes:
    """Return the disputes of a cohort's readers.

    Parameters
    ----------
    anonymous
        Name readers by letters, drawn anew for every case, so that nobody can be
        followed from case to case. The same letter is the same reader in all labels
        of one case.

    Raises
    ------
    DataError
        The cohort has no votes, or votes or reference are not those recorded.
    LedgerError
        The ledger is broken.
    """
    cohort = assignment.cohort
    votes = read_cohort_votes(workspace, cohort, assignment.taxonomy)
    record = read_record(workspace, cohort.name)
    rule = newest_rule(record)
    reference = read_reference(workspace, cohort.name)
    rows = find_disputes(
        votes,
        reference,
        assignment.taxonomy,
        rule=rule,
        decisions=recorded_decisions(record),
    )
    if anonymous:
        rows = tuple(_without_names(row, votes, cohort) for row in rows)
    return Disputes(
        cohort=cohort.name,
        reference=reference.number,
        readers=len(votes.readers),
        rule=rule,
        pairs=int((votes.values != ValueCode.NOT_VOTED).any(axis=2).sum()),
        rows=rows,
    )


def find_disputes(
    votes: Votes,
    reference: Reference,
    taxonomy: Taxonomy,
    *,
    rule: MajorityRule | None = None,
    decisions: Decisions | None = None,
) -> tuple[Dispute, ...]:
    """Return every pair without a majority or with different votes; see `Disputes`.

    "No Finding" is left out where the votes on it follow from the other labels, unless
    the rule says that readers labelled it.

    Parameters
    ----------
    reference
        The newest version.
    rule
        What makes a mark; None: over half of those who voted.
    decisions
        What a panel decided over these votes.

    Raises
    ------
    DataError
        Nobody can reach the rule's need.
    """
    marks = majority(votes, rule)
    disputed = find_disputed(votes, marks)
    if NO_FINDING in votes.labels and not (rule and rule.no_finding_read):
        disputed[_follows(votes, taxonomy), votes.labels.index(NO_FINDING)] = False
    known = decisions or {}
    found = [
        (_dispute((row, column), votes, marks, reference, known), row, column)
        for row, column in np.argwhere(disputed).tolist()
    ]
    found.sort(key=lambda one: (*_rank(one[0]), *one[1:]))
    return tuple(dispute for dispute, _, _ in found)


def _dispute(
    at: tuple[int, int],
    votes: Votes,
    marks: Marks,
    reference: Reference,
    decisions: Decisions,
) -> Dispute:
    case_id, label = votes.case_ids[at[0]], votes.labels[at[1]]
    codes = votes.values[at].tolist()
    mark = reference.mark(case_id, label)
    return Dispute(
        case_id=case_id,
        label=label,
        counts={value: codes.count(code) for value, code in VOTE_CODES.items()},
        not_voted=codes.count(ValueCode.NOT_VOTED),
        ballots=tuple(
            Ballot(reader, _VALUES[code])
            for reader, code in zip(votes.readers, codes, strict=True)
            if code != ValueCode.NOT_VOTED
        ),
        votes_say=MARKS[int(marks[at])],
        mark=mark,
        decided=decisions.get((case_id, label)) is mark,
    )


def _rank(dispute: Dispute) -> tuple[bool, bool, int]:
    first, second, *_ = sorted(dispute.counts.values(), reverse=True)
    settled = dispute.votes_say is not Mark.NO_MAJORITY
    return dispute.decided, settled, first - second


def _follows(votes: Votes, taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """Return the cases in which every vote on "No Finding" follows from the others."""
    own = votes.values[:, votes.labels.index(NO_FINDING), :]
    follows = np.ones(len(votes.case_ids), dtype=bool)
    for row, layer in np.argwhere(own != ValueCode.NOT_VOTED).tolist():
        said = votes.values[row, :, layer].tolist()
        values = {
            label: _VALUES[code]
            for label, code in zip(votes.labels, said, strict=True)
            if code != ValueCode.NOT_VOTED
        }
        if taxonomy.derive_no_finding(values) is not values[NO_FINDING]:
            follows[row] = False
    return follows


def reader_letters(
    cohort: Cohort, readers: Iterable[str], case_id: str
) -> dict[str, str]:
    """Return reader to the letter that stands for them in one case, and only there."""

    def draw(reader: str) -> bytes:
        return hashlib.sha256(framed([cohort.digest, case_id, reader])).digest()

    order = sorted(readers, key=draw)
    return {reader: _letter(at) for at, reader in enumerate(order)}


def _without_names(dispute: Dispute, votes: Votes, cohort: Cohort) -> Dispute:
    letters = reader_letters(cohort, votes.readers, dispute.case_id)
    ballots = sorted(Ballot(letters[one.reader], one.value) for one in dispute.ballots)
    return replace(dispute, ballots=tuple(ballots))


def _letter(at: int) -> str:
    """Return A to Z, then A1 and on."""
    round_, letter = divmod(at, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(round_) if round_ else "")

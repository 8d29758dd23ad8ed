"""Decisions of a panel over disputed votes, and how long they stand.

The ledger entry of a reference version holds them (``adjudicated``). When votes come
in later, a decision stands if no vote that it was made over was changed and the pair is
still in dispute; otherwise the votes decide, and the decision is listed as lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, LedgerError
from loop.core.paths import Workspace
from loop.core.records import Mark, Value, ValueCode
from loop.labels.ballots import VOTE_CODES, Votes
from loop.labels.cohort import CohortRecord, read_record
from loop.labels.reference import CODES, MARKS, Marks, read_reference
from loop.labels.taxonomy import NO_FINDING, Taxonomy

Decisions = Mapping[tuple[str, str], Mark]
"""``(case id, label id)`` to the mark that a panel decided on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudications:
    """What became of earlier decisions when votes came in."""

    kept: int = 0
    """Decisions that stand in the new version."""

    lost: tuple[tuple[str, str], ...] = ()
    """``(case id, label id)`` that the votes decide again."""


class AdjudicatedMarks(NamedTuple):
    """Marks with the earlier decisions that still stand."""

    marks: Marks
    decisions: Decisions
    outcome: Adjudications


def recorded_decisions(record: CohortRecord) -> dict[tuple[str, str], Mark]:
    """Return what was decided over the votes that count now; the last one on a pair."""
    found: dict[tuple[str, str], Mark] = {}
    for payload in record.references.values():
        if "votes" in payload:
            found = {}
        for case_id, label, mark in payload.get("adjudicated", ()):
            found[case_id, label] = Mark(mark)
    return found


def decision_facts(decisions: Decisions) -> list[list[str]]:
    """Return `decisions` as the ledger holds them, sorted."""
    return sorted(
        [case, label, mark.value] for (case, label), mark in decisions.items()
    )


def find_disputed(votes: Votes, marks: Marks) -> NDArray[np.bool_]:
    """Return where readers are in dispute, shape ``(n_cases, n_labels)``.

    There is no majority, or not all who voted said the same. `marks` are what the
    votes alone say.
    """
    said = np.stack([(votes.values == c).any(axis=2) for c in VOTE_CODES.values()])
    disputed: NDArray[np.bool_] = (marks == ValueCode.NO_MAJORITY) | (
        said.sum(axis=0) > 1
    )
    return disputed


def decide_marks(
    names: tuple[Sequence[str], Sequence[str]],
    marks: Marks,
    decisions: Decisions,
    taxonomy: Taxonomy,
) -> Marks:
    """Return `marks` with `decisions` in place.

    "No Finding" of a case that was decided on follows from its other labels, unless it
    was decided itself or one of them is open.

    Parameters
    ----------
    names
        Case ids and label ids, for the rows and columns of `marks`.
    """
    rows, columns = ({name: at for at, name in enumerate(each)} for each in names)
    made = marks.copy()
    for (case_id, label), mark in decisions.items():
        made[rows[case_id], columns[label]] = CODES[mark]
    if NO_FINDING in columns:
        for case_id in {case for case, _ in decisions}:
            if (case_id, NO_FINDING) not in decisions:
                row = made[rows[case_id]]
                row[columns[NO_FINDING]] = _derive(row, names[1], taxonomy)
    return made


def keep_decisions(
    workspace: Workspace,
    before: Votes | None,
    after: Votes,
    marks: Marks,
    taxonomy: Taxonomy,
    cohort_name: str,
) -> AdjudicatedMarks:
    """Return `marks` of new votes with the decisions over the votes before that stand.

    Parameters
    ----------
    before
        The votes before, None when they cannot be believed.
    after
        The new votes.
    marks
        What the new votes alone say.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    recorded = recorded_decisions(read_record(workspace, cohort_name))
    in_force = _in_force(workspace, cohort_name, recorded)
    disputed = find_disputed(after, marks)
    standing = {
        pair: mark
        for pair, mark in in_force.items()
        if before is not None and _untouched(before, after, disputed, pair)
    }
    named = (after.case_ids, after.labels)
    return AdjudicatedMarks(
        decide_marks(named, marks, standing, taxonomy) if standing else marks,
        standing,
        Adjudications(
            kept=len(standing),
            lost=tuple(pair for pair in in_force if pair not in standing),
        ),
    )


def _in_force(
    workspace: Workspace, cohort_name: str, recorded: Decisions
) -> dict[tuple[str, str], Mark]:
    """Return the decisions that the newest version still shows.

    A verdict may have corrected one since. With a version that was edited or is gone
    nobody can tell, and all of them count.
    """
    if not recorded:
        return {}
    try:
        reference = read_reference(workspace, cohort_name)
        return {
            pair: mark
            for pair, mark in recorded.items()
            if reference.mark(*pair) is mark
        }
    except LedgerError:
        raise
    except DataError:
        return dict(recorded)


def _untouched(
    before: Votes, after: Votes, disputed: NDArray[np.bool_], pair: tuple[str, str]
) -> bool:
    """Whether every earlier vote on `pair` is as it was, and it is still in dispute."""
    case_id, label = pair
    if label not in after.labels:
        return False
    at = after.case_ids.index(case_id), after.labels.index(label)
    old, new = _ballots(before, case_id, label), _ballots(after, case_id, label)
    return bool(disputed[at]) and old.items() <= new.items()


def _ballots(votes: Votes, case_id: str, label: str) -> dict[str, int]:
    """Return reader to code of everyone who voted on one pair."""
    if label not in votes.labels:
        return {}
    cell = votes.values[votes.case_ids.index(case_id), votes.labels.index(label)]
    said = zip(votes.readers, cell.tolist(), strict=True)
    return {reader: code for reader, code in said if code != ValueCode.NOT_VOTED}


def _derive(row: NDArray[np.int8], labels: Sequence[str], taxonomy: Taxonomy) -> int:
    """Return the code of "No Finding" that follows from a row, or the one it has."""
    marks = {label: MARKS[int(code)] for label, code in zip(labels, row, strict=True)}
    said = tuple(Value)
    values = {name: Value(m.value) for name, m in marks.items() if m.value in said}
    derived = taxonomy.derive_no_finding(values)
    return CODES[marks[NO_FINDING] if derived is None else Mark(derived.value)]

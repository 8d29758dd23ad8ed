"""The cohort a visitor looks at, with what is dear to read, read once for everyone."""

from __future__ import annotations

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.labels.ballots import Turnout, Votes, read_cohort_votes, read_turnout
from loop.labels.cohort import CohortRole, check_name, read_record
from loop.review.reading.assignment import (
    Assignment,
    ReadingCacheKey,
    read_assignment,
    read_basis,
)
from loop.review.reading.disputes import Disputes, read_disputes
from loop.ui.desk import Desk
from loop.ui.wiring import Visit


def open_assignment(visit: Visit, cohort: str | None) -> Assignment:
    """Return what the readers of `cohort` are asked.

    Raises
    ------
    DataError
        There is no such cohort, or it is a holdout that this visitor may not look at.
    """
    if not cohort:
        raise DataError(
            "no cohort is chosen. Choose one at the top; without any, add one under "
            "Files."
        )
    desk = visit.desk
    record = read_record(desk.workspace, check_name(cohort))
    path = desk.workspace.labels / "taxonomy.yaml"
    taxonomy = digest_bytes(path.read_bytes()) if path.is_file() else ""
    key = ("assignment", cohort, record.added.get("cohort_digest"), taxonomy)
    assignment: Assignment = desk.memo.get(
        key, lambda: read_assignment(desk.workspace, cohort)
    )
    if assignment.cohort.role is CohortRole.HOLDOUT and not visit.user.may(Right.READ):
        raise DataError(
            f"cohort {cohort!r} is a holdout: only whoever reads it blind may open it. "
            "Choose another cohort."
        )
    return assignment


def open_disputes(desk: Desk, assignment: Assignment, *, anonymous: bool) -> Disputes:
    """Return what the readers of a cohort do not agree on.

    Raises
    ------
    DataError
        There are no votes, or they are not those recorded.
    """
    basis = read_basis(desk.workspace, assignment)
    disputes: Disputes = desk.memo.get(
        ("disputes", basis, anonymous),
        lambda: read_disputes(desk.workspace, assignment, anonymous=anonymous),
    )
    return disputes


def open_turnout(
    desk: Desk, assignment: Assignment, basis: ReadingCacheKey
) -> Turnout | None:
    """Return who voted on which case of a cohort, also of a holdout; None: nobody has.

    Raises
    ------
    DataError
        The votes are not those recorded.
    """
    turnout: Turnout | None = desk.memo.get(
        ("turnout", basis.cohort, basis.taxonomy, basis.recorded),
        lambda: read_turnout(desk.workspace, assignment.cohort),
    )
    return turnout


def open_votes(
    desk: Desk, assignment: Assignment, basis: ReadingCacheKey
) -> Votes | None:
    """Return the votes of a cohort's readers; None when nobody has voted.

    Raises
    ------
    DataError
        They are not those recorded, or are of a holdout, and sealed.
    """
    if read_record(desk.workspace, assignment.cohort.name).votes is None:
        return None
    votes: Votes = desk.memo.get(
        ("votes", basis.cohort, basis.taxonomy, basis.recorded),
        lambda: read_cohort_votes(
            desk.workspace, assignment.cohort, assignment.taxonomy
        ),
    )
    return votes

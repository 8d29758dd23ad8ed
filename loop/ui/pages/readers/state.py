"""The cohort that a visitor looks at; what takes long to read is read once for all."""

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
from loop.ui.context import AppContext
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
    context = visit.context
    record = read_record(context.workspace, check_name(cohort))
    path = context.workspace.labels / "taxonomy.yaml"
    taxonomy = digest_bytes(path.read_bytes()) if path.is_file() else ""
    path = context.workspace.protocol
    protocol = digest_bytes(path.read_bytes()) if path.is_file() else ""
    added = record.added.get("cohort_digest")
    key = ("assignment", cohort, added, taxonomy, protocol)
    assignment: Assignment = context.cache.get(
        key, lambda: read_assignment(context.workspace, cohort)
    )
    if assignment.cohort.role is CohortRole.HOLDOUT and not visit.user.may(Right.READ):
        raise DataError(
            f"cohort {cohort!r} is a holdout: only whoever reads it blind may open it. "
            "Choose another cohort."
        )
    return assignment


def open_disputes(
    context: AppContext, assignment: Assignment, *, anonymous: bool
) -> Disputes:
    """Return what the readers of a cohort do not agree on.

    Raises
    ------
    DataError
        There are no votes, or they are not those recorded.
    """
    basis = read_basis(context.workspace, assignment)
    disputes: Disputes = context.cache.get(
        ("disputes", basis, anonymous),
        lambda: read_disputes(context.workspace, assignment, anonymous=anonymous),
    )
    return disputes


def open_turnout(
    context: AppContext, assignment: Assignment, basis: ReadingCacheKey
) -> Turnout | None:
    """Return who voted on which case of a cohort, also of a holdout; None: nobody has.

    Raises
    ------
    DataError
        The votes are not those recorded.
    """
    turnout: Turnout | None = context.cache.get(
        ("turnout", basis.cohort, basis.taxonomy, basis.recorded),
        lambda: read_turnout(context.workspace, assignment.cohort),
    )
    return turnout


def open_votes(
    context: AppContext, assignment: Assignment, basis: ReadingCacheKey
) -> Votes | None:
    """Return the votes of a cohort's readers; None when nobody has voted.

    Raises
    ------
    DataError
        They are not those recorded, or are of a holdout, and sealed.
    """
    if read_record(context.workspace, assignment.cohort.name).votes is None:
        return None
    votes: Votes = context.cache.get(
        ("votes", basis.cohort, basis.taxonomy, basis.recorded),
        lambda: read_cohort_votes(
            context.workspace, assignment.cohort, assignment.taxonomy
        ),
    )
    return votes

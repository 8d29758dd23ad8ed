"""What publishing the readings of a cohort would do, before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loop.core.paths import Workspace
from loop.labels.ballots import Turnout
from loop.review.reading.assignment import Assignment
from loop.review.reading.progress import ReadingProgress, complete_cases
from loop.review.reading.publication import PSEUDONYM, pseudonym_of
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What would become of one reader's readings, in cases."""

    reader: str
    complete: int
    """Cases that would be published."""

    begun: int
    """Cases left out because a label has no value yet."""

    given: int
    """Cases to read: those of the reader's plan, or of the cohort."""

    given_complete: int
    """Of these: complete."""

    shared: int | None
    """Of the cases given: those of another reader as well; None without a plan."""

    blind: bool
    """False: some answers came after this person's first verdict on the cohort."""

    new: int
    """Of the complete ones: cases without a vote of this reader so far."""

    again: int
    """Of the complete ones: cases whose earlier votes would be replaced."""

    lost: int
    """Cases with a vote of this reader that are not complete: their votes would be
    lost, which publishing refuses unless it is allowed to."""

    last: str
    """When the reader answered last; UTC, ISO 8601."""


def foresee_publication(
    workspace: Workspace,
    store: Store,
    assignment: Assignment,
    progress: ReadingProgress,
    turnout: Turnout | None,
) -> tuple[Foreseen, ...]:
    """Return what publishing each reader's readings would do, by name.

    Parameters
    ----------
    progress
        How far the readers of the cohort are now.
    turnout
        Who has voted on what; None when nobody has.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    StoreError
        The store cannot be read.
    """
    found = []
    for one in progress.readers:
        voted = voted_cases(workspace, turnout, one.reader)
        complete = complete_cases(store, assignment, one.reader)
        found.append(
            Foreseen(
                reader=one.reader,
                complete=one.complete,
                begun=one.begun,
                given=one.given,
                given_complete=one.given_complete,
                shared=one.shared,
                blind=one.blind,
                new=len(complete - voted),
                again=len(complete & voted),
                lost=len(voted - complete),
                last=one.last,
            )
        )
    return tuple(found)


def voted_cases(
    workspace: Workspace, turnout: Turnout | None, reader: str
) -> frozenset[str]:
    """Return the cases that `reader` has a vote on, under the name or the pseudonym.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    """
    if turnout is None:
        return frozenset()
    names = voting_names(workspace, turnout.readers, reader)
    voted = turnout.voted[:, [turnout.readers.index(name) for name in names]]
    return frozenset(
        case
        for case, row in zip(turnout.case_ids, voted.tolist(), strict=True)
        if any(row)
    )


def voting_names(
    workspace: Workspace, readers: Sequence[str], reader: str
) -> tuple[str, ...]:
    """Return under which of the names that voted `reader` did: name or pseudonym.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    """
    names = {reader}
    if any(name.startswith(PSEUDONYM) for name in readers):
        names.add(pseudonym_of(workspace, reader))
    return tuple(name for name in readers if name in names)

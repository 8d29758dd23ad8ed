"""What publishing the readings of a cohort would do, before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loop.core.paths import Workspace
from loop.labels.ballots import Turnout
from loop.review.reading.assignment import Assignment
from loop.review.reading.progress import Progress, State, list_places
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
    progress: Progress,
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
        places = list_places(store, assignment, one.reader)
        complete = {p.case_id for p in places if p.state is State.COMPLETE}
        found.append(
            Foreseen(
                reader=one.reader,
                complete=one.complete,
                begun=one.begun,
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
    voted = turnout.voted[:, _layers(workspace, turnout.readers, reader)]
    return frozenset(
        case
        for case, row in zip(turnout.case_ids, voted.tolist(), strict=True)
        if any(row)
    )


def _layers(workspace: Workspace, readers: Sequence[str], reader: str) -> list[int]:
    names = {reader}
    if any(name.startswith(PSEUDONYM) for name in readers):
        names.add(pseudonym_of(workspace, reader))
    return [at for at, name in enumerate(readers) if name in names]

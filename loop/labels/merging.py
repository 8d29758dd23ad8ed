"""Votes that are added to votes: reader by reader, and nothing is lost unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.labels.ballots import NOT_VOTED, Votes
from loop.labels.taxonomy import Taxonomy

SHOWN = 5
"""Readers named in a message."""


class Replaced(NamedTuple):
    """What new votes of a reader took the place of."""

    reader: str
    votes: int
    """Votes that were kept of this reader before."""

    lost: int
    """Of these: on a case and label without a new vote of this reader."""

    labels: tuple[str, ...]
    """Labels that this reader had voted on and no longer has."""


class MergedVotes(NamedTuple):
    """All votes of a cohort after some were added."""

    votes: Votes
    replaced: tuple[Replaced, ...]
    """By reader; empty when nobody had voted before."""


def merge_votes(
    kept: Votes | None,
    new: Votes,
    taxonomy: Taxonomy,
    *,
    replace: bool = False,
    sealed: bool = False,
) -> MergedVotes:
    """Return the votes of `new` and those of all other readers in `kept`.

    The same votes of the same reader once more change nothing.

    Parameters
    ----------
    kept
        Votes of the same cohort, or None without any.
    replace
        Let the new votes of a reader take the place of all that were kept of them.
    sealed
        Never tell the same votes from others: a guess would be told right or wrong.

    Raises
    ------
    DataError
        A reader has other votes in `kept`, or any where these are sealed, and
        `replace` is not set.
    """
    if kept is None:
        return MergedVotes(new, ())
    # A replaced reader may have been the only one to vote on a label.
    labels = tuple(n for n in taxonomy.ids if n in {*kept.labels, *new.labels})
    old, young = _spread(kept, labels), _spread(new, labels)
    again = [r for r in new.readers if r in kept.readers]
    changed = [r for r in again if sealed or (_of(old, r) != _of(young, r)).any()]
    if changed and not replace:
        raise DataError(_already_voted(changed, sealed=sealed))
    others = [r for r in kept.readers if r not in new.readers]
    readers = tuple(sorted((*others, *new.readers)))
    source = [young if r in new.readers else old for r in readers]
    layers = [_of(votes, r) for votes, r in zip(source, readers, strict=True)]
    merged = Votes(
        readers=readers,
        case_ids=kept.case_ids,
        labels=labels,
        values=np.stack(layers, axis=2),
    )
    replaced = tuple(_compare(old, young, reader) for reader in changed)
    return MergedVotes(_without_empty_labels(merged), replaced)


def _already_voted(readers: Sequence[str], *, sealed: bool) -> str:
    names = ", ".join(repr(name[:40]) for name in readers[:SHOWN])
    more = " and others" if len(readers) > SHOWN else ""
    how = "" if sealed else ", and otherwise than in this file"
    return (
        f"{names}{more} already voted{how}. Leave these "
        "readers out of the file (the votes of all others are kept as they are), or "
        "give all their votes and replace the earlier ones with --replace."
    )


def _spread(votes: Votes, labels: tuple[str, ...]) -> Votes:
    """Return `votes` with a column for every one of `labels`."""
    shape = (len(votes.case_ids), len(labels), len(votes.readers))
    values = np.full(shape, NOT_VOTED, dtype=np.int8)
    values[:, [labels.index(name) for name in votes.labels], :] = votes.values
    return Votes(
        readers=votes.readers, case_ids=votes.case_ids, labels=labels, values=values
    )


def _of(votes: Votes, reader: str) -> NDArray[np.int8]:
    """Return the votes of one reader, ``(n_cases, n_labels)``."""
    return votes.values[:, :, votes.readers.index(reader)]


def _compare(old: Votes, young: Votes, reader: str) -> Replaced:
    before, after = (_of(votes, reader) != NOT_VOTED for votes in (old, young))
    gone = before.any(axis=0) & ~after.any(axis=0)
    return Replaced(
        reader,
        int(before.sum()),
        int((before & ~after).sum()),
        tuple(name for name, lost in zip(old.labels, gone, strict=True) if lost),
    )


def _without_empty_labels(votes: Votes) -> Votes:
    voted = (votes.values != NOT_VOTED).any(axis=(0, 2))
    return Votes(
        readers=votes.readers,
        case_ids=votes.case_ids,
        labels=tuple(n for n, kept in zip(votes.labels, voted, strict=True) if kept),
        values=votes.values[:, voted, :],
    )

"""The majority of readers' votes, which becomes the reference."""

from __future__ import annotations

import numpy as np

from loop.core.errors import DataError
from loop.core.records import Value
from loop.labels.ballots import VOTE_CODES, Votes
from loop.labels.marks import ABSENT, MISSING, NO_MAJORITY, PRESENT, UNCERTAIN, Marks


def majority(votes: Votes, *, need: int | None = None) -> Marks:
    """Return the reference marks that at least `need` readers agree on.

    Parameters
    ----------
    votes
        All votes; ``n`` below is the number of readers.
    need
        Equal votes wanted; default ``n // 2 + 1``, which is 4 of 6.

    Returns
    -------
    Marks
        Shape ``(n_cases, n_labels)``. A tie or a scattered vote is `NO_MAJORITY`, a
        majority of uncertain votes `UNCERTAIN`, a pair nobody voted on `MISSING`:
        none of them ever becomes absent.

    Raises
    ------
    DataError
        Two values could both reach `need`, or nobody can.
    """
    need = check_need(votes, need)
    said = {c: (votes.values == c).sum(axis=2) for c in VOTE_CODES.values()}
    marks = np.full(votes.values.shape[:2], NO_MAJORITY, dtype=np.int8)
    marks[sum(said.values()) == 0] = MISSING
    for value, code in ((Value.PRESENT, PRESENT), (Value.ABSENT, ABSENT)):
        marks[said[VOTE_CODES[value]] >= need] = code
    marks[said[VOTE_CODES[Value.UNCERTAIN]] >= need] = UNCERTAIN
    return marks


def check_need(votes: Votes, need: int | None) -> int:
    """Return how many equal votes are needed.

    Raises
    ------
    DataError
        Two values could both reach `need`, or nobody can.
    """
    of = len(votes.readers)
    wanted = of // 2 + 1 if need is None else need
    if not of / 2 < wanted <= of:
        raise DataError(
            f"{wanted} equal votes of {of} readers cannot make a majority. Use "
            f"{of // 2 + 1} to {of}."
        )
    return wanted

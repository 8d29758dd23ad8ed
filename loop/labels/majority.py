"""The majority of readers' votes, which becomes the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.core.records import Value
from loop.core.yaml_files import read_model
from loop.labels.ballots import NOT_VOTED, VOTE_CODES, Votes
from loop.labels.marks import ABSENT, MISSING, NO_MAJORITY, PRESENT, UNCERTAIN, Marks


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityRule:
    """What the votes on one case and label must reach to make a reference mark.

    More than half of the readers who voted on that case and label must say the same,
    so that a reader counts only where they read: with six readers of a case that is 4
    of 6, whoever reads other cases. `need` and `minimum_readers` may ask for more,
    never for less.
    """

    need: int = 1
    """Fewest equal votes; 1 asks for nothing beyond more than half."""

    minimum_readers: int = 1
    """Fewest readers who voted on the case and label, as the protocol says."""

    @property
    def words(self) -> str:
        """The rule as ledger, page and command line say it."""
        parts = ["over half of the readers who voted on the case and label"]
        if self.need > 1:
            parts.append(f"at least {self.need} equal votes")
        if self.minimum_readers > 1:
            parts.append(f"at least {self.minimum_readers} readers")
        return ", ".join(parts)

    @property
    def facts(self) -> dict[str, Any]:
        """The rule as the ledger entry of a version holds it; see `recorded_rule`."""
        facts: dict[str, Any] = {"majority": self.words}
        if self.need > 1:
            facts["need"] = self.need
        if self.minimum_readers > 1:
            facts["minimum_readers"] = self.minimum_readers
        return facts


def recorded_rule(payload: Mapping[str, Any]) -> MajorityRule:
    """Return the rule by which a recorded version was made of votes.

    Entries of earlier releases hold a count of all readers, which was over half of
    them: as the fewest equal votes it gives the same marks.
    """
    return MajorityRule(
        need=int(payload.get("need", 1)),
        minimum_readers=int(payload.get("minimum_readers", 1)),
    )


class _ReadersOfProtocol(BaseModel):
    """The part of ``labels/protocol.yaml`` that concerns readers."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    minimum_readers: Annotated[int, Field(ge=1)] = 1


def read_minimum_readers(workspace: Workspace) -> int:
    """Return the fewest readers of a mark, as the protocol says; 1 where it says none.

    Raises
    ------
    DataError
        The protocol cannot be read, or its number is none.
    """
    if not workspace.protocol.is_file():
        return 1
    return read_model(workspace.protocol, _ReadersOfProtocol).minimum_readers


def majority(votes: Votes, rule: MajorityRule | None = None) -> Marks:
    """Return the reference marks that enough of those who voted agree on.

    Parameters
    ----------
    votes
        All votes; ``n`` below is the number of votes on one case and label.
    rule
        None: ``n // 2 + 1`` equal votes, which is 4 of 6.

    Returns
    -------
    Marks
        Shape ``(n_cases, n_labels)``. A tie, a scattered vote or too few readers are
        `NO_MAJORITY`, a majority of uncertain votes `UNCERTAIN`, a pair nobody voted
        on `MISSING`: none of them ever becomes absent.

    Raises
    ------
    DataError
        The rule's `need` is not from 1 to the number of readers.
    """
    rule = rule or MajorityRule()
    _require_reachable(votes, rule)
    cast = count_cast(votes)
    said = {c: (votes.values == c).sum(axis=2) for c in VOTE_CODES.values()}
    enough = np.maximum(cast // 2 + 1, rule.need)
    marks = np.full(votes.values.shape[:2], NO_MAJORITY, dtype=np.int8)
    for value, code in (
        (Value.PRESENT, PRESENT),
        (Value.ABSENT, ABSENT),
        (Value.UNCERTAIN, UNCERTAIN),
    ):
        marks[said[VOTE_CODES[value]] >= enough] = code
    marks[cast < rule.minimum_readers] = NO_MAJORITY
    marks[cast == 0] = MISSING
    return marks


def count_cast(votes: Votes) -> NDArray[np.int64]:
    """Return how many readers voted on each pair, shape ``(n_cases, n_labels)``."""
    cast: NDArray[np.int64] = (votes.values != NOT_VOTED).sum(axis=2, dtype=np.int64)
    return cast


def _require_reachable(votes: Votes, rule: MajorityRule) -> None:
    of = len(votes.readers)
    if not 1 <= rule.need <= of:
        raise DataError(
            f"{rule.need} equal votes of {of} readers cannot make a majority. Use 1 to "
            f"{of}; 1 asks for over half of those who voted and no more."
        )

"""Readers' votes, and the majority that makes a reference standard of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.errors import DataError
from loop.core.files import locked
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.labels.adjudicated import (
    Adjudications,
    Decisions,
    decision_facts,
    keep_decisions,
)
from loop.labels.ballots import NOT_VOTED, VOTE_CODES, Votes, read_votes
from loop.labels.cohort import Cohort, Role
from loop.labels.kept_votes import (
    find_kept,
    not_as_recorded,
    read_cohort_votes,
    votes_lock,
    votes_path,
    write_votes,
)
from loop.labels.majority import check_need, majority
from loop.labels.merging import Replaced, merge_votes
from loop.labels.recorded import read_record
from loop.labels.reference import CODES, Marks
from loop.labels.superseded import Superseded, compare_with_newest
from loop.labels.taxonomy import Taxonomy

__all__ = [
    "NOT_VOTED",
    "VOTE_CODES",
    "Taking",
    "Votes",
    "VotesReport",
    "check_need",
    "import_votes",
    "majority",
    "read_cohort_votes",
    "read_votes",
    "replace_votes",
    "take_votes",
    "votes_lock",
    "votes_path",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesReport:
    """What became of a file of votes."""

    cohort: str
    readers: tuple[str, ...]
    """All readers of the cohort, sorted by name."""

    added: tuple[str, ...]
    """Readers that had not voted before."""

    replaced: tuple[Replaced, ...]
    """Readers whose earlier votes were replaced, and what is lost by that."""

    discarded: bool
    """Votes kept before were not as recorded, or gone, and count no more."""

    votes: int
    """All votes of all readers."""

    need: int
    """Equal votes that make a reference label."""

    reference: int
    """Number of the reference version that was made."""

    marks: Mapping[str, int]
    """Case-label pairs by mark: present, absent, uncertain, no_majority, missing;
    empty for a holdout, whose labels are sealed."""

    not_voted: tuple[str, ...]
    """Labels without a vote: this version says nothing of them, for no case."""

    superseded: Superseded | None
    """What the version before said and this one does not; None when that version was
    edited or removed, so that nothing can be counted, or is sealed."""

    adjudications: Adjudications
    """What became of a panel's decisions over the votes before."""

    not_blind: tuple[str, ...]
    """Readers known to have seen a model's output on the cohort before they voted."""

    sealed: bool = False
    """Whether the cohort is a holdout: nothing is said of what was voted."""


class Taking(NamedTuple):
    """How votes are taken into those of a cohort."""

    need: int | None
    """Equal votes wanted of all readers; None: over half."""

    actor: Actor
    replace: bool = False
    """Whether a reader's votes take the place of all earlier ones."""

    discard: bool = False
    """Whether to go on without the votes kept, should they not be those recorded."""

    lose: bool = True
    """Whether replacing may leave a reader without a vote on a pair voted on before."""

    blind: Mapping[str, bool] = {}
    """Of readers of whom it is known: whether they voted without seeing a model."""

    other_names: Mapping[str, str] = {}
    """Reader to the other name of the same person: nobody votes under both."""


def import_votes(
    workspace: Workspace,
    cohort: Cohort,
    path: Path,
    taxonomy: Taxonomy,
    *,
    need: int | None,
    actor: Actor,
) -> VotesReport:
    """Add the votes of `path` to those of `cohort`; make a reference version of all.

    Readers that the file does not name keep their votes. Votes files that were kept
    before are moved to the private folder.

    Parameters
    ----------
    need
        Equal votes wanted of all readers; default over half.

    Raises
    ------
    DataError
        The file is wrong, a reader has voted otherwise before, or the votes kept are
        not those recorded; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    new = read_votes(path, cohort, taxonomy)
    return take_votes(workspace, cohort, new, taxonomy, Taking(need, actor))


def replace_votes(
    workspace: Workspace,
    cohort: Cohort,
    path: Path,
    taxonomy: Taxonomy,
    *,
    need: int | None,
    actor: Actor,
) -> VotesReport:
    """Do as `import_votes`, but a reader's votes take the place of all earlier ones.

    Votes kept that are not those recorded count no more: also of other readers.

    Raises
    ------
    DataError
        The file is wrong; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    new = read_votes(path, cohort, taxonomy)
    how = Taking(need, actor, replace=True, discard=True)
    return take_votes(workspace, cohort, new, taxonomy, how)


def take_votes(
    workspace: Workspace, cohort: Cohort, new: Votes, taxonomy: Taxonomy, how: Taking
) -> VotesReport:
    """Take votes into those of `cohort`; make a reference version of all.

    A panel's earlier decisions stay where no vote they were made over has changed.

    Raises
    ------
    DataError
        A reader has voted otherwise before, votes would be lost, or those kept are
        not those recorded, and `how` does not allow it; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    with locked(votes_lock(workspace, cohort.name)):
        kept = find_kept(workspace, cohort, taxonomy, new)
        if not kept.sound and not how.discard:
            raise DataError(not_as_recorded(workspace, cohort))
        _refuse_second_name(kept.votes, how)
        sealed, superseded = cohort.role is Role.HOLDOUT, None
        votes, replaced = merge_votes(
            kept.votes, new, taxonomy, replace=how.replace, sealed=sealed
        )
        _refuse_loss(replaced, how)
        marks, need = majority(votes, need=how.need), check_need(votes, how.need)
        decided = keep_decisions(
            workspace, (kept.votes, votes), marks, taxonomy, cohort.name
        )
        if not sealed:
            superseded = compare_with_newest(
                workspace, cohort, votes.labels, decided.marks
            )
        seen = _not_blind(workspace, cohort, votes, how)
        facts = _facts(votes, need, decided.decisions, seen)
        number = write_votes(
            workspace, cohort, (votes, decided.marks), facts, how.actor
        )
    known = kept.votes.readers if kept.votes else ()
    return VotesReport(
        cohort=cohort.name,
        readers=votes.readers,
        added=tuple(reader for reader in new.readers if reader not in known),
        replaced=replaced,
        discarded=not kept.sound,
        votes=votes.count,
        need=need,
        reference=number,
        marks={} if sealed else _count_marks(decided.marks),
        sealed=sealed,
        not_voted=tuple(name for name in taxonomy.ids if name not in votes.labels),
        superseded=superseded,
        adjudications=Adjudications() if sealed else decided.outcome,
        not_blind=seen,
    )


def _refuse_second_name(kept: Votes | None, how: Taking) -> None:
    for reader, other in how.other_names.items():
        if kept is not None and other in kept.readers:
            raise DataError(
                f"{reader!r} has votes as {other!r} already and would vote twice. "
                "Publish under that name: with or without --pseudonyms, as before."
            )


def _refuse_loss(replaced: tuple[Replaced, ...], how: Taking) -> None:
    """Refuse to take votes away from a reader, unless that is wanted."""
    losing = [one for one in replaced if one.lost]
    if losing and not how.lose:
        names = ", ".join(f"{one.lost} of {one.reader[:40]!r}" for one in losing)
        raise DataError(
            f"votes on cases without a new vote would be lost: {names}. Complete those "
            "cases first, or confirm the loss with --replace."
        )


def _facts(
    votes: Votes, need: int, decisions: Decisions, not_blind: tuple[str, ...]
) -> dict[str, Any]:
    """Return what the ledger shall know of a version beside its digest."""
    facts: dict[str, Any] = {"need": need, "readers": len(votes.readers)}
    if decisions:
        facts["adjudicated"] = decision_facts(decisions)
    if not_blind:
        facts["not_blind"] = list(not_blind)
    return facts


def _not_blind(
    workspace: Workspace, cohort: Cohort, votes: Votes, how: Taking
) -> tuple[str, ...]:
    """Return the readers not blind: newly known, and recorded with the votes before."""
    payloads = read_record(workspace, cohort.name).references.values()
    before = [p.get("not_blind", ()) for p in payloads if "votes" in p]
    earlier = {r for r in (before[-1] if before else ()) if r not in how.blind}
    now = {reader for reader, blind in how.blind.items() if not blind}
    return tuple(reader for reader in votes.readers if reader in earlier | now)


def _count_marks(marks: Marks) -> dict[str, int]:
    counts = Counter(marks.ravel().tolist())
    return {
        mark.value: counts[code]
        for mark, code in CODES.items()
        if mark is not Mark.NOT_CODED
    }

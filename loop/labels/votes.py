"""Readers' votes, and the majority that makes a reference standard of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.labels.adjudicated import (
    Adjudications,
    Decisions,
    decision_facts,
    keep_decisions,
)
from loop.labels.ballots import NOT_VOTED, VOTE_CODES, Votes, format_votes, read_votes
from loop.labels.cohort import Cohort, cohort_folder
from loop.labels.majority import check_need, majority
from loop.labels.merging import Replaced, merge_votes
from loop.labels.recorded import read_record
from loop.labels.reference import CODES, Marks, format_reference, write_version
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
    """Case-label pairs by mark: present, absent, uncertain, no_majority, missing."""

    not_voted: tuple[str, ...]
    """Labels without a vote: this version says nothing of them, for no case."""

    superseded: Superseded | None
    """What the version before said and this one does not; None when that version was
    edited or removed, so that nothing can be counted."""

    adjudications: Adjudications
    """What became of a panel's decisions over the votes before."""

    not_blind: tuple[str, ...]
    """Readers known to have seen a model's output on the cohort before they voted."""


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


def votes_lock(workspace: Workspace, cohort_name: str) -> Path:
    """Lock file that whoever changes the votes of a cohort holds."""
    return workspace.open_private() / "locks" / f"votes-{cohort_name}.lock"


def votes_path(workspace: Workspace, cohort_name: str) -> Path:
    """File with the votes of a cohort."""
    return cohort_folder(workspace, cohort_name) / "votes.csv"


def read_cohort_votes(
    workspace: Workspace, cohort: Cohort, taxonomy: Taxonomy
) -> Votes:
    """Return the votes kept with `cohort`.

    Raises
    ------
    DataError
        There are none, the file is wrong, or not the one that the ledger recorded.
    """
    path = votes_path(workspace, cohort.name)
    recorded = read_record(workspace, cohort.name).votes
    if not path.is_file() and recorded is None:
        raise DataError(
            f"cohort {cohort.name!r} has no readers' votes ({path} does not exist). "
            f"Add them with `ranloop cohort votes {cohort.name} FILE`."
        )
    if not path.is_file() or digest_bytes(path.read_bytes()) != recorded:
        raise DataError(_not_as_recorded(workspace, cohort.name))
    return read_votes(path, cohort, taxonomy)


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
        kept = _find_kept(workspace, cohort, taxonomy, new)
        if not kept.sound and not how.discard:
            raise DataError(_not_as_recorded(workspace, cohort.name))
        _refuse_second_name(kept.votes, how)
        votes, replaced = merge_votes(kept.votes, new, taxonomy, replace=how.replace)
        _refuse_loss(replaced, how)
        marks, need = majority(votes, need=how.need), check_need(votes, how.need)
        decided = keep_decisions(
            workspace, (kept.votes, votes), marks, taxonomy, cohort.name
        )
        superseded = compare_with_newest(workspace, cohort, votes.labels, decided.marks)
        seen = _not_blind(workspace, cohort, votes, how)
        facts = _facts(votes, need, decided.decisions, seen)
        number = _write(workspace, cohort, (votes, decided.marks), facts, how.actor)
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
        marks=_count_marks(decided.marks),
        not_voted=tuple(name for name in taxonomy.ids if name not in votes.labels),
        superseded=superseded,
        adjudications=decided.outcome,
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


class _Found(NamedTuple):
    """Votes that new ones are added to."""

    votes: Votes | None
    sound: bool
    """False when there is a votes file, or should be one, that cannot be believed."""


def _find_kept(
    workspace: Workspace, cohort: Cohort, taxonomy: Taxonomy, new: Votes
) -> _Found:
    """Return the recorded votes of `cohort`.

    An earlier try that was killed may have moved them away, or left those of `new`.
    """
    path = votes_path(workspace, cohort.name)
    recorded = read_record(workspace, cohort.name).votes
    if recorded is None:
        left = path.read_bytes() if path.is_file() else None
        return _Found(None, left is None or left == format_votes(new))
    for place in (path, _replaced_path(workspace, cohort.name, recorded)):
        if place.is_file() and digest_bytes(place.read_bytes()) == recorded:
            return _Found(read_votes(place, cohort, taxonomy), True)
    return _Found(None, False)


def _replaced_path(workspace: Workspace, name: str, digest: str) -> Path:
    return workspace.private / "replaced" / f"{name}-votes-{digest[:12]}.csv"


def _not_as_recorded(workspace: Workspace, name: str) -> str:
    """Return the message for votes that differ from what the ledger says."""
    path = votes_path(workspace, name)
    recorded = read_record(workspace, name).votes
    what = f"recorded with {recorded[:12]}" if recorded else "never recorded"
    found = (
        f"has sha256 {digest_bytes(path.read_bytes())[:12]}"
        if path.is_file()
        else "is gone"
    )
    return (
        f"{path} {found} and was {what} in the ledger. Restore it from version control "
        "or a backup, or give the votes of all readers that shall count with "
        f"`ranloop cohort votes {name} FILE --replace`."
    )


def _write(
    workspace: Workspace,
    cohort: Cohort,
    made: tuple[Votes, Marks],
    facts: Mapping[str, Any],
    actor: Actor,
) -> int:
    """Write votes and reference, both or neither; return the version's number."""
    votes, marks = made
    raw, target = format_votes(votes), votes_path(workspace, cohort.name)
    before = target.read_bytes() if target.is_file() else None
    if before is not None and before != raw:
        place = _replaced_path(workspace, cohort.name, digest_bytes(before))
        write_atomic(place, before, mode=0o600)
    write_atomic(target, raw)
    try:
        return write_version(
            workspace,
            cohort,
            format_reference(cohort.case_ids, votes.labels, marks),
            reason=f"majority of {facts['need']} of {facts['readers']} readers",
            actor=actor,
            facts={"votes": digest_bytes(raw), **facts},
        )
    except LoopError:
        _put_back(target, before)
        raise


def _put_back(target: Path, before: bytes | None) -> None:
    if before is None:
        target.unlink()
    else:
        write_atomic(target, before)


def _count_marks(marks: Marks) -> dict[str, int]:
    counts = Counter(marks.ravel().tolist())
    return {
        mark.value: counts[code]
        for mark, code in CODES.items()
        if mark is not Mark.NOT_CODED
    }

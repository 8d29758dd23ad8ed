"""Readers' votes, and the majority that makes a reference standard of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.core.records import Mark, Value
from loop.labels.ballots import NOT_VOTED, VOTE_CODES, Votes, format_votes, read_votes
from loop.labels.cohort import Cohort, cohort_folder
from loop.labels.merging import Replaced, merge_votes
from loop.labels.recorded import read_record
from loop.labels.reference import (
    ABSENT,
    CODES,
    MISSING,
    NO_MAJORITY,
    PRESENT,
    UNCERTAIN,
    Marks,
    format_reference,
    write_version,
)
from loop.labels.superseded import Superseded, compare_with_newest
from loop.labels.taxonomy import Taxonomy

__all__ = [
    "NOT_VOTED",
    "VOTE_CODES",
    "Votes",
    "VotesReport",
    "check_need",
    "import_votes",
    "majority",
    "read_cohort_votes",
    "read_votes",
    "replace_votes",
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
    return _take(workspace, cohort, new, taxonomy, _How(need, actor, False))


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
    return _take(workspace, cohort, new, taxonomy, _How(need, actor, True))


class _How(NamedTuple):
    need: int | None
    actor: Actor
    replace: bool


def _take(
    workspace: Workspace, cohort: Cohort, new: Votes, taxonomy: Taxonomy, how: _How
) -> VotesReport:
    with locked(workspace.open_private() / "locks" / f"votes-{cohort.name}.lock"):
        kept = _find_kept(workspace, cohort, taxonomy, new)
        if not kept.sound and not how.replace:
            raise DataError(_not_as_recorded(workspace, cohort.name))
        votes, replaced = merge_votes(kept.votes, new, taxonomy, replace=how.replace)
        marks, need = majority(votes, need=how.need), check_need(votes, how.need)
        superseded = compare_with_newest(workspace, cohort, votes.labels, marks)
        number = _write(workspace, cohort, (votes, marks), need, how.actor)
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
        marks=_count_marks(marks),
        not_voted=tuple(name for name in taxonomy.ids if name not in votes.labels),
        superseded=superseded,
    )


class _Kept(NamedTuple):
    """Votes that new ones are added to."""

    votes: Votes | None
    sound: bool
    """False when there is a votes file, or should be one, that cannot be believed."""


def _find_kept(
    workspace: Workspace, cohort: Cohort, taxonomy: Taxonomy, new: Votes
) -> _Kept:
    """Return the recorded votes of `cohort`.

    An earlier try that was killed may have moved them away, or left those of `new`.
    """
    path = votes_path(workspace, cohort.name)
    recorded = read_record(workspace, cohort.name).votes
    if recorded is None:
        left = path.read_bytes() if path.is_file() else None
        return _Kept(None, left is None or left == format_votes(new))
    for place in (path, _replaced_path(workspace, cohort.name, recorded)):
        if place.is_file() and digest_bytes(place.read_bytes()) == recorded:
            return _Kept(read_votes(place, cohort, taxonomy), True)
    return _Kept(None, False)


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
    need: int,
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
    of = len(votes.readers)
    try:
        return write_version(
            workspace,
            cohort,
            format_reference(cohort.case_ids, votes.labels, marks),
            reason=f"majority of {need} of {of} readers",
            actor=actor,
            facts={"votes": digest_bytes(raw), "need": need, "readers": of},
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

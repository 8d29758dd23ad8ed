"""The file of a cohort's votes: read as recorded, sealed for a holdout, never lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.errors import DataError, LoopError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.labels.ballots import (
    Turnout,
    Votes,
    format_votes,
    parse_turnout,
    parse_votes,
)
from loop.labels.cohort import (
    Cohort,
    CohortRecord,
    CohortRole,
    cohort_folder,
    read_record,
)
from loop.labels.reference import Marks, add_version, format_reference
from loop.labels.sealing import (
    Opening,
    is_digest_of,
    is_stored,
    label_digest,
    read_stored,
    refuse_plain,
    remove_file,
    require_opening,
    sealed_path,
    write_labels,
)
from loop.labels.taxonomy import Taxonomy


def votes_lock(workspace: Workspace, cohort_name: str) -> Path:
    """Lock file that whoever changes the votes of a cohort holds."""
    return workspace.open_private() / "locks" / f"votes-{cohort_name}.lock"


def votes_path(workspace: Workspace, cohort_name: str) -> Path:
    """File with the votes of a cohort."""
    return cohort_folder(workspace, cohort_name) / "votes.csv"


def read_cohort_votes(
    workspace: Workspace,
    cohort: Cohort,
    taxonomy: Taxonomy,
    *,
    opening: Opening | None = None,
) -> Votes:
    """Return the votes kept with `cohort`.

    Parameters
    ----------
    opening
        What lets the votes of a holdout be read; nothing else does.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    DataError
        There are none, the file is wrong, or not the one that the ledger recorded.
    """
    path = votes_path(workspace, cohort.name)
    record = read_record(workspace, cohort.name)
    refuse_plain(path, sealed=record.is_holdout)
    if record.is_holdout and (is_stored(path) or record.votes):
        require_opening(workspace, record, opening)
    return _read_recorded(workspace, cohort, taxonomy, record)


def read_turnout(workspace: Workspace, cohort: Cohort) -> Turnout | None:
    """Return who voted on which case, also of a holdout; None when nobody has.

    Raises
    ------
    DataError
        The file is wrong, or not the one that the ledger recorded.
    """
    record = read_record(workspace, cohort.name)
    if record.votes is None:
        return None
    raw = _read_bytes(workspace, cohort, record)
    return parse_turnout(raw, cohort, votes_path(workspace, cohort.name))


def _read_recorded(
    workspace: Workspace, cohort: Cohort, taxonomy: Taxonomy, record: CohortRecord
) -> Votes:
    """Return the votes that the ledger recorded; whether one may is asked before."""
    raw = _read_bytes(workspace, cohort, record)
    return parse_votes(raw, cohort, taxonomy, votes_path(workspace, cohort.name))


def _read_bytes(workspace: Workspace, cohort: Cohort, record: CohortRecord) -> bytes:
    """Return the file of votes, if it is the one that the ledger recorded."""
    path = votes_path(workspace, cohort.name)
    if not is_stored(path) and record.votes is None:
        raise DataError(
            f"cohort {cohort.name!r} has no readers' votes ({path} does not exist). "
            f"Add them with `ranloop cohort votes {cohort.name} FILE`."
        )
    sealed = record.is_holdout
    raw = read_stored(workspace, path, sealed=sealed)
    if raw is None or not is_digest_of(workspace, record.votes, raw):
        raise DataError(not_as_recorded(workspace, cohort))
    return raw


class StoredVotes(NamedTuple):
    """Votes that new ones are added to."""

    votes: Votes | None
    sound: bool
    """False when there is a votes file, or should be one, that cannot be believed."""


def find_kept(
    workspace: Workspace, cohort: Cohort, taxonomy: Taxonomy, new: Votes
) -> StoredVotes:
    """Return the recorded votes of `cohort`.

    An earlier try that was killed may have moved them away, or left those of `new`.
    """
    path, sealed = votes_path(workspace, cohort.name), cohort.role is CohortRole.HOLDOUT
    refuse_plain(path, sealed=sealed)
    recorded = read_record(workspace, cohort.name).votes
    if recorded is None:
        left = read_stored(workspace, path, sealed=sealed)
        return StoredVotes(None, left in (None, format_votes(new)))
    for place in (path, _replaced_path(workspace, cohort.name, recorded)):
        raw = read_stored(workspace, place, sealed=sealed)
        if raw is not None and is_digest_of(workspace, recorded, raw):
            return StoredVotes(parse_votes(raw, cohort, taxonomy, place), True)
    return StoredVotes(None, False)


def _replaced_path(workspace: Workspace, name: str, digest: str) -> Path:
    return workspace.private / "replaced" / f"{name}-votes-{digest[:12]}.csv"


def not_as_recorded(workspace: Workspace, cohort: Cohort) -> str:
    """Return the message for votes that differ from what the ledger says."""
    name = cohort.name
    path = votes_path(workspace, name)
    recorded = read_record(workspace, name).votes
    what = f"recorded with {recorded[:12]}" if recorded else "never recorded"
    sealed = cohort.role is CohortRole.HOLDOUT
    raw = read_stored(workspace, path, sealed=sealed)
    found = "is gone"
    if raw is not None:
        found = f"has the digest {label_digest(workspace, raw, sealed=sealed)[:12]}"
    return (
        f"{path} {found} and was {what} in the ledger. Restore it from version control "
        "or a backup, or give the votes of all readers that shall count with "
        f"`ranloop cohort votes {name} FILE --replace`."
    )


def write_votes(
    workspace: Workspace,
    cohort: Cohort,
    votes: Votes,
    marks: Marks,
    *,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any],
) -> int:
    """Write votes and reference, both or neither; return the version's number.

    Whoever calls holds `votes_lock` and `version_lock`.

    Parameters
    ----------
    marks
        What the readers' votes come to.
    facts
        What else the ledger shall know.
    """
    raw, target = format_votes(votes), votes_path(workspace, cohort.name)
    sealed = cohort.role is CohortRole.HOLDOUT
    before = read_stored(workspace, target, sealed=sealed)
    if before is not None and before != raw:
        place = _replaced_path(workspace, cohort.name, _name(workspace, cohort, before))
        write_labels(workspace, place, before, sealed=sealed, mode=0o600)
    write_labels(workspace, target, raw, sealed=sealed)
    try:
        digest = label_digest(workspace, raw, sealed=sealed)
        return add_version(
            workspace,
            cohort,
            format_reference(cohort.case_ids, votes.labels, marks),
            actor=actor,
            reason=reason,
            facts={"votes": digest, **facts},
        )
    except LoopError:
        if before is None:
            remove_file(sealed_path(target) if sealed else target)
        else:
            write_labels(workspace, target, before, sealed=sealed)
        raise


def _name(workspace: Workspace, cohort: Cohort, raw: bytes) -> str:
    """Return the digest by which votes that others take the place of are found."""
    recorded = read_record(workspace, cohort.name).votes
    if recorded is not None and is_digest_of(workspace, recorded, raw):
        return recorded
    return label_digest(workspace, raw, sealed=cohort.role is CohortRole.HOLDOUT)

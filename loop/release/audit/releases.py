"""Every release held against its ledger entry, its version and its own signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from loop.core.check_findings import Finding, broken, note, ok
from loop.core.digests import digest_bytes
from loop.core.errors import LoopError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.release.audit.chain import subjects
from loop.release.audit.known_heads import KnownHead
from loop.release.audit.signatures import find_keys
from loop.release.audit.versions import find_commits
from loop.release.facts import FACTS, HeadFacts
from loop.release.folder import LARGEST, RELEASE_NAME
from loop.release.keys import PublicKey, keys_when
from loop.release.released import Released, name_in, replay_releases
from loop.release.statement import ENVELOPE
from loop.release.verify import Verification, verify_folder

_CHECK = "releases"


class _Recorded(NamedTuple):
    """What every release is held against, gathered once."""

    entries: tuple[LedgerEntry, ...]
    keys: Mapping[str, PublicKey]
    commits: Mapping[str, LedgerEntry]
    """Version ref to the entry that committed it."""

    hashes: frozenset[str]


def check_releases(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether each release is there, whole, signed, and of the version it names.

    A folder that no entry speaks of is no release, whatever it looks like.
    """
    releases = replay_releases(entries)
    known = _Recorded(
        entries,
        find_keys(entries),
        find_commits(entries),
        frozenset(entry.hash for entry in entries),
    )
    found = [
        finding
        for release in releases
        for finding in _check_release(workspace, release, known)
    ]
    names = {release.name for release in releases}
    found += _twice(entries)
    for path in _folders(workspace):
        if path.name not in names:
            found.append(_unrecorded(path))
    return found


def _twice(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    """Yield releases that were frozen a second time under one name."""
    known: set[str] = set()
    for _, entry in subjects(entries, "frozen"):
        name = name_in(entry)
        if name in known:
            again = Released(name=name, entry=entry)
            yield _broken(again, f"was frozen again by entry {entry.seq}")
        known.add(name)


def _folders(workspace: WorkspacePaths) -> list[Path]:
    """Return what lies among the releases and is not a folder of keys."""
    if not workspace.releases.is_dir():
        return []
    return sorted(
        path
        for path in workspace.releases.iterdir()
        if path.name != "keys" and (path.is_dir() or path.is_symlink())
    )


def _unrecorded(path: Path) -> Finding:
    if path.name.startswith("."):
        what = f"{path.name} is left from a freeze that did not end"
        return note(_CHECK, what, where=str(path), todo="Remove it.")
    return broken(
        _CHECK,
        f"{path.name} has no entry in the ledger",
        where=str(path),
        implies="It was not frozen here, or its entry is gone.",
        todo="Freeze the version again, or move the folder away.",
    )


def _check_release(
    workspace: WorkspacePaths, release: Released, known: _Recorded
) -> Iterator[Finding]:
    name, entry = release.name, release.entry
    if release.withdrawal:
        yield note(_CHECK, f"{name} was withdrawn at {release.withdrawal.time}")
    folder = workspace.releases / name
    if not RELEASE_NAME.fullmatch(name) or not folder.is_dir():
        yield _broken(release, "was frozen, and its folder is gone")
        return
    if folder.is_symlink():
        yield _broken(release, "is a link, and what it leads to can change unnoticed")
        return
    trusted = keys_when(known.entries, known.keys, entry.seq)
    try:
        verification = verify_folder(folder, trusted)
    except (LoopError, OSError) as error:
        yield _broken(release, f"cannot be verified: {type(error).__name__}")
        return
    before = list(_compare(verification, release, known))
    yield from before
    for one in verification.findings:
        if not one.holds:
            yield _broken(release, f"does not verify: {one.check}: {one.what}")
    if verification.holds and not before:
        people = ", ".join(one.name for one in verification.approvals)
        yield ok(
            _CHECK, f"{name} (entry {entry.seq}) verifies, signed by {people or '-'}"
        )


def _compare(
    found: Verification, release: Released, known: _Recorded
) -> Iterator[Finding]:
    """Yield where a folder differs from its ledger entry and its version."""
    statement = found.files.get(ENVELOPE)
    if statement is None or release.statement != digest_bytes(statement):
        yield _broken(release, "has another signed statement than the recorded one")
    released = found.facts.release.digest if found.facts else None
    commit = known.commits.get(release.ref)
    digest = commit.payload.get("digest") if commit else None
    if digest is None or {digest} != {release.digest, released}:
        yield _broken(release, "is of a version that was not committed so")
    if release.entry.payload.get("head") not in known.hashes:
        yield _broken(release, "names a head that is not in this ledger")


class _NamedHead(HeadFacts):
    model_config = ConfigDict(extra="ignore")


class _Named(BaseModel):
    """The part of ``release.json`` that names a head, whatever else it says."""

    ledger: _NamedHead


def release_head(folder: Path) -> KnownHead | None:
    """Return the head of the ledger that a release names, or None if it names none.

    Nothing else of it is checked: a release that does not verify, or that a later
    version wrote, is still a witness of what the ledger held.
    """
    path = folder / FACTS
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        named = _Named.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return KnownHead(named.ledger.seq, named.ledger.head, f"release {folder.name}")


def known_heads(
    workspace: WorkspacePaths, folders: tuple[Path, ...]
) -> list[KnownHead]:
    """Return the heads that releases name: those of the workspace, and `folders`."""
    own = [path for path in _folders(workspace) if not path.name.startswith(".")]
    heads = (release_head(path) for path in (*own, *folders))
    return [head for head in heads if head is not None]


def check_given(folders: tuple[Path, ...]) -> list[Finding]:
    """Return which folders given as releases name no head at all."""
    return [
        broken(
            _CHECK,
            f"{folder.name} names no head of a ledger",
            where=str(folder),
            implies="It says nothing about this ledger.",
            todo="Name the folder of a release, with its release.json.",
        )
        for folder in folders
        if release_head(folder) is None
    ]


def _broken(release: Released, what: str) -> Finding:
    return broken(
        _CHECK,
        f"{release.name} {what}",
        where=f"reports/releases/{release.name}, entry {release.entry.seq}",
        implies="It cannot be used, nor shown as evidence.",
        todo="Restore the folder from version control or a backup.",
        seq=release.entry.seq,
    )

"""Every release held against its ledger entry, its version and its own signatures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.digests import digest_bytes
from loop.core.errors import LoopError
from loop.core.ledger import Entry
from loop.core.paths import Workspace
from loop.release.audit.findings import Finding, broken, note, ok
from loop.release.audit.heads import KnownHead
from loop.release.audit.lines import subjects
from loop.release.audit.signatures import find_keys
from loop.release.audit.versions import find_commits
from loop.release.records import keys_when
from loop.release.verify import verify_folder

_CHECK = "releases"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]{0,8}")
_LARGEST = 64 * 1024 * 1024
"""No file of a release is larger, bytes."""


class Frozen(NamedTuple):
    """A release as the ledger records it."""

    name: str
    """Folder under ``reports/releases``, ``"extractor-v7"``."""

    entry: Entry
    withdrawn: Entry | None


def find_releases(entries: tuple[Entry, ...]) -> tuple[Frozen, ...]:
    """Return every release that `entries` record, in order; the first entry counts."""
    withdrawn = {
        release_name(entry): entry for _, entry in subjects(entries, "withdrawn")
    }
    found: dict[str, Entry] = {}
    for _, entry in subjects(entries, "frozen"):
        found.setdefault(release_name(entry), entry)
    return tuple(
        Frozen(name, entry, withdrawn.get(name)) for name, entry in found.items()
    )


def release_name(entry: Entry) -> str:
    """Return the name of the release that an entry is about."""
    return str(entry.payload.get("release", entry.subject)).replace("@", "-")


def check_releases(workspace: Workspace, entries: tuple[Entry, ...]) -> list[Finding]:
    """Return whether each release is there, whole, signed, and of the version it names.

    A folder that no entry speaks of is no release, whatever it looks like.
    """
    releases = find_releases(entries)
    found = [
        finding
        for release in releases
        for finding in _check_release(workspace, release, entries)
    ]
    known = {release.name for release in releases}
    found += _twice(entries)
    for path in _folders(workspace):
        if path.name not in known:
            found.append(_unrecorded(path))
    return found


def _twice(entries: tuple[Entry, ...]) -> Iterator[Finding]:
    """Yield releases that were frozen a second time under one name."""
    known: set[str] = set()
    for _, entry in subjects(entries, "frozen"):
        name = release_name(entry)
        if name in known:
            again = Frozen(name, entry, None)
            yield _broken(again, f"was frozen again by entry {entry.seq}")
        known.add(name)


def _folders(workspace: Workspace) -> list[Path]:
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
    workspace: Workspace, release: Frozen, entries: tuple[Entry, ...]
) -> Iterator[Finding]:
    name, entry = release.name, release.entry
    if release.withdrawn:
        yield note(_CHECK, f"{name} was withdrawn at {release.withdrawn.time}")
    folder = workspace.releases / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        yield _broken(release, "was frozen, and its folder is gone")
        return
    before = list(_compare(folder, release, entries))
    yield from before
    trusted = keys_when(entries, find_keys(entries), entry.seq)
    try:
        verification = verify_folder(folder, trusted)
    except (LoopError, OSError) as error:
        yield _broken(release, f"cannot be verified: {type(error).__name__}")
        return
    for one in verification.findings:
        if not one.holds:
            yield _broken(release, f"does not verify: {one.check}: {one.detail}")
    if verification.holds and not before:
        people = ", ".join(one.name for one in verification.approvals)
        yield ok(
            _CHECK, f"{name} (entry {entry.seq}) verifies, signed by {people or '-'}"
        )


def _compare(
    folder: Path, release: Frozen, entries: tuple[Entry, ...]
) -> Iterator[Finding]:
    """Yield where a folder differs from its ledger entry and its version."""
    payload = release.entry.payload
    statement = _read(folder / "release.dsse.json")
    recorded = payload.get("statement_sha256")
    if statement is None or recorded != digest_bytes(statement):
        yield _broken(release, "has another signed statement than the recorded one")
    facts = read_facts(folder).get("release")
    facts = facts if isinstance(facts, Mapping) else {}
    commit = find_commits(entries).get(release.entry.subject)
    digest = commit.payload.get("digest") if commit else None
    if digest is None or {digest} != {payload.get("digest"), facts.get("digest")}:
        yield _broken(release, "is of a version that was not committed so")
    if payload.get("head") not in {one.hash for one in entries}:
        yield _broken(release, "names a head that is not in this ledger")


def read_facts(folder: Path) -> Mapping[str, Any]:
    """Return ``release.json`` of a folder, unchecked; empty where it cannot be read."""
    try:
        data = json.loads(_read(folder / "release.json") or b"{}")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _read(path: Path) -> bytes | None:
    """Return a regular file of usual size, or None."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_bytes()
    except OSError:
        return None


def release_head(folder: Path) -> KnownHead | None:
    """Return the head of the ledger that a release names, or None if it names none."""
    head = read_facts(folder).get("ledger")
    if not isinstance(head, Mapping):
        return None
    seq, digest = head.get("seq"), head.get("head")
    if type(seq) is not int or not isinstance(digest, str) or len(digest) != 64:
        return None
    return KnownHead(seq, digest, f"release {folder.name}")


def known_heads(workspace: Workspace, folders: tuple[Path, ...]) -> list[KnownHead]:
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
            implies="Nothing can be said of this ledger by it.",
            todo="Name the folder of a release, with its release.json.",
        )
        for folder in folders
        if release_head(folder) is None
    ]


def _broken(release: Frozen, what: str) -> Finding:
    return broken(
        _CHECK,
        f"{release.name} {what}",
        where=f"reports/releases/{release.name}, entry {release.entry.seq}",
        implies="It cannot be used, nor shown as evidence.",
        todo="Restore the folder from version control or a backup.",
        seq=release.entry.seq,
    )

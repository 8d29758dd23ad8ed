"""The releases of a workspace: what the ledger records of one, and what it tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import Workspace
from loop.release.facts import HeadFacts, ReleaseFacts

RELEASE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]{0,8}")
"""What a release is called: its prompt and its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One release, as recorded when it was frozen and since."""

    name: str
    """For example ``"extractor-v7"``."""

    entry: LedgerEntry
    """The one that froze it; a release is frozen once, and of two the first counts."""

    withdrawal: LedgerEntry | None = None
    """The one that withdrew it; None while it may be used."""

    superseded_by: str = ""
    """Name of the release that took its place; may be empty."""

    @property
    def ref(self) -> str:
        """The version it froze, for example ``"extractor@v7"``."""
        return self.entry.subject

    @property
    def digest(self) -> str:
        """Digest of that version; empty where none is recorded."""
        return str(self.entry.payload.get("digest", ""))

    @property
    def statement(self) -> str:
        """Sha256 of the signed statement; empty where none is recorded."""
        return str(self.entry.payload.get("statement_sha256", ""))


def release_name(ref: str) -> str:
    """Return the name of the release of a version, ``"extractor-v7"``.

    Examples
    --------
    >>> release_name("extractor@v7")
    'extractor-v7'
    """
    return ref.replace("@", "-")


def name_in(entry: LedgerEntry) -> str:
    """Return the name of the release that an entry is about."""
    return str(entry.payload.get("release", release_name(entry.subject)))


def release_folder(workspace: Workspace, name: str) -> Path:
    """Folder of release `name`.

    Raises
    ------
    DataError
        It cannot be the name of a release.
    """
    if RELEASE_NAME.fullmatch(name) is None:
        raise DataError(
            f"{name[:80]!r} is not the name of a release. Write PROMPT-vN, for example "
            "extractor-v7."
        )
    return workspace.releases / name


def frozen_payload(facts: ReleaseFacts, statement_sha256: str) -> dict[str, Any]:
    """Return what the ledger records of a release, its subject being the version.

    Parameters
    ----------
    facts
        The content of its ``release.json``.
    statement_sha256
        Digest of the bytes of its ``release.dsse.json``.
    """
    return {
        "release": facts.release.name,
        "digest": facts.release.digest,
        "statement_sha256": statement_sha256,
        "head": facts.ledger.head,
        "verdict": facts.claim.verdict.value,
        "override": facts.frozen.override,
        "development_only": facts.development_only,
        "supersedes": facts.supersedes.name if facts.supersedes else "",
    }


def list_releases(workspace: Workspace) -> tuple[Released, ...]:
    """Return every release that was ever frozen, oldest first.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return replay_releases(read_ledger(workspace.ledger))


def replay_releases(entries: Iterable[LedgerEntry]) -> tuple[Released, ...]:
    """Return the releases that `entries` tell of, oldest first.

    They may be of a broken ledger: what withdraws no release is passed over.
    """
    found: dict[str, Released] = {}
    for entry in entries:
        name = name_in(entry)
        known = found.get(name)
        if entry.action == "frozen" and known is None:
            before = found.get(str(entry.payload.get("supersedes", "")))
            if before is not None:
                found[before.name] = replace(before, superseded_by=name)
            found[name] = Released(name=name, entry=entry)
        elif entry.action == "withdrawn" and known and known.withdrawal is None:
            found[name] = replace(known, withdrawal=entry)
    return tuple(found.values())


def find_in(releases: Iterable[Released], name: str) -> Released | None:
    """Return release `name`; None when it is not among `releases`."""
    return next((one for one in releases if one.name == name), None)


def find_release(workspace: Workspace, name: str) -> Released | None:
    """Return release `name` as recorded; None when nothing was frozen under it.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return find_in(list_releases(workspace), name)


def unknown_release(name: str, releases: Sequence[Released]) -> DataError:
    """Return the error that there is no release `name`; it names those there are."""
    known = ", ".join(one.name for one in releases) or "none"
    return DataError(
        f"there is no release {name[:80]} (known: {known}). Correct the name, or make "
        "one with `ranloop freeze`."
    )


def holds_head(entries: Sequence[LedgerEntry], head: HeadFacts) -> bool:
    """Whether `entries` hold the head of the ledger that a release names."""
    return [entry.hash for entry in entries[head.seq - 1 : head.seq]] == [head.head]


def current_release(workspace: Workspace, prompt: str) -> Released | None:
    """Return the release of `prompt` in use: the newest that was not withdrawn.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    of_prompt = (
        one
        for one in reversed(list_releases(workspace))
        if one.ref.partition("@")[0] == prompt and one.withdrawal is None
    )
    return next(of_prompt, None)

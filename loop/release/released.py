"""The releases of a workspace, as its ledger tells them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loop.core.errors import DataError
from loop.core.ledger import Entry, read_ledger
from loop.core.paths import Workspace

_NAME = re.compile(r"([a-z][a-z0-9_-]{0,63})-v([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One release, as recorded when it was frozen and since."""

    name: str
    """For example ``"extractor-v7"``."""

    ref: str
    """The version it froze, for example ``"extractor@v7"``."""

    digest: str
    """Digest of that version."""

    statement: str
    """Sha256 of the signed statement."""

    time: str
    actor: str
    why: str
    override: str
    """Why it was released against its gates; empty when it passed them."""

    development_only: bool
    supersedes: str
    """Name of the release it takes the place of; may be empty."""

    superseded_by: str = ""
    withdrawn: str = ""
    """Why it was withdrawn; empty while it may be used."""

    @property
    def in_use(self) -> bool:
        """Whether nothing has taken its place and nobody withdrew it."""
        return not self.superseded_by and not self.withdrawn


def release_name(ref: str) -> str:
    """Return the name of the release of a version, ``"extractor-v7"``.

    Examples
    --------
    >>> release_name("extractor@v7")
    'extractor-v7'
    """
    return ref.replace("@", "-")


def release_folder(workspace: Workspace, name: str) -> Path:
    """Folder of release `name`.

    Raises
    ------
    DataError
        It cannot be the name of a release.
    """
    if _NAME.fullmatch(name) is None:
        raise DataError(
            f"{name[:80]!r} cannot be the name of a release. A release is named as its "
            "version, for example extractor-v7."
        )
    return workspace.releases / name


def list_releases(workspace: Workspace) -> tuple[Released, ...]:
    """Return every release that was ever frozen, oldest first.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return replay_releases(read_ledger(workspace.ledger))


def replay_releases(entries: Sequence[Entry]) -> tuple[Released, ...]:
    """Return the releases that `entries` tell of, oldest first."""
    found: dict[str, Released] = {}
    for entry in entries:
        name = str(entry.payload.get("release", ""))
        if entry.action == "frozen":
            made = _read(entry, name)
            before = found.get(made.supersedes)
            if before is not None:
                found[before.name] = replace(before, superseded_by=name)
            found[name] = made
        elif entry.action == "withdrawn" and name in found:
            found[name] = replace(found[name], withdrawn=entry.reason)
    return tuple(found.values())


def find_release(workspace: Workspace, name: str) -> Released | None:
    """Return release `name` as recorded; None when nothing was frozen under it.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return next((one for one in list_releases(workspace) if one.name == name), None)


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
        if one.ref.partition("@")[0] == prompt and not one.withdrawn
    )
    return next(of_prompt, None)


def _read(entry: Entry, name: str) -> Released:
    payload = entry.payload
    return Released(
        name=name,
        ref=entry.subject,
        digest=str(payload["digest"]),
        statement=str(payload["statement_sha256"]),
        time=entry.time,
        actor=entry.actor,
        why=entry.reason,
        override=str(payload.get("override", "")),
        development_only=bool(payload.get("development_only")),
        supersedes=str(payload.get("supersedes", "")),
    )

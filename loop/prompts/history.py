"""What happened to a prompt: its versions, and everything the ledger says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError, LedgerError
from loop.core.git import commit_paths
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.prompts.catalog import (
    inspect_version,
    list_versions,
    parse_ref,
    read_aliases,
    read_version,
)
from loop.prompts.diff import diff_versions
from loop.prompts.version import NAME, PromptVersion

_RESERVED = frozenset({"latest", "draft"})
_VERSION = re.compile("v[0-9]+")
_MARKING = frozenset({"override", "frozen", "withdrawn"})


class VersionHistory(NamedTuple):
    """One version and what is recorded of it."""

    version: PromptVersion | None
    """None when its files are not what was committed, or cannot be read."""

    number: int
    problem: str
    """Why the version cannot be trusted, or empty."""

    changes: Mapping[str, int]
    """Changes against the version before, ``{"+term": 12}``."""

    aliases: tuple[str, ...]
    events: tuple[LedgerEntry, ...]
    """Ledger entries about it and about drafts that stayed drafts of it, in order."""

    @property
    def marking(self) -> tuple[LedgerEntry, ...]:
        """The entries nobody may miss: overridden, frozen, withdrawn."""
        return tuple(one for one in self.events if one.action in _MARKING)


def read_history(workspace: WorkspacePaths, name: str) -> tuple[VersionHistory, ...]:
    """Return every version of `name`, oldest first.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    numbers = list_versions(workspace, name)
    if not numbers:
        read_version(workspace, name)
    entries = read_ledger(workspace.ledger)
    aliases = read_aliases(workspace, name)
    rows: list[VersionHistory] = []
    for number in numbers:
        ref = f"{name}@v{number}"
        events = tuple(entry for entry in entries if _concerns(entry, ref))
        version, problem = _trusted(workspace, name, number, events)
        before = rows[-1].version if rows else None
        rows.append(
            VersionHistory(
                version=version,
                number=number,
                problem=problem,
                changes=_changes(before, version),
                aliases=tuple(a for a, tag in aliases.items() if tag == f"v{number}"),
                events=events,
            )
        )
    return tuple(rows)


def _concerns(entry: LedgerEntry, ref: str) -> bool:
    """Whether an entry is about a version or about a draft revised from it."""
    if entry.action == "draft_rejected":
        return bool(entry.payload.get("parent_ref") == ref)
    return entry.subject == ref


def _changes(
    before: PromptVersion | None, after: PromptVersion | None
) -> Mapping[str, int]:
    return diff_versions(before, after).counts() if before and after else {}


def _trusted(
    workspace: WorkspacePaths, name: str, number: int, events: Sequence[LedgerEntry]
) -> tuple[PromptVersion | None, str]:
    """Read a version, and say why it cannot be trusted if so."""
    try:
        version, edit = inspect_version(workspace, name, number)
    except LedgerError:
        raise
    except DataError as error:
        return None, f"cannot be read: {error}"
    if edit is not None:
        return None, edit.problem
    if not any(event.action == "draft_committed" for event in events):
        return version, "not in the ledger"
    return version, ""


def move_alias(
    workspace: WorkspacePaths,
    ref: str,
    alias: str,
    *,
    actor: Actor,
    reason: str,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Point `alias` at the version `ref` names, in the ledger, and return the entry.

    In a git repository the ledger is committed too.

    Raises
    ------
    DataError
        `alias` is not a usable name, or `ref` is not a committed version.
    """
    if not NAME.fullmatch(alias):
        raise DataError(
            f"{alias!r} cannot be an alias. Begin with a lower-case letter and use "
            "lower-case letters, digits, - and _."
        )
    if alias in _RESERVED or _VERSION.fullmatch(alias):
        raise DataError(
            f"{alias!r} cannot be an alias: in a reference such as NAME@{alias} it "
            "already means something. Use another name."
        )
    version = read_version(workspace, ref)
    if version.draft:
        raise DataError(
            f"{version.ref} is a draft. Commit it with `ranloop revise`, then move "
            "the alias."
        )
    before = read_aliases(workspace, parse_ref(ref).name).get(alias)
    payload: dict[str, Any] = {"alias": alias, "before": before}
    entry = append_event(
        workspace.ledger,
        Event(
            action="alias_moved",
            subject=version.ref,
            reason=reason,
            payload=payload | {"digest": version.digest},
        ),
        actor,
        now=now,
    )
    title = f"{parse_ref(ref).name}@{alias} is {version.ref}"
    commit_paths(workspace.root, [workspace.ledger], f"{title}\n\n{reason}", actor.name)
    return entry

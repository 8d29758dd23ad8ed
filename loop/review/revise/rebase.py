"""A draft whose parent moved on: its changes applied to the newest version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from loop.core.errors import ConflictError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.prompts.version import PromptVersion
from loop.review.revise.beside import (
    drafts_locked,
    read_about,
    remove_draft,
    write_draft,
)
from loop.review.revise.decide import record_attempt
from loop.review.revise.draft import draft_id
from loop.review.revise.drafted import Drafted, show_draft
from loop.review.revise.ground import DraftLineage, read_line
from loop.review.revise.merge import (
    Conflict,
    ConflictChoice,
    MergedPrompt,
    merge_versions,
)

Clock = Callable[[], datetime]

_NONE: Mapping[str, ConflictChoice] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """What bringing a draft to the newest version did."""

    draft: PromptVersion | None
    """The new draft, which takes the place of the old one; None while undecided."""

    conflicts: tuple[Conflict, ...]
    """What somebody has to decide first; nothing was written."""

    newest: str
    """Reference of the version it was brought to."""

    drafted: Drafted | None = None
    """The new draft as people look at it."""


def rebase_draft(
    workspace: Workspace,
    ref: str,
    actor: Actor,
    resolve: Mapping[str, ConflictChoice] = _NONE,
    *,
    now: Clock = lambda: datetime.now(UTC),
) -> Rebased:
    """Return the draft `ref` made anew from the newest version, or the conflicts.

    The new draft has an id of its own, and the old one is removed once it is written:
    a kill leaves both, never half of one. A draft that is not behind stays as it is.

    Parameters
    ----------
    resolve
        Conflict id to whose wording is taken; all of them, or nothing is written.

    Raises
    ------
    DataError
        There is no such draft, or its parent is not among the versions.
    ConflictError
        `resolve` decides what is no conflict, or not with these wordings any more.
    WriteError
        The workspace cannot be written; the old draft is as it was.
    """
    with drafts_locked(workspace, ref):
        line = read_line(workspace, ref)
        if not line.behind:
            return _told(workspace, line, line.draft)
        merged = merge_versions(line.parent, line.draft, line.newest, resolve)
        _require_known(line, merged)
        if merged.conflicts:
            return Rebased(
                draft=None, conflicts=merged.conflicts, newest=line.newest.ref
            )
        record_attempt(workspace, line, actor, f"rebased on {line.newest.ref}", now)
        draft = _write(workspace, line, merged, actor, now())
        return _told(workspace, line, draft)


def _require_known(line: DraftLineage, merged: MergedPrompt) -> None:
    if merged.unknown:
        raise ConflictError(
            f"{line.draft.ref} and {line.newest.ref} have no conflict "
            f"{', '.join(one[:80] for one in merged.unknown)}: the draft or the newest "
            "version changed since you looked. Look at the conflicts again."
        )


def _write(
    workspace: Workspace,
    line: DraftLineage,
    merged: MergedPrompt,
    actor: Actor,
    when: datetime,
) -> PromptVersion:
    old = line.draft
    draft = replace(
        merged.version,
        number=0,
        draft=draft_id(when),
        parent=line.newest.digest,
        author=actor.name,
        time=when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        why=old.why,
        verdicts=old.verdicts,
    )
    made = write_draft(workspace, draft, read_about(workspace, old))
    remove_draft(workspace, old.name, old.draft)
    return made


def _told(workspace: Workspace, line: DraftLineage, draft: PromptVersion) -> Rebased:
    return Rebased(
        draft=draft,
        conflicts=(),
        newest=line.newest.ref,
        drafted=show_draft(workspace, draft.ref),
    )

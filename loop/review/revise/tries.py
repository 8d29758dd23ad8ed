"""Which wordings of a draft were tried, and on how many cases: kept beside it.

A phrase is also tried before there is a draft: while a version's answers are judged. It
is then kept beside the version, and counts for each draft of it that changes the guide
for which the phrase was tried.

The wording itself is kept with the last tries of a draft, so that it can be taken back
when a later one turns out worse.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.prompts.catalog import find_parent
from loop.prompts.guides import dump_guides
from loop.prompts.version import CallPlan, PromptVersion
from loop.review.revise.draft_files import beside

_SHORTEST = 4
"""Characters of a digest that say which wording is meant."""


MOST_WORDINGS = 20
"""Wordings of a draft that are kept with their text, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftWording:
    """All of a draft that is wording, as it stood when it was tried."""

    system: str
    user: str
    guides: str
    """As `dump_guides` writes them."""

    plan: CallPlan
    contract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedTry:
    """One wording of a draft, tried on some cases by one person."""

    digest: str
    """Of the draft as it stood."""

    engine: str
    by: str
    time: str
    """Of the last time: UTC, ISO 8601."""

    cases: tuple[str, ...]
    """Ids, sorted; of a phrase those that it changes."""

    label: str = ""
    """Whose guide a phrase was tried for; empty for a draft as it stood."""

    wording: DraftWording | None = None
    """What was tried; None for a phrase, and for all but the last wordings."""


class TriesCount(NamedTuple):
    """What a person had seen of a draft's answers before a check of it."""

    wordings: int
    """Different ones."""

    cases: int
    """Different dev cases."""


_NOTES = TypeAdapter(tuple[NotedTry, ...])


def note_try(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    cases: Sequence[str],
    engine: str,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> None:
    """Note that `draft`, as it stands, was tried on `cases`; a version has no notes.

    Tries of one wording by one person with one engine are one note.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    if draft.draft:
        wording = DraftWording(
            system=draft.system,
            user=draft.user,
            guides=dump_guides(draft.guides),
            plan=draft.plan,
            contract=draft.contract,
        )
        _note(workspace, draft, {draft.digest: cases}, engine, actor, now, "", wording)


def note_wordings(
    workspace: WorkspacePaths,
    version: PromptVersion,
    tried: Mapping[str, Sequence[str]],
    engine: str,
    actor: Actor,
    *,
    label: str = "",
    now: Clock = utc_now,
) -> None:
    """Note which wordings of a draft or version were tried on which cases.

    Parameters
    ----------
    tried
        Digest of each wording to its cases; nothing is noted of no wording.
    label
        Whose guide they change, if a phrase was tried.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    if tried:
        _note(workspace, version, tried, engine, actor, now, label, None)


def _note(
    workspace: WorkspacePaths,
    version: PromptVersion,
    tried: Mapping[str, Sequence[str]],
    engine: str,
    actor: Actor,
    now: Clock,
    label: str,
    wording: DraftWording | None,
) -> None:
    path = beside(workspace, version).tries
    with locked(workspace.open_private() / "locks" / f"tries-{version.name}.lock"):
        notes = {
            (one.digest, one.engine, one.by): one
            for one in list_tries(workspace, version)
        }
        for digest, cases in tried.items():
            key = digest, engine, actor.name
            known = notes.pop(key, None)
            notes[key] = NotedTry(
                digest=digest,
                engine=engine,
                by=actor.name,
                time=format_time(now()),
                cases=tuple(sorted({*cases, *(known.cases if known else ())})),
                label=known.label if known else label,
                wording=wording or (known.wording if known else None),
            )
        kept = _NOTES.dump_json(_forget_wordings(notes.values()), exclude_none=True)
        write_atomic(path, kept, mode=0o600)


def _forget_wordings(notes: Iterable[NotedTry]) -> tuple[NotedTry, ...]:
    """Return the notes, all but the last wordings without their text."""
    known = [*notes]
    last = [*dict.fromkeys(one.digest for one in reversed(known) if one.wording)]
    forgotten = {*last[MOST_WORDINGS:]}
    return tuple(
        replace(one, wording=None) if one.digest in forgotten else one for one in known
    )


def list_tries(workspace: WorkspacePaths, draft: PromptVersion) -> tuple[NotedTry, ...]:
    """Return the notes kept beside a draft or a version, the last one last.

    Raises
    ------
    DataError
        They are there and cannot be read: that is not the same as no try.
    """
    path = beside(workspace, draft).tries
    if not os.path.lexists(path):
        return ()
    try:
        return _NOTES.validate_json(read_text(path))
    except (DataError, ValidationError) as error:
        raise DataError(
            f"{path} cannot be read, and it says what was tried of {draft.ref}. "
            "Restore it from a backup; or remove it, and nothing is known of these "
            "tries."
        ) from error


def find_wording(
    workspace: WorkspacePaths, draft: PromptVersion, digest: str
) -> DraftWording:
    """Return what a draft said when it was tried.

    Parameters
    ----------
    digest
        Of the wording; its first characters, at least four, are enough.

    Raises
    ------
    DataError
        No try begins so, or several wordings do, or its text is not kept any more.
    """
    known: dict[str, DraftWording | None] = {}
    for one in list_tries(workspace, draft):
        known[one.digest] = one.wording or known.get(one.digest)
    found = [
        one for one in known if len(digest) >= _SHORTEST and one.startswith(digest)
    ]
    kept = ", ".join(one[:8] for one, wording in known.items() if wording) or "none"
    if len(found) != 1:
        many = "several tries" if found else "no try"
        raise DataError(
            f"{many} of {draft.ref} had the wording {quoted(digest)}. Those that can "
            f"be taken back: {kept}."
        )
    wording = known[found[0]]
    if wording is None:
        raise DataError(
            f"the text of the wording {found[0][:8]} of {draft.ref} is not kept: only "
            f"that of the last {MOST_WORDINGS} wordings is. Those that can be taken "
            f"back: {kept}."
        )
    return wording


def count_tries(workspace: WorkspacePaths, draft: PromptVersion) -> TriesCount | None:
    """Return how many wordings of `draft` were tried, on how many cases; None of none.

    An earlier wording of the same draft counts, since it could have been chosen; so
    does a phrase that was tried in its parent, for a guide that the draft changes.
    """
    notes = [*list_tries(workspace, draft), *_of_parent(workspace, draft)]
    wordings = {one.digest for one in notes}
    cases = {case for one in notes for case in one.cases}
    return TriesCount(len(wordings), len(cases)) if notes else None


def _of_parent(workspace: WorkspacePaths, draft: PromptVersion) -> list[NotedTry]:
    parent = find_parent(workspace, draft)
    if parent is None:
        return []
    changed = {guide.label for guide in draft.guides if guide not in parent.guides}
    return [one for one in list_tries(workspace, parent) if one.label in changed]

"""The drafts of a prompt that are open: whose, from what, and how far."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop.core.errors import DataError, LedgerError
from loop.core.paths import Workspace
from loop.prompts.catalog import list_drafts
from loop.prompts.version import PromptVersion
from loop.review.revise.beside import DraftOrigin, read_about
from loop.review.revise.checked import find_check, name_stale
from loop.review.revise.commit import find_commit, is_recorded
from loop.review.revise.ground import DraftLineage, read_line
from loop.run.store import Store


class DraftCheckStatus(StrEnum):
    """What the last check of a draft says."""

    PASSED = "passed"
    OBJECTIONS = "objections"
    STALE = "stale"
    """Something it rests on has changed since."""

    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftInfo:
    """One open draft."""

    ref: str
    author: str
    """Who wrote it last."""

    when: str
    """When: UTC, ISO 8601."""

    why: str
    begun_by: str
    verdicts: tuple[str, ...]
    cohort: str
    """Dev cohort it is for; empty when nobody said."""

    parent_ref: str
    """Version it was made from; empty when that cannot be told."""

    behind: bool
    """Whether another version was committed since."""

    checked: DraftCheckStatus
    origin: DraftOrigin
    problem: str = ""
    """Why the draft cannot be used; empty when it can."""


def list_open_drafts(
    workspace: Workspace, store: Store, prompt: str
) -> tuple[DraftInfo, ...]:
    """Return the drafts of `prompt` that may still become a version, oldest first.

    One whose files are damaged is named with its problem and hides no other. One that
    was committed, and that a kill left behind, is not listed; one whose commit a kill
    left without its ledger entry is, so that it can be committed again.

    Raises
    ------
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    infos = (
        _look(workspace, store, f"{prompt}@draft:{one}")
        for one in list_drafts(workspace, prompt)
    )
    return tuple(info for info in infos if info is not None)


def _look(workspace: Workspace, store: Store, ref: str) -> DraftInfo | None:
    try:
        line = read_line(workspace, ref)
        made = find_commit(workspace, line.draft)
        if made is not None and is_recorded(workspace, made):
            return None
        return _tell(workspace, line, _standing(workspace, store, line))
    except LedgerError:
        raise
    except DataError as error:
        return _broken(ref, str(error))


def _standing(
    workspace: Workspace, store: Store, line: DraftLineage
) -> DraftCheckStatus:
    checked = find_check(workspace, line.draft)
    if checked is None:
        return DraftCheckStatus.NEVER
    if line.behind or name_stale(workspace, store, line, checked):
        return DraftCheckStatus.STALE
    return DraftCheckStatus.PASSED if checked.passed else DraftCheckStatus.OBJECTIONS


def _tell(
    workspace: Workspace, line: DraftLineage, standing: DraftCheckStatus
) -> DraftInfo:
    draft: PromptVersion = line.draft
    about = read_about(workspace, draft)
    return DraftInfo(
        ref=draft.ref,
        author=draft.author,
        when=draft.time,
        why=draft.why,
        begun_by=about.begun_by,
        verdicts=draft.verdicts,
        cohort=about.cohort,
        parent_ref=line.parent.ref,
        behind=line.behind,
        checked=standing,
        origin=about.origin,
    )


def _broken(ref: str, problem: str) -> DraftInfo:
    return DraftInfo(
        ref=ref,
        author="",
        when="",
        why="",
        begun_by="",
        verdicts=(),
        cohort="",
        parent_ref="",
        behind=False,
        checked=DraftCheckStatus.NEVER,
        origin=DraftOrigin.HAND,
        problem=problem,
    )

"""The last step of a revision: a checked draft is committed, kept, or given up."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, LedgerError
from loop.core.ledger import Actor, LedgerEntry, read_ledger
from loop.core.paths import Workspace
from loop.labels.cohort import read_cohort
from loop.prompts.catalog import list_drafts, parse_ref
from loop.prompts.version import PromptVersion
from loop.review.revise.checked import (
    Checked,
    evidence,
    find_check,
    name_stale,
    read_asking,
)
from loop.review.revise.commit import Commitment, commit_draft, reject_draft
from loop.review.revise.copies import check_copies, new_wording
from loop.review.revise.draft_files import drafts_locked, remove_draft
from loop.review.revise.inputs import DraftLineage, read_line, require_current
from loop.run.asking import HeldEngine, hold_engine
from loop.run.store import Store
from loop.run.task import run_prompt


class CommitDecision(NamedTuple):
    """Why a draft is committed, and against which odds."""

    why: str = ""
    """Reason for the version; the draft's own when empty."""

    override: str = ""
    """Reason to commit although the check objects; empty for not."""


class CommittedDraft(NamedTuple):
    """The version that a draft became, and its run on the cohort of the check."""

    version: PromptVersion
    run: str
    """Id of the run."""


def commit_checked(
    workspace: Workspace,
    store: Store,
    ref: str,
    actor: Actor,
    decision: CommitDecision,
    *,
    engine: HeldEngine | None = None,
    now: Clock = utc_now,
) -> CommittedDraft:
    """Commit the draft `ref` as the version after its parent, and run the version.

    The engine of the check must answer before anything is committed; the version is
    run with it afterwards, from the answers to the draft. A commit that was killed
    half-way is finished by calling this again.

    Parameters
    ----------
    engine
        The engine of the check, already open and left open; None opens one.

    Raises
    ------
    DataError
        There is no such draft, it was never checked, or the check objects and nobody
        overrides it. Errors of lint cannot be overridden.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        The check does not hold any more, or another version was committed meanwhile.
    EngineError
        The engine of the check cannot be asked.
    LedgerError
        The ledger is broken; no version was made.
    WriteError
        The workspace cannot be written; no version was made.
    """
    read_ledger(workspace.ledger)
    checked = _require_check(workspace, store, read_line(workspace, ref))
    named = hold_engine(workspace, checked.engine, read_asking(checked))
    with nullcontext(engine) if engine else named as held:
        held.identity()
        with drafts_locked(workspace, ref):
            line = read_line(workspace, ref)
            checked = _require_check(workspace, store, line)
            _require_accepted(checked, decision)
            _require_own_words(workspace, line, checked)
            version = _commit(workspace, line.draft, checked, actor, decision, now)
        run = run_prompt(workspace, version.ref, checked.ground.cohort, engine=held)
    return CommittedDraft(version, run.run_id)


def _require_check(workspace: Workspace, store: Store, line: DraftLineage) -> Checked:
    """Return the check of a draft if it holds."""
    draft = line.draft
    checked = find_check(workspace, draft)
    if checked is None:
        raise DataError(
            f"{draft.ref} was not checked yet. Check it with `ranloop draft check "
            f"{draft.ref}`."
        )
    require_current(line)
    stale = name_stale(workspace, store, line, checked)
    if stale:
        raise ConflictError(
            f"the check of {draft.ref} does not hold any more: {'; '.join(stale)}. "
            f"Check it again with `ranloop draft check {draft.ref}`."
        )
    return checked


def _require_accepted(checked: Checked, decision: CommitDecision) -> None:
    """Refuse what the check objects to, unless somebody overrides it by name."""
    if checked.check is None:
        raise DataError(
            f"{checked.draft}: lint found errors, which cannot be overridden. Edit the "
            "draft and check it again."
        )
    if checked.objections and not decision.override.strip():
        raise DataError(
            f"{checked.draft} stays a draft: {'; '.join(checked.objections)}. Edit it, "
            "or override the check with a reason."
        )


def _require_own_words(
    workspace: Workspace, line: DraftLineage, checked: Checked
) -> None:
    """Look for copied wording again: a holdout may have been imported since."""
    wording = new_wording(line.parent, line.draft)
    check_copies(workspace, wording, read_cohort(workspace, checked.ground.cohort))


def _commit(
    workspace: Workspace,
    draft: PromptVersion,
    checked: Checked,
    actor: Actor,
    decision: CommitDecision,
    now: Clock,
) -> PromptVersion:
    why = decision.why.strip() or draft.why.strip()
    when = now()
    decided = replace(
        draft,
        why=why,
        author=actor.name,
        time=format_time(when),
    )
    commitment = weigh(checked, actor, why, override=decision.override.strip())
    if draft.author != actor.name:
        found = {**commitment.evidence, "drafted_by": draft.author}
        commitment = replace(commitment, evidence=found)
    version = commit_draft(workspace, decided, commitment, now=lambda: when)
    remove_draft(workspace, draft.name, draft.draft)
    return version


def weigh(
    checked: Checked | None, actor: Actor, why: str, *, override: str = ""
) -> Commitment:
    """Return who decides and why, with what a check showed and objected to."""
    return Commitment(
        actor=actor,
        reason=why.strip() or "no reason was given",
        evidence=evidence(checked) if checked else {},
        objections=checked.objections if checked else (),
        override_reason=override,
    )


def keep_draft(
    workspace: Workspace,
    ref: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that the draft `ref` stays a draft, and return the ledger's entry.

    Raises
    ------
    DataError
        There is no such draft.
    LedgerError
        The ledger is broken.
    WriteError
        It cannot be written.
    """
    with drafts_locked(workspace, ref):
        line = read_line(workspace, ref)
        checked = _own_check(workspace, line.draft)
        commitment = weigh(checked, actor, why or line.draft.why)
        return reject_draft(workspace, line.draft, line.parent.ref, commitment, now=now)


def discard_draft(
    workspace: Workspace,
    ref: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> LedgerEntry | None:
    """Remove the draft `ref`; return the ledger's entry if it had been checked.

    One that was never checked was private work and leaves no trace. One that is
    damaged, or whose parent is gone, can be removed too, by its id.

    Raises
    ------
    DataError
        There is no such draft.
    LedgerError
        The ledger is broken; the draft is kept.
    WriteError
        The workspace cannot be written.
    """
    with drafts_locked(workspace, ref):
        try:
            line = read_line(workspace, ref)
        except LedgerError:
            raise
        except DataError:
            if _discard_damaged(workspace, ref):
                return None
            raise
        entry = record_attempt(workspace, line, actor, why, now)
        remove_draft(workspace, line.draft.name, line.draft.draft)
    return entry


def _discard_damaged(workspace: Workspace, ref: str) -> bool:
    """Remove a draft that cannot be read; false where there is none of that id."""
    name, selector = parse_ref(ref)
    draft = selector.partition(":")[2]
    if draft not in list_drafts(workspace, name):
        return False
    remove_draft(workspace, name, draft)
    return True


def record_attempt(
    workspace: Workspace, line: DraftLineage, actor: Actor, why: str, now: Clock
) -> LedgerEntry | None:
    """Record wording that was measured and is given up; None if it never was.

    What was tried on a cohort counts for what is claimed on it, so it stands in the
    ledger; doing it twice for the same wording adds nothing.
    """
    draft = line.draft
    checked = _own_check(workspace, draft)
    if checked is None or not checked.runs:
        return None
    for entry in read_ledger(workspace.ledger):
        same = entry.payload.get("digest") == draft.digest
        if entry.action == "draft_rejected" and entry.subject == draft.ref and same:
            return entry
    commitment = weigh(checked, actor, why)
    return reject_draft(workspace, draft, line.parent.ref, commitment, now=now)


def _own_check(workspace: Workspace, draft: PromptVersion) -> Checked | None:
    """Return the last check if it was of this very wording."""
    checked = find_check(workspace, draft)
    if checked is None or checked.ground.draft_digest != draft.digest:
        return None
    return checked

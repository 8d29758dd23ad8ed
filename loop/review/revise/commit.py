"""The last step of a revision: a checked draft is committed, kept, or given up.

One at a time, and recorded: what was measured stands in the ledger whatever becomes of
it.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, LedgerError, LoopError
from loop.core.files import locked
from loop.core.git import commit_paths
from loop.core.ledger import (
    Actor,
    Event,
    LedgerEntry,
    append_event,
    append_events,
    read_ledger,
)
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import find_user, read_users
from loop.core.people.users import name_key
from loop.labels.cohort import read_cohort
from loop.labels.reference import reference_path
from loop.prompts.catalog import (
    file_digests,
    latest_version,
    list_drafts,
    parse_ref,
    renumbered,
    version_folder,
    write_version,
)
from loop.prompts.version import PromptVersion
from loop.review.revise.check_record import (
    Checked,
    evidence,
    find_check,
    name_stale,
    read_asking,
)
from loop.review.revise.copies import check_copies, new_wording
from loop.review.revise.draft_files import (
    DraftLineage,
    drafts_locked,
    find_commit,
    is_recorded,
    overtaken,
    read_line,
    remove_draft,
    require_current,
)
from loop.review.submit import load_verdicts
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
    workspace: WorkspacePaths,
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
    StoreError
        A verdict cannot be read; no version was made.
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
            why = decision.why.strip() or line.draft.why.strip()
            commitment = replace(
                weigh(checked, actor, why, override=decision.override.strip()),
                verdict_roles=_count_roles(workspace, store, checked, actor),
            )
            draft = replace(line.draft, why=why)
            version = _commit(workspace, draft, commitment, now())
        run = run_prompt(
            workspace,
            version.ref,
            checked.ground.cohort,
            engine=held,
            actor=actor.name,
        )
    return CommittedDraft(version, run.run_id)


def _require_check(
    workspace: WorkspacePaths, store: Store, line: DraftLineage
) -> Checked:
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
    workspace: WorkspacePaths, line: DraftLineage, checked: Checked
) -> None:
    """Look for copied wording again: a holdout may have been imported since."""
    wording = new_wording(line.parent, line.draft)
    check_copies(workspace, wording, read_cohort(workspace, checked.ground.cohort))


def _commit(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    commitment: Commitment,
    when: datetime,
) -> PromptVersion:
    actor = commitment.actor
    decided = replace(draft, author=actor.name, time=format_time(when))
    if draft.author != actor.name:
        found = {**commitment.evidence, "drafted_by": draft.author}
        commitment = replace(commitment, evidence=found)
    version = commit_draft(workspace, decided, commitment, now=lambda: when)
    remove_draft(workspace, draft.name, draft.draft)
    return version


def _count_roles(
    workspace: WorkspacePaths, store: Store, checked: Checked, actor: Actor
) -> dict[str, int]:
    """Return roles to the verdicts of a draft that people in these roles gave.

    The roles are those that the users of the workspace have now. Whoever commits and
    is no user has the role of this act; of anybody else none is known, and their
    verdicts are not counted.
    """
    users = read_users(workspace)
    counts: Counter[str] = Counter()
    for verdict in load_verdicts(store, checked.ground.cohort, checked.ground.verdicts):
        user = find_user(users, verdict.reviewer)
        if user is not None:
            counts[" and ".join(user.roles)] += 1
        elif name_key(verdict.reviewer) == name_key(actor.name):
            counts[actor.role] += 1
    return dict(sorted(counts.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Who decides on a draft, on what evidence, and with which objections."""

    actor: Actor
    reason: str
    evidence: Mapping[str, Any]
    """Counts and run ids for the ledger; never case text."""

    objections: Sequence[str] = ()
    """What stands against a commit; empty when the check passed."""

    override_reason: str = ""
    """Why it is committed all the same."""

    verdict_roles: Mapping[str, int] = field(default_factory=dict)
    """Roles to the verdicts that people in these roles gave; a giver without a known
    role is not counted."""


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


def commit_draft(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    commitment: Commitment,
    *,
    now: Clock = utc_now,
) -> PromptVersion:
    """Return `draft` committed as the version after its parent.

    The number is taken under a lock, and only if the parent is still the newest
    version: of two people who revise the same version at once, the first commits and
    the second keeps a draft. The draft folder is removed after the ledger entry is
    written; before that, in a git repository, version, ledger and references corrected
    on the way are committed. A commit of this draft that was killed half-way is
    finished.

    Raises
    ------
    ConflictError
        Another version was committed since the draft was begun.
    LedgerError
        The ledger is broken; no version was made.
    WriteError
        The workspace cannot be written; no version was made.
    """
    lock = workspace.open_private() / "locks" / f"prompt-{draft.name}.lock"
    with locked(lock):
        version = find_commit(workspace, draft) or _make(workspace, draft)
        if not is_recorded(workspace, version):
            _record(workspace, version, draft, commitment, now)
        _commit_to_git(workspace, version, commitment)
    shutil.rmtree(version_folder(workspace, draft), ignore_errors=True)
    return version


def _make(workspace: WorkspacePaths, draft: PromptVersion) -> PromptVersion:
    """Write `draft` as the version after its parent; refuse where there is one."""
    latest = latest_version(workspace, draft.name)
    if latest.digest != draft.parent:
        raise overtaken(draft, latest)
    return write_version(workspace, renumbered(draft, latest.number + 1))


def _record(
    workspace: WorkspacePaths,
    version: PromptVersion,
    draft: PromptVersion,
    commitment: Commitment,
    now: Clock,
) -> None:
    """Write the ledger entries; if that fails, take the version back."""
    folder = version_folder(workspace, version)
    payload: dict[str, Any] = {
        "digest": version.digest,
        "parent": version.parent,
        "draft": draft.ref,
        "verdicts": list(version.verdicts),
        "files": file_digests(folder),
        "check": dict(commitment.evidence),
    }
    if commitment.verdict_roles:
        payload["verdict_roles"] = dict(commitment.verdict_roles)
    if commitment.objections:
        payload["override"] = {
            "reason": commitment.override_reason,
            "overridden": list(commitment.objections),
        }
    committed = Event(
        action="draft_committed",
        subject=version.ref,
        reason=commitment.reason,
        payload=payload,
    )
    # The commit comes first and names the override: none can stand without it.
    events = [committed]
    if commitment.objections:
        events.append(_override(version, commitment))
    try:
        append_events(workspace.ledger, events, commitment.actor, now=now)
    except LoopError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _override(version: PromptVersion, commitment: Commitment) -> Event:
    return Event(
        action="override",
        subject=version.ref,
        reason=commitment.override_reason,
        payload={
            "digest": version.digest,
            "overridden": list(commitment.objections),
        },
    )


def _commit_to_git(
    workspace: WorkspacePaths, version: PromptVersion, commitment: Commitment
) -> None:
    """Make one git commit of what belongs to `version`, where there is git."""
    paths = [version_folder(workspace, version), workspace.ledger]
    paths += _corrected_references(workspace, version)
    message = f"{version.ref}\n\n{commitment.reason}\n\nDigest: {version.digest}"
    commit_paths(workspace.root, paths, message, commitment.actor.name)


def _corrected_references(
    workspace: WorkspacePaths, version: PromptVersion
) -> list[Path]:
    """Return the references corrected since the version before `version`."""
    found: dict[Path, None] = {}
    for entry in read_ledger(workspace.ledger):
        prompt, _, number = entry.subject.partition("@v")
        if entry.action == "draft_committed" and prompt == version.name:
            if int(number) == version.number:
                break
            found.clear()
        elif entry.action == "reference_revised" and "corrects" in entry.payload:
            name, _, number = entry.subject.rpartition(":ref")
            found[reference_path(workspace, name, int(number))] = None
    return [path for path in found if path.is_file()]


def keep_draft(
    workspace: WorkspacePaths,
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
    workspace: WorkspacePaths,
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


def _discard_damaged(workspace: WorkspacePaths, ref: str) -> bool:
    """Remove a draft that cannot be read; false where there is none of that id."""
    name, selector = parse_ref(ref)
    draft = selector.partition(":")[2]
    if draft not in list_drafts(workspace, name):
        return False
    remove_draft(workspace, name, draft)
    return True


def record_attempt(
    workspace: WorkspacePaths, line: DraftLineage, actor: Actor, why: str, now: Clock
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


def _own_check(workspace: WorkspacePaths, draft: PromptVersion) -> Checked | None:
    """Return the last check if it was of this very wording."""
    checked = find_check(workspace, draft)
    if checked is None or checked.ground.draft_digest != draft.digest:
        return None
    return checked


def reject_draft(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    parent_ref: str,
    commitment: Commitment,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that `draft` was checked and stays a draft, and return the entry.

    Without objections it was kept on request. What was tried and did not hold belongs
    to the history of a prompt as much as what did.

    Raises
    ------
    LedgerError
        The ledger is broken.
    WriteError
        It cannot be written; the draft is there all the same.
    """
    event = Event(
        action="draft_rejected",
        subject=draft.ref,
        reason=commitment.reason,
        payload={
            "digest": draft.digest,
            "parent": draft.parent,
            "parent_ref": parent_ref,
            "verdicts": list(draft.verdicts),
            "objections": list(commitment.objections),
            "check": dict(commitment.evidence),
        },
    )
    return append_event(workspace.ledger, event, commitment.actor, now=now)

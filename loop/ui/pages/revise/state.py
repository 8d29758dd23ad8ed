"""What the page Revise rests on: drafts, checks, open verdicts, and what was begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.people.users import Right
from loop.labels.cohort import CohortRole, read_cohort
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.prompts.instructions import instructions_text
from loop.prompts.version import PromptVersion
from loop.review.revise.check_record import (
    Checked,
    Recalled,
    recall_check,
)
from loop.review.revise.draft import Drafted, DraftInfo, list_open_drafts, show_draft
from loop.review.revise.edit import guide_text, settings_text
from loop.review.status import KeptVerdict, find_open
from loop.review.verdict import Asked, Judgement, read_asked
from loop.review.working import drop_working, keep_working, read_working
from loop.run.jobs import JobRecord, JobState, list_jobs
from loop.run.manifest import ran_freely
from loop.ui.background import JobProgress
from loop.ui.context import AppContext
from loop.ui.wiring import Visit

DEFAULT_ENGINE = "rules"

INSTRUCTIONS, SETTINGS = "(instructions)", "(settings)"
"""What may be edited besides guides; no label id has a bracket."""


class OpenedDraft(NamedTuple):
    """Which draft a browser tab has open, and what of it was shown there: no texts."""

    draft: str = ""
    """Its reference; empty when none is open."""

    digest: str = ""
    """Of the wording that was shown."""

    checked: str = ""
    """Time of the check that was shown; empty without one."""

    label: str = ""
    """Label whose guide is in the editor; or `INSTRUCTIONS` or `SETTINGS`."""

    guide: str = ""
    """Digest of that guide, or of that text, as it was loaded."""

    running: bool = False
    """Whether a check or a commit of it was under way when it was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseState:
    """What is there, for one visitor."""

    visit: Visit
    prompt: str
    cohort: str
    names: Mapping[str, str]
    """Label id to its published name."""

    engines: tuple[str, ...]
    """Engines a draft may be checked with, the one of the newest run first."""

    infos: tuple[DraftInfo, ...]
    info: DraftInfo | None = None
    """The draft that is open."""

    drafted: Drafted | None = None
    """It as it stands; None when it cannot be read."""

    recalled: Recalled | None = None
    """Its last check."""

    label: str = ""
    """As in `OpenedDraft`."""

    running: bool = False
    """Whether the draft was being checked or committed when this was read."""

    @property
    def context(self) -> AppContext:
        """Where everything is."""
        return self.visit.context

    @property
    def may(self) -> bool:
        """Whether the visitor may make, check and commit drafts."""
        return self.visit.user.may(Right.REVISE)

    @property
    def actor(self) -> Actor:
        """How a decision of the visitor's would stand in the ledger."""
        user = self.visit.user
        return user.actor(Right.REVISE) if self.may else self.visit.actor

    @property
    def checked(self) -> Checked | None:
        """The check of the open draft that holds now."""
        recalled = self.recalled
        return recalled.checked if recalled and not recalled.stale else None

    @property
    def opened(self) -> OpenedDraft:
        """What a browser tab that shows this has seen."""
        if self.info is None:
            return OpenedDraft()
        return OpenedDraft(
            draft=self.info.ref,
            digest=self.drafted.draft.digest if self.drafted else "",
            checked=self.checked.time if self.checked else "",
            label=self.label,
            guide=guide_mark(self.guide),
            running=self.running,
        )

    @property
    def guide(self) -> str:
        """What is in the editor, as it stands in the draft."""
        if self.drafted is None or not self.label:
            return ""
        return guide_of(self.drafted.draft, self.label)

    @property
    def editing(self) -> str:
        """What is in the editor, in words."""
        names = {INSTRUCTIONS: "the instructions", SETTINGS: "call plan and contract"}
        name = self.names.get(self.label, self.label)
        return names.get(self.label, f"the guide of {name}")


def guide_of(draft: PromptVersion, label: str) -> str:
    """Return what `label` stands for as text; empty where there is nothing.

    Instructions leave out what is in their frozen blocks.
    """
    if label == SETTINGS:
        return settings_text(draft)
    if label == INSTRUCTIONS:
        try:
            return instructions_text(draft, folded=True)
        except DataError:
            return instructions_text(draft)
    guide = draft.guide(label)
    return guide_text(guide) if guide else ""


def guide_mark(text: str) -> str:
    """Return what tells one text of a guide from another; empty for none."""
    return digest_text(text)[:16] if text else ""


def read_state(
    visit: Visit, prompt: str, cohort: str, ref: str, label: str = ""
) -> ReviseState:
    """Return the page as it stands, with the draft `ref` open if it is there.

    Parameters
    ----------
    label
        What to edit, as in `OpenedDraft`; something that the draft changes when empty.

    Raises
    ------
    LoopError
        The ledger, the store or the settings cannot be read.
    """
    context = visit.context
    infos = list_open_drafts(context.workspace, context.store, prompt)
    info = next((one for one in infos if one.ref == ref), None)
    engines = known_engines(context, prompt, cohort)
    drafted = _describe(context, info, engines[0])
    return ReviseState(
        visit=visit,
        prompt=prompt,
        cohort=cohort,
        names=_names(context, cohort),
        engines=engines,
        infos=infos,
        info=info,
        drafted=drafted,
        recalled=(
            recall_check(context.workspace, context.store, ref)
            if info and drafted
            else None
        ),
        label=_label(drafted, label),
    )


def _names(context: AppContext, cohort: str) -> dict[str, str]:
    """Return the names of labels, or of the categories of a cohort of pairs."""
    workspace = context.workspace
    asked: Asked
    try:
        asked = read_asked(workspace, read_cohort(workspace, cohort))
    except DataError:
        # No cohort, or a damaged one: other parts of the page say so.
        asked = read_taxonomy(workspace.labels)
    listed = asked.labels if isinstance(asked, Taxonomy) else asked.categories
    return {one.id: one.name for one in listed}


def _describe(
    context: AppContext, info: DraftInfo | None, engine: str
) -> Drafted | None:
    if info is None or info.problem:
        return None
    try:
        return show_draft(context.workspace, info.ref, engine)
    except DataError:
        # Removed or damaged since it was listed; the list says so next time.
        return None


def _label(drafted: Drafted | None, wanted: str) -> str:
    if drafted is None:
        return ""
    if wanted in (INSTRUCTIONS, SETTINGS, *drafted.draft.labels):
        return wanted
    changed = [one.label for one in drafted.diff.guides]
    known = [one for one in changed if one in drafted.draft.labels]
    known += [INSTRUCTIONS] * bool(drafted.diff.templates)
    return next(iter((*known, *drafted.draft.labels)), "")


def known_engines(context: AppContext, prompt: str, cohort: str) -> tuple[str, ...]:
    """Return the engines that finished a run here; those of this cohort come first.

    Only these: a name typed into a browser could send case texts to any address.
    """
    runs = context.store.find_runs(finished=True)
    own = f"{prompt}@"
    runs.sort(
        key=lambda r: not (r.spec.cohort == cohort and r.spec.prompt.startswith(own))
    )
    names = dict.fromkeys(run.spec.engine for run in runs)
    usable = [name for name in names if name.partition(":")[0] != "replay"]
    return tuple(dict.fromkeys((*usable, DEFAULT_ENGINE)))


def answered_freely(context: AppContext, engine: str, cohort: str) -> bool:
    """Return whether the last run of `engine` on `cohort` needed no schema."""
    asked = engine, cohort
    runs = context.store.find_runs(finished=True)
    last = next((r for r in runs if (r.spec.engine, r.spec.cohort) == asked), None)
    return last is not None and ran_freely(context.workspace, last.id)


def is_dev(context: AppContext, cohort: str) -> bool:
    """Return whether prompts may be revised on `cohort`."""
    try:
        return read_cohort(context.workspace, cohort).role is CohortRole.DEV
    except DataError:
        return False


class OpenVerdicts(NamedTuple):
    """The open verdicts by what they are for."""

    wording: tuple[KeptVerdict, ...]
    """To build a draft from."""

    reference: tuple[KeptVerdict, ...]
    """To correct the reference from."""


def read_open_verdicts(state: ReviseState) -> OpenVerdicts:
    """Return the open verdicts on the prompt and cohort; none where not revised."""
    if not is_dev(state.context, state.cohort):
        return OpenVerdicts((), ())
    found = find_open(
        state.context.workspace, state.context.store, state.prompt, state.cohort
    )
    wrong = [v for v in found if v.verdict.judgement is Judgement.REFERENCE_WRONG]
    return OpenVerdicts(tuple(v for v in found if v not in wrong), tuple(wrong))


def keep_known(verdicts: Sequence[KeptVerdict], ids: Sequence[str]) -> tuple[str, ...]:
    """Return those of `ids` that are among `verdicts`."""
    known = {one.id for one in verdicts}
    return tuple(one for one in ids if one in known)


def commit_key(draft: str) -> str:
    """Return the name under which a draft is committed."""
    return f"commit {draft}"


def is_running(context: AppContext, draft: str) -> bool:
    """Return whether a draft is being checked or committed."""
    checking = find_check(context, draft)
    committing = find_running(context, commit_key(draft))
    return bool(checking and checking.state.open) or committing is not None


def find_check(context: AppContext, draft: str) -> JobRecord | None:
    """Return the newest job that checks a draft, wherever it was started."""
    context.queue.dispatch()
    return next(iter(list_jobs(context.store, draft=draft, most=1)), None)


def check_progress(job: JobRecord) -> JobProgress | None:
    """Return how far a check is, or why it came to nothing; None once it is done."""
    if job.state is JobState.DONE:
        return None
    return JobProgress(
        what=job.step or f"job {job.number} waits until its engine is free",
        done=job.done,
        total=job.total,
        finished=not job.state.open,
        error=job.message,
        by=job.actor,
    )


def find_failed(context: AppContext, key: str) -> JobProgress | None:
    """Return the work with this key if it came to nothing."""
    progress = context.jobs.progress_of(key)
    return progress if progress and progress.finished and progress.error else None


def find_running(context: AppContext, key: str) -> JobProgress | None:
    """Return the work with this key while it goes on."""
    progress = context.jobs.progress_of(key)
    return progress if progress and not progress.finished else None


class UnsavedGuide(NamedTuple):
    """A guide, or another text, that somebody has begun to write."""

    text: str
    guide: str
    """Digest of the guide it was begun from."""

    saved: str
    """UTC, ISO 8601."""


def keep_draft_open(visit: Visit, prompt: str, cohort: str, ref: str) -> None:
    """Remember which draft is looked at; empty for none.

    Other pages call it to have this page open on a draft.
    """
    _keep(visit, f"revise:draft:{prompt}:{cohort}", draft=ref)


def find_draft_open(visit: Visit, prompt: str, cohort: str) -> str:
    """Return the draft looked at last, or nothing."""
    return str(_read(visit, f"revise:draft:{prompt}:{cohort}").get("draft") or "")


def keep_ticked(visit: Visit, cohort: str, ids: Sequence[str]) -> None:
    """Remember which verdicts are ticked."""
    _keep(visit, f"revise:ticked:{cohort}", ids=list(ids))


def find_ticked(visit: Visit, cohort: str) -> frozenset[str]:
    """Return the ids of the verdicts that are ticked."""
    ids = _read(visit, f"revise:ticked:{cohort}").get("ids")
    return frozenset(ids if isinstance(ids, list) else ())


def keep_why(visit: Visit, ref: str, why: str) -> None:
    """Remember the reason typed for a decision on a draft."""
    _keep(visit, f"revise:why:{ref}", why=why)


def find_why(visit: Visit, ref: str) -> str:
    """Return the reason typed so far."""
    return str(_read(visit, f"revise:why:{ref}").get("why") or "")


def keep_typed(visit: Visit, opened: OpenedDraft, text: str) -> None:
    """Remember the guide that is being written."""
    _keep(visit, _guide(opened.draft, opened.label), text=text, guide=opened.guide)


def find_typed(visit: Visit, ref: str, label: str) -> UnsavedGuide | None:
    """Return the guide that was being written, if it was not saved."""
    found = read_working(visit.context.store, visit.actor, _guide(ref, label))
    if found is None:
        return None
    text, guide = found.payload.get("text"), found.payload.get("guide")
    return UnsavedGuide(str(text or ""), str(guide or ""), found.saved)


def drop_typed(visit: Visit, ref: str, label: str) -> None:
    """Forget the guide that was being written."""
    drop_working(visit.context.store, visit.actor, _guide(ref, label))


def drop_why(visit: Visit, ref: str) -> None:
    """Forget the reason typed for a decision that is made."""
    drop_working(visit.context.store, visit.actor, f"revise:why:{ref}")


def _guide(ref: str, label: str) -> str:
    return f"revise:guide:{ref}:{label}"


def _keep(visit: Visit, subject: str, **payload: object) -> None:
    keep_working(visit.context.store, visit.actor, subject, payload, visit.context.now)


def _read(visit: Visit, subject: str) -> dict[str, object]:
    found = read_working(visit.context.store, visit.actor, subject)
    return dict(found.payload) if found else {}

"""One round of revision: verdicts in, a checked draft and perhaps a version out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from loop.core.check_findings import Finding
from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import CohortRole
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import (
    DraftRequest,
    Outline,
    find_start,
    outline_draft,
    tell_about,
)
from loop.review.revise.check import Check
from loop.review.revise.check_record import Checked
from loop.review.revise.commit import (
    CommitDecision,
    commit_checked,
    reject_draft,
    weigh,
)
from loop.review.revise.copies import Copy
from loop.review.revise.corrections import correct_from_verdicts, require_corrigible
from loop.review.revise.draft_files import write_draft
from loop.review.revise.run_check import (
    Examination,
    check_draft_ref,
    require_measurable,
)
from loop.review.revise.wording import Authorship
from loop.review.status import find_kept
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Verdict
from loop.review.verdict_files import VerdictFile, read_verdicts
from loop.run.asking import EngineOptions, HeldEngine, hold_engine
from loop.run.store import Store, open_store
from loop.run.task import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRequest:
    """What one round of revision works on."""

    prompt: str
    """The newest version, ``"extractor"``, or a draft, ``"extractor@draft:<id>"``."""

    cohort: str = ""
    """Dev cohort of the cases; the one the verdict file names when empty."""

    verdicts: Path | None = None
    """File with the clinicians' verdicts; None for a draft or for `contract` alone."""

    kept: tuple[str, ...] = ()
    """Ids of kept verdicts to apply, besides those of the file."""

    contract: str = ""
    """Output contract to answer in from now on; empty to keep the version's."""

    engine: str = "rules"
    asking: EngineOptions = field(default_factory=EngineOptions)
    """How the engine is asked, both for the parent and for the draft."""

    draws: int | None = None
    """How often to ask an engine with chance each version; None for the protocol's."""

    max_draws: int | None = None
    """How often at most, while the check is undecided; None for the protocol's."""

    why: str = ""
    """Reason for the new version; a count of verdicts when empty."""

    skip_blocked: bool = False
    """Whether verdicts that cannot be applied are left out, and named in the notes."""

    override: str = ""
    """Reason to commit although the check objects; empty for not."""

    keep_draft: bool = False
    """Stop before the commit even if the check passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What one round of revision did."""

    parent: PromptVersion
    draft: PromptVersion | None
    """None when no verdict asked for other wording."""

    version: PromptVersion | None
    """The committed version; None when it stayed a draft."""

    verdicts: tuple[Verdict, ...]
    """Of this round."""

    cohort: str
    reference: int | None
    """Number of the new reference version; None when none was corrected."""

    corrections: int
    """Reference labels that verdicts call wrong."""

    diff: VersionDiff | None = None
    lint: tuple[Finding, ...] = ()
    copies: tuple[Copy, ...] = ()
    """Long copies from cases of the cohort: a warning."""

    skipped: tuple[tuple[str, CohortRole], ...] = ()
    """Cohorts that could not be looked at for copies: their texts are elsewhere."""

    earlier: tuple[Verdict, ...] = ()
    """Verdicts of the rounds that made the draft this one began with."""

    notes: tuple[str, ...] = ()
    check: Check | None = None
    """None when lint found errors: nothing was run."""

    runs: tuple[str, ...] = ()
    """Ids of the runs: parent, draft and, once committed, the version."""

    objections: tuple[str, ...] = ()
    """Why it may not be committed; not empty after an override."""

    @property
    def done(self) -> bool:
        """Whether everything the verdicts asked for is in force."""
        return self.draft is None or self.version is not None


def revise(
    workspace: WorkspacePaths,
    request: RevisionRequest,
    actor: Actor,
    *,
    watch: Watch | None = None,
    now: Clock = utc_now,
) -> Revision:
    """Apply verdicts to the newest version and commit the result if it holds.

    What can be refused is refused first. Then, in this order: the verdicts are kept in
    the store; wrong reference labels make a new reference version; wording makes a
    draft, which is linted, run against its parent on the cohort and committed if the
    check passes or is overridden. A draft that stays one is recorded in the ledger.

    Raises
    ------
    DataError
        A file, verdict, label or case is wrong; says which. Nothing was changed.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        Another version was committed meanwhile; the draft is kept.
    """
    read_ledger(workspace.ledger)
    _require_task(workspace, request)
    file = _read(request, actor)
    with open_store(workspace) as store:
        request = replace(request, cohort=request.cohort or file.cohort)
        turn = _Round(workspace, store, request, actor, now)
        outline = turn.outline(file)
        start = turn.record(outline)
        start = replace(start, notes=(*_stale(file, outline), *start.notes))
        if start.draft is None:
            return start
        with hold_engine(workspace, request.engine, request.asking) as engine:
            how = Examination(
                engine=request.engine,
                asking=request.asking,
                draws=request.draws,
                max_draws=request.max_draws,
                watch=(lambda _: watch) if watch else None,
                cohort=start.cohort,
            )
            return turn.settle(start, how, engine)


def _require_task(workspace: WorkspacePaths, request: RevisionRequest) -> None:
    """Refuse an old version, and a round that would change nothing."""
    base, _ = find_start(workspace, request.prompt)
    if not (base.draft or request.verdicts or request.kept or request.contract):
        raise DataError(
            f"nothing says what to change in {base.ref}. Name a file with --verdicts, "
            "take the kept verdicts with --kept, or name another output contract with "
            "--contract."
        )


def _read(request: RevisionRequest, actor: Actor) -> VerdictFile:
    if request.verdicts is None:
        return VerdictFile((), "", "", "")
    return read_verdicts(request.verdicts, reviewer=actor.name)


def _stale(file: VerdictFile, outline: Outline) -> tuple[str, ...]:
    """Say if the verdicts were made on another version than they are applied to."""
    base = outline.start.base
    if file.prompt in ("", base.ref, base.name):
        return ()
    return (f"the verdicts were made on {file.prompt} and applied to {base.ref}",)


class _Round(NamedTuple):
    """One round: where, what, who and when."""

    workspace: WorkspacePaths
    store: Store
    request: RevisionRequest
    actor: Actor
    now: Clock

    @property
    def wanted(self) -> DraftRequest:
        """What the draft is made from, besides verdicts."""
        one = self.request
        return DraftRequest(
            prompt=one.prompt,
            cohort=one.cohort,
            contract=one.contract,
            why=one.why,
            skip_blocked=one.skip_blocked,
        )

    def outline(self, file: VerdictFile) -> Outline:
        """Return the draft of this round; refuses everything that can be refused."""
        request = self.request
        kept = find_kept(self.store, request.cohort, request.kept)
        by = Authorship(self.actor.name, self.now(), request.why)
        outline = outline_draft(
            self.workspace, self.store, self.wanted, (*file.verdicts, *kept), by
        )
        require_corrigible(self.workspace, outline.cohort, outline.verdicts)
        if outline.changed:
            parent = outline.start.parent
            require_measurable(self.workspace, outline.cohort, parent, request.engine)
        return outline

    def record(self, outline: Outline) -> Revision:
        """Keep the verdicts, correct the reference, write the draft, in this order."""
        self._keep(outline)
        reference, corrections = correct_from_verdicts(
            self.workspace, outline.cohort, outline.verdicts, self.actor
        )
        draft = None
        if outline.changed:
            about = tell_about(self.wanted, outline)
            draft = write_draft(self.workspace, outline.draft, about)
        return Revision(
            parent=outline.start.parent,
            draft=draft,
            version=None,
            verdicts=outline.verdicts,
            cohort=outline.cohort.name,
            reference=reference,
            corrections=corrections,
            copies=outline.copies,
            skipped=outline.skipped,
            earlier=outline.earlier,
            notes=outline.notes,
        )

    def _keep(self, outline: Outline) -> None:
        """Store the verdicts before anything is tried with them."""
        if outline.verdicts:
            file = self.request.verdicts
            circumstances = VerdictContext(
                cohort=outline.cohort.name,
                prompt=outline.start.base.ref,
                source=file.name if file else "",
            )
            save_verdicts(self.store, outline.verdicts, circumstances, self.now())

    def settle(
        self, revision: Revision, how: Examination, engine: HeldEngine
    ) -> Revision:
        """Check the draft and commit it, or record why it stays a draft."""
        draft, parent = revision.draft, revision.parent
        if draft is None:
            return revision
        place, store, ref = self.workspace, self.store, draft.ref
        checked = check_draft_ref(
            place, store, ref, self.actor, how, engine=engine, now=self.now
        )
        revision = replace(
            revision,
            diff=diff_versions(parent, draft),
            lint=checked.lint,
            check=checked.check,
            runs=checked.runs,
            objections=checked.objections,
        )
        weighed = weigh(checked, self.actor, draft.why)
        if not self._accepts(checked):
            reject_draft(place, draft, parent.ref, weighed, now=self.now)
            return revision
        decision = CommitDecision(override=self.request.override)
        try:
            version, run = commit_checked(
                place, store, ref, self.actor, decision, engine=engine, now=self.now
            )
        except ConflictError as error:
            late = (*weighed.objections, str(error))
            weighed = replace(weighed, objections=late)
            reject_draft(place, draft, parent.ref, weighed, now=self.now)
            raise
        return replace(revision, version=version, runs=(*revision.runs, run))

    def _accepts(self, checked: Checked) -> bool:
        if checked.check is None or self.request.keep_draft:
            return False
        return bool(self.request.override) or checked.passed

"""One round of revision: verdicts in, a checked draft and perhaps a version out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.inputs import read_inputs
from loop.labels.cohort import Cohort, Role, read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import latest_version, read_version, write_version
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.lint import Level, LintFinding, lint_version
from loop.prompts.version import PromptVersion
from loop.review.files import VerdictFile, check_verdicts, read_verdicts
from loop.review.record import (
    Circumstances,
    read_anchors,
    save_verdicts,
)
from loop.review.verdict import Verdict
from loop.revise.answers import answered_in, comparable_parent
from loop.revise.check import Check, check_draft, summarise
from loop.revise.commit import Commitment, commit_draft, reject_draft
from loop.revise.copies import Copy, check_copies, new_wording
from loop.revise.corrections import correct_from_verdicts
from loop.revise.draft import Authorship, build_draft
from loop.revise.ready import (
    name_forgotten,
    name_unseen,
    object_to_unseen,
    read_earlier,
    require_corrigible,
    require_measurable,
)
from loop.revise.shares import Measured, Rule
from loop.run.asking import Asking, HeldEngine, hold_engine
from loop.run.store import open_store
from loop.run.task import Watch, run_prompt

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one round of revision works on."""

    prompt: str
    """The newest version, ``"extractor"``, or a draft, ``"extractor@draft:<id>"``."""

    cohort: str = ""
    """Dev cohort of the cases; the one the verdict file names when empty."""

    verdicts: Path | None = None
    """File with the clinicians' verdicts; None for a draft or for `contract` alone."""

    contract: str = ""
    """Output contract to answer in from now on; empty to keep the version's."""

    engine: str = "rules"
    asking: Asking = field(default_factory=Asking)
    """How the engine is asked, both for the parent and for the draft."""

    why: str = ""
    """Reason for the new version; a count of verdicts when empty."""

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
    lint: tuple[LintFinding, ...] = ()
    copies: tuple[Copy, ...] = ()
    """Long copies from cases of the cohort: a warning."""

    skipped: tuple[tuple[str, Role], ...] = ()
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
    workspace: Workspace,
    request: Request,
    actor: Actor,
    *,
    watch: Watch | None = None,
    now: Clock = lambda: datetime.now(UTC),
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
    base, parent = _start(workspace, request)
    file = _read(request, actor)
    cohort = _dev_cohort(workspace, request.cohort or file.cohort)
    request = replace(request, cohort=cohort.name)
    verdicts = check_verdicts(
        file.verdicts, read_taxonomy(workspace.labels), frozenset(cohort.case_ids)
    )
    why = request.why or (base.why if base.draft else _why(verdicts, request.contract))
    built = build_draft(base, verdicts, Authorship(actor.name, now(), why))
    built = built._replace(draft=answered_in(built.draft, request.contract))
    copies, skipped = check_copies(workspace, new_wording(parent, built.draft), cohort)
    changed = built.draft.digest != parent.digest
    require_corrigible(workspace, cohort, verdicts)
    if changed:
        require_measurable(workspace, cohort, parent, request.engine)
    earlier = read_earlier(workspace, base, cohort)
    _keep(workspace, verdicts, _Occasion(request, base), now)
    reference, corrections = correct_from_verdicts(workspace, cohort, verdicts, actor)
    start = Revision(
        parent=parent,
        draft=None,
        version=None,
        verdicts=verdicts,
        cohort=cohort.name,
        reference=reference,
        corrections=corrections,
        copies=copies,
        skipped=skipped,
        earlier=earlier,
        notes=(
            *_stale(file, base),
            *name_forgotten(base, earlier),
            *name_unseen(skipped),
            *built.notes,
        ),
    )
    if not changed:
        return start
    draft = write_version(workspace, built.draft)
    with hold_engine(workspace, request.engine, request.asking) as engine:
        ask = _Ask(workspace, cohort.name, engine, watch)
        revision = _examine(ask, replace(start, draft=draft))
        return _decide(ask, revision, request, actor, now=now)


class _Ask(NamedTuple):
    """How the prompt's versions are run."""

    workspace: Workspace
    cohort: str
    engine: HeldEngine
    watch: Watch | None

    def run(self, prompt: str) -> str:
        """Run `prompt` over the cohort and return the run's id."""
        summary = run_prompt(
            self.workspace,
            prompt,
            self.cohort,
            engine=self.engine,
            watch=self.watch,
        )
        return summary.run_id


def _dev_cohort(workspace: Workspace, name: str) -> Cohort:
    if not name:
        raise DataError(
            "nothing says which cohort the cases belong to. Name a dev cohort with "
            "--cohort, or write `cohort: NAME` at the top of the verdict file."
        )
    cohort = read_cohort(workspace, name)
    if cohort.role is not Role.DEV:
        raise DataError(
            f"cohort {name} has the role {cohort.role}: prompts are revised on a dev "
            "cohort only. Name one with --cohort."
        )
    return cohort


class _Start(NamedTuple):
    base: PromptVersion
    """Version or draft whose wording the edits apply to."""

    parent: PromptVersion
    """Newest committed version, which the result is measured against."""


def _start(workspace: Workspace, request: Request) -> _Start:
    """Return what to revise and what to measure against; refuse an old version."""
    base = read_version(workspace, request.prompt)
    newest = latest_version(workspace, base.name)
    if base.draft and base.parent != newest.digest:
        raise ConflictError(
            f"{newest.ref} by {newest.author} was committed since {base.ref}. "
            f"The draft is kept; see `ranloop diff {newest.ref} {base.ref}` and revise "
            f"{newest.ref}."
        )
    if not base.draft and base.ref != newest.ref:
        raise ConflictError(
            f"{base.ref} is not the newest version: {newest.ref} by {newest.author} "
            f"is. Revise that one: `ranloop revise {base.name} ...`."
        )
    if not (base.draft or request.verdicts or request.contract):
        raise DataError(
            f"nothing says what to change in {base.ref}. Name a file with --verdicts, "
            "or another output contract with --contract."
        )
    return _Start(base, newest)


def _read(request: Request, actor: Actor) -> VerdictFile:
    if request.verdicts is None:
        return VerdictFile((), "", "", "")
    return read_verdicts(request.verdicts, reviewer=actor.name)


def _stale(file: VerdictFile, base: PromptVersion) -> tuple[str, ...]:
    """Say if the verdicts were made on another version than they are applied to."""
    if file.prompt in ("", base.ref, base.name):
        return ()
    return (f"the verdicts were made on {file.prompt} and applied to {base.ref}",)


def _why(verdicts: Sequence[Verdict], contract: str) -> str:
    """Return a reason from counts: comments are private and may quote a case."""
    if not verdicts and contract:
        return f"answers in the contract {contract}"
    edited = [verdict for verdict in verdicts if verdict.edits]
    labels = list(dict.fromkeys(verdict.label for verdict in edited))
    plural = "" if len(edited) == 1 else "s"
    about = ", ".join(labels) if len(labels) <= 4 else f"{len(labels)} labels"
    return f"{len(edited)} verdict{plural} on {about or 'no label'}"


class _Occasion(NamedTuple):
    request: Request
    base: PromptVersion


def _keep(
    workspace: Workspace, verdicts: Sequence[Verdict], on: _Occasion, now: Clock
) -> None:
    """Store the verdicts before anything is tried with them."""
    if not verdicts:
        return
    circumstances = Circumstances(
        cohort=on.request.cohort,
        prompt=on.base.ref,
        source=on.request.verdicts.name if on.request.verdicts else "",
    )
    with open_store(workspace) as store:
        save_verdicts(store, verdicts, circumstances, now())


def _examine(ask: _Ask, revision: Revision) -> Revision:
    """Lint the draft and, if it can be run, measure it against its parent."""
    workspace = ask.workspace
    draft = revision.draft
    if draft is None:
        return revision
    taxonomy = read_taxonomy(workspace.labels)
    frozen = comparable_parent(revision.parent, draft)
    lint = lint_version(draft, labels=taxonomy.extracted, parent=frozen)
    revision = replace(
        revision, lint=tuple(lint), diff=diff_versions(revision.parent, draft)
    )
    if any(found.level is Level.ERROR for found in lint):
        return replace(revision, objections=("lint found errors",))
    runs = (ask.run(revision.parent.ref), ask.run(draft.ref))
    verdicts = (*revision.earlier, *revision.verdicts)
    check = measure_draft(workspace, runs, verdicts)
    if draft.contract != revision.parent.contract:
        check = replace(check, gain_required=False)
    objections = (*check.reasons, *object_to_unseen(revision.skipped))
    return replace(revision, runs=runs, check=check, objections=objections)


def measure_draft(
    workspace: Workspace, runs: Sequence[str], verdicts: Sequence[Verdict]
) -> Check:
    """Return the check of two runs, parent's first, against the newest reference."""
    before = read_inputs(workspace, runs[0])
    number = before.cohort.reference
    after = read_inputs(workspace, runs[1], reference=number)
    with open_store(workspace) as store:
        anchors = read_anchors(store, before.cohort.name)
    protocol = before.protocol
    rule = Rule(
        accuracy=protocol.margins.accuracy,
        sensitivity=protocol.margins.sensitivity,
        confidence=protocol.confidence,
        max_unanswered=protocol.max_unanswered,
    )
    return check_draft(Measured(before.pairs, after.pairs), verdicts, anchors, rule)


def _decide(
    ask: _Ask,
    revision: Revision,
    request: Request,
    actor: Actor,
    *,
    now: Clock,
) -> Revision:
    """Commit the draft if nothing objects, or if the objections are overridden."""
    workspace, draft = ask.workspace, revision.draft
    if draft is None:
        return revision
    commitment = Commitment(
        actor=actor,
        reason=draft.why.strip() or "no reason was given",
        evidence=_evidence(revision, request),
        objections=revision.objections,
        override_reason=request.override,
    )
    if not _accepted(revision, request):
        reject_draft(workspace, draft, revision.parent.ref, commitment, now=now)
        return revision
    try:
        version = commit_draft(workspace, draft, commitment, now=now)
    except ConflictError:
        late = replace(commitment, objections=("another version was committed first",))
        reject_draft(workspace, draft, revision.parent.ref, late, now=now)
        raise
    last = ask._replace(watch=None).run(version.ref)
    return replace(revision, version=version, runs=(*revision.runs, last))


def _accepted(revision: Revision, request: Request) -> bool:
    if revision.check is None or request.keep_draft:
        return False
    return bool(request.override) or not revision.objections


def _evidence(revision: Revision, request: Request) -> dict[str, object]:
    """Return what the decision rests on, for the ledger: counts, names and run ids."""
    found: dict[str, object] = {
        "cohort": request.cohort,
        "engine": request.engine,
        "runs": list(revision.runs),
        "not_searched_for_copies": [name for name, _ in revision.skipped],
    }
    return found | (summarise(revision.check) if revision.check else {})

"""One round of revision: verdicts in, a checked draft and perhaps a version out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.evaluate.inputs import read_inputs
from loop.labels.cohort import Cohort, Role, read_cohort
from loop.labels.reference import correct_reference, list_references
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.library import latest_version, read_version, write_version
from loop.prompts.lint import Level, LintFinding, lint_version
from loop.prompts.version import PromptVersion
from loop.review.files import VerdictFile, check_verdicts, read_verdicts
from loop.review.record import Circumstances, read_anchors, save_verdicts
from loop.review.verdict import Judgement, Verdict
from loop.revise.check import Check, Measured, Rule, check_draft, summarise
from loop.revise.commit import Commitment, commit_draft
from loop.revise.copies import Copy, check_copies
from loop.revise.draft import Authorship, build_draft
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
    """File with the clinicians' verdicts; None only for a draft edited by hand."""

    engine: str = "rules"
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
    cohort: str
    reference: int | None
    """Number of the new reference version; None when none was corrected."""

    corrections: int
    """Reference labels that verdicts call wrong."""

    diff: VersionDiff | None = None
    lint: tuple[LintFinding, ...] = ()
    copies: tuple[Copy, ...] = ()
    """Long copies from cases of the cohort: a warning."""

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

    In this order: the verdicts are kept in the store; wrong reference labels make a
    new reference version; wording makes a draft, which is linted, run against its
    parent on the cohort and committed if the check passes or is overridden.

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
    copies = check_copies(workspace, verdicts, cohort)
    why = request.why or (base.why if base.draft else _why(verdicts))
    built = build_draft(base, verdicts, Authorship(actor.name, now(), why))
    _keep(workspace, verdicts, _Occasion(request, base), now)
    reference, corrections = _correct(workspace, cohort, verdicts, actor)
    start = Revision(
        parent=parent,
        draft=None,
        version=None,
        verdicts=verdicts,
        cohort=cohort.name,
        reference=reference,
        corrections=corrections,
        copies=copies,
        notes=(*_stale(file, base), *built.notes),
    )
    if built.draft.digest == parent.digest:
        return start
    draft = write_version(workspace, built.draft)
    revision = _examine(workspace, replace(start, draft=draft), request, watch)
    return _decide(workspace, revision, request, actor, now=now)


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
    if not base.draft and request.verdicts is None:
        raise DataError(
            f"nothing says what to change in {base.ref}. Name a file with --verdicts."
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


def _why(verdicts: Sequence[Verdict]) -> str:
    """Return a reason from counts: comments are private and may quote a case."""
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


def _correct(
    workspace: Workspace, cohort: Cohort, verdicts: Sequence[Verdict], actor: Actor
) -> tuple[int | None, int]:
    """Make the reference version that verdicts ask for; return it and the count."""
    wrong = [v for v in verdicts if v.judgement is Judgement.REFERENCE_WRONG]
    corrections = {
        (case_id, verdict.label): Mark(verdict.correct_value.value)
        for verdict in wrong
        if verdict.correct_value
        for case_id in verdict.case_ids
    }
    if not corrections:
        return None, 0
    before = list_references(workspace, cohort.name)
    reviewers = ", ".join(dict.fromkeys(verdict.reviewer for verdict in wrong))
    number = correct_reference(
        workspace,
        cohort,
        corrections,
        actor=actor,
        reason=f"{len(corrections)} reference labels judged wrong by {reviewers}",
    )
    return (None if number in before else number), len(corrections)


def _examine(
    workspace: Workspace, revision: Revision, request: Request, watch: Watch | None
) -> Revision:
    """Lint the draft and, if it can be run, measure it against its parent."""
    draft = revision.draft
    if draft is None:
        return revision
    taxonomy = read_taxonomy(workspace.labels)
    lint = lint_version(draft, labels=taxonomy.extracted, parent=revision.parent)
    revision = replace(
        revision, lint=tuple(lint), diff=diff_versions(revision.parent, draft)
    )
    if any(found.level is Level.ERROR for found in lint):
        return replace(revision, objections=("lint found errors",))
    runs = tuple(
        run_prompt(
            workspace, ref, request.cohort, engine=request.engine, watch=watch
        ).run_id
        for ref in (revision.parent.ref, draft.ref)
    )
    check = measure_draft(workspace, runs, revision.verdicts)
    return replace(revision, runs=runs, check=check, objections=check.reasons)


def measure_draft(
    workspace: Workspace, runs: Sequence[str], verdicts: Sequence[Verdict]
) -> Check:
    """Return the check of two runs, parent's first, against the newest reference."""
    before, after = (read_inputs(workspace, run) for run in runs)
    with open_store(workspace) as store:
        anchors = read_anchors(store, before.cohort.name)
    rule = Rule(before.protocol.margins.accuracy, before.protocol.confidence)
    measured = Measured(before.pairs, after.pairs)
    return check_draft(measured, verdicts, anchors, rule)


def _decide(
    workspace: Workspace,
    revision: Revision,
    request: Request,
    actor: Actor,
    *,
    now: Clock,
) -> Revision:
    """Commit the draft if nothing objects, or if the objections are overridden."""
    draft, check = revision.draft, revision.check
    if draft is None or check is None or request.keep_draft:
        return revision
    if revision.objections and not request.override:
        return revision
    commitment = Commitment(
        actor=actor,
        reason=draft.why,
        evidence=summarise(check)
        | {"cohort": request.cohort, "engine": request.engine}
        | {"runs": list(revision.runs)},
        overridden=revision.objections,
        override_reason=request.override,
    )
    version = commit_draft(workspace, draft, commitment, now=now)
    last = run_prompt(workspace, version.ref, request.cohort, engine=request.engine)
    return replace(revision, version=version, runs=(*revision.runs, last.run_id))

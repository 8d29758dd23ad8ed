"""The first step of a revision: a draft from verdicts, or from guides by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.judge.shots import ShotRequest, add_shots
from loop.labels.cohort import Cohort, CohortRole, read_cohort
from loop.prompts.catalog import latest_version, read_version
from loop.prompts.lint import has_errors
from loop.prompts.version import PromptVersion
from loop.review.revise.blocked import Blocked, find_blocked, name_blocked
from loop.review.revise.copies import (
    Copy,
    CopyCheck,
    check_copies,
    name_unseen,
    new_wording,
)
from loop.review.revise.draft import Drafted, answered_in, describe, lint_draft
from loop.review.revise.draft_files import (
    DraftMetadata,
    DraftOrigin,
    overtaken,
    write_draft,
)
from loop.review.revise.machine_made import refuse_copied
from loop.review.revise.wording import Authorship, build_draft
from loop.review.status import find_kept
from loop.review.submit import (
    VerdictContext,
    load_verdicts,
    require_distinct_reviewers,
    save_verdicts,
)
from loop.review.verdict import Judgement, Verdict, check_verdicts, read_asked
from loop.run.pool_shots import keep_injected
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRequest:
    """What a draft is made from."""

    prompt: str
    """The newest version, ``"extractor"``, or a draft, ``"extractor@draft:<id>"``."""

    cohort: str
    """Dev cohort of the cases."""

    verdicts: tuple[Verdict | str, ...] = ()
    """Verdicts, or the ids of kept ones."""

    guides: Mapping[str, Guide] = field(default_factory=dict)
    """Guides written by hand, by label; each takes the place of the old one."""

    contract: str = ""
    """Output contract to answer in from now on; empty to keep the version's."""

    shots: ShotRequest | None = None
    """Examples to show from now on, in the place of those there are; None to keep
    these."""

    drop_shots: bool = False
    """Whether no examples are shown from now on."""

    why: str = ""
    """Reason for the change; a count of verdicts when empty."""

    engine: str = "rules"
    """Engine whose tokens are counted."""

    origin: DraftOrigin | None = None
    """Where the wording comes from; None to tell by the verdicts."""

    skip_blocked: bool = False
    """Whether verdicts that cannot be applied are left out and named in the notes;
    else they are refused, by id."""


class Start(NamedTuple):
    """What is revised."""

    base: PromptVersion
    """Version or draft whose wording the edits apply to."""

    parent: PromptVersion
    """Newest committed version, which the result is measured against."""


class Outline(NamedTuple):
    """A draft that is built and checked for copies, and not written yet."""

    start: Start
    cohort: Cohort
    draft: PromptVersion
    verdicts: tuple[Verdict, ...]
    """Of this round."""

    earlier: tuple[Verdict, ...]
    """Of the rounds that made the draft this one began with."""

    copies: tuple[Copy, ...]
    skipped: tuple[tuple[str, CohortRole], ...]
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether the draft says anything that its parent does not."""
        return self.draft.digest != self.start.parent.digest


def begin_draft(
    workspace: WorkspacePaths,
    store: Store,
    request: DraftRequest,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Drafted:
    """Return the new draft, written to its folder; nothing is run or recorded.

    A draft that nothing was asked of says what its parent says, to be edited by hand.
    Verdicts that call the reference wrong change no wording and are left out; see
    `correct_reference_from`.

    Raises
    ------
    DataError
        A verdict, label, case or cohort is wrong; says which. Nothing was changed.
    OverlapError
        Wording is copied from a case of a cohort that is not for development; what an
        optimizer made, from any case or from the comment of a verdict.
    ConflictError
        `request.prompt` is not the newest version, or a draft of an older one.
    StoreError
        The store cannot be read or written.
    WriteError
        The workspace cannot be written; there is no draft.
    """
    read_ledger(workspace.ledger)
    _require_text(request.guides)
    given = _gather(store, request)
    by = Authorship(actor.name, now(), request.why)
    given, left_out, _ = _sort_out(workspace, request, given, copies=False)
    wanted = [v for v in given if v.judgement is not Judgement.REFERENCE_WRONG]
    outline = outline_draft(workspace, store, request, wanted, by)
    if request.origin is DraftOrigin.OPTIMIZER:
        wording = new_wording(outline.start.parent, outline.draft)
        refuse_copied(workspace, store, wording, outline.cohort.name, outline.copies)
    outline = outline._replace(notes=(*_name_skipped(left_out), *outline.notes))
    _keep(store, given, outline, by.when)
    keep_injected(workspace, outline.draft)
    draft = write_draft(workspace, outline.draft, tell_about(request, outline))
    made = describe(workspace, outline.start.parent, draft, request.engine)
    return replace(
        made,
        copies=outline.copies,
        skipped=outline.skipped,
        notes=(*_name_left_out(given), *outline.notes, *made.notes),
    )


def outline_draft(
    workspace: WorkspacePaths,
    store: Store,
    request: DraftRequest,
    verdicts: Sequence[Verdict],
    by: Authorship,
) -> Outline:
    """Return the draft as it would be; refuses what can be refused, writes nothing.

    Without a reason in `by` a draft keeps that of the draft it began with, or gets one
    from counts.

    Raises
    ------
    LoopError
        As `begin_draft` does.
    """
    start = find_start(workspace, request.prompt)
    base, parent = start
    cohort = require_dev(workspace, request.cohort)
    require_distinct_reviewers(workspace, store, verdicts)
    verdicts, left_out, looked = _sort_out(workspace, request, verdicts)
    why = by.why or (base.why if base.draft else _explain_request(verdicts, request))
    built = build_draft(base, verdicts, by._replace(why=why))
    draft = answered_in(with_guides(built.draft, request.guides), request.contract)
    draft = _with_examples(workspace, draft, request)
    if looked is None or request.guides or request.contract:
        looked = check_copies(workspace, new_wording(parent, draft), cohort)
    copies, skipped = looked
    earlier = read_earlier(store, base, cohort)
    notes = (
        *_name_skipped(left_out),
        *name_forgotten(base, earlier),
        *name_unseen(skipped),
        *built.notes,
    )
    return Outline(
        start, cohort, draft, tuple(verdicts), earlier, copies, skipped, notes
    )


def _with_examples(
    workspace: WorkspacePaths, draft: PromptVersion, request: DraftRequest
) -> PromptVersion:
    """Return `draft` with the shots that are asked for, or without any."""
    if request.shots is not None:
        return replace(add_shots(workspace, draft, request.shots), composed=False)
    return replace(draft, shots=None, shown=()) if request.drop_shots else draft


def _explain_request(verdicts: Sequence[Verdict], request: DraftRequest) -> str:
    """Return a reason where nobody gave one."""
    shots = request.shots
    if verdicts or request.contract or not (shots or request.drop_shots):
        return explain(verdicts, request.contract)
    if shots is None:
        return "no longer shows examples"
    return f"shows {shots.kind} examples of the pool {shots.pool}"


class _Sorted(NamedTuple):
    """Verdicts, checked, and what of them cannot be applied."""

    verdicts: tuple[Verdict, ...]
    blocked: tuple[Blocked, ...]
    copies: CopyCheck | None
    """What was looked for in their wording; None where nobody looked."""


def _sort_out(
    workspace: WorkspacePaths,
    request: DraftRequest,
    verdicts: Sequence[Verdict],
    *,
    copies: bool = True,
) -> _Sorted:
    """Return the verdicts that can be applied, checked, and those that cannot.

    Raises
    ------
    DataError
        Some cannot, and the request does not say to leave them out; names their ids.
    """
    base, parent = find_start(workspace, request.prompt)
    cohort = require_dev(workspace, request.cohort)
    asked, cases = read_asked(workspace, cohort), frozenset(cohort.case_ids)
    looked, trouble = None, None
    try:
        checked = check_verdicts(verdicts, asked, cases)
        draft = build_draft(base, checked, Authorship("", utc_now(), "")).draft
        if copies:
            looked = check_copies(workspace, new_wording(parent, draft), cohort)
        linted = lint_draft(workspace, parent, draft) if request.skip_blocked else ()
        if not has_errors(linted):
            return _Sorted(checked, (), looked)
    except DataError as error:
        trouble = error
    found = find_blocked(workspace, base, verdicts, cohort)
    if trouble is not None and not (found and request.skip_blocked):
        said = f"{trouble} {name_blocked(found)}" if found else str(trouble)
        raise type(trouble)(said) from trouble
    ids = {one.id for one in found}
    usable = [verdict for verdict in verdicts if verdict.id not in ids]
    return _Sorted(check_verdicts(usable, asked, cases), found, None)


def blocked_of(
    workspace: WorkspacePaths, store: Store, request: DraftRequest
) -> tuple[Blocked, ...]:
    """Return the verdicts of `request` that cannot be applied, each with its reason.

    Raises
    ------
    LoopError
        The prompt, the cohort, what verdicts may name or a kept one cannot be read.
    """
    return find_blocked(
        workspace,
        find_start(workspace, request.prompt).base,
        _gather(store, request),
        require_dev(workspace, request.cohort),
    )


def _name_skipped(blocked: Sequence[Blocked]) -> tuple[str, ...]:
    return tuple(f"not applied: verdict {one.words}" for one in blocked)


def _require_text(guides: Mapping[str, Guide]) -> None:
    """Refuse half characters, which no file can hold."""
    for label, guide in guides.items():
        for char in json.dumps(guide.identity, ensure_ascii=False):
            if "\ud800" <= char <= "\udfff":
                raise DataError(
                    f"guide {label}: holds U+{ord(char):04X}, half of a character. "
                    "Write the wording again."
                )


def find_start(workspace: WorkspacePaths, prompt: str) -> Start:
    """Return what to revise and what to measure against; refuse an old version.

    Raises
    ------
    ConflictError
        `prompt` is not the newest version, or a draft of an older one.
    """
    base = read_version(workspace, prompt)
    newest = latest_version(workspace, base.name)
    if base.draft and base.parent != newest.digest:
        raise overtaken(base, newest)
    if not base.draft and base.ref != newest.ref:
        raise ConflictError(
            f"{base.ref} is not the newest version: {newest.ref} by {newest.author} "
            f"is. Revise that one: `ranloop revise {base.name} ...`."
        )
    return Start(base, newest)


def require_dev(workspace: WorkspacePaths, name: str) -> Cohort:
    """Return the cohort `name`, which must be one to revise on.

    Raises
    ------
    DataError
        It is unnamed, unknown, or not a dev cohort.
    """
    if not name:
        raise DataError(
            "nothing says which cohort the cases belong to. Name a dev cohort with "
            "--cohort, or write `cohort: NAME` at the top of the verdict file."
        )
    cohort = read_cohort(workspace, name)
    if cohort.role is not CohortRole.DEV:
        raise DataError(
            f"cohort {name} has the role {cohort.role}: prompts are revised on a dev "
            "cohort only. Name one with --cohort."
        )
    return cohort


def with_guides(version: PromptVersion, guides: Mapping[str, Guide]) -> PromptVersion:
    """Return `version` with these guides in place of its own; new labels come last.

    Raises
    ------
    ValueError
        A guide stands under another label than its own.
    """
    for label, guide in guides.items():
        if guide.label != label:
            raise ValueError(f"the guide of {guide.label} is listed under {label}")
    kept = tuple(guides.get(guide.label, guide) for guide in version.guides)
    added = tuple(one for label, one in guides.items() if label not in version.labels)
    return replace(version, guides=(*kept, *added))


def tell_about(request: DraftRequest, outline: Outline) -> DraftMetadata:
    """Return what is kept of how a draft began."""
    origin = DraftOrigin.VERDICTS if outline.draft.verdicts else DraftOrigin.HAND
    return DraftMetadata(
        cohort=outline.cohort.name,
        origin=request.origin or origin,
        begun_by=outline.draft.author,
        begun=outline.draft.time,
    )


def explain(verdicts: Sequence[Verdict], contract: str) -> str:
    """Return a reason from counts: comments are private and may quote a case."""
    if not verdicts:
        return f"answers in the contract {contract}" if contract else "edited by hand"
    edited = [verdict for verdict in verdicts if verdict.edits.in_guide]
    ruling = [verdict.id for verdict in verdicts if verdict.edits.general_rules]
    labels = list(dict.fromkeys(verdict.label for verdict in edited))
    about = ", ".join(labels) if len(labels) <= 4 else f"{len(labels)} labels"
    said = [f"{counted(len(edited), 'verdict')} on {about or 'no label'}"]
    if ruling:
        named = f"general rule asked for by verdict {', '.join(ruling)}"
        said = [*said, named] if edited else [named]
    return "; ".join(said)


def _gather(store: Store, request: DraftRequest) -> tuple[Verdict, ...]:
    """Return the verdicts asked for, kept ones read from the store."""
    ids = [one for one in request.verdicts if isinstance(one, str)]
    kept = find_kept(store, request.cohort, ids)
    return (*kept, *(one for one in request.verdicts if isinstance(one, Verdict)))


def _name_left_out(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    ids = [v.id for v in verdicts if v.judgement is Judgement.REFERENCE_WRONG]
    if not ids:
        return ()
    return (
        f"the reference is called wrong by {', '.join(ids)}: no wording changes for "
        "that; correct the reference with those verdicts",
    )


def _keep(
    store: Store, verdicts: Sequence[Verdict], outline: Outline, when: datetime
) -> None:
    """Store verdicts before anything is tried with them; known ones stay."""
    if verdicts:
        circumstances = VerdictContext(
            cohort=outline.cohort.name, prompt=outline.start.base.ref, source=""
        )
        save_verdicts(store, verdicts, circumstances, when)


def read_earlier(
    store: Store, base: PromptVersion, cohort: Cohort
) -> tuple[Verdict, ...]:
    """Return the kept verdicts that the draft `base` names: their cases count still."""
    if not base.draft or not base.verdicts:
        return ()
    return load_verdicts(store, cohort.name, base.verdicts)


def name_forgotten(base: PromptVersion, earlier: Sequence[Verdict]) -> tuple[str, ...]:
    """Name the verdicts of a draft that the store does not have."""
    kept = {verdict.id for verdict in earlier}
    lost = [one for one in base.verdicts if base.draft and one not in kept]
    if not lost:
        return ()
    return (
        f"{base.ref} names verdicts that are not kept here for this cohort: "
        f"{', '.join(lost)}. Their cases are not checked.",
    )

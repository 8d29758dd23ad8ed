"""What a search proposed for a draft, and what clinicians decided on each proposal.

A draft of an optimizer says all that was proposed. A clinician accepts a mined term, as
it is or in other words, and it becomes a kept verdict under their name, like any other.
A whole guide has no place in a verdict: accepted it stays in the draft, in other words
if they like; if refused, it is removed from the draft and the parent's guide is
restored. What is refused, with a reason, is not proposed again. Decisions apply to
everyone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import ValidationError

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_text
from loop.core.errors import ConflictError, DataError
from loop.core.files import locked
from loop.core.ledger import Actor, LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.evaluate.failures import open_for_review
from loop.optimize.estimate import PARTS, PartScores
from loop.optimize.nested_search import GuideEffect
from loop.optimize.proposals import INSTRUCTIONS, name_proposal
from loop.optimize.refusals import (
    Refusal,
    allow_proposal,
    read_refusals,
    refuse_proposal,
)
from loop.optimize.search_record import read_finished
from loop.optimize.search_report import (
    ENGINES,
    FINDINGS,
    AskedEngine,
    SearchFindings,
    price_engines,
)
from loop.optimize.terms import ProposalKind, TermProposal
from loop.prompts.catalog import find_parent, read_version
from loop.prompts.diff import PromptChange, diff_versions
from loop.prompts.instructions import instructions_text
from loop.prompts.version import PromptVersion
from loop.review.revise.begin import with_guides
from loop.review.revise.blocked import refuse_blocked
from loop.review.revise.draft_files import (
    Acceptance,
    DraftOrigin,
    keep_accepted,
    read_about,
)
from loop.review.revise.edit import GuideEdit, SettingsEdit, edit_draft, guide_text
from loop.review.status import KeptVerdict, VerdictState, read_kept
from loop.review.submit import VerdictContext, submit_verdict
from loop.review.verdict import build_from_form, read_asked
from loop.run.store import Store


class Gain(NamedTuple):
    """Gain on cases that were not searched; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideProposal:
    """One guide that a search proposed, or the general instructions."""

    id: str
    label: str
    """The label, or ``"system.jinja"``."""

    text: str
    """As `guide_text` or `instructions_text` writes it."""

    said: str
    """What the draft says by now."""

    old: str
    """What the draft says without it."""

    changes: tuple[PromptChange, ...]
    """From the version that the search began with to what was proposed."""

    effect: GuideEffect
    accepted: Acceptance | None

    @property
    def kind(self) -> ProposalKind:
        """A whole guide."""
        return ProposalKind.GUIDE

    @property
    def inside(self) -> bool:
        """Whether the draft says it, or something else in place of what was there."""
        return self.said != self.old

    @property
    def mark(self) -> str:
        """Digest of what the draft says, to know it again."""
        return digest_text(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSearch:
    """The finished search that a draft came from."""

    key: str
    optimizer: str
    parent: str
    """Version that it began with, for example ``"extractor@v7"``."""

    cohort: str
    engine: str
    seed: int
    candidates: int
    """Different wordings that were tested or scored."""

    engines: tuple[AskedEngine, ...]
    """What was asked, see `SearchReport.engines`."""

    calls: int | None
    """Cases that the optimizer scored; None where it does not count them."""

    parts: Mapping[str, PartScores]
    """``search``, ``select`` and ``estimate``: mean score over the splits."""

    score: str
    """What the scores are: ``"macro-F1"``, of a judge ``"negative distance"``."""

    gain: Gain
    """On the pooled estimate cases, with its interval."""

    proposals: tuple[TermProposal, ...]
    """Mined terms; none where whole guides were proposed."""

    guides: tuple[GuideProposal, ...] = ()
    """Whole guides; none where terms were mined."""

    draft: str = ""
    """Reference of the draft."""

    @property
    def excess(self) -> float | None:
        """By how much the score on the cases searched is above that of the others."""
        searched, honest = (self.parts[part].found for part in ("search", "estimate"))
        return None if searched is None or honest is None else searched - honest

    def proposal(self, name: str) -> TermProposal:
        """Return the proposal with this id.

        Raises
        ------
        DataError
            The search did not propose it.
        """
        for one in self.proposals:
            if one.id == name:
                return one
        raise _no_proposal(name)

    def guide(self, name: str) -> GuideProposal:
        """Return the proposed guide with this id.

        Raises
        ------
        DataError
            The search did not propose it.
        """
        for one in self.guides:
            if one.id == name:
                return one
        raise _no_proposal(name)


class DecisionKind(StrEnum):
    """How a proposal was decided."""

    ACCEPTED = "accepted"
    EDITED = "edited"
    REFUSED = "refused"


class ProposalDecision(NamedTuple):
    """What was decided on one proposal."""

    kind: DecisionKind
    by: str
    time: str
    """UTC, ISO 8601."""

    said: str
    """The wording that was taken, or the reason of a refusal."""

    verdict: str = ""
    """Id of the kept verdict; empty for a refusal."""


def find_search(workspace: WorkspacePaths, draft: PromptVersion) -> DraftSearch | None:
    """Return the search that a draft came from.

    Returns
    -------
    DraftSearch | None
        None where no optimizer wrote the draft, or the folder of the search is gone.

    Raises
    ------
    DataError
        The result of the search was changed by hand, or cannot be read.
    LedgerError
        The ledger is broken.
    """
    about = read_about(workspace, draft)
    if about.origin is not DraftOrigin.OPTIMIZER:
        return None
    best: tuple[tuple[bool, bool, int, int, int], DraftSearch] | None = None
    for entry in read_ledger(workspace.ledger):
        if entry.action != "searched" or entry.payload.get("cohort") != about.cohort:
            continue
        if entry.subject.partition("@")[0] != draft.name:
            continue
        if about.search not in ("", entry.payload.get("key")):
            continue
        data = read_finished(workspace, entry)
        if data is None or entry.time > about.begun:
            continue
        findings = _read_findings(entry, data)
        begun_there = entry.payload.get("prompt_digest") == draft.parent
        kept = any(set(one.guides) <= set(draft.guides) for one in findings.kept)
        said = _count_said(draft, findings.proposals)
        # Where nothing names the search of a draft, what it says tells them apart.
        rank = begun_there, kept, said, said - len(findings.proposals), entry.seq
        if best is None or rank > best[0]:
            best = rank, _describe(workspace, draft, entry, data, findings)
    return best[1] if best else None


def _read_findings(entry: LedgerEntry, data: Mapping[str, Any]) -> SearchFindings:
    try:
        return FINDINGS.validate_python(data["result"])
    except ValidationError as error:
        raise DataError(
            f"the search {str(entry.payload.get('key'))[:12]} was kept by another "
            "version of ranloop. Search again to decide on its proposals here."
        ) from error


def _describe(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    entry: LedgerEntry,
    data: Mapping[str, Any],
    findings: SearchFindings,
) -> DraftSearch:
    spec, estimate, effort = data["spec"], findings.estimate, findings.effort
    return DraftSearch(
        key=str(entry.payload["key"]),
        optimizer=str(spec["optimizer"]),
        parent=str(spec["prompt"]),
        cohort=str(spec["cohort"]),
        engine=str(spec["engine"]),
        seed=int(spec["seed"]),
        candidates=findings.candidates,
        engines=price_engines(
            workspace, ENGINES.validate_python(data.get("engines", ()))
        ),
        calls=effort.calls or None,
        parts={part: estimate.mean(part) for part in PARTS},
        score=estimate.score,
        gain=Gain(*estimate.gain[:3]),
        proposals=findings.proposals,
        guides=tuple(_list_guides(workspace, draft, spec, findings)),
        draft=draft.ref,
    )


def _list_guides(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    spec: Mapping[str, Any],
    findings: SearchFindings,
) -> Iterator[GuideProposal]:
    """Yield the guides of the wording that a draft was made of."""
    about = read_about(workspace, draft)
    try:
        base = read_version(workspace, str(spec["prompt"]))
    except DataError:
        return
    if base.digest != spec["prompt_digest"]:
        return
    wanted = about.wording or draft.digest
    for kept in findings.kept:
        made = with_guides(base, {guide.label: guide for guide in kept.guides})
        made = replace(made, system=kept.system or base.system)
        if made.digest == wanted:
            break
    else:
        return
    effects = {one.component: one for one in kept.effects}
    changes = _list_changes(base, made)
    # A draft that was brought to a newer version goes back to that one.
    old = base if base.draft else find_parent(workspace, draft) or base
    for name in (name for name in changes if name in effects):
        proposal = name_proposal(name, made.guide(name) or made.system)
        yield GuideProposal(
            id=proposal,
            label=name,
            text=_text_of(made, name),
            said=_text_of(draft, name),
            old=_text_of(old, name),
            changes=changes[name],
            effect=effects[name],
            accepted=about.accepted.get(proposal),
        )


def _list_changes(
    base: PromptVersion, made: PromptVersion
) -> dict[str, tuple[PromptChange, ...]]:
    """Return component to what is changed of it."""
    found = diff_versions(base, made)
    changes = {one.label: one.changes for one in found.guides}
    lines = [line for one in found.templates for line in one.lines]
    if lines:
        changes[INSTRUCTIONS] = tuple(
            PromptChange(line[0], "instruction line", line[1:])
            for line in lines
            if line[:1] in ("+", "-")
        )
    return changes


def _text_of(version: PromptVersion, component: str) -> str:
    if component == INSTRUCTIONS:
        return instructions_text(version)
    guide = version.guide(component)
    return guide_text(guide) if guide else ""


def _count_said(draft: PromptVersion, proposals: Sequence[TermProposal]) -> int:
    """Return how many of the proposals a draft says."""
    said = {
        (guide.label, wording)
        for guide in draft.guides
        for wording in (
            *guide.terms,
            *guide.exclusions,
            *(one.phrase for one in guide.clarifications),
        )
    }
    return sum((one.label, one.wording) in said for one in proposals)


def read_decisions(
    workspace: WorkspacePaths, kept: Sequence[KeptVerdict], search: DraftSearch
) -> dict[str, ProposalDecision]:
    """Return id of a proposal to what was decided on it, whoever decided.

    A verdict that was withdrawn decides nothing; where several do, or somebody refused
    the proposal later, the newest counts.

    Parameters
    ----------
    kept
        The verdicts on the cohort of the search, oldest first.

    Raises
    ------
    DataError
        The file of the refusals was damaged.
    """
    prompt = search.parent.partition("@")[0]
    refusals: Mapping[str, Refusal] = read_refusals(workspace, prompt)
    found = {
        name: ProposalDecision(DecisionKind.REFUSED, one.by, one.time, one.reason)
        for name, one in refusals.items()
    }
    known = {one.id: one for one in search.proposals}
    for one in kept:
        name = _proposal_of(one)
        if (
            name not in known
            or one.state is VerdictState.WITHDRAWN
            or one.circumstances.prompt.partition("@")[0] != prompt
        ):
            continue
        if name in refusals and refusals[name].time > one.created:
            continue
        edits = one.verdict.edits
        rules = [rule.phrase for rule in edits.clarifications]
        said = ", ".join((*edits.terms, *edits.exclusions, *rules))
        same = said == known[name].wording
        kind = DecisionKind.ACCEPTED if same else DecisionKind.EDITED
        by = one.verdict.reviewer
        found[name] = ProposalDecision(kind, by, one.created, said, one.id)
    wanted = {*known, *(one.id for one in search.guides)}
    for guide in search.guides:
        taken, refused = guide.accepted, found.get(guide.id)
        # The same guide may stand in several drafts: the last word counts.
        if taken is not None and (refused is None or taken.time > refused.time):
            same = guide.said == guide.text
            kind = DecisionKind.ACCEPTED if same else DecisionKind.EDITED
            found[guide.id] = ProposalDecision(kind, taken.by, taken.time, "")
    return {name: one for name, one in found.items() if name in wanted}


def _source(search: DraftSearch, proposal: TermProposal) -> str:
    return f"{search.optimizer} {search.key[:16]}: {proposal.id}"


def _proposal_of(kept: KeptVerdict) -> str:
    """Return the id of the proposal that a verdict accepts; empty for none."""
    return kept.circumstances.source.partition(": ")[2]


def accept_proposal(
    workspace: WorkspacePaths,
    store: Store,
    search: DraftSearch,
    proposal: str,
    actor: Actor,
    *,
    wording: str | None = None,
    now: Clock = utc_now,
) -> str:
    """Keep a verdict that asks for a proposal, and return the verdict's id.

    It is on the cases that speak for the proposal. Those on which the actor has said
    something of the label stay with what they said: a later verdict of the same
    reviewer would take them over. A refusal of the proposal is forgotten.

    Parameters
    ----------
    proposal
        Id of the proposal, for example ``"edema:term:fluid"``.
    wording
        What to say instead; None for the wording as it was proposed.

    Raises
    ------
    ConflictError
        Somebody has accepted it already.
    DataError
        The search did not propose it, or no draft could be made of the wording.
    OverlapError
        The wording is copied from a case of a cohort that is not for development.
    StoreError
        The store cannot be written.
    """
    one = search.proposal(proposal)
    words = one.wording if wording is None else wording
    if not words.strip():
        raise DataError(f"nothing is written in place of {quoted(one.wording)}.")
    cohort = open_for_review(workspace, search.cohort)
    with _deciding(workspace, search):
        kept = read_kept(store, workspace, search.cohort)
        _require_open(read_decisions(workspace, kept, search).get(one.id))
        own = {
            pair
            for other in kept
            if other.verdict.reviewer == actor.name
            and other.state is not VerdictState.WITHDRAWN
            for pair in other.pairs
        }
        verdict = build_from_form(
            {
                **one.form(words),
                "cases": [case for case in one.support if (case, one.label) not in own],
            },
            reviewer=actor.name,
            asked=read_asked(workspace, cohort),
            case_ids=frozenset(cohort.case_ids),
        )
        refuse_blocked(workspace, (verdict,), prompt=search.parent, cohort=cohort)
        made_on = VerdictContext(search.cohort, search.parent, _source(search, one))
        key = submit_verdict(store, verdict, made_on, now)
        allow_proposal(workspace, search.parent.partition("@")[0], one.id)
    return key


def refuse_found(
    workspace: WorkspacePaths,
    store: Store,
    search: DraftSearch,
    proposal: str,
    reason: str,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Refusal:
    """Remember that a proposal of a search was refused, see `refuse_proposal`.

    Raises
    ------
    ConflictError
        Somebody has accepted it.
    DataError
        The search did not propose it, there is no reason, or a file was damaged.
    WriteError
        The workspace cannot be written.
    """
    one = search.proposal(proposal)
    _require_reason(reason)
    prompt = search.parent.partition("@")[0]
    with _deciding(workspace, search):
        kept = read_kept(store, workspace, search.cohort)
        _require_open(read_decisions(workspace, kept, search).get(one.id))
        return refuse_proposal(workspace, prompt, one.id, reason, actor, now=now)


def accept_guide(
    workspace: WorkspacePaths,
    search: DraftSearch,
    proposal: str,
    actor: Actor,
    *,
    text: str | None = None,
    now: Clock = utc_now,
) -> None:
    """Leave a proposed guide in the draft, or put it back, and remember who did.

    A refusal of it is forgotten. An earlier check of the draft is stale where the draft
    changes by it.

    Parameters
    ----------
    proposal
        Id of the proposed guide.
    text
        What to say instead, as the draft would; None for what it says, or for what was
        proposed if it was taken out.

    Raises
    ------
    ConflictError
        Somebody else edited the guide meanwhile.
    DataError
        The search did not propose it, or the text is no guide of that label.
    OverlapError
        The text is copied from a case of a cohort that is not for development.
    WriteError
        The workspace cannot be written.
    """
    one = search.guide(proposal)
    wanted = text if text is not None else one.said if one.inside else one.text
    with _deciding(workspace, search):
        _write(workspace, search, one, wanted, actor, now)
        accepted = Acceptance(actor.name, format_time(now()))
        keep_accepted(workspace, search.draft, one.id, accepted)
        allow_proposal(workspace, search.parent.partition("@")[0], one.id)


def refuse_guide(
    workspace: WorkspacePaths,
    search: DraftSearch,
    proposal: str,
    reason: str,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Refusal:
    """Take a proposed guide out of the draft, and remember that it was refused.

    Raises
    ------
    ConflictError
        Somebody else edited the guide meanwhile.
    DataError
        The search did not propose it, there is no reason, or a file was damaged.
    WriteError
        The workspace cannot be written.
    """
    one = search.guide(proposal)
    _require_reason(reason)
    prompt = search.parent.partition("@")[0]
    with _deciding(workspace, search):
        # First out of the draft: after a kill it is refused once more.
        _write(workspace, search, one, one.old, actor, now)
        keep_accepted(workspace, search.draft, one.id, None)
        return refuse_proposal(workspace, prompt, one.id, reason, actor, now=now)


def _write(
    workspace: WorkspacePaths,
    search: DraftSearch,
    one: GuideProposal,
    text: str,
    actor: Actor,
    now: Clock,
) -> None:
    """Put a text in the place of what the draft said, if it says that still."""
    guides: tuple[GuideEdit, ...] = ()
    settings = SettingsEdit()
    if one.label == INSTRUCTIONS:
        settings = SettingsEdit(instructions=text, seen=one.said)
    else:
        guides = (GuideEdit(label=one.label, text=text, seen=one.said),)
    edit_draft(workspace, search.draft, guides, actor, settings=settings, now=now)


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise DataError("give a reason: whoever searches again will want to know it.")


def _no_proposal(name: str) -> DataError:
    return DataError(
        f"{quoted(name)} is no proposal of this search. Open the draft again."
    )


def _deciding(
    workspace: WorkspacePaths, search: DraftSearch
) -> AbstractContextManager[None]:
    """Hold the lock under which the proposals of a prompt are decided."""
    prompt = search.parent.partition("@")[0]
    return locked(workspace.open_private() / "locks" / f"proposals-{prompt}.lock")


def _require_open(before: ProposalDecision | None) -> None:
    if before is not None and before.verdict:
        raise ConflictError(
            f"{before.by} has accepted this proposal: verdict {before.verdict}. It is "
            "open again once that verdict is withdrawn."
        )

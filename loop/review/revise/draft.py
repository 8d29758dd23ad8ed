"""A draft as people look at it: what it changes, how it stands, what a model gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from loop.core.check_findings import Finding
from loop.core.config import read_config
from loop.core.errors import DataError, LedgerError, OverlapError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Clarification,
    Exemplar,
    Guide,
    Item,
    Lexicon,
    Message,
    Value,
)
from loop.labels.cohort import CohortRole, read_cohort
from loop.prompts.catalog import list_drafts
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.lint import has_errors
from loop.prompts.outputs.base import get_contract, list_exchangeable
from loop.prompts.render import plan_prompts
from loop.prompts.version import (
    PromptVersion,
    can_exchange,
    with_contract,
    with_masked_shots,
)
from loop.review.revise.check_record import find_check, name_stale
from loop.review.revise.copies import Copy, check_copies, name_unseen, new_wording
from loop.review.revise.draft_files import (
    DraftLineage,
    DraftOrigin,
    find_commit,
    is_recorded,
    read_about,
    read_line,
)
from loop.review.revise.machine_made import is_machine_made, lint_machine_made
from loop.run.cost import asked_model, model_revision
from loop.run.store import Store
from loop.run.task_fields import lint_prompt
from loop.run.tokens import TokenCounter, find_counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A draft beside the version it was made from."""

    draft: PromptVersion
    parent: PromptVersion
    diff: VersionDiff
    lint: tuple[Finding, ...]
    tokens: TokenChange | None
    """None where the draft or its parent cannot be rendered."""

    copies: tuple[Copy, ...] = ()
    """Long copies from cases of the cohort: a warning."""

    skipped: tuple[tuple[str, CohortRole], ...] = ()
    """Cohorts that could not be looked at for copies: their texts are elsewhere."""

    notes: tuple[str, ...] = ()
    behind: bool = False
    """Whether another version was committed since it was made."""

    @property
    def sound(self) -> bool:
        """Whether lint found no error, so that it can be checked."""
        return not has_errors(self.lint)


MODELS, PEOPLE, RULES = "language models", "people", "engine rules"
"""Who reads parts of a version: people read what `ranloop guideline` writes of it."""

READ_BY: Mapping[str, tuple[str, ...]] = {
    "name": (MODELS, PEOPLE, RULES),
    "definition": (MODELS, PEOPLE),
    "counts": (MODELS,),
    "does not count": (MODELS,),
    "uncertain when": (MODELS,),
    "term": (MODELS, PEOPLE, RULES),
    "exclusion": (MODELS, RULES),
    "clarification": (MODELS, PEOPLE, RULES),
    "exemplar": (MODELS, PEOPLE, RULES),
    "implies": (MODELS, RULES),
    "lexicon": (RULES,),
    "general rule": (MODELS,),
    "instructions": (MODELS,),
    "plan": (MODELS, RULES),
    "contract": (MODELS, RULES),
    "shots": (MODELS,),
}
"""Part of a version to who reads it, with templates that insert all guidance. Of an
exemplar `rules` reads its phrase and value only, and no note of anything. What counts
and what does not, people read in the taxonomy, as they do the rules of reading."""


def read_by(version: PromptVersion) -> Mapping[str, tuple[str, ...]]:
    """Return who reads each part of `version`, as differences name the parts.

    Language models read what the templates insert: that is looked up by rendering
    them. Where they cannot be rendered it is what templates usually insert.
    """
    found = dict(READ_BY)
    for part, shown in _find_shown(version).items():
        others = tuple(who for who in READ_BY[part] if who != MODELS)
        found[part] = (MODELS, *others) if shown else others
    return found


def _find_shown(version: PromptVersion) -> Mapping[str, bool]:
    """Return each part of a guide with whether the templates of a version insert it."""
    parts = (
        *("name", "definition", "counts", "does not count", "uncertain when", "term"),
        *("exclusion", "clarification", "exemplar", "implies", "lexicon"),
    )
    marks = {part: f"part-{number}-" for number, part in enumerate(parts)}
    guide = Guide(
        label="label",
        name=marks["name"],
        definition=marks["definition"],
        counts=(marks["counts"],),
        does_not_count=(marks["does not count"],),
        uncertain_when=(marks["uncertain when"],),
        terms=(marks["term"],),
        exclusions=(marks["exclusion"],),
        clarifications=(
            Clarification(phrase=marks["clarification"], value=Value.PRESENT),
        ),
        exemplars=(
            Exemplar(text=marks["exemplar"], value=Value.PRESENT, evidence="-"),
        ),
        implies=(marks["implies"],),
        lexicon=(Lexicon(language="en", terms=(marks["lexicon"],)),),
    )
    try:
        plan = plan_prompts(
            replace(with_masked_shots(version), guides=(guide,)), lambda fields: {}
        )
    except DataError:
        return {}
    said = [one.content for call in plan.calls for one in call.frame.messages]
    said += [text for call in plan.calls for _, text in call.pieces]
    return {part: mark in "".join(said) for part, mark in marks.items()}


def name_unread(diff: VersionDiff, reading: Mapping[str, tuple[str, ...]]) -> str:
    """Return which engine reads nothing of a change, if one does not; else nothing."""
    parts = {kind.split()[0] for _, kind, _ in diff.settings}
    for guide in diff.guides:
        for _, kind, _ in guide.changes:
            parts.add("lexicon" if kind.startswith("lexicon ") else kind)
    if diff.templates:
        parts.add("instructions")
    known = [reading[part] for part in parts if part in reading]
    if not known or len(known) < len(parts):
        return ""
    if not any(RULES in one for one in known):
        return (
            "`rules` reads nothing of what is changed: only a check with a language "
            "model can show what it does"
        )
    if not any(MODELS in one for one in known):
        return (
            "language models read nothing of what is changed: only a check with "
            "`rules` can show what it does"
        )
    return ""


def describe(
    workspace: WorkspacePaths,
    parent: PromptVersion,
    draft: PromptVersion,
    engine: str = "rules",
) -> Drafted:
    """Return what `draft` changes against `parent`; case texts are not looked at.

    Parameters
    ----------
    engine
        Engine whose tokens are counted.

    Raises
    ------
    DataError
        The taxonomy or the settings of this machine cannot be read.
    """
    diff = diff_versions(parent, draft)
    unread = name_unread(diff, read_by(draft))
    return Drafted(
        draft=draft,
        parent=parent,
        diff=diff,
        lint=lint_draft(workspace, parent, draft),
        tokens=count_change(parent, draft, find_engine_counter(workspace, engine)),
        notes=(unread,) if unread else (),
    )


def lint_draft(
    workspace: WorkspacePaths, parent: PromptVersion, draft: PromptVersion
) -> tuple[Finding, ...]:
    """Return what lint says of `draft` against `parent`, errors first.

    A warning that the parent gets as well is left out: the draft did not bring it. One
    that an optimizer made is held tighter, see `loop.review.revise.machine_made`.
    """
    known = lint_prompt(workspace, parent)
    found = lint_prompt(workspace, draft, comparable_parent(parent, draft))
    told = tuple(one for one in found if not one.holds or one not in known)
    if not is_machine_made(workspace, draft):
        return told
    change = count_change(parent, draft)
    tokens = None if change is None else (change.before, change.after)
    return (*lint_machine_made(parent, draft, tokens), *told)


def comparable_parent(parent: PromptVersion, draft: PromptVersion) -> PromptVersion:
    """Return `parent` as it would be in the draft's contract.

    Frozen blocks are compared with it: a draft in another contract must tell a model to
    answer in that contract's words, and change no other frozen block.
    """
    if not can_exchange(parent):
        return parent
    return answered_in(parent, draft.contract)


def answered_in(version: PromptVersion, contract: str) -> PromptVersion:
    """Return `version` answered in `contract`; itself if it is, or if that is empty.

    Raises
    ------
    DataError
        There is no such contract, its answers say something else, or the version does
        not mark how to answer.
    """
    if contract in ("", version.contract):
        return version
    own = get_contract(version.contract)
    new = get_contract(contract, own.task)
    offered = list_exchangeable(own)
    if contract not in offered:
        raise DataError(
            f"{version.ref} is answered in {own.name}, and answers in {contract} say "
            f"something else. It may be answered in {', '.join(offered)}."
        )
    return with_contract(version, contract, new.instruction)


def show_draft(workspace: WorkspacePaths, ref: str, engine: str = "rules") -> Drafted:
    """Return the draft `ref` as it stands, against the version it was made from.

    A draft that copies a case it may not is shown all the same, and says so.

    Raises
    ------
    DataError
        There is no such draft, its files are malformed, or its parent is gone.
    """
    line = read_line(workspace, ref)
    made = describe(workspace, line.parent, line.draft, engine)
    made = replace(made, behind=line.behind)
    cohort = read_about(workspace, line.draft).cohort
    if not cohort:
        unknown = "nothing says which cohort this draft is to be checked on"
        return replace(made, notes=(*made.notes, unknown))
    wording = new_wording(line.parent, line.draft)
    try:
        copies, skipped = check_copies(
            workspace, wording, read_cohort(workspace, cohort)
        )
    except OverlapError as error:
        return replace(made, notes=(*made.notes, str(error)))
    notes = (*made.notes, *name_unseen(skipped))
    return replace(made, copies=copies, skipped=skipped, notes=notes)


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
    workspace: WorkspacePaths, store: Store, prompt: str
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


def _look(workspace: WorkspacePaths, store: Store, ref: str) -> DraftInfo | None:
    """Return how the draft `ref` stands; None where its commit is recorded."""
    try:
        line = read_line(workspace, ref)
        made = find_commit(workspace, line.draft)
        if made is not None and is_recorded(workspace, made):
            return None
        checked = _find_status(workspace, store, line)
        about = read_about(workspace, line.draft)
    except LedgerError:
        raise
    except DataError as error:
        return _broken(ref, str(error))
    return DraftInfo(
        ref=line.draft.ref,
        author=line.draft.author,
        when=line.draft.time,
        why=line.draft.why,
        begun_by=about.begun_by,
        verdicts=line.draft.verdicts,
        cohort=about.cohort,
        parent_ref=line.parent.ref,
        behind=line.behind,
        checked=checked,
        origin=about.origin,
    )


def _find_status(
    workspace: WorkspacePaths, store: Store, line: DraftLineage
) -> DraftCheckStatus:
    checked = find_check(workspace, line.draft)
    if checked is None:
        return DraftCheckStatus.NEVER
    if line.behind or name_stale(workspace, store, line, checked):
        return DraftCheckStatus.STALE
    return DraftCheckStatus.PASSED if checked.passed else DraftCheckStatus.OBJECTIONS


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


class DraftOutcome(NamedTuple):
    """The last thing that was decided on a draft."""

    version: str
    """Version it was committed as; empty when it was kept back or given up."""

    actor: str
    time: str
    """UTC, ISO 8601."""

    reason: str


def find_fate(workspace: WorkspacePaths, ref: str) -> DraftOutcome | None:
    """Return what was decided last on the draft `ref`; None where nothing was.

    A draft that was given up before it was measured leaves no entry.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.payload.get("draft") == ref:
            return DraftOutcome(entry.subject, entry.actor, entry.time, entry.reason)
        if entry.action == "draft_rejected" and entry.subject == ref:
            return DraftOutcome("", entry.actor, entry.time, entry.reason)
    return None


PLACEHOLDER = "[{name} of the case]"
"""What stands where an input of the case goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """One call of a version, with a placeholder where the case goes."""

    name: str
    """``"joint"`` or a label id."""

    messages: tuple[Message, ...]
    tokens: int
    """Of the static text: without the case and the marks of a chat template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Every call of a version as it is sent."""

    ref: str
    calls: tuple[ShownCall, ...]
    exact: bool
    """Whether the tokens were counted with the model's own tokenizer."""

    remark: str
    """How they were counted, in words."""

    @property
    def tokens(self) -> int:
        """Static tokens of all calls of one case."""
        return sum(call.tokens for call in self.calls)

    @property
    def text(self) -> str:
        """Every call with its messages, one below the other."""
        lines = []
        for call in self.calls:
            lines.append(f"# call {call.name}: {call.tokens} tokens ({self.remark})")
            for message in call.messages:
                lines += [f"## {message.role}", message.content]
        return "\n".join(lines)


class TokenChange(NamedTuple):
    """Static tokens of all calls of one case, before and after."""

    before: int
    after: int
    exact: bool
    """Whether counted with the model's own tokenizer; else estimated."""

    remark: str


def find_engine_counter(workspace: WorkspacePaths, engine: str) -> TokenCounter:
    """Return the best way to count the tokens of what `engine` is asked.

    Raises
    ------
    DataError
        The settings of this machine are malformed.
    """
    model = asked_model(engine)
    if model is None:
        return find_counter(None)
    return find_counter(model, model_revision(engine, read_config(workspace)))


def render_shown(version: PromptVersion, counter: TokenCounter | None = None) -> Shown:
    """Return the messages of `version` for a case that is not there.

    Signs stand for the texts of its shots, which are private.

    Parameters
    ----------
    counter
        How tokens are counted; None for an estimate.

    Raises
    ------
    DataError
        A template cannot be rendered, or the version asks for nothing.
    """
    counter = counter or find_counter(None)
    plan = plan_prompts(
        with_masked_shots(version), get_contract(version.contract).schema
    )
    marks = {name: PLACEHOLDER.format(name=name) for name in version.inputs}
    item = Item(id="placeholder", variables=marks)
    calls = tuple(
        ShownCall(
            name=call.frame.call,
            messages=call.prompt(item).messages,
            tokens=sum(counter.count(one.content) for one in call.frame.messages)
            + sum(counter.count(after) for _, after in call.pieces),
        )
        for call in plan.calls
    )
    remark = counter.remark
    if version.shots:
        remark += ", without the texts of its shots"
    return Shown(ref=version.ref, calls=calls, exact=counter.exact, remark=remark)


def count_change(
    before: PromptVersion, after: PromptVersion, counter: TokenCounter | None = None
) -> TokenChange | None:
    """Return how many static tokens each takes; None where one cannot be rendered."""
    try:
        old, new = render_shown(before, counter), render_shown(after, counter)
    except DataError:
        return None
    return TokenChange(old.tokens, new.tokens, old.exact, new.remark)

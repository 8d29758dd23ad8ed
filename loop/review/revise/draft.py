"""Verdicts to a draft: the parent's guides with every asked-for edit applied."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeVar

from loop.core.clock import format_time
from loop.core.errors import DataError, LedgerError, OverlapError
from loop.core.findings import Finding
from loop.core.ledger import read_ledger
from loop.core.paths import Workspace
from loop.core.records import Guide
from loop.labels.cohort import CohortRole, read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_drafts
from loop.prompts.diff import VersionDiff, diff_versions
from loop.prompts.lint import fold_phrase, has_errors, lint_version
from loop.prompts.version import PromptVersion
from loop.review.copied import Copy
from loop.review.revise.answers import comparable_parent
from loop.review.revise.checked import find_check, name_stale
from loop.review.revise.commit import find_commit, is_recorded
from loop.review.revise.copies import check_copies, new_wording
from loop.review.revise.draft_files import DraftOrigin, read_about
from loop.review.revise.inputs import DraftLineage, read_line
from loop.review.revise.ready import name_unseen
from loop.review.revise.shown import TokenChange, count_change, find_engine_counter
from loop.review.verdict import Verdict
from loop.run.store import Store


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


def describe(
    workspace: Workspace,
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
    return Drafted(
        draft=draft,
        parent=parent,
        diff=diff_versions(parent, draft),
        lint=lint_draft(workspace, parent, draft),
        tokens=count_change(parent, draft, find_engine_counter(workspace, engine)),
    )


def lint_draft(
    workspace: Workspace, parent: PromptVersion, draft: PromptVersion
) -> tuple[Finding, ...]:
    """Return what lint says of `draft` against `parent`, errors first."""
    labels = read_taxonomy(workspace.labels).extracted
    frozen = comparable_parent(parent, draft)
    return tuple(lint_version(draft, labels=labels, parent=frozen))


def show_draft(workspace: Workspace, ref: str, engine: str = "rules") -> Drafted:
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
        return replace(
            made, notes=("nothing says which cohort this draft is to be checked on",)
        )
    wording = new_wording(line.parent, line.draft)
    try:
        copies, skipped = check_copies(
            workspace, wording, read_cohort(workspace, cohort)
        )
    except OverlapError as error:
        return replace(made, notes=(str(error),))
    return replace(made, copies=copies, skipped=skipped, notes=name_unseen(skipped))


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


class DraftOutcome(NamedTuple):
    """The last thing that was decided on a draft."""

    version: str
    """Version it was committed as; empty when it was kept back or given up."""

    actor: str
    time: str
    """UTC, ISO 8601."""

    reason: str


def find_fate(workspace: Workspace, ref: str) -> DraftOutcome | None:
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


Row = TypeVar("Row")


class Authorship(NamedTuple):
    """Who makes a draft, when and why."""

    author: str
    when: datetime
    why: str


class BuiltDraft(NamedTuple):
    """A draft and what its verdicts asked for in vain."""

    draft: PromptVersion
    notes: tuple[str, ...]
    """For example wording that was there already; harmless."""


@dataclass(slots=True)
class _Wording:
    """One label's guide while edits are applied to it."""

    guide: Guide
    notes: list[str]
    where: str = ""

    def add(self, kind: str, rows: Iterable[Row], key: Callable[[Row], str]) -> None:
        """Append rows of `kind`; one with a known key replaces the old row."""
        current: list[Row] = list(getattr(self.guide, kind))
        for row in rows:
            known = [key(one) for one in current]
            if key(row) not in known:
                current.append(row)
            elif row in current or isinstance(row, str):
                self.notes.append(f"{self.where}: {kind} {key(row)!r} is there already")
            else:
                current[known.index(key(row))] = row
        self._set(kind, current)

    def remove(
        self, kind: str, names: Iterable[str], key: Callable[[Row], str]
    ) -> None:
        """Take out the rows of `kind` with these names."""
        current: list[Row] = list(getattr(self.guide, kind))
        for name in names:
            kept = [row for row in current if key(row) != fold_phrase(name)]
            if len(kept) == len(current):
                raise DataError(
                    f"{self.where}: {self.guide.label} has no such entry in {kind} to "
                    f"remove: {name!r}. See `ranloop diff` for what it has."
                )
            current = kept
        self._set(kind, current)

    def _set(self, kind: str, rows: list[Row]) -> None:
        changes: dict[str, object] = {kind: tuple(rows)}
        self.guide = replace(self.guide, **changes)  # type: ignore[arg-type]


def build_draft(
    base: PromptVersion, verdicts: Sequence[Verdict], by: Authorship
) -> BuiltDraft:
    """Return a draft with the wording of `base` and every edit applied.

    `base` is a committed version, which becomes the parent, or an earlier draft,
    whose parent and verdicts the new draft takes over.

    Removals come before additions, so that a wording can move from the terms to the
    exclusions in one verdict. A second clarification of the same phrase replaces the
    first.

    Raises
    ------
    DataError
        A verdict edits a label the prompt has no guide for, removes what is not
        there, or two verdicts contradict each other.
    """
    _refuse_contradictions(verdicts)
    notes: list[str] = []
    guides = {guide.label: _Wording(guide, notes) for guide in base.guides}
    for number, verdict in enumerate(verdicts, 1):
        if verdict.edits:
            wording = guides.get(verdict.label)
            if wording is None:
                raise DataError(
                    f"verdict {number}: {base.ref} has no guide for "
                    f"{verdict.label}. Judge one of {', '.join(base.labels)}."
                )
            wording.where = f"verdict {number}"
            _apply(wording, verdict)
    draft = replace(
        base,
        number=0,
        draft=draft_id(by.when),
        guides=tuple(wording.guide for wording in guides.values()),
        parent=base.parent if base.draft else base.digest,
        author=by.author,
        time=format_time(by.when),
        why=by.why,
        verdicts=tuple(
            dict.fromkeys(
                (
                    *(base.verdicts if base.draft else ()),
                    *(verdict.id for verdict in verdicts),
                )
            )
        ),
    )
    return BuiltDraft(draft, tuple(notes))


def draft_id(when: datetime) -> str:
    """Return a new draft id; it sorts by time and two processes never share one."""
    return f"d{when:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _apply(wording: _Wording, verdict: Verdict) -> None:
    edits = verdict.edits
    wording.remove("terms", edits.remove_terms, fold_phrase)
    wording.remove("exclusions", edits.remove_exclusions, fold_phrase)
    wording.remove("clarifications", edits.remove_clarifications, _phrase_key)
    wording.remove("exemplars", edits.remove_exemplars, _text_key)
    wording.remove("implies", edits.remove_implies, fold_phrase)
    wording.add("terms", edits.terms, fold_phrase)
    wording.add("exclusions", edits.exclusions, fold_phrase)
    wording.add("clarifications", edits.clarifications, _phrase_key)
    wording.add("exemplars", edits.exemplars, _text_key)
    wording.add("implies", edits.implies, fold_phrase)


def _phrase_key(rule: object) -> str:
    return fold_phrase(str(getattr(rule, "phrase", "")))


def _text_key(example: object) -> str:
    return fold_phrase(str(getattr(example, "text", "")))


def _refuse_contradictions(verdicts: Sequence[Verdict]) -> None:
    """Refuse two verdicts of one file that want opposite things."""
    said: dict[tuple[str, str, str], tuple[int, str]] = {}
    for number, verdict in enumerate(verdicts, 1):
        for kind, phrase, meaning in _claims(verdict):
            key = (verdict.label, kind, phrase)
            first, before = said.setdefault(key, (number, meaning))
            if before != meaning:
                raise DataError(
                    f"verdicts {first} and {number} disagree on {verdict.label}, "
                    f"{phrase!r}: {before} and {meaning}. Agree on one and remove the "
                    "other."
                )


def _claims(verdict: Verdict) -> list[tuple[str, str, str]]:
    """Return what a verdict claims as (kind, phrase, meaning)."""
    edits = verdict.edits
    claims = [("owner", fold_phrase(t), "a term") for t in edits.terms]
    claims += [("owner", fold_phrase(t), "an exclusion") for t in edits.exclusions]
    claims += [
        ("rule", _phrase_key(rule), rule.value.value) for rule in edits.clarifications
    ]
    claims += [("example", _text_key(one), one.value.value) for one in edits.exemplars]
    return claims

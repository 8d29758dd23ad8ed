"""The first step of a revision: a draft from verdicts, or from guides by hand."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, Lexicon
from loop.engines.rules.vocabulary import has_cjk
from loop.labels.cohort import Cohort, CohortRole, read_cohort
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import latest_version, read_version
from loop.prompts.instructions import add_rules
from loop.prompts.lint import MOST_WORDINGS, fold_phrase, is_shown
from loop.prompts.version import PromptVersion
from loop.review.revise.copies import Copy, check_copies, name_unseen, new_wording
from loop.review.revise.draft import Drafted, answered_in, describe
from loop.review.revise.draft_files import (
    DraftMetadata,
    DraftOrigin,
    overtaken,
    write_draft,
)
from loop.review.status import find_kept
from loop.review.submit import VerdictContext, load_verdicts, save_verdicts
from loop.review.verdict import (
    GUIDE_LISTS,
    LEXICON_LISTS,
    Edits,
    GuideList,
    Judgement,
    Verdict,
    check_verdicts,
)
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

    why: str = ""
    """Reason for the change; a count of verdicts when empty."""

    engine: str = "rules"
    """Engine whose tokens are counted."""

    origin: DraftOrigin | None = None
    """Where the wording comes from; None to tell by the verdicts."""


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
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        `request.prompt` is not the newest version, or a draft of an older one.
    StoreError
        The store cannot be read or written.
    WriteError
        The workspace cannot be written; there is no draft.
    """
    read_ledger(workspace.ledger)
    given = check_verdicts(
        _gather(store, request),
        read_taxonomy(workspace.labels),
        frozenset(require_dev(workspace, request.cohort).case_ids),
    )
    wanted = [v for v in given if v.judgement is not Judgement.REFERENCE_WRONG]
    by = Authorship(actor.name, now(), request.why)
    outline = outline_draft(workspace, store, request, wanted, by)
    _keep(store, given, outline, by.when)
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
    verdicts = check_verdicts(
        verdicts, read_taxonomy(workspace.labels), frozenset(cohort.case_ids)
    )
    why = by.why or (base.why if base.draft else explain(verdicts, request.contract))
    built = build_draft(base, verdicts, by._replace(why=why))
    draft = answered_in(with_guides(built.draft, request.guides), request.contract)
    copies, skipped = check_copies(workspace, new_wording(parent, draft), cohort)
    earlier = read_earlier(store, base, cohort)
    notes = (*name_forgotten(base, earlier), *name_unseen(skipped), *built.notes)
    return Outline(
        start, cohort, draft, tuple(verdicts), earlier, copies, skipped, notes
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
    plural = "" if len(edited) == 1 else "s"
    about = ", ".join(labels) if len(labels) <= 4 else f"{len(labels)} labels"
    said = [f"{len(edited)} verdict{plural} on {about or 'no label'}"]
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


def build_draft(
    base: PromptVersion, verdicts: Sequence[Verdict], by: Authorship
) -> BuiltDraft:
    """Return a draft with the wording of `base` and every edit applied.

    `base` is a committed version, which becomes the parent, or an earlier draft,
    whose parent and verdicts the new draft takes over.

    Removals come before additions, so that a wording can move from the terms to the
    exclusions in one verdict. A second clarification of the same phrase replaces the
    first. General rules go to the end of the rules of reading in the instructions.

    Raises
    ------
    DataError
        A verdict edits a label the prompt has no guide for, removes what is not
        there, asks for a general rule that has no place in the instructions, or two
        verdicts contradict each other.
    """
    _refuse_contradictions(verdicts)
    notes: list[str] = []
    guides = {guide.label: _Wording(guide, notes) for guide in base.guides}
    for number, verdict in enumerate(verdicts, 1):
        if verdict.edits.in_guide:
            wording = guides.get(verdict.label)
            if wording is None:
                raise DataError(
                    f"verdict {number}: {base.ref} has no guide for "
                    f"{verdict.label}. Judge one of {', '.join(base.labels)}."
                )
            wording.where = f"verdict {number}"
            wording.apply(verdict.edits)
    rules: dict[str, str] = {}
    for verdict in verdicts:
        for rule in verdict.edits.general_rules:
            rules.setdefault(rule, verdict.id)
    ruled, known = add_rules(base, rules)
    notes += [f"the general rule {rule[:60]!r} is there already" for rule in known]
    draft = replace(
        ruled,
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


@dataclass(slots=True)
class _Wording:
    """One label's guide while edits are applied to it."""

    guide: Guide
    notes: list[str]
    where: str = ""

    def apply(self, edits: Edits) -> None:
        """Take out everything that goes, then add everything that comes."""
        for one in GUIDE_LISTS:
            self._remove(one, getattr(edits, one.removals))
        for one in GUIDE_LISTS:
            self._add(one, getattr(edits, one.name))

    def _remove(self, of: GuideList, names: Iterable[str]) -> None:
        """Take out the rows with these names, from the lexicon too."""
        current: list[Any] = list(getattr(self.guide, of.name))
        for name in names:
            kept = [row for row in current if _folded(of, row) != fold_phrase(name)]
            if not self._forget(of, name) and len(kept) == len(current):
                raise DataError(
                    f"{self.where}: {self.guide.label} has no such entry in {of.name} "
                    f"to remove: {name!r}. See `ranloop diff` for what it has."
                )
            current = kept
        self._set(of, current)

    def _add(self, of: GuideList, rows: Iterable[Any]) -> None:
        """Append rows; one with a known key replaces the old row.

        What a language model has no use for goes to the lexicon, where a guide has one.
        """
        current: list[Any] = list(getattr(self.guide, of.name))
        for row in rows:
            key, known = _folded(of, row), [_folded(of, one) for one in current]
            if key not in known:
                hidden = self._for_lexicon(of, row, len(current))
                if hidden and self._is_hidden(of, row):
                    self._note_known(of, key)
                    continue
                self._forget(of, key)
                if hidden:
                    self._remember(of, row)
                else:
                    current.append(row)
            elif row in current or isinstance(row, str):
                self._note_known(of, key)
            else:
                current[known.index(key)] = row
        self._set(of, current)

    def _is_hidden(self, of: GuideList, row: Any) -> bool:
        """Whether a lexicon holds the row, in any spelling of a wording."""
        rows = [one for part in self.guide.lexicon for one in getattr(part, of.name)]
        if isinstance(row, str):
            return _folded(of, row) in {_folded(of, one) for one in rows}
        return row in rows

    def _note_known(self, of: GuideList, key: str) -> None:
        self.notes.append(f"{self.where}: {of.name} {key!r} is there already")

    def _for_lexicon(self, of: GuideList, row: Any, shown: int) -> bool:
        """Whether a row is for `rules` alone: a pattern, or one term too many."""
        if not self.guide.lexicon or of not in LEXICON_LISTS:
            return False
        phrase = getattr(row, "phrase", row)
        full = of.name == "terms" and shown >= MOST_WORDINGS
        return full or not is_shown(phrase, self.guide)

    def _remember(self, of: GuideList, row: Any) -> None:
        """Append a row to the lexicon of its language."""
        cjk = has_cjk(getattr(row, "phrase", row))
        languages = [one.language for one in self.guide.lexicon]
        own = next((one for one in languages if one != "zh"), "en")
        language = "zh" if cjk else own
        if language not in languages:
            added = (*self.guide.lexicon, Lexicon(language=language))
            self.guide = replace(self.guide, lexicon=added)
        self._change(of, lambda one, rows: [*rows, row] if one == language else rows)

    def _forget(self, of: GuideList, name: str) -> bool:
        """Take rows out of every lexicon; return whether there were any."""
        if of not in LEXICON_LISTS:
            return False
        before, key = self.guide, fold_phrase(name)
        self._change(
            of, lambda _, rows: [row for row in rows if _folded(of, row) != key]
        )
        return self.guide != before

    def _change(
        self, of: GuideList, rows_of: Callable[[str, list[Any]], list[Any]]
    ) -> None:
        """Replace one list of every lexicon."""
        parts = []
        for one in self.guide.lexicon:
            rows = rows_of(one.language, list(getattr(one, of.name)))
            changes: dict[str, Any] = {of.name: tuple(rows)}
            parts.append(replace(one, **changes))
        self.guide = replace(self.guide, lexicon=tuple(parts))

    def _set(self, of: GuideList, rows: list[Any]) -> None:
        changes: dict[str, Any] = {of.name: tuple(rows)}
        self.guide = replace(self.guide, **changes)


def _folded(of: GuideList, row: Any) -> str:
    return fold_phrase(of.key(row))


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
        ("rule", fold_phrase(rule.phrase), rule.value.value)
        for rule in edits.clarifications
    ]
    claims += [
        ("example", fold_phrase(one.text), one.value.value) for one in edits.exemplars
    ]
    return claims

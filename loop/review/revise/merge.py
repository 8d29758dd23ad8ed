"""Three-way merge of prompt versions, guide row by guide row.

A row is a term, an exclusion, a clarification and so on. What only one side changed is
taken; what both changed alike is no conflict; what they changed differently is one, for
a person to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import unified_diff
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_json
from loop.core.errors import ConflictError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide, Lexicon
from loop.prompts.shot_records import Shots
from loop.prompts.version import PromptVersion
from loop.review.revise.commit import record_attempt
from loop.review.revise.draft import Drafted, show_draft
from loop.review.revise.draft_files import (
    DraftLineage,
    drafts_locked,
    read_about,
    read_line,
    remove_draft,
    write_draft,
)
from loop.review.revise.wording import draft_id
from loop.review.verdict import (
    GUIDANCE_LISTS,
    GUIDE_LISTS,
    LEXICON_LISTS,
    GuideList,
)

Row = TypeVar("Row")


class ConflictChoice(StrEnum):
    """Whose wording is taken where both changed the same thing."""

    OURS = "ours"
    """The draft's."""

    THEIRS = "theirs"
    """The newest version's."""


class Conflict(NamedTuple):
    """One thing that the draft and the newest version changed differently."""

    id: str
    """Names the conflict and both wordings: another wording has another id."""

    label: str
    """Label id; empty for templates and settings."""

    kind: str
    """``term``, ``definition``, ``system.jinja``, ``plan``, ``guide``, ..."""

    what: str
    """Which row, folded; empty where there is only one of the kind."""

    ours: str
    """What the draft says; empty where it took the row out."""

    theirs: str


class MergedPrompt(NamedTuple):
    """The merged version, and what it took a decision for or still needs one."""

    version: PromptVersion
    conflicts: tuple[Conflict, ...]
    """Undecided: the version holds theirs."""

    unknown: tuple[str, ...]
    """Decisions on conflicts that there are not."""


_SETTINGS = ("plan", "contract", "inputs", "reads", "shots")
_TEMPLATES = {"system": "system.jinja", "user": "user.jinja"}


def merge_versions(
    base: PromptVersion,
    ours: PromptVersion,
    theirs: PromptVersion,
    choices: Mapping[str, ConflictChoice],
) -> MergedPrompt:
    """Return `theirs` with everything that `ours` changed against `base`.

    Parameters
    ----------
    choices
        Conflict id to whose wording is taken.
    """
    merge = _Merge(choices)
    fields: dict[str, Any] = {
        name: merge.pick(
            ("", name, ""),
            (getattr(base, name), getattr(ours, name), getattr(theirs, name)),
            _say,
        )
        for name in _SETTINGS
    }
    for name, file in _TEMPLATES.items():
        old = getattr(base, name)
        sides = (old, getattr(ours, name), getattr(theirs, name))
        fields[name] = merge.pick(("", file, ""), sides, _shown_against(old))
    fields["guides"] = tuple(merge.guides(base, ours, theirs))
    known = {conflict.id for conflict in merge.met}
    return MergedPrompt(
        version=replace(theirs, **fields, shown=()),
        conflicts=tuple(one for one in merge.met if one.id not in choices),
        unknown=tuple(one for one in choices if one not in known),
    )


def _say(value: object) -> str:
    """Return a setting in words; of shots nothing but how they were chosen."""
    return value.words if isinstance(value, Shots) else str(value or "")


def _shown_against(old: str) -> Callable[[str], str]:
    """Return what shows a template by its changed lines."""

    def show(new: str) -> str:
        lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        return "\n".join(list(lines)[2:])

    return show


_Place = tuple[str, str, str]
"""label, kind, what"""


@dataclass(slots=True)
class _Merge:
    """Decides between two sides and remembers where it could not."""

    choices: Mapping[str, ConflictChoice]
    met: list[Conflict] = field(default_factory=list)

    def pick(
        self, place: _Place, sides: tuple[Row, Row, Row], show: Callable[[Row], str]
    ) -> Row:
        """Return what stands after both changes; theirs while undecided."""
        base, ours, theirs = sides
        if ours in (theirs, base):
            return theirs
        if theirs == base:
            return ours
        conflict = _conflict(place, _show(ours, show), _show(theirs, show))
        self.met.append(conflict)
        return ours if self.choices.get(conflict.id) is ConflictChoice.OURS else theirs

    def guides(
        self, base: PromptVersion, ours: PromptVersion, theirs: PromptVersion
    ) -> Iterator[Guide]:
        """Yield the merged guides, in merged order."""
        for label in self.order(
            ("", "order", ""), (base.labels, ours.labels, theirs.labels)
        ):
            sides = base.guide(label), ours.guide(label), theirs.guide(label)
            merged = self.guide(label, *sides)
            if merged is not None:
                yield merged

    def guide(
        self, label: str, base: Guide | None, ours: Guide | None, theirs: Guide | None
    ) -> Guide | None:
        """Return one label's guide after both changes; None where it was taken out."""
        if base is None or ours is None or theirs is None:
            return self.pick((label, "guide", ""), (base, ours, theirs), _show_guide)
        changes: dict[str, Any] = {
            name: self.pick(
                (label, name, ""),
                (getattr(base, name), getattr(ours, name), getattr(theirs, name)),
                str,
            )
            for name in ("name", "definition")
        }
        for rows in (*GUIDANCE_LISTS, *GUIDE_LISTS):
            lists = (getattr(side, rows.name) for side in (base, ours, theirs))
            changes[rows.name] = tuple(self.rows(label, rows, *lists))
        merged = self.lexicons(label, base, ours, theirs)
        return replace(theirs, **changes, lexicon=tuple(merged))

    def lexicons(
        self, label: str, base: Guide, ours: Guide, theirs: Guide
    ) -> Iterator[Lexicon]:
        """Yield the lexicons after both changes, those without a row left out."""
        tables = [
            {one.language: one for one in side.lexicon} for side in (base, ours, theirs)
        ]
        for language in dict.fromkeys((*tables[2], *tables[1], *tables[0])):
            sides = [table.get(language, _empty(language)) for table in tables]
            changes: dict[str, Any] = {}
            for rows in LEXICON_LISTS:
                named = rows._replace(kind=f"lexicon {language} {rows.kind}")
                lists = (getattr(side, rows.name) for side in sides)
                changes[rows.name] = tuple(self.rows(label, named, *lists))
            if any(changes.values()):
                yield Lexicon(language=language, **changes)

    def rows(
        self,
        label: str,
        rows: GuideList,
        base: Sequence[Any],
        ours: Sequence[Any],
        theirs: Sequence[Any],
    ) -> Iterator[Any]:
        """Yield the rows of one list after both changes, in merged order."""
        if theirs in (base, ours) or ours == base:
            yield from ours if theirs == base else theirs
            return
        tables = [{rows.key(row): row for row in side} for side in (base, ours, theirs)]
        old_keys, our_keys, their_keys = map(tuple, tables)
        keys = self.order(
            (label, f"{rows.kind} order", ""), (old_keys, our_keys, their_keys)
        )
        for key in keys:
            old, mine, other = (table.get(key) for table in tables)
            row = self.pick((label, rows.kind, key), (old, mine, other), rows.show)
            if row is not None:
                yield row

    def order(
        self,
        place: _Place,
        sides: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
    ) -> tuple[str, ...]:
        """Return every key once: those of all sides in merged order, new ones last."""
        shared = set.intersection(*map(set, sides))
        common = tuple(tuple(key for key in side if key in shared) for side in sides)
        merged = self.pick(place, (common[0], common[1], common[2]), ", ".join)
        _, ours, theirs = sides
        if merged == common[2]:
            # Nobody but they moved anything: their new rows stay where they put them.
            return tuple(dict.fromkeys((*theirs, *ours)))
        return tuple(dict.fromkeys((*merged, *theirs, *ours)))


def _empty(language: str) -> Lexicon:
    return Lexicon(language=language)


def _conflict(place: _Place, ours: str, theirs: str) -> Conflict:
    label, kind, what = place
    mark = digest_json([*place, ours, theirs])[:8]
    name = f"{label or 'prompt'}/{kind.replace(' ', '-')}/{mark}"
    return Conflict(name, label, kind, what, ours, theirs)


def _show(side: Row, show: Callable[[Row], str]) -> str:
    return "" if side is None else show(side)


def _show_guide(guide: Guide | None) -> str:
    if guide is None:
        return ""
    every = (*GUIDANCE_LISTS, *GUIDE_LISTS)
    rows = sum(len(getattr(guide, one.name)) for one in every)
    rows += sum(
        len(getattr(part, one.name)) for part in guide.lexicon for one in LEXICON_LISTS
    )
    return f"{guide.definition} ({rows} rows)"


_NONE: Mapping[str, ConflictChoice] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """What bringing a draft to the newest version did."""

    draft: PromptVersion | None
    """The new draft, which takes the place of the old one; None while undecided."""

    conflicts: tuple[Conflict, ...]
    """What somebody has to decide first; nothing was written."""

    newest: str
    """Reference of the version it was brought to."""

    drafted: Drafted | None = None
    """The new draft as people look at it."""


def rebase_draft(
    workspace: WorkspacePaths,
    ref: str,
    actor: Actor,
    resolve: Mapping[str, ConflictChoice] = _NONE,
    *,
    now: Clock = utc_now,
) -> Rebased:
    """Return the draft `ref` made anew from the newest version, or the conflicts.

    The new draft has an id of its own, and the old one is removed once it is written:
    a kill leaves both, never half of one. A draft that is not behind stays as it is.

    Parameters
    ----------
    resolve
        Conflict id to whose wording is taken; all of them, or nothing is written.

    Raises
    ------
    DataError
        There is no such draft, or its parent is not among the versions.
    ConflictError
        `resolve` decides what is no conflict, or not with these wordings any more.
    WriteError
        The workspace cannot be written; the old draft is as it was.
    """
    with drafts_locked(workspace, ref):
        line = read_line(workspace, ref)
        if not line.behind:
            return _told(workspace, line, line.draft)
        merged = merge_versions(line.parent, line.draft, line.newest, resolve)
        _require_known(line, merged)
        if merged.conflicts:
            return Rebased(
                draft=None, conflicts=merged.conflicts, newest=line.newest.ref
            )
        record_attempt(workspace, line, actor, f"rebased on {line.newest.ref}", now)
        draft = _write(workspace, line, merged, actor, now())
        return _told(workspace, line, draft)


def _require_known(line: DraftLineage, merged: MergedPrompt) -> None:
    if merged.unknown:
        raise ConflictError(
            f"{line.draft.ref} and {line.newest.ref} have no conflict "
            f"{', '.join(one[:80] for one in merged.unknown)}: the draft or the newest "
            "version changed since you looked. Look at the conflicts again."
        )


def _write(
    workspace: WorkspacePaths,
    line: DraftLineage,
    merged: MergedPrompt,
    actor: Actor,
    when: datetime,
) -> PromptVersion:
    old = line.draft
    draft = replace(
        merged.version,
        number=0,
        draft=draft_id(when),
        parent=line.newest.digest,
        author=actor.name,
        time=format_time(when),
        why=old.why,
        verdicts=old.verdicts,
    )
    made = write_draft(workspace, draft, read_about(workspace, old))
    remove_draft(workspace, old.name, old.draft)
    return made


def _told(
    workspace: WorkspacePaths, line: DraftLineage, draft: PromptVersion
) -> Rebased:
    return Rebased(
        draft=draft,
        conflicts=(),
        newest=line.newest.ref,
        drafted=show_draft(workspace, draft.ref),
    )

"""Verdicts made into the wording of a draft: every edit applied to the guides."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from loop.core.clock import format_time
from loop.core.errors import DataError
from loop.core.records import Guide, Lexicon
from loop.engines.rules.vocabulary import has_cjk
from loop.prompts.instructions import add_rules
from loop.prompts.lint import MOST_WORDINGS, fold_phrase, is_shown
from loop.prompts.version import PromptVersion
from loop.review.verdict import GUIDE_LISTS, LEXICON_LISTS, Edits, GuideList, Verdict


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
    refuse_contradictions(verdicts)
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
    gone: set[tuple[str, str]] = field(default_factory=set)
    """Lists and entries that an earlier verdict took out already."""

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
            there = self._forget(of, name) or len(kept) < len(current)
            key = of.name, fold_phrase(name)
            if not there and key in self.gone:
                self.notes.append(f"{self.where}: {of.name} {name!r} is gone already")
            elif not there:
                raise DataError(
                    f"{self.where}: {self.guide.label} has no such entry in {of.name} "
                    f"to remove: {name!r}. See `ranloop diff` for what it has."
                )
            self.gone.add(key)
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


def refuse_contradictions(verdicts: Sequence[Verdict]) -> None:
    """Refuse two verdicts, or one, that want opposite things.

    Raises
    ------
    DataError
        Names both by their numbers and ids.
    """
    said: dict[tuple[str, str, str], tuple[int, str]] = {}
    for number, verdict in enumerate(verdicts, 1):
        for kind, phrase, meaning in _claims(verdict):
            key = (verdict.label, kind, phrase)
            first, before = said.setdefault(key, (number, meaning))
            if before != meaning and first == number:
                raise DataError(
                    f"verdict {number}: {phrase!r} is to be {before} and {meaning} of "
                    f"{verdict.label}. Keep one of the two."
                )
            if before != meaning:
                raise DataError(
                    f"verdicts {first} and {number} disagree on {verdict.label}, "
                    f"{phrase!r}: {before} and {meaning} "
                    f"(ids {verdicts[first - 1].id} and {verdict.id}). Agree on one "
                    "and remove the other."
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

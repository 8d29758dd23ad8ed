"""Verdicts to a draft: the parent's guides with every asked-for edit applied."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from loop.core.errors import DataError
from loop.core.records import Guide
from loop.prompts.lint import fold_phrase
from loop.prompts.version import PromptVersion
from loop.review.verdict import Verdict

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
        time=by.when.strftime("%Y-%m-%dT%H:%M:%SZ"),
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

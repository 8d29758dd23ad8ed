"""A reporting checklist: each item with what the release says, and from where."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from loop.documents.numbers import NOT_ESTIMABLE
from loop.release.documents.phrases import AUTHOR, NO_MODEL, told, uses_a_model
from loop.release.documents.section import DocumentSection, ReleaseDocument, table
from loop.release.form import ReleaseFacts


class Filled(NamedTuple):
    """What the release says to an item."""

    text: str
    """Empty where nothing is recorded: then it is left to the author."""

    source: str
    """The field of release.json, the file, or the ledger entries it is from."""


class ChecklistItem(NamedTuple):
    """One item of a checklist."""

    number: str
    area: str
    asks: str
    """What it asks for, in our words."""

    filled: tuple[Filled, ...] = ()
    author: str = ""
    """What only a person can add; empty where the release says all there is."""

    @property
    def known(self) -> tuple[Filled, ...]:
        """What is recorded."""
        return tuple(one for one in self.filled if one.text)

    @property
    def open(self) -> str:
        """What is left to the author; empty where nothing is."""
        if self.author:
            return f"{AUTHOR}: {self.author}"
        return "" if len(self.known) == len(self.filled) > 0 else AUTHOR


class Checklist(NamedTuple):
    """A checklist and where it was published."""

    name: str
    source: str
    notes: tuple[str, ...]
    items: tuple[ChecklistItem, ...]


def checklist_document(facts: ReleaseFacts, checklist: Checklist) -> ReleaseDocument:
    """Return a checklist with a section per area."""
    items = checklist.items
    whole = sum(not one.open for one in items)
    partly = sum(bool(one.open and one.known) for one in items)
    left = len(items) - whole - partly
    areas = groupby(items, key=lambda one: one.area)
    return ReleaseDocument(
        title=f"{checklist.name} for {told(facts.release.name)}",
        subtitle=checklist.source,
        intro=(
            f"{len(items)} items: {whole} filled from the release, {partly} partly, "
            f"{left} left to the author. It helps prepare the checklist of a paper; "
            "what only a person knows is left open, never guessed.",
            "What an item asks for is said in our words; the official wording is in "
            "the publication.",
            *checklist.notes,
            *(() if uses_a_model(facts) else (f"Here {NO_MODEL}.",)),
        ),
        sections=tuple(_section(area, list(of_area)) for area, of_area in areas),
    )


def _section(area: str, items: Sequence[ChecklistItem]) -> DocumentSection:
    rows = [
        (
            one.number,
            one.asks,
            "; ".join(filled.text for filled in one.known) or NOT_ESTIMABLE,
            "; ".join(dict.fromkeys(filled.source for filled in one.known))
            or NOT_ESTIMABLE,
            one.open or NOT_ESTIMABLE,
        )
        for one in items
    ]
    columns = "Item|Asks for|Filled from the release|Source|Author"
    key = "".join(char if char.isalnum() else "-" for char in area.lower())
    return DocumentSection(key=key, title=area, tables=table(columns, rows))

"""A reporting checklist: each item with what the release says, and from where.

The checklists are ``mi_clear_llm.yaml`` and ``tripod_llm.yaml`` beside this file. An
item names what it asks for, what is ``filled`` from the release (a function of
`loop.release.documents.recorded`, a field of release.json behind words, or a text that
holds for every release), and what only its ``author`` can add.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict

from loop.core.yaml_files import read_model
from loop.documents.numbers import NOT_ESTIMABLE
from loop.release.documents.phrases import AUTHOR, NO_MODEL, told, uses_a_model
from loop.release.documents.recorded import FILLED, Filled, fill_field
from loop.release.documents.section import DocumentSection, ReleaseDocument, table
from loop.release.facts import ReleaseFacts

CHECKLISTS = ("mi_clear_llm", "tripod_llm")
"""Names of the checklists; each is a YAML file in this folder."""


class _ChecklistPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _FieldSource(_ChecklistPart):
    words: str
    field: str


class _FixedText(_ChecklistPart):
    text: str
    source: str


def _known(name: str) -> str:
    if name not in FILLED:
        raise ValueError(f"use one of {', '.join(FILLED)}")
    return name


class ChecklistItem(_ChecklistPart):
    """One item of a checklist."""

    number: str
    asks: str
    """What it asks for, in our words."""

    filled: list[
        Annotated[str, AfterValidator(_known)] | _FieldSource | _FixedText
    ] = []
    author: str = ""
    """What only a person can add; empty where the release says all there is."""


class Checklist(_ChecklistPart):
    """A checklist and where it was published."""

    name: str
    source: str
    notes: list[str]
    items: dict[str, list[ChecklistItem]]
    """Items by area."""


class FilledItem(NamedTuple):
    """An item with what the release says to it."""

    item: ChecklistItem
    filled: tuple[Filled, ...]

    @property
    def known(self) -> tuple[Filled, ...]:
        """What is recorded."""
        return tuple(one for one in self.filled if one.text)

    @property
    def open(self) -> str:
        """What is left to the author; empty where nothing is."""
        if self.item.author:
            return f"{AUTHOR}: {self.item.author}"
        return "" if len(self.known) == len(self.filled) > 0 else AUTHOR


def read_checklist(name: str) -> Checklist:
    """Return one of `CHECKLISTS`.

    Raises
    ------
    DataError
        The file is not a checklist; names each wrong field.
    """
    return read_model(Path(__file__).parent / f"{name}.yaml", Checklist)


def fill_item(item: ChecklistItem, facts: ReleaseFacts) -> FilledItem:
    """Return an item with what the release says to it."""
    filled = []
    for one in item.filled:
        if isinstance(one, str):
            filled.append(FILLED[one](facts))
        elif isinstance(one, _FieldSource):
            filled.append(fill_field(facts, one.field, one.words))
        else:
            filled.append(Filled(one.text, one.source))
    return FilledItem(item, tuple(filled))


def checklist_document(facts: ReleaseFacts, checklist: Checklist) -> ReleaseDocument:
    """Return a checklist with a section per area."""
    areas = {
        area: [fill_item(one, facts) for one in items]
        for area, items in checklist.items.items()
    }
    items = [one for filled in areas.values() for one in filled]
    whole = sum(not one.open for one in items)
    partly = sum(bool(one.open and one.known) for one in items)
    left = len(items) - whole - partly
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
        sections=tuple(_section(area, filled) for area, filled in areas.items()),
    )


def _section(area: str, items: Sequence[FilledItem]) -> DocumentSection:
    rows = [
        (
            one.item.number,
            one.item.asks,
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

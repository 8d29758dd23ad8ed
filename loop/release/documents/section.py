"""What a document of a release is made of, before it is Markdown or a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.evaluate.documents import ForestMark
from loop.release.documents.phrases import told

_DIGEST = re.compile(r"[0-9a-f]{6,64}")


class FactLine(NamedTuple):
    """One fact with its name."""

    term: str
    text: str = ""
    digest: str = ""
    author: str = ""
    """What only a person can add; empty where nothing is open."""


class DocumentColumn(NamedTuple):
    """The heading of a column."""

    text: str
    numeric: bool = False


class DocumentTable(NamedTuple):
    """Rows of words; a row has a cell for every column."""

    columns: tuple[DocumentColumn, ...]
    rows: tuple[tuple[str, ...], ...]


class LabelRow(NamedTuple):
    """One label of an evaluation with its place in the forest plot."""

    name: str
    verdict: str
    mark: ForestMark
    rates: tuple[tuple[str, str], ...]
    """Value and interval of each rate."""

    why: str


class Forest(NamedTuple):
    """The labels of an evaluation on one axis; positions in percent."""

    low: float
    ticks: tuple[tuple[float, str], ...]
    line: float | None
    """Position of the threshold; None without one."""

    names: tuple[str, ...]
    """Names of the rates."""

    rows: tuple[LabelRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSection:
    """A titled part of a document; whatever is empty is left out."""

    key: str
    """Anchor on the page, for example ``"worse"``."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences."""

    lines: tuple[FactLine, ...] = ()
    tables: tuple[DocumentTable, ...] = ()
    forest: Forest | None = None
    """Drawn by the page in place of the first table."""

    notes: tuple[str, ...] = ()
    alarm: bool = False
    """Whether nobody may miss it."""


class Banner(NamedTuple):
    """What stands above everything else, for ever."""

    title: str
    text: str


class Figure(NamedTuple):
    """A number in large letters."""

    term: str
    big: str
    small: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDocument:
    """One document of a release."""

    title: str
    subtitle: str = ""
    header: tuple[tuple[str, str], ...] = ()
    """Names and JSON values of the YAML header; empty without one."""

    banners: tuple[Banner, ...] = ()
    intro: tuple[str, ...] = ()
    sections: tuple[DocumentSection, ...]


def table(columns: str, rows: Sequence[tuple[str, ...]]) -> tuple[DocumentTable, ...]:
    """Return one table, or none where there is no row.

    Parameters
    ----------
    columns
        Headings with ``|`` between them; one that begins with ``#`` is of numbers.
    """
    if not rows:
        return ()
    heads = (
        DocumentColumn(one.lstrip("#"), one.startswith("#"))
        for one in columns.split("|")
    )
    return (DocumentTable(tuple(heads), tuple(rows)),)


def fact(term: str, value: object, author: str = "") -> FactLine:
    """Return a line of a recorded fact; a digest is set apart."""
    text = told(value)
    if _DIGEST.fullmatch(text) and isinstance(value, str):
        return FactLine(term, digest=text, author=author)
    return FactLine(term, text or ("" if author else "not recorded"), author=author)

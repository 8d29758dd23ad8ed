"""What files of tables print: CSV and Markdown as grids of text, cells as numbers."""

from __future__ import annotations

import csv
import html
import io
import re
import unicodedata
from math import log10
from pathlib import Path
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.files import read_text

DOUBLE_ROUNDING = 0.05
"""What rounding twice, first to one digit more, can add, in units of the last digit."""

_TINY = 1e-9
"""Keeps a value that lies on the border of its rounding inside."""

_LONGEST = 200
"""Characters; a longer cell is text."""

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−﹣\uff0d", "-") | {"·": ".", "٪": "%"})
_MISSING = frozenset(
    ("", "-", "--", "---", "na", "n/a", "nan", "nr", "none", "null", ".", "inf", "-inf")
)
_MARKUP = re.compile(r"<[^<>]{0,200}>")
_MARKS = re.compile(r"[*`~†‡§¶#^$\\]+|(?<!\w)_+|_+(?!\w)")
_NUMBER = r"[+-]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)\s?%?"
_BETWEEN = r"\s*(?:-|to|,|;|/|until)\s*"
_LEVEL = r"(?:\d\d(?:\.\d+)?\s?%\s?)?(?:ci|confidence interval)?\s*[:=,]?\s*"
_PLAIN = re.compile(_NUMBER)
_WITH_LIMITS = re.compile(
    rf"({_NUMBER})\s*[,;:]?\s*[\(\[]\s*{_LEVEL}({_NUMBER}){_BETWEEN}({_NUMBER})\s*[\)\]]"
)
_LIMITS = re.compile(
    rf"[\(\[]?\s*{_LEVEL}({_NUMBER}){_BETWEEN}({_NUMBER})\s*[\)\]]?", re.IGNORECASE
)
_COUNT_SHARE = re.compile(
    rf"(\d+(?:,\d{{3}})*)(?:\s*/\s*(\d+(?:,\d{{3}})*))?\s*[\(\[]\s*({_NUMBER})\s*[\)\]]"
)
_FRACTION = re.compile(r"(\d+(?:,\d{3})*)\s*/\s*(\d+(?:,\d{3})*)")


class Number(NamedTuple):
    """A printed number and the size of its last digit."""

    value: float
    unit: float
    """One unit of the last printed digit, for example 0.001."""

    @property
    def slack(self) -> float:
        """How far the exact value may lie away: half a unit, and double rounding."""
        return (0.5 + DOUBLE_ROUNDING) * self.unit + _TINY

    @property
    def low(self) -> float:
        """Smallest exact value that can be printed like this."""
        return self.value - self.slack

    @property
    def high(self) -> float:
        """Largest exact value that can be printed like this."""
        return self.value + self.slack

    @property
    def decimals(self) -> int:
        """Digits after the point, of the share, not of the percentage."""
        return max(0, round(-log10(self.unit)))

    def scaled(self, factor: float) -> Number:
        """Return the number times `factor`, for example a percentage as a share."""
        return Number(self.value * factor, self.unit * factor)

    def shown(self) -> str:
        """Return the number as it was printed, as a share."""
        return f"{self.value:.{self.decimals}f}"


class PrintedCell(NamedTuple):
    """What one cell holds; all parts None for a cell without a number."""

    text: str
    value: Number | None = None
    limits: tuple[Number, Number] | None = None
    cases: int | None = None
    """Cases, where the cell prints them beside their share."""
    of: int | None = None
    """Denominator, where the cell prints ``k/n``."""

    @property
    def numeric(self) -> bool:
        """Whether the cell holds any number."""
        return self.value is not None or self.limits is not None


def clean_text(text: str) -> str:
    """Return the text of a cell without markup, footnote marks and odd dashes.

    Examples
    --------
    >>> clean_text("**−0.98**<sup>a</sup>")
    '-0.98'
    """
    plain = re.sub(r"<sup>[^<>]{0,20}</sup>", "", text[:2000], flags=re.IGNORECASE)
    plain = html.unescape(_MARKUP.sub(" ", plain))
    plain = unicodedata.normalize("NFKC", plain.translate(_DASHES))
    return " ".join(_MARKS.sub("", plain).split())


def read_cell(text: str, *, comma: bool = False) -> PrintedCell:
    """Return what a cell holds; text that is no number stays text.

    Parameters
    ----------
    comma
        The table writes decimal commas: ``0,987``.

    Examples
    --------
    >>> read_cell("98.7% (96.6–99.6)").limits[0].shown()
    '0.966'
    """
    plain = clean_text(text)
    if len(plain) > _LONGEST or plain.casefold() in _MISSING:
        return PrintedCell(plain)
    numeral = re.sub(r"(?<=\d),(?=\d)", ".", plain) if comma else plain
    return _read_numeral(plain, numeral.lower())


def decimal_commas(texts: list[str]) -> bool:
    """Return whether cells write decimal commas: some must, and none a point."""
    plain = [clean_text(text) for text in texts]
    if any(re.search(r"\d\.\d", text) for text in plain):
        return False
    certain = re.compile(r"(?<![\d,])(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?![\d,])")
    return any(certain.search(text) for text in plain)


def _read_numeral(text: str, numeral: str) -> PrintedCell:
    if _PLAIN.fullmatch(numeral):
        return PrintedCell(text, _number(numeral))
    if found := _WITH_LIMITS.fullmatch(numeral):
        value, low, high = _same_scale(*found.groups())
        return PrintedCell(text, value, (low, high))
    if found := _COUNT_SHARE.fullmatch(numeral):
        count, of, share = found.groups()
        if "%" in share or of:
            return PrintedCell(text, _number(share), None, _whole(count), _whole(of))
        return PrintedCell(text)
    if found := _FRACTION.fullmatch(numeral):
        count, of = (_whole(part) for part in found.groups())
        share = Number(count / of, 1e-12) if of and count is not None else None
        return PrintedCell(text, share, None, count, of)
    if found := _LIMITS.fullmatch(numeral):
        low, high = _same_scale(*found.groups())
        return PrintedCell(text, None, (low, high))
    return PrintedCell(text)


def _same_scale(*texts: str) -> list[Number]:
    """Read numbers of one cell: a percent sign at one of them means all."""
    percent = any("%" in text for text in texts)
    return [
        _number(text + "%" if percent and "%" not in text else text) for text in texts
    ]


def _number(text: str) -> Number:
    digits = text.replace("%", "").replace(",", "").strip()
    places = len(digits.partition(".")[2])
    number = Number(float(digits), 10.0**-places)
    return Number(number.value / 100, number.unit / 100) if "%" in text else number


def _whole(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None


_LARGEST = 5_000_000
"""Bytes of a file; a table in an article has thousands."""

_WIDEST = 100_000
"""Characters of one cell."""

_MOST_ROWS, _MOST_COLUMNS, _MOST_TABLES = 1_000, 100, 50
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_MOST_HEADERS = 3


class TextTable(NamedTuple):
    """A table as text: every row as long as the header."""

    name: str
    """``"Table 2"`` where the caption says so, else the file's name."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ragged: int
    """Rows that had more or fewer cells than the header."""


def read_grids(path: Path) -> list[TextTable]:
    """Return the tables of a CSV or Markdown file, in their order.

    A line of a CSV file with one filled cell before a header is its caption; in
    Markdown it is the last line of text before the table. Several tables in a CSV
    file are divided by an empty line; a single row with a number after one, such as
    an average, belongs to the table before it. Rows of a header are joined.

    Raises
    ------
    DataError
        The file cannot be read, is too large, or holds no table.
    """
    _check_size(path)
    text = read_text(path).removeprefix("\ufeff")
    markdown = path.suffix.lower() in (".md", ".markdown")
    blocks = _markdown_blocks(text) if markdown else _csv_blocks(text, path)
    if len(blocks) > _MOST_TABLES:
        raise DataError(
            f"{path} holds {len(blocks)} tables, more than {_MOST_TABLES}. Divide it."
        )
    grids = [
        _grid(caption, rows, path, index)
        for index, (caption, rows) in enumerate(blocks)
    ]
    if not grids:
        raise DataError(
            f"{path} holds no table with a header and a row. Write it as CSV, or as a "
            "Markdown table with a line of dashes below its header."
        )
    return grids


Block = tuple[str, list[list[str]]]


def _check_size(path: Path) -> None:
    try:
        if not path.is_file():
            raise DataError(f"{path} is not a file. Name a CSV or Markdown file.")
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    if size > _LARGEST:
        raise DataError(
            f"{path} has {size:,} bytes, more than {_LARGEST:,}. Name a file "
            "that holds the tables and nothing else."
        )


def _csv_blocks(text: str, path: Path) -> list[Block]:
    """Divide a CSV text at its empty lines; captions go with what follows them."""
    blocks: list[Block] = []
    caption, rows = "", list[list[str]]()
    try:
        for row in [*csv.reader(io.StringIO(text), delimiter=_delimiter(text)), []]:
            if any(len(cell) > _WIDEST for cell in row):
                raise DataError(
                    f"{path} is not CSV (a cell of more than {_WIDEST:,} characters). "
                    "Look for a quote that is never closed."
                )
            filled = [cell for cell in row if cell.strip()]
            if not rows and len(filled) == 1:
                caption = f"{caption} {filled[0].strip()}".strip()
            elif filled:
                rows.append(row)
            elif rows:
                if blocks and not caption and _is_lone_row(rows):
                    blocks[-1][1].extend(rows)
                else:
                    blocks.append((caption, rows))
                caption, rows = "", []
    except csv.Error as error:
        raise DataError(f"{path} is not CSV ({error}). Correct it.") from error
    return [block for block in blocks if len(block[1]) > 1]


def _is_lone_row(rows: list[list[str]]) -> bool:
    """Whether all there is between two empty lines is one row with a number."""
    return len(rows) == 1 and any(read_cell(cell).numeric for cell in rows[0][1:])


def _delimiter(text: str) -> str:
    """Return the delimiter that divides the most of the first lines."""
    lines = [line for line in text[:20_000].splitlines() if line.strip()][:20]
    return max(
        ",;\t|",
        key=lambda mark: (
            sum(mark in line for line in lines[:20]) * 1000
            + sum(line.count(mark) for line in lines if mark in ";\t|")
        ),
    )


def _markdown_blocks(text: str) -> list[Block]:
    lines = text.splitlines()
    blocks: list[Block] = []
    index = 1
    while index < len(lines):
        if "|" in lines[index - 1] and _is_rule(lines[index]):
            end = index + 1
            while end < len(lines) and "|" in lines[end]:
                end += 1
            body = [lines[index - 1], *lines[index + 1 : end]]
            caption = _caption_before(lines[: index - 1])
            blocks.append((caption, [_cells(line) for line in body]))
            index = end
        index += 1
    return [block for block in blocks if len(block[1]) > 1]


def _is_rule(line: str) -> bool:
    return len(line) < 10_000 and "-" in line and bool(_RULE.fullmatch(line))


def _caption_before(lines: list[str]) -> str:
    for line in reversed(lines[-3:]):
        if line.strip() and "|" not in line:
            return line.strip().lstrip("# ").strip()
    return ""


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _grid(caption: str, rows: list[list[str]], path: Path, index: int) -> TextTable:
    if len(rows) > _MOST_ROWS or max(map(len, rows)) > _MOST_COLUMNS:
        raise DataError(
            f"{path}, table {index + 1}: more than {_MOST_ROWS} rows or "
            f"{_MOST_COLUMNS} columns. Cut it to the rows that were published."
        )
    depth = _header_depth(rows)
    width = max(map(len, rows[:depth]))
    header = _join_headers([_padded(row, width) for row in rows[:depth]])
    body = [row for row in rows[depth:] if any(cell.strip() for cell in row)]
    ragged = sum(_filled_width(row) > width or len(row) < width for row in body)
    plain = tuple(tuple(clean_text(c) for c in _padded(row, width)) for row in body)
    named = re.search(r"\btable\s+([A-Z]?\d+[a-z]?)\b", caption, re.IGNORECASE)
    fallback = path.stem if index == 0 else f"{path.stem} #{index + 1}"
    name = f"Table {named[1]}" if named else fallback
    return TextTable(name, clean_text(caption), header, plain, ragged)


def _filled_width(row: list[str]) -> int:
    return max((i + 1 for i, cell in enumerate(row) if cell.strip()), default=0)


def _padded(row: list[str], width: int) -> list[str]:
    return (row + [""] * width)[:width]


def _header_depth(rows: list[list[str]]) -> int:
    """Count the leading rows without a number; at least one, and one row must stay."""
    depth = 1
    while depth < min(_MOST_HEADERS, len(rows) - 1):
        beyond = [cell for cell in rows[depth][1:] if clean_text(cell)]
        words = [cell for cell in beyond if re.search(r"[^\W\d_]", clean_text(cell))]
        if not words or any(read_cell(cell).numeric for cell in beyond):
            break
        depth += 1
    return depth


def _join_headers(rows: list[list[str]]) -> tuple[str, ...]:
    """Join header rows per column; an empty upper cell takes its left neighbour's."""
    filled = [_carried(row) for row in rows[:-1]] + [rows[-1]]
    joined = []
    for cells in zip(*filled, strict=True):
        parts = [clean_text(cell) for cell in cells]
        joined.append(" ".join(dict.fromkeys(part for part in parts if part)))
    return tuple(joined)


def _carried(row: list[str]) -> list[str]:
    carried, last = [], ""
    for index, cell in enumerate(row):
        last = cell if cell.strip() or index == 0 else last
        carried.append(last)
    return carried

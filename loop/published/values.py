"""Cells of a printed table: numbers with the precision they were printed with."""

from __future__ import annotations

import html
import re
import unicodedata
from math import log10
from typing import NamedTuple

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
    return _read(plain, numeral.lower())


def decimal_commas(texts: list[str]) -> bool:
    """Return whether cells write decimal commas: some must, and none a point."""
    plain = [clean_text(text) for text in texts]
    if any(re.search(r"\d\.\d", text) for text in plain):
        return False
    certain = re.compile(r"(?<![\d,])(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?![\d,])")
    return any(certain.search(text) for text in plain)


def _read(text: str, numeral: str) -> PrintedCell:
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

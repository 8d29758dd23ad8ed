"""Finds and reads the JSON objects inside a model's prose, without guessing.

Reads strict JSON and what models write instead of it: Python literals, single quotes,
trailing commas, line breaks in strings. Keeps repeated keys apart, so that the caller
can see them. Time is linear in the text: an unreadable object ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

MAX_DEPTH = 8
"""Deepest nesting read; answers need three levels."""

_SPACE = re.compile(r"[\s\ufeff]*+")
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CONTROL = re.compile(r"[\x00-\x1f]")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]{1,8}(?!\w)")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: Mapping[str, bool | None] = {"True": True, "False": False, "None": None}


@dataclass(frozen=True, slots=True)
class JsonPairs:
    """A JSON object as its pairs, repeated keys included."""

    pairs: tuple[tuple[str, Loose], ...]


Loose: TypeAlias = "str | int | float | JsonPairs | tuple[Loose, ...] | None"


class NotJsonError(ValueError):
    """The text does not hold a readable object at `position`."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(f"not readable at character {position}")


@dataclass(slots=True)
class ObjectReader:
    """Reads the objects of one text; `repairs` tells what was not JSON."""

    text: str
    repairs: set[str] = field(default_factory=set)

    def read_object(self, start: int) -> tuple[JsonPairs, int]:
        """Return the object that opens at `start`, and where it ends.

        Raises
        ------
        NotJsonError
            No readable object opens there.
        """
        return self._object(start, 1)

    def _object(self, start: int, depth: int) -> tuple[JsonPairs, int]:
        pairs: list[tuple[str, Loose]] = []
        at = self._skip(start + 1)
        while self.text[at : at + 1] != "}":
            key, at = self._string(at)
            at = self._skip(at)
            if self.text[at : at + 1] != ":":
                raise NotJsonError(at)
            value, at = self._value(self._skip(at + 1), depth)
            pairs.append((key, value))
            at = self._comma(at, "}")
        return JsonPairs(tuple(pairs)), at + 1

    def _array(self, start: int, depth: int) -> tuple[tuple[Loose, ...], int]:
        values: list[Loose] = []
        at = self._skip(start + 1)
        while self.text[at : at + 1] != "]":
            value, at = self._value(at, depth)
            values.append(value)
            at = self._comma(at, "]")
        return tuple(values), at + 1

    def _comma(self, at: int, close: str) -> int:
        """Step over one comma; stay at the closing bracket."""
        at = self._skip(at)
        if self.text[at : at + 1] == close:
            return at
        if self.text[at : at + 1] != ",":
            raise NotJsonError(at)
        at = self._skip(at + 1)
        if self.text[at : at + 1] == close:
            self.repairs.add("trailing comma removed")
        return at

    def _value(self, at: int, depth: int) -> tuple[Loose, int]:
        first = self.text[at : at + 1]
        if first in ("{", "["):
            if depth >= MAX_DEPTH:
                raise NotJsonError(at)
            if first == "{":
                return self._object(at, depth + 1)
            return self._array(at, depth + 1)
        if first in ('"', "'"):
            return self._string(at)
        return self._scalar(at)

    def _scalar(self, at: int) -> tuple[Loose, int]:
        number = _NUMBER.match(self.text, at)
        if number:
            digits = number[0]
            return float(digits) if "." in digits else int(digits), number.end()
        word = _WORD.match(self.text, at)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        if word and word[0] in _PYTHON_WORDS:
            self.repairs.add("Python literals read as JSON")
            return _PYTHON_WORDS[word[0]], word.end()
        raise NotJsonError(at)

    def _string(self, at: int) -> tuple[str, int]:
        quote = self.text[at : at + 1]
        match = _STRINGS[quote].match(self.text, at) if quote in _STRINGS else None
        if match is None:
            raise NotJsonError(at)
        if quote == "'":
            self.repairs.add("single quotes read as double quotes")
        if _CONTROL.search(match[1]):
            self.repairs.add("control character inside a string")
        return _unescape(match[1]), match.end()

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at


def _unescape(raw: str) -> str:
    """Return a string token's text; an unknown escape stands for its character."""
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(_escaped, raw)
    # Characters beyond the basic plane are escaped as two halves: join them.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)

"""What the contracts of judges share: names of fields, entries, and words for counts.

A judge says of a pair how many errors the candidate has, by category and significance,
and how many of its findings match the reference. Each of these is a field whose value
is a count, and whose entries are what the answer lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pydantic_core import from_json

from loop.core.records import Entry, Field, Item, PromptTask, Reading, Span
from loop.prompts.outputs.label_values import MAX_CHARS
from loop.prompts.outputs.loose_json import JsonPairs, Loose
from loop.prompts.outputs.tolerant import UnreadableError, strip_fences
from loop.prompts.outputs.words import fold_name

INPUTS: Final = ("reference", "candidate")
"""The texts of a judged pair."""

SIGNIFICANT: Final = "significant"
INSIGNIFICANT: Final = "insignificant"
MATCHED: Final = "matched"
"""Field of the number of matched findings."""

OWN_SCORE: Final = "score"
"""Field of a score that the judge gives itself, 0 to 1."""

RULES_SCORE: Final = "rules_score"
"""Key under which `rules` gives it; a model is not asked for one."""

MATCHES: Final = 3
"""Matched findings of the mean pair, where a dry run assumes a number."""

MAX_LISTED: Final = 30
"""Most things of one kind that a model is asked to list."""

SCORE_SCHEMA: Final[Mapping[str, object]] = MappingProxyType(
    {"type": "number", "enum": [number / 100 for number in range(101)]}
)
"""JSON schema of a score from 0 to 1 with two decimals: servers that enforce a schema
know lists of values, and few of them the bounds of a number."""

MAX_COUNT: Final = 999
"""Largest count read; a report has no more findings."""

NONE = Field(0)
"""One shared field for what does not occur."""


class JudgeForm:
    """A contract of a judge that counts nothing: what others do, they say."""

    version = "1"
    task = PromptTask.JUDGE
    inputs: tuple[str, ...] = INPUTS
    counts_errors = False
    weighs = False
    counts_matches = False
    numbers: tuple[str, ...] = ()


class FreeText:
    """A contract that is asked for as free text."""

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return nothing: no schema holds."""
        return {}


def object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def error_field(category: str, weight: str = "") -> str:
    """Return the name of the field that counts errors of a category.

    Examples
    --------
    >>> error_field("omission", "significant"), error_field("omission")
    ('significant.omission', 'omission')
    """
    return f"{weight}.{category}" if weight else category


@lru_cache(maxsize=32)
def error_fields(
    categories: tuple[str, ...], weights: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of the fields of all categories, by significance first."""
    return tuple(error_field(name, weight) for weight in weights for name in categories)


def listed_field(
    words: Sequence[str],
    item: Item,
    category: str = "",
    weight: str = "",
    *,
    count: int | None = None,
) -> Field:
    """Return the field of a count and of what was listed for it.

    Parameters
    ----------
    count
        As the answer declares it; None for the number of things listed.
    """
    if not words and not count:
        return NONE
    texts = item.variables
    # A named tuple's own `__new__` is Python code and takes three times as long.
    entries = [
        _new(Entry, (one, category, weight, find_places(one, INPUTS, texts)))
        for one in words
    ]
    return Field(len(entries) if count is None else count, (), tuple(entries))


_new = tuple.__new__


def find_places(
    words: str, names: Sequence[str], texts: Mapping[str, str]
) -> tuple[Span, ...]:
    """Return where words are in the texts called `names`, in each that has them once.

    Only the very words count: a judge describes an error more than it quotes. Where
    they occur twice, nothing says which of the two is meant.
    """
    return tuple(
        [
            _new(Span, (start, start + len(words), name))
            for name in names
            if (start := (text := texts.get(name, "")).find(words)) >= 0
            and text.find(words, start + 1) < 0
        ]
    )


_TAG = re.compile(r"<\s*(/?)\s*(?:think|thinking|thought|reasoning)\s*>", re.IGNORECASE)


def strip_thoughts(text: str) -> tuple[str, bool]:
    """Return an answer without its thinking, and whether there was any.

    Stricter than `strip_thinking`, which the versions of the other contracts rest on.
    Blocks may be nested: what stands in an outer block after an inner one is a draft,
    too. A closing tag that nothing opened ends a block that the prompt opened, so
    nothing before it is an answer; one that is never closed reaches to the end.
    """
    kept: list[str] = []
    depth = at = 0
    found = False
    for tag in _TAG.finditer(text):
        found = True
        if not tag[1]:
            if depth == 0:
                kept.append(text[at : tag.start()])
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = tag.end()
    if not found:
        return text, False
    return "".join(kept) + ("" if depth else text[at:]), True


def parse_object(text: str, keys: Collection[str]) -> dict[str, Any] | None:
    """Return an answer that is one JSON object with just these keys, else None.

    It may have the score of `rules` besides. Of a key that is repeated it has the last
    value; see `repeats_keys`.
    """
    if len(text) > MAX_CHARS or not text.lstrip().startswith("{"):
        return None
    try:
        data: dict[str, Any] = from_json(text)
    except (ValueError, TypeError):
        # TypeError: lone surrogates make a str that is not text to the parser.
        return None
    asked = len(data) == len(keys) or data.keys() - keys == {RULES_SCORE}
    return data if asked and data.keys() >= set(keys) else None


def read_score(given: object) -> Field:
    """Return the field of a score that an answer gives itself.

    Raises
    ------
    UnreadableError
        It is no number from 0 to 1.
    """
    if isinstance(given, int | float) and is_score(given):
        return Field(float(given))
    raise UnreadableError(f"{RULES_SCORE}: it is not a number from 0 to 1")


def is_score(given: object) -> bool:
    """Whether a value of an answer is a number from 0 to 1."""
    return type(given) in (int, float) and 0 <= given <= 1  # type: ignore[operator]


_PRINTED = re.compile(
    r"[*_\s]*+(?P<number>(?:0|1)(?:\.[0-9]{1,4})?|\.[0-9]{1,4})(?P<rest>[*_ \t]*+"
    r"(?:(?:/|out of)[ \t]*+1(?:\.0{1,2})?)?[*_ \t]*+\.?)[*_\s]*+"
)
_PERCENT = re.compile(r"[*_\s]*+(?P<number>[0-9]{1,3}(?:\.[0-9])?)[ \t]?%\.?[*_\s]*+")


def read_printed_score(printed: object, where: str, notes: list[str]) -> Field:
    """Return the field of a score from 0 to 1 as a judge writes it.

    ``0.85``, also out of 1 or as a percentage, which are repairs. A bare 0 may
    be the beginning of another score, and is not read.

    Raises
    ------
    UnreadableError
        It is not such a number, is out of range, or more is said.

    Examples
    --------
    >>> notes = []
    >>> read_printed_score("85 %", "score", notes).value, notes
    (0.85, ['score: a percentage read as a share'])
    """
    if isinstance(printed, int | float) and not isinstance(printed, bool):
        if 0 <= printed <= 1:
            return Field(float(printed))
        raise UnreadableError(f"{where}: it is not between 0 and 1")
    if not isinstance(printed, str) or not printed.strip():
        raise UnreadableError(f"{where}: there is no number")
    if percent := _PERCENT.fullmatch(printed):
        share = float(percent["number"]) / 100
        if share > 1:
            raise UnreadableError(f"{where}: it is not between 0 and 1")
        notes.append(f"{where}: a percentage read as a share")
        return Field(round(share, 4))
    found = _PRINTED.fullmatch(printed)
    if found is None:
        raise UnreadableError(f"{where}: it is not one number between 0 and 1")
    number = found["number"]
    if float(number) > 1:
        raise UnreadableError(f"{where}: it is not between 0 and 1")
    if number == "0" and found["rest"].strip(" .*_") == "":
        raise UnreadableError(f"{where}: a 0 that may be the beginning of a number")
    if len(number) != 4 or found["rest"].strip("*_ \t"):
        notes.append(f"{where}: a score spelled differently")
    return Field(float(number))


_LEADING_ZERO = re.compile(r":\s*-?0[0-9]")


def refuse_leading_zero(body: str, where: str) -> None:
    """Refuse an answer in JSON with a number such as 01: it may have been 0.1.

    Raises
    ------
    UnreadableError
        There is one.
    """
    if _LEADING_ZERO.search(body):
        raise UnreadableError(f"{where}: a number that is not understood")


def read_unwrapped(
    text: str, read: Callable[[str, list[str]], dict[str, Field]]
) -> Reading:
    """Return what `read` makes of an answer without its thinking and its fences.

    Parameters
    ----------
    read
        Body of the answer to its fields; adds to the repairs, and raises
        `UnreadableError`, whose words are then the problem.
    """
    notes: list[str] = []
    try:
        if len(text) > MAX_CHARS:
            raise UnreadableError(f"the answer is longer than {MAX_CHARS:,} chars")
        body, thought = strip_thoughts(text)
        if thought:
            notes.append("thinking removed")
        if "```" in body or "~~~" in body:
            body, fences, _ = strip_fences(body)
            notes += fences
        if not body.strip():
            after = " after thinking" if thought else ""
            raise UnreadableError(f"there is no answer{after}")
        answered = read(body, notes)
        return Reading(answered, tuple(dict.fromkeys(notes)) if notes else ())
    except UnreadableError as error:
        return Reading(None, tuple(dict.fromkeys(notes)), str(error))


def name_values(
    pairs: JsonPairs,
    names: Mapping[str, str],
    where: str,
    notes: list[str],
    *,
    strangers: bool = False,
) -> dict[str, Loose]:
    """Return the values of an object by the names of its keys.

    Parameters
    ----------
    names
        Folded key (see `fold_name`) to its name.
    strangers
        Whether other keys are left out, and noted; else they make it unreadable.

    Raises
    ------
    UnreadableError
        A key occurs twice, or is none of the names.
    """
    found: dict[str, Loose] = {}
    for key, value in pairs.pairs:
        name = names.get(fold_name(key))
        if name is None:
            if not strangers:
                raise UnreadableError(f"{where}: a key that was not asked for")
            notes.append(f"{where}: a key that was not asked for ignored")
            continue
        if name in found:
            raise UnreadableError(f"{where}: a key occurs twice")
        if key != name:
            notes.append(f"{where}: a key spelled differently")
        found[name] = value
    return found


def fold_word(word: str) -> str:
    """Return a word of a closed set as `fold_name` does; nothing if it has an aside.

    An aside in a name says what the name means; in a value it takes something back.

    Examples
    --------
    >>> fold_word("Not-entailed"), fold_word("urgent (or benign)")
    ('notentailed', '')
    """
    return "" if "(" in word else fold_name(word)


_COUNT_WORDS: Final[Mapping[str, int]] = {
    word: number
    for number, words in enumerate(
        (
            *("zero 零", "one 一", "two 二 两", "three 三", "four 四"),
            *("five 五", "six 六", "seven 七", "eight 八", "nine 九", "ten 十"),
            *("eleven 十一", "twelve 十二", "thirteen", "fourteen", "fifteen"),
            *("sixteen", "seventeen", "eighteen", "nineteen", "twenty 二十"),
        )
    )
    for word in words.split()
}


def read_number(word: str) -> int | None:
    """Return the count that digits or a number word stand for; None for others.

    Examples
    --------
    >>> read_number("3"), read_number("Two"), read_number("两"), read_number("many")
    (3, 2, 2, None)
    """
    if word.isdecimal():
        return int(word) if len(word) <= 3 else None
    return _COUNT_WORDS.get(word.casefold())


NUMBER: Final = (
    r"\d{1,3}|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty)\b"
    r"|十[一二]|二十|[零一二两三四五六七八九十]"
)
"""Pattern of what `read_number` reads where a count may stand."""

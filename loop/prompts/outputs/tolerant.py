"""Reads answers that do not follow their schema; records each repair.

Whatever could mean two things ends here with a problem that names fields, never with
a guess. Problems and repairs never quote the answer: it may quote the case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from loop.core.records import Field, Reading, Value
from loop.prompts.outputs.evidence import locate
from loop.prompts.outputs.loose_json import JsonPairs, Loose, NotJsonError, ObjectReader
from loop.prompts.outputs.strict import ENTRY_KEYS
from loop.prompts.outputs.words import BARE, fold_name, read_value

_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+(?:```|~~~)[ \t]*+\w*+[ \t]*+\r?$", re.MULTILINE)
_INLINE_FENCE = re.compile(r"\A\s*```(?:json)?(.*)```\s*\Z", re.DOTALL | re.IGNORECASE)


class Stripped(NamedTuple):
    """An answer without its wrapping."""

    text: str
    repairs: tuple[str, ...]
    thinking: str = ""
    """What was taken away as thinking, without its tags."""


def strip_thinking(text: str) -> Stripped:
    """Return `text` without thinking blocks.

    A closing tag without an opening one ends a block that the prompt opened. A block
    that is never closed reaches to the end of the text: a draft inside thinking is not
    an answer.
    """
    kept, thought, at = [], [], 0
    stray = _CLOSE.search(text)
    first = _OPEN.search(text)
    if stray and (first is None or stray.start() < first.start()):
        thought.append(text[: stray.start()])
        at = stray.end()
    found = at > 0
    while opening := _OPEN.search(text, at):
        found = True
        kept.append(text[at : opening.start()])
        closing = _CLOSE.search(text, opening.end())
        thought.append(text[opening.end() : closing.start() if closing else len(text)])
        at = closing.end() if closing else len(text)
    if not found:
        return Stripped(text, ())
    return Stripped(
        "".join((*kept, text[at:])), ("thinking removed",), "\n\n".join(thought)
    )


def strip_fences(text: str) -> Stripped:
    """Return `text` without the marks of Markdown code fences."""
    inline = _INLINE_FENCE.match(text)
    bare = inline[1] if inline else _FENCE.sub("", text)
    return Stripped(bare, ("code fence removed",) if bare != text else ())


BodyReader = Callable[[str, list[str]], dict[str, Field]]
"""Body of an answer to its fields; adds to the repairs, raises `UnreadableError`."""

_MAX_OBJECTS = 50
"""Objects read in one answer; more are no answer."""

_NO_OBJECT = "there is no JSON object in the answer"
_AROUND = "*_`\"' \t\r\n.,;:[]()"


class UnreadableError(ValueError):
    """The answer cannot be read; the message is the reading's problem."""


def read_tolerantly(text: str, read_body: BodyReader) -> Reading:
    """Return what `read_body` makes of a free-form answer, or why nothing.

    Parameters
    ----------
    text
        The raw answer.
    read_body
        Reads the answer once thinking and code fences are taken away.
    """
    body, thinking, _ = strip_thinking(text)
    body, fences, _ = strip_fences(body)
    repairs = [*thinking, *fences]
    try:
        if not body.strip():
            raise UnreadableError(_empty(text, bool(thinking)))
        return Reading(read_body(body, repairs), tuple(repairs))
    except UnreadableError as error:
        return Reading(None, tuple(repairs), str(error))


def _empty(text: str, thought: bool) -> str:
    if not text.strip():
        return "the answer is empty"
    return "there is no answer after thinking" if thought else "the answer is empty"


def read_bare(body: str, name: str, repairs: list[str]) -> Field:
    """Return the field of a word or number that answers the only field `name`.

    Raises
    ------
    UnreadableError
        It is no word of the table.
    """
    value = read_value(body.strip(_AROUND))
    if value is None:
        raise UnreadableError(_NO_OBJECT)
    repairs.append("bare word read as the value")
    return BARE[value.value]


def find_object(body: str, repairs: list[str], *, alone: bool = False) -> JsonPairs:
    """Return the one object in `body`; copies of it are allowed, others are not.

    Parameters
    ----------
    alone
        Whether words beside the object make it unreadable: they must where what the
        object leaves out means something, since the words may say it.

    Raises
    ------
    UnreadableError
        There is none, it cannot be read, there are different ones, or it should stand
        alone and does not.
    """
    reader = ObjectReader(body)
    objects: list[JsonPairs] = []
    outside, at = "", 0
    while (start := body.find("{", at)) >= 0:
        outside += body[at:start]
        try:
            found, at = reader.read_object(start)
        except NotJsonError as error:
            where = error.position
            raise UnreadableError(
                f"not readable as JSON at character {where} of the answer"
            ) from error
        objects.append(found)
        if len(objects) > _MAX_OBJECTS:
            raise UnreadableError(f"more than {_MAX_OBJECTS} objects in the answer")
    if not objects:
        raise UnreadableError(_NO_OBJECT)
    if any(other != objects[0] for other in objects[1:]):
        raise UnreadableError(f"{len(objects)} different objects in the answer")
    if len(objects) > 1:
        repairs.append("the same object given more than once")
    outside += body[at:]
    if alone and any(char.isalnum() for char in outside):
        raise UnreadableError("there are words beside the answer, which may say more")
    if outside.strip("\ufeff \t\r\n"):
        repairs.append("text around the object removed")
    repairs.extend(sorted(reader.repairs))
    return objects[0]


class Labels:
    """The labels asked for, by what models write instead of their ids."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._exact = frozenset(fields)
        self._folded = {fold_name(name): name for name in fields}

    def find(self, written: str, repairs: list[str]) -> str | None:
        """Return the label `written` names, or None if it was not asked for."""
        if written in self._exact:
            return written
        name = self._folded.get(fold_name(written))
        if name is not None:
            repairs.append(f"{name}: label spelled differently")
        return name


def add_field(
    found: dict[str, Field], name: str, answered: Field, repairs: list[str]
) -> None:
    """Put a field into `found`; a second one must have the same value.

    Raises
    ------
    UnreadableError
        The label has another value already.
    """
    if name not in found:
        found[name] = answered
    elif found[name].value != answered.value:
        raise UnreadableError(f"two different values for {name}")
    else:
        repairs.append(f"{name}: given more than once")


def read_entry(name: str, raw: JsonPairs, source: str, repairs: list[str]) -> Field:
    """Return the field of an entry with a value and perhaps evidence.

    Raises
    ------
    UnreadableError
        It has no value, or one that is not understood.
    """
    entry = _entry_keys(name, raw, repairs)
    if "value" not in entry:
        raise UnreadableError(f"no value for {name}")
    value = read_word(name, entry["value"], repairs)
    located = locate(entry.get("evidence"), entry.get("span"), source)
    if located.repair:
        repairs.append(f"{name}: {located.repair}")
    return Field(value, located.spans) if located.spans else BARE[value.value]


def _entry_keys(name: str, raw: JsonPairs, repairs: list[str]) -> dict[str, Loose]:
    """Return an entry's pairs by folded key; a repeated key must repeat its value."""
    entry: dict[str, Loose] = {}
    for key, value in raw.pairs:
        folded = fold_name(key)
        if folded not in ENTRY_KEYS:
            repairs.append(f"{name}: a key that is not value or evidence ignored")
        elif folded in entry and entry[folded] != value:
            raise UnreadableError(f"two different {folded} keys for {name}")
        else:
            entry[folded] = value
    return entry


def read_word(name: str, raw: Loose, repairs: list[str]) -> Value:
    """Return the value a word or number stands for.

    Raises
    ------
    UnreadableError
        The table of words does not have it.
    """
    value = read_value(raw)
    if value is None:
        raise UnreadableError(f"the value of {name} is not one of the known words")
    if raw != value.value:
        repairs.append(f"{name}: value spelled differently")
    return value

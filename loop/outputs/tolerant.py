"""Reads label values from answers that do not follow the schema; records each repair.

Whatever could mean two things ends here with a problem that names fields, never with
a guess. Problems and repairs never quote the answer: it may quote the case.
"""

from __future__ import annotations

from collections.abc import Sequence

from loop.core.records import Field, Reading, Value
from loop.outputs.evidence import locate
from loop.outputs.loose_json import Loose, NotJsonError, ObjectReader, Pairs
from loop.outputs.stripping import strip_fences, strip_thinking
from loop.outputs.words import BARE, fold_name, read_value

_MAX_OBJECTS = 50
"""Objects read in one answer; more are no answer."""

_AROUND = "*_`\"' \t\r\n.,;:[]()"
_ENTRY_KEYS = frozenset({"value", "evidence", "span"})


class _UnreadableError(ValueError):
    """The answer cannot be read; the message is the reading's problem."""


def read_tolerantly(text: str, fields: Sequence[str], source: str) -> Reading:
    """Return the values of `fields` from a free-form answer, or why not.

    Parameters
    ----------
    text
        The raw answer.
    fields
        Label ids asked for.
    source
        The case text, in which evidence is located.
    """
    body, thinking = strip_thinking(text)
    body, fences = strip_fences(body)
    repairs = [*thinking, *fences]
    try:
        if not body.strip():
            raise _UnreadableError(_empty(text, bool(thinking)))
        if "{" not in body:
            return _read_bare(body, fields, repairs)
        answer = _only_object(body, repairs)
        return Reading(_read_fields(answer, fields, source, repairs), tuple(repairs))
    except _UnreadableError as error:
        return Reading(None, tuple(repairs), str(error))


def _empty(text: str, thought: bool) -> str:
    if not text.strip():
        return "the answer is empty"
    return "there is no answer after thinking" if thought else "the answer is empty"


def _read_bare(body: str, fields: Sequence[str], repairs: list[str]) -> Reading:
    """Return the reading of a word or number that answers the only field."""
    value = read_value(body.strip(_AROUND)) if len(fields) == 1 else None
    if value is None:
        raise _UnreadableError("there is no JSON object in the answer")
    repairs.append("bare word read as the value")
    return Reading({fields[0]: BARE[value.value]}, tuple(repairs))


def _only_object(body: str, repairs: list[str]) -> Pairs:
    """Return the one object in `body`; copies of it are allowed, others are not."""
    reader = ObjectReader(body)
    objects: list[Pairs] = []
    outside, at = "", 0
    while (start := body.find("{", at)) >= 0:
        outside += body[at:start]
        try:
            found, at = reader.read_object(start)
        except NotJsonError as error:
            where = error.position
            raise _UnreadableError(
                f"not readable as JSON at character {where} of the answer"
            ) from error
        objects.append(found)
        if len(objects) > _MAX_OBJECTS:
            raise _UnreadableError(f"more than {_MAX_OBJECTS} objects in the answer")
    if any(other != objects[0] for other in objects[1:]):
        raise _UnreadableError(f"{len(objects)} different objects in the answer")
    if len(objects) > 1:
        repairs.append("the same object given more than once")
    if (outside + body[at:]).strip("\ufeff \t\r\n"):
        repairs.append("text around the object removed")
    repairs.extend(sorted(reader.repairs))
    return objects[0]


def _read_fields(
    answer: Pairs, fields: Sequence[str], source: str, repairs: list[str]
) -> dict[str, Field]:
    """Return exactly `fields` from the pairs of an answer."""
    pairs = answer.pairs
    if len(fields) == 1 and _is_entry(answer, fields[0]):
        repairs.append("answer without its label taken for the only one asked")
        pairs = ((fields[0], answer),)
    names = {fold_name(name): name for name in fields}
    found: dict[str, Field] = {}
    unknown = 0
    for key, raw in pairs:
        name = key if key in fields else names.get(fold_name(key))
        if name is None:
            unknown += 1
            continue
        if name != key:
            repairs.append(f"{name}: label spelled differently")
        answered = _read_entry(name, raw, source, repairs)
        if name in found:
            _check_same(name, found[name], answered)
            repairs.append(f"{name}: given more than once")
        found.setdefault(name, answered)
    _check_complete(fields, found, unknown)
    return {name: found[name] for name in fields}


def _is_entry(answer: Pairs, wanted: str) -> bool:
    keys = {fold_name(key) for key, _ in answer.pairs}
    return "value" in keys and keys <= _ENTRY_KEYS and fold_name(wanted) not in keys


def _check_same(name: str, first: Field, second: Field) -> None:
    if first.value != second.value:
        raise _UnreadableError(f"two different values for {name}")


def _check_complete(
    fields: Sequence[str], found: dict[str, Field], unknown: int
) -> None:
    missing = [name for name in fields if name not in found]
    if missing:
        more = f" and {unknown} unknown field(s)" if unknown else ""
        raise _UnreadableError(f"no answer for {', '.join(missing)}{more}")
    if unknown:
        raise _UnreadableError(f"{unknown} field(s) that were not asked for")


def _read_entry(name: str, raw: Loose, source: str, repairs: list[str]) -> Field:
    """Return the field that `raw` answers: an entry, or a bare value."""
    if not isinstance(raw, Pairs):
        value = _value_of(name, raw, repairs)
        if raw != Value.ABSENT:
            repairs.append(f"{name}: bare value")
        return BARE[value.value]
    entry = _entry_keys(name, raw, repairs)
    if "value" not in entry:
        raise _UnreadableError(f"no value for {name}")
    value = _value_of(name, entry["value"], repairs)
    located = locate(entry.get("evidence"), entry.get("span"), source)
    if located.repair:
        repairs.append(f"{name}: {located.repair}")
    return Field(value, located.spans) if located.spans else BARE[value.value]


def _entry_keys(name: str, raw: Pairs, repairs: list[str]) -> dict[str, Loose]:
    """Return an entry's pairs by folded key; a repeated key must repeat its value."""
    entry: dict[str, Loose] = {}
    for key, value in raw.pairs:
        folded = fold_name(key)
        if folded not in _ENTRY_KEYS:
            repairs.append(f"{name}: a key that is not value or evidence ignored")
        elif folded in entry and entry[folded] != value:
            raise _UnreadableError(f"two different {folded} keys for {name}")
        else:
            entry[folded] = value
    return entry


def _value_of(name: str, raw: Loose, repairs: list[str]) -> Value:
    value = read_value(raw)
    if value is None:
        raise _UnreadableError(f"the value of {name} is not one of the known words")
    if raw != value.value:
        repairs.append(f"{name}: value spelled differently")
    return value

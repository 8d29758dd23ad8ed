"""The contract ``label_values``: one present, absent or uncertain per label.

The answer is a JSON object keyed by label id::

    {"edema": {"value": "present", "evidence": "pulmonary edema", "span": [12, 27]},
     "fracture": "absent"}

``evidence`` and ``span`` are optional. A label that the text does not mention is plain
"absent": most are, and the shorter answer saves a model its output tokens. Exactly the
labels asked for must be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from loop.core.records import Field, Item, Reading, Span, Value
from loop.outputs.evidence import locate
from loop.outputs.tolerant import read_tolerantly
from loop.outputs.words import BARE

MAX_CHARS = 400_000
"""Longest answer read, characters; a real one has a few thousand, its thinking more."""

_ENTRY_KEYS = {"value", "evidence", "span"}

_NOT_MENTIONED = "absent"
"""The entry of a label that the case does not mention."""

_new = tuple.__new__

_VALUES: Mapping[str, Value] = {value.value: value for value in Value}


class LabelValues:
    """Reads answers of the form above; see `loop.outputs.base.Contract`."""

    name = "label_values"
    version = "1"

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return the JSON schema of an answer with exactly these labels."""
        return {
            "type": "object",
            "properties": {name: _entry_schema() for name in fields},
            "required": list(fields),
            "additionalProperties": False,
        }

    def read(self, text: str, fields: Sequence[str], item: Item) -> Reading:
        """Return the value of each label, or why the answer cannot be read.

        Never raises and never guesses: an answer that could mean two things, misses a
        label or names another one has no fields.
        """
        if len(text) > MAX_CHARS:
            return Reading(None, (), f"the answer is longer than {MAX_CHARS:,} chars")
        source = item.variables.get("text", "")
        strict = _read_strictly(text, fields, source)
        if strict is not None:
            return strict
        return read_tolerantly(text, fields, source)


def _entry_schema() -> dict[str, object]:
    mentioned = {
        "type": "object",
        "properties": {
            "value": {"type": "string", "enum": list(_VALUES)},
            "evidence": {"type": "string"},
            "span": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "minItems": 2,
                "maxItems": 2,
            },
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"enum": [_NOT_MENTIONED]}, mentioned]}


def _read_strictly(text: str, fields: Sequence[str], source: str) -> Reading | None:
    """Return the reading of an answer that follows the schema, else None.

    This runs once per case in the fastest runs: one pass, no copies.
    """
    try:
        data = from_json(text)
    except (ValueError, TypeError):
        # TypeError: lone surrogates make a str that is not text to the parser.
        return None
    answers = dict.fromkeys(fields, BARE[Value.ABSENT])
    if type(data) is not dict or data.keys() != answers.keys():
        return None
    repairs: list[str] = []
    keys = len(data)
    try:
        for name, entry in data.items():
            # Most labels of most reports: nothing to look at more closely.
            if entry == _NOT_MENTIONED:
                continue
            answers[name] = _field(name, entry, source, repairs)
            keys += len(entry)
    except (KeyError, TypeError):
        # An entry is not an object, has no value that is one of the words, or has a
        # key that the schema does not know.
        return None
    # The parser keeps the last of repeated keys. No key was repeated if there are no
    # more colons than keys; with colons in the evidence, look closer.
    if text.count(":") != keys and _repeats_keys(text):
        return None
    return Reading(answers, tuple(repairs))


def _field(
    name: str, entry: Mapping[str, Any], source: str, repairs: list[str]
) -> Field:
    """Return the field of an entry, adding to `repairs`.

    Raises
    ------
    KeyError, TypeError
        The entry does not follow the schema.
    """
    bare = BARE[entry["value"]]
    span = entry.get("span")
    if len(entry) == 2 and type(span) is list and len(span) == 2:
        # What `locate` would find, without its call: what the rules answer. A named
        # tuple's own `__new__` is Python code and takes three times as long.
        start, end = span
        if type(start) is int and type(end) is int and 0 <= start < end <= len(source):
            return _new(Field, (bare.value, (_new(Span, span),)))
    if not entry.keys() <= _ENTRY_KEYS:
        raise KeyError(name)
    found = locate(entry.get("evidence"), span, source)
    if found.repair:
        repairs.append(f"{name}: {found.repair}")
    return Field(bare.value, found.spans) if found.spans else bare


def _repeats_keys(text: str) -> bool:
    try:
        json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        return True
    return False


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("a key occurs twice")
    return unique

"""What the strict readers share: one field of an answer that follows its schema.

These run once per case in the fastest runs: one pass, no copies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from loop.core.digests import unique_keys
from loop.core.records import Field, Note, Span
from loop.prompts.outputs.evidence import locate
from loop.prompts.outputs.words import BARE

ENTRY_KEYS = frozenset({"value", "evidence", "span"})
"""What may be said of one label."""

NOTES: Mapping[str, str] = {
    Note.SPELLING.value: "a misspelt word corrected",
    Note.SECTIONS.value: "findings and impression disagree",
    Note.CUT.value: "the end of the text was not read",
}
"""What a note beside an answer adds to the repairs; a model is not asked for any."""

_new = tuple.__new__


def read_field(
    name: str, entry: Mapping[str, Any], source: str, repairs: list[str]
) -> Field:
    """Return the field of an entry, adding to `repairs`.

    Raises
    ------
    KeyError, TypeError
        The entry does not follow the schema, or has a note that is none of `NOTES`.
    """
    bare = BARE[entry["value"]]
    span = entry.get("span")
    if len(entry) == 2 and type(span) is list and len(span) == 2:
        # What `locate` would find, without its call: what the rules answer. A named
        # tuple's own `__new__` is Python code and takes three times as long.
        start, end = span
        if type(start) is int and type(end) is int and 0 <= start < end <= len(source):
            place = _new(Span, (start, end, "text"))
            return _new(Field, (bare.value, (place,), ()))
    quote = entry.get("evidence")
    if len(entry) == 2 and type(quote) is str and quote:
        # The same for what models answer: a quote that stands in the text once.
        start = source.find(quote)
        if start >= 0 and source.find(quote, start + 1) < 0:
            place = _new(Span, (start, start + len(quote), "text"))
            return _new(Field, (bare.value, (place,), ()))
    if "notes" in entry:
        noted = [f"{name}: {NOTES[note]}" for note in entry["notes"]]
        bare_entry = {key: said for key, said in entry.items() if key != "notes"}
        found = read_field(name, bare_entry, source, repairs)
        repairs += noted
        return found
    if not entry.keys() <= ENTRY_KEYS:
        raise KeyError(name)
    located = locate(entry.get("evidence"), span, source)
    if located.repair:
        repairs.append(f"{name}: {located.repair}")
    return Field(bare.value, located.spans) if located.spans else bare


def repeats_keys(text: str, keys: int) -> bool:
    """Whether an object of `text` has a key twice, where `keys` were found.

    Parsers keep the last of repeated keys. No key was repeated if there are no more
    colons than keys; with colons in the evidence, look closer.
    """
    if text.count(":") == keys:
        return False
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except ValueError:
        return True
    return False

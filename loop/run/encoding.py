"""How an outcome's fields are spelled in the store: compact JSON, exact both ways.

A field without evidence is its value, ``{"edema": "absent"}``; with evidence a list of
the value and the start and end of each span, ``{"edema": ["present", [[12, 20]]]}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring

from pydantic_core import from_json

from loop.core.records import Field, Span, Value

_WORDS: Mapping[object, Value] = {value.value: value for value in Value}
"""Values come back as the enum they were written from."""

_quote = encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class FieldEncoder:
    """Spells fields as JSON; remembers what most outcomes of a run have in common.

    Contracts hand out one shared `Field` for "absent, no evidence", which is most of
    what a run stores. Its spelling for each name is kept, and used wherever a field is
    that very object.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._usual: Field | None = None
        self._parts: list[str] = []

    def encode(self, fields: Mapping[str, Field]) -> str:
        """Return `fields` as one JSON object."""
        if tuple(fields) != self._names:
            self._learn(fields)
        parts, usual = self._parts.copy(), self._usual
        for place, answer in enumerate(fields.values()):
            if answer is not usual:
                parts[place] = _spell(self._names[place], answer)
        return "{" + ",".join(parts) + "}"

    def _learn(self, fields: Mapping[str, Field]) -> None:
        """Keep the spelling of the first field without evidence, for every name."""
        bare = [answer for answer in fields.values() if not answer.spans]
        self._names = tuple(fields)
        self._usual = bare[0] if bare else None
        self._parts = [_spell(name, bare[0]) if bare else "" for name in fields]


def _spell(name: str, answer: Field) -> str:
    """Return one pair, without the set-up cost of a JSON encoder for words."""
    value, spans = answer
    text = _quote(value) if isinstance(value, str) else _encode(value)
    if not spans:
        return f"{_quote(name)}:{text}"
    if len(spans) == 1:
        ((start, end),) = spans
        return f"{_quote(name)}:[{text},[[{start},{end}]]]"
    places = ",".join([f"[{start},{end}]" for start, end in spans])
    return f"{_quote(name)}:[{text},[{places}]]"


def decode_fields(text: str) -> dict[str, Field]:
    """Return the fields that `FieldEncoder.encode` spelled.

    Raises
    ------
    ValueError
        `text` is not such a spelling: the store was changed by something else.
    """
    return {name: _decode(answer) for name, answer in from_json(text).items()}


def _decode(answer: object) -> Field:
    if not isinstance(answer, list):
        return Field(_value(answer))
    value, spans = answer
    return Field(_value(value), tuple(Span(start, end) for start, end in spans))


def _value(raw: object) -> str | int | float:
    if isinstance(raw, str):
        return _WORDS.get(raw, raw)
    if isinstance(raw, int | float):
        return raw
    raise ValueError(f"a field value is {type(raw).__name__}")

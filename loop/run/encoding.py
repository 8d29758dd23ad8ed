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
    """Spells fields as JSON; remembers the spelling of what it sees again.

    Contracts hand out one shared `Field` for "absent, no evidence", which is most of
    what a run stores, so that spelling is looked up by identity.
    """

    def __init__(self) -> None:
        self._bare: dict[str, tuple[Field, str]] = {}
        self._starts: dict[tuple[str, object], str] = {}

    def encode(self, fields: Mapping[str, Field]) -> str:
        """Return `fields` as one JSON object."""
        bare = self._bare
        parts = []
        for name, answer in fields.items():
            known = bare.get(name)
            if known is not None and known[0] is answer:
                parts.append(known[1])
            else:
                parts.append(self._spell(name, answer))
        return "{" + ",".join(parts) + "}"

    def _spell(self, name: str, answer: Field) -> str:
        """Return one pair, without the set-up cost of a JSON encoder for words."""
        value, spans = answer
        text = _quote(value) if isinstance(value, str) else _encode(value)
        if spans:
            places = ",".join([f"[{start},{end}]" for start, end in spans])
            return f"{_quote(name)}:[{text},[{places}]]"
        pair = f"{_quote(name)}:{text}"
        self._bare[name] = (answer, pair)
        return pair


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

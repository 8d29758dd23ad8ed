"""Canonical serialisation and sha256 digests: the identity of everything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping


def canonical_json(value: object) -> bytes:
    """Return `value` as JSON with one possible spelling, UTF-8.

    Keys sorted, no spaces, no NaN or infinity. Equal values give equal bytes on
    every machine, so digests over them can be compared.

    Raises
    ------
    ValueError
        `value` holds NaN or an infinity.
    TypeError
        `value` holds something JSON cannot express.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": "é"}).decode()
    '{"a":"é","b":1}'
    """
    return json.dumps(
        value,
        ensure_ascii=False,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode("utf-8")


def digest_json(value: object) -> str:
    """Sha256 of the canonical JSON of `value`, 64 hex characters."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """Sha256 of `data`, 64 hex characters."""
    return hashlib.sha256(data).hexdigest()


def digest_text(text: str) -> str:
    """Sha256 of `text` as UTF-8, 64 hex characters.

    A lone surrogate, which a broken decoder may leave behind, is hashed as such
    instead of failing.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_texts(texts: Mapping[str, str]) -> str:
    """Sha256 of the texts of a case by their names, 64 hex characters.

    Of one text called ``text`` that of `digest_text`; else over names and texts, framed
    and sorted by name, so that no text can stand for another.

    Examples
    --------
    >>> digest_texts({"text": "a"}) == digest_text("a")
    True
    >>> one = digest_texts({"reference": "a", "candidate": "b"})
    >>> one == digest_texts({"candidate": "b", "reference": "a"})
    True
    >>> one == digest_texts({"reference": "b", "candidate": "a"})
    False
    """
    if len(texts) == 1 and "text" in texts:
        return digest_text(texts["text"])
    named = (part for name in sorted(texts) for part in (name, texts[name]))
    return digest_bytes(framed(named))


def framed(parts: Iterable[str]) -> bytes:
    """Join `parts` so that no two different lists give the same bytes.

    Each part is preceded by its length in bytes.

    Examples
    --------
    >>> framed(["ab", "c"]) != framed(["a", "bc"])
    True
    """
    out = bytearray()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        out += b"%d:" % len(data) + data
    return bytes(out)


class RepeatedKeyError(ValueError):
    """A key appears twice in one JSON object; which is not said, as it may be text."""

    def __init__(self) -> None:
        super().__init__("a name occurs twice")


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object as `json.loads` gives it: its ``object_pairs_hook``.

    Raises
    ------
    RepeatedKeyError
        A key appears twice: of its two values none may win unseen.

    Examples
    --------
    >>> json.loads('{"a": {"b": 1}}', object_pairs_hook=unique_keys)
    {'a': {'b': 1}}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError
    return found

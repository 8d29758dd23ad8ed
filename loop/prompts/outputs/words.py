"""The one table of what models write for present, absent and uncertain."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loop.core.records import Field, Value

BARE: Mapping[str, Field] = {value.value: Field(value) for value in Value}
"""One shared field per value without evidence."""

_WORDS: Mapping[object, Value] = {
    "present": Value.PRESENT,
    "yes": Value.PRESENT,
    "positive": Value.PRESENT,
    "true": Value.PRESENT,
    "1": Value.PRESENT,
    1: Value.PRESENT,
    "absent": Value.ABSENT,
    "no": Value.ABSENT,
    "negative": Value.ABSENT,
    "false": Value.ABSENT,
    "0": Value.ABSENT,
    0: Value.ABSENT,
    "uncertain": Value.UNCERTAIN,
    "possible": Value.UNCERTAIN,
    "-1": Value.UNCERTAIN,
    -1: Value.UNCERTAIN,
}
"""True and False are found as 1 and 0. What is not here is not understood."""

_ASIDE = re.compile(r"\([^()]*\)")
_NAME_WORD = re.compile(r"[^\W_]+")
_SAME_WORD = {"and": "", "abnormality": "abnormal"}


def read_value(word: object) -> Value | None:
    """Return the value `word` stands for, or None where the table has none.

    Examples
    --------
    >>> read_value("Yes"), read_value(-1), read_value("perhaps")
    (<Value.PRESENT: 'present'>, <Value.UNCERTAIN: 'uncertain'>, None)
    """
    if isinstance(word, str):
        return _WORDS.get(word.strip().casefold())
    if isinstance(word, int | float):
        return _WORDS.get(word)
    return None


def fold_name(name: str) -> str:
    """Return a label name without case, spacing, hyphens, asides and ``and``.

    Examples
    --------
    >>> fold_name("Calcification (Lung/Mediastinal)"), fold_name("cavity-cyst")
    ('calcification', 'cavitycyst')
    >>> fold_name("Cavity and Cyst"), fold_name("Pulmonary Vascular Abnormal(ity)")
    ('cavitycyst', 'pulmonaryvascularabnormal')
    """
    words = _NAME_WORD.findall(_ASIDE.sub("", name).casefold())
    return "".join(_SAME_WORD.get(word, word) for word in words)

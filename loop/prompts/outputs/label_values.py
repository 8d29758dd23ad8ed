"""The contract ``label_values``: one present, absent or uncertain per label.

The answer is a JSON object keyed by label id::

    {"edema": {"value": "present", "evidence": "pulmonary edema"},
     "fracture": "absent"}

A label that the text does not mention is plain "absent": most are, and the shorter
answer saves a model its output tokens. Exactly the labels asked for must be there.
Evidence is optional to the reader. So is ``"span": [12, 27]`` beside it or in its
place, which `rules` knows exactly; models are not asked for it, they cannot count
characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic_core import from_json

from loop.core.records import Field, Item, PromptTask, Reading, Value
from loop.prompts.outputs.evidence import MAX_QUOTE
from loop.prompts.outputs.loose_json import JsonPairs, Loose
from loop.prompts.outputs.mean_answer import EVIDENCE, AnswerPart
from loop.prompts.outputs.strict import ENTRY_KEYS, read_field, repeats_keys
from loop.prompts.outputs.tolerant import (
    Labels,
    UnreadableError,
    add_field,
    find_object,
    read_bare,
    read_entry,
    read_tolerantly,
    read_word,
)
from loop.prompts.outputs.words import BARE, fold_name

MAX_CHARS = 400_000
"""Longest answer read, characters; a real one has a few thousand, its thinking more."""

_NOT_MENTIONED = "absent"
"""The entry of a label that the case does not mention."""

_ABSENT = BARE[_NOT_MENTIONED]


class LabelValues:
    """Reads answers of the form above; see `loop.prompts.outputs.base.Contract`."""

    name = "label_values"
    version = "1"
    task = PromptTask.EXTRACT
    inputs: tuple[str, ...] = ("text",)
    counts_errors = False
    weighs = False
    counts_matches = False
    numbers: tuple[str, ...] = ()
    summary = "present, absent or uncertain for every label"
    instruction = """\
Answer with one JSON object and nothing else. It has exactly these keys:
{{ fields | join(", ") }}.
Each key holds "absent" if the report does not mention the finding, else an object with
"value" (present, absent or uncertain) and "evidence": the words of the report that
decide, copied exactly.
"""

    values = tuple(Value)
    """What may be answered."""

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return the JSON schema of an answer with exactly these labels."""
        return {
            "type": "object",
            "properties": {name: _entry_schema(self.values) for name in fields},
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
        return read_loosely(text, fields, source)

    def mean_answer(
        self, fields: Sequence[str], found: Mapping[str, float], negated: float
    ) -> Iterable[AnswerPart]:
        """Yield every label as absent, and an entry for what is found or negated."""
        entries = sum(found[label] + negated for label in fields)
        entry = {"value": "present", "evidence": EVIDENCE}
        yield AnswerPart(json.dumps(dict.fromkeys(fields, _NOT_MENTIONED)), 1)
        yield AnswerPart(json.dumps(entry), entries)
        yield AnswerPart(json.dumps(_NOT_MENTIONED), -entries)


def _entry_schema(values: Sequence[Value]) -> dict[str, object]:
    mentioned = {
        "type": "object",
        "properties": {
            "value": {"type": "string", "enum": [value.value for value in values]},
            "evidence": {"type": "string", "maxLength": MAX_QUOTE},
        },
        # Some services take a schema only if every property is required.
        "required": ["value", "evidence"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "string", "enum": [_NOT_MENTIONED]}, mentioned]}


def _read_strictly(text: str, fields: Sequence[str], source: str) -> Reading | None:
    """Return the reading of an answer that follows the schema, else None."""
    try:
        data = from_json(text)
    except (ValueError, TypeError):
        # TypeError: lone surrogates make a str that is not text to the parser.
        return None
    answers = dict.fromkeys(fields, _ABSENT)
    if type(data) is not dict or data.keys() != answers.keys():
        return None
    repairs: list[str] = []
    keys = len(data)
    try:
        for name, entry in data.items():
            # Most labels of most reports: nothing to look at more closely.
            if entry == _NOT_MENTIONED:
                continue
            answers[name] = read_field(name, entry, source, repairs)
            keys += len(entry)
    except (KeyError, TypeError):
        # An entry is not an object, has no value that is one of the words, or has a
        # key that the schema does not know.
        return None
    if repeats_keys(text, keys):
        return None
    return Reading(answers, tuple(repairs))


def read_loosely(text: str, fields: Sequence[str], source: str) -> Reading:
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

    def read_body(body: str, repairs: list[str]) -> dict[str, Field]:
        if "{" not in body and len(fields) == 1:
            return {fields[0]: read_bare(body, fields[0], repairs)}
        return _read_pairs(find_object(body, repairs), fields, source, repairs)

    return read_tolerantly(text, read_body)


def _read_pairs(
    answer: JsonPairs, fields: Sequence[str], source: str, repairs: list[str]
) -> dict[str, Field]:
    """Return exactly `fields` from the pairs of an answer."""
    pairs = answer.pairs
    if len(fields) == 1 and _is_entry(answer, fields[0]):
        repairs.append("answer without its label taken for the only one asked")
        pairs = ((fields[0], answer),)
    labels = Labels(fields)
    found: dict[str, Field] = {}
    unknown = 0
    for key, raw in pairs:
        name = labels.find(key, repairs)
        if name is None:
            unknown += 1
        else:
            add_field(found, name, _read_value(name, raw, source, repairs), repairs)
    _check_complete(fields, found, unknown)
    return {name: found[name] for name in fields}


def _is_entry(answer: JsonPairs, wanted: str) -> bool:
    keys = {fold_name(key) for key, _ in answer.pairs}
    return "value" in keys and keys <= ENTRY_KEYS and fold_name(wanted) not in keys


def _check_complete(
    fields: Sequence[str], found: dict[str, Field], unknown: int
) -> None:
    missing = [name for name in fields if name not in found]
    if missing:
        more = f" and {unknown} unknown field(s)" if unknown else ""
        raise UnreadableError(f"no answer for {', '.join(missing)}{more}")
    if unknown:
        raise UnreadableError(f"{unknown} field(s) that were not asked for")


def _read_value(name: str, raw: Loose, source: str, repairs: list[str]) -> Field:
    """Return the field that `raw` answers: an entry, or a bare value."""
    if isinstance(raw, JsonPairs):
        return read_entry(name, raw, source, repairs)
    value = read_word(name, raw, repairs)
    if raw != Value.ABSENT:
        repairs.append(f"{name}: bare value")
    return BARE[value.value]

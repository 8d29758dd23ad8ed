"""The contract ``findings``: a list of the labels that are not absent, no others.

The answer is a JSON object with one list::

    {"findings": [{"label": "edema", "value": "present", "evidence": "edema"}]}

Every label asked for that the list does not name is absent; an empty list means that
all are. That is honest because the list itself is the statement: it is only believed
when it is there, closed, and names nothing but labels asked for, each once. An answer
without the list, with a list that was cut off, or with a label or key that nobody asked
for is unreadable, and the case ends as unparsed. What this short form gives up is the
evidence of negated findings: negated and not mentioned look the same in it.

A span is read beside or in place of the quote, as in ``label_values``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from loop.core.records import Field, Item, PromptTask, Reading, Value
from loop.prompts.outputs.evidence import MAX_QUOTE
from loop.prompts.outputs.label_values import MAX_CHARS
from loop.prompts.outputs.loose_json import JsonPairs, Loose
from loop.prompts.outputs.mean_answer import EVIDENCE, AnswerPart
from loop.prompts.outputs.strict import read_field, repeats_keys
from loop.prompts.outputs.tolerant import (
    Labels,
    UnreadableError,
    add_field,
    find_object,
    read_entry,
    read_tolerantly,
)
from loop.prompts.outputs.words import BARE, fold_name

_LIST = "findings"
_ABSENT = BARE[Value.ABSENT]


class Findings:
    """Reads answers of the form above; see `loop.prompts.outputs.base.Contract`."""

    name = "findings"
    version = "1"
    task = PromptTask.EXTRACT
    inputs: tuple[str, ...] = ("text",)
    counts_errors = False
    weighs = False
    counts_matches = False
    numbers: tuple[str, ...] = ()
    summary = "a list of the labels that are present or uncertain"
    instruction = """\
Answer with one JSON object and nothing else. Its only key is "findings". It holds a
list with one object for each label that is present or uncertain, and nothing for a
label that is absent; the list is empty if every label is absent. Each object has
"label", one of {{ fields | join(", ") }};
"value" (present or uncertain); and "evidence": the few words of the report that decide,
copied exactly.
"""

    def schema(self, fields: Sequence[str]) -> Mapping[str, object]:
        """Return the JSON schema of an answer about these labels."""
        finding = {
            "type": "object",
            "properties": {
                "label": {"type": "string", "enum": list(fields)},
                "value": {"type": "string", "enum": ["present", "uncertain"]},
                "evidence": {"type": "string", "maxLength": MAX_QUOTE},
            },
            "required": ["label", "value", "evidence"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {
                _LIST: {"type": "array", "items": finding, "maxItems": len(fields)}
            },
            "required": [_LIST],
            "additionalProperties": False,
        }

    def read(self, text: str, fields: Sequence[str], item: Item) -> Reading:
        """Return the value of each label, or why the answer cannot be read.

        Never raises and never guesses. A label that the list does not name is absent;
        without a whole list there are no fields, nor with words beside it: "I cannot
        read this" or "edema, too" before or after a list is no part of it.
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
        """Yield the list, and an entry for each label as often as it is found."""
        yield AnswerPart(json.dumps({_LIST: []}), 1)
        for label in fields:
            entry = {"label": label, "value": "present", "evidence": EVIDENCE}
            yield AnswerPart(json.dumps(entry) + ",", found[label])


def _read_strictly(text: str, fields: Sequence[str], source: str) -> Reading | None:
    """Return the reading of an answer that follows the schema, else None."""
    try:
        data = from_json(text)
    except (ValueError, TypeError):
        # TypeError: lone surrogates make a str that is not text to the parser.
        return None
    if type(data) is not dict or len(data) != 1 or type(data.get(_LIST)) is not list:
        return None
    answers = dict.fromkeys(fields, _ABSENT)
    repairs: list[str] = []
    keys = 1
    try:
        for entry in data[_LIST]:
            keys += len(entry)
            _add_strictly(answers, entry, source, repairs)
    except (KeyError, TypeError):
        return None
    if repeats_keys(text, keys):
        return None
    return Reading(answers, tuple(repairs))


def _add_strictly(
    answers: dict[str, Field], entry: Any, source: str, repairs: list[str]
) -> None:
    """Put one finding into `answers`.

    Raises
    ------
    KeyError, TypeError
        It does not follow the schema, or its label was answered before.
    """
    if type(entry) is not dict or entry["value"] == Value.ABSENT:
        raise TypeError
    label = entry.pop("label")
    if answers[label] is not _ABSENT:
        raise KeyError(label)
    answers[label] = read_field(label, entry, source, repairs)


def read_loosely(text: str, fields: Sequence[str], source: str) -> Reading:
    """Return the values of `fields` from a free-form answer, or why not.

    Parameters are those of `loop.prompts.outputs.label_values.read_loosely`.
    """

    def read_body(body: str, repairs: list[str]) -> dict[str, Field]:
        listed = _find_list(find_object(body, repairs, alone=True), repairs)
        return _read_list(listed, fields, source, repairs)

    return read_tolerantly(text, read_body)


def _find_list(answer: JsonPairs, repairs: list[str]) -> tuple[Loose, ...]:
    """Return the one list of an answer; anything beside it makes it unreadable."""
    named = [(key, raw) for key, raw in answer.pairs if fold_name(key) == _LIST]
    if not named:
        raise UnreadableError("there is no list of findings in the answer")
    if len(named) < len(answer.pairs):
        unknown = len(answer.pairs) - len(named)
        raise UnreadableError(f"{unknown} field(s) that were not asked for")
    key, listed = named[0]
    if not isinstance(listed, tuple):
        raise UnreadableError("the findings are not a list")
    if any(raw != listed for _, raw in named):
        raise UnreadableError("two different lists of findings in the answer")
    if len(named) > 1:
        repairs.append("the list of findings given more than once")
    if key != _LIST:
        repairs.append("the list of findings spelled differently")
    return listed


def _read_list(
    listed: Sequence[Loose], fields: Sequence[str], source: str, repairs: list[str]
) -> dict[str, Field]:
    """Return `fields` with the values of a list; those it does not name are absent."""
    labels = Labels(fields)
    found: dict[str, Field] = {}
    unknown = 0
    for number, raw in enumerate(listed, 1):
        if not isinstance(raw, JsonPairs):
            raise UnreadableError(f"finding {number} is not an object")
        name = labels.find(_written_label(raw, number), repairs)
        if name is None:
            unknown += 1
            continue
        rest = JsonPairs(tuple(pair for pair in raw.pairs if not _is_label(pair[0])))
        answered = read_entry(name, rest, source, repairs)
        if answered.value == Value.ABSENT:
            repairs.append(f"{name}: absent although listed")
        add_field(found, name, answered, repairs)
    if unknown:
        raise UnreadableError(f"{unknown} finding(s) that were not asked for")
    return {name: found.get(name, _ABSENT) for name in fields}


def _is_label(key: str) -> bool:
    return fold_name(key) == "label"


def _written_label(raw: JsonPairs, number: int) -> str:
    """Return what a finding gives as its label."""
    written = {value for key, value in raw.pairs if _is_label(key)}
    if len(written) > 1:
        raise UnreadableError(f"finding {number} has two different labels")
    label = next(iter(written), None)
    if not isinstance(label, str):
        raise UnreadableError(f"finding {number} has no label")
    return label

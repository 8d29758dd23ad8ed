"""Inputs that a first stage makes: what one prompt found is asked about in the next.

RadFact takes each report apart and then asks which phrases follow from those of the
other; a judge in two passes lists the errors and then weighs them. The prompt of the
last stage has an input of `STAGES` and names, in ``reads``, the version that makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loop.core.numbered_phrases import (
    CANDIDATE_PHRASES,
    REFERENCE_PHRASES,
    number_phrases,
)
from loop.core.records import Field, Item, Span
from loop.prompts.outputs.judged import INPUTS

LISTED_ERRORS: Final = "listed_errors"

_NO_ERROR = "(none)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageInput:
    """An input that the answer to another prompt is written into."""

    contracts: tuple[str, ...]
    """Those that the version may be answered in that makes it."""

    texts: Mapping[str, str]
    """Inputs of that version, each with the text of the pair that it is given."""


_PHRASES = ("phrases", "phrases_text")
_ERRORS = ("error_list_unweighted", "error_list")

STAGES: Final[Mapping[str, StageInput]] = MappingProxyType(
    {
        REFERENCE_PHRASES: StageInput(contracts=_PHRASES, texts={"text": "reference"}),
        CANDIDATE_PHRASES: StageInput(contracts=_PHRASES, texts={"text": "candidate"}),
        LISTED_ERRORS: StageInput(
            contracts=_ERRORS, texts={name: name for name in INPUTS}
        ),
    }
)
"""Name of an input to what makes it."""

STAGE_CONTRACTS: Final = frozenset({*_PHRASES, *_ERRORS})
"""Contracts of the versions that make inputs."""


def given_texts(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that an item must have for a version with these inputs.

    Examples
    --------
    >>> given_texts(("reference_phrases", "candidate_phrases"))
    ('reference', 'candidate')
    >>> given_texts(("text",))
    ('text',)
    """
    found: dict[str, None] = {}
    for name in inputs:
        stage = STAGES.get(name)
        found |= dict.fromkeys([name] if stage is None else stage.texts.values())
    return tuple(found)


def stage_item(name: str, item: Item) -> Item:
    """Return the item that the first stage is asked about to make the input `name`."""
    texts = STAGES[name].texts
    return Item(
        id=item.id,
        variables={own: item.variables[given] for own, given in texts.items()},
        language=item.language,
    )


def write_input(name: str, fields: Mapping[str, Field], asked: Item) -> str:
    """Return the text of the input `name`, a line for each thing that was found.

    Parameters
    ----------
    fields
        What the first stage answered.
    asked
        What it was asked about; see `stage_item`.
    """
    if name != LISTED_ERRORS:
        entries = [one for field in fields.values() for one in field.entries]
        return number_phrases([one.words for one in entries])
    lines = [
        f"{category}: {_one_line(words)}{_quotes(spans, asked)}"
        for field in fields.values()
        for words, category, _, spans in field.entries
        if category
    ]
    numbered = (f"{number}. {line}" for number, line in enumerate(lines, 1))
    return "\n".join(numbered) or _NO_ERROR


def _quotes(spans: Sequence[Span], asked: Item) -> str:
    """Return the words of the texts that an error is about."""
    texts = asked.variables
    quoted = [
        f'{one.input}: "{_one_line(texts[one.input][one.start : one.end])}"'
        for one in spans
    ]
    return f" ({'; '.join(quoted)})" if quoted else ""


def _one_line(words: str) -> str:
    return " ".join(words.split())

"""``guides.yaml``: the clinical content of a prompt version, readable by clinicians."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    RootModel,
    StringConstraints,
)

from loop.core.records import (
    Clarification,
    ErrorWeight,
    Exemplar,
    Guide,
    GuideValue,
    Lexicon,
    Value,
)
from loop.core.yaml_files import dump_yaml, parse_model

Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Words that say something; surrounding spaces do not count."""


def _find_value(written: object) -> object:
    """Return the word of a task that is written, so that an error names both."""
    known = {one.value: one for kind in (Value, ErrorWeight) for one in kind}
    if isinstance(written, str) and written in known:
        return known[written]
    raise ValueError(f"must be one of {', '.join(known)}")


WrittenValue = Annotated[GuideValue, BeforeValidator(_find_value)]
"""What a guide says of a wording, as written in a file."""


class ClarificationModel(BaseModel):
    """One decision rule as written in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    phrase: Phrase
    value: WrittenValue
    note: str = ""

    def record(self) -> Clarification:
        """Return the record."""
        return Clarification(phrase=self.phrase, value=self.value, note=self.note)


class ExemplarModel(BaseModel):
    """One worked example as written in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Phrase
    value: WrittenValue
    evidence: Phrase
    why: str = ""

    def record(self) -> Exemplar:
        """Return the record."""
        return Exemplar(
            text=self.text, value=self.value, evidence=self.evidence, why=self.why
        )


class _LexiconModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    terms: tuple[Phrase, ...] = ()
    exclusions: tuple[Phrase, ...] = ()
    clarifications: tuple[ClarificationModel, ...] = ()

    def record(self, language: str) -> Lexicon:
        return Lexicon(
            language=language,
            terms=self.terms,
            exclusions=self.exclusions,
            clarifications=tuple(one.record() for one in self.clarifications),
        )


Language = Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]


class _GuideModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Phrase
    definition: Phrase
    counts: tuple[Phrase, ...] = ()
    does_not_count: tuple[Phrase, ...] = ()
    uncertain_when: tuple[Phrase, ...] = ()
    terms: tuple[Phrase, ...] = ()
    exclusions: tuple[Phrase, ...] = ()
    clarifications: tuple[ClarificationModel, ...] = ()
    exemplars: tuple[ExemplarModel, ...] = ()
    implies: tuple[str, ...] = ()
    lexicon: dict[Language, _LexiconModel] = {}

    def record(self, label: str) -> Guide:
        return Guide(
            label=label,
            name=self.name,
            definition=self.definition,
            terms=self.terms,
            exclusions=self.exclusions,
            clarifications=tuple(one.record() for one in self.clarifications),
            exemplars=tuple(one.record() for one in self.exemplars),
            implies=self.implies,
            counts=self.counts,
            does_not_count=self.does_not_count,
            uncertain_when=self.uncertain_when,
            lexicon=tuple(
                one.record(language) for language, one in self.lexicon.items()
            ),
        )


class _GuidesModel(RootModel[dict[str, _GuideModel]]):
    """Label id to guide, in the order asked."""

    model_config = ConfigDict(frozen=True)

    @cached_property
    def guides(self) -> tuple[Guide, ...]:
        return tuple(guide.record(label) for label, guide in self.root.items())


def parse_guides(text: str, source: Path | str) -> tuple[Guide, ...]:
    """Return the guides of a ``guides.yaml`` text, in file order.

    The same text is parsed once: a history reads every version of a prompt.

    Raises
    ------
    DataError
        Not YAML, a label twice, or a field that does not fit; names it.
    """
    return parse_model(text, _GuidesModel, source).guides


def dump_guides(guides: Sequence[Guide]) -> str:
    """Return `guides` as YAML; empty lists are left out."""
    return dump_yaml({guide.label: _plain(guide) for guide in guides})


def _plain(guide: Guide) -> dict[str, Any]:
    """Return the guide as plain data in reading order."""
    data: dict[str, Any] = {
        "name": guide.name,
        "definition": guide.definition,
        "counts": list(guide.counts),
        "does_not_count": list(guide.does_not_count),
        "uncertain_when": list(guide.uncertain_when),
        **_plain_wordings(guide),
        "exemplars": [
            _filled(
                text=one.text, value=one.value.value, evidence=one.evidence, why=one.why
            )
            for one in guide.exemplars
        ],
        "implies": list(guide.implies),
        "lexicon": {
            one.language: {
                key: rows for key, rows in _plain_wordings(one).items() if rows
            }
            for one in guide.lexicon
        },
    }
    return {key: value for key, value in data.items() if value}


def _plain_wordings(of: Guide | Lexicon) -> dict[str, list[Any]]:
    return {
        "terms": list(of.terms),
        "exclusions": list(of.exclusions),
        "clarifications": [
            _filled(phrase=rule.phrase, value=rule.value.value, note=rule.note)
            for rule in of.clarifications
        ],
    }


def _filled(**values: str) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}

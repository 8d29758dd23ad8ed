"""What is written into reports, and what is looked for: ``labels/injection.yaml``."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.safe_text import quoted
from loop.core.yaml_files import read_model
from loop.judge.injection.chance import MOST_WEIGHT

INJECTION: Final = "injection.yaml"
"""Name of the file, in a folder of labels."""

WORDING: Final = "injection_wording.yaml"
"""Name of the file of another wording that ships."""

_FROZEN = ConfigDict(extra="forbid", frozen=True)
_Words = tuple[str, ...]
_Phrase = Annotated[str, Field(pattern=r"\S")]
_MEMO = 50_000
"""Distinct sentences that are remembered."""

_NEVER = re.compile(r"(?!)")


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return what finds one of `phrases` as whole words, the longest first.

    A space in a phrase is any white space.

    Examples
    --------
    >>> phrase_pattern(["left", "left lower"]).findall("Left  lower, not cleft")
    ['Left  lower']
    """
    ordered = sorted(set(phrases), key=lambda one: (-len(one), one))
    if not ordered:
        return _NEVER
    either = "|".join(r"\s+".join(map(re.escape, one.split())) for one in ordered)
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)


class BodySideWords(BaseModel):
    """Words for a side, and what ties a sentence to one."""

    model_config = _FROZEN

    mirrored: tuple[tuple[_Phrase, _Phrase], ...]
    fixed: _Words

    @cached_property
    def mirror(self) -> Mapping[str, str]:
        """A word to its mirror image."""
        return {
            one.casefold(): other
            for pair in self.mirrored
            for one, other in (pair, pair[::-1])
        }

    @cached_property
    def found(self) -> re.Pattern[str]:
        """Finds a word for a side."""
        return phrase_pattern(self.mirror)

    @cached_property
    def left(self) -> frozenset[str]:
        """Words for the left, folded."""
        return frozenset(one.casefold() for one, _ in self.mirrored)

    @cached_property
    def ties(self) -> re.Pattern[str]:
        """Finds what ties a sentence to a side."""
        return phrase_pattern(self.fixed)


class DegreeShift(BaseModel):
    """A degree and one that is clearly different."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    begins: Annotated[_Phrase, Field(alias="from")]
    to: _Phrase
    further: str = ""
    """A degree further off in the same direction; empty where there is none."""

    before: _Words = ()

    @cached_property
    def followers(self) -> re.Pattern[str]:
        """Finds what must follow, if anything must."""
        return phrase_pattern(self.before)


class SeverityWords(BaseModel):
    """How another severity is made."""

    model_config = _FROZEN

    degrees: tuple[DegreeShift, ...]
    never_before: _Words
    never_after: _Words
    never_with: _Words
    sized: frozenset[str]
    times: Annotated[int, Field(ge=2)]
    further_times: Annotated[int, Field(ge=3)] | None = None
    """For a size further off; None where there is none such."""

    largest_mm: Annotated[float, Field(gt=0)]
    distances: _Words

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.further_times is not None and self.further_times <= self.times:
            raise ValueError("further_times is not above times")
        return self

    @cached_property
    def found(self) -> re.Pattern[str]:
        """Finds a degree."""
        return phrase_pattern(one.begins for one in self.degrees)

    @cached_property
    def shifts(self) -> Mapping[str, Sequence[DegreeShift]]:
        """A degree, folded, to what it may become."""
        table: dict[str, list[DegreeShift]] = {}
        for one in self.degrees:
            table.setdefault(one.begins.casefold(), []).append(one)
        return table

    @cached_property
    def relative(self) -> re.Pattern[str]:
        """Finds why a sentence has its degree."""
        return phrase_pattern(self.never_with)

    @cached_property
    def far(self) -> re.Pattern[str]:
        """Finds that a measurement is a distance."""
        return phrase_pattern(self.distances)


class ComparisonWords(BaseModel):
    """What is added to compare with an earlier examination."""

    model_config = _FROZEN

    phrases: tuple[_Phrase, ...]
    of: Mapping[str, tuple[_Phrase, ...]] = {}
    never_with: _Words
    no_prior: _Words

    @cached_property
    def unfit(self) -> re.Pattern[str]:
        """Finds that a sentence cannot take such an end."""
        return phrase_pattern(self.never_with)

    @cached_property
    def first_time(self) -> re.Pattern[str]:
        """Finds that there is no earlier examination."""
        return phrase_pattern(self.no_prior)


class Rewrite(BaseModel):
    """A pattern and what stands in its place."""

    model_config = _FROZEN

    pattern: _Phrase
    becomes: str | Mapping[str, str]
    """Or by what the first group found, folded."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        return pattern

    @cached_property
    def found(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self.pattern, re.IGNORECASE)

    def write(self, match: re.Match[str]) -> str | None:
        """Return what a match becomes; None where nothing is said of it."""
        if isinstance(self.becomes, str):
            return match.expand(self.becomes)
        return self.becomes.get(match.group(1).casefold())


class ChangePatterns(BaseModel):
    """What is left out where a report says that something changed."""

    model_config = _FROZEN

    patterns: tuple[Rewrite, ...]


class NormalTopic(BaseModel):
    """How a report calls something normal."""

    model_config = _FROZEN

    about: tuple[_Phrase, ...]
    says: tuple[_Phrase, ...]
    unless: _Words = ()

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(phrase_pattern, (self.about, self.says, self.unless)))

    def speaks(self, sentence: str) -> bool:
        """Whether a sentence calls it normal."""
        about, says, unless = self._patterns
        return bool(
            about.search(sentence)
            and says.search(sentence)
            and not unless.search(sentence)
        )


class FalseFinding(BaseModel):
    """A sentence that reports what the reader of the report does not find there."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    keys: Annotated[tuple[_Phrase, ...], Field(alias="is", min_length=1)]
    contradicts: tuple[_Phrase, ...]
    near: _Words = ()
    called: _Words = ()
    unlikely_with: frozenset[str] = frozenset()
    weight: Annotated[int, Field(ge=1, le=MOST_WEIGHT)] = 1
    sentence: _Phrase
    summary: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of what is filled in, in order."""
        parsed = string.Formatter().parse(self.sentence + self.summary)
        return tuple(dict.fromkeys(name for _, name, _, _ in parsed if name))

    @cached_property
    def names(self) -> re.Pattern[str]:
        """Finds what it is called."""
        return phrase_pattern(self.called)

    @cached_property
    def place(self) -> re.Pattern[str]:
        """Finds a sentence that it may follow."""
        return phrase_pattern(self.near)


class ModalityBank(BaseModel):
    """False findings of one modality."""

    model_config = _FROZEN

    slots: Mapping[str, Annotated[tuple[_Phrase, ...], Field(min_length=1)]] = {}
    false_findings: Annotated[tuple[FalseFinding, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _filled(self) -> Self:
        for one in self.false_findings:
            for name in one.slots:
                if name not in self.slots:
                    raise ValueError(f"a sentence has the slot {name!r}, without words")
        return self


_Kind = Literal["omission", "location", "severity", "comparison", "omitted_change"]
Pairs = tuple[tuple[_Phrase, _Phrase], ...]


class ToldWords(NamedTuple):
    """What the words of a sentence tell of it."""

    leads: bool
    refers: bool
    advises: bool
    compares: bool
    moves: bool
    normal: bool


class InjectionBank(BaseModel):
    """The file; its comments explain each part."""

    model_config = _FROZEN

    version: int
    language: str
    families: tuple[_Words, ...]
    matters: Mapping[_Kind, frozenset[str]]
    referring: _Words
    leading: _Words
    slight: _Words
    benign: _Words
    advising: _Words
    comparing: _Words
    moving: _Words
    against: _Words
    normal: _Words
    sides: BodySideWords
    severity: SeverityWords
    comparisons: ComparisonWords
    changes: ChangePatterns
    denials: Mapping[str, _Phrase]
    topics: Mapping[str, NormalTopic]
    modalities: Annotated[Mapping[str, ModalityBank], Field(min_length=1)]
    synonyms: Pairs
    abbreviations: Pairs
    qualified: _Words
    lists: _Words
    style: tuple[Rewrite, ...]
    numbers: tuple[Rewrite, ...]

    @cached_property
    def patterns(self) -> BankPatterns:
        """What finds the words that bear on any sentence."""
        return BankPatterns(
            referring=phrase_pattern(self.referring),
            leading=phrase_pattern(self.leading),
            slight=phrase_pattern(self.slight),
            benign=phrase_pattern(self.benign),
            advising=phrase_pattern(self.advising),
            comparing=phrase_pattern(self.comparing),
            moving=phrase_pattern(self.moving),
            against=phrase_pattern((*self.moving, *self.against)),
            normal=phrase_pattern(self.normal),
        )

    def look_at(self, sentence: str) -> ToldWords:
        """Return what the words of a sentence tell of it; the like is remembered."""
        known = self._told.get(sentence)
        if known is None:
            look = self.patterns
            known = ToldWords(
                leads=bool(
                    look.leading.match(sentence) or look.referring.match(sentence)
                ),
                refers=bool(look.referring.search(sentence)),
                advises=bool(look.advising.search(sentence)),
                compares=bool(look.comparing.search(sentence)),
                moves=bool(look.moving.search(sentence)),
                normal=bool(look.normal.search(sentence)),
            )
            if len(self._told) >= _MEMO:
                self._told.clear()
            self._told[sentence] = known
        return known

    @cached_property
    def _told(self) -> dict[str, ToldWords]:
        return {}

    @cached_property
    def listed(self) -> re.Pattern[str]:
        """What a thing in a list of what is not there is called, and nothing else."""
        before = phrase_pattern(self.qualified).pattern
        return re.compile(
            rf"(?:{before}\s+)?{phrase_pattern(self.lists).pattern}", re.IGNORECASE
        )

    @cached_property
    def _kin(self) -> Mapping[str, frozenset[str]]:
        table: dict[str, set[str]] = {}
        for line in self.families:
            for one in line:
                table.setdefault(one, set()).update(line)
        return {one: frozenset(found) for one, found in table.items()}

    def kin(self, key: str) -> frozenset[str]:
        """Return the findings that may be `key` under another name, itself included."""
        return self._kin.get(key, frozenset({key}))

    def modality(self, name: str) -> ModalityBank:
        """Return the bank of a modality.

        Raises
        ------
        DataError
            There is none.
        """
        found = self.modalities.get(name)
        if found is None:
            raise DataError(
                f"the bank has no modality {quoted(name)}, only "
                f"{', '.join(sorted(self.modalities))}. Choose one of them, or add it "
                "to a bank of your own."
            )
        return found

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Refuse topics that are named and do not exist."""
        if len(self.matters) != len(_Kind.__args__):  # type: ignore[attr-defined]
            raise ValueError(f"matters needs {', '.join(_Kind.__args__)}")  # type: ignore[attr-defined]
        for modality in self.modalities.values():
            for one in modality.false_findings:
                for topic in one.contradicts:
                    if topic not in self.topics:
                        raise ValueError(f"no topic {topic!r}")
        return self


class WordedFinding(BaseModel):
    """A false finding in other words."""

    model_config = _FROZEN

    sentence: _Phrase
    summary: str = ""


class BankWording(BaseModel):
    """Other words for what a bank writes; a part that is left out stays the bank's."""

    model_config = _FROZEN

    version: int
    sentences: Mapping[
        str, Mapping[str, Annotated[tuple[WordedFinding, ...], Field(min_length=1)]]
    ] = {}
    """By modality, then by the first finding of the bank's sentence. Sentences of the
    bank about other findings are not written."""

    degrees: tuple[DegreeShift, ...] = ()
    comparisons: tuple[_Phrase, ...] = ()
    synonyms: Pairs = ()
    abbreviations: Pairs = ()
    style: tuple[Rewrite, ...] = ()
    numbers: tuple[Rewrite, ...] = ()

    def word(self, bank: InjectionBank) -> InjectionBank:
        """Return a bank that looks for the same and writes these words."""
        parts = _fields_of(bank)
        for name in ("synonyms", "abbreviations", "style", "numbers"):
            parts[name] = getattr(self, name) or parts[name]
        if self.degrees:
            degrees = _fields_of(bank.severity) | {"degrees": self.degrees}
            parts["severity"] = SeverityWords.model_validate(degrees)
        if self.comparisons:
            phrases = {"phrases": self.comparisons, "of": {}}
            compared = _fields_of(bank.comparisons) | phrases
            parts["comparisons"] = ComparisonWords.model_validate(compared)
        parts["modalities"] = {
            name: self._word_modality(name, modality)
            for name, modality in bank.modalities.items()
        }
        return InjectionBank.model_validate(parts)

    def _word_modality(self, name: str, modality: ModalityBank) -> ModalityBank:
        worded = self.sentences.get(name)
        if worded is None:
            return modality
        seen: Counter[str] = Counter()
        found = []
        for one in modality.false_findings:
            key = one.keys[0]
            if key in worded:
                given = worded[key][seen[key] % len(worded[key])]
                seen[key] += 1
                found.append(
                    FalseFinding.model_validate(_fields_of(one) | _fields_of(given))
                )
        return ModalityBank.model_validate(
            {"slots": modality.slots, "false_findings": tuple(found)}
        )


def _fields_of(model: BaseModel) -> dict[str, Any]:
    """Return the fields of a record as they are, without what is worked out of them."""
    return {name: getattr(model, name) for name in type(model).model_fields}


class BankPatterns(NamedTuple):
    """What finds the words of the bank that bear on any sentence."""

    referring: re.Pattern[str]
    leading: re.Pattern[str]
    slight: re.Pattern[str]
    benign: re.Pattern[str]
    advising: re.Pattern[str]
    comparing: re.Pattern[str]
    moving: re.Pattern[str]
    against: re.Pattern[str]
    """Finds either that something moved, or against what."""

    normal: re.Pattern[str]


class ReadBank(NamedTuple):
    """A bank, and of which bytes it was read."""

    bank: InjectionBank
    sha256: str
    wording: str = ""
    """Sha256 of the file of other words; empty where none was used."""


def read_bank(path: Path | None = None, wording: Path | None = None) -> ReadBank:
    """Return the bank of a file; None for the one that ships.

    Parameters
    ----------
    wording
        File of other words for what is written, as ``labels/injection_wording.yaml``;
        None for the words of the bank.

    Raises
    ------
    DataError
        A file cannot be read or does not have the expected form.
    """
    path = path or bundled() / "labels" / INJECTION
    digest = _digest(path, INJECTION)
    if wording is None:
        return ReadBank(read_model(path, InjectionBank), digest)
    other = _digest(wording, WORDING)
    return ReadBank(_read_worded(path, digest, wording, other), digest, other)


def shipped_wording() -> Path:
    """Return the file of another wording that ships."""
    return bundled() / "labels" / WORDING


def _digest(path: Path, like: str) -> str:
    """Return the digest of a file's bytes."""
    try:
        return digest_bytes(path.read_bytes())
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}. Name a file like the shipped "
            f"labels/{like}."
        ) from error


@lru_cache(maxsize=8)
def _read_worded(
    path: Path, _digest: str, wording: Path, _worded: str
) -> InjectionBank:
    bank = read_model(path, InjectionBank)
    try:
        return read_model(wording, BankWording).word(bank)
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(
            f"{wording}: with the bank {path.name} it gives no whole bank: "
            f"{first['msg']}. Name findings and slots that the bank has."
        ) from error

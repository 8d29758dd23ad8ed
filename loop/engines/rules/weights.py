"""What findings weigh, and the words that tell them apart: ``labels/judging.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.yaml_files import read_model

JUDGING: Final = "judging.yaml"
"""Name of the file, in a folder of labels."""

Worth = Literal["urgent", "actionable", "minor", "benign"]
"""What a finding asks for: the four classes of CRIMSON."""

Share = Annotated[float, Field(ge=0, le=1)]
_Words = tuple[str, ...]
LOWER: Mapping[Worth, Worth] = {
    "urgent": "actionable",
    "actionable": "minor",
    "minor": "benign",
    "benign": "benign",
}
"""The next class below."""

MOST_STEPS = 2
"""How far apart two findings can be that are kin."""

_FROZEN = ConfigDict(extra="forbid", frozen=True)


class Penalty(BaseModel):
    """What a matched finding loses for one attribute, as shares of its worth."""

    model_config = _FROZEN

    conflict: Share
    partial: Share
    unstated: Share
    added: Share


class Penalties(BaseModel):
    """A penalty for each attribute."""

    model_config = _FROZEN

    side: Penalty
    place: Penalty
    degree: Penalty
    size: Penalty
    character: Penalty
    certainty: Penalty
    change: Penalty
    kin: Penalty


class NamedFinding(BaseModel):
    """A finding that no label names, or one of several that a label names."""

    model_config = _FROZEN

    id: str
    significance: Worth
    wrong: Worth | None = None
    """What an error in an attribute of it asks for; None for the same."""

    terms: _Words
    exclusions: _Words = ()


class BodySides(BaseModel):
    """Words for the sides of a patient."""

    model_config = _FROZEN

    left: _Words
    right: _Words
    both: _Words
    neither: _Words
    """Phrases that only hold such a word: "right atrium"."""

    compared: _Words
    """Phrases that say both: "right greater than left"."""


class ChangesSaid(BaseModel):
    """Words for a change against an earlier examination."""

    model_config = _FROZEN

    new: _Words
    worse: _Words
    better: _Words
    same: _Words
    weak: Mapping[Literal["worse", "better"], _Words]
    comparing: _Words


def _in_order(value: Any) -> Any:
    """Return data with every set as a sorted list: sets have another order each run."""
    if isinstance(value, Mapping):
        return {key: _in_order(one) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted(map(_in_order, value))
    return [*map(_in_order, value)] if isinstance(value, list | tuple) else value


class JudgingData(BaseModel):
    """The file; its comments explain each part."""

    model_config = _FROZEN

    language: str
    significance: Mapping[Worth, Annotated[float, Field(gt=0)]]
    by_degree: tuple[Annotated[float, Field(gt=0)], ...]
    lowering: frozenset[str]
    base: Annotated[float, Field(gt=0)]
    significant: tuple[Worth, ...]
    labels: Mapping[str, Worth]
    penalties: Penalties
    serious: Share
    kin: tuple[_Words, ...]
    findings: tuple[NamedFinding, ...]
    devices: str
    device_findings: frozenset[str]
    midline: frozenset[str]
    explaining: frozenset[str]
    listing: frozenset[str]
    sides: BodySides
    places: Mapping[str, Mapping[str, _Words]]
    degrees: tuple[_Words, ...]
    changes: ChangesSaid
    characters: tuple[Mapping[str, _Words], ...]
    advice: frozenset[str]
    normal: frozenset[str]
    plain: frozenset[str]

    @cached_property
    def digest(self) -> str:
        """Sha256 over everything in the file; words of a set count in no order."""
        return digest_json(_in_order(self.model_dump()))

    @cached_property
    def _steps(self) -> Mapping[tuple[str, str], int]:
        steps: dict[tuple[str, str], int] = {}
        for line in self.kin:
            for (i, one), (j, other) in permutations(enumerate(line), 2):
                pair = one, other
                steps[pair] = min(abs(i - j), steps.get(pair, MOST_STEPS))
        return steps

    @cached_property
    def _classes(self) -> Mapping[str, Worth]:
        return {**{one.id: one.significance for one in self.findings}, **self.labels}

    def are_kin(self, one: str, other: str) -> bool:
        """Whether one of two findings may be taken for the other."""
        return (one, other) in self._steps

    def steps(self, one: str, other: str) -> int:
        """Return how far apart two findings are that are kin."""
        return self._steps[one, other]

    @cached_property
    def _wrong(self) -> Mapping[str, Worth]:
        return {one.id: one.wrong for one in self.findings if one.wrong}

    def class_of_error(self, key: str) -> Worth:
        """Return what an error in an attribute of a finding asks for."""
        return self._wrong.get(key) or self.class_of(key)

    def class_of(self, key: str) -> Worth:
        """Return what a finding asks for; an unexplained sentence is minor."""
        return self._classes.get(key, "actionable" if key else "minor")

    def worth(self, worth: Worth, degree: float) -> float:
        """Return what a finding of a class is worth at its degree; 0 for none said."""
        times = self.by_degree[round(degree) - 1] if degree else 1.0
        return self.significance[worth] * times

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Refuse a class without a worth, and ids that are named and do not exist."""
        if len(self.significance) != len(Worth.__args__):  # type: ignore[attr-defined]
            raise ValueError("significance needs urgent, actionable, minor and benign")
        ids = [one.id for one in self.findings]
        if len(set(ids)) != len(ids):
            raise ValueError("two findings have the same id")
        if not self.device_findings <= set(ids):
            raise ValueError("device_findings names a finding that does not exist")
        if len(self.by_degree) != len(self.degrees):
            raise ValueError("by_degree needs one number for each line of degrees")
        return self


def read_judging(path: Path | None = None) -> JudgingData:
    """Return the data of a file; None for the one that ships.

    Raises
    ------
    DataError
        It cannot be read or does not have the expected form.
    """
    path = path or bundled() / "labels" / JUDGING
    if not path.is_file():
        raise DataError(
            f"there is no {path}. Name a file like the shipped labels/judging.yaml."
        )
    return read_model(path, JudgingData)

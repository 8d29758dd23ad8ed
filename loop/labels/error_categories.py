"""What may be wrong in a candidate report: categories of errors, and how they count."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from loop.core.digests import digest_json
from loop.core.errors import DataError, UnknownLabelError
from loop.core.files import read_text
from loop.core.safe_text import quoted
from loop.core.yaml_files import parse_model
from loop.labels.taxonomy import fold_name

ERRORS: Final = "errors.yaml"


class CountsAs(StrEnum):
    """What an error is where precision and recall are worked out from the errors."""

    FALSE_PREDICTION = "false_prediction"
    """The candidate says what the reference does not."""

    OMISSION = "omission"
    """The candidate leaves out what the reference says."""

    BOTH = "both"
    """The candidate says something else: one of each."""

    NOT_CLINICAL = "not_clinical"
    """Neither; no metric of clinical content counts it."""


class ErrorGroup(StrEnum):
    """Categories that count alike, taken together where an F1 is claimed."""

    FALSE_PREDICTION = "false_prediction"
    OMISSION = "omission"
    ATTRIBUTE = "attribute"
    """Something else is said of a finding that both report: place, degree, size."""

    @property
    def counts_as(self) -> CountsAs:
        """What an error of the group counts as."""
        alike = self is not ErrorGroup.ATTRIBUTE
        return CountsAs(self.value) if alike else CountsAs.BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCategory:
    """One kind of error that a judge may find in a candidate."""

    id: str
    """snake_case, for example ``"false_finding"``."""

    letter: str
    """Of the published forms of answer: ``"a"`` to ``"g"``."""

    name: str
    definition: str
    """What the error is, in a sentence."""

    counts_as: CountsAs

    counts: tuple[str, ...] = ()
    """What is such an error, in a few words each."""

    does_not_count: tuple[str, ...] = ()
    """What looks like one and is none, or is one of another category."""

    uncertain_when: ClassVar[tuple[str, ...]] = ()
    """Nothing: a judge says that there is an error, or that there is none."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """None: a judge is asked by the ids."""

    @property
    def false_predictions(self) -> int:
        """How many false predictions one error is: 0 or 1."""
        return int(self.counts_as in (CountsAs.FALSE_PREDICTION, CountsAs.BOTH))

    @property
    def omissions(self) -> int:
        """How many omissions one error is: 0 or 1."""
        return int(self.counts_as in (CountsAs.OMISSION, CountsAs.BOTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class Significance:
    """How much an error matters."""

    id: str
    """``"significant"``, for example."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCategories:
    """All categories in the order of their letters, and the significances."""

    categories: tuple[ErrorCategory, ...]
    significances: tuple[Significance, ...]
    version: int
    digest: str
    """Sha256 over everything in the file."""

    def __post_init__(self) -> None:
        _check_unique("category", [one.id for one in self.categories])
        _check_unique("significance", [one.id for one in self.significances])
        letters = "".join(one.letter for one in self.categories)
        if letters != "abcdefghijklmnopqrstuvwxyz"[: len(letters)]:
            raise DataError(
                f"the letters of the categories are {letters!r}: they must go on from "
                "a without a gap. A judge's answer names categories by their letters."
            )

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all categories."""
        return tuple(one.id for one in self.categories)

    def find(self, name: str) -> ErrorCategory:
        """Return the category called `name`: its id or its name.

        Case, spaces, hyphens and underscores do not matter.

        Raises
        ------
        UnknownLabelError
            No category is called so.
        """
        wanted = fold_name(name)
        for one in self.categories:
            if wanted in (fold_name(one.id), fold_name(one.name)):
                return one
        raise UnknownLabelError(
            f"no category of errors is called {quoted(name)}. Known: "
            f"{', '.join(self.ids)}. Correct the name, or remove it."
        )

    def of_group(self, group: ErrorGroup) -> tuple[str, ...]:
        """Return the ids of the categories of a group."""
        return tuple(
            one.id for one in self.categories if one.counts_as is group.counts_as
        )

    @property
    def clinical(self) -> tuple[str, ...]:
        """Ids of the categories that say something wrong about the patient."""
        return tuple(
            one.id
            for one in self.categories
            if one.counts_as is not CountsAs.NOT_CLINICAL
        )


def read_errors(labels_folder: Path) -> ErrorCategories:
    """Return the categories of errors of a ``labels/`` folder.

    Raises
    ------
    DataError
        The file is missing or malformed, gives two categories one id, or letters that
        do not go on from a.
    """
    path = labels_folder / ERRORS
    if not path.is_file():
        raise DataError(
            f"there is no {path}. Take the one that ships with `ranloop upgrade`, or "
            "copy it from a new workspace (`ranloop init`)."
        )
    model = parse_model(read_text(path), _ErrorsFile, path)
    try:
        return ErrorCategories(
            categories=tuple(
                ErrorCategory(**entry.model_dump()) for entry in model.categories
            ),
            significances=tuple(
                Significance(**entry.model_dump()) for entry in model.significances
            ),
            version=model.version,
            digest=digest_json(model.model_dump(mode="json")),
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _check_unique(what: str, ids: list[str]) -> None:
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise DataError(f"{what} {twice!r} appears twice. Remove one of the two.")


_Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _SignificanceEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Id
    name: _Words
    meaning: _Words


class _CategoryEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Id
    name: _Words
    definition: _Words
    counts: tuple[_Words, ...] = ()
    does_not_count: tuple[_Words, ...] = ()
    letter: Annotated[str, StringConstraints(pattern=r"^[a-z]$")]
    counts_as: CountsAs


class _ErrorsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    categories: Annotated[tuple[_CategoryEntry, ...], Field(min_length=1)]
    significances: Annotated[tuple[_SignificanceEntry, ...], Field(min_length=1)]

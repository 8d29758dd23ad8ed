"""The files of RadPref as they are published, checked field by field."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from loop.core.entries import RepeatedKeyError, unique_keys
from loop.core.errors import DataError

_CASES = ("cases.json", "preference_data.json")
_RATERS = ("radiologist_*.json", "radiologist_annotations/user_*.json")

Slot = Literal["C1", "C2"]
SLOTS: Final[tuple[Slot, ...]] = ("C1", "C2")
Significance = Literal[
    "urgent", "actionable_not_urgent", "not_actionable_not_urgent", "benign_expected"
]
_Model = TypeVar("_Model", bound=BaseModel)


class Case(BaseModel):
    """One case: a reference and two candidates."""

    id: Annotated[str, Field(min_length=1, max_length=500)]
    ground_truth_report: str
    ground_truth_findings: list[str]
    C1_report: str
    C2_report: str
    C1_source: str = ""
    C2_source: str = ""

    def text(self, slot: Slot) -> str:
        """Return the text of one candidate."""
        return self.C1_report if slot == "C1" else self.C2_report

    def source(self, slot: Slot) -> str:
        """Return which model wrote it; may be empty."""
        return self.C1_source if slot == "C1" else self.C2_source


class FindingError(BaseModel):
    """A finding of a candidate that a rater marks as wrong."""

    error_type: Literal["false", "attribute"]
    clinical_significance: Significance | None = None
    attributes: dict[str, Literal["significant", "negligible"]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _judged(self) -> Self:
        """Without a judgement an error would count as insignificant in silence."""
        if self.error_type == "false" and self.clinical_significance is None:
            raise ValueError("a false finding without its significance")
        return self


class MissingFinding(BaseModel):
    """A finding of the reference that the candidate lacks."""

    clinical_significance: Significance


class Judged(BaseModel):
    """What one rater says of one candidate."""

    rating: Annotated[int, Field(ge=1, le=5)] | None = None
    finding_errors: dict[str, FindingError] = Field(default_factory=dict)
    missing_findings: dict[str, MissingFinding] = Field(default_factory=dict)


class JudgedPair(BaseModel):
    """What one rater says of one case."""

    C1: Judged | None = None
    C2: Judged | None = None


class Annotations(BaseModel):
    """Everything one rater says."""

    user_id: str | int
    annotations: dict[str, JudgedPair]


def find_cases(folder: Path) -> Path:
    """Return the file of cases in `folder`.

    Raises
    ------
    DataError
        There is none.
    """
    for name in _CASES:
        if (folder / name).is_file():
            return folder / name
    raise DataError(
        f"{folder} is no RadPref folder: it has neither {_CASES[0]} nor {_CASES[1]}. "
        "Name the folder that holds its files."
    )


def find_raters(folder: Path) -> list[Path]:
    """Return the files of ratings in `folder`, by name.

    Raises
    ------
    DataError
        There is none.
    """
    paths = sorted(path for pattern in _RATERS for path in folder.glob(pattern))
    if not paths:
        raise DataError(
            f"{folder} has no ratings. Put radiologist_1.json and so on, or "
            "radiologist_annotations/user_1.json and so on, beside the cases."
        )
    return paths


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=unique_keys)
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}. Check its permissions."
        ) from error
    except RepeatedKeyError as error:
        raise DataError(
            f"{path}: a case or a field appears twice in one object. Download the file "
            "again, or keep one of the two."
        ) from error
    except (ValueError, RecursionError) as error:
        # The message of the decoder may quote the file.
        line = getattr(error, "lineno", None)
        where = f"{path}, line {line}" if line else f"{path}"
        raise DataError(f"{where}: not JSON. Download the file again.") from error


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file, sorted by id.

    Raises
    ------
    DataError
        It is no list of cases, or a case appears twice.
    """
    data = _load(path)
    if not isinstance(data, list) or not data:
        raise DataError(f"{path}: a list of cases is needed. Download it again.")
    cases = [
        _parse(Case, one, path, f"case {place}") for place, one in enumerate(data, 1)
    ]
    ids = [case.id for case in cases]
    twice = next((one for one, times in Counter(ids).items() if times > 1), None)
    if twice is not None:
        raise DataError(f"{path}: case {twice} appears twice. Keep one of them.")
    return sorted(cases, key=lambda case: case.id)


def read_rater(path: Path) -> Annotations:
    """Return what one rater said.

    Raises
    ------
    DataError
        The file is not what it should be; names the field, never what it holds.
    """
    return _parse(Annotations, _load(path), path, "the file")


def _parse(model: type[_Model], data: Any, path: Path, where: str) -> _Model:
    """Return `data` as `model`; an error names the field and never its content."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{path}, {where}: field {field} is missing or not what it should be "
            f"({first['type']}). Correct it or download the file again."
        ) from error


def check_raters(folder: Path, names: Sequence[str]) -> None:
    """Raise `DataError` if two files are of the same rater."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"{folder}: two files hold the ratings of user {twice}. Keep one of them."
        )

"""RadPref: cases, ratings and marked errors, in its files as they are published."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError, model_validator

from loop.core.digests import RepeatedKeyError, unique_keys
from loop.core.errors import DataError
from loop.core.yaml_files import field_name
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings

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


class JudgedCase(BaseModel):
    """What one rater says of one case."""

    C1: Judged | None = None
    C2: Judged | None = None


class Annotations(BaseModel):
    """Everything one rater says."""

    user_id: str | int
    annotations: dict[str, JudgedCase]


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
        f"{folder} is not a RadPref folder: it has neither {_CASES[0]} nor "
        f"{_CASES[1]}. Name the folder that holds its files."
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
        field = field_name(first["loc"])
        raise DataError(
            f"{path}, {where}: field {field} is missing or not what it should be "
            f"({first['type']}). Correct it or download the file again."
        ) from None


def check_raters(folder: Path, names: Sequence[str]) -> None:
    """Raise `DataError` if two files are of the same rater."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"{folder}: two files hold the ratings of user {twice}. Keep one of them."
        )


SCALE: Final = (1.0, 5.0)
"""Least and most points of a rating."""

_SERIOUS = frozenset({"urgent", "actionable_not_urgent"})
# Patient, study and image, as ReXGradient joins them.
_ID = re.compile(r"(pGRD[A-Z0-9]+)_a[A-Z0-9]+_s[0-9.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RadPref:
    """The whole data set, as far as it was in the folder."""

    references: Mapping[str, str]
    """Text of the reference by case id, sorted by id."""

    candidates: Mapping[str, Mapping[str, str]]
    """Text by system and case id. A system is the model that wrote the text; ``C1``
    and ``C2`` where a case has two texts of one model."""

    ratings: Ratings
    counts: NDArray[np.float64]
    """Matched findings, significant and insignificant errors as each rater marked
    them, shape ``(n_candidates, n_raters, 3)``; rows as in `ratings`, NaN where a
    rater did not judge the candidate."""

    errors: ErrorTable
    """The same errors by category. A wrong attribute is an error of location where
    the rater marks the location, of severity where anything else."""

    patients: Mapping[str, str] | None = None
    """Patient by case id; None unless every id names one."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each file that was read."""


class _RadPrefCandidate(NamedTuple):
    """Where one candidate stands in the files."""

    case: Case
    system: str
    slot: Slot


def read_radpref(folder: Path) -> RadPref:
    """Return the cases, ratings and error counts of a RadPref folder.

    Files are named as published (``preference_data.json`` and
    ``radiologist_annotations/user_*.json``) or ``cases.json`` and
    ``radiologist_*.json``. Ratings of cases that are not in the folder are left out;
    what a rater did not judge is missing.

    Parameters
    ----------
    folder
        Folder of the files; any number of raters from one.

    Returns
    -------
    RadPref
        Sorted by case id and system, whatever the order in the files.

    Raises
    ------
    DataError
        A file is missing, is not JSON, lacks a field, or names a case or a rater twice.

    References
    ----------
    RadPref is published with CRIMSON; its reports derive from ReXGradient-160K.
    """
    cases_path = find_cases(folder)
    rater_paths = find_raters(folder)
    cases = read_cases(cases_path)
    raters = [read_rater(path) for path in rater_paths]
    names = tuple(str(one.user_id) for one in raters)
    check_raters(folder, names)
    rows = sorted(_candidates(cases), key=lambda one: (one.case.id, one.system))
    judged = [[_judged(rater, row) for rater in raters] for row in rows]
    ratings = Ratings(
        ids=tuple(row.case.id for row in rows),
        systems=tuple(row.system for row in rows),
        raters=names,
        scores=np.array([[_points(cell) for cell in line] for line in judged]),
        scale=SCALE,
    )
    return RadPref(
        references={case.id: case.ground_truth_report for case in cases},
        candidates=_texts(rows),
        ratings=ratings,
        counts=np.array(
            [
                [_count(row.case, cell) for cell in line]
                for row, line in zip(rows, judged, strict=True)
            ]
        ),
        errors=ErrorTable(
            keys=ratings.keys,
            raters=names,
            categories=_CATEGORIES,
            counts=np.array(
                [[_count_categories(cell) for cell in line] for line in judged]
            ),
        ),
        patients=_patients(cases),
        files=tuple((path.name, _digest(path)) for path in (cases_path, *rater_paths)),
    )


def _candidates(cases: Sequence[Case]) -> Iterator[_RadPrefCandidate]:
    """Yield every candidate; the system is its writer where that tells two apart."""
    named = all(
        case.C1_source and case.C2_source and case.C1_source != case.C2_source
        for case in cases
    )
    for case in cases:
        for slot in SLOTS:
            yield _RadPrefCandidate(case, case.source(slot) if named else slot, slot)


def _judged(rater: Annotations, row: _RadPrefCandidate) -> Judged | None:
    pair = rater.annotations.get(row.case.id)
    if pair is None:
        return None
    return pair.C1 if row.slot == "C1" else pair.C2


def _points(judged: Judged | None) -> float:
    return np.nan if judged is None or judged.rating is None else float(judged.rating)


def _count(case: Case, judged: Judged | None) -> tuple[float, ...]:
    """Return matched findings, significant and insignificant errors.

    Significant: a false or missing finding that is urgent or actionable, and a finding
    with a significant wrong attribute. Matched: findings of the reference that are
    neither missing nor wrong in an attribute.
    """
    if judged is None:
        return (np.nan, np.nan, np.nan)
    errors = list(judged.finding_errors.values())
    attribute = sum(error.error_type == "attribute" for error in errors)
    serious = [_is_serious(error) for error in errors]
    serious += [
        missing.clinical_significance in _SERIOUS
        for missing in judged.missing_findings.values()
    ]
    findings = len(case.ground_truth_findings)
    # A rater may have added findings to those of the reference.
    matched = max(findings - len(judged.missing_findings) - attribute, 0)
    return (float(matched), float(sum(serious)), float(len(serious) - sum(serious)))


_CATEGORIES: Final = ("false_finding", "omission", "location", "severity")


def _count_categories(judged: Judged | None) -> NDArray[np.float64]:
    """Return the errors of each category by significance, ``(n_categories, 2)``.

    A finding with several wrong attributes is one error: of the category of its
    significant ones, and of location where both are.
    """
    if judged is None:
        return np.full((len(_CATEGORIES), 2), np.nan)
    counts = np.zeros((len(_CATEGORIES), 2))
    for error in judged.finding_errors.values():
        place = _CATEGORIES.index(_category(error))
        counts[place, 0 if _is_serious(error) else 1] += 1
    for missing in judged.missing_findings.values():
        serious = missing.clinical_significance in _SERIOUS
        counts[_CATEGORIES.index("omission"), 0 if serious else 1] += 1
    return counts


def _category(error: FindingError) -> str:
    if error.error_type == "false":
        return "false_finding"
    worst = "significant" if _is_serious(error) else "negligible"
    wrong = {name for name, value in error.attributes.items() if value == worst}
    return "location" if "location" in wrong else "severity"


def _is_serious(error: FindingError) -> bool:
    if error.error_type == "attribute":
        return "significant" in error.attributes.values()
    return error.clinical_significance in _SERIOUS


def _texts(rows: Sequence[_RadPrefCandidate]) -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda one: (one.system, one.case.id)):
        texts.setdefault(row.system, {})[row.case.id] = row.case.text(row.slot)
    return texts


def _patients(cases: Sequence[Case]) -> dict[str, str] | None:
    found = {case.id: _ID.fullmatch(case.id) for case in cases}
    named = {case: match[1] for case, match in found.items() if match}
    return named if len(named) == len(cases) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

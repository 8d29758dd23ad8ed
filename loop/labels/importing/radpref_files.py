"""RadPref as published: its cases, and what its raters say of each candidate.

A folder with ``preference_data.json`` and ``radiologist_annotations/user_*.json``, or
``cases.json`` and ``radiologist_*.json``. Imported, it is a cohort of pairs with the
raters' points and the errors that they marked.

References
----------
RadPref is published with CRIMSON; its reports derive from ReXGradient-160K.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from loop.core.digests import RepeatedKeyError, unique_keys
from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.core.yaml_files import field_name
from loop.labels.cohort import CONTEXT, PAIR_INPUTS
from loop.labels.expert_ratings import (
    ExpertRating,
    Judgements,
    MarkedError,
    PointScale,
)
from loop.labels.importing.source import Source, SourceCase, format_context

_CASES = ("cases.json", "preference_data.json")
_RATERS = ("radiologist_*.json", "radiologist_annotations/user_*.json")

Slot = Literal["C1", "C2"]
SLOTS: Final[tuple[Slot, ...]] = ("C1", "C2")
Significance = Literal[
    "urgent", "actionable_not_urgent", "not_actionable_not_urgent", "benign_expected"
]
_SERIOUS = frozenset({"urgent", "actionable_not_urgent"})
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
    C1_findings: list[str] = Field(default_factory=list)
    C2_findings: list[str] = Field(default_factory=list)
    PatientAge: str | None = None
    PatientSex: str | None = None
    Indication: str | None = None

    def text(self, slot: Slot) -> str:
        """Return the text of one candidate."""
        return self.C1_report if slot == "C1" else self.C2_report

    def source(self, slot: Slot) -> str:
        """Return which model wrote it; may be empty."""
        return self.C1_source if slot == "C1" else self.C2_source

    def findings(self, slot: Slot) -> list[str]:
        """Return the findings of one candidate, as the data set lists them."""
        return self.C1_findings if slot == "C1" else self.C2_findings


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
        if self.error_type == "attribute" and not self.attributes:
            raise ValueError("a wrong attribute that is not named")
        return self

    @property
    def serious(self) -> bool:
        """Whether it is significant: urgent or actionable, or such an attribute."""
        if self.error_type == "attribute":
            return "significant" in self.attributes.values()
        return self.clinical_significance in _SERIOUS

    @property
    def category(self) -> str:
        """Id of its category in ``errors.yaml``: of an attribute, by its type.

        A wrong location is one; severity, size, certainty and all others are wrong
        severity, size or character. Of several the significant one decides, of those
        that weigh the same the location.
        """
        if self.error_type == "false":
            return "false_finding"
        weight = "significant" if self.serious else "negligible"
        deciding = {kind for kind, one in self.attributes.items() if one == weight}
        return "location" if "location" in deciding else "severity"


class MissingFinding(BaseModel):
    """A finding of the reference that the candidate lacks."""

    clinical_significance: Significance

    @property
    def serious(self) -> bool:
        """Whether it is significant: urgent or actionable."""
        return self.clinical_significance in _SERIOUS


class Judged(BaseModel):
    """What one rater says of one candidate."""

    rating: Annotated[int, Field(ge=1, le=5)] | None = None
    finding_errors: dict[str, FindingError] = Field(default_factory=dict)
    missing_findings: dict[str, MissingFinding] = Field(default_factory=dict)


class JudgedCase(BaseModel):
    """What one rater says of one case."""

    C1: Judged | None = None
    C2: Judged | None = None

    def of(self, slot: Slot) -> Judged | None:
        """Return what is said of one candidate; None where it was not judged.

        That is also one that was opened only: without points and without a mark it is
        no candidate without an error.
        """
        found = self.C1 if slot == "C1" else self.C2
        return found if found and found != Judged() else None


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
        raise DataError(
            f"{path}: case {quoted(twice)} appears twice. Keep one of them."
        )
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
            f"{folder}: two files hold the ratings of user {quoted(twice)}. Keep one "
            "of them."
        )


SCALE: Final = (1.0, 5.0)
"""Least and most points of a rating."""

# Patient, study and image, as ReXGradient joins them.
_ID = re.compile(r"(pGRD[A-Z0-9]+)_a[A-Z0-9]+_s[0-9.]+")
_AGE = re.compile(r"0*([0-9]+)([DWMY])")
_UNITS = {"D": "days", "W": "weeks", "M": "months", "Y": "years"}


def find_patients(cases: Sequence[Case]) -> dict[str, str] | None:
    """Return the patient of each case by its id; None unless every id names one."""
    found = {case.id: _ID.fullmatch(case.id) for case in cases}
    named = {case: match[1] for case, match in found.items() if match}
    return named if len(named) == len(cases) else None


class RadPrefCandidate(NamedTuple):
    """Where one candidate stands in the files."""

    case: Case
    system: str
    slot: Slot


def list_candidates(cases: Sequence[Case]) -> Iterator[RadPrefCandidate]:
    """Yield every candidate; the system is its writer where that tells two apart."""
    named = all(
        case.C1_source and case.C2_source and case.C1_source != case.C2_source
        for case in cases
    )
    for case in cases:
        for slot in SLOTS:
            yield RadPrefCandidate(case, case.source(slot) if named else slot, slot)


def digest_file(path: Path) -> str:
    """Sha256 of a file, 64 hex characters."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_radpref(folder: Path) -> bool:
    """Whether `folder` has the cases of RadPref; its ratings may be missing."""
    return any((folder / name).is_file() for name in _CASES)


def open_radpref(folder: Path) -> Source:
    """Return RadPref as pairs, with what its raters say of them.

    A pair is called by its case and its slot, ``<case>-C1``; the case is its
    reference, the model that wrote the candidate its system. Age, sex and indication
    are the context.

    Raises
    ------
    DataError
        A file is missing, is not JSON, lacks a field, or names a case or a rater twice.
    """
    cases_path, rater_paths = find_cases(folder), find_raters(folder)
    cases = read_cases(cases_path)
    raters = [read_rater(path) for path in rater_paths]
    check_raters(folder, [str(one.user_id) for one in raters])
    candidates = tuple(list_candidates(cases))
    patients = find_patients(cases) or {}
    return Source(
        cases=(
            SourceCase(
                where=f"{cases_path.name}, case {quoted(one.case.id)}, {one.slot}",
                case_id=_pair_id(one),
                pair={
                    "reference": one.case.ground_truth_report.strip(),
                    "candidate": one.case.text(one.slot).strip(),
                    CONTEXT: describe_patient(one.case),
                },
                system=one.system,
                reference_id=one.case.id,
                patient=patients.get(one.case.id, ""),
                language="en",
            )
            for one in candidates
        ),
        inputs=(*PAIR_INPUTS, CONTEXT),
        judgements=_judgements(candidates, raters),
        files=tuple((one.name, digest_file(one)) for one in (cases_path, *rater_paths)),
        source="RadPref: chest radiographs of ReXGradient-160K, texts of two models",
        licence="MIT; the terms of ReXGradient-160K hold for its reports",
        format=RADPREF,
    )


RADPREF: Final = "radpref"
"""Name of the format."""


def _pair_id(one: RadPrefCandidate) -> str:
    return f"{one.case.id}-{one.slot}"


def describe_patient(case: Case) -> str:
    """Return age, sex and indication of a case; empty where none is given."""
    given = (case.PatientAge or "").strip()
    age = _AGE.fullmatch(given)
    words = f"{age[1]} {_UNITS[age[2]]}" if age else given
    return format_context(words, case.PatientSex or "", case.Indication or "")


def _judgements(
    candidates: Sequence[RadPrefCandidate], raters: Sequence[Annotations]
) -> Judgements:
    """Return points and marked errors of everything that was judged."""
    ratings: list[ExpertRating] = []
    errors: list[MarkedError] = []
    for one in candidates:
        for rater in raters:
            found = rater.annotations.get(one.case.id)
            judged = found.of(one.slot) if found else None
            if judged is None:
                continue
            key = _pair_id(one), str(rater.user_id)
            if judged.rating is not None:
                points = float(judged.rating)
                ratings.append(ExpertRating(*key, "overall", points, _SCALE))
            marked = [MarkedError(*key, *error) for error in _errors(one, judged)]
            errors += marked or [MarkedError(*key)]
    return Judgements(tuple(ratings), tuple(errors))


_SCALE = PointScale(*SCALE)


def _errors(one: RadPrefCandidate, judged: Judged) -> Iterator[tuple[str, str, str]]:
    """Yield category, significance and finding of each error."""
    for index, error in judged.finding_errors.items():
        words = _finding(one.case.findings(one.slot), index)
        yield error.category, _SIGNIFICANCE[error.serious], words
    for index, missing in judged.missing_findings.items():
        words = _finding(one.case.ground_truth_findings, index)
        yield "omission", _SIGNIFICANCE[missing.serious], words


_SIGNIFICANCE = {True: "significant", False: "insignificant"}


def _finding(findings: Sequence[str], index: str) -> str:
    """Return the finding that a rater marked; empty where the rater added it."""
    # Python reads no number of thousands of digits.
    number = index.isascii() and index.isdigit() and len(index) < 10
    known = number and int(index) < len(findings)
    return findings[int(index)] if known else ""

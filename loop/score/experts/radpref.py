"""RadPref: cases, three radiologists' ratings and the errors they marked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.score.experts.radpref_files import (
    SLOTS,
    Annotations,
    Case,
    FindingError,
    Judged,
    Slot,
    check_raters,
    find_cases,
    find_raters,
    read_cases,
    read_rater,
)
from loop.score.experts.ratings import Ratings

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

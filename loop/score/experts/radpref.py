"""RadPref as the statistics take it: texts, ratings and counted errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loop.labels.importing.radpref_files import (
    SCALE,
    Annotations,
    Case,
    Judged,
    RadPrefCandidate,
    check_raters,
    describe_patient,
    digest_file,
    find_cases,
    find_patients,
    find_raters,
    list_candidates,
    read_cases,
    read_rater,
)
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings


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

    contexts: Mapping[str, str] = field(default_factory=dict)
    """What is known of the patient by case id: age, sex and indication; may be
    empty."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each file that was read."""


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
    rows = sorted(list_candidates(cases), key=lambda one: (one.case.id, one.system))
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
        patients=find_patients(cases),
        contexts={case.id: describe_patient(case) for case in cases},
        files=tuple(
            (path.name, digest_file(path)) for path in (cases_path, *rater_paths)
        ),
    )


def _judged(rater: Annotations, row: RadPrefCandidate) -> Judged | None:
    pair = rater.annotations.get(row.case.id)
    return None if pair is None else pair.of(row.slot)


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
    serious = [error.serious for error in errors]
    serious += [missing.serious for missing in judged.missing_findings.values()]
    findings = len(case.ground_truth_findings)
    # A rater may have added findings to those of the reference.
    matched = max(findings - len(judged.missing_findings) - attribute, 0)
    return (float(matched), float(sum(serious)), float(len(serious) - sum(serious)))


_CATEGORIES: Final = ("false_finding", "omission", "location", "severity")


def _count_categories(judged: Judged | None) -> NDArray[np.float64]:
    """Return the errors of each category by significance, ``(n_categories, 2)``.

    A finding with several wrong attributes is one error.
    """
    if judged is None:
        return np.full((len(_CATEGORIES), 2), np.nan)
    counts = np.zeros((len(_CATEGORIES), 2))
    for error in judged.finding_errors.values():
        counts[_CATEGORIES.index(error.category), 0 if error.serious else 1] += 1
    for missing in judged.missing_findings.values():
        counts[_CATEGORIES.index("omission"), 0 if missing.serious else 1] += 1
    return counts


def _texts(rows: Sequence[RadPrefCandidate]) -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda one: (one.system, one.case.id)):
        texts.setdefault(row.system, {})[row.case.id] = row.case.text(row.slot)
    return texts

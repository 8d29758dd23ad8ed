"""Experts' ratings of candidates: read from a table, and how well raters agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite, isinf
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.cohort import read_cohort
from loop.labels.expert_ratings import (
    OVERALL,
    RaterPoints,
    parse_scale,
    read_ratings_of,
)
from loop.labels.importing.table_files import (
    SourceRow,
    SourceTable,
    open_table,
)
from loop.labels.sealing import Opening
from loop.stats.correlation import Correlations, correlate_columns
from loop.stats.intervals import Estimate
from loop.stats.reliability import icc_agreement, interval_alpha, ordinal_alpha
from loop.stats.resampling import Resampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Every rater's points for every candidate, sorted by case id and system.

    A candidate is one system's text for one case: entry i of `ids` and `systems`
    names the one whose points stand in row i of `scores`.
    """

    ids: tuple[str, ...]
    """Case id of each candidate; a case stands once for each of its systems."""

    systems: tuple[str, ...]
    """System of each candidate; empty text where the file names none."""

    raters: tuple[str, ...]
    scores: NDArray[np.float64]
    """Shape ``(n_candidates, n_raters)``; NaN where a rater did not rate."""

    scale: tuple[float, float]
    """Least and most points possible; as observed where nobody said."""

    repeated: int = 0
    """Rows that stood more than once with the same points; used once."""

    against: str = "points"
    """What the points are, for example ``"error counts, negated"``."""

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.ids), len(self.raters)):
            raise ValueError(
                f"need one row per candidate and one column per rater, "
                f"{len(self.ids)} x {len(self.raters)}, got {self.scores.shape}"
            )
        if len(self.systems) != len(self.ids):
            raise ValueError(
                f"need a system for each of {len(self.ids)} candidates, "
                f"got {len(self.systems)}"
            )

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """``(case id, system)`` of each candidate."""
        return tuple(zip(self.ids, self.systems, strict=True))

    @property
    def consensus(self) -> NDArray[np.float64]:
        """Mean points of each candidate over those who rated it; NaN without one."""
        return mean_given(self.scores)


def cohort_ratings(
    workspace: WorkspacePaths,
    cohort_name: str,
    dimension: str = OVERALL,
    *,
    opening: Opening | None = None,
) -> Ratings:
    """Return what experts say of a cohort of pairs, as the statistics take it.

    The case of a candidate is its reference, and its system the one that wrote it; its
    own id where two candidates of a reference are of one system, or of none. Counts of
    errors are negated, since fewer are better.

    Parameters
    ----------
    dimension
        What was rated.
    opening
        What lets the ratings of a holdout be read; nothing else does.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    DataError
        It has no ratings in this dimension, or they are not those recorded.
    """
    given = read_ratings_of(workspace, cohort_name, opening=opening).points(dimension)
    cases = read_cohort(workspace, cohort_name).cases
    keys = [(case.reference_id, case.system) for case in cases]
    if len(set(keys)) < len(keys):
        keys = [(case.reference_id, case.case_id) for case in cases]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    in_order = replace(given, points=given.points[order])
    return as_ratings(in_order, [keys[row] for row in order])


def as_ratings(given: RaterPoints, keys: Sequence[tuple[str, str]]) -> Ratings:
    """Return points as the statistics take them; counts of errors are negated.

    Parameters
    ----------
    keys
        Case id and system of each row of the points.
    """
    counted = isinf(given.scale.high)
    most = float(np.nanmax(given.points)) if counted else given.scale.high
    found = Ratings(
        ids=tuple(case for case, _ in keys),
        systems=tuple(system for _, system in keys),
        raters=given.raters,
        scores=given.points,
        scale=(given.scale.low, most),
    )
    return _negate(found) if counted else found


def mean_given(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row over its defined cells; NaN where there is none.

    Examples
    --------
    >>> mean_given(np.array([[1.0, np.nan, 4.0], [np.nan] * 3])).tolist()
    [2.5, nan]
    """
    given = ~np.isnan(scores)
    total = np.where(given, scores, 0.0).sum(axis=1)
    counts = given.sum(axis=1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


class CandidatePairs(NamedTuple):
    """Every two candidates of one case, and what the raters say of them."""

    rows: NDArray[np.intp]
    """Rows of both candidates, shape ``(n_pairs, 2)``."""

    consensus: NDArray[np.float64]
    """Mean points of both over the raters who rated both, shape ``(n_pairs, 2)``;
    NaN without one."""

    unanimous: NDArray[np.bool_]
    """Whether all raters, two or more, strictly prefer the same one."""

    tied: NDArray[np.bool_]
    """Whether all raters, two or more, give both the same points."""

    units: NDArray[Any]
    """Unit of each pair."""


def candidate_pairs(ratings: Ratings, units: NDArray[Any]) -> CandidatePairs:
    """Return the pairs of candidates of every case, in the order of their rows.

    Parameters
    ----------
    ratings
        Points; a case with one candidate has no pair.
    units
        Unit of each candidate, its case or patient.

    Returns
    -------
    CandidatePairs
        Arrays of length 0 where every case has one candidate.
    """
    places: dict[str, list[int]] = {}
    for row, case in enumerate(ratings.ids):
        places.setdefault(case, []).append(row)
    found = [pair for rows in places.values() for pair in combinations(rows, 2)]
    rows = np.array(found, dtype=np.intp).reshape(-1, 2)
    points = ratings.scores[rows]
    both = (~np.isnan(points)).sum(axis=1, keepdims=True) == 2
    kept = np.where(both, points, np.nan)
    consensus = np.stack([mean_given(kept[:, 0]), mean_given(kept[:, 1])], axis=1)
    signs = np.sign(kept[:, 0] - kept[:, 1])
    enough = (both[:, 0].sum(axis=1) == len(ratings.raters)) & (len(ratings.raters) > 1)
    alike = enough & (signs == signs[:, :1]).all(axis=1)
    preferred = alike & (signs[:, 0] != 0)
    return CandidatePairs(
        rows, consensus, preferred, alike & ~preferred, units[rows[:, 0]]
    )


_COLUMNS: Final = ("id", "system", "rater", "score", "dimension", "scale")
_OPTIONAL: Final = frozenset({"system", "dimension", "scale"})
_OTHER_NAMES: Final = {"points": "score"}


class _RatingCell(NamedTuple):
    """Where and how many points."""

    where: str
    points: float


def read_ratings(
    path: Path,
    *,
    scale: tuple[float, float] | None = None,
    dimension: str | None = None,
) -> Ratings:
    """Return the ratings in a table with columns id, system, rater, score.

    Columns may be in any order and others are ignored; without a column ``system``
    every case has one candidate. ``points`` is another name of ``score``. An empty
    score is a missing rating. Ids are trimmed and otherwise taken as they are. A column
    ``scale`` names the scale: ``1-5`` or ``0-5``, for example, or ``counts`` for
    numbers of errors, which are negated, since fewer are better.

    Parameters
    ----------
    path
        One row per rating: CSV, TSV, JSON Lines or Parquet.
    scale
        Least and most points possible; None: as the file says, else as observed.
    dimension
        Which rows to take where a column ``dimension`` names several.

    Returns
    -------
    Ratings
        Sorted by case id and system, raters by name.

    Raises
    ------
    DataError
        A column is missing, a score is not a number or off the scale, an id or rater is
        empty, a rater gives one candidate two different scores, nobody rates, rows have
        different scales, or several dimensions and none is chosen.
    """
    table = open_table(path, other=".csv")
    named = find_columns(table, _COLUMNS, _OPTIONAL, "Ratings", _OTHER_NAMES)
    rows: Sequence[_GivenRow] = [
        (row, {name: row.text(column) for name, column in named.items()})
        for row in table.read(named.values())
    ]
    rows = _choose_dimension(rows, dimension, path)
    least_most, counted = _read_scale(rows, scale)
    cells: dict[tuple[str, str], dict[str, _RatingCell]] = {}
    repeated = 0
    for row, given in rows:
        key, rater, cell = _read_rating(row.where, given, least_most)
        before = cells.setdefault(key, {}).get(rater)
        if before is not None and not _same(before.points, cell.points):
            raise DataError(
                f"{before.where} and {row.where}: rater {quoted(rater)} gives one "
                f"candidate of case {quoted(key[0])} two scores. Keep one."
            )
        repeated += before is not None
        cells[key][rater] = before or cell
    found = _assemble(cells, path, least_most, repeated)
    return _negate(found) if counted else found


def _choose_dimension(
    rows: Sequence[_GivenRow], dimension: str | None, path: Path
) -> Sequence[_GivenRow]:
    """Return the rows of one dimension; all where there is at most one."""
    found = sorted({given.get("dimension", "") for _, given in rows})
    if dimension is None and len(found) < 2:
        return rows
    if dimension not in found:
        said = (
            "there are several dimensions"
            if dimension is None
            else (f"there is no dimension {quoted(dimension)}")
        )
        named = ", ".join(quoted(one) for one in found[:_LISTED])
        raise DataError(
            f"{path.name}: {said}. Name one with --dimension: {named}"
            f"{' and others' if len(found) > _LISTED else ''}."
        )
    return [row for row in rows if row[1].get("dimension", "") == dimension]


_LISTED: Final = 12
"""Dimensions that are named in an error."""


def _read_scale(
    rows: Sequence[_GivenRow], scale: tuple[float, float] | None
) -> tuple[tuple[float, float] | None, bool]:
    """Return least and most points, and whether they are counts of errors."""
    first: tuple[str, str] | None = None
    for row, given in rows:
        name = given.get("scale", "").casefold()
        if first is not None and name != first[1]:
            raise DataError(
                f"{first[0]} and {row.where}: two different scales. Keep one scale, or "
                "tell the rows apart by a column dimension and name one with "
                "--dimension."
            )
        first = first or (row.where, name)
    if first is None or not first[1]:
        return scale, False
    where, name = first
    try:
        named = parse_scale(name)
    except DataError:
        # Not what it holds, which may be a clinical text.
        raise DataError(
            f"{where}: the scale is neither counts nor least and most points such as "
            "1-5. Correct it."
        ) from None
    if isinf(named.high):
        return None, True
    own = named.low, named.high
    if scale is not None and scale != own:
        raise DataError(
            f"{where}: the file names the scale {named.words}, --scale another. Leave "
            "--scale out."
        )
    return own, False


def _negate(found: Ratings) -> Ratings:
    """Return counts of errors as points: fewer errors are more."""
    if np.nanmin(found.scores) < 0:
        raise DataError(
            "the scale is counts, and one of them is negative. Correct it, or name the "
            "scale of the points."
        )
    return replace(
        found,
        scores=0.0 - found.scores,
        scale=(0.0 - found.scale[1], 0.0 - found.scale[0]),
        against=ERRORS,
    )


ERRORS: Final = "error counts, negated"
"""What ratings are that were given as numbers of errors."""


def find_columns(
    table: SourceTable,
    columns: Sequence[str],
    optional: frozenset[str],
    what: str,
    other_names: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the column of each of ours; case and spaces around do not matter.

    Parameters
    ----------
    table
        Its header is looked at.
    columns, optional
        Those that are read, and those of them that may be missing.
    what
        What the table holds, for the error.
    other_names
        Further names of columns.

    Raises
    ------
    DataError
        One is missing, or is there twice.
    """
    found: dict[str, str] = {}
    for column in table.header:
        name = column.strip().casefold()
        name = (other_names or {}).get(name, name)
        if name in columns and found.setdefault(name, column) != column:
            raise DataError(f"{table.name}: two columns are named {name}. Rename one.")
    missing = [one for one in columns if one not in found and one not in optional]
    if missing:
        needed = [one for one in columns if one not in optional or one == "system"]
        raise DataError(
            f"{table.name}: no column {', '.join(missing)}. {what} need the "
            f"columns {', '.join(needed)}, in any order."
        )
    return found


_GivenRow = tuple[SourceRow, Mapping[str, str]]
"""A row and its cells by our names of the columns."""


def _read_rating(
    where: str, given: Mapping[str, str], scale: tuple[float, float] | None
) -> tuple[tuple[str, str], str, _RatingCell]:
    for name in ("id", "rater"):
        if not given[name]:
            raise DataError(f"{where}: column {name} is empty. Fill it in.")
    return (
        (given["id"], given.get("system", "")),
        given["rater"],
        _RatingCell(where, _points(given["score"], where, scale)),
    )


def _points(text: str, where: str, scale: tuple[float, float] | None) -> float:
    if not text:
        return np.nan
    try:
        points = float(text)
    except ValueError:
        points = np.inf
    if not isfinite(points):
        # Not what it holds, which may be a clinical text.
        raise DataError(
            f"{where}: the score is not a number. Give a number, or leave the cell "
            "empty where nobody rated."
        )
    if scale is not None and not scale[0] <= points <= scale[1]:
        raise DataError(
            f"{where}: the score {quoted(text)} is off the scale of {scale[0]:g} to "
            f"{scale[1]:g}. Correct it, or name the right scale."
        )
    return points


def _same(one: float, other: float) -> bool:
    return one == other or (np.isnan(one) and np.isnan(other))


def _assemble(
    cells: Mapping[tuple[str, str], Mapping[str, _RatingCell]],
    path: Path,
    scale: tuple[float, float] | None,
    repeated: int,
) -> Ratings:
    raters = tuple(sorted({rater for given in cells.values() for rater in given}))
    keys = sorted(cells)
    blank = _RatingCell("", np.nan)
    scores = np.array(
        [[cells[key].get(rater, blank).points for rater in raters] for key in keys]
    ).reshape(len(keys), len(raters))
    if np.isnan(scores).all():
        raise DataError(f"{path.name}: no row has a score. Give at least one.")
    return Ratings(
        ids=tuple(case for case, _ in keys),
        systems=tuple(system for _, system in keys),
        raters=raters,
        scores=scores,
        scale=scale or (float(np.nanmin(scores)), float(np.nanmax(scores))),
        repeated=repeated,
    )


class RaterPair(NamedTuple):
    """Two raters on the candidates that both rated."""

    first: str
    second: str
    correlations: Correlations
    same: float | None
    """Share of the candidates to which both give the same points."""


class OneAgainstRest(NamedTuple):
    """One rater against the mean of the others, without themselves in it."""

    rater: str
    correlations: Correlations


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAgreement:
    """Everything that raters agree on; a metric can hardly agree with them more."""

    pairs: tuple[RaterPair, ...]
    """Every two raters; empty for one rater."""

    rest: tuple[OneAgainstRest, ...]
    """Every rater; empty for one rater."""

    ordinal: Estimate
    """Krippendorff's alpha of ordered points."""

    interval: Estimate
    """Krippendorff's alpha of points with equal steps."""

    icc: Estimate
    """ICC(2,1), absolute agreement, over the candidates that all rated."""

    candidates: int
    complete: int
    """Candidates that every rater rated."""

    missing: int
    """Ratings that were not given, of candidates times raters."""

    @property
    def tau_b(self) -> float | None:
        """Mean tau-b of the pairs of raters; None where none is defined."""
        return _mean_defined([pair.correlations.tau_b.value for pair in self.pairs])

    @property
    def tau_b_rest(self) -> float | None:
        """Mean tau-b of one rater with the mean of the others."""
        return _mean_defined([one.correlations.tau_b.value for one in self.rest])


def rater_agreement(
    ratings: Ratings,
    *,
    patients: Mapping[str, str] | None = None,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> RaterAgreement:
    """Return how well the raters agree, with bootstrap intervals over cases.

    Parameters
    ----------
    ratings
        Points of one rater or more; a missing rating drops the candidate from the
        pairs of that rater, never counts as a low one.
    patients
        Patient by case id: all their cases are drawn together; None: all candidates
        of a case are.
    resamples, seed, confidence
        Of the bootstrap.

    Returns
    -------
    RaterAgreement
        Undefined values are None, with the reason in their note.

    References
    ----------
    Krippendorff K. Content Analysis. 4th ed. 2019, chapter 12. Shrout PE, Fleiss JL.
    Psychol Bull 1979;86:420-428.
    """
    units = unit_codes(ratings.ids, patients)
    drawn = Resampling(
        units=units, resamples=resamples, seed=seed, confidence=confidence
    )
    given = ~np.isnan(ratings.scores)
    alone = len(ratings.raters) < 2
    nothing = Estimate(None, None, None, "not estimable: one rater")
    return RaterAgreement(
        pairs=tuple(_rater_pairs(ratings, drawn)),
        rest=() if alone else tuple(_one_against_rest(ratings, drawn)),
        ordinal=nothing if alone else ordinal_alpha(ratings.scores, **drawn),
        interval=nothing if alone else interval_alpha(ratings.scores, **drawn),
        icc=nothing if alone else icc_agreement(ratings.scores, **drawn),
        candidates=len(ratings.ids),
        complete=int(given.all(axis=1).sum()),
        missing=int((~given).sum()),
    )


def unit_codes(
    ids: tuple[str, ...], patients: Mapping[str, str] | None
) -> NDArray[Any]:
    """Return the unit of each candidate: its patient where known, else its case.

    Raises
    ------
    ValueError
        `patients` is given and lacks a case.
    """
    if patients is None:
        return np.array(ids)
    lacking = next((case for case in ids if case not in patients), None)
    if lacking is not None:
        raise ValueError(f"no patient for case {lacking}")
    return np.array([patients[case] for case in ids])


def _rater_pairs(ratings: Ratings, drawn: Resampling) -> list[RaterPair]:
    pairs = list(combinations(range(len(ratings.raters)), 2))
    correlations = correlate_columns(ratings.scores, pairs, **drawn)
    found = []
    for (one, other), correlation in zip(pairs, correlations, strict=True):
        first, second = ratings.scores[:, one], ratings.scores[:, other]
        both = ~np.isnan(first) & ~np.isnan(second)
        same = float((first == second)[both].mean()) if both.any() else None
        names = ratings.raters[one], ratings.raters[other]
        found.append(RaterPair(*names, correlation, same))
    return found


def _one_against_rest(ratings: Ratings, drawn: Resampling) -> list[OneAgainstRest]:
    scores, n = ratings.scores, len(ratings.raters)
    others = [mean_given(np.delete(scores, place, axis=1)) for place in range(n)]
    table = np.column_stack([scores, *others])
    pairs = [(place, n + place) for place in range(n)]
    correlations = correlate_columns(table, pairs, **drawn)
    return [
        OneAgainstRest(rater, correlation)
        for rater, correlation in zip(ratings.raters, correlations, strict=True)
    ]


def _mean_defined(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None

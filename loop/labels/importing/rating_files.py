"""Experts' ratings and marked errors in tables of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.cohort import Cohort, read_cohort
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.expert_ratings import (
    OVERALL,
    ExpertRating,
    Judgements,
    MarkedError,
    PointScale,
    RatingsReport,
    RatingsTaking,
    add_ratings,
    parse_scale,
)
from loop.labels.importing.source import MAX_ID, MAX_TEXT, ROLES
from loop.labels.importing.table_files import (
    SourceRow,
    SourceTable,
    frame_table,
    open_table,
)
from loop.labels.taxonomy import fold_name

if TYPE_CHECKING:
    from pandas import DataFrame

_POINTS: Final = ("points", "score", "rating")
_NEEDED: Final = {
    "ratings": ("case_id", "rater", "points"),
    "errors": ("case_id", "rater", "category", "significance"),
}


class RatingFiles(NamedTuple):
    """Files of ratings and errors, and how they are read and taken."""

    cohort: str
    ratings: Path | DataFrame | None = None
    errors: Path | DataFrame | None = None
    scale: str = ""
    """Scale of points whose row names none: ``1-5``, or ``counts``."""

    replace: bool = False
    """Whether a rater's ratings take the place of all earlier ones."""

    reason: str = ""
    """Why, for the ledger; empty: whose they are."""


def take_rating_files(
    workspace: WorkspacePaths, files: RatingFiles, *, actor: Actor
) -> RatingsReport:
    """Add the ratings and errors of tables to a cohort of pairs.

    Raises
    ------
    DataError
        The cohort or a file is wrong; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    cohort = read_cohort(workspace, files.cohort)
    given = read_judgements(cohort, files, read_errors(workspace.labels))
    how = RatingsTaking(actor=actor, replace=files.replace, reason=files.reason)
    return add_ratings(workspace, cohort, given, how)


def read_judgements(
    cohort: Cohort, files: RatingFiles, categories: ErrorCategories
) -> Judgements:
    """Return the ratings and marked errors of tables, with the ids of the cohort.

    Ratings have the columns case_id, rater and points, and where needed dimension
    (else ``overall``), scale and system; a row without points is no rating. Errors
    have case_id, rater, category and significance, by id or category by letter, and
    where wanted finding; a row in which both are empty says that the rater found no
    error. A case id is that of the pair, or that of its reference beside its system.

    Raises
    ------
    DataError
        There is no file, a column is missing, or a row is wrong; names the line, and
        never the words of a finding.
    """
    ratings: tuple[ExpertRating, ...] = ()
    errors: tuple[MarkedError, ...] = ()
    if files.ratings is None and files.errors is None:
        raise DataError("no file is named. Give --ratings FILE, --errors FILE or both.")
    pairs = _PairIds(cohort)
    if files.ratings is not None:
        scale = parse_scale(files.scale) if files.scale else None
        ratings = tuple(_iter_ratings(_open(files.ratings, "ratings"), pairs, scale))
    if files.errors is not None:
        errors = tuple(_iter_errors(_open(files.errors, "errors"), pairs, categories))
    return Judgements(ratings, errors)


class _RatingColumns(NamedTuple):
    """A table, and which of its columns is what."""

    table: SourceTable
    named: Mapping[str, str]
    """Role to column."""

    def rows(self) -> Iterator[tuple[SourceRow, dict[str, str]]]:
        """Yield each row with its cells by role; empty where there is no column."""
        for row in self.table.read(self.named.values()):
            yield row, {role: row.text(name) for role, name in self.named.items()}


def _open(source: Path | DataFrame, kind: str) -> _RatingColumns:
    """Open a table; case and signs between the words of a header do not matter."""
    if not isinstance(source, Path):
        table = frame_table(source)
    elif source.is_file():
        table = open_table(source, other=".csv")
    else:
        raise DataError(f"{source} does not exist or is not a file. Check the path.")
    aliases = {
        "case_id": ROLES["case_id"],
        "rater": ("rater", "reader", "annotator", "radiologist"),
        "system": ("system", "model"),
        "dimension": ("dimension", "criterion"),
        "points": _POINTS,
        "scale": ("scale",),
        "category": ("category", "error_category"),
        "significance": ("significance", "clinical_significance"),
        "finding": ("finding", "words"),
    }
    folded = {fold_name(name): name for name in reversed(table.header)}
    named = {
        role: folded[fold_name(alias)]
        for role, names in aliases.items()
        for alias in reversed(names)
        if fold_name(alias) in folded
    }
    missing = [role for role in _NEEDED[kind] if role not in named]
    if missing:
        raise DataError(
            f"{table.name}: no column {', '.join(missing)}. A table of {kind} has the "
            f"columns {', '.join(_NEEDED[kind])}, in any order."
        )
    return _RatingColumns(table, named)


class _PairIds:
    """Finds the pair that a row is about."""

    def __init__(self, cohort: Cohort) -> None:
        self._name = cohort.name
        self._ids = frozenset(cohort.case_ids)
        self._by_system: dict[tuple[str, str], list[str]] = {}
        for case in cohort.cases:
            key = case.reference_id, case.system
            self._by_system.setdefault(key, []).append(case.case_id)

    def find(self, cells: Mapping[str, str], where: str) -> tuple[str, str]:
        """Return case id and rater of a row."""
        case_id, rater = cells["case_id"], cells["rater"]
        if not case_id or not rater:
            raise DataError(f"{where}: no rater or no case id. Fill in both.")
        if len(rater) > MAX_ID or not rater.isprintable():
            raise DataError(
                f"{where}: the name of the rater is longer than {MAX_ID} characters or "
                "holds a control character. Use a short name, or a number."
            )
        if case_id in self._ids:
            return case_id, rater
        found = self._by_system.get((case_id, cells.get("system", "")), [])
        if len(found) == 1:
            return found[0], rater
        raise DataError(
            f"{where}: cohort {self._name!r} has no pair {quoted(case_id)}"
            f"{', and several of this reference and system' if found else ''}. Give "
            "the id of the pair, or that of its reference and the system."
        )


def _iter_ratings(
    columns: _RatingColumns, pairs: _PairIds, scale: PointScale | None
) -> Iterator[ExpertRating]:
    for row, cells in columns.rows():
        case_id, rater = pairs.find(cells, row.where)
        if not cells["points"]:
            continue
        named = cells.get("scale", "")
        used = _scale_of(named, row.where) if named else scale
        if used is None:
            raise DataError(
                f"{row.where}: nothing says on which scale the points are. Add a "
                "column scale, or give --scale, for example 1-5 or counts."
            )
        try:
            points = float(cells["points"])
        except ValueError:
            # Not what it holds, which may be a clinical text.
            raise DataError(
                f"{row.where}: the points are not a number. Give a number, or leave "
                "the cell empty where nobody rated."
            ) from None
        dimension = cells.get("dimension", "") or OVERALL
        if len(dimension) > MAX_ID or not dimension.isprintable():
            raise DataError(f"{row.where}: the dimension has no short name. Give one.")
        yield ExpertRating(case_id, rater, dimension, points, used)


def _scale_of(words: str, where: str) -> PointScale:
    try:
        return parse_scale(words)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _iter_errors(
    columns: _RatingColumns, pairs: _PairIds, categories: ErrorCategories
) -> Iterator[MarkedError]:
    letters = {one.letter: one.id for one in categories.categories}
    names = _ids((one.id, one.name) for one in categories.categories)
    weights = _ids((one.id, one.name) for one in categories.significances)
    for row, cells in columns.rows():
        case_id, rater = pairs.find(cells, row.where)
        category, weight = cells["category"], cells["significance"]
        finding = cells.get("finding", "")
        if bool(category) != bool(weight) or (finding and not category):
            raise DataError(
                f"{row.where}: an error has a category and a significance. Fill in "
                "both; leave both empty, and the finding, where the rater found none."
            )
        if len(finding) > MAX_TEXT:
            raise DataError(f"{row.where}: the finding is no finding: it is too long.")
        if category:
            letter = letters.get(category.casefold())
            category = letter or _known("category", category, names, row.where)
            weight = _known("significance", weight, weights, row.where)
        yield MarkedError(case_id, rater, category, weight, finding)


def _known(what: str, word: str, names: Mapping[str, str], where: str) -> str:
    """Return the id that `word` names; the word itself is not told, it may be text."""
    found = names.get(fold_name(word))
    if found is None:
        raise DataError(
            f"{where}: that {what} is none of "
            f"{', '.join(dict.fromkeys(names.values()))}. Correct it; "
            "labels/errors.yaml says what each means."
        )
    return found


def _ids(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the id of each id and name, folded."""
    return {fold_name(word): key for key, name in named for word in (key, name)}

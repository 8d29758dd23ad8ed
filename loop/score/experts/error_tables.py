"""Errors of candidates by category, as experts or a judge counted them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.paths import bundled
from loop.core.safe_text import quoted
from loop.labels.error_categories import ErrorCategories, read_errors
from loop.labels.importing.table_files import SourceRow, SourceTable, open_table
from loop.score.experts.ratings import Ratings, find_columns

SIGNIFICANCES: Final = ("significant", "insignificant")
"""What the last axis of counts is, in order."""


@cache
def not_clinical() -> frozenset[str]:
    """Return the categories whose errors say nothing wrong about the patient.

    Examples
    --------
    >>> sorted(not_clinical())
    ['wording']
    """
    known = read_errors(bundled() / "labels")
    return frozenset(known.ids) - frozenset(known.clinical)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTable:
    """How many errors everyone counted in every candidate, sorted by id and system."""

    keys: tuple[tuple[str, str], ...]
    """``(case id, system)`` of each candidate."""

    raters: tuple[str, ...]
    """Who counted: experts, or one judge."""

    categories: tuple[str, ...]
    """Ids of ``labels/errors.yaml``."""

    counts: NDArray[np.float64]
    """Shape ``(n_candidates, n_raters, n_categories, 2)``, the last axis significant
    and insignificant; NaN where somebody did not judge a candidate, or said nothing of
    its insignificant errors. Whoever does not weigh errors has 0 of these."""

    signature: str = ""
    """What a judge counted with; empty for experts."""

    repeated: int = 0
    """Rows that were repeated with the same count; used once."""

    def __post_init__(self) -> None:
        shape = (len(self.keys), len(self.raters), len(self.categories), 2)
        if self.counts.shape != shape:
            raise ValueError(f"need counts of shape {shape}, got {self.counts.shape}")

    def totals(
        self, categories: Sequence[str], *, all_errors: bool
    ) -> NDArray[np.float64]:
        """Return how many errors of these categories there are.

        Parameters
        ----------
        categories
            Those the table lacks count as not asked for, and add nothing.
        all_errors
            Whether insignificant errors count, too.

        Returns
        -------
        NDArray[np.float64]
            Shape ``(n_candidates, n_raters)``; NaN where not judged, and where
            insignificant errors are asked for and nothing is said of them.
        """
        chosen = [
            place for place, one in enumerate(self.categories) if one in categories
        ]
        kept = self.counts[:, :, chosen, : 2 if all_errors else 1]
        # Of no category the sum is 0, also where nobody judged.
        return np.where(
            np.isnan(self.counts[:, :, 0, 0]), np.nan, kept.sum(axis=(2, 3))
        )

    def rows(self, keys: Sequence[tuple[str, str]]) -> ErrorTable:
        """Return the table of these candidates, in this order; NaN for unknown ones."""
        places = {key: place for place, key in enumerate(self.keys)}
        counts = np.full((len(keys), *self.counts.shape[1:]), np.nan)
        for row, key in enumerate(keys):
            if key in places:
                counts[row] = self.counts[places[key]]
        return ErrorTable(
            keys=tuple(keys),
            raters=self.raters,
            categories=self.categories,
            counts=counts,
            signature=self.signature,
        )

    def as_ratings(self) -> Ratings:
        """Return minus the number of significant errors as points: more is better.

        Errors that are not clinical, such as wording, do not count here.
        """
        clinical = [one for one in self.categories if one not in not_clinical()]
        points = 0.0 - self.totals(clinical, all_errors=False)
        return Ratings(
            ids=tuple(case for case, _ in self.keys),
            systems=tuple(system for _, system in self.keys),
            raters=self.raters,
            scores=points,
            scale=(float(np.nanmin(points)), 0.0),
            repeated=self.repeated,
            against=NEGATED,
        )


NEGATED: Final = "significant errors, negated"
"""What ratings are that were made of counts."""

_COLUMNS: Final = ("id", "system", "rater", "category", "significance", "count")
_OPTIONAL: Final = frozenset({"system"})


class _ErrorRow(NamedTuple):
    key: tuple[str, str]
    rater: str
    category: str
    significance: str
    where: str
    errors: int


def read_error_counts(path: Path) -> ErrorTable:
    """Return experts' counts: columns id, system, rater, category, significance, count.

    Columns may be in any order and others are ignored; without a column ``system``
    every case has one candidate. Whoever has one row for a candidate judged it: its
    categories without a row count 0, and a candidate without any error has a row with
    the count 0. A candidate for which somebody has no row was not judged by them.

    Parameters
    ----------
    path
        One row per count: CSV, TSV, JSON Lines or Parquet. A category is an id or a
        letter of ``labels/errors.yaml``.

    Returns
    -------
    ErrorTable
        Sorted by case id and system, raters by name.

    Raises
    ------
    DataError
        A column is missing, a category or significance is unknown, a count is no whole
        number, an id or rater is empty, or one has two counts of the same.
    """
    table = open_table(path, other=".csv")
    named = find_columns(table, _COLUMNS, _OPTIONAL, "Error counts")
    known = read_errors(bundled() / "labels")
    rows: dict[tuple[tuple[str, str], str, str, str], _ErrorRow] = {}
    repeated = 0
    for row in table.read(named.values()):
        one = _read_row(row, named, known)
        same = (one.key, one.rater, one.category, one.significance)
        before = rows.setdefault(same, one)
        if before.errors != one.errors:
            raise DataError(
                f"{before.where} and {one.where}: rater {quoted(one.rater)} has two "
                f"counts of {one.category}, {one.significance}, for one candidate of "
                f"case {quoted(one.key[0])}. Keep one."
            )
        repeated += before is not one
    if not rows:
        raise DataError(f"{path.name}: no row has a count. Give at least one.")
    return _tabulate(list(rows.values()), known.ids, repeated)


def _read_row(
    row: SourceRow, named: Mapping[str, str], known: ErrorCategories
) -> _ErrorRow:
    given = {name: row.text(column) for name, column in named.items()}
    for name in ("id", "rater"):
        if not given[name]:
            raise DataError(f"{row.where}: column {name} is empty. Fill it in.")
    spelled = {one.letter: one.id for one in known.categories}
    category = given["category"].casefold()
    category = spelled.get(category, category)
    if category not in known.ids:
        # Not what it holds, which may be a clinical text.
        raise DataError(
            f"{row.where}: there is no such category. Name one of "
            f"{', '.join(known.ids)}, or its letter."
        )
    significance = given["significance"].casefold()
    if significance not in SIGNIFICANCES:
        raise DataError(
            f"{row.where}: the significance is neither {' nor '.join(SIGNIFICANCES)}. "
            "Correct it."
        )
    return _ErrorRow(
        key=(given["id"], given.get("system", "")),
        rater=given["rater"],
        category=category,
        significance=significance,
        where=row.where,
        errors=_whole(given["count"], row.where),
    )


_DIGITS: Final = 6


def _whole(text: str, where: str) -> int:
    """Return a count; as 2 or as 2.0, which a spreadsheet writes."""
    whole = text.removesuffix(".0")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= _DIGITS):
        raise DataError(
            f"{where}: the count is not a whole number from 0 on, of {_DIGITS} digits "
            "at most. Correct it, and give 0 where there is no such error."
        )
    return int(whole)


def _tabulate(
    rows: Sequence[_ErrorRow], categories: tuple[str, ...], repeated: int
) -> ErrorTable:
    keys = sorted({one.key for one in rows})
    raters = sorted({one.rater for one in rows})
    places = {key: place for place, key in enumerate(keys)}
    counts = np.full((len(keys), len(raters), len(categories), 2), np.nan)
    for one in rows:
        counts[places[one.key], raters.index(one.rater)] = 0
    for one in rows:
        counts[
            places[one.key],
            raters.index(one.rater),
            categories.index(one.category),
            SIGNIFICANCES.index(one.significance),
        ] = one.errors
    return ErrorTable(
        keys=tuple(keys),
        raters=tuple(raters),
        categories=categories,
        counts=counts,
        repeated=repeated,
    )


def read_judge_counts(path: Path) -> ErrorTable:
    """Return a judge's counts from the ``counts.csv`` that ``ranloop judge`` writes.

    Parameters
    ----------
    path
        Columns ``id``, ``system`` and one such as ``significant.omission`` for each
        significance and category. A row of empty cells was not answered; one whose
        insignificant errors alone are empty says nothing of these. A judge that gives
        none in any row does not weigh errors.

    Returns
    -------
    ErrorTable
        Of one rater, named as the file.

    Raises
    ------
    DataError
        There is no column of counts, a count is no whole number, a row has some counts
        and lacks others, or a candidate has two rows.
    """
    table = open_table(path, other=".csv")
    named = find_columns(table, ("id", "system"), _OPTIONAL, "Counts of a judge")
    known = read_errors(bundled() / "labels")
    columns = _count_columns(table, known)
    categories = tuple(
        one for one in known.ids if any(category == one for _, category in columns)
    )
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    for row in table.read([*named.values(), *columns.values()]):
        given = {name: row.text(column) for name, column in named.items()}
        key = (given["id"], given.get("system", ""))
        if not key[0]:
            raise DataError(f"{row.where}: column id is empty. Fill it in.")
        if key in found:
            raise DataError(
                f"{row.where}: case {quoted(key[0])} has two rows for one system. Keep "
                "one of them."
            )
        found[key] = _judged_row(row, columns, categories)
    if not found:
        raise DataError(f"{path.name}: there is no row of counts. Give at least one.")
    keys = tuple(sorted(found))
    counts = np.stack([found[key] for key in keys])[:, None]
    weighed = bool((~np.isnan(counts[..., 1])).any())
    if not weighed:
        counts[..., 1] = 0 * counts[..., 0]
    return ErrorTable(
        keys=keys,
        raters=(path.name,),
        categories=categories,
        counts=counts,
        signature="" if weighed else "significance:none",
    )


def _count_columns(
    table: SourceTable, known: ErrorCategories
) -> dict[tuple[str, str], str]:
    """Return the column of each significance and category."""
    found = {}
    for column in table.header:
        significance, _, category = column.strip().casefold().partition(".")
        if significance in SIGNIFICANCES and category in known.ids:
            found[significance, category] = column
    if not any(significance == SIGNIFICANCES[0] for significance, _ in found):
        raise DataError(
            f"{table.name}: no column of counts such as significant.{known.ids[0]}. "
            "Give the counts.csv that `ranloop judge` writes."
        )
    return found


def _judged_row(
    row: SourceRow,
    columns: Mapping[tuple[str, str], str],
    categories: tuple[str, ...],
) -> NDArray[np.float64]:
    """Return one pair's counts, ``(n_categories, 2)``; all NaN where unanswered."""
    given = {cell: row.text(column) for cell, column in columns.items()}
    counts = np.zeros((len(categories), 2))
    by_weight = [
        [text for (name, _), text in given.items() if name == significance]
        for significance in SIGNIFICANCES
    ]
    if not any(given.values()):
        return np.full_like(counts, np.nan)
    for significance, texts in zip(SIGNIFICANCES, by_weight, strict=True):
        if not all(texts) and (any(texts) or significance == SIGNIFICANCES[0]):
            raise DataError(
                f"{row.where}: some counts of {significance} errors are empty. Fill "
                "them in, or leave the whole row empty where the judge gave no answer."
            )
    for (significance, category), text in given.items():
        place = categories.index(category), SIGNIFICANCES.index(significance)
        counts[place] = _whole(text, row.where) if text else np.nan
    if not any(by_weight[1]):
        counts[:, 1] = np.nan
    return counts

"""Agreement within strata: modality, anatomy, or any other column about the cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError
from loop.core.safe_text import quoted
from loop.labels.importing.table_files import open_table
from loop.stats.correlation import correlate, is_shown, kendall_p
from loop.stats.intervals import Estimate

LEAST_UNITS: Final = 10
"""Cases or patients of a stratum below which nothing is estimated."""

_IDS: Final = ("id", "case_id")
_MOST: Final = 50
"""Strata of one column: a column with more holds names of cases or texts."""

_LONGEST: Final = 60
"""Characters of the name of a stratum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """What a file says about cases, column by column."""

    names: tuple[str, ...]
    """Of the columns, for example ``("modality", "anatomy")``."""

    values: tuple[tuple[str, ...], ...]
    """One tuple a case, in the order asked for; empty text where nothing is said."""

    source: str
    """Name of the file."""


def read_strata(path: Path, ids: Sequence[str]) -> Strata:
    """Return the strata of cases: columns ``id`` and one for each way to divide them.

    Parameters
    ----------
    path
        CSV, TSV, JSON Lines or Parquet with a row for each case.
    ids
        The cases that are wanted; rows of others are left out.

    Raises
    ------
    DataError
        There is no column ``id`` or no other one, two rows of a case differ, no row
        belongs to a wanted case, or a column has more than 50 values or a value of
        more than 60 characters.
    """
    table = open_table(path, other=".csv")
    keys = [name for name in table.header if name.strip().casefold() in _IDS]
    # A spreadsheet may leave a column without a name at the end.
    names = [name for name in table.header if name not in keys and name.strip()]
    if len(keys) != 1 or not names:
        raise DataError(
            f"{table.name}: strata need one column id, and another column for each way "
            "to divide the cases, such as modality."
        )
    wanted = set(ids)
    found: dict[str, tuple[str, ...]] = {}
    for row in table.read(table.header):
        case = row.text(keys[0])
        if case not in wanted:
            continue
        said = tuple(row.text(name) for name in names)
        if found.setdefault(case, said) != said:
            raise DataError(
                f"{row.where}: case {quoted(case)} has another row with other strata. "
                "Keep one of the two."
            )
    if not found:
        raise DataError(
            f"{table.name}: no row belongs to a case that is measured here. Use the "
            "ids of the cohort, or of the scores."
        )
    for place, name in enumerate(names):
        values = {said[place] for said in found.values()}
        if len(values) > _MOST or max(map(len, values)) > _LONGEST:
            raise DataError(
                f"{table.name}: column {quoted(name)} has more than {_MOST} different "
                f"values, or one of more than {_LONGEST} characters. Leave out columns "
                "that do not name strata."
            )
    nothing = ("",) * len(names)
    return Strata(
        names=tuple(name.strip() for name in names),
        values=tuple(found.get(case, nothing) for case in ids),
        source=table.name,
    )


class StratumAgreement(NamedTuple):
    """Agreement of scores with ratings in one stratum."""

    by: str
    """Column, for example ``"modality"``."""

    stratum: str
    """Empty for the cases about which the file says nothing."""

    tau_b: Estimate
    """None, with a note, below 10 units."""

    shown: bool
    """Whether it is shown to differ from 0; see `loop.stats.correlation.is_shown`."""

    n: int
    """Candidates with a score and a rating."""

    n_units: int


def agree_by_stratum(
    scores: NDArray[np.float64],
    ratings: NDArray[np.float64],
    strata: Strata,
    *,
    units: NDArray[Any],
    **resampling: Any,
) -> tuple[StratumAgreement, ...]:
    """Return the agreement within each stratum, column by column, by name.

    Parameters
    ----------
    scores, ratings
        Of the same candidates, higher better in both, NaN where missing; shape
        ``(n_candidates,)``.
    strata
        Of the same candidates.
    units
        Unit of each candidate; whole units are resampled.
    **resampling
        ``resamples`` (2,000), ``seed`` (0), ``confidence`` (0.95).

    Returns
    -------
    tuple[StratumAgreement, ...]
        A stratum of fewer than 10 units is not estimable: it has its n and no other
        number. Nothing is adjusted for the number of strata.
    """
    both = ~np.isnan(scores) & ~np.isnan(ratings)
    found = []
    for place, by in enumerate(strata.names):
        column = np.array([said[place] for said in strata.values])
        for name in sorted(set(column.tolist())):
            chosen = (column == name) & both
            n_units = len(np.unique(units[chosen]))
            tau_b, shown = _nothing(n_units), False
            if n_units >= LEAST_UNITS:
                x, y = scores[chosen], ratings[chosen]
                within = correlate(x, y, units[chosen], **resampling)
                tau_b, shown = within.tau_b, is_shown(within, kendall_p(x, y))
            found.append(
                StratumAgreement(by, name, tau_b, shown, int(chosen.sum()), n_units)
            )
    return tuple(found)


def _nothing(n_units: int) -> Estimate:
    return Estimate(
        None, None, None, f"not estimable: {n_units} units, {LEAST_UNITS} are needed"
    )

"""Mappings, lists and pandas tables as tables of cases."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from loop.core.safe_text import quoted
from loop.labels.importing.source import cell_text, refuse_repeats
from loop.labels.importing.table_files import SourceRow, SourceTable
from loop.score.joining import CandidateTable
from loop.score.reading.options import ReadingOptions
from loop.score.reading.sides import find_ids

Texts: TypeAlias = (
    "Mapping[str, str | None] | Sequence[str | None] | pd.Series[Any] | pd.DataFrame"
)
"""Id to text; or a list, a Series, or a DataFrame of texts or labels."""

Candidates: TypeAlias = "Texts | Mapping[str, Texts]"
"""Of one system, or by the name of the system."""

Patients: TypeAlias = "Mapping[str, str] | Sequence[str] | pd.Series[Any]"
"""Id to patient, or patients in the order of references without ids."""

CANDIDATE: Final = "candidate"
"""Name of a system that was given none."""

_ID, _TEXT = "case_id", "text"


class TablesInMemory(NamedTuple):
    """What was given in memory, as tables."""

    reference: SourceTable
    parts: tuple[CandidateTable, ...]
    patients: Mapping[str, str] | None
    notes: tuple[str, ...]


class _Given(NamedTuple):
    """One thing that was given, as a table with a column of ids."""

    name: str
    table: SourceTable
    numbered: bool
    """Whether it came without ids, so that they are its places."""

    length: int


def take_tables(
    references: Texts,
    candidates: Candidates,
    patients: Patients | None,
    options: ReadingOptions,
) -> TablesInMemory:
    """Return what `loop.score.joining.join_texts` is given as tables.

    Raises
    ------
    ValueError
        A side is neither of the things it may be, something with ids is given together
        with something without, or what has none is not equally long.
    """
    named = _systems(candidates)
    given = [
        _take(references, "references", options),
        *(_take(each, name or CANDIDATE, options) for name, each in named.items()),
    ]
    if isinstance(patients, pd.DataFrame):
        raise ValueError("patients: expected a mapping, a list or a Series of patients")
    owners = None if patients is None else _take(patients, "patients", options)
    every = [*given, owners] if owners is not None else given
    numbered = _are_numbered(every)
    return TablesInMemory(
        reference=given[0].table,
        parts=tuple(
            CandidateTable(each.table, name, CANDIDATE)
            for each, name in zip(given[1:], named, strict=True)
        ),
        patients=None if owners is None else _by_id(owners),
        notes=(_BY_POSITION,) if numbered else (),
    )


_BY_POSITION: Final = (
    "References and candidates were given without ids and are joined by position: the "
    "id of a case is its place, from 0."
)


def _systems(candidates: Candidates) -> Mapping[str, Texts]:
    """Return what each system is given as; a single one without a name is ``""``."""
    if not isinstance(candidates, Mapping) or all(map(_is_text, candidates.values())):
        return {"": cast("Texts", candidates)}
    named = {str(name).strip(): each for name, each in candidates.items()}
    if "" in named or len(named) < len(candidates):
        raise ValueError(
            f"every system needs a name of its own, got "
            f"{', '.join(map(quoted, candidates))}"
        )
    return cast("Mapping[str, Texts]", named)


def _is_text(value: object) -> bool:
    return value is None or value is pd.NA or isinstance(value, (str, float))


def _take(given: object, name: str, options: ReadingOptions) -> _Given:
    """Return one side with its ids."""
    if isinstance(given, pd.DataFrame):
        return _take_frame(given, name, options)
    if isinstance(given, pd.Series):
        ids = None if _is_counter(given.index) else list(given.index)
        return _take_texts(name, ids, _plain(given.to_frame())[0])
    if isinstance(given, Mapping):
        return _take_texts(name, list(given), list(given.values()))
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return _take_texts(name, None, given.tolist())
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return _take_texts(name, None, given)
    raise ValueError(
        f"{name}: expected a mapping of id to text, a list, a Series or a DataFrame, "
        f"got {type(given).__name__}"
    )


def _take_texts(
    name: str, ids: Sequence[object] | None, texts: Sequence[object]
) -> _Given:
    names = _names(ids, len(texts), name)
    given = (None if text is pd.NA else text for text in texts)
    rows = [{_ID: i, _TEXT: text} for i, text in zip(names, given, strict=True)]
    return _as_given(name, (_ID, _TEXT), rows, numbered=ids is None)


def _take_frame(frame: pd.DataFrame, name: str, options: ReadingOptions) -> _Given:
    """Return a DataFrame; its id column goes before its index."""
    header = tuple(map(str, frame.columns))
    refuse_repeats(header, name)
    columns = _plain(frame)
    found = find_ids(header, options)
    numbered = not found and _is_counter(frame.index)
    if not found:
        ids = None if numbered else list(frame.index)
        header = (_ID, *header)
        columns = [_names(ids, len(frame), name), *columns]
    rows = [dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)]
    return _as_given(name, header, rows, numbered=numbered)


def _as_given(
    name: str,
    header: tuple[str, ...],
    rows: Sequence[Mapping[str, object]],
    *,
    numbered: bool,
) -> _Given:
    def read(columns: Collection[str]) -> Iterator[SourceRow]:
        for place, cells in enumerate(rows):
            yield SourceRow(f"{name}, item {place}", cells)

    table = SourceTable(name=name, header=header, read=read)
    return _Given(name, table, numbered, len(rows))


def _names(ids: Sequence[object] | None, length: int, name: str) -> list[str]:
    """Return ids as text; places are padded, so that they sort as they are."""
    if ids is not None:
        plain = (e.item() if isinstance(e, np.generic) else e for e in ids)
        return [cell_text(each, _ID, name) for each in plain]
    width = len(str(max(0, length - 1)))
    return [str(place).zfill(width) for place in range(length)]


def _plain(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the columns as Python values, None where pandas has none."""
    return [
        [None if gone else cell for cell, gone in zip(column, blank, strict=True)]
        for column, blank in (
            (frame.iloc[:, place].tolist(), frame.iloc[:, place].isna().tolist())
            for place in range(frame.shape[1])
        )
    ]


def _is_counter(index: pd.Index) -> bool:
    """Whether rows are merely numbered, as pandas does unasked."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _are_numbered(every: Sequence[_Given]) -> bool:
    """Return whether all came without ids; refuse what cannot be joined so."""
    bare = [each for each in every if each.numbered]
    if not bare:
        return False
    if len(bare) < len(every):
        other = next(each for each in every if not each.numbered)
        raise ValueError(
            f"{quoted(bare[0].name)} has no ids and {quoted(other.name)} has. Give "
            "both ids, as the keys of a mapping, an index that is more than a count, "
            "or a column id"
        )
    if len({each.length for each in bare}) > 1:
        said = ", ".join(f"{each.length} {quoted(each.name)}" for each in bare)
        raise ValueError(
            f"without ids all sides must be equally long, got {said}. Give ids: a row "
            "that is lost would shift all others"
        )
    return True


def _by_id(given: _Given) -> dict[str, str]:
    """Return the patient of each id; refuse an id of two patients."""
    found: dict[str, str] = {}
    for row in given.table.read(()):
        case_id = str(row.cells[_ID]).strip()
        patient = cell_text(row.cells[_TEXT], given.name, row.where).strip()
        if found.setdefault(case_id, patient) != patient:
            raise ValueError(
                f"{row.where}: id {quoted(case_id)} is given a second patient. Give "
                "every case one"
            )
    return found

"""References and candidates of all systems, joined by id and never by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loop.core.errors import DataError
from loop.labels.taxonomy import Taxonomy, fold_name
from loop.score.reading.assembly import Sides, assemble, quote_ids
from loop.score.reading.entries import SideRow, read_entries, unite
from loop.score.reading.options import DEFAULTS, ReadingOptions, read_language
from loop.score.reading.roles import (
    SideColumns,
    SideKind,
    agree_on_ids,
    find_ids,
    find_side,
    require_named,
)
from loop.score.reading.systems import CandidateTable, group_systems
from loop.score.reading.tables import SourceTable, open_table
from loop.score.records import Joined

if TYPE_CHECKING:
    from loop.score.reading.memory import Candidates, Patients, Texts


class CandidateFile(NamedTuple):
    """One file of candidates."""

    path: Path
    system: str = ""
    """Name of the system; empty: its system column, else the stem of its name."""


def join_files(
    references: Path,
    candidates: Sequence[CandidateFile],
    taxonomy: Taxonomy,
    *,
    options: ReadingOptions = DEFAULTS,
) -> Joined:
    """Return the candidates of files joined with the references of another.

    Any file may be CSV, TSV, JSON Lines or Parquet, and hold texts or labels. Systems
    are in the order of their files, those of one file by name; files that are given the
    same name, or name the same system in a column, are parts of one system.

    Raises
    ------
    DataError
        A file is missing or malformed, one id has two contents, a system shares no id
        with the references, or two files would be one system unasked.
    UnknownLabelError
        A label column is misspelt.
    """
    names = _tell_apart((references, *(each.path for each in candidates)))
    reference = open_table(references, options.encoding, names[references])
    parts = [
        CandidateTable(
            open_table(path, options.encoding, names[path]), system.strip(), path.stem
        )
        for path, system in candidates
    ]
    return _join_tables(reference, parts, taxonomy, options)


def join_pairs(
    path: Path, taxonomy: Taxonomy, *, options: ReadingOptions = DEFAULTS
) -> Joined:
    """Return the pairs of one file: id, reference, candidate and maybe system.

    A case has one reference, which stands again with each of its candidates.

    Raises
    ------
    DataError
        The file is malformed, lacks one of the two texts, or gives one id two
        references, or two candidates of one system.
    """
    if options.text_column is not None:
        raise DataError(
            f"--text-column {options.text_column[:60]!r}: a file of pairs has two "
            "texts. Name its columns reference and candidate."
        )
    table = open_table(path, options.encoding)
    require_named(table, [table], options)
    reference = find_side(table, SideKind.REFERENCE, taxonomy, options)
    candidate = find_side(table, SideKind.CANDIDATE, taxonomy, options)
    _require_two_texts(table, reference, candidate)
    joined = _assemble(
        read_entries(table, reference, taxonomy, options),
        [
            (
                CandidateTable(table, "", path.stem),
                read_entries(table, candidate, taxonomy, options),
            )
        ],
        (*options.told(), *reference.notes, *candidate.notes),
        taxonomy,
        options,
    )
    return replace(joined, repeated_references=(), files=_files([table]))


def join_texts(
    references: Texts,
    candidates: Candidates,
    taxonomy: Taxonomy,
    *,
    patients: Patients | None = None,
    options: ReadingOptions = DEFAULTS,
) -> Joined:
    """Return texts or label tables in memory, joined by id.

    Ids are the keys of a mapping, the index of a Series, or the id column, else the
    index, of a DataFrame. Lists, and tables that are merely numbered, have no ids: they
    are joined by position, only with their like and only if equally long, and a note
    says so.

    Parameters
    ----------
    references
        Id to text; or a list, a Series, or a DataFrame of texts or labels.
    candidates
        The same, of one system, which is then called ``"candidate"`` unless a DataFrame
        names its systems in a column; or system name to the same.
    patients
        Id to patient, or a list or Series of patients; None: as a DataFrame of
        references says.

    Raises
    ------
    DataError
        As `join_files`.
    ValueError
        A side is no such thing, lists are not equally long, or a case has two patients.

    Examples
    --------
    >>> from loop.core.paths import bundled
    >>> from loop.labels.taxonomy import read_taxonomy
    >>> joined = join_texts(
    ...     {"a": "No effusion.", "b": "Effusion."},
    ...     {"model": {"b": "Small effusion.", "c": "Normal."}},
    ...     read_taxonomy(bundled() / "labels"),
    ... )
    >>> joined.systems[0].texts, joined.coverage[0].missing, joined.coverage[0].extra
    ((None, 'Small effusion.'), ('a',), ('c',))
    """
    # pandas is heavy, and files need none of it.
    from loop.score.reading.memory import take_tables

    taken = take_tables(references, candidates, patients, options)
    joined = _join_tables(
        taken.reference, taken.parts, taxonomy, options, taken.patients
    )
    return replace(joined, notes=(*taken.notes, *joined.notes))


def _join_tables(
    reference: SourceTable,
    parts: Sequence[CandidateTable],
    taxonomy: Taxonomy,
    options: ReadingOptions,
    patients: Mapping[str, str] | None = None,
) -> Joined:
    """Return the systems of `parts` joined with `reference`."""
    others = [part.table for part in parts]
    if not parts:
        raise DataError("no candidates were given. Give at least one file of them.")
    require_named(reference, others, options)
    given, tables = options, [reference, *others]
    options = agree_on_ids(tables, given)
    notes = [*given.told(), *_say_ids(tables, given, options.id_column)]
    columns = find_side(reference, SideKind.REFERENCE, taxonomy, options)
    notes += columns.notes
    own = read_entries(reference, columns, taxonomy, options)
    if patients is not None:
        own = _with_patients(own, patients)
    read = []
    for part in parts:
        side = find_side(part.table, SideKind.CANDIDATE, taxonomy, options)
        notes += side.notes
        read.append((part, read_entries(part.table, side, taxonomy, options)))
    joined = _assemble(own, read, notes, taxonomy, options)
    return replace(joined, files=_files([reference, *others]))


def _with_patients(
    entries: Sequence[SideRow], patients: Mapping[str, str]
) -> list[SideRow]:
    """Return the references with their patients; refuse those of other cases."""
    own = [each.case_id for each in entries]
    if not patients.keys() & set(own):
        raise DataError(
            f"no id of the patients is among the references: they have "
            f"{quote_ids(list(patients))}; the references have {quote_ids(own)}. Give "
            "both the same ids."
        )
    return [each.with_patient(patients.get(each.case_id, "")) for each in entries]


def _assemble(
    references: Sequence[SideRow],
    candidates: Sequence[tuple[CandidateTable, Sequence[SideRow]]],
    notes: Sequence[str],
    taxonomy: Taxonomy,
    options: ReadingOptions,
) -> Joined:
    """Return the rows of both sides joined, each case and system once."""
    systems = group_systems(candidates)
    notes = [*notes, *_say_parts(candidates)]
    sides = Sides(
        reference=unite(references, options.duplicates),
        systems={n: unite(rows, options.duplicates) for n, rows in systems.items()},
        n_labels=len(taxonomy.ids),
        notes=tuple(notes),
    )
    return assemble(sides, language=read_language(options.language, "language"))


def _say_ids(
    tables: Sequence[SourceTable], options: ReadingOptions, agreed: str | None
) -> list[str]:
    """Say by which ids files are joined where some would be joined by others."""
    if options.id_column is not None or agreed is None:
        return []
    own = {table.name: find_ids(table.header, options) for table in tables}
    others = [
        f"{name} ({used!r})"
        for name, used in own.items()
        if fold_name(used) != fold_name(agreed)
    ]
    if not others:
        return []
    return [
        f"Joined by {agreed!r}, the one id that every file has; not used: the ids of "
        f"{', '.join(others)}. If {agreed!r} only counts rows, name --id-column."
    ]


def _say_parts(
    candidates: Sequence[tuple[CandidateTable, Sequence[SideRow]]],
) -> list[str]:
    """Say which systems are made of the rows of several files."""
    rows: dict[str, Counter[str]] = {}
    for part, entries in candidates:
        for entry in entries:
            system = part.system or entry.system or part.fallback
            rows.setdefault(system, Counter())[part.table.name] += 1
    return [
        f"{system} is made of several files: "
        + ", ".join(f"{name} ({n:,} rows)" for name, n in files.items())
        for system, files in rows.items()
        if len(files) > 1
    ]


def _require_two_texts(
    table: SourceTable, reference: SideColumns, candidate: SideColumns
) -> None:
    """Refuse pairs that lack one side, or have one column for both."""
    texts = (reference.texts, candidate.texts)
    if not all(texts) or set(texts[0]) & set(texts[1]):
        raise DataError(
            f"{table.name}: a file of pairs has a reference and a candidate in each "
            "row. Name the columns so, or give the references as a file of their own."
        )


def _files(tables: Sequence[SourceTable]) -> tuple[tuple[str, str], ...]:
    return tuple((table.name, table.sha256) for table in tables if table.sha256)


def _tell_apart(paths: Sequence[Path]) -> dict[Path, str]:
    """Return what each file is called: its whole path where names are equal."""
    files = set(paths)
    stands = Counter(path.name for path in files)
    return {p: p.name if stands[p.name] == 1 else str(p) for p in files}

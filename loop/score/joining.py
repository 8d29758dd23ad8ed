"""References and candidates of all systems, joined by id and never by position."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import ValueCode
from loop.core.safe_text import quoted
from loop.labels.importing.source import MAX_ID
from loop.labels.importing.table_files import SourceTable, open_table
from loop.labels.language import UNKNOWN, guess_language, has_words
from loop.labels.taxonomy import Taxonomy, fold_name
from loop.score.reading.options import DEFAULTS, ReadingOptions, read_language
from loop.score.reading.sides import (
    Entries,
    SideColumns,
    SideKind,
    SideRow,
    agree_on_ids,
    find_ids,
    find_side,
    read_entries,
    require_named,
    unite,
)
from loop.score.records import Codes, Coverage, Joined, PairSide

if TYPE_CHECKING:
    from loop.score.reading.memory import Candidates, Patients, Texts


_Cell = TypeVar("_Cell")

REFERENCE: Final = "reference"
_SHOWN: Final = 3
"""Ids of each kind that a message names."""


class Sides(NamedTuple):
    """What was read of both sides."""

    reference: Entries
    systems: Mapping[str, Entries]
    n_labels: int
    notes: tuple[str, ...] = ()
    """What was noticed while reading."""


def assemble(sides: Sides, *, language: str = "") -> Joined:
    """Return candidates and references joined by id, cases sorted by id.

    Parameters
    ----------
    sides
        What was read; systems stay in the order given.
    language
        ISO 639-1 code of every case; empty: as given, else as the text itself says.

    Raises
    ------
    DataError
        No reference says anything, a system shares no id with the references, or one
        side holds texts and labels.
    """
    references = sides.reference.by_id
    silent = tuple(sorted(i for i, entry in references.items() if _is_silent(entry)))
    case_ids = tuple(sorted(references.keys() - set(silent)))
    if not case_ids:
        raise DataError(
            "no reference holds a word, so there is nothing to compare with. Check "
            "that this is the file of references and that its texts are there."
        )
    for system, entries in sides.systems.items():
        _require_common(system, entries, sides.reference)
    named = tuple(references[case_id].content.patient for case_id in case_ids)
    patients, lacking = _patients(named)
    contexts = tuple(references[case_id].content.context for case_id in case_ids)
    return Joined(
        case_ids=case_ids,
        reference=_column(REFERENCE, case_ids, sides.reference, sides.n_labels),
        systems=tuple(
            _column(system, case_ids, entries, sides.n_labels)
            for system, entries in sides.systems.items()
        ),
        coverage=tuple(
            _coverage(system, case_ids, entries, references)
            for system, entries in sides.systems.items()
        ),
        empty_references=silent,
        patients=patients,
        named_patients=named if any(named) else (),
        contexts=contexts if any(contexts) else (),
        languages=tuple(language or _language(case_id, sides) for case_id in case_ids),
        repeated_references=sides.reference.repeated,
        notes=tuple(dict.fromkeys((*sides.notes, *lacking, *_notes(sides)))),
    )


def fold_id(case_id: str) -> str:
    """Return an id without case, leading zeros and a trailing ``.0``.

    Only to say that ids look alike: they are never joined so.

    Examples
    --------
    >>> fold_id("P007") == fold_id("p7"), fold_id("123.0") == fold_id("00123")
    (True, True)
    """
    plain = unicodedata.normalize("NFKC", case_id).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"(?<=\d)\.0+$", "", plain))


def quote_ids(ids: Sequence[str]) -> str:
    """Return the first few of `ids` in words, for messages."""
    shown = ", ".join(map(quoted, ids[:_SHOWN]))
    return f"{shown} and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else shown


def _is_silent(entry: SideRow) -> bool:
    return entry.content.text is not None and not has_words(entry.content.text)


def _column(
    name: str, case_ids: Sequence[str], entries: Entries, n_labels: int
) -> PairSide:
    """Return one side in the order of `case_ids`."""
    _require_one_kind(name, entries)
    found = [entries.by_id.get(case_id) for case_id in case_ids]
    if next(iter(entries.by_id.values())).content.codes is None:
        texts = tuple(None if entry is None else entry.content.text for entry in found)
        return PairSide(name=name, texts=texts)
    return PairSide(name=name, texts=None, codes=_codes(found, n_labels))


def _codes(found: Sequence[SideRow | None], n_labels: int) -> Codes:
    codes = np.full((len(found), n_labels), ValueCode.MISSING, dtype=np.int8)
    for row, entry in enumerate(found):
        if entry is not None and entry.content.codes is not None:
            codes[row] = entry.content.codes
    return codes


def _require_one_kind(name: str, entries: Entries) -> None:
    """Refuse a side that is partly texts and partly labels."""
    kinds: dict[bool, str] = {}
    for entry in entries.by_id.values():
        kinds.setdefault(entry.content.codes is None, entry.where)
    if len(kinds) > 1:
        raise DataError(
            f"system {name!r} is texts at {kinds[True]} and labels at {kinds[False]}. "
            "Give one of the two, or two names."
        )


def _require_common(system: str, entries: Entries, reference: Entries) -> None:
    """Refuse a system of which no id is among the references."""
    if entries.by_id.keys() & reference.by_id.keys():
        return
    near = _look_alike(list(reference.by_id), list(entries.by_id))
    hint = (
        f"{len(near)} of them differ only in case, leading zeros or a trailing .0."
        if near
        else "Check that both name the same cases, and --id-column."
    )
    raise DataError(
        f"no id of {quoted(system)} is among the references: it has "
        f"{quote_ids(list(entries.by_id))}; they have "
        f"{quote_ids(list(reference.by_id))}. {hint} Give both sides the same ids."
    )


def _coverage(
    system: str,
    case_ids: Sequence[str],
    entries: Entries,
    references: Mapping[str, SideRow],
) -> Coverage:
    paired = [case_id for case_id in case_ids if case_id in entries.by_id]
    return Coverage(
        system=system,
        rows=entries.rows,
        paired=len(paired),
        missing=tuple(i for i in case_ids if i not in entries.by_id),
        extra=tuple(sorted(entries.by_id.keys() - references.keys())),
        repeated=entries.repeated,
        empty=tuple(i for i in paired if _is_silent(entries.by_id[i])),
    )


def _patients(
    found: tuple[str, ...],
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the patient of each case if all are known; else None, and a note."""
    known = sum(map(bool, found))
    if known == len(found):
        return found, ()
    if not known:
        return None, ()
    return None, (
        f"{len(found) - known:,} of {len(found):,} cases have no patient: intervals "
        "are over cases, as if all were of different patients.",
    )


def _language(case_id: str, sides: Sides) -> str:
    """Return the language of one case: as said of its reference, else as that looks.

    Where the reference is labels: as said of a system, else as its text looks.
    """
    everyone = (sides.reference, *sides.systems.values())
    contents = [
        entries.by_id[case_id].content
        for entries in everyone
        if case_id in entries.by_id
    ]
    own = sides.reference.by_id[case_id].content
    if own.text and not own.language:
        # What a system says of its texts decides nothing about the reference.
        return guess_language(own.text)
    said = next((each.language for each in contents if each.language), "")
    text = next((each.text for each in contents if each.text), "")
    return said or (guess_language(text) if text else UNKNOWN)


def _say_labels(sides: Sides) -> list[str]:
    """Say who gave labels where others gave texts."""
    everyone = [(REFERENCE, sides.reference), *sides.systems.items()]
    given = [
        name
        for name, entries in everyone
        if any(one.content.codes is not None for one in entries.by_id.values())
    ]
    if len(given) in (0, len(everyone)):
        return []
    return [
        f"Labels of {', '.join(given)} are as given, and not read by the extractor, as "
        "those of the others are."
    ]


def _notes(sides: Sides) -> list[str]:
    """Return what a reader should know of ids that appear twice or look alike."""
    notes = _say_labels(sides)
    # A list, as a system may be called "reference" too.
    for name, entries in [(REFERENCE, sides.reference), *sides.systems.items()]:
        if entries.conflicting:
            notes.append(
                f"{name}: {counted(len(entries.conflicting), 'id')} stood more than "
                f"once with different content ({quote_ids(entries.conflicting)}); one "
                "was chosen."
            )
    for name, entries in sides.systems.items():
        missing = sorted(sides.reference.by_id.keys() - entries.by_id.keys())
        extra = sorted(entries.by_id.keys() - sides.reference.by_id.keys())
        near = _look_alike(missing, extra)
        if near:
            notes.append(
                f"{name}: {counted(len(near), 'id')} not joined, like an id of the "
                "reference but for case, leading zeros or a trailing .0 "
                f"({quote_ids(near)}). Give both sides the same ids."
            )
    return notes


def _look_alike(references: Sequence[str], candidates: Sequence[str]) -> list[str]:
    """Return the `candidates` that are a reference after folding."""
    folded = {fold_id(case_id) for case_id in references}
    return [case_id for case_id in candidates if fold_id(case_id) in folded]


class CandidateTable(NamedTuple):
    """A table of candidates, and whose it is."""

    table: SourceTable
    system: str
    """Name that was given; empty: that of its system column, else `fallback`."""

    fallback: str


def group_systems(
    read: Iterable[tuple[CandidateTable, Sequence[SideRow]]],
) -> dict[str, list[SideRow]]:
    """Return the rows of each system, systems in the order of their tables.

    Those of one table are sorted by name, so that the order of rows changes nothing.

    Raises
    ------
    DataError
        A table that was given one name holds several systems, a table without a name
        is called like another system, one names in its column what another was named,
        or a name is too long or not printable.
    """
    groups: dict[str, list[SideRow]] = {}
    owners: dict[str, CandidateTable] = {}
    for part, entries in read:
        names = sorted({entry.system for entry in entries})
        _require_single(part, names)
        for name in names:
            system = part.system or name or part.fallback
            _require_readable(system, part)
            mine = [entry for entry in entries if entry.system == name]
            unasked = not part.system and not name
            other = owners.setdefault(system, part)
            # One file may not add rows to a system that was named for another.
            mixed = bool(other.system) != bool(part.system)
            if other is not part and (
                unasked or mixed or _is_unnamed(other, groups[system])
            ):
                raise DataError(
                    f"{other.table.name} and {part.table.name} would both be system "
                    f"{quoted(system)}. Give each a name of its own, as NAME=FILE, or "
                    "in its system column."
                )
            groups.setdefault(system, []).extend(mine)
    return groups


def _require_readable(system: str, part: CandidateTable) -> None:
    """Refuse a name that would spoil a line of a terminal or a document."""
    if len(system) > MAX_ID or not system.isprintable():
        raise DataError(
            f"{quoted(part.table.name)}: the name of its system is longer than "
            f"{MAX_ID} characters or holds a control character. Give it another name."
        )


def _is_unnamed(part: CandidateTable, entries: Sequence[SideRow]) -> bool:
    """Whether a system is called after its file only."""
    return not part.system and not entries[0].system


def _require_single(part: CandidateTable, names: Sequence[str]) -> None:
    if part.system and len(names) > 1:
        raise DataError(
            f"{part.table.name} was named {quoted(part.system)} and holds {len(names)} "
            f"systems ({', '.join(map(quoted, names[:3]))}). Give it "
            "without a name."
        )


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
            f"--text-column {quoted(options.text_column)}: a file of pairs has two "
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


def pick_cases(joined: Joined, case_ids: frozenset[str]) -> Joined:
    """Return `joined` with these cases only, in the order they stand in.

    Rows of a system that have no reference are left as they are counted.

    Raises
    ------
    ValueError
        One of them is not there.
    """
    kept = [at for at, case in enumerate(joined.case_ids) if case in case_ids]
    if len(kept) != len(case_ids):
        raise ValueError(f"{len(case_ids) - len(kept)} cases are not there")

    def pick(values: Sequence[_Cell]) -> tuple[_Cell, ...]:
        return tuple(values[at] for at in kept)

    def side(one: PairSide) -> PairSide:
        return replace(
            one,
            texts=None if one.texts is None else pick(one.texts),
            codes=None if one.codes is None else one.codes[kept],
        )

    return replace(
        joined,
        case_ids=pick(joined.case_ids),
        reference=side(joined.reference),
        systems=tuple(map(side, joined.systems)),
        coverage=tuple(_pick_coverage(one, case_ids) for one in joined.coverage),
        patients=None if joined.patients is None else pick(joined.patients),
        named_patients=pick(joined.named_patients) if joined.named_patients else (),
        languages=pick(joined.languages) if joined.languages else (),
        contexts=pick(joined.contexts) if joined.contexts else (),
    )


def _pick_coverage(one: Coverage, case_ids: frozenset[str]) -> Coverage:
    missing = tuple(case for case in one.missing if case in case_ids)
    return one._replace(
        paired=len(case_ids) - len(missing),
        missing=missing,
        repeated=tuple(case for case in one.repeated if case in case_ids),
        empty=tuple(case for case in one.empty if case in case_ids),
    )


def _say_ids(
    tables: Sequence[SourceTable], options: ReadingOptions, agreed: str | None
) -> list[str]:
    """Say by which ids files are joined where some would be joined by others."""
    if options.id_column is not None or agreed is None:
        return []
    own = {table.name: find_ids(table.header, options) for table in tables}
    others = [
        f"{name} ({quoted(used)})"
        for name, used in own.items()
        if fold_name(used) != fold_name(agreed)
    ]
    if not others:
        return []
    return [
        f"Joined by {quoted(agreed)}, the one id that every file has; not used: the "
        f"ids of {', '.join(others)}. If {quoted(agreed)} only counts rows, name "
        "--id-column."
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
        + ", ".join(f"{name} ({counted(n, 'row')})" for name, n in files.items())
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

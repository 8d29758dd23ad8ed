"""One side of a table: which column is what, and what every row says of its case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import ValueCode
from loop.core.safe_text import quoted
from loop.labels.importing.source import (
    MAX_GENERATED,
    MAX_ID,
    PAIR_ROLES,
    ROLES,
    cell_text,
    label_columns,
    name_columns,
    refuse_sentence,
)
from loop.labels.importing.table_files import (
    SourceRow,
    SourceTable,
)
from loop.labels.taxonomy import Taxonomy, fold_name
from loop.score.reading.options import LabelCells, ReadingOptions, read_language


class SideKind(StrEnum):
    """Which side of the pairs is looked for in a table."""

    REFERENCE = "reference"
    CANDIDATE = "candidate"


# Of several columns for one role, the first listed here is used. What may be a mere
# count of rows comes last: beside a study_id, it is one.
_COUNTS = ("sample_id", "id", "编号", "序号")
_IDS = (
    *(name for name in ROLES["case_id"] if name not in _COUNTS),
    *("image_id", "dicom_id", *_COUNTS),
)
_SYSTEMS = PAIR_ROLES["system"]
_TEXTS: Mapping[SideKind, tuple[str, ...]] = {
    kind: (*PAIR_ROLES[kind.value], *ROLES["text"]) for kind in SideKind
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumns:
    """The columns of one side, as they are called in its table."""

    case_id: str
    texts: tuple[str, ...] = ()
    """Columns that together are the text; empty where the table holds labels."""

    system: str = ""
    patient: str = ""
    language: str = ""
    context: str = ""
    """Of what is known of the patient beside the texts, for judges that read it."""

    labels: Mapping[str, str]
    """Label id to column, in taxonomy order; empty where the table holds texts."""

    notes: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        """All of them, each once."""
        single = (self.case_id, self.system, self.patient, self.language, self.context)
        every = (*single, *self.texts, *self.labels.values())
        return tuple(dict.fromkeys(name for name in every if name))


def find_side(
    table: SourceTable, kind: SideKind, taxonomy: Taxonomy, options: ReadingOptions
) -> SideColumns:
    """Return the columns of one side of `table`.

    A table with a text is read for its text, whatever labels stand beside it; one
    without a text is read for its labels.

    Raises
    ------
    DataError
        There is no column of ids, or neither text nor label; or two columns are the
        same label.
    UnknownLabelError
        A column is almost, but not quite, a label of the taxonomy.
    """
    finder = _Finder(table)
    case_id = finder.find(_IDS, options.id_column)
    if not case_id:
        raise DataError(
            f"{table.name}: no column with case ids (columns: "
            f"{name_columns(table.header)}). Say which it is with --id-column, or name "
            "it id or study_id. Rows are joined by id, never by position."
        )
    others = _find_others(finder, kind, options)
    # No text or label is in a column that is something else, used here or not.
    known = (_SYSTEMS, ROLES["patient"], ROLES["exam"])
    finder.taken.update({case_id, *others.values()})
    finder.taken.update(finder.find(aliases, None) for aliases in known)
    texts = _find_texts(finder, kind, options)
    labels = _find_labels(finder, texts, kind, taxonomy)
    return SideColumns(
        case_id=case_id,
        texts=texts,
        labels=labels,
        notes=tuple(finder.notes),
        **others,
    )


def find_ids(header: Sequence[str], options: ReadingOptions) -> str:
    """Return the column of `header` that holds the ids, or ``""``."""
    wanted = (*([options.id_column] if options.id_column else []), *_IDS)
    return next(filter(None, (_match(header, name) for name in wanted)), "")


def agree_on_ids(
    tables: Sequence[SourceTable], options: ReadingOptions
) -> ReadingOptions:
    """Return `options` with the id column that all tables have, if one was not named.

    Tables may have several kinds of ids, and only one kind in common.
    """
    if options.id_column is not None:
        return options
    shared = (
        name for name in _IDS if all(_match(table.header, name) for table in tables)
    )
    return replace(options, id_column=next(shared, None))


def require_named(
    reference: SourceTable, candidates: Sequence[SourceTable], options: ReadingOptions
) -> None:
    """Refuse a named column that no table has which it is for.

    Raises
    ------
    DataError
        There is one: a typing error would let another column be used.
    """
    every = [reference, *candidates]
    named = {
        "--id-column": (options.id_column, every),
        "--text-column": (options.text_column, every),
        "--system-column": (options.system_column, candidates),
        "--patient-column": (options.patient_column, [reference]),
    }
    for option, (name, tables) in named.items():
        if name is not None and not any(_match(each.header, name) for each in tables):
            there = name_columns([column for each in tables for column in each.header])
            raise DataError(
                f"{option}: no column {quoted(name)} in {_names(tables)} (columns: "
                f"{there}). Correct the name."
            )


class _Finder:
    """Finds columns of one table by their names."""

    def __init__(self, table: SourceTable) -> None:
        self.table = table
        self.taken: set[str] = set()
        self.notes: list[str] = []

    def find(self, aliases: Iterable[str], named: str | None) -> str:
        """Return the column that is `named`, else the first of `aliases`; or ``""``."""
        if named is not None and (found := _match(self.table.header, named)):
            return found
        free = [name for name in self.table.header if name not in self.taken]
        known = (_match(free, alias) for alias in aliases)
        found = next(filter(None, known), "")
        if named is not None and found:
            self.notes.append(
                f"{self.table.name} has no column {quoted(named)}; {quoted(found)} is "
                "used there."
            )
        return found


def _find_others(
    finder: _Finder, kind: SideKind, options: ReadingOptions
) -> dict[str, str]:
    """Return the columns that a side may have beside id and content."""
    language = finder.find(ROLES["language"], None)
    if kind is SideKind.REFERENCE:
        patient = finder.find(ROLES["patient"], options.patient_column)
        context = finder.find(PAIR_ROLES["context"], None)
        return {"language": language, "patient": patient, "context": context}
    system = finder.find(_SYSTEMS, options.system_column)
    return {"language": language, "system": system}


def _find_texts(
    finder: _Finder, kind: SideKind, options: ReadingOptions
) -> tuple[str, ...]:
    whole = finder.find(_TEXTS[kind], options.text_column)
    if whole:
        return (whole,)
    parts = (finder.find(ROLES[role], None) for role in ("findings", "impression"))
    return tuple(filter(None, parts))


def _find_labels(
    finder: _Finder, texts: tuple[str, ...], kind: SideKind, taxonomy: Taxonomy
) -> Mapping[str, str]:
    """Return the label columns of a table without a text."""
    name, header = finder.table.name, finder.table.header
    rest = [column for column in header if column not in finder.taken]
    if texts:
        beside = sum(map(taxonomy.knows, rest))
        if beside:
            finder.notes.append(
                f"{name} holds texts and {counted(beside, 'label')}: the texts are "
                "scored. Remove the column of texts to score its labels."
            )
        return {}
    labels = label_columns(rest, taxonomy, name)
    if not labels:
        raise DataError(
            f"{name}: no column with a text and none with a label (columns: "
            f"{name_columns(header)}). Say which holds the text with --text-column, or "
            f"name it {kind.value} or text."
        )
    _note_labels(finder, labels, rest, taxonomy)
    return labels


def _note_labels(
    finder: _Finder, labels: Mapping[str, str], rest: Sequence[str], taxonomy: Taxonomy
) -> None:
    """Say which labels are not there, and which columns are none."""
    name = finder.table.name
    unused = [column for column in rest if column not in labels.values()]
    if unused:
        finder.notes.append(
            f"{name}: no matching label for {counted(len(unused), 'column')}, ignored "
            f"({name_columns(unused, known=True)})."
        )
    if len(labels) < len(taxonomy.ids):
        finder.notes.append(
            f"{name} has {len(labels)} of the {len(taxonomy.ids)} labels; the others "
            "are missing there, not absent."
        )


def _match(header: Sequence[str], wanted: str) -> str:
    """Return the column called `wanted`, exactly or folded; or ``""``."""
    folded = {fold_name(name): name for name in reversed(header)}
    return wanted if wanted in header else folded.get(fold_name(wanted), "")


def _names(tables: Sequence[SourceTable]) -> str:
    return ", ".join(dict.fromkeys(each.name for each in tables))


class Content(NamedTuple):
    """What a row says of its case; two rows with equal content are the same twice."""

    text: str | None
    """Without spaces around it; None for labels."""

    codes: tuple[int, ...] | None
    """One per label of the taxonomy; None for a text."""

    patient: str
    language: str
    context: str = ""


class SideRow(NamedTuple):
    """One row of one side."""

    where: str
    system: str
    """As its column says; empty without one."""

    case_id: str
    content: Content

    def with_patient(self, patient: str) -> SideRow:
        """Return the same row of another patient."""
        return self._replace(content=self.content._replace(patient=patient))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All rows of one side, one per case."""

    by_id: Mapping[str, SideRow]
    rows: int
    repeated: tuple[str, ...]
    """Sorted ids that stood more than once, with the same content."""

    conflicting: tuple[str, ...]
    """Sorted ids that stood with different contents, of which one was chosen."""


def read_entries(
    table: SourceTable,
    columns: SideColumns,
    taxonomy: Taxonomy,
    options: ReadingOptions,
) -> list[SideRow]:
    """Return the rows of `table` for one side.

    Raises
    ------
    DataError
        The table has no row, or one without a usable id, with a text that is too long
        or none, or with a label cell without a meaning; names where it stands.
    """
    cells = LabelCells(options.values)
    found = [
        read_entry(row, columns, taxonomy, cells) for row in table.read(columns.used)
    ]
    if not found:
        raise DataError(
            f"{table.name} holds no case. Give a header and one case a row."
        )
    return found


def read_entry(
    row: SourceRow, columns: SideColumns, taxonomy: Taxonomy, cells: LabelCells
) -> SideRow:
    """Return one row of one side; raises as `read_entries`."""

    def words(column: str) -> str:
        return cell_text(row.cells.get(column), column, row.where) if column else ""

    _require_keys(row, columns)
    content = Content(
        text=_read_text(row, columns.texts) if columns.texts else None,
        codes=_read_codes(row, columns, taxonomy, cells) if columns.labels else None,
        patient=words(columns.patient).strip(),
        language=read_language(words(columns.language), row.where),
        context=words(columns.context).strip(),
    )
    system = check_name(words(columns.system), "system", row) if columns.system else ""
    return SideRow(
        row.where, system, check_name(words(columns.case_id), "id", row), content
    )


def check_name(name: str, kind: str, row: SourceRow) -> str:
    """Return an id or the name of a system without spaces around it.

    Raises
    ------
    DataError
        It is empty, too long or not printable.
    """
    short = name.strip()
    if not short:
        raise DataError(f"{row.where}: no {kind}. Give every row its {kind}.")
    if len(short) > MAX_ID or not short.isprintable():
        raise DataError(
            f"{row.where}: the {kind} is longer than {MAX_ID} characters or holds a "
            f"control character. Check that the column is the one with the {kind}."
        )
    if kind == "id":
        refuse_sentence(short, row.where)
    return short


def unite(entries: Iterable[SideRow], duplicates: str) -> Entries:
    """Return one entry per case.

    Rows with the same content count once. Of rows with different content the first or
    last is used, as `duplicates` says.

    Raises
    ------
    DataError
        Contents of one case differ and `duplicates` is ``"refuse"``; names both rows.
    """
    grouped: dict[str, list[SideRow]] = defaultdict(list)
    for entry in entries:
        grouped[entry.case_id].append(entry)
    conflicting = dict(_conflicts(grouped))
    if conflicting and duplicates == "refuse":
        case_id, (one, other) = min(conflicting.items())
        raise DataError(
            f"{other.where}: id {quoted(case_id)} was already given at {one.where}, "
            f"with different content{_and_more(len(conflicting) - 1)}. Remove one of "
            "the two, choose with --duplicates first or last, or name another column "
            "with --id-column."
        )
    place = -1 if duplicates == "last" else 0
    return Entries(
        by_id={case_id: rows[place] for case_id, rows in sorted(grouped.items())},
        rows=sum(map(len, grouped.values())),
        repeated=tuple(
            sorted(i for i in grouped if len(grouped[i]) > 1 and i not in conflicting)
        ),
        conflicting=tuple(sorted(conflicting)),
    )


def _conflicts(
    grouped: Mapping[str, list[SideRow]],
) -> Iterator[tuple[str, tuple[SideRow, SideRow]]]:
    """Yield each case with different contents, and two rows that differ."""
    for case_id, rows in grouped.items():
        other = next((row for row in rows if row.content != rows[0].content), None)
        if other is not None:
            yield case_id, (rows[0], other)


def _and_more(number: int) -> str:
    return f" (and so do {number:,} more ids)" if number else ""


def _require_keys(row: SourceRow, columns: SideColumns) -> None:
    """Refuse a JSON line without the key of its text: it was not said to be empty."""
    for column in columns.texts:
        if column not in row.cells:
            raise DataError(
                f"{row.where}: no {quoted(column)}. Give every line the same keys; an "
                "empty text is null."
            )


def _read_text(row: SourceRow, columns: Sequence[str]) -> str:
    for column in columns:
        cell = row.cells.get(column)
        # Not NaN, which is how pandas writes a blank cell.
        if isinstance(cell, (int, float)) and cell == cell:
            raise DataError(
                f"{row.where}: column {quoted(column)} holds a number, not text. Say "
                "which column holds the text with --text-column."
            )
    parts = (cell_text(row.cells.get(name), name, row.where) for name in columns)
    text = " ".join(parts).strip()
    if "\0" in text or _is_broken(text):
        raise DataError(
            f"{row.where}: the text contains a NUL or an unpaired "
            "surrogate. Export it again as UTF-8."
        )
    if len(text) > MAX_GENERATED:
        raise DataError(
            f"{row.where}: a text of {len(text):,} characters, and at most "
            f"{MAX_GENERATED:,} are read. Look for a quote that is never closed."
        )
    return text


def _is_broken(text: str) -> bool:
    """Whether `text` cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _read_codes(
    row: SourceRow, columns: SideColumns, taxonomy: Taxonomy, cells: LabelCells
) -> tuple[int, ...]:
    codes: list[int] = [ValueCode.MISSING] * len(taxonomy.ids)
    for place, label in enumerate(taxonomy.ids):
        column = columns.labels.get(label)
        if column is not None:
            codes[place] = cells.read(row.cells.get(column), column, row.where)
    return tuple(codes)

"""The labels of a run as a table for other programs: CSV, Parquet or Excel.

Beside the table stands a manifest: of which run it is, what its cells mean, and the
digest of its bytes. Parquet and Excel files say the former themselves as well.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from loop.core.errors import DataError
from loop.core.files import folder_beside, sync_folder, write_atomic, write_error
from loop.core.paths import WorkspacePaths
from loop.core.records import Item, Value
from loop.core.safe_text import shielded
from loop.labels.cohort import CohortRole, iter_items, read_cohort, single_report
from loop.labels.importing.source import QUOTED
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.run.asking import name_no_finding
from loop.run.manifest import find_run, read_manifest
from loop.run.store import RunRecord, Store, Values, open_store, read_values

FORMAT = "ranloop-labels/1"
"""Format of the manifest."""

CASE_ID, STATUS, TEXT = "case_id", "status", "text"
"""Columns that are no label."""

_EXCEL_CELL = 32_767
_EXCEL_ROWS = 1_048_576
_BATCH = 10_000
"""Rows that are held in memory for a Parquet file."""

_MODE = 0o600
"""What patients have is for whoever asked for it."""

Cell: TypeAlias = str | int | None
"""None is a blank cell: nobody answered."""


class LabelNames(StrEnum):
    """What the columns of labels are called."""

    PUBLISHED = "published"
    """For example ``Pleural Effusion``."""

    IDS = "ids"
    """For example ``pleural_effusion``."""


class CellValues(StrEnum):
    """How a label's value is spelled."""

    WORDS = "words"
    """``present``, ``absent``, ``uncertain``."""

    NUMBERS = "numbers"
    """1, 0 and -1, as the CheXpert labeler writes them."""


VALUE_NUMBERS: Mapping[str, int] = {
    Value.PRESENT: 1,
    Value.ABSENT: 0,
    Value.UNCERTAIN: -1,
}
"""Numbers that stand for the values in a table."""


class LabelTable(NamedTuple):
    """A table that was written."""

    path: Path
    manifest: Mapping[str, Any]
    """What stands in the file beside it, see `manifest_path`."""


def manifest_path(table: Path) -> Path:
    """Return where the manifest of `table` is: its name with ``.json`` added.

    Examples
    --------
    >>> manifest_path(Path("labels.csv")).name
    'labels.csv.json'
    """
    return table.with_name(f"{table.name}.json")


def check_target(out: Path, *, replace: bool = False) -> None:
    """Refuse a file that labels cannot be written to, before anything is asked.

    Raises
    ------
    DataError
        Its name does not end with a known suffix, or it exists and may not be
        replaced.
    """
    if out.suffix.lower() not in _WRITERS:
        raise DataError(
            f"{out}: labels are written to a file whose name ends with one of "
            f"{', '.join(_WRITERS)}. Choose one of them."
        )
    for path in (out, manifest_path(out)):
        if path.is_dir():
            raise DataError(f"{path} is a folder. Name a file in it.")
        if path.exists() and not replace:
            raise DataError(
                f"{path} already exists and was left as it is. Name another file, or "
                "write over it with --replace."
            )


def write_labels(
    workspace: WorkspacePaths,
    out: Path,
    run: str = "latest",
    *,
    names: LabelNames = LabelNames.PUBLISHED,
    values: CellValues = CellValues.WORDS,
    evidence: bool = False,
    text: bool = False,
    replace: bool = False,
) -> LabelTable:
    """Write the labels that a run read out of its cases, one row a case.

    The columns are ``case_id``, ``status`` and every label of the taxonomy in
    published order, then what was asked for besides. A label that was not answered is
    blank, never absent: ``status`` says whether the case was ``answered``,
    ``unparsed`` (the answer could not be read) or ``engine_failed``. "No Finding" is
    derived as the taxonomy says, and blank where it does not follow. Rows are written
    as they are read, and the file appears only when it is whole.

    Parameters
    ----------
    out
        File to write, ``.csv``, ``.parquet`` or ``.xlsx``; readable by its owner only.
    run
        As `loop.run.manifest.find_run` reads it. Of several draws it names one.
    evidence
        Add a column per label with the words of the case its answer rests on. Private.
    text
        Add the text of the case, so that ``ranloop cohort import`` reads the table.
        Private.
    replace
        Whether a file that exists is written over.

    Raises
    ------
    DataError
        There is no such run, it did not answer with label values, it is on a holdout,
        `out` cannot be used, or the texts that were asked for are not here.
    StoreError
        The store cannot be read.
    WriteError
        The disk is full, read-only, or permission is missing; nothing is left behind.
    """
    check_target(out, replace=replace)
    record = find_run(workspace, run)
    cohort = read_cohort(workspace, record.spec.cohort)
    if cohort.role is CohortRole.HOLDOUT:
        raise DataError(
            f"run {record.id} is on {cohort.name}, a holdout: its answers stay with "
            "the release it was opened for. Name a run on another cohort."
        )
    if (evidence or text) and cohort.digest != record.spec.cohort_digest:
        raise DataError(
            f"cohort {cohort.name} holds other cases than run {record.id} asked, so "
            "their texts cannot stand beside its answers. Run the prompt again, or "
            "leave out evidence and text."
        )
    table = _Table(
        read_taxonomy(workspace.labels), names, values, evidence=evidence, text=text
    )
    table.about = _describe(workspace, record, table)
    items = iter_items(workspace, cohort) if evidence or text else None
    with open_store(workspace) as store, folder_beside(out, "labels") as folder:
        beside = folder / out.name
        cases = _read_cases(store, record, items)
        try:
            _WRITERS[out.suffix.lower()](beside, table, table.rows(cases))
            digest = _finish(beside)
            # Else a crash in between would leave a manifest of another table.
            manifest_path(out).unlink(missing_ok=True)
            os.replace(beside, out)
            sync_folder(out.parent)
        except OSError as error:
            raise write_error(out, error) from error
    manifest = {"file": out.name, "sha256": digest, **table.about, **_count(table)}
    written = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    write_atomic(manifest_path(out), written, mode=_MODE)
    return LabelTable(out, manifest)


class _Labelled(NamedTuple):
    """One case of a run, as much of it as a table needs."""

    answers: Values
    quotes: Mapping[str, str]
    """Label to the words its answer rests on; empty if they are not wanted."""

    text: str


def _read_cases(
    store: Store, record: RunRecord, items: Iterator[Item] | None
) -> Iterator[_Labelled]:
    """Yield the cases of a run in cohort order, with their texts if `items` are given.

    `items` are those of the cohort that was asked: a run holds the first so many.
    """
    if items is None:
        for answers in read_values(store, record):
            yield _Labelled(answers, {}, "")
        return
    outcomes = store.read_outcomes(record.id)
    for outcome, item in zip(outcomes, items, strict=False):
        text = single_report(item)
        values = {label: found.value for label, found in outcome.fields.items()}
        quotes = {
            label: " … ".join(text[one.start : one.end] for one in found.spans)
            for label, found in outcome.fields.items()
        }
        answers = Values(outcome.item_id, outcome.status, values)
        yield _Labelled(answers, quotes, text)


class _Table:
    """The columns of a table, and how a case becomes a row of it."""

    def __init__(
        self,
        taxonomy: Taxonomy,
        names: LabelNames,
        values: CellValues,
        *,
        evidence: bool,
        text: bool,
    ) -> None:
        self.taxonomy, self.names, self.values = taxonomy, names, values
        self.evidence, self.text = evidence, text
        # What it is of; stands in the file itself where the format has a place for it.
        self.about: Mapping[str, Any] = {}
        self.statuses = Counter[str]()
        # How often each label got each value; grows with the rows.
        self.counts = {label: Counter[str]() for label in taxonomy.ids}

    @property
    def columns(self) -> tuple[str, ...]:
        """All names, from left to right."""
        published = self.names is LabelNames.PUBLISHED
        labels = [one.name if published else one.id for one in self.taxonomy.labels]
        space = " " if published else "_"
        quotes = [f"{name}{space}{QUOTED}" for name in labels] if self.evidence else []
        return (CASE_ID, STATUS, *labels, *quotes, *([TEXT] if self.text else []))

    @property
    def numbered(self) -> range:
        """Places of the columns that hold numbers, if labels do."""
        labels = 2 + len(self.taxonomy.ids)
        return range(2, labels if self.values is CellValues.NUMBERS else 2)

    def rows(self, cases: Iterable[_Labelled]) -> Iterator[list[Cell]]:
        """Yield a row a case, counting what is in it."""
        for case in cases:
            answers = case.answers
            words = self._read(answers)
            self.statuses[answers.status.value] += 1
            for label, word in words.items():
                self.counts[label][word or "blank"] += 1
            row: list[Cell] = [answers.item_id, answers.status.value]
            if self.values is CellValues.NUMBERS:
                row += [
                    VALUE_NUMBERS[word] if word else None for word in words.values()
                ]
            else:
                row += words.values()
            if self.evidence:
                row += [case.quotes.get(label) or None for label in words]
            if self.text:
                row.append(case.text)
            yield row

    def _read(self, answers: Values) -> dict[str, str | None]:
        """Return each label's value as a word, None where nobody answered."""
        found = answers.values
        for label in self.taxonomy.extracted:
            if found.get(label, Value.ABSENT) not in VALUE_NUMBERS:
                raise DataError(
                    f"case {answers.item_id}: an answer is not present, absent or "
                    "uncertain. Only runs with label values can be written as labels."
                )
        words = {
            label: str(found[label]) if label in found else None
            for label in self.taxonomy.ids
        }
        if NO_FINDING in words:
            # The words compare like the values they spell.
            derived = self.taxonomy.find_no_finding(found)  # type: ignore[arg-type]
            words[NO_FINDING] = None if derived is None else derived.value
        return words


def _describe(
    workspace: WorkspacePaths, record: RunRecord, table: _Table
) -> dict[str, Any]:
    """Return what a reader of the table must know of it, before a row is read."""
    spec = record.spec
    numbers = table.values is CellValues.NUMBERS
    spelled = {word: n if numbers else str(word) for word, n in VALUE_NUMBERS.items()}
    private = {QUOTED: table.evidence, TEXT: table.text}
    return {
        "format": FORMAT,
        "run": record.id,
        "created": record.created,
        "draw": spec.draw,
        "prompt": spec.prompt,
        "prompt_digest": spec.prompt_digest,
        "contract": spec.contract,
        "engine": spec.engine,
        "parameters": dict(spec.parameters),
        "engine_identity": read_manifest(workspace, record.id)["engine_identity"],
        "cohort": spec.cohort,
        "cohort_digest": spec.cohort_digest,
        "taxonomy_digest": table.taxonomy.digest,
        "no_finding": name_no_finding(table.taxonomy, spec.engine) or None,
        "names": table.names.value,
        "values": {**spelled, "not answered": ""},
        "private": [what for what, there in private.items() if there],
    }


def _count(table: _Table) -> dict[str, Any]:
    """Return what the rows that were written hold."""
    return {
        "rows": table.statuses.total(),
        "statuses": dict(sorted(table.statuses.items())),
        "labels": {
            label: {word: counts[word] for word in (*VALUE_NUMBERS, "blank")}
            for label, counts in table.counts.items()
        },
    }


def _finish(path: Path) -> str:
    """Bring a file that was written to the disk, and return its sha256."""
    os.chmod(path, _MODE)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        return hashlib.file_digest(stream, "sha256").hexdigest()


_Rows: TypeAlias = Iterator[list[Cell]]


def _write_csv(path: Path, table: _Table, rows: _Rows) -> None:
    """Write RFC 4180 in UTF-8; no cell of it is run by a spreadsheet."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(table.columns)
        for row in rows:
            writer.writerow(
                shielded(cell) if isinstance(cell, str) else cell for cell in row
            )


def _write_parquet(path: Path, table: _Table, rows: _Rows) -> None:
    """Write row groups of `_BATCH` rows: text, and 8 bits for a number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, numbered = table.columns, table.numbered
    schema = pa.schema(
        [
            pa.field(name, pa.int8() if place in numbered else pa.string())
            for place, name in enumerate(columns)
        ],
        metadata={"ranloop": json.dumps(table.about, ensure_ascii=False)},
    )
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            cells = dict(zip(columns, zip(*batch, strict=True), strict=True))
            writer.write_table(pa.table(cells, schema=schema))


def _write_excel(path: Path, table: _Table, rows: _Rows) -> None:
    """Write one sheet; text is text there, whatever it begins with or holds."""
    import xlsxwriter
    from xlsxwriter.exceptions import FileCreateError

    book = xlsxwriter.Workbook(
        str(path),
        # Rows go to a file beside the table, not to a folder that others may see.
        {"constant_memory": True, "tmpdir": str(path.parent)},
    )
    about = json.dumps(table.about, ensure_ascii=False)
    # The time of the run: two tables of it are the same bytes.
    created = datetime.fromisoformat(table.about["created"])
    book.set_properties({"author": "ranloop", "comments": about, "created": created})
    sheet = book.add_worksheet("labels")
    sheet.freeze_panes(1, 1)
    try:
        for number, row in enumerate(chain([table.columns], rows)):
            if number >= _EXCEL_ROWS:
                raise DataError(
                    f"{path.name}: a sheet of Excel holds {_EXCEL_ROWS:,} rows, and "
                    "the run has more cases. Write CSV or Parquet."
                )
            for place, cell in enumerate(row):
                if isinstance(cell, int):
                    sheet.write_number(number, place, cell)
                elif cell and len(cell) > _EXCEL_CELL:
                    raise DataError(
                        f"{path.name}: a text has {len(cell):,} characters, and a cell "
                        f"of Excel holds {_EXCEL_CELL:,}. Write CSV or Parquet."
                    )
                elif cell:
                    sheet.write_string(number, place, cell)
    finally:
        try:
            book.close()
        except FileCreateError as error:
            # What it holds says what was wrong.
            raise error.args[0] from error


_WRITERS: Mapping[str, Callable[[Path, _Table, _Rows], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".xlsx": _write_excel,
}

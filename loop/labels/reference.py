"""Reference standards: what each case is held against, one numbered version at a time.

``labels/cohorts/<name>/reference/v<N>.csv`` has one row per case and one column per
label, values spelled out. A correction makes the next version; nothing is edited.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError, UnknownLabelError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.labels.cohort import Cohort, cohort_folder, read_cohort

PRESENT = 1
ABSENT = 0
UNCERTAIN = -1
NO_MAJORITY = -2
MISSING = -3
NOT_CODED = 2

CODES: Mapping[Mark, int] = {
    Mark.PRESENT: PRESENT,
    Mark.ABSENT: ABSENT,
    Mark.UNCERTAIN: UNCERTAIN,
    Mark.NO_MAJORITY: NO_MAJORITY,
    Mark.MISSING: MISSING,
    Mark.NOT_CODED: NOT_CODED,
}
MARKS: Mapping[int, Mark] = {code: mark for mark, code in CODES.items()}
_BY_WORD = {mark.value: code for mark, code in CODES.items()}
_VERSION = re.compile(r"v([1-9][0-9]*)\.csv")

Marks = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One version of a cohort's reference standard."""

    cohort: str
    number: int
    """Version, from 1."""

    digest: str
    """Sha256 of the file."""

    case_ids: tuple[str, ...]
    """In the order of the cohort."""

    labels: tuple[str, ...]
    """Label ids, in file order."""

    marks: Marks
    """Codes, shape ``(n_cases, n_labels)``; see `CODES`."""

    @property
    def ref(self) -> str:
        """How it is named on reports, for example ``"openi_dev:ref1"``."""
        return f"{self.cohort}:ref{self.number}"

    def as_binary(self) -> Marks:
        """Return 1 present, 0 absent or not coded, -1 excluded, same shape.

        Uncertain, no majority and missing are excluded, never read as absent.
        """
        return np.where(
            self.marks == NOT_CODED, ABSENT, np.maximum(self.marks, -1)
        ).astype(np.int8)

    def mark(self, case_id: str, label: str) -> Mark:
        """Return the mark of one case and label.

        Raises
        ------
        DataError
            The reference has no such case or label.
        """
        row, column = locate(self, case_id, label)
        return MARKS[int(self.marks[row, column])]

    def counts(self, label: str) -> Mapping[Mark, int]:
        """Return how many cases carry each mark of `label`."""
        column = self.marks[:, self.labels.index(label)]
        return {mark: int((column == code).sum()) for mark, code in CODES.items()}


def locate(reference: Reference, case_id: str, label: str) -> tuple[int, int]:
    """Return row and column of one case and label.

    Raises
    ------
    DataError
        The reference has no such case or label.
    """
    if label not in reference.labels:
        raise UnknownLabelError(
            f"{reference.ref} has no label {label[:60]!r}. Correct the label id."
        )
    try:
        return reference.case_ids.index(case_id), reference.labels.index(label)
    except ValueError as error:
        raise DataError(
            f"{reference.ref} has no case {case_id[:80]!r}. Correct the case id, or "
            "name the cohort it belongs to."
        ) from error


def list_references(workspace: Workspace, cohort_name: str) -> tuple[int, ...]:
    """Return the numbers of all reference versions, ascending."""
    found = (_VERSION.fullmatch(f.name) for f in _folder(workspace, cohort_name))
    return tuple(sorted(int(match[1]) for match in found if match))


def read_reference(
    workspace: Workspace, cohort_name: str, number: int | None = None
) -> Reference:
    """Return reference version `number` of a cohort; the newest when None.

    Raises
    ------
    DataError
        There is no such version, or its file does not fit the cohort.
    """
    numbers = list_references(workspace, cohort_name)
    if not numbers:
        raise DataError(
            f"cohort {cohort_name!r} has no reference yet. Import label columns, or "
            f"add readers' votes with `ranloop cohort votes {cohort_name} FILE`."
        )
    wanted = numbers[-1] if number is None else number
    if wanted not in numbers:
        known = ", ".join(f"v{n}" for n in numbers)
        raise DataError(
            f"cohort {cohort_name!r} has no reference v{wanted} (there: {known})."
            " Name one of these."
        )
    path = reference_path(workspace, cohort_name, wanted)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    labels, case_ids, marks = _parse(raw, path)
    reference = Reference(
        cohort=cohort_name,
        number=wanted,
        digest=digest_bytes(raw),
        case_ids=case_ids,
        labels=labels,
        marks=marks,
    )
    _require_cases(reference, read_cohort(workspace, cohort_name), path)
    return reference


def reference_path(workspace: Workspace, cohort_name: str, number: int) -> Path:
    """File of one reference version."""
    return cohort_folder(workspace, cohort_name) / "reference" / f"v{number}.csv"


def write_reference(
    workspace: Workspace,
    cohort: Cohort,
    labels: Sequence[str],
    marks: Marks,
    *,
    reason: str,
    actor: Actor,
) -> int:
    """Write the next reference version of `cohort`, record it, return its number.

    When it would equal the newest version, nothing is written and that one's number is
    returned.

    Parameters
    ----------
    labels
        Label ids, one per column of `marks`.
    marks
        Codes of `CODES`, shape ``(n_cases, n_labels)``, cases in cohort order.
    reason
        Why there is a new version; goes into the ledger.

    Raises
    ------
    WriteError
        The workspace cannot be written; no version was made.
    LedgerError
        The ledger is broken; no version was made.
    """
    if marks.shape != (len(cohort.cases), len(labels)):
        raise ValueError(f"marks have shape {marks.shape}, not (cases, labels)")
    raw = format_reference(cohort.case_ids, labels, marks)
    with locked(_lock(workspace, cohort.name)):
        numbers = list_references(workspace, cohort.name)
        newest = numbers[-1] if numbers else 0
        path = reference_path(workspace, cohort.name, newest)
        if newest and path.read_bytes() == raw:
            return newest
        return _commit(workspace, cohort, newest + 1, raw, (reason, actor))


def correct_reference(
    workspace: Workspace,
    cohort: Cohort,
    corrections: Mapping[tuple[str, str], Mark],
    *,
    actor: Actor,
    reason: str,
) -> int:
    """Make a new reference version with some marks replaced; return its number.

    When every correction is already so, nothing is written and the number of the
    newest version is returned: doing it twice does no harm.

    Parameters
    ----------
    corrections
        ``(case_id, label id)`` to the right mark.

    Raises
    ------
    DataError
        A case or label is unknown; no version was made.
    """
    with locked(_lock(workspace, cohort.name)):
        reference = read_reference(workspace, cohort.name)
        marks = reference.marks.copy()
        for (case_id, label), mark in corrections.items():
            marks[locate(reference, case_id, label)] = CODES[Mark(mark)]
        if (marks == reference.marks).all():
            return reference.number
        raw = format_reference(reference.case_ids, reference.labels, marks)
        return _commit(workspace, cohort, reference.number + 1, raw, (reason, actor))


def edited_references(workspace: Workspace, cohort_name: str) -> tuple[int, ...]:
    """Return versions whose file no longer has the digest the ledger recorded.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    recorded = {
        entry.subject: entry.payload.get("digest")
        for entry in read_ledger(workspace.ledger)
        if entry.action == "reference_revised"
    }
    edited = []
    for number in list_references(workspace, cohort_name):
        path = reference_path(workspace, cohort_name, number)
        expected = recorded.get(f"{cohort_name}:ref{number}")
        if expected is not None and digest_bytes(path.read_bytes()) != expected:
            edited.append(number)
    return tuple(edited)


def format_reference(
    case_ids: Sequence[str], labels: Sequence[str], marks: Marks
) -> bytes:
    """Return the file of a reference version: values spelled out, LF line ends."""
    words = {code: mark.value for code, mark in MARKS.items()}
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["case_id", *labels])
    for case_id, row in zip(case_ids, marks.tolist(), strict=True):
        writer.writerow([case_id, *(words[code] for code in row)])
    return stream.getvalue().encode("utf-8")


def _commit(
    workspace: Workspace,
    cohort: Cohort,
    number: int,
    raw: bytes,
    why: tuple[str, Actor],
) -> int:
    """Write version `number` and its ledger entry: both or neither."""
    reason, actor = why
    path = reference_path(workspace, cohort.name, number)
    write_atomic(path, raw)
    event = Event(
        action="reference_revised",
        subject=f"{cohort.name}:ref{number}",
        reason=reason,
        payload={
            "cohort": cohort.name,
            "cohort_digest": cohort.digest,
            "number": number,
            "digest": digest_bytes(raw),
        },
    )
    try:
        append_event(workspace.ledger, event, actor)
    except LoopError:
        path.unlink()
        raise
    return number


def _parse(raw: bytes, path: Path) -> tuple[tuple[str, ...], tuple[str, ...], Marks]:
    """Return labels, case ids and codes of a reference file."""
    case_ids: list[str] = []
    codes = array("b")
    try:
        rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
        header = next(rows, [])
        _check_header(header, path)
        for row in rows:
            if len(row) != len(header):
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(row)} cells, the header has "
                    f"{len(header)}. Restore the file."
                )
            case_ids.append(row[0])
            codes.extend(map(_BY_WORD.__getitem__, row[1:]))
    except KeyError as error:
        known = ", ".join(_BY_WORD)
        raise DataError(
            f"{path}, line {rows.line_num}: a cell holds none of {known}. "
            "Restore the file."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a UTF-8 CSV file. Restore it.") from error
    marks = np.frombuffer(codes, dtype=np.int8) if codes else np.empty(0, np.int8)
    return (
        tuple(header[1:]),
        tuple(case_ids),
        marks.reshape(len(case_ids), len(header) - 1),
    )


def _check_header(header: list[str], path: Path) -> None:
    if header[:1] != ["case_id"] or len(set(header)) != len(header):
        raise DataError(
            f"{path}, line 1: the first column must be case_id and no column may stand "
            "twice. Restore the file."
        )


def _require_cases(reference: Reference, cohort: Cohort, path: Path) -> None:
    if reference.case_ids != cohort.case_ids:
        raise DataError(
            f"{path} does not list the cases of cohort {cohort.name!r} in their order. "
            "Restore the file."
        )


def _folder(workspace: Workspace, cohort_name: str) -> list[Path]:
    folder = cohort_folder(workspace, cohort_name) / "reference"
    return list(folder.iterdir()) if folder.is_dir() else []


def _lock(workspace: Workspace, cohort_name: str) -> Path:
    return workspace.open_private() / "locks" / f"reference-{cohort_name}.lock"

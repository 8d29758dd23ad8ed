"""Reference standards: what each case is held against, one numbered version at a time.

``labels/cohorts/<name>/reference/v<N>.csv`` has one row per case and one column per
label, values spelled out. A correction makes the next version; nothing is edited. Only
a version with the digest that the ledger recorded is read. Those of a holdout are
sealed, see `loop.labels.sealing`.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LoopError, UnknownLabelError
from loop.core.files import locked
from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, ValueCode
from loop.core.safe_text import format_csv, quoted
from loop.labels.cohort import (
    Cohort,
    CohortRecord,
    CohortRole,
    cohort_folder,
    read_cohort,
    read_record,
)
from loop.labels.sealing import (
    Opening,
    is_digest_of,
    is_stored,
    label_digest,
    read_labels,
    read_stored,
    refuse_plain,
    remove_file,
    require_opening,
    sealed_path,
    write_labels,
)
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.labels.value_sample import KeptSample, find_sample

CODES: Mapping[Mark, ValueCode] = {mark: ValueCode[mark.name] for mark in Mark}
MARKS: Mapping[int, Mark] = {code: mark for mark, code in CODES.items()}
_BY_WORD = {mark.value: code for mark, code in CODES.items()}

Marks = NDArray[np.int8]

_VERSION = re.compile(r"v([1-9][0-9]*)\.csv(?:\.sealed)?")


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

    no_finding_derived: bool = False
    """Whether it comes of votes in which "No Finding" follows from the other labels."""

    sample: KeptSample | None = None
    """Of which its cases were drawn where it decides a part of the cohort; see
    `require_random`."""

    @property
    def ref(self) -> str:
        """How it is named on reports, for example ``"openi_dev:ref1"``."""
        return f"{self.cohort}:ref{self.number}"

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


def as_scored(reference: Reference, taxonomy: Taxonomy) -> Reference:
    """Return `reference` as answers are held against it.

    A "No Finding" that was derived says that all other labels are absent. Where one of
    them was never marked, because it was added to the taxonomy later, nobody knows
    that: such a "No Finding" is missing. One that names a finding stands.
    """
    if not reference.no_finding_derived or NO_FINDING not in reference.labels:
        return reference
    others = [
        reference.labels.index(name) if name in reference.labels else -1
        for name in taxonomy.deciding
    ]
    known = [place for place in others if place >= 0]
    open_cases = (reference.marks[:, known] == ValueCode.MISSING).any(axis=1)
    if len(known) < len(others):
        open_cases[:] = True
    column = reference.labels.index(NO_FINDING)
    open_cases &= reference.marks[:, column] == ValueCode.PRESENT
    if not open_cases.any():
        return reference
    marks = reference.marks.copy()
    marks[open_cases, column] = ValueCode.MISSING
    return replace(reference, marks=marks)


def require_random(reference: Reference) -> Reference:
    """Return `reference` where a rate over its cases may be read as one of the cohort.

    Raises
    ------
    DataError
        Its cases are of a value sample: they were drawn because they may fail.
    """
    if reference.sample is None:
        return reference
    raise DataError(
        f"{reference.ref} decides the cases of value sample {reference.sample.number}, "
        "which were drawn for what reading them is worth, not at random: a rate over "
        "them is none of the cohort. `ranloop evaluate RUN` weights them; `ranloop "
        "failures RUN` lists them. For anything else read every case, or name an "
        "earlier reference."
    )


def is_no_finding_derived(record: CohortRecord, number: int) -> bool:
    """Whether "No Finding" in version `number` follows from the votes on the others."""
    payload = record.references.get(record.origin(number), {})
    return "votes" in payload and payload.get("no_finding") != "read"


def locate(reference: Reference, case_id: str, label: str) -> tuple[int, int]:
    """Return row and column of one case and label.

    Raises
    ------
    DataError
        The reference has no such case or label.
    """
    if label not in reference.labels:
        raise UnknownLabelError(
            f"{reference.ref} has no label {quoted(label)}. Correct the label id."
        )
    try:
        return reference.case_ids.index(case_id), reference.labels.index(label)
    except ValueError as error:
        raise DataError(
            f"{reference.ref} has no case {quoted(case_id)}. Correct the case id, or "
            "name the cohort it belongs to."
        ) from error


def list_references(workspace: WorkspacePaths, cohort_name: str) -> tuple[int, ...]:
    """Return the numbers of all reference versions, ascending."""
    found = (_VERSION.fullmatch(f.name) for f in _folder(workspace, cohort_name))
    return tuple(sorted({int(match[1]) for match in found if match}))


def read_reference(
    workspace: WorkspacePaths,
    cohort_name: str,
    number: int | None = None,
    *,
    opening: Opening | None = None,
) -> Reference:
    """Return reference version `number` of a cohort; the newest when None.

    Parameters
    ----------
    opening
        What lets the labels of a holdout be read; nothing else does.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    DataError
        There is no such version, its file does not fit the cohort, was edited, or was
        never recorded; or a newer version was recorded and its file is gone.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    numbers = list_references(workspace, cohort_name)
    wanted = _choose_version(record, numbers, number)
    path = reference_path(workspace, cohort_name, wanted)
    refuse_plain(path, sealed=record.is_holdout)
    if record.is_holdout:
        digest = record.references.get(wanted, {}).get("digest")
        require_opening(workspace, record, opening, digest=digest)
    raw = read_labels(workspace, path, sealed=record.is_holdout)
    labels, case_ids, marks = parse_reference(raw, path)
    recorded = record.references.get(wanted, {}).get("digest")
    same = is_digest_of(workspace, recorded, raw)
    open_cases = (marks == ValueCode.MISSING).all(axis=1)
    reference = Reference(
        cohort=cohort_name,
        number=wanted,
        digest=str(recorded) if same else digest_bytes(raw),
        case_ids=case_ids,
        labels=labels,
        marks=marks,
        no_finding_derived=is_no_finding_derived(record, wanted),
        sample=find_sample(workspace, record, wanted) if open_cases.any() else None,
    )
    cohort = read_cohort(workspace, cohort_name, record=record)
    _require_cases(reference, cohort, path)
    _require_version(record, wanted, reference.digest, path)
    return reference


def _choose_version(
    record: CohortRecord, numbers: Sequence[int], number: int | None
) -> int:
    """Return reference version `number`, or the newest; `numbers` have a file."""
    known = {*numbers, *record.references}
    votes = f"`ranloop cohort votes {record.name} FILE`"
    if not known and "inputs" in record.added:
        raise DataError(
            f"cohort {record.name!r} holds pairs of reports "
            f"({record.added['inputs']}); reference labels are of single reports. Name "
            "a cohort of reports; `ranloop cohort show` lists what cohorts hold."
        )
    if not known:
        raise DataError(
            f"cohort {record.name!r} has no reference yet. Import label columns, or "
            f"add readers' votes with {votes}."
        )
    wanted = max(known) if number is None else number
    if wanted in numbers:
        return wanted
    if wanted in record.references:
        raise DataError(
            f"reference v{wanted}.csv of cohort {record.name!r} is gone, but the "
            "ledger recorded it. Restore it from version control or a backup, or make "
            f"a new version with {votes}."
        )
    there = ", ".join(f"v{n}" for n in sorted(numbers))
    raise DataError(
        f"cohort {record.name!r} has no reference v{wanted} (found: {there}). Name one "
        "of these."
    )


def _require_version(
    record: CohortRecord, number: int, digest: str, path: Path
) -> None:
    """Refuse a reference file whose sha256 `digest` is not the recorded one."""
    votes = f"`ranloop cohort votes {record.name} FILE`"
    recorded = record.references.get(number)
    if recorded is None:
        raise DataError(
            f"{path} is not in the ledger: nothing says who made it, and why. Move it "
            f"away, and register its marks: readers' votes with {votes}, single marks "
            "with `ranloop revise` and a verdict reference_wrong."
        )
    if recorded["digest"] != digest:
        raise DataError(
            f"{path} was edited: the ledger recorded sha256 {recorded['digest'][:12]}, "
            f"found {digest[:12]}. Restore it from version control or a backup, or "
            f"make a new version with {votes}; a wrong mark is corrected with `ranloop "
            "revise` and a verdict reference_wrong."
        )


def reference_path(workspace: WorkspacePaths, cohort_name: str, number: int) -> Path:
    """File of one reference version."""
    return cohort_folder(workspace, cohort_name) / "reference" / f"v{number}.csv"


def write_reference(
    workspace: WorkspacePaths,
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
    with locked(version_lock(workspace, cohort.name)):
        return add_version(workspace, cohort, raw, actor=actor, reason=reason, facts={})


def add_version(
    workspace: WorkspacePaths,
    cohort: Cohort,
    raw: bytes,
    *,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any],
) -> int:
    """Write `raw`, made by `format_reference`, as `write_reference` does.

    Whoever calls holds `version_lock`.

    Parameters
    ----------
    facts
        What else the ledger shall know: where the marks come from. When only that is
        new, the newest version is recorded once more with it.

    Raises
    ------
    WriteError
        The workspace cannot be written; no version was made.
    LedgerError
        The ledger is broken; no version was made.
    """
    number = next_number(workspace, cohort, raw)
    known = read_record(workspace, cohort.name).references.get(number, {})
    same = is_digest_of(workspace, known.get("digest"), raw)
    if same and facts.items() <= known.items():
        return number
    return commit_version(
        workspace, cohort, number, raw, actor=actor, reason=reason, facts=facts
    )


def next_number(workspace: WorkspacePaths, cohort: Cohort, raw: bytes) -> int:
    """Return the number of a version with these bytes.

    That is the newest one's where it holds them already, else the one after it.
    """
    record = read_record(workspace, cohort.name)
    newest = max(record.newest, *list_references(workspace, cohort.name), 0)
    path = reference_path(workspace, cohort.name, newest)
    sealed = cohort.role is CohortRole.HOLDOUT
    same = read_stored(workspace, path, sealed=sealed) == raw
    return newest if same else newest + 1


def correct_reference(
    workspace: WorkspacePaths,
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
    SealedError
        The cohort is a holdout: what would change tells what it says.
    DataError
        A case or label is unknown; no version was made.
    """
    with locked(version_lock(workspace, cohort.name)):
        reference = read_reference(workspace, cohort.name)
        marks = reference.marks.copy()
        for (case_id, label), mark in corrections.items():
            marks[locate(reference, case_id, label)] = CODES[Mark(mark)]
        changed = int((marks != reference.marks).sum())
        if not changed:
            return reference.number
        raw = format_reference(reference.case_ids, reference.labels, marks)
        return commit_version(
            workspace,
            cohort,
            reference.number + 1,
            raw,
            actor=actor,
            reason=reason,
            facts={"corrects": reference.number, "corrected": changed},
        )


def version_event(
    cohort: str,
    cohort_digest: str,
    number: int,
    digest: str,
    *,
    reason: str,
    facts: Mapping[str, Any],
) -> Event:
    """Return what the ledger records of a version; for `digest` see `label_digest`."""
    return Event(
        action="reference_revised",
        subject=f"{cohort}:ref{number}",
        reason=reason,
        payload={
            "cohort": cohort,
            "cohort_digest": cohort_digest,
            "number": number,
            "digest": digest,
            **facts,
        },
    )


def commit_version(
    workspace: WorkspacePaths,
    cohort: Cohort,
    number: int,
    raw: bytes,
    *,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any],
) -> int:
    """Write version `number` and its ledger entry, both or neither; return it.

    Whoever calls holds `version_lock`.

    Parameters
    ----------
    facts
        What else the ledger shall know.

    Raises
    ------
    LedgerError
        The ledger is broken; no version was made.
    WriteError
        The workspace cannot be written; no version was made.
    """
    path = reference_path(workspace, cohort.name, number)
    there, sealed = is_stored(path), cohort.role is CohortRole.HOLDOUT
    write_labels(workspace, path, raw, sealed=sealed)
    digest = label_digest(workspace, raw, sealed=sealed)
    event = version_event(
        cohort.name, cohort.digest, number, digest, reason=reason, facts=facts
    )
    try:
        append_event(workspace.ledger, event, actor)
    except LoopError:
        if not there:
            remove_file(sealed_path(path) if sealed else path)
        raise
    return number


def _require_cases(reference: Reference, cohort: Cohort, path: Path) -> None:
    if reference.case_ids != cohort.case_ids:
        raise DataError(
            f"{path} does not list the cases of cohort {cohort.name!r} in their order. "
            "Restore the file."
        )


def _folder(workspace: WorkspacePaths, cohort_name: str) -> list[Path]:
    folder = cohort_folder(workspace, cohort_name) / "reference"
    return list(folder.iterdir()) if folder.is_dir() else []


def version_lock(workspace: WorkspacePaths, cohort_name: str) -> Path:
    """Lock file held while a version of a cohort's reference is made."""
    return workspace.open_private() / "locks" / f"reference-{cohort_name}.lock"


def edited_references(workspace: WorkspacePaths, cohort_name: str) -> tuple[int, ...]:
    """Return versions whose file is not the recorded one, or was never recorded.

    A sealed one is unsealed for that.

    Raises
    ------
    DataError
        The ledger has no entry of the cohort; or a holdout's labels lie in plain, or
        the key that they were sealed with is not here.
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort_name)
    return tuple(
        number
        for number in list_references(workspace, cohort_name)
        if not _is_intact(workspace, record, number)
    )


def _is_intact(workspace: WorkspacePaths, record: CohortRecord, number: int) -> bool:
    path = reference_path(workspace, record.name, number)
    raw = read_labels(workspace, path, sealed=record.is_holdout)
    recorded = record.references.get(number, {}).get("digest")
    return is_digest_of(workspace, recorded, raw)


def format_reference(
    case_ids: Sequence[str], labels: Sequence[str], marks: Marks
) -> bytes:
    """Return the file of a reference version: values spelled out, LF line ends."""
    words = {code: mark.value for code, mark in MARKS.items()}
    rows = (
        [case_id, *(words[code] for code in row)]
        for case_id, row in zip(case_ids, marks.tolist(), strict=True)
    )
    return format_csv(["case_id", *labels], rows, end="\n").encode("utf-8")


def parse_reference(
    raw: bytes, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...], Marks]:
    """Return labels, case ids and codes of a reference file; `path` is for messages.

    Raises
    ------
    DataError
        It is not such a file; names the line.
    """
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

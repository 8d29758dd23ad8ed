"""Cohorts: named, digest-pinned sets of cases; their texts stay in the private store.

``labels/cohorts/<name>/cohort.yaml`` says what the cohort is, ``cases.csv`` pins every
case by digest, ``.ranloop/cases/<name>.jsonl`` holds the texts, one case a line. A case
is one report, or a pair: a reference, a candidate, and where known the context. Files
under ``labels/`` can be edited with any editor; the chain of the ledger cannot be
without notice. So role, cases, references and votes are believed only as recorded.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from loop.core.digests import digest_json, digest_texts
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Item
from loop.core.safe_text import format_csv, quoted
from loop.core.yaml_files import dump_yaml, read_model

CASE_COLUMNS = ("case_id", "patient", "sha256")
PAIR_COLUMNS = (*CASE_COLUMNS, "system", "reference_id")
REPORT_INPUTS = ("text",)
"""What a case of one report gives a prompt."""

CANDIDATE = "candidate"
"""Input with the text that is judged."""

PAIR_INPUTS = ("reference", CANDIDATE)
"""What a pair gives at least; see `CONTEXT`."""

CONTEXT = "context"
"""What is known of the patient of a pair: age, sex, indication. It is no report."""

_INPUTS = (REPORT_INPUTS, PAIR_INPUTS, (*PAIR_INPUTS, CONTEXT))
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class CohortRole(StrEnum):
    """What a cohort may be used for."""

    TAXONOMY = "taxonomy"
    """Designing labels; never scored."""

    DEV = "dev"
    """Revising prompts; its failing cases are read."""

    HOLDOUT = "holdout"
    """The final claim; opened only for a frozen version."""

    EXTERNAL = "external"
    """Another site or language; measured, never revised on."""

    SHOTS = "shots"
    """Assessed pairs that prompts show as examples; never measured on."""


class CohortCase(NamedTuple):
    """One case of a cohort, without its text."""

    case_id: str
    """Unique in its cohort."""

    patient: str
    """Keyed pseudonym, 16 hex characters, or empty when the patient is unknown."""

    sha256: str
    """Digest of the text, or of all texts; see `digest_texts`."""

    system: str = ""
    """Which system wrote the candidate of a pair; may be empty."""

    reference_id: str = ""
    """Names the reference of a pair: several candidates share one."""

    @property
    def unit(self) -> str:
        """What is drawn in a bootstrap: the patient, else the reference; or empty."""
        if self.patient or not self.reference_id:
            return self.patient
        return f"reference {self.reference_id}"


Reason = Annotated[str, Field(pattern=r"\S")]
"""Why a reference cannot judge a label; never blank."""


class SourceFile(BaseModel):
    """A file that a cohort was imported from."""

    model_config = ConfigDict(extra="forbid")

    name: str
    sha256: str


class CohortFile(BaseModel):
    """The form of ``cohort.yaml``."""

    model_config = ConfigDict(extra="forbid")

    name: str
    role: CohortRole
    source: str
    licence: str
    citation: str = ""
    language: str
    inputs: list[str] = list(REPORT_INPUTS)
    cases: int
    digest: str
    not_coded: bool = False
    not_comparable: dict[str, Reason] = {}
    pseudonym_key: str = ""
    imported: str = ""
    format: str = ""
    files: list[SourceFile] = []
    excluded: dict[str, int] = {}
    counted: dict[str, int] = {}

    @field_validator("inputs")
    @classmethod
    def _known(cls, inputs: list[str]) -> list[str]:
        if tuple(inputs) not in _INPUTS:
            raise ValueError("none of text; reference, candidate; and with context")
        return inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A cohort as it is pinned on disk."""

    name: str
    role: CohortRole
    source: str
    """Where the texts come from, in words."""

    licence: str
    """What may be done with them, in words."""

    citation: str
    language: str
    """ISO 639-1 code, or ``"mixed"``."""

    not_coded: bool
    """The reference comes from coding: nothing coded is weaker than absent."""

    not_comparable: Mapping[str, str]
    """Label id to why the reference cannot judge it; every evaluation says so."""

    pseudonym_key: str
    """Fingerprint of the key the patients were pseudonymised with; may be empty."""

    cases: tuple[CohortCase, ...]
    """In import order."""

    digest: str
    """Sha256 over case ids and text digests, in order."""

    inputs: tuple[str, ...] = REPORT_INPUTS
    """Names of the texts of a case, which a prompt may ask for."""

    @property
    def holds_pairs(self) -> bool:
        """Whether a case is a reference and a candidate."""
        return self.inputs != REPORT_INPUTS

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids in import order."""
        return tuple(case.case_id for case in self.cases)

    @property
    def patients_known(self) -> bool:
        """Whether every case names its patient."""
        return bool(self.cases) and all(case.patient for case in self.cases)

    @property
    def synthetic(self) -> bool:
        """Whether the source says that the texts were made up."""
        return "synthetic" in self.source.casefold()


def check_name(name: str) -> str:
    """Return `name` if it can be a cohort's name.

    Raises
    ------
    DataError
        It would be awkward or unsafe as a file name.
    """
    if _NAME.fullmatch(name) is None or ".." in name:
        raise DataError(
            f"{quoted(name)} cannot be the name of a cohort. Use 1 to 64 lower-case "
            "letters, digits, '-', '_' or '.', beginning with a letter or digit."
        )
    return name


def cohort_folder(workspace: WorkspacePaths, name: str) -> Path:
    """Folder with the open part of cohort `name`."""
    return workspace.cohorts / check_name(name)


def texts_path(workspace: WorkspacePaths, name: str) -> Path:
    """File with the texts of cohort `name`, in the private store."""
    return workspace.private / "cases" / f"{check_name(name)}.jsonl"


def list_cohorts(workspace: WorkspacePaths) -> tuple[str, ...]:
    """Return the names of all cohorts, sorted."""
    files = workspace.cohorts.glob("*/cohort.yaml")
    return tuple(sorted(f.parent.name for f in files if _NAME.fullmatch(f.parent.name)))


def read_cohort_file(workspace: WorkspacePaths, name: str) -> CohortFile:
    """Return ``cohort.yaml`` of cohort `name`.

    Raises
    ------
    DataError
        There is no such cohort, or its file is malformed.
    """
    path = cohort_folder(workspace, name) / "cohort.yaml"
    if not path.is_file():
        known = ", ".join(list_cohorts(workspace)) or "none yet"
        raise DataError(
            f"no cohort {name!r} in {workspace.cohorts} (found: {known}). Correct the "
            f"name, or import it with `ranloop cohort import FILE --name {name}`."
        )
    return read_model(path, CohortFile)


def read_cohort(
    workspace: WorkspacePaths, name: str, *, record: CohortRecord | None = None
) -> Cohort:
    """Return cohort `name` after checking that it is the one that was imported.

    Parameters
    ----------
    record
        What the ledger recorded of it, where the caller has it already.

    Raises
    ------
    DataError
        There is no such cohort, a file is malformed or was edited, or the ledger has
        no entry of the import.
    LedgerError
        The ledger is broken.
    """
    about = read_cohort_file(workspace, name)
    folder = cohort_folder(workspace, name)
    path = folder / "cases.csv"
    cases = _read_cases(path, about.inputs)
    digest = cases_digest(cases)
    if digest != about.digest or len(cases) != about.cases:
        raise DataError(
            f"{path} was changed after the import: {len(cases)} cases with digest "
            f"{digest[:12]}, cohort.yaml says {about.cases} with {about.digest[:12]}. "
            "Restore the file, or import the cohort again under another name."
        )
    record = record or read_record(workspace, name)
    require_recorded(about, folder / "cohort.yaml", record)
    _require(path, "cases_sha256", digest_cases_file(path), record)
    return make_cohort(about, cases)


def make_cohort(about: CohortFile, cases: Iterable[CohortCase]) -> Cohort:
    """Return the cohort that `about` describes; nothing is checked."""
    return Cohort(
        name=about.name,
        role=about.role,
        source=about.source,
        licence=about.licence,
        citation=about.citation,
        language=about.language,
        not_coded=about.not_coded,
        not_comparable=about.not_comparable,
        pseudonym_key=about.pseudonym_key,
        cases=tuple(cases),
        digest=about.digest,
        inputs=tuple(about.inputs),
    )


def format_cohort_file(about: CohortFile) -> str:
    """Return ``cohort.yaml`` as text; what is as by default is left out."""
    empty = set() if about.not_comparable else {"not_comparable"}
    if tuple(about.inputs) == REPORT_INPUTS:
        empty.add("inputs")
    return dump_yaml(about.model_dump(mode="json", exclude=empty))


def recorded_fields(about: CohortFile) -> dict[str, object]:
    """Return what the ledger records of ``cohort.yaml``: what changes a claim."""
    recorded: dict[str, object] = {
        "role": about.role.value,
        "not_coded": about.not_coded,
        "pseudonym_key": about.pseudonym_key,
        "cases": about.cases,
        "cohort_digest": about.digest,
    }
    if about.not_comparable:
        recorded["not_comparable"] = " ".join(sorted(about.not_comparable))
        recorded[_REASONS] = digest_json(about.not_comparable)
    if tuple(about.inputs) != REPORT_INPUTS:
        recorded["inputs"] = " ".join(about.inputs)
    return recorded


_REASONS = "not_comparable_sha256"
"""Digest of the labels that the reference cannot judge, with the reasons."""


def _to_check(about: CohortFile, record: CohortRecord) -> dict[str, object]:
    """Return what ``cohort.yaml`` says of each field that must be as recorded."""
    fields = recorded_fields(about)
    for name in ("not_comparable", _REASONS):
        if name in record.added:
            fields.setdefault(name, "")
    if "inputs" in record.added:
        fields.setdefault("inputs", " ".join(REPORT_INPUTS))
    if "not_comparable" in record.added and _REASONS not in record.added:
        # An import that recorded the labels without their reasons.
        fields.pop(_REASONS, None)
    return fields


def as_recorded(about: CohortFile, record: CohortRecord | None) -> bool:
    """Whether ``cohort.yaml`` says what was recorded; its cases are not looked at."""
    return record is not None and (
        _to_check(about, record).items() <= record.added.items()
    )


def require_recorded(about: CohortFile, path: Path, record: CohortRecord) -> None:
    """Refuse a ``cohort.yaml`` that does not say what was recorded at the import.

    Raises
    ------
    DataError
        A field differs; names the file and the field.
    """
    if record.retired and about.role is CohortRole.HOLDOUT:
        raise DataError(
            f"{path}: holdout {record.name!r} was retired, and that was interrupted. "
            f"Run `ranloop cohort retire {record.name} --why REASON` again."
        )
    for name, found in _to_check(about, record).items():
        _require(path, name, found, record)


def digest_cases_file(path: Path) -> str:
    """Sha256 of ``cases.csv``: ids, patients and text digests, 64 hex characters."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require(path: Path, name: str, found: object, record: CohortRecord) -> None:
    again = "import the cohort again with --replace."
    if name not in record.added:
        raise DataError(
            f"{path}, {name}: the ledger entry of the import, made by an earlier "
            f"ranloop, did not record it, so it cannot be checked. To go on, {again}"
        )
    recorded = record.added[name]
    if found != recorded:
        raise DataError(
            f"{path}, {name}: is {_short(found)} now, but the ledger recorded "
            f"{_short(recorded)} at the import. Restore the file, or {again}"
        )


def _short(value: object) -> str:
    return repr(value[:12] if isinstance(value, str) else value)


def has_texts(workspace: WorkspacePaths, name: str) -> bool:
    """Whether the texts of cohort `name` are on this machine."""
    return texts_path(workspace, name).is_file()


def iter_items(workspace: WorkspacePaths, cohort: Cohort) -> Iterator[Item]:
    """Yield the cases of `cohort` as items, in order, one in memory at a time.

    ``variables`` are the texts by the cohort's inputs: ``{"text": ...}`` for a report.
    All of them are checked against the digest of the case.

    Raises
    ------
    DataError
        The texts are not on this machine, or are not the pinned ones.
    """
    path = texts_path(workspace, cohort.name)
    again = "Import the cohort again from its source with --replace."
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise DataError(
            f"the texts of cohort {cohort.name!r} are not on this machine: {path} does "
            "not exist (texts are private and do not travel with the cohort). "
            f"{again}"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    done, count = 0, len(cohort.cases)
    with stream:
        for line in stream:
            if done == count:
                raise DataError(f"{path} holds more than {count} cases. {again}")
            item, case = _read_item(line), cohort.cases[done]
            done += 1
            if item is None or item.id != case.case_id or not _intact(item, case):
                raise DataError(
                    f"{path}, line {done}: not the text of case {quoted(case.case_id)} "
                    f"that was imported. {again}"
                )
            yield item
    if done < count:
        raise DataError(f"{path} ends after {done} of {count} cases. {again}")


def find_item(workspace: WorkspacePaths, name: str, case_id: str) -> Item:
    """Return one case of cohort `name`, checked against its digest.

    Searched for and not read up to: a cohort may have 227,000 cases.

    Raises
    ------
    DataError
        There is no such case, its text is not on this machine, or it is not the pinned
        one.
    """
    listed = cohort_folder(workspace, name) / "cases.csv"
    head = format_csv((), [[case_id]], end=",").encode()
    row = _find_line(listed, head, header=True)
    if row is None:
        raise DataError(
            f"cohort {name} has no case {quoted(case_id)}. See its ids in {listed}."
        )
    path = texts_path(workspace, name)
    again = "Import the cohort again from its source with --replace."
    if not path.is_file():
        raise DataError(
            f"the texts of cohort {name!r} are not on this machine: {path} does not "
            f"exist (texts are private and do not travel with the cohort). {again}"
        )
    head = json.dumps({"case_id": case_id}, ensure_ascii=False)[:-1].encode() + b","
    line = _find_line(path, head)
    item = None if line is None else _read_item(line)
    (cells,) = csv.reader([row.decode("utf-8", "replace")])
    width = len(PAIR_COLUMNS if item and "text" not in item.variables else CASE_COLUMNS)
    case = _case(cells, listed, 0, width)
    if item is None or item.id != case_id or not _intact(item, case):
        raise DataError(
            f"{path} does not hold the text of case {quoted(case_id)} that was "
            f"imported. {again}"
        )
    return item


def _find_line(path: Path, head: bytes, *, header: bool = False) -> bytes | None:
    """Return the first line of a file that begins with `head`; None without one.

    With a `header` the file's first line is none of them.
    """
    try:
        with path.open("rb") as stream:
            if stream.read(len(head)) == head and not header:
                return head + stream.readline()
            if not path.stat().st_size:
                return None
            with mmap(stream.fileno(), 0, access=ACCESS_READ) as content:
                at = content.find(b"\n" + head)
                content.seek(at + 1)
                return None if at < 0 else content.readline()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def case_line(item: Item) -> bytes:
    """Return the line of the texts file for `item`."""
    texts = dict(item.variables)
    named = texts if texts.keys() == {"text"} else {"texts": texts}
    data = {"case_id": item.id, **named, "language": item.language}
    return json.dumps(data, ensure_ascii=False).encode("utf-8") + b"\n"


def cases_digest(cases: Iterable[CohortCase]) -> str:
    """Sha256 over ids and text digests; role, patients and words do not matter."""
    digest = hashlib.sha256()
    for case in cases:
        digest.update(f"{len(case.case_id)}:{case.case_id}{case.sha256}\n".encode())
    return digest.hexdigest()


def _intact(item: Item, case: CohortCase) -> bool:
    return digest_texts(item.variables) == case.sha256


def report_texts(item: Item) -> tuple[str, ...]:
    """Return every report of a case, without the context: one, or those of a pair."""
    return tuple(text for name, text in item.variables.items() if name != CONTEXT)


def single_report(item: Item) -> str:
    """Return the report of a case that is one report.

    Raises
    ------
    DataError
        The case is a pair.
    """
    if "text" not in item.variables:
        raise DataError(
            f"case {quoted(item.id)} is a pair of reports "
            f"({', '.join(item.variables)}), and this works on single reports. Name a "
            "cohort of reports; `ranloop cohort show` lists what cohorts hold."
        )
    return item.variables["text"]


def require_reports(cohort: Cohort, what: str) -> None:
    """Refuse a cohort of pairs where a case must be one report.

    Parameters
    ----------
    what
        What works on single reports only, for the message.

    Raises
    ------
    DataError
        It holds pairs.
    """
    if cohort.holds_pairs:
        raise DataError(
            f"cohort {cohort.name!r} holds pairs of reports "
            f"({', '.join(cohort.inputs)}); {what} works on single reports. Name a "
            "cohort of reports; `ranloop cohort show` lists what cohorts hold."
        )


def require_inputs(cohort: Cohort, prompt: str, inputs: Sequence[str]) -> None:
    """Refuse a prompt that reads what the cases of `cohort` do not have.

    Parameters
    ----------
    prompt
        Reference of the version, for the message.
    inputs
        Inputs of the version.

    Raises
    ------
    DataError
        One is not among those of the cohort; names both.
    """
    # What is known of a patient is optional: a prompt has a place for it.
    if set(inputs) - {CONTEXT} <= set(cohort.inputs):
        return
    raise DataError(
        f"{prompt} reads {', '.join(inputs)}, and the cases of cohort {cohort.name!r} "
        f"have {', '.join(cohort.inputs)}. Name a cohort with these inputs; `ranloop "
        "cohort show` lists what cohorts hold."
    )


def _read_item(line: bytes) -> Item | None:
    """Return one line of the texts file, or None when it is not such a line."""
    try:
        data = json.loads(line)
        text, language = data.get("text"), data["language"]
        # Reports first, since cohorts of them are a hundred times larger.
        texts = {"text": text} if isinstance(text, str) else data["texts"]
        if isinstance(language, str) and (
            text or set(map(type, texts.values())) == {str}
        ):
            return Item(id=data["case_id"], variables=texts, language=language)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None


def case_columns(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of ``cases.csv`` of a cohort with these inputs."""
    return CASE_COLUMNS if tuple(inputs) == REPORT_INPUTS else PAIR_COLUMNS


def _read_cases(path: Path, inputs: Sequence[str]) -> tuple[CohortCase, ...]:
    """Read ``cases.csv`` without pydantic: a cohort may have 227,000 cases."""
    columns = case_columns(inputs)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            if tuple(next(rows, ())) != columns:
                raise DataError(
                    f"{path}, line 1: the columns are not {','.join(columns)}. "
                    "Restore the file."
                )
            width = len(columns)
            return tuple(_case(row, path, rows.line_num, width) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"cannot read {path}: {type(error).__name__}. Restore the file."
        ) from error


def _case(row: list[str], path: Path, line: int, width: int) -> CohortCase:
    if len(row) != width:
        raise DataError(f"{path}, line {line}: not {width} cells. Restore the file.")
    return CohortCase(*row)


HOLDOUT = "holdout"
RETIRED = "dev"
"""Role of a holdout that was retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortRecord:
    """The last import of a cohort and what was recorded of it since."""

    name: str
    added: Mapping[str, Any]
    """Payload of its ``cohort_added`` entry; a retired holdout has the role it has
    since."""

    references: Mapping[int, Mapping[str, Any]]
    """Reference number to the payload that recorded it last, in order of recording."""

    ratings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Number of a version of experts' ratings to the payload that recorded it."""

    samples: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Number of a value sample to the payload that recorded it."""

    @property
    def votes(self) -> str | None:
        """Digest of the votes that made a reference last, or None without any."""
        digests = [p["votes"] for p in self.references.values() if "votes" in p]
        return str(digests[-1]) if digests else None

    @property
    def newest(self) -> int:
        """Highest reference number that was ever recorded; 0 without any."""
        return max(self.references, default=0)

    @property
    def newest_digest(self) -> str | None:
        """Digest of what its cases are held against; None without any.

        That is the newest reference version, or of pairs the newest ratings.
        """
        newest = self.references.get(self.newest) or self.ratings.get(
            max(self.ratings, default=0), {}
        )
        digest = newest.get("digest")
        return None if digest is None else str(digest)

    def origin(self, number: int) -> int:
        """Return the version that corrections, one after the other, made `number` of.

        Raises
        ------
        LedgerError
            One is said to correct itself or a later one: no ranloop wrote that.
        """
        while "corrects" in (payload := self.references.get(number, {})):
            earlier = payload["corrects"]
            if type(earlier) is not int or not 0 < earlier < number:
                raise LedgerError(
                    f"the ledger says that {self.name}:ref{number} corrects "
                    f"{quoted(earlier)}, which is no earlier version. Restore the "
                    "ledger from your backup or version control."
                )
            number = earlier
        return number

    @property
    def not_comparable(self) -> frozenset[str]:
        """Labels that its reference cannot judge."""
        return frozenset(str(self.added.get("not_comparable", "")).split())

    def gave_reasons(self, reasons: Mapping[str, str]) -> bool:
        """Whether `reasons` are why its reference cannot judge labels.

        Label ids alone are compared where the import recorded no more.
        """
        same = self.not_comparable == set(reasons)
        return same and self.added.get(_REASONS) in (None, digest_json(dict(reasons)))

    @property
    def is_holdout(self) -> bool:
        """Whether its labels and votes are sealed."""
        return self.added.get("role") == HOLDOUT

    @property
    def retired(self) -> bool:
        """Whether it was a holdout and was given up."""
        return self.added.get("retired") is True


def find_record(entries: Sequence[LedgerEntry], name: str) -> CohortRecord | None:
    """Return what `entries` hold of cohort `name`, or None when it was never added.

    What was recorded before the last import belongs to a cohort that it replaced.
    """
    added: Mapping[str, Any] | None = None
    references: dict[int, Mapping[str, Any]] = {}
    ratings: dict[int, Mapping[str, Any]] = {}
    samples: dict[int, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.action == "cohort_added" and entry.subject == name:
            added, references, ratings, samples = entry.payload, {}, {}, {}
        elif entry.action == "holdout_retired" and entry.subject == name and added:
            added = {**added, "role": RETIRED, "retired": True}
            plain = entry.payload.get("digests", {})
            references = {n: _in_plain(p, plain) for n, p in references.items()}
            ratings = {n: _in_plain(p, plain) for n, p in ratings.items()}
        elif entry.action == "ratings_added" and entry.payload.get("cohort") == name:
            ratings[int(entry.payload["number"])] = entry.payload
        elif entry.action == "sample_drawn" and entry.payload.get("cohort") == name:
            samples[int(entry.payload["number"])] = entry.payload
        elif (
            entry.action == "reference_revised" and entry.payload.get("cohort") == name
        ):
            number = int(entry.payload["number"])
            references.pop(number, None)
            references[number] = entry.payload
    if added is None:
        return None
    return CohortRecord(
        name=name,
        added=added,
        references=references,
        ratings=ratings,
        samples=samples,
    )


def _in_plain(
    payload: Mapping[str, Any], plain: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return what was recorded of a version, with digests that need no key."""
    digests = {
        key: plain.get(str(payload[key]), payload[key])
        for key in ("digest", "votes", "ratings", "errors", "findings")
        if key in payload
    }
    return {**payload, **digests}


def read_record(workspace: WorkspacePaths, name: str) -> CohortRecord:
    """Return what the ledger recorded of cohort `name`.

    Raises
    ------
    DataError
        There is no such cohort, or the ledger recorded nothing of it: copied here
        without its ledger, or made by hand.
    LedgerError
        The ledger is broken.
    """
    record = find_record(read_ledger(workspace.ledger), name)
    if record is None:
        # A name that is misspelled is no cohort without its ledger.
        read_cohort_file(workspace, name)
        raise DataError(
            f"{workspace.ledger} has no entry cohort_added of cohort {name!r}: nothing "
            "shows that its role and cases are those it was imported with. Bring the "
            "ledger along with which it was made, or import it again with --replace."
        )
    return record

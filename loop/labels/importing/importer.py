"""From a source to a cohort: texts to the private store, digests into the open.

All or nothing: a cohort is built beside its final place and moved there in one go, and
until the last rename and the ledger entry it does not exist.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import digest_text, digest_texts
from loop.core.errors import DataError, LoopError
from loop.core.files import (
    folder_beside,
    locked,
    make_folder,
    sync_folder,
    write_atomic,
    write_error,
)
from loop.core.ledger import Actor, Event, append_events
from loop.core.paths import WorkspacePaths
from loop.core.records import Item, Mark, ValueCode
from loop.core.safe_text import format_csv, quoted
from loop.labels.cohort import (
    Cohort,
    CohortCase,
    CohortFile,
    CohortRole,
    SourceFile,
    case_columns,
    case_line,
    cases_digest,
    check_name,
    cohort_folder,
    digest_cases_file,
    format_cohort_file,
    make_cohort,
    recorded_fields,
    texts_path,
)
from loop.labels.error_categories import read_errors
from loop.labels.expert_ratings import (
    Judgements,
    RatingsReport,
    check_judgements,
    ratings_event,
    report_of,
    stage_ratings,
)
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.mimic import open_folder
from loop.labels.importing.openi import (
    OPENI,
    crosswalk_digest,
    is_openi,
    open_openi,
    read_mesh_crosswalk,
)
from loop.labels.importing.radpref_files import RADPREF, is_radpref, open_radpref
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import NAMED_BY, ImportOptions, Source, SourceCase
from loop.labels.importing.table_files import (
    open_csv,
    open_excel,
    open_frame,
    open_jsonl,
    open_parquet,
    read_header,
)
from loop.labels.pseudonyms import Pseudonyms, open_pseudonyms
from loop.labels.reference import CODES, format_reference, reference_path, version_event
from loop.labels.sealing import label_digest, write_labels
from loop.labels.taxonomy import read_taxonomy

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of a source."""

    cohort: str
    role: str
    format: str
    cases: int
    """Cases in the cohort."""

    digest: str
    non_chest: int
    """Excluded: another region was examined."""

    empty: int
    """Excluded: no findings and no impression."""

    unusable: Mapping[str, int]
    """Excluded for another reason: ``not indexed``, ``on request``."""

    duplicates: int
    """Kept: cases whose text, folded, an earlier case already has."""

    examples: Mapping[str, tuple[str, ...]]
    """Up to ten case ids for each of the above."""

    languages: Mapping[str, int]
    """Cases by language: ISO 639 code, ``und`` when it was not recognised."""

    no_cues: tuple[str, ...]
    """Those languages that the engine ``rules`` has no cues for."""

    patients: int
    """Distinct patients; 0 when none is known."""

    inputs: tuple[str, ...]
    """Names of the texts of a case: ``text``, or those of a pair."""

    references: int
    """Distinct references of a cohort of pairs; 0 for one of reports."""

    systems: Mapping[str, int]
    """Pairs by the system that wrote the candidate; empty for reports."""

    silent: int
    """Pairs whose candidate is empty: kept, since a system may have said nothing."""

    ratings: RatingsReport | None
    """What became of the raters' points and marks that the source carries, if any."""

    reference: int | None
    """Number of the reference made from label columns, or None."""

    unknown: tuple[str, ...]
    """Labels of the taxonomy that the reference has no column for: never absent."""

    missing_marks: int
    """Label cells that were empty: recorded as missing, never as absent."""

    columns: Mapping[str, str]
    """Column to what it is taken for: a role (``case_id``, ``text``) or a label id."""

    unused: tuple[str, ...]
    """Columns that were not used."""

    numbered: bool
    """Whether the case ids are numbers of rows."""

    licence: str
    citation: str


@dataclass(slots=True, kw_only=True)
class _Gathered:
    """What is kept of the cases while their texts stream to disk."""

    cases: list[CohortCase] = field(default_factory=list)
    marks: array[int] = field(default_factory=lambda: array("b"))
    languages: Counter[str] = field(default_factory=Counter)
    silent: int = 0


def import_cohort(
    workspace: WorkspacePaths,
    source: Path | DataFrame,
    options: ImportOptions,
    *,
    actor: Actor,
    now: Clock = utc_now,
    watch: Callable[[Iterable[SourceCase]], Iterable[SourceCase]] = iter,
) -> ImportReport:
    """Import `source` as a new cohort and return what became of it.

    Label columns become reference v1, points and marks of raters ratings v1. The cases
    pass through `watch`, which may show
    how many have.

    Parameters
    ----------
    source
        A file, a folder of text files, or a pandas DataFrame with the columns that a
        file would have; see `loop.labels.importing.source.describe_columns`.

    Raises
    ------
    DataError
        The source is wrong, holds no usable case, or the cohort exists; nothing was
        imported.
    WriteError
        The workspace cannot be written; nothing was imported.
    """
    check_name(options.name)
    _check_role(options.role)
    opened = open_source(source, options, workspace.labels)
    opened = replace(opened, cases=watch(opened.cases))
    pseudonyms = open_pseudonyms(workspace)
    lock = workspace.private / "locks" / f"cohort-{options.name}.lock"
    with locked(lock), _staged(workspace, options) as (folder, texts):
        screening = Screening(options, read_taxonomy(workspace.labels).region)
        gathered = _write_texts(texts, opened, screening, pseudonyms)
        screening.require_excluded()
        if not gathered.cases:
            raise DataError(
                f"{_call(source)}: no case to import ({screening.summary()}). Check "
                "that this is the right file and that its text columns are filled."
            )
        about = _about(options, opened, gathered, screening)
        about = about.model_copy(
            update={
                "pseudonym_key": pseudonyms.fingerprint,
                "imported": format_time(now()),
            }
        )
        _write_open_part(folder, about, gathered.cases)
        with _published(workspace, options.name, folder, texts, now):
            number = _record(workspace, opened, gathered, about, actor, options)
    no_cues = _without_cues(workspace, gathered.languages)
    report = _report(opened, gathered, screening, about, number, no_cues)
    cohort = make_cohort(about, gathered.cases)
    given = _judgements(opened, cohort, options)
    if given is not None:
        report = replace(report, ratings=report_of(1, given, cohort))
    known = read_taxonomy(workspace.labels).ids if opened.labels else ()
    unknown = tuple(name for name in known if name not in opened.labels)
    return replace(report, unknown=unknown)


def _check_role(name: str) -> None:
    if name not in tuple(CohortRole):
        raise DataError(f"no role {quoted(name)}. Use one of {', '.join(CohortRole)}.")


def _write_texts(
    path: Path, source: Source, screening: Screening, pseudonyms: Pseudonyms
) -> _Gathered:
    """Stream the cases that pass to `path`, mode 0600, and gather the rest."""
    gathered = _Gathered()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        stream = os.fdopen(handle, "wb")
    except OSError as error:
        raise write_error(path, error) from error
    try:
        with stream:
            for case in screening.passed(source.cases):
                item = Item(
                    id=case.case_id,
                    variables=case.texts,
                    language=case.language,
                )
                _write_line(stream, item, path)
                gathered.cases.append(
                    CohortCase(
                        case.case_id,
                        pseudonyms.of(case.patient),
                        digest_texts(case.texts),
                        case.system,
                        case.reference_id or _name_reference(case),
                    )
                )
                gathered.marks.extend(
                    CODES[case.marks.get(label, Mark.MISSING)]
                    for label in source.labels
                )
                gathered.languages[case.language] += 1
                gathered.silent += bool(case.pair) and not case.pair["candidate"]
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise write_error(path, error) from error
    return gathered


def _name_reference(case: SourceCase) -> str:
    """Return a name for the reference of a pair: equal texts have the same."""
    return digest_text(case.pair["reference"])[:16] if case.pair else ""


def _write_line(stream: io.BufferedWriter, item: Item, path: Path) -> None:
    try:
        stream.write(case_line(item))
    except UnicodeEncodeError as error:
        raise DataError(
            f"case {quoted(item.id)}: the text contains an unpaired "
            "surrogate. Export the source again as UTF-8."
        ) from error
    except OSError as error:
        raise write_error(path, error) from error


def _about(
    options: ImportOptions, source: Source, gathered: _Gathered, screening: Screening
) -> CohortFile:
    """Return the content of ``cohort.yaml``."""
    languages = gathered.languages
    return CohortFile(
        name=options.name,
        role=CohortRole(options.role),
        source=options.source or source.source or "not stated",
        licence=options.licence or source.licence or "not stated",
        citation=source.citation,
        language=next(iter(languages)) if len(languages) == 1 else "mixed",
        inputs=list(source.inputs),
        cases=len(gathered.cases),
        digest=cases_digest(gathered.cases),
        not_coded=source.not_coded or ValueCode.NOT_CODED in gathered.marks,
        not_comparable=dict(source.not_comparable),
        format=source.format,
        files=[SourceFile(name=name, sha256=digest) for name, digest in source.files],
        excluded=dict(sorted(screening.excluded.items())),
        counted={
            "duplicate_texts": screening.duplicates,
            **({"numbered_rows": screening.seen} if options.number_rows else {}),
        },
    )


def _write_open_part(folder: Path, about: CohortFile, cases: list[CohortCase]) -> None:
    columns = case_columns(about.inputs)
    rows = (case[: len(columns)] for case in cases)
    write_atomic(folder / "cases.csv", format_csv(columns, rows, end="\n"))
    write_atomic(folder / "cohort.yaml", format_cohort_file(about))


def _record(
    workspace: WorkspacePaths,
    source: Source,
    gathered: _Gathered,
    about: CohortFile,
    actor: Actor,
    options: ImportOptions,
) -> int | None:
    """Write reference v1 or ratings v1, and all ledger entries in one go."""
    names = ", ".join(file.name for file in about.files) or "a folder"
    event = Event(
        action="cohort_added",
        subject=about.name,
        reason=options.reason or f"imported from {names}",
        payload={
            **recorded_fields(about),
            "cases_sha256": digest_cases_file(
                cohort_folder(workspace, about.name) / "cases.csv"
            ),
            "format": about.format,
            "files": {file.name: file.sha256 for file in about.files},
            "excluded": about.excluded,
            **({"part": options.part} if options.part else {}),
            **(
                {"numbered_rows": about.counted["numbered_rows"]}
                if "numbered_rows" in about.counted
                else {}
            ),
            **_crosswalk(workspace, about.format),
        },
    )
    cohort = make_cohort(about, gathered.cases)
    given = _judgements(source, cohort, options)
    if given is not None:
        _record_ratings(workspace, cohort, given, event, actor)
        return None
    if not source.labels:
        append_events(workspace.ledger, (event,), actor)
        return None
    marks = np.frombuffer(gathered.marks, dtype=np.int8)
    raw = format_reference(
        [case.case_id for case in gathered.cases],
        source.labels,
        marks.reshape(about.cases, len(source.labels)),
    )
    path = reference_path(workspace, about.name, 1)
    sealed = about.role is CohortRole.HOLDOUT
    write_labels(workspace, path, raw, sealed=sealed)
    digest = label_digest(workspace, raw, sealed=sealed)
    made = version_event(
        about.name,
        about.digest,
        1,
        digest,
        reason="label columns of the source",
        facts={},
    )
    append_events(workspace.ledger, (event, made), actor)
    return 1


def _judgements(
    source: Source, cohort: Cohort, options: ImportOptions
) -> Judgements | None:
    """Return what raters say of the pairs that were taken; None where it is nothing."""
    if source.judgements is None:
        return None
    given = source.judgements.of(cohort.case_ids, options.id_prefix)
    return given if given.ratings or given.errors else None


def _record_ratings(
    workspace: WorkspacePaths,
    cohort: Cohort,
    given: Judgements,
    event: Event,
    actor: Actor,
) -> None:
    """Write ratings v1 of a source that carries them, and both ledger entries."""
    check_judgements(cohort, given, read_errors(workspace.labels))
    staged = stage_ratings(workspace, cohort, given, 1)
    made = ratings_event(cohort, staged, "ratings of the source")
    try:
        append_events(workspace.ledger, (event, made), actor)
    except LoopError:
        staged.remove()
        raise


def _crosswalk(workspace: WorkspacePaths, form: str) -> dict[str, str]:
    """Return the digest of the rules that made labels of codes, where there are any."""
    if form != OPENI:
        return {}
    return {"crosswalk_digest": crosswalk_digest(workspace.labels)}


def _without_cues(
    workspace: WorkspacePaths, languages: Iterable[str]
) -> tuple[str, ...]:
    cues = workspace.labels / "cues"
    return tuple(code for code in languages if not (cues / f"{code}.yaml").is_file())


def _report(
    source: Source,
    gathered: _Gathered,
    screening: Screening,
    about: CohortFile,
    number: int | None,
    no_cues: tuple[str, ...],
) -> ImportReport:
    excluded = dict(screening.excluded)
    patients = {case.patient for case in gathered.cases} - {""}
    return ImportReport(
        cohort=about.name,
        role=about.role.value,
        format=about.format,
        cases=about.cases,
        digest=about.digest,
        non_chest=excluded.pop("non-chest", 0),
        empty=excluded.pop("empty", 0),
        unusable=excluded,
        duplicates=screening.duplicates,
        examples={kind: tuple(ids) for kind, ids in screening.examples.items()},
        languages=dict(gathered.languages),
        no_cues=no_cues,
        patients=len(patients),
        inputs=tuple(about.inputs),
        references=len({case.reference_id for case in gathered.cases} - {""}),
        systems=_count_systems(gathered.cases),
        silent=gathered.silent,
        ratings=None,
        reference=number,
        unknown=(),
        missing_marks=gathered.marks.count(ValueCode.MISSING),
        columns=dict(source.columns),
        unused=source.unused,
        numbered="numbered_rows" in about.counted,
        licence=about.licence,
        citation=about.citation,
    )


def _count_systems(cases: Iterable[CohortCase]) -> dict[str, int]:
    pairs = (case.system for case in cases if case.reference_id)
    return dict(sorted(Counter(pairs).items()))


FORMATS = ("csv", "jsonl", "parquet", "excel", "openi", "mimic", RADPREF)
_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
}


_BINARY = {"parquet": open_parquet, "excel": open_excel}


def _call(source: Path | DataFrame) -> str:
    """Return what a source is called in messages."""
    return str(source) if isinstance(source, Path) else "DataFrame"


def open_source(
    source: Path | DataFrame, options: ImportOptions, labels_folder: Path
) -> Source:
    """Return `source` opened with the importer that `options` names, or that fits.

    Raises
    ------
    DataError
        There is no such file, its format is unknown, or its header is wrong.
    """
    taxonomy = read_taxonomy(labels_folder)
    if not isinstance(source, Path):
        return _number(open_frame(source, taxonomy, options), options)
    path = source
    # Not `Path.exists`: it raises where a folder above may not be entered.
    if not os.path.exists(path):
        raise DataError(
            f"{path} does not exist, or a folder above it may not be entered. Check "
            "the path."
        )
    kind = options.format if options.format != "auto" else _guess(path, options)
    asked = ", ".join(
        [
            *(NAMED_BY[role] for role in options.columns),
            *(["--number-rows"] if options.number_rows else []),
            *(["--value"] if options.values else []),
        ]
    )
    if asked and kind in ("mimic", "openi", RADPREF):
        raise DataError(
            f"{path}: {asked} is for tables, and this is read as {kind}. Leave it out, "
            "or for a CSV file name --format csv."
        )
    if kind == "mimic":
        return open_folder(path, options.encoding)
    if kind == RADPREF:
        return open_radpref(path)
    if kind == "openi":
        crosswalk = read_mesh_crosswalk(labels_folder, taxonomy)
        return open_openi(path, options.encoding, taxonomy, crosswalk)
    if kind in _BINARY:
        return _number(_BINARY[kind](path, taxonomy, options), options)
    if kind == "jsonl":
        opened = open_jsonl(path, options.encoding, taxonomy, options)
        return _number(opened, options)
    if kind == "csv":
        opened = open_csv(path, options.encoding, taxonomy, options)
        return _number(opened, options)
    raise DataError(f"no format {quoted(kind)}. Use one of auto, {', '.join(FORMATS)}.")


def _number(source: Source, options: ImportOptions) -> Source:
    """Return `source` with the numbers of its rows as case ids, where asked for."""
    if not options.number_rows:
        return source
    cases = (
        replace(case, case_id=f"row-{number:06d}")
        for number, case in enumerate(source.cases, 1)
    )
    return replace(source, cases=cases)


def _guess(path: Path, options: ImportOptions) -> str:
    if path.is_dir():
        return RADPREF if is_radpref(path) else "mimic"
    kind = _BY_SUFFIX.get(path.suffix.lower(), "")
    if not kind:
        raise DataError(
            f"{path}: cannot tell its format from its name. Name it with --format "
            f"({', '.join(FORMATS)}), or give a folder of .txt files."
        )
    if kind == "csv":
        encoding = find_encoding(path, options.encoding).name
        return "openi" if is_openi(read_header(path, encoding)) else "csv"
    return kind


@contextmanager
def _staged(
    workspace: WorkspacePaths, options: ImportOptions
) -> Iterator[tuple[Path, Path]]:
    """Yield a hidden folder and texts file beside their final places."""
    name = options.name
    if cohort_folder(workspace, name).exists() and not options.replace:
        raise DataError(
            f"cohort {name!r} already exists in {workspace.cohorts}. Choose another "
            "name, or use --replace; the old one is then kept in .ranloop/replaced/."
        )
    texts = texts_path(workspace, name)
    staging = texts.with_name(f".{name}.importing")
    make_folder(workspace.cohorts)
    make_folder(texts.parent, mode=0o700)
    with folder_beside(cohort_folder(workspace, name), "importing") as folder:
        folder.chmod(0o755)
        try:
            yield folder, staging
        finally:
            staging.unlink(missing_ok=True)


@contextmanager
def _published(
    workspace: WorkspacePaths, name: str, folder: Path, texts: Path, now: Clock
) -> Iterator[None]:
    """Move the staged cohort into place; move everything back if the block fails."""
    finals = (cohort_folder(workspace, name), texts_path(workspace, name))
    moved: list[tuple[Path, Path]] = []
    try:
        if any(final.exists() for final in finals):
            attic = _make_attic(workspace, name, now())
            for final, kept in zip(finals, ("cohort", "texts.jsonl"), strict=True):
                if final.exists():
                    _move(final, attic / kept, moved)
        for path, final in zip((folder, texts), finals, strict=True):
            _move(path, final, moved)
            sync_folder(final.parent)
        yield
    except BaseException:
        for origin, place in reversed(moved):
            with suppress(OSError):
                shutil.move(place, origin)
        raise


def _make_attic(workspace: WorkspacePaths, name: str, now: datetime) -> Path:
    """Make a private folder for what is replaced; its random suffix is no other's."""
    parent = workspace.private / "replaced"
    make_folder(parent, mode=0o700)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    try:
        return Path(tempfile.mkdtemp(dir=parent, prefix=f"{name}-{stamp}-"))
    except OSError as error:
        raise write_error(parent, error) from error


def _move(origin: Path, place: Path, moved: list[tuple[Path, Path]]) -> None:
    try:
        shutil.move(origin, place)
    except OSError as error:
        raise write_error(place, error) from error
    moved.append((origin, place))

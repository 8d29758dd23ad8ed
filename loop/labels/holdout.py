"""A holdout's labels sealed where they lie in plain, and a holdout given up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.ballots import votes_lock, votes_path
from loop.labels.cohort import (
    RETIRED,
    CohortRecord,
    CohortRole,
    cohort_folder,
    format_cohort_file,
    read_cohort_file,
    read_record,
)
from loop.labels.expert_ratings import expert_files, ratings_lock
from loop.labels.reference import list_references, reference_path, version_lock
from loop.labels.sealing import (
    SUFFIX,
    is_digest_of,
    label_digest,
    list_openings,
    remove_file,
    sealed_path,
    unseal,
    write_labels,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """What became of the label files of a holdout."""

    cohort: str
    files: tuple[str, ...]
    """Files that lay in plain and are sealed now, in the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """What became of a holdout that was given up."""

    cohort: str
    openings: int
    """How often it had been opened."""

    files: tuple[str, ...]
    """Files that were sealed and lie in plain now, in the workspace."""


def seal_holdout(
    workspace: WorkspacePaths,
    name: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> Sealing:
    """Seal every label file of holdout `name` that lies in plain, and record it.

    A plain file goes only after the sealed one was read back, and after the ledger
    has it; killed in between, the same call ends it. Copies elsewhere, in version
    control or a backup, stay as they are.

    Raises
    ------
    DataError
        The cohort is no holdout, there is no reason, or a sealed file says otherwise
        than the plain one beside it; nothing was removed.
    WriteError
        The workspace cannot be written.
    """
    _require_reason(why)
    with _held(workspace, name):
        record = _require_holdout(workspace, name)
        every = *label_files(workspace, name), *replaced_files(workspace, name)
        plain = {path: path.read_bytes() for path in every if path.is_file()}
        _require_recorded(workspace, record, plain)
        for path, raw in plain.items():
            _seal(workspace, path, raw)
        places = {
            _place(workspace, path): label_digest(workspace, raw, sealed=True)
            for path, raw in plain.items()
        }
        event = _sealed(record, why, places)
        if plain and not _is_recorded(workspace, event):
            append_event(workspace.ledger, event, actor, now=now)
        for path in plain:
            remove_file(path)
    return Sealing(cohort=name, files=tuple(places))


def retire_holdout(
    workspace: WorkspacePaths,
    name: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> Retirement:
    """Make holdout `name` a cohort for development: its labels are open from now on.

    Recorded first; killed afterwards, the same call ends it.

    Raises
    ------
    DataError
        The cohort is no holdout, there is no reason, or a sealed file cannot be read;
        nothing was changed.
    WriteError
        The workspace cannot be written.
    """
    _require_reason(why)
    with _held(workspace, name):
        record = read_record(workspace, name)
        sealed = [p for p in label_files(workspace, name) if sealed_path(p).is_file()]
        about = read_cohort_file(workspace, name)
        if not record.is_holdout and not (
            record.retired and (sealed or about.role is CohortRole.HOLDOUT)
        ):
            raise _no_holdout(record)
        opened = {path: unseal(workspace, path) for path in sealed}
        openings = _count_openings(workspace, record)
        if record.is_holdout:
            event = _retired(record, why, openings, _plain_digests(workspace, opened))
            append_event(workspace.ledger, event, actor, now=now)
        for path, raw in opened.items():
            write_atomic(path, raw, mode=_mode(workspace, path))
            remove_file(sealed_path(path))
        changed = about.model_copy(update={"role": CohortRole(RETIRED)})
        write_atomic(
            cohort_folder(workspace, name) / "cohort.yaml",
            format_cohort_file(changed),
        )
    places = tuple(_place(workspace, path) for path in opened)
    return Retirement(cohort=name, openings=openings, files=places)


def label_files(workspace: WorkspacePaths, name: str) -> tuple[Path, ...]:
    """Return where labels, votes and ratings of `name` lie, in plain or sealed.

    Votes that newer ones took the place of are among them, and what words of findings
    are on this machine. Every path is the plain one.
    """
    moved = re.compile(rf"{re.escape(name)}-votes-[0-9a-f]{{12}}\.csv")
    attic = [
        path for path in map(_plain, _attic(workspace)) if moved.fullmatch(path.name)
    ]
    said = re.compile(rf"{re.escape(name)}-[0-9a-f]{{12}}\.jsonl")
    marked = sorted((workspace.private / "findings").glob(f"{name}-*"))
    findings = [path for path in map(_plain, marked) if said.fullmatch(path.name)]
    folder = cohort_folder(workspace, name)
    return tuple(dict.fromkeys((*_in_folder(folder), *findings, *attic)))


def replaced_files(workspace: WorkspacePaths, name: str) -> tuple[Path, ...]:
    """Return where labels lie of cohorts that `name` replaced; as `label_files`."""
    before = re.compile(rf"{re.escape(name)}-[0-9]{{8}}T[0-9]{{6}}Z-.*")
    found = [
        path
        for folder in _attic(workspace)
        if before.fullmatch(folder.name)
        for path in _in_folder(folder / "cohort")
    ]
    return tuple(dict.fromkeys(found))


def _attic(workspace: WorkspacePaths) -> list[Path]:
    attic = workspace.private / "replaced"
    return sorted(attic.iterdir()) if attic.is_dir() else []


def _in_folder(folder: Path) -> Iterator[Path]:
    """Yield the label files of one cohort's folder."""
    for path in sorted((folder / "reference").glob("v*.csv*")):
        if _plain(path).suffix == ".csv":
            yield _plain(path)
    for path in sorted(folder.glob("votes.csv*")):
        if _plain(path).name == "votes.csv":
            yield _plain(path)
    for path in sorted(folder.glob("experts/v*/*.csv*")):
        if _plain(path).suffix == ".csv":
            yield _plain(path)


def _plain(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(SUFFIX))


@contextmanager
def _held(workspace: WorkspacePaths, name: str) -> Iterator[None]:
    """Keep everybody else from importing, voting and correcting."""
    importing = workspace.open_private() / "locks" / f"cohort-{name}.lock"
    with (
        locked(importing),
        locked(votes_lock(workspace, name)),
        locked(version_lock(workspace, name)),
        locked(ratings_lock(workspace, name)),
    ):
        yield


def _require_reason(why: str) -> None:
    if not why.strip():
        raise DataError("a reason is missing: the ledger records it. Give --why.")


def _require_holdout(workspace: WorkspacePaths, name: str) -> CohortRecord:
    record = read_record(workspace, name)
    if not record.is_holdout:
        raise _no_holdout(record)
    return record


def _no_holdout(record: CohortRecord) -> DataError:
    return DataError(
        f"cohort {record.name!r} is no holdout: its role is "
        f"{record.added.get('role', 'not recorded')}. Name a holdout; `ranloop cohort "
        "show` lists them."
    )


def _require_recorded(
    workspace: WorkspacePaths, record: CohortRecord, plain: Mapping[Path, bytes]
) -> None:
    """Refuse to seal what is not what the ledger recorded: it could never be used."""
    wanted = {votes_path(workspace, record.name): record.votes}
    for number in list_references(workspace, record.name):
        path = reference_path(workspace, record.name, number)
        wanted[path] = record.references.get(number, {}).get("digest")
    for payload in record.ratings.values():
        wanted.update(expert_files(workspace, record.name, payload))
    for path, raw in plain.items():
        if path in wanted and not is_digest_of(workspace, wanted[path], raw):
            raise DataError(
                f"{path} is not what the ledger recorded. Restore it from version "
                "control or a backup, or move it away, and seal then."
            )


def _seal(workspace: WorkspacePaths, path: Path, raw: bytes) -> None:
    """Seal `raw` beside `path`, and prove that it can be read back."""
    if not sealed_path(path).is_file():
        write_labels(workspace, path, raw, sealed=True, mode=_mode(workspace, path))
    if unseal(workspace, path) != raw:
        raise DataError(
            f"{path} and {sealed_path(path).name} beside it differ. Move away the one "
            "that is not as recorded, and seal then."
        )


def _sealed(record: CohortRecord, why: str, digests: Mapping[str, str]) -> Event:
    return Event(
        action="holdout_sealed",
        subject=record.name,
        reason=why.strip(),
        payload={
            "cohort": record.name,
            "cohort_digest": record.added.get("cohort_digest"),
            "files": dict(digests),
        },
    )


def _plain_digests(
    workspace: WorkspacePaths, opened: Mapping[Path, bytes]
) -> dict[str, str]:
    """Return the recorded digest of each file to that of its plain text."""
    return {
        label_digest(workspace, raw, sealed=True): digest_bytes(raw)
        for raw in opened.values()
    }


def _retired(
    record: CohortRecord, why: str, openings: int, digests: Mapping[str, str]
) -> Event:
    return Event(
        action="holdout_retired",
        subject=record.name,
        reason=why.strip(),
        payload={
            "cohort": record.name,
            "cohort_digest": record.added.get("cohort_digest"),
            "role": RETIRED,
            "openings": openings,
            "digests": dict(digests),
        },
    )


def _is_recorded(workspace: WorkspacePaths, event: Event) -> bool:
    return any(
        entry.action == event.action and dict(entry.payload) == event.payload
        for entry in read_ledger(workspace.ledger)
    )


def _count_openings(workspace: WorkspacePaths, record: CohortRecord) -> int:
    digest = str(record.added.get("cohort_digest"))
    return len(list_openings(read_ledger(workspace.ledger), record.name, digest))


def _mode(workspace: WorkspacePaths, path: Path) -> int | None:
    return 0o600 if path.is_relative_to(workspace.private) else None


def _place(workspace: WorkspacePaths, path: Path) -> str:
    return path.relative_to(workspace.root).as_posix()

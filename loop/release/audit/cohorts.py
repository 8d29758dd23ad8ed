"""The protocol, cohorts, references and votes held against the ledger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from loop.core.check_findings import (
    MOST_PROBLEMS,
    Finding,
    broken,
    note,
    ok,
    warning,
)
from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.engines.rules.cues import read_cues
from loop.labels.cohort import (
    CohortRecord,
    cohort_folder,
    has_texts,
    iter_items,
    list_cohorts,
    read_cohort,
)
from loop.labels.expert_ratings import expert_files
from loop.labels.importing.openi import OPENI, crosswalk_digest
from loop.labels.reference import reference_path
from loop.labels.sealing import is_digest_of, is_stored, read_stored, sealed_path
from loop.labels.taxonomy import taxonomy_digest
from loop.labels.value_sample import sample_path
from loop.release.audit.chain import find_cohort, subjects

_FILE = re.compile(r"v([1-9][0-9]*)\.csv(\.sealed)?")
_RESTORE = "Restore the file from version control or a backup."


def check_protocol(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether the protocol is the one that was registered last."""
    digests = [
        str(entry.payload.get("digest"))
        for _, entry in subjects(entries, "protocol_set")
    ]
    try:
        now = digest_text(read_text(workspace.protocol))
    except DataError:
        now = ""
    if digests and now == digests[-1]:
        return [ok("protocol", f"is the one registered last ({now[:12]})")]
    if not digests:
        return [note("protocol", "was never registered: nothing was evaluated yet")]
    if now in digests:
        return [note("protocol", f"is an earlier one that was registered ({now[:12]})")]
    return [
        warning(
            "protocol",
            "was changed since it was registered" if now else "is gone",
            where=str(workspace.protocol),
            implies="What was claimed and measured is under the registered one.",
            todo="Restore it, or evaluate: that registers it as it is now.",
        )
    ]


def check_basis(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether taxonomy, cues and crosswalk are those that entries rest on.

    An entry of an earlier version of ranloop does not say on which; that is a note.
    """
    labels = workspace.labels
    scored = [one for one in entries if one.action == "evaluated"]
    by_rules = [one for one in scored if "|rules|" in str(one.payload.get("signature"))]
    coded = [
        one
        for one in entries
        if one.action == "cohort_added" and one.payload.get("format") == OPENI
    ]
    taken = [one for one in entries if one.action == "taxonomy_revised"]
    taxonomy = _Basis(
        "taxonomy", "labels/taxonomy.yaml", "evaluations", scored, tuple(taken)
    )
    crosswalk = _Basis(
        "crosswalks", "labels/crosswalks/openi_mesh.yaml", "imports", coded
    )
    cues = _Basis("cues", "labels/cues", "evaluations", by_rules)
    return [
        *_check_one(taxonomy, "taxonomy_digest", lambda: taxonomy_digest(labels)),
        *_check_taken(taken, labels),
        *_check_one(
            cues,
            "cues",
            lambda: {one.language: one.digest for one in read_cues(labels)},
        ),
        *_check_one(crosswalk, "crosswalk_digest", lambda: crosswalk_digest(labels)),
    ]


def _check_taken(revisions: Sequence[LedgerEntry], labels: Path) -> Iterator[Finding]:
    """Yield whether the taxonomy is still as it was before its last revision."""
    with suppress(DataError):
        if revisions and taxonomy_digest(labels) == revisions[-1].payload.get(
            "taxonomy_before"
        ):
            yield warning(
                "taxonomy",
                f"entry {revisions[-1].seq} revised labels/taxonomy.yaml, and the file "
                "is as it was before: the command was stopped, or the file put back",
                where="labels/taxonomy.yaml",
                todo="Give the draft to `ranloop discover --take` again.",
            )


class _Basis(NamedTuple):
    """A file or folder that entries rest on."""

    check: str
    path: str
    kind: str
    """What the entries record, in words."""

    entries: list[LedgerEntry]
    revisions: tuple[LedgerEntry, ...] = ()
    """Entries by which it became another, each with both digests."""

    def revised(self, digests: set[object], now: object) -> LedgerEntry | None:
        """Return the last revision, if all that was changed since is on record."""
        last = self.revisions[-1] if self.revisions else None
        known = {one.payload.get("taxonomy_before") for one in self.revisions}
        if last is None or last.payload.get("taxonomy_digest") != now:
            return None
        return last if digests <= known else None


def _check_one(
    basis: _Basis, field: str, read: Callable[[], object]
) -> Iterator[Finding]:
    """Yield whether `field` of the entries is what is read now."""
    said = [one for one in basis.entries if field in one.payload]
    unsaid = len(basis.entries) - len(said)
    if unsaid:
        yield note(
            basis.check,
            f"{basis.kind} of an earlier ranloop that do not say on which "
            f"{basis.path} they rest: {unsaid}; whether it was changed since is not "
            "known",
        )
    if not said:
        return
    try:
        now = read()
    except DataError:
        now = None
    changed = [one for one in said if one.payload[field] != now]
    edited = [str(one.seq) for one in changed]
    if not edited:
        yield ok(basis.check, f"{basis.path} is what {len(said)} {basis.kind} rest on")
        return
    revision = basis.revised({str(one.payload[field]) for one in changed}, now)
    if revision is not None:
        yield note(
            basis.check,
            f"{basis.path} was revised (entry {revision.seq}) since "
            f"{len(edited)} of {len(said)} {basis.kind}: their numbers are of the "
            "labels as they were",
            where=basis.path,
            todo="Evaluate again what you claim.",
        )
        return
    some = ", ".join(edited[:MOST_PROBLEMS]) + (
        f" and {len(edited) - MOST_PROBLEMS} more"
        if len(edited) > MOST_PROBLEMS
        else ""
    )
    became = "is gone or unreadable" if now is None else "was changed"
    yield warning(
        basis.check,
        f"{basis.path} {became} since "
        f"{len(edited)} of {len(said)} {basis.kind} (entry {some})",
        where=basis.path,
        implies="Their numbers are of the file as it was, not as it is now.",
        todo="Restore it from version control or a backup, or evaluate again.",
    )


def check_cohorts(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether the cohorts are those that were imported.

    What was recorded and is not on this machine is a note: a shipped history speaks of
    cohorts that do not ship.
    """
    names = list(dict(subjects(entries, "cohort_added")))
    here = [name for name in names if _is_here(workspace, name)]
    found = [one for name in here for one in _check_cohort(workspace, name, entries)]
    away = [name for name in names if name not in here]
    if away:
        found.append(
            note("cohorts", f"recorded, and not on this machine: {', '.join(away)}")
        )
    for name in list_cohorts(workspace):
        if name not in names:
            found.append(_unrecorded(workspace, name))
    return found


def _is_here(workspace: WorkspacePaths, name: str) -> bool:
    try:
        return cohort_folder(workspace, name).is_dir()
    except DataError:
        return False


def _check_cohort(
    workspace: WorkspacePaths, name: str, entries: tuple[LedgerEntry, ...]
) -> Iterator[Finding]:
    record = find_cohort(entries, name)
    if record is None:
        return
    yield from _check_cases(workspace, name, record)
    yield from _check_references(workspace, name, record)
    yield from _check_votes(workspace, name, record)
    yield from _check_ratings(workspace, name, record)
    for number, payload in record.samples.items():
        path, told = sample_path(workspace, name, number), str(payload.get("digest"))
        yield _check_labels(workspace, path, f"{name}:sample{number}", record, told)


def _check_cases(
    workspace: WorkspacePaths, name: str, record: CohortRecord
) -> Iterator[Finding]:
    """Yield whether role, cases and texts are the recorded ones."""
    try:
        cohort = read_cohort(workspace, name, record=record)
    except DataError as error:
        yield _broken("cohorts", f"{name}: {error}", name)
        return
    yield ok("cohorts", f"{name}: role {cohort.role.value} and cases are as recorded")
    if not has_texts(workspace, name):
        yield note("cohorts", f"{name}: its texts are not on this machine")
        return
    try:
        count = sum(1 for _ in iter_items(workspace, cohort))
    except DataError as error:
        yield _broken("cohorts", f"{name}: {error}", name)
    else:
        yield ok("cohorts", f"{name}: {count} texts have their digests")


def _check_references(
    workspace: WorkspacePaths, name: str, record: CohortRecord
) -> Iterator[Finding]:
    """Yield whether each recorded reference is there, and nothing else is."""
    folder = cohort_folder(workspace, name) / "reference"
    files = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for number in record.references:
        yield _check_reference(workspace, name, record, number)
    for file in files:
        match = _FILE.fullmatch(file)
        if match and int(match[1]) not in record.references:
            what = f"{name}: reference {file} is not in the ledger"
            yield _broken("references", what, name)


def _check_reference(
    workspace: WorkspacePaths, name: str, record: CohortRecord, number: int
) -> Finding:
    path = reference_path(workspace, name, number)
    recorded = str(record.references[number].get("digest"))
    return _check_labels(workspace, path, f"{name}:ref{number}", record, recorded)


def _check_votes(
    workspace: WorkspacePaths, name: str, record: CohortRecord
) -> Iterator[Finding]:
    if record.votes is not None:
        path = cohort_folder(workspace, name) / "votes.csv"
        yield _check_labels(workspace, path, f"{name}: votes", record, record.votes)


def _check_ratings(
    workspace: WorkspacePaths, name: str, record: CohortRecord
) -> Iterator[Finding]:
    """Yield whether each file of experts' ratings is the recorded one.

    The words of findings are private, and may be on another machine.
    """
    for number, payload in record.ratings.items():
        for path, recorded in expert_files(workspace, name, payload).items():
            if path.is_relative_to(workspace.private) and not is_stored(path):
                continue
            what = f"{name}:ratings{number}, {path.name}"
            yield _check_labels(workspace, path, what, record, recorded)


def _check_labels(
    workspace: WorkspacePaths,
    path: Path,
    what: str,
    record: CohortRecord,
    recorded: str,
) -> Finding:
    """Hold a file of labels, in plain or sealed, against its recorded digest."""
    sealed = sealed_path(path).is_file()
    if path.is_file() and record.is_holdout:
        return _open(path, what, record.name)
    try:
        found = read_stored(workspace, path, sealed=sealed)
        same = found is not None and is_digest_of(workspace, recorded, found)
    except DataError as error:
        return note("references", f"{what}: sealed, and not checked: {error}")
    if found is None:
        return _broken("references", f"{what}: recorded, and gone", record.name)
    if not same:
        edited = f"{what}: edited after it was recorded"
        return _broken("references", edited, record.name)
    return ok("references", f"{what}: as recorded{', sealed' if sealed else ''}")


def _open(path: Path, what: str, cohort: str) -> Finding:
    return warning(
        "references",
        f"{what}: lies open, although {cohort} is a holdout",
        where=f"labels/cohorts/{cohort}",
        implies="Anyone may have read it; a claim on this cohort is worth less.",
        todo=f"Seal it with `ranloop cohort seal {cohort} --why ...`.",
    )


def _unrecorded(workspace: WorkspacePaths, name: str) -> Finding:
    return warning(
        "cohorts",
        f"{name} has no entry in the ledger",
        where=str(workspace.cohorts / name),
        implies="Nothing shows that its role and cases are those it was imported with; "
        "no command uses it.",
        todo="Import it again with --replace, or move the folder away.",
    )


def _broken(check: str, what: str, cohort: str) -> Finding:
    return broken(
        check,
        what,
        where=f"labels/cohorts/{cohort}",
        implies="Numbers measured on it cannot be reproduced from what is there.",
        todo=_RESTORE,
    )

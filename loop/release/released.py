"""The releases of a workspace: how one appears, is recorded, and is withdrawn.

One appears as a whole: staged in private, moved by one rename, recorded. Killed before
the rename there is no release; killed after it, the folder is complete and signed, and
the next freeze writes the ledger entry that is missing. A release that was withdrawn
stays as it was, and is not loaded any more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_bytes
from loop.core.errors import ConflictError, DataError
from loop.core.files import (
    locked,
    make_folder,
    move_folder,
    sync_folder,
    write_atomic,
    write_error,
)
from loop.core.git import commit_paths, tag
from loop.core.ledger import (
    Actor,
    Event,
    LedgerEntry,
    append_event,
    append_events,
    read_ledger,
)
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.release.facts import HeadFacts
from loop.release.folder import RELEASE_NAME
from loop.release.keys import read_public_keys
from loop.release.release_json import AnyFacts
from loop.release.statement import ENVELOPE
from loop.release.verify import verify_folder

APPROVERS = frozenset({"approver", "admin"})
"""Roles whose approval a release needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One release, as recorded when it was frozen and since."""

    name: str
    """For example ``"extractor-v7"``."""

    entry: LedgerEntry
    """The one that froze it; a release is frozen once, and of two the first counts."""

    withdrawal: LedgerEntry | None = None
    """The one that withdrew it; None while it may be used."""

    superseded_by: str = ""
    """Name of the release that took its place; may be empty."""

    @property
    def ref(self) -> str:
        """The version it froze, for example ``"extractor@v7"``."""
        return self.entry.subject

    @property
    def digest(self) -> str:
        """Digest of that version; empty where none is recorded."""
        return str(self.entry.payload.get("digest", ""))

    @property
    def statement(self) -> str:
        """Sha256 of the signed statement; empty where none is recorded."""
        return str(self.entry.payload.get("statement_sha256", ""))


def release_name(ref: str) -> str:
    """Return the name of the release of a version, ``"extractor-v7"``.

    Examples
    --------
    >>> release_name("extractor@v7")
    'extractor-v7'
    """
    return ref.replace("@", "-")


def name_in(entry: LedgerEntry) -> str:
    """Return the name of the release that an entry is about."""
    return str(entry.payload.get("release", release_name(entry.subject)))


def release_folder(workspace: WorkspacePaths, name: str) -> Path:
    """Folder of release `name`.

    Raises
    ------
    DataError
        It cannot be the name of a release.
    """
    if RELEASE_NAME.fullmatch(name) is None:
        raise DataError(
            f"{quoted(name)} is not the name of a release. Write PROMPT-vN, for "
            "example extractor-v7."
        )
    return workspace.releases / name


def frozen_payload(facts: AnyFacts, statement_sha256: str) -> dict[str, Any]:
    """Return what the ledger records of a release, its subject being the version.

    Parameters
    ----------
    facts
        The content of its ``release.json``.
    statement_sha256
        Digest of the bytes of its ``release.dsse.json``.
    """
    return {
        "release": facts.release.name,
        "digest": facts.release.digest,
        "statement_sha256": statement_sha256,
        "head": facts.ledger.head,
        "verdict": facts.claim.verdict.value,
        "override": facts.frozen.override,
        "development_only": facts.development_only,
        "supersedes": facts.supersedes.name if facts.supersedes else "",
    }


def list_releases(workspace: WorkspacePaths) -> tuple[Released, ...]:
    """Return every release that was ever frozen, oldest first.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return replay_releases(read_ledger(workspace.ledger))


def replay_releases(entries: Iterable[LedgerEntry]) -> tuple[Released, ...]:
    """Return the releases that `entries` tell of, oldest first.

    They may be of a broken ledger: what withdraws no release is passed over.
    """
    found: dict[str, Released] = {}
    for entry in entries:
        name = name_in(entry)
        known = found.get(name)
        if entry.action == "frozen" and known is None:
            before = found.get(str(entry.payload.get("supersedes", "")))
            if before is not None:
                found[before.name] = replace(before, superseded_by=name)
            found[name] = Released(name=name, entry=entry)
        elif entry.action == "withdrawn" and known and known.withdrawal is None:
            found[name] = replace(known, withdrawal=entry)
    return tuple(found.values())


def find_in(releases: Iterable[Released], name: str) -> Released | None:
    """Return release `name`; None when it is not among `releases`."""
    return next((one for one in releases if one.name == name), None)


def find_release(workspace: WorkspacePaths, name: str) -> Released | None:
    """Return release `name` as recorded; None when nothing was frozen under it.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    return find_in(list_releases(workspace), name)


def unknown_release(name: str, releases: Sequence[Released]) -> DataError:
    """Return the error that there is no release `name`; it names those there are."""
    known = ", ".join(one.name for one in releases) or "none"
    return DataError(
        f"there is no release {name[:80]} (known: {known}). Correct the name, or make "
        "one with `ranloop freeze`."
    )


def holds_head(entries: Sequence[LedgerEntry], head: HeadFacts) -> bool:
    """Whether `entries` hold the head of the ledger that a release names."""
    return [entry.hash for entry in entries[head.seq - 1 : head.seq]] == [head.head]


def current_release(workspace: WorkspacePaths, prompt: str) -> Released | None:
    """Return the release of `prompt` in use: the newest that was not withdrawn.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    of_prompt = (
        one
        for one in reversed(list_releases(workspace))
        if one.ref.partition("@")[0] == prompt and one.withdrawal is None
    )
    return next(of_prompt, None)


Step = Callable[[str], None]
"""Told the name of every step as it is reached; a test stops the process there."""


def unwatched(step: str) -> None:
    """Do nothing at a step."""


@contextmanager
def freezing(workspace: WorkspacePaths) -> Iterator[Path]:
    """Hold the only freeze of a workspace, and give an empty folder to stage it in.

    What a freeze that was killed left there is removed.

    Raises
    ------
    ConflictError
        Another freeze is under way.
    """
    private = workspace.open_private()
    with locked(private / "locks" / "freeze.lock", wait=False):
        staging = private / "freezing"
        shutil.rmtree(staging, ignore_errors=True)
        make_folder(staging, mode=0o700)
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def write_release(
    workspace: WorkspacePaths,
    staging: Path,
    name: str,
    files: Mapping[str, bytes],
    reached: Step = unwatched,
) -> Path:
    """Write the files of release `name`, all of them or none, and return the folder.

    Raises
    ------
    ConflictError
        There is such a folder: a release is never changed.
    DataError
        The release would not pass its own checks; nothing was released.
    WriteError
        It cannot be written; nothing was released.
    """
    folder = release_folder(workspace, name)
    building = staging / name
    for place, raw in sorted(files.items()):
        write_atomic(building / place, raw, mode=0o644)
    for inside in (building, *(one for one in building.iterdir() if one.is_dir())):
        inside.chmod(0o755)
        sync_folder(inside)
    reached("staged")
    _require_sound(workspace, building)
    taken = (
        f"{folder} exists already, and a release is never changed. Commit a new "
        "version and release that."
    )
    move_folder(building, folder, taken=taken)
    reached("published")
    return folder


def _require_sound(workspace: WorkspacePaths, building: Path) -> None:
    """Refuse what whoever is handed it would refuse: it could never be corrected."""
    try:
        found = verify_folder(building, read_public_keys(workspace))
    except OSError as error:
        raise write_error(building, error) from error
    if not found.holds:
        what = "; ".join(f"{one.check}: {one.what}" for one in found.broken)
        raise DataError(
            f"{building.name} would not pass its own checks: {what}. Correct that and "
            "freeze again; nothing was released."
        )


def record_release(
    workspace: WorkspacePaths,
    facts: AnyFacts,
    actor: Actor,
    *,
    now: Clock,
    reached: Step = unwatched,
) -> LedgerEntry:
    """Write a release whose folder stands there into the ledger, and into git.

    An override is an entry of its own, in the same write.

    Raises
    ------
    WriteError
        The ledger cannot be written; freezing again goes on from here.
    """
    frozen, release = facts.frozen, facts.release
    folder = release_folder(workspace, release.name)
    payload = frozen_payload(facts, digest_bytes((folder / ENVELOPE).read_bytes()))
    events = [
        Event(
            action="frozen",
            subject=release.ref,
            reason=frozen.why,
            meaning=frozen.meaning,
            payload=payload,
        )
    ]
    if frozen.override:
        events.insert(
            0,
            Event(
                action="override",
                subject=release.ref,
                reason=frozen.override,
                meaning=frozen.meaning,
                payload={
                    "release": release.name,
                    "verdict": facts.claim.verdict.value,
                },
            ),
        )
    entry = append_events(workspace.ledger, events, actor, now=now)[-1]
    reached("recorded")
    keep_in_git(workspace, facts, actor)
    return entry


def keep_in_git(workspace: WorkspacePaths, facts: AnyFacts, actor: Actor) -> str | None:
    """Commit and tag a release where the workspace is a repository; None elsewhere."""
    name = facts.release.name
    paths = [workspace.releases / name, workspace.ledger]
    keys = workspace.releases / "keys"
    if keys.is_dir():
        paths.append(keys)
    message = f"Release {name}\n\n{facts.frozen.why}"
    revision = commit_paths(workspace.root, paths, message, actor.name)
    if revision is None:
        return None
    return tag(
        workspace.root,
        f"release/{name}",
        message,
        revision=revision,
        tagger=actor.name,
    )


def find_unrecorded(workspace: WorkspacePaths, name: str) -> AnyFacts | None:
    """Return the facts of a release that a kill left without its ledger entry.

    None where there is no such folder, or it is recorded.

    Raises
    ------
    DataError
        There is such a folder and it is no release made here: a check fails.
    """
    folder = release_folder(workspace, name)
    entries = read_ledger(workspace.ledger)
    if not folder.exists() or find_in(replay_releases(entries), name) is not None:
        return None
    found = verify_folder(folder, read_public_keys(workspace))
    problems = [f"{one.check}: {one.what}" for one in found.broken]
    if found.facts is not None and not holds_head(entries, found.facts.ledger):
        problems.append("the ledger it ships is not a part of the workspace's")
    if problems or found.facts is None:
        what = "; ".join(problems)
        raise DataError(
            f"{folder} is not in the ledger, and it is no release that can be "
            f"completed: {what}. Move it away and freeze again."
        )
    return found.facts


def withdraw_release(
    workspace: WorkspacePaths,
    name: str,
    actor: Actor,
    why: str,
    *,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that release `name` must not be used any more, and return the entry.

    The folder is not touched: who has a copy of it can still check what it was.

    Raises
    ------
    DataError
        There is no such release, no reason, or the actor may not approve.
    ConflictError
        It was withdrawn before.
    WriteError
        The ledger cannot be written; nothing was withdrawn.
    """
    if not why.strip():
        raise DataError("withdrawing a release needs a reason. Say why with --why.")
    if actor.role not in APPROVERS:
        raise DataError(
            f"withdrawing takes an approver, and {actor.name} acts as {actor.role}. "
            "Use --role approver."
        )
    releases = list_releases(workspace)
    release = find_in(releases, name)
    if release is None:
        raise unknown_release(name, releases)
    if release.withdrawal:
        raise ConflictError(
            f"{name} was withdrawn already: {release.withdrawal.reason}"
        )
    event = Event(
        action="withdrawn",
        subject=release.ref,
        reason=why.strip(),
        meaning="responsibility",
        payload={"release": name, "statement_sha256": release.statement},
    )
    entry = append_event(workspace.ledger, event, actor, now=now)
    message = f"Withdraw {name}\n\n{why.strip()}"
    commit_paths(workspace.root, [workspace.ledger], message, actor.name)
    return entry

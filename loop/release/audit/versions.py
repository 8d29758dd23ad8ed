"""Every prompt version held against what the ledger recorded of it, and aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loop.core.check_findings import Finding, broken, note, ok, warning
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.prompts.catalog import FILES, list_versions, read_folder
from loop.release.audit.chain import subjects

_CHECK = "versions"
_REF = re.compile(r"([a-z][a-z0-9_-]{0,63})@v([1-9][0-9]{0,8})")


def find_commits(entries: tuple[LedgerEntry, ...]) -> dict[str, LedgerEntry]:
    """Return version ref to the entry that committed it last."""
    return dict(subjects(entries, "draft_committed"))


def check_versions(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return what of the version folders is not as recorded, or that all is."""
    commits = find_commits(entries)
    found = [
        *_twice(entries),
        *_parents(entries),
        *(one for ref in commits for one in _check_one(workspace, ref, commits[ref])),
        *_unrecorded(workspace, commits),
    ]
    if found or not commits:
        return found
    files = sum(len(_files(entry)) for entry in commits.values())
    return [
        ok(_CHECK, f"{len(commits)} versions have the digest recorded at their commit"),
        ok(_CHECK, f"{files} of their files are the recorded ones, to the byte"),
    ]


def _files(entry: LedgerEntry) -> Mapping[str, object]:
    files = entry.payload.get("files")
    return files if isinstance(files, Mapping) else {}


def _twice(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    """Yield versions that were committed with two digests."""
    digests: dict[str, str] = {}
    for ref, entry in subjects(entries, "draft_committed"):
        digest = str(entry.payload.get("digest"))
        if digests.setdefault(ref, digest) != digest:
            yield broken(
                _CHECK,
                f"{ref} was committed twice, with two digests",
                where=f"entry {entry.seq}",
                implies="A version never changes: one of the two entries is false.",
                todo="Find out from a backup which of the two was first.",
                seq=entry.seq,
            )


def _parents(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    """Yield versions whose parent was never committed before them."""
    known = {"None", ""}
    for ref, entry in subjects(entries, "draft_committed"):
        if str(entry.payload.get("parent")) not in known:
            yield warning(
                _CHECK,
                f"{ref} was revised from a version that no entry before it committed",
                where=f"entry {entry.seq}",
                implies="The parent came from another workspace, or its entry is gone.",
                todo="Compare the ledger with a backup.",
                seq=entry.seq,
            )
        known.add(str(entry.payload.get("digest")))


def _check_one(
    workspace: WorkspacePaths, ref: str, entry: LedgerEntry
) -> list[Finding]:
    match = _REF.fullmatch(ref)
    if match is None:
        return [
            _broken(ref, entry, "is no version of a prompt, and was committed as one")
        ]
    folder = workspace.prompts / match[1] / f"v{match[2]}"
    if not folder.is_dir():
        return [_broken(ref, entry, "was committed, and its folder is gone")]
    try:
        return [*_compare(folder, ref, entry), *_strays(folder, ref)]
    except OSError as error:
        return [_broken(ref, entry, f"cannot be read: {error.strerror}")]


def _compare(folder: Path, ref: str, entry: LedgerEntry) -> Iterator[Finding]:
    """Yield how the wording or a file differs from what was recorded."""
    recorded = str(entry.payload.get("digest"))
    try:
        version, header = read_folder(folder)
    except DataError:
        yield _broken(ref, entry, "cannot be read as a version: files are malformed")
        return
    edited = _edited(folder, entry)
    which = f" ({', '.join(edited)})" if edited else ""
    if version.digest != recorded:
        fixed = header.digest == version.digest
        how = "; prompt.yaml was given the digest of the new wording" if fixed else ""
        what = f"digest {recorded[:12]} recorded, {version.digest[:12]} found"
        yield _broken(ref, entry, f"has another wording: {what}{which}{how}")
    elif version.ref != ref:
        yield _broken(ref, entry, f"says that it is {version.ref}")
    elif edited:
        yield _broken(ref, entry, f"has the recorded wording in other files{which}")
    elif header.digest != recorded:
        yield _broken(ref, entry, "names another digest in prompt.yaml")


def _edited(folder: Path, entry: LedgerEntry) -> list[str]:
    files = _files(entry)
    return [
        name
        for name in FILES
        if name in files and digest_bytes((folder / name).read_bytes()) != files[name]
    ]


def _strays(folder: Path, ref: str) -> Iterator[Finding]:
    """Yield what lies in a version's folder and is no file of it."""
    inside = sorted(folder.iterdir())
    links = [path.name for path in (folder, *inside) if path.is_symlink()]
    more = [path.name for path in inside if path.name not in FILES]
    if links:
        are = "is a link" if len(links) == 1 else "are links"
        yield warning(
            _CHECK,
            f"{ref}: {', '.join(links)} {are}",
            where=str(folder),
            implies="What it points to can be changed without a trace here.",
            todo="Put the files themselves there.",
        )
    if more:
        yield note(
            _CHECK,
            f"{ref} has files that are no part of a version: {', '.join(more)}",
            where=str(folder),
            todo="Move them elsewhere.",
        )


def _unrecorded(
    workspace: WorkspacePaths, commits: Mapping[str, LedgerEntry]
) -> list[Finding]:
    """Return the version folders that no entry speaks of."""
    return [
        broken(
            _CHECK,
            f"{ref} has no entry in the ledger",
            where=str(workspace.prompts / name / f"v{number}"),
            implies="Nothing says who made it, when and why; or a commit was killed.",
            todo="Run the same commit again if there was one; else move the folder "
            "away.",
        )
        for name in _prompt_names(workspace)
        for number in list_versions(workspace, name)
        if (ref := f"{name}@v{number}") not in commits
    ]


def _prompt_names(workspace: WorkspacePaths) -> Sequence[str]:
    if not workspace.prompts.is_dir():
        return ()
    return sorted(path.name for path in workspace.prompts.iterdir() if path.is_dir())


def _broken(ref: str, entry: LedgerEntry, what: str) -> Finding:
    return broken(
        _CHECK,
        f"{ref} {what}",
        where=f"prompts/{ref.replace('@', '/')}, entry {entry.seq}",
        implies="Runs and releases of this version were made with something else than "
        "what the folder holds now.",
        todo="Restore the folder from version control or a backup; new wording is the "
        "next version, made by `ranloop revise`.",
        seq=entry.seq,
    )


def check_aliases(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether every move of an alias fits the ones before it."""
    commits = find_commits(entries)
    state: dict[tuple[str, str], str] = {}
    found: list[Finding] = []
    for ref, entry in subjects(entries, "alias_moved"):
        prompt, _, tag = ref.partition("@")
        alias = str(entry.payload.get("alias", ""))
        commit = commits.get(ref)
        found += _check_move(workspace, entry, commit, state.get((prompt, alias)))
        state[prompt, alias] = tag
    if not state or found:
        return found
    shown = ", ".join(f"{p}@{alias} is {tag}" for (p, alias), tag in state.items())
    return [ok("aliases", f"every move fits the one before it: {shown}")]


def _check_move(
    workspace: WorkspacePaths,
    entry: LedgerEntry,
    commit: LedgerEntry | None,
    before: str | None,
) -> Iterator[Finding]:
    match = _REF.fullmatch(entry.subject)
    there = match and (workspace.prompts / match[1] / f"v{match[2]}").is_dir()
    digest = commit.payload.get("digest") if commit else None
    where = f"entry {entry.seq}"
    alias = str(entry.payload.get("alias", ""))
    if commit is None or not there:
        yield broken(
            "aliases",
            f"alias {alias!r} was moved to {entry.subject}, which is not there",
            where=where,
            implies="Whoever uses the alias gets no version, or another one.",
            todo="Restore the version, or move the alias with `ranloop alias`.",
            seq=entry.seq,
        )
    elif entry.payload.get("digest", digest) != digest:
        yield broken(
            "aliases",
            f"alias {alias!r} was moved to {entry.subject} with another digest",
            where=where,
            implies="The version was not then what it was committed as.",
            todo="Compare the version and the ledger with a backup.",
            seq=entry.seq,
        )
    if entry.payload.get("before") != before:
        yield warning(
            "aliases",
            f"alias {alias!r} came from {entry.payload.get('before')}, by its entry; "
            f"by the entries before it, from {before}",
            where=where,
            implies="Two people moved it at once, or an entry between is gone.",
            todo="Compare the ledger with a backup.",
            seq=entry.seq,
        )

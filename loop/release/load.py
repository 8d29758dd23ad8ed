"""A release for use: verified first, then taken by its digest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import Entry, read_ledger
from loop.core.paths import Workspace
from loop.prompts.version import PromptVersion
from loop.release.finding import Finding, judged
from loop.release.keys import read_public_keys
from loop.release.records import find_frozen, find_withdrawal, keys_when
from loop.release.rendering import read_prompt
from loop.release.statement import ENVELOPE
from loop.release.verify import Verification, verify_folder

RELEASE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]*")
"""What a release is called: its prompt and its version."""


class Release(NamedTuple):
    """A release that holds in every respect."""

    name: str
    version: PromptVersion
    """As shipped in the release folder, not as it stands in ``prompts/``."""

    facts: Mapping[str, Any]
    """Content of ``release.json``."""

    verification: Verification


def load_release(workspace: Workspace, name: str) -> Release:
    """Return the release `name` of a workspace for use.

    Raises
    ------
    DataError
        There is no such release, it was withdrawn, it is not in the ledger, or
        anything about it is off; says what.
    LedgerError
        The ledger is broken.
    """
    found = verify_release(workspace, name)
    if not found.holds or found.facts is None:
        what = "\n".join(f"  {one.check}: {one.detail}" for one in found.broken)
        raise DataError(
            f"the release {name} does not hold:\n{what}\nDo not use it. Restore "
            f"{workspace.releases / name} from your backup or version control, or "
            "use another release; `ranloop audit` says what else was changed."
        )
    return Release(name, read_prompt(found.files), found.facts, found)


def verify_release(workspace: Workspace, name: str) -> Verification:
    """Return every check of a release of a workspace: its folder and its ledger.

    The keys are those that the ledger recorded, as they stood when it was frozen.

    Raises
    ------
    DataError
        There is no such release.
    LedgerError
        The ledger is broken.
    """
    if not RELEASE_NAME.fullmatch(name):
        raise DataError(
            f"{name!r} is not the name of a release. Write PROMPT-vN, for example "
            "extractor-v7."
        )
    folder = workspace.releases / name
    if not folder.is_dir():
        raise DataError(
            f"there is no release {name} (known: {_known(workspace)}). Make one with "
            "`ranloop freeze`."
        )
    entries = read_ledger(workspace.ledger)
    frozen = find_frozen(entries, name)
    keys = read_public_keys(workspace)
    trusted = keys_when(entries, keys, frozen.seq) if frozen else keys
    found = verify_folder(folder, trusted)
    recorded = _check_recorded(entries, name, found)
    return found._replace(findings=(*found.findings, *recorded))


def list_releases(workspace: Workspace) -> tuple[str, ...]:
    """Return the names of the release folders of a workspace, sorted."""
    if not workspace.releases.is_dir():
        return ()
    return tuple(
        sorted(
            path.name
            for path in workspace.releases.iterdir()
            if RELEASE_NAME.fullmatch(path.name) and path.is_dir()
        )
    )


def _known(workspace: Workspace) -> str:
    return ", ".join(list_releases(workspace)) or "none"


def _check_recorded(
    entries: Sequence[Entry], name: str, found: Verification
) -> tuple[Finding, ...]:
    """Return whether the workspace's ledger knows the release, and as it is."""
    withdrawn = find_withdrawal(entries, name)
    why = (
        f"{withdrawn.time}, {withdrawn.actor}: {withdrawn.reason}" if withdrawn else ""
    )
    return (
        judged("recorded", _record_problems(entries, name, found), "as it was frozen"),
        Finding("in force", withdrawn is None, why or "not withdrawn"),
    )


def _record_problems(
    entries: Sequence[Entry], name: str, found: Verification
) -> list[str]:
    frozen = find_frozen(entries, name)
    if frozen is None:
        return ["the workspace's ledger knows of no such release"]
    problems = []
    if digest_bytes(found.files.get(ENVELOPE, b"")) != frozen.payload.get(
        "statement_sha256"
    ):
        problems.append(f"{ENVELOPE} is not the one that the ledger recorded")
    if found.facts is None:
        return problems
    release, head = found.facts["release"], found.facts["ledger"]
    if release["name"] != name:
        problems.append(f"the folder holds the release {release['name']}")
    if release["digest"] != frozen.payload.get("digest"):
        problems.append("its prompt is not the one that the ledger recorded")
    at_head = entries[head["seq"] - 1 : head["seq"]]
    if [entry.hash for entry in at_head] != [head["head"]] or head["seq"] >= frozen.seq:
        problems.append("the ledger it ships is not a part of the workspace's")
    return problems

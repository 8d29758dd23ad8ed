"""A release for use: verified, taken by its digest, and asked of which engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from loop.core.check_findings import Finding, broken, join_problems
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths, material
from loop.engines.base import find_model
from loop.prompts.catalog import with_finders
from loop.prompts.version import PromptVersion
from loop.release.candidate import engine_facts
from loop.release.keys import keys_when, read_public_keys
from loop.release.release_json import AnyFacts
from loop.release.released import (
    Released,
    find_in,
    find_release,
    holds_head,
    release_folder,
    replay_releases,
    unknown_release,
)
from loop.release.rendering import read_prompt
from loop.release.statement import ENVELOPE
from loop.release.verify import Verification, verify_folder
from loop.run.manifest import read_manifest


class Release(NamedTuple):
    """A release that holds in every respect."""

    name: str
    version: PromptVersion
    """As shipped in the release folder, not as it stands in ``prompts/``."""

    facts: AnyFacts
    """Content of ``release.json``."""

    verification: Verification


def load_release(workspace: WorkspacePaths, name: str) -> Release:
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
    released = find_release(workspace, name)
    if released and released.withdrawal:
        ended = released.withdrawal
        raise DataError(
            f"the release {name} was withdrawn by {ended.actor} at {ended.time}: "
            f"{ended.reason}. Use another release; `ranloop history` shows what came "
            "after it."
        )
    if not found.holds or found.facts is None:
        what = "\n".join(f"  {one.check}: {one.what}" for one in found.broken)
        raise DataError(
            f"the release {name} does not hold:\n{what}\nDo not use it. Restore "
            f"{workspace.releases / name} from your backup or version control, or "
            "use another release; `ranloop audit` says what else was changed."
        )
    return Release(name, read_prompt(found.files), found.facts, found)


def verify_release(workspace: WorkspacePaths, name: str) -> Verification:
    """Return every check of a release of a workspace: its folder and its ledger.

    The keys are those that the ledger recorded, as they stood when it was frozen.

    Raises
    ------
    DataError
        There is no such release, or its folder is gone.
    LedgerError
        The ledger is broken.
    """
    folder = release_folder(workspace, name)
    entries = read_ledger(workspace.ledger)
    releases = replay_releases(entries)
    released = find_in(releases, name)
    if not folder.is_dir():
        if released is None:
            raise unknown_release(name, releases)
        raise DataError(
            f"the release {name} was frozen, and its folder {folder} is gone. Restore "
            "it from your backup or version control, or use another release."
        )
    keys = read_public_keys(workspace)
    trusted = keys_when(entries, keys, released.entry.seq) if released else keys
    found = verify_folder(folder, trusted)
    recorded = _check_recorded(entries, released, found)
    return found._replace(findings=(*found.findings, *recorded))


def _check_recorded(
    entries: Sequence[LedgerEntry], released: Released | None, found: Verification
) -> tuple[Finding, ...]:
    """Return whether the workspace's ledger knows the release, and as it is."""
    if released is None:
        unknown = "the workspace's ledger knows of no such release"
        return (broken("recorded", unknown),)
    ended = released.withdrawal
    why = f"withdrawn at {ended.time} by {ended.actor}: {ended.reason}" if ended else ""
    problems = _record_problems(entries, released, found)
    return (
        join_problems("recorded", problems, "as it was frozen"),
        join_problems("in force", [why] if ended else [], "not withdrawn"),
    )


def _record_problems(
    entries: Sequence[LedgerEntry], released: Released, found: Verification
) -> list[str]:
    problems = []
    if digest_bytes(found.files.get(ENVELOPE, b"")) != released.statement:
        problems.append(f"{ENVELOPE} is not the one that the ledger recorded")
    if found.facts is None:
        return problems
    release = found.facts.release
    if release.name != released.name:
        problems.append(f"the folder holds the release {release.name}")
    if release.digest != released.digest:
        problems.append("its prompt is not the one that the ledger recorded")
    older = entries[: released.entry.seq - 1]
    if not holds_head(older, found.facts.ledger):
        problems.append("the ledger it ships is not a part of the workspace's")
    return problems


ENGINE = "rules"
"""Engine that is asked where neither the caller nor a release names one."""


class RunRequest(NamedTuple):
    """A prompt and the engine it is asked of, before a run is prepared."""

    prompt: str | PromptVersion
    engine: str
    parameters: Mapping[str, Any]
    """Of ``temperature``, ``max_tokens``, ``seed`` and ``thinking`` those that are
    known."""

    release: Release | None = None
    """The release it is from; it has been verified."""


def find_request(
    place: WorkspacePaths,
    prompt: str | None = None,
    release: str | None = None,
    *,
    engine: str | None = None,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> RunRequest:
    """Return what to ask of what; a release is verified first.

    Parameters
    ----------
    prompt
        Reference of a version, for example ``"extractor@v7"``; not read here.
    release
        Name of a release, which brings its prompt, engine and parameters; one that
        the workspace does not have is taken from what ships with ranloop.
    engine
        Asked instead of the release's; default ``"rules"`` without a release.
    parameters
        Take precedence over those of the release.

    Raises
    ------
    DataError
        The release does not hold, or a version that its judge reads is nowhere.
    """
    if release is None:
        return RunRequest(prompt or "", engine or ENGINE, parameters)

    found = load_release(find_holder(place, release), release)
    frozen = found.facts.engine
    version = with_finders(place, found.version)
    known: dict[str, Any] = {
        name: frozen.parameters[name]
        for name in ("temperature", "max_tokens", "seed", "thinking")
        if name in frozen.parameters
    }
    asked = engine or frozen.name
    if find_model(asked) is None:
        # Another engine may be no language model, and nobody asked it to think.
        known.pop("thinking", None)
    return RunRequest(
        prompt=version,
        engine=asked,
        parameters={**known, **parameters},
        release=found,
    )


def find_holder(here: WorkspacePaths, release: str) -> WorkspacePaths:
    """Return where a release is: here, or else among those that ship with ranloop."""
    if release_folder(here, release).is_dir() or find_release(here, release):
        return here
    shipped = material(None)
    return here if find_release(shipped, release) is None else shipped


def is_released_engine(place: WorkspacePaths, release: Release, run_id: str) -> bool:
    """Whether a run asked the very engine of a release, with the same parameters."""
    asked = engine_facts(read_manifest(place, run_id))
    return asked.digest == release.facts.engine.digest


def engine_remark(release: Release) -> str:
    """Return that a release was asked of another engine than it was measured with."""
    frozen = release.facts.engine
    return (
        f"This is not the engine that {release.name} was released with "
        f"({name_engine(frozen.name, frozen.identity)}, or its settings): what the "
        "release says of its answers does not hold for these."
    )


def name_engine(name: str, identity: Mapping[str, Any]) -> str:
    """Return an engine's name, with its revision where it has one."""
    revision = identity.get("revision")
    return name if revision is None else f"{name}, revision {revision}"

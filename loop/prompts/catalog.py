"""Every prompt version of a workspace: find, read, write, follow the lineage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, EditedVersionError
from loop.core.files import folder_beside, move_folder, read_text, write_atomic
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.safe_text import quoted
from loop.core.yaml_files import dump_yaml, read_model
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.shot_records import ShotKind, ShotPin, Shots, ShotScore
from loop.prompts.stages import STAGE_CONTRACTS
from loop.prompts.version import NAME, CallPlan, NamedVersion, PromptVersion

FILES = ("prompt.yaml", "system.jinja", "user.jinja", "guides.yaml")


class ShotsHeader(BaseModel):
    """``shots`` of ``prompt.yaml``: which examples, and how they were chosen."""

    model_config = ConfigDict(extra="forbid")

    pool: str
    kind: ShotKind
    n: int
    seed: int
    score: ShotScore
    examples: dict[str, str]
    """Id of the pair to the digest of what is shown of it, in the order shown."""

    @property
    def shots(self) -> Shots:
        """The same as a version has them."""
        return Shots(
            pool=self.pool,
            kind=self.kind,
            n=self.n,
            seed=self.seed,
            score=self.score,
            pins=tuple(ShotPin(*one) for one in self.examples.items()),
        )

    @classmethod
    def of(cls, shots: Shots) -> ShotsHeader:
        """Return what is written of `shots`."""
        return cls(
            pool=shots.pool,
            kind=shots.kind,
            n=shots.n,
            seed=shots.seed,
            score=shots.score,
            examples=dict(shots.pins),
        )


class Header(BaseModel):
    """``prompt.yaml``: everything about a version that is not its wording."""

    model_config = ConfigDict(extra="forbid")

    name: str
    number: int
    digest: str
    parent: str | None = None
    author: str
    time: str
    why: str
    verdicts: tuple[str, ...] = ()
    plan: CallPlan = CallPlan.JOINT
    contract: str
    inputs: tuple[str, ...] = ("text",)
    reads: dict[str, str] = {}
    """Reference to digest."""

    shots: ShotsHeader | None = None


def read_folder(folder: Path, *, draft: str = "") -> tuple[PromptVersion, Header]:
    """Return the version in `folder` and its header as recorded.

    The recorded digest is not compared here: a draft may be edited by hand.

    Raises
    ------
    DataError
        A file is missing, malformed or contradicts itself.
    """
    header = read_model(folder / "prompt.yaml", Header)
    guides = folder / "guides.yaml"
    try:
        version = PromptVersion(
            name=header.name,
            number=header.number,
            system=read_text(folder / "system.jinja"),
            user=read_text(folder / "user.jinja"),
            guides=parse_guides(read_text(guides), guides),
            plan=header.plan,
            contract=header.contract,
            inputs=header.inputs,
            reads=tuple(NamedVersion(*one) for one in header.reads.items()),
            shots=header.shots.shots if header.shots else None,
            parent=header.parent,
            author=header.author,
            time=header.time,
            why=header.why,
            verdicts=header.verdicts,
            draft=draft,
        )
    except ValueError as error:
        raise DataError(f"{folder / 'prompt.yaml'}: {error}. Correct it.") from error
    return version, header


def write_folder(folder: Path, version: PromptVersion) -> None:
    """Write the four files of `version` as the new folder `folder`.

    The files are written beside it and moved into place by one rename.

    Raises
    ------
    ConflictError
        `folder` exists: versions are immutable.
    WriteError
        It cannot be written; nothing remains.
    """
    with folder_beside(folder) as building:
        for name, text in _contents(version).items():
            write_atomic(building / name, text)
        building.chmod(0o755)
        taken = (
            f"{folder} exists already and versions are immutable. Run the command "
            "again: it takes the next number."
        )
        move_folder(building, folder, taken=taken)


def _contents(version: PromptVersion) -> dict[str, str]:
    return {
        "prompt.yaml": header_text(version),
        "system.jinja": version.system,
        "user.jinja": version.user,
        "guides.yaml": dump_guides(version.guides),
    }


def header_text(version: PromptVersion) -> str:
    """Return ``prompt.yaml`` of a version or draft."""
    header = Header(
        name=version.name,
        number=version.number,
        digest=version.digest,
        parent=version.parent,
        author=version.author,
        time=version.time,
        why=version.why,
        verdicts=version.verdicts,
        plan=version.plan,
        contract=version.contract,
        inputs=version.inputs,
        reads={one.ref: one.digest for one in version.reads},
        shots=ShotsHeader.of(version.shots) if version.shots else None,
    )
    unsaid = {name for name in ("reads", "shots") if not getattr(version, name)}
    return dump_yaml(header.model_dump(mode="json", exclude=unsaid))


def file_digests(folder: Path) -> dict[str, str]:
    """Sha256 of each file of a version, for the ledger."""
    return {name: digest_bytes((folder / name).read_bytes()) for name in FILES}


class Edit(NamedTuple):
    """How the files of a version differ from what was recorded of them."""

    problem: str
    """In a few words, for a history."""

    detail: str
    """What was recorded and what was found."""


def find_edit(
    workspace: WorkspacePaths, folder: Path, version: PromptVersion, header: Header
) -> Edit | None:
    """Return how a version was edited after it was committed; None if it was not.

    ``prompt.yaml`` can be edited together with the wording, so the ledger has the last
    word where it knows the version. Where it does not, only ``prompt.yaml`` is asked.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    if version.digest != header.digest:
        return Edit(
            "edited after it was committed",
            f"recorded digest {header.digest[:12]}, found {version.digest[:12]}",
        )
    committed = _find_commit(workspace, version.ref)
    recorded = str(committed.get("digest", version.digest))
    if version.digest != recorded:
        return _differs(f"digest {recorded[:12]}, found {version.digest[:12]}")
    files: Mapping[str, str] = committed.get("files", {})
    found = file_digests(folder) if files else {}
    edited = [name for name in files if found.get(name) != files[name]]
    return _differs(f"another {' and '.join(edited)}") if edited else None


def _differs(what: str) -> Edit:
    problem = "differs from what the ledger recorded"
    return Edit(problem, f"the ledger recorded {what}")


def _find_commit(workspace: WorkspacePaths, ref: str) -> Mapping[str, Any]:
    """Return what the ledger recorded when `ref` was committed; empty if nothing."""
    for entry in reversed(read_ledger(workspace.ledger)):
        if entry.action == "draft_committed" and entry.subject == ref:
            return entry.payload
    return {}


_TAG = re.compile(r"v([1-9][0-9]*)")


class Ref(NamedTuple):
    """A prompt reference taken apart."""

    name: str
    """Prompt name."""

    selector: str
    """``latest``, ``v3``, ``draft``, ``draft:<id>`` or an alias."""


def parse_ref(ref: str) -> Ref:
    """Return the parts of ``name``, ``name@v3``, ``name@alias``, ``name@draft:id``.

    Raises
    ------
    DataError
        `ref` has another form.
    """
    name, at, selector = ref.strip().partition("@")
    plain = selector.removeprefix("draft:")
    named = bool(NAME.fullmatch(plain)) or selector in ("draft", "draft:")
    if not NAME.fullmatch(name) or (at and not named):
        raise DataError(
            f"{quoted(ref)} is not a prompt reference. Write NAME, NAME@v3, "
            "NAME@latest, NAME@ALIAS or NAME@draft:ID."
        )
    return Ref(name, selector or "latest")


def list_prompts(workspace: WorkspacePaths) -> tuple[str, ...]:
    """Return the names of all prompts that have a version, sorted."""
    if not workspace.prompts.is_dir():
        return ()
    folders = (path for path in workspace.prompts.iterdir() if path.is_dir())
    return tuple(
        sorted(path.name for path in folders if list_versions(workspace, path.name))
    )


def list_versions(workspace: WorkspacePaths, name: str) -> tuple[int, ...]:
    """Return the committed version numbers of `name`, ascending; empty if none."""
    folder = workspace.prompts / name
    if not folder.is_dir():
        return ()
    tags = (_TAG.fullmatch(path.name) for path in folder.iterdir() if path.is_dir())
    return tuple(sorted(int(tag[1]) for tag in tags if tag))


def list_drafts(workspace: WorkspacePaths, name: str) -> tuple[str, ...]:
    """Return the ids of the drafts of `name`, oldest first."""
    folder = drafts_folder(workspace, name)
    if not folder.is_dir():
        return ()
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name)]
    found.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    return tuple(path.name for path in found)


def drafts_folder(workspace: WorkspacePaths, name: str) -> Path:
    """Folder that holds the drafts of `name`, in the private part."""
    return workspace.private / "drafts" / name


def version_folder(workspace: WorkspacePaths, version: PromptVersion) -> Path:
    """Folder in which `version` is or will be."""
    if version.draft:
        return drafts_folder(workspace, version.name) / version.draft
    return workspace.prompts / version.name / version.tag


def read_version(workspace: WorkspacePaths, ref: str) -> PromptVersion:
    """Return the prompt version `ref` names.

    Parameters
    ----------
    ref
        ``name`` or ``name@latest`` (newest committed), ``name@v3``, ``name@alias``
        (an alias of the ledger), ``name@draft`` (newest draft), ``name@draft:id``.

    Raises
    ------
    DataError
        There is no such version, or its files are malformed.
    EditedVersionError
        A committed version is not what its ``prompt.yaml`` or the ledger recorded.
    LedgerError
        The ledger is broken.
    """
    name, selector = parse_ref(ref)
    if selector.partition(":")[0] == "draft":
        return _read_draft(workspace, name, selector.partition(":")[2])
    return _read_number(workspace, name, _resolve(workspace, name, selector))


class KnownVersion(NamedTuple):
    """A version, and whose it is."""

    version: PromptVersion
    shipped: bool
    """Whether it ships with ranloop; else it is of the workspace."""


def read_known(workspace: WorkspacePaths, ref: str) -> KnownVersion:
    """Return the version `ref` of a workspace, or else the one that ships.

    That is asked where the workspace has no prompt of that name, or not that number.

    Raises
    ------
    DataError
        Neither has it; or as `read_version`.
    """
    shipped = WorkspacePaths(bundled())
    name, selector = parse_ref(ref)
    own, tag = list_versions(workspace, name), _TAG.fullmatch(selector)
    if own and (tag is None or int(tag[1]) in own):
        return KnownVersion(read_version(workspace, ref), shipped=False)
    numbers = list_versions(shipped, name)
    if not numbers or (tag is not None and int(tag[1]) not in numbers):
        return KnownVersion(read_version(workspace, ref), shipped=False)
    return KnownVersion(read_version(shipped, ref), shipped=True)


def _resolve(workspace: WorkspacePaths, name: str, selector: str) -> int:
    """Return the version number behind a selector."""
    numbers = list_versions(workspace, name)
    if not numbers:
        raise DataError(_no_prompt(workspace, name))
    if selector == "latest":
        _require_newest(workspace, name, numbers[-1])
        return numbers[-1]
    tag = _TAG.fullmatch(selector) or _TAG.fullmatch(
        read_aliases(workspace, name).get(selector, "")
    )
    if tag is None:
        known = ", ".join(read_aliases(workspace, name)) or "none"
        raise DataError(
            f"{name} has no alias {quoted(selector)} (known: {known}). "
            f"Set one with `ranloop alias {name}@v{numbers[-1]} {selector} --why ...`."
        )
    if int(tag[1]) not in numbers:
        first, last = numbers[0], numbers[-1]
        known = f"are v{first} to v{last}" if last > first else f"is only v{first}"
        raise DataError(
            f"{name} has no version {tag[0]} (there {known}). See `ranloop history "
            f"{name}`."
        )
    return int(tag[1])


def _require_newest(workspace: WorkspacePaths, name: str, newest: int) -> None:
    """Refuse to take an older version for the newest when the ledger knows better."""
    tags = (
        _TAG.fullmatch(entry.subject.removeprefix(f"{name}@"))
        for entry in read_ledger(workspace.ledger)
        if entry.action == "draft_committed" and entry.subject.startswith(f"{name}@")
    )
    recorded = max((int(tag[1]) for tag in tags if tag), default=0)
    if recorded > newest:
        raise EditedVersionError(
            f"{name}@v{recorded} is in the ledger, but its folder under "
            f"{workspace.prompts / name} is missing. Restore it from your backup or "
            f"version control, or name an older version, such as {name}@v{newest}."
        )


def _no_prompt(workspace: WorkspacePaths, name: str) -> str:
    known = list_prompts(workspace)
    close = get_close_matches(name, known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    numbers = list_versions(WorkspacePaths(bundled()), name)
    if numbers and workspace.prompts != WorkspacePaths(bundled()).prompts:
        ref = f"{name}@v{numbers[-1]}"
        guess = (
            f" {ref} ships with ranloop: `ranloop prompt new {name} --from {ref}` "
            "begins it here."
        )
    return (
        f"no prompt {quoted(name)} under {workspace.prompts} (known: "
        f"{', '.join(known) or 'none'}).{guess}"
    )


class Inspection(NamedTuple):
    """A committed version as it stands on disk."""

    version: PromptVersion
    edit: Edit | None
    """How it differs from what was committed; None when it does not."""


def inspect_version(workspace: WorkspacePaths, name: str, number: int) -> Inspection:
    """Return a committed version even if it was edited, and say how.

    Raises
    ------
    DataError
        Its files are missing or malformed, or say that they are another version.
    LedgerError
        The ledger is broken.
    """
    folder = workspace.prompts / name / f"v{number}"
    version, header = read_folder(folder)
    if (version.name, version.number) != (name, number):
        raise DataError(
            f"{folder / 'prompt.yaml'} says it is {version.ref}. Restore the folder "
            f"with `git checkout -- {folder}`."
        )
    return Inspection(version, find_edit(workspace, folder, version, header))


def _read_number(workspace: WorkspacePaths, name: str, number: int) -> PromptVersion:
    version, edit = inspect_version(workspace, name, number)
    if edit is not None:
        folder = version_folder(workspace, version)
        raise EditedVersionError(
            f"{folder} was edited after it was committed: {edit.detail}. Restore it "
            f"with `git checkout -- {folder}` and make the change with "
            f"`ranloop revise {name}`, which saves it as the next version."
        )
    return with_finders(workspace, version)


def with_finders(workspace: WorkspacePaths, version: PromptVersion) -> PromptVersion:
    """Return `version` with the guides of the extractors and the stages it reads.

    Each is looked for where its reference says, in the workspace and then among those
    that ship, and known by its digest alone.

    Raises
    ------
    DataError
        One of them is not there, or is another one by its digest.
    """
    if not version.reads:
        return version
    found = [_find_named(workspace, version, one) for one in version.reads]
    stages = tuple(one for one in found if one.contract in STAGE_CONTRACTS)
    finders = tuple(guide for one in found if one not in stages for guide in one.guides)
    return replace(version, finders=finders, stages=stages)


def _find_named(
    workspace: WorkspacePaths, version: PromptVersion, wanted: NamedVersion
) -> PromptVersion:
    """Return a version that another one reads."""
    name, selector = parse_ref(wanted.ref)
    tag = _TAG.fullmatch(selector)
    for place in (workspace, WorkspacePaths(bundled())):
        if tag is not None and int(tag[1]) in list_versions(place, name):
            found = _read_number(place, name, int(tag[1]))
            if found.digest == wanted.digest:
                return found
    raise DataError(
        f"{version.ref} reads {quoted(wanted.ref)} with digest {wanted.digest[:12]}, "
        "which is neither in this workspace nor among what ships with ranloop. Copy "
        f"its folder to {workspace.prompts / name}, or make a version that reads "
        "another one."
    )


def _read_draft(workspace: WorkspacePaths, name: str, wanted: str) -> PromptVersion:
    drafts = list_drafts(workspace, name)
    draft = wanted or (drafts[-1] if drafts else "")
    if draft not in drafts:
        raise DataError(
            f"{name} has no draft {quoted(draft)} (known: "
            f"{', '.join(drafts) or 'none'}). `ranloop revise {name} "
            "--verdicts FILE` makes one."
        )
    version, _ = read_folder(drafts_folder(workspace, name) / draft, draft=draft)
    return with_finders(workspace, version)


def read_aliases(workspace: WorkspacePaths, name: str) -> dict[str, str]:
    """Return alias to version tag, as the ledger last moved them.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    aliases: dict[str, str] = {}
    for entry in read_ledger(workspace.ledger):
        subject, _, tag = entry.subject.partition("@")
        if entry.action == "alias_moved" and subject == name:
            aliases[str(entry.payload.get("alias", ""))] = tag
    return aliases


def write_version(workspace: WorkspacePaths, version: PromptVersion) -> PromptVersion:
    """Write a new version or draft to its folder and return it.

    Raises
    ------
    ConflictError
        That version exists: versions are immutable.
    WriteError
        It cannot be written; nothing remains of it.
    """
    if version.draft:
        workspace.open_private()
    write_folder(version_folder(workspace, version), version)
    return version


def latest_version(workspace: WorkspacePaths, name: str) -> PromptVersion:
    """Return the newest committed version of `name`."""
    return read_version(workspace, f"{name}@latest")


def lineage(workspace: WorkspacePaths, ref: str) -> tuple[PromptVersion, ...]:
    """Return the version `ref` names and its ancestors, newest first.

    Raises
    ------
    DataError
        A parent is not among the committed versions.
    """
    chain = [read_version(workspace, ref)]
    while parent := read_parent(workspace, chain[-1]):
        chain.append(parent)
    return tuple(chain)


def read_parent(
    workspace: WorkspacePaths, version: PromptVersion
) -> PromptVersion | None:
    """Return the committed version that `version` was revised from; None for a first.

    Raises
    ------
    DataError
        It is not among the committed versions.
    """
    parent = find_parent(workspace, version)
    if parent is None and version.parent is not None:
        raise DataError(
            f"{version.ref} names the parent {version.parent[:12]}, which is not "
            f"among the versions of {version.name}. Restore the missing folder from "
            "version control."
        )
    return parent


def find_parent(
    workspace: WorkspacePaths, version: PromptVersion
) -> PromptVersion | None:
    """Return the committed version that `version` was revised from, if it is there."""
    numbers = list_versions(workspace, version.name)
    for number in reversed(numbers):
        if version.number and number >= version.number:
            continue
        candidate = _read_number(workspace, version.name, number)
        if candidate.digest == version.parent:
            return candidate
    return None


def renumbered(version: PromptVersion, number: int) -> PromptVersion:
    """Return a draft as the committed version `number`."""
    return replace(version, number=number, draft="")

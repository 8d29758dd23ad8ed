"""The beginning of a task: a workspace of one's own, and first versions of prompts."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.core.check_findings import Finding
from loop.core.clock import Clock, format_time, utc_now
from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.files import folder_beside, locked, move_folder, write_atomic
from loop.core.git import commit_paths
from loop.core.heads import record_head
from loop.core.ledger import (
    Actor,
    Event,
    append_event,
    chain_event,
    format_entry,
    read_ledger,
)
from loop.core.paths import WorkspacePaths, bundled, init_workspace, refuse_workspace
from loop.core.records import PromptTask
from loop.judge.shots import ShotRequest, add_shots
from loop.labels.error_categories import ERRORS, read_errors
from loop.labels.label_list import read_label_list
from loop.labels.taxonomy import TAXONOMY, Taxonomy, parse_taxonomy, read_taxonomy
from loop.labels.upgrade import digest_copied
from loop.prompts.catalog import (
    file_digests,
    list_versions,
    read_aliases,
    read_known,
    read_version,
    version_folder,
    write_folder,
    write_version,
)
from loop.prompts.first import first_version
from loop.prompts.first_judge import first_judge
from loop.prompts.lint import LEVELS, has_errors
from loop.prompts.outputs.base import get_contract
from loop.prompts.version import NAME, PromptVersion
from loop.run.pool_shots import keep_injected
from loop.run.task_fields import lint_prompt, read_task_fields, task_of

SHIPPED_PROMPT = "extractor"
"""The prompt that ships with ranloop, and the name that a first one gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOrigin:
    """The version that a first version was taken from."""

    ref: str
    """For example ``"extractor@v11"``."""

    digest: str
    shipped: bool
    """Whether it ships with ranloop; else it is of this workspace."""

    release: str = ""
    """Its release that was not withdrawn; empty for none."""


class JudgeOutline(NamedTuple):
    """What the first version of a judge of pairs of reports is."""

    contract: str = ""
    """Output contract, for example ``"green_sections"``; empty where a version to begin
    with brings its own."""

    reads: str = SHIPPED_PROMPT
    """Extractor by whose guides an engine without a model finds what the texts say, of
    the workspace or else shipped; its newest version if that is not named."""

    shots: ShotRequest | None = None
    """Examples that it shows; None for those of the version it begins with."""


class FirstVersion(NamedTuple):
    """The first version of a prompt, as it was made."""

    workspace: WorkspacePaths
    version: PromptVersion
    origin: PromptOrigin | None
    """None for one that was made from labels."""

    lint: tuple[Finding, ...]
    """What is to be looked at next, errors first; there are no errors."""


def start_workspace(
    target: Path,
    actor: Actor,
    *,
    labels: Path | None = None,
    prompt: str = SHIPPED_PROMPT,
    why: str = "",
    now: Clock = utc_now,
) -> FirstVersion:
    """Make a workspace at `target` with the first version of one prompt.

    Its ledger begins with that version. Of the history that ships with ranloop it has
    nothing.

    Parameters
    ----------
    labels
        The labels of a new task, see `read_label_list`; None for chest X-rays, with
        the newest shipped extractor.
    prompt
        Name of the prompt.
    why
        Reason for the first version; says where it comes from when empty.

    Raises
    ------
    WorkspaceError
        `target` already is a workspace; nothing was changed.
    DataError
        `labels` is no list of labels, or `prompt` no name; nothing was made.
    WriteError
        It cannot be written; what was made of it is removed.
    """
    _check_name(prompt)
    taxonomy = None if labels is None else read_label_list(labels)
    refuse_workspace(target, taxonomy)
    if labels is None:
        source = read_version(WorkspacePaths(bundled()), f"{SHIPPED_PROMPT}@latest")
        origin, first = _origin_of(source, shipped=True), source
    else:
        origin, first = (
            None,
            _from_labels(prompt, parse_taxonomy(taxonomy or "", labels)),
        )
    there = target.exists()
    workspace = init_workspace(target, taxonomy)
    try:
        begun = _outline(
            workspace, replace(first, name=prompt), origin, actor, why, now
        )
        _begin_ledger(begun, actor)
    except LoopError:
        _take_back(workspace, whole=not there)
        raise
    return begun


def new_prompt(
    workspace: WorkspacePaths,
    name: str,
    actor: Actor,
    *,
    source: str = "",
    labels: Sequence[str] = (),
    judge: JudgeOutline | None = None,
    why: str = "",
    now: Clock = utc_now,
) -> FirstVersion:
    """Make the first version of another prompt in `workspace`.

    Parameters
    ----------
    source
        Version to take the wording from, of the workspace or else of what ships with
        ranloop; guides of labels that the taxonomy does not have are left out. Empty
        to begin with what the taxonomy says.
    labels
        Ids of the labels to ask for, of a judge categories of errors; empty for all,
        and of a judge for those that say something wrong about the patient.
    judge
        What a judge of pairs of reports is; None for an extractor, or for the judge
        that `source` is.
    why
        Reason; says where it comes from when empty.

    Raises
    ------
    DataError
        `name` is no name, there is no such version, label or contract, nothing of
        `source` is in the taxonomy, or the pool has no such shots.
    ConflictError
        There is a prompt `name`.
    WriteError
        It cannot be written; there is no version.
    """
    _check_name(name)
    origin = None
    if source:
        found, shipped = read_known(workspace, source)
        origin = _origin_of(found, shipped=shipped)
        first = _only(workspace, found, labels)
    elif judge is not None and judge.contract:
        first = _first_judge(workspace, name, labels, judge)
    else:
        first = _from_labels(name, read_taxonomy(workspace.labels), labels)
    if judge is not None and judge.shots is not None:
        first = replace(add_shots(workspace, first, judge.shots), composed=False)
    made = _outline(workspace, replace(first, name=name), origin, actor, why, now)
    keep_injected(workspace, made.version)
    _commit(made, actor)
    return made


def _origin_of(version: PromptVersion, *, shipped: bool) -> PromptOrigin:
    """Return where a version comes from, with its release if one is in force."""
    release = ""
    if shipped:
        for entry in read_ledger(WorkspacePaths(bundled()).ledger):
            named = str(entry.payload.get("release", ""))
            if entry.action == "frozen" and entry.payload["digest"] == version.digest:
                release = named
            elif entry.action == "withdrawn" and named == release:
                release = ""
    return PromptOrigin(
        ref=version.ref, digest=version.digest, shipped=shipped, release=release
    )


def _from_labels(
    name: str, taxonomy: Taxonomy, labels: Sequence[str] = ()
) -> PromptVersion:
    """Return a first version that asks for labels of the taxonomy, or for all."""
    unknown = [one for one in labels if one not in taxonomy.extracted]
    if unknown:
        raise DataError(
            f"{unknown[0][:60]!r} is no label of labels/{TAXONOMY} that can be asked "
            f"for. Name one of {', '.join(taxonomy.extracted)}."
        )
    asked = [
        one
        for one in taxonomy.labels
        if one.id in taxonomy.extracted and (not labels or one.id in labels)
    ]
    if not asked:
        raise DataError(
            "the taxonomy has no label that can be asked for. Give at least one "
            "besides No Finding, which follows from the others."
        )
    return first_version(name, asked, taxonomy.reading)


def _first_judge(
    workspace: WorkspacePaths,
    name: str,
    asked: Sequence[str],
    judge: JudgeOutline,
) -> PromptVersion:
    """Return a first version of a judge that asks for these categories of errors."""
    errors = read_errors(workspace.labels)
    unknown = [one for one in asked if one not in errors.ids]
    if unknown:
        raise DataError(
            f"{unknown[0][:60]!r} is no category of labels/{ERRORS}. Name one of "
            f"{', '.join(errors.ids)}."
        )
    wanted = asked or errors.clinical
    return first_judge(
        name,
        [one for one in errors.categories if one.id in wanted],
        get_contract(judge.contract, PromptTask.JUDGE),
        (read_known(workspace, judge.reads).version,),
    )


def _only(
    workspace: WorkspacePaths, source: PromptVersion, labels: Sequence[str]
) -> PromptVersion:
    """Return a version with the guides of these labels only."""
    fields = read_task_fields(workspace, task_of(source), source.contract)
    labels = labels or (source.labels if fields.any_id else fields.ids)
    kept = tuple(
        replace(guide, implies=tuple(one for one in guide.implies if one in labels))
        for guide in source.guides
        if guide.label in labels
    )
    if not kept:
        raise DataError(
            f"{source.ref} asks for no {fields.source}. Name another version with "
            "--from, or begin with the labels: leave --from out."
        )
    return replace(source, guides=kept)


def _outline(
    workspace: WorkspacePaths,
    draft: PromptVersion,
    origin: PromptOrigin | None,
    actor: Actor,
    why: str,
    now: Clock,
) -> FirstVersion:
    """Return `draft` as version 1; refuses what lint would, and writes nothing."""
    same = origin is not None and origin.digest == draft.digest
    version = replace(
        draft,
        number=1,
        parent=None,
        author=actor.name,
        time=format_time(now()),
        why=why.strip() or _explain(origin, same=same),
        verdicts=(),
        draft="",
    )
    return FirstVersion(workspace, version, origin, _lint(workspace, version))


def _event(made: FirstVersion, folder: Path) -> Event:
    """Return the ledger's event of a first version, whose files are in `folder`."""
    version = made.version
    return Event(
        action="draft_committed",
        subject=version.ref,
        reason=version.why,
        payload={
            "digest": version.digest,
            "parent": None,
            "verdicts": [],
            "files": file_digests(folder),
            "origin": _origin_data(made.origin, version),
        },
    )


def _begin_ledger(made: FirstVersion, actor: Actor) -> None:
    """Write a first version and its entry as a new ``prompts/``, by one rename."""
    place, version = made.workspace, made.version
    with folder_beside(place.prompts) as building:
        folder = building / version.name / version.tag
        write_folder(folder, version)
        event = _event(made, folder)
        copied = {**event.payload, "labels": digest_copied(place)}
        event = replace(event, payload=copied)
        entry = chain_event(event, actor, version.time, None)
        write_atomic(building / place.ledger.name, format_entry(entry))
        building.chmod(0o755)
        taken = f"{place.root} became a workspace meanwhile. Use it."
        move_folder(building, place.prompts, taken=taken, over_empty=True)
    record_head(place.root, (entry,))


def _commit(made: FirstVersion, actor: Actor) -> None:
    """Write a first version, then its ledger entry; without it, no version."""
    place, version = made.workspace, made.version
    lock = place.open_private() / "locks" / f"prompt-{version.name}.lock"
    with locked(lock):
        if list_versions(place, version.name) or _is_recorded(place, version):
            raise ConflictError(
                f"there is a prompt {version.name} already. Give the new one another "
                f"name, or revise that one: `ranloop prompt edit {version.name}`."
            )
        folder = version_folder(place, write_version(place, version))
        try:
            append_event(place.ledger, _event(made, folder), actor)
        except LoopError:
            shutil.rmtree(folder.parent, ignore_errors=True)
            raise
    message = f"{version.ref}\n\n{version.why}\n\nDigest: {version.digest}"
    commit_paths(place.root, [folder, place.ledger], message, actor.name)


def _is_recorded(workspace: WorkspacePaths, version: PromptVersion) -> bool:
    """Whether the ledger knows the version: its folder may have been removed."""
    return any(
        entry.action == "draft_committed" and entry.subject == version.ref
        for entry in read_ledger(workspace.ledger)
    ) or bool(read_aliases(workspace, version.name))


def _explain(origin: PromptOrigin | None, *, same: bool) -> str:
    if origin is None:
        return "first version, made from the names and definitions of the labels"
    whose = "the shipped " if origin.shipped else ""
    released = f" (release {origin.release})" if origin.release else ""
    how = "the same prompt as" if same else "taken from"
    return f"first version here, {how} {whose}{origin.ref}{released}"


def _origin_data(
    origin: PromptOrigin | None, version: PromptVersion
) -> dict[str, object]:
    """Return what the ledger says of where a first version comes from."""
    if origin is None:
        return {"made_from": "labels", "ranloop": __version__}
    return {
        "version": origin.ref,
        "digest": origin.digest,
        "same_digest": origin.digest == version.digest,
        "shipped": origin.shipped,
        "release": origin.release,
        "ranloop": __version__,
    }


def _lint(workspace: WorkspacePaths, version: PromptVersion) -> tuple[Finding, ...]:
    found = lint_prompt(workspace, version)
    if has_errors(found):
        lines = "\n".join(
            f"  {LEVELS[one.severity]}: {one.where}: {one.what}"
            for one in found
            if not one.holds
        )
        raise DataError(
            f"{version.ref} would not pass lint:\n{lines}\nCorrect the labels, or name "
            "another version."
        )
    return tuple(found)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise DataError(
            f"{name[:60]!r} cannot be the name of a prompt. Use lower-case letters, "
            "digits, - and _, beginning with a letter."
        )


def _take_back(workspace: WorkspacePaths, *, whole: bool) -> None:
    """Remove a workspace that could not be finished; what was there before stays."""
    with suppress(OSError):
        if whole:
            shutil.rmtree(workspace.root)
        else:
            shutil.rmtree(workspace.prompts)

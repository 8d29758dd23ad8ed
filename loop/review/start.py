"""How a workspace and its prompts begin: from what is shipped, or from own labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loop import __version__
from loop.core.clock import Clock, utc_now
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.files import read_text, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled, init_workspace
from loop.core.records import Guide
from loop.labels.label_list import read_label_list
from loop.labels.taxonomy import Label, Taxonomy, read_taxonomy
from loop.prompts.catalog import read_version
from loop.prompts.first import commit_first, write_first
from loop.prompts.guides import dump_guides
from loop.prompts.version import NAME, PromptVersion

PROMPT = "extractor"
"""The prompt that is shipped, and the usual name of a task's first."""

_SHIPPED = "shipped:"
"""Before a reference of what is shipped with ranloop, not of the workspace."""


class StartedTask(NamedTuple):
    """A workspace that was made, and its first prompt version."""

    workspace: WorkspacePaths
    version: PromptVersion


def start_task(
    target: Path,
    actor: Actor,
    *,
    labels: Path | None = None,
    prompt: str = PROMPT,
    now: Clock = utc_now,
) -> StartedTask:
    """Make a workspace at `target` with a first prompt version and its own ledger.

    Parameters
    ----------
    labels
        A list of labels, see `read_label_list`: the workspace's taxonomy, and what the
        first prompt asks for. None for the 21 findings of chest X-ray reports and the
        newest shipped extractor, whose origin stands in the first ledger entry.
    prompt
        Name of the first prompt.

    Raises
    ------
    DataError
        The list of labels cannot be used, or `prompt` is no name; nothing was made.
    WorkspaceError
        `target` holds a workspace already.
    WriteError
        It cannot be written.
    """
    _require_name(prompt)
    taxonomy = None if labels is None else read_label_list(labels)
    workspace = init_workspace(target)
    if taxonomy is None:
        version = bring_prompt(
            workspace, prompt, f"{_SHIPPED}{PROMPT}", actor, why="", now=now
        )
        return StartedTask(workspace, version)
    write_atomic(workspace.labels / "taxonomy.yaml", taxonomy)
    for crosswalk in (workspace.labels / "crosswalks").glob("*.yaml"):
        crosswalk.unlink()
    version = new_prompt(workspace, prompt, actor, why="", now=now)
    return StartedTask(workspace, version)


def new_prompt(
    workspace: WorkspacePaths,
    name: str,
    actor: Actor,
    *,
    labels: Sequence[str] = (),
    why: str = "",
    now: Clock = utc_now,
) -> PromptVersion:
    """Return v1 of a new prompt, written for labels of the workspace's taxonomy.

    A guide says what the taxonomy says of its label, whose aliases are its terms.

    Parameters
    ----------
    labels
        Ids or names of the labels that it asks for; all when there are none.

    Raises
    ------
    DataError
        `name` is no name of a prompt, or a label is not in the taxonomy.
    ConflictError
        The prompt has versions already.
    """
    _require_name(name)
    taxonomy = read_taxonomy(workspace.labels)
    asked = [taxonomy.find(label).id for label in labels] or taxonomy.extracted
    chosen = [label for label in taxonomy.labels if label.id in set(asked)]
    if not set(asked) <= set(taxonomy.extracted):
        raise DataError(
            "No Finding follows from the other labels and is never asked for. Leave it "
            "out of the labels."
        )
    version = write_first(name, [start_guide(one) for one in chosen], taxonomy.reading)
    return commit_first(
        workspace,
        version,
        actor,
        why or f"first version, for {len(chosen)} labels of labels/taxonomy.yaml",
        origin={"taxonomy": taxonomy.digest, **_made_with(workspace)},
        now=now,
    )


def start_guide(label: Label) -> Guide:
    """Return a guide to begin with: what the taxonomy says, its aliases as terms."""
    return Guide(
        label=label.id,
        name=label.name,
        definition=label.definition,
        counts=label.counts,
        does_not_count=label.does_not_count,
        uncertain_when=label.uncertain_when,
        terms=label.aliases,
    )


def guide_template(workspace: WorkspacePaths, label: str) -> str:
    """Return a guide to begin with as text to edit; see `start_guide`.

    Raises
    ------
    UnknownLabelError
        The taxonomy has no such label.
    """
    return dump_guides((start_guide(read_taxonomy(workspace.labels).find(label)),))


def bring_prompt(
    workspace: WorkspacePaths,
    name: str,
    origin: str,
    actor: Actor,
    *,
    why: str = "",
    now: Clock = utc_now,
) -> PromptVersion:
    """Return v1 of a prompt whose wording is that of another version.

    Parameters
    ----------
    origin
        A version of this workspace, for example ``"extractor@v3"``, or a shipped one,
        ``"shipped:extractor"`` or ``"shipped:extractor@v7"``. The ledger entry names
        it, its digest, and the release in which it was shipped.

    Raises
    ------
    DataError
        `name` is no name of a prompt, there is no such version, or it asks for a
        label that the taxonomy does not have.
    ConflictError
        The prompt has versions already.
    """
    _require_name(name)
    shipped = origin.startswith(_SHIPPED)
    place = WorkspacePaths(bundled()) if shipped else workspace
    source = read_version(place, origin.removeprefix(_SHIPPED))
    _require_labels(source, read_taxonomy(workspace.labels))
    described = {"prompt": source.ref, "digest": source.digest, "shipped": shipped}
    release = _find_release(place, source)
    if release:
        described["release"] = release
    what = f"the shipped {source.ref}" if shipped else source.ref
    what += f", released as {release}" if release else ""
    return commit_first(
        workspace,
        PromptVersion(
            name=name,
            number=1,
            system=source.system,
            user=source.user,
            guides=source.guides,
            plan=source.plan,
            contract=source.contract,
            inputs=source.inputs,
        ),
        actor,
        why
        or f"the wording of {what}" + (f", released as {release}" if release else ""),
        origin=described | _made_with(workspace),
        now=now,
    )


def _require_labels(version: PromptVersion, taxonomy: Taxonomy) -> None:
    unknown = [name for name in version.labels if name not in taxonomy.extracted]
    if unknown:
        raise DataError(
            f"{version.ref} asks for {len(unknown)} labels that labels/taxonomy.yaml "
            f"does not have ({', '.join(unknown[:5])}). Write a prompt for the labels "
            "of this workspace: `ranloop prompt new NAME` without --from."
        )


def _find_release(place: WorkspacePaths, version: PromptVersion) -> str:
    """Return the release of a version, if there is one of its wording; else ``""``."""
    name = f"{version.name}-{version.tag}"
    facts = place.releases / name / "release.json"
    if not facts.is_file():
        return ""
    digest = json.loads(read_text(facts))["release"]["digest"]
    return name if digest == version.digest else ""


def _made_with(workspace: WorkspacePaths) -> dict[str, Any]:
    """Return what made the first version, and the labels it found, by digest."""
    files = sorted(
        path
        for path in workspace.labels.rglob("*.yaml")
        if path.relative_to(workspace.labels).parts[0] != "cohorts"
    )
    return {
        "ranloop": __version__,
        "labels": {
            path.relative_to(workspace.labels).as_posix(): digest_bytes(
                path.read_bytes()
            )
            for path in files
        },
    }


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise DataError(
            f"{name[:40]!r} cannot be the name of a prompt. Begin with a lower-case "
            "letter and use lower-case letters, digits, - and _."
        )

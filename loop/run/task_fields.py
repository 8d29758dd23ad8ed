"""What prompts of a task may ask for: labels, or categories of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.check_findings import Finding
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import PromptTask
from loop.labels.error_categories import read_errors
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.lint import LabelMeaning, lint_version
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.outputs.plausible import PLAUSIBLE
from loop.prompts.outputs.report_changes import REWRITING
from loop.prompts.version import PromptVersion
from loop.run.store import RunRecord


class TaskFields(NamedTuple):
    """What may be asked for in a workspace, in one task."""

    ids: tuple[str, ...]
    meanings: Mapping[str, LabelMeaning]
    """Id to what the file says of it."""

    reading: Sequence[str] = ()
    """Rules of reading, for every one of them."""

    source: str = "label of labels/taxonomy.yaml"
    """What each is, and in which file, in words."""

    any_id: bool = False
    """Whether anything else may be asked for: what judges are asked that count no
    errors is one criterion, and not a category."""


def task_of(version: PromptVersion) -> PromptTask:
    """Return what a version is for; one with an unknown contract extracts."""
    contract = CONTRACTS.get(version.contract)
    return PromptTask.EXTRACT if contract is None else contract.task


def is_judge_run(run: RunRecord) -> bool:
    """Whether a run is one of a judge."""
    contract = CONTRACTS.get(run.spec.contract.partition("/")[0])
    return contract is not None and contract.task is PromptTask.JUDGE


def read_task_fields(
    workspace: WorkspacePaths, task: PromptTask, contract: str = ""
) -> TaskFields:
    """Return what prompts of `task` may ask for.

    Parameters
    ----------
    contract
        Of the prompt, which decides whether it is asked for categories of errors;
        empty where it is not known.

    Raises
    ------
    DataError
        The file that says so is missing or malformed.
    """
    if task is PromptTask.JUDGE:
        errors = read_errors(workspace.labels)
        return TaskFields(
            ids=errors.ids,
            meanings={one.id: one for one in errors.categories},
            source="category of labels/errors.yaml",
            any_id=contract in CONTRACTS and not CONTRACTS[contract].counts_errors,
        )
    if task is PromptTask.REWRITE:
        kinds = read_errors(workspace.labels).ids
        return TaskFields(
            ids=(*kinds, REWRITING, PLAUSIBLE),
            meanings={},
            source="category of labels/errors.yaml, rewriting or plausible",
        )
    taxonomy = read_taxonomy(workspace.labels)
    return TaskFields(
        ids=taxonomy.extracted,
        meanings={label.id: label for label in taxonomy.labels},
        reading=taxonomy.reading,
    )


def require_fields(workspace: WorkspacePaths, version: PromptVersion) -> None:
    """Refuse a version of which nothing could ever be scored.

    Raises
    ------
    DataError
        It changes a text, or asks for nothing that its task may ask for.
    """
    if task_of(version) is PromptTask.REWRITE:
        raise DataError(
            f"{version.ref} changes reports or looks at changes, and a run scores "
            "answers. `ranloop inject --engine ENGINE` asks it."
        )
    fields = read_task_fields(workspace, task_of(version), version.contract)
    if fields.any_id:
        return
    if version.guides and not set(version.labels).intersection(fields.ids):
        raise DataError(
            f"{version.ref} asks for no {fields.source}, so that no answer could be "
            "scored. Make a prompt of its labels with `ranloop prompt new NAME`, or "
            "name another version."
        )


def lint_prompt(
    workspace: WorkspacePaths,
    version: PromptVersion,
    parent: PromptVersion | None = None,
) -> list[Finding]:
    """Return what lint finds on a version of a workspace, errors first.

    Parameters
    ----------
    parent
        Version it was revised from: its frozen blocks must be unchanged.

    Raises
    ------
    DataError
        The file of what may be asked for is missing or malformed.
    """
    fields = read_task_fields(workspace, task_of(version), version.contract)
    return lint_version(
        version,
        labels=version.labels if fields.any_id else fields.ids,
        source=fields.source,
        meanings=fields.meanings,
        reading=fields.reading,
        parent=parent,
    )

"""The result of a check, kept beside its draft so that a later look finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from loop.core.errors import DataError
from loop.core.files import read_text, write_atomic
from loop.core.findings import Finding
from loop.core.paths import Workspace
from loop.prompts.catalog import read_version
from loop.prompts.version import PromptVersion
from loop.review.revise.changed import Changes
from loop.review.revise.check import Check, summarise
from loop.review.revise.draft_files import beside
from loop.review.revise.inputs import (
    CheckInputs,
    DraftLineage,
    name_changes,
    read_ground,
    read_line,
)
from loop.run.asking import EngineOptions
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A draft measured against its parent, on a ground that is named."""

    draft: str
    """Reference of the draft."""

    parent: str
    """Reference of its parent."""

    ground: CheckInputs
    engine: str
    asking: Mapping[str, Any]
    """How the engine was asked: the fields of `EngineOptions` that are data."""

    lint: tuple[Finding, ...]
    check: Check | None
    """None when lint found errors: nothing was run."""

    changes: Changes
    runs: tuple[str, ...]
    """Ids of the parent's and the draft's run."""

    objections: tuple[str, ...]
    """What stands against a commit; empty when nothing does."""

    skipped: tuple[str, ...]
    """Cohorts that could not be looked at for copied wording."""

    by: str
    looks: tuple[int, ...] = ()
    """Draws at each look at this wording so far, the last look's among them."""

    time: str
    """UTC, ISO 8601."""

    @property
    def passed(self) -> bool:
        """Whether the draft may be committed as it is."""
        return not self.objections


class Recalled(NamedTuple):
    """A check that was kept, and whether it still holds."""

    checked: Checked
    stale: tuple[str, ...]
    """What has changed since, in words; empty while it holds."""


_ASKING = ("temperature", "max_tokens", "seed", "allow_unconstrained", "batch")


def asking_data(asking: EngineOptions) -> dict[str, Any]:
    """Return the fields of `asking` that are data; `read_asking` is its inverse."""
    return {name: getattr(asking, name) for name in _ASKING}


def read_asking(checked: Checked) -> EngineOptions:
    """Return how the engine of a check was asked."""
    return EngineOptions(**checked.asking)


def keep_check(workspace: Workspace, draft: PromptVersion, checked: Checked) -> None:
    """Keep `checked` beside `draft`, in place of an earlier one.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    text = TypeAdapter(Checked).dump_json(checked)
    write_atomic(beside(workspace, draft).check, text, mode=0o600)


def find_check(workspace: Workspace, draft: PromptVersion) -> Checked | None:
    """Return the last check of `draft`, stale or not; None if it has none.

    A file that something else wrote counts as none: checking again makes it anew.
    """
    try:
        text = read_text(beside(workspace, draft).check)
        return TypeAdapter(Checked).validate_json(text)
    except (DataError, ValidationError):
        return None


def recall_check(
    workspace: Workspace, store: Store, ref: str, engine: str = ""
) -> Recalled | None:
    """Return the last check of the draft `ref` and what has made it stale.

    Parameters
    ----------
    engine
        Engine the check is wanted for; empty for whichever it was.

    Raises
    ------
    DataError
        There is no such draft, or what it was checked on cannot be read.
    StoreError
        The store cannot be read.
    """
    draft = read_version(workspace, ref)
    checked = find_check(workspace, draft) if draft.draft else None
    if checked is None:
        return None
    line = read_line(workspace, ref)
    return Recalled(checked, name_stale(workspace, store, line, checked, engine))


def name_stale(
    workspace: Workspace,
    store: Store,
    line: DraftLineage,
    checked: Checked,
    engine: str = "",
) -> tuple[str, ...]:
    """Return what has changed since `checked`, in words; empty while it holds."""
    stale: list[str] = []
    if line.behind:
        stale.append(f"{line.newest.ref} was committed by {line.newest.author} since")
    if engine and engine != checked.engine:
        stale.append(f"it asked {checked.engine}, not {engine}")
    now = read_ground(workspace, store, line.draft, checked.ground.cohort)
    return (*stale, *name_changes(checked.ground, now))


def evidence(checked: Checked) -> dict[str, object]:
    """Return what a decision rests on, for the ledger: counts, names and run ids."""
    found: dict[str, object] = {
        "cohort": checked.ground.cohort,
        "engine": checked.engine,
        "runs": list(checked.runs),
        "not_searched_for_copies": list(checked.skipped),
    }
    return found | (summarise(checked.check) if checked.check else {})

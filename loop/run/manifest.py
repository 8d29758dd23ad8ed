"""A run's manifest: everything needed to say later what was measured, with what."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from loop.core.errors import DataError
from loop.core.files import read_text, write_atomic
from loop.core.git import GitState, read_git
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.cohort import (
    CohortRole,
    find_record,
    list_cohorts,
    read_cohort_file,
)
from loop.run.spec import spec_data
from loop.run.store import RunRecord, Store, open_store

_PACKAGES = (
    "ranloop",
    "ahocorasick-rs",
    "aiohttp",
    "jinja2",
    "numpy",
    "pandas",
    "pydantic",
    "scikit-learn",
    "scipy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a run's numbers may depend on, besides its spec."""

    python: str
    platform: str
    packages: Mapping[str, str | None]
    """Version of each package; None where it is not installed."""

    git: GitState


def read_environment(root: Path) -> Environment:
    """Return versions, platform, and the git state of the workspace at `root`."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: _version(name) for name in _PACKAGES},
        git=read_git(root),
    )


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write_manifest(
    workspace: WorkspacePaths,
    record: RunRecord,
    identity: Mapping[str, object],
    environment: Environment,
    account: Mapping[str, object] | None = None,
) -> Path:
    """Write the manifest of `record` atomically and return its path.

    Parameters
    ----------
    account
        What the engine counted while it answered; None for one that does not count.

    Raises
    ------
    WriteError
        The workspace cannot be written.
    """
    manifest = {
        "run_id": record.id,
        "created": record.created,
        "finished": record.finished,
        "counts": dict(record.counts),
        "spec": spec_data(record.spec),
        "engine_identity": dict(identity),
        "engine_account": None if account is None else dict(account),
        "python": environment.python,
        "platform": environment.platform,
        "packages": dict(environment.packages),
        "git": environment.git._asdict(),
    }
    path = _path(workspace, record.id)
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    write_atomic(path, text, mode=0o600)
    return path


def read_manifest(workspace: WorkspacePaths, run_id: str) -> dict[str, Any]:
    """Return the manifest of run `run_id`.

    Raises
    ------
    DataError
        It does not exist or is not JSON.
    """
    path = _path(workspace, run_id)
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise DataError(
            f"{path} is not JSON. Run the same `ranloop run` again for a new one."
        ) from error
    if not isinstance(data, dict):
        raise DataError(f"{path} is not a manifest. Run the same `ranloop run` again.")
    return data


def ran_freely(workspace: WorkspacePaths, run_id: str) -> bool:
    """Whether a run let its engine answer without a schema.

    Who started it, on the command line, has accepted that; a page cannot ask.

    Raises
    ------
    DataError
        Its manifest does not exist or is not JSON.
    """
    manifest = read_manifest(workspace, run_id)
    return manifest.get("engine_identity", {}).get("constrained") is False


def _path(workspace: WorkspacePaths, run_id: str) -> Path:
    return workspace.private / "runs" / run_id / "manifest.json"


def find_run(workspace: WorkspacePaths, ref: str = "latest") -> RunRecord:
    """Return the finished run that `ref` names.

    Parameters
    ----------
    ref
        A run id, the unique beginning of one, ``"latest"``, or
        ``"latest:<prompt>[:<cohort>]"`` with a prompt version (``extractor@v3``) or a
        prompt name (``extractor``). Runs of drafts count only if the draft is named,
        runs over a holdout only if the cohort is, and runs over a part of a cohort
        never: they are named by their id. Of repeated runs, ``latest`` means the first
        draw.

    Raises
    ------
    DataError
        There is none, the beginning fits several, or the run did not finish.
    StoreError
        The store cannot be read.
    """
    with open_store(workspace) as store:
        word, _, prompt = ref.partition(":")
        if word == "latest":
            runs = store.find_runs(finished=True)
            return _latest(workspace, runs, *_split(prompt))
        return _by_id(store.find_runs(prefix=ref), ref)


def list_runs(workspace: WorkspacePaths, store: Store) -> list[RunRecord]:
    """Return all runs, newest first, but none on a holdout.

    Whoever may read a holdout blind must not see how a model does on it. A cohort that
    the ledger does not know may be one.

    Raises
    ------
    LedgerError
        The ledger cannot be read.
    StoreError
        The store cannot be read.
    """
    runs, entries = store.find_runs(), read_ledger(workspace.ledger)
    shown = {
        name
        for name in {run.spec.cohort for run in runs}
        if (record := find_record(entries, name)) is not None and not record.is_holdout
    }
    return [run for run in runs if run.spec.cohort in shown]


def _split(wanted: str) -> tuple[str, str]:
    """Return prompt and cohort of ``<prompt>:<cohort>``; a draft's name has a colon."""
    prompt, _, cohort = wanted.rpartition(":")
    if not prompt or prompt.endswith("@draft"):
        return wanted, ""
    return prompt, cohort


def _latest(
    workspace: WorkspacePaths, runs: list[RunRecord], prompt: str, cohort: str
) -> RunRecord:
    closed = set() if cohort else _holdouts(workspace, runs)
    part: RunRecord | None = None
    for record in runs:
        full = record.spec.prompt
        name, _, version = full.partition("@")
        fits = full == prompt or (
            prompt in ("", name) and not version.startswith("draft")
        )
        first = record.spec.draw == 0 or version.startswith("draft")
        wanted = record.spec.cohort not in closed and first
        if fits and wanted and cohort in ("", record.spec.cohort):
            if record.part is None:
                return record
            part = part or record
    of = f" of {prompt}" if prompt else ""
    on = f" on {cohort}" if cohort else ""
    if part is not None:
        raise DataError(
            f"there is no finished run{of}{on} over a whole cohort. Run {part.id} "
            f"asked {name_part(part)} only: name it, or run without --limit."
        )
    raise DataError(f"there is no finished run{of}{on}. Make one with `ranloop run`.")


def say_part(record: RunRecord) -> str:
    """Return in a sentence that a run asked a part of its cohort; else nothing."""
    part = name_part(record)
    if not part:
        return ""
    return (
        f"Run {record.id} asked {part} of {record.spec.cohort} only; "
        "`latest` never names it, and no history shows it."
    )


def name_part(record: RunRecord) -> str:
    """Return which cases of its cohort a run asked; empty where it asked all."""
    if record.part is None:
        return ""
    cases = "case" if record.part == 1 else f"{record.part:,} cases"
    return f"the first {cases}"


def _holdouts(workspace: WorkspacePaths, runs: list[RunRecord]) -> set[str]:
    """Return which cohorts of `runs` are holdouts: nobody goes on from their runs."""
    here = set(list_cohorts(workspace)) & {run.spec.cohort for run in runs}
    return {
        name
        for name in here
        if read_cohort_file(workspace, name).role is CohortRole.HOLDOUT
    }


def _by_id(runs: list[RunRecord], ref: str) -> RunRecord:
    exact = [record for record in runs if record.id == ref]
    runs = exact or runs
    if not runs or not ref:
        raise DataError(
            f"there is no run {quoted(ref)}. Use `latest`, or an id that `ranloop run` "
            "gave."
        )
    if len(runs) > 1:
        some = ", ".join(record.id for record in runs[:5])
        raise DataError(
            f"{quoted(ref)} fits {len(runs)} runs: {some}. Write more of the id."
        )
    if runs[0].finished is None:
        raise DataError(
            f"run {runs[0].id} did not finish. Start the same `ranloop run` again: it "
            "asks only for what is missing."
        )
    return runs[0]

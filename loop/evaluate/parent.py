"""The run that a run is compared with by default: the parent version's."""

from __future__ import annotations

from loop.core.errors import DataError
from loop.core.paths import Workspace
from loop.prompts.catalog import find_parent, read_version
from loop.run.manifest import find_run
from loop.run.spec import RunSpec
from loop.run.store import open_store


def find_parent_run(workspace: Workspace, run_ref: str) -> str | None:
    """Return the id of the newest finished run of the parent version, if there is one.

    It must have asked the same cases with the same engine, so that only the prompt
    differs. None too when the version or its parent is no longer among the prompts.

    Raises
    ------
    DataError
        The run itself does not exist or did not finish.
    StoreError
        The store cannot be read.
    """
    spec = find_run(workspace, run_ref).spec
    try:
        parent = find_parent(workspace, read_version(workspace, spec.prompt))
    except DataError:
        return None
    if parent is None:
        return None
    with open_store(workspace) as store:
        finished = store.find_runs("finished IS NOT NULL")
    return next(
        (
            run.id
            for run in finished
            if run.spec.prompt_digest == parent.digest and _same_work(run.spec, spec)
        ),
        None,
    )


def _same_work(one: RunSpec, other: RunSpec) -> bool:
    """Whether two runs differ in their prompts at most."""
    return (one.cohort_digest, one.engine, dict(one.parameters), one.limit) == (
        other.cohort_digest,
        other.engine,
        dict(other.parameters),
        other.limit,
    )

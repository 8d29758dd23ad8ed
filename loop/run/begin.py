"""Begins a run, or takes up the one that a kill left unfinished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import chain, repeat

from loop.core.digests import digest_json
from loop.core.errors import ConflictError
from loop.core.files import locked
from loop.run.spec import RunSpec, run_id, spec_data
from loop.run.store import RunRecord, Store


@contextmanager
def begin_run(
    store: Store,
    spec: RunSpec,
    identity: Mapping[str, object],
    now: Callable[[], datetime],
) -> Iterator[RunRecord]:
    """Hold the run of `spec` for the length of the block.

    That is the newest unfinished run with the same spec and engine identity that no
    living process works on; else a new one. The lock goes with the process, so a
    killed run can be taken up at once.

    Raises
    ------
    StoreError
        The store cannot be read or written.
    WriteError
        The run's folder cannot be made.
    """
    match = digest_json({"spec": spec_data(spec), "engine": dict(identity)})
    unfinished = store.find_runs("match = ? AND finished IS NULL", [match])
    for known in chain(unfinished, repeat(None)):
        record = known or _add(store, spec, match, now)
        with ExitStack() as stack:
            try:
                folder = store.path.parent / "runs" / record.id
                stack.enter_context(locked(folder / "lock", wait=False))
            except ConflictError:
                # A living process works on it: take the next, at last a new one.
                continue
            yield record
            return


def _add(
    store: Store, spec: RunSpec, match: str, now: Callable[[], datetime]
) -> RunRecord:
    created = now().astimezone(UTC)
    stamp = created.isoformat(timespec="seconds")
    return store.add_run(run_id(created, match), stamp, match, spec)

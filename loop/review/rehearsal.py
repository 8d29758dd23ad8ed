"""A verdict file tried out before it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from loop.core.paths import Workspace
from loop.labels.trial import trial
from loop.review.intake import ImportDefaults, take_file
from loop.review.record import load_verdicts
from loop.run.store import Store, open_store


class FileRehearsal(NamedTuple):
    """What a verdict file holds."""

    cohort: str
    run: str
    """Full id of the run that was judged, or empty."""

    verdicts: int
    known: int
    """Of these: in the store already, word for word."""

    reviewers: tuple[str, ...]
    """Who judges, as the file says; sorted."""

    judgements: Mapping[str, int]
    labels: Mapping[str, int]
    """Label id to number of verdicts, most first."""


def rehearse_file(
    workspace: Workspace,
    store: Store,
    path: Path,
    occasion: ImportDefaults,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FileRehearsal:
    """Return what `take_file` would keep; `store` is only read.

    Raises
    ------
    DataError
        The file, a verdict, the cohort or the run is wrong.
    UnknownLabelError
        A label is not in the taxonomy.
    WriteError
        The store to try it in cannot be made.
    """
    with trial(workspace) as copy, open_store(copy) as empty:
        taken = take_file(workspace, empty, path, occasion, now)
        verdicts = load_verdicts(empty, taken.cohort, taken.ids)
    known = load_verdicts(store, taken.cohort, [one.id for one in verdicts])
    labels = Counter(one.label for one in verdicts)
    return FileRehearsal(
        cohort=taken.cohort,
        run=taken.run,
        verdicts=len(taken.ids),
        known=len(known),
        reviewers=tuple(sorted({one.reviewer for one in verdicts})),
        judgements=dict(Counter(one.judgement.value for one in verdicts)),
        labels=dict(labels.most_common()),
    )

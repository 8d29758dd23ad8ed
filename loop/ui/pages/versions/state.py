"""Which versions have a run that was not evaluated yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from loop.evaluate.score_history import VersionScore, main_scores
from loop.labels.cohort import read_cohort, read_record
from loop.run.store import RunRecord
from loop.ui.context import AppContext


class Unscored(NamedTuple):
    """A version with a run that its score on the cohort does not rest on."""

    score: VersionScore
    run: RunRecord
    """Its newest finished run over the whole cohort."""

    why: str
    """What an evaluation would change."""


def newest_runs(context: AppContext, cohort: str) -> dict[str, RunRecord]:
    """Return digest of a prompt version to its newest whole run on `cohort`.

    A run over the first cases only, a repeat, and a run over other cases than the
    cohort holds now are none.
    """
    digest = read_cohort(context.workspace, cohort).digest
    found: dict[str, RunRecord] = {}
    for run in context.store.find_runs(finished=True):
        spec = run.spec
        whole = spec.limit is None and spec.draw == 0
        if whole and (spec.cohort, spec.cohort_digest) == (cohort, digest):
            found.setdefault(spec.prompt_digest, run)
    return found


def find_unscored(
    context: AppContext, scores: Iterable[VersionScore], cohort: str
) -> tuple[Unscored, ...]:
    """Return the committed versions that an evaluation would give a newer score.

    Of a holdout none: who may read it blind must not see how a model does on it.
    """
    record = read_record(context.workspace, cohort)
    runs, newest = newest_runs(context, cohort), record.newest
    if record.is_holdout or not newest:
        return ()
    every = tuple(scores)
    found = []
    for score in main_scores(every).values():
        run = runs.get(score.digest) if score.number else None
        if run is None:
            continue
        on_run = [one.reference for one in every if one.run == run.id]
        if newest in on_run:
            continue
        if not score.run:
            why = "not scored yet"
        elif not on_run:
            why = "scored on an older run"
        else:
            why = f"scored against reference version {on_run[-1]}, not {newest}"
        found.append(Unscored(score, run, why))
    return tuple(found)

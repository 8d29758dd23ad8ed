"""Versions whose run was not evaluated yet: which they are, and evaluating one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.evaluate.history import VersionScore, main_scores, score_history
from loop.evaluate.recording import record_evaluation
from loop.evaluate.results import Evaluation
from loop.labels.cohort import read_cohort, read_record
from loop.run.store import RunRecord
from loop.ui.desk import Desk
from loop.ui.show import show
from loop.ui.wiring import Visit


class Unscored(NamedTuple):
    """A version with a run that its score on the cohort does not rest on."""

    score: VersionScore
    run: RunRecord
    """Its newest finished run over the whole cohort."""

    why: str
    """What an evaluation would change."""


def newest_runs(desk: Desk, cohort: str) -> dict[str, RunRecord]:
    """Return digest of a prompt version to its newest whole run on `cohort`.

    A run over the first cases only, a repeat, and a run over other cases than the
    cohort holds now are none.
    """
    digest = read_cohort(desk.workspace, cohort).digest
    found: dict[str, RunRecord] = {}
    for run in desk.store.find_runs(finished=True):
        spec = run.spec
        whole = spec.limit is None and spec.draw == 0
        if whole and (spec.cohort, spec.cohort_digest) == (cohort, digest):
            found.setdefault(spec.prompt_digest, run)
    return found


def find_unscored(
    desk: Desk, scores: Iterable[VersionScore], cohort: str
) -> tuple[Unscored, ...]:
    """Return the committed versions that an evaluation would give a newer score.

    Of a holdout none: who may read it blind must not see how a model does on it.
    """
    record = read_record(desk.workspace, cohort)
    runs, newest = newest_runs(desk, cohort), record.newest
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


def render_unscored(
    visit: Visit, prompt: str | None, cohort: str | None, said: str = ""
) -> str:
    """Return which versions wait for an evaluation, each with its button."""
    if not prompt or not cohort:
        return ""
    desk = visit.desk
    try:
        waiting = find_unscored(
            desk, score_history(desk.workspace, prompt, cohort), cohort
        )
    except DataError:
        waiting = ()
    return show(
        "versions_unscored.html.jinja",
        waiting=waiting,
        cohort=cohort,
        may=visit.user.may(Right.REVISE),
        said=said,
    )


def evaluate_version(
    visit: Visit, prompt: str | None, cohort: str | None
) -> Evaluation:
    """Evaluate the run of the version that was clicked, and record it as the CLI does.

    Raises
    ------
    DataError
        Nothing of that version waits for an evaluation, or it cannot be evaluated.
    """
    desk, wanted = visit.desk, str(visit.data.get("number", ""))
    scores = score_history(desk.workspace, prompt or "", cohort or "")
    for one in find_unscored(desk, scores, cohort or ""):
        if str(one.score.number) == wanted:
            evaluation = desk.evaluation(one.run)
            return record_evaluation(desk.workspace, evaluation, visit.actor)
    raise DataError(
        "that version has no run here that waits for an evaluation: somebody may have "
        "evaluated it meanwhile. Open the page again."
    )

"""What the page Runs rests on: what a visitor has open, and which runs are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loop.core.clock import format_time
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.records import ValueCode
from loop.core.safe_text import quoted
from loop.engines.base import masked
from loop.evaluate.align import AlignedPairs, read_codes
from loop.evaluate.compare import (
    Comparison,
    SharedAnswers,
    compare_inputs,
    share_answers,
)
from loop.evaluate.inputs import read_inputs
from loop.labels.reference import list_references
from loop.labels.taxonomy import read_taxonomy
from loop.review.working import drop_working, keep_working, read_working
from loop.run.jobs import JobRecord, JobRequest, list_jobs
from loop.run.manifest import list_runs
from loop.run.store import RunRecord
from loop.run.trace import require_open
from loop.ui.context import AppContext
from loop.ui.wiring import Visit

MOST_COMPARED = 6

NEWS_SHOWN = 20

_NEWS = "runs:news"
"""Subject under which is kept of which ended jobs a person was told."""

_OPEN = "runs:open"
"""Subject under which the run whose cases a person looks at is kept."""


class RunsPlace(NamedTuple):
    """What one browser tab has open; kept on the server."""

    listed: tuple[str, ...] = ()
    """Ids of the runs that are in its table."""

    ticked: tuple[str, ...] = ()
    """Ids of the runs to compare, on whatever page of the table."""

    run: str = ""
    """The run whose cases are shown; empty for none."""

    compared: tuple[str, ...] = ()
    """Ids of the runs that are compared, oldest first."""

    estimated: JobRequest | None = None
    """The work whose estimate was shown last, and that was not started."""

    def with_ticks(self, data: Mapping[str, Any]) -> RunsPlace:
        """Return the place with the boxes of its table as the browser has them."""
        sent = data.get("ticked")
        sent = sent if isinstance(sent, list) and len(sent) <= 1000 else []
        known = [one for one in sent if isinstance(one, str)]
        kept = [one for one in self.ticked if one not in self.listed or one in known]
        new = [one for one in self.listed if one in known and one not in kept]
        return self._replace(ticked=(*kept, *new))


class News(NamedTuple):
    """Jobs that ended since a person last looked, and of what they had been told."""

    ended: Sequence[JobRecord]
    """The newest first; of very many only the newest."""

    since: str
    told: Sequence[str]
    known: bool
    """Whether the person has looked before: of what ended earlier nobody is told."""


def find_news(visit: Visit) -> News:
    """Return which jobs ended since the visitor last looked; they are not told yet."""
    context = visit.context
    kept = read_working(context.store, visit.actor, _NEWS)
    since = str(kept.payload.get("until", "")) if kept else format_time(context.now())
    told = list(kept.payload.get("told") or ()) if kept else []
    ended = [
        job
        for job in list_jobs(context.store, ended_from=since, most=NEWS_SHOWN)
        if _ending(job) not in told
    ]
    return News(ended, since, told, kept is not None)


def take_news(visit: Visit) -> Sequence[JobRecord]:
    """Return the jobs that ended since the visitor last looked, the newest first.

    Each person is told once, and of none that ended before their first visit.
    """
    context, news = visit.context, find_news(visit)
    if news.ended or not news.known:
        until = max([news.since, *(job.ended or "" for job in news.ended)])
        # The next that ends in the same second is still news.
        told = [*news.told] if until == news.since else []
        told += [_ending(job) for job in news.ended if job.ended == until]
        payload = {"until": until, "told": told}
        keep_working(context.store, visit.actor, _NEWS, payload, context.now)
    return news.ended


def _ending(job: JobRecord) -> str:
    return f"{job.number} {job.ended}"


def find_runs(context: AppContext, words: str) -> list[RunRecord]:
    """Return the runs that have all of `words`, newest first; none on a holdout."""
    wanted = words.casefold().split()
    return [
        run
        for run in list_runs(context.workspace, context.store)
        if all(word in _words(run) for word in wanted)
    ]


def _words(run: RunRecord) -> str:
    spec = run.spec
    parts = (
        run.id,
        spec.prompt,
        spec.cohort,
        masked(spec.engine),
        run.actor or "unknown",
    )
    return " ".join(parts).casefold()


def require_shown(context: AppContext, ids: Sequence[str]) -> list[RunRecord]:
    """Return the runs of these ids, oldest first, if they may be shown.

    Raises
    ------
    DataError
        One is not there, did not finish, or is on a holdout.
    """
    found = context.store.find_runs(ids=ids)
    gone = set(ids) - {one.id for one in found}
    if gone:
        raise DataError(
            f"there is no run {quoted(min(gone))} any more. Load the page again."
        )
    for run in found:
        require_open(context.workspace, run)
        if run.finished is None:
            raise DataError(
                f"run {run.id} did not finish: it has no cases to show yet. Start the "
                "same work again; only what is missing is asked."
            )
    return found[::-1]


class ComparedRuns(NamedTuple):
    """Several runs on the same cases."""

    runs: tuple[RunRecord, ...]
    """Oldest first."""

    comparisons: tuple[Comparison, ...]
    """The first run against each of the others; none without a reference."""

    shared: SharedAnswers
    names: Mapping[str, str]
    """Label id to its published name."""

    def letter(self, place: int) -> str:
        """Return how tables call the run at `place`."""
        return "ABCDEF"[place]


def compare_chosen(context: AppContext, ids: Sequence[str]) -> ComparedRuns:
    """Return runs side by side, worked out once.

    Raises
    ------
    DataError
        There are too few or too many, one may not be shown, or they asked different
        cohorts or parts of one.
    """
    if not 2 <= len(set(ids)) <= MOST_COMPARED:
        raise DataError(
            f"{counted(len(set(ids)), 'run is', 'runs are')} ticked. Tick 2 to "
            f"{MOST_COMPARED} runs on one cohort to compare them."
        )
    runs = require_shown(context, ids)
    key = ("compared", *(context.standing(run) for run in runs))
    return context.cache.get(key, lambda: _compare(context, runs))


def _compare(context: AppContext, runs: Sequence[RunRecord]) -> ComparedRuns:
    first, *others = runs
    for run in others:
        if run.spec.cohort_digest != first.spec.cohort_digest:
            raise DataError(
                f"run {first.id} asked cohort {first.spec.cohort} and run {run.id} "
                f"asked {run.spec.cohort}, or other cases of it. Compare runs on the "
                "same cohort."
            )
    names = {one.id: one.name for one in read_taxonomy(context.workspace.labels).labels}
    if not list_references(context.workspace, first.spec.cohort):
        shared = share_answers([_read_alone(context, run) for run in runs])
        return ComparedRuns(tuple(runs), (), shared, names)
    before, *after = [read_inputs(context.workspace, run.id) for run in runs]
    comparisons = tuple(compare_inputs(before, one) for one in after)
    shared = share_answers([before.pairs, *(one.pairs for one in after)])
    return ComparedRuns(tuple(runs), comparisons, shared, names)


def _read_alone(context: AppContext, run: RunRecord) -> AlignedPairs:
    """Return what a run said, with no reference to hold it against."""
    taxonomy = read_taxonomy(context.workspace.labels)
    table = read_codes(context.store, run, taxonomy)
    return AlignedPairs(
        case_ids=table.case_ids,
        labels=tuple(taxonomy.ids),
        reference=np.full_like(table.codes, ValueCode.MISSING),
        predicted=table.codes,
        statuses={},
        not_run=0,
    )


def follow_run(visit: Visit, run: str) -> None:
    """Have the page show the cases of a run from now on; of none when empty.

    Other pages call it to open the page on a run.
    """
    if not run:
        drop_working(visit.context.store, visit.actor, _OPEN)
    elif len(run) <= 100:
        keep_working(
            visit.context.store, visit.actor, _OPEN, {"run": run}, visit.context.now
        )


def run_followed(visit: Visit) -> str:
    """Return the run whose cases the page is to show; empty for none."""
    kept = read_working(visit.context.store, visit.actor, _OPEN)
    return str(kept.payload.get("run") or "") if kept else ""

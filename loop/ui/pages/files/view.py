"""What the page Files shows: what can be exported, and what became of an upload."""

from __future__ import annotations

from typing import NamedTuple

from loop.core.errors import DataError, LedgerError
from loop.labels.cohort import CohortRole, read_cohort, read_record
from loop.review.status import judged_cohorts
from loop.ui.desk import Desk
from loop.ui.downloads import link_to
from loop.ui.jobs import JobProgress
from loop.ui.pages.files.steps import Done, ImportKind
from loop.ui.show import notice, show
from loop.ui.wiring import Visit


class DownloadLink(NamedTuple):
    """One kind of file that can be exported."""

    text: str
    address: str


class Shelf(NamedTuple):
    """Files with the same content."""

    name: str
    holds: str
    links: tuple[DownloadLink, ...]
    why_not: str = ""
    """Why there is none; empty when there is."""


def render_out(visit: Visit, prompt: str | None, cohort: str | None) -> str:
    """Return what can be exported for a prompt and a cohort."""
    if not prompt or not cohort:
        return notice(
            "Import one below, or with `ranloop cohort import`.",
            title="No cohort yet",
        )
    shelves = _shelves(visit.desk, prompt, cohort)
    return show("files_out.html.jinja", shelves=shelves, prompt=prompt, cohort=cohort)


def _shelves(desk: Desk, prompt: str, cohort: str) -> list[Shelf]:
    def links(*names: str) -> tuple[DownloadLink, ...]:
        return tuple(
            DownloadLink(_format_of(name), link_to(name, prompt, cohort))
            for name in names
        )

    no_run = _no_run(desk, prompt, cohort)
    return [
        Shelf(
            "Evaluation",
            "the newest run as a document: gates, intervals, what changed",
            links("evaluation.html", "evaluation.md"),
            no_run,
        ),
        Shelf("Gate table", "one row per label", links("gates.csv"), no_run),
        Shelf(
            "Labels",
            "what the newest run read out of every case: case ids and values; no text",
            links("labels.csv", "labels.xlsx", "labels.parquet"),
            no_run,
        ),
        Shelf(
            "Failing cases",
            "case ids, labels, values and where the evidence stands; no text",
            links("failures.csv"),
            no_run or _closed(desk, cohort),
        ),
        Shelf(
            "Agreement",
            "how far readers agree, label by label",
            links("agreement.csv"),
            _no_votes(desk, cohort),
        ),
        Shelf(
            "Verdicts",
            "all that were given on this cohort, with their exemplars; can be imported "
            "again. The notes of reviewers are only in the files that say so",
            links(
                "verdicts.yaml",
                "verdicts.csv",
                "verdicts-with-notes.yaml",
                "verdicts-with-notes.csv",
            ),
            "" if cohort in judged_cohorts(desk.store) else "no verdict yet",
        ),
        Shelf(
            "History",
            "every version and draft: who, why, scores on every cohort",
            links("history.csv"),
        ),
        Shelf("Ledger", "the chain as it stands", links("ledger.jsonl")),
    ]


def _format_of(name: str) -> str:
    """Return ``YAML``, or ``YAML with notes``."""
    stem, _, ending = name.rpartition(".")
    return ending.upper() + (" with notes" if stem.endswith("with-notes") else "")


def _no_run(desk: Desk, prompt: str, cohort: str) -> str:
    try:
        desk.latest_run(prompt, cohort)
    except DataError:
        return "no finished run yet"
    return ""


def _closed(desk: Desk, cohort: str) -> str:
    try:
        holdout = read_cohort(desk.workspace, cohort).role is CohortRole.HOLDOUT
    except DataError:
        return "the cohort is not as recorded"
    return "never: a holdout's cases stay unseen" if holdout else ""


def _no_votes(desk: Desk, cohort: str) -> str:
    try:
        record = read_record(desk.workspace, cohort)
    except LedgerError:
        return "the ledger is broken"
    except DataError:
        return "the cohort is not as recorded"
    if record.is_holdout:
        return "never: a holdout's votes are sealed"
    return "" if record.votes else "no votes of readers yet"


def render_step(kind: ImportKind, progress: JobProgress | None) -> str:
    """Return what is said of an upload: under way, refused, checked or done."""
    if progress is None:
        return ""
    if not progress.finished:
        return show("files_progress.html.jinja", progress=progress)
    if progress.error:
        return notice(
            f"{progress.error} Nothing was changed, and the file was deleted.",
            kind="error",
            title="Not imported",
        )
    done = isinstance(progress.result, Done)
    file = progress.result.file if done else progress.result.path.name
    return show(
        f"files_{kind.value}.html.jinja",
        found=progress.result.found,
        done=done,
        file=file,
    )

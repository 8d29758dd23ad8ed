"""What the page Files shows: what can be exported, and what became of an upload."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from loop.core.errors import DataError, LedgerError
from loop.labels.cohort import CohortRole, read_cohort, read_record
from loop.review.status import judged_cohorts
from loop.ui.background import JobProgress
from loop.ui.context import AppContext
from loop.ui.downloads import link_to
from loop.ui.html import notice, show
from loop.ui.pages.files.state import ImportedUpload, ImportKind
from loop.ui.wiring import Visit


class FilesOutputs(NamedTuple):
    """What each component of the page shows, besides those of the uploads."""

    exports: Any
    importing: Any
    votes_cohort: Any
    verdicts_cohort: Any


class UploadOutputs(NamedTuple):
    """What is said of one upload, in components of these names."""

    said: Any
    confirm: Any
    timer: Any


class DownloadLink(NamedTuple):
    """One kind of file that can be exported."""

    text: str
    address: str


class ExportRow(NamedTuple):
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
    shelves = _shelves(visit.context, prompt, cohort)
    return show("files_out.html.jinja", shelves=shelves, prompt=prompt, cohort=cohort)


def _shelves(context: AppContext, prompt: str, cohort: str) -> list[ExportRow]:
    def links(*names: str) -> tuple[DownloadLink, ...]:
        return tuple(
            DownloadLink(_format_of(name), link_to(name, prompt, cohort))
            for name in names
        )

    no_run = _no_run(context, prompt, cohort)
    return [
        ExportRow(
            "Evaluation",
            "the newest run as a document: gates, intervals, what changed",
            links("evaluation.html", "evaluation.md"),
            no_run,
        ),
        ExportRow("Gate table", "one row per label", links("gates.csv"), no_run),
        ExportRow(
            "Labels",
            "what the newest run read out of every case: case ids and values; no text",
            links("labels.csv", "labels.xlsx", "labels.parquet"),
            no_run,
        ),
        ExportRow(
            "Failing cases",
            "case ids, labels, values and where the evidence stands; no text",
            links("failures.csv"),
            no_run or _closed(context, cohort),
        ),
        ExportRow(
            "Agreement",
            "how far readers agree, label by label",
            links("agreement.csv"),
            _no_votes(context, cohort),
        ),
        ExportRow(
            "Verdicts",
            "all that were given on this cohort, with their exemplars; can be imported "
            "again. The notes of reviewers are only in the files that say so",
            links(
                "verdicts.yaml",
                "verdicts.csv",
                "verdicts-with-notes.yaml",
                "verdicts-with-notes.csv",
            ),
            "" if cohort in judged_cohorts(context.store) else "no verdict yet",
        ),
        ExportRow(
            "History",
            "every version and draft: who, why, scores on every cohort",
            links("history.csv"),
        ),
        ExportRow("Ledger", "the chain as it stands", links("ledger.jsonl")),
    ]


def _format_of(name: str) -> str:
    """Return ``YAML``, or ``YAML with notes``."""
    stem, _, ending = name.rpartition(".")
    return ending.upper() + (" with notes" if stem.endswith("with-notes") else "")


def _no_run(context: AppContext, prompt: str, cohort: str) -> str:
    try:
        context.latest_run(prompt, cohort)
    except DataError:
        return "no finished run yet"
    return ""


def _closed(context: AppContext, cohort: str) -> str:
    try:
        holdout = read_cohort(context.workspace, cohort).role is CohortRole.HOLDOUT
    except DataError:
        return "the cohort is not as recorded"
    return "never: a holdout's cases stay unseen" if holdout else ""


def _no_votes(context: AppContext, cohort: str) -> str:
    try:
        record = read_record(context.workspace, cohort)
    except LedgerError:
        return "the ledger is broken"
    except DataError:
        return "the cohort is not as recorded"
    if record.is_holdout:
        return "never: a holdout's votes are sealed"
    return "" if record.votes else "no votes of readers yet"


_FIELDS = {
    ImportKind.COHORT: {
        "--number-rows": "the box “Number the rows”",
        "--id-column": "the field “Column of the case ids”",
        "--text-column": "the field “Column of the text”",
        "--patient-column": "the field “Column of the patients”",
        "--reference-column": "the field “Of pairs: column of the references”",
        "--candidate-column": "the field “Of pairs: column of the candidates”",
        "--system-column": "the field “Of pairs: column of the systems”",
        "--part": "the field “Only one part”",
        "--value": "the field “What words of label cells mean”:",
        "--exclude": "the field “Case ids to leave out”:",
        "--encoding": "the field “Encoding”:",
        "--replace": "the box “Replace a cohort of this name”",
    },
    ImportKind.VOTES: {
        "--value": "the field “What words of cells mean”:",
        "--replace": "the box “Replace all earlier votes”",
    },
}
"""Option of ``cohort import`` and ``cohort votes`` to the field that stands for it."""


def _in_fields(error: str, kind: ImportKind) -> str:
    """Return an error that names fields of the form in place of options.

    What stands in backticks is a command, and stays.
    """
    fields = _FIELDS.get(kind, {})
    return re.sub(r"`[^`]*`|--[a-z-]+", lambda one: fields.get(one[0], one[0]), error)


def render_step(kind: ImportKind, progress: JobProgress | None) -> str:
    """Return what is said of an upload: under way, refused, checked or done."""
    if progress is None:
        return ""
    if not progress.finished:
        return show("files_progress.html.jinja", progress=progress)
    if progress.error:
        return notice(
            f"{_in_fields(progress.error, kind)} Nothing was changed, and the file was "
            "deleted.",
            kind="error",
            title="Not imported",
        )
    done = isinstance(progress.result, ImportedUpload)
    file = progress.result.file if done else progress.result.path.name
    return show(
        f"files_{kind.value}.html.jinja",
        found=progress.result.found,
        done=done,
        file=file,
    )

"""What happens on the page Files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.people.users import Right
from loop.labels.cohort import list_cohorts
from loop.labels.dry_run import VotesFile
from loop.labels.importing.source import ImportOptions, parse_meanings
from loop.review.verdict_files import ImportDefaults
from loop.ui.header import visible_cohorts
from loop.ui.pages.base import SAME
from loop.ui.pages.files.state import (
    ImportedUpload,
    ImportKind,
    UploadOptions,
    drop,
    find_progress,
    offer,
    take,
)
from loop.ui.pages.files.view import (
    FilesOutputs,
    UploadOutputs,
    render_out,
    render_step,
)
from loop.ui.uploads import find_upload
from loop.ui.wiring import Visit


class CohortForm(NamedTuple):
    """What is said of a cohort that is uploaded, in the order of the form."""

    file: str | None
    name: str
    role: str
    language: str
    source: str
    licence: str
    reason: str
    replace: bool
    id_column: str
    text_column: str
    patient_column: str
    reference_column: str
    candidate_column: str
    system_column: str
    number_rows: bool
    drop_duplicates: bool
    values: str
    """What words of label cells mean, WORD=VALUE, one a line."""

    encoding: str
    id_prefix: str
    exclude: str
    """Case ids, one a line."""

    part: str


class VotesForm(NamedTuple):
    """What is said of votes that are uploaded."""

    file: str | None
    cohort: str | None
    need: str
    """A number, or empty: as recorded."""

    replace: bool
    values: str
    """As in `CohortForm`."""


class VerdictUpload(NamedTuple):
    """What is said of a verdict file that is uploaded."""

    file: str | None
    cohort: str | None
    """Empty: what the file says."""

    run: str


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> list[Any]:
    """Return what can be exported, and how far one's uploads are."""
    may = visit.user.may(Right.IMPORT)
    names = list(list_cohorts(visit.context.workspace)) if may else []
    chosen = cohort if cohort in names else None
    unseen = UploadOutputs(SAME, SAME, SAME)
    steps = [show_step(visit, kind) if may else unseen for kind in ImportKind]
    page = FilesOutputs(
        exports=render_out(visit, prompt, cohort),
        importing=gr.Column(visible=may),
        votes_cohort=gr.Dropdown(choices=names, value=chosen),
        verdicts_cohort=gr.Dropdown(
            choices=[("as the file says", ""), *names], value=""
        ),
    )
    return [*page, *(one for step in steps for one in step)]


def show_step(visit: Visit, kind: ImportKind) -> UploadOutputs:
    """Return what is said of an upload, the buttons it needs, and whether to ask on."""
    progress = find_progress(visit, kind)
    waits = progress and progress.result and not _is_done(progress)
    return UploadOutputs(
        said=render_step(kind, progress),
        confirm=gr.Row(visible=bool(waits)),
        timer=gr.Timer(active=bool(progress and not progress.finished)),
    )


def poll(visit: Visit, kind: ImportKind) -> list[Any]:
    """Return how far an upload is, and with it the cohorts there are now."""
    progress = find_progress(visit, kind)
    known: Any = SAME
    if progress is not None and _is_done(progress):
        known = gr.Dropdown(choices=list(visible_cohorts(visit)))
    return [*show_step(visit, kind), known]


def _is_done(progress: Any) -> bool:
    return isinstance(progress.result, ImportedUpload)


def note_upload(visit: Visit) -> str:
    """Return the id of the file that the browser has uploaded, if this session did."""
    upload = str(visit.data.get("id", ""))
    find_upload(visit.context.workspace, visit.session, upload)
    return upload


def check_cohort(visit: Visit, *typed: Any) -> list[Any]:
    """Begin to check a cohort; the file leaves the form."""
    form = CohortForm(typed[0], *map(_text, typed[1:]))

    def how(path: Path) -> UploadOptions:
        columns = {
            "case_id": form.id_column,
            "text": form.text_column,
            "patient": form.patient_column,
            "reference": form.reference_column,
            "candidate": form.candidate_column,
            "system": form.system_column,
        }
        return ImportOptions(
            name=form.name.strip(),
            role=form.role,
            source=form.source.strip(),
            licence=form.licence.strip(),
            language=form.language.strip() or "auto",
            encoding=form.encoding.strip() or "auto",
            id_prefix=form.id_prefix.strip(),
            columns={role: name for role, name in columns.items() if name.strip()},
            number_rows=form.number_rows,
            drop_duplicates=form.drop_duplicates,
            values=_meanings(form.values),
            part=form.part.strip(),
            exclude=tuple(form.exclude.split("\n")) if form.exclude.strip() else (),
            replace=form.replace,
            reason=form.reason.strip(),
        )

    return _check(visit, ImportKind.COHORT, form.file, how)


def check_votes(visit: Visit, *typed: Any) -> list[Any]:
    """Begin to check votes; the file leaves the form."""
    form = VotesForm(typed[0], *map(_text, typed[1:]))

    def how(path: Path) -> UploadOptions:
        if not form.cohort:
            raise DataError("no cohort is chosen. Choose the one that was read.")
        return VotesFile(
            form.cohort,
            path,
            _need(form.need),
            form.replace,
            values=_meanings(form.values),
        )

    return _check(visit, ImportKind.VOTES, form.file, how)


def check_verdicts(visit: Visit, *typed: Any) -> list[Any]:
    """Begin to check a verdict file; the file leaves the form."""
    form = VerdictUpload(typed[0], *map(_text, typed[1:]))

    def how(path: Path) -> UploadOptions:
        return ImportDefaults(visit.user.name, form.cohort or "", form.run.strip())

    return _check(visit, ImportKind.VERDICTS, form.file, how)


def _check(visit: Visit, kind: ImportKind, file: str | None, how: Any) -> list[Any]:
    if not file:
        raise DataError("no file is chosen. Choose one, and wait until it is uploaded.")
    path = find_upload(visit.context.workspace, visit.session, file)
    offer(visit, kind, path, how)
    return ["", *show_step(visit, kind)]


def import_it(visit: Visit, kind: ImportKind) -> UploadOutputs:
    """Begin to import what was checked."""
    take(visit, kind)
    return show_step(visit, kind)


def discard_it(visit: Visit, kind: ImportKind) -> UploadOutputs:
    """Delete what was checked."""
    drop(visit, kind)
    return show_step(visit, kind)


def _need(typed: str) -> int | None:
    """Return how many equal votes are wanted; None where nothing was typed."""
    number = typed.strip()
    if number and not (number.isascii() and number.isdecimal() and int(number)):
        raise DataError(
            "the number of equal votes is not a number from 1. Correct it, or leave it "
            "empty for the rule recorded."
        )
    return int(number) if number else None


def _meanings(typed: str) -> dict[str, str]:
    """Return what words of label cells mean, from one a line."""
    return parse_meanings(line for line in typed.splitlines() if line.strip())


def _text(value: Any) -> Any:
    """Return a field; one that was never touched arrives as nothing."""
    return "" if value is None else value

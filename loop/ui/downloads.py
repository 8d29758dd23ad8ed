"""Files out of the workbench: made at the moment they are asked for, kept nowhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response

from loop.core.errors import DataError, LoopError
from loop.core.files import read_text
from loop.core.ledger import read_ledger
from loop.core.people.users import PermissionRefused, Right, User
from loop.documents.templates import template_folder
from loop.evaluate.compare import compare_runs
from loop.evaluate.documents import render_csv, render_html, render_markdown
from loop.evaluate.evaluation import find_parent_run
from loop.evaluate.failures import failing_cases, failures_table
from loop.evaluate.score_history import history_table, read_scores
from loop.evaluate.tried import correct_optimism
from loop.labels.ballots import read_cohort_votes
from loop.labels.cohort import read_cohort, read_record
from loop.labels.reader_agreement import (
    agreement_table,
    measure_agreement,
)
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_prompts
from loop.review.status import (
    KeptVerdict,
    read_kept,
)
from loop.review.verdict_files import (
    verdicts_file,
    verdicts_table,
)
from loop.run.label_table import write_labels
from loop.run.store import RunRecord
from loop.ui.context import AppContext
from loop.ui.header import visible_cohorts
from loop.ui.html import show
from loop.ui.wiring import Visit

PATH = "/download/"

_LEDGER = "ledger.jsonl"
"""The one document that is about no prompt and no cohort."""

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Without it Excel reads UTF-8 as the code page of the machine; our readers skip it."""


def add_downloads(app: FastAPI, context: AppContext) -> None:
    """Serve every document under ``/download/NAME?prompt=...&cohort=...``.

    Takes the right to export, whoever asks. Nothing is written to disk, and a browser
    is told to keep no copy of the answer.
    """

    async def download(request: Request, name: str) -> Response:
        return await run_in_threadpool(_answer, context, request, name)

    app.get(f"{PATH}{{name}}", include_in_schema=False)(download)


def link_to(name: str, prompt: str, cohort: str) -> str:
    """Return the address of a document."""
    return f"{PATH}{name}?prompt={quote(prompt)}&cohort={quote(cohort)}"


def _answer(context: AppContext, request: Request, name: str) -> Response:
    try:
        user = context.access.require(request, Right.EXPORT)
        return _file(context, user, request, name)
    except PermissionRefused as error:
        return _refusal(str(error), 403)
    except LoopError as error:
        return _refusal(context.without_root(str(error)), 409)


def _file(context: AppContext, user: User, request: Request, name: str) -> Response:
    if name not in DOCUMENTS:
        return _refusal("there is no such document. Choose one under Files.", 404)
    asked = _asked(context, user, request, name)
    stem, _, kind = name.rpartition(".")
    of = () if name == _LEDGER else (asked.prompt, asked.cohort)
    file = ".".join(("-".join((*of, stem)), kind))
    media = DOCUMENTS[name].media
    binary = kind in ("xlsx", "parquet")
    return Response(
        DOCUMENTS[name].write(asked),
        media_type=media if binary else f"{media}; charset=utf-8",
        headers={
            "content-disposition": f'attachment; filename="{file}"',
            "content-security-policy": "default-src 'none'; sandbox",
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        },
    )


def _asked(
    context: AppContext, user: User, request: Request, name: str
) -> ExportRequest:
    """Return what is asked for, after looking up every name that came with it."""
    if name == _LEDGER:
        return ExportRequest(context, "", "")
    prompt = request.query_params.get("prompt", "")
    cohort = request.query_params.get("cohort", "")
    visit = Visit(context=context, user=user, actor=user.actor(Right.EXPORT), data={})
    if prompt not in list_prompts(context.workspace):
        raise DataError("there is no such prompt. Choose one at the top of the page.")
    if cohort not in visible_cohorts(visit):
        raise DataError("there is no such cohort. Choose one at the top of the page.")
    return ExportRequest(context, prompt, cohort)


def _refusal(text: str, status: int) -> Response:
    page = show("download_refused.html.jinja", text=text)
    return HTMLResponse(page, status, headers={"cache-control": "no-store"})


class ExportRequest(NamedTuple):
    """On what a document is asked for."""

    context: AppContext
    prompt: str
    cohort: str


class ExportKind(NamedTuple):
    """One kind of file."""

    make: Callable[[ExportRequest], str | bytes]
    media: str

    def write(self, asked: ExportRequest) -> bytes:
        """Return the file's bytes: UTF-8, tables with the mark that Excel needs."""
        text = self.make(asked)
        if isinstance(text, bytes):
            return text
        return (_BOM + text if self.media == "text/csv" else text).encode("utf-8")


def _run(asked: ExportRequest) -> RunRecord:
    return asked.context.latest_run(asked.prompt, asked.cohort)


def _gates(asked: ExportRequest) -> str:
    return render_csv(asked.context.evaluation(_run(asked)))


def _evaluation(asked: ExportRequest, render: Callable[..., str]) -> str:
    """Return the newest run's document, with parent and correction as in the CLI."""
    context, run = asked.context, _run(asked)

    def make() -> str:
        result = context.evaluation(run)
        before = find_parent_run(context.workspace, run.id)
        change = compare_runs(context.workspace, before, run.id) if before else None
        number = result.cohort.reference
        chosen = correct_optimism(
            context.workspace, context.store, run.id, reference=number
        )
        folder = template_folder(context.workspace)
        return render(result, change, selection=chosen, templates=folder)

    head = len(read_ledger(context.workspace.ledger))
    return context.cache.get((render.__name__, head, *context.standing(run)), make)


def _html(asked: ExportRequest) -> str:
    return _evaluation(asked, render_html)


def _markdown(asked: ExportRequest) -> str:
    return _evaluation(asked, render_markdown)


def _failures(asked: ExportRequest) -> str:
    run = _run(asked).id
    return failures_table(failing_cases(asked.context.workspace, run))


def _labels(asked: ExportRequest, suffix: str) -> bytes:
    run = _run(asked).id
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        out = Path(folder) / f"labels{suffix}"
        write_labels(asked.context.workspace, out, run)
        return out.read_bytes()


def _label_table(asked: ExportRequest) -> str:
    return _labels(asked, ".csv").decode("utf-8")


def _agreement(asked: ExportRequest) -> str:
    workspace, name = asked.context.workspace, asked.cohort
    recorded = read_record(workspace, name).votes

    def make() -> str:
        taxonomy = read_taxonomy(workspace.labels)
        votes = read_cohort_votes(workspace, read_cohort(workspace, name), taxonomy)
        return agreement_table(measure_agreement(votes, taxonomy, cohort=name))

    return asked.context.cache.get(("agreement.csv", name, recorded), make)


def _kept(asked: ExportRequest) -> tuple[KeptVerdict, ...]:
    kept = read_kept(asked.context.store, asked.context.workspace, asked.cohort)
    if not kept:
        raise DataError(
            f"there is no verdict on {asked.cohort} yet. Give some under Review first."
        )
    return kept


def _verdicts(asked: ExportRequest, *, notes: bool = False) -> str:
    return verdicts_file(_kept(asked), notes=notes)


def _verdict_table(asked: ExportRequest, *, notes: bool = False) -> str:
    return verdicts_table(_kept(asked), notes=notes)


def _history(asked: ExportRequest) -> str:
    return history_table(read_scores(asked.context.workspace, asked.prompt))


def _ledger(asked: ExportRequest) -> str:
    return read_text(asked.context.workspace.ledger)


DOCUMENTS: Mapping[str, ExportKind] = MappingProxyType(
    {
        "gates.csv": ExportKind(_gates, "text/csv"),
        "evaluation.html": ExportKind(_html, "text/html"),
        "evaluation.md": ExportKind(_markdown, "text/markdown"),
        "failures.csv": ExportKind(_failures, "text/csv"),
        "labels.csv": ExportKind(_label_table, "text/csv"),
        "labels.xlsx": ExportKind(
            partial(_labels, suffix=".xlsx"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        "labels.parquet": ExportKind(
            partial(_labels, suffix=".parquet"), "application/vnd.apache.parquet"
        ),
        "agreement.csv": ExportKind(_agreement, "text/csv"),
        "verdicts.yaml": ExportKind(_verdicts, "application/yaml"),
        "verdicts-with-notes.yaml": ExportKind(
            partial(_verdicts, notes=True), "application/yaml"
        ),
        "verdicts.csv": ExportKind(_verdict_table, "text/csv"),
        "verdicts-with-notes.csv": ExportKind(
            partial(_verdict_table, notes=True), "text/csv"
        ),
        "history.csv": ExportKind(_history, "text/csv"),
        "ledger.jsonl": ExportKind(_ledger, "application/x-ndjson"),
    }
)
"""Name to how it is made."""

"""Files out of the workbench: made at the moment they are asked for, kept nowhere."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response

from loop.core.errors import DataError, LoopError
from loop.core.people.users import PermissionRefused, Right, User
from loop.prompts.catalog import list_prompts
from loop.ui.context import AppContext
from loop.ui.documents import DOCUMENTS, ExportRequest
from loop.ui.header import visible_cohorts
from loop.ui.show import show
from loop.ui.wiring import Visit

PATH = "/download/"

_LEDGER = "ledger.jsonl"
"""The one document that is about no prompt and no cohort."""


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

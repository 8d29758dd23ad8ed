"""The workbench as a server: the front end behind its gate, on one port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from loop.core.clock import utc_now
from loop.core.errors import LoopError
from loop.core.paths import WorkspacePaths
from loop.run.store import open_store
from loop.run.trace import read_trace
from loop.ui.access.access import Access
from loop.ui.access.gate import build_gate
from loop.ui.access.http_protocol import server_config
from loop.ui.app import build_workbench
from loop.ui.context import AppContext
from loop.ui.downloads import add_downloads
from loop.ui.loading import add_program_files, head, program_files
from loop.ui.pages import overview
from loop.ui.uploads import add_uploads, keep_swept, open_inbox


class Address(NamedTuple):
    """Where the workbench listens, and how."""

    listener: socket.socket
    certificate: Path | None = None
    """TLS certificate, PEM; None serves plain HTTP."""

    key: Path | None = None


@contextmanager
def opened_context(workspace: WorkspacePaths, access: Access) -> Iterator[AppContext]:
    """Give the context of a workspace, with its store open."""
    with open_store(workspace) as store:
        yield AppContext(
            workspace=workspace,
            store=store,
            access=access,
            now=utc_now,
        )


def build_app(context: AppContext) -> ASGIApp:
    """Return the whole application: front end, sign-in and gate.

    Nothing is sent anywhere: analytics, sharing, run history, remote fonts and
    Gradio's own links are off.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    open_inbox(context.workspace)
    # Gradio gets no file, and may write none: see `GuardedBlocks`.
    os.environ["GRADIO_TEMP_DIR"] = os.devnull
    # Gradio asks Matplotlib for its backend around every event. Left to find one, it
    # imports all of Matplotlib, which the first visitor would wait for.
    os.environ["MPLBACKEND"] = "agg"
    # Beside the building, and done before anybody is let in.
    warming = Thread(target=warm, args=(context,), name="warm", daemon=True)
    warming.start()
    blocks = build_workbench(context).blocks

    @asynccontextmanager
    async def sweeping(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(keep_swept(context.workspace, context.access))
        try:
            yield
        finally:
            task.cancel()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=sweeping)
    add_downloads(app, context)
    add_uploads(app, context)
    files = program_files()
    add_program_files(app, files)
    gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        auth_dependency=context.access.who,
        run_history=False,
        footer_links=[],
        show_error=False,
        ssr_mode=False,
        # The system's own fonts: none is fetched.
        theme=gr.themes.Base(
            font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
        head=head(files),
    )
    context.access.tabs.on_forget = blocks.forget
    warming.join()
    return build_gate(app, context.access)


def warm(context: AppContext) -> None:
    """Make ready what the first visitor would wait for.

    That is the overview of the newest run, and what the trace of any of its cases
    takes: its prompt rendered, and compiled where `rules` answered.
    """
    import_module("matplotlib")
    for run in context.store.find_runs(finished=True)[:1]:
        # What cannot be shown is said to the visitor who asks for it.
        with suppress(LoopError):
            overview.render(context, run)
        with suppress(LoopError):
            for outcome in islice(context.store.read_outcomes(run.id), 1):
                case = outcome.item_id
                read_trace(context.workspace, run.id, case, store=context.store)


class AnnouncedServer(uvicorn.Server):
    """A server that says when it answers, and stops when it is told from then on.

    A signal that comes before uvicorn takes signals may be lost: Python ignores what is
    raised where a weak reference is dropped.
    """

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then announce it."""
        await super().startup(sockets)
        if self.started:
            self._announce()


def serve(app: ASGIApp, address: Address, announce: Callable[[], None]) -> None:
    """Serve `app` until it is stopped; `announce` is called once it answers."""
    config = server_config(app, certificate=address.certificate, key=address.key)
    AnnouncedServer(config, announce).run(sockets=[address.listener])

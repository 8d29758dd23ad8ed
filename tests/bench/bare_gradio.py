"""The peer of `bench_review`: a Gradio server whose only event does nothing."""

from __future__ import annotations

import json
import os
import socket

import gradio as gr
import uvicorn
from fastapi import FastAPI

from loop.ui.access.gate import SIZES


def build() -> FastAPI:
    """Return an application with one event, mounted as the workbench is."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    with gr.Blocks(analytics_enabled=False) as blocks:
        box = gr.Textbox(label="Text", elem_id="text")
        box.submit(lambda text: text, box, box, api_name="nothing", queue=False)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        run_history=False,
        show_error=False,
        ssr_mode=False,
        max_file_size=SIZES.upload,
    )
    return app


def main() -> None:
    """Serve it on a free port and print the URL."""
    app = build()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        print(json.dumps({"url": url}), flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

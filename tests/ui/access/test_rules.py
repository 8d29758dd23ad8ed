"""What is served, and that nothing else is."""

import gradio as gr
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from loop.core.people.users import Right
from loop.ui.access.rules import Need, find_rule
from tests.ui.conftest import awaited

ASKED = [
    ("GET", "/", Need.SESSION),
    ("HEAD", "/", Need.SESSION),
    ("GET", "/theme.css", Need.SESSION),
    ("GET", "/gradio_api/app_id", Need.SESSION),
    ("GET", "/gradio_api/heartbeat/s0yw8wdb1jq", Need.SESSION),
    ("POST", "/gradio_api/run/predict", Need.SESSION),
    ("POST", "/upload", Need.SESSION),
    ("GET", "/assets/index-DphvyggB.js", Need.NOTHING),
    ("GET", "/static/fonts/Lora/Lora-Regular.woff2", Need.NOTHING),
    ("GET", "/favicon.ico", Need.NOTHING),
    ("GET", "/manifest.json", Need.NOTHING),
    ("GET", "/sign-in", Need.OWN),
    ("POST", "/sign-in", Need.OWN),
    ("POST", "/sign-out", Need.OWN),
]

TRICKS = [
    "/gradio_api/upload",
    "/gradio_api/upload_progress",
    "/config",
    "/gradio_api/queue/join",
    "/gradio_api/queue/data",
    "/gradio_api/call/run",
    "/gradio_api/heartbeat/",
    "/gradio_api/heartbeat/../run/x",
    "/gradio_api/file=/srv/gradio/25ab/votes.csv",
    "//",
    "//gradio_api/run/x",
    "/gradio_api//run/x",
    "/gradio_api/run/x/",
    "/gradio_api/run/../info",
    "/gradio_api/run/..",
    "/assets/../gradio_api/info",
    "/assets/..",
    "/assets/.env",
    "/static/../x",
    "/static//x",
    "/static/x/",
    "/GRADIO_API/run/x",
    "/Config",
    "/config/",
    "/gradio_api/file=http://example.org/x",
    "/gradio_api/file=http:/example.org/x",
    "/gradio_api/file=//etc/passwd",
    "/gradio_api/file=/srv/../etc/passwd",
    "/gradio_api/file=/srv/.",
    "/gradio_api/file=/srv/x\x00",
    "/gradio_api/file=/srv\\x",
    "/gradio_api/file=x",
    "/gradio_api/file=",
    "/sign-in/",
    "/sign-in\n",
    "/config\n",
    "/assets/é.js",
    "*",
    "",
]


@pytest.mark.parametrize(("method", "path", "need"), ASKED)
def test_what_a_browser_asks_for_is_served(method, path, need):
    """As seen in Chromium with Gradio's front end."""
    assert find_rule(method, path).need is need


@pytest.mark.parametrize("path", TRICKS)
def test_a_path_in_disguise_is_not_served(path):
    """Neither to read nor to change anything."""
    assert find_rule("GET", path) is None
    assert find_rule("POST", path) is None


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "get", ""])
def test_other_methods_are_not_served(method):
    """No answer to what other origins ask first."""
    assert find_rule(method, "/gradio_api/run/x") is None


@pytest.mark.parametrize("parameter", ["deep_link", "page"])
def test_saved_sessions_of_others_are_not_opened(parameter):
    """The page takes no such parameter, whatever Gradio would do with it."""
    assert find_rule("GET", "/", [parameter]) is None
    assert find_rule("GET", "/", ["__theme"]) is not None


def test_files_come_in_from_those_who_may_import_only():
    """Before a byte of them is kept."""
    assert find_rule("POST", "/upload").right is Right.IMPORT


def test_polling_for_answers_is_no_sign_of_life():
    """A browser left open must not keep its session for ever."""
    for path in ("/gradio_api/heartbeat/x", "/theme.css", "/gradio_api/app_id"):
        assert not find_rule("GET", path).use
    for method, path in (
        ("GET", "/"),
        ("GET", "/download/gates.csv"),
        ("POST", "/gradio_api/run/predict"),
        ("POST", "/upload"),
    ):
        assert find_rule(method, path).use


def test_files_go_out_to_those_who_may_export_only():
    """Whatever they are called."""
    assert find_rule("GET", "/download/ledger.jsonl").right is Right.EXPORT
    for path in ("/download/a.b.c", "/download/A.csv", "/download/.csv", "/download/a"):
        assert find_rule("GET", path) is None
    assert find_rule("POST", "/download/ledger.jsonl") is None


async def build_gradio():
    """Return the routes of an app by Gradio, which makes a loop unless in one."""
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Button()
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    return gr.mount_gradio_app(app, blocks, path="/", run_history=True).routes


@pytest.fixture(scope="module")
def gradio_routes():
    """Return method and path of every route that Gradio has, with words filled in."""
    routes = list(awaited(build_gradio)[-1].app.routes)
    for route in tuple(routes):
        routes += getattr(getattr(route, "original_router", None), "routes", ())
    return {
        (method, route.path.replace(":path", ""))
        for route in routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }


SERVED = {
    "/",
    "/assets/{path}",
    "/favicon.ico",
    "/gradio_api/heartbeat/{session_hash}",
    "/gradio_api/run/{api_name}",
    "/gradio_api/app_id",
    "/manifest.json",
    "/static/{path}",
    "/theme.css",
}


def test_of_all_that_gradio_serves_only_this_is_let_through(gradio_routes):
    """A route of a newer Gradio stays shut until somebody has looked at it."""
    passing = set()
    for method, path in gradio_routes:
        filled = path.replace("{", "").replace("}", "")
        if find_rule(method, filled) is not None:
            passing.add(path)
    assert passing == SERVED
    assert len(gradio_routes) > 70

"""What a browser loads before anything is shown, and no more than it reads.

Our style sheets and scripts are files of their own, named by their content: a browser
keeps them. Gradio writes its whole configuration into the page; most of it describes
the functions to programs that call them, and its front end never looks at it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
from fastapi import FastAPI, Request, Response

from loop.ui.shortcuts import SHORTCUTS
from loop.ui.wiring import GuardedBlocks

_STATIC = Path(__file__).parent / "static"
_GRADIO = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
_ASSETS = "/assets/"
"""Where files lie whose name changes with their content."""

_EFFORT = 4
"""Of compressing: the first visitor waits for it, and more makes little smaller."""

_UNREAD = frozenset(
    {
        "api_info",
        "api_info_as_input",
        "api_info_as_output",
        "component_class_id",
        "example_inputs",
        "skip_api",
    }
)
"""What Gradio says of a component and its front end does not read."""

_UNREAD_PROPS = frozenset(
    {
        "_retryable",
        "_undoable",
        "delete_callback",
        "likeable",
        "link_target",
        "preserved_by_key",
        "proxy_url",
        "streamable",
    }
)
"""Properties that only the chatbot, links, state and other servers' components have."""

_USUAL_PROPS: Mapping[str, Any] = {
    "autofocus": False,
    "autoscroll": False,
    "component_class_name": "HTML",
    "css_template": "",
    "html_template": "${value}",
    "rtl": False,
    "stop_btn": False,
    "submit_btn": False,
}
"""What the front end takes where a property is missing."""

_UNREAD_OF_EVENTS = frozenset(
    {
        "api_description",
        "api_visibility",
        "batch",
        "collects_event_data",
        "max_batch_size",
        "stream_every",
        "time_limit",
    }
)

_UNSET = frozenset(
    {
        "_selectable",
        "component_prop_inputs",
        "event_specific_args",
        "js",
        "js_implementation",
        "key",
        "render_id",
        "rendered_in",
        "scroll_to_output",
        "show_progress_on",
        "trigger_after",
        "trigger_only_on_failure",
        "trigger_only_on_success",
    }
)
"""What the front end takes as unset both where it is empty and where it is missing."""

_PREFIX = ".gradio-container.gradio-container .contain"
"""Gives our rules weight over those of Gradio's components, as its own way of
including a style sheet does."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_OUTSIDE = re.compile(r",(?![^()\[\]]*[)\]])")
"""A comma between selectors, and not within ``:is(a, b)``."""


class ProgramFile(NamedTuple):
    """A style sheet or a script as it is served."""

    path: str
    """``/assets/workbench-<hash>.css``: another content has another name."""

    content: bytes
    media_type: str


class SlimBlocks(GuardedBlocks):
    """Gradio's front end with a configuration of what its pages read."""

    def get_config_file(self) -> Any:
        """Return the configuration that stands in the page."""
        config: Any = super().get_config_file()
        config["components"] = [_slim_component(one) for one in config["components"]]
        config["dependencies"] = [
            _without(one, _UNREAD_OF_EVENTS) for one in config["dependencies"]
        ]
        return config


def _slim_component(component: Mapping[str, Any]) -> dict[str, Any]:
    kept = _without(component, _UNREAD)
    props = _without(component["props"], _UNREAD_PROPS)
    kept["props"] = {
        name: value
        for name, value in props.items()
        if name not in _USUAL_PROPS or value != _USUAL_PROPS[name]
    }
    return kept


def _without(values: Mapping[str, Any], unread: frozenset[str]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if name not in unread and (value or name not in _UNSET)
    }


def program_files() -> tuple[ProgramFile, ProgramFile]:
    """Return the style sheet and the script, each all of its kind, the shared first."""
    style = "\n".join(map(weighted, _read_all("css")))
    keys = json.dumps([shortcut._asdict() for shortcut in SHORTCUTS])
    script = "\n".join([f"window.ranloopKeys = {keys};", *_read_all("js")])
    return _file("css", style, "text/css"), _file("js", script, "text/javascript")


def head(files: Sequence[ProgramFile]) -> str:
    """Return what goes into the page's head: where its style and its scripts are."""
    style, script = files
    return (
        '<meta name="robots" content="noindex">'
        f'<link rel="stylesheet" href="{style.path}">'
        f'<script src="{script.path}"></script>'
    )


def add_program_files(app: FastAPI, files: Sequence[ProgramFile]) -> None:
    """Let `app` serve `files` and those of Gradio's front end.

    Gradio itself would read and compress each of its files again for every visitor.
    What is served here is in every copy of the program: there is no secret in it that
    the length of compressed text could tell.
    """
    own = {file.path: file for file in files}
    found = {f"{_ASSETS}{path.name}": path for path in _GRADIO.iterdir()}

    @lru_cache(maxsize=256)
    def packed(path: str) -> ProgramFile:
        file = own.get(path)
        if file is None:
            kind = guess_type(path)[0] or "application/octet-stream"
            file = ProgramFile(path, found[path].read_bytes(), kind)
        return file._replace(content=gzip.compress(file.content, _EFFORT, mtime=0))

    @app.get(f"{_ASSETS}{{name}}", include_in_schema=False)
    async def answer(request: Request, name: str) -> Response:
        path = f"{_ASSETS}{name}"
        if path not in own and path not in found:
            return Response(status_code=404)
        file = packed(path)
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.content, media_type=file.media_type, headers=headers)
        return Response(gzip.decompress(file.content), media_type=file.media_type)


def _read_all(kind: str) -> list[str]:
    shared = _STATIC / f"workbench.{kind}"
    files = (shared, *sorted(set(_STATIC.glob(f"*.{kind}")) - {shared}))
    return [file.read_text(encoding="utf-8") for file in files]


def _file(kind: str, text: str, media_type: str) -> ProgramFile:
    content = text.encode()
    digest = sha256(content).hexdigest()[:16]
    return ProgramFile(f"{_ASSETS}workbench-{digest}.{kind}", content, media_type)


def weighted(style: str) -> str:
    """Return a style sheet with each rule twice: as written, and with more weight.

    Examples
    --------
    >>> print(weighted(".link { margin: 0 } .dark .link { margin: 1px }"))
    .link { margin: 0 }
    .gradio-container.gradio-container .contain .link { margin: 0 }
    .dark .link { margin: 1px }
    .dark .gradio-container.gradio-container .contain .link { margin: 1px }
    """
    return "\n".join(_weigh(_COMMENT.sub("", style)))


def _weigh(style: str) -> Iterator[str]:
    for start, body in _rules(style):
        if start.startswith("@media"):
            yield f"{start} {{\n{weighted(body)}\n}}"
        elif start.startswith("@"):
            yield f"{start} {{{body}}}"
        else:
            heavy = ", ".join(map(_heavier, _OUTSIDE.split(start)))
            yield f"{start} {{{body}}}"
            yield f"{heavy} {{{body}}}"


def _heavier(selector: str) -> str:
    one = selector.strip()
    if one.startswith(".dark "):
        return f".dark {_PREFIX} {one.removeprefix('.dark ')}"
    return f"{_PREFIX} {one}"


def _rules(style: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before the braces and within them, for each outermost pair."""
    depth = begun = opened = 0
    for place, sign in enumerate(style):
        if sign == "{":
            opened = opened if depth else place
            depth += 1
        elif sign == "}":
            depth -= 1
            if not depth:
                yield style[begun:opened].strip(), style[opened + 1 : place]
                begun = place + 1

"""What each panel gives to the page, and areas whose acts keep their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.html import notice
from loop.ui.wiring import EventRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersPanel:
    """One panel of the page."""

    name: str
    """What the page calls it, ``"label"``."""

    title: str
    right: Right
    """What a visitor needs to see it at all."""

    box: gr.Column
    show: Callable[..., Sequence[Any]]
    """Called as ``show(visit, prompt, cohort, *inputs)``; returns the outputs."""

    inputs: Sequence[Any] = ()
    """Components it reads besides prompt and cohort."""

    outputs: Sequence[Any] = ()


def ordered_panel(elem_id: str) -> gr.HTML:
    """Return a panel that sends its acts one after the other.

    Gradio would drop what is done while an earlier act is under way, or let two acts
    overtake each other. Connect it with `on_act`.
    """
    return gr.HTML(
        notice("Opening.", kind="wait"),
        js_on_load=(
            "const send = (act) => trigger('act', act);\n"
            f"window.ranloopOrdered(element, send, watch, {elem_id!r});"
        ),
        elem_id=elem_id,
        apply_default_css=False,
    )


def on_act(
    registry: EventRegistry,
    panel: gr.HTML,
    handler: Callable[..., Any],
    **connection: Any,
) -> None:
    """Call `handler` on each act of an `ordered_panel`; tell it what became of it.

    Parameters
    ----------
    connection
        As for `EventRegistry.on`.
    """
    done = registry.on(panel.act, handler, trigger_mode="multiple", **connection)
    for listener, kept in ((done.success, "true"), (done.failure, "false")):
        told = f"() => {{ window.ranloopSettled?.[{panel.elem_id!r}]?.({kept}); }}"
        listener(None, js=told, queue=False, api_visibility="private")

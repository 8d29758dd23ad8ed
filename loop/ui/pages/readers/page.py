"""The page Readers: which panels a visitor has, and the one to open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from loop.core.errors import DataError
from loop.review.working import keep_working, read_working
from loop.ui.header import PageHeader
from loop.ui.pages.base import SAME, Page
from loop.ui.pages.readers import adjudication_panel, agreement_panel, label_panel
from loop.ui.pages.readers.base import ReadersPanel
from loop.ui.wiring import EventRegistry, Visit

SUBJECT = "readers"
"""Subject under which a person's part of the page is kept."""


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Readers", id="readers", elem_id="tab-readers") as tab:
        # Gradio never opens a tab in which nothing is visible at first.
        part = gr.Radio([], label="Part of this page", elem_id="readers-part")
        builders = (label_panel.build, adjudication_panel.build, agreement_panel.build)
        panels = [build_panel(registry, header) for build_panel in builders]
    inputs = [one for panel in panels for one in panel.inputs]
    outputs = [
        part,
        *(panel.box for panel in panels),
        *(one for panel in panels for one in panel.outputs),
    ]
    registry.on(
        part.input,
        _choose(panels),
        right=None,
        name="readers_part",
        inputs=[*header.selection, part, *inputs],
        outputs=outputs,
    )
    return Page(
        name="readers",
        right=None,
        tab=tab,
        refresh=_refresh(panels),
        inputs=inputs,
        outputs=outputs,
    )


def _choose(panels: Sequence[ReadersPanel]) -> Callable[..., list[Any]]:
    """Return what opens the part that a visitor chose, if they may see it."""

    def choose(
        visit: Visit, prompt: str | None, cohort: str | None, *values: Any
    ) -> list[Any]:
        name, *left = values
        chosen = next((one for one in panels if one.name == name), None)
        if chosen is None:
            raise DataError("the page has no such part. Load it again.")
        visit.user.actor(chosen.right)
        kept = {"part": chosen.name}
        keep_working(visit.context.store, visit.actor, SUBJECT, kept, visit.context.now)
        return _open(visit, prompt, cohort, panels, chosen, left)

    return choose


def _refresh(panels: Sequence[ReadersPanel]) -> Callable[..., list[Any]]:
    """Return what shows the part that a visitor was in last, of those they may see."""

    def refresh(
        visit: Visit, prompt: str | None, cohort: str | None, *values: Any
    ) -> list[Any]:
        may = [panel for panel in panels if visit.user.may(panel.right)]
        kept = read_working(visit.context.store, visit.actor, SUBJECT)
        name = kept.payload.get("part") if kept else None
        chosen = next((one for one in may if one.name == name), next(iter(may), None))
        return _open(visit, prompt, cohort, panels, chosen, values)

    return refresh


def _open(
    visit: Visit,
    prompt: str | None,
    cohort: str | None,
    panels: Sequence[ReadersPanel],
    chosen: ReadersPanel | None,
    values: Sequence[Any],
) -> list[Any]:
    """Return the outputs with `chosen` open and filled; the others are left alone."""
    parts = [(s.title, s.name) for s in panels if visit.user.may(s.right)]
    name = chosen.name if chosen else None
    shown: list[Any] = [gr.Radio(choices=parts, value=name, visible=len(parts) > 1)]
    shown += [gr.Column(visible=panel is chosen) for panel in panels]
    left = iter(values)
    for panel in panels:
        own = [next(left) for _ in panel.inputs]
        shown += (
            panel.show(visit, prompt, cohort, *own)
            if panel is chosen
            else [SAME] * len(panel.outputs)
        )
    return shown

"""The page as a whole: which parts a visitor has, and the one to open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from loop.review.working import keep_working, read_working
from loop.ui.chrome import Chrome
from loop.ui.pages.page import Page
from loop.ui.pages.readers import adjudicating, labelling
from loop.ui.pages.readers.section import Section
from loop.ui.wiring import Visit, Wire

SUBJECT = "readers"
"""Subject under which a person's part of the page is kept."""


def build(wire: Wire, chrome: Chrome) -> Page:
    """Add the page and connect it."""
    with (
        gr.Tab("Readers", id="readers", elem_id="tab-readers") as tab,
        gr.Tabs(elem_id="readers-sections") as tabs,
    ):
        sections = [part.build(wire, chrome) for part in (labelling, adjudicating)]
    for section in sections:
        _wire_section(wire, chrome, section)
    return Page(
        name="readers",
        right=None,
        tab=tab,
        refresh=_refresh(sections),
        inputs=[one for section in sections for one in section.inputs],
        outputs=[
            tabs,
            *(section.tab for section in sections),
            *(one for section in sections for one in section.outputs),
        ],
    )


def _wire_section(wire: Wire, chrome: Chrome, section: Section) -> None:
    def see(visit: Visit, *values: Any) -> list[Any]:
        kept = {"section": section.name}
        keep_working(visit.desk.store, visit.actor, SUBJECT, kept, visit.desk.now)
        return section.show(visit, *values)

    wire.on(
        section.tab.select,
        see,
        right=section.right,
        name=f"see_{section.name}",
        inputs=(*chrome.context, *section.inputs),
        outputs=section.outputs,
    )


def _refresh(sections: Sequence[Section]) -> Any:
    """Return what shows the part that a visitor was in last, of those they may see."""

    def refresh(
        visit: Visit, prompt: str | None, cohort: str | None, *values: Any
    ) -> list[Any]:
        may = [section for section in sections if visit.user.may(section.right)]
        kept = read_working(visit.desk.store, visit.actor, SUBJECT)
        name = kept.payload.get("section") if kept else None
        chosen = next((one for one in may if one.name == name), next(iter(may), None))
        left = iter(values)
        shown: list[Any] = [gr.Tabs(selected=chosen.name if chosen else None)]
        shown += [gr.Tab(visible=section in may) for section in sections]
        for section in sections:
            own = [next(left) for _ in section.inputs]
            shown += (
                section.show(visit, prompt, cohort, *own)
                if section is chosen
                else [gr.skip()] * len(section.outputs)
            )
        return shown

    return refresh

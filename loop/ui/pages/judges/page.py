"""The page Judges: its components, and which event does what."""

from __future__ import annotations

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel
from loop.ui.pages.base import Page
from loop.ui.pages.judges import events
from loop.ui.pages.judges.view import JudgesOutputs
from loop.ui.wiring import EventRegistry

_SETTLE = "() => window.ranloopJudgesSettled?.()"
"""Brings a pair that was opened into view, and takes the keyboard there."""


_KEPT = "() => window.ranloopJudgesKept?.()"
"""Lets what waits for a draft to be kept go on: it must not overtake that."""


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Judges", id="judges", elem_id="tab-judges") as tab:
        status = panel(elem_id="judges-status")
        with gr.Row(elem_id="judges-columns"):
            pairs = panel(elem_id="judges-pairs")
            sheet = _sheet()
        with gr.Column(elem_id="judges-publish"):
            publication = panel(elem_id="judges-publication")
            why = gr.Textbox(
                label="Reason (kept in the ledger)",
                elem_id="judges-why",
                max_lines=2,
            )
            publish = gr.Button("Publish the ratings", elem_id="judges-publish-now")
    shown = JudgesOutputs(
        pairs=pairs,
        sheet=sheet,
        status=status,
        publication=publication,
        why=why,
    )
    for name, listener, handler, right in (
        ("pick", pairs.act, events.move, None),
        ("move", sheet.move, events.move, None),
        ("keep", sheet.keep, events.keep, None),
        ("rate", sheet.rate, events.rate, None),
        ("reveal", sheet.reveal, events.reveal, Right.JUDGE),
        ("judge", sheet.judge, events.judge, Right.JUDGE),
        ("take_back", sheet.withdraw, events.take_back, Right.JUDGE),
    ):
        done = registry.on(
            listener,
            handler,
            right=right,
            name=f"judges_{name}",
            inputs=header.selection,
            outputs=shown,
            trigger_mode="always_last" if name == "keep" else "once",
        )
        if name == "keep":
            for listener in (done.success, done.failure):
                listener(None, js=_KEPT, queue=False, api_visibility="private")
        else:
            done.success(None, js=_SETTLE, queue=False)
    registry.on(
        publish.click,
        events.publish,
        right=Right.IMPORT,
        name="judges_publish",
        inputs=(*header.selection, why),
        outputs=shown,
    )
    return Page(
        name="judges",
        right=None,
        tab=tab,
        refresh=events.refresh,
        outputs=shown,
    )


def _sheet() -> gr.HTML:
    """Return the pair with its form, whose rows are added in the browser."""
    return gr.HTML(
        notice("Opening the pairs.", kind="wait"),
        # Gradio looks for the names of events in the script.
        js_on_load=(
            "// 'move', 'keep', 'rate', 'reveal', 'judge', 'withdraw'\n"
            "window.ranloopJudges(element, trigger, watch);"
        ),
        elem_id="judges-sheet",
        apply_default_css=False,
    )

"""How the workbench looks: its theme, and the areas that the server fills."""

from __future__ import annotations

import json

import gradio as gr

PANEL_JS = """
element.addEventListener('click', (event) => {
  const act = event.target.closest('[data-act]');
  if (act && element.contains(act)) {
    event.preventDefault();
    trigger('act', {...act.dataset});
  }
});
"""
"""Makes every ``data-act`` inside a panel an event with its data attributes."""


def theme() -> gr.themes.Base:
    """Return a theme with the system's own fonts."""
    return gr.themes.Base(
        font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
    )


def panel(
    value: str = "", *, elem_id: str, visible: bool = True, focused: bool = False
) -> gr.HTML:
    """Return an area of server-made HTML whose ``data-act`` elements are events.

    Parameters
    ----------
    focused
        Whether a notice in it, or trouble, takes the focus and is brought into view.
    """
    script = "window.ranloopSaid(element, watch);" if focused else ""
    return gr.HTML(
        value,
        js_on_load=PANEL_JS + script,
        elem_id=elem_id,
        visible=visible,
        apply_default_css=False,
    )


def typing_in(selector: str, *, elem_id: str) -> gr.HTML:
    """Return an unseen panel whose event ``typed`` says that a text box has changed.

    Gradio's own event `input` comes when letters are typed and not when a text is
    pasted, dropped, dictated or filled in by the browser.

    Parameters
    ----------
    selector
        CSS selector of what surrounds the text boxes.
    """
    script = f"window.ranloopTyping(element, trigger, {json.dumps(selector)});"
    return gr.HTML(
        "",
        # Gradio looks for the names of events in the script.
        js_on_load=f"// 'typed'\n{script}",
        elem_id=elem_id,
        visible="hidden",
        apply_default_css=False,
    )

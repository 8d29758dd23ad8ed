"""How the workbench looks: its theme, and the areas that the server fills."""

from __future__ import annotations

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


def panel(value: str = "", *, elem_id: str, visible: bool = True) -> gr.HTML:
    """Return an area of server-made HTML whose ``data-act`` elements are events."""
    return gr.HTML(
        value,
        js_on_load=PANEL_JS,
        elem_id=elem_id,
        visible=visible,
        apply_default_css=False,
    )

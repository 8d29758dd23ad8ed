"""How the workbench looks: theme, style sheet, scripts, nothing from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from loop.ui.shortcuts import SHORTCUTS

_STATIC = Path(__file__).parent / "static"

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


def css() -> str:
    """Return the style sheets: the shared one, then those of the pages."""
    pages = sorted(set(_STATIC.glob("*.css")) - {_STATIC / "workbench.css"})
    sheets = [_STATIC / "workbench.css", *pages]
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def head() -> str:
    """Return what goes into the page's head: the shortcuts and the script."""
    keys = json.dumps([shortcut._asdict() for shortcut in SHORTCUTS])
    script = (_STATIC / "workbench.js").read_text(encoding="utf-8")
    table = keys.replace("<", "\\u003c")
    return (
        '<meta name="referrer" content="no-referrer">'
        '<meta name="robots" content="noindex">'
        f"<script>window.ranloopKeys = {table};</script><script>{script}</script>"
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

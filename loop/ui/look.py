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
    return "\n".join(_read_all("css"))


def head() -> str:
    """Return what goes into the page's head: the shortcuts and the scripts."""
    keys = json.dumps([shortcut._asdict() for shortcut in SHORTCUTS])
    table = keys.replace("<", "\\u003c")
    scripts = (f"window.ranloopKeys = {table};", *_read_all("js"))
    return '<meta name="robots" content="noindex">' + "".join(
        f"<script>{script}</script>" for script in scripts
    )


def _read_all(kind: str) -> list[str]:
    """Return the static files of a kind, the shared one first."""
    shared = _STATIC / f"workbench.{kind}"
    files = (shared, *sorted(set(_STATIC.glob(f"*.{kind}")) - {shared}))
    return [file.read_text(encoding="utf-8") for file in files]


def panel(value: str = "", *, elem_id: str, visible: bool = True) -> gr.HTML:
    """Return an area of server-made HTML whose ``data-act`` elements are events."""
    return gr.HTML(
        value,
        js_on_load=PANEL_JS,
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

"""HTML from the server: fragments whose every text is escaped, and their panels."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import gradio as gr
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from loop.core.nouns import counted
from loop.core.safe_text import exposed, printable
from loop.documents import numbers

_FOLDER = Path(__file__).parent / "templates"

_PANEL_JS = "window.ranloopPanel(element, trigger, 'act');"
"""Makes every ``data-act`` inside a panel an event with its data attributes.

Gradio gives a panel the events whose names stand here in quotes.
"""


def show(template: str, **variables: object) -> str:
    """Return the HTML of a template under ``loop/ui/templates``.

    Markup, Markdown and template syntax in `variables` stay text; control and
    text-direction characters are spelled out.
    """
    return printable(_environment().get_template(template).render(**variables))


def notice(text: str, *, kind: str = "empty", title: str = "") -> str:
    """Return a designed empty, waiting or error state.

    Parameters
    ----------
    kind
        ``"empty"``, ``"wait"``, ``"error"`` or ``"good"``.
    """
    return show("notice.html.jinja", text=text, kind=kind, title=title)


def plain(text: str) -> str:
    """Return `text` as HTML that shows exactly it, for messages."""
    return str(escape(printable(text)))


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
        js_on_load=_PANEL_JS + script,
        elem_id=elem_id,
        visible=visible,
        apply_default_css=False,
    )


def form_panel(value: str = "", *, elem_id: str) -> gr.HTML:
    """Return an area of server-made HTML whose boxes and radios go with its buttons.

    Its events are ``act``, ``do`` (with what is ticked and chosen) and ``tick``.
    """
    return gr.HTML(
        value,
        # Gradio looks for the names of events in the script.
        js_on_load=(
            "// 'act', 'do', 'tick'\nwindow.ranloopForm(element, trigger, watch);"
        ),
        elem_id=elem_id,
        apply_default_css=False,
    )


def proposals_panel(*, elem_id: str) -> gr.HTML:
    """Return an area of server-made HTML with proposals that are decided one by one.

    Its events are ``act``, ``decide`` (with the id, and what was written), and
    ``begin``, with a form as far as it is filled.
    """
    return gr.HTML(
        "",
        # Gradio looks for the names of events in the script.
        js_on_load=(
            "// 'act', 'decide', 'begin'\n"
            "window.ranloopProposals(element, trigger, watch);"
        ),
        elem_id=elem_id,
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


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        share=numbers.share,
        signed=numbers.signed,
        interval=numbers.interval,
        signed_interval=numbers.signed_interval,
        percent=numbers.percent,
        p_value=numbers.p_value,
        count=numbers.count,
        counted=counted,
        listed=numbers.listed,
        when=_when,
        local=_local,
        words=_words,
        drawing=Markup,
        exposed=exposed,
    )
    return environment


def _when(time: str) -> str:
    """Return an ISO time as ``2026-11-22 04:27``, UTC."""
    return time[:16].replace("T", " ")


def _local(time: str) -> Markup:
    """Return an ISO time as a ``<time>``, which the page shows in the reader's zone."""
    if not time:
        return Markup("")
    stamp = time if time.endswith("Z") else f"{time[:19]}Z"
    return Markup('<time datetime="{}">{} UTC</time>').format(stamp, _when(time))


def _words(name: object) -> str:
    """Return an id such as ``label_boundary`` as words."""
    return str(name).replace("_", " ")

"""The components of the page Revise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import gradio as gr

from loop.ui.html import notice, panel, show, typing_in
from loop.ui.pages.revise.kept import Opened

_FORM = """// 'act', 'do', 'tick'
window.ranloopForm(element, trigger, watch);
"""
"""Sends boxes and radios with every button. Gradio looks for the names of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseComponents:
    """The components, in the order of `ReviseOutputs`."""

    opened: gr.State
    timer: gr.Timer
    said: gr.HTML
    verdicts: gr.HTML
    drafts: gr.HTML
    draft: gr.HTML
    editing: gr.Column
    label: gr.Dropdown
    guide: gr.Textbox
    note: gr.HTML
    checking: gr.Column
    asking: gr.Row
    engine: gr.Dropdown
    run: gr.Button
    check: gr.HTML
    decision: gr.HTML
    deciding: gr.Column
    why: gr.Textbox
    override: gr.Checkbox
    commit: gr.Button
    confirm: gr.Row

    @property
    def outputs(self) -> list[Any]:
        """All of them."""
        return [getattr(self, one.name) for one in fields(self)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """What acts and is never changed."""

    save: gr.Button
    undo: gr.Button
    keep: gr.Button
    discard: gr.Button
    really: gr.Button
    spare: gr.Button
    guide_typed: gr.HTML
    """Says that the guide in the editor has changed."""

    why_typed: gr.HTML


def lay_out() -> tuple[ReviseComponents, Buttons]:
    """Add the components to the tab that is open."""
    waiting = notice("Reading the verdicts.", kind="wait")
    found: dict[str, Any] = {
        "opened": gr.State(Opened()),
        "timer": gr.Timer(1, active=False),
        "said": panel(elem_id="revise-said", focused=True),
        "verdicts": _scripted("revise-verdicts", _FORM, waiting),
        "drafts": panel(elem_id="revise-drafts"),
    }
    with gr.Row(elem_id="revise-work"):
        with gr.Column(scale=3, min_width=440):
            found["draft"] = _scripted("revise-draft", _FORM)
        with gr.Column(
            scale=2, min_width=360, visible=False, elem_id="revise-editing"
        ) as found["editing"]:
            save, undo = _lay_out_editor(found)
    with gr.Column(visible=False, elem_id="revise-checking") as found["checking"]:
        panel(show("revise_step.html.jinja", number=3, name="Check"), elem_id="step-3")
        _lay_out_check(found)
    found["decision"] = panel(elem_id="revise-decision")
    with gr.Column(visible=False, elem_id="revise-deciding") as found["deciding"]:
        keep, discard, really, spare = _lay_out_decision(found)
    buttons = Buttons(
        save=save,
        undo=undo,
        keep=keep,
        discard=discard,
        really=really,
        spare=spare,
        guide_typed=typing_in("#revise-guide", elem_id="revise-guide-typed"),
        why_typed=typing_in("#revise-why", elem_id="revise-why-typed"),
    )
    return ReviseComponents(**found), buttons


def _scripted(elem_id: str, script: str, value: str = "") -> gr.HTML:
    """Return a panel with a script of its own."""
    return gr.HTML(value, js_on_load=script, elem_id=elem_id, apply_default_css=False)


def _lay_out_editor(found: dict[str, Any]) -> tuple[gr.Button, gr.Button]:
    found["label"] = gr.Dropdown(
        [], label="Edit by hand: the guide of", elem_id="revise-label"
    )
    found["guide"] = gr.Textbox(
        label="Guide, as YAML",
        lines=18,
        max_lines=18,
        elem_id="revise-guide",
        html_attributes=gr.InputHTMLAttributes(spellcheck=False, autocomplete="off"),
    )
    found["note"] = panel(elem_id="revise-note")
    with gr.Row():
        save = gr.Button("Save into the draft", elem_id="revise-save", min_width=120)
        undo = gr.Button("Undo my text", elem_id="revise-undo", min_width=120)
    return save, undo


def _lay_out_check(found: dict[str, Any]) -> None:
    with gr.Row(elem_id="revise-asking", equal_height=True) as found["asking"]:
        found["engine"] = gr.Dropdown(
            [], label="Engine", elem_id="revise-engine", min_width=220
        )
        found["run"] = gr.Button(
            "Run the check", variant="primary", elem_id="revise-run", min_width=140
        )
    found["check"] = panel(elem_id="revise-check")


def _lay_out_decision(
    found: dict[str, Any],
) -> tuple[gr.Button, gr.Button, gr.Button, gr.Button]:
    found["why"] = gr.Textbox(
        label="Reason (the ledger keeps it for ever; never quote a case)",
        lines=2,
        elem_id="revise-why",
        placeholder="What this version is for, in your words",
    )
    found["override"] = gr.Checkbox(
        label="Override the check: commit although it objects, for this reason and "
        "under my name",
        elem_id="revise-override",
        visible=False,
    )
    with gr.Row():
        found["commit"] = gr.Button(
            "Commit", variant="primary", elem_id="revise-commit", min_width=160
        )
        keep = gr.Button("Keep as a draft", elem_id="revise-keep", min_width=140)
        discard = gr.Button("Discard ...", elem_id="revise-discard", min_width=120)
    with gr.Row(visible=False, elem_id="revise-confirm") as found["confirm"]:
        really = gr.Button(
            "Yes, discard this draft for good", variant="stop", elem_id="revise-really"
        )
        spare = gr.Button("No, leave it", elem_id="revise-spare")
    return keep, discard, really, spare

"""The components of the page Revise, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import gradio as gr

from loop.people.users import Right
from loop.ui.chrome import Chrome
from loop.ui.look import PANEL_JS, panel
from loop.ui.pages.page import Page
from loop.ui.pages.revise import events
from loop.ui.pages.revise.kept import Opened
from loop.ui.pages.revise.sheet import Sheet
from loop.ui.show import notice, show
from loop.ui.wiring import Wire

_SCRIPT = Path(__file__).parents[2] / "static" / "revise.js"

SEE_DRAFT = """() => requestAnimationFrame(() => {
  const heading = document.querySelector('#revise-draft h3');
  if (heading) { heading.focus(); heading.scrollIntoView({block: 'center'}); }
})"""
"""Brings the draft into view that a button has made, and takes the keyboard there."""

_SEE_SAID = """
watch('value', () => {
  const said = element.querySelector('.notice');
  if (!said) return;
  said.tabIndex = -1;
  said.focus();
  said.scrollIntoView({block: 'center'});
});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The components, in the order of `Sheet`."""

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
    """The buttons that are never changed."""

    save: gr.Button
    undo: gr.Button
    keep: gr.Button
    discard: gr.Button
    really: gr.Button
    spare: gr.Button


def build(wire: Wire, chrome: Chrome) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Revise", id="revise", elem_id="tab-revise") as tab:
        parts, buttons = _lay_out()
    _wire_steps(wire, chrome, parts)
    _wire_editor(wire, chrome, parts, buttons)
    _wire_decision(wire, chrome, parts, buttons)
    return Page(
        name="revise",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
    )


def _lay_out() -> tuple[Parts, Buttons]:
    script = _SCRIPT.read_text(encoding="utf-8")
    waiting = notice("Reading the verdicts.", kind="wait")
    found: dict[str, Any] = {
        "opened": gr.State(Opened()),
        "timer": gr.Timer(1, active=False),
        "said": _scripted("revise-said", PANEL_JS + _SEE_SAID),
        "verdicts": _scripted("revise-verdicts", script, waiting),
        "drafts": panel(elem_id="revise-drafts"),
    }
    with gr.Row(elem_id="revise-work"):
        with gr.Column(scale=3, min_width=440):
            found["draft"] = _scripted("revise-draft", script)
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
        save=save, undo=undo, keep=keep, discard=discard, really=really, spare=spare
    )
    return Parts(**found), buttons


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
        label="Reason (stands in the ledger for ever; never quote a case)",
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


def _wire_steps(wire: Wire, chrome: Chrome, parts: Parts) -> None:
    place, every = chrome.context, parts.outputs
    here = (*place, parts.opened)
    wire.on(
        parts.verdicts.tick,
        events.tick,
        right=Right.REVISE,
        name="revise_tick",
        inputs=place,
        trigger_mode="always_last",
    )
    made = wire.on(
        parts.verdicts.do,
        events.act_on_verdicts,
        right=Right.REVISE,
        name="revise_begin",
        inputs=place,
        outputs=every,
    )
    opened = wire.on(
        parts.drafts.act,
        events.open_draft,
        right=Right.SEE,
        name="revise_open",
        inputs=place,
        outputs=every,
    )
    rebased = wire.on(
        parts.draft.do,
        events.rebase,
        right=Right.REVISE,
        name="revise_rebase",
        inputs=here,
        outputs=every,
    )
    for done in (made, opened, rebased):
        done.success(None, js=SEE_DRAFT, queue=False)
    wire.on(
        parts.run.click,
        events.run_check,
        right=Right.REVISE,
        name="revise_check",
        inputs=(*here, parts.engine),
        outputs=every,
    )
    wire.on(
        parts.timer.tick,
        events.poll,
        right=Right.SEE,
        name="revise_poll",
        inputs=here,
        outputs=every,
    )
    for where in (parts.said, parts.verdicts, parts.check):
        wire.on(
            where.act,
            events.follow,
            right=Right.SEE,
            name=f"follow_{where.elem_id}".replace("-", "_"),
            outputs=[chrome.tabs],
        )


def _wire_editor(wire: Wire, chrome: Chrome, parts: Parts, buttons: Buttons) -> None:
    here = (*chrome.context, parts.opened)
    editor = [parts.opened, parts.guide, parts.note]

    def in_editor(sheet: Sheet) -> tuple[Any, ...]:
        return sheet.opened, sheet.guide, sheet.note

    wire.on(
        parts.label.input,
        lambda *given: in_editor(events.choose_label(*given)),
        right=Right.REVISE,
        name="revise_label",
        inputs=(*here, parts.label),
        outputs=editor,
    )
    wire.on(
        parts.guide.input,
        events.type_guide,
        right=Right.REVISE,
        name="revise_typing",
        inputs=(parts.opened, parts.guide),
        trigger_mode="always_last",
    )
    wire.on(
        buttons.undo.click,
        lambda *given: in_editor(events.undo_guide(*given)),
        right=Right.REVISE,
        name="revise_undo",
        inputs=here,
        outputs=editor,
    )
    wire.on(
        buttons.save.click,
        events.save_guide,
        right=Right.REVISE,
        name="revise_save",
        inputs=(*here, parts.guide),
        outputs=parts.outputs,
    )


def _wire_decision(wire: Wire, chrome: Chrome, parts: Parts, buttons: Buttons) -> None:
    deciding = (*chrome.context, parts.opened, parts.why)
    wire.on(
        parts.why.input,
        events.type_why,
        right=Right.REVISE,
        name="revise_why",
        inputs=(parts.opened, parts.why),
        trigger_mode="always_last",
    )
    for button, handler, name, more in (
        (parts.commit, events.commit, "revise_commit", (parts.override,)),
        (buttons.keep, events.keep, "revise_keep", ()),
        (buttons.really, events.discard, "revise_discard", ()),
    ):
        wire.on(
            button.click,
            handler,
            right=Right.REVISE,
            name=name,
            inputs=(*deciding, *more),
            outputs=parts.outputs,
        )
    for button, shown in ((buttons.discard, True), (buttons.spare, False)):
        wire.on(
            button.click,
            _shower(shown),
            right=Right.REVISE,
            name="revise_ask" if shown else "revise_spare",
            outputs=[parts.confirm],
        )


def _shower(shown: bool) -> Any:
    return lambda visit: gr.Row(visible=shown)

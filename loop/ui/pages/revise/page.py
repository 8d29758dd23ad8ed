"""The page Revise: its components, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, show, typing_in
from loop.ui.pages.base import Page
from loop.ui.pages.revise import events
from loop.ui.pages.revise.state import OpenedDraft
from loop.ui.pages.revise.view import ReviseOutputs
from loop.ui.wiring import EventRegistry

_FORM = """// 'act', 'do', 'tick'
window.ranloopForm(element, trigger, watch);
"""
"""Sends boxes and radios with every button. Gradio looks for the names of events."""

SEE_DRAFT = """() => requestAnimationFrame(() => {
  const heading = document.querySelector('#revise-draft h3');
  if (heading) { heading.focus(); heading.scrollIntoView({block: 'center'}); }
})"""
"""Brings the draft into view that a button has made, and takes the keyboard there."""

EDITOR = (
    "opened",
    "writing",
    "guide",
    "setting",
    "plan",
    "contract",
    "parts",
    "note",
)
"""Names of the outputs that another choice in the editor changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseComponents:
    """The components whose names `ReviseOutputs` has."""

    opened: gr.State
    timer: gr.Timer
    said: gr.HTML
    verdicts: gr.HTML
    drafts: gr.HTML
    draft: gr.HTML
    editing: gr.Column
    label: gr.Dropdown
    writing: gr.Column
    guide: gr.Textbox
    setting: gr.Column
    plan: gr.Radio
    contract: gr.Radio
    parts: gr.HTML
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
        """All of them, in the order of `ReviseOutputs`."""
        return [getattr(self, name) for name in ReviseOutputs._fields]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviseButtons:
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


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Revise", id="revise", elem_id="tab-revise") as tab:
        parts, buttons = build_components()
    _connect_steps(registry, header, parts)
    _connect_editor(registry, header, parts, buttons)
    _connect_decision(registry, header, parts, buttons)
    return Page(
        name="revise",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
        links=(parts.said, parts.verdicts, parts.check),
    )


def _connect_steps(
    registry: EventRegistry, header: PageHeader, parts: ReviseComponents
) -> None:
    place, every = header.selection, parts.outputs
    here = (*place, parts.opened)
    registry.on(
        parts.verdicts.tick,
        events.tick,
        right=Right.REVISE,
        name="revise_tick",
        inputs=place,
        trigger_mode="always_last",
    )
    made = registry.on(
        parts.verdicts.do,
        events.act_on_verdicts,
        right=Right.REVISE,
        name="revise_begin",
        inputs=place,
        outputs=every,
    )
    opened = registry.on(
        parts.drafts.act,
        events.open_draft,
        right=Right.SEE,
        name="revise_open",
        inputs=place,
        outputs=every,
    )
    rebased = registry.on(
        parts.draft.do,
        events.rebase,
        right=Right.REVISE,
        name="revise_rebase",
        inputs=here,
        outputs=every,
    )
    for done in (made, opened, rebased):
        done.success(None, js=SEE_DRAFT, queue=False)
    registry.on(
        parts.run.click,
        events.run_check,
        right=Right.REVISE,
        name="revise_check",
        inputs=(*here, parts.engine),
        outputs=every,
    )
    registry.on(
        parts.timer.tick,
        events.poll,
        right=Right.SEE,
        name="revise_poll",
        inputs=here,
        outputs=every,
    )
    for where in (parts.said, parts.verdicts, parts.check):
        registry.on(
            where.act,
            events.follow,
            right=Right.SEE,
            name=f"follow_{where.elem_id}".replace("-", "_"),
            outputs=[header.tabs],
        )


def _connect_editor(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    buttons: ReviseButtons,
) -> None:
    here = (*header.selection, parts.opened)
    editor = [getattr(parts, name) for name in EDITOR]

    def in_editor(outputs: ReviseOutputs) -> tuple[Any, ...]:
        return tuple(getattr(outputs, name) for name in EDITOR)

    registry.on(
        parts.label.input,
        lambda *given: in_editor(events.choose_label(*given)),
        right=Right.REVISE,
        name="revise_label",
        inputs=(*here, parts.label),
        outputs=editor,
    )
    registry.on(
        buttons.guide_typed.typed,
        events.type_guide,
        right=Right.REVISE,
        name="revise_typing",
        inputs=(parts.opened, parts.guide),
        trigger_mode="always_last",
    )
    registry.on(
        partial(gr.on, [parts.plan.input, parts.contract.input]),
        events.choose_setting,
        right=Right.REVISE,
        name="revise_setting",
        inputs=(parts.opened, parts.plan, parts.contract),
        trigger_mode="always_last",
    )
    registry.on(
        buttons.undo.click,
        lambda *given: in_editor(events.undo_guide(*given)),
        right=Right.REVISE,
        name="revise_undo",
        inputs=here,
        outputs=editor,
    )
    registry.on(
        buttons.save.click,
        events.save_guide,
        right=Right.REVISE,
        name="revise_save",
        inputs=(*here, parts.guide, parts.plan, parts.contract),
        outputs=parts.outputs,
    )


def _connect_decision(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    buttons: ReviseButtons,
) -> None:
    deciding = (*header.selection, parts.opened, parts.why)
    registry.on(
        buttons.why_typed.typed,
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
        registry.on(
            button.click,
            handler,
            right=Right.REVISE,
            name=name,
            inputs=(*deciding, *more),
            outputs=parts.outputs,
        )
    for button, shown in ((buttons.discard, True), (buttons.spare, False)):
        registry.on(
            button.click,
            _shower(shown),
            right=Right.REVISE,
            name="revise_ask" if shown else "revise_spare",
            outputs=[parts.confirm],
        )


def _shower(shown: bool) -> Any:
    return lambda visit: gr.Row(visible=shown)


def build_components() -> tuple[ReviseComponents, ReviseButtons]:
    """Add the components to the tab that is open."""
    waiting = notice("Reading the verdicts.", kind="wait")
    found: dict[str, Any] = {
        "opened": gr.State(OpenedDraft()),
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
    buttons = ReviseButtons(
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
    found["label"] = gr.Dropdown([], label="Edit by hand", elem_id="revise-label")
    with gr.Column(elem_id="revise-writing") as found["writing"]:
        found["guide"] = gr.Textbox(
            label="Guide, as YAML, or instructions, as templates",
            lines=18,
            max_lines=18,
            elem_id="revise-guide",
            html_attributes=gr.InputHTMLAttributes(
                spellcheck=False, autocomplete="off"
            ),
        )
    with gr.Column(visible=False, elem_id="revise-setting") as found["setting"]:
        found["plan"] = gr.Radio([], label="Call plan", elem_id="revise-plan")
        found["contract"] = gr.Radio([], label="Contract", elem_id="revise-contract")
    found["note"] = panel(elem_id="revise-note")
    with gr.Row():
        save = gr.Button("Save into the draft", elem_id="revise-save", min_width=120)
        undo = gr.Button("Undo my text", elem_id="revise-undo", min_width=120)
    found["parts"] = panel(elem_id="revise-parts")
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

"""The page Revise, connected: which event does what, and who may."""

from __future__ import annotations

from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.chrome import Chrome
from loop.ui.pages.page import Page
from loop.ui.pages.revise import events
from loop.ui.pages.revise.layout import Buttons, ReviseComponents, lay_out
from loop.ui.pages.revise.sheet import ReviseOutputs
from loop.ui.wiring import Wire

SEE_DRAFT = """() => requestAnimationFrame(() => {
  const heading = document.querySelector('#revise-draft h3');
  if (heading) { heading.focus(); heading.scrollIntoView({block: 'center'}); }
})"""
"""Brings the draft into view that a button has made, and takes the keyboard there."""


def build(wire: Wire, chrome: Chrome) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Revise", id="revise", elem_id="tab-revise") as tab:
        parts, buttons = lay_out()
    _wire_steps(wire, chrome, parts)
    _wire_editor(wire, chrome, parts, buttons)
    _wire_decision(wire, chrome, parts, buttons)
    return Page(
        name="revise",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
        links=(parts.said, parts.verdicts, parts.check),
    )


def _wire_steps(wire: Wire, chrome: Chrome, parts: ReviseComponents) -> None:
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


def _wire_editor(
    wire: Wire, chrome: Chrome, parts: ReviseComponents, buttons: Buttons
) -> None:
    here = (*chrome.context, parts.opened)
    editor = [parts.opened, parts.guide, parts.note]

    def in_editor(sheet: ReviseOutputs) -> tuple[Any, ...]:
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
        buttons.guide_typed.typed,
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


def _wire_decision(
    wire: Wire, chrome: Chrome, parts: ReviseComponents, buttons: Buttons
) -> None:
    deciding = (*chrome.context, parts.opened, parts.why)
    wire.on(
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

"""The page Revise, connected: which event does what, and who may."""

from __future__ import annotations

from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.pages.base import Page
from loop.ui.pages.revise import events
from loop.ui.pages.revise.layout import Buttons, ReviseComponents, lay_out
from loop.ui.pages.revise.sheet import ReviseOutputs
from loop.ui.wiring import EventRegistry

SEE_DRAFT = """() => requestAnimationFrame(() => {
  const heading = document.querySelector('#revise-draft h3');
  if (heading) { heading.focus(); heading.scrollIntoView({block: 'center'}); }
})"""
"""Brings the draft into view that a button has made, and takes the keyboard there."""


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Revise", id="revise", elem_id="tab-revise") as tab:
        parts, buttons = lay_out()
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
    buttons: Buttons,
) -> None:
    here = (*header.selection, parts.opened)
    editor = [parts.opened, parts.guide, parts.note]

    def in_editor(sheet: ReviseOutputs) -> tuple[Any, ...]:
        return sheet.opened, sheet.guide, sheet.note

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
        inputs=(*here, parts.guide),
        outputs=parts.outputs,
    )


def _connect_decision(
    registry: EventRegistry,
    header: PageHeader,
    parts: ReviseComponents,
    buttons: Buttons,
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

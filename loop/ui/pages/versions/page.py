"""The page Versions: its components, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel
from loop.ui.pages.base import Page
from loop.ui.pages.versions import events
from loop.ui.pages.versions.view import (
    ComparisonOutputs,
    PromptPageOutputs,
    VersionsOutputs,
)
from loop.ui.wiring import EventRegistry

_TO_IT = """() => {
  const page = document.querySelector('#prompt-page [data-arrived]');
  page?.removeAttribute('data-arrived');
  document.getElementById(page ? 'reading-title' : 'compare-title').scrollIntoView();
}"""
"""Brings into view what was asked for in the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsComponents:
    """The components whose names `VersionsOutputs` has."""

    tables: gr.HTML
    before: gr.Dropdown
    after: gr.Dropdown
    difference: gr.HTML
    reading: gr.Dropdown
    prompt_page: gr.HTML
    """The version of `reading` as a model reads it."""

    aliasing: gr.Column
    version: gr.Dropdown
    action: gr.Dropdown
    subject: gr.Textbox
    ledger: gr.HTML
    seen: gr.State
    """Number of ledger entries when the page was opened."""

    stale: gr.HTML
    unscored: gr.HTML
    """Versions whose run waits for an evaluation."""

    @property
    def outputs(self) -> list[Any]:
        """All of them, in the order of `VersionsOutputs`."""
        return [getattr(self, name) for name in VersionsOutputs._fields]

    @property
    def compared(self) -> list[Any]:
        """Those of the comparison, in the order of `ComparisonOutputs`."""
        return [getattr(self, name) for name in ComparisonOutputs._fields]

    @property
    def read(self) -> list[Any]:
        """Those of the page of one version, in the order of `PromptPageOutputs`."""
        return [getattr(self, name) for name in PromptPageOutputs._fields]


class AliasForm(NamedTuple):
    """What is typed to move an alias, and what is said of it."""

    name: gr.Textbox
    why: gr.Textbox
    move: gr.Button
    said: gr.HTML


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Versions", id="versions", elem_id="tab-versions") as tab:
        parts, form = _lay_out()
    _connect(registry, header, parts, form)
    return Page(
        name="versions",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
    )


def _lay_out() -> tuple[VersionsComponents, AliasForm]:
    stale = panel(elem_id="versions-stale")
    unscored = panel(elem_id="versions-unscored")
    tables = panel(notice("Reading the versions.", kind="wait"), elem_id="versions")
    before, after, difference = _lay_out_comparison()
    reading, prompt_page = _lay_out_reading()
    aliasing, version, form = _lay_out_alias()
    action, subject, ledger = _lay_out_ledger()
    parts = VersionsComponents(
        tables=tables,
        before=before,
        after=after,
        difference=difference,
        reading=reading,
        prompt_page=prompt_page,
        aliasing=aliasing,
        version=version,
        action=action,
        subject=subject,
        ledger=ledger,
        seen=gr.State(0),
        stale=stale,
        unscored=unscored,
    )
    return parts, form


def _lay_out_comparison() -> tuple[gr.Dropdown, gr.Dropdown, gr.HTML]:
    panel("<h2>Compare two versions</h2>", elem_id="compare-title")
    with gr.Row(elem_classes="entry"):
        before = gr.Dropdown([], label="Earlier", elem_id="diff-before")
        after = gr.Dropdown([], label="Later", elem_id="diff-after")
    return before, after, panel(elem_id="difference")


def _lay_out_reading() -> tuple[gr.Dropdown, gr.HTML]:
    panel("<h2>A version as a model reads it</h2>", elem_id="reading-title")
    with gr.Row(elem_classes="entry"):
        reading = gr.Dropdown([], label="Version or draft", elem_id="reading")
    return reading, panel(elem_id="prompt-page")


def _lay_out_alias() -> tuple[gr.Column, gr.Dropdown, AliasForm]:
    with gr.Column(visible=False, elem_id="aliasing") as aliasing:
        panel("<h2>Move an alias</h2>", elem_id="alias-title")
        with gr.Row(elem_classes="entry"):
            name = gr.Textbox(
                label="Alias", placeholder="production", elem_id="alias-name"
            )
            version = gr.Dropdown(
                [], label="Points at from now on", elem_id="alias-version"
            )
            why = gr.Textbox(
                label="Reason, for the ledger", elem_id="alias-why", scale=3
            )
            move = gr.Button("Move alias", variant="primary", elem_id="alias-move")
        said = panel(elem_id="alias-said")
    return aliasing, version, AliasForm(name, why, move, said)


def _lay_out_ledger() -> tuple[gr.Dropdown, gr.Textbox, gr.HTML]:
    panel("<h2>Ledger</h2>", elem_id="ledger-title")
    with gr.Row(elem_classes="entry"):
        action = gr.Dropdown(
            [("every action", "")], value="", label="Action", elem_id="ledger-action"
        )
        subject = gr.Textbox(
            label="Subject contains, then Enter",
            placeholder="extractor@v3",
            elem_id="ledger-subject",
        )
    return action, subject, panel(elem_id="ledger")


def _connect(
    registry: EventRegistry,
    header: PageHeader,
    parts: VersionsComponents,
    form: AliasForm,
) -> None:
    _connect_comparison(registry, header, parts)
    _connect_ledger(registry, parts)
    registry.on(
        form.move.click,
        events.point,
        right=Right.APPROVE,
        name="versions_alias",
        inputs=(*header.selection, parts.version, form.name, form.why, parts.seen),
        outputs=[*parts.outputs, form.name, form.why, form.said],
    )
    registry.on(
        parts.unscored.act,
        events.evaluate,
        right=Right.REVISE,
        name="versions_evaluate",
        inputs=header.selection,
        outputs=parts.outputs,
        show_progress="minimal",
    )
    registry.on(
        parts.stale.act,
        events.refresh,
        right=Right.SEE,
        name="versions_fresh",
        inputs=header.selection,
        outputs=parts.outputs,
    )


def _connect_comparison(
    registry: EventRegistry, header: PageHeader, parts: VersionsComponents
) -> None:
    for place, choice in (("earlier", parts.before), ("later", parts.after)):
        registry.on(
            choice.input,
            events.compare,
            right=Right.SEE,
            name=f"versions_compare_{place}",
            inputs=(parts.before, parts.after, parts.seen),
            outputs=(parts.difference, parts.stale),
        )
    registry.on(
        parts.reading.input,
        events.read,
        right=Right.SEE,
        name="versions_read",
        inputs=(parts.reading,),
        outputs=(parts.prompt_page,),
        show_progress="minimal",
    )
    shown = registry.on(
        parts.tables.act,
        events.act,
        right=Right.SEE,
        name="versions_act",
        inputs=header.selection,
        outputs=[*parts.compared, *parts.read],
    )
    shown.success(None, js=_TO_IT, queue=False)


def _connect_ledger(registry: EventRegistry, parts: VersionsComponents) -> None:
    for name, listener in (
        ("ledger_action", parts.action.input),
        ("ledger_subject", parts.subject.submit),
        ("ledger_turn", parts.ledger.act),
    ):
        registry.on(
            listener,
            events.read_ledger_page,
            right=Right.SEE,
            name=name,
            inputs=(parts.action, parts.subject, parts.seen),
            outputs=(parts.ledger, parts.stale),
        )

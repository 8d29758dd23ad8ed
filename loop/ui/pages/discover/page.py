"""The page Discover: its components, and which event does what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.people.users import Right
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, proposals_panel, typing_in
from loop.ui.pages.base import Page
from loop.ui.pages.discover import events
from loop.ui.pages.discover.view import DiscoverOutputs
from loop.ui.wiring import EventRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverComponents:
    """The components whose names `DiscoverOutputs` has."""

    opened: gr.State
    """Sha256 of the draft that is shown."""

    timer: gr.Timer
    said: gr.HTML
    head: gr.HTML
    clusters: gr.HTML
    change: gr.HTML
    deciding: gr.Column
    why: gr.Textbox
    take: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """All of them, in the order of `DiscoverOutputs`."""
        return [getattr(self, name) for name in DiscoverOutputs._fields]


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Discover", id="discover", elem_id="tab-discover") as tab:
        waiting = notice("Reading the clusters.", kind="wait")
        opened = gr.State("")
        timer = gr.Timer(1, active=False)
        said = panel(elem_id="discover-said", focused=True)
        head = panel(waiting, elem_id="discover-head")
        clusters = proposals_panel(elem_id="discover-clusters")
        change = panel(elem_id="discover-change")
        with gr.Column(visible=False, elem_id="discover-deciding") as deciding:
            why = gr.Textbox(
                label="Reason (the ledger keeps it for ever; never quote a case)",
                lines=2,
                elem_id="discover-why",
                placeholder="Why these labels, in your words",
            )
            take = gr.Button(
                "Take into labels/taxonomy.yaml",
                variant="primary",
                elem_id="discover-take",
                min_width=160,
            )
        typed = typing_in("#discover-why", elem_id="discover-why-typed")
    parts = DiscoverComponents(
        opened=opened,
        timer=timer,
        said=said,
        head=head,
        clusters=clusters,
        change=change,
        deciding=deciding,
        why=why,
        take=take,
    )
    _connect(registry, header, parts, typed)
    return Page(
        name="discover",
        right=Right.SEE,
        tab=tab,
        refresh=events.refresh,
        outputs=parts.outputs,
    )


def _connect(
    registry: EventRegistry,
    header: PageHeader,
    parts: DiscoverComponents,
    typed: gr.HTML,
) -> None:
    place, every = header.selection, parts.outputs
    for listener, handler, right, name in (
        (parts.head.act, events.start, Right.REVISE, "discover_start"),
        (parts.timer.tick, events.poll, Right.SEE, "discover_poll"),
        (parts.clusters.act, events.look, Right.SEE, "discover_look"),
        (parts.clusters.decide, events.decide, Right.JUDGE, "discover_decide"),
    ):
        registry.on(
            listener, handler, right=right, name=name, inputs=place, outputs=every
        )
    registry.on(
        parts.clusters.begin,
        events.begin,
        right=Right.JUDGE,
        name="discover_begin",
        inputs=place,
        trigger_mode="always_last",
    )
    registry.on(
        typed.typed,
        events.type_why,
        right=Right.REVISE,
        name="discover_why",
        inputs=(header.cohort, parts.why),
        trigger_mode="always_last",
    )
    registry.on(
        parts.take.click,
        events.take,
        right=Right.REVISE,
        name="discover_take",
        inputs=(*place, parts.opened, parts.why),
        outputs=every,
    )

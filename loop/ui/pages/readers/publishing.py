"""Publishing: complete readings become votes, and the votes a reference version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from loop.core.errors import DataError
from loop.people.users import Right
from loop.review.reading.assignment import Assignment
from loop.review.reading.basis import read_basis
from loop.review.reading.foreseen import Foreseen, foresee_publication
from loop.review.reading.progress import measure_progress
from loop.review.reading.publication import (
    Publication,
    Published,
    publish_readings,
)
from loop.ui.chrome import Chrome
from loop.ui.look import panel
from loop.ui.pages.readers.at_hand import open_assignment, open_turnout
from loop.ui.pages.readers.section import Section
from loop.ui.show import show
from loop.ui.wiring import Visit, Wire

OVER_HALF = "over half"
MOST_NEEDED = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """The components of the form."""

    table: gr.HTML
    form: gr.Column
    readers: gr.CheckboxGroup
    need: gr.Dropdown
    pseudonyms: gr.Checkbox
    lose: gr.Checkbox
    publish: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """What `show_publishable` fills."""
        return [self.table, self.form, self.readers, self.lose]

    @property
    def inputs(self) -> list[Any]:
        """What is published, and how."""
        return [self.readers, self.need, self.pseudonyms, self.lose]


def build() -> Publishing:
    """Add the form."""
    table = panel(elem_id="readings")
    counts = [(f"{n} equal votes", str(n)) for n in range(1, MOST_NEEDED + 1)]
    with gr.Column(visible=False, elem_id="publish-form") as form:
        with gr.Row():
            readers = gr.CheckboxGroup(
                [], label="Publish the complete cases of", elem_id="publish-readers"
            )
            need = gr.Dropdown(
                [("over half of all readers", OVER_HALF), *counts],
                value=OVER_HALF,
                label="A label needs",
                elem_id="publish-need",
            )
        with gr.Row():
            pseudonyms = gr.Checkbox(
                label="Under pseudonyms: votes and ledger name no reader",
                elem_id="publish-pseudonyms",
            )
            lose = gr.Checkbox(
                label="Earlier votes on cases that are not complete may be lost",
                elem_id="publish-lose",
            )
        publish = gr.Button(
            "Publish: make votes and a reference version", elem_id="publish"
        )
    return Publishing(
        table=table,
        form=form,
        readers=readers,
        need=need,
        pseudonyms=pseudonyms,
        lose=lose,
        publish=publish,
    )


def connect(
    wire: Wire,
    chrome: Chrome,
    form: Publishing,
    after: tuple[gr.Dropdown, Callable[..., list[Any]]],
    section: Section,
) -> None:
    """Connect the form; `after` says what the section shows once it is done."""
    label, look = after

    def handle(
        visit: Visit, prompt: str | None, cohort: str | None, *values: Any
    ) -> list[Any]:
        chosen, *wanted = values
        made = publish(visit, cohort, *wanted)
        shown = look(visit, prompt, cohort, chosen)
        return [*shown, *show_publishable(visit, cohort, made)]

    wire.on(
        form.publish.click,
        handle,
        right=Right.IMPORT,
        name="publish_readings",
        inputs=[*chrome.context, label, *form.inputs],
        outputs=section.outputs,
    )


def show_publishable(
    visit: Visit, cohort: str | None, made: Published | None = None
) -> list[Any]:
    """Return whose readings could be published, and what would become of them."""
    try:
        assignment = open_assignment(visit, cohort)
        found = _foresee(visit, assignment)
    except DataError:
        return ["", gr.Column(visible=False), gr.skip(), gr.skip()]
    ready = [one.reader for one in found if one.complete]
    may = visit.user.may(Right.IMPORT)
    table = show(
        "readers_publish.html.jinja",
        found=found,
        of=len(assignment.cohort.cases),
        may=may,
        made=made,
    )
    return [
        table,
        gr.Column(visible=bool(may and ready)),
        gr.CheckboxGroup(choices=ready, value=ready),
        gr.Checkbox(value=False, visible=any(one.lost for one in found)),
    ]


def _foresee(visit: Visit, assignment: Assignment) -> tuple[Foreseen, ...]:
    desk = visit.desk
    basis = read_basis(desk.workspace, assignment, desk.store)

    def look() -> tuple[Foreseen, ...]:
        turnout = open_turnout(desk, assignment, basis)
        progress = measure_progress(desk.store, assignment)
        return foresee_publication(
            desk.workspace, desk.store, assignment, progress, turnout
        )

    found: tuple[Foreseen, ...] = desk.memo.get(("foreseen", basis), look)
    return found


def publish(
    visit: Visit,
    cohort: str | None,
    readers: list[str] | None,
    need: str | None,
    pseudonyms: bool | None,
    lose: bool | None,
) -> Published:
    """Publish what the form says, and return what became of it.

    Raises
    ------
    DataError
        No reader is chosen, there is nothing to publish, or votes would be lost that
        may not be; nothing was changed.
    """
    if not readers:
        raise DataError("no reader is chosen. Tick whose readings become votes.")
    wanted = Publication(
        readers=tuple(readers),
        need=None if need in (None, OVER_HALF) else int(str(need)),
        pseudonymous=bool(pseudonyms),
        replace=bool(lose),
    )
    desk, assignment = visit.desk, open_assignment(visit, cohort)
    return publish_readings(desk.workspace, desk.store, assignment, wanted, visit.actor)

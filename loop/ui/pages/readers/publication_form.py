"""Publishing: which marks would change, and on confirmation a reference version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.people.users import Right
from loop.review.reading.assignment import Assignment, read_basis
from loop.review.reading.publication import (
    Publication,
    PublicationDryRun,
    Published,
    dry_run_publication,
    preview_publication,
    publish_readings,
)
from loop.review.reading.reader_progress import measure_progress
from loop.ui.header import PageHeader
from loop.ui.html import panel, show
from loop.ui.pages.base import SAME
from loop.ui.pages.readers.state import open_assignment, open_turnout
from loop.ui.wiring import EventRegistry, Visit

RECORDED = "as recorded"
MOST_NEEDED = 15
_COUNTS = tuple(str(number) for number in range(1, MOST_NEEDED + 1))

MOST_LISTED = 100
"""Changes of single marks that a preview lists; the rest is counted."""


class PublicationForm(NamedTuple):
    """What the form says, in the order of its inputs. Untrusted."""

    readers: list[str] | None
    need: str | None
    pseudonyms: bool | None
    lose: bool | None

    @property
    def publication(self) -> Publication:
        """The same, to be previewed.

        Raises
        ------
        DataError
            No reader is chosen, or the number of votes is none.
        """
        if not self.readers:
            raise DataError("no reader is chosen. Tick whose readings become votes.")
        recorded = self.need in (None, RECORDED)
        if not recorded and self.need not in _COUNTS:
            raise DataError("the number of equal votes is not valid. Choose another.")
        return Publication(
            readers=tuple(self.readers),
            need=None if recorded else int(str(self.need)),
            pseudonymous=bool(self.pseudonyms),
            replace=bool(self.lose),
        )


class PublicationOutputs(NamedTuple):
    """What each component of this name in `PublicationComponents` shows."""

    table: Any = SAME
    form: Any = SAME
    readers: Any = SAME
    lose: Any = SAME


class PreviewOutputs(NamedTuple):
    """What the components of the preview show, by their names."""

    preview: Any = SAME
    confirm: Any = SAME
    why: Any = SAME
    digest: Any = SAME
    publish: Any = SAME


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationComponents:
    """The components of the form."""

    table: gr.HTML
    form: gr.Column
    readers: gr.CheckboxGroup
    need: gr.Dropdown
    pseudonyms: gr.Checkbox
    lose: gr.Checkbox
    ask: gr.Button
    preview: gr.HTML
    confirm: gr.Column
    why: gr.Textbox
    digest: gr.State
    publish: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """What `show_publishable` fills."""
        names = (*PublicationOutputs._fields, *PreviewOutputs._fields)
        return [getattr(self, name) for name in names]

    @property
    def previewed(self) -> list[Any]:
        """What `show_preview` fills."""
        return [getattr(self, name) for name in PreviewOutputs._fields]

    @property
    def inputs(self) -> list[Any]:
        """What is published, and how; the fields of `PublicationForm`."""
        return [self.readers, self.need, self.pseudonyms, self.lose]


def build() -> PublicationComponents:
    """Add the form, and the preview that has to be confirmed."""
    table = panel(elem_id="readings")
    counts = [(f"over half, and at least {n} equal votes", n) for n in _COUNTS[1:]]
    with gr.Column(visible=False, elem_id="publish-form") as form:
        with gr.Row():
            readers = gr.CheckboxGroup(
                [], label="Publish the complete cases of", elem_id="publish-readers"
            )
            need = gr.Dropdown(
                [
                    ("as recorded with the votes before", RECORDED),
                    ("over half of those who read the case", "1"),
                    *counts,
                ],
                value=RECORDED,
                label="A mark needs",
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
        ask = gr.Button("Show which marks would change", elem_id="publish-look")
        preview = panel(elem_id="publish-preview")
        with gr.Column(visible=False, elem_id="publish-confirm") as confirm:
            why = gr.Textbox(
                label="Reason (kept in the ledger)",
                elem_id="publish-why",
                max_lines=2,
            )
            publish_it = gr.Button("Publish", variant="primary", elem_id="publish")
    return PublicationComponents(
        table=table,
        form=form,
        readers=readers,
        need=need,
        pseudonyms=pseudonyms,
        lose=lose,
        ask=ask,
        preview=preview,
        confirm=confirm,
        why=why,
        # Stays on the server: the browser cannot say that it saw something else.
        digest=gr.State(None),
        publish=publish_it,
    )


def connect(
    registry: EventRegistry,
    header: PageHeader,
    form: PublicationComponents,
    label: gr.Dropdown,
    show_panel: Callable[..., Sequence[Any]],
    outputs: list[Any],
) -> None:
    """Connect the form; `show_panel` fills the rest of the panel afterwards."""

    def preview_it(
        visit: Visit, _prompt: str | None, cohort: str | None, *values: Any
    ) -> PreviewOutputs:
        return show_preview(visit, cohort, PublicationForm(*values))

    def publish_it(
        visit: Visit, prompt: str | None, cohort: str | None, *values: Any
    ) -> list[Any]:
        chosen, *asked, why, digest = values
        made = publish(visit, cohort, PublicationForm(*asked), why=why, digest=digest)
        shown = show_panel(visit, prompt, cohort, chosen)
        return [*shown, *show_publishable(visit, cohort, made)]

    registry.on(
        form.ask.click,
        preview_it,
        right=Right.IMPORT,
        name="publish_preview",
        inputs=[*header.selection, *form.inputs],
        outputs=form.previewed,
    )
    registry.on(
        form.publish.click,
        publish_it,
        right=Right.IMPORT,
        name="publish_readings",
        inputs=[*header.selection, label, *form.inputs, form.why, form.digest],
        outputs=outputs,
    )


def show_publishable(
    visit: Visit, cohort: str | None, made: Published | None = None
) -> list[Any]:
    """Return whose readings could be published, and what would become of them."""
    try:
        assignment = open_assignment(visit, cohort)
        found = _dry_run(visit, assignment)
    except DataError:
        return [
            *PublicationOutputs(table="", form=gr.Column(visible=False)),
            *_no_preview(),
        ]
    ready = [one.reader for one in found if one.complete]
    may = visit.user.may(Right.IMPORT)
    table = show(
        "readers_publish.html.jinja",
        found=found,
        of=len(assignment.cohort.cases),
        may=may,
        made=made,
    )
    outputs = PublicationOutputs(
        table=table,
        form=gr.Column(visible=bool(may and ready)),
        readers=gr.CheckboxGroup(choices=ready, value=ready),
        lose=gr.Checkbox(value=False, visible=any(one.lost for one in found)),
    )
    return [*outputs, *_no_preview()]


def _no_preview() -> PreviewOutputs:
    """Return the outputs before anybody looked at what would change."""
    return PreviewOutputs(
        preview="",
        confirm=gr.Column(visible=False),
        why=gr.Textbox(value=""),
        digest=None,
    )


def _dry_run(visit: Visit, assignment: Assignment) -> tuple[PublicationDryRun, ...]:
    context = visit.context
    basis = read_basis(context.workspace, assignment, context.store)

    def find() -> tuple[PublicationDryRun, ...]:
        turnout = open_turnout(context, assignment, basis)
        progress = measure_progress(context.store, assignment)
        return dry_run_publication(
            context.workspace, context.store, assignment, progress, turnout
        )

    found: tuple[PublicationDryRun, ...] = context.cache.get(
        ("publication dry run", basis), find
    )
    return found


def show_preview(
    visit: Visit, cohort: str | None, asked: PublicationForm
) -> PreviewOutputs:
    """Return which marks would change, and what is needed to go on.

    Raises
    ------
    DataError
        No reader is chosen, there is nothing to publish, or votes would be lost that
        may not be.
    """
    context, assignment = visit.context, open_assignment(visit, cohort)
    seen = preview_publication(
        context.workspace, context.store, assignment, asked.publication, visit.actor
    )
    votes = seen.votes
    shown = show(
        "readers_changes.html.jinja",
        seen=seen,
        votes=votes,
        label=assignment.taxonomy.find,
        most=MOST_LISTED,
    )
    number = len(votes.changes.rows) if votes.changes else 0
    what = f": change {counted(number, 'mark')}" if number else ""
    return PreviewOutputs(
        preview=shown,
        confirm=gr.Column(visible=True),
        digest=votes.digest,
        publish=gr.Button(value=f"Publish{what}"),
    )


def publish(
    visit: Visit,
    cohort: str | None,
    asked: PublicationForm,
    *,
    why: str | None,
    digest: str | None,
) -> Published:
    """Publish what was previewed, and return what became of it.

    Raises
    ------
    ConflictError
        It would not be what was previewed; nothing was changed.
    DataError
        There is no reason, or nothing was previewed; nothing was changed.
    """
    if not digest:
        raise DataError(
            "nobody looked at the marks that would change. Press `Show which marks "
            "would change` first; nothing was published."
        )
    context, assignment = visit.context, open_assignment(visit, cohort)
    wanted = replace(asked.publication, reason=str(why or ""), expected=str(digest))
    return publish_readings(
        context.workspace, context.store, assignment, wanted, visit.actor
    )

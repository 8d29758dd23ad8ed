"""The form that gives readers their cases: who, how many, how many shared, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import DataError
from loop.core.people.roster import read_users
from loop.core.people.users import Right
from loop.labels.cohort import read_record
from loop.review.reading.answer_files import split_case_ids
from loop.review.reading.assignment import (
    Assignment,
    CaseOrder,
    PlanRequest,
    assign_cases,
    assign_sample,
    clear_plans,
    read_order,
    read_plans,
)
from loop.review.reading.reader_progress import measure_progress
from loop.ui.header import PageHeader
from loop.ui.pages.base import SAME
from loop.ui.pages.readers.state import open_assignment
from loop.ui.wiring import EventRegistry, Visit

EVERY_CASE = ("every case of the cohort, or those listed below", "")


class PlanForm(NamedTuple):
    """What the form says, in the order of its inputs. Untrusted."""

    readers: list[str] | None
    cases: str | None
    overlap: str | None
    order: str | None
    seed: str | None
    among: str | None
    sample: str | None = None
    """Name of the value sample to draw from; empty for none."""

    @property
    def wanted(self) -> PlanRequest:
        """The same as what can be drawn.

        Raises
        ------
        DataError
            A field that must hold a number holds none.
        """
        seed = _whole(self.seed, "seed")
        return PlanRequest(
            readers=tuple(self.readers or ()),
            cases=_whole(self.cases, "cases of each reader"),
            overlap=_whole(self.overlap, "shared cases"),
            order=read_order(self.order or CaseOrder.RANDOM),
            seed=1 if seed is None else seed,
            among=split_case_ids(self.among or ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentComponents:
    """The components of the form."""

    box: gr.Accordion
    readers: gr.Dropdown
    fields: tuple[Any, ...]
    sample: gr.Dropdown
    give: gr.Button
    clear: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """What `show_assigning` fills."""
        return [self.box, self.readers, self.sample]

    @property
    def inputs(self) -> list[Any]:
        """The fields of `PlanForm`."""
        return [self.readers, *self.fields, self.sample]


def build() -> AssignmentComponents:
    """Add the form, folded."""
    with gr.Accordion(
        "Give readers their cases", open=False, visible=False, elem_id="assign"
    ) as box:
        with gr.Row():
            readers = gr.Dropdown(
                [], multiselect=True, label="Readers", elem_id="assign-readers"
            )
            order = gr.Radio(
                [
                    ("random, each reader's own", CaseOrder.RANDOM.value),
                    ("as listed", CaseOrder.LISTED.value),
                ],
                value=CaseOrder.RANDOM.value,
                label="Order",
                elem_id="assign-order",
            )
        with gr.Row():
            cases = _text("Cases of each reader", "assign-cases", "all")
            overlap = _text("Of these, shared by all", "assign-overlap", "all")
            seed = _text("Seed of the draw", "assign-seed", "1")
        sample = gr.Dropdown(
            [EVERY_CASE],
            value="",
            label="Draw from",
            elem_id="assign-sample",
            visible=False,
        )
        among = gr.Textbox(
            label="Draw from these case ids, one a line",
            placeholder="every case of the cohort",
            lines=2,
            max_lines=8,
            elem_id="assign-among",
        )
        with gr.Row():
            give = gr.Button("Give these cases", elem_id="assign-give")
            clear = gr.Button("Let them read every case", elem_id="assign-clear")
    return AssignmentComponents(
        box=box,
        readers=readers,
        fields=(cases, overlap, order, seed, among),
        sample=sample,
        give=give,
        clear=clear,
    )


def _text(label: str, name: str, example: str) -> gr.Textbox:
    return gr.Textbox(label=label, placeholder=example, elem_id=name, max_lines=1)


def connect(
    registry: EventRegistry,
    header: PageHeader,
    form: AssignmentComponents,
    outputs: list[Any],
    show_again: Callable[[Visit, str | None], list[Any]],
) -> None:
    """Connect the form; `show_again` fills `outputs` afterwards."""
    for button, act, name in (
        (form.give, give, "assign_cases"),
        (form.clear, clear, "assign_every_case"),
    ):

        def handle(
            visit: Visit,
            _prompt: str | None,
            cohort: str | None,
            *values: Any,
            act: Callable[..., None] = act,
        ) -> list[Any]:
            act(visit, cohort, PlanForm(*values))
            return [*show_assigning(visit, cohort), *show_again(visit, cohort)]

        registry.on(
            button.click,
            handle,
            right=Right.IMPORT,
            name=name,
            inputs=[*header.selection, *form.inputs],
            outputs=[*form.outputs, *outputs],
        )


def show_assigning(visit: Visit, cohort: str | None) -> list[Any]:
    """Return the form with everybody who may read, for whoever may assign."""
    if not visit.user.may(Right.IMPORT):
        return [gr.Accordion(visible=False), SAME, SAME]
    try:
        assignment = open_assignment(visit, cohort)
    except DataError:
        return [gr.Accordion(visible=False), SAME, SAME]
    drawn = _newest_sample(visit, assignment)
    choices = [EVERY_CASE, (f"value sample {drawn}, chances kept", str(drawn))]
    return [
        gr.Accordion(visible=True),
        gr.Dropdown(choices=_known(visit, assignment), value=None, multiselect=True),
        gr.Dropdown(
            choices=choices if drawn else [EVERY_CASE], value="", visible=bool(drawn)
        ),
    ]


def _newest_sample(visit: Visit, assignment: Assignment) -> int:
    """Return the number of the value sample that counts; 0 where none was drawn."""
    record = read_record(visit.context.workspace, assignment.cohort.name)
    return max(record.samples, default=0)


def give(visit: Visit, cohort: str | None, form: PlanForm) -> None:
    """Give the chosen readers their cases.

    Raises
    ------
    DataError
        A reader is unknown, a number is none, there are not enough cases, or another
        value sample was drawn since; nothing was changed.
    """
    assignment = _require_known(visit, cohort, form)
    context, wanted = visit.context, form.wanted
    if form.sample:
        if form.sample != str(_newest_sample(visit, assignment)):
            raise DataError(
                "another value sample was drawn since this page was opened. Load it "
                "again, and choose that one."
            )
        wanted = assign_sample(context.workspace, assignment, wanted)
    assign_cases(context.store, assignment, wanted, visit.actor, context.now)


def clear(visit: Visit, cohort: str | None, form: PlanForm) -> None:
    """Let the chosen readers read every case again.

    Raises
    ------
    DataError
        No reader is chosen, or one is unknown; nothing was changed.
    """
    assignment = _require_known(visit, cohort, form)
    context = visit.context
    clear_plans(context.store, assignment, form.readers or (), visit.actor, context.now)


def _require_known(visit: Visit, cohort: str | None, form: PlanForm) -> Assignment:
    assignment = open_assignment(visit, cohort)
    if not form.readers:
        raise DataError("no reader is chosen. Choose who reads these cases.")
    known = _known(visit, assignment)
    for name in form.readers:
        if name not in known:
            raise DataError(
                f"{str(name)[:64]!r} may not read here. Choose another, or add the "
                "role reader with `ranloop user add`."
            )
    return assignment


def _known(visit: Visit, assignment: Assignment) -> list[str]:
    """Return everybody who may read, has read, or was given cases."""
    context = visit.context
    users = [u for u in read_users(context.workspace) if not u.disabled]
    names = {user.name for user in users if user.may(Right.READ)}
    if visit.user.may(Right.READ):
        names.add(visit.user.name)
    progress = measure_progress(context.store, assignment)
    names |= {one.reader for one in progress.readers}
    return sorted(names | set(read_plans(context.store, assignment)))


def _whole(typed: str | None, what: str) -> int | None:
    """Return a number that was typed; None where nothing was."""
    text = (typed or "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise DataError(f"{what}: not a number. Correct it, or leave it empty.")
    return int(text)

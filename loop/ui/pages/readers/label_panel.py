"""The panel Label: one case, its text and the reader's own answers, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import gradio as gr

from loop.core.errors import ConflictError, DataError
from loop.core.people.users import Right
from loop.core.records import Value
from loop.core.safe_text import quoted
from loop.labels.cohort import read_cohort
from loop.labels.taxonomy import NO_FINDING, Label
from loop.review.guideline import VALUES, Guideline, GuidelineEntry, build_guideline
from loop.review.reading.answers import (
    LONGEST,
    ReadingSheet,
    answer,
    complete_case,
    defer_case,
    keep_comment,
    name_contradiction,
    open_sheet,
    read_answers,
)
from loop.review.reading.assignment import (
    Assignment,
    cases_to_read,
    plan_guideline,
    positions,
    read_basis,
    voted_cases,
)
from loop.review.reading.reader_progress import ReaderPosition, find_way
from loop.ui.header import PageHeader
from loop.ui.html import notice, panel, show
from loop.ui.pages.base import SAME
from loop.ui.pages.readers.base import ReadersPanel, on_act, ordered_panel
from loop.ui.pages.readers.state import open_assignment, open_turnout
from loop.ui.wiring import EventRegistry, Visit

NAME, TITLE = "label", "Label"


class ReadingOutputs(NamedTuple):
    """The components that the panel's events set, or what these show."""

    progress: Any = SAME
    sheet: Any = SAME
    status: Any = SAME


class SheetRow(NamedTuple):
    """One label on the sheet."""

    label: Label
    value: Value | None
    """The reader's own answer."""

    meaning: GuidelineEntry
    """What the label means, as the guideline says."""


class LabelGroup(NamedTuple):
    """Labels of one place in the body, under a number that is also its key."""

    name: str
    rows: tuple[SheetRow, ...]


def build(registry: EventRegistry, header: PageHeader) -> ReadersPanel:
    """Add the panel and connect it."""
    with gr.Column(visible=False, elem_id="part-label") as box:
        with gr.Row(elem_id="reading-head", equal_height=True):
            progress = panel(elem_id="reading-progress")
            status = panel(elem_id="reading-status")
        sheet = ordered_panel("reading-sheet")
    outputs = ReadingOutputs(progress=progress, sheet=sheet, status=status)
    on_act(
        registry,
        sheet,
        act,
        right=Right.READ,
        name="label_act",
        inputs=header.selection,
        outputs=outputs,
    )
    return ReadersPanel(
        name=NAME,
        title=TITLE,
        right=Right.READ,
        box=box,
        show=open_,
        outputs=outputs,
    )


def open_(visit: Visit, _prompt: str | None, cohort: str | None) -> ReadingOutputs:
    """Return progress, sheet and status of the reader's first open case."""
    try:
        if cohort and read_cohort(visit.context.workspace, cohort).holds_pairs:
            said = notice("Pairs are rated on the page Judges.", title="No labels here")
            return ReadingOutputs(progress="", sheet=said, status="")
        assignment = open_assignment(visit, cohort)
        return _at(visit, assignment, find_way(*_who(visit, assignment)), "")
    except DataError as error:
        title = "This cohort cannot be read here"
        said = notice(str(error), kind="error", title=title)
        return ReadingOutputs(progress="", sheet=said, status="")


def act(visit: Visit, _prompt: str | None, cohort: str | None) -> ReadingOutputs:
    """Do what the reader did on the sheet; return progress, sheet and status.

    Raises
    ------
    ConflictError
        The cohort or the guideline is not the one that the sheet was opened with;
        nothing was saved.
    DataError
        A case, label or value is unknown; nothing was saved.
    """
    assignment = open_assignment(visit, cohort)
    if visit.data.get("cohort", assignment.key) != assignment.key:
        raise ConflictError(
            f"the texts of cohort {assignment.cohort.name!r} were imported anew since "
            "this page was opened; nothing was saved. Load the page again."
        )
    if visit.data.get("guideline", assignment.guideline) != assignment.guideline:
        raise ConflictError(
            "the guideline (labels/taxonomy.yaml) was changed since this page was "
            "opened; nothing was saved. Load the page again to read by the new one; "
            "what you gave before is kept."
        )
    doing = _ACTS.get(str(visit.data.get("act")))
    if doing is None:
        raise DataError("the page asked for something unknown. Load it again.")
    case_id = str(visit.data.get("case", ""))
    _require_given(visit, assignment, case_id)
    return doing(visit, assignment, case_id)


def _require_given(visit: Visit, assignment: Assignment, case_id: str) -> None:
    """Refuse a case that this reader was not given; one of no cohort is said later."""
    known = case_id in positions(assignment.cohort)
    if known and case_id not in cases_to_read(*_who(visit, assignment)):
        raise DataError(
            f"case {quoted(case_id)} is not among the cases that you were given; "
            "nothing was saved. Load the page again to go on with those that are."
        )


def _answer(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    said = visit.data.get("answers")
    if not isinstance(said, dict):
        raise DataError("the page sent no answer. Load it again.")
    values = {str(label): _value(word) for label, word in said.items()}
    store, _, reader = _who(visit, assignment)
    answer(store, assignment, reader, case_id, values, visit.context.now)
    way = find_way(store, assignment, reader, case_id)
    return ReadingOutputs(
        progress=_progress(visit, assignment, way), status=_kept(visit, assignment, way)
    )


def _comment(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    said = visit.data.get("comment")
    if not isinstance(said, str):
        raise DataError("the page sent no comment. Load it again.")
    store, _, reader = _who(visit, assignment)
    keep_comment(store, assignment, reader, case_id, said, visit.context.now)
    return ReadingOutputs(status=_say("comment kept", at=visit.context.now()))


def _rest(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    store, _, reader = _who(visit, assignment)
    complete_case(store, assignment, reader, case_id, now=visit.context.now)
    way = find_way(store, assignment, reader, case_id)
    return _at(visit, assignment, way, _kept(visit, assignment, way))


def _next(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    given = _given(visit, assignment, case_id)
    if case_id and (left := _open(assignment, given)):
        return ReadingOutputs(status=_say(_still_open(left), hot=True))
    against = name_contradiction(assignment, given)
    said = _say(f"{case_id} was left as it is: {against}", hot=True) if against else ""
    return _at(visit, assignment, find_way(*_who(visit, assignment)), said)


def _previous(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    who = _who(visit, assignment)
    before = find_way(*who, case_id or None).before
    if before is None:
        said = "none of your complete cases comes before this one"
        return ReadingOutputs(status=_say(said))
    return _at(visit, assignment, find_way(*who, before), "")


def _defer(visit: Visit, assignment: Assignment, case_id: str) -> ReadingOutputs:
    store, _, reader = _who(visit, assignment)
    defer_case(store, assignment, reader, case_id, visit.context.now)
    way = find_way(store, assignment, reader)
    alone = way.here == case_id
    skipped = f"{case_id} is skipped: it comes back after all others"
    said = "this is the only case left" if alone else skipped
    return _at(visit, assignment, way, _say(said))


_ACTS: dict[str, Callable[[Visit, Assignment, str], ReadingOutputs]] = {
    "answer": _answer,
    "comment": _comment,
    "rest": _rest,
    "next": _next,
    "previous": _previous,
    "defer": _defer,
}


def _who(visit: Visit, assignment: Assignment) -> tuple[Any, Assignment, str]:
    return visit.context.store, assignment, visit.user.name


def _at(
    visit: Visit, assignment: Assignment, way: ReaderPosition, status: str
) -> ReadingOutputs:
    """Return the outputs for where the reader is."""
    return ReadingOutputs(
        progress=_progress(visit, assignment, way),
        sheet=_sheet(visit, assignment, way),
        status=status,
    )


def _progress(visit: Visit, assignment: Assignment, way: ReaderPosition) -> str:
    return show(
        "readers_progress.html.jinja",
        way=way,
        published=_is_published(visit, assignment, way),
        seeing=visit.user.may(Right.SEE),
    )


def _is_published(visit: Visit, assignment: Assignment, way: ReaderPosition) -> bool:
    """Return whether the reader's answers are votes already. Nothing else is told."""
    if not way.complete:
        return False
    context = visit.context
    basis = read_basis(context.workspace, assignment)
    key = ("published", basis, visit.user.name)

    def find() -> bool:
        turnout = open_turnout(context, assignment, basis)
        return bool(voted_cases(context.workspace, turnout, visit.user.name))

    return bool(context.cache.get(key, find))


def _sheet(visit: Visit, assignment: Assignment, way: ReaderPosition) -> str:
    if way.here is None:
        return show("readers_done.html.jinja", way=way, assignment=assignment)
    store, _, reader = _who(visit, assignment)
    guideline = build_guideline(
        assignment.taxonomy, no_finding_read=assignment.no_finding_read
    )
    sheet = open_sheet(visit.context.workspace, store, assignment, reader, way.here)
    return show(
        "readers_sheet.html.jinja",
        sheet=sheet,
        way=way,
        assignment=assignment,
        longest=LONGEST,
        groups=_groups(assignment, sheet, guideline),
        values=list(Value),
        guideline=guideline,
        meanings=VALUES,
        given_by=plan_guideline(store, assignment, reader),
    )


def _groups(
    assignment: Assignment, sheet: ReadingSheet, guideline: Guideline
) -> list[LabelGroup]:
    """Return the labels that are asked, by group, in the order of the taxonomy.

    "No Finding" comes last: it sums up the others.
    """
    meanings = dict(zip(assignment.taxonomy.ids, guideline.entries, strict=True))
    rows: dict[str, list[SheetRow]] = {}
    asked = sorted(assignment.labels, key=lambda one: one == NO_FINDING)
    for label in map(assignment.taxonomy.find, asked):
        row = SheetRow(label, sheet.answers.get(label.id), meanings[label.id])
        rows.setdefault(label.group, []).append(row)
    return [LabelGroup(name, tuple(found)) for name, found in rows.items()]


def _given(
    visit: Visit, assignment: Assignment, case_id: str | None
) -> dict[str, Value]:
    """Return what the reader gave on one case."""
    if not case_id:
        return {}
    return read_answers(*_who(visit, assignment), case_id).get(case_id, {})


def _open(assignment: Assignment, given: Mapping[str, Value]) -> list[str]:
    """Return the labels of a case that have no value yet."""
    return [label for label in assignment.labels if label not in given]


def _still_open(left: Sequence[str]) -> str:
    if left == [NO_FINDING]:
        return "No Finding is still open: it is not among the rest, say it yourself"
    if len(left) == 1:
        return "1 label is still open"
    return f"{len(left)} labels are still open"


def _kept(visit: Visit, assignment: Assignment, way: ReaderPosition) -> str:
    """Return the line that says that an answer is in the store."""
    given = _given(visit, assignment, way.here)
    left, against = _open(assignment, given), name_contradiction(assignment, given)
    now = visit.context.now()
    if against:
        return _say(f"kept, but {against}", hot=True, at=now)
    done = "complete"
    if left:
        done = f"{len(left)} of {len(assignment.labels)} labels open"
    if left == [NO_FINDING]:
        done = "No Finding is open"
    return _say(f"kept, {done}", complete=not left, at=now)


def _say(
    text: str,
    *,
    hot: bool = False,
    complete: bool = False,
    at: datetime | None = None,
) -> str:
    return show(
        "readers_status.html.jinja",
        text=text,
        hot=hot,
        complete=complete,
        at=at.isoformat(timespec="seconds") if at else "",
    )


def _value(word: object) -> Value | None:
    """Return the value that a reader gave; None takes it back."""
    if word == "":
        return None
    try:
        return Value(str(word))
    except ValueError as error:
        known = ", ".join(Value)
        raise DataError(f"a label is {known} or open. Load the page again.") from error

"""The page Files: its components, and which event does what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from loop.core.people.users import Right
from loop.labels.cohort import CohortRole
from loop.ui.header import PageHeader
from loop.ui.html import panel, show
from loop.ui.pages.base import Page
from loop.ui.pages.files import events
from loop.ui.pages.files.state import ImportKind
from loop.ui.pages.files.view import FilesOutputs, UploadOutputs
from loop.ui.wiring import EventRegistry, Handler

_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".xlsx")

_COHORT_HINT = (
    "One case a row, as CSV, JSON, Parquet or Excel: case id, text (or findings "
    "and impression), if known the patient, and a column for each label that is known. "
    "Or one pair a row: reference, candidate, and if known the system."
)
_VOTES_HINT = (
    "CSV or Excel with the columns reader, case_id, label and value (present, absent "
    "or uncertain); or with reader, case_id and a column for each label. What over "
    "half of those who voted on a case say becomes the next reference version."
)
_VERDICTS_HINT = (
    "A verdict file, YAML or CSV, as written by hand or exported above. Its verdicts "
    "wait under Revise as if they had been given here."
)
_KEPT_HINT = (
    "At most 200 MB. A file that you neither import nor discard is deleted when your "
    "session ends."
)
_UPLOAD = """// 'uploaded'
window.ranloopUploads.connect(element, trigger);
"""
"""Sends a chosen file. Gradio looks for the names of events."""


class UploadStep(NamedTuple):
    """What follows a form: its button, what is said, and the word to import."""

    check: gr.Button
    said: gr.HTML
    confirm: gr.Row
    take: gr.Button
    drop: gr.Button
    timer: gr.Timer

    @property
    def shown(self) -> list[Any]:
        """The components that `UploadOutputs` names."""
        return [getattr(self, name) for name in UploadOutputs._fields]


class Upload(NamedTuple):
    """Where a file is chosen, and which one it was."""

    chosen: gr.State
    """Id under which the server keeps it; empty without one."""

    control: gr.HTML


class UploadForm(NamedTuple):
    """One form: its file, its other inputs, and what follows it."""

    file: Upload
    inputs: Sequence[Any]
    step: UploadStep


def build(registry: EventRegistry, header: PageHeader) -> Page:
    """Add the page and connect it."""
    with gr.Tab("Files", id="files", elem_id="tab-files") as tab:
        out = panel(elem_id="files-out")
        with gr.Column(visible=False, elem_id="bring-in") as section:
            panel("<h2>Import</h2>", elem_id="bring-in-title")
            with gr.Tabs(elem_id="kinds"):
                cohort, votes, verdicts = _cohort(), _votes(), _verdicts()
    checks = (
        (ImportKind.COHORT, cohort, events.check_cohort),
        (ImportKind.VOTES, votes, events.check_votes),
        (ImportKind.VERDICTS, verdicts, events.check_verdicts),
    )
    for kind, form, check in checks:
        _connect(registry, header, form, kind, check)
    page = FilesOutputs(
        exports=out,
        importing=section,
        votes_cohort=votes.inputs[0],
        verdicts_cohort=verdicts.inputs[0],
    )
    steps = [one for _, form, _ in checks for one in form.step.shown]
    return Page(
        name="files",
        right=Right.EXPORT,
        tab=tab,
        refresh=events.refresh,
        outputs=[*page, *steps],
    )


def _cohort() -> UploadForm:
    with gr.Tab("Cohort", id="cohort", elem_id="kind-cohort"):
        _hint(_COHORT_HINT, "cohort-hint")
        with gr.Row(elem_classes="bring"):
            file = _file(_TABLES, "cohort")
            with gr.Column(scale=3):
                with gr.Row():
                    name = _text("Name", "cohort-name", "site_b_2024")
                    language = _text(
                        "Language", "cohort-language", "auto; or en, zh, de"
                    )
                role = gr.Radio(
                    [(role.value, role.value) for role in CohortRole],
                    value=CohortRole.DEV.value,
                    label="Role",
                    info="dev: prompts are revised on it; external: measured only; "
                    "holdout: opened for a frozen version; taxonomy: never scored",
                    elem_id="cohort-role",
                )
                with gr.Row():
                    source = _text("Where the texts come from", "cohort-source")
                    licence = _text("What may be done with them", "cohort-licence")
                reason = _text("Reason, for the ledger", "cohort-reason")
                replace = gr.Checkbox(
                    label="Replace a cohort of this name; the old one is kept aside",
                    elem_id="cohort-replace",
                )
        more = _cohort_details()
        said = (name, role, language, source, licence, reason, replace, *more)
        return UploadForm(file, said, _step(ImportKind.COHORT))


def _cohort_details() -> tuple[Any, ...]:
    """Return what is rarely said of a file, in the order of `CohortForm`."""
    with gr.Accordion("More about this file", open=False, elem_id="cohort-details"):
        with gr.Row():
            columns = (
                _text("Column of the case ids", "cohort-id-column", "found by name"),
                _text("Column of the text", "cohort-text-column", "found by name"),
                _text(
                    "Column of the patients", "cohort-patient-column", "found by name"
                ),
            )
        with gr.Row():
            pairs = (
                _text(
                    "Of pairs: column of the references",
                    "cohort-reference-column",
                    "found by name",
                ),
                _text(
                    "Of pairs: column of the candidates",
                    "cohort-candidate-column",
                    "found by name",
                ),
                _text(
                    "Of pairs: column of the systems",
                    "cohort-system-column",
                    "found by name",
                ),
            )
        with gr.Row():
            number = gr.Checkbox(
                label="Number the rows: there are no case ids",
                elem_id="cohort-number-rows",
            )
            drop = gr.Checkbox(
                label="Leave out exact duplicates", elem_id="cohort-drop-duplicates"
            )
        with gr.Row():
            encoding = _text("Encoding", "cohort-encoding", "auto: UTF-8, else GBK")
            prefix = _text("Put before every case id", "cohort-prefix")
            part = _text("Only one part, cut by patient", "cohort-part", "1/2")
        with gr.Row():
            values = _lines(
                "What words of label cells mean, one a line",
                "cohort-values",
                "yes=present",
            )
            exclude = _lines("Case ids to leave out, one a line", "cohort-exclude")
    listed = (number, drop, values, encoding, prefix, exclude)
    return (*columns, *pairs, *listed, part)


def _votes() -> UploadForm:
    with gr.Tab("Votes", id="votes", elem_id="kind-votes"):
        _hint(_VOTES_HINT, "votes-hint")
        with gr.Row(elem_classes="bring"):
            file = _file(_TABLES, "votes")
            with gr.Column(scale=3):
                cohort = gr.Dropdown(
                    [], label="Cohort that was read", elem_id="votes-cohort"
                )
                need = _text("Fewest equal votes", "votes-need", "as recorded")
                replace = gr.Checkbox(
                    label="Replace all earlier votes of the readers in the file",
                    elem_id="votes-replace",
                )
        with gr.Accordion("More about this file", open=False, elem_id="votes-details"):
            values = _lines(
                "What words of cells mean, one a line", "votes-values", "yes=present"
            )
        said = (cohort, need, replace, values)
        return UploadForm(file, said, _step(ImportKind.VOTES))


def _verdicts() -> UploadForm:
    with gr.Tab("Verdicts", id="verdicts", elem_id="kind-verdicts"):
        _hint(_VERDICTS_HINT, "verdicts-hint")
        with gr.Row(elem_classes="bring"):
            file = _file((".yaml", ".yml", ".csv"), "verdicts")
            with gr.Column(scale=3):
                cohort = gr.Dropdown(
                    [("as the file says", "")],
                    value="",
                    label="Cohort of the cases",
                    elem_id="verdicts-cohort",
                )
                run = _text(
                    "Run that was judged; empty: as the file says", "verdicts-run"
                )
        return UploadForm(file, (cohort, run), _step(ImportKind.VERDICTS))


def _hint(text: str, name: str) -> None:
    said = show("files_hint.html.jinja", text=f"{text} {_KEPT_HINT}")
    panel(said, elem_id=name)


def _file(kinds: Sequence[str], name: str) -> Upload:
    chosen = gr.State("")
    control = gr.HTML(
        show("files_upload.html.jinja", kinds=kinds, name=name),
        js_on_load=_UPLOAD,
        elem_id=f"{name}-file",
        apply_default_css=False,
        scale=2,
    )
    return Upload(chosen, control)


def _text(label: str, name: str, example: str = "") -> gr.Textbox:
    return gr.Textbox(label=label, placeholder=example, elem_id=name, max_lines=1)


def _lines(label: str, name: str, example: str = "") -> gr.Textbox:
    return gr.Textbox(
        label=label, placeholder=example, lines=3, max_lines=8, elem_id=name
    )


def _step(kind: ImportKind) -> UploadStep:
    check = gr.Button("Check the file", elem_id=f"{kind}-check")
    said = panel(elem_id=f"{kind}-said")
    with gr.Row(visible=False, elem_classes="confirm") as confirm:
        take = gr.Button("Import it", variant="primary", elem_id=f"{kind}-import")
        drop = gr.Button("Discard it", elem_id=f"{kind}-discard")
    return UploadStep(check, said, confirm, take, drop, gr.Timer(1, active=False))


def _connect(
    registry: EventRegistry,
    header: PageHeader,
    form: UploadForm,
    kind: ImportKind,
    check: Handler,
) -> None:
    step, file = form.step, form.file
    registry.on(
        file.control.uploaded,
        events.note_upload,
        right=Right.IMPORT,
        name=f"upload_{kind}",
        outputs=[file.chosen],
    )
    checked = registry.on(
        step.check.click,
        check,
        right=Right.IMPORT,
        name=f"check_{kind}",
        inputs=(file.chosen, *form.inputs),
        outputs=(file.chosen, *step.shown),
    )
    empty = f"() => window.ranloopUploads.clear({file.control.elem_id!r})"
    checked.success(None, js=empty, queue=False)
    registry.on(
        step.timer.tick,
        partial(events.poll, kind=kind),
        right=Right.IMPORT,
        name=f"poll_{kind}",
        outputs=(*step.shown, header.cohort),
    )
    for button, does, name in (
        (step.take, events.import_it, "import"),
        (step.drop, events.discard_it, "discard"),
    ):
        registry.on(
            button.click,
            partial(does, kind=kind),
            right=Right.IMPORT,
            name=f"{name}_{kind}",
            outputs=step.shown,
        )

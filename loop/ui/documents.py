"""The files that the workbench exports, each made when it is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.ledger import read_ledger
from loop.documents.templates import template_folder
from loop.evaluate.compare import compare_runs
from loop.evaluate.documents import render_csv, render_html, render_markdown
from loop.evaluate.evaluation import find_parent_run
from loop.evaluate.failures import failing_cases, failures_table
from loop.evaluate.history import history_table, read_scores
from loop.evaluate.tried import correct_optimism
from loop.labels.ballots import read_cohort_votes
from loop.labels.cohort import read_cohort, read_record
from loop.labels.reader_agreement import agreement_table, measure_agreement
from loop.labels.taxonomy import read_taxonomy
from loop.review.status import KeptVerdict, read_kept
from loop.review.verdict_files import verdicts_file, verdicts_table
from loop.run.label_table import write_labels
from loop.run.store import RunRecord
from loop.ui.desk import Desk

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
"""Without it Excel reads UTF-8 as the code page of the machine; our readers skip it."""


class ExportRequest(NamedTuple):
    """On what a document is asked for."""

    desk: Desk
    prompt: str
    cohort: str


class ExportKind(NamedTuple):
    """One kind of file."""

    make: Callable[[ExportRequest], str | bytes]
    media: str

    def write(self, asked: ExportRequest) -> bytes:
        """Return the file's bytes: UTF-8, tables with the mark that Excel needs."""
        text = self.make(asked)
        if isinstance(text, bytes):
            return text
        return (_BOM + text if self.media == "text/csv" else text).encode("utf-8")


def _run(asked: ExportRequest) -> RunRecord:
    return asked.desk.latest_run(asked.prompt, asked.cohort)


def _gates(asked: ExportRequest) -> str:
    return render_csv(asked.desk.evaluation(_run(asked)))


def _evaluation(asked: ExportRequest, render: Callable[..., str]) -> str:
    """Return the newest run's document, with parent and correction as in the CLI."""
    desk, run = asked.desk, _run(asked)

    def make() -> str:
        result = desk.evaluation(run)
        before = find_parent_run(desk.workspace, run.id)
        change = compare_runs(desk.workspace, before, run.id) if before else None
        number = result.cohort.reference
        chosen = correct_optimism(desk.workspace, desk.store, run.id, reference=number)
        folder = template_folder(desk.workspace)
        return render(result, change, selection=chosen, templates=folder)

    head = len(read_ledger(desk.workspace.ledger))
    return desk.memo.get((render.__name__, head, *desk.standing(run)), make)


def _html(asked: ExportRequest) -> str:
    return _evaluation(asked, render_html)


def _markdown(asked: ExportRequest) -> str:
    return _evaluation(asked, render_markdown)


def _failures(asked: ExportRequest) -> str:
    run = _run(asked).id
    return failures_table(failing_cases(asked.desk.workspace, run))


def _labels(asked: ExportRequest, suffix: str) -> bytes:
    run = _run(asked).id
    with tempfile.TemporaryDirectory(prefix="ranloop-") as folder:
        out = Path(folder) / f"labels{suffix}"
        write_labels(asked.desk.workspace, out, run)
        return out.read_bytes()


def _label_table(asked: ExportRequest) -> str:
    return _labels(asked, ".csv").decode("utf-8")


def _agreement(asked: ExportRequest) -> str:
    workspace, name = asked.desk.workspace, asked.cohort
    recorded = read_record(workspace, name).votes

    def make() -> str:
        taxonomy = read_taxonomy(workspace.labels)
        votes = read_cohort_votes(workspace, read_cohort(workspace, name), taxonomy)
        return agreement_table(measure_agreement(votes, taxonomy, cohort=name))

    return asked.desk.memo.get(("agreement.csv", name, recorded), make)


def _kept(asked: ExportRequest) -> tuple[KeptVerdict, ...]:
    kept = read_kept(asked.desk.store, asked.desk.workspace, asked.cohort)
    if not kept:
        raise DataError(
            f"there is no verdict on {asked.cohort} yet. Give some under Review first."
        )
    return kept


def _verdicts(asked: ExportRequest, *, notes: bool = False) -> str:
    return verdicts_file(_kept(asked), notes=notes)


def _verdict_table(asked: ExportRequest, *, notes: bool = False) -> str:
    return verdicts_table(_kept(asked), notes=notes)


def _history(asked: ExportRequest) -> str:
    return history_table(read_scores(asked.desk.workspace, asked.prompt))


def _ledger(asked: ExportRequest) -> str:
    return read_text(asked.desk.workspace.ledger)


DOCUMENTS: Mapping[str, ExportKind] = MappingProxyType(
    {
        "gates.csv": ExportKind(_gates, "text/csv"),
        "evaluation.html": ExportKind(_html, "text/html"),
        "evaluation.md": ExportKind(_markdown, "text/markdown"),
        "failures.csv": ExportKind(_failures, "text/csv"),
        "labels.csv": ExportKind(_label_table, "text/csv"),
        "labels.xlsx": ExportKind(
            partial(_labels, suffix=".xlsx"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        "labels.parquet": ExportKind(
            partial(_labels, suffix=".parquet"), "application/vnd.apache.parquet"
        ),
        "agreement.csv": ExportKind(_agreement, "text/csv"),
        "verdicts.yaml": ExportKind(_verdicts, "application/yaml"),
        "verdicts-with-notes.yaml": ExportKind(
            partial(_verdicts, notes=True), "application/yaml"
        ),
        "verdicts.csv": ExportKind(_verdict_table, "text/csv"),
        "verdicts-with-notes.csv": ExportKind(
            partial(_verdict_table, notes=True), "text/csv"
        ),
        "history.csv": ExportKind(_history, "text/csv"),
        "ledger.jsonl": ExportKind(_ledger, "application/x-ndjson"),
    }
)
"""Name to how it is made."""

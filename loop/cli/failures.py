"""The verb ``failures``: the failing cases of a run, for review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import isfinite
from pathlib import Path
from textwrap import indent, shorten
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    note_part,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.errors import DataError
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Value
from loop.core.safe_text import format_csv
from loop.evaluate.failures import (
    Failure,
    FailureKind,
    Failures,
    Listing,
    OpenCase,
    OpenCases,
    count_kinds,
    failing_cases,
    failures_table,
    open_cases,
    read_evidence,
    read_texts,
)
from loop.labels.cohort import read_cohort
from loop.labels.error_categories import read_errors
from loop.review.queue.build import build_queue
from loop.review.queue.progress import mark_progress
from loop.review.queue.records import (
    Persistence,
    QueueFilter,
    QueueItem,
    ReviewStatus,
    TextSection,
)
from loop.review.reading.answer_files import read_case_list
from loop.review.status import read_kept
from loop.review.working import list_reservations
from loop.run.manifest import find_run
from loop.run.store import open_store
from loop.run.task_fields import is_judge_run

_UNCERTAIN = "uncertain"
"""In place of a reference version: the cases that it calls uncertain."""

_SPANS, _PROBLEM = 2, 40
"""Spans and characters of a problem in a cell; ``--json`` and CSV have them all."""


class OutputFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Show(StrEnum):
    """How much private text is printed beside each row."""

    NONE = "none"
    EVIDENCE = "evidence"
    CASE = "case"


class Order(StrEnum):
    """What comes first."""

    CASE = "case"
    VALUE = "value"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("failures")(failures)


def failures(
    run: Annotated[
        str,
        typer.Argument(help="Run id, its beginning, latest, or latest:PROMPT."),
    ] = "latest",
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", help="Only this label; may be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            "-k",
            help="false_positive, false_negative, uncertain, unparsed, engine_failed.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of rows.")
    ] = None,
    layout: Annotated[
        OutputFormat, typer.Option("--format", help="How rows are printed.")
    ] = OutputFormat.TABLE,
    text: Annotated[
        Show,
        typer.Option(
            "--text", help="Show private text: the evidence phrase, or the whole case."
        ),
    ] = Show.NONE,
    reference: Annotated[
        str,
        typer.Option(
            "--reference",
            help="Reference version; default: newest. Or uncertain: list the cases "
            "whose reference is uncertain, and how they are answered.",
        ),
    ] = "",
    order: Annotated[
        Order,
        typer.Option(
            "--order", help="Order: by label and case, or by worth of review."
        ),
    ] = Order.CASE,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            help="Evidence in findings, impression or other; may be repeated.",
        ),
    ] = None,
    search: Annotated[
        str,
        typer.Option("--search", help="Words of the case text, or part of a case id."),
    ] = "",
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            help="unreviewed, reviewed, addressed, returned, reserved, 'every draw' or "
            "flips; may be repeated.",
        ),
    ] = None,
    reviewer: Annotated[
        list[str] | None,
        typer.Option("--reviewer", help="Judged by this reviewer; may be repeated."),
    ] = None,
    cases_file: Annotated[
        Path | None,
        typer.Option(
            "--cases-file",
            help="Only these case ids, one a line, as `sample --list` writes them.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the failing cases of a run.

    Refused for holdout cohorts. With --order value, the cases most useful to a
    reviewer come first, each with the reason. Of a judge's run: where it counts other
    errors than the readers' median, the furthest first, by --label (a category),
    --limit and --format alone.
    """
    place = open_workspace(workspace)
    progress = ProgressBar(f"failures {run}", quiet=as_json)
    with progress.shown():
        judged = is_judge_run(find_run(place, run))
    if judged:
        others = (kind, section, search, status, reviewer, reference, cases_file)
        if any(others) or text is not Show.NONE or order is Order.VALUE:
            raise DataError(
                "the run is one of a judge: its failing pairs are narrowed with "
                "--label, --limit and --format alone. `ranloop show RUN CASE` shows "
                "one with its texts."
            )
        chosen = OutputFormat.JSON if as_json else layout
        _list_counts(place, run, label or (), limit, chosen)
        return
    narrowed = (
        order is Order.VALUE or section or search or status or reviewer or cases_file
    )
    items: Mapping[tuple[str, str], QueueItem] = {}
    found: Listing
    if reference == _UNCERTAIN:
        if narrowed or kind:
            raise DataError(
                "--reference uncertain lists cases that are no failures: they have no "
                "kind and no place in the queue. Leave the other options out, but for "
                "--label, --limit, --format and --text."
            )
        with progress.shown():
            found = open_cases(place, run, labels=label)
    else:
        number, kinds = _version_number(reference), _kinds(kind)
        with progress.shown():
            found = failing_cases(
                place, run, labels=label, kinds=kinds, reference=number
            )
            if narrowed:
                wanted = _filter(section, search, status, reviewer)
                if cases_file is not None:
                    listed = _listed(place, cases_file, found.cohort)
                    wanted = replace(wanted, cases=listed)
                items = _items(place, found.run_id, wanted, number)
                found = _narrowed(found, items, order)
    note_part(place, found.run_id)
    total = len(found.rows)
    if isinstance(found, OpenCases):
        found = found._replace(rows=found.rows[:limit])
    else:
        found = found._replace(rows=found.rows[:limit])
    beside = _beside(found, _texts(place, found, text), items)
    rows = [_row(row) | beside[row.case_id, row.label] for row in found.rows]
    if as_json or layout is OutputFormat.JSON:
        shown = {"run": found.run_id, "cohort": found.cohort, "total": total}
        print_json({**shown, "rows": rows})
    elif layout is OutputFormat.CSV:
        # Line ends of a terminal; in the cells they are spelled out already.
        table = failures_table(found, beside).replace("\r\n", "\n")
        say(table.removesuffix("\n"))
    else:
        _print_rows(found, rows, total)


def _listed(workspace: WorkspacePaths, path: Path, cohort: str) -> frozenset[str]:
    """Return the case ids of a file, all of which are of the cohort."""
    ids = frozenset(read_case_list(path))
    unknown = ids.difference(read_cohort(workspace, cohort).case_ids)
    if unknown:
        raise DataError(
            f"{path}: {len(unknown)} of {len(ids)} lines are no case of cohort "
            f"{cohort}, which the run asked. Give the ids of its cases, one a line."
        )
    return ids


def _list_counts(
    workspace: WorkspacePaths,
    run: str,
    names: Sequence[str],
    limit: int | None,
    layout: OutputFormat,
) -> None:
    """Print where a judge's run counts other errors than the readers."""
    # Heavy, and of no use to a run of an extractor.
    from loop.judge.count_failures import find_count_failures

    known = read_errors(workspace.labels) if names else None
    wanted = [known.find(name).id for name in names] if known else []
    with open_store(workspace) as store:
        found = find_count_failures(workspace, store, run, categories=wanted)
    note_part(workspace, found.run.id)
    rows = found.rows[:limit]
    if layout is OutputFormat.JSON:
        data = [one._asdict() | {"apart": _finite(one.apart)} for one in rows]
        about = {"run": found.run.id, "cohort": found.run.spec.cohort}
        total = len(found.rows)
        print_json({**about, "ratings": found.ratings, "total": total, "rows": data})
        return
    cells = [
        (one.case_id, one.category, *map(_pair_words, (one.judge, one.readers)))
        for one in rows
    ]
    if layout is OutputFormat.CSV:
        header = ("case_id", "category", "judge", "readers")
        say(format_csv(header, cells).replace("\r\n", "\n").removesuffix("\n"))
        return
    print_table(
        ["case", "category", "judge", "readers"],
        [
            (case, category or f"(all) {one.problem}", *rest)
            for one, (case, category, *rest) in zip(rows, cells, strict=True)
        ],
        title=f"errors that run {found.run.id} counts differently from {found.ratings}",
    )
    pairs = len({one.case_id for one in rows})
    say()
    say(
        f"{len(rows)} of {counted(len(found.rows), 'row')}, in {pairs} of "
        f"{counted(len(found.cases), 'pair')}; significant + insignificant errors, the "
        "readers' median"
    )


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


def _pair_words(counts: tuple[float, float] | None) -> str:
    """Return significant and insignificant errors as a cell holds them."""
    return "" if counts is None else f"{counts[0]:g} + {counts[1]:g}"


def _version_number(text: str) -> int | None:
    """Return the number of a reference version; None for the newest."""
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise DataError(
            f"--reference {text!r} is neither the number of a reference version nor "
            f"{_UNCERTAIN}. Name one of these."
        )
    return int(text)


def _filter(
    sections: Sequence[str] | None,
    search: str,
    statuses: Sequence[str] | None,
    reviewers: Sequence[str] | None,
) -> QueueFilter:
    special = ("reserved", *Persistence)
    plain = [name for name in statuses or () if name not in special]
    asked = [one for one in Persistence if one in (statuses or ())]
    if len(asked) > 1:
        raise DataError(
            f"--status {asked[0]} and --status {asked[1]} leave nothing. Name one."
        )
    try:
        return QueueFilter(
            sections=frozenset(map(TextSection, sections or ())),
            text=search,
            reviewers=frozenset(reviewers or ()),
            progress=frozenset(map(ReviewStatus, plain)),
            reserved=True if "reserved" in (statuses or ()) else None,
            draws=next(iter(asked), None),
        )
    except ValueError as error:
        raise DataError(
            f"{error}. Sections are {', '.join(TextSection)}; a status is one of "
            f"{', '.join(ReviewStatus)}, {', '.join(special)}."
        ) from error


def _items(
    workspace: WorkspacePaths, run: str, wanted: QueueFilter, reference: int | None
) -> dict[tuple[str, str], QueueItem]:
    """Return what the filter lets through, by case and label, worth most first."""
    with open_store(workspace) as store:
        queue = build_queue(workspace, store, run, reference=reference)
        kept = read_kept(store, workspace, queue.line.cohort)
        reserved = list_reservations(store, queue.line.cohort)
    marked = mark_progress(queue, kept, reserved)
    return {(item.case_id, item.label): item for item in marked.filtered(wanted)}


def _narrowed(
    found: Failures, items: Mapping[tuple[str, str], QueueItem], order: Order
) -> Failures:
    """Return the rows that are among `items`, in the order asked for."""
    rows = [row for row in found.rows if (row.case_id, row.label) in items]
    if order is Order.VALUE:
        rows.sort(key=lambda row: items[row.case_id, row.label].place)
    return found._replace(rows=tuple(rows))


def _kinds(names: Sequence[str] | None) -> list[Any] | None:
    try:
        return (
            [FailureKind(name.replace("-", "_")) for name in names] if names else None
        )
    except ValueError as error:
        known = ", ".join(FailureKind)
        raise DataError(f"{error}. Use one of {known}.") from error


def _texts(
    workspace: WorkspacePaths, found: Listing, show: Show
) -> Mapping[tuple[str, str], str] | None:
    """Return the private text of each row, or None when none is wanted."""
    if show is Show.NONE:
        return None
    if show is Show.EVIDENCE:
        return read_evidence(workspace, found)
    texts = read_texts(workspace, found)
    return {(row.case_id, row.label): texts[row.case_id] for row in found.rows}


def _beside(
    found: Listing,
    texts: Mapping[tuple[str, str], str] | None,
    items: Mapping[tuple[str, str], QueueItem],
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what stands beside each row: its place in the queue, its private text."""
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found.rows:
        key = row.case_id, row.label
        queued = _queue_cells(items[key]) if key in items else {}
        cells[key] = queued | ({} if texts is None else {"text": texts[key]})
    return cells


def _row(row: Failure | OpenCase) -> dict[str, Any]:
    return {
        "case_id": row.case_id,
        "label": row.label,
        "kind": row.kind.value,
        "predicted": row.predicted.value if row.predicted else "",
        "reference": row.reference.value if row.reference else "",
        "spans": [span.data for span in row.spans],
        "problem": row.problem,
    }


def _queue_cells(item: QueueItem) -> dict[str, Any]:
    audit = ("random audit",) if item.audit else ()
    return {
        "place": item.place,
        "worth": round(item.value, 3),
        "why": "; ".join((*item.reasons.words, *audit)),
        "sections": ", ".join(item.sections),
        "progress": item.progress.value,
        "reviewers": ", ".join(item.reviewers),
        "reserved_by": item.reserved_by,
    }


def _print_rows(found: Listing, rows: Sequence[Mapping[str, Any]], total: int) -> None:
    what = "failing cases"
    if isinstance(found, OpenCases):
        what = "cases with an uncertain reference"
    title = f"{what} of run {found.run_id} on {found.cohort}"
    if rows and "why" in rows[0]:
        say(title)
        for row in rows:
            _print_item(row)
    else:
        _print_table(rows, title)
    say()
    if isinstance(found, OpenCases):
        answers = Counter(
            row.predicted.value if row.predicted else "unanswered" for row in found.rows
        )
        counts = {name: answers[name] for name in (*Value, "unanswered")}
    else:
        counts = {kind.value: n for kind, n in count_kinds(found.rows).items()}
    parts = ", ".join(f"{number} {name}" for name, number in counts.items())
    say(f"{len(rows)} of {counted(total, 'row')}: {parts}")


def _print_item(row: Mapping[str, Any]) -> None:
    """Print a row of the queue on lines of its own: its reasons need the width."""
    say()
    say(f"{row['place']:>4}  {_named(row)}")
    say(f"      {_answers(row)}")
    if row["why"]:
        say(f"      {row['why']}")
    say(f"      {_standing(row)}")
    if row.get("text"):
        say(indent(row["text"], " " * 6))


def _print_table(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    print_table(
        ["case", "label", "kind", "predicted", "reference", "evidence at"],
        [
            (
                row["case_id"],
                row["label"] or "(all)",
                row["kind"],
                row["predicted"],
                row["reference"],
                _places(row),
            )
            for row in rows
        ],
        title=title,
    )
    for row in rows:
        if row.get("text"):
            say()
            say(f"{_named(row)}:")
            say(f"  {row['text']}")


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['case_id']}, {row['label'] or '(all)'}, {row['kind']}"


def _answers(row: Mapping[str, Any]) -> str:
    """Return what the model and the reference say, and where the evidence stands."""
    answer = f"predicted {row['predicted'] or 'nothing'}"
    reference = f", reference {row['reference']}" if row["reference"] else ""
    where = f", evidence at {_places(row)}" if row["spans"] else ""
    noted = f"; {row['problem']}" if row["problem"] else ""
    return answer + reference + where + noted


def _standing(row: Mapping[str, Any]) -> str:
    """Return how far the review of a case is, and who has it just now."""
    by = f" by {row['reviewers']}" if row["reviewers"] else ""
    held = f", reserved by {row['reserved_by']}" if row["reserved_by"] else ""
    return f"{row['progress']}{by}{held}"


def _places(row: Mapping[str, Any]) -> str:
    """Return where the evidence stands, or why there is no answer; as a cell holds."""
    spans = row["spans"]
    more = f" +{len(spans) - _SPANS}" if len(spans) > _SPANS else ""
    problem = shorten(row["problem"], _PROBLEM, placeholder=" ...")
    return _span_words(spans[:_SPANS]) + more or problem


def _span_words(spans: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{start}-{end}" for start, end in spans)

r"""Verdict files, read, taken and written: YAML for people, CSV for spreadsheets.

What stands above ``verdicts`` holds for all of them unless one says otherwise. One
value may stand where a list is meant, and one verdict may ask for several things: for
its label's guide, and as ``general_rules`` for rules of reading that hold for every
label.
``severity`` and ``context`` may be left out; then nothing is said of them::

    reviewer: Dr A. Example
    prompt: extractor@v1
    cohort: dev
    judgement: guideline_ambiguous
    verdicts:
    - cases: [case-017, case-030]
      label: Pleural Effusion
      severity: major
      context: synonym_or_abbreviation
      terms: [pleural fluid, fluid ... pleural space]
      exclusions: pericardial effusion
      clarifications:
      - phrase: blunted costophrenic angle
        value: uncertain
        note: On its own it does not show fluid.
      exemplars:
      - text: Some fluid has gathered in the left hemithorax.
        value: present
        evidence: fluid has gathered
      general_rules: What a drain has emptied is no finding any more.
    - case: case-041
      label: pleural_effusion
      judgement: reference_wrong
      correct_value: absent
      comment: The reader marked the other side of a pair.

A verdict on a judge is about one category of errors (``labels/errors.yaml``) in one
pair; ``errors`` lists all of them there, as the judge weighs each and as it should,
with ``no_error`` for what is missing or too much::

    - case: pair-12
      label: severity
      judgement: guideline_ambiguous
      errors:
      - words: trace effusion for small
        said: significant
        right: insignificant
      clarifications:
      - phrase: trace for small
        value: insignificant

In a CSV file each of these is a column; several cases or terms in one cell are
separated by ``|`` (a bar that belongs to a term is written ``\|``), and an exemplar
takes the columns ``exemplar_text``, ``exemplar_value``, ``exemplar_evidence`` and
``exemplar_why``; ``anchor`` takes yes or no. A second clarification stands in
``phrase_2``, ``value_2`` and ``note_2``, a second exemplar in ``exemplar_text_2`` and
so on; an error in ``error_words``, ``error_said`` and ``error_right``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Clarification, Exemplar
from loop.core.safe_text import format_csv, printable, quoted, shielded, unshielded
from loop.core.yaml_files import check_model, dump_yaml, parse_yaml
from loop.evaluate.failures import open_for_review
from loop.labels.dry_run import trial
from loop.labels.importing.encodings import decode_text, find_encoding
from loop.labels.importing.table_files import csv_rows
from loop.review.revise.blocked import refuse_blocked
from loop.review.status import KeptVerdict
from loop.review.submit import (
    VerdictContext,
    load_verdicts,
    require_distinct_reviewers,
    submit_verdicts,
)
from loop.review.verdict import (
    Edits,
    ErrorVerdict,
    Verdict,
    VerdictForm,
    build_verdict,
    check_verdicts,
    read_asked,
)
from loop.run.manifest import find_run
from loop.run.store import Store, open_store

_DEFAULTS = ("reviewer", "judgement", "severity", "context")
"""Header keys that hold for every verdict that does not say otherwise."""

_LISTED = frozenset(
    {"cases", "case_id", "case", "terms", "term", "exclusions", "exclusion", "implies"}
    | {"general_rules", "general_rule"}
)
"""CSV columns with several entries in one cell, separated by ``|``."""

_YES = frozenset({"true", "yes", "y", "1", "x"})

_NO = frozenset({"false", "no", "n", "0", "-"})
"""What may stand in the CSV column ``anchor``; an empty cell is a no."""

_SHOWN = frozenset(
    {"kind", "predicted", "reference", "spans", "evidence", "text", "problem"}
    | {"place", "worth", "why", "sections", "progress", "reviewers", "reserved_by"}
    | {"id", "created", "state", "on_cohort", "on_run", "on_prompt", "failed_in_draws"}
)
"""Columns of ``ranloop failures`` and ``ranloop verdict export`` that say nothing."""

SEPARATOR = "|"
"""Stands between the entries of a CSV cell."""

_BAR = re.compile(r"(?<!\\)\|")

_RULE = ("phrase", "value", "note")

_ROW = "(?:exemplar|error)_[a-z]+"
_NUMBERED = re.compile(rf"({'|'.join(_RULE)}|{_ROW})_([2-9]|[1-9][0-9])")
"""Columns of a second clarification, exemplar or error, and of more."""

_ROWS = {
    "exemplar_text": ("exemplars", "text"),
    "exemplar_value": ("exemplars", "value"),
    "exemplar_evidence": ("exemplars", "evidence"),
    "exemplar_why": ("exemplars", "why"),
    "error_words": ("errors", "words"),
    "error_said": ("errors", "said"),
    "error_right": ("errors", "right"),
}
"""Columns of what a verdict lists row by row, with the list and the key there."""


class VerdictFile(NamedTuple):
    """What a verdict file holds."""

    verdicts: tuple[Verdict, ...]
    prompt: str
    """Version the verdicts were made on, as the file says, or empty."""

    run: str
    """Run the verdicts were made on, as the file says, or empty."""

    cohort: str
    """Cohort of the cases, as the file says, or empty."""


def read_verdicts(path: Path, *, reviewer: str = "") -> VerdictFile:
    """Return the verdicts of a ``.yaml`` or ``.csv`` file, in file order.

    Parameters
    ----------
    reviewer
        Who judges where the file names nobody.

    Raises
    ------
    DataError
        The file cannot be read or a verdict is malformed; names it by number (YAML)
        or line (CSV).
    """
    rows: list[tuple[str, object]]
    if path.suffix.lower() == ".csv":
        rows = [(f"{path}, line {line}", row) for line, row in _read_rows(path)]
        header = _FileModel(verdicts=[])
    else:
        header = _header(parse_yaml(_decoded(path), path), path)
        rows = [
            (f"{path}, verdict {number}", _with_defaults(row, header))
            for number, row in enumerate(header.verdicts, 1)
        ]
    if not rows:
        raise DataError(f"{path} holds no verdicts. Add at least one under `verdicts`.")
    verdicts = (
        build_verdict(check_model(row, VerdictForm, where), reviewer, where)
        for where, row in rows
    )
    return VerdictFile(tuple(verdicts), header.prompt, header.run, header.cohort)


class _FileModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt: str = ""
    run: str = ""
    cohort: str = ""
    note: str = ""
    reviewer: str = ""
    judgement: str = ""
    severity: str = ""
    context: str = ""
    verdicts: list[Any]


def _decoded(path: Path) -> str:
    """Return the text of a verdict file, UTF-8 or GBK as cohorts may be."""
    try:
        return decode_text(path.read_bytes(), path)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def _header(data: object, path: Path) -> _FileModel:
    if not isinstance(data, dict):
        raise DataError(
            f"{path} is not a verdict file. Begin it with `verdicts:` and write each "
            "verdict as `- case: ...` below it."
        )
    return check_model(data, _FileModel, path)


def _with_defaults(row: object, header: _FileModel) -> object:
    if not isinstance(row, dict):
        return row
    defaults = {key: getattr(header, key) for key in _DEFAULTS if getattr(header, key)}
    return defaults | row


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield first line and content of each row of a CSV file."""
    if not path.exists():
        raise DataError(f"{path} does not exist. Check the name.")
    with csv_rows(path, find_encoding(path).name) as rows:
        names = _columns(path, next(rows)[1])
        for line, cells in rows:
            if not cells:
                continue
            where = f"{path}, line {line}"
            if len(cells) != len(names):
                raise DataError(
                    f"{where}: another number of columns than the header. Put texts "
                    "with commas in quotes."
                )
            yield line, _from_cells(dict(zip(names, cells, strict=True)), where)


def _columns(path: Path, header: Sequence[str]) -> list[str]:
    """Return the column names; one without a name is called by its place."""
    names = [
        name.strip() or f"column_{place}" for place, name in enumerate(header, start=1)
    ]
    if not {"case", "case_id", "label", "judgement"} & set(names):
        raise DataError(
            f"{path}, line 1: no column case_id, label or judgement. Put a line with "
            "the names of the columns before the verdicts."
        )
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(
            f"{path}, line 1: column {quoted(twice[0])} appears twice. Keep one; "
            "several entries go into one cell, separated by |."
        )
    return names


def _from_cells(row: dict[str, str], where: str) -> dict[str, Any]:
    """Return a CSV row in the shape of a YAML verdict; empty cells do not count."""
    data: dict[str, Any] = {}
    rows: dict[str, dict[int, dict[str, str]]] = {}
    rules: dict[int, dict[str, str]] = {}
    for name, cell in row.items():
        text = unshielded(cell.strip())
        if not text or name in _SHOWN:
            continue
        column, number = _split_number(name)
        if column in _ROWS:
            key, part = _ROWS[column]
            rows.setdefault(key, {}).setdefault(number, {})[part] = text
        elif column in _RULE:
            rules.setdefault(number, {})[column] = text
        elif name in _LISTED or name.startswith("remove_"):
            data[name] = _entries(text)
        elif name == "anchor":
            data[name] = _read_yes(text, where)
        else:
            data[name] = text
    if len(rules) > 1:
        data["clarifications"] = [rules[number] for number in sorted(rules)]
    else:
        data |= next(iter(rules.values()), {})
    listed = {key: [found[n] for n in sorted(found)] for key, found in rows.items()}
    return data | listed


def _split_number(name: str) -> tuple[str, int]:
    """Return a column without its number, and the number; 1 for one without."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, 1)


def _entries(cell: str) -> list[str]:
    """Return the entries of a cell; a bar with a backslash belongs to its entry."""
    parts = (part.strip() for part in _BAR.split(cell))
    return [part.replace("\\|", "|") for part in parts if part]


def _read_yes(cell: str, where: str) -> bool:
    word = cell.casefold()
    if word not in _YES | _NO:
        raise DataError(
            f"{where}: anchor is {quoted(cell)}, which is neither a yes nor a no. "
            "Write yes or no, or leave the cell empty."
        )
    return word in _YES


class ImportDefaults(NamedTuple):
    """What the verdicts of a file are about, where the file does not say it."""

    reviewer: str
    """Who judges where a verdict names nobody."""

    cohort: str = ""
    """Cohort of the cases; by default what the file says, or the run's."""

    run: str = ""
    """Run that was judged; by default what the file says, or none."""


class ImportedVerdicts(NamedTuple):
    """What was taken from a file."""

    cohort: str
    run: str
    """Full id of the run, or empty."""

    ids: tuple[str, ...]
    """Ids the verdicts are kept under, in file order."""


def take_file(
    workspace: WorkspacePaths,
    store: Store,
    path: Path,
    occasion: ImportDefaults,
    now: Clock = utc_now,
    *,
    known_in: Store | None = None,
) -> ImportedVerdicts:
    """Keep the verdicts of a file, all or none, and return their ids.

    Parameters
    ----------
    known_in
        Store that says which verdicts are kept already; default: `store`.

    Raises
    ------
    DataError
        The file, a verdict, the cohort or the run is wrong, no draft could be made of
        a verdict, or a reviewer's name looks like another one's; nothing was kept.
    UnknownLabelError
        A label is not in the taxonomy, or a category not in ``errors.yaml``; nothing
        was kept.
    StoreError
        The store cannot be written; nothing was kept.
    """
    file = read_verdicts(path, reviewer=occasion.reviewer)
    ref = occasion.run or file.run
    record = find_run(workspace, ref) if ref else None
    of_run = record.spec.cohort if record else ""
    name = occasion.cohort or file.cohort or of_run
    if not name:
        raise DataError(
            f"nothing says which cohort the cases of {path} belong to. Name it with "
            "--cohort or --run, or write `cohort: NAME` at the top of the file."
        )
    if record and name != of_run:
        raise DataError(
            f"run {record.id} asked the cases of {of_run}, and the verdicts are on "
            f"{name}. Name the right run or the right cohort."
        )
    cohort = open_for_review(workspace, name)
    asked = read_asked(workspace, cohort)
    verdicts = check_verdicts(file.verdicts, asked, frozenset(cohort.case_ids))
    made_on = VerdictContext(
        cohort=name,
        prompt=record.spec.prompt if record else file.prompt,
        source=path.name,
        run=record.id if record else "",
    )
    known = known_in or store
    require_distinct_reviewers(workspace, known, verdicts)
    kept = load_verdicts(known, name, [one.id for one in verdicts])
    refuse_blocked(
        workspace,
        verdicts,
        prompt=made_on.prompt,
        cohort=cohort,
        known=[one.id for one in kept],
    )
    return ImportedVerdicts(
        name, made_on.run, submit_verdicts(store, verdicts, made_on, now)
    )


class VerdictsDryRun(NamedTuple):
    """What a verdict file holds."""

    cohort: str
    run: str
    """Full id of the run that was judged, or empty."""

    verdicts: int
    known: int
    """Of these: in the store already, word for word."""

    reviewers: tuple[str, ...]
    """Who judges, as the file says; sorted."""

    judgements: Mapping[str, int]
    labels: Mapping[str, int]
    """Label id to number of verdicts, most first."""


def dry_run_file(
    workspace: WorkspacePaths,
    store: Store,
    path: Path,
    occasion: ImportDefaults,
    now: Clock = utc_now,
) -> VerdictsDryRun:
    """Return what `take_file` would keep; `store` is only read.

    Raises
    ------
    DataError
        The file, a verdict, the cohort or the run is wrong.
    UnknownLabelError
        A label is not in the taxonomy.
    WriteError
        The store to try it in cannot be made.
    """
    with trial(workspace) as copy, open_store(copy) as empty:
        taken = take_file(workspace, empty, path, occasion, now, known_in=store)
        verdicts = load_verdicts(empty, taken.cohort, taken.ids)
    known = load_verdicts(store, taken.cohort, [one.id for one in verdicts])
    labels = Counter(one.label for one in verdicts)
    return VerdictsDryRun(
        cohort=taken.cohort,
        run=taken.run,
        verdicts=len(taken.ids),
        known=len(known),
        reviewers=tuple(sorted({one.reviewer for one in verdicts})),
        judgements=dict(Counter(one.judgement.value for one in verdicts)),
        labels=dict(labels.most_common()),
    )


def verdicts_file(kept: Sequence[KeptVerdict], *, notes: bool = False) -> str:
    """Return a verdict file that `read_verdicts` reads back equal.

    Without the notes it reads back equal but for them. Cohort, prompt and run stand at
    the top where all verdicts share them.

    Parameters
    ----------
    notes
        Whether the notes are written too, and the words of errors: they may tell of a
        case. Without one a verdict on no case could not be read back, so its note is
        its reason and stays.
    """
    header = {
        name: _only(getattr(one.circumstances, name) for one in kept)
        for name in ("prompt", "run", "cohort")
    }
    data: dict[str, Any] = {key: value for key, value in header.items() if value}
    said = (one.verdict if notes else _without_note(one.verdict) for one in kept)
    return dump_yaml(data | {"verdicts": [_plain(one) for one in said]})


def verdicts_table(kept: Sequence[KeptVerdict], *, notes: bool = False) -> str:
    """Return a CSV file, one row per verdict, safe to open in a spreadsheet.

    `read_verdicts` reads it back equal, but for control characters, which are spelled
    out, and blank ends. Id, time and state are for people and are not read back. For
    `notes` see `verdicts_file`.
    """
    said = (one.verdict if notes else _without_note(one.verdict) for one in kept)
    rows = [dict(_cells(*both)) for both in zip(kept, said, strict=True)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([_neutral(row.get(name, "")) for name in names] for row in rows)
    return format_csv(names, cells)


_WRITTEN_LISTS = tuple(
    one.name for one in fields(Edits) if one.name not in ("clarifications", "exemplars")
)
"""What a verdict lists as plain text, in the order of the columns."""


def _only(values: Iterator[str]) -> str:
    found = set(values)
    return found.pop() if len(found) == 1 else ""


def _without_note(verdict: Verdict) -> Verdict:
    if not verdict.case_ids:
        return verdict
    errors = tuple(replace(one, words="") for one in verdict.errors)
    return replace(verdict, comment="", errors=errors)


def _plain(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain data in reading order; what is empty is left out."""
    edits = verdict.edits
    data: dict[str, Any] = {
        "cases": list(verdict.case_ids),
        "label": verdict.label,
        "judgement": verdict.judgement.value,
        "severity": verdict.severity and verdict.severity.value,
        "context": verdict.context and verdict.context.value,
        "correct_value": verdict.correct_value and verdict.correct_value.value,
        "errors": [_error(one) for one in verdict.errors],
        **{name: list(getattr(edits, name)) for name in _WRITTEN_LISTS},
        "clarifications": [_rule(one) for one in edits.clarifications],
        "exemplars": [_example(one) for one in edits.exemplars],
        "reviewer": verdict.reviewer,
        "comment": verdict.comment,
        "anchor": verdict.anchor,
    }
    return {key: value for key, value in data.items() if value}


def _rule(one: Clarification) -> dict[str, str]:
    return {"phrase": one.phrase, "value": one.value.value, "note": one.note}


def _error(one: ErrorVerdict) -> dict[str, str]:
    said = {"said": one.said.value, "right": one.right.value}
    return {"words": one.words, **said} if one.words else said


def _example(one: Exemplar) -> dict[str, str]:
    return {
        "text": one.text,
        "value": one.value.value,
        "evidence": one.evidence,
        "why": one.why,
    }


def _cells(one: KeptVerdict, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield the cells of a row with their columns."""
    made_on = one.circumstances
    yield from (("id", one.id), ("created", one.created), ("state", one.state.value))
    yield from (("on_cohort", made_on.cohort), ("on_run", made_on.run))
    yield ("on_prompt", made_on.prompt)
    if made_on.flips:
        yield ("failed_in_draws", made_on.flips)
    yield ("reviewer", verdict.reviewer)
    yield from (("cases", _joined(verdict.case_ids)), ("label", verdict.label))
    yield ("judgement", verdict.judgement.value)
    yield ("severity", verdict.severity or "")
    yield from (("context", verdict.context or ""), ("comment", verdict.comment))
    yield ("correct_value", verdict.correct_value or "")
    yield ("anchor", "yes" if verdict.anchor else "")
    for name in _WRITTEN_LISTS:
        yield name, _joined(getattr(verdict.edits, name))
    for number, rule in enumerate(verdict.edits.clarifications, 1):
        yield from _number(_rule(rule), "", number)
    for number, example in enumerate(verdict.edits.exemplars, 1):
        yield from _number(_example(example), "exemplar_", number)
    for number, error in enumerate(verdict.errors, 1):
        yield from _number(_error(error), "error_", number)


def _number(row: dict[str, str], before: str, number: int) -> Iterator[tuple[str, str]]:
    after = "" if number == 1 else f"_{number}"
    for name, cell in row.items():
        yield f"{before}{name}{after}", cell


def _joined(parts: Collection[str]) -> str:
    """Return the parts as one cell; a bar inside a part is marked as its own."""
    return f" {SEPARATOR} ".join(
        part.replace(SEPARATOR, f"\\{SEPARATOR}") for part in parts
    )


def _neutral(cell: str) -> str:
    """Return `cell` as text that no spreadsheet takes for a formula."""
    return shielded(printable(cell.strip()))

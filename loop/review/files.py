r"""Verdict files: YAML as a clinician writes it, CSV as a spreadsheet exports it.

What stands above ``verdicts`` holds for all of them unless one says otherwise. One
value may stand where a list is meant, and one verdict may ask for several things.
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
    - case: case-041
      label: pleural_effusion
      judgement: reference_wrong
      correct_value: absent
      comment: The reader marked the other side of a pair.

In a CSV file each of these is a column; several cases or terms in one cell are
separated by ``|`` (a bar that belongs to a term is written ``\|``), and an exemplar
takes the columns ``exemplar_text``, ``exemplar_value``, ``exemplar_evidence`` and
``exemplar_why``; ``anchor`` takes yes or no. A second clarification stands in
``phrase_2``, ``value_2`` and ``note_2``, a second exemplar in ``exemplar_text_2`` and
so on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Value
from loop.core.safe_text import unshielded
from loop.core.yaml_files import check_model, parse_yaml
from loop.labels.importing.encodings import decode_text, find_encoding
from loop.labels.importing.table_files import csv_rows
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.review.verdict import (
    RECORDED_ONLY,
    Judgement,
    Verdict,
    VerdictForm,
    build_verdict,
)

_DEFAULTS = ("reviewer", "judgement", "severity", "context")
"""Header keys that hold for every verdict that does not say otherwise."""

_LISTS = frozenset(
    {"cases", "case_id", "case", "terms", "term", "exclusions", "exclusion", "implies"}
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

DERIVED = frozenset({Judgement.REFERENCE_WRONG, *RECORDED_ONLY})
"""What can be said of a label that follows from the others."""

SEPARATOR = "|"
"""Stands between the entries of a CSV cell."""

_BAR = re.compile(r"(?<!\\)\|")
_RULE = ("phrase", "value", "note")
_NUMBERED = re.compile(rf"({'|'.join(_RULE)}|exemplar_[a-z]+)_([2-9]|[1-9][0-9])")
"""Columns of a second clarification or exemplar, and of more."""

_EXEMPLAR = {
    "exemplar_text": "text",
    "exemplar_value": "value",
    "exemplar_evidence": "evidence",
    "exemplar_why": "why",
}


class VerdictFile(NamedTuple):
    """What a verdict file holds."""

    verdicts: tuple[Verdict, ...]
    prompt: str
    """Version the verdicts were made on, as the file says, or empty."""

    run: str
    """Run the verdicts were made on, as the file says, or empty."""

    cohort: str
    """Cohort of the cases, as the file says, or empty."""


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
        name.strip() or f"column {place}" for place, name in enumerate(header, start=1)
    ]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise DataError(
            f"{path}, line 1: column {twice[0]!r} appears twice. Keep one; several "
            "entries go into one cell, separated by |."
        )
    return names


def _from_cells(row: dict[str, str], where: str) -> dict[str, Any]:
    """Return a CSV row in the shape of a YAML verdict; empty cells do not count."""
    data: dict[str, Any] = {}
    exemplars: dict[int, dict[str, str]] = {}
    rules: dict[int, dict[str, str]] = {}
    for name, cell in row.items():
        text = unshielded(cell.strip())
        if not text or name in _SHOWN:
            continue
        column, number = _numbered(name)
        if column in _EXEMPLAR:
            exemplars.setdefault(number, {})[_EXEMPLAR[column]] = text
        elif column in _RULE:
            rules.setdefault(number, {})[column] = text
        elif name in _LISTS or name.startswith("remove_"):
            data[name] = _entries(text)
        elif name == "anchor":
            data[name] = _read_yes(text, where)
        else:
            data[name] = text
    if len(rules) > 1:
        data["clarifications"] = [rules[number] for number in sorted(rules)]
    else:
        data |= next(iter(rules.values()), {})
    listed = [exemplars[number] for number in sorted(exemplars)]
    return data | ({"exemplars": listed} if listed else {})


def _numbered(name: str) -> tuple[str, int]:
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
            f"{where}: anchor is {cell[:20]!r}, which is neither a yes nor a no. Write "
            "yes or no, or leave the cell empty."
        )
    return word in _YES


def check_verdicts(
    verdicts: Sequence[Verdict], taxonomy: Taxonomy, case_ids: Collection[str]
) -> tuple[Verdict, ...]:
    """Return the verdicts with canonical label ids, after checking what they name.

    Raises
    ------
    UnknownLabelError
        A label is not in the taxonomy.
    DataError
        A case is not in the cohort, wording is given for "No Finding", or two verdicts
        disagree on what is right.
    """
    checked = tuple(
        _check(number, verdict, taxonomy, case_ids)
        for number, verdict in enumerate(verdicts, 1)
    )
    _refuse_disagreement(checked)
    return checked


def _refuse_disagreement(verdicts: Sequence[Verdict]) -> None:
    """Refuse two verdicts that call different values right for the same case."""
    said: dict[tuple[str, str], tuple[int, Value]] = {}
    for number, verdict in enumerate(verdicts, 1):
        value = verdict.correct_value
        if value is None:
            continue
        for case_id in verdict.case_ids:
            first, before = said.setdefault((case_id, verdict.label), (number, value))
            if before != value:
                raise DataError(
                    f"verdicts {first} and {number} disagree on {verdict.label} of "
                    f"case {case_id}: correct_value {before} and {value}. Agree on "
                    "one and remove the other. Nothing was changed."
                )


def _check(
    number: int, verdict: Verdict, taxonomy: Taxonomy, case_ids: Collection[str]
) -> Verdict:
    try:
        label = taxonomy.find(verdict.label).id
        implied = tuple(taxonomy.find(name).id for name in verdict.edits.implies)
        no_more = tuple(taxonomy.find(name).id for name in verdict.edits.remove_implies)
    except UnknownLabelError as error:
        raise UnknownLabelError(f"verdict {number}: {error}") from error
    unknown = [case for case in verdict.case_ids if case not in case_ids]
    if unknown:
        raise DataError(
            f"verdict {number}: the cohort has no case {unknown[0][:80]!r}. Correct "
            "the case id (put ids with leading zeros in quotes) or name the cohort "
            "with --cohort."
        )
    if label == NO_FINDING and (verdict.judgement not in DERIVED or verdict.edits):
        raise DataError(
            f"verdict {number}: No Finding is derived from the other labels and has no "
            "guide: only its reference or the text can be wrong. Judge the "
            "label that is wrong in this case."
        )
    edits = replace(verdict.edits, implies=implied, remove_implies=no_more)
    return replace(verdict, label=label, edits=edits)

"""Verdict files: YAML as a clinician writes it, CSV as a spreadsheet exports it.

What stands above ``verdicts`` holds for all of them unless one says otherwise. One
value may stand where a list is meant, and one verdict may ask for several things::

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
separated by ``|``, and an exemplar takes the columns ``exemplar_text``,
``exemplar_value``, ``exemplar_evidence`` and ``exemplar_why``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from loop.core.errors import DataError, UnknownLabelError
from loop.core.files import read_text
from loop.core.yaml_files import check_model, parse_yaml
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.review.form import VerdictForm, build_verdict
from loop.review.verdict import Judgement, Verdict

_DEFAULTS = ("reviewer", "judgement", "severity", "context")
"""Header keys that hold for every verdict that does not say otherwise."""

_LISTS = frozenset(
    {"cases", "case_id", "case", "terms", "term", "exclusions", "exclusion", "implies"}
)
"""CSV columns with several entries in one cell, separated by ``|``."""

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
        rows = [
            (f"{path}, line {line}", row)
            for line, row in _read_rows(path, read_text(path).removeprefix("\ufeff"))
        ]
        header = _FileModel(verdicts=[])
    else:
        header = check_model(parse_yaml(read_text(path), path), _FileModel, path)
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


def _with_defaults(row: object, header: _FileModel) -> object:
    if not isinstance(row, dict):
        return row
    defaults = {key: getattr(header, key) for key in _DEFAULTS if getattr(header, key)}
    return defaults | row


def _read_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and content of each row of a CSV file."""
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if None in row or None in row.values():
                raise DataError(
                    f"{path}, line {rows.line_num}: another number of columns than the "
                    "header. Put texts with commas in quotes."
                )
            yield rows.line_num, _from_cells(row)
    except csv.Error as error:
        raise DataError(
            f"{path}, line {rows.line_num}: not readable as CSV ({error}). Save it as "
            "comma-separated values."
        ) from error


def _from_cells(row: dict[str, str]) -> dict[str, Any]:
    """Return a CSV row in the shape of a YAML verdict; empty cells do not count."""
    data: dict[str, Any] = {}
    exemplar: dict[str, str] = {}
    for column, cell in row.items():
        name, text = column.strip(), cell.strip()
        if not text:
            continue
        if name in _EXEMPLAR:
            exemplar[_EXEMPLAR[name]] = text
        elif name in _LISTS or name.startswith("remove_"):
            data[name] = [part.strip() for part in text.split("|") if part.strip()]
        elif name == "anchor":
            data[name] = text.casefold() in ("true", "yes", "1", "x")
        else:
            data[name] = text
    return data | ({"exemplars": [exemplar]} if exemplar else {})


def check_verdicts(
    verdicts: Sequence[Verdict], taxonomy: Taxonomy, case_ids: Collection[str]
) -> tuple[Verdict, ...]:
    """Return the verdicts with canonical label ids, after checking what they name.

    Raises
    ------
    UnknownLabelError
        A label is not in the taxonomy.
    DataError
        A case is not in the cohort, or wording is given for "No Finding".
    """
    return tuple(
        _check(number, verdict, taxonomy, case_ids)
        for number, verdict in enumerate(verdicts, 1)
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
    if label == NO_FINDING and verdict.judgement is not Judgement.REFERENCE_WRONG:
        raise DataError(
            f"verdict {number}: No Finding is derived from the other labels and has no "
            "guide. Judge the label that is wrong in this case."
        )
    edits = replace(verdict.edits, implies=implied, remove_implies=no_more)
    return replace(verdict, label=label, edits=edits)

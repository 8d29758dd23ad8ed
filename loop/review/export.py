"""Kept verdicts as files that can be read again: YAML for people, CSV for tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from loop.core.records import Clarification, Exemplar
from loop.core.safe_text import format_csv, printable, shielded
from loop.core.yaml_files import dump_yaml
from loop.review.files import SEPARATOR
from loop.review.kept import KeptVerdict
from loop.review.verdict import Verdict

_LISTS = (
    "terms",
    "exclusions",
    "implies",
    "remove_terms",
    "remove_exclusions",
    "remove_clarifications",
    "remove_exemplars",
    "remove_implies",
)
"""Starts that a spreadsheet would read as a formula."""


def verdicts_file(kept: Sequence[KeptVerdict], *, notes: bool = False) -> str:
    """Return a verdict file that `loop.review.files.read_verdicts` reads back equal.

    Without the notes it reads back equal but for them. Cohort, prompt and run stand at
    the top where all verdicts share them.

    Parameters
    ----------
    notes
        Whether the notes are written too: they may tell of a case. Without one a
        verdict on no case could not be read back, so its note is its reason and stays.
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


def _only(values: Iterator[str]) -> str:
    found = set(values)
    return found.pop() if len(found) == 1 else ""


def _without_note(verdict: Verdict) -> Verdict:
    return replace(verdict, comment="") if verdict.case_ids else verdict


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
        **{name: list(getattr(edits, name)) for name in _LISTS},
        "clarifications": [_rule(one) for one in edits.clarifications],
        "exemplars": [_example(one) for one in edits.exemplars],
        "reviewer": verdict.reviewer,
        "comment": verdict.comment,
        "anchor": verdict.anchor,
    }
    return {key: value for key, value in data.items() if value}


def _rule(one: Clarification) -> dict[str, str]:
    return {"phrase": one.phrase, "value": one.value.value, "note": one.note}


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
    for name in _LISTS:
        yield name, _joined(getattr(verdict.edits, name))
    for number, rule in enumerate(verdict.edits.clarifications, 1):
        yield from _numbered(_rule(rule), "", number)
    for number, example in enumerate(verdict.edits.exemplars, 1):
        yield from _numbered(_example(example), "exemplar_", number)


def _numbered(
    row: dict[str, str], before: str, number: int
) -> Iterator[tuple[str, str]]:
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

"""Pasted words that are kept, on request: as an exemplar, or as a synthetic case.

Synthetic cases gather in one private table for each prompt, which `ranloop cohort
import` reads like any other: only an import makes them a cohort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.errors import DataError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Exemplar, Value
from loop.core.safe_text import format_csv, quoted
from loop.labels.importing.source import check_length
from loop.labels.importing.table_files import csv_rows
from loop.labels.language import guess_language
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import parse_ref, read_version
from loop.review.revise.draft import Drafted
from loop.review.revise.edit import GuideEdit, edit_draft, guide_text
from loop.review.revise.tryout import refuse_holdout

_COLUMNS = "case_id", "language", "text"
_ID = "synthetic-"


class KeptCase(NamedTuple):
    """A synthetic case as it was kept."""

    case_id: str
    path: Path
    """The table it is in."""

    added: bool
    """False where the text was there, and only what is right about a label is new."""


def keep_exemplar(
    workspace: WorkspacePaths,
    ref: str,
    label: str,
    example: Exemplar,
    actor: Actor,
    *,
    now: Clock = utc_now,
) -> Drafted:
    """Return the draft `ref` with one more exemplar of a label.

    Parameters
    ----------
    example
        Its text becomes part of the prompt: no case, and nothing that tells of a
        patient. Empty evidence stands for all of the text.

    Raises
    ------
    DataError
        There is no such draft or label in it; the text is empty, an exemplar already,
        or that of a holdout's case; the evidence is not in it.
    OverlapError
        Wording is copied from a case of a cohort that is not for development.
    ConflictError
        Somebody else edited the guide meanwhile.
    WriteError
        The workspace cannot be written; the draft is as it was.
    """
    words = _words(workspace, example.text)
    decides = " ".join(example.evidence.split())
    draft = read_version(workspace, ref)
    guide = draft.guide(label)
    if guide is None:
        raise DataError(
            f"{draft.ref} does not ask about {quoted(label)}. Name one of its labels "
            "by id."
        )
    if any(one.text.casefold() == words.casefold() for one in guide.exemplars):
        raise DataError(f"the text is an exemplar of {label} in {draft.ref} already.")
    if decides.casefold() not in words.casefold():
        raise DataError(
            "the evidence is not in the text. Copy the words that decide as they stand "
            "there, or leave it empty."
        )
    one_line = replace(example, text=words, evidence=decides or words)
    longer = replace(guide, exemplars=(*guide.exemplars, one_line))
    edit = GuideEdit(label=label, text=guide_text(longer), seen=guide_text(guide))
    return edit_draft(workspace, ref, (edit,), actor, now=now)


def keep_case(
    workspace: WorkspacePaths,
    ref: str,
    label: str,
    text: str,
    value: Value,
    *,
    language: str = "auto",
) -> KeptCase:
    """Keep `text` as a synthetic case of a prompt, with what is right about a label.

    A text that is there already gets the label; what was kept about another stays.

    Parameters
    ----------
    ref
        The prompt, or a version or draft of it.
    language
        ISO 639-1 code of the text; ``auto`` to tell it by letters and words.

    Raises
    ------
    DataError
        There is no such prompt or label; the text is empty, too long, or that of a
        holdout's case; or the table cannot be read.
    WriteError
        The workspace cannot be written; the table is as it was.
    """
    name = parse_ref(ref).name
    labels = read_taxonomy(workspace.labels).extracted
    if label not in labels:
        raise DataError(
            f"labels/taxonomy.yaml has no label {quoted(label)} that can be asked for. "
            "Name one of its labels by id."
        )
    words = text.strip()
    _words(workspace, words)
    path = find_synthetic(workspace, name)
    with locked(workspace.open_private() / "locks" / f"synthetic-{name}.lock"):
        header, rows = _read_table(path)
        known = next((one for one in rows if one["text"].strip() == words), None)
        row = known
        if row is None:
            numbers = [one["case_id"].removeprefix(_ID) for one in rows]
            last = max((int(one) for one in numbers if one.isdecimal()), default=0)
            known_as = guess_language(words) if language == "auto" else language
            row = {"case_id": f"{_ID}{last + 1}", "language": known_as, "text": words}
            rows.append(row)
        row[label] = value.value
        header = [*dict.fromkeys((*header, label))]
        cells = ([one.get(column, "") for column in header] for one in rows)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(path, format_csv(header, cells), mode=0o600)
    return KeptCase(row["case_id"], path, known is None)


def find_synthetic(workspace: WorkspacePaths, name: str) -> Path:
    """Return where the synthetic cases of the prompt `name` are, or will be."""
    return workspace.private / "synthetic" / f"{name}.csv"


def _words(workspace: WorkspacePaths, text: str) -> str:
    """Return a text on one line, if it may be kept."""
    words = " ".join(text.split())
    if not words:
        raise DataError("the text is empty. Paste the words that are to be kept.")
    check_length(words, "the pasted text")
    refuse_holdout(workspace, text.strip())
    return words


def _read_table(path: Path) -> tuple[Sequence[str], list[dict[str, str]]]:
    """Return the columns of the table and its rows, whoever wrote them."""
    if not path.exists():
        return _COLUMNS, []
    with csv_rows(path, "utf-8") as lines:
        _, header = next(lines)
        rows = [cells for _, cells in lines]
    begins = tuple(header[: len(_COLUMNS)]) == _COLUMNS
    if not begins or any(len(cells) != len(header) for cells in rows):
        raise DataError(
            f"{path} is no table that begins with the columns {', '.join(_COLUMNS)} "
            "and has a cell for each column in every row. Mend it, or move it away, "
            "and a new one is begun."
        )
    return header, [dict(zip(header, cells, strict=True)) for cells in rows]

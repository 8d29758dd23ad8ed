"""Drawn cases of a cohort by name: value samples for readers, and lists for review.

A list for review is in ``.ranloop/samples/<cohort>/<name>.json``. Nothing is claimed on
it, so the ledger does not know it. Value sample 1 goes by the name ``sample1``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from loop.core.errors import DataError
from loop.core.files import locked, read_text, write_atomic
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.cohort import check_name, read_record
from loop.labels.value_sample import read_sample

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_NUMBERED = re.compile(r"sample([1-9][0-9]{0,5})")


class ReviewSample(BaseModel):
    """Cases that were drawn for review."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["ranloop-review-sample/1"] = "ranloop-review-sample/1"
    name: str
    cohort: str
    cohort_digest: str
    run: str
    """Whose answers are to be reviewed."""

    seed: int
    by: str
    case_ids: tuple[str, ...]
    """The likeliest to be drawn first."""


def check_sample_name(name: str) -> str:
    """Return `name` if a list for review can have it.

    Raises
    ------
    DataError
        It is no file name, or is that of a value sample.
    """
    if _NAME.fullmatch(name) is None or _NUMBERED.fullmatch(name):
        raise DataError(
            f"{quoted(name)} cannot be the name of a list for review. Use 1 to 40 "
            "lower-case letters, digits, '-' or '_'; sample1 and so on are those of "
            "value samples."
        )
    return name


def keep_review_sample(workspace: WorkspacePaths, sample: ReviewSample) -> None:
    """Keep cases that were drawn for review; the same ones once more change nothing.

    A list drawn before the cohort was re-imported is replaced.

    Raises
    ------
    DataError
        The name cannot be used, or other cases of the cohort have it.
    WriteError
        The workspace cannot be written.
    """
    path = _path(workspace, sample.cohort, check_sample_name(sample.name))
    workspace.open_private()
    with locked(path.with_suffix(".lock")):
        if path.exists():
            known = _read(path)
            here = known.cohort_digest == sample.cohort_digest
            if here and known.case_ids == sample.case_ids:
                return
            if here:
                raise DataError(
                    f"other cases of cohort {sample.cohort} have the name "
                    f"{quoted(sample.name)}. Give another one."
                )
        write_atomic(path, sample.model_dump_json(indent=1) + "\n", mode=0o600)


def list_samples(workspace: WorkspacePaths, cohort_name: str) -> tuple[str, ...]:
    """Return the names of what was drawn of a cohort: value samples first, then lists.

    Raises
    ------
    DataError
        The ledger has no entry of the cohort.
    LedgerError
        The ledger is broken.
    """
    numbers = sorted(read_record(workspace, cohort_name).samples, reverse=True)
    folder = workspace.private / "samples" / check_name(cohort_name)
    lists = sorted(one.stem for one in folder.glob("*.json"))
    return (*(f"sample{one}" for one in numbers), *lists)


def read_sampled_cases(
    workspace: WorkspacePaths, cohort_name: str, name: str
) -> tuple[str, ...]:
    """Return the ids of the cases that were drawn under a name.

    Raises
    ------
    DataError
        There is no such name, its file was damaged, or the cohort was imported again
        since.
    LedgerError
        The ledger is broken.
    """
    numbered = _NUMBERED.fullmatch(name)
    if numbered:
        return tuple(
            read_sample(workspace, cohort_name, int(numbered[1])).sample.chances
        )
    path = _path(workspace, cohort_name, check_sample_name(name))
    sample = _read(path)
    record = read_record(workspace, cohort_name)
    if record.added.get("cohort_digest") != sample.cohort_digest:
        raise DataError(
            f"cohort {cohort_name} was imported again since {quoted(name)} was drawn. "
            "Draw another sample with `ranloop sample`."
        )
    return sample.case_ids


def _path(workspace: WorkspacePaths, cohort_name: str, name: str) -> Path:
    return workspace.private / "samples" / check_name(cohort_name) / f"{name}.json"


def _read(path: Path) -> ReviewSample:
    try:
        return ReviewSample.model_validate_json(read_text(path))
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged: something other than ranloop changed it. Remove it, "
            "and draw again with `ranloop sample`."
        ) from error

"""The one case a reader has before the eyes: text and own answers, nothing else."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from loop.core.digests import digest_text
from loop.core.errors import DataError, SealedError
from loop.core.paths import Workspace
from loop.core.records import Value
from loop.labels.ballots import read_turnout
from loop.labels.cohort import Cohort, CohortRole, texts_path
from loop.review.reading.answers import read_answers
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    positions,
    require_cases,
)
from loop.review.reading.comments import read_comment
from loop.review.reading.publication import voted_cases
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSheet:
    """What a reader is given of a case. Blinding rests on what is not in it."""

    case_id: str
    text: str
    """The case text; private, for display only."""

    answers: Mapping[str, Value]
    """The reader's own answers, by label id; labels not answered are left out."""

    comment: str
    """The reader's own comment; empty without one."""

    open_labels: tuple[str, ...]
    """Label ids still without a value; none: the case is complete."""


def open_sheet(
    workspace: Workspace,
    store: Store,
    assignment: Assignment,
    reader: str,
    case_id: str,
) -> ReadingSheet:
    """Return a case as `reader` may see it; nothing is kept by looking.

    Raises
    ------
    SealedError
        The case is of a holdout, and the reader's answers are votes already.
    DataError
        The case is unknown, its text is not on this machine or not the pinned one.
    StoreError
        The store cannot be read.
    """
    require_cases(assignment, [case_id])
    text = _read_text(workspace, assignment.cohort, case_id)
    answers = read_answers(store, assignment, reader, case_id).get(case_id, {})
    open_labels = tuple(n for n in assignment.labels if n not in answers)
    if assignment.cohort.role is CohortRole.HOLDOUT and not open_labels:
        _refuse_published(workspace, assignment, reader, case_id)
    return ReadingSheet(
        case_id=case_id,
        text=text,
        answers=answers,
        comment=read_comment(store, assignment, check_reader(reader), case_id),
        open_labels=open_labels,
    )


def _refuse_published(
    workspace: Workspace, assignment: Assignment, reader: str, case_id: str
) -> None:
    """Refuse a case whose votes are sealed: nobody looks at them again."""
    turnout = read_turnout(workspace, assignment.cohort)
    if case_id in voted_cases(workspace, turnout, reader):
        raise SealedError(
            f"the answers of {reader!r} on case {case_id!r} of holdout "
            f"{assignment.cohort.name!r} are votes now, and sealed. Go on with the "
            "next case."
        )


def _read_text(workspace: Workspace, cohort: Cohort, case_id: str) -> str:
    """Return the text of one case, from its own line of the texts file."""
    path, number = texts_path(workspace, cohort.name), positions(cohort)[case_id]
    try:
        found = path.stat()
        starts = _line_starts(path, found.st_mtime_ns, found.st_size)
        with path.open("rb") as stream:
            stream.seek(starts[number])
            text = json.loads(stream.readline())["text"]
        if digest_text(text) == cohort.cases[number].sha256:
            return str(text)
    except FileNotFoundError as error:
        raise DataError(
            f"the texts of cohort {cohort.name!r} are not on this machine: {path} does "
            "not exist (texts are private and do not travel with the cohort). Import "
            "the cohort again from its source with --replace."
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        pass
    raise DataError(
        f"{path}, line {number + 1}: not the text of case {case_id[:80]!r} that was "
        "imported. Import the cohort again from its source with --replace."
    )


@lru_cache(maxsize=8)
def _line_starts(path: Path, changed: int, size: int) -> array[int]:
    """Return where each line begins; `changed` and `size` tell one file from the next.

    Lines stand in the order of the cohort, so that one seek finds a case.
    """
    starts = array("q")
    with path.open("rb") as stream:
        place = 0
        for line in stream:
            starts.append(place)
            place += len(line)
    return starts

"""What a new reference version no longer says that the one before said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from loop.core.errors import DataError, LedgerError
from loop.core.paths import Workspace
from loop.labels.cohort import Cohort
from loop.labels.recorded import CohortRecord, read_record
from loop.labels.reference import (
    MISSING,
    Marks,
    Reference,
    list_references,
    read_reference,
)


class Superseded(NamedTuple):
    """What is lost from one reference version to the next."""

    corrections: int
    """Marks corrected since the last votes or import, and now different again."""

    missing: int
    """Marks that become missing: of labels or pairs that nobody voted on."""


def compare_with_newest(
    workspace: Workspace, cohort: Cohort, labels: Sequence[str], marks: Marks
) -> Superseded | None:
    """Return what new marks of `labels` take from the newest version.

    Zeros when there is no version yet; None when that version, or the one that was
    corrected to make it, was edited or removed, so that nothing can be counted.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort.name)
    if not record.newest and not list_references(workspace, cohort.name):
        return Superseded(0, 0)
    try:
        before = read_reference(workspace, cohort.name)
        origin = read_reference(workspace, cohort.name, _origin(record, before.number))
    except LedgerError:
        raise
    except DataError:
        return None
    after = _spread(before, labels, marks)
    corrected = (origin.marks != before.marks) & (after != before.marks)
    missing = (before.marks != MISSING) & (after == MISSING)
    return Superseded(int(corrected.sum()), int(missing.sum()))


def _origin(record: CohortRecord, number: int) -> int:
    """Return the version that corrections, one after the other, made `number` of."""
    while "corrects" in record.references[number]:
        number = int(record.references[number]["corrects"])
    return number


def _spread(before: Reference, labels: Sequence[str], marks: Marks) -> Marks:
    """Return `marks` in the columns of `before`; a label they lack is missing."""
    after = np.full(before.marks.shape, MISSING, dtype=np.int8)
    for column, label in enumerate(before.labels):
        if label in labels:
            after[:, column] = marks[:, labels.index(label)]
    return after

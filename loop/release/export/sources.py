"""The cases that requests are written about: a cohort's, or those of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loop.core.paths import Workspace
from loop.core.records import Item
from loop.labels.cohort import CohortRole, iter_items, read_cohort
from loop.labels.importing.formats import open_source
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import ImportOptions
from loop.release.export.records import CaseSource
from loop.run.task import check_open


def cohort_cases(workspace: Workspace, name: str) -> CaseSource:
    """Return the cases of cohort `name`.

    Raises
    ------
    DataError
        There is no such cohort, it is a holdout, or its texts are not here.
    """
    cohort = read_cohort(workspace, name)
    check_open(cohort)
    return CaseSource(origin=f"cohort {name}", items=iter_items(workspace, cohort))


def file_cases(workspace: Workspace, path: Path) -> tuple[CaseSource, Screening]:
    """Return the cases of a table, and what counts those that are left out.

    The table is read as an import reads it: the same columns, the same cases left out
    (without a text, or no chest), every id once. Labels in it are not looked at.

    Raises
    ------
    DataError
        There is no such file or its header is wrong; while reading, a row is.
    """
    options = ImportOptions(name="export", role=CohortRole.EXTERNAL)
    source = open_source(path, options, workspace.labels)
    screening = Screening(options)

    def items() -> Iterator[Item]:
        for case in screening.passed(source.cases):
            yield Item(
                id=case.case_id,
                variables={"text": case.text},
                language=case.language,
            )

    return CaseSource(origin=f"file {path.name}", items=items()), screening

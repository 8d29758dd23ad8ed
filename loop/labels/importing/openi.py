"""The Open-i (Indiana University) collection in its CSV edition.

Labels come from the MeSH coding: what was not coded is `Mark.NOT_CODED`, which is
weaker than absent. The loader brings no text: the user supplies the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from loop.core.errors import DataError
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.source import Source, SourceCase
from loop.labels.importing.table import CsvRow, iter_csv, read_header
from loop.labels.openi import MeshCrosswalk
from loop.labels.taxonomy import Taxonomy

NEEDED = ("uid", "MeSH", "findings", "impression")
ORIGIN = "Open-i, Indiana University chest X-ray collection, human MeSH coding"
LICENCE = (
    "Stated elsewhere as CC BY-NC-ND 4.0, the file carries no licence: treat as "
    "non-commercial, no derivatives, attribution. Report text is not for "
    "redistribution."
)
CITATION = (
    "Demner-Fushman D et al. Preparing a collection of radiology examinations for "
    "distribution and retrieval. J Am Med Inform Assoc 2016;23:304-310."
)
NOT_INDEXED = "No Indexing"


def is_openi(header: Sequence[str]) -> bool:
    """Whether a CSV header is that of the Open-i reports file."""
    return set(NEEDED) <= set(header)


def open_openi(
    path: Path, encoding: str, taxonomy: Taxonomy, crosswalk: MeshCrosswalk
) -> Source:
    """Return the cases of an Open-i reports file with marks from its MeSH codes.

    Raises
    ------
    DataError
        A column is missing; while reading, a row is wrong.
    """
    found = find_encoding(path, encoding)
    header = read_header(path, found.name)
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise DataError(
            f"{path.name}, line 1: no column {', '.join(missing)}. Give the reports "
            "file of the collection, or import it with --format csv."
        )
    return Source(
        cases=_cases(path, found.name, crosswalk),
        labels=taxonomy.ids,
        not_coded=True,
        files=((path.name, found.sha256),),
        unused=tuple(name for name in header if name not in NEEDED),
        source=ORIGIN,
        licence=LICENCE,
        citation=CITATION,
        format="openi",
    )


def _cases(path: Path, encoding: str, crosswalk: MeshCrosswalk) -> Iterator[SourceCase]:
    for row in iter_csv(path, encoding):
        yield _case(row, path.name, crosswalk)


def _case(row: CsvRow, source: str, crosswalk: MeshCrosswalk) -> SourceCase:
    cells = row.cells
    mesh = cells["MeSH"].strip()
    return SourceCase(
        where=f"{source}, line {row.line}",
        case_id=cells["uid"].strip(),
        # Findings and impression only: the indication is a question, not a finding.
        text=f"{cells['findings']} {cells['impression']}".strip(),
        language="en",
        unusable="not indexed" if mesh in (NOT_INDEXED, "") else "",
        marks=crosswalk.marks(mesh),
    )

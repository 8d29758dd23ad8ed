"""What every importer yields, whatever the format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from loop.core.errors import DataError
from loop.core.records import Mark
from loop.labels.importing.encodings import check_encoding

MAX_ID = 200
"""Characters of a case id, of a reader's or of a system's name."""

MAX_GENERATED = 10_000_000
"""Characters of a generated text; a generator that never stopped writes less."""

MAX_TEXT = 1_000_000
"""Characters; the longest radiology report is hundreds of times shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCase:
    """One case as it stands in a source."""

    where: str
    """Where it stands, for messages: ``"reports.csv, line 7"``."""

    case_id: str
    text: str
    """Findings and impression; never indication or comparison."""

    patient: str = ""
    """Patient id as given, or empty."""

    language: str = ""
    """ISO 639-1 code as given, or empty."""

    exam: str = ""
    """Words for what was examined, or empty."""

    unusable: str = ""
    """Why the source itself says that the case is of no use, or empty."""

    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Label id to mark, for sources that carry labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source that was opened: what is known before its cases are read."""

    cases: Iterable[SourceCase]
    """Read lazily; raises `DataError` where the source is wrong."""

    labels: tuple[str, ...] = ()
    """Label ids the source has columns for; empty when it has none."""

    not_coded: bool = False
    """Its labels come from coding: nothing coded is weaker than absent."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of the files read."""

    unused: tuple[str, ...] = ()
    """Columns that were not used."""

    source: str = ""
    """Origin in words, when the format knows it."""

    licence: str = ""
    citation: str = ""
    format: str = ""
    """Name of the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How a source becomes a cohort."""

    name: str
    """Name of the new cohort."""

    role: str
    """``taxonomy``, ``dev``, ``holdout`` or ``external``."""

    format: str = "auto"
    """``auto``, ``csv``, ``jsonl``, ``parquet``, ``openi`` or ``mimic``."""

    source: str = ""
    """Where the texts come from, in words; default: what the format knows."""

    licence: str = ""
    """What may be done with them, in words; default: what the format knows."""

    language: str = "auto"
    """ISO 639-1 code for every case, or ``auto``: by column, else by script."""

    encoding: str = "auto"
    """``auto``: UTF-8, else GBK; or a codec name."""

    id_prefix: str = ""
    """Put before every case id, for sources that number from 1."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Role (``case_id``, ``text``, ``patient``) to the column of a table that holds it,
    for names that are not known."""

    exclude: tuple[str, ...] = ()
    """Case ids to leave out, as they stand in the source; counted as excluded."""

    replace: bool = False
    """Replace a cohort of this name; the old one is kept in the private folder."""

    reason: str = ""
    """Why, for the ledger; default: that it was imported."""

    def __post_init__(self) -> None:
        check_encoding(self.encoding)


def check_length(text: str, where: str) -> None:
    """Refuse a text that cannot be one report.

    Raises
    ------
    DataError
        It has more than `MAX_TEXT` characters.
    """
    if len(text) > MAX_TEXT:
        raise DataError(
            f"{where}: a text of {len(text):,} characters; a report has at most "
            f"{MAX_TEXT:,}. Look for a quote that is never closed, or for several "
            "reports run together, and split them."
        )

"""What a table does not say itself: cases, comparable rows, and claims about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from loop.core.yaml_files import read_model

_STRICT = ConfigDict(extra="forbid", frozen=True)
Words = Annotated[str, Field(min_length=1, max_length=500)]


class TableNotes(BaseModel):
    """Facts about one table."""

    model_config = _STRICT
    n: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    """Cases every row rests on."""
    measure: (
        Literal["accuracy", "precision", "recall", "f1", "specificity", "kappa"] | None
    ) = None
    """What columns hold that name no measure."""
    comparable: tuple[Words, ...] = ()
    """Rows that an average may be restricted to."""
    shared_reference: bool = True
    """Whether results of one row, or systems in rows, share their reference labels."""


class CountClaim(BaseModel):
    """So many rows reach a value: 17 of 21 at or above 0.95."""

    model_config = _STRICT
    kind: Literal["count"]
    table: Words
    column: Words
    at_least: float
    count: int
    of: int | None = None


class HighestClaim(BaseModel):
    """One column is the best of those with its measure."""

    model_config = _STRICT
    kind: Literal["highest"]
    table: Words
    column: Words
    at_least: float = 0.95
    """Threshold at which rows are counted beside the means."""


class GainClaim(BaseModel):
    """One number exceeds another of the same row by so much."""

    model_config = _STRICT
    kind: Literal["gain"]
    table: Words
    row: Words
    start: Words
    to: Words
    gain: Words
    """As printed, for example ``"66.4%"`` or ``"0.664"``."""


class OrderClaim(BaseModel):
    """Rows follow each other in a ranking by a column, with none between."""

    model_config = _STRICT
    kind: Literal["order"]
    table: Words
    column: Words
    rows: Annotated[tuple[Words, ...], Field(min_length=2)]


class SignificanceClaim(BaseModel):
    """Every row's accuracy improved significantly."""

    model_config = _STRICT
    kind: Literal["significant"]
    table: Words
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05


Claim = Annotated[
    CountClaim | HighestClaim | GainClaim | OrderClaim | SignificanceClaim,
    Field(discriminator="kind"),
]


class Notes(BaseModel):
    """A notes file: facts by table name, and the claims to check."""

    model_config = _STRICT
    tables: dict[str, TableNotes] = {}
    claims: tuple[Claim, ...] = ()

    def of(self, name: str) -> TableNotes:
        """Return the facts about a table, whatever the case of its name."""
        folded = {key.casefold(): value for key, value in self.tables.items()}
        return folded.get(name.casefold(), TableNotes())


def read_notes(path: Path) -> Notes:
    """Return the notes of a YAML file.

    Raises
    ------
    DataError
        The file is missing, not YAML, or has a field that notes do not have.
    """
    return read_model(path, Notes)


def beside(path: Path) -> Path:
    """Return where the notes of a file of tables lie unless named: beside it."""
    return path.with_name(f"{path.stem}.notes.yaml")

"""What a check of a published table comes to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple


class Consistency(Enum):
    """Whether what a table says can be true."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be decided"


class TableFinding(NamedTuple):
    """One check of one table, column or claim, with the numbers behind it."""

    check: str
    """Name of the check, for example ``"interval method"``."""

    table: str
    """Name of the table, for example ``"Table 2"``."""

    subject: str
    """What was checked in it: a column, a pair of columns, a claim."""

    standing: Consistency
    text: str
    """The result as sentences."""

    numbers: Mapping[str, Any]
    """The result as plain numbers, strings and lists."""

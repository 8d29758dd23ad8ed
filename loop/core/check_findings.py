"""What a check found, whatever it checked: a release, a history, a prompt, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_PROBLEMS = 5
"""How many problems of one check are told one by one."""


class FindingSeverity(StrEnum):
    """How much a finding weighs."""

    OK = "ok"
    """It was checked and holds."""

    NOTE = "note"
    """Worth knowing: it could not be checked here, or is no fault."""

    WARNING = "warning"
    """Someone should look at it; nothing shows that it is wrong."""

    BROKEN = "broken"
    """It was checked and does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found."""

    check: str
    """Which check, for example ``"chain"`` or ``"interval method"``."""

    severity: FindingSeverity
    what: str
    """What was found, in words without case text."""

    where: str = ""
    """File and line, version, cohort, release or table; empty for the whole."""

    part: str = ""
    """What of it, for example a column of the table."""

    implies: str = ""
    """What follows from it."""

    todo: str = ""
    """What to do next."""

    seq: int = 0
    """Entry it is about, from 1, or a line that is none; 0 for no single entry."""

    numbers: Mapping[str, Any] = field(default_factory=dict)
    """The result as plain numbers, strings and lists."""

    @property
    def holds(self) -> bool:
        """Whether nothing was found that does not hold."""
        return self.severity is not FindingSeverity.BROKEN


def ok(check: str, what: str) -> Finding:
    """Return a finding that something holds."""
    return Finding(check=check, severity=FindingSeverity.OK, what=what)


def note(check: str, what: str, *, where: str = "", todo: str = "") -> Finding:
    """Return something worth knowing."""
    return Finding(
        check=check, severity=FindingSeverity.NOTE, what=what, where=where, todo=todo
    )


def warning(check: str, what: str, **details: Any) -> Finding:
    """Return something that someone should look at."""
    return Finding(check=check, severity=FindingSeverity.WARNING, what=what, **details)


def broken(check: str, what: str, **details: Any) -> Finding:
    """Return something that does not hold."""
    return Finding(check=check, severity=FindingSeverity.BROKEN, what=what, **details)


def join_problems(check: str, problems: Sequence[str], good: str) -> Finding:
    """Return one finding of all problems of a check; it says `good` without any."""
    if not problems:
        return ok(check, good)
    more = len(problems) - MOST_PROBLEMS
    rest = f"; and {more} more" if more > 0 else ""
    return broken(check, "; ".join(problems[:MOST_PROBLEMS]) + rest)

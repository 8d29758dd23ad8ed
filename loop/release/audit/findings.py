"""What an audit says: one finding a claim, with what it implies and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingSeverity(StrEnum):
    """How much a finding weighs."""

    OK = "ok"
    """It was checked and holds."""

    NOTE = "note"
    """Worth knowing: it could not be checked here, or is no fault."""

    WARNING = "warning"
    """Someone should look at it; nothing shows that the record is false."""

    BROKEN = "broken"
    """It was checked and does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One thing that an audit found."""

    check: str
    """Which check, for example ``"chain"`` or ``"versions"``."""

    severity: FindingSeverity
    what: str
    """What was found, in a sentence without case text."""

    where: str = ""
    """File and line, version, cohort or release; empty for the whole workspace."""

    implies: str = ""
    """What follows from it."""

    todo: str = ""
    """What to do next."""

    seq: int = 0
    """Entry it is about, from 1, or a line that is none; 0 for no single entry."""


def ok(check: str, what: str) -> AuditFinding:
    """Return a finding that something holds."""
    return AuditFinding(check=check, severity=FindingSeverity.OK, what=what)


def note(check: str, what: str, *, where: str = "", todo: str = "") -> AuditFinding:
    """Return something worth knowing."""
    return AuditFinding(
        check=check, severity=FindingSeverity.NOTE, what=what, where=where, todo=todo
    )


def warning(
    check: str, what: str, *, where: str, implies: str, todo: str, seq: int = 0
) -> AuditFinding:
    """Return something that someone should look at."""
    return AuditFinding(
        check=check,
        severity=FindingSeverity.WARNING,
        what=what,
        where=where,
        implies=implies,
        todo=todo,
        seq=seq,
    )


def broken(
    check: str, what: str, *, where: str, implies: str, todo: str, seq: int = 0
) -> AuditFinding:
    """Return something that does not hold."""
    return AuditFinding(
        check=check,
        severity=FindingSeverity.BROKEN,
        what=what,
        where=where,
        implies=implies,
        todo=todo,
        seq=seq,
    )

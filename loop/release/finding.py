"""What one check of a release found."""

from __future__ import annotations

from typing import NamedTuple


class ReleaseCheck(NamedTuple):
    """One check of a release and how it came out."""

    check: str
    """What was checked, for example ``"files"``."""

    holds: bool
    detail: str
    """What was found, in words; never case text."""


def held(check: str, detail: str) -> ReleaseCheck:
    """Return the finding of a check that holds."""
    return ReleaseCheck(check, True, detail)


def judged(check: str, problems: list[str], good: str) -> ReleaseCheck:
    """Return the finding of a check from its problems; `good` is said without any."""
    shown = "; ".join(problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return ReleaseCheck(check, not problems, shown + more if problems else good)

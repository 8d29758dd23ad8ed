"""The clock: what needs the time takes it as an argument, and writes it one way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the present time, with its zone."""


def utc_now() -> datetime:
    """Return the present time, UTC."""
    return datetime.now(UTC)


def format_time(when: datetime) -> str:
    """Return a time as ledger, versions and releases have it: UTC, with seconds.

    Examples
    --------
    >>> format_time(datetime(2026, 1, 5, 9, tzinfo=UTC))
    '2026-01-05T09:00:00Z'
    """
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

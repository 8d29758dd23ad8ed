"""A clock for tests that stands still until it is moved."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Gives the same time until some of it is let pass."""

    def __init__(self):
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        """Return the time."""
        return self.time

    def pass_s(self, seconds):
        """Let so much time pass."""
        self.time += timedelta(seconds=seconds)

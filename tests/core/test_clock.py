"""Times as they are written: of one zone, whoever's clock they came from."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from loop.core.clock import format_time, utc_now


@pytest.mark.parametrize(
    ("hours", "written"),
    [(0, "2026-01-05T00:30:09Z"), (2, "2026-01-04T22:30:09Z")],
)
def test_a_time_is_written_in_utc_with_whole_seconds(hours, written):
    """Those of two zones sort by when they were."""
    zone = timezone(timedelta(hours=hours))
    assert format_time(datetime(2026, 1, 5, 0, 30, 9, 999_999, zone)) == written


def test_the_clock_has_its_zone():
    """A time without one would be taken for that of the machine."""
    assert utc_now().tzinfo is UTC

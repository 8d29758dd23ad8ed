"""Counts calls: how much is done for something, whatever machine does it."""

import sys
from collections.abc import Callable


def count_calls(act: Callable[[], object]) -> int:
    """Return how many functions, C's among them, `act` calls in this thread."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls

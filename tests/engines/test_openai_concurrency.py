"""The number of requests under way follows what the server can do."""

import pytest

from loop.core.config import ServingSettings
from loop.engines.openai.concurrency import ConcurrencyLimit


def serve(
    concurrency, answers, *, takes=1 << 30, latency=0.05, start=0.0, pushes_at=None
):
    """Answer in rounds like a server that works on at most `takes` at a time.

    Above `pushes_at` requests at a time it refuses those that are too many.
    """
    now = start
    while answers > 0:
        sent, limit = now, concurrency.limit
        now += latency * max(1.0, limit / takes)
        for _ in range(limit):
            concurrency.answered(now)
        if pushes_at is not None and limit > pushes_at:
            for _ in range(limit - pushes_at):
                concurrency.pushed_back(sent, now)
        answers -= limit
    return now


def adaptive(most=256):
    """Return a fresh adaptive concurrency."""
    return ConcurrencyLimit(ServingSettings(max_concurrency=most))


def test_a_server_that_keeps_up_gets_everything():
    """Waiting is all it does, so more at a time is always faster."""
    concurrency = adaptive()
    serve(concurrency, 4000)
    assert concurrency.limit == concurrency.highest == 256


def test_a_server_at_its_limit_does_not_get_a_longer_queue():
    """Beyond 40 at a time only the waiting grows."""
    concurrency = adaptive()
    serve(concurrency, 20_000, takes=40)
    assert 32 <= concurrency.limit <= 64


def test_growth_stops_at_the_configured_most():
    """`max_concurrency` is a promise to the server's owner."""
    concurrency = adaptive(24)
    serve(concurrency, 4000)
    assert concurrency.limit == concurrency.highest == 24


def test_push_backs_of_one_round_trip_halve_once():
    """Sixty-four refusals of one moment are one piece of news."""
    concurrency = adaptive()
    serve(concurrency, 4000)
    for _ in range(64):
        concurrency.pushed_back(sent=100.0, now=100.1)
    assert concurrency.limit == 128
    concurrency.pushed_back(sent=100.2, now=100.3)
    assert concurrency.limit == 64


def test_the_limit_never_falls_below_one():
    """Someone has to find out that the server is back."""
    concurrency = adaptive()
    for now in range(100):
        concurrency.pushed_back(sent=now, now=now + 0.5)
    assert concurrency.limit == 1


def test_it_recovers_after_a_storm():
    """A server that was in trouble for a while is used fully again."""
    concurrency = adaptive()
    now = serve(concurrency, 4000)
    for _ in range(8):
        concurrency.pushed_back(sent=now, now=now + 0.1)
        now += 0.2
    assert concurrency.limit == 1
    serve(concurrency, 4000, start=now)
    assert concurrency.limit >= 128


def test_it_settles_near_what_a_limited_server_accepts():
    """Refusals cost requests, so most rounds stay below them."""
    concurrency = adaptive()
    serve(concurrency, 20_000, pushes_at=20)
    assert 8 <= concurrency.limit <= 24


def test_an_empty_queue_is_no_reason_to_grow():
    """A rate that the queue limits says nothing of the server."""
    concurrency = adaptive()
    for second in range(1000):
        concurrency.answered(float(second))
        concurrency.starved()
    assert concurrency.limit == 16


@pytest.mark.parametrize("fixed", [1, 64, 1000])
def test_a_fixed_concurrency_never_changes(fixed):
    """Whoever sets a number wants that number."""
    concurrency = ConcurrencyLimit(ServingSettings(concurrency=fixed))
    serve(concurrency, 4000)
    concurrency.pushed_back(sent=1e9, now=1e9 + 1)
    assert concurrency.limit == concurrency.highest == fixed

"""The number of requests under way follows what the server can do."""

from itertools import pairwise

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
    for most in (24, 9):
        concurrency = adaptive(most)
        serve(concurrency, 4000)
        assert concurrency.limit == concurrency.highest == most


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


def take_rounds(concurrency, rates, now=0.0):
    """Answer a round at each rate, in answers a second; return the limits after them.

    What is under way comes in first, all at once; it says nothing of the limit.
    """
    limits = []
    for rate in rates:
        for _ in range(concurrency.limit):
            concurrency.answered(now)
        for number in range(max(16, 2 * concurrency.limit)):
            concurrency.answered(now + (number + 1) / rate)
        now += 10.0
        limits.append(concurrency.limit)
    return limits


def test_the_limit_follows_the_rates_step_by_step():
    """Doubling ends below a tenth more; a trial needs half of its share, and doubles.

    From 32 an eighth is 4, worth 6.25 %; kept, 8 more from 36 are worth 11.1 %.
    """
    concurrency = adaptive()
    rates = [100, 111, 122, 100, 106.3, 118]
    assert take_rounds(concurrency, rates) == [32, 64, 32, 36, 44, 36]
    concurrency = adaptive()
    assert take_rounds(concurrency, [100, 109]) == [32, 16]
    assert take_rounds(concurrency, [100, 106.2]) == [18, 16]


def test_trials_that_bring_nothing_become_rare():
    """Each costs a round of a longer queue; the time between them doubles up to 64."""
    concurrency = adaptive()
    limits = take_rounds(concurrency, [100] * 400)
    trials = [at for at, limit in enumerate(limits) if limit == 18]
    assert {*limits[1:]} == {16, 18}
    waits = [after - before - 1 for before, after in pairwise(trials)]
    assert waits == [2, 4, 8, 16, 32, *[64] * 5]
    concurrency.pushed_back(sent=1.0, now=1.0)
    assert take_rounds(concurrency, [100] * 3) == [9, 8, 8]


@pytest.mark.parametrize(
    ("most", "pushes", "limits", "again"),
    [
        (256, 3, [4, 8, 8, 9], [4, 4, 5]),
        (15, 2, [6, 7, 7, 8], [4, 4, 5]),
        (256, 1, [9, 11, 15, 23], [10, 11, 11, 12]),
    ],
)
def test_after_calm_it_doubles_to_half_of_where_the_trouble_began(
    most, pushes, limits, again
):
    """The first refusal says where; those after it only that it is not over."""
    concurrency = adaptive(most)
    for number in range(pushes):
        concurrency.pushed_back(sent=float(number), now=float(number))
    assert take_rounds(concurrency, [100, 200, 400, 800]) == limits
    # Calm again: what is refused now is news, also at the very moment of the last one.
    for _ in range(2):
        concurrency.pushed_back(sent=99.0, now=99.0)
    assert concurrency.limit == limits[-1] // 4
    rates = [100 * 2**number for number in range(len(again))]
    assert take_rounds(concurrency, rates) == again


def test_with_few_under_way_a_round_has_sixteen_answers():
    """The rate of two answers is chance."""
    concurrency = adaptive()
    for now in (1.0, 2.0, 3.0):
        concurrency.pushed_back(sent=now, now=now)
    for number in range(2 + 15):
        concurrency.answered(10.0 + number)
    assert concurrency.limit == 2
    concurrency.answered(30.0)
    assert concurrency.limit == 4

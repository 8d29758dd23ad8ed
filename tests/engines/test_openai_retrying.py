"""What is tried again, when, and how long a server is waited for."""

import asyncio
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import EngineError
from loop.engines.openai.client import RefusedError, Reply, SlowError
from loop.engines.openai.retrying import (
    OutageLimit,
    RateLimits,
    backoff_s,
    is_transient,
    retry_after_s,
    send_until_ready,
)

NOW = datetime(2026, 11, 22, 1, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status):
    """Busy, early, crowded or broken: all may be over soon."""
    assert is_transient(status)


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422, 499])
def test_what_stays_as_it_is_is_not(status):
    """The same request gets the same answer."""
    assert not is_transient(status)


def test_waits_are_spread_over_a_doubling_ceiling():
    """Full jitter: uniform from zero, so that clients do not come back together."""
    rng = Random(0)
    for attempt, ceiling in [(1, 0.5), (2, 1.0), (4, 4.0), (7, 30.0), (10_000, 30.0)]:
        waits = sorted(backoff_s(attempt, rng) for _ in range(2000))
        assert waits[0] < 0.02 * ceiling
        assert 0.98 * ceiling < waits[-1] <= ceiling
        assert waits[1000] == pytest.approx(ceiling / 2, rel=0.1)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": " 0.5 "}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Sun, 22 Nov 2026 01:00:30 GMT"}, 30.0),
        ({"Retry-After": "Sun, 22 Nov 2026 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 99 Nov 2026 00:00:00 GMT"}, None),
        ({"Retry-After": "Sun, 22 Nov 2026 01:00:30 -0000"}, 30.0),
        ({"Retry-After": "900"}, 900.0),
    ],
)
def test_the_server_says_when(headers, wait):
    """In seconds or as a date; nonsense says nothing."""
    assert retry_after_s(headers, NOW) == wait


def test_a_date_is_compared_with_the_servers_own_clock():
    """Ours may be years off."""
    headers = {
        "Retry-After": "Sun, 22 Nov 2026 01:00:07 GMT",
        "Date": "Sun, 22 Nov 2026 01:00:00 GMT",
    }
    assert retry_after_s(headers, datetime(1999, 1, 1, tzinfo=UTC)) == 7.0


@given(st.text(max_size=40))
def test_any_header_is_a_wait_or_nothing(said):
    """Servers send anything."""
    try:
        wait = retry_after_s({"Retry-After": said}, NOW)
    except EngineError:
        return
    assert wait is None or 0 <= wait <= 900


def test_a_very_long_wait_ends_the_run_with_the_way_on():
    """Nobody wants a run that sleeps for a day."""
    with pytest.raises(
        EngineError, match=r"86,400 seconds.*Run the same command again"
    ):
        retry_after_s({"Retry-After": "86400"}, NOW)


def test_patience_ends_when_nothing_answers_for_long():
    """The message says how to go on."""
    patience = OutageLimit("http://127.0.0.1:1/v1", 60.0)
    patience.failed(sent=100.0, now=100.1, reason="connection refused")
    patience.failed(sent=150.0, now=159.9, reason="connection refused")
    with pytest.raises(EngineError, match=r"has not answered for 60 s \(connection"):
        patience.failed(sent=159.0, now=160.0, reason="connection refused")


@pytest.mark.parametrize(("after", "tries"), [(30.0, 3), (-1.0, 1)])
def test_a_server_that_cannot_be_reached_is_tried_three_times(after, tries):
    """Or for as long as there is patience; one that is slow is not asked again."""
    for slow, expected in ((False, tries), (True, 1)):
        made = []

        async def fail(made=made, slow=slow):
            made.append(1)
            raise SlowError("slow") if slow else RefusedError("refused")

        with pytest.raises(SlowError if slow else RefusedError):
            asyncio.run(send_until_ready(fail, after, Soon()))
        assert len(made) == expected


def test_a_busy_server_in_between_is_there():
    """Only failures in a row mean that there is none."""
    answers = [RefusedError("gone")] * 2 + [busy()] + [RefusedError("gone")] * 2
    answers.append(Reply(200, {}, b""))
    told = []

    async def answer():
        one = answers.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    reply = asyncio.run(send_until_ready(answer, 30.0, Soon(), told.append))
    assert (reply.status, answers) == (200, [])
    assert told == ["the server is busy (HTTP 503): waiting for it"]


def test_a_wait_that_the_server_asks_for_counts_as_patience():
    """Who would wait longer than that is told at once."""
    waits = [busy({"Retry-After": "20"}), busy()]

    async def answer():
        return waits.pop(0)

    reply = asyncio.run(send_until_ready(answer, 10.0, Soon()))
    assert (reply.headers, len(waits)) == ({"Retry-After": "20"}, 1)


def test_each_wait_for_a_busy_server_may_be_twice_the_one_before():
    """Up to five seconds; that somebody waits is told once."""
    ceilings, told = [], []

    class Noting(Random):
        def uniform(self, a, b):
            """Return the lower end, and keep the upper one."""
            ceilings.append(b)
            return a

    answers = [busy() for _ in range(6)] + [Reply(200, {}, b"")]

    async def answer():
        return answers.pop(0)

    asyncio.run(send_until_ready(answer, 30.0, Noting(), told.append))
    assert ceilings == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert told == ["the server is busy (HTTP 503): waiting for it"]


def busy(headers=None):
    """Return what a busy server says."""
    return Reply(503, headers or {}, b"")


class Soon(Random):
    """Never waits."""

    def uniform(self, a, b):
        """Return the lower end, after a look at the upper one."""
        assert b <= 5.0
        return a


def test_any_answer_renews_the_patience():
    """A server that is there is not gone."""
    patience = OutageLimit("http://127.0.0.1:1/v1", 60.0)
    patience.failed(sent=100.0, now=100.1, reason="connection broken")
    patience.heard()
    patience.failed(sent=159.0, now=161.0, reason="connection broken")


@pytest.mark.parametrize(
    ("status", "headers", "all_of_them"),
    [
        (429, {}, False),
        (429, {"Retry-After": "2"}, False),
        (503, {}, True),
        (429, {"x-ratelimit-remaining-tokens": "0"}, True),
        (429, {"X-RateLimit-Remaining": " 0 "}, True),
        (429, {"x-ratelimit-remaining-tokens": "10"}, False),
        (429, {"x-ratelimit-limit-requests": "0"}, False),
        (429, {"Remaining": "0"}, False),
        (429, {"RateLimit": '"burst";r=0;t=30'}, True),
        (429, {"RateLimit": '"burst";r=1;t=30, "day";t=9;r=0'}, True),
        (429, {"RateLimit": '"burst";r=05, "day";r=100'}, False),
    ],
)
def test_what_a_server_says_of_its_limits(status, headers, all_of_them):
    """Unavailable, or nothing left of a limit: everybody waits; else the one does."""
    assert RateLimits().concerns_all(status, headers) is all_of_them


def test_an_answer_ends_a_row_of_refusals():
    """Eight without any answer in between are a limit on everything."""
    limits = RateLimits()
    for _ in range(3):
        assert [limits.concerns_all(429, {}) for _ in range(7)] == [False] * 7
        limits.answered()
    assert [limits.concerns_all(429, {}) for _ in range(9)] == [False] * 7 + [True] * 2
    fresh = RateLimits()
    assert [fresh.concerns_all(429, {}) for _ in range(8)] == [False] * 7 + [True]

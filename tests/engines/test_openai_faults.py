"""A server that fails in every way, and a run that still accounts for every case."""

import asyncio
import json
import logging
import random
import re
import subprocess
import sys
import time
from collections import Counter
from statistics import median

import pytest

from loop.core.errors import LoopError
from loop.core.records import Status
from loop.run.store import Store, read_outcomes
from tests.engines.chat_run import KEY, make_engine, run_cases
from tests.servers.answers import completion, json_http
from tests.servers.fault_server import FaultServer, seeded_plan, values_of
from tests.servers.faults import FAULTS, HUGE, End
from tests.servers.process import ROOT

SECRETS = re.compile(f"quokka|Zyzzogeton|{KEY}|Film 0")

HUGE_ONES = ("huge_body", "endless_chunks", "huge_header")
WAITING = ("retry_after_1", "retry_after_date")
"""Each of these stops the whole engine for a second."""

COMMON = sorted(set(FAULTS) - {*HUGE_ONES, *WAITING})
STUBBORN = ("status_503", "reset_before_headers", "garbage_json", "no_choices")

WITHOUT_END = ("hang", "drip_for_ever")
IN_TIME = "no answer in time"

RETRIES = 3


@pytest.fixture
def store(tmp_path):
    """Yield an empty store."""
    opened = Store(tmp_path / "store.db")
    yield opened
    opened.close()


def outcomes_of(store, summary):
    """Return the outcomes of a run by number of case."""
    return {
        int(outcome.item_id[1:]): outcome
        for outcome in read_outcomes(store, summary.run_id)
    }


def check_outcomes(server, outcomes, account):
    """Every case was asked until it was answered, and ended as what was done demands.

    A good answer that a stalled machine brings too late is asked for again: the account
    must have counted each such request as one without an answer in time.
    """
    late = 0
    assert server.per_case().keys() == outcomes.keys()
    for number, did in server.per_case().items():
        outcome = outcomes[number]
        ends = [FAULTS[name].end if name in FAULTS else End.ANSWERED for name in did]
        late += sum(end is not End.AGAIN for end in ends[:-1])
        if outcome.status is Status.ENGINE_FAILED:
            late += ends[-1] is not End.AGAIN
            assert len(did) == RETRIES + 1, (number, did)
        else:
            assert outcome.status.value == ends[-1].value, (number, did)
        if outcome.status is Status.ANSWERED:
            got = {label: field.value for label, field in outcome.fields.items()}
            assert got == values_of(number), number
    waited = sum(account[how].get(IN_TIME, 0) for how in ("retried", "failed"))
    assert late <= waited - sum(server.did()[name] for name in WITHOUT_END)


def check_account(server, account):
    """Both sides counted the same requests, and every one of them ended."""
    assert account["requests"] == len(server.account)
    ends = (account["answered"], *account["retried"].values())
    assert account["requests"] == sum(ends) + sum(account["failed"].values())


@pytest.mark.slow
def test_a_thousand_requests_with_faults_end_in_an_exact_account(store, caplog):
    """One case in five meets faults; both sides and the store agree on every one."""
    caplog.set_level(logging.DEBUG)
    remarks = []
    usual = seeded_plan(7, 0.2, COMMON, persistent=STUBBORN, attempts=RETRIES + 1)
    rare = {200: ("retry_after_date",), 700: ("retry_after_1", "huge_body")}
    with FaultServer(lambda number: rare.get(number, usual(number))) as server:
        engine = make_engine(
            server.url,
            tell=remarks.append,
            rng=random.Random(7),
            retries=RETRIES,
            timeout_s=10,
            concurrency=64,
        )
        summary, account = run_cases(engine, store, range(1000))
    outcomes = outcomes_of(store, summary)
    assert sorted(outcomes) == list(range(1000))
    check_outcomes(server, outcomes, account)
    check_account(server, account)
    ends = Counter(outcome.status for outcome in outcomes.values())
    assert ends == {
        Status.ANSWERED: summary.answered,
        Status.UNPARSED: summary.unparsed,
        Status.ENGINE_FAILED: summary.failed,
    }
    assert account["answered"] == summary.answered + summary.unparsed
    assert sum(account["failed"].values()) == summary.failed > 5
    assert server.did().keys() >= {*COMMON, *WAITING}
    seen = [*remarks, json.dumps(account), caplog.text]
    seen += [outcome.problem for outcome in outcomes.values()]
    assert not SECRETS.search("\n".join(seen))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FAULTS) - {*HUGE_ONES, "hang"}))
def test_each_fault_alone_is_seen_for_what_it_is(store, name):
    """Sent again where that may help, else an answer like any other."""
    with FaultServer(lambda number: (name,) if number % 2 else ()) as server:
        # A stalled machine must not look like the fault that is asked about.
        patience_s = 5 if name in WITHOUT_END else 60
        engine = make_engine(
            server.url, retries=RETRIES, timeout_s=patience_s, concurrency=3
        )
        summary, account = run_cases(engine, store, range(6))
    check_outcomes(server, outcomes_of(store, summary), account)
    check_account(server, account)


@pytest.mark.parametrize("name", STUBBORN)
def test_a_fault_that_persists_fails_its_case_alone(store, name):
    """The reason is kept with the case; the others are answered."""
    with FaultServer(lambda n: (name,) * 2 if n == 3 else ()) as server:
        engine = make_engine(server.url, retries=1)
        summary, account = run_cases(engine, store, range(8))
    assert (summary.answered, summary.failed) == (7, 1)
    problem = outcomes_of(store, summary)[3].problem
    assert "2 attempts" in problem
    assert sum(account["failed"].values()) == 1


@pytest.mark.slow
def test_failed_cases_are_asked_again_by_the_next_run(store):
    """A failure is never cached; what was answered is."""
    down = True
    with FaultServer(lambda n: ("status_500",) * 9 if n < 5 and down else ()) as server:
        first, _ = run_cases(make_engine(server.url, retries=1), store, range(20))
        down = False
        again, account = run_cases(make_engine(server.url), store, range(20))
    assert (first.failed, first.answered) == (5, 15)
    assert (again.asked, again.cached, again.answered) == (5, 15, 20)
    assert account["requests"] == 5


def run_apart(folder, url, count, **serving):
    """Run in a process of its own; return summary, account and peak memory."""
    arguments = [folder / "store.db", url, count, json.dumps(serving)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.chat_run", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_huge_bodies_cost_neither_memory_nor_traffic(tmp_path):
    """A server that streams hundreds of megabytes is cut off early."""
    with FaultServer() as server:
        _, _, usual = run_apart(tmp_path / "usual", server.url, 12)
    with FaultServer(lambda n: (HUGE_ONES[n % 3],)) as server:
        summary, account, peak = run_apart(
            tmp_path / "huge", server.url, 12, concurrency=4
        )
    assert summary["answered"] == 12
    assert account["requests"] == 24
    assert sum(served.sent for served in server.account) < HUGE
    assert peak < usual + 100 * 2**20


@pytest.mark.slow
def test_concurrency_falls_in_a_storm(store):
    """A server that takes four at a time is found out."""
    under_way = []

    async def crowded(wire, number):
        under_way.append(server.now)
        await asyncio.sleep(0.005)
        if server.now > 4:
            await FAULTS["status_429"].send(wire, "")
            return "status_429"
        return None

    with FaultServer() as server:
        server.hooks.append(crowded)
        engine = make_engine(server.url, retries=30)
        summary, account = run_cases(engine, store, range(800))
    assert summary.answered == 800
    check_account(server, account)
    assert median(under_way[300:]) <= 8


@pytest.mark.slow
def test_a_fixed_concurrency_is_kept_to(store):
    """Never more under way than asked for, and in a long run as many."""

    async def slow(wire, number):
        await asyncio.sleep(0.005)

    with FaultServer() as server:
        server.hooks.append(slow)
        engine = make_engine(server.url, concurrency=7)
        run_cases(engine, store, range(300))
    assert server.highest == 7


@pytest.mark.slow
def test_a_jumping_wall_clock_changes_nothing(store, monkeypatch):
    """Clocks are set while a long run goes on; waiting must not follow them."""
    rng, now = random.Random(0), time.time
    monkeypatch.setattr(time, "time", lambda: now() + rng.choice((-1, 1)) * 86_400)
    plan = {5: ("retry_after_1",), 50: ("status_429", "status_500"), 90: ("hang",)}
    started = time.monotonic()
    with FaultServer(lambda number: plan.get(number, ())) as server:
        engine = make_engine(server.url, timeout_s=2, deadline_s=600, concurrency=8)
        summary, account = run_cases(engine, store, range(200))
    assert summary.answered == 200
    check_account(server, account)
    # The deadline has not ended it; what a response asked to wait was waited.
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
def test_a_redirect_takes_no_case_to_another_host(store, status):
    """The other server is never asked, whatever the first one says."""

    async def elsewhere(wire, number):
        place = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
        head = f"HTTP/1.1 {status}\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
        await wire.send(head.encode())
        return "redirect"

    with FaultServer() as other, FaultServer() as server:
        server.hooks.append(elsewhere)
        try:
            summary, _ = run_cases(make_engine(server.url, retries=0), store, range(3))
            assert summary.failed == 3
        except LoopError as error:
            assert not SECRETS.search(str(error))
    assert other.account == []
    assert other.probes == 0


@pytest.mark.slow
def test_connections_closed_between_requests_lose_nothing(store):
    """Servers drop idle connections at any moment; that is no failure of a case."""

    async def hang_up(wire, number):
        await FAULTS["thinking"].send(wire, json.dumps(values_of(number)))
        wire.writer.close()
        return "hang_up"

    with FaultServer() as server:
        server.hooks.append(hang_up)
        engine = make_engine(server.url, concurrency=8)
        summary, account = run_cases(engine, store, range(300))
    assert summary.answered == 300
    assert len(server.account) == 300
    # A request sent into a closed connection is one that the server never saw.
    unseen = account["requests"] - len(server.account)
    assert 0 <= unseen == sum(account["retried"].values())


@pytest.mark.slow
def test_an_answer_nobody_asked_for_is_given_to_no_case(store):
    """A confused proxy sends two answers to one request: the second is for nobody."""

    async def twice(wire, number):
        await wire.send(good_answer(number) + good_answer(number + 1))
        return "twice"

    with FaultServer() as server:
        server.hooks.append(twice)
        engine = make_engine(server.url, concurrency=2)
        summary, _ = run_cases(engine, store, range(60))
    for number, outcome in outcomes_of(store, summary).items():
        got = {label: field.value for label, field in outcome.fields.items()}
        assert got in ({}, values_of(number)), number


def good_answer(number):
    """Return the response to case `number` as bytes."""
    return json_http(200, completion(json.dumps(values_of(number))))

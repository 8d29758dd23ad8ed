"""Prompts in, one completion each out, whatever the server does."""

import asyncio
import gc
import logging
import threading
import time
from itertools import count, islice

import pytest

from loop.core.errors import DataError, EngineError
from tests.engines.scripted import (
    FRAME,
    Scripted,
    ask,
    chat,
    is_balanced,
    is_case,
    make_engine,
    make_prompt,
    make_prompts,
    make_settings,
    serving,
)

KEY = "sk-very-secret"


def echo(body):
    """Answer with the case."""
    return chat(body["messages"][-1]["content"])


def failing(times, failure):
    """Return a script that fails `times` times in a row before each answer."""
    tries = {}

    def answer(body):
        text = body["messages"][-1]["content"]
        tries[text] = tries.get(text, 0) + 1
        return failure if tries[text] <= times else echo(body)

    return answer


def engine_threads():
    """Return the names of threads an engine left behind."""
    return [t.name for t in threading.enumerate() if t.name.startswith("ranloop")]


@pytest.mark.slow
def test_every_prompt_gets_its_own_answer():
    """Answers come in any order, with the index of their prompt."""
    found, account = ask(Scripted(echo), 1000)
    assert [c.text for c in found] == [f"Case: text {n}" for n in range(1000)]
    assert account["requests"] == account["answered"] == 1000
    assert account["prompt_tokens"] == 10_000
    assert account["completion_tokens"] == 2000
    assert account["cached_tokens"] == 8000


def test_an_answer_says_how_long_it_took():
    """From the request to the last byte, seconds; the loop's clock has milliseconds."""

    async def slow(body):
        await asyncio.sleep(0.05)
        return echo(body)

    found, _ = ask(Scripted(slow), 3)
    assert all(one.latency_s > 0.04 for one in found)


def test_one_engine_answers_twice_in_a_row():
    """A run and its repeats share one server."""
    with serving(Scripted(echo)) as url, make_engine(url) as engine:
        for _ in range(2):
            assert len(dict(engine.complete(make_prompts(40)))) == 40
        assert list(engine.complete([])) == []
        assert engine.account()["answered"] == 80
    assert engine_threads() == []


def test_an_engine_can_be_opened_again():
    """Closing leaves nothing behind that stands in the way."""
    with serving(Scripted(echo)) as url:
        engine = make_engine(url)
        for _ in range(2):
            with engine:
                assert len(dict(engine.complete(make_prompts(3)))) == 3


def test_prompts_are_drawn_in_the_callers_thread_and_only_as_needed():
    """A stream without end is no problem, and the runner is not made for threads."""
    drawn = []

    def prompts():
        for number in count():
            drawn.append(threading.current_thread())
            yield make_prompt(f"text {number}")

    with serving(Scripted(echo)) as url, make_engine(url, concurrency=4) as engine:
        assert len(list(islice(engine.complete(prompts()), 100))) == 100
    assert set(drawn) == {threading.current_thread()}
    assert len(drawn) < 700


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((429, {}), "HTTP 429"),
        ((500, b"oops"), "HTTP 500"),
        ((200, b"{"), "not JSON"),
        ((200, chat("{", None)), "unfinished answer"),
        ((200, b"\xff"), "not JSON"),
    ],
)
def test_a_failure_that_passes_is_tried_again(failure, reason):
    """And counted by its reason."""
    found, account = ask(Scripted(failing(1, failure)), 5)
    assert [c.finish_reason for c in found] == ["stop"] * 5
    assert account["retried"] == {reason: 5}
    assert account["requests"] == 10
    assert is_balanced(account)


def test_a_failure_that_stays_fails_its_case_alone():
    """With the number of attempts, and never the server's words."""

    def answer(body):
        if body["messages"][-1]["content"].endswith(" 3"):
            return 500, {"error": {"message": "Case: text 3"}}
        return echo(body)

    found, account = ask(Scripted(answer), 5, retries=1)
    assert found[3].finish_reason == "error"
    assert found[3].error == "HTTP 500 after 2 attempts"
    assert account["failed"] == {"HTTP 500": 1}
    assert account["answered"] == 4
    assert is_balanced(account)


def test_without_retries_there_is_one_attempt():
    """Zero is a number of retries too."""
    found, _ = ask(Scripted(lambda body: (503, {})), 1, retries=0)
    assert found[0].error == "HTTP 503 after 1 attempt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (503, {}),
        (429, {"x-ratelimit-remaining-requests": "0"}),
        (429, {"RateLimit-Remaining": "0"}),
        (429, {"RateLimit": '"default";r=0;t=1'}),
    ],
)
def test_a_limit_on_everything_holds_everybody_back(status, headers):
    """The server has said when; nobody asks before."""
    times = []

    def answer(body):
        times.append(time.monotonic())
        if len(times) == 1:
            return status, {}, {"Retry-After": "0.4", **headers}
        return echo(body)

    _, account = ask(Scripted(answer), 20, concurrency=1)
    assert times[1] - times[0] >= 0.39
    assert account["retried"] == {f"HTTP {status}": 1}


@pytest.mark.slow
@pytest.mark.parametrize("left", [{}, {"x-ratelimit-remaining-requests": "7"}])
def test_a_refusal_of_one_request_holds_only_that_one_back(left):
    """The others go on meanwhile."""
    order = []

    def answer(body):
        order.append(body["messages"][-1]["content"].split()[-1])
        if len(order) == 1:
            return 429, {}, {"Retry-After": "3", **left}
        return echo(body)

    found, account = ask(Scripted(answer), 3, concurrency=1)
    assert order == ["0", "1", "2", "0"]
    assert {one.finish_reason for one in found} == {"stop"}
    assert account["retried"] == {"HTTP 429": 1}


@pytest.mark.slow
def test_many_refusals_in_a_row_hold_everybody_back():
    """A server that refuses whatever is sent means all, whether it says so or not."""
    times = []

    def answer(body):
        times.append(time.monotonic())
        if len(times) <= 8:
            return 429, {}, {"Retry-After": "0.4"}
        return echo(body)

    _, account = ask(Scripted(answer), 20, concurrency=1)
    assert times[8] - times[7] >= 0.39
    assert account["answered"] == 20


@pytest.mark.slow
def test_too_slow_an_answer_is_a_failure():
    """`timeout_s` is the longest wait for one answer."""

    async def answer(body):
        await asyncio.sleep(600)
        return echo(body)

    # Long enough for the probe, whatever else the machine does.
    found, account = ask(Scripted(answer), 2, timeout_s=2, retries=0)
    assert found[0].error == "no answer in time after 1 attempt"
    assert is_balanced(account)


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refusal_of_everything_ends_the_run_with_the_way_on(status):
    """No case can be answered; what was answered is kept."""
    script = Scripted(
        lambda body: (status, {"error": {"message": f"{KEY} Case: text"}})
    )
    with pytest.raises(EngineError, match="run the same command again") as caught:
        ask(script, 5, key=KEY)
    assert KEY not in str(caught.value)
    assert "text" not in str(caught.value).replace("case text", "")


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (400, {"code": "context_length_exceeded"}, "does not fit the model's context"),
        (400, {"message": "maximum context length is 9"}, "does not fit the model's"),
        (
            400,
            {"type": "exceed_context_size_error"},
            "does not fit the model's context",
        ),
        (413, {}, "does not fit the model's context"),
        (422, {"message": "text 1", "code": "bad_value"}, "HTTP 422 (bad_value)"),
        (400, {"message": "text 1"}, "HTTP 400"),
    ],
)
def test_a_case_that_is_refused_fails_alone(status, error, says):
    """The frame alone was accepted, so the case is the reason; asked once per frame."""

    def answer(body):
        if body["messages"][-1]["content"][-1] in "13":
            return status, {"error": error}
        return echo(body)

    script = Scripted(answer)
    found, account = ask(script, 5)
    assert [c.finish_reason for c in found] == [
        "stop",
        "error",
        "stop",
        "error",
        "stop",
    ]
    assert says in found[1].error
    assert "text 1" not in found[1].error
    blanks = [b for _, b in script.seen if b["messages"][-1]["content"] == "Case: "]
    assert [b["max_tokens"] for b in blanks] == [1]
    assert account["failed"] == {f"HTTP {status}": 2}
    assert is_balanced(account)


@pytest.mark.parametrize("status", [202, 204])
def test_a_success_without_an_answer_is_not_called_a_redirect(status):
    """It would send people looking for another address."""
    with pytest.raises(EngineError, match=f"HTTP {status}, which is no answer"):
        ask(Scripted(lambda body: (status, b"")), 1)


def test_a_frame_that_is_refused_ends_the_run_with_the_servers_words():
    """A schema the server rejects: its words name what is wrong, and hold no case."""

    def refuse(body):
        wanted = body["messages"][-1]["content"]
        if wanted.startswith("Case: "):
            said = f"unsupported schema keyword; prompt was {wanted}!"
            return 400, {"error": {"message": said}}
        return Scripted().other(body)

    with pytest.raises(EngineError, match="unsupported schema keyword") as caught:
        ask(Scripted(refuse, refuse), 50)
    assert "text" not in str(caught.value)


def test_a_frame_too_long_for_the_context_ends_the_run():
    """Shorter cases would not help."""
    said = (400, {"error": {"code": "context_length_exceeded", "message": "too long"}})

    def refuse(body):
        blank = body["messages"][-1]["content"].startswith("Case: ")
        return said if blank else Scripted().other(body)

    with pytest.raises(EngineError, match="longer context"):
        ask(Scripted(refuse, refuse), 5)


@pytest.mark.slow
def test_what_the_stream_of_prompts_raises_reaches_the_caller():
    """A cohort's file may be damaged halfway."""

    def prompts():
        yield from make_prompts(100)
        raise DataError("line 7 is not JSON")

    with serving(Scripted(echo)) as url, make_engine(url) as engine:
        with pytest.raises(DataError, match="line 7"):
            list(engine.complete(prompts()))
        assert is_balanced(engine.account())
    assert engine_threads() == []


def test_leaving_early_stops_everything_and_the_account_still_adds_up():
    """Ctrl-C leaves the generator wherever it is."""

    async def slow(body):
        await asyncio.sleep(0.05 if body["messages"][-1]["content"][-1] == "1" else 600)
        return echo(body)

    with serving(Scripted(slow)) as url, make_engine(url) as engine:
        stream = engine.complete(make_prompts(1000))
        next(stream)
        stream.close()
        account = engine.account()
        assert is_balanced(account)
        assert account["failed"]["stopped"] == account["requests"] - account["answered"]
    assert engine_threads() == []


def test_closing_the_engine_ends_a_stream_that_someone_still_holds():
    """An interrupted run's frames keep the generator alive until later."""
    with serving(Scripted(echo)) as url:
        with make_engine(url) as engine:
            stream = engine.complete(make_prompts(10_000))
            next(stream)
        assert engine_threads() == []
        with pytest.raises(EngineError, match="closed in mid-run"):
            list(stream)
    del stream
    gc.collect()


def test_the_deadline_ends_the_run_with_the_way_on():
    """What arrived before is handed over first."""

    async def slow(body):
        await asyncio.sleep(0 if body["messages"][-1]["content"][-1] == "1" else 600)
        return echo(body)

    found = []
    with (
        serving(Scripted(slow)) as url,
        make_engine(url, deadline_s=0.3) as engine,
        pytest.raises(EngineError, match=r"deadline of 0\.3 s.*same command again"),
    ):
        found.extend(engine.complete(make_prompts(5)))
    assert is_balanced(engine.account())


def test_no_more_than_the_fixed_concurrency_is_under_way():
    """The owner of the server counts on it."""
    under_way, most = 0, 0

    async def slow(body):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.002)
        under_way -= 1
        return echo(body)

    _, account = ask(Scripted(slow), 200, concurrency=7)
    assert most == 7
    assert account["concurrency"] == {"now": 7, "highest": 7}


def test_a_large_case_is_sent_whole():
    """Over a megabyte the body goes out in pieces."""
    text = "x" * 3 * 2**20
    with serving(Scripted(lambda body: chat("{}"))) as url, make_engine(url) as engine:
        assert len(list(engine.complete([make_prompt("text" + text)]))) == 1


def test_neither_key_nor_case_text_is_logged(caplog):
    """At any level, by anyone."""
    caplog.set_level(logging.DEBUG)
    ask(Scripted(failing(1, (500, b"x"))), 5, key=KEY)
    assert KEY not in caplog.text
    assert "Case:" not in caplog.text


class Supervisor:
    """Revives a server a number of times, then gives up."""

    def __init__(self, answers, after=None):
        self.answers = list(answers)
        self.after = after
        self.calls = []

    def __call__(self):
        """Give the next answer, after what has to come first."""
        self.calls.append(threading.current_thread().name)
        if self.after is not None:
            assert self.after.wait(60)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Dying(Scripted):
    """Breaks the connection of the first `deaths` cases."""

    def __init__(self, deaths):
        super().__init__(echo)
        self.deaths = deaths
        self.died = threading.Event()

    async def handle(self, request):
        """Break or answer."""
        if request.method == "POST" and is_case(await request.json()) and self.deaths:
            self.deaths -= 1
            if not self.deaths:
                self.died.set()
            request.transport.abort()
            await asyncio.sleep(0.05)
        return await super().handle(request)


def test_a_revived_server_is_asked_once_more_without_counting():
    """It was not the case's fault; all who waited share one call."""
    server = Dying(8)
    # A request that is sent only after the revival is not of those who waited.
    supervisor = Supervisor([True], after=server.died)
    found, account = ask(server, 40, revive=supervisor, retries=0, concurrency=8)
    assert {c.finish_reason for c in found} == {"stop"}
    assert account["retried"] == {"connection broken": 8}
    assert is_balanced(account)
    assert len(supervisor.calls) == 1
    assert not supervisor.calls[0].startswith(("MainThread", "ranloop"))


class Failing(Scripted):
    """Answers the first `deaths` cases with the errors of a dying server."""

    def __init__(self, deaths):
        super().__init__(self.answer)
        self.deaths = deaths

    def answer(self, body):
        """Fail or answer."""
        if self.deaths:
            self.deaths -= 1
            return 500, {"error": "EngineCore died"}
        return echo(body)


def test_a_dying_servers_errors_do_not_count_once_it_is_revived():
    """A vLLM answers 500 for a while before its connections break."""
    supervisor = Supervisor([True] * 8)
    found, account = ask(Failing(8), 40, revive=supervisor, retries=0, concurrency=8)
    assert {c.finish_reason for c in found} == {"stop"}
    assert account["retried"] == {"HTTP 500": 8}
    assert is_balanced(account)


def test_an_error_of_a_healthy_server_counts():
    """Its supervisor says it never died."""
    found, account = ask(Failing(1), 1, revive=Supervisor([False]), retries=0)
    assert found[0].error == "HTTP 500 after 1 attempt"
    assert is_balanced(account)


def test_another_draw_has_another_seed_and_the_same_connections():
    """Repeats share the open server; what they ask differs in the seed alone."""
    script = Scripted(echo)
    with serving(script) as url, make_engine(url, make_settings(seed=5)) as engine:
        assert len(dict(engine.complete(make_prompts(3)))) == 3
        drawn = engine.redraw(2)
        assert drawn.identity() == engine.identity()
        assert len(dict(drawn.complete(make_prompts(3)))) == 3
        assert len(dict(engine.complete(make_prompts(3)))) == 3
    assert [body["seed"] for body in script.cases] == [5] * 3 + [7] * 3 + [5] * 3
    assert engine.account()["requests"] == 9


def test_a_case_that_kills_its_server_again_counts_then():
    """Otherwise one case could go on for ever."""
    supervisor = Supervisor([True])
    found, account = ask(Dying(9), 1, revive=supervisor, retries=1)
    assert found[0].error == "connection broken after 2 attempts"
    assert account["requests"] == 3


def test_a_server_that_is_gone_for_good_ends_the_run():
    """The supervisor's own message reaches the caller."""
    supervisor = Supervisor([EngineError("vLLM died twice")])
    with pytest.raises(EngineError, match="vLLM died twice"):
        ask(Dying(9), 5, revive=supervisor)


def test_a_server_nobody_supervises_is_tried_again_as_usual():
    """Supervision may have ended."""
    found, account = ask(Dying(1), 3, revive=Supervisor([False]))
    assert {c.finish_reason for c in found} == {"stop"}
    assert account["retried"] == {"connection broken": 1}


def test_frames_are_kept_apart():
    """One call per label has one frame per label."""
    other = type(FRAME)(
        call="x", messages=FRAME.messages[1:], fields=("x",), schema={"type": "object"}
    )
    script = Scripted(echo)
    with (
        serving(script) as url,
        make_engine(url, make_settings(temperature=0.5)) as engine,
    ):
        prompts = [make_prompt("text a"), make_prompt("text b", other)] * 10
        assert len(dict(engine.complete(prompts))) == 20
    assert sorted({len(body["messages"]) for body in script.cases}) == [1, 2]

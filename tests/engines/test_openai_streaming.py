"""A streamed answer is the unstreamed one, heard while it is written, never half."""

import json
import threading
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import EngineError
from loop.engines.base import Streaming
from loop.engines.openai.client import MOST_BYTES, HalfError, Reply
from loop.engines.openai.completions import UnreadableAnswerError, read_answer
from loop.engines.openai.streaming import StreamedAnswer
from tests.engines.chat_run import make_engine as make_chat
from tests.engines.chat_run import make_work
from tests.engines.scripted import (
    CUT,
    DONE,
    Scripted,
    chat,
    event,
    events,
    is_balanced,
    make_engine,
    make_prompt,
    make_prompts,
    part,
    serving,
    streaming,
)
from tests.servers.fault_server import FaultServer
from tests.servers.faults import FAULTS

HEAD = Reply(200, {}, b"")
ASKED_TWICE = 5.0
"""Longest that a server of these tests waits for its client, seconds."""


def read(stream, cuts=()):
    """Return the completion that a stream is read as when it is cut at `cuts`."""
    answer = StreamedAnswer()
    places = [0, *sorted(at % (len(stream) + 1) for at in cuts), len(stream)]
    for start, end in pairwise(places):
        if answer.take(stream[start:end]):
            break
    return read_answer(answer.reply(HEAD).body)


def hear(script, prompts=1, tell=None, **options):
    """Return completions in order, what was heard of them, and the account."""
    heard = []
    tell = tell or (lambda index, text: heard.append((index, text)))
    with serving(script) as url, make_engine(url, **options) as engine:
        found = dict(engine.stream(make_prompts(prompts), tell))
        return [found[number] for number in range(prompts)], heard, engine.account()


def whole(body):
    """Answer with the case."""
    return chat(body["messages"][-1]["content"])


def first_streams(*pieces):
    """Answer the first request by a stream, and every other one whole."""
    asked = []

    def answer(body):
        asked.append(body)
        return [*pieces] if len(asked) == 1 else whole(body)

    return answer


@given(
    st.text(),
    st.text(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 2**16)),
    st.booleans(),
)
def test_a_stream_is_read_as_the_object_it_stands_for(text, thought, end, cuts, raw):
    """Whatever is in it, wherever it is cut, however its lines end."""
    data = chat(text, reasoning_content=thought)
    lines = []
    for one in events(data):
        words = one.decode()
        if raw and words.startswith("data: {"):
            # As servers do it that send UTF-8 as it is.
            words = json.dumps(json.loads(words[6:]), ensure_ascii=False)
            words = f"data:{words}\n\n"
        lines.append(f": still here\nevent: message\nid: 7\n{words}")
    stream = "".join(lines).replace("\n", end).encode()
    assert read(stream, cuts) == read_answer(json.dumps(data).encode())


@pytest.mark.parametrize(
    "data",
    [
        chat("cut", "length"),
        chat("", "content_filter"),
        chat(None, refusal="I cannot help"),
        chat("", reasoning_content="hm"),
        chat("a", reasoning="hm"),
        chat("<think>hm</think> a"),
        {**chat("a"), "usage": None},
        {name: value for name, value in chat("a").items() if name != "usage"},
    ],
)
def test_however_an_answer_ends_it_ends_alike(data):
    """Reasons, refusals, thinking and tokens."""
    stream = b"".join(events(data))
    assert read(stream) == read_answer(json.dumps(data).encode())


@pytest.mark.parametrize(
    "stream",
    [
        b"".join(events(chat("yes"))[:-1]),
        b"".join(events(chat("yes"))).rstrip(),
        b"\xef\xbb\xbf" + b"".join(events(chat("yes"))),
        b"\n\n" + b"".join(events(chat("yes"))),
        b"event: ping\ndata: {}\n\n" + b"".join(events(chat("yes"))),
        b"".join([*events(chat("yes")), part(content="no")]),
        b"".join(
            [
                event({"choices": [{"index": 1, "delta": {"content": "no"}}]}),
                *events(chat("yes")),
            ]
        ),
    ],
    ids=["no [DONE]", "no end of line", "BOM", "blank", "ping", "after", "second"],
)
def test_what_servers_do_otherwise_is_no_harm(stream):
    """Only a finish reason makes an answer whole; [DONE] is not needed for that."""
    assert read(stream) == read_answer(json.dumps(chat("yes")).encode())


BEGUN = b"".join(events(chat("present"))[:3])


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (b"", "unfinished answer"),
        (DONE, "unfinished answer"),
        (part("no idea"), "unfinished answer"),
        (b'data: {"choices": [{"delta"', "not JSON"),
        (b"data: oops\n\n", "not JSON"),
        (b'data: {"choices": \xff}\n\n', "not JSON"),
        (event([1]), "not a chat completion"),
        (event({"choices": [{"message": {"content": "x"}}]}), "not a chat completion"),
        (event({"choices": [{"delta": {"content": 7}}]}), "not a chat completion"),
        (b"<html>\n", "not a stream of events"),
        (b'{"choices": []}\n\n', "not a stream of events"),
    ],
)
def test_half_an_answer_is_none(rest, why):
    """Whatever comes after its beginning, and however the stream ends."""
    with pytest.raises(UnreadableAnswerError, match=why):
        read(BEGUN + rest)


@pytest.mark.parametrize("stream", [b"", b"\n\n", b": nothing\n\n", DONE])
def test_a_stream_without_an_answer_is_none(stream):
    """Nor is it an empty answer."""
    with pytest.raises(UnreadableAnswerError, match="unfinished answer"):
        read(stream)


@pytest.mark.parametrize(
    "error",
    [
        event({"error": {"message": "present", "code": 503}}),
        b"event: error\n" + event({"message": "present", "code": 503}),
        event({"object": "error", "message": "present", "code": 503}),
        b'error: {"code": 503, "message": "present"}\n\n',
        event(
            {
                "error": {"message": "present", "code": 503},
                "choices": [{"delta": {"content": ""}, "finish_reason": "stop"}],
            }
        ),
    ],
    ids=["openai", "event", "vllm", "llama.cpp", "beside a choice"],
)
def test_an_error_in_mid_answer_has_its_status(error):
    """As if it had come instead of the answer."""
    answer = StreamedAnswer()
    assert answer.take(BEGUN + error)
    assert answer.reply(HEAD).status == 503


def test_a_line_end_that_is_cut_in_two_ends_one_line():
    """Or the name of the event would be lost."""
    answer = StreamedAnswer()
    answer.take(BEGUN + b"event: error\r")
    answer.take(b"\n" + event({"message": "busy", "code": 503}))
    assert answer.reply(HEAD).status == 503


@pytest.mark.parametrize("code", [400, 599])
def test_an_error_has_the_status_of_a_failure(code):
    """From the first to the last there is."""
    answer = StreamedAnswer()
    assert answer.take(BEGUN + event({"error": {"code": code}}))
    assert answer.reply(HEAD).status == code


@pytest.mark.parametrize(
    "code", ["server_error", None, 200, 399, 600, 7, True, {}, 503.0]
)
def test_an_error_without_a_status_breaks_the_answer_off(code):
    """What it says is not repeated: it may quote the case."""
    with pytest.raises(HalfError, match=r"^error in mid-answer$"):
        read(BEGUN + event({"error": {"message": "present", "code": code}}))


def test_a_line_of_a_megabyte_is_read():
    """It comes in many pieces, and none of them is read twice."""
    data = chat("long " * 200_000)
    stream = b"".join(events(data, size=10**6))
    assert read(stream, range(0, len(stream), 4096)).text == "long " * 200_000


@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * (MOST_BYTES + 1),
        b"data: " + b"x" * (MOST_BYTES + 1) + b"\n",
        (b"data: " + b"x" * 2**16 + b"\n") * (MOST_BYTES // 2**16),
        part(content="x" * (MOST_BYTES // 3)) * 4,
        b'{"' + b" " * MOST_BYTES,
    ],
    ids=["line", "whole line", "lines", "text", "object"],
)
def test_an_answer_without_end_is_given_up(stream):
    """One line, an event without end, many events, or an object that is no stream."""
    with pytest.raises(HalfError, match="answer over 8 MiB"):
        read(stream, range(0, len(stream), 65_536))


def test_long_transport_is_no_long_answer():
    """What is sent around the text is not counted against it."""
    padded = b": " + b"x" * 100_000 + b"\n"
    assert read(b"".join(padded + one for one in events(chat("y" * 400)))).text


def test_an_event_is_counted_only_until_it_is_read():
    """Of its lines, only the text remains: many long events are no long answer."""
    empty = part(content="").rstrip() + b" " * (MOST_BYTES // 4) + b"\n\n"
    stream = empty * 6 + b"".join(events(chat("y")))
    assert read(stream, range(0, len(stream), 65_536)).text == "y"


def test_the_engine_streams_what_it_would_have_answered():
    """The same completions and the same account; the same request but for streaming."""
    script = Scripted(streaming(whole))
    streamed, heard, account = hear(script, 30)
    plain = Scripted(streaming(whole))
    with serving(plain) as url, make_engine(url) as engine:
        assert isinstance(engine, Streaming)
        found = dict(engine.complete(make_prompts(30)))
        counted = engine.account()
    assert [one._replace(latency_s=0) for one in streamed] == [
        found[number]._replace(latency_s=0) for number in range(30)
    ]
    counts = ("requests", "answered", "retried", "failed", "cached_tokens")
    assert [account[one] for one in counts] == [counted[one] for one in counts]
    assert all(one.pop("stream") and one.pop("stream_options") for one in script.cases)
    assert sorted(map(json.dumps, script.cases)) == sorted(map(json.dumps, plain.cases))
    assert {index: text for index, text in heard} == {
        number: f"Case: text {number}" for number in range(30)
    }


def test_it_is_heard_while_it_is_written():
    """The server goes on only when its first words were heard, in the asking thread."""
    known, late, threads = threading.Event(), [], set()

    def wait():
        if not known.wait(ASKED_TWICE):
            late.append("never heard")

    def tell(index, text):
        threads.add(threading.current_thread())
        if text == "pre":
            known.set()

    first, *rest = [part(content="pre"), part(content="sent"), part("stop"), DONE]
    script = Scripted(first_streams(first, wait, *rest))
    (found,), _, _ = hear(script, tell=tell)
    assert (found.text, late) == ("present", [])
    assert threads == {threading.current_thread()}


def test_reasoning_is_not_heard_as_text():
    """Where a server gives it apart."""
    script = Scripted(streaming(lambda body: chat("yes", reasoning_content="hm " * 9)))
    (found,), heard, _ = hear(script)
    assert (found.text, found.thinking) == ("yes", "hm " * 9)
    assert {text for _, text in heard} <= {"", "yes"}


def test_who_hears_slowly_hears_the_newest_and_holds_nothing_up():
    """The server has written everything before the first words are taken note of."""
    written, heard = threading.Event(), []

    def tell(index, text):
        heard.append(text)
        assert written.wait(ASKED_TWICE)

    gate = threading.Event()
    pieces = [part(content=f"{number} ") for number in range(100)]
    # Each on its own, so that the client's side has a hundred of them to tell.
    apart = [one for piece in pieces[1:] for one in (piece, lambda: time.sleep(0.002))]
    end = (part("stop"), DONE, written.set)
    script = Scripted(first_streams(pieces[0], gate.wait, *apart, *end))
    with serving(script) as url, make_engine(url) as engine:

        def first(index, text):
            gate.set()
            tell(index, text)

        ((_, found),) = engine.stream(make_prompts(1), first)
    assert found.text == "".join(f"{number} " for number in range(100))
    assert heard[-1] == found.text
    assert len(heard) < 20


def test_a_bug_in_who_hears_comes_out_and_ends_the_asking():
    """It is neither swallowed nor counted against the server."""

    def tell(index, text):
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        hear(Scripted(streaming(whole)), 3, tell)
    names = [one.name for one in threading.enumerate()]
    assert not [name for name in names if name.startswith("ranloop")]


def test_a_server_that_does_not_stream_answers_all_the_same():
    """It is asked once, and nothing is heard before the whole."""
    script = Scripted(whole)
    found, heard, account = hear(script, 3)
    assert [one.text for one in found] == [f"Case: text {n}" for n in range(3)]
    assert {text for _, text in heard} <= {""}
    assert account["requests"] == account["answered"] == len(script.cases) == 3


@pytest.mark.parametrize("status", [400, 405, 422, 501])
def test_a_server_that_refuses_to_stream_is_asked_without(status):
    """Found out once, and no attempt is lost by it."""

    def refuse(body):
        return (
            (status, {"error": "no stream_options"})
            if "stream" in body
            else whole(body)
        )

    script = Scripted(refuse)
    with serving(script) as url, make_engine(url, retries=0, concurrency=1) as engine:
        for _ in range(2):
            found = dict(engine.stream(make_prompts(3), lambda index, text: None))
            assert [found[n].text for n in range(3)] == [
                f"Case: text {n}" for n in range(3)
            ]
        account = engine.account()
    assert ["stream" in body for body in script.cases] == [True] + [False] * 6
    assert account["retried"] == {f"HTTP {status}": 1}
    assert is_balanced(account)


def test_finding_that_out_is_no_attempt():
    """What comes afterwards is counted as it always was."""
    script = Scripted(lambda body: (400 if "stream" in body else 500, {}))
    (found,), _, account = hear(script, retries=0)
    assert found.error == "HTTP 500 after 1 attempt"
    assert (account["retried"], account["failed"]) == ({"HTTP 400": 1}, {"HTTP 500": 1})
    assert is_balanced(account)


def test_a_refused_case_is_no_refused_stream():
    """The next one is streamed; one too long is not even asked twice."""
    said = {
        "Case: text 0": (400, {"error": {"message": "bad words"}}),
        "Case: text 1": (400, {"error": {"code": "context_length_exceeded"}}),
    }

    def answer(body):
        refusal = said.get(body["messages"][-1]["content"])
        return refusal or streaming(whole)(body)

    script = Scripted(answer)
    found, heard, account = hear(script, 3, concurrency=1)
    assert [one.error for one in found] == [
        "the server refused it: HTTP 400",
        "the prompt does not fit the model's context",
        "",
    ]
    assert [bool(body.get("stream")) for body in script.cases] == [
        True,
        False,
        True,
        True,
    ]
    assert heard[-1] == (2, "Case: text 2")
    assert is_balanced(account)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ((CUT,), "answer broken off"),
        ((b'data: {"cho', CUT), "answer broken off"),
        ((), "unfinished answer"),
        ((b"data: oops\n\n",), "not JSON"),
        ((b"<html>\n",), "not a stream of events"),
        ((event({"error": {"message": "x", "code": 500}}),), "HTTP 500"),
        ((event({"error": {"message": "x", "code": 429}}),), "HTTP 429"),
        ((event({"error": {"message": "x"}}),), "error in mid-answer"),
    ],
)
def test_what_breaks_in_mid_answer_is_asked_for_again(rest, why):
    """The second answer alone is heard in the end; without it there is an error."""
    begun = (part(content="Case: half"), *rest)
    script = Scripted(first_streams(*begun))
    (found,), heard, account = hear(script)
    assert found.text == "Case: text 0"
    # Whoever only asks for fewer requests can stream; else the whole is asked for.
    streamed = ["stream" in body for body in script.cases]
    assert streamed == [True, why == "HTTP 429"]
    assert account["retried"] == {why: 1}
    assert heard[-1] == (0, "")
    (found,), _, account = hear(Scripted(first_streams(*begun)), retries=0)
    assert found == ("", "error", f"{why} after 1 attempt", *found[3:])
    assert account["failed"] == {why: 1}
    assert is_balanced(account)


def test_an_answer_that_is_begun_anew_is_heard_anew():
    """Busy servers may be asked to stream again: what was heard before goes."""
    asked = []

    def answer(body):
        asked.append(body)
        busy = event({"error": {"message": "busy", "code": 429}})
        half = [part(content="half"), busy]
        return half if len(asked) == 1 else events(whole(body))

    (found,), heard, _ = hear(Scripted(answer))
    texts = [text for _, text in heard]
    assert all(body["stream"] for body in asked)
    assert texts[-1] == found.text == "Case: text 0"
    later = [text for text in texts if text != "half"]
    assert texts == ["half"] * (len(texts) - len(later)) + later
    assert all(found.text.startswith(text) for text in later)


def test_a_refusal_in_mid_answer_is_the_cases_own():
    """As its status says; the others go on."""

    def answer(body):
        if not body["messages"][-1]["content"].endswith("1"):
            return events(whole(body))
        error = {"message": "n_ctx", "code": 400, "type": "exceed_context_size_error"}
        return [part(content="x"), event({"error": error})]

    found, _, _ = hear(Scripted(answer), 3)
    assert [one.error for one in found] == [
        "",
        "the prompt does not fit the model's context",
        "",
    ]


@pytest.mark.slow
def test_a_stream_without_end_is_ended_in_time():
    """Signs of life are no answer."""
    release = threading.Event()

    def drip(body):
        return [
            part(content="Case"),
            *[b": still here\n", lambda: release.wait(0.1)] * 50,
        ]

    try:
        (found,), heard, account = hear(Scripted(drip), retries=0, timeout_s=1)
    finally:
        release.set()
    assert found.error == "no answer in time after 1 attempt"
    assert (0, "Case") in heard
    assert account["failed"] == {"no answer in time": 1}


def test_a_connection_that_stays_open_holds_no_answer_up():
    """[DONE] ends it, whatever the server does then."""
    let_go, late = threading.Event(), []

    def wait():
        if not let_go.wait(ASKED_TWICE):
            late.append("waited for")

    script = Scripted(first_streams(*events(chat("yes")), wait))
    with serving(script) as url, make_engine(url) as engine:
        ((_, found),) = engine.stream([make_prompt("text")], lambda index, text: None)
        let_go.set()
    assert (found.text, late) == ("yes", [])


def test_a_stream_can_be_stopped():
    """Whoever stops listening ends the asking; nothing goes on behind."""
    gone = threading.Event()
    script = Scripted(
        lambda body: [part(content="a"), lambda: gone.wait(ASKED_TWICE), DONE]
    )
    heard = []

    class Enough(Exception):
        """Somebody has heard enough."""

    def tell(index, text):
        heard.append(text)
        raise Enough

    with serving(script) as url, make_engine(url) as engine:
        with pytest.raises(Enough):
            list(engine.stream(make_prompts(1), tell))
        gone.set()
        account = engine.account()
    assert heard == ["a"]
    assert account["failed"] == {"stopped": 1}


@pytest.mark.slow
def test_whatever_goes_wrong_ends_as_it_does_without_streaming():
    """Every fault of the failing server: the same answers after as many requests."""
    names = sorted(FAULTS)
    ends = []
    for ask in ("complete", "stream"):
        with FaultServer(lambda number: (names[number],)) as server:
            work = make_work(range(len(names)))
            prompts = [prompt for item in work.items for prompt in work.plan(item)]
            heard = ((lambda index, text: None),) if ask == "stream" else ()
            with make_chat(server.url, timeout_s=2, concurrency=64) as engine:
                found = dict(getattr(engine, ask)(prompts, *heard))
                account = engine.account()
            assert is_balanced(account)
            ends.append(
                {
                    name: (server.per_case()[number], found[number][:3])
                    for number, name in enumerate(names)
                }
            )
    assert ends[0] == ends[1]


def test_an_engine_that_is_closed_in_mid_answer_says_so():
    """From another thread, as a person stops a try in the workbench."""
    begun, gone = threading.Event(), threading.Event()
    script = Scripted(
        lambda body: [part(content="a"), lambda: gone.wait(ASKED_TWICE), DONE]
    )
    with serving(script) as url, make_engine(url) as engine:

        def close():
            begun.wait(ASKED_TWICE)
            engine.__exit__(None, None, None)

        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(EngineError, match="closed in mid-run"):
            list(engine.stream(make_prompts(1), lambda index, text: begun.set()))
        gone.set()
        closing.join()

"""What follows from one attempt: an answer, another one later, or the end of it all."""

import asyncio
from random import Random

import pytest

from loop.core.config import ServingSettings
from loop.core.errors import EngineError
from loop.engines.openai.client import (
    Endpoint,
    HalfError,
    LinkError,
    RefusedError,
    Reply,
    SlowError,
)
from loop.engines.openai.completions import make_prefix
from loop.engines.openai.concurrency import ConcurrencyLimit
from loop.engines.openai.probe import SameServer
from loop.engines.openai.sending import (
    Account,
    PendingPrompt,
    Sender,
    _refuses_streaming,
)
from tests.engines.scripted import FRAME, make_prompt, make_settings
from tests.engines.test_openai_client import _Loop

URL = "http://127.0.0.1/v1"
ANSWER = (
    b'{"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}],'
    b' "usage": {"prompt_tokens": 10, "completion_tokens": 2}}'
)


class Longest(Random):
    """Waits as long as it may."""

    def uniform(self, a, b):
        """Return the upper end."""
        return b


class Line:
    """A client that is given replies and failures in their order."""

    def __init__(self, *said, **serving):
        """Take what comes back; the server streams."""
        serving = {"patience_s": 60, "retries": 2, **serving}
        self.endpoint = Endpoint(
            url=URL, model="m", serving=ServingSettings(**serving), key="sk-1"
        )
        self.said, self.streams, self.asked = list(said), True, []

    async def ask(self, body, *, fresh=False, take=None):
        """Return or raise the next one."""
        self.asked.append((fresh, b'"stream":true' in body))
        one = self.said.pop(0)
        if isinstance(one, Exception):
            raise one
        if take is not None and one.status == 200:
            take(one.body)
        return one

    async def get(self, url):
        """Return no page: this server tells nothing of itself."""
        return Reply(404, {}, b"")


class Sent:
    """Sends one prompt over a line, so many times, and keeps what came of it."""

    def __init__(self, line, times=1, hear=None):
        """Send it."""
        self.line, self.account = line, Account()
        self.concurrency = ConcurrencyLimit(ServingSettings())
        # By a clock that stands still while nobody waits.
        with asyncio.Runner(loop_factory=_Loop) as runner:
            self.found = runner.run(self._send(times, hear))

    async def _send(self, times, hear):
        same = SameServer(self.line, {}, doubtful=False)
        sender = Sender(
            self.line,
            account=self.account,
            concurrency=self.concurrency,
            rng=Longest(),
            same=same,
        )
        settings = make_settings()
        prefix = make_prefix(FRAME, self.line.endpoint, settings, constrained=True)
        self.job = PendingPrompt(3, make_prompt("text 3"), prefix)
        found = [await sender.send(self.job, hear) for _ in range(times)]
        self.resume_at = sender.resume_at
        self.doubtful = same.doubtful
        await sender.close()
        return found

    @property
    def attempts(self):
        """Return how many attempts count, and how often it was sent."""
        return self.job.attempts, self.job.sends


def reply(status, body=b"{}", **headers):
    """Return a response; an underscore in a header's name stands for a hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, body)


@pytest.mark.parametrize(
    ("failure", "limit", "attempts", "doubtful"),
    [
        (SlowError("no answer in time"), 8, 1, False),
        (HalfError("answer broken off"), 16, 1, False),
        (LinkError("connection broken"), 16, 1, False),
        (RefusedError("connection refused"), 16, 0, True),
    ],
)
def test_a_failure_of_the_line_counts_where_the_server_may_have_seen_the_prompt(
    failure, limit, attempts, doubtful
):
    """One that is slow has too much to do; one that was away may be another now."""
    sent = Sent(Line(failure))
    assert sent.found == [0.5]
    assert (sent.attempts, sent.concurrency.limit) == ((attempts, 1), limit)
    assert sent.doubtful is doubtful
    assert sent.account.as_data() == {
        "requests": 1,
        "answered": 0,
        "retried": {str(failure): 1},
        "failed": {},
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cached_tokens": 0,
    }


def test_a_prompt_is_sent_again_on_a_new_connection_until_its_attempts_are_over():
    """Only the first attempt takes a connection that was kept."""
    line = Line(*[reply(500)] * 3)
    sent = Sent(line, times=3)
    assert sent.found[:2] == [0.5, 1.0]
    assert sent.found[2].error == "HTTP 500 after 3 attempts"
    assert line.asked == [(False, False), (True, False), (True, False)]
    assert (sent.account.retried, sent.account.failed) == (
        {"HTTP 500": 2},
        {"HTTP 500": 1},
    )


def test_the_waits_for_a_server_that_is_away_end_at_five_seconds():
    """None of these attempts counts."""
    line = Line(*[RefusedError("connection refused")] * 6)
    sent = Sent(line, times=6)
    assert sent.found == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert sent.attempts == (0, 6)


@pytest.mark.parametrize(
    ("refusal", "wait", "limit", "resume_at"),
    [
        (reply(429), 0.5, 8, 0),
        (reply(429, Retry_After="3"), 3.5, 8, 0),
        (reply(429, Retry_After="3", RateLimit_Remaining="0"), 3.5, 8, 3),
        (reply(503, Retry_After="3"), 3.5, 8, 3),
        (reply(503), 0.5, 8, 0),
        (reply(500, Retry_After="3"), 3.5, 16, 0),
        (reply(408), 0.5, 16, 0),
    ],
)
def test_a_refusal_that_passes_says_how_long_and_for_whom(
    refusal, wait, limit, resume_at
):
    """Of one request or of all; only who asks for fewer requests gets fewer."""
    sent = Sent(Line(refusal))
    assert sent.found == [wait]
    assert (sent.attempts, sent.concurrency.limit) == ((1, 1), limit)
    assert sent.resume_at == resume_at


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (204, "refuses to go on: it answers with HTTP 204, which is no answer. Corr"),
        (299, "refuses to go on: it answers with HTTP 299, which is no answer. Corr"),
        (300, "answers with a redirect (HTTP 300), and case text is not sent after"),
        (399, "answers with a redirect (HTTP 399), and case text is not sent after"),
        (401, "refuses to go on: it no longer accepts the API key (HTTP 401). Corr"),
        (402, "refuses to go on: the account has no credit (HTTP 402). Correct it"),
        (403, "refuses to go on: it forbids the request (HTTP 403). Correct it and"),
        (404, "refuses to go on: it no longer knows the model or the path (HTTP 40"),
    ],
)
def test_what_no_prompt_can_help_ends_it_all(status, said):
    """With the way on; a redirect may lead anywhere."""
    with pytest.raises(EngineError) as caught:
        Sent(Line(reply(status)))
    assert str(caught.value).startswith(f"{URL} {said}")


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b"{}", "the server refused it: HTTP 400"),
        (
            422,
            b'{"error": {"code": "bad_value"}}',
            "the server refused it: HTTP 422 (bad_value)",
        ),
        (413, b"{}", "the prompt does not fit the model's context"),
        (
            400,
            b'{"error": {"code": "context_length_exceeded"}}',
            "the prompt does not fit the model's context",
        ),
    ],
)
@pytest.mark.parametrize(
    "blank", [reply(200, ANSWER), reply(503), SlowError("no answer in time")]
)
def test_a_prompt_that_is_refused_fails_alone_unless_its_frame_is(
    status, body, error, blank
):
    """Whether it is may be unknown: then the next one that is refused asks again."""
    known = isinstance(blank, Reply) and blank.status == 200
    said = [reply(status, body), blank] * 2
    line = Line(*(said[:3] if known else said), patience_s=0.001)
    sent = Sent(line, times=2)
    assert [one.error for one in sent.found] == [error] * 2
    assert line.said == []
    assert sent.account.failed == {f"HTTP {status}": 2}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"error": {"message": "no\\nsk-1"}}',
            "it says: no ***\nCorrect the prompt, the schema or extra_body in "
            ".ranloop/config.yaml, then run again.",
        ),
        (
            b'{"error": {"message": "longer than the model"}}',
            "it says: longer than the model\nShorten the prompt, or serve the model "
            "with a longer context, then run again.",
        ),
        (
            b"{}",
            "it says: nothing else\nCorrect the prompt, the schema or extra_body in "
            ".ranloop/config.yaml, then run again.",
        ),
    ],
)
def test_a_frame_that_is_refused_is_told_with_the_servers_words(body, said):
    """On one line and without the key: no case was in what it was sent."""
    with pytest.raises(EngineError) as caught:
        Sent(Line(reply(400), reply(400, body)))
    assert str(caught.value) == (
        f"{URL} refuses the prompt without any case in it (HTTP 400); {said}"
    )


STREAM = (
    b'data: {"choices": [{"delta": {"content": "{}"}, "finish_reason": "stop"}]}\n\n'
)
HALF = b'data: {"choices": [{"delta": {"content": "{"}}]}\n\n'


@pytest.mark.parametrize(
    ("first", "streamed"),
    [
        (SlowError("no answer in time"), True),
        (RefusedError("connection refused"), True),
        (LinkError("connection broken"), True),
        (HalfError("answer broken off"), False),
        (reply(200, HALF), False),
        (reply(429), True),
        (reply(503), True),
        (reply(500), False),
    ],
)
def test_what_went_wrong_while_it_was_heard_is_asked_for_as_a_whole(first, streamed):
    """Unless nothing speaks against streaming; what was heard before is taken back."""
    heard = []
    line = Line(first, reply(200, STREAM if streamed else ANSWER))
    sent = Sent(
        line, times=2, hear=lambda index, said: heard.append((index, said.text))
    )
    assert sent.found[1].text == "{}"
    assert line.asked == [(False, True), (True, streamed)]
    begun = [(3, "{")] if isinstance(first, Reply) and first.status == 200 else []
    assert heard == [*begun, (3, ""), *[(3, "{}")] * streamed]
    assert sent.account.answered == 1


@pytest.mark.parametrize(
    ("status", "body", "refuses"),
    [
        (200, b"{}", False),
        (302, b"{}", False),
        (399, b"{}", False),
        (400, b"{}", True),
        (400, b'{"error": {"code": "context_length_exceeded"}}', False),
        (401, b"{}", False),
        (404, b"{}", False),
        (405, b"{}", True),
        (408, b"{}", False),
        (413, b"{}", False),
        (422, b"{}", True),
        (429, b"{}", False),
        (499, b"{}", True),
        (500, b"{}", False),
        (501, b"{}", True),
        (503, b"{}", False),
    ],
)
def test_a_server_may_refuse_how_it_is_asked(status, body, refuses):
    """What is wrong with the prompt, the key or the server is wrong either way."""
    assert _refuses_streaming(reply(status, body)) is refuses


def test_what_was_under_way_at_the_end_is_counted_as_stopped():
    """Once; what has ended is where it was."""
    account = Account()
    account.settle()
    assert account.as_data()["failed"] == {}
    account.requests, account.answered = 9, 2
    account.retried["x"], account.failed["y"] = 1, 2
    for _ in range(2):
        account.settle()
        assert account.failed == {"y": 2, "stopped": 4}

"""What is found out about a server before any case is sent, and after an outage."""

import asyncio
import json
import re
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from loop.core.config import Config, ServingSettings
from loop.core.digests import digest_text
from loop.core.errors import EngineError, NoEffectError
from loop.engines.base import Settings, get_engine
from loop.engines.openai import ChatEngine, Endpoint
from loop.engines.openai.client import LinkError, RefusedError, Reply
from loop.engines.openai.probe import (
    Contradiction,
    Probe,
    SameServer,
    find_model,
    read_server,
)
from tests.engines.scripted import (
    Scripted,
    chat,
    ignore,
    is_balanced,
    is_case,
    make_engine,
    make_prompt,
    make_prompts,
    make_settings,
    obey,
    serving,
)

KEY = "sk-very-secret"


def refusal(script, settings=None, **options):
    """Return what entering the engine says."""
    with (
        serving(script) as url,
        pytest.raises(EngineError) as caught,
        make_engine(url, settings, **options),
    ):
        pass
    assert not any(is_case(body) for _, body in script.seen)
    return str(caught.value)


def identity(script, **options):
    """Return the identity of an engine."""
    with serving(script) as url, make_engine(url, **options) as engine:
        return engine.identity()


def test_what_its_owner_says_of_the_model_is_part_of_the_identity():
    """The revision, in any words, and every further field of a request."""
    plain = identity(Scripted())
    told = identity(Scripted(), revision="of March", extra_body={"top_k": 1})
    assert (plain["revision"], plain["extra_body"]) == (None, {})
    assert (told["revision"], told["extra_body"]) == ("of March", {"top_k": 1})


def test_a_server_that_enforces_the_schema_is_constrained():
    """The answer contradicts the prompt, so the schema made it."""
    script = Scripted()
    assert identity(script)["constrained"] is True
    limits = [body["max_tokens"] for _, body in script.seen]
    assert limits[0] == 2
    assert len(limits) == 2


def test_an_enforced_answer_that_is_cut_off_counts():
    """A weak model may fill the budget with white space."""

    def cut(body):
        whole = obey(body)["choices"][0]["message"]["content"]
        return chat(whole[:6] + " " * 50, "length")

    assert identity(Scripted(other=cut))["constrained"] is True


def test_an_enforced_answer_after_thinking_counts():
    """The grammar begins where the thinking ends."""

    def think(body):
        text = obey(body)["choices"][0]["message"]["content"]
        return chat(f"<think>hm</think>\n{text}")

    assert identity(Scripted(other=think))["constrained"] is True


def test_a_model_that_thinks_long_gets_room_for_it():
    """The first budget is for models that answer at once."""

    def think(body):
        if body["max_tokens"] < 1000:
            return chat("", "length", reasoning_content="hm")
        return obey(body)

    assert identity(Scripted(other=think))["constrained"] is True


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (ignore, "another than the only one allowed"),
        (lambda body: chat("{}"), "another than the only one allowed"),
        (lambda body: chat("<think>hm", "length"), "empty after"),
        (
            lambda body: (
                (400, {"error": {"message": "response_format is not supported"}})
                if "response_format" in body
                else chat("yes")
            ),
            "response_format is not supported",
        ),
    ],
)
def test_a_server_that_ignores_the_schema_is_refused(other, says):
    """Silently unconstrained answers are this field's trap; the way out is named."""
    message = refusal(Scripted(other=other))
    assert says in message
    assert "--allow-unconstrained" in message


def test_unconstrained_answers_can_be_allowed_and_are_told_of():
    """No schema is sent then, and the identity says so."""
    script, remarks = Scripted(case=ignore, other=ignore), []
    settings = make_settings(allow_unconstrained=True, tell=remarks.append)
    with serving(script) as url, make_engine(url, settings) as engine:
        assert engine.identity()["constrained"] is False
        list(engine.complete(make_prompts(1)))
    assert "response_format" not in script.cases[0]
    assert ["does not enforce" in remark for remark in remarks] == [True]


def test_a_model_that_is_not_served_is_refused_with_those_that_are():
    """A typing error is seen at once."""
    pages = {"/v1/models": {"data": [{"id": "mm"}, {"id": "x" * 300}, {"id": 3}, 4]}}
    message = refusal(Scripted(pages=pages))
    assert "does not serve 'm'; it serves mm" in message
    assert len(message) < 500


@pytest.mark.parametrize(
    "page", [(404, {}), (200, b"<html>"), {"data": "no"}, {"data": {}}, []]
)
def test_a_server_without_a_model_list_is_asked_anyway(page):
    """Only chat completions are needed."""
    assert identity(Scripted(pages={"/v1/models": page}))["constrained"]


def test_the_fingerprint_holds_what_stays_and_not_what_changes():
    """Two servers with one model name must not share answers; one server must."""
    model = {"id": "m", "created": 7, "root": "/w", "permission": [1], "meta": {"n": 2}}
    pages = {
        "/v1/models": {"data": [{"id": "other"}, model]},
        "/version": {"version": "0.32"},
        "/props": {
            "build_info": "b1",
            "model_path": "/w.gguf",
            "chat_template": "{{x}}",
        },
    }
    server = identity(Scripted(pages=pages))["server"]
    assert len(server.pop("chat_template")) == 64
    assert server == {
        "id": "m",
        "root": "/w",
        "meta": {"n": 2},
        "version": "0.32",
        "build_info": "b1",
        "model_path": "/w.gguf",
        "system_fingerprint": "fp-1",
    }


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("/version", {"version": "0.33"}),
        ("/props", {"chat_template": "{{y}}"}),
        ("/v1/models", {"data": [{"id": "m", "root": "/other"}]}),
    ],
)
def test_another_server_behind_the_same_url_is_another_identity(name, page):
    """The cache key hangs on it."""
    script = Scripted()
    with serving(script) as url:
        with make_engine(url) as engine:
            before = engine.identity()
        script.pages[name] = page
        with make_engine(url) as engine:
            assert engine.identity() != before
        del script.pages[name]
        if name != "/v1/models":
            with make_engine(url) as engine:
                assert engine.identity() == before


def test_a_server_of_ours_is_identified_by_what_we_know_of_it():
    """Its port is chance."""
    with serving(Scripted()) as url:
        plain = make_engine(url)
        endpoint = Endpoint(url=url, model="m", serving=plain._endpoint.serving)
        engine = ChatEngine(
            "vllm", endpoint, make_settings(), served={"model": "abc", "version": "1"}
        )
        with engine:
            found = engine.identity()
    assert found["server"] == {"model": "abc", "version": "1"}
    assert "url" not in found
    assert found["engine"] == "vllm"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_names_the_variable_and_not_the_key(status):
    """Servers like to repeat the key in their message."""
    said = (status, {"error": {"message": f"incorrect API key {KEY}"}})
    message = refusal(Scripted(pages={"/v1/models": said}), key=KEY)
    assert "RANLOOP_API_KEY" in message
    assert "the API key" in message
    assert KEY not in message
    assert "without API key" in refusal(Scripted(other=lambda body: said))


def test_the_key_is_sent_as_a_bearer_token_and_stays_out_of_the_identity():
    """What identifies a server is written into manifests."""
    script = Scripted()
    assert KEY not in str(identity(script, key=KEY))
    assert {headers["Authorization"] for headers, _ in script.seen} == {f"Bearer {KEY}"}


def test_a_refused_request_shows_the_servers_words_without_the_key():
    """Nothing of a case was sent, so they can be shown, on one line."""
    said = {"error": {"message": f"no\nmax_tokens {KEY} " + "x" * 900}}
    message = refusal(Scripted(other=lambda body: (400, said)), key=KEY)
    assert "no max_tokens *** xxx" in message
    assert len(message) < 600


def test_a_server_that_speaks_something_else_is_refused_with_the_way_out():
    """A URL without /v1 answers with a page."""
    message = refusal(Scripted(other=lambda body: b"<html>"))
    assert "mostly in /v1" in message


@pytest.mark.slow
def test_an_unreachable_server_is_refused_with_the_way_out():
    """Nobody listens on that port."""
    with serving(Scripted()) as url:
        pass
    with pytest.raises(EngineError, match=r"connection refused\. Start the server"):
        make_engine(url).__enter__()


@pytest.mark.slow
def test_a_name_that_does_not_resolve_is_refused_with_the_way_out():
    """The reserved top-level domain has no hosts."""
    with pytest.raises(EngineError, match="host name not found"):
        make_engine("http://nothing.invalid/v1").__enter__()


BUSY = (429, {"error": {"message": "too many requests"}})


@pytest.mark.slow
def test_a_server_that_stays_busy_is_no_wrong_name():
    """Nothing in the workspace is wrong then, and who waits is told why."""
    remarks = []
    settings = make_settings(tell=remarks.append)
    message = refusal(Scripted(other=lambda body: BUSY), settings, patience_s=2)
    assert "was busy or broken for 2 s (HTTP 429); it says: too many" in message
    assert "wait until it is free" in message and "extra_body" not in message
    assert [remark for remark in remarks if "HTTP 429" in remark] == [
        "the server is busy (HTTP 429): waiting for it"
    ]


@pytest.mark.slow
def test_too_busy_to_show_a_schema_is_not_unconstrained():
    """Else a rate limit would turn a whole run into free answers."""
    script = Scripted(
        other=lambda body: BUSY if "response_format" in body else obey(body)
    )
    settings = make_settings(allow_unconstrained=True)
    assert "was busy" in refusal(script, settings, patience_s=2)


@pytest.mark.slow
def test_a_server_that_still_loads_its_model_is_waited_for():
    """llama.cpp says 503 until then."""
    script = Scripted()
    script.pages["/v1/models"] = (503, {"error": {"message": "Loading model"}})
    calls = []
    handle = script.handle

    async def loading(request):
        calls.append(request.path)
        if len(calls) == 3:
            script.pages["/v1/models"] = {"data": [{"id": "m"}]}
        return await handle(request)

    script.handle = loading
    assert identity(script)["constrained"]


def test_plain_http_behind_https_says_so():
    """The commonest mistake with TLS."""
    with serving(Scripted()) as url, pytest.raises(EngineError, match="plain HTTP"):
        make_engine(url.replace("http://", "https://")).__enter__()


def test_max_tokens_that_leave_no_room_for_a_prompt_are_refused():
    """Otherwise every case would be refused for its length."""
    pages = {"/v1/models": {"data": [{"id": "m", "max_model_len": 2048}]}}
    assert "Lower max_tokens" in refusal(Scripted(pages=pages))


def test_the_engine_is_found_by_its_name():
    """With the URL in it."""
    with serving(Scripted()) as url:
        engine = get_engine(f"openai:m@{url}", make_settings())
        with engine:
            assert engine.identity()["url"] == url


def test_the_engine_is_asked_as_the_config_says(monkeypatch):
    """Where, with which key, with what besides, and under which revision it is kept."""
    monkeypatch.setenv("MY_KEY", KEY)
    script = Scripted()
    with serving(script) as url:
        openai = {"url": url, "key_env": "MY_KEY", "revision": "r1"}
        openai |= {"extra_body": {"top_k": 7}, "retry_unreadable": 4}
        config = Config.model_validate({"engines": {"openai": openai}})
        settings = Settings(labels=Path("labels"), config=config)
        with get_engine("openai:m", settings) as engine:
            identity = engine.identity()
            assert engine.retry_unreadable == 4
    assert (identity["url"], identity["revision"]) == (url, "r1")
    assert identity["extra_body"] == {"top_k": 7}
    for headers, body in script.seen:
        assert (headers["Authorization"], body["top_k"]) == (f"Bearer {KEY}", 7)


ENDPOINT = Endpoint(
    url="http://127.0.0.1/v1", model="chest", serving=ServingSettings(), key=KEY
)


def listing(*models):
    """Return a server's list of these models."""
    return Reply(200, {}, json.dumps({"data": models}).encode())


@pytest.mark.parametrize(
    ("others", "more"), [(7, ""), (8, " and 1 more"), (30, " and 23 more")]
)
def test_eight_served_models_are_named_and_those_like_it_first(others, more):
    """A server of a clinic may have hundreds."""
    names = [*(f"model-{number}" for number in range(others)), "chest-7b"]
    with pytest.raises(EngineError) as caught:
        find_model(listing(*({"id": name} for name in names)), ENDPOINT)
    shown = names[:7]
    assert f"it serves chest-7b, {', '.join(shown)}{more}. Name" in str(caught.value)


@pytest.mark.parametrize(
    ("said", "length"), [(2048, 2048), (0, None), (-1, None), (True, None), ("9", None)]
)
def test_a_model_says_how_much_it_reads_or_nothing(said, length):
    """What is empty does not tell one server from another either."""
    one = {"id": "chest", "root": "", "owned_by": None, "max_model_len": said}
    listed = find_model(listing({"id": "x"}, one), ENDPOINT)
    assert listed.max_model_len == length
    assert {"root", "owned_by"}.isdisjoint(listed.facts)


def test_an_answer_proves_the_schema_only_where_it_must_follow_from_it():
    """All of it, or the beginning of one that was cut off."""
    question = Contradiction(Random(1))
    name, rule = next(iter(question.schema["properties"].items()))
    valid = json.dumps({name: rule["enum"][0]})
    for text, finish, won in (
        (valid, "stop", True),
        (f" <think>{{}}</think>\n{valid}", "stop", True),
        (f"<think>hm</think>{valid}", "stop", True),
        (valid[:9], "length", True),
        (valid[:9], "stop", False),
        ("", "length", False),
        (f"<think>{valid}", "length", False),
        (valid[1:9], "length", False),
    ):
        assert question.schema_won(text, finish) is won, (text, finish)


def test_an_adapter_is_refused_where_there_are_none():
    """It would be ignored silently."""
    with pytest.raises(EngineError, match="in place of the model"):
        get_engine("openai:m#x", make_settings())


def test_an_engine_that_is_not_open_says_how_to_open_it():
    """Asking first is a bug in the caller."""
    with pytest.raises(ValueError, match="`with` block"):
        make_engine("http://127.0.0.1:9/v1").identity()


def script(model="/models/a", version="1"):
    """Return a server whose model has a place and whose program has a version."""
    listed = {"data": [{"id": "m", "root": model, "created": time.monotonic()}]}
    return Scripted(
        pages={"/v1/models": (200, listed), "/version": (200, {"version": version})}
    )


def ask_through_an_outage(before, after, **options):
    """Ask two cases; between them `before` goes away, and `after` comes later.

    Returns the completions and the account.
    """
    with ExitStack() as first, ExitStack() as second:
        url = first.enter_context(serving(before))
        engine = second.enter_context(make_engine(url, concurrency=1, **options))

        def come_back():
            while not engine.account()["retried"]:
                time.sleep(0.01)
            second.enter_context(serving(after, port=urlsplit(url).port))

        coming = threading.Thread(target=come_back)

        def prompts():
            yield make_prompt("text 0")
            while not before.cases:
                time.sleep(0.01)
            first.close()
            coming.start()
            yield make_prompt("text 1")

        try:
            return dict(engine.complete(prompts())), engine.account()
        finally:
            coming.join()


@pytest.mark.slow
def test_the_same_server_is_asked_on_after_an_outage():
    """A restart alone changes nothing that is looked at."""
    after = script()
    found, account = ask_through_an_outage(script(), after)
    assert {one.finish_reason for one in found.values()} == {"stop"}
    assert len(after.cases) >= 1
    assert is_balanced(account)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "what"),
    [(script(model="/models/b"), "root"), (script(version="2"), "version")],
)
def test_another_server_after_an_outage_gets_no_case(after, what):
    """Its answers would be kept as those of the model that was probed."""
    with pytest.raises(EngineError, match=f"reports another {what}.*the same command"):
        ask_through_an_outage(script(), after)
    assert after.cases == []


@pytest.mark.slow
def test_a_server_that_is_not_ready_is_waited_for():
    """While it loads, its list of models says nothing."""
    after = script()
    ready = after.pages["/v1/models"]
    states = [(503, {"error": "loading"}), ready]
    after.pages = Loading(after.pages, states)
    found, _ = ask_through_an_outage(script(), after)
    assert len(found) == 2 and states == []


class Loading(dict):
    """Pages of which the list of models goes through states."""

    def __init__(self, pages, states):
        """Take the other pages, and the states in their order."""
        super().__init__(pages)
        self.states = states

    def get(self, path, default=None):
        """Return the next state of the list, as long as there are any."""
        if path == "/v1/models" and self.states:
            return self.states.pop(0)
        return super().get(path, default)


def test_a_server_that_changed_between_two_draws_gets_no_case():
    """Hours may lie between them, and the connections say nothing."""
    server = script()
    with serving(server) as url, make_engine(url) as engine:
        assert len(dict(engine.complete(make_prompts(3)))) == 3
        server.pages.update(script(model="/models/b").pages)
        with pytest.raises(EngineError, match="reports another root"):
            dict(engine.redraw(1).complete(make_prompts(3)))
    assert len(server.cases) == 3
    assert is_balanced(engine.account())


def test_a_model_that_is_no_longer_served_ends_the_run():
    """Some servers answer with whatever they have, whatever they are asked for."""
    server = script()
    with serving(server) as url, make_engine(url) as engine:
        assert len(dict(engine.complete(make_prompts(3)))) == 3
        server.pages["/v1/models"] = (200, {"data": [{"id": "other"}]})
        with pytest.raises(EngineError, match="does not serve 'm'; it serves other"):
            dict(engine.complete(make_prompts(3)))
    assert len(server.cases) == 3


class Told:
    """A client whose server gives these pages and these answers."""

    def __init__(self, pages=(), answers=()):
        """Take page to reply, and the replies to questions in their order."""
        self.endpoint, self.pages = ENDPOINT, dict(pages)
        self.answers, self.fetched, self.asked = list(answers), [], []

    async def get(self, url):
        """Return a page."""
        page = urlsplit(url).path
        self.fetched.append(page)
        if page not in self.pages:
            raise LinkError("no such page")
        told = self.pages[page]
        whole = isinstance(told, Reply)
        return told if whole else Reply(200, {}, json.dumps(told).encode())

    async def ask(self, body):
        """Return the next answer."""
        self.asked.append(json.loads(body))
        return self.answers.pop(0)


def probe(client, **settings):
    """Return the probe of what a client tells."""
    endpoint = replace(ENDPOINT, serving=ServingSettings(patience_s=0.001))
    return Probe(client, endpoint, make_settings(**settings), Random(1))


def test_an_answer_as_long_as_the_context_leaves_no_room():
    """One token less is left for the prompt; what nobody says is not checked."""
    one = probe(Told(), max_tokens=100)
    for most in (99, 100):
        with pytest.raises(EngineError, match=f"served with {most} tokens for both"):
            one._check_length(most)
    for most in (101, None):
        one._check_length(most)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, "was busy or broken for 0.001 s (HTTP 429)"),
        (503, "was busy or broken for 0.001 s (HTTP 503)"),
        (301, "answers with a redirect (HTTP 301)"),
        (401, "does not accept the API key (HTTP 401)"),
        (300, "answers with a redirect (HTTP 300)"),
        (399, "answers with a redirect (HTTP 399)"),
        (404, None),
        (405, None),
        (500, None),
    ],
)
def test_a_list_of_models_may_be_missing_but_not_refused(status, said):
    """Who has no list is asked all the same; nobody else is asked anything."""
    client = Told({"/v1/models": Reply(status, {}, b"{}")})
    if said is None:
        assert asyncio.run(probe(client)._list_models()).status == status
        return
    with pytest.raises(EngineError, match=re.escape(said)):
        asyncio.run(probe(client).run())
    assert client.asked == []


@pytest.mark.parametrize(
    ("props", "facts"),
    [
        ({"default_generation_settings": {"n_ctx": 512}}, {"n_ctx": 512}),
        ({"default_generation_settings": 3, "build_info": 4}, {}),
        ({"build_info": "b1", "model_path": "/m"}, ...),
        ({"chat_template": "x"}, {"chat_template": digest_text("x")}),
        ([1], {}),
    ],
)
def test_what_a_server_tells_of_itself_is_kept_as_it_is(props, facts):
    """Only what has the type that it should have; a template by its digest."""
    told = asyncio.run(read_server(Told({"/props": props}), ENDPOINT))
    assert told == (props if facts is ... else facts)
    version = {"/version": {"version": "1"}, "/props": props}
    told = asyncio.run(read_server(Told(version), ENDPOINT))
    assert told["version"] == "1"


@pytest.mark.parametrize(
    "body",
    [
        b'{"data": [{"id": "chest", "meta": {"x": NaN}}]}',
        b'{"data": [{"id": "chest", "meta": {"x": 1e999}}]}',
        b'{"data": {"id": "chest"}}',
        b'["chest"]',
        b"chest",
        b"",
    ],
)
def test_a_list_that_is_no_plain_data_is_none(body):
    """It could not be part of a cache key."""
    assert find_model(Reply(200, {}, body), ENDPOINT).facts == {}
    assert find_model(Reply(404, {}, listing({"id": "x"}).body), ENDPOINT).facts == {}


def thought(text="10", finish="stop", prompt_tokens=10, **more):
    """Return an answer to the puzzle, as a reply."""
    said = chat(text, finish, **more)
    said["usage"]["prompt_tokens"] = prompt_tokens
    return Reply(200, {}, json.dumps(said).encode())


def check_thinking(answers, **settings):
    """Check a level of thinking against these answers; return the probe and client."""
    client = Told(answers=answers)
    one = probe(client, **{"thinking": "low", **settings})
    asyncio.run(one._check_thinking(None))
    return one, client


@pytest.mark.parametrize(
    ("most", "room", "extra", "tokens"),
    [
        (2048, None, {}, [160, 2048]),
        (4096, None, {}, [160, 2048]),
        (500, None, {}, [160, 500]),
        (160, None, {}, [160]),
        (161, None, {}, [160, 161]),
        (9, None, {}, [160]),
        (2048, 1000, {}, [160, 840]),
        (2048, 321, {}, [160, 161]),
        (2048, 320, {}, [160]),
        (500, 4096, {}, [160, 500]),
        (2048, None, {"max_tokens": None, "max_completion_tokens": 300}, [160, 300]),
        (2048, None, {"max_tokens": None}, [160, 2048]),
    ],
)
def test_thoughts_that_are_cut_off_get_what_room_a_run_has(most, room, extra, tokens):
    """Never more than its answers have, or than the model reads beside a prompt."""
    client = Told(answers=[thought("", "length", reasoning="so so")] * 4)
    endpoint = replace(ENDPOINT, extra_body=extra)
    made = make_settings(thinking="low", max_tokens=most)
    with pytest.raises(NoEffectError, match="thinking low has no effect on chest at"):
        asyncio.run(Probe(client, endpoint, made, Random(1))._check_thinking(room))
    name = "max_completion_tokens" if "max_completion_tokens" in extra else "max_tokens"
    asked = [(one[name], one.get("reasoning_effort")) for one in client.asked]
    assert asked == [(n, level) for n in tokens for level in (None, "low")]


@pytest.mark.parametrize(
    ("level", "tried"), [("1000", 8), ("9", 8), ("8", 8), ("3", 3)]
)
def test_a_budget_is_tried_as_one_that_a_thought_exceeds(level, tried):
    """A larger one might not be used up by a puzzle."""
    plain, asked = thought(reasoning="so so"), thought(reasoning="so")
    _, client = check_thinking([plain, asked, plain], thinking=level)
    budgets = [one.get("thinking_token_budget") for one in client.asked]
    assert budgets == [None, tried, None]


@pytest.mark.parametrize(
    ("plain", "asked", "again", "sure", "thinks"),
    [
        (thought("10"), thought("Ten"), [thought("10")], True, False),
        (thought("10"), thought("Ten"), [thought("X")], False, False),
        (thought("10"), thought("X", prompt_tokens=12), [], True, False),
        (thought("10"), thought("10", reasoning="hm"), [], True, True),
        (thought("10"), thought(" <think>hm</think>10"), [], True, True),
        (thought("10", reasoning="hm"), thought("Ten"), [], True, False),
        (
            thought("10", reasoning="hm"),
            thought("10", reasoning="so"),
            [thought("10", reasoning="hm")],
            True,
            True,
        ),
    ],
)
def test_an_answer_that_differs_is_an_effect_unless_it_is_chance(
    plain, asked, again, sure, thinks
):
    """A third answer tells, where neither tokens nor thoughts do."""
    told = []
    one, client = check_thinking([plain, asked, *again], tell=told.append)
    assert client.answers == []
    assert one._thinks is thinks
    said = (
        "chest answers a test question differently each time, so it cannot be told "
        "whether thinking low changes anything: a difference between levels may be "
        "chance"
    )
    assert told == ([] if sure else [said])


REFUSED = "http://127.0.0.1/v1 refuses thinking low (HTTP {}); it says: {}\n"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b'{"error": "no sk-very-secret"}', REFUSED.format(400, "no ***")),
        (404, b"{}", REFUSED.format(404, "nothing else")),
        (422, b"{}", REFUSED.format(422, "nothing else")),
        (299, b"{}", REFUSED.format(299, "nothing else")),
        (300, b"{}", "http://127.0.0.1/v1 answers with a redirect (HTTP 300)"),
        (401, b"{}", "http://127.0.0.1/v1 does not accept the API key (HTTP 401)"),
        (403, b"{}", "http://127.0.0.1/v1 does not accept the API key (HTTP 403)"),
        (503, b"{}", "http://127.0.0.1/v1 was busy or broken for 0.001 s (HTTP 503)"),
    ],
)
def test_a_level_is_refused_only_where_the_server_says_no_to_it(status, body, said):
    """What else may be wrong is told as what it is."""
    with pytest.raises(EngineError) as caught:
        check_thinking([thought(), Reply(status, {}, body)])
    assert str(caught.value).startswith(said)


KNOWN = {"root": "/a", "version": "1", "system_fingerprint": "f"}


def same_server(client, doubtful=True):
    """Return what looks again at a server."""
    return SameServer(client, KNOWN, doubtful=doubtful)


def pages(root="/a", **more):
    """Return what the server tells, and more of the model."""
    return {
        "/v1/models": {"data": [{"id": "chest", "root": root, **more}]},
        "/version": {"version": "1"},
    }


def test_a_server_is_looked_at_again_only_while_it_is_doubtful():
    """Once it is known to be the same, requests need not wait for that."""
    client = Told(pages())
    asyncio.run(same_server(client, doubtful=False).check())
    assert client.fetched == []
    server = same_server(client)
    asyncio.run(server.check())
    assert not server.doubtful
    seen = len(client.fetched)
    assert seen
    asyncio.run(server.check())
    assert len(client.fetched) == seen


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_not_ready_stays_doubtful(status):
    """Nobody knows yet which one it is."""
    server = same_server(Told({"/v1/models": Reply(status, {}, b"{}")}))
    with pytest.raises(RefusedError, match="not ready"):
        asyncio.run(server.check())
    assert server.doubtful


def test_what_a_server_does_not_tell_now_says_nothing():
    """Nor does what it tells for the first time; all that changed is named."""
    for told in (
        {**pages(owned_by="me"), "/props": {"build_info": "b"}},
        {"/v1/models": Reply(404, {}, b"")},
        {"/v1/models": {"data": [{"id": "chest"}]}},
    ):
        asyncio.run(same_server(Told(told)).check())
    other = same_server(Told({**pages("/b"), "/version": {"version": "2"}}))
    with pytest.raises(EngineError, match=r"reports another root, version\. Run"):
        asyncio.run(other.check())
    assert other.doubtful

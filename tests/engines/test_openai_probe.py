"""What is found out about a server before any case is sent, and after an outage."""

import threading
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from loop.core.errors import EngineError
from loop.engines.base import get_engine
from loop.engines.openai import ChatEngine, Endpoint
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

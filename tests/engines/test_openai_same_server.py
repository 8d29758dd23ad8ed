"""A server that was out of sight is looked at again before a case goes to it."""

import threading
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from loop.core.errors import EngineError
from tests.engines.scripted import (
    Scripted,
    is_balanced,
    make_engine,
    make_prompt,
    make_prompts,
    serving,
)


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

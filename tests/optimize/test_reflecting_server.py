"""A search that reflects through a server: one that works, and those that do not."""

import asyncio

import pytest

from loop.core.errors import EngineError
from loop.core.ledger import read_ledger
from loop.optimize.decisions import find_search
from loop.optimize.documents import render_search
from loop.optimize.reflect import is_on_this_machine
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer
from loop.prompts.catalog import read_version
from tests.engines.scripted import Scripted, chat, obey, serving
from tests.optimize.made_task import ACTOR, propose_term
from tests.optimize.test_search import request

pytestmark = pytest.mark.slow

SETTINGS = """\
engines:
  openai:
    retries: 0
    timeout_s: 0.5
    patience_s: 1
prices:
  m: {input: 2.0, output: 8.0, cached_input: 0.5}
"""


def question_in(body):
    """Return the question of a request; nothing in one that probes the server."""
    content = body["messages"][-1]["content"]
    return content if "You revise the guide" in content else ""


def reflecting(answer):
    """Return a script that answers questions with `answer`, and obeys otherwise."""
    return lambda body: answer(body) if question_in(body) else obey(body)


def proposing(body):
    """Answer a question as the stub does."""
    return chat(propose_term(question_in(body)))


async def slow(body):
    """Answer long after anybody waits for it."""
    await asyncio.sleep(2)
    return proposing(body)


def search(workspace, url, **changes):
    """Search with GEPA through a server."""
    workspace.open_private()
    workspace.config.write_text(SETTINGS, "utf-8")
    asked = request(Optimizer.GEPA, reflect=f"openai:m@{url}", **changes)
    return search_prompt(workspace, asked, ACTOR)


def test_a_server_proposes(improvable):
    """What it says becomes a draft, and what that cost is kept with the result."""
    script = Scripted(other=reflecting(proposing))
    with serving(script) as url:
        result = search(improvable, url)
    assert result.better
    questions = [body for _, body in script.seen if question_in(body)]
    assert len(questions) == result.findings.effort.reflections
    assert all("response_format" not in body for body in questions)
    rules, model = result.engines
    assert (rules.use.engine, rules.tokens, rules.cost) == ("rules", None, None)
    assert (model.use.requests, model.use.cached) == (len(questions), 0)
    # Each answer: 10 tokens read, of which 8 were cached, and 2 written.
    assert model.tokens == (10 * len(questions), 2 * len(questions))
    price = (2 * 2.0 + 8 * 0.5 + 2 * 8.0) * len(questions) / 1e6
    assert model.cost.amount == pytest.approx(price)
    assert f">{model.cost_words}<" in render_search(result)
    improvable.config.write_text("", "utf-8")
    draft = read_version(improvable, result.drafts[0].ref)
    kept = find_search(improvable, draft).engines
    assert [one.use for one in kept] == [one.use for one in result.engines]
    assert kept[1].cost_words == "unknown"


@pytest.mark.parametrize(
    "answer",
    [
        lambda body: chat(""),
        lambda body: chat("", finish="content_filter"),
        lambda body: chat(None, refusal="I cannot help with that."),
        lambda body: (403, {"error": {"message": "not for you"}}),
        lambda body: (500, {"error": {"message": "out of order"}}),
        lambda body: b"this is no JSON",
        slow,
    ],
    ids=["nothing", "filtered", "refuses", "403", "500", "no JSON", "times out"],
)
def test_a_server_without_answers_stops_the_search(improvable, answer):
    """It must not read as a search that found nothing."""
    script = Scripted(other=reflecting(answer))
    with serving(script) as url, pytest.raises(EngineError):
        search(improvable, url)
    assert not [e for e in read_ledger(improvable.ledger) if e.action == "searched"]


def test_a_server_that_dies_leaves_what_it_answered(improvable):
    """The same search goes on with another at its place, and repeats no question."""
    script = Scripted()

    def answer(body):
        if not question_in(body):
            return obey(body)
        if len([1 for _, one in script.seen if question_in(one)]) > 3:
            return 500, {"error": {"message": "out of order"}}
        return proposing(body)

    script.other = answer
    with serving(script) as url:
        with pytest.raises(EngineError):
            search(improvable, url)
        before = {question_in(body) for _, body in script.seen[:-1]}
        script.other = reflecting(proposing)
        script.seen.clear()
        result = search(improvable, url)
    assert result.better
    again = [question_in(body) for _, body in script.seen if question_in(body)]
    assert len(again) < result.findings.effort.reflections
    use = result.engines[1].use
    assert use.asked == len(again)
    assert use.requests == result.findings.effort.reflections
    assert use.used.prompt_tokens == 10 * use.requests
    assert len(set(again) & before) <= 1


def test_comments_stay_on_this_machine(workspace):
    """Only an address of this machine is this machine."""
    assert is_on_this_machine(workspace, "openai:m@http://127.0.0.1:8000/v1")
    assert is_on_this_machine(workspace, "openai:m@http://localhost:8000/v1")
    assert is_on_this_machine(workspace, "openai:m@http://[::1]:8000/v1")
    assert is_on_this_machine(workspace, "vllm:m")
    assert is_on_this_machine(workspace, "openai:m")
    assert not is_on_this_machine(workspace, "openai:m@https://models.example/v1")
    assert not is_on_this_machine(workspace, "openai:m@http://10.0.0.7:8000/v1")

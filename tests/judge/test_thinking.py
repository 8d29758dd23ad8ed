"""How much a model thinks: sent, kept, swept, and refused where it does nothing."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from loop.core.config import VllmSettings
from loop.core.errors import EngineError, NoEffectError
from loop.engines.base import Settings, check_thinking, thinking_fields
from loop.engines.openai.client import Endpoint
from loop.engines.openai.completions import request_fields
from loop.engines.vllm.environment import request_extras
from loop.run.asking import EngineOptions, choose_engine, opened
from loop.run.manifest import find_run, read_manifest
from loop.workspace import Workspace
from tests.judge.scenes import POINTS, TEXTS, call, errors, rate, table
from tests.release.judge_ready import make_judge_ready
from tests.release.ready import APPROVER
from tests.servers.answers import completion, plain_answer

COUNTS = {
    None: [5 - one for one in POINTS],
    "low": [3, 3, 1, 0, 2, 4, 3, 2],
    "high": [0, 1, 2, 3, 0, 1, 2, 3],
}
"""Errors that the model counts in each pair, by its level of thinking."""


def find_pair(content):
    """Return which of the pairs a prompt ends with; None for another prompt."""
    found = [
        (len(one) + len(other), place)
        for place, (one, other) in enumerate(TEXTS)
        if one in content and other in content
    ]
    return max(found)[1] if found else None


@contextmanager
def served(respond):
    """Serve a model; `respond` returns status and data of a request, and its number."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            """Say nothing."""

        def _send(self, data, status=200):
            raw = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self):
            self._send({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(request)
            status, data = respond(request, len(requests))
            self._send(data, status)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"openai:tiny@http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def thinking_server(*, ignores=(), cut_off=()):
    """Serve a model that can think; yield its engine and the requests.

    Parameters
    ----------
    ignores
        Levels that it takes and does nothing about.
    cut_off
        Levels at which its thoughts leave no room for an answer.
    """

    def respond(request, _):
        if "thinking_token_budget" in request:
            words = "thinking_token_budget needs --reasoning-parser"
            return 400, {"error": {"message": words}}
        level = request.get("reasoning_effort")
        level = None if level in ignores else level
        content = request["messages"][-1]["content"]
        place = find_pair(content[-400:])
        thoughts = {} if level is None else {"reasoning": f"I think {level}. " * 9}
        if len(content) < 600 or place is None:
            said = plain_answer(request)
            said["choices"][0]["message"] |= thoughts
        elif level in cut_off:
            said = completion("", finish="length", **thoughts)
        else:
            listed = [("omission", True)] * COUNTS[level][place]
            said = completion(errors(*listed, matched=3), **thoughts)
        return 200, said

    return served(respond)


@pytest.fixture
def rated(workspace, tmp_path):
    """Return a workspace with eight rated pairs and the judge `listed`."""
    rate(workspace, tmp_path)
    call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    return workspace


def test_levels_are_named_or_counted():
    """What is neither is refused, before anything is asked."""
    assert [check_thinking(one) for one in ("none", "HIGH", "0512")] == [
        *("none", "high", "512")
    ]
    for wrong in ("", "much", "-1", "0", "1e3", "٣", "10000001", "9" * 5000):
        with pytest.raises(ValueError, match="thinking is default, none, low"):
            check_thinking(wrong)
    assert thinking_fields("default") == {}
    assert thinking_fields("none") == {"reasoning_effort": "none"}
    assert thinking_fields("512") == {"thinking_token_budget": 512}


def test_a_level_goes_before_what_the_settings_always_send(tmp_path):
    """And the request without a level is what it was."""
    endpoint = Endpoint(
        url="http://127.0.0.1/v1",
        model="m",
        serving=VllmSettings(),
        extra_body={"reasoning_effort": "high", "top_k": 1},
    )
    plain = request_fields(endpoint, Settings(labels=tmp_path), None)
    assert plain["reasoning_effort"] == "high"
    low = request_fields(endpoint, Settings(labels=tmp_path, thinking="low"), None)
    assert low == plain | {"reasoning_effort": "low"}
    # VLLM lets this switch win over the level, so it is not sent with one.
    switched = {
        **request_extras(VllmSettings(enable_thinking=False)),
        "chat_template_kwargs": {"enable_thinking": False, "more": 1},
    }
    endpoint = replace(endpoint, extra_body=switched)
    plain = request_fields(endpoint, Settings(labels=tmp_path), None)
    assert plain["chat_template_kwargs"] == {"enable_thinking": False, "more": 1}
    low = request_fields(endpoint, Settings(labels=tmp_path, thinking="low"), None)
    assert low["chat_template_kwargs"] == {"more": 1}
    assert low["reasoning_effort"] == "low"


def test_a_level_is_in_every_request_the_key_and_the_manifest(rated):
    """Answers of one level are never taken for those of another."""
    with thinking_server() as (engine, requests):
        asked = ("run", "listed", "--cohort", "rp", "--engine", engine)
        for more in ([], ["--thinking", "low"], ["--thinking", "low"]):
            done = call(rated, *asked, *more, "--json")
            assert done.exit_code == 0, done.output
        counts = json.loads(done.stdout)
        assert (counts["asked"], counts["cached"]) == (0, 8)
    told = [one for one in requests if len(one["messages"][-1]["content"]) > 600]
    assert [one.get("reasoning_effort") for one in told] == [None] * 8 + ["low"] * 8
    run = find_run(rated, "latest")
    assert run.spec.parameters["thinking"] == "low"
    assert read_manifest(rated, run.id)["spec"]["parameters"]["thinking"] == "low"


def test_further_draws_and_replays_keep_the_level(rated):
    """A draw has another seed only, a replay what its run was asked with."""
    with thinking_server() as (engine, requests):
        done = call(
            rated,
            *("run", "listed", "--cohort", "rp", "--engine", engine),
            *("--thinking", "low", "--repeats", "2"),
        )
        assert done.exit_code == 0, (done.output, done.exception)
        told = [one for one in requests if find_pair(one["messages"][-1]["content"])]
        asked = [(one["seed"], one["reasoning_effort"]) for one in told]
        assert sorted(set(asked)) == [(0, "low"), (1, "low")]
        run = find_run(rated, "latest")
    done = call(
        rated, "run", "listed", "--cohort", "rp", "--engine", f"replay:{run.id}"
    )
    assert done.exit_code == 0, (done.output, done.exception)
    again = find_run(rated, "latest")
    assert again.id != run.id
    assert again.spec.parameters["thinking"] == "low"
    named = ("--run", run.id)
    done = call(rated, "matrix", *named, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    (column,) = json.loads(done.stdout)["columns"]
    assert column["engine"].endswith(", thinking low")
    # A run that is named is not asked again, so that a level would do nothing.
    done = call(rated, "matrix", *named, "--thinking", "high")
    assert done.exit_code == 1
    assert "--thinking is for engines that are asked" in str(done.exception)


def test_a_level_that_changes_nothing_is_no_result(rated):
    """HTTP 200 says nothing: one question is asked with it and without."""
    with thinking_server(ignores=("low",)) as (engine, requests):
        done = call(
            rated,
            *("run", "listed", "--cohort", "rp", "--engine", engine),
            *("--thinking", "low"),
        )
        assert done.exit_code == 1
        assert isinstance(done.exception, NoEffectError)
        assert "thinking low has no effect on tiny" in str(done.exception)
        assert not [one for one in requests if len(str(one["messages"])) > 1000]


def test_a_budget_that_the_server_refuses_is_told_with_its_words(rated):
    """VLLM takes one only with a reasoning parser."""
    with (
        thinking_server() as (engine, _),
        pytest.raises(
            EngineError, match=r"refuses thinking 512 \(HTTP 400\).*needs --r"
        ),
        opened(choose_engine(rated, engine, EngineOptions(thinking="512")).engine),
    ):
        pass


@pytest.mark.parametrize(
    ("engine", "options", "words"),
    [
        ("rules", {"thinking": "low"}, "rules is no language model"),
        ("openai:m", {"thinking": "much"}, "thinking is default, none"),
        ("vllm:m", {"thinking": "low", "batch": True}, "batch runner cannot be asked"),
    ],
)
def test_what_cannot_think_is_told_so(workspace, engine, options, words):
    """Before a server is started."""
    with (
        pytest.raises(EngineError, match=words),
        opened(choose_engine(workspace, engine, EngineOptions(**options)).engine),
    ):
        pass


def test_a_sweep_has_a_column_for_each_level_that_does_something(rated, tmp_path):
    """With agreement, what was cut off, and every two compared; exit code 0."""
    with thinking_server(ignores=("none",), cut_off=("high",)) as (engine, _):
        done = call(
            rated,
            *("matrix", "listed", "--cohort", "rp", "-e", "rules", "-e", engine),
            *("--thinking", "none,low,high", "--md", tmp_path / "m.md", "--json"),
        )
    assert done.exit_code == 0, (done.output, done.exception)
    data = json.loads(done.stdout)
    named = [one["engine"].rpartition("/v1")[2] for one in data["columns"]]
    assert data["columns"][0]["engine"] == "rules"
    assert named[1:] == ["", ", thinking low", ", thinking high"]
    assert [one["cut_off"] for one in data["columns"]] == [0, 0, 0, 8]
    assert data["without_effect"] == [
        {"prompt": "listed@v1", "engine": engine, "thinking": ["none"]}
    ]
    means = [
        {one["score"]: one["mean"] for one in column["scores"]}.get("errors")
        for column in data["columns"]
    ]
    assert means[1:] == [sum(COUNTS[None]) / 8, sum(COUNTS["low"]) / 8, None]
    # Three columns have a score: every two of them are compared, with Holm.
    assert len(data["comparisons"]) == 3
    assert all(one["p_holm"] >= one["p"] for one in data["comparisons"])
    text = (tmp_path / "m.md").read_text("utf-8")
    assert "thinking none has no effect" in text
    assert "answers that were cut off at max" in text and ": 8. Thoughts" in text


def test_a_sweep_needs_a_model_and_judges(rated, workspace):
    """Else it would ask for nothing."""
    done = call(
        rated, "matrix", "listed", "--cohort", "rp", "-e", "rules", "--thinking", "low"
    )
    assert done.exit_code == 1
    assert "--thinking is for language models" in str(done.exception)
    done = call(
        rated,
        "matrix",
        "extractor",
        "--cohort",
        "rp",
        "-e",
        "rules",
        "--thinking",
        "low",
    )
    assert done.exit_code == 2
    done = call(
        rated, "matrix", "listed", "--cohort", "rp", "-e", "rules", "--thinking", "much"
    )
    assert done.exit_code == 2


def puzzle_server(answer, *, parser=True):
    """Serve a model that answers the test question as told, all else plainly.

    Without a parser of its thoughts it has none before a constrained answer.
    """

    def respond(request, number):
        if "A bus has" in request["messages"][-1]["content"]:
            return answer(request, number)
        said = plain_answer(request)
        if parser:
            said["choices"][0]["message"]["reasoning"] = "so"
        return 200, said

    return served(respond)


def probe(workspace, engine, level):
    """Open an engine at a level of thinking; return what it tells."""
    told = []
    asking = EngineOptions(thinking=level, tell=told.append)
    with opened(choose_engine(workspace, engine, asking).engine):
        return told


def think(length, budget, most):
    """Answer a puzzle after `length` words of thoughts; cut them off where told."""
    if budget is not None:
        length = min(length, budget)
    if length >= most:
        return 200, completion("", finish="length", reasoning="so " * most)
    return 200, completion("It has 10.", reasoning="so " * length)


@pytest.mark.parametrize("length", [40, 500])
def test_a_budget_has_an_effect_though_a_puzzle_does_not_use_it_up(workspace, length):
    """Thoughts about a case are longer, and those of the test may be cut off first."""

    def answer(request, _):
        return think(
            length, request.get("thinking_token_budget"), request["max_tokens"]
        )

    with puzzle_server(answer) as (engine, _):
        assert probe(workspace, engine, "1000") == []


def test_what_differs_only_late_is_an_effect(workspace):
    """Levels that are budgets of the server: both are cut off at first."""

    def answer(request, _):
        low = request.get("reasoning_effort") == "low"
        return think(900, 400 if low else None, request["max_tokens"])

    with puzzle_server(answer) as (engine, seen):
        assert probe(workspace, engine, "low") == []
    assert max(one["max_tokens"] for one in seen) == 2048


def test_cut_off_alike_to_the_end_is_no_effect(workspace):
    """And no third length is tried."""
    with (
        puzzle_server(lambda asked, _: think(9999, None, asked["max_tokens"])) as found,
        pytest.raises(NoEffectError, match="--thinking default"),
    ):
        probe(workspace, found[0], "low")


def test_a_server_with_chance_is_no_proof_of_an_effect(workspace):
    """Two answers differ anyway: who reads the result is told so."""
    with puzzle_server(lambda _, n: (200, completion(f"It has 10. {'x' * n}"))) as (
        engine,
        _,
    ):
        (said,) = probe(workspace, engine, "low")
    assert "cannot be told whether thinking low changes anything" in said


def test_thoughts_are_an_effect_whatever_chance_says(workspace):
    """They come back with the level, and not without."""

    def answer(request, number):
        more = {"reasoning": "hm"} if "reasoning_effort" in request else {}
        return 200, completion(f"It has 10. {'x' * number}", **more)

    with puzzle_server(answer) as (engine, _):
        assert probe(workspace, engine, "low") == []


@pytest.mark.parametrize(
    ("status", "data", "words"),
    [
        (200, {"choices": []}, "with not a chat completion, so it cannot be told"),
        (401, {"error": {"message": "no"}}, "does not accept requests without API"),
        (400, {"error": {"message": "not at all"}}, "refuses a short request"),
    ],
)
def test_what_goes_wrong_with_the_puzzle_is_told_as_what_it_is(
    workspace, status, data, words
):
    """A server that is broken does not refuse a level."""
    with (
        puzzle_server(lambda *_: (status, data)) as (engine, _),
        pytest.raises(EngineError, match=words) as caught,
    ):
        probe(workspace, engine, "low")
    assert not isinstance(caught.value, NoEffectError)


@pytest.mark.slow
def test_a_release_is_asked_with_its_level(workspace, tmp_path):
    """It is exported with it, too; an engine that does not think is asked without."""
    make_judge_ready(workspace, tmp_path, judge="one_pass@v1")
    with thinking_server() as (engine, requests):
        done = call(
            workspace,
            *("freeze", "mine@v1", "--cohort", "rp", "--engine", engine),
            *("--thinking", "low", "--why", "x", "--override", "to try it"),
            *("--actor", APPROVER.name),
        )
        assert done.exit_code == 0, (done.output, done.exception)
        requests.clear()
        pairs = table(
            tmp_path / "more.csv", ("id", "reference", "candidate"), [("z", *TEXTS[1])]
        )
        done = call(workspace, "judge", "mine-v1", "--pairs", pairs)
        assert done.exit_code == 0, (done.output, done.exception)
        assert requests[-1]["reasoning_effort"] == "low"
        requests.clear()
        study = Workspace(workspace.root, actor=APPROVER.name)
        summary = study.run("", "rp", release="mine-v1", limit=2)
        spec = find_run(workspace, summary.run_id).spec
        assert (spec.engine, spec.parameters["thinking"]) == (engine, "low")
        level = ("--thinking", "default", "--limit", "2")
        done = call(workspace, "run", "--release", "mine-v1", "--cohort", "rp", *level)
        assert done.exit_code == 0, (done.output, done.exception)
        assert "reasoning_effort" not in requests[-1]
    assert "| parameter | thinking | low |" in (
        workspace.releases / "mine-v1" / "card.md"
    ).read_text("utf-8")
    done = call(workspace, "verify", "mine-v1")
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    sent = ("--to", "vllm-batch", "--cohort", "rp", "--out", out)
    done = call(workspace, "export", "mine-v1", *sent)
    assert done.exit_code == 0, (done.output, done.exception)
    line = (out / "requests-0001.jsonl").read_text("utf-8").splitlines()[0]
    assert json.loads(line)["body"]["reasoning_effort"] == "low"
    for asked in (
        ("run", "--release", "mine-v1", "--cohort", "rp", "--engine", "rules"),
        ("judge", "mine-v1", "--pairs", pairs, "--engine", "rules"),
    ):
        done = call(workspace, *asked)
        assert done.exit_code == 0, (done.output, done.exception)


def test_no_level_of_thinking_is_told_before_anything_is_done(workspace):
    """Also where nothing is asked."""
    asked = ("run", "extractor", "--cohort", "x", "--dry-run", "--thinking", "much")
    done = call(workspace, *asked)
    assert done.exit_code == 2
    assert "thinking is default, none, low" in " ".join(done.output.split())


@pytest.mark.parametrize(("parser", "number"), [(True, 0), (False, 1)])
def test_a_schema_that_leaves_no_room_for_thoughts_is_told(workspace, parser, number):
    """VLLM constrains from the first token where it has no reasoning parser."""

    def answer(request, _):
        level = request.get("reasoning_effort")
        return 200, completion(f"<think>hm</think> 10 {level}" if level else "10")

    with puzzle_server(answer, parser=parser) as (engine, _):
        told = probe(workspace, engine, "high")
    assert len(told) == number
    assert all("thinking high may be none in a run" in one for one in told)

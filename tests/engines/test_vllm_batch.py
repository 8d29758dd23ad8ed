"""The files of the batch runner, and what a batch must show before it is believed."""

import json
from pathlib import Path
from random import Random

import pytest

from loop.core.config import Config, VllmSettings
from loop.core.errors import EngineError, WriteError
from loop.core.records import Completion, Item, Message, Prompt, PromptFrame
from loop.engines.base import ModelName, Settings
from loop.engines.openai.client import Endpoint
from loop.engines.openai.completions import TOO_LONG
from loop.engines.openai.probe import Contradiction
from loop.engines.vllm.batch import (
    BatchChecks,
    BatchEngine,
    BatchResponse,
    _read,
    _remove_left_behind,
    check_name,
    count_lines,
    make_line,
    read_results,
    write_lines,
)

SECRET = "Seen by nobody"


def answer(name, *, status=200, body=None, error=None):
    """Return one line of the runner's answers."""
    response = {"status_code": status, "request_id": "r", "body": body}
    data = {"id": "x", "custom_id": name, "response": response, "error": error}
    return json.dumps(data)


def chat(text, **usage):
    """Return the body of a chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"choices": [choice], "usage": usage or None}


def read(tmp_path, *lines, checks=False):
    """Return the results in a file of `lines`."""
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return list(read_results(path, checks=checks))


def test_a_line_is_one_request_of_the_batch_format(tmp_path):
    """Line ends and other separators inside a case stay inside its line."""
    body = json.dumps({"messages": [{"content": "a\nb\u2028c\x85d"}]}).encode()
    path = tmp_path / "requests.jsonl"
    assert write_lines(path, [make_line("0", body), make_line("1", body)]) == 2
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    assert [row["custom_id"] for row in rows] == ["0", "1"]
    assert rows[0]["body"] == json.loads(body)
    assert (rows[0]["method"], rows[0]["url"]) == ("POST", "/v1/chat/completions")
    assert count_lines(path) == 2


def test_the_requests_are_private_and_never_written_over(tmp_path):
    """They hold the texts of all cases."""
    path = tmp_path / "requests.jsonl"
    write_lines(path, [make_line("0", b"{}")])
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(WriteError):
        write_lines(path, [])


def test_answers_and_their_tokens_are_read(tmp_path):
    """As over HTTP."""
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    (result,) = read(tmp_path, answer("3", body=chat("yes", **usage)))
    assert (result.name, result.status) == ("3", 200)
    assert result.completion.text == "yes"
    assert result.completion.prompt_tokens == 9


def test_a_refusal_is_an_error_without_the_runners_words(tmp_path):
    """They may quote the case."""
    error = {"error": {"message": SECRET, "type": "BadRequestError", "code": 400}}
    (result,) = read(tmp_path, answer("0", status=400, error=error))
    assert result.completion.finish_reason == "error"
    assert result.completion.error == "vLLM refused it: HTTP 400 (BadRequestError)"
    assert SECRET not in str(result.completion)


def test_a_prompt_that_does_not_fit_is_recognised(tmp_path):
    """The commonest refusal has a reason of its own."""
    words = "This model's maximum context length is 100 tokens."
    error = {"error": {"message": words, "type": "BadRequestError", "code": 400}}
    (result,) = read(tmp_path, answer("0", status=400, error=error))
    assert result.completion.error == TOO_LONG


@pytest.mark.parametrize("line", ["", "nonsense", "[]", "{}", '{"custom_id": 3}'])
def test_a_line_that_is_no_answer_is_left_out(tmp_path, line):
    """Its prompt is missing then, which is counted as a failure."""
    assert read(tmp_path, line) == []


@pytest.mark.parametrize(
    "body", [None, {}, {"choices": []}, chat(None) | {"choices": 1}]
)
def test_half_an_answer_is_a_failure(tmp_path, body):
    """Never an empty answer."""
    (result,) = read(tmp_path, answer("0", body=body))
    assert (result.completion.finish_reason, result.status) == ("error", 0)


def test_an_answer_beside_an_error_is_none(tmp_path):
    """The runner says that it is wrong, whatever it calls the status."""
    (result,) = read(tmp_path, answer("0", body=chat("yes"), error={"message": "x"}))
    assert (result.completion.finish_reason, result.completion.text) == ("error", "")


def test_checks_and_cases_are_read_apart(tmp_path):
    """The first are looked at before any answer is given out."""
    lines = [answer(check_name("yes"), body=chat("y")), answer("0", body=chat("n"))]
    assert [one.name for one in read(tmp_path, *lines)] == ["0"]
    assert [one.name for one in read(tmp_path, *lines, checks=True)] == ["check-yes"]


ENDPOINT = Endpoint(url="http://127.0.0.1/v1", model="m", serving=VllmSettings())


@pytest.fixture
def checks():
    """Return checks whose lines were handed over."""
    made = BatchChecks(ENDPOINT, Settings(labels=Path("labels")), Random(7))
    for line in made.lines():
        made.await_line(line)
    return made


def result(name, text, finish="stop"):
    """Return one answer of the runner."""
    return BatchResponse(f"check-{name}", Completion(text, finish), 200)


def allowed():
    """Return the one answer that the schema of these checks allows."""
    (name, value), *_ = (
        (key, one["enum"][0])
        for key, one in Contradiction(Random(7)).schema["properties"].items()
    )
    return f'{{"{name}":"{value}"}}'


def test_a_batch_that_enforces_the_schema_passes(checks):
    """Both checks are there and the schema won."""
    checks.settle([result("yes", "Yes"), result("schema", allowed())])


@pytest.mark.parametrize("left", ["yes", "schema"])
def test_a_check_that_does_not_come_back_stops_the_batch(checks, left):
    """Its answers might have been made without any schema."""
    with pytest.raises(EngineError, match=f"nothing for check-(?!{left})"):
        checks.settle([result(left, allowed())])


@pytest.mark.parametrize(
    ("text", "finish"),
    [('{"answer":"x"}', "stop"), ("", "length"), ("<think>hm", "length")],
)
def test_an_answer_that_shows_nothing_is_no_proof(checks, text, finish):
    """Nothing at all begins every valid answer, and proves none."""
    with pytest.raises(EngineError, match="does not enforce"):
        checks.settle([result("yes", "Yes"), result("schema", text, finish)])


def test_a_check_that_is_refused_stops_the_batch_with_its_words(checks):
    """It holds nothing of a case; what is wrong with it is wrong with all."""
    line = answer(check_name("yes"), status=400, error={"message": "no such field"})
    refused = _read("check-yes", json.loads(line))
    with pytest.raises(EngineError, match=r"\(check-yes, HTTP 400\).*no such field"):
        checks.settle([refused, result("schema", allowed())])


FRAME = PromptFrame(
    call="joint",
    messages=(Message("user", "Case: "),),
    fields=("edema",),
    schema={"type": "object"},
)


def batch_engine(**options):
    """Return an engine that is not opened."""
    serving = {"revision": "r1", "extra_body": {"top_k": 3}, "retry_unreadable": 5}
    config = Config.model_validate({"engines": {"vllm": serving}})
    settings = Settings(labels=Path("labels"), config=config, seed=7)
    return BatchEngine(ModelName("m"), settings, **options)


def prompts(count):
    """Yield numbered prompts of growing length."""
    for number in range(count):
        item = Item(id=f"c{number}", variables={})
        yield Prompt(frame=FRAME, tail="x" * number, item=item)


def chunks(limit, count=9):
    """Return the number of lines in each chunk."""
    engine = batch_engine(chunk_bytes=limit)
    return [len(list(lines)) for lines in engine._chunks(prompts(count))]


def test_a_chunk_is_filled_to_its_limit_and_no_further():
    """The runner reads all of it into memory; a line that is longer goes alone."""
    (lines,) = ([*one] for one in batch_engine()._chunks(prompts(9)))
    sizes = [len(line.data) for line in lines]
    assert len(sizes) == 2 + 1 + 9
    for first in range(1, len(sizes)):
        whole = sum(sizes[:first])
        assert chunks(whole)[0] == first
        assert chunks(whole - 1)[0] == max(first - 1, 1)
    assert chunks(1) == [1] * len(sizes)
    assert chunks(10, 0) == []


def test_a_batch_is_asked_as_the_config_says_and_each_draw_with_its_seed():
    """What was rendered for one draw is not taken for another."""
    engine = batch_engine()
    drawn = engine.redraw(2)
    assert (engine.retry_unreadable, drawn.retry_unreadable) == (5, 5)
    for one, seed in ((engine, 7), (drawn, 9), (engine, 7)):
        *_, last = one._lines(prompts(1))
        body = json.loads(last.data)["body"]
        assert (body["seed"], body["top_k"], body["model"]) == (seed, 3, "m")
    engine._installed = ("python", "vllm", "1")
    identity = engine.identity()
    assert identity["revision"] == "r1"
    assert identity["extra_body"] == {"top_k": 3}


def test_each_prompt_of_a_batch_gets_one_completion(tmp_path):
    """One that came twice counts once, one that is missing fails, in their order."""
    path = tmp_path / "answers.jsonl"
    given = [answer("5", body=chat("five")), answer("5", body=chat("again"))]
    given += [answer("11", status=500, error={"message": "x"}), answer("99")]
    path.write_text("".join(f"{line}\n" for line in given))
    engine = batch_engine()
    found = list(engine._read(path, range(2, 13)))
    assert [index for index, _ in found] == [5, 11, 2, 3, 4, 6, 7, 8, 9, 10, 12]
    assert found[0][1].text == "five"
    account = engine.account()
    assert (account["requests"], account["answered"]) == (11, 1)
    assert account["failed"] == {"HTTP 500": 1, "unreadable or missing": 9}


def test_a_later_chunk_awaits_no_probe(checks):
    """The probe goes before the first chunk only."""
    checks.settle([result("yes", "Yes"), result("schema", allowed())])
    checks.settle([])


@pytest.mark.parametrize("status", ["busy", None, [400], 4.5])
def test_a_status_that_is_no_number_is_none(tmp_path, status):
    """No answer of HTTP is made up for what cannot be read."""
    error = {"error": {"message": "", "type": "", "code": 400}}
    (result,) = read(tmp_path, answer("0", status=status, error=error))
    assert (result.completion.finish_reason, result.status) == ("error", 0)


@pytest.mark.parametrize(
    ("error", "left"), [(ProcessLookupError, False), (PermissionError, True)]
)
def test_files_of_a_run_by_somebody_else_are_left(tmp_path, monkeypatch, error, left):
    """A process that may not be asked is alive, and needs its files."""

    def kill(*_):
        raise error

    monkeypatch.setattr("os.kill", kill)
    (tmp_path / "batch-1234-x").mkdir()
    (tmp_path / "batch-x-y").mkdir()
    (tmp_path / "batch-1234-log").write_text("kept")
    _remove_left_behind(tmp_path)
    assert (tmp_path / "batch-1234-x").exists() == left
    # What no batch made is nobody's to remove.
    assert (tmp_path / "batch-x-y").exists()
    assert (tmp_path / "batch-1234-log").exists()


def test_the_probe_of_a_batch_asks_for_two_tokens_and_for_one_answer():
    """And one token of each frame, before the first prompt that has it."""
    other = PromptFrame(
        call="x", messages=(Message("user", "Other: "),), fields=("x",), schema={}
    )
    item = Item(id="c", variables={})
    asked = [
        Prompt(frame=frame, tail=tail, item=item)
        for frame, tail in ((FRAME, "a"), (other, "b"), (FRAME, "c"), (other, "d"))
    ]
    lines = [json.loads(line.data) for line in batch_engine()._lines(asked)]
    told = [
        (
            one["custom_id"],
            one["body"]["messages"][-1]["content"],
            one["body"]["max_tokens"],
            "response_format" in one["body"],
        )
        for one in lines
    ]
    assert told[0] == ("check-yes", "Say yes.", 2, False)
    name, content, tokens, bound = told[1]
    assert (name, tokens, bound) == ("check-schema", 160, True)
    assert content.startswith("Answer with exactly this JSON and nothing else: {")
    assert told[2:] == [
        ("check-frame-0", "Case: ", 1, True),
        ("0", "Case: a", 2048, True),
        ("check-frame-1", "Other: ", 1, False),
        ("1", "Other: b", 2048, False),
        ("2", "Case: c", 2048, True),
        ("3", "Other: d", 2048, False),
    ]


@pytest.mark.parametrize(
    ("status", "lost", "fine"),
    [(0, 0, True), (0, 1, True), (1, 0, True), (1, 1, False)],
)
def test_a_runner_that_ended_badly_has_answered_if_all_is_there(
    tmp_path, status, lost, fine
):
    """It may die of what comes after its last answer; its log goes with it then."""
    engine = batch_engine()
    engine._folder = tmp_path
    logs = []

    def wait(files, log, until):
        requests, answers = files
        lines = requests.read_bytes().splitlines(keepends=True)
        answers.write_bytes(b"".join(lines[lost:]))
        log.write_text("words")
        logs.append(log)
        return status

    engine._wait = wait
    files = (tmp_path / "requests.jsonl", tmp_path / "answers.jsonl")
    lines = [make_line(check_name("yes"), b"{}"), make_line("0", b"{}")]
    if fine:
        assert engine._run(files, lines, None) == 1
    else:
        with pytest.raises(EngineError, match=r"without answering \(exit status 1\)"):
            engine._run(files, lines, None)
    (log,) = logs
    assert log.exists() is not fine

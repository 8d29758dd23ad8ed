"""The chat engine against a real server: llama.cpp with a tiny random model."""

import json
import re
import socket
from functools import partial
from itertools import pairwise
from urllib.request import urlopen

import numpy as np
import pytest

from loop.core.errors import EngineError
from loop.core.ledger import Actor
from loop.core.paths import bundled
from loop.core.records import Status
from loop.engines.base import Settings, Streaming, get_engine
from loop.judge import Judge
from loop.judge.counts import score_counts, scores_of
from loop.judge.judge import list_judges
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.outputs.base import get_contract, list_exchangeable
from loop.prompts.stages import given_texts
from loop.prompts.version import with_contract
from loop.run.asking import EngineOptions, opened
from loop.run.store import open_store, read_outcomes
from loop.run.task import prepare_run, run_draws, run_task
from loop.score.experts.error_counts import Empty
from tests.conftest import shipped_workspace
from tests.servers.answers import follows
from tests.servers.process import serving

ENABLE = "`pip install 'ranloop[dev]'` enables the tests with llama.cpp"
pytest.importorskip("xllamacpp", reason=ENABLE)
pytest.importorskip("gguf", reason=ENABLE)
pytest.importorskip("tokenizers", reason=ENABLE)

pytestmark = [pytest.mark.external, pytest.mark.slow]

CASES = 25


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """Write the model once."""
    from tests.servers.tiny_gguf import write_model

    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session")
def server(model_file):
    """Run the server once; return its URL."""
    with serving("tests.servers.llama_server", model_file) as url:
        yield url


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Make a workspace with the synthetic demo cohort."""
    workspace = shipped_workspace(tmp_path_factory.mktemp("llama") / "ws")
    add_cohort(workspace, bundled() / "labels/demo/dev.jsonl", "demo")
    return workspace


def add_cohort(workspace, source, name):
    """Import `source` as a cohort."""
    options = ImportOptions(name=name, role="dev", source="synthetic", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="test"))


def ask(workspace, cohort, url, *, limit=None):
    """Run ``extractor@latest``; return summary, account, identity and outcomes."""
    task = prepare_run(
        workspace,
        "extractor@latest",
        cohort,
        engine=f"openai:tiny@{url}",
        limit=limit,
    )
    kept = {}

    def look(items):
        kept["identity"] = task.engine.identity()
        kept["before"] = metrics(url)
        yield from items

    summary = run_task(workspace, task, watch=look)
    kept["after"] = metrics(url)
    with open_store(workspace) as store:
        outcomes = list(read_outcomes(store, summary.run_id))
    return summary, task.engine.account(), kept, outcomes


def metrics(url):
    """Return the counters of llama.cpp's own account by name."""
    with urlopen(url.removesuffix("/v1") + "/metrics") as response:
        text = response.read().decode()
    return {
        name: float(value)
        for name, value in re.findall(r"^llamacpp:(\w+) (\S+)$", text, re.MULTILINE)
    }


@pytest.fixture(scope="session")
def first_run(place, server):
    """Ask the first cases once, for several tests."""
    return ask(place, "demo", server, limit=CASES)


def test_cases_are_answered_by_the_schema(place, first_run):
    """The server enforces the schema: every answer is read, none repaired but spans."""
    summary, account, kept, outcomes = first_run
    assert (summary.items, summary.answered, summary.asked) == (CASES, CASES, CASES)
    assert kept["identity"]["constrained"] is True
    assert account["requests"] == account["answered"] == CASES
    assert not account["retried"] and not account["failed"]
    task = prepare_run(place, "extractor@latest", "demo", limit=1)
    (prompt,) = task.work.plan(next(iter(task.work.items)))
    with open_store(place) as store:
        texts = store.read("SELECT text FROM completions WHERE finish_reason = 'stop'")
    assert len(texts) >= CASES
    for (text,) in texts:
        assert follows(prompt.frame.schema, json.loads(text))
    assert all(set(one.fields) == set(prompt.frame.fields) for one in outcomes)


def test_both_sides_count_the_same_tokens(first_run):
    """Usage comes from the server's answers; its own metrics must agree."""
    _, account, kept, _ = first_run
    predicted, read = "tokens_predicted_total", "prompt_tokens_total"
    grown = {
        name: kept["after"][name] - kept["before"][name] for name in (predicted, read)
    }
    assert account["completion_tokens"] == grown[predicted]
    # What the server read is what it was sent less what its prefix cache had.
    assert account["prompt_tokens"] - account["cached_tokens"] == grown[read]
    assert account["cached_tokens"] > 0.5 * account["prompt_tokens"]


def test_the_identity_names_what_the_server_says_of_itself(first_run, model_file):
    """Build, model file and template are part of every cache key."""
    _, _, kept, _ = first_run
    said = json.dumps(kept["identity"])
    assert kept["identity"]["model"] == "tiny"
    assert str(model_file.name) in said
    assert "created" not in said


def test_a_case_too_long_for_the_context_fails_alone(place, server, tmp_path):
    """It is named by its id; nothing of it stands in the reason."""
    cases = [
        {"case_id": "short-1", "text": "Chest radiograph: the lungs are clear."},
        {"case_id": "endless", "text": "A zyzzogeton sits in the lung. " * 4000},
        {"case_id": "short-2", "text": "Chest radiograph: a small left effusion."},
    ]
    source = tmp_path / "long.jsonl"
    source.write_text("\n".join(map(json.dumps, cases)) + "\n", encoding="utf-8")
    add_cohort(place, source, "long")
    summary, account, _, outcomes = ask(place, "long", server)
    ends = {outcome.item_id: outcome for outcome in outcomes}
    assert (summary.answered, summary.failed) == (2, 1)
    assert ends["endless"].status is Status.ENGINE_FAILED
    assert "does not fit the model's context" in ends["endless"].problem
    assert "zyzzogeton" not in json.dumps([o.problem for o in outcomes])
    assert account["requests"] == 3


def add_text(texts, index, text):
    """Note what is heard of an answer."""
    texts.append(text)


def test_a_streamed_answer_is_the_unstreamed_one(place, server):
    """Text, end and tokens; and it was heard in many pieces."""
    task = prepare_run(
        place, "extractor@latest", "demo", engine=f"openai:tiny@{server}", limit=5
    )
    prompts = [prompt for item in task.work.items for prompt in task.work.plan(item)]
    heard, pairs = [], []
    with opened(task.engine) as engine:
        assert isinstance(engine, Streaming)
        for prompt in prompts:
            # Each is asked alone: what else is in a batch may change an answer.
            told = []
            hear = partial(add_text, told)
            ((_, streamed),) = engine.stream([prompt], hear)
            ((_, whole),) = engine.complete([prompt])
            pairs.append((streamed, whole))
            heard.append(told)
        account = engine.account()
    assert account["requests"] == account["answered"] == 2 * len(prompts)
    same = ("text", "finish_reason", "thinking", "prompt_tokens", "completion_tokens")
    for streamed, whole in pairs:
        assert streamed.finish_reason == "stop"
        assert [getattr(streamed, name) for name in same] == [
            getattr(whole, name) for name in same
        ]
        assert streamed.cached_tokens is not None
    for steps, (_, whole) in zip(heard, pairs, strict=True):
        assert len(steps) > 10 and steps[-1] == whole.text
        assert all(after.startswith(before) for before, after in pairwise(steps))


def test_an_unknown_model_is_refused_although_the_server_would_answer(server):
    """llama.cpp answers to any name: what it serves is looked up instead."""
    settings = Settings(labels=bundled() / "labels")
    engine = get_engine(f"openai:gpt-none@{server}", settings)
    with pytest.raises(EngineError, match="tiny") as caught, opened(engine):
        pass
    assert "gpt-none" in str(caught.value)


def test_repeats_are_fresh_and_the_first_draw_stays_cached(place, server, first_run):
    """A draw is part of the question: the server is asked again, once."""
    del first_run
    engine = f"openai:tiny@{server}"
    counts = []
    for _ in range(2):
        task = prepare_run(place, "extractor@latest", "demo", engine=engine, limit=5)
        draws = list(run_draws(place, task, range(2)))
        counts.append([(done.asked, done.cached, done.answered) for done in draws])
    assert counts == [[(0, 5, 5), (5, 0, 5)], [(0, 5, 5), (0, 5, 5)]]


def test_two_servers_with_one_model_name_never_share_answers(place, server, first_run):
    """Name and even file are the same; the server is not."""
    del first_run
    with serving("tests.servers.llama_server", *model_arguments(server)) as other:
        summary, _, _, _ = ask(place, "demo", other, limit=3)
    assert (summary.asked, summary.cached) == (3, 0)


def model_arguments(server):
    """Return the model file that `server` says it serves."""
    with urlopen(server.removesuffix("/v1") + "/props") as response:
        return (json.load(response)["model_path"],)


def test_another_model_file_at_the_same_url_is_another_engine(place, tmp_path):
    """Somebody restarts the server with other weights under the same name."""
    from tests.servers.tiny_gguf import write_model

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    seen = []
    for seed in (1, 2):
        path = write_model(tmp_path / f"tiny-{seed}.gguf", seed=seed)
        arguments = (path, "--port", port)
        with serving("tests.servers.llama_server", *arguments) as url:
            summary, _, kept, _ = ask(place, "demo", url, limit=2)
        seen.append((url, kept["identity"]))
        assert (summary.asked, summary.cached) == (2, 0)
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


JUDGES = [one for one in list_judges(None) if "candidate" in given_texts(one.inputs)]
FORMS = {
    name: version
    for version in JUDGES
    for name in list_exchangeable(get_contract(version.contract))
}
WAYS = [
    *JUDGES,
    *(
        with_contract(version, name, get_contract(name).instruction)
        for name, version in FORMS.items()
        if name != version.contract
    ),
]
"""Every judge that ships in its own form, and one of them in each other form."""


@pytest.mark.parametrize("judge", WAYS, ids=lambda one: f"{one.name}-{one.contract}")
def test_judges_are_asked_in_every_form(server, judge):
    """JSON by the schema is read; a random model's free text is no perfect score."""
    references = ["Small left effusion.", "The lungs are clear."]
    candidates = ["Small right effusion.", "The lungs are clear."]
    asking = EngineOptions(max_tokens=800)
    with Judge.open(None, judge, f"openai:tiny@{server}", asking) as opened_judge:
        said = opened_judge.judge(references, candidates, ["en", "en"])
        scores = scores_of(opened_judge.contract)
    assert set(said.counts.statuses) <= {Status.ANSWERED, Status.UNPARSED}
    values = np.column_stack(
        [score_counts(said.counts, one, Empty.ONE) for one in scores]
    )
    read = np.array([one is Status.ANSWERED for one in said.counts.statuses])
    assert np.isnan(values[~read]).all()
    assert bool(said.problems) is not read.all()
    contract = get_contract(judge.contract)
    if contract.counts_errors and contract.counts_matches:
        # A random model may list a blank text, which the schema allows.
        whole = judge.contract == "error_list" or not contract.schema(judge.labels)
        assert not whole or read.all() == bool(contract.schema(judge.labels))

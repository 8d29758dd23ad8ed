"""The engine against a real vLLM on the CPU with a tiny random model."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.request import ProxyHandler, build_opener

import numpy as np
import pytest

from loop.core.config import read_config
from loop.core.errors import EngineError, NoEffectError
from loop.core.ledger import Actor
from loop.core.paths import bundled
from loop.core.records import Item, Status
from loop.engines.base import Settings, get_engine
from loop.engines.vllm.environment import VARIABLE, find_vllm
from loop.engines.vllm.running import announced, serve_folder
from loop.engines.vllm.server import describe, make_server
from loop.judge import Judge
from loop.judge.counts import score_counts, scores_of
from loop.judge.judge import list_judges
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract, list_exchangeable
from loop.prompts.render import plan_prompts
from loop.prompts.stages import given_texts
from loop.prompts.version import with_contract
from loop.run.asking import EngineOptions, opened
from loop.run.shards import read_manifest_of
from loop.run.store import open_store, read_outcomes
from loop.run.task import prepare_run, run_task
from loop.score.experts.error_counts import Empty
from tests.conftest import shipped_workspace
from tests.servers.answers import follows

pytestmark = [pytest.mark.external, pytest.mark.slow]

CASES = 16
WIDTH = 4
MAKER = Path(__file__).parents[1] / "servers" / "tiny_qwen3.py"
HOW = (
    f"`.ci/vllm DIR && export {VARIABLE}=DIR/bin/python` enables the tests with a "
    "real vLLM"
)

CONFIG = """
engines:
  vllm:
    python: {python}
    dtype: float32
    enforce_eager: true
    max_model_len: 32768
    concurrency: {width}
    lora: {{chest: {model}-adapter}}
    environment: {{VLLM_CPU_KVCACHE_SPACE: "1"}}
"""


def demo_texts():
    """Return the synthetic texts that ship with ranloop, by case id."""
    lines = (bundled() / "labels" / "demo" / "dev.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()[:CASES]]
    return {row["case_id"]: row["text"] for row in rows}


def write_cohort(workspace, folder, name, texts):
    """Import a cohort of `texts`."""
    source = folder / f"{name}.jsonl"
    rows = [{"case_id": key, "text": text} for key, text in texts.items()]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ImportOptions(name=name, role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a workspace with synthetic cases, and a tiny model beside it.

    ``own`` names the same model otherwise: no running server is found under it.
    """
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(HOW)
    folder = tmp_path_factory.mktemp("vllm")
    workspace = shipped_workspace(folder / "ws")
    model = folder / "tiny"
    guides = sorted((workspace.prompts / "extractor").glob("v*/guides.yaml"))[-1]
    cases = workspace.labels / "demo" / "dev.jsonl"
    subprocess.run([python, MAKER, model, guides, cases], check=True)
    text = CONFIG.format(python=python, model=model, width=WIDTH)
    workspace.config.write_text(text)
    write_cohort(workspace, folder, "small", demo_texts())
    long = {
        "short": "Clear lungs.",
        "long": "Clear lungs. " * 20_000,
        "other": "Edema.",
    }
    write_cohort(workspace, folder, "long", long)
    version = read_version(workspace, "extractor")
    contract = get_contract(version.contract)
    return SimpleNamespace(
        workspace=workspace,
        engine=f"vllm:{model}",
        own=f"vllm:{model}/",
        model=str(model),
        settings=Settings(
            labels=workspace.labels,
            private=workspace.private,
            config=read_config(workspace),
        ),
        plan=plan_prompts(version, contract.schema),
        contract=contract,
    )


@pytest.fixture(scope="module")
def served(place):
    """Keep a server running that other engines of the workspace find."""
    settings = place.settings.config.engines.vllm
    installed = find_vllm(settings.python)
    folder = serve_folder(place.workspace.private)
    server = make_server(installed, place.model, settings, folder)
    try:
        server.start()
        with announced(folder, describe(installed, place.model, settings, server.url)):
            yield server
    finally:
        server.stop()


def read_metrics(server, name):
    """Return the sum of one counter of the server."""
    url = f"http://127.0.0.1:{server.port}/metrics"
    with build_opener(ProxyHandler({})).open(url) as reply:
        page = reply.read().decode()
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? ([\d.e+]+)$", page, re.M)))


def ask(place, engine):
    """Return the answers to the cases, in order, and their prompts."""
    items = [
        Item(id=key, variables={"text": text}) for key, text in demo_texts().items()
    ]
    prompts = [place.plan(item)[0] for item in items]
    answers = dict(engine.complete(iter(prompts)))
    assert sorted(answers) == list(range(CASES))
    return [answers[index] for index in range(CASES)], prompts


def run(place, cohort, engine=None, **asking):
    """Run the extractor; return summary and outcomes by case id."""
    task = prepare_run(
        place.workspace,
        "extractor",
        cohort,
        engine=engine or place.engine,
        asking=EngineOptions(**asking),
    )
    summary = run_task(place.workspace, task)
    return summary, outcomes_of(place, summary)


def outcomes_of(place, summary):
    """Return the outcomes of a run by case id."""
    with open_store(place.workspace) as store:
        rows = list(read_outcomes(store, summary.run_id))
    found = {outcome.item_id: outcome for outcome in rows}
    assert len(found) == len(rows)
    return found


def test_answers_follow_the_schema_and_share_the_prefix(place, served):
    """The frame is read once; the rest comes from the server's prefix cache."""
    counters = ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
    with get_engine(place.engine, place.settings) as engine:
        before = [read_metrics(served, name) for name in counters]
        answers, prompts = ask(place, engine)
        after = [read_metrics(served, name) for name in counters]
        account = engine.account()
    for answer, prompt in zip(answers, prompts, strict=True):
        assert answer.finish_reason == "stop"
        assert follows(prompt.frame.schema, json.loads(answer.text))
        reading = place.contract.read(answer.text, prompt.frame.fields, prompt.item)
        assert reading.fields is not None
    hits, queries = (end - start for start, end in zip(before, after, strict=True))
    assert hits / queries > 0.9
    assert account["cached_tokens"] == hits
    assert account["prompt_tokens"] == queries
    # What was sent into a connection that the server had closed was never seen there.
    unseen = sum(account["retried"].values())
    assert (account["requests"] - unseen, account["answered"]) == (CASES, CASES)


def test_a_case_that_does_not_fit_the_context_fails_alone(place, served):
    """By its id, with a reason, and never as an answer."""
    summary, outcomes = run(place, "long")
    assert (summary.items, summary.answered, summary.failed) == (3, 2, 1)
    assert outcomes["long"].status is Status.ENGINE_FAILED
    assert "does not fit the model's context" in outcomes["long"].problem


def test_a_model_that_is_not_served_is_refused_by_name(place, served):
    """The message says what is served."""
    engine = get_engine(f"vllm:other@{served.url}", place.settings)
    with pytest.raises(EngineError, match="does not serve 'other'") as caught, engine:
        pass
    assert place.model in str(caught.value)


def test_thinking_without_an_effect_is_no_result(place, served):
    """The template can only be told not to think: other levels change nothing.

    They are ignored with HTTP 200, a budget without a reasoning parser is not.
    """
    with get_engine(place.engine, replace(place.settings, thinking="none")):
        pass
    for level, error, words in (
        ("low", NoEffectError, "thinking low has no effect"),
        ("high", NoEffectError, "thinking high has no effect"),
        ("64", EngineError, "refuses thinking 64 .HTTP 400"),
    ):
        settings = replace(place.settings, thinking=level, max_tokens=256)
        engine = get_engine(place.engine, settings)
        with pytest.raises(error, match=words), engine:
            pass


def test_an_adapter_answers_otherwise_than_its_model(place, served):
    """It is really applied, and it is another engine for the store."""
    texts = {}
    identities = {}
    settings = replace(place.settings, max_tokens=64)
    for name in (place.engine, f"{place.engine}#chest"):
        with get_engine(name, settings) as engine:
            prompt = place.plan(Item(id="a", variables={"text": "Small effusion."}))[0]
            ((_, answer),) = engine.complete(iter([prompt]))
            texts[name], identities[name] = answer.text, engine.identity()
    assert len(set(texts.values())) == 2
    assert identities[place.engine] != identities[f"{place.engine}#chest"]


FORMS = {
    name: version
    for version in list_judges(None)
    if "candidate" in given_texts(version.inputs)
    for name in list_exchangeable(get_contract(version.contract))
}
"""Each form of an answer, and a judge that ships which may be answered in it."""

WAYS = [
    with_contract(version, name, get_contract(name).instruction)
    for name, version in FORMS.items()
]


def test_judges_are_asked_in_every_form(place, served):
    """JSON by the schema is read unless it is cut; free text is no perfect score."""
    for version in WAYS:
        # Free text of random words has no end.
        asking = EngineOptions(max_tokens=60 if "_text" in version.contract else 600)
        with Judge.open(place.workspace, version, place.engine, asking) as judge:
            said = judge.judge(["Small left effusion."], ["No effusion."], ["en"])
            scores = scores_of(judge.contract)
        (status,) = said.counts.statuses
        # The first stage of a judge may be known of the form before.
        assert said.asked + said.cached >= 1, version.contract
        assert status in (Status.ANSWERED, Status.UNPARSED), version.contract
        values = [score_counts(said.counts, one, Empty.ONE)[0] for one in scores]
        assert status is Status.ANSWERED or np.isnan(values).all(), version.contract
        assert status is Status.UNPARSED or version.contract != "green_text"


class Killing:
    """Passes everything on, and kills the engine's server after some answers."""

    def __init__(self, engine, after):
        self.inner = engine
        self._after = after

    def __enter__(self):
        """Open the engine."""
        self._open = opened(self.inner)
        self._open.__enter__()
        return self

    def __exit__(self, *error):
        """Close the engine."""
        return self._open.__exit__(*error)

    def identity(self):
        """Return the engine's identity."""
        return self.inner.identity()

    def complete(self, prompts):
        """Yield the engine's answers, one of them with a shot."""
        for count, answer in enumerate(self.inner.complete(prompts), 1):
            if count == self._after:
                guard = self.inner._server._process._guard.pid
                children = Path(f"/proc/{guard}/task/{guard}/children").read_text()
                os.kill(int(children.split()[0]), signal.SIGKILL)
            yield answer


def test_a_server_killed_in_mid_run_is_restarted_and_nothing_is_lost(place):
    """Every case has one outcome; asked twice is only what was in flight."""
    task = prepare_run(
        place.workspace,
        "extractor",
        "small",
        engine=place.own,
        asking=EngineOptions(seed=1),
    )
    engine = Killing(task.engine, after=10)
    summary = run_task(place.workspace, replace(task, engine=engine))
    account = engine.inner._chat.account()
    assert engine.inner._server.restarts == 1
    assert (summary.items, summary.asked) == (CASES, CASES)
    assert summary.answered + summary.unparsed == CASES
    assert set(outcomes_of(place, summary)) == set(demo_texts())
    assert account["answered"] == CASES
    assert account["failed"] == {}
    # A refused connection reached no server, and a dying one answers with errors: only
    # what was broken off may have been asked twice.
    retried = account["retried"]
    unheard = ("connection refused", "no connection")
    turned_away = sum(
        count
        for why, count in retried.items()
        if why in unheard or why.startswith("HTTP 5")
    )
    assert account["requests"] > CASES
    assert account["requests"] - turned_away - CASES <= WIDTH, retried


def test_the_batch_runner_gives_every_case_one_outcome(place):
    """The same cases through files; they are gone afterwards."""
    summary, outcomes = run(place, "small", batch=True)
    assert (summary.items, summary.asked, summary.failed) == (CASES, CASES, 0)
    assert summary.answered == CASES
    assert set(outcomes) == set(demo_texts())
    assert not list((place.workspace.private / "serve").glob("batch-*"))


@pytest.mark.skipif(
    not Path(sys.prefix, "bin", "ray").exists(), reason="Ray is not installed"
)
def test_an_actor_of_ray_starts_the_server_it_asks(place, tmp_path):
    """Every row has its outcome, and the server ends with the cluster."""
    texts = dict([*demo_texts().items()][:2])
    source, out = tmp_path / "corpus.jsonl", tmp_path / "out"
    lines = [json.dumps({"id": key, "text": text}) for key, text in texts.items()]
    source.write_text("\n".join(lines))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "loop", "annotate", source, "--out", out),
            *("--workspace", place.workspace.root, "--prompt", "extractor"),
            *("--engine", place.own, "--ray", "local", "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["statuses"].keys() <= {"answered", "unparsed"}
    made = read_manifest_of(out)
    assert made.plan.engine_identity["server"]["runner"] == "server"
    assert made.rows == sum(made.statuses.values()) == 2
    assert not any(text in ended.stderr for text in texts.values())
    ends = time.monotonic() + 20
    while serving_own := find_processes(f"{place.model}/"):
        assert time.monotonic() < ends, serving_own
        time.sleep(0.2)


def find_processes(word):
    """Return the ids of the processes with a word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found

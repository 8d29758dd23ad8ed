"""Time a run through the chat engine against a bare client and other frameworks.

Run ``python -m tests.bench.bench_engines`` from the repository root. All of them send
the same 2,000 cases with the same 28 kB of instructions to a loopback server that costs
next to nothing, 64 at a time, in the same invocation:

- ``bare``: aiohttp with prepared bytes, reading each answer and keeping nothing: what
  the client library and the machine allow;
- ``uvloop``: the same bare client on the event loop that the engine runs on;
- ``engine``: the chat engine alone, its completions dropped;
- ``run``: a whole run, with a new store, keys, parsing and outcomes;
- ``adaptive``: the same, finding out by itself how many requests to have under way;
- ``dspy`` and ``inspect``, in environments of their own (``--dspy-python``,
  ``--inspect-python``): ``dspy.Evaluate`` with 64 threads and without cache, and an
  inspect_ai evaluation with 64 connections.

A machine's speed drifts, so they take turns: each time is compared with the bare
client's just before and just after it, and the medians of these ratios are printed.
Start-up (the engine's probe, a framework's import) is not part of any of them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import aiohttp
from uvloop import new_event_loop

from loop.core.config import Config, ServingSettings
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item, Message, Prompt, PromptFrame
from loop.engines.base import Settings
from loop.engines.openai.client import Endpoint
from loop.engines.openai.engine import ChatEngine
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.run.execute import Work, execute
from loop.run.spec import RunSpec
from loop.run.store import Store
from tests.bench.bench_run import synthetic_texts
from tests.servers.process import serving_chat

CONNECTIONS = 64
EVIDENCE = "Portable view of the chest"
OTHERS = Path(__file__).with_name("other_clients.py")


class Job(NamedTuple):
    """What every client works on."""

    frame: PromptFrame
    texts: list[str]
    answer: str
    """What the server answers to each case of ours."""

    flat_answer: str
    """The same without evidence, for programs with one field per label."""


def make_job(count: int, instructions: int) -> Job:
    """Return `count` cases behind so many bytes of instructions."""
    version = read_version(WorkspacePaths(bundled()), "extractor")
    contract = get_contract(version.contract)
    (frame,) = plan_prompts(version, contract.schema).frames
    prose = "\n".join(message.content for message in frame.messages)
    system = (prose * (1 + instructions // len(prose)))[:instructions]
    frame = PromptFrame(
        call="joint",
        messages=(Message("system", system), Message("user", "Case: ")),
        fields=frame.fields,
        schema=contract.schema(frame.fields),
    )
    found = {"value": "present", "evidence": EVIDENCE}
    answer = {name: "absent" for name in frame.fields}
    flat = json.dumps(answer)
    answer |= dict.fromkeys(frame.fields[3:6], found)
    texts = [
        f"{EVIDENCE}, study {number}. {text}"
        for number, text in enumerate(synthetic_texts(count))
    ]
    return Job(frame, texts, json.dumps(answer), flat)


def make_prompts(job: Job) -> Iterator[Prompt]:
    """Yield the prompts of all cases."""
    for item in make_items(job):
        yield Prompt(frame=job.frame, tail=item.variables["text"], item=item)


def make_items(job: Job) -> Iterator[Item]:
    """Yield the cases."""
    for number, text in enumerate(job.texts):
        yield Item(id=f"case-{number}", variables={"text": text})


def make_engine(url: str, concurrency: int | str = CONNECTIONS) -> ChatEngine:
    """Return the engine, not yet entered."""
    serving = ServingSettings.model_validate({"concurrency": concurrency})
    settings = Settings(labels=bundled() / "labels", config=Config())
    return ChatEngine(
        "openai", Endpoint(url=url, model="tiny", serving=serving), settings
    )


def time_bare(url: str, job: Job, *, fast_loop: bool = False) -> float:
    """Return the seconds of a client that only sends and reads.

    With `fast_loop` on uvloop, on which the engine runs too.
    """
    form = {"name": "answer", "schema": job.frame.schema, "strict": True}
    fixed = {
        "model": "tiny",
        "max_tokens": 2048,
        "temperature": 0.0,
        "seed": 0,
        "response_format": {"type": "json_schema", "json_schema": form},
    }
    bodies = [
        json.dumps({**fixed, "messages": [m._asdict() for m in prompt.messages]})
        for prompt in make_prompts(job)
    ]
    work = _send_all(f"{url}/chat/completions", [b.encode() for b in bodies])
    with asyncio.Runner(loop_factory=new_event_loop if fast_loop else None) as runner:
        return runner.run(work)


async def _send_all(url: str, bodies: list[bytes]) -> float:
    waiting = iter(bodies)
    headers = {"Content-Type": "application/json"}

    async def send(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(url, data=body, headers=headers) as response:
                await response.read()
                assert response.status == 200

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        gc.collect()
        start = perf_counter()
        await asyncio.gather(*(send(session) for _ in range(CONNECTIONS)))
        return perf_counter() - start


def time_engine(url: str, job: Job) -> float:
    """Return the seconds of the chat engine alone."""
    with make_engine(url) as engine:
        gc.collect()
        start = perf_counter()
        answers = sum(
            one.finish_reason == "stop" for _, one in engine.complete(make_prompts(job))
        )
        seconds = perf_counter() - start
    assert answers == len(job.texts)
    return seconds


def make_run(job: Job, items: Iterable[Item]) -> tuple[RunSpec, Work]:
    """Return what a run of `items` behind the instructions of `job` needs."""
    spec = RunSpec(
        prompt="bench@v1",
        prompt_digest="0" * 64,
        contract="label_values/1",
        cohort="bench",
        cohort_digest="0" * 64,
        engine="openai:tiny",
    )
    work = Work(
        items=items,
        plan=lambda item: (
            Prompt(frame=job.frame, tail=item.variables["text"], item=item),
        ),
        contract=get_contract("label_values"),
    )
    return spec, work


def time_run(url: str, job: Job, concurrency: int | str = CONNECTIONS) -> float:
    """Return the seconds of a whole run with a new store."""
    spec, work = make_run(job, make_items(job))
    with tempfile.TemporaryDirectory() as folder, make_engine(url, concurrency) as it:
        gc.collect()
        start = perf_counter()
        store = Store(Path(folder) / "store.db")
        summary = execute(spec, work, it, store)
        store.close()
        seconds = perf_counter() - start
    assert summary.answered == len(job.texts), summary
    return seconds


def time_other(name: str, python: str, url: str, job: Job) -> float:
    """Return the seconds of another framework in its own environment."""
    task = {
        "system": job.frame.messages[0].content,
        "labels": job.frame.fields,
        "texts": job.texts,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(task, file)
        file.flush()
        done = subprocess.run(
            [python, str(OTHERS), name, file.name, url],
            capture_output=True,
            text=True,
            check=True,
        )
    seconds, answers = json.loads(done.stdout.splitlines()[-1])
    assert answers == len(job.texts), done.stdout[-500:]
    return float(seconds)


def measure(job: Job, latency_ms: float, options: argparse.Namespace) -> None:
    """Print the ratios and times of every client at one latency."""
    times, ratios = defaultdict(list), defaultdict(list)
    plain = {"answer": job.answer, "latency_ms": latency_ms}
    flat = {"answer": job.flat_answer, "latency_ms": latency_ms}
    with serving_chat(**plain) as url, serving_chat(**flat) as flat_url:
        ours: dict[str, Callable[[], float]] = {
            "uvloop": lambda: time_bare(url, job, fast_loop=True),
            "engine": lambda: time_engine(url, job),
            "run": lambda: time_run(url, job),
            "adaptive": lambda: time_run(url, job, "adaptive"),
        }
        others: dict[str, Callable[[], float]] = {
            name: lambda name=name, python=python: time_other(
                name, python, flat_url, job
            )
            for name in ("dspy", "inspect")
            if (python := getattr(options, f"{name}_python"))
        }
        time_bare(url, job)
        before = time_bare(url, job)
        for turn in range(options.turns):
            clients = ours | (others if turn < options.other_turns else {})
            for name, client in clients.items():
                seconds = client()
                after = time_bare(url, job)
                ratios[name].append((before + after) / 2 / seconds)
                times[name].append(seconds)
                times["bare"].append(after)
                before = after
    print_table(latency_ms, len(job.texts), times, ratios)


def print_table(latency_ms, count, times, ratios):
    """Print ratios first: they hold on other machines, times do not."""
    print(f"\n{latency_ms:g} ms, {count} cases, {CONNECTIONS} at a time")
    print(f"{'client':10}{'of bare':>9}{'run is':>9}{'cases/s':>9}{'turns':>7}")
    run = median(ratios["run"])
    for name in ("bare", *ratios):
        ratio = median(ratios[name]) if name in ratios else 1.0
        rate = count / median(times[name])
        print(
            f"{name:10}{ratio:9.3f}{run / ratio:8.2f}x{rate:9.0f}{len(times[name]):7}",
            flush=True,
        )


def profile(job: Job) -> None:
    """Print where the time of the run's own thread goes."""
    with serving_chat(answer=job.answer) as url:
        profiler = cProfile.Profile()
        profiler.runcall(time_run, url, job)
        pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Measure at each latency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--instructions", type=int, default=28_000, help="bytes")
    parser.add_argument("--latencies", default="0,50", help="ms, with commas")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--other-turns", type=int, default=1, help="of dspy, inspect")
    parser.add_argument("--dspy-python", help="interpreter that has dspy 3.4")
    parser.add_argument("--inspect-python", help="interpreter that has inspect_ai")
    parser.add_argument("--profile", action="store_true", help="of the run's thread")
    options = parser.parse_args()
    job = make_job(options.cases, options.instructions)
    if options.profile:
        profile(job)
        return
    for latency in options.latencies.split(","):
        measure(job, float(latency), options)


if __name__ == "__main__":
    main()

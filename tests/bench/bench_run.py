"""Time a whole run, store included, against its engine alone.

Run ``python tests/bench/bench_run.py`` from the repository root. Both sides answer the
same prompts in this process, each with a fresh engine. With RANLOOP_DATA set the texts
are the Open-i reports of that folder, otherwise the sentences of the demo, shuffled
into new reports. ``--engine echo`` shows what the run costs beside an engine that
costs nothing.

A machine's speed drifts by more than a run costs, so both sides take turns: each run is
compared with the engine alone just before and just after it. The median of these pairs
is the result; the quotient of the best times, which may come from different moments,
is printed beside it.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import random
import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Completion, Item, Prompt
from loop.engines.base import Engine, Settings
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.run.asking import load_engine
from loop.run.execute import Work, execute
from loop.run.spec import RunSpec
from loop.run.store import Store


class Echo:
    """Answers the same thing at once: 17 labels absent, 3 present with evidence."""

    def identity(self) -> dict[str, object]:
        """Return the name."""
        return {"engine": "echo"}

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield the answers in order."""
        rest = ""
        for index, prompt in enumerate(prompts):
            fields = prompt.frame.fields
            if not rest:
                absent = {name: {"value": "absent"} for name in fields[3:]}
                rest = json.dumps(absent, separators=(",", ":"))[1:]
            quote = json.dumps(prompt.item.variables["text"][:12])
            found = f'{{"value":"present","evidence":{quote},"span":[0,12]}}'
            start = ",".join(f'"{name}":{found}' for name in fields[:3])
            yield index, Completion(f"{{{start},{rest}")


def read_texts() -> tuple[str, list[str]]:
    """Return where the texts come from, and the texts."""
    folder = os.environ.get("RANLOOP_DATA")
    if folder:
        texts = []
        for path in sorted(Path(folder, "openi").glob("reports_*.csv")):
            with path.open(encoding="utf-8", newline="") as stream:
                for row in csv.DictReader(stream):
                    texts.append(f"{row['findings']} {row['impression']}")
        return "Open-i", texts
    return "demo sentences", synthetic_texts(3000)


def synthetic_texts(count: int) -> list[str]:
    """Return `count` reports put together from the demo's sentences."""
    rng = random.Random(0)
    sentences: list[str] = []
    with (bundled() / "labels/demo/dev.jsonl").open(encoding="utf-8") as stream:
        for line in stream:
            sentences += json.loads(line)["text"].split(". ")
    return [". ".join(rng.sample(sentences, 8)) for _ in range(count)]


def make_engine(name: str) -> Engine:
    """Return a fresh engine, so that neither side inherits the other's memory."""
    if name == "echo":
        return Echo()
    return load_engine(name, Settings(labels=bundled() / "labels"))


def prepare(options: argparse.Namespace) -> tuple[str, list[Item], RunSpec, Work]:
    """Return the source of the texts, the items, and what a run needs."""
    source, texts = read_texts()
    # Copies differ, or the cache would answer them.
    texts = [f"{t} {n or ''}".strip() for n in range(options.copies) for t in texts]
    texts = [text for text in dict.fromkeys(texts) if text]
    items = [
        Item(id=f"case-{number}", variables={"text": text})
        for number, text in enumerate(texts)
    ]
    version = read_version(WorkspacePaths(bundled()), options.prompt)
    contract = get_contract(version.contract)
    plan = plan_prompts(version, contract.schema)
    spec = RunSpec(
        prompt=version.ref,
        prompt_digest=version.digest,
        contract=contract.name,
        cohort="bench",
        cohort_digest="0" * 64,
        engine=options.engine,
    )
    return source, items, spec, Work(items=items, plan=plan, contract=contract)


def time_engine(name: str, prompts: list[Prompt]) -> float:
    """Return the time the engine needs alone, in seconds."""
    engine = make_engine(name)
    gc.collect()
    start = perf_counter()
    for _ in engine.complete(iter(prompts)):
        pass
    return perf_counter() - start


def time_run(path: Path, spec: RunSpec, work: Work, asked: int) -> float:
    """Return the time of a whole run, opening and closing the store included."""
    engine = make_engine(spec.engine)
    gc.collect()
    start = perf_counter()
    store = Store(path)
    summary = execute(spec, work, engine, store)
    store.close()
    seconds = perf_counter() - start
    assert summary.asked == asked
    assert summary.answered == summary.items
    return seconds


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="rules", help="rules or echo")
    parser.add_argument("--prompt", default="extractor")
    parser.add_argument("--copies", type=int, default=1, help="of the texts")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    if options.repeats < 2:
        parser.error("--repeats is at least 2: a spread needs two")
    source, items, spec, work = prepare(options)
    prompts = [prompt for item in items for prompt in work.plan(item)]
    time_engine(options.engine, prompts)
    alone, whole, again = [time_engine(options.engine, prompts)], [], []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store.db"
            whole.append(time_run(path, spec, work, len(prompts)))
            alone.append(time_engine(options.engine, prompts))
            again.append(time_run(path, spec, work, 0))
    print(f"{len(items)} cases from {source}, {spec.prompt}, engine {options.engine}")
    print_times(len(items), alone=alone, whole=whole, again=again)
    print_shares(alone, whole)


def print_times(count: int, **times: list[float]) -> None:
    """Print the best and the median time of each side."""
    for name, seconds in times.items():
        best, usual = (value / count * 1e6 for value in (min(seconds), median(seconds)))
        print(f"{name:8}best {best:7.1f}, median {usual:7.1f} us/case")


def print_shares(alone: list[float], whole: list[float]) -> None:
    """Print what a run adds; `alone` has one time before and one after each run."""
    pairs = pairwise(alone)
    shares = [
        2 * run / (before + after) - 1
        for run, (before, after) in zip(whole, pairs, strict=True)
    ]
    low, _, high = quantiles(shares, n=4)
    print(
        f"the run adds {median(shares):.1%} to its engine (median of {len(shares)} "
        f"pairs, middle half {low:.1%} to {high:.1%}; from the best times "
        f"{min(whole) / min(alone) - 1:.1%})"
    )


if __name__ == "__main__":
    main()

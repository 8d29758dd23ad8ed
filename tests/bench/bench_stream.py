"""Measure a long run through the chat engine: its memory, and its fully cached re-run.

Run ``python -m tests.bench.bench_stream`` from the repository root. Each size runs in a
process of its own against a loopback server that costs next to nothing; the peak
resident size of that process is printed. Memory must not grow with the number of cases:
texts, prompts and answers stream through; what grows at first is the store's page cache
until it is full. The re-run asks nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loop.core.records import Item
from loop.run.execute import RunSummary, execute
from loop.run.store import Store
from tests.bench.bench_engines import EVIDENCE, Job, make_engine, make_job, make_run
from tests.bench.bench_run import synthetic_texts
from tests.servers.process import ROOT, serving_chat

SIZES = (2_000, 20_000, 200_000)
AIM_RATE = 20_000
PAGE_CACHE_MIB = 64
"""What SQLite may keep of the store, see loop/run/database.py."""

AIM_GROWTH_MIB = 8


def stream_items(count: int) -> Iterator[Item]:
    """Yield `count` different cases, none of which is kept."""
    rng = random.Random(0)
    texts = synthetic_texts(200)
    for number in range(count):
        text = f"{EVIDENCE}, study {number}. {rng.choice(texts)}"
        yield Item(id=f"case-{number}", variables={"text": text})


def run_once(path: Path, url: str, job: Job, count: int) -> RunSummary:
    """Run `count` cases with the store at `path`."""
    spec, work = make_run(job, stream_items(count))
    store = Store(path)
    with make_engine(url) as engine:
        summary = execute(spec, work, engine, store)
    store.close()
    assert summary.answered == count, summary
    return summary


def step(path: Path, url: str, options: argparse.Namespace) -> None:
    """Run in this process and print what it took as JSON."""
    job = make_job(1, options.instructions)
    summary = run_once(path, url, job, options.step)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([summary.asked, summary.seconds, peak]))


def run_apart(path: Path, url: str, count: int, instructions: int) -> list[float]:
    """Return prompts asked, seconds and peak MiB of a run in its own process."""
    command = [sys.executable, "-m", "tests.bench.bench_stream", "--step", count]
    command += ["--instructions", instructions, "--store", path, "--url", url]
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout))


def main() -> None:
    """Run every size twice: asking everything, then nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--instructions", type=int, default=4_000, help="bytes")
    parser.add_argument("--step", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.store, options.url, options)
        return
    peaks = []
    with serving_chat(answer=make_job(1, 100).answer) as url:
        for count in map(int, options.sizes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "store.db"
                fresh = run_apart(path, url, count, options.instructions)
                again = run_apart(path, url, count, options.instructions)
            assert (fresh[0], again[0]) == (count, 0)
            peaks.append(fresh[2])
            print(
                f"{count:8} cases: asked {count / fresh[1]:7.0f}/s, peak "
                f"{fresh[2]:5.0f} MiB; cached {count / again[1]:7.0f}/s "
                f"({count / again[1] / AIM_RATE:.2f} of the aim), peak "
                f"{again[2]:5.0f} MiB",
                flush=True,
            )
    growth = peaks[-1] - peaks[0]
    most = PAGE_CACHE_MIB + AIM_GROWTH_MIB
    print(
        f"growth {growth:.0f} MiB, aim at most {most} MiB, of which {PAGE_CACHE_MIB} "
        "are the store's page cache"
    )


if __name__ == "__main__":
    main()

"""Time the annotation of a corpus against its engine alone in one process.

Run ``python -m tests.bench.bench_annotate`` from the repository root. The engine
``rules`` answers the prompts of all reports in this process, texts read from the same
file; then `ranloop annotate` reads, asks, derives and writes shards with ``--workers``
processes. Both in turn, for each size; what is printed is the ratio of the wall times,
wanted at most 0.65 with two processes on two idle cores; beside it, as the limit of the
machine, the ratio of as many engines at once, each with its share of the reports and
nothing else to do; and the most memory that all processes of an annotation have
resident together. Reports are put together from the demo's sentences, as in
``bench_memory``.

``--ray`` prints besides what Ray costs on one machine, without a claim: the time for
ten reports, and what each further one takes, both over the same with processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Prompt
from loop.engines.base import Settings
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.release.annotation import AnnotationOptions, corpus_rows
from loop.release.load import find_request
from loop.run.asking import load_engine
from loop.run.shards import as_items
from tests.bench.bench_memory import MIMIC_CXR, write_reports

RELEASE = "extractor-v11"


def engine_alone(source: Path) -> float:
    """Return the seconds in which the engine answers every prompt."""
    version = find_request(WorkspacePaths(bundled()), release=RELEASE).prompt
    if isinstance(version, str):
        raise TypeError(version)
    plan = plan_prompts(version, get_contract(version.contract).schema)

    def prompts() -> Iterator[Prompt]:
        for row in corpus_rows(source, None, AnnotationOptions().reading):
            yield from plan(as_items([row])[0])

    engine = load_engine("rules", Settings(labels=bundled() / "labels"))
    began = time.perf_counter()
    for _ in engine.complete(prompts()):
        pass
    return time.perf_counter() - began


def engines_at_once(cases: int, number: int) -> float:
    """Return the seconds in which so many engines answer a share each."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "share.csv")
        write_reports(source, cases // number)
        with multiprocessing.get_context("spawn").Pool(number) as pool:
            return max(pool.map(engine_alone, [source] * number, chunksize=1))


def annotate(source: Path, out: Path, workers: int, *more: str) -> tuple[float, float]:
    """Return the seconds of the command, and the most MiB of all its processes."""
    command = [
        *(sys.executable, "-m", "loop", "annotate", str(source), "--out", str(out)),
        *("--release", RELEASE, "--workers", str(workers), "--json", *more),
    ]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.2):
            most = max(most, resident(process.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    code = process.wait()
    seconds = time.perf_counter() - began
    done.set()
    thread.join()
    if code:
        raise SystemExit(f"annotate ended with {code}")
    return seconds, most


def resident(pid: int) -> float:
    """Return the MiB of a process and those that it started, shared pages once each."""
    total, left = 0.0, [pid]
    while left:
        one = left.pop()
        try:
            told = Path(f"/proc/{one}/smaps_rollup").read_text("ascii")
            started = Path(f"/proc/{one}/task/{one}/children").read_text("ascii")
        except OSError:
            continue
        total += sum(
            int(line.split()[1]) / 1024
            for line in told.splitlines()
            if line.startswith("Pss:")
        )
        left += map(int, started.split())
    return total


def print_ray(cases: int, workers: int) -> None:
    """Print what Ray costs on this machine, over processes."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder, "few.csv"), Path(folder, "many.csv")
        write_reports(few, 10)
        write_reports(many, cases)
        told = {}
        for kind, more in (("processes", ()), ("ray", ("--ray", "local"))):
            start, _ = annotate(few, Path(folder, f"{kind}-few"), workers, *more)
            whole, _ = annotate(many, Path(folder, f"{kind}-many"), workers, *more)
            told[kind] = (start, (whole - start) / (cases - 10))
    ours, rays = told["processes"], told["ray"]
    print(
        f"Ray on one machine: {rays[0] / ours[0]:.2f} times the start "
        f"({rays[0] - ours[0]:.1f} s more), {rays[1] / ours[1]:.2f} times each report"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--cases", type=int, nargs="+", default=[20_000, 100_000, MIMIC_CXR]
    )
    parser.add_argument("--ray", action="store_true", help="print what Ray costs")
    options = parser.parse_args()
    print(f"{'cases':>9}  ratio  limit  {'us a case':>9}  MiB of all processes")
    for cases in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "reports.csv")
            write_reports(source, cases)
            alone = engine_alone(source)
            seconds, most = annotate(source, Path(folder, "out"), options.workers)
        limit = engines_at_once(cases, options.workers)
        print(
            f"{cases:9,}  {seconds / alone:5.2f}  {limit / alone:5.2f}  "
            f"{1e6 * seconds / cases:9.0f}  {most:,.0f}"
        )
    if options.ray:
        print_ray(min(options.cases), options.workers)


if __name__ == "__main__":
    main()

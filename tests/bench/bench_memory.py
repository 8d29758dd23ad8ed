"""Measure the memory of a run over as many cases as MIMIC-CXR has.

Run ``python tests/bench/bench_memory.py`` from the repository root; it takes a few
minutes. It makes a workspace, imports ``--cases`` synthetic reports, runs the shipped
prompt over them, and writes their labels in each form; every step is a process of its
own, whose peak resident size is printed. Nothing is left behind.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.review.start import start_workspace

MIMIC_CXR = 227_000
LIMIT_MIB = 1024
STEPS = ("import", "run", ".csv", ".parquet", ".xlsx")


def write_reports(path: Path, count: int) -> None:
    """Write `count` different reports put together from the demo's sentences."""
    rng = random.Random(0)
    sentences: list[str] = []
    with (bundled() / "labels/demo/dev.jsonl").open(encoding="utf-8") as stream:
        for line in stream:
            sentences += json.loads(line)["text"].split(". ")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text"])
        for number in range(count):
            text = ". ".join(rng.sample(sentences, 8))
            writer.writerow([f"case-{number}", f"{text}. Study {number}."])


def import_reports(workspace: WorkspacePaths, source: Path) -> str:
    """Import the reports as cohort ``big``."""
    from loop.labels.importing.importer import import_cohort
    from loop.labels.importing.source import ImportOptions

    options = ImportOptions(name="big", role="dev", source="synthetic", licence="none")
    report = import_cohort(workspace, source, options, actor=Actor(name="bench"))
    return f"import: {report.cases} cases"


def run_reports(workspace: WorkspacePaths, engine: str) -> str:
    """Run the shipped prompt over them."""
    from loop.run.task import run_prompt

    summary = run_prompt(workspace, "extractor", "big", engine=engine)
    size = workspace.store.stat().st_size / 2**20
    return f"run: {summary.items} cases, {summary.asked} asked, store {size:.0f} MiB"


def write_all_labels(workspace: WorkspacePaths, suffix: str) -> str:
    """Write a row a report, with the evidence, in one form."""
    from loop.run.label_table import write_labels

    out = workspace.root / f"labels{suffix}"
    written = write_labels(workspace, out, evidence=True)
    size = out.stat().st_size / 2**20
    return f"labels as {suffix}: {written.manifest['rows']} rows, {size:.0f} MiB"


def step(name: str, workspace: WorkspacePaths, options: argparse.Namespace) -> None:
    """Do one step in this process and print its time and peak resident size."""
    start = perf_counter()
    if name == "import":
        line = import_reports(workspace, workspace.root / "big.csv")
    elif name == "run":
        line = run_reports(workspace, options.engine)
    else:
        line = write_all_labels(workspace, name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{line}, {perf_counter() - start:.1f} s, peak {peak:.0f} MiB", flush=True)
    if name != "import" and peak >= LIMIT_MIB:
        raise SystemExit(f"above {LIMIT_MIB} MiB")


def main() -> None:
    """Make the workspace and start each step in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=MIMIC_CXR)
    parser.add_argument("--engine", default="rules")
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--workspace", type=Path)
    options = parser.parse_args()
    if options.step:
        step(options.step, WorkspacePaths(options.workspace), options)
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "ws"
        start_workspace(root, Actor(name="bench"))
        write_reports(root / "big.csv", options.cases)
        for name in STEPS:
            given = ("--workspace", str(root), "--engine", options.engine)
            command = [sys.executable, __file__, "--step", name, *given]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

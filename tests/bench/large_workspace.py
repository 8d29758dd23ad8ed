"""A synthetic workspace of any size: the demo's cases, many times over.

Run ``python -m tests.bench.large_workspace 200000`` to see how long the trace of one
case takes in a run over so many, and ``python -m tests.bench.large_workspace 300 2000``
how long a workbench takes for its page Runs with 2,000 runs of 300 cases.
"""

import csv
import json
import shutil
import sys
import tempfile
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled
from loop.evaluate.protocol import register_protocol
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import import_votes
from loop.run.store import open_store
from loop.run.task import run_prompt
from loop.run.trace import read_trace, read_unanswered
from tests.bench.workbench_client import Session, Tab, serving
from tests.conftest import shipped_workspace

COHORT = "large"
TURNED = 30
"""One case and label in so many has readers who all say the opposite."""

_OPPOSITE = {"present": "absent", "absent": "present"}
_ACTOR = Actor(name="bench", role="editor")


def make_large(root: Path, cases: int) -> WorkspacePaths:
    """Return a workspace with `cases` cases, six readers' votes and a run of v1.

    With 3,000 cases more than 5,000 pairs of case and label fail.
    """
    workspace = shipped_workspace(root)
    for folder in (workspace.prompts / "extractor").iterdir():
        if folder.name != "v1":
            shutil.rmtree(folder)
    first = workspace.ledger.read_bytes().splitlines(keepends=True)[0]
    workspace.ledger.write_bytes(first)
    texts, votes = root / "cases.jsonl", root / "votes.csv"
    copies = _write_cases(texts, cases)
    _write_votes(votes, copies)
    options = ImportOptions(
        name=COHORT,
        role="dev",
        source="synthetic, the demo's cases many times over",
        licence="Apache-2.0",
        reason="bench",
    )
    import_cohort(workspace, texts, options, actor=_ACTOR)
    import_votes(
        workspace,
        read_cohort(workspace, COHORT),
        votes,
        read_taxonomy(workspace.labels),
        need=4,
        actor=_ACTOR,
    )
    register_protocol(workspace, _ACTOR)
    run_prompt(workspace, "extractor", COHORT)
    return workspace


def _write_cases(path: Path, cases: int) -> dict[str, list[str]]:
    """Write the cases and return which ids each case of the demo became."""
    source = bundled() / "labels" / "demo" / "dev.jsonl"
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    copies: dict[str, list[str]] = {}
    with path.open("w", encoding="utf-8") as stream:
        for number in range(cases):
            row = dict(rows[number % len(rows)])
            name = row["case_id"]
            row["case_id"] = f"{name}-{number // len(rows):03d}"
            row["text"] += f"\nSerial number {number}."
            if row.get("patient"):
                row["patient"] = f"{row['patient']}-{number // len(rows):03d}"
            copies.setdefault(name, []).append(row["case_id"])
            stream.write(json.dumps(row) + "\n")
    return copies


def _write_votes(path: Path, copies: dict[str, list[str]]) -> None:
    source = bundled() / "labels" / "demo" / "votes_dev.csv"
    with (
        source.open(encoding="utf-8", newline="") as given,
        path.open("w", encoding="utf-8", newline="") as taken,
    ):
        reader = csv.DictReader(given)
        writer = csv.DictWriter(taken, reader.fieldnames)
        writer.writeheader()
        for row in reader:
            for copy in copies.get(row["case_id"], ()):
                value = _turn(copy, row["label"], row["value"])
                writer.writerow(row | {"case_id": copy, "value": value})


def _turn(case_id: str, label: str, value: str) -> str:
    """Return the vote, or its opposite: the same for all readers of a pair."""
    drawn = zlib.crc32(f"{case_id} {label}".encode()) % TURNED == 0
    return _OPPOSITE.get(value, value) if drawn else value


def time_traces(root: Path, cases: int) -> None:
    """Print how long the trace of a case takes in a run over `cases` cases."""
    workspace, texts = shipped_workspace(root), root / "cases.jsonl"
    copies = [one for ids in _write_cases(texts, cases).values() for one in ids]
    options = ImportOptions(name=COHORT, role="dev", source="synthetic", licence="none")
    import_cohort(workspace, texts, options, actor=_ACTOR)
    began = perf_counter()
    run = run_prompt(workspace, "extractor", COHORT).run_id
    print(f"{cases:,} cases run in {perf_counter() - began:.1f} s")
    size = workspace.store.stat().st_size / 1e6
    with open_store(workspace) as store:
        times = []
        for case in copies[:: max(len(copies) // 50, 1)]:
            began = perf_counter()
            read_trace(workspace, run, case, store=store)
            times.append((perf_counter() - began) * 1000)
        print(
            f"a trace, store of {size:.0f} MB: {median(times):.0f} ms, the longest "
            f"of {len(times)} {max(times):.0f} ms"
        )
        began = perf_counter()
        read_unanswered(workspace, run, store)
        print(f"the list of unanswered cases: {(perf_counter() - began) * 1000:.0f} ms")


def time_runs(root: Path, cases: int, runs: int) -> None:
    """Print how long the page Runs takes with so many runs, each with its outcomes."""
    workspace = make_large(root, cases)
    workspace.config.write_text("prices: {m: {input: 0.2, output: 0.8}}\n")
    with open_store(workspace) as store:
        (first,) = store.find_runs()
        calls = first.counts["asked"] + first.counts["cached"]
        used = {"answers": calls, "prompt_tokens": 10**6, "completion_tokens": 10**5}
        counts = {**first.counts, **used}
        manifest = workspace.private / "runs" / first.id
        for number in range(runs - 1):
            began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=3 * number)
            engine = ("rules", f"openai:m@http://127.0.0.1:{8000 + number % 5}/v1")
            spec = replace(first.spec, engine=engine[number % 2], draw=number % 3)
            run = store.add_run(f"r{number:05}", began.isoformat(), "m", spec, "bench")
            with store.writing() as connection:
                connection.execute(
                    "INSERT INTO outcomes SELECT ?, seq, item_id, status, fields, "
                    "repairs, problem, keys FROM outcomes WHERE run = ?",
                    [run.number, first.number],
                )
            store.finish_run(run.id, began.isoformat(), counts)
            shutil.copytree(manifest, manifest.with_name(run.id))
    command = ("loop", "review", "-w", str(root), "--port", "0", "--json")
    with serving(*command) as server:
        tab = Tab(Session(server.url), "bench")
        tab.do("open")
        tab["runs-words"] = ""
        _time(tab, "the page", "see_runs")
        _time(tab, "its second page", "runs_act", do="turn", page="2")
        _time(tab, "the cases of a run", "runs_act", do="cases", run=first.id)
        tab["runs-words"] = "r0000"
        _time(tab, "the runs that a word finds", "runs_find")
        chosen = {"do": "compare", "ticked": ["r00000", "r00001"]}
        _time(tab, "two runs compared, the first time", "runs_act", 1, **chosen)
        _time(tab, "two runs compared again", "runs_act", **chosen)


def _time(tab: Tab, what: str, event: str, often: int = 15, **data: object) -> None:
    times = [tab.do(event, data) * 1000 for _ in range(often)]
    print(f"{what}: {median(times):.0f} ms, the longest {max(times):.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        place, sizes = Path(made) / "ws", [int(one) for one in sys.argv[1:]]
        time_runs(place, *sizes) if len(sizes) > 1 else time_traces(place, *sizes)

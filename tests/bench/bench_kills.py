"""Searches that are killed at random points, and again while they go on.

Run: ``python -m tests.bench.bench_kills [OPTIMIZER] [SEARCHES]``, where OPTIMIZER is
terms, gepa, mipro, bootstrap or nearest. Each search is stopped by SIGKILL at a random
moment within the time that a whole search takes, started again, stopped again, and then
let through. It prints whether each ended like a search that nobody stopped, and how
many questions were asked twice: those whose answer was on its way when it was killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from loop.core.digests import digest_json
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Prompt
from loop.engines import base
from loop.engines.base import Settings
from loop.optimize.search import search_prompt
from loop.optimize.search_report import FINDINGS, Optimizer, SearchRequest
from loop.prompts.catalog import list_drafts
from loop.run.store import open_store
from tests.conftest import shipped_workspace
from tests.optimize.made_task import (
    ACTOR,
    SYNONYMS,
    StubReflector,
    improvable_cases,
    make_task,
)
from tests.optimize.test_search import approve

CASES = 60
PAUSE_S = 0.0005
"""How long an answer takes, so that some are on their way whenever it is killed."""

SPREAD = 1.1
"""Kills may come so much later than a whole search takes: some come too late."""


class Reader:
    """Answers by the terms of the guides, and notes what it was asked."""

    log = -1

    def __init__(self, rest: str, settings: Settings) -> None:
        """Take what the registry gives an engine."""

    def identity(self) -> dict[str, object]:
        """Return what it is."""
        return {"engine": "reader"}

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield an answer a prompt."""
        for number, prompt in enumerate(prompts):
            os.write(Reader.log, b"answer\n")
            time.sleep(PAUSE_S)
            text = prompt.item.variables["text"].casefold()
            said = {
                guide.label: {"value": "present" if found else "absent"}
                for guide in prompt.frame.guides
                for found in [any(term in text for term in guide.terms)]
            }
            yield number, Completion(json.dumps(said))


class Proposer(StubReflector):
    """Proposes as the stub does, and notes what it was asked."""

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield a proposal a question."""
        for number, prompt in enumerate(prompts):
            os.write(Reader.log, b"question\n")
            time.sleep(PAUSE_S)
            for _, completion in super().complete([prompt]):
                yield number, completion


class Ended(NamedTuple):
    """What a search left."""

    result: str
    """Digest of what it found."""

    drafts: int
    entries: int
    """Of the ledger, that tell of a search."""


def search(workspace: WorkspacePaths, optimizer: Optimizer, engine: str) -> None:
    """Search, and write what came of it beside the workspace."""
    asked = SearchRequest(
        prompt="tiny",
        cohort="dev",
        optimizer=optimizer,
        engine=engine,
        reflect="proposer:any" if optimizer.reflects else "",
        budget=None if optimizer is Optimizer.TERMS else 120,
        labels=(),
        splits=3,
    )
    report = search_prompt(workspace, asked, ACTOR)
    found = digest_json(FINDINGS.dump_python(report.findings, mode="json"))
    entries = [e for e in read_ledger(workspace.ledger) if e.action == "searched"]
    ended = Ended(found, len(list_drafts(workspace, "tiny")), len(entries))
    (workspace.root.parent / "ended").write_text(json.dumps(ended), "utf-8")


def start(workspace: WorkspacePaths, optimizer: Optimizer, engine: str) -> int:
    """Start a search in a process that has everything imported; return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        name = str(workspace.root.parent / "log")
        Reader.log = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        search(workspace, optimizer, engine)
        status = 0
    finally:
        os._exit(status)


def count_asked(workspace: WorkspacePaths) -> int:
    """Return how many answers engines were asked for."""
    log = workspace.root.parent / "log"
    return len(log.read_text().split()) if log.exists() else 0


def count_kept(workspace: WorkspacePaths, engine: str) -> int:
    """Return how many of the answers that `count_asked` counts were kept by now."""
    if not workspace.private.exists():
        return 0
    journals = workspace.private.glob("optimize/*/journal.jsonl")
    lines = [raw for one in journals for raw in one.read_bytes().splitlines(True)]
    answers = 0
    # `rules` logs nothing, though what it answers to the check of a draft is stored.
    if engine != "rules":
        with open_store(workspace) as store:
            answers = store.count_completions()
    return answers + sum(
        line.startswith(b'["reflection"') and line.endswith(b"\n") for line in lines
    )


def finish(workspace: WorkspacePaths, optimizer: Optimizer, engine: str) -> Ended:
    """Let a search through, and return what it left."""
    _, status = os.waitpid(start(workspace, optimizer, engine), 0)
    if status:
        raise SystemExit(f"a search ended with {status}")
    return Ended(*json.loads((workspace.root.parent / "ended").read_text("utf-8")))


def measure(folder: Path, optimizer: Optimizer, engine: str, searches: int) -> None:
    """Print what became of searches that were killed."""
    workspace = shipped_workspace(folder / "start" / "ws")
    make_task(workspace, folder, improvable_cases(CASES))
    if optimizer in (Optimizer.BOOTSTRAP, Optimizer.NEAREST, Optimizer.MIPRO):
        approve(workspace, *SYNONYMS)

    def copy(name: str) -> WorkspacePaths:
        made = shutil.copytree(workspace.root, folder / name / "ws")
        return WorkspacePaths(Path(made))

    whole = copy("whole")
    began = time.perf_counter()
    expected = finish(whole, optimizer, engine)
    took, asked = time.perf_counter() - began, count_asked(whole)
    kept = count_kept(whole, engine)
    print(f"\n{optimizer} with {engine}: {took:.1f} s, {asked:,} questions asked")
    chance, equal, twice, most, stopped = random.Random(0), 0, 0, 0, 0
    before = asked - kept
    for number in range(searches):
        one, lost = copy(f"kill{number}"), 0
        for _ in range(2):
            child = start(one, optimizer, engine)
            time.sleep(chance.uniform(0, SPREAD * took))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            stopped += os.WIFSIGNALED(status)
            now = count_asked(one) - lost - count_kept(one, engine)
            lost += now
            most = max(most, now)
        ended = finish(one, optimizer, engine)
        equal += ended == expected
        extra = count_asked(one) - asked
        twice += extra
        same = "the same" if ended == expected else "ANOTHER END"
        print(
            f"  {number + 1}: {same}; asked again {extra}, on their way {lost - before}"
        )
        shutil.rmtree(one.root.parent)
    print(f"searches {searches}, stopped {stopped} times, ended the same {equal}")
    print(f"questions asked again {twice}, at most {most} on their way at a kill")


def main() -> None:
    """Print the tables."""
    optimizer = Optimizer(sys.argv[1] if len(sys.argv) > 1 else "terms")
    searches = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    base._FACTORIES |= {"reader": Reader, "proposer": Proposer}
    engines = ("reader:x", "rules") if optimizer is Optimizer.TERMS else ("rules",)
    for engine in engines:
        with tempfile.TemporaryDirectory() as place:
            measure(Path(place), optimizer, engine, searches)


if __name__ == "__main__":
    main()

"""A judge of 10,000 pairs that is killed goes on: nothing lost, nothing asked twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loop.core.paths import init_workspace

pytestmark = pytest.mark.slow

PAIRS = 10_000
CHILD = """
import json, sys
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion
from loop.engines import base
from loop.judge import Judge

root, log = sys.argv[1:]
answer = json.dumps({"errors": [], "matched_findings": 1})

class Logged:
    def identity(self):
        return {"engine": "logged"}
    def complete(self, prompts):
        with open(log, "a", buffering=1) as lines:
            for index, prompt in enumerate(prompts):
                lines.write(prompt.item.variables["candidate"] + "\\n")
                yield index, Completion(answer)

base._FACTORIES["logged"] = lambda model, settings: Logged()
references = [f"Effusion {n}." for n in range(PAIRS)]
candidates = [f"Edema {n}." for n in range(PAIRS)]
from pathlib import Path
with Judge.open(WorkspacePaths(Path(root)), "one_pass", "logged") as judge:
    said = judge.judge(references, candidates, ["en"] * len(references))
print(json.dumps([said.asked, said.cached, int((said.counts.matched == 1).sum())]))
""".replace("PAIRS", str(PAIRS))


def start(root, log):
    """Start a process that judges all pairs."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), str(log)], stdout=subprocess.PIPE
    )


def count(log):
    """Return how many pairs the engine was asked about so far."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def test_a_killed_judge_goes_on(tmp_path):
    """Only what was on its way to the store when the process died is asked again."""
    root, log = tmp_path / "ws", tmp_path / "asked"
    init_workspace(root)
    child = start(root, log)
    while count(log) < PAIRS // 2 and child.poll() is None:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    before = count(log)
    assert PAIRS // 2 <= before < PAIRS
    done = start(root, log)
    asked, cached, answered = json.loads(done.communicate()[0])
    assert answered == PAIRS
    assert asked + cached == PAIRS
    lines = Path(log).read_text().splitlines()
    assert len(set(lines)) == PAIRS
    # The store writes many answers at a time: those of the last ones were not kept.
    assert cached >= before - 1_000
    assert len(lines) == before + asked

"""A search that is killed goes on: the same result, and nothing is asked twice."""

import os
import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.optimize.search import search_prompt
from loop.prompts.catalog import list_drafts
from loop.run.task import run_prompt
from tests.bench.bench_kills import count_kept
from tests.optimize.made_task import ACTOR
from tests.optimize.test_search import request

ROOT = Path(__file__).parents[2]


def kill_search(workspace, log, kill_at):
    """Run the search in a process until it kills itself; return its exit status."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.optimize.search_process"),
            *(str(workspace.root), str(log), str(kill_at), "gepa"),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    if done.returncode != -signal.SIGKILL:
        pytest.fail(done.stderr)
    return done.returncode


@pytest.mark.slow
def test_a_killed_search_ends_as_one_that_was_not(improvable, tmp_path, stub):
    """Killed at a question, and again while it goes on; hash seeds differ each time."""
    kills = (2, 1)
    other = WorkspacePaths(Path(shutil.copytree(improvable.root, tmp_path / "other")))
    wanted = request()
    expected = search_prompt(other, wanted, ACTOR)
    once = [sha256(question.encode()).hexdigest() for question in stub.asked]
    stub.asked = ()
    log = tmp_path / "log"
    for kill_at in kills:
        assert kill_search(improvable, log, kill_at) == -signal.SIGKILL
        assert not list_drafts(improvable, "tiny")
    result = search_prompt(improvable, wanted, ACTOR)
    assert result.findings == expected.findings
    assert result.found == expected.found
    asked = log.read_text().split()
    asked += [sha256(question.encode()).hexdigest() for question in stub.asked]
    # In flight when it was killed: one question, each time.
    assert len(asked) == len(once) + len(kills)
    assert set(asked) == set(once)
    entries = read_ledger(improvable.ledger)
    assert len([one for one in entries if one.action == "searched"]) == 1
    assert len(list_drafts(improvable, "tiny")) == len(expected.drafts)


def test_the_benchmark_counts_no_answers_of_rules(improvable):
    """They are stored by the check of a draft, and nothing logs them as asked."""
    run_prompt(improvable, "tiny@v1", "dev")
    assert count_kept(improvable, "rules") == 0
    assert count_kept(improvable, "reader:x") == 100

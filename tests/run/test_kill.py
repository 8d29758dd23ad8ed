"""SIGKILL at any instant loses at most what was in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from loop.run.store import Store, read_outcomes

SCRIPT = Path(__file__).with_name("killed_run.py")
ITEMS = 400


def start(folder, delay):
    """Start the run in a process of its own."""
    arguments = [str(folder / "store.db"), str(folder / "log"), str(ITEMS), str(delay)]
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def asked(folder):
    """Return the ids asked so far, over all processes."""
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


def kill_after(folder, count, delay):
    """Start a run and kill it once `count` more prompts have been asked."""
    before = len(asked(folder))
    process = start(folder, delay)
    deadline = time.monotonic() + 90
    while len(asked(folder)) < before + count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_a_killed_run_asks_only_for_what_is_missing(tmp_path):
    """A slow engine: of 40 answers at most the last ones are asked again."""
    kill_after(tmp_path, 40, 0.005)
    store = Store(tmp_path / "store.db")
    kept = store.count_completions()
    (begun,) = store.find_runs()
    store.close()
    # At 5 ms an answer the 50 ms that a row may wait are ten answers.
    assert kept >= 25
    assert begun.finished is None

    done, _ = start(tmp_path, 0).communicate(timeout=60)
    summary = json.loads(done)
    assert summary["run_id"] == begun.id
    assert summary["cached"] == kept
    assert summary["asked"] == ITEMS - kept
    times = Counter(Counter(asked(tmp_path)).values())
    assert times[2] == sum(times[n] * n for n in times) - ITEMS
    assert set(times) <= {1, 2}


@pytest.mark.slow
def test_kills_at_many_instants_lose_and_repeat_nothing(tmp_path):
    """Also while tables are made, rows are committed or the log is checkpointed."""
    for count in (1, 2, 7, 60, 30, 90):
        kill_after(tmp_path, count, 0.0002)
    done, _ = start(tmp_path, 0).communicate(timeout=60)
    summary = json.loads(done)
    assert summary["items"] == summary["answered"] == ITEMS
    assert summary["asked"] + summary["cached"] == ITEMS
    store = Store(tmp_path / "store.db")
    ids = [outcome.item_id for outcome in read_outcomes(store, summary["run_id"])]
    assert ids == [f"c{number}" for number in range(ITEMS)]
    assert store.count_completions() == ITEMS
    assert len(store.find_runs()) == 1
    store.close()

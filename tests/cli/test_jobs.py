"""How a job is told: as a row, line by line, and as JSON."""

import json
from dataclasses import replace

import pytest

from loop.cli import jobs
from loop.core.errors import DataError
from loop.run.jobs import JobKind, JobRecord, JobRequest, JobState

JOB = JobRecord(
    number=3,
    request=JobRequest(
        kind=JobKind.RUN, prompt="tiny@v1", cohort="dev", engines=("rules",), limit=5
    ),
    actor="Ann",
    role="editor",
    created="2026-03-01T12:00:00Z",
    started="2026-03-01T12:00:01Z",
    ended=None,
    state=JobState.RUNNING,
    step="asking",
    done=1200,
    total=3400,
    pid=77,
    message="",
    log=("2026-03-01T12:00:01Z asking",),
    runs=(),
)
FAILED = replace(
    JOB,
    state=JobState.FAILED,
    total=0,
    message="the server went away",
    runs=("run-1", "run-2"),
)


def test_a_job_is_a_row():
    """How far it is, where that is known."""
    title = JOB.request.title
    row = ("3", "running", "1,200 of 3,400", "Ann", "2026-03-01T12:00:00Z", title)
    assert jobs._row(JOB) == row
    assert jobs._row(FAILED)[1:3] == ("failed", "")


def test_a_job_is_told_line_by_line(capsys):
    """What it does just now, why it ended, and what it has made."""
    jobs._show(JOB, as_json=False)
    assert capsys.readouterr().out == (
        f"job 3: {JOB.request.title}\n"
        "  state     running\n"
        "  by        Ann\n"
        "  step      asking: 1,200 of 3,400 cases\n"
        "  2026-03-01T12:00:01Z asking\n"
    )
    jobs._show(FAILED, as_json=False)
    assert capsys.readouterr().out == (
        f"job 3: {JOB.request.title}\n"
        "  state     failed\n"
        "  by        Ann\n"
        "  step      asking\n"
        "  message   the server went away\n"
        "  runs      run-1, run-2\n"
        "  2026-03-01T12:00:01Z asking\n"
    )
    jobs._show(replace(JOB, step="", log=()), as_json=False)
    assert capsys.readouterr().out == (
        f"job 3: {JOB.request.title}\n  state     running\n  by        Ann\n"
    )


def test_a_job_is_whole_as_json(capsys):
    """With what was asked for, in place of the request."""
    jobs._show(FAILED, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "number": 3,
        "kind": "run",
        "parameters": json.loads(json.dumps(JOB.request.data)),
        "actor": "Ann",
        "role": "editor",
        "created": "2026-03-01T12:00:00Z",
        "started": "2026-03-01T12:00:01Z",
        "ended": None,
        "state": "failed",
        "step": "asking",
        "done": 1200,
        "total": 0,
        "pid": 77,
        "message": "the server went away",
        "log": ["2026-03-01T12:00:01Z asking"],
        "runs": ["run-1", "run-2"],
    }
    assert JOB.request.data["limit"] == 5


def test_the_process_of_a_job_is_started_by_nobody_else():
    """It holds a lock that was opened for it; a number that is no file is none."""
    with pytest.raises(DataError, match="for the process of a job"):
        jobs.work("worker", lock=1_000_000)

"""How a job is told: as a row, line by line, and as JSON."""

import json
import os
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import jobs
from loop.core.errors import DataError
from loop.release.keys import signer_for
from loop.run.jobs import JobKind, JobQueue, JobRecord, JobRequest, JobState
from tests.review.scenes import add_cohort

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


@pytest.fixture
def call(workspace, monkeypatch):
    """Return a function that calls the verb, where no process is started."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    app = typer.Typer()
    app.callback()(lambda: None)
    jobs.register(app)

    def run(*words):
        done = CliRunner().invoke(app, ["jobs", *words, "-w", str(workspace.root)])
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    return run


def test_jobs_are_listed_in_a_table_or_as_one_object(call, workspace, tmp_path):
    """None at first; the group's own verbs list nothing beside what they do."""
    assert call() == (
        "no jobs yet; start one with `ranloop jobs start run PROMPT -c COHORT`\n"
    )
    assert json.loads(call("--json")) == {"jobs": []}
    add_cohort(workspace, tmp_path, [("e1", "Small effusion.", 1, 0)])
    words = ("start", "run", "extractor@v1", "-c", "dev", "--actor", "Ann")
    started = json.loads(call(*words, "--limit", "1", "--json"))
    assert (started["kind"], started["actor"]) == ("run", "Ann")
    told = started["parameters"]
    assert (told["prompt"], told["cohort"]) == ("extractor@v1", "dev")
    assert (told["engines"], told["limit"]) == (["rules"], 1)
    assert call("show", "1").startswith("job 1: ")
    header, _, row = call().splitlines()
    assert header.split() == ["job", "state", "progress", "by", "created", "what"]
    assert row.startswith("1  ")
    (listed,) = json.loads(call("--json"))["jobs"]
    assert listed["parameters"] == told


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "tiny@v1", "-c", "dev"), {"prompt": "tiny@v1", "engines": ("rules",)}),
        (
            ("matrix", "tiny@v1", "-c", "dev", "-e", "rules", "-e", "replay:x"),
            {"prompt": "tiny@v1", "engines": ("rules", "replay:x")},
        ),
        (("evaluate", "run-1"), {"run": "run-1", "cohort": "", "engines": ()}),
        (("evaluate",), {"run": "latest", "cohort": "", "engines": ()}),
        (
            ("check", "tiny@draft", "-c", "dev"),
            {"draft": "tiny@draft", "engines": ("rules",)},
        ),
    ],
)
def test_what_is_named_is_a_prompt_a_run_or_a_draft(call, monkeypatch, words, parts):
    """By the kind of the work; an evaluation asks no engine."""
    asked = []

    def start(queue, request, who, role):
        asked.append(request)
        return JOB

    monkeypatch.setattr(jobs, "start_job", start)
    call("start", *words)
    wanted = {"prompt": "", "run": "", "draft": "", "cohort": "dev", **parts}
    (request,) = asked
    assert {name: getattr(request, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (
            ("run", "tiny@v1", "-c", "dev", "-e", "openai:m"),
            {"kind": JobKind.RUN, "prompt": "tiny@v1", "cohort": "dev", "seed": None},
        ),
        (
            (
                *("run", "tiny@v1", "-c", "dev", "-e", "openai:m", "--limit", "3"),
                *("--draws", "4", "--seed", "7", "--temperature", "0.8"),
                *("--max-tokens", "900", "--thinking", "low", "--allow-unconstrained"),
            ),
            {
                "kind": JobKind.RUN,
                "prompt": "tiny@v1",
                "cohort": "dev",
                "limit": 3,
                "draws": 4,
                "seed": 7,
                "temperature": 0.8,
                "max_tokens": 900,
                "thinking": "low",
                "allow_unconstrained": True,
            },
        ),
        (
            ("evaluate", "run-1", "--reference", "2"),
            {
                "kind": JobKind.EVALUATION,
                "run": "run-1",
                "engines": (),
                "reference": 2,
            },
        ),
        (
            (
                *("check", "tiny@draft", "-c", "dev", "-e", "openai:m"),
                *("--draws", "2", "--max-draws", "5"),
            ),
            {
                "kind": JobKind.CHECK,
                "draft": "tiny@draft",
                "cohort": "dev",
                "draws": 2,
                "max_draws": 5,
            },
        ),
    ],
)
def test_every_option_reaches_what_is_to_be_done(call, monkeypatch, options, parts):
    """Each under its own name, and who asks beside it; what is left out is not said."""
    asked = []

    def start(queue, *told):
        asked.append(told)
        return JOB

    monkeypatch.setattr(jobs, "start_job", start)
    call("start", *options, "--actor", "Ann")
    wanted = JobRequest(**{"engines": ("openai:m",), **parts})
    assert asked == [(wanted, "Ann", "editor")]


def test_a_job_that_waits_is_stopped_and_resumed(call, workspace, tmp_path):
    """By whoever wants to, which its log tells."""
    add_cohort(workspace, tmp_path, [("e1", "Small effusion.", 1, 0)])
    words = ("start", "run", "extractor@v1", "-c", "dev", "--actor", "Ann", "--json")
    assert json.loads(call(*words))["state"] == "queued"
    stopped = json.loads(call("stop", "1", "--actor", "Ben", "--json"))
    assert (stopped["state"], stopped["actor"]) == ("stopped", "Ann")
    assert stopped["message"] == "stopped by Ben; it can be resumed"
    resumed = json.loads(call("resume", "1", "--actor", "Cai", "--json"))
    assert (resumed["state"], resumed["actor"]) == ("queued", "Cai")
    assert [line.split(maxsplit=1)[1] for line in resumed["log"]] == [
        "started by Ann",
        "stop asked by Ben",
        "resumed by Cai",
    ]


@pytest.mark.parametrize(("options", "at_once"), [((), False), (("--now",), True)])
def test_a_process_is_killed_only_where_it_is_asked_for(
    call, monkeypatch, options, at_once
):
    """Without it a job ends at its own next step."""
    asked = []

    def stop(self, number, actor, *, at_once):
        asked.append((number, actor, at_once))
        return JOB

    monkeypatch.setattr(JobQueue, "stop", stop)
    call("stop", "3", "--actor", "Ann", *options)
    assert asked == [(3, "Ann", at_once)]


def test_the_process_of_a_job_works_for_its_own_lock(workspace, monkeypatch, tmp_path):
    """It hands the lock to nobody, and signs with the keys of its workspace."""
    asked = []
    monkeypatch.setattr(jobs, "work_through", lambda *told: asked.append(told))
    with (tmp_path / "lock").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        jobs.work("worker", held.fileno(), workspace.root)
        assert not os.get_inheritable(held.fileno())
    ((queue, worker, signer),) = asked
    assert (queue.workspace.root, worker) == (workspace.root, "worker")
    assert (signer.func, signer.args) == (signer_for, (queue.workspace,))

"""Jobs as the store knows them: what is asked for, in which order, how it ended."""

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import ClassVar

import pytest

from loop.core.errors import ConflictError, DataError, StoreError, WriteError
from loop.run.jobs import (
    JobKind,
    JobQueue,
    JobRecord,
    JobRequest,
    JobState,
    _take_lock,
    _with_package,
    find_job,
    list_jobs,
    read_request,
)
from loop.run.store import open_store

ASKED = {"prompt": "p@v1", "cohort": "dev", "engines": ("rules",)}


def run(**changes):
    """Return the request of a run."""
    return JobRequest(kind=JobKind.RUN, **{**ASKED, **changes})


@pytest.fixture
def queue(workspace, monkeypatch):
    """Return a queue that starts no process, at noon and a second more at each look."""
    launched = []
    monkeypatch.setattr(
        JobQueue, "_launch", lambda self, _, number: launched.append(number)
    )
    ticks, noon = count(), datetime(2026, 11, 25, 12, tzinfo=UTC)
    with open_store(workspace) as store:
        yield JobQueue(
            workspace=workspace,
            store=store,
            now=lambda: noon + timedelta(seconds=next(ticks)),
        )


@pytest.fixture
def hold(queue):
    """Return what holds the lock of a worker as its process would, till closed."""
    with ExitStack() as stack:

        def hold_lock(worker):
            path = queue.workspace.private / "locks" / f"worker-{worker}.lock"
            path.parent.mkdir(exist_ok=True)
            stream = stack.enter_context(path.open("w"))
            fcntl.flock(stream, fcntl.LOCK_EX)
            return stream

        yield hold_lock


def start(queue, **changes):
    """Start the job of a run and return its number."""
    return queue.start(run(**changes), "Dr A", "editor").number


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("limit", (1, 2**31, None), (0, -1, 2**31 + 1, True, 1.0, "1")),
        ("draws", (1, 100, None), (0, 101, True, 2.0)),
        ("max_tokens", (1, 2**31), (0, 2**31 + 1)),
        ("temperature", (0, 0.0, 2, 1.5, None), (-0.1, float("inf"), float("nan"))),
        ("temperature", (), (True, "1")),
        ("seed", (0, -3, 2**40, None), (1.0, "1", True)),
        ("thinking", ("", "none", "high", "2048"), ("much", "Low", "0", None, 3)),
        ("allow_unconstrained", (True, False), (None, 1, "yes")),
        ("prompt", ("p", "p" * 1000), ("", "p" * 1001, "p\tq", 3)),
        ("engines", (("a",), ("a" * 1000,)), ((), ("a", "a"), ("a", "b"), ("a\n",))),
    ],
)
def test_each_part_of_a_job_has_its_bounds(name, allowed, refused):
    """At both ends, and of its own type: a truth is no number."""
    for value in allowed:
        assert getattr(run(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(DataError, match="job"):
            run(**{name: value})


@pytest.mark.parametrize(
    ("kind", "needed", "extra"),
    [
        (JobKind.RUN, ASKED, {"limit": 1, "draws": 2, "seed": 1, "max_tokens": 9}),
        (JobKind.RUN, ASKED, {"temperature": 1.0, "thinking": "low"}),
        (JobKind.RUN, ASKED, {"temperature": 0.0, "seed": 0}),
        (JobKind.EVALUATION, {"run": "latest"}, {"reference": 2}),
        (JobKind.MATRIX, ASKED, {"limit": 1, "allow_unconstrained": True}),
        (
            JobKind.CHECK,
            {"draft": "p@draft:d", "engines": ("rules",)},
            {"cohort": "dev", "draws": 2, "max_draws": 3, "allow_unconstrained": True},
        ),
    ],
)
def test_each_kind_of_job_takes_its_own_parts(kind, needed, extra):
    """It needs some, takes others, and comes back from the store as it was."""
    whole = JobRequest(kind=kind, **needed, **extra)
    assert read_request(kind, whole.data) == whole
    assert set(whole.data) == {*needed, *extra}
    for name in needed:
        rest = {key: value for key, value in needed.items() if key != name}
        with pytest.raises(DataError, match=f"of kind {kind} needs {name}"):
            JobRequest(kind=kind, **rest)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (JobKind.EVALUATION, {"run": "latest", "limit": 1}),
        (JobKind.MATRIX, {**ASKED, "draws": 2}),
        (JobKind.MATRIX, {**ASKED, "seed": 2}),
        (JobKind.MATRIX, {**ASKED, "seed": 0}),
        (JobKind.MATRIX, {**ASKED, "thinking": "low"}),
        (JobKind.CHECK, {"draft": "d", "engines": ("rules",), "temperature": 1.0}),
        (JobKind.RUN, {**ASKED, "max_draws": 2}),
        (JobKind.RUN, {**ASKED, "reference": 2}),
    ],
)
def test_a_part_of_another_kind_of_job_is_refused(kind, given):
    """It would be asked for and not done."""
    with pytest.raises(DataError, match=f"of kind {kind} takes no .*Leave it out"):
        JobRequest(kind=kind, **given)


@pytest.mark.parametrize("data", [{"kind": "run"}, {"other": 1}])
def test_a_part_that_no_job_has_is_refused(data):
    """Also the kind itself, which is told beside the parts."""
    with pytest.raises(DataError, match="a job is one of run, evaluate, matrix, check"):
        read_request("run", {**ASKED, **data})


def test_a_matrix_asks_each_engine_once():
    """Named twice, it would be asked at the same time by itself."""
    with pytest.raises(DataError, match="named twice"):
        JobRequest(kind=JobKind.MATRIX, **{**ASKED, "engines": ("a", "b", "a")})


@pytest.mark.parametrize(
    ("request_", "title"),
    [
        (run(), "run of p@v1 on dev with rules"),
        (run(limit=5, draws=1), "run of p@v1 on dev with rules, first 5 cases"),
        (run(draws=2), "run of p@v1 on dev with rules, 2 draws"),
        (
            JobRequest(kind=JobKind.MATRIX, **{**ASKED, "engines": ("a", "b")}),
            "matrix of p@v1 on dev with a, b",
        ),
        (
            JobRequest(kind=JobKind.EVALUATION, run="latest"),
            "evaluation of run latest",
        ),
        (
            JobRequest(kind=JobKind.CHECK, draft="p@draft:d", engines=("rules",)),
            "check of p@draft:d with rules",
        ),
    ],
)
def test_the_title_says_what_is_done(request_, title):
    """As lists of jobs show it."""
    assert request_.title == title


def test_a_title_shows_no_password():
    """An engine's address may hold one."""
    secret = run(engines=("openai:m@http://me:secret@host/v1",))
    assert "secret" not in secret.title
    assert "openai:m@" in secret.title


@pytest.mark.parametrize("number", [0, -1, 7, 2**63, 2**80])
def test_a_job_that_is_not_there_is_named(queue, number):
    """Also a number that no store can hold."""
    start(queue)
    with pytest.raises(DataError, match=f"there is no job {number}\\."):
        find_job(queue.store, number)


def test_the_newest_jobs_are_listed_first(queue):
    """Of all states or of those named, and only so many."""
    numbers = [start(queue, engines=(name,)) for name in "abcd"]
    queue.stop(numbers[1], "Dr B")
    assert [one.number for one in list_jobs(queue.store)] == numbers[::-1]
    assert [one.number for one in list_jobs(queue.store, most=2)] == numbers[:1:-1]
    stopped = list_jobs(queue.store, states=(JobState.STOPPED, JobState.FAILED))
    assert [one.number for one in stopped] == numbers[1:2]
    waiting = list_jobs(queue.store, states=(JobState.QUEUED,), most=1)
    assert [one.number for one in waiting] == numbers[3:]


def test_a_job_takes_its_turn(queue, hold):
    """The first that waits and whose engine no job before it asks or waits for."""
    first, second, third = (
        start(queue, engines=(name,), prompt=prompt)
        for name, prompt in (("a", "p"), ("a", "q"), ("b", "p"))
    )
    for worker in ("w1", "w2"):
        hold(worker)
    assert [queue.claim(one).number for one in ("w1", "w2")] == [first, third]
    assert queue.claim("w3") is None
    queue.end(first, JobState.DONE, "", ["r1"])
    assert queue.claim("w3").number == second


def test_a_matrix_waits_for_all_its_engines(queue, hold):
    """And what comes after it waits for it."""
    busy = start(queue, engines=("b",))
    matrix = queue.start(
        JobRequest(kind=JobKind.MATRIX, **{**ASKED, "engines": ("a", "b")}), "A", "r"
    ).number
    later = start(queue, engines=("a",))
    hold("w1")
    assert queue.claim("w1").number == busy
    assert queue.claim("w2") is None
    queue.end(busy, JobState.DONE, "", [])
    hold("w2")
    assert queue.claim("w2").number == matrix
    assert queue.claim("w3") is None
    queue.end(matrix, JobState.DONE, "", [])
    assert queue.claim("w3").number == later


def test_who_goes_on_comes_before_who_waits_longer(queue, hold):
    """An earlier job that is resumed waits for the engine that a later one asks."""
    early, late = start(queue), start(queue, prompt="q")
    queue.stop(early, "Dr B")
    hold("w1")
    assert queue.claim("w1").number == late
    queue.resume(early, "Dr B", "editor")
    assert queue.claim("w2") is None


def test_a_job_that_a_worker_is_on_its_way_to_is_left_to_it(queue, hold):
    """Nobody else takes it, and that worker does."""
    number = start(queue)
    hold("w1")
    with queue.store.writing() as connection:
        connection.execute("UPDATE jobs SET worker='w1', pid=1")
    assert queue.claim("w2") is None
    assert queue.claim("w1").number == number


def test_the_same_work_may_start_anew_where_its_worker_is_gone(queue, hold):
    """What nobody goes on with is not under way."""
    first = start(queue)
    stream = hold("w1")
    queue.claim("w1")
    with pytest.raises(ConflictError, match=r"this is job 1 already \(running\)"):
        start(queue)
    stream.close()
    assert start(queue) == first + 1
    assert find_job(queue.store, first).state is JobState.STOPPED


@pytest.mark.parametrize(
    ("at_once", "wanted"), [(False, signal.SIGTERM), (True, signal.SIGKILL)]
)
def test_a_worker_is_told_to_stop(queue, hold, monkeypatch, at_once, wanted):
    """Its job goes on until it does; one that is gone by now is no fault."""
    sent = []

    def kill(pid, signal_):
        """Note the signal; the process is gone already."""
        sent.append((pid, signal_))
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    number = start(queue)
    hold("w1")
    pid = queue.claim("w1").pid
    job = queue.stop(number, "Dr B", at_once=at_once)
    assert sent == [(pid, wanted)]
    assert job.state is JobState.RUNNING
    assert job.message == "stopped by Dr B; it can be resumed"
    assert job.log[-1].endswith(" stop asked by Dr B")


def test_evaluations_are_made_one_after_another(queue, hold):
    """They ask no engine; beside a run one may go on."""
    numbers = [
        queue.start(JobRequest(kind=JobKind.EVALUATION, run=name), "A", "r").number
        for name in ("r1", "r2")
    ]
    other = start(queue)
    for worker in ("w1", "w2"):
        hold(worker)
    assert queue.claim("w1").number == numbers[0]
    assert queue.claim("w2").number == other
    assert queue.claim("w3") is None


def test_a_worker_that_is_gone_leaves_its_job_stopped(queue, hold):
    """One that holds its lock goes on; what was said before stays said."""
    number = start(queue)
    stream = hold("w1")
    queue.claim("w1")
    queue.dispatch()
    assert find_job(queue.store, number).state is JobState.RUNNING
    stream.close()
    queue.dispatch()
    job = find_job(queue.store, number)
    assert job.state is JobState.STOPPED
    assert job.message.startswith("its process ended before the work did (killed")
    assert job.log[-1].endswith(" its process is gone")
    assert job.pid is None
    assert job.ended > job.log[-1].partition(" ")[0] > job.started
    locks = queue.workspace.private / "locks"
    assert not (locks / "worker-w1.lock").exists()


def test_a_worker_that_never_began_leaves_its_job_failed(queue):
    """Else it would be tried for ever."""
    number = start(queue)
    with queue.store.writing() as connection:
        connection.execute("UPDATE jobs SET worker='w1', pid=1 WHERE number=1")
    queue.dispatch()
    job = find_job(queue.store, number)
    assert job.state is JobState.FAILED
    assert job.message == (
        "its process ended before the work began. Run `ranloop doctor`, then resume it."
    )


def test_a_job_that_was_to_stop_says_who_asked(queue, hold):
    """Also where its process went without a word; one that got done was not stopped."""
    number = start(queue)
    hold("w1").close()
    queue.claim("w1")
    with queue.store.writing() as connection:
        connection.execute("UPDATE jobs SET message='stopped by Dr B'")
    queue.dispatch()
    assert find_job(queue.store, number).message == "stopped by Dr B"
    for state, said in ((JobState.STOPPED, "stopped by Dr B"), (JobState.DONE, "")):
        with queue.store.writing() as connection:
            connection.execute("UPDATE jobs SET message='stopped by Dr B'")
        queue.end(number, state, "", ["r1", "r2"])
        job = find_job(queue.store, number)
        assert (job.message, job.runs) == (said, ("r1", "r2"))
        assert job.log[-1].partition(" ")[2] == f"{state}. {said}".rstrip()
    queue.end(number, JobState.STOPPED, "its server is gone", [])
    assert find_job(queue.store, number).message == "its server is gone"


def test_only_what_ended_is_resumed(queue, hold):
    """And only where nobody does the same work by now."""
    number = start(queue)
    with pytest.raises(ConflictError, match=f"this is job {number} already"):
        queue.resume(number, "Dr B", "editor")
    hold("w1")
    assert queue.claim("w1").started
    queue.end(number, JobState.DONE, "", [])
    with pytest.raises(ConflictError, match="is done and cannot be resumed"):
        queue.resume(number, "Dr B", "editor")
    queue.end(number, JobState.FAILED, "its server is gone", ["r1"])
    again = start(queue)
    with pytest.raises(
        ConflictError, match=f"this is job {again} already \\(queued\\)"
    ):
        queue.resume(number, "Dr B", "editor")
    queue.stop(again, "Dr B")
    job = queue.resume(number, "Dr B", "owner")
    assert (job.state, job.actor, job.role) == (JobState.QUEUED, "Dr B", "owner")
    assert (job.started, job.ended, job.message, job.step) == (None, None, "", "")
    assert job.log[-1].endswith(" resumed by Dr B")


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.STOPPED])
def test_what_ended_cannot_be_stopped(queue, state):
    """It says how it ended."""
    number = start(queue)
    queue.end(number, state, "so", [])
    before = find_job(queue.store, number)
    with pytest.raises(ConflictError, match=f"job {number} is {state}: there is"):
        queue.stop(number, "Dr B")
    assert find_job(queue.store, number) == before
    with pytest.raises(DataError, match="there is no job 9"):
        queue.stop(9, "Dr B")


def test_a_step_began_when_the_log_first_says_so(queue):
    """At its last line of these words; without one nobody knows."""
    number = start(queue)
    assert find_job(queue.store, number).step_begun is None
    for done, line in ((0, "run of\n a"), (1, ""), (0, "scoring"), (0, "run of a")):
        queue.note(number, "run of  a", done, 2, line)
    job = find_job(queue.store, number)
    assert (job.step, job.done, job.total) == ("run of  a", 0, 2)
    assert [line.partition(" ")[2] for line in job.log] == [
        "started by Dr A",
        "run of a",
        "scoring",
        "run of a",
    ]
    assert job.step_begun == job.log[-1].partition(" ")[0]
    queue.note(number, "other", 0, 2)
    assert find_job(queue.store, number).step_begun is None


def test_a_log_keeps_its_newest_lines(queue):
    """Five hundred of them, the last word included."""
    number = start(queue)
    for line in range(501):
        queue.note(number, "", 0, 0, f"line {line}")
    queue.end(number, JobState.DONE, "", [])
    log = find_job(queue.store, number).log
    said = [line.partition(" ")[2] for line in log]
    assert said == [*(f"line {line}" for line in range(2, 501)), "done."]


@pytest.mark.parametrize(
    "column", ["parameters='['", "parameters='{}'", "runs='{'", "kind='shell'"]
)
def test_a_job_that_something_else_changed_says_how_to_remove_it(queue, column):
    """One broken row keeps nobody from the store."""
    number = start(queue)
    with queue.store.writing() as connection:
        connection.execute(f"UPDATE jobs SET {column}")
    remove = f"DELETE FROM jobs WHERE number = {number}"
    with pytest.raises(StoreError, match=f"job {number} cannot be read.*{remove}"):
        find_job(queue.store, number)


def test_parameters_that_are_no_text_are_refused(queue):
    """Half a surrogate pair cannot be stored."""
    with pytest.raises(DataError, match="job"):
        start(queue, engines=("a\udc80",))


@pytest.mark.parametrize("before", [None, "", "/a/b"])
def test_a_worker_finds_this_package(before):
    """Before what the environment names; nothing else of it is changed."""
    environment = {"HOME": "/home"} | ({} if before is None else {"PYTHONPATH": before})
    given = _with_package(environment)
    assert given["HOME"] == "/home"
    package, *rest = given["PYTHONPATH"].split(os.pathsep)
    assert os.path.isfile(os.path.join(package, "loop", "run", "jobs.py"))
    assert rest == ([before] if before else [])


def test_a_job_is_told_whole(queue, hold):
    """From its start to its end, each part under its name."""
    request = run(limit=5, thinking="low", seed=7)
    started = queue.start(request, "Dr A", "editor")
    at = "2026-11-25T12:00:0{}Z".format
    whole = JobRecord(
        number=1,
        request=request,
        actor="Dr A",
        role="editor",
        created=at(0),
        started=None,
        ended=None,
        state=JobState.QUEUED,
        step="",
        done=0,
        total=0,
        pid=None,
        message="",
        log=(f"{at(1)} started by Dr A",),
        runs=(),
    )
    assert started == find_job(queue.store, 1) == whole
    assert request.data == {
        **ASKED,
        "engines": ["rules"],
        "limit": 5,
        "thinking": "low",
        "seed": 7,
    }
    hold("w1")
    claimed = queue.claim("w1")
    assert claimed == replace(
        whole,
        state=JobState.RUNNING,
        started=at(2),
        pid=os.getpid(),
        log=(*whole.log, f"{at(3)} begun"),
    )
    queue.note(1, "asking", 3, 5)
    assert find_job(queue.store, 1) == replace(claimed, step="asking", done=3, total=5)
    queue.end(1, JobState.FAILED, "no server", ["r1", "r2"])
    assert find_job(queue.store, 1) == replace(
        claimed,
        step="asking",
        done=3,
        total=5,
        state=JobState.FAILED,
        ended=at(5),
        pid=None,
        message="no server",
        log=(*claimed.log, f"{at(4)} failed. no server"),
        runs=("r1", "r2"),
    )


def test_jobs_are_listed_by_when_they_ended_and_by_their_draft(queue):
    """A check of another draft, and any other job, is none of a draft."""
    numbers = [start(queue, engines=(name,)) for name in "abc"]
    for number in numbers[:2]:
        queue.stop(number, "Dr B")
    ended = find_job(queue.store, numbers[1]).ended
    found = list_jobs(queue.store, ended_from=ended)
    assert [one.number for one in found] == numbers[1:2]
    checks = [
        queue.start(
            JobRequest(kind=JobKind.CHECK, draft=draft, engines=(f"e{n}",)), "A", "r"
        ).number
        for n, draft in enumerate(("p@draft:a", "p@draft:b", "p@draft:a"))
    ]
    found = list_jobs(queue.store, draft="p@draft:a")
    assert [one.number for one in found] == [checks[2], checks[0]]
    queue.stop(checks[0], "Dr B")
    both = list_jobs(queue.store, draft="p@draft:a", states=(JobState.STOPPED,))
    assert [one.number for one in both] == [checks[0]]
    with queue.store.writing() as connection:
        connection.execute("UPDATE jobs SET parameters='{' WHERE number=?", [checks[1]])
    assert len(list_jobs(queue.store, draft="p@draft:a")) == 2


def test_a_worker_of_somebody_else_is_not_stopped(queue, hold, monkeypatch):
    """The job goes on, and it is said whom to ask."""

    def kill(pid, signal_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    number = start(queue)
    hold("w1")
    pid = queue.claim("w1").pid
    with pytest.raises(ConflictError, match=f"job {number} goes on: its process {pid}"):
        queue.stop(number, "Dr B")
    job = find_job(queue.store, number)
    assert (job.state, job.message) == (JobState.RUNNING, "")


def test_a_job_that_waits_is_taken_out_of_the_queue(queue):
    """It ended then, and says who asked; the next one takes its turn."""
    first, second = start(queue), start(queue, prompt="q")
    job = queue.stop(first, "Dr B")
    assert job.state is JobState.STOPPED
    assert job.message == "stopped by Dr B; it can be resumed"
    assert job.ended and job.log[-1].endswith(" stop asked by Dr B")
    assert queue.claim("w1").number == second


def test_the_lock_of_a_worker_is_removed_with_it(queue):
    """A name that leads elsewhere leads to nothing."""
    locks = queue.workspace.private / "locks"
    locks.mkdir(exist_ok=True)
    for name in ("worker-w1.lock", "worker-unknown.lock"):
        (locks / name).touch()
    queue.forget("w1")
    queue.forget("w2")
    assert [one.name for one in locks.glob("worker-*")] == ["worker-unknown.lock"]
    queue.forget("../../x")
    assert not [*locks.glob("worker-*")]


@pytest.mark.parametrize("given", ["rules", {"rules": 1}, None, 3])
def test_engines_are_a_list_of_names(given):
    """A name alone would be taken letter by letter."""
    with pytest.raises(DataError, match="must be a list of names"):
        read_request("run", {**ASKED, "engines": given})
    with pytest.raises(DataError, match="a job is one of run, evaluate, matrix, check"):
        read_request("shell", ASKED)


def test_a_lock_is_taken_once_and_goes_with_its_process(queue, tmp_path):
    """Whoever inherits the handle holds it; a place that is none is said."""
    path = tmp_path / "locks" / "worker-a.lock"
    handle = _take_lock(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(WriteError, match=r"worker-a\.lock: File exists"):
        _take_lock(path)
    with path.open() as stream, pytest.raises(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(handle)
    with path.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_same_work_is_the_same_whatever_letters_it_has(queue):
    """Of a name beyond ASCII too, by whoever starts or resumes it."""
    number = start(queue, cohort="Zoë")
    with pytest.raises(ConflictError, match=f"this is job {number} already"):
        start(queue, cohort="Zoë")
    queue.stop(number, "Dr B")
    again = start(queue, cohort="Zoë")
    with pytest.raises(ConflictError, match=f"this is job {again} already"):
        queue.resume(number, "Dr B", "editor")


class _Process:
    """What a started process is to the queue; notes how it was started."""

    pid = 4242
    started: ClassVar[list] = []

    def __init__(self, command, **options):
        """Note the command, and whether its lock is held."""
        (handle,) = options["pass_fds"]
        self.started.append((command, options, os.fstat(handle)))

    def wait(self):
        """End at once."""
        return 0


def test_a_worker_is_started_with_its_lock(workspace, monkeypatch):
    """In a session of its own, with nothing to read or to write to."""
    _Process.started.clear()
    monkeypatch.setattr(subprocess, "Popen", _Process)
    with open_store(workspace) as store:
        job = JobQueue(workspace=workspace, store=store).start(run(), "Dr A", "editor")
        ((worker,),) = store.read("SELECT worker FROM jobs")
    ((command, options, held),) = _Process.started
    lock = workspace.private / "locks" / f"worker-{worker}.lock"
    assert (held.st_dev, held.st_ino) == (lock.stat().st_dev, lock.stat().st_ino)
    (handle,) = options.pop("pass_fds")
    assert command == [
        *(sys.executable, "-m", "loop", "jobs", "work", worker),
        *("-w", str(workspace.root), "--lock", str(handle)),
    ]
    assert options == {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "start_new_session": True,
        "env": _with_package(os.environ),
    }
    assert (job.pid, job.state) == (4242, JobState.QUEUED)


def test_where_no_process_can_be_started_the_job_waits(workspace, monkeypatch):
    """Why is told; another look, once there is room, starts it."""

    def full(*_args, **_options):
        raise OSError(11, "Resource temporarily unavailable")

    with open_store(workspace) as store:
        queue = JobQueue(workspace=workspace, store=store)
        monkeypatch.setattr(subprocess, "Popen", full)
        with pytest.raises(StoreError) as refused:
            queue.start(run(), "Dr A", "editor")
        assert str(refused.value) == (
            "cannot start a process for job 1: Resource temporarily unavailable. The "
            "job waits; look again with `ranloop jobs` once there is room."
        )
        job = find_job(store, 1)
        assert (job.state, job.pid) == (JobState.QUEUED, None)
        monkeypatch.setattr(subprocess, "Popen", _Process)
        queue.dispatch()
        assert find_job(store, 1).pid == 4242

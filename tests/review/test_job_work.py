"""Jobs: started once, watched, stopped, resumed, and found when their worker died."""

import os
import shutil
import signal
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import ConflictError, DataError, LoopError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.evaluate.matrix.runs import EngineRun
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.review import job_work
from loop.review.job_work import estimate_job, start_job, work_through
from loop.review.revise.run_check import CheckStep
from loop.review.start import start_workspace
from loop.run.jobs import (
    JobKind,
    JobQueue,
    JobRequest,
    JobState,
    find_job,
    list_jobs,
    read_request,
)
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.stepping import FLUID, begin

WHO = Actor(name="Dr A")
RUN = JobRequest(kind=JobKind.RUN, prompt="extractor", cohort="dev", engines=("rules",))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make, once, a workspace with cohorts of two cases and a holdout."""
    folder = tmp_path_factory.mktemp("jobs")
    made = start_workspace(folder / "ws", WHO).workspace
    cases = folder / "cases.csv"
    cases.write_text("case_id,text,Edema\na,Wet lungs.,present\nb,Normal.,absent\n")
    for role in ("dev", "external"):
        import_cohort(made, cases, ImportOptions(name=role, role=role), actor=WHO)
    cases.write_text("case_id,text\nz,Clear lungs and a pacemaker.\n")
    options = ImportOptions(name="kept", role="holdout")
    import_cohort(made, cases, options, actor=WHO)
    return made.root


@pytest.fixture
def place(made, tmp_path):
    """Return a copy of that workspace, which a test may change."""
    return WorkspacePaths(shutil.copytree(made, tmp_path / "ws"))


@pytest.fixture
def queue(place, monkeypatch):
    """Return the queue of the workspace, which starts no process by itself."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    with open_store(place) as store:
        yield JobQueue(workspace=place, store=store)


@pytest.fixture
def silent(place):
    """Return the name of an engine whose server takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"openai:m@http://127.0.0.1:{listener.getsockname()[1]}/v1"


def work(queue):
    """Work off the queue in this process."""
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    try:
        work_through(queue, "here", lambda name: None)
    finally:
        for one, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(one, handler)


def until(queue, number, state):
    """Wait until a job has a state and return it."""
    end = time.monotonic() + 60
    while (job := find_job(queue.store, number)).state is not state:
        queue.dispatch()
        assert time.monotonic() < end, job
        time.sleep(0.05)
    return job


def test_a_run_is_done_and_says_who_started_it(queue):
    """Progress, run and person are there for whoever looks later."""
    job = start_job(queue, RUN, "Dr B", "editor")
    assert (job.state, job.request.prompt) == (JobState.QUEUED, "extractor@v1")
    work(queue)
    done = find_job(queue.store, job.number)
    assert (done.state, done.done, done.total) == (JobState.DONE, 2, 2)
    (run,) = queue.store.find_runs(ids=done.runs)
    assert run.actor == "Dr B"
    assert "Wet lungs" not in " ".join(done.log)


def test_a_run_of_before_has_nobody(queue, place):
    """Who started it is not guessed."""
    run_prompt(place, "extractor", "dev")
    (run,) = queue.store.find_runs()
    assert run.actor is None


def test_the_same_work_is_refused_while_it_is_under_way(queue):
    """Two people do not pay for one run, however they name the version."""
    first = start_job(queue, RUN, "Dr A", "editor")
    again = JobRequest(
        kind=JobKind.RUN, prompt="extractor@v1", cohort="dev", engines=("rules",)
    )
    with pytest.raises(ConflictError, match=f"job {first.number} already .*Dr A"):
        start_job(queue, again, "Dr B", "editor")
    work(queue)
    assert start_job(queue, again, "Dr B", "editor").number != first.number


def test_an_engine_has_one_job_at_a_time_in_their_order(queue):
    """A model's server is not shared by jobs; another engine need not wait."""
    one = start_job(queue, RUN, "Dr A", "editor")
    limited = JobRequest(
        kind=JobKind.RUN, prompt="extractor", cohort="dev", engines=("rules",), limit=1
    )
    two = start_job(queue, limited, "Dr A", "editor")
    run = run_prompt(queue.workspace, "extractor", "dev").run_id
    other = start_job(
        queue, JobRequest(kind=JobKind.EVALUATION, run=run), "Dr A", "editor"
    )
    assert queue.claim("a").number == one.number
    with queue.store.writing() as connection:
        connection.execute("UPDATE jobs SET worker=NULL WHERE number=?", [one.number])
    assert queue.claim("b").number == other.number
    queue.end(one.number, JobState.DONE, "", ())
    assert queue.claim("c").number == two.number


def test_a_job_in_the_queue_is_stopped_and_resumed(queue):
    """What nobody began needs no process to stop."""
    job = start_job(queue, RUN, "Dr A", "editor")
    stopped = queue.stop(job.number, "Dr B")
    assert stopped.state is JobState.STOPPED
    assert "stopped by Dr B" in stopped.message
    work(queue)
    assert find_job(queue.store, job.number).state is JobState.STOPPED
    resumed = queue.resume(job.number, "Dr C", "editor")
    assert (resumed.state, resumed.actor, resumed.message) == ("queued", "Dr C", "")
    work(queue)
    with pytest.raises(ConflictError, match="is done"):
        queue.resume(job.number, "Dr C", "editor")
    with pytest.raises(ConflictError, match="nothing to stop"):
        queue.stop(job.number, "Dr C")


def test_a_fault_is_told_without_its_values(queue, monkeypatch):
    """A message may be read by people who may not read cases."""

    def fail(*_, **__):
        raise ValueError("Wet lungs.")

    monkeypatch.setattr("loop.review.job_work.run_draws", fail)
    job = start_job(queue, RUN, "Dr A", "editor")
    work(queue)
    failed = find_job(queue.store, job.number)
    assert failed.state is JobState.FAILED
    assert "ValueError in fail" in failed.message
    assert "lungs" not in repr(failed)


def test_a_matrix_says_which_engine_failed(queue):
    """The others keep their runs."""
    dead = "openai:m@http://127.0.0.1:9/v1"
    wanted = JobRequest(
        kind=JobKind.MATRIX, prompt="extractor", cohort="dev", engines=("rules", dead)
    )
    job = start_job(queue, wanted, "Dr A", "editor")
    work(queue)
    ended = find_job(queue.store, job.number)
    assert (ended.state, len(ended.runs)) == (JobState.FAILED, 1)
    assert dead in ended.message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("shell", {}),
        ("run", {"prompt": "p", "cohort": "c"}),
        ("run", {"prompt": "p", "cohort": "c", "engines": "rules"}),
        ("run", {"prompt": "p", "cohort": "c", "engines": ["rules"], "draft": "d"}),
        ("run", {"prompt": "p\nq", "cohort": "c", "engines": ["rules"]}),
        ("run", {"prompt": 3, "cohort": "c", "engines": ["rules"]}),
        ("run", {"prompt": "p", "cohort": "c", "engines": ["rules"], "draws": 10**9}),
        ("run", {"prompt": "p", "cohort": "c", "engines": ["rules"], "limit": "1"}),
        ("run", {"prompt": "p", "cohort": "c", "engines": ["rules", "rules"]}),
        ("evaluate", {"run": "latest", "workspace": "/"}),
    ],
)
def test_parameters_made_by_hand_are_refused(kind, data):
    """A request may hold anything."""
    with pytest.raises(DataError, match="job"):
        read_request(kind, data)


def test_a_worker_is_stopped_killed_and_its_job_resumed(place, silent):
    """A server that never answers holds nobody up, and a killed worker is noticed."""
    with open_store(place) as store:
        queue = JobQueue(workspace=place, store=store)
        wanted = JobRequest(
            kind=JobKind.RUN, prompt="extractor", cohort="dev", engines=(silent,)
        )
        number = start_job(queue, wanted, "Dr A", "editor").number
        first = until(queue, number, JobState.RUNNING)
        assert os.getsid(first.pid) == first.pid
        os.kill(first.pid, signal.SIGKILL)
        lost = until(queue, number, JobState.STOPPED)
        assert "its process ended before the work did" in lost.message
        queue.resume(number, "Dr B", "editor")
        until(queue, number, JobState.RUNNING)
        queue.stop(number, "Dr C")
        stopped = until(queue, number, JobState.STOPPED)
        assert "stopped by Dr C" in stopped.message
        assert not list((place.private / "locks").glob("worker-*"))


def test_a_job_is_stopped_also_in_the_moment_in_which_it_is_taken(queue, monkeypatch):
    """Whoever sees that it runs may ask at once; the job after it is not meant."""
    claim, taken = JobQueue.claim, []

    def take(self, worker):
        job = claim(self, worker)
        if job is not None:
            taken.append(job.number)
        if len(taken) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return job

    monkeypatch.setattr(JobQueue, "claim", take)
    wanted = (RUN, replace(RUN, limit=2))
    numbers = [start_job(queue, one, "Dr A", "editor").number for one in wanted]
    work(queue)
    assert taken == numbers
    ended = [find_job(queue.store, number).state for number in numbers]
    assert ended == [JobState.STOPPED, JobState.DONE]


def test_a_process_of_another_user_is_not_said_to_stop(queue, monkeypatch):
    """The signal does not reach it: that is told, and nothing is noted as stopped."""

    def refuse(pid, which):
        raise PermissionError

    number = queue.start(RUN, "Dr A", "editor").number
    with queue.store.writing() as connection:
        connection.execute(
            "UPDATE jobs SET state='running', worker='w', pid=1 WHERE number=?",
            [number],
        )
    monkeypatch.setattr(JobQueue, "_lives", lambda self, worker: True)
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(ConflictError, match="process 1 belongs to another user"):
        queue.stop(number, "Dr B")
    job = find_job(queue.store, number)
    assert (job.state, job.message) == (JobState.RUNNING, "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cohort": "kept"}, "role holdout"),
        ({"prompt": "nosuch"}, "nosuch"),
        ({"engines": ("nosuch:x",)}, "no engine 'nosuch'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_waits(queue, change, reason):
    """A holdout cannot be run here either, and nobody waits for what must fail."""
    with pytest.raises(LoopError, match=reason):
        start_job(queue, replace(RUN, **change), "Dr A", "editor")
    assert list_jobs(queue.store) == []


def test_jobs_are_listed_and_shown(queue, monkeypatch):
    """The command line shows what the store has."""
    monkeypatch.setenv("RANLOOP_ACTOR", "Dr A")
    root = ["-w", str(queue.workspace.root)]
    shell = CliRunner()
    line = ["jobs", "start", "run", "extractor", "-c", "external", *root]
    assert shell.invoke(app, line).exit_code == 0
    work(queue)
    listed = shell.invoke(app, ["jobs", *root])
    assert "done    2 of 2  Dr A" in listed.stdout
    (job,) = list_jobs(queue.store)
    assert job.runs[0] in shell.invoke(app, ["jobs", "show", "1", *root]).stdout
    assert (
        '"state": "done"'
        in shell.invoke(app, ["jobs", "show", "1", "--json", *root]).stdout
    )


MODEL = "openai:m@http://127.0.0.1:1/v1"


def test_a_job_is_estimated_by_engine_and_wording(setting, store):
    """How often each is asked; a check asks what is no model once."""
    place = setting.workspace
    draft = begin(setting, store, FLUID).draft

    def parts(**changes):
        request = JobRequest(**changes)
        return [
            (one.estimate.prompt, one.estimate.engine, one.estimate.cases, one.draws)
            for one in estimate_job(place, request)
        ]

    run = {"prompt": "tiny", "cohort": "dev"}
    both = ("rules", MODEL)
    assert parts(kind=JobKind.EVALUATION, run="x") == []
    assert parts(kind=JobKind.RUN, engines=("rules",), draws=4, limit=3, **run) == [
        ("tiny@v1", "rules", 3, 4)
    ]
    assert parts(kind=JobKind.RUN, engines=(MODEL,), **run) == [
        ("tiny@v1", MODEL, 25, 1)
    ]
    assert parts(kind=JobKind.MATRIX, engines=both, **run) == [
        ("tiny@v1", engine, 25, 1) for engine in both
    ]
    check = {"kind": JobKind.CHECK, "draft": draft.ref}
    for engine, draws in (("rules", 1), (MODEL, 6)):
        assert parts(engines=(engine,), **check) == [
            (ref, engine, 25, draws) for ref in ("tiny@v1", draft.ref)
        ]
    assert parts(engines=(MODEL,), draws=2, max_draws=3, **check)[0][3] == 2


def test_what_a_job_is_asked_for_is_how_its_run_is_asked(queue):
    """Zeros are answers to how; what nobody said is the engine's own."""
    asked = replace(RUN, temperature=0.0, seed=0, max_tokens=7, limit=1, draws=2)
    job = start_job(queue, asked, "Dr B", "editor")
    work(queue)
    done = find_job(queue.store, job.number)
    assert done.state is JobState.DONE
    specs = [one.spec for one in queue.store.find_runs(ids=done.runs)]
    assert {one.limit for one in specs} == {1}
    assert (done.done, done.total) == (1, 1)


class Notes:
    """A queue that keeps what is noted, and has no other part."""

    workspace = None

    def __init__(self):
        self.said = []

    def note(self, *told):
        """Keep what is said."""
        self.said.append(told)


def test_how_far_a_job_is_is_said_every_half_second_and_at_the_end(monkeypatch):
    """Not with each case: everybody who looks would read the store again."""
    notes, moments = Notes(), iter([10.0, 10.25, 10.5, 10.5, 10.75, 11.0, 11.0])
    monkeypatch.setattr(job_work.time, "monotonic", lambda: next(moments))
    report = job_work._Report(notes, 3)
    report.step("asking", 4)
    assert list(report.watch("abcd")) == ["a", "b", "c", "d"]
    report.tell("the server is slow")
    assert notes.said == [
        (3, "asking", 0, 4, "asking"),
        (3, "asking", 2, 4),
        (3, "asking", 4, 4),
        (3, "asking", 4, 4),
        (3, "asking", 0, 4, "the server is slow"),
    ]


@pytest.mark.parametrize(
    ("draws", "said"), [(1, [""]), (2, [", draw 1 of 2", ", draw 2 of 2"])]
)
def test_a_draw_is_named_where_there_are_several(draws, said):
    """With its engine, and nothing that may be secret in its address."""
    spec = SimpleNamespace(
        prompt="tiny@v1", cohort="dev", engine="openai:m@https://me:word@127.0.0.1/v1"
    )
    notes = Notes()
    watch = job_work._counted(
        job_work._Report(notes, 3), SimpleNamespace(spec=spec, total=2), draws
    )
    for _ in range(draws):
        assert list(watch("ab")) == ["a", "b"]
    named = [told[-1] for told in notes.said if len(told) == 5]
    where = "tiny@v1 on dev with openai:m@https://***"
    assert named == [f"{where}{one}" for one in said]
    assert {told[3] for told in notes.said} == {2}


def test_all_that_failed_in_a_matrix_is_told_in_one_line(queue, monkeypatch):
    """Each engine by its name; who asked, and how, is passed on."""
    asked = []

    def ask(workspace, wanted, *, watch):
        asked.append(wanted)
        return [
            EngineRun("rules", "run-1"),
            EngineRun("a", None, "no server."),
            EngineRun("b", None, "no model."),
        ]

    monkeypatch.setattr(job_work, "ask_engines", ask)
    request = replace(
        RUN,
        kind=JobKind.MATRIX,
        engines=("rules", "a", "b"),
        limit=1,
        allow_unconstrained=True,
    )
    report = job_work._Report(queue, 1)
    said = job_work._matrix(queue, request, WHO, report)
    assert said == "a: no server. b: no model."
    assert report.runs == ["run-1"]
    ((prompt, cohort, engines, limit, asking, actor),) = asked
    assert (prompt, cohort, engines) == ("extractor", "dev", ("rules", "a", "b"))
    assert (limit, asking.allow_unconstrained, asking.tell, actor) == (
        *(1, True, report.tell, "Dr A"),
    )


def test_an_evaluation_is_on_the_reference_that_was_named(queue, monkeypatch):
    """Its run is named among the job's; it is recorded as whoever asked."""
    asked, kept = [], []
    monkeypatch.setattr(
        job_work, "evaluate_run", lambda *told, **how: asked.append((told, how)) or "it"
    )
    monkeypatch.setattr(job_work, "record_evaluation", lambda *told: kept.append(told))
    report = job_work._Report(queue, 1)
    request = JobRequest(kind=JobKind.EVALUATION, run="run-1", reference=2)
    assert job_work._evaluate(queue, request, WHO, report) == ""
    assert asked == [((queue.workspace, "run-1"), {"reference": 2})]
    assert kept == [(queue.workspace, "it", WHO)]
    assert report.runs == ["run-1"]


def test_a_check_is_done_as_it_was_ordered(queue, monkeypatch):
    """With the draws asked for; each of its runs is named as it begins."""
    asked = []

    def check(*told):
        asked.append(told)
        return SimpleNamespace(runs=("run-1", "run-2"))

    monkeypatch.setattr(job_work, "check_draft_ref", check)
    notes = Notes()
    notes.workspace, notes.store = queue.workspace, queue.store
    report = job_work._Report(notes, 3)
    request = JobRequest(
        kind=JobKind.CHECK,
        draft="tiny@draft:a",
        cohort="dev",
        engines=("rules",),
        draws=2,
        max_draws=4,
        allow_unconstrained=True,
    )
    assert job_work._check(notes, request, WHO, report) == ""
    assert report.runs == ["run-1", "run-2"]
    ((place, store, draft, actor, how),) = asked
    assert (place, store) == (queue.workspace, queue.store)
    assert (draft, actor) == ("tiny@draft:a", WHO)
    assert (how.engine, how.draws, how.max_draws, how.cohort) == ("rules", 2, 4, "dev")
    assert (how.asking.allow_unconstrained, how.asking.tell) == (True, report.tell)
    watch = how.watch(CheckStep(number=1, of=4, side="parent"))
    assert list(watch("ab")) == ["a", "b"]
    what = "run 1 of 4: the parent on dev"
    assert notes.said == [(3, what, 0, 2, what), (3, what, 2, 2)]

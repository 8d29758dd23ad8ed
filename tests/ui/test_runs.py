"""Runs: every run in a table, and work that is started, watched and stopped there."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.people.users import UserRole
from loop.run.jobs import JobQueue, JobState, find_job, list_jobs
from loop.ui.pages.runs import page as runs
from loop.workspace import Workspace
from tests.ui.visits import opened, visit

CHOSEN = ("extractor", "demo_dev", "extractor@v1", "rules", "1")


@pytest.fixture
def context(demo, monkeypatch):
    """Return a context on the demo, in which no process is started."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    with opened(demo) as context:
        yield context


def test_runs_are_listed_with_who_started_them(context):
    """Of the demo's engineer, and of somebody nobody wrote down."""
    page = runs.refresh(visit(context), "extractor", "demo_dev").runs
    assert "demo engineer" in page
    with context.store.writing() as connection:
        connection.execute("UPDATE runs SET actor = NULL")
    assert "<td>unknown</td>" in runs.render_runs(context, "demo_dev", 1)


def test_words_choose_runs_and_many_are_paged(context):
    """A page shows fifty of what fits."""
    (run,) = context.store.find_runs()
    for number in range(60):
        context.store.add_run(f"extra{number}", run.created, "m", run.spec, "Dr <b>Z")
    assert "60 runs" in runs.render_runs(context, "z EXTRA", 1)
    last = runs.render_runs(context, "z", 10**8)
    assert "page 2 of 2" in last
    assert "Dr &lt;b&gt;Z" in last
    assert "No run fits" in runs.render_runs(context, "nosuch", 1)


@pytest.mark.parametrize("cohort", ["demo_holdout", "copied_here"])
def test_runs_on_a_holdout_are_not_shown(context, cohort):
    """Who may read it blind must not see how a model does on it; nor on what may be."""
    (run,) = context.store.find_runs()
    spec = replace(run.spec, cohort=cohort)
    context.store.add_run("secret", run.created, "m", spec, "Dr Z")
    assert "secret" not in runs.render_runs(context, "", 1)
    assert list(Workspace(context.workspace.root).runs().index) == [run.id]


def test_a_run_is_estimated_started_stopped_and_resumed(context):
    """The whole way, as buttons ask for it."""
    editor = visit(context, UserRole.EDITOR)
    assert "nothing was sent" in runs.estimate_chosen(editor, *CHOSEN)
    assert list_jobs(context.store) == []
    shown, _ = runs.start(editor, *CHOSEN)
    assert "Stop job 1" in shown
    with pytest.raises(ConflictError, match="started by Dr A"):
        runs.start(visit(context, name="Dr B"), *CHOSEN)
    shown, _ = runs.act(visit(context, number="1", act="stop"))
    assert "Resume job 1" in shown
    runs.act(visit(context, number="1", act="resume"))
    assert find_job(context.store, 1).state is JobState.QUEUED


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, "demo_holdout"),
        (2, "nosuch@v1"),
        (2, None),
        (3, "openai:m@http://192.0.2.1/v1"),
        (4, "1000000"),
        (4, ["1"]),
    ],
)
def test_a_request_made_by_hand_starts_nothing(context, place, value):
    """Neither a holdout nor an address that nobody here has asked before."""
    wanted = [*CHOSEN]
    wanted[place] = value
    with pytest.raises(DataError):
        runs.start(visit(context), *wanted)
    assert list_jobs(context.store) == []


@pytest.mark.parametrize("number", ["", "-1", "²", "9" * 40, "7"])
def test_a_job_that_is_not_there_is_told(context, number):
    """Whatever a click says."""
    with pytest.raises(DataError, match=r"no .*job"):
        runs.act(visit(context, number=number, act="stop"))


def test_whoever_may_only_see_gets_no_buttons(context):
    """A button that is refused is no help."""
    runs.start(visit(context), *CHOSEN)
    page = runs.refresh(visit(context, UserRole.APPROVER), "extractor", "demo_dev")
    assert "<button" not in page.jobs
    assert page.form.visible is False


def test_a_job_that_goes_on_is_shown_however_old(context):
    """Ten newer ones do not hide it, and the page goes on looking."""
    runs.start(visit(context), *CHOSEN)
    with context.store.writing() as connection:
        for _ in range(runs.JOBS_SHOWN + 1):
            connection.execute(
                "INSERT INTO jobs (kind, parameters, actor, role, created, state, "
                "step, done, total, message, log, runs) SELECT kind, parameters, "
                "actor, role, created, 'done', '', 0, 0, '', '', '[]' FROM jobs "
                "WHERE number = 1"
            )
    shown, timer, listed = runs.tick(visit(context), "")
    assert "Stop job 1<" in shown
    assert "job 2<" not in shown
    assert timer.active
    assert listed is runs.SAME
    runs.act(visit(context, number="1", act="stop"))
    _, timer, listed = runs.tick(visit(context), "")
    assert not timer.active
    assert "demo engineer" in listed


def test_rate_and_time_left_are_of_the_present_step(context):
    """The second draw has its own beginning: 20 cases in 10 s, 180 to go."""
    runs.start(visit(context), *CHOSEN)
    log = (
        "2026-01-01T00:00:00Z started by Dr A\n2026-01-01T00:00:00Z draw 1\n"
        "2026-01-01T01:00:00Z draw 2\n2026-01-01T01:00:05Z a remark\n"
    )
    with context.store.writing() as connection:
        connection.execute(
            "UPDATE jobs SET state='running', started='2026-01-01T00:00:00Z', "
            "step='draw 2', done=20, total=200, log=?",
            [log],
        )
    job = find_job(context.store, 1)
    now = datetime(2026, 1, 1, 1, 0, 10, tzinfo=UTC)
    assert runs._pace(job, now) == "2.0 cases/s, about 90 s left"
    assert runs._pace(job, now - timedelta(hours=2)) == ""
    assert runs._pace(replace(job, log=()), now) == ""

"""Runs: every run in a table, and work that is started, watched and stopped there."""

from dataclasses import replace

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.people.users import UserRole
from loop.run.jobs import JobDesk, JobState, find_job, list_jobs
from loop.ui.pages.runs import page as runs
from loop.workspace import Workspace
from tests.ui.visits import opened, visit

CHOSEN = ("extractor", "demo_dev", "extractor@v1", "rules", "1")


@pytest.fixture
def context(demo, monkeypatch):
    """Return a context on the demo, in which no process is started."""
    monkeypatch.setattr(JobDesk, "_launch", lambda self, connection, number: None)
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

"""Runs: every run in a table, and work that is started, watched and stopped there."""

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor
from loop.core.people.users import UserRole
from loop.core.records import Status, ValueCode
from loop.evaluate.compare import AnswerDifference, compare_runs
from loop.evaluate.protocol import read_protocol
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import version_folder
from loop.review.job_work import estimate_job
from loop.review.revise.begin import DraftRequest, begin_draft
from loop.run.cost import CostSum
from loop.run.jobs import (
    JobKind,
    JobQueue,
    JobRecord,
    JobRequest,
    JobState,
    find_job,
    list_jobs,
)
from loop.run.store import open_store
from loop.run.task import run_prompt
from loop.run.trace import UnansweredCause
from loop.ui.app import _show_ended
from loop.ui.pages import overview
from loop.ui.pages.runs import events as runs
from loop.ui.pages.runs import view
from loop.ui.pages.runs.state import (
    MOST_COMPARED,
    ComparedRuns,
    RunsPlace,
    compare_chosen,
    find_news,
    find_runs,
    follow_run,
    require_shown,
    run_followed,
)
from loop.ui.pages.runs.view import JOBS_SHOWN, pace_of, render_runs
from loop.workspace import Workspace
from tests.ui.conftest import barriers, open_tab, press
from tests.ui.forked import serving
from tests.ui.visits import enter, opened, until, visit

CHOSEN = ("extractor", "demo_dev", "run", "extractor@v1", "rules", [], "1")


@pytest.fixture
def context(demo, monkeypatch):
    """Return a context on the demo, in which no process is started."""
    monkeypatch.setattr(JobQueue, "_launch", lambda self, connection, number: None)
    with opened(demo) as context:
        yield context


def listed(context, words, number):
    """Return one page of the table."""
    return render_runs(context, words, number, RunsPlace()).html


def test_runs_are_listed_with_who_started_them(context):
    """Of the demo's engineer, and of somebody nobody wrote down."""
    page = runs.refresh(visit(context), "extractor", "demo_dev").runs
    assert "demo engineer" in page
    with context.store.writing() as connection:
        connection.execute("UPDATE runs SET actor = NULL")
    assert "<td>unknown</td>" in listed(context, "demo_dev", 1)


def test_words_choose_runs_and_many_are_paged(context):
    """A page shows fifty of what fits."""
    (run,) = context.store.find_runs()
    for number in range(60):
        context.store.add_run(f"extra{number}", run.created, "m", run.spec, "Dr <b>Z")
    assert "60 runs" in listed(context, "z EXTRA", 1)
    last = listed(context, "z", 10**8)
    assert "page 2 of 2" in last
    assert "Dr &lt;b&gt;Z" in last
    assert "No run fits" in listed(context, "nosuch", 1)


@pytest.mark.parametrize("cohort", ["demo_holdout", "copied_here"])
def test_runs_on_a_holdout_are_not_shown(context, cohort):
    """Who may read it blind must not see how a model does on it; nor on what may be."""
    (run,) = context.store.find_runs()
    spec = replace(run.spec, cohort=cohort)
    context.store.add_run("secret", run.created, "m", spec, "Dr Z")
    assert "secret" not in listed(context, "", 1)
    assert list(Workspace(context.workspace.root).runs().index) == [run.id]


def test_a_run_is_estimated_started_stopped_and_resumed(context):
    """The whole way, as buttons ask for it."""
    editor = visit(context, UserRole.EDITOR)
    told = runs.estimate_chosen(editor, None, *CHOSEN)
    assert "nothing was sent" in told.estimate
    assert list_jobs(context.store) == []
    begun = runs.start(editor, told.place, *CHOSEN)
    assert "Stop job 1" in begun.jobs
    assert begun.place.estimated is None
    with pytest.raises(ConflictError, match="started by Dr A"):
        runs.start(visit(context, name="Dr B"), None, *CHOSEN)
    shown, _ = runs.act_on_jobs(visit(context, number="1", act="stop"))
    assert "Resume job 1" in shown
    runs.act_on_jobs(visit(context, number="1", act="resume"))
    assert find_job(context.store, 1).state is JobState.QUEUED


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, "demo_holdout"),
        (1, None),
        (2, "nosuch"),
        (2, ["run"]),
        (3, "nosuch@v1"),
        (3, None),
        (3, ["a"]),
        (4, "openai:m@http://192.0.2.1/v1"),
        (4, ["rules"]),
        (6, "1000000"),
        (6, "as the protocol says"),
        (6, ["1"]),
    ],
)
def test_a_request_made_by_hand_starts_nothing(context, place, value):
    """Neither a holdout nor an address that nobody here has asked before."""
    wanted = [*CHOSEN]
    wanted[place] = value
    with pytest.raises(DataError):
        runs.start(visit(context), None, *wanted)
    assert list_jobs(context.store) == []


@pytest.mark.parametrize("number", ["", "-1", "²", "9" * 40, "7"])
def test_a_job_that_is_not_there_is_told(context, number):
    """Whatever a click says."""
    with pytest.raises(DataError, match=r"no .*job"):
        runs.act_on_jobs(visit(context, number=number, act="stop"))


def test_whoever_may_only_see_gets_no_buttons(context):
    """A button that is refused is no help."""
    runs.start(visit(context), None, *CHOSEN)
    page = runs.refresh(visit(context, UserRole.APPROVER), "extractor", "demo_dev")
    assert "<button" not in page.jobs
    assert page.form.visible is False


def test_a_job_that_goes_on_is_shown_however_old(context):
    """Ten newer ones do not hide it, and the page goes on looking."""
    runs.start(visit(context), None, *CHOSEN)
    with context.store.writing() as connection:
        for _ in range(JOBS_SHOWN + 1):
            connection.execute(
                "INSERT INTO jobs (kind, parameters, actor, role, created, state, "
                "step, done, total, message, log, runs) SELECT kind, parameters, "
                "actor, role, created, 'done', '', 0, 0, '', '', '[]' FROM jobs "
                "WHERE number = 1"
            )
    page = runs.tick(visit(context), "", None)
    assert "Stop job 1<" in page.jobs
    assert "job 2<" not in page.jobs
    assert page.timer.active
    assert page.runs is runs.SAME
    runs.act_on_jobs(visit(context, number="1", act="stop"))
    page = runs.tick(visit(context), "", None)
    assert not page.timer.active
    assert "demo engineer" in page.runs


def test_rate_and_time_left_are_of_the_present_step(context):
    """The second draw has its own beginning: 20 cases in 10 s, 180 to go."""
    runs.start(visit(context), None, *CHOSEN)
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
    assert pace_of(job, now) == "2.0 cases/s, about 90 s left"
    assert pace_of(job, now - timedelta(hours=2)) == ""
    assert pace_of(replace(job, log=()), now) == ""


def chosen(kind, subject, *, engine="rules", engines=(), draws="1"):
    """Return what the form says of some work on the demo."""
    return ("extractor", "demo_dev", kind, subject, engine, list(engines), draws)


def test_a_matrix_and_an_evaluation_are_estimated_and_started(context):
    """With the fields that such work takes; an evaluation asks nobody."""
    (run,) = context.store.find_runs()
    who = visit(context, UserRole.EDITOR)
    fields = runs.choose_kind(who, "extractor", "demo_dev", "matrix")
    assert fields.engines.visible
    assert not fields.engine.visible
    matrix = chosen("matrix", "extractor@v1", engines=["rules"])
    assert (
        "210 requests for 210 cases"
        in runs.estimate_chosen(who, None, *matrix).estimate
    )
    runs.start(who, None, *matrix)
    fields = runs.choose_kind(who, "extractor", "demo_dev", "evaluate")
    assert fields.subject.value == run.id
    evaluation = chosen("evaluate", run.id, engine=None, draws=None)
    assert "asks no engine" in runs.estimate_chosen(who, None, *evaluation).estimate
    runs.start(who, None, *evaluation)
    titles = [job.request.title for job in list_jobs(context.store)]
    assert titles == [
        f"evaluation of run {run.id}",
        "matrix of extractor@v1 on demo_dev with rules",
    ]
    with pytest.raises(DataError, match="choose a cohort"):
        runs.start(who, None, *chosen("matrix", "extractor@v1"))


def test_a_model_is_asked_only_after_its_estimate_was_shown(context):
    """Of this very work; what is chosen otherwise since is estimated again."""
    (run,) = context.store.find_runs()
    spec = replace(run.spec, engine="openai:m@http://127.0.0.1:9/v1")
    context.store.add_run("known", "2026-01-01T00:00:00Z", "m", spec)
    context.store.finish_run("known", "2026-01-01T00:00:00Z", run.counts)
    folder = context.workspace.private / "runs"
    shutil.copytree(folder / run.id, folder / "known")
    one, three = (
        chosen("run", "extractor@v1", engine=spec.engine, draws=draws)
        for draws in ("1", "3")
    )
    page = runs.start(visit(context), None, *one)
    assert "Press Start once more" in page.estimate
    page = runs.start(visit(context), page.place, *three)
    assert "Press Start once more" in page.estimate
    assert "up to 3 draws" in page.estimate
    assert list_jobs(context.store) == []
    page = runs.start(visit(context), page.place, *three)
    assert page.estimate == ""
    assert find_job(context.store, 1).request.draws == 3


def test_a_check_with_draws_is_estimated_for_both_sides_and_started(context):
    """As often as the protocol says at most, or as chosen; `rules` once."""
    who = visit(context, UserRole.EDITOR)
    request = DraftRequest(prompt="extractor", cohort="demo_dev", verdicts=())
    made = begin_draft(context.workspace, context.store, request, who.actor)
    fields = runs.choose_kind(who, "extractor", "demo_dev", "check")
    assert fields.subject.value == made.draft.ref
    wanted = chosen("check", made.draft.ref, draws=fields.draws.value)
    told = runs.estimate_chosen(who, None, *wanted).estimate
    assert told.count("210 requests for 210 cases") == 2
    assert "draws" not in told
    assert "nothing is paid" in told
    runs.start(who, None, *wanted)
    assert find_job(context.store, 1).request.draws is None
    model = JobRequest(
        kind=JobKind.CHECK, draft=made.draft.ref, engines=("openai:m@http://a/v1",)
    )
    parts = estimate_job(context.workspace, model)
    most = read_protocol(context.workspace).max_draws
    assert [part.draws for part in parts] == [most, most]


def test_a_damaged_draft_is_offered_last_and_said_to_be_unusable(context):
    """A draft that vanished would be looked for; why it is refused is told."""
    who = visit(context, UserRole.EDITOR)
    request = DraftRequest(prompt="extractor", cohort="demo_dev", verdicts=())
    sound, broken = (
        begin_draft(context.workspace, context.store, request, who.actor).draft
        for _ in range(2)
    )
    (version_folder(context.workspace, broken) / "guides.yaml").write_text("{")
    fields = runs.choose_kind(who, "extractor", "demo_dev", "check")
    assert fields.subject.choices == [
        (sound.ref, sound.ref),
        (f"{broken.ref}, cannot be used", broken.ref),
    ]
    assert fields.subject.value == sound.ref
    with pytest.raises(DataError, match=r"guides\.yaml"):
        runs.start(who, None, *chosen("check", broken.ref))
    assert list_jobs(context.store) == []


def test_who_was_away_is_told_once_what_ended_meanwhile(context):
    """Each person by themselves, also of the second job of one second; nothing old."""
    early = visit(context, name="Dr B")
    assert runs.refresh(early, "extractor", "demo_dev").news == ""
    for number, state in ((1, "done"), (2, "failed")):
        runs.start(visit(context), None, *CHOSEN)
        with context.store.writing() as connection:
            connection.execute(
                "UPDATE jobs SET state=?, ended='2099-01-01T00:00:00Z', "
                "message=?, runs=? WHERE number=?",
                [state, "a <b>cause", '["run7"]', number],
            )
        (ended,) = find_news(early).ended
        assert ended.number == number
        news = runs.refresh(early, "extractor", "demo_dev").news
        assert f"{state}</b> job {number}, run of extractor@v1" in news
        assert f"job {3 - number}," not in news
        assert "a &lt;b&gt;cause" in news
        assert 'data-run="run7"' in news
        assert runs.refresh(early, "extractor", "demo_dev").news == ""
        assert find_news(early).known
        assert find_news(early).ended == []
    late = visit(context, name="Dr C")
    assert not find_news(late).known
    with context.store.writing() as connection:
        connection.execute("UPDATE jobs SET ended='2020-01-01T00:00:00Z'")
    assert runs.refresh(late, "extractor", "demo_dev").news == ""
    assert runs.tick(late, "", None).news is runs.SAME


def test_jobs_that_cannot_be_read_keep_no_other_page_from_being_shown(context):
    """The header says so and leads to the page Runs, which says why."""
    runs.start(visit(context), None, *CHOSEN)
    here = SimpleNamespace(name="review")
    assert _show_ended(visit(context), here).strip() == ""
    with context.store.writing() as connection:
        connection.execute(
            "UPDATE jobs SET parameters='{', ended='2099-01-01T00:00:00Z'"
        )
    assert "The jobs cannot be read" in _show_ended(visit(context), here)


def unanswered(context, *cases):
    """Make some cases of the demo's run unreadable, and one failed."""
    (run,) = context.store.find_runs()
    status = ["unparsed"] * (len(cases) - 1) + ["engine_failed"]
    with context.store.writing() as connection:
        for case, one in zip(cases, status, strict=True):
            connection.execute(
                "UPDATE outcomes SET status=?, fields='{}', problem=? WHERE item_id=?",
                [one, f"no <b>JSON</b> in it ({one})", case],
            )
        counts = {**run.counts, "answered": run.counts["answered"] - len(cases)}
        counts |= {"unparsed": len(cases) - 1, "failed": 1}
        connection.execute("UPDATE runs SET counts=?", [json.dumps(counts)])
    return run


def test_a_run_opens_its_cases_the_unanswered_first_and_from_there_the_trace(context):
    """Unreadable and failed ones by cause; then all, a hundred at a time."""
    cases = ("demo-dev-003", "demo-dev-150", "demo-dev-007")
    run = unanswered(context, *cases)
    page = runs.act_on_runs(visit(context, do="cases", run=run.id), "", None)
    causes, every = page.detail.split("All cases in the order of the cohort")
    assert causes.index("demo-dev-003") < causes.index("demo-dev-150")
    assert "no &lt;b&gt;JSON&lt;/b&gt; in it (unparsed)" in causes
    assert causes.index("(unparsed)") < causes.index("(engine_failed)")
    assert every.count('data-act="trace"') == 100
    assert "1 to 100 of 210" in every
    last = runs.act_on_detail(
        visit(context, act="cases", run=run.id, start="999999"), page.place
    )
    assert "201 to 210 of 210" in last.detail
    opened = runs.act_on_detail(
        visit(context, act="trace", run=run.id, case="demo-dev-003"), page.place
    )
    assert "no &lt;b&gt;JSON" in opened.trace
    assert "case demo-dev-003 " in opened.trace
    assert "What was asked" in runs.find_case(
        visit(context), " demo-dev-150 ", page.place
    )
    with pytest.raises(DataError, match="asked no case"):
        runs.find_case(visit(context), "demo-dev-999", page.place)
    with pytest.raises(DataError, match="name a case"):
        runs.find_case(visit(context), "demo-dev-150", None)


def test_causes_that_differ_in_numbers_alone_are_one_line(context):
    """A hundred places in which an answer breaks off are one cause."""
    (run,) = context.store.find_runs()
    with context.store.writing() as connection:
        connection.execute(
            "UPDATE outcomes SET status='unparsed', "
            "problem='cut off at ' || seq || ' of 9' WHERE seq < 30"
        )
    page = runs.act_on_runs(visit(context, do="cases", run=run.id), "", None)
    assert page.detail.count("cut off at") == 1
    assert "<b>30</b> unparsed: cut off at … of …" in page.detail
    assert "rarer causes" not in page.detail


def test_the_rarer_of_many_causes_are_folded_away(context):
    """A model that errs in many ways does not push its cases off the page."""
    (run,) = context.store.find_runs()
    with context.store.writing() as connection:
        connection.execute(
            "UPDATE outcomes SET status='unparsed', problem=char(97 + seq) "
            "WHERE seq < 20"
        )
    page = runs.act_on_runs(visit(context, do="cases", run=run.id), "", None)
    assert "<summary>12 rarer causes</summary>" in page.detail
    assert page.detail.index("unparsed: h<") < page.detail.index("12 rarer causes")
    assert page.detail.index("unparsed: i<") > page.detail.index("12 rarer causes")


def test_the_overview_leads_to_the_unanswered_cases_of_its_run(context):
    """One key; the page opens on them, also after a reload, until they are closed."""
    run = unanswered(context, "demo-dev-003", "demo-dev-007", "demo-dev-009")
    shown = overview.refresh(visit(context), "extractor", "demo_dev")
    button = shown[shown.index('id="overview-unanswered"') :]
    assert re.search(r"2 unparsed.*1 engine failed", button)
    follow_run(visit(context), run.id)
    for _ in range(2):
        page = runs.refresh(visit(context), "extractor", "demo_dev")
        assert "demo-dev-003" in page.detail
    assert (
        runs.refresh(visit(context, name="Dr B"), "extractor", "demo_dev").detail == ""
    )
    runs.act_on_detail(visit(context, act="close"), page.place)
    assert runs.refresh(visit(context), "extractor", "demo_dev").detail == ""
    follow_run(visit(context), "gone")
    assert runs.refresh(visit(context), "extractor", "demo_dev").detail == ""


def add_later(context, first, answers):
    """Add a run as `first`, with other answers about edema in some cases."""
    second = context.store.add_run("later", "2099-01-01T00:00:00Z", "m", first.spec)
    with context.store.writing() as connection:
        connection.execute(
            "INSERT INTO outcomes SELECT ?, seq, item_id, status, fields, repairs, "
            "problem, keys FROM outcomes WHERE run = ?",
            [second.number, first.number],
        )
        for case, value in answers.items():
            fields = json.dumps({"edema": value, "fracture": "absent"})
            connection.execute(
                "UPDATE outcomes SET fields=? WHERE run=? AND item_id=?",
                [fields, second.number, case],
            )
    context.store.finish_run("later", "2099-01-01T00:00:01Z", first.counts)
    folder = context.workspace.private / "runs"
    shutil.copytree(folder / first.id, folder / "later")
    return first.id, "later"


@pytest.fixture
def pair(context):
    """Add a second run of the demo's version, with other answers in three cases."""
    (first,) = context.store.find_runs()
    values = ("present", "absent", "uncertain")
    answers = {f"demo-dev-{n:03}": value for n, value in enumerate(values, 1)}
    return add_later(context, first, answers)


def test_ticked_runs_are_compared_by_label_and_by_case(context, pair):
    """As `ranloop compare` counts; a case opens its trace in either run."""
    editor = visit(context, do="compare", ticked=[*pair])
    place = RunsPlace(listed=pair)
    page = runs.act_on_runs(editor, "", place)
    assert page.place.compared == pair
    assert page.place.ticked == pair
    told = compare_runs(context.workspace, *pair)
    edema = next(one for one in told.labels if one.label == "edema")
    row = next(one for one in page.detail.split("<tr>") if ">Edema<" in one)
    assert f"+{len(edema.fixed)}" in row or f"−{len(edema.broken)}" in row
    cases = runs.act_on_detail(visit(context, act="differ", label="edema"), page.place)
    listed = set(re.findall(r"demo-dev-\d+", cases.differences))
    assert set(edema.fixed) | set(edema.broken) | set(edema.became_uncertain) <= listed
    assert listed <= {f"demo-dev-00{number}" for number in range(1, 4)}
    for run in pair:
        assert f'data-run="{run}" data-case="demo-dev-00' in cases.differences
    every = runs.act_on_detail(visit(context, act="differ"), page.place)
    assert re.search(r"Any label: \d+ answers in which", every.differences)


def test_runs_on_a_cohort_without_a_reference_stand_side_by_side(context, tmp_path):
    """What each says and where they differ; nothing is right or wrong there."""
    file = tmp_path / "plain.csv"
    file.write_text("case_id,text\na,Wet lungs.\nb,Clear lungs.\n")
    options = ImportOptions(name="plain", role="external")
    import_cohort(context.workspace, file, options, actor=Actor(name="Dr A"))
    run_prompt(context.workspace, "extractor@v1", "plain")
    both = add_later(context, context.store.find_runs()[0], {"b": "present"})
    who, place = visit(context, do="compare", ticked=[*both]), RunsPlace(listed=both)
    page = runs.act_on_runs(who, "", place)
    assert "The cohort has no reference" in page.detail
    assert "F1" not in page.detail
    row = next(one for one in page.detail.split("<tr>") if ">Edema<" in one)
    assert re.findall(r'num">(\d+)<', row) == ["0", "1"]
    cases = runs.act_on_detail(visit(context, act="differ", label="edema"), page.place)
    assert "Edema: 1 case on" in cases.differences
    assert ">missing<" in cases.differences
    assert "as the reference" not in cases.differences
    (demo,) = (run for run in context.store.find_runs() if run.id not in both)
    place = RunsPlace(ticked=(demo.id, "later"))
    with pytest.raises(DataError, match="same cohort"):
        runs.act_on_runs(visit(context, do="compare", ticked=[]), "", place)


@pytest.mark.parametrize(
    ("ticked", "said"),
    [([], "0 runs are ticked"), (["a"] * 9, "1 run is ticked"), ("ab", "0 runs")],
)
def test_what_cannot_be_compared_is_told(context, ticked, said):
    """Whatever the browser says of its boxes."""
    place = RunsPlace(listed=("a", "b"))
    with pytest.raises(DataError, match=said):
        runs.act_on_runs(visit(context, do="compare", ticked=ticked), "", place)


def test_runs_on_a_holdout_are_opened_and_compared_by_nobody(context):
    """Nor does a request made by hand reach their cases or traces."""
    (run,) = context.store.find_runs()
    spec = replace(run.spec, cohort="demo_holdout")
    context.store.add_run("secret", run.created, "m", spec, "Dr Z")
    context.store.finish_run("secret", run.created, run.counts)
    place = RunsPlace(ticked=("secret", run.id), compared=("secret", run.id))
    for handler, given, data in (
        (runs.act_on_runs, ("", place), {"do": "cases", "run": "secret"}),
        (runs.act_on_runs, ("", place), {"do": "compare", "ticked": []}),
        (runs.act_on_detail, (place,), {"act": "cases", "run": "secret"}),
        (runs.act_on_detail, (place,), {"act": "differ", "label": "edema"}),
        (runs.act_on_detail, (place,), {"act": "trace", "run": "secret", "case": "x"}),
        (runs.evaluate_run_shown, (), {"do": "evaluate", "run": "secret"}),
    ):
        with pytest.raises(DataError, match="is a holdout"):
            handler(visit(context, **data), *given)
    assert list_jobs(context.store) == []


def test_ticks_stay_when_the_table_is_turned_or_searched():
    """Those in the table are as the browser says, those elsewhere as they were."""
    place = RunsPlace(listed=("a", "b"), ticked=("a", "z"))
    assert place.with_ticks({"ticked": ["b", "q"]}).ticked == ("z", "b")
    assert place.with_ticks({"ticked": {"a": 1}}).ticked == ("z",)


def test_the_run_that_is_open_is_evaluated_as_a_job(context):
    """Its own id, whatever becomes the latest run meanwhile."""
    (run,) = context.store.find_runs()
    runs.evaluate_run_shown(visit(context, do="evaluate", run=run.id))
    assert find_job(context.store, 1).request.title == f"evaluation of run {run.id}"


def test_the_table_has_policies_and_costs_and_python_the_same(context):
    """Of the protocol and by the prices there were; empty where nobody knows."""
    (run,) = context.store.find_runs()
    calls = run.counts["asked"] + run.counts["cached"]
    used = {"answers": calls, "prompt_tokens": 10**6, "completion_tokens": 0}
    counts = {**run.counts, **used}
    spec = replace(run.spec, engine="openai:m@http://a/v1", protocol_digest="gone")
    context.store.add_run("paid", "2026-01-06T00:00:00Z", "m", spec, "Dr <i>")
    context.store.finish_run("paid", run.created, counts)
    context.workspace.config.write_text("prices: {m: {input: 2, output: 8}}\n")
    page = runs.refresh(visit(context), "extractor", "demo_dev")
    rows = {
        row.split("Compare run ")[1][:4]: row for row in page.runs.split("<tr>")[2:]
    }
    assert "<td>wrong</td>" in rows[run.id[:4]]
    assert "<td>wrong</td>" not in rows["paid"]
    assert "2.0000 USD" in rows["paid"]
    assert "runs found" not in page.costs
    assert "2026-W02" in page.costs
    assert "openai:m@http://a/v1" in page.costs
    found = runs.find(visit(context), "rules", None)
    assert "of the runs found" in found.costs
    assert "USD" not in found.costs
    table = Workspace(context.workspace.root).runs()
    paid = table.loc["paid", ["policy", "cost", "currency"]]
    assert paid.tolist() == ["", 2.0, "USD"]
    assert table.loc[run.id, "policy"] == "wrong"
    assert table["cost"].isna().tolist() == [True, False]


def test_what_may_go_is_shown_with_its_size_and_then_removed(context):
    """Only that, by who may start runs; what came since is shown before it goes."""
    (run,) = context.store.find_runs()
    row = ("left over " * 10**5, "stop", 0.1, None, None, None, None)
    context.store.save([(bytes([n]) * 32, *row) for n in (1, 2)], [])
    shown = runs.prune(visit(context, act="size"))
    assert "2 stored answers" in shown
    assert "2.0 MB" in shown
    with pytest.raises(ConflictError, match="Nothing was removed"):
        runs.prune(visit(context, act="prune", answers="1"))
    before = context.store.count_completions()
    assert "removed" in runs.prune(visit(context, act="prune", answers="2"))
    assert context.store.count_completions() == before - 2
    assert "nothing may go" in runs.prune(visit(context, act="size"))
    assert runs.refresh(visit(context), "extractor", "demo_dev").pruned
    seen = visit(context, UserRole.REVIEWER)
    assert runs.refresh(seen, "extractor", "demo_dev").pruned == ""
    assert sum(1 for _ in context.store.read_outcomes(run.id)) == 210


@pytest.mark.slow
def test_a_job_outlives_the_workbench_and_is_news_to_who_comes_back(demo, new_page):
    """Started in the browser, the workbench restarted, done, and its run opened."""
    page = new_page()
    with serving(demo) as url:
        enter(page, url, "Runs")
        page.click("#runs-ask")
        page.wait_for_selector("#runs-estimate:has-text('nothing was sent')")
        page.click("#runs-start")
        page.wait_for_selector("#runs-jobs:has-text('Job 1 was started')")
        open_tab(page, "Overview")
        page.wait_for_selector("#overview-unanswered")
    with open_store(demo) as store:
        until(lambda: find_job(store, 1).state is JobState.DONE)
        (run,) = find_job(store, 1).runs
    with serving(demo) as url:
        enter(page, url, "Overview")
        page.click("#jobs-ended :text('1 job ended')")
        page.wait_for_selector("#runs-jobs tr:has-text('done')")
        assert page.inner_text("#jobs-ended").strip() == ""
        assert "Ended since you last looked" in page.inner_text("#runs-news")
        page.click(f"#runs-news [data-run='{run}']")
        page.wait_for_selector(f"#runs-detail h2:has-text('{run}')")
        assert page.evaluate("document.activeElement.closest('#runs-detail') !== null")
        boxes = page.locator("#runs-list input[type=checkbox]")
        for place in range(2):
            boxes.nth(place).check()
        page.click("[data-do=compare]")
        page.wait_for_selector("table.compared:has-text('macro-F1')")
        assert barriers(page) == []
        open_tab(page, "Overview")
        page.wait_for_selector("#overview-unanswered")
        press(page, "u")
        page.wait_for_selector(f"#runs-detail h2:has-text('{run}')")
        assert "Every case was answered" in page.inner_text("#runs-detail")
    assert page.complaints == []


def job(**changes):
    """Return a job that goes on since 2026-01-01T01:00:00Z."""
    return JobRecord(
        **{
            "number": 1,
            "request": JobRequest(
                kind=JobKind.RUN, prompt="tiny@v1", cohort="dev", engines=("rules",)
            ),
            "actor": "Ann",
            "role": "editor",
            "created": "2026-01-01T00:00:00Z",
            "started": "2026-01-01T00:00:00Z",
            "ended": None,
            "state": JobState.RUNNING,
            "step": "draw 1",
            "done": 2500,
            "total": 2600,
            "pid": 1,
            "message": "",
            "log": ("2026-01-01T01:00:00Z draw 1",),
            "runs": (),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("changes", "seconds", "told"),
    [
        ({}, 1, "2,500.0 cases/s, about 0 s left"),
        ({"total": 12_500_000}, 1, "2,500.0 cases/s, about 4,999 s left"),
        # The number of cases is known before that of the step, or was counted down.
        ({"total": 2400}, 100, "25.0 cases/s, about 0 s left"),
        ({"done": 1}, 2, "0.5 cases/s, about 5,198 s left"),
        ({"done": 0}, 1, ""),
        ({}, 0, ""),
        ({}, -1, ""),
        ({"state": JobState.QUEUED}, 1, ""),
        ({"state": JobState.DONE}, 1, ""),
    ],
)
def test_a_rate_is_told_while_cases_are_done(changes, seconds, told):
    """And none where no time has passed, or nothing was done."""
    now = datetime(2026, 1, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert pace_of(job(**changes), now) == told


def test_boxes_that_no_table_sends_change_nothing():
    """A box twice is one; what is no text is none; far too many are none at all."""
    place = RunsPlace(listed=("a", "b"), ticked=("z",))
    assert place.with_ticks({}).ticked == ("z",)
    assert place.with_ticks({"ticked": ["b", "a", "b", 7]}).ticked == ("z", "a", "b")
    many = ["a"] * 1000
    assert place.with_ticks({"ticked": many}).ticked == ("z", "a")
    assert place.with_ticks({"ticked": [*many, "b"]}).ticked == ("z",)


def test_causes_are_joined_by_status_and_wording_and_sorted():
    """Numbers apart; the most frequent first, each with all its cases."""
    causes = [
        UnansweredCause(Status.UNPARSED, "cut off at 7", ("c1",)),
        UnansweredCause(Status.ENGINE_FAILED, "cut off at 9", ("d1", "d2")),
        UnansweredCause(Status.UNPARSED, "cut off at 12", ("c2", "c3")),
        UnansweredCause(Status.UNPARSED, "no JSON 4", ("e1",)),
    ]
    assert view._alike(causes) == [
        UnansweredCause(Status.UNPARSED, "cut off at …", ("c1", "c2", "c3")),
        causes[1],
        causes[3],
    ]
    assert view._alike([]) == []


PRESENT, ABSENT, OPEN = ValueCode.PRESENT, ValueCode.ABSENT, ValueCode.UNCERTAIN
NOT_CODED, MISSING = ValueCode.NOT_CODED, ValueCode.MISSING


@pytest.mark.parametrize(
    ("reference", "rights"),
    [
        (PRESENT, (True, False, None, None)),
        (ABSENT, (False, True, None, None)),
        # What the reference does not code is absent there.
        (NOT_CODED, (False, True, None, None)),
        (OPEN, (None,) * 4),
        (MISSING, (None,) * 4),
    ],
)
def test_an_answer_is_right_or_wrong_only_where_both_decide(reference, rights):
    """Of each run, in their order."""
    answers = (PRESENT, ABSENT, OPEN, MISSING)
    runs_of = [SimpleNamespace(id=f"run-{n}") for n in range(4)]
    found = SimpleNamespace(runs=runs_of)
    row = view._difference(found, AnswerDifference("c1", "edema", reference, answers))
    assert row == view.DifferenceRow(
        "c1",
        "edema",
        reference.words,
        tuple(
            view.AnswerCell(f"run-{n}", code.words, right)
            for n, (code, right) in enumerate(zip(answers, rights, strict=True))
        ),
    )


def test_costs_are_summed_by_currency():
    """What has no price is in no sum; the oldest rows are left out, and counted."""
    row = CostSum(
        week="2026-W09",
        prompt="tiny",
        engine="openai:m",
        runs=2,
        asked=10,
        stored=5,
        prompt_tokens=1000,
        completion_tokens=100,
        unpriced=0,
        amount=3.0,
        fresh=1.25,
        currency="USD",
    )
    free = replace(row, currency="", amount=0.0, fresh=0.0, unpriced=1)
    sums = [row, row, replace(row, currency="EUR", fresh=0.5), free]
    html = view._render_costs(sums, True)
    assert "of the runs found: about 2.5000 USD and 0.5000 EUR for new answers" in html
    assert html.count("<tr>") == 5
    assert html.count("1 without a price") == 1
    assert "older row" not in html
    assert "of the runs found" not in view._render_costs(sums, False)
    assert "for new answers" not in view._render_costs([free], False)
    assert view._render_costs([], False) == ""
    most = [row] * view.COSTS_SHOWN
    assert "older row" not in view._render_costs(most, False)
    many = view._render_costs([*most, row, row], False)
    assert "2 older rows are left out" in many
    assert "1 older row is left out" in view._render_costs([*most, row], False)


def test_runs_side_by_side_have_letters():
    """In the order of the runs."""
    found = ComparedRuns((), (), None, {})
    assert [found.letter(place) for place in range(MOST_COMPARED)] == list("ABCDEF")


def test_words_look_for_what_stands_in_the_row_of_a_run(context):
    """All of them, in any order: id, version, cohort, engine without key, and who."""
    (run,) = context.store.find_runs()
    spec = replace(run.spec, engine="openai:Big@http://a:secret@b/v1", prompt="x@v7")
    context.store.add_run("late", "2099-01-01T00:00:00Z", "m", spec, "Dr Zed")
    context.store.add_run("later", "2099-01-02T00:00:00Z", "m", run.spec)

    def found(words):
        return [one.id for one in find_runs(context, words)]

    assert found("") == ["later", "late", run.id]
    for words in ("ZED", "x@V7 zed", " openai:big ", "LATE x@", "demo_dev dr zed"):
        assert found(words) == ["late"], words
    assert found("unknown") == ["later"]
    assert found("zed unknown") == found("secret") == []
    assert found(run.id) == [run.id]


def test_a_run_may_be_followed_until_it_is_let_go(context):
    """By each person; what cannot be the id of a run changes nothing."""
    ann, ben = visit(context, name="Ann"), visit(context, name="Ben")
    assert run_followed(ann) == ""
    follow_run(ann, "r" * 100)
    assert (run_followed(ann), run_followed(ben)) == ("r" * 100, "")
    follow_run(ann, "r" * 101)
    assert run_followed(ann) == "r" * 100
    follow_run(ann, "")
    assert run_followed(ann) == ""


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "1 run is ticked. Tick 2 to 6 runs on one cohort to compare them."),
        (2, "there is no run 'a' any more. Load the page again."),
        (6, "there is no run 'a' any more. Load the page again."),
        (7, "7 runs are ticked. Tick 2 to 6 runs on one cohort to compare them."),
    ],
)
def test_only_two_to_six_different_runs_are_looked_up(context, count, said):
    """One twice is one; the first that is not there is named."""
    with pytest.raises(DataError) as refused:
        compare_chosen(context, ["a", *"abcdefg"[:count]])
    assert str(refused.value) == said


def test_a_run_that_did_not_finish_has_nothing_to_show(context):
    """It says how to go on; of those that may be shown the oldest comes first."""
    (run,) = context.store.find_runs()
    context.store.add_run("open", "2099-01-01T00:00:00Z", "m", run.spec)
    with pytest.raises(DataError, match=r"run open did not finish.*only what is miss"):
        require_shown(context, [run.id, "open"])
    context.store.finish_run("open", "2099-01-01T00:00:00Z", run.counts)
    for ids in ([run.id, "open"], ["open", run.id]):
        assert [one.id for one in require_shown(context, ids)] == [run.id, "open"]

"""Versions: lineage, scores, differences, aliases and the ledger, broken or not."""

import json
import re
from dataclasses import replace

import gradio as gr
import httpx
import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.people.users import Right, UserRole
from loop.evaluate.score_history import score_history
from loop.labels.cohort import read_cohort
from loop.prompts.catalog import read_aliases, read_version, write_version
from loop.prompts.history import move_alias
from loop.review.revise.draft import DraftCheckStatus, DraftInfo
from loop.review.revise.draft_files import DraftOrigin
from loop.ui.pages import overview
from loop.ui.pages.versions import events, view
from loop.ui.pages.versions.state import find_unscored, newest_runs
from loop.ui.pages.versions.view import LedgerQuery, turn_to
from tests.ui.conftest import barriers, sign_in
from tests.ui.visits import enter, opened, visit

HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\u202eevil"
EDITOR = Actor(name="Dr E")


@pytest.fixture
def context(demo):
    """Return a context on the demo, whose version 1 was scored."""
    with opened(demo) as context:
        yield context


@pytest.fixture
def two(context):
    """Add a version 2 with a reason that no page may run, and return the context."""
    first = read_version(context.workspace, "extractor@v1")
    guides = (
        replace(first.guides[0], terms=(*first.guides[0].terms, "collapsed <b>lobe")),
        *first.guides[1:],
    )
    made = replace(
        first,
        number=2,
        parent=first.digest,
        guides=guides,
        why=HOSTILE,
        author="Dr E",
        verdicts=("abc",),
    )
    write_version(context.workspace, made)
    event = Event(
        action="draft_committed",
        subject="extractor@v2",
        reason=HOSTILE,
        payload={"digest": made.digest, "parent": first.digest, "verdicts": ["abc"]},
    )
    append_event(context.workspace.ledger, event, EDITOR)
    return context


def seen(context):
    """Return how many entries the ledger has."""
    return len(read_ledger(context.workspace.ledger))


def page(context, *roles):
    """Return what the outputs of the page show."""
    return events.refresh(visit(context, *roles), "extractor", "demo_dev")


def test_a_version_is_shown_with_who_when_why_and_score(two):
    """Everything of a version stands in its row."""
    tables, before, after, difference, *_ = page(two)
    assert "Dr E" in tables
    assert "(editor)" in tables
    assert "+1 term" in tables
    assert "not scored" in tables
    assert (before.value, after.value) == ("extractor@v1", "extractor@v2")
    assert "collapsed &lt;b&gt;lobe" in difference


def test_hostile_reasons_are_text_in_tables_figures_and_ledger(two):
    """A reason is typed by people: script, ANSI, null and RTL override stay text."""
    shown = "".join(part for part in page(two) if isinstance(part, str))
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    for character in ("\x1b", "\x00", "\u202e"):
        assert character not in shown


def test_an_edited_version_is_named_and_hides_no_other(two):
    """Whoever edited a committed version behind the tool's back is found out."""
    guides = two.workspace.prompts / "extractor" / "v2" / "guides.yaml"
    guides.write_text(guides.read_text().replace("collapsed", "folded"))
    tables, _, _, difference, *_ = page(two)
    assert "Not to be trusted" in tables
    assert "v1" in tables
    assert "Cannot be compared" in difference
    assert "was edited after it was committed" in difference


def test_a_broken_ledger_still_shows_the_page(two):
    """The chain's status, the line, and what came before the break."""
    lines = two.workspace.ledger.read_text().splitlines()
    lines[2] = lines[2].replace("demo", "Demo", 1)
    two.workspace.ledger.write_text("\n".join(lines) + "\n")
    tables, *_, ledger, _, _, _ = page(two)
    assert "its chain is broken" in tables
    assert "Chain broken" in ledger
    assert "line 3" in ledger
    assert "2 entries" in ledger


def test_a_workspace_without_a_prompt_has_a_designed_page(context):
    """The first visit is before the first prompt."""
    tables, *_ = events.refresh(visit(context), None, None)
    assert "No prompt yet" in tables


def run_version(context, ref, **options):
    """Run a version on the demo's cohort, as `ranloop run` does."""
    arguments = ["run", ref, "--cohort", "demo_dev", "--engine", "rules"]
    extra = [str(part) for pair in options.items() for part in pair]
    where = ["--workspace", str(context.workspace.root), "--json"]
    done = CliRunner().invoke(app, [*arguments, *extra, *where])
    assert done.exit_code == 0, done.output


def test_overview_and_versions_show_the_same_score_and_interval(context):
    """Two pages, one number: what differs would be asked about, and rightly."""
    tables = page(context)[0]
    first = overview.refresh(visit(context), "extractor", "demo_dev")
    numbers = r"(\d\.\d{3})(?:</b>)? <span class=\"limits\">(\[\S+, \S+\])</span>"
    shown = re.search(r"<dt>macro-F1</dt><dd><b>" + numbers, first).groups()
    assert re.search(r'<td class="num">' + numbers, tables).groups() == shown
    passed = re.search(r"<b>(\d+)</b> pass<", first)[1]
    assert f'{passed} <span class="soft">of 21</span>' in tables


def test_times_are_marked_so_that_a_page_can_show_them_in_local_time(two):
    """A browser knows the reader's zone; without its script UTC is said."""
    run_version(two, "extractor@v2")
    tables, *_, ledger, _, _, unscored = page(two)
    first = overview.refresh(visit(two), "extractor", "demo_dev")
    time = r'<time datetime="(\S{10}T\S{5}):\d\dZ">(\S{10} \S{5}) UTC</time>'
    for shown in (tables, ledger, unscored, first):
        found = re.findall(time, shown)
        assert found
        assert all(said == iso.replace("T", " ") for iso, said in found)


def test_words_are_explained_where_they_first_appear(two):
    """By something that a keyboard opens and a screen reader announces."""
    first = overview.refresh(visit(two), "extractor", "demo_dev")
    for shown, words in (
        (first, ("gate", "INSUFFICIENT", "kappa", "macro-F1")),
        (page(two)[0], ("alias", "macro-F1", "ledger")),
    ):
        for word in words:
            assert f"<dt>{word}</dt><dd>" in shown
        assert '<details class="what"><summary>' in shown
    assert "Score corrected for selection" in first
    record = first.index("for the record")
    run = re.search(r"<dt>run</dt><dd><code>(.*?)</code>", first)[1]
    assert first.index(run) > record


def test_a_version_without_a_run_names_the_command(two):
    """Nobody has to guess what is missing for a score."""
    tables, *_, unscored = page(two)
    assert "no run yet on demo_dev" in tables
    assert "ranloop run extractor@v2 --cohort demo_dev" in tables
    assert unscored.strip() == ""


def test_a_run_that_waits_is_evaluated_where_it_is_shown(two):
    """Score, verdict and entry are those of `ranloop evaluate`."""
    run_version(two, "extractor@v2")
    tables, *_, unscored = page(two)
    assert "its run waits for an evaluation" in tables
    assert 'data-act="evaluate" data-number="2"' in unscored
    asked = visit(two, right=Right.REVISE, number="2")
    tables, *_, unscored = events.evaluate(asked, "extractor", "demo_dev")
    assert "extractor@v2 was evaluated on demo_dev: macro-F1 0." in unscored
    assert "data-act" not in unscored
    assert "its run waits" not in tables
    *_, scored, decided = read_ledger(two.workspace.ledger)
    assert (scored.action, decided.action) == ("evaluated", "gate_decided")
    assert (scored.subject, scored.actor) == ("extractor@v2", "Dr A")
    with pytest.raises(DataError, match="Open the page again"):
        events.evaluate(asked, "extractor", "demo_dev")
    assert seen(two) == decided.seq


def test_a_run_over_the_first_cases_only_is_no_score(two):
    """A trial of ten cases must not take the place of a score over all."""
    run_version(two, "extractor@v2", **{"--limit": 10})
    tables, *_, unscored = page(two)
    assert "no run yet on demo_dev" in tables and unscored.strip() == ""


def test_who_may_not_revise_is_told_who_evaluates(two):
    """What one may not do is not offered as a button."""
    run_version(two, "extractor@v2")
    unscored = page(two, UserRole.REVIEWER)[-1]
    assert "data-act" not in unscored and "ranloop evaluate " in unscored


def test_a_click_shows_what_one_version_changed(two):
    """The version comes from the browser and is looked up."""
    click = visit(two, act="diff", tag="v2")
    before, after, difference, *reading = events.act(click, "extractor", "demo_dev")
    assert (before, after) == ("extractor@v1", "extractor@v2")
    assert "&rarr;" in difference and reading == [gr.skip()] * 2
    for tag in ("v7", "../../x", None, "draft:none"):
        with pytest.raises(DataError, match="not there any more"):
            events.act(visit(two, tag=tag), "extractor", "demo_dev")


def test_a_version_is_read_as_a_model_does(two):
    """From its row, brought into view: what changed, tokens, and who wrote it."""
    click = visit(two, act="read", tag="v2")
    *compared, ref, shown = events.act(click, "extractor", "demo_dev")
    assert compared == [gr.skip()] * 3 and ref == "extractor@v2"
    assert "data-arrived" in shown and "estimated" in shown
    assert '<span class="added">' in shown
    assert "<q>collapsed &lt;b&gt;lobe</q>" in shown
    assert "<script>" not in shown and "\u202e" not in shown
    assert "Dr E" in shown and "perhaps from a verdict that is not kept here" in shown
    beside = re.search(
        r'class="from" title="([^"]+)"><span[^>]*>from </span>v2<', shown
    )
    assert beside[1].startswith("v2; ") and "Dr E; perhaps from" in beside[1]
    user = shown.partition('aria-label="user message of joint">')[2]
    assert user.partition("</span>")[0].endswith('<span class="unseen">from ')
    assert "data-arrived" not in events.read(visit(two), "extractor@v2")
    assert events.read(visit(two), None) == ""


def test_a_version_that_cannot_be_read_says_why(two):
    """Edited, gone, or no reference at all: the page stays."""
    place = two.workspace.prompts / "extractor" / "v2" / "system.jinja"
    place.write_text(place.read_text() + "more")
    assert "edited after it was committed" in events.read(visit(two), "extractor@v2")
    assert "no version v9" in events.read(visit(two), "extractor@v9")
    assert "is not a prompt reference" in events.read(visit(two), "../../x")


def test_an_alias_moves_with_a_reason_in_the_approvers_name(two):
    """The same entry as `ranloop alias` makes."""
    approver = visit(two, UserRole.APPROVER, right=Right.APPROVE, name="Dr P")
    typed = ("extractor@v2", " production ", "agreed in the meeting", seen(two))
    *_, said = events.point(approver, "extractor", "demo_dev", *typed)
    assert "extractor@production is now v2" in said
    assert read_aliases(two.workspace, "extractor") == {"production": "v2"}
    entry = read_ledger(two.workspace.ledger)[-1]
    assert (entry.actor, entry.role) == ("Dr P", "approver")
    assert entry.reason == "agreed in the meeting"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("extractor@v2", "production", "  "), "a reason is missing"),
        ((None, "production", "why"), "no version is chosen"),
        (("extractor@v2", "v3", "why"), "cannot be an alias"),
        (("extractor@v9", "production", "why"), "v9"),
    ],
)
def test_a_wrong_form_for_an_alias_is_refused(two, typed, message):
    """Nothing reaches the ledger."""
    before = seen(two)
    approver = visit(two, right=Right.APPROVE)
    with pytest.raises(DataError, match=message):
        events.point(approver, "extractor", "demo_dev", *typed, before)
    assert seen(two) == before


def test_an_alias_that_someone_moved_meanwhile_is_not_moved_over(two):
    """Two approvers with the page open do not undo each other unseen."""
    opened_at = seen(two)
    move_alias(
        two.workspace, "extractor@v2", "production", actor=EDITOR, reason="first"
    )
    typed = ("extractor@v1", "production", "second", opened_at)
    with pytest.raises(ConflictError, match="Dr E pointed production at v2"):
        events.point(visit(two, right=Right.APPROVE), "extractor", "demo_dev", *typed)
    assert read_aliases(two.workspace, "extractor") == {"production": "v2"}


def test_a_tab_left_open_is_told_that_the_ledger_went_on(two):
    """The page does not change under the reader; it offers to."""
    opened_at = seen(two)
    refs = ("extractor@v1", "extractor@v2")
    assert events.compare(visit(two), *refs, opened_at)[1] == ""
    move_alias(two.workspace, "extractor@v2", "x", actor=EDITOR, reason="first")
    assert "1 new entry" in events.compare(visit(two), *refs, opened_at)[1]


def test_the_ledger_is_filtered_and_turned_on_the_server(context):
    """Fifty at a time, newest first; any page number is taken for the nearest."""
    event = Event(action="override", subject="extractor@v1", reason="r")
    for _ in range(60):
        append_event(context.workspace.ledger, event, EDITOR)
    entries = read_ledger(context.workspace.ledger)
    first = turn_to(entries, LedgerQuery(action="override", subject="EXTRACTOR@v1"))
    assert (first.found, first.pages, len(first.entries)) == (60, 2, 50)
    assert first.entries[0][0].seq == len(entries)
    last = turn_to(entries, LedgerQuery(action="override", page=99))
    assert (last.number, len(last.entries)) == (2, 10)
    assert turn_to(entries, LedgerQuery(subject="nobody")).found == 0


@pytest.mark.parametrize("page", ["2", "-1", "x", "9" * 400, "", None, ["2"]])
def test_a_page_number_from_the_browser_breaks_nothing(context, page):
    """It is untrusted."""
    shown, _ = events.read_ledger_page(visit(context, page=page), "", "", seen(context))
    assert "Chain intact" in shown


def test_only_approvers_are_offered_to_move_an_alias(context):
    """What one may not do is not shown."""
    assert page(context, UserRole.REVIEWER).aliasing.visible is False
    assert page(context, UserRole.APPROVER).aliasing.visible is True


@pytest.mark.slow
def test_a_reviewer_cannot_move_an_alias_by_hand(shared, new_page):
    """The right is checked on the server, also for who calls the function by name."""
    page = new_page()
    sign_in(page, shared, "Dr Reviewer")
    jar = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    values = [None, None, None, "production", "why", None]
    answer = httpx.post(
        f"{shared}/gradio_api/run/versions_alias",
        json={"data": values},
        cookies=jar,
        headers={"Origin": shared},
    )
    assert answer.status_code == 500
    assert "takes the role approver" in json.loads(answer.text)["error"]


@pytest.mark.slow
def test_no_serious_barrier(shared_alone, new_page):
    """Readable for everyone, in both themes and sizes, without scrolling sideways."""
    page = new_page()
    enter(page, shared_alone, "Versions")
    page.wait_for_selector("#ledger table.entries")
    page.click("#versions [data-act=read]")
    page.wait_for_selector("#prompt-page .lines")
    assert page.input_value("#reading input") == "extractor@v1"
    assert barriers(page) == []
    assert page.complaints == []


@pytest.mark.slow
def test_an_alias_is_moved_in_the_browser(served_alone, new_page):
    """The tag appears in the table, and the entry on top of the ledger."""
    page = new_page()
    enter(page, served_alone, "Versions")
    page.wait_for_selector("#versions table.history")
    page.fill("#alias-name input, #alias-name textarea", "production")
    page.fill("#alias-why input, #alias-why textarea", HOSTILE.replace("\x00", ""))
    page.click("#alias-move")
    page.wait_for_selector("#versions .alias")
    assert page.inner_text("#versions .alias") == "production"
    first = page.locator("#ledger tbody tr").first
    assert "alias moved" in first.inner_text()
    assert "<script>alert(1)</script>" in first.inner_text()
    assert page.complaints == []


def test_a_cohort_that_is_not_as_recorded_hides_no_version(context, monkeypatch):
    """No run is offered for evaluation, and everything else is shown."""

    def refuse(*_args):
        raise DataError("the cohort was edited")

    before = page(context)[0]
    monkeypatch.setattr(view, "find_unscored", refuse)
    assert "Dr" in before and page(context)[0].count("<tr") == before.count("<tr")


def test_a_draft_that_is_gone_says_so():
    """Somebody else discarded it in the meantime."""
    assert view._state(None) == "gone"


@pytest.mark.parametrize(
    ("checked", "behind", "problem", "state"),
    [
        ("PASSED", False, "", "waits, check passed"),
        ("OBJECTIONS", False, "", "waits, check has objections"),
        (
            *("STALE", True, ""),
            "waits, check out of date, a newer version was committed since",
        ),
        ("NEVER", False, "", "waits, not checked"),
        ("PASSED", True, "torn", "damaged"),
    ],
)
def test_a_draft_says_how_far_it_is(checked, behind, problem, state):
    """A damaged one says nothing else; what was recorded is beside it."""
    info = DraftInfo(
        ref="tiny@draft:d1",
        author="Ann",
        when="2026-03-01T12:00:00Z",
        why="a reason",
        begun_by="Ben",
        verdicts=(),
        cohort="dev",
        parent_ref="tiny@v1",
        behind=behind,
        checked=DraftCheckStatus[checked],
        origin=next(iter(DraftOrigin)),
        problem=problem,
    )
    assert view._state(info) == state
    row = view.DraftRow(
        ref="tiny@draft:d1",
        when="2026-03-01T12:00:00Z",
        who="Ann",
        why="a reason",
        parent="tiny@v1",
        state=state,
        objections=(),
        macro_f1=None,
        measured="",
        problem=problem,
    )
    assert view._draft_rows((), (info,)) == [row]
    later = replace(info, ref="tiny@draft:d2", when="2026-03-02T12:00:00Z")
    assert [one.ref for one in view._draft_rows((), (info, later))] == [
        *("tiny@draft:d2", "tiny@draft:d1")
    ]


def test_changes_are_counted_with_their_signs():
    """One of a kind and several; what cannot be counted has no plural."""
    changes = {"+term": 1, "-general rule": 2, "~exemplar": 0, "+call_plan": 2}
    assert view._in_words(changes) == (
        "+1 term, \N{MINUS SIGN}2 general rules, ~0 exemplars, +2 call plan"
    )
    assert view._in_words({}) == ""


def added(context, run, **changes):
    """Add a finished run like `run` but for its spec, and return its id."""
    spec, name = replace(run.spec, **changes), f"r{len(context.store.find_runs())}"
    context.store.add_run(name, "2099-01-01T00:00:00Z", "m", spec)
    context.store.finish_run(name, "2099-01-01T00:00:00Z", run.counts)
    return name


def test_the_newest_whole_run_of_the_cases_as_they_are_counts(context):
    """Neither a part, nor a repeat, nor other cases, nor one that goes on."""
    (run,) = context.store.find_runs()
    newest = added(context, run)
    other = added(context, run, prompt_digest="p" * 64)
    for changes in (
        {"limit": 5},
        {"draw": 1},
        {"cohort": "demo_holdout"},
        {"cohort_digest": "c" * 64},
    ):
        added(context, run, **changes)
    context.store.add_run("begun", "2099-01-02T00:00:00Z", "m", run.spec)
    found = newest_runs(context, "demo_dev")
    assert {digest: one.id for digest, one in found.items()} == {
        run.spec.prompt_digest: newest,
        "p" * 64: other,
    }


def test_what_an_evaluation_would_change_is_said(context):
    """Nothing where the newest run was scored on the newest reference."""
    (run,) = context.store.find_runs()
    (score,) = score_history(context.workspace, "extractor", "demo_dev")
    assert (score.run, score.reference) == (run.id, 1)

    def told(*scores):
        return [
            (one.score.ref, one.run.id, one.why)
            for one in find_unscored(context, scores, "demo_dev")
        ]

    assert told(score) == []
    unscored = replace(score, run="", reference=None)
    assert told(unscored) == [("extractor@v1", run.id, "not scored yet")]
    assert told(replace(unscored, number=0)) == []
    assert told(replace(unscored, digest="f" * 64)) == []
    early = replace(score, reference=0)
    against = "scored against reference version 0, not 1"
    assert told(early) == [("extractor@v1", run.id, against)]
    # In whatever way it was scored on the newest: then nothing is missing.
    assert told(early, replace(score, comparable=False)) == []
    assert told(replace(score, reference=-1), early) == [
        ("extractor@v1", run.id, against)
    ]
    later = added(context, run)
    assert told(score) == [("extractor@v1", later, "scored on an older run")]


def test_nothing_of_a_holdout_waits_for_an_evaluation(context):
    """Who may read it blind must not see how a model does on it."""
    (run,) = context.store.find_runs()
    (score,) = score_history(context.workspace, "extractor", "demo_dev")
    digest = read_cohort(context.workspace, "demo_holdout").digest
    added(context, run, cohort="demo_holdout", cohort_digest=digest)
    assert newest_runs(context, "demo_holdout")
    unscored = replace(score, run="", reference=None)
    assert find_unscored(context, [unscored], "demo_holdout") == ()

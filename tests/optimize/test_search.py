"""Optimizers propose, nested splits decide, and drafts wait for a person."""

import json
import stat
import sys
from dataclasses import replace

import pytest

from loop.core.errors import ConflictError, DataError, EngineError
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.records import Completion, Exemplar, Mark, Value
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference
from loop.optimize import search
from loop.optimize.proposals import Objection
from loop.optimize.search import search_prompt
from loop.optimize.search_labels import FAILING
from loop.optimize.search_report import Optimizer, SearchRequest
from loop.prompts.catalog import list_drafts, read_version, write_version
from loop.review.revise.draft import list_open_drafts
from loop.review.revise.draft_files import DraftOrigin, read_about, read_line
from loop.review.status import read_kept
from loop.review.submit import save_verdicts, withdraw_verdict
from loop.review.verdict import Edits
from loop.run.store import open_store
from tests.optimize.made_task import (
    ACTOR,
    SYNONYMS,
    TINY,
    StubReflector,
    improvable_cases,
    make_task,
    random_cases,
)
from tests.review.scenes import MADE_ON, WHEN, add_cohort, verdict

pytestmark = pytest.mark.slow

SECRET = "zyzzogeton"
"""A word of a case that nothing but a question to the reflecting engine may hold."""


def request(optimizer=Optimizer.GEPA, **changes):
    """Return a request to search on the made task."""
    fields = {
        "prompt": "tiny",
        "cohort": "dev",
        "optimizer": Optimizer(optimizer),
        "reflect": "stub:any" if Optimizer(optimizer).reflects else "",
        "budget": 120,
        "splits": 3,
    }
    return SearchRequest(**(fields | changes))


def searched(workspace):
    """Return the ledger's entries of searches."""
    return [one for one in read_ledger(workspace.ledger) if one.action == "searched"]


def approve(workspace, *phrases):
    """Keep a clinician's verdicts that ask for an exemplar with each phrase."""
    rows = [
        verdict(
            f"c{number}",
            label="pleural_effusion",
            edits=Edits(
                exemplars=(
                    Exemplar(
                        text=f"A {phrase} is seen today.",
                        value=Value.PRESENT,
                        evidence=phrase,
                    ),
                )
            ),
        )
        for number, phrase in enumerate(phrases)
    ]
    with open_store(workspace) as store:
        save_verdicts(store, rows, MADE_ON, WHEN)


@pytest.mark.parametrize(
    "optimizer", [one for one in Optimizer if one is not Optimizer.TERMS]
)
def test_a_made_task_is_improved(improvable, stub, optimizer, capfd):
    """Guides learn the names that effusions go by; cases not seen say so."""
    approve(improvable, *SYNONYMS)
    result = search_prompt(improvable, request(optimizer), ACTOR)
    assert result.better
    assert result.findings.estimate.gain.low > 0
    draft = read_version(improvable, result.drafts[0].ref)
    guide = draft.guide("pleural_effusion")
    learnt = {*guide.terms, *(one.evidence for one in guide.exemplars)}
    assert learnt & set(SYNONYMS)
    assert read_about(improvable, draft).origin is DraftOrigin.OPTIMIZER
    assert draft.parent == TINY.digest
    with open_store(improvable) as store:
        info = list_open_drafts(improvable, store, "tiny")[-1]
    assert (info.cohort, info.behind, info.problem) == ("dev", False, "")
    assert info.checked == "passed"
    assert {one.objections for one in result.drafts} == {()}
    (entry,) = searched(improvable)
    assert entry.payload["candidates"] == result.findings.candidates > 0
    assert capfd.readouterr() == ("", "")
    assert bool(stub.asked) is optimizer.reflects


def test_what_was_not_seen_decides(workspace, tmp_path, stub):
    """Labels without any relation to the texts: in twenty seeds at most one "better".

    The guide begins by finding everything, so that saying more finds nothing more.
    """
    names = (
        "quokka",
        "wombat",
        "numbat",
        "bilby",
        "potoroo",
        "dunnart",
        "quoll",
        "emu",
    )
    both = tuple(
        replace(one, terms=(*one.terms, *names, "film *")) for one in TINY.guides
    )
    everything = replace(TINY, guides=both)
    better = 0
    for seed in range(20):
        rows = random_cases(60, seed)
        name = f"dev{seed}"
        make_task(workspace, tmp_path, rows, name=name, version=everything)
        asked = request(
            cohort=name, budget=30, labels=(), seed=seed, study=True, splits=2
        )
        result = search_prompt(workspace, asked, ACTOR)
        better += result.better
        assert result.better == bool(
            result.findings.estimate.gain.low and result.findings.estimate.gain.low > 0
        )
    assert better <= 1
    assert len(searched(workspace)) == 20
    assert not list_drafts(workspace, "tiny")


def test_nothing_better_is_a_result_without_a_draft(improvable, stub):
    """An engine that proposes what is there already ends a search as well."""
    approve(improvable)
    stub.said = "```yaml\npleural_effusion:\n  name: Pleural Effusion\n```"
    result = search_prompt(improvable, request(), ACTOR)
    assert (result.better, result.drafts) == (False, ())
    assert result.words == "no better prompt found"
    effort = result.findings.effort
    assert effort.refused == ((Objection.NOT_A_GUIDE.value, effort.proposed),)
    assert not list_drafts(improvable, "tiny")
    assert len(searched(improvable)) == 1


def test_a_finished_search_is_read_again(improvable, stub):
    """Nothing is asked, no draft is made twice, and the ledger keeps one entry."""
    first = search_prompt(improvable, request(), ACTOR)
    questions, drafts = len(stub.asked), list_drafts(improvable, "tiny")
    again = search_prompt(improvable, request(), ACTOR)
    assert again == replace(first, remembered=True)
    assert len(stub.asked) == questions
    assert list_drafts(improvable, "tiny") == drafts
    assert len(searched(improvable)) == 1


def test_case_text_stays_in_the_private_folder(workspace, tmp_path, stub):
    """The journal is 0600 under 0700; ledger, drafts and results hold no case text."""
    rows = [
        (name, f"{text} {SECRET} {name}.", one, two)
        for name, text, one, two in improvable_cases(100)
    ]
    make_task(workspace, tmp_path, rows)
    result = search_prompt(workspace, request(), ACTOR)
    assert result.drafts
    assert any(SECRET in question for question in stub.asked)
    folder = workspace.private / "optimize"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.rglob("*"):
        mode = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, (path, mode)
    assert SECRET not in json.dumps(result.data)
    for path in workspace.root.rglob("*"):
        if path.is_file() and workspace.private not in path.parents:
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Completion(""), "empty answer"),
        (Completion("  \n"), "empty answer"),
        (Completion("", "refusal"), "refused"),
        (Completion("```yaml", "length"), "cut off"),
        (Completion("", "error", "no answer within 300 s"), "no answer within"),
    ],
)
@pytest.mark.parametrize("optimizer", [Optimizer.GEPA, Optimizer.MIPRO])
def test_an_engine_that_gives_no_answer_stops_the_search(
    improvable, stub, optimizer, broken, reason
):
    """That nothing was proposed must not read as "no better prompt found"."""
    stub.broken = broken
    with pytest.raises(EngineError, match=f"gave no answer.*{reason}"):
        search_prompt(improvable, request(optimizer, budget=200), ACTOR)
    assert not searched(improvable)
    assert not list_drafts(improvable, "tiny")


@pytest.mark.parametrize("here", [True, False])
def test_comments_are_told_to_an_engine_on_this_machine_only(
    improvable, stub, monkeypatch, here
):
    """Judgement and context are told to any; a comment is a note of the team."""
    monkeypatch.setattr(search, "is_on_this_machine", lambda *_: here)
    rows = [
        verdict(f"c{number}", label="pleural_effusion", comment="seen on the ward")
        for number in range(100)
    ]
    with open_store(improvable) as store:
        save_verdicts(store, rows, MADE_ON, WHEN)
    search_prompt(improvable, request(splits=1, study=True), ACTOR)
    assert all("model wrong" in question for question in stub.asked)
    told = ["seen on the ward" in question for question in stub.asked]
    assert told
    assert set(told) == {here}


def test_a_withdrawn_verdict_is_another_search(improvable, stub):
    """What was remembered was steered by it; so is what copies are looked for in."""
    with open_store(improvable) as store:
        asks = [verdict(f"c{number}", label="pleural_effusion") for number in range(9)]
        save_verdicts(store, asks, MADE_ON, WHEN)
        (kept, *_) = read_kept(store, improvable, "dev")
    asked = request(splits=1, budget=40, study=True)
    first = search_prompt(improvable, asked, ACTOR)
    with open_store(improvable) as store:
        withdraw_verdict(store, kept.id, ACTOR, "a slip")
    second = search_prompt(improvable, asked, ACTOR)
    assert first.spec.settings["verdicts"] != second.spec.settings["verdicts"]
    assert not second.remembered


def test_texts_of_another_cohort_are_another_search(improvable, tmp_path, stub):
    """A proposal that was copied from one of them would be refused."""
    asked = request(Optimizer.NEAREST, splits=1, study=True)
    first = search_prompt(improvable, asked, ACTOR)
    add_cohort(improvable, tmp_path, improvable_cases(20), name="more", role="external")
    second = search_prompt(improvable, asked, ACTOR)
    assert first.spec.settings["private"] != second.spec.settings["private"]
    assert not second.remembered


def test_one_lost_answer_stops_nothing(improvable, stub, monkeypatch):
    """A question without an answer is left out, and the search goes on."""
    answered = StubReflector.complete

    def complete(self, prompts):
        for number, completion in answered(self, prompts):
            lost = len(StubReflector.asked) == 1
            yield number, Completion("", "error", "lost") if lost else completion

    monkeypatch.setattr(StubReflector, "complete", complete)
    assert search_prompt(improvable, request(), ACTOR).better


def test_rules_cannot_reflect(improvable):
    """The refusal says which optimizers work without a language model."""
    with pytest.raises(EngineError, match="terms, bootstrap, nearest"):
        search_prompt(improvable, request(reflect="rules"), ACTOR)
    with pytest.raises(EngineError, match="none was named"):
        search_prompt(improvable, request(reflect=""), ACTOR)


def test_without_optuna_mipro_says_how_to_get_it(improvable, stub, monkeypatch):
    """Before anything is asked."""
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(DataError, match=r"pip install 'ranloop\[optimize\]'"):
        search_prompt(improvable, request(Optimizer.MIPRO), ACTOR)
    assert not stub.asked


def test_an_old_version_is_only_studied(improvable, stub):
    """A search from it makes no draft, and without being a study it is refused."""
    newer = replace(TINY, number=2, parent=TINY.digest, why="more")
    newer = replace(newer, system="Read the report with care.\n")
    write_version(improvable, newer)
    event = Event(action="draft_committed", subject="tiny@v2", reason="-", payload={})
    append_event(improvable.ledger, event, ACTOR)
    with pytest.raises(ConflictError, match="not the newest version"):
        search_prompt(improvable, request(prompt="tiny@v1"), ACTOR)
    result = search_prompt(improvable, request(prompt="tiny@v1", study=True), ACTOR)
    assert result.better
    assert result.drafts == ()
    assert result.words == "a better prompt was found; no draft: this is a study"


def test_a_commit_during_a_search_leaves_its_draft_behind(improvable, stub):
    """The draft keeps its parent, and says that another version is newer."""
    newer = replace(TINY, number=2, parent=TINY.digest, system="Read slowly.\n")

    def overtake(done, total):
        if done == 1:
            write_version(improvable, newer)
            event = Event(
                action="draft_committed", subject="tiny@v2", reason="-", payload={}
            )
            append_event(improvable.ledger, event, ACTOR)

    result = search_prompt(improvable, request(), ACTOR, tell=overtake)
    assert read_line(improvable, result.drafts[0].ref).behind
    assert "was committed" in result.drafts[0].objections[0]


def test_a_reference_revised_meanwhile_makes_the_result_stale(improvable, stub):
    """The result says so; the next search has another key."""
    members = read_cohort(improvable, "dev")

    def revise(done, total):
        if done == 1:
            marks = {("c1", "cardiomegaly"): Mark.UNCERTAIN}
            correct_reference(improvable, members, marks, actor=ACTOR, reason="seen")

    result = search_prompt(improvable, request(), ACTOR, tell=revise)
    assert result.stale == ("the reference of dev was revised to version 2",)
    again = search_prompt(improvable, request(), ACTOR)
    assert again.stale == ()
    assert len(searched(improvable)) == 2


def test_one_search_of_a_kind_at_a_time(improvable, stub):
    """Another process with the same search is told so; another seed may go on."""

    def both(done, total):
        if done == 1:
            with pytest.raises(ConflictError):
                search_prompt(improvable, request(), ACTOR)
            other = request(seed=7, splits=1, study=True)
            search_prompt(improvable, other, ACTOR)

    search_prompt(improvable, request(), ACTOR, tell=both)
    assert len(searched(improvable)) == 2


def test_a_holdout_is_out_of_reach(workspace, tmp_path, stub):
    """A search is on a dev cohort or not at all."""
    make_task(workspace, tmp_path, improvable_cases(60))
    add_cohort(workspace, tmp_path, improvable_cases(60), name="ho", role="holdout")
    with pytest.raises(DataError, match="dev cohort"):
        search_prompt(workspace, request(cohort="ho"), ACTOR)


def test_labels_are_those_that_fail_their_gate(improvable, stub):
    """Or those that are named; one that nobody asks for is refused."""
    assert search_prompt(improvable, request(), ACTOR).findings.labels == (
        "pleural_effusion",
    )
    with pytest.raises(DataError, match="no label edema"):
        search_prompt(improvable, request(labels=("edema",)), ACTOR)
    named = request(labels=("cardiomegaly",), budget=30)
    result = search_prompt(improvable, named, ACTOR)
    assert (result.findings.labels, result.better) == (("cardiomegaly",), False)


def test_nothing_wrong_is_nothing_to_search_for(workspace, tmp_path, stub):
    """The search ends at once, and the ledger says so."""
    rows = [
        row for row in improvable_cases(200) if not any(n in row[1] for n in SYNONYMS)
    ]
    make_task(workspace, tmp_path, rows)
    result = search_prompt(workspace, request(labels=(FAILING,)), ACTOR)
    assert (
        result.words == "nothing to search for: no label that can be estimated fails "
        "its gate; try --labels all"
    )
    assert not stub.asked


def test_a_request_makes_sense():
    """A budget and a number of splits are at least one."""
    with pytest.raises(ValueError, match="budget must be >= 1, got 0"):
        request(budget=0)
    with pytest.raises(ValueError, match="splits must be >= 1, got 0"):
        request(splits=0)

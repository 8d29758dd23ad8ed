"""Scores, lineage and the ledger's state, from the ledger alone."""

import json
import re

import pytest

from loop.core.errors import DataError, StoreError
from loop.core.ledger import GENESIS, Event, append_event, read_ledger
from loop.core.records import Mark, UncertainAnswers
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.gates import GateVerdict
from loop.evaluate.history_figures import verdict_mark
from loop.evaluate.recording import with_intervals
from loop.evaluate.score_history import (
    Edge,
    ledger_state,
    lineage_graph,
    main_scores,
    read_scores,
    read_verdict_roles,
    score_history,
)
from loop.evaluate.tried import WordingStatus
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference
from loop.prompts.history import move_alias
from loop.run.store import open_store
from tests.evaluate.tried_scenes import EDITOR, tried_check


@pytest.fixture
def told(trials):
    """Two committed versions, both evaluated, and a rejected draft of the first."""
    first = trials.version(1, "effusion")
    trials.commit(first)
    trials.evaluate(trials.run("tiny@v1"))
    bad = trials.version(0, "base", parent=first, draft="d1")
    trials.reject(bad, "broke anchors", check=tried_check("a", "b"))
    second = trials.version(2, "effusion", "fluid", parent=first)
    trials.commit(second)
    trials.evaluate(trials.run("tiny@v2"))
    return trials


def test_versions_stand_in_order_with_their_drafts_behind(told):
    """A draft belongs to the version it was revised from."""
    rows = score_history(told.workspace, "tiny", "dev")
    assert [row.ref for row in rows] == ["tiny@v1", "tiny@draft:d1", "tiny@v2"]
    assert [row.status for row in rows] == [
        WordingStatus.COMMITTED,
        WordingStatus.REJECTED,
        WordingStatus.COMMITTED,
    ]
    assert rows[1].objections == ("broke anchors",)
    assert [row.verdicts for row in rows] == [2, 1, 2]


def test_scores_are_those_that_were_recorded(told):
    """The same F1 and the same gates as on the evaluation."""
    rows = score_history(told.workspace, "tiny", "dev")
    evaluation = evaluate_run(told.workspace, rows[2].run, resamples=20)
    assert rows[2].macro_f1 == pytest.approx(evaluation.macro.score.estimate, abs=5e-5)
    assert (rows[2].labels_passed, rows[2].labels_insufficient) == (0, 21)
    assert rows[2].labels == 21
    assert rows[1].macro_f1 is None and rows[1].labels_passed is None
    assert all(row.comparable for row in rows)


def test_a_score_on_an_older_reference_is_not_comparable(told):
    """A correction of the reference moves every score."""
    cohort = read_cohort(told.workspace, "dev")
    marks = {("n0", "pleural_effusion"): Mark.PRESENT}
    correct_reference(told.workspace, cohort, marks, actor=EDITOR, reason="misread")
    run = score_history(told.workspace, "tiny", "dev")[2].run
    told.evaluate(run)
    rows = score_history(told.workspace, "tiny", "dev")
    assert [row.ref for row in rows] == [
        "tiny@v1", "tiny@draft:d1", "tiny@v2", "tiny@v2",
    ]  # fmt: skip
    assert [row.comparable for row in rows] == [False, True, False, True]
    assert [row.reference for row in rows] == [1, None, 1, 2]


def record_again(workspace, *, run, swaps, digest=None):
    """Record the newest score and its gate once more, measured in another way."""
    entries = read_ledger(workspace.ledger)
    for action in ("evaluated", "gate_decided"):
        last = [one for one in entries if one.action == action][-1]
        payload = {**last.payload, "run": run}
        for old, new in swaps.items():
            if "signature" in payload:
                assert old in payload["signature"]
                payload["signature"] = payload["signature"].replace(old, new)
        if action == "evaluated":
            payload["macro_f1"] = "0.1234"
            payload |= {"engine_digest": digest} if digest else {}
        event = Event(
            action=action, subject=last.subject, reason="again", payload=payload
        )
        append_event(workspace.ledger, event, EDITOR)


@pytest.mark.parametrize(
    ("swaps", "digest", "measured"),
    [
        ({"|rules|": "|openai:qwen|"}, None, "openai:qwen, uncertain answers wrong"),
        ({"|rules|": "|openai:qwen|"}, "d" * 64, "openai:qwen dddddd, uncertain"),
        ({"unc:wrong": "unc:excl"}, None, "rules, uncertain answers excluded"),
        ({":ref1": ":ref2"}, None, "rules, uncertain answers wrong"),
    ],
)
def test_another_engine_policy_or_reference_takes_no_scores_place(
    told, swaps, digest, measured
):
    """A newer run of another kind stands beside the number, with what it rests on."""
    before = score_history(told.workspace, "tiny", "dev")[-1]
    record_again(told.workspace, run="another", swaps=swaps, digest=digest)
    *others, own, other = score_history(told.workspace, "tiny", "dev")
    assert (own.run, own.macro_f1, own.labels_passed) == (
        before.run,
        before.macro_f1,
        before.labels_passed,
    )
    assert (other.run, other.macro_f1, other.labels) == ("another", 0.1234, 21)
    assert measured in other.measured
    assert other.measured.endswith("reference 1, 20 cases")
    assert (own.comparable, other.comparable) == (False, True)
    assert "rules, uncertain answers wrong" in own.measured
    mains = main_scores([*others, own, other])
    assert list(mains) == ["tiny@v1", "tiny@draft:d1", "tiny@v2"]
    assert mains["tiny@v2"] is other


def test_a_newer_run_of_the_same_kind_takes_the_place_of_the_older(told):
    """The same engine, policy and reference: only the newest is shown."""
    record_again(told.workspace, run="another", swaps={})
    rows = score_history(told.workspace, "tiny", "dev")
    assert [row.ref for row in rows] == ["tiny@v1", "tiny@draft:d1", "tiny@v2"]
    assert rows[-1].run == "another"


def test_an_interval_is_measured_under_the_policy_that_was_recorded(told):
    """Whatever the protocol says now."""
    scores = score_history(told.workspace, "tiny", "dev")
    assert {one.policy for one in scores if one.run} == {UncertainAnswers.WRONG}
    path = told.workspace.protocol
    text = path.read_text("utf-8")
    path.write_text(text.replace("answers: wrong", "answers: present"), "utf-8")
    with open_store(told.workspace) as store:
        filled = with_intervals(told.workspace, store, scores, resamples=50)
    assert filled[0].macro_f1 == pytest.approx(scores[0].macro_f1, abs=5e-5)
    assert filled[0].low is not None


def test_a_version_whose_files_are_gone_stays_in_the_history(told):
    """The ledger remembers; nothing is read from the folder."""
    folder = told.workspace.prompts / "tiny" / "v1"
    (folder / "guides.yaml").write_text("edema: [")
    rows = score_history(told.workspace, "tiny", "dev")
    assert rows[0].ref == "tiny@v1" and rows[0].macro_f1 is not None


def test_a_version_that_nobody_recorded_is_read_from_its_files(trials):
    """It has no score, and no actor of the ledger."""
    trials.version(1, "effusion")
    (row,) = score_history(trials.workspace, "tiny", "dev")
    assert (row.ref, row.who, row.run) == ("tiny@v1", "Dr B. Example", "")
    assert read_scores(trials.workspace, "tiny")[0].ref == "tiny@v1"
    with pytest.raises(DataError, match="nothing"):
        score_history(trials.workspace, "nothing", "dev")


def test_intervals_come_from_runs_that_are_still_there(told):
    """The recorded score lies inside; without the store there is no interval."""
    scores = score_history(told.workspace, "tiny", "dev")
    with open_store(told.workspace) as store:
        filled = with_intervals(told.workspace, store, scores, resamples=100)
    evaluation = evaluate_run(told.workspace, scores[0].run, resamples=100)
    assert (filled[0].low, filled[0].high) == evaluation.macro.score[1:3]
    assert filled[1].low is None
    told.workspace.store.unlink()
    with open_store(told.workspace) as store:
        assert with_intervals(told.workspace, store, scores) == scores


def test_without_readable_answers_recorded_scores_are_shown_all_the_same(
    told, monkeypatch
):
    """A store that cannot be read is no reason to hide the history."""

    def unreadable(*_):
        raise StoreError("the store is torn")

    scores = score_history(told.workspace, "tiny", "dev")
    monkeypatch.setattr("loop.evaluate.recording._measure", unreadable)
    with open_store(told.workspace) as store:
        assert with_intervals(told.workspace, store, scores) == scores


def test_score_and_interval_are_those_of_the_evaluation(told):
    """Two pages show one number: the same resamples and level, and all its digits."""
    protocol = told.workspace.labels / "protocol.yaml"
    text = protocol.read_text("utf-8")
    protocol.write_text(re.sub("confidence: .*", "confidence: 0.9", text), "utf-8")
    scores = score_history(told.workspace, "tiny", "dev")
    with open_store(told.workspace) as store:
        filled = with_intervals(told.workspace, store, scores)
    for row in (filled[0], filled[2]):
        macro = evaluate_run(told.workspace, row.run).macro.score
        assert (row.macro_f1, row.low, row.high) == macro[:3]


def test_lineage_leads_from_parent_to_child(told):
    """Drafts branch off; aliases stand at their version."""
    move_alias(told.workspace, "tiny@v2", "production", actor=EDITOR, reason="good")
    graph = lineage_graph(told.workspace, "tiny")
    assert graph.edges == (
        Edge("tiny@v1", "tiny@draft:d1"),
        Edge("tiny@v1", "tiny@v2"),
    )
    assert [node.tag for node in graph.nodes] == ["v1", "draft", "v2"]
    assert graph.nodes[2].aliases == ("production",)


def test_a_return_to_an_older_wording_comes_from_the_version_before(trials):
    """Two versions with one digest: a parent is never a later version."""
    first = trials.version(1, "effusion")
    second = trials.version(2, "fluid", parent=first)
    third = trials.version(3, "effusion", parent=second)
    fourth = trials.version(4, "base", parent=third)
    for version in (first, second, third, fourth):
        trials.commit(version)
    edges = lineage_graph(trials.workspace, "tiny").edges
    assert edges == (
        Edge("tiny@v1", "tiny@v2"),
        Edge("tiny@v2", "tiny@v3"),
        Edge("tiny@v3", "tiny@v4"),
    )


def test_an_intact_ledger_is_said_to_be(told):
    """Head and counts belong to the page that shows it."""
    state = ledger_state(told.workspace)
    assert state.intact and state.problem == ""
    assert state.head == read_ledger(told.workspace.ledger)[-1].hash
    assert state.counts["draft_rejected"] == 1
    assert sum(state.counts.values()) == len(state.entries)


@pytest.mark.parametrize("damage", ["edited", "removed", "torn", "not json"])
def test_a_broken_ledger_is_shown_up_to_the_break(told, damage):
    """The view must not fail where it is needed most."""
    path = told.workspace.ledger
    lines = path.read_bytes().splitlines(keepends=True)
    if damage == "edited":
        entry = json.loads(lines[2])
        lines[2] = json.dumps({**entry, "reason": "other"}).encode() + b"\n"
    elif damage == "removed":
        del lines[2]
    elif damage == "torn":
        lines[-1] = lines[-1][:30]
    else:
        lines[2] = b"\xff nonsense\n"
    path.write_bytes(b"".join(lines))
    state = ledger_state(told.workspace)
    kept = len(lines) - 1 if damage == "torn" else 2
    assert not state.intact and "line" in state.problem
    assert len(state.entries) == kept
    assert state.head == state.entries[-1].hash


@pytest.mark.parametrize(
    "roles",
    [None, "reviewer", ["reviewer"], {"reviewer": 3}, {"a": 2, "b": 1}]
    + [{"reviewer": number} for number in (0, -1, True, 1.5, "2", None)],
)
def test_roles_that_cannot_be_meant_are_not_recorded(roles):
    """The counts go into a signed release, so none is taken on trust."""
    payload = {"verdicts": ["x", "y"], "verdict_roles": roles}
    assert read_verdict_roles(payload) == {}
    meant = {"verdict_roles": {"reviewer": 1}}
    assert read_verdict_roles(payload | meant) == {"reviewer": 1}
    assert read_verdict_roles(meant) == {}
    assert read_verdict_roles(meant | {"verdicts": 2}) == {}


def test_no_ledger_yet_is_intact_and_empty(workspace):
    """A fresh folder is no error."""
    workspace.ledger.unlink()
    state = ledger_state(workspace)
    assert (state.intact, state.entries, state.head) == (True, (), GENESIS)


def test_a_history_of_sixty_versions_is_cheap(workspace):
    """Nothing but the ledger is read: the page asks for it on every visit."""
    for number in range(1, 61):
        payload = {"digest": f"{number}", "parent": f"{number - 1}", "verdicts": []}
        event = Event(
            action="draft_committed",
            subject=f"made@v{number}",
            reason="a reason",
            payload=payload,
        )
        append_event(workspace.ledger, event, EDITOR)
    rows = score_history(workspace, "made", "dev")
    assert [row.number for row in rows] == list(range(1, 61))
    assert len(lineage_graph(workspace, "made").edges) == 59


def test_a_damaged_version_hides_none_after_it(trials):
    """Versions that the ledger does not have are read from their folders."""
    trials.version(1, "effusion")
    trials.version(2, "fluid")
    broken = trials.workspace.prompts / "tiny" / "v1" / "prompt.yaml"
    broken.write_text("no: version")
    rows = score_history(trials.workspace, "tiny", "dev")
    assert [row.ref for row in rows] == ["tiny@v2"]


def test_a_ledger_that_may_not_be_read_is_a_problem_and_no_crash(told, monkeypatch):
    """Nothing of it is shown as intact."""

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    state = ledger_state(told.workspace)
    assert (state.intact, state.entries, state.head) == (False, (), GENESIS)


def test_each_verdict_has_a_shape_of_its_own():
    """Colour alone tells nothing to whoever does not see it."""
    shapes = {one: verdict_mark(0, 0, one)[1:].split()[0] for one in GateVerdict}
    assert shapes == {
        GateVerdict.PASS: "circle",
        GateVerdict.FAIL: "rect",
        GateVerdict.INSUFFICIENT: "path",
        GateVerdict.NOT_COMPARABLE: "polygon",
    }

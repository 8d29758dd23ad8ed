"""Scores, lineage and the ledger's state, from the ledger alone."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from loop.core.errors import DataError, StoreError
from loop.core.ledger import GENESIS, Event, append_event, read_ledger
from loop.core.records import Mark, UncertainAnswers
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.gates import GateVerdict
from loop.evaluate.history_figures import lineage_svg, verdict_mark, version_chart
from loop.evaluate.recording import with_intervals
from loop.evaluate.score_history import (
    Edge,
    Lineage,
    Node,
    VersionScore,
    history_table,
    ledger_state,
    lineage_graph,
    main_scores,
    read_scores,
    read_verdict_roles,
    read_versions,
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


SIGNATURE = "acc+f1|made@v1:aaaaaa|rules|dev:ref1|unc:wrong|nc:absent|zd:skip|L:3|n:20"


def record(workspace, action, subject, **payload):
    """Write one entry of the ledger."""
    event = Event(action=action, subject=subject, reason="a reason", payload=payload)
    return append_event(workspace.ledger, event, EDITOR)


def commit(workspace, *numbers):
    """Record versions of a made-up prompt, each revised from the one before."""
    for number in numbers:
        payload = {"digest": f"d{number}", "parent": f"d{number - 1}"}
        record(workspace, "draft_committed", f"made@v{number}", **payload)


def scored(workspace, number, *, gate=None, **others):
    """Record a score of a version, and its gate where its labels are given."""
    payload = {
        "prompt_digest": f"d{number}",
        "cohort": "dev",
        "run": f"r{number}",
        "macro_f1": f"0.{number}000",
        "reference": 1,
        "reference_digest": "ref",
        "protocol_digest": "p",
        "counts_digest": f"c{number}",
        "not_run": 0,
        "signature": SIGNATURE,
        **others,
    }
    record(workspace, "evaluated", f"made@v{number}", **payload)
    if gate is not None:
        record(
            workspace,
            "gate_decided",
            f"made@v{number}",
            **{**payload, "labels": dict(enumerate(gate)), "macro_f1": None},
        )


def test_a_row_holds_everything_that_was_recorded_of_a_version(workspace):
    """From the commit, the score and the gate; a draw or a version is no other way."""
    record(
        workspace,
        "draft_committed",
        "made@v1",
        digest="d1",
        parent=None,
        verdicts=["x", "y", "z"],
        verdict_roles={"reviewer": 2, "editor": 1},
    )
    verdicts = ["PASS", "FAIL", "PASS", "INSUFFICIENT", "NOT COMPARABLE", "PASS"]
    scored(
        workspace,
        1,
        gate=verdicts,
        runs=["r1", "r2"],
        engine_digest="e" * 64,
        signature=SIGNATURE.replace("|L:", "|without:edema,fracture|L:") + "|draws:2",
    )
    (row,) = score_history(workspace, "made", "dev")
    entry = [one for one in read_ledger(workspace.ledger) if one.subject == "made@v1"]
    assert row == VersionScore(
        number=1,
        ref="made@v1",
        digest="d1",
        parent=None,
        when=entry[0].time,
        who=EDITOR.name,
        why="a reason",
        verdicts=3,
        status=WordingStatus.COMMITTED,
        verdict_roles={"reviewer": 2, "editor": 1},
        cohort="dev",
        macro_f1=0.1,
        labels_passed=3,
        labels_failed=1,
        labels_insufficient=1,
        reference=1,
        run="r1",
        runs=("r1", "r2"),
        signature=row.signature,
        engine_digest="e" * 64,
        reference_digest="ref",
    )
    assert (row.labels, row.engine) == (5, "rules")
    assert row.without == {"edema", "fracture"}
    assert row.measured == (
        "rules eeeeee, uncertain answers wrong, reference 1, 20 cases"
    )
    assert list(csv.DictReader(io.StringIO(history_table([row])))) == [
        {
            "ref": "made@v1",
            "status": "committed",
            "digest": "d1",
            "parent": "",
            "when": row.when,
            "who": EDITOR.name,
            "why": "a reason",
            "verdicts": "3",
            "objections": "",
            "cohort": "dev",
            "reference": "1",
            "run": "r1",
            "engine": "rules",
            "uncertain_answers": "wrong",
            "macro_f1": "0.1",
            "labels_passed": "3",
            "labels_failed": "1",
            "labels_insufficient": "1",
            "comparable": "yes",
            "signature": row.signature,
        }
    ]


@pytest.mark.parametrize(
    ("others", "comparable"),
    [
        ({}, True),
        ({"signature": SIGNATURE.replace("made@v1:aaaaaa", "made@v2:bbbbbb")}, True),
        ({"signature": SIGNATURE.replace("L:3", "L:4") + "|draws:3"}, True),
        ({"signature": SIGNATURE.replace("n:20", "n:21")}, False),
        ({"signature": SIGNATURE.replace("|rules|", "|openai:m|")}, False),
        ({"signature": SIGNATURE.replace("unc:wrong", "unc:excl")}, False),
        ({"signature": SIGNATURE.replace("|L:", "|without:edema|L:")}, False),
        ({"reference_digest": "other"}, False),
        ({"engine_digest": "other"}, False),
        ({"engine_digest": ""}, True),
    ],
)
def test_scores_compare_if_all_but_the_version_is_the_same(
    workspace, others, comparable
):
    """How many draws and labels with an F1 there were follows from the version."""
    commit(workspace, 1, 2, 3)
    scored(workspace, 1, **others)
    scored(workspace, 2)
    rows = score_history(workspace, "made", "dev")
    assert [row.comparable for row in rows] == [comparable, True, True]
    assert [row.macro_f1 for row in rows] == [0.1, 0.2, None]


def test_other_prompts_cohorts_and_parts_of_a_cohort_are_no_score(workspace):
    """None of them decides what compares, either."""
    commit(workspace, 1)
    scored(workspace, 1)
    other = SIGNATURE.replace("|rules|", "|openai:m|")
    scored(workspace, 1, signature=other, cohort="elsewhere")
    scored(workspace, 1, signature=other, not_run=3)
    foreign = {"prompt_digest": "f1", "cohort": "dev", "signature": other, "run": "f"}
    record(workspace, "evaluated", "foreign@v1", **foreign)
    (row,) = score_history(workspace, "made", "dev")
    assert (row.run, row.comparable, row.labels_passed) == ("r1", True, None)
    again = read_scores(workspace, "made")
    assert [(one.cohort, one.engine) for one in again] == [
        ("dev", "rules"),
        ("elsewhere", "openai:m"),
    ]


def test_a_gate_belongs_to_the_score_of_the_same_run_reference_and_protocol(workspace):
    """The newest of them; another protocol's gate says nothing of this score."""
    commit(workspace, 1)
    scored(workspace, 1, gate=["FAIL", "FAIL"])
    (before,) = score_history(workspace, "made", "dev")
    assert (before.labels_failed, before.labels_passed) == (2, 0)
    scored(workspace, 1, protocol_digest="later")
    (row,) = score_history(workspace, "made", "dev")
    assert (row.labels_failed, row.labels_passed, row.labels) == (None, None, 0)
    scored(workspace, 1, gate=["PASS"], protocol_digest="later")
    scored(workspace, 1, gate=["PASS", "PASS"], protocol_digest="later")
    (row,) = score_history(workspace, "made", "dev")
    assert (row.labels_passed, row.labels_failed) == (2, 0)


def test_a_score_that_is_not_estimable_is_none(workspace):
    """And its run is shown all the same."""
    commit(workspace, 1)
    scored(workspace, 1, macro_f1="not estimable")
    (row,) = score_history(workspace, "made", "dev")
    assert (row.macro_f1, row.run, row.comparable) == (None, "r1", True)


def version_score(number, **others):
    """Return the row of a committed version."""
    return VersionScore(
        number=number,
        ref=f"made@v{number}",
        digest="",
        parent=None,
        when="2026-01-05T09:00:00Z",
        who="Dr A. Example",
        why="first",
        verdicts=0,
        status=WordingStatus.COMMITTED,
        **others,
    )


def test_the_main_score_is_comparable_or_else_the_last():
    """One of each version, in the order they first appear."""
    rows = [
        version_score(number, run=run, comparable=comparable)
        for number, run, comparable in (
            (1, "a", True),
            (1, "b", False),
            (2, "c", False),
            (2, "d", True),
            (3, "e", False),
            (3, "f", False),
            (4, "g", True),
            (4, "h", True),
        )
    ]
    assert {ref: one.run for ref, one in main_scores(rows).items()} == {
        "made@v1": "a",
        "made@v2": "d",
        "made@v3": "f",
        "made@v4": "h",
    }
    assert list(main_scores(rows)) == [f"made@v{number}" for number in range(1, 5)]


def test_drafts_stand_behind_their_parent_in_the_order_they_were_rejected(workspace):
    """One whose parent is unknown comes first; one that was kept is a draft."""
    commit(workspace, 2, 1)
    for ref, parent, objections in (
        ("made@draft:b", "d2", []),
        ("made@draft:a", "d1", ["broke anchors", "too long"]),
        ("made@draft:c", "gone", ["no"]),
        ("made@draft:d", "d1", ["no"]),
    ):
        draft = {"digest": ref, "parent": parent, "objections": objections}
        record(workspace, "draft_rejected", ref, **draft)
    record(workspace, "draft_rejected", "other@draft:x", digest="x", objections=["no"])
    record(workspace, "draft_committed", "made@draft:y", digest="y")
    rows = read_versions(workspace, "made")
    assert [row.ref for row in rows] == [
        "made@draft:c",
        "made@v1",
        "made@draft:a",
        "made@draft:d",
        "made@v2",
        "made@draft:b",
    ]
    assert rows[2].objections == ("broke anchors", "too long")
    assert [row.status.value for row in rows] == [
        "rejected", "committed", "rejected", "rejected", "committed", "draft",
    ]  # fmt: skip
    # The second version was recorded first: an edge comes from no later version.
    assert lineage_graph(workspace, "made").edges == (
        Edge("made@v1", "made@draft:a"),
        Edge("made@v1", "made@draft:d"),
        Edge("made@v1", "made@v2"),
        Edge("made@v2", "made@draft:b"),
    )


def test_a_chart_tells_of_each_version_what_it_shows(workspace):
    """Score with its interval, way of measuring, labels, standing, comparability."""
    base = version_score(
        1,
        macro_f1=0.5,
        low=0.4,
        high=0.6,
        labels_passed=3,
        labels_failed=2,
        labels_insufficient=1,
        reference=1,
        run="r",
        signature=SIGNATURE,
    )
    draft = replace(
        base,
        number=0,
        ref="made@draft:a",
        status=WordingStatus.REJECTED,
        low=None,
        high=None,
        labels_passed=None,
        run="",
        comparable=False,
    )
    empty = replace(draft, ref="made@draft:b", macro_f1=None)
    unscored = replace(empty, number=2, ref="made@v2", comparable=True)
    unscored = replace(unscored, status=WordingStatus.COMMITTED)
    about = re.search(
        "<desc>(.*?)</desc>", version_chart([base, draft, empty, unscored])
    )
    assert about[1] == (
        "made@v1; macro-F1 0.500 [0.400, 0.600]; rules, uncertain answers wrong, "
        "reference 1, 20 cases; 3 labels pass, 2 fail, 1 lack evidence. "
        "made@draft:a; macro-F1 0.500; rejected; not comparable with the newest score: "
        "other cases, reference, engine or policy. made@v2; macro-F1 \N{EN DASH}"
    )
    assert "<desc>There is no version yet.</desc>" in version_chart([])


def test_a_lineage_tells_who_made_what_of_which_version():
    """In one sentence for whoever does not see it, and in full when pointed at."""
    node = Node(
        ref="made@v1",
        number=1,
        status=WordingStatus.COMMITTED,
        when="2026-01-05T09:00:00Z",
        who="Dr A. Example",
        why="first",
        aliases=("production", "best"),
    )
    draft = Node(
        ref="made@draft:a",
        number=0,
        status=WordingStatus.REJECTED,
        when="",
        who="Dr B. Example",
        why="shorter",
    )
    edge = Edge("made@v1", "made@draft:a")
    figure = lineage_svg(Lineage(prompt="made", nodes=(node, draft), edges=(edge,)))
    assert re.findall("<(?:title|desc)>(.*?)<", figure) == [
        "Lineage of made",
        "made@v1 (committed), alias production, best. made@draft:a (rejected) from "
        "made@v1",
        "made@v1; committed; 2026-01-05T09:00:00Z; Dr A. Example; first; alias "
        "production, best",
        "production",
        "best",
        "made@draft:a; rejected; Dr B. Example; shorter",
    ]
    cross, circle = "l8 8m0-8l-8 8", 'r="5" fill='
    assert cross in figure and circle not in figure
    still = replace(draft, status=WordingStatus.DRAFT)
    figure = lineage_svg(Lineage(prompt="made", nodes=(node, still), edges=(edge,)))
    assert circle in figure and cross not in figure
    nothing = lineage_svg(Lineage(prompt="made", nodes=(), edges=()))
    assert "<desc>There is no version yet.</desc>" in nothing

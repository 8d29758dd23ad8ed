"""The verb ``history``: scores, labels passed and drafts tried beside each version."""

import csv
import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import history
from loop.core.ledger import Event, LedgerEntry, append_event
from loop.core.records import Mark
from loop.evaluate.score_history import read_scores
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference
from loop.prompts.catalog import read_version
from loop.prompts.history import read_history
from tests.evaluate.tried_scenes import EDITOR, Trials


@pytest.fixture
def trials(workspace, tmp_path):
    """Make two versions with a rejected draft between them."""
    made = Trials(workspace, tmp_path)
    made.cohort()
    first = made.version(1, "effusion")
    made.commit(first)
    made.evaluate(made.run("tiny@v1"))
    made.reject(made.version(0, "base", parent=first, draft="d1"), "broke anchors")
    made.reject(made.version(0, "left", parent=first, draft="d2"))
    second = made.version(2, "effusion", "fluid", parent=first)
    made.commit(second)
    made.evaluate(made.run("tiny@v2"))
    return made


def call(trials, *arguments):
    """Call the verb in the workspace."""
    app = typer.Typer()
    history.register(app)
    words = ["tiny", *arguments, "-w", str(trials.workspace.root)]
    return CliRunner().invoke(app, words).stdout


def test_scores_stand_beside_labels_passed_and_drafts(trials):
    """One look tells what a version achieved and what was tried after it."""
    told = call(trials)
    how = "rules, uncertain answers wrong, reference 1, 20 cases"
    assert f"macro-F1: dev 0.6667 ({how}; 0 of 21 labels pass)" in told
    assert "drafts tried: 2 (1 draft, 1 rejected)" in told
    assert told.index("drafts tried") < told.index("v2")
    assert "not comparable" not in told


def test_a_score_on_an_older_reference_is_marked(trials):
    """Nobody shall read progress out of a changed reference."""
    marks = {("n0", "pleural_effusion"): Mark.PRESENT}
    cohort = read_cohort(trials.workspace, "dev")
    correct_reference(trials.workspace, cohort, marks, actor=EDITOR, reason="misread")
    trials.evaluate(trials.run("tiny@v2"))
    lines = [line for line in call(trials).splitlines() if "macro-F1" in line]
    assert len(lines) == 3
    assert "reference 1, 20 cases" in lines[1] and "reference 2" in lines[2]
    assert ["*" in line for line in lines] == [True, True, False]
    told = call(trials)
    assert told.count("not comparable with the newest score") == 1
    assert told.splitlines()[-1].startswith("* not comparable")


def test_a_long_reason_is_printed_once(trials):
    """An override often has the reason of the version that it commits."""
    why = read_version(trials.workspace, "tiny@v2").why
    for reason in (why, "a reason of its own"):
        event = Event(action="override", subject="tiny@v2", reason=reason, payload={})
        append_event(trials.workspace.ledger, event, EDITOR)
    told = call(trials)
    assert "override by Dr A. Example: for the same reason\n" in told
    assert "override by Dr A. Example: a reason of its own\n" in told


def test_two_scores_that_read_the_same_are_one_line(trials):
    """What tells them apart is in the JSON."""
    scores = [one for one in read_scores(trials.workspace, "tiny") if one.number == 1]
    (row,) = [one for one in read_history(trials.workspace, "tiny") if one.number == 1]
    lines = history._describe(row, [*scores, *scores], every=False)
    assert sum("macro-F1" in line for line in lines) == 1


def test_json_has_the_same_numbers(trials):
    """For programs: scores by cohort, and every draft with what became of it."""
    first, second = json.loads(call(trials, "--json"))["versions"]
    (score,) = second["scores"]
    assert (score["cohort"], score["labels_passed"]) == ("dev", 0)
    assert score["comparable"] and score["run"]
    drafts = [(one["draft"], one["status"]) for one in first["drafts"]]
    assert drafts == [("tiny@draft:d1", "rejected"), ("tiny@draft:d2", "draft")]


def test_versions_and_drafts_are_written_for_a_spreadsheet(trials, tmp_path):
    """A row for each, beside what is printed; a wrong place is refused first."""
    path = tmp_path / "history.csv"
    assert json.loads(call(trials, "--csv", str(path), "--json"))["prompt"] == "tiny"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["ref"] for row in rows] == [
        "tiny@v1",
        "tiny@draft:d1",
        "tiny@draft:d2",
        "tiny@v2",
    ]
    own = trials.workspace.prompts / "history.csv"
    assert call(trials, "--csv", str(own)) == ""
    assert not own.exists()


def test_drafts_are_counted_without_any_score(workspace, tmp_path):
    """Nothing was evaluated yet; what was tried is told all the same."""
    made = Trials(workspace, tmp_path)
    first = made.version(1, "effusion")
    made.commit(first)
    payload = {"digest": "x", "parent": first.digest, "objections": ["no"]}
    event = Event(
        action="draft_rejected", subject="tiny@draft:d9", reason="w", payload=payload
    )
    append_event(workspace.ledger, event, EDITOR)
    assert "drafts tried: 1 (1 rejected)" in call(made)


def test_changes_are_counted_in_words():
    """One of a kind, several of it, and a kind that has no word of its own."""
    changes = {"+term": 1, "-exclusion": 2, "~exemplar": 1, "+section": 2}
    assert history._changes(changes) == "+1 term -2 exclusions ~1 exemplar +2 section"


def entry(seq, action, reason, **payload):
    """Return a ledger entry of Ann."""
    return LedgerEntry(
        **{
            **dict.fromkeys(LedgerEntry.__dataclass_fields__, ""),
            "seq": seq,
            "time": "2026-03-01T12:00:00Z",
            "actor": "Ann",
            "action": action,
            "reason": reason,
            "payload": payload,
        }
    )


def judged(**changes):
    """Return the entry of an evaluation of a judge."""
    told = {
        "cohort": "rp",
        "best": "errors",
        "tau_b": "0.512",
        "engine": "rules",
        "ratings": "rp:ratings1",
        "verdict": "PASS",
    }
    return entry(4, "judge_evaluated", "held", **{**told, **changes})


def test_a_version_is_described_line_by_line(trials):
    """Its facts, what changed, scores, drafts, what is wrong, and what happened."""
    rows = read_history(trials.workspace, "tiny")
    scores = read_scores(trials.workspace, "tiny")
    first = rows[0]
    version = first.version
    row = first._replace(
        aliases=("best", "production"),
        changes={"+term": 2},
        problem="a file was changed",
        events=(
            entry(2, "draft_committed", version.why),
            judged(),
            judged(tau_b="", verdict=""),
            judged(tau_b="", verdict=""),
            entry(5, "alias_moved", "the best"),
        ),
    )
    how = "rules, uncertain answers wrong, reference 1, 20 cases"
    when = version.time[:16].replace("T", " ")
    lines = [
        f"v1 (best) (production)  {version.digest[:12]}  {when}  {version.author}",
        f"    {version.why}",
        "    +2 terms",
        f"    macro-F1: dev 0.6667 ({how}; 0 of 21 labels pass)",
        "    tau-b with readers: rp errors 0.512 (rules; rp:ratings1; gate PASS)",
        "    tau-b with readers: rp no ratings (rules; rp:ratings1)",
        "    drafts tried: 2 (1 draft, 1 rejected)",
        "    ! a file was changed",
    ]
    events = [
        "    #2 2026-03-01T12:00:00Z draft_committed by Ann: for the same reason",
        *["    #4 2026-03-01T12:00:00Z judge_evaluated by Ann: held"] * 3,
        "    #5 2026-03-01T12:00:00Z alias_moved by Ann: the best",
    ]
    assert history._describe(row, scores, every=True) == [*lines, *events]
    marking = [f"    {history._event(one, version.why)}" for one in row.marking]
    assert history._describe(row, scores, every=False) == [*lines, *marking]
    bare = row._replace(version=None, changes={}, problem="", events=(), aliases=())
    assert history._describe(bare, [], every=True) == ["v1"]


def test_a_score_that_is_not_there_is_said_to_be_none(trials):
    """Neither 0 nor a dash; a star stands behind what is not comparable."""
    (one,) = [x for x in read_scores(trials.workspace, "tiny") if x.number == 1]
    none = replace(one, macro_f1=None, labels_passed=None, comparable=False)
    assert history._score(none) == f"dev not estimable* ({one.measured})"


def test_a_version_is_whole_as_json(trials):
    """With every score, draft and event; of a damaged one what is known."""
    row = read_history(trials.workspace, "tiny")[0]
    scores = read_scores(trials.workspace, "tiny")
    (one,) = [x for x in scores if x.number == 1]
    version = row.version
    kept = row._replace(events=(entry(2, "draft_committed", "why", digest="d"),))
    data = history._data(kept, scores)
    assert data == {
        "number": 1,
        "problem": "",
        "digest": version.digest,
        "parent": None,
        "time": version.time,
        "author": version.author,
        "why": version.why,
        "verdicts": list(version.verdicts),
        "changes": dict(row.changes),
        "aliases": [],
        "scores": [
            {
                "cohort": "dev",
                "reference": 1,
                "engine": "rules",
                "uncertain_answers": "wrong",
                "signature": one.signature,
                "run": one.run,
                "macro_f1": one.macro_f1,
                "labels_passed": 0,
                "labels_failed": one.labels_failed,
                "labels_insufficient": one.labels_insufficient,
                "comparable": True,
            }
        ],
        "drafts": [
            {"draft": "tiny@draft:d1", "status": "rejected", "why": "why"},
            {"draft": "tiny@draft:d2", "status": "draft", "why": "why"},
        ],
        "events": [
            {
                "seq": 2,
                "time": "2026-03-01T12:00:00Z",
                "action": "draft_committed",
                "actor": "Ann",
                "reason": "why",
                "payload": {"digest": "d"},
            }
        ],
    }
    damaged = history._data(kept._replace(version=None, problem="torn"), [])
    nothing = ("digest", "parent", "time", "author", "why")
    assert damaged == data | dict.fromkeys(nothing) | {
        "problem": "torn",
        "verdicts": [],
        "scores": [],
        "drafts": [],
    }

"""A judge's draft: begun, edited, checked against experts' counts, and committed."""

import json
import math

import numpy as np
import pytest

from loop.core.ledger import read_ledger
from loop.core.records import Completion, ErrorWeight, Status
from loop.engines import base
from loop.evaluate.distances import DistanceTable, count_distances
from loop.judge.counts import JudgeCounts
from loop.prompts.catalog import latest_version
from loop.review.revise.changes import CaseChange, Changes
from loop.review.revise.check import TargetOutcome
from loop.review.revise.check_judge import (
    _changes,
    _counts,
    _CountTable,
    _overrule,
)
from loop.review.submit import Anchor
from loop.review.verdict import ErrorVerdict, Judgement, Verdict
from tests.judge.scenes import MARKED, TEXTS, call, errors, rate, table

SIDE = "Mind the side."
RULE = "Compare findings"


class Sided:
    """Misses wrong sides unless the prompt says to mind them."""

    retry_unreadable = 0

    def __init__(self, breaks=()):
        self.breaks = breaks

    def identity(self):
        """Return the name."""
        return {"engine": "sided", "breaks": list(self.breaks)}

    def redraw(self, draw):
        """Return itself: it has no chance in it."""
        return self

    def complete(self, prompts):
        """Yield an answer for each pair, as its texts and its prompt want."""
        known = {texts: MARKED.get(n, ()) for n, texts in enumerate(TEXTS)}
        for index, prompt in enumerate(prompts):
            told = any(SIDE in one.content for one in prompt.frame.messages)
            texts = tuple(
                prompt.item.variables[name] for name in ("reference", "candidate")
            )
            found = [
                (name, True)
                for name in known[texts]
                if (told or name != "location") and not (told and name in self.breaks)
            ]
            yield index, Completion(errors(*found))


@pytest.fixture
def judged(workspace, tmp_path, monkeypatch):
    """Return a workspace with a judge whose draft says more of sides."""
    rate(workspace, tmp_path)
    made = call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    monkeypatch.setitem(
        base._FACTORIES,
        "sided",
        lambda model, _: Sided(tuple(filter(None, [model]))),
    )
    begun = call(
        workspace,
        *("draft", "begin", "listed", "--cohort", "rp", "--why", "sides", "--json"),
    )
    assert begun.exit_code == 0, begun.output
    draft = json.loads(begun.stdout)["draft"]
    instructions = tmp_path / "instructions.txt"
    text = call(workspace, "draft", "show", draft, "--instructions").stdout
    assert RULE in text
    instructions.write_text(text.replace(f"- {RULE}", f"- {SIDE}\n- {RULE}"))
    done = call(workspace, "draft", "edit", draft, "--instructions", instructions)
    assert done.exit_code == 0, done.output
    return workspace, draft


def check(workspace, draft, engine, *more):
    """Check a draft, and return how it ended and what it says."""
    done = call(workspace, "draft", "check", draft, "-e", engine, *more, "--json")
    return done, json.loads(done.stdout) if done.stdout.startswith("{") else {}


def test_a_draft_that_is_nearer_is_committed(judged):
    """The side is found now, and nothing else changed."""
    workspace, draft = judged
    done, data = check(workspace, draft, "sided")
    assert done.exit_code == 0, done.output
    assert data["objections"] == []
    committed = call(workspace, "draft", "commit", draft, "--why", "sides")
    assert committed.exit_code == 0, committed.output
    version = latest_version(workspace, "listed")
    assert (version.number, SIDE in version.user) == (2, True)
    assert version.reads and version.contract == "error_list"
    entry = read_ledger(workspace.ledger)[-1]
    assert entry.subject == "listed@v2"
    assert entry.payload["check"]["gained"] == 1
    assert call(workspace, "evaluate", "latest:listed").exit_code == 0
    assert call(workspace, "audit").exit_code == 0


def test_a_draft_that_loses_elsewhere_stays_a_draft(judged):
    """Omissions that the parent counted right are missed: lost, by category."""
    workspace, draft = judged
    done, data = check(workspace, draft, "sided:omission")
    assert done.exit_code != 0
    assert any("significant.omission" in one for one in data["objections"])
    refused = call(workspace, "draft", "commit", draft, "--why", "x")
    assert "stays a draft" in str(refused.exception)


def test_a_check_goes_stale_with_other_ratings(judged, tmp_path):
    """What experts say is what it was held against."""
    workspace, draft = judged
    check(workspace, draft, "sided")
    more = tmp_path / "more.csv"
    more.write_text("case_id,rater,category,significance,finding\np0,r3,,,\n")
    added = call(workspace, "cohort", "ratings", "rp", "--errors", more)
    assert added.exit_code == 0, added.output
    refused = call(workspace, "draft", "commit", draft, "--why", "x")
    assert "does not hold any more" in str(refused.exception)


def test_rules_reads_no_instruction(judged):
    """Its counts do not change, so nothing speaks for the draft."""
    workspace, draft = judged
    done, data = check(workspace, draft, "rules")
    assert done.exit_code != 0
    assert data["objections"] == ["no answer changed to a right one"]


REVISED = """\
reviewer: Dr Ann
verdicts:
- case: q0
  label: Wrong severity
  judgement: guideline_ambiguous
  errors:
  - {words: effusion, said: significant, right: insignificant}
  clarifications:
  - {phrase: large for small, value: insignificant}
- case: q2
  label: omission
  judgement: model_wrong
  errors:
  - {words: pneumothorax, said: significant, right: significant}
  anchor: true
"""


@pytest.fixture
def verdicts(workspace, tmp_path):
    """Return a workspace with verdicts on a run of `rules`."""
    pairs = table(
        tmp_path / "pairs.csv",
        ("id", "reference", "candidate"),
        [
            ("q0", "Small left pleural effusion.", "Large left pleural effusion."),
            ("q1", "Small left pleural effusion.", "Small right pleural effusion."),
            ("q2", "Large right pneumothorax.", "No pneumothorax."),
        ],
    )
    marked = table(
        tmp_path / "errors.csv",
        ("case_id", "rater", "category", "significance", "finding"),
        [
            ("q0", "r1", "severity", "insignificant", ""),
            ("q1", "r1", "location", "significant", ""),
            ("q2", "r1", "omission", "significant", ""),
        ],
    )
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    steps = (
        ("cohort", "import", pairs, "--name", "rp", *options, "--errors", marked),
        ("prompt", "new", "mine", "--from", "green@v1"),
        ("run", "mine", "--cohort", "rp"),
    )
    for step in steps:
        done = call(workspace, *step)
        assert done.exit_code == 0, done.output
    return workspace, tmp_path / "verdicts.yaml"


def add(workspace, path, text=REVISED):
    """Hand in the verdicts of a file on the newest run."""
    path.write_text(text)
    return call(workspace, "verdict", "add", path, "--run", "latest:mine")


def test_verdicts_on_a_judge_make_its_next_version(verdicts):
    """Their counts are what is right of the targeted pair; what is pinned held."""
    workspace, path = verdicts
    assert add(workspace, path).exit_code == 0
    listed = call(workspace, "verdict", "list", "--label", "severity", "--json")
    (row,) = json.loads(listed.stdout)["verdicts"]
    assert row["correct_counts"] == [0, 1]
    done = call(workspace, "revise", "mine", "--cohort", "rp", "--kept", "--json")
    assert done.exit_code == 0, done.output
    targets = json.loads(done.stdout)["check"]["targets"]
    assert [(one["case_id"], one["progress"]) for one in targets] == [
        ("q0", "fixed"),
        ("q2", "already_right"),
    ]
    assert targets[0]["expected"] == "0 significant, 1 insignificant"
    assert targets[0]["before"] == "1 significant, 0 insignificant"
    version = latest_version(workspace, "mine")
    (rule,) = version.guide("severity").clarifications
    assert (version.number, rule.value.value) == (2, "insignificant")
    assert call(workspace, "audit").exit_code == 0
    kept = json.loads(call(workspace, "verdict", "list", "--json").stdout)["verdicts"]
    assert {one["addressed_by"] for one in kept} == {"mine@v2"}


def test_a_reviewer_may_overrule_the_readers(verdicts):
    """In the pair the verdict is about, and nowhere else."""
    workspace, path = verdicts
    text = """\
reviewer: Dr Ann
verdicts:
- case: q1
  label: location
  judgement: model_wrong
  errors:
  - {words: side, said: significant, right: no_error}
  clarifications: {phrase: right for left, value: no_error}
"""
    assert add(workspace, path, text).exit_code == 0
    done = call(workspace, "revise", "mine", "--cohort", "rp", "--kept", "--json")
    assert done.exit_code == 0, done.output
    check = json.loads(done.stdout)["check"]
    assert [one["progress"] for one in check["targets"]] == ["fixed"]
    assert latest_version(workspace, "mine").number == 2


def test_a_pinned_pair_that_breaks_stops_a_draft(verdicts):
    """A later ruling takes away what was right, and pinned."""
    workspace, path = verdicts
    assert add(workspace, path).exit_code == 0
    assert call(workspace, "revise", "mine", "--cohort", "rp", "--kept").exit_code == 0
    again = call(workspace, "run", "mine", "--cohort", "rp")
    assert again.exit_code == 0, again.output
    breaking = """\
reviewer: Dr Bob
verdicts:
- case: q1
  label: location
  judgement: model_wrong
  clarifications: {phrase: small, value: no_error}
- case: q1
  label: omission
  judgement: model_wrong
  clarifications: {phrase: large right pneumothorax, value: no_error}
"""
    assert add(workspace, path, breaking).exit_code == 0
    done = call(workspace, "revise", "mine", "--cohort", "rp", "--kept")
    assert done.exit_code == 100, done.output
    assert "anchored cases broke: q2 omission" in done.output


def test_what_no_draft_can_be_made_of_is_refused_when_it_is_handed_in(verdicts):
    """With the words that a judge's guide has."""
    workspace, path = verdicts
    text = REVISED.replace("value: insignificant", "value: present")
    assert "present is said of a label" in str(add(workspace, path, text).exception)
    text = REVISED.replace("label: omission", "label: edema")
    assert "no category of errors is called" in str(
        add(workspace, path, text).exception
    )
    listed = call(workspace, "verdict", "list", "--json")
    assert json.loads(listed.stdout)["verdicts"] == []


def test_without_marked_errors_nothing_says_what_is_right(judged, tmp_path):
    """Points are of a pair as a whole."""
    workspace, draft = judged
    pairs = tmp_path / "more.csv"
    pairs.write_text("id,reference,candidate\nq1,Effusion.,Effusion.\n")
    points = tmp_path / "points.csv"
    points.write_text("case_id,rater,dimension,points,scale\nq1,r1,overall,5,1-5\n")
    options = ("--role", "dev", "--source", "made up", "--licence", "none")
    done = call(
        workspace,
        *("cohort", "import", pairs, "--name", "bare", *options, "--ratings", points),
    )
    assert done.exit_code == 0, done.output
    refused = call(workspace, "draft", "check", draft, "--cohort", "bare")
    assert "nobody marked errors in cohort bare" in str(refused.exception)


NAN, INF = math.nan, math.inf
WEIGHED = (
    ("loc", "significant"),
    ("sev", "significant"),
    ("loc", "insignificant"),
    ("sev", "insignificant"),
)
RIGHT = ((1, 0, 0, 0), (0, 2, 0, 1), (NAN, 0, 0, 0))
BEFORE = ((0, 0, 0, 0), (0, 1, 0, 0), (0, INF, 0, INF))
AFTER = ((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, NAN, 0))
ROWS = {"p0": 0, "p1": 1, "p2": 2}


def arrays(*tables):
    """Return tables of numbers."""
    return [np.array(one, dtype=float) for one in tables]


COUNTS = _CountTable(ROWS, WEIGHED, *arrays(RIGHT, BEFORE, AFTER))
PLAIN = _CountTable(
    ROWS,
    (("loc", ""), ("sev", "")),
    *arrays([[1, 0], [0, 3], [NAN, 0]], [[0, 0], [0, 1], [0, INF]], [[1, 0]] * 3),
)


def of_judge(case_id, category, *right, judgement=Judgement.MODEL_WRONG):
    """Return a verdict that calls errors of these weights right."""
    errors = tuple(
        ErrorVerdict(
            words=f"{n}", said=ErrorWeight.SIGNIFICANT, right=ErrorWeight(weight)
        )
        for n, weight in enumerate(right)
    )
    return Verdict(
        label=category, judgement=judgement, case_ids=(case_id,), errors=errors
    )


@pytest.mark.parametrize(
    ("table", "verdicts", "told"),
    [
        (
            COUNTS,
            [of_judge("p0", "loc")],
            ("1 significant, 0 insignificant", "0 significant, 0 insignificant",
             "1 significant, 0 insignificant", "fixed"),
        ),
        (
            COUNTS,
            [of_judge("p1", "sev")],
            ("2 significant, 1 insignificant", "1 significant, 0 insignificant",
             "2 significant, 0 insignificant", "improved"),
        ),
        (
            COUNTS,
            [of_judge("p1", "sev", *["significant"] * 2), of_judge("p1", "sev")],
            ("2 significant, 0 insignificant", "1 significant, 0 insignificant",
             "2 significant, 0 insignificant", "fixed"),
        ),
        (
            COUNTS,
            [of_judge("p2", "sev")],
            ("0 significant, 0 insignificant", "unparsed",
             "0 significant, 0 insignificant", "fixed"),
        ),
        (
            COUNTS,
            [of_judge("p2", "loc")],
            ("", "0 significant, 0 insignificant", "", "unanswered"),
        ),
        (COUNTS, [of_judge("p9", "loc")], ("", "", "", "gone")),
        (COUNTS, [of_judge("p0", "other")], ("", "", "", "gone")),
        (PLAIN, [of_judge("p1", "sev")], ("3", "1", "0", "worse")),
        (
            PLAIN,
            [of_judge("p1", "sev", "significant", "insignificant", "no_error")],
            ("2", "1", "0", "worse"),
        ),
        (PLAIN, [of_judge("p2", "loc")], ("", "0", "1", "undecided")),
    ],
)  # fmt: skip
def test_a_targeted_pair_is_held_against_what_is_counted(table, verdicts, told):
    """By the verdict, else by the experts; by weight where the judge weighs."""
    (found,) = table.targets(verdicts)
    assert (found.case_id, found.label) == verdicts[0].targets[0]
    assert (found.expected, found.before, found.after, found.progress.value) == told


@pytest.mark.parametrize(
    ("anchor", "fate"),
    [
        (Anchor("p0", "sev", None), TargetOutcome.UNCHANGED),
        (Anchor("p0", "loc", None), TargetOutcome.UNCHANGED),
        (Anchor("p0", "loc", None, (0, 0)), TargetOutcome.WORSE),
        (Anchor("p1", "sev", None, (1, 0)), TargetOutcome.WORSE),
        (Anchor("p2", "loc", None, (0, 0)), TargetOutcome.UNANSWERED),
        (Anchor("p2", "sev", None), TargetOutcome.UNCHANGED),
        (Anchor("p9", "sev", None), TargetOutcome.GONE),
    ],
)
def test_a_pinned_pair_breaks_where_its_counts_were_right_and_are_not(anchor, fate):
    """By the pin's own counts, else by those of the experts."""
    assert COUNTS.anchor_outcome(anchor) is fate


def test_what_a_reviewer_counts_is_right_in_the_pair_of_the_verdict():
    """Of its category alone; without weights the sum is right."""
    verdicts = [
        of_judge("p9", "loc", "significant"),
        of_judge("p0", "other", "significant"),
        of_judge("p0", "sev"),
        of_judge("p2", "loc", "insignificant", "insignificant", "significant"),
        of_judge("p1", "sev", "no_error"),
    ]
    (right,) = arrays(RIGHT)
    _overrule(right, ROWS, WEIGHED, verdicts)
    assert right.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 2, 0]]
    (plain,) = arrays([[1, 0], [0, 3], [NAN, 0]])
    _overrule(plain, ROWS, PLAIN.fields, verdicts)
    assert plain.tolist() == [[1, 0], [0, 0], [3, 0]]


def test_each_change_of_a_count_is_listed_with_what_is_right():
    """Fixed, broken, still wrong; and moved where nobody says what is right."""
    right, before, after = arrays(
        [[1, 0, NAN], [2, 0, NAN], [0, NAN, 3]],
        [[0, 0, 1], [2, INF, 1], [NAN, 1, 3]],
        [[1, 2, 2], [2, 1, 1], [0, NAN, 3]],
    )
    table = DistanceTable(
        fields=("a", "b", "c"),
        before=count_distances(right, before),
        after=count_distances(right, after),
        positive=np.asarray(right > 0),
        answered=~np.isnan(before) & ~np.isnan(after),
    )
    assert _changes(("p0", "p1", "p2"), table, right, before, after) == Changes(
        fixed=(CaseChange("p0", "a", "1", "0", "1"),),
        broken=(CaseChange("p0", "b", "0", "0", "2"),),
        unchanged=(CaseChange("p1", "b", "0", "unparsed", "1"),),
        unjudged=(CaseChange("p0", "c", "", "1", "2"),),
        kept=2,
        unanswered=2,
    )


def test_counts_of_a_run_are_infinite_where_nothing_is_readable():
    """And unknown where the engine failed; by weight, or all together."""
    counts = JudgeCounts(
        categories=("loc", "sev"),
        significant=np.array([[1, 2], [NAN, NAN], [NAN, NAN], [3, NAN]]),
        insignificant=np.array([[0, 4], [NAN, NAN], [NAN, NAN], [1, 2]]),
        matched=np.full(4, NAN),
        statuses=(
            Status.ANSWERED,
            Status.UNPARSED,
            Status.ENGINE_FAILED,
            Status.ANSWERED,
        ),
    )
    found = _counts(counts, [("sev", "significant"), ("loc", "insignificant")])
    assert repr(found.tolist()) == repr(
        [[2.0, 0.0], [INF, INF], [NAN, NAN], [INF, 1.0]]
    )
    together = _counts(counts, [("loc", ""), ("sev", "")])
    assert repr(together.tolist()) == repr(
        [[1.0, 6.0], [INF, INF], [NAN, NAN], [4.0, INF]]
    )

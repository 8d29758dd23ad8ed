"""A judge's draft: begun, edited, checked against experts' counts, and committed."""

import json

import pytest

from loop.core.ledger import read_ledger
from loop.core.records import Completion
from loop.engines import base
from loop.prompts.catalog import latest_version
from tests.judge.scenes import MARKED, TEXTS, call, errors, rate

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

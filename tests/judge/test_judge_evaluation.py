"""`run` and `evaluate` of a judge: against ratings and marked errors of a cohort."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.ledger import read_ledger
from loop.core.records import Completion, Status
from loop.evaluate.protocol import JudgingRules
from loop.judge.counts import JudgeCounts, find_score
from loop.judge.judge_comparison import compare_judge_runs
from loop.judge.judge_evaluation import score_agreement
from loop.run.manifest import find_run
from loop.run.store import open_store
from loop.score.experts.ratings import Ratings
from tests.judge.scenes import POINTS, TEXTS, call, errors, rate, tell

RULES = """
judging:
  score: own
  threshold: 0.5
  min_units: 4
  f1_floors: {omission: 0.5}
"""


@pytest.fixture
def rated(workspace, tmp_path):
    """Return a workspace with eight pairs, two raters, marked errors, and a judge."""
    return rate(workspace, tmp_path)


def test_a_judge_is_run_and_held_against_raters(rated):
    """Scores against points, counts against counts, and no gate without a claim."""
    assert call(rated, "run", "mine", "--cohort", "rp").exit_code == 0
    done = call(rated, "evaluate")
    assert done.exit_code == 0, done.output
    assert "mine@v1 on rp with rules, against rp:ratings1" in done.stdout
    assert "There is no gate" in done.stdout
    assert "Copy test: 3 of 3 copies of the reference have the best" in done.stdout
    data = json.loads(call(rated, "evaluate", "--json").stdout)
    assert data["outcomes"]["answered"] == 8
    tau = {one["score"]: one["tau_b"]["value"] for one in data["agreement"]}
    assert set(tau) == {"green", "green_f1", "formula", "errors", "own"}
    assert min(tau.values()) > 0.5
    significant = data["meta"]["errors"][0]
    assert significant["judge"] == "mine@v1"
    assert "zebra" not in done.stdout


def test_a_tau_that_is_not_shown_has_a_mark_and_its_test(rated, monkeypatch):
    """A judge that answers by chance; the shown ones of another have none."""
    said = [3, 3, 1, 0, 2, 4, 3, 2]
    counted = {
        texts[1]: errors(*[("omission", True)] * number, matched=3)
        for texts, number in zip(TEXTS, said, strict=True)
    }
    tell(monkeypatch, counted)
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    call(rated, "run", "listed", "--cohort", "rp", "-e", "told")
    data = json.loads(call(rated, "evaluate", "latest:listed", "--json").stdout)
    assert [one["shown"] for one in data["agreement"]] == [False] * 4
    assert sum(one["n"] for one in data["spread"]) == 8
    text = " ".join(call(rated, "evaluate", "latest:listed").stdout.split())
    assert text.count("]†") == 4
    assert "†: tau-b is not shown to differ from 0: p is 0.05 or more by Ken" in text
    call(rated, "run", "mine", "--cohort", "rp")
    assert "†" not in call(rated, "evaluate", "latest:mine").stdout


def test_the_evaluation_is_recorded_once(rated):
    """By digests: run, version, ratings and protocol."""
    call(rated, "run", "mine", "--cohort", "rp")
    for _ in range(2):
        call(rated, "evaluate")
    entries = [
        one for one in read_ledger(rated.ledger) if one.action == "judge_evaluated"
    ]
    (entry,) = entries
    assert entry.subject == "mine@v1"
    assert entry.payload["ratings"] == "rp:ratings1"
    assert entry.payload["verdict"] == ""
    audited = call(rated, "audit")
    assert audited.exit_code == 0, audited.output
    history = call(rated, "history", "mine")
    assert f"rp own {entry.payload['tau_b']} (rules; rp:ratings1)" in history.stdout


def test_the_protocol_decides(rated):
    """A claim that holds ends with 0, one that does not with 100."""
    call(rated, "run", "mine", "--cohort", "rp")
    text = rated.protocol.read_text()
    rated.protocol.write_text(text + RULES)
    done = call(rated, "evaluate")
    assert "The judge's gate is PASS" in " ".join(done.stdout.split())
    assert done.exit_code == 0, done.output
    rated.protocol.write_text(text + RULES.replace("0.5\n", "0.99\n", 1))
    assert call(rated, "evaluate").exit_code == 100
    rated.protocol.write_text(text + RULES.replace("min_units: 4", "min_units: 400"))
    short = call(rated, "evaluate")
    assert short.exit_code == 100
    assert "INSUFFICIENT" in short.stdout


def test_draws_show_whether_it_says_the_same_twice(rated, monkeypatch):
    """A judge with chance in it, asked three times."""
    answers = [errors(), errors(("omission", True)), errors()]
    asked = []

    class Fickle:
        retry_unreadable = 0

        def __init__(self, draw=0):
            self.draw = draw

        def identity(self):
            return {"engine": "fickle"}

        def redraw(self, draw):
            return Fickle(draw)

        def complete(self, prompts):
            for index, prompt in enumerate(prompts):
                asked.append(prompt.item.id)
                yield index, Completion(answers[self.draw % 3])

    from loop.engines import base

    monkeypatch.setitem(base._FACTORIES, "fickle", lambda *_: Fickle())
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    done = call(
        rated, "run", "listed", "--cohort", "rp", "-e", "fickle", "--repeats", "3"
    )
    assert done.exit_code == 0, done.output
    found = call(rated, "evaluate", "latest:listed")
    assert "Asked 3 times" in found.stdout, found.output
    hot = ("--repeats", "2", "--temperature", "0.9")
    call(rated, "run", "listed", "--cohort", "rp", "-e", "fickle", *hot)
    found = json.loads(call(rated, "evaluate", "latest:listed", "--json").stdout)
    assert found["draws"] == 2
    first = found["run"]
    with open_store(rated) as store:
        newest = max(store.find_runs(finished=True), key=lambda one: one.number)
    assert newest.id != first


def test_what_is_for_extractors_is_refused(rated):
    """And an extractor is not asked about pairs."""
    call(rated, "run", "mine", "--cohort", "rp")
    assert call(rated, "evaluate", "--html", "x.html").exit_code == 2
    refused = call(rated, "run", "extractor", "--cohort", "rp")
    assert refused.exit_code != 0


def test_a_judge_that_ships_is_begun_by_one_command(rated):
    """Which the refusal names."""
    refused = call(rated, "run", "green", "--cohort", "rp")
    assert "`ranloop prompt new green --from green@v1`" in str(refused.exception)


def test_a_part_of_the_cohort_has_no_gate(rated):
    """Named by its id, it is refused with the way out."""
    done = call(rated, "run", "mine", "--cohort", "rp", "--limit", "3", "--json")
    run = json.loads(done.stdout)["run_id"]
    refused = call(rated, "evaluate", run)
    assert "asked the first 3 pairs only" in str(refused.exception)


def test_a_told_judge_without_an_answer_is_in_no_number(rated, monkeypatch):
    """Its silence is in the outcomes, and keeps the gate open."""
    tell(monkeypatch, {texts[1]: "I cannot." for texts in TEXTS[:4]})
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    call(rated, "run", "listed", "--cohort", "rp", "-e", "told")
    rated.protocol.write_text(rated.protocol.read_text() + RULES)
    done = call(rated, "evaluate", "latest:listed", "--json")
    data = json.loads(done.stdout)
    assert data["outcomes"]["unparsed"] == 4
    assert data["gate"]["verdict"] != "PASS"
    assert done.exit_code == 100


def test_cost_is_of_the_pairs_that_were_answered(rated, monkeypatch):
    """Tokens are unknown where one call has no count: half a sum is none."""
    given = {texts[1]: Completion(errors(), "stop", "", 2.0, 90, 10) for texts in TEXTS}
    given[TEXTS[7][1]] = Completion("", "error", "lost")
    tell(monkeypatch, given)
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    call(rated, "run", "listed", "--cohort", "rp", "-e", "told")
    data = json.loads(call(rated, "evaluate", "latest:listed", "--json").stdout)
    lost = data["outcomes"]["engine_failed"]
    cost = data["meta"]["cost"]
    assert lost and cost["pairs"] == cost["calls"] == len(TEXTS) - lost
    assert (cost["seconds_per_pair"], cost["tokens_per_pair"]) == (2, 100)
    given[TEXTS[7][1]] = Completion(errors(), "stop", "", 2.0)
    call(rated, "run", "listed", "--cohort", "rp", "-e", "told")
    data = json.loads(call(rated, "evaluate", "latest:listed", "--json").stdout)
    cost = data["meta"]["cost"]
    assert (cost["pairs"], cost["tokens"]) == (len(TEXTS), None)


def test_a_judge_of_which_nothing_is_claimed_is_not_released(rated):
    """Before anything is measured: a holdout would be looked at for nothing."""
    assert call(rated, "key", "new", "Dr A", "--role", "approver").exit_code == 0
    before = len(read_ledger(rated.ledger))
    done = call(
        rated,
        *("freeze", "mine@v1", "--cohort", "rp", "--why", "x", "--actor", "Dr A"),
    )
    assert "nothing is claimed of mine@v1" in str(done.exception)
    assert len(read_ledger(rated.ledger)) == before


@pytest.mark.parametrize(
    ("judge", "scores", "counts"),
    [
        ("rubric", ["own"], False),
        ("chexprompt", ["errors"], True),
        ("crimson", ["crimson"], False),
        ("finescore", ["line_sum", "line_max", "line_mean"], False),
    ],
)
def test_a_judge_is_held_by_the_scores_that_it_has(rated, judge, scores, counts):
    """Without GREEN by its first; without counts there is no table of errors."""
    assert call(rated, "prompt", "new", "own", "--from", judge).exit_code == 0
    ran = call(rated, "run", "own", "--cohort", "rp")
    assert ran.exit_code == 0, ran.output
    done = call(rated, "evaluate", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert sorted(one["score"] for one in data["agreement"]) == sorted(scores)
    assert data["score"] == scores[0]
    assert min(one["tau_b"]["value"] for one in data["agreement"]) > 0.5
    assert bool(data["meta"]["errors"]) is counts
    shown = call(rated, "evaluate")
    assert "Copy test: 3 of 3 copies of the reference have the best" in shown.stdout
    words = " ".join(shown.stdout.split())
    assert ("all pairs were judged without it" in words) is (judge == "crimson")
    assert call(rated, "lint", "own").exit_code == 0


def test_a_score_that_the_judge_cannot_have_is_refused(rated):
    """With those that it has, before any number is made."""
    protocol = rated.labels / "protocol.yaml"
    protocol.write_text(protocol.read_text() + RULES.replace("own", "green"))
    call(rated, "prompt", "new", "own", "--from", "chexprompt")
    call(rated, "run", "own", "--cohort", "rp")
    done = call(rated, "evaluate")
    assert done.exit_code == 1
    said = str(done.exception)
    assert "answers in the contract error_counts have none. They have errors" in said


def test_failures_are_of_counts(rated):
    """A judge that counts nothing has no count that is wrong."""
    call(rated, "prompt", "new", "own", "--from", "rubric")
    call(rated, "run", "own", "--cohort", "rp")
    done = call(rated, "failures")
    assert done.exit_code == 1
    assert "own@v1 counts no errors by category" in str(done.exception)


def test_a_tau_of_0_is_above_one_below_0():
    """Scores are listed from the best; one that is undefined comes last."""
    numbers = {
        "line_sum": np.array([1.0, 2, 3, 4]),
        "line_max": np.array([2.0, 1, 1, 2]),
        "line_mean": np.array([1.0, 1, 1, 1]),
    }
    counts = JudgeCounts(
        categories=(),
        significant=np.empty((4, 0)),
        insignificant=np.empty((4, 0)),
        matched=np.full(4, np.nan),
        statuses=(Status.ANSWERED,) * 4,
        numbers=numbers,
    )
    points = Ratings(
        ids=tuple("abcd"),
        systems=("",) * 4,
        raters=("r",),
        scores=np.array([[1.0], [2], [3], [4]]),
        scale=(1, 5),
    )
    scores = [find_score(name) for name in ("line_mean", "line_sum", "line_max")]
    found = score_agreement(scores, counts, points, np.arange(4))
    assert [(one.score.name, one.found.tau_b.value) for one in found] == [
        ("line_max", 0), ("line_sum", -1), ("line_mean", None),
    ]  # fmt: skip


def test_two_runs_are_compared_on_the_pairs_that_both_answer(rated, monkeypatch):
    """An answer that one of them lost is in no number of the other, either."""
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    given = {texts[1]: 5 - one for texts, one in zip(TEXTS, POINTS, strict=True)}
    given[TEXTS[0][1]] = 4
    worse = {**given, TEXTS[1][1]: 0}
    runs = []
    for model, numbers in (("early", given), ("late", worse)):
        answers = {
            text: errors(*[("omission", True)] * n, matched=3)
            for text, n in numbers.items()
        }
        if model == "late":
            answers[TEXTS[0][1]] = "I cannot."
        tell(monkeypatch, answers)
        call(rated, "run", "listed", "--cohort", "rp", "-e", f"told:{model}")
        runs.append(find_run(rated, "latest:listed").id)
    rules = JudgingRules(score="errors", threshold=0.5)
    found = compare_judge_runs(rated, *runs, rules, confidence=0.95)
    mean = [(one + min(5, one + 1)) / 2 for one in POINTS[1:]]
    before, after = (
        kendalltau([-one[text] for _, text in TEXTS[1:]], mean).statistic
        for one in (given, worse)
    )
    assert found.agreement[1:] == pytest.approx((before, after))
    assert found.difference.value == pytest.approx(after - before)

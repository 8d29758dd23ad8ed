"""`run` and `evaluate` of a judge: against ratings and marked errors of a cohort."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Completion, Status
from loop.engines import base
from loop.evaluate.protocol import JudgingRules, protocol_digest
from loop.evaluate.recording import digest_answers
from loop.judge.counts import JudgeCounts, find_score
from loop.judge.gate_text import judge_gate_notes, judge_gate_rows
from loop.judge.judge_comparison import compare_judge_runs
from loop.judge.judge_evaluation import (
    claimed_score,
    copy_counts,
    evaluate_judge_run,
    expert_median,
    expert_table,
    judge_evaluation_data,
    judge_evaluation_notes,
    passes,
    record_judge_evaluation,
    recount_rows,
    score_agreement,
    version_of,
)
from loop.judge.judge_gates import CopyCounts, JudgeAspect
from loop.judge.meta_text import judge_meta_data, judge_meta_said
from loop.judge.rated_rows import RatedRow, digest_rows, number_units
from loop.judge.repeats import CopyTest
from loop.judge.score_bins import bins_data
from loop.labels.expert_ratings import Judgements, MarkedError, read_ratings_of
from loop.prompts.catalog import read_version
from loop.run.manifest import find_run
from loop.run.store import open_store
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings
from loop.stats.rated_agreement import AgreementMeasure, compare_agreement
from loop.stats.resampling import to_estimate
from tests.judge.scenes import MARKED, POINTS, TEXTS, call, errors, rate, tell

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


OMITTED = {
    "early": [4, 2, 4, 3, 4, 2, 0, 4],
    "late": [None, 0, 4, 3, 4, 2, 0, 4],
}
"""Omissions that each of two runs counts in each pair; None: no readable answer."""


@pytest.fixture
def two_runs(rated, monkeypatch):
    """Return a workspace and two runs, of which the later one lost an answer."""
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    runs = []
    for model, numbers in OMITTED.items():
        answers = {
            text: "I cannot."
            if number is None
            else errors(*[("omission", True)] * number, ("location", False), matched=3)
            for (_, text), number in zip(TEXTS, numbers, strict=True)
        }
        tell(monkeypatch, answers)
        call(rated, "run", "listed", "--cohort", "rp", "-e", f"told:{model}")
        runs.append(find_run(rated, "latest:listed").id)
    return rated, runs


def test_two_runs_are_compared_on_the_pairs_that_both_answer(two_runs):
    """An answer that one of them lost is in no number of the other, either."""
    workspace, runs = two_runs
    rules = JudgingRules(score="errors", threshold=0.5)
    found = compare_judge_runs(workspace, *runs, rules, confidence=0.95)
    mean = np.array(MEANS)
    early, late = (
        np.array([np.nan if n is None else -n for n in numbers])
        for numbers in OMITTED.values()
    )
    before, after = (kendalltau(one[1:], mean[1:]).statistic for one in (early, late))
    assert found.agreement == (
        "tau-b of GREEN-EC", pytest.approx(before), pytest.approx(after),
    )  # fmt: skip
    units = number_units(np.array([one for one, _ in TEXTS]), mean, late, early)
    limits = compare_agreement(
        AgreementMeasure.TAU_B,
        *(late, early, mean),
        units=units,
        resamples=2000,
        confidence=0.9,
    )
    assert found.difference == to_estimate(limits.value)
    assert found.difference.value == pytest.approx(after - before)
    # Experts mark one omission each in two of the seven pairs.
    assert found.f1 == (
        ("false predictions", 0, 0),
        ("omissions", pytest.approx(4 / 21), pytest.approx(4 / 19)),
        ("attributes", 0, 0),
    )


def test_two_runs_are_compared_by_the_measure_of_the_protocol(two_runs):
    """Alpha is of the numbers as they are, and GREEN grows with quality."""
    workspace, runs = two_runs
    rules = JudgingRules(score="errors", measure="alpha", threshold=0.5)
    found = compare_judge_runs(workspace, *runs, rules, confidence=0.95)
    wanted = []
    for numbers in OMITTED.values():
        both = np.array([numbers[1:], MEANS[1:]], dtype=float)
        every = both.ravel()
        expected = ((every[:, None] - every) ** 2).sum() / (14 * 13)
        observed = ((both[0] - both[1]) ** 2).mean()
        wanted.append(pytest.approx(1 - observed / expected))
    assert found.agreement == ("alpha of GREEN-EC", *wanted)
    green = compare_judge_runs(
        workspace, *runs, JudgingRules(threshold=0.5), confidence=0.95
    )
    shares = [3 / (3 + n) for n in OMITTED["late"][1:]]
    assert green.agreement.name == "tau-b of GREEN"
    assert green.agreement.after == pytest.approx(kendalltau(shares, MEANS[1:])[0])


def test_two_runs_of_a_judge_without_counts_have_no_f1(rated):
    """Its categories are none, and nothing is 0 for that."""
    call(rated, "prompt", "new", "own", "--from", "rubric")
    call(rated, "run", "own", "--cohort", "rp")
    run = find_run(rated, "latest:own").id
    rules = JudgingRules(score="own", threshold=0.5)
    found = compare_judge_runs(rated, run, run, rules, confidence=0.95)
    assert found.f1 == () and found.difference.value == 0
    assert found.agreement.before == found.agreement.after > 0.5


MEANS = [(one + min(5, one + 1)) / 2 for one in POINTS]
"""Mean of the two raters for each pair."""


@pytest.fixture
def told_of(rated, monkeypatch):
    """Return the workspace after a run of a judge that is right of some pairs."""
    found = {
        1: errors(("location", True), ("severity", False)),
        2: "I cannot.",
        3: errors(("false_finding", True), ("severity", False)),
        # Also the candidate of the fifth pair, a copy.
        7: errors(("omission", True), matched=2),
        5: errors(("false_finding", True), ("false_finding", True)),
    }
    tell(monkeypatch, {TEXTS[place][1]: said for place, said in found.items()})
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    done = call(rated, "run", "listed", "--cohort", "rp", "-e", "told")
    assert done.exit_code == 0, done.output
    return rated


GREEN = [1, 1 / 2, None, 1 / 2, 2 / 3, 1 / 3, 1, 2 / 3]
SIGNIFICANT = [0, 1, None, 1, 1, 2, 0, 1]


def tau(values):
    """Return tau-b of some pairs' values with the mean of the raters."""
    both = [(one, mean) for one, mean in zip(values, MEANS, strict=True)
            if one is not None]  # fmt: skip
    return kendalltau(*zip(*both, strict=True)).statistic


def test_an_evaluation_has_the_numbers_that_follow_from_the_answers(told_of):
    """Counted by hand, and tau-b by another implementation."""
    found = evaluate_judge_run(told_of, "latest")
    assert found.score is find_score("green")
    assert found.gate is found.observed is found.shots is None
    assert {one.score.name: one.found.tau_b.value for one in found.agreement} == {
        "green": pytest.approx(tau(GREEN)),
        "green_f1": pytest.approx(tau(GREEN)),
        "formula": pytest.approx(tau([1, 2 / 7, None, 2 / 7, 1 / 2, 1 / 5, 1, 1 / 2])),
        "errors": pytest.approx(tau([None if n is None else -n for n in SIGNIFICANT])),
    }
    assert found.claimed == next(
        one.found for one in found.agreement if one.score.name == "green"
    )
    assert {one.found.n for one in found.agreement} == {7}
    assert {
        group.value: (one.true, one.found, one.expected, one.f1.value)
        for group, one in found.f1.items()
    } == {
        "false_prediction": (2, 3, 2, pytest.approx(4 / 5)),
        "omission": (1, 2, 1, pytest.approx(2 / 3)),
        "attribute": (1, 1, 1, 1),
    }
    ended = {one: count for one, count in found.statuses.items() if count}
    assert ended == {Status.ANSWERED: 7, Status.UNPARSED: 1}
    assert set(found.statuses) == set(Status)
    assert (found.cohort, found.against, found.ratings) == ("rp", "rp:ratings1", 1)
    assert (found.raters, found.scale, found.draws) == (2, "1-5", 1)
    assert (found.runs, found.run) == ((found.run.id,), find_run(told_of, "latest"))
    assert (found.meta.copies.copies, found.meta.copies.wrong) == (3, (4,))
    assert (found.meta.pairs, found.meta.unanswered) == (8, 1)
    assert found.meta.judge == "listed@v1"
    assert sum(one.n for one in found.bins) == 7
    assert not found.without_context and found.own.pairs == 0
    rows = [(one.points, one.score, one.parent) for one in found.rows]
    assert sorted(rows, key=str) == sorted(
        ((points, score, None) for points, score in zip(MEANS, GREEN, strict=True)),
        key=str,
    )
    assert found.rows[0] == RatedRow(1, None, 1.5)
    # Two pairs are of one reference.
    assert len({one.unit for one in found.rows}) == found.meta.units == 7
    digests = recount_rows(told_of, found.run, score="green", ratings=1)
    assert digests == (digest_rows(found.rows),)


def test_the_data_of_an_evaluation_repeat_it(told_of):
    """With and without a claim of the protocol."""
    for claim in ("", RULES.replace("own", "green")):
        told_of.protocol.write_text(told_of.protocol.read_text() + claim)
        found = evaluate_judge_run(told_of, "latest")
        gate = None
        if claim:
            gate = {
                "verdict": "FAIL",
                "checks": [one._asdict() for one in judge_gate_rows(found.gate)],
                "suspicious": list(found.gate.suspicious),
            }
        assert passes(found) is not bool(claim)
        assert judge_evaluation_data(found) == {
            "run": found.run.id,
            "draws": 1,
            "prompt": "listed@v1",
            "prompt_digest": found.run.spec.prompt_digest,
            "engine": "told",
            "cohort": "rp",
            "outcomes": {one.value: n for one, n in found.statuses.items()},
            "against": "rp:ratings1",
            "ratings_digest": found.ratings_digest,
            "score": "green",
            "agreement": [
                {
                    "score": one.score.name,
                    "direction": "lower" if one.score.name == "errors" else "higher",
                    "n": 7,
                    "tau_b": one.found.tau_b._asdict(),
                    "kendall_p": one.p,
                    "shown": one.shown,
                    "spearman": one.found.spearman._asdict(),
                    "pearson": one.found.pearson._asdict(),
                }
                for one in found.agreement
            ],
            "own_against_counts": {
                "form": "green", "pairs": 0, "mean_difference": None, "largest": None,
            },
            "spread": bins_data(found.bins),
            "meta": judge_meta_data(found.meta),
            "gate": gate,
        }  # fmt: skip


def test_what_must_be_known_is_said_in_order(told_of):
    """What is not shown comes first, then the evaluation, then the gate."""
    found = evaluate_judge_run(told_of, "latest")
    meta = judge_meta_said(replace(found.meta, errors=()))
    notes = judge_evaluation_notes(found)
    shown = [one.shown for one in found.agreement]
    assert not all(shown)
    assert notes[0] == (
        "†: tau-b is not shown to differ from 0: p is 0.05 or more by Kendall's test, "
        "two-sided, which treats pairs as independent, or the interval over references "
        "includes 0 or cannot be estimated."
    )
    gap = (
        "There is no gate: labels/protocol.yaml has no section judging, or nobody gave "
        "points."
    )
    assert notes[1:] == (*meta, gap)
    blind = replace(
        found,
        agreement=(),
        own=found.own._replace(pairs=2, mean_difference=0.25, largest=0.5),
        without_context=True,
    )
    assert judge_evaluation_notes(blind) == (
        *meta,
        "The judge's own score and GREEN of its counts differ by 0.250 on average, by "
        "0.500 at most.",
        "listed@v1 reads what is known of the patient, and cohort rp has no column "
        "context: all pairs were judged without it.",
        gap,
    )
    told_of.protocol.write_text(
        told_of.protocol.read_text() + RULES.replace("own", "errors")
    )
    held = evaluate_judge_run(told_of, "latest")
    said = judge_gate_notes(held.gate)
    assert judge_evaluation_notes(held)[-len(said) :] == said
    assert gap not in judge_evaluation_notes(held)
    assert held.observed == pytest.approx(
        tau([None if n is None else -n for n in SIGNIFICANT])
    )
    checks = {one.what: one for one in held.gate.checks}
    assert checks["F1 of omissions"].observed == pytest.approx(2 / 3)
    answers = checks["share without a readable answer or a score"]
    assert answers.observed == 1 / 8
    assert [one.share for one in held.bins] == [2 / 7, 4 / 7, 1 / 7]


def test_the_ledger_has_every_digest_of_an_evaluation(told_of):
    """And again only where something of it is another."""
    actor = Actor(name="Dr A", role="editor")
    found = evaluate_judge_run(told_of, "latest")
    for one in (found, found, replace(found, agreement=(), rows=())):
        record_judge_evaluation(told_of, one, actor)
    first, second = (
        one for one in read_ledger(told_of.ledger) if one.action == "judge_evaluated"
    )
    with open_store(told_of) as store:
        answers = digest_answers(store, found.runs)
    best = found.agreement[0]
    payload = {
        "run": found.run.id,
        "prompt_digest": read_version(told_of, "listed@v1").digest,
        "cohort": "rp",
        "cohort_digest": found.run.spec.cohort_digest,
        "ratings": "rp:ratings1",
        "ratings_digest": found.ratings_digest,
        "protocol": protocol_digest(told_of),
        "engine": "told",
        "best": best.score.name,
        "tau_b": f"{best.found.tau_b.value:.4f}",
        "score": "green",
        "observed": "",
        "draws": 1,
        "verdict": "",
        "rows_digest": digest_rows(found.rows),
        "counts_digest": found.counts_digest,
        "answers_digest": answers,
    }
    assert first.payload == payload
    bare = {"best": "", "tau_b": "", "rows_digest": digest_rows(())}
    assert second.payload == {**payload, **bare}
    assert (first.subject, first.actor) == ("listed@v1", "Dr A")
    assert first.reason == f"run {found.run.id} on rp"


def test_a_version_that_was_edited_is_not_held_by_its_old_run(told_of):
    """The run and both digests are named; nor is one that is no judge."""
    run = find_run(told_of, "latest")
    version = version_of(told_of, run)
    assert version.ref == "listed@v1" and claimed_score(version, None).name == "green"
    assert claimed_score(version, "errors").name == "errors"
    for prompt, digest in (
        ("listed@v1", "0" * 64),
        ("extractor@v1", read_version(told_of, "extractor@v1").digest),
    ):
        other = replace(run.spec, prompt=prompt, prompt_digest=digest)
        now = read_version(told_of, prompt).digest[:12]
        with pytest.raises(DataError) as refused:
            version_of(told_of, replace(run, spec=other))
        assert str(refused.value) == (
            f"run {run.id} asked {prompt} with digest {digest[:12]}, which is {now} "
            "now. Restore that version, or run it again."
        )


def test_experts_who_do_not_decide_have_no_median():
    """Of two readers one half, of three the middle; by one weight, or by both."""
    counts = np.full((4, 3, 2, 2), np.nan)
    # Two readers: 1 and 2 significant, 1 and 0 others of the second category.
    counts[0, :2, 1] = [[1, 1], [2, 0]]
    counts[1, :, 1] = [[0, 0], [1, 1], [3, 0]]
    counts[2, 1, 1] = [0, 4]
    counts[:3, :, 0] = 7
    experts = ErrorTable(
        keys=tuple((name, "") for name in "abcd"),
        raters=("r1", "r2", "r3"),
        categories=("omission", "location"),
        counts=counts,
    )
    na = np.nan
    for weight, wanted in (
        ("", [2, 2, 4, na]),
        ("significant", [na, 1, 0, na]),
        ("insignificant", [na, 0, 4, na]),
    ):
        found = expert_median(experts, "location", weight)
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(expert_median(experts, "omission"), [14, 14, 14, na])


def test_marked_errors_become_a_table_in_the_order_of_the_cohort(rated, tmp_path):
    """Significant before insignificant; who found none counted 0."""
    given = read_ratings_of(rated, "rp")
    found = expert_table(rated, given)
    assert found.keys == tuple((f"p{place}", "") for place in range(8))
    assert found.raters == ("r1", "r2")
    assert found.counts[:, :, :, 1].sum() == 0
    marked = {
        (int(row), found.categories[column]): found.counts[row, :, column, 0].tolist()
        for row, column in np.argwhere(found.counts[:, 0, :, 0])
    }
    assert marked == {
        (place, name): [1, 1] for place, names in MARKED.items() for name in names
    }
    slight = replace(
        given,
        given=Judgements(
            errors=(
                MarkedError("p3", "r9", "severity", "insignificant"),
                MarkedError("p1", "r9"),
            )
        ),
    )
    (counts,) = expert_table(rated, slight).counts.transpose(1, 0, 2, 3)
    place = found.categories.index("severity")
    assert counts[3, place].tolist() == [0, 1] and counts[3].sum() == 1
    assert counts[1].sum() == 0 and np.isnan(counts[[0, 2, 4, 5, 6, 7]]).all()
    assert expert_table(rated, replace(given, given=Judgements())) is None


class Sided:
    """Counts what experts marked, and wrong sides only if the prompt minds them."""

    def identity(self):
        """Return the name."""
        return {"engine": "sided"}

    def complete(self, prompts):
        """Yield an answer for each pair, as its texts and its prompt want."""
        known = {texts: MARKED.get(n, ()) for n, texts in enumerate(TEXTS)}
        for index, prompt in enumerate(prompts):
            told = any("Mind the side." in m.content for m in prompt.frame.messages)
            given = prompt.item.variables
            found = [
                (name, True)
                for name in known[given["reference"], given["candidate"]]
                if told or name != "location"
            ]
            yield index, Completion(errors(*found))


def test_a_version_is_held_against_its_parent_on_the_same_pairs(
    rated, tmp_path, monkeypatch
):
    """Its rows have both scores, and the gate the difference of both agreements."""
    monkeypatch.setitem(base._FACTORIES, "sided", lambda *_: Sided())
    call(rated, "prompt", "new", "listed", "--from", "one_pass@v1")
    begun = call(
        rated, "draft", "begin", "listed", "--cohort", "rp", "--why", "x", "--json"
    )
    draft = json.loads(begun.stdout)["draft"]
    text = call(rated, "draft", "show", draft, "--instructions").stdout
    path = tmp_path / "instructions.txt"
    path.write_text(
        text.replace("- Compare findings", "- Mind the side.\n- Compare findings")
    )
    for step in (
        ("edit", draft, "--instructions", path),
        ("check", draft, "-e", "sided"),
        ("commit", draft, "--why", "sides"),
    ):
        done = call(rated, "draft", *step)
        assert done.exit_code == 0, done.output
    rules = RULES.replace("own", "errors").replace("0.5", "0.1", 1)
    rated.protocol.write_text(rated.protocol.read_text() + f"{rules}  margin: 0.4\n")
    found = evaluate_judge_run(rated, "latest:listed")
    assert found.run.spec.prompt == "listed@v2"
    own = [len(MARKED.get(place, ())) for place in range(8)]
    parent = [n - ("location" in MARKED.get(place, ())) for place, n in enumerate(own)]
    assert own != parent
    rows = [(one.points, one.score, one.parent) for one in found.rows]
    assert sorted(rows) == sorted(zip(MEANS, own, parent, strict=True))
    (held,) = [one for one in found.gate.checks if one.aspect is JudgeAspect.PARENT]
    apart = tau([-n for n in own]) - tau([-n for n in parent])
    assert held.observed == pytest.approx(apart)
    assert held.threshold == -0.4
    alone = tuple(one._replace(parent=None) for one in found.rows)
    digests = recount_rows(rated, found.run, score="errors", ratings=1)
    assert digests[1:] == (digest_rows(found.rows),)
    first = evaluate_judge_run(rated, "latest:listed@v1")
    assert first.run.spec.prompt == "listed@v1"
    assert {one.parent for one in first.rows} == {None}
    assert JudgeAspect.PARENT not in {one.aspect for one in first.gate.checks}
    assert len(recount_rows(rated, first.run, score="errors", ratings=1)) == 1
    assert sorted(one[1:3] for one in alone) == sorted(zip(own, MEANS, strict=True))


def test_a_copy_that_is_neither_wrong_nor_unanswered_has_the_best_score():
    """So the gate counts; without a copy there was no test."""
    assert copy_counts(CopyTest(7, 2, (0, 3, 4))) == CopyCounts(7, 2, 2)
    assert copy_counts(CopyTest(0, 0, ())) is None

"""Judges on marked pairs: scores, cost, and the protocol's verdict, in the ledger."""

import json
from dataclasses import replace

import numpy as np
import pytest

from loop.core.digests import digest_json
from loop.core.errors import LoopError
from loop.core.files import read_text, write_atomic
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Completion, Status
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import JudgingRules, protocol_digest, read_protocol
from loop.judge.counts import JudgeCounts, find_score
from loop.judge.judge import Judge, JudgeAnswers, JudgeFacts
from loop.judge.judge_gates import (
    JudgeAspect,
    JudgeCheck,
    MarkedEvidence,
    decide_marked_gate,
)
from loop.judge.marked_judges import (
    ACTION,
    MarkedAnswers,
    hold_marked_answers,
    judge_marked_pairs,
    marked_cost,
    record_marked_gate,
    score_marked_pairs,
)
from loop.judge.meta_evaluation import JudgeCost
from loop.prompts.outputs.green_sections import ParserMode
from loop.release.audit.audit import audit_workspace
from loop.review.start import new_prompt
from loop.run.execute import Usage
from loop.stats.intervals import clopper_pearson
from tests.judge.scenes import call, errors, tell
from tests.judge.test_discrimination import ROWS, pairs, write

PASS, FAIL, OPEN = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INSUFFICIENT
ACTOR = Actor(name="test", role="editor")
CLAIM = """
judging:
  threshold: 0.6
  min_units: {least}
  discrimination: {{lower_limit: {d}}}
  robustness: {{lower_limit: {r}}}
"""


def rules(**said):
    """Return a claim about marked pairs."""
    given = {"threshold": 0.5, "discrimination": {"lower_limit": 0.8}, **said}
    return JudgingRules(**given)


def evidence(right, wrong=0, *, missing=0, each=1, mark=True):
    """Return a judge that is right of so many references, `each` with as many pairs."""
    flags = [1.0] * right + [0.0] * wrong if mark else [0.0] * right + [1.0] * wrong
    flags += [np.nan] * missing
    return MarkedEvidence(
        flags=np.repeat(flags, each),
        significant=np.full(len(flags) * each, mark),
        units=np.repeat(np.arange(len(flags)), each),
    )


def check(gate, aspect):
    """Return the only check of an aspect."""
    (found,) = (one for one in gate.checks if one.aspect is aspect)
    return found


def discrimination(found, **said):
    """Return the check of D."""
    return check(decide_marked_gate(found, rules(**said)), JudgeAspect.DISCRIMINATION)


def test_the_one_sided_exact_limit_decides():
    """At the floor it passes; wholly below it fails; between it is open."""
    low = clopper_pearson(50, 50, confidence=0.9).low
    said = {"discrimination": {"lower_limit": low}}
    passed = discrimination(evidence(50), **said)
    assert (passed.verdict, passed.observed, passed.limit) == (PASS, 1.0, low)
    open_ = discrimination(evidence(50), discrimination={"lower_limit": low + 1e-6})
    assert open_.verdict is OPEN and open_.units_needed >= 1
    failed = discrimination(evidence(10, 40))
    assert failed.verdict is FAIL and "upper limit" in failed.reason


def test_variants_of_one_report_count_for_less_than_as_many_reports():
    """Ten of each of 20 are worth 20, not 200."""
    many = discrimination(evidence(200))
    alike = discrimination(evidence(20, each=10))
    assert alike.limit == pytest.approx(clopper_pearson(20, 20, confidence=0.9).low)
    assert many.limit > alike.limit


def test_every_check_of_marked_pairs_is_told_whole():
    """What was seen, what was wanted, and what to do where it is not there."""
    low = clopper_pearson(50, 50, confidence=0.9).low
    passed = decide_marked_gate(evidence(50), rules())
    assert passed.checks == (
        JudgeCheck(
            aspect=JudgeAspect.ANSWERS,
            what="share without a readable answer or a score",
            verdict=PASS,
            observed=0.0,
            threshold=0.01,
        ),
        JudgeCheck(
            aspect=JudgeAspect.UNITS,
            what="references with an answer",
            verdict=PASS,
            observed=50,
            threshold=20,
        ),
        JudgeCheck(
            aspect=JudgeAspect.DISCRIMINATION,
            what="D, flagged of the significant pairs",
            verdict=PASS,
            observed=1.0,
            limit=low,
            threshold=0.8,
        ),
    )
    answers, units, share = decide_marked_gate(evidence(0, missing=5), rules()).checks
    assert (answers.verdict, answers.observed) == (OPEN, 1.0)
    assert answers.needs == "run the command again: what has no answer is asked again"
    assert answers.reason == (
        "100.0 % of the answers are missing or cannot be read (at most 1 % allowed)"
    )
    assert (units.observed, units.units_needed) == (0, 20)
    assert units.reason == "0 of at least 20 references"
    assert (share.verdict, share.observed, share.needs) == (OPEN, None, "")
    assert share.reason == (
        "not decided, since answers are missing and units are too few"
    )
    # Of no pair at all, no answer is missing.
    answers, units, share = decide_marked_gate(evidence(0), rules()).checks
    assert (answers.verdict, answers.observed) == (PASS, 0.0)
    assert (units.verdict, units.observed, share.verdict) == (OPEN, 0, OPEN)
    assert share.reason == "not decided, since units are too few"
    (*_, untold) = decide_marked_gate(evidence(30, mark=False), rules()).checks
    assert (untold.reason, untold.needs) == (
        "there is no such pair with an answer",
        "how many more units it needs cannot be told",
    )


def test_r_is_the_share_that_is_not_flagged():
    """Of the pairs that are not significant."""
    gate = decide_marked_gate(
        evidence(90, 10, mark=False),
        rules(discrimination=None, robustness={"lower_limit": 0.8}),
    )
    (one,) = (o for o in gate.checks if o.aspect is JudgeAspect.ROBUSTNESS)
    assert (one.verdict, one.observed) == (PASS, 0.9)
    assert len(gate.checks) == 3


def test_who_does_not_answer_cannot_pass():
    """Nor where there are too few references."""
    silent = discrimination(evidence(200, missing=10))
    assert silent.verdict is OPEN and "answers are missing" in silent.reason
    # 10 of 1,010 answers are missing, and these are half of the significant pairs.
    own, others = evidence(10, missing=10), evidence(990, mark=False)
    both = MarkedEvidence(
        flags=np.concatenate([own.flags, others.flags]),
        significant=np.concatenate([own.significant, others.significant]),
        units=np.arange(1010),
    )
    hidden = decide_marked_gate(both, rules(max_unanswered=0.01))
    assert check(hidden, JudgeAspect.ANSWERS).observed == 0.5
    assert hidden.verdict is OPEN
    few = decide_marked_gate(evidence(19, each=20), rules())
    assert few.verdict is OPEN
    assert check(few, JudgeAspect.UNITS).reason == "19 of at least 20 references"
    none = decide_marked_gate(evidence(30, mark=False), rules())
    assert "no such pair" in check(none, JudgeAspect.DISCRIMINATION).reason
    nobody = decide_marked_gate(evidence(0, missing=5), rules())
    assert nobody.verdict is OPEN


def test_columns_and_levels_are_checked():
    """Before anything is decided."""
    with pytest.raises(ValueError, match="above one half"):
        decide_marked_gate(evidence(30), rules(), confidence=0.5)
    for flags, marks, units in ((2, 3, 2), (2, 2, 3)):
        given = MarkedEvidence(
            flags=np.ones(flags),
            significant=np.ones(marks, dtype=bool),
            units=np.ones(units),
        )
        with pytest.raises(ValueError, match="a flag, a mark and a unit"):
            decide_marked_gate(given, rules())


def test_without_the_keys_a_claim_is_written_as_before():
    """So that releases and digests of earlier protocols stay."""
    plain = JudgingRules(threshold=0.5).model_dump()
    assert "discrimination" not in plain and "robustness" not in plain
    assert rules().model_dump()["discrimination"] == {"lower_limit": 0.8}
    assert JudgingRules(**rules().model_dump()) == rules()


def test_what_a_judge_takes_is_told(workspace, monkeypatch):
    """Seconds and tokens of every answer, also of those that were there already."""
    tokens = {"prompt_tokens": 90, "completion_tokens": 10, "latency_s": 0.5}
    said = {row[3]: Completion(errors(), **tokens) for row in ROWS}
    tell(monkeypatch, said)
    new_prompt(workspace, "one_pass", ACTOR, source="one_pass@v1")
    for _ in range(2):
        with Judge.open(workspace, "one_pass", "told:x") as judge:
            found = judge_marked_pairs(pairs(), judge)
        assert (found.cost.pairs, found.cost.calls) == (5, 5)
        assert found.cost.seconds_per_pair == pytest.approx(0.5)
        assert found.cost.tokens_per_pair == pytest.approx(100)
    assert [one.name for one in found.scores] == ["one_pass"]


def test_an_answer_without_counted_tokens_leaves_the_sum_unknown(workspace):
    """`rules` counts none."""
    with Judge.open(workspace, "green") as judge:
        found = judge_marked_pairs(pairs(), judge)
    assert found.cost.tokens is None and found.cost.seconds > 0


def claim(workspace, **values):
    """Let the protocol of a workspace claim something of marked pairs."""
    said = read_text(workspace.protocol) + CLAIM.format(
        **{"least": 1, "d": 0.1, "r": 0.05, **values}
    )
    write_atomic(workspace.protocol, said)


def test_the_verdict_is_recorded_once_for_a_committed_version(workspace):
    """And not for one that only ships."""
    claim(workspace)
    tested, protocol = pairs(), read_protocol(workspace)

    def hold(name):
        with Judge.open(workspace, name) as judge:
            said = judge_marked_pairs(tested, judge)
        gate = hold_marked_answers(
            tested, said, protocol.judging, confidence=protocol.confidence
        )
        return gate, record_marked_gate(workspace, tested, said, gate, ACTOR)

    gate, recorded = hold("green")
    assert gate.verdict is PASS and not recorded
    new_prompt(workspace, "green", ACTOR, source="green@v1")
    assert hold("green")[1] and hold("green")[1]
    (entry,) = (one for one in read_ledger(workspace.ledger) if one.action == ACTION)
    with Judge.open(workspace, "green") as judge:
        facts = judge.facts
    assert (entry.subject, entry.actor) == ("green@v1", "test")
    assert entry.reason == "5 marked pairs with rules"
    shares = {one.aspect.value: one for one in gate.checks[2:]}
    assert list(shares) == ["discrimination", "robustness"]
    assert (shares["discrimination"].observed, shares["robustness"].observed) == (1, 1)
    assert entry.payload == {
        "prompt_digest": facts.digest,
        "engine": "rules",
        "engine_digest": facts.identity,
        "pairs": 5,
        "pairs_digest": tested.digest,
        "flags_digest": digest_json([1, 1, 0, 1, 0]),
        "protocol": protocol_digest(workspace),
        "verdict": "PASS",
        "checks": {
            name: {
                "observed": "1.0000",
                "limit": f"{one.limit:.4f}",
                "threshold": f"{one.threshold:.4f}",
                "verdict": "PASS",
            }
            for name, one in shares.items()
        },
    }
    assert not any(one.holds is False for one in audit_workspace(workspace).findings)


def test_the_command_exits_by_the_gate(workspace, tmp_path):
    """With 100 unless every judge passes; the document and the data have it."""
    write(tmp_path)
    new_prompt(workspace, "green", ACTOR, source="green@v1")
    more = (tmp_path, "-m", "green", "-m", "rouge_l", "--resamples", 20)
    assert call(workspace, "dr", *more).exit_code == 0
    claim(workspace, d=0.5)
    page = tmp_path / "page.md"
    done = call(workspace, "dr", *more, "--md", page)
    assert done.exit_code == 100, done.output
    assert "gate of green@v1: INSUFFICIENT" in done.output
    assert "what each judge took" in done.output
    assert "## Gate of green@v1: INSUFFICIENT" in page.read_text()
    data = json.loads(call(workspace, "dr", *more, "--json").stdout)
    (judge,) = data["judges"]
    assert judge["gate"]["verdict"] == "INSUFFICIENT" and judge["gate"]["recorded"]
    asked = {one["aspect"]: one for one in judge["gate"]["checks"]}
    assert asked["discrimination"]["threshold"] == 0.5
    assert judge["calls"] == 5


def test_a_claim_that_cannot_be_meant_is_refused(workspace):
    """By the place of the field."""
    claim(workspace, d=1.5)
    with pytest.raises(LoopError, match=r"judging\.discrimination\.lower_limit"):
        read_protocol(workspace)


def answers(errors_counted, **numbers):
    """Return counts of pairs: significant errors; NaN without a readable answer."""
    significant = np.array(errors_counted, dtype=float)[:, None]
    return JudgeCounts(
        categories=("omission",),
        significant=significant,
        insignificant=0 * significant,
        matched=np.where(np.isnan(significant[:, 0]), np.nan, 1.0),
        statuses=(Status.ANSWERED,) * len(significant),
        numbers={name: np.array(one, dtype=float) for name, one in numbers.items()},
    )


FACTS = JudgeFacts(
    ref="j@v1",
    digest="d" * 64,
    engine="told",
    identity="i" * 64,
    parser=ParserMode.TOLERANT,
)


def test_a_judge_has_its_main_score_with_flags_and_the_numbers_it_gives():
    """One significant error flags; a number that it gives for no pair is left out."""
    said = answers([0, 2, np.nan], score=[np.nan] * 3, rating=[4, np.nan, np.nan])
    scores = [find_score(name) for name in ("errors", "green", "own", "rating")]
    main, rating = score_marked_pairs("j", FACTS, said, scores)
    signed = "j@v1:dddddddd|told:iiiiiiii|parser:tolerant"
    assert (main.name, main.title, main.lower) == ("j", "GREEN-EC of j@v1", True)
    assert main.signature == f"j_errors|{signed}"
    assert main.decision == "flagged where it counts a significant error"
    np.testing.assert_array_equal(main.values, [0, 2, np.nan])
    np.testing.assert_array_equal(main.flags, [0, 1, np.nan])
    assert (rating.name, rating.title) == ("j_rating", "rating of j@v1")
    assert (rating.lower, rating.flags, rating.decision) == (False, None, "")
    np.testing.assert_array_equal(rating.values, [4, np.nan, np.nan])
    (green,) = score_marked_pairs("j", FACTS, said, scores[1:2])
    assert green.signature == f"j_green|{signed}|empty:1"
    assert green.values[:2].tolist() == [1, pytest.approx(1 / 3)]
    counted = replace(
        said,
        categories=(),
        significant=np.empty((3, 0)),
        insignificant=np.empty((3, 0)),
    )
    (bare,) = score_marked_pairs("j", FACTS, counted, scores[3:])
    assert (bare.name, bare.flags) == ("j", None)
    assert hold_marked_answers(
        pairs(), MarkedAnswers("j", FACTS, (bare,), JudgeCost(pairs=3, calls=3)),
        rules(), confidence=0.95,
    ) is None  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "cached", "counted", "tokens"),
    [(3, 2, 5, 120), (3, 2, 4, None), (0, 5, 5, 120), (0, 0, 0, None)],
)
def test_tokens_are_a_sum_only_where_every_answer_has_some(
    asked, cached, counted, tokens
):
    """Stored answers took theirs, too; without a call nothing was waited for."""
    said = JudgeAnswers(
        answers([0] * 5),
        asked,
        cached,
        used=Usage(prompt_tokens=100, completion_tokens=20, answers=counted),
        seconds=2.5,
    )
    twice = [*ROWS, ("b3", *ROWS[4][1:])]
    cost = marked_cost(pairs(twice), said)
    assert (cost.pairs, cost.calls) == (5, asked + cached)
    assert cost.seconds == (2.5 if asked + cached else None)
    assert cost.tokens == tokens

"""A judge's gate as text: plain rows that say what was seen, wanted and lacks."""

from loop.evaluate.gates import GateVerdict
from loop.judge.gate_text import GATE_HEADER, judge_gate_notes, judge_gate_rows
from loop.judge.judge_gates import JudgeAspect, JudgeCheck, JudgeGate

CHECKS = (
    JudgeCheck(
        aspect=JudgeAspect.ANSWERS,
        what="share without a readable answer or a score",
        verdict=GateVerdict.PASS,
        observed=0.004,
        threshold=0.01,
    ),
    JudgeCheck(
        aspect=JudgeAspect.UNITS,
        what="units with a score and a rating",
        verdict=GateVerdict.PASS,
        observed=30,
        threshold=20,
    ),
    JudgeCheck(
        aspect=JudgeAspect.AGREEMENT,
        what="tau-b with the mean of 3 raters",
        verdict=GateVerdict.INSUFFICIENT,
        observed=0.65,
        limit=0.58,
        threshold=0.6,
        reason="lower limit 0.580 does not reach 0.6",
        units_needed=62,
        needs="needs about 62 more units",
        suspicious="its tau-b with one rater is above that of two raters",
    ),
    JudgeCheck(
        aspect=JudgeAspect.PARENT,
        what="tau-b minus the parent's",
        verdict=GateVerdict.FAIL,
        observed=-0.2,
        limit=-0.3,
        threshold=-0.05,
        reason="too low",
    ),
    JudgeCheck(
        aspect=JudgeAspect.COPIES,
        what="share of equal texts with the best score",
        verdict=GateVerdict.INSUFFICIENT,
        threshold=1.0,
        reason="no pair of equal texts was asked",
    ),
)
GATE = JudgeGate(checks=CHECKS, pairs=62, used=60, units=30, raters=3)


def test_every_check_is_a_row_with_what_it_needs():
    """Shares in percent, counts as counts, differences with their sign."""
    rows = judge_gate_rows(GATE)
    assert {len(one) for one in (*rows, GATE_HEADER)} == {6}
    assert [one.verdict for one in rows] == [one.verdict.value for one in CHECKS]
    assert [one[2:] for one in rows] == [
        ("0.4 %", "", "at most 1 %", ""),
        ("30", "", "at least 20", ""),
        (
            *("0.650", "0.580", "at least 0.6"),
            "lower limit 0.580 does not reach 0.6. needs about 62 more units",
        ),
        ("\N{MINUS SIGN}0.200", "\N{MINUS SIGN}0.300",
         "above \N{MINUS SIGN}0.05", "too low"),
        ("\N{EN DASH}", "", "100 %", "no pair of equal texts was asked"),
    ]  # fmt: skip


def test_the_notes_say_what_it_rests_on_and_what_is_suspicious():
    """A judge too good to be true is said to be so beside its verdict."""
    assert judge_gate_notes(GATE) == (
        "The judge's gate is FAIL: 2 PASS, 1 FAIL, 2 INSUFFICIENT.",
        "60 of 62 pairs have a score and a rating; they are of 30 units, "
        "rated by 3 raters.",
        "Suspicious: its tau-b with one rater is above that of two raters.",
    )


def test_a_threshold_of_0_is_one():
    """Not a single missing answer is allowed, and any agreement will do."""
    checks = [
        JudgeCheck(aspect=aspect, what="x", verdict=GateVerdict.PASS, threshold=0.0)
        for aspect in (
            JudgeAspect.ANSWERS,
            JudgeAspect.AGREEMENT,
            JudgeAspect.DISCRIMINATION,
        )
    ]
    gate = JudgeGate(checks=tuple(checks), pairs=1, used=1, units=1, raters=1)
    assert [one.wanted for one in judge_gate_rows(gate)] == [
        "at most 0 %",
        "at least 0",
        "at least 0",
    ]
    assert judge_gate_notes(gate)[1] == (
        "1 of 1 pairs have a score and a rating; they are of 1 units, rated by 1 rater."
    )

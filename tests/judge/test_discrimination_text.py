"""Discrimination in words and data: each number in its cell, field and note."""

from xml.etree import ElementTree

import numpy as np
import pytest

from loop import __version__
from loop.core.errors import DataError
from loop.evaluate.gates import GateVerdict
from loop.judge.discrimination import (
    Discrimination,
    FlaggedShare,
    KindResult,
    PairScores,
    StepCount,
    measure_discrimination,
    require_apart,
)
from loop.judge.discrimination_text import (
    CONVENTIONS,
    DiscriminationDocument,
    HeldJudge,
    cost_rows,
    count_pairs,
    discrimination_data,
    discrimination_header,
    discrimination_notes,
    discrimination_rows,
    discrimination_svg,
    kind_rows,
)
from loop.judge.judge import JudgeFacts
from loop.judge.judge_gates import JudgeAspect, JudgeCheck, MarkedGate
from loop.judge.marked_judges import MarkedAnswers
from loop.judge.meta_evaluation import JudgeCost
from loop.prompts.outputs.green_sections import ParserMode
from loop.stats.intervals import Estimate, Interval
from tests.documents.figures_scenes import SVG
from tests.judge.test_discrimination import pairs, scores

NONE = Estimate(None, None, None, "not estimable")


def said(name, *, lower=False, decision=""):
    """Return what a metric says, without its values."""
    return PairScores(
        name=name,
        title=name.upper(),
        lower=lower,
        values=np.ones(5),
        signature=f"{name}|x",
        decision=decision,
    )


def flagged(hits, of):
    """Return a share whose limits are 0.1 from it."""
    value = hits / of if of else 0.5
    return FlaggedShare(hits, of, Interval(value - 0.1, value + 0.1))


@pytest.fixture
def found():
    """Return a judge with decisions and a metric without any."""
    judge = Discrimination(
        scores=said("judge", decision="flagged where it counts an error"),
        undefined=1,
        auc=Estimate(0.9, 0.8, 0.95),
        paired=Estimate(0.85, None, None, "one reference"),
        paired_references=7,
        discrimination=flagged(3, 4),
        robustness=flagged(1, 2),
        steps=StepCount(1, 6, Interval(0.01, 0.6)),
        worse_steps=StepCount(0, 2, Interval(0.0, 0.8)),
        kinds=(
            KindResult("wrong_side", True, 4, Estimate(0.7, 0.6, 0.8), flagged(3, 4)),
            KindResult("style", False, 2, None, flagged(1, 2)),
        ),
    )
    metric = Discrimination(
        scores=said("metric", lower=True),
        undefined=0,
        auc=Estimate(0.6, 0.5, 0.7),
        paired=NONE,
        paired_references=0,
        discrimination=None,
        robustness=None,
        steps=StepCount(0, 0, Interval(0.0, 1.0)),
        worse_steps=StepCount(0, 0, Interval(0.0, 1.0)),
        kinds=(
            KindResult("wrong_side", True, 5, Estimate(0.65, 0.6, 0.8), None),
            KindResult("style", False, 3, None, None),
        ),
    )
    return judge, metric


def test_a_metric_is_a_row(found):
    """A dash for what is not decided, or cannot be estimated."""
    rows = [
        (
            *("JUDGE", "0.900 [0.800, 0.950]", "0.850", "0.750 [0.650, 0.850]"),
            *("0.500 [0.400, 0.600]", "+0.250", "0.625", "1 of 6", "0 of 2"),
        ),
        ("METRIC", "0.600 [0.500, 0.700]", *"------", "-"),
    ]
    assert discrimination_rows(found) == rows
    assert discrimination_header(found) == (
        *("metric", "AUC", "paired", "D", "R", "bias", "overall", "rises", "worse"),
    )
    assert discrimination_rows(found[1:]) == [rows[1][:-1]]
    assert discrimination_header(found[1:])[-1] == "rises"


def test_a_kind_is_a_row_with_a_cell_of_each_metric(found):
    """AUC and D of a significant kind, R of a harmless one."""
    assert kind_rows(found) == [
        ("wrong side", "significant", "0.700, D 0.750", "0.650"),
        ("style", "harmless", "R 0.500", "-"),
    ]


def gate(verdict):
    """Return a gate with one check that ends so."""
    check = JudgeCheck(
        aspect=JudgeAspect.DISCRIMINATION,
        what="D",
        verdict=verdict,
        observed=0.75,
        limit=0.5,
        threshold=0.8,
        reason="too low",
        needs="more",
    )
    return MarkedGate(checks=(check,))


def held(found, cost, **more):
    """Return a judge whose first scores are those of `found`."""
    facts = JudgeFacts(
        ref="judge@v1",
        digest="d" * 64,
        engine="told",
        identity="i" * 64,
        parser=ParserMode.TOLERANT,
    )
    return HeldJudge(MarkedAnswers("judge", facts, (found.scores,), cost), **more)


COST = JudgeCost(pairs=4, calls=6, seconds=1.0, tokens=9_000)
PASS, FAIL = GateVerdict.PASS, GateVerdict.FAIL


def document(found, *judges):
    """Return a document of the usual pairs."""
    return DiscriminationDocument(
        pairs=pairs(), found=found, judges=judges, resamples=50, seed=3
    )


def test_what_a_judge_took_is_beside_how_good_its_flags_are(found):
    """A dash for what nobody counted; no pair costs nothing."""
    judge, metric = found
    given = document(
        found, held(judge, COST), held(metric, JudgeCost(pairs=0, calls=0))
    )
    blank = "\N{EN DASH}"
    assert cost_rows(given) == [
        ("judge@v1", "0.750", "0.500", "0.625", "4", "1.50", "0.2500", "2,250"),
        ("judge@v1", blank, blank, blank, "0", "-", "-", "-"),
    ]


def test_a_document_passes_where_every_gate_does(found):
    """Or where there is none."""
    judge = found[0]
    for gates, passes in (
        ((None,), True),
        ((PASS, None), True),
        ((PASS, FAIL), False),
        ((GateVerdict.INSUFFICIENT,), False),
    ):
        judges = [
            held(judge, COST, gate=None if one is None else gate(one)) for one in gates
        ]
        assert document(found, *judges).passes is passes


def test_notes_say_what_stands_beside_the_numbers(found):
    """First the gates, then each metric."""
    judge = found[0]
    given = document(
        found,
        held(judge, COST),
        held(judge, COST, gate=gate(FAIL)),
        held(judge, COST, gate=gate(PASS), recorded=True),
    )
    ends = "exact for as many pairs as their references are worth."
    assert discrimination_notes(given) == [
        f"The gate of judge@v1 is FAIL. Its limits are one-sided, and {ends}",
        "The verdict on judge@v1 is not in the ledger: the workspace has no such "
        "committed version.",
        f"The gate of judge@v1 is PASS. Its limits are one-sided, and {ends}",
        "JUDGE: 1 pair has no score, left out of every number.",
        "JUDGE: flagged where it counts an error.",
        "METRIC makes no decision, so it has no D and R; name a threshold for it with "
        "--threshold.",
    ]


def test_the_data_hold_everything_under_its_name(found):
    """Judges with and without a gate, metrics with and without a decision."""
    judge, _ = found
    given = document(
        found, held(judge, COST), held(judge, COST, gate=gate(FAIL), recorded=True)
    )
    assert count_pairs(given.pairs) == (2, 3, 2)
    data = discrimination_data(given)
    judges, metrics = data.pop("judges"), data.pop("metrics")
    assert data == {
        "source": "",
        "references": 2,
        "significant": 3,
        "harmless": 2,
        "resamples": 50,
        "seed": 3,
        "conventions": list(CONVENTIONS),
        "notes": discrimination_notes(given),
        "tool": f"ranloop {__version__}",
    }
    plain = {
        "judge": "judge@v1",
        "prompt_digest": "d" * 64,
        "engine": "told",
        "pairs": 4,
        "calls": 6,
        "seconds_per_pair": 0.25,
        "tokens_per_pair": 2250.0,
        "gate": None,
    }
    checks = [
        {
            "aspect": "discrimination",
            "verdict": "FAIL",
            "observed": 0.75,
            "limit": 0.5,
            "threshold": 0.8,
            "reason": "too low",
            "needs": "more",
        }
    ]
    told = {"verdict": "FAIL", "recorded": True, "checks": checks}
    assert judges == [plain, {**plain, "gate": told}]

    def limits(value, low, high, note=""):
        return {"value": value, "low": low, "high": high, "note": note}

    wrong = {"value": 0.75, "low": 0.65, "high": 0.85, "hits": 3, "pairs": 4}
    right = {"value": 0.5, "low": 0.4, "high": 0.6, "hits": 1, "pairs": 2}
    no_steps = {"violated": 0, "steps": 0, "low": 0.0, "high": 1.0}
    assert metrics == [
        {
            "metric": "judge",
            "title": "JUDGE",
            "better": "higher",
            "signature": "judge|x",
            "decision": "flagged where it counts an error",
            "undefined": 1,
            "auc": limits(0.9, 0.8, 0.95),
            "paired": {**limits(0.85, None, None, "one reference"), "references": 7},
            "D": wrong,
            "R": right,
            "bias": 0.25,
            "overall": 0.625,
            "rises": {"violated": 1, "steps": 6, "low": 0.01, "high": 0.6},
            "rises_when_worse": {"violated": 0, "steps": 2, "low": 0.0, "high": 0.8},
            "kinds": [
                {
                    "kind": "wrong_side",
                    "significant": True,
                    "pairs": 4,
                    "auc": limits(0.7, 0.6, 0.8),
                    "share": wrong,
                },
                {
                    "kind": "style",
                    "significant": False,
                    "pairs": 2,
                    "auc": None,
                    "share": right,
                },
            ],
        },
        {
            "metric": "metric",
            "title": "METRIC",
            "better": "lower",
            "signature": "metric|x",
            "decision": "",
            "undefined": 0,
            "auc": limits(0.6, 0.5, 0.7),
            "paired": {**NONE._asdict(), "references": 0},
            "D": None,
            "R": None,
            "bias": None,
            "overall": None,
            "rises": no_steps,
            "rises_when_worse": no_steps,
            "kinds": [
                {
                    "kind": "wrong_side",
                    "significant": True,
                    "pairs": 5,
                    "auc": limits(0.65, 0.6, 0.8),
                    "share": None,
                },
                {
                    "kind": "style",
                    "significant": False,
                    "pairs": 3,
                    "auc": None,
                    "share": None,
                },
            ],
        },
    ]


def test_the_figure_names_each_metric_that_decides(found):
    """In their order, numbered; those without a decision are not drawn."""
    judge, metric = found
    flags = [1, 0, 0, 1, 0]
    other = measure_discrimination(pairs(), scores([1, 2, 3, 4, 5], flags), resamples=2)
    drawn = discrimination_svg([metric, judge, other])
    assert "1 JUDGE: D 0.750, R 0.500. 2 M: D 0.667, R 1.000" in drawn
    assert drawn.count("<circle") == 2
    assert "No metric makes decisions" not in drawn


@pytest.mark.parametrize("number", [1, 2])
def test_how_many_references_are_shared_is_said(number):
    """In good English, by ids and by texts."""
    tested = pairs()
    rows = [
        (
            f"z{n}",
            name if n < number else f"z{name}",
            f"New {name}.",
            "x",
            "k",
            mark,
            "1",
        )
        for n, (name, mark) in enumerate((("a", "yes"), ("b", "no")))
    ]
    words = "1 reference of the tested pairs is among those that thresholds"
    if number == 2:
        words = "2 references of the tested pairs are among those that thresholds"
    with pytest.raises(DataError) as refused:
        require_apart(tested, pairs(rows))
    assert str(refused.value) == (
        f"{words} would be chosen on, so that the numbers would be too good. Choose "
        "them on variants of other reports."
    )


def test_each_metric_is_drawn_where_its_numbers_are(found):
    """R to the right, D upwards, a cross of limits; the diagonal is where both are 0.

    The square is 320 wide, its lower left corner at (56, 350).
    """
    tree = ElementTree.fromstring(discrimination_svg(found[:1]))

    def numbers(one, *names):
        return tuple(round(float(one.get(name)), 6) for name in names)

    ends = ("x1", "y1", "x2", "y2")
    lines = [numbers(one, *ends) for one in tree.iter(f"{SVG}line")]
    grid = []
    for place in (0, 0.2, 0.4, 0.6, 0.8, 1):
        at = 320 * place
        grid += [(56 + at, 30, 56 + at, 350), (56, 350 - at, 376, 350 - at)]
    right, up = 56 + 320 * 0.5, 350 - 320 * 0.75
    cross = [
        (56 + 320 * 0.4, up, 56 + 320 * 0.6, up),
        (right, 350 - 320 * 0.65, right, 350 - 320 * 0.85),
    ]
    wanted = [*grid, (56, 350, 376, 30), *cross]
    assert lines == [pytest.approx(one) for one in wanted]
    (circle,) = tree.iter(f"{SVG}circle")
    assert numbers(circle, "cx", "cy") == pytest.approx((right, up))
    said = [one.text for one in tree.iter(f"{SVG}text")]
    assert said == [
        *(f"{tick / 10:.1f}" for tick in (0, 2, 4, 6, 8, 10) for _ in range(2)),
        "D, flagged of the significant pairs",
        "R, unflagged of the harmless pairs",
        "1",
        "1 JUDGE: D 0.750, R 0.500",
    ]

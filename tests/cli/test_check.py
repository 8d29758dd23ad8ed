"""How the check of a draft is printed and given as JSON: whole, for either engine."""

import json
from dataclasses import replace

import pytest

from loop.cli import check as printed
from loop.core.check_findings import Finding, FindingSeverity
from loop.core.records import Value
from loop.evaluate.compare import ShareDifference
from loop.evaluate.flips import Flips
from loop.review.revise.changes import LabelCheck, ShareCheck, ShareCriterion
from loop.review.revise.check import Check, CheckTarget, TargetOutcome, Unanswered
from loop.review.revise.copies import Copy
from loop.review.revise.draws import (
    DrawEvidence,
    DrawnLabel,
    HarmTest,
    MarginTest,
    MeanDifference,
    ShareName,
    Surplus,
    TargetDraws,
)
from loop.review.revise.forecast import Forecast, LeastLoss
from loop.review.submit import Anchor
from loop.stats.intervals import Interval

MARGIN, COUNTS, NOTHING = ShareCriterion


def share(lost, gained, n, bound, basis=MARGIN):
    """Return the check of one share."""
    difference = ShareDifference(lost, gained, n)
    return ShareCheck(difference=difference, bound=bound, margin=0.05, basis=basis)


def label(name, accuracy, sensitivity):
    """Return the check of one label."""
    return LabelCheck(label=name, accuracy=accuracy, sensitivity=sensitivity)


def target(case, progress, before="absent", after="present", expected="present"):
    """Return what became of one targeted case."""
    return CheckTarget(
        case_id=case,
        label="edema",
        expected=expected,
        before=before,
        after=after,
        progress=progress,
    )


CHECK = Check(
    cases=1200,
    targets=(
        target("c1", TargetOutcome.FIXED),
        target("c2", TargetOutcome.FIXED),
        target("c3", TargetOutcome.IMPROVED),
        target("c4", TargetOutcome.ALREADY_RIGHT),
        target("c5", TargetOutcome.WORSE, "uncertain", "absent"),
        target("c6", TargetOutcome.UNDECIDED, "", "", ""),
    ),
    broken_anchors=(Anchor("c8", "edema", Value.ABSENT),),
    unanswered_anchors=(Anchor("c9", "edema", None),),
    missing_anchors=(Anchor("gone", "mass", Value.PRESENT),),
    labels=(
        label("edema", share(2, 3, 900, -0.004), share(1, 0, 12, -0.25, COUNTS)),
        label("mass", share(0, 0, 900, -0.001), share(0, 0, 0, None, NOTHING)),
        label("nodule", share(0, 1, 40, -0.05, COUNTS), share(0, 0, 40, -0.04)),
        label("hernia", share(9, 1, 900, -0.06), share(0, 0, 0, None, NOTHING)),
    ),
    unanswered=Unanswered(0.0, 0.01, 0.02),
)


def rows(text):
    """Return the cells of each printed line; those of a table lie two spaces apart."""
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in text.splitlines()
    ]


def test_a_check_of_an_engine_that_repeats_itself_is_printed_whole(capsys):
    """Labels with a change; then by what each was judged, and the targets by name."""
    printed.show_check(CHECK)
    blank, title, header, _, *rest = rows(capsys.readouterr().out)
    assert blank == []
    assert title == [
        "check on 1,200 cases, right answers against the parent",
    ]
    assert header == [
        *("label", "answers", "lower limit", "positives", "lower limit", "verdict"),
    ]
    assert rest == [
        ["edema", "+3 -2 of 900", "-0.4 %", "+0 -1 of 12", "-25.0 % *", "WORSE"],
        ["nodule", "+1 -0 of 40", "-5.0 % *", "+0 -0 of 40", "-4.0 %", "ok"],
        ["hernia", "+1 -9 of 900", "-6.0 %", "+0 -0 of 0", "not judged", "WORSE"],
        [
            "* judged by counts: too few cases for the margin, so no more may be lost "
            "than gained"
        ],
        ["accuracy: nodule"],
        ["sensitivity: edema"],
        ["not judged: no case that the reference can judge"],
        ["sensitivity: mass, hernia"],
        ["targeted cases: 2 fixed, 1 improved, 1 worse, 1 already right, 1 undecided"],
        ["worse: c5 edema uncertain -> absent, should be present"],
        ["undecided: c6 edema not asked -> not asked, should be said by the verdict"],
        [
            "note: anchored case gone (mass) is not in the cohort any more and was not "
            "checked"
        ],
    ]


def test_a_check_that_changes_nothing_prints_no_table(capsys):
    """And says in one word that every label was judged by counts."""
    few = share(0, 0, 9, -0.2, COUNTS)
    same = replace(
        CHECK,
        cases=1,
        targets=(),
        missing_anchors=(),
        labels=(label("edema", few, few), label("mass", few, few)),
    )
    printed.show_check(same)
    assert rows(capsys.readouterr().out) == [
        [],
        ["check on 1 case, right answers against the parent"],
        [
            "* judged by counts: too few cases for the margin, so no more may be lost "
            "than gained"
        ],
        ["accuracy: every label"],
        ["sensitivity: every label"],
        ["targeted cases: none named"],
    ]


@pytest.mark.parametrize(("lost", "gained"), [(1, 0), (0, 1)])
def test_a_change_of_positives_alone_is_shown(capsys, lost, gained):
    """Also where as many answers were gained as lost."""
    one = label("edema", share(0, 0, 90, -0.01), share(lost, gained, 30, -0.01))
    printed.show_check(replace(CHECK, labels=(one,)))
    said = capsys.readouterr().out
    assert f"+{gained} -{lost} of 30" in said


def test_a_check_as_json_holds_every_part(capsys):
    """What is in no table too: anchors, margins and shares without an answer."""
    data = json.loads(json.dumps(printed.check_data(CHECK)))
    edema = data["labels"][0]
    assert edema == {
        "label": "edema",
        "passed": False,
        "gained": 3,
        "lost": 2,
        "n": 900,
        "bound": -0.004,
        "margin": 0.05,
        "basis": "margin",
        "sensitivity": {
            "gained": 0,
            "lost": 1,
            "n": 12,
            "bound": -0.25,
            "margin": 0.05,
            "basis": "counts",
        },
    }
    assert [one["passed"] for one in data["labels"]] == [False, True, True, False]
    anchor = {"case_id": "c8", "label": "edema", "value": "absent", "counts": None}
    assert {name: value for name, value in data.items() if name != "labels"} == {
        "passed": False,
        "cases": 1200,
        "targets": [
            {
                "case_id": one.case_id,
                "label": "edema",
                "expected": one.expected,
                "before": one.before,
                "after": one.after,
                "progress": one.progress.value,
            }
            for one in CHECK.targets
        ],
        "broken_anchors": [anchor],
        "unanswered_anchors": [{**anchor, "case_id": "c9", "value": None}],
        "missing_anchors": [
            {**anchor, "case_id": "gone", "label": "mass", "value": "present"}
        ],
        "unanswered": {"before": 0.0, "after": 0.01, "most": 0.02},
    }


def harm(name, lost, gained, n, *, p=0.5, harmed=False, least=None):
    """Return a test for harm."""
    return HarmTest(
        share=name,
        difference=MeanDifference(lost, gained, n),
        p=p,
        harmed=harmed,
        least=least,
    )


def margin(name, bound, *, reachable=True):
    """Return a test against a margin of 5 %."""
    return MarginTest(
        share=name,
        difference=MeanDifference(1, 1, 90),
        bound=bound,
        margin=0.05,
        reachable=reachable,
    )


ACCURACY, SENSITIVITY, SPECIFICITY = ShareName
EVIDENCE = DrawEvidence(
    draws=3,
    labels=(
        DrawnLabel(
            label="edema",
            churn=Flips(90, 9, Interval(0.05, 0.18), 0.06),
            harm=(
                harm(SENSITIVITY, 6.0, 1.5, 30, p=0.012, harmed=True, least=0.11),
                harm(SPECIFICITY, 0.0, 1.0, 60, least=0.07),
            ),
            margins=(margin(ACCURACY, -0.06), margin(SENSITIVITY, -0.21)),
        ),
        DrawnLabel(
            label="mass",
            churn=Flips(90, 0, Interval(0.0, 0.04), 0.02),
            harm=(harm(SENSITIVITY, 0, 0, 2, p=None),),
            margins=(
                margin(ACCURACY, -0.01),
                margin(SENSITIVITY, -0.4, reachable=False),
            ),
        ),
        DrawnLabel(
            label="nodule",
            churn=None,
            harm=(harm(SENSITIVITY, 0, 0, 0, p=None),),
            margins=(
                margin(ACCURACY, -0.02),
                margin(SENSITIVITY, -0.03, reachable=False),
            ),
        ),
    ),
    unjudged=("hernia", "scar"),
    rare=("mass", "nodule"),
    together=DrawnLabel(
        label="",
        churn=None,
        harm=(harm(SENSITIVITY, 3.0, 0.0, 4, p=0.04, harmed=True, least=0.9),),
        margins=(),
    ),
    tests=7,
    tested=3,
    alpha=0.0333,
    confidence=0.97,
    look=1,
    targets=(TargetDraws("c1", "edema", 1, 3, 3),),
    surplus=Surplus(1, 3, 3, Interval(-0.125, 0.9), 0.5),
)
DRAWN = replace(CHECK, labels=(), over_draws=EVIDENCE, cases=90, missing_anchors=())


def test_a_check_over_draws_is_printed_whole(capsys):
    """What the parent does by itself first; then each share, and the surplus."""
    printed.show_check(replace(DRAWN, targets=CHECK.targets[:1]))
    _, title, churn, header, _, *rest = rows(capsys.readouterr().out)
    assert title == [
        "check on 90 cases, 3 draws of the parent and of the draft, asked in turns"
    ]
    assert churn == [
        "the parent against itself: 4.0 % of answers differ between two draws"
    ]
    assert header == [
        *("label", "parent flips", "sensitivity", "specificity"),
        *("accuracy, lower limit", "sensitivity, lower limit", "verdict"),
    ]
    assert rest == [
        [
            *("edema", "9 of 90", "-15.0 % of 30", "+1.7 % of 60", "-6.0 %"),
            *("-21.0 %", "WORSE"),
        ],
        ["mass", "0 of 90", "+0.0 % of 2", "-1.0 %", "-40.0 % *", "INSUFFICIENT"],
        ["nodule", "-2.0 %", "-3.0 %", "not worse"],
        ["2 rare labels", "-75.0 % of 4", "WORSE"],
        ["* too few cases to show that no margin was lost"],
        ["not judged, no case that the reference can judge: hernia, scar"],
        [
            "evidence of harm: edema (sensitivity -15.0 % of 30, p 0.012); the 2 rare "
            "labels together (sensitivity -75.0 % of 4, p 0.040)"
        ],
        [
            "7 tests, 3 of which could find anything, at 3.3 % for all together at "
            "look 1; least loss of sensitivity found with a chance of 80 %: edema 11 %"
        ],
        [
            "targeted cases: right in 3 of 3 readings, the parent asked again in 1: "
            "surplus +67 % (-12 to +90 %), not shown"
        ],
        ["targeted cases: 1 fixed"],
    ]


def test_what_one_draw_cannot_tell_is_not_printed(capsys):
    """No churn, no surplus, no harm and no least loss: each says so or is away."""
    quiet = DrawnLabel(label="edema", churn=None, harm=(), margins=())
    alone = replace(
        EVIDENCE, draws=1, labels=(quiet,), unjudged=(), together=None, surplus=None
    )
    printed.show_check(replace(DRAWN, over_draws=alone, targets=()))
    said = rows(capsys.readouterr().out)
    assert said[1] == [
        "check on 90 cases, 1 draw of the parent and of the draft, asked in turns"
    ]
    assert said[4:] == [
        ["edema", "not worse"],
        ["* too few cases to show that no margin was lost"],
        ["evidence of harm: none"],
        [
            "7 tests, 3 of which could find anything, at 3.3 % for all together at "
            "look 1; least loss of sensitivity found with a chance of 80 %: none"
        ],
        ["targeted cases: none named"],
    ]


def test_a_surplus_above_zero_is_shown(capsys):
    """By its lower limit, which must lie above zero."""
    surplus = EVIDENCE.surplus
    for low, word in ((0.0, "not shown"), (0.001, "shown")):
        sure = surplus._replace(interval=Interval(low, 0.9))
        printed.show_check(
            replace(DRAWN, over_draws=replace(EVIDENCE, surplus=sure), targets=())
        )
        assert f"%), {word}\n" in capsys.readouterr().out


def test_a_check_over_draws_as_json_has_what_the_records_have():
    """In place of the labels of an engine that repeats itself."""
    data = json.loads(json.dumps(printed.check_data(DRAWN)))
    assert "labels" not in data
    drawn = data["over_draws"]
    assert drawn["labels"][0] == {
        "label": "edema",
        "verdict": "worse",
        "churn": {
            "n": 90,
            "flipped": 9,
            "interval": [0.05, 0.18],
            "disagreement": 0.06,
        },
        "harm": [
            {
                "share": "sensitivity",
                "difference": {"lost": 6.0, "gained": 1.5, "n": 30},
                "p": 0.012,
                "harmed": True,
                "least": 0.11,
            },
            {
                "share": "specificity",
                "difference": {"lost": 0.0, "gained": 1.0, "n": 60},
                "p": 0.5,
                "harmed": False,
                "least": 0.07,
            },
        ],
        "margins": [
            {
                "share": name,
                "difference": {"lost": 1, "gained": 1, "n": 90},
                "bound": bound,
                "margin": 0.05,
                "reachable": True,
                "shown": False,
            }
            for name, bound in (("accuracy", -0.06), ("sensitivity", -0.21))
        ],
    }
    assert [one["churn"] is None for one in drawn["labels"]] == [False, False, True]
    assert (drawn["together"]["label"], drawn["together"]["verdict"]) == ("", "worse")
    assert drawn["targets"] == [
        {"case_id": "c1", "label": "edema", "before": 1, "after": 3, "draws": 3}
    ]
    assert drawn["surplus"] == {
        "before": 1,
        "after": 3,
        "readings": 3,
        "interval": [-0.125, 0.9],
        "least": 0.5,
        "shown": False,
    }
    few = replace(EVIDENCE, together=None, surplus=None)
    drawn = printed.check_data(replace(DRAWN, over_draws=few))["over_draws"]
    assert (drawn["together"], drawn["surplus"]) == (None, None)


FORECAST = Forecast(
    parent="extractor@v1",
    draft="extractor@draft",
    cohort="dev",
    engine="vllm:m",
    draws=3,
    max_draws=9,
    cases=1,
    requests=1234,
    prompt_tokens=56789,
    output_tokens=2345,
    cost=1234.5,
    currency="EUR",
    counted="exact",
    churn="measured on run r1",
    losses=(
        LeastLoss("edema", SENSITIVITY, 30, 0.114),
        LeastLoss("edema", SPECIFICITY, 60, 0.07),
        LeastLoss("mass", SPECIFICITY, 88, None),
    ),
)


def test_what_a_check_would_take_and_find_is_printed_whole(capsys):
    """Nothing is sent; a share that no loss could show says so."""
    printed.show_forecast(FORECAST, as_json=False)
    assert rows(capsys.readouterr().out) == [
        ["check of extractor@draft against extractor@v1 on dev with vllm:m"],
        ["NOTHING WAS SENT"],
        ["draws", "3 of each, 1 case (up to 9 while undecided)"],
        ["requests", "1,234 at most: what is stored already is not sent"],
        ["tokens", "56,789 prompt, 2,345 output (exact)"],
        ["cost", "1,234.50 EUR"],
        ["churn", "measured on run r1"],
        ["least loss that would be found with a chance of 80 %"],
        ["label", "sensitivity", "specificity"],
        ["-----", "-----------", "------------------"],
        ["edema", "11 % of 30", "7 % of 60"],
        ["mass", "not even all of 88"],
    ]


def test_a_forecast_without_a_draft_a_price_or_chance_is_shorter(capsys):
    """A draft as long as its parent; an engine that repeats itself finds all."""
    bare = replace(
        FORECAST, draft="extractor@v1", max_draws=3, cost=None, churn="", losses=()
    )
    printed.show_forecast(bare, as_json=False)
    assert rows(capsys.readouterr().out) == [
        ["check of a draft as long against extractor@v1 on dev with vllm:m"],
        ["NOTHING WAS SENT"],
        ["draws", "3 of each, 1 case"],
        ["requests", "1,234 at most: what is stored already is not sent"],
        ["tokens", "56,789 prompt, 2,345 output (exact)"],
        ["finds", "every answer that changed: this engine repeats itself"],
    ]


def test_a_forecast_as_json_says_that_nothing_was_sent(capsys):
    """With each loss as an object."""
    printed.show_forecast(FORECAST, as_json=True)
    data = json.loads(capsys.readouterr().out)
    losses = data.pop("losses")
    assert losses[2] == {
        "label": "mass",
        "share": "specificity",
        "n": 88,
        "least": None,
    }
    assert (len(losses), data.pop("sent")) == (3, 0)
    assert data == {
        "parent": "extractor@v1",
        "draft": "extractor@draft",
        "cohort": "dev",
        "engine": "vllm:m",
        "draws": 3,
        "max_draws": 9,
        "cases": 1,
        "requests": 1234,
        "prompt_tokens": 56789,
        "output_tokens": 2345,
        "cost": 1234.5,
        "currency": "EUR",
        "counted": "exact",
        "churn": "measured on run r1",
    }


def test_what_lint_and_the_search_for_copies_found_is_one_line_each(capsys):
    """With where it stands; of a copy never the words."""
    printed.show_lint(
        [
            Finding(check="x", severity=severity, what=what, where=where)
            for severity, what, where in (
                (FindingSeverity.BROKEN, "is empty", "edema"),
                (FindingSeverity.WARNING, "is long", "guides"),
            )
        ]
    )
    printed.show_copies([Copy("edema, term 2", "dev", "c7", 6)])
    assert capsys.readouterr().out.splitlines() == [
        "error: edema: is empty",
        "warning: guides: is long",
        "warning: edema, term 2: 6 or more consecutive words also occur in case c7 of "
        "dev; say it in your own words",
    ]

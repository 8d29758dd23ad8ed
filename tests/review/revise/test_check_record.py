"""What a check rests on: each part that changed is named, and only that."""

import hashlib
import json
from dataclasses import fields, replace

import pytest

from loop.core.records import Value
from loop.evaluate.compare import ShareDifference
from loop.review.revise.changes import Changes, LabelCheck, ShareCheck, ShareCriterion
from loop.review.revise.check import Check, CheckTarget, TargetOutcome, Unanswered
from loop.review.revise.check_record import (
    Checked,
    CheckInputs,
    Recalled,
    asking_data,
    digest_anchors,
    evidence,
    find_check,
    name_changes,
    read_asking,
    recall_check,
    summarise,
)
from loop.review.revise.draft_files import beside
from loop.review.revise.draws import (
    DrawEvidence,
    DrawnLabel,
    HarmTest,
    MarginTest,
    MeanDifference,
    ShareName,
    Surplus,
)
from loop.review.revise.tries import TriesCount
from loop.review.submit import Anchor
from loop.run.asking import EngineOptions
from loop.stats.intervals import Interval
from tests.review.revise.stepping import FLUID, OTHER, begin, check, overtake

INPUTS = CheckInputs(
    draft_digest="a",
    parent_digest="b",
    cohort="dev",
    cohort_digest="c",
    reference=1,
    reference_digest="d",
    protocol_digest="e",
    verdicts=("v1",),
    anchors_digest="f",
    not_comparable=(),
)

NAMES = {"cohort", "reference"}
"""What only says which: their digests decide."""


def test_a_check_holds_while_nothing_changed():
    """The same values are no change."""
    assert list(name_changes(INPUTS, replace(INPUTS))) == []


@pytest.mark.parametrize(
    "name", sorted({one.name for one in fields(CheckInputs)} - NAMES)
)
def test_each_part_that_changed_is_named_alone(name):
    """Who has to check anew reads why; a part nobody compares would hide it."""
    several = name in ("verdicts", "not_comparable")
    now = replace(INPUTS, **{name: ("v2",) if several else "other"})
    (line,) = name_changes(INPUTS, now)
    everything = replace(
        now, **{one.name: "x" for one in fields(INPUTS) if "digest" in one.name}
    )
    assert line in name_changes(INPUTS, everything)
    assert len({*name_changes(INPUTS, everything)}) >= 6


def test_a_check_of_before_the_labels_were_noted_holds():
    """What was not written down then cannot have changed."""
    then = replace(INPUTS, not_comparable=None)
    assert list(name_changes(then, replace(INPUTS, not_comparable=("edema",)))) == []
    now = replace(INPUTS, not_comparable=("edema", "fracture"))
    (line,) = name_changes(INPUTS, now)
    assert line.endswith(": edema, fracture")
    (line,) = name_changes(now, INPUTS)
    assert line.endswith(": none")


def test_pins_are_known_by_what_is_right_in_them():
    """In any order; a value or a count that is another makes the check an old one."""
    pins = (
        Anchor("a", "edema", None),
        Anchor("a", "fracture", Value.PRESENT),
        Anchor("b", "severity", None, (1, 0)),
    )
    told = [
        ["a", "edema", ""],
        ["a", "fracture", "present"],
        ["b", "severity", "", 1, 0],
    ]
    spelled = json.dumps(told, separators=(",", ":")).encode()
    assert digest_anchors(pins) == hashlib.sha256(spelled).hexdigest()
    assert digest_anchors(pins[::-1]) == digest_anchors(pins)
    others = [
        (*pins[:2], pins[2]._replace(counts=(0, 1))),
        (*pins[:2], pins[2]._replace(counts=None)),
        (pins[0]._replace(value=Value.ABSENT), *pins[1:]),
        pins[:2],
    ]
    assert len({digest_anchors(one) for one in (pins, *others)}) == 5


def share(lost, gained, n, *, bound=None, basis=ShareCriterion.COUNTS):
    """Return the check of one share."""
    return ShareCheck(
        difference=ShareDifference(lost, gained, n),
        bound=bound,
        margin=0.02,
        basis=basis,
    )


MARGIN, NOTHING = ShareCriterion.MARGIN, ShareCriterion.NOTHING
LABELS = (
    LabelCheck(
        label="edema",
        accuracy=share(3, 1, 300, bound=-0.03, basis=MARGIN),
        sensitivity=share(2, 0, 9),
    ),
    LabelCheck(
        label="mass",
        accuracy=share(1, 5, 40, bound=0.1, basis=MARGIN),
        sensitivity=share(0, 0, 0, basis=NOTHING),
    ),
)


def target(case_id, progress):
    """Return a target that ended so."""
    return CheckTarget(
        case_id=case_id,
        label="edema",
        expected="present",
        before="absent",
        after="absent",
        progress=progress,
    )


def checked(**changes):
    """Return a check with a little of everything."""
    pin = Anchor("x", "edema", None)
    said = {
        "cases": 300,
        "targets": (
            target("t1", TargetOutcome.FIXED),
            target("t2", TargetOutcome.WORSE),
            target("t3", TargetOutcome.FIXED),
        ),
        "broken_anchors": (pin, pin),
        "unanswered_anchors": (),
        "missing_anchors": (pin,),
        "labels": LABELS,
        "unanswered": Unanswered(0.01, 0.02345, 0.01),
    }
    return Check(**(said | changes))


def test_a_check_is_summed_up_in_counts():
    """No case, no text: what a decision rests on, in the ledger."""
    assert summarise(checked()) == {
        "cases": 300,
        "targets": {"fixed": 2, "worse": 1},
        "anchors_broken": 2,
        "anchors_unanswered": 0,
        "anchors_missing": 1,
        "lost": 4,
        "gained": 6,
        "labels_worse": ["edema"],
        "judged_by_counts": {"accuracy": [], "sensitivity": ["edema"]},
        "not_judged": {"accuracy": [], "sensitivity": ["mass"]},
        "unanswered": {"before": "0.0100", "after": "0.0234"},
    }


def test_all_that_stands_against_a_draft_is_told():
    """Targets, anchors, each share of each label, and answers that are missing."""
    assert checked().reasons == (
        "targeted cases got worse: t2 edema",
        "anchored cases broke: x edema, x edema",
        "labels that may be worse than before: edema (lost 3, gained 1 of 300, "
        "accuracy), edema (lost 2, gained 0 of 9, sensitivity)",
        "1.0% of the cases have no readable answer from the parent and 2.3% from the "
        "draft (at most 1.0%)",
    )
    at_most = checked(unanswered=Unanswered(0.01, 0.01, 0.01))
    assert len(at_most.reasons) == 3


def evidence_of(surplus=None, harmed=()):
    """Return what draws showed: a surplus, and labels that got worse."""

    def label(name, shares):
        tests = [
            HarmTest(
                share=one,
                difference=MeanDifference(lost=3.0, gained=1.0, n=40),
                p=0.0123,
                harmed=one in harmed,
                least=None,
            )
            for one in shares
        ]
        margins = [
            MarginTest(
                share=one,
                difference=MeanDifference(lost=0.0, gained=0.0, n=40),
                bound=bound,
                margin=0.02,
                reachable=True,
            )
            for one, bound in zip(
                (ShareName.ACCURACY, ShareName.SENSITIVITY), (-0.01, -0.02), strict=True
            )
        ]
        return DrawnLabel(
            label=name, churn=None, harm=tuple(tests), margins=tuple(margins)
        )

    both = (ShareName.SENSITIVITY, ShareName.SPECIFICITY)
    return DrawEvidence(
        draws=3,
        labels=(label("edema", both), label("mass", ())),
        unjudged=(),
        rare=("a", "b"),
        together=label("", both[:1]),
        tests=5,
        tested=4,
        alpha=0.025,
        confidence=0.975,
        look=2,
        targets=(),
        surplus=surplus,
    )


SHORT = Surplus(
    before=2, after=5, readings=12, interval=Interval(-0.0512, 0.61), least=0.5
)


def test_a_check_over_draws_is_summed_up_with_its_procedure():
    """Its second form: what was tested, at which level, and what was not shown."""
    found = checked(
        labels=(), over_draws=evidence_of(SHORT, harmed=(ShareName.SENSITIVITY,))
    )
    assert summarise(found) == {
        "form": 2,
        "procedure": (
            "harm: sign-flip test, Tarone, Holm; surplus: Miettinen-Nurminen by case; "
            "margins: Tango"
        ),
        "draws": 3,
        "look": 2,
        "cases": 300,
        "targets": {"fixed": 2, "worse": 1},
        "surplus": {
            "before": 2,
            "after": 5,
            "readings": 12,
            "interval": ["-0.0512", "0.6100"],
        },
        "anchors_broken": 2,
        "anchors_unanswered": 0,
        "anchors_missing": 1,
        "tests": 5,
        "tested": 4,
        "alpha": "0.025",
        "harmed": ["edema sensitivity", "rare labels sensitivity"],
        "not_shown": {"accuracy": [], "sensitivity": ["edema", "mass"]},
        "unanswered": {"before": "0.0100", "after": "0.0234"},
    }
    assert summarise(checked(over_draws=evidence_of()))["surplus"] is None


def test_what_draws_say_against_a_draft_is_told():
    """The surplus, the harm, and each target only where the protocol wants it."""
    harm = "evidence of harm: edema (specificity -5.0 % of 40, p 0.012)"
    found = checked(
        labels=(), over_draws=evidence_of(SHORT, harmed=(ShareName.SPECIFICITY,))
    )
    short = (
        "the draft is not shown to put targeted cases right: right in 5 of 12 "
        "readings, the parent asked again in 2 (surplus +25 %, -5 to +61 %); so many "
        "readings can show +50 % or more, and more draws (--draws) less"
    )
    assert found.reasons[0] == short
    assert harm in found.reasons
    assert not any("targeted cases got worse" in one for one in found.reasons)
    every = replace(found, every_target=True)
    assert "targeted cases got worse: t2 edema" in every.reasons
    roomless = replace(found, over_draws=evidence_of(SHORT._replace(least=None)))
    assert roomless.reasons[0].endswith(
        "; the parent leaves no room for one that could be shown"
    )
    none = replace(found, over_draws=evidence_of())
    assert none.reasons[0] == "no targeted case could be judged in any draw"
    untargeted = replace(none, targets=())
    assert not any("targeted" in one for one in untargeted.reasons)
    shown = SHORT._replace(interval=Interval(0.01, 0.6))
    assert not any(
        "targeted" in one
        for one in replace(found, over_draws=evidence_of(shown)).reasons
    )
    together = evidence_of(shown, harmed=(ShareName.SENSITIVITY,))
    names = list(together.describe_harm({"edema": "Edema"}))
    assert names == [
        "Edema (sensitivity -5.0 % of 40, p 0.012)",
        "the 2 rare labels together (sensitivity -5.0 % of 40, p 0.012)",
    ]


GROUND = replace(INPUTS, verdicts=("v1", "v2"))


def record(**changes):
    """Return a check as it is kept."""
    said = {
        "draft": "tiny@draft:d1",
        "parent": "tiny@v1",
        "ground": GROUND,
        "engine": "rules",
        "asking": {},
        "lint": (),
        "check": None,
        "changes": Changes(),
        "runs": ("r1", "r2"),
        "objections": (),
        "skipped": ("held",),
        "by": "Ann",
        "time": "2026-01-05T09:00:00Z",
    }
    return Checked(**(said | changes))


def test_what_a_decision_rests_on_is_named():
    """Cohort, engine, runs, what was not looked at, what was tried, and the counts."""
    plain = {
        "cohort": "dev",
        "engine": "rules",
        "runs": ["r1", "r2"],
        "not_searched_for_copies": ["held"],
    }
    assert evidence(record()) == plain
    tried = TriesCount(*range(2, 2 + len(TriesCount._fields)))
    full = record(check=checked(), tried=tried)
    assert evidence(full) == plain | {"tried": tried._asdict()} | summarise(checked())
    assert (record().passed, record(objections=("x",)).passed) == (True, False)


def test_a_kept_check_is_recalled_with_what_changed(setting, store):
    """Of a draft only; another engine, another version and another draft are named."""
    assert recall_check(setting.workspace, store, "tiny@v1") is None
    draft = begin(setting, store, FLUID).draft
    assert recall_check(setting.workspace, store, draft.ref) is None
    made = check(setting, store, draft)
    assert find_check(setting.workspace, draft) == made
    for engine in ("", "rules"):
        found = recall_check(setting.workspace, store, draft.ref, engine)
        assert found == Recalled(made, ())
    found = recall_check(setting.workspace, store, draft.ref, "replay")
    assert found.stale == ("it asked rules, not replay",)
    rival = overtake(setting)
    found = recall_check(setting.workspace, store, draft.ref)
    assert found.stale == (f"{rival.ref} was committed by {OTHER.name} since",)
    beside(setting.workspace, draft).check.write_text("{}")
    assert find_check(setting.workspace, draft) is None
    assert recall_check(setting.workspace, store, draft.ref) is None


def test_how_an_engine_was_asked_is_kept_and_read_back():
    """The thinking only where it is not what is usual."""
    usual = EngineOptions(temperature=0.5, max_tokens=7, seed=3)
    told = asking_data(usual)
    assert told == {
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 3,
        "allow_unconstrained": usual.allow_unconstrained,
        "batch": usual.batch,
    }
    assert read_asking(record(asking=told)) == usual

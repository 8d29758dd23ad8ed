"""The gate of a judge's run: each check decides by the protocol, and says why."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import F1Floors, JudgingRules
from loop.judge.judge_gates import (
    CopyCounts,
    JudgeAspect,
    JudgeEvidence,
    decide_judge_gate,
)
from loop.labels.error_categories import ErrorGroup
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import Ratings, rater_agreement, unit_codes
from loop.score.metrics.base import Direction, MetricOptions
from loop.score.metrics.registry import METRICS
from loop.stats.intervals import Estimate
from loop.stats.rated_agreement import AgreementMeasure, measure_agreement
from loop.stats.resampling import NO_WIDTH
from tests.score.metrics.scenes import make_side

PASS, FAIL, OPEN = GateVerdict.PASS, GateVerdict.FAIL, GateVerdict.INSUFFICIENT


def rated(n=60, raters=3, noise=0.6, seed=0):
    """Return the quality of n pairs, and what raters make of it on 1 to 5."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(1, 5, n)
    points = quality[:, None] + rng.normal(0, noise, (n, raters))
    return quality, Ratings(
        ids=tuple(f"p{row:03d}" for row in range(n)),
        systems=("",) * n,
        raters=tuple("abcdef"[:raters]),
        scores=np.clip(points.round(), 1, 5),
        scale=(1, 5),
    )


def evidence(n=60, noise=0.6, seed=0, **changes):
    """Return a judge that is as good as a rater of the same noise."""
    quality, ratings = rated(n, seed=seed)
    rng = np.random.default_rng(seed + 99)
    found = JudgeEvidence(
        scores=(quality + rng.normal(0, noise, n) - 1) / 4,
        ratings=ratings,
        units=np.arange(n) // 2,
        unanswered=0.0,
        copies=CopyCounts(10, 10),
    )
    return replace(found, **changes)


def decide(found, **said):
    """Return the gate with few resamples."""
    rules = JudgingRules(**{"threshold": 0.5, **said})
    return decide_judge_gate(found, rules, resamples=300)


def check(gate, aspect):
    """Return the only check of an aspect."""
    (found,) = (one for one in gate.checks if one.aspect is aspect)
    return found


def agreement(found, **said):
    """Return the check of agreement."""
    return check(decide(found, **said), JudgeAspect.AGREEMENT)


def interval_of(found):
    """Return tau-b with the interval whose ends are one-sided limits at 0.95."""
    return measure_agreement(
        AgreementMeasure.TAU_B,
        found.scores,
        found.ratings.consensus,
        units=found.units,
        resamples=300,
        confidence=0.9,
    ).value


def test_a_good_judge_passes_every_check():
    """One record a check, each with what was seen and what was wanted."""
    gate = decide(evidence())
    assert [one.aspect for one in gate.checks] == [
        JudgeAspect.ANSWERS,
        JudgeAspect.UNITS,
        JudgeAspect.AGREEMENT,
        JudgeAspect.COPIES,
    ]
    assert gate.verdict is PASS
    assert (gate.pairs, gate.used, gate.units, gate.raters) == (60, 60, 30, 3)
    assert {one.reason for one in gate.checks} == {""}
    assert [one.threshold for one in gate.checks] == [0.01, 20, 0.5, 1]


def test_by_the_rule_point_the_observed_agreement_decides():
    """At the threshold it passes, just above that it fails."""
    value = agreement(evidence()).observed
    assert agreement(evidence(), threshold=value).verdict is PASS
    failed = agreement(evidence(), threshold=value + 1e-6)
    assert failed.verdict is FAIL
    assert failed.reason.startswith("tau-b with the mean of 3 raters 0.")
    assert failed.limit is None


def test_by_the_rule_lower_the_limit_over_units_decides():
    """Above the threshold it passes, wholly below it fails, between it is open."""
    found = evidence()
    value, low, high = interval_of(found)[:3]
    passed = agreement(found, rule="lower", threshold=low)
    assert (passed.verdict, passed.observed, passed.limit) == (PASS, value, low)
    assert agreement(found, rule="lower", threshold=high + 1e-6).verdict is FAIL
    between = agreement(found, rule="lower", threshold=(low + value) / 2)
    assert between.verdict is OPEN
    # Half the width takes four times the units, of which 30 are there.
    assert between.units_needed == pytest.approx(90, abs=1)
    assert between.needs == f"needs about {between.units_needed} more units"
    assert f"lower limit {low:.3f} does not reach" in between.reason


def test_too_low_an_agreement_needs_units_to_be_told_so():
    """No number of them would let it pass, and that is said."""
    found = evidence()
    seen = agreement(found, rule="lower", threshold=0.01)
    gap = (seen.observed - seen.limit) / 4
    opened = agreement(found, rule="lower", threshold=seen.observed + gap)
    assert opened.verdict is OPEN
    assert opened.needs == (
        f"about {opened.units_needed:,} more units would show that it is too low"
    )
    width = interval_of(found).high - seen.observed
    assert opened.units_needed == pytest.approx(30 * (width / gap) ** 2 - 30, abs=1)


def test_at_the_threshold_itself_no_number_of_units_is_told():
    """An interval around the threshold narrows for ever and never leaves it."""
    found = evidence()
    value = agreement(found).observed
    opened = agreement(found, rule="lower", threshold=value)
    assert (opened.verdict, opened.units_needed) == (OPEN, None)
    assert opened.needs == "how many more units it needs cannot be told"


def test_a_score_of_which_less_is_better_is_turned_round():
    """Counts of errors against points, points against counts, counts against counts."""
    found = evidence()
    value = agreement(found).observed
    lower = replace(found, scores=-found.scores, direction=Direction.LOWER)
    assert agreement(lower).observed == value
    counted = replace(found.ratings, scores=6 - found.ratings.scores)
    against_counts = replace(found, ratings=counted, rated=Direction.LOWER)
    assert agreement(against_counts).observed == value
    both = replace(lower, ratings=counted, rated=Direction.LOWER)
    assert agreement(both).observed == value
    assert agreement(replace(found, scores=-found.scores)).observed == -value


def test_alpha_is_of_values_in_one_direction():
    """A judge with the raters' points; a score the other way round has no alpha."""
    found = evidence()
    same = replace(found, scores=found.scores * 4 + 1)
    high = agreement(same, measure="alpha").observed
    assert high > 0.8
    assert agreement(found, measure="alpha").observed < 0
    turned = replace(same, direction=Direction.LOWER)
    opened = agreement(turned, measure="alpha")
    assert (opened.verdict, opened.observed) == (OPEN, None)
    assert "let the protocol measure tau_b" in opened.needs
    both = replace(turned, rated=Direction.LOWER)
    assert agreement(both, measure="alpha").observed == high


def test_better_than_raters_among_themselves_is_suspicious():
    """The mean with single raters is what is held against them, and still may pass."""
    found = evidence()
    among = rater_agreement(found.ratings, resamples=1).tau_b
    leaked = replace(found, scores=found.ratings.scores[:, 0])
    marked = decide(leaked)
    (words,) = marked.suspicious
    assert f"is above that of two raters, {among:.3f}" in words
    assert marked.verdict is PASS
    assert check(marked, JudgeAspect.AGREEMENT).suspicious == words
    poorer = evidence(noise=2)
    assert decide(poorer, threshold=0.1).suspicious == ()


def test_the_mean_of_raters_is_no_bar_for_one_of_them():
    """A judge a little worse than a rater agrees with it better than two raters do."""
    found = evidence(n=400, noise=0.7)
    found = replace(found, scores=np.clip((found.scores * 4 + 1).round(), 1, 5))
    among = rater_agreement(found.ratings, resamples=1).tau_b
    assert agreement(found).observed > among
    assert agreement(found).suspicious == ""


def test_to_agree_as_raters_do_is_not_suspicious():
    """Nor where the same order is found in other numbers."""
    found = evidence()
    first = found.ratings.scores[:, 0]
    alike = replace(found.ratings, scores=np.stack([first, first, 0.1 * first], axis=1))
    same = replace(found, ratings=alike, scores=first / 3)
    assert agreement(same).observed == pytest.approx(1)
    assert agreement(same).suspicious == ""


def test_one_rater_has_nobody_to_be_held_against():
    """Then nothing is suspicious, and the rater is no mean."""
    found = evidence()
    alone = replace(found.ratings, raters=("a",), scores=found.ratings.scores[:, :1])
    single = agreement(replace(found, ratings=alone))
    assert (single.what, single.suspicious) == ("tau-b with the rater", "")


def test_a_judge_that_gives_one_score_to_all_fails():
    """More units would not help it."""
    flat = agreement(evidence(scores=np.full(60, 0.5)))
    assert (flat.verdict, flat.observed) == (FAIL, None)
    assert "orders none" in flat.reason


def test_raters_that_agree_on_everything_decide_nothing():
    """Without any difference in the ratings a judge can be neither right nor wrong."""
    found = evidence()
    same = replace(found.ratings, scores=np.full((60, 3), 4.0))
    for scores in (found.scores, np.full(60, 0.5)):
        opened = agreement(replace(found, ratings=same, scores=scores))
        assert opened.verdict is OPEN


@pytest.mark.parametrize(
    ("short", "aspect", "reason"),
    [
        ({"unanswered": 0.02}, JudgeAspect.ANSWERS, "2.0 % of the answers"),
        ({"units": np.zeros(60)}, JudgeAspect.UNITS, "1 of at least 20 units"),
    ],
)
def test_without_evidence_nothing_passes_and_nothing_fails(short, aspect, reason):
    """Numbers are shown; they decide nothing, high or low."""
    for rule, threshold in product(("point", "lower"), (0.1, 0.7, 0.99)):
        gate = decide(evidence(**short), threshold=threshold, rule=rule)
        assert gate.verdict is OPEN
        assert reason in check(gate, aspect).reason
        held = check(gate, JudgeAspect.AGREEMENT)
        assert held.verdict is OPEN
        assert held.observed > 0.5
        assert held.reason.startswith("not decided, since")
        assert (held.units_needed, held.needs) == (None, "")


def test_what_is_lacking_is_said_with_its_shares():
    """Missing answers, pairs without a score, and too few units: each by itself."""
    scores = evidence().scores.copy()
    scores[:6] = np.nan
    short = evidence(unanswered=0.025, units=np.arange(60) % 7, scores=scores)
    gate = decide(short, max_unanswered=0.015)
    answers, units, agreed = gate.checks[:3]
    assert answers.observed == 0.1 and answers.threshold == 0.015
    assert answers.reason == (
        "2.5 % of the answers are missing or cannot be read (at most 1.5 % allowed); "
        "10.0 % of the rated pairs have no score (at most 1.5 % allowed)"
    )
    assert answers.needs == (
        "run the same command with --again unparsed, or look at these pairs"
    )
    assert (units.observed, units.threshold) == (7, 20)
    assert agreed.reason == (
        "not decided, since answers are missing and units are too few"
    )
    one = decide(evidence(unanswered=0.025), max_unanswered=0.015)
    assert one.checks[2].reason == "not decided, since answers are missing"
    few = decide(evidence(units=np.arange(60) % 19))
    assert few.checks[1].needs == "needs about 1 more unit"
    assert few.checks[2].reason == "not decided, since units are too few"
    assert few.checks[3].verdict is PASS


def test_a_parent_that_orders_nothing_cannot_be_compared_with():
    """Neither more units nor a better judge would change that."""
    flat = evidence(parent=np.full(60, 0.5))
    held = check(decide(flat, margin=0.1), JudgeAspect.PARENT)
    assert (held.verdict, held.observed, held.limit) == (OPEN, None, None)
    assert held.reason == "tau-b minus the parent's: not estimable"
    assert held.needs == "how many more units it needs cannot be told"
    assert held.units_needed is None


def test_what_is_allowed_is_allowed():
    """Just as many answers missing, and just as few units, as the protocol says."""
    gate = decide(evidence(unanswered=0.01), min_units=30)
    assert gate.verdict is PASS


def test_few_units_are_counted_and_the_lacking_ones_named():
    """A patient with many pairs is one unit."""
    short = check(decide(evidence(units=np.arange(60) % 7)), JudgeAspect.UNITS)
    assert (short.verdict, short.units_needed) == (OPEN, 13)
    assert short.needs == "needs about 13 more units"


def test_pairs_without_a_score_are_no_way_to_pass():
    """A judge that gives none where it is unsure hides nothing by that."""
    found = evidence()
    scores = found.scores.copy()
    scores[:6] = np.nan
    gate = decide(replace(found, scores=scores))
    assert check(gate, JudgeAspect.ANSWERS).observed == pytest.approx(0.1)
    assert check(gate, JudgeAspect.ANSWERS).verdict is OPEN
    assert (gate.verdict, gate.used) == (OPEN, 54)


def test_pairs_that_nobody_rated_are_left_out_and_counted():
    """They are neither a failure of the judge nor agreement."""
    found = evidence()
    points = found.ratings.scores.copy()
    points[:10] = np.nan
    gate = decide(replace(found, ratings=replace(found.ratings, scores=points)))
    assert (gate.verdict, gate.pairs, gate.used, gate.units) == (PASS, 60, 50, 25)


def test_where_nobody_rated_no_pair_lacks_a_score():
    """No pair is rated, so none lacks a score: the gate lacks units."""
    found = evidence()
    unrated = replace(found.ratings, scores=np.full((60, 3), np.nan))
    gate = decide(replace(found, ratings=unrated))
    answers, units, agreed, _ = gate.checks
    assert (answers.verdict, answers.observed) == (PASS, 0.0)
    assert units.reason == "0 of at least 20 units"
    assert (agreed.verdict, agreed.observed) == (OPEN, None)
    assert (gate.used, gate.units) == (0, 0)


FLOORS = F1Floors(omission=0.8)


@pytest.mark.parametrize(
    ("found", "rule", "verdict"),
    [
        (Estimate(0.80, 0.7, 0.9), "point", PASS),
        (Estimate(0.79, 0.7, 0.9), "point", FAIL),
        (Estimate(0.90, 0.8, 0.95), "lower", PASS),
        (Estimate(0.85, 0.79, 0.9), "lower", OPEN),
        (Estimate(0.70, 0.6, 0.79), "lower", FAIL),
        (Estimate(0.90, None, None, "interval not estimable"), "lower", OPEN),
        (Estimate(None, None, None, "not estimable"), "point", OPEN),
        (None, "point", OPEN),
    ],
)
def test_f1_of_a_group_must_reach_its_floor(found, rule, verdict):
    """By the same rule as the agreement; without a number it is open."""
    given = {} if found is None else {ErrorGroup.OMISSION: found}
    seen = evidence(f1={**given, ErrorGroup.ATTRIBUTE: Estimate(0.1, 0, 0.2)})
    gate = decide(seen, f1_floors=FLOORS, rule=rule, threshold=0.1)
    floor = check(gate, JudgeAspect.F1)
    assert (floor.what, floor.verdict) == ("F1 of omissions", verdict)
    assert gate.verdict is verdict
    assert bool(floor.reason) is (verdict is not PASS)


def test_every_group_with_a_floor_has_a_check_of_its_own():
    """In the order of the groups, whichever of them raters counted."""
    floors = F1Floors(false_prediction=0.4, omission=0.5, attribute=0.6)
    seen = evidence(
        f1={
            ErrorGroup.FALSE_PREDICTION: Estimate(0.45, 0.3, 0.6),
            ErrorGroup.ATTRIBUTE: Estimate(0.55, 0.4, 0.7),
        }
    )
    gate = decide(seen, f1_floors=floors)
    checks = [one for one in gate.checks if one.aspect is JudgeAspect.F1]
    assert [(one.what, one.verdict, one.observed, one.threshold) for one in checks] == [
        ("F1 of false predictions", PASS, 0.45, 0.4),
        ("F1 of omissions", OPEN, None, 0.5),
        ("F1 of wrong attributes", FAIL, 0.55, 0.6),
    ]
    assert checks[1].reason == "no rater counted such errors"
    assert checks[1].needs == "add the errors that raters found, by category"
    assert checks[2].reason == "F1 of wrong attributes 0.550 < 0.6"


def test_units_needed_for_a_floor_follow_from_the_interval():
    """Half the distance to the limit is wanted: four times the units."""
    seen = evidence(f1={ErrorGroup.OMISSION: Estimate(0.9, 0.7, 0.95)})
    floor = check(decide(seen, f1_floors=FLOORS, rule="lower"), JudgeAspect.F1)
    assert floor.units_needed == 90


@pytest.mark.parametrize(
    ("copies", "verdict", "reason"),
    [
        (CopyCounts(10, 10), PASS, ""),
        (CopyCounts(10, 9), FAIL, "1 of 10 pairs of equal texts do not get"),
        (CopyCounts(10, 9, 1), OPEN, "1 of 10 pairs of equal texts have no readable"),
        (CopyCounts(10, 8, 1), FAIL, "1 of 10"),
        (CopyCounts(0, 0), OPEN, "no pair of equal texts was asked"),
        (None, OPEN, "no pair of equal texts was asked"),
    ],
)
def test_equal_texts_must_get_the_best_score(copies, verdict, reason):
    """Every one of them; one that was not asked or read is no pass."""
    gate = decide(evidence(copies=copies))
    found = check(gate, JudgeAspect.COPIES)
    assert (found.verdict, gate.verdict) == (verdict, verdict)
    assert reason in found.reason


def test_the_copy_test_can_be_left_out_of_the_claim():
    """Then nothing is said of it."""
    gate = decide(evidence(copies=None), copy_test=False)
    assert JudgeAspect.COPIES not in {one.aspect for one in gate.checks}
    assert gate.verdict is PASS


def parent_of(found, noise, seed=3):
    """Return the same evidence with a parent that adds noise to the scores."""
    rng = np.random.default_rng(seed)
    return replace(found, parent=found.scores + rng.normal(0, noise, 60))


def test_a_version_must_not_fall_below_its_parent_by_the_margin():
    """Better or the same passes, far worse fails."""
    good = evidence()
    better = check(decide(parent_of(good, 0.4), margin=0.05), JudgeAspect.PARENT)
    assert better.verdict is PASS
    assert better.threshold == -0.05 < better.limit < better.observed
    worse = replace(good, scores=parent_of(good, 2).parent, parent=good.scores)
    failed = check(decide(worse, margin=0.05, threshold=0.01), JudgeAspect.PARENT)
    assert failed.verdict is FAIL
    assert failed.reason.startswith("tau-b minus the parent's is -0.")


def test_the_parents_scores_point_the_same_way():
    """Fewer errors are better in both."""
    good = parent_of(evidence(), 0.4)
    seen = check(decide(good, margin=0.05), JudgeAspect.PARENT)
    lower = replace(
        good, scores=-good.scores, parent=-good.parent, direction=Direction.LOWER
    )
    turned = check(decide(lower, margin=0.05), JudgeAspect.PARENT)
    assert turned.observed == seen.observed
    assert turned.verdict is PASS


def test_too_few_units_to_exclude_the_margin_are_planned():
    """The difference continues; its interval narrows until it ends at the margin."""
    good = evidence()
    found = replace(good, scores=parent_of(good, 0.12).parent, parent=good.scores)
    seen = check(decide(found, margin=0.5), JudgeAspect.PARENT)
    margin = -(seen.limit + seen.observed) / 2
    opened = check(decide(found, margin=margin), JudgeAspect.PARENT)
    assert opened.verdict is OPEN
    assert opened.units_needed == pytest.approx(90, abs=1)


def test_the_same_scores_are_not_worse_than_themselves():
    """No resample differs, and here that is certain."""
    found = evidence()
    same = replace(found, parent=found.scores.copy())
    kept = check(decide(same, margin=0.01), JudgeAspect.PARENT)
    assert (kept.verdict, kept.observed, kept.limit) == (PASS, 0, 0)


def test_a_difference_that_no_resample_changes_is_not_certain():
    """A judge that reverses the perfect order of its parent, in every unit."""
    found = evidence()
    order = np.arange(60.0)
    ratings = replace(found.ratings, scores=np.tile(order[:, None], 3), scale=(0, 59))
    turned = replace(found, scores=-order, ratings=ratings, parent=order)
    held = check(decide(turned, margin=0.1), JudgeAspect.PARENT)
    assert (held.verdict, held.observed, held.limit) == (OPEN, -2.0, None)
    assert held.reason == f"tau-b minus the parent's: {NO_WIDTH}"
    assert held.needs == "how many more units it needs cannot be told"


@pytest.mark.parametrize("said", [{"margin": 0.1}, {}])
def test_without_a_parent_or_a_margin_there_is_no_such_check(said):
    """The first version has no parent; a protocol need not ask."""
    given = evidence() if said else parent_of(evidence(), 1)
    aspects = {one.aspect for one in decide(given, **said).checks}
    assert JudgeAspect.PARENT not in aspects


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"scores": np.zeros(3)}, "need scores of shape"),
        ({"units": np.zeros(3)}, "need units of shape"),
        ({"parent": np.zeros(3)}, "need parent of shape"),
        ({"unanswered": 1.2}, "unanswered must be in"),
        ({"unanswered": -0.1}, "unanswered must be in"),
        ({"direction": Direction.NEITHER}, "does not grade"),
        ({"rated": Direction.NEITHER}, "does not grade"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(change, problem):
    """Rows that do not belong together would agree with nobody, or with anybody."""
    with pytest.raises(ValueError, match=problem):
        evidence(**change)


def test_a_limit_at_one_half_is_no_limit():
    """Below it the limits would change places."""
    with pytest.raises(ValueError, match="one half"):
        decide_judge_gate(evidence(), JudgingRules(threshold=0.5), confidence=0.5)


@pytest.mark.data
def test_three_radiologists_hold_the_embedded_judge(data_folder):
    """On RadPref it passes by its limit; who knows the radiologists' points is told."""
    radpref = read_radpref(data_folder / "radpref")
    ratings = radpref.ratings
    side = make_side(
        [radpref.references[case] for case, _ in ratings.keys],
        [radpref.candidates[system][case] for case, system in ratings.keys],
    )
    found = JudgeEvidence(
        scores=METRICS["judge"].score(side, MetricOptions()).per_case,
        ratings=ratings,
        units=unit_codes(ratings.ids, radpref.patients),
        unanswered=0.0,
    )
    said = {"rule": "lower", "copy_test": False}
    gate = decide(found, **said, threshold=0.6)
    assert (gate.verdict, gate.suspicious) == (PASS, ())
    assert gate.units == len(set(radpref.patients.values())) < gate.pairs
    limit = check(gate, JudgeAspect.AGREEMENT).limit
    opened = agreement(found, **said, threshold=limit + 0.01)
    assert opened.verdict is OPEN
    assert opened.units_needed > 0
    leaked = replace(found, scores=np.median(ratings.scores, axis=1))
    assert len(decide(leaked, **said).suspicious) == 1

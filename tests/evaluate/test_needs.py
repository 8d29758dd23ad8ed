"""What a label needs: obstacles, remedies and sizes that can be checked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.evaluate.plan import (
    Counted,
    Goal,
    accuracy_for_kappa,
    need_alone,
    plan_labels,
    plan_levels,
    positives_wanted,
)
from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion
from loop.stats.kappa import cohen_kappa
from loop.stats.power import Bar, Size

LOWER = Protocol(rule="lower", min_positives=14)
SUBSET = LOWER.model_copy(update={"claim": "subset"})
GOAL = Goal(Bar(0.95), Bar(0.80))
FAMILY = Goal(Bar(0.95, 1 - 0.05 / 21), Bar(0.80))
STRICT = Goal(Bar(0.95), Bar(0.90))


def one(cases, positives, observed=None):
    """Return what is known of a label."""
    return Counted("rare", "Rare", cases, positives, observed)


def planned(counted, protocol=LOWER, goal=GOAL, candidates=(0.99, 0.98, 0.97)):
    """Return the plan of one label."""
    return plan_labels([counted], protocol, goal, candidates)[0]


def test_a_rare_label_needs_29_chosen_positives_or_1450_random_cases():
    """Prevalence 2 %, sensitivity above 0.90: 23 beside the 6 of 300, 1,150 cases."""
    plan = planned(one(300, 6), goal=STRICT)
    assert plan.obstacles == ("6 of at least 29 positives",)
    assert plan.remedy == "23 chosen positives, or about 1,150 more random cases"


def test_a_cohort_that_is_too_small_says_how_many_cases_it_lacks():
    """59 flawless cases are the fewest; 14 of them positive, 10 negative."""
    plan = planned(one(40, 10))
    assert plan.obstacles == (
        "40 of at least 59 cases",
        "10 of at least 14 positives",
    )
    assert plan.remedy == (
        "4 chosen positives and 15 other cases, or about 19 more random cases"
    )


def test_a_label_that_lacks_only_cases_needs_no_choosing():
    """20 of 50 are positive: nine more of any kind."""
    assert planned(one(50, 20)).remedy == "9 more cases"


def test_a_side_that_was_never_seen_has_no_random_number():
    """Its prevalence is unknown, and so is every size that rests on it."""
    plan = planned(one(300, 0))
    assert plan.obstacles == ("0 of at least 14 positives",)
    assert plan.remedy == (
        "14 chosen positives; none has been seen, so random cases cannot be counted on"
    )
    assert plan.collect is None and plan.kappa_asks is None
    assert {size for need in plan.candidates for size in need.both} == {
        Size(None, None)
    }


@pytest.mark.parametrize(("cases", "possible"), [(117, False), (118, True)])
def test_one_label_out_of_21_needs_118_flawless_cases(cases, possible):
    """Where the others can never be certified the first step of Holm decides."""
    family = [one(cases, 40), *[one(5, 2)] * 20]
    plan = plan_labels(family, SUBSET, FAMILY, (0.98,))[0]
    assert (plan.obstacles == ()) is possible


def test_holm_lets_labels_that_are_all_flawless_pass_with_fewer_than_118():
    """The last of 21 is compared with alpha itself, but only if the others hold."""
    assert plan_labels([one(59, 20)] * 21, SUBSET, FAMILY, (0.98,))[0].obstacles
    family = [*[one(300, 60)] * 20, one(59, 20)]
    assert not plan_labels(family, SUBSET, FAMILY, (0.98,))[-1].obstacles


def test_what_is_observed_is_planned_with_its_own_rates():
    """2 of 40 positives missed and 3 false alarms: sensitivity 0.95, not 0.9833."""
    plan = planned(one(300, 40, Confusion(38, 3, 2, 257)))
    assert plan.observed.accuracy == pytest.approx(295 / 300)
    assert plan.observed.sensitivity == pytest.approx(0.95)
    assert plan.observed.cases == need_alone(295 / 300, GOAL).cases
    assert plan.observed.positives == need_alone(0.95, GOAL).positives


@pytest.mark.parametrize("counts", [(0, 3, 0, 297), (300, 0, 0, 0), (0, 0, 0, 0)])
def test_a_run_that_scored_one_side_only_has_no_rates(counts):
    """Without positives there is no sensitivity to plan with."""
    assert planned(one(300, 40, Confusion(*counts))).observed is None


def test_a_flawless_run_does_not_shorten_what_to_collect():
    """No error seen is not none there: the middle candidate asks for more."""
    perfect = planned(one(300, 18, Confusion(18, 0, 0, 282)))
    assert perfect.collect == planned(one(300, 18)).collect
    assert perfect.collect.accuracy == 0.98


def test_enough_cases_need_nothing_more():
    """At 0.98 a label with 100 positives of 1,000 is past every size."""
    assert planned(one(1000, 100)).collect == (0.98, 0, 0, 0)


def test_what_to_collect_covers_the_protocols_minimum():
    """A protocol may ask for more positives than the sensitivity does."""
    many = LOWER.model_copy(update={"min_positives": 200})
    add = planned(one(1000, 100), many).collect
    assert (add.random, add.positives) == (1000, 100)


def test_chosen_cases_are_counted_with_the_second_power():
    """At 90 % power each limit alone needs 30 positives and 361 cases.

    At 80 % both need 1,100 random cases. There are 300 cases, 6 of them positive.
    """
    assert planned(one(300, 6)).collect == (0.98, 800, 24, 37)


def test_a_run_near_the_threshold_is_planned_as_far_as_it_can_be():
    """0.952 has the first power from 73,124 cases on, and the second from none."""
    plan = planned(one(1000, 200, Confusion(195, 43, 5, 757)))
    assert plan.observed.both[1] == (None, None)
    assert plan.collect == (0.952, 73_124 - 1000, 0, 0)


@given(st.integers(1, 2000), st.integers(0, 2000))
def test_random_cases_bring_the_power_and_chosen_positives_too(cases, positives):
    """The random number ends at the size for both; chosen ones at the sizes alone."""
    positives = min(positives, cases)
    plan = planned(one(cases, positives), candidates=(0.98,))
    add = plan.collect
    if add is None or not add.random:
        return
    need = plan.candidates[0]
    assert cases + add.random >= need.both[0].safe
    if add.positives:
        assert positives + add.positives >= need.positives[1].safe
        assert cases + add.positives + add.others >= need.cases[1].safe
        assert add.positives + add.others < add.random


@pytest.mark.parametrize(
    "counts", [(80, 10, 10, 900), (16, 4, 4, 976), (250, 50, 50, 650)]
)
def test_kappa_asks_for_the_accuracy_of_an_even_table(counts):
    """As many misses as false alarms: the formula is Cohen's kappa turned round."""
    table = Confusion(*counts)
    kappa = cohen_kappa(table).value
    prevalence = table.positives / table.n
    assert accuracy_for_kappa(prevalence, kappa) == pytest.approx(table.accuracy)


def test_a_rare_label_needs_more_accuracy_for_its_kappa_than_the_protocol_says():
    """At 2 %, kappa 0.80 asks for 0.992: an accuracy of 0.98 has a kappa near 0.5."""
    assert planned(one(300, 6)).kappa_asks == pytest.approx(0.99216)


@pytest.mark.parametrize(
    ("cases", "positives", "obstacles", "remedy"),
    [
        (59, 14, 0, ""),
        (59, 49, 0, ""),
        (58, 20, 1, "1 more case"),
        (300, 13, 1, "1 chosen positive, or about 24 more random cases"),
        (59, 50, 1, "1 chosen negative, or about 7 more random cases"),
        (100, 95, 1, "5 chosen negatives, or about 100 more random cases"),
        (
            12, 6, 3,
            "8 chosen positives, 4 chosen negatives and 35 other cases, or about 47 "
            "more random cases",
        ),
        (
            100, 100, 1,
            "10 chosen negatives; none has been seen, so random cases cannot be "
            "counted on",
        ),
        (
            0, 0, 3,
            "14 chosen positives, 10 chosen negatives and 35 other cases; none has "
            "been seen, so random cases cannot be counted on",
        ),
    ],
)  # fmt: skip
def test_exactly_what_is_short_is_asked_for(cases, positives, obstacles, remedy):
    """59 cases with 14 positives and 10 negatives are enough, one less is not.

    300 / 13 = 23.1, 59 / 9 = 6.6 and 5 x 100 / 5 random cases bring what is missing; of
    12 cases 47 are missing, more than the 8 x 12 / 6 that bring the positives.
    """
    plan = planned(one(cases, positives))
    assert (len(plan.obstacles), plan.remedy) == (obstacles, remedy)


@pytest.mark.parametrize(("cases", "positives"), [(0, 0), (80, 0), (80, 80)])
def test_nothing_is_planned_from_a_side_that_was_never_seen(cases, positives):
    """No prevalence, or one of 0 or 1, gives no size and no accuracy for kappa."""
    plan = planned(one(cases, positives), candidates=(0.99,))
    assert plan.collect is None and plan.kappa_asks is None
    assert plan.candidates[0].both == (Size(None, None),) * 2
    assert plan.candidates[0].cases == need_alone(0.99, GOAL).cases


def test_a_side_that_was_seen_once_can_be_planned():
    """At 1 of 80 kappa 0.80 asks for 1 - 2 (1/80) (79/80) 0.2."""
    for positives in (1, 79):
        plan = planned(one(80, positives))
        assert plan.collect is not None
        assert plan.kappa_asks == pytest.approx(1 - 0.4 * 79 / 6400)


@pytest.mark.parametrize(
    ("candidates", "supposed"),
    [((0.99,), 0.99), ((0.99, 0.98), 0.98), ((0.99, 0.98, 0.97), 0.98)],
)
def test_what_to_collect_supposes_the_middle_candidate(candidates, supposed):
    """The more careful one of two."""
    assert planned(one(300, 18), candidates=candidates).collect.accuracy == supposed


def test_a_worse_run_asks_for_more_than_the_middle_candidate():
    """Its rates are planned with where they need more cases."""
    worse = Confusion(36, 6, 4, 254)
    plan = planned(one(300, 40, worse))
    assert plan.collect.accuracy == pytest.approx(290 / 300)
    assert plan.collect.random == plan.observed.both[0].safe - 300
    assert plan.collect.random > planned(one(300, 40)).collect.random


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, 14),
        ({"sensitivity_floor": 0.9}, 29),
        ({"min_positives": 40}, 40),
        ({"sensitivity_floor": 0.9, "min_positives": 29}, 29),
        ({"claim": "subset"}, 14),
    ],
)
def test_so_many_positives_can_certify_a_label(asked, wanted):
    """0.8^14 and 0.9^29 are below 0.05, and the protocol may ask for more.

    The correction for the number of labels is of the accuracy, not of this.
    """
    assert positives_wanted(LOWER.model_copy(update=asked), 21) == wanted


def test_a_claim_without_labels_has_levels_all_the_same():
    """Nothing is divided by their number."""
    family = plan_levels(SUBSET, 0, (0.99,))[2]
    assert (family.used, family.flawless_cases) == (True, 59)


@pytest.mark.parametrize(
    ("claim", "confidence", "alpha", "cases", "needed"),
    [
        ("all", 0.95, 0.10, 50, 59),
        ("all", 0.90, 0.05, 45, 0),
        ("all", 0.90, 0.05, 44, 45),
        ("subset", 0.90, 0.05, 50, 59),
        ("subset", 0.90, 0.10, 50, 0),
        # Its own gate asks for more than the claim does.
        ("subset", 0.95, 0.10, 50, 59),
    ],
)
def test_each_claim_is_planned_at_its_own_level(
    claim, confidence, alpha, cases, needed
):
    """A label alone: 0.95^59 is below 0.05, 0.95^45 below 0.10 and 0.95^44 above."""
    rules = Protocol(
        rule="lower",
        min_cases=1,
        min_positives=14,
        claim=claim,
        confidence=confidence,
        alpha=alpha,
    )
    (level,) = [one for one in plan_levels(rules, 1, (0.99,)) if one.used]
    counted = Counted("edema", "Edema", cases=cases, positives=cases // 2)
    (plan,) = plan_labels([counted], rules, level.goal, (0.99,))
    short = (f"{cases} of at least {needed} cases",) if needed else ()
    assert plan.obstacles == short
    assert plan.remedy == (counted_cases(needed - cases) if needed else "")


def counted_cases(number):
    """Return so many more cases in words."""
    return "1 more case" if number == 1 else f"{number} more cases"


def test_holms_last_step_is_reached_exactly_at_its_level():
    """Accuracy 0.5: three right answers have p 0.125, which is the level itself."""
    rules = Protocol(
        rule="lower",
        accuracy=0.5,
        alpha=0.125,
        confidence=0.875,
        min_cases=1,
        min_positives=14,
        claim="subset",
    )
    (level,) = [one for one in plan_levels(rules, 2, (0.99,)) if one.used]
    counted = [
        Counted("edema", "Edema", cases=40, positives=20),
        Counted("fracture", "Fracture", cases=3, positives=1),
    ]
    short = [plan_labels(counted, rules, level.goal, (0.99,))[1].obstacles[0]]
    assert short == ["1 of at least 14 positives"]
    fewer = [counted[0], counted[1]._replace(cases=2)]
    plan = plan_labels(fewer, rules, level.goal, (0.99,))[1]
    assert plan.obstacles[0] == "2 of at least 4 cases"

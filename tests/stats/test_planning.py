"""Planning numbers against tables recomputed independently."""

from math import ceil, floor

import pytest

from loop.stats.intervals import lower_limit
from loop.stats.planning import (
    cases_for_positives,
    cases_for_width,
    cases_needed,
    certification_power,
    max_errors,
    positives_needed,
)

ONE_SIDED, TWO_SIDED, FAMILY = 0.95, 0.975, 1 - 0.05 / 21


@pytest.mark.parametrize(
    ("n", "one_sided", "two_sided", "family"),
    [
        (59, 0, None, None), (72, 0, 0, None), (100, 1, 0, None), (118, 1, 1, 0),
        (150, 2, 2, 0), (200, 4, 3, 2), (300, 8, 7, 5), (500, 16, 15, 11),
        (1000, 38, 36, 31), (3000, 130, 126, 116),
    ],
)  # fmt: skip
def test_errors_that_still_certify(n, one_sided, two_sided, family):
    """The largest number of errors that certifies 0.95, at three levels."""
    levels = (ONE_SIDED, TWO_SIDED, FAMILY)
    found = tuple(max_errors(n, 0.95, level) for level in levels)
    assert found == (one_sided, two_sided, family)


@pytest.mark.parametrize(
    ("target", "one_sided", "two_sided"),
    [(0.5, 5, 6), (0.7, 9, 11), (0.8, 14, 17), (0.85, 19, 23), (0.9, 29, 36),
     (0.95, 59, 72)],
)  # fmt: skip
def test_positives_for_a_sensitivity(target, one_sided, two_sided):
    """The fewest positives, all found, whose lower limit is above the target."""
    assert positives_needed(target) == one_sided
    assert positives_needed(target, confidence=TWO_SIDED) == two_sided


@pytest.mark.parametrize(("positives", "misses"), [(30, 2), (50, 5), (100, 13)])
def test_misses_that_a_sensitivity_of_80_percent_bears(positives, misses):
    """The same limit read the other way round."""
    assert max_errors(positives, 0.8) == misses
    assert positives_needed(0.8, misses=misses) <= positives


@pytest.mark.parametrize(
    ("accuracy", "confidence", "first80", "safe80", "first90", "safe90"),
    [
        (0.99, ONE_SIDED, 124, 124, 153, 181),
        (0.98, ONE_SIDED, 234, 286, 311, 361),
        (0.99, TWO_SIDED, 142, 173, 173, 202),
        (0.98, TWO_SIDED, 312, 338, 390, 440),
        (0.99, FAMILY, 268, 268, 300, 331),
    ],
)
def test_power_reaches_its_level_at_the_known_size(
    accuracy, confidence, first80, safe80, first90, safe90
):
    """First size with the power, and the size from which it never falls below."""
    powers = {
        n: certification_power(
            n, accuracy=accuracy, threshold=0.95, confidence=confidence
        )
        for n in range(1, 620)
    }
    for level, first, safe in ((0.8, first80, safe80), (0.9, first90, safe90)):
        assert min(n for n, power in powers.items() if power >= level) == first
        assert max(n for n, power in powers.items() if power < level) == safe - 1


@pytest.mark.parametrize(
    ("confidence", "total"), [(ONE_SIDED, 59), (TWO_SIDED, 72), (FAMILY, 118)]
)
def test_a_flawless_start_needs_the_zero_error_size(confidence, total):
    """Without errors the expected count is exact, from any start."""
    for n in (0, 1, 30, total - 1, total, 500):
        needed = cases_needed(0, n, threshold=0.95, confidence=confidence)
        assert needed == max(total - n, 0)


@pytest.mark.parametrize("errors", [9, 10, 12, 14])
def test_the_planned_size_is_the_first_that_bears_the_expected_errors(errors):
    """There they certify when rounded down; one case fewer and rounded up, not."""
    needed = cases_needed(errors, 300, threshold=0.95, confidence=0.95)
    total = 300 + needed
    assert max_errors(total, 0.95) >= floor(errors * total / 300)
    assert max_errors(total - 1, 0.95) < ceil(errors * (total - 1) / 300)


def test_a_gate_that_is_met_needs_no_more_cases():
    """8 errors of 300 certify 0.95, so the answer is none and not a negative number."""
    options = {"threshold": 0.95, "confidence": 0.95}
    assert [cases_needed(errors, 300, **options) for errors in (0, 4, 8)] == [0, 0, 0]


def test_no_number_of_cases_helps_at_or_below_the_threshold():
    """An observed 0.95 never brings its own lower limit to 0.95."""
    options = {"threshold": 0.95, "confidence": 0.95}
    assert cases_needed(15, 300, **options) is None
    assert cases_needed(30, 300, **options) is None
    assert cases_needed(49_999, 1_000_000, **options) is None
    low = {"threshold": 0.5, "confidence": 0.3}
    assert cases_needed(50, 100, **low) is None


def test_half_the_width_needs_four_times_the_cases():
    """The standard error falls with the root of the cases."""
    assert cases_for_width(100, width=0.2, wanted=0.1) == 300
    assert cases_for_width(100, width=0.1, wanted=0.1) == 0
    assert cases_for_width(100, width=0.05, wanted=0.1) == 0


@pytest.mark.parametrize("wanted", [0.0, -0.1, 1e-9])
def test_a_width_that_cannot_be_reached_has_no_number(wanted):
    """A wanted half-width of nothing, or beyond ten million cases, is no plan."""
    assert cases_for_width(300, width=0.1, wanted=wanted) is None


def test_rare_labels_need_many_cases():
    """At 2 % prevalence, 29 positives are about 1,450 random cases."""
    assert cases_for_positives(29, 6, 300) == 1450
    assert cases_for_positives(0, 6, 300) == cases_for_positives(-3, 6, 300) == 0
    assert cases_for_positives(5, 0, 300) is None


def test_impossible_input_is_refused():
    """Messages name the offending values."""
    with pytest.raises(ValueError, match="got 95"):
        max_errors(10, 95)
    with pytest.raises(ValueError, match="5 of 4"):
        cases_needed(5, 4, threshold=0.9, confidence=0.95)
    with pytest.raises(ValueError, match="got -1"):
        positives_needed(0.9, misses=-1)
    with pytest.raises(ValueError, match="got 10 and -1"):
        cases_for_width(10, width=-1, wanted=0.1)


@pytest.mark.parametrize("errors", [0, 3])
def test_a_limit_exactly_at_the_threshold_certifies(errors):
    """So many errors of 100 put the limit at the threshold; a hair above, not."""
    limit = lower_limit(100 - errors, 100)
    assert max_errors(100, limit) == errors
    assert max_errors(100, limit + 1e-9) == (errors - 1 if errors else None)


def test_nothing_lacking_needs_nothing_even_where_no_positive_was_seen():
    """Without a prevalence: 0 positives more are 0 cases more, and 1 cannot be told."""
    assert cases_for_positives(0, 0, 300) == 0
    assert cases_for_positives(1, 0, 300) is None


def test_the_fewest_positives_are_one_more_than_may_be_missed():
    """One of one has the limit 0.05, one of two 1 - sqrt(0.95) = 0.0253."""
    assert positives_needed(0.04) == 1
    assert positives_needed(0.02, misses=1) == 2
    assert positives_needed(0.03, misses=1) == 3


@pytest.mark.parametrize(("positives", "misses"), [(1, 0), (14, 0), (30, 2)])
def test_positives_whose_limit_is_the_target_are_enough(positives, misses):
    """Exactly at it; a hair above asks for one more at least."""
    limit = lower_limit(positives - misses, positives)
    assert positives_needed(limit, misses=misses) == positives
    assert positives_needed(limit + 1e-9, misses=misses) == positives + 1


def test_cases_whose_limit_is_the_threshold_are_enough():
    """59 without an error, and again a hair above, where the next one is needed."""
    limit = lower_limit(59, 59)
    for n in (0, 30, 59):
        asked = [
            cases_needed(0, n, threshold=threshold, confidence=0.95)
            for threshold in (limit, limit + 1e-9)
        ]
        assert asked == [59 - n, 60 - n]


def test_no_case_and_no_width_need_nothing():
    """Nothing was seen yet, or nothing varies: then nothing more is needed."""
    assert cases_for_width(0, width=0.1, wanted=0.05) == 0
    assert cases_for_width(50, width=0.0, wanted=0.05) == 0
    assert cases_for_width(1, width=0.1, wanted=0.05) == 3


@pytest.mark.parametrize("accuracy", [-0.1, 1.1])
def test_a_supposed_accuracy_is_a_share(accuracy):
    """0 and 1 are; at 1 what can be certified is, and at 0 nothing."""
    with pytest.raises(ValueError, match=f"got {accuracy}"):
        certification_power(100, accuracy=accuracy, threshold=0.95)
    assert certification_power(59, accuracy=1.0, threshold=0.95) == 1.0
    assert certification_power(58, accuracy=1.0, threshold=0.95) == 0.0
    assert certification_power(59, accuracy=0.0, threshold=0.95) == 0.0


def test_up_to_ten_million_cases_are_a_plan():
    """A third of the width takes nine times the cases."""
    assert cases_for_width(1_250_000, width=0.3, wanted=0.1) == 10_000_000
    assert cases_for_width(1_250_001, width=0.3, wanted=0.1) is None

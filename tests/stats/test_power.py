"""Sizes of plans against tables recomputed independently, and against plain sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from loop.stats.intervals import lower_limit
from loop.stats.planning import certification_power, max_errors
from loop.stats.power import (
    MOST,
    Bar,
    Rates,
    Size,
    exact_p,
    flawless_cases,
    least_cases,
    size_for_power,
    sizes_for_both,
)

ONE_SIDED, TWO_SIDED, FAMILY = 0.95, 0.975, 1 - 0.05 / 21
SENSITIVE = Bar(0.8)


@pytest.mark.parametrize(
    ("level", "share", "at_80", "at_90"),
    [
        (ONE_SIDED, 0.99, (124, 124), (153, 181)),
        (ONE_SIDED, 0.98, (234, 286), (311, 361)),
        (ONE_SIDED, 0.97, (601, 694), (832, 900)),
        (ONE_SIDED, 0.96, (2698, 2869), (3701, 3871)),
        (TWO_SIDED, 0.99, (142, 173), (173, 202)),
        (TWO_SIDED, 0.98, (312, 338), (390, 440)),
        (TWO_SIDED, 0.97, (780, 851), (1013, 1106)),
        (TWO_SIDED, 0.96, (3421, 3594), (4537, 4708)),
        (FAMILY, 0.99, (268, 268), (300, 331)),
        (FAMILY, 0.98, (531, 558), (639, 691)),
        (FAMILY, 0.97, (1339, 1411), (1648, 1719)),
        (FAMILY, 0.96, (5872, 6046), (7322, 7494)),
    ],
)
def test_sizes_equal_the_published_table(level, share, at_80, at_90):
    """First size with the power, and the size from which it never falls below."""
    bar = Bar(0.95, level)
    assert size_for_power(share, bar, power=0.8) == at_80
    assert size_for_power(share, bar, power=0.9) == at_90


@pytest.mark.parametrize(
    "bar",
    [
        Bar(0.95),
        Bar(0.8),
        Bar(0.5, 0.975),
        Bar(0.95, FAMILY),
        Bar(0.05),
        Bar(0.5, 0.51),
        Bar(0.99, 0.999),
    ],
)
def test_least_cases_are_the_errors_that_still_certify_read_backwards(bar):
    """Two searches over the same limit, one by cases and one by errors."""
    table = least_cases(bar, 700)
    for n in [*range(1, 250), 699, 700]:
        bearable = max_errors(n, *bar)
        assert np.searchsorted(table, n, side="right") == (
            0 if bearable is None else bearable + 1
        )


@pytest.mark.parametrize(
    ("rates", "prevalence"),
    [
        (Rates(0.99, 0.99), 0.02),
        (Rates(0.98, 0.98), 0.1),
        (Rates(0.9, 0.995), 0.1),
        (Rates(0.95, 0.99), 0.3),
        (Rates(1.0, 0.98), 0.5),
    ],
)
def test_both_limits_together_equal_a_plain_sum(rates, prevalence):
    """The sum over misses, written out at every number of cases."""
    found = sizes_for_both(rates, prevalence, Bar(0.95), SENSITIVE, (0.8, 0.9))
    powers = np.array(
        [together(rates, prevalence, n) for n in range(2 * found[1].safe)]
    )
    for size, level in zip(found, (0.8, 0.9), strict=True):
        assert size.first == np.argmax(powers >= level)
        assert size.safe == np.flatnonzero(powers < level)[-1] + 1


def both(prevalence, power):
    """Return the sizes of a flawless label."""
    flawless = Rates(1.0, 1.0)
    return sizes_for_both(flawless, prevalence, Bar(0.95), SENSITIVE, (power,))


def together(rates, prevalence, n):
    """Return the chance that both limits hold."""
    positives = int(np.floor(n * prevalence + 1e-9))
    errors = max_errors(n, 0.95) if n else None
    misses = max_errors(positives, *SENSITIVE) if positives else None
    if errors is None or misses is None:
        return 0.0
    missed = np.arange(min(misses, errors) + 1)
    chance = binom.pmf(missed, positives, 1 - rates.sensitivity)
    held = binom.cdf(errors - missed, n - positives, 1 - rates.specificity)
    return float(chance @ held)


def test_many_positives_leave_the_accuracy_to_decide():
    """Half the cases positive: a sensitivity of 0.97 clears 0.80 in any case."""
    found = sizes_for_both(Rates(0.955, 0.955), 0.5, Bar(0.95), SENSITIVE, (0.8,))
    assert found == (size_for_power(0.955, Bar(0.95), power=0.8),)


@pytest.mark.parametrize("threshold", [0.001, 0.5, 0.8, 0.95, 0.9999])
@pytest.mark.parametrize("level", [0.51, 0.95, 0.975, FAMILY])
def test_flawless_cases_are_the_first_whose_limit_reaches_the_threshold(
    threshold, level
):
    """The closed form against the limit itself, one case before and there."""
    n = flawless_cases(Bar(threshold, level))
    assert lower_limit(n, n, confidence=level) >= threshold * (1 - 1e-12)
    assert n == 1 or lower_limit(n - 1, n - 1, confidence=level) < threshold


@pytest.mark.parametrize("share", [0.95, 0.9, 0.0, 0.9501])
def test_a_share_not_above_the_threshold_has_no_size(share):
    """Nor has one so near that a hundred thousand cases would not do."""
    assert size_for_power(share, Bar(0.95), power=0.8) == Size(None, None)
    rates = Rates(share, share)
    assert sizes_for_both(rates, 0.1, Bar(0.95), SENSITIVE, (0.8,)) == (
        Size(None, None),
    )


def test_a_label_that_is_too_rare_has_no_size():
    """14 positives at one in a hundred thousand are no plan."""
    assert both(1e-5, 0.8) == (Size(None, None),)
    assert MOST == 100_000


def test_without_errors_the_size_is_the_flawless_one():
    """A share of one always certifies as soon as anything does."""
    assert size_for_power(1.0, Bar(0.95), power=0.9) == (59, 59)
    assert sizes_for_both(Rates(1, 1), 0.1, Bar(0.95), SENSITIVE, (0.8,)) == (
        (140,) * 2,
    )


@given(st.integers(1, 400), st.data())
def test_the_p_value_is_the_limit_read_the_other_way(n, data):
    """At most alpha exactly where the one-sided limit reaches the threshold."""
    k = data.draw(st.integers(0, n))
    threshold = data.draw(st.sampled_from([0.5, 0.8, 0.95]))
    p = exact_p(k, n, threshold)
    assert p == pytest.approx(binomtest(k, n, threshold, "greater").pvalue, rel=1e-9)
    if abs(p - 0.05) > 1e-9:
        assert (p <= 0.05) is (lower_limit(k, n) >= threshold)


def test_no_case_is_no_evidence():
    """Without trials nothing speaks against any threshold."""
    assert exact_p(0, 0, 0.95) == 1.0


@given(st.floats(0.85, 0.995), st.sampled_from([0.5, 0.8]), st.sampled_from([0.8, 0.9]))
def test_the_planned_size_has_the_power_and_the_one_before_has_not(share, bar, power):
    """Whatever the share: by the plain formula for one number of cases."""
    size = size_for_power(share, Bar(bar), power=power)
    if size.safe is None or size.safe > 3000:
        return

    def at(n):
        return certification_power(n, accuracy=share, threshold=bar)

    assert at(size.first) >= power
    assert at(size.safe) >= power
    assert size.safe == 1 or at(size.safe - 1) < power
    assert all(at(n) < power for n in range(1, min(size.first, 60)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: exact_p(5, 4, 0.9), "5 of 4"),
        (lambda: exact_p(1, 4, 1.0), "threshold"),
        (lambda: least_cases(Bar(0.9), 0), "one case"),
        (lambda: size_for_power(1.2, Bar(0.9), power=0.8), "got 1.2"),
        (lambda: size_for_power(0.95, Bar(0.9), power=1.0), "got 1.0"),
        (lambda: both(0, 0.8), "prevalence"),
        (lambda: both(0.1, 0.3), "got 0.3"),
    ],
)  # fmt: skip
def test_impossible_input_is_refused(call, words):
    """Messages name the offending value."""
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("bar", [Bar(0.5, 0.51), Bar(0.05), Bar(0.95), Bar(0.99)])
@pytest.mark.parametrize("most", [1, 2, 63, 64, 65, 512])
def test_least_cases_are_complete_up_to_the_largest_number(bar, most):
    """Also where it is a power of two: as many errors as that number bears."""
    bearable = max_errors(most, *bar)
    assert len(least_cases(bar, most)) == (0 if bearable is None else bearable + 1)


def test_several_draws_of_a_case_are_one_trial_of_the_test():
    """27 of 30 answers of ten cases are 9 of 10."""
    assert exact_p(27, 30, 0.8, draws=3) == exact_p(9, 10, 0.8)
    assert exact_p(28, 30, 0.8, draws=3) < exact_p(9, 10, 0.8)
    assert exact_p(0, 30, 0.8, draws=3) == 1.0

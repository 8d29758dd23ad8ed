"""What a number may be: its bounds themselves, and what lies just beyond them."""

from math import nan

import numpy as np
import pytest

from loop.stats import systems
from loop.stats.bootstrap import bootstrap_f1
from loop.stats.confusion import Confusion, check_codes
from loop.stats.correction import rogan_gladen_f1
from loop.stats.correlation import correlate
from loop.stats.dependent import williams
from loop.stats.intervals import (
    check_confidence,
    clopper_pearson,
    clustered_interval,
    f1_limits,
    kappa_limits,
    lower_limit,
)
from loop.stats.kappa import fleiss_kappa, leave_one_out
from loop.stats.optimism import accuracy_optimism, expected_excess
from loop.stats.paired import check_permutations, holm, mcnemar_exact, tango_interval
from loop.stats.planning import (
    cases_for_width,
    cases_needed,
    certification_power,
    max_errors,
    positives_needed,
)
from loop.stats.power import (
    Bar,
    Rates,
    exact_p,
    flawless_cases,
    least_cases,
    size_for_power,
    sizes_for_both,
)
from loop.stats.resampling import exact_float
from loop.stats.weighted import (
    design_share,
    draw_systematic,
    inclusion_chances,
    weighted_share,
)

CODES = np.array([[0, 1], [1, 0], [1, 1]], dtype=np.int8)
VOTES = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]], dtype=np.int8)
HITS = np.array([True, False])
BAR = Bar(0.9)
RATES = Rates(sensitivity=0.99, specificity=0.99)

WITHIN = ((0.01, 0.99), (0, 1, -0.01, 1.01, 95, nan))
"""A share that is neither bound: what is taken, and what is refused."""

SHARE = ((0, 0.5, 1), (-0.01, 1.01, nan))
CHANCE = ((0.01, 1), (0, -0.01, 1.01, nan))
NONE_OR_MORE = ((0, 1), (-1,))
ONE_OR_MORE = ((1, 2), (0, -1))


@pytest.mark.parametrize(
    ("call", "domain"),
    [
        (check_confidence, WITHIN),
        (check_permutations, ONE_OR_MORE),
        (lambda n: check_codes(np.full((1, 1), n)), ((-1, 0, 1), (-2, 2))),
        (lambda n: bootstrap_f1(CODES, CODES, resamples=n), ONE_OR_MORE),
        (lambda c: bootstrap_f1(CODES, CODES, confidence=c, resamples=1), WITHIN),
        (lambda c: correlate(np.arange(4.0), np.arange(4.0), confidence=c), WITHIN),
        (lambda k: clopper_pearson(k, 4), ((0, 4), (-1, 5))),
        (lambda k: lower_limit(k, 4), ((0, 4), (-1, 5))),
        (lambda n: lower_limit(1, 4, draws=n), ONE_OR_MORE),
        (lambda k: clustered_interval([k], [4]), ((0, 4), (-1, 5))),
        (lambda c: clustered_interval([1], [4], confidence=c), WITHIN),
        (lambda c: weighted_share(HITS, np.array([0.5, c])), CHANCE),
        (lambda c: design_share(HITS, np.array([0.5, c])), CHANCE),
        (lambda n: inclusion_chances(np.ones(3), n, even=0.5), ((1, 3), (0, 4))),
        (lambda e: inclusion_chances(np.ones(3), 2, even=e), CHANCE),
        (
            lambda s: draw_systematic(np.ones(2), np.arange(2), s),
            ((0, 0.99), (-0.01, 1)),
        ),
        (lambda p: kappa_limits(3, 4, p), ((0, 0.99), (-0.01, 1, nan))),
        (lambda n: mcnemar_exact(n, 1), NONE_OR_MORE),
        (lambda n: mcnemar_exact(1, n), NONE_OR_MORE),
        (lambda n: tango_interval(n, 1, 4), ((0, 3), (-1, 4))),
        (lambda n: tango_interval(1, n, 4), ((0, 3), (-1, 4))),
        (lambda p: holm([0.5, p]), SHARE),
        (lambda r: williams(r, 0.0, 0.0, 30), ((-1, 1), (-1.01, 1.01, nan))),
        (lambda r: rogan_gladen_f1(Confusion(1, 1, 1, 1), r, 0.8), SHARE),
        (lambda r: rogan_gladen_f1(Confusion(1, 1, 1, 1), 0.8, r), SHARE),
        (lambda n: expected_excess(n, 2, 0.5), ONE_OR_MORE),
        (lambda k: expected_excess(2, k, 0.5), ONE_OR_MORE),
        (lambda p: expected_excess(2, 2, p), SHARE),
        (
            lambda n: accuracy_optimism(CODES, CODES[None], chosen=n, resamples=1),
            ((0,), (-1, 1)),
        ),
        (
            lambda n: accuracy_optimism(CODES, CODES[None], chosen=0, resamples=n),
            ONE_OR_MORE,
        ),
        (lambda n: leave_one_out(VOTES, need=n, resamples=1), ((2,), (1, 3))),
        (lambda n: fleiss_kappa(np.full((3, n), 1)), ((2, 3), (1,))),
        (lambda t: max_errors(100, t), WITHIN),
        (lambda c: max_errors(100, 0.9, c), WITHIN),
        (lambda t: certification_power(9, accuracy=0.9, threshold=t), WITHIN),
        (lambda a: certification_power(9, accuracy=a, threshold=0.5), SHARE),
        (lambda n: cases_needed(n, 4, threshold=0.9, confidence=0.9), ((0,), (-1, 5))),
        (lambda t: cases_needed(0, 4, threshold=t, confidence=0.9), WITHIN),
        (lambda n: cases_for_width(n, width=0.1, wanted=0.2), NONE_OR_MORE),
        (lambda w: cases_for_width(5, width=w, wanted=0.2), ((0, 0.1), (-0.1,))),
        (positives_needed, WITHIN),
        (lambda n: positives_needed(0.9, misses=n), NONE_OR_MORE),
        (lambda k: exact_p(k, 4, 0.9), ((0, 4), (-1, 5))),
        (lambda t: exact_p(3, 4, t), WITHIN),
        (lambda t: flawless_cases(Bar(t)), WITHIN),
        (lambda c: flawless_cases(Bar(0.9, c)), WITHIN),
        (lambda n: least_cases(BAR, n), ONE_OR_MORE),
        (lambda p: size_for_power(0.99, BAR, power=p), WITHIN),
        (lambda s: size_for_power(s, BAR, power=0.8), SHARE),
        (lambda p: sizes_for_both(RATES, p, BAR, BAR, [0.8]), WITHIN),
        (
            lambda p: sizes_for_both(RATES, 0.5, BAR, BAR, [0.8, p]),
            ((0.5, 0.99), (0.49, 1, nan)),
        ),
    ],
)
def test_a_bound_is_taken_or_refused_as_documented(call, domain):
    """A slip at a bound gives a number that looks like any other."""
    taken, refused = domain
    for value in taken:
        call(value)
    for value in refused:
        with pytest.raises(ValueError, match=r"."):
            call(value)


def test_sums_are_exact_up_to_what_a_float_can_hold():
    """The largest whole number that 32 bits hold with all below it is 2**24."""
    most = np.array([[2**24 - 1]])
    assert exact_float(most) is np.float32
    assert exact_float(most + 1) is np.float64
    assert exact_float(most / 1) is np.float64
    # A resample may hold the largest of them over and over again.
    assert exact_float(np.full((4096, 1), 4095)) is np.float32
    for largest in (4096, -4096):
        columns = np.zeros((4096, 2), dtype=np.int16)
        columns[7, 1] = largest
        assert exact_float(columns) is np.float64
    assert exact_float(np.ones((0, 1), dtype=np.uint8)) is np.float32


def test_f1_of_no_label_may_be_anything():
    """Nothing was measured."""
    assert f1_limits([], []) == (0.0, 1.0)


def test_a_table_of_pairs_is_read_a_row_at_a_time_at_least(monkeypatch):
    """However many counts one row has."""
    monkeypatch.setattr(systems, "_AT_ONCE", 1)
    codes = np.array([[[1, 0]], [[0, 1]], [[1, 1]]])
    table = systems.tabulate_pairs(codes[0], codes[1:], None, "skip")
    assert table.rows == 1

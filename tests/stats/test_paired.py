"""Paired tests and intervals against published values and closed forms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from loop.stats.paired import can_be_significant, holm, mcnemar_exact, tango_interval


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        (0, 0, 1), (0, 1, 1), (0, 5, 0.0625), (0, 6, 0.03125),
        (1, 8, 0.0391), (2, 10, 0.0386), (5, 5, 1),
    ],
)  # fmt: skip
def test_mcnemar_matches_the_reference_values(lost, gained, p):
    """Values recomputed independently; none discordant is 1, not an error."""
    assert mcnemar_exact(lost, gained) == pytest.approx(p, abs=5e-5)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_statsmodels(lost, gained):
    """Another implementation of the same test, and its symmetry."""
    expected = mcnemar([[9, lost], [gained, 9]], exact=True).pvalue
    assert mcnemar_exact(lost, gained) == pytest.approx(float(expected))
    assert mcnemar_exact(lost, gained) == mcnemar_exact(gained, lost)


@pytest.mark.parametrize(
    ("discordant", "alpha", "able"),
    [(0, 0.05, False), (5, 0.05, False), (6, 0.05, True), (6, 0.05 / 21, False)],
)
def test_too_few_discordant_cases_can_never_be_significant(discordant, alpha, able):
    """Below six at 0.05 the test says nothing, so nothing must be claimed."""
    assert can_be_significant(discordant, alpha) is able


@pytest.mark.parametrize(
    ("lost", "gained", "n", "confidence", "low", "high"),
    [
        (0, 0, 300, 0.95, -0.0126, 0.0126),
        (0, 0, 300, 0.90, -0.0089, 0.0089),
        (2, 10, 300, 0.95, 0.0048, 0.0545),
        (2, 10, 300, 0.90, 0.0087, 0.0492),
        (3, 1, 300, 0.95, -0.0261, 0.0096),
        (3, 1, 300, 0.90, -0.0218, 0.0059),
        (4, 0, 300, 0.95, -0.0338, -0.0005),
        (4, 0, 300, 0.90, -0.0294, -0.0043),
        (0, 5, 300, 0.95, 0.0038, 0.0384),
        (0, 5, 300, 0.90, 0.0076, 0.0338),
    ],
)
def test_tango_matches_the_reference_values(lost, gained, n, confidence, low, high):
    """Values recomputed independently from the published score equation."""
    found = tango_interval(lost, gained, n, confidence=confidence)
    assert found == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize("n", [1, 30, 100_000])
def test_tango_without_change_has_a_closed_form(n):
    """With no discordant case the limits are plus and minus z^2 / (n + z^2)."""
    square = 1.959963984540054**2
    limit = square / (n + square)
    assert tango_interval(0, 0, n) == pytest.approx((-limit, limit))


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 300))
def test_tango_mirrors_when_the_versions_swap(lost, gained, unchanged):
    """Exchanging before and after changes the sign, and the estimate lies inside."""
    n = max(lost + gained + unchanged, 1)
    low, high = tango_interval(lost, gained, n)
    back = tango_interval(gained, lost, n)
    assert back == pytest.approx((-high, -low), abs=1e-12)
    assert -1 <= low <= (gained - lost) / n <= high <= 1


def test_tango_survives_the_corners():
    """All cases changed one way, or no case at all."""
    assert tango_interval(0, 10, 10).high == pytest.approx(1)
    assert tango_interval(10, 0, 10).low == pytest.approx(-1)
    assert tango_interval(0, 0, 0) == (-1, 1)


def test_holm_matches_the_reference_values():
    """The textbook family of four."""
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])


@settings(max_examples=15, deadline=None)  # each call there collects garbage
@given(st.lists(st.floats(0, 1), min_size=1, max_size=25))
def test_holm_agrees_with_statsmodels_in_the_order_given(pvalues):
    """Another implementation, with ties and any order."""
    expected = multipletests(pvalues, method="holm")[1]
    assert holm(pvalues) == pytest.approx(list(expected))


def test_holm_of_no_hypothesis_is_empty():
    """A comparison without labels is not an error."""
    assert holm([]) == []


def test_impossible_input_is_refused():
    """Messages name the offending values."""
    with pytest.raises(ValueError, match="-1, 0"):
        mcnemar_exact(-1, 0)
    with pytest.raises(ValueError, match="3, 4 of 6"):
        tango_interval(3, 4, 6)
    with pytest.raises(ValueError, match="got nan"):
        holm([0.1, float("nan")])

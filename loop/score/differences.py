"""Every pair of systems: how much better the better one is, and whether by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from loop.score.result import SystemDifference
from loop.stats.confusion import ZeroDivision
from loop.stats.intervals import Estimate
from loop.stats.resampling import Resampling, to_estimate
from loop.stats.systems import PairedTest, compare_systems


def compare(
    codes: tuple[NDArray[np.int8], NDArray[np.int8]],
    systems: Sequence[str],
    *,
    permutations: int = 10_000,
    zero_division: ZeroDivision = "skip",
    **resampling: Unpack[Resampling],
) -> tuple[SystemDifference, ...]:
    """Return the difference in Ran Score of every pair of systems.

    Parameters
    ----------
    codes
        References, shape ``(n_cases, n_labels)``, and candidates, shape
        ``(n_systems, n_cases, n_labels)``: 1, 0, -1.
    systems
        Their names.
    permutations
        Exchanges per pair at most; fewer possible ones are all counted.
    zero_division
        As for `loop.stats.confusion.average_f1`.
    **resampling
        As for `loop.stats.bootstrap.bootstrap_f1`.

    Returns
    -------
    tuple[Difference, ...]
        Each seen from its better system, so that no value is negative; pairs in the
        order of the systems given. Empty for one system.
    """
    if len(systems) < 2:
        return ()
    tests = compare_systems(
        *codes, zero_division=zero_division, permutations=permutations, **resampling
    )
    return tuple(_to_difference(test, systems) for test in tests)


def _to_difference(test: PairedTest, systems: Sequence[str]) -> SystemDifference:
    found = to_estimate(test.difference)
    better, worse = systems[test.first], systems[test.second]
    if found.value is not None and found.value < 0:
        found, better, worse = _negate(found), worse, better
    return SystemDifference(
        better=better,
        worse=worse,
        difference=found,
        p=test.p,
        p_holm=test.p_holm,
        exact=test.exact,
    )


def _negate(estimate: Estimate) -> Estimate:
    value, low, high = (
        None if one is None else -one
        for one in (estimate.value, estimate.high, estimate.low)
    )
    return estimate._replace(value=value, low=low, high=high)

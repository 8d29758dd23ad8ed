"""The setting holds inside, and is put back."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from loop.stats.resampling import bootstrap, one_thread


def threads():
    """Return the threads that numpy's own library of products uses."""
    pools = threadpool_info()
    return max(one["num_threads"] for one in pools if one["user_api"] == "blas")


def test_products_run_alone_and_others_as_before():
    """What surrounds a bootstrap keeps its threads."""
    before = threads()
    with one_thread():
        assert threads() == 1
    assert threads() == before


def test_an_error_puts_the_setting_back_too():
    """A statistic that fails must not slow down the rest of the process."""
    before, seen = threads(), []

    def fail(sums):
        if len(sums) > 1:
            seen.append(threads())
            raise ZeroDivisionError
        return sums[:, 0]

    with pytest.raises(ZeroDivisionError):
        bootstrap(np.ones((9, 1)), fail, resamples=9)
    assert (seen, threads()) == ([1], before)

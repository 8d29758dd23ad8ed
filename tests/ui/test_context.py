"""What takes long to work out is worked out once."""

from threading import Barrier, Thread

import pytest

from loop.ui.context import ResultCache


def test_the_same_key_is_worked_out_once():
    """A page opened twice costs once."""
    cache, calls = ResultCache(), []
    for _ in range(3):
        cache.get("a", lambda: calls.append(1))
    assert len(calls) == 1


def test_threads_that_want_the_same_wait_for_the_first():
    """Eight reviewers who open the page at once start one evaluation, not eight."""
    cache, calls, gate = ResultCache(), [], Barrier(8)

    def want():
        gate.wait()
        cache.get("a", lambda: calls.append(1))

    threads = [Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_an_error_is_not_kept():
    """What failed because the store was locked may work a moment later."""
    cache = ResultCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: "made") == "made"


def test_only_the_last_results_are_kept():
    """A server that runs for weeks does not grow without end."""
    cache, calls = ResultCache(most=2), []
    for key in ("a", "b", "c", "a"):
        cache.get(key, lambda key=key: calls.append(key))
    assert calls == ["a", "b", "c", "a"]


def test_what_was_asked_for_lately_is_kept():
    """As many results as there is room for, whichever were made first."""
    cache, calls = ResultCache(most=2), []
    for key in ("a", "b", "a", "b", "a", "c", "a", "b"):
        made = cache.get(key, lambda key=key: calls.append(key) or key)
        assert made == key
    assert calls == ["a", "b", "c", "b"]

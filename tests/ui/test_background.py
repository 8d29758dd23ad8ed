"""Long work goes on by itself and says how far it is."""

from threading import Event

import pytest

from loop.core.errors import ConflictError, DataError
from loop.ui.background import Jobs


def wait_for(jobs, key):
    """Wait until the work with `key` is over and return its progress."""
    for _ in range(10_000):
        progress = jobs.progress_of(key)
        if progress.finished:
            return progress
        Event().wait(0.001)
    raise TimeoutError(key)


def test_work_leaves_its_result():
    """Who comes back after a reload finds what was done meanwhile."""
    jobs = Jobs()
    jobs.start("a", "Dr. A", lambda job: 42)
    assert wait_for(jobs, "a").result == 42


def test_progress_is_seen_while_the_work_goes_on():
    """A check of minutes is not a frozen page."""
    jobs, go = Jobs(), Event()
    seen = Event()

    def work(job):
        job.step("asking", total=3)
        for row in job.watch([1, 2, 3]):
            if row == 3:
                seen.set()
                go.wait(60)
        return "done"

    jobs.start("a", "Dr. A", work)
    seen.wait(60)
    progress = jobs.progress_of("a")
    assert (progress.what, progress.done, progress.total) == ("asking", 2, 3)
    assert not progress.finished
    go.set()
    assert wait_for(jobs, "a").done == 3


def test_the_same_work_is_not_started_twice():
    """Two editors press the button: one check runs, the other is told whose it is."""
    jobs, go = Jobs(), Event()
    jobs.start("a", "Dr. A", lambda job: go.wait(60))
    with pytest.raises(ConflictError, match=r"Dr\. A"):
        jobs.start("a", "Dr. B", lambda job: None)
    go.set()
    wait_for(jobs, "a")
    jobs.start("a", "Dr. B", lambda job: "again")
    assert wait_for(jobs, "a").result == "again"


def test_a_refusal_is_told_in_its_own_words():
    """An engine that cannot be reached says what to do, also from a thread."""
    jobs = Jobs()

    def refuse(job):
        raise DataError("nothing is at that address. Start the server.")

    jobs.start("a", "Dr. A", refuse)
    assert wait_for(jobs, "a").error.endswith("Start the server.")


def test_finished_work_can_be_forgotten_and_work_under_way_cannot():
    """Nobody loses sight of a check that still runs."""
    jobs, go = Jobs(), Event()
    jobs.start("a", "Dr. A", lambda job: go.wait(60))
    jobs.forget("a")
    assert jobs.progress_of("a") is not None
    go.set()
    wait_for(jobs, "a")
    jobs.forget("a")
    assert jobs.progress_of("a") is None


def test_a_bug_is_logged_by_its_place_and_never_by_its_values(capfd, caplog):
    """A thread that ends with an error prints it, and values may be clinical text."""

    def break_down(job):
        raise KeyError("small left effusion")

    jobs = Jobs()
    jobs.start("one", "Dr. A", break_down)
    progress = wait_for(jobs, "one")
    assert "ended unexpectedly" in progress.error
    said = "".join([progress.error, caplog.text, *capfd.readouterr()])
    assert "effusion" not in said
    assert "KeyError at" in caplog.text

"""Long work goes on by itself and says how far it is."""

from threading import Event

import pytest

from loop.core.errors import ConflictError, DataError
from loop.run.aside import Heard
from loop.ui.background import Job, JobProgress, Jobs


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


def test_a_step_begins_anew_and_what_failed_says_why():
    """The count of the step before is not that of the next."""
    job = Job(JobProgress(what="starting", by="Ann"))
    job.step("first", 5)
    assert list(job.watch("abc")) == ["a", "b", "c"]
    assert job.progress == JobProgress(what="first", done=3, total=5, by="Ann")
    job.step("second")
    assert job.progress == JobProgress(what="second", by="Ann")
    job.fail("no")
    assert job.progress == JobProgress(
        what="second", by="Ann", finished=True, error="no"
    )
    other = Job(JobProgress(what="starting"))
    other.finish(7)
    assert other.progress == JobProgress(what="starting", finished=True, result=7)


def test_the_last_calls_that_a_server_writes_are_kept():
    """One entry a call of a version and draw; what is written now stands last."""
    job = Job(JobProgress(what="asking"))
    calls = [Heard("v1", 1, number, 6, "x") for number in range(1, 7)]
    for one in calls[:4]:
        job.hear(one)
    assert job.progress.heard == tuple(calls[:4])
    again = calls[1]._replace(text="more")
    job.hear(again)
    assert job.progress.heard == (calls[0], calls[2], calls[3], again)
    job.hear(calls[4])
    assert job.progress.heard == (calls[2], calls[3], again, calls[4])
    other = calls[4]._replace(draw=2)
    job.hear(other)
    assert job.progress.heard == (calls[3], again, calls[4], other)


def test_only_work_under_way_with_that_beginning_is_stopped():
    """Until it has ended, however late it can be stopped; and it says that it was."""
    jobs, go, stops = Jobs(), Event(), []

    def work(job):
        job.on_stop = lambda: (stops.append(1), go.set())
        go.wait(60)
        raise DataError("broken off")

    jobs.start("try 1", "Ann", work)
    jobs.start("check 1", "Ann", lambda job: go.wait(60))
    jobs.stop("check")
    jobs.stop("none")
    assert not go.wait(0)
    jobs.stop("try")
    progress = wait_for(jobs, "try 1")
    assert (progress.error, progress.result) == ("Stopped.", None)
    assert stops
    wait_for(jobs, "check 1")
    jobs.stop("try")
    assert jobs.progress_of("try 1") == progress


def test_what_breaks_after_it_was_stopped_is_no_fault(caplog):
    """A server that goes away is what a person asked for."""
    jobs, go = Jobs(), Event()

    def work(job):
        job.on_stop = go.set
        go.wait(60)
        raise KeyError("gone")

    jobs.start("try 1", "Ann", work)
    jobs.stop("try 1")
    assert wait_for(jobs, "try 1").error == "Stopped."
    assert caplog.text == ""


def test_of_work_that_was_never_started_nothing_is_known():
    """To forget it changes nothing."""
    jobs = Jobs()
    jobs.forget("a")
    assert jobs.progress_of("a") is None

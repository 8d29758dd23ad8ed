"""Unfinished forms and reservations survive a reload, and belong to one person."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest

from loop.core.errors import DataError, StoreError
from loop.core.ledger import Actor
from loop.review.working import (
    LARGEST,
    drop_working,
    keep_working,
    list_reservations,
    read_working,
    release,
    reserve,
)
from loop.run.store import open_store
from tests.review.scenes import WHEN

ANN, BEN = Actor(name="Ann"), Actor(name="Ben")


@pytest.fixture
def store(workspace):
    """Return the open store of a fresh workspace."""
    with open_store(workspace) as opened:
        yield opened


def test_a_form_comes_back_as_it_was_left(workspace, store):
    """Also by another process, and with characters that are only half."""
    payload = {"comment": "naïve 肺 \ud800", "edits": [1, None, True]}
    keep_working(store, ANN, "form:x", {"comment": "first"}, lambda: WHEN)
    keep_working(store, ANN, "form:x", payload, lambda: WHEN)
    with open_store(workspace) as other:
        kept = read_working(other, ANN, "form:x")
    assert kept == (payload, "2026-01-05T09:00:00.000000Z")
    assert read_working(store, BEN, "form:x") is None
    assert read_working(store, ANN, "form:y") is None


def test_a_dropped_form_is_gone(store):
    """And dropping it twice is no error."""
    keep_working(store, ANN, "form:x", {"a": 1})
    for _ in range(2):
        drop_working(store, ANN, "form:x")
    assert read_working(store, ANN, "form:x") is None


def test_a_form_too_large_is_refused_and_the_last_one_kept(store):
    """A whole document pasted into a box must not fill the store."""
    keep_working(store, ANN, "form:x", {"a": 1})
    with pytest.raises(DataError, match=r"65,\d+ bytes; at most 65,536.*Shorten"):
        keep_working(store, ANN, "form:x", {"a": "x" * LARGEST})
    assert read_working(store, ANN, "form:x").payload == {"a": 1}


def test_a_form_of_just_the_most_bytes_is_kept(store):
    """One byte more is refused."""
    room = LARGEST - len('{"a": ""}')
    keep_working(store, ANN, "form:x", {"a": "x" * room})
    with pytest.raises(DataError, match=r"65,537 bytes; at most 65,536"):
        keep_working(store, ANN, "form:x", {"a": "y" * (room + 1)})
    assert read_working(store, ANN, "form:x").payload == {"a": "x" * room}


def test_a_form_changed_in_the_store_is_an_error(store):
    """Not an empty form."""
    with store.writing() as connection:
        connection.execute("INSERT INTO working VALUES ('Ann', 'x', '', '[1]')")
    with pytest.raises(StoreError, match="Begin the form again"):
        read_working(store, ANN, "x")


def test_the_second_person_is_told_who_has_the_case(store):
    """And gets it when it is given back."""
    first = reserve(store, "dev", "a", ANN, lambda: WHEN)
    assert reserve(store, "dev", "a", BEN, lambda: WHEN) == first
    release(store, "dev", "a", BEN)
    assert reserve(store, "dev", "a", BEN, lambda: WHEN).actor == "Ann"
    release(store, "dev", "a", ANN)
    assert reserve(store, "dev", "a", BEN, lambda: WHEN).actor == "Ben"


def test_a_reservation_ends_by_itself(store):
    """Whoever goes home blocks nobody."""
    reserve(store, "dev", "a", ANN, lambda: WHEN, minutes=20)
    at = {minutes: WHEN + timedelta(minutes=minutes) for minutes in (19, 20)}
    assert [one.actor for one in list_reservations(store, "dev", lambda: at[19])] == [
        "Ann"
    ]
    assert list_reservations(store, "dev", lambda: at[20]) == ()
    assert reserve(store, "dev", "a", BEN, lambda: at[20]).actor == "Ben"


def test_ones_own_reservation_is_renewed(store):
    """Work goes on for longer than twenty minutes."""
    reserve(store, "dev", "a", ANN, lambda: WHEN)
    later = WHEN + timedelta(minutes=15)
    assert reserve(store, "dev", "a", ANN, lambda: later).until.startswith(
        "2026-01-05T09:35"
    )


def test_reservations_of_other_cohorts_are_not_shown(store):
    """Case ids of two cohorts may be equal."""
    reserve(store, "other", "a", ANN, lambda: WHEN)
    assert list_reservations(store, "dev", lambda: WHEN) == ()


def test_a_reservation_of_no_time_is_a_bug(store):
    """It would be over before it began."""
    with pytest.raises(ValueError, match="above 0, got 0"):
        reserve(store, "dev", "a", ANN, lambda: WHEN, minutes=0)
    assert list_reservations(store, "dev", lambda: WHEN) == ()
    short = reserve(store, "dev", "a", ANN, lambda: WHEN, minutes=0.5)
    assert short.until.startswith("2026-01-05T09:00:30")


def test_of_eight_at_once_exactly_one_gets_the_case(workspace):
    """Each with a connection of its own, as separate processes have."""
    barrier, got = Barrier(8), []

    def grab(number):
        with open_store(workspace) as store:
            barrier.wait()
            got.append(reserve(store, "dev", "a", Actor(name=f"R{number}")).actor)

    threads = [Thread(target=grab, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(got)) == 1

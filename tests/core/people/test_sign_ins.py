"""Guessing passwords gets slower and slower, and the log of sign-ins is private."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from loop.core.errors import WriteError
from loop.core.people.sign_ins import (
    LONGEST,
    Attempts,
    SignIn,
    SignInResult,
    SignInThrottle,
    record_sign_in,
    sign_ins_path,
)
from tests.clock import Clock


@pytest.fixture
def time():
    """Return a clock to move by hand."""
    return Clock()


@pytest.fixture
def attempts(time):
    """Return attempts on that clock."""
    return Attempts(now=time)


def fail(attempts, count, name="ann", address="1.1.1.1"):
    """Try so often in vain and return what each try was told."""
    return [attempts.begin(name, address) for _ in range(count)]


def test_the_default_limits():
    """A change to any of them has to be made on purpose."""
    assert asdict(SignInThrottle()) == {
        "by_name": 5,
        "by_address": 20,
        "window_s": 900.0,
        "first_s": 30.0,
        "longest_s": 900.0,
        "longest_address_s": 120.0,
        "welcome_s": 30 * 24 * 3600.0,
        "most": 10_000,
    }
    assert LONGEST == 1024 * 1024


def test_the_sixth_try_waits(attempts):
    """Five mistakes are human."""
    assert fail(attempts, 6) == [0, 0, 0, 0, 0, 30]


def test_each_further_failure_doubles_the_wait_up_to_a_quarter_hour(attempts, time):
    """And no further: a lock for good would let anyone shut a colleague out."""
    fail(attempts, 5)
    waits = []
    for _ in range(8):
        waits.append(attempts.wait_s("ann", "1.1.1.1"))
        time.pass_s(waits[-1])
        assert attempts.begin("ann", "1.1.1.1") == 0
    assert waits == [30, 60, 120, 240, 480, 900, 900, 900]


def test_a_try_that_was_refused_is_not_held_against_anyone(attempts, time):
    """Who waits as told gets in."""
    fail(attempts, 50)
    time.pass_s(30)
    assert attempts.begin("ann", "1.1.1.1") == 0


def test_failures_are_forgotten_after_a_quiet_quarter_hour(attempts, time):
    """Four mistakes before lunch and one after it lock nobody."""
    fail(attempts, 4)
    time.pass_s(901)
    assert fail(attempts, 5) == [0] * 5
    # The quarter of an hour begins where the lock ends.
    time.pass_s(930)
    assert fail(attempts, 2) == [0, 60]
    time.pass_s(960)
    assert fail(attempts, 2) == [0, 120]
    time.pass_s(120 + 901)
    assert fail(attempts, 2) == [0, 0]


def test_a_lock_ends_with_its_last_second_and_not_before(attempts, time):
    """Waits are told in whole seconds; half of one is still to wait."""
    fail(attempts, 5)
    time.pass_s(29.5)
    assert fail(attempts, 1) == [1]
    time.pass_s(0.5)
    assert fail(attempts, 1) == [0]


def test_success_forgets_the_failures_on_a_name(attempts):
    """The right person has come."""
    fail(attempts, 5)
    attempts.succeed("ann", "1.1.1.1")
    assert fail(attempts, 5) == [0] * 5


def test_a_lock_on_one_name_leaves_others_alone(attempts):
    """Capitals do not make another name."""
    fail(attempts, 5)
    assert attempts.begin("ANN", "2.2.2.2") == 30
    assert attempts.begin("ben", "1.1.1.1") == 0


def test_an_address_that_tries_many_names_is_locked(attempts):
    """One guess each at a thousand names is guessing all the same."""
    told = [attempts.begin(f"user {n}", "1.1.1.1") for n in range(21)]
    assert told == [0] * 20 + [30]
    assert attempts.begin("ann", "2.2.2.2") == 0


def test_one_known_password_buys_no_guesses_at_others(attempts):
    """Signing in takes one try back from the address, no more."""
    for n in range(19):
        attempts.begin(f"user {n}", "1.1.1.1")
    assert attempts.begin("mine", "1.1.1.1") == 0
    attempts.succeed("mine", "1.1.1.1")
    assert attempts.begin("another", "1.1.1.1") == 0
    assert attempts.begin("one more", "1.1.1.1") == 30


def test_the_right_password_after_a_lock_ends_it_for_the_address_too(attempts, time):
    """Signing out and in again, or a colleague's sign-in, must not wait once more."""
    for n in range(20):
        attempts.begin(f"user {n}", "1.1.1.1")
    assert attempts.begin("mine", "1.1.1.1") == 30
    time.pass_s(30)
    assert attempts.begin("mine", "1.1.1.1") == 0
    attempts.succeed("mine", "1.1.1.1")
    assert attempts.begin("mine", "1.1.1.1") == 0
    attempts.succeed("mine", "1.1.1.1")
    assert attempts.begin("another", "1.1.1.1") == 0


def test_one_persons_failures_never_lock_their_address(attempts, time):
    """A script with an old password runs all day behind a clinic's proxy."""
    for _ in range(1100):
        time.pass_s(attempts.wait_s("ann", "1.1.1.1"))
        assert attempts.begin("ann", "1.1.1.1") == 0
    assert attempts.begin("ben", "1.1.1.1") == 0


def test_who_signed_in_from_an_address_is_not_locked_out_with_it(attempts):
    """Failures of others there are theirs; the own name is throttled as ever."""
    attempts.begin("ann", "1.1.1.1")
    attempts.succeed("ann", "1.1.1.1")
    for n in range(20):
        attempts.begin(f"user {n}", "1.1.1.1")
    assert attempts.begin("ben", "1.1.1.1") == 30
    assert fail(attempts, 6) == [0, 0, 0, 0, 0, 30]
    # Somewhere else the name is as unknown as any.
    for n in range(20):
        attempts.begin(f"user {n}", "2.2.2.2")
    assert attempts.wait_s("ann", "2.2.2.2") == 30


def test_an_address_is_remembered_for_a_name_for_a_month(attempts, time):
    """Who has left must not stand for whoever has the address today."""
    attempts.begin("ann", "1.1.1.1")
    attempts.succeed("ann", "1.1.1.1")
    time.pass_s(31 * 86400)
    for n in range(20):
        attempts.begin(f"user {n}", "1.1.1.1")
    assert attempts.begin("ann", "1.1.1.1") == 30


def test_an_address_waits_two_minutes_at_most(attempts, time):
    """Many people may stand behind it who have not signed in yet today."""
    waits = []
    for n in range(30):
        waits.append(attempts.wait_s(f"user {n}", "1.1.1.1"))
        time.pass_s(waits[-1])
        assert attempts.begin(f"user {n}", "1.1.1.1") == 0
    assert waits == [0] * 20 + [30, 60] + [120] * 8


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
        ("1.1.1.1", "::ffff:1.1.1.1"),
        ("fe80::1%eth0", "fe80::2%eth0"),
    ],
)
def test_addresses_that_one_machine_has_at_once_count_as_one(attempts, first, second):
    """With IPv6 it has as many as it likes; with a mapped IPv4 address, two."""
    for n in range(20):
        attempts.begin(f"user {n}", first)
    assert attempts.begin("ann", second) == 30


def test_tries_at_once_get_no_further_than_in_a_row(attempts):
    """A try counts when it begins, not when its answer is known."""
    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(lambda _: attempts.begin("ann", "1.1.1.1"), range(100)))
    assert told.count(0) == 5


def test_memory_is_bounded(time):
    """A flood of names forgets the oldest, and keeps no name as it was typed."""
    attempts = Attempts(SignInThrottle(most=100), now=time)
    for n in range(1000):
        attempts.begin(f"name {n}", f"address {n}")
    assert len(attempts._tries) == 100
    for n in range(1000):
        attempts.succeed(f"name {n}", f"address {n}")
    assert len(attempts._welcome) == 100
    assert all(len(key) == 32 for key in (*attempts._tries, *attempts._welcome))


def test_an_address_is_welcome_for_a_month(attempts, time):
    """And not for good: machines change hands."""
    for days, wait in ((29, 0), (30, 0), (31, 30)):
        attempts.begin("ann", "1.1.1.1")
        attempts.succeed("ann", "1.1.1.1")
        time.pass_s(days * 86400)
        for n in range(20):
            attempts.begin(f"user {n}", "1.1.1.1")
        assert attempts.wait_s("ann", "1.1.1.1") == wait


def test_what_was_used_last_is_forgotten_last(time):
    """Of the names that failed and of those that are known at an address."""
    attempts = Attempts(SignInThrottle(by_name=1, by_address=99, most=4), now=time)
    for name in ("ann", "ben", "ann", "cat"):
        attempts.begin(name, f"of {name}")
        time.pass_s(120)
    # Each try counts a name and an address: four of the six are left.
    assert attempts.begin("ann", "1.1.1.1") == 0
    assert attempts.wait_s("ann", "1.1.1.1") > 30
    assert attempts.begin("ben", "1.1.1.1") == 0
    assert attempts.wait_s("ben", "1.1.1.1") == 30
    known = Attempts(SignInThrottle(most=2), now=time)
    for name in ("ann", "ben", "ann", "cat"):
        known.succeed(name, "1.1.1.1")
    found = [known._is_welcome(n, "1.1.1.1", time()) for n in ("ann", "ben", "cat")]
    assert found == [True, False, True]


def noon():
    """Return one instant."""
    return datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_line_says_when_who_from_where_and_how_it_ended(workspace):
    """And only its owner may read it."""
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    record_sign_in(workspace, entry, now=noon)
    path = sign_ins_path(workspace)
    assert json.loads(path.read_text("utf-8")) == {
        "time": "2026-01-01T12:00:00Z",
        "name": "ann",
        "address": "1.1.1.1",
        "result": "wrong",
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_turns_over_at_its_limit(workspace):
    """A flood of tries does not fill the disk."""
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    for _ in range(30):
        record_sign_in(workspace, entry, now=noon, longest=500)
    path = sign_ins_path(workspace)
    before = path.with_name("sign-ins.jsonl.1")
    assert path.stat().st_size <= 500
    assert before.stat().st_size <= 500
    assert not path.with_name("sign-ins.jsonl.2").exists()


def test_the_log_is_filled_to_its_limit(workspace):
    """Two lines of their length fit exactly; the third begins a new one."""
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    record_sign_in(workspace, entry, now=noon)
    path = sign_ins_path(workspace)
    before, line = path.with_name("sign-ins.jsonl.1"), path.read_bytes()
    for lines, turned in ((2, False), (1, True)):
        record_sign_in(workspace, entry, now=noon, longest=2 * len(line))
        assert (path.read_bytes(), before.exists()) == (line * lines, turned)


def test_a_log_that_cannot_be_written_says_so(workspace):
    """The caller decides what that means."""
    sign_ins_path(workspace).mkdir()
    entry = SignIn(name="ann", address="1.1.1.1", result=SignInResult.WRONG)
    with pytest.raises(WriteError, match=r"cannot write .*sign-ins\.jsonl"):
        record_sign_in(workspace, entry)


def test_a_line_has_letters_as_they_are_and_never_fails_on_one(workspace):
    """A name is read by people; half a character is spelled out."""
    for name in ("Zoë", "a\ud800"):
        entry = SignIn(name=name, address="::1", result=SignInResult.SIGNED_OUT)
        record_sign_in(workspace, entry, now=noon)
    assert sign_ins_path(workspace).read_text("utf-8").splitlines() == [
        f'{{"time": "2026-01-01T12:00:00Z", "name": "{name}", "address": "::1", '
        '"result": "signed out"}'
        for name in ("Zoë", "a\\ud800")
    ]


def test_a_quarter_of_an_hour_is_not_over_at_its_last_second(attempts, time):
    """Failures are forgotten after it, and not with it."""
    fail(attempts, 4)
    time.pass_s(900)
    assert fail(attempts, 2) == [0, 30]


def test_an_address_that_is_none_is_taken_as_it_is(attempts):
    """A proxy may name a socket; one beside it is another."""
    for n in range(20):
        attempts.begin(f"user {n}", "unix:a")
    assert attempts.wait_s("ann", "unix:a") == 30
    assert attempts.wait_s("ann", "unix:b") == 0


def test_networks_of_two_machines_are_two(attempts):
    """The next network of 64 bits, and the next IPv4 address, are somebody else's."""
    for first, second in (("2001:db8:1:2::1", "2001:db8:1:3::1"), ("9.1", "9.2")):
        for n in range(20):
            attempts.begin(f"user {n} of {first}", first)
        assert attempts.wait_s("ann", first) == 30
        assert attempts.wait_s("ann", second) == 0

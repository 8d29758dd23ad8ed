"""Sessions end when they should, and their tokens are kept nowhere."""

import pytest

from loop.ui.access.sessions import OpenTabs, Sessions, Spans


@pytest.fixture
def sessions(time):
    """Return sessions on a clock moved by hand."""
    return Sessions(Spans(each=3, most=5), now=time)


def test_a_token_finds_its_session_and_no_other(sessions):
    """Two of them differ, and are long."""
    token = sessions.open("ann", "proof")
    assert sessions.find(token).name == "ann"
    assert sessions.find(token[:-1]) is None
    assert sessions.find("") is None
    assert sessions.open("ann", "proof") != token
    assert len(token) >= 43


def test_only_a_digest_of_the_token_is_kept(sessions):
    """Whoever reads the memory of the server cannot sign in with it."""
    token = sessions.open("ann", "proof")
    assert token not in repr(vars(sessions))


def test_an_unused_session_ends(sessions, time):
    """And a used one does not."""
    token = sessions.open("ann", "proof")
    time.pass_s(1700)
    sessions.touch(token)
    time.pass_s(1800)
    assert sessions.find(token) is not None
    time.pass_s(1)
    assert sessions.find(token) is None
    sessions.touch(token)
    assert sessions.find(token) is None


def test_using_a_session_that_has_ended_does_not_open_it_again(sessions, time):
    """Whether or not anybody has asked for it meanwhile."""
    token = sessions.open("ann", "proof")
    time.pass_s(1801)
    assert sessions.list_open() == ()
    sessions.touch(token)
    assert sessions.find(token) is None


def test_a_session_ends_after_twelve_hours_of_use(sessions, time):
    """Somebody else may sit there by then."""
    token = sessions.open("ann", "proof")
    for _ in range(48):
        time.pass_s(900)
        sessions.touch(token)
    assert sessions.find(token) is not None
    time.pass_s(1)
    assert sessions.find(token) is None


def test_a_closed_session_is_gone(sessions):
    """Signing out signs out."""
    token = sessions.open("ann", "proof")
    sessions.close(token)
    sessions.close(token)
    assert sessions.find(token) is None


def test_too_many_sessions_end_the_one_unused_for_longest(sessions):
    """Memory is bounded, by user and in all."""
    tokens = [sessions.open("ann", "p") for _ in range(3)]
    sessions.touch(tokens[0])
    sessions.open("ann", "p")
    assert [sessions.find(token) is None for token in tokens] == [False, True, False]
    sessions.open("ANN", "p")
    assert [sessions.find(token) is None for token in tokens] == [False, True, True]
    many = [sessions.open(f"user {n}", "p") for n in range(10)]
    assert sum(sessions.find(token) is not None for token in many) == 5


def test_ended_sessions_make_room_first(sessions, time):
    """A crowd that has left shuts nobody out."""
    for n in range(5):
        sessions.open(f"user {n}", "p")
    time.pass_s(1801)
    token = sessions.open("ann", "p")
    assert sessions.find(token) is not None
    assert len(sessions._sessions) == 1


@pytest.fixture
def tabs(time):
    """Return open tabs on a clock moved by hand."""
    return OpenTabs(Spans(tabs=3), now=time)


def test_a_tab_is_of_who_opened_it(tabs):
    """However their name is capitalised, and of nobody else."""
    assert tabs.claim("one", "Ann")
    assert tabs.claim("one", "ANN")
    assert not tabs.claim("one", "ben")
    assert tabs.claim("two", "ben")


def test_a_tab_is_kept_until_no_session_of_it_can_be_left(tabs, time):
    """Gradio keeps its state for some time after it was closed."""
    tabs.claim("one", "ann")
    for _ in range(3):
        time.pass_s(12 * 3600)
        assert not tabs.claim("one", "ben")
        assert tabs.claim("one", "ann")
    time.pass_s(12 * 3600 + 1)
    assert tabs.claim("one", "ben")
    assert not tabs.claim("one", "ann")


def test_who_opens_too_many_tabs_gives_up_their_own(tabs):
    """Nobody can push others out, and memory is bounded."""
    given_up = []
    tabs.on_forget = given_up.append
    tabs.claim("kept", "ben")
    for n in range(100):
        assert tabs.claim(f"tab {n}", "ann")
    assert not tabs.claim("kept", "ann")
    assert not tabs.claim("tab 99", "ben")
    assert given_up == [f"tab {n}" for n in range(97)]
    assert tabs.claim("tab 0", "ben")
    assert len(tabs._tabs) == 5


def test_the_tab_unused_for_longest_is_given_up(tabs):
    """Not the one that was opened first."""
    for tab in ("one", "two", "three", "one", "four"):
        assert tabs.claim(tab, "ann")
    assert not tabs.claim("one", "ben")
    assert tabs.claim("two", "ben")


def test_what_nobody_uses_is_forgotten(tabs, time):
    """Of users who have left, too."""
    tabs.claim("one", "ann")
    time.pass_s(12 * 3600 + 1)
    tabs.claim("one", "ben")
    assert set(tabs._owners) == {"ben"}

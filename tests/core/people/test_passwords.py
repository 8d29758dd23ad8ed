"""Passwords are kept as scrypt says, and compared without telling anything."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.people import passwords
from loop.core.people.passwords import (
    COST,
    Cost,
    check_password,
    fits,
    hash_password,
    is_hash,
    outgrown,
)

CHEAP = Cost(n=2**4, r=1, p=1)
GOOD = "correct horse battery"


@pytest.fixture
def cheap(monkeypatch):
    """Make hashes quick where their cost is not the claim."""
    monkeypatch.setattr(passwords, "COST", CHEAP)


def test_the_hash_is_the_one_of_rfc_7914(monkeypatch):
    """Section 12, second vector, first half: N = 1024, r = 8, p = 16, salt NaCl."""
    expected = bytes.fromhex(
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
    )
    monkeypatch.setattr(passwords, "COST", Cost(1024, 8, 16))
    kept = hash_password("password", salt=b"NaCl")
    assert base64.b64decode(kept.split("$")[-1]) == expected


def test_the_cost_is_one_that_owasp_names():
    """Equal settings: n = 2^17 p = 1, 2^16 p = 2, 2^15 p = 3."""
    assert COST == (2**15, 8, 3)
    assert COST.sane()


def test_only_the_password_fits_its_hash(cheap):
    """And two hashes of one password differ, for the salt does."""
    kept = hash_password(GOOD)
    assert fits(GOOD, kept)
    assert not fits(GOOD + " ", kept)
    assert kept != hash_password(GOOD)


def test_composition_of_accents_makes_no_other_password(cheap):
    """A phone and a workstation send the same letter differently."""
    assert fits("passwörter zu", hash_password("passwo\u0308rter zu"))


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "scrypt$16$1$1$$",
        "bcrypt$16$1$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAA",
        "scrypt$17$1$1$AAAAAAAAAAAAAAAAAAAAAA==$" + "A" * 43 + "=",
        "scrypt$1048577$8$1$AAAAAAAAAAAAAAAAAAAAAA==$" + "A" * 43 + "=",
        "scrypt$16$1$0$AAAAAAAAAAAAAAAAAAAAAA==$" + "A" * 43 + "=",
        "scrypt$16$1$1$é$" + "A" * 43 + "=",
        "scrypt$1e1000$1$1$a$b",
    ],
)
def test_what_is_no_hash_fits_nothing(kept, monkeypatch):
    """A damaged entry lets nobody in, and a dear one does not stop the server."""
    monkeypatch.setattr(passwords, "_nobody", lambda: "")
    assert not is_hash(kept)
    assert not fits(GOOD, kept)
    assert outgrown(kept)


@given(st.text(max_size=60))
def test_any_text_is_a_hash_or_is_not(text):
    """Parsing never fails on what stands in a file."""
    assert is_hash(text) in (True, False)


def test_an_unknown_name_costs_what_a_known_one_does(cheap, monkeypatch):
    """Else the time of the answer would tell which names exist."""
    paid = []
    derive = passwords._derive
    monkeypatch.setattr(
        passwords, "_derive", lambda *given: paid.append(given[1]) or derive(*given)
    )
    passwords._nobody.cache_clear()
    passwords.fits_nobody()
    paid.clear()
    assert not passwords.fits_nobody()
    passwords._nobody.cache_clear()
    assert paid == [CHEAP]


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short", "12 to 128"),
        ("x1y2z3 abcd", "12 to 128"),
        ("x" * 129, "12 to 128"),
        ("abababababab", "different"),
        ("abcdabcdabcd", "different"),
        ("Dr. Ayse Kaya", "more than the name"),
        ("DR. AYSE KAYA1234", "more than the name"),
        ("ranloopranloop1", "more than the name"),
        ("ranloop-ranloop 123", "more than the name"),
    ],
)
def test_easy_passwords_are_refused_without_being_quoted(password, why):
    """Length counts; a name is the first guess."""
    with pytest.raises(ValueError, match=why) as refused:
        check_password(password, "Dr. Ayse Kaya")
    assert password not in str(refused.value)


@pytest.mark.parametrize(
    "password",
    [
        GOOD,
        "ünïcödé wörds",
        "日本語のパスワード文字列",
        "x1y2 " * 25,
        "x1y2z3 abcde",
        "x1y2z" * 25 + "abc",
        "abcdeabcdeab",
        "ranloop-ranloop 1234",
    ],
)
def test_composition_is_free(password):
    """No rule asks for capitals, digits or signs."""
    check_password(password, "dr_a")


def test_a_hash_of_another_cost_is_outgrown(cheap, monkeypatch):
    """It is renewed when its owner signs in."""
    kept = hash_password(GOOD)
    assert not outgrown(kept)
    monkeypatch.setattr(passwords, "COST", COST)
    assert outgrown(kept)


@pytest.mark.parametrize(("name", "refused"), [("ab", False), ("abc", True)])
def test_a_name_of_two_letters_is_in_every_password(name, refused):
    """Of a longer one nothing may be left over but a few characters."""
    password = f"{name * 6}-1234"
    if refused:
        with pytest.raises(ValueError, match="more than the name"):
            check_password(password, name)
    else:
        check_password(password, name)


@pytest.mark.parametrize(
    ("cost", "sane"),
    [
        ((2**20, 16, 16), True),
        ((2, 1, 1), True),
        ((2**21, 8, 1), False),
        ((2**15, 17, 1), False),
        ((2**15, 0, 1), False),
        ((2**15, 8, 17), False),
        ((2**15, 8, 0), False),
        ((1, 8, 1), False),
        ((0, 8, 1), False),
        ((3 * 2**10, 8, 1), False),
    ],
)
def test_a_cost_is_one_that_this_server_would_pay(cost, sane):
    """A file that somebody wrote must not take all its memory, or its time."""
    assert Cost(*cost).sane() is sane


def test_what_is_longer_than_any_password_is_not_derived(cheap):
    """Not even the one that it was made of."""
    for length, fitting in ((4 * 128, True), (4 * 128 + 1, False)):
        assert fits("x" * length, hash_password("x" * length)) is fitting

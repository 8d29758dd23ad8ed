"""The sign-in page: what it says, where it leads, what it gives."""

import re

import pytest
from starlette.requests import Request

from loop.ui.access.sign_in import (
    WRONG,
    _page,
    _spell,
    locked,
    safe_next,
    to_sign_in,
)
from tests.ui.access.served import GOOD

AWAY = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/%2f/evil.example",
    "/sign-out",
    "/?x=\r\nSet-Cookie: a=b",
    "/\n",
    "javascript:alert(1)",
    "/?x=<script>",
    "",
]


def test_the_page_is_a_plain_form(client):
    """It works without scripts, and asks nothing of any other server."""
    page = client.get("/sign-in")
    assert page.status == 200
    assert "<script" not in page.text
    assert not re.search(r"(?:src|href)=\"(?!data:)", page.text)
    assert 'autocomplete="current-password"' in page.text
    assert "'unsafe" not in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers


def test_the_right_password_gives_a_cookie_that_scripts_cannot_read(client):
    """And leads to the page."""
    answer = client.sign_in("Reviewer")
    assert answer.status == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert part in cookie
    assert "Max-Age" not in cookie
    assert client.get("/theme.css").status == 200


def test_over_https_the_cookie_stays_there(access):
    """The prefix makes browsers refuse one set by plain HTTP or another host."""
    from starlette.responses import Response

    from loop.ui.access.cookies import give_token, token_of

    scope = {"type": "http", "scheme": "https", "server": ("h", 443), "headers": []}
    response = Response()
    give_token(response, Request(scope), "token")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-ranloop-443=token; ")
    assert "Secure" in cookie
    scope["headers"] = [(b"cookie", cookie.partition(";")[0].encode())]
    assert token_of(Request(scope)) == "token"


@pytest.mark.parametrize("name", ["reviewer", "nobody"])
def test_a_wrong_password_says_no_more_than_that(client, name):
    """The name stays in the form, the password does not."""
    page = client.sign_in(name, "wrong password")
    assert page.status == 401
    assert "Name or password is wrong." in page.text
    assert 'role="alert"' in page.text
    assert f'value="{name}"' in page.text
    assert "wrong password" not in page.text
    assert client.cookie == ""


def test_the_locked_form_says_for_how_long(client, time):
    """And opens again after that."""
    for _ in range(5):
        page = client.sign_in("reviewer", "wrong")
    assert page.status == 429
    assert page.headers["retry-after"] == "30"
    assert "Try again in 30 seconds." in page.text
    assert client.sign_in("reviewer").status == 429
    time.pass_s(31)
    assert client.sign_in("reviewer").status == 303


def test_after_an_address_was_locked_its_people_come_and_go(client, time):
    """The right password once the wait is over: out and in again, and the next one."""
    for n in range(20):
        client.sign_in(f"user {n}", "wrong")
    assert client.sign_in("reviewer").status == 429
    time.pass_s(31)
    for name in ("reviewer", "reviewer", "editor"):
        assert client.sign_in(name).status == 303
        assert client.post("/sign-out", b"").status == 303


def test_longer_locks_are_told_in_minutes(client, time):
    """Nobody counts to 480."""
    for _ in range(9):
        page = client.sign_in("reviewer", "wrong")
        time.pass_s(int(page.headers.get("retry-after", 0)))
    assert "Try again in 8 minutes." in page.text


@pytest.mark.parametrize(
    ("query", "text", "role"),
    [
        ("?ended=1", "Your session has ended.", "alert"),
        ("?left=1", "You have signed out.", "status"),
    ],
)
def test_the_page_says_why_one_is_there(client, query, text, role):
    """Not a bare form after an hour of work."""
    page = client.get(f"/sign-in{query}")
    assert text in page.text
    assert f'role="{role}"' in page.text


def test_one_is_sent_nowhere_else(client):
    """A link to the form must not lead to another site after it."""
    for wanted in AWAY:
        answer = client.sign_in("reviewer", next=wanted)
        assert answer.status == 303
        assert answer.headers["location"] == "/"


def test_one_comes_back_to_where_one_wanted_to_go(client):
    """By way of the form."""
    page = client.get("/sign-in?next=%2F%3F__theme%3Ddark")
    assert 'name="next" value="/?__theme=dark"' in page.text
    answer = client.sign_in("reviewer", next="/?__theme=dark")
    assert answer.headers["location"] == "/?__theme=dark"


def test_a_name_stays_text(client):
    """Whatever was typed into the field."""
    page = client.sign_in('"><script>alert(1)</script>\x1b[31m\u202e', "wrong")
    assert "<script" not in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


def test_a_malformed_form_is_a_wrong_password(client):
    """Nothing breaks."""
    for body in (b"", b"\xff\xfe=%ff", b"&" * 500, b"%", b"name=" * 300):
        assert client.post("/sign-in", body).status in (401, 429)


def test_a_form_of_unheard_of_length_is_refused(client):
    """Unread."""
    assert client.post("/sign-in", b"x" * 8193).status == 413


def test_signing_in_again_ends_the_session_before(client):
    """A browser has one, and nobody can plant theirs in it."""
    client.sign_in("reviewer")
    before = client.cookie
    client.sign_in("editor")
    assert client.cookie != before
    client.cookie = before
    assert client.get("/theme.css").status == 401


def test_signing_out_ends_the_session_on_the_server(client):
    """A copy of the cookie opens nothing."""
    client.sign_in("reviewer")
    answer = client.post("/sign-out", b"")
    assert answer.status == 303
    assert answer.headers["location"] == "/sign-in?left=1"
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert client.get("/theme.css").status == 401


def test_signing_out_is_no_link(client):
    """Else any page could sign people out with an image."""
    client.sign_in("reviewer")
    assert client.get("/sign-out").status == 404
    assert client.get("/theme.css").status == 200


def test_who_is_signed_in_is_sent_on(client):
    """A bookmark of the form."""
    client.sign_in("reviewer", GOOD)
    assert client.get("/sign-in").headers["location"] == "/"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (2, "2 seconds"), (90, "90 seconds"), (91, "2 minutes")],
)
def test_a_wait_is_said_in_words(seconds, words):
    """Nobody is told to wait for 1 seconds."""
    assert _spell(seconds) == words


def test_the_form_keeps_the_beginning_of_a_name():
    """A name may be as long as a request, and is written as text."""
    shown = _page(WRONG, "/", "<b>" + "x" * 100).body.decode()
    assert f"&lt;b&gt;{'x' * 61}" in shown
    assert "x" * 62 not in shown


def test_who_has_to_wait_is_told_how_long():
    """In words for people and in seconds for programs; others are told nothing."""
    page = _page(locked(120), "/", wait_s=120)
    assert (page.status_code, page.headers["retry-after"]) == (429, "120")
    assert "Try again in 2 minutes." in page.body.decode()
    assert "retry-after" not in _page(WRONG, "/").headers
    assert _page(None, "/").status_code == 200


@pytest.mark.parametrize("wanted", ["/", "/?__theme=dark", "/?a=" + "b" * 298])
def test_a_page_of_ours_is_where_one_goes(wanted):
    """With the parameters it had, as long as there are not too many."""
    assert safe_next(wanted) == wanted
    assert safe_next(f"{wanted}?") == "/"
    assert safe_next(f"{wanted:b<303}b") == "/"


def test_a_page_of_the_gate_runs_nothing_and_asks_nobody():
    """Its own style is named by a word that is another each time."""
    policies = [_page(None, "/").headers["content-security-policy"] for _ in range(2)]
    nonces = [re.search("'nonce-([A-Za-z0-9_-]{22})'", one)[1] for one in policies]
    assert nonces[0] != nonces[1]
    assert policies[0] == (
        f"default-src 'none'; style-src 'nonce-{nonces[0]}'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def asked(query="", cookie=""):
    """Return a request for the page, with a query and a session's token."""
    headers = [(b"cookie", f"ranloop-80={cookie}".encode())] if cookie else []
    return Request(
        {
            "type": "http",
            "scheme": "http",
            "server": ("h", 80),
            "query_string": query.encode(),
            "headers": headers,
        }
    )


@pytest.mark.parametrize(
    ("query", "cookie", "begun", "where"),
    [
        ("", "", False, "/sign-in"),
        ("", "x", False, "/sign-in?ended=1"),
        ("", "x", True, "/sign-in?ended=1"),
        ("", "", True, "/sign-in?begun=1"),
        ("a=b", "", False, "/sign-in?next=%2F%3Fa%3Db"),
        ("a=b", "x", False, "/sign-in?next=%2F%3Fa%3Db&ended=1"),
        ("a=<b>", "", False, "/sign-in"),
    ],
)
def test_the_way_to_the_form_says_why_and_from_where(query, cookie, begun, where):
    """Whoever had a session is told that it ended, and not that all sign in now."""
    answer = to_sign_in(asked(query, cookie), begun=begun)
    assert (answer.status_code, answer.headers["location"]) == (303, where)

"""Whether a request comes from our own pages, by what a browser says of it."""

import pytest
from starlette.requests import Request

from loop.ui.access.cookies import cookie_name
from loop.ui.access.origin import from_elsewhere

HERE = "http://127.0.0.1:7860"


def request(method="POST", path="/gradio_api/run/x", scheme="http", **headers):
    """Return a request with these headers."""
    given = {"host": "127.0.0.1:7860"} | {
        name.replace("_", "-"): value for name, value in headers.items() if value
    }
    return Request(
        {
            "type": "http",
            "method": method,
            "path": path,
            "scheme": scheme,
            "server": ("127.0.0.1", 7860),
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        }
    )


@pytest.mark.parametrize(
    ("site", "origin", "elsewhere"),
    [
        ("same-origin", HERE, False),
        ("same-origin", None, False),
        ("same-origin", "null", False),
        ("same-origin", "http://evil.example", True),
        ("same-origin", "http://127.0.0.1:7861", True),
        ("same-origin", "https://127.0.0.1:7860", True),
        (None, HERE, False),
        (None, HERE.upper(), False),
        (None, "http://evil.example", True),
        (None, f"{HERE}.evil.example", True),
        (None, "null", True),
        (None, None, True),
        ("same-site", HERE, True),
        ("cross-site", HERE, True),
        ("none", HERE, True),
        ("none", None, True),
        ("", HERE, False),
    ],
)
def test_what_changes_something_must_say_that_it_comes_from_here(
    site, origin, elsewhere
):
    """One sign is enough, and none may say otherwise; a host has no capitals."""
    asked = request(sec_fetch_site=site, origin=origin)
    assert from_elsewhere(asked) is elsewhere
    assert from_elsewhere(request("DELETE", sec_fetch_site=site, origin=origin)) is (
        elsewhere
    )


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("site", "mode", "path", "elsewhere"),
    [
        (None, None, "/theme.css", False),
        ("same-origin", "cors", "/theme.css", False),
        ("none", "navigate", "/download/gates.csv", False),
        ("cross-site", "navigate", "/", False),
        ("cross-site", "navigate", "/sign-in", False),
        ("cross-site", "navigate", "/download/gates.csv", True),
        ("cross-site", "cors", "/", True),
        ("cross-site", None, "/sign-in", True),
        ("same-site", "no-cors", "/theme.css", True),
        ("same-site", "navigate", "/", False),
    ],
)
def test_what_only_reads_must_not_say_that_it_comes_from_elsewhere(
    method, site, mode, path, elsewhere
):
    """But a link may be followed to a page, and to nothing else."""
    asked = request(method, path, sec_fetch_site=site, sec_fetch_mode=mode)
    assert from_elsewhere(asked) is elsewhere


@pytest.mark.parametrize(
    ("scheme", "server", "name"),
    [
        ("http", ("127.0.0.1", 7860), "ranloop-7860"),
        ("https", ("127.0.0.1", 443), "__Host-ranloop-443"),
        ("http", ("/run/socket", None), "ranloop-0"),
        ("http", None, "ranloop-0"),
    ],
)
def test_the_cookies_of_two_servers_of_a_machine_are_kept_apart(scheme, server, name):
    """By their ports; over HTTPS nobody else can set it."""
    asked = request(scheme=scheme)
    asked.scope["server"] = server
    assert cookie_name(asked) == name

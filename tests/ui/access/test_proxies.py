"""Whose word is taken about where a request came from."""

import pytest

from loop.ui.access.proxies import Proxies

PROXIES = Proxies.parse(["10.0.0.1", "10.1.0.0/16", "2001:db8::/32"])


def established(forwarded=(), proto=(), peer="10.0.0.1", scheme="http"):
    """Return address and scheme of a request with these headers."""
    headers = [(b"x-forwarded-for", one.encode("latin-1")) for one in forwarded]
    headers += [(b"x-forwarded-proto", one.encode("latin-1")) for one in proto]
    headers.append((b"forwarded", b"for=6.6.6.6;proto=https"))
    scope = {
        "type": "http",
        "client": (peer, 4711),
        "scheme": scheme,
        "headers": headers,
    }
    found = PROXIES.established(scope)
    return found["client"][0], found["scheme"]


@pytest.mark.parametrize("peer", ["10.0.0.2", "127.0.0.1", "::1", "192.0.2.1"])
def test_nobody_else_is_believed(peer):
    """Not this machine either: whoever has an account on it would be."""
    assert established(["192.0.2.7"], ["https"], peer) == (peer, "http")


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (["192.0.2.7"], "192.0.2.7"),
        (["6.6.6.6, 192.0.2.7"], "192.0.2.7"),
        (["6.6.6.6", "192.0.2.7"], "192.0.2.7"),
        (["6.6.6.6, 192.0.2.7, 10.1.2.3"], "192.0.2.7"),
        (["192.0.2.7, 10.1.2.3, 10.0.0.1"], "192.0.2.7"),
        (["10.1.2.3, 10.1.2.4"], "10.1.2.3"),
        (["192.0.2.7:4711"], "192.0.2.7"),
        (["[2001:DB9::1]:443"], "2001:db9::1"),
        (["2001:DB9:0::1"], "2001:db9::1"),
        (["::ffff:192.0.2.7"], "192.0.2.7"),
        (["fe80::7%eth0"], "fe80::7"),
    ],
)
def test_the_right_most_address_that_is_no_proxy_counts(forwarded, address):
    """What stands left of it anybody may have written."""
    assert established(forwarded)[0] == address


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "unknown",
        "192.0.2.7\x00",
        '"}\n{"name": "admin"',
        "<script>",
        "192.0.2",
        "192.0.2.7:port",
        "[192.0.2.7",
        "[::1]x",
        "2001:db9::1::2",
        "1" * 5000,
        "\xff",
    ],
)
def test_a_malformed_address_is_ignored_with_all_to_its_left(entry):
    """The address is then that of the last hop that was well-formed."""
    assert established([f"6.6.6.6, {entry}"])[0] == "10.0.0.1"
    assert established([f"6.6.6.6, {entry}, 10.1.2.3"])[0] == "10.1.2.3"


@pytest.mark.parametrize(
    ("proto", "scheme"),
    [
        ([], "http"),
        (["https"], "https"),
        (["HTTPS"], "https"),
        (["https, https"], "https"),
        (["http"], "http"),
        (["https, http"], "http"),
        (["https", "http"], "http"),
        (["wss"], "http"),
        (["https;evil"], "http"),
        (["\xff"], "http"),
    ],
)
def test_a_scheme_is_taken_where_all_agree_on_it(proto, scheme):
    """Two proxies that contradict each other have said nothing."""
    assert established(proto=proto)[1] == scheme


def test_a_proxy_can_say_that_a_browser_came_without_tls():
    """The way between proxy and server is another one."""
    assert established(proto=["http"], scheme="https")[1] == "http"
    for scheme in ("http", "https"):
        assert established(proto=["https, http"], scheme=scheme)[1] == scheme


def test_only_another_address_loses_its_port():
    """The proxy's own connection has one; what it reports has none that is known."""
    scope = {"type": "http", "client": ("10.0.0.1", 4711), "scheme": "http"}
    for headers, client in (
        ([], ("10.0.0.1", 4711)),
        ([(b"x-forwarded-for", b"192.0.2.7")], ("192.0.2.7", 0)),
    ):
        assert PROXIES.established(scope | {"headers": headers})["client"] == client


def test_without_proxies_nothing_is_believed():
    """The default."""
    assert not Proxies()
    assert not Proxies().trust("127.0.0.1")


@pytest.mark.parametrize(
    "given", ["", "nginx", "10.0.0.0/33", "10.0.0.1/8", "0.0.0.0/0", "::/0"]
)
def test_what_is_no_address_or_means_everybody_is_refused(given):
    """A slip would open the log and the throttle to invented addresses."""
    with pytest.raises(ValueError, match=r".+"):
        Proxies.parse([given])


def test_a_connection_without_an_address_is_nobodys():
    """A socket in the file system."""
    scope = {"type": "http", "client": None, "scheme": "http", "headers": []}
    assert PROXIES.established(scope) is scope

"""By which names a server may be asked."""

import pytest

from loop.ui.access.hosts import Hosts, host_name, is_loopback
from loop.ui.access.proxies import Proxies


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST."]
)
def test_this_machine_to_itself(host):
    """Nobody else can connect."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"]
)
def test_what_others_may_reach(host):
    """When in doubt, others can."""
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "header",
    ["localhost", "localhost:80", "127.0.0.1:7860", "[::1]:7860", "LocalHost."],
)
def test_a_local_server_goes_by_the_names_of_this_machine(header):
    """With any port: a tunnel may change it."""
    assert Hosts(bound="127.0.0.1").knows(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "localhost:80:80",
        "localhost:port",
        "localhost/x",
        "localhost evil",
        "[::1",
        "10.0.0.1",
        "localhost:123456",
    ],
)
def test_another_name_that_points_here_is_refused(header):
    """A site that makes its own name mean this machine (DNS rebinding)."""
    assert not Hosts(bound="127.0.0.1").knows(header)


def test_a_server_on_all_addresses_goes_by_any_address_and_given_names():
    """An address cannot be made to point elsewhere, a name can."""
    hosts = Hosts(bound="0.0.0.0", names=("ranloop.clinic.example",))
    assert hosts.knows("10.1.2.3:7860")
    assert hosts.knows("Ranloop.Clinic.Example")
    assert not hosts.knows("evil.example")
    for bound in ("0.0.0.0", "::", "[::]", ""):
        everywhere = Hosts(bound=bound)
        assert everywhere.knows("localhost:7860") and everywhere.knows("[::1]")
        assert everywhere.knows("10.1.2.3") and not everywhere.knows("evil.example")


def test_a_server_on_one_address_goes_by_that_one():
    """And not by localhost, where it does not listen."""
    hosts = Hosts(bound="10.1.2.3")
    assert hosts.knows("10.1.2.3:7860")
    assert not hosts.knows("10.1.2.4:7860")
    assert not hosts.knows("localhost")


def test_a_name_of_its_own_stands_for_a_proxy():
    """Others reach it then, whatever it listens on."""
    assert Hosts(bound="127.0.0.1", names=("localhost",)).loopback()
    assert not Hosts(bound="127.0.0.1", names=("ranloop.example",)).loopback()


PROXIES = Proxies.parse(["10.0.0.1"])


@pytest.mark.parametrize(
    ("proxies", "peer", "scheme", "bypassed"),
    [
        (PROXIES, "10.0.0.2", "http", True),
        (PROXIES, "", "http", True),
        (PROXIES, "10.0.0.2", "https", False),
        (PROXIES, "10.0.0.1", "http", False),
        (PROXIES, "127.0.0.1", "http", False),
        (Proxies(), "10.0.0.2", "http", False),
    ],
)
def test_what_comes_past_the_proxy_without_tls_is_known(
    proxies, peer, scheme, bypassed
):
    """A password would be sent in plain; this machine may ask directly."""
    hosts = Hosts(bound="127.0.0.1", proxies=proxies)
    assert hosts.bypassed(peer, scheme) is bypassed
    assert hosts.loopback() is not bool(proxies)


def test_a_host_header_is_read_without_its_port():
    """Also that of an address with colons."""
    assert host_name("[2001:db8::1]:8080") == "2001:db8::1"
    assert host_name("a b") is None

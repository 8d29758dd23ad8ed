"""A server is asked as its owner said, and case text goes to this machine only."""

import asyncio
import socket

import pytest

from loop.core.config import ServingSettings
from loop.core.errors import EngineError
from loop.engines.openai import client
from loop.engines.openai.client import (
    Endpoint,
    GuardedResolver,
    check_address,
    check_literal,
    checked_url,
    read_key,
)
from tests.engines.scripted import Scripted, make_engine, serving


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@127.0.0.1/v1",
        "http://hunter2@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=hunter2",
        "http://127.0.0.1/v1#hunter2",
        "ftp://hunter2/v1",
        "hunter2",
        "http:///hunter2",
        "http://127.0.0.1:hunter2/v1",
        "http://127.0.0.1:0/hunter2",
        "http://[hunter2/v1",
        "http://127.0.0.1/v1\nhunter2",
        "http://127.0.0.1/v 1/hunter2",
    ],
)
def test_a_url_that_is_no_plain_base_is_refused_unquoted(url):
    """What people put into URLs is often a secret."""
    with pytest.raises(EngineError, match="Give it as http://127") as caught:
        checked_url(url)
    assert "hunter2" not in str(caught.value)


def test_slashes_at_the_end_do_not_matter():
    """One server has one spelling, so one cache."""
    assert checked_url("http://127.0.0.1:8000/v1//") == "http://127.0.0.1:8000/v1"


def test_the_key_comes_from_the_named_variable(monkeypatch):
    """And from nowhere else."""
    serving = ServingSettings(key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk-1")
    assert read_key(serving) == "sk-1"
    monkeypatch.setenv("MY_KEY", "")
    assert read_key(serving) is None


@pytest.mark.parametrize("key", ["sk-1\n", "sk 1", "sk-é", "sk\t1"])
def test_a_key_that_no_header_can_hold_is_refused_unquoted(monkeypatch, key):
    """A line end from a file would become a second header."""
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(EngineError, match="MY_KEY") as caught:
        read_key(ServingSettings(key_env="MY_KEY"))
    assert key.strip() not in str(caught.value)


def test_the_key_is_not_in_the_endpoints_repr():
    """Records end up in messages."""
    endpoint = Endpoint(
        url="http://127.0.0.1/v1", model="m", serving=ServingSettings(), key="sk-1"
    )
    assert "sk-1" not in repr(endpoint)


@pytest.mark.parametrize("field", ["messages", "stream", "n"])
def test_extra_fields_may_not_replace_what_the_engine_depends_on(field):
    """A streamed answer could not be read."""
    with pytest.raises(EngineError, match=field):
        Endpoint(
            url="http://127.0.0.1/v1",
            model="m",
            serving=ServingSettings(),
            extra_body={field: True},
        )


class Names:
    """A resolver with a table; a name may change its address at each look-up."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        """Return the next answer."""
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in addresses
        ]

    async def close(self):
        """Do nothing."""


def with_names(monkeypatch, *answers):
    """Let every engine ask this table behind its guard."""
    monkeypatch.setattr(
        client, "GuardedResolver", lambda hosts: GuardedResolver(hosts, Names(*answers))
    )


def rename(url, name):
    """Return `url` with another host."""
    return url.replace("127.0.0.1", name)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "[::1]"]
)
def test_loopback_addresses_are_this_machine(address):
    """In both families, and in the one that holds the other."""
    check_address("name", address)
    check_literal(address, ())


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "0.0.0.0", "::", "::ffff:10.0.0.1", "fe80::1%eth0", "8.8.8.8", "x"],
)
def test_every_other_address_is_refused_with_the_way_to_allow_it(address):
    """A private network is another machine too."""
    with pytest.raises(EngineError, match=r"config.yaml:\nhosts:\n  - llm\.example"):
        check_address("llm.example", address)


def test_a_literal_address_is_refused_before_any_connection():
    """No resolver is asked about it."""
    engine = make_engine("http://10.1.2.3:9/v1")
    with pytest.raises(EngineError, match=r"10\.1\.2\.3 is not this machine"), engine:
        pass


@pytest.mark.parametrize(
    "host",
    [
        "\uff11\uff10.1.2.3",
        "10\u30021\uff0e2\uff612",
        "167838211",
        "10.66051",
        "012.1.2.3",
        "10.1.2.3.",
        "[::ffff:10.1.2.3]",
    ],
)
def test_another_spelling_of_an_address_elsewhere_is_refused(host):
    """Full-width digits and ideographic dots become plain ones on the way."""
    engine = make_engine(f"http://{host}:9/v1")
    with pytest.raises(EngineError, match="is not this machine"), engine:
        pass


def test_the_address_a_server_listens_on_is_no_address_to_ask():
    """Servers print 0.0.0.0, and listing it as a host would be the wrong way out."""
    engine = make_engine("http://0.0.0.0:9/v1")
    with pytest.raises(EngineError, match=r"Write 127\.0\.0\.1 in its place"), engine:
        pass


@pytest.mark.parametrize(
    "host", ["a..b", "a" * 64 + ".example", "127.0.0.1\\.example", "[1.2.3.4]"]
)
def test_a_host_that_is_none_is_a_wrong_url_and_no_bug(host):
    """Each of these ends in another exception of another library."""
    with pytest.raises(EngineError, match="is not a URL"):
        make_engine(f"http://{host}:9/v1")


@pytest.mark.parametrize(
    ("host", "listed"),
    [("10.1.2.3", "10.1.2.3"), ("[2001:DB8::1]", "2001:db8:0::1"), ("::2", "[::2]")],
)
def test_a_listed_literal_address_is_allowed(host, listed):
    """However it is spelled."""
    check_literal(host, (listed,))


def test_a_name_of_this_machine_is_asked(monkeypatch):
    """Most people write localhost, or a name from the hosts file."""
    with_names(monkeypatch, ["127.0.0.1"])
    with (
        serving(Scripted()) as url,
        make_engine(rename(url, "llm.example")) as engine,
    ):
        assert engine.identity()["constrained"]


def test_a_name_with_another_address_is_refused_and_nothing_is_sent(monkeypatch):
    """The name looks local; its address decides."""
    with_names(monkeypatch, ["10.1.2.3"])
    engine = make_engine("http://localhost.example:9/v1")
    with (
        pytest.raises(EngineError, match=r"localhost.example has the address 10\.1"),
        engine,
    ):
        pass


def test_one_address_elsewhere_among_loopback_ones_is_enough(monkeypatch):
    """Which of them is connected to is chance."""
    with_names(monkeypatch, ["127.0.0.1", "10.1.2.3"])
    script = Scripted()
    with (
        serving(script) as url,
        pytest.raises(EngineError, match="not this machine"),
        make_engine(rename(url, "llm.example")),
    ):
        pass
    assert script.seen == []


def test_a_name_that_changes_its_address_is_refused_at_the_connection(monkeypatch):
    """What was checked is what is connected to: there is no gap in between."""
    guarded = GuardedResolver((), Names(["127.0.0.1"], ["10.1.2.3"]))
    monkeypatch.setattr(client, "GuardedResolver", lambda hosts: guarded)
    monkeypatch.setattr(client, "_KEEP_S", 0.0)
    script = Scripted()
    connector = client.aiohttp.TCPConnector
    monkeypatch.setattr(
        client.aiohttp,
        "TCPConnector",
        lambda **options: connector(
            **options
            | {"use_dns_cache": False, "force_close": True, "keepalive_timeout": None}
        ),
    )
    with (
        serving(script) as url,
        pytest.raises(EngineError, match="not this machine"),
        make_engine(rename(url, "llm.example")),
    ):
        pass
    assert script.seen == []


@pytest.mark.parametrize("listed", ["llm.example", "LLM.Example."])
def test_a_listed_host_may_be_anywhere(listed):
    """The owner has decided; case and a dot at the end do not matter."""
    resolver = GuardedResolver((listed,), Names(["10.1.2.3"]))
    found = asyncio.run(resolver.resolve("llm.example", 443))
    assert [one["host"] for one in found] == ["10.1.2.3"]
    with pytest.raises(EngineError, match="not this machine"):
        asyncio.run(resolver.resolve("evil.llm.example", 443))


def test_a_redirect_is_not_followed():
    """It could lead anywhere."""
    script = Scripted(
        pages={"/v1/models": (307, b"", {"Location": "http://10.1.2.3/"})}
    )
    with (
        serving(script) as url,
        pytest.raises(EngineError, match="redirect"),
        make_engine(url),
    ):
        pass


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    """A proxy is another machine that would read the text."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(Scripted()) as url, make_engine(url) as engine:
        assert engine.identity()["constrained"]

"""A server is asked as its owner said, and case text goes to this machine only."""

import asyncio
import errno
import selectors
import socket

import aiohttp
import pytest

from loop.core.config import ServingSettings
from loop.core.errors import EngineError
from loop.engines.openai import client
from loop.engines.openai.client import (
    Endpoint,
    EndpointClient,
    GuardedResolver,
    HalfError,
    LinkError,
    RefusedError,
    SlowError,
    TimeLimit,
    _link_error,
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


class _Selector(selectors.DefaultSelector):
    """Never waits: the time that would be waited is over at once."""

    now = 0.0

    def select(self, timeout=None):
        """Return what is ready."""
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    """An event loop of which the clock is that of its selector."""

    def __init__(self):
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self):
        """Return the seconds that somebody has waited."""
        return self.selector.now


async def _work(limit, seconds, tidy_s=0.0):
    """Work so long on a request; return how it ended, and when."""
    task = limit.begin()
    end = "done"
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(tidy_s)
        end = "late" if limit.ended(task) else "cancelled"
    finally:
        limit.end(task)
    return end, asyncio.get_running_loop().time()


def _with_limit(work):
    """Return what a coroutine makes of a limit of 20 s, by a clock that jumps."""

    async def main():
        limit = TimeLimit(20)
        try:
            return await work(limit)
        finally:
            limit.close()

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main())


def test_only_what_takes_longer_than_the_limit_is_ended():
    """All of it, however many are under way; what has ended counts no more."""

    async def work(limit):
        return await asyncio.gather(*(_work(limit, s) for s in (19.5, 30, 40)))

    assert _with_limit(work) == [("done", 19.5), ("late", 20), ("late", 20)]


def test_each_request_has_a_limit_of_its_own():
    """Also one that begins when nothing has been under way for a while."""

    async def work(limit):
        first = await _work(limit, 3)
        await asyncio.sleep(100)
        second = asyncio.create_task(_work(limit, 99))
        await asyncio.sleep(10)
        return [first, await _work(limit, 15), await second]

    first, third, second = _with_limit(work)
    assert (first, third) == (("done", 3), ("done", 128))
    assert second == ("late", 123)


def test_what_is_late_is_cancelled_once():
    """It may take its time to tidy up."""

    async def work(limit):
        return await _work(limit, 30, tidy_s=5)

    assert _with_limit(work) == ("late", 25)


@pytest.mark.parametrize("after", [5, 20])
def test_who_is_cancelled_by_somebody_else_is_not_late(after):
    """Also where the limit is over at that moment: whoever cancelled waits for it."""

    async def work(limit):
        task = asyncio.create_task(_work(limit, 30))
        asyncio.get_running_loop().call_at(after, task.cancel)
        return await task

    assert _with_limit(work) == ("cancelled", after)


def test_a_limit_that_is_closed_ends_nothing():
    """Nor does it keep its loop busy."""

    async def work(limit):
        task = asyncio.create_task(_work(limit, 30))
        await asyncio.sleep(1)
        limit.close()
        return await task

    assert _with_limit(work) == ("done", 30)


_KEY = aiohttp.client_reqrep.ConnectionKey("h", 1, False, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "heard", "kind", "said"),
    [
        (
            aiohttp.ConnectionTimeoutError(),
            False,
            RefusedError,
            "no connection in time",
        ),
        (aiohttp.SocketTimeoutError(), False, SlowError, "no answer in time"),
        (TimeoutError(), True, SlowError, "no answer in time"),
        (
            aiohttp.ClientConnectorDNSError(_KEY, OSError(1, "x")),
            False,
            RefusedError,
            "host name not found",
        ),
        (
            aiohttp.ClientConnectorError(_KEY, OSError(errno.ECONNREFUSED, "x")),
            False,
            RefusedError,
            "connection refused",
        ),
        (
            aiohttp.ClientConnectorError(_KEY, OSError(errno.ENETUNREACH, "x")),
            False,
            RefusedError,
            "no connection",
        ),
        (aiohttp.ClientPayloadError("x"), True, HalfError, "answer broken off"),
        (
            aiohttp.http_exceptions.BadHttpMessage("x"),
            True,
            HalfError,
            "answer broken off",
        ),
        (
            aiohttp.http_exceptions.BadHttpMessage("x"),
            False,
            HalfError,
            "answer is not HTTP",
        ),
        (
            aiohttp.ClientResponseError(None, ()),
            False,
            HalfError,
            "answer is not HTTP",
        ),
        (aiohttp.ServerDisconnectedError(), False, LinkError, "connection broken"),
        (OSError(errno.EPIPE, "x"), False, LinkError, "connection broken"),
    ],
)
def test_a_failure_is_told_in_our_words(error, heard, kind, said):
    """And says whether the server has seen the request, answered, or took its time."""
    told = _link_error(error, heard=heard)
    assert (type(told), str(told)) == (kind, said)


def test_what_a_failure_says_of_the_server():
    """On it depends whether a request is sent again, and to whom it is charged."""
    kinds = (LinkError, RefusedError, SlowError, HalfError)
    told = {one: (one.refused, one.heard, one.slow) for one in kinds}
    assert told == {
        LinkError: (False, False, False),
        RefusedError: (True, False, False),
        SlowError: (False, True, True),
        HalfError: (False, True, False),
    }


@pytest.mark.parametrize(("most", "whole"), [(100, True), (99, False)])
def test_an_answer_of_the_longest_length_is_read(monkeypatch, most, whole):
    """One byte more is not."""
    monkeypatch.setattr(client, "MOST_BYTES", most)
    script = Scripted(pages={"/v1/models": b"x" * 100})

    async def ask(url):
        endpoint = Endpoint(url=url, model="m", serving=ServingSettings())
        one = EndpointClient(endpoint, ())
        await one.open()
        try:
            return await one.get(f"{url}/models")
        finally:
            await one.close()

    with serving(script) as url:
        if whole:
            assert asyncio.run(ask(url)).body == b"x" * 100
        else:
            with pytest.raises(HalfError, match="answer over 0 MiB"):
                asyncio.run(ask(url))


def test_connections_are_opened_before_they_are_used():
    """And closing what was never opened does nothing."""

    async def ask():
        endpoint = Endpoint(
            url="http://127.0.0.1:9", model="m", serving=ServingSettings()
        )
        one = EndpointClient(endpoint, ())
        await one.close()
        await one.get("http://127.0.0.1:9/v1")

    with pytest.raises(ValueError, match="the connections are not open"):
        asyncio.run(ask())


@pytest.mark.parametrize("key", [None, "sk-1"])
def test_a_request_says_no_more_of_the_client_than_it_must(key):
    """No cookie goes back, no password file is read, and the key only where one is."""
    script = Scripted(pages={"/v1/models": (200, b"{}", {"Set-Cookie": "a=b"})})

    async def ask(url):
        endpoint = Endpoint(url=url, model="m", serving=ServingSettings(), key=key)
        one = EndpointClient(endpoint, ())
        await one.open()
        try:
            await one.get(f"{url}/models")
            for fresh in (False, True):
                await one.ask(b'{"messages": [{"content": ""}]}', fresh=fresh)
        finally:
            await one.close()

    with serving(script) as url:
        asyncio.run(ask(url))
    for headers, _ in script.seen:
        assert {**headers, "Host": ""} == {
            "Host": "",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "ranloop",
            "Content-Length": "31",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **({"Connection": "close"} if "Connection" in headers else {}),
        }
    assert ["Connection" in headers for headers, _ in script.seen] == [False, True]

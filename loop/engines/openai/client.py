"""One server: where and as whom it is asked, its connections, and what may be reached.

The addresses that were checked are the addresses that are connected to: the resolver
itself refuses, so a name that changes its address between a check and a connection
gains nothing.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import JsonValue
from yarl import URL

from loop.core.config import ServingSettings
from loop.core.errors import EngineError

_RESERVED = frozenset({"messages", "stream", "n"})
"""Request fields that the engine itself depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model on one server."""

    url: str
    """For example ``"http://127.0.0.1:8000/v1"``: no slash at the end, no query."""

    model: str
    """Name of the model as the server knows it."""

    serving: ServingSettings
    """How it is asked."""

    key: str | None = field(default=None, repr=False)
    """API key; None for none."""

    extra_body: Mapping[str, JsonValue] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Further request fields; None takes a field away that is sent else."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", checked_url(self.url))
        taken = sorted(_RESERVED.intersection(self.extra_body))
        if taken:
            raise EngineError(
                f"extra_body may not set {', '.join(taken)}: the engine depends on it. "
                "Take it out of extra_body in .ranloop/config.yaml."
            )

    @property
    def host(self) -> str:
        """Host name or address as it is connected to, without brackets."""
        return _host(self.url)

    @property
    def root(self) -> str:
        """The server's own address: the URL without ``/v1``."""
        return self.url.removesuffix("/v1")


def checked_url(url: str) -> str:
    """Return `url` without a slash at its end, if it can be the base of requests.

    Raises
    ------
    EngineError
        It is no http(s) URL, or it holds a user, a query or a fragment. These may be
        secret, so the message does not quote them.
    """
    try:
        parts = urlsplit(url)
        problem = _problem(url, parts)
    except ValueError:
        problem = "is not a URL"
    if problem:
        raise EngineError(
            f"the server's URL {problem}. Give it as http://127.0.0.1:8000/v1, and "
            "the API key in the environment only (key_env in .ranloop/config.yaml "
            "names the variable)."
        )
    return url.rstrip("/")


def _problem(url: str, parts: SplitResult) -> str:
    """Say what is wrong with a URL, without quoting it; empty when nothing is.

    Raises
    ------
    ValueError
        The port is no number, or the host no name.
    """
    if parts.scheme not in ("http", "https"):
        return "does not begin with http:// or https://"
    if "@" in parts.netloc:
        return "holds a user name or a password"
    if "?" in url or "#" in url:
        return "holds a query or a fragment"
    if not url.isprintable() or " " in url:
        return "holds a space or a control character"
    if not parts.hostname or parts.port == 0 or not _host(url):
        return "names no host"
    return ""


def _host(url: str) -> str:
    """Return the host as the client that connects reads it.

    Full-width digits and ideographic dots are plain ones there, and a guard that read
    them otherwise would look at another host.

    Raises
    ------
    ValueError
        The host is no name and no address.
    """
    host = URL(url).raw_host or ""
    host.encode("idna")
    return host


def read_key(serving: ServingSettings) -> str | None:
    """Return the API key from the environment; None when there is none.

    Raises
    ------
    EngineError
        The variable holds something that cannot stand in a header.
    """
    key = os.environ.get(serving.key_env)
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise EngineError(
            f"the API key in the environment variable {serving.key_env} holds a space, "
            "a line end or a character that is not ASCII. Set the variable to the key "
            "alone."
        )
    return key


class GuardedResolver(AbstractResolver):
    """Resolves names to loopback addresses only, unless the host is allowed.

    Parameters
    ----------
    allowed
        Hosts the workspace's owner listed; they may be anywhere.

    Raises
    ------
    EngineError
        When resolving: an address is not loopback and the host is not allowed.
    """

    def __init__(
        self, allowed: Iterable[str], inner: AbstractResolver | None = None
    ) -> None:
        self._allowed = frozenset(map(_plain, allowed))
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        """Return the addresses of `host`, once each of them may be connected to."""
        found = await self._inner.resolve(host, port, family)
        if _plain(host) not in self._allowed:
            for result in found:
                check_address(host, result["host"])
        return found

    async def close(self) -> None:
        """Close the resolver behind this one."""
        await self._inner.close()


def check_literal(host: str, allowed: Iterable[str]) -> None:
    """Check a host that is an address: no resolver is asked about it.

    What only looks like one, such as ``3232235777``, counts: some would connect to it.

    Raises
    ------
    EngineError
        It is not loopback and not allowed.
    """
    literal = ":" in host or host.replace(".", "").isdigit()
    if literal and _plain(host) not in map(_plain, allowed):
        check_address(host, host)


def check_address(host: str, address: str) -> None:
    """Check that `address`, which `host` stands for, is this machine.

    Raises
    ------
    EngineError
        It is another machine.
    """
    known = _address(address)
    if known is not None and _is_loopback(known):
        return
    if host == address and known is not None and known.is_unspecified:
        raise EngineError(
            f"{host} is where a server listens, not where it is asked. Write 127.0.0.1 "
            "in its place if the server runs on this machine."
        )
    elsewhere = "is not this machine"
    if host != address:
        elsewhere = f"has the address {address}, which is not this machine"
    raise EngineError(
        f"case text stays on this machine, and {host} {elsewhere}. If this host may "
        "receive clinical text, list it in .ranloop/config.yaml:\nhosts:\n"
        f"  - {_plain(host)}"
    )


def _is_loopback(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def _plain(host: str) -> str:
    """Return one spelling of a host: lower case, no brackets, no dot at the end."""
    plain = host.strip().strip("[]").rstrip(".").lower()
    address = _address(plain)
    return plain if address is None else str(address)


_LOOKS = 20
"""How often the clock is looked at within one limit."""


class TimeLimit:
    """Cancels tasks that work on one request for too long.

    A timer for each request would cost a tenth of the request itself. A request ends
    at most a twentieth later than the limit says.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._began: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[object]:
        """Begin a request in the current task, and return the task."""
        task = asyncio.current_task()
        if task is None:
            raise ValueError("a request needs a task of its own")
        loop = task.get_loop()
        self._began[task] = loop.time()
        if self._timer is None:
            self._look_later(loop)
        return task

    def end(self, task: asyncio.Task[object]) -> None:
        """End the request of `task`."""
        self._began.pop(task, None)
        self._late.discard(task)

    def ended(self, task: asyncio.Task[object]) -> bool:
        """Whether only the limit has cancelled `task`; it then goes on."""
        return task in self._late and task.uncancel() == 0

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._limit_s / _LOOKS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is too late; look again while there is anything."""
        latest = loop.time() - self._limit_s
        for task, began in self._began.items():
            if began <= latest and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._began:
            self._look_later(loop)
        else:
            self._timer = None


MOST_BYTES = 8 * 2**20
"""Longest response read; a real one has a few kilobytes."""

_RAW_BYTES = 2**20
"""From here aiohttp wants a body it can send in pieces."""

_KEEP_S = 4.0
"""How long an unused connection is kept, seconds: vLLM and llama.cpp keep it for 5."""


class Reply(NamedTuple):
    """An HTTP response, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LinkError(Exception):
    """A request without a whole HTTP response; its text says why in a few words."""

    refused = False
    """Whether there was no connection: the server has not seen the request."""

    heard = False
    """Whether the server answered at least in part, or took its time."""

    slow = False
    """Whether the time was over."""


class RefusedError(LinkError):
    """No connection was made."""

    refused = True


class SlowError(LinkError):
    """The connection stands and the time is over."""

    heard = slow = True


class HalfError(LinkError):
    """A response began and cannot be read to its end."""

    heard = True


class EndpointClient:
    """Sends requests to one endpoint, between `open` and `close` in one event loop.

    Nothing is followed or taken from the environment: no redirects, no proxies, no
    cookies, no password files. Case text goes where the owner said, or nowhere.
    """

    def __init__(self, endpoint: Endpoint, hosts: Iterable[str]) -> None:
        self.endpoint = endpoint
        self.streams = True
        """Whether the server may be asked to stream: False once it was found not to."""

        self._hosts = tuple(hosts)
        self._chat = URL(endpoint.url + "/chat/completions")
        self._session: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None
        self._limit = TimeLimit(endpoint.serving.timeout_s)

    async def open(self) -> None:
        """Prepare connections; none is made yet.

        Raises
        ------
        EngineError
            The server has an address that is not allowed.
        """
        check_literal(self.endpoint.host, self._hosts)
        self._session = self._make_session(keep=True)
        self._fresh = self._make_session(keep=False)

    def _make_session(self, *, keep: bool) -> aiohttp.ClientSession:
        """Return a session; without `keep` each request has a connection of its own."""
        serving, key = self.endpoint.serving, self.endpoint.key
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "ranloop",
        }
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEEP_S if keep else None,
                force_close=not keep,
                resolver=GuardedResolver(self._hosts),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=min(serving.timeout_s, serving.patience_s),
            ),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections; harmless when there are none."""
        self._limit.close()
        for session in (self._session, self._fresh):
            if session is not None:
                await session.close()

    async def ask(
        self,
        body: bytes,
        *,
        fresh: bool = False,
        take: Callable[[bytes], bool] | None = None,
    ) -> Reply:
        """Return the response to a chat completion request.

        Parameters
        ----------
        fresh
            Whether to make a connection for it: one that is kept may be closed by the
            server at the moment it is used again.
        take
            Takes the body of an answer with status 200 as it comes, and says whether
            the rest can be left; the body that is returned is then empty.

        Raises
        ------
        LinkError
            There is no whole response.
        EngineError
            The guard or the TLS layer refuses the server.
        """
        data = body if len(body) <= _RAW_BYTES else io.BytesIO(body)
        session = self._fresh if fresh else self._session
        return await self._send(session, "POST", self._chat, data, take)

    async def get(self, url: str) -> Reply:
        """Return the response to a GET; raises as `ask` does."""
        return await self._send(self._session, "GET", URL(url), None)

    async def _send(
        self,
        session: aiohttp.ClientSession | None,
        method: str,
        url: URL,
        data: bytes | io.BytesIO | None,
        take: Callable[[bytes], bool] | None = None,
    ) -> Reply:
        heard = False
        if session is None:
            raise ValueError("the connections are not open")
        task = self._limit.begin()
        try:
            async with session.request(
                method, url, data=data, allow_redirects=False
            ) as response:
                heard = True
                if take is not None and response.status == 200:
                    await _hand_over(response.content, take)
                    return Reply(200, response.headers, b"")
                body = await _read(response)
                return Reply(response.status, response.headers, body)
        except asyncio.CancelledError:
            if self._limit.ended(task):
                raise SlowError("no answer in time") from None
            raise
        except aiohttp.ClientSSLError as error:
            raise _tls_error(self.endpoint, error) from error
        except aiohttp.InvalidURL as error:
            raise EngineError(
                "the server's URL is not valid. Correct `url` in .ranloop/config.yaml "
                "or after @ in the engine's name."
            ) from error
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            # Times out as OSError too: asyncio's TimeoutError is the built-in one.
            raise _link_error(error, heard=heard) from error
        finally:
            self._limit.end(task)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Return a response's body, if it is not too long."""
    pieces, size = [], 0
    content = response.content
    while not content.at_eof():
        piece = await content.readany()
        size += len(piece)
        if size > MOST_BYTES:
            response.close()
            raise too_large()
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _hand_over(
    content: aiohttp.StreamReader, take: Callable[[bytes], bool]
) -> None:
    """Hand a body over as it comes, until its end or until nobody wants the rest."""
    while not content.at_eof():
        if take(await content.readany()):
            return


def too_large() -> HalfError:
    """Return what is wrong with an answer that is not read to its end."""
    return HalfError(f"answer over {MOST_BYTES // 2**20} MiB")


def _link_error(error: BaseException, *, heard: bool) -> LinkError:
    """Return a failure in our words: a library's may hold anything."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return RefusedError("no connection in time")
    if isinstance(error, asyncio.TimeoutError):
        return SlowError("no answer in time")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return RefusedError("host name not found")
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = error.os_error.errno == errno.ECONNREFUSED
        return RefusedError("connection refused" if refused else "no connection")
    if heard:
        return HalfError("answer broken off")
    if isinstance(error, (aiohttp.ClientResponseError, HttpProcessingError)):
        return HalfError("answer is not HTTP")
    return LinkError("connection broken")


def _tls_error(endpoint: Endpoint, error: aiohttp.ClientSSLError) -> EngineError:
    """Return what to do about a failed TLS handshake."""
    cause = error.__cause__ or error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return EngineError(
            f"the certificate of {endpoint.host} is not accepted: "
            f"{cause.verify_message}. Name the file of the authority that signed it in "
            "the environment variable SSL_CERT_FILE, or correct the host in the URL."
        )
    return EngineError(
        f"no TLS connection to {endpoint.host}. If the server speaks plain HTTP, give "
        "its URL as http://; otherwise see which TLS versions it offers."
    )

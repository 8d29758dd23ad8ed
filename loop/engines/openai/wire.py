"""One server's connections: bytes out, a bounded response or one kind of failure in."""

from __future__ import annotations

import asyncio
import errno
import io
import ssl
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from loop.core.errors import EngineError
from loop.engines.openai.endpoint import Endpoint
from loop.engines.openai.guard import GuardedResolver, check_literal
from loop.engines.openai.limit import TimeLimit

_MOST_BYTES = 8 * 2**20
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

    async def ask(self, body: bytes, *, fresh: bool = False) -> Reply:
        """Return the response to a chat completion request.

        Parameters
        ----------
        fresh
            Whether to make a connection for it: one that is kept may be closed by the
            server at the moment it is used again.

        Raises
        ------
        LinkError
            There is no whole response.
        EngineError
            The guard or the TLS layer refuses the server.
        """
        data = body if len(body) <= _RAW_BYTES else io.BytesIO(body)
        session = self._fresh if fresh else self._session
        return await self._send(session, "POST", self._chat, data)

    async def get(self, url: str) -> Reply:
        """Return the response to a GET; raises as `ask` does."""
        return await self._send(self._session, "GET", URL(url), None)

    async def _send(
        self,
        session: aiohttp.ClientSession | None,
        method: str,
        url: URL,
        data: bytes | io.BytesIO | None,
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
        if size > _MOST_BYTES:
            response.close()
            raise HalfError(f"answer over {_MOST_BYTES // 2**20} MiB")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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

"""Where and as whom an OpenAI-compatible server is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit

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

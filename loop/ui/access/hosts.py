"""The names under which a server may be asked, so that no other site can pose as it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from loop.ui.access.proxies import NO_PROXIES, Proxies

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Where a server listens and what browsers call it.

    A page of another site can make its own name point here (DNS rebinding); its
    requests then carry that name, and are known by it.
    """

    bound: str
    """Address or name listened on, for example ``"127.0.0.1"`` or ``"0.0.0.0"``."""

    names: tuple[str, ...] = ()
    """Further names that browsers use, for example that of a proxy before it."""

    proxies: Proxies = NO_PROXIES
    """Proxies that are trusted to say where a request came from."""

    def loopback(self) -> bool:
        """Return whether only this machine can reach it, under names of its own."""
        return not self.proxies and all(map(is_loopback, (self.bound, *self.names)))

    def bypassed(self, peer: str, scheme: str) -> bool:
        """Return whether a connection goes around the proxies, and is not encrypted.

        `peer` is the other end of it; this machine itself may ask directly.
        """
        if not self.proxies or scheme == "https":
            return False
        return not (self.proxies.trust(peer) or is_loopback(peer))

    def knows(self, header: str) -> bool:
        """Return whether a ``Host`` header names this server; the port is free.

        When all addresses are listened on, any address will do: only a name can be
        made to point elsewhere.

        Examples
        --------
        >>> hosts = Hosts(bound="127.0.0.1")
        >>> hosts.knows("localhost:7860"), hosts.knows("evil.example:7860")
        (True, False)
        """
        name = host_name(header)
        if name is None:
            return False
        known = {_bare(self.bound), *map(_bare, self.names)}
        if _everywhere(self.bound):
            return name in known | _LOCAL or _address(name) is not None
        return name in known or (is_loopback(self.bound) and name in _LOCAL)


def host_name(header: str) -> str | None:
    """Return the name in a ``Host`` header, lower case, no port; None when malformed.

    Examples
    --------
    >>> host_name("[::1]:7860")
    '::1'
    """
    found = _HOST.fullmatch(header)
    return _bare(found[1]) if found else None


def is_loopback(host: str) -> bool:
    """Return whether `host` names this machine to itself only."""
    bare = _bare(host)
    address = _address(bare)
    return bare == "localhost" if address is None else address.is_loopback


def _bare(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _everywhere(host: str) -> bool:
    address = _address(_bare(host))
    return host == "" or (address is not None and address.is_unspecified)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None

"""Trusted proxies: which they are, and what they may say of a request.

References
----------
MDN, X-Forwarded-For, "Security and privacy concerns": of a list that anybody may have
begun, only what trusted proxies appended at its right end counts.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")
_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Proxies:
    """The addresses and networks of trusted proxies; by default there are none."""

    networks: tuple[_Network, ...] = ()

    @classmethod
    def parse(cls, given: Iterable[str]) -> Proxies:
        """Return the proxies of `given`: addresses, or networks such as 10.0.0.0/28.

        Raises
        ------
        ValueError
            One is neither, or would mean everybody.
        """
        return cls(tuple(map(_network, given)))

    def __bool__(self) -> bool:
        return bool(self.networks)

    def trust(self, address: str) -> bool:
        """Return whether a trusted proxy has `address`."""
        found = _parsed(address)
        return found is not None and any(found in one for one in self.networks)

    def established(self, scope: Scope) -> Scope:
        """Return `scope` with the client and scheme that can be believed.

        Without a trusted proxy at the other end, that is the connection's own. A
        malformed value is ignored, with all that stands to the left of it.

        Examples
        --------
        >>> proxies = Proxies.parse(["10.0.0.1"])
        >>> headers = [(b"x-forwarded-for", b"6.6.6.6, 192.0.2.7")]
        >>> scope = {"client": ("10.0.0.1", 80), "headers": headers, "scheme": "http"}
        >>> proxies.established(scope)["client"]
        ('192.0.2.7', 0)
        """
        client = scope.get("client")
        if client is None or not self.trust(client[0]):
            return scope
        headers = Headers(scope=scope)
        address = self._client(client[0], headers.getlist("x-forwarded-for"))
        said = {
            one.strip().lower()
            for value in headers.getlist("x-forwarded-proto")
            for one in value.split(",")
        }
        # Proxies that contradict each other have established nothing.
        scheme = said.pop() if len(said) == 1 and said <= _SCHEMES else scope["scheme"]
        seen = client if address == client[0] else (address, 0)
        return {**scope, "client": seen, "scheme": scheme}

    def _client(self, address: str, forwarded: list[str]) -> str:
        """Return the right-most address that is not itself a trusted proxy's."""
        for hop in _hops(forwarded):
            address = hop
            if not self.trust(hop):
                break
        return address


NO_PROXIES = Proxies()


def _hops(forwarded: list[str]) -> Iterator[str]:
    """Yield the addresses from the right, up to the first that is malformed."""
    for entry in reversed(",".join(forwarded).split(",")):
        found = _parsed(_without_port(entry.strip()))
        if found is None:
            return
        yield str(found)


def _without_port(entry: str) -> str:
    """Return the address of ``192.0.2.7:80`` or ``[2001:db8::1]:80``."""
    found = _WITH_PORT.fullmatch(entry)
    return (found[1] or found[2]) if found else entry


def _parsed(address: str) -> _Address | None:
    """Return an address in its one form; None when it is none."""
    try:
        # What follows a % is the name of an interface, and may be any text.
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _network(given: str) -> _Network:
    found = ipaddress.ip_network(given.strip())
    if found.prefixlen == 0:
        raise ValueError(f"{given!r} would trust everybody")
    return found

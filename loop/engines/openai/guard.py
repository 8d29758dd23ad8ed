"""The guard that keeps clinical text on this machine, where a connection is made.

The addresses that were checked are the addresses that are connected to: the resolver
itself refuses, so a name that changes its address between a check and a connection
gains nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from loop.core.errors import EngineError


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

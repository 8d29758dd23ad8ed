"""Signing in: how often someone may try, and the private log of who did."""

from __future__ import annotations

import ipaddress
import json
import math
import os
from collections import OrderedDict
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.files import locked, write_error
from loop.core.paths import WorkspacePaths
from loop.core.people.users import name_key


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInThrottle:
    """How many failures are borne, and how long one waits after more."""

    by_name: int = 5
    """Failures on one name before it is locked."""

    by_address: int = 20
    """Failures from one address; more, for a clinic may share one."""

    window_s: float = 900.0
    """After so long without a failure the earlier ones are forgotten, seconds."""

    first_s: float = 30.0
    """First lock, seconds; each further failure doubles it."""

    longest_s: float = 900.0
    """Longest lock of a name, seconds."""

    longest_address_s: float = 120.0
    """Longest lock of an address, seconds; shorter, for it concerns everybody there."""

    welcome_s: float = 30 * 86400.0
    """For so long an address is known as that of a name that signed in, seconds."""

    most: int = 10_000
    """Names and addresses remembered; the ones unused for longest go first."""


class _Limit(NamedTuple):
    """What is counted under one key, and how far it may go."""

    key: bytes
    allowed: int
    longest_s: float


@dataclass(slots=True)
class _Tries:
    """What is known of one name or address."""

    count: int
    last: datetime
    until: datetime


class Attempts:
    """Counts sign-ins by name and by address, for many threads.

    A try is counted when it begins and taken back when it succeeds: a hundred at once
    get no further than a hundred in a row. Unknown names are counted like known ones.

    Many people may share one address. What the lock on a name holds back does not
    count against the address as well, so one person's failures do not lock it; and
    whoever has signed in from it before does not wait because others failed there.
    Guesses at their name are throttled as everywhere.
    """

    def __init__(
        self,
        patience: SignInThrottle = SignInThrottle(),
        *,
        now: Clock = utc_now,
    ) -> None:
        self._patience = patience
        self._now = now
        self._lock = Lock()
        self._tries: OrderedDict[bytes, _Tries] = OrderedDict()
        self._welcome: OrderedDict[bytes, datetime] = OrderedDict()

    def begin(self, name: str, address: str) -> int:
        """Count a try; return 0, or for how long it is refused, in whole seconds.

        A refused try is not counted: who waits as told gets in.
        """
        with self._lock:
            now = self._now()
            wait = self._wait(name, address, now)
            if wait == 0:
                self._count(self._by_name(name), now)
                if self._counts_for_address(name, address, now):
                    self._count(self._by_address(address), now)
            return wait

    def wait_s(self, name: str, address: str) -> int:
        """Return for how long the next try would be refused, in whole seconds."""
        with self._lock:
            return self._wait(name, address, self._now())

    def succeed(self, name: str, address: str) -> None:
        """Forget the failures on `name`, and take this try back from `address`.

        An address keeps its failures: one password known must not buy more guesses
        at others. The lock that this try began ends with it.
        """
        with self._lock:
            now = self._now()
            tries = self._tries.get(self._by_address(address).key)
            if tries is not None and self._counts_for_address(name, address, now):
                tries.count -= 1
                tries.until = now
            self._tries.pop(self._by_name(name).key, None)
            pair = _pair(name, address)
            self._welcome[pair] = now
            self._welcome.move_to_end(pair)
            while len(self._welcome) > self._patience.most:
                self._welcome.popitem(last=False)

    def _by_name(self, name: str) -> _Limit:
        """Return what is counted, as a digest: a password typed as name is not kept."""
        key = _digest(f"name {name_key(name)}")
        return _Limit(key, self._patience.by_name, self._patience.longest_s)

    def _by_address(self, address: str) -> _Limit:
        key = _digest(f"address {_network(address)}")
        return _Limit(key, self._patience.by_address, self._patience.longest_address_s)

    def _wait(self, name: str, address: str, now: datetime) -> int:
        limits = [self._by_name(name)]
        if not self._is_welcome(name, address, now):
            limits.append(self._by_address(address))
        found = [self._tries[one.key] for one in limits if one.key in self._tries]
        waits = [(tries.until - now).total_seconds() for tries in found]
        return math.ceil(max(0.0, *waits)) if waits else 0

    def _counts_for_address(self, name: str, address: str, now: datetime) -> bool:
        """Return whether the try on `name` that was counted last is the address's."""
        limit = self._by_name(name)
        tries = self._tries.get(limit.key)
        held_by_name = tries is None or tries.count > limit.allowed
        return not held_by_name and not self._is_welcome(name, address, now)

    def _is_welcome(self, name: str, address: str, now: datetime) -> bool:
        since = self._welcome.get(_pair(name, address))
        longest = timedelta(seconds=self._patience.welcome_s)
        return since is not None and now - since <= longest

    def _count(self, limit: _Limit, now: datetime) -> None:
        patience = self._patience
        tries = self._tries.setdefault(limit.key, _Tries(0, now, now))
        quiet = now - max(tries.last, tries.until)
        if quiet > timedelta(seconds=patience.window_s):
            tries.count = 0
        tries.count += 1
        tries.last = now
        excess = min(tries.count - limit.allowed, 30)
        lock_s = min(patience.first_s * 2**excess, limit.longest_s)
        tries.until = now + timedelta(seconds=lock_s) if excess >= 0 else now
        self._tries.move_to_end(limit.key)
        while len(self._tries) > patience.most:
            self._tries.popitem(last=False)


def _network(address: str) -> str:
    """Return what one machine has: a network of 64 bits with IPv6, else the address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), 64), strict=False))


def _pair(name: str, address: str) -> bytes:
    return _digest(f"{name_key(name)} at {_network(address)}")


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


LONGEST = 2**20
"""Size at which the log becomes ``sign-ins.jsonl.1`` and a new one begins, bytes."""


class SignInResult(StrEnum):
    """How a try to sign in ended."""

    SIGNED_IN = "signed in"
    WRONG = "wrong"
    LOCKED = "locked"
    SIGNED_OUT = "signed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One try to sign in."""

    name: str
    """Name of a known user; empty for others: what was typed may be a password."""

    address: str
    """Where it came from."""

    result: SignInResult


def sign_ins_path(workspace: WorkspacePaths) -> Path:
    """Return where the log of `workspace` is."""
    return workspace.private / "sign-ins.jsonl"


def record_sign_in(
    workspace: WorkspacePaths,
    sign_in: SignIn,
    *,
    now: Clock = utc_now,
    longest: int = LONGEST,
) -> None:
    """Append one line; the log and the one before it together stay under 2 MiB.

    Raises
    ------
    WriteError
        The log cannot be written.
    """
    path = sign_ins_path(workspace)
    time = format_time(now())
    line = json.dumps({"time": time, **asdict(sign_in)}, ensure_ascii=False) + "\n"
    raw = line.encode("utf-8", "backslashreplace")
    with locked(workspace.open_private() / ".sign-ins.lock"):
        try:
            _append(path, raw, longest)
        except OSError as error:
            raise write_error(path, error) from error


def _append(path: Path, line: bytes, longest: int) -> None:
    if path.exists() and path.stat().st_size + len(line) > longest:
        os.replace(path, path.with_name(f"{path.name}.1"))
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)

"""How often someone may try to sign in: slower with each failure, never for good."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Lock

from loop.people.names import name_key

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
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
    """Longest lock, seconds."""

    most: int = 10_000
    """Names and addresses remembered; the ones unused for longest go first."""


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
    """

    def __init__(
        self,
        patience: Patience = Patience(),
        *,
        now: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._patience = patience
        self._now = now
        self._lock = Lock()
        self._tries: OrderedDict[bytes, _Tries] = OrderedDict()

    def begin(self, name: str, address: str) -> int:
        """Count a try; return 0, or for how long it is refused, in whole seconds.

        A refused try is not counted: who waits as told gets in.
        """
        with self._lock:
            now = self._now()
            keys = self._keys(name, address)
            wait = max(self._wait_s(key, now) for key, _ in keys)
            if wait > 0:
                return math.ceil(wait)
            for key, allowed in keys:
                self._count(key, allowed, now)
            return 0

    def wait_s(self, name: str, address: str) -> int:
        """Return for how long the next try would be refused, in whole seconds."""
        with self._lock:
            now = self._now()
            waits = [self._wait_s(key, now) for key, _ in self._keys(name, address)]
            return math.ceil(max(0.0, *waits))

    def succeed(self, name: str, address: str) -> None:
        """Forget the failures on `name`, and take this try back from `address`.

        An address keeps its failures: one password known must not buy more guesses
        at others.
        """
        with self._lock:
            (by_name, _), (by_address, allowed) = self._keys(name, address)
            self._tries.pop(by_name, None)
            tries = self._tries.get(by_address)
            if tries is not None:
                tries.count -= 1
                if tries.count < allowed:
                    tries.until = tries.last

    def _keys(self, name: str, address: str) -> tuple[tuple[bytes, int], ...]:
        """Return what is counted, as digests: a password typed as name is not kept."""
        patience = self._patience
        return (
            (_digest(f"name {name_key(name)}"), patience.by_name),
            (_digest(f"address {address}"), patience.by_address),
        )

    def _wait_s(self, key: bytes, now: datetime) -> float:
        tries = self._tries.get(key)
        return (tries.until - now).total_seconds() if tries else 0.0

    def _count(self, key: bytes, allowed: int, now: datetime) -> None:
        patience = self._patience
        tries = self._tries.setdefault(key, _Tries(0, now, now))
        quiet = now - max(tries.last, tries.until)
        if quiet > timedelta(seconds=patience.window_s):
            tries.count = 0
        tries.count += 1
        tries.last = now
        excess = min(tries.count - allowed, 30)
        lock_s = min(patience.first_s * 2**excess, patience.longest_s)
        tries.until = now + timedelta(seconds=lock_s) if excess >= 0 else now
        self._tries.move_to_end(key)
        while len(self._tries) > patience.most:
            self._tries.popitem(last=False)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()

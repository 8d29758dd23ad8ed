"""Passwords: which are accepted, how they are kept, how they are compared.

References
----------
C. Percival, S. Josefsson, The scrypt Password-Based Key Derivation Function, RFC 7914,
2016. OWASP, Password Storage Cheat Sheet: scrypt with n = 2^15, r = 8, p = 3. NIST SP
800-63B, 3.1.1: length instead of composition, no forced change.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import unicodedata
from functools import lru_cache
from threading import BoundedSemaphore
from typing import NamedTuple

from loop.core.people.users import name_key

SHORTEST = 12
"""Fewest characters of a password."""

LONGEST = 128
"""Most characters of a password, so that nobody can keep the server busy with one."""

_FEW = 5
"""Fewer different characters are a pattern, not a password."""

_OWN_WORDS = ("ranloop",)
_SALT = 16
_LENGTH = 32
_AT_ONCE = BoundedSemaphore(2)
"""Each derivation takes 32 MiB: a crowd at the door must wait, not fill the memory."""


class Cost(NamedTuple):
    """What one scrypt derivation takes; memory is ``128 * n * r`` bytes."""

    n: int = 2**15
    r: int = 8
    p: int = 3

    def sane(self) -> bool:
        """Return whether it is a cost that scrypt knows and this server would pay."""
        power = self.n > 1 and self.n & (self.n - 1) == 0
        return power and self.n <= 2**20 and 1 <= self.r <= 16 and 1 <= self.p <= 16


COST = Cost()
"""What a password that is set now costs."""


class _Kept(NamedTuple):
    """A kept password, read from its text."""

    cost: Cost
    salt: bytes
    key: bytes


def check_password(password: str, name: str) -> None:
    """Refuse a new password that is easy to guess; its composition is free.

    Raises
    ------
    ValueError
        It has fewer than 12 or more than 128 characters, is a pattern of few
        characters, or little more than the name. Never quotes it.
    """
    composed = unicodedata.normalize("NFC", password)
    if not SHORTEST <= len(composed) <= LONGEST:
        raise ValueError(
            f"a password has {SHORTEST} to {LONGEST} characters, not {len(composed)}; "
            "several words in a row are easy to remember"
        )
    if len(set(composed)) < _FEW:
        raise ValueError(f"a password needs at least {_FEW} different characters")
    rest = name_key(composed)
    for word in (name_key(name), *_OWN_WORDS):
        rest = rest.replace(word, "") if len(word) > 2 else rest
    if name_key(composed) == name_key(name) or len(rest) < SHORTEST // 2:
        raise ValueError("a password must be more than the name of the user or tool")


def hash_password(password: str, *, salt: bytes = b"") -> str:
    """Return what is kept of a password: ``scrypt$n$r$p$salt$hash``.

    Salt and hash are Base64; a fresh random salt unless one is given. Takes a quarter
    of a second, at the cost that passwords have now.
    """
    cost = COST
    salt = salt or os.urandom(_SALT)
    key = _derive(password, cost, salt)
    parts = (str(number) for number in cost)
    return "$".join(("scrypt", *parts, _encode(salt), _encode(key)))


def is_hash(kept: str) -> bool:
    """Return whether `kept` is a text that `hash_password` could have returned."""
    return _read(kept) is not None


def fits(password: str, kept: str) -> bool:
    """Return whether `password` is the one that `kept` was made of.

    Takes as long for a wrong one as for the right one.
    """
    read = _read(kept)
    if read is None or len(password) > 4 * LONGEST:
        return fits_nobody()
    return hmac.compare_digest(_derive(password, read.cost, read.salt), read.key)


def fits_nobody() -> bool:
    """Return False after as long as `fits` takes: unknown names are answered alike."""
    read = _read(_nobody())
    if read is not None:
        _derive("", read.cost, read.salt)
    return False


def outgrown(kept: str) -> bool:
    """Return whether `kept` was made at another cost than passwords are now."""
    read = _read(kept)
    return read is None or read.cost != COST


@lru_cache(maxsize=1)
def _nobody() -> str:
    return hash_password("", salt=b"\0" * _SALT)


def _derive(password: str, cost: Cost, salt: bytes) -> bytes:
    composed = unicodedata.normalize("NFC", password)
    with _AT_ONCE:
        return hashlib.scrypt(
            composed.encode("utf-8", "surrogatepass"),
            salt=salt,
            n=cost.n,
            r=cost.r,
            p=cost.p,
            maxmem=128 * cost.r * (cost.n + cost.p + 2) + 2**20,
            dklen=_LENGTH,
        )


def _read(kept: str) -> _Kept | None:
    """Return the parts of a kept password, or None when it is none."""
    try:
        scheme, n, r, p, salt, key = kept.split("$")
        read = _Kept(Cost(int(n), int(r), int(p)), _decode(salt), _decode(key))
    except (ValueError, binascii.Error):
        return None
    whole = len(read.salt) >= _SALT and len(read.key) == _LENGTH
    return read if scheme == "scrypt" and read.cost.sane() and whole else None


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)

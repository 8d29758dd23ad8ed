"""One entry of the ledger: who did what, to what and why, hashed and signed."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from loop.core.digests import digest_json
from loop.core.signing import SIGNATURE_BYTES

GENESIS = "0" * 64
ACTIONS = frozenset(
    {
        "protocol_set",
        "cohort_added",
        "draft_committed",
        "draft_rejected",
        "alias_moved",
        "evaluated",
        "gate_decided",
        "model_changed",
        "holdout_sealed",
        "holdout_opened",
        "holdout_retired",
        "frozen",
        "withdrawn",
        "exported",
        "reference_revised",
        "key_added",
        "key_revoked",
        "ledger_repaired",
        "override",
    }
)


_HEX = frozenset("0123456789abcdef")


class Signer(Protocol):
    """Signs entries with the key of the person who acts."""

    @property
    def keyid(self) -> str:
        """Sha256 of the raw public key, 64 hex characters."""

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of `message`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts, and in which role."""

    name: str
    """Name as it shall stand in the history."""

    role: str = "editor"
    """``reader``, ``reviewer``, ``editor``, ``approver``, ``admin`` or ``system``."""

    signer: Signer | None = field(default=None, compare=False, repr=False)
    """Signs what this actor adds to the ledger; None for one without a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to be recorded."""

    action: str
    """One of `ACTIONS`."""

    subject: str
    """What it happened to, for example ``"extractor@v3"``."""

    reason: str
    """Why, in the actor's words; never empty."""

    meaning: str = ""
    """For signed acts: authorship, review, approval or responsibility."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    """Digests and small values; never case text."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"unknown ledger action {self.action!r}")
        if not self.reason.strip():
            raise ValueError(f"{self.action} of {self.subject} needs a reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One line of the ledger."""

    seq: int
    """Line number from 1, without gaps."""

    time: str
    """UTC, ISO 8601 with seconds."""

    actor: str
    role: str
    action: str
    subject: str
    reason: str
    meaning: str
    payload: Mapping[str, Any]
    prev: str
    """Hash of the entry before; 64 zeros for the first."""

    hash: str
    """Sha256 of the canonical JSON of this entry; see `entry_hash`."""

    keyid: str = ""
    """Whose key signed it; empty for an entry that is not signed."""

    signature: str = ""
    """Base64 of the Ed25519 signature over `signed_bytes` of ``hash``; or empty."""


def entry_hash(entry: Mapping[str, Any]) -> str:
    """Sha256 over the canonical JSON of `entry` without ``hash`` and ``signature``.

    An empty ``keyid`` is left out too: entries from before there were keys keep their
    hashes.
    """
    return digest_json(
        {
            key: value
            for key, value in entry.items()
            if key not in ("hash", "signature") and (key != "keyid" or value)
        }
    )


def signed_bytes(entry_hash: str) -> bytes:
    """Return what the signature of the entry with that hash is over.

    The word before the hash keeps it from being taken for a signature of anything else.
    """
    return b"ranloop-ledger/1 " + entry_hash.encode("ascii")


def format_entry(entry: LedgerEntry) -> bytes:
    """Return the line of an entry, with its line end."""
    data = {one.name: getattr(entry, one.name) for one in fields(entry)}
    if not entry.keyid:
        del data["keyid"], data["signature"]
    text = json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n"
    return text.encode("utf-8")


def parse_entry(line: bytes) -> tuple[LedgerEntry, str]:
    """Return the entry that a line spells, and the hash its content has.

    Whether that is the hash it names, and whether it follows the line before, is for
    whoever reads the whole ledger.

    Raises
    ------
    ValueError
        The line is not an entry, or the form of its signature is wrong.
    """
    try:
        data = json.loads(line, object_pairs_hook=unique_keys)
        return make_entry(data), entry_hash(data)
    except (TypeError, RecursionError) as error:
        raise ValueError("not a ledger entry") from error


def make_entry(data: Mapping[str, Any]) -> LedgerEntry:
    """Return the entry with these fields, after checking the form of each.

    Raises
    ------
    ValueError
        A field is of another kind, or the form of the signature is wrong.
    TypeError
        A field is missing or unknown.
    """
    entry = LedgerEntry(**data)
    _check_form(entry, data)
    return entry


class RepeatedKeyError(ValueError):
    """A key appears twice in one JSON object; which is not said, as it may be text."""

    def __init__(self) -> None:
        super().__init__("a name occurs twice")


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object as `json.loads` gives it: its ``object_pairs_hook``.

    Raises
    ------
    RepeatedKeyError
        A key appears twice: of its two values none may win unseen.

    Examples
    --------
    >>> json.loads('{"a": {"b": 1}}', object_pairs_hook=unique_keys)
    {'a': {'b': 1}}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError
    return found


def _check_form(entry: LedgerEntry, data: Mapping[str, Any]) -> None:
    """Check that the fields hold what they should, signed or not signed at all."""
    words = [data[key] for key in data if key not in ("seq", "payload")]
    if type(entry.seq) is not int or not all(isinstance(one, str) for one in words):
        raise ValueError("a field has the wrong type")
    if not isinstance(entry.payload, dict):
        raise ValueError("payload is not an object")
    if "keyid" not in data and "signature" not in data:
        return
    if len(entry.keyid) != len(GENESIS) or not _HEX.issuperset(entry.keyid):
        raise ValueError("keyid is not 64 hex characters")
    signature = base64.b64decode(entry.signature, validate=True)
    # The last characters of base64 hold bits that mean nothing: only one spelling.
    spelled = base64.b64encode(signature).decode("ascii")
    if len(signature) != SIGNATURE_BYTES or spelled != entry.signature:
        raise ValueError("signature is not 64 bytes in base64")


def chain_event(
    event: Event, actor: Actor, time: str, last: LedgerEntry | None
) -> LedgerEntry:
    """Return `event` as the entry that follows `last`, signed if the actor has a key.

    Parameters
    ----------
    time
        UTC, ISO 8601 with seconds.
    last
        The entry before; None for the first one.
    """
    content = {
        "seq": last.seq + 1 if last else 1,
        "time": time,
        "actor": actor.name,
        "role": actor.role,
        "action": event.action,
        "subject": event.subject,
        "reason": event.reason,
        "meaning": event.meaning,
        "payload": dict(event.payload),
        "prev": last.hash if last else GENESIS,
    }
    if actor.signer is None:
        return LedgerEntry(**content, hash=entry_hash(content))  # type: ignore[arg-type]
    content["keyid"] = actor.signer.keyid
    digest = entry_hash(content)
    signature = base64.b64encode(actor.signer.sign(signed_bytes(digest)))
    return LedgerEntry(**content, hash=digest, signature=signature.decode("ascii"))  # type: ignore[arg-type]

"""Heads seen elsewhere held against the ledger: was its end cut off, or rewritten."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.check_findings import Finding, broken, note, ok
from loop.core.errors import DataError
from loop.core.heads import find_rollback
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted

_CHECK = "heads"
_HEAD = re.compile(r"([1-9][0-9]{0,8}):([0-9a-f]{12,64})")


class KnownHead(NamedTuple):
    """An entry of this ledger as somebody else wrote it down."""

    seq: int
    hash: str
    """At least its first 12 hex characters."""

    source: str
    """Where it was written down, for example ``"release extractor-v7"``."""


def parse_head(text: str) -> KnownHead:
    """Return the head that a person wrote down as ``SEQ:HASH``.

    Raises
    ------
    DataError
        It has another form, or fewer than 12 characters of the hash.
    """
    match = _HEAD.fullmatch(text.strip().lower())
    if match is None:
        raise DataError(
            f"{quoted(text)} is no head of a ledger. Write SEQ:HASH with at least 12 "
            "characters of the hash, as `ranloop audit` prints it."
        )
    return KnownHead(int(match[1]), match[2], f"head {match[1]}:{match[2][:12]}")


def check_heads(
    workspace: WorkspacePaths,
    entries: tuple[LedgerEntry, ...],
    heads: Sequence[KnownHead],
) -> list[Finding]:
    """Return whether the ledger holds every head that is known from elsewhere.

    Known are those given, and the newest one that this machine has seen. Without any, a
    ledger that was cut off at its end, or written anew from some line on, looks whole.
    """
    hashes = {entry.seq: entry.hash for entry in entries}
    last = max(hashes, default=0)
    found = [_check_head(one, hashes, last) for one in heads]
    rollback = find_rollback(workspace)
    if rollback is not None:
        seen = KnownHead(
            rollback.seq, rollback.hash, f"this machine on {rollback.time}"
        )
        found.append(_check_head(seen, hashes, last))
    if not found and entries:
        found = [
            note(
                _CHECK,
                "no head known from elsewhere was given: that the end was not cut off "
                "rests on this machine's own memory",
                todo="Give --release FOLDER or --head SEQ:HASH from another place.",
            )
        ]
    return found


def _check_head(known: KnownHead, hashes: Mapping[int, str], last: int) -> Finding:
    found = hashes.get(known.seq)
    if found is not None and found.startswith(known.hash):
        return ok(_CHECK, f"entry {known.seq} is the one that {known.source} names")
    if known.seq > last:
        return broken(
            _CHECK,
            f"the ledger ends at {last}; {known.source} has seen entry {known.seq}",
            where=f"entries {last + 1} to {known.seq}",
            implies="The end was cut off, or the workspace was rolled back, or this is "
            "a copy from before.",
            todo="Restore the newer ledger with its versions; nothing that was "
            "recorded since is in this one.",
            seq=last,
        )
    return broken(
        _CHECK,
        f"entry {known.seq} is not the one that {known.source} has seen",
        where=f"entry {known.seq}",
        implies="The ledger was written anew from that entry or an earlier one on, "
        "with fitting hashes; or it is another workspace's.",
        todo="Compare it with a backup, entry by entry.",
        seq=known.seq,
    )

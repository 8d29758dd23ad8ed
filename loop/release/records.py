"""What the ledger says of releases: what was frozen, on which statement, and since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from loop.core.ledger import Entry

if TYPE_CHECKING:
    from loop.release.keys import PublicKey


def frozen_payload(facts: Mapping[str, Any], statement_sha256: str) -> dict[str, Any]:
    """Return what the ledger records of a release, its subject being the version.

    Parameters
    ----------
    facts
        The content of its ``release.json``.
    statement_sha256
        Digest of the bytes of its ``release.dsse.json``.
    """
    return {
        "release": facts["release"]["name"],
        "digest": facts["release"]["digest"],
        "statement_sha256": statement_sha256,
        "head": facts["ledger"]["head"],
        "verdict": facts["claim"]["verdict"],
        "override": facts["frozen"]["override"],
        "development_only": facts["development_only"],
        "supersedes": (facts["supersedes"] or {}).get("name", ""),
    }


def find_frozen(entries: Iterable[Entry], name: str) -> Entry | None:
    """Return the entry that froze the release `name`; None if there is none.

    A release is frozen once: of two entries the first counts.
    """
    return _first(entries, "frozen", name)


def find_withdrawal(entries: Iterable[Entry], name: str) -> Entry | None:
    """Return the entry that withdrew the release `name`; None if none did."""
    return _first(entries, "withdrawn", name)


def keys_when(
    entries: Iterable[Entry], keys: Mapping[str, PublicKey], seq: int
) -> dict[str, PublicKey]:
    """Return `keys` as they stood at entry `seq`: later revocations do not count.

    The ledger knows which came first; the time that a signature names does not.
    """
    before = {
        entry.subject
        for entry in entries
        if entry.action == "key_revoked" and entry.seq <= seq
    }
    return {
        keyid: key if keyid in before else key._replace(revoked="")
        for keyid, key in keys.items()
    }


def _first(entries: Iterable[Entry], action: str, name: str) -> Entry | None:
    return next(
        (
            entry
            for entry in entries
            if entry.action == action and entry.payload.get("release") == name
        ),
        None,
    )

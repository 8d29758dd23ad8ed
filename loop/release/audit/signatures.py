"""Signatures of ledger entries held against the keys that the ledger itself records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from loop.core.check_findings import Finding, broken, note, ok, warning
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.release.keys import (
    PublicKey,
    learn_key,
    public_key_path,
    read_public_key,
    signature_problem,
)

_CHECK = "signatures"


def find_keys(entries: tuple[LedgerEntry, ...]) -> dict[str, PublicKey]:
    """Return every key that `entries` add, by id, with its revocation.

    They may be of a broken ledger; what adds no key is passed over.
    """
    keys: dict[str, PublicKey] = {}
    for entry in entries:
        learn_key(keys, entry)
    return keys


def check_signatures(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether every signature is by a valid key of whoever acts.

    Keys come from the ledger itself: whoever can write it anew from the first entry can
    write keys of their own. A public key that was handed out before shows that.
    """
    signed = sum(bool(entry.keyid) for entry in entries)
    found = [*_walk(entries), *_check_copies(workspace, find_keys(entries))]
    if signed and not found:
        found = [ok(_CHECK, f"{signed} of {len(entries)} entries are signed")]
    if entries and not signed:
        what = "no entry is signed: who acted is as written, and not proven"
        todo = "Make keys with `ranloop key new NAME`."
        found.append(note(_CHECK, what, todo=todo))
    return found


class _KeyHolder(NamedTuple):
    """Somebody who has signed with a key, and still could."""

    keyid: str
    name: str


def _walk(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    """Hold each entry against the keys as they stood before it."""
    keys: dict[str, PublicKey] = {}
    signers: set[_KeyHolder] = set()
    for entry in entries:
        if problem := _problem(entry, keys):
            yield _broken(entry, problem)
        if entry.keyid:
            signers.add(_KeyHolder(entry.keyid, entry.actor))
        elif any(
            one.name == entry.actor and _is_open(keys, one.keyid) for one in signers
        ):
            yield _stripped(entry)
        yield from _learn(keys, entry)


def _problem(entry: LedgerEntry, keys: Mapping[str, PublicKey]) -> str:
    try:
        return signature_problem(entry, keys)
    except ValueError:
        return "is signed, but its hash cannot be signed"


def _is_open(keys: Mapping[str, PublicKey], keyid: str) -> bool:
    key = keys.get(keyid)
    return key is not None and not key.revoked


def _learn(keys: dict[str, PublicKey], entry: LedgerEntry) -> Iterator[Finding]:
    """Bring `keys` up to date; yield what is said of a key that is none."""
    before = dict(keys)
    learn_key(keys, entry)
    if entry.action in ("key_added", "key_revoked") and keys == before:
        yield _broken(
            entry, "adds or revokes something that is not a key, or did so before"
        )


def _stripped(entry: LedgerEntry) -> Finding:
    """Return what to think of an unsigned entry by somebody who signs.

    Someone whose key is protected by a passphrase signs no entries, and is not meant.
    """
    if entry.action == "key_revoked":
        # A key does not sign its own end.
        return note(_CHECK, f"entry {entry.seq} revokes a key, and is not signed")
    return warning(
        _CHECK,
        f"entry {entry.seq} is not signed, although {entry.actor} has a key and signs",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="They acted on a machine without the key, or the entry was written by "
        "someone else, or anew.",
        todo=f"Ask {entry.actor} whether it is theirs.",
        seq=entry.seq,
    )


def _check_copies(
    workspace: WorkspacePaths, keys: Mapping[str, PublicKey]
) -> Iterator[Finding]:
    """Yield public key files that are not the recorded keys."""
    known = {public_key_path(workspace, key): key for key in keys.values()}
    folder = workspace.releases / "keys"
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        key = known.get(path)
        try:
            found = read_public_key(path)
        except DataError:
            found = None
        if key is None or found is None or found.public != key.public:
            yield warning(
                _CHECK,
                f"{path.name} is not a key that the ledger records",
                where=str(path),
                implies="Whoever verifies a release with it trusts someone unknown.",
                todo="Move it away; `ranloop key list` shows the recorded keys.",
            )
        elif found != key:
            names = [
                name
                for name, said in key._asdict().items()
                if getattr(found, name) != said
            ]
            yield warning(
                _CHECK,
                f"{path.name} differs from the ledger in {', '.join(names)}",
                where=str(path),
                implies="Whoever verifies a release with it takes the key for what it "
                "is not.",
                todo="Restore the file from version control or a backup, and ask who "
                "has a copy.",
            )


def _broken(entry: LedgerEntry, problem: str) -> Finding:
    return broken(
        _CHECK,
        f"entry {entry.seq}: {problem}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="Nothing shows that the person named did this.",
        todo=f"Ask {entry.actor} whether it is theirs; compare with a backup.",
        seq=entry.seq,
    )

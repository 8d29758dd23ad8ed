"""Public keys of people: what the ledger recorded, and the files handed out.

The ledger is what counts: it holds every public key, whose it is, and whether it was
revoked. The files under ``reports/releases/keys/`` are copies to hand out, for people
who verify a release without the workspace.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loop.core.digests import canonical_json
from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, read_ledger, signed_bytes
from loop.core.paths import Workspace
from loop.core.printable import printable
from loop.core.signing import is_signed, key_id
from loop.core.yaml_files import check_model

_FORMAT = "ranloop-key/1"
_LARGEST = 16_384
"""No public key file is larger, bytes."""


class PublicKey(NamedTuple):
    """Whose signatures can be checked with which 32 bytes."""

    keyid: str
    """Sha256 of `public`, 64 hex characters."""

    name: str
    """The person, as in the ledger."""

    role: str
    """In which role they sign, for example ``"approver"``."""

    public: bytes
    """Raw Ed25519 public key, 32 bytes."""

    created: str
    """UTC, ISO 8601 with seconds; signatures before that do not count."""

    valid_to: str = ""
    """Signatures from then on do not count; empty for a key without an end."""

    revoked: str = ""
    """When it was revoked, from when on it does not count; empty if it was not."""

    def is_valid(self, time: str) -> bool:
        """Whether a signature made at `time` (UTC, ISO 8601 with seconds) counts."""
        ends = [end for end in (self.valid_to, self.revoked) if end]
        return self.created <= time and all(time < end for end in ends)


def _check_words(text: str) -> str:
    if text != text.strip() or not text or printable(text) != text or "\n" in text:
        raise ValueError("give words on one line, without spaces around them")
    return text


_Words = Annotated[str, Field(max_length=200), AfterValidator(_check_words)]
_Time = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
]


class _KeyFile(BaseModel):
    """What a public key file says, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["ranloop-key/1"]
    keyid: str
    name: _Words
    role: _Words
    public: str
    created: _Time
    valid_to: _Time | Literal[""]
    revoked: _Time | Literal[""]


def key_file(key: PublicKey) -> dict[str, str]:
    """Return what the file of a public key says."""
    data = key._asdict()
    public = base64.b64encode(key.public).decode("ascii")
    return {**data, "format": _FORMAT, "public": public}


def format_public_key(key: PublicKey) -> bytes:
    """Return the file of a public key: canonical JSON and a line end."""
    return canonical_json(key_file(key)) + b"\n"


def read_public_key(path: Path) -> PublicKey:
    """Return the public key of a file that somebody handed out.

    Raises
    ------
    DataError
        It is missing, not such a file, or its id is not that of its key.
    """
    try:
        # Asked before it is opened: a pipe would wait for a writer for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{path} is no regular file. Name a public key file.")
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read the public key {path}. Check the name."
        ) from error
    return parse_public_key(raw, str(path))


def parse_public_key(raw: bytes, source: str) -> PublicKey:
    """Return the key of a file's bytes; `source` is named in errors.

    Raises
    ------
    DataError
        They are not spelled as `format_public_key` does, or the id is another key's.
    """
    wrong = DataError(
        f"{source} is not a public key as ranloop writes it, or was changed. Take it "
        "anew from whoever holds the key; `ranloop key show` prints it."
    )
    try:
        data = json.loads(raw) if len(raw) <= _LARGEST else None
    except (ValueError, RecursionError) as error:
        raise wrong from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise wrong
    form = check_model(data, _KeyFile, source)
    try:
        public = base64.b64decode(form.public, validate=True)
    except (binascii.Error, ValueError) as error:
        raise wrong from error
    key = PublicKey(**form.model_dump(exclude={"format", "public"}), public=public)
    if key_id(key.public) != key.keyid or format_public_key(key) != raw:
        raise wrong
    return key


def public_key_path(workspace: Workspace, key: PublicKey) -> Path:
    """Return where the copy of a public key lies that can be handed out."""
    slug = re.sub(r"[^a-z0-9]+", "-", key.name.lower()).strip("-")[:40].strip("-")
    return workspace.releases / "keys" / f"{slug or 'key'}-{key.keyid[:8]}.json"


def read_public_keys(workspace: Workspace) -> Mapping[str, PublicKey]:
    """Return the keys that the ledger recorded, by id, with their revocations.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    keys: dict[str, PublicKey] = {}
    for entry in read_ledger(workspace.ledger):
        learn_key(keys, entry)
    return keys


def recorded_key(entry: LedgerEntry) -> PublicKey:
    """Return the public key that a ``key_added`` entry holds.

    Raises
    ------
    DataError
        It holds none.
    """
    file = entry.payload.get("key")
    key = parse_public_key(canonical_json(file) + b"\n", f"ledger entry {entry.seq}")
    if key.keyid != entry.subject or key.revoked:
        raise DataError(
            f"ledger entry {entry.seq} does not add the key it names. Run "
            "`ranloop audit` to see what else is off."
        )
    return key


def learn_key(keys: dict[str, PublicKey], entry: LedgerEntry) -> None:
    """Bring `keys` up to date with `entry`: a key added or revoked, else nothing.

    An entry that holds no key adds none, and nothing brings a revoked key back.
    """
    known = keys.get(entry.subject)
    if entry.action == "key_added" and known is None:
        try:
            keys[entry.subject] = recorded_key(entry)
        except DataError:
            return
    elif entry.action == "key_revoked" and known and not known.revoked:
        keys[known.keyid] = known._replace(revoked=entry.time)


def keys_when(
    entries: Iterable[LedgerEntry], keys: Mapping[str, PublicKey], seq: int
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


def signature_problem(entry: LedgerEntry, keys: Mapping[str, PublicKey]) -> str:
    """Return what is wrong with the signature of `entry`; empty if nothing is.

    Parameters
    ----------
    keys
        The keys as of the entries before, from `learn_key`: the order of entries
        decides what came first, as two may have the same second.
    """
    if not entry.keyid:
        return ""
    short, key = entry.keyid[:16], keys.get(entry.keyid)
    if key is None:
        return f"signed with the key {short}, which was not recorded by then"
    if key.revoked:
        return f"signed with the key {short}, which was revoked at {key.revoked}"
    if key.name != entry.actor:
        return f"signed with the key of {key.name}, not of {entry.actor}"
    if not key.is_valid(entry.time):
        return f"signed with the key {short} outside the time it is valid"
    signature = base64.b64decode(entry.signature)
    if not is_signed(key.public, signed_bytes(entry.hash), signature):
        return f"the signature was not made with the key {short} over this entry"
    return ""

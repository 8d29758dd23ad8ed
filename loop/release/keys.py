"""Keys of people: made, kept private, used to sign, and revoked.

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
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import canonical_json, digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.files import locked, make_folder, write_atomic
from loop.core.ledger import (
    Actor,
    Event,
    LedgerEntry,
    Signer,
    append_event,
    read_ledger,
    signed_bytes,
)
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import require_distinct
from loop.core.people.users import UserRole
from loop.core.safe_text import printable, quoted
from loop.core.signing import is_signed, key_id, public_of, sign
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


def public_key_path(workspace: WorkspacePaths, key: PublicKey) -> Path:
    """Return where the copy of a public key lies that can be handed out."""
    slug = re.sub(r"[^a-z0-9]+", "-", key.name.lower()).strip("-")[:40].strip("-")
    return workspace.releases / "keys" / f"{slug or 'key'}-{key.keyid[:8]}.json"


def read_public_keys(workspace: WorkspacePaths) -> Mapping[str, PublicKey]:
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


PASSPHRASE = "RANLOOP_KEY_PASSPHRASE"
"""Environment variable with the passphrase of a private key."""

_ROLES = ("author", *(role.value for role in UserRole))
"""In which role people sign."""

_PROTECTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySigner:
    """Signs ledger entries with a person's key."""

    keyid: str
    """Sha256 of the raw public key, 64 hex characters."""

    private: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of `message`."""
        return sign(self.private, message)


def make_key(
    workspace: WorkspacePaths,
    name: str,
    role: str,
    actor: Actor,
    *,
    passphrase: str = "",
    now: Clock = utc_now,
) -> PublicKey:
    """Make a key pair for `name`, record it in the ledger, and return the public one.

    Parameters
    ----------
    name
        The person, as they act: `signer_for` finds the key by it.
    role
        In which role they sign.
    passphrase
        Protects the private key. A key that has one signs only when it is asked for,
        not every entry of the ledger.

    Raises
    ------
    DataError
        The person has a valid key already, or name or role is unusable.
    LedgerError
        The ledger is broken; no key was made.
    WriteError
        The workspace cannot be written.
    """
    if role not in _ROLES:
        roles = ", ".join(_ROLES)
        raise DataError(f"{quoted(role)} is no role of a person. Use one of {roles}.")
    private = Ed25519PrivateKey.generate()
    public, created = public_of(private), format_time(now())
    key = PublicKey(key_id(public), name, role, public, created)
    parse_public_key(format_public_key(key), f"the key of {name!r}")
    with _key_lock(workspace):
        _require_none(workspace, name)
        require_distinct(workspace, name)
        _write_private(workspace, key.keyid, private, passphrase)
        event = Event(
            action="key_added",
            subject=key.keyid,
            reason=f"key of {name} as {role}",
            payload={
                "key": key_file(key),
                "file": public_key_path(workspace, key).name,
                "sha256": digest_bytes(format_public_key(key)),
            },
        )
        append_event(workspace.ledger, event, actor, now=now)
        _publish(workspace)
    return key


def revoke_key(
    workspace: WorkspacePaths,
    keyid: str,
    actor: Actor,
    why: str,
    now: Clock = utc_now,
) -> LedgerEntry:
    """Record that a key must not be trusted any more, and return the entry.

    What it signed before stays signed. The private file stays too: deleting it is for
    whoever owns the machine.

    Raises
    ------
    DataError
        There is no such key, or it was revoked before.
    LedgerError
        The ledger is broken; nothing was revoked.
    WriteError
        The workspace cannot be written.
    """
    with _key_lock(workspace):
        key = find_key(workspace, keyid)
        if key.revoked:
            _publish(workspace)
            raise DataError(
                f"the key {key.keyid[:16]} of {key.name} was revoked at {key.revoked} "
                "already. There is nothing to do."
            )
        if actor.signer is not None and actor.signer.keyid == key.keyid:
            actor = replace(actor, signer=None)
        time = now()
        revoked = key._replace(revoked=format_time(time))
        event = Event(
            action="key_revoked",
            subject=key.keyid,
            reason=why,
            payload={
                "name": key.name,
                "file": public_key_path(workspace, key).name,
                "sha256": digest_bytes(format_public_key(revoked)),
            },
        )
        entry = append_event(workspace.ledger, event, actor, now=lambda: time)
        _publish(workspace)
    return entry


def find_key(workspace: WorkspacePaths, wanted: str) -> PublicKey:
    """Return the recorded key that `wanted` names.

    Parameters
    ----------
    wanted
        A key id, the beginning of one (8 characters or more), or a person's name: then
        the one of their keys that was not revoked, or the newest.

    Raises
    ------
    DataError
        There is none, or several ids begin so.
    LedgerError
        The ledger is broken.
    """
    keys = read_public_keys(workspace)
    named = [key for key in keys.values() if key.name == wanted]
    if named:
        return next((key for key in named if not key.revoked), named[-1])
    fits = [key for keyid, key in keys.items() if keyid.startswith(wanted)]
    if not fits or len(wanted) < 8:
        known = ", ".join(sorted({key.name for key in keys.values()})) or "none"
        raise DataError(
            f"{wanted!r} names no recorded key (there are keys of: {known}). Make one "
            "with `ranloop key new NAME --role ROLE`, or give a name or at least 8 "
            "characters of a key id from `ranloop key list`."
        )
    if len(fits) > 1:
        raise DataError(
            f"{wanted!r} begins the ids of {len(fits)} keys. Give more characters, as "
            "in `ranloop key list`."
        )
    return fits[0]


def load_private(
    workspace: WorkspacePaths, keyid: str, passphrase: str = ""
) -> Ed25519PrivateKey:
    """Return the private key with that id from this machine.

    Raises
    ------
    DataError
        It is not here, others may read it, or the passphrase is missing or wrong.
    """
    path = private_key_path(workspace, keyid)
    raw = _read_private(path)
    if raw is None:
        raise DataError(
            f"the private key {keyid[:16]} is not on this machine. Sign where it was "
            "made, or make another one with `ranloop key new`."
        )
    if raw.startswith(_PROTECTED) and not passphrase:
        raise DataError(
            f"the private key {keyid[:16]} has a passphrase. Give it when asked, or as "
            f"{PASSPHRASE}."
        )
    return _decrypt(raw, path, keyid, passphrase)


def _decrypt(raw: bytes, path: Path, keyid: str, passphrase: str) -> Ed25519PrivateKey:
    """Return the key of a PEM file after checking that it is the one asked for."""
    secret = passphrase.encode("utf-8") if raw.startswith(_PROTECTED) else None
    try:
        private = load_pem_private_key(raw, secret)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        hint = "The passphrase is wrong, or the file" if secret else "The file"
        raise DataError(
            f"cannot open {path}. {hint} was damaged: try again, or restore it from "
            "your backup."
        ) from error
    if isinstance(private, Ed25519PrivateKey) and key_id(public_of(private)) == keyid:
        return private
    raise DataError(
        f"{path} holds another key than {keyid[:16]}. Restore it from your backup."
    )


def needs_passphrase(workspace: WorkspacePaths, keyid: str) -> bool:
    """Whether the private key with that id is on this machine and has a passphrase.

    Raises
    ------
    DataError
        Others may read the private key.
    """
    raw = _read_private(private_key_path(workspace, keyid))
    return raw is not None and raw.startswith(_PROTECTED)


def signer_for(workspace: WorkspacePaths, name: str) -> Signer | None:
    """Return what signs the ledger entries of `name`; None if nothing here can.

    That is a key of theirs that was not revoked, lies on this machine, and asks for no
    passphrase.

    Raises
    ------
    DataError
        The private key is damaged, or others may read it.
    """
    if not any(workspace.keys.glob("*.pem")):
        return None
    try:
        keys = read_public_keys(workspace)
    except LedgerError:
        # Nothing can be appended to a broken ledger: that says what to do.
        return None
    for key in keys.values():
        raw = None
        if key.name == name and not key.revoked:
            raw = _read_private(private_key_path(workspace, key.keyid))
        if raw is not None and not raw.startswith(_PROTECTED):
            private = load_private(workspace, key.keyid)
            return KeySigner(keyid=key.keyid, private=private)
    return None


def private_key_path(workspace: WorkspacePaths, keyid: str) -> Path:
    """Return where the private key lies, on the machine that has it."""
    return workspace.keys / f"{keyid[:16]}.pem"


def _read_private(path: Path) -> bytes | None:
    """Return the bytes of a private key file; None where there is none."""
    try:
        mode = path.stat().st_mode
        if stat.S_IMODE(mode) & 0o077:
            raise DataError(
                f"{path} may be read by others. Make it yours alone with "
                f"`chmod 600 {path}`; if others had access, revoke the key."
            )
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}. Correct its permissions or owner."
        ) from error


def _write_private(
    workspace: WorkspacePaths, keyid: str, private: Ed25519PrivateKey, passphrase: str
) -> None:
    lock: KeySerializationEncryption = NoEncryption()
    if passphrase:
        lock = BestAvailableEncryption(passphrase.encode("utf-8"))
    raw = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
    workspace.open_private()
    make_folder(workspace.keys, mode=0o700)
    write_atomic(private_key_path(workspace, keyid), raw, mode=0o600)


def _publish(workspace: WorkspacePaths) -> None:
    """Write the public files that are missing or do not know of a revocation yet."""
    for key in read_public_keys(workspace).values():
        path = public_key_path(workspace, key)
        before = format_public_key(key._replace(revoked=""))
        if not path.exists() or (key.revoked and path.read_bytes() == before):
            write_atomic(path, format_public_key(key))


def _require_none(workspace: WorkspacePaths, name: str) -> None:
    """Refuse a second key for somebody who has one."""
    for key in read_public_keys(workspace).values():
        if key.name == name and not key.revoked:
            raise DataError(
                f"{name} has a key already: {key.keyid[:16]}, made {key.created}. Use "
                "it, or take another one in its place with --replace --why."
            )


def _key_lock(workspace: WorkspacePaths) -> AbstractContextManager[None]:
    return locked(workspace.open_private() / "locks" / "keys.lock")

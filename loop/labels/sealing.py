"""Labels and votes of a holdout, encrypted where they lie until an opening is held.

AES-256-GCM with the workspace's key ``.ranloop/keys/vault.key``, a random nonce, and
the file's place as associated data, so that one sealed file cannot stand for another.
The ledger keeps a digest that only the key can make. Whoever holds key and files can
decrypt: the seal keeps labels from being seen by accident or in passing, and the ledger
shows every opening that was asked for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from loop.core.digests import digest_bytes, framed
from loop.core.errors import DataError, SealedError, StoreError
from loop.core.files import locked, make_folder, sync_folder, write_atomic, write_error
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import CohortRecord

_KEY_BYTES = 32


def vault_key(workspace: WorkspacePaths) -> Path:
    """File with the key that seals the holdouts of `workspace`, mode 0600."""
    return workspace.keys / "vault.key"


def open_key(workspace: WorkspacePaths) -> bytes:
    """Return the key of the vault; it is made on first use, mode 0600.

    Raises
    ------
    DataError
        The key is damaged, or others may read it.
    WriteError
        It cannot be written.
    """
    workspace.open_private()
    make_folder(workspace.keys, mode=0o700)
    with locked(workspace.private / "locks" / "vault.lock"):
        if not vault_key(workspace).exists():
            text = secrets.token_hex(_KEY_BYTES) + "\n"
            write_atomic(vault_key(workspace), text, mode=0o600)
        return read_key(workspace)


def read_key(workspace: WorkspacePaths) -> bytes:
    """Return the key of the vault.

    Raises
    ------
    DataError
        It is not here, is damaged, or others may read it.
    """
    path = vault_key(workspace)
    try:
        _require_private(path)
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError as error:
        raise DataError(
            f"{path} is not on this machine: without it no sealed label can be read. "
            "Bring the key from the machine that sealed them, or from a backup; if it "
            "is lost, import the cohort again with its labels."
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a key. Restore it.") from error
    if len(key) != _KEY_BYTES:
        raise DataError(
            f"{path} is damaged: it must hold {2 * _KEY_BYTES} hex characters. Restore "
            "it from your backup."
        )
    return key


def _require_private(path: Path) -> None:
    """Refuse a key that others may read, as the keys of people are refused."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise DataError(
            f"{path} may be read by others. Make it yours alone with `chmod 600 "
            f"{path}`; if others had access, they may know what is sealed with it."
        )


_MARK = "sealed:"
_NONCE_BYTES = 12
_WIDTH = 16
"""Every word is filled up to this, so that its length does not tell which it is."""


@dataclass(frozen=True, slots=True)
class WordSeal:
    """Seals words for one place each, with the key of the vault."""

    key: bytes = field(repr=False)

    def close(self, word: str, place: tuple[str, ...]) -> str:
        """Return `word` sealed for `place`; nothing stays nothing."""
        if not word:
            return ""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        padded = word.encode("utf-8").ljust(_WIDTH)
        text = AESGCM(self.key).encrypt(nonce, padded, framed(place))
        return _MARK + base64.b64encode(nonce + text).decode("ascii")

    def open(self, kept: str, place: tuple[str, ...]) -> str:
        """Return the word sealed for `place`; one kept in plain is as it is.

        Raises
        ------
        StoreError
            It was sealed for another place, with another key, or was changed.
        """
        if not kept.startswith(_MARK):
            return kept
        try:
            data = base64.b64decode(kept.removeprefix(_MARK), validate=True)
            nonce, text = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            padded = AESGCM(self.key).decrypt(nonce, text, framed(place))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise StoreError(
                "an answer on a holdout cannot be opened: it was changed, or sealed "
                "with another key. Restore the store or .ranloop/keys/vault.key from a "
                "backup."
            ) from error
        return padded.decode("utf-8").rstrip()


def open_words(workspace: WorkspacePaths) -> WordSeal:
    """Return what seals words in `workspace`; its key is made on first use.

    Raises
    ------
    DataError
        The key is damaged.
    WriteError
        It cannot be written.
    """
    return WordSeal(open_key(workspace))


SUFFIX = ".sealed"
_MAGIC = b"ranloop-sealed/1 "
_LENGTH_BYTES = 8
_LEAST = 4096
"""Bytes that even the shortest sealed text takes."""


class Opening(NamedTuple):
    """What lets a holdout's labels be read: an entry that the ledger holds."""

    cohort: str
    seq: int
    """Number of the entry ``holdout_opened``."""

    hash: str
    """Hash of that entry."""

    candidate: str
    """Digest of the frozen candidate that it was opened for."""


def sealed_path(path: Path) -> Path:
    """File in which what belongs into `path` lies sealed."""
    return path.with_name(path.name + SUFFIX)


def is_stored(path: Path) -> bool:
    """Whether there is a file for `path`, in plain or sealed."""
    return path.is_file() or sealed_path(path).is_file()


def write_labels(
    workspace: WorkspacePaths,
    path: Path,
    raw: bytes,
    *,
    sealed: bool,
    mode: int | None = None,
) -> None:
    """Write `raw` to `path`, or sealed beside it; a plain text is never written then.

    Parameters
    ----------
    mode
        Permissions of the file; None for those of the umask.

    Raises
    ------
    DataError
        The key of the vault is damaged.
    WriteError
        The workspace cannot be written.
    """
    if not sealed:
        write_atomic(path, raw, mode=mode)
        return
    key = open_key(workspace)
    nonce = secrets.token_bytes(_NONCE_BYTES)
    head = _head(key)
    text = AESGCM(key).encrypt(nonce, _pad(raw), _associate(workspace, path, head))
    write_atomic(sealed_path(path), head + nonce + text, mode=mode)


def read_labels(workspace: WorkspacePaths, path: Path, *, sealed: bool) -> bytes:
    """Return what lies in `path`, or sealed beside it.

    Whether the caller may see it is decided before, by `require_opening`.

    Raises
    ------
    DataError
        It is not there, lies in plain where it must be sealed or the other way round,
        was edited, or the key is not the one that it was sealed with.
    """
    refuse_plain(path, sealed=sealed)
    if not sealed and not path.is_file() and sealed_path(path).is_file():
        raise DataError(
            f"{sealed_path(path)} is sealed, but its cohort is no holdout: making it "
            "one for development was interrupted. Run `ranloop cohort retire COHORT "
            "--why REASON` again."
        )
    if not sealed:
        return _read(path)
    return unseal(workspace, path)


def unseal(workspace: WorkspacePaths, path: Path) -> bytes:
    """Return what lies sealed beside `path`; see `read_labels`.

    Raises
    ------
    DataError
        It is not there, was edited, or was sealed with another key.
    """
    data, key = _read(sealed_path(path)), read_key(workspace)
    head = _require_head(workspace, path, data, key)
    nonce, text = data[len(head) :][:_NONCE_BYTES], data[len(head) + _NONCE_BYTES :]
    try:
        padded = AESGCM(key).decrypt(nonce, text, _associate(workspace, path, head))
    except InvalidTag as error:
        raise _edited(path) from error
    return _unpad(padded)


def check_key(workspace: WorkspacePaths, path: Path) -> None:
    """Refuse a sealed file that the key here cannot open; nothing is decrypted.

    Raises
    ------
    DataError
        The file or the key is not here, or it was sealed with another key.
    """
    _require_head(workspace, path, _read(sealed_path(path)), read_key(workspace))


def label_digest(workspace: WorkspacePaths, raw: bytes, *, sealed: bool) -> str:
    """Return what the ledger records of labels or votes, 64 hex characters.

    Of sealed ones an HMAC-SHA256 with the vault's key: ledgers travel, and whoever
    nearly knows the labels could find the rest by trying until a plain digest fits.

    Raises
    ------
    DataError
        The key of the vault is damaged.
    WriteError
        It cannot be made.
    """
    if not sealed:
        return digest_bytes(raw)
    return _keyed(open_key(workspace), raw)


def is_digest_of(workspace: WorkspacePaths, recorded: object, raw: bytes) -> bool:
    """Whether the ledger recorded `recorded` of these labels, in plain or sealed.

    Raises
    ------
    DataError
        The key of the vault is damaged.
    """
    if recorded == digest_bytes(raw):
        return True
    there = vault_key(workspace).exists()
    return there and recorded == _keyed(read_key(workspace), raw)


def read_stored(workspace: WorkspacePaths, path: Path, *, sealed: bool) -> bytes | None:
    """Return what `read_labels` would give, or None when there is no file.

    Raises
    ------
    DataError
        As `read_labels` does for a file that is there.
    """
    return read_labels(workspace, path, sealed=sealed) if is_stored(path) else None


def _keyed(key: bytes, raw: bytes) -> str:
    return hmac.new(key, b"ranloop labels/1 " + raw, "sha256").hexdigest()


def refuse_plain(path: Path, *, sealed: bool) -> None:
    """Refuse labels in plain where they must be sealed.

    Raises
    ------
    DataError
        `path` is there although it must be sealed.
    """
    if sealed and path.is_file():
        raise DataError(
            f"{path} holds labels of a holdout in plain. Seal them with `ranloop "
            "cohort seal COHORT --why REASON`."
        )


def remove_file(path: Path) -> None:
    """Remove `path` for good, if it is there.

    Raises
    ------
    WriteError
        It cannot be removed.
    """
    try:
        if path.is_file():
            path.unlink()
            sync_folder(path.parent)
    except OSError as error:
        raise write_error(path, error) from error


def require_opening(
    workspace: WorkspacePaths,
    record: CohortRecord,
    opening: Opening | None,
    *,
    digest: str | None = None,
    prompt_digest: str | None = None,
) -> Mapping[str, Any]:
    """Return what the ledger recorded of `opening`, if it opens this holdout now.

    An opening is over once its result was recorded: the result is read instead.

    Parameters
    ----------
    record
        What the ledger recorded of the cohort.
    digest
        Recorded digest of the reference version wanted; None for the newest.
    prompt_digest
        Digest of the prompt version that is asked or scored; None where that is not
        known yet.

    Raises
    ------
    SealedError
        There is no opening, the ledger has no such entry, it is for another cohort,
        for other cases, another reference version or another prompt version, or it is
        over.
    """
    name = record.name
    if opening is None:
        raise SealedError(
            f"cohort {name!r} is a holdout: its labels and votes are sealed. They open "
            "for a frozen version, with `ranloop freeze`; to give the holdout up and "
            f"use it for development, run `ranloop cohort retire {name} --why REASON`."
        )
    entries = read_ledger(workspace.ledger)
    payload = _find_payload(entries, opening)
    wanted = {
        "cohort": name,
        "cohort_digest": record.added.get("cohort_digest"),
        "reference_digest": digest or record.newest_digest,
        "candidate": opening.candidate,
    }
    if prompt_digest is not None:
        wanted["prompt_digest"] = prompt_digest
    if payload is None or not wanted.items() <= payload.items():
        raise SealedError(
            f"the ledger holds no opening {opening.seq} of holdout {name!r} as it is "
            "now, for this candidate and this reference. Ask for one with `ranloop "
            "freeze`."
        )
    if find_closing(entries, opening.seq) is not None:
        raise SealedError(
            f"opening {opening.seq} of holdout {name!r} is over: its result is "
            "recorded. Read the result, with `ranloop freeze` of the same version."
        )
    return payload


def find_closing(entries: tuple[LedgerEntry, ...], seq: int) -> LedgerEntry | None:
    """Return the entry that recorded the result of opening `seq`, if there is one."""
    closings = (
        entry
        for entry in entries
        if entry.action == "holdout_sealed" and entry.payload.get("opening") == seq
    )
    return next(closings, None)


def list_openings(
    entries: tuple[LedgerEntry, ...], name: str, digest: str
) -> tuple[LedgerEntry, ...]:
    """Return every opening of cohort `name`, or of the same cases under any name."""
    return tuple(
        entry
        for entry in entries
        if entry.action == "holdout_opened"
        and (
            entry.payload.get("cohort") == name
            or entry.payload.get("cohort_digest") == digest
        )
    )


def _find_payload(
    entries: tuple[LedgerEntry, ...], opening: Opening
) -> Mapping[str, Any] | None:
    if not 1 <= opening.seq <= len(entries):
        return None
    entry = entries[opening.seq - 1]
    held = entry.action == "holdout_opened" and entry.hash == opening.hash
    return entry.payload if held else None


def _pad(raw: bytes) -> bytes:
    """Return `raw` with its length before it, filled up to a power of two.

    Values are spelled out, so that the size of a file would tell how many are present.
    """
    framed = len(raw).to_bytes(_LENGTH_BYTES, "big") + raw
    size = max(_LEAST, 1 << (len(framed) - 1).bit_length())
    return framed.ljust(size, b"\0")


def _unpad(padded: bytes) -> bytes:
    length = int.from_bytes(padded[:_LENGTH_BYTES], "big")
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _associate(workspace: WorkspacePaths, path: Path, head: bytes) -> bytes:
    """Return what is authenticated with a file: head and place in the workspace."""
    return head + path.relative_to(workspace.root).as_posix().encode("utf-8")


def _head(key: bytes) -> bytes:
    """First line of a sealed file: its form, and which key it was sealed with."""
    fingerprint = hashlib.sha256(b"ranloop vault key" + key).hexdigest()[:16]
    return _MAGIC + fingerprint.encode("ascii") + b"\n"


def _require_head(
    workspace: WorkspacePaths, path: Path, data: bytes, key: bytes
) -> bytes:
    """Return the head of a sealed file, if it was sealed with `key`."""
    head = _head(key)
    if not data.startswith(_MAGIC) or len(data) < len(head) + _NONCE_BYTES:
        raise _edited(path)
    if not data.startswith(head):
        raise DataError(
            f"{sealed_path(path)} was sealed with another key than the one in "
            f"{vault_key(workspace)}. Restore that key from your backup; without it "
            "the labels are lost, and the cohort must be imported again."
        )
    return head


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise DataError(f"cannot read {path}: {reason}. Restore it.") from error


def _edited(path: Path) -> DataError:
    return DataError(
        f"{sealed_path(path)} was edited, or belongs to another place: its seal does "
        "not hold. Restore it from version control or a backup."
    )

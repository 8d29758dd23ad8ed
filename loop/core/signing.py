"""Ed25519 signatures, and DSSE envelopes: signed bytes that name their type.

What is signed is the pre-authentication encoding, never the JSON around it. An envelope
is read strictly: one with other spaces, another order of keys or loose base64 is not
the envelope that was written, although its signature would still hold.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from loop.core.digests import canonical_json, digest_bytes
from loop.core.errors import DataError

STATEMENT_TYPE = "application/vnd.in-toto+json"


class Signature(NamedTuple):
    """One signature of an envelope."""

    keyid: str
    """Sha256 of the raw public key: a hint where to look, not a reason to trust."""

    sig: bytes
    """64 bytes."""


class Envelope(NamedTuple):
    """A payload and who signed it."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def signed(self) -> bytes:
        """The bytes that the signatures are over."""
        return pre_authentication(self.payload_type, self.payload)


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes to sign: type and payload, each after its length in bytes.

    References
    ----------
    DSSE v1, https://github.com/secure-systems-lab/dsse, protocol.md.

    Examples
    --------
    >>> pre_authentication("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def format_envelope(envelope: Envelope) -> bytes:
    """Return the file of an envelope: canonical JSON and a line end."""
    return (
        canonical_json(
            {
                "payload": _encode(envelope.payload),
                "payloadType": envelope.payload_type,
                "signatures": [
                    {"keyid": one.keyid, "sig": _encode(one.sig)}
                    for one in envelope.signatures
                ],
            }
        )
        + b"\n"
    )


def parse_envelope(raw: bytes, name: str) -> Envelope:
    """Return the envelope of a file; `name` is named in errors.

    Raises
    ------
    DataError
        It is not an envelope, or not spelled as `format_envelope` does.
    """
    try:
        data = json.loads(raw)
        envelope = Envelope(
            payload_type=str(data["payloadType"]),
            payload=_decode(data["payload"]),
            signatures=_signatures(data["signatures"]),
        )
        canonical = format_envelope(envelope)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{name} is not a DSSE envelope. Take the file anew from whoever released "
            "it."
        ) from error
    if canonical != raw:
        raise DataError(
            f"{name} was changed after it was written: it is not spelled as ranloop "
            "writes an envelope. Take the file anew from whoever released it."
        )
    return envelope


def _signatures(found: Sequence[object]) -> tuple[Signature, ...]:
    return tuple(
        Signature(keyid=str(one["keyid"]), sig=_decode(one["sig"]))  # type: ignore[index]
        for one in found
    )


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64


def key_id(public: bytes) -> str:
    """Return the id of a raw 32-byte public key: its sha256, 64 hex characters."""
    return digest_bytes(public)


def public_of(private: Ed25519PrivateKey) -> bytes:
    """Return the raw 32 bytes of the public key."""
    return private.public_key().public_bytes_raw()


def sign(private: Ed25519PrivateKey, message: bytes) -> bytes:
    """Return the 64-byte signature of `message`; the same one every time."""
    return private.sign(message)


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` over `message` was made with the key of `public`.

    False for bytes that are no key or no signature.

    References
    ----------
    RFC 8032, Edwards-Curve Digital Signature Algorithm.
    """
    if len(public) != PUBLIC_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True

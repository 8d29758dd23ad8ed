"""Ed25519 signatures: the primitives that keys, ledger entries and releases share."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from loop.core.digests import digest_bytes

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

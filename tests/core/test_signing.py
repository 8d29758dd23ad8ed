"""Signatures and envelopes: the published vectors, and nothing but what was written."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loop.core.errors import DataError
from loop.core.signing import (
    Envelope,
    Signature,
    format_envelope,
    is_signed,
    key_id,
    parse_envelope,
    pre_authentication,
    public_of,
    sign,
)

KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
)
PUBLIC = bytes.fromhex(
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
)
SIGNED = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
ENVELOPE = Envelope(
    payload_type="application/x",
    payload=b"{}",
    signatures=(Signature("a", b"\0" * 64), Signature("b", b"\1" * 64)),
)


def test_the_signature_is_the_one_of_rfc_8032():
    """Section 7.1, test 2: one byte, 72."""
    assert public_of(KEY) == PUBLIC
    assert sign(KEY, b"\x72") == SIGNED
    assert is_signed(PUBLIC, b"\x72", SIGNED)


@pytest.mark.parametrize(
    ("public", "message", "signature"),
    [
        (PUBLIC, b"\x73", SIGNED),
        (PUBLIC, b"", SIGNED),
        (PUBLIC, b"\x72", SIGNED[:-1]),
        (PUBLIC, b"\x72", SIGNED + b"\0"),
        (PUBLIC, b"\x72", b""),
        (PUBLIC, b"\x72", SIGNED[:-1] + b"\1"),
        (PUBLIC[:-1], b"\x72", SIGNED),
        (PUBLIC + b"\0", b"\x72", SIGNED),
        (bytes(32), b"\x72", SIGNED),
        (b"\xff" * 32, b"\x72", SIGNED),
        (b"", b"\x72", b""),
    ],
)
def test_anything_else_is_not_signed(public, message, signature):
    """Another message, or bytes that are no key or no signature: False, no error."""
    assert is_signed(public, message, signature) is False


def test_what_is_signed_names_its_type_and_both_lengths():
    """The example of the specification; lengths are of bytes, not of letters."""
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pre_authentication("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "
    assert ENVELOPE.signed == b"DSSEv1 13 application/x 2 {}"


def test_the_id_of_a_key_is_its_sha256():
    """Of the raw 32 bytes; of 32 zero bytes it is a known number."""
    assert key_id(bytes(32)) == (
        "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
    )


def test_an_envelope_comes_back_as_it_was_written():
    """Every signature, in order; also without any."""
    for envelope in (ENVELOPE, ENVELOPE._replace(signatures=())):
        assert parse_envelope(format_envelope(envelope), "x.dsse") == envelope


def spelled(**changes):
    """Return the file of the envelope with other fields."""
    data = json.loads(format_envelope(ENVELOPE)) | changes
    kept = {key: value for key, value in data.items() if value is not None}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def test_an_envelope_that_is_spelled_otherwise_was_changed():
    """Its signature would still hold; what was written is one text only."""
    raw = format_envelope(ENVELOPE)
    assert spelled() == raw
    loose = base64.b64encode(b"{}").decode().replace("0=", "1=")
    assert base64.b64decode(loose) == b"{}"
    for other in (
        raw[:-1],
        raw + b"\n",
        raw.replace(b",", b", "),
        raw.replace(b'"sig"', b'"more":1,"sig"', 1),
        raw.replace(b'{"payload":', b'{"payload":"e30=","payload":', 1),
        spelled(payload=loose),
        spelled(zebra=1),
        json.dumps(dict(reversed(json.loads(raw).items()))).encode() + b"\n",
    ):
        with pytest.raises(DataError, match=r"x\.dsse was changed after it was"):
            parse_envelope(other, "x.dsse")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]\n",
        b"{}\n",
        b"\xff",
        b"[" * 100_000,
        spelled(payload=None),
        spelled(payload="e30"),
        spelled(payload="e3 0="),
        spelled(payload=3),
        spelled(payload="é"),
        spelled(payloadType=None),
        spelled(signatures=None),
        spelled(signatures=3),
        spelled(signatures=["a"]),
        spelled(signatures=[{"keyid": "a"}]),
        spelled(signatures=[{"keyid": "a", "sig": "?"}]),
    ],
)
def test_what_is_no_envelope_says_so_and_never_more(raw):
    """A file of somebody else ends in a message, and in no traceback."""
    with pytest.raises(DataError, match=r"x\.dsse is not a DSSE envelope"):
        parse_envelope(raw, "x.dsse")

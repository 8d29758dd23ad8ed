"""The signed statement of a release: which files, on which evidence, approved by whom.

An in-toto statement inside a DSSE envelope, signed with Ed25519 by one or more people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel, ConfigDict, Field

from loop.core.digests import canonical_json, digest_bytes
from loop.core.errors import DataError
from loop.core.signing import (
    STATEMENT_TYPE,
    Envelope,
    Signature,
    format_envelope,
    key_id,
    pre_authentication,
    public_of,
    sign,
)
from loop.core.yaml_files import check_model

ENVELOPE = "release.dsse.json"
"""Name of the envelope in a release folder; the only file that is no subject."""

_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://ranloop.org/release/v1"

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Time = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
]
"""UTC, ISO 8601 with seconds; compared as text, so in ASCII digits only."""


class Approval(NamedTuple):
    """Who signed a release, in which role and meaning what."""

    keyid: str
    """Sha256 of the raw public key, 64 hex characters."""

    name: str
    role: str
    """As in the public key, for example ``"approver"``."""

    meaning: str
    """``authorship``, ``review``, ``approval`` or ``responsibility``."""

    time: str
    """UTC, ISO 8601 with seconds."""


class Statement(NamedTuple):
    """What was signed."""

    subjects: Mapping[str, str]
    """File name to sha256, every file but the envelope."""

    predicate: Mapping[str, Any]
    """What `loop.release.release_json.predicate_of` says, without the approvals."""

    approvals: tuple[Approval, ...]


class _StatementModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Digest(_StatementModel):
    sha256: Hex


class _Subject(_StatementModel):
    name: str
    digest: _Digest


class _ApprovalForm(_StatementModel):
    keyid: Hex
    name: Annotated[str, Field(min_length=1)]
    role: Annotated[str, Field(min_length=1)]
    meaning: Annotated[str, Field(min_length=1)]
    time: Time


class _Predicate(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    approvals: Annotated[list[_ApprovalForm], Field(min_length=1)]


class _StatementForm(_StatementModel):
    type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[_Subject], Field(min_length=1)]
    predicateType: Literal["https://ranloop.org/release/v1"]
    predicate: _Predicate


def sign_release(
    files: Mapping[str, bytes],
    predicate: Mapping[str, object],
    signers: Sequence[tuple[Approval, Ed25519PrivateKey]],
) -> bytes:
    """Return the bytes of ``release.dsse.json``.

    Parameters
    ----------
    files
        Every other file of the release, its name to its bytes; each is a subject.
    predicate
        From `predicate_of`; the approvals are added.
    signers
        At least one; each approval names the key it is signed with.

    Raises
    ------
    ValueError
        Nobody signs, a key signs twice, or an approval names another key.
    """
    named = [approval.keyid for approval, _ in signers]
    if not named or len(set(named)) != len(named):
        raise ValueError(f"need signers with different keys, got {len(named)}")
    if named != [key_id(public_of(private)) for _, private in signers]:
        raise ValueError("an approval names another key than the one that signs it")
    approvals = [approval._asdict() for approval, _ in signers]
    payload = canonical_json(
        {
            "_type": _STATEMENT,
            "subject": [
                {"name": name, "digest": {"sha256": digest_bytes(files[name])}}
                for name in sorted(files)
            ],
            "predicateType": _PREDICATE,
            "predicate": dict(predicate) | {"approvals": approvals},
        }
    )
    message = pre_authentication(STATEMENT_TYPE, payload)
    signatures = tuple(
        Signature(keyid=approval.keyid, sig=sign(private, message))
        for approval, private in signers
    )
    return format_envelope(
        Envelope(payload_type=STATEMENT_TYPE, payload=payload, signatures=signatures)
    )


def parse_statement(envelope: Envelope) -> Statement:
    """Return the statement of an envelope; says nothing about its signatures.

    Raises
    ------
    DataError
        It is not a release's statement, or not spelled as `sign_release` does.
    """
    if envelope.payload_type != STATEMENT_TYPE:
        raise DataError(
            f"{ENVELOPE} holds another kind of document. Take the release anew from "
            "whoever made it."
        )
    data = read_canonical(envelope.payload, f"the statement in {ENVELOPE}")
    form = check_model(data, _StatementForm, f"the statement in {ENVELOPE}")
    names = [subject.name for subject in form.subject]
    if names != sorted(set(names)):
        raise DataError(
            f"the statement in {ENVELOPE} names a file twice, or not in order. Take "
            "the release anew from whoever made it."
        )
    approvals = tuple(Approval(**one.model_dump()) for one in form.predicate.approvals)
    if len({one.keyid for one in approvals}) != len(approvals):
        raise DataError(
            f"the statement in {ENVELOPE} lists a key twice. Take the release anew "
            "from whoever made it."
        )
    return Statement(
        subjects={one.name: one.digest.sha256 for one in form.subject},
        predicate=dict(form.predicate.model_extra or {}),
        approvals=approvals,
    )


def read_canonical(raw: bytes, name: str) -> object:
    """Return the data of JSON that has its one spelling; `name` is named in errors.

    Keys twice, spaces, another order or another escape are refused.

    Raises
    ------
    DataError
        It is not JSON, or spelled another way.
    """
    try:
        data: object = json.loads(raw)
        same = canonical_json(data) == raw
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{name} is not JSON. Take the release anew from whoever made it."
        ) from error
    if not same:
        raise DataError(
            f"{name} is not spelled as ranloop writes it. Take the release anew from "
            "whoever made it."
        )
    return data

"""Who vouches for a release: its envelope, its signatures, the digests under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from loop.core.digests import digest_bytes
from loop.core.dsse import Envelope, parse_envelope
from loop.core.errors import DataError
from loop.core.signing import is_signed, key_id
from loop.release.finding import ReleaseCheck, held, judged
from loop.release.folder import shown
from loop.release.statement import ENVELOPE, Approval, Statement, parse_statement

if TYPE_CHECKING:
    from loop.release.keys import PublicKey


class Signed(NamedTuple):
    """What the envelope of a release holds, as far as it can be read."""

    envelope: Envelope | None
    statement: Statement | None


def read_signed(files: Mapping[str, bytes]) -> tuple[Signed, list[ReleaseCheck]]:
    """Return envelope and statement, and whether each is spelled as it must be."""
    if ENVELOPE not in files:
        return Signed(None, None), [
            ReleaseCheck("envelope", False, f"{ENVELOPE} is missing: nothing is signed")
        ]
    try:
        envelope = parse_envelope(files[ENVELOPE], ENVELOPE)
    except DataError as error:
        return Signed(None, None), [ReleaseCheck("envelope", False, str(error))]
    good = held("envelope", f"signatures: {len(envelope.signatures)}")
    try:
        statement = parse_statement(envelope)
    except DataError as error:
        return Signed(envelope, None), [
            good,
            ReleaseCheck("statement", False, str(error)),
        ]
    named = f"names {len(statement.subjects)} files"
    return Signed(envelope, statement), [good, held("statement", named)]


def check_signatures(
    signed: Signed, trusted: Mapping[str, PublicKey]
) -> tuple[ReleaseCheck, ...]:
    """Return whether the signatures are those listed, and each by a trusted key.

    Parameters
    ----------
    trusted
        Key id to public key: who the reader believes, and nobody else.
    """
    envelope, statement = signed
    if envelope is None or statement is None:
        return (
            ReleaseCheck("signatures", False, "not checked: there is no statement"),
            ReleaseCheck("vouched for", False, "by nobody"),
        )
    listed = [approval.keyid for approval in statement.approvals]
    found = [signature.keyid for signature in envelope.signatures]
    problems = []
    if found != listed:
        problems.append("they are not those of the approvals, in their order")
    return (
        judged("signatures", problems, f"{len(found)}, each listed"),
        _check_vouched(listed, trusted),
        *(_check_approval(one, envelope, trusted) for one in statement.approvals),
    )


def _check_vouched(listed: list[str], trusted: Mapping[str, PublicKey]) -> ReleaseCheck:
    """Return whether the reader trusts any of those who are said to have signed."""
    known = [keyid for keyid in listed if keyid in trusted]
    if known:
        return held("vouched for", f"{len(known)} of {len(listed)} keys are trusted")
    ids = ", ".join(keyid[:16] for keyid in listed)
    detail = f"by nobody you trust; name a public key with --key (it says {ids})"
    return ReleaseCheck("vouched for", False, detail)


def _check_approval(
    approval: Approval, envelope: Envelope, trusted: Mapping[str, PublicKey]
) -> ReleaseCheck:
    """Return whether the person listed signed, with a key that was good then."""
    check = f"approval {shown(approval.keyid[:16])}"
    key = trusted.get(approval.keyid)
    who = f"{shown(approval.name)} ({shown(approval.role)})"
    if key is None:
        detail = f"{who}: the key {approval.keyid[:16]} is not one that you trust"
        return ReleaseCheck(check, False, detail)
    signatures = [one.sig for one in envelope.signatures if one.keyid == approval.keyid]
    problems = _key_problems(key, approval)
    if not any(is_signed(key.public, envelope.signed, sig) for sig in signatures):
        problems.append("the signature is missing or was not made with the key")
    problems = [f"{who}: {problem}" for problem in problems]
    good = f"{who}, {shown(approval.meaning)}, {approval.time}"
    return judged(check, problems, good)


def _key_problems(key: PublicKey, approval: Approval) -> list[str]:
    """Return why a trusted key does not vouch for what the approval says."""
    problems = []
    if key_id(key.public) != approval.keyid:
        problems.append("the trusted key has another id than it is listed under")
    if (key.name, key.role) != (approval.name, approval.role):
        problems.append(f"the key is that of {shown(key.name)} ({shown(key.role)})")
    if key.revoked:
        problems.append(
            f"the key was revoked, at {shown(key.revoked)}; whether the release is "
            "older, only the ledger of its workspace can tell"
        )
    if approval.time < key.created:
        problems.append(f"the key was made after it, at {shown(key.created)}")
    if key.valid_to and approval.time >= key.valid_to:
        problems.append(f"the key had run out, at {shown(key.valid_to)}")
    return problems


def check_files(
    statement: Statement | None, files: Mapping[str, bytes]
) -> ReleaseCheck:
    """Return whether the files are those of the statement, byte by byte."""
    if statement is None:
        return ReleaseCheck(
            "files", False, "not checked: there is no statement to go by"
        )
    present = {name: raw for name, raw in files.items() if name != ENVELOPE}
    problems = [
        f"{shown(name)} is named in the statement and missing"
        for name in sorted(set(statement.subjects) - set(present))
    ]
    for name, raw in sorted(present.items()):
        if name not in statement.subjects:
            problems.append(f"{name} is not named in the statement")
        elif digest_bytes(raw) != statement.subjects[name]:
            problems.append(f"{name} was changed after it was signed")
    return judged("files", problems, f"{len(present)} files have their digests")

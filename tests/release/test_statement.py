"""What is signed, and how strictly it is read."""

import pytest

from loop.core.digests import canonical_json
from loop.core.errors import DataError
from loop.core.signing import (
    Envelope,
    is_signed,
    parse_envelope,
    pre_authentication,
    public_of,
)
from loop.release.release_json import predicate_of
from loop.release.statement import parse_statement, sign_release
from tests.release.small import APPROVER, AUTHOR, typed

FILES = {"b.txt": b"two", "a.txt": b"one"}
TYPE = "application/vnd.in-toto+json"


def signed(*signers):
    """Return the envelope of two files."""
    raw = sign_release(FILES, {"gate": "PASS"}, signers)
    return parse_envelope(raw, "release.dsse.json")


def test_every_file_is_a_subject_and_every_signature_holds():
    """The statement names all that is released; each person signs the same bytes."""
    envelope = signed(AUTHOR, APPROVER)
    statement = parse_statement(envelope)
    assert list(statement.subjects) == ["a.txt", "b.txt"]
    assert statement.predicate == {"gate": "PASS"}
    assert statement.approvals == (AUTHOR[0], APPROVER[0])
    message = pre_authentication(TYPE, envelope.payload)
    for signature, (approval, private) in zip(
        envelope.signatures, (AUTHOR, APPROVER), strict=True
    ):
        assert signature.keyid == approval.keyid
        assert is_signed(public_of(private), message, signature.sig)


def test_signing_twice_gives_the_same_bytes():
    """Ed25519 has no randomness, so a release can be made again and compared."""
    again = sign_release(dict(reversed(FILES.items())), {"gate": "PASS"}, [AUTHOR])
    assert again == sign_release(FILES, {"gate": "PASS"}, [AUTHOR])


@pytest.mark.parametrize("signers", [(), (AUTHOR, AUTHOR)])
def test_nobody_or_the_same_key_twice_cannot_sign(signers):
    """Two approvals are two people."""
    with pytest.raises(ValueError, match="different keys"):
        sign_release(FILES, {}, signers)


def test_an_approval_names_the_key_that_signs():
    """Nobody signs under another's name by mistake."""
    with pytest.raises(ValueError, match="another key"):
        sign_release(FILES, {}, [(AUTHOR[0], APPROVER[1])])


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v2"},
        {"predicateType": "https://example.org/other/v1"},
        {"subject": []},
        {"subject": [{"name": "a", "digest": {"sha256": "A" * 64}}]},
        {"subject": [{"name": "a", "digest": {"sha512": "a" * 64}}]},
        {"extra": 1},
        {"predicate": {"approvals": []}},
        {"predicate": {}},
        {"predicate": {"approvals": [AUTHOR[0]._asdict()] * 2}},
        {"predicate": {"approvals": [AUTHOR[0]._asdict() | {"time": "yesterday"}]}},
        {"predicate": {"approvals": [AUTHOR[0]._asdict() | {"name": 7}]}},
    ],
)
def test_another_form_is_refused(change):
    """Even a good signature over another kind of statement is no release."""
    good = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "a", "digest": {"sha256": "a" * 64}}],
        "predicateType": "https://ranloop.org/release/v1",
        "predicate": {"approvals": [AUTHOR[0]._asdict()]},
    }
    parse_statement(Envelope(TYPE, canonical_json(good), ()))
    with pytest.raises(DataError, match="statement"):
        parse_statement(Envelope(TYPE, canonical_json(good | change), ()))


def test_a_file_named_twice_is_refused():
    """Two digests for one name leave open which file was approved."""
    subject = {"name": "a", "digest": {"sha256": "a" * 64}}
    data = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [subject, subject | {"digest": {"sha256": "b" * 64}}],
        "predicateType": "https://ranloop.org/release/v1",
        "predicate": {"approvals": [AUTHOR[0]._asdict()]},
    }
    with pytest.raises(DataError, match="twice"):
        parse_statement(Envelope(TYPE, canonical_json(data), ()))


def test_another_payload_type_is_refused():
    """The type is part of what is signed."""
    with pytest.raises(DataError, match="another kind"):
        parse_statement(signed(AUTHOR)._replace(payload_type="text/plain"))


@pytest.mark.parametrize("payload", [b'{"a": 1}', b'{"a":1,"a":1}', b"[", b"[" * 99999])
def test_a_loose_spelling_is_refused(payload):
    """Spaces, a key twice and deep nesting have no place in a statement."""
    with pytest.raises(DataError, match=r"JSON|spelled"):
        parse_statement(Envelope(TYPE, payload, ()))


def test_the_predicate_says_what_a_reader_must_know(small):
    """Prompt, engine, protocol, cohorts, gates, override and head, all by digest."""
    predicate = predicate_of(typed(small.facts))
    assert predicate["prompt"]["digest"] == small.facts["release"]["digest"]
    assert [one["verdict"] for one in predicate["gates"]] == ["PASS", "PASS"]
    assert predicate["ledger"] == small.facts["ledger"]
    assert predicate["override"] == ""

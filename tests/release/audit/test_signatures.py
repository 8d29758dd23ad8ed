"""Signatures of entries against the keys that were valid when they were made."""

import base64
from dataclasses import replace

import pytest

from loop.core.check_findings import broken, note, warning
from loop.core.ledger import Actor
from loop.release.audit.signatures import check_signatures, find_keys
from loop.release.keys import make_key, public_key_path, revoke_key, signer_for
from tests.release.audit.scenes import ACTOR, clock, make_history, rehashed


@pytest.fixture
def history(tmp_path):
    """Return a history in which Dr A. Example has a key and has signed with it."""
    made = make_history(tmp_path / "ws")
    admin = Actor(name="Admin", role="admin")
    make_key(made.workspace, ACTOR.name, "approver", admin, now=clock(10))
    sign(made)
    return made


def signer(history):
    """Return the person with their key."""
    return replace(ACTOR, signer=signer_for(history.workspace, ACTOR.name))


def sign(history, *, actor=None, at=11):
    """Append a signed entry."""
    payload = {"alias": f"a{at}", "before": None}
    who = actor or signer(history)
    return history.record("alias_moved", "tiny@v1", payload, actor=who, at=at)


def told(history, severity="broken"):
    """Return what is said of signatures."""
    return [
        one.what
        for one in history.audit().findings
        if one.check == "signatures" and one.severity == severity
    ]


def test_a_signed_entry_holds(history):
    """What the key signed is counted; what came before it is not blamed."""
    assert told(history) == []
    assert told(history, "ok") == ["1 of 8 entries are signed"]
    assert history.audit().signed == 1


def test_a_chain_made_anew_cannot_be_signed_anew(history):
    """Whoever rewrites the ledger has the hashes, and not the key."""
    entries = history.entries()
    entries[0] = replace(entries[0], reason="another reason")
    history.write(rehashed(entries, 1))
    audit = history.audit()
    assert audit.first_break is None
    assert ["was not made with the key" in what for what in told(history)] == [True]


def test_a_signature_taken_off_is_missed(history):
    """Stripping the signature and hashing anew leaves an entry that should have one."""
    sign(history, at=12)
    entries = history.entries()
    entries[8] = replace(entries[8], keyid="", signature="")
    history.write(rehashed(entries, 9))
    assert told(history) == []
    (what,) = told(history, "warning")
    assert "entry 9 is not signed, although Dr A. Example has a key" in what


def test_a_key_of_somebody_else_does_not_speak_for_them(history):
    """A signature must be of the person the entry names."""
    sign(history, actor=replace(signer(history), name="Dr B"), at=12)
    assert ["of Dr A. Example, not of Dr B" in what for what in told(history)] == [True]


def test_a_revoked_key_signs_nothing_more(history):
    """What it signed before stays signed."""
    kept = signer(history)
    who = Actor(name="Admin", role="admin")
    revoke_key(history.workspace, kept.signer.keyid, who, "lost", now=clock(12))
    assert told(history) == []
    sign(history, actor=kept, at=13)
    assert ["which was revoked at" in what for what in told(history)] == [True]


def test_a_key_that_no_entry_adds_is_unknown(history):
    """The files of keys prove nothing by themselves."""
    entries = [one for one in history.entries() if one.action != "key_added"]
    history.write(rehashed(entries, 7))
    assert ["was not recorded by then" in what for what in told(history)] == [True]
    (what,) = told(history, "warning")
    assert "is not a key that the ledger records" in what


def test_an_edited_signature_is_found(history):
    """The signature is no part of the hash: it must be checked by itself."""
    lines = history.lines()
    entry = history.entries()[-1]
    other = base64.b64encode(bytes(64)).decode()
    lines[-1] = lines[-1].replace(entry.signature.encode(), other.encode())
    history.write(lines)
    assert len(told(history)) == 1


def test_a_signature_has_one_spelling(history):
    """Base64 of 64 bytes leaves four bits open: no byte of a ledger may be free."""
    whole = history.lines()
    signature = history.entries()[-1].signature.encode()
    head, last = signature[:-3], signature[-3:-2]
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    place = letters.index(last)
    for other in range(place - place % 16, place - place % 16 + 16):
        if other == place:
            continue
        loose = head + letters[other : other + 1] + b"=="
        assert base64.b64decode(loose) == base64.b64decode(signature)
        history.write([*whole[:-1], whole[-1].replace(signature, loose)])
        assert "is not an entry" in history.audit().first_break.what
    for loose in (b"", b"!!!!", signature + b"!", b"\xc3\xa9"):
        history.write([*whole[:-1], whole[-1].replace(signature, loose)])
        assert "is not an entry" in history.audit().first_break.what


def test_a_public_key_that_says_something_else_than_the_ledger_is_told(history):
    """Another holder, or an earlier date, is believed by whoever verifies with it."""
    (path,) = (history.workspace.releases / "keys").glob("*.json")
    text = path.read_text().replace(ACTOR.name, "Dr B. Other")
    path.write_text(text.replace("2026-01-05", "2025-01-05"))
    assert told(history, "warning") == [
        f"{path.name} differs from the ledger in name, created"
    ]


def test_the_public_key_of_a_revoked_key_is_as_recorded(history):
    """Its file says so too, and nothing is told."""
    (key,) = find_keys(history.entries()).values()
    admin = Actor(name="Admin", role="admin")
    revoke_key(history.workspace, key.keyid, admin, "lost", now=clock(12))
    assert told(history, "warning") == []


def signatures_told(history):
    """Return all that is found of signatures."""
    return check_signatures(history.workspace, tuple(history.entries()))


def unproven(seq, subject, problem, actor="Dr A. Example"):
    """Return what is said of an entry whose signature does not hold."""
    return broken(
        "signatures",
        f"entry {seq}: {problem}",
        where=f"entry {seq}, {subject}",
        implies="Nothing shows that the person named did this.",
        todo=f"Ask {actor} whether it is theirs; compare with a backup.",
        seq=seq,
    )


def test_without_any_signature_that_is_said(tmp_path):
    """Who acted is as written; an empty ledger has nobody who acted."""
    made = make_history(tmp_path / "ws")
    unsigned = note(
        "signatures",
        "no entry is signed: who acted is as written, and not proven",
        todo="Make keys with `ranloop key new NAME`.",
    )
    assert signatures_told(made) == [unsigned]
    assert check_signatures(made.workspace, ()) == []


def test_a_problem_takes_the_place_of_the_count(history):
    """Whoever is told that one fails is not told that the rest is signed."""
    entries = history.entries()
    short, signed = entries[7].keyid[:16], entries[7]
    forged = base64.b64encode(bytes(64)).decode()
    entries[7] = replace(signed, signature=forged)
    assert check_signatures(history.workspace, tuple(entries)) == [
        unproven(
            *(8, "tiny@v1"),
            f"the signature was not made with the key {short} over this entry",
        )
    ]
    entries[7] = replace(signed, hash="é")
    assert check_signatures(history.workspace, tuple(entries)) == [
        unproven(8, "tiny@v1", "is signed, but its hash cannot be signed")
    ]


def test_who_signs_is_asked_about_what_is_not_signed(history):
    """Their own revocation is none of that; after it nobody can sign any more."""
    history.record("alias_moved", "tiny@v2", {"alias": "b", "before": None}, at=12)
    assert signatures_told(history) == [
        warning(
            "signatures",
            "entry 9 is not signed, although Dr A. Example has a key and signs",
            where="entry 9, tiny@v2",
            implies="They acted on a machine without the key, or the entry was written "
            "by someone else, or anew.",
            todo="Ask Dr A. Example whether it is theirs.",
            seq=9,
        )
    ]
    history.write(history.lines()[:8])
    (key,) = find_keys(history.entries()).values()
    revoke_key(history.workspace, key.keyid, signer(history), "lost", now=clock(13))
    history.record("alias_moved", "tiny@v2", {"alias": "b", "before": None}, at=14)
    history.record("alias_moved", "tiny@v2", {"alias": "c", "before": None}, at=15)
    assert signatures_told(history) == [
        note("signatures", "entry 9 revokes a key, and is not signed")
    ]
    revoked = history.entries()[8]
    history.record("key_revoked", key.keyid, revoked.payload, at=16)
    history.record("key_revoked", "f" * 64, revoked.payload, at=16)
    said = "adds or revokes something that is not a key, or did so before"
    assert signatures_told(history)[1:] == [
        unproven(12, key.keyid, said),
        unproven(13, "f" * 64, said),
    ]


def test_a_file_that_is_no_recorded_key_is_told(history):
    """Under a name that no key has, with another's bytes, or none at all."""
    folder = history.workspace.releases / "keys"
    (path,) = folder.glob("*.json")
    whole = path.read_bytes()
    other = make_key(history.workspace, "Dr B", "approver", ACTOR, now=clock(12))
    handed = public_key_path(history.workspace, other)
    foreign = folder / "foreign.json"
    foreign.write_bytes(whole)
    (folder / "notes.txt").write_text("x")

    def strange(name):
        return warning(
            "signatures",
            f"{name} is not a key that the ledger records",
            where=str(folder / name),
            implies="Whoever verifies a release with it trusts someone unknown.",
            todo="Move it away; `ranloop key list` shows the recorded keys.",
        )

    def copies():
        return [one for one in signatures_told(history) if one.where.startswith("/")]

    assert copies() == [strange("foreign.json")]
    foreign.unlink()
    for raw in (b"{}", handed.read_bytes()):
        path.write_bytes(raw)
        assert copies() == [strange(path.name)]
    path.write_bytes(whole.replace(b"approver", b"reviewer"))
    assert copies() == [
        warning(
            "signatures",
            f"{path.name} differs from the ledger in role",
            where=str(path),
            implies="Whoever verifies a release with it takes the key for what it is "
            "not.",
            todo="Restore the file from version control or a backup, and ask who has a "
            "copy.",
        )
    ]

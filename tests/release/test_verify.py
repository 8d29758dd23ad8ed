"""A release holds as it was signed, and no change of it goes unnoticed."""

import os
import resource
import shutil
from collections.abc import Mapping

import pytest

from loop.core.digests import canonical_json
from loop.core.errors import DataError, WriteError
from loop.core.signing import Envelope, format_envelope, parse_envelope
from loop.release import folder as folders
from loop.release.folder import Contents, read_contents, unpacked
from loop.release.release_json import predicate_of
from loop.release.statement import ENVELOPE, sign_release
from loop.release.verify import (
    check_files,
    check_signatures,
    read_signed,
    verify_contents,
    verify_folder,
)
from tests.release.small import (
    APPROVER,
    AUTHOR,
    NAME,
    VERSION,
    make_small,
    person,
    public_key,
    read_files,
    sign,
    typed,
)

STRANGER = person(9, "B. Approver", "approver", "approval")


def broken(small, trusted=None):
    """Return the checks of a release that do not hold."""
    found = verify_folder(small.folder, small.trusted if trusted is None else trusted)
    return [one.check for one in found.findings if not one.holds]


def envelope_of(small) -> Envelope:
    """Return the envelope of a release."""
    return parse_envelope((small.folder / ENVELOPE).read_bytes(), ENVELOPE)


def put(small, envelope: Envelope) -> None:
    """Write another envelope."""
    (small.folder / ENVELOPE).write_bytes(format_envelope(envelope))


def holds_unread(files: Mapping[str, bytes], small) -> bool:
    """Whether envelope, digests and signatures hold, without reading the content."""
    signed, findings = read_signed(files)
    findings.append(check_files(signed.statement, files))
    if all(one.holds for one in findings):
        findings.extend(check_signatures(signed, small.trusted))
    return all(one.holds for one in findings)


def test_a_release_holds_as_it_was_signed(small):
    """Every check is made, every one holds, and both people are named."""
    found = verify_folder(small.folder, small.trusted)
    assert found.holds and not found.broken
    assert found.approvals == (AUTHOR[0], APPROVER[0])
    assert found.facts == typed(small.facts)
    details = " ".join(one.what for one in found.findings)
    assert "A. Author (author), authorship, 2026-03-01T12:00:00Z" in details
    signed = "B. Approver (approver), approval, 2026-03-01T12:00:00Z"
    assert f"{signed}, with a key made 59 days before" in details


def test_it_needs_only_the_folder_and_a_key(small, tmp_path, monkeypatch):
    """No workspace and no ledger beside it: the folder alone on another machine."""
    alone = tmp_path / "elsewhere"
    shutil.copytree(small.folder, alone / NAME)
    shutil.rmtree(tmp_path / "tiny")
    monkeypatch.chdir(alone)
    assert verify_folder(alone / NAME, small.trusted).holds


@pytest.mark.slow
def test_every_bit_of_every_file_is_under_the_signature(small):
    """Each bit of the release flipped, one at a time: all are noticed."""
    files = read_contents(small.folder).files
    assert holds_unread(files, small)
    flipped = 0
    for name, raw in files.items():
        if name == ENVELOPE:
            continue
        for place in range(len(raw)):
            changed = bytearray(raw)
            changed[place] ^= 1 << place % 8
            assert not holds_unread({**files, name: bytes(changed)}, small)
            flipped += 1
    assert flipped > 10_000


@pytest.mark.slow
def test_every_byte_of_the_envelope_matters(small):
    """None of its bits can be another: its JSON is strict, and the ends of base64.

    Two bits of each byte, and where a string ends every one.
    """
    files = read_contents(small.folder).files
    raw = files[ENVELOPE]
    for place in range(len(raw)):
        step = 1 if b'"' in raw[max(place - 4, 0) : place + 5] else 4
        for bit in range(place % step, 8, step):
            changed = bytearray(raw)
            changed[place] ^= 1 << bit
            assert not holds_unread({**files, ENVELOPE: bytes(changed)}, small)


@pytest.mark.slow
def test_a_flipped_byte_breaks_the_whole_verification_and_no_more(small):
    """Each 61st byte through all checks: none of them stumbles, all say no."""
    files = read_contents(small.folder).files
    places = [(name, place) for name in files for place in range(len(files[name]))]
    for name, place in places[::61]:
        changed = bytearray(files[name])
        changed[place] ^= 0xFF
        spoilt = Contents({**files, name: bytes(changed)}, ())
        assert not verify_contents(spoilt, small.trusted).holds


def test_a_changed_file_is_named_and_all_else_still_checked(small):
    """One broken check does not hide the others."""
    card = small.folder / "card.md"
    card.write_bytes(card.read_bytes() + b" ")
    found = verify_folder(small.folder, small.trusted)
    (finding,) = found.broken
    assert finding.check == "files"
    assert "card.md was changed after it was signed" in finding.what
    assert len(found.findings) == 19


def test_without_a_trusted_key_nothing_vouches_for_it(small):
    """All else is checked; a signature by somebody unknown proves nothing."""
    names = [f"approval {one.keyid[:16]}" for one in (AUTHOR[0], APPROVER[0])]
    assert broken(small, {}) == ["vouched for", *names]


def test_each_listed_approval_must_be_trusted(small):
    """Two people approved: knowing one of them is not enough."""
    only = {AUTHOR[0].keyid: public_key(AUTHOR)}
    assert broken(small, only) == [f"approval {APPROVER[0].keyid[:16]}"]


def test_signed_again_with_another_key_is_not_vouched_for(small):
    """Whoever rewrites a release can sign it, but not as somebody you trust."""
    sign(small.folder, read_files(small.folder), small.facts, [STRANGER])
    assert "vouched for" in broken(small)


def test_a_stranger_cannot_take_the_id_of_a_trusted_key(small):
    """The key id is a hint: the signature is checked with the key that is trusted."""
    statement = sign_release(
        read_files(small.folder), predicate_of(typed(small.facts)), [STRANGER]
    )
    forged = parse_envelope(statement, ENVELOPE)
    payload = forged.payload.replace(
        STRANGER[0].keyid.encode(), APPROVER[0].keyid.encode()
    )
    signature = forged.signatures[0]._replace(keyid=APPROVER[0].keyid)
    put(small, forged._replace(payload=payload, signatures=(signature,)))
    assert broken(small) == [f"approval {APPROVER[0].keyid[:16]}"]


def test_a_key_under_another_id_is_no_key(small):
    """A list of keys that gives a stranger's key a trusted id is not believed."""
    other = small.trusted | {APPROVER[0].keyid: public_key(STRANGER)}
    assert broken(small, other) == [f"approval {APPROVER[0].keyid[:16]}"]


def test_a_stripped_signature_is_missed(small):
    """The statement lists who signed, so none can be taken away."""
    whole = envelope_of(small)
    for kept in whole.signatures:
        put(small, whole._replace(signatures=(kept,)))
        assert "signatures" in broken(small)
    put(small, whole._replace(signatures=()))
    assert "signatures" in broken(small)


def test_an_added_signature_is_not_listed(small):
    """Nobody joins the approvals afterwards, not even with a trusted key."""
    whole = envelope_of(small)
    other = sign_release(
        read_files(small.folder), predicate_of(typed(small.facts)), [STRANGER]
    )
    extra = parse_envelope(other, ENVELOPE).signatures
    put(small, whole._replace(signatures=(*whole.signatures, *extra)))
    trusted = small.trusted | {STRANGER[0].keyid: public_key(STRANGER)}
    assert broken(small, trusted) == ["signatures"]


def test_swapped_signatures_are_noticed(small):
    """Each signature belongs to its key, and they stand in the order listed."""
    whole = envelope_of(small)
    first, second = whole.signatures
    put(small, whole._replace(signatures=(second, first)))
    assert broken(small) == ["signatures"]
    crossed = (first._replace(sig=second.sig), second._replace(sig=first.sig))
    put(small, whole._replace(signatures=crossed))
    names = [f"approval {one.keyid[:16]}" for one in (AUTHOR[0], APPROVER[0])]
    assert broken(small) == names


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"revoked": "2026-04-01T00:00:00Z"}, "was revoked"),
        ({"revoked": "2026-02-01T00:00:00Z"}, "was revoked"),
        ({"valid_to": "2026-03-01T11:59:59Z"}, "had run out"),
        ({"valid_to": "2026-03-01T12:00:00Z"}, "had run out"),
        ({"created": "2026-03-01T12:00:01Z"}, "was made after it"),
        ({"name": "C. Other"}, "is that of C. Other"),
        ({"role": "reader"}, "(reader)"),
    ],
)
def test_a_key_vouches_only_for_what_it_is_trusted_for(small, change, said):
    """Revoked, run out, made later, or of somebody else: the approval does not hold."""
    key = small.trusted[APPROVER[0].keyid]._replace(**change)
    found = verify_folder(small.folder, {**small.trusted, key.keyid: key})
    (finding,) = found.broken
    assert finding.check == f"approval {key.keyid[:16]}"
    assert said in finding.what


def test_swapped_files_are_noticed(small):
    """Two whole and signed files under each other's name are two changed files."""
    first, second = small.folder / "rendered/user.txt", small.folder / "card.md"
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert {"files", "rendered"} <= set(broken(small))


@pytest.mark.parametrize("name", ["card.md", "ledger.jsonl", "release.json", ENVELOPE])
def test_a_missing_file_is_named(small, name):
    """A release is whole or none."""
    (small.folder / name).unlink()
    found = verify_folder(small.folder, small.trusted)
    assert not found.holds
    assert f"{name} is missing" in found.findings[0].what


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        ".hidden",
        "prompt/extra.jinja",
        "rendered/../card.md.bak",
        "rendered/UPPER.system.txt",
        "release.js\u043en",
        "card.md\u200b",
        "card.md ",
        "prompt\\prompt.yaml",
        "new\nline",
        "esc\x1b[31m",
    ],
)
def test_a_file_that_does_not_belong_is_named(small, name):
    """Also names that look like known ones, hold control characters or climb."""
    (small.folder / name).write_bytes(b"x")
    found = verify_folder(small.folder, small.trusted)
    (finding,) = found.broken
    assert finding.check == "names"
    assert "does not belong to a release" in finding.what
    assert finding.what.isascii() and finding.what.isprintable()


def test_a_file_name_that_is_not_utf8_is_named(small):
    """A name of raw bytes is printed as such."""
    (small.folder / os.fsdecode(b"card\xff.md")).write_bytes(b"x")
    (finding,) = verify_folder(small.folder, small.trusted).broken
    assert "does not belong" in finding.what


def test_a_further_message_that_nobody_rendered_is_noticed(small):
    """A known form of name is not enough: the prompt decides which there are."""
    (small.folder / "rendered/fracture.system.txt").write_bytes(b"x")
    assert broken(small) == ["files", "rendered"]


def test_a_link_is_not_followed(small, tmp_path):
    """A link to the very same bytes is still not a file of the release."""
    card = small.folder / "card.md"
    shutil.move(card, tmp_path / "card.md")
    card.symlink_to(tmp_path / "card.md")
    found = verify_folder(small.folder, small.trusted)
    assert "card.md is not a regular file" in found.findings[0].what


def test_a_linked_folder_is_not_followed(small, tmp_path):
    """Neither below the release nor as the release itself."""
    shutil.move(small.folder / "prompt", tmp_path / "prompt")
    (small.folder / "prompt").symlink_to(tmp_path / "prompt")
    assert "prompt is not a folder" in (
        verify_folder(small.folder, small.trusted).findings[0].what
    )
    link = tmp_path / "link"
    link.symlink_to(small.folder)
    with pytest.raises(DataError, match=r"is a link, .* Name the folder that it leads"):
        verify_folder(link, small.trusted)


def test_a_folder_is_called_like_a_release_in_any_letters(small):
    """Where letters make no difference, ``TINY-V2`` is what ``tiny-v2`` opens."""
    folder = small.folder.with_name(NAME.upper())
    small.folder.rename(folder)
    assert verify_folder(folder, small.trusted).holds
    other = folder.with_name("TINY-V2")
    folder.rename(other)
    (found,) = verify_folder(other, small.trusted).broken
    assert found.what.startswith("it is tiny-v1, in a folder called TINY-V2")


def test_converted_line_ends_are_named(small):
    """The usual reason why a copy of a genuine release does not hold."""
    card = small.folder / "card.md"
    card.write_bytes(card.read_bytes().replace(b"\n", b"\r\n"))
    (found,) = verify_folder(small.folder, small.trusted).broken
    assert found.what == (
        "card.md was changed after it was signed, but only its line ends"
    )


def test_a_pipe_does_not_keep_it_waiting(small):
    """Opening a FIFO would block for ever."""
    (small.folder / "card.md").unlink()
    os.mkfifo(small.folder / "card.md")
    found = verify_folder(small.folder, small.trusted)
    assert "card.md is not a regular file" in found.findings[0].what


def test_a_huge_file_is_not_read(small):
    """A sparse file of a terabyte is named, not loaded."""
    with (small.folder / "card.md").open("r+b") as stream:
        stream.truncate(2**40)
    found = verify_folder(small.folder, small.trusted)
    assert "card.md is larger than 64 MiB" in found.findings[0].what


def test_many_large_files_are_not_read(small, monkeypatch):
    """All files together have an end too."""
    monkeypatch.setattr(folders, "IN_ALL", 4096)
    found = verify_folder(small.folder, small.trusted)
    assert "is larger than 0 MiB" in found.findings[0].what


def test_a_folder_of_thousands_is_not_listed(small, monkeypatch):
    """What is said of a folder stays short."""
    monkeypatch.setattr(folders, "MOST", 20)
    for number in range(40):
        (small.folder / f"{number}.txt").write_bytes(b"")
    (names, *_) = verify_folder(small.folder, small.trusted).broken
    assert len(names.what) < 500


@pytest.mark.parametrize("limit", ["LARGEST", "IN_ALL", "MOST"])
def test_a_release_of_just_the_most_is_read(small, monkeypatch, limit):
    """Each limit is what a release may have; with one less it has too much."""
    whole = read_contents(small.folder)
    sizes = [len(raw) for raw in whole.files.values()]
    entries = len(list(small.folder.iterdir()))
    most = {"LARGEST": max(sizes), "IN_ALL": sum(sizes), "MOST": entries}[limit]
    monkeypatch.setattr(folders, limit, most)
    assert read_contents(small.folder) == whole
    assert whole.problems == ()
    monkeypatch.setattr(folders, limit, most - 1)
    assert any(
        " is larger than " in one or f"more than {most - 1} entries" in one
        for one in read_contents(small.folder).problems
    )


def test_a_release_that_is_no_folder_is_refused(tmp_path):
    """The message says what to name."""
    with pytest.raises(DataError, match=r"Name the folder that holds release\.dsse"):
        verify_folder(tmp_path / "none", {})


def test_an_empty_folder_breaks_every_check(tmp_path):
    """Nothing holds by default."""
    found = verify_folder(tmp_path, {})
    assert not any(one.holds for one in found.findings)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw.replace(b"{", b'{"format":"x",', 1),
        lambda raw: raw.replace(b",", b", ", 1),
        lambda raw: raw + b"\n",
        lambda raw: raw[:-1],
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.replace(b'"late":false', b'"late":NaN'),
        lambda raw: raw.replace(b'"late":false', b'"late":0'),
        lambda raw: raw.replace(b'"seq":5', b'"seq":5.0'),
        lambda raw: raw.replace(b'"cases":62', b'"cases":' + b"9" * 5000, 1),
        lambda raw: raw.replace(b'"seq":5', b'"seq":5,"z":1'),
        lambda raw: b"[" * 100_000 + b"\n",
    ],
)
def test_loose_facts_are_refused_even_signed(small, spoil):
    """A key twice, spaces, NaN, another kind of number: no second reading exists."""
    files = read_files(small.folder)
    honest = files["release.json"]
    files["release.json"] = spoil(honest)
    assert files["release.json"] != honest
    sign(small.folder, files, small.facts, [AUTHOR, APPROVER])
    assert "release.json" in broken(small)


def test_a_statement_about_another_release_is_refused(small):
    """The statement and release.json must tell the same, both signed."""
    other = canonical_json(small.facts).replace(b'"rules"', b'"other"')
    assert other != canonical_json(small.facts)
    facts = {**small.facts, "engine": {**small.facts["engine"], "name": "other"}}
    sign(small.folder, read_files(small.folder), facts, [AUTHOR, APPROVER])
    assert broken(small) == ["agreement"]


def test_whoever_froze_it_must_have_signed(tmp_path):
    """An approver named in the facts who did not sign has approved nothing."""
    alone = make_small(tmp_path, signers=[AUTHOR])
    assert broken(alone) == ["agreement"]


def test_without_room_for_what_is_checked_the_disk_is_named():
    """A release says nothing of the machine that checks it: no traceback either."""
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, free[1]))
    try:
        with (
            pytest.raises(WriteError, match="File too large"),
            unpacked({"ledger.jsonl": b"{}"}, "ledger.jsonl"),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)


def test_roles_other_than_those_in_the_ledger_are_found(tmp_path):
    """Signed or not, verdicts are not passed off as those of reviewers."""
    past = {
        "ref": VERSION.ref,
        "digest": VERSION.digest,
        **dict.fromkeys(("time", "author", "why"), ""),
        "verdicts": 2,
        "status": "committed",
        "macro_f1": None,
    }
    assert not broken(make_small(tmp_path / "a", history=[past]))
    past["verdict_roles"] = {"reviewer": 2}
    small = make_small(tmp_path / "b", history=[past])
    assert broken(small) == ["history"]
    (found,) = (
        one
        for one in verify_folder(small.folder, small.trusted).findings
        if not one.holds
    )
    assert f"gave the verdicts of {VERSION.ref} are not those" in found.what


def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path):
    """By its name, with the reason; nothing of it counts as there."""
    problems: list[str] = []
    assert folders._entries(tmp_path / "gone", problems) == []
    assert problems == ["gone cannot be read: No such file or directory"]

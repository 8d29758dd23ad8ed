"""A release holds as it was signed, and no change of it goes unnoticed."""

import json
import os
import resource
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from loop.core.check_findings import Finding
from loop.core.digests import canonical_json, digest_json
from loop.core.errors import DataError, WriteError
from loop.core.ledger import make_entry
from loop.core.signing import Envelope, format_envelope, parse_envelope
from loop.evaluate.gates import GateVerdict
from loop.release import folder as folders
from loop.release.folder import Contents, read_contents, unpacked
from loop.release.release_json import predicate_of
from loop.release.statement import ENVELOPE, sign_release
from loop.release.verify import (
    _age,
    _history_problems,
    _judge_problems,
    _left_out_as_recorded,
    check_chain,
    check_files,
    check_name,
    check_signatures,
    read_signed,
    verify_contents,
    verify_folder,
)
from tests.release.audit.scenes import entries_of
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


def test_all_that_is_checked_of_an_honest_release_is_said(small):
    """Check by check, with what was counted."""
    found = verify_folder(small.folder, small.trusted)
    files = len(read_contents(small.folder).files)
    who, other = (one[0].keyid[:16] for one in (AUTHOR, APPROVER))
    said = [(one.check, one.what) for one in found.findings]
    assert said[:8] == [
        ("names", f"{files} files, no other"),
        ("envelope", "signatures: 2"),
        ("statement", f"names {files - 1} files"),
        ("signatures", "2, each listed"),
        ("vouched for", "2 of 2 keys are trusted"),
        (
            f"approval {who}",
            "A. Author (author), authorship, 2026-03-01T12:00:00Z, with a key made 59 "
            "days before",
        ),
        (
            f"approval {other}",
            "B. Approver (approver), approval, 2026-03-01T12:00:00Z, with a key made "
            "59 days before",
        ),
        ("files", f"{files - 1} files have their digests"),
    ]
    assert ("ledger", "5 entries, unbroken up to the head named") in said
    assert ("history", "the ledger holds what release.json says of it") in said
    assert said[-1] == ("name", "it is tiny-v1, as its folder is called")
    # Only one of them is known: that is said, too.
    found = verify_folder(small.folder, {AUTHOR[0].keyid: public_key(AUTHOR)})
    said = {one.check: one.what for one in found.findings}
    assert said["vouched for"] == "1 of 2 keys are trusted"
    assert said[f"approval {other}"] == (
        f"B. Approver (approver): the key {other} is not one that you trust"
    )
    found = verify_folder(small.folder, {})
    assert {one.check: one.what for one in found.findings}["vouched for"] == (
        f"by nobody you trust; name a public key with --key (it says {who}, {other})"
    )


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (0, "0 seconds"),
        (1, "1 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "119 minutes"),
        (7_200, "2 hours"),
        (172_799, "47 hours"),
        (172_800, "2 days"),
        (172_800 + 86_399, "2 days"),
    ],
)
def test_the_age_of_a_key_is_told_in_its_largest_unit(seconds, age):
    """From two of it on, and never rounded up."""
    made = datetime(2026, 1, 1, tzinfo=UTC)
    signed = made + timedelta(seconds=seconds)
    assert _age(made.isoformat(), signed.isoformat()) == age


def test_a_time_that_is_none_has_no_age():
    """Nor has one without a zone beside one with."""
    assert _age("soon", "2026-01-01T00:00:00Z") == ""
    assert _age("2026-01-01T00:00:00", "2026-01-01T00:00:00Z") == ""


def test_every_fault_of_a_key_is_said(small):
    """One does not hide the others."""
    keyid = APPROVER[0].keyid
    key = small.trusted[keyid]._replace(
        name="C. Other",
        public=public_key(STRANGER).public,
        revoked="2026-02-01T00:00:00Z",
        created="2026-03-01T12:00:01Z",
        valid_to="2026-03-01T12:00:00Z",
    )
    found = verify_folder(small.folder, {**small.trusted, keyid: key})
    (one,) = found.broken
    problems = (
        "the trusted key has another id than it is listed under",
        "the key is that of C. Other (approver)",
        "the key was revoked, at 2026-02-01T00:00:00Z; whether the release is older, "
        "only the ledger of its workspace can tell",
        "the key was made after it, at 2026-03-01T12:00:01Z",
        "the key had run out, at 2026-03-01T12:00:00Z",
    )
    told = "; ".join(f"B. Approver (approver): {problem}" for problem in problems)
    assert one.what == f"{told}; and 1 more"


def test_each_file_that_differs_is_named(small):
    """Missing first, then changed, by name; the envelope is not among them."""
    signed, _ = read_signed(read_contents(small.folder).files)
    files = dict(read_contents(small.folder).files)
    del files["schema.json"], files["card.html"]
    files["card.md"] += b"x"
    files["extra.txt"] = b"x"
    files["prompt/user.jinja"] = files["prompt/user.jinja"].replace(b"\n", b"\r\n")
    assert check_files(signed.statement, files) == Finding(
        check="files",
        severity="broken",
        what="card.html is named in the statement and missing; schema.json is named in "
        "the statement and missing; card.md was changed after it was signed; extra.txt "
        "is not named in the statement; prompt/user.jinja was changed after it was "
        "signed, but only its line ends",
    )
    assert check_files(None, files).what == (
        "not checked: there is no statement to go by"
    )


@pytest.mark.parametrize(
    ("expect", "folder", "holds", "what"),
    [
        ("tiny-v1", "other-v1", True, "it is tiny-v1, as expected"),
        ("tiny-v2", "tiny-v1", False, "it is tiny-v1, not the tiny-v2 expected"),
        (None, "tiny-v1", True, "it is tiny-v1, as its folder is called"),
        (None, "Download", True, "it is tiny-v1; the folder is called otherwise"),
        (
            None,
            "tiny-v2",
            False,
            "it is tiny-v1, in a folder called tiny-v2. Ask whoever gave it to you for "
            "tiny-v2; if it is tiny-v1 that you want, say --expect tiny-v1",
        ),
    ],
)
def test_the_release_is_the_one_asked_for(small, expect, folder, holds, what):
    """By name, or by the folder where nobody gave a name."""
    found = check_name(typed(small.facts), expect, folder)
    assert (found.check, found.holds, found.what) == ("name", holds, what)
    unread = check_name(None, expect, folder)
    assert (unread.holds, unread.what) == (
        False,
        "not checked: release.json cannot be read",
    )


def test_without_facts_every_check_that_needs_them_is_told(small):
    """The table too, by the name of the file that is there."""
    files = dict(read_contents(small.folder).files)
    files["release.json"] = b"x"
    unsure = "not checked: release.json cannot be read"
    rest = ("agreement", "prompt", "rendered", "ledger", "history", "numbers")
    for table, given in (
        ("evaluation.csv", files),
        ("rows.csv", {**files, "rows.csv": b""}),
    ):
        found = verify_contents(Contents(given, ()), small.trusted)
        assert found.facts is None
        said = [(one.check, one.what) for one in found.findings[9:]]
        assert said == [(check, unsure) for check in (*rest, table)]


def test_without_an_envelope_nobody_vouches(small):
    """And what is not signed is said to be nowhere."""
    files = dict(read_contents(small.folder).files)
    del files[ENVELOPE]
    found = verify_contents(Contents(files, ()), small.trusted)
    assert [(one.check, one.what) for one in found.findings[1:5]] == [
        ("envelope", "release.dsse.json is missing: nothing is signed"),
        ("signatures", "not checked: there is no statement"),
        ("vouched for", "by nobody"),
        ("files", "not checked: there is no statement to go by"),
    ]
    assert (found.approvals, found.statement) == ((), None)


def chain_of(small, raw, **parts):
    """Return what is said of another ledger in the release."""
    facts = typed({**small.facts, **parts})
    found = check_chain({"ledger.jsonl": raw}, facts, small.trusted)
    return [(one.check, one.holds, one.what) for one in found]


def test_a_ledger_ends_where_the_release_says(small):
    """Cut off, empty, or with another head: each is said."""
    raw = (small.folder / "ledger.jsonl").read_bytes()
    lines = raw.splitlines(keepends=True)
    head, before = (json.loads(one) for one in (lines[-1], lines[-2]))
    assert chain_of(small, raw)[0] == (
        "ledger",
        True,
        "5 entries, unbroken up to the head named",
    )
    assert chain_of(small, b"".join(lines[:-1]))[0] == (
        "ledger",
        False,
        f"it ends with entry 4 ({before['hash'][:12]}), the release names entry 5 "
        f"({head['hash'][:12]})",
    )
    gone = ("ledger", False, "it is missing, empty or cut off")
    assert chain_of(small, b"")[0] == gone
    assert chain_of(small, b"not a line\n")[1] == (
        "history",
        False,
        "not checked: the ledger cannot be read",
    )
    other = {"seq": 5, "head": "f" * 64}
    assert chain_of(small, raw, ledger=other)[0] == (
        "ledger",
        False,
        f"it ends with entry 5 ({head['hash'][:12]}), the release names entry 5 "
        f"({'f' * 12})",
    )


def history_of(small, change, **parts):
    """Return what of the history is not as told, after `change` of its entries."""
    facts = typed({**small.facts, **parts})
    lines = (small.folder / "ledger.jsonl").read_bytes().splitlines()
    entries = change([make_entry(json.loads(one)) for one in lines])
    return list(_history_problems(entries, facts, read_contents(small.folder).files))


def with_payload(action, **payload):
    """Return a change of the payload of all entries with an action."""

    def change(entries):
        return [
            replace(one, payload={**one.payload, **payload})
            if one.action == action
            else one
            for one in entries
        ]

    return change


def without(*actions):
    """Return a change that takes entries out."""
    return lambda entries: [one for one in entries if one.action not in actions]


def differing(listed, recorded):
    """Return what is said of openings that are not those of the ledger."""
    counts = f"({listed} listed, {recorded} recorded)"
    return f"the openings of the holdout are not those of the ledger {counts}"


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (lambda entries: entries, []),
        (without("protocol_set"), ["the protocol is not registered in the ledger"]),
        (
            with_payload("protocol_set", digest="f" * 64),
            ["the protocol is not registered in the ledger"],
        ),
        (
            with_payload("protocol_set", rule="other", kappa="0.1", accuracy="0.2"),
            [
                f"the protocol was registered with another {name}"
                for name in ("rule", "accuracy", "kappa")
            ],
        ),
        (
            with_payload("protocol_set", no_finding="x", uncertain_answers="wrong"),
            [
                "the ledger registers another policy for uncertain answers",
                "the protocol was registered with another no_finding",
            ],
        ),
        (
            with_payload("protocol_set", judging="None None (None)"),
            [],
        ),
        (
            with_payload("protocol_set", judging="tau-b 0.5 (lower)"),
            ["the protocol was registered with another claim of judges"],
        ),
        (without("draft_committed"), ["tiny@v1 was not committed with this digest"]),
        (
            with_payload("draft_committed", digest="f" * 64),
            ["tiny@v1 was not committed with this digest"],
        ),
        (
            with_payload(
                "draft_committed",
                files={"user.jinja": "f" * 64, "prompt.yaml": "e" * 64, "x": "f"},
            ),
            [
                "prompt/prompt.yaml is not the file that was committed",
                "prompt/user.jinja is not the file that was committed",
            ],
        ),
        (with_payload("draft_committed", files={}), []),
        (
            without("gate_decided"),
            [
                "the evaluation on dev is not in the ledger",
                "the evaluation on locked is not in the ledger",
            ],
        ),
        (
            lambda entries: [one for one in entries if one.seq != 3],
            ["the evaluation on dev is not in the ledger"],
        ),
        (
            with_payload("gate_decided", verdict="FAIL", counts_digest="f" * 64),
            [
                f"the evaluation on {name} has other counts or another verdict in the "
                "ledger"
                for name in ("dev", "locked")
            ],
        ),
        (
            with_payload("gate_decided", counts_digest="f" * 64),
            [
                f"the evaluation on {name} has other counts or another verdict in the "
                "ledger"
                for name in ("dev", "locked")
            ],
        ),
        # One entry that says so is enough, wherever it stands.
        (
            lambda entries: [
                *with_payload("gate_decided", verdict="FAIL")(entries),
                *entries,
            ],
            [differing(1, 2)],
        ),
        (
            without("holdout_opened"),
            [differing(1, 0)],
        ),
        (
            lambda entries: [
                replace(one, reason="other") if one.action == "holdout_opened" else one
                for one in entries
            ],
            [differing(1, 1)],
        ),
        *(
            (
                with_payload("holdout_opened", **other),
                [differing(1, 1)],
            )
            for other in ({"prompt": "tiny@v2"}, {"number": 2}, {"budget": 2})
        ),
        (
            with_payload("holdout_opened", cohort="dev", cohort_digest="f" * 64),
            [differing(1, 0)],
        ),
        (
            lambda entries: [
                replace(one, time="2026-01-01T00:00:00Z")
                if one.action == "protocol_set"
                else one
                for one in entries
            ],
            [
                "the protocol was registered at 2026-01-01T00:00:00Z, not when it is "
                "said to be"
            ],
        ),
    ],
)
def test_the_ledger_holds_what_the_release_says(small, change, problems):
    """Protocol, commit, gates and openings, each on its own."""
    assert history_of(small, change) == problems


def test_the_first_registration_of_a_protocol_is_its_time(small):
    """A later one changes nothing, whatever it says."""

    def again(entries):
        later = replace(entries[0], time="2026-02-01T00:00:00Z", seq=9)
        other = replace(entries[0], payload={"digest": "f" * 64}, seq=0)
        return [other, *entries, later]

    assert history_of(small, again) == []


def test_past_versions_are_held_against_their_commits(small):
    """Those that the ledger knows; a draft stands in no commit."""
    past = {
        **dict.fromkeys(("time", "author", "why"), ""),
        "verdicts": 2,
        "status": "committed",
        "macro_f1": None,
    }
    told = [
        {**past, "ref": "tiny@draft:x", "digest": "e" * 64},
        {**past, "ref": VERSION.ref, "digest": "f" * 64},
        {
            **past,
            "ref": VERSION.ref,
            "digest": VERSION.digest,
            "verdict_roles": {"editor": 1},
        },
        {
            **past,
            "ref": "tiny@v9",
            "digest": "e" * 64,
            "verdict_roles": {"editor": 1},
        },
    ]
    roles = "the roles of those who gave the verdicts of {} are not those in the ledger"
    assert history_of(small, lambda entries: entries, history=told) == [
        "tiny@v1 was committed with another digest",
        roles.format("tiny@v1"),
        roles.format("tiny@v9"),
    ]
    known = with_payload(
        "draft_committed", verdicts=["a", "b"], verdict_roles={"editor": 1}
    )
    assert history_of(small, known, history=[told[0], told[2]]) == []


def test_what_it_supersedes_was_frozen_before(small):
    """By the digest of its statement; any other entry with it is none."""
    older = {"name": "tiny-v0", "statement_sha256": "a" * 64, "ref": "tiny@v0"}
    said = ["the release it supersedes is not in the ledger"]

    def add(action, statement):
        return lambda entries: [
            *entries,
            replace(entries[0], action=action, payload={"statement_sha256": statement}),
        ]

    assert history_of(small, add("frozen", "a" * 64), supersedes=older) == []
    assert history_of(small, add("frozen", "b" * 64), supersedes=older) == said
    assert history_of(small, add("withdrawn", "a" * 64), supersedes=older) == said


def judge_entries(*payloads):
    """Return entries of evaluations of a judge, and one of something else."""
    told = {
        "run": "r1",
        "cohort": "rp",
        "ratings_digest": "a",
        "rows_digest": "b",
        "counts_digest": "c",
        "score": "own",
        "verdict": "PASS",
        "more": 1,
    }
    return [
        SimpleNamespace(action=action, payload={**told, **payload})
        for action, payload in payloads
    ]


@pytest.mark.parametrize(
    ("payloads", "problem"),
    [
        ([{}], ""),
        ([], "is not in the ledger"),
        ([{"run": "r2"}], "is not in the ledger"),
        ([{"action": "evaluated"}], "is not in the ledger"),
        *(
            ([{name: "x"}], "has other rows, counts or another verdict in the ledger")
            for name in (
                *("cohort", "ratings_digest", "rows_digest"),
                *("counts_digest", "score", "verdict"),
            )
        ),
        ([{"verdict": "FAIL"}, {}, {"score": "x"}], ""),
    ],
)
def test_a_judges_evaluation_is_the_recorded_one(payloads, problem):
    """In all that it rests on; another run of it says nothing."""
    made = [(one.pop("action", "judge_evaluated"), one) for one in map(dict, payloads)]
    other = {"run": "r9", "cohort": "held", "ratings_digest": "z"}
    evaluations = [
        SimpleNamespace(
            cohort=cohort,
            run=run,
            rows_digest="b",
            counts_digest="c",
            verdict=GateVerdict.PASS,
        )
        for cohort, run in (("rp", "r1"), ("held", "r9"))
    ]
    facts = SimpleNamespace(
        cohorts=[
            SimpleNamespace(name="held", ratings_digest="z"),
            SimpleNamespace(name="rp", ratings_digest="a"),
        ],
        evaluations=evaluations,
        score=SimpleNamespace(name="own"),
        ensembles=[],
    )
    found = list(_judge_problems(judge_entries(*made), facts))
    alone = f"the evaluation on rp {problem}" if problem else ""
    away = "the evaluation on held is not in the ledger"
    assert found == [one for one in (alone, away) if one]
    whole = judge_entries(*made, ("judge_evaluated", other))
    assert list(_judge_problems(whole, facts)) == ([alone] if alone else [])


def left_out(*entries, reasons=None, out=("mass",)):
    """Return whether labels that nobody can judge were recorded before the gate."""
    evaluation = SimpleNamespace(
        run="r1",
        cohort="dev",
        labels=[
            SimpleNamespace(label=name, comparable=name not in out)
            for name in ("edema", "mass")
        ],
    )
    why = {"mass": "not coded"} if reasons is None else reasons
    cohorts = [
        SimpleNamespace(name="other", not_comparable={"edema": "x"}),
        SimpleNamespace(name="dev", not_comparable=why),
    ]
    facts = SimpleNamespace(cohorts=cohorts)
    return _left_out_as_recorded(entries_of(*entries), facts, evaluation)


IMPORT = ("cohort_added", "dev", {"not_comparable": "mass"})
PLAIN = ("cohort_added", "dev", {})
GATE = (
    "gate_decided",
    "tiny@v1",
    {"run": "r1", "labels": {"edema": "PASS", "mass": "NOT COMPARABLE"}},
)


def gate(**changes):
    """Return what is recorded of another gate."""
    return (*GATE[:2], GATE[2] | changes)


@pytest.mark.parametrize(
    ("entries", "recorded"),
    [
        ([IMPORT, GATE], True),
        ([GATE], False),
        ([GATE, IMPORT], False),
        ([PLAIN, GATE], False),
        ([IMPORT, PLAIN, GATE], False),
        ([("cohort_added", "other", {"not_comparable": "mass"}), GATE], False),
        ([IMPORT], False),
        ([IMPORT, gate(run="r2")], False),
        ([IMPORT, ("evaluated", *GATE[1:])], False),
        # A gate that judged the label all the same.
        ([IMPORT, gate(labels={"edema": "PASS", "mass": "FAIL"})], False),
        # One gate of the run that fits is enough.
        ([PLAIN, GATE, IMPORT, gate(run="r2"), GATE], True),
        ([IMPORT, gate(labels={"mass": "FAIL"}), GATE], True),
        # An early entry says nothing of single labels.
        ([IMPORT, gate(labels="none")], True),
    ],
)
def test_labels_are_left_out_for_reasons_that_were_given_before(entries, recorded):
    """By the import of the cohort that the gate was on."""
    assert left_out(*entries) is recorded


def test_the_very_reasons_of_the_import_count():
    """Where it recorded them; without any, nothing is left out."""
    said = {"not_comparable": "mass"}
    said["not_comparable_sha256"] = digest_json({"mass": "not coded"})
    told = ("cohort_added", "dev", said)
    assert left_out(told, GATE)
    assert not left_out(told, GATE, reasons={"mass": "too rare"})
    assert not left_out(IMPORT, GATE, reasons={"mass": "x", "edema": "y"})
    assert left_out(reasons={})


def test_an_ensemble_is_released_as_it_was_fitted():
    """By its name, its number and its digest."""

    def said(ref, digest, *payloads):
        fitted = entries_of(*(("ensemble_fitted", "-", one) for one in payloads))
        facts = SimpleNamespace(
            cohorts=[],
            evaluations=[],
            score=SimpleNamespace(name="own"),
            ensembles=[SimpleNamespace(ref=ref, digest=digest)],
        )
        return list(_judge_problems(fitted, facts))

    one = {"name": "both", "number": 1, "digest": "a"}
    two = {"name": "both", "number": 2, "digest": "b"}
    away = "the ensemble {} is not in the ledger"
    assert said("both@v1", "a", one, two) == []
    assert said("both@v2", "b", one, two) == []
    for ref, digest in (("both@v1", "b"), ("both@v3", "a"), ("x@v1", "a"), ("y", "a")):
        assert said(ref, digest, one, two) == [away.format(ref)]
    assert said("both@v1", "a") == [away.format("both@v1")]

"""Keys of people: made once, private, recorded, used, and revoked for good."""

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.signing import key_id, public_of
from loop.release.keys import (
    find_key,
    format_public_key,
    keys_when,
    learn_key,
    load_private,
    make_key,
    needs_passphrase,
    parse_public_key,
    private_key_path,
    public_key_path,
    read_public_key,
    read_public_keys,
    revoke_key,
    signature_problem,
    signer_for,
)

ADMIN = Actor(name="Admin", role="admin")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def key(workspace):
    """Make a key for Dr. Ayşe Kaya."""
    return made(workspace)


def made(workspace, name="Dr. Ayşe Kaya", **more):
    """Make a key at noon."""
    return make_key(workspace, name, "approver", ADMIN, now=lambda: NOON, **more)


def revoked(workspace, key, hours=1):
    """Revoke a key some hours after noon."""
    later = NOON + timedelta(hours=hours)
    return revoke_key(workspace, key.keyid, ADMIN, "lost", now=lambda: later)


def act(workspace, name="Dr. Ayşe Kaya", signer=None):
    """Append an entry by that person, signed if they can."""
    signer = signer or signer_for(workspace, name)
    event = Event(action="evaluated", subject="extractor@v1", reason="r")
    return append_event(
        workspace.ledger, event, Actor(name=name, signer=signer), now=lambda: NOON
    )


def problems(workspace):
    """Return what is wrong with the signature of each entry."""
    keys, found = {}, []
    for entry in read_ledger(workspace.ledger):
        found.append(signature_problem(entry, keys))
        learn_key(keys, entry)
    return found


def test_a_key_is_recorded_and_both_halves_are_where_they_belong(workspace, key):
    """The ledger is what counts; the public file is a copy of what it says."""
    [entry] = [e for e in read_ledger(workspace.ledger) if e.action == "key_added"]
    assert entry.subject == key.keyid == key_id(key.public)
    assert read_public_keys(workspace) == {key.keyid: key}
    public = public_key_path(workspace, key)
    assert public == workspace.releases / "keys" / f"dr-ay-e-kaya-{key.keyid[:8]}.json"
    assert read_public_key(public) == key
    assert entry.payload["sha256"] == digest_bytes(public.read_bytes())
    assert entry.payload["file"] == public.name
    private = private_key_path(workspace, key.keyid)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.keys.stat().st_mode) == 0o700
    assert public_of(load_private(workspace, key.keyid)) == key.public


def test_nothing_private_is_written_in_the_open(workspace, key):
    """Not in the ledger, not beside the public key."""
    raw = load_private(workspace, key.keyid).private_bytes_raw()
    pem = private_key_path(workspace, key.keyid).read_bytes().splitlines()[1]
    for path in (workspace.ledger, public_key_path(workspace, key)):
        assert pem not in path.read_bytes()
        assert raw.hex().encode() not in path.read_bytes()


def test_who_has_a_key_signs(workspace, key):
    """And only they do."""
    entry = act(workspace)
    assert entry.keyid == key.keyid
    assert signature_problem(entry, read_public_keys(workspace)) == ""
    assert act(workspace, "Dr. B").keyid == ""
    assert not any(problems(workspace))


def test_without_any_key_nobody_is_asked_for_one(workspace):
    """Nothing changes for those who do not sign."""
    assert signer_for(workspace, "Dr. Ayşe Kaya") is None
    assert not workspace.keys.exists()


def test_a_protected_key_signs_only_with_its_passphrase(workspace):
    """Neither by itself, nor with another word, nor does an error say the word."""
    key = made(workspace, passphrase="correct horse")
    assert signer_for(workspace, key.name) is None
    private = load_private(workspace, key.keyid, "correct horse")
    assert public_of(private) == key.public
    with pytest.raises(DataError, match=r"has a passphrase. Give it when asked"):
        load_private(workspace, key.keyid)
    with pytest.raises(DataError, match="The passphrase is wrong") as caught:
        load_private(workspace, key.keyid, "wrong horse")
    assert "horse" not in str(caught.value)


def test_who_would_sign_is_known_before_a_passphrase_is_asked_for(workspace, key):
    """Nobody is asked for one that there is not."""
    locked = made(workspace, "Dr. B", passphrase="correct horse")
    assert [needs_passphrase(workspace, k.keyid) for k in (key, locked)] == [
        False,
        True,
    ]
    assert not needs_passphrase(workspace, "0" * 64)
    # A key that asks for nothing takes no notice of a word.
    assert public_of(load_private(workspace, key.keyid, "any")) == key.public


def test_one_person_has_one_valid_key(workspace, key):
    """Otherwise nobody could say which of the two counts."""
    with pytest.raises(DataError, match=r"has a key already.*--replace --why"):
        made(workspace)
    revoked(workspace, key)
    second = made(workspace)
    assert set(read_public_keys(workspace)) == {key.keyid, second.keyid}
    assert act(workspace).keyid == second.keyid


@pytest.mark.parametrize(
    "name", ["", " ", "a\nb", " a", "a\x1b[2J", "a\u202eb", "x" * 201]
)
def test_a_name_is_words_on_one_line(workspace, name):
    """It is printed on every document; nothing is made for any other."""
    before = workspace.ledger.read_bytes()
    with pytest.raises(DataError, match="does not have the expected form"):
        made(workspace, name)
    assert workspace.ledger.read_bytes() == before
    assert not workspace.keys.exists()


def test_a_person_signs_in_a_role_that_there_is(workspace):
    """It stands beside every signature; nothing is made for another."""
    with pytest.raises(DataError) as refused:
        make_key(workspace, "Dr. B", "owner", ADMIN)
    assert str(refused.value) == (
        "'owner' is no role of a person. Use one of author, reader, reviewer, editor, "
        "approver, admin."
    )
    assert not workspace.keys.exists()
    assert make_key(workspace, "Dr. B", "author", ADMIN).role == "author"


def test_a_revocation_counts_from_its_entry_on(workspace, key):
    """Not in what was signed before: the ledger knows which came first."""
    other = made(workspace, "Dr. B")
    gone = revoked(workspace, key)
    entries, keys = read_ledger(workspace.ledger), read_public_keys(workspace)
    assert keys[key.keyid].revoked == "2026-01-02T13:00:00Z"
    before = keys_when(entries, keys, gone.seq - 1)
    assert before == {key.keyid: key, other.keyid: other}
    assert keys_when(entries, keys, gone.seq) == keys


def test_a_revoked_key_signs_nothing_more(workspace, key):
    """What it signed before stays signed; the public copy says so too."""
    before = act(workspace)
    signer = signer_for(workspace, key.name)
    entry = revoked(workspace, key)
    now = read_public_keys(workspace)[key.keyid]
    assert now == key._replace(revoked="2026-01-02T13:00:00Z")
    assert (now.is_valid("2026-01-02T12:59:59Z"), now.is_valid(now.revoked)) == (
        True,
        False,
    )
    assert not now.is_valid("2026-01-02T11:59:59Z")
    copy = public_key_path(workspace, key)
    assert read_public_key(copy) == now
    assert entry.payload["sha256"] == digest_bytes(copy.read_bytes())
    assert signer_for(workspace, key.name) is None
    act(workspace, signer=signer)
    [*fine, last] = problems(workspace)
    assert not any(fine) and "was revoked at" in last
    assert before.keyid == key.keyid


def test_a_revocation_is_final(workspace, key):
    """Neither a second one nor the same key recorded again changes it."""
    revoked(workspace, key)
    with pytest.raises(DataError, match="was revoked at 2026-01-02T13:00:00Z already"):
        revoked(workspace, key, hours=5)
    entries = read_ledger(workspace.ledger)
    added = next(entry for entry in entries if entry.action == "key_added")
    again = Event(
        action="key_added", subject=key.keyid, reason="again", payload=added.payload
    )
    append_event(workspace.ledger, again, ADMIN)
    assert read_public_keys(workspace)[key.keyid].revoked == "2026-01-02T13:00:00Z"


def test_who_revokes_their_own_key_does_not_sign_with_it(workspace, key):
    """The entry would be signed with a key that it says not to trust."""
    actor = Actor(name=key.name, signer=signer_for(workspace, key.name))
    assert revoke_key(workspace, key.keyid, actor, "lost").keyid == ""


def test_a_public_copy_lost_in_a_kill_comes_back(workspace, key):
    """The ledger entry came first: the next act on a key finishes what was begun."""
    public_key_path(workspace, key).unlink()
    made(workspace, "Dr. B")
    assert read_public_key(public_key_path(workspace, key)) == key
    revoked(workspace, key)
    public_key_path(workspace, key).write_bytes(format_public_key(key))
    with pytest.raises(DataError, match="already"):
        revoked(workspace, key)
    assert read_public_key(public_key_path(workspace, key)).revoked


def test_a_public_copy_that_somebody_changed_stays_as_evidence(workspace, key):
    """What it says does not count, and is not hidden."""
    path = public_key_path(workspace, key)
    path.write_bytes(b"{}")
    made(workspace, "Dr. B")
    assert path.read_bytes() == b"{}"
    assert read_public_keys(workspace)[key.keyid] == key


def _claim(workspace, key, **changes):
    """Record a key with some fields changed, by hand."""
    file = json.loads(format_public_key(key)) | changes
    event = Event(
        action="key_added",
        subject=file["keyid"],
        reason="by hand",
        payload={"key": file},
    )
    append_event(workspace.ledger, event, ADMIN)


@pytest.mark.parametrize(
    "changes",
    [
        {"public": "AAAA"},
        {"keyid": "0" * 64},
        {"name": "a\nb"},
        {"role": ["approver"]},
        {"created": "yesterday"},
        {"created": "٢٠٢٦-01-02T12:00:00Z"},
        {"revoked": "2026-01-02T12:00:00Z"},
        {"more": "x"},
        {"format": "ranloop-key/2"},
    ],
)
def test_an_entry_that_holds_no_key_adds_none(workspace, key, changes):
    """And does not keep the rest of the ledger from being read."""
    other = key._replace(keyid="1" * 64)
    _claim(workspace, other, **changes)
    assert list(read_public_keys(workspace)) == [key.keyid]


def test_a_signature_is_checked_against_who_acts_and_what_was_written(workspace, key):
    """Each way in which one does not count has its words."""
    keys = read_public_keys(workspace)
    good = act(workspace)
    short, dead = key.keyid[:16], "2026-01-02T12:00:00Z"
    revoked = {key.keyid: key._replace(revoked=dead)}
    cases = [
        (
            good, {},
            f"signed with the key {short}, which was not recorded by then",
        ),
        (
            # Whoever holds a revoked key may give any name.
            replace(good, actor="Dr. B"), revoked,
            f"signed with the key {short}, which was revoked at {dead}",
        ),
        (
            replace(good, actor="Dr. B"), keys,
            "signed with the key of Dr. Ayşe Kaya, not of Dr. B",
        ),
        *(
            (
                replace(good, **forged), keys,
                f"the signature was not made with the key {short} over this entry",
            )
            for forged in ({"hash": "0" * 64}, {"signature": "A" * 86 + "=="})
        ),
        (
            replace(good, time="2026-01-02T11:59:59Z"), keys,
            f"signed with the key {short} outside the time it is valid",
        ),
        (replace(good, keyid=""), keys, ""),
    ]  # fmt: skip
    for entry, known, words in cases:
        assert signature_problem(entry, known) == words


def test_the_order_of_entries_decides_and_not_the_second(workspace, key):
    """A commit and a revocation within one second are no false alarm."""
    act(workspace)
    revoked(workspace, key, hours=0)
    assert not any(problems(workspace))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_private_key_that_others_may_read_is_refused(workspace, key, mode):
    """Somebody may have taken it; the person has to know."""
    private_key_path(workspace, key.keyid).chmod(mode)
    for ask in (
        lambda: load_private(workspace, key.keyid),
        lambda: signer_for(workspace, key.name),
    ):
        with pytest.raises(DataError, match=r"may be read by others.*chmod 600"):
            ask()


def test_a_key_that_is_elsewhere_or_damaged_is_named(workspace, key):
    """Each with its way out."""
    path = private_key_path(workspace, key.keyid)
    whole = path.read_bytes()
    path.write_bytes(whole[:60])
    with pytest.raises(DataError, match="was damaged: try again, or restore it"):
        load_private(workspace, key.keyid)
    other = made(workspace, "Dr. B")
    private_key_path(workspace, other.keyid).write_bytes(whole)
    with pytest.raises(DataError, match="holds another key than"):
        load_private(workspace, other.keyid)
    path.unlink()
    path.mkdir(mode=0o700)
    with pytest.raises(DataError, match=r"cannot read .*Is a directory"):
        load_private(workspace, key.keyid)
    path.rmdir()
    with pytest.raises(DataError, match="is not on this machine"):
        load_private(workspace, key.keyid)
    assert signer_for(workspace, key.name) is None


def test_on_a_broken_ledger_no_key_is_made_and_no_act_is_stopped(workspace, key):
    """Appending refuses by itself, with the line."""
    workspace.ledger.write_bytes(b"{}\n" + workspace.ledger.read_bytes())
    assert signer_for(workspace, key.name) is None
    with pytest.raises(LedgerError):
        made(workspace, "Dr. B")
    assert len(list(workspace.keys.iterdir())) == 1


def test_a_key_is_found_by_id_beginning_or_name(workspace, key):
    """A name means the key that is valid now."""
    for wanted in (key.keyid, key.keyid[:8], key.name):
        assert find_key(workspace, wanted) == key
    revoked(workspace, key)
    second = made(workspace)
    assert find_key(workspace, key.name) == second
    for wanted in ("", key.keyid[:7], "Dr. C", "f" * 64):
        with pytest.raises(DataError, match="ranloop key list"):
            find_key(workspace, wanted)


def test_ids_that_begin_alike_need_more_characters(workspace, key):
    """These two were searched for."""
    alike = [
        key._replace(keyid=key_id(raw), public=raw, name=f"Dr. {number}")
        for number, raw in enumerate(n.to_bytes(32, "big") for n in (50_323, 54_260))
    ]
    for one in alike:
        _claim(workspace, one)
    with pytest.raises(DataError) as refused:
        find_key(workspace, "93613343")
    assert str(refused.value) == (
        "'93613343' begins the ids of 2 keys. Give more characters, as in `ranloop key "
        "list`."
    )
    assert [find_key(workspace, word) for word in ("936133430", "93613343a")] == alike
    with pytest.raises(DataError, match=r"keys of: Dr\. 0, Dr\. 1, Dr\. Ayşe Kaya\)"):
        find_key(workspace, "Dr. C")


def test_of_several_revoked_keys_a_name_means_the_newest(workspace, key):
    """A key that is not revoked is meant even where a revoked one is newer."""
    revoked(workspace, key)
    second = made(workspace)
    revoked(workspace, second, hours=2)
    assert find_key(workspace, key.name).keyid == second.keyid
    third = made(workspace)
    assert find_key(workspace, key.name) == third
    # A key that another machine recorded and revoked later is no reason to take it.
    fourth = key._replace(keyid=key_id(b"4" * 32), public=b"4" * 32)
    _claim(workspace, fourth)
    revoked(workspace, fourth, hours=3)
    assert find_key(workspace, key.name) == third


@pytest.mark.parametrize(
    ("valid_to", "revoked", "counts"),
    [
        ("", "", [False, True, True, True]),
        ("2026-01-02T12:00:02Z", "", [False, True, True, False]),
        ("", "2026-01-02T12:00:01Z", [False, True, False, False]),
        ("2026-01-02T12:00:02Z", "2026-01-02T12:00:01Z", [False, True, False, False]),
        ("2026-01-02T12:00:01Z", "2026-01-02T12:00:02Z", [False, True, False, False]),
    ],
)
def test_a_signature_counts_from_the_second_of_its_key_to_its_first_end(
    workspace, key, valid_to, revoked, counts
):
    """From its first second until just before it expires or is revoked."""
    ending = key._replace(valid_to=valid_to, revoked=revoked)
    times = [f"2026-01-02T{time}Z" for time in ("11:59:59", "12:00:00")]
    times += [f"2026-01-02T12:00:0{second}Z" for second in (1, 2)]
    assert [ending.is_valid(time) for time in times] == counts


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Dr. C. Other", "dr-c-other"),
        ("\u674e", "key"),
        ("--A--", "a"),
        ("A" * 39 + " B", "a" * 39),
        ("A" * 40 + " B", "a" * 40),
    ],
)
def test_the_file_of_a_public_key_is_called_after_its_person(
    workspace, key, name, slug
):
    """At most 40 plain letters and digits, and then the beginning of its id."""
    path = public_key_path(workspace, key._replace(name=name))
    assert path.name == f"{slug}-{key.keyid[:8]}.json"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw.replace(b"approver", b"reviewer").replace(b"{", b"{ ", 1),
        lambda raw: raw.rstrip(b"\n"),
        lambda raw: raw + b"\n",
        lambda raw: raw.replace(b'"name":', b'"name":"x","name":'),
        lambda raw: b"[" * 10_000,
        lambda raw: b" " * 20_000 + raw,
        lambda raw: b"\xff\xfe",
        lambda raw: b"",
        lambda raw: b"null",
    ],
)
def test_a_public_key_file_has_one_spelling(workspace, key, tmp_path, spoil):
    """Whatever else it is, it is not what ranloop wrote."""
    path = tmp_path / "key.json"
    path.write_bytes(spoil(format_public_key(key)))
    with pytest.raises(DataError, match=r"key\.json"):
        read_public_key(path)


def test_every_changed_byte_of_a_public_key_file_changes_the_key(workspace, key):
    """Refused, or another name, role or time: a digest over the file tells those."""
    raw = format_public_key(key)
    for place in range(len(raw)):
        for flip in (1, 32, 128):
            changed = bytearray(raw)
            changed[place] ^= flip
            try:
                found = parse_public_key(bytes(changed), "key")
            except DataError:
                continue
            assert found != key and found.public == key.public


def test_a_public_key_file_is_a_file(tmp_path):
    """A pipe would wait for ever, and a folder is none."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "missing", "a\0b"):
        with pytest.raises(DataError):
            read_public_key(tmp_path / name)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "ranloop-release/1"}', "x"])
def test_another_file_in_place_of_a_key_is_named_as_such(tmp_path, text):
    """Release and key lie side by side; no word is about how the code reads them."""
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(DataError, match="is not a public key as ranloop writes") as no:
        read_public_key(path)
    assert "_KeyFile" not in str(no.value)

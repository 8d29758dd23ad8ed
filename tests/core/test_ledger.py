"""The ledger's chain: what it proves, and what it says when it is broken."""

import base64
import json
import multiprocessing
import os
import stat
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loop.core.digests import digest_bytes, digest_json
from loop.core.errors import DataError, LedgerError, WriteError
from loop.core.files import locked
from loop.core.ledger import (
    Actor,
    Event,
    TornLedgerError,
    acting_name,
    append_event,
    append_events,
    chain_event,
    entry_hash,
    format_entry,
    is_clock_repair,
    quarantine_torn_line,
    read_ledger,
    record_wrong_clock,
)
from loop.core.signing import is_signed, key_id, public_of, sign

ACTOR = Actor(name="Dr A", role="reviewer")


def event(subject="extractor@v1", **more):
    """Return an event."""
    return Event(action="draft_committed", subject=subject, reason="because", **more)


def test_hash_agrees_with_a_published_vector():
    """Two entries worked out by hand elsewhere give the same hashes."""
    first = {
        "seq": 1,
        "ts_utc": "2026-01-05T09:00:00Z",
        "actor_id": "dr_a",
        "actor_name": "A. Example",
        "role": "reviewer",
        "action": "protocol.freeze",
        "object_hash": "sha256:" + 64 * "a",
        "before": None,
        "after": None,
        "reason": "first protocol",
        "meaning": "approval",
        "prev_hash": 64 * "0",
    }
    one = "85a7dfa13cfd0845e265ced007390b6c31aa98b8b747b1b12b46aa3a3cc1fe4c"
    assert entry_hash(first) == one
    second = first | {
        "seq": 2,
        "ts_utc": "2026-01-05T09:05:00Z",
        "actor_id": "dr_b",
        "actor_name": "B. Example",
        "role": "approver",
        "action": "release.sign",
        "object_hash": "sha256:" + 64 * "b",
        "reason": "gates passed",
        "prev_hash": one,
    }
    two = "586f65b6a6b57613c06297fae9dc7ae279d41f6b867ebbbac9a82c366466211f"
    assert entry_hash(second) == two


def test_a_line_edited_after_it_was_read_is_noticed_by_the_next_append(tmp_path):
    """Only lines that are the same to the byte are not checked again."""
    path = tmp_path / "ledger.jsonl"
    for number in range(1, 4):
        append_event(path, event(f"extractor@v{number}"), ACTOR)
    assert len(read_ledger(path)) == 3
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"extractor@v1", b"extractor@v7"))
    with pytest.raises(LedgerError, match="line 1: was edited"):
        append_event(path, event("extractor@v4"), ACTOR)
    path.write_bytes(raw)
    append_event(path, event("extractor@v4"), ACTOR)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert len(read_ledger(path)) == 1


def test_entries_come_back_as_they_were_written(tmp_path):
    """Nothing is lost between append and read, non-ASCII included."""
    path = tmp_path / "ledger.jsonl"
    clock = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    written = [
        append_event(
            path, event(payload={"n": n, "name": "é"}), ACTOR, now=lambda: clock
        )
        for n in range(3)
    ]
    assert read_ledger(path) == tuple(written)
    assert [entry.seq for entry in written] == [1, 2, 3]
    assert written[0].time == "2026-01-02T03:04:05Z"


def _edit(lines):
    lines[1] = lines[1].replace("because", "otherwise")


def _remove(lines):
    del lines[1]


def _swap(lines):
    lines[0], lines[1] = lines[1], lines[0]


def _garble(lines):
    lines[1] = lines[1][:20]


@pytest.mark.parametrize(
    ("tamper", "line", "message"),
    [
        (_edit, 2, "was edited after it was written"),
        (_remove, 2, "does not follow the line before it"),
        (_swap, 1, "does not follow the line before it"),
        (_garble, 2, "not a ledger entry"),
    ],
)
def test_tampering_is_named_by_line(tmp_path, tamper, line, message):
    """An auditor learns where the chain breaks and what to do."""
    path = tmp_path / "ledger.jsonl"
    for number in range(3):
        append_event(path, event(f"extractor@v{number}"), ACTOR)
    lines = path.read_text(encoding="utf-8").splitlines()
    tamper(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(LedgerError, match=f"line {line}: .*{message}") as caught:
        read_ledger(path)
    assert "Restore" in str(caught.value)


def test_torn_last_line_is_reported_and_nothing_is_appended(tmp_path):
    """A power loss mid-write must not be built upon, nor silently dropped."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq": 2, "tim')
    with pytest.raises(LedgerError, match="line 2: the last line is incomplete"):
        append_event(path, event(), ACTOR)
    assert path.read_bytes().startswith(whole)


def test_missing_line_end_after_a_whole_entry_is_no_damage(tmp_path):
    """Some editors take the last line end; nothing is lost by that."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    append_event(path, event("extractor@v2"), ACTOR)
    assert [entry.seq for entry in read_ledger(path)] == [1, 2]


def test_a_line_end_that_comes_back_after_it_was_read_is_no_damage(tmp_path):
    """What was read is remembered up to its last whole line, and no further."""
    path = tmp_path / "ledger.jsonl"
    append_events(path, [event(), event("extractor@v2")], ACTOR)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert [entry.seq for entry in read_ledger(path)] == [1, 2]
    append_event(path, event("extractor@v3"), ACTOR)
    assert [entry.seq for entry in read_ledger(path)] == [1, 2, 3]


def _append_many(path, name):
    for number in range(10):
        append_event(path, event(f"{name}@v{number}"), Actor(name=name))


@pytest.mark.slow
def test_concurrent_writers_keep_one_chain(tmp_path):
    """Four processes at once: every entry is there and the chain holds."""
    path = tmp_path / "ledger.jsonl"
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=_append_many, args=(path, f"p{n}")) for n in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    subjects = {entry.subject for entry in read_ledger(path)}
    assert subjects == {f"p{n}@v{m}" for n in range(4) for m in range(10)}


def test_event_without_a_reason_is_refused():
    """Every act has a why."""
    with pytest.raises(ValueError, match="needs a reason"):
        Event(action="override", subject="extractor@v1", reason="  ")


def test_words_that_are_no_unicode_are_refused_and_nothing_is_appended(tmp_path):
    """A shell hands over any bytes; the chain is over text."""
    path = tmp_path / "ledger.jsonl"
    wrong = Event(action="override", subject="x", reason="caf\udce9")
    with pytest.raises(DataError, match="nothing was recorded"):
        append_events(path, [event(), wrong], ACTOR)
    assert not path.exists()


def test_unknown_action_is_refused():
    """The set of actions is closed."""
    with pytest.raises(ValueError, match="unknown ledger action 'edit'"):
        Event(action="edit", subject="x", reason="y")


def test_lines_are_plain_json(tmp_path):
    """Anyone can read the ledger without ranloop."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    [line] = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["actor"] == "Dr A"


def test_several_events_are_appended_together_or_not_at_all(tmp_path, monkeypatch):
    """An act that takes two entries leaves none behind when it fails."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    both = append_events(path, [event("a@v1"), event("a@v2")], ACTOR)
    assert read_ledger(path)[1:] == both
    whole = path.read_bytes()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteError):
        append_events(path, [event("a@v3"), event("a@v4")], ACTOR)
    assert path.read_bytes() == whole


def test_entries_and_a_new_ledger_survive_a_power_failure(tmp_path, monkeypatch):
    """Whole entries are on the disk when the act ends; of a new file its name, too."""
    synced = []

    def sync(handle):
        state = os.fstat(handle)
        synced.append("folder" if stat.S_ISDIR(state.st_mode) else state.st_size)

    monkeypatch.setattr(os, "fsync", sync)
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    one = path.stat().st_size
    assert [each for each in synced if each in (one, "folder")] == [one, "folder"]
    del synced[:]
    append_event(path, event("a@v2"), ACTOR)
    assert path.stat().st_size in synced


def test_an_edit_between_two_reads_is_noticed(tmp_path):
    """Reading twice is cheap, not blind: the bytes are compared, not the time."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    read_ledger(path)
    path.write_bytes(path.read_bytes().replace(b"because", b"despite"))
    with pytest.raises(LedgerError, match="was edited"):
        read_ledger(path)


KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


class Signing:
    """Sign with the key of a published test vector."""

    keyid = key_id(public_of(KEY))

    def sign(self, message):
        """Return the signature."""
        return sign(KEY, message)


SIGNED = Actor(name="Dr A", role="reviewer", signer=Signing())


def test_who_has_a_key_signs_their_entries(tmp_path):
    """Anyone with the public key can tell that the line is theirs."""
    path = tmp_path / "ledger.jsonl"
    plain = append_event(path, event(), ACTOR)
    entry = append_event(path, event(), SIGNED)
    assert (plain.keyid, plain.signature) == ("", "")
    assert entry.keyid == Signing.keyid
    signature = base64.b64decode(entry.signature)
    message = b"ranloop-ledger/1 " + entry.hash.encode()
    assert is_signed(public_of(KEY), message, signature)
    assert read_ledger(path) == (plain, entry)


def test_entries_without_a_signature_look_as_before_there_were_any(tmp_path):
    """Ledgers written by an earlier ranloop keep their hashes."""
    path = tmp_path / "ledger.jsonl"
    entry = append_event(path, event(), ACTOR)
    [line] = path.read_text(encoding="utf-8").splitlines()
    assert not {"keyid", "signature"} & set(json.loads(line))
    content = {k: v for k, v in json.loads(line).items() if k != "hash"}
    assert entry.hash == digest_json(content) == entry_hash(asdict(entry))


def test_the_key_is_hashed_and_the_signature_is_not(tmp_path):
    """Another key cannot be named in its place; a signature cannot sign itself."""
    path = tmp_path / "ledger.jsonl"
    data = asdict(append_event(path, event(), SIGNED))
    assert entry_hash(data | {"signature": ""}) == data["hash"]
    assert entry_hash(data | {"keyid": "f" * 64}) != data["hash"]
    assert entry_hash(data | {"keyid": ""}) != data["hash"]


def test_an_actor_is_the_same_person_with_and_without_a_key():
    """And a key is never printed."""
    assert SIGNED == ACTOR
    assert "sign" not in repr(SIGNED)


@pytest.mark.parametrize(
    "change",
    [
        {"signature": None},
        {"signature": ""},
        {"signature": "!" * 88},
        {"signature": "A" * 84},
        {"signature": 88 * [1]},
        {"signature": "A" * 85 + "B=="},
        {"keyid": None},
        {"keyid": ""},
        {"keyid": "", "signature": ""},
        {"keyid": "F" * 64},
        {"keyid": 64},
        {"seq": True},
        {"seq": 1.0},
        {"payload": []},
        {"reason": None, "actor": 7},
    ],
)
def test_what_has_the_wrong_form_is_no_entry(tmp_path, change):
    """A key without a signature, or a list where words belong, was never written."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), SIGNED)
    data = json.loads(path.read_bytes()) | change
    kept = {key: value for key, value in data.items() if value is not None}
    path.write_text(json.dumps(kept) + "\n")
    with pytest.raises(LedgerError, match="line 1: not a ledger entry"):
        read_ledger(path)


@pytest.mark.parametrize(
    "line",
    ['{"seq": 1, "seq": 1}', "[" * 100_000, '{"seq": NaN}', "7", "null", "\xff"],
)
def test_what_is_no_entry_is_named_and_never_a_crash(tmp_path, line):
    """Whatever a disk or a hand left there."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(LedgerError, match="line 1: not a ledger entry"):
        read_ledger(path)


def test_a_name_said_twice_is_refused(tmp_path):
    """A reader would see one value and the chain check another."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    line = path.read_text(encoding="utf-8")
    path.write_text(line.replace('{"action"', '{"reason": "fine", "action"'))
    with pytest.raises(LedgerError, match="line 1: not a ledger entry"):
        read_ledger(path)


@pytest.mark.parametrize("torn", [b"{", b'{"seq": 3, "tim', b"\0" * 40, b"\xff\xfe"])
def test_a_torn_line_is_set_aside_and_that_is_recorded(tmp_path, torn):
    """Recognised, quarantined, reported: nothing of it is lost."""
    path = tmp_path / "ledger.jsonl"
    append_events(path, [event(), event("b@v1")], ACTOR)
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    path.chmod(0o640)
    entry = quarantine_torn_line(path, SIGNED)
    aside = tmp_path / entry.payload["file"]
    assert aside.name == f"ledger.torn-3-{digest_bytes(torn)[:8]}.bin"
    assert aside.read_bytes() == torn
    assert (entry.action, entry.seq) == ("ledger_repaired", 3)
    assert entry.payload["sha256"] == digest_bytes(torn)
    assert (entry.payload["line"], entry.payload["bytes"]) == (3, len(torn))
    assert path.read_bytes().startswith(whole)
    assert read_ledger(path)[-1] == entry
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert quarantine_torn_line(path, ACTOR) is None
    assert append_event(path, event(), ACTOR).seq == 4


@pytest.mark.parametrize("end", range(1, 240, 7))
def test_every_cut_of_the_last_line_is_torn_and_can_be_repaired(tmp_path, end):
    """A power loss may come after any byte."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    before = path.read_bytes()
    append_event(path, event("b@v1"), SIGNED)
    path.write_bytes(path.read_bytes()[: len(before) + end])
    with pytest.raises(TornLedgerError, match="ranloop audit --repair"):
        read_ledger(path)
    assert quarantine_torn_line(path, ACTOR).seq == 2


def test_a_whole_ledger_is_not_repaired(tmp_path):
    """Also one without its last line end, an empty one, and none."""
    path = tmp_path / "ledger.jsonl"
    assert quarantine_torn_line(path, ACTOR) is None
    assert not path.exists()
    append_event(path, event(), ACTOR)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    raw = path.read_bytes()
    assert quarantine_torn_line(path, ACTOR) is None
    assert path.read_bytes() == raw


def test_a_torn_line_after_a_broken_chain_is_not_touched(tmp_path):
    """What was edited is evidence; only a backup can restore it."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    raw = path.read_bytes().replace(b"because", b"despite") + b'{"seq'
    path.write_bytes(raw)
    with pytest.raises(LedgerError, match="line 1: was edited"):
        quarantine_torn_line(path, ACTOR)
    assert path.read_bytes() == raw


def test_a_repair_killed_half_way_is_done_again(tmp_path, monkeypatch):
    """Before the ledger is replaced, only the copy is there."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR)
    path.write_bytes(path.read_bytes() + b"{")
    replace, seen = os.replace, []

    def killed(source, target):
        seen.append(target)
        if len(seen) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        quarantine_torn_line(path, ACTOR)
    monkeypatch.undo()
    assert path.read_bytes().endswith(b"\n{")
    assert quarantine_torn_line(path, ACTOR).seq == 2
    assert len(list(tmp_path.glob("ledger.torn-*.bin"))) == 1


def _append_slowly(path, half, rest):
    with locked(path.with_name(f".{path.name}.lock")):
        with path.open("ab") as stream:
            stream.write(half)
        path.with_name("half").touch()
        while not path.with_name("asked").exists():
            pass
        with path.open("ab") as stream:
            stream.write(rest)


@pytest.mark.slow
def test_a_line_that_is_being_written_is_waited_for(tmp_path):
    """A reader that comes in between must not call the ledger torn."""
    path, other = tmp_path / "ledger.jsonl", tmp_path / "other" / "ledger.jsonl"
    for one in (path, other):
        append_event(one, event(), ACTOR, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    append_event(other, event(), ACTOR)
    line = other.read_bytes().splitlines(keepends=True)[1]
    spawn = multiprocessing.get_context("spawn")
    writer = spawn.Process(target=_append_slowly, args=(path, line[:20], line[20:]))
    writer.start()
    while not (tmp_path / "half").exists():
        pass
    (tmp_path / "asked").touch()
    assert len(read_ledger(path)) == 2
    writer.join()


def test_a_torn_ledger_is_named_where_nothing_can_be_written(tmp_path, monkeypatch):
    """A mounted backup has no lock, and is torn all the same."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"{")

    def read_only(*_args):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("loop.core.files.os.open", read_only)
    with pytest.raises(TornLedgerError):
        read_ledger(path)


def _at(*clock):
    """Return a clock of a day to come: it may not be behind the machine's own."""
    return lambda: datetime(2126, 3, 1, *clock, tzinfo=UTC)


def test_a_clock_that_was_set_back_records_nothing(tmp_path):
    """An entry before its predecessor is refused, with both times and the way on."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR, now=_at(12))
    before = path.read_bytes()
    with pytest.raises(LedgerError) as refused:
        append_event(path, event(), ACTOR, now=_at(11, 57))
    assert path.read_bytes() == before
    for word in ("2126-03-01T11:57:00Z", "entry 1", "12:00:00Z", "--repair"):
        assert word in str(refused.value)
    append_event(path, event(), ACTOR, now=_at(12, 0, 1))


def test_machines_whose_clocks_differ_a_little_keep_one_order(tmp_path):
    """Ten seconds: the later entry never has the earlier time."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR, now=_at(12))
    late = append_event(path, event(), ACTOR, now=_at(11, 59, 50))
    assert late.time == "2126-03-01T12:00:00Z"
    with pytest.raises(LedgerError, match="set-ntp"):
        append_event(path, event(), ACTOR, now=_at(11, 59, 49))


def test_an_earlier_entry_with_a_later_time_counts_too(tmp_path):
    """Ledgers of earlier versions may run backwards: the newest time decides."""
    path = tmp_path / "ledger.jsonl"
    one = append_event(path, event(), ACTOR, now=_at(12))
    two = chain_event(event(), ACTOR, "2126-03-01T09:00:00Z", one)
    with path.open("ab") as stream:
        stream.write(format_entry(two))
    assert len(read_ledger(path)) == 2
    with pytest.raises(LedgerError, match="entry 1 of"):
        append_event(path, event(), ACTOR, now=_at(10))


def test_a_clock_that_was_ahead_is_recorded_and_then_no_hindrance(tmp_path):
    """Otherwise nobody could work until the wrong time has come."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR, now=_at(22))
    found = record_wrong_clock(path, ACTOR, now=_at(10))
    assert found == read_ledger(path)[-1]
    assert found.reason == "the clock was ahead when entry 1 was written"
    assert is_clock_repair(found)
    append_event(path, event(), ACTOR, now=_at(10, 5))
    for second in (55, 50):
        assert record_wrong_clock(path, ACTOR, now=_at(10, 4, second)) is None
    with pytest.raises(LedgerError, match="entry 3 of"):
        append_event(path, event(), ACTOR, now=_at(9))


def test_the_last_repair_of_a_clock_is_the_one_that_counts(tmp_path):
    """A clock may be ahead more than once; eleven seconds are too many."""
    path = tmp_path / "ledger.jsonl"
    for wrong, right in ((20, 10), (22, 12), (23, 14)):
        append_event(path, event(), ACTOR, now=_at(wrong))
        found = record_wrong_clock(path, ACTOR, now=_at(right))
        assert found.payload["clock"] == f"2126-03-01T{wrong}:00:00Z"
    assert record_wrong_clock(path, ACTOR, now=_at(13, 59, 49)).payload["line"] == 6


def test_two_entries_of_one_time_are_in_their_order(tmp_path):
    """The later one is the one that is named."""
    path = tmp_path / "ledger.jsonl"
    for _ in range(2):
        append_event(path, event(), ACTOR, now=_at(12))
    with pytest.raises(LedgerError, match="entry 2 of"):
        append_event(path, event(), ACTOR, now=_at(10))


def test_an_act_that_began_before_another_was_recorded_has_its_time(tmp_path):
    """Whoever waits for the ledger is not refused, and history stays in order."""
    path = tmp_path / "ledger.jsonl"
    first = append_event(path, event(), ACTOR)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    assert append_event(path, event(), ACTOR, now=lambda: began).time == first.time


@pytest.mark.parametrize(
    ("given_", "actor", "user", "name"),
    [
        (" Dr A ", "b", "c", "Dr A"),
        (None, "b ", "c", "b"),
        ("", None, "c", "c"),
        (None, "", "c", "c"),
        (None, None, None, f"uid {os.getuid()}"),
        (None, None, " ", f"uid {os.getuid()}"),
    ],
)
def test_who_acts_is_named_by_the_first_that_names_anybody(
    monkeypatch, given_, actor, user, name
):
    """The command, the variable of ranloop, the login; else the number of the user."""
    for variable, value in (("RANLOOP_ACTOR", actor), ("USER", user)):
        monkeypatch.delenv(variable, raising=False)
        if value is not None:
            monkeypatch.setenv(variable, value)
    assert acting_name(given_) == name


def test_a_ledger_that_cannot_be_read_says_why(tmp_path):
    """A folder in its place, as after a restore that went wrong."""
    (tmp_path / "ledger.jsonl").mkdir()
    with pytest.raises(
        LedgerError, match=r"^cannot read /.*jsonl: Is a directory\. Co"
    ):
        read_ledger(tmp_path / "ledger.jsonl")


def test_a_ledger_that_cannot_be_opened_for_writing_says_why(tmp_path):
    """Nothing is made in its place."""
    path = tmp_path / "ledger.jsonl"
    path.symlink_to(tmp_path / "nowhere" / "ledger.jsonl")
    with pytest.raises(WriteError, match=r"cannot write /.*/ledger\.jsonl: No such"):
        append_event(path, event(), ACTOR)
    assert not path.exists()


def test_an_entry_of_which_only_a_part_was_written_is_taken_back(tmp_path, monkeypatch):
    """A disk that fills up takes what still fits; that is no entry."""
    path, write = tmp_path / "ledger.jsonl", os.write
    append_event(path, event(), ACTOR)
    whole = path.read_bytes()
    monkeypatch.setattr("os.write", lambda handle, raw: write(handle, raw[:-1]))
    with pytest.raises(WriteError, match="The disk is full"):
        append_event(path, event(), ACTOR)
    assert path.read_bytes() == whole


def test_the_folder_of_a_new_ledger_is_synced_once(tmp_path, monkeypatch):
    """Else the first entry could be lost with its file; a further one needs none."""
    synced = []
    monkeypatch.setattr("loop.core.ledger.sync_folder", synced.append)
    for _ in range(2):
        append_event(tmp_path / "ledger.jsonl", event(), ACTOR)
    assert synced == [tmp_path]


def test_a_ledger_whose_only_line_is_torn_begins_anew(tmp_path):
    """The repair is its first entry, and says all that is known of the line."""
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"{")
    clock = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    entry = quarantine_torn_line(path, ACTOR, now=lambda: clock)
    assert read_ledger(path) == (entry,)
    assert (entry.subject, entry.time) == ("ledger.jsonl", "2026-01-02T03:04:05Z")
    assert entry.reason == "the last line was incomplete, as after a power loss"
    assert entry.payload == {
        "line": 1,
        "sha256": digest_bytes(b"{"),
        "bytes": 1,
        "file": f"ledger.torn-1-{digest_bytes(b'{')[:8]}.bin",
    }


def test_no_clock_was_wrong_where_nothing_is_recorded(tmp_path):
    """There is no entry to be later than it."""
    assert record_wrong_clock(tmp_path / "ledger.jsonl", ACTOR, now=_at(10)) is None
    assert not (tmp_path / "ledger.jsonl").exists()


def test_a_repair_of_a_line_is_none_of_a_clock(tmp_path):
    """What stands above it still counts."""
    path = tmp_path / "ledger.jsonl"
    append_event(path, event(), ACTOR, now=_at(12))
    path.write_bytes(path.read_bytes() + b"{")
    repair = quarantine_torn_line(path, ACTOR, now=_at(12))
    assert not is_clock_repair(repair)
    other = event(payload={"clock": "x"})
    assert not is_clock_repair(append_event(path, other, ACTOR, now=_at(12)))

"""Every edit of the ledger is found, named, and said what it implies."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop.core.check_findings import FindingSeverity, note, ok, warning
from loop.core.errors import DataError
from loop.core.ledger import (
    Event,
    TornLedgerError,
    chain_event,
    entry_hash,
    format_entry,
    make_entry,
    quarantine_torn_line,
    read_ledger,
    record_wrong_clock,
)
from loop.release.audit.chain import (
    Trouble,
    check_chain,
    check_entries,
    find_cohort,
    read_line,
    read_lines,
)
from loop.release.audit.known_heads import KnownHead
from loop.release.keys import make_key, signer_for
from loop.run.store import open_store
from tests.calls import count_calls
from tests.release.audit.scenes import ACTOR, clock, make_history, rehashed


@pytest.fixture
def history(tmp_path):
    """Return a fresh history."""
    return make_history(tmp_path / "ws")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return a history, partly signed, whose ledger each example writes anew."""
    made = make_history(tmp_path_factory.mktemp("ws") / "ws")
    make_key(made.workspace, ACTOR.name, "approver", ACTOR, now=clock(10))
    signer = replace(ACTOR, signer=signer_for(made.workspace, ACTOR.name))
    for ref in ("tiny@v1", "tiny@v2"):
        payload = {"alias": ref[-2:] + "x", "before": None}
        made.record("alias_moved", ref, payload, actor=signer, at=11)
    return made, made.path.read_bytes()


def edit(lines):
    """Change a reason."""
    lines[2] = lines[2].replace(b'"why"', b'"hmm"')


def edit_hash(lines):
    """Change a hash only."""
    data = json.loads(lines[2])
    data["hash"] = "0" * 64
    lines[2] = json.dumps(data, sort_keys=True).encode() + b"\n"


def delete(lines):
    """Remove two entries."""
    del lines[2:4]


def delete_first(lines):
    """Remove the beginning."""
    del lines[:2]


def reorder(lines):
    """Swap two entries."""
    lines[2], lines[3] = lines[3], lines[2]


def duplicate(lines):
    """Write an entry twice."""
    lines.insert(4, lines[2])


def insert(lines):
    """Put an entry that follows properly between two others."""
    entry = read_line(lines[2], 3).entry
    forged = [read_line(line, n).entry for n, line in enumerate(lines[:2], 1)]
    forged.append(replace(entry, reason="forged"))
    lines.insert(2, rehashed(forged, 3)[2])


def insert_two(lines):
    """Put two entries that follow properly between two others."""
    entry = read_line(lines[2], 3).entry
    forged = [read_line(line, n).entry for n, line in enumerate(lines[:2], 1)]
    forged += [replace(entry, reason="forged")] * 2
    lines[2:2] = rehashed(forged, 3)[2:]


def insert_foreign(lines):
    """Put an entry of another ledger between two others."""
    entry = replace(read_line(lines[2], 3).entry, prev="f" * 64)
    lines.insert(2, rehashed([entry], 1)[0].replace(b'"seq": 1', b'"seq": 3'))


def garble(lines):
    """Overwrite a line."""
    lines[2] = b"\x00\xff" * 20 + b"\n"


def blank(lines):
    """Leave a blank line."""
    lines.insert(2, b"\n")


def tear(lines):
    """Cut the last line in half."""
    lines[-1] = lines[-1][: len(lines[-1]) // 2]


def double(lines):
    """Give a line two reasons, of which a program reads the second."""
    lines[2] = lines[2].replace(b'"reason"', b'"reason": "x", "reason"', 1)


def rewrite(lines):
    """Edit an entry and give it a fitting hash."""
    entries = [read_line(line, n).entry for n, line in enumerate(lines, 1)]
    entries[2] = replace(entries[2], reason="another reason")
    lines[2] = rehashed(entries[:3], 3)[2]


@pytest.mark.parametrize(
    ("act", "line", "words"),
    [
        (edit, 3, "line 3 was edited after it was written"),
        (edit_hash, 3, "line 3 was edited after it was written"),
        (delete, 3, "entries 3 to 4 are missing"),
        (delete_first, 1, "entries 1 to 2 are missing"),
        (reorder, 3, "line 3 is out of order: it follows line 4"),
        (duplicate, 5, "line 5 repeats line 3"),
        (insert, 4, "follows line 2, not the line before it: line 3 was inserted"),
        (insert_two, 5, "not the line before it: lines 3 to 4 were inserted"),
        (insert_foreign, 3, "line 3 was edited"),
        (garble, 3, "line 3 is not an entry of a ledger"),
        (blank, 3, "line 3 is not an entry of a ledger"),
        (tear, 6, "line 6 is incomplete: torn, as after a power loss"),
        (double, 3, "line 3 names a field twice"),
        (rewrite, 4, "does not follow line 3, which was replaced"),
    ],
)
def test_the_first_broken_link_is_named(history, act, line, words):
    """An auditor is told where to look first, and what it means."""
    lines = history.lines()
    act(lines)
    history.write(lines)
    audit = history.audit()
    assert not audit.holds
    assert words in audit.first_break.what
    assert audit.first_break.where == f"ledger.jsonl, line {line}"
    assert audit.first_break.implies and audit.first_break.todo


def delete_one(lines):
    """Remove one entry."""
    del lines[2]


def garble_two(lines):
    """Overwrite two lines."""
    lines[2:4] = [b"x\n", b"{}\n"]


def garble_and_delete(lines):
    """Overwrite a line and remove the one after it."""
    lines[2:4] = [b"x\n"]


def garble_first(lines):
    """Overwrite the first line."""
    lines[0] = b"x\n"


def garble_first_and_delete(lines):
    """Overwrite the first line and remove the second."""
    lines[:2] = [b"x\n"]


def blank_first(lines):
    """Leave a blank line before the first."""
    lines.insert(0, b"\n")


def put_other_first(lines):
    """Put an entry before the first that follows nothing in the file."""
    entry = read_line(lines[0], 1).entry
    lines.insert(0, format_entry(chain_event(EVENT, ACTOR, entry.time, None)))
    lines[0] = other_prev(lines[0])


def other_prev(line):
    """Return a line that follows another entry, with a fitting hash."""
    data = json.loads(line) | {"prev": "f" * 64}
    data["hash"] = entry_hash(data)
    return format_entry(make_entry(data))


EVENT = Event(action="alias_moved", subject="tiny@v1", reason="elsewhere")


def duplicate_first(lines):
    """Write the first entry twice."""
    lines.insert(1, lines[0])


def last_first(lines):
    """Put the last entry before all others."""
    lines.insert(0, lines.pop())


def move_up(lines):
    """Put the fifth entry behind the first."""
    lines.insert(1, lines.pop(4))


def replace_two(lines):
    """Write two entries anew with fitting hashes, and leave what follows."""
    entries = [read_line(line, n).entry for n, line in enumerate(lines, 1)]
    entries[2:4] = [replace(one, reason="another") for one in entries[2:4]]
    lines[2:4] = rehashed(entries[:4], 3)[2:]


def put_other_start(lines):
    """Put the beginning of another ledger between two lines."""
    entry = replace(read_line(lines[2], 3).entry, reason="elsewhere")
    lines.insert(3, rehashed([entry], 1)[0])


def renumber(lines):
    """Write the end anew with fitting hashes, and leave two numbers out."""
    entries = [read_line(line, n).entry for n, line in enumerate(lines, 1)]
    before = entries[2]
    for place, entry in enumerate(entries[3:], 3):
        follows = before if place > 3 else replace(before, seq=5)
        before = chain_event(EVENT, ACTOR, entry.time, follows)
        lines[place] = format_entry(before)


EDITED = "was edited after it was written: its hash is not that of its content"
MISSING = "does not follow the line before it:"
NO_ENTRY = "is not an entry of a ledger"
ELSEWHERE = "follows an entry that is not in this file"
REPLACED = "which was replaced and given a fitting hash"


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (edit, [(3, 3, EDITED)]),
        (edit_hash, [(3, 3, EDITED)]),
        (delete, [(3, 5, f"{MISSING} entries 3 to 4 are missing")]),
        (delete_one, [(3, 4, f"{MISSING} entry 3 is missing")]),
        (delete_first, [(1, 3, f"{MISSING} entries 1 to 2 are missing")]),
        (
            reorder,
            [
                (3, 4, "is out of order: it follows line 4"),
                (4, 3, "is out of order: it follows line 2"),
                (5, 5, "follows line 3, not the line before it: line 4 was inserted"),
            ],
        ),
        (
            move_up,
            [
                (2, 5, "is out of order: it follows line 5"),
                (3, 2, "is out of order: it follows line 1"),
                (
                    *(6, 6),
                    "follows line 2, not the line before it: lines 3 to 5 were "
                    "inserted",
                ),
            ],
        ),
        (
            last_first,
            [(1, 6, "is out of order: it follows line 6"), (2, 1, ELSEWHERE)],
        ),
        (duplicate, [(5, 3, "repeats line 3")]),
        (duplicate_first, [(2, 1, "repeats line 1")]),
        (
            insert,
            [(4, 3, "follows line 2, not the line before it: line 3 was inserted")],
        ),
        (
            insert_two,
            [
                (
                    *(5, 3),
                    "follows line 2, not the line before it: lines 3 to 4 were "
                    "inserted",
                )
            ],
        ),
        (
            put_other_start,
            [
                (4, 1, ELSEWHERE),
                (5, 4, "follows line 3, not the line before it: line 4 was inserted"),
            ],
        ),
        (garble, [(3, 3, NO_ENTRY)]),
        (garble_two, [(3, 3, NO_ENTRY), (4, 4, NO_ENTRY)]),
        (
            garble_and_delete,
            [(3, 3, NO_ENTRY), (4, 5, f"{MISSING} entries 3 to 4 are missing")],
        ),
        (garble_first, [(1, 1, NO_ENTRY)]),
        (blank_first, [(1, 1, NO_ENTRY)]),
        (put_other_first, [(1, 1, ELSEWHERE), (2, 1, ELSEWHERE)]),
        (
            garble_first_and_delete,
            [(1, 1, NO_ENTRY), (2, 3, f"{MISSING} entries 1 to 2 are missing")],
        ),
        (tear, [(6, 6, "is incomplete: torn, as after a power loss")]),
        (double, [(3, 3, "names a field twice")]),
        (rewrite, [(4, 4, f"does not follow line 3, {REPLACED}")]),
        (replace_two, [(5, 5, f"does not follow line 4, {REPLACED}")]),
        (
            renumber,
            [(4, 6, "has number 6 after number 3, although its hash follows")],
        ),
    ],
)
def test_every_break_is_told_once(history, act, told):
    """By line and entry, and no line that still follows is blamed."""
    lines = history.lines()
    act(lines)
    history.write(lines)
    found = check_chain(read_lines(history.path))
    assert [(one.where, one.seq, one.what) for one in found] == [
        (f"ledger.jsonl, line {line}", seq, f"line {line} {what}")
        for line, seq, what in told
    ]
    assert {one.severity.value for one in found} == {"broken"}


def test_a_whole_chain_is_counted(history):
    """To which head; an empty ledger has nothing to say."""
    last = history.entries()[-1].hash
    assert check_chain(read_lines(history.path)) == [
        ok("chain", f"6 entries, one chain from the first to {last[:12]}")
    ]
    history.write([])
    assert check_chain(read_lines(history.path)) == []
    assert history.audit().head == f"0:{'0' * 64}"


def test_a_line_that_stands_twice_is_one_entry(history):
    """What was read twice did not happen twice; the first place counts."""
    lines = history.lines()
    history.write([lines[0], lines[1], lines[0], lines[2], b"x\n"])
    ledger = read_lines(history.path)
    assert [one.seq for one in ledger.entries] == [1, 2, 3]
    assert (len(ledger.lines), ledger.last.seq, ledger.ended) == (5, 3, True)
    # A move of an alias that is copied to the end is no move back.
    history.write([*lines, lines[3]])
    assert [check for check, _ in history.broken()] == ["chain"]
    told = [one for one in history.audit().findings if one.check == "aliases"]
    assert [one.severity.value for one in told] == ["ok"]


def test_up_to_five_odd_spellings_are_told_one_by_one(history):
    """Of more, only the first is told, with the number of the others."""
    lines = [line.replace(b'": ', b'":  ', 1) for line in history.lines()]
    for count, told in (
        (5, [(n, "") for n in range(1, 6)]),
        (6, [(1, ", and 5 more")]),
    ):
        history.write([*lines[:count], *history.lines()[count:]])
        assert check_chain(read_lines(history.path)) == [
            warning(
                "chain",
                f"line {n} is spelled otherwise than ranloop writes it{more}",
                where=f"ledger.jsonl, line {n}",
                implies="An editor, another program or a change of line ends wrote it; "
                "it says the same.",
                todo="Compare it with a backup, and find out who opened the file.",
                seq=n,
            )
            for n, more in told
        ]


def test_a_whole_chain_holds(history):
    """No alarm without a cause."""
    audit = history.audit()
    assert audit.holds
    assert audit.first_break is None
    assert audit.counts[FindingSeverity.WARNING] == 0


def test_one_edit_is_one_break(history):
    """The lines after an edited one still follow the original: they are not blamed."""
    lines = history.lines()
    edit_hash(lines)
    history.write(lines)
    assert len([check for check, _ in history.broken() if check == "chain"]) == 1


def test_other_spelling_is_reported_and_not_called_broken(history):
    """A ledger that an editor saved says the same, and someone opened it."""
    lines = history.lines()
    lines[1] = lines[1].replace(b'": ', b'":  ', 1)
    lines[-1] = lines[-1].rstrip(b"\n")
    history.write(lines)
    found = check_chain(read_lines(history.path))
    assert [one.severity for one in found] == ["warning", "warning"]
    assert [one.what for one in found] == [
        "line 2 is spelled otherwise than ranloop writes it",
        "the last line has no line end",
    ]


def test_a_torn_last_line_is_not_only_short_of_its_end(history):
    """It is an entry that is lost, and is told as that alone."""
    lines = history.lines()
    tear(lines)
    history.write(lines)
    (found,) = check_chain(read_lines(history.path))
    assert found.what.startswith("line 6 is incomplete: torn")


def test_converted_line_ends_are_one_warning(history):
    """A checkout changes every line; one is told, and how many more."""
    lines = [line.replace(b"\n", b"\r\n") for line in history.lines()]
    history.write(lines)
    (found,) = check_chain(read_lines(history.path))
    assert found.what == (
        f"line 1 is spelled otherwise than ranloop writes it, and {len(lines) - 1} more"
    )
    assert "line ends" in found.implies


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b"[" * 100_000,
        b'{"seq": NaN}',
        b"\xef\xbb\xbf{}",
        '{"seq": 1}'.encode("utf-16"),
        b'{"reason": "\\ud800"}',
    ],
)
def test_whatever_stands_in_a_line_is_only_unreadable(raw):
    """The reader of a hostile file never fails itself."""
    assert read_line(raw, 1).trouble is Trouble.UNREADABLE


def test_a_true_is_no_line_number(history):
    """JSON's true equals 1 in Python, and must not stand for it."""
    line = history.lines()[0].replace(b'"seq": 1', b'"seq": true')
    assert read_line(line.rstrip(b"\n"), 1).trouble is Trouble.UNREADABLE


def test_a_missing_ledger_beside_versions_is_broken(history):
    """A history that is gone is not an empty one."""
    history.path.unlink()
    refs = [what.split()[0] for check, what in history.broken() if check == "versions"]
    assert refs == ["tiny@v1", "tiny@v2", "tiny@v3"]


def test_a_ledger_that_cannot_be_read_says_so(history):
    """A folder in its place is an error with a way out, not an empty history."""
    history.path.unlink()
    history.path.mkdir()
    with pytest.raises(DataError, match="cannot read"):
        history.audit()


def test_a_torn_line_is_moved_aside_and_stays_on_record(history):
    """After a repair the chain holds again, and the audit tells of it."""
    lines = history.lines()
    tear(lines)
    history.write(lines)
    with pytest.raises(TornLedgerError):
        read_ledger(history.path)
    quarantine_torn_line(history.path, ACTOR, now=clock(30))
    audit = history.audit()
    repairs = [one.what for one in audit.findings if one.check == "repairs"]
    assert audit.first_break is None
    (kept,) = history.path.parent.glob("ledger.torn-*.bin")
    assert repairs == [
        f"a torn line was moved aside to {kept.name}; its bytes are kept"
    ]
    other = kept.with_name("ledger.torn-other.bin")
    other.write_bytes(b"x")
    told = [one for one in history.audit().findings if one.check == "repairs"]
    assert told[1:] == [
        note(
            "repairs",
            "ledger.torn-other.bin is left from a repair that did not end",
            where="prompts/ledger.torn-other.bin",
            todo="Run `ranloop audit --repair` again.",
        )
    ]
    other.unlink()
    kept.write_bytes(b"")
    (repair,) = (one for one in history.audit().findings if one.check == "repairs")
    assert repair == warning(
        "repairs",
        f"a torn line was moved aside to {kept.name}, and is not there as it was",
        where="entry 6",
        implies="What the torn line began to say cannot be looked at any more.",
        todo="Restore the file from a backup.",
        seq=6,
    )
    kept.unlink()
    assert [one for one in history.audit().findings if one.check == "repairs"] == [
        repair
    ]


def test_time_going_back_is_a_warning(history):
    """A wrong clock is no forgery, and worth a look."""
    event = Event(action="alias_moved", subject="tiny@v3", reason="an earlier version")
    last = read_ledger(history.path)[-1]
    line = chain_event(event, ACTOR, "2026-01-05T08:55:00Z", last)
    with history.path.open("ab") as stream:
        stream.write(format_entry(line))
    whats = [one.what for one in history.audit().findings if one.check == "entries"]
    assert whats == ["line 7 is of 2026-01-05T08:55:00Z, before the line above it"]


def odd(line, what):
    """Return what is said of an entry that the chain holds."""
    return warning(
        "entries",
        f"line {line} {what}",
        where=f"ledger.jsonl, line {line}",
        implies="A clock was wrong, another ranloop wrote it, or it was made by hand.",
        todo="Ask the person the entry names.",
        seq=line,
    )


def entries_told(history, now="2026-01-06T09:00:00Z"):
    """Return what is said of the entries by themselves."""
    return check_entries(read_lines(history.path), now)


def test_an_entry_says_who_and_why(history):
    """And does something that this version knows; unreadable lines end nothing."""
    assert entries_told(history) == [
        ok("entries", "times do not go back; every entry has a reason")
    ]
    entries = history.entries()
    for place, change in (
        (1, {"reason": " "}),
        (2, {"actor": ""}),
        (3, {"action": "guessed", "reason": ""}),
    ):
        entries[place] = replace(entries[place], **change)
    history.write([*rehashed(entries, 1)[:4], b"x\n"])
    assert entries_told(history) == [
        odd(2, "does not say who, or why"),
        odd(3, "does not say who, or why"),
        odd(4, "has an action that this ranloop does not know"),
    ]


def test_the_first_time_in_the_future_is_a_note(history):
    """What follows in order is as late; the second of the audit itself is not."""
    assert entries_told(history, "2026-01-05T09:09:00Z") == [
        ok("entries", "times do not go back; every entry has a reason")
    ]
    for now in ("2026-01-05T09:03:00Z", "2026-01-05T09:08:59Z"):
        assert entries_told(history, now) == [
            note(
                "entries",
                "line 4 has the time 2026-01-05T09:09:00Z, which is in the future",
                where="ledger.jsonl, line 4",
                todo="Compare the clocks of the machines that write here.",
            )
        ]


def test_times_are_held_against_the_latest_before(history):
    """One that goes back takes nothing back with it."""
    minutes = (1, 9, 5, 9, 8, 10)
    entries = [
        replace(one, time=f"2026-01-05T09:{minute:02d}:00Z")
        for one, minute in zip(history.entries(), minutes, strict=True)
    ]
    history.write(rehashed(entries, 1))
    assert entries_told(history) == [
        odd(3, "is of 2026-01-05T09:05:00Z, before the line above it"),
        odd(5, "is of 2026-01-05T09:08:00Z, before the line above it"),
    ]


def test_a_recorded_clock_that_was_ahead_is_a_warning_once(history):
    """Nobody can date an entry back unseen; what follows is in order again."""
    record_wrong_clock(history.path, ACTOR, now=clock(-30))
    history.record("alias_moved", "tiny@v3", {"alias": "p"}, at=-20)
    audit = history.audit()
    whats = [one.what for one in audit.findings if one.check == "entries"]
    ahead = "line 7 says that the clock was ahead until 2026-01-05T09:09:00Z"
    assert whats == [ahead]
    assert not [one for one in audit.findings if one.check == "repairs"]


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_any_edit_of_the_bytes_is_reported(shared, data):
    """Random edits of a valid ledger: every one is found when the head is known."""
    history, raw = shared
    start = data.draw(st.integers(0, len(raw) - 1))
    end = data.draw(st.integers(start, min(len(raw), start + 400)))
    put = data.draw(st.binary(max_size=8) | st.sampled_from([b"\n", b" ", raw[:300]]))
    edited = raw[:start] + put + raw[end:]
    history.path.write_bytes(edited)
    assert (edited == raw) == (_reported(history, raw) == [])


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_any_rearrangement_of_the_lines_is_reported(shared, data):
    """Lines dropped, repeated or reordered at random are found as well."""
    history, raw = shared
    lines = raw.splitlines(keepends=True)
    chosen = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=8))
    edited = b"".join(lines[index] for index in chosen)
    history.path.write_bytes(edited)
    assert (edited == raw) == (_reported(history, raw) == [])


@pytest.mark.parametrize("start", [1, 2, 4, 6])
def test_a_chain_made_anew_is_found_by_a_head_known_elsewhere(shared, start):
    """With fitting hashes the chain holds; the head somebody wrote down does not."""
    history, raw = shared
    history.path.write_bytes(raw)
    entries = history.entries()
    entries[start - 1] = replace(entries[start - 1], reason="another reason")
    history.write(rehashed(entries, start))
    assert history.audit().first_break is None
    assert "heads" in [one.check for one in _reported(history, raw)]


def _reported(history, raw):
    """Return the warnings and breaks of an audit that knows the true head."""
    last = json.loads(raw.splitlines()[-1])
    known = KnownHead(last["seq"], last["hash"], "a note on paper")
    found = history.audit(heads=[known]).findings
    return [one for one in found if one.severity in ("warning", "broken")]


@pytest.mark.slow
def test_ten_times_the_entries_are_ten_times_the_work(history):
    """An audit is something people run every day."""
    first = history.entries()
    scores = {"cohort": "dev", "reference": 1, "prompt_digest": "x"}

    def work(number):
        many = [
            replace(first[3], action="evaluated", payload={**scores, "run": str(n)})
            for n in range(number)
        ]
        history.write(rehashed([*first, *many], 7))
        with open_store(history.workspace):
            assert len(history.audit().entries) == number + 6
            return count_calls(history.audit)

    assert work(200) * 15 > work(2000)


def test_lines_in_any_order_are_no_more_work_than_their_number(history):
    """Whoever wrecks a ledger cannot make its audit hang."""
    first = history.entries()

    def work(number):
        many = [replace(first[3], subject=f"tiny@v{n}") for n in range(number)]
        history.write(rehashed([*first, *many], 7))
        lines = history.path.read_bytes().splitlines(keepends=True)
        Random(7).shuffle(lines)
        history.path.write_bytes(b"".join(lines))
        ledger = read_lines(history.path)
        assert len(check_chain(ledger)) > 0.9 * number
        return count_calls(lambda: check_chain(ledger))

    assert work(100) * 15 > work(1000)


@pytest.mark.parametrize("number", ["2", None, True, 2.0, "two"])
def test_a_reference_without_a_whole_number_is_passed_over(history, number):
    """It was entered by hand; the versions beside it are still found."""
    history.record("cohort_added", "dev", {"role": "dev"})
    sound = {"cohort": "dev", "number": 1, "digest": "a"}
    history.record("reference_revised", "dev:ref1", sound)
    by_hand = {"cohort": "dev", "number": number, "digest": "b"}
    history.record("reference_revised", "dev:ref2", by_hand)
    record = find_cohort(tuple(history.entries()), "dev")
    assert record.added == {"role": "dev"}
    assert record.references == {1: sound}

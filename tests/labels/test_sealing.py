"""Labels of a holdout lie encrypted, and every way to them asks for an opening."""

import base64
import dataclasses
import errno
import hashlib
import hmac
import re
import shutil
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from loop.core.digests import digest_bytes, framed
from loop.core.errors import DataError, SealedError, StoreError, WriteError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.records import Mark
from loop.labels.ballots import read_cohort_votes, read_turnout, votes_path
from loop.labels.cohort import CohortRole, read_cohort, read_record
from loop.labels.dry_run import VotesFile, dry_run_votes
from loop.labels.holdout import (
    Retirement,
    label_files,
    replaced_files,
    retire_holdout,
    seal_holdout,
)
from loop.labels.reference import (
    correct_reference,
    edited_references,
    list_references,
    read_reference,
    reference_path,
    version_event,
)
from loop.labels.sealing import (
    Opening,
    WordSeal,
    is_digest_of,
    label_digest,
    list_openings,
    open_key,
    remove_file,
    sealed_path,
    unseal,
    vault_key,
    write_labels,
)
from loop.labels.votes import import_votes, replace_votes

ACTOR = Actor(name="Dr. Example")
CASES = [[f"c{n}", f"Made-up text {n}.", f"{n % 2}"] for n in range(6)]
HEADER = ["case_id", "text", "edema"]
VOTES = [["reader", "case_id", "label", "value"]]


def ballots(reader, word, cases=CASES):
    """Return lines of one reader who says the same of every case."""
    return [[reader, case[0], "edema", word] for case in cases]


@pytest.fixture
def held(take, write_csv, workspace):
    """Import a holdout with label columns."""
    take(write_csv([HEADER, *CASES]), "held", role="holdout")
    return read_cohort(workspace, "held")


@pytest.fixture
def vote(workspace, held, taxonomy, write_csv):
    """Return a function that adds votes to the holdout."""

    def run(*rows, do=import_votes):
        path = write_csv([*VOTES, *rows], "votes.csv")
        return do(workspace, held, path, taxonomy, need=None, actor=ACTOR)

    return run


def opened(workspace, **changes):
    """Record an opening of the holdout, and return what names it."""
    record = read_record(workspace, "held")
    payload = {
        "cohort": "held",
        "cohort_digest": record.added["cohort_digest"],
        "reference_digest": record.newest_digest,
        "prompt_digest": "p" * 64,
        "candidate": "k" * 64,
        **changes,
    }
    event = Event(
        action="holdout_opened", subject="held", reason="a test", payload=payload
    )
    entry = append_event(workspace.ledger, event, ACTOR)
    return Opening("held", entry.seq, entry.hash, "k" * 64)


def plain_files(workspace):
    """Return every file that says a label in the open; texts say none here."""
    places = (workspace.cohorts, workspace.private)
    found = (path for place in places for path in place.rglob("*") if path.is_file())
    return [path for path in found if re.search(rb"present|absent", path.read_bytes())]


def test_an_imported_holdout_has_no_plain_label(workspace, held):
    """The reference is there, with the digest of its plain text, and says nothing."""
    assert list_references(workspace, "held") == (1,)
    assert not reference_path(workspace, "held", 1).exists()
    assert edited_references(workspace, "held") == ()
    assert plain_files(workspace) == []


def test_the_key_is_for_its_owner_alone(workspace, held):
    """Whoever can read the key can read the labels."""
    assert stat.S_IMODE(vault_key(workspace).stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.keys.stat().st_mode) == 0o700
    shutil.rmtree(workspace.keys)
    open_key(workspace)
    assert stat.S_IMODE(vault_key(workspace).stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.keys.stat().st_mode) == 0o700


def test_a_key_that_others_may_read_opens_nothing(workspace, held):
    """What it seals may be known by now: whoever goes on must know that."""
    vault_key(workspace).chmod(0o640)
    with pytest.raises(DataError, match="may be read by others"):
        unseal(workspace, reference_path(workspace, "held", 1))


def test_nothing_reads_a_holdout_without_an_opening(workspace, held, vote, taxonomy):
    """One refusal, whatever is asked for."""
    vote(*ballots("A", "present"))
    with pytest.raises(SealedError, match="ranloop freeze"):
        read_reference(workspace, "held")
    with pytest.raises(SealedError, match="ranloop cohort retire held"):
        read_cohort_votes(workspace, held, taxonomy)
    with pytest.raises(SealedError):
        correct_reference(
            workspace, held, {("c0", "edema"): Mark.PRESENT}, actor=ACTOR, reason="no"
        )


def test_an_opening_in_the_ledger_opens_reference_and_votes(
    workspace, held, vote, taxonomy
):
    """What comes out is what was imported."""
    vote(*ballots("A", "present"))
    opening = opened(workspace)
    reference = read_reference(workspace, "held", opening=opening)
    assert reference.counts("edema")[Mark.PRESENT] == len(CASES)
    votes = read_cohort_votes(workspace, held, taxonomy, opening=opening)
    assert votes.readers == ("A",)


@pytest.mark.parametrize(
    "changes",
    [
        {"cohort": "other"},
        {"cohort_digest": "0" * 64},
        {"reference_digest": "0" * 64},
        {"candidate": "x" * 64},
    ],
)
def test_an_opening_of_something_else_opens_nothing(workspace, held, changes):
    """Another cohort, other cases, another reference or another candidate."""
    with pytest.raises(SealedError, match="holds no opening"):
        read_reference(workspace, "held", opening=opened(workspace, **changes))


def test_a_made_up_opening_opens_nothing(workspace, held):
    """An opening is what the ledger says, and nothing that a caller says."""
    real = opened(workspace)
    for fake in (
        real._replace(hash="0" * 64),
        real._replace(seq=real.seq - 1),
        real._replace(seq=0),
        real._replace(seq=99),
        real._replace(seq=-1),
    ):
        with pytest.raises(SealedError, match="holds no opening"):
            read_reference(workspace, "held", opening=fake)


def test_an_opening_is_over_with_its_result(workspace, held):
    """Afterwards the recorded result is what there is."""
    opening = opened(workspace)
    event = Event(
        action="holdout_sealed",
        subject="held",
        reason="a test",
        payload={"cohort": "held", "opening": opening.seq},
    )
    append_event(workspace.ledger, event, ACTOR)
    with pytest.raises(SealedError, match="is over"):
        read_reference(workspace, "held", opening=opening)


def test_a_reference_in_plain_is_refused_and_says_what_to_do(workspace, held):
    """A file restored from an earlier ranloop must not be used as it lies there."""
    path = reference_path(workspace, "held", 1)
    path.write_bytes(unseal(workspace, path))
    for opening in (None, opened(workspace)):
        with pytest.raises(DataError, match="ranloop cohort seal"):
            read_reference(workspace, "held", opening=opening)


def test_votes_join_sealed_votes_and_nothing_is_said_of_them(workspace, held, vote):
    """Readers and numbers of votes are told, marks are not."""
    vote(*ballots("A", "present"))
    report = vote(*ballots("B", "absent"))
    assert (report.readers, report.votes) == (("A", "B"), 2 * len(CASES))
    assert (report.sealed, report.marks, report.superseded) == (True, {}, None)
    assert not votes_path(workspace, "held").exists()
    assert plain_files(workspace) == []


def test_replaced_votes_are_kept_sealed(workspace, held, vote):
    """What newer votes took the place of lies in the private folder, sealed too."""
    vote(*ballots("A", "present"))
    vote(*ballots("A", "absent"), do=replace_votes)
    kept = list((workspace.private / "replaced").iterdir())
    assert [path.suffix for path in kept] == [".sealed"]
    assert plain_files(workspace) == []


def test_the_same_votes_again_make_no_version(workspace, held, vote):
    """A command that was killed can be given again."""
    first = vote(*ballots("A", "present"))
    again = vote(*ballots("A", "present"), do=replace_votes)
    assert again.reference == first.reference


def test_a_guess_of_sealed_votes_is_not_told_right_or_wrong(
    workspace, held, vote, write_csv
):
    """A refusal leaves no trace: guesses could be tried until one is not refused."""
    vote(*ballots("A", "present"))
    said = set()
    for word in ("present", "absent"):
        path = write_csv([*VOTES, *ballots("A", word)], "try.csv")
        with pytest.raises(DataError, match="'A' already voted") as refused:
            vote(*ballots("A", word))
        file = VotesFile("held", path, None, replace=True)
        report = dry_run_votes(workspace, file, actor=ACTOR)
        said.add((str(refused.value), report.replaced))
    ((told, _),) = said
    assert "'A' already voted. Leave these readers out of the file" in told


def test_a_rehearsal_does_not_tell_whether_the_majority_would_change(
    workspace, held, vote, write_csv
):
    """Trying one vote after the other would read the sealed ones out."""
    vote(*ballots("A", "present"), *ballots("B", "present"), *ballots("C", "present"))
    said = set()
    for word in ("present", "absent"):
        path = write_csv([*VOTES, *ballots("C", word)], "try.csv")
        report = dry_run_votes(
            workspace, VotesFile("held", path, None, True), actor=ACTOR
        )
        said.add((report.reference, tuple(report.marks), report.superseded))
    assert len(said) == 1


def test_who_voted_is_no_secret(workspace, held, vote, taxonomy):
    """Publishing must know which cases a reader has votes on already."""
    vote(*ballots("A", "present", CASES[:2]))
    turnout = read_turnout(workspace, held)
    assert turnout.readers == ("A",)
    assert turnout.voted[:, 0].tolist() == [True, True, False, False, False, False]


def test_every_byte_of_a_sealed_file_counts(workspace, held):
    """Flip each one: none goes unnoticed."""
    path = reference_path(workspace, "held", 1)
    raw = sealed_path(path).read_bytes()
    for at in range(0, len(raw), 7 if len(raw) > 500 else 1):
        flipped = bytearray(raw)
        flipped[at] ^= 1
        sealed_path(path).write_bytes(flipped)
        with pytest.raises(DataError):
            unseal(workspace, path)
    for short in (b"", raw[:20], raw[:-1]):
        sealed_path(path).write_bytes(short)
        with pytest.raises(DataError):
            unseal(workspace, path)


def test_a_sealed_file_cannot_stand_for_another(workspace, held, vote):
    """Its place is authenticated with it."""
    vote(*ballots("A", "present"))
    one, two = (reference_path(workspace, "held", number) for number in (1, 2))
    sealed_path(two).write_bytes(sealed_path(one).read_bytes())
    with pytest.raises(DataError, match="belongs to another place"):
        unseal(workspace, two)


def test_the_size_of_a_sealed_file_does_not_tell_how_many_are_present(workspace, held):
    """`present` is a letter longer than `absent`."""
    path = reference_path(workspace, "held", 9)
    sizes = set()
    for word in (b"absent", b"present"):
        write_labels(workspace, path, b"c,e\n" + b"x," + word, sealed=True)
        sizes.add(sealed_path(path).stat().st_size)
    assert len(sizes) == 1


def test_a_lost_key_says_what_is_lost(workspace, held):
    """And what can still be done."""
    vault_key(workspace).unlink()
    with pytest.raises(DataError, match=r"vault.key is not on this machine.*backup"):
        read_reference(workspace, "held", opening=opened(workspace))


def test_another_key_is_told_from_an_edited_file(workspace, held):
    """Restoring the key is the way out, not restoring the file."""
    vault_key(workspace).write_text("ab" * 32 + "\n")
    with pytest.raises(DataError, match="sealed with another key"):
        read_reference(workspace, "held", opening=opened(workspace))


@pytest.mark.parametrize("content", ["", "zz", "ab" * 31])
def test_a_damaged_key_is_refused(workspace, held, content):
    """A shorter key would seal what nobody can open."""
    vault_key(workspace).write_text(content)
    with pytest.raises(DataError, match="Restore it"):
        unseal(workspace, reference_path(workspace, "held", 1))


def unsealed(workspace):
    """Put the labels of the holdout back as an earlier ranloop left them."""
    for path in (reference_path(workspace, "held", 1), votes_path(workspace, "held")):
        if sealed_path(path).is_file():
            path.write_bytes(unseal(workspace, path))
            sealed_path(path).unlink()
    vault_key(workspace).unlink(missing_ok=True)
    digest = digest_bytes(reference_path(workspace, "held", 1).read_bytes())
    cohort = read_cohort(workspace, "held")
    made = version_event(
        cohort.name, cohort.digest, 1, digest, reason="as it was", facts={}
    )
    append_event(workspace.ledger, made, ACTOR)


def test_what_is_recorded_of_sealed_labels_says_nothing_to_who_guesses(workspace, held):
    """Not even to somebody who has all labels but one; retired, anyone can check."""
    raw = unseal(workspace, reference_path(workspace, "held", 1))
    assert digest_bytes(raw) not in workspace.ledger.read_text()
    retire_holdout(workspace, "held", ACTOR, "given up")
    assert digest_bytes(raw) in workspace.ledger.read_text()
    vault_key(workspace).unlink()
    assert read_reference(workspace, "held").digest == digest_bytes(raw)


def test_a_holdout_of_an_earlier_ranloop_can_be_sealed(workspace, held):
    """Plain files go, the sealed ones give the same, and the ledger has their names."""
    unsealed(workspace)
    made = seal_holdout(workspace, "held", ACTOR, "a new ranloop")
    assert made.files == ("labels/cohorts/held/reference/v1.csv",)
    assert plain_files(workspace) == []
    last = read_ledger(workspace.ledger)[-1]
    assert (last.action, list(last.payload["files"])) == (
        "holdout_sealed",
        list(made.files),
    )
    assert read_reference(workspace, "held", opening=opened(workspace)).number == 1


def test_sealing_twice_changes_nothing(workspace, held):
    """The second time nothing lies in plain."""
    unsealed(workspace)
    seal_holdout(workspace, "held", ACTOR, "a new ranloop")
    before = workspace.ledger.read_bytes()
    assert seal_holdout(workspace, "held", ACTOR, "once more").files == ()
    assert workspace.ledger.read_bytes() == before


def test_sealing_that_was_killed_before_the_plain_file_went_can_be_ended(
    workspace, held
):
    """Sealed and recorded, and the plain file still there: it goes now, once."""
    unsealed(workspace)
    path = reference_path(workspace, "held", 1)
    raw = path.read_bytes()
    seal_holdout(workspace, "held", ACTOR, "a new ranloop")
    path.write_bytes(raw)
    entries = len(read_ledger(workspace.ledger))
    assert seal_holdout(workspace, "held", ACTOR, "again").files
    assert not path.exists()
    assert len(read_ledger(workspace.ledger)) == entries


def test_an_edited_reference_is_not_sealed(workspace, held):
    """Sealed, nobody would see any more why it is refused."""
    unsealed(workspace)
    path = reference_path(workspace, "held", 1)
    path.write_bytes(path.read_bytes().replace(b"present", b"absent"))
    with pytest.raises(DataError, match="not what the ledger recorded"):
        seal_holdout(workspace, "held", ACTOR, "a new ranloop")
    assert path.exists()


def test_labels_of_a_cohort_that_a_holdout_replaced_are_sealed_too(
    workspace, take, write_csv
):
    """The same cases lay open before; what is kept of them is not forgotten."""
    take(write_csv([HEADER, *CASES]), "held", role="dev")
    take(write_csv([HEADER, *CASES]), "held", role="holdout", replace=True)
    assert plain_files(workspace) != []
    assert len(seal_holdout(workspace, "held", ACTOR, "re-roled").files) == 1
    assert plain_files(workspace) == []


def test_a_retired_holdout_is_a_development_cohort(workspace, held, vote, taxonomy):
    """Its labels are open, and the ledger says since when and how often it opened."""
    vote(*ballots("A", "present"))
    vote(*ballots("A", "absent"), do=replace_votes)
    opened(workspace)
    made = retire_holdout(workspace, "held", ACTOR, "used up")
    assert made.openings == 1
    assert read_cohort(workspace, "held").role == "dev"
    assert read_reference(workspace, "held").counts("edema")[Mark.ABSENT] == len(CASES)
    cohort = read_cohort(workspace, "held")
    assert read_cohort_votes(workspace, cohort, taxonomy).count == len(CASES)
    assert not list(workspace.root.rglob("*.sealed"))
    replaced = next((workspace.private / "replaced").iterdir())
    assert stat.S_IMODE(replaced.stat().st_mode) == 0o600


def test_a_retirement_that_was_killed_can_be_ended(workspace, held):
    """Recorded, and the files are as they were: nothing is read until it is ended."""
    path = reference_path(workspace, "held", 1)
    about = path.parents[1] / "cohort.yaml"
    sealed, text = sealed_path(path).read_bytes(), about.read_bytes()
    retire_holdout(workspace, "held", ACTOR, "used up")
    for made, raw in ((sealed_path(path), sealed), (about, text)):
        made.write_bytes(raw)
    path.unlink()
    entries = len(read_ledger(workspace.ledger))
    with pytest.raises(DataError, match=r"cohort retire .* --why REASON` again"):
        read_reference(workspace, "held")
    retire_holdout(workspace, "held", ACTOR, "used up")
    assert read_reference(workspace, "held").number == 1
    assert len(read_ledger(workspace.ledger)) == entries


def test_a_role_edited_by_hand_opens_nothing(workspace, held, vote, taxonomy):
    """The ledger says what a cohort is."""
    vote(*ballots("A", "present"))
    about = reference_path(workspace, "held", 1).parents[1] / "cohort.yaml"
    about.write_text(about.read_text().replace("role: holdout", "role: dev"))
    with pytest.raises(SealedError):
        read_reference(workspace, "held")
    with pytest.raises(SealedError):
        read_cohort_votes(
            workspace, dataclasses.replace(held, role=CohortRole.DEV), taxonomy
        )


@pytest.mark.parametrize("act", [seal_holdout, retire_holdout])
def test_only_a_holdout_is_sealed_or_retired_and_only_with_a_reason(
    workspace, held, take, write_csv, act
):
    """A cohort for development has nothing to hide."""
    take(write_csv([HEADER, ["z1", "Another.", "1"]], "dev.csv"), "dev")
    with pytest.raises(DataError, match="is no holdout"):
        act(workspace, "dev", ACTOR, "why not")
    with pytest.raises(DataError, match="reason is missing"):
        act(workspace, "held", ACTOR, "  ")


def test_votes_of_a_holdout_that_are_gone_are_still_sealed(
    workspace, held, vote, taxonomy
):
    """Nor are votes opened that lie there and were never recorded."""
    with pytest.raises(DataError, match="no readers' votes"):
        read_cohort_votes(workspace, held, taxonomy)
    vote(*ballots("A", "present"))
    sealed_path(votes_path(workspace, "held")).unlink()
    with pytest.raises(SealedError):
        read_cohort_votes(workspace, held, taxonomy)


def test_a_file_that_cannot_be_removed_is_said_with_a_way_out(tmp_path, monkeypatch):
    """Plain labels that stay must not stay in silence."""

    def refuse(*_args):
        raise OSError(errno.EROFS, "Read-only file system")

    path = tmp_path / "plain.csv"
    path.write_text("a")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(WriteError, match=r"cannot write .*plain\.csv"):
        remove_file(path)


def test_a_sealed_word_tells_neither_itself_nor_its_length():
    """The same word is never sealed alike, and every word takes the same room."""
    seal = WordSeal(b"k" * 32)
    place = ("held", "c1", "edema")
    words = ("present", "absent", "uncertain", "x" * 16)
    kept = {word: seal.close(word, place) for word in words}
    assert len({len(one) for one in kept.values()}) == 1
    assert seal.close("present", place) != kept["present"]
    for word, one in kept.items():
        assert word not in one
        assert seal.open(one, place) == word
    assert seal.close("", place) == ""
    assert seal.open("", place) == ""


@pytest.mark.parametrize(
    ("key", "place", "edit"),
    [
        (b"k", ("held", "c2"), lambda kept: kept),
        (b"o", ("held", "c1"), lambda kept: kept),
        (b"k", ("held", "c1"), lambda kept: kept[:-5] + "AAAA="),
        (b"k", ("held", "c1"), lambda kept: kept + "?"),
        (b"k", ("held", "c1"), lambda kept: "sealed:"),
        (b"k", ("hel", "dc1"), lambda kept: kept),
    ],
)
def test_a_word_sealed_elsewhere_or_changed_is_not_opened(key, place, edit):
    """An answer on one case cannot be put in place of another."""
    kept = WordSeal(b"k" * 32).close("present", ("held", "c1"))
    with pytest.raises(StoreError) as told:
        WordSeal(key * 32).open(edit(kept), place)
    assert str(told.value) == (
        "an answer on a holdout cannot be opened: it was changed, or sealed with "
        "another key. Restore the store or .ranloop/keys/vault.key from a backup."
    )


def labels_of(held, vote):
    """Add votes twice, so that there are a reference, votes, and votes before them."""
    vote(*ballots("A", "present"))
    vote(*ballots("A", "absent"), do=replace_votes)
    return held


def test_a_retirement_is_recorded_in_full(workspace, held, vote):
    """How often it was open, and each file by its digest sealed and in plain."""
    labels_of(held, vote)
    opened(workspace)
    opened(workspace, candidate="m" * 64)
    sealed = {path: unseal(workspace, path) for path in label_files(workspace, "held")}
    assert len(sealed) == 5
    made = retire_holdout(workspace, "held", ACTOR, "  used up ")
    places = tuple(path.relative_to(workspace.root).as_posix() for path in sealed)
    assert made == Retirement(cohort="held", openings=2, files=places)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject, entry.reason, entry.actor) == (
        *("holdout_retired", "held", "used up", "Dr. Example"),
    )
    assert entry.payload == {
        "cohort": "held",
        "cohort_digest": held.digest,
        "role": "dev",
        "openings": 2,
        "digests": {
            label_digest(workspace, raw, sealed=True): digest_bytes(raw)
            for raw in sealed.values()
        },
    }
    for path, raw in sealed.items():
        assert path.read_bytes() == raw
    with pytest.raises(DataError, match="'held' is no holdout: its role is dev"):
        retire_holdout(workspace, "held", ACTOR, "again")


@pytest.mark.parametrize("left", ["file", "role"])
def test_a_retirement_of_which_one_thing_is_left_can_be_ended(workspace, held, left):
    """Killed before the last file was opened, or before the role was written."""
    path = reference_path(workspace, "held", 1)
    about = path.parents[1] / "cohort.yaml"
    kept, text = sealed_path(path).read_bytes(), about.read_bytes()
    retire_holdout(workspace, "held", ACTOR, "used up")
    plain, entries = path.read_bytes(), len(read_ledger(workspace.ledger))
    if left == "file":
        sealed_path(path).write_bytes(kept)
    else:
        about.write_bytes(text)
    made = retire_holdout(workspace, "held", ACTOR, "used up")
    assert made.files == (
        (path.relative_to(workspace.root).as_posix(),) if left == "file" else ()
    )
    assert path.read_bytes() == plain and not sealed_path(path).exists()
    assert read_cohort(workspace, "held").role == "dev"
    assert len(read_ledger(workspace.ledger)) == entries


def test_files_that_are_sealed_and_plain_must_say_the_same(workspace, held):
    """Which of the two is right is for a person to say; neither goes."""
    path = reference_path(workspace, "held", 1)
    raw = unseal(workspace, path)
    write_labels(workspace, path, raw + b"x", sealed=True)
    path.write_bytes(raw)
    entries = len(read_ledger(workspace.ledger))
    with pytest.raises(DataError) as refused:
        seal_holdout(workspace, "held", ACTOR, "why")
    assert str(refused.value) == (
        f"{path} and v1.csv.sealed beside it differ. Move away the one that is not as "
        "recorded, and seal then."
    )
    assert path.is_file() and sealed_path(path).is_file()
    assert len(read_ledger(workspace.ledger)) == entries


def test_only_files_of_labels_are_labels(workspace, held, vote):
    """Of this cohort, by their names; what lies beside them is nobody's to seal."""
    labels_of(held, vote)
    folder = reference_path(workspace, "held", 1).parents[1]
    attic = workspace.private / "replaced"
    before = label_files(workspace, "held")
    moved = next(path.name for path in before if path.parent == attic)
    for path in (
        folder / "reference" / "v1.csv.bak",
        folder / "reference" / "notes.csv",
        folder / "votes.csv.old",
        attic / moved.replace("held-", "unheld-", 1),
        attic / moved.replace("held-", "held-more-", 1),
        attic / "held-votes-0123.csv",
    ):
        path.write_text("present")
    assert label_files(workspace, "held") == before
    (folder / "reference" / "v9.csv").write_text("present")
    assert folder / "reference" / "v9.csv" in label_files(workspace, "held")


def test_what_a_holdout_replaced_is_known_by_its_name_and_time(workspace, held):
    """Labels, and words of findings; of no other cohort, and no folder by hand."""
    attic = workspace.private / "replaced"
    mine = attic / "held-20260102T030405Z-abc"
    names = ("cohort/reference/v1.csv", "cohort/votes.csv.sealed", "held-1.jsonl")
    for folder in (mine, attic / "held-more-20260102T030405Z-abc", attic / "held-x"):
        for name in (*names, "texts.jsonl", "cohort/cases.csv", "other-1.jsonl"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("present")
    assert replaced_files(workspace, "held") == (
        mine / "cohort" / "reference" / "v1.csv",
        mine / "cohort" / "votes.csv",
        mine / "held-1.jsonl",
    )


@pytest.mark.parametrize(
    ("length", "room"), [(0, 4096), (4088, 4096), (4089, 8192), (8185, 16384)]
)
def test_a_sealed_file_has_the_form_that_a_backup_holds(workspace, length, room):
    """Files of today must open with every later release; their room is a power of 2."""
    path = reference_path(workspace, "held", 1)
    raw = b"x" * length
    write_labels(workspace, path, raw, sealed=True)
    key, data = open_key(workspace), sealed_path(path).read_bytes()
    mark = hashlib.sha256(b"ranloop vault key" + key).hexdigest()[:16]
    head = f"ranloop-sealed/1 {mark}\n".encode()
    assert data.startswith(head)
    nonce, text = data[len(head) : len(head) + 12], data[len(head) + 12 :]
    place = path.relative_to(workspace.root).as_posix().encode()
    padded = AESGCM(key).decrypt(nonce, text, head + place)
    assert padded == (length.to_bytes(8, "big") + raw).ljust(room, b"\0")
    assert unseal(workspace, path) == raw


def test_a_sealed_word_has_the_form_that_the_store_holds():
    """A nonce, then the word in sixteen bytes, for one place."""
    place = ("held", "c1", "edema")
    kept = WordSeal(b"k" * 32).close("absent", place)
    data = base64.b64decode(kept.removeprefix("sealed:"), validate=True)
    assert AESGCM(b"k" * 32).decrypt(data[:12], data[12:], framed(place)) == (
        b"absent          "
    )


def test_a_digest_of_sealed_labels_is_made_with_the_key(workspace):
    """Ledgers hold it for years: it must come out the same."""
    key = open_key(workspace)
    keyed = hmac.new(key, b"ranloop labels/1 c,e", "sha256").hexdigest()
    plain = hashlib.sha256(b"c,e").hexdigest()
    assert label_digest(workspace, b"c,e", sealed=True) == keyed
    assert label_digest(workspace, b"c,e", sealed=False) == plain
    told = [is_digest_of(workspace, one, b"c,e") for one in (keyed, plain, "f", None)]
    assert told == [True, True, False, False]
    vault_key(workspace).unlink()
    told = [is_digest_of(workspace, one, b"c,e") for one in (keyed, plain)]
    assert told == [False, True]


def test_a_file_that_is_no_sealed_one_is_edited_and_no_other_key_is_asked_for(
    workspace, held
):
    """Something else, or a file cut off in its head: no key would open it."""
    path = reference_path(workspace, "held", 1)
    raw = sealed_path(path).read_bytes()
    head = len(b"ranloop-sealed/1 ") + 16 + 1
    for content in (b"", raw[:20], raw[:head], raw[: head + 12], b"words" * 99):
        sealed_path(path).write_bytes(content)
        with pytest.raises(DataError) as told:
            unseal(workspace, path)
        assert str(told.value) == (
            f"{sealed_path(path)} was edited, or belongs to another place: its seal "
            "does not hold. Restore it from version control or a backup."
        )


def test_openings_are_those_of_a_cohort_and_of_the_same_cases(workspace, held):
    """Cases that were imported under another name were opened all the same."""
    cases = read_record(workspace, "held").added["cohort_digest"]
    other = "0" * 64
    wanted = [
        opened(workspace).seq,
        opened(workspace, cohort_digest=other).seq,
        opened(workspace, cohort="again").seq,
    ]
    opened(workspace, cohort="again", cohort_digest=other)
    event = Event(
        action="holdout_sealed",
        subject="held",
        reason="a test",
        payload={"cohort": "held", "cohort_digest": cases, "opening": wanted[0]},
    )
    append_event(workspace.ledger, event, ACTOR)
    entries = read_ledger(workspace.ledger)
    assert [one.seq for one in list_openings(entries, "held", cases)] == wanted
    assert list_openings(entries, "none", "1" * 64) == ()

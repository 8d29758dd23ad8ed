"""Whoever reads the ledger's releases reads the same: there is one replay."""

import shutil

import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import ConflictError, DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.release.audit.audit import audit_workspace
from loop.release.facts import HeadFacts, SupersededFacts
from loop.release.load import load_release
from loop.release.released import (
    current_release,
    find_in,
    find_release,
    find_unrecorded,
    freezing,
    frozen_payload,
    holds_head,
    name_in,
    record_release,
    release_folder,
    replay_releases,
    unknown_release,
    withdraw_release,
    write_release,
)
from loop.release.statement import ENVELOPE
from tests.release.audit.scenes import entries_of
from tests.release.small import NAME, VERSION, at, freeze_small, read_files, typed

ACTOR = Actor(name="C. Other")


@pytest.fixture
def frozen(workspace):
    """Freeze the small release in a workspace."""
    freeze_small(workspace)
    return workspace


def record(workspace, action, payload):
    """Append an entry about the small version."""
    event = Event(action=action, subject=VERSION.ref, reason="why", payload=payload)
    return append_event(workspace.ledger, event, ACTOR)


def test_a_release_frozen_again_by_hand_stays_what_it_was(frozen):
    """The first entry counts, so that a second one cannot undo a withdrawal."""
    first = find_release(frozen, NAME)
    withdrawal = record(frozen, "withdrawn", {"release": NAME})
    record(frozen, "frozen", {"release": NAME, "digest": "0" * 64})
    found = find_release(frozen, NAME)
    assert (found.entry, found.withdrawal) == (first.entry, withdrawal)
    assert current_release(frozen, VERSION.name) is None
    with pytest.raises(DataError, match=r"was withdrawn by C\. Other"):
        load_release(frozen, NAME)
    assert "frozen again" in str(audit_workspace(frozen).findings)


def test_an_entry_that_says_little_is_still_read(frozen):
    """A ledger written by hand is for the audit to judge, not to fall over."""
    entry = record(frozen, "frozen", {})
    assert name_in(entry) == NAME
    (alone,) = replay_releases([entry])
    assert (alone.name, alone.digest, alone.statement) == (NAME, "", "")


@pytest.mark.parametrize(
    "name", ["", "tiny", "../tiny-v1", "tiny-v0", "tiny-v1/", "T-v1"]
)
def test_no_path_is_made_of_what_is_no_name(workspace, name):
    """A name that came from outside reaches no file."""
    with pytest.raises(DataError, match="not the name of a release"):
        release_folder(workspace, name)


def test_a_head_is_held_at_its_own_place_only(frozen):
    """A hash further on is not the head that was named."""
    entries = read_ledger(frozen.ledger)
    named = HeadFacts(seq=2, head=entries[1].hash)
    assert holds_head(entries, named)
    assert not holds_head(entries[:1], named)
    assert not holds_head(entries, HeadFacts(seq=1, head=entries[1].hash))


def told(*entries):
    """Return the releases of entries, each as (name, seq, withdrawn, superseded)."""
    return [
        (
            one.name,
            one.entry.seq,
            one.withdrawal.seq if one.withdrawal else None,
            one.superseded_by,
        )
        for one in replay_releases(entries_of(*entries))
    ]


def frozen_as(name, before="", ref=""):
    """Return what is recorded of a release."""
    subject = ref or name.replace("-v", "@v")
    return ("frozen", subject, {"release": name, "supersedes": before})


def withdrawn(name):
    """Return what is recorded of a withdrawal."""
    return ("withdrawn", name.replace("-v", "@v"), {"release": name})


def test_releases_are_told_in_the_order_of_their_entries():
    """Each with the first entry of its kind; what fits nothing is passed over."""
    assert told() == []
    assert told(
        withdrawn("b-v1"),
        frozen_as("b-v1"),
        ("exported", "b@v1", {"release": "b-v1"}),
        frozen_as("a-v1"),
        frozen_as("b-v2", "b-v1"),
        frozen_as("b-v1"),
        withdrawn("a-v1"),
        withdrawn("a-v1"),
        frozen_as("b-v3", "b-v9"),
        frozen_as("b-v4", "b-v2"),
    ) == [
        ("b-v1", 2, None, "b-v2"),
        ("a-v1", 4, 7, ""),
        ("b-v2", 5, None, "b-v4"),
        ("b-v3", 9, None, ""),
        ("b-v4", 10, None, ""),
    ]


def test_a_release_says_what_its_entry_says():
    """Its version, its digest and its statement; its name by the version at least."""
    payload = {"digest": "d", "statement_sha256": "s"}
    (one,) = replay_releases(entries_of(("frozen", "b@v7", payload)))
    assert (one.name, one.ref, one.digest, one.statement) == ("b-v7", "b@v7", "d", "s")
    assert find_in([one], "b-v7") is one
    assert find_in([one], "b-v8") is None
    said = str(unknown_release("x" * 90, [one, one]))
    assert said == (
        f"there is no release {'x' * 80} (known: b-v7, b-v7). Correct the name, or "
        "make one with `ranloop freeze`."
    )
    assert "(known: none)" in str(unknown_release("x", []))


def test_in_use_is_the_newest_that_was_not_withdrawn(workspace):
    """Of that prompt alone."""
    for action, subject, payload in (
        frozen_as("a-v1"),
        frozen_as("a-v2"),
        frozen_as("ab-v1"),
        frozen_as("a-v3"),
        withdrawn("a-v3"),
    ):
        event = Event(action=action, subject=subject, reason="-", payload=payload)
        append_event(workspace.ledger, event, ACTOR)
    assert current_release(workspace, "a").name == "a-v2"
    assert current_release(workspace, "ab").name == "ab-v1"
    assert current_release(workspace, "b") is None
    assert find_release(workspace, "a-v3").withdrawal.seq == 6


def test_a_withdrawal_is_recorded_as_it_was_given(frozen):
    """By whom, why, and of which statement; once."""
    who = Actor(name="Dr. Other", role="approver")
    first = find_release(frozen, NAME)
    withdraw_release(frozen, NAME, who, "  misses fractures ")
    entry = read_ledger(frozen.ledger)[-1]
    said = (entry.action, entry.subject, entry.reason, entry.meaning, entry.actor)
    assert said == (
        *("withdrawn", VERSION.ref, "misses fractures", "responsibility", "Dr. Other"),
    )
    assert entry.payload == {"release": NAME, "statement_sha256": first.statement}
    with pytest.raises(
        ConflictError, match="tiny-v1 was withdrawn already: misses fractures"
    ):
        withdraw_release(frozen, NAME, who, "again")
    assert read_ledger(frozen.ledger)[-1] == entry


@pytest.mark.parametrize(
    ("name", "role", "why", "said"),
    [
        (NAME, "approver", " ", "withdrawing a release needs a reason"),
        (NAME, "reader", "bad", "Dr. Other acts as reader. Use --role approver"),
        ("tiny-v9", "approver", "bad", r"no release tiny-v9 \(known: tiny-v1\)"),
    ],
)
def test_what_cannot_be_withdrawn_is_refused(frozen, name, role, why, said):
    """And nothing is recorded."""
    before = frozen.ledger.read_bytes()
    with pytest.raises(DataError, match=said):
        withdraw_release(frozen, name, Actor(name="Dr. Other", role=role), why)
    assert frozen.ledger.read_bytes() == before


def test_the_ledger_names_all_that_a_release_is_known_by(frozen):
    """From its facts, and from what was signed."""
    facts = typed(load_release(frozen, NAME).facts)
    wanted = {
        "release": NAME,
        "digest": VERSION.digest,
        "statement_sha256": "s",
        "head": facts.ledger.head,
        "verdict": facts.claim.verdict.value,
        "override": "",
        "development_only": False,
        "supersedes": "",
    }
    assert frozen_payload(facts, "s") == wanted
    older = SupersededFacts(name="tiny-v0", statement_sha256="a" * 64, ref="tiny@v0")
    frozen_facts = facts.frozen.model_copy(update={"override": "known"})
    other = facts.model_copy(
        update={
            "supersedes": older,
            "frozen": frozen_facts,
            "development_only": True,
        }
    )
    assert frozen_payload(other, "s") == wanted | {
        "supersedes": "tiny-v0",
        "override": "known",
        "development_only": True,
    }


@pytest.mark.parametrize("override", ["", "known"])
def test_a_release_is_recorded_with_its_override_before_it(frozen, override):
    """Two entries of one write, or one."""
    facts = load_release(frozen, NAME).facts
    changed = facts.frozen.model_copy(update={"override": override})
    facts = facts.model_copy(update={"frozen": changed})
    before = len(read_ledger(frozen.ledger))
    steps = []
    record_release(frozen, facts, ACTOR, now=lambda: at(15), reached=steps.append)
    added = read_ledger(frozen.ledger)[before:]
    statement = digest_bytes((frozen.releases / NAME / ENVELOPE).read_bytes())
    assert added[-1].payload == frozen_payload(facts, statement)
    said = [(one.action, one.subject, one.reason, one.meaning) for one in added]
    release = ("frozen", VERSION.ref, "a small release", "approval")
    if override:
        assert said == [("override", VERSION.ref, "known", "approval"), release]
        assert added[0].payload == {
            "release": NAME,
            "verdict": facts.claim.verdict.value,
        }
    else:
        assert said == [release]
    assert steps == ["recorded"]


def test_a_release_that_a_kill_left_is_found_again(frozen):
    """Its facts, where its folder holds; what is recorded needs no completing."""
    assert find_unrecorded(frozen, NAME) is None
    assert find_unrecorded(frozen, "tiny-v9") is None
    lines = frozen.ledger.read_bytes().splitlines(keepends=True)
    frozen.ledger.write_bytes(b"".join(lines[:-1]))
    facts = find_unrecorded(frozen, NAME)
    assert (facts.release.name, facts.release.digest) == (NAME, VERSION.digest)
    head = facts.ledger.seq
    frozen.ledger.write_bytes(b"".join(lines[: head - 1]))
    with pytest.raises(DataError, match="ledger it ships is not a part of the worksp"):
        find_unrecorded(frozen, NAME)
    frozen.ledger.write_bytes(b"".join(lines[:-1]))
    card = frozen.releases / NAME / "card.md"
    card.write_bytes(card.read_bytes() + b" ")
    with pytest.raises(DataError, match=r"files: card\.md was changed.*Move it away"):
        find_unrecorded(frozen, NAME)


def test_a_freeze_has_the_workspace_alone_and_leaves_nothing(workspace):
    """What a killed one left is gone, and a second one at once is refused."""
    left = workspace.open_private() / "freezing" / "old"
    left.mkdir(parents=True)
    with freezing(workspace) as staging:
        assert list(staging.iterdir()) == []
        assert staging.stat().st_mode & 0o777 == 0o700
        (staging / "x").write_text("x")
        with pytest.raises(ConflictError), freezing(workspace):
            pass
        assert (staging / "x").is_file()
    assert not staging.exists()


def test_files_of_a_release_are_written_all_or_none(frozen, tmp_path):
    """Readable by all; never over another, and never one that does not hold."""
    files = {**read_files(frozen.releases / NAME)}
    files[ENVELOPE] = (frozen.releases / NAME / ENVELOPE).read_bytes()
    steps = []
    staging = tmp_path / "staging"
    with pytest.raises(ConflictError, match="exists already, and a release is never"):
        write_release(frozen, staging, NAME, files, steps.append)
    assert steps == ["staged"]
    shutil.rmtree(frozen.releases / NAME)
    shutil.rmtree(staging)
    spoilt = files | {"card.md": b"other"}
    with pytest.raises(
        DataError, match=r"not pass its own checks: files: card\.md was"
    ):
        write_release(frozen, staging, NAME, spoilt, steps.append)
    assert not (frozen.releases / NAME).exists()
    shutil.rmtree(staging)
    folder = write_release(frozen, staging, NAME, files, steps.append)
    assert steps == ["staged", "staged", "staged", "published"]
    assert folder == frozen.releases / NAME
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o755 if path.is_dir() else 0o644), path
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found == set(files)

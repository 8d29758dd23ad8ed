"""Cohorts, protocol, runs, openings and releases are held against the ledger."""

import re
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest

from loop.core.check_findings import broken, note, ok
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.evaluate.recording import BASIS
from loop.release.audit.audit import audit_workspace
from loop.release.audit.known_heads import KnownHead
from loop.release.audit.releases import check_releases, known_heads, release_head
from loop.release.folder import LARGEST
from tests.conftest import shipped_workspace
from tests.evaluate.tried_scenes import EDITOR, Trials
from tests.release.small import freeze_small


@pytest.fixture
def trials(workspace, tmp_path):
    """Return a workspace with a cohort and a version that was run and scored."""
    made = Trials(workspace, tmp_path)
    made.cohort()
    made.commit(made.version(1, "effusion"))
    made.evaluate(made.run("tiny@v1"))
    return made


def found(workspace, severity="broken", **options):
    """Return what an audit found, as (check, what)."""
    findings = audit_workspace(workspace, **options).findings
    return [(one.check, one.what) for one in findings if one.severity == severity]


def test_everything_that_can_be_checked_is_and_holds(trials):
    """The account says of each kind of thing how many were looked at."""
    assert found(trials.workspace) == []
    assert found(trials.workspace, "warning") == []
    held = dict(found(trials.workspace, "ok"))
    assert held["evaluations"] == "1 of 1 scored runs give the recorded counts"
    assert held["references"] == "dev:ref1: as recorded"
    assert held["cohorts"] == "dev: 20 texts have their digests"
    assert held["protocol"].startswith("is the one registered last")


def test_an_audit_writes_nothing(trials):
    """Whoever looks must leave no trace in what they look at."""
    shutil.rmtree(trials.workspace.private)
    files = trials.workspace.root.rglob("*")
    before = {path: path.stat().st_mtime_ns for path in files}
    found(trials.workspace)
    files = trials.workspace.root.rglob("*")
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_a_broken_chain_hides_no_other_check(trials):
    """One edited line must not keep an auditor from learning the rest."""
    path = trials.workspace.ledger
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"{}\n", *lines[1:]]))
    reference = trials.workspace.cohorts / "dev" / "reference" / "v1.csv"
    reference.write_bytes(reference.read_bytes().replace(b"absent", b"present", 1))
    checks = [check for check, _ in found(trials.workspace)]
    assert checks == ["chain", "versions", "references"]
    reference.unlink()
    assert "references" in [check for check, _ in found(trials.workspace)]


def test_counts_are_made_again_even_beside_a_broken_chain(trials):
    """The runs are in the store, whatever happened to the ledger."""
    path = trials.workspace.ledger
    path.write_bytes(path.read_bytes() + b"{}\n")
    held = dict(found(trials.workspace, "ok"))
    assert held["evaluations"] == "1 of 1 scored runs give the recorded counts"


def test_outcomes_changed_in_the_store_give_other_counts(trials):
    """Private answers are no part of the ledger; the counts they give are."""
    with sqlite3.connect(trials.workspace.store) as connection:
        rows = connection.execute(
            "UPDATE outcomes SET fields = (SELECT fields FROM outcomes WHERE "
            "item_id = 'n0') WHERE item_id = 'e0'"
        )
        assert rows.rowcount
    connection.close()
    (answers, counts) = found(trials.workspace)
    assert answers[0] == counts[0] == "evaluations"
    assert "in the store are not those that entry" in answers[1]
    assert "gives other counts than entry" in counts[1]


def test_the_protocol_of_a_new_workspace_was_not_changed_by_anybody(tmp_path):
    """It is the one that the shipped ledger registered; any other file is a change."""
    fresh = shipped_workspace(tmp_path / "fresh")
    assert not found(fresh, "warning")
    (said,) = [what for check, what in found(fresh, "ok") if check == "protocol"]
    assert said.startswith("is the one registered last")
    text = fresh.protocol.read_text("utf-8")
    fresh.protocol.write_text(text.replace("answers: wrong", "answers: excluded"))
    ((check, what),) = found(fresh, "warning")
    assert (check, what) == ("protocol", "was changed since it was registered")


def test_a_score_by_another_policy_than_registered_is_found(trials):
    """Nobody may score under one protocol and register another."""
    last = [
        one for one in read_ledger(trials.workspace.ledger) if one.action == "evaluated"
    ][-1]
    signature = last.payload["signature"].replace("unc:wrong", "unc:excl")
    event = Event(
        action="evaluated",
        subject=last.subject,
        reason="again",
        payload={**last.payload, "signature": signature},
    )
    append_event(trials.workspace.ledger, event, EDITOR)
    ((check, what),) = found(trials.workspace)
    assert check == "evaluations"
    assert "by another policy for uncertain answers than registered" in what


def test_what_is_not_on_this_machine_is_a_note(trials):
    """Texts and runs are private: a checkout without them is no broken history."""
    shutil.rmtree(trials.workspace.private)
    assert found(trials.workspace) == []
    notes = dict(found(trials.workspace, "note"))
    assert notes["cohorts"] == "dev: its texts are not on this machine"
    assert "none of 1 scored runs is on this machine" in notes["evaluations"]
    shutil.rmtree(trials.workspace.cohorts / "dev")
    assert found(trials.workspace) == []
    notes = dict(found(trials.workspace, "note"))
    assert notes["cohorts"] == "recorded, and not on this machine: dev"


@pytest.mark.parametrize(
    ("file", "check"),
    [
        ("cases.csv", "cohorts"),
        ("cohort.yaml", "cohorts"),
        ("reference/v1.csv", "references"),
    ],
)
def test_an_edited_file_of_a_cohort_is_found(trials, file, check):
    """Numbers cannot be measured again on other cases or marks."""
    path = trials.workspace.cohorts / "dev" / file
    path.write_bytes(path.read_bytes().replace(b"e0", b"e9").replace(b"dev", b"xyz"))
    assert found(trials.workspace)[0][0] == check


def test_a_reference_that_nobody_recorded_is_found(trials):
    """A second reference beside the first could be scored against."""
    path = trials.workspace.cohorts / "dev" / "reference" / "v1.csv"
    shutil.copy(path, path.with_name("v2.csv"))
    assert ("references", "dev: reference v2.csv is not in the ledger") in found(
        trials.workspace
    )


def test_an_edited_text_is_found_without_being_shown(trials):
    """What a finding says goes into documents: a case's text must not."""
    path = trials.workspace.private / "cases" / "dev.jsonl"
    path.write_text(path.read_text().replace("Clear lungs", "Plain lungs", 1))
    ((check, what),) = found(trials.workspace)
    assert check == "cohorts"
    assert "lungs" not in what.casefold()
    assert ".ranloop/cases/dev.jsonl" in what
    assert str(trials.workspace.root) not in what


def test_a_changed_protocol_is_to_be_looked_at(trials):
    """A claim changed after it was measured is another claim."""
    path = trials.workspace.protocol
    before = path.read_text()
    path.write_text(before + "# less\n")
    assert found(trials.workspace, "warning") == [
        ("protocol", "was changed since it was registered")
    ]
    path.unlink()
    assert ("protocol", "is gone") in found(trials.workspace, "warning")


def test_scores_of_something_else_than_recorded_are_found(trials):
    """Prompt, protocol and reference of a score must have been there before it."""
    payload = {
        "run": "r", "cohort": "dev", "reference": 1, "counts_digest": "c",
        "prompt_digest": "p", "reference_digest": "q", "protocol_digest": "o",
    }  # fmt: skip
    record(trials, "evaluated", "tiny@v1", payload)
    record(trials, "evaluated", "tiny@v5", {**payload, "reference": 7})
    assert [what for _, what in found(trials.workspace)] == [
        "entry 8 scores tiny@v1 with another digest than its commit",
        "entry 8 scores against another reference than the recorded one",
    ]
    odd = [what for _, what in found(trials.workspace, "warning")]
    assert "entry 9 scores tiny@v5, which no entry before it committed" in odd
    assert "entry 9 scores against a reference that was not recorded before" in odd


def record(trials, action, subject, payload):
    """Append an entry."""
    event = Event(action=action, subject=subject, reason="why", payload=payload)
    append_event(trials.workspace.ledger, event, EDITOR)


def test_openings_are_counted_against_the_budget(trials):
    """A holdout opened more often than was allowed is no holdout."""
    record(trials, "cohort_added", "held", {"role": "holdout"})
    record(trials, "gate_decided", "tiny@v1", {"cohort": "held"})
    for number in (1, 2, 2):
        payload = {"cohort": "held", "number": number, "budget": 2}
        record(trials, "holdout_opened", "held", payload)
    record(trials, "holdout_opened", "dev", {"cohort": "dev"})
    whats = [what for check, what in found(trials.workspace) if check == "openings"]
    assert whats == [
        "entry 9 scores holdout held, which was not opened before",
        "entry 12 says it is opening 2 of held; it is 3",
        "entry 12 is opening 3 of held, and 2 are allowed",
        "entry 13 opens dev, which was no holdout then",
    ]


def test_openings_of_the_same_cases_are_counted_under_any_name(trials):
    """The vault counts them so: another name is no new holdout."""
    payload = {"cohort_digest": "d" * 64, "budget": 2}
    for number, name in enumerate(("held", "renamed", "held"), 1):
        record(trials, "cohort_added", name, {"role": "holdout"})
        payload |= {"cohort": name, "number": number}
        record(trials, "holdout_opened", name, payload)
    whats = [what for check, what in found(trials.workspace) if check == "openings"]
    assert whats == ["entry 13 is opening 3 of held, and 2 are allowed"]


def test_a_holdout_that_lies_open_is_to_be_looked_at(trials):
    """Labels anyone may have read do not make an unseen test."""
    path = trials.workspace.cohorts / "dev" / "cohort.yaml"
    path.write_text(path.read_text().replace("role: dev", "role: holdout"))
    entry = next(
        one
        for one in audit_workspace(trials.workspace).entries
        if one.action == "cohort_added"
    )
    record(trials, "cohort_added", "dev", {**entry.payload, "role": "holdout"})
    payload = {"cohort": "dev", "number": 1, "digest": "x"}
    record(trials, "reference_revised", "dev:ref1", payload)
    whats = [what for _, what in found(trials.workspace, "warning")]
    assert "dev:ref1: lies open, although dev is a holdout" in whats


@pytest.fixture
def release(workspace):
    """Return a workspace with a release, and nothing else in its history."""
    workspace.ledger.unlink()
    shutil.rmtree(workspace.prompts / "extractor")
    return workspace, freeze_small(workspace)


def test_a_release_verifies_and_names_who_signed(release):
    """The audit says of each release what `verify` says."""
    workspace, small = release
    assert [one for one in found(workspace) if one[0] == "releases"] == []
    held = [what for check, what in found(workspace, "ok") if check == "releases"]
    assert len(held) == 1 and held[0].startswith("tiny-v1 (entry ")
    assert "A. Author, B. Approver" in held[0]
    heads = [what for check, what in found(workspace, "ok") if check == "heads"]
    assert heads[0].endswith("is the one that release tiny-v1 names")
    assert release_head(small.folder) is not None


def test_an_edited_release_is_found(release):
    """Every file of a release is under its signature."""
    workspace, small = release
    path = small.folder / "schema.json"
    path.write_bytes(path.read_bytes() + b"\n")
    whats = [what for check, what in found(workspace) if check == "releases"]
    assert any("tiny-v1 does not verify" in what for what in whats)


def test_another_statement_than_the_recorded_one_is_found(release):
    """Signed again with a true key, it is still not what was frozen."""
    workspace, small = release
    path = small.folder / "release.dsse.json"
    path.write_bytes(path.read_bytes().rstrip())
    whats = [what for check, what in found(workspace) if check == "releases"]
    assert "tiny-v1 has another signed statement than the recorded one" in whats


def test_a_release_that_is_gone_or_was_never_frozen_is_found(release):
    """Folder and entry belong together."""
    workspace, small = release
    small.folder.rename(small.folder.with_name("tiny-v2"))
    (workspace.releases / ".tiny-v3.x").mkdir()
    whats = [what for check, what in found(workspace) if check == "releases"]
    assert whats == [
        "tiny-v1 was frozen, and its folder is gone",
        "tiny-v2 has no entry in the ledger",
    ]
    notes = dict(found(workspace, "note"))
    assert "left from a freeze that did not end" in notes["releases"]


def releases_told(workspace):
    """Return all that is found of releases."""
    return check_releases(workspace, read_ledger(workspace.ledger))


def spoiled(entry, what):
    """Return what is said of a release that is not as frozen."""
    return broken(
        "releases",
        f"tiny-v1 {what}",
        where=f"reports/releases/tiny-v1, entry {entry.seq}",
        implies="It cannot be used, nor shown as evidence.",
        todo="Restore the folder from version control or a backup.",
        seq=entry.seq,
    )


def frozen_again(workspace, **payload):
    """Write the entry of the release anew, with another payload."""
    lines = workspace.ledger.read_bytes().splitlines(keepends=True)
    entries = read_ledger(workspace.ledger)
    (place,) = (n for n, one in enumerate(entries) if one.action == "frozen")
    workspace.ledger.write_bytes(b"".join(lines[:place]))
    event = Event(
        action="frozen",
        subject=entries[place].subject,
        reason="why",
        payload=entries[place].payload | payload,
    )
    return append_event(workspace.ledger, event, Actor(name="B. Approver"))


def test_a_release_is_held_against_its_entry(release):
    """Its statement, its version and the head that it names, each in its words."""
    workspace, _ = release
    entry = next(e for e in read_ledger(workspace.ledger) if e.action == "frozen")
    assert releases_told(workspace) == [
        ok(
            "releases",
            f"tiny-v1 (entry {entry.seq}) verifies, signed by A. Author, B. Approver",
        )
    ]
    for payload, what in (
        ({"head": "f" * 64}, "names a head that is not in this ledger"),
        ({"digest": "f" * 64}, "is of a version that was not committed so"),
        (
            {"statement_sha256": "f" * 64},
            "has another signed statement than the recorded one",
        ),
    ):
        kept = workspace.ledger.read_bytes()
        again = frozen_again(workspace, **payload)
        assert releases_told(workspace) == [spoiled(again, what)]
        workspace.ledger.write_bytes(kept)


def test_a_withdrawn_release_is_still_looked_at(release):
    """It is told when it was withdrawn, and whether it is what was frozen."""
    workspace, _ = release
    event = Event(
        action="withdrawn",
        subject="tiny@v1",
        reason="unsafe",
        payload={"release": "tiny-v1"},
    )
    entry = append_event(workspace.ledger, event, Actor(name="B. Approver"))
    first, second = releases_told(workspace)
    assert first == note("releases", f"tiny-v1 was withdrawn at {entry.time}")
    assert second.severity == "ok"


def test_what_names_a_head_is_a_file_of_a_bounded_size(release, tmp_path):
    """A link or what is larger than any release names none."""
    workspace, small = release
    path = small.folder / "release.json"
    head = release_head(small.folder)
    assert head == KnownHead(
        small.facts["ledger"]["seq"],
        small.facts["ledger"]["head"],
        "release tiny-v1",
    )
    raw = path.read_bytes()
    path.write_bytes(raw + b" " * (LARGEST - len(raw)))
    assert release_head(small.folder) == head
    path.write_bytes(raw + b" " * (LARGEST - len(raw) + 1))
    assert release_head(small.folder) is None
    path.write_bytes(raw)
    path.rename(tmp_path / "away.json")
    path.symlink_to(tmp_path / "away.json")
    assert release_head(small.folder) is None
    # What a killed freeze left is no witness, and keys are no release.
    (workspace.releases / ".tiny-v2.x").mkdir()
    (tmp_path / "away.json").rename(workspace.releases / ".tiny-v2.x" / "release.json")
    assert known_heads(workspace, ()) == []


def test_an_audit_counts_what_it_found(release):
    """By severity, with its own time and the head to be written down."""
    workspace, small = release
    (small.folder / "schema.json").write_bytes(b"")
    override = Event(action="override", subject="tiny@v1", reason="urgent")
    append_event(workspace.ledger, override, Actor(name="B. Approver"))
    second = append_event(workspace.ledger, override, Actor(name="B. Approver"))
    when = datetime(2099, 1, 1, 9, tzinfo=UTC)
    audit = audit_workspace(workspace, now=lambda: when)
    assert audit.time == "2099-01-01T09:00:00Z"
    assert audit.head == f"{second.seq}:{second.hash}"
    assert (audit.holds, audit.signed) == (False, 0)
    assert sum(audit.counts.values()) == len(audit.findings)
    assert audit.counts["broken"] == sum(
        one.severity == "broken" for one in audit.findings
    )
    assert audit.findings[-1] == note(
        "overrides",
        f"2 decided against objections: tiny@v1 in entry {second.seq - 1}, tiny@v1 in "
        f"entry {second.seq}",
    )


def test_a_release_behind_a_link_is_said_to_be_a_link(release, tmp_path):
    """What is wrong is named, and not only the kind of error."""
    workspace, small = release
    small.folder.rename(tmp_path / "away")
    small.folder.symlink_to(tmp_path / "away")
    whats = [what for check, what in found(workspace) if check == "releases"]
    assert whats == ["tiny-v1 is a link, and what it leads to can change unnoticed"]


def test_a_release_that_was_frozen_twice_is_found(release):
    """The second entry would quietly take the place of the first."""
    workspace, _ = release
    (frozen,) = (
        entry for entry in read_ledger(workspace.ledger) if entry.action == "frozen"
    )
    again = Event(
        action="frozen", subject=frozen.subject, reason="why", payload=frozen.payload
    )
    entry = append_event(workspace.ledger, again, Actor(name="B. Author"))
    whats = [what for check, what in found(workspace) if check == "releases"]
    assert f"tiny-v1 was frozen again by entry {entry.seq}" in whats


def test_a_release_from_elsewhere_shows_that_the_end_was_cut_off(release, tmp_path):
    """Whoever keeps a copy of a release can tell a shorter history."""
    workspace, small = release
    copy = tmp_path / "copy" / small.folder.name
    shutil.copytree(small.folder, copy)
    shutil.rmtree(small.folder)
    first = workspace.ledger.read_bytes().splitlines(keepends=True)[0]
    workspace.ledger.write_bytes(first)
    heads = [w for c, w in found(workspace, releases=[copy]) if c == "heads"]
    assert heads[0] == "the ledger ends at 1; release tiny-v1 has seen entry 7"


def test_a_folder_that_is_no_release_is_said_to_be_none(release, tmp_path):
    """A wrong path must not pass for a check."""
    workspace, _ = release
    whats = [what for _, what in found(workspace, releases=[tmp_path / "none"])]
    assert "none names no head of a ledger" in whats


def test_only_a_sealing_with_a_result_is_held_against_its_file(trials):
    """One that showed nothing recorded nothing, and no other entry has a file."""
    record(trials, "cohort_added", "held", {"role": "holdout"})
    record(trials, "holdout_sealed", "held", {"cohort": "held", "candidate": "x"})
    known = {"cohort": "held", "candidate": "x", "result_digest": "d" * 64}
    record(trials, "holdout_opened", "held", known)

    def results():
        notes = found(trials.workspace, "note")
        return [what for _, what in notes if "the result in" in what]

    assert results() == []
    record(trials, "holdout_sealed", "held", known)
    (result,) = results()
    assert re.fullmatch(r"held: the result in entry \d+ is not on this machine", result)


def test_answers_edited_without_a_change_of_the_counts_are_found(trials):
    """A hit and a miss that are swapped leave every count as it was."""
    query = "SELECT fields FROM outcomes WHERE item_id = ?"
    change = "UPDATE outcomes SET fields = ? WHERE item_id = ?"
    with sqlite3.connect(trials.workspace.store) as connection:
        (hit,), (miss,) = (
            connection.execute(query, [one]).fetchone() for one in ("e0", "f0")
        )
        assert hit != miss
        connection.execute(change, [miss, "e0"])
        connection.execute(change, [hit, "f0"])
    connection.close()
    ((check, what),) = found(trials.workspace)
    assert check == "evaluations"
    assert "in the store are not those that entry" in what


def test_evaluations_of_an_earlier_ranloop_say_what_cannot_be_checked(trials):
    """An old entry still reads; nobody is told that its answers were checked."""
    entries = read_ledger(trials.workspace.ledger)
    last = [one for one in entries if one.action == "evaluated"][-1]
    payload = {k: v for k, v in last.payload.items() if k not in BASIS}
    assert set(last.payload) - set(payload) == BASIS
    trials.workspace.ledger.unlink()
    for one in entries:
        said = payload if one.seq == last.seq else one.payload
        event = Event(
            action=one.action, subject=one.subject, reason=one.reason, payload=said
        )
        append_event(trials.workspace.ledger, event, EDITOR)
    # This machine has seen the ledger as it was, and says so.
    assert {check for check, _ in found(trials.workspace)} == {"heads"}
    notes = found(trials.workspace, "note")
    for check in ("taxonomy", "cues", "evaluations"):
        assert any(
            check == one and "of an earlier ranloop that do not" in what
            for one, what in notes
        )
    count = len(read_ledger(trials.workspace.ledger))
    trials.evaluate(last.payload["run"])
    assert len(read_ledger(trials.workspace.ledger)) == count


@pytest.mark.parametrize("file", ["taxonomy.yaml", "cues/en.yaml"])
def test_a_taxonomy_or_cues_edited_since_an_evaluation_are_named(trials, file):
    """Their numbers are of the file as it was."""
    check = file.partition(".")[0].partition("/")[0]
    assert any(one == check for one, _ in found(trials.workspace, "ok"))
    path = trials.workspace.labels / file
    text = path.read_text("utf-8")
    if check == "cues":
        assert "gone: [resolved, cleared" in text
        text = text.replace("gone: [resolved, cleared", "gone: [cleared")
    path.write_text(f"{text}\n# edited\n", "utf-8")
    said = dict(found(trials.workspace, "warning"))
    assert "was changed since 1 of 1 evaluations" in said[check]
    path.unlink()
    became = "is gone or unreadable" if check == "taxonomy" else "was changed"
    assert f"{became} since 1 of" in dict(found(trials.workspace, "warning"))[check]

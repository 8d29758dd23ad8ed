"""Labels as they were copied, as they are here, and as they ship now."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from loop import __version__
from loop.cli.main import app
from loop.core.digests import digest_bytes
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.labels import upgrade
from loop.labels.upgrade import CopyState, compare_labels, upgrade_labels
from loop.release.audit.audit import audit_workspace
from loop.review.start import start_workspace

WHO = Actor(name="Dr A")


@pytest.fixture
def place(tmp_path):
    """Return a workspace for chest X-rays, as it was just made."""
    return start_workspace(tmp_path / "ws", WHO).workspace


@pytest.fixture
def newer(tmp_path, monkeypatch):
    """Return the folder of a later ranloop's labels; what is written there ships."""
    folder = tmp_path / "newer"
    shutil.copytree(bundled() / "labels", folder / "labels")
    monkeypatch.setattr(upgrade, "bundled", lambda: folder)
    monkeypatch.setattr(upgrade, "__version__", "9.9")
    return folder / "labels"


def states(place):
    """Return the state of each file that is not the same."""
    return {
        one.name: one.state
        for one in compare_labels(place)
        if one.state is not CopyState.SAME
    }


def add(path, text="# more\n"):
    """Add a line to a file."""
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def test_init_records_what_it_copied(place):
    """In the first entry, by digest."""
    labels = read_ledger(place.ledger)[0].payload["labels"]
    assert set(labels) == {
        "taxonomy.yaml",
        "errors.yaml",
        "cues/en.yaml",
        "cues/zh.yaml",
        "crosswalks/openi_mesh.yaml",
    }
    raw = (place.labels / "cues/en.yaml").read_bytes()
    assert labels["cues/en.yaml"] == digest_bytes(raw)
    assert states(place) == {}


def test_each_file_is_compared_three_ways(place, newer):
    """As copied, as here, as shipped now."""
    add(newer / "cues/en.yaml")
    assert states(place) == {"cues/en.yaml": CopyState.UPDATE}
    add(place.labels / "cues/en.yaml", "# mine\n")
    add(place.labels / "cues/zh.yaml", "# mine\n")
    (place.labels / "crosswalks/openi_mesh.yaml").unlink()
    (newer / "cues/de.yaml").write_text("language: de\n")
    assert states(place) == {
        "cues/en.yaml": CopyState.BOTH,
        "cues/zh.yaml": CopyState.EDITED,
        "crosswalks/openi_mesh.yaml": CopyState.REMOVED,
        "cues/de.yaml": CopyState.NEW,
    }


def test_only_what_was_not_edited_is_taken(place, newer):
    """And the ledger names it, so that the next upgrade knows."""
    add(newer / "cues/en.yaml")
    add(newer / "taxonomy.yaml")
    (newer / "cues/de.yaml").write_text("language: de\n")
    add(place.labels / "taxonomy.yaml", "# mine\n")
    mine = (place.labels / "taxonomy.yaml").read_bytes()
    upgrade_labels(place, WHO)
    assert (place.labels / "taxonomy.yaml").read_bytes() == mine
    for name in ("cues/en.yaml", "cues/de.yaml"):
        assert (place.labels / name).read_bytes() == (newer / name).read_bytes()
    entry = read_ledger(place.ledger)[-1]
    assert (entry.action, entry.actor) == ("labels_upgraded", "Dr A")
    assert set(entry.payload["labels"]) == {"cues/en.yaml", "cues/de.yaml"}
    assert entry.payload["ranloop"] == "9.9"
    assert audit_workspace(place).holds
    count = len(read_ledger(place.ledger))
    upgrade_labels(place, WHO)
    assert len(read_ledger(place.ledger)) == count
    add(newer / "cues/de.yaml")
    assert states(place)["cues/de.yaml"] is CopyState.UPDATE


def test_what_another_file_would_change_is_shown_line_by_line(place, newer):
    """And the ledger has why; without a reason, with which version they ship."""
    path = place.labels / "cues" / "en.yaml"
    last = path.read_text("utf-8").splitlines()[-1]
    add(newer / "cues/en.yaml", "# a new cue\n")
    rows = {one.name: one for one in compare_labels(place)}
    changed = rows["cues/en.yaml"]
    assert changed.taken and not rows["cues/zh.yaml"].taken
    assert rows["cues/zh.yaml"].diff == ""
    head, same, at, *lines = changed.diff.split("\n")
    assert head == "--- labels/cues/en.yaml (here)"
    assert same == "+++ labels/cues/en.yaml (ranloop 9.9)"
    assert at.startswith("@@ -") and lines[-2:] == [f" {last}", "+# a new cue"]
    assert changed.here + "# a new cue\n" == changed.shipped
    (place.labels / "cues" / "zh.yaml").write_bytes(b"\xff")
    path.unlink()
    rows = {one.name: one for one in compare_labels(place)}
    assert (rows["cues/zh.yaml"].here, rows["cues/en.yaml"].here) == ("\ufffd", "")
    (newer / "cues/de.yaml").write_text("language: de\n")
    upgrade_labels(place, WHO, why=" ")
    entry = read_ledger(place.ledger)[-1]
    assert (entry.subject, entry.reason) == (
        "labels",
        "labels as they ship with ranloop 9.9",
    )
    assert entry.payload["labels"] == {"cues/de.yaml": digest_bytes(b"language: de\n")}


def test_an_upgrade_that_was_killed_is_recorded_by_the_next(place, newer):
    """Written and not recorded, a file would pass for edited for ever."""
    add(newer / "cues/en.yaml")
    shutil.copyfile(newer / "cues/en.yaml", place.labels / "cues/en.yaml")
    upgrade_labels(place, WHO, why="again")
    assert read_ledger(place.ledger)[-1].reason == "again"
    add(newer / "cues/en.yaml")
    assert states(place) == {"cues/en.yaml": CopyState.UPDATE}


def test_a_taxonomy_of_ones_own_is_left_alone(tmp_path, newer):
    """Neither replaced nor called edited; cues and errors are everybody's."""
    labels = tmp_path / "labels.csv"
    labels.write_text("name,definition\nStroke,The brain lost its supply of blood.\n")
    place = start_workspace(tmp_path / "own", WHO, labels=labels).workspace
    add(newer / "taxonomy.yaml")
    add(newer / "crosswalks/openi_mesh.yaml")
    add(newer / "cues/en.yaml")
    add(newer / "errors.yaml")
    (newer / "crosswalks/other.yaml").write_text("x: 1\n")
    newer_ones = {"cues/en.yaml", "errors.yaml"}
    assert states(place) == dict.fromkeys(newer_ones, CopyState.UPDATE)
    before = (place.labels / "taxonomy.yaml").read_bytes()
    upgrade_labels(place, WHO)
    assert (place.labels / "taxonomy.yaml").read_bytes() == before
    assert not (place.labels / "crosswalks").exists()


def test_a_workspace_of_an_earlier_version_keeps_what_differs(workspace, newer):
    """It does not say what it began with."""
    add(newer / "taxonomy.yaml")
    lacking = {"cues/en.yaml", "cues/zh.yaml", "errors.yaml"}
    assert set(states(workspace)) == {"taxonomy.yaml", *lacking}
    assert set(states(workspace).values()) == {CopyState.UNKNOWN}
    before = (workspace.labels / "taxonomy.yaml").read_bytes()
    workspace.open_private()
    upgrade_labels(workspace, WHO)
    assert (workspace.labels / "taxonomy.yaml").read_bytes() == before
    assert not (workspace.labels / "cues").exists()


def test_the_verb_shows_before_it_does(place, newer):
    """A dry run changes nothing, and shows each line that would change."""
    add(newer / "cues/en.yaml", "# a new cue\n")
    command = ["upgrade", "-w", str(place.root), "--actor", "Dr B"]
    before = place.ledger.read_bytes()
    shown = CliRunner().invoke(app, [*command, "--dry-run"]).stdout
    assert "labels/cues/en.yaml" in shown and "+# a new cue" in shown
    assert "1 would be taken: run it again without --dry-run" in shown
    assert place.ledger.read_bytes() == before
    assert "a new cue" not in (place.labels / "cues/en.yaml").read_text("utf-8")
    done = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    [row] = [one for one in done["files"] if one["taken"]]
    assert (row["file"], row["state"]) == ("labels/cues/en.yaml", "update")
    assert read_ledger(place.ledger)[-1].actor == "Dr B"
    assert (
        CliRunner()
        .invoke(app, command)
        .stdout.endswith(
            "\nnothing to take: no file is older than the shipped one and unedited\n"
        )
    )
    add(newer / "cues/en.yaml", "# another cue\n")
    taken = CliRunner().invoke(app, command).stdout.splitlines()
    assert ["labels/cues/en.yaml", "update"] in [line.split() for line in taken]
    assert taken[-2:] == [
        f"1 taken from ranloop {__version__}",
        "Scores from now on rest on them. Next: ranloop lint, run and evaluate",
    ]
    assert not any("another cue" in line for line in taken)
    assert WorkspacePaths(place.root).labels.is_dir()

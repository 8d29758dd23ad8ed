"""The verb ``audit``: prints the ledger, exits with 100 when something is broken."""

import csv
import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import audit
from loop.core.check_findings import note
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.release.keys import make_key, signer_for
from tests.conftest import shipped_workspace
from tests.release.audit.scenes import ACTOR, History, make_history


@pytest.fixture
def history(tmp_path):
    """Return a history."""
    return make_history(tmp_path / "ws")


def call(history, *arguments):
    """Call the verb in the workspace."""
    app = typer.Typer()
    audit.register(app)
    words = [*arguments, "-w", str(history.workspace.root)]
    return CliRunner().invoke(app, words)


def damage(history):
    """Edit an entry."""
    lines = history.lines()
    lines[1] = lines[1].replace(b'"why"', b'"hmm"')
    history.write(lines)


def test_a_whole_history_is_printed_and_holds(history):
    """Every entry, every check, and the head to write down."""
    done = call(history)
    assert done.exit_code == 0
    assert done.stdout.count("draft_committed  tiny@v") == 3
    assert f"head: 6:{history.entries()[-1].hash}" in done.stdout
    assert "audit: nothing checked is broken" in done.stdout


def test_without_a_signature_the_last_line_says_what_that_leaves_open(history):
    """Nothing broken is no proof of who acted; a key makes the line go away."""
    said = call(history).stdout.splitlines()[-1]
    assert said.startswith("nobody signed any entry: who acted is as written")
    assert "--head" in said and "ranloop key new NAME" in said
    assert json.loads(call(history, "--json").stdout)["signed"] == 0
    make_key(history.workspace, ACTOR.name, "approver", ACTOR)
    signer = signer_for(history.workspace, ACTOR.name)
    history.record("override", "tiny@v1", {}, actor=replace(ACTOR, signer=signer))
    assert "nobody signed" not in call(history).stdout


def test_a_break_is_named_and_exits_with_100(history):
    """A script stops on it; a person reads what it implies."""
    damage(history)
    done = call(history)
    assert done.exit_code == 100
    assert "first broken link: line 2 was edited after it was written" in done.stdout
    assert "audit: BROKEN" in done.stdout
    marked = [line for line in done.stdout.splitlines() if line.startswith("    2 !")]
    assert len(marked) == 1


def test_an_override_does_not_repeat_the_reason_above_it(history):
    """Long ones fill the screen; another reason is printed in full."""
    history.record("draft_committed", "other@v1", {"digest": "0"}, reason="as agreed")
    history.record("override", "other@v1", {}, reason="as agreed")
    history.record("override", "other@v1", {}, reason="a reason of its own")
    told = call(history).stdout
    assert told.count("as agreed") == 1
    assert "override  other@v1: for the reason of entry 7\n" in told
    assert "override  other@v1: a reason of its own\n" in told
    assert "2 decided against objections: other@v1 in entry 8, other@v1 in entry 9" in (
        told
    )


@pytest.mark.parametrize(
    ("what", "where", "shown"),
    [
        ("entry 47 imports dev anew", "entry 47, dev", ""),
        ("entry 47 imports dev anew", "entry 4, dev", "  (entry 4, dev)"),
        ("all is well", "", ""),
    ],
)
def test_where_a_finding_is_stands_there_once(what, where, shown):
    """What a sentence says already is not repeated behind it."""
    line = next(audit._finding_lines(note("chain", what, where=where)))
    assert line.endswith(f"{what}{shown}")


def test_json_is_one_object(history):
    """Nothing else stands on stdout."""
    damage(history)
    done = call(history, "--json")
    data = json.loads(done.stdout)
    assert done.exit_code == 100
    assert data["holds"] is False
    assert data["first_break"]["seq"] == 2


def test_exports_are_written_in_every_form(history, tmp_path):
    """A table, data, and a page that people read."""
    names = ("a.csv", "a.json", "a.html")
    words = [word for name in names for word in ("--export", str(tmp_path / name))]
    assert call(history, *words).exit_code == 0
    with (tmp_path / "a.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) > 6
    assert json.loads((tmp_path / "a.json").read_text())["holds"] is True
    assert "Version committed: tiny@v3" in (tmp_path / "a.html").read_text()


def test_one_prompt_can_be_shown_alone(history, tmp_path):
    """Entries of others are left out; the checks are of everything."""
    history.record("draft_committed", "other@v1", {"digest": "0"})
    page = tmp_path / "a.html"
    done = call(history, "--prompt", "tiny", "--export", str(page))
    assert done.exit_code == 100
    assert "draft_committed  other@v1" not in done.stdout
    assert "other@v1 was committed, and its folder is gone" in done.stdout
    assert "Version committed: other@v1" not in page.read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--export", "a.txt"), 2),
        (("--export", "prompts/a.csv"), 1),
        (("--export", "reports/releases/a.csv"), 1),
        (("--head", "seven"), 1),
        (("--prompt", "nobody", "--export", "a.html"), 1),
        (("--prompt", "../x"), 1),
    ],
)
def test_a_wrong_argument_stops_before_anything_is_written(
    history, monkeypatch, words, code
):
    """The workspace's own files are never written over."""
    monkeypatch.chdir(history.workspace.root)
    done = call(history, *words)
    assert done.exit_code == code
    assert not list(history.workspace.root.rglob("a.*"))


def test_a_head_and_a_release_from_elsewhere_are_asked_for_by_option(history):
    """What was written down is compared with what stands there."""
    head = history.audit().head
    assert call(history, "--head", head).exit_code == 0
    history.write(history.lines()[:-1])
    done = call(history, "--head", head)
    assert done.exit_code == 100
    assert "the ledger ends at 5" in done.stdout


def test_repair_moves_a_torn_line_aside_and_no_more(history):
    """Only what a power loss leaves is repaired; an edit is evidence."""
    lines = history.lines()
    history.write([*lines[:-1], lines[-1][:40]])
    assert call(history).exit_code == 100
    done = call(history, "--repair")
    assert "moved a torn last line aside; entry 6 records it" in done.output
    assert read_ledger(history.path)[-1].action == "ledger_repaired"
    damage(history)
    before = history.path.read_bytes()
    done = call(history, "--repair")
    assert done.exit_code == 100
    assert "nothing was moved" in done.stderr
    assert "first broken link: line 2" in done.stdout
    assert history.path.read_bytes() == before


def test_nothing_to_repair_is_said(history):
    """A repair that is not needed changes nothing."""
    before = history.path.read_bytes()
    done = call(history, "--repair")
    assert "nothing to repair" in done.output
    assert history.path.read_bytes() == before


def test_a_name_cannot_take_over_the_terminal(history):
    """What stands in a ledger may come from anyone."""
    history.record("alias_moved", "tiny@v1", {"alias": "x"}, reason="\x1b[31mred")
    done = call(history)
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mred" in done.stdout


def test_the_shipped_history_holds(tmp_path):
    """What comes with ranloop must stand its own audit."""
    root = shipped_workspace(tmp_path / "ws").root
    done = call(History(WorkspacePaths(root)), "--json")
    counts = json.loads(done.stdout)["counts"]
    assert done.exit_code == 0
    assert counts["broken"] == counts["warning"] == 0

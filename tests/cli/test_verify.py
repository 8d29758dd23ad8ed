"""The verb ``verify``: exit codes, what it prints, and where it looks."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event
from loop.release.keys import public_key_path
from tests.release.small import NAME, freeze_small


@pytest.fixture
def frozen(workspace, tmp_path):
    """Freeze the small release; copy it and its public keys elsewhere."""
    small = freeze_small(workspace)
    shutil.copytree(small.folder, tmp_path / "got" / NAME)
    (tmp_path / "keys").mkdir()
    for key in small.trusted.values():
        shutil.copy(public_key_path(workspace, key), tmp_path / "keys")
    return workspace


def ask(*arguments):
    """Run the verb and return what came of it."""
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def test_a_folder_and_a_key_are_enough(frozen, tmp_path):
    """Exit code 0, and what a reader must know of it."""
    shutil.rmtree(frozen.root)
    result = ask(tmp_path / "got" / NAME, "--keys", tmp_path / "keys")
    assert result.exit_code == 0
    assert "holds, 19 checks" in result.stdout
    assert "tiny@v1" in result.stdout


def test_single_keys_are_taken_as_well(frozen, tmp_path):
    """Named one by one; one of the two is not enough."""
    first, second = sorted((tmp_path / "keys").iterdir())
    folder = tmp_path / "got" / NAME
    assert ask(folder, "--key", first, "--key", second).exit_code == 0
    assert ask(folder, "--key", first).exit_code == 100


def test_without_a_key_it_is_not_vouched_for(frozen, tmp_path):
    """Exit code 100, and the words say that nothing else is wrong."""
    result = ask(tmp_path / "got" / NAME)
    assert result.exit_code == 100
    assert "not vouched for: all else holds" in result.stdout
    data = json.loads(ask(tmp_path / "got" / NAME, "--json").stdout)
    assert data["not_vouched_for"] and not data["holds"]


def test_a_changed_release_does_not_hold(frozen, tmp_path):
    """Exit code 100, and the broken check is marked."""
    (tmp_path / "got" / NAME / "card.md").write_text("better")
    result = ask(tmp_path / "got" / NAME, "--keys", tmp_path / "keys")
    assert result.exit_code == 100
    assert "BROKEN  files: card.md was changed" in result.stdout
    assert "DOES NOT HOLD: 1 of 19" in result.stdout
    data = json.loads(ask(tmp_path / "got" / NAME, "--json").stdout)
    assert not data["not_vouched_for"]


def test_a_name_is_looked_up_in_the_workspace(frozen):
    """With the keys, the entry and the withdrawal that its ledger holds."""
    data = json.loads(ask(NAME, "-w", frozen.root, "--json").stdout)
    assert data["holds"] and data["name"] == NAME
    checks = [one["check"] for one in data["findings"]]
    assert checks[-2:] == ["recorded", "in force"]
    event = Event(
        action="withdrawn",
        subject="tiny@v1",
        reason="misses fractures",
        payload={"release": NAME},
    )
    append_event(frozen.ledger, event, Actor(name="C. Other"))
    result = ask(NAME, "-w", frozen.root)
    assert result.exit_code == 100
    assert "misses fractures" in result.stdout


def test_keys_of_ones_own_need_the_folder(frozen, tmp_path):
    """A name is checked with the recorded keys, and no others."""
    result = ask(NAME, "-w", frozen.root, "--keys", tmp_path / "keys")
    assert result.exit_code == 2


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    """Nothing was checked, so nothing was found broken: not exit code 100."""
    result = ask(tmp_path / "none")
    assert isinstance(result.exception, DataError)


def test_a_key_file_that_is_none_is_an_error(frozen, tmp_path):
    """A key that cannot be read is not left out in silence."""
    (tmp_path / "keys" / "other.json").write_text("{}")
    result = ask(tmp_path / "got" / NAME, "--keys", tmp_path / "keys")
    assert isinstance(result.exception, DataError)
    assert isinstance(ask(tmp_path, "--keys", tmp_path / "no").exception, DataError)


def test_the_first_line_says_which_release_it_is(frozen, tmp_path):
    """Name, version, time, and what ``sha256sum`` says of the signed file."""
    folder = tmp_path / "got" / NAME
    digest = digest_bytes((folder / "release.dsse.json").read_bytes())
    said = f"release {NAME}: tiny@v1, frozen 2026-03-01T12:00:00Z, "
    end = f"release.dsse.json sha256 {digest}"
    result = ask(folder, "--keys", tmp_path / "keys")
    assert result.stdout.splitlines()[0] == said + end
    (folder / "card.md").write_text("better")
    result = ask(folder, "--keys", tmp_path / "keys")
    assert result.stdout.splitlines()[0] == f"says that it is {said}{end}"
    (folder / "release.json").write_text("{}")
    result = ask(folder, "--keys", tmp_path / "keys")
    assert result.stdout.startswith("release unknown: release.json cannot be read")


def test_a_genuine_release_in_the_folder_of_another_does_not_hold(frozen, tmp_path):
    """Whoever verifies ``tiny-v7`` must not read that tiny-v1 holds."""
    swapped = tmp_path / "got" / "tiny-v7"
    shutil.move(tmp_path / "got" / NAME, swapped)
    keys = ("--keys", tmp_path / "keys")
    result = ask(swapped, *keys)
    assert result.exit_code == 100
    assert "BROKEN  name: it is tiny-v1, in a folder called tiny-v7" in result.stdout
    assert " checks is broken" in result.stdout.splitlines()[-1]
    assert not json.loads(ask(swapped, *keys, "--json").stdout)["not_vouched_for"]
    assert ask(swapped, *keys, "--expect", NAME).exit_code == 0


def test_expect_names_the_release_whatever_its_folder_is_called(frozen, tmp_path):
    """A folder with a name of its own says nothing; what is expected does."""
    folder = tmp_path / "got" / "download"
    shutil.move(tmp_path / "got" / NAME, folder)
    keys = ("--keys", tmp_path / "keys")
    result = ask(folder, *keys)
    assert result.exit_code == 0
    assert "it is tiny-v1; the folder is called otherwise" in result.stdout
    assert ask(folder, *keys, "--expect", NAME).exit_code == 0
    result = ask(folder, *keys, "--expect", "tiny-v2")
    assert result.exit_code == 100
    assert "BROKEN  name: it is tiny-v1, not the tiny-v2 expected" in result.stdout
    assert ask(folder, *keys, "--expect", "tiny@v1").exit_code == 2
    assert ask(NAME, "-w", frozen.root, "--expect", "tiny-v2").exit_code == 2
    assert ask(NAME, "-w", frozen.root, "--expect", NAME).exit_code == 0

"""The verb ``verify``: exit codes, what it prints, and where it looks."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
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
    assert "holds, 18 checks" in result.stdout
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
    assert "DOES NOT HOLD: 1 of 18" in result.stdout
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

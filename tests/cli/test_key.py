"""The verb ``key``, and that whoever has a key signs what they do."""

import ast
import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import console
from loop.cli import key as verb
from loop.cli.main import app as ranloop
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.release.keys import (
    private_key_path,
    public_key_path,
    read_public_key,
    read_public_keys,
    signature_problem,
    signer_for,
)


@pytest.fixture
def call(workspace, monkeypatch):
    """Return a function that runs a verb in the workspace, and returns the result."""
    monkeypatch.delenv("RANLOOP_KEY_PASSPHRASE", raising=False)
    monkeypatch.setenv("RANLOOP_ACTOR", "Admin")

    def call(*arguments, ok=True):
        command = [*arguments, "-w", str(workspace.root)]
        result = CliRunner().invoke(ranloop, command)
        if ok:
            assert result.exit_code == 0, result.output
        return result

    return call


def new(call, name="Dr. Ayşe Kaya", *more):
    """Make a key and return what was printed."""
    return json.loads(
        call("key", "new", name, "--role", "approver", "--json", *more).stdout
    )


def test_the_life_of_a_key(call, workspace, tmp_path):
    """Made, listed, handed out, revoked."""
    made = new(call)
    row = call("key", "list").stdout.splitlines()[2]
    cells = re.split(r"  +", row)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", cells.pop(3))
    name = "Dr. Ayşe Kaya"
    assert cells == [made["keyid"][:16], name, "approver", "valid", "here"]
    handed = tmp_path / "kaya.json"
    handed.write_text(call("key", "show", "Dr. Ayşe Kaya").stdout, encoding="utf-8")
    known = read_public_keys(workspace)[made["keyid"]]
    assert read_public_key(handed) == known
    gone = call("key", "revoke", made["keyid"][:12], "--why", "lost")
    since = read_public_keys(workspace)[made["keyid"]].revoked
    assert gone.stdout == (
        f"key {made['keyid'][:16]} of {name} is revoked from {since} on\n"
    )
    assert gone.stderr.startswith(f"hand out {public_key_path(workspace, known)} again")
    private_key_path(workspace, made["keyid"]).unlink()
    cells = re.split(r"  +", call("key", "list").stdout.splitlines()[2])
    assert cells[4:] == [f"revoked {since[:10]}", "elsewhere"]
    again = ("key", "new", name, "--role", "approver", "--replace", "--why", "x")
    assert "has no valid key to replace" in str(call(*again, ok=False).exception)
    [listed] = json.loads(call("key", "list", "--json").stdout)["keys"]
    assert listed["revoked"] and not listed["here"]


def test_whoever_makes_a_key_is_told_what_it_signs(call, workspace, monkeypatch):
    """With a passphrase nothing is signed without being asked for."""
    for name, passphrase in (("Dr. B", ""), ("Dr. C", "correct horse")):
        monkeypatch.setenv("RANLOOP_KEY_PASSPHRASE", passphrase)
        done = call("key", "new", name, "--role", "approver")
        (key,) = [k for k in read_public_keys(workspace).values() if k.name == name]
        assert done.stdout == (
            f"key {key.keyid[:16]} of {name} as approver\n"
            f"public key to hand out: {public_key_path(workspace, key)}\n"
        )
        told = f"from now on, what {name} does here is signed in the ledger\n"
        assert done.stderr == ("" if passphrase else told)
    by_id = ("key", "new", key.keyid[:16], "--role", "approver", "--replace")
    refused = call(*by_id, "--why", "x", ok=False).exception
    assert "has no valid key to replace" in str(refused)


def test_every_part_prints_one_object_with_json(call):
    """And never anything private."""
    assert json.loads(call("key", "list", "--json").stdout) == {"keys": []}
    made = new(call)
    assert made["passphrase"] is False
    shown = json.loads(call("key", "show", made["keyid"], "--json").stdout)
    assert set(shown) == {
        *("format", "keyid", "name", "role", "public"),
        *("created", "valid_to", "revoked"),
    }
    gone = call("key", "revoke", made["keyid"], "--why", "lost", "--json").stdout
    assert json.loads(gone)["revoked"]
    assert "PRIVATE" not in call("key", "list", "--json").stdout


def test_a_key_is_replaced_with_a_reason_only(call, workspace):
    """The old one is revoked, and the new one says who made it."""
    first = new(call)
    again = ("key", "new", "Dr. Ayşe Kaya", "--role", "approver")
    assert isinstance(call(*again, ok=False).exception, DataError)
    assert call(*again, "--replace", ok=False).exit_code == 2
    assert call(*again, "--why", "x", ok=False).exit_code == 2
    second = new(call, "Dr. Ayşe Kaya", "--replace", "--why", "new laptop")
    keys = read_public_keys(workspace)
    assert keys[first["keyid"]].revoked and not keys[second["keyid"]].revoked
    reasons = [entry.reason for entry in read_ledger(workspace.ledger)]
    assert reasons[-2] == "new laptop"
    nobody = ("key", "new", "Dr. B", "--role", "approver", "--replace", "--why", "x")
    assert "names no recorded key" in str(call(*nobody, ok=False).exception)


def test_a_passphrase_comes_from_the_environment_or_a_terminal(
    call, workspace, monkeypatch
):
    """Never from an argument; without a terminal nobody is asked."""
    asked = call(
        *("key", "new", "Dr. B", "--role", "approver", "--passphrase-prompt"),
        ok=False,
    )
    assert "there is no terminal" in str(asked.exception)
    monkeypatch.setenv("RANLOOP_KEY_PASSPHRASE", "correct horse")
    assert new(call, "Dr. B")["passphrase"] is True
    assert signer_for(workspace, "Dr. B") is None
    assert b"horse" not in workspace.ledger.read_bytes()


def test_whoever_has_a_key_signs_what_they_do(call, workspace):
    """An alias moved on the command line; another person's stays unsigned."""
    made = new(call)
    for alias, actor in (("hers", "Dr. Ayşe Kaya"), ("his", "Dr. B")):
        call("alias", "extractor@v1", alias, "--why", "r", "--actor", actor)
    signed, plain = read_ledger(workspace.ledger)[-2:]
    assert signed.keyid == made["keyid"]
    assert signature_problem(signed, read_public_keys(workspace)) == ""
    assert (plain.keyid, plain.signature) == ("", "")


def _calls(function):
    """Return the names a function calls, in the order of the source."""
    found = [
        (node.lineno, node.col_offset, node.func.id)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [name for _, _, name in sorted(found)]


OPENING = {"open_workspace", "find_place", "_open"}


def test_no_verb_says_who_acts_before_it_opens_the_workspace():
    """Keys lie there: an act prepared before would go unsigned without a word.

    ``init`` makes the workspace, and nobody has a key there yet.
    """
    late = []
    for path in Path(console.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or "acting" not in _calls(node):
                continue
            given = "WorkspacePaths" in [
                argument.annotation.id
                for argument in node.args.args
                if isinstance(argument.annotation, ast.Name)
            ]
            before = _calls(node)[: _calls(node).index("acting")]
            if not given and not OPENING & set(before):
                late.append(f"{path.name}: {node.name}")
    assert late == ["init.py: init"]


def test_the_verb_stands_alone(workspace):
    """Registered on any application, as every verb."""
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    result = CliRunner().invoke(app, ["key", "list", "-w", str(workspace.root)])
    assert "no keys. Make the first" in result.stdout


def test_a_name_without_a_key_says_who_has_one_and_how_to_make_one(call):
    """Who freezes for the first time has none."""
    new(call)
    nobody = ("key", "revoke", "Dr. Nobody", "--why", "x")
    said = str(call(*nobody, ok=False).exception)
    assert "Dr. Ayşe Kaya" in said
    assert "ranloop key new" in said


def test_no_key_and_no_act_under_a_name_that_looks_like_another(call, workspace):
    """A letter of another script passes for the approver in every document."""
    new(call, "Ann Cole")
    before = workspace.ledger.read_bytes()
    false = "Ann C\N{CYRILLIC SMALL LETTER O}le"
    made = call("key", "new", false, "--role", "approver", ok=False)
    act = ("alias", "extractor@v1", "production", "--why", "x")
    acted = call(*act, "--actor", "ann cole", ok=False)
    for result in (made, acted):
        assert isinstance(result.exception, DataError), result.output
        assert "looks like 'Ann Cole'" in str(result.exception)
    assert workspace.ledger.read_bytes() == before
    call(*act, "--actor", "Ann Cole")

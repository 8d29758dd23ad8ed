"""The verb ``verify``: exit codes, what it prints, and where it looks."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from loop.cli import verify
from loop.cli.main import app
from loop.core.check_findings import broken as said_broken
from loop.core.check_findings import ok
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event
from loop.release.documents.card_sections import left_out_sentences
from loop.release.keys import public_key_path
from loop.release.statement import ENVELOPE
from loop.release.verify import Verification
from tests.release.small import APPROVER, NAME, freeze_small, make_small, typed


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


def test_a_release_that_ships_is_verified_by_its_name(frozen, tmp_path, monkeypatch):
    """Inside a workspace and outside; one of the workspace is not said to ship."""
    monkeypatch.chdir(tmp_path)
    elsewhere = ask("extractor-v7")
    assert elsewhere.exit_code == 0
    assert elsewhere.stdout.endswith("  from     ranloop, by the keys that it ships\n")
    inside = json.loads(ask("extractor-v7", "-w", frozen.root, "--json").stdout)
    assert inside["holds"] and inside["shipped"]
    own = ask(NAME, "-w", frozen.root)
    assert own.exit_code == 0 and "from     ranloop" not in own.stdout
    assert not json.loads(ask(NAME, "-w", frozen.root, "--json").stdout)["shipped"]
    unknown = ask("extractor-v999")
    assert str(unknown.exception).startswith(
        "there is no release extractor-v999 (known: extractor-v7, "
    )


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


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Return what the small release says of itself."""
    return typed(make_small(tmp_path_factory.mktemp("small")).facts)


def found(facts, *broken, files=None):
    """Return a verification of three checks, those of `broken` not holding."""
    checks = ("files", "vouched for", "approval by B. Approver")
    findings = tuple(
        (said_broken if one in broken else ok)(one, f"of {one}") for one in checks
    )
    return Verification(findings, (), None, facts, files or {ENVELOPE: b"signed"})


def test_what_is_printed_of_a_release_that_holds(facts, capsys):
    """Each check, the verdict, and what a reader must know; all of it."""
    verify._show("x", found(facts))
    said = capsys.readouterr().out.splitlines()
    digest = digest_bytes(b"signed")
    left_out = [f"  {one}" for one in left_out_sentences(facts)]
    assert said == [
        "release tiny-v1: tiny@v1, frozen 2026-03-01T12:00:00Z, release.dsse.json "
        f"sha256 {digest}",
        "holds   files: of files",
        "holds   vouched for: of vouched for",
        "holds   approval by B. Approver: of approval by B. Approver",
        "",
        "x: holds, 3 checks",
        f"  prompt   tiny@v1, digest {facts.release.digest}",
        f"  engine   {facts.engine.name}",
        f"  claim    all on locked: {facts.claim.verdict}",
        *left_out,
    ]
    frozen = facts.frozen.model_copy(update={"override": "known"})
    changes = {"development_only": True, "frozen": frozen}
    verify._show("x", found(facts.model_copy(update=changes)))
    assert capsys.readouterr().out.splitlines()[10 + len(left_out) - 1 :] == [
        "  DEVELOPMENT DATA ONLY: no holdout was evaluated",
        "  OVERRIDE: known",
    ]


def test_of_a_release_that_does_not_hold_nothing_more_is_said(facts, capsys):
    """Neither its claim nor its engine; only which checks are broken."""
    verify._show("x", found(facts, "files"))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("says that it is release tiny-v1: ")
    assert rest == [
        "BROKEN  files: of files",
        "holds   vouched for: of vouched for",
        "holds   approval by B. Approver: of approval by B. Approver",
        "",
        "x: DOES NOT HOLD: 1 of 3 checks is broken",
    ]


@pytest.mark.parametrize(
    ("broken", "verdict"),
    [
        ((), "holds, 3 checks"),
        (("files",), "DOES NOT HOLD: 1 of 3 checks is broken"),
        (("vouched for",), "DOES NOT HOLD: 1 of 3 checks is broken"),
        (("approval by B. Approver",), "DOES NOT HOLD: 1 of 3 checks is broken"),
        (("files", "vouched for"), "DOES NOT HOLD: 2 of 3 checks are broken"),
        (
            ("vouched for", "approval by B. Approver"),
            "not vouched for: all else holds, and no key that you trust signed it",
        ),
        (
            ("files", "vouched for", "approval by B. Approver"),
            "DOES NOT HOLD: 3 of 3 checks are broken",
        ),
    ],
)
def test_only_a_missing_key_is_not_called_broken(facts, broken, verdict):
    """And nothing else may be wrong beside it."""
    assert verify._verdict(found(facts, *broken)) == verdict
    only = verdict.startswith("not vouched")
    assert verify._data("x", found(facts, *broken))["not_vouched_for"] is only


def test_the_object_of_a_release_has_every_fact(facts):
    """And is null where the release cannot be read."""
    approval = APPROVER[0]
    one = found(facts, "files")._replace(approvals=(approval,))
    data = verify._data("x", one)
    findings = data.pop("findings")
    assert findings[0] == {"check": "files", "holds": False, "detail": "of files"}
    assert [row["holds"] for row in findings] == [False, True, True]
    whole = {
        "release": "x",
        "holds": False,
        "not_vouched_for": False,
        "approvals": [approval._asdict()],
        "name": "tiny-v1",
        "frozen": "2026-03-01T12:00:00Z",
        "statement_sha256": digest_bytes(b"signed"),
        "prompt": "tiny@v1",
        "prompt_digest": facts.release.digest,
        "claim": facts.claim.verdict.value,
        "development_only": False,
        "override": "",
        "ledger": {"head": facts.ledger.head, "seq": facts.ledger.seq},
    }
    assert data == whole
    unknown = verify._data("x", one._replace(facts=None, files={}))
    del unknown["findings"]
    nothing = ("name", "frozen", "prompt", "prompt_digest", "claim")
    nothing += ("development_only", "override", "ledger")
    assert unknown == whole | dict.fromkeys(nothing) | {
        "statement_sha256": digest_bytes(b"")
    }


def test_a_folder_called_like_a_release_comes_before_the_name(tmp_path, monkeypatch):
    """What is there is checked, and not what the workspace has under the name."""
    monkeypatch.chdir(tmp_path)
    assert verify._is_name("tiny-v1") is True
    (tmp_path / "tiny-v1").mkdir()
    assert verify._is_name("tiny-v1") is False
    assert verify._is_name("releases/tiny-v1") is False

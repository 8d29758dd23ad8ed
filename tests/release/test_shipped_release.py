"""The releases that are shipped as worked examples: they hold, and tell of no case."""

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.labels.language import words
from loop.release.audit.audit import audit_workspace
from loop.release.keys import format_public_key, read_public_keys
from loop.release.load import load_release
from loop.release.verify import verify_folder
from tests.release.small import NAME, make_small, person, public_key

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "release.md"
SHIPPED = WorkspacePaths(bundled())
KEYS = {
    "extractor-v7": "ranloop-release-desk-75a39f0b.json",
    "extractor-v10": "ranloop-approver-ae6b8529.json",
    "extractor-v11": "ranloop-release-approver-d91ed761.json",
}
"""Release to the public key that signed it; the manual shows the last one."""

RUN = 8
"""So many words in a row are nobody's by chance."""


@pytest.fixture(params=KEYS)
def name(request):
    """Return the name of each release in turn."""
    return request.param


def test_it_holds_by_name_and_with_its_folder_and_key_alone(name):
    """As whoever gets a copy of it checks it."""
    release = load_release(SHIPPED, name)
    assert release.version.ref == name.replace("-", "@")
    folder, key = SHIPPED.releases / name, SHIPPED.releases / "keys" / KEYS[name]
    assert verify_folder(folder, read_public_keys(SHIPPED)).holds
    done = CliRunner().invoke(app, ["verify", str(folder), "--key", str(key)])
    assert done.exit_code == 0, done.output


def test_the_shipped_history_has_nothing_broken():
    """Ledger, versions, aliases, keys and the release."""
    audit = audit_workspace(SHIPPED)
    assert audit.holds, [one for one in audit.findings if one.severity == "broken"]


def test_the_manual_shows_what_verify_says_of_it():
    """To the letter, with the folder written as in a checkout."""
    name, key = list(KEYS.items())[-1]
    folder, public = SHIPPED.releases / name, SHIPPED.releases / "keys" / key
    done = CliRunner().invoke(app, ["verify", str(folder), "--key", str(public)])
    said = done.stdout.replace(str(SHIPPED.root) + "/", "")
    assert said in PAGE.read_text("utf-8")
    assert f"--key reports/releases/keys/{key}" in PAGE.read_text("utf-8")


def test_it_says_what_stood_against_it(name):
    """The gates fail, and the holdout had been measured on before: in large letters."""
    card = (SHIPPED.releases / name / "card.md").read_text("utf-8")
    assert "**OVERRIDE**" in card
    assert "no longer unseen" in card


def test_each_opened_the_holdout_once():
    """What was opened for one is not unseen for the next; both cards say so."""
    opened = [e for e in read_ledger(SHIPPED.ledger) if e.action == "holdout_opened"]
    assert len(opened) == len(KEYS)


def test_the_newest_has_binary_answers_and_leaves_out_what_codes_cannot_judge():
    """A hedge is an error there, and No Finding is shown outside the claim."""
    release = load_release(SHIPPED, "extractor-v11")
    assert release.version.contract == "binary"
    card = (SHIPPED.releases / "extractor-v11" / "card.md").read_text("utf-8")
    assert "|unc:wrong|" in card.replace("&#124;", "|")
    assert "No Finding: shown, not part of the claim" in card


def test_the_checklists_of_the_newest_say_what_an_auditor_must_know():
    """Not only the card: who is known to have judged, what was replayed and opened."""
    folder = SHIPPED.releases / "extractor-v11"
    texts = [
        " ".join((folder / f"{one}.md").read_text("utf-8").replace("\\", "").split())
        for one in ("tripod-llm", "mi-clear-llm")
    ]
    for text in texts:
        assert "156 verdicts, by role of those who gave them: reviewer and" in text
        assert "roles in the workbench, as recorded at the commit, not prof" in text
        assert "engineers, not radiologists, gave the verdicts" in text
        assert "extractor@v9: committed at most 16 seconds after the version" in text
        assert "the cases of openi_test are no longer unseen" in text
    assert "a label may pass while the claim does not hold for it" in texts[0]
    assert "on the development cohort openi_dev, not on the holdout" in texts[0]
    change = (folder / "change-record.md").read_text("utf-8")
    assert "- Engine: not as in extractor-v10: revision 5 (was 4)\n" in change


@pytest.mark.slow
@pytest.mark.data
def test_no_report_text_is_in_it(name, data_folder):
    """No run of words of any of the 1,648 reports stands in any of its files."""
    import csv

    shipped = set()
    for path in (SHIPPED.releases / name).rglob("*"):
        if path.is_file():
            shipped |= runs(path.read_text("utf-8"))
    # What the prompt itself says was written for it, and is checked when it is made.
    version = name.replace("-", "/")
    own = runs((SHIPPED.prompts / version / "guides.yaml").read_text("utf-8"))
    for name in ("dev", "test"):
        source = data_folder / "openi" / f"reports_{name}.csv"
        with source.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                text = f"{row['findings']} {row['impression']}"
                assert not (runs(text) & shipped) - own, f"{name}: case {row['uid']}"


def runs(text):
    """Return every run of `RUN` words of a text."""
    found = words(text)
    return {tuple(found[i : i + RUN]) for i in range(len(found) - RUN + 1)}


WITHOUT = Path(__file__).parents[2] / "docs/how-to/audit-without-ranloop.md"


def check_by_hand(folder, key, name):
    """Run the commands of the page on a release, as one script that stops on errors."""
    first, *steps = re.findall(
        r"^```sh\n(.*?)^```", WITHOUT.read_text("utf-8"), re.M | re.S
    )
    assert first.splitlines()[0].startswith("name=")
    given = f"name={name}\nrelease={folder}\nkey={key}\n{first.splitlines()[3]}\n"
    script = "set -eu\n" + given + "".join(steps)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(Path(folder).parent)},
    )


@pytest.fixture
def copied(name, tmp_path):
    """Return a copy of a shipped release that may be changed, and its key."""
    shutil.copytree(SHIPPED.releases / name, tmp_path / name)
    return tmp_path / name, SHIPPED.releases / "keys" / KEYS[name]


def test_openssl_and_sha256sum_are_enough_to_check_it(name, copied):
    """The page's commands, as they stand there."""
    folder, key = copied
    done = check_by_hand(folder, key, name)
    assert done.returncode == 0, done.stderr
    assert "Signature Verified Successfully" in done.stdout
    files = sum(one.is_file() for one in folder.rglob("*"))
    assert (
        done.stdout.count(": OK\n") == files
    )  # the key's id, and all but the envelope
    assert f"the release is {name}" in done.stdout
    assert '"verdict":"FAIL"' in done.stdout


def edit_card(folder):
    """Make the card say more than was signed."""
    with (folder / "card.md").open("a") as stream:
        stream.write("It passes every gate.\n")


def edit_statement(folder):
    """Put another verdict into what was signed."""
    path = folder / "release.dsse.json"
    envelope = json.loads(path.read_text())
    payload = base64.b64decode(envelope["payload"]).replace(b"FAIL", b"PASS")
    envelope["payload"] = base64.b64encode(payload).decode()
    path.write_text(json.dumps(envelope, separators=(",", ":")) + "\n")


def add_file(folder):
    """Put a file beside those that were signed."""
    (folder / "rendered" / "note.txt").write_text("approved")


def remove_file(folder):
    """Take one away."""
    (folder / "tripod-llm.md").unlink()


def link_file(folder):
    """Put a link in the place of a file: its content may change later."""
    (folder / "card.md").rename(folder.parent / "card.md")
    (folder / "more.md").symlink_to(folder.parent / "card.md")
    (folder / "card.md").symlink_to(folder.parent / "card.md")


@pytest.mark.parametrize(
    "tamper", [edit_card, edit_statement, add_file, remove_file, link_file]
)
def test_the_same_commands_refuse_one_that_was_tampered_with(name, copied, tamper):
    """Whatever was done to it, the script stops with an error."""
    folder, key = copied
    tamper(folder)
    assert check_by_hand(folder, key, name).returncode != 0


def test_the_same_commands_check_each_of_several_signatures(tmp_path):
    """Two people signed; either key is enough, and one that did not sign is refused."""
    small = make_small(tmp_path)
    stranger = public_key(person(9, "C. Other", "approver", "approval"))
    for key, good in [*((one, True) for one in small.trusted.values()), (stranger, 0)]:
        path = tmp_path / "key.json"
        path.write_bytes(format_public_key(key))
        done = check_by_hand(small.folder, path, NAME)
        assert (done.returncode == 0) == good, done.stderr


def test_the_same_commands_refuse_another_key_and_another_release(name, copied):
    """The key of somebody else; a genuine release under the name of another."""
    folder, key = copied
    other = next(one for one in KEYS if one != name)
    wrong = SHIPPED.releases / "keys" / KEYS[other]
    done = check_by_hand(folder, wrong, name)
    assert done.returncode != 0
    assert "Verified Successfully" not in done.stdout
    done = check_by_hand(folder, key, other)
    assert done.returncode != 0
    assert "Signature Verified Successfully" in done.stdout

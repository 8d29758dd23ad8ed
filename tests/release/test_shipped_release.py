"""The releases that are shipped as worked examples: they hold, and tell of no case."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.labels.language import words
from loop.release.audit.audit import audit_workspace
from loop.release.keys import read_public_keys
from loop.release.load import load_release
from loop.release.verify import verify_folder

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "release.md"
SHIPPED = WorkspacePaths(bundled())
KEYS = {
    "extractor-v7": "ranloop-release-desk-75a39f0b.json",
    "extractor-v10": "ranloop-approver-ae6b8529.json",
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
    release = load_release(SHIPPED, "extractor-v10")
    assert release.version.contract == "binary"
    card = (SHIPPED.releases / "extractor-v10" / "card.md").read_text("utf-8")
    assert "|unc:wrong|" in card.replace("&#124;", "|")
    assert "No Finding: shown, not part of the claim" in card


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

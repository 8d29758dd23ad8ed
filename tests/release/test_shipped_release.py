"""The release that is shipped as a worked example: it holds, and tells of no case."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.core.paths import Workspace, bundled
from loop.labels.language import words
from loop.release.audit.audit import audit_workspace
from loop.release.keys import read_public_keys
from loop.release.load import load_release
from loop.release.verify import verify_folder

README = Path(__file__).parents[2] / "README.md"
SHIPPED = Workspace(bundled())
NAME = "extractor-v7"
RUN = 8
"""So many words in a row are nobody's by chance."""


def test_it_holds_by_name_and_with_its_folder_and_key_alone():
    """As whoever gets a copy of it checks it."""
    release = load_release(SHIPPED, NAME)
    assert release.version.ref == "extractor@v7"
    keys = read_public_keys(SHIPPED)
    assert verify_folder(SHIPPED.releases / NAME, keys).holds


def test_the_shipped_history_has_nothing_broken():
    """Ledger, versions, aliases, keys and the release."""
    audit = audit_workspace(SHIPPED)
    assert audit.holds, [one for one in audit.findings if one.severity == "broken"]


def test_readme_shows_what_verify_says_of_it():
    """To the letter, with the folder written as in a checkout."""
    folder, keys = SHIPPED.releases / NAME, list((SHIPPED.releases / "keys").iterdir())
    done = CliRunner().invoke(app, ["verify", str(folder), "--key", str(keys[0])])
    assert done.exit_code == 0
    said = done.stdout.replace(str(SHIPPED.root) + "/", "")
    assert said in README.read_text("utf-8")
    assert f"--key reports/releases/keys/{keys[0].name}" in README.read_text("utf-8")


def test_it_says_what_stood_against_it():
    """The gates fail, and the holdout had been measured on before: in large letters."""
    card = (SHIPPED.releases / NAME / "card.md").read_text("utf-8")
    assert "**OVERRIDE**" in card
    assert "no longer unseen" in card
    opened = [e for e in read_ledger(SHIPPED.ledger) if e.action == "holdout_opened"]
    assert len(opened) == 1


@pytest.mark.slow
@pytest.mark.data
def test_no_report_text_is_in_it(data_folder):
    """No run of words of any of the 1,648 reports stands in any of its files."""
    import csv

    shipped = set()
    for path in (SHIPPED.releases / NAME).rglob("*"):
        if path.is_file():
            shipped |= runs(path.read_text("utf-8"))
    # What the prompt itself says was written for it, and is checked when it is made.
    own = runs((SHIPPED.prompts / "extractor/v7/guides.yaml").read_text("utf-8"))
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

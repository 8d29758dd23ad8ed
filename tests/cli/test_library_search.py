"""The verb ``optimize`` with the optimizers of libraries: prints, counts, ends."""

import json

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.engines import base
from loop.optimize.search import Optimizer
from loop.prompts.catalog import list_drafts
from tests.optimize.made_task import StubReflector, improvable_cases, make_task

pytestmark = pytest.mark.slow


@pytest.fixture
def place(workspace, tmp_path, monkeypatch):
    """Return a workspace with the made task, and the stub that reflects."""
    monkeypatch.setitem(base._FACTORIES, "stub", StubReflector)
    monkeypatch.setattr(StubReflector, "asked", ())
    monkeypatch.setattr(StubReflector, "said", "")
    return make_task(workspace, tmp_path, improvable_cases(100))


def call(place, *words):
    """Run the verb in the workspace."""
    options = ("--workspace", str(place.root), "--cohort", "dev")
    return CliRunner().invoke(app, ["optimize", "tiny", *options, *words])


def test_a_search_names_its_draft(place):
    """With scores on the three parts side by side, and what it cost."""
    done = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    assert done.exit_code == 0
    (draft,) = list_drafts(place, "tiny")
    assert f"draft tiny@draft:{draft}: its check passed" in done.stdout
    for part in ("search", "select", "estimate"):
        assert f"\n{part}" in done.stdout
    assert "estimate, pooled over 100 cases" in done.stdout
    again = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    assert "finished before: nothing was asked" in again.stderr
    assert again.stdout == done.stdout


def test_a_page_says_it_all(place, tmp_path):
    """The three parts, what was tried and refused, and each draft; no wording."""
    page = tmp_path / "search.html"
    words = ("--with", "gepa", "--reflect", "stub:x", "--budget", "100")
    done = call(place, *words, "--html", str(page))
    assert done.exit_code == 0
    text = page.read_text("utf-8")
    (draft,) = list_drafts(place, "tiny")
    for said in (
        "A better wording was found",
        f"tiny@draft:{draft}</code>. Its check has no objections",
        "estimate, pooled",
        "Candidates tried:",
        "questions answered:",
    ):
        assert said in text
    assert "hydrothorax" not in text


def test_nothing_better_is_no_failure(place):
    """It ends with 0 and makes no draft."""
    StubReflector.said = "no idea"
    done = call(place, "--with", "gepa", "--reflect", "stub:x", "--budget", "60")
    assert done.exit_code == 0
    assert "no better prompt found" in done.stdout
    assert "refused" in done.stdout
    assert not list_drafts(place, "tiny")


def test_json_holds_the_same(place):
    """For scripts."""
    words = ("--with", "gepa", "--reflect", "stub:x", "--budget", "100", "--json")
    data = json.loads(call(place, *words).stdout)
    assert data["better"]
    assert data["estimate"]["gain"]["low"] > 0
    assert [one["objections"] for one in data["drafts"]] == [[]]
    assert data["effort"]["reflections"] > 0


@pytest.mark.parametrize("optimizer", list(Optimizer))
def test_a_dry_run_asks_nothing(place, optimizer):
    """It says splits, requests, tokens and cost, and leaves nothing behind."""
    before = read_ledger(place.ledger)
    reflect = ("--reflect", "openai:m") if optimizer.reflects else ()
    done = call(place, "--with", optimizer, "--dry-run", *reflect)
    assert done.exit_code == 0
    assert "NOTHING WAS ASKED" in done.stdout
    assert ("proposes" in done.stdout) is bool(reflect)
    assert read_ledger(place.ledger) == before
    assert not (place.private / "optimize").exists()
    data = json.loads(
        call(place, "--with", optimizer, "--dry-run", *reflect, "--json").stdout
    )
    assert data["answering"]["requests"] >= 100 * 6
    assert [part["name"] for part in data["parts"]] == ["search", "select", "estimate"]
    assert bool(data["reflecting"]) is bool(reflect)


def test_a_price_makes_a_cost(place):
    """Of both engines, as the settings say."""
    place.open_private()
    place.config.write_text("prices:\n  m:\n    input: 2\n    output: 8\n", "utf-8")
    words = ("--with", "gepa", "-e", "openai:m", "--reflect", "openai:m", "--dry-run")
    data = json.loads(call(place, *words, "--json").stdout)
    assert data["answering"]["cost"] > data["reflecting"]["cost"] > 0
    assert "USD" in call(place, *words).stdout


def test_rules_cannot_reflect(place):
    """Before anything is asked, dry or not."""
    for more in ((), ("--dry-run",)):
        done = call(place, "--with", "gepa", "--reflect", "rules", *more)
        assert done.exit_code != 0
        assert "terms, bootstrap, nearest" in str(done.exception)

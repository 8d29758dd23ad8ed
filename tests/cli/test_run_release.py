"""``run --release``: verified first, asked of its own engine, by its digest."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.candidate import engine_facts
from loop.run.manifest import read_manifest
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.release.small import NAME, VERSION, freeze_small


@pytest.fixture
def frozen(workspace, tmp_path):
    """Freeze the small release with the engine as it is here; import two cases."""
    source = tmp_path / "cases.csv"
    source.write_text("case_id,text\nc1,Fracture of a rib.\nc2,Lungs clear.\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    other = WorkspacePaths(Path(shutil.copytree(workspace.root, tmp_path / "other")))
    import_cohort(other, source, options, actor=Actor(name="t"))
    run = run_prompt(other, "extractor", "small").run_id
    freeze_small(workspace, engine=engine_facts(read_manifest(other, run)).model_dump())
    # Now, after the release: it is of a day that is past.
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return workspace


def ask(workspace, *arguments):
    """Run the verb over the two cases."""
    base = ["run", "--cohort", "small", "-w", str(workspace.root)]
    return CliRunner().invoke(app, [*base, *arguments])


def test_a_release_is_asked_of_its_own_engine(frozen):
    """The run names the version by the digest that was signed."""
    result = ask(frozen, "--release", NAME, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["release"], data["released_engine"]) == (NAME, True)
    assert (data["prompt"], data["engine"]) == ("tiny@v1", "rules")
    with open_store(frozen) as store:
        specs = {run.id: run.spec for run in store.find_runs(finished=True)}
    assert specs[data["run_id"]].prompt_digest == VERSION.digest


def test_an_edited_version_folder_is_not_what_is_asked(frozen):
    """What was released is asked, not what stands in prompts/ by now."""
    (frozen.prompts / "tiny/v1/user.jinja").write_text("Other: {{ text }}")
    assert ask(frozen, "--release", NAME).exit_code == 0


@pytest.mark.parametrize("option", [("--seed", "7"), ("--temperature", "0.5")])
def test_other_parameters_are_another_engine(frozen, option):
    """What the release says of its answers does not hold for these, and it says so."""
    result = ask(frozen, "--release", NAME, *option)
    assert result.exit_code == 0
    assert "not the engine that tiny-v1 was released with" in result.stderr


def test_a_release_that_is_off_asks_nothing(frozen):
    """No run is begun with a release that does not hold."""
    (frozen.releases / NAME / "card.md").write_text("better")
    result = ask(frozen, "--release", NAME)
    assert isinstance(result.exception, DataError)
    assert "does not hold" in str(result.exception)


@pytest.mark.parametrize("arguments", [(), ("extractor", "--release", NAME)])
def test_a_version_or_a_release_and_not_both(frozen, arguments):
    """Which prompt is asked is never guessed."""
    assert ask(frozen, *arguments).exit_code == 2


def test_a_release_can_be_counted_before_it_is_asked(frozen):
    """``--dry-run`` takes a release as well."""
    result = ask(frozen, "--release", NAME, "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)


@pytest.fixture
def fresh(tmp_path):
    """Return a workspace of one's own, as ``init`` makes it, with two cases."""
    place = WorkspacePaths(tmp_path / "own")
    made = CliRunner().invoke(app, ["init", str(place.root), "--actor", "Ann Cole"])
    assert made.exit_code == 0, made.output
    source = tmp_path / "cases.csv"
    source.write_text("case_id,text\nc1,Cardiomegaly.\nc2,Lungs clear.\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(place, source, options, actor=Actor(name="Ann Cole"))
    return place


def test_a_shipped_release_is_asked_in_a_workspace_of_ones_own(fresh):
    """What is frozen is used without its history, and nothing of it is copied."""
    dry = ask(fresh, "--release", "extractor-v11", "--dry-run", "--json")
    assert (dry.exit_code, json.loads(dry.stdout)["prompt"]) == (0, "extractor@v11")
    result = ask(fresh, "--release", "extractor-v11", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["prompt"], data["answered"]) == ("extractor@v11", 2)
    assert not (fresh.prompts / "extractor/v11").exists()
    assert not fresh.releases.exists() or not list(fresh.releases.iterdir())
    labels = fresh.root / "labels.csv"
    called = ["labels", data["run_id"], "-o", str(labels), "-w", str(fresh.root)]
    assert CliRunner().invoke(app, called).exit_code == 0
    assert len(labels.read_text().splitlines()) == 3


def test_a_folder_with_a_shipped_releases_name_is_not_passed_over(fresh):
    """What stands here is judged here: it is not replaced by what ships."""
    (fresh.releases / "extractor-v11").mkdir(parents=True)
    result = ask(fresh, "--release", "extractor-v11")
    assert isinstance(result.exception, DataError)
    assert "does not hold" in str(result.exception)


def test_a_release_that_is_nowhere_is_told(fresh):
    """Neither the workspace nor what ships has it."""
    result = ask(fresh, "--release", "extractor-v99")
    assert isinstance(result.exception, DataError)

"""The verb ``plan`` over a small real run."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import plan
from loop.core.errors import DataError
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.run.task import run_prompt
from tests.evaluate.tried_scenes import EDITOR, Trials


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort of 20 and a run of one version."""
    trials = Trials(workspace, tmp_path)
    trials.cohort()
    trials.version(1, "effusion")
    trials.run("tiny@v1")
    return workspace


@pytest.fixture
def call(place):
    """Return a function that calls the verb in the workspace."""
    app = typer.Typer()
    plan.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [*arguments, "-w", str(place.root)])

    return run


def test_the_text_says_what_is_short_and_what_to_collect(call):
    """Sizes for any label, for each label, then what this cohort can never show."""
    found = call("tiny", "--cohort", "dev")
    assert found.exit_code == 0, found.output
    assert "124 (124) / 153 (181)" in found.output
    assert "Pleural Effusion: 20 of at least 59 cases" in found.output
    assert "no number of cases certifies the observed accuracy 0.750" in found.output
    assert "the protocol's rule is `point`" in found.output


def test_the_cohort_of_a_run_is_the_default(call):
    """A run knows what it asked."""
    data = json.loads(call("latest", "--json").stdout)
    assert (data["cohort"], data["prompt"]) == ("dev", "tiny@v1")
    assert len(data["labels"]) == 21


def test_a_run_on_a_part_of_the_cohort_is_said(call, place):
    """Its rates are of the first cases, while the sizes are of the whole cohort."""
    part = run_prompt(place, "tiny@v1", "dev", limit=5)
    said = f"Run {part.run_id} asked the first 5 cases of dev only"
    assert said in call(part.run_id, "--json").stderr
    assert said not in call("tiny", "--json").stderr


def test_json_is_one_object_also_when_a_file_is_written(call, tmp_path):
    """What was written is said on stderr."""
    path = tmp_path / "plan.csv"
    found = call("--cohort", "dev", "--json", "--csv", str(path))
    assert json.loads(found.stdout)["run"] is None
    assert path.read_text().startswith("label,name,cases")
    assert f"wrote {path}" in found.stderr


def test_accuracies_to_suppose_can_be_named(call):
    """Each once, in the order given."""
    found = call("-c", "dev", "--json", "--accuracy", "0.96", "--accuracy", "0.96")
    supposed = json.loads(found.stdout)["labels"][0]["supposed"]
    assert [one["accuracy"] for one in supposed] == [0.96]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a cohort"),
        (("-c", "dev", "--accuracy", "98"), "up to 1, got 98"),
        (("-c", "dev", "--accuracy", "nan"), "got nan"),
        (("-c", "dev", "--accuracy", "0"), "got 0"),
    ],
)
def test_wrong_use_is_named(call, arguments, words):
    """Exit code 2 and what was wanted."""
    found = call(*arguments)
    assert found.exit_code == 2
    assert words in found.output


def test_a_file_in_the_workspaces_own_folders_is_refused(call, place):
    """Nothing is written over prompts or labels."""
    target = place.labels / "protocol.yaml"
    before = target.read_bytes()
    found = call("-c", "dev", "--csv", str(target))
    assert isinstance(found.exception, DataError)
    assert target.read_bytes() == before


def test_the_named_cohort_goes_before_that_of_the_run(place, call, tmp_path):
    """The newest run is of other cases: it is not taken, nor planned on."""
    first = json.loads(call("tiny", "--json").stdout)["run"]
    path = tmp_path / "more.csv"
    path.write_text("case_id,text,pleural_effusion\nm1,Large effusion.,1\n")
    options = ImportOptions(name="more", role="dev", source="Synthetic", licence="-")
    import_cohort(place, path, options, actor=EDITOR)
    newest = run_prompt(place, "tiny@v1", "more").run_id
    named = json.loads(call("tiny", "--cohort", "dev", "--json").stdout)
    assert (named["cohort"], named["run"]) == ("dev", first)
    own = json.loads(call("tiny", "--json").stdout)
    assert (own["cohort"], own["run"]) == ("more", newest)
    assert isinstance(call(newest, "--cohort", "dev").exception, DataError)

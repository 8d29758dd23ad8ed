"""``evaluate`` under a claim on some labels: its exit code is the claim's."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import evaluate
from loop.core.files import write_atomic
from tests.evaluate.tried_scenes import Trials

SUBSET = (
    "rule: lower\nclaim: subset\naccuracy: 0.8\nmin_cases: 1\nmin_positives: 14\n"
    "min_negatives: 1\n"
)


@pytest.fixture
def trials(workspace, tmp_path):
    """Return 60 cases, half of them positive for the one label that is asked."""
    made = Trials(workspace, tmp_path)
    made.cohort(cases=60)
    write_atomic(workspace.protocol, SUBSET)
    return made


def scored(trials, *terms):
    """Run a version that reads `terms` and evaluate it; return the results."""
    trials.version(1, *terms)
    trials.run("tiny@v1")
    app = typer.Typer()
    evaluate.register(app)
    arguments = ["-w", str(trials.workspace.root)]
    return [CliRunner().invoke(app, [*arguments, *more]) for more in ([], ["--json"])]


def test_one_certified_label_is_enough(trials):
    """The 20 labels that nobody asked for are not part of what is claimed."""
    text, data = scored(trials, "effusion", "fluid")
    assert (text.exit_code, data.exit_code) == (0, 0), text.output
    assert "claim on a subset: PASS" in text.output
    assert "certified: 1 of 21 labels: Pleural Effusion (p < 0.001)" in text.output
    claim = json.loads(data.stdout)["claim"]
    assert [one["label"] for one in claim["labels"] if one["certified"]] == [
        "pleural_effusion"
    ]


def test_no_certified_label_exits_with_100(trials):
    """Half of the positives missed: nothing is left of the claim."""
    text, data = scored(trials, "effusion")
    assert (text.exit_code, data.exit_code) == (100, 100)
    assert "certified: 0 of 21 labels" in text.output
    assert json.loads(data.stdout)["claim"]["verdict"] != "PASS"

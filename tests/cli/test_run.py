"""The verb ``run`` on the command line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import run as verb
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions


@pytest.fixture
def app():
    """Return an app with this verb and a second one, as the real one has."""
    app = typer.Typer()
    app.callback()(lambda: None)
    verb.register(app)
    return app


@pytest.fixture
def cohort(workspace, tmp_path):
    """Import three cases."""
    source = tmp_path / "small.csv"
    texts = ["Small left pleural effusion.", "No acute disease seen.", "Lungs clear."]
    rows = [f"c{number},{text}" for number, text in enumerate(texts)]
    source.write_text("\n".join(["case_id,text", *rows]) + "\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return ["run", "extractor", "--cohort", "small", "-w", str(workspace.root)]


def test_counts_are_printed(app, cohort):
    """Every outcome and what came from the store."""
    first = CliRunner().invoke(app, cohort)
    assert first.exit_code == 0, first.output
    assert "answered       3" in first.stdout
    assert "asked          3 (from the store: 0)" in first.stdout
    again = CliRunner().invoke(app, cohort)
    assert "asked          0 (from the store: 3)" in again.stdout
    assert "cases/s" in again.stdout


def test_json_is_one_object_and_nothing_else(app, cohort):
    """Scripts read stdout; progress goes elsewhere."""
    result = CliRunner().invoke(app, [*cohort, "--json", "--limit", "2"])
    printed = json.loads(result.stdout)
    assert (printed["items"], printed["answered"]) == (2, 2)
    assert printed["prompt"].startswith("extractor@v")
    assert printed["cohort"] == "small"


def test_an_unknown_cohort_is_an_error_of_ours(app, cohort):
    """The entry point prints it without a traceback and exits with 1."""
    cohort[3] = "nowhere"
    result = CliRunner().invoke(app, cohort)
    assert isinstance(result.exception, DataError)


def test_a_limit_of_zero_is_a_usage_error(app, cohort):
    """Exit code 2 is for the command line itself."""
    assert CliRunner().invoke(app, [*cohort, "--limit", "0"]).exit_code == 2

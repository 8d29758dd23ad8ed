"""The verbs ``cohort`` and ``agreement`` as a user types them."""

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from loop.cli import agreement, cohort
from loop.core.errors import OverlapError
from loop.core.paths import Workspace

REPORTS = [
    ["case_id", "text", "patient", "edema"],
    ["a1", "Lungs are clear.", "P1", "0"],
    ["a2", "There is edema of the lungs.", "P2", "1"],
]
VOTES = [
    ["reader", "case_id", "label", "value"],
    *([reader, "a1", "Edema", "absent"] for reader in "ABCDEF"),
    *([reader, "a2", "Edema", "present"] for reader in "ABC"),
    *([reader, "a2", "Edema", "absent"] for reader in "DEF"),
]

Command = Callable[..., Result]


@pytest.fixture
def workspace(tmp_path: Path, labels_folder: Path) -> Workspace:
    """Make a workspace without prompts, cohorts or history."""
    root = tmp_path / "ws"
    (root / "prompts").mkdir(parents=True)
    shutil.copytree(labels_folder / "crosswalks", root / "labels" / "crosswalks")
    shutil.copy(labels_folder / "taxonomy.yaml", root / "labels")
    return Workspace(root)


@pytest.fixture
def call(workspace: Workspace) -> Command:
    """Return a function that runs a command line in the workspace."""
    app = typer.Typer()
    cohort.register(app)
    agreement.register(app)

    def run(*words: str) -> Result:
        line = [*words, "--workspace", str(workspace.root)]
        return CliRunner().invoke(app, line)

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a table of reports and one of votes."""

    def write(name: str, rows: Sequence[Sequence[str]]) -> None:
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)

    write("reports.csv", REPORTS)
    write("votes.csv", VOTES)
    write("twin.csv", [REPORTS[0], ["b1", "LUNGS are clear", "P7", "0"]])
    return tmp_path


def test_import_says_what_became_of_the_source(call: Command, files: Path) -> None:
    """Cases, patients, what was left out, and what to do next."""
    result = call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert result.exit_code == 0, result.output
    assert "cases       2" in result.stdout
    assert "left out    0 non-chest" in result.stdout
    assert "reference   v1" in result.stdout
    assert "next: ranloop cohort check" in result.stdout


def test_import_prints_one_json_object(call: Command, files: Path) -> None:
    """A script reads stdout; remarks go to stderr."""
    source, votes = str(files / "reports.csv"), str(files / "votes.csv")
    result = call(
        "cohort", "import", source, "--name", "mine", "--votes", votes, "--json"
    )
    data = json.loads(result.stdout)
    assert data["cases"] == 2
    assert data["reference"] == 1
    assert data["votes"]["reference"] == 2
    assert data["votes"]["marks"]["no_majority"] == 1


def test_check_passes_separate_cohorts(call: Command, files: Path) -> None:
    """One cohort has nothing to be compared with."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    result = call("cohort", "check")
    assert result.exit_code == 0
    assert "1 cohorts, 0 pairs of different roles: nothing to compare" in result.stdout


def test_check_refuses_a_shared_text(call: Command, files: Path) -> None:
    """Both as a message with ids and as JSON with exit code 1."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    twin = str(files / "twin.csv")
    call("cohort", "import", twin, "--name", "sealed", "--role", "holdout")
    result = call("cohort", "check")
    assert isinstance(result.exception, OverlapError)
    assert "share 1 text: a1 = b1" in str(result.exception)
    as_json = call("cohort", "check", "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["pairs"][0]["shared"][0]["kind"] == "text"


def test_show_lists_cohorts_and_one_in_detail(call: Command, files: Path) -> None:
    """A table of all, then marks per label of one."""
    assert "no cohort yet" in call("cohort", "show").stdout
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert "mine" in call("cohort", "show").stdout
    shown = call("cohort", "show", "mine")
    assert "reference v1" in shown.stdout
    data = json.loads(call("cohort", "show", "mine", "--json").stdout)
    assert data["marks"]["edema"] == {"present": 1, "absent": 1}
    assert data["references_edited"] == []
    assert (
        json.loads(call("cohort", "show", "--json").stdout)["cohorts"][0]["cases"] == 2
    )


def test_votes_make_the_next_reference(call: Command, files: Path) -> None:
    """A tie is counted as no majority, in words."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    result = call("cohort", "votes", "mine", str(files / "votes.csv"))
    assert "reference v2 of mine: 12 votes, majority of 4 of 6 readers" in result.stdout
    assert "no_majority 1" in result.stdout


def test_agreement_prints_tables_and_no_nan(call: Command, files: Path) -> None:
    """What cannot be estimated is a dash, never a number that is none."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    result = call("agreement", "mine", "--resamples", "100", "--pairs")
    assert result.exit_code == 0, result.output
    assert "Krippendorff" in result.stdout
    assert "A-B" in result.stdout
    assert "nan" not in result.stdout.casefold()
    data = json.loads(call("agreement", "mine", "--resamples", "100", "--json").stdout)
    assert len(data["labels"][0]["pairs"]) == 15
    assert len(data["pooled"]["ceiling"]["readers"]) == 6


def test_agreement_refuses_an_unknown_policy(call: Command, files: Path) -> None:
    """Usage errors exit with 2."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert call("agreement", "mine", "--uncertain", "ignore").exit_code == 2


def test_no_case_text_is_ever_printed(call: Command, files: Path) -> None:
    """Neither by any verb here nor by its JSON."""
    outputs = [
        call("cohort", "import", str(files / "reports.csv"), "--name", "mine"),
        call("cohort", "show", "mine"),
        call("cohort", "show", "mine", "--json"),
        call("cohort", "check", "--json"),
    ]
    assert all("clear" not in result.output for result in outputs)

"""The demo: a newcomer's first minute must show the loop, and say it is synthetic."""

import json
import re

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.core.paths import find_workspace


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Run the demo once; return its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "ws"
    result = CliRunner().invoke(app, ["demo", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.stdout


@pytest.mark.slow
def test_gates_move_from_failing_to_passing(told):
    """Two rounds of verdicts take most labels over the gate."""
    passes = [int(n) for n in re.findall(r"gates: (\d+) PASS", told[1])]
    fails = [int(n) for n in re.findall(r"(\d+) FAIL,", told[1])]
    assert len(passes) == 3
    assert passes[0] < passes[1] < passes[2]
    assert fails[0] > 10 and fails[2] == 0


@pytest.mark.slow
def test_says_that_everything_is_synthetic(told):
    """No number of the demo may be taken for evidence."""
    folder, text = told
    assert "SYNTHETIC" in text.splitlines()[0]
    assert "ynthetic" in (folder / "reports" / "evaluation.html").read_text("utf-8")


@pytest.mark.slow
def test_leaves_a_page_that_needs_no_network(told):
    """The document opens on a hospital computer without internet."""
    page = (told[0] / "reports" / "evaluation.html").read_text("utf-8")
    assert "<svg" in page
    assert not re.search(r"<script|<link|<img|@import|url\(|(?:src|href)=.?http", page)


@pytest.mark.slow
def test_every_step_is_in_the_ledger(told):
    """The chain holds and tells the story."""
    actions = [one.action for one in read_ledger(find_workspace(told[0]).ledger)]
    assert actions.count("draft_committed") == 3
    assert actions.count("evaluated") == 3
    assert "reference_revised" in actions
    assert actions.index("protocol_set") < actions.index("evaluated")


@pytest.mark.slow
def test_case_text_stays_in_the_private_folder(told):
    """Not even synthetic texts leave the private folder."""
    folder = told[0]
    first = next((folder / ".ranloop" / "cases").glob("demo_dev.jsonl"))
    text = json.loads(first.read_text("utf-8").splitlines()[0])["text"]
    assert text not in told[1]
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if (
            path.is_file()
            and inside[0] != ".ranloop"
            and inside[:2] != ("labels", "demo")
        ):
            assert text not in path.read_text("utf-8", "ignore"), path


@pytest.mark.slow
def test_json_is_one_object(tmp_path):
    """With --json a script can read the whole story."""
    result = CliRunner().invoke(app, ["demo", str(tmp_path / "ws"), "--json"])
    data = json.loads(result.stdout)
    assert data["synthetic"] is True
    assert len(data["versions"]) == 3


def test_folder_that_is_not_empty_is_left_alone(tmp_path):
    """Nothing of the user's is overwritten."""
    (tmp_path / "mine").write_text("x")
    result = CliRunner().invoke(app, ["demo", str(tmp_path)])
    assert result.exit_code != 0
    assert "is not empty" in str(result.exception)
    assert (tmp_path / "mine").read_text() == "x"

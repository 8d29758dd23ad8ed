"""The demo: a newcomer's first minute must show the loop, and say it is synthetic."""

import json
import re
from types import SimpleNamespace as Made

import pytest
from typer.testing import CliRunner

from loop.cli import demo
from loop.cli.main import app
from loop.core.ledger import read_ledger
from loop.core.paths import find_workspace
from loop.review.revise.check import TargetOutcome


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


def test_an_empty_folder_is_as_good_as_a_new_one(tmp_path):
    """It gets the files that the demo imports, and a ledger with one entry."""
    made = demo._prepare(tmp_path)
    assert (made.root, made.prompts.is_dir()) == (tmp_path, True)
    files = sorted(path.name for path in (made.labels / "demo").iterdir())
    assert {"dev.jsonl", "votes_dev.csv", "verdicts_1.yaml"} <= {*files}
    (entry,) = read_ledger(made.ledger)
    assert (entry.action, entry.subject) == ("draft_committed", "extractor@v1")
    assert entry.reason == "the shipped first version, as the start of the demo"


def round_of(**changes):
    """Return a round of two verdicts that ask for three changes, and its check."""
    outcomes = (TargetOutcome.FIXED, TargetOutcome.IMPROVED, TargetOutcome.UNCHANGED)
    told = {
        "verdicts": [Made(edits=Made(count=1)), Made(edits=Made(count=2))],
        "corrections": 0,
        "reference": 7,
        "parent": Made(ref="extractor@v4"),
        "check": Made(targets=[Made(progress=one) for one in outcomes], cases=30),
        "version": Made(ref="extractor@v5"),
        "objections": (),
    }
    return Made(**{**told, **changes})


ASKED = "2 verdicts ask for 3 changes of wording"
CHECKED = (
    "checked against extractor@v4 on 30 cases: 2 of 3 judged answers fixed or improved"
)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                *(ASKED, CHECKED),
                "no label got worse than agreed: committed extractor@v5",
            ],
        ),
        (
            {"version": None, "corrections": 4, "objections": ("one", "two")},
            [
                ASKED,
                "4 say the reference is wrong: corrected in reference version 7, not "
                "in the prompt",
                *(CHECKED, "stays a draft: one", "stays a draft: two"),
            ],
        ),
        ({"version": None, "check": None}, [ASKED]),
    ],
)
def test_a_round_is_told_as_it_went(changes, lines):
    """Committed, kept as a draft with why, or without a check."""
    assert demo._story(round_of(**changes)) == lines


def test_where_to_look_next_is_the_label_with_the_lowest_f1():
    """A label without an F1 is passed over."""
    values = {"edema": 0.5, "mass": None, "fracture": 0.25, "nodule": 0.75}
    labels = [
        Made(label=name, confusion=Made(f1=value)) for name, value in values.items()
    ]
    assert demo._worst(Made(labels=labels)) == "fracture"
    assert demo._worst(Made(labels=labels[1:2] + labels[3:])) == "nodule"


@pytest.mark.slow
def test_fewer_rounds_leave_the_first_versions_page(tmp_path):
    """Of the one version there is: compared with nothing."""
    done = CliRunner().invoke(app, ["demo", "--rounds", "0", str(tmp_path / "ws")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line for line in lines if re.match(r"\d\. ", line)] == [
        f"1. A workspace: {tmp_path / 'ws'}",
        "2. extractor@v1: label names and one-line definitions, no more",
    ]
    assert lines[3:6] == [
        "   demo_dev: 210 reports, 26,460 votes of 6 simulated readers, reference by 4 "
        "of 6",
        "   demo_holdout: 108 reports, 13,608 votes of 6 simulated readers, reference "
        "by 4 of 6",
        "   the two share no case, patient or text; the holdout stays closed",
    ]
    assert "How the gates moved, all on reference version 1" in lines
    assert lines[-4:-1] == [
        f"  ranloop {words} --workspace {tmp_path / 'ws'}"
        for words in (
            "history extractor",
            "diff extractor@v1 extractor@v1",
            "failures --label enlarged_cardiomediastinum --text evidence",
        )
    ]

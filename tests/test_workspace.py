"""The same steps from Python as on the command line, with tables in and out."""

import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import loop
from loop.cli.main import app
from loop.core.errors import DataError, WorkspaceError
from loop.core.ledger import read_ledger
from loop.core.paths import bundled
from loop.labels.cohort import read_cohort
from loop.workspace import Workspace

DEMO = bundled() / "labels" / "demo"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a workspace with the demo's two cohorts, given as tables, and a run."""
    made = Workspace.init(tmp_path_factory.mktemp("api") / "study", actor="Dr A")
    for name, role in (("dev", "dev"), ("holdout", "holdout")):
        cases = pd.read_json(DEMO / f"{name}.jsonl", lines=True, dtype=False)
        votes = pd.read_csv(DEMO / f"votes_{name}.csv", dtype=str)
        made.add_cohort(cases, name, role=role, votes=votes, need=4, why="test")
    made.run("extractor", "dev")
    return made


def test_public_names_come_from_the_top():
    """One import; what they need is loaded when they are used."""
    assert loop.Workspace is Workspace
    assert {"Workspace", "label", "ran_score"} < set(loop.__all__)
    code = (
        "import sys, loop; print('pandas' in sys.modules); loop.Workspace; "
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="Worksapce"):
        loop.Worksapce  # noqa: B018


def test_cohorts_are_a_table(study):
    """What is there, and nothing of any case."""
    table = study.cohorts
    assert table.loc["dev", ["role", "cases", "reference"]].tolist() == [
        "dev",
        210,
        "v1",
    ]
    assert table.loc["holdout", "role"] == "holdout"
    assert study.check_cohorts().separate


def test_a_table_gives_the_cohort_that_its_file_gives(study, tmp_path):
    """Whichever way cases come in, their ids and texts have the same digest."""
    other = Workspace.init(tmp_path / "other", actor="Dr A")
    from_file = other.add_cohort(DEMO / "dev.jsonl", "dev")
    assert from_file.digest == read_cohort(study.paths, "dev").digest


def test_an_evaluation_is_what_the_command_line_prints(study):
    """The same numbers under the same signature, and the ledger has them."""
    found = study.evaluate()
    shown = CliRunner().invoke(
        app, ["evaluate", "--json", "-w", str(study.paths.root), "--actor", "Dr A"]
    )
    assert found.signature in shown.stdout
    assert found.table.index.tolist()[0] == "atelectasis"
    assert found.table.loc["no_finding", "verdict"] in {"PASS", "FAIL"}
    assert found.passed is (shown.exit_code == 0)
    assert found.macro_f1 == pytest.approx(0.9745, abs=0.01)
    html = found._repr_html_()
    assert found.signature in html
    assert "<td>Atelectasis</td>" in html
    assert read_ledger(study.paths.ledger)[-1].actor == "Dr A"


def test_a_holdout_stays_closed(study):
    """What a notebook can do, nobody should be able to do to a holdout."""
    with pytest.raises(DataError, match="holdout cohorts open only for a frozen"):
        study.run("extractor", "holdout")


def test_failures_hold_no_text_unless_asked(study):
    """A table that is shown in a notebook is soon in version control."""
    bare = study.failures()
    assert {"case_id", "label", "kind"} <= set(bare.columns)
    assert "evidence" not in bare.columns
    one = study.failures(label=bare["label"].iloc[0], text="evidence")
    assert set(one["label"]) == {bare["label"].iloc[0]}
    assert one["evidence"].map(type).eq(str).all()
    with pytest.raises(ValueError, match="is not a valid FailureKind"):
        study.failures(kind="wrong")


def test_labels_of_a_run_are_the_file_that_is_written(study, tmp_path):
    """One row a case, in the order of the cohort."""
    table = study.labels(names="ids", values="numbers")
    file = tmp_path / "labels.parquet"
    command = ["labels", "--out", str(file), "--names", "ids", "--values", "numbers"]
    CliRunner().invoke(app, [*command, "-w", str(study.paths.root)])
    written = pd.read_parquet(file).set_index("case_id")
    pd.testing.assert_frame_equal(table, written)


def test_nothing_private_is_left_behind(study):
    """Tables of texts are written for a moment, in the private folder."""
    before = set(study.paths.private.iterdir())
    assert study.labels(text=True)["text"].str.len().min() > 0
    assert set(study.paths.private.iterdir()) == before


def test_a_name_that_looks_like_another_one_acts_no_more_than_on_the_command_line(
    study,
):
    """A Cyrillic letter does not make another Dr A."""
    other = Workspace(study.paths.root, actor="Dr \u0410")
    for act in (
        lambda: other.evaluate("latest"),
        lambda: other.add_verdicts([], cohort="dev"),
    ):
        with pytest.raises(DataError, match="looks like 'Dr A'"):
            act()


def test_from_a_verdict_to_a_release(tmp_path):
    """The whole loop; each step is in the ledger under the name of whoever acts."""
    study = Workspace.init(tmp_path / "study", actor="Dr B")
    cases = pd.DataFrame(
        {
            "case_id": [f"{n:03}" for n in range(70)],
            "text": [
                f"Study {n}. " + ("Wet lungs." if n % 5 == 0 else "Normal chest.")
                for n in range(70)
            ],
            "Edema": ["present" if n % 5 == 0 else "absent" for n in range(70)],
        }
    )
    study.add_cohort(cases, "dev")
    study.run("extractor", "dev")
    assert not study.evaluate().passed
    failing = study.failures(label="edema")
    assert failing["case_id"].tolist()[:2] == ["000", "005"]
    study.add_verdicts(
        [
            {
                "case": "000",
                "label": "edema",
                "judgement": "model_wrong",
                "terms": ["wet lungs"],
            }
        ],
        run="latest",
    )
    revised = study.revise("extractor", "dev", why="a word of the ward")
    assert (revised.version.ref, revised.objections) == ("extractor@v2", ())
    with pytest.raises(DataError, match="no verdict on extractor is open"):
        study.revise("extractor", "dev")
    study.new_key()
    stopped = study.freeze("extractor", "dev", why="for the ward")
    assert (stopped.folder, bool(stopped.objections)) == (None, True)
    frozen = study.freeze("extractor", "dev", why="for the ward", override="a test")
    assert frozen.name == "extractor-v2"
    assert study.verify("extractor-v2").holds
    assert study.audit().holds
    assert study.history("extractor")["ref"].tolist()[-1] == "extractor@v2"
    newest = study.runs().iloc[0]
    assert (newest["prompt"], newest["draw"], newest["who"]) == (
        "extractor@v2",
        1,
        "Dr B",
    )
    read = study.label({"x": "Wet lungs."}, release="extractor-v2")
    assert read.loc["x", "Edema"] == "present"
    assert {entry.actor for entry in read_ledger(study.paths.ledger)} == {"Dr B"}


def test_an_own_task_needs_labels_only(tmp_path):
    """Any labels of any kind of text."""
    labels = tmp_path / "labels.csv"
    labels.write_text("name,definition\nStroke,The brain lost its supply of blood.\n")
    study = Workspace.init(tmp_path / "brain", labels=labels, prompt="mri")
    study.add_cohort(
        pd.DataFrame({"case_id": ["a"], "text": ["Stroke on the left."]}), "dev"
    )
    study.run("mri", "dev")
    assert study.labels()["Stroke"].tolist() == ["present"]


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (lambda one: one.run("nobody", "dev"), DataError, "no prompt 'nobody'"),
        (lambda one: one.run("extractor", "none"), DataError, "none"),
        (lambda one: one.freeze("extractor", "dev", why=" "), DataError, "why needs"),
        (
            lambda one: one.revise("extractor", "dev", contract="x", override=True),
            DataError,
            "an override needs why",
        ),
        (lambda one: one.verify("extractor-v99"), DataError, "extractor-v99"),
    ],
)
def test_what_is_wrong_is_said_as_on_the_command_line(study, step, error, message):
    """The same errors, with the way on."""
    with pytest.raises(error, match=message):
        step(study)


def test_without_a_workspace_it_says_how_to_make_one(tmp_path, monkeypatch):
    """As every verb does."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceError, match="ranloop init"):
        Workspace()

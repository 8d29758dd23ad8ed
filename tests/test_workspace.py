"""The same steps from Python as on the command line, with tables in and out."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import loop
from loop.cli.main import app
from loop.core.errors import (
    ConflictError,
    DataError,
    EngineError,
    WorkspaceError,
)
from loop.core.ledger import read_ledger
from loop.core.paths import bundled
from loop.core.people.passwords import Cost
from loop.evaluate.plan_text import plan_data
from loop.labels import upgrade
from loop.labels.cohort import read_cohort
from loop.labels.reader_agreement import agreement_table
from loop.labels.taxonomy import read_taxonomy
from loop.run.asking import EngineOptions
from loop.workspace import Workspace
from tests.typed_api import keep_study, make_study

DEMO = bundled() / "labels" / "demo"


def shown(study, *words):
    """Return what the command line prints of a workspace."""
    done = CliRunner().invoke(app, [*words, "-w", str(study.paths.root)])
    assert done.exit_code == 0, done.output
    return done.stdout


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


def test_experts_ratings_of_pairs_come_from_tables(tmp_path):
    """Added and read as the statistics take them, in two calls."""
    made = Workspace.init(tmp_path / "pairs", actor="Dr A")
    pairs = pd.DataFrame(
        {
            "id": ["a", "b"],
            "reference": ["Clear lungs."] * 2,
            "candidate": ["", "Clear."],
        }
    )
    made.add_cohort(pairs, "rp")
    ratings = pd.DataFrame({"case_id": ["a", "b"], "rater": "A", "points": [1, 5]})
    errors = pd.DataFrame(
        {"case_id": ["a"], "rater": "A", "category": "b", "significance": "significant"}
    )
    report = made.add_ratings("rp", ratings=ratings, errors=errors, scale="1-5")
    assert (report.ratings, report.errors) == (2, 1)
    assert made.ratings("rp").scores.tolist() == [[1.0], [5.0]]


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
    with pytest.raises(ValueError, match="kind must be one of false_positive"):
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
    study = make_study(tmp_path / "study")
    with pytest.raises(DataError, match="no verdict on extractor is open"):
        study.revise("extractor", "dev")
    assert study.verify("extractor-v2").holds
    assert study.verify("extractor-v7").holds, "a shipped one"
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


def test_a_prompt_is_begun_and_shown_as_on_the_command_line(study):
    """The same text; what it comes from is in the ledger."""
    made = study.new_prompt("second", source="extractor@v1", why="to try things")
    assert (made.version.ref, made.origin.ref) == ("second@v1", "extractor@v1")
    entry = read_ledger(study.paths.ledger)[-1]
    assert (entry.actor, entry.subject, entry.reason) == (
        "Dr A",
        "second@v1",
        "to try things",
    )
    for options in ({}, {"rendered": True}):
        words = [f"--{name}" for name in options]
        assert f"{study.show_prompt('second', **options)}\n" == shown(
            study, "prompt", "show", "second", *words
        )
    assert "[guides.yaml]" in study.show_prompt("second")
    with pytest.raises(ConflictError, match="there is a prompt second already"):
        study.new_prompt("second")


def test_a_prompt_may_ask_for_listed_labels_only(study, tmp_path):
    """A file, as the command line takes it."""
    label = study.paths.labels / "taxonomy.yaml"
    listed = [one for one in read_taxonomy(label.parent).labels if one.id == "edema"]
    file = tmp_path / "labels.csv"
    file.write_text(f'id,name,definition\nedema,Edema,"{listed[0].definition}"\n')
    made = study.new_prompt("edema_only", labels=str(file))
    assert made.version.labels == ("edema",)


def test_what_may_go_is_shown_and_goes_only_when_told(tmp_path):
    """The rows that the command line prints; answers that runs rest on stay."""
    study = Workspace.init(tmp_path / "study", actor="Dr A")
    frame = pd.DataFrame({"case_id": ["a"], "text": ["Wet lungs."]})
    study.add_cohort(frame, "dev")
    study.run("extractor", "dev")
    study.add_cohort(frame, "dev", replace=True)
    replaced = study.paths.private / "replaced"
    before = set(replaced.iterdir())
    assert study.clean().empty
    table = study.clean(completions=True, replaced=True, head=True)
    told = json.loads(
        shown(study, "clean", "--completions", "--replaced", "--head", "--json")
    )
    assert table.to_dict("records")[:-1] == told["files"]
    assert table["purpose"].iloc[-1] == "0 stored answers that no run rests on"
    assert set(replaced.iterdir()) == before != set()
    study.clean(replaced=True, yes=True)
    assert not any(replaced.iterdir())
    assert study.labels()["status"].tolist() == ["answered"]


def test_labels_are_upgraded_as_on_the_command_line(tmp_path, monkeypatch):
    """A dry run changes nothing; what was edited here stays."""
    study = Workspace.init(tmp_path / "study", actor="Dr A")
    newer = tmp_path / "newer"
    shutil.copytree(bundled() / "labels", newer / "labels")
    monkeypatch.setattr(upgrade, "bundled", lambda: newer)
    cues, later = study.paths.labels / "cues", newer / "labels" / "cues"
    for file, line in (
        (later / "en.yaml", "# later\n"),
        (later / "zh.yaml", "# later\n"),
        (cues / "zh.yaml", "# ours\n"),
    ):
        file.write_text(file.read_text("utf-8") + line, "utf-8")
    table = study.upgrade(dry_run=True)
    told = json.loads(shown(study, "upgrade", "--dry-run", "--json"))["files"]
    assert table.reset_index().to_dict("records") == told
    assert table.loc[table["taken"]].index.tolist() == ["labels/cues/en.yaml"]
    assert not (cues / "en.yaml").read_text("utf-8").endswith("# later\n")
    study.upgrade(why="better cues")
    assert (cues / "en.yaml").read_text("utf-8").endswith("# later\n")
    assert (cues / "zh.yaml").read_text("utf-8").endswith("# ours\n")
    entry = read_ledger(study.paths.ledger)[-1]
    assert (entry.actor, entry.reason) == ("Dr A", "better cues")


def test_a_backup_comes_back_as_a_workspace(study, tmp_path, monkeypatch):
    """And is never written among the files that it is of."""
    monkeypatch.setattr("loop.release.backup._COST", Cost(n=2**4, r=8, p=1))
    again = keep_study(Workspace(study.paths.root, actor="Dr A"), tmp_path)
    assert again.paths.root == tmp_path / "again"
    pd.testing.assert_frame_equal(again.labels(text=True), study.labels(text=True))
    assert again.audit().holds
    for place in (study.paths.private, study.paths.prompts):
        with pytest.raises(DataError, match="the workspace's own files"):
            study.backup(place / "monday", "five quiet wards at night")
        assert not (place / "monday").exists()


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "extractor", "release": "extractor-v1"}, "a prompt or a release"),
        ({"prompt": ""}, "a prompt or a release"),
        ({"prompt": "extractor", "repeats": 0}, "repeats must be >= 1, got 0"),
        (
            {"prompt": "extractor", "engine": "replay:latest", "repeats": 2},
            "same answers each time",
        ),
        (
            {"prompt": "extractor", "asking": EngineOptions(batch=True)},
            "a batch needs an engine vllm:MODEL, got 'rules'",
        ),
    ],
)
def test_a_run_refuses_what_it_would_pass_over(study, options, message):
    """What the command line refuses is not done in another way from Python."""
    with pytest.raises(ValueError, match=message):
        study.run(cohort="dev", **options)


def test_asking_again_is_refused_where_it_changes_nothing(study):
    """As ``--again`` is: `rules` gives the same answer each time."""
    with pytest.raises(EngineError, match="asking again changes nothing"):
        study.run("extractor", "dev", again=True)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda one: one.failures(kind="fn"), "kind must be one of false_positive"),
        (lambda one: one.failures(text="all"), "text must be one of none, evidence"),
        (lambda one: one.verify("extractor-v1", keys="k.json"), "keys of your own"),
        (
            lambda one: one.verify("extractor-v1", expect="extractor-v2"),
            "which release it must be",
        ),
    ],
)
def test_an_argument_that_is_none_of_the_choices_is_not_passed_over(
    study, step, message
):
    """It would else be ignored, or be an error that does not say what to do."""
    with pytest.raises(ValueError, match=message):
        step(study)


def test_a_version_names_its_prompt_in_the_history(study):
    """As on the command line; it was an error of pandas."""
    assert study.history("extractor@v1").equals(study.history("extractor"))
    with pytest.raises(DataError, match="no prompt 'nobody'"):
        study.history("nobody@v1")


def test_one_name_or_file_needs_no_list(study):
    """A string was taken letter by letter."""
    assert list(study.check_cohorts("dev").cohorts) == ["dev"]
    shipped = bundled() / "reports" / "releases"
    key = next((shipped / "keys").glob("*-d91ed761.json"))
    folder = shipped / "extractor-v11"
    assert study.verify(folder, keys=str(key)).holds
    assert not study.verify(folder, keys=key, expect="extractor-v10").holds


def test_agreement_and_plan_are_those_of_the_command_line(study, tmp_path):
    """The same numbers, from the method of the same name."""
    report = study.agreement("dev", resamples=100)
    file = tmp_path / "agreement.csv"
    shown(study, "agreement", "dev", "--resamples", "100", "--csv", str(file))
    assert agreement_table(report).encode() == file.read_bytes()
    said = shown(study, "agreement", "dev", "--against", "latest", "--json")
    beside, ceiling = json.loads(said)["against"], study.ceiling("dev")
    assert beside["run"] == ceiling.run
    assert [row["label"] for row in beside["labels"]] == [
        row.label for row in ceiling.labels
    ]
    assert beside["pooled"]["kappa"]["difference"] == (
        ceiling.pooled.kappa.difference._asdict()
    )
    made = study.plan("extractor", cohort="dev")
    said = json.loads(shown(study, "plan", "extractor", "-c", "dev", "--json"))
    assert plan_data(made) == said
    assert study.plan("latest").cohort == "dev"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda one: one.agreement("dev", uncertain="x"), "leave-out, category"),
        (lambda one: one.plan(), "name a cohort"),
        (lambda one: one.plan(cohort="dev", accuracy=[]), "above 0, got none"),
        (lambda one: one.plan(cohort="dev", accuracy=[0.99, 98]), "above 0, got 0.99"),
    ],
)
def test_what_cannot_be_measured_is_refused(study, step, message):
    """Before anything is read, with what it may be."""
    with pytest.raises(ValueError, match=message):
        step(study)


def test_every_function_of_the_table_is_there():
    """Who goes from a command to Python imports what the page names."""
    pages = Path(__file__).resolve().parents[1] / "docs" / "reference"
    page = (pages / "api.md").read_text(encoding="utf-8")
    table = "".join(line for line in page.splitlines() if line.startswith("| "))
    named = re.findall(r"`(loop(?:\.[a-z_]+){2,})`", table)
    assert len(named) > 15
    for name in named:
        module, _, function = name.rpartition(".")
        assert getattr(importlib.import_module(module), function).__doc__

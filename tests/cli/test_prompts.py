"""The verbs that read and change prompts, as a person or a script calls them."""

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import alias, diff, history, init, lint, revise
from loop.core.errors import DataError, WorkspaceError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from tests.conftest import shipped_workspace

EDITOR = Actor(name="Dr A. Example")
VERDICTS = """
judgement: guideline_ambiguous
verdicts:
- cases: [f0, f1]
  label: pleural_effusion
  terms: [fluid ... base]
"""


@pytest.fixture
def app():
    """Return a command with these verbs only."""
    made = typer.Typer()
    for module in (alias, diff, history, init, lint, revise):
        module.register(made)
    return made


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a prompt, a dev cohort and a verdict file."""
    guide = Guide(label="pleural_effusion", name="Pleural Effusion", definition="Fluid")
    user = "{% for guide in guides %}{{ guide.name }}{% endfor %}\n{{ text }}\n"
    write_version(
        workspace,
        PromptVersion(
            name="tiny", number=1, system="Read.\n", user=user, guides=(guide,)
        ),
    )
    with (tmp_path / "dev.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", "pleural_effusion"])
        writer.writerows([f"f{n}", f"Fluid at the base, {n}.", 1] for n in range(4))
        writer.writerows([f"n{n}", f"Clear lungs, {n}.", 0] for n in range(4))
    options = ImportOptions(name="dev", role="dev", source="synthetic", licence="-")
    import_cohort(workspace, tmp_path / "dev.csv", options, actor=EDITOR)
    (tmp_path / "verdicts.yaml").write_text(VERDICTS)
    return workspace.root


@pytest.fixture
def call(app, place):
    """Return a function that calls a verb in the workspace."""

    def invoke(verb, *args):
        words = [verb, *map(str, args), "--workspace", str(place)]
        return CliRunner().invoke(app, words)

    return invoke


def revise_args(tmp_path, *more):
    """Return the arguments of a round."""
    return ("tiny", "--verdicts", tmp_path / "verdicts.yaml", "--cohort", "dev", *more)


def test_a_round_prints_diff_check_and_result(call, tmp_path):
    """What a clinician needs to see, in the order it happened."""
    result = call("revise", *revise_args(tmp_path))
    assert result.exit_code == 0
    positions = [
        result.stdout.index(part)
        for part in (
            "1 verdict on tiny@v1",
            "+ term: fluid ... base",
            "check on 8 cases",
            "2 fixed",
            "committed tiny@v2",
        )
    ]
    assert positions == sorted(positions)


def test_a_round_that_fails_exits_with_100_and_says_why(call, tmp_path):
    """A script can tell a failed check from an error."""
    (tmp_path / "verdicts.yaml").write_text(VERDICTS.replace("fluid ... base", "water"))
    result = call("revise", *revise_args(tmp_path))
    assert result.exit_code == 100
    assert "NOT committed; kept as tiny@draft:" in result.stdout
    assert "  - no targeted case was fixed or improved" in result.stdout
    assert "unchanged: f0 pleural_effusion absent -> absent, should be present" in (
        result.stdout
    )


def test_labels_that_no_margin_could_judge_are_named(call, tmp_path):
    """A label that passes by counts, or by nothing, does not look like the others."""
    kept = call("revise", *revise_args(tmp_path, "--keep-draft", "--json")).stdout
    bases = {row["label"]: row["basis"] for row in json.loads(kept)["check"]["labels"]}
    assert (bases["pleural_effusion"], bases["edema"]) == ("counts", "nothing")
    out = call("revise", *revise_args(tmp_path)).stdout
    by_counts, nothing = out.split("* judged by counts")[1].split("not judged: no case")
    assert "accuracy: pleural_effusion" in by_counts
    assert "sensitivity: pleural_effusion" in by_counts
    assert "edema" in nothing.split("targeted cases")[0]
    row = next(
        line for line in out.splitlines() if line.startswith("pleural_effusion ")
    )
    assert row.count(" *") == 2


def test_json_is_one_object_and_nothing_else(call, tmp_path):
    """Stdout can be piped into another program."""
    result = call("revise", *revise_args(tmp_path, "--json"))
    data = json.loads(result.stdout)
    assert (data["version"], data["committed"]) == ("tiny@v2", True)
    assert data["check"]["passed"] is True
    assert len(data["runs"]) == 3


def test_an_override_needs_a_reason(call, tmp_path):
    """It stands in the ledger with a name."""
    result = call("revise", *revise_args(tmp_path, "--override"))
    assert result.exit_code == 2
    assert "--override needs --why" in result.stderr


def test_a_kept_draft_is_not_a_success(call, tmp_path):
    """Nothing was committed, and the output says whose choice that was."""
    result = call("revise", *revise_args(tmp_path, "--keep-draft"))
    assert result.exit_code == 100
    assert "because of --keep-draft; the check passed" in result.stdout


def test_revise_without_verdicts_says_what_is_missing(call):
    """Only a draft can be revised without a file."""
    result = call("revise", "tiny", "--cohort", "dev")
    assert isinstance(result.exception, DataError)
    assert "Name a file with --verdicts" in str(result.exception)


def test_history_shows_versions_changes_and_what_is_wrong(call, tmp_path, place):
    """The history also tells of versions that nobody recorded."""
    call("revise", *revise_args(tmp_path, "--why", "bases were missed"))
    result = call("history", "tiny")
    assert "+1 term" in result.stdout
    assert "bases were missed" in result.stdout
    assert "! not in the ledger" in result.stdout
    data = json.loads(call("history", "tiny", "--json").stdout)
    assert [row["number"] for row in data["versions"]] == [1, 2]
    assert data["versions"][1]["events"][0]["action"] == "draft_committed"


def test_history_lists_every_event_when_asked(call, tmp_path):
    """The full record is one option away."""
    call("revise", *revise_args(tmp_path))
    assert "draft_committed by" in call("history", "tiny", "--events").stdout


def test_diff_prints_terms_and_json(call, tmp_path):
    """The same content for people and programs."""
    call("revise", *revise_args(tmp_path))
    assert "  + term: fluid ... base" in call("diff", "tiny@v1", "tiny@v2").stdout
    data = json.loads(call("diff", "tiny@v1", "tiny@v2", "--json").stdout)
    assert data["guides"]["pleural_effusion"][0]["text"] == "fluid ... base"


def test_lint_exits_with_1_on_errors_only(call, place):
    """Usable as a check before a commit."""
    assert call("lint", "tiny").exit_code == 0
    guide = Guide(label="nonsense", name="N", definition="d")
    bad = PromptVersion(
        name="bad", number=1, system="", user="{{ text }}", guides=(guide,)
    )
    write_version(WorkspacePaths(place), bad)
    result = call("lint", "bad")
    assert result.exit_code == 1
    assert "error: guide nonsense: is no label" in result.stdout
    assert json.loads(call("lint", "bad", "--json").stdout)["findings"]


def test_lint_shows_exemplars_beside_positives_and_gates(call):
    """The rarest label first; no exemplar at all is a warning, and no error."""
    result = call("lint", "tiny", "--cohort", "dev")
    assert result.exit_code == 0, result.output
    assert "4 of 8" in result.stdout and "50.0 %" in result.stdout
    assert "0 exemplars, 3 wanted: dev has 4 of 10 positives" in result.stdout
    found = json.loads(call("lint", "tiny", "--cohort", "dev", "--json").stdout)
    assert found["exemplars"] == [
        {
            "label": "pleural_effusion", "present": 0, "alike": 0, "positives": 4,
            "cases": 8,
            "gate_lacks": "4 of 10 positives, 4 of 10 negatives, 8 of 59 cases",
        }
    ]  # fmt: skip
    assert call("lint", "tiny", "--cohort", "none").exit_code != 0


def test_another_contract_is_no_lint_error(app, tmp_path):
    """The frozen words on how to answer change with the contract, and only they."""
    whole = shipped_workspace(tmp_path / "whole")
    source = tmp_path / "small.csv"
    source.write_text(
        "case_id,text,edema\n"
        + "".join(f"c{n},Radiograph {n}: no edema.,0\n" for n in range(3))
    )
    options = ImportOptions(name="small", role="dev", source="synthetic", licence="-")
    import_cohort(whole, source, options, actor=EDITOR)
    revised = CliRunner().invoke(
        app,
        ["revise", "extractor", "--contract", "findings", "--cohort", "small",
         "--why", "cheaper", "--keep-draft", "-w", str(whole.root)],
    )  # fmt: skip
    assert "extractor@draft" in revised.stdout, revised.output
    linted = CliRunner().invoke(app, ["lint", "extractor@draft", "-w", str(whole.root)])
    assert linted.exit_code == 0, linted.output


def test_an_alias_moves_and_remembers_where_it_was(call, tmp_path):
    """Production is a line in the ledger."""
    call("revise", *revise_args(tmp_path))
    first = call("alias", "tiny@v1", "production", "--why", "first")
    assert "tiny@production is now tiny@v1" in first.stdout
    second = call("alias", "tiny@v2", "production", "--why", "better")
    assert "is now tiny@v2 (was v1)" in second.stdout
    assert "v2 (production)" in call("history", "tiny").stdout


def test_init_makes_a_workspace_once(app, tmp_path):
    """It never overwrites one."""
    target = tmp_path / "new"
    made = CliRunner().invoke(app, ["init", str(target)])
    assert made.exit_code == 0
    assert (target / "prompts" / "extractor" / "v1" / "prompt.yaml").is_file()
    again = CliRunner().invoke(app, ["init", str(target)])
    assert isinstance(again.exception, WorkspaceError)

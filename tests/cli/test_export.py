"""The verb ``export``, as a person or a script calls it."""

import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import export
from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release.export import load_export
from loop.review.start import JudgeOutline, new_prompt
from tests.release.small import NAME, freeze_small

SECRET = "zebra"
TABLE = f"case_id,text,edema\nc1,No edema. {SECRET} one.,0\nc2,,1\nc3,{SECRET} two.,\n"


@pytest.fixture
def call(workspace, tmp_path):
    """Return what calls the verb with some options, into the folder ``x``."""
    app = typer.Typer()
    export.register(app)
    app.callback()(lambda: None)

    def run(prompt, to, *more):
        place = ["--out", str(tmp_path / "x"), "--workspace", str(workspace.root)]
        command = ["export", prompt, "--to", to, *place, *more]
        return CliRunner().invoke(app, command, catch_exceptions=False)

    return run


@pytest.fixture
def table(tmp_path):
    """Return a file with two cases that have a text."""
    path = tmp_path / "week.csv"
    path.write_text(TABLE)
    return path


def test_templates_are_written_and_the_digest_is_shown(call, tmp_path, workspace):
    """With what there is to know."""
    result = call("extractor@v1", "jinja", "--actor", "Dr A. Example")
    loaded = load_export(tmp_path / "x")
    assert result.exit_code == 0
    assert loaded.prompt_digest in result.stdout
    assert "system.jinja" in result.stdout
    assert "is exported as a version" in result.stdout
    assert read_ledger(workspace.ledger)[-1].actor == "Dr A. Example"


def test_json_is_one_object_and_nothing_else(call, table):
    """For scripts; no text of a case is in it."""
    result = call(
        "extractor@v1", "vllm-batch", "--model", "m", "--input", str(table), "--json"
    )
    data = json.loads(result.stdout)
    assert data["cases"]["count"] == 2
    assert data["left_out"] == {"empty": 1}
    assert SECRET not in result.output


def test_a_file_of_texts_is_announced(call, table, tmp_path):
    """Texts left the private folder because somebody said so."""
    result = call("extractor@v1", "openai-batch", "--model", "m", "-i", str(table))
    digest = load_export(tmp_path / "x").prompt_digest
    assert result.stdout.splitlines()[:13] == [
        f"extractor@v1, exported to openai-batch: {tmp_path / 'x'}",
        f"  prompt digest  {digest}",
        "  contract       label_values/1",
        "  model          m",
        "  file           .gitignore",
        "  file           prompt/guides.yaml",
        "  file           prompt/prompt.yaml",
        "  file           prompt/system.jinja",
        "  file           prompt/user.jinja",
        "  file           requests-0001.jsonl",
        "  cases          2 of file week.csv",
        "  left out       1 empty",
        "  THE REQUESTS HOLD THE TEXTS OF THESE CASES: only you may read them (0600), "
        "and git ignores the folder",
    ]
    assert SECRET not in result.output
    assert SECRET in (tmp_path / "x" / "requests-0001.jsonl").read_text()


def test_the_cases_of_a_cohort_are_those_of_its_digest(call, table, workspace):
    """So that anyone can say which cases were asked about."""
    options = ImportOptions(name="dev", role="dev", source="test", licence="-")
    import_cohort(workspace, table, options, actor=Actor(name="t"))
    result = call("extractor@v1", "vllm-batch", "-m", "m", "-c", "dev", "--json")
    assert json.loads(result.stdout)["cases"] == {
        "origin": "cohort dev",
        "count": 2,
        "digest": read_cohort(workspace, "dev").digest,
    }


def test_a_holdout_is_refused(call, table, workspace, tmp_path):
    """It opens only for a frozen version, and nothing is written."""
    options = ImportOptions(name="locked", role="holdout", source="test", licence="-")
    import_cohort(workspace, table, options, actor=Actor(name="t"))
    with pytest.raises(DataError, match="holdout"):
        call("extractor@v1", "vllm-batch", "-m", "m", "-c", "locked")
    assert not (tmp_path / "x").exists()


def test_a_release_is_exported_under_its_name(call, workspace, tmp_path):
    """Verified first; the evidence's engine is named."""
    freeze_small(workspace)
    result = call(NAME, "jinja")
    first, *rest = result.stdout.splitlines()
    assert first == f"tiny@v1, released as {NAME}, exported to jinja: {tmp_path / 'x'}"
    assert not any(line.startswith(("  model", "  cases")) for line in rest)
    assert "of the engine rules" in result.stdout
    assert load_export(tmp_path / "x").release == NAME


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("pickle",), "takes one of jinja, openai-batch, vllm-batch, dspy"),
        (("jinja", "--cohort", "dev"), "hold no cases"),
        (("vllm-batch", "--cohort", "dev", "--input", "x.csv"), "either"),
        (("jinja", "--why", " "), "needs a reason"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(call, options, said):
    """Before anything is looked at."""
    result = call("extractor@v1", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def test_a_batch_needs_a_model(call):
    """The message says which option names it."""
    with pytest.raises(DataError, match="--model"):
        call("extractor@v1", "openai-batch")


def test_a_case_id_that_stands_twice_is_refused(call, tmp_path):
    """Answers are told apart by it; nothing is written."""
    path = tmp_path / "twice.csv"
    path.write_text("case_id,text\nc1,a\nc1,b\n")
    with pytest.raises(DataError, match="already appears"):
        call("extractor@v1", "vllm-batch", "-m", "m", "-i", str(path))
    assert not (tmp_path / "x").exists()


def test_numbered_lines_are_not_exported(call, workspace):
    """Who loads an export puts texts in as they stand: the lines would be missing."""
    actor = Actor(name="Dr A. Example")
    new_prompt(workspace, "lines", actor, judge=JudgeOutline("line_corrections"))
    with pytest.raises(DataError, match="puts a text in as numbered lines"):
        call("lines@v1", "jinja")

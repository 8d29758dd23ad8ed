"""The verb ``labels``, and ``run --out``: a run's labels as a file."""

import json
import os

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError, EngineError
from loop.core.ledger import Actor
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.importing.table_files import open_table


@pytest.fixture
def call(workspace, tmp_path):
    """Import three cases, and return a function that calls ranloop about them."""
    source = tmp_path / "small.csv"
    texts = ["Small left pleural effusion.", "No acute disease.", "Lungs clear."]
    rows = [f"c{number},{text}" for number, text in enumerate(texts)]
    source.write_text("\n".join(["case_id,text", *rows]) + "\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))

    def run(*words):
        return CliRunner().invoke(app, [*words, "-w", str(workspace.root)])

    return run


RUN = ("run", "extractor", "--cohort", "small")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_run_out_is_what_labels_writes(call, tmp_path, suffix):
    """The short way and the long one: the same bytes, the same manifest."""
    short, long = tmp_path / f"short{suffix}", tmp_path / f"long{suffix}"
    shown = call(*RUN, "--out", str(short))
    assert shown.exit_code == 0, shown.output
    assert f"{short}: 3 cases (3 answered)" in shown.stdout
    shown = call("labels", "--out", str(long))
    assert shown.exit_code == 0, shown.output
    assert "extractor@v" in shown.stdout and "long" in shown.stdout
    assert short.read_bytes() == long.read_bytes()


def test_json_is_the_manifest(call, tmp_path):
    """One object, for scripts; of `run` it is a part."""
    one = json.loads(call(*RUN, "--out", str(tmp_path / "a.csv"), "--json").stdout)
    two = json.loads(call("labels", "-o", str(tmp_path / "b.csv"), "--json").stdout)
    assert one["labels"] == two | {"file": "a.csv"}
    assert two["rows"] == 3 and two["run"] == one["run_id"]


def test_of_several_draws_the_first_is_written(call, tmp_path):
    """As the help says; the others are named by their ids."""
    out = tmp_path / "labels.csv"
    data = json.loads(call(*RUN, "--repeats", "2", "-o", str(out), "--json").stdout)
    assert data["labels"]["run"] == data["draws"][0] and data["labels"]["draw"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*RUN, "--out", "labels.doc"), "ends with one of .csv, .parquet, .xlsx"),
        ((*RUN, "--out", "{root}/prompts/x.csv"), "lies in prompts/"),
        ((*RUN, "--out", "{there}"), "already exists and was left as it is"),
        (("labels", "--out", "{root}/labels/x.csv"), "lies in labels/"),
        (("labels", "--out", "{there}"), "already exists"),
    ],
)
def test_a_wrong_target_is_refused_before_anything_is_asked(
    call, workspace, tmp_path, words, message
):
    """Hours of answers do not end in a file that cannot be written."""
    there = tmp_path / "there.csv"
    there.write_text("mine")
    filled = [word.format(root=workspace.root, there=there) for word in words]
    if words[0] == "labels":
        call(*RUN)
    result = call(*filled)
    assert isinstance(result.exception, DataError)
    assert message in str(result.exception)
    assert there.read_text() == "mine"
    if words[0] == "run":
        assert isinstance(
            call("labels", "-o", str(tmp_path / "n.csv")).exception, (DataError)
        )


def test_a_dry_run_has_no_labels(call, tmp_path):
    """A usage error, and no file."""
    result = call(*RUN, "--dry-run", "--out", str(tmp_path / "labels.csv"))
    assert result.exit_code == 2 and "asks nothing" in result.output
    assert not (tmp_path / "labels.csv").exists()


def test_without_a_run_the_message_says_what_to_do(call, tmp_path):
    """The first thing somebody might try."""
    result = call("labels", "--out", str(tmp_path / "labels.csv"))
    assert isinstance(result.exception, (DataError, EngineError))
    assert "ranloop run" in str(result.exception)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("values", ["words", "numbers"])
def test_score_reads_it_back_without_loss(call, tmp_path, suffix, values):
    """A table scored against itself in another format is a perfect copy."""
    call(*RUN)
    one, two = tmp_path / "one.csv", tmp_path / f"two{suffix}"
    call("labels", "-o", str(one))
    call("labels", "-o", str(two), "--values", values, "--names", "ids", "--evidence")
    scored = call(
        *("score", "--reference", str(one), "--candidate", f"mine={two}"),
        *("-m", "none", "--resamples", "10", "--json"),
        *("--out", str(tmp_path / "score")),
    )
    assert scored.exit_code == 0, scored.output
    assert '"mine"' in scored.stdout
    (system,) = json.loads(scored.stdout)["systems"]
    assert system["ran_score"]["value"] == 1.0


def test_evidence_and_text_are_said_to_be_private(call, tmp_path):
    """Whoever passes the file on was told."""
    call(*RUN)
    out = tmp_path / "labels.csv"
    shown = call("labels", "-o", str(out), "--evidence", "--text")
    assert "private evidence and text" in shown.stdout
    header = open_table(out).header
    assert "text" in header and "Pleural Effusion evidence" in header
    assert os.stat(out).st_mode & 0o077 == 0

"""`ranloop run --dry-run`: everything is counted and nothing is asked."""

import json
import re

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.cli.run import show_dry_run
from loop.core.ledger import Actor, read_ledger
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.run.reference_implementation import SOURCE


@pytest.fixture
def cohort(workspace, tmp_path):
    """Import three cases."""
    source = tmp_path / "small.csv"
    rows = [f"c{n},The lungs are clear on film {n}.,0" for n in range(3)]
    source.write_text("\n".join(["case_id,text,edema", *rows]) + "\n")
    options = ImportOptions(name="small", role="dev", source="test", licence="none")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    return "small"


def show(workspace, cohort, **options):
    """Print a dry run."""
    given = {"engine": "rules", "limit": None, "as_json": False} | options
    show_dry_run(workspace, "extractor", cohort, **given)


def test_the_block_says_what_would_be_asked_and_how_it_was_counted(
    workspace, cohort, capsys
):
    """Every way of asking, the estimate's error, and where a figure comes from."""
    show(workspace, cohort)
    out = capsys.readouterr().out
    assert "extractor@v1 on small with rules: NOTHING WAS SENT" in out
    assert "estimated, +-" in out
    for word in ("joint *", "per_label", "reference", "findings", "one digit"):
        assert word in out
    assert "20 requests and about 8,100 prompt tokens" in out
    assert re.search(r"joint \* .* [1-9]\d* x ", out)
    assert SOURCE in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_price_adds_a_column(workspace, cohort, capsys):
    """In the currency of the price."""
    workspace.open_private()
    workspace.config.write_text("prices: {big: {input: 1, output: 2, currency: CHF}}\n")
    show(workspace, cohort, engine="openai:big")
    assert "cost CHF" in capsys.readouterr().out


def test_json_is_one_object_with_whole_numbers(workspace, cohort, capsys):
    """For scripts: nothing rounded."""
    show(workspace, cohort, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["sent"] == 0
    assert data["cases"] == 3
    assert data["tokens"]["exact"] is False
    chosen = data["layouts"][0]
    assert (chosen["layout"], chosen["contract"]) == ("joint", "label_values")
    assert chosen["chosen"] is True
    assert chosen["requests"] == 3
    assert chosen["times_fewer_uncached"] > 1
    assert data["published"]["source"] == SOURCE


def test_the_parameters_of_a_run_are_those_of_its_dry_run(workspace, cohort):
    """The most tokens of an answer; thoughts are not counted, and that is said."""

    def dry(*more):
        command = [
            "run",
            "extractor",
            "--cohort",
            cohort,
            "--dry-run",
            "-e",
            "openai:m",
        ]
        made = CliRunner().invoke(app, [*command, *more, "-w", str(workspace.root)])
        assert made.exit_code == 0, made.output
        return made.stdout

    plain, short = (
        json.loads(dry("--json")),
        json.loads(dry("--json", "--max-tokens=4")),
    )
    assert plain["layouts"][0]["output_tokens"] > 12
    assert short["layouts"][0]["output_tokens"] == 12
    assert plain["thinking"] is None and "thinking" not in dry("--thinking", "none")
    told = json.loads(dry("--json", "--thinking", "high"))["thinking"]
    assert "is not in these numbers" in told
    assert told in " ".join(dry("--thinking", "high").split())


def test_no_case_text_is_printed(workspace, cohort, capsys):
    """A dry run may be pasted into a mail."""
    for as_json in (False, True):
        show(workspace, cohort, as_json=as_json)
    assert "lungs are clear" not in capsys.readouterr().out


def test_no_engine_is_opened_and_nothing_is_recorded(workspace, cohort):
    """The server need not be there, and neither store nor ledger changes."""
    before = len(read_ledger(workspace.ledger))
    runner = CliRunner()
    command = ["run", "extractor", "--cohort", cohort, "--dry-run", "--json"]
    engine = ["--engine", "openai:nobody@http://192.0.2.1:9/v1"]
    result = runner.invoke(app, [*command, *engine, "-w", str(workspace.root)])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["engine"] == engine[1]
    assert len(read_ledger(workspace.ledger)) == before
    assert not (workspace.private / "store.db").exists()


def test_the_prefix_that_prompts_share_is_printed_in_percent(workspace, cohort, capsys):
    """What a server need not read again decides which way of asking is cheap."""
    show(workspace, cohort, as_json=True)
    data = json.loads(capsys.readouterr().out)
    show(workspace, cohort)
    out = capsys.readouterr().out
    shares = [f"{100 * one['prefix_share']:.1f} %" for one in data["layouts"]]
    assert re.findall(r"[\d.]+ %(?=  )", out) == shares

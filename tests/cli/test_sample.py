"""The verb ``sample``, and what other verbs make of a value sample."""

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import agreement, evaluate, failures, plan, reading, sample
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.named_samples import list_samples, read_sampled_cases
from loop.labels.value_sample import newest_sample
from loop.optimize.sample import draw_cases
from tests.optimize.conftest import pool as pool
from tests.optimize.conftest import right as right
from tests.optimize.conftest import sampled_once as sampled_once
from tests.optimize.sampling import EDITOR, add_cohort, run
from tests.optimize.test_sample import BETWEEN, read_some

VERSIONS = ("--between", ",".join(BETWEEN))


@pytest.fixture
def call(pool):
    """Return a function that calls a verb in the workspace."""
    app = typer.Typer()
    for verb in (sample, reading, failures, evaluate, plan, agreement):
        verb.register(app)

    def invoke(*arguments):
        return CliRunner().invoke(app, [*arguments, "-w", str(pool.root)])

    return invoke


def told(result):
    """Return what `--json` printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_list_for_review_keeps_nothing(call, pool, tmp_path):
    """Text, page, table and list of the same cases; the ledger is as it was."""
    before = pool.ledger.read_bytes()
    files = {name: tmp_path / f"s.{name}" for name in ("html", "csv", "list")}
    options = [
        part for name, path in files.items() for part in (f"--{name}", str(path))
    ]
    found = call("sample", "pool", "--for", "review", "-n", "30", *VERSIONS, *options)
    assert found.exit_code == 0, found.output
    for words in (
        "30 of 240 cases of pool for tiny@v2 by rules",
        "answers compared: tiny@v1, tiny@v2",
        "what each part was worth on dev",
        "25 % of the sample spread evenly",
        "at random (Kish)",
        "and 20 more; --csv, --json and --html have all",
        "--cases-file FILE",
    ):
        assert words in found.output
    assert "Report no." not in found.output
    with files["csv"].open(newline="") as stream:
        rows = [row["case_id"] for row in csv.DictReader(stream)]
    assert files["list"].read_text().split() == rows
    assert files["html"].read_text().count('<tr><th scope="row"><code>') == 30
    data = told(
        call("sample", "pool", "--for", "review", "-n", "30", *VERSIONS, "--json")
    )
    assert [one["case_id"] for one in data["drawn"]] == rows
    assert (data["for"], data["number"], data["plans"]) == ("review", None, [])
    assert pool.ledger.read_bytes() == before


def test_the_verb_and_the_function_draw_the_same(call, pool):
    """Whatever the command line can do, Python can."""
    data = told(
        call("sample", "pool", "--for", "review", "-n", "12", "--seed", "9", "--json")
    )
    found = draw_cases(pool, "pool", size=12, seed=9)
    assert [one["case_id"] for one in data["drawn"]] == [
        one.case_id for one in found.drawn
    ]


def test_a_sample_is_read_published_and_weighted(call, pool, right, tmp_path):
    """From the draw to the evaluation, by the command line alone."""
    call_sample = ("sample", "pool", "--for", "reading", "-n", "50", *VERSIONS)
    dry = call(*call_sample, "--reader", "Dr. A", "--dry-run")
    assert "dry run: nothing was kept" in dry.output
    assert newest_sample(pool, "pool") is None
    made = told(call(*call_sample, "--reader", "Dr. A", "--json"))
    assert made["number"] == 1
    (given,) = made["plans"]
    assert len(given["case_ids"]) == len(given["chances"]) == 50
    again = call(*call_sample)
    assert "recorded as value sample 1 of pool" in again.output
    assert "next: ranloop reading assign pool --sample --reader" in again.output
    later = call("reading", "assign", "pool", "--sample", "--reader", "Dr. B")
    assert "Dr. B: 50 cases of pool, 50 of them given to another reader" in later.output
    assert "of a value sample, their chances kept" in later.output
    read_some(pool, right, given["case_ids"])
    read_some(pool, right, given["case_ids"], reader="Dr. B")
    page, table = tmp_path / "e.html", tmp_path / "e.csv"
    scored = call("evaluate", "latest:tiny@v2:pool", "--html", str(page), "--csv",
                  str(table))  # fmt: skip
    assert scored.exit_code == 100
    for words in (
        "WEIGHTED by value sample 1",
        "cases that fail  ",
        "50 of 50 drawn cases read; effective sample size",
        "which is no rate of the cohort",
        "gate: INSUFFICIENT (a value sample decides none)",
    ):
        assert words in scored.output
    assert "Not a random sample." in page.read_text()
    assert len(table.read_text().splitlines()) > 4
    data = json.loads(call("evaluate", "latest:tiny@v2:pool", "--json").stdout)
    assert data["fails"]["low"] < data["fails"]["value"] < data["fails_unweighted"]
    refused = call("plan", "--cohort", "pool")
    assert isinstance(refused.exception, DataError)
    assert "not at random" in str(refused.exception)
    agreed = call("agreement", "pool", "--resamples", "100")
    assert "agreement on them is not weighted" in agreed.stderr
    assert "evaluated" not in {one.action for one in read_ledger(pool.ledger)}


@pytest.mark.parametrize(
    "options", [("--md", "x.md"), ("--against", "latest:tiny@v1:pool")]
)
def test_what_has_no_weighted_form_is_refused(call, pool, right, options):
    """Usage error that says what there is."""
    made = told(
        call("sample", "pool", "--for", "reading", "-n", "20", *VERSIONS, "--json")
    )
    read_some(pool, right, [one["case_id"] for one in made["drawn"]])
    found = call("evaluate", "latest:tiny@v2:pool", *options)
    assert found.exit_code == 2
    assert "random" in found.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("pool", "-n", "10"),
        ("pool", "--for", "training", "-n", "10"),
        ("pool", "--for", "review", "-n", "0"),
        ("pool", "--for", "review", "--reader", "Dr. A"),
        ("pool", "--for", "review", "--overlap", "3"),
        ("pool", "--for", "review", "--replace"),
        ("pool", "--for", "reading", "--overlap", "3"),
    ],
)
def test_wrong_usage_is_exit_code_two(call, arguments):
    """Before anything is read."""
    assert call("sample", *arguments).exit_code == 2


def test_more_than_there_are_and_a_holdout_are_refused(call, pool, tmp_path):
    """One sentence with the way out; nothing is kept."""
    found = call("sample", "pool", "--for", "reading", "-n", "241", *VERSIONS)
    assert "Ask for 1 to 240" in str(found.exception)
    add_cohort(pool, tmp_path, "held", 20, 5, labels=False, role="holdout")
    held = call("sample", "held", "--for", "reading", "-n", "5")
    assert "ranloop reading assign" in str(held.exception)
    assert newest_sample(pool, "pool") is None


def test_documents_are_never_written_over_the_workspace(call, pool):
    """Not over its labels."""
    target = pool.labels / "protocol.yaml"
    before = target.read_bytes()
    found = call("sample", "pool", "--for", "review", "--csv", str(target))
    assert isinstance(found.exception, DataError)
    assert target.read_bytes() == before


def test_a_list_for_review_is_kept_under_a_name(call, pool):
    """For the page Review; another draw needs another name, and none has a number's."""
    draw = ("sample", "pool", "--for", "review", "-n", "12", "--name")
    assert told(call(*draw, "worth", "--dry-run", "--json"))["name"] is None
    assert list_samples(pool, "pool") == ()
    found = call(*draw, "worth")
    assert "kept as worth" in found.output
    assert list_samples(pool, "pool") == ("worth",)
    drawn = draw_cases(pool, "pool", size=12).drawn
    kept = read_sampled_cases(pool, "pool", "worth")
    assert kept == tuple(one.case_id for one in drawn)
    assert told(call(*draw, "worth", "--json"))["name"] == "worth"
    other = call(*draw, "worth", "--seed", "2")
    assert "Give another one" in str(other.exception)
    assert "those of value samples" in str(call(*draw, "sample1").exception)
    assert "cannot be the name" in str(call(*draw, "../x").exception)
    reading = call("sample", "pool", "--for", "reading", "--name", "worth")
    assert reading.exit_code == 2
    path = pool.root.parent / "again.csv"
    path.write_text("case_id,text\na,Clear.\n")
    options = ImportOptions(name="pool", role="external", replace=True)
    import_cohort(pool, path, options, actor=EDITOR)
    with pytest.raises(DataError, match="imported again"):
        read_sampled_cases(pool, "pool", "worth")


def test_a_value_sample_goes_by_its_number(call, pool):
    """The newest first; one that was never drawn is refused."""
    found = call("sample", "pool", "--for", "reading", "-n", "12", *VERSIONS)
    assert found.exit_code == 0, found.output
    assert list_samples(pool, "pool") == ("sample1",)
    cases = read_sampled_cases(pool, "pool", "sample1")
    assert set(cases) == set(newest_sample(pool, "pool").sample.chances)
    with pytest.raises(DataError, match="has no value sample 2"):
        read_sampled_cases(pool, "pool", "sample2")


def test_failing_cases_are_narrowed_to_the_list(call, pool, tmp_path):
    """The list of a sample, or any other; an empty one is an error."""
    ids = read_cohort(pool, "dev").case_ids
    run_id = run(pool, "tiny@v2", "dev")
    every = told(call("failures", run_id, "--json"))
    listed = tmp_path / "ids.txt"
    listed.write_text("\n".join(ids[:60]))
    some = told(call("failures", run_id, "--cases-file", str(listed), "--json"))
    wanted = [row for row in every["rows"] if row["case_id"] in ids[:60]]
    assert 0 < len(wanted) < every["total"]
    assert {(row["case_id"], row["label"]) for row in some["rows"]} == {
        (row["case_id"], row["label"]) for row in wanted
    }
    listed.write_text("\n\n")
    empty = call("failures", run_id, "--cases-file", str(listed))
    assert "holds no case id" in str(empty.exception)
    listed.write_text(f"{ids[0]}\nNo such case at all\n")
    wrong = call("failures", run_id, "--cases-file", str(listed))
    assert "1 of 2 lines are no case of cohort dev" in str(wrong.exception)
    assert "such case at all" not in str(wrong.exception)


def test_a_reader_of_a_sample_that_was_replaced_is_named(call):
    """They would go on with cases that count nowhere."""
    words = ("sample", "pool", "--for", "reading", "-n", "20", *VERSIONS)
    assert "still has cases" not in call(*words, "--reader", "Dr. A").output
    again = call(*words, "--replace", "--seed", "5", "--reader", "Dr. B").output
    assert "Dr. A still has cases that this sample did not draw" in again
    assert "Dr. B still" not in again


def test_cases_of_ones_own_are_no_sample(call, tmp_path):
    """Nor is there a sample before one was drawn."""
    none = call("reading", "assign", "pool", "--sample", "--reader", "Dr. A")
    assert "ranloop sample pool --for reading" in str(none.exception)
    listed = tmp_path / "ids.txt"
    listed.write_text("s2-1\n")
    both = call("reading", "assign", "pool", "--sample", "--reader", "Dr. A",
                "--cases-file", str(listed))  # fmt: skip
    assert "their chances are not known" in str(both.exception)


def test_editor_is_named_in_the_ledger(call, pool):
    """Who drew it, with which seed, of which run."""
    told(call("sample", "pool", "--for", "reading", "-n", "10", *VERSIONS, "--seed",
              "4", "--actor", EDITOR.name, "--json"))  # fmt: skip
    entry = read_ledger(pool.ledger)[-1]
    assert (entry.actor, entry.action) == (EDITOR.name, "sample_drawn")
    assert (entry.payload["seed"], entry.payload["size"]) == (4, 10)
    assert "Report no." not in json.dumps(dict(entry.payload))

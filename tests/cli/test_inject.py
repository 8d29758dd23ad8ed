"""The verb ``inject``, end to end on small files and cohorts."""

import csv
import json
import stat
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from loop.cli import inject
from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.judge.discrimination import read_marked_pairs
from loop.judge.injection.inject import UnmadeVariants
from loop.judge.injection.model_injection import MOST_ATTEMPTS, ModelReport
from loop.judge.injection.text_changes import TextChange, apply_changes
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions

REPORTS = [
    ("id", "text"),
    ("r1", "The heart is mildly enlarged. Small left pleural effusion. Clear lungs."),
    ("r2", "- The lungs are clear.\n- No pneumothorax.\n- New right effusion."),
    ("r3", ""),
]


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Work in an empty folder outside any workspace, with a file of reports."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "reports.csv", REPORTS)


def write(path, rows):
    """Write a table and return its path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
    return path


def call(*arguments):
    """Run the verb."""
    return CliRunner().invoke(app, ["inject", *map(str, arguments)])


def read_pairs(folder):
    """Return pairs.csv as a program reads it that knows of shielded cells."""
    text = (folder / "pairs.csv").read_bytes().decode("utf-8")
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    for row in rows:
        for name in ("reference", "candidate"):
            row[name] = row[name].removeprefix("'")
    return rows


def test_a_folder_is_written(reports, tmp_path):
    """Pairs, changes that give them, counts; for its owner only."""
    done = call(reports, "-k", "1,2", "--harmless", "--out", "injected")
    assert done.exit_code == 0, done.output
    folder = tmp_path / "injected"
    rows = read_pairs(folder)
    assert list(rows[0]) == [
        *("id", "reference_id", "reference", "candidate"),
        *("kind", "significant", "number", "severity"),
    ]
    lines = (folder / "changes.jsonl").read_text("utf-8").splitlines()
    given = dict(REPORTS)
    for row, line in zip(rows, map(json.loads, lines), strict=True):
        changes = [TextChange(**one) for one in line["changes"]]
        assert row["id"] == line["id"]
        assert row["reference"] == given[row["reference_id"]]
        assert apply_changes(row["reference"], changes) == row["candidate"]
        assert row["significant"] in ("yes", "no")
        assert len({one.error for one in changes}) == int(row["number"])
    about = json.loads((folder / "inject.json").read_text("utf-8"))
    assert about["pairs"] == len(rows)
    assert about["significant"] + about["insignificant"] == len(rows)
    assert about["cases_unused"] == {"empty": 1}
    assert about["source"]["name"] == "reports.csv"
    assert {one.name for one in folder.iterdir()} == {
        *("pairs.csv", "changes.jsonl", "inject.json"),
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for one in folder.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600


COUNTED = """\
21 pairs from 2 reports of file reports.csv: 16 with errors, 5 harmless

kind            k = 1  k = 2  read otherwise
--------------  -----  -----  --------------
false_finding       2      2          0 of 4
omission            2      1          0 of 3
location            2      0          0 of 2
severity            2      2          0 of 2
comparison          1      1          0 of 2
omitted_change      1      0          0 of 1
synonym             0      0          0 of 0
abbreviation        0      0          0 of 0
order               1      0          0 of 1
style               2      2          0 of 4
number_format       0      0          0 of 0

note: 2 errors of kind d with a severity that is further off
note: 1 report not used: empty
"""


def test_what_was_made_and_what_was_not_is_printed(reports):
    """Kinds by the number of their errors, in order, whatever order was asked for."""
    more = ("--harmless", "--severity", "1, 2")
    done = call(reports, "-k", "2,1", *more, "--out", "one")
    assert done.exit_code == 0, done.output
    head, _, note = done.stdout.partition("note: read otherwise: ")
    assert head == COUNTED
    assert note == (
        "places tried and left out, because the reader of findings saw more change "
        "than was made\n"
    )
    done = call(reports, "--errors", "c", "--no-reread", "--out", "two")
    lines = done.stdout.splitlines()
    assert lines == [
        "2 pairs from 2 reports of file reports.csv: 2 with errors, 0 harmless",
        "",
        "kind      k = 1  read otherwise",
        "--------  -----  --------------",
        "location      2          0 of 2",
        "",
        "note: 1 report not used: empty",
    ]


def test_what_a_model_wrote_is_told_with_what_was_refused(capsys):
    """In counts: answers by reason, and variants that nothing came of."""
    report = ModelReport(
        facts=SimpleNamespace(engine="vllm:a", validator="openai:b"),
        attempts={"omission": 1200, "location": 34},
        accepted={1: 20, 2: 3},
        rejected={"not the asked change": 1, "no JSON": 1002},
        read_otherwise={},
        asked=1,
        cached=2500,
    )
    left_out = [
        UnmadeVariants("omission", 1, "too short", 3),
        UnmadeVariants("omission", 2, "no place", 5),
        UnmadeVariants("location", 1, "too short", 1000),
    ]
    inject._show_model(report, left_out)
    assert capsys.readouterr().out.splitlines() == [
        "note: written by vllm:a, looked at by openai:b",
        f"note: 1,234 answers for 23 variants, at most {MOST_ATTEMPTS} each; 1 prompt "
        "asked now, 2,500 answered before",
        "note: 1 answer refused: not the asked change",
        "note: 1,002 answers refused: no JSON",
        "note: 5 variants left out, in the end: no place",
        "note: 1,003 variants left out, in the end: too short",
    ]


def test_severities_go_from_the_folder_into_the_measure(reports, tmp_path):
    """The column is read back, and the steps to worse errors are counted."""
    done = call(reports, "--harmless", "--severity", "1,2", "--out", "injected")
    assert done.exit_code == 0, done.output
    rows = read_pairs(tmp_path / "injected")
    assert "1 error of kind d with a severity that is further off" in done.output
    about = json.loads((tmp_path / "injected" / "inject.json").read_text("utf-8"))
    assert about["options"]["severities"] == [1, 2] and about["further_off"] == 1
    pairs = read_marked_pairs(tmp_path / "injected")
    assert pairs.severities.tolist() == [int(one["severity"]) for one in rows]
    assert pairs.severities.max() == 2
    (tmp_path / "scores.csv").write_text(
        "id,m\n" + "".join(f"{one['id']},{one['severity']}\n" for one in rows)
    )
    done = CliRunner().invoke(app, ["dr", "injected", "-s", "scores.csv", "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["metrics"]
    assert found["rises_when_worse"]["violated"] == 1
    assert found["rises_when_worse"]["steps"] == 1


def test_the_same_command_writes_the_same_bytes(reports, tmp_path):
    """No time, no machine."""
    for name in ("one", "two"):
        assert call(reports, "--harmless", "--out", name).exit_code == 0
    for name in ("pairs.csv", "changes.jsonl", "inject.json"):
        one, two = ((tmp_path / each / name).read_bytes() for each in ("one", "two"))
        assert one == two


def test_no_text_is_printed(reports):
    """Neither in words nor as JSON."""
    for more in ([], ["--json"]):
        done = call(reports, "--out", f"out{len(more)}", *more)
        assert done.exit_code == 0
        assert "effusion" not in done.output


@pytest.mark.slow
def test_judge_reads_the_pairs(reports):
    """The folder is what the other verb takes."""
    assert call(reports, "--errors", "c", "--out", "injected").exit_code == 0
    done = CliRunner().invoke(
        app, ["judge", "green", "--pairs", "injected/pairs.csv", "--json"]
    )
    assert done.exit_code == 0, done.output
    (system,) = json.loads(done.stdout)["systems"]
    assert system["answered"] == len(read_pairs(reports.parent / "injected"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-k", "0"], "from 1 to 9"),
        (["-k", "one"], "takes numbers such as 1"),
        (["--severity", "3"], "severities are 1 and 2"),
        (["--severity", "1,2", "--errors", "ab"], "none are to be made"),
        (["--errors", "xyz"], "are not letters of abcdef"),
        (["--errors", ""], "nothing is to be made"),
        (["--cohort", "dev"], "name a file of reports, or a cohort"),
        (["--validator", "rules"], "are for --engine"),
        (["--region", "uk"], "are for --engine"),
        (["-e", "rules", "--negated"], "are for injection without --engine"),
        (["-e", "rules", "--severity", "2"], "are for injection without --engine"),
        (["-e", "rules", "--wording", "x"], "are for injection without --engine"),
        (["-e", "rules", "--no-reread"], "are for injection without --engine"),
    ],
)
def test_wrong_arguments_are_refused(reports, arguments, said):
    """With what is right."""
    done = call(reports, *arguments, "--out", "out")
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
    assert not (reports.parent / "out").exists()


def test_a_folder_that_exists_is_left_alone(reports, tmp_path):
    """An empty one is filled."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    done = call(reports, "--out", "full")
    assert isinstance(done.exception, DataError)
    assert "already exists and was left as it is" in str(done.exception)
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    assert call(reports, "--out", "empty").exit_code == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("id", "text"), ("a", "Edema."), ("a", "Clear.")], "already appears"),
        ([("id", "text"), ("a", "")], "no report to inject into"),
        ([("id", "text"), ("a", "Normal.")], "no variant could be made"),
        ([("id", "text"), ("a", "双肺清晰,心影正常。")], "language of the bank"),
        (
            [("id", "reference", "candidate"), ("a", "Edema.", "Clear.")],
            "holds pairs of reports",
        ),
    ],
)
def test_a_file_without_use_is_refused(tmp_path, monkeypatch, rows, said):
    """Twice an id, nothing in it, nothing to do, another language, pairs."""
    monkeypatch.chdir(tmp_path)
    done = call(write(tmp_path / "x.csv", rows), "--errors", "bcdef", "--out", "out")
    assert isinstance(done.exception, DataError)
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


class TestCohorts:
    """Reports of a workspace."""

    @pytest.fixture
    def cohort(self, workspace, reports):
        """Import a cohort under a name and role."""

        def make(name, role, source=reports):
            options = ImportOptions(name=name, role=role)
            actor = Actor(name="test", role="editor")
            import_cohort(workspace, source, options, actor=actor)
            return ["--cohort", name, "--workspace", workspace.root]

        return make

    def test_a_cohort_gives_what_its_file_does(self, cohort, reports, tmp_path):
        """The same cases, digest and variants."""
        where = cohort("dev", "dev")
        assert call(*where, "--out", tmp_path / "one").exit_code == 0
        assert call(reports, "--out", tmp_path / "two").exit_code == 0
        one, two = (
            json.loads((tmp_path / name / "inject.json").read_text())
            for name in ("one", "two")
        )
        assert one["source"]["digest"] == two["source"]["digest"]
        assert one["files"] == two["files"]

    def test_a_holdout_stays_unseen(self, cohort, tmp_path, workspace):
        """Before it is sealed, too."""
        done = call(*cohort("hold", "holdout"), "--out", tmp_path / "out")
        assert isinstance(done.exception, DataError)
        assert "is a holdout" in str(done.exception)

    def test_pairs_are_no_reports(self, cohort, tmp_path):
        """It is not clear which of the two would be changed."""
        rows = [("id", "reference", "candidate"), ("a", "Edema.", "Clear lungs.")]
        where = cohort("pairs", "dev", write(tmp_path / "pairs.csv", rows))
        done = call(*where, "--out", tmp_path / "out")
        assert isinstance(done.exception, DataError)
        assert "error injection works on single reports" in str(done.exception)

    def test_the_workspaces_own_folders_are_no_place(self, cohort, workspace):
        """Texts would be shared with the labels."""
        where = cohort("dev", "dev")
        done = call(*where, "--out", workspace.labels / "injected")
        assert isinstance(done.exception, DataError)
        assert "holds the workspace's own files" in str(done.exception)

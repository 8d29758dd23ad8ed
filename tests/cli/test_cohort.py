"""The verbs ``cohort`` and ``agreement`` as a user types them."""

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from loop.cli import agreement, cohort
from loop.core.errors import DataError, OverlapError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.cohort import read_cohort
from loop.labels.reference import correct_reference

REPORTS = [
    ["case_id", "text", "patient", "edema"],
    ["a1", "Lungs are clear.", "P1", "0"],
    ["a2", "There is edema of the lungs.", "P2", "1"],
]
VOTES = [
    ["reader", "case_id", "label", "value"],
    *([reader, "a1", "Edema", "absent"] for reader in "ABCDEF"),
    *([reader, "a2", "Edema", "present"] for reader in "ABC"),
    *([reader, "a2", "Edema", "absent"] for reader in "DEF"),
]
PAIRS = [
    ["id", "reference", "candidate", "system"],
    ["a", "Small effusion on the left.", "No effusion.", "one"],
    ["b", "Small effusion on the left.", "", "two"],
]
RATINGS = [["case_id", "rater", "points"], ["a", "A", "2"], ["b", "A", "1"]]
ERRORS = [
    ["case_id", "rater", "category", "significance", "finding"],
    ["a", "A", "omission", "significant", "an effusion"],
]
ODD_PAIRS = [["id", "x", "y", "z", "w", "v"], ["a", "Clear.", "Edema.", "s", "c", "r"]]

Command = Callable[..., Result]


@pytest.fixture
def workspace(tmp_path: Path, labels_folder: Path) -> WorkspacePaths:
    """Make a workspace without prompts, cohorts or history."""
    root = tmp_path / "ws"
    (root / "prompts").mkdir(parents=True)
    shutil.copytree(labels_folder / "crosswalks", root / "labels" / "crosswalks")
    for name in ("taxonomy.yaml", "errors.yaml"):
        shutil.copy(labels_folder / name, root / "labels")
    return WorkspacePaths(root)


@pytest.fixture
def call(workspace: WorkspacePaths) -> Command:
    """Return a function that runs a command line in the workspace."""
    app = typer.Typer()
    cohort.register(app)
    agreement.register(app)

    def run(*words: str) -> Result:
        line = [*words, "--workspace", str(workspace.root)]
        return CliRunner().invoke(app, line)

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a table of reports and one of votes."""

    def write(name: str, rows: Sequence[Sequence[str]]) -> None:
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)

    write("reports.csv", REPORTS)
    write("votes.csv", VOTES)
    write("twin.csv", [REPORTS[0], ["b1", "LUNGS are clear", "P7", "0"]])
    write("pairs.csv", PAIRS)
    write("ratings.csv", RATINGS)
    write("errors.csv", ERRORS)
    write("odd_pairs.csv", ODD_PAIRS)
    return tmp_path


def test_import_says_what_became_of_the_source(call: Command, files: Path) -> None:
    """Cases, patients, what was left out, and what to do next."""
    result = call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    warning = lines.pop(4)
    assert warning.startswith(
        "  warning     the engine rules refuses 2 cases: no cues "
        "(labels/cues/<language>.yaml) for en."
    )
    assert lines == [
        "cohort mine (dev, csv)",
        "  cases       2",
        "  patients    2",
        "  languages   en 2",
        "  left out    0 empty",
        "  duplicates  0 texts, kept",
        "  reference   v1, from label columns or coding",
        "  unknown     atelectasis, cardiomegaly, consolidation, "
        "enlarged_cardiomediastinum, fracture, lung_lesion, no_finding, "
        "pleural_effusion, pleural_other, lung_opacity and 10 more: the reference has "
        "no column, so no case is absent. Add a column (Open-i: a rule in the "
        "crosswalk) and import again with --replace, or add votes",
        "  licence     not stated",
        "next: ranloop cohort check",
    ]


def test_import_prints_one_json_object(call: Command, files: Path) -> None:
    """A script reads stdout; remarks go to stderr."""
    source, votes = str(files / "reports.csv"), str(files / "votes.csv")
    result = call(
        "cohort", "import", source, "--name", "mine", "--votes", votes, "--json"
    )
    data = json.loads(result.stdout)
    assert data["cases"] == 2
    assert data["reference"] == 1
    assert data["votes"]["reference"] == 2
    assert data["votes"]["marks"]["no_majority"] == 1


def test_check_passes_separate_cohorts(call: Command, files: Path) -> None:
    """One cohort has nothing to be compared with."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    result = call("cohort", "check")
    assert result.exit_code == 0
    assert "1 cohort, 0 pairs of different roles: nothing to compare" in result.stdout
    source = files / "held.csv"
    source.write_text("case_id,text,edema\nz1,Something else is written of it.,0\n")
    call("cohort", "import", str(source), "--name", "held", "--role", "holdout")
    checked = call("cohort", "check")
    assert (checked.exit_code, checked.stdout.splitlines()) == (
        0,
        [
            "held and mine, not compared: patients: not named for every case of held",
            "2 cohorts, 1 pair of different roles: nothing is shared",
        ],
    )
    listed = [
        " ".join(one.split()) for one in call("cohort", "show").stdout.split("\n")
    ]
    assert listed[0] == (
        "cohort role cases language inputs references texts here as recorded"
    )
    assert listed[2:] == [
        "held holdout 1 en text v1 yes yes",
        "mine dev 2 en text v1 yes yes",
        "",
    ]
    held = dict(
        line.split(maxsplit=1)
        for line in call("cohort", "show", "held").stdout.splitlines()
    )
    assert (held["sealed"], held["key_here"], held["references"]) == (
        "yes",
        "yes",
        "v1",
    )
    assert "plain_copies" not in held and "references_edited" not in held


def test_check_refuses_a_shared_text(call: Command, files: Path) -> None:
    """Both as a message with ids and as JSON with exit code 1."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    twin = str(files / "twin.csv")
    call("cohort", "import", twin, "--name", "sealed", "--role", "holdout")
    result = call("cohort", "check")
    assert isinstance(result.exception, OverlapError)
    assert "share 1 text: a1 = b1" in str(result.exception)
    as_json = call("cohort", "check", "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["pairs"][0]["shared"][0]["kind"] == "text"


def test_show_lists_cohorts_and_one_in_detail(call: Command, files: Path) -> None:
    """A table of all, then marks per label of one."""
    assert "no cohort yet" in call("cohort", "show").stdout
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert "mine" in call("cohort", "show").stdout
    facts, marks = call("cohort", "show", "mine").stdout.split("\n\n")
    assert marks.splitlines() == [
        "reference v1  present  absent",
        "------------  -------  ------",
        "edema               1       1",
    ]
    told = dict(line.split(maxsplit=1) for line in facts.splitlines())
    known = {key: told[key] for key in list(told)[:7]}
    assert known == {
        "name": "mine",
        "role": "dev",
        "source": "not stated",
        "licence": "not stated",
        "language": "en",
        "inputs": "text",
        "cases": "2",
    }
    assert told["counted"] == "0 duplicate_texts"
    assert told["files"].startswith("reports.csv (")
    assert (told["texts_here"], told["patients_known"]) == ("yes", "yes")
    assert "ratings" not in told and "raters" not in told
    data = json.loads(call("cohort", "show", "mine", "--json").stdout)
    assert data["marks"]["edema"] == {"present": 1, "absent": 1}
    assert data["references_edited"] == []
    assert (
        json.loads(call("cohort", "show", "--json").stdout)["cohorts"][0]["cases"] == 2
    )


def test_votes_make_the_next_reference(call: Command, files: Path) -> None:
    """A tie is counted as no majority, in words."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    result = call("cohort", "votes", "mine", str(files / "votes.csv"))
    lines = result.stdout.splitlines()
    assert lines[:11] == [
        "reference v2 of mine: 12 votes of 6 readers",
        "  majority    over half of the readers who voted on the case and label",
        "  new         A, B, C, D, E, F",
        "  present     0",
        "  absent      1",
        "  uncertain   0",
        "  no_majority 1",
        "  missing     0",
        "  changes     1 mark of the reference before, 1 of them now undecided",
        "    edema: present -> no_majority, 1",
        "    a2, edema: present -> no_majority",
    ]
    assert lines[11].startswith(
        "  20 labels without a vote are missing in every case: "
    )
    assert lines[12:] == [
        "  of the reference before: 0 marks missing now, 0 corrections by verdict "
        "undone",
        "next: ranloop agreement mine",
    ]


def test_a_second_reader_makes_agreement_possible(call: Command, files: Path) -> None:
    """The advice of the first answer, followed, gives the second."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", _votes_of(files, "A"))
    error = call("agreement", "mine").exception
    assert isinstance(error, DataError)
    assert "add the votes of another with `ranloop cohort votes mine FILE`" in str(
        error
    )
    said = call("cohort", "votes", "mine", _votes_of(files, "D")).stdout
    assert "4 votes of 2 readers" in said
    assert "new         D" in said
    assert "as before   A" in said
    data = json.loads(call("agreement", "mine", "--resamples", "100", "--json").stdout)
    assert data["readers"] == ["A", "D"]


@pytest.mark.parametrize("role", ["dev", "holdout"])
def test_what_comes_after_votes_can_be_done(
    call: Command, files: Path, role: str
) -> None:
    """Agreement of one reader, or on sealed votes, would be refused."""
    source = str(files / "reports.csv")
    call("cohort", "import", source, "--name", "mine", "--role", role)
    told = []
    for reader in ("A", "D"):
        said = call("cohort", "votes", "mine", _votes_of(files, reader)).stdout
        told.append(said.splitlines()[-1].removeprefix("next: ranloop "))
    freeze = "freeze PROMPT --cohort DEV --holdout mine"
    wanted = ["run PROMPT --cohort mine", "agreement mine"]
    assert told == (wanted if role == "dev" else [freeze] * 2)


def test_replaced_votes_are_named(call: Command, files: Path) -> None:
    """Without --replace nothing changes; with it the loss is counted, by reader."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    path = files / "again.csv"
    path.write_text("reader,case_id,label,value\nA,a1,fracture,absent\n")
    error = call("cohort", "votes", "mine", str(path)).exception
    assert isinstance(error, DataError)
    assert "--replace" in str(error)
    said = call("cohort", "votes", "mine", str(path), "--replace").stdout
    assert "11 votes of 6 readers" in said
    assert (
        "replaced    A: 2 votes, 2 of them without a new one, and no vote any" in said
    )
    assert "as before   B, C, D, E, F" in said
    again = call("cohort", "votes", "mine", str(path), "--replace", "--json")
    assert json.loads(again.stdout)["replaced"] == []


def test_votes_dropped_because_they_were_edited_are_said(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """A file that was tampered with counts for no reader."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", _votes_of(files, "A"))
    kept = workspace.cohorts / "mine" / "votes.csv"
    kept.write_text(kept.read_text().replace("present", "absent"))
    said = call("cohort", "votes", "mine", _votes_of(files, "D"), "--replace").stdout
    assert "dropped     all votes kept before: they were not as recorded" in said


def test_import_takes_named_columns_and_warns_of_languages(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """The way out of the message about missing columns; cases no rule can read."""
    (workspace.labels / "cues").mkdir()
    (workspace.labels / "cues" / "en.yaml").write_text("language: en\n")
    path = files / "odd.csv"
    rows = "nr,Wortlaut,Fall\n1,Clear lungs.,P1\n2,Без изменений,P2\n"
    path.write_text(rows, encoding="utf-8")
    error = call("cohort", "import", str(path), "--name", "odd").exception
    assert isinstance(error, DataError)
    assert "--id-column" in str(error)
    columns = ("--id-column", "nr", "--text-column", "Wortlaut")
    columns += ("--patient-column", "Fall")
    said = call("cohort", "import", str(path), "--name", "odd", *columns).stdout
    assert "languages   en 1, und 1" in said
    assert "warning     the engine rules refuses 1 case: no cues" in said
    assert "for und. If a language was guessed wrongly" in said
    assert "patients    2" in said
    words = (*columns, "--language", "en", "--replace")
    said = call("cohort", "import", str(path), "--name", "odd", *words).stdout
    assert "warning" not in said


def test_check_quotes_ids_that_a_list_would_hide(call: Command, files: Path) -> None:
    """A comma in an id would make two ids of it."""
    for name, role in (("mine", "dev"), ("sealed", "holdout")):
        path = files / f"{name}.csv"
        path.write_text('case_id,text\n"CXR 7, PA",Clear lungs.\n')
        call("cohort", "import", str(path), "--name", name, "--role", role)
    assert "share 1 case: 'CXR 7, PA'\n" in str(call("cohort", "check").exception)


def _votes_of(files: Path, reader: str) -> str:
    """Write the votes of one reader and return the path."""
    path = files / f"votes_{reader}.csv"
    rows = [row for row in VOTES if row[0] in ("reader", reader)]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return str(path)


def test_votes_say_what_they_take_from_the_reference_before(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """Labels nobody voted on and undone corrections, in words and as JSON."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    who = Actor(name="Dr. Example")
    correct_reference(
        workspace,
        read_cohort(workspace, "mine"),
        {("a1", "edema"): Mark.PRESENT},
        actor=who,
        reason="read again",
    )
    votes = str(files / "votes.csv")
    said = call("cohort", "votes", "mine", votes).stdout
    assert "20 labels without a vote are missing in every case: atelectasis" in said
    assert "0 marks missing now, 1 correction by verdict undone" in said
    data = json.loads(call("cohort", "votes", "mine", votes, "--json").stdout)
    assert data["superseded"] == {"corrections": 0, "missing": 0}
    assert len(data["not_voted"]) == 20


def test_show_names_a_cohort_that_is_not_as_recorded(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """The list says so of the cohort file; one cohort in detail is refused."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    listed = json.loads(call("cohort", "show", "--json").stdout)["cohorts"][0]
    assert listed["as_recorded"] is True
    path = workspace.cohorts / "mine" / "cohort.yaml"
    path.write_text(path.read_text().replace("role: dev", "role: external"))
    listed = json.loads(call("cohort", "show", "--json").stdout)["cohorts"][0]
    assert listed["as_recorded"] is False
    for words in (("show", "mine"), ("check",)):
        error = call("cohort", *words).exception
        assert isinstance(error, DataError)
        assert "cohort.yaml, role" in str(error)


def test_agreement_prints_tables_and_no_nan(call: Command, files: Path) -> None:
    """What cannot be estimated is a dash, never a number that is none."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    result = call("agreement", "mine", "--resamples", "100", "--pairs")
    assert result.exit_code == 0, result.output
    assert "A-B" in result.stdout
    assert "nan" not in result.stdout.casefold()
    # Of 30 pairs of votes 21 are the same. Three pairs of readers agree in all, nine
    # in nothing but absence; three never say that it is present.
    said = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert said[0] == "mine: 2 cases, 6 readers; uncertain votes are left out"
    assert "Edema 12 3 0 0.70 0.25 0.00 to 1.00 0.20 0.27" in said
    assert "All labels 12 3 0 0.70 0.25 0.00 to 1.00 0.20 0.27" in said
    assert "Edema 0.50 (0.00-1.00) 0.00 0.00 to 0.00" in said
    assert [line for line in said if line.endswith("2 0 0.50 (0.01-0.99) 0.00")] == [
        f"{reader} 2 0 0.50 (0.01-0.99) 0.00" for reader in "ABCDEF"
    ]
    data = json.loads(call("agreement", "mine", "--resamples", "100", "--json").stdout)
    assert len(data["labels"][0]["pairs"]) == 15
    assert len(data["pooled"]["ceiling"]["readers"]) == 6


def test_agreement_is_written_for_a_spreadsheet(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """A row for each label beside what is printed; never over the workspace's files."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    words = ("agreement", "mine", "--resamples", "100", "--json", "--csv")
    result = call(*words, str(files / "agreement.csv"))
    assert json.loads(result.stdout)["cohort"] == "mine"
    with (files / "agreement.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["label"] for row in rows] == ["edema", "all"]
    refused = call(*words, str(workspace.labels / "agreement.csv")).exception
    assert "holds the workspace's own files" in str(refused)


def test_agreement_refuses_an_unknown_policy(call: Command, files: Path) -> None:
    """Usage errors exit with 2."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    assert call("agreement", "mine", "--uncertain", "ignore").exit_code == 2


def test_no_case_text_is_ever_printed(call: Command, files: Path) -> None:
    """Neither by any verb here nor by its JSON."""
    outputs = [
        call("cohort", "import", str(files / "reports.csv"), "--name", "mine"),
        call("cohort", "show", "mine"),
        call("cohort", "show", "mine", "--json"),
        call("cohort", "check", "--json"),
    ]
    assert all("clear" not in result.output for result in outputs)


def _every_file(workspace: WorkspacePaths) -> dict[Path, bytes]:
    """Return path and content of every file, but for locks and the pseudonyms' key."""
    return {
        path: path.read_bytes()
        for path in workspace.root.rglob("*")
        if path.is_file() and not {"locks", "keys", "trials"} & set(path.parts)
    }


def test_an_import_tried_out_says_what_the_import_does(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """The same object, what is shared and replaced beside it, and no change."""
    call("cohort", "import", str(files / "twin.csv"), "--name", "other")
    before = _every_file(workspace)
    words = ("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    words += ("--role", "holdout", "--votes", str(files / "votes.csv"))
    tried = json.loads(call(*words, "--dry-run", "--json").stdout)
    said = call(*words, "--dry-run").stdout
    assert _every_file(workspace) == before
    assert "dry run: nothing was changed" in said
    assert "shared      with other:\n              1 text: a1 = b1" in said
    assert "next: the same command without --dry-run" in said
    done = json.loads(call(*words, "--json").stdout)
    assert {key: tried[key] for key in done} == done
    assert (tried["dry_run"], tried["separate"]) == (True, False)
    assert (tried["replaced"], tried["not_compared"]) == (None, [])


def test_an_import_tried_out_names_what_it_would_replace(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """Also where the cohort it takes the place of is damaged."""
    words = ("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call(*words)
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    refused = call(*words, "--dry-run").exception
    assert "already exists" in str(refused)
    again = (*words, "--replace", "--dry-run")
    said = call(*again).stdout
    assert "replaces    2 cases, references v1, v2, readers' votes; all kept" in said
    (workspace.cohorts / "mine" / "cohort.yaml").write_text("name: [")
    assert json.loads(call(*again, "--json").stdout)["replaced"]["cases"] is None
    assert "replaces    a cohort whose file is damaged" in call(*again).stdout


def test_votes_tried_out_are_not_taken(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """What would be lost is said before it is; then the same comes true."""
    call("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    call("cohort", "votes", "mine", str(files / "votes.csv"))
    before = _every_file(workspace)
    path = files / "again.csv"
    path.write_text("reader,case_id,label,value\nA,a1,fracture,absent\n")
    words = ("cohort", "votes", "mine", str(path), "--replace")
    said = call(*words, "--dry-run").stdout
    tried = json.loads(call(*words, "--dry-run", "--json").stdout)
    assert _every_file(workspace) == before
    assert "dry run: nothing was changed" in said
    assert "replaced    A: 2 votes, 2 of them without a new one" in said
    done = json.loads(call(*words, "--json").stdout)
    assert tried == {**done, "dry_run": True}


def test_an_import_without_votes_is_tried_out_to_its_end(
    call: Command, files: Path
) -> None:
    """There is nothing to say of votes, and no error in saying nothing."""
    words = ("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    for more, end in ((("--dry-run",), "without --dry-run"), ((), "cohort check")):
        done = call(*words, *more)
        assert done.exit_code == 0
        assert done.stdout.rstrip().endswith(end)


def test_an_import_tried_out_names_the_cohorts_it_could_not_be_compared_with(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """What nobody looked at must not pass for separate."""
    for name in ("broken", "other"):
        call("cohort", "import", str(files / "twin.csv"), "--name", name)
    (workspace.cohorts / "broken" / "cohort.yaml").write_text("name: [")
    words = ("cohort", "import", str(files / "reports.csv"), "--name", "mine")
    said = call(*words, "--dry-run").stdout
    assert "warning     broken could not be compared" in said
    assert "other could not be compared" not in said
    tried = json.loads(call(*words, "--dry-run", "--json").stdout)
    assert tried["not_compared"] == ["broken"]


def test_the_headers_that_are_understood_are_listed(call: Command) -> None:
    """Whoever has another header finds what to call it."""
    listed = call("cohort", "columns").stdout
    assert "accession_number" in listed
    assert "检查所见" in listed
    assert "Pleural Effusion" in listed


def test_a_dry_run_says_which_column_is_taken_for_what(
    call: Command, files: Path
) -> None:
    """And which is not used: before an import that would be wrong."""
    path = files / "wide.csv"
    path.write_text(
        "Report,remark,PatientID,Edema\nClear.,x,P1,nein\nClear.,x,P1,nein\n"
    )
    words = ["cohort", "import", str(path), "--name", "mine", "--number-rows"]
    words += ["--drop-duplicates", "--value", "nein=absent"]
    result = call(*words, "--dry-run")
    assert result.exit_code == 0, result.output
    for line in (
        "column      Report -> text",
        "column      PatientID -> patient",
        "column      Edema -> edema",
        "not used    columns 'remark'",
        "ids         row-000001 and so on",
        "left out    1 exact duplicate (row-000002)",
    ):
        assert line in result.stdout
    data = json.loads(call(*words, "--dry-run", "--json").stdout)
    assert data["columns"] == {
        "Report": "text",
        "PatientID": "patient",
        "Edema": "edema",
    }
    made = call(*words)
    assert made.exit_code == 0, made.output
    votes = files / "wide_votes.csv"
    votes.write_text("reader,case_id,Edema\nA,row-000001,ja\n")
    result = call("cohort", "votes", "mine", str(votes), "--value", "ja=present")
    assert "1 vote of 1 reader" in result.stdout, result.output


def test_a_dry_run_says_that_a_table_holds_pairs(call: Command, files: Path) -> None:
    """What each column is taken for, how many references and systems, what is empty."""
    path = files / "pairs.csv"
    result = call("cohort", "import", str(path), "--name", "rp", "--dry-run")
    assert "pairs       2, of reference, candidate" in result.output
    assert "references  1" in result.output
    assert "systems     one 1, two 1" in result.output
    assert "silent      1 with an empty candidate, kept" in result.output
    assert "column      candidate -> candidate" in result.output
    data = json.loads(
        call(
            "cohort", "import", str(path), "--name", "rp", "--dry-run", "--json"
        ).output
    )
    assert data["inputs"] == ["reference", "candidate"]


def test_columns_of_pairs_are_named_by_options(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """Names that nobody could guess are given on the command line."""
    options = ["--reference-column", "x", "--candidate-column", "y"]
    options += ["--system-column", "z", "--context-column", "w"]
    options += ["--reference-id-column", "v"]
    path = files / "odd_pairs.csv"
    assert call("cohort", "import", str(path), "-n", "rp", *options).exit_code == 0
    found = read_cohort(workspace, "rp")
    assert found.inputs == ("reference", "candidate", "context")
    assert found.cases[0][3:] == ("s", "r")


def test_the_list_of_cohorts_says_what_their_cases_are(
    call: Command, files: Path
) -> None:
    """Messages about pairs point to it."""
    call("cohort", "import", str(files / "pairs.csv"), "--name", "rp")
    assert "reference, candidate" in call("cohort", "show").output
    assert "reference, candidate" in call("cohort", "show", "rp").output


def test_known_columns_of_pairs_are_listed(call: Command) -> None:
    """Under their own heading, with the options that name them."""
    output = call("cohort", "columns").output
    assert "holds pairs of reports" in output
    assert "(or --candidate-column)" in output


def test_ratings_are_added_at_the_import_or_later(call: Command, files: Path) -> None:
    """Who rated what, and nothing of what was marked."""
    rated = ["--ratings", str(files / "ratings.csv"), "--scale", "1-5"]
    marked = ["--errors", str(files / "errors.csv")]
    source = ["cohort", "import", str(files / "pairs.csv"), "--name", "rp"]
    tried = call(*source, *rated, *marked, "--dry-run")
    assert "ratings     v1 of rp, 2 pairs rated" in tried.output
    done = call(*source, *rated)
    assert done.exit_code == 0, done.output
    assert "raters      A\n" in done.output
    assert "points      2 (overall 1-5)" in done.output
    more = call("cohort", "ratings", "rp", *marked, "--dry-run", "--json")
    data = json.loads(more.output)
    assert (data["number"], data["errors"], data["dry_run"]) == (2, 1, True)
    assert call("cohort", "ratings", "rp", *marked).exit_code == 0
    shown = call("cohort", "show", "rp").output
    assert "ratings           v1, v2" in shown
    assert "2 pairs, 2 ratings, 1 errors" in shown
    assert "effusion" not in shown


def test_edited_ratings_are_named_when_a_cohort_is_shown(
    call: Command, files: Path, workspace: WorkspacePaths
) -> None:
    """Instead of numbers that nobody gave."""
    rated = ["--ratings", str(files / "ratings.csv"), "--scale", "1-5"]
    call("cohort", "import", str(files / "pairs.csv"), "--name", "rp", *rated)
    place = workspace.labels / "cohorts/rp/experts/v1/ratings.csv"
    place.write_text(place.read_text().replace("2", "3"))
    shown = call("cohort", "show", "rp").output
    assert "ratings_edited    labels/cohorts/rp/experts/v1/ratings.csv" in shown
    assert "scales" not in shown


def test_ratings_without_a_file_are_refused(call: Command, files: Path) -> None:
    """The message names both options."""
    call("cohort", "import", str(files / "pairs.csv"), "--name", "rp")
    refused = call("cohort", "ratings", "rp")
    assert isinstance(refused.exception, DataError)
    assert "--ratings FILE, --errors FILE" in str(refused.exception)

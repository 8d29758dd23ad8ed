"""The verb ``verdict`` and the queue options of ``failures``."""

import csv
import io
import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import failures, verdict
from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Value
from loop.labels.error_categories import read_errors
from loop.review.status import KeptVerdict, VerdictState, Withdrawal
from loop.review.submit import VerdictContext
from loop.review.verdict import Context, Judgement, Severity, Verdict
from loop.review.verdict_files import read_verdicts
from loop.run.task import run_prompt
from tests.review.scenes import add_cohort, add_prompt

SECRET = "zebra"
ROWS = [
    ("e1", f"FINDINGS:\nSmall effusion.\n\nIMPRESSION:\nStable {SECRET}.", 1, 0),
    ("f1", f"Fluid at the base, {SECRET}.", 1, 0),
    ("c1", f"FINDINGS:\nClear.\n\nIMPRESSION:\nCardiomegaly, {SECRET}.", 0, 0),
]
FILE = """\
verdicts:
- case: f1
  label: pleural effusion
  judgement: model_wrong
  terms: fluid at
  comment: private words
- {case: c1, label: cardiomegaly, judgement: reference_wrong, correct_value: present}
"""


@pytest.fixture
def call(workspace, tmp_path):
    """Return a function that calls a verb in a workspace with one run."""
    add_cohort(workspace, tmp_path, ROWS)
    add_prompt(workspace, 1, "effusion")
    run_prompt(workspace, "tiny@v1", "dev")
    (tmp_path / "round1.yaml").write_text(FILE)
    app = typer.Typer()
    for module in (failures, verdict):
        module.register(app)

    def run(*arguments):
        found = [str(a) for a in arguments]
        return CliRunner().invoke(app, [*found, "-w", str(workspace.root)])

    return run


@pytest.fixture
def added(call, tmp_path):
    """Hand in the file; return the ids."""
    arguments = ("--run", "latest", "--actor", "Ann", "--json")
    return json.loads(
        call("verdict", "add", tmp_path / "round1.yaml", *arguments).stdout
    )["ids"]


def listed(call, *options):
    """Return the verdicts that the verb lists."""
    return json.loads(call("verdict", "list", "--json", *options).stdout)["verdicts"]


def test_a_file_is_kept_once(call, added, tmp_path):
    """Handing it in again changes nothing."""
    again = call(
        "verdict", "add", tmp_path / "round1.yaml", "--run", "latest", "--actor", "Ann"
    )
    assert "kept 2 verdicts on dev on run" in again.stdout
    rows = listed(call)
    assert sorted(row["id"] for row in rows) == sorted(added)
    assert {row["state"] for row in rows} == {"open"}


def test_a_file_tried_out_is_not_kept(call, tmp_path):
    """It says whose verdicts it holds, on what, and how many are known."""
    words = ("verdict", "add", tmp_path / "round1.yaml", "--run", "latest")
    words += ("--actor", "Ann")
    said = call(*words, "--dry-run").stdout
    assert listed(call) == []
    assert "2 new, 0 known already" in said
    assert "reviewers   Ann" in said
    assert "judgements  1 model_wrong, 1 reference_wrong" in said
    assert "private words" not in said
    call(*words)
    data = json.loads(call(*words, "--dry-run", "--json").stdout)
    assert (data["dry_run"], data["verdicts"], data["known"]) == (True, 2, 2)
    assert data["labels"] == {"pleural_effusion": 1, "cardiomegaly": 1}


@pytest.mark.slow
def test_lists_fit_a_terminal_of_100_columns(call, tmp_path):
    """With long names, and reasons beside each failing case."""
    who = "Dr A. Radiologist-Example (thoracic)"
    arguments = ("--run", "latest", "--actor", who)
    call("verdict", "add", tmp_path / "round1.yaml", *arguments)
    outputs = [
        call("verdict", "list", "--comments"),
        call("failures"),
        call("failures", "--order", "value"),
        call("verdict", "add", tmp_path / "round1.yaml", *arguments, "--dry-run"),
    ]
    for one in outputs:
        assert max(map(len, one.stdout.splitlines())) <= 100, one.stdout


def test_the_list_tells_what_became_of_each(call, added):
    """Who judged, when, and how many are in which state."""
    call("verdict", "withdraw", added[0], "--why", "slip", "--actor", "Ann")
    said = call("verdict", "list", "--comments").stdout
    assert said.startswith("dev:\n")
    assert f"{added[0]}  model_wrong, pleural_effusion in f1\n" in said
    assert ": withdrawn by Ann\n              private words\n" in said
    told = said.splitlines()[-1].removeprefix("2 verdicts: ")
    assert sorted(told.split(", ")) == ["1 open", "1 withdrawn"]


def test_comments_are_shown_only_on_request(call, added):
    """A list may be pasted into an e-mail."""
    assert "private words" not in call("verdict", "list").stdout
    assert "private words" not in call("verdict", "list", "--json").stdout
    assert "private words" in call("verdict", "list", "--comments").stdout


def test_notes_are_exported_only_on_request(call, added, tmp_path):
    """A file of verdicts goes to people for whom no note was written."""
    path = tmp_path / "out.yaml"
    call("verdict", "export", path)
    assert "private words" not in path.read_text("utf-8")
    call("verdict", "export", path, "--notes")
    assert "private words" in path.read_text("utf-8")


def test_a_list_is_narrowed_by_label_and_state(call, added):
    """Labels may be written as published."""
    assert [row["cases"] for row in listed(call, "-l", "Pleural Effusion")] == [["f1"]]
    assert listed(call, "--state", "withdrawn") == []


def test_a_withdrawn_verdict_stays_in_the_record(call, added):
    """With who took it back."""
    refused = call("verdict", "withdraw", added[0], "--why", "x", "--actor", "Ben")
    assert isinstance(refused.exception, DataError)
    done = call("verdict", "withdraw", added[0], "--why", "slip", "--actor", "Ann")
    assert done.stdout == f"withdrew verdict {added[0]} on dev\n"
    (row,) = listed(call, "--state", "withdrawn")
    assert (row["id"], row["withdrawn_by"]) == (added[0], "Ann")


@pytest.mark.parametrize("name", ["out.yaml", "out.csv"])
def test_what_is_exported_is_private_and_reads_back(call, added, tmp_path, name):
    """Only open verdicts, unless asked otherwise."""
    call("verdict", "withdraw", added[1], "--why", "slip", "--actor", "Ann")
    done = call("verdict", "export", tmp_path / name, "--notes", "--json")
    assert json.loads(done.stdout)["verdicts"] == 1
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    (one,) = read_verdicts(tmp_path / name).verdicts
    assert (one.id, one.reviewer) == (added[0], "Ann")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verdict", "export", "out.xlsx"), "neither in .yaml nor in .csv"),
        (("verdict", "export", "out.yaml"), "nothing to write"),
        (("verdict", "list", "--state", "gone"), "Use one of open, superseded"),
        (("verdict", "withdraw", "x", "--why", "y"), "no verdict 'x'"),
        (("failures", "--section", "nowhere"), "Sections are findings"),
        (("failures", "--status", "done"), "a status is one of unreviewed"),
    ],
)
def test_wrong_arguments_are_explained(call, arguments, message):
    """The message says what there is instead."""
    result = call(*arguments)
    assert isinstance(result.exception, DataError)
    assert message in str(result.exception)


def cases(call, *options):
    """Return the cases that ``failures`` lists."""
    result = call("failures", "--json", *options)
    return [row["case_id"] for row in json.loads(result.stdout)["rows"]]


def test_failures_can_be_ordered_by_value_with_reasons(call):
    """Each row says why it comes where it does, without a word of the case."""
    result = call("failures", "--order", "value", "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [row["place"] for row in rows] == [1, 2]
    assert all("rare: " in row["why"] for row in rows)
    assert SECRET not in result.stdout
    said = call("failures", "--order", "value").stdout
    assert "   1  f1, pleural_effusion, false_negative\n" in said
    assert "      predicted absent, reference present\n" in said
    assert "      rare: 2 of at least 10 positives; fails by 1 answer" in said
    assert "      unreviewed\n" in said


def test_the_queue_shows_who_was_here_and_the_text_asked_for(call, added):
    """All of one case stands together."""
    said = call("failures", "--order", "value", "--text", "case").stdout
    assert "      reviewed by Ann\n" in said
    assert f"      Fluid at the base, {SECRET}.\n" in said


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--section", "impression"), ["c1"]),
        (("--search", f"BASE, {SECRET}"), ["f1"]),
        (("--status", "unreviewed"), ["f1", "c1"]),
        (("--status", "reserved"), []),
        (("--reviewer", "Ann"), []),
    ],
)
def test_failures_are_narrowed_as_in_the_workbench(call, options, found):
    """The same filters, in the usual order of labels and cases."""
    assert sorted(cases(call, *options)) == sorted(found)


def test_a_limit_is_of_the_rows_and_not_of_the_total(call):
    """As JSON in either spelling, and as the table."""
    whole = json.loads(call("failures", "--json").stdout)
    part = call("failures", "--limit", "1", "--json").stdout
    assert json.loads(part) == whole | {"total": 2, "rows": whole["rows"][:1]}
    assert call("failures", "--limit", "1", "--format", "json").stdout == part
    shown = call("failures", "--limit", "1").stdout
    assert shown.splitlines()[-1].startswith("1 of 2 rows: ")
    queued = call("failures", "--limit", "1", "--order", "value", "--json").stdout
    assert [row["place"] for row in json.loads(queued)["rows"]] == [1]


@pytest.mark.parametrize(
    "option",
    [
        ("--kind", "unparsed"),
        ("--order", "value"),
        ("--section", "findings"),
        ("--search", "base"),
        ("--status", "reviewed"),
        ("--reviewer", "Ann"),
        ("--cases-file", "cases.txt"),
    ],
)
def test_uncertain_cases_have_no_place_in_the_queue(call, option):
    """Each option alone that could only narrow failures is refused."""
    refused = call("failures", "--reference", "uncertain", *option)
    assert isinstance(refused.exception, DataError)
    assert "lists cases that are no failures" in str(refused.exception)


def test_uncertain_cases_are_limited_too(call, workspace, tmp_path):
    """They are listed with their answers, whatever these are."""
    rows = [
        (name, text, "uncertain", "uncertain" if name == "c1" else heart)
        for name, text, _, heart in ROWS
    ]
    add_cohort(workspace, tmp_path, rows, name="open")
    run_prompt(workspace, "tiny@v1", "open")
    words = ("failures", "--reference", "uncertain", "--label", "pleural effusion")
    found = json.loads(call(*words, "--limit", "2", "--json").stdout)
    assert (found["total"], len(found["rows"])) == (3, 2)
    assert {row["kind"] for row in found["rows"]} == {"reference_uncertain"}


def test_a_section_that_there_is_not_is_answered_with_those_there_are(call):
    """And with every status."""
    refused = call("failures", "--section", "margin")
    assert str(refused.exception) == (
        "'margin' is not a valid TextSection. Sections are findings, impression, "
        "other; a status is one of unreviewed, reviewed, addressed, returned, "
        "reserved, every draw, flips."
    )


def test_failures_know_who_has_judged_them(call, added):
    """As soon as a verdict is kept."""
    assert sorted(cases(call, "--reviewer", "Ann", "--status", "reviewed")) == [
        "c1",
        "f1",
    ]
    assert cases(call, "--status", "unreviewed") == []


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--order", "value", "--text", "case")])
def test_a_table_of_failures_can_be_filled_in_and_sent_back(call, tmp_path, options):
    """The run, what the queue adds to a row, and its text are no verdict."""
    text = call("failures", *options, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["on_cohort"] for row in rows} == {"dev"}
    assert all((SECRET in row.get("text", "")) == bool(options) for row in rows)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*rows[0], "judgement"])
    writer.writeheader()
    writer.writerows({**row, "judgement": "model_wrong"} for row in rows)
    path = tmp_path / "filled.csv"
    path.write_text(stream.getvalue())
    assert len(read_verdicts(path).verdicts) == 2


JUDGED = VerdictContext("dev", "tiny@v1", "", run="20260301-1", flips="2 of 3")


def kept(**changes):
    """Return a kept verdict on two cases, as a reviewer may give one."""
    said = {
        "label": "edema",
        "judgement": Judgement.MODEL_WRONG,
        "severity": Severity.MAJOR,
        "context": Context.NEGATION,
        "case_ids": ("c1", "c2"),
        "correct_value": Value.PRESENT,
        "reviewer": "Ann",
        "comment": "first line\nsecond line",
        "anchor": True,
    }
    told = {name: changes.pop(name) for name in said.keys() & changes.keys()}
    return KeptVerdict(
        **{
            "id": "0123456789ab",
            "verdict": Verdict(**said | told),
            "circumstances": JUDGED,
            "created": "2026-03-01T12:00:00Z",
            "state": VerdictState.OPEN,
            **changes,
        }
    )


def test_a_listed_verdict_is_all_that_was_said_but_its_words():
    """With what became of it; the comment only where it is asked for."""
    row = {
        "id": "0123456789ab",
        "cohort": "dev",
        "run": "20260301-1",
        "prompt": "tiny@v1",
        "flips": "2 of 3",
        "created": "2026-03-01T12:00:00Z",
        "reviewer": "Ann",
        "cases": ["c1", "c2"],
        "label": "edema",
        "judgement": "model_wrong",
        "severity": "major",
        "context": "negation",
        "correct_value": "present",
        "correct_counts": None,
        "edits": 0,
        "anchor": True,
        "state": "open",
        "addressed_by": "",
        "superseded_by": "",
        "conflicts": [],
        "withdrawn_by": "",
    }
    comment = {"comment": "first line\nsecond line"}
    assert verdict._row(kept(), comments=False) == row
    assert verdict._row(kept(), comments=True) == row | comment
    withdrawn = kept(
        severity=None,
        context=None,
        correct_value=None,
        state=VerdictState.WITHDRAWN,
        withdrawal=Withdrawal("Ben", "2026-03-02T12:00:00Z", "slip"),
        conflicts=("ba9876543210",),
    )
    assert verdict._row(withdrawn, comments=False) == row | {
        "severity": None,
        "context": None,
        "correct_value": None,
        "state": "withdrawn",
        "withdrawn_by": "Ben",
        "conflicts": ["ba9876543210"],
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "open, failed in 2 of 3 draws"),
        ({"circumstances": JUDGED._replace(flips="")}, "open"),
        ({"conflicts": ("x",)}, "open, disputed, failed in 2 of 3 draws"),
        (
            {"state": VerdictState.SUPERSEDED, "superseded_by": "x-2"},
            "superseded by x-2, failed in 2 of 3 draws",
        ),
        (
            {"state": VerdictState.ADDRESSED, "addressed_by": "tiny@v2"},
            "addressed by tiny@v2, failed in 2 of 3 draws",
        ),
        # What did not keep it from being open is not what became of it.
        ({"addressed_by": "tiny@v2"}, "open, failed in 2 of 3 draws"),
        ({"state": VerdictState.ADDRESSED}, "addressed, failed in 2 of 3 draws"),
    ],
)
def test_a_line_tells_what_became_of_a_verdict(changes, words):
    """By whom or by what; whether others disagree; how often it failed."""
    row = verdict._row(kept(**changes), comments=True)
    assert verdict._lines(row) == [
        "0123456789ab  model_wrong, edema in c1 +1",
        f"              Ann, 2026-03-01: {words}",
        "              first line",
        "              second line",
    ]


@pytest.mark.parametrize(
    ("cases", "told"), [(("c1",), "c1"), (("c1", "c2", "c3"), "c1 +2"), ((), "-")]
)
def test_a_line_names_the_first_case(cases, told):
    """And how many more there are; a verdict on the guide has none."""
    row = verdict._row(kept(case_ids=cases, anchor=bool(cases)), comments=False)
    what, who = verdict._lines(row)
    assert what == f"0123456789ab  model_wrong, edema in {told}"
    assert who.startswith("              Ann, ")


def test_a_dry_run_says_all_that_would_be_kept(call, tmp_path):
    """The whole output, and nothing of it stays."""
    path = tmp_path / "round2.yaml"
    path.write_text(
        FILE + "- {case: c1, label: edema, judgement: guideline_ambiguous}\n"
    )
    words = ("verdict", "add", path, "--cohort", "dev", "--dry-run")
    *lines, judgements, labels, last = call(
        *words, "--actor", "Ann"
    ).stdout.splitlines()
    assert [*lines, last] == [
        "dry run: nothing was kept",
        "  3 verdicts on dev, run not named",
        "  3 new, 0 known already",
        "  reviewers   Ann",
        "next: the same command without --dry-run",
    ]
    assert sorted(judgements.removeprefix("  judgements  ").split(", ")) == [
        "1 guideline_ambiguous",
        "1 model_wrong",
        "1 reference_wrong",
    ]
    assert sorted(labels.removeprefix("  labels      ").split(", ")) == [
        "1 cardiomegaly",
        "1 edema",
        "1 pleural_effusion",
    ]
    assert call("verdict", "list").stdout == "0 verdicts\n"
    assert json.loads(call(*words, "--actor", "Ann", "--json").stdout) == {
        "dry_run": True,
        "cohort": "dev",
        "run": "",
        "verdicts": 3,
        "known": 0,
        "reviewers": ["Ann"],
        "judgements": {
            "model_wrong": 1,
            "reference_wrong": 1,
            "guideline_ambiguous": 1,
        },
        "labels": {"pleural_effusion": 1, "cardiomegaly": 1, "edema": 1},
    }


def test_what_was_kept_is_named_line_by_line(call, tmp_path):
    """On a cohort where no run was named; and as JSON."""
    words = ("verdict", "add", tmp_path / "round1.yaml", "--cohort", "dev")
    data = json.loads(call(*words, "--actor", "Ann", "--json").stdout)
    ids = data["ids"]
    assert data == {"cohort": "dev", "run": "", "ids": ids}
    assert len(ids) == 2
    assert call(*words, "--actor", "Ann").stdout == (
        f"kept 2 verdicts on dev:\n  {ids[0]}\n  {ids[1]}\n"
    )
    rows = listed(call, "--cohort", "dev")
    assert json.loads(call("verdict", "list", "--json").stdout)["total"] == len(rows)
    assert json.loads(
        call(
            *("verdict", "withdraw", f"dev:{ids[0]}", "--why", "slip"),
            *("--actor", "Ann", "--json"),
        ).stdout
    ) == {"withdrawn": ids[0], "cohort": "dev"}


def test_the_number_of_verdicts_that_were_written_is_told(call, added, tmp_path):
    """Beside where they are; a label that nobody judged has none."""
    path = tmp_path / "out.YML"
    done = call("verdict", "export", path, "-l", "cardiomegaly")
    assert (done.stdout, done.stderr) == ("", f"wrote {path}: 1 verdict\n")
    done = call(
        "verdict", "export", path, "-l", "cardiomegaly", "-l", "edema", "--json"
    )
    assert json.loads(done.stdout) == {"file": str(path), "verdicts": 1}
    refused = call("verdict", "export", path, "-l", "no such label")
    assert isinstance(refused.exception, UnknownLabelError)


def test_a_category_of_errors_is_a_label_too(workspace):
    """Found by its own list; an unknown name is answered with the labels."""
    first = read_errors(workspace.labels).categories[0]
    assert verdict._find_label(workspace, first.id) == first.id
    assert verdict._find_label(workspace, "Pleural Effusion") == "pleural_effusion"
    with pytest.raises(UnknownLabelError):
        verdict._find_label(workspace, "nowhere")


def test_a_fact_breaks_between_its_parts_only():
    """Within 88 columns, and goes on under its first part."""
    parts = [f"reader {number:02} of the panel" for number in range(4)]
    assert verdict._wrapped("reviewers", parts) == (
        "  reviewers   reader 00 of the panel, reader 01 of the panel, "
        "reader 02 of the panel,\n"
        "              reader 03 of the panel"
    )

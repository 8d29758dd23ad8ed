"""The verb ``reading`` and ``agreement --against`` as a user types them."""

import csv
import json
import re
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import agreement, reading
from loop.cli.cohort_report import say_votes
from loop.core.errors import LoopError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Guide, Mark, Value
from loop.labels.ballots import votes_path
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.majority import MajorityRule
from loop.labels.reference import list_references, read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import write_version
from loop.prompts.version import PromptVersion
from loop.review.reading.adjudication import Adjudicated
from loop.review.reading.answers import keep_comment
from loop.review.reading.assignment import ReadingPlan, read_assignment
from loop.review.reading.disputes import Dispute, Disputes
from loop.review.reading.publication import Published, PublishedReader
from loop.review.reading.reader_progress import ReaderProgress, ReadingProgress
from loop.run.store import open_store
from loop.run.task import run_prompt
from tests.cli.test_cohort_report import voted

EDITOR = Actor(name="Dr A. Example")
SECRET = "zebra"
PUBLISH = ("reading", "publish", "dev", "--why", "read twice")
USER = "{% for guide in guides %}{{ guide.name }}\n{% endfor %}\n{{ text }}\n"


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort of six cases without a reference."""
    path = tmp_path / "dev.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text"])
        for number in range(3):
            writer.writerow([f"e{number}", f"Small effusion, {SECRET} {number}."])
            writer.writerow([f"n{number}", f"Clear lungs, {SECRET} {number}."])
    options = ImportOptions(name="dev", role="dev", source="Synthetic", licence="-")
    import_cohort(workspace, path, options, actor=EDITOR)
    return workspace


@pytest.fixture
def call(place):
    """Return a function that calls a verb in the workspace and gives its output."""
    app = typer.Typer()
    reading.register(app)
    agreement.register(app)

    def run(*words, fails=None, noted=False):
        result = CliRunner().invoke(app, [*words, "--workspace", str(place.root)])
        if fails is not None:
            assert isinstance(result.exception, LoopError), result.output
            return str(result.exception)
        assert result.exit_code == 0, (result.output, result.exception)
        said = result.stderr if noted else result.stdout
        return json.loads(said) if "--json" in words and not noted else said

    return run


@pytest.fixture
def answers(tmp_path):
    """Return a function that writes a file of values of one label, case by case."""

    def write(values, label="pleural_effusion"):
        path = tmp_path / "answers.csv"
        lines = [f"{case},{label},{value}" for case, value in values.items()]
        path.write_text("\n".join(["case_id,label,value", *lines]) + "\n")
        return str(path)

    return write


@pytest.fixture
def read(call, answers):
    """Let three readers read all cases; they differ on e0 and e1."""
    for reader, marks in (("Dr. A", "ppp"), ("Dr. B", "pap"), ("Dr. C", "upp")):
        words = {"p": "present", "a": "absent", "u": "uncertain"}
        values = {f"e{n}": words[mark] for n, mark in enumerate(marks)}
        values |= {f"n{n}": "absent" for n in range(3)}
        path = answers(values)
        call("reading", "answer", "dev", path, "--reader", reader, "--rest-absent")


def test_that_nobody_has_commented_is_said(call):
    """And nothing is listed."""
    nothing = "no reader has commented on a case of dev\n"
    assert call("reading", "comments", "dev") == nothing
    found = call("reading", "comments", "dev", "--json")
    assert found == {"cohort": "dev", "comments": []}


def test_a_reader_works_through_a_cohort_from_the_command_line(call, answers):
    """Next case with its text, answer, put off, progress."""
    sheet = call("reading", "next", "dev", "--reader", "Dr. A", "--json")["case"]
    assert set(sheet) == {"case_id", "text", "answers", "open_labels"}
    assert SECRET in sheet["text"]
    first = sheet["case_id"]
    deferred = call("reading", "defer", "dev", first, "--reader", "Dr. A", "--json")
    assert deferred == {"case": first, "deferred": True}
    again = call("reading", "next", "dev", "--reader", "Dr. A", "--json")["case"]
    assert again["case_id"] != first
    path = answers({first: "present"})
    line = ("reading", "answer", "dev", path, "--reader", "Dr. A")
    said = call(*line, "--json")
    assert (said.pop("cases"), said.pop("saved"), said.pop("filled")) == (1, 1, 0)
    assert list(said) == ["guideline"]
    assert "19 other labels" in call(*line, "--rest-absent")
    shown = call("reading", "progress", "dev", "--json")
    assert shown["readers"][0]["complete"] == 1
    assert shown["readers"][0]["blind"] is True
    assert SECRET not in call("reading", "progress", "dev")


def test_whoever_labels_off_line_gets_the_guideline_and_may_name_it(
    call, answers, place, tmp_path
):
    """The sheet carries definitions and digest; answers by another one are refused."""
    taxonomy = read_taxonomy(place.labels)
    given = call("reading", "next", "dev", "--reader", "Dr. A", "--json")["guideline"]
    assert taxonomy.digest.startswith(given["digest"])
    assert given["reading"] == list(taxonomy.reading)
    assert list(given["labels"]) == list(taxonomy.extracted)
    for label in given["labels"]:
        known = taxonomy.find(label)
        assert given["labels"][label]["definition"] == known.definition
        assert given["labels"][label].get("Counts", []) == list(known.counts)
    shown = call("reading", "next", "dev", "--reader", "Dr. A")
    assert f"taxonomy version {taxonomy.version}, digest {given['digest']}" in shown
    path = tmp_path / "named.csv"
    line = ("reading", "answer", "dev", str(path), "--reader", "Dr. A")
    for digest in (given["digest"], taxonomy.digest.upper(), taxonomy.digest[:8]):
        path.write_text(f"case_id,label,value,guideline\ne0,edema,present,{digest}\n")
        assert call(*line, "--json")["guideline"] == given["digest"]
    for digest in ("0" * 12, taxonomy.digest[:7], taxonomy.digest + "0"):
        path.write_text(f"case_id,label,value,guideline\ne0,edema,absent,{digest}\n")
        said = call(*line, fails=True)
        assert "line 2: answered beside guideline" in said
        assert f"is now {given['digest']}" in said
    sheet = call("reading", "next", "dev", "--reader", "Dr. A", "--case", "e0")
    assert re.search(r"edema +present", sheet)


def test_where_readers_label_no_finding_the_verbs_ask_and_warn(call, answers, place):
    """The rest is absent, but not No Finding; what contradicts it is said in words."""
    place.protocol.write_text(place.protocol.read_text() + "\nno_finding: read\n")
    line = ("reading", "answer", "dev", answers({"e0": "present"}))
    said = call(*line, "--reader", "Dr. A", "--rest-absent")
    assert "1 answer of Dr. A on 1 case of dev saved" in said
    assert "19 other labels of these cases marked absent" in said
    assert "No Finding is open in 1 of these cases" in said
    line = ("reading", "answer", "dev", answers({"e0": "present"}, "No Finding"))
    against = "No Finding contradicts Pleural Effusion (present)"
    assert f"e0: {against}" in call(*line, "--reader", "Dr. A")
    found = call(*line, "--reader", "Dr. A", "--json")
    assert found["contradictions"]["e0"].startswith(against)
    assert found["no_finding_open"] == 0
    sheet = call("reading", "next", "dev", "--reader", "Dr. A", "--case", "e0")
    assert f"\n{against}" in sheet
    data = call("reading", "next", "dev", "--reader", "Dr. A", "--case", "e0", "--json")
    assert data["contradiction"].startswith(against)
    line = ("reading", "answer", "dev", answers({"e0": "absent"}, "No Finding"))
    assert "contradicts" not in call(*line, "--reader", "Dr. A")


def test_a_wrong_file_changes_nothing(call, answers):
    """Refused with the line; the right line before it is not saved."""
    path = answers({"e0": "present", "zz": "present"})
    error = call("reading", "answer", "dev", path, "--reader", "Dr. A", fails=True)
    assert "answers.csv, line 3: cohort 'dev' has no case 'zz'" in error
    assert call("reading", "progress", "dev", "--json")["readers"] == []


def test_when_all_is_complete_the_next_step_is_named(call, read):
    """And the text of a case can still be asked for by name."""
    said = call("reading", "next", "dev", "--reader", "Dr. A")
    assert said == "every case of dev is complete\nnext: ranloop reading publish dev\n"
    data = call("reading", "next", "dev", "--reader", "Dr. A", "--json")
    assert (data["case"], data["contradiction"]) == (None, "")
    assert "pleural_effusion" in data["guideline"]["labels"]
    begun = call(
        "reading", "next", "dev", "--reader", "Dr. D", "--case", "n1", "--json"
    )
    assert begun["case"]["answers"] == {}
    assert begun["case"]["open_labels"] == list(data["guideline"]["labels"])
    shown = call("reading", "next", "dev", "--reader", "Dr. A", "--case", "e0")
    assert shown.startswith(
        f"e0\n\nSmall effusion, {SECRET} 0.\n\n  atelectasis                 absent\n"
    )
    assert "\n  pleural_effusion            present\n" in shown
    assert (
        "\nopen: nothing, the case is complete\nguideline: taxonomy version " in shown
    )


def test_readings_become_a_reference_that_a_panel_completes(call, read, answers, place):
    """Publish, list the disputes, decide, publish again: the whole way."""
    said = call(*PUBLISH, "--actor", "Dr. Editor")
    assert "Dr. A: 6 complete cases published, 0 begun and left out" in said
    assert "reference v1 of dev: 378 votes of 3 readers" in said
    assert "over half of the readers who voted on the case and label" in said
    found = call("reading", "disputes", "dev", "--json", "--anonymous")
    assert [row["case_id"] for row in found["rows"]] == ["e0", "e1"]
    assert {b["reader"] for b in found["rows"][0]["ballots"]} == {"A", "B", "C"}
    assert "panel" not in call("reading", "disputes", "dev")
    path = answers({"e0": "uncertain", "e1": "absent"})
    words = ("reading", "adjudicate", "dev", path)
    made = call(*words, "--why", "read together", "--actor", "Dr. A", "--json")
    assert (made["reference"], made["decided"], made["own"]) == (2, 2, 2)
    assert read_reference(place, "dev").mark("e1", "pleural_effusion") is Mark.ABSENT
    assert "absent (panel)" in call("reading", "disputes", "dev")
    assert call("reading", "disputes", "dev", "--open", "--json")["rows"] == []
    line = ("reading", "answer", "dev", answers({"e1": "present"}))
    call(*line, "--reader", "Dr. B")
    said = call(*PUBLISH, "--reader", "Dr. B")
    assert "1 earlier decision of a panel kept" in said
    assert "1 fell because votes changed: pleural_effusion of e1" in said
    data = call(*PUBLISH, "--json")
    assert data["votes"]["adjudications"] == {"kept": 1, "lost": []}
    assert SECRET not in place.ledger.read_text()


def test_an_adjudication_that_is_wrong_changes_nothing(call, read, answers, place):
    """No reason, no dispute, or no such case."""
    call(*PUBLISH)
    path = answers({"e0": "present", "e2": "absent"})
    words = ("reading", "adjudicate", "dev", path)
    assert "no dispute over" in call(*words, "--why", "x", fails=True)
    assert "needs a reason" in call(*words, "--why", " ", fails=True)
    assert list_references(place, "dev") == (1,)


def test_pseudonyms_are_published_and_said(call, read, place):
    """The open files name nobody."""
    data = call(*PUBLISH, "--pseudonyms", "--json")
    assert all(one["reader"].startswith("reader-") for one in data["readers"])
    assert "Dr. A" not in json.dumps(data)
    last = read_ledger(place.ledger)[-1]
    assert "Dr. A" not in json.dumps(dict(last.payload))
    assert "reader-" in call(*PUBLISH, "--pseudonyms")


@pytest.mark.slow
def test_agreement_holds_a_run_beside_the_readers(call, read, place):
    """The ceiling table in words and as JSON; a run elsewhere is refused."""
    call(*PUBLISH)
    guide = Guide(
        label="pleural_effusion",
        name="Pleural Effusion",
        definition="Fluid in the pleural space.",
        terms=("effusion",),
    )
    version = PromptVersion(
        name="tiny", number=1, system="Read.\n", user=USER, guides=(guide,)
    )
    write_version(place, version)
    run_prompt(place, "tiny@v1", "dev")
    words = ("agreement", "dev", "--against", "latest", "--resamples", "100")
    said = call(*words)
    assert "accuracy: reader" in said
    assert "strict majority of the other readers" in said
    assert "nan" not in said.casefold()
    data = call(*words, "--json")["against"]
    assert data["cases"] == 6
    by_label = {row["label"]: row for row in data["labels"]}
    assert by_label["pleural_effusion"]["accuracy"]["model"]["value"] == 1.0
    assert by_label["edema"]["accuracy"]["model"]["value"] is None
    assert "contradicts" not in call("agreement", "dev", "--resamples", "100", "--json")
    part = run_prompt(place, "tiny@v1", "dev", limit=3).run_id
    told = f"Run {part} asked the first 3 cases of dev only"
    few = ("agreement", "dev", "--against", part, "--resamples", "100")
    assert told in call(*few, noted=True) and told not in call(*words, noted=True)


def test_a_run_on_another_cohort_is_refused(call, read, place, tmp_path):
    """Votes and answers must be on the same cases."""
    call(*PUBLISH)
    path = tmp_path / "other.csv"
    path.write_text("case_id,text,edema\no1,Edema of the lungs.,1\n")
    options = ImportOptions(name="other", role="dev", source="-", licence="-")
    import_cohort(place, path, options, actor=EDITOR)
    run_prompt(place, "extractor@v1", "other")
    error = call("agreement", "dev", "--against", "latest", fails=True)
    assert "is on cohort 'other', not on 'dev'" in error


def test_a_dry_run_shows_which_marks_change_and_can_be_held_to(
    call, read, answers, place
):
    """Case ids and labels, undecided ones first; nothing else is published then."""
    call(*PUBLISH)
    line = ("reading", "answer", "dev", answers({"e2": "absent", "n0": "present"}))
    for reader in ("Dr. A", "Dr. B"):
        call(*line, "--reader", reader)
    before = place.ledger.read_bytes()
    two = ("--reader", "Dr. A", "--reader", "Dr. B")
    said = call("reading", "publish", "dev", *two, "--dry-run")
    assert place.ledger.read_bytes() == before
    assert said.startswith("dry run: nothing was changed")
    data = call("reading", "publish", "dev", *two, "--dry-run", "--json")
    assert data["dry_run"] is True
    changes = data["votes"]["changes"]
    assert len(changes["listed"]) == changes["marks"] > 0
    for row in changes["listed"]:
        assert f"{row['case_id']}, {row['label']}: {row['was']} -> " in said
    digest = data["digest"]
    assert f"--expect {digest}" in said
    words = (*PUBLISH, "--expect", digest)
    alone = call(*words, "--reader", "Dr. A", fails=True)
    assert "nothing was published" in alone
    call(*words, *two)
    last = read_ledger(place.ledger)[-1]
    assert last.reason == "read twice"
    assert "needs a reason" in call("reading", "publish", "dev", fails=True)


def test_two_readers_are_given_cases_that_they_partly_share(call, answers, tmp_path):
    """Who, how many, how many shared; progress says how far each is, and no answer."""
    words = ("reading", "assign", "dev", "--reader", "Dr. A", "--reader", "Dr. B")
    made = call(*words, "--cases", "4", "--overlap", "2", "--json")
    one, other = (set(plan["case_ids"]) for plan in made["plans"])
    assert (len(one), len(other), len(one & other)) == (4, 4, 2)
    again = call(*words, "--cases", "4", "--overlap", "2", "--json")
    assert [p["case_ids"] for p in again["plans"]] == [
        p["case_ids"] for p in made["plans"]
    ]
    first = made["plans"][0]["case_ids"][0]
    assert call("reading", "next", "dev", "--reader", "Dr. A").startswith(first)
    path = answers({first: "present"})
    call("reading", "answer", "dev", path, "--reader", "Dr. A", "--rest-absent")
    rows = call("reading", "progress", "dev", "--json")["readers"]
    told = [(r["reader"], r["given"], r["given_complete"], r["shared"]) for r in rows]
    assert told == [("Dr. A", 4, 1, 2), ("Dr. B", 4, 0, 2)]
    assert "present" not in call("reading", "progress", "dev")
    assert "Use random or listed" in call(*words, "--order", "x", fails=True)
    assert "take 8 cases" in call(*words, "--cases", "4", "--overlap", "0", fails=True)
    listed = tmp_path / "cases.txt"
    listed.write_text("n0\ne1\n\n")
    given = call(*words, "--cases-file", str(listed), "--order", "listed", "--json")
    assert [plan["case_ids"] for plan in given["plans"]] == [["n0", "e1"]] * 2
    assert "every reader reads all" in call(*words, "--every-case")


def test_comments_are_printed_on_request_only(call, place, answers):
    """And never with the votes."""
    assignment = read_assignment(place, "dev")
    with open_store(place) as store:
        keep_comment(store, assignment, "Dr. A", "e0", "image quality")
    assert call("reading", "comments", "dev") == "e0  Dr. A: image quality\n"
    call(
        "reading", "answer", "dev", answers({"e0": "present"}),
        "--reader", "Dr. A", "--rest-absent",
    )  # fmt: skip
    assert "image quality" not in call(*PUBLISH)
    assert "image quality" not in votes_path(place, "dev").read_text()
    assert "image quality" not in place.ledger.read_text()


def reader(name, **changes):
    """Return how far a reader is who has read everything blind."""
    return ReaderProgress(
        **{
            "reader": name,
            "complete": 6,
            "begun": 1,
            "answers": 130,
            "other_guideline": 0,
            "last": "2026-03-01T12:00:00Z",
            "given": 7,
            "given_complete": 5,
            "shared": None,
            "not_blind": 0,
            **changes,
        }
    )


def progressed(*readers, earlier=0):
    """Return how far readers are."""
    return ReadingProgress(
        cohort="dev", of=7, labels=20, readers=readers, earlier=earlier
    )


def test_progress_says_who_was_not_blind_and_what_does_not_count(capsys):
    """One line a reader; the remarks only where they are true."""
    found = progressed(
        reader("Dr. A", shared=0),
        reader("Dr. B", not_blind=1, other_guideline=3, last="", complete=0),
        reader("Dr. C", not_blind=4, other_guideline=2, shared=3),
        earlier=9,
    )
    reading.say_progress(found)
    header, _, *lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", header) == [
        *("reader", "given", "of these complete", "shared", "complete", "begun"),
        *("answers", "blind", "last answer"),
    ]
    cells = [re.split(r"  +", line) for line in lines[:3]]
    time = "2026-03-01T12:00:00Z"
    assert cells == [
        ["Dr. A", "7", "5", "0", "6", "1", "130", "yes", time],
        ["Dr. B", "7", "5", "-", "0", "1", "130", "1 answer not", "none"],
        ["Dr. C", "7", "5", "3", "6", "1", "130", "4 answers not", time],
    ]
    assert lines[3:] == [
        "not blind: answered after a verdict of the same person on this cohort, so "
        "having seen a model's answers",
        "counted, although given under another guideline than today's "
        "(labels/taxonomy.yaml was changed): 5 answers",
        "kept and not counted, as given to earlier texts under this name: 9 answers",
    ]
    reading.say_progress(progressed(reader("Dr. A")))
    assert len(capsys.readouterr().out.splitlines()) == 3
    reading.say_progress(progressed())
    assert capsys.readouterr().out == "no case has been read of dev yet\n"


def test_progress_is_whole_as_json():
    """With whether each was blind."""
    data = reading.progress_data(progressed(reader("Dr. B", not_blind=1), earlier=2))
    (row,) = data.pop("readers")
    assert data == {"cohort": "dev", "of": 7, "labels": 20, "earlier": 2}
    assert row == {
        "reader": "Dr. B",
        "complete": 6,
        "begun": 1,
        "answers": 130,
        "other_guideline": 0,
        "last": "2026-03-01T12:00:00Z",
        "given": 7,
        "given_complete": 5,
        "shared": None,
        "not_blind": 1,
        "blind": False,
    }


def test_assignments_are_told_with_what_is_shared(capsys):
    """And whether the chances of a sample are kept."""
    plans = {
        name: ReadingPlan(
            reader=name,
            case_ids=cases,
            given_by="Ed",
            created="2026-03-01T12:00:00Z",
            guideline=None,
            chances=chances,
        )
        for name, cases, chances in (
            ("Dr. A", ("c1", "c2", "c3"), ()),
            ("Dr. B", ("c2",), (0.5,)),
        )
    }
    reading.say_plans("dev", plans)
    assert capsys.readouterr().out == (
        "Dr. A: 3 cases of dev, 1 of them given to another reader as well\n"
        "Dr. B: 1 case of dev, 1 of them given to another reader as well; of a value "
        "sample, their chances kept\n"
        "everybody else reads all cases; answers given before are kept and count\n"
        "next: ranloop reading progress dev\n"
    )
    reading.say_plans("dev", {})
    assert capsys.readouterr().out == (
        "no cases are assigned in dev: every reader reads all\n"
    )


def test_published_readings_are_told_by_name_or_pseudonym(capsys):
    """A reader who is published under a pseudonym only stays one reader."""
    told = {"complete": 1, "begun": 2, "guidelines": ("ab", "cd")}
    made = Published(
        votes=voted(),
        readers=(
            PublishedReader(reader="Dr. A", published_as="Dr. A", blind=True, **told),
            PublishedReader(
                reader="Dr. B", published_as="reader-1", blind=False, **told
            ),
        ),
    )
    say_votes(made.votes)
    votes = capsys.readouterr().out
    readers = (
        "Dr. A: 1 complete case published, 2 begun and left out; guideline ab, cd\n"
        "one reader as reader-1: 1 complete case published, 2 begun and left out; NOT "
        "BLIND; guideline ab, cd\n"
    )
    reading.say_published(made)
    assert capsys.readouterr().out == (
        readers + votes + "next: ranloop agreement dev\n"
    )
    reading.say_published(made, dry_run=True)
    assert capsys.readouterr().out == (
        "dry run: nothing was changed; this is what publishing would make\n"
        + readers
        + votes
        + "next: ranloop reading publish dev --why REASON --expect "
        + f"{made.votes.digest}\n"
    )
    assert reading.published_data(made)["readers"] == [
        {
            "reader": name,
            "complete": 1,
            "begun": 2,
            "blind": blind,
            "guidelines": ["ab", "cd"],
        }
        for name, blind in (("Dr. A", True), ("reader-1", False))
    ]


def test_disputes_are_listed_with_votes_and_marks(capsys):
    """What a panel decided is said; without any there is nothing to adjudicate."""
    counts = {Value.PRESENT: 1, Value.ABSENT: 2, Value.UNCERTAIN: 0}
    rows = tuple(
        Dispute(
            case_id=case,
            label="edema",
            counts=counts,
            not_voted=0,
            ballots=(),
            votes_say=Mark.ABSENT,
            mark=mark,
            decided=decided,
        )
        for case, mark, decided in (
            ("c1", Mark.ABSENT, False),
            ("c2", Mark.PRESENT, True),
        )
    )
    found = Disputes(
        cohort="dev",
        reference=3,
        readers=3,
        rule=MajorityRule(need=2),
        pairs=1,
        rows=rows,
    )
    reading.say_disputes(found)
    assert capsys.readouterr().out == (
        "dev, reference v3: 2 disputes in 1 pair of 3 readers, 1 open\n"
        "a majority needs over half of the readers who voted on the case and label, at "
        "least 2 equal votes\n"
        "case  label  present  absent  uncertain   votes        reference\n"
        "----  -----  -------  ------  ---------  ------  ---------------\n"
        "c1    edema        1       2          0  absent           absent\n"
        "c2    edema        1       2          0  absent  present (panel)\n"
        "next: ranloop reading adjudicate dev FILE --why REASON\n"
    )
    data = reading.disputes_data(found)
    assert (data["need"], data["open"], len(data["rows"])) == (2, 1, 2)
    assert data["majority"] == found.rule.words
    assert data["rows"][1]["decided"] is True
    reading.say_disputes(replace(found, rows=()))
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("own", "more"),
    [
        (0, ""),
        (2, "  2 of them on pairs that the adjudicator had voted on: recorded\n"),
    ],
)
def test_what_became_of_decisions_is_told(capsys, own, more):
    """Own pairs are allowed, and said."""
    made = Adjudicated(cohort="dev", reference=4, decided=3, changed=1, own=own, open=5)
    reading.say_adjudicated(made)
    assert capsys.readouterr().out == (
        f"reference v4 of dev: 3 decisions, 1 mark changed, 5 disputes open\n{more}"
    )

"""The verb ``matrix``, over small engines that answer from a table."""

import csv
import io
import json

import pytest
import typer
from typer.testing import CliRunner

from loop.cli import matrix
from loop.core.errors import DataError, EngineError, UnknownEngineError
from loop.core.ledger import Actor, read_ledger
from loop.core.records import Completion
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import read_version, write_version
from loop.run.store import open_store

SECRET = "zebra"
CASES = 60
asked = []


class TableEngine:
    """Answers edema for the cases its name gives; ``dead`` breaks after so many."""

    def __init__(self, name, settings):
        """Take what a factory is given; ``table:12`` misses the first 12 positives."""
        self.name, self.settings = name, settings
        if name == "refused":
            raise EngineError("this engine is not available. Install it.")

    def identity(self):
        """Return the name: tables with one name are the same engine."""
        return {"engine": "table", "name": self.name}

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            number = int(prompt.item.id[1:])
            if self.name == "dead" and index == 20:
                raise EngineError("the server died.\nStart it again.")
            asked.append((self.name, number))
            yield index, self._answer(prompt, number)

    def _answer(self, prompt, number):
        if self.name == "mute":
            return Completion("", "error", "HTTP 503 after 7 attempts")
        answer = {name: {"value": "absent"} for name in prompt.frame.fields}
        missed = int(self.name) if self.name.isdigit() else 0
        if missed <= number < 20:
            answer["edema"] = {"value": "present", "evidence": "edema"}
        return Completion(json.dumps(answer))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """Register the engine ``table`` for one test."""
    asked.clear()
    monkeypatch.setitem(base._FACTORIES, "table", TableEngine)


@pytest.fixture
def place(workspace, tmp_path):
    """Return a workspace with a cohort of 60 cases, 20 of them with edema."""
    with (tmp_path / "dev.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case_id", "text", "edema"])
        for number in range(CASES):
            finding = "Pulmonary edema" if number < 20 else "No finding"
            writer.writerow(
                [f"c{number}", f"{finding}, {SECRET} {number}.", int(number < 20)]
            )
    options = ImportOptions(name="dev", role="dev", source="test", licence="-")
    import_cohort(workspace, tmp_path / "dev.csv", options, actor=Actor(name="t"))
    return workspace


@pytest.fixture
def call(place):
    """Return a function that calls the verb in the workspace."""
    app = typer.Typer()
    matrix.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [*arguments, "-w", str(place.root)])

    return run


def ask(*engines):
    """Return the arguments that ask `engines`."""
    named = [word for engine in engines for word in ("--engine", engine)]
    return ["extractor", "--cohort", "dev", *named]


def edema(data):
    """Return the cells of edema."""
    return next(row for row in data["labels"] if row["label"] == "edema")["cells"]


def test_two_engines_stand_side_by_side(call):
    """One misses 12 of 20 positives; the other is best, and shown to be."""
    result = call(*ask("table:0", "table:12"))
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith("Edema"))
    assert row.split() == ["Edema", "20", "*1.000", ".940-1.00", "0.800", ".677-.892"]
    assert "  A  table:0  2" in result.stdout and "  B  table:12  2" in result.stdout
    assert "not a claim of significance" in " ".join(result.stdout.split())
    assert SECRET not in result.output


def test_four_engines_fit_100_columns(call):
    """The table is read on a laptop and in a mail."""
    result = call(*ask(*(f"table:{number}" for number in (0, 3, 7, 12))))
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    row = next(line for line in lines if line.startswith("Edema"))
    assert row.split()[2::2] == ["*1.000", "~0.950", "0.883", "0.800"]
    assert any(line.startswith("Calcification (Lung…  ") for line in lines)


def test_json_is_one_object(call):
    """Progress and documents do not get in its way."""
    result = call(*ask("table:0", "table:12"), "--json")
    data = json.loads(result.stdout)
    assert [engine["engine"] for engine in data["engines"]] == ["table:0", "table:12"]
    best, other = edema(data)
    assert (best["correct"], best["n"], best["standing"]) == (60, 60, "best")
    assert (other["correct"], other["standing"]) == (48, "worse")
    assert other["against_best"]["lost"] == 12
    assert data["cases"] == CASES


def test_stored_answers_are_not_asked_again(call):
    """A further engine costs only its own answers."""
    call(*ask("table:0", "table:12"))
    asked.clear()
    result = call(*ask("table:0", "table:5", "table:12"))
    assert result.exit_code == 0, result.output
    assert {name for name, _ in asked} == {"5"} and len(asked) == CASES
    assert "60 from the store" in result.stderr
    assert "asking table:5" in result.stderr


def test_an_engine_that_dies_does_not_lose_the_others(call):
    """Its column says why; the exit code says that something is missing."""
    result = call(*ask("table:0", "table:dead", "table:12"), "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert [engine["failure"] for engine in data["engines"]] == [
        None,
        "the server died. Start it again.",
        None,
    ]
    cells = edema(data)
    assert cells[1] is None
    assert (cells[0]["standing"], cells[2]["standing"]) == ("best", "worse")
    shown = call(*ask("table:0", "table:dead"))
    assert "B  table:dead  no run: the server died. Start it again." in shown.stdout


def test_an_engine_that_is_not_available_is_a_column_too(call):
    """Found before anything is asked, and no reason to ask nothing."""
    result = call(*ask("table:refused", "table:0"))
    assert result.exit_code == 1
    assert "no run: this engine is not available. Install it." in result.stdout
    assert "B  table:0  2" in result.stdout


def test_an_engine_that_answers_nothing_has_no_accuracy(call):
    """Sixty failed cases are sixty failures, not sixty absents."""
    result = call(*ask("table:0", "table:mute"), "--json")
    data = json.loads(result.stdout)
    assert data["engines"][1]["outcomes"]["engine_failed"] == CASES
    assert edema(data)[1]["accuracy"] is None
    assert result.exit_code == 0


def test_nothing_but_failures_is_an_error(call):
    """There is no table to show; every reason is told."""
    result = call(*ask("table:dead", "table:refused"))
    assert isinstance(result.exception, EngineError)
    assert "the server died" in str(result.exception)
    assert "not available" in str(result.exception)


def test_a_password_in_an_engines_name_stands_nowhere(call):
    """Its column has the reason, and documents are passed on."""
    name = "openai:m@http://me:hunter2@127.0.0.1:1/v1"
    result = call(*ask("table:0", name), "--json")
    assert "holds a user name or a password" in result.stdout
    assert "hunter2" not in result.output


def test_an_unknown_engine_is_told_before_anything_is_asked(call):
    """A slip of the pen costs nothing."""
    result = call(*ask("table:0", "tabel:1"))
    assert isinstance(result.exception, UnknownEngineError)
    assert asked == []


def test_finished_runs_are_taken_by_name(call, place):
    """Without asking anything; ``latest`` is what it was before new runs."""
    call(*ask("table:0", "table:12"))
    with open_store(place) as store:
        ids = [run.id for run in store.find_runs(finished=True)]
    asked.clear()
    result = call(*(word for one in ids for word in ("--run", one)), "--json")
    data = json.loads(result.stdout)
    assert sorted(engine["run"] for engine in data["engines"]) == sorted(ids)
    mixed = call(*ask("table:5"), "--run", "latest:extractor", "--json")
    engines = [engine["engine"] for engine in json.loads(mixed.stdout)["engines"]]
    assert engines[0] == "table:5" and engines[1] in ("table:0", "table:12")
    assert {name for name, _ in asked} == {"5"}


def test_a_limit_holds_for_every_engine(call):
    """And the caveat stands on the result."""
    result = call(*ask("table:0", "table:12"), "--limit", "30", "--json")
    data = json.loads(result.stdout)
    assert data["cases"] == 30 and len(asked) == 60
    assert any("this run lacks 30 cases" in text for text in data["notes"])


def test_a_run_of_another_version_is_refused_before_anything_is_asked(call, place):
    """Hours of asking must not end in a refusal."""
    call(*ask("table:0"))
    version = read_version(place, "extractor@v1")
    write_version(place, version.__class__(**{
        **{f: getattr(version, f) for f in version.__dataclass_fields__},
        "name": "other", "system": "Read again.\n",
    }))  # fmt: skip
    asked.clear()
    result = call("other", "-c", "dev", "-e", "table:5", "--run", "latest:extractor")
    assert isinstance(result.exception, DataError)
    assert "another prompt version" in str(result.exception)
    assert asked == []


def test_a_missing_reference_is_told_before_anything_is_asked(call):
    """There would be nothing to score against."""
    result = call(*ask("table:0"), "--reference", "9")
    assert isinstance(result.exception, DataError)
    assert "no reference v9" in str(result.exception)
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name engines with --engine"),
        (("extractor", "-e", "table:0"), "--cohort"),
        (("-c", "dev", "-e", "table:0"), "prompt version"),
        (("extractor", "-c", "dev", "-e", "table:0", "-e", "table:0"), "twice"),
        (
            ("extractor", "-c", "dev", "-e", "table:0", "--thinking", "low"),
            "--thinking is for judges: leave it out",
        ),
    ],
)
def test_wrong_usage_is_explained(call, arguments, says):
    """Exit code 2, and what to write instead."""
    result = call(*arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())


def test_documents_are_written_without_case_text(call, place, tmp_path):
    """HTML, Markdown and CSV; never into the workspace's own folders."""
    paths = [tmp_path / name for name in ("m.html", "m.md", "m.csv")]
    options = [f"--{path.suffix[1:]}={path}" for path in paths]
    result = call(*ask("table:0", "table:12"), *options)
    assert result.exit_code == 0, result.output
    for path in paths:
        text = path.read_text()
        assert "Edema" in text and "table:12" in text
        assert SECRET not in text
    rows = list(csv.DictReader(io.StringIO(paths[2].read_text())))
    assert len(rows) == 42
    asked.clear()
    inside = call(*ask("table:9"), "--html", str(place.prompts / "m.html"))
    assert isinstance(inside.exception, DataError)
    assert asked == []


def test_hostile_engine_names_stay_text(call, tmp_path):
    """Control characters of a name are spelled out; markup stays text."""
    nasty = "table:\x1b[31m<script>alert(1)</script>"
    paths = [tmp_path / name for name in ("m.html", "m.md", "m.csv")]
    options = [f"--{path.suffix[1:]}={path}" for path in paths]
    result = call(*ask("table:0", nasty), *options)
    assert result.exit_code == 0, result.output
    for text in (result.output, *(path.read_text() for path in paths)):
        assert "\x1b" not in text and "x1b" in text
    assert "<script" not in paths[0].read_text() + paths[1].read_text()


def test_only_the_protocol_goes_into_the_ledger(call, place):
    """A matrix shows gates; `evaluate` decides them."""
    call(*ask("table:0", "table:12"), "--actor", "Dr A")
    entries = [entry for entry in read_ledger(place.ledger)]
    assert entries[-1].action == "protocol_set" and entries[-1].actor == "Dr A"
    assert not any(e.action in ("evaluated", "gate_decided") for e in entries)
    told = call("--run", "latest", "--json")
    assert not any("registered after" in n for n in json.loads(told.stdout)["notes"])

"""A corpus in shards: the same values as a run, whatever is killed or wrong."""

import csv
import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import ConflictError, DataError, EngineError, WriteError
from loop.core.files import locked
from loop.core.ledger import Actor
from loop.core.paths import material
from loop.core.records import Completion
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.importing.table_files import open_table
from loop.release import annotation, ray_makers
from loop.release.annotation import (
    AnnotationOptions,
    annotate_corpus,
    estimate_annotation,
)
from loop.release.label import label
from loop.release.load import find_request
from loop.release.shard_makers import AnnotationRequest, ShardProcesses, ShardRows
from loop.run.asking import EngineOptions, load_engine
from loop.run.label_table import write_labels
from loop.run.shards import (
    CorpusRow,
    compare_annotations,
    read_manifest_of,
    shard_name,
)
from loop.run.task import prepare_run, run_task

RELEASE = "extractor-v11"
FINDINGS = (
    "Small left pleural effusion. No pneumothorax.",
    "The heart is enlarged. Lungs are clear.",
    "Possible pneumonia in the right lower lobe.",
    "No acute cardiopulmonary abnormality.",
)


def rows(number):
    """Return rows of a table; the fifth of every ten has no text."""
    return [
        (f"c{place}", "" if place % 10 == 4 else f"{FINDINGS[place % 4]} Case {place}.")
        for place in range(number)
    ]


def write(path, made, header=("id", "text")):
    """Write a table and return its path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *made])
    return path


@pytest.fixture
def source(tmp_path):
    """Write a table of 40 reports."""
    return write(tmp_path / "reports.csv", rows(40))


def request(**changes):
    """Return the shipped release, asked of its engine."""
    return find_request(material(None), release=RELEASE, **changes)


def annotate(source, out, **changes):
    """Annotate in shards of ten rows."""
    options = AnnotationOptions(**({"rows": 10} | changes))
    return annotate_corpus(source, out, request(), options=options)


def table(folder):
    """Return all rows of an annotation."""
    manifest = read_manifest_of(folder)
    return [
        row
        for shard in manifest.shards
        for row in pq.read_table(folder / shard.file).to_pylist()
    ]


def run_cli(*arguments):
    """Run the verb."""
    return CliRunner().invoke(app, ["annotate", *map(str, arguments)])


def test_the_values_are_those_of_a_run_and_of_label(workspace, source, tmp_path):
    """Cell by cell, with "No Finding" derived alike; an empty text is no answer."""
    done = annotate(source, tmp_path / "out")
    assert (done.made, len(done.manifest.shards)) == (4, 4)
    assert done.manifest.statuses == {"answered": 36, "no_text": 4}
    found = table(tmp_path / "out")
    assert [one["case_id"] for one in found] == [f"c{n}" for n in range(40)]
    told = label(dict(rows(40)), release=RELEASE)
    for row in found:
        want = told.loc[row["case_id"]]
        assert row["status"] == want["status"]
        for name in done.manifest.plan.columns:
            value = want[name]
            assert row[name] == (None if value != value else value), (
                row["case_id"],
                name,
            )
    spoken = write(tmp_path / "spoken.csv", [row for row in rows(40) if row[1]])
    options = ImportOptions(name="spoken", role="dev", source="made up", licence="-")
    import_cohort(workspace, spoken, options, actor=Actor(name="Ann"))
    task = prepare_run(workspace, request().prompt, "spoken")
    summary = run_task(workspace, task)
    written = write_labels(workspace, tmp_path / "run.parquet", summary.run_id)
    of_run = pq.read_table(written.path).to_pylist()
    names = ("case_id", "status", *done.manifest.plan.columns)
    spoken_rows = [one for one in found if one["status"] != "no_text"]
    assert [[one[n] for n in names] for one in spoken_rows] == [
        [one[n] for n in names] for one in of_run
    ]


def test_evidence_points_into_the_text_and_no_text_is_kept_unless_asked(
    source, tmp_path
):
    """Places of characters, which say nothing without the reports."""
    annotate(source, tmp_path / "bare")
    annotate(source, tmp_path / "with", text=True)
    bare, full = table(tmp_path / "bare"), table(tmp_path / "with")
    assert "text" not in bare[0]
    cited = 0
    for one, other in zip(bare, full, strict=True):
        assert one["evidence"] == other["evidence"]
        for span in one["evidence"]:
            cited += 1
            assert other["text"][span["start"] : span["end"]].strip()
    assert cited > 30
    assert "Case" in str(full) and "Case" not in str(bare)
    for path in (tmp_path / "bare").iterdir():
        assert b"Case" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_two_processes_say_the_same_as_one(source, tmp_path):
    """And need not write shards in their order."""
    annotate(source, tmp_path / "one")
    done = annotate(source, tmp_path / "two", workers=2)
    assert done.made == 4
    assert table(tmp_path / "one") == table(tmp_path / "two")
    found = compare_annotations(tmp_path / "one", tmp_path / "two")
    assert (found.rows, found.differing, found.labels) == (40, 0, ())


def test_a_second_call_makes_what_is_missing_and_nothing_else(source, tmp_path):
    """Whatever was lost or torn."""
    out = tmp_path / "out"
    annotate(source, out)
    before = {one.name: one.read_bytes() for one in out.iterdir()}
    assert annotate(source, out).made == 0
    (out / shard_name(2)).unlink()
    (out / f".{shard_name(2)}.123").write_bytes(b"torn")
    (out / "_SUCCESS").unlink()
    assert annotate(source, out).made == 1
    assert {one.name: one.read_bytes() for one in out.iterdir()} == before


def test_ids_that_several_rows_have_are_named_and_every_row_is_kept(tmp_path):
    """Nothing is merged, and nothing dropped."""
    made = [*rows(25), ("c3", "Cardiomegaly."), ("c7", "Cardiomegaly."), ("c3", "")]
    done = annotate(write(tmp_path / "twice.csv", made), tmp_path / "out")
    assert done.manifest.rows == 28
    assert done.manifest.repeated.ids == 2
    assert done.manifest.repeated.examples == ("c3", "c7")


class Failing:
    """The engine `rules`, but for reports of some cases; it may die after others."""

    def __init__(self, inner, dies_after=None):
        self.inner, self.dies_after, self.asked = inner, dies_after, Counter()

    def identity(self):
        """Return an identity that no other engine has."""
        return {"engine": "failing"}

    def complete(self, prompts):
        """Answer as `rules` do."""

        def counted():
            for one in prompts:
                if (
                    self.dies_after is not None
                    and self.asked.total() >= self.dies_after
                ):
                    raise EngineError("the server is gone. Start it.")
                self.asked[one.item.id] += 1
                yield one

        yield from self.inner.complete(counted())


@pytest.fixture
def failing(monkeypatch, workspace):
    """Register the engine ``failing``, and return the one that is made."""
    made = []

    def factory(name, settings):
        made.append(Failing(load_engine("rules", settings)))
        made[-1].dies_after = deaths.pop(0) if deaths else None
        return made[-1]

    deaths = []
    monkeypatch.setitem(base._FACTORIES, "failing", factory)
    return made, deaths


def test_a_model_that_died_is_not_asked_twice(failing, source, tmp_path):
    """Answers are kept in the folder until all shards are there, and then go."""
    made, deaths = failing
    deaths.append(25)
    out = tmp_path / "out"
    given = request(engine="failing")
    options = AnnotationOptions(rows=20)
    with pytest.raises(EngineError, match="the server is gone"):
        annotate_corpus(source, out, given, options=options)
    assert (out / shard_name(0)).is_file() and not (out / "_SUCCESS").exists()
    assert (out / ".answers").is_dir()
    with pytest.raises(DataError, match="is not complete"):
        read_manifest_of(out)
    done = annotate_corpus(source, out, given, options=options)
    # Opened once a call: a server of ours is not started twice.
    assert len(made) == 2
    asked = sum((one.asked for one in made), Counter())
    assert asked.total() == 36 and set(asked.values()) == {1}
    assert done.made == 1 and not (out / ".answers").exists()
    assert done.manifest.statuses == {"answered": 36, "no_text": 4}
    with pytest.raises(DataError, match="Several processes are for"):
        annotate_corpus(source, out, given, options=replace(options, workers=2))


def test_rows_without_an_answer_are_counted_and_named(monkeypatch, source, tmp_path):
    """Never as absent."""

    class Odd:
        def __init__(self, name, settings):
            """Take what a factory is given."""

        def identity(self):
            """Return who it is."""
            return {"engine": "odd"}

        def complete(self, prompts):
            """Fail, or write what nobody can read."""
            for index, _ in enumerate(prompts):
                if index % 2:
                    yield index, Completion("", "error", "HTTP 503 after 7 attempts")
                else:
                    yield index, Completion("I cannot help.")

    monkeypatch.setitem(base._FACTORIES, "odd", Odd)
    done = annotate_corpus(
        source,
        tmp_path / "out",
        request(engine="odd"),
        options=AnnotationOptions(rows=100),
    )
    told = done.manifest
    assert told.statuses == {"engine_failed": 18, "no_text": 4, "unparsed": 18}
    assert told.problems["HTTP 503 after 7 attempts"] == 18
    assert sum(told.problems.values()) == 36
    assert len(told.failed) == 20 and told.failed[0] == "c0"
    assert told.labels["Pneumothorax"] == {"blank": 40}
    # As of a run in which nothing was answered.
    again = run_cli(source, "--release", RELEASE, "-e", "odd", "--out", tmp_path / "o")
    assert again.exit_code == 1 and "18 rows without an answer" in again.output
    first = ", ".join(told.failed[:5])
    assert f"note: ids of these rows: {first} and 31 more" in again.output
    german = write(tmp_path / "de.csv", [("k1", "Kein Erguss."), ("k2", "Effusion.")])
    one = run_cli(german, "--release", RELEASE, "--out", tmp_path / "de")
    assert "1 row without an answer: no cues for language 'de'" in one.output
    # The texts are in no cohort here.
    assert "or name the right --language\nnote: ids of these rows: k1\n" in one.output


def test_a_shard_that_was_changed_is_never_counted_as_made(source, tmp_path):
    """A second call does not write its new digest into the manifest."""
    out = tmp_path / "out"
    annotate(source, out)
    shard = out / shard_name(1)
    whole, made = shard.read_bytes(), pq.read_table(shard)
    pq.write_table(made.set_column(0, "case_id", made["case_id"]), shard)
    with pytest.raises(DataError, match=r"part-00001.parquet was changed. Remove it"):
        annotate(source, out)
    with pytest.raises(DataError, match=r"part-00001.parquet was changed. Remove it"):
        open_table(out)
    shard.unlink()
    with pytest.raises(DataError, match=r"part-00001.parquet is missing. Give the"):
        open_table(out)
    assert annotate(source, out).made == 1
    assert shard.read_bytes() == whole
    assert len(list(open_table(out).read(["case_id"]))) == 40


def claim_edema(shard):
    """Write a shard that says edema of every row, and is of the same rows and plan."""
    made = pq.read_table(shard)
    place = made.column_names.index("Edema")
    field = made.schema.field(place)
    false = pa.array(["present"] * made.num_rows, pa.string()).cast(field.type)
    pq.write_table(made.set_column(place, field, false), shard)


def test_a_changed_shard_is_refused_as_often_as_the_command_is_given(source, tmp_path):
    """Also while another one is missing: its digest is known until it is removed."""
    out = tmp_path / "out"
    annotate(source, out)
    claim_edema(out / shard_name(0))
    (out / shard_name(1)).unlink()
    for _ in range(2):
        with pytest.raises(DataError, match=r"part-00000.parquet was changed. Remove"):
            annotate(source, out)
    (out / shard_name(0)).unlink()
    assert annotate(source, out).made == 2
    assert "present" not in {one["Edema"] for one in table(out)}


def test_a_source_that_changes_while_it_is_read_is_told(monkeypatch, source, tmp_path):
    """Also where it has as many rows as before: the digest would be of others."""
    real = annotation.measure_source

    def measured(*given):
        found = real(*given)
        write(source, [*rows(39), ("c39", "Cardiomegaly.")])
        return found

    monkeypatch.setattr(annotation, "measure_source", measured)
    with pytest.raises(DataError, match="was changed while it was read"):
        annotate(source, tmp_path / "out")
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_where_the_engine_failed_the_same_command_asks_again(
    monkeypatch, source, tmp_path
):
    """For these rows and no other; while they are made the rest is not complete."""
    asked = Counter()

    class Weak:
        def __init__(self, name, settings):
            self.inner = load_engine("rules", settings)

        def identity(self):
            """Return who it is."""
            return {"engine": "weak"}

        def complete(self, prompts):
            """Fail for two cases, the first time."""
            given = list(prompts)
            for index, made in self.inner.complete(given):
                name = given[index].item.id
                asked[name] += 1
                if name in ("c3", "c21") and asked[name] == 1:
                    made = Completion("", "error", "HTTP 503 after 7 attempts")
                yield index, made

    monkeypatch.setitem(base._FACTORIES, "weak", Weak)
    out = tmp_path / "out"
    first = run_cli(
        *(source, "--release", RELEASE, "-e", "weak", "--out", out, "--rows", 10)
    )
    assert first.exit_code == 0, first.output
    assert "the same command asks once more where the engine failed" in first.output
    assert read_manifest_of(out).statuses["engine_failed"] == 2
    given, options = request(engine="weak"), AnnotationOptions(rows=10)
    # What the others say is taken over, so it has to be what was read.
    shard = out / shard_name(0)
    whole = shard.read_bytes()
    claim_edema(shard)
    with pytest.raises(DataError, match=r"part-00000.parquet was changed"):
        annotate_corpus(source, out, given, options=options)
    shard.write_bytes(whole)
    done = annotate_corpus(source, out, given, options=options)
    assert done.made == 2
    assert done.manifest.statuses == {"answered": 36, "no_text": 4}
    assert {name for name, n in asked.items() if n > 1} == {"c3", "c21"}
    assert asked.total() == 38 and not (out / ".answers").exists()
    assert annotate_corpus(source, out, given, options=options).made == 0


def test_what_is_in_the_folder_is_never_mixed(source, tmp_path):
    """Other rows, another release, other files, another process: refused."""
    out = tmp_path / "out"
    annotate(source, out)
    before = {one.name: one.read_bytes() for one in out.iterdir()}
    other = write(source, [*rows(39), ("c39", "Cardiomegaly.")])
    with pytest.raises(DataError, match="made of other rows"):
        annotate(other, out)
    fewer = write(source, rows(30))
    with pytest.raises(DataError, match="made of rows that the source no longer has"):
        annotate(fewer, out)
    write(source, rows(40))
    older = find_request(material(None), release="extractor-v7")
    with pytest.raises(DataError, match=r"with another prompt, release: it was"):
        annotate_corpus(source, out, older, options=AnnotationOptions(rows=10))
    with pytest.raises(DataError, match=r"another number of --rows: .* --rows 10, "):
        annotate(source, out, rows=20)
    with pytest.raises(DataError, match=r"choice of --with-text: .* without --with"):
        annotate(source, out, text=True)
    with (
        locked(out / ".lock", wait=False),
        pytest.raises(ConflictError, match="another process annotates into"),
    ):
        annotate(source, out)
    assert {one.name: one.read_bytes() for one in out.iterdir()} == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="holds no annotation; it was left as it is"):
        annotate(source, tmp_path / "full")
    foreign = tmp_path / "foreign"
    annotate(source, foreign, text=True)
    (out / shard_name(0)).write_bytes((foreign / shard_name(0)).read_bytes())
    with pytest.raises(DataError, match="is of another annotation"):
        annotate(source, out)
    (out / shard_name(0)).write_bytes(b"no parquet")
    with pytest.raises(DataError, match="cannot be read as a shard"):
        annotate(source, out)


def test_a_command_that_meets_the_lock_writes_no_plan(source, tmp_path):
    """Of two that begin with different plans, the one that runs writes its own."""
    out = tmp_path / "out"
    out.mkdir()
    # The other process holds the lock, and is about to write its plan.
    (out / "._annotation.json.1a2b").write_text("{")
    with (
        locked(out / ".lock", wait=False),
        pytest.raises(ConflictError, match="another process annotates into"),
    ):
        annotate(source, out)
    assert not (out / "_annotation.json").exists()
    assert annotate(source, out).made == 4


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"text": "zebra"}'], "id"),
        (['{"id": "", "text": "zebra"}'], "line 51: the row has no id"),
        (
            ['{"id": "A zebra stands in the lung", "text": "zebra"}'],
            "line 51: the case id is a text of 26 characters",
        ),
        (
            ['{"id": "\\u001b[2Jzebra", "text": "zebra"}'],
            "line 51: the case id .* control character",
        ),
        (['{"id": "' + "z" * 201 + '", "text": "zebra"}'], "line 51: .* longer than"),
        (['{"id": "a", "text": "' + "zebra " * 2_000_000 + '"}'], "characters|long"),
        (["zebra"], "line 51"),
        ([], "holds no report|is empty|no "),
    ],
)
def test_a_row_that_cannot_be_used_is_named_before_anything_is_made(
    tmp_path, lines, words
):
    """Without its text, and after a thousand good ones, too."""
    good = [
        json.dumps({"id": f"g{n}", "text": "Clear lungs."}) for n in range(50) if lines
    ]
    path = tmp_path / "reports.jsonl"
    path.write_text("\n".join([*good, *lines]), encoding="utf-8")
    with pytest.raises(
        DataError, match=words if lines != ["zebra"] else "line 51"
    ) as no:
        annotate(path, tmp_path / "out")
    assert "zebra" not in str(no.value)
    assert not (tmp_path / "out").exists()


def test_a_language_is_read_as_in_a_cohort(tmp_path):
    """With its country, and in capitals; what is no code is refused by its line."""
    made = [("a", "Left effusion.", "EN-us"), ("b", "少量胸腔积液。", "zh_CN")]
    source = write(tmp_path / "reports.csv", made, ("id", "text", "language"))
    done = annotate(source, tmp_path / "out")
    assert done.manifest.statuses == {"answered": 2}
    assert [one["Pleural Effusion"] for one in table(tmp_path / "out")] == [
        "present",
        "present",
    ]
    write(source, [*made, ("c", "Clear.", "english")], ("id", "text", "language"))
    with pytest.raises(DataError, match="line 4: 'english' is not a language code"):
        annotate(source, tmp_path / "other")


def test_an_encoding_may_be_named(tmp_path):
    """As the message about a file in another one says."""
    path = tmp_path / "reports.csv"
    path.write_bytes("id,text\na,No effusion at the café.\n".encode("cp1252"))
    refused = run_cli(path, "--release", RELEASE, "--out", tmp_path / "out")
    assert "for `annotate`, `cohort import` and `score`" in str(refused.exception)
    done = run_cli(
        *(path, "--release", RELEASE, "--out", tmp_path / "out"),
        *("--encoding", "cp1252"),
    )
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("column", ["Edema", "Edeema", "labels"])
def test_labels_beside_a_report_are_of_no_concern(tmp_path, column):
    """Whatever they are: nothing is held against them."""
    made = [("a", "Left effusion.", "rather mild")]
    source = write(tmp_path / "reports.csv", made, ("id", "text", column))
    assert annotate(source, tmp_path / "out").manifest.statuses == {"answered": 1}
    told = {"id": "a", "text": "Left effusion.", column: {"Edeema": "mild"}}
    lines = write(tmp_path / "reports.jsonl", [])
    lines.write_text(json.dumps(told), encoding="utf-8")
    done = run_cli(lines, "--release", RELEASE, "--out", tmp_path / "lines")
    assert done.exit_code == 0, done.output


def test_half_a_surrogate_pair_is_a_question_mark(tmp_path):
    """In an id as in a text: neither ends the annotation."""
    path = tmp_path / "reports.jsonl"
    lines = [
        '{"id": "a\\ud800", "text": "Left effusion \\udc00."}',
        '{"id": "b", "text": "Left effusion."}',
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    annotate(path, tmp_path / "out", text=True)
    first, _ = table(tmp_path / "out")
    assert (first["case_id"], first["text"]) == ("a?", "Left effusion ?.")


def test_a_full_disk_leaves_no_half_shard(monkeypatch, source, tmp_path):
    """And the next call goes on."""
    out, real = tmp_path / "out", os.replace

    def full(written, target):
        if Path(target).name == shard_name(2):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(written, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(WriteError, match="No space left"):
        annotate(source, out)
    assert sorted(one.name for one in out.glob("*part*")) == [
        shard_name(0),
        shard_name(1),
    ]
    assert not list(out.glob(".part*"))
    monkeypatch.setattr(os, "replace", real)
    assert annotate(source, out).made == 2


COMMAND = """
import sys
from pathlib import Path
from loop.core.paths import material
from loop.release.annotation import AnnotationOptions, annotate_corpus
from loop.release.label import label
from loop.release.load import find_request
if __name__ == "__main__":
    source, out, workers = sys.argv[1:]
    request = find_request(material(None), release="extractor-v11")
    options = AnnotationOptions(rows=20, workers=int(workers))
    annotate_corpus(Path(source), Path(out), request, options=options)
"""


def start(folder, source, out, workers):
    """Start an annotation in a separate process, the leader of a group."""
    script = folder / "annotate.py"
    script.write_text(COMMAND)
    command = [sys.executable, str(script), str(source), str(out), str(workers)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def wait_for(out, number, process):
    """Return once so many shards are there, or the process ended."""
    until = time.monotonic() + 120
    while len(list(out.glob("part-*"))) < number and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.002)


def children(pid):
    """Return the processes that a process started."""
    found = []
    for task in os.listdir("/proc"):
        if task.isdecimal():
            try:
                told = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(told[1]) == pid:
                found.append(int(task))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers, points", [(1, (1,)), (2, (0, 1, 7, 35))], ids=["one", "two"]
)
def test_killed_at_any_point_it_goes_on_and_loses_nothing(tmp_path, workers, points):
    """The whole process, again and again, wherever it is; no worker outlives it."""
    source = write(tmp_path / "reports.csv", rows(1_000))
    whole = tmp_path / "whole"
    annotate(source, whole, rows=20)
    out, kills = tmp_path / "out", 0
    for shards in points:
        process = start(tmp_path, source, out, workers)
        wait_for(out, shards, process)
        mine = children(process.pid)
        process.kill()
        process.wait()
        kills += process.returncode == -signal.SIGKILL
        before = {one.name: one.stat().st_mtime_ns for one in out.glob("part-*")}
        for one in out.glob("part-*"):
            pq.read_table(one)
        until = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{one}") for one in mine):
            assert time.monotonic() < until, "a worker outlives its parent"
            time.sleep(0.05)
        known = {one.name: one.stat().st_mtime_ns for one in out.glob("part-*")}
        # What was there is not rebuilt.
        assert before.items() <= known.items()
        process.stdout.close()
        process.stderr.close()
    # On a busy machine the last one may come too late.
    assert kills >= max(1, len(points) - 1)
    kept = {one.name: one.stat().st_mtime_ns for one in out.glob("part-*")}
    done = annotate(source, out, rows=20)
    assert done.made == 50 - len(kept)
    for name, when in kept.items():
        assert (out / name).stat().st_mtime_ns == when
    assert compare_annotations(whole, out).differing == 0


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")
def test_workers_are_copies_unless_a_thread_could_hold_a_lock():
    """A copy has no other thread: a lock that one held would never be free in it."""
    script = """
import threading
from loop.release.shard_makers import _start_method
alone = _start_method()
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(alone, _start_method())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["fork", "spawn"]


@pytest.mark.slow
def test_a_killed_worker_is_told_and_what_was_made_stays(tmp_path):
    """The process says what to do next, and the same command does it."""
    source = write(tmp_path / "reports.csv", rows(2_000))
    out = tmp_path / "out"
    process = start(tmp_path, source, out, 2)
    wait_for(out, 5, process)
    workers = children(process.pid)
    assert len(workers) == 2
    os.kill(workers[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"a worker ended before its work" in said
    made = len(list(out.glob("part-*")))
    assert 5 <= made < 100
    assert annotate(source, out, rows=20).made == 100 - made


def test_a_worker_that_is_killed_is_no_fault_of_a_shard(tmp_path):
    """Whoever waits is told what ended, and what to do."""
    asked = AnnotationRequest(
        version=request().prompt,
        release=RELEASE,
        engine="rules",
        asking=EngineOptions(),
        workspace=None,
        text=False,
        rows=1,
    )
    with closing(asked.open()) as runner:
        plan = asked.plan(runner)

    def tasks():
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join()
        yield ShardRows(0, (CorpusRow("c0", FINDINGS[0], "en"),))

    with (
        ShardProcesses(asked, 1) as workers,
        pytest.raises(EngineError, match=r"^a worker ended before its work: .*again"),
    ):
        list(workers.make(plan, tmp_path, tasks()))
    assert not list(tmp_path.iterdir())


def test_rows_that_cannot_be_read_are_a_problem_of_no_shard():
    """The number tells the driver that the data is wrong, and not the engine."""

    def tasks():
        yield ShardRows(0, ())
        raise DataError("line 2 is wrong")

    first, last = (one.to_pylist() for one in ray_makers._read(tasks))
    assert [row["number"] for row in first] == [0]
    assert last == [{"number": -1, "content": b"", "problem": "line 2 is wrong"}]


def test_a_corpus_without_a_text_is_no_failure(tmp_path):
    """Nothing was asked, so nothing is without an answer."""
    source = write(tmp_path / "reports.csv", [("a", ""), ("b", " ")])
    done = run_cli(source, "--out", tmp_path / "out", "--release", RELEASE, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["rows"], told["statuses"]) == (2, {"no_text": 2})
    assert told["shards_made"] == 1


def test_other_programs_read_the_folder_as_one_table(source, tmp_path):
    """They pass over names that begin with an underscore or a dot."""
    annotate(source, tmp_path / "out", rows=15)
    whole = pq.read_table(tmp_path / "out")
    assert whole["case_id"].to_pylist() == [f"c{place}" for place in range(40)]


def test_two_annotations_are_compared_row_by_row(source, tmp_path):
    """With the values before and after; of other rows nothing is compared."""
    one, two = tmp_path / "one", tmp_path / "two"
    annotate(source, one)
    older = find_request(material(None), release="extractor-v7")
    annotate_corpus(source, two, older, options=AnnotationOptions(rows=15))
    found = compare_annotations(one, two)
    left, right = table(one), table(two)
    names = read_manifest_of(one).plan.columns
    changed = [
        (name, a["case_id"])
        for a, b in zip(left, right, strict=True)
        for name in names
        if a[name] != b[name]
    ]
    assert found.rows == 40
    assert sum(each.rows for each in found.labels) == len(changed)
    assert found.differing == len({case for _, case in changed})
    fewer = write(tmp_path / "fewer.csv", rows(30))
    annotate(fewer, tmp_path / "three")
    with pytest.raises(DataError, match="are of other rows"):
        compare_annotations(one, tmp_path / "three")
    shard = two / shard_name(0)
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DataError, match="was changed"):
        compare_annotations(one, two)
    manifest = one / "_annotation.json"
    manifest.write_text(manifest.read_text().replace("40", "41"))
    with pytest.raises(DataError, match="was changed"):
        read_manifest_of(one)


def test_a_dry_run_asks_nothing_and_counts(source, tmp_path):
    """Rows, requests, tokens, and hours at a stated throughput."""
    size, found = estimate_annotation(source, request(), options=AnnotationOptions())
    assert (size.rows, size.shards, found.cases) == (40, 1, 36)
    done = run_cli(
        *(source, "--release", RELEASE, "--dry-run", "--json"),
        *("-e", "vllm:Qwen/Qwen3-14B", "--tokens-per-second", 1000),
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["sent"], told["rows"], told["asked"]) == (0, 40, 36)
    assert told["gpu_hours"] == pytest.approx(
        (told["prompt_tokens"] + told["output_tokens"]) / 3_600_000
    )
    assert not (tmp_path / "out").exists()


def test_a_dry_run_counts_what_its_parameters_leave_of_an_answer(source):
    """The most tokens of an answer; thoughts are not counted, and that is said."""
    asked = (source, "--release", RELEASE, "--dry-run", "-e", "openai:m")
    plain, short, thinking = (
        json.loads(run_cli(*asked, "--json", *more).stdout)
        for more in ((), ("--max-tokens", 4), ("--thinking", "high"))
    )
    assert plain["output_tokens"] > short["output_tokens"] == 4 * short["requests"]
    assert plain["thinking"] is None
    assert thinking["thinking"].startswith("high: what the model thinks before its")
    assert thinking["thinking"] in run_cli(*asked, "--thinking", "high").output
    assert "thinking" not in run_cli(*asked, "--thinking", "none").output
    refused = run_cli(source, "--release", RELEASE, "--dry-run", "--thinking", "high")
    assert "does not think" in str(refused.exception)


def test_the_command_says_how_rows_ended_and_what_it_wrote(source, tmp_path):
    """Without a word of a report; the folder is read as labels."""
    out = tmp_path / "out"
    done = run_cli(source, "--release", RELEASE, "--out", out, "--rows", 10)
    assert done.exit_code == 0, done.output
    said = "40 rows of reports.csv by extractor-v11 with rules: 4 shards, 4 made now"
    assert said in done.output
    assert "effusion." not in done.output and "Case" not in done.output
    same = run_cli("--compare", out, out)
    assert same.exit_code == 0 and "40 the same, 0 different" in same.output
    scored = CliRunner().invoke(
        app, ["score", "--reference", str(out), "--candidate", f"m={out}", "--json"]
    )
    assert scored.exit_code == 0, scored.output
    drawn = (source, "--out", out, "--sample", tmp_path / "s.csv")
    for wrong in (
        [source],
        ["--out", out],
        [source, "--out", out, "--compare", out, out],
        # Nothing that is given does nothing.
        ["--compare", out, out, "--report", out],
        ["--compare", out, out, "--release", RELEASE],
        ["--report", out, "--cohort", "c", "--workers", 2],
        [source, "--out", out, "--size", 5],
        [source, "--out", out, "--cohort", "c"],
        [source, "--out", out, "--tokens-per-second", 5],
        [source, "--out", out, "--dry-run", "--sample", tmp_path / "s.csv"],
        [*drawn, "--release", RELEASE],
        [*drawn, "--engine", "openai:m", "--thinking", "high"],
        [*drawn, "--rows", 10],
        [*drawn, "--with-text"],
        [source, "--dry-run", "--out", out],
        [source, "--dry-run", "--workers", 2],
        [source, "--dry-run", "--ray", "local"],
        [source, "--dry-run", "--with-text"],
        [source, "--dry-run", "--allow-unconstrained"],
    ):
        assert run_cli(*wrong).exit_code == 2, wrong
    assert not (tmp_path / "s.csv").exists()
    read = run_cli(*drawn, "--size", 20, "--seed", 1, "--text-column", "text")
    assert read.exit_code == 0, read.output


def test_what_the_command_names_goes_before_what_a_release_was_asked_with(
    failing, source, tmp_path
):
    """And is in the plan; without it the release's own parameters are."""
    out = tmp_path / "out"
    asked = (source, "--release", RELEASE, "-e", "failing", "--out", out)
    done = run_cli(*asked, "--max-tokens", 77)
    assert done.exit_code == 0, done.output
    assert read_manifest_of(out).plan.parameters["max_tokens"] == 77
    other = run_cli(*asked)
    assert other.exit_code == 1 and "another setting of the engine" in str(
        other.exception
    )


@pytest.mark.parametrize("field", ["workers", "rows"])
def test_each_option_has_an_end_that_is_taken(field):
    """And the number beside it is refused, with what was given."""
    ends = {"workers": (1, annotation.MOST_WORKERS), "rows": (1, 10**6)}[field]
    for end in ends:
        assert getattr(AnnotationOptions(**{field: end}), field) == end
    beside = {"workers": (0, -1, annotation.MOST_WORKERS + 1), "rows": (0, -1)}[field]
    for wrong in beside:
        with pytest.raises(ValueError, match=rf"\D{wrong}$"):
            AnnotationOptions(**{field: wrong})

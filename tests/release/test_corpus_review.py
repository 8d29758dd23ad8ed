"""A sample of a corpus, read by people: what it says of all rows, and how surely."""

import csv
import json

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.records import Completion
from loop.engines import base
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.release import corpus_review
from loop.release.annotation import SAMPLE, AnnotationOptions, annotate_corpus
from loop.release.corpus_review import draw_sample, report_corpus
from loop.run.asking import load_engine
from loop.stats.intervals import Estimate, clopper_pearson
from loop.stats.weighted import weighted_share, weighted_sum
from tests.judge.scenes import call
from tests.release.test_annotation import annotate, request, rows, table, write

NAMES = ("Pleural Effusion", "Cardiomegaly", "Pneumonia", "Pneumothorax")
CODES = {0: "not_coded", 1: "not_coded", 2: "uncertain"}
"""What a reference says of the first rows of a sample."""


@pytest.fixture
def annotated(tmp_path):
    """Annotate 400 rows; return their file and the folder."""
    source = write(tmp_path / "reports.csv", rows(400))
    annotate(source, tmp_path / "out", rows=100)
    return source, tmp_path / "out"


def read_table(path):
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def label_sample(workspace, folder, drawn, tmp_path, wrong=(), name="check"):
    """Import a sample as a cohort whose readers say what the annotation says.

    But for the cases in `wrong`, of which they say the opposite of Pleural Effusion.
    """
    said = {one["case_id"]: one for one in table(folder)}
    made = [
        (
            one["case_id"],
            one["text"].removeprefix("'"),
            *(
                int(
                    (said[one["case_id"]][column] == "present")
                    is not (column == NAMES[0] and one["case_id"] in wrong)
                )
                for column in NAMES
            ),
        )
        for one in drawn
    ]
    path = write(tmp_path / "labelled.csv", made, ("case_id", "text", *NAMES))
    options = ImportOptions(name=name, role="external", source="made up", licence="-")
    import_cohort(workspace, path, options, actor=Actor(name="Ann"))


def test_rows_are_drawn_with_the_chances_that_are_kept(annotated, tmp_path):
    """Half evenly, half for the labels; the same seed draws the same rows."""
    source, folder = annotated
    drawn = draw_sample(folder, source, tmp_path / "s.csv", 100)
    told = json.loads((folder / SAMPLE).read_text())
    texts = read_table(tmp_path / "s.csv")
    assert drawn == len(texts) == len(told["rows"])
    assert 60 < drawn < 140
    ids = [f"c{one['row']}" for one in told["rows"]]
    assert ids == [one["case_id"] for one in told["rows"]]
    assert ids == [one["case_id"] for one in texts]
    given = dict(rows(400))
    assert all(one["text"].removeprefix("'") == given[one["case_id"]] for one in texts)
    assert all(given.values()) is False and all(one["text"] for one in texts)
    # All 360 rows with a text, and what each chance follows from.
    called = {name: 0 for name in table(folder)[0] if name[0].isupper()}
    said = {one["case_id"]: one for one in table(folder)}
    for one in said.values():
        for name in called:
            called[name] += one[name] == "present"
    there = [name for name, n in called.items() if n]
    for one in told["rows"]:
        more = [
            50 / len(there) / called[name]
            for name in there
            if said[one["case_id"]][name] == "present"
        ]
        assert one["chance"] == pytest.approx(min(1, 50 / 360 + max(more, default=0)))
    draw_sample(folder, source, tmp_path / "again.csv", 100)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "s.csv").read_bytes()
    kept = (folder / SAMPLE).read_bytes()
    with pytest.raises(DataError, match=r"drawn before.* Remove it first"):
        draw_sample(folder, source, tmp_path / "other.csv", 100, seed=1)
    assert not (tmp_path / "other.csv").exists()
    # What readers have begun with is not lost.
    assert (folder / SAMPLE).read_bytes() == kept
    (folder / SAMPLE).unlink()
    draw_sample(folder, source, tmp_path / "other.csv", 100, seed=1)
    assert (tmp_path / "other.csv").read_bytes() != (tmp_path / "s.csv").read_bytes()
    for path in (tmp_path / "s.csv", folder / SAMPLE):
        assert path.stat().st_mode & 0o077 == 0
    assert "Case" not in (folder / SAMPLE).read_text()


def test_every_drawn_row_has_a_unique_id(tmp_path):
    """Also where the source has an id that numbering makes."""
    made = [("a", "Edema."), ("a", "Pneumonia."), ("a#1", "Fracture."), ("b", "Edema.")]
    source, out = write(tmp_path / "reports.csv", made), tmp_path / "out"
    annotate(source, out)
    draw_sample(out, source, tmp_path / "s.csv", 100)
    ids = [one["case_id"] for one in read_table(tmp_path / "s.csv")]
    assert ids == ["a#2", "a#3", "a#1", "b"]


def test_a_sample_without_a_row_is_refused(monkeypatch, tmp_path):
    """A table that nobody can read says nothing, and the message says why it is so."""
    source = write(tmp_path / "reports.csv", [("a", ""), ("b", " ")])
    annotate(source, tmp_path / "out")
    with pytest.raises(DataError, match=r"none has a text\. .* with --text-column"):
        draw_sample(tmp_path / "out", source, tmp_path / "s.csv", 100)
    few = write(tmp_path / "few.csv", rows(400))
    annotate(few, tmp_path / "few")
    monkeypatch.setattr(corpus_review, "_number", lambda seed, digest, place: 0.99)
    with pytest.raises(DataError, match=r"by chance\. Give a larger --size"):
        draw_sample(tmp_path / "few", few, tmp_path / "s.csv", 2)
    assert not (tmp_path / "s.csv").exists()


def test_where_every_row_is_read_the_prevalence_is_the_truth(
    annotated, workspace, tmp_path
):
    """Exactly, and without a width."""
    source, folder = annotated
    drawn = draw_sample(folder, source, tmp_path / "s.csv", 100_000)
    assert drawn == 360
    texts = read_table(tmp_path / "s.csv")
    wrong = {one["case_id"] for one in texts[:25]}
    label_sample(workspace, folder, texts, tmp_path, wrong)
    found = report_corpus(workspace, folder, "check")
    assert (found.rows, found.drawn, found.missing) == (360, 360, 0)
    one = next(each for each in found.labels if each.label == NAMES[0])
    said = {row["case_id"]: row[NAMES[0]] == "present" for row in table(folder)}
    truth = [said[each["case_id"]] is not (each["case_id"] in wrong) for each in texts]
    assert one.prevalence.value == pytest.approx(sum(truth) / 360)
    assert one.prevalence.low == pytest.approx(one.prevalence.value)
    assert one.prevalence.high == pytest.approx(one.prevalence.value)
    assert sum(one.reviewed) == 360
    assert one.called / 360 != pytest.approx(one.prevalence.value)


def test_what_is_known_of_every_row_but_one_has_a_width(annotated, workspace, tmp_path):
    """A drawn row that nobody read may be either; the numbers of others stay exact."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 100_000)
    texts = read_table(tmp_path / "s.csv")
    label_sample(workspace, folder, texts[:-1], tmp_path)
    found = report_corpus(workspace, folder, "check")
    assert (found.drawn, found.missing) == (360, 1)
    for one in found.labels[:2]:
        assert one.prevalence.low <= one.prevalence.value <= one.prevalence.high
        assert one.prevalence.low < one.prevalence.high


def test_what_readers_left_open_widens_the_numbers_of_its_own_rows(
    annotated, workspace, tmp_path
):
    """Of the rows called present all is known, of the others all but one."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 100_000)
    said = {one["case_id"]: one[NAMES[0]] for one in table(folder)}
    texts = read_table(tmp_path / "s.csv")
    open_case = next(
        one["case_id"] for one in texts if said[one["case_id"]] != "present"
    )
    made = [
        (
            one["case_id"],
            one["text"].removeprefix("'"),
            "uncertain"
            if one["case_id"] == open_case
            else int(said[one["case_id"]] == "present"),
        )
        for one in texts
    ]
    path = write(tmp_path / "read.csv", made, ("case_id", "text", NAMES[0]))
    options = ImportOptions(name="check", role="external", source="-", licence="-")
    import_cohort(workspace, path, options, actor=Actor(name="Ann"))
    (one,) = report_corpus(workspace, folder, "check").labels
    assert (one.undecided, one.not_coded) == (1, 0)
    assert one.among_called == Estimate(1.0, 1.0, 1.0)
    assert one.among_others.value == one.among_others.low == 0
    assert one.among_others.high > 0


def test_a_report_of_other_cases_or_of_a_damaged_sample_is_refused(
    annotated, workspace, tmp_path
):
    """It says which: the cohort has none of the rows, or the file cannot be read."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 20)
    others = [("x1", "Clear lungs.", 0)]
    path = write(tmp_path / "others.csv", others, ("case_id", "text", NAMES[0]))
    options = ImportOptions(name="others", role="external", source="-", licence="-")
    import_cohort(workspace, path, options, actor=Actor(name="Ann"))
    with pytest.raises(DataError, match="others has none of the rows that were drawn"):
        report_corpus(workspace, folder, "others")
    for damaged in (b"{", b"\xff"):
        (folder / SAMPLE).write_bytes(damaged)
        with pytest.raises(DataError, match=r"_sample\.json cannot be read\. Restore"):
            report_corpus(workspace, folder, "others")
        with pytest.raises(DataError, match="is of a sample that was drawn before"):
            draw_sample(folder, source, tmp_path / "t.csv", 20)


def test_a_sample_corrects_what_the_annotation_has_wrong(
    annotated, workspace, tmp_path
):
    """In numbers of the drawn rows, by hand; what was not read is told."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 150, seed=4)
    told = json.loads((folder / SAMPLE).read_text())["rows"]
    texts = read_table(tmp_path / "s.csv")
    wrong = {one["case_id"] for one in texts[::7]}
    label_sample(workspace, folder, texts[:-3], tmp_path, wrong)
    found = report_corpus(workspace, folder, "check")
    assert found.missing == 3
    one = next(each for each in found.labels if each.label == NAMES[0])
    said = {row["case_id"]: row[NAMES[0]] == "present" for row in table(folder)}
    shares = []
    for kind in (True, False):
        weights = {
            each["case_id"]: 1 / each["chance"]
            for each in told[:-3]
            if said[each["case_id"]] is kind
        }
        hits = sum(w for case, w in weights.items() if kind is not (case in wrong))
        shares.append(hits / sum(weights.values()))
    assert one.among_called.value == pytest.approx(shares[0])
    assert one.among_others.value == pytest.approx(shares[1])
    part = one.called / 360
    assert one.prevalence.value == pytest.approx(
        part * shares[0] + (1 - part) * shares[1]
    )
    assert one.prevalence.low < one.prevalence.value < one.prevalence.high
    done = call(
        workspace, "annotate", "--report", folder, "--cohort", "check", "--json"
    )
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["labels"][0]["prevalence"].keys() == {"value", "low", "high", "note"}
    shown = call(workspace, "annotate", "--report", folder, "--cohort", "check")
    assert "3 drawn rows not in the cohort" in shown.output


def test_other_texts_under_the_same_ids_are_told(annotated, workspace, tmp_path):
    """Numbered rows have the same ids in every cohort."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 40)
    drawn = read_table(tmp_path / "s.csv")
    drawn[0]["text"] = "Left effusion, I would say."
    label_sample(workspace, folder, drawn, tmp_path)
    found = report_corpus(workspace, folder, "check")
    assert found.changed == 1
    # Readers said nothing of the drawn row.
    assert {sum(one.reviewed) for one in found.labels} == {len(drawn) - 1}
    shown = call(workspace, "annotate", "--report", folder, "--cohort", "check")
    assert "1 drawn row with another text in the cohort" in " ".join(
        shown.output.split()
    )
    for one in drawn:
        one["text"] = f"Another report, of {one['case_id']}."
    label_sample(workspace, folder, drawn, tmp_path, name="others")
    with pytest.raises(DataError, match="has other texts than were drawn"):
        report_corpus(workspace, folder, "others")


def test_what_no_reader_and_no_engine_answered_is_told(
    monkeypatch, workspace, tmp_path
):
    """Rows without an answer, labels without a reference, cells without a code."""

    class Silent:
        def __init__(self, name, settings):
            self.inner = load_engine("rules", settings)

        def identity(self):
            """Return who it is."""
            return {"engine": "silent"}

        def complete(self, prompts):
            """Answer nine of ten."""
            for index, made in self.inner.complete(list(prompts)):
                yield index, made if index % 10 else Completion("", "stop")

    monkeypatch.setitem(base._FACTORIES, "silent", Silent)
    source, folder = write(tmp_path / "reports.csv", rows(100)), tmp_path / "out"
    annotate_corpus(
        source, folder, request(engine="silent"), options=AnnotationOptions()
    )
    unread = sum(one["status"] == "unparsed" for one in table(folder))
    assert unread > 0
    draw_sample(folder, source, tmp_path / "s.csv", 1_000)
    path = tmp_path / "coded.csv"
    made = [
        (one["case_id"], one["text"].removeprefix("'"), CODES.get(number, "0"))
        for number, one in enumerate(read_table(tmp_path / "s.csv"))
    ]
    write(path, made, ("case_id", "text", NAMES[0]))
    options = ImportOptions(name="check", role="external", source="-", licence="-")
    import_cohort(workspace, path, options, actor=Actor(name="Ann"))
    found = report_corpus(workspace, folder, "check")
    assert found.unanswered == unread
    (label,) = found.labels
    assert label.label == NAMES[0]
    assert len(found.left_out) == 20 and NAMES[1] in found.left_out
    assert (label.not_coded, label.undecided) == (2, 1)
    shown = call(workspace, "annotate", "--report", folder, "--cohort", "check")
    assert f"{unread} rows with a text and no answer" in shown.output
    assert "the reference has no such label" in " ".join(shown.output.split())
    assert "2 cells that the reference does not code: counted as absent" in shown.output


def test_what_is_not_the_annotated_source_is_refused(annotated, workspace, tmp_path):
    """Another file or folder, an unfinished one, a table that is there, no sample."""
    source, folder = annotated
    other = write(tmp_path / "other.csv", rows(399))
    with pytest.raises(DataError, match="is not what was annotated"):
        draw_sample(folder, other, tmp_path / "s.csv", 20)
    assert not (tmp_path / "s.csv").exists() and not (folder / SAMPLE).exists()
    with pytest.raises(DataError, match=r"no sample of .* was drawn"):
        report_corpus(workspace, folder, "check")
    (tmp_path / "s.csv").write_text("mine")
    with pytest.raises(DataError, match="is there and was left as it is"):
        draw_sample(folder, source, tmp_path / "s.csv", 20)
    draw_sample(folder, source, tmp_path / "t.csv", 20)
    drawn = read_table(tmp_path / "t.csv")
    label_sample(
        workspace,
        folder,
        [{**one, "case_id": one["case_id"]} for one in drawn],
        tmp_path,
    )
    elsewhere = tmp_path / "elsewhere"
    annotate(source, elsewhere, rows=100, text=True)
    (elsewhere / SAMPLE).write_bytes((folder / SAMPLE).read_bytes())
    with pytest.raises(DataError, match="is of another annotation"):
        report_corpus(workspace, elsewhere, "check")
    (folder / "_SUCCESS").unlink()
    with pytest.raises(DataError, match="is not complete"):
        draw_sample(folder, source, tmp_path / "u.csv", 20)
    with pytest.raises(ValueError, match="at least 2 rows"):
        draw_sample(folder, source, tmp_path / "u.csv", 1)


def test_rows_are_not_added_once_a_sample_was_drawn(annotated, workspace, tmp_path):
    """What readers say of it would be of no use, and nothing would have said so."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 20)
    label_sample(workspace, folder, read_table(tmp_path / "s.csv"), tmp_path)
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    more = write(tmp_path / "more.csv", rows(500))
    with pytest.raises(DataError, match="Annotate them into a new folder"):
        annotate(more, folder, rows=100)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert report_corpus(workspace, folder, "check").missing == 0
    annotate(source, folder, rows=100)
    (folder / SAMPLE).unlink()
    assert annotate(more, folder, rows=100).manifest.rows == 500


def test_rows_are_not_added_where_the_sample_cannot_be_read(annotated, tmp_path):
    """It may be of other rows, and readers may be at work on it."""
    source, folder = annotated
    draw_sample(folder, source, tmp_path / "s.csv", 50)
    for damaged in (b'{"source_digest": "', b"[]", b"\xff"):
        (folder / SAMPLE).write_bytes(damaged)
        with pytest.raises(
            DataError, match=r"cannot be read as a sample .* Restore it"
        ):
            annotate(source, folder, rows=100)


def test_equal_chances_give_the_limits_of_clopper_and_pearson():
    """And chances of 1 none."""
    hits = np.arange(40) < 13
    found = weighted_share(hits, np.full(40, 0.25))
    low, high = clopper_pearson(13, 40)
    assert (found.value, found.low, found.high) == pytest.approx((13 / 40, low, high))
    known = weighted_share(hits, np.ones(40))
    assert known == Estimate(13 / 40, 13 / 40, 13 / 40)
    none = weighted_share(hits[:0], np.ones(0))
    assert none.value is None
    assert weighted_sum([(0.0, none), (1.0, known)]).value == 13 / 40
    assert weighted_sum([(0.5, none), (0.5, known)]).value is None
    for chances in ([0.0], [1.5], [0.5, 0.5]):
        with pytest.raises(ValueError, match="a chance in"):
            weighted_share(np.array([True]), np.array(chances))


@pytest.mark.data
@pytest.mark.slow
def test_a_sample_of_open_i_finds_the_prevalences_of_all_of_it(
    data_folder, workspace, tmp_path
):
    """324 of 1,348 reports are looked up in the coding; it is known of all the others.

    The annotation alone is far off for No Finding, which the coding rarely says.
    """
    source, folder = data_folder / "openi" / "reports_test.csv", tmp_path / "out"
    annotate(source, folder, rows=500)
    draw_sample(folder, source, tmp_path / "s.csv", 400)
    coded = {
        one.pop("uid"): one
        for one in read_table(data_folder / "openi" / "labels_test.csv")
    }
    labels = list(next(iter(coded.values())))
    made = [
        (one["case_id"], one["text"].removeprefix("'"), *coded[one["case_id"]].values())
        for one in read_table(tmp_path / "s.csv")
    ]
    path = write(tmp_path / "coded.csv", made, ("case_id", "text", *labels))
    options = ImportOptions(name="check", role="external", source="-", licence="-")
    import_cohort(workspace, path, options, actor=Actor(name="Ann"))
    found = report_corpus(workspace, folder, "check")
    covered, nearer = 0, 0
    for one, name in zip(found.labels, labels, strict=True):
        known = [row[name] == "1" for row in coded.values() if row[name] in ("0", "1")]
        truth = sum(known) / len(known)
        covered += one.prevalence.low <= truth <= one.prevalence.high
        nearer += abs(one.prevalence.value - truth) <= abs(
            one.called / found.rows - truth
        )
    assert len(found.labels) == 21 and covered >= 20
    assert nearer >= 12
    clear = next(one for one in found.labels if one.label == "No Finding")
    assert clear.called / found.rows > 0.4 and clear.prevalence.high < 0.3


def test_the_limits_cover_the_truth():
    """500 corpora of 4,000 rows with a rare finding, of which some are missed."""
    rng = np.random.default_rng(5)
    covered = total = 0.0
    width = []
    for _ in range(500):
        truth = rng.random(4_000) < 0.05
        called = np.where(truth, rng.random(4_000) < 0.8, rng.random(4_000) < 0.02)
        chances = np.minimum(1, 100 / 4_000 + called * 100 / called.sum())
        drawn = rng.random(4_000) < chances
        parts = [
            (
                group.mean(),
                weighted_share(truth[drawn & group], chances[drawn & group]),
            )
            for group in (called, ~called)
        ]
        found = weighted_sum(parts)
        covered += found.low <= truth.mean() <= found.high
        total += found.value - truth.mean()
        width.append(found.high - found.low)
    assert covered / 500 >= 0.94
    # Neither too high nor too low in the mean, and of some use.
    assert abs(total / 500) < 0.002
    assert np.mean(width) < 0.1

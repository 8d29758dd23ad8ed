"""Candidates and references are joined by id; what is lost is counted and named."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.labels.importing.source import MAX_ID
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.score.joining import CandidateFile, join_files, join_pairs, pick_cases
from loop.score.reading.options import ReadingOptions
from loop.score.records import Joined, PairSide

SECRET = "Unmistakable wording"
TEXTS = {"a": "No effusion.", "b": "Effusion.", "c": "Nodule.", "d": "Normal."}


@pytest.fixture(scope="module")
def taxonomy(labels_folder: Path) -> Taxonomy:
    """Read the shipped labels once."""
    return read_taxonomy(labels_folder)


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> Path:
    """Write rows, the header first, as a spreadsheet would."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def write_texts(path: Path, texts: Mapping[str, str], column: str = "text") -> Path:
    """Write a file with ids and texts."""
    return write_csv(path, [["id", column], *texts.items()])


def told(joined: Joined) -> dict[str, object]:
    """Return everything joining says but the digests of the files."""
    kept = {
        f.name: getattr(joined, f.name) for f in fields(joined) if f.name != "files"
    }
    kept["reference"] = _told(joined.reference)
    kept["systems"] = [_told(column) for column in joined.systems]
    return kept


def _told(column: PairSide) -> tuple[object, ...]:
    codes = None if column.codes is None else column.codes.tolist()
    return column.name, column.texts, codes


def test_rows_in_any_order_join_to_the_same(tmp_path, taxonomy):
    """A reversed copy scored 0.048 in a released evaluator."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    one = write_texts(tmp_path / "one.csv", TEXTS)
    other = tmp_path / "again"
    other.mkdir()
    turned = write_texts(other / "one.csv", dict(reversed(TEXTS.items())))
    first = join_files(ref, [CandidateFile(one)], taxonomy)
    second = join_files(ref, [CandidateFile(turned)], taxonomy)
    assert told(first) == told(second)
    assert first.case_ids == ("a", "b", "c", "d")
    assert first.systems[0].texts == tuple(TEXTS.values())
    assert first.systems[0].name == "one"


def test_a_lost_row_is_named_and_nothing_shifts(tmp_path, taxonomy):
    """Joined by position, every later case would be held against another."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    left = {key: TEXTS[key] for key in ("d", "a", "c")} | {"x": "Extra."}
    joined = join_files(
        ref, [CandidateFile(write_texts(tmp_path / "one.csv", left))], taxonomy
    )
    (coverage,) = joined.coverage
    assert coverage.missing == ("b",)
    assert coverage.extra == ("x",)
    assert (coverage.rows, coverage.paired) == (4, 3)
    assert joined.systems[0].texts == ("No effusion.", None, "Nodule.", "Normal.")


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["m1", "m2"]),
        st.sampled_from(["1", "01", "2", "é", "x y", "Z"]),
        st.sampled_from(["", " . ", "No effusion.", "胸腔积液", "a\nb", '"q",']),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, data=st.data())
def test_no_order_of_rows_changes_anything(tmp_path, taxonomy, rows, data):
    """Also with several systems in one file, empty texts and ids that look alike."""
    ref = {"1": "Effusion.", "2": "Normal.", "é": "...", "Z": "Kein Erguss."}
    found = []
    for shuffled in (rows, data.draw(st.permutations(rows))):
        path = write_csv(tmp_path / "all.csv", [["system", "id", "text"], *shuffled])
        order = data.draw(st.permutations(list(ref)))
        source = write_texts(tmp_path / "ref.csv", {key: ref[key] for key in order})
        try:
            found.append(told(join_files(source, [CandidateFile(path)], taxonomy)))
        except DataError as error:
            assert "is among the references" in str(error)
            found.append({"refused": str(error)})
    assert found[0] == found[1]


def test_counts_of_rows_add_up(tmp_path, taxonomy):
    """Every row of a system is paired, extra, repeated or of an empty reference."""
    ref = write_texts(tmp_path / "ref.csv", {**TEXTS, "e": " -- "})
    rows = [["a", "x"], ["a", "x"], ["e", "y"], ["z", "y"], ["b", ""]]
    path = write_csv(tmp_path / "one.csv", [["id", "text"], *rows])
    joined = join_files(ref, [CandidateFile(path)], taxonomy)
    (coverage,) = joined.coverage
    assert joined.empty_references == ("e",)
    assert joined.case_ids == ("a", "b", "c", "d")
    assert coverage == ("one", 5, 2, ("c", "d"), ("z",), ("a",), ("b",))


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_two_contents_of_one_id_are_refused_or_chosen(tmp_path, taxonomy, duplicates):
    """Which of the two counts is for the user to say, and it is noted."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    rows = [["id", "text"], ["a", SECRET], ["b", "x"], ["a", "Other."]]
    files = [CandidateFile(write_csv(tmp_path / "one.csv", rows))]
    with pytest.raises(
        DataError, match=r"one.csv, line 4: id 'a'.*one.csv, line 2"
    ) as e:
        join_files(ref, files, taxonomy)
    assert "--duplicates" in str(e.value)
    assert SECRET not in str(e.value)
    options = ReadingOptions(duplicates=duplicates)
    joined = join_files(ref, files, taxonomy, options=options)
    chosen = {"first": SECRET, "last": "Other."}[duplicates]
    assert joined.systems[0].texts[0] == chosen
    assert joined.coverage[0].repeated == ()
    assert any("1 id stood more than once" in note for note in joined.notes)


def test_a_reference_that_stands_twice_is_used_once(tmp_path, taxonomy):
    """The same text twice is no second case."""
    rows = [["id", "text"], ["a", "Normal."], ["a", " Normal. "], ["b", "Nodule."]]
    ref = write_csv(tmp_path / "ref.csv", rows)
    joined = join_files(
        ref, [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS))], taxonomy
    )
    assert joined.case_ids == ("a", "b")
    assert joined.repeated_references == ("a",)


def test_ids_are_trimmed_and_otherwise_left_alone(tmp_path, taxonomy):
    """007 and 7 may be two patients; that they look alike is said, with how many."""
    ref = write_texts(tmp_path / "ref.csv", {" 007 ": "x", "P1": "x", "8": "x"})
    path = write_texts(
        tmp_path / "one.csv", {"7": "x", "p1": "x", "8.0": "x", "8": "x"}
    )
    joined = join_files(ref, [CandidateFile(path)], taxonomy)
    assert joined.case_ids == ("007", "8", "P1")
    assert joined.coverage[0].paired == 1
    (note,) = joined.notes
    assert note.startswith("one: 2 ids not joined")
    assert "'7', 'p1'" in note


def test_no_common_id_is_an_error_that_shows_both(tmp_path, taxonomy):
    """The usual cause is two kinds of ids, which only their look gives away."""
    ref = write_texts(tmp_path / "ref.csv", {"s1.0": "x", "s2.0": "x"})
    path = write_texts(tmp_path / "one.csv", dict.fromkeys(["s1", "s2", "3", "4"], "x"))
    with pytest.raises(DataError, match=r"no id of 'one'.*'3', '4', 's1' and 1 more"):
        join_files(ref, [CandidateFile(path)], taxonomy)
    with pytest.raises(
        DataError, match=r"they have 's1\.0', 's2\.0'\. 2 of them differ"
    ):
        join_files(ref, [CandidateFile(path)], taxonomy)


def test_systems_come_from_names_columns_and_files(tmp_path, taxonomy):
    """Files in the order given, systems of one file by name."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    both = [["id", "model", "text"], ["a", "zeta", "x"], ["a", "alpha", "y"]]
    files = [
        CandidateFile(write_texts(tmp_path / "one.csv", TEXTS), "mine"),
        CandidateFile(write_csv(tmp_path / "both.csv", both)),
        CandidateFile(write_texts(tmp_path / "two.csv", TEXTS)),
    ]
    joined = join_files(ref, files, taxonomy)
    assert [c.name for c in joined.systems] == ["mine", "alpha", "zeta", "two"]
    assert [c.rows for c in joined.coverage] == [4, 1, 1, 4]
    assert [name for name, _ in joined.files] == [
        "ref.csv",
        "one.csv",
        "both.csv",
        "two.csv",
    ]


def test_two_files_are_one_system_only_if_named_so(tmp_path, taxonomy):
    """Runs that both left an out.csv would otherwise be mixed into one."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    paths = []
    for name, ids in (("x", "ab"), ("y", "cd")):
        (tmp_path / name).mkdir()
        texts = {key: TEXTS[key] for key in ids}
        paths.append(write_texts(tmp_path / name / "out.csv", texts))
    with pytest.raises(
        DataError, match=r"y/out.csv would both be system 'out'.*NAME=F"
    ):
        join_files(ref, [CandidateFile(path) for path in paths], taxonomy)
    with pytest.raises(DataError, match="would both be system 'out'"):
        named = [CandidateFile(paths[0], "out"), CandidateFile(paths[1])]
        join_files(ref, named, taxonomy)
    joined = join_files(ref, [CandidateFile(path, "m") for path in paths], taxonomy)
    assert joined.coverage[0].paired == 4


def test_no_file_adds_rows_to_a_system_named_for_another(tmp_path, taxonomy):
    """A competitor could spoil it; parts that are all named alike are said."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    ours = CandidateFile(write_texts(tmp_path / "ours.csv", {"a": "x"}), "ours")
    rows = [["id", "text", "system"], ["b", "y", "ours"]]
    theirs = CandidateFile(write_csv(tmp_path / "theirs.csv", rows))
    for files in ((ours, theirs), (theirs, ours)):
        with pytest.raises(DataError, match="would both be system 'ours'"):
            join_files(ref, files, taxonomy)
    more = CandidateFile(write_texts(tmp_path / "more.csv", {"b": "y"}), "ours")
    (note,) = join_files(ref, [ours, more], taxonomy).notes
    assert note == ("ours is made of several files: ours.csv (1 row), more.csv (1 row)")


def test_a_row_count_that_all_files_share_is_not_taken_in_silence(tmp_path, taxonomy):
    """Whoever leaves the study ids out would decide what all are joined by."""
    both = [["id", "study_id", "text"], ["0", "s7", "Edema."], ["1", "s8", "Normal."]]
    ref = write_csv(tmp_path / "ref.csv", both)
    only = write_csv(
        tmp_path / "only.csv", [["id", "text"], ["1", "Edema."], ["0", "Normal."]]
    )
    (note,) = join_files(ref, [CandidateFile(only)], taxonomy).notes
    assert "Joined by 'id'" in note and "ref.csv ('study_id')" in note
    again = write_csv(tmp_path / "again.csv", both)
    assert join_files(ref, [CandidateFile(again)], taxonomy).notes == ()


def test_a_system_does_not_say_in_which_language_the_reference_is(tmp_path, taxonomy):
    """Else its worst cases would be left out for everybody."""
    ref = write_texts(tmp_path / "ref.csv", {"a": "No pneumothorax."})
    rows = [["id", "text", "language"], ["a", "Edema.", "ko"]]
    files = [CandidateFile(write_csv(tmp_path / "one.csv", rows))]
    assert join_files(ref, files, taxonomy).languages == ("en",)


def test_a_name_for_a_file_of_several_systems_is_refused(tmp_path, taxonomy):
    """It would mix them; for a file of one system it is just another name."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    rows = [["id", "system", "text"], ["a", "s1", "x"], ["b", "s2", "x"]]
    path = write_csv(tmp_path / "all.csv", rows)
    with pytest.raises(DataError, match=r"holds 2 systems.*without a name"):
        join_files(ref, [CandidateFile(path, "mine")], taxonomy)
    path = write_csv(tmp_path / "single.csv", rows[:2])
    joined = join_files(ref, [CandidateFile(path, "mine")], taxonomy)
    assert joined.systems[0].name == "mine"


def test_labels_are_joined_in_the_order_of_the_taxonomy(tmp_path, taxonomy):
    """A CheXpert file has 14 of the labels: the others are missing, never absent."""
    rows = [
        ["subject_id", "study_id", "Pleural Effusion", "Edema", "No Finding"],
        ["10", "s1", "1.0", "", "0.0"],
        ["10", "s2", "-1.0", "0.0", ""],
    ]
    ref = write_csv(tmp_path / "chexpert.csv", rows)
    joined = join_files(
        ref, [CandidateFile(write_csv(tmp_path / "one.csv", rows))], taxonomy
    )
    codes = joined.reference.codes
    assert codes is not None
    assert codes.dtype == np.int8
    assert codes.shape == (2, 21)
    places = [
        taxonomy.ids.index(i) for i in ("pleural_effusion", "edema", "no_finding")
    ]
    assert codes[:, places].tolist() == [
        [1, ValueCode.MISSING, 0],
        [-1, 0, ValueCode.MISSING],
    ]
    assert np.count_nonzero(codes != ValueCode.MISSING) == 4
    assert joined.patients == ("10", "10")
    assert "chexpert.csv has 3 of the 21 labels" in joined.notes[0]
    assert joined.reference.texts is None


def test_labels_of_references_meet_texts_of_candidates(tmp_path, taxonomy):
    """Readers' labels are often all there is of a reference."""
    ref = write_csv(tmp_path / "ref.csv", [["id", *taxonomy.ids], ["a", *"0" * 21]])
    path = write_texts(tmp_path / "one.csv", {"a": "Kein Pneumothorax."})
    joined = join_files(ref, [CandidateFile(path)], taxonomy)
    assert joined.reference.codes is not None
    assert joined.systems[0].texts == ("Kein Pneumothorax.",)
    assert joined.languages == ("de",)
    (note,) = joined.notes
    assert note.startswith("Labels of reference are as given")


def test_texts_beside_labels_are_what_is_scored(tmp_path, taxonomy):
    """Both sides are read by the same extractor; that labels are not used is said."""
    rows = [["id", "text", "Edema"], ["a", "Edema.", "whatever"]]
    ref = write_csv(tmp_path / "ref.csv", rows)
    joined = join_files(
        ref, [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS))], taxonomy
    )
    assert joined.reference.codes is None
    assert "ref.csv holds texts and 1 label:" in joined.notes[0]


def test_a_system_is_texts_or_labels(tmp_path, taxonomy):
    """Half read by an extractor and half by somebody else is no single system."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    texts = write_texts(tmp_path / "one.csv", {"a": "x"})
    labels = write_csv(tmp_path / "two.csv", [["id", "edema"], ["b", "1"]])
    files = [CandidateFile(texts, "m"), CandidateFile(labels, "m")]
    with pytest.raises(
        DataError, match=r"texts at one.csv, line 2 and labels at two.csv"
    ):
        join_files(ref, files, taxonomy)


def test_words_of_label_cells_are_mapped_only_by_a_policy(tmp_path, taxonomy):
    """The line and column are named, and how to give the word a meaning."""
    ref = write_csv(tmp_path / "ref.csv", [["id", "edema"], ["a", "1"], ["b", "Yes"]])
    files = [
        CandidateFile(write_csv(tmp_path / "o.csv", [["id", "edema"], ["a", "1"]]))
    ]
    with pytest.raises(DataError, match=r"ref.csv, line 3: column 'edema' holds 'yes'"):
        join_files(ref, files, taxonomy)
    options = ReadingOptions(values={"yes": "present"})
    joined = join_files(ref, files, taxonomy, options=options)
    assert joined.reference.codes is not None
    assert joined.reference.codes[:, taxonomy.ids.index("edema")].tolist() == [1, 1]


def test_patients_are_known_only_if_all_are(tmp_path, taxonomy):
    """Half a clustering is none; that it was dropped is said."""
    files = [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS))]
    rows = [["id", "text", "patient_id"], ["b", "x", "p1"], ["a", "y", ""]]
    joined = join_files(write_csv(tmp_path / "r.csv", rows), files, taxonomy)
    assert joined.patients is None
    assert "1 of 2 cases have no patient" in joined.notes[0]
    rows[2][2] = "p0"
    joined = join_files(write_csv(tmp_path / "r.csv", rows), files, taxonomy)
    assert joined.patients == ("p0", "p1")


def test_languages_are_those_said_else_those_seen(tmp_path, taxonomy):
    """Mixed languages in one file: each case has its own."""
    files = [CandidateFile(write_texts(tmp_path / "one.csv", {"a": "x"}))]
    rows = [
        ["id", "text", "language"],
        ["a", "No effusion.", "de-AT"],
        ["b", "未见胸腔积液", ""],
        ["c", "Kein Erguss.", ""],
    ]
    ref = write_csv(tmp_path / "r.csv", rows)
    assert join_files(ref, files, taxonomy).languages == ("de", "zh", "de")
    options = ReadingOptions(language="en")
    joined = join_files(ref, files, taxonomy, options=options)
    assert joined.languages == ("en", "en", "en")


def test_references_without_a_word_are_left_out_and_named(tmp_path, taxonomy):
    """There is nothing to hold a candidate against; their candidates are not extra."""
    ref = write_texts(tmp_path / "r.csv", {"a": "Normal.", "b": " \n.", "c": ""})
    files = [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS))]
    joined = join_files(ref, files, taxonomy)
    assert joined.case_ids == ("a",)
    assert joined.empty_references == ("b", "c")
    assert joined.coverage[0].extra == ("d",)
    ref = write_texts(tmp_path / "r.csv", {"a": "..."})
    with pytest.raises(DataError, match="no reference holds a word"):
        join_files(ref, files, taxonomy)


def test_a_named_column_must_be_somewhere(tmp_path, taxonomy):
    """A file that lacks it is read by the names known, which is said."""
    ref = write_texts(tmp_path / "r.csv", TEXTS, column="report")
    files = [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS, column="made_up"))]
    joined = join_files(
        ref, files, taxonomy, options=ReadingOptions(text_column="made_up")
    )
    assert joined.notes == (
        "As the cases were read: text column 'made_up'.",
        "r.csv has no column 'made_up'; 'report' is used there.",
    )
    for field, option in (("text_column", "--text"), ("id_column", "--id")):
        with pytest.raises(
            DataError, match=rf"{option}-column: no column 'mad' in r.csv"
        ):
            options = ReadingOptions(**{field: "mad"})
            join_files(ref, files, taxonomy, options=options)


def test_files_are_joined_by_the_kind_of_id_they_share(tmp_path, taxonomy):
    """In published label files, id is a count of rows beside study_id."""
    rows = [["id", "study_id", "text"], ["1", "s1", "x"], ["2", "s2", "y"]]
    ref = write_csv(tmp_path / "r.csv", rows)
    turned = [rows[0], ["1", "s2", "y"], ["2", "s1", "x"]]
    both = [CandidateFile(write_csv(tmp_path / "one.csv", turned))]
    assert join_files(ref, both, taxonomy).systems[0].texts == ("x", "y")
    counted = [CandidateFile(write_texts(tmp_path / "two.csv", {"2": "y"}))]
    joined = join_files(ref, counted, taxonomy)
    assert joined.case_ids == ("1", "2")
    assert joined.systems[0].texts == (None, "y")
    rows = [["uid", "text"], ["s2", "y"]]
    other = [CandidateFile(write_csv(tmp_path / "three.csv", rows))]
    assert join_files(ref, other, taxonomy).coverage[0].missing == ("s1",)


def test_a_column_is_looked_for_where_it_counts(tmp_path, taxonomy):
    """Patients are those of the references, systems those of the candidates."""
    ref = write_csv(tmp_path / "r.csv", [["id", "text", "made_by"], ["a", "x", "m"]])
    rows = [["id", "text", "owner"], ["a", "x", "p"]]
    files = [CandidateFile(write_csv(tmp_path / "one.csv", rows))]
    for options in (
        ReadingOptions(patient_column="owner"),
        ReadingOptions(system_column="made_by"),
    ):
        with pytest.raises(DataError, match="-column: no column"):
            join_files(ref, files, taxonomy, options=options)


def test_pairs_may_stand_in_one_file(tmp_path, taxonomy):
    """A reference stands again with each of its candidates, and is one case."""
    rows = [
        ["id", "system", "reference", "candidate", "patient"],
        ["b", "m2", "Nodule.", "", "p"],
        ["a", "m1", "Normal.", "Clear.", "q"],
        ["a", "m2", "Normal.", "Effusion.", "q"],
    ]
    joined = join_pairs(write_csv(tmp_path / "pairs.csv", rows), taxonomy)
    assert joined.reference.texts == ("Normal.", "Nodule.")
    assert [c.texts for c in joined.systems] == [("Clear.", None), ("Effusion.", "")]
    assert joined.coverage[1].empty == ("b",)
    assert joined.repeated_references == ()
    assert joined.patients == ("q", "p")
    assert len(joined.files) == 1
    assert joined.notes == ()


def test_pairs_with_two_references_of_one_case_are_refused(tmp_path, taxonomy):
    """Either could be the truth."""
    rows = [
        ["id", "system", "ground_truth", "prediction"],
        ["a", "m1", "Normal.", "x"],
        ["a", "m2", "Abnormal.", "x"],
    ]
    with pytest.raises(
        DataError, match=r"line 3: id 'a' was already given at .*line 2"
    ):
        join_pairs(write_csv(tmp_path / "pairs.csv", rows), taxonomy)


@pytest.mark.parametrize("header", [["id", "text"], ["id", "reference", "edema"]])
def test_pairs_need_both_texts(tmp_path, taxonomy, header):
    """A text is not compared with itself."""
    rows = [header, ["x"] * len(header)]
    path = write_csv(tmp_path / "pairs.csv", rows)
    with pytest.raises(DataError, match="reference and a candidate in each row"):
        join_pairs(path, taxonomy)
    with pytest.raises(DataError, match="has two texts"):
        join_pairs(path, taxonomy, options=ReadingOptions(text_column="text"))


def test_all_formats_join_to_the_same(tmp_path, taxonomy):
    """JSON and Parquet make numbers of ids, and floats of labels."""
    frame = pd.DataFrame({"id": [1, 2, 3], "edema": [1.0, None, -1.0], "fracture": 0})
    frame.to_csv(tmp_path / "m.csv", index=False)
    frame.to_csv(tmp_path / "m.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "m.parquet")
    frame.to_json(tmp_path / "m.jsonl", orient="records", lines=True)
    nested = [
        json.dumps({"id": i, "labels": {"Edema": e, "Fracture": "absent"}})
        for i, e in ((1, "present"), (2, None), (3, "uncertain"))
    ]
    (tmp_path / "m.ndjson").write_text("\n".join(nested))
    found = [
        told(join_files(path, [CandidateFile(path)], taxonomy))
        for path in (tmp_path / f"m{s}" for s in (".csv", ".tsv", ".parquet", ".jsonl"))
    ]
    found.append(
        told(
            join_files(
                tmp_path / "m.ndjson", [CandidateFile(tmp_path / "m.csv")], taxonomy
            )
        )
    )
    for each in found:
        each.pop("notes")
    assert all(each == found[0] for each in found)


def test_a_long_text_is_read_whole(tmp_path, taxonomy):
    """A generator that does not stop writes a megabyte; that is its score."""
    long = "no effusion " * 100_000
    ref = write_texts(tmp_path / "r.csv", {"a": "Normal."})
    path = write_texts(tmp_path / "one.csv", {"a": long})
    joined = join_files(ref, [CandidateFile(path)], taxonomy)
    assert joined.systems[0].texts == (long.strip(),)


def test_there_must_be_candidates(tmp_path, taxonomy):
    """Nothing to grade is no score of nothing."""
    ref = write_texts(tmp_path / "r.csv", TEXTS)
    with pytest.raises(DataError, match="no candidates were given"):
        join_files(ref, [], taxonomy)


def test_a_key_that_stands_twice_is_refused(tmp_path, taxonomy):
    """JSON readers take the last one; a label was then absent instead of present."""
    reference = write_texts(tmp_path / "ref.csv", TEXTS)
    path = tmp_path / "model.jsonl"
    path.write_text('{"id": "a", "labels": {"edema": 1, "edema": 0}}\n')
    with pytest.raises(DataError, match="line 1: a key appears twice"):
        join_files(reference, [CandidateFile(path)], taxonomy)


def test_a_nul_is_no_text_in_any_encoding(tmp_path, taxonomy):
    """An encoding that is named is believed, what it reads is not."""
    reference = write_texts(tmp_path / "ref.csv", TEXTS)
    path = tmp_path / "model.csv"
    path.write_bytes(f"id,text\na,{SECRET}\0\n".encode())
    with pytest.raises(DataError, match=r"model.csv, line 2: .* NUL") as told:
        options = ReadingOptions(encoding="utf-8")
        join_files(reference, [CandidateFile(path)], taxonomy, options=options)
    assert SECRET not in str(told.value)


def test_some_cases_of_a_join(tmp_path, taxonomy):
    """Every system keeps the same; what it lacks among them is counted again."""
    reference = tmp_path / "r.csv"
    rows = [f"{k},{v},Known of {k}.\n" for k, v in TEXTS.items()]
    reference.write_text("id,text,context\n" + "".join(rows))
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text("id,text\na,One.\nb,Two.\nc,Three.\nd,Four.\nx,Five.\n")
    theirs.write_text("id,text\nb,Two.\nc,Three.\n")
    both = [CandidateFile(ours), CandidateFile(theirs)]
    joined = join_files(reference, both, taxonomy)
    some = pick_cases(joined, frozenset("ac"))
    assert some.case_ids == ("a", "c")
    assert some.reference.texts == (TEXTS["a"], TEXTS["c"])
    assert some.contexts == ("Known of a.", "Known of c.")
    named = dict(zip((one.system for one in some.coverage), some.coverage, strict=True))
    assert (named["theirs"].paired, named["theirs"].missing) == (1, ("a",))
    assert (named["ours"].paired, named["ours"].extra) == (2, ("x",))
    assert [one.texts[1] for one in some.systems] == ["Three.", "Three."]
    with pytest.raises(ValueError, match="1 cases are not there"):
        pick_cases(joined, frozenset("az"))


def test_some_cases_keep_what_is_known_of_them(tmp_path, taxonomy):
    """Patients, languages and what stood twice or was empty: theirs, of no other."""
    head = ["id", "text", "patient_id", "language"]
    rows = [["a", "Edema.", "p1", "en"], ["b", "Kein Erguss.", "p2", "de"]]
    rows.append(["c", "Normal.", "p1", "en"])
    ref = write_csv(tmp_path / "ref.csv", [head, *rows])
    twice = [["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"], ["c", ""]]
    path = write_csv(tmp_path / "one.csv", [["id", "text"], *twice])
    joined = join_files(ref, [CandidateFile(path)], taxonomy)
    some = pick_cases(joined, frozenset("bc"))
    assert some.patients == some.named_patients == ("p2", "p1")
    assert some.languages == ("de", "en")
    assert some.contexts == ()
    (coverage,) = some.coverage
    assert (coverage.repeated, coverage.empty) == (("b",), ("c",))
    (first,) = pick_cases(joined, frozenset("a")).coverage
    assert (first.paired, first.repeated, first.empty) == (1, ("a",), ())
    assert told(pick_cases(joined, frozenset("abc"))) == told(joined)


def test_some_cases_of_labels_keep_their_codes(tmp_path, taxonomy):
    """Each its own, and no patient where none is known."""
    rows = [["id", "edema"], ["a", "1"], ["b", "0"], ["c", "-1"]]
    path = write_csv(tmp_path / "ref.csv", rows)
    joined = join_files(path, [CandidateFile(path)], taxonomy)
    some = pick_cases(joined, frozenset("ac"))
    place = taxonomy.ids.index("edema")
    for side in (some.reference, *some.systems):
        assert side.texts is None
        assert side.codes[:, place].tolist() == [1, -1]
    assert (some.patients, some.named_patients) == (None, ())


def test_files_of_one_name_are_called_by_their_folder(tmp_path, taxonomy):
    """Messages and notes tell them apart; a name of its own stays short."""
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    ref = write_texts(tmp_path / "x" / "out.csv", TEXTS)
    same = write_texts(tmp_path / "y" / "out.csv", TEXTS)
    other = write_texts(tmp_path / "y" / "other.csv", TEXTS)
    files = [CandidateFile(same, "m"), CandidateFile(other)]
    names = [name for name, _ in join_files(ref, files, taxonomy).files]
    assert names == [str(ref), str(same), "other.csv"]


@pytest.mark.parametrize(("length", "refused"), [(MAX_ID, False), (MAX_ID + 1, True)])
def test_the_name_of_a_system_is_as_long_as_an_id_may_be(
    tmp_path, taxonomy, length, refused
):
    """Longer ones spoil a line of a terminal or a document."""
    ref = write_texts(tmp_path / "ref.csv", TEXTS)
    files = [CandidateFile(write_texts(tmp_path / "one.csv", TEXTS), "n" * length)]
    if refused:
        with pytest.raises(DataError, match="the name of its system is longer"):
            join_files(ref, files, taxonomy)
    else:
        assert join_files(ref, files, taxonomy).systems[0].name == "n" * length

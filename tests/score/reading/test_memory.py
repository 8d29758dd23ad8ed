"""Texts in memory are joined by their ids; without ids only like with like."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.score.joining import join_texts
from loop.score.reading.options import ReadingOptions

TEXTS = {"a": "No effusion.", "b": "Effusion.", "c": "Nodule."}


@pytest.fixture(scope="module")
def taxonomy(labels_folder: Path) -> Taxonomy:
    """Read the shipped labels once."""
    return read_taxonomy(labels_folder)


def _frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        dict(reversed(TEXTS.items())),
        pd.Series(TEXTS),
        pd.Series(TEXTS)[::-1],
        _frame(report=pd.Series(TEXTS)),
        _frame(study_id=list(TEXTS), text=list(TEXTS.values())),
        _frame(text=list(TEXTS.values())[::-1], id=list(TEXTS)[::-1]),
    ],
)
def test_whatever_has_ids_is_joined_by_them(taxonomy, given):
    """A mapping, an index or a column: in any order the same."""
    joined = join_texts(TEXTS, given, taxonomy)
    assert joined.systems[0].texts == tuple(TEXTS.values())
    assert joined.systems[0].name == "candidate"
    assert joined.coverage[0].paired == 3
    assert joined.notes == ()
    assert joined.files == ()


@pytest.mark.parametrize(
    "given",
    [
        list(TEXTS.values()),
        tuple(TEXTS.values()),
        np.array(list(TEXTS.values())),
        pd.Series(list(TEXTS.values())),
        _frame(prediction=list(TEXTS.values())),
    ],
)
def test_lists_are_joined_by_place_and_it_is_said(taxonomy, given):
    """Both sides come from one loop of the caller; still, a reader should know."""
    joined = join_texts(list(TEXTS.values()), {"m": given}, taxonomy)
    assert joined.case_ids == ("0", "1", "2")
    assert joined.systems[0].texts == tuple(TEXTS.values())
    assert "joined by position" in joined.notes[0]


def test_places_sort_as_they_stand(taxonomy):
    """The tenth case comes after the second."""
    texts = [f"Case {place}." for place in range(12)]
    joined = join_texts(texts, texts, taxonomy)
    assert joined.case_ids[:3] == ("00", "01", "02")
    assert joined.reference.texts == tuple(texts)


def test_lists_of_other_lengths_are_refused(taxonomy):
    """One lost row would shift all that follow, unseen."""
    series = pd.Series(TEXTS)
    short = series.drop("b").reset_index(drop=True)
    with pytest.raises(ValueError, match="3 'references', 2 'm"):
        join_texts(list(TEXTS.values()), {"m": short}, taxonomy)
    with pytest.raises(ValueError, match="2 'patients'"):
        join_texts(["x"], ["y"], taxonomy, patients=["p", "q"])


@pytest.mark.parametrize(
    "other", [TEXTS, pd.Series(TEXTS), pd.Series(list("abc")).drop(1)]
)
def test_ids_on_one_side_only_are_refused(taxonomy, other):
    """Numbered rows and named rows have nothing to be joined by."""
    with pytest.raises(ValueError, match="has no ids and 'references' has"):
        join_texts(other, ["x", "y", "z"], taxonomy)


def test_one_index_with_gaps_on_both_sides_is_an_id(taxonomy):
    """Rows dropped from a DataFrame keep their numbers, which are then ids."""
    series = pd.Series(list(TEXTS.values())).drop(1)
    joined = join_texts(series, {"m": series.iloc[:1]}, taxonomy)
    assert joined.case_ids == ("0", "2")
    assert joined.coverage[0].missing == ("2",)


def test_systems_are_named_by_keys_or_by_a_column(taxonomy):
    """One long table, or one entry per system."""
    long = _frame(id=["a", "a", "b"], model=["z", "y", "z"], text=["1", "2", "3"])
    joined = join_texts(TEXTS, long, taxonomy)
    assert [column.name for column in joined.systems] == ["y", "z"]
    joined = join_texts(TEXTS, {"z": TEXTS, "y": pd.Series(TEXTS)}, taxonomy)
    assert [column.name for column in joined.systems] == ["z", "y"]
    with pytest.raises(ValueError, match="name of its own"):
        join_texts(TEXTS, {"z": TEXTS, " z": TEXTS}, taxonomy)


def test_tables_of_labels_are_taken_as_labels(taxonomy):
    """NaN of a label column is missing; 0.7 is refused as in a file."""
    frame = pd.DataFrame(
        {
            "Edema": [1.0, np.nan, 0.0],
            "Fracture": pd.array([1, None, -1], dtype="Int64"),
        },
        index=list("abc"),
    )
    joined = join_texts(frame, frame, taxonomy)
    places = [taxonomy.ids.index(label) for label in ("edema", "fracture")]
    codes = joined.reference.codes
    assert codes is not None
    assert codes[:, places].tolist() == [
        [1, 1],
        [ValueCode.MISSING, ValueCode.MISSING],
        [0, -1],
    ]
    frame.loc["b", "Edema"] = 0.7
    with pytest.raises(DataError, match="references, item 1: column 'Edema' holds"):
        join_texts(frame, frame, taxonomy)


def test_patients_are_given_by_id_or_in_order(taxonomy):
    """Else a DataFrame of references says them."""
    owners = {"a": "p", "b": "q", "c": "p"}
    for patients in (owners, pd.Series(owners)):
        assert join_texts(TEXTS, TEXTS, taxonomy, patients=patients).patients == (
            "p",
            "q",
            "p",
        )
    texts = list(TEXTS.values())
    joined = join_texts(texts, texts, taxonomy, patients=["p", "q", "p"])
    assert joined.patients == ("p", "q", "p")
    frame = _frame(id=list(TEXTS), text=texts, patient_id=[1, 1, 2])
    assert join_texts(frame, TEXTS, taxonomy).patients == ("1", "1", "2")
    joined = join_texts(TEXTS, TEXTS, taxonomy, patients={"a": "p"})
    assert joined.patients is None
    assert "2 of 3 cases have no patient" in joined.notes[0]


def test_none_is_an_empty_text(taxonomy):
    """As a blank cell of a file: said nothing, and counted."""
    for blank in (None, "", float("nan"), " .\n"):
        joined = join_texts(TEXTS, {"m": {**TEXTS, "b": blank}}, taxonomy)
        assert joined.coverage[0].empty == ("b",)
        joined = join_texts({**TEXTS, "b": blank}, TEXTS, taxonomy)
        assert joined.empty_references == ("b",)


def test_what_cannot_be_texts_is_refused(taxonomy):
    """A single string is a sequence of letters to Python."""
    for wrong in ("No effusion.", 7, {1, 2}, b"x"):
        with pytest.raises(ValueError, match="references: expected a mapping"):
            join_texts(wrong, TEXTS, taxonomy)
    with pytest.raises(DataError, match="candidate holds no case"):
        join_texts(TEXTS, {}, taxonomy)
    with pytest.raises(DataError, match="column 'text' holds dict"):
        join_texts(TEXTS, {"m": {"a": {"role": "user"}}}, taxonomy)


def test_options_hold_in_memory_too(taxonomy):
    """A column may be named, a word mapped, a language said."""
    frame = _frame(key=["a", "b"], words=["x", "y"])
    options = ReadingOptions(id_column="key", text_column="words", language="zh")
    joined = join_texts(frame, frame, taxonomy, options=options)
    assert joined.reference.texts == ("x", "y")
    assert joined.languages == ("zh", "zh")


@pytest.mark.parametrize("blank", [None, float("nan"), pd.NA, ""])
def test_every_way_to_write_nothing_is_an_empty_text(taxonomy, blank):
    """A column of strings becomes a list with pandas' own NA."""
    joined = join_texts(TEXTS, {**TEXTS, "b": blank}, taxonomy)
    assert joined.coverage[0].empty == ("b",)
    assert join_texts(["x", blank], ["y", "z"], taxonomy).empty_references == ("1",)


def test_numbers_of_numpy_are_ids(taxonomy):
    """As ``dict(zip(frame.id.values, frame.text))`` has them."""
    ids = {np.int64(7): "Effusion.", np.int64(8): "Clear."}
    assert join_texts(ids, {"7": "Effusion."}, taxonomy).coverage[0].paired == 1


@pytest.mark.parametrize("text", [1, 0.5, True])
def test_a_number_is_no_text(taxonomy, text):
    """Labels given as texts would be scored, as texts that say nothing."""
    with pytest.raises(DataError, match="item 0: column 'text' holds a number"):
        join_texts([text], ["Effusion."], taxonomy)


@pytest.mark.parametrize("text", ["Unmistakable \ud800", "Unmistakable \0 wording"])
def test_what_is_no_text_is_refused_by_place(taxonomy, text):
    """Engines and documents would fail on it, hours later."""
    with pytest.raises(DataError, match="item 1: the text contains a NUL or") as told:
        join_texts(TEXTS, {"a": "Clear.", "b": text}, taxonomy)
    assert "Unmistakable" not in str(told.value)


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "n" * 201])
def test_a_name_that_would_spoil_a_line_is_refused(taxonomy, name):
    """Of a file, a mapping or a column: it stands in terminals and documents."""
    with pytest.raises(DataError, match="name of its system is longer than 200"):
        join_texts(TEXTS, {name: TEXTS}, taxonomy)


def test_a_case_has_one_patient(taxonomy):
    """An index that appears twice gave the second one in silence."""
    twice = pd.Series(["p", "q", "r", "s"], index=["a", "a", "b", "c"])
    with pytest.raises(ValueError, match="item 1: id 'a' is given a second patient"):
        join_texts(TEXTS, TEXTS, taxonomy, patients=twice)
    same = pd.Series(["p", "p", "r", "s"], index=["a", "a", "b", "c"])
    found = join_texts(TEXTS, TEXTS, taxonomy, patients=same)
    assert found.patients == ("p", "r", "s")


def test_patients_of_other_cases_are_refused(taxonomy):
    """Intervals would be over cases, and nobody would know."""
    with pytest.raises(DataError, match="no id of the patients is among"):
        join_texts(TEXTS, TEXTS, taxonomy, patients={"A": "p", "B": "q"})
    with pytest.raises(ValueError, match="patients: expected a mapping"):
        join_texts(TEXTS, TEXTS, taxonomy, patients=_frame(id=["a"], patient=["p"]))


@pytest.mark.parametrize("language", ["english please", "e", "日本"])
def test_a_language_is_a_code(language):
    """Every text would fail with a path in which it is a file name."""
    with pytest.raises(DataError, match="is not a language code"):
        ReadingOptions(language=language)


def test_the_region_of_a_language_is_left_out(taxonomy):
    """As it is where a column says the language."""
    options = ReadingOptions(language="zh-CN")
    joined = join_texts(TEXTS, TEXTS, taxonomy, options=options)
    assert set(joined.languages) == {"zh"}


def test_a_system_may_be_called_reference(taxonomy):
    """Its notes are told beside those of the references, not in their place."""
    twice = _frame(id=["a", "a", "b"], text=["No effusion.", "Clear.", "Nodule."])
    options = ReadingOptions(duplicates="first")
    joined = join_texts(twice, {"reference": TEXTS}, taxonomy, options=options)
    assert any("reference: 1 id stood more than once" in n for n in joined.notes)

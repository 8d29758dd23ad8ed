"""A label cell says one thing, or is refused: nothing becomes "absent" in silence."""

import numpy as np
import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.records import ValueCode
from loop.score.reading.options import (
    DEFAULTS,
    LabelCells,
    ReadingOptions,
    in_python,
    read_language,
)

SECRET = "Unmistakable"


def _read(cell: object, **policy: str) -> int:
    return LabelCells(policy).read(cell, "Edema", "labels.csv, line 2")


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        *(
            (cell, ValueCode.PRESENT)
            for cell in (1, 1.0, "1", " 1.0 ", "+1", "1.", "Present")
        ),
        *(
            (cell, ValueCode.ABSENT)
            for cell in (0, 0.0, -0.0, "0", "-0.0", "00", "ABSENT")
        ),
        *(
            (cell, ValueCode.UNCERTAIN)
            for cell in (-1, -1.0, "-1", "-1.00", "uncertain")
        ),
        *(
            (cell, ValueCode.MISSING)
            for cell in (None, "", "  ", float("nan"), "nan", "missing")
        ),
        (np.float64(1.0), ValueCode.PRESENT),
        (np.int64(-1), ValueCode.UNCERTAIN),
        ("no_majority", ValueCode.MISSING),
    ],
)
def test_what_every_tool_writes_is_understood(cell, code):
    """Integers, floats and words of label files, from CSV, JSON and pandas."""
    assert _read(cell) == code


@pytest.mark.parametrize(
    "cell",
    [
        *("yes", "True", True, False, "no", "none", "NA", "not_coded", "maybe", "2", 2),
        *(0.7, "0.7", "1e0", "1 0", "-", "--1", float("inf"), [1], {"value": 1}, b"1"),
    ],
)
def test_what_could_mean_two_things_is_refused(cell):
    """A released evaluator makes 0 of all of these."""
    with pytest.raises(DataError, match=r"line 2: column 'Edema' holds .*--value yes"):
        _read(cell)


def test_a_policy_gives_words_a_meaning():
    """What the user says goes, in any case and spacing."""
    assert _read(" YES ", yes="present", no="absent") == ValueCode.PRESENT
    assert _read("No", yes="present", no="absent") == ValueCode.ABSENT
    assert _read(True, true="Present") == ValueCode.PRESENT
    assert _read("u", u="uncertain") == ValueCode.UNCERTAIN
    assert _read("?", **{"?": "missing"}) == ValueCode.MISSING


def test_a_policy_goes_before_the_usual_meaning():
    """U-Ones and blank-as-negative are choices, when somebody makes them."""
    cells = LabelCells({"-1": "present", "": "absent"})
    assert cells.read(-1.0, "Edema", "line 2") == ValueCode.PRESENT
    assert cells.read("-1", "Edema", "line 2") == ValueCode.PRESENT
    assert cells.read(None, "Edema", "line 2") == ValueCode.ABSENT
    assert cells.read(float("nan"), "Edema", "line 2") == ValueCode.MISSING


def test_a_meaning_that_does_not_exist_is_refused():
    """The message lists those that do."""
    with pytest.raises(DataError, match=r"'maybe' is not a value.*present, absent"):
        LabelCells({"yes": "maybe"})


def test_one_word_has_one_meaning():
    """A cell that holds 1.0 holds 1."""
    with pytest.raises(DataError, match="two meanings"):
        LabelCells({"1": "present", "1.0": "absent"})
    assert LabelCells({"Yes": "present", "yes": "present"}).read("YES", "", "") == 1


def test_a_message_names_a_number_but_never_words_of_a_case():
    """A text that slipped into a label column must not reach a log."""
    with pytest.raises(DataError, match=r"holds '0\.7'"):
        _read(0.7)
    with pytest.raises(DataError) as caught:
        _read(SECRET)
    assert SECRET.casefold() not in str(caught.value).casefold()


def test_what_is_as_usual_is_not_told():
    """No name, no digest and no sentence."""
    assert (DEFAULTS.chosen, DEFAULTS.digest, DEFAULTS.told()) == ({}, "", ())
    assert ReadingOptions(values={}).chosen == {}


def test_what_was_chosen_is_told_whatever_its_order():
    """Options by name, then words with their meanings; a digest of the same."""
    values = {"yes": "present", "no": "absent"}
    options = ReadingOptions(id_column="study", language="de", values=values)
    turned = ReadingOptions(
        values=dict(reversed(values.items())), language="de", id_column="study"
    )
    assert options.chosen == {
        "id_column": "study",
        "language": "de",
        "values": {"no": "absent", "yes": "present"},
    }
    assert options.told() == turned.told()
    assert options.told() == (
        "As the cases were read: id column 'study', language 'de', 'no' means absent, "
        "'yes' means present.",
    )
    assert options.digest == turned.digest == digest_json(options.chosen)
    others = [{"no": "absent"}, {"no": "absent", "yes": "uncertain"}]
    digests = {ReadingOptions(values=one).digest for one in (values, *others)}
    assert len(digests) == 3 and options.digest not in digests
    assert ReadingOptions(duplicates="last").told() == (
        "As the cases were read: duplicates 'last'.",
    )


def test_long_words_are_told_by_their_beginnings():
    """Forty characters of a cell, sixty of a column."""
    options = ReadingOptions(text_column="c" * 61, values={"w" * 41: "absent"})
    (told,) = options.told()
    assert f"text column '{'c' * 60}'" in told and "c" * 61 not in told
    assert f"'{'w' * 40}' means absent" in told and "w" * 41 not in told


@pytest.mark.parametrize(
    ("code", "short"),
    [("", ""), ("en", "en"), (" DE-at ", "de"), ("zh_CN", "zh"), ("yue", "yue")],
)
def test_a_language_has_two_or_three_letters(code, short):
    """Regions are left out, and case does not matter."""
    assert read_language(code, "line 2") == short


@pytest.mark.parametrize("code", ["e", "engl", "e1", "英文"])
def test_what_is_no_language_is_refused(code):
    """With where it stands."""
    with pytest.raises(DataError, match=r"line 2: .* is not a language code"):
        read_language(code, "line 2")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--value yes=present", "values={'yes': 'present'}"),
        ("--duplicates first or last", "duplicates='first' or 'last'"),
        *((f"--{one}-column", f"{one}_column") for one in ("id", "text", "system")),
        ("--patient-column", "patient_column"),
    ],
)
def test_options_of_the_command_line_have_names_in_python(option, name):
    """Wherever they stand in a message, and as often."""
    told = in_python(f"Use {option}, or {option}.")
    words = f"{name} (of loop.score.ReadingOptions)"
    assert told == f"Use {words}, or {words}."


@pytest.mark.parametrize("field", ["duplicates", "language", "encoding"])
def test_options_that_are_none_are_refused_when_they_are_made(field):
    """Not at the first row that needs them."""
    with pytest.raises(DataError):
        ReadingOptions(**{field: "nonsense?"})

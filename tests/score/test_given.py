"""A label cell says one thing, or is refused: nothing becomes "absent" in silence."""

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.given import LabelCells
from loop.score.records import ABSENT, MISSING, PRESENT, UNCERTAIN

SECRET = "Unmistakable"


def _read(cell: object, **policy: str) -> int:
    return LabelCells(policy).read(cell, "Edema", "labels.csv, line 2")


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        *((cell, PRESENT) for cell in (1, 1.0, "1", " 1.0 ", "+1", "1.", "Present")),
        *((cell, ABSENT) for cell in (0, 0.0, -0.0, "0", "-0.0", "00", "ABSENT")),
        *((cell, UNCERTAIN) for cell in (-1, -1.0, "-1", "-1.00", "uncertain")),
        *((cell, MISSING) for cell in (None, "", "  ", float("nan"), "nan", "missing")),
        (np.float64(1.0), PRESENT),
        (np.int64(-1), UNCERTAIN),
        ("no_majority", MISSING),
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
    assert _read(" YES ", yes="present", no="absent") == PRESENT
    assert _read("No", yes="present", no="absent") == ABSENT
    assert _read(True, true="Present") == PRESENT
    assert _read("u", u="uncertain") == UNCERTAIN
    assert _read("?", **{"?": "missing"}) == MISSING


def test_a_policy_goes_before_the_usual_meaning():
    """U-Ones and blank-as-negative are choices, when somebody makes them."""
    cells = LabelCells({"-1": "present", "": "absent"})
    assert cells.read(-1.0, "Edema", "line 2") == PRESENT
    assert cells.read("-1", "Edema", "line 2") == PRESENT
    assert cells.read(None, "Edema", "line 2") == ABSENT
    assert cells.read(float("nan"), "Edema", "line 2") == MISSING


def test_a_meaning_that_does_not_exist_is_refused():
    """The message lists those that do."""
    with pytest.raises(DataError, match=r"'maybe' is no meaning.*present, absent"):
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

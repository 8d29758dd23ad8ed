"""Rewriting that says the same: each kind, and that it reads the same."""

import pytest

from loop.judge import InjectionOptions, inject_errors


def rewritten(text, kind):
    """Return what many seeds make of a report by one kind of rewriting."""
    found = set()
    for seed in range(30):
        options = InjectionOptions(errors="", harmless=True, seed=seed)
        pairs = inject_errors({"a": text}, options).pairs
        found |= {one.candidate for one in pairs if one.kind == kind}
    return found


@pytest.mark.parametrize(
    ("kind", "text", "candidate"),
    [
        ("synonym", "Bony structures are intact.", "Osseous structures are intact."),
        ("synonym", "Left effusion is seen.", "Left effusion is noted."),
        ("abbreviation", "Right lower lobe opacity.", "RLL opacity."),
        ("abbreviation", "Opacity in the LLL.", "Opacity in the left lower lobe."),
        (
            "order",
            "No pleural effusion or pneumothorax.",
            "No pneumothorax or pleural effusion.",
        ),
        (
            "order",
            "Heart size is normal. Lungs are clear.",
            "Lungs are clear. Heart size is normal.",
        ),
        ("style", "There is no pleural effusion.", "No pleural effusion."),
        ("style", "There is a small left effusion.", "Small left effusion."),
        ("style", "Clear lungs.", "The lungs are clear."),
        ("number_format", "A 2 cm left nodule.", "A 20 mm left nodule."),
        ("number_format", "A 15 mm left nodule.", "A 1.5 cm left nodule."),
        ("number_format", "Left 4th rib fracture.", "Left fourth rib fracture."),
    ],
)
def test_it_is_worded_otherwise(kind, text, candidate):
    """As a radiologist may have done."""
    assert candidate in rewritten(text, kind)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("order", "There is a nodule. It is calcified."),
        ("order", "1. Left effusion. 2. Right nodule."),
        ("number_format", "An 8 mm left nodule."),
        ("number_format", "A 2 x 3 cm left nodule."),
        ("synonym", "Left effusion."),
    ],
)
def test_there_is_no_place(kind, text):
    """It would say something else, or less exactly."""
    assert rewritten(text, kind) == set()


def test_what_reads_otherwise_is_left_out_and_counted():
    """The reader of findings does not know every abbreviation."""
    made = inject_errors(
        {"a": "The heart size is within normal limits."},
        InjectionOptions(errors="", harmless=True),
    )
    assert made.read_otherwise == {"abbreviation": 1}
    assert not any(one.kind == "abbreviation" for one in made.pairs)


def test_a_comma_is_no_decimal_point():
    """1,5 is no English number."""
    assert not any("," in one for one in rewritten("A 1.5 cm nodule.", "number_format"))

"""Rewriting that says the same: each kind, and that it reads the same."""

import pytest

from loop.judge import InjectionOptions, inject_errors
from loop.judge.injection.chance import Chance
from loop.judge.injection.harmless import HarmlessRewriter
from loop.judge.injection.inject import _open_reader
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.report_lines import line_report
from loop.judge.injection.text_changes import apply_changes


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


def offered(text, kind):
    """Return every way in which a report can be reworded, with its sentences."""
    bank = read_bank().bank
    report = line_report(_open_reader().reader, bank, text)
    found = HarmlessRewriter(bank).options(kind, report, Chance("0"))
    return {
        (apply_changes(text, one.changes), *sorted(one.lines), one.changes[0].tag)
        for one in found
    }


HEART, LUNGS = "Heart size is normal.", "Lungs are clear."


@pytest.mark.parametrize(
    ("kind", "text", "ways"),
    [
        ("number_format", "A 2 cm left nodule.", [("A 20 mm left nodule.", 0, "unit")]),
        ("number_format", "A 10 mm nodule.", [("A 1 cm nodule.", 0, "unit")]),
        ("number_format", "A 9 mm nodule.", []),
        ("number_format", "A 12.5 mm nodule.", []),
        ("number_format", "A 5 CM mass.", [("A 50 mm mass.", 0, "unit")]),
        (
            "number_format",
            "A 25mm nodule and a 30 mm mass.",
            [
                ("A 2.5 cm nodule and a 30 mm mass.", 0, "unit"),
                ("A 25 mm nodule and a 30 mm mass.", 0, "pattern"),
                ("A 25mm nodule and a 3 cm mass.", 0, "unit"),
            ],
        ),
        ("number_format", "A 20 mm by 3 nodule.", []),
        ("number_format", "Nodule of 2-3 cm.", []),
        (
            "number_format",
            "Two nodules of 1 cm.",
            [
                ("2 nodules of 1 cm.", 0, "pattern"),
                ("Two nodules of 10 mm.", 0, "unit"),
            ],
        ),
        ("order", "No effusion or effusion.", []),
        (
            "order",
            f"Without edema or consolidation. {HEART} {LUNGS}",
            [
                (f"Without consolidation or edema. {HEART} {LUNGS}", 0, "list"),
                (
                    f"{HEART} Without edema or consolidation. {LUNGS}",
                    *(0, 1, "sentences"),
                ),
                (
                    f"Without edema or consolidation. {LUNGS} {HEART}",
                    *(1, 2, "sentences"),
                ),
            ],
        ),
        ("order", f"{HEART} {LUNGS}", [(f"{LUNGS} {HEART}", 0, 1, "sentences")]),
        # Two spaces, two words, another end, a heading, and a small letter.
        ("order", f"{HEART}  {LUNGS}", []),
        # What went before does not hinder it, and what fails keeps no other from it.
        (
            "order",
            f"It is calcified. {HEART} {LUNGS}",
            [(f"It is calcified. {LUNGS} {HEART}", 1, 2, "sentences")],
        ),
        (
            "order",
            "No effusion or effusion, without edema or consolidation.",
            [("No effusion or effusion, without consolidation or edema.", 0, "list")],
        ),
        (
            "style",
            "Clear lungs 3. There is no effusion.",
            [("Clear lungs 3. No effusion.", 1, "pattern")],
        ),
        (
            "style",
            "There is no pleural effusion. Clear lungs.",
            [
                ("No pleural effusion. Clear lungs.", 0, "pattern"),
                ("There is no pleural effusion. The lungs are clear.", 1, "pattern"),
            ],
        ),
        (
            "number_format",
            "A 2 cm left nodule 3. No mass. A 3 cm mass.",
            [("A 2 cm left nodule 3. No mass. A 30 mm mass.", 2, "unit")],
        ),
        (
            "abbreviation",
            "An LLL mass and RLL mass.",
            [("An LLL mass and right lower lobe mass.", 0, "words")],
        ),
        ("order", f"{HEART} Lungs clear.", []),
        ("order", f"{HEART[:-1]}! {LUNGS}", []),
        ("order", f"Findings: heart size is normal. {LUNGS}", []),
        ("order", f"{HEART.lower()} {LUNGS}", []),
        ("order", f"{LUNGS} {LUNGS}", []),
        # What is said next speaks of the sentence before it.
        ("order", f"{HEART} {LUNGS} It is calcified.", []),
        (
            "synonym",
            "BONY STRUCTURES ARE INTACT.",
            [("OSSEOUS STRUCTURES ARE INTACT.", 0, "words")],
        ),
        (
            "synonym",
            "Bony structures and osseous structures are intact.",
            [
                ("Bony structures and bony structures are intact.", 0, "words"),
                ("Osseous structures and osseous structures are intact.", 0, "words"),
            ],
        ),
        # What does not fit is passed over, and the next words are looked at.
        (
            "synonym",
            "An enlarged heart and intact bony structures.",
            [("An enlarged heart and intact osseous structures.", 0, "words")],
        ),
        # A heart that is enlarged has another article.
        ("synonym", "There is an enlarged heart.", []),
        # "An LLL" is spoken "an el el el".
        ("abbreviation", "There is an LLL mass.", []),
        ("abbreviation", "There is a right lower lobe mass.", []),
        (
            "abbreviation",
            "There is a mass in the RLL.",
            [("There is a mass in the right lower lobe.", 0, "words")],
        ),
    ],
)
def test_every_place_is_offered_and_no_other(kind, text, ways):
    """Each by itself: which sentences it changes, and how."""
    assert offered(text, kind) == set(ways)

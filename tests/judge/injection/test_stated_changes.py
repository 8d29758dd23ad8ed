"""Changes that an answer states: where code puts them, and when it puts none."""

import pytest

from loop.judge.injection.inject import _open_reader
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.report_lines import line_report
from loop.judge.injection.stated_changes import (
    NO_SENTENCE,
    NOT_THERE,
    OTHER_NUMBER,
    SOMETHING_ELSE,
    TWICE,
    number_sentences,
    place_changes,
)
from loop.prompts.outputs.report_changes import StatedChange, StatedRewrite

REPORT = (
    "Normal heart. There is a small left effusion.\n\nNo pneumothorax. Clear lungs."
)
EFFUSION = "There is a small left effusion."
LARGE = REPORT.replace("small", "large")


def placed(changed, *changes, kind="severity", number=None, report=REPORT):
    """Return the candidate, each change without its kind, and the problem."""
    bank = read_bank().bank
    found = place_changes(
        line_report(_open_reader().reader, bank, report),
        bank,
        StatedRewrite(changed, tuple(StatedChange(*one) for one in changes)),
        kind=kind,
        number=len(changes) if number is None else number,
    )
    assert {one.kind for one in found.changes} <= {kind}
    told = [
        (one.tag, one.start, one.end, one.before, one.after) for one in found.changes
    ]
    assert {one.error for one in found.changes} == {*range(1, len(told) + 1)}
    return found.candidate, told, found.problem


def test_sentences_are_numbered_from_0_each_in_a_line():
    """With its full stop, and every white space as one."""
    bank = read_bank().bank
    report = line_report(_open_reader().reader, bank, f"{REPORT} Old\nmass.")
    assert number_sentences(report) == (
        f"0: Normal heart.\n1: {EFFUSION}\n2: No pneumothorax.\n3: Clear lungs.\n"
        "4: Old mass."
    )


@pytest.mark.parametrize(
    ("changed", "change", "told"),
    [
        (LARGE, (1, "small", "large"), ("replaced", 25, 30, "small", "large")),
        # A whole sentence, of which one word changes; the answer's white space.
        (
            LARGE.replace("\n\n", " "),
            (1, EFFUSION, EFFUSION.replace("small", "large")),
            ("replaced", 25, 30, "small", "large"),
        ),
        (
            REPORT.replace("Clear", "Bad"),
            (3, " Clear ", "Bad "),
            ("replaced", 64, 69, "Clear", "Bad"),
        ),
        # Beside a sentence, before it, and at its end before the full stop.
        (
            f"{REPORT} Old mass.",
            (3, "", "Old mass."),
            ("added", 76, 76, "", " Old mass."),
        ),
        (
            REPORT.replace("Clear", "Old mass. Clear"),
            (3, " ", "Old mass."),
            ("added", 64, 64, "", "Old mass. "),
        ),
        (
            REPORT.replace("lungs", "lungs and a mass"),
            (3, "", "and a mass"),
            ("added", 75, 75, "", " and a mass"),
        ),
        # The first, the last and another sentence go, with the space that is left.
        (
            REPORT.replace("Normal heart. ", ""),
            (0, "Normal heart.", ""),
            ("sentence", 0, 14, "Normal heart. ", ""),
        ),
        (
            REPORT.replace("Normal heart. ", ""),
            (0, "Normal heart", " "),
            ("sentence", 0, 14, "Normal heart. ", ""),
        ),
        (
            REPORT.replace(" Clear lungs.", ""),
            (3, "Clear lungs.", ""),
            ("sentence", 63, 76, " Clear lungs.", ""),
        ),
        (
            REPORT.replace(f"{EFFUSION}\n\n", ""),
            (1, EFFUSION, ""),
            ("sentence", 14, 47, f"{EFFUSION}\n\n", ""),
        ),
        # Words go: before other words, and before the full stop.
        (
            REPORT.replace("small ", ""),
            (1, "small", ""),
            ("clause", 25, 31, "small ", ""),
        ),
        (
            REPORT.replace(" left effusion", ""),
            (1, "left effusion", ""),
            ("clause", 30, 44, " left effusion", ""),
        ),
    ],
)
def test_a_change_is_made_where_its_words_stand(changed, change, told):
    """Once in their sentence; what stays at both ends of it is no part of it."""
    candidate, changes, problem = placed(changed, change)
    assert (changes, problem) == ([told], "")
    assert " ".join(candidate.split()) == " ".join(changed.split())


def test_changes_are_told_in_the_order_of_the_text():
    """Whatever their order in the answer; each counts as one error."""
    changed = LARGE.replace("Clear", "Bad")
    candidate, changes, problem = placed(
        changed, (3, "Clear", "Bad"), (1, "small", "large")
    )
    assert (candidate, problem) == (changed, "")
    assert [one[3:] for one in changes] == [("small", "large"), ("Clear", "Bad")]


@pytest.mark.parametrize(
    ("changed", "changes", "number", "problem"),
    [
        (LARGE, [(1, "small", "large")], 2, OTHER_NUMBER),
        (LARGE, [(4, "small", "large")], 1, NO_SENTENCE),
        (LARGE, [(1, "small", "large"), (1, "left", "right")], 2, TWICE),
        (LARGE, [(0, "small", "large")], 1, NOT_THERE),
        # Twice in its sentence.
        (LARGE, [(1, "a", "large")], 1, NOT_THERE),
        (REPORT, [(3, "", " ")], 1, NOT_THERE),
        (LARGE, [(1, "small", "huge")], 1, SOMETHING_ELSE),
        (LARGE, [(1, "is", "large")], 1, SOMETHING_ELSE),
        (REPORT, [(3, "Clear", "Clear")], 1, "nothing is changed"),
    ],
)
def test_an_answer_that_does_not_fit_its_report_is_refused(
    changed, changes, number, problem
):
    """The whole of it, by one reason that quotes nothing."""
    assert placed(changed, *changes, number=number) == ("", [], problem)


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("No effusion.", ("There is a small left", "No")),
        ("Normal lungs.", ("There is a small left effusion", "Normal lungs")),
    ],
)
def test_an_omission_that_denies_is_told_apart(new, told):
    """Of another kind the same words only stand in the place of others."""
    changed, change = REPORT.replace(EFFUSION, new), (1, EFFUSION, new)
    end = 14 + len(told[0])
    for kind, tag in (("omission", "omission_by_negation"), ("severity", "replaced")):
        _, changes, problem = placed(changed, change, kind=kind)
        assert (changes, problem) == ([(tag, 14, end, *told)], "")


def test_an_omission_writes_nothing_that_was_not_there():
    """Words that only go are a clause, however much of the sentence was given."""
    changed, change = REPORT.replace("a small left", "a left"), (
        1, "a small left", "a left",
    )  # fmt: skip
    for kind, tag in (("omission", "clause"), ("severity", "replaced")):
        _, changes, _ = placed(changed, change, kind=kind)
        assert changes == [(tag, 25, 31, "small ", "")]
    air = REPORT.replace("No pneumothorax", "No air")
    assert placed(air, (2, "No pneumothorax", "No air"), kind="omission") == (
        "",
        [],
        "an omission adds a statement",
    )
    assert placed(air, (2, "No pneumothorax", "No air"))[1] == [
        ("replaced", 50, 62, "pneumothorax", "air")
    ]


def test_marks_that_a_model_writes_otherwise_are_the_same():
    """Quotation marks and kinds of space; a number of a list may be quoted."""
    quoted = 'A "small" mass.'
    curly = ("\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}\u00a0")
    changed, original = (f"A {word.join(curly)}mass" for word in ("large", "small"))
    candidate, changes, problem = placed(
        f"{changed}.", (0, original, 'A "large" mass'), report=quoted
    )
    assert (candidate, problem) == ('A "large" mass.', "")
    assert changes == [("replaced", 3, 8, "small", "large")]
    _, changes, problem = placed(
        "1. Tumor. 2. Clear.", (0, "1. Mass", "1. Tumor"), report="1. Mass. 2. Clear."
    )
    assert (changes, problem) == ([("replaced", 3, 7, "Mass", "Tumor")], "")

"""Failing cases: what is listed, what is left out, and what is never shown."""

import csv
import io
from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.records import Mark, Span, Status, Value, ValueCode
from loop.evaluate.failures import (
    ALL_LABELS,
    Failure,
    FailureKind,
    Failures,
    count_kinds,
    failing_cases,
    failures_table,
    find_failures,
    find_open_cases,
    open_cases,
    open_for_review,
    read_evidence,
)
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from tests.evaluate.scenes import TAXONOMY, outcome, reference, silent


def failures(outcomes, rows):
    """Return (case, label, kind) of every failure."""
    found = find_failures(iter(outcomes), reference(rows), TAXONOMY)
    return [(row.case_id, row.label, row.kind) for row in found]


def test_each_kind_is_told_apart():
    """Wrong both ways, hedged, unparsed and failed."""
    outcomes = [
        outcome("a", {"edema": 1}),
        outcome("b", {"edema": 0, "fracture": 1}),
        outcome("c", {"edema": -1}),
        silent("d"),
        silent("e", Status.ENGINE_FAILED),
    ]
    rows = {case: {"edema": 0, "no_finding": ValueCode.UNCERTAIN} for case in "abcde"}
    rows["b"] |= {"edema": 1, "fracture": 1}
    assert failures(outcomes, rows) == [
        ("a", "edema", FailureKind.FALSE_POSITIVE),
        ("b", "edema", FailureKind.FALSE_NEGATIVE),
        ("c", "edema", FailureKind.UNCERTAIN),
        ("d", ALL_LABELS, FailureKind.UNPARSED),
        ("e", ALL_LABELS, FailureKind.ENGINE_FAILED),
    ]


def test_what_the_engine_noted_of_an_answer_stands_beside_it():
    """Sections that disagree are the first thing to look at; other repairs are not."""
    repairs = (
        "edema: findings and impression disagree",
        "edema: bare value",
        "fracture: a misspelt word corrected",
    )
    wrong = replace(outcome("a", {"edema": 1, "fracture": 0}), repairs=repairs)
    rows = {"a": {"edema": 0, "fracture": 1}}
    found = list(find_failures(iter([wrong]), reference(rows), TAXONOMY))
    assert {row.label: row.problem for row in found if row.label != "no_finding"} == {
        "edema": "findings and impression disagree",
        "fracture": "a misspelt word corrected",
    }


def test_an_undecided_reference_has_no_failures():
    """Where the readers are uncertain no answer is wrong."""
    row = {"edema": ValueCode.UNCERTAIN, "no_finding": ValueCode.UNCERTAIN}
    assert failures([outcome("a", {"edema": 1})], {"a": row}) == []


def test_not_coded_counts_as_absent_and_stays_visible():
    """The reviewer sees that nobody judged the case absent."""
    row = {"edema": ValueCode.NOT_CODED, "no_finding": ValueCode.UNCERTAIN}
    standard = reference({"a": row})
    found = list(find_failures(iter([outcome("a", {"edema": 1})]), standard, TAXONOMY))
    assert [(f.kind, f.reference) for f in found] == [
        (FailureKind.FALSE_POSITIVE, Mark.NOT_CODED)
    ]
    assert found[0].predicted is Value.PRESENT
    assert found[0].spans == (Span(0, 4),)


def test_derived_no_finding_fails_too():
    """A false positive elsewhere takes "No Finding" away."""
    found = failures([outcome("a", {"edema": 1})], {"a": {"no_finding": 1}})
    assert ("a", "no_finding", FailureKind.FALSE_NEGATIVE) in found


def test_evidence_is_shown_with_what_stands_around_it(workspace, tmp_path):
    """On one line, marked, and cut at the ends of the text; without spans nothing."""
    source = tmp_path / "dev.csv"
    source.write_text('case_id,text\na,"Wet lungs.\nLeft effusion."\nb,Dry.\n')
    options = ImportOptions(name="dev", role="dev", source="-", licence="-")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    kind, seen = FailureKind.FALSE_POSITIVE, (Span(4, 9), Span(16, 24))
    rows = (
        Failure("a", "edema", kind, Value.PRESENT, Mark.ABSENT, seen),
        Failure("b", ALL_LABELS, FailureKind.UNPARSED, None, None, ()),
    )
    told = read_evidence(workspace, Failures("run", "dev", rows), around=6)
    assert told == {
        ("a", "edema"): "Wet [lungs]. Left | Left [effusion].",
        ("b", ALL_LABELS): "",
    }
    none = read_evidence(workspace, Failures("run", "dev", rows[:1]), around=0)
    assert none == {("a", "edema"): "[lungs] | [effusion]"}


def test_forty_characters_stand_around_evidence_unless_asked(workspace, tmp_path):
    """On each side; what is left out is not marked."""
    source = tmp_path / "dev.csv"
    source.write_text(f"case_id,text\na,{'b' * 41}lungs{'c' * 41}\n")
    options = ImportOptions(name="dev", role="dev", source="-", licence="-")
    import_cohort(workspace, source, options, actor=Actor(name="t"))
    kind, seen = FailureKind.FALSE_POSITIVE, (Span(41, 46),)
    row = Failure("a", "edema", kind, Value.PRESENT, Mark.ABSENT, seen)
    (told,) = read_evidence(workspace, Failures("run", "dev", (row,))).values()
    assert told == f"{'b' * 40}[lungs]{'c' * 40}"


def test_cases_whose_reference_is_uncertain_are_listed_with_their_answers():
    """Every answer, and what is not answered; none of these is a failure."""
    outcomes = [
        outcome("a", {"edema": 1}),
        outcome("b", {"edema": 0}),
        outcome("c", {"edema": -1}),
        silent("d"),
        outcome("e", {"edema": 1}),
    ]
    rows = {case: {"edema": ValueCode.UNCERTAIN} for case in "abcd"}
    rows["e"] = {"edema": 1}
    found = list(find_open_cases(outcomes, reference(rows), TAXONOMY))
    edema = [one for one in found if one.label == "edema"]
    assert [(one.case_id, one.predicted) for one in edema] == [
        ("a", Value.PRESENT),
        ("b", Value.ABSENT),
        ("c", Value.UNCERTAIN),
        ("d", None),
    ]
    assert edema[0].spans == (Span(0, 4),)
    assert edema[3].problem == "no JSON object found"


def test_a_derived_answer_is_listed_like_any_other():
    """No Finding has no evidence, and follows from the others."""
    rows = {"a": {"no_finding": ValueCode.UNCERTAIN}}
    (one,) = find_open_cases([outcome("a", {})], reference(rows), TAXONOMY)
    assert (one.label, one.predicted, one.spans) == ("no_finding", Value.PRESENT, ())


def test_a_case_outside_the_reference_hides_no_other():
    """It contradicts nothing; that it was not answered is said all the same."""
    outcomes = [
        outcome("x", {"edema": 1}),
        silent("y"),
        outcome("a", {"edema": 1}),
    ]
    row = {"edema": 0, "no_finding": ValueCode.UNCERTAIN}
    assert failures(outcomes, {"a": row}) == [
        ("y", ALL_LABELS, FailureKind.UNPARSED),
        ("a", "edema", FailureKind.FALSE_POSITIVE),
    ]
    rows = {"a": {"edema": ValueCode.UNCERTAIN}}
    found = list(find_open_cases(outcomes, reference(rows), TAXONOMY))
    assert [(one.case_id, one.label) for one in found] == [("a", "edema")]


ABSENT, PRESENT, UNCERTAIN = 0, 1, -1


@pytest.mark.parametrize(
    ("mark", "answer", "kind"),
    [
        (ValueCode.PRESENT, PRESENT, None),
        (ValueCode.PRESENT, ABSENT, FailureKind.FALSE_NEGATIVE),
        (ValueCode.PRESENT, UNCERTAIN, FailureKind.UNCERTAIN),
        (ValueCode.ABSENT, PRESENT, FailureKind.FALSE_POSITIVE),
        (ValueCode.ABSENT, ABSENT, None),
        (ValueCode.ABSENT, UNCERTAIN, FailureKind.UNCERTAIN),
        (ValueCode.NOT_CODED, PRESENT, FailureKind.FALSE_POSITIVE),
        (ValueCode.NOT_CODED, ABSENT, None),
        (ValueCode.NOT_CODED, UNCERTAIN, FailureKind.UNCERTAIN),
        *((mark, answer, None)
          for mark in (ValueCode.UNCERTAIN, ValueCode.MISSING)
          for answer in (PRESENT, ABSENT, UNCERTAIN)),
    ],
)  # fmt: skip
def test_every_answer_to_every_mark(mark, answer, kind):
    """Only where the reference decides can an answer fail, and then in one way."""
    row = {"edema": mark, "no_finding": ValueCode.UNCERTAIN}
    told = failures([outcome("a", {"edema": answer})], {"a": row})
    assert told == ([("a", "edema", kind)] if kind else [])


MIXED = {
    "e": ("Small effusion.", 1),
    "f": ("Fluid at the base.", 1),
    "g": ("Kein Erguss und kein Infiltrat, das Herz ist nicht groß.", 1),
    "n": ("Large effusion.", 0),
    "u": ("Moderate effusion.", -1),
}
"""Text and reference: right, missed, not read, invented, and open."""


@pytest.fixture
def mixed(trials):
    """Return a workspace with a run in which every kind of answer occurs, and its id.

    The prompt knows effusions only.
    """
    path = trials.folder / "mixed.csv"
    rows = [f'{case},"{text}",{mark}' for case, (text, mark) in MIXED.items()]
    path.write_text("\n".join(["case_id,text,pleural_effusion", *rows]))
    options = ImportOptions(
        name="dev", role="dev", source="-", licence="-", replace=True
    )
    import_cohort(trials.workspace, path, options, actor=Actor(name="t"))
    trials.version(1, "effusion")
    return trials.workspace, trials.run("tiny@v1")


MISSED, INVENTED = FailureKind.FALSE_NEGATIVE, FailureKind.FALSE_POSITIVE
UNREAD = FailureKind.ENGINE_FAILED


def test_cases_are_those_of_the_labels_and_kinds_that_are_asked_for(mixed):
    """A case without an answer concerns every label, and stands first."""
    workspace, run = mixed
    unread, missed, invented = ("g", UNREAD), ("f", MISSED), ("n", INVENTED)
    for chosen, expected in (
        ({}, [unread, missed, invented]),
        ({"labels": ["Pleural Effusion"]}, [unread, missed, invented]),
        ({"labels": ["edema"]}, [unread]),
        ({"labels": ["edema"], "kinds": [MISSED]}, []),
        ({"kinds": [INVENTED, UNREAD]}, [unread, invented]),
        ({"kinds": []}, []),
    ):
        found = failing_cases(workspace, run, **chosen)
        assert (found.run_id, found.cohort) == (run, "dev")
        assert [(one.case_id, one.kind) for one in found.rows] == expected, chosen
        labels = {one.label for one in found.rows if one.kind is not UNREAD}
        assert labels <= {"pleural_effusion"}
    for labels, cases in (
        (None, ["u"]),
        (["Pleural Effusion"], ["u"]),
        (["edema"], []),
    ):
        rows = open_cases(workspace, run, labels=labels).rows
        effusions = [one for one in rows if one.label == "pleural_effusion"]
        assert [one.case_id for one in effusions] == cases, labels
        assert {one.predicted for one in effusions} <= {Value.PRESENT}


def test_failing_cases_of_a_holdout_stay_unseen(trials):
    """Whoever reviews them has used the holdout up; a development cohort is open."""
    assert open_for_review(trials.workspace, "dev").name == "dev"
    path = trials.folder / "sealed.csv"
    path.write_text("case_id,text,pleural_effusion\ns1,Other words.,1\n")
    options = ImportOptions(name="sealed", role="holdout", source="-", licence="-")
    import_cohort(trials.workspace, path, options, actor=Actor(name="t"))
    with pytest.raises(DataError, match=r"sealed is a holdout.*Review a cohort with"):
        open_for_review(trials.workspace, "sealed")


def test_rows_are_counted_and_written_with_empty_cells_where_nothing_was_said():
    """Every kind has a count; a case without an answer has neither value nor mark."""
    seen = (Span(4, 9), Span(16, 24))
    rows = (
        Failure("a", ALL_LABELS, FailureKind.UNPARSED, None, None, (), "no JSON"),
        Failure("b", "edema", INVENTED, Value.PRESENT, Mark.ABSENT, seen),
        Failure("c", "edema", INVENTED, Value.PRESENT, Mark.NOT_CODED, ()),
    )
    assert count_kinds(rows) == {
        FailureKind.FALSE_POSITIVE: 2,
        FailureKind.FALSE_NEGATIVE: 0,
        FailureKind.UNCERTAIN: 0,
        FailureKind.UNPARSED: 1,
        FailureKind.ENGINE_FAILED: 0,
    }
    table = failures_table(
        Failures("r1", "dev", rows),
        {(case, label): {"why": case} for case, label in (("a", ""), ("b", "edema"))},
    )
    told = list(csv.DictReader(io.StringIO(table)))
    names = ("case_id", "predicted", "reference", "spans", "problem", "why")
    assert [tuple(row[name] for name in names) for row in told] == [
        ("a", "", "", "", "no JSON", "a"),
        ("b", "present", "absent", "4-9 16-24", "", "b"),
        ("c", "present", "not_coded", "", "", ""),
    ]
    assert {(row["on_run"], row["on_cohort"]) for row in told} == {("r1", "dev")}

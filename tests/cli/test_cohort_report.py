"""What importing cohorts and votes says, from first line to last."""

from dataclasses import replace

import pytest

from loop.cli import cohort_report
from loop.core.records import Mark
from loop.labels.dry_run import ImportDryRun
from loop.labels.expert_ratings import RatingsReport
from loop.labels.importing.importer import ImportReport
from loop.labels.majority import (
    Adjudications,
    MajorityRule,
    MarkChange,
    MarkChanges,
    Superseded,
)
from loop.labels.overlap import OverlapKind, PairReport, Shared
from loop.labels.votes import Replaced, VotesReport

UNKNOWN = tuple(f"label_{n}" for n in range(1, 13))


def imported(**changes):
    """Return a report of a source in which something is wrong in every way."""
    told = {
        "cohort": "dev",
        "role": "dev",
        "format": "csv",
        "cases": 20,
        "digest": "0" * 64,
        "non_chest": 2,
        "empty": 1,
        "unusable": {"not indexed": 3},
        "duplicates": 1,
        "examples": {
            "non-chest": ("a1", "a 2"),
            "empty": ("b1",),
            "duplicate text": ("d1",),
        },
        "languages": {"en": 15, "de": 3, "und": 2},
        "no_cues": ("de", "und"),
        "patients": 7,
        "inputs": ("text",),
        "references": 0,
        "systems": {},
        "silent": 0,
        "ratings": None,
        "reference": 1,
        "unknown": UNKNOWN,
        "missing_marks": 4,
        "columns": {"id": "case_id", "Edema": "edema"},
        "unused": ("age",),
        "numbered": True,
        "licence": "CC0",
        "citation": "Example 2026",
    }
    return ImportReport(**{**told, **changes})


IMPORTED = """\
cohort dev (dev, csv)
  cases       20
  ids         row-000001 and so on: the rows were numbered, as asked
  patients    7
  languages   en 15, de 3, und 2
  warning     the engine rules refuses 5 cases: no cues (labels/cues/<language>.yaml) \
for de, und. If a language was guessed wrongly (und: not recognised), import again \
with --language and --replace
  left out    2 non-chest (a1, 'a 2')
  left out    1 empty (b1)
  left out    3 not indexed
  duplicates  1 text, kept (d1)
  reference   v1, from label columns or coding
  unknown     label_1, label_2, label_3, label_4, label_5, label_6, label_7, label_8, \
label_9, label_10 and 2 more: the reference has no column, so no case is absent. Add a \
column (Open-i: a rule in the crosswalk) and import again with --replace, or add votes
  missing     4 label cells, not read as absent
  not used    columns 'age'
  licence     CC0
  cite        Example 2026
"""


def test_an_import_is_told_with_all_that_was_left_out(capsys):
    """Numbers with the first ids, and what a reference says nothing of."""
    cohort_report.say_import(imported())
    assert capsys.readouterr().out == IMPORTED


BARE = {
    "unusable": {},
    "no_cues": (),
    "non_chest": 0,
    "reference": None,
    "unknown": (),
    "missing_marks": 0,
    "unused": (),
    "numbered": False,
    "citation": "",
}
"""Nothing that would have to be told."""


def test_an_import_of_which_nothing_is_missing_is_short(capsys):
    """What there is none of is not named, but the empty ones: they are a check."""
    none = {"empty": 0, "duplicates": 0, "examples": {}, "patients": 0}
    report = imported(**BARE, **none, languages={"en": 20})
    cohort_report.say_import(report)
    assert capsys.readouterr().out == (
        "cohort dev (dev, csv)\n"
        "  cases       20\n"
        "  patients    not known\n"
        "  languages   en 20\n"
        "  left out    0 empty\n"
        "  duplicates  0 texts, kept\n"
        "  licence     CC0\n"
    )


@pytest.mark.parametrize(("number", "more"), [(10, ""), (11, " and 1 more")])
def test_ten_labels_are_named_and_the_rest_is_counted(number, more):
    """As many as a line takes."""
    labels = [f"label_{n}" for n in range(number)]
    named = ", ".join(labels[:10])
    assert cohort_report._name_unknown(labels).startswith(f"{named}{more}: the ")


def test_pairs_are_told_with_their_systems_and_raters(capsys):
    """A pair whose candidate is empty is kept, so that none is left out for it."""
    ratings = RatingsReport(
        cohort="pairs",
        number=2,
        raters=("Dr A", "Dr B"),
        rated=1,
        ratings=4,
        errors=3,
        dimensions=("overall 1-5", "style 0-1"),
    )
    report = imported(
        cohort="pairs",
        inputs=("reference", "candidate"),
        references=10,
        systems={"m1": 12, "": 8},
        silent=3,
        ratings=ratings,
        duplicates=2,
        **BARE,
    )
    cohort_report.say_import(report)
    assert capsys.readouterr().out == (
        "cohort pairs (dev, csv)\n"
        "  pairs       20, of reference, candidate\n"
        "  references  10\n"
        "  systems     m1 12, not named 8\n"
        "  silent      3 with an empty candidate, kept\n"
        "  patients    7\n"
        "  languages   en 15, de 3, und 2\n"
        "  duplicates  2 texts, kept (d1)\n"
        "  ratings     v2 of pairs, 1 pair rated\n"
        "  raters      Dr A, Dr B\n"
        "  points      4 (overall 1-5, style 0-1)\n"
        "  errors      3 marked\n"
        "  licence     CC0\n"
    )
    cohort_report.say_ratings(replace(ratings, dimensions=(), rated=0))
    assert "  ratings     v2 of pairs, 0 pairs rated\n" in (
        said := capsys.readouterr().out
    )
    assert "  points      4\n" in said
    cohort_report.say_ratings(RatingsReport(cohort="held", number=3))
    assert capsys.readouterr().out == "  ratings     v3 of held, sealed\n"


SHARED = PairReport(
    first="dev",
    second="held",
    shared=(
        Shared(OverlapKind.CASE, 7, (("a1", "a1"), ("a 2", "b2"))),
        Shared(OverlapKind.TEXT, 1, (("c1", "c2"),)),
    ),
    not_checked=("patients: dev has none",),
    candidates=Shared(OverlapKind.CANDIDATE, 2, (("a1", "b1"),)),
)
APART = PairReport(first="dev", second="other", shared=(), not_checked=())


def test_a_dry_run_tells_what_is_shared_and_what_is_replaced(capsys):
    """After all that an import says; with the way to make cohorts separate."""
    found = ImportDryRun(imported(), (SHARED, APART), ("broken",))
    replaced = {"cases": 20, "references": [1, 2], "votes": True}
    cohort_report.say_import_dry_run(found, replaced)
    said = capsys.readouterr().out
    assert said.startswith(IMPORTED)
    assert said.removeprefix(IMPORTED) == (
        "  column      id -> case_id\n"
        "  column      Edema -> edema\n"
        "  replaces    20 cases, references v1, v2, readers' votes; all kept in "
        ".ranloop/replaced/\n"
        "              runs on these cases cannot be scored if a case differs\n"
        "  shared      with held:\n"
        "              7 cases: a1, 'a 2' = b2 ...\n"
        "              1 text: c1 = c2\n"
        "              not compared: patients: dev has none\n"
        "              2 candidates stand in both dev and held, beside other "
        "references or as one: no overlap, since models write the same normal report "
        "for many, "
        "and what raters say is of a pair\n"
        "  shared      with other: nothing\n"
        "  warning     broken could not be compared: it is not as recorded\n"
        "  warning     cohorts of different roles must be separate: leave these cases "
        "out with --exclude, or use --id-prefix if ids only look alike\n"
    )


@pytest.mark.parametrize(
    ("replaced", "told"),
    [
        (
            {"cases": 1, "references": [], "votes": False},
            "  replaces    1 case, references none; all kept in .ranloop/replaced/\n",
        ),
        (
            {"cases": None, "references": None, "votes": True},
            "  replaces    a cohort whose file is damaged, references none, readers' "
            "votes; all kept in .ranloop/replaced/\n",
        ),
    ],
)
def test_what_is_replaced_is_named_as_far_as_it_is_known(capsys, replaced, told):
    """Separate cohorts have no warning."""
    found = ImportDryRun(imported(columns={}), (APART,), ())
    cohort_report.say_import_dry_run(found, replaced)
    assert capsys.readouterr().out.removeprefix(IMPORTED) == (
        told + "              runs on these cases cannot be scored if a case differs\n"
        "  shared      with other: nothing\n"
    )


def test_a_dry_run_is_whole_as_json():
    """With the votes that a source carries, or null."""
    found = ImportDryRun(imported(), (SHARED, APART), ("broken",))
    data = cohort_report.import_dry_run_data(found, None)
    assert data["dry_run"] is True and data["votes"] is None
    assert data["cases"] == 20 and data["unusable"] == {"not indexed": 3}
    assert data["separate"] is False and data["not_compared"] == ["broken"]
    assert data["pairs"] == [
        {
            "first": "dev",
            "second": "held",
            "shared": [
                {
                    "kind": "case",
                    "number": 7,
                    "examples": (("a1", "a1"), ("a 2", "b2")),
                },
                {"kind": "text", "number": 1, "examples": (("c1", "c2"),)},
            ],
            "not_checked": ("patients: dev has none",),
            "candidates": {
                "kind": "candidate",
                "number": 2,
                "examples": (("a1", "b1"),),
            },
        },
        {
            "first": "dev",
            "second": "other",
            "shared": [],
            "not_checked": (),
            "candidates": None,
        },
    ]
    report = cohort_report.import_dry_run_data(found, voted())["votes"]
    assert report == cohort_report.votes_data(voted())


def change(case, was, becomes, label="edema"):
    """Return one mark that changes."""
    return MarkChange(case, label, was, becomes)


CHANGES = MarkChanges(
    rows=(
        change("c1", Mark.PRESENT, Mark.NO_MAJORITY),
        change("c2", Mark.PRESENT, Mark.NO_MAJORITY),
        change("c3", Mark.ABSENT, Mark.PRESENT),
        change("c3", Mark.MISSING, Mark.ABSENT, "fracture"),
    )
)


def voted(**changes):
    """Return a report of the votes of four readers, each of a different kind."""
    told = {
        "cohort": "dev",
        "readers": ("Ann", "Ben", "Cai", "Dee"),
        "added": ("Ann",),
        "replaced": (
            Replaced("Ben", 10, 3, ("edema", "fracture")),
            Replaced("Cai", 1, 0, ()),
        ),
        "discarded": True,
        "votes": 40,
        "rule": MajorityRule(need=2, minimum_readers=3),
        "reference": 2,
        "marks": {"present": 5, "absent": 30, "no_majority": 1},
        "not_voted": ("hernia", "mass"),
        "superseded": Superseded(corrections=1, missing=6),
        "changes": CHANGES,
        "too_few": 2,
        "adjudications": Adjudications(
            kept=3, lost=tuple((f"c{n}", "edema") for n in range(1, 13))
        ),
        "not_blind": ("Dee",),
        "digest": "0" * 64,
        "sealed": False,
    }
    return VotesReport(**{**told, **changes})


def test_votes_are_told_with_all_that_they_change(capsys):
    """Whose they are, what they make, what they take away, case by case."""
    cohort_report.say_votes(voted())
    assert capsys.readouterr().out == (
        "reference v2 of dev: 40 votes of 4 readers\n"
        "  majority    over half of the readers who voted on the case and label, at "
        "least 2 equal votes, at least 3 readers\n"
        "  new         Ann\n"
        "  as before   Dee\n"
        "  replaced    Ben: 10 votes, 3 of them without a new one, and no vote any "
        "more on edema, fracture\n"
        "  replaced    Cai: 1 vote, 0 of them without a new one\n"
        "  dropped     all votes kept before: they were not as recorded, or gone\n"
        "  present     5\n"
        "  absent      30\n"
        "  no_majority 1\n"
        "  2 cases have fewer readers than the protocol's 3: no majority\n"
        "  changes     4 marks of the reference before, 2 of them now undecided\n"
        "    edema: present -> no_majority, 2\n"
        "    edema: absent -> present, 1\n"
        "    fracture: missing -> absent, 1\n"
        "    c1, edema: present -> no_majority\n"
        "    c2, edema: present -> no_majority\n"
        "    c3, edema: absent -> present\n"
        "    c3, fracture: missing -> absent\n"
        "  2 labels without a vote are missing in every case: hernia, mass\n"
        "  of the reference before: 6 marks missing now, 1 correction by verdict "
        "undone\n"
        "  3 earlier decisions of a panel kept\n"
        "  12 fell because votes changed: edema of c1, edema of c2, edema of c3, edema "
        "of c4, edema of c5, edema of c6, edema of c7, edema of c8, edema of c9, edema "
        "of c10 and 2 more\n"
        "  not blind   Dee: had seen a model's answers\n"
    )


PLAIN = {
    "readers": ("Ann",),
    "added": (),
    "replaced": (),
    "discarded": False,
    "votes": 1,
    "rule": MajorityRule(),
    "marks": {},
    "not_voted": (),
    "changes": None,
    "too_few": 0,
    "adjudications": Adjudications(),
    "not_blind": (),
}
HEAD = (
    "reference v2 of dev: 1 vote of 1 reader\n"
    "  majority    over half of the readers who voted on the case and label\n"
    "  as before   Ann\n"
)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"superseded": None},
            "  what this takes from the reference before cannot be counted: its file "
            "was edited or is gone\n",
        ),
        (
            {"superseded": None, "sealed": True},
            "  sealed      the labels of a holdout are not shown\n",
        ),
        (
            {"changes": MarkChanges(rows=())},
            "  changes     no mark of the reference before\n"
            "  of the reference before: 6 marks missing now, 1 correction by verdict "
            "undone\n",
        ),
        (
            {"adjudications": Adjudications(kept=1)},
            "  of the reference before: 6 marks missing now, 1 correction by verdict "
            "undone\n"
            "  1 earlier decision of a panel kept\n",
        ),
        (
            {"adjudications": Adjudications(lost=(("c1", "edema"),))},
            "  of the reference before: 6 marks missing now, 1 correction by verdict "
            "undone\n"
            "  0 earlier decisions of a panel kept\n"
            "  1 fell because votes changed: edema of c1\n",
        ),
    ],
)
def test_votes_that_change_little_are_told_in_few_lines(capsys, changes, told):
    """What cannot be known is said, and what did not happen is not."""
    cohort_report.say_votes(voted(**{**PLAIN, **changes}))
    assert capsys.readouterr().out == HEAD + told


def test_marks_of_a_label_that_is_new_are_only_counted(capsys):
    """Each of its cases would be a line."""
    rows = tuple(change(f"c{n}", Mark.MISSING, Mark.ABSENT) for n in range(3))
    cohort_report._say_changes(MarkChanges(rows=rows))
    assert capsys.readouterr().out == (
        "  changes     3 marks of the reference before, 0 of them now undecided\n"
        "    edema: missing -> absent, 3\n"
    )


@pytest.mark.parametrize(
    ("shifts", "cases", "ends"),
    [
        (1, 100, "    c99, label_0: absent -> present"),
        (1, 101, "    and 1 more mark"),
        (30, 90, "    c89, label_29: absent -> present"),
    ],
)
def test_a_hundred_changes_are_listed_and_the_rest_is_counted(
    capsys, shifts, cases, ends
):
    """The counts are of all."""
    rows = tuple(
        change(f"c{n}", Mark.ABSENT, Mark.PRESENT, f"label_{n % shifts}")
        for n in range(cases)
    )
    cohort_report._say_changes(MarkChanges(rows=rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"  changes     {cases} marks")
    assert lines[-1] == ends
    assert len(lines) == 1 + shifts + min(cases, 100) + (cases > 100)


def test_thirty_ways_of_change_are_counted_each(capsys):
    """And how many more there are."""
    rows = tuple(
        change("c1", Mark.ABSENT, Mark.PRESENT, f"label_{n}") for n in range(32)
    )
    cohort_report._say_changes(MarkChanges(rows=rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines[30:33] == [
        "    label_29: absent -> present, 1",
        "    and 2 more such lines",
        "    c1, label_0: absent -> present",
    ]


def test_votes_are_whole_as_json():
    """The list of changes is bounded, their number is not; no digest is in it."""
    rows = tuple(change(f"c{n}", Mark.ABSENT, Mark.PRESENT) for n in range(101))
    data = cohort_report.votes_data(voted(changes=MarkChanges(rows=rows)))
    changes = data.pop("changes")
    assert (changes["marks"], changes["undecided"]) == (101, 0)
    assert changes["by_label"] == [
        {"label": "edema", "was": "absent", "becomes": "present", "marks": 101}
    ]
    assert [row["case_id"] for row in changes["listed"]] == [
        f"c{n}" for n in range(100)
    ]
    assert data == {
        "cohort": "dev",
        "readers": ("Ann", "Ben", "Cai", "Dee"),
        "added": ("Ann",),
        "replaced": [
            {
                "reader": "Ben",
                "votes": 10,
                "lost": 3,
                "labels": ("edema", "fracture"),
            },
            {"reader": "Cai", "votes": 1, "lost": 0, "labels": ()},
        ],
        "discarded": True,
        "votes": 40,
        "rule": {"need": 2, "minimum_readers": 3, "no_finding_read": False},
        "reference": 2,
        "marks": {"present": 5, "absent": 30, "no_majority": 1},
        "not_voted": ("hernia", "mass"),
        "superseded": {"corrections": 1, "missing": 6},
        "too_few": 2,
        "adjudications": {
            "kept": 3,
            "lost": tuple((f"c{n}", "edema") for n in range(1, 13)),
        },
        "not_blind": ("Dee",),
        "sealed": False,
        "need": 2,
        "majority": MajorityRule(need=2, minimum_readers=3).words,
    }
    nothing = cohort_report.votes_data(voted(changes=None, superseded=None))
    assert nothing["changes"] is nothing["superseded"] is None


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({}, "ranloop agreement dev"),
        ({"readers": ("Ann", "Ben")}, "ranloop agreement dev"),
        ({"readers": ("Ann",)}, "ranloop run PROMPT --cohort dev"),
        ({"sealed": True}, "ranloop freeze PROMPT --cohort DEV --holdout dev"),
    ],
)
def test_votes_name_the_next_step(changes, command):
    """Agreement needs two readers, and a holdout is opened by a freeze only."""
    assert cohort_report.after_votes(voted(**changes)) == command

"""How the verb ``failures`` prints rows, whole, and what it refuses."""

from math import inf

import pytest

from loop.cli import failures
from loop.core.errors import DataError
from loop.core.records import Mark, Span, Value
from loop.evaluate.failures import (
    Failure,
    FailureKind,
    Failures,
    OpenCase,
    OpenCases,
)
from loop.review.queue.records import (
    Persistence,
    QueueFilter,
    QueueItem,
    Reasons,
    ReviewStatus,
    TextSection,
)

ORDER = [one.value for one in Value]
SPANS = (Span(1, 4), Span(6, 9), Span(11, 12))
LONG = "the answer is no JSON object and so nothing could be read of it"
NEGATIVE = Failure(
    "c1", "edema", FailureKind.FALSE_NEGATIVE, Value.ABSENT, Mark.PRESENT, SPANS
)
UNPARSED = Failure("c2", "", FailureKind.UNPARSED, None, None, (), LONG)
NOTED = Failure(
    *("c3", "edema", FailureKind.UNCERTAIN, Value.UNCERTAIN, Mark.ABSENT),
    *(SPANS[:2], "mended"),
)
ROWS = (NEGATIVE, UNPARSED, NOTED)
FOUND = Failures("run-1", "dev", ROWS)


def test_a_row_is_whole_as_json():
    """With every span; what is not there is empty."""
    assert list(map(failures._row, ROWS[:2])) == [
        {
            "case_id": "c1",
            "label": "edema",
            "kind": "false_negative",
            "predicted": "absent",
            "reference": "present",
            "spans": [[1, 4], [6, 9], [11, 12]],
            "problem": "",
        },
        {
            "case_id": "c2",
            "label": "",
            "kind": "unparsed",
            "predicted": "",
            "reference": "",
            "spans": [],
            "problem": LONG,
        },
    ]


def test_a_table_of_failures_is_printed_whole(capsys):
    """Two spans and the beginning of a problem have room; the kinds are counted."""
    failures._print_rows(FOUND, [failures._row(row) for row in ROWS], 7)
    where = "the answer is no JSON object and so ..."
    assert capsys.readouterr().out == (
        "failing cases of run run-1 on dev\n"
        f"case  label            kind  predicted  reference  {'evidence at':>39}\n"
        f"----  -----  --------------  ---------  ---------  {'-' * 39}\n"
        f"c1    edema  false_negative     absent    present  {'1-4 6-9 +1':>39}\n"
        f"c2    (all)        unparsed                        {where}\n"
        f"c3    edema       uncertain  uncertain     absent  {'1-4 6-9':>39}\n"
        "\n"
        "3 of 7 rows: 0 false_positive, 1 false_negative, 1 uncertain, 1 unparsed, "
        "0 engine_failed\n"
    )


def test_the_texts_asked_for_stand_below_the_table(capsys):
    """Each under the name of its row; a row without one has none."""
    rows = [failures._row(row) for row in ROWS[:2]]
    rows[0]["text"] = "fluid"
    rows[1]["text"] = ""
    failures._print_table(rows, "title")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "title"
    assert lines[-3:] == ["", "c1, edema, false_negative:", "  fluid"]


def test_cases_with_an_uncertain_reference_are_counted_by_their_answers(capsys):
    """They are no failures; one may have no answer."""
    rows = (
        OpenCase("c1", "edema", Value.PRESENT, ()),
        OpenCase("c2", "edema", Value.PRESENT, ()),
        OpenCase("c3", "edema", None, ()),
    )
    found = OpenCases("run-1", "dev", rows)
    failures._print_rows(found, [failures._row(row) for row in rows], 3)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cases with an uncertain reference of run run-1 on dev"
    assert lines[3].split() == [
        *("c1", "edema", "reference_uncertain", "present", "uncertain")
    ]
    told = [f"{[2, 0, 0][n]} {one}" for n, one in enumerate(ORDER)]
    assert lines[-1] == f"3 of 3 rows: {', '.join(told)}, 1 unanswered"


def item(failure, **changes):
    """Return a place in the queue, worth something for two reasons."""
    told = {
        "failure": failure,
        "place": 12,
        "reasons": Reasons(rare=0.25, unsure=0.1249, words=("rare: 2", "unsure")),
        "sections": (TextSection.FINDINGS, TextSection.IMPRESSION),
        "reviewers": ("Ann", "Ben"),
        "progress": ReviewStatus.REVIEWED,
        "reserved_by": "Cai",
        **changes,
    }
    return QueueItem(**told)


def test_the_place_in_the_queue_is_told_with_its_reasons():
    """A row that was drawn at random says so beside them."""
    cells = {
        "place": 12,
        "worth": 0.312,
        "why": "rare: 2; unsure",
        "sections": "findings, impression",
        "progress": "reviewed",
        "reviewers": "Ann, Ben",
        "reserved_by": "Cai",
    }
    assert failures._queue_cells(item(NEGATIVE)) == cells
    audit = {"why": "rare: 2; unsure; random audit"}
    assert failures._queue_cells(item(NEGATIVE, audit=True)) == cells | audit


def test_what_stands_beside_a_row_is_its_place_and_its_text():
    """Each only where it was asked for, and only of its own row."""
    key, other = ("c1", "edema"), ("c2", "")
    texts = {key: "one", other: "two", ("c3", "edema"): "three"}
    nothing = failures._beside(FOUND, None, {})
    assert nothing == {key: {}, other: {}, ("c3", "edema"): {}}
    queued = failures._beside(FOUND, texts, {key: item(NEGATIVE)})
    assert queued == {
        key: failures._queue_cells(item(NEGATIVE)) | {"text": "one"},
        other: {"text": "two"},
        ("c3", "edema"): {"text": "three"},
    }


def test_a_queue_is_printed_row_by_row(capsys):
    """With answers, evidence, reasons, who has it, and the text asked for."""
    found = FOUND._replace(rows=(NEGATIVE, NOTED, UNPARSED))
    nobody = {"reviewers": (), "reserved_by": "", "reasons": Reasons()}
    items = {
        ("c1", "edema"): item(NEGATIVE),
        ("c3", "edema"): item(NOTED, place=3, reserved_by=""),
        ("c2", ""): item(UNPARSED, place=4, progress=ReviewStatus.UNREVIEWED, **nobody),
    }
    texts = {("c1", "edema"): "two\nlines", ("c3", "edema"): "", ("c2", ""): "x"}
    beside = failures._beside(found, texts, items)
    rows = [failures._row(row) | beside[row.case_id, row.label] for row in found.rows]
    failures._print_rows(found, rows, 3)
    assert capsys.readouterr().out == (
        "failing cases of run run-1 on dev\n"
        "\n"
        "  12  c1, edema, false_negative\n"
        "      predicted absent, reference present, evidence at 1-4 6-9 +1\n"
        "      rare: 2; unsure\n"
        "      reviewed by Ann, Ben, reserved by Cai\n"
        "      two\n"
        "      lines\n"
        "\n"
        "   3  c3, edema, uncertain\n"
        "      predicted uncertain, reference absent, evidence at 1-4 6-9; mended\n"
        "      rare: 2; unsure\n"
        "      reviewed by Ann, Ben\n"
        "\n"
        "   4  c2, (all), unparsed\n"
        f"      predicted nothing; {LONG}\n"
        "      unreviewed\n"
        "      x\n"
        "\n"
        "3 of 3 rows: 0 false_positive, 1 false_negative, 1 uncertain, 1 unparsed, "
        "0 engine_failed\n"
    )


def test_the_rows_of_a_filter_keep_their_order_unless_worth_is_asked_for():
    """What the filter leaves out is left out of both."""
    items = {("c1", "edema"): item(NEGATIVE, place=2), ("c3", "edema"): item(NOTED)}
    items["c3", "edema"] = item(NOTED, place=1)
    order = failures.Order
    kept = failures._narrowed(FOUND, items, order.CASE)
    assert kept == FOUND._replace(rows=(NEGATIVE, NOTED))
    kept = failures._narrowed(FOUND, items, order.VALUE)
    assert kept == FOUND._replace(rows=(NOTED, NEGATIVE))


def test_a_filter_is_what_was_asked_for():
    """A status is one of review, one of draws, or that somebody has reserved it."""
    assert failures._filter(None, "", None, None) == QueueFilter()
    found = failures._filter(
        ["findings", "other"], "word", ["reviewed", "reserved", "flips"], ["Ann"]
    )
    assert found == QueueFilter(
        sections=frozenset({TextSection.FINDINGS, TextSection.OTHER}),
        text="word",
        reviewers=frozenset({"Ann"}),
        progress=frozenset({ReviewStatus.REVIEWED}),
        reserved=True,
        draws=Persistence.FLIPS,
    )
    with pytest.raises(DataError, match="--status every draw and --status flips leave"):
        failures._filter(None, "", ["flips", "every draw"], None)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.0", " "])
def test_a_reference_is_a_number_from_one_on(text):
    """Or the word that lists the uncertain ones."""
    assert failures._version_number("") is None
    assert failures._version_number("1") == 1
    assert failures._version_number("12") == 12
    with pytest.raises(DataError, match="is neither the number of a reference"):
        failures._version_number(text)


def test_kinds_may_be_written_with_a_hyphen():
    """And an unknown one is answered with those that there are."""
    assert failures._kinds(None) is failures._kinds([]) is None
    both = failures._kinds(["false-negative", "false_positive"])
    assert both == [FailureKind.FALSE_NEGATIVE, FailureKind.FALSE_POSITIVE]
    with pytest.raises(DataError, match="Use one of false_positive, false_negative"):
        failures._kinds(["wrong"])


def test_counts_of_errors_are_a_pair_in_a_cell():
    """Nothing where nobody could read an answer."""
    assert failures._pair_words((1.0, 0.5)) == "1 + 0.5"
    assert failures._pair_words(None) == ""
    assert failures._finite(2.5) == 2.5
    assert failures._finite(inf) is None

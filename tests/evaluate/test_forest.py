"""The forest plot puts every mark where its number is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.documents.svg import percent_axis, tick_labels
from loop.evaluate.compare import ShareDifference, compare_inputs, measure_regression
from loop.evaluate.documents import (
    ForestMark,
    accuracy_axis,
    accuracy_mark,
    change_axis,
    change_mark,
    open_labels,
    render_html,
    shown_exclusions,
)
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.protocol import Protocol
from loop.stats.confusion import Confusion
from loop.stats.intervals import clopper_pearson
from loop.stats.paired import tango_interval
from tests.evaluate.scenes import inputs, outcome, random_run, reference


@given(st.floats(0, 1), st.floats(0, 1))
def test_positions_keep_the_order_and_stay_inside(one, two):
    """A larger accuracy is never drawn further left, and nothing leaves the plot."""
    axis = percent_axis(0.5, 1.0, ())
    low, high = sorted((one, two))
    assert 0 <= axis.x(low) <= axis.x(high) <= 100


def with_accuracies(*pairs):
    """Return an evaluation whose labels have these (right, n)."""
    evaluation = evaluate_inputs(inputs(*random_run(20)), resamples=20)
    labels = tuple(
        replace(
            result,
            confusion=Confusion(0, n - right, 0, right),
            accuracy=clopper_pearson(right, n),
        )
        for result, (right, n) in zip(evaluation.labels, pairs, strict=False)
    )
    return replace(evaluation, labels=labels)


def test_one_bad_label_does_not_squeeze_the_others():
    """Nineteen labels near 0.95 keep their room; the outlier is marked as off."""
    evaluation = with_accuracies((20, 100), *[(95, 100)] * 19)
    axis = accuracy_axis(evaluation)
    assert axis.low == 0.9
    assert axis.ticks == (0.9, 0.95, 1.0)
    first, second = (accuracy_mark(row, axis, 0.95) for row in evaluation.labels[:2])
    assert first.off
    assert not second.off
    assert second.cut_low
    assert "accuracy 0.200" in first.title


def test_what_lies_left_of_the_axis_is_said_and_never_drawn_as_if_there():
    """0.200 at the place of 0.900 would be read as 0.900."""
    evaluation = with_accuracies((20, 100), *[(95, 100)] * 18, (1000, 1000))
    axis = accuracy_axis(evaluation)
    marks = [accuracy_mark(row, axis, 0.95) for row in evaluation.labels]
    off, cut, inside = marks[0], marks[1], marks[19]
    assert off.low == off.high == axis.x(axis.low) and off.value == "0.200"
    assert "(accuracy and interval begin left of the axis" in off.title
    assert cut.low == axis.x(0.9) < cut.point
    assert "(the interval begins left of the axis, which starts at 0.90)" in cut.title
    assert not inside.cut_low and "left of the axis" not in inside.title


def test_the_document_puts_an_arrow_and_the_value_in_place_of_the_mark():
    """The rows beside it keep their marks."""
    evaluation = with_accuracies((20, 100), *[(95, 100)] * 19)
    page = render_html(evaluation)
    off, cut = (
        page[page.index(f"<title>{row.name}: accuracy") :].partition("</g>")[0]
        for row in evaluation.labels[:2]
    )
    assert ">0.200</text>" in off and 'class="mark"' not in off
    assert 'class="mark"' in cut and 'class="beyond"' not in cut
    assert "the accuracy lies left of the axis" in page


def test_a_label_without_cases_has_no_mark():
    """No estimate is drawn where there is none."""
    evaluation = with_accuracies((0, 0), (99, 100))
    mark = accuracy_mark(evaluation.labels[0], accuracy_axis(evaluation), 0.95)
    assert mark.point is None
    assert "not estimable" in mark.title


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        ((0.9, 0.95, 1.0), ("0.90", "0.95", "1.00")),
        ((0.5, 1.0), ("0.5", "1.0")),
    ],
)
def test_ticks_show_as_many_digits_as_they_need(ticks, words):
    """0.95 must not be labelled 0.9 or 1.0."""
    assert tick_labels(ticks) == words


@pytest.mark.parametrize(
    ("accuracies", "low", "ticks"),
    [
        ([1.0] * 20, 0.9, (0.9, 0.95, 1.0)),
        ([0.9] * 20, 0.9, (0.9, 0.95, 1.0)),
        ([0.89] * 20, 0.8, (0.8, 0.85, 0.9, 0.95, 1.0)),
        ([0.72] * 20, 0.7, (0.7, 0.8, 0.9, 1.0)),
        ([0.5] * 20, 0.5, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ([0.45] * 20, 0.4, (0.4, 0.6, 0.8, 1.0)),
        ([0.0] * 20, 0.0, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        # A tenth of the labels may fall off, and no more.
        ([0.1] * 2 + [0.95] * 18, 0.9, (0.9, 0.95, 1.0)),
        ([0.1] * 3 + [0.95] * 17, 0.1, (0.2, 0.4, 0.6, 0.8, 1.0)),
        ([0.1] + [0.95] * 8, 0.1, (0.2, 0.4, 0.6, 0.8, 1.0)),
    ],
)
def test_the_axis_begins_at_a_tenth_and_has_round_ticks(accuracies, low, ticks):
    """Five steps at most; the threshold of 0.95 has room on its left."""
    shown = with_accuracies(*((round(1000 * one), 1000) for one in accuracies))
    kept = replace(shown, labels=shown.labels[: len(accuracies)])
    axis = accuracy_axis(kept)
    assert (axis.low, axis.high, axis.ticks) == (low, 1.0, ticks)


def regression(lost, gained, n, margin=0.02):
    """Return the change of a share."""
    return measure_regression(ShareDifference(lost, gained, n), margin)


def compared(*changes):
    """Return a comparison whose labels changed so, and the rest has no case."""
    outcomes, standard = random_run(20)
    given = inputs(outcomes, standard)
    comparison = compare_inputs(given, given, resamples=20)
    rows = [regression(*one) for one in changes]
    rows += [regression(0, 0, 0)] * (len(comparison.labels) - len(rows))
    labels = tuple(
        replace(change, accuracy=row)
        for change, row in zip(comparison.labels, rows, strict=True)
    )
    return replace(comparison, labels=labels)


@pytest.mark.parametrize(
    ("changes", "reach"),
    [
        # Nothing to show: twice the margin of 0.02 is within a tenth.
        ([], 0.1),
        ([(1, 0, 10)], 0.1),
        ([(2, 0, 10)], 0.2),
        ([(0, 3, 10), (1, 0, 10)], 0.3),
        # Limits count from 50 cases on: 0.2 lost of 50 may be 0.34, of 49 are wider.
        ([(10, 0, 50)], 0.4),
        ([(10, 0, 49)], 0.3),
        ([(0, 10, 50)], 0.4),
        ([(40, 0, 40)], 1.0),
    ],
)
def test_the_axis_of_changes_is_as_wide_on_both_sides(changes, reach):
    """It holds every difference, and the limits of those over enough cases."""
    axis = change_axis(compared(*changes))
    assert (axis.low, axis.high) == (-reach, reach)
    assert axis.ticks == (-reach, -reach / 2, 0.0, reach / 2, reach)
    assert axis.x(0.0) == 50.0


def test_a_change_is_drawn_with_its_limits_and_told():
    """What lies beyond an end goes on there; without a case there is no row."""
    comparison = compared((2, 0, 10), (0, 2, 10), (1, 1, 300))
    axis = change_axis(comparison)
    assert axis.high == 0.2
    marks = [change_mark(one, axis) for one in comparison.labels[:4]]
    low, high = tango_interval(2, 0, 10, confidence=0.95)[:2]
    first, second, third, none = marks
    change = comparison.labels[0]
    assert first == ForestMark(
        verdict=change.verdict,
        point=axis.x(-0.2),
        low=axis.x(-0.2),
        high=axis.x(high),
        cut_low=True,
        cut_high=False,
        title=(
            f"{change.name}: accuracy changed by -0.200, interval {low:+.3f} to "
            f"{high:+.3f}, {change.verdict.value}"
        ),
    )
    assert (second.cut_low, second.cut_high) == (False, True)
    assert (second.point, second.high) == (axis.x(0.2), axis.x(0.2))
    assert second.low == pytest.approx(100 - first.high)
    assert (third.cut_low, third.cut_high, third.point) == (False, False, 50.0)
    assert none is None


@pytest.mark.parametrize(
    ("policy", "column"),
    [(None, "uncertain_predicted"), ("excluded", "uncertain_predicted"),
     ("wrong", "hedges"), ("absent", "hedges")],
)  # fmt: skip
def test_columns_of_zeros_are_left_out_unless_they_are_always_asked_for(policy, column):
    """Where uncertain answers count they have a column of their own all the same."""
    rows = {"a": {"edema": 1}, "b": {"edema": 0}}
    rules = Protocol(uncertain_answers=policy) if policy else Protocol()
    outcomes = [outcome("a", {"edema": -1}), outcome("b", {"edema": 0})]
    found = evaluate_inputs(
        inputs(outcomes, reference(rows), protocol=rules), resamples=20
    )
    shown = shown_exclusions(found)
    assert [one.field for one in shown] == [
        "uncertain_reference", column, "unparsed", "failed",
    ]  # fmt: skip
    edema = next(one for one in found.labels if one.label == "edema")
    assert [one.of(edema) for one in shown] == [0, 1, 0, 0]
    open_case = {"a": {"edema": -1}, "b": {"edema": -2, "fracture": -3}}
    other = evaluate_inputs(inputs(outcomes, reference(open_case)), resamples=20)
    assert [one.field for one in shown_exclusions(other)][:3] == [
        "uncertain_reference", "no_majority", "missing",
    ]  # fmt: skip
    assert [one.label for one in open_labels(other)] == ["edema"]

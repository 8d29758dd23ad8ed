"""The forest plot puts every mark where its number is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.documents.svg import percent_axis, tick_labels
from loop.evaluate.documents import (
    accuracy_axis,
    accuracy_mark,
    render_html,
)
from loop.evaluate.evaluation import evaluate_inputs
from loop.stats.confusion import Confusion
from loop.stats.intervals import clopper_pearson
from tests.evaluate.scenes import inputs, random_run


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

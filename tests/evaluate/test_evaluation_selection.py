"""What is said of the versions tried: how many, what is left, what is not covered."""

from dataclasses import replace

import pytest

from loop.evaluate.documents import render_html, render_markdown
from loop.evaluate.evaluation import evaluate_inputs
from loop.evaluate.evaluation_json import evaluation_data
from loop.evaluate.tried import LIMITS, Attempt, Selection, Tried, WordingStatus
from loop.evaluate.tried_text import (
    selection_data,
    selection_lines,
    selection_note,
)
from loop.stats.optimism import Optimism
from tests.evaluate.scenes import inputs, random_run

SCORE = Optimism(3, 0.95, 0.93, 0.91, 0.96, 300, 500)


def attempt(number, standing=WordingStatus.COMMITTED):
    """Return one attempt that only the ledger knows."""
    ref = f"made@v{number}"
    return Attempt(digest=str(number), ref=ref, standing=standing, run=None)


def chosen(count=3, *, score=SCORE, rescored=None, **tried):
    """Return a selection among `count` versions, the last one rejected."""
    attempts = [attempt(number) for number in range(1, count)]
    attempts.append(
        attempt(count, WordingStatus.REJECTED if count > 1 else WordingStatus.COMMITTED)
    )
    fields = {"elsewhere": 0, "attempts": tuple(attempts), **tried}
    return Selection(
        run="r",
        prompt="made@v1",
        tried=Tried(prompt="made", cohort="dev", engine="rules", **fields),
        rescored=count if rescored is None else rescored,
        unscored=(),
        score=score,
        expected_drop=0.0213,
        accuracy=0.95,
        unit="patient",
        seed=0,
    )


def test_the_lines_give_count_scores_and_expected_drop():
    """In this order, with the interval and the drafts that were never committed."""
    assert selection_lines(chosen()) == (
        "versions tried on this cohort: 3 (1 never committed)",
        "macro-F1: apparent 0.950, corrected for the choice 0.930 [0.910, 0.960]",
        "expected drop: 2.1 points of one label's accuracy, if 3 equally good versions "
        "with independent errors are at 0.95 on 300 patients",
    )
    assert selection_note(chosen()) == LIMITS


def test_one_version_is_not_said_to_be_corrected():
    """Nothing was chosen, so there is nothing to warn of."""
    alone = chosen(1)
    assert selection_lines(alone)[1:] == (
        "one version was tried, so nothing was chosen and nothing is taken off",
    )
    assert selection_note(alone) == ""


def test_versions_that_cannot_be_scored_again_are_named():
    """A correction without them is not passed off as one with them."""
    gone = replace(chosen(rescored=1), unscored=("made@v2", "made@v3"))
    lines = selection_lines(gone)
    assert "not corrected: no other version can be scored again" in lines[1]
    assert lines[-1].endswith("made@v2, made@v3")
    assert selection_note(gone) == ""


def test_tries_elsewhere_and_missing_numbers_are_said():
    """A score that cannot be corrected has a reason, never a blank."""
    score = SCORE._replace(corrected=None, low=None, high=None, note="not estimable: x")
    lines = selection_lines(chosen(score=score, elsewhere=2))
    assert "2 more only with another engine or on a part of the cases" in lines[0]
    assert lines[1].endswith("not corrected: not estimable: x")
    assert selection_data(chosen(score=score))["macro_f1"]["drop"] is None


@pytest.mark.parametrize("selection", [chosen(), chosen(1), chosen(rescored=1)])
def test_documents_hold_the_same_as_the_terminal(selection):
    """With names escaped, and with nothing of it when it was not asked for."""
    evaluation = evaluate_inputs(inputs(*random_run(30)), resamples=20)
    bad = replace(selection, unscored=("<script>",))
    page = render_html(evaluation, selection=bad)
    text = render_markdown(evaluation, selection=bad)
    assert "Versions tried on this cohort" in page and "<script>" not in page
    assert "Versions tried on this cohort: " in text and "<script>" not in text
    assert "tried on this cohort" not in render_html(evaluation)
    assert evaluation_data(evaluation)["selection"] is None
    assert evaluation_data(evaluation, bad)["selection"]["rescored"] == bad.rescored

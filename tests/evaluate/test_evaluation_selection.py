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
    selection_remarks,
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


def test_searches_are_counted_beside_wordings():
    """Their candidates could have been chosen as well, and have no run."""
    searched = chosen(2, rescored=1, searches=2, searched=15_000)
    assert selection_lines(searched) == (
        "versions tried on this cohort: 15,002 (wordings: 2; candidates of searches: "
        "15,000; 1 never committed)",
        "macro-F1: apparent 0.950, not corrected: no other version can be scored again",
        "expected drop: 2.1 points of one label's accuracy, if 15,002 equally good "
        "versions with independent errors are at 0.95 on 300 patients",
        "not in the correction, because no run of theirs can be scored: candidates of "
        "searches",
    )
    assert selection_remarks(searched) == (
        selection_lines(searched)[0],
        *selection_lines(searched)[2:],
    )
    both = replace(searched, unscored=tuple(f"made@v{n}" for n in range(1, 8)))
    assert selection_lines(both)[-1] == (
        "not in the correction, because no run of theirs can be scored: made@v1, "
        "made@v2, made@v3, made@v4, made@v5 and 2 more; candidates of searches"
    )


def test_four_figures_side_by_side_leave_unsaid_what_is_not_in_them():
    """Tries elsewhere; without them nothing but the expected drop."""
    assert selection_remarks(chosen()) == selection_lines(chosen())[2:]
    away = chosen(elsewhere=2)
    said = (
        "versions tried on this cohort: 3 (1 never committed; 2 more only with another "
        "engine or on a part of the cases)"
    )
    assert selection_remarks(away)[0] == selection_lines(away)[0] == said
    assert selection_remarks(chosen(1)) == ()


def test_a_correction_without_limits_says_why():
    """The note stands where the interval would."""
    score = SCORE._replace(low=None, high=None, note="one patient only")
    assert selection_lines(chosen(score=score))[1] == (
        "macro-F1: apparent 0.950, corrected for the choice 0.930 (one patient only)"
    )
    nothing = replace(chosen(), expected_drop=None)
    assert len(selection_lines(nothing)) == 2


def test_the_choice_is_whole_as_data():
    """Every attempt with what became of it, and every number of the correction."""
    found = replace(chosen(2), unscored=("made@v2",))
    assert selection_data(found) == {
        "versions_tried": 2,
        "never_committed": 1,
        "elsewhere": 0,
        "searches": 0,
        "candidates_searched": 0,
        "versions": [
            {"version": "made@v1", "digest": "1", "status": "committed", "run": None},
            {"version": "made@v2", "digest": "2", "status": "rejected", "run": None},
        ],
        "rescored": 2,
        "not_rescored": ["made@v2"],
        "macro_f1": {
            "apparent": 0.95,
            "corrected": 0.93,
            "low": 0.91,
            "high": 0.96,
            "drop": SCORE.drop,
            "resamples": SCORE.resamples,
            "units": SCORE.units,
            "note": SCORE.note,
        },
        "expected_drop_of_accuracy": 0.0213,
        "expected_at_accuracy": 0.95,
        "unit": "patient",
        "seed": 0,
        "note": LIMITS,
    }
    assert SCORE.drop == pytest.approx(0.02)

"""The meta-evaluation of a judge in words: what was held against what, and no text."""

import json

import numpy as np
import pytest

from loop.documents.numbers import share, signed
from loop.judge.meta_evaluation import JudgeCost, evaluate_judge
from loop.judge.meta_text import judge_meta_data, judge_meta_said
from tests.judge.test_meta_evaluation import N, experts_for, judged, ratings_for

COST = JudgeCost(
    pairs=N, calls=2 * N, seconds=48.0, tokens=24_000, price=1.2, currency="EUR"
)


@pytest.fixture(scope="module")
def found():
    """Return everything that can be known of the made-up judge."""
    one = judged()
    return evaluate_judge(
        one,
        experts=experts_for(one.keys),
        ratings=ratings_for(one.keys),
        cost=COST,
        resamples=40,
    )


def test_every_sentence_says_what_it_was_held_against(found):
    """Counts against counts, scores against ratings, cost beside them."""
    told = "\n".join(judge_meta_said(found))
    for said in (
        "J: 24 of 24 pairs have a score. Intervals are of 95 %, over 12 references.",
        "held against the median of 3 experts' counts of significant errors",
        f"the mean points of 2 raters: tau-b {share(found.ratings.consensus.tau_b[0])}",
        f"length in words: tau-b {signed(found.length.scores.tau_b.value)}",
        f"held constant {signed(found.position.beside.partial.value)}",
        "error counts are identical in 1.000",
        "No candidate is a copy of its reference",
        "48 calls for 24 pairs, 2.00 s a pair, 1,000 tokens a pair, 0.0500 EUR a pair",
    ):
        assert said in told


def test_data_are_json_without_nan(found):
    """The same numbers; the format has a name."""
    data = json.loads(json.dumps(judge_meta_data(found), allow_nan=False))
    assert data["format"] == "ranloop-judge-meta-1"
    assert [one["by"] for one in data["bias"]] == ["length", "position"]
    assert data["ratings"]["against"] == "points of 2 raters"
    assert data["copies"]["passed"] is None
    assert data["cost"]["seconds_per_pair"] == 2
    assert [one["insignificant_counted"] for one in data["errors"]] == [False, True]


def test_what_nobody_said_is_null_and_is_told():
    """One draw, no expert, no cost."""
    one = judged(scores=judged().scores[:1], counts=judged().counts[:1])
    found = evaluate_judge(one, resamples=9)
    data = judge_meta_data(found)
    assert (data["ratings"], data["consistency"], data["cost"]) == (None, None, None)
    assert data["bias"][0]["beside_ratings"] is None
    assert "Without ratings it is unknown how much of this is quality" in " ".join(
        judge_meta_said(found)
    )


def test_failed_copies_are_named_by_their_place():
    """From 1, as a person counts; never by their text."""
    copies = [f"Reference {place // 2}." for place in range(N)]
    scores = np.ones((1, N))
    scores[0, [2, 5]], scores[0, 7] = 0.5, np.nan
    one = judged(scores=scores, counts=judged().counts[:1], candidates=copies)
    told = " ".join(judge_meta_said(evaluate_judge(one, resamples=9)))
    assert "21 of 24 copies of the reference have the best score, 1 have none" in told
    assert "not pair 3, 6." in told
    assert "Reference" not in told


def test_suspicious_agreement_is_called_so():
    """With the way to look for its cause."""
    one = judged()
    found = evaluate_judge(one, ratings=ratings_for(one.keys, noise=0.9), resamples=9)
    assert "Suspicious: the scores agree" in " ".join(judge_meta_said(found))
    assert judge_meta_data(found)["ratings"]["suspicious"] is True

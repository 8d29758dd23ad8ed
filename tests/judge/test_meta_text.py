"""The meta-evaluation of a judge in words: what was held against what, and no text."""

import json
from dataclasses import replace

import numpy as np
import pytest

from loop import __version__
from loop.documents.numbers import share, signed
from loop.judge.meta_evaluation import (
    JudgeCost,
    JudgeMetaEvaluation,
    RatingAgreement,
    ScoreBias,
    evaluate_judge,
)
from loop.judge.meta_text import judge_meta_data, judge_meta_said
from loop.judge.repeats import CopyTest, SelfConsistency
from loop.score.experts.documents import error_data, errors_said
from loop.stats.correlation import Correlations, PartialTau
from loop.stats.intervals import Estimate
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


def estimate(value):
    """Return an estimate with limits 0.1 below and above it."""
    return Estimate(value, round(value - 0.1, 3), round(value + 0.1, 3))


def correlations(tau_b, n):
    """Return three coefficients of so many pairs."""
    others = (estimate(round(tau_b + step, 3)) for step in (0.01, 0.02))
    return Correlations(estimate(tau_b), *others, n, n - 1)


def written(**changed):
    """Return an evaluation of which every number is another one."""
    beside = PartialTau(*map(estimate, (0.41, 0.11, 0.301, -0.21)), 16, 9)
    fields = {
        "judge": "J",
        "signature": "j|v:1",
        "pairs": 24,
        "unanswered": 3,
        "unit": "patient",
        "units": 12,
        "errors": (),
        "ratings": RatingAgreement(
            "points of 2 raters",
            correlations(0.61, 20),
            (correlations(0.5, 19), correlations(0.6, 18)),
            (correlations(0.57, 17),),
            2,
        ),
        "length": ScoreBias("length", "mean of the raters' points",
                            correlations(-0.31, 21), beside),
        "position": ScoreBias("position", "", correlations(0.05, 21), None),
        "consistency": SelfConsistency(
            3, 22, 2, *map(estimate, (0.13, 0.84, 0.75, 0.76))
        ),
        "copies": CopyTest(9, 1, (1, 2, 4, 5, 6, 8)),
        "cost": JudgeCost(
            pairs=20, calls=40, seconds=50.0, tokens=24_680, price=1.5, currency="EUR"
        ),
    }  # fmt: skip
    return JudgeMetaEvaluation(**{**fields, **changed})


def dictionary(value):
    """Return what the JSON data hold of an estimate with limits 0.1 from it."""
    return estimate(value)._asdict()


def told(tau_b, n):
    """Return what the JSON data hold of three coefficients."""
    return {
        "candidates": n,
        "units": n - 1,
        "tau_b": dictionary(tau_b),
        "spearman": dictionary(round(tau_b + 0.01, 3)),
        "pearson": dictionary(round(tau_b + 0.02, 3)),
    }


def test_the_data_have_every_number_under_its_name():
    """Each once, and what does not hold is null."""
    assert judge_meta_data(written()) == {
        "format": "ranloop-judge-meta-1",
        "ranloop": __version__,
        "judge": "J",
        "signature": "j|v:1",
        "pairs": 24,
        "unanswered": 3,
        "unit": "patient",
        "units": 12,
        "errors": [],
        "ratings": {
            "against": "points of 2 raters",
            "consensus": told(0.61, 20),
            "raters": [told(0.5, 19), told(0.6, 18)],
            "pairs_of_raters": [told(0.57, 17)],
            "mean_tau_b_with_one_rater": 0.55,
            "mean_tau_b_of_two_raters": 0.57,
            "suspicious": False,
            "unanswered": 2,
        },
        "bias": [
            {
                "by": "length",
                "scores": told(-0.31, 21),
                "held_constant": "mean of the raters' points",
                "beside_ratings": {
                    "scores_tau_b": dictionary(0.41),
                    "ratings_tau_b": dictionary(0.11),
                    "difference": dictionary(0.301),
                    "partial": dictionary(-0.21),
                    "candidates": 16,
                    "units": 9,
                },
            },
            {
                "by": "position",
                "scores": told(0.05, 21),
                "held_constant": None,
                "beside_ratings": None,
            },
        ],
        "consistency": {
            "draws": 3,
            "pairs": 22,
            "incomplete": 2,
            "mean_sd": dictionary(0.13),
            "identical_counts": dictionary(0.84),
            "krippendorff_alpha_interval": dictionary(0.75),
            "icc_2_1": dictionary(0.76),
        },
        "copies": {
            "copies": 9,
            "unanswered": 1,
            "wrong": (1, 2, 4, 5, 6, 8),
            "passed": False,
        },
        "cost": {
            "pairs": 20,
            "calls": 40,
            "seconds": 50.0,
            "tokens": 24_680,
            "price": 1.5,
            "currency": "EUR",
            "seconds_per_pair": 2.5,
            "tokens_per_pair": 1234.0,
            "price_per_pair": 0.075,
        },
    }
    free = JudgeCost(pairs=2, calls=3)
    bare = judge_meta_data(
        written(cost=free, copies=CopyTest(0, 0, ()), consistency=None, ratings=None)
    )
    assert bare["cost"] == {
        "pairs": 2,
        "calls": 3,
        **dict.fromkeys(("seconds", "tokens", "price", "currency")),
        **dict.fromkeys(("seconds_per_pair", "tokens_per_pair", "price_per_pair")),
    }
    assert (bare["copies"]["passed"], bare["consistency"], bare["ratings"]) == (
        None, None, None,
    )  # fmt: skip


def test_the_sentences_have_every_number_in_its_place():
    """Of several things that can be said each is said where it belongs."""
    minus = "\N{MINUS SIGN}"
    assert judge_meta_said(written()) == (
        "J: 21 of 24 pairs have a score. Intervals are of 95 %, over 12 patients.",
        "Scores against the mean points of 2 raters: tau-b 0.610 [0.510, 0.710] on 20 "
        "pairs; mean tau-b with one rater 0.550, of two raters 0.570.",
        "2 rated pairs have no score and are left out.",
        f"Scores and the candidate's length in words: tau-b {minus}0.310 "
        f"[{minus}0.410, {minus}0.210]. On the 16 rated pairs +0.410, the mean of the "
        "raters' points +0.110, difference +0.301 [+0.201, +0.401]; with the ratings "
        f"held constant {minus}0.210 [{minus}0.310, {minus}0.110].",
        f"Scores and the pair's position in the file: tau-b +0.050 [{minus}0.050, "
        "+0.150]. Without ratings it is unknown how much of this is quality.",
        "Asked 3 times: the scores of a pair have a mean standard deviation of 0.130 "
        "[0.030, 0.230]; error counts are identical in 0.840 [0.740, 0.940] of 22 "
        "pairs; ICC(2,1) 0.760 [0.660, 0.860], Krippendorff's alpha 0.750 [0.650, "
        "0.850]. 2 pairs were answered in some draws only and are left out.",
        "Copy test: 2 of 9 copies of the reference have the best score, 1 have none; "
        "not pair 2, 3, 5, 6, 7 and 1 more.",
        "Cost: 40 calls for 20 pairs, 2.50 s a pair, 1,234 tokens a pair, "
        "0.0750 EUR a pair.",
    )


def test_what_holds_for_all_is_not_said_of_some():
    """No pair without a score, no wrong copy, and a cost without a currency."""
    ratings = RatingAgreement(
        "points of 1 rater", correlations(0.61, 1), (correlations(0.61, 1),), (), 0
    )
    said = judge_meta_said(
        written(
            ratings=ratings,
            consistency=None,
            copies=CopyTest(2, 0, ()),
            cost=JudgeCost(pairs=1, calls=1, price=0.25),
        )
    )
    assert said[1:2] + said[4:] == (
        "Scores against the mean points of 1 rater: tau-b 0.610 [0.510, 0.710] on 1 "
        "pair; mean tau-b with one rater 0.610, of two raters \N{EN DASH}.",
        "Copy test: 2 of 2 copies of the reference have the best score.",
        "Cost: 1 call for 1 pair, 0.2500 a pair.",
    )
    copies = [CopyTest(0, 0, ()), CopyTest(4, 1, ()), CopyTest(4, 0, (3,))]
    assert [judge_meta_said(written(copies=one, cost=None))[-1] for one in copies] == [
        "No candidate is a copy of its reference, so there was no copy test.",
        "Copy test: 3 of 4 copies of the reference have the best score, 1 have none.",
        "Copy test: 3 of 4 copies of the reference have the best score; not pair 4.",
    ]


def test_errors_are_told_before_ratings(found):
    """Without insignificant errors and with them, each as its own sentences."""
    said = judge_meta_said(found)
    assert judge_meta_said(replace(found, errors=()))[0] == said[0]
    told_of = said[1 : len(said) - len(judge_meta_said(replace(found, errors=()))) + 1]
    assert told_of == tuple(
        sentence for one in found.errors for sentence in errors_said(one)
    )
    assert judge_meta_data(found)["errors"] == [error_data(one) for one in found.errors]

"""A judge's run held against experts: what each number was held against, and how."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.judge.meta_evaluation import (
    JudgeCost,
    JudgedTexts,
    evaluate_judge,
    judged_texts,
    mean_tau_b,
)
from loop.judge.pairs import judge_pairs
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.ratings import Ratings
from tests.judge.scenes import CANDIDATES, REFERENCES

NA = np.nan
CATEGORIES = ("false_finding", "omission")
N = 24


def judged(**changed):
    """Return made-up judgements of 24 pairs for 12 references, two draws."""
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 3, (1, N, 2, 2)).astype(float)
    scores = 1 / (1 + counts[..., 0].sum(axis=2))
    keys = tuple((f"c{place:02}", "x") for place in range(N))
    fields = {
        "keys": keys,
        "references": [f"Reference {place // 2}." for place in range(N)],
        "candidates": ["word " * (1 + place * 7 % 11) for place in range(N)],
        "scores": np.vstack([scores, scores]),
        "counts": np.vstack([counts, counts]),
        "categories": CATEGORIES,
        "name": "J",
        "signature": "j|v:1",
    }
    return JudgedTexts(**{**fields, **changed})


def ratings_for(keys, raters=2, noise=0.5):
    """Return points that go with the scores of `judged`."""
    rng = np.random.default_rng(raters)
    own = dict(zip(judged().keys, judged().scores[0], strict=True))
    order = sorted(keys)
    points = [
        [own.get(key, 0) + noise * rng.random() for _ in range(raters)] for key in order
    ]
    return Ratings(
        ids=tuple(case for case, _ in order),
        systems=tuple(system for _, system in order),
        raters=tuple("abc"[:raters]),
        scores=np.array(points),
        scale=(0, 2),
    )


def experts_for(keys):
    """Return experts' counts of the same pairs."""
    rng = np.random.default_rng(9)
    return ErrorTable(
        keys=tuple(sorted(keys)),
        raters=("a", "b", "c"),
        categories=CATEGORIES,
        counts=rng.integers(0, 3, (len(keys), 3, 2, 2)).astype(float),
    )


def test_scores_are_held_against_ratings_and_counts_against_counts():
    """Each record names what it was held against."""
    one = judged()
    ratings = ratings_for(one.keys)
    found = evaluate_judge(
        one, experts=experts_for(one.keys), ratings=ratings, resamples=60
    )
    tau = kendalltau(one.scores[0], ratings.consensus).statistic
    assert found.ratings.consensus.tau_b.value == pytest.approx(tau)
    assert found.ratings.against == "points of 2 raters"
    assert len(found.ratings.each) == 2 and len(found.ratings.pairs) == 1
    serious, every = found.errors
    assert serious.against == "the median of 3 experts' counts of significant errors"
    assert every.all_errors and every.judge == "J"
    assert found.length.against == "mean of the raters' points"
    assert found.signature == "j|v:1"


def test_pairs_of_one_reference_are_drawn_together():
    """Twelve references of 24 pairs; four patients where they are known."""
    one = judged()
    found = evaluate_judge(one, experts=experts_for(one.keys), resamples=20)
    assert (found.unit, found.units) == ("reference", 12)
    assert found.length.scores.n_units == 12
    assert (found.errors[0].units, found.errors[0].by_patient) == (12, False)
    patients = {case: str(int(case[1:]) // 6) for case, _ in one.keys}
    found = evaluate_judge(
        one, experts=experts_for(one.keys), patients=patients, resamples=20
    )
    assert (found.unit, found.units) == ("patient", 4)
    assert (found.errors[0].units, found.errors[0].by_patient) == (4, True)


def test_scores_that_go_with_length_are_seen():
    """tau-b with the words of the candidate, and with the place in the file."""
    lengths = np.array([len(text.split()) for text in judged().candidates])
    scores = np.stack([lengths / 20, lengths / 20])
    one = judged(scores=scores)
    found = evaluate_judge(one, ratings=ratings_for(one.keys), resamples=50)
    assert found.length.scores.tau_b.value == pytest.approx(1)
    assert found.length.beside.difference.value > 0.5
    expected = kendalltau(lengths, np.arange(N)).statistic
    assert found.position.scores.tau_b.value == pytest.approx(expected)
    assert (found.length.by, found.position.by) == ("length", "position")


def test_without_experts_the_rest_is_told():
    """Nothing is made up for what nobody said."""
    found = evaluate_judge(judged(), resamples=20)
    assert (found.errors, found.ratings, found.cost) == ((), None, None)
    assert found.length.beside is None and found.length.against == ""
    assert found.consistency.identical.value == 1
    first = judged()
    alone = judged(scores=first.scores[:1], counts=first.counts[:1])
    assert evaluate_judge(alone, resamples=20).consistency is None


def test_fewer_errors_are_better_where_the_judge_counts_them():
    """Such a score is negated, and its best is 0."""
    errors = judged().counts[..., 0].sum(axis=2)
    copies = [f"Reference {place // 2}." for place in range(N)]
    one = judged(scores=errors, lower=True, candidates=copies)
    found = evaluate_judge(one, ratings=ratings_for(one.keys), resamples=20)
    assert found.ratings.consensus.tau_b.value > 0.3
    assert found.copies.copies == N
    assert found.copies.wrong == tuple(np.flatnonzero(errors[0]))


def test_what_is_not_answered_is_counted():
    """Apart from pairs that nobody rated, and from those that were not asked about."""
    scores, counts = judged().scores.copy(), judged().counts.copy()
    scores[0, :2], counts[0, :2] = NA, NA
    one = judged(scores=scores, counts=counts)
    known = (*one.keys[1:], ("other", "x"))
    found = evaluate_judge(
        one, experts=experts_for(known), ratings=ratings_for(known), resamples=20
    )
    assert (found.pairs, found.unanswered) == (N, 2)
    assert (found.ratings.unanswered, found.ratings.consensus.n) == (1, N - 2)
    assert (found.errors[0].unanswered, found.errors[0].candidates) == (1, N - 2)
    assert found.consistency.incomplete == 2


def test_more_agreement_than_two_raters_have_is_suspicious():
    """Marked, not praised."""
    one = judged()
    close = evaluate_judge(
        one, ratings=ratings_for(one.keys, noise=0.9), resamples=20
    ).ratings
    assert mean_tau_b(close.each) > mean_tau_b(close.pairs) and close.suspicious
    alone = evaluate_judge(one, ratings=ratings_for(one.keys, 1), resamples=20).ratings
    assert mean_tau_b(alone.pairs) is None and not alone.suspicious
    assert alone.against == "points of 1 rater"


def test_one_undefined_correlation_leaves_the_mean_undefined():
    """A mean over the others would be of other raters."""
    one = judged()
    found = evaluate_judge(one, ratings=ratings_for(one.keys), resamples=9).ratings
    first, second = found.each
    mean = (first.tau_b.value + second.tau_b.value) / 2
    assert mean_tau_b(found.each) == pytest.approx(mean)
    gone = first._replace(tau_b=first.tau_b._replace(value=None))
    assert mean_tau_b([second, gone]) is mean_tau_b([]) is None
    odd = found._replace(each=(first._replace(tau_b=found.pairs[0].tau_b),))
    assert not odd.suspicious
    assert not found._replace(each=(gone,)).suspicious


def test_the_best_score_of_a_copy_is_that_of_the_scale():
    """Five points of five, where it is said; else 1, or 0 where fewer are better."""
    copies = [f"Reference {place // 2}." for place in range(N)]
    points = np.full((1, N), 5.0)
    points[0, 3] = 1.0
    counts = judged().counts[:1]
    for best, lower, wrong in (
        (5.0, False, (3,)),
        (None, False, tuple(place for place in range(N) if place != 3)),
        (1.0, True, tuple(place for place in range(N) if place != 3)),
        (None, True, tuple(range(N))),
    ):
        one = judged(
            scores=points, counts=counts, candidates=copies, best=best, lower=lower
        )
        assert evaluate_judge(one, resamples=9).copies.wrong == wrong


def test_units_of_ones_own_are_drawn_as_they_are():
    """Units that are given are not numbered again."""
    one = judged()
    found = evaluate_judge(
        one, experts=experts_for(one.keys), units=np.arange(N) // 8, resamples=9
    )
    assert (found.units, found.length.scores.n_units) == (3, 3)
    assert (found.errors[0].units, found.unit) == (3, "reference")


def test_counts_of_a_pair_stay_with_it_in_the_table():
    """Which is in the order of the ids, whatever the order of the pairs."""
    first = judged()
    back = judged(keys=first.keys[::-1], counts=first.counts[:, ::-1])
    table = back.table
    assert (table.keys, table.raters) == (first.keys, ("J",))
    assert (table.categories, table.signature) == (CATEGORIES, "j|v:1")
    np.testing.assert_array_equal(table.counts[:, 0], first.counts[0])
    np.testing.assert_array_equal(judged(lower=True).directed, -first.scores[0])


def test_a_score_that_one_system_lacks_is_undefined_for_its_pairs():
    """The other systems keep theirs; draws of other pairs are refused."""
    systems = {"copy": REFERENCES, "other": CANDIDATES}
    found = judge_pairs(REFERENCES, systems).document
    kept = tuple(
        one
        for one in found.sheet.results
        if (one.system, one.metric.name) != ("copy", "green_green")
    )
    part = replace(found, sheet=replace(found.sheet, results=kept))
    one = judged_texts([part], REFERENCES, systems, score="green_green")
    copies = np.array([system == "copy" for _, system in one.keys])
    assert np.isnan(one.scores[0]).tolist() == copies.tolist()
    alone = judge_pairs(REFERENCES, {"copy": REFERENCES}).document
    with pytest.raises(ValueError, match="all of the same pairs"):
        judged_texts([found, alone], REFERENCES, systems, score="green_green")


def test_cost_is_told_by_pair():
    """What is not known is None, and no pair costs nothing."""
    cost = JudgeCost(pairs=4, calls=8, seconds=6.0, tokens=1000)
    assert (cost.seconds_per_pair, cost.tokens_per_pair) == (1.5, 250)
    assert cost.price_per_pair is None
    assert JudgeCost(pairs=0, calls=0, seconds=1.0).seconds_per_pair is None
    assert evaluate_judge(judged(), cost=cost, resamples=9).cost is cost


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"keys": (("a", "x"),) * N}, "appears twice"),
        ({"references": ["one"]}, "need texts of 24 pairs, got 1 and 24"),
        ({"candidates": ["one"]}, "need texts of 24 pairs, got 24 and 1"),
        ({"categories": ("omission",)}, r"counts \(n_draws, 24, 1, 2\), got"),
        ({"scores": np.ones((2, 3))}, "need scores"),
        ({"counts": np.ones((2, N, 1, 2))}, "need scores"),
    ],
)
def test_judgements_that_do_not_fit_are_refused(changed, said):
    """The message says what is needed."""
    with pytest.raises(ValueError, match=said):
        judged(**changed)


def test_what_judge_pairs_returns_can_be_evaluated():
    """Scores and counts of each system in order; a repetition is a second draw."""
    found = judge_pairs(REFERENCES, {"copy": REFERENCES, "other": CANDIDATES})
    systems = {"copy": REFERENCES, "other": CANDIDATES}
    draws = [found.document, found.document]
    one = judged_texts(draws, REFERENCES, systems, score="green_green")
    table = found.pairs.sort_values(["id", "system"])
    assert list(one.keys) == list(zip(table["id"], table["system"], strict=True))
    assert one.name == "green@v1 (green_green)"
    np.testing.assert_array_equal(one.scores[1], table["green_green"])
    place = one.categories.index("omission")
    told = one.counts[0, :, place, 0]
    np.testing.assert_array_equal(told, table["significant.omission"])
    result = evaluate_judge(one, resamples=9)
    assert result.copies.passed is True and result.copies.copies == 5
    assert result.consistency.identical.value == 1
    assert (result.pairs, result.units, one.lower) == (8, 4, False)
    errors = judged_texts(draws[:1], REFERENCES, systems, score="green_errors")
    assert errors.lower and evaluate_judge(errors, resamples=9).copies.passed is True


def test_what_is_no_repetition_of_one_judge_is_refused():
    """The message names the scores that there are."""
    systems = {"x": CANDIDATES}
    found = judge_pairs(REFERENCES, systems).document
    with pytest.raises(ValueError, match="no score 'rouge': name one of green_"):
        judged_texts([found], REFERENCES, systems, score="rouge")
    with pytest.raises(ValueError, match="one draw or more"):
        judged_texts([], REFERENCES, systems, score="green_green")

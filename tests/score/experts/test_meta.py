"""Metrics against raters: joined by key, negated where less is better, compared."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from statsmodels.stats.multitest import multipletests

from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.score.experts.error_agreement import agree_on_errors
from loop.score.experts.error_tables import ErrorTable
from loop.score.experts.meta import (
    compare_all,
    divide_strata,
    evaluate_metrics,
    hold_errors,
    meta_evaluate,
)
from loop.score.experts.metric_scores import ScoredMetric, ScoreTable, known_metric
from loop.score.experts.radpref import RadPref
from loop.score.metrics.registry import METRICS
from loop.stats.correlation import correlate
from tests.score.experts.test_ratings import ratings_of

NA = np.nan
QUICK = {"resamples": 60, "permutations": 200}


def table_of(keys, lower=(), **columns):
    """Return a table of made-up scores."""
    order = sorted(range(len(keys)), key=lambda row: keys[row])
    values = np.array(list(columns.values()), dtype=float).T
    return ScoreTable(
        keys=tuple(keys[row] for row in order),
        metrics=tuple(
            ScoredMetric(name, name.title(), lower=name in lower) for name in columns
        ),
        values=values[order],
    )


@pytest.fixture
def study():
    """Return 30 cases of two systems: a good, a reversed and a useless metric."""
    rng = np.random.default_rng(8)
    ids = [f"c{case:02}" for case in range(30) for _ in "xy"]
    systems = ["x", "y"] * 30
    truth = rng.normal(size=60)
    points = np.clip(np.round(3 + truth[:, None] + rng.normal(0, 0.4, (60, 3))), 1, 5)
    ratings = ratings_of(points, ids, systems)
    good = truth + rng.normal(0, 0.3, 60)
    scores = table_of(
        list(zip(ids, systems, strict=True)),
        lower=("errors",),
        good=good,
        errors=5 - truth + rng.normal(0, 0.6, 60),
        noise=rng.normal(size=60),
    )
    return scores, ratings


def test_correlations_are_scipys(study):
    """With the mean of the raters and with each alone; best first."""
    scores, ratings = study
    found = meta_evaluate(scores, ratings, **QUICK)
    assert [one.metric.name for one in found.metrics] == ["good", "errors", "noise"]
    good = found.metrics[0]
    for points, said in [
        (ratings.consensus, good.consensus),
        *zip(ratings.scores.T, good.raters, strict=True),
    ]:
        values = scores.values[:, 0]
        assert said.tau_b.value == pytest.approx(kendalltau(values, points)[0])
        assert said.spearman.value == pytest.approx(spearmanr(values, points)[0])
        assert said.pearson.value == pytest.approx(pearsonr(values, points)[0])
        assert said.tau_b.low < said.tau_b.value < said.tau_b.high
        assert (said.n, said.n_units) == (60, 30)


def test_less_is_better_becomes_agreement(study):
    """Errors go down as points go up; the sign is turned, the values are not."""
    scores, ratings = study
    errors = meta_evaluate(scores, ratings, **QUICK).metrics[1]
    assert errors.metric.lower
    expected = -kendalltau(scores.values[:, 1], ratings.consensus)[0]
    assert errors.consensus.tau_b.value == pytest.approx(expected)
    assert expected > 0.4


def test_reversed_rows_change_nothing(study):
    """Candidates are joined by case and system, never by position."""
    scores, ratings = study
    turned = ratings_of(
        ratings.scores[::-1], list(ratings.ids[::-1]), list(ratings.systems[::-1])
    )
    other = ScoreTable(
        keys=scores.keys[::-1], metrics=scores.metrics, values=scores.values[::-1]
    )
    plain = meta_evaluate(scores, ratings, **QUICK)
    again = meta_evaluate(other, turned, **QUICK)
    for one, two in zip(plain.metrics, again.metrics, strict=True):
        np.testing.assert_allclose(two.consensus.tau_b[:3], one.consensus.tau_b[:3])
        np.testing.assert_allclose(two.consensus.pearson[:3], one.consensus.pearson[:3])
        assert two.preference == one.preference


def test_who_is_in_one_file_only_is_named(study):
    """A lost row is reported and shifts nothing."""
    scores, ratings = study
    fewer = ScoreTable(
        keys=scores.keys[1:], metrics=scores.metrics, values=scores.values[1:]
    )
    points = ratings.scores.copy()
    points[-1] = NA
    rated = ratings_of(points, list(ratings.ids), list(ratings.systems))
    found = meta_evaluate(fewer, rated, **QUICK)
    assert found.unscored == (("c00", "x"),)
    assert found.unrated == (("c29", "y"),)
    assert (found.candidates, found.cases, found.pairs) == (58, 30, 28)


def test_nothing_in_common_is_refused_with_an_example_of_each(study):
    """Ids of two exports are often spelled differently."""
    _, ratings = study
    other = table_of([("7", "x")], good=[1.0])
    with pytest.raises(DataError, match="case '7', system 'x', ratings of case 'c00'"):
        meta_evaluate(other, ratings, **QUICK)


def test_a_system_that_only_one_file_names_is_taken_for_the_same():
    """With one system there is nothing to confuse."""
    ratings = ratings_of([[1], [2], [3], [5]], list("abcd"), [""] * 4)
    scores = table_of([(case, "x") for case in "abcd"], good=[1, 2, 3, 4])
    found = meta_evaluate(scores, ratings, **QUICK)
    assert found.metrics[0].consensus.tau_b.value == pytest.approx(1)
    two = table_of([("a", "x"), ("a", "y")], good=[1, 2])
    with pytest.raises(DataError, match="no candidate has both"):
        meta_evaluate(two, ratings, **QUICK)


def test_what_a_metric_leaves_undefined_is_counted_and_left_out(study):
    """Undefined is neither the least value nor dropped in silence."""
    scores, ratings = study
    values = scores.values.copy()
    values[:6, 0] = NA
    found = meta_evaluate(
        ScoreTable(keys=scores.keys, metrics=scores.metrics, values=values),
        ratings,
        **QUICK,
    )
    good = next(one for one in found.metrics if one.metric.name == "good")
    assert (good.undefined, good.consensus.n) == (6, 54)
    assert good.preference.undefined == 3
    against = [one for one in found.comparisons if "good" in (one.better, one.worse)]
    assert {one.tau_b.n for one in against} == {54}


def test_metrics_with_the_same_values_count_once(study):
    """Else their p-values would be adjusted for comparisons that are none."""
    scores, ratings = study
    twice = ScoreTable(
        keys=scores.keys,
        metrics=(*scores.metrics, ScoredMetric("again", "Again")),
        values=np.column_stack([scores.values, scores.values[:, 0]]),
    )
    found = meta_evaluate(twice, ratings, **QUICK)
    assert [one.name for one in found.metrics[0].same] == ["again"]
    assert len(found.comparisons) == 3


def test_a_constant_metric_has_no_correlation_and_comes_last(study):
    """None, with the reason; the others go on."""
    scores, ratings = study
    flat = ScoreTable(
        keys=scores.keys,
        metrics=(ScoredMetric("flat", "Flat"), *scores.metrics),
        values=np.column_stack([np.ones(60), scores.values]),
    )
    found = meta_evaluate(flat, ratings, **QUICK)
    last = found.metrics[-1]
    assert last.metric.name == "flat"
    assert last.consensus.tau_b.value is None
    assert "equal" in last.consensus.tau_b.note
    assert last.preference.tied + last.preference.rater_ties == 30
    none = [one for one in found.comparisons if one.worse == "flat"]
    assert {one.p_tau_b for one in none} == {None}
    assert {one.pearson for one in none} == {None}


def test_a_good_metric_is_shown_to_be_better_than_noise(study):
    """Both tests, adjusted; and the better one stands first."""
    scores, ratings = study
    found = meta_evaluate(scores, ratings, resamples=60, permutations=999)
    one = next(
        one for one in found.comparisons if {one.better, one.worse} == {"good", "noise"}
    )
    assert one.better == "good"
    assert one.tau_b.difference > 0.4
    assert one.pearson > 0.4
    assert one.williams.t > 0
    assert max(one.p_tau_b, one.p_williams) < 0.01
    assert one.p_tau_b >= one.tau_b.p


def test_the_order_of_the_metrics_turns_no_comparison(study):
    """Whoever comes first, the better one and the p-values stay."""
    scores, ratings = study
    units = np.array(ratings.ids)
    args = (ratings.consensus, units)
    [one] = compare_all(["a", "b"], scores.directed[:, [0, 2]], *args)
    [two] = compare_all(["b", "a"], scores.directed[:, [2, 0]], *args)
    assert (one.better, one.worse) == (two.better, two.worse) == ("a", "b")
    assert two.tau_b.difference == pytest.approx(one.tau_b.difference)
    assert two.williams.t == pytest.approx(one.williams.t)
    assert two.pearson == pytest.approx(one.pearson)


def test_patients_are_the_unit_where_known(study):
    """Three cases of a patient say less than three of three patients."""
    scores, ratings = study
    patients = {case: f"p{int(case[1:]) // 3}" for case in ratings.ids}
    found = meta_evaluate(scores, ratings, patients=patients, **QUICK)
    assert found.patients == 10
    assert found.metrics[0].consensus.n_units == 10
    assert meta_evaluate(scores, ratings, **QUICK).patients is None


def test_a_perfect_metric_is_right_in_every_pair(study):
    """The raters' own mean prefers what they prefer."""
    _, ratings = study
    scores = table_of(list(ratings.keys), mean=ratings.consensus)
    [one] = meta_evaluate(scores, ratings, **QUICK).metrics
    assert one.consensus.tau_b.value == pytest.approx(1)
    assert one.preference.accuracy.value == 1
    assert one.preference.wrong == one.preference.tied == 0
    assert one.unanimous.accuracy.value == 1
    assert 0 < one.unanimous.right < one.preference.right


def test_a_metric_turned_round_is_the_same_metric():
    """Where less is better the sign is turned, and a zero gets one, too."""
    keys = [(case, "x") for case in "abcdef"]
    up = np.array([0.0, 1, 2, 3, 4, 5])
    scores = table_of(keys, lower=("down",), up=up, down=0.0 - up)
    ratings = ratings_of(up[:, None] % 5 + 1, list("abcdef"), ["x"] * 6)
    (found,) = meta_evaluate(scores, ratings, **QUICK).metrics
    assert [one.name for one in (found.metric, *found.same)] == ["up", "down"]


def test_what_was_rated_is_told(study):
    """Points and counts of errors are never mixed up."""
    scores, ratings = study
    assert meta_evaluate(scores, ratings, **QUICK).against == "points"
    counted = replace(ratings, against="error counts, negated")
    found = meta_evaluate(scores, counted, **QUICK)
    assert found.against == "error counts, negated"


def test_more_agreement_than_two_raters_have_is_suspicious():
    """A metric that is one rater's points agrees with both more than they do."""
    points = np.array([[1, 2], [2, 1], [3, 4], [4, 3], [5, 5.0]])
    ratings = ratings_of(points, list("abcde"), ["x"] * 5)
    keys = [(case, "x") for case in "abcde"]
    scores = table_of(keys, copied=[1, 2, 3, 4, 5], noise=[3, 1, 2, 5, 4])
    copied, noise = meta_evaluate(scores, ratings, **QUICK).metrics
    agreement = meta_evaluate(scores, ratings, **QUICK).agreement
    assert copied.metric.name == "copied"
    assert (copied.tau_b_each, agreement.tau_b) == (pytest.approx(0.8), 0.6)
    assert copied.is_suspicious(agreement) and not noise.is_suspicious(agreement)
    alone = ratings_of(points[:, :1], list("abcde"), ["x"] * 5)
    single = meta_evaluate(scores, alone, **QUICK)
    assert not single.metrics[0].is_suspicious(single.agreement)


def test_error_counts_are_held_on_the_resamples_of_the_document(study):
    """Twice, without and with insignificant errors, with its seed."""
    scores, ratings = study
    experts = counts_of(ratings.keys, 2)
    document = evaluate_metrics(scores, ratings, **QUICK)
    found = hold_errors(document, counts_of(ratings.keys, 1), experts, name="J")
    assert [one.all_errors for one in found.errors] == [False, True]
    [plain, _] = found.errors
    assert plain == agree_on_errors(
        counts_of(ratings.keys, 1),
        experts,
        name="J",
        all_errors=False,
        resamples=document.result.resamples,
        seed=document.result.seed,
    )


def counts_of(keys, raters):
    """Return made-up counts of errors."""
    shape = (len(keys), raters, 2, 2)
    return ErrorTable(
        keys=keys,
        raters=tuple("rs"[:raters]),
        categories=("false_finding", "omission"),
        counts=np.random.default_rng(raters).integers(0, 3, shape).astype(float),
    )


def test_what_was_evaluated_is_named_with_its_digests(study, tmp_path):
    """Where it comes from, what was left out, and what stood twice."""
    scores, ratings = study
    describes = known_metric(METRICS["flesch"], ())
    table = ScoreTable(
        keys=scores.keys,
        metrics=(*scores.metrics, describes),
        values=np.column_stack([scores.values, np.arange(60.0)]),
        unavailable=(("bleu", "no texts"),),
    )
    path = tmp_path / "scores.csv"
    path.write_text("x")
    document = evaluate_metrics(table, ratings, files=[path], **QUICK, seed=5)
    assert (document.source, document.counts, document.errors) == ("ratings", (), ())
    assert document.files == (("scores.csv", digest_bytes(b"x")),)
    (note,) = document.notes
    assert note.startswith("Left out, because they describe and do not grade: flesch.")
    result = document.result
    assert [one.metric.name for one in result.metrics] == ["good", "errors", "noise"]
    assert (result.resamples, result.permutations, result.seed) == (60, 200, 5)
    assert (result.raters, result.systems) == (("r0", "r1", "r2"), ("x", "y"))
    assert (result.scale, result.confidence) == ((1, 5), 0.95)
    assert result.unavailable == (("bleu", "no texts"),)
    twice = replace(ratings, repeated=2)
    again = evaluate_metrics(
        table, twice, metrics=["flesch"], source="mine.csv", **QUICK
    )
    assert again.source == "mine.csv"
    assert again.notes == ("2 repeated ratings were used once.",)
    assert len(again.result.metrics) == 4 and again.files == ()


def test_pairs_of_candidates_are_counted_by_what_raters_say(study):
    """All, those of one mind, and those that every rater ties."""
    _, ratings = study
    scores = table_of(list(ratings.keys), mean=ratings.consensus)
    found = meta_evaluate(scores, ratings, **QUICK)
    points = ratings.scores.reshape(30, 2, 3)
    signs = np.sign(points[:, 0] - points[:, 1])
    same = (signs == signs[:, :1]).all(axis=1)
    assert found.pairs == 30
    assert found.unanimous == int((same & (signs[:, 0] != 0)).sum())
    assert found.tied == int((same & (signs[:, 0] == 0)).sum())


def test_strata_divide_the_candidates_of_each_metric(study, tmp_path):
    """Each as by hand, with the document's resamples; a metric that describes, too."""
    scores, ratings = study
    path = tmp_path / "strata.csv"
    rows = [f"c{n:02},{'CT' if n < 18 else 'MR'}" for n in range(30)]
    path.write_text("\n".join(["id,modality", *rows]))
    document = evaluate_metrics(scores, ratings, **QUICK, seed=3, files=[path])
    found = divide_strata(document, scores, ratings, path)
    assert [(one.metric.name, one.agreement.stratum) for one in found.strata] == [
        (name, stratum)
        for name in ("good", "errors", "noise")
        for stratum in ("CT", "MR")
    ]
    for one in found.strata:
        chosen = slice(0, 36) if one.agreement.stratum == "CT" else slice(36, 60)
        place = [metric.name for metric in scores.metrics].index(one.metric.name)
        within = correlate(
            scores.directed[chosen, place],
            ratings.consensus[chosen],
            np.array(ratings.ids)[chosen],
            resamples=60,
            seed=3,
        )
        assert one.agreement.tau_b == within.tau_b
        n = len(ratings.ids[chosen])
        assert (one.agreement.n, one.agreement.n_units) == (n, n // 2)
    digest = digest_bytes(path.read_bytes())
    assert found.files == (*document.files, ("strata.csv", digest))
    assert found.result == document.result
    patients = {f"c{n:02}": f"p{n // 3}" for n in range(30)}
    known = RadPref(
        references={},
        candidates={},
        ratings=ratings,
        counts=np.empty((0, 0, 0)),
        errors=counts_of(ratings.keys, 1),
        patients=patients,
    )
    grouped = divide_strata(document, scores, known, path).strata
    assert [one.agreement.n_units for one in grouped] == [6, 4] * 3
    assert [one.agreement.n for one in grouped] == [36, 24] * 3


def test_williams_test_needs_four_candidates_and_three_that_vary():
    """With fewer, or where a metric is constant, there is none; degrees are told."""
    points = np.array([1.0, 2, 4, 3])
    table = np.column_stack([[1.0, 2, 3, 4], [2.0, 1, 4, 3], [5.0, 5, 5, 5]])
    ids = np.arange(4)
    one, flat, other = compare_all(["a", "b", "c"], table, points, ids)
    r = np.corrcoef(np.stack([points, table[:, 0], table[:, 1]]))
    assert {one.better, one.worse} == {"a", "b"}
    assert abs(one.pearson) == pytest.approx(abs(r[0, 1] - r[0, 2]))
    assert one.williams.df == 1 and one.williams.t is not None
    for each in (flat, other):
        assert (each.pearson, each.williams[:]) == (None, (None, 1, None))
        assert each.p_williams is None
    table[3, 0] = NA
    few, *_ = compare_all(["a", "b"], table[:, :2], points, ids)
    assert (few.pearson, few.williams[:]) == (None, (None, 0, None))
    nothing, *_ = compare_all(["a", "b"], table[2:, :2], points[2:], ids[2:])
    assert nothing.williams.df == 0


def test_p_values_are_adjusted_for_the_pairs_that_have_one():
    """Holm by hand, over three of six pairs: one metric is constant."""
    rng = np.random.default_rng(4)
    truth = rng.normal(size=40)
    columns = [truth + rng.normal(0, spread, 40) for spread in (0.1, 0.8, 2)]
    table = np.column_stack([*columns, np.ones(40)])
    found = compare_all(list("abcd"), table, truth, np.arange(40), permutations=500)
    assert [(one.better, one.worse) for one in found] == [
        *[("a", "b"), ("a", "c"), ("a", "d")],
        *[("b", "c"), ("b", "d"), ("c", "d")],
    ]
    for plain, adjusted in (
        ([one.tau_b.p for one in found], [one.p_tau_b for one in found]),
        ([one.williams.p for one in found], [one.p_williams for one in found]),
    ):
        known = [place for place, p in enumerate(plain) if p is not None]
        assert known == [0, 1, 3]
        expected = multipletests([plain[place] for place in known], method="holm")[1]
        assert [adjusted[place] for place in known] == pytest.approx(list(expected))
        assert [adjusted[place] for place in (2, 4, 5)] == [None] * 3


def test_a_metric_turned_round_keeps_each_of_its_differences():
    """The better one stands first, with tau-b, Pearson and t seen from it."""
    rng = np.random.default_rng(4)
    truth = rng.normal(size=40)
    good, bad = truth + rng.normal(0, 0.2, 40), truth + rng.normal(0, 2, 40)
    args = (truth, np.arange(40))
    [one] = compare_all(["bad", "good"], np.column_stack([bad, good]), *args)
    assert (one.better, one.worse) == ("good", "bad")
    gap = kendalltau(good, truth)[0] - kendalltau(bad, truth)[0]
    assert one.tau_b.difference == pytest.approx(gap)
    assert one.pearson == pytest.approx(
        pearsonr(good, truth)[0] - pearsonr(bad, truth)[0]
    )
    assert one.williams.t > 0

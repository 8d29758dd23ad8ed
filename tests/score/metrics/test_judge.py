"""The embedded judge as metrics: GREEN's formulas on its counts, and its agreement."""

from dataclasses import replace

import numpy as np
import pytest

from loop.core.digests import digest_bytes
from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.judging import GreenCategory
from loop.prompts.catalog import read_version
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import candidate_pairs
from loop.score.metrics.base import Direction, MetricOptions, Unavailable
from loop.score.metrics.embedded_judge import JUDGE, count_errors
from loop.score.metrics.registry import METRICS, find
from loop.stats.correlation import correlate, preference_accuracy
from tests.score.metrics.scenes import make_side

EFFUSION = "Large left pleural effusion. Cardiomegaly. No pneumothorax."
NORMAL = "The heart is normal in size. The lungs are clear. No pleural effusion."


def judged(references, candidates, **how):
    """Return what every metric of the judge says, by name."""
    side = make_side(references, candidates, **how)
    return {one.name: one.score(side, MetricOptions()) for one in JUDGE}


def test_a_copy_has_the_best_score():
    """Of findings, and of reports that have none."""
    told = judged([EFFUSION, NORMAL], [EFFUSION, NORMAL])
    assert told["judge_errors"].per_case.tolist() == [0, 0]
    for name in ("judge", "judge_green", "judge_green_f1", "judge_formula"):
        assert told[name].per_case.tolist() == [1, 1]


def test_the_formulas_are_those_of_its_counts():
    """One of two findings is missed, and one is made up: M 1, S 2."""
    told = judged([EFFUSION], ["Large left pleural effusion. Pneumothorax."])
    assert told["judge_errors"].per_case.tolist() == [2]
    assert told["judge_green"].value == pytest.approx(1 / 3)
    assert told["judge_green_f1"].value == pytest.approx(2 / 4)
    assert told["judge_formula"].value == pytest.approx(1 / 5)
    assert 0 < told["judge"].value < 1
    (lower,) = (one for one in JUDGE if one.direction is Direction.LOWER)
    assert (lower.name, lower.low, lower.high) == ("judge_errors", 0.0, None)


def test_what_weighs_less_costs_less():
    """A missed granuloma is no missed pneumothorax; only Formula minds it."""
    missed = judged(
        [f"{EFFUSION} Calcified granuloma.", f"{EFFUSION} Right pneumothorax."],
        [EFFUSION, EFFUSION],
    )
    minor, major = missed["judge"].per_case
    assert major < minor < 1
    assert missed["judge_errors"].per_case.tolist() == [0, 1]
    assert missed["judge_green"].per_case[0] == 1
    assert missed["judge_formula"].per_case[0] < 1


def test_other_languages_are_undefined_and_told():
    """They are refused, not guessed; whether the language is given or not."""
    told = judged([EFFUSION], [EFFUSION], language="de")["judge"]
    assert np.isnan(told.per_case).all() and told.value is None
    assert told.notes == ("undefined for 1 of 1 cases: not in English",)
    side = make_side([EFFUSION] * 2, ["左侧胸腔积液。", EFFUSION])
    guessed = METRICS["judge"].score(replace(side, languages=()), MetricOptions())
    assert np.isnan(guessed.per_case).tolist() == [True, False]
    assert guessed.signature.endswith("|n:1")


def test_an_empty_candidate_has_the_worst_score():
    """It is a bad report, and no missing one; a reference without words is none."""
    side = make_side(
        [EFFUSION, "", NORMAL, NORMAL], ["", EFFUSION, " ", "INDICATION: Cough."]
    )
    for languages in (side.languages, ()):
        spoken = replace(side, languages=languages)
        told = {one.name: one.score(spoken, MetricOptions()) for one in JUDGE}
        assert told["judge_errors"].per_case[[0, 2, 3]].tolist() == [2, 1, 1]
        for name in ("judge", "judge_green", "judge_green_f1", "judge_formula"):
            assert told[name].per_case[[0, 2, 3]].tolist() == [0, 0, 0]
            assert np.isnan(told[name].per_case[1])
        assert told["judge"].notes == (
            "undefined for 1 of 4 cases: the reference holds nothing to read",
        )


def test_chinese_is_refused_whatever_language_was_given():
    """It would read as a normal report."""
    told = judged([NORMAL, "双肺清晰。"], ["双肺清晰。", NORMAL])["judge"]
    assert np.isnan(told.per_case).all()
    assert told.notes == ("undefined for 2 of 2 cases: not in English",)


def test_the_signature_pins_what_it_reads_with():
    """Other guides or other weights are another metric."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    weights = digest_bytes((bundled() / "labels" / "judging.yaml").read_bytes())
    told = judged([EFFUSION], [EFFUSION])
    for name, one in told.items():
        assert one.signature.startswith(f"{name}|rules:")
        assert f"|guides:{version.ref}:{version.digest[:8]}|" in one.signature
        assert f"|weights:{weights[:8]}|" in one.signature
        assert ("|empty:1|" in one.signature) is (name not in ("judge", "judge_errors"))


def test_labels_are_no_texts():
    """Where labels are given, there is nothing to judge."""
    side = make_side([EFFUSION], [EFFUSION])
    told = METRICS["judge"].score(replace(side, references=None), MetricOptions())
    assert isinstance(told, Unavailable)
    assert find(["judge"]) == JUDGE


@pytest.mark.data
def test_it_agrees_with_three_radiologists(data_folder):
    """On RadPref, with the mean of the ratings; labels reach 0.568, ROUGE-1 0.452."""
    found = read_radpref(data_folder / "radpref")
    keys = [*zip(found.ratings.ids, found.ratings.systems, strict=True)]
    told = judged(
        [found.references[case] for case, _ in keys],
        [found.candidates[system][case] for case, system in keys],
    )
    mean = found.ratings.scores.mean(axis=1)
    for name, least in (("judge", 0.62), ("judge_green", 0.62), ("judge_errors", 0.6)):
        sign = -1 if METRICS[name].direction is Direction.LOWER else 1
        assert correlate(sign * told[name].per_case, mean).tau_b.value >= least
    pairs = candidate_pairs(found.ratings, np.arange(len(keys)))
    order = preference_accuracy(told["judge"].per_case[pairs.rows], pairs.consensus)
    assert order.right + order.wrong + order.tied == 44
    assert order.right >= 38


def test_errors_are_counted_by_category_for_each_candidate():
    """Sorted by case; what cannot be read has none, and is not without errors."""
    references = {"b": EFFUSION, "a": NORMAL, "c": EFFUSION}
    wrong = "Large left pleural effusion. Pneumothorax."
    candidates = {
        "y": {"a": NORMAL, "b": wrong, "z": NORMAL},
        "x": {"b": EFFUSION, "c": "左侧胸腔积液。"},
    }
    found = count_errors(references, candidates)
    assert found.keys == (("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"))
    assert (found.raters, found.categories) == (("judge",), tuple(GreenCategory))
    assert found.counts.shape == (4, 1, len(GreenCategory), 2)
    told = judged([EFFUSION], [wrong])
    totals = found.totals(found.categories, all_errors=False)[:, 0]
    np.testing.assert_array_equal(totals, [0, 0, told["judge_errors"].value, np.nan])
    by_name = dict(zip(found.categories, found.counts[2, 0].tolist(), strict=True))
    assert by_name["false_finding"] == [1, 0]
    assert by_name["omission"] == [1, 0]
    assert np.isnan(found.counts[3]).all()
    parts = told["judge"].signature.split("|")
    assert found.signature == "|".join(["judge_errors", *parts[1:4]])


def test_without_a_pair_there_is_a_table_without_rows():
    """No system, no case in common."""
    for candidates in ({}, {"x": {"z": NORMAL}}):
        found = count_errors({"a": NORMAL}, candidates)
        assert found.keys == ()
        assert found.counts.shape == (0, 1, len(GreenCategory), 2)


def test_insignificant_errors_are_weighed_by_their_formula():
    """M 2, S 0, I 1: 2 / 2.5; and what nothing is said of has no errors."""
    told = judged([f"{EFFUSION} Calcified granuloma."], [EFFUSION])
    counted = count_errors(
        {"a": f"{EFFUSION} Calcified granuloma."}, {"x": {"a": EFFUSION}}
    )
    serious, light = counted.counts[0, 0].sum(axis=0)
    assert (serious, light) == (0, 1)
    assert told["judge_formula"].value == pytest.approx(2 / 2.5)

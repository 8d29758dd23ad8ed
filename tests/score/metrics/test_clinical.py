"""Metrics of labels: scikit-learn's numbers, stated policies, nothing guessed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, recall_score

from loop.core.records import ValueCode
from loop.score.metrics.base import MetricOptions
from loop.score.metrics.clinical import TOP_FIVE
from loop.score.metrics.registry import METRICS, find
from loop.score.ran import score
from loop.score.records import Conventions, ExtractorFacts, Graded, Uncertain
from tests.score.metrics.scenes import ALONE, TAXONOMY, make_codes, make_side

DECIDED = {"codes": (1, 0), "shares": (1, 4)}


def side_of(reference, candidate):
    """Return a side whose texts do not matter."""
    blank = [""] * len(reference)
    return make_side(blank, blank, codes=(reference, candidate))


def tell(name, side, **options):
    """Return what a metric says of a side."""
    return METRICS[name].score(side, replace(ALONE, **options))


@given(seed=st.integers(0, 10**6))
def test_ran_score_is_the_one_of_the_ranking(seed):
    """Two numbers called Ran Score in one document must be one number."""
    reference, candidate = make_codes(12, seed), make_codes(12, seed + 1)
    graded = Graded(
        case_ids=tuple(f"c{n:02d}" for n in range(12)),
        labels=TAXONOMY.ids,
        systems=("model",),
        reference=reference,
        candidates=candidate[None],
    )
    ranked = score(graded, Conventions(), resamples=10, permutations=10)
    told = tell("ran_score", side_of(reference, candidate))
    assert told.value == pytest.approx(ranked.systems[0].ran_score.value, abs=1e-12)
    assert told.signature == ranked.systems[0].signature
    errors = tell("ran_errors", side_of(reference, candidate)).per_case
    for case, f1, wrong in zip(ranked.cases, told.per_case, errors, strict=True):
        assert (case.f1 is None) == np.isnan(f1) == np.isnan(wrong)
        if case.f1 is not None:
            assert (case.f1, case.errors) == (f1, wrong)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("size", [14, 5])
def test_chexpert_f1_is_that_of_scikit_learn(size, average):
    """Over the 14 or 5 columns, with the labels that never occur as 0."""
    reference = make_codes(40, 3, **DECIDED)
    candidate = make_codes(40, 4, **DECIDED)
    names = TAXONOMY.comparable if size == 14 else TOP_FIVE
    columns = [TAXONOMY.ids.index(name) for name in names]
    expected = f1_score(
        reference[:, columns], candidate[:, columns], average=average, zero_division=0
    )
    told = tell(
        f"chexpert{size}_{average}_excl",
        side_of(reference, candidate),
        zero_division="zero",
    )
    assert told.value == pytest.approx(expected)


def test_an_uncertain_value_counts_as_each_name_says():
    """One label: present, uncertain; the candidate says present to both."""
    reference = np.zeros((2, len(TAXONOMY.ids)), np.int8)
    candidate = reference.copy()
    place = TAXONOMY.ids.index("edema")
    reference[:, place], candidate[:, place] = [1, -1], [1, 1]
    side = side_of(reference, candidate)
    found = {p: tell(f"chexpert5_micro_{p}", side) for p in ("pos", "neg", "excl")}
    assert found["pos"].value == 1
    assert found["neg"].value == pytest.approx(2 / 3)
    assert found["excl"].value == 1
    assert all(f"|unc:{name}|" in told.signature for name, told in found.items())


def test_a_policy_of_the_options_does_not_change_a_metric_named_after_another():
    """The name says pos; a general option must not make it neg."""
    side = side_of(make_codes(20, 1), make_codes(20, 2))
    usual = tell("chexpert14_micro_pos", side)
    other = tell("chexpert14_micro_pos", side, uncertain=Uncertain.ABSENT)
    assert usual.value == other.value


@pytest.mark.parametrize(
    ("name", "per_case", "value", "rated"),
    [
        ("clinical_sensitivity", [0.5, np.nan], 0.5, 2),
        ("clinical_specificity", [17 / 18, 1], 37 / 38, 20),
        ("clinical_specificity_macro", [17 / 18, 1], 19.5 / 20, 20),
        ("clinical_f1", [0.5, np.nan], 0.5, 3),
        ("clinical_f1_macro", [0.5, np.nan], 1 / 3, 3),
        ("clinical_sensitivity_macro", [0.5, np.nan], 0.5, 2),
    ],
)
def test_clinical_rates_leave_no_finding_out(name, per_case, value, rated):
    """It is the negation of all others: it would count every error twice."""
    reference = np.zeros((2, len(TAXONOMY.ids)), np.int8)
    candidate = reference.copy()
    where = [TAXONOMY.ids.index(n) for n in ("edema", "fracture", "pneumonia")]
    reference[0, where[:2]] = 1
    candidate[0, where[1:]] = 1
    reference[1, TAXONOMY.ids.index("no_finding")] = 1
    told = tell(name, side_of(reference, candidate))
    assert told.per_case == pytest.approx(per_case, nan_ok=True)
    assert told.value == pytest.approx(value)
    assert told.signature.endswith(f"|nf:out|L:{rated}/20|n:2")


def test_macro_sensitivity_is_the_mean_over_labels_that_occur():
    """Scikit-learn's recall, its undefined labels left out."""
    reference = make_codes(50, 8, codes=(1, 0), shares=(1, 30))
    candidate = make_codes(50, 9, **DECIDED)
    keep = [n for n, name in enumerate(TAXONOMY.ids) if name != "no_finding"]
    each = recall_score(
        reference[:, keep], candidate[:, keep], average=None, zero_division=np.nan
    )
    told = tell("clinical_sensitivity_macro", side_of(reference, candidate))
    assert told.value == pytest.approx(np.nanmean(each))


@pytest.mark.parametrize("code", [ValueCode.UNANSWERED, ValueCode.MISSING])
@pytest.mark.parametrize("name", [metric.name for metric in find(["labels"])])
def test_without_an_answer_nothing_is_defined(name, code):
    """A missing answer is never absent, under any policy."""
    answers = make_codes(5, 1, **DECIDED)
    told = tell(name, side_of(answers, np.full_like(answers, code)))
    assert told.value is None
    assert np.isnan(told.per_case).all()


def test_the_signature_names_what_read_the_labels():
    """Scores of two extractors are not comparable."""
    facts = ExtractorFacts(ref="extractor@v7", digest="3f2a91" * 8, engine="rules")
    side = replace(side_of(make_codes(5, 1), make_codes(5, 2)), extractor=facts)
    assert "|extractor@v7:3f2a91|rules|" in tell("chexpert5_macro_pos", side).signature


def test_a_taxonomy_without_the_labels_of_chexpert_says_so():
    """The rest of the metrics go on."""
    side = replace(side_of(make_codes(5, 1), make_codes(5, 2)), comparable=("edema",))
    told = METRICS["chexpert14_macro_pos"].score(side, MetricOptions())
    assert told.metric == "chexpert14_macro_pos"
    assert told.reason.startswith("the taxonomy has 1 of the 14 labels. Give")
    lacking = tuple(name for name in TAXONOMY.ids if name not in ("edema", "fracture"))
    fewer = replace(side, labels=lacking, comparable=TAXONOMY.comparable)
    for name, counted in (("chexpert5", "4 of the 5"), ("chexpert14", "12 of the 14")):
        few = METRICS[f"{name}_micro_neg"].score(fewer, MetricOptions())
        assert few.reason.startswith(f"the taxonomy has {counted} labels. Give")

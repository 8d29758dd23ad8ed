"""The auditor rediscovers what is wrong, and right, in the published tables.

The expected numbers were established by hand, not by this code.
"""

import pytest

from loop.core.check_findings import FindingSeverity
from tests.published.article import GOLDEN, LABELS, MODELS

DIFFERENT_POSITIVES = [
    LABELS[index - 1] for index in (2, 3, 4, 5, 7, 8, 9, 10, 12, 14, 16, 17, 18, 20, 21)
]


def one(article, check, table="", subject=""):
    """Return the only finding of its kind."""
    (finding,) = article.about(check, table, subject)
    return finding


def claims(article, part):
    """Return the claims whose subject holds `part`."""
    return [found for found in article.about("claim") if part in found.part]


def test_fact_1_intervals_of_table_2_are_exact_at_300(article):
    """All 105, one of them only when rounded twice; no other method gives any."""
    found = one(article, "interval method", "Table 2")
    assert found.severity is FindingSeverity.OK
    assert found.numbers["method"] == "Clopper-Pearson"
    assert found.numbers["matched"] == {
        "Clopper-Pearson": 105, "Wilson": 0, "Agresti-Coull": 0, "Jeffreys": 0,
        "Wald": 0,
    }  # fmt: skip
    assert found.numbers["single_rounding"]["Clopper-Pearson"] == 104


def test_fact_2_intervals_of_table_3_were_made_with_twice_its_cases(article):
    """At 150 none fits; at 300 all do, and every count is even."""
    found = one(article, "interval method", "Table 3")
    assert found.severity is FindingSeverity.BROKEN
    assert set(found.numbers["matched"].values()) == {0}
    assert found.numbers["fitting"] == [{"method": "Clopper-Pearson", "n": 300}]
    assert found.numbers["counts_that_divide"] == 105
    assert found.numbers["width_ratio"] == pytest.approx(2**0.5)


def test_fact_2_the_correct_intervals_of_table_3_are_given(article):
    """With their own 150 cases, to six decimals, as transcribed."""
    correct = one(article, "interval method", "Table 3").numbers["correct"]
    assert len(correct) == 105
    for cell in correct:
        expected = GOLDEN["table3"][cell["row"]][cell["column"]]
        assert cell["k"] == expected["k"]
        assert [cell["low"], cell["high"]] == pytest.approx(
            expected["ci_correct"], abs=1.1e-6
        )


@pytest.mark.parametrize(
    ("table", "reached", "means", "best"),
    [
        ("Table 2", [17, 21, 1, 15, 15], [0.9692, 0.9765, 0.783, 0.9583, 0.9638],
         [6, 8, 0, 7, 8]),
        ("Table 3", [16, 14, 0, 15, 17], [0.9695, 0.957, 0.5502, 0.9426, 0.9473],
         [13, 8, 0, 7, 4]),
    ],
)  # fmt: skip
def test_fact_3_the_highest_accuracy_is_not_the_highest(
    article, table, reached, means, best
):
    """Another model reaches more labels in each table, or has the higher mean."""
    found = one(article, "claim", table, "Qwen3-14B is the highest")
    assert found.severity is FindingSeverity.BROKEN
    assert [found.numbers["reached"][model] for model in MODELS] == reached
    assert [found.numbers["means"][model] for model in MODELS] == means
    assert [found.numbers["best_or_tied"][model] for model in MODELS] == best


def test_fact_4_table_2_compares_the_prompt_before_optimisation(article):
    """Its column equals Table 4 before on 21 labels, and Table 4 after on two."""
    found = one(article, "equal columns")
    assert found.numbers["first"] == ["Table 2", "Qwen3-14B"]
    assert found.numbers["second"] == ["Table 4", "Accuracy pre"]
    assert found.numbers["rows"] == 21
    assert found.numbers["siblings"] == {"Accuracy post": 2}


def test_fact_4_after_optimisation_every_label_reaches_the_threshold(article):
    """21 of 21, the least at 0.950."""
    (found,) = claims(article, "Accuracy post: 21")
    assert found.severity is FindingSeverity.OK
    assert (found.numbers["reached"], found.numbers["least"]) == (21, 0.95)


def test_fact_5_averages_before_reproduce_and_after_do_not(article):
    """Accuracy needs n to be decided: its cells are whole cases of 300."""
    for name in ("Accuracy", "Precision", "Recall", "F1"):
        before = one(article, "column mean", "Table 4", f"Average, {name} pre")
        after = one(article, "column mean", "Table 4", f"Average, {name} post")
        assert before.severity is FindingSeverity.OK
        assert after.severity is FindingSeverity.BROKEN
    means = GOLDEN["table4_recomputed_means_21"]
    assert after.numbers["recomputed"] == means["f1_post"]


def test_fact_5_the_average_f1_after_is_that_of_the_14_comparable_labels(article):
    """0.956 is the mean over 14 labels, beside a mean over 21 before."""
    found = one(article, "column mean", "Table 4", "Average, F1 post")
    assert found.numbers["fits"] == ["the comparable rows"]
    assert found.numbers["means"]["the comparable rows"] == [0.95636, 14]


def test_fact_5_the_mean_of_printed_differences_is_not_the_printed_one(article):
    """0.203 is a difference of averages; the differences average to 0.20038."""
    found = one(article, "averaged difference", "Table 4", "Average, Delta F1")
    assert found.numbers["fits"] == ["the difference of the printed averages"]
    ways = found.numbers["ways"]
    assert ways["the mean of the printed differences"] == 0.20038
    assert ways["the difference of the means of the comparable rows"] == 0.14957


def test_fact_6_the_gap_of_15_7_points_cannot_be_derived(article):
    """Four ways of taking it, none of which prints as 0.157."""
    found = one(article, "averaged difference", "Table 4", "Average, Delta to CheXbert")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["printed"] == 0.157
    assert [round(value, 4) for value in found.numbers["ways"].values()] == [
        0.158, 0.1607, 0.1588, 0.1552,
    ]  # fmt: skip


def test_fact_7_differences_come_from_another_run(article):
    """15 of 21 rows are off, and both columns agree on what they imply."""
    rows = one(article, "difference", "Table 4", "Delta F1")
    assert (rows.numbers["rows"], len(rows.numbers["off"])) == (21, 15)
    assert rows.numbers["implied"]["Pleural Other"] == 1.0
    assert rows.numbers["implied"]["Consolidation"] == 0.905
    both = one(article, "difference of another run")
    assert (both.numbers["agree"], both.numbers["rows"]) == (13, 14)


def test_fact_7_gains_over_the_older_labeller_are_its_own_values(article):
    """66.4 and 53.4 points; the table gives 24.5 and 37.5."""
    for label, gap in (("Lung Lesion", 0.245), ("Pleural Other", 0.375)):
        (found,) = claims(article, f"{label}: F1 post - CheXbert F1")
        assert found.severity is FindingSeverity.BROKEN
        assert found.numbers["equal_to"] == ["CheXbert F1"]
        assert found.numbers["difference"] == pytest.approx(gap)


@pytest.mark.parametrize(
    ("label", "gain"),
    [("Trachea and Bronchus", 0.808), ("Mediastinal Other", 0.586),
     ("Pleural Other", 0.534)],
)  # fmt: skip
def test_fact_7_gains_in_the_text_inherit_the_other_run(article, label, gain):
    """79.8, 57.6 and 62.5 stand in the column of differences only."""
    (found,) = claims(article, f"{label}: F1 post - F1 pre")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["equal_to"] == ["Delta F1"]
    assert found.numbers["difference"] == pytest.approx(gain)


def test_fact_8_reference_positives_differ_before_and_after(article):
    """In 15 of 21 labels no common number exists, nor with fewer cases."""
    found = one(article, "reference positives", "Table 4")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["differ"] == DIFFERENT_POSITIVES
    assert found.numbers["at_any_size"] == DIFFERENT_POSITIVES
    positives = found.numbers["positives"]
    assert positives["Consolidation"] == [[24, 24], [20, 20]]
    assert positives["Mediastinal Other"] == [[6, 6], [19, 19]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_fact_8_confusion_tables_are_the_transcribed_ones(article, when):
    """Every transcribed table is found; one row is impossible after."""
    found = one(article, "confusion tables", "Table 4", when)
    name = {"before": "pre", "after": "post"}[when]
    impossible = ["Interstitial Lung Disease"] if when == "after" else []
    assert found.numbers["impossible"] == impossible
    for label in LABELS:
        expected = GOLDEN["table4"][label][f"confusion_{name}_n300"]
        if isinstance(expected, list):
            listed = found.numbers["solutions"][label].get("tp_fp_fn", [])
            for table in expected:
                assert [table["tp"], table["fp"], table["fn"]] in listed


def test_fact_8_every_f1_of_table_4_follows_from_its_row(article):
    """All 42."""
    found = article.about("F1 from P and R", "Table 4")
    assert [one.severity for one in found] == [FindingSeverity.OK] * 2
    assert sum(one.numbers["cells"] for one in found) == 42


def test_fact_9_two_headers_of_table_5_are_swapped(article):
    """Exchanged, seven systems imply one share of positives: 12.9 %."""
    found = one(article, "share of positives", "Table 5")
    assert found.severity is FindingSeverity.BROKEN
    assert list(found.numbers["implied"].values()) == [
        0.098, 0.0559, 0.1001, 0.0743, 0.162, 0.1264, 0.0849,
    ]  # fmt: skip
    assert found.numbers["swap_restores"]
    expected = GOLDEN["table5_implied_positive_rate_if_cols_are_recall_precision"]
    assert found.numbers["swapped"] == expected


def test_fact_9_micro_f1_of_table_5_follows_and_macro_is_left_alone(article):
    """A mean of F1 values is not the F1 of mean rates."""
    found = one(article, "F1 from P and R", "Table 5")
    assert (found.part, found.severity) == ("micro", FindingSeverity.OK)
    assert found.numbers["cells"] == 7


def test_fact_9_the_ranking_in_the_text_skips_three_systems(article):
    """R2GenGPT is not followed by MedKit."""
    (found,) = claims(article, "R2GenGPT then MedKit")
    assert found.severity is FindingSeverity.BROKEN
    assert found.numbers["skipped"] == ["Libra 0.454", "RGRG 0.443", "PromptMRG 0.415"]


def test_fact_10_table_1_is_consistent(article):
    """3,528 of 6,300, 74 of 150, and 6,450 in total."""
    shares = article.about("count and share", "Table 1")
    assert [found.severity for found in shares] == [FindingSeverity.OK] * 3
    total = one(article, "total", "Table 1")
    assert (total.severity, total.numbers["n"]) == (FindingSeverity.OK, 6450)


def test_fact_10_the_lost_gap_of_50_3_points_is_found(article):
    """GPT-3.5 on Cardiomegaly: 0.980 - 0.477."""
    (found,) = claims(article, "Cardiomegaly")
    assert found.severity is FindingSeverity.OK
    assert found.numbers["difference"] == pytest.approx(0.503)


def test_fact_10_the_older_labeller_was_not_measured_on_these_cases(article):
    """With 4 fractures no counts give an F1 of 0.791, with 7 others none 0.928."""
    found = one(article, "attainable F1", "Table 4", "CheXbert F1")
    assert found.severity is FindingSeverity.BROKEN
    assert {"Fracture 0.791", "Pneumothorax 0.928"} <= set(found.numbers["impossible"])


def test_fact_11_twelve_labels_cannot_have_improved_significantly(article):
    """Exact McNemar at best: 5 net cases give 0.0625."""
    found = one(article, "attainable significance")
    assert found.severity is FindingSeverity.BROKEN
    assert len(found.numbers["cannot"]) == 12
    best = found.numbers["best_p"]
    assert (best["Pneumothorax"], best["Calcification (Lung/Mediastinal)"]) == (
        0.0625, 0.0625,
    )  # fmt: skip
    assert found.numbers["net_gain"]["Fracture"] == 2


def test_nothing_else_in_the_article_is_called_wrong(article):
    """What does not hold is what was established by hand, and nothing beside it."""
    wrong = {
        (found.check, found.where)
        for found in article.findings
        if found.severity is FindingSeverity.BROKEN
    }
    assert wrong == {
        ("interval method", "Table 3"), ("confusion tables", "Table 4"),
        ("reference positives", "Table 4"), ("attainable F1", "Table 4"),
        ("column mean", "Table 4"), ("difference", "Table 4"),
        ("averaged difference", "Table 4"), ("difference of another run", "Table 4"),
        ("share of positives", "Table 5"), ("attainable significance", "Table 4"),
        ("claim", "Table 2"), ("claim", "Table 3"), ("claim", "Table 4"),
        ("claim", "Table 5"),
    }  # fmt: skip

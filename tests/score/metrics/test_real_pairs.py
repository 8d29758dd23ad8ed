"""The metrics on real pairs with experts' ratings, where those are on this machine."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau

from loop.score.extractor import Extractor
from loop.score.grading import grade
from loop.score.joining import join_texts
from loop.score.metrics.registry import find
from loop.score.metrics.score_sheet import run_metrics
from tests.score.metrics.scenes import ALONE, TAXONOMY

SYSTEMS = ("C1", "C2")


@pytest.mark.data
@pytest.mark.slow
def test_ran_score_agrees_with_experts_better_than_any_count_of_words(data_folder):
    """Published for ROUGE-L is 0.444, for ROUGE-1 0.418, on twice as many cases."""
    folder = data_folder / "radpref"
    cases = json.loads((folder / "cases.json").read_text("utf-8"))
    readers = [
        json.loads((folder / f"radiologist_{n}.json").read_text("utf-8"))["annotations"]
        for n in (1, 2, 3)
    ]
    joined = join_texts(
        {case["id"]: case["ground_truth_report"] for case in cases},
        {
            each: {case["id"]: case[f"{each}_report"] for case in cases}
            for each in SYSTEMS
        },
        TAXONOMY,
    )
    with Extractor.open(None, "extractor@v7") as extractor:
        graded = grade(joined, TAXONOMY, extractor)
    sheet = run_metrics(joined, graded, TAXONOMY, ["all"], ALONE, resamples=10)
    ratings = [
        np.mean([reader[case][each]["rating"] for reader in readers])
        for each in sheet.systems
        for case in sheet.case_ids[each]
    ]
    tau = {
        metric.name: kendalltau(sheet.column(metric.name), ratings).statistic
        for metric in sheet.metrics
    }
    words = {m.name for m in find(["text"])} & set(tau)
    assert tau["ran_score"] > max(tau[name] for name in words)
    assert -tau["ran_errors"] > tau["ran_score"]
    assert tau["rouge_l"] == pytest.approx(0.444, abs=0.1)
    assert tau["rouge_1"] == pytest.approx(0.418, abs=0.1)
    assert tau["bleu_2"] == pytest.approx(0.413, abs=0.1)

"""ROUGE is what rouge-score says, and what that library drops is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from loop.score.metrics import rouge
from loop.score.metrics.registry import METRICS
from loop.score.metrics.rouge import measure_rouge
from tests.score.metrics.scenes import ALONE, CANDIDATE, REFERENCE, make_side

KNOWN = RougeScorer(["rouge1", "rouge2", "rougeL"])
ASCII = st.text(st.characters(max_codepoint=127), max_size=40)


@given(reference=ASCII, candidate=ASCII)
def test_any_ascii_text_scores_as_with_the_librarys_own_tokenizer(reference, candidate):
    """Ours differs only where the library's own drops letters."""
    found = KNOWN.score(reference, candidate)
    expected = [found[name].fmeasure for name in ("rouge1", "rouge2", "rougeL")]
    scores = measure_rouge([reference], [candidate])[0]
    assert scores == pytest.approx([*expected, found["rouge1"].recall])


def test_the_review_notes_example_has_its_correct_values():
    """The library splits x-ray, so the reference has 13 words: 4/11 and 4/13."""
    one, two, _, recall = measure_rouge([REFERENCE], [CANDIDATE])[0]
    assert (one, two) == pytest.approx((1 / 3, 2 / 11))
    assert recall == pytest.approx(4 / 13)


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("双肺清晰", "双肺不清", 0.75),
        ("épanchement", "epanchement", 0.0),
        ("ÖDEM", "ödem", 1),
    ],
)
def test_letters_outside_ascii_count(reference, candidate, expected):
    """The library's own tokenizer finds no word in Chinese, parts in French."""
    assert measure_rouge([reference], [candidate])[0, 0] == expected


def test_without_a_word_it_is_zero():
    """Silence recalls nothing."""
    assert not measure_rouge([REFERENCE, REFERENCE], ["", "..."]).any()


def test_only_the_longest_subsequence_is_undefined_beyond_the_limit(monkeypatch):
    """The limit itself is allowed; it is on the product of the numbers of words."""
    monkeypatch.setattr(rouge, "LARGEST", 6)
    references, candidates = ["no left mass"] * 2, ["no mass", "no right mass"]
    within, beyond = measure_rouge(references, candidates)
    assert within.tolist() == pytest.approx([0.8, 0, 0.8, 2 / 3])
    assert beyond.tolist() == pytest.approx([2 / 3, 0, np.nan, 2 / 3], nan_ok=True)
    side = make_side(references, candidates)
    told = METRICS["rouge_l"].score(side, ALONE)
    assert told.value == pytest.approx(0.8)
    assert told.notes == (
        "undefined for 1 of 2 cases: the numbers of words multiply to more than 6",
    )
    assert told.signature.startswith("rouge_l|F|stem:no|tok:words|mean:cases|rouge-")
    assert told.signature.endswith("|n:1")
    recall = METRICS["rouge_1_recall"].score(side, ALONE)
    assert recall.signature.startswith("rouge_1_recall|R|stem:no|")
    assert METRICS["rouge_1"].score(side, ALONE).notes == ()


@pytest.mark.slow
def test_a_text_of_a_megabyte_is_scored_and_two_of_them_are_said_to_be_too_long():
    """The library's table of two such texts would have 22,500,000,000 cells."""
    rng = np.random.default_rng(0)
    long = " ".join(rng.choice(["no", "effusion", "left"], 150_000))
    against_short, against_long = measure_rouge([REFERENCE, long], [long, long])
    assert not np.isnan(against_short).any()
    assert np.isnan(against_long).tolist() == [False, False, True, False]
    assert against_long[0] == 1

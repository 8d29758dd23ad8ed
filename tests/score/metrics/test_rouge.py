"""ROUGE is what rouge-score says, and what that library drops is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from loop.score.metrics.rouge import measure_rouge
from tests.score.metrics.scenes import CANDIDATE, REFERENCE

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


@pytest.mark.slow
def test_a_text_of_a_megabyte_is_scored_and_two_of_them_are_said_to_be_too_long():
    """The library's table of two such texts would have 22,500,000,000 cells."""
    rng = np.random.default_rng(0)
    long = " ".join(rng.choice(["no", "effusion", "left"], 150_000))
    against_short, against_long = measure_rouge([REFERENCE, long], [long, long])
    assert not np.isnan(against_short).any()
    assert np.isnan(against_long).tolist() == [False, False, True, False]
    assert against_long[0] == 1

"""BLEU from counts is what sacrebleu says, per case, of all, and of a resample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from loop.score.metrics.bleu import bleu_of, count_bleu
from loop.score.metrics.registry import METRICS
from tests.score.metrics.scenes import ALONE, CANDIDATE, REFERENCE, make_side

TEXT = st.lists(
    st.sampled_from(["no", "effusion", ".", "3.5", "cm", "Left", "left"]), max_size=9
).map(" ".join)
TEXTS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@given(pairs=TEXTS)
def test_of_all_cases_it_is_the_corpus_score_of_sacrebleu(order, pairs):
    """The bootstrap sums counts, so the counts must carry the whole score."""
    references, candidates = zip(*pairs, strict=True)
    counts = count_bleu(references, candidates).sum(axis=0)[None]
    known = BLEU(lowercase=True, max_ngram_order=order)
    expected = known.corpus_score(candidates, [references]).score / 100
    assert bleu_of(counts, order, effective=False)[0] == pytest.approx(expected)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@given(pairs=TEXTS)
def test_of_one_case_it_is_the_sentence_score_of_sacrebleu(order, pairs):
    """Short texts have no long runs of words: those orders are left out."""
    references, candidates = zip(*pairs, strict=True)
    scores = bleu_of(count_bleu(references, candidates), order, effective=True)
    known = BLEU(lowercase=True, max_ngram_order=order, effective_order=True)
    expected = [known.sentence_score(c, [r]).score / 100 for r, c in pairs]
    assert scores == pytest.approx(expected)


def test_the_review_notes_example_has_its_correct_value():
    """4 of 11 words, 2 of 10 pairs of words, 12 words in the reference: 0.24624."""
    counts = np.array([[11, 12, 4, 2, 0, 0, 11, 10, 9, 8]], dtype=float)
    score = bleu_of(counts, 2, effective=False)[0]
    assert score == pytest.approx(0.24624495093303567, abs=1e-14)


def test_the_tokens_of_sacrebleu_give_the_lower_value():
    """Punctuation counts as words there, which is why the tokenizer is in the name."""
    counts = count_bleu([REFERENCE.lower()], [CANDIDATE.lower()])
    assert bleu_of(counts, 2, effective=False)[0] == pytest.approx(0.2344, abs=5e-5)


def test_without_a_word_it_is_zero():
    """Silence matches nothing."""
    counts = count_bleu([REFERENCE], [""])
    assert bleu_of(counts, 4, effective=True)[0] == 0
    assert bleu_of(counts, 4, effective=False)[0] == 0


def test_a_chinese_text_is_read_character_by_character():
    """As one token, two texts would match whole or not at all."""
    counts = count_bleu(["双肺未见异常。"], ["双肺未见实变。"])
    assert 0 < bleu_of(counts, 2, effective=True)[0] < 1


@pytest.mark.parametrize("name", ["bleu_4", "chrf"])
def test_without_a_pair_there_is_no_value(name):
    """A sum over nothing is no score of 0."""
    told = METRICS[name].score(make_side([], []), ALONE)
    assert told.value is None and len(told.per_case) == 0
    assert told.signature.endswith("|n:0")


def test_one_chinese_side_is_enough_to_read_both_by_characters():
    """Whichever it is: else a reference of four characters would be one word."""
    counts = count_bleu(["双肺清晰", "Clear lungs"], ["Clear lungs", "双肺清晰"])
    assert counts[:, :2].tolist() == [[2, 4], [4, 2]]


def test_a_text_too_short_for_an_order_has_none_and_costs_a_corpus_all():
    """Like sacrebleu: only the score of one case leaves such orders out.

    A corpus without any run of four words scores 0.
    """
    told = METRICS["bleu_4"].score(make_side(["No mass"], ["No mass"]), ALONE)
    assert (told.per_case.tolist(), told.value) == ([1.0], 0.0)
    assert told.combine(told.parts).tolist() == [0.0]
    assert BLEU(lowercase=True).corpus_score(["No mass"], [["No mass"]]).score == 0
    two = METRICS["bleu_2"].score(make_side(["No mass"], ["No mass"]), ALONE)
    assert (two.per_case.tolist(), two.value) == ([1.0], 1.0)
    assert two.signature.startswith(
        "bleu_2|case:lc|eff:no|tok:13a+zh|smooth:exp|per-case:eff:yes|sacrebleu:"
    )

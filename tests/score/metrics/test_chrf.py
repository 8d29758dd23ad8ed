"""ChrF from counts is what sacrebleu says."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from loop.score.metrics.chrf import chrf_of, count_chrf

TEXTS = st.lists(
    st.tuples(*[st.text(alphabet="abcAé双 .", max_size=15)] * 2), min_size=1, max_size=5
)
KNOWN = CHRF(lowercase=True)


@given(pairs=TEXTS)
def test_of_all_cases_it_is_the_corpus_score_of_sacrebleu(pairs):
    """The bootstrap sums counts, so the counts must carry the whole score."""
    references, candidates = zip(*pairs, strict=True)
    counts = count_chrf(references, candidates).sum(axis=0)[None]
    expected = KNOWN.corpus_score(candidates, [references]).score / 100
    assert chrf_of(counts)[0] == pytest.approx(expected)


@given(pairs=TEXTS)
def test_of_one_case_it_is_the_sentence_score_of_sacrebleu(pairs):
    """Texts shorter than six characters lack the longer orders."""
    references, candidates = zip(*pairs, strict=True)
    expected = [KNOWN.sentence_score(c, [r]).score / 100 for r, c in pairs]
    assert chrf_of(count_chrf(references, candidates)) == pytest.approx(expected)


@pytest.mark.slow
def test_a_text_of_a_megabyte_takes_seconds():
    """Its runs of characters as texts would take a gigabyte."""
    letters = np.random.default_rng(0).choice(list("abcdefgh"), 1_000_000)
    long = "".join(letters)
    start = perf_counter()
    assert chrf_of(count_chrf([long], [long + "x"]))[0] == pytest.approx(1, abs=1e-5)
    assert perf_counter() - start < 60

"""ChrF from counts is what sacrebleu says."""

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


def test_without_a_pair_there_are_no_counts():
    """A system without a candidate is no error here."""
    assert count_chrf([], []).shape == (0, 18)

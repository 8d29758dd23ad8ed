"""Counts of pairs of texts: the same however many processes make them."""

import numpy as np
import pytest

from loop.score.metrics import word_counts
from loop.score.metrics.word_counts import KINDS, count_pairs, measure


@pytest.mark.slow
def test_what_another_process_fails_at_is_done_here(monkeypatch):
    """A machine short of memory kills the smaller process first."""
    monkeypatch.setattr(word_counts, "_WORTH", 1)
    monkeypatch.setattr("sys.executable", "/bin/false")
    references, candidates = ["no effusion", "edema"], ["effusion", "no edema"]
    found = measure(KINDS, references, candidates, workers=2)
    expected = count_pairs(list(KINDS), list(zip(references, candidates, strict=True)))
    for kind, rows in expected.items():
        assert np.array_equal(found[kind], rows)


def test_no_worker_is_refused():
    """Nobody would do the work."""
    with pytest.raises(ValueError, match="workers must be >= 1, got 0"):
        measure(["rouge"], ["a"], ["a"], workers=0)

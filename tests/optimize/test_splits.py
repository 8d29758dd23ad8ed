"""Nested splits keep units whole, deal rare labels evenly, and repeat themselves."""

import numpy as np
import pytest

from loop.optimize.splits import FOLDS, digest_splits, split_cases


@pytest.fixture
def scene():
    """Give a reference with a common and a rare label, and patients of three cases."""
    rng = np.random.default_rng(3)
    truth = (rng.random((150, 2)) < (0.4, 0.1)).astype(np.int8)
    truth[:5, 1] = -1
    return truth, np.arange(150) // 3


def test_no_unit_is_in_two_parts(scene):
    """A patient whose case was searched says nothing new in an estimate."""
    truth, units = scene
    for split in split_cases(truth, units, repeats=7):
        parts = [set(units[part].tolist()) for part in split]
        assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_every_case_is_estimated_once_in_each_round(scene):
    """Pooled over a round the estimate covers the cohort."""
    truth, units = scene
    splits = split_cases(truth, units, repeats=2 * FOLDS)
    for start in (0, FOLDS):
        seen = np.concatenate([one.estimate for one in splits[start : start + FOLDS]])
        assert sorted(seen.tolist()) == list(range(150))


def test_the_parts_of_a_split_are_all_cases(scene):
    """Nothing is lost."""
    truth, units = scene
    for split in split_cases(truth, units):
        assert sorted(np.concatenate(split).tolist()) == list(range(150))
        assert set(split.seen.known) == set(range(150)) - set(split.estimate)


def test_a_rare_label_is_dealt_evenly():
    """Ten positives among single cases give two to every estimate."""
    truth = np.zeros((200, 1), dtype=np.int8)
    truth[::20] = 1
    splits = split_cases(truth, np.arange(200), seed=5)
    assert [int(truth[one.estimate].sum()) for one in splits] == [2] * FOLDS


def test_the_seed_decides(scene):
    """The same seed gives the same splits, another one others."""
    truth, units = scene
    ids = [str(n) for n in range(150)]
    one, same, other = (
        digest_splits(split_cases(truth, units, seed=seed), ids) for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize(
    ("units", "repeats", "words"),
    [
        (np.zeros(6, int), 5, "need at least 5 units to split, got 1 in 6 cases"),
        (np.arange(5), 5, "a unit per case"),
        (np.arange(6), 0, "repeats must be >= 1"),
    ],
)
def test_what_cannot_be_split_is_refused(units, repeats, words):
    """The message names the numbers."""
    with pytest.raises(ValueError, match=words):
        split_cases(np.ones((6, 1), np.int8), units, repeats=repeats)

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


def test_labels_are_dealt_evenly_together_and_parts_are_of_one_size():
    """The rarer one first, whose positives have the other too; a third has none."""
    truth = np.zeros((200, 3), dtype=np.int8)
    truth[::4, 0] = 1
    truth[::20, 1] = 1
    for seed in range(5):
        for one in split_cases(truth, np.arange(200), seed=seed):
            assert truth[one.estimate].sum(axis=0).tolist() == [10, 2, 0]
            assert (len(one.search), len(one.select), len(one.estimate)) == (
                120, 40, 40,
            )  # fmt: skip


def test_a_patient_counts_with_all_of_its_cases():
    """Five have three positive cases each, five none: a part gets one of both kinds."""
    units = np.arange(10).repeat([3] * 5 + [4] * 5)
    truth = np.zeros((35, 1), dtype=np.int8)
    truth[:15] = 1
    for seed in range(5):
        splits = split_cases(truth, units, seed=seed)
        assert [int(truth[one.estimate].sum()) for one in splits] == [3] * FOLDS
        assert [len(one.estimate) for one in splits] == [7] * FOLDS


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


def test_as_many_units_as_parts_are_dealt_one_each():
    """One unit fewer cannot be dealt; see below."""
    units = np.arange(FOLDS).repeat(3)
    splits = split_cases(np.zeros((3 * FOLDS, 1), np.int8), units)
    assert [len(one.estimate) for one in splits] == [3] * FOLDS
    assert [len(one.select) for one in splits] == [3] * FOLDS
    assert [len(one.search) for one in splits] == [9] * FOLDS
    with pytest.raises(ValueError, match="at least 5 units"):
        split_cases(np.zeros((12, 1), np.int8), units[:12])


@pytest.mark.parametrize("repeats", [1, FOLDS, FOLDS + 1, 2 * FOLDS + 3])
def test_there_are_as_many_splits_as_are_asked_for(scene, repeats):
    """The first ones are the same, however many follow; a new round deals again."""
    truth, units = scene
    ids = [str(n) for n in range(150)]
    splits = split_cases(truth, units, repeats=repeats)
    assert len(splits) == repeats
    assert len({digest_splits([one], ids) for one in splits}) == repeats
    whole = split_cases(truth, units, repeats=20)[:repeats]
    assert digest_splits(splits, ids) == digest_splits(whole, ids)


def test_each_part_selects_in_the_split_before_it_estimates(scene):
    """So that nothing is chosen on cases that are always the same."""
    truth, units = scene
    splits = split_cases(truth, units)
    for one, after in zip(splits, (*splits[1:], splits[0]), strict=True):
        assert one.select.tolist() == after.estimate.tolist()


def test_what_is_open_is_no_positive():
    """Of 25 cases 5 are positive and 10 open: each part gets one of the 5."""
    truth = np.array([1] * 5 + [-1] * 10 + [0] * 10, np.int8)[:, None]
    splits = split_cases(truth, np.arange(25), seed=2)
    assert [int((truth[one.estimate] == 1).sum()) for one in splits] == [1] * FOLDS
    assert [len(one.estimate) for one in splits] == [5] * FOLDS


@pytest.mark.parametrize("seed", range(5))
def test_the_rarest_label_is_dealt_first(seed):
    """Dealt after the common one, of which its cases are five, it would fall anyhow."""
    truth = np.zeros((100, 2), np.int8)
    truth[:40, 0] = 1
    truth[:5, 1] = 1
    splits = split_cases(truth, np.arange(100), seed=seed)
    assert [truth[one.estimate].sum(axis=0).tolist() for one in splits] == [[8, 1]] * 5
    assert [len(one.estimate) for one in splits] == [20] * FOLDS


def test_of_parts_that_lack_a_label_alike_the_one_with_fewest_cases_gets_it():
    """Of nine units with a positive one has five cases more: mostly it stays alone."""
    units = np.repeat(np.arange(9), [6] + [1] * 8)
    truth = np.array([1, 0, 0, 0, 0, 0] + [1] * 8, np.int8)[:, None]
    alone = 0
    for seed in range(40):
        splits = split_cases(truth, units, seed=seed)
        (part,) = (one.estimate for one in splits if 0 in one.estimate)
        alone += len(part) == 6
    # In 5 of 9 orders it is dealt among the first five, and then no other joins it; by
    # chance none would join it in a fifth of these.
    assert alone > 16


@pytest.mark.parametrize(
    ("truth", "units"), [((6,), (6,)), ((6, 1), (5,)), ((6, 1), (6, 1))]
)
def test_each_case_has_labels_and_one_unit(truth, units):
    """The message gives both shapes."""
    with pytest.raises(ValueError, match="need a reference"):
        split_cases(np.ones(truth, np.int8), np.ones(units, np.int64))

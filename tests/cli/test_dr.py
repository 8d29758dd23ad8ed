"""What the verb ``dr`` takes for a threshold, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import typer

from loop.cli import dr
from loop.core.errors import DataError
from loop.judge.discrimination import PairScores

SCORES = PairScores(
    name="rouge_l",
    title="ROUGE-L",
    lower=False,
    values=np.array([0.2, 0.5, 0.8]),
    signature="s",
)


def test_thresholds_are_named_one_by_one():
    """The last one of a name counts; what stands before the last ``=`` is the name."""
    found = dr._read_thresholds(["rouge_l=0.6", "a=b=-1e-3", "rouge_l=0.7"])
    assert found == {"rouge_l": 0.7, "a=b": -0.001}
    assert dr._read_thresholds([]) == {}


@pytest.mark.parametrize(
    "given", ["rouge_l", "rouge_l=", "=0.5", "m=x", "m=nan", "m=inf"]
)
def test_what_is_no_threshold_is_refused(given):
    """A number that is none would flag nothing, or everything."""
    with pytest.raises(typer.BadParameter, match="write METRIC=VALUE"):
        dr._read_thresholds([given])


def test_a_threshold_that_is_named_goes_before_one_that_is_chosen():
    """And a metric without either flags nothing."""
    named = dr._with_threshold(SCORES, {"rouge_l": 0.5}, {"rouge_l": 0.9})
    assert named.decision == "flagged below 0.5, as named"
    assert named.flags.tolist() == [1, 0, 0]
    chosen = dr._with_threshold(SCORES, {"bleu": 0.5}, {"rouge_l": 0.9})
    assert chosen.decision == "flagged below 0.9, chosen on other pairs"
    assert chosen.flags.tolist() == [1, 1, 1]
    assert dr._with_threshold(SCORES, {"bleu": 0.5}, {"bleu": 0.9}) is SCORES


def test_a_threshold_of_what_is_not_measured_is_refused():
    """With all names that have none, and those that there are."""
    dr._require_used({"rouge_l": 0.5}, [SCORES])
    dr._require_used({}, [])
    with pytest.raises(
        DataError, match="names a, b, which is not measured here"
    ) as told:
        dr._require_used({"b": 1.0, "rouge_l": 0.5, "a": 1.0}, [SCORES])
    assert str(told.value).endswith("Measured are rouge_l.")


def test_scores_of_ones_own_need_a_threshold_where_others_are_chosen():
    """No text can be scored with a column of a file."""
    other = replace(SCORES, name="own")
    dr._check_own([SCORES, other], ["own"], {}, chosen=False)
    dr._check_own([SCORES], [], {"rouge_l": 0.5}, chosen=True)
    with pytest.raises(DataError, match="no column 'gone'"):
        dr._check_own([SCORES], ["rouge_l", "gone"], {}, chosen=False)
    with pytest.raises(DataError, match="own' comes from a file"):
        dr._check_own([SCORES, other], [], {"rouge_l": 0.5}, chosen=True)

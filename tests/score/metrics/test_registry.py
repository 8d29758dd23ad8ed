"""The registry: every metric under one name, complete, and found by its name."""

from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.metrics.base import (
    Direction,
    both_texts,
    count_defined,
    mean_scores,
    sign,
)
from loop.score.metrics.registry import FAMILIES, METRICS, find
from tests.score.metrics.scenes import make_side


def test_names_of_the_issue_are_there():
    """What must exist, under names that do not change."""
    wanted = {f"bleu_{n}" for n in range(1, 5)}
    wanted |= {"rouge_1", "rouge_2", "rouge_l", "meteor", "chrf", "bertscore", "flesch"}
    wanted |= {"ran_score", "clinical_sensitivity", "clinical_specificity"}
    wanted |= {
        f"chexpert{size}_{average}_{policy}"
        for size in (14, 5)
        for average in ("macro", "micro")
        for policy in ("pos", "neg", "excl")
    }
    assert wanted <= set(METRICS)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_says_what_it_is(metric):
    """A number whose meaning is not written down is not shown."""
    assert metric.name == metric.name.lower()
    assert metric.title
    assert metric.about.endswith(".")
    assert metric.reference
    assert metric.needs
    assert metric.family in FAMILIES
    if metric.direction is not Direction.NEITHER and metric.high is not None:
        assert metric.low < metric.high


def test_the_value_of_a_system_is_the_mean_over_its_defined_cases():
    """A case without a value is no 0; without any there is no value."""
    found = mean_scores(np.array([1.0, np.nan, 4.0]), "m|n:2", ("a note",))
    assert (found.value, found.signature, found.notes) == (2.5, "m|n:2", ("a note",))
    assert count_defined(found.per_case) == 2
    nothing = mean_scores(np.array([np.nan, np.nan]), "m|n:0")
    assert (nothing.value, nothing.notes) == (None, ())
    assert sign("m", "a:1", "b", library="numpy", n=3) == (
        f"m|a:1|b|numpy:{np.__version__}|n:3"
    )


@pytest.mark.parametrize("side", ["references", "candidates"])
def test_labels_in_place_of_texts_are_named_by_their_side(side):
    """A metric of words says which of the two files it needs."""
    pair = make_side(["a"], ["b"])
    assert both_texts(pair, "m") == (("a",), ("b",))
    assert both_texts(replace(pair, **{side: None}), "m") == (
        "m",
        f"the {side} of this system are labels, not texts. Give files with a text "
        "column to have it.",
    )


def test_all_and_families_name_several():
    """In the registry's order, whatever the order asked for, each once."""
    assert find(["all"]) == tuple(METRICS.values())
    assert find(["reading", "labels", "flesch", "judge", "text"]) == find(["all"])
    assert {metric.family for metric in find(["text"])} == {"text"}
    assert find([]) == ()


def test_an_unknown_name_is_refused_with_the_closest_one():
    """A metric that silently does not run would look as if it had been chosen away."""
    with pytest.raises(DataError, match=r"'ROUGE-L'.*Did you mean 'rouge_l'.*--list"):
        find(["bleu_1", "ROUGE-L"])

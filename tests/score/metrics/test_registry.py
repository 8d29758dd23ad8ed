"""The registry: every metric under one name, complete, and found by its name."""

import pytest

from loop.core.errors import DataError
from loop.score.metrics.base import Direction
from loop.score.metrics.registry import FAMILIES, METRICS, find


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

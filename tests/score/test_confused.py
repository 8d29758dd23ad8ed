"""Confusions: one label missed, another one invented, in the same case."""

from collections import Counter

from hypothesis import given

from loop.core.records import ValueCode
from loop.score.confused import confusions
from loop.score.records import Conventions
from tests.score.graded_tables import VALUES, coverage, graded, tables


@given(tables(VALUES))
def test_confusions_are_those_of_a_loop(pair):
    """Counting case by case, label by label."""
    table = graded(*pair)
    counted, missed = Counter(), Counter()
    for truth, told in zip(*pair, strict=True):
        lost = [i for i, t in enumerate(truth) if t == 1 and told[i] == 0]
        made = [i for i, t in enumerate(truth) if t == 0 and told[i] == 1]
        missed.update(lost)
        for i in lost:
            counted.update((i, j) for j in made)
    found = confusions(table, Conventions(), most=1000)
    names = table.labels
    assert {(c.missed, c.invented): c.n for c in found} == {
        (names[i], names[j]): n for (i, j), n in counted.items()
    }
    assert all(c.of_missed == missed[names.index(c.missed)] for c in found)


def test_the_most_common_comes_first_with_its_first_cases():
    """Effusion is called pneumonia twice, edema once."""
    labels = ("effusion", "pneumonia", "edema")
    truth = [[1, 0, 0]] * 4
    told = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 0, 0]]
    table = graded(truth, told, labels=labels)
    first, second = confusions(table, Conventions(), examples=1)
    assert first == ("A", "effusion", "pneumonia", 2, 4, 2, ("c0001",))
    assert second == ("A", "effusion", "edema", 1, 4, 1, ("c0000",))


def test_each_system_has_its_own():
    """Systems in the order given, as many of each as asked for."""
    truth = [[1, 0, 0]]
    table = graded(truth, [[[0, 1, 1]], [[0, 0, 1]], [[1, 0, 0]]])
    found = confusions(table, Conventions(), most=1)
    assert [(c.system, c.invented) for c in found] == [
        ("A", "label_1"),
        ("B", "label_2"),
    ]


def test_a_case_without_a_candidate_confuses_nothing():
    """Whatever its row holds, when joining says there is none."""
    table = graded([[1, 0], [1, 0]], [[0, 1], [ValueCode.MISSING, ValueCode.MISSING]])
    told = [coverage("A", 1, missing=("c0000",))]
    assert confusions(table, Conventions(), coverage=told) == ()

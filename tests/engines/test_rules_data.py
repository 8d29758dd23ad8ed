"""What the data of rules say: slots of cues, kin, classes and worths of findings."""

import pytest

from loop.engines.rules.cues import Cues, Spelling
from loop.engines.rules.weights import JudgingData, NamedFinding, read_judging

SHIPPED = read_judging()


def judging(**changed):
    """Return the shipped data with some of them changed."""
    return JudgingData.model_validate({**SHIPPED.model_dump(), **changed})


def test_a_cue_with_slots_stands_for_every_phrase():
    """In the order of the slots; without one it stands for itself."""
    cues = Cues(
        language="en", words=True, slots={"a": ("no", "not"), "b": ("seen", "found")}
    )
    assert list(cues.spelled_out("<a> mass <b>")) == [
        "no mass seen", "no mass found", "not mass seen", "not mass found",
    ]  # fmt: skip
    assert list(cues.spelled_out("<a>")) == ["no", "not"]
    assert list(cues.spelled_out("free of")) == ["free of"]
    most = Cues(language="en", words=True, slots={"n": tuple(map(str, range(2000)))})
    assert len(list(most.spelled_out("<n>"))) == 2000


def test_endings_are_no_misspellings():
    """Of each known word, with every ending."""
    assert Spelling(known=("effuse",)).forms == {
        *("effuse", "effuses", "effusees", "effused", "effuseed"),
        *("effuseing", "effusely", "effuseal"),
    }


def test_findings_of_a_line_are_kin_by_their_distance():
    """The shortest counts, and at most two; the order does not."""
    data = judging(kin=(("a", "b", "c", "d"), ("c", "x", "a"), ("y", "z")))
    assert data.are_kin("a", "b") and data.are_kin("b", "a")
    assert not data.are_kin("a", "y") and not data.are_kin("a", "a")
    assert [data.steps("a", other) for other in "bcdx"] == [1, 2, 2, 1]
    assert data.steps("d", "a") == 2 and data.steps("z", "y") == 1


def test_what_a_finding_asks_for_is_that_of_its_label_or_name():
    """A label goes before a name; an error may ask for something else."""
    named = (
        NamedFinding(id="clip", significance="benign", terms=("clip",)),
        NamedFinding(id="node", significance="minor", wrong="urgent", terms=("node",)),
        NamedFinding(id="mass", significance="minor", terms=("mass",)),
    )
    data = judging(findings=named, labels={"mass": "urgent"}, device_findings=[])
    classes = {key: data.class_of(key) for key in ("clip", "node", "mass", "other", "")}
    assert classes == {
        "clip": "benign", "node": "minor", "mass": "urgent", "other": "actionable",
        "": "minor",
    }  # fmt: skip
    errors = {key: data.class_of_error(key) for key in ("clip", "node", "mass", "")}
    assert errors == {
        "clip": "benign", "node": "urgent", "mass": "urgent", "": "minor",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("degree", "times"), [(0, 1.0), (1, 0.5), (1.4, 0.5), (2, 2.0), (3, 4.0), (2.6, 4)]
)
def test_a_degree_makes_a_finding_worth_more_or_less(degree, times):
    """Of the nearest line of degrees; where none is said, it is its class alone."""
    worths = {"urgent": 1.0, "actionable": 0.5, "minor": 0.25, "benign": 0.1}
    data = judging(significance=worths, by_degree=(0.5, 2.0, 4.0),
                   degrees=(("small",), ("moderate",), ("large",)))  # fmt: skip
    for name, worth in worths.items():
        assert data.worth(name, degree) == worth * times


def test_the_digest_is_of_everything_in_no_order_of_sets():
    """Another word is another digest."""
    same = judging(advice=frozenset(sorted(SHIPPED.advice, reverse=True)))
    assert same.digest == SHIPPED.digest
    assert judging(advice=SHIPPED.advice | {"zebra"}).digest != SHIPPED.digest
    assert judging(base=SHIPPED.base + 1).digest != SHIPPED.digest
    assert judging(kin=SHIPPED.kin[::-1]).digest != SHIPPED.digest

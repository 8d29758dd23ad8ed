"""What became of every answer, between two runs on the same cases."""

from dataclasses import replace

import pytest

from loop.core.records import Status
from loop.evaluate.align import align
from loop.evaluate.compare import ShareDifference, pair_answers
from loop.evaluate.protocol import Protocol
from loop.review.revise.changes import (
    CaseChange,
    ShareCheck,
    ShareCriterion,
    check_labels,
    list_changes,
)
from tests.evaluate.scenes import TAXONOMY, outcome, reference, silent

P, A, U = 1, 0, -1


def changes(truth, before, after):
    """Return the changes of one case and label; None is an engine that failed."""
    pairs = [
        align(
            [
                silent("c", Status.ENGINE_FAILED)
                if answer is None
                else outcome("c", {"edema": answer})
            ],
            reference({"c": {"edema": truth}}, ["edema"]),
            TAXONOMY,
        )
        for answer in (before, after)
    ]
    return list_changes(pair_answers(*pairs))


@pytest.mark.parametrize(
    ("truth", "before", "after", "kind"),
    [
        (P, A, P, "fixed"),
        (A, U, A, "fixed"),
        (P, P, A, "broken"),
        (A, A, U, "broken"),
        (P, A, A, "unchanged"),
        (P, A, U, "unchanged"),
        (U, A, P, "unjudged"),
        (U, P, U, "unjudged"),
        (U, P, P, ""),
        (P, P, P, "kept"),
        (P, None, P, "unanswered"),
        (U, P, None, "unanswered"),
    ],
)
def test_an_answer_is_in_one_list(truth, before, after, kind):
    """An uncertain answer is never right; an uncertain reference judges nothing."""
    found = changes(truth, before, after)
    lists = (found.fixed, found.broken, found.unchanged, found.unjudged)
    named = dict(zip(("fixed", "broken", "unchanged", "unjudged"), lists, strict=True))
    asked = [name for name, rows in named.items() if "edema" in {r.label for r in rows}]
    assert asked == [kind] * (kind in named)
    assert (found.kept > 0, found.unanswered > 0) == (
        kind == "kept",
        kind == "unanswered",
    )


@pytest.mark.parametrize(
    ("basis", "lost", "gained", "bound", "passed"),
    [
        (ShareCriterion.MARGIN, 9, 0, -0.019, True),
        (ShareCriterion.MARGIN, 0, 9, -0.02, False),
        (ShareCriterion.MARGIN, 0, 9, None, False),
        (ShareCriterion.COUNTS, 2, 2, -0.9, True),
        (ShareCriterion.COUNTS, 3, 2, 0.9, False),
        (ShareCriterion.NOTHING, 0, 0, None, True),
    ],
)
def test_a_share_is_judged_by_its_margin_or_by_counts(
    basis, lost, gained, bound, passed
):
    """Never by both: a limit at the margin does not lie above it."""
    share = ShareCheck(
        difference=ShareDifference(lost, gained, 100),
        bound=bound,
        margin=0.02,
        basis=basis,
    )
    assert share.passed is passed


def test_every_change_is_listed_in_the_order_of_the_cohort():
    """With what is right, by the reference, and both answers; two labels apart."""
    truth = {
        "c2": {"edema": 1, "fracture": 0},
        "c1": {"edema": 0, "fracture": -1},
        "c3": {"edema": 1, "fracture": 0},
    }
    standard = reference(truth, ["edema", "fracture"])
    said = [
        {"c2": (0, 0), "c1": (0, 1), "c3": (0, 0)},
        {"c2": (1, 1), "c1": (-1, 0), "c3": None},
    ]
    pairs = [
        align(
            [
                silent(case, Status.ENGINE_FAILED)
                if both is None
                else outcome(case, {"edema": both[0], "fracture": both[1]})
                for case, both in answers.items()
            ],
            standard,
            TAXONOMY,
        )
        for answers in said
    ]
    found = list_changes(pair_answers(*pairs))
    assert found.fixed == (("c2", "edema", "present", "absent", "present"),)
    assert found.broken == (
        CaseChange("c2", "fracture", "absent", "absent", "present"),
        CaseChange("c1", "edema", "absent", "absent", "uncertain"),
    )
    assert found.unchanged == ()
    named = [one for one in found.unjudged if one.label != "no_finding"]
    assert named == [("c1", "fracture", "", "present", "absent")]
    assert found.kept == 0
    assert found.unanswered == len(pairs[0].labels)


def test_each_label_is_checked_by_its_own_answers():
    """Both shares of each, in the order of the labels."""
    standard = reference(
        {f"c{n}": {"edema": int(n < 2), "fracture": 0} for n in range(4)},
        ["edema", "fracture"],
    )

    def run(*rows):
        outcomes = [
            outcome(f"c{n}", {"edema": edema, "fracture": fracture})
            for n, (edema, fracture) in enumerate(rows)
        ]
        return align(outcomes, standard, TAXONOMY)

    pair = pair_answers(
        run((1, 0), (0, 0), (1, 1), (0, 0)), run((0, 0), (1, 1), (0, 0), (0, 0))
    )
    edema, fracture = (
        one
        for one in check_labels(pair.distances, Protocol())
        if one.label in ("edema", "fracture")
    )
    assert (edema.label, fracture.label) == ("edema", "fracture")
    assert edema.accuracy.difference == (1, 2, 4)
    assert edema.sensitivity.difference == (1, 1, 2)
    assert fracture.accuracy.difference == (1, 1, 4)
    assert fracture.sensitivity.difference == (0, 0, 0)
    assert fracture.sensitivity.basis is ShareCriterion.NOTHING
    assert edema.passed and fracture.passed
    lost = replace(edema.sensitivity, difference=ShareDifference(2, 1, 2))
    assert not replace(edema, sensitivity=lost).passed
    assert not replace(edema, accuracy=lost).passed

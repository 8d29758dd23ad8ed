"""What became of every answer, between two runs on the same cases."""

import pytest

from loop.core.records import Status
from loop.evaluate.align import align
from loop.evaluate.compare import ShareDifference, pair_answers
from loop.review.revise.changes import ShareCheck, ShareCriterion, list_changes
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

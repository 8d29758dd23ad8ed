"""Verdicts are kept in the store as they were first given."""

from datetime import UTC, datetime

from loop.core.records import Value
from loop.review.record import Anchor, Circumstances, read_anchors, save_verdicts
from loop.review.verdict import Judgement, Verdict
from loop.run.store import open_store

WHEN = datetime(2026, 1, 5, tzinfo=UTC)
MADE_ON = Circumstances(cohort="dev", prompt="extractor@v1", source="round1.yaml")


def pin(case_id, value=None):
    """Return an anchoring verdict."""
    return Verdict(
        label="edema",
        judgement=Judgement.MODEL_WRONG,
        case_ids=(case_id,),
        correct_value=value,
        anchor=True,
        reviewer="Dr A. Example",
    )


def test_saving_twice_keeps_one(workspace):
    """A round that is run again does not multiply its verdicts."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a")], MADE_ON, WHEN)
        save_verdicts(store, [pin("a")], MADE_ON, WHEN)
        (kept,) = store.list_verdicts()
    assert kept.actor == "Dr A. Example"
    assert kept.payload["prompt"] == "extractor@v1"
    assert kept.payload["verdict"]["case_ids"] == ["a"]


def test_anchors_are_those_of_the_cohort_with_what_is_right(workspace):
    """Case ids of two cohorts may be equal."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a"), pin("b", Value.UNCERTAIN)], MADE_ON, WHEN)
        save_verdicts(store, [pin("z")], MADE_ON._replace(cohort="other"), WHEN)
        anchors = read_anchors(store, "dev")
    assert set(anchors) == {
        Anchor("a", "edema", None),
        Anchor("b", "edema", Value.UNCERTAIN),
    }

"""Verdicts are kept in the store as they were first given."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from loop.core.errors import StoreError
from loop.core.ledger import Actor
from loop.core.records import Clarification, Exemplar, Value
from loop.review.submit import (
    Anchor,
    VerdictContext,
    load_verdicts,
    read_anchors,
    save_verdicts,
    submit_verdict,
    withdraw_verdict,
)
from loop.review.verdict import Context, Edits, Judgement, Severity, Verdict
from loop.run import store as runs
from loop.run.store import open_store

WHEN = datetime(2026, 1, 5, tzinfo=UTC)
MADE_ON = VerdictContext(cohort="dev", prompt="extractor@v1", source="round1.yaml")


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


def test_a_withdrawn_verdict_pins_nothing(workspace):
    """Whoever took it back no longer says that the case must stay right."""
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a")], MADE_ON, WHEN)
        withdraw_verdict(store, pin("a").id, Actor(name="Dr A. Example"), "slip")
        assert read_anchors(store, "dev") == ()


@pytest.mark.parametrize(
    ("reviewer", "value"),
    [("Dr A. Example", Value.ABSENT), ("Dr B. Example", Value.PRESENT)],
)
def test_a_pin_follows_its_own_reviewer_only(workspace, reviewer, value):
    """A later word of the same person is right; another's opens a dispute."""
    later = replace(
        pin("a", Value.ABSENT), anchor=False, reviewer=reviewer, comment="later"
    )
    with open_store(workspace) as store:
        save_verdicts(store, [pin("a", Value.PRESENT)], MADE_ON, WHEN)
        submit_verdict(store, later, MADE_ON)
        assert read_anchors(store, "dev") == (Anchor("a", "edema", value),)


def test_a_kept_verdict_comes_back_as_it_was(workspace):
    """A later round needs its cases, whatever it asked for."""
    verdict = Verdict(
        label="edema",
        judgement=Judgement.GUIDELINE_AMBIGUOUS,
        case_ids=("a", "b"),
        edits=Edits(
            terms=("wet",),
            clarifications=(Clarification(phrase="hazy", value=Value.UNCERTAIN),),
            exemplars=(Exemplar(text="Wet.", value=Value.PRESENT, evidence="Wet"),),
        ),
        correct_value=Value.PRESENT,
        comment="private",
    )
    with open_store(workspace) as store:
        save_verdicts(store, [verdict, pin("a")], MADE_ON, WHEN)
        (loaded,) = load_verdicts(store, "dev", [verdict.id, "0" * 12])
        assert load_verdicts(store, "other", [verdict.id]) == ()
    assert loaded == verdict
    assert loaded.id == verdict.id


def test_a_row_of_before_keeps_its_meaning_and_its_id(workspace):
    """Severity and cause were written into every verdict; ledgers name such ids."""
    said = {
        "label": "edema",
        "judgement": "model_wrong",
        "severity": "major",
        "context": "other",
        "case_ids": ["a"],
        "reviewer": "Dr A. Example",
    }
    row = runs.StoredVerdict("dev:x", "2026-01-05T09:00:00Z", "", {"verdict": said})
    with open_store(workspace) as store:
        store.add_verdicts([row])
        (loaded,) = load_verdicts(store, "dev", ["x"])
    assert (loaded.severity, loaded.context) == (Severity.MAJOR, Context.OTHER)
    assert loaded.id == "362b85cac9a9"


def test_a_verdict_changed_in_the_store_is_an_error(workspace):
    """Not a verdict without cases."""
    payload = {"verdict": {"label": 1}}
    row = runs.StoredVerdict("dev:x", "2026-01-05T09:00:00Z", "", payload)
    with open_store(workspace) as store:
        store.add_verdicts([row])
        with pytest.raises(StoreError, match=r"dev:x cannot be read.*backup"):
            load_verdicts(store, "dev", ["x"])

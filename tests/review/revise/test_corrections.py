"""Corrected references: what verdicts ask for, all of it, and with who asked."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.records import Mark, Value
from loop.labels.reference import list_references, read_reference
from loop.review.revise.corrections import (
    correct_reference_from,
    find_corrections,
)
from loop.review.submit import VerdictContext, submit_verdict
from tests.review.revise.stepping import FLUID
from tests.review.revise.stepping import WRONG as SPELLED

WRONG = replace(SPELLED, correct_value=Value.PRESENT)
BOTH = replace(WRONG, case_ids=("n2", "n3"), reviewer="Dr Z. Example")
HEART = replace(
    WRONG, label="cardiomegaly", case_ids=("c1",), correct_value=Value.ABSENT
)


def keep(store, *verdicts):
    """Keep verdicts and return their ids."""
    made_on = VerdictContext("dev", "tiny@v1", "")
    return [submit_verdict(store, one, made_on) for one in verdicts]


def test_all_that_verdicts_call_wrong_is_corrected_at_once(setting, store):
    """One version, with every reviewer once and every verdict in its reason."""
    ids = keep(store, FLUID, HEART, BOTH, WRONG)
    done = correct_reference_from(setting.workspace, store, "dev", ids, setting.editor)
    assert done == (2, 4)
    reference = read_reference(setting.workspace, "dev")
    marks = [reference.mark(case, "pleural_effusion") for case in ("n1", "n2", "n3")]
    assert marks == [Mark.PRESENT] * 3
    assert reference.mark("c1", "cardiomegaly") is Mark.ABSENT
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert entry.actor == setting.editor.name
    assert entry.reason == (
        "4 reference labels judged wrong by Dr B. Example, Dr Z. Example, verdicts "
        f"{HEART.id}, {BOTH.id}, {WRONG.id}"
    )


def test_without_such_a_verdict_nothing_is_corrected(setting, store):
    """A verdict on the wording says nothing of the reference."""
    ids = keep(store, FLUID)
    done = correct_reference_from(setting.workspace, store, "dev", ids, setting.editor)
    assert done == (None, 0)
    assert list_references(setting.workspace, "dev") == (1,)


def test_what_the_reference_has_not_is_refused_with_all_the_rest(setting, store):
    """A label of the taxonomy that this reference does not judge."""
    ids = keep(store, WRONG, replace(WRONG, label="fracture"))
    with pytest.raises(DataError, match="fracture"):
        correct_reference_from(setting.workspace, store, "dev", ids, setting.editor)
    assert list_references(setting.workspace, "dev") == (1,)


def test_marks_are_those_of_the_verdicts_on_the_reference():
    """Of each of their cases; another judgement's value is none."""
    value = replace(FLUID, correct_value=Value.UNCERTAIN)
    assert find_corrections([FLUID, BOTH, value, HEART]) == {
        ("n2", "pleural_effusion"): Mark.PRESENT,
        ("n3", "pleural_effusion"): Mark.PRESENT,
        ("c1", "cardiomegaly"): Mark.ABSENT,
    }

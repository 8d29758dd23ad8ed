"""Verdicts that say the reference is wrong: a new reference version, never a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.core.records import Mark
from loop.labels.cohort import Cohort
from loop.labels.reference import correct_reference, list_references
from loop.review.verdict import Judgement, Verdict


def correct_from_verdicts(
    workspace: Workspace, cohort: Cohort, verdicts: Sequence[Verdict], actor: Actor
) -> tuple[int | None, int]:
    """Make the reference version that verdicts ask for; return it and the count."""
    corrections = find_corrections(verdicts)
    if not corrections:
        return None, 0
    wrong = [v for v in verdicts if v.judgement is Judgement.REFERENCE_WRONG]
    before = list_references(workspace, cohort.name)
    reviewers = ", ".join(dict.fromkeys(verdict.reviewer for verdict in wrong))
    ids = ", ".join(verdict.id for verdict in wrong)
    number = correct_reference(
        workspace,
        cohort,
        corrections,
        actor=actor,
        reason=f"{len(corrections)} reference labels judged wrong by {reviewers}, "
        f"verdicts {ids}",
    )
    return (None if number in before else number), len(corrections)


def find_corrections(verdicts: Sequence[Verdict]) -> dict[tuple[str, str], Mark]:
    """Return the marks that verdicts want in the reference."""
    return {
        (case_id, verdict.label): Mark(verdict.correct_value.value)
        for verdict in verdicts
        if verdict.judgement is Judgement.REFERENCE_WRONG and verdict.correct_value
        for case_id in verdict.case_ids
    }

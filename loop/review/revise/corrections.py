"""Verdicts that say the reference is wrong: a new reference version, never a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.cohort import Cohort
from loop.labels.reference import (
    correct_reference,
    list_references,
    locate,
    read_reference,
)
from loop.review.revise.begin import require_dev
from loop.review.status import find_kept
from loop.review.verdict import Judgement, Verdict, check_verdicts, read_asked
from loop.run.store import Store


class CorrectedReference(NamedTuple):
    """What correcting a reference from verdicts did."""

    reference: int | None
    """Number of the new reference version; None if it says all of it already."""

    corrections: int
    """Reference labels that the verdicts call wrong."""


def correct_reference_from(
    workspace: WorkspacePaths,
    store: Store,
    cohort: str,
    verdicts: Sequence[str],
    actor: Actor,
) -> CorrectedReference:
    """Make the reference version that kept verdicts ask for; never a prompt.

    Verdicts that do not call the reference wrong are left aside.

    Raises
    ------
    DataError
        A verdict is not kept, names what the reference does not have, or two verdicts
        disagree. Nothing was changed.
    WriteError
        The workspace cannot be written.
    """
    members = require_dev(workspace, cohort)
    found = check_verdicts(
        find_kept(store, cohort, verdicts),
        read_asked(workspace, members),
        frozenset(members.case_ids),
    )
    require_corrigible(workspace, members, found)
    return CorrectedReference(*correct_from_verdicts(workspace, members, found, actor))


def correct_from_verdicts(
    workspace: WorkspacePaths, cohort: Cohort, verdicts: Sequence[Verdict], actor: Actor
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


def require_corrigible(
    workspace: WorkspacePaths, cohort: Cohort, verdicts: Sequence[Verdict]
) -> None:
    """Refuse corrections of what the reference does not have."""
    pairs = find_corrections(verdicts)
    if pairs:
        reference = read_reference(workspace, cohort.name)
        for case_id, label in pairs:
            locate(reference, case_id, label)

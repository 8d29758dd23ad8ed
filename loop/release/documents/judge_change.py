"""The change record of a judge against the release before it."""

from __future__ import annotations

from collections.abc import Sequence

from loop.release.documents.card_sections import signature_section
from loop.release.documents.change_record import (
    identity_section,
    modifications_section,
    protocol_section,
    rollback_section,
)
from loop.release.documents.judge_card import (
    judge_change_section,
    judge_claim_sentence,
)
from loop.release.documents.parts import (
    DocumentSection,
    FactLine,
    ReleaseDocument,
    fact,
    rate,
    table,
    told,
)
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.statement import Approval


def judge_change_record(
    facts: JudgeReleaseFacts, approvals: Sequence[Approval]
) -> ReleaseDocument:
    """Return what was modified, by which protocol, and what it did, in that order."""
    before = told(facts.change.previous) or told(facts.change.from_ref)
    return ReleaseDocument(
        title=f"Change record of {told(facts.release.name)}",
        subtitle=f"Against {before}" if before else "First release: no earlier one",
        intro=(
            "Ordered as a predetermined change control plan is: description of "
            "modifications, modification protocol, impact assessment.",
            judge_claim_sentence(facts),
        ),
        sections=(
            identity_section(facts),
            modifications_section(facts),
            protocol_section(facts),
            _evidence(facts),
            judge_change_section(facts),
            rollback_section(facts),
            signature_section(facts, approvals),
        ),
    )


def _evidence(facts: JudgeReleaseFacts) -> DocumentSection:
    rows = [
        (
            f"{told(one.cohort)} ({told(one.role)})",
            told(one.verdict),
            rate(one.agreement.tau_b),
            told(one.run),
        )
        for one in facts.evaluations
    ]
    return DocumentSection(
        key="evidence",
        title="Evidence",
        lines=(
            fact("Openings of the holdout", len(facts.openings)),
            FactLine("Known limits", author="beside those listed on the card"),
        ),
        tables=table("Cohort|Verdict|#tau-b|Run", rows),
    )

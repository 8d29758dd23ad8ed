"""The change record of a release against the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loop.documents.numbers import share
from loop.release.documents.card_sections import (
    compared_on,
    label_list,
    labels_changed,
    left_out_sentences,
    signature_section,
    worse_section,
)
from loop.release.documents.parts import (
    DocumentSection,
    FactLine,
    ReleaseDocument,
    claimed,
    fact,
    is_compared,
    objections,
    rate,
    table,
    told,
)
from loop.release.facts import EngineFacts, ReleaseFacts
from loop.release.release_json import AnyFacts
from loop.release.statement import Approval

_CLASSES = {
    "R1": "terms and synonyms",
    "R2": "clarification of vague wording",
    "R3": "exemplars",
    "template": "the templates around the guides",
    "plan": "which labels are asked in one call",
}


def change_record(
    facts: ReleaseFacts, approvals: Sequence[Approval]
) -> ReleaseDocument:
    """Return what was modified, by which protocol, and what it did, in that order.

    References
    ----------
    FDA. Marketing submission recommendations for a predetermined change control plan
    for artificial intelligence-enabled device software functions; December 2024: its
    three parts give the headings.
    """
    release = facts.release
    before = told(facts.change.previous) or told(facts.change.from_ref)
    return ReleaseDocument(
        title=f"Change record of {told(release.name)}",
        subtitle=f"Against {before}" if before else "First release: no earlier one",
        intro=(
            "Ordered as a predetermined change control plan is: description of "
            "modifications, modification protocol, impact assessment. It helps prepare "
            "such a plan, but is not one by itself.",
        ),
        sections=(
            identity_section(facts),
            modifications_section(facts),
            protocol_section(facts),
            _evidence(facts),
            *_impact(facts),
            rollback_section(facts),
            signature_section(facts, approvals),
        ),
    )


def identity_section(facts: AnyFacts) -> DocumentSection:
    """Return which release it is, and which came before."""
    change, older = facts.change, facts.supersedes
    statement = older.statement_sha256 if older else None
    return DocumentSection(
        key="identity",
        title="Identity",
        lines=(
            fact("Release", facts.release.name),
            fact("Digest of the prompt", facts.release.digest),
            fact("Previous release", change.previous or "none"),
            fact("Compared with", change.from_ref or "nothing"),
            fact("Statement of the previous", statement),
        ),
    )


def modifications_section(facts: AnyFacts) -> DocumentSection:
    """Return what was modified, in words."""
    change = facts.change
    classes = [
        f"{told(one)} ({_CLASSES[one]})" if one in _CLASSES else told(one)
        for one in change.classes
    ]
    return DocumentSection(
        key="modifications",
        title="Description of modifications",
        lines=(
            fact("Classes of edits", ", ".join(classes) or "none"),
            fact("Why", facts.release.why),
            fact("Digest of the difference", change.diff_digest),
            *_engine(facts),
        ),
        tables=table("Label|Added|Removed|Changed", labels_changed(facts)),
    )


def _engine(facts: AnyFacts) -> Iterator[FactLine]:
    """Say whether the engine is still that of the release before."""
    older = facts.supersedes
    if older is None:
        return
    name = told(older.name)
    if older.engine is None:
        text = f"{told(facts.engine.name)}; that of {name} is not known here"
    elif older.engine.digest == facts.engine.digest:
        text = f"as in {name}: {told(facts.engine.name)}"
    else:
        changes = "; ".join(_engine_changes(older.engine, facts.engine))
        text = f"not as in {name}: {changes}"
    yield FactLine("Engine", text)


def _engine_changes(before: EngineFacts, after: EngineFacts) -> Iterator[str]:
    if before.name != after.name:
        yield f"{told(after.name)} (was {told(before.name)})"
    for old, new in (
        (before.parameters, after.parameters),
        (before.identity, after.identity),
    ):
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                was, becomes = told(old.get(name)), told(new.get(name))
                yield f"{told(name)} {becomes or 'not set'} (was {was or 'not set'})"


def protocol_section(facts: AnyFacts) -> DocumentSection:
    """Return by which protocol it was judged."""
    protocol = facts.protocol
    return DocumentSection(
        key="protocol",
        title="Modification protocol",
        lines=(
            fact("Protocol", protocol.digest),
            fact("Registered in the ledger", protocol.registered),
            FactLine("Before the runs", "no" if protocol.late else "yes"),
            fact("Gates and margins", protocol.content),
            FactLine(
                "Edits outside the allowed classes",
                author="which classes were allowed; others need a new protocol",
            ),
        ),
    )


def _evidence(facts: ReleaseFacts) -> DocumentSection:
    rows: list[tuple[str, ...]] = [
        (
            f"{told(one.cohort)} ({told(one.role)})",
            told(one.verdict),
            rate(one.macro),
            told(one.run),
        )
        for one in facts.evaluations
    ]
    corrected = share(facts.selection.corrected if facts.selection else None)
    return DocumentSection(
        key="evidence",
        title="Evidence",
        lead=() if rows else ("No evaluation is recorded.",),
        lines=(
            FactLine("Development, corrected for the choice of a version", corrected),
            fact("Openings of the holdout", len(facts.openings)),
        ),
        tables=table("Cohort|Verdict|#Macro-F1|Run", rows),
    )


def _impact(facts: ReleaseFacts) -> tuple[DocumentSection, ...]:
    evaluation = claimed(facts)
    assessment = DocumentSection(
        key="impact",
        title="Impact assessment",
        lines=(
            *_effects(facts),
            FactLine(
                "Affected users", author="who uses these labels, and what they see"
            ),
            FactLine("Known limits", author="beside those listed here and on the card"),
        ),
        notes=(
            *(objections(evaluation) if evaluation else ()),
            *left_out_sentences(facts),
        ),
    )
    return (assessment, worse_section(facts))


def _effects(facts: ReleaseFacts) -> tuple[FactLine, ...]:
    """Return which labels changed for better or worse, or that nobody compared them."""
    change = facts.change
    if not is_compared(facts):
        return (FactLine("Labels improved, unchanged or worse", "not compared"),)
    worse = [one.label for one in change.worse]
    where = compared_on(facts)
    of = "" if change.harm is None else ", in one draw"
    lines = (
        FactLine("Labels compared", where),
        FactLine(f"Labels improved{of}", label_list(facts, change.improved)),
        FactLine(f"Labels unchanged{of}", label_list(facts, change.unchanged)),
        FactLine(f"Labels worse{of}", label_list(facts, worse)),
    )
    if change.harm is None:
        return lines
    found = "; ".join(map(told, change.harm)) or "none"
    return (*lines, FactLine("Evidence of harm over all draws", found))


def rollback_section(facts: AnyFacts) -> DocumentSection:
    """Return what to go back to, and when."""
    target = told(facts.change.rollback)
    return DocumentSection(
        key="rollback",
        title="Rollback",
        lines=(
            FactLine("Target", target or "none: no earlier version"),
            FactLine(
                "When", author="what would make the site go back, and who decides"
            ),
        ),
    )

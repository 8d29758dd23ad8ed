"""The release card: what is released, on which evidence, and what nobody may miss."""

from __future__ import annotations

import json
from collections.abc import Sequence

from loop.documents.numbers import interval, share
from loop.evaluate.gates import GateVerdict
from loop.release.documents.card_evidence import (
    ceiling_section,
    claim_section,
    claim_sentence,
    history_section,
    openings_section,
    shown_sentence,
    signature_section,
    tried_section,
    verify_section,
)
from loop.release.documents.card_sections import (
    cohort_section,
    engine_section,
    limits_section,
    release_section,
    separation_section,
    use_section,
    worse_section,
)
from loop.release.documents.evaluated import evaluation_section
from loop.release.documents.phrases import (
    claimed,
    counted,
    labels_with,
    told,
)
from loop.release.documents.section import (
    Banner,
    DocumentSection,
    Figure,
    ReleaseDocument,
)
from loop.release.facts import AverageFacts, EvaluationFacts, ReleaseFacts
from loop.release.statement import Approval

_DEVELOPMENT = "DEVELOPMENT DATA ONLY"


def release_card(facts: ReleaseFacts, approvals: Sequence[Approval]) -> ReleaseDocument:
    """Return the card; what got worse comes first, whatever else it says."""
    release, frozen = facts.release, facts.frozen
    engine, who = told(facts.engine.name), told(frozen.actor)
    return ReleaseDocument(
        title=f"Release {told(release.name)}",
        subtitle=(
            f"Prompt version {told(release.ref)} with engine {engine}, frozen "
            f"{told(frozen.time)} by {who} ({told(frozen.role)})"
        ),
        header=_header(facts),
        banners=tuple(_banners(facts)),
        intro=(
            f"Verdict of the claim: {_verdict(facts)}.",
            claim_sentence(facts),
            *filter(None, [shown_sentence(facts)]),
        ),
        sections=_sections(facts, approvals),
    )


def _sections(
    facts: ReleaseFacts, approvals: Sequence[Approval]
) -> tuple[DocumentSection, ...]:
    return (
        worse_section(facts),
        *(evaluation_section(facts, one) for one in _evaluations(facts)),
        claim_section(facts),
        limits_section(facts),
        use_section(facts),
        release_section(facts),
        engine_section(facts),
        cohort_section(facts),
        separation_section(facts),
        openings_section(facts),
        tried_section(facts),
        ceiling_section(facts),
        history_section(facts),
        signature_section(facts, approvals),
        verify_section(facts),
    )


def _evaluations(facts: ReleaseFacts) -> list[EvaluationFacts]:
    """Return the evaluations, the one the claim is about first."""
    first = claimed(facts)
    others = [one for one in facts.evaluations if one is not first]
    return others if first is None else [first, *others]


def _banners(facts: ReleaseFacts) -> list[Banner]:
    banners = []
    override = told(facts.frozen.override)
    verdict = facts.claim.verdict.value
    if override:
        against = "; ".join(told(one) for one in facts.frozen.objections)
        banners.append(
            Banner(
                "OVERRIDE",
                f"Frozen by override (verdict of the claim: {verdict}). "
                + (f"Against: {against}. " if against else "")
                + f"Reason given by {told(facts.frozen.actor)}: {override}",
            )
        )
    if facts.development_only:
        banners.append(Banner(_DEVELOPMENT, _development(facts)))
    made_up = [one for one in facts.cohorts if one.synthetic]
    if made_up:
        names = ", ".join(told(one.name) for one in made_up)
        said = f"Made-up texts in {names}: their numbers say nothing of real ones."
        banners.append(Banner("SYNTHETIC COHORT", said))
    return banners


def _development(facts: ReleaseFacts) -> str:
    """Return the warning with the estimate corrected for the choice of a version."""
    warning = (
        "No holdout was opened: these numbers come from cases the prompt was made on, "
        "and promise too much."
    )
    selection = facts.selection
    if selection is None or selection.corrected is None:
        return f"{warning} No estimate corrected for the choice of a version is known."
    limits = "" if selection.low is None else f" {interval(selection)}"
    tried = counted(selection.tried, "version") or "the versions"
    return (
        f"{warning} Macro-F1 corrected for the choice among {tried} tried: "
        f"{share(selection.corrected)}{limits} (apparent "
        f"{share(selection.apparent)})."
    )


def _verdict(facts: ReleaseFacts) -> str:
    verdict = facts.claim.verdict.value
    return f"{verdict}, overridden" if told(facts.frozen.override) else verdict


def card_figures(facts: ReleaseFacts) -> tuple[Figure, ...]:
    """Return the numbers in large letters: the averages where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    answered = evaluation.statuses.get("answered")
    return (
        _average_figure("Macro-F1", evaluation.macro),
        _average_figure("Macro-F1, supported", evaluation.supported),
        _average_figure("Micro-F1", evaluation.micro),
        Figure(
            "Readable answers",
            share(None) if answered is None else f"{answered:,}",
            (
                f"of {counted(evaluation.cases, 'case')}"
                + (f", {evaluation.draws} draws" if evaluation.draws > 1 else ""),
            ),
        ),
    )


def _average_figure(term: str, record: AverageFacts) -> Figure:
    labels = counted(record.labels, "label")
    return Figure(term, share(record.value), (interval(record), labels))


def card_tally(facts: ReleaseFacts) -> tuple[tuple[str, int, int], ...]:
    """Return each verdict with its labels and all, where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    of = len(evaluation.labels)
    return tuple((one, len(labels_with(evaluation, one)), of) for one in GateVerdict)


def _header(facts: ReleaseFacts) -> tuple[tuple[str, str], ...]:
    """Return the YAML header of the card; JSON values, which are YAML too."""
    release, frozen = facts.release, facts.frozen
    values = {
        "release": release.name,
        "prompt": release.ref,
        "prompt_digest": release.digest,
        "languages": list(release.languages),
        "labels": list(release.labels),
        "engine": facts.engine.name,
        "engine_digest": facts.engine.digest,
        "protocol_digest": facts.protocol.digest,
        "claim": facts.claim.kind,
        "verdict": facts.claim.verdict.value,
        "override": frozen.override or None,
        "development_data_only": bool(facts.development_only),
        "frozen": frozen.time,
        "ledger_head": facts.ledger.head,
        "statement": "release.dsse.json",
    }
    return tuple((key, _yaml(value)) for key, value in values.items())


def _yaml(value: object) -> str:
    """Return JSON that is YAML too, and no markup where a header is not known."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    text = json.dumps(value)
    return "".join(f"\\u{ord(one):04x}" if one in "<>&`[]" else one for one in text)

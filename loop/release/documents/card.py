"""The release card: what is released, on which evidence, and what nobody may miss."""

from __future__ import annotations

import json

from loop.documents.numbers import interval, share
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
    Facts,
    claimed,
    counted,
    estimate,
    labels_with,
    told,
)
from loop.release.documents.section import (
    Banner,
    DocumentSection,
    Figure,
    ReleaseDocument,
)

_DEVELOPMENT = "DEVELOPMENT DATA ONLY"


def release_card(facts: Facts) -> ReleaseDocument:
    """Return the card; what got worse comes first, whatever else it says."""
    release, frozen = facts["release"], facts["frozen"]
    engine, who = told(facts["engine"]["name"]), told(frozen["actor"])
    return ReleaseDocument(
        title=f"Release {told(release['name'])}",
        subtitle=(
            f"Prompt version {told(release['ref'])} with engine {engine}, frozen "
            f"{told(frozen['time'])} by {who} ({told(frozen['role'])})"
        ),
        header=_header(facts),
        banners=tuple(_banners(facts)),
        intro=(
            f"Verdict of the claim: {_verdict(facts)}.",
            claim_sentence(facts),
            *filter(None, [shown_sentence(facts)]),
        ),
        sections=_sections(facts),
    )


def _sections(facts: Facts) -> tuple[DocumentSection, ...]:
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
        signature_section(facts),
        verify_section(facts),
    )


def _evaluations(facts: Facts) -> list[Facts]:
    """Return the evaluations, the one the claim is about first."""
    first = claimed(facts)
    others = [one for one in facts["evaluations"] or () if one is not first]
    return others if first is None else [first, *others]


def _banners(facts: Facts) -> list[Banner]:
    banners = []
    override = told(facts["frozen"]["override"])
    verdict = told(facts["claim"]["verdict"]) or "not decided"
    if override:
        against = "; ".join(told(one) for one in facts["frozen"]["objections"] or ())
        banners.append(
            Banner(
                "OVERRIDE",
                f"Frozen by override (verdict of the claim: {verdict}). "
                + (f"Against: {against}. " if against else "")
                + f"Reason given by {told(facts['frozen']['actor'])}: {override}",
            )
        )
    if facts["development_only"]:
        banners.append(Banner(_DEVELOPMENT, _development(facts)))
    made_up = [one for one in facts["cohorts"] or () if one["synthetic"]]
    if made_up:
        names = ", ".join(told(one["name"]) for one in made_up)
        said = f"Made-up texts in {names}: their numbers say nothing of real ones."
        banners.append(Banner("SYNTHETIC COHORT", said))
    return banners


def _development(facts: Facts) -> str:
    """Return the warning with the estimate corrected for the choice of a version."""
    warning = (
        "No holdout was opened: these numbers come from cases the prompt was made on, "
        "and promise too much."
    )
    selection = facts["selection"] or {}
    if selection.get("corrected") is None:
        return f"{warning} No estimate corrected for the choice of a version is known."
    limits = "" if selection["low"] is None else f" {interval(estimate(selection))}"
    tried = counted(selection["tried"], "version") or "the versions"
    return (
        f"{warning} Macro-F1 corrected for the choice among {tried} tried: "
        f"{share(selection['corrected'])}{limits} (apparent "
        f"{share(selection['apparent'])})."
    )


def _verdict(facts: Facts) -> str:
    verdict = told(facts["claim"]["verdict"]) or "not decided"
    return f"{verdict}, overridden" if told(facts["frozen"]["override"]) else verdict


def card_figures(facts: Facts) -> tuple[Figure, ...]:
    """Return the numbers in large letters: the averages where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    averages = (("Macro-F1", "macro"), ("Macro-F1, supported", "supported"))
    answered = (evaluation["statuses"] or {}).get("answered")
    return (
        *(_average_figure(term, evaluation[key]) for term, key in averages),
        _average_figure("Micro-F1", evaluation["micro"]),
        Figure(
            "Readable answers",
            share(None) if answered is None else f"{answered:,}",
            (f"of {counted(evaluation['cases'], 'case')}",),
        ),
    )


def _average_figure(term: str, record: Facts) -> Figure:
    labels = counted(record["labels"], "label")
    return Figure(term, share(record["value"]), (interval(estimate(record)), labels))


def card_tally(facts: Facts) -> tuple[tuple[str, int, int], ...]:
    """Return each verdict with its labels and all, where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    verdicts = ("PASS", "FAIL", "INSUFFICIENT")
    of = len(evaluation["labels"] or ())
    return tuple((one, len(labels_with(evaluation, one)), of) for one in verdicts)


def _header(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the YAML header of the card; JSON values, which are YAML too."""
    release, frozen = facts["release"], facts["frozen"]
    values = {
        "release": release["name"],
        "prompt": release["ref"],
        "prompt_digest": release["digest"],
        "languages": list(release["languages"] or ()),
        "labels": list(release["labels"] or ()),
        "engine": facts["engine"]["name"],
        "engine_digest": facts["engine"]["digest"],
        "protocol_digest": facts["protocol"]["digest"],
        "claim": facts["claim"]["kind"],
        "verdict": facts["claim"]["verdict"],
        "override": frozen["override"] or None,
        "development_data_only": bool(facts["development_only"]),
        "frozen": frozen["time"],
        "ledger_head": facts["ledger"]["head"],
        "statement": "release.dsse.json",
    }
    return tuple((key, _yaml(value)) for key, value in values.items())


def _yaml(value: object) -> str:
    """Return JSON that is YAML too, and no markup where a header is not known."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    text = json.dumps(value)
    return "".join(f"\\u{ord(one):04x}" if one in "<>&`[]" else one for one in text)

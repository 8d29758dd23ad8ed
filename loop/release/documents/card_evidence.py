"""The parts of a release card that say how well it did, and who signed for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loop.documents.numbers import NOT_ESTIMABLE, p_value, percent, share, signed
from loop.release.documents.phrases import (
    change_limits,
    counted,
    label_names,
    named,
    told,
)
from loop.release.documents.section import DocumentSection, FactLine, fact, table
from loop.release.form import ReleaseFacts
from loop.release.statement import Approval


def claim_sentence(facts: ReleaseFacts) -> str:
    """Return the claim and how it is judged, as one sentence."""
    content = facts.protocol.content
    every = facts.claim.kind == "all"
    of = "every label" if every else "each label it is shown for"
    judged = {
        "lower": f"judged by lower {percent(content.get('confidence'), 0)} limits",
        "point": "judged by the observed values, which shows no lower limit",
    }.get(str(content.get("rule")), "by a rule that is not recorded")
    where = told(facts.claim.cohort) or "no cohort"
    accuracy, kappa = (share(content.get(name), 2) for name in ("accuracy", "kappa"))
    cases, positives = (
        told(content.get(name)) or NOT_ESTIMABLE
        for name in ("min_cases", "min_positives")
    )
    return (
        f"Claim: on {where}, {of} reaches accuracy {accuracy} and Cohen's kappa "
        f"{kappa} against the reference labels, {judged}, with at least {cases} cases "
        f"and {positives} positives."
    )


def shown_sentence(facts: ReleaseFacts) -> str:
    """Return the labels a claim on some of them is shown for; empty for one on all."""
    claim = facts.claim
    if claim.kind == "all":
        return ""
    labels = claim.labels
    shown = [one.label for one in labels if one.certified]
    names = f": {named(facts, shown)}" if shown else ""
    return f"It is shown for {len(shown)} of {counted(len(labels), 'label')}{names}."


def claim_section(facts: ReleaseFacts) -> DocumentSection:
    """Return the claim with its tests, and the protocol that fixed it."""
    claim, protocol = facts.claim, facts.protocol
    names = label_names(facts)
    rows = [
        (
            names.get(one.label, told(one.label)),
            _p(one.p),
            _p(one.p_holm),
            told(one.certified) or "not decided",
        )
        for one in claim.labels
    ]
    how = (
        "all labels must pass: an intersection-union test, which needs no correction"
        if claim.kind == "all"
        else f"Holm's correction at a family-wise level of {told(claim.alpha)}"
    )
    return DocumentSection(
        key="claim",
        title="Claim",
        lead=tuple(filter(None, (claim_sentence(facts), shown_sentence(facts)))),
        lines=(
            fact("Verdict", claim.verdict),
            FactLine("Many labels", how),
            fact("Protocol", protocol.digest),
            fact("Registered in the ledger", protocol.registered),
            FactLine("Before the runs", "no" if protocol.late else "yes"),
            fact("Content of the protocol", protocol.content),
        ),
        tables=table("Label|#p of accuracy (exact)|#p (Holm)|Claim holds", rows),
        notes=tuple(_claim_notes(facts)) if rows else (),
    )


def _claim_notes(facts: ReleaseFacts) -> Iterator[str]:
    """Yield what p shows, and why a small one does not make the claim hold."""
    content = facts.protocol.content
    yield (
        "p is one-sided, against an accuracy of at most "
        f"{share(content.get('accuracy'), 2)}; a label must pass the rest of its gate "
        "as well."
    )
    if content.get("rule") == "point":
        yield (
            "By the rule point the claim holds for no label, however small p is: "
            "observed values show no lower limit."
        )
    elif facts.claim.kind == "all":
        yield "A claim on every label holds for all of them or for none."


def _p(value: float | None) -> str:
    return NOT_ESTIMABLE if value is None else p_value(value)


def ceiling_section(facts: ReleaseFacts) -> DocumentSection:
    """Return how the release compares with readers, where there were any."""
    ceiling, title = facts.ceiling, "Human ceiling"
    if not ceiling:
        none = "No votes of single readers are recorded, so there is no human ceiling."
        return DocumentSection(key="ceiling", title=title, lead=(none,))
    names = label_names(facts)
    rows = [
        (
            names.get(one.label, told(one.label)),
            share(one.readers),
            share(one.model),
            f"{signed(one.difference)} {change_limits(one.low, one.high)}",
        )
        for one in ceiling.labels
    ]
    lead = (counted(ceiling.readers, "reader"), told(ceiling.note))
    return DocumentSection(
        key="ceiling",
        title=title,
        lead=tuple(filter(None, lead)),
        tables=table("Label|#Readers|#This release|#Difference and interval", rows),
    )


def tried_section(facts: ReleaseFacts) -> DocumentSection:
    """Return how many versions were tried, and the score corrected for the choice."""
    selection, title = facts.selection, "Versions tried"
    if not selection:
        lead = "How many versions were tried is not recorded."
        return DocumentSection(key="tried", title=title, lead=(lead,))
    corrected = selection.corrected
    limits = f"{share(selection.low)} to {share(selection.high)}"
    known = corrected is not None and selection.low is not None
    return DocumentSection(
        key="tried",
        title=title,
        lines=(
            fact("Tried on the development cohort", selection.tried),
            FactLine("Macro-F1, apparent", share(selection.apparent)),
            FactLine(
                "Macro-F1, corrected for the choice",
                share(corrected) + (f", interval {limits}" if known else ""),
            ),
            FactLine(
                "Expected drop of one label's accuracy",
                percent(selection.expected_drop),
            ),
        ),
        notes=tuple(filter(None, [told(selection.note)])),
    )


def openings_section(facts: ReleaseFacts) -> DocumentSection:
    """Return every opening of the holdout: when, by whom, for which version, why."""
    openings = facts.openings
    rows = [
        (
            f"{told(one.number)} of {told(one.budget) or 'no budget'}",
            *map(told, (one.time, one.actor, one.prompt, one.why)),
        )
        for one in openings
    ]
    holdout = any(one.role == "holdout" for one in facts.cohorts)
    none = "The holdout was not opened." if holdout else "There is no holdout."
    lead = f"The holdout was opened {counted(len(rows), 'time')}." if rows else none
    return DocumentSection(
        key="openings",
        title="Openings of the holdout",
        lead=(lead,),
        tables=table("Opening|Time (UTC)|Who|For|Why", rows),
    )


def history_section(facts: ReleaseFacts) -> DocumentSection:
    """Return the line of versions that led here."""
    measured = any(one.measured for one in facts.history)
    rows = [
        (
            *map(told, (one.ref, one.time, one.author, one.why)),
            told(one.verdicts),
            share(one.macro_f1),
            *([told(one.measured)] if measured else []),
            told(one.status),
        )
        for one in facts.history
    ]
    lead = () if rows else ("No earlier version is recorded.",)
    measure = "|Measured with" if measured else ""
    columns = f"Version|Time (UTC)|Author|Why|#Verdicts|#Macro-F1{measure}|Status"
    return DocumentSection(
        key="history", title="History", lead=lead, tables=table(columns, rows)
    )


def signature_section(
    facts: ReleaseFacts, approvals: Sequence[Approval]
) -> DocumentSection:
    """Return who signs the release, as what, when, and what it means.

    Where no approvals are given, whoever froze it stands for them.
    """
    frozen = facts.frozen
    own = Approval("", frozen.actor, frozen.role, frozen.meaning, frozen.time)
    when, why = told(frozen.time), told(frozen.why) or "not recorded"
    rows = [
        (
            told(one.name),
            told(one.role),
            told(one.meaning) or "not recorded",
            when,
            why,
        )
        for one in approvals or (own,)
    ]
    return DocumentSection(
        key="signatures",
        title="Signatures",
        lead=(
            f"{told(frozen.actor)} froze this release. The signatures themselves "
            "are in release.dsse.json beside this card; ranloop verify checks them.",
        ),
        tables=table("Name|Role|Meaning|Time (UTC)|Why", rows),
    )


def verify_section(facts: ReleaseFacts) -> DocumentSection:
    """Return how to check the release without a network, and what that shows."""
    name, ledger = told(facts.release.name), facts.ledger
    return DocumentSection(
        key="verify",
        title="How to verify",
        lead=(
            "With this folder and the public key of a person you trust, offline: "
            f"ranloop verify {name} --key KEY.json",
            "It checks the signatures, the digest of every file, the prompt rendered "
            "anew, the table recomputed from its counts, and the ledger up to its "
            "head. It exits with 0 only if all of it holds.",
            "Whether the release was withdrawn since is not in this folder: ask "
            "whoever released it.",
        ),
        lines=(
            fact("Digest of the prompt", facts.release.digest),
            fact("Head of the ledger", ledger.head),
            fact("Entries of the ledger", ledger.seq),
            fact("Written by ranloop", facts.tool.ranloop),
        ),
    )


def reading_line(facts: ReleaseFacts) -> str:
    """Return who read the cases, how many of them blind, and how far they agree."""
    reading = facts.reading
    if not reading:
        return ""
    kappa = reading.kappa.get("value") if reading.kappa else None
    parts = [
        counted(reading.readers, "reader"),
        f"{reading.blind} of them blind" if reading.blind is not None else "",
        counted(reading.votes, "vote"),
        f"kappa {share(kappa)}" if kappa is not None else "",
    ]
    return ", ".join(filter(None, parts))


def label_list(facts: ReleaseFacts, labels: Iterable[str]) -> str:
    """Return labels by name, or that there are none."""
    return named(facts, labels) or "none"

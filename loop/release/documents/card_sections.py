"""The parts of a release card: what it is, how it was made and did, and who signed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from loop.core.nouns import counted
from loop.documents.numbers import NOT_ESTIMABLE, p_value, percent, share, signed
from loop.release.documents.parts import (
    NO_MODEL,
    DocumentSection,
    FactLine,
    change_limits,
    claimed,
    fact,
    is_compared,
    label_names,
    labels_without_pass,
    named,
    outcomes,
    table,
    told,
    uses_a_model,
)
from loop.release.facts import EvaluationFacts, FrozenCohort, PastFacts, ReleaseFacts
from loop.release.release_json import AnyFacts
from loop.release.statement import Approval


def release_section(facts: AnyFacts) -> DocumentSection:
    """Return which prompt version this is, and from which one it comes."""
    release, supersedes = facts.release, facts.supersedes
    before = told(supersedes.name) if supersedes else "none"
    return DocumentSection(
        key="release",
        title="What is released",
        lines=(
            fact("Prompt version", release.ref),
            fact("Digest of the prompt", release.digest),
            fact("Parent", release.parent_ref or release.parent or "none"),
            fact("Written by", release.author),
            fact("Written", release.time),
            fact("Why", release.why),
            fact("Output contract", release.contract),
            fact("Call plan", release.plan),
            fact("Supersedes", before),
        ),
    )


def use_section(facts: ReleaseFacts) -> DocumentSection:
    """Return what the release is for, and what only its author can say of that."""
    release = facts.release
    labels = release.labels
    task = f"reads {counted(len(labels), 'label')} from one clinical text at a time"
    return DocumentSection(
        key="use",
        title="Intended use",
        lines=(
            FactLine("Task", f"{task}: {named(facts, labels)}" if labels else task),
            fact("Languages of the texts", release.languages),
            FactLine("Intended use", author="the use this release is meant for"),
            FactLine(
                "Intended users", author="who uses it, and who checks its answers"
            ),
            FactLine(
                "Out of scope",
                _outside(facts),
                author="uses that must be ruled out",
            ),
            FactLine("Contact", author="where to report an error"),
        ),
    )


def _outside(facts: ReleaseFacts) -> str:
    measured = "texts of other sources or languages than the cohorts below"
    evaluation = claimed(facts)
    without = labels_without_pass(evaluation) if evaluation else []
    if not without:
        return f"{measured}: nothing was measured on them"
    return f"{measured}; labels without a pass: {', '.join(without)}"


def engine_section(
    facts: AnyFacts, no_model: str = f"{NO_MODEL[:1].upper()}{NO_MODEL[1:]}."
) -> DocumentSection:
    """Return the engine and every parameter it was asked with.

    Parameters
    ----------
    no_model
        What is said of an engine that is no language model.
    """
    engine, compute = facts.engine, facts.compute
    rows = [
        (what, told(name), told(value) or "not set")
        for what, given in (
            ("parameter", engine.parameters),
            ("identity", engine.identity),
        )
        for name, value in given.items()
    ]
    seconds = compute.seconds
    return DocumentSection(
        key="engine",
        title="Engine and parameters",
        lead=() if uses_a_model(facts) else (no_model,),
        lines=(
            fact("Engine", engine.name),
            fact("Digest of the engine", engine.digest),
            fact("Time of the run", None if seconds is None else run_time(seconds)),
            fact("Tokens", counted(compute.tokens, "token")),
            fact("Platform", compute.platform),
            fact("Python", compute.python),
            fact("Packages", compute.packages),
        ),
        tables=table("What|Name|Value", rows),
    )


def run_time(seconds: float) -> str:
    """Return how long a run took, and what that leaves out."""
    return f"{seconds:,.1f} s (not counting answers that the store had)"


def cohort_section(facts: ReleaseFacts) -> DocumentSection:
    """Return what the release was measured on, with digests."""
    lines = []
    for one in facts.cohorts:
        read = [
            counted(one.readers, "reader"),
            f"{one.need} must agree" if one.need is not None else "",
            _not_coded(one.not_coded),
        ]
        facts_of = [
            f"role {told(one.role)}",
            counted(one.cases, "case"),
            f"language {told(one.language) or 'not recorded'}",
            _patients(one.patients_known),
            "SYNTHETIC: made-up texts" if one.synthetic else "",
        ]
        name = told(one.name)
        source = (
            told(one.source) or "not recorded",
            told(one.licence) or "licence not recorded",
            told(one.citation),
        )
        lines += [
            FactLine(name, ", ".join(filter(None, facts_of))),
            fact(f"{name}: source", "; ".join(filter(None, source))),
            fact(f"{name}: digest", one.digest),
            fact(f"{name}: reference", _reference(one, read)),
            fact(f"{name}: reference digest", one.reference_digest),
        ]
        if one.not_comparable:
            reasons = one.not_comparable.items()
            cannot = "; ".join(f"{told(label)}: {told(why)}" for label, why in reasons)
            lines.append(fact(f"{name}: cannot judge", cannot))
    lead = () if lines else ("No cohort is recorded.",)
    return DocumentSection(
        key="cohorts", title="Cohorts", lead=lead, lines=tuple(lines)
    )


def _patients(known: int | None) -> str:
    """Return whether patients are known, or for how many cases."""
    if isinstance(known, bool) or known is None:
        return "patients known" if known else "patients not known"
    return f"patient known for {counted(known, 'case')}"


def _not_coded(cases: object) -> str:
    """Return that absent may mean not coded, and how often where it is known."""
    if not cases:
        return ""
    number = "" if cases is True else f"{cases} "
    return f"{number}absent only because nothing was coded"


def _reference(cohort: FrozenCohort, read: list[str]) -> str:
    number = cohort.reference
    version = "version not recorded" if number is None else f"version {number}"
    return ", ".join([version, *filter(None, read)])


def worse_section(facts: ReleaseFacts) -> DocumentSection:
    """Return what got worse since the release before; said even where nothing did."""
    change = facts.change
    before = told(change.from_ref) or told(change.previous)
    names = label_names(facts)
    rows = [
        (
            names.get(one.label, told(one.label)),
            share(one.before),
            share(one.after),
            told(one.lost),
            told(one.gained),
            change_limits(one.low, one.high),
        )
        for one in change.worse
    ]
    columns = (
        "Label|#F1 before|#F1 after|#Right answers lost|#Gained"
        "|#Change of accuracy, interval"
    )
    return DocumentSection(
        key="worse",
        title="What got worse",
        lead=(_worse_lead(facts, before, len(rows)), *_worse_by_draws(facts)),
        tables=table(columns, rows),
        alarm=bool(rows if facts.change.harm is None else facts.change.harm),
    )


def _worse_by_draws(facts: ReleaseFacts) -> tuple[str, ...]:
    """Say what several draws showed, where one draw shows chance as well."""
    harm = facts.change.harm
    if harm is None:
        return ()
    found = "no evidence that any label got worse"
    if harm:
        found = f"evidence of harm: {'; '.join(map(told, harm))}"
    return (
        "That is of one draw of each, in which chance has its part. Over all draws "
        f"there is {found}.",
    )


def _worse_lead(facts: ReleaseFacts, before: str, labels: int) -> str:
    if not before:
        return "Nothing to compare with: this release follows no other."
    if labels:
        return (
            "Labels that lost more right answers than they gained against "
            f"{before}, {compared_on(facts)}: {labels}."
        )
    if is_compared(facts):
        return (
            f"No label lost more right answers than it gained against {before}, "
            f"{compared_on(facts)}."
        )
    return f"No label was compared with {before}: what got worse is not known."


def compared_on(facts: ReleaseFacts) -> str:
    """Return on which cases answers were compared with those of the version before."""
    names = [told(one.name) for one in facts.cohorts if one.role == "dev"]
    cohort = f"cohort {names[0]}" if len(names) == 1 else "cohort"
    return f"on the development {cohort}, not on the holdout"


def limits_section(facts: ReleaseFacts) -> DocumentSection:
    """Return what the numbers do not show, as far as the facts tell."""
    notes = [
        *late_notes(facts),
        *(note for one in facts.evaluations for note in _measured(one)),
        *_unknown_patients(facts),
        *map(told, facts.separation.remarks),
    ]
    return limits_with("what kinds of text it gets wrong, and who is affected", notes)


def limits_with(failures: str, notes: Iterable[str]) -> DocumentSection:
    """Return the section of limits.

    Parameters
    ----------
    failures
        What the author is asked about failure modes.
    notes
        What the numbers do not show; empty ones are left out.
    """
    return DocumentSection(
        key="limits",
        title="Limits",
        lead=(
            "Research evidence about one prompt version with one engine; not a medical "
            "device. The site that uses it must show that it is fit for its use.",
        ),
        lines=(FactLine("Known failure modes", author=failures),),
        notes=tuple(filter(None, notes)),
    )


def late_notes(facts: AnyFacts) -> Iterator[str]:
    """Yield that what is claimed may have been fixed too late, if it may."""
    protocol, evaluations = facts.protocol, facts.evaluations
    late = protocol.late or any(one.registered_late for one in evaluations)
    if late or not protocol.registered:
        yield (
            "The protocol was not registered before every run it judges: what is "
            "claimed may have been fixed after the numbers were known."
        )


def _measured(evaluation: EvaluationFacts) -> Iterator[str]:
    """Yield what must be known of the numbers of one evaluation."""
    where = f"On {told(evaluation.cohort)}"
    yield f"{where}: {outcomes(evaluation) or 'outcomes not recorded'}."
    for note in evaluation.notes:
        yield f"{where}: {told(note)}"
    without = labels_without_pass(evaluation)
    if without:
        yield f"{where}, labels without a pass: {', '.join(without)}."


def _unknown_patients(facts: ReleaseFacts) -> Iterator[str]:
    for one in facts.cohorts:
        if not one.patients_known:
            yield (
                f"The patients of {told(one.name)} are not known: its intervals "
                "treat each case as a separate patient."
            )


def separation_section(facts: AnyFacts) -> DocumentSection:
    """Return how development and holdout were kept apart."""
    checked = [told(one) for one in facts.separation.checked]
    lead = () if checked else ("No check of the separation is recorded.",)
    return DocumentSection(
        key="separation",
        title="Separation of development and holdout",
        lead=lead,
        notes=tuple(filter(None, checked)),
    )


def labels_changed(facts: AnyFacts) -> list[tuple[str, ...]]:
    """Return one row per label whose guide changed: added, removed, changed."""
    return [
        (
            named(facts, [one.label]),
            *map(_changes, (one.added, one.removed, one.changed)),
        )
        for one in facts.change.labels
    ]


def _changes(changes: object) -> str:
    """Return how many wordings changed, or the wordings themselves."""
    if isinstance(changes, list | tuple):
        return "; ".join(filter(None, map(told, changes))) or "0"
    return told(changes) or "0"


def claim_sentence(facts: ReleaseFacts) -> str:
    """Return the claim and how it is judged, as one sentence."""
    content = facts.protocol.content
    every = facts.claim.kind == "all"
    of = "every label" if every else "each label it is shown for"
    if every and any(True for _ in left_out_sentences(facts)):
        of = "every label that the reference can judge"
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


def left_out_sentences(facts: ReleaseFacts) -> Iterator[str]:
    """Yield each label that is no part of the claim, and why: nobody can judge it."""
    evaluation = claimed(facts)
    for one in evaluation.labels if evaluation else ():
        if not one.comparable:
            why = "; ".join(map(told, one.gate.reasons))
            yield f"{told(one.name)}: shown, not part of the claim: {why}."


def claim_section(facts: ReleaseFacts) -> DocumentSection:
    """Return the claim with its tests, and the protocol that fixed it."""
    claim, protocol = facts.claim, facts.protocol
    names = label_names(facts)
    evaluation = claimed(facts)
    gates = (
        {one.label: one.gate.verdict for one in evaluation.labels} if evaluation else {}
    )
    rows = [
        (
            names.get(one.label, told(one.label)),
            told(gates.get(one.label)) or NOT_ESTIMABLE,
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
        lead=(
            *filter(None, (claim_sentence(facts), shown_sentence(facts))),
            *left_out_sentences(facts),
        ),
        lines=(
            fact("Verdict", claim.verdict),
            FactLine("Many labels", how),
            fact("Protocol", protocol.digest),
            fact("Registered in the ledger", protocol.registered),
            FactLine("Before the runs", "no" if protocol.late else "yes"),
            fact("Content of the protocol", protocol.content),
        ),
        tables=table("Label|Gate|#p of accuracy (exact)|#p (Holm)|Claim holds", rows),
        notes=tuple(claim_notes(facts)) if rows else (),
    )


def claim_notes(facts: ReleaseFacts) -> Iterator[str]:
    """Yield what a gate and p show, and why neither makes the claim hold."""
    content = facts.protocol.content
    yield (
        "A gate's PASS is a verdict on one label; whether the claim holds is another "
        "question, so that a label may pass while the claim does not hold for it."
    )
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


def openings_section(facts: AnyFacts) -> DocumentSection:
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
    roles = any(one.verdict_roles for one in facts.history)
    rows = [
        (
            *map(told, (one.ref, one.time, one.author, one.why)),
            told(one.verdicts),
            *([told_roles([one])] if roles else []),
            share(one.macro_f1),
            *([told(one.measured)] if measured else []),
            told(one.status),
        )
        for one in facts.history
    ]
    lead = () if rows else ("No earlier version is recorded.",)
    notes = (f"Given by: {ROLES_MEAN}.",) if roles else ()
    given = "|Given by" if roles else ""
    measure = "|Measured with" if measured else ""
    columns = (
        f"Version|Time (UTC)|Author|Why|#Verdicts{given}|#Macro-F1{measure}|Status"
    )
    return DocumentSection(
        key="history",
        title="History",
        lead=lead,
        tables=table(columns, rows),
        notes=notes,
    )


ROLES_MEAN = "roles in the workbench, as recorded at the commit, not professions"
"""What a role of those who gave verdicts is."""


def told_roles(history: Iterable[PastFacts]) -> str:
    """Return how many verdicts people of each role gave; empty without verdicts."""
    counts: Counter[str] = Counter()
    rest = 0
    for one in history:
        counts.update(one.verdict_roles)
        rest += max(0, one.verdicts - sum(one.verdict_roles.values()))
    known = [f"{told(role)} {number:,}" for role, number in sorted(counts.items())]
    return ", ".join([*known, *([f"not recorded {rest:,}"] if rest > 0 else [])])


def signature_section(
    facts: AnyFacts, approvals: Sequence[Approval]
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


def verify_section(
    facts: AnyFacts, made_again: str = "the table recomputed from its counts"
) -> DocumentSection:
    """Return how to check the release without a network, and what that shows.

    Parameters
    ----------
    made_again
        Which numbers are recomputed, and from what.
    """
    name, ledger = told(facts.release.name), facts.ledger
    return DocumentSection(
        key="verify",
        title="How to verify",
        lead=(
            "With this folder and the public key of a person you trust, offline: "
            f"ranloop verify {name} --key KEY.json",
            "It checks the signatures, the digest of every file, the prompt rendered "
            f"again, {made_again}, and the ledger up to its head. It exits with 0 only "
            "if all of it holds.",
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

"""The parts of a release card that say what the release is and how it was made."""

from __future__ import annotations

from collections.abc import Iterator

from loop.documents.numbers import share
from loop.release.documents.phrases import (
    NO_MODEL,
    change_limits,
    claimed,
    counted,
    is_compared,
    label_names,
    labels_without_pass,
    named,
    outcomes,
    told,
    uses_a_model,
)
from loop.release.documents.section import DocumentSection, FactLine, fact, table
from loop.release.facts import EvaluationFacts, FrozenCohort, ReleaseFacts


def release_section(facts: ReleaseFacts) -> DocumentSection:
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
            FactLine("Contact", author="whom to tell of an error"),
        ),
    )


def _outside(facts: ReleaseFacts) -> str:
    measured = "texts of other sources or languages than the cohorts below"
    evaluation = claimed(facts)
    without = labels_without_pass(evaluation) if evaluation else []
    if not without:
        return f"{measured}: nothing was measured on them"
    return f"{measured}; labels without a pass: {', '.join(without)}"


def engine_section(facts: ReleaseFacts) -> DocumentSection:
    """Return the engine and every parameter it was asked with."""
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
        lead=() if uses_a_model(facts) else (f"{NO_MODEL[:1].upper()}{NO_MODEL[1:]}.",),
        lines=(
            fact("Engine", engine.name),
            fact("Digest of the engine", engine.digest),
            fact("Time of the run", None if seconds is None else f"{seconds:,.1f} s"),
            fact("Tokens", counted(compute.tokens, "token")),
            fact("Platform", compute.platform),
            fact("Python", compute.python),
            fact("Packages", compute.packages),
        ),
        tables=table("What|Name|Value", rows),
    )


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
        source = map(told, (one.source, one.licence, one.citation))
        lines += [
            FactLine(name, ", ".join(filter(None, facts_of))),
            fact(f"{name}: source", "; ".join(filter(None, source))),
            fact(f"{name}: digest", one.digest),
            fact(f"{name}: reference", _reference(one, read)),
            fact(f"{name}: reference digest", one.reference_digest),
        ]
    lead = () if lines else ("No cohort is recorded.",)
    return DocumentSection(
        key="cohorts", title="Cohorts", lead=lead, lines=tuple(lines)
    )


def _patients(known: object) -> str:
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
            f"{before}, on the development cohort: {labels}."
        )
    if is_compared(facts):
        return f"No label lost more right answers than it gained against {before}."
    return f"No label was compared with {before}: what got worse is not known."


def limits_section(facts: ReleaseFacts) -> DocumentSection:
    """Return what the numbers do not show, as far as the facts tell."""
    notes = [
        *_late(facts),
        *(note for one in facts.evaluations for note in _measured(one)),
        *_unknown_patients(facts),
        *map(told, facts.separation.remarks),
    ]
    return DocumentSection(
        key="limits",
        title="Limits",
        lead=(
            "Research evidence about one prompt version with one engine; not a medical "
            "device. The site that uses it must show that it is fit for its use.",
        ),
        lines=(
            FactLine(
                "Known failure modes",
                author="what kinds of text it gets wrong, and who is affected",
            ),
        ),
        notes=tuple(filter(None, notes)),
    )


def _late(facts: ReleaseFacts) -> Iterator[str]:
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
                "take every case for a patient of its own."
            )


def separation_section(facts: ReleaseFacts) -> DocumentSection:
    """Return how development and holdout were kept apart."""
    checked = [told(one) for one in facts.separation.checked]
    lead = () if checked else ("No check of the separation is recorded.",)
    return DocumentSection(
        key="separation",
        title="Separation of development and holdout",
        lead=lead,
        notes=tuple(filter(None, checked)),
    )


def labels_changed(facts: ReleaseFacts) -> list[tuple[str, ...]]:
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

"""What a release says to the items of checklists, each with its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from loop.documents.numbers import share
from loop.evaluate.gates import GateVerdict
from loop.release.documents.card_evidence import reading_line
from loop.release.documents.phrases import (
    claimed,
    counted,
    is_compared,
    labels_with,
    objections,
    outcomes,
    rate,
    told,
)
from loop.release.facts import FrozenCohort, ReleaseFacts
from loop.stats.intervals import Estimate


class Filled(NamedTuple):
    """What the release says to an item."""

    text: str
    """Empty where nothing is recorded: then it is left to the author."""

    source: str
    """The field of release.json, the file, or the ledger entries it is from."""


def fill_field(facts: ReleaseFacts, field: str, words: str) -> Filled:
    """Return a field of release.json, for example ``"release.why"``, behind words."""
    value: object = facts
    for name in field.split("."):
        value = getattr(value, name)
    text = told(value)
    return Filled(text and f"{words} {text}", f"release.json {field}")


def labels(facts: ReleaseFacts) -> Filled:
    """Return what is read from a text."""
    number = len(facts.release.labels)
    task = f"values of {number} labels from clinical texts" if number else ""
    return Filled(task, "release.json release.labels")


def model(facts: ReleaseFacts) -> Filled:
    """Return the engine, what it says it is, and its digest."""
    engine = facts.engine
    digest = told(engine.digest)
    parts = [
        told(engine.name),
        told(engine.identity),
        f"digest {digest}" if digest else "",
    ]
    return Filled("; ".join(filter(None, parts)), "release.json engine")


def dates(facts: ReleaseFacts) -> Filled:
    """Return when the runs were asked."""
    begun = [
        f"{told(one.cohort)} {told(one.created)}"
        for one in facts.evaluations
        if one.created
    ]
    text = f"runs begun: {', '.join(begun)}" if begun else ""
    return Filled(text, "release.json evaluations.created")


def settings(facts: ReleaseFacts) -> Filled:
    """Return every parameter of the engine, and what is not set."""
    parameters = told(facts.engine.parameters)
    return Filled(parameters or "no parameters", "release.json engine.parameters")


def wording(facts: ReleaseFacts) -> Filled:
    """Return where the exact prompt is."""
    digest = told(facts.release.digest)
    text = f"as sent in rendered/, as templates in prompt/; digest {digest}"
    return Filled(text, "rendered/, prompt/, release.json release.digest")


def structure(facts: ReleaseFacts) -> Filled:
    """Return how a case is asked."""
    plan = told(facts.release.plan)
    how = {
        "joint": "one call per case asks for all labels",
        "per_label": "one call per case and label",
    }
    text = how.get(plan, f"call plan {plan}")
    return Filled(
        f"{text}; every call is a conversation of its own, with no earlier messages",
        "release.json release.plan, rendered/",
    )


def lineage(facts: ReleaseFacts) -> Filled:
    """Return the versions that led here and the verdicts behind them."""
    history = facts.history
    verdicts = sum(one.verdicts for one in history)
    text = (
        f"{counted(len(history), 'version')} with reasons, "
        f"{counted(verdicts, 'verdict')}"
    )
    source = "release.json history; ledger.jsonl draft_committed"
    return Filled(text if history else "", source)


def choice(facts: ReleaseFacts) -> Filled:
    """Return how many versions were tried, and the corrected score."""
    found = facts.selection
    text = f"{counted(found.tried, 'version')} tried" if found else ""
    if found and found.corrected is not None:
        corrected = Estimate(found.corrected, found.low, found.high)
        text += (
            f"; macro-F1 apparent {share(found.apparent)}, corrected {rate(corrected)}"
        )
    return Filled(text, "release.json selection")


def sources(facts: ReleaseFacts) -> Filled:
    """Return where the cohorts are from, their roles, sizes and languages."""
    return Filled(told_sources(facts.cohorts), "release.json cohorts")


def told_sources(cohorts: Iterable[FrozenCohort]) -> str:
    """Return where cohorts are from, their roles, sizes and languages."""
    texts = [
        ", ".join(
            filter(
                None,
                (
                    f"{told(one.name)} ({told(one.role)})",
                    told(one.source),
                    counted(one.cases, "case"),
                    told(one.language),
                    "synthetic" if one.synthetic else "",
                ),
            )
        )
        for one in cohorts
    ]
    return "; ".join(texts)


def separation(facts: ReleaseFacts) -> Filled:
    """Return what was checked between development and holdout."""
    kept = facts.separation
    said = [*kept.checked, *kept.remarks]
    texts = [told(one).rstrip(".") for one in said]
    if facts.development_only:
        texts.insert(0, "DEVELOPMENT DATA ONLY: no holdout was opened")
    return Filled(
        "; ".join(filter(None, texts)), "release.json separation, development_only"
    )


def openings(facts: ReleaseFacts) -> Filled:
    """Return how often the holdout was opened."""
    number = len(facts.openings)
    text = f"the holdout was opened {counted(number, 'time')}" if number else ""
    return Filled(text, "release.json openings; ledger.jsonl holdout_opened")


def registration(facts: ReleaseFacts) -> Filled:
    """Return when the protocol was fixed, and its digest."""
    given = facts.protocol
    when, digest = told(given.registered), told(given.digest)
    late = ", after a run it judges" if given.late else ""
    text = f"registered {when}{late}" if when else "not registered"
    source = "release.json protocol; ledger.jsonl protocol_set"
    return Filled(f"{text}, digest {digest}", source)


def protocol(facts: ReleaseFacts) -> Filled:
    """Return what was to be reached, as it was fixed before."""
    content = told(facts.protocol.content)
    return Filled(content and f"protocol: {content}", "release.json protocol.content")


def flow(facts: ReleaseFacts) -> Filled:
    """Return what became of the cases of each cohort."""
    texts = [
        f"{told(one.cohort)}: {counted(one.cases, 'case')}, {outcomes(one)}"
        for one in facts.evaluations
    ]
    return Filled("; ".join(texts), "release.json evaluations.cases, statuses")


def excluded(facts: ReleaseFacts) -> Filled:
    """Return how many cases of all labels were left out of the scores, and why."""
    texts = []
    for one in facts.evaluations:
        sums: dict[str, int] = {}
        for label in one.labels:
            for reason, number in label.excluded.model_dump().items():
                sums[reason] = sums.get(reason, 0) + number
        why = [
            f"{n:,} {told(k).replace('_', ' ')}" for k, n in sorted(sums.items()) if n
        ]
        texts.append(f"{told(one.cohort)}: {', '.join(why) or 'none'}")
    text = f"case-label pairs not scored: {'; '.join(texts)}" if texts else ""
    return Filled(text, "release.json evaluations.labels.excluded")


def positives(facts: ReleaseFacts) -> Filled:
    """Return cases with and without each label where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return Filled("", "")
    texts = [
        f"{told(one.name)} {one.tp + one.fn} of {told(one.n)}"
        for one in evaluation.labels
    ]
    where = told(evaluation.cohort)
    text = f"positives on {where}: {', '.join(texts)}" if texts else ""
    return Filled(text, "release.json evaluations.labels")


def performance(facts: ReleaseFacts) -> Filled:
    """Return the averages and verdicts of each evaluation; the labels are beside."""
    texts = []
    for one in facts.evaluations:
        verdicts = ", ".join(
            f"{len(labels_with(one, verdict))} {verdict}" for verdict in GateVerdict
        )
        texts.append(
            f"{told(one.cohort)}: macro-F1 {rate(one.macro)}, labels {verdicts}"
        )
    source = "release.json evaluations; evaluation.csv"
    return Filled("; ".join(texts), source)


def readers(facts: ReleaseFacts) -> Filled:
    """Return who read the cases and how far they agree."""
    return Filled(reading_line(facts), "release.json reading")


def ceiling(facts: ReleaseFacts) -> Filled:
    """Return that the release was compared with readers, where it was."""
    given, text = facts.ceiling, ""
    if given:
        labels = counted(len(given.labels), "label")
        who = counted(given.readers, "reader") or "readers"
        text = f"compared with {who} on {labels}"
    return Filled(text, "release.json ceiling")


def compute(facts: ReleaseFacts) -> Filled:
    """Return time, tokens and platform."""
    given = facts.compute
    seconds = given.seconds
    parts = [
        "" if seconds is None else f"{seconds:,.1f} s",
        counted(given.tokens, "token"),
        told(given.platform),
        f"Python {told(given.python)}" if given.python else "",
    ]
    return Filled(", ".join(filter(None, parts)), "release.json compute")


def comparison(facts: ReleaseFacts) -> Filled:
    """Return with which version the answers were compared; empty where with none."""
    before = told(facts.change.from_ref) if is_compared(facts) else ""
    return Filled(before and f"compared with {before}", "release.json change")


def updating(facts: ReleaseFacts) -> Filled:
    """Return what changed since the release before."""
    change = facts.change
    before = told(change.previous) or told(change.from_ref)
    if not before:
        return Filled("first release", "release.json change")
    if not is_compared(facts):
        return Filled("", "")
    text = (
        f"against {before}: {counted(len(change.improved), 'label')} improved, "
        f"{len(change.unchanged)} unchanged, {len(change.worse)} worse"
    )
    return Filled(text, "release.json change; change-record.md")


_MADE_ON = ("taxonomy", "dev")
"""Roles of cohorts whose cases and labels may shape a prompt."""


def development(facts: ReleaseFacts) -> Filled:
    """Return the cohorts that the prompt was made on."""
    cohorts = [one for one in facts.cohorts if one.role in _MADE_ON]
    return Filled(told_sources(cohorts), "release.json cohorts.role")


def licences(facts: ReleaseFacts) -> Filled:
    """Return the licence of each cohort that has one."""
    texts = [
        f"{told(one.name)}: {told(one.licence)}" for one in facts.cohorts if one.licence
    ]
    return Filled("; ".join(texts), "release.json cohorts.licence")


def tool(facts: ReleaseFacts) -> Filled:
    """Return the version of ranloop."""
    return Filled(f"ranloop {told(facts.tool.ranloop)}", "release.json tool")


def limits(facts: ReleaseFacts) -> Filled:
    """Return which labels did not pass, and whether a holdout is missing."""
    texts = ["DEVELOPMENT DATA ONLY"] if facts.development_only else []
    for one in facts.evaluations:
        open_labels = len(list(objections(one)))
        if open_labels:
            texts.append(f"{open_labels} labels without a pass on {told(one.cohort)}")
    return Filled("; ".join(texts), "release.json evaluations.labels.gate")


FILLED: Mapping[str, Callable[[ReleaseFacts], Filled]] = {
    one.__name__: one
    for one in (
        ceiling, choice, comparison, compute, dates, development, excluded, flow,
        labels, licences, limits, lineage, model, openings, performance, positives,
        protocol, readers, registration, separation, settings, sources, structure,
        tool, updating, wording,
    )
}  # fmt: skip
"""What an item of a checklist may name."""

"""What a release says to the items of checklists, each with its source."""

from __future__ import annotations

from loop.documents.numbers import share
from loop.release.documents.card_evidence import reading_line
from loop.release.documents.checklist import Filled
from loop.release.documents.phrases import (
    Facts,
    claimed,
    counted,
    is_compared,
    labels_with,
    outcomes,
    rate,
    told,
)


def recorded(facts: Facts, words: str, *path: str) -> Filled:
    """Return a field of release.json behind `words`; empty where it is null."""
    value: object = facts
    for step in path:
        value = value[step] if isinstance(value, dict) else None
    text = told(value)
    return Filled(text and f"{words} {text}", f"release.json {'.'.join(path)}")


def model(facts: Facts) -> Filled:
    """Return the engine, what it says it is, and its digest."""
    engine = facts["engine"]
    digest = told(engine["digest"])
    parts = [
        told(engine["name"]),
        told(engine["identity"]),
        f"digest {digest}" if digest else "",
    ]
    return Filled("; ".join(filter(None, parts)), "release.json engine")


def dates(facts: Facts) -> Filled:
    """Return when the runs were asked."""
    begun = [
        f"{told(one['cohort'])} {told(one['created'])}"
        for one in facts["evaluations"] or ()
        if one["created"]
    ]
    text = f"runs begun: {', '.join(begun)}" if begun else ""
    return Filled(text, "release.json evaluations.created")


def settings(facts: Facts) -> Filled:
    """Return every parameter of the engine, and what is not set."""
    parameters = told(facts["engine"]["parameters"])
    return Filled(parameters or "no parameters", "release.json engine.parameters")


def wording(facts: Facts) -> Filled:
    """Return where the exact prompt is."""
    digest = told(facts["release"]["digest"])
    text = f"as sent in rendered/, as templates in prompt/; digest {digest}"
    return Filled(text, "rendered/, prompt/, release.json release.digest")


def structure(facts: Facts) -> Filled:
    """Return how a case is asked."""
    plan = told(facts["release"]["plan"])
    how = {
        "joint": "one call per case asks for all labels",
        "per_label": "one call per case and label",
    }
    text = how.get(plan, f"call plan {plan}")
    return Filled(
        f"{text}; every call is a conversation of its own, with no earlier messages",
        "release.json release.plan, rendered/",
    )


def lineage(facts: Facts) -> Filled:
    """Return the versions that led here and the verdicts behind them."""
    history = facts["history"] or ()
    verdicts = sum(one["verdicts"] or 0 for one in history)
    text = (
        f"{counted(len(history), 'version')} with reasons, "
        f"{counted(verdicts, 'verdict')}"
    )
    source = "release.json history; ledger.jsonl draft_committed"
    return Filled(text if history else "", source)


def choice(facts: Facts) -> Filled:
    """Return how many versions were tried, and the corrected score."""
    selection = facts["selection"] or {}
    tried = counted(selection.get("tried"), "version")
    parts = [f"{tried} tried" if tried else ""]
    if selection.get("corrected") is not None:
        parts.append(
            f"macro-F1 apparent {share(selection['apparent'])}, corrected "
            f"{rate({**selection, 'value': selection['corrected']})}"
        )
    return Filled("; ".join(filter(None, parts)), "release.json selection")


def sources(facts: Facts) -> Filled:
    """Return where the cohorts are from, their roles, sizes and languages."""
    texts = [
        ", ".join(
            filter(
                None,
                (
                    f"{told(one['name'])} ({told(one['role'])})",
                    told(one["source"]),
                    counted(one["cases"], "case"),
                    told(one["language"]),
                    "synthetic" if one["synthetic"] else "",
                ),
            )
        )
        for one in facts["cohorts"] or ()
    ]
    return Filled("; ".join(texts), "release.json cohorts")


def separation(facts: Facts) -> Filled:
    """Return what was checked between development and holdout."""
    kept = facts["separation"]
    said = [*(kept["checked"] or ()), *(kept["remarks"] or ())]
    texts = [told(one).rstrip(".") for one in said]
    if facts["development_only"]:
        texts.insert(0, "DEVELOPMENT DATA ONLY: no holdout was opened")
    return Filled(
        "; ".join(filter(None, texts)), "release.json separation, development_only"
    )


def openings(facts: Facts) -> Filled:
    """Return how often the holdout was opened."""
    number = len(facts["openings"] or ())
    text = f"the holdout was opened {counted(number, 'time')}" if number else ""
    return Filled(text, "release.json openings; ledger.jsonl holdout_opened")


def registration(facts: Facts) -> Filled:
    """Return when the protocol was fixed, and its digest."""
    given = facts["protocol"]
    when, digest = told(given["registered"]), told(given["digest"])
    late = ", after a run it judges" if given["late"] else ""
    text = f"registered {when}{late}" if when else "not registered"
    source = "release.json protocol; ledger.jsonl protocol_set"
    return Filled(f"{text}, digest {digest}", source)


def protocol(facts: Facts) -> Filled:
    """Return what was to be reached, as it was fixed before."""
    content = told(facts["protocol"]["content"])
    return Filled(content and f"protocol: {content}", "release.json protocol.content")


def flow(facts: Facts) -> Filled:
    """Return what became of the cases of each cohort."""
    texts = [
        f"{told(one['cohort'])}: {counted(one['cases'], 'case')}, {outcomes(one)}"
        for one in facts["evaluations"] or ()
    ]
    return Filled("; ".join(texts), "release.json evaluations.cases, statuses")


def excluded(facts: Facts) -> Filled:
    """Return how many cases of all labels were left out of the scores, and why."""
    texts = []
    for one in facts["evaluations"] or ():
        sums: dict[str, int] = {}
        for label in one["labels"] or ():
            for reason, number in label["excluded"].items():
                sums[reason] = sums.get(reason, 0) + (number or 0)
        why = [
            f"{n:,} {told(k).replace('_', ' ')}" for k, n in sorted(sums.items()) if n
        ]
        texts.append(f"{told(one['cohort'])}: {', '.join(why) or 'none'}")
    text = f"case-label pairs not scored: {'; '.join(texts)}" if texts else ""
    return Filled(text, "release.json evaluations.labels.excluded")


def positives(facts: Facts) -> Filled:
    """Return cases with and without each label where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return Filled("", "")
    texts = [
        f"{told(one['name'])} {_sum(one, 'tp', 'fn')} of {told(one['n'])}"
        for one in evaluation["labels"] or ()
    ]
    where = told(evaluation["cohort"])
    text = f"positives on {where}: {', '.join(texts)}" if texts else ""
    return Filled(text, "release.json evaluations.labels")


def _sum(label: Facts, *names: str) -> int:
    return sum(label[name] or 0 for name in names)


def performance(facts: Facts) -> Filled:
    """Return the averages and verdicts of each evaluation; the labels are beside."""
    texts = []
    for one in facts["evaluations"] or ():
        verdicts = ", ".join(
            f"{len(labels_with(one, verdict))} {verdict}"
            for verdict in ("PASS", "FAIL", "INSUFFICIENT")
        )
        texts.append(
            f"{told(one['cohort'])}: macro-F1 {rate(one['macro'])}, labels {verdicts}"
        )
    source = "release.json evaluations; evaluation.csv"
    return Filled("; ".join(texts), source)


def readers(facts: Facts) -> Filled:
    """Return who read the cases and how far they agree."""
    return Filled(reading_line(facts), "release.json reading")


def ceiling(facts: Facts) -> Filled:
    """Return that the release was compared with readers, where it was."""
    given = facts["ceiling"] or {}
    labels = counted(len(given.get("labels") or ()), "label")
    readers_of = counted(given.get("readers"), "reader")
    text = f"compared with {readers_of or 'readers'} on {labels}" if given else ""
    return Filled(text, "release.json ceiling")


def compute(facts: Facts) -> Filled:
    """Return time, tokens and platform."""
    given = facts["compute"]
    seconds = given["seconds"]
    parts = [
        "" if seconds is None else f"{seconds:,.1f} s",
        counted(given["tokens"], "token"),
        told(given["platform"]),
        f"Python {told(given['python'])}" if given["python"] else "",
    ]
    return Filled(", ".join(filter(None, parts)), "release.json compute")


def comparison(facts: Facts) -> Filled:
    """Return with which version the answers were compared; empty where with none."""
    before = told(facts["change"]["from_ref"]) if is_compared(facts) else ""
    return Filled(before and f"compared with {before}", "release.json change")


def updating(facts: Facts) -> Filled:
    """Return what changed since the release before."""
    change = facts["change"]
    before = told(change["previous"]) or told(change["from_ref"])
    if not before:
        return Filled("first release", "release.json change")
    if not is_compared(facts):
        return Filled("", "")
    improved, unchanged, worse = (
        len(change[name] or ()) for name in ("improved", "unchanged", "worse")
    )
    text = (
        f"against {before}: {counted(improved, 'label')} improved, {unchanged} "
        f"unchanged, {worse} worse"
    )
    return Filled(text, "release.json change; change-record.md")

"""A reporting checklist: each item with what the release says, and from where.

The checklists are ``mi_clear_llm.yaml`` and ``tripod_llm.yaml`` beside this file. An
item names what it asks for, what is ``filled`` from the release (a function of this
module, a field of release.json behind words, or a text that holds for every release),
and what only its ``author`` can add.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict

from loop.core.nouns import counted
from loop.core.yaml_files import read_model
from loop.documents.numbers import NOT_ESTIMABLE, share
from loop.evaluate.gates import describe_verdicts
from loop.evaluate.tried import WordingStatus
from loop.release.documents.card_sections import (
    ROLES_MEAN,
    claim_notes,
    compared_on,
    reading_line,
    run_time,
    told_roles,
)
from loop.release.documents.parts import (
    AUTHOR,
    NO_MODEL,
    DocumentSection,
    ReleaseDocument,
    claimed,
    is_compared,
    objections,
    outcomes,
    rate,
    table,
    told,
    uses_a_model,
)
from loop.release.facts import FrozenCohort, PastFacts, ReleaseFacts
from loop.stats.intervals import Estimate

CHECKLISTS = ("mi_clear_llm", "tripod_llm")
"""Names of the checklists; each is a YAML file in this folder."""


class _ChecklistPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _FieldSource(_ChecklistPart):
    words: str
    field: str


class _FixedText(_ChecklistPart):
    text: str
    source: str


def _known(name: str) -> str:
    if name not in FILLED:
        raise ValueError(f"use one of {', '.join(FILLED)}")
    return name


class ChecklistItem(_ChecklistPart):
    """One item of a checklist."""

    number: str
    title: str
    """Its title or wording in the publication."""

    scope: str = ""
    """Study designs and tasks it is for, as in the publication; empty for all."""

    asks: str = ""
    """What it asks for, in our words; empty where the publication's say it."""

    filled: list[
        Annotated[str, AfterValidator(_known)] | _FieldSource | _FixedText
    ] = []
    author: str = ""
    """What only a person can add; empty where the release says all there is."""


class Checklist(_ChecklistPart):
    """A checklist and where it was published."""

    name: str
    source: str
    notes: list[str]
    items: dict[str, list[ChecklistItem]]
    """Items by area."""


class FilledItem(NamedTuple):
    """An item with what the release says to it."""

    item: ChecklistItem
    filled: tuple[Filled, ...]

    @property
    def known(self) -> tuple[Filled, ...]:
        """What is recorded."""
        return tuple(one for one in self.filled if one.text)

    @property
    def open(self) -> str:
        """What is left to the author; empty where nothing is."""
        if self.item.author:
            return f"{AUTHOR}: {self.item.author}"
        return "" if len(self.known) == len(self.filled) > 0 else AUTHOR


def read_checklist(name: str) -> Checklist:
    """Return one of `CHECKLISTS`.

    Raises
    ------
    DataError
        The file is not a checklist; names each wrong field.
    """
    return read_model(Path(__file__).parent / f"{name}.yaml", Checklist)


def fill_item(item: ChecklistItem, facts: ReleaseFacts) -> FilledItem:
    """Return an item with what the release says to it."""
    filled = []
    for one in item.filled:
        if isinstance(one, str):
            filled.append(FILLED[one](facts))
        elif isinstance(one, _FieldSource):
            filled.append(fill_field(facts, one.field, one.words))
        else:
            filled.append(Filled(one.text, one.source))
    return FilledItem(item, tuple(filled))


def checklist_document(facts: ReleaseFacts, checklist: Checklist) -> ReleaseDocument:
    """Return a checklist with a section per area."""
    areas = {
        area: [fill_item(one, facts) for one in items]
        for area, items in checklist.items.items()
    }
    items = [one for filled in areas.values() for one in filled]
    whole = sum(not one.open for one in items)
    partly = sum(bool(one.open and one.known) for one in items)
    left = len(items) - whole - partly
    return ReleaseDocument(
        title=f"{checklist.name} for {told(facts.release.name)}",
        subtitle=checklist.source,
        intro=(
            f"{len(items)} items: {whole} filled from the release, {partly} partly, "
            f"{left} left to the author. It helps prepare the checklist of a paper; "
            "what only a person knows is left open, never guessed.",
            _wording_note(items),
            *checklist.notes,
            *(() if uses_a_model(facts) else (f"Here {NO_MODEL}.",)),
        ),
        sections=tuple(_section(area, filled) for area, filled in areas.items()),
    )


def _wording_note(items: Iterable[FilledItem]) -> str:
    """Say whose words an item is in."""
    if any(one.item.asks for one in items):
        return (
            "An item is called as in the publication; what it asks for is said behind "
            "that in our words."
        )
    return "Items have the numbers and the words of the publication."


def _asked(item: ChecklistItem) -> str:
    """Return an item's words, and what it is for in square brackets."""
    words = ": ".join(filter(None, (item.title, item.asks)))
    return f"{words} [{item.scope}]" if item.scope else words


def _section(area: str, items: Sequence[FilledItem]) -> DocumentSection:
    rows = [
        (
            one.item.number,
            _asked(one.item),
            "; ".join(filled.text for filled in one.known) or NOT_ESTIMABLE,
            "; ".join(dict.fromkeys(filled.source for filled in one.known))
            or NOT_ESTIMABLE,
            one.open or NOT_ESTIMABLE,
        )
        for one in items
    ]
    columns = "Item|Asks for|Filled from the release|Source|Author"
    key = "".join(char if char.isalnum() else "-" for char in area.lower())
    return DocumentSection(key=key, title=area, tables=table(columns, rows))


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
    what = counted(number, "label")
    task = f"values of {what} from clinical texts" if number else ""
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
    history = [one for one in facts.history if one.status == WordingStatus.COMMITTED]
    verdicts = sum(one.verdicts for one in history)
    authors = ", ".join(dict.fromkeys(filter(None, (told(p.author) for p in history))))
    parts = [
        f"{counted(len(history), 'version')} with reasons"
        + (f", by {authors}" if authors else ""),
        counted(verdicts, "verdict") + (_givers(history) if verdicts else ""),
        *_replayed(history),
    ]
    if drafts := len(facts.history) - len(history):
        parts.append(f"{counted(drafts, 'draft')} beside them, not committed")
    source = "release.json history; ledger.jsonl draft_committed"
    return Filled("; ".join(parts) if history else "", source)


def _givers(history: Sequence[PastFacts]) -> str:
    """Say in which roles verdicts were given, as far as it was recorded."""
    if any(one.verdict_roles for one in history):
        return f", by role of those who gave them: {told_roles(history)} ({ROLES_MEAN})"
    return ": who gave them, in which role, is not in release.json"


QUICK = 60
"""Fewer seconds than this between two versions are nobody's work on the second."""


def _replayed(history: Sequence[PastFacts]) -> Iterator[str]:
    """Say which versions were committed too fast for the times to be those of work."""
    known = [one for one in history if _TIME.fullmatch(one.time)]
    quick = [
        (after, seconds)
        for before, after in pairwise(known)
        if 0 <= (seconds := _seconds_between(before.time, after.time)) < QUICK
    ]
    if quick:
        longest = max(seconds for _, seconds in quick)
        refs = ", ".join(told(one.ref) for one, _ in quick)
        yield (
            f"{refs}: committed at most {counted(longest, 'second')} after the version "
            "before, so a history was replayed or written by a program, and these "
            "times do not say when the work was done"
        )


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


def _seconds_between(earlier: str, later: str) -> int:
    """Return the seconds between two times; -1 where one is none of a calendar."""
    try:
        first, last = map(datetime.fromisoformat, (earlier, later))
    except ValueError:
        return -1
    return int((last - first).total_seconds())


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
    return Filled(_told_sources(facts.cohorts), "release.json cohorts")


def _told_sources(cohorts: Iterable[FrozenCohort]) -> str:
    """Return where cohorts are from, their roles, sizes and languages."""
    texts = [
        ", ".join(
            filter(
                None,
                (
                    f"{told(one.name)} ({told(one.role)})",
                    told(one.source) or "source not recorded",
                    counted(one.cases, "case"),
                    told(one.language) or "language not recorded",
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
    each = [f"{told(one.prompt)} at {told(one.time)}" for one in facts.openings]
    text += f": for {', '.join(each)}" if each else ""
    return Filled(text, "release.json openings; ledger.jsonl holdout_opened")


def against(facts: ReleaseFacts) -> Filled:
    """Return what stood against the release, a holdout measured before among it."""
    frozen = facts.frozen
    texts = [f"against it stood: {told(one)}" for one in frozen.objections]
    if frozen.override:
        texts.append(
            f"frozen all the same by {told(frozen.actor)}: {told(frozen.override)}"
        )
    return Filled("; ".join(texts), "release.json frozen.objections, override")


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
        verdicts = describe_verdicts(label.gate.verdict for label in one.labels)
        texts.append(
            f"{told(one.cohort)}: macro-F1 {rate(one.macro)}, labels: {verdicts}"
        )
    source = "release.json evaluations; evaluation.csv"
    return Filled("; ".join(texts), source)


def claim(facts: ReleaseFacts) -> Filled:
    """Return the verdict of the claim, and what a label's PASS does not show."""
    found = facts.claim
    notes = " ".join(claim_notes(facts)).rstrip(".") if found.labels else ""
    text = f"claim on {told(found.cohort) or 'no cohort'}: {told(found.verdict)}"
    return Filled(f"{text}. {notes}" if notes else text, "release.json claim")


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
        "" if seconds is None else run_time(seconds),
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
        f"{len(change.unchanged)} unchanged, {len(change.worse)} worse, "
        f"{compared_on(facts)}"
    )
    return Filled(text, "release.json change; change-record.md")


_MADE_ON = ("taxonomy", "dev")
"""Roles of cohorts whose cases and labels may shape a prompt."""


def development(facts: ReleaseFacts) -> Filled:
    """Return the cohorts that the prompt was made on."""
    cohorts = [one for one in facts.cohorts if one.role in _MADE_ON]
    return Filled(_told_sources(cohorts), "release.json cohorts.role")


def licences(facts: ReleaseFacts) -> Filled:
    """Return the licence of each cohort; nothing where none is recorded."""
    texts = [
        f"{told(one.name)}: {told(one.licence) or 'not recorded'}"
        for one in facts.cohorts
    ]
    recorded = any(one.licence for one in facts.cohorts)
    return Filled("; ".join(texts) if recorded else "", "release.json cohorts.licence")


def tool(facts: ReleaseFacts) -> Filled:
    """Return the version of ranloop."""
    return Filled(f"ranloop {told(facts.tool.ranloop)}", "release.json tool")


def limits(facts: ReleaseFacts) -> Filled:
    """Return which labels did not pass, and whether a holdout is missing."""
    texts = ["DEVELOPMENT DATA ONLY"] if facts.development_only else []
    for one in facts.evaluations:
        open_labels = len(list(objections(one)))
        if open_labels:
            number = counted(open_labels, "label")
            texts.append(f"{number} without a pass on {told(one.cohort)}")
    return Filled("; ".join(texts), "release.json evaluations.labels.gate")


FILLED: Mapping[str, Callable[[ReleaseFacts], Filled]] = {
    one.__name__: one
    for one in (
        against, ceiling, choice, claim, comparison, compute, dates, development,
        excluded, flow, labels, licences, limits, lineage, model, openings,
        performance, positives, protocol, readers, registration, separation,
        settings, sources, structure, tool, updating, wording,
    )
}  # fmt: skip
"""What an item of a checklist may name."""

"""What the page Versions shows: lineage, tables, what waits, and the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.errors import DataError, LoopError
from loop.core.ledger import LedgerEntry
from loop.core.people.users import Right
from loop.evaluate.history_figures import lineage_svg, version_chart
from loop.evaluate.protocol import protocol_digest
from loop.evaluate.recording import with_intervals
from loop.evaluate.score_history import (
    LedgerState,
    VersionScore,
    ledger_state,
    lineage_graph,
    main_scores,
    score_history,
)
from loop.evaluate.tried import WordingStatus
from loop.prompts.diff import COUNTED
from loop.prompts.history import VersionHistory, read_history
from loop.review.blame import group_origins, name_origin, origin_age
from loop.review.prompt_page import ChangedLine, PromptPage, read_prompt_page
from loop.review.revise.draft import DraftCheckStatus, DraftInfo, list_open_drafts
from loop.ui.context import AppContext
from loop.ui.html import notice, show
from loop.ui.pages.versions.state import find_unscored
from loop.ui.wiring import Visit

_CHECKED = {
    DraftCheckStatus.PASSED: "check passed",
    DraftCheckStatus.OBJECTIONS: "check has objections",
    DraftCheckStatus.STALE: "check out of date",
    DraftCheckStatus.NEVER: "not checked",
}

ON_A_PAGE = 50

EVERY = ""
"""Value of the choice that leaves no action out."""


class VersionsOutputs(NamedTuple):
    """What each component of this name in `VersionsComponents` shows."""

    tables: Any
    before: Any
    after: Any
    difference: Any
    reading: Any
    prompt_page: Any
    aliasing: Any
    version: Any
    action: Any
    subject: Any
    ledger: Any
    seen: Any
    stale: Any
    unscored: Any


class ComparisonOutputs(NamedTuple):
    """What a comparison of two versions shows."""

    before: Any
    after: Any
    difference: Any


class PromptPageOutputs(NamedTuple):
    """What the page of one version shows."""

    reading: Any
    """Which version it is."""

    prompt_page: Any


class VersionRow(NamedTuple):
    """One committed version in the table."""

    history: VersionHistory
    score: VersionScore | None
    others: tuple[VersionScore, ...]
    """Its scores by another engine, policy or reference."""

    role: str
    """Role in which it was committed; empty when nobody recorded it."""

    verdicts: tuple[str, ...]
    changes: str
    """Against the version before, in words."""

    marking: tuple[LedgerEntry, ...]


class DraftRow(NamedTuple):
    """One draft in the table below."""

    ref: str
    when: str
    who: str
    why: str
    parent: str
    state: str
    objections: tuple[str, ...]
    macro_f1: float | None
    measured: str
    """How: engine, policy for uncertain answers, reference."""

    problem: str


def render_versions(context: AppContext, prompt: str, cohort: str) -> str:
    """Return lineage, chart and tables of a prompt, with scores on a cohort.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    scores = score_history(context.workspace, prompt, cohort)
    scored = context.cache.get(
        ("intervals", scores, protocol_digest(context.workspace)),
        lambda: with_intervals(context.workspace, context.store, scores),
    )
    shown = tuple(main_scores(scored).values())
    by_number = {one.number: one for one in shown if one.number}
    rows = [
        _row(
            one,
            by_number.get(one.number),
            [score for score in scored if score.number == one.number],
        )
        for one in reversed(read_history(context.workspace, prompt))
    ]
    waiting = list_open_drafts(context.workspace, context.store, prompt)
    return show(
        "versions.html.jinja",
        prompt=prompt,
        cohort=cohort,
        lineage=lineage_svg(lineage_graph(context.workspace, prompt)),
        chart=version_chart(scored),
        score_count=sum(bool(one.run) for one in scored),
        ran=_waiting(context, scores, cohort),
        rows=rows,
        drafts=_draft_rows(shown, waiting),
    )


def _waiting(
    context: AppContext, scores: Sequence[VersionScore], cohort: str
) -> set[str]:
    """Return the digests of the versions whose run waits for an evaluation."""
    try:
        found = find_unscored(context, scores, cohort) if cohort else ()
    except DataError:
        # The cohort is not as recorded; the versions and the ledger are shown still.
        return set()
    return {one.score.digest for one in found}


def _row(
    history: VersionHistory,
    score: VersionScore | None,
    every: Sequence[VersionScore],
) -> VersionRow:
    made = [one for one in history.events if one.action == "draft_committed"]
    return VersionRow(
        history=history,
        score=score,
        others=tuple(one for one in every if one.run and one is not score),
        role=made[-1].role if made else "",
        verdicts=history.version.verdicts if history.version else (),
        changes=_in_words(history.changes),
        marking=history.marking,
    )


def _in_words(changes: Mapping[str, int]) -> str:
    """Return ``+12 terms, -1 exclusion``."""
    words = []
    for key, number in changes.items():
        plural = "s" if number != 1 and key[1:] in COUNTED else ""
        sign = "\N{MINUS SIGN}" if key[0] == "-" else key[0]
        words.append(f"{sign}{number} {key[1:].replace('_', ' ')}{plural}")
    return ", ".join(words)


def _draft_rows(
    scores: Sequence[VersionScore], waiting: Sequence[DraftInfo]
) -> list[DraftRow]:
    """Return every draft once, newest first: those that wait, and those recorded."""
    refs = {one.digest: one.ref for one in scores if one.number}
    infos = {info.ref: info for info in waiting}
    rows = [
        _draft(one, refs.get(one.parent or "", ""), infos.pop(one.ref, None))
        for one in scores
        if not one.number
    ]
    rows += [_unscored(info) for info in infos.values()]
    return sorted(rows, key=lambda row: row.when, reverse=True)


def _draft(score: VersionScore, parent: str, info: DraftInfo | None) -> DraftRow:
    rejected = score.status is WordingStatus.REJECTED
    return DraftRow(
        ref=score.ref,
        when=score.when,
        who=score.who,
        why=score.why,
        parent=parent,
        state="rejected" if rejected else _state(info),
        objections=score.objections,
        macro_f1=score.macro_f1,
        measured=score.measured,
        problem=info.problem if info else "",
    )


def _unscored(info: DraftInfo) -> DraftRow:
    return DraftRow(
        ref=info.ref,
        when=info.when,
        who=info.author,
        why=info.why,
        parent=info.parent_ref,
        state=_state(info),
        objections=(),
        macro_f1=None,
        measured="",
        problem=info.problem,
    )


def _state(info: DraftInfo | None) -> str:
    if info is None:
        return "gone"
    if info.problem:
        return "damaged"
    behind = ", a newer version was committed since" if info.behind else ""
    return f"waits, {_CHECKED[info.checked]}{behind}"


def render_prompt_page(context: AppContext, ref: str, *, arrived: bool = False) -> str:
    """Return a version as a model reads it, and who each of its lines is from.

    Parameters
    ----------
    arrived
        Whether it is to be brought into view.
    """
    try:
        page = read_prompt_page(context.workspace, ref, context.store)
    except LoopError as error:
        return notice(str(error), kind="error", title=f"{ref} cannot be read")
    return show(
        "prompt_page.html.jinja",
        page=page,
        groups=group_origins(page.lines),
        margin=_Margin(page).told,
        arrived=arrived,
    )


class _Margin:
    """The margin of a prompt's lines: from which versions they are."""

    def __init__(self, page: PromptPage) -> None:
        self._origins = {one.line: one for one in page.lines}
        self._last: tuple[str, str] = "", ""

    def told(self, line: ChangedLine, first: bool) -> tuple[str, str]:
        """Return versions, and people with verdicts; empty where the last line's.

        At the first line of a message they are said again.
        """
        if first:
            self._last = "", ""
        if line.sign == "-" or not line.sources:
            return "", ""
        found = [self._origins[one] for one in line.sources if one in self._origins]
        found.sort(key=origin_age)
        tags = dict.fromkeys(one.version.tag for one in found)
        people = dict.fromkeys(name_origin(one) for one in found)
        said = " ".join(tags).replace("v0", "draft"), "\n".join(people)
        told = said if said != self._last else ("", "")
        self._last = said
        return told


def render_unscored(
    visit: Visit, prompt: str | None, cohort: str | None, said: str = ""
) -> str:
    """Return which versions wait for an evaluation, each with its button."""
    if not prompt or not cohort:
        return ""
    context = visit.context
    try:
        waiting = find_unscored(
            context, score_history(context.workspace, prompt, cohort), cohort
        )
    except DataError:
        waiting = ()
    return show(
        "versions_unscored.html.jinja",
        waiting=waiting,
        cohort=cohort,
        may=visit.user.may(Right.REVISE),
        said=said,
    )


class LedgerQuery(NamedTuple):
    """What of the ledger is looked at."""

    action: str = EVERY
    subject: str = ""
    """Part of the subject, in any case."""

    page: int = 1
    """From 1, the newest; another number means the nearest page."""


class LedgerPage(NamedTuple):
    """One page of entries."""

    entries: Sequence[tuple[LedgerEntry, str]]
    """Each with its payload as JSON."""

    found: int
    number: int
    pages: int


def render_ledger(context: AppContext, query: LedgerQuery) -> str:
    """Return the state of the chain and a page of entries, newest first.

    A broken ledger is shown as far as its chain holds.
    """
    state = ledger_state(context.workspace)
    return show("ledger.html.jinja", state=state, page=turn_to(state.entries, query))


def turn_to(entries: Sequence[LedgerEntry], query: LedgerQuery) -> LedgerPage:
    """Return the page that `query` asks for."""
    part = query.subject.strip().casefold()
    found = [
        entry
        for entry in reversed(entries)
        if query.action in (EVERY, entry.action) and part in entry.subject.casefold()
    ]
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    number = min(max(query.page, 1), pages)
    shown = found[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    return LedgerPage(
        entries=[(entry, _payload(entry)) for entry in shown],
        found=len(found),
        number=number,
        pages=pages,
    )


def action_choices(state: LedgerState) -> list[tuple[str, str]]:
    """Return the actions there are, as choices, with how often each happened."""
    return [
        (f"every action ({len(state.entries)})", EVERY),
        *(
            (f"{action.replace('_', ' ')} ({number})", action)
            for action, number in sorted(state.counts.items())
        ),
    ]


def _payload(entry: LedgerEntry) -> str:
    return json.dumps(dict(entry.payload), ensure_ascii=False, indent=1)

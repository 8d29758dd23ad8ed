"""What the page Versions shows, as records and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry
from loop.evaluate.history import (
    VersionScore,
    lineage_graph,
    main_scores,
    score_history,
)
from loop.evaluate.history_figures import lineage_svg, version_chart
from loop.evaluate.protocol import protocol_digest
from loop.evaluate.recording import with_intervals
from loop.evaluate.tried import WordingStatus
from loop.prompts.history import VersionHistory, read_history
from loop.review.revise.draft import DraftCheckStatus, DraftInfo, list_open_drafts
from loop.ui.desk import Desk
from loop.ui.pages.versions.scoring import find_unscored
from loop.ui.show import show

_PLURAL = {"term", "exclusion", "clarification", "exemplar"}
_CHECKED = {
    DraftCheckStatus.PASSED: "check passed",
    DraftCheckStatus.OBJECTIONS: "check has objections",
    DraftCheckStatus.STALE: "check out of date",
    DraftCheckStatus.NEVER: "not checked",
}


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


def render_versions(desk: Desk, prompt: str, cohort: str) -> str:
    """Return lineage, chart and tables of a prompt, with scores on a cohort.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken.
    """
    scores = score_history(desk.workspace, prompt, cohort)
    scored = desk.memo.get(
        ("intervals", scores, protocol_digest(desk.workspace)),
        lambda: with_intervals(desk.workspace, desk.store, scores),
    )
    shown = tuple(main_scores(scored).values())
    by_number = {one.number: one for one in shown if one.number}
    rows = [
        _row(
            one,
            by_number.get(one.number),
            [score for score in scored if score.number == one.number],
        )
        for one in reversed(read_history(desk.workspace, prompt))
    ]
    waiting = list_open_drafts(desk.workspace, desk.store, prompt)
    return show(
        "versions.html.jinja",
        prompt=prompt,
        cohort=cohort,
        lineage=lineage_svg(lineage_graph(desk.workspace, prompt)),
        chart=version_chart(scored),
        score_count=sum(bool(one.run) for one in scored),
        ran=_waiting(desk, scores, cohort),
        rows=rows,
        drafts=_draft_rows(shown, waiting),
    )


def _waiting(desk: Desk, scores: Sequence[VersionScore], cohort: str) -> set[str]:
    """Return the digests of the versions whose run waits for an evaluation."""
    try:
        found = find_unscored(desk, scores, cohort) if cohort else ()
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
        plural = "s" if number != 1 and key[1:] in _PLURAL else ""
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

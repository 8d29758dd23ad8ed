"""The verb ``history``: who made which version of a prompt, why, and how it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    note,
    open_workspace,
    own_output,
    print_json,
    say,
)
from loop.core.files import write_atomic
from loop.core.ledger import LedgerEntry
from loop.evaluate.score_history import VersionScore, history_table, read_scores
from loop.evaluate.tried import WordingStatus
from loop.prompts.history import VersionHistory, read_history

_WORDS = {
    "term": ("term", "terms"),
    "exclusion": ("exclusion", "exclusions"),
    "clarification": ("rule", "rules"),
    "exemplar": ("exemplar", "exemplars"),
    "implies": ("implied label", "implied labels"),
    "general rule": ("general rule", "general rules"),
    "instruction line": ("instruction line", "instruction lines"),
}
"""Kind of change to what one and several of it are called."""

_NOT_COMPARABLE = (
    "* not comparable with the newest score on that cohort: other cases, reference, "
    "engine or policy"
)


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("history")(history)


def history(
    name: Annotated[str, typer.Argument(help="Prompt name, e.g. extractor.")],
    events: Annotated[
        bool, typer.Option("--events", help="Also list every ledger entry.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="Write one row per version or draft and score as CSV."
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the versions of a prompt, their reasons and scores.

    Shows who made each one, how many labels passed and how many drafts were tried. A
    score stands on a line for each engine, policy for uncertain answers and reference
    that it was measured with, and none takes another's place.
    """
    place, prompt = open_workspace(workspace), name.partition("@")[0]
    if csv is not None:
        own_output(csv, place)
    with ProgressBar(f"history {prompt}", quiet=as_json).shown():
        rows = read_history(place, prompt)
        scores = read_scores(place, prompt)
        if csv is not None:
            write_atomic(csv, history_table(scores))
            note(f"wrote {csv}")
    if as_json:
        versions = [_data(row, scores) for row in rows]
        print_json({"prompt": name, "versions": versions})
        return
    for row in rows:
        for line in _describe(row, scores, every=events):
            say(line)
    if any(not one.comparable for row in rows for one in _own(row, scores)):
        say(f"\n{_NOT_COMPARABLE}")


def _describe(
    row: VersionHistory, scores: Sequence[VersionScore], *, every: bool
) -> list[str]:
    """Return the lines of one version, newest facts last."""
    aliases = "".join(f" ({alias})" for alias in row.aliases)
    lines = [f"v{row.number}{aliases}"]
    version = row.version
    if version:
        when = version.time[:16].replace("T", " ")
        lines[0] += f"  {version.digest[:12]}  {when}  {version.author}"
        lines.append(f"    {version.why}")
    if row.changes:
        lines.append(f"    {_changes(row.changes)}")
    told = (f"    macro-F1: {_score(one)}" for one in _own(row, scores))
    lines += dict.fromkeys(told)
    judged = (one for one in row.events if one.action == "judge_evaluated")
    lines += dict.fromkeys(f"    {_judge(one.payload)}" for one in judged)
    if drafts := _drafts(row, scores):
        lines.append(f"    {_tried(drafts)}")
    if row.problem:
        lines.append(f"    ! {row.problem}")
    shown = row.events if every else row.marking
    why = version.why if version else ""
    return [*lines, *(f"    {_event(event, why)}" for event in shown)]


def _changes(changes: Mapping[str, int]) -> str:
    """Return ``+12 terms -1 rule``."""
    words = []
    for key, count in changes.items():
        one, several = _WORDS.get(key[1:], (key[1:], key[1:]))
        words.append(f"{key[0]}{count} {one if count == 1 else several}")
    return " ".join(words)


def _own(row: VersionHistory, scores: Sequence[VersionScore]) -> list[VersionScore]:
    return [one for one in scores if one.number == row.number and one.run]


def _score(one: VersionScore) -> str:
    """Return a score on one line with everything that it depends on."""
    f1 = "not estimable" if one.macro_f1 is None else f"{one.macro_f1:.4f}"
    details = [one.measured]
    if one.labels_passed is not None:
        details.append(f"{one.labels_passed} of {one.labels} labels pass")
    mark = "" if one.comparable else "*"
    return f"{one.cohort} {f1}{mark} ({'; '.join(details)})"


def _judge(payload: Mapping[str, Any]) -> str:
    """Return what a judge's run was worth, on one line with what it depends on."""
    tau = f"{payload['best']} {payload['tau_b']}" if payload["tau_b"] else "no ratings"
    gate = f"; gate {payload['verdict']}" if payload["verdict"] else ""
    return (
        f"tau-b with readers: {payload['cohort']} {tau} ({payload['engine']}; "
        f"{payload['ratings']}{gate})"
    )


def _drafts(row: VersionHistory, scores: Sequence[VersionScore]) -> list[VersionScore]:
    """Return the drafts revised from a version, each once."""
    digests = {one.digest for one in scores if one.number == row.number}
    drafts = {
        one.ref: one for one in scores if not one.number and one.parent in digests
    }
    return list(drafts.values())


def _tried(drafts: Sequence[VersionScore]) -> str:
    """Return ``drafts tried: 3 (1 draft, 2 rejected)``."""
    counts = Counter(one.status for one in drafts)
    told = ", ".join(f"{counts[one]} {one}" for one in WordingStatus if counts[one])
    return f"drafts tried: {len(drafts)} ({told})"


def _event(event: LedgerEntry, why: str) -> str:
    """Return an entry on one line; a reason that is the version's is not repeated."""
    reason = "for the same reason" if event.reason == why else event.reason
    return f"#{event.seq} {event.time} {event.action} by {event.actor}: {reason}"


def _data(row: VersionHistory, scores: Sequence[VersionScore]) -> dict[str, Any]:
    version = row.version
    return {
        "number": row.number,
        "problem": row.problem,
        "digest": version.digest if version else None,
        "parent": version.parent if version else None,
        "time": version.time if version else None,
        "author": version.author if version else None,
        "why": version.why if version else None,
        "verdicts": list(version.verdicts) if version else [],
        "changes": dict(row.changes),
        "aliases": list(row.aliases),
        "scores": [_score_data(one) for one in _own(row, scores)],
        "drafts": [
            {"draft": one.ref, "status": one.status.value, "why": one.why}
            for one in _drafts(row, scores)
        ],
        "events": [
            {
                "seq": event.seq,
                "time": event.time,
                "action": event.action,
                "actor": event.actor,
                "reason": event.reason,
                "payload": dict(event.payload),
            }
            for event in row.events
        ],
    }


def _score_data(one: VersionScore) -> dict[str, Any]:
    return {
        "cohort": one.cohort,
        "reference": one.reference,
        "engine": one.engine,
        "uncertain_answers": one.policy.value,
        "signature": one.signature,
        "run": one.run,
        "macro_f1": one.macro_f1,
        "labels_passed": one.labels_passed,
        "labels_failed": one.labels_failed,
        "labels_insufficient": one.labels_insufficient,
        "comparable": one.comparable,
    }

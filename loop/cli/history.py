"""The verb ``history``: who made which version of a prompt, why, and how it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    WorkspaceOption,
    open_workspace,
    print_json,
    say,
)

if TYPE_CHECKING:
    from loop.core.ledger import Entry
    from loop.prompts.history import VersionHistory

_WORDS = {
    "term": ("term", "terms"),
    "exclusion": ("exclusion", "exclusions"),
    "clarification": ("rule", "rules"),
    "exemplar": ("exemplar", "exemplars"),
    "implies": ("implied label", "implied labels"),
}
"""Kind of change to what one and several of it are called."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("history")(history)


def history(
    name: Annotated[str, typer.Argument(help="Prompt name, e.g. extractor.")],
    events: Annotated[
        bool, typer.Option("--events", help="Also list every ledger entry.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the versions of a prompt with their ledger entries."""
    from loop.prompts.history import read_history

    rows = read_history(open_workspace(workspace), name.partition("@")[0])
    if as_json:
        print_json({"prompt": name, "versions": [_data(row) for row in rows]})
        return
    for row in rows:
        for line in _describe(row, every=events):
            say(line)


def _describe(row: VersionHistory, *, every: bool) -> list[str]:
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
    if scores := _scores(row.events):
        lines.append(f"    macro-F1: {scores}")
    if row.problem:
        lines.append(f"    ! {row.problem}")
    shown = (e for e in row.events if every or e.action == "override")
    return [*lines, *(f"    {_event(event)}" for event in shown)]


def _changes(changes: Mapping[str, int]) -> str:
    """Return ``+12 terms -1 rule``."""
    words = []
    for key, count in changes.items():
        one, several = _WORDS.get(key[1:], (key[1:], key[1:]))
        words.append(f"{key[0]}{count} {one if count == 1 else several}")
    return " ".join(words)


def _scores(events: Sequence[Entry]) -> str:
    """Return the newest macro-F1 on each cohort, as the ledger has it."""
    newest = {
        str(event.payload.get("cohort")): str(event.payload.get("macro_f1"))
        for event in events
        if event.action == "evaluated"
    }
    return ", ".join(f"{cohort} {score}" for cohort, score in newest.items())


def _event(event: Entry) -> str:
    return f"#{event.seq} {event.time} {event.action} by {event.actor}: {event.reason}"


def _data(row: VersionHistory) -> dict[str, Any]:
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

"""A draft, its check and its conflicts, as lines for people and as JSON data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from loop.cli.check import check_data, show_check, show_copies, show_lint
from loop.cli.console import print_json, say

if TYPE_CHECKING:
    from loop.review.revise.changed import CaseChange, Changes
    from loop.review.revise.checked import Checked
    from loop.review.revise.drafted import Drafted
    from loop.review.revise.drafts import DraftInfo
    from loop.review.revise.merge import Conflict
    from loop.review.revise.shown import Shown

_MOST = 20
"""Cases of one kind that are listed on a terminal; the others are counted."""


def print_drafted(made: Drafted, *, as_json: bool) -> None:
    """Print a draft for people, or as the one JSON object."""
    if as_json:
        print_json(drafted_data(made))
    else:
        say_drafted(made)


def say_drafted(made: Drafted) -> None:
    """Print what a draft changes, what lint says and what it costs."""
    from loop.prompts.diff import format_diff

    say(f"{made.draft.ref}, made from {made.parent.ref}")
    for line in format_diff(made.diff):
        say(line)
    show_lint(made.lint)
    show_copies(made.copies)
    for text in made.notes:
        say(f"note: {text}")
    if made.behind:
        say(f"another version was committed: ranloop draft rebase {made.draft.ref}")
    if made.tokens:
        before, after, _, remark = made.tokens
        say(f"tokens before the case: {before} -> {after} ({remark})")


def say_checked(checked: Checked) -> None:
    """Print a check: lint, the labels, the cases, and what stands against it."""
    show_lint(checked.lint)
    if checked.check:
        show_check(checked.check)
        _say_changes(checked.changes)
    for objection in checked.objections:
        say(f"  - {objection}")
    if checked.passed:
        say(
            f"nothing stands against it: ranloop draft commit {checked.draft} --why ..."
        )


def _say_changes(changes: Changes) -> None:
    for name, found in (("fixed", changes.fixed), ("broken", changes.broken)):
        say(f"{name}: {len(found)}")
        for one in found[:_MOST]:
            say(f"  {one.case_id} {one.label}: {one.before} -> {one.after}")
        if len(found) > _MOST:
            say(f"  and {len(found) - _MOST} more; see --json")
    say(f"still wrong: {len(changes.unchanged)}, still right: {changes.kept}")


def say_conflicts(conflicts: Iterable[Conflict]) -> None:
    """Print what somebody has to decide, and how."""
    found = tuple(conflicts)
    for one in found:
        say(f"conflict {one.id}: {' '.join(filter(None, one[1:4]))}")
        say(f"  ours:   {one.ours or '(taken out)'}")
        say(f"  theirs: {one.theirs or '(taken out)'}")
    if found:
        say("nothing was written; decide each with --resolve CONFLICT=ours or =theirs")


def say_prompt(shown: Shown) -> None:
    """Print the messages of every call."""
    for call in shown.calls:
        say(f"# call {call.name}: {call.tokens} tokens ({shown.remark})")
        for message in call.messages:
            say(f"## {message.role}")
            say(message.content)


def drafted_data(made: Drafted) -> dict[str, Any]:
    """Return a draft as JSON data."""
    from loop.prompts.diff import diff_data

    return {
        "draft": made.draft.ref,
        "parent": made.parent.ref,
        "behind": made.behind,
        "sound": made.sound,
        "verdicts": list(made.draft.verdicts),
        "why": made.draft.why,
        "diff": diff_data(made.diff),
        "lint": [found._asdict() for found in made.lint],
        "copies": [copy._asdict() for copy in made.copies],
        "not_searched_for_copies": [name for name, _ in made.skipped],
        "notes": list(made.notes),
        "tokens": made.tokens._asdict() if made.tokens else None,
    }


def checked_data(checked: Checked) -> dict[str, Any]:
    """Return a check and what it rests on as JSON data."""
    from dataclasses import asdict

    return {
        "draft": checked.draft,
        "parent": checked.parent,
        "passed": checked.passed,
        "objections": list(checked.objections),
        "engine": checked.engine,
        "ground": asdict(checked.ground),
        "lint": [found._asdict() for found in checked.lint],
        "check": check_data(checked.check) if checked.check else None,
        "changes": _changes_data(checked.changes),
        "runs": list(checked.runs),
        "by": checked.by,
        "time": checked.time,
    }


def _changes_data(changes: Changes) -> dict[str, Any]:
    return {
        "fixed": _rows(changes.fixed),
        "broken": _rows(changes.broken),
        "unchanged": _rows(changes.unchanged),
        "unjudged": _rows(changes.unjudged),
        "kept": changes.kept,
        "unanswered": changes.unanswered,
    }


def _rows(found: Iterable[CaseChange]) -> list[dict[str, str]]:
    return [one._asdict() for one in found]


def info_data(info: DraftInfo) -> dict[str, Any]:
    """Return one line of the list of drafts as JSON data."""
    from dataclasses import asdict

    return asdict(info)


def shown_data(shown: Shown) -> dict[str, Any]:
    """Return a rendered prompt as JSON data."""
    return {
        "prompt": shown.ref,
        "tokens": shown.tokens,
        "exact": shown.exact,
        "remark": shown.remark,
        "calls": [
            {
                "name": call.name,
                "tokens": call.tokens,
                "messages": [message._asdict() for message in call.messages],
            }
            for call in shown.calls
        ],
    }

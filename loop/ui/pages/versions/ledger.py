"""The ledger as the page Versions shows it: its chain first, then what was done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from loop.core.ledger import LedgerEntry
from loop.evaluate.history import LedgerState, ledger_state
from loop.ui.context import AppContext
from loop.ui.html import show

ON_A_PAGE = 50
EVERY = ""
"""Value of the choice that leaves no action out."""


class Look(NamedTuple):
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


def render_ledger(context: AppContext, look: Look) -> str:
    """Return the state of the chain and a page of entries, newest first.

    A broken ledger is shown as far as its chain holds.
    """
    state = ledger_state(context.workspace)
    return show("ledger.html.jinja", state=state, page=turn_to(state.entries, look))


def turn_to(entries: Sequence[LedgerEntry], look: Look) -> LedgerPage:
    """Return the page that `look` asks for."""
    part = look.subject.strip().casefold()
    found = [
        entry
        for entry in reversed(entries)
        if look.action in (EVERY, entry.action) and part in entry.subject.casefold()
    ]
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    number = min(max(look.page, 1), pages)
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

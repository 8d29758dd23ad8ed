"""The keys of the workbench: one table for the browser and for the cheat sheet."""

from __future__ import annotations

from typing import NamedTuple


class Shortcut(NamedTuple):
    """One key and what it does."""

    key: str
    """As the browser names it: ``"j"``, ``"Enter"``, ``"ctrl+Enter"``."""

    target: str
    """CSS selector of what is clicked, chosen or given the focus."""

    what: str
    """In words, for the cheat sheet."""

    group: str
    """Heading in the cheat sheet."""


SHORTCUTS: tuple[Shortcut, ...] = ()

"""Where a prompt's versions came from, and whether the ledger that says so holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loop.core.errors import LedgerError
from loop.core.ledger import GENESIS, LedgerEntry, entry_hash, read_ledger
from loop.core.paths import Workspace
from loop.evaluate.history import VersionScore, read_versions
from loop.evaluate.tried import WordingStatus
from loop.prompts.catalog import read_aliases


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One version or draft in the lineage of a prompt."""

    ref: str
    """For example ``"extractor@v3"``."""

    number: int
    """Version number; 0 for a draft."""

    status: WordingStatus
    when: str
    """UTC, ISO 8601 with seconds."""

    who: str
    why: str
    aliases: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """Short name: ``"v3"``, or ``"draft"``."""
        return f"v{self.number}" if self.number else "draft"


class Edge(NamedTuple):
    """One revision: from a version to what was made of it."""

    parent: str
    child: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """All versions and drafts of one prompt."""

    prompt: str
    nodes: tuple[Node, ...]
    """Versions in order, each followed by the drafts revised from it."""

    edges: tuple[Edge, ...]
    """One for every node whose parent is known; never from a later version."""


def lineage_graph(workspace: Workspace, prompt: str) -> Lineage:
    """Return who made what of which version of `prompt`.

    Raises
    ------
    DataError
        There is no such prompt.
    LedgerError
        The ledger is broken; see `ledger_state`.
    """
    rows = read_versions(workspace, prompt)
    tags: dict[str, list[str]] = {}
    for alias, tag in read_aliases(workspace, prompt).items():
        tags.setdefault(tag, []).append(alias)
    nodes = tuple(
        Node(
            ref=row.ref,
            number=row.number,
            status=row.status,
            when=row.when,
            who=row.who,
            why=row.why,
            aliases=tuple(tags.get(f"v{row.number}", ())),
        )
        for row in rows
    )
    edges = (_edge(row, rows) for row in rows)
    return Lineage(
        prompt=prompt, nodes=nodes, edges=tuple(edge for edge in edges if edge)
    )


def _edge(row: VersionScore, rows: Sequence[VersionScore]) -> Edge | None:
    """Return the edge to `row`; the nearest version where two have the same wording."""
    parents = [
        one
        for one in rows
        if one.number
        and one.digest == row.parent
        and (not row.number or one.number < row.number)
    ]
    return Edge(parents[-1].ref, row.ref) if parents else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The ledger as it stands, broken or not."""

    entries: tuple[LedgerEntry, ...]
    """All entries, or those before the break."""

    intact: bool
    problem: str
    """What is wrong, where, and what to do; empty when the chain holds."""

    head: str
    """Hash of the last entry; 64 zeros for an empty ledger."""

    counts: Mapping[str, int]
    """Action to number of entries, in order of first appearance."""


def ledger_state(workspace: Workspace) -> LedgerState:
    """Return what the ledger holds and whether its chain is whole; never raises for it.

    A chain that holds does not show that its end was cut off: compare `head` with the
    one that a signed release names.
    """
    path = workspace.ledger
    problem = ""
    try:
        entries = read_ledger(path)
    except LedgerError as error:
        problem = str(error)
        entries = _before_the_break(workspace)
    return LedgerState(
        entries=entries,
        intact=not problem,
        problem=problem,
        head=entries[-1].hash if entries else GENESIS,
        counts=Counter(entry.action for entry in entries),
    )


def _before_the_break(workspace: Workspace) -> tuple[LedgerEntry, ...]:
    """Return the longest beginning of the ledger whose chain holds."""
    try:
        lines = workspace.ledger.read_bytes().splitlines()
    except OSError:
        return ()
    entries: list[LedgerEntry] = []
    head = GENESIS
    for line in lines:
        try:
            data = json.loads(line)
            entry = LedgerEntry(**data)
            expected = entry_hash(data)
        except (ValueError, TypeError):
            break
        if (entry.seq, entry.prev, entry.hash) != (len(entries) + 1, head, expected):
            break
        entries.append(entry)
        head = entry.hash
    return tuple(entries)

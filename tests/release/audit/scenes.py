"""A small workspace with a true history, and ways to falsify it."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from loop.core.digests import canonical_json
from loop.core.ledger import (
    GENESIS,
    Actor,
    Event,
    LedgerEntry,
    append_event,
    entry_hash,
    format_entry,
    read_ledger,
)
from loop.core.paths import WorkspacePaths
from loop.core.records import Guide
from loop.prompts.catalog import file_digests, write_version
from loop.prompts.history import move_alias
from loop.prompts.version import PromptVersion
from loop.release.audit.audit import audit_workspace

ACTOR = Actor(name="Dr A. Example", role="reviewer")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TERMS = ("effusion", "fluid", "costophrenic blunting")


def clock(minutes=0):
    """Return a clock that stands still."""
    return lambda: START + timedelta(minutes=minutes)


@dataclass(frozen=True)
class History:
    """A workspace whose prompt ``tiny`` has three versions and an alias."""

    workspace: WorkspacePaths

    @property
    def path(self):
        """Return the ledger's path."""
        return self.workspace.ledger

    def commit(self, number, *, actor=ACTOR):
        """Write version `number` and its entry."""
        parent = self.versions()[-1] if number > 1 else None
        made = write_version(self.workspace, version(number, parent))
        folder = self.workspace.prompts / "tiny" / made.tag
        payload = {"digest": made.digest, "parent": made.parent}
        payload |= {"files": file_digests(folder), "verdicts": ["a", "b"]}
        self.record("draft_committed", made.ref, payload, actor=actor, at=number)
        return made

    def record(self, action, subject, payload, *, actor=ACTOR, at=9, reason="why"):
        """Append an entry."""
        event = Event(action=action, subject=subject, reason=reason, payload=payload)
        return append_event(self.path, event, actor, now=clock(at))

    def versions(self):
        """Return the digests of the committed versions."""
        return [e.payload["digest"] for e in self.entries() if "files" in e.payload]

    def entries(self):
        """Return the entries of the whole ledger."""
        return list(read_ledger(self.path))

    def lines(self):
        """Return the lines of the ledger with their ends."""
        return self.path.read_bytes().splitlines(keepends=True)

    def write(self, lines):
        """Replace the ledger's lines."""
        self.path.write_bytes(b"".join(lines))

    def audit(self, **options):
        """Audit the workspace, a day later."""
        return audit_workspace(self.workspace, now=clock(24 * 60), **options)

    def broken(self, **options):
        """Return what is broken, as (check, what)."""
        found = self.audit(**options).findings
        return [(one.check, one.what) for one in found if one.severity == "broken"]


def make_history(folder):
    """Return a new workspace in `folder` with six entries."""
    workspace = WorkspacePaths(folder)
    for path in (workspace.prompts, workspace.labels):
        path.mkdir(parents=True)
    history = History(workspace)
    for number in (1, 2, 3):
        history.commit(number)
    for number in (1, 2, 3):
        ref = f"tiny@v{number}"
        move_alias(workspace, ref, "production", actor=ACTOR, reason="w", now=clock(9))
    return history


def version(number, parent):
    """Return version `number` of the prompt."""
    guide = Guide(
        label="pleural_effusion",
        name="Pleural Effusion",
        definition="Fluid in the pleural space.",
        terms=TERMS[:number],
    )
    return PromptVersion(
        name="tiny",
        number=number,
        system="Read.\n",
        user="{{ text }}\n",
        guides=(guide,),
        parent=parent,
        author=ACTOR.name,
        time="2026-01-05T09:00:00Z",
        why="a reason",
    )


def rehashed(entries, start):
    """Return lines in which the chain is made anew from entry `start` on."""
    out, prev = [], entries[start - 2].hash if start > 1 else GENESIS
    for seq, entry in enumerate(entries, 1):
        if seq >= start:
            plain = replace(entry, seq=seq, prev=prev)
            data = json.loads(canonical_json(asdict(plain)))
            entry = LedgerEntry(**data | {"hash": entry_hash(data)})
        prev = entry.hash
        out.append(format_entry(entry))
    return out


def entries_of(*told):
    """Return entries (action, subject, payload), numbered from 1, in no chain."""
    return tuple(
        LedgerEntry(
            seq=seq,
            time="2026-01-05T09:00:00Z",
            actor=ACTOR.name,
            role=ACTOR.role,
            action=action,
            subject=subject,
            reason="why",
            meaning="",
            payload=payload,
            prev="",
            hash=f"{seq}",
        )
        for seq, (action, subject, payload) in enumerate(told, 1)
    )

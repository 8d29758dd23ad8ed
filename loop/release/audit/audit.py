"""The whole audit of a workspace: every check, whatever the others found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loop.core.check_findings import Finding, FindingSeverity, note
from loop.core.clock import Clock, format_time, utc_now
from loop.core.ledger import GENESIS, LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.release.audit.chain import (
    Ledger,
    check_chain,
    check_entries,
    check_repairs,
    read_lines,
)
from loop.release.audit.cohorts import (
    check_basis,
    check_cohorts,
    check_protocol,
)
from loop.release.audit.ensembles import check_ensembles
from loop.release.audit.evaluations import check_evaluations, check_openings
from loop.release.audit.judge_evaluations import check_judge_evaluations
from loop.release.audit.known_heads import KnownHead, check_heads
from loop.release.audit.releases import check_given, check_releases, known_heads
from loop.release.audit.signatures import check_signatures
from loop.release.audit.versions import check_aliases, check_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAudit:
    """What a ledger says, and what of it holds."""

    ledger: Ledger
    findings: tuple[Finding, ...]
    """In order of the checks: the ledger itself first, then what it speaks of."""

    time: str
    """When it was made: UTC, ISO 8601 with seconds."""

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """What can be read of the ledger, in file order."""
        return self.ledger.entries

    @property
    def head(self) -> str:
        """``SEQ:HASH`` of the last entry, to be written down elsewhere."""
        last = self.ledger.last
        return f"{last.seq}:{last.hash}" if last else f"0:{GENESIS}"

    @property
    def holds(self) -> bool:
        """Whether nothing that was checked is broken."""
        return self.counts[FindingSeverity.BROKEN] == 0

    @property
    def signed(self) -> int:
        """How many entries carry a signature, whether it holds or not."""
        return sum(bool(entry.keyid) for entry in self.entries)

    @property
    def first_break(self) -> Finding | None:
        """The first broken link of the chain, if it is broken."""
        breaks = (
            one
            for one in self.findings
            if one.check == "chain" and one.severity is FindingSeverity.BROKEN
        )
        return next(breaks, None)

    @property
    def counts(self) -> Mapping[FindingSeverity, int]:
        """How many findings there are of each severity."""
        return {
            severity: sum(one.severity is severity for one in self.findings)
            for severity in FindingSeverity
        }


def audit_workspace(
    workspace: WorkspacePaths,
    *,
    releases: Sequence[Path] = (),
    heads: Sequence[KnownHead] = (),
    now: Clock = utc_now,
) -> LedgerAudit:
    """Return everything the ledger says, held against everything it speaks of.

    Nothing is recorded. Every check runs on what can be read, so that a broken chain
    hides nothing else. Findings name files from the workspace on.

    Parameters
    ----------
    releases
        Release folders from elsewhere, whose ledger heads must be in this ledger.
    heads
        Heads that were written down elsewhere.

    Raises
    ------
    DataError
        The ledger is there and cannot be read at all.
    """
    time = format_time(now())
    ledger = read_lines(workspace.ledger)
    entries, given = ledger.entries, tuple(releases)
    known = [*known_heads(workspace, given), *heads]
    findings = (
        *check_chain(ledger),
        *check_entries(ledger, time),
        *check_heads(workspace, entries, known),
        *check_signatures(workspace, entries),
        *check_protocol(workspace, entries),
        *check_basis(workspace, entries),
        *check_versions(workspace, entries),
        *check_aliases(workspace, entries),
        *check_cohorts(workspace, entries),
        *check_evaluations(workspace, entries),
        *check_judge_evaluations(workspace, entries),
        *check_ensembles(workspace, entries),
        *check_openings(workspace, entries),
        *check_given(given),
        *check_releases(workspace, entries),
        *check_repairs(ledger),
        *_exceptions(entries),
    )
    root = f"{workspace.root}/"
    told = tuple(_within(one, root) if root in repr(one) else one for one in findings)
    return LedgerAudit(ledger=ledger, findings=told, time=time)


def _within(finding: Finding, root: str) -> Finding:
    """Return a finding without the place of the workspace on this machine."""
    return replace(
        finding,
        what=finding.what.replace(root, ""),
        where=finding.where.replace(root, ""),
        todo=finding.todo.replace(root, ""),
    )


def _exceptions(entries: tuple[LedgerEntry, ...]) -> list[Finding]:
    """Return what was decided against objections: part of any history."""
    overrides = [
        f"{one.subject} in entry {one.seq}"
        for one in entries
        if one.action == "override"
    ]
    what = f"{len(overrides)} decided against objections: {', '.join(overrides)}"
    return [note("overrides", what)] if overrides else []

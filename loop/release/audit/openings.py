"""Openings of holdouts: counted against the budget, and before every score on one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from loop.core.digests import digest_bytes
from loop.core.ledger import LedgerEntry
from loop.core.paths import Workspace
from loop.labels.recorded import HOLDOUT, RETIRED
from loop.labels.sealing import list_openings
from loop.release.audit.findings import AuditFinding, broken, note, ok

_CHECK = "openings"


def check_openings(
    workspace: Workspace, entries: tuple[LedgerEntry, ...]
) -> list[AuditFinding]:
    """Return whether holdouts were scored only when opened, and within the budget."""
    return [*_count(entries), *_check_results(workspace, entries)]


def _count(entries: tuple[LedgerEntry, ...]) -> list[AuditFinding]:
    roles: dict[str, str] = {}
    opened: Counter[str] = Counter()
    budgets: dict[str, int] = {}
    found: list[AuditFinding] = []
    for at, entry in enumerate(entries, 1):
        if entry.action == "cohort_added":
            roles[entry.subject] = str(entry.payload.get("role"))
        elif entry.action == "holdout_retired":
            roles[entry.subject] = RETIRED
        elif entry.action == "holdout_opened":
            name = cohort_of(entry)
            opened[name] = _count_looks(entries[:at], entry)
            budgets[name] = _number(entry, "budget", budgets.get(name, 0))
            found += _check_opening(entry, opened[name], roles.get(name))
        elif entry.action in ("evaluated", "gate_decided"):
            found += _check_scored(entry, roles, opened)
    return [*found, *_account(roles, opened, budgets, bad=bool(found))]


def cohort_of(entry: LedgerEntry) -> str:
    """Return the cohort that an entry about a holdout is about."""
    return str(entry.payload.get("cohort", entry.subject))


def _count_looks(entries: tuple[LedgerEntry, ...], entry: LedgerEntry) -> int:
    """Count the openings so far of the same cases, under whatever name."""
    digest = str(entry.payload.get("cohort_digest"))
    return len(list_openings(entries, cohort_of(entry), digest))


def _number(entry: LedgerEntry, name: str, default: int) -> int:
    value = entry.payload.get(name, default)
    return value if type(value) is int else default


def _check_opening(
    entry: LedgerEntry, count: int, role: str | None
) -> Iterator[AuditFinding]:
    budget = _number(entry, "budget", count)
    number = _number(entry, "number", count)
    name = cohort_of(entry)
    if number != count:
        yield _broken(entry, f"says it is opening {number} of {name}; it is {count}")
    if count > budget:
        yield _broken(entry, f"is opening {count} of {name}, and {budget} are allowed")
    if role != HOLDOUT:
        yield _broken(entry, f"opens {name}, which was no holdout then")


def _check_scored(
    entry: LedgerEntry, roles: dict[str, str], opened: Counter[str]
) -> Iterator[AuditFinding]:
    name = str(entry.payload.get("cohort"))
    if roles.get(name) == HOLDOUT and not opened[name]:
        yield _broken(entry, f"scores holdout {name}, which was not opened before")


def _account(
    roles: dict[str, str], opened: Counter[str], budgets: dict[str, int], *, bad: bool
) -> Iterator[AuditFinding]:
    for name, count in opened.items():
        allowed = f" of {budgets[name]}" if budgets[name] else ""
        text = f"{name}: opened {count}{allowed} times"
        yield note(_CHECK, text) if bad else ok(_CHECK, text)
    for name, role in roles.items():
        if role == HOLDOUT and not opened[name]:
            yield ok(_CHECK, f"{name}: never opened")


def _check_results(
    workspace: Workspace, entries: tuple[LedgerEntry, ...]
) -> Iterator[AuditFinding]:
    """Yield whether what an opening showed is kept as it was recorded."""
    for entry in entries:
        recorded = entry.payload.get("result_digest")
        if entry.action != "holdout_sealed" or not recorded:
            continue
        key = Path(str(entry.payload.get("candidate"))).name
        path, name = workspace.private / "openings" / f"{key}.json", cohort_of(entry)
        try:
            found = digest_bytes(path.read_bytes())
        except OSError:
            yield note(
                _CHECK, f"{name}: the result of an opening is not on this machine"
            )
            continue
        if found == recorded:
            yield ok(_CHECK, f"{name}: the result of an opening is as recorded")
        else:
            yield _broken(entry, f"recorded another result than {path.name} holds")


def _broken(entry: LedgerEntry, what: str) -> AuditFinding:
    return broken(
        _CHECK,
        f"entry {entry.seq} {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="A claim on this holdout may not rest on unseen labels, or an entry "
        "is gone.",
        todo="Make the claim on a new holdout, and say why.",
        seq=entry.seq,
    )

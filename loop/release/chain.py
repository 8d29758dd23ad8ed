"""Whether the ledger a release ships is whole and holds what ``release.json`` says."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loop.core.digests import digest_bytes
from loop.core.entries import signed_bytes
from loop.core.errors import LedgerError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.signing import is_signed
from loop.labels.sealing import list_openings
from loop.release.finding import ReleaseCheck, judged
from loop.release.folder import LEDGER, PROMPT, shown, unpacked

if TYPE_CHECKING:
    from loop.release.keys import PublicKey

Facts = Mapping[str, Any]


def check_chain(
    files: Mapping[str, bytes], facts: Facts, trusted: Mapping[str, PublicKey]
) -> tuple[ReleaseCheck, ...]:
    """Return whether the chain is unbroken up to the head named, and what it holds.

    Entries that name a trusted key must carry its signature.
    """
    raw = files.get(LEDGER, b"")
    unsure = ReleaseCheck("history", False, "not checked: the ledger cannot be read")
    try:
        with unpacked(files, LEDGER) as folder:
            entries = _read(folder)
    except LedgerError as error:
        return ReleaseCheck("ledger", False, str(error)), unsure
    problems = []
    if not entries or not raw.endswith(b"\n"):
        problems.append("it is missing, empty or cut off")
    head, named = entries[-1] if entries else None, facts["ledger"]
    if head and (head.seq, head.hash) != (named["seq"], named["head"]):
        problems.append(
            f"it ends with entry {head.seq} ({head.hash[:12]}), the release names "
            f"entry {named['seq']} ({named['head'][:12]})"
        )
    problems.extend(_unsigned(entries, trusted))
    good = f"{len(entries)} entries, unbroken up to the head named"
    history = list(_history_problems(entries, facts, files))
    return (
        judged("ledger", problems, good),
        judged("history", history, "the ledger holds what release.json says of it"),
    )


def _read(folder: Path) -> tuple[LedgerEntry, ...]:
    """Read the ledger of an unpacked release; errors name it without the folder."""
    try:
        return read_ledger(folder / LEDGER)
    except LedgerError as error:
        raise LedgerError(str(error).replace(f"{folder}/", "")) from error


def _unsigned(
    entries: Sequence[LedgerEntry], trusted: Mapping[str, PublicKey]
) -> Iterator[str]:
    """Say which entries were not signed with the key they name."""
    for entry in entries:
        if entry.keyid in trusted:
            signature = base64.b64decode(entry.signature)
            public = trusted[entry.keyid].public
            if not is_signed(public, signed_bytes(entry.hash), signature):
                yield f"entry {entry.seq} was not signed with the key it names"


def _history_problems(
    entries: Sequence[LedgerEntry], facts: Facts, files: Mapping[str, bytes]
) -> Iterator[str]:
    yield from _protocol_problems(entries, facts["protocol"])
    yield from _commit_problems(entries, facts, files)
    yield from _evaluation_problems(entries, facts)
    yield from _opening_problems(entries, facts)
    older = facts["supersedes"]
    known = {
        entry.payload.get("statement_sha256")
        for entry in entries
        if entry.action == "frozen"
    }
    if older and older["statement_sha256"] not in known:
        yield "the release it supersedes is not in the ledger"


def _protocol_problems(
    entries: Sequence[LedgerEntry], protocol: Facts
) -> Iterator[str]:
    """Compare when and with what the protocol was registered."""
    first = next(
        (
            entry
            for entry in entries
            if entry.action == "protocol_set"
            and entry.payload.get("digest") == protocol["digest"]
        ),
        None,
    )
    if first is None:
        yield "the protocol is not registered in the ledger"
        return
    if first.time != protocol["registered"]:
        yield f"the protocol was registered at {first.time}, not when it is said to be"
    content = protocol["content"]
    for name in ("rule", "accuracy", "kappa"):
        if name in first.payload and first.payload[name] != str(content.get(name)):
            yield f"the protocol was registered with another {name}"


def _commit_problems(
    entries: Sequence[LedgerEntry], facts: Facts, files: Mapping[str, bytes]
) -> Iterator[str]:
    """Compare what was committed with what is released, and with the history told."""
    commits = {
        entry.subject: entry for entry in entries if entry.action == "draft_committed"
    }
    release = facts["release"]
    commit = commits.get(release["ref"])
    if commit is None or commit.payload.get("digest") != release["digest"]:
        yield f"{release['ref']} was not committed with this digest"
    recorded = commit.payload.get("files", {}) if commit else {}
    for name in PROMPT:
        raw = files.get(f"prompt/{name}", b"")
        if name in recorded and recorded[name] != digest_bytes(raw):
            yield f"prompt/{name} is not the file that was committed"
    for past in facts["history"]:
        entry = commits.get(past["ref"])
        if entry and entry.payload.get("digest") != past["digest"]:
            yield f"{shown(past['ref'])} was committed with another digest"


def _evaluation_problems(entries: Sequence[LedgerEntry], facts: Facts) -> Iterator[str]:
    """Compare each evaluation with the gate the ledger recorded for its run."""
    for one in facts["evaluations"]:
        gates = [
            entry.payload
            for entry in entries
            if entry.action == "gate_decided" and entry.payload.get("run") == one["run"]
        ]
        where = f"the evaluation on {shown(one['cohort'])}"
        if not gates:
            yield f"{where} is not in the ledger"
        elif not any(
            gate.get("counts_digest") == one["counts_digest"]
            and gate.get("verdict") == one["verdict"]
            for gate in gates
        ):
            yield f"{where} has other counts or another verdict in the ledger"


def _opening_problems(entries: Sequence[LedgerEntry], facts: Facts) -> Iterator[str]:
    """Compare the openings listed with those of the holdouts in the ledger."""
    recorded = [
        (entry.time, entry.actor, entry.reason)
        for cohort in facts["cohorts"]
        if cohort["role"] == "holdout"
        for entry in list_openings(tuple(entries), cohort["name"], cohort["digest"])
    ]
    listed = [(one["time"], one["actor"], one["why"]) for one in facts["openings"]]
    if recorded != listed:
        yield (
            f"the ledger holds {len(recorded)} openings of the holdout, "
            f"{len(listed)} are listed, or others"
        )

"""The holdout vault: opened once for each frozen candidate, within a budget.

The ledger has every opening before anything is decrypted. An opening ends when its
result is kept; from then on the same candidate gets that result, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.clock import Clock, utc_now
from loop.core.digests import canonical_json, digest_bytes, digest_json
from loop.core.errors import DataError, SealedError
from loop.core.files import locked, write_atomic
from loop.core.ledger import Actor, Event, LedgerEntry, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import find_registration, protocol_digest, read_protocol
from loop.labels.cohort import CohortRecord, CohortRole, read_cohort, read_record
from loop.labels.expert_ratings import expert_files
from loop.labels.holdout import label_files
from loop.labels.reference import reference_path
from loop.labels.sealing import (
    Opening,
    check_key,
    find_closing,
    list_openings,
    refuse_plain,
    require_opening,
)
from loop.prompts.catalog import read_version
from loop.release.separation import was_open


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """What a holdout is opened for: everything that its result depends on."""

    prompt: str
    """Reference of a committed version, for example ``"extractor@v7"``."""

    prompt_digest: str
    engine_digest: str
    """Digest of the engine and the parameters it is asked with."""

    protocol_digest: str
    cohort: str
    """Name of the holdout."""

    cohort_digest: str
    reference_digest: str
    """Digest of the newest reference version, as the ledger recorded it."""

    @property
    def key(self) -> str:
        """Sha256 over all of it but the name of the version, 64 hex characters.

        The same wording under another number is the same candidate.
        """
        return digest_json({k: v for k, v in asdict(self).items() if k != "prompt"})


class OpeningFacts(NamedTuple):
    """One opening as the ledger has it."""

    seq: int
    hash: str
    time: str
    """UTC, ISO 8601."""

    actor: str
    why: str
    candidate: str
    """Key of the candidate."""

    prompt: str
    """Version it was opened for."""

    number: int
    """Which opening of these cases it was, from 1."""

    budget: int
    """Openings that were allowed then."""

    result_digest: str
    """Sha256 of the result that ended it; empty while it is not over."""


def find_openings(workspace: WorkspacePaths, cohort: str) -> tuple[OpeningFacts, ...]:
    """Return every opening of `cohort`, or of the same cases under another name.

    Raises
    ------
    DataError
        The ledger has no entry of the cohort.
    LedgerError
        The ledger is broken.
    """
    digest = str(read_record(workspace, cohort).added.get("cohort_digest"))
    entries = read_ledger(workspace.ledger)
    return tuple(
        _facts(entry, entries) for entry in list_openings(entries, cohort, digest)
    )


def open_holdout(
    workspace: WorkspacePaths,
    candidate: Claimant,
    actor: Actor,
    why: str,
    *,
    seen: bool = False,
    now: Clock = utc_now,
) -> Opening:
    """Open a holdout for `candidate`, and return what lets its labels be read.

    The same candidate once more gets the opening that it had; nothing is added then.
    Nothing is decrypted here.

    Parameters
    ----------
    seen
        Whether cases that were measured on before may be opened all the same; see
        `loop.release.separation`.

    Raises
    ------
    SealedError
        The budget of the protocol is used up, or these cases were once open.
    DataError
        There is no reason, the candidate is not what stands in the workspace, its
        version is not committed, the protocol is not registered, or labels are not
        sealed or cannot be opened on this machine; nothing was recorded.
    WriteError
        The ledger cannot be written.
    """
    if not why.strip():
        raise DataError("opening a holdout needs a reason. Say why with --why.")
    with locked(_lock(workspace, candidate.cohort)):
        _require_candidate(workspace, candidate)
        known = find_openings(workspace, candidate.cohort)
        for facts in known:
            if facts.candidate == candidate.key:
                return _opening(candidate, facts.seq, facts.hash)
        _refuse_once_open(workspace, candidate, seen=seen)
        event = _opened(workspace, candidate, why.strip(), known)
        entry = append_event(workspace.ledger, event, actor, now=now)
    return _opening(candidate, entry.seq, entry.hash)


def keep_result(
    workspace: WorkspacePaths,
    opening: Opening,
    facts: Mapping[str, Any],
    actor: Actor | None = None,
    *,
    now: Clock = utc_now,
) -> None:
    """Keep what `opening` showed, and end it: the labels are closed again.

    The file is written first, and counts only once the ledger has its digest.

    Parameters
    ----------
    facts
        Aggregates, as JSON, and of a judge the rows of `loop.judge.rated_rows`; never
        a case.
    actor
        Who acts; None for whoever opened it.

    Raises
    ------
    SealedError
        The ledger does not hold the opening, or it is over.
    DataError
        There is no such cohort.
    WriteError
        The workspace cannot be written; the opening is not over.
    """
    with locked(_lock(workspace, opening.cohort)):
        record = read_record(workspace, opening.cohort)
        payload = require_opening(workspace, record, opening)
        raw = canonical_json(facts) + b"\n"
        entry = read_ledger(workspace.ledger)[opening.seq - 1]
        write_atomic(_result_path(workspace, opening.candidate), raw, mode=0o600)
        event = Event(
            action="holdout_sealed",
            subject=opening.cohort,
            reason=f"closed again: opening {opening.seq} has its result",
            payload={
                "cohort": opening.cohort,
                "cohort_digest": payload["cohort_digest"],
                "opening": opening.seq,
                "candidate": opening.candidate,
                "result_digest": digest_bytes(raw),
            },
        )
        who = actor or Actor(name=entry.actor, role=entry.role)
        append_event(workspace.ledger, event, who, now=now)


def read_result(
    workspace: WorkspacePaths, candidate: Claimant
) -> Mapping[str, Any] | None:
    """Return what the opening for `candidate` showed; None when none is over yet.

    Raises
    ------
    DataError
        The result is recorded, and its file is gone or was edited.
    LedgerError
        The ledger is broken.
    """
    for facts in find_openings(workspace, candidate.cohort):
        if facts.candidate == candidate.key and facts.result_digest:
            return _read_result(workspace, facts)
    return None


def _read_result(workspace: WorkspacePaths, facts: OpeningFacts) -> Mapping[str, Any]:
    path = _result_path(workspace, facts.candidate)
    try:
        raw = path.read_bytes()
    except OSError:
        raw = b""
    if digest_bytes(raw) != facts.result_digest:
        raise DataError(
            f"{path} is {'not as recorded' if raw else 'gone'}: the ledger has result "
            f"{facts.result_digest[:12]} of opening {facts.seq}. Restore it from a "
            "backup; a holdout is not opened twice for the same candidate."
        )
    result: Mapping[str, Any] = json.loads(raw)
    return result


def _require_candidate(workspace: WorkspacePaths, candidate: Claimant) -> None:
    """Refuse a candidate that is not what the workspace holds, or cannot be opened."""
    version = read_version(workspace, candidate.prompt)
    if version.draft:
        raise DataError(
            f"{candidate.prompt} is a draft, and a holdout opens for a committed "
            "version only. Commit it with `ranloop draft commit`."
        )
    cohort = read_cohort(workspace, candidate.cohort)
    if cohort.role is not CohortRole.HOLDOUT:
        raise DataError(
            f"cohort {cohort.name!r} has the role {cohort.role}: there is nothing to "
            "open. Name a holdout."
        )
    record = read_record(workspace, candidate.cohort)
    wanted = {
        "prompt": (version.digest, candidate.prompt_digest),
        "protocol": (protocol_digest(workspace), candidate.protocol_digest),
        "cohort": (cohort.digest, candidate.cohort_digest),
        "reference": (record.newest_digest, candidate.reference_digest),
    }
    for what, (found, named) in wanted.items():
        if found != named:
            raise DataError(
                f"the {what} is not the one of the candidate (digest "
                f"{(found or 'none')[:12]}, candidate {named[:12]}). Begin again with "
                "the workspace as it is now."
            )
    if find_registration(workspace, candidate.protocol_digest) is None:
        raise DataError(
            "the protocol is not in the ledger yet: what is claimed must be fixed "
            "before it is measured. Run `ranloop evaluate` on a development cohort."
        )
    for path in label_files(workspace, cohort.name):
        refuse_plain(path, sealed=True)
    check_key(workspace, _standard_path(workspace, record))


def _standard_path(workspace: WorkspacePaths, record: CohortRecord) -> Path:
    """Return a file of what the cases are held against: labels, or experts' ratings."""
    if record.references or not record.ratings:
        return reference_path(workspace, record.name, record.newest)
    newest = record.ratings[max(record.ratings)]
    return next(iter(expert_files(workspace, record.name, newest)))


def _opened(
    workspace: WorkspacePaths,
    candidate: Claimant,
    why: str,
    known: tuple[OpeningFacts, ...],
) -> Event:
    """Return the event of one more opening.

    A budget that stood when the holdout was opened before cannot be raised later.
    """
    allowed = read_protocol(workspace).holdout_openings
    budget = min([allowed, *(facts.budget for facts in known)])
    if len(known) >= budget:
        raise SealedError(
            f"holdout {candidate.cohort!r} was opened {len(known)} times, and {budget} "
            "are allowed. Retire it with `ranloop cohort retire "
            f"{candidate.cohort} --why REASON`, and make the claim on a new holdout "
            "with other cases and another name."
        )
    return Event(
        action="holdout_opened",
        subject=candidate.cohort,
        reason=why,
        payload={
            **asdict(candidate),
            "candidate": candidate.key,
            "number": len(known) + 1,
            "budget": budget,
        },
    )


def _refuse_once_open(
    workspace: WorkspacePaths, candidate: Claimant, *, seen: bool
) -> None:
    """Refuse cases that were open before; those only measured on, unless `seen`."""
    for entry in read_ledger(workspace.ledger):
        if not was_open(entry, candidate.cohort_digest):
            continue
        if seen and entry.payload.get("role") == CohortRole.EXTERNAL:
            continue
        raise SealedError(
            f"the cases of holdout {candidate.cohort!r} were open before: see entry "
            f"{entry.seq} of the ledger. Make the claim on a holdout with other cases."
        )


def _facts(entry: LedgerEntry, entries: tuple[LedgerEntry, ...]) -> OpeningFacts:
    closing = find_closing(entries, entry.seq)
    return OpeningFacts(
        seq=entry.seq,
        hash=entry.hash,
        time=entry.time,
        actor=entry.actor,
        why=entry.reason,
        candidate=str(entry.payload.get("candidate")),
        prompt=str(entry.payload.get("prompt")),
        number=int(entry.payload.get("number", 0)),
        budget=int(entry.payload.get("budget", 0)),
        result_digest=str(closing.payload.get("result_digest")) if closing else "",
    )


def _opening(candidate: Claimant, seq: int, hash_: str) -> Opening:
    return Opening(candidate.cohort, seq, hash_, candidate.key)


def _result_path(workspace: WorkspacePaths, key: str) -> Path:
    return workspace.open_private() / "openings" / f"{key}.json"


def _lock(workspace: WorkspacePaths, cohort: str) -> Path:
    return workspace.open_private() / "locks" / f"openings-{cohort}.lock"

"""Recorded evaluations of judges held against other entries, and counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.check_findings import Finding, broken, note, ok, warning
from loop.core.errors import LoopError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.judge.judge_evaluation import recount_rows
from loop.release.audit.evaluations import ScoredAnswers, check_answers
from loop.run.store import open_store

_CHECK = "evaluations"


def check_judge_evaluations(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether recorded evaluations of judges fit what else is recorded.

    Their rows of scores and points are recomputed where run and ratings are on this
    machine and open; how many could not be is said.
    """
    scored = [entry for entry in entries if entry.action == "judge_evaluated"]
    marked = sum(entry.action == "discrimination_measured" for entry in entries)
    if not scored and not marked:
        return []
    found = list(_check_entries(entries))
    if not found:
        kinds = [f"{len(scored)} evaluations of judges"] if scored else []
        kinds += [f"{marked} verdicts on marked pairs"] if marked else []
        what = f"{' and '.join(kinds)} fit what was recorded before them"
        found = [ok(_CHECK, what)]
    if not scored:
        return found
    if not workspace.store.is_file():
        what = f"no run of {len(scored)} evaluations of judges is on this machine"
        return [*found, note(_CHECK, f"{what}: not recounted")]
    answers = [
        ScoredAnswers(_runs(entry.payload), digest, entry.seq)
        for entry in scored
        if (digest := str(entry.payload.get("answers_digest") or ""))
    ]
    return [*found, *check_answers(workspace, answers), *_recount(workspace, scored)]


def _runs(payload: Mapping[str, Any]) -> tuple[str, ...]:
    runs = payload.get("runs")
    one = str(payload.get("run"))
    return tuple(map(str, runs)) if isinstance(runs, list) and runs else (one,)


def _check_entries(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    versions: dict[str, str] = {}
    protocols: set[str] = set()
    ratings: dict[str, set[str]] = {}
    for entry in entries:
        payload = entry.payload
        if entry.action == "draft_committed":
            versions[entry.subject] = str(payload.get("digest"))
        elif entry.action == "protocol_set":
            protocols.add(str(payload.get("digest")))
        elif entry.action == "ratings_added":
            known = ratings.setdefault(str(payload.get("cohort")), set())
            known.add(str(payload.get("digest")))
        elif entry.action == "holdout_retired":
            plain = payload.get("digests")
            opened = plain.values() if isinstance(plain, Mapping) else ()
            ratings.setdefault(entry.subject, set()).update(map(str, opened))
        elif entry.action in ("judge_evaluated", "discrimination_measured"):
            yield from _check_basis(entry, versions.get(entry.subject), protocols)
            if entry.action == "judge_evaluated":
                yield from _check_ratings(entry, ratings)


def _check_basis(
    entry: LedgerEntry, committed: str | None, protocols: set[str]
) -> Iterator[Finding]:
    """Yield which prompt or protocol of an evaluation was not recorded so."""
    payload, subject = entry.payload, entry.subject
    if committed not in (None, payload.get("prompt_digest")):
        yield _broken(entry, f"{subject} with another digest than its commit")
    if committed is None and "@v" in subject:
        yield _odd(entry, f"{subject}, which no entry before it committed")
    if str(payload.get("protocol")) not in protocols:
        yield _odd(entry, "under a protocol that was not registered before")


def _check_ratings(
    entry: LedgerEntry, ratings: Mapping[str, set[str]]
) -> Iterator[Finding]:
    """Yield whether the ratings of an evaluation were not recorded so."""
    payload = entry.payload
    known = ratings.get(str(payload.get("cohort")))
    if not known:
        yield _odd(entry, "against ratings that were not recorded before")
    elif str(payload.get("ratings_digest")) not in known:
        yield _broken(entry, "against other ratings than the recorded ones")


def _recount(workspace: WorkspacePaths, scored: list[LedgerEntry]) -> Iterator[Finding]:
    """Yield whether the rows of each evaluation are the recorded ones."""
    same, unsaid = 0, 0
    for entry in scored:
        recorded = entry.payload.get("rows_digest")
        if not recorded:
            unsaid += 1
            continue
        found = _rows(workspace, entry.payload)
        if found and recorded not in found:
            yield broken(
                _CHECK,
                f"run {entry.payload.get('run')} gives other rows than entry "
                f"{entry.seq} recorded",
                where=f"entry {entry.seq}",
                implies="Answers in the store, the ratings or the entry were changed.",
                todo="Run the judge again and evaluate it; stored answers are taken.",
                seq=entry.seq,
            )
        same += recorded in found
    rest = len(scored) - unsaid
    if rest:
        what = f"{same} of {rest} evaluations of judges give the recorded rows"
        away = "" if same == rest else "; the others are sealed, or not here"
        yield (ok if same else note)(_CHECK, what + away)
    if unsaid:
        what = f"evaluations of judges of an earlier ranloop, without rows: {unsaid}"
        yield note(_CHECK, what)


def _rows(workspace: WorkspacePaths, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the digests that the rows can have now; none where that is not known."""
    try:
        with open_store(workspace) as store:
            runs = store.find_runs(finished=True, ids=[str(payload.get("run"))])
        number = int(str(payload.get("ratings")).rpartition("ratings")[2])
        if not runs or runs[0].spec.cohort_digest != payload.get("cohort_digest"):
            return ()
        score = str(payload.get("score"))
        return recount_rows(workspace, runs[0], score=score, ratings=number)
    except (LoopError, OSError, ValueError, StopIteration):
        return ()


def _broken(entry: LedgerEntry, what: str) -> Finding:
    return broken(
        _CHECK,
        f"entry {entry.seq} holds a judge against raters: {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="The agreement is not of what its name says.",
        todo="Run and evaluate again, and compare the ledger with a backup.",
        seq=entry.seq,
    )


def _odd(entry: LedgerEntry, what: str) -> Finding:
    return warning(
        _CHECK,
        f"entry {entry.seq} holds a judge against raters: {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="What it rests on cannot be shown from this ledger.",
        todo="Evaluate again, or compare the ledger with a backup.",
        seq=entry.seq,
    )

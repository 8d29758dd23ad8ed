"""Recorded evaluations held against other entries, and counted again where possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from loop.core.check_findings import Finding, broken, note, ok, warning
from loop.core.digests import digest_bytes, digest_json
from loop.core.errors import DataError, LoopError, StoreError, WriteError
from loop.core.ledger import LedgerEntry
from loop.core.paths import WorkspacePaths
from loop.core.records import UncertainAnswers
from loop.evaluate.align import align, join_draws
from loop.evaluate.gates import GateVerdict
from loop.evaluate.measure import count_exclusions
from loop.evaluate.recording import digest_answers, digest_counts
from loop.evaluate.results import left_out_of
from loop.labels.cohort import HOLDOUT, RETIRED, CohortRecord, read_cohort
from loop.labels.reference import (
    Reference,
    is_no_finding_derived,
    parse_reference,
    reference_path,
)
from loop.labels.sealing import list_openings
from loop.labels.taxonomy import read_taxonomy, taxonomy_digest
from loop.release.audit.chain import find_cohort
from loop.run.store import Store, open_store, read_outcomes
from loop.stats.confusion import Confusion, count_confusions

_OPENINGS = "openings"
_SCORED = ("evaluated", "gate_decided")


def check_openings(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether holdouts were scored only when opened, and within the budget."""
    return [*_count_openings(entries), *_check_results(workspace, entries)]


def _count_openings(entries: tuple[LedgerEntry, ...]) -> list[Finding]:
    roles: dict[str, str] = {}
    opened: Counter[str] = Counter()
    budgets: dict[str, int] = {}
    found: list[Finding] = []
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
        elif entry.action in (*_SCORED, "judge_evaluated"):
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
) -> Iterator[Finding]:
    budget = _number(entry, "budget", count)
    number = _number(entry, "number", count)
    name = cohort_of(entry)
    if number != count:
        yield _broken_opening(
            entry, f"says it is opening {number} of {name}; it is {count}"
        )
    if count > budget:
        yield _broken_opening(
            entry, f"is opening {count} of {name}, and {budget} are allowed"
        )
    if role != HOLDOUT:
        yield _broken_opening(entry, f"opens {name}, which was no holdout then")


def _check_scored(
    entry: LedgerEntry, roles: dict[str, str], opened: Counter[str]
) -> Iterator[Finding]:
    name = str(entry.payload.get("cohort"))
    if roles.get(name) == HOLDOUT and not opened[name]:
        yield _broken_opening(
            entry, f"scores holdout {name}, which was not opened before"
        )


def _account(
    roles: dict[str, str], opened: Counter[str], budgets: dict[str, int], *, bad: bool
) -> Iterator[Finding]:
    for name, count in opened.items():
        allowed = f" of {budgets[name]}" if budgets[name] else ""
        text = f"{name}: opened {count}{allowed} times"
        yield note(_OPENINGS, text) if bad else ok(_OPENINGS, text)
    for name, role in roles.items():
        if role == HOLDOUT and not opened[name]:
            yield ok(_OPENINGS, f"{name}: never opened")


def _check_results(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> Iterator[Finding]:
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
            what = f"{name}: the result in entry {entry.seq} is not on this machine"
            yield note(_OPENINGS, what)
            continue
        if found == recorded:
            yield ok(_OPENINGS, f"{name}: the result of an opening is as recorded")
        else:
            yield _broken_opening(
                entry, f"recorded another result than {path.name} holds"
            )


def _broken_opening(entry: LedgerEntry, what: str) -> Finding:
    return broken(
        _OPENINGS,
        f"entry {entry.seq} {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="A claim on this holdout may not rest on unseen labels, or an entry "
        "is gone.",
        todo="Make the claim on a new holdout, and say why.",
        seq=entry.seq,
    )


_CHECK = "evaluations"


def check_evaluations(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> list[Finding]:
    """Return whether recorded scores fit what else is recorded, and their counts.

    Counts are made again from a run's outcomes and the reference where both are on
    this machine; how many could not be is said.
    """
    scored = [entry for entry in entries if entry.action in _SCORED]
    found = list(_check_entries(entries))
    if scored and not found:
        found = [ok(_CHECK, f"{len(scored)} entries fit what was recorded before them")]
    return [*found, *_check_counts(workspace, entries, scored)]


class _Known(NamedTuple):
    """What was recorded so far."""

    versions: dict[str, str]
    """Version ref to digest."""

    protocols: dict[str, UncertainAnswers]
    """Digest to what an uncertain answer counts as."""

    references: dict[tuple[str, str], set[str]]
    """Cohort and number to the digests it was recorded with."""

    cohorts: dict[str, CohortRecord]
    """Name to its last import."""

    judged: dict[str, set[str]]
    """Digest of a cohort's cases to the labels that a gate judged on them."""


def _check_entries(entries: tuple[LedgerEntry, ...]) -> Iterator[Finding]:
    known = _Known({}, {}, {}, {}, {})
    for entry in entries:
        payload, digest = entry.payload, str(entry.payload.get("digest"))
        if entry.action == "draft_committed":
            known.versions[entry.subject] = digest
        elif entry.action == "protocol_set":
            known.protocols[digest] = _policy(payload)
        elif entry.action == "cohort_added":
            yield from _check_import(entry, known)
        elif entry.action == "reference_revised":
            name = (str(payload.get("cohort")), str(payload.get("number")))
            known.references.setdefault(name, set()).add(digest)
        elif entry.action in _SCORED:
            yield from _check_entry(entry, known)
            yield from _check_left_out(entry, known)


def _check_entry(entry: LedgerEntry, known: _Known) -> Iterator[Finding]:
    """Yield which prompt, protocol or reference of a score was not recorded so."""
    payload = entry.payload
    committed = known.versions.get(entry.subject)
    if committed not in (None, payload.get("prompt_digest")):
        yield _broken(entry, f"{entry.subject} with another digest than its commit")
    if committed is None and "@v" in entry.subject:
        yield _odd(entry, f"{entry.subject}, which no entry before it committed")
    policy = known.protocols.get(str(payload.get("protocol_digest")))
    if policy is None:
        yield _odd(entry, "under a protocol that was not registered before")
    elif not _signs(payload) <= {policy.sign}:
        yield _broken(entry, "by another policy for uncertain answers than registered")
    name = (str(payload.get("cohort")), str(payload.get("reference")))
    references = known.references.get(name)
    if not references:
        yield _odd(entry, "against a reference that was not recorded before")
    elif str(payload.get("reference_digest")) not in references:
        yield _broken(entry, "against another reference than the recorded one")


def _check_import(entry: LedgerEntry, known: _Known) -> Iterator[Finding]:
    """Yield labels that an import calls not comparable after gates judged them."""
    record = CohortRecord(name=entry.subject, added=entry.payload, references={})
    digest = entry.payload.get("cohort_digest")
    judged = known.judged.get(str(digest), set())
    said = {
        label
        for one in known.cohorts.values()
        if one.added.get("cohort_digest") == digest
        for label in one.not_comparable
    }
    if late := (record.not_comparable & judged) - said:
        yield note(
            _CHECK,
            f"entry {entry.seq} imports {entry.subject}, and says that its reference "
            f"cannot judge {', '.join(sorted(late))}, after gates had judged that on "
            "these cases: see what they said, and whether the reason holds",
            where=f"entry {entry.seq}, {entry.subject}",
        )
    known.cohorts[entry.subject] = record


def _check_left_out(entry: LedgerEntry, known: _Known) -> Iterator[Finding]:
    """Yield labels that no claim counts although their cohort does not say so."""
    payload = entry.payload
    record = known.cohorts.get(str(payload.get("cohort")))
    verdicts = payload.get("labels")
    labels = verdicts if isinstance(verdicts, Mapping) else {}
    out = {one for one in labels if labels[one] == GateVerdict.NOT_COMPARABLE}
    if record is not None:
        digest = str(record.added.get("cohort_digest"))
        known.judged.setdefault(digest, set()).update(set(labels) - out)
    out |= left_out_of(str(payload.get("signature", "")))
    if extra := out - (record.not_comparable if record else set()):
        yield _broken(
            entry,
            f"without {', '.join(sorted(extra))}, which its cohort was imported to "
            "judge",
        )


def _policy(payload: Mapping[str, Any]) -> UncertainAnswers:
    """Return the policy that an entry registers; an early one says nothing of it."""
    said = payload.get("uncertain_answers", UncertainAnswers.EXCLUDED)
    return next(
        (one for one in UncertainAnswers if one == said), UncertainAnswers.EXCLUDED
    )


def _signs(payload: Mapping[str, Any]) -> set[str]:
    """Return the policy that a score is signed with; nothing without a signature."""
    parts = str(payload.get("signature", "")).split("|")
    return {part for part in parts if part.startswith("unc:")}


def _broken(entry: LedgerEntry, what: str) -> Finding:
    return broken(
        _CHECK,
        f"entry {entry.seq} scores {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="The score is not of what its name says.",
        todo="Run and evaluate again, and compare the ledger with a backup.",
        seq=entry.seq,
    )


def _odd(entry: LedgerEntry, what: str) -> Finding:
    return warning(
        _CHECK,
        f"entry {entry.seq} scores {what}",
        where=f"entry {entry.seq}, {entry.subject}",
        implies="What it rests on cannot be shown from this ledger.",
        todo="Evaluate again, or compare the ledger with a backup.",
        seq=entry.seq,
    )


class _ScoredRun(NamedTuple):
    """One run scored on one reference, by one or two entries."""

    run: str
    runs: tuple[str, ...]
    """Those of all draws; `run` alone for one."""

    cohort: str
    number: int
    reference_digest: str
    counts_digest: str
    policy: UncertainAnswers
    taxonomy: str
    """Digest of the labels that it was scored with; empty where that was not said."""

    seq: int


def _check_counts(
    workspace: WorkspacePaths,
    entries: tuple[LedgerEntry, ...],
    scored: list[LedgerEntry],
) -> list[Finding]:
    policies = {
        str(entry.payload.get("digest")): _policy(entry.payload)
        for entry in entries
        if entry.action == "protocol_set"
    }
    wanted: dict[str, _ScoredRun] = {}
    for entry in scored:
        one, key = _scored(entry, policies), _key(entry.payload)
        # A gate's entry, after that of its evaluation, does not name the labels.
        said = wanted[key].taxonomy if key in wanted else ""
        wanted[key] = one._replace(taxonomy=one.taxonomy or said)
    if not wanted:
        return []
    if not workspace.store.is_file():
        what = f"none of {len(wanted)} scored runs is on this machine: not recounted"
        return [note(_CHECK, what)]
    answers = [
        ScoredAnswers(one.runs, digest, one.seq)
        for entry in scored
        if entry.action == "evaluated"
        if (digest := entry.payload.get("answers_digest"))
        for one in [_scored(entry, policies)]
    ]
    unsaid = sum(entry.action == "evaluated" for entry in scored) - len(answers)
    found = [*check_answers(workspace, answers)]
    if unsaid:
        what = (
            "evaluations of an earlier ranloop that do not record their answers: "
            f"{unsaid}; answers edited without a change of the counts are not found"
        )
        found.append(note(_CHECK, what))
    results = _recount_all(workspace, entries, list(wanted.values()))
    wrong = [one for one in results if isinstance(one, Finding)]
    done = sum(one is True for one in results)
    away = sum(one is None for one in results)
    more = (
        f"; {away} could not be: run or reference not here, or sealed" if away else ""
    )
    account = f"{done} of {len(wanted)} scored runs give the recorded counts{more}"
    account_of = ok if done else note
    return [*found, *wrong, account_of(_CHECK, account)]


class ScoredAnswers(NamedTuple):
    """The answers that an entry scored."""

    runs: tuple[str, ...]
    digest: str
    seq: int


def check_answers(
    workspace: WorkspacePaths, recorded: list[ScoredAnswers]
) -> Iterator[Finding]:
    """Yield which answers in the store are not those that were scored."""
    same = 0
    try:
        with open_store(workspace) as store:
            for one in recorded:
                found = _digest_stored(store, one)
                same += found == one.digest
                if found not in (None, one.digest):
                    yield _edited_answers(one)
    except (StoreError, WriteError):
        return
    if same:
        yield ok(_CHECK, f"{same} of {len(recorded)} evaluations: answers as scored")


def _digest_stored(store: Store, one: ScoredAnswers) -> str | None:
    """Return the digest of stored answers, "" for unreadable ones, None for none."""
    try:
        return digest_answers(store, one.runs)
    except StoreError:
        return ""


def _edited_answers(one: ScoredAnswers) -> Finding:
    return broken(
        _CHECK,
        f"the answers of run {', '.join(one.runs)} in the store are not those that "
        f"entry {one.seq} scored",
        where=f"entry {one.seq}",
        implies="Answers were edited after they were scored, even where the counts "
        "are the same.",
        todo="Restore the store from a backup, or run the prompt again and evaluate.",
        seq=one.seq,
    )


def _key(payload: Mapping[str, Any]) -> str:
    names = ("run", "cohort", "reference", "reference_digest", "counts_digest")
    return digest_json([payload.get(name) for name in names])


def _scored(entry: LedgerEntry, policies: Mapping[str, UncertainAnswers]) -> _ScoredRun:
    payload = entry.payload
    protocol = str(payload.get("protocol_digest"))
    number = payload.get("reference")
    run = str(payload.get("run"))
    runs = payload.get("runs")
    return _ScoredRun(
        run=run,
        runs=tuple(map(str, runs)) if isinstance(runs, list) and runs else (run,),
        cohort=str(payload.get("cohort")),
        number=number if isinstance(number, int) else 0,
        reference_digest=str(payload.get("reference_digest")),
        counts_digest=str(payload.get("counts_digest")),
        policy=policies.get(protocol, UncertainAnswers.EXCLUDED),
        taxonomy=str(payload.get("taxonomy_digest", "")),
        seq=entry.seq,
    )


def _recount_all(
    workspace: WorkspacePaths,
    entries: tuple[LedgerEntry, ...],
    wanted: list[_ScoredRun],
) -> list[Finding | bool | None]:
    """Return of each run what `_recount` does; all is None without a store."""
    names = {one.cohort for one in wanted}
    records = {name: find_cohort(entries, name) for name in names}
    added = _labels_added_since(workspace, entries)
    try:
        with open_store(workspace) as store:
            return [
                _recount(
                    workspace,
                    store,
                    one,
                    records[one.cohort],
                    without=added.get(one.taxonomy, frozenset()),
                )
                for one in wanted
            ]
    except (StoreError, WriteError):
        return [None] * len(wanted)


def _labels_added_since(
    workspace: WorkspacePaths, entries: tuple[LedgerEntry, ...]
) -> dict[str, frozenset[str]]:
    """Return digests of earlier taxonomies, each with the labels added since.

    Only those from which recorded revisions lead to the taxonomy as it is.
    """
    earlier: dict[str, frozenset[str]] = {}
    try:
        now = taxonomy_digest(workspace.labels)
    except DataError:
        return earlier
    added: frozenset[str] = frozenset()
    for entry in reversed(entries):
        payload = entry.payload
        if entry.action == "taxonomy_revised" and payload.get("taxonomy_digest") == now:
            labels = payload.get("added")
            added |= frozenset(labels if isinstance(labels, Mapping) else ())
            now = str(payload.get("taxonomy_before"))
            earlier.setdefault(now, added)
    return earlier


def _recount(
    workspace: WorkspacePaths,
    store: Store,
    one: _ScoredRun,
    record: CohortRecord | None,
    *,
    without: frozenset[str] = frozenset(),
) -> Finding | bool | None:
    """Return True if the counts are the recorded ones, None if it cannot be known."""
    try:
        counted = _count(workspace, store, one, record, without=without)
    except (LoopError, OSError):
        return None
    if counted in (None, one.counts_digest):
        return None if counted is None else True
    return broken(
        _CHECK,
        f"run {one.run} on {one.cohort} gives other counts than entry {one.seq} says",
        where=f"entry {one.seq}",
        implies="The outcomes in the store, the taxonomy or the entry were changed.",
        todo="Run the prompt again and evaluate it; answers come from the cache.",
        seq=one.seq,
    )


def _count(
    workspace: WorkspacePaths,
    store: Store,
    one: _ScoredRun,
    record: CohortRecord | None,
    *,
    without: frozenset[str],
) -> str | None:
    """Return the digest of a run's counts; None where run or reference is not here.

    Labels that the taxonomy got since, `without`, do not count.
    """
    path = reference_path(workspace, one.cohort, one.number)
    runs = store.find_runs(finished=True, ids=one.runs)
    if record is None or len(runs) < len(one.runs) or not path.is_file():
        return None
    raw = path.read_bytes()
    if digest_bytes(raw) != one.reference_digest:
        return None
    cohort = read_cohort(workspace, one.cohort, record=record)
    if any(run.spec.cohort_digest != cohort.digest for run in runs):
        return None
    labels, case_ids, marks = parse_reference(raw, path)
    reference = Reference(
        cohort=one.cohort,
        number=one.number,
        digest=one.reference_digest,
        case_ids=case_ids,
        labels=labels,
        marks=marks,
        no_finding_derived=is_no_finding_derived(record, one.number),
    )
    taxonomy = read_taxonomy(workspace.labels)
    if without:
        kept = tuple(label for label in taxonomy.labels if label.id not in without)
        taxonomy = replace(taxonomy, labels=kept, digest=one.taxonomy)
    pairs = join_draws(
        [align(read_outcomes(store, run), reference, taxonomy) for run in one.runs]
    )
    tables = count_confusions(pairs.binary_reference, pairs.answers_as(one.policy))
    return digest_counts(
        (label, Confusion(*map(int, row)), count_exclusions(pairs, column, one.policy))
        for column, (label, row) in enumerate(zip(pairs.labels, tables, strict=True))
    )

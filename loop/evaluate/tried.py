"""How many versions of a prompt were tried on a cohort, drafts and rejects included.

Searching is trying: what an optimizer scored on the cohort counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from loop.core.errors import DataError, StoreError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.align import (
    CodeTable,
    count_uncertain,
    decided_reference,
    in_order,
    read_codes,
)
from loop.evaluate.measure import Clusters, comparable_labels, resampling_units
from loop.evaluate.protocol import read_protocol
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference, require_random
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.run.spec import RunSpec, undrawn
from loop.run.store import RunRecord, Store
from loop.stats.optimism import (
    RESAMPLES,
    Optimism,
    expected_excess,
    f1_optimism,
)


class WordingStatus(StrEnum):
    """What became of a wording."""

    COMMITTED = "committed"
    DRAFT = "draft"
    """Not decided yet, or kept as a draft on request."""

    REJECTED = "rejected"
    """Checked, and it did not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One wording that was tried on the cohort."""

    digest: str
    """Prompt digest: what was tried once under two names counts once."""

    ref: str
    """For example ``"extractor@v3"`` or ``"extractor@draft:d2026..."``."""

    standing: WordingStatus
    run: RunRecord | None
    """Its newest run; None when only the ledger knows of it, so that it cannot be
    scored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """All wordings of one prompt that were tried on one cohort with one engine."""

    prompt: str
    """Prompt name, for example ``"extractor"``."""

    cohort: str
    engine: str
    """Empty when nothing was run yet."""

    attempts: tuple[Attempt, ...]
    """Oldest first; those of which only the ledger knows come last."""

    elsewhere: int
    """Other wordings, tried on these cases only with another engine, with other
    parameters or on a part of the cases."""

    searches: int = 0
    """Searches for a better wording, by optimizers, on these cases with the engine."""

    searched: int = 0
    """Candidates that they scored; one that became an attempt may be among them."""

    @property
    def count(self) -> int:
        """K: how many wordings could have been chosen, those of searches included."""
        return len(self.attempts) + self.searched

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The run of every attempt that can be scored again."""
        return tuple(one.run for one in self.attempts if one.run is not None)

    @property
    def gone(self) -> tuple[str, ...]:
        """Names of the attempts that cannot be scored again."""
        return tuple(one.ref for one in self.attempts if one.run is None)

    @property
    def uncommitted(self) -> int:
        """Attempts that never became a version."""
        return sum(one.standing is not WordingStatus.COMMITTED for one in self.attempts)


def versions_tried(
    workspace: WorkspacePaths,
    store: Store,
    prompt: str,
    cohort: str,
    *,
    like: RunRecord | None = None,
) -> Tried:
    """Return every wording of `prompt` that was tried on `cohort` as it is now.

    Counted are digests with a finished run of the same cases, engine and parameters,
    those that only the ledger remembers, and the candidates of searches. Repeats of a
    run count once, and stand for a wording that has no draw 0, as a draft that was
    checked over several draws.

    Parameters
    ----------
    prompt
        Prompt name; a version (``extractor@v3``) means its prompt.
    like
        The run that says what is comparable, and that stands for its own wording;
        None for the newest run of the prompt on the cohort.

    Raises
    ------
    DataError
        There is no such cohort.
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    name = prompt.partition("@")[0]
    digest = read_cohort(workspace, cohort).digest
    finished = store.find_runs(finished=True)
    found = [
        run
        for run in finished
        if _name(run.spec.prompt) == name and run.spec.cohort_digest == digest
    ]
    # Stable: the newest run first, and of one wording the first draw.
    found.sort(key=lambda run: run.spec.draw)
    like = like or next(iter(found), None)
    ledger = read_ledger(workspace.ledger)
    entries = [entry for entry in ledger if _name(entry.subject) == name]
    standings = _standings(entries)
    claims = [one for one in _claims(ledger, cohort, digest) if _name(one.ref) == name]
    attempts = _scorable(found, like, standings)
    engine = like.spec.engine if like else ""
    known = {run.id for run in finished}
    gone = {
        claim.digest: Attempt(
            digest=claim.digest,
            ref=claim.ref,
            standing=standings.get(claim.digest, _unrecorded(claim.ref)),
            run=None,
        )
        for claim in claims
        if claim.engine in (engine or claim.engine, "")
        and claim.digest not in attempts
        and known.isdisjoint(claim.runs)
    }
    tried = {*attempts, *gone}
    searches = [
        entry
        for entry in _searches(ledger, digest)
        if _name(entry.subject) == name
        and entry.payload.get("engine") in (engine or entry.payload.get("engine"), "")
    ]
    return Tried(
        prompt=name,
        cohort=cohort,
        engine=engine,
        attempts=(*attempts.values(), *gone.values()),
        elsewhere=len({run.spec.prompt_digest for run in found} - tried),
        searches=len(searches),
        searched=sum(int(one.payload.get("candidates", 0)) for one in searches),
    )


def _scorable(
    found: Sequence[RunRecord],
    like: RunRecord | None,
    standings: Mapping[str, WordingStatus],
) -> dict[str, Attempt]:
    """Return digest to attempt for the runs comparable with `like`, oldest first."""
    if like is None:
        return {}
    chosen: dict[str, RunRecord] = {like.spec.prompt_digest: like}
    first: dict[str, tuple[str, int]] = {}
    for run in [like, *(run for run in found if _same_work(run.spec, like.spec))]:
        digest = run.spec.prompt_digest
        chosen.setdefault(digest, run)
        first[digest] = min(first.get(digest, _age(run)), _age(run))
    return {
        digest: Attempt(
            digest=digest,
            ref=chosen[digest].spec.prompt,
            standing=standings.get(digest, _unrecorded(chosen[digest].spec.prompt)),
            run=chosen[digest],
        )
        for digest in sorted(chosen, key=lambda digest: first[digest])
    }


def _age(run: RunRecord) -> tuple[str, int]:
    return run.created, run.number


def _same_work(one: RunSpec, other: RunSpec) -> bool:
    """Whether two runs differ in their prompts at most."""
    return (one.engine, undrawn(one), one.limit) == (
        other.engine,
        undrawn(other),
        other.limit,
    )


def _standings(entries: Iterable[LedgerEntry]) -> dict[str, WordingStatus]:
    """Return digest to what became of it; a commit outlasts an earlier rejection."""
    standings: dict[str, WordingStatus] = {}
    for entry in entries:
        digest = str(entry.payload.get("digest"))
        if entry.action == "draft_committed":
            standings[digest] = WordingStatus.COMMITTED
        elif entry.action == "draft_rejected":
            objections = entry.payload.get("objections")
            standing = WordingStatus.REJECTED if objections else WordingStatus.DRAFT
            if standings.get(digest) is not WordingStatus.COMMITTED:
                standings[digest] = standing
    return standings


def _unrecorded(ref: str) -> WordingStatus:
    return WordingStatus.DRAFT if "@draft" in ref else WordingStatus.COMMITTED


class _TriedWording(NamedTuple):
    """What an entry of the ledger says was tried."""

    cohort: str
    digest: str
    ref: str
    engine: str
    """Empty where the entry does not say."""

    runs: frozenset[str]


def _claims(
    entries: Iterable[LedgerEntry], cohort: str, digest: str
) -> Iterator[_TriedWording]:
    """Yield what was tried on all cases with that digest, by the ledger.

    They may have been imported under another name than `cohort` then.
    """
    held = {cohort: digest}
    for entry in entries:
        claim = None
        if entry.action == "cohort_added":
            held[entry.subject] = str(entry.payload.get("cohort_digest"))
        elif entry.action in ("draft_rejected", "draft_committed"):
            claim = _checked(entry)
        elif entry.action == "evaluated":
            claim = _evaluated(entry)
        if claim is not None and held.get(claim.cohort) == digest:
            yield claim


def _searches(entries: Iterable[LedgerEntry], digest: str) -> Iterator[LedgerEntry]:
    """Yield the searches on all cases with that digest, each once.

    One that was done again because its folder was gone has tried no other wordings,
    unless it came to another result.
    """
    seen = set()
    for entry in entries:
        told = entry.payload.get("key"), entry.payload.get("result")
        if entry.action == "searched" and entry.payload.get("cohort_digest") == digest:
            if told not in seen:
                yield entry
            seen.add(told)


def _checked(entry: LedgerEntry) -> _TriedWording | None:
    """Return the draft that was run for a check; None when lint stopped it before."""
    check = entry.payload.get("check") or {}
    runs = frozenset(map(str, check.get("runs", ())))
    if not runs:
        return None
    digest, engine = entry.payload.get("digest"), check.get("engine", "")
    cohort = str(check.get("cohort"))
    return _TriedWording(cohort, str(digest), entry.subject, str(engine), runs)


def _evaluated(entry: LedgerEntry) -> _TriedWording | None:
    payload = entry.payload
    if payload.get("not_run"):
        return None
    return _TriedWording(
        str(payload.get("cohort")),
        str(payload.get("prompt_digest")),
        entry.subject,
        signed_engine(str(payload.get("signature", ""))),
        frozenset({str(payload.get("run"))}),
    )


def signed_engine(signature: str) -> str:
    """Return the engine that a signature names, or nothing where it names none."""
    parts = signature.split("|")
    return parts[2] if len(parts) > 3 else ""


def _name(ref: str) -> str:
    return ref.partition("@")[0]


LIMITS = (
    "The correction is for the choice among these versions only: not for wording and "
    "exemplars taken from the same cases, and not for other reports. It does not "
    "replace the holdout."
)
"""What every document says beside a corrected score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One run's macro-F1 as it looks, and corrected for the versions tried."""

    run: str
    prompt: str
    """For example ``"extractor@v3"``."""

    tried: Tried
    rescored: int
    """Versions whose cases entered the correction, this one included."""

    unscored: tuple[str, ...]
    """Versions that were tried and could not be scored again, by name."""

    score: Optimism
    """Macro-F1: apparent, corrected, limits."""

    expected_drop: float | None
    """By how much the accuracy of one label is overrated if the best of so many
    equally good versions is taken; None without cases."""

    accuracy: float
    """The accuracy that `expected_drop` supposes: the protocol's threshold."""

    unit: str
    """``"patient"`` or ``"case"``."""

    seed: int

    @property
    def k(self) -> int:
        """Versions tried, drafts and rejected ones included."""
        return self.tried.count


def correct_optimism(
    workspace: WorkspacePaths,
    store: Store,
    run_id: str,
    *,
    reference: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """Return a run's macro-F1 corrected for the versions tried on its cohort.

    Versions of which only the ledger knows, and the candidates of searches, count as
    tried, and for the expected drop, but cannot enter the correction.

    Parameters
    ----------
    run_id
        Id of a finished run, in full.
    reference
        Number of the reference version; None for the newest.

    Raises
    ------
    DataError
        There is no such finished run, its cohort changed, or there is no reference.
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    run = _find(store, run_id)
    cohort = read_cohort(workspace, run.spec.cohort)
    if cohort.digest != run.spec.cohort_digest:
        raise DataError(
            f"cohort {cohort.name} holds other cases than run {run.id} asked. Run the "
            "prompt again on the cohort as it is now."
        )
    taxonomy = read_taxonomy(workspace.labels)
    standard = require_random(read_reference(workspace, cohort.name, reference))
    cases = read_codes(store, run, taxonomy).case_ids
    tried = versions_tried(workspace, store, run.spec.prompt, cohort.name, like=run)
    scored, unscored = _answers(store, tried, taxonomy, cases)
    patients = {case.case_id: case.patient for case in cohort.cases}
    clusters = resampling_units([patients.get(case, "") for case in cases])
    protocol = read_protocol(workspace)
    kept = comparable_labels(taxonomy.ids, cohort.not_comparable)
    truth = decided_reference(standard, cases, taxonomy)
    answers = np.stack([in_order(table, cases) for table in scored.values()])
    return Selection(
        run=run.id,
        prompt=run.spec.prompt,
        tried=tried,
        rescored=len(scored),
        unscored=unscored,
        score=f1_optimism(
            truth[:, kept],
            count_uncertain(answers, truth, protocol.policy)[..., kept],
            chosen=list(scored).index(run.id),
            units=clusters.units,
            resamples=resamples,
            seed=seed,
        ),
        expected_drop=_expected(clusters, tried.count, protocol.accuracy),
        accuracy=protocol.accuracy,
        unit=clusters.unit,
        seed=seed,
    )


def _find(store: Store, run_id: str) -> RunRecord:
    found = store.find_runs(finished=True, ids=[run_id])
    if not found:
        raise DataError(
            f"there is no finished run {run_id}. Make one with `ranloop run`."
        )
    return found[0]


def _answers(
    store: Store, tried: Tried, taxonomy: Taxonomy, case_ids: tuple[str, ...]
) -> tuple[dict[str, CodeTable], tuple[str, ...]]:
    """Return run id to its answers, and the attempts that have none on these cases."""
    cases = set(case_ids)
    tables: dict[str, CodeTable] = {}
    without = list(tried.gone)
    for one in tried.attempts:
        if one.run is None:
            continue
        try:
            table = read_codes(store, one.run, taxonomy)
        except (DataError, StoreError):
            # One damaged old run must not hide the score of a sound new one.
            without.append(one.ref)
            continue
        if set(table.case_ids) == cases:
            tables[one.run.id] = table
        else:
            without.append(one.ref)
    return tables, tuple(without)


def _expected(clusters: Clusters, versions: int, accuracy: float) -> float | None:
    if not clusters.total:
        return None
    return expected_excess(clusters.total, versions, accuracy)

"""What readers are asked to read, who they are, and the order in which they do it.

A reader without a plan reads every case of the cohort, see `reading_order`. A plan
says only what comes next: answers given before it, or outside it, stay and count.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from loop.core.clock import Clock, format_time, utc_now
from loop.core.digests import framed
from loop.core.errors import DataError, StoreError, UnknownLabelError
from loop.core.ledger import Actor, read_ledger
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.labels.ballots import Turnout
from loop.labels.cohort import Cohort, read_cohort, read_record, require_reports
from loop.labels.majority import read_rule
from loop.labels.pseudonyms import open_pseudonyms
from loop.labels.sealing import WordSeal, open_words
from loop.labels.taxonomy import NO_FINDING, Taxonomy, read_taxonomy
from loop.labels.value_sample import newest_sample
from loop.run.store import Store

LONGEST_NAME = 64
"""Characters in the name of a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A cohort and the labels that its readers are asked for."""

    cohort: Cohort
    taxonomy: Taxonomy
    words: WordSeal | None = None
    """What seals the answers in the store; None where they need no seal."""

    no_finding_read: bool = False
    """Whether readers label "No Finding" themselves, as the protocol says."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Label ids that a complete case has values for.

        All but "No Finding", which is derived, unless readers label it.
        """
        if self.no_finding_read:
            return self.taxonomy.ids
        return self.taxonomy.extracted

    @property
    def guideline(self) -> str:
        """The first 12 digits of the taxonomy's digest, as the guideline shows them.

        Kept with every plan and answer, and in the ledger with the votes, so that an
        auditor can tell which definitions a reader saw.
        """
        return self.taxonomy.digest[:12]

    @property
    def key(self) -> str:
        """What answers are kept under: the name and digest of the cohort.

        A cohort that is imported again with other texts under the same name starts
        anew, because an answer holds for the text that was read.
        """
        return f"{self.cohort.name}@{self.cohort.digest[:16]}"


def read_assignment(workspace: WorkspacePaths, cohort_name: str) -> Assignment:
    """Return what readers of a cohort are asked.

    Raises
    ------
    DataError
        There is no such cohort, it holds pairs, its files are not those recorded, or
        the protocol cannot be read.
    """
    record = read_record(workspace, cohort_name)
    # What was sealed before a holdout was retired stays so.
    sealed = record.is_holdout or record.retired
    cohort = read_cohort(workspace, cohort_name, record=record)
    require_reports(cohort, "blinded reading")
    return Assignment(
        cohort=cohort,
        taxonomy=read_taxonomy(workspace.labels),
        words=open_words(workspace) if sealed else None,
        no_finding_read=read_rule(workspace).no_finding_read,
    )


def check_reader(name: str) -> str:
    """Return the name of a reader without surrounding space.

    Raises
    ------
    DataError
        It is empty, longer than 64 characters, or holds control characters.
    """
    plain = unicodedata.normalize("NFC", name).strip()
    if not 1 <= len(plain) <= LONGEST_NAME or not plain.isprintable():
        raise DataError(
            f"the name of a reader has 1 to {LONGEST_NAME} printable characters, this "
            f"one has {len(plain)}. Use the name that the reader signs in with."
        )
    return plain


def require_cases(assignment: Assignment, case_ids: Iterable[str]) -> None:
    """Refuse case ids that the cohort does not have.

    Raises
    ------
    DataError
        It lacks one; names the first.
    """
    known = positions(assignment.cohort)
    for case_id in case_ids:
        if case_id not in known:
            raise DataError(
                f"cohort {assignment.cohort.name!r} has no case {quoted(case_id)}. "
                "Correct the id, or name the cohort that was read."
            )


def require_label(assignment: Assignment, name: str) -> str:
    """Return the id of a label that readers are asked for.

    Raises
    ------
    UnknownLabelError
        The taxonomy has no such label.
    DataError
        It is "No Finding", and the protocol does not have readers label it.
    """
    label = assignment.taxonomy.find(name).id
    if label == NO_FINDING and not assignment.no_finding_read:
        raise DataError(
            f"{label} is not asked: it follows from the other labels. Give values for "
            "those and leave it out; where readers shall label it, the protocol says "
            "`no_finding: read`."
        )
    if label not in assignment.labels:
        raise UnknownLabelError(f"label {label!r} is not read. Leave it out.")
    return label


def positions(cohort: Cohort) -> Mapping[str, int]:
    """Return case id to its place in the cohort, from 0."""
    return _positions(cohort.case_ids)


def reading_order(cohort: Cohort, reader: str) -> tuple[str, ...]:
    """Return the case ids of `cohort` in the order in which `reader` reads them.

    A random permutation of its own for every reader, so that tiredness and learning
    do not fall on the same cases. It depends on nothing but the cohort's digest and
    the reader's name: cases are sorted by ``sha256(digest, reader, case id)``, which
    gives the same order after a restart and on every machine.
    """
    return _order(cohort.digest, check_reader(reader), cohort.case_ids)


@lru_cache(maxsize=64)
def _order(digest: str, reader: str, case_ids: tuple[str, ...]) -> tuple[str, ...]:
    start = hashlib.sha256(framed([digest, reader]))

    def draw(case_id: str) -> bytes:
        mixed = start.copy()
        mixed.update(case_id.encode("utf-8", "surrogatepass"))
        return mixed.digest()

    return tuple(sorted(case_ids, key=draw))


@lru_cache(maxsize=16)
def _positions(case_ids: tuple[str, ...]) -> dict[str, int]:
    return {case_id: number for number, case_id in enumerate(case_ids)}


_LATEST_PLANS = (
    "SELECT reader, cases, actor, created, guideline, chances, max(number) "
    "FROM reading_plans "
    "WHERE cohort = ? {where} GROUP BY reader"
)


class CaseOrder(StrEnum):
    """In which order the cases of a plan are read."""

    RANDOM = "random"
    """In an order of each reader's own, so that tiredness falls on other cases."""

    LISTED = "listed"
    """As the cohort, or the list of cases that was given, has them."""


def read_order(word: str) -> CaseOrder:
    """Return the order called `word`.

    Raises
    ------
    DataError
        There is no such order.
    """
    try:
        return CaseOrder(word)
    except ValueError as error:
        known = " or ".join(CaseOrder)
        raise DataError(f"no order {quoted(word)}. Use {known}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Who is given how many cases, and which of them all of these readers share."""

    readers: tuple[str, ...]
    cases: int | None = None
    """Cases of each reader; None: all there are."""

    overlap: int | None = None
    """Of these: cases that all of these readers share, the others are of one reader
    alone; None: all are shared."""

    order: CaseOrder = CaseOrder.RANDOM
    seed: int = 1
    """The same seed draws the same cases, on every machine."""

    among: tuple[str, ...] = ()
    """Case ids to draw from, in their order; empty: the whole cohort."""

    chances: tuple[float, ...] = ()
    """With which each of `among` was drawn in a value sample; empty: they are of none.
    The plans keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPlan:
    """The cases that one reader was given."""

    reader: str
    case_ids: tuple[str, ...]
    """In the order of reading."""

    given_by: str
    created: str
    """UTC, ISO 8601."""

    guideline: str | None
    """The guideline when the cases were given, see `Assignment.guideline`; None: given
    before this was kept."""

    chances: tuple[float, ...] = ()
    """With which each of the cases was drawn in a value sample; empty: they are of
    none."""


def plan_cases(
    assignment: Assignment, wanted: PlanRequest
) -> dict[str, tuple[str, ...]]:
    """Return reader to the cases they are to read, in order; nothing is kept.

    Cases are drawn by ``sha256(cohort digest, seed, case id)``: first those that all
    share, then each reader's own, none of them twice.

    Raises
    ------
    DataError
        No reader is named, one twice, a case is unknown or listed twice, or there are
        not enough cases.
    """
    readers = [check_reader(name) for name in wanted.readers]
    if not readers or len(set(readers)) < len(readers):
        raise DataError("name each reader who is to read these cases once.")
    require_cases(assignment, wanted.among)
    pool = wanted.among or assignment.cohort.case_ids
    if len(set(pool)) < len(pool):
        raise DataError("a case is listed twice. Name each case once.")
    if len(wanted.chances) not in (0, len(wanted.among)):
        raise ValueError("need a chance for each case that is drawn from")
    each = len(pool) if wanted.cases is None else wanted.cases
    overlap = each if wanted.overlap is None else wanted.overlap
    if each < 1 or not 0 <= overlap <= each:
        raise DataError(
            f"{each} cases of which {overlap} are shared cannot be drawn. Ask for at "
            "least 1 case, and share at most as many as each reader has."
        )
    own = each - overlap
    wants = overlap + own * len(readers)
    if wants > len(pool):
        raise DataError(
            f"{len(readers)} readers with {each} cases each, {overlap} of them shared, "
            f"take {wants} cases, and there are {len(pool)}. Ask for fewer, or share "
            "more."
        )
    drawn = _draw_cases(assignment, pool, wanted.seed)
    found = {}
    for number, reader in enumerate(readers):
        start = overlap + number * own
        chosen = {*drawn[:overlap], *drawn[start : start + own]}
        order = pool
        if wanted.order is CaseOrder.RANDOM:
            order = reading_order(assignment.cohort, reader)
        found[reader] = tuple(case for case in order if case in chosen)
    return found


def assign_cases(
    store: Store,
    assignment: Assignment,
    wanted: PlanRequest,
    actor: Actor,
    now: Clock = utc_now,
) -> tuple[ReadingPlan, ...]:
    """Give each reader a plan, in place of any they had; return them by name.

    No answer is lost by it: a case that is no longer given is not asked for, and what
    was said of it stays.

    Raises
    ------
    DataError
        As `plan_cases`; nothing was changed.
    StoreError
        The store cannot be written; nothing was changed.
    """
    plans = plan_cases(assignment, wanted)
    chances = dict(zip(wanted.among, wanted.chances, strict=False))
    return _keep_plans(store, assignment, plans, actor, now, chances=chances)


def assign_sample(
    workspace: WorkspacePaths, assignment: Assignment, wanted: PlanRequest
) -> PlanRequest:
    """Return `wanted` with the cases and chances of the newest value sample.

    Raises
    ------
    DataError
        No sample of the cohort was drawn, or its file is gone or was edited; or
        `wanted` names cases of its own.
    """
    name = assignment.cohort.name
    if wanted.among:
        raise DataError(
            "cases of one's own are no value sample: their chances are not known. Name "
            "the cases, or take the sample."
        )
    kept = newest_sample(workspace, name)
    if kept is None:
        raise DataError(
            f"no value sample of cohort {name} was drawn. Draw one with "
            f"`ranloop sample {name} --for reading`."
        )
    chances = kept.sample.chances
    return replace(wanted, among=tuple(chances), chances=tuple(chances.values()))


def clear_plans(
    store: Store,
    assignment: Assignment,
    readers: Sequence[str],
    actor: Actor,
    now: Clock = utc_now,
) -> None:
    """Let these readers read every case again; no answer is lost.

    Raises
    ------
    DataError
        The name of a reader is none.
    StoreError
        The store cannot be written; nothing was changed.
    """
    cleared: dict[str, tuple[str, ...]] = {check_reader(name): () for name in readers}
    _keep_plans(store, assignment, cleared, actor, now)


def read_plans(store: Store, assignment: Assignment) -> dict[str, ReadingPlan]:
    """Return reader to plan, by name; whoever reads every case is left out.

    Raises
    ------
    StoreError
        The store cannot be read, or something else changed a plan.
    """
    rows = store.read(_LATEST_PLANS.format(where=""), [assignment.key])
    found = {}
    for reader, cases, actor, created, guideline, chances, _ in sorted(rows):
        plan = _parse_plan(cases, reader)
        if plan:
            found[reader] = ReadingPlan(
                reader=reader,
                case_ids=plan,
                given_by=actor,
                created=created,
                guideline=guideline,
                chances=_parse_chances(chances, len(plan), reader),
            )
    return found


def cases_to_read(store: Store, assignment: Assignment, reader: str) -> tuple[str, ...]:
    """Return the cases that `reader` is to read, in order: the plan, or every case.

    Raises
    ------
    StoreError
        The store cannot be read, or something else changed the plan.
    """
    who = check_reader(reader)
    rows = store.read(
        _LATEST_PLANS.format(where="AND reader = ?"), [assignment.key, who]
    )
    known = positions(assignment.cohort)
    plan = _parse_plan(rows[0][1], who) if rows else ()
    cases = tuple(case for case in plan if case in known)
    return cases or reading_order(assignment.cohort, who)


def plan_guideline(store: Store, assignment: Assignment, reader: str) -> str | None:
    """Return the guideline in force when the reader's cases were given.

    None where the reader reads every case, or was given cases before this was kept.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        _LATEST_PLANS.format(where="AND reader = ?"),
        [assignment.key, check_reader(reader)],
    )
    return rows[0][4] if rows and _parse_plan(rows[0][1], reader) else None


def count_shared(plans: Mapping[str, ReadingPlan], reader: str) -> int:
    """Return how many cases of a reader's plan stand in somebody else's as well."""
    own = set(plans[reader].case_ids)
    others = {
        case for name, plan in plans.items() if name != reader for case in plan.case_ids
    }
    return len(own & others)


def _draw_cases(assignment: Assignment, pool: Sequence[str], seed: int) -> list[str]:
    start = framed(["reading plan", assignment.cohort.digest, str(seed)])

    def key(case_id: str) -> bytes:
        return hashlib.sha256(start + framed([case_id])).digest()

    return sorted(pool, key=key)


def _keep_plans(
    store: Store,
    assignment: Assignment,
    cases: Mapping[str, tuple[str, ...]],
    actor: Actor,
    now: Clock,
    *,
    chances: Mapping[str, float] = MappingProxyType({}),
) -> tuple[ReadingPlan, ...]:
    """Keep plans, all or none."""
    created = format_time(now())
    drawn = {
        reader: tuple(chances[case] for case in ids) if chances else ()
        for reader, ids in cases.items()
    }
    with store.writing() as connection:
        connection.executemany(
            "INSERT INTO reading_plans (cohort, reader, cases, actor, created, "
            "guideline, chances) VALUES (?,?,?,?,?,?,?)",
            [
                [
                    assignment.key,
                    reader,
                    json.dumps(ids),
                    actor.name,
                    created,
                    assignment.guideline,
                    json.dumps(drawn[reader]) if drawn[reader] else None,
                ]
                for reader, ids in cases.items()
            ],
        )
    return tuple(
        ReadingPlan(
            reader=name,
            case_ids=ids,
            given_by=actor.name,
            created=created,
            guideline=assignment.guideline,
            chances=drawn[name],
        )
        for name, ids in sorted(cases.items())
    )


def _parse_plan(cases: str, reader: str) -> tuple[str, ...]:
    try:
        found = json.loads(cases)
        if isinstance(found, list):
            return tuple(map(str, found))
    except ValueError:
        pass
    raise _changed_plan(reader)


def _parse_chances(chances: str | None, cases: int, reader: str) -> tuple[float, ...]:
    if chances is None:
        return ()
    try:
        found = tuple(map(float, json.loads(chances)))
    except (TypeError, ValueError):
        found = ()
    if len(found) == cases and all(0 < one <= 1 for one in found):
        return found
    raise _changed_plan(reader)


def _changed_plan(reader: str) -> StoreError:
    return StoreError(
        f"the reading plan of {reader!r} cannot be read; something other than ranloop "
        "changed it. Assign cases to the reader again with `ranloop reading assign`."
    )


PSEUDONYM = "reader-"
"""How every pseudonym of a reader begins."""


def pseudonym_of(workspace: WorkspacePaths, reader: str) -> str:
    """Return the pseudonym of a reader, the same at every publication.

    Only this workspace's private key leads from the name to it.

    Raises
    ------
    DataError
        The key file is damaged.
    """
    name = check_reader(reader).casefold()
    return PSEUDONYM + open_pseudonyms(workspace).of(f"reader {name}")[:8]


def voting_names(
    workspace: WorkspacePaths, readers: Sequence[str], reader: str
) -> tuple[str, ...]:
    """Return under which of the names that voted `reader` did: name or pseudonym.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    """
    names = {reader}
    if any(name.startswith(PSEUDONYM) for name in readers):
        names.add(pseudonym_of(workspace, reader))
    return tuple(name for name in readers if name in names)


def voted_cases(
    workspace: WorkspacePaths, turnout: Turnout | None, reader: str
) -> frozenset[str]:
    """Return the cases that `reader` has a vote on, under the name or the pseudonym.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    """
    if turnout is None:
        return frozenset()
    names = voting_names(workspace, turnout.readers, reader)
    voted = turnout.voted[:, [turnout.readers.index(name) for name in names]]
    return frozenset(
        case
        for case, row in zip(turnout.case_ids, voted.tolist(), strict=True)
        if any(row)
    )


_CHANGING = ("reference_revised", "holdout_sealed", "holdout_retired")


class ReadingCacheKey(NamedTuple):
    """As long as this is the same, so is what was worked out."""

    cohort: str
    """Name and digest of the cohort."""

    taxonomy: str
    """Digest of the labels."""

    labels: tuple[str, ...]
    """Those that readers are asked for."""

    recorded: str
    """Hash of the last ledger entry on votes or reference of the cohort, on its seal,
    or on its import."""

    readings: int = 0
    """Number of the last reading in the store, of any cohort."""

    plans: int = 0
    """Number of the last reading plan in the store, of any cohort."""

    verdicts: int = 0
    """Number of verdicts in the store: they tell who is blind."""


def read_basis(
    workspace: WorkspacePaths, assignment: Assignment, store: Store | None = None
) -> ReadingCacheKey:
    """Return the basis of votes and disputes; with `store` that of readings as well.

    Raises
    ------
    LedgerError
        The ledger is broken.
    StoreError
        The store cannot be read.
    """
    readings = plans = verdicts = 0
    if store is not None:
        ((readings, plans, verdicts),) = store.read(
            "SELECT (SELECT coalesce(max(number), 0) FROM readings), "
            "(SELECT coalesce(max(number), 0) FROM reading_plans), "
            "(SELECT count(*) FROM verdicts)"
        )
    return ReadingCacheKey(
        cohort=assignment.key,
        taxonomy=assignment.taxonomy.digest,
        labels=assignment.labels,
        recorded=_last_entry(workspace, assignment.cohort.name),
        readings=readings,
        plans=plans,
        verdicts=verdicts,
    )


def _last_entry(workspace: WorkspacePaths, cohort: str) -> str:
    for entry in reversed(read_ledger(workspace.ledger)):
        about = entry.action == "cohort_added" and entry.subject == cohort
        revised = entry.action in _CHANGING
        if about or (revised and entry.payload.get("cohort") == cohort):
            return entry.hash
    return ""

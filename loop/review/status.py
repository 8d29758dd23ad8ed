"""Kept verdicts and what became of each: open, superseded, withdrawn, addressed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from loop.core.errors import DataError
from loop.core.ledger import LedgerEntry, read_ledger
from loop.core.paths import WorkspacePaths
from loop.labels.cohort import find_record
from loop.labels.reference import MARKS, Reference, read_reference
from loop.review.submit import VerdictContext, decode, load_verdicts
from loop.review.verdict import Judgement, Verdict
from loop.run.store import Store

Pair = tuple[str, str]
"""Case id and label."""


class VerdictState(StrEnum):
    """What became of a verdict."""

    OPEN = "open"
    SUPERSEDED = "superseded"
    """The same reviewer judged all its cases again."""

    WITHDRAWN = "withdrawn"
    ADDRESSED = "addressed"
    """A committed version answers it, or the reference says what it asks for."""


class Withdrawal(NamedTuple):
    """Who took a verdict back, when and why."""

    actor: str
    created: str
    """UTC, ISO 8601."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVerdict:
    """One verdict as it lives in the store."""

    id: str
    """Unique in its cohort: the verdict's id, with ``-2`` when it was given again."""

    verdict: Verdict
    circumstances: VerdictContext
    created: str
    """UTC, ISO 8601."""

    state: VerdictState
    pairs: tuple[Pair, ...] = ()
    """``(case id, label)`` it still speaks for; a later verdict may have taken some."""

    conflicts: tuple[str, ...] = ()
    """Ids of open verdicts of others that disagree with it; empty unless open."""

    superseded_by: str = ""
    addressed_by: str = ""
    """Version or reference that answers it, ``"extractor@v3"`` or ``"dev:ref2"``."""

    withdrawal: Withdrawal | None = None

    @property
    def cohort(self) -> str:
        """Cohort of its cases."""
        return self.circumstances.cohort


class Verdicts:
    """The verdicts of a store, read once and then only what is new.

    One for a process; its methods may be called from any thread.
    """

    def __init__(self, store: Store, workspace: WorkspacePaths | None = None) -> None:
        """Look at `store`; without a workspace nothing is known to be addressed."""
        self._store = store
        self._workspace = workspace
        self._lock = Lock()
        self._cohorts: dict[str, _CohortVerdicts] = {}

    def read(self, cohort: str) -> tuple[KeptVerdict, ...]:
        """Return the verdicts on `cohort`, oldest first.

        Raises
        ------
        StoreError
            A verdict cannot be read.
        LedgerError
            The ledger is broken.
        """
        with self._lock:
            shelf = self._cohorts.setdefault(cohort, _CohortVerdicts(cohort))
            entries = read_ledger(self._workspace.ledger) if self._workspace else ()
            return shelf.read(self._store, entries, self._workspace)


def read_kept(
    store: Store, workspace: WorkspacePaths | None, cohort: str
) -> tuple[KeptVerdict, ...]:
    """Return the verdicts on `cohort`, oldest first, with what became of each.

    Reads everything; who asks often keeps a `Verdicts`.

    Raises
    ------
    StoreError
        A verdict cannot be read.
    LedgerError
        The ledger is broken.
    """
    return Verdicts(store, workspace).read(cohort)


def judged_cohorts(store: Store) -> tuple[str, ...]:
    """Return the names of the cohorts that have verdicts, sorted.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    rows = store.read(
        "SELECT DISTINCT substr(id, 1, instr(id, ':') - 1) FROM verdicts ORDER BY 1"
    )
    return tuple(name for (name,) in rows)


def find_kept(store: Store, cohort: str, ids: Sequence[str]) -> tuple[Verdict, ...]:
    """Return the kept verdicts on `cohort` with these ids, oldest first.

    Raises
    ------
    DataError
        The store does not have one of them for this cohort.
    StoreError
        The store cannot be read.
    """
    bare = dict.fromkeys(one.removeprefix(f"{cohort}:") for one in ids)
    if not bare:
        return ()
    found = load_verdicts(store, cohort, tuple(bare))
    known = {verdict.id for verdict in found}
    # A verdict that was given again has its own id, counted on from the first one's.
    lost = [one for one in bare if one.partition("-")[0] not in known]
    if lost:
        raise DataError(
            f"no verdict {', '.join(name[:40] for name in lost)} is kept for cohort "
            f"{cohort or '(none named)'}. See `ranloop verdict list`, or name the "
            "cohort with --cohort."
        )
    return found


def find_open(
    workspace: WorkspacePaths, store: Store, prompt: str, cohort: str
) -> tuple[KeptVerdict, ...]:
    """Return the open verdicts on a prompt and cohort, oldest first.

    Parameters
    ----------
    prompt
        Name of the prompt, or a reference to any of its versions.

    Raises
    ------
    StoreError
        A verdict cannot be read.
    LedgerError
        The ledger is broken.
    """
    names = ("", prompt.partition("@")[0])
    return tuple(
        one
        for one in read_kept(store, workspace, cohort)
        if one.state is VerdictState.OPEN
        and one.circumstances.prompt.partition("@")[0] in names
    )


def group_by_label(
    verdicts: Iterable[KeptVerdict],
) -> dict[str, tuple[KeptVerdict, ...]]:
    """Return the verdicts of each label, the label with most of them first."""
    groups: dict[str, list[KeptVerdict]] = {}
    for one in verdicts:
        groups.setdefault(one.verdict.label, []).append(one)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return {label: tuple(group) for label, group in ordered}


_LOOKUP = 500
"""Rows in one SELECT."""


class _CohortVerdicts:
    """What is known of the verdicts of one cohort."""

    def __init__(self, cohort: str) -> None:
        self._cohort = cohort
        self._given: dict[str, SubmittedVerdict] = {}
        self._kept: dict[str, KeptVerdict] = {}
        self._all: tuple[KeptVerdict, ...] = ()
        self._by_pair: dict[Pair, set[str]] = {}
        self._withdrawn: dict[str, Withdrawal] = {}
        self._seen: tuple[int, int] = (0, 0)
        self._entries: Sequence[LedgerEntry] | None = None
        self._answers: Mapping[str, list[Answered]] = {}
        self._marks: _Marks | None = None

    def read(
        self,
        store: Store,
        entries: Sequence[LedgerEntry],
        workspace: WorkspacePaths | None,
    ) -> tuple[KeptVerdict, ...]:
        """Return all, deriving anew only when verdicts or the ledger changed."""
        # Rows are only ever added, so that their number tells whether any is new.
        ((verdicts,),) = store.read(
            "SELECT count(*) FROM verdicts WHERE id >= ? AND id < ?", self._range
        )
        ((withdrawals,),) = store.read("SELECT count(*) FROM withdrawals")
        seen = (int(verdicts), int(withdrawals))
        if seen != self._seen or entries is not self._entries:
            changed = self._load(store) | self._load_withdrawals(store)
            if entries is not self._entries:
                self._answers = _find_answers(entries)
                self._entries = entries
                changed = set(self._given)
            self._derive(changed, entries, workspace)
            self._all = tuple(self._kept[one.id] for one in self._given.values())
            self._seen = seen
        return self._all

    @property
    def _range(self) -> tuple[str, str]:
        """Bounds of this cohort's ids: ``;`` follows ``:``."""
        return f"{self._cohort}:", f"{self._cohort};"

    def _load(self, store: Store) -> set[str]:
        """Decode the rows that are new and return their keys."""
        ids = store.read(
            "SELECT id FROM verdicts WHERE id >= ? AND id < ?", self._range
        )
        new = [key for (key,) in ids if key not in self._given]
        for start in range(0, len(new), _LOOKUP):
            part = new[start : start + _LOOKUP]
            marks = ",".join("?" * len(part))
            for key, created, text in store.read(
                f"SELECT id, created, payload FROM verdicts WHERE id IN ({marks})", part
            ):
                short = key.partition(":")[2]
                self._given[key] = SubmittedVerdict(short, created, *decode(key, text))
                for pair in self._given[key].pairs:
                    self._by_pair.setdefault(pair, set()).add(key)
        if new:
            by_age = sorted(
                self._given.items(), key=lambda row: (row[1].created, row[0])
            )
            self._given = dict(by_age)
        return set(new)

    def _load_withdrawals(self, store: Store) -> set[str]:
        """Read the withdrawals and return the keys of those that are new."""
        rows = store.read(
            "SELECT verdict, actor, created, reason FROM withdrawals "
            "WHERE verdict >= ? AND verdict < ?",
            self._range,
        )
        new = {key for key, *_ in rows if key.partition(":")[2] not in self._withdrawn}
        self._withdrawn = {
            key.partition(":")[2]: Withdrawal(*said) for key, *said in rows
        }
        return new & self._given.keys()

    def _derive(
        self,
        changed: set[str],
        entries: Sequence[LedgerEntry],
        workspace: WorkspacePaths | None,
    ) -> None:
        """Work out what became of these verdicts and of those they may have changed.

        A verdict depends on those that share a pair with it, and each of these, in
        what it still says of that pair, on those that share that pair.
        """
        touched = self._beside(changed)
        beside = self._beside(touched)
        given = [one for key, one in self._given.items() if key in beside]
        withdrawn = self._withdrawn
        standing = find_standing(given, withdrawn)
        correct = self._correct(given, entries, workspace)
        answered = {one.id: self._answer(one, correct) for one in given}
        left = [
            (one, standing[one.id])
            for one in given
            if one.id not in withdrawn
            and not standing[one.id].superseded_by
            and not answered[one.id]
        ]
        conflicts = find_conflicts(left)
        for key in touched:
            one = self._given[key]
            fate = _Fate(
                standing[one.id],
                answered[one.id],
                conflicts.get(one.id, ()),
                withdrawn.get(one.id),
            )
            self._kept[one.id] = _unchanged(self._kept.get(one.id), one, fate)

    def _beside(self, keys: set[str]) -> set[str]:
        """Return these keys and those of the verdicts that share a pair with one."""
        found = set(keys)
        for key in keys:
            for pair in self._given[key].pairs:
                found |= self._by_pair[pair]
        return found

    def _correct(
        self,
        given: Iterable[SubmittedVerdict],
        entries: Sequence[LedgerEntry],
        workspace: WorkspacePaths | None,
    ) -> Callable[[Verdict], str]:
        """Return what names the reference that says what a verdict asks for."""
        wrong = any(one.verdict.judgement is Judgement.REFERENCE_WRONG for one in given)
        record = find_record(entries, self._cohort) if wrong else None
        if workspace is None or record is None or not record.newest:
            return lambda verdict: ""
        number = record.newest
        digest = str(record.references[number].get("digest"))
        if self._marks is None or self._marks.digest != digest:
            self._marks = _Marks(read_reference(workspace, self._cohort, number))
        return self._marks.name_if_right

    def _answer(self, one: SubmittedVerdict, correct: Callable[[Verdict], str]) -> str:
        """Return what addressed a verdict, or nothing."""
        if one.verdict.judgement is Judgement.REFERENCE_WRONG:
            return correct(one.verdict)
        name = one.circumstances.prompt.partition("@")[0]
        first, _, again = one.id.partition("-")
        for answer in self._answers.get(first, ()):
            of_prompt = name in ("", answer.ref.partition("@")[0])
            # What was said again after a version is not answered by that version.
            if of_prompt and not (again and one.created[:19] >= answer.time[:19]):
                return answer.ref
        return ""


class Answered(NamedTuple):
    """A committed version that names a verdict."""

    ref: str
    time: str
    """When it was committed, UTC, ISO 8601 with seconds."""


class _Marks:
    """A reference, made to be asked often."""

    def __init__(self, reference: Reference) -> None:
        self.digest = reference.digest
        self._reference = reference
        self._rows = {case: row for row, case in enumerate(reference.case_ids)}
        self._columns = {label: at for at, label in enumerate(reference.labels)}

    def name_if_right(self, verdict: Verdict) -> str:
        """Return the reference's name if it says so of every case, or nothing."""
        column, value = self._columns.get(verdict.label), verdict.correct_value
        rows = [self._rows.get(case_id) for case_id in verdict.case_ids]
        if column is None or value is None or None in rows:
            return ""
        marks = {MARKS[int(self._reference.marks[row, column])] for row in rows}
        return self._reference.ref if {m.value for m in marks} == {value.value} else ""


class _Fate(NamedTuple):
    standing: RemainingPairs
    addressed_by: str
    conflicts: tuple[str, ...]
    withdrawal: Withdrawal | None

    @property
    def state(self) -> VerdictState:
        """A verdict in force stays addressed when its author goes on to another."""
        if self.withdrawal:
            return VerdictState.WITHDRAWN
        if self.addressed_by:
            return VerdictState.ADDRESSED
        superseded = self.standing.superseded_by
        return VerdictState.SUPERSEDED if superseded else VerdictState.OPEN


def _unchanged(
    known: KeptVerdict | None, given: SubmittedVerdict, fate: _Fate
) -> KeptVerdict:
    """Return the record already made, if it would be made again."""
    if known is not None and fate == (
        RemainingPairs(known.pairs, known.superseded_by),
        known.addressed_by,
        known.conflicts,
        known.withdrawal,
    ):
        return known
    return KeptVerdict(
        id=given.id,
        verdict=given.verdict,
        circumstances=given.circumstances,
        created=given.created,
        state=fate.state,
        pairs=fate.standing.pairs,
        conflicts=fate.conflicts,
        superseded_by=fate.standing.superseded_by,
        addressed_by=fate.addressed_by,
        withdrawal=fate.withdrawal,
    )


def _find_answers(entries: Iterable[LedgerEntry]) -> Mapping[str, list[Answered]]:
    """Return verdict id to the versions that name it, oldest first.

    Versions of a prompt are one line: each is committed on the newest before it.
    """
    found: dict[str, list[Answered]] = {}
    for entry in entries:
        if entry.action == "draft_committed":
            for key in entry.payload.get("verdicts", ()):
                found.setdefault(key, []).append(Answered(entry.subject, entry.time))
    return found


class SubmittedVerdict(NamedTuple):
    """One verdict as it was given."""

    id: str
    created: str
    """UTC, ISO 8601."""

    verdict: Verdict
    circumstances: VerdictContext

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """What it judges; empty for a verdict on the guide as such."""
        return tuple((case_id, self.verdict.label) for case_id in self.verdict.case_ids)

    @property
    def batch(self) -> tuple[str, str]:
        """What it was handed in with: verdicts of one file stand beside each other."""
        return self.created, self.circumstances.source


class RemainingPairs(NamedTuple):
    """What is left of a verdict after the later ones of the same reviewer."""

    pairs: tuple[Pair, ...]
    """What it still speaks for."""

    superseded_by: str
    """Id of the verdict that took its last pair; empty while it stands."""


def find_standing(
    given: Sequence[SubmittedVerdict], withdrawn: Collection[str]
) -> Mapping[str, RemainingPairs]:
    """Return what each verdict still speaks for, by id.

    A later verdict of the same reviewer on a pair takes it over, unless both came in
    one batch: a file may correct the reference and the wording of one case. A
    withdrawn verdict takes nothing over, so withdrawing gives back what it had taken.
    A verdict without cases is never superseded.

    Parameters
    ----------
    given
        Verdicts of one cohort, oldest first.
    withdrawn
        Ids of those that were withdrawn.
    """
    latest: dict[tuple[str, Pair], SubmittedVerdict] = {}
    found: dict[str, RemainingPairs] = {}
    for one in reversed(given):
        reviewer, left, by = one.verdict.reviewer, [], ""
        for pair in one.pairs:
            later = latest.get((reviewer, pair))
            if later is None or later.batch == one.batch:
                left.append(pair)
            else:
                by = later.id
        found[one.id] = RemainingPairs(tuple(left), "" if left else by)
        if one.id not in withdrawn:
            for pair in left:
                latest.setdefault((reviewer, pair), one)
    return found


def find_conflicts(
    open_: Sequence[tuple[SubmittedVerdict, RemainingPairs]],
) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of verdicts of other reviewers that disagree with each, by id.

    Two verdicts on one pair disagree when their judgements differ, or both name what
    is right, a value or the counts of a judge's errors, and it differs.
    """
    by_pair: dict[Pair, list[SubmittedVerdict]] = defaultdict(list)
    for one, standing in open_:
        for pair in standing.pairs:
            by_pair[pair].append(one)
    against: dict[str, dict[str, None]] = defaultdict(dict)
    for together in by_pair.values():
        for one in together if len(together) > 1 else ():
            others = (o.id for o in together if _disagree(one.verdict, o.verdict))
            against[one.id].update(dict.fromkeys(others))
    return {key: tuple(others) for key, others in against.items() if others}


def _disagree(one: Verdict, other: Verdict) -> bool:
    if one.reviewer == other.reviewer:
        return False
    values = {one.correct_value, other.correct_value} - {None}
    counts = {one.correct_counts, other.correct_counts} - {None}
    return one.judgement is not other.judgement or len(values) > 1 or len(counts) > 1

"""The majority of votes, a panel's decisions over it, and which marks both change.

The ledger entry of a reference version holds the decisions (``adjudicated``). When
votes come in later, a decision stands if no vote that it was made over was changed and
the pair is still in dispute; otherwise the votes decide, and the decision is listed as
lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from loop.core.errors import DataError, LedgerError
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, Value, ValueCode
from loop.core.yaml_files import read_model
from loop.labels.ballots import VOTE_CODES, Votes
from loop.labels.cohort import Cohort, CohortRecord, read_record
from loop.labels.reference import (
    CODES,
    MARKS,
    Marks,
    Reference,
    list_references,
    read_reference,
)
from loop.labels.taxonomy import NO_FINDING, Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityRule:
    """What the votes on one case and label must reach to make a reference mark.

    More than half of the readers who voted on that case and label must say the same,
    so that a reader counts only where they read: with six readers of a case that is 4
    of 6, whoever reads other cases. `need` and `minimum_readers` may ask for more,
    never for less.
    """

    need: int = 1
    """Fewest equal votes; 1 asks for nothing beyond more than half."""

    minimum_readers: int = 1
    """Fewest readers who voted on the case and label, as the protocol says."""

    no_finding_read: bool = False
    """Whether "No Finding" is a label like any other, as the protocol says; else it
    follows anew from the other labels of a case that a panel decides on."""

    @property
    def words(self) -> str:
        """The rule as ledger, page and command line say it."""
        parts = ["over half of the readers who voted on the case and label"]
        if self.need > 1:
            parts.append(f"at least {self.need} equal votes")
        if self.minimum_readers > 1:
            parts.append(f"at least {self.minimum_readers} readers")
        if self.no_finding_read:
            parts.append("No Finding as they said")
        return ", ".join(parts)

    @property
    def facts(self) -> dict[str, Any]:
        """The rule as the ledger entry of a version holds it; see `recorded_rule`."""
        facts: dict[str, Any] = {"majority": self.words}
        if self.need > 1:
            facts["need"] = self.need
        if self.minimum_readers > 1:
            facts["minimum_readers"] = self.minimum_readers
        if self.no_finding_read:
            facts["no_finding"] = "read"
        return facts


def recorded_rule(payload: Mapping[str, Any]) -> MajorityRule:
    """Return the rule by which a recorded version was made of votes.

    Entries of earlier releases hold a count of all readers, which was over half of
    them: as the fewest equal votes it gives the same marks.
    """
    return MajorityRule(
        need=int(payload.get("need", 1)),
        minimum_readers=int(payload.get("minimum_readers", 1)),
        no_finding_read=payload.get("no_finding") == "read",
    )


def newest_rule(record: CohortRecord) -> MajorityRule:
    """Return the rule of the votes that made a reference last, or the usual one."""
    made = [payload for payload in record.references.values() if "votes" in payload]
    return recorded_rule(made[-1]) if made else MajorityRule()


class _ReadersOfProtocol(BaseModel):
    """The part of ``labels/protocol.yaml`` that concerns readers."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    minimum_readers: Annotated[int, Field(ge=1)] = 1
    no_finding: Literal["derived", "read"] = "derived"


def read_rule(workspace: WorkspacePaths, *, need: int = 1) -> MajorityRule:
    """Return the rule for votes that are taken now: `need`, and what the protocol says.

    Without a protocol, or where it says nothing of readers, one reader is enough and
    "No Finding" is derived.

    Raises
    ------
    DataError
        The protocol cannot be read, or what it says of readers is wrong.
    """
    said = _ReadersOfProtocol()
    if workspace.protocol.is_file():
        said = read_model(workspace.protocol, _ReadersOfProtocol)
    return MajorityRule(
        need=need,
        minimum_readers=said.minimum_readers,
        no_finding_read=said.no_finding == "read",
    )


def majority(votes: Votes, rule: MajorityRule | None = None) -> Marks:
    """Return the reference marks that enough of those who voted agree on.

    Parameters
    ----------
    votes
        All votes; ``n`` below is the number of votes on one case and label.
    rule
        None: ``n // 2 + 1`` equal votes, which is 4 of 6.

    Returns
    -------
    Marks
        Shape ``(n_cases, n_labels)``. A tie, a scattered vote or too few readers are
        no majority, a majority of uncertain votes is uncertain, a pair nobody voted on
        is missing: none of them ever becomes absent.

    Raises
    ------
    DataError
        The rule's `need` is not from 1 to the number of readers.
    """
    rule = rule or MajorityRule()
    _require_reachable(votes, rule)
    cast = count_cast(votes)
    said = {c: (votes.values == c).sum(axis=2) for c in VOTE_CODES.values()}
    enough = np.maximum(cast // 2 + 1, rule.need)
    marks = np.full(votes.values.shape[:2], ValueCode.NO_MAJORITY, dtype=np.int8)
    for code, votes_for in said.items():
        marks[votes_for >= enough] = code
    marks[cast < rule.minimum_readers] = ValueCode.NO_MAJORITY
    marks[cast == 0] = ValueCode.MISSING
    return marks


def count_cast(votes: Votes) -> NDArray[np.int64]:
    """Return how many readers voted on each pair, shape ``(n_cases, n_labels)``."""
    cast: NDArray[np.int64] = (votes.values != ValueCode.NOT_VOTED).sum(
        axis=2, dtype=np.int64
    )
    return cast


def _require_reachable(votes: Votes, rule: MajorityRule) -> None:
    of = len(votes.readers)
    if not 1 <= rule.need <= of:
        raise DataError(
            f"{rule.need} equal votes of {of} readers cannot make a majority. Use 1 to "
            f"{of}; 1 asks for over half of those who voted and no more."
        )


_DECIDED = (Mark.PRESENT, Mark.ABSENT, Mark.UNCERTAIN)


class Superseded(NamedTuple):
    """What is lost from one reference version to the next."""

    corrections: int
    """Marks corrected since the last votes or import, and now different again."""

    missing: int
    """Marks that become missing: of labels or pairs that nobody voted on."""


class MarkChange(NamedTuple):
    """One mark that another takes the place of."""

    case_id: str
    label: str
    """Label id."""

    was: Mark
    becomes: Mark

    @property
    def undecides(self) -> bool:
        """Whether a mark that said something becomes one that does not."""
        return self.was in _DECIDED and self.becomes not in _DECIDED


class Shift(NamedTuple):
    """How many marks of one label change in the same way."""

    label: str
    was: Mark
    becomes: Mark
    marks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkChanges:
    """Every mark in which a new reference version differs from the newest one."""

    rows: tuple[MarkChange, ...]
    """Decided marks that become undecided first, then other decided marks, then those
    that were undecided or missing; each in the order of labels and cases."""

    @property
    def undecided(self) -> int:
        """Marks that said something and will not."""
        return sum(row.undecides for row in self.rows)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The same, counted per label, in the order of `rows`."""
        counts = Counter((row.label, row.was, row.becomes) for row in self.rows)
        return tuple(Shift(*what, number) for what, number in counts.items())


class Newest(NamedTuple):
    """The newest reference version, as far as it can be believed."""

    reference: Reference | None
    """None without a version, or with one that cannot be read."""

    origin: Reference | None
    """The version that corrections, one after the other, made it of."""

    exists: bool


def read_newest(workspace: WorkspacePaths, cohort: Cohort) -> Newest:
    """Return the newest reference version; nothing of one edited, removed or sealed.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    record = read_record(workspace, cohort.name)
    if not record.newest and not list_references(workspace, cohort.name):
        return Newest(None, None, exists=False)
    try:
        newest = read_reference(workspace, cohort.name)
        origin = read_reference(workspace, cohort.name, record.origin(newest.number))
    except LedgerError:
        raise
    except DataError:
        return Newest(None, None, exists=True)
    return Newest(newest, origin, exists=True)


def find_untouched(
    before: Votes,
    after: Votes,
    *,
    rule_before: MajorityRule,
    rule_after: MajorityRule,
) -> NDArray[np.bool_]:
    """Return where no vote changed and the rule gives the same, ``(cases, labels)``.

    There the newest reference stands, corrections by verdict included: whoever reads
    other cases, or other labels, re-judges nothing here.
    """
    labels, readers = after.labels, tuple(sorted({*before.readers, *after.readers}))
    old, new = _align(before, labels, readers), _align(after, labels, readers)
    touched = (old.values != new.values).any(axis=2)
    touched |= majority(old, rule_before) != majority(new, rule_after)
    if NO_FINDING in labels:
        how = rule_before.no_finding_read, rule_after.no_finding_read
        touched[:, labels.index(NO_FINDING)] |= how[0] is not how[1]
    untouched: NDArray[np.bool_] = (new.values != ValueCode.NOT_VOTED).any(
        axis=2
    ) & ~touched
    return untouched


def keep_marks(
    newest: Reference,
    labels: Sequence[str],
    marks: Marks,
    untouched: NDArray[np.bool_],
    *,
    no_finding_read: bool = False,
) -> Marks:
    """Return `marks` of `labels`, with those of `newest` where nothing was touched.

    Unless it was read, "No Finding" follows from the other labels: it is kept where all
    of them are as they were.
    """
    kept = marks.copy()
    same = np.ones(len(marks), dtype=np.bool_)
    # The derived label last.
    for label in sorted(labels, key=lambda one: one == NO_FINDING):
        if label not in newest.labels:
            continue
        column, before = list(labels).index(label), newest.labels.index(label)
        follows = label == NO_FINDING and not no_finding_read
        rows = untouched[:, column] & (same if follows else True)
        kept[rows, column] = newest.marks[rows, before]
        same &= kept[:, column] == newest.marks[:, before]
    return kept


def count_superseded(
    newest: Newest, labels: Sequence[str], marks: Marks
) -> Superseded | None:
    """Return what new marks of `labels` take from the newest version.

    Zeros when there is no version yet; None when that version, or the one that was
    corrected to make it, was edited or removed, so that nothing can be counted.
    """
    before, origin = newest.reference, newest.origin
    if before is None or origin is None:
        return None if newest.exists else Superseded(0, 0)
    after = _spread(before.labels, labels, marks)
    corrected = (origin.marks != before.marks) & (after != before.marks)
    missing = (before.marks != ValueCode.MISSING) & (after == ValueCode.MISSING)
    return Superseded(int(corrected.sum()), int(missing.sum()))


def list_changes(
    newest: Newest, votes: Votes, marks: Marks, order: Sequence[str]
) -> MarkChanges | None:
    """Return every mark that `marks` change; None where nobody can tell.

    A pair that the newest version has no mark of was missing.

    Parameters
    ----------
    votes
        Name the rows and columns of `marks`.
    order
        Every label id, in the order of the taxonomy.
    """
    before = newest.reference
    if before is None and newest.exists:
        return None
    known = before.labels if before else ()
    labels = [name for name in order if name in {*known, *votes.labels}]
    new = _spread(labels, votes.labels, marks)
    old = np.full(new.shape, ValueCode.MISSING, dtype=np.int8)
    if before is not None:
        old = _spread(labels, before.labels, before.marks)
    rows = [
        MarkChange(
            votes.case_ids[row],
            labels[column],
            MARKS[int(old[row, column])],
            MARKS[int(new[row, column])],
        )
        for column, row in np.argwhere((old != new).T).tolist()
    ]
    rows.sort(key=lambda one: (not one.undecides, one.was not in _DECIDED))
    return MarkChanges(rows=tuple(rows))


def _spread(wanted: Sequence[str], labels: Sequence[str], marks: Marks) -> Marks:
    """Return `marks` in the columns of `wanted`; a label they lack is missing."""
    after = np.full((len(marks), len(wanted)), ValueCode.MISSING, dtype=np.int8)
    at: Mapping[str, int] = {name: column for column, name in enumerate(labels)}
    for column, label in enumerate(wanted):
        if label in at:
            after[:, column] = marks[:, at[label]]
    return after


def _align(votes: Votes, labels: tuple[str, ...], readers: tuple[str, ...]) -> Votes:
    """Return `votes` with exactly these labels and readers."""
    shape = (len(votes.case_ids), len(labels), len(readers))
    values = np.full(shape, ValueCode.NOT_VOTED, dtype=np.int8)
    layers = [readers.index(name) for name in votes.readers]
    for source, label in enumerate(votes.labels):
        if label in labels:
            values[:, labels.index(label), layers] = votes.values[:, source, :]
    return Votes(readers=readers, case_ids=votes.case_ids, labels=labels, values=values)


Decisions = Mapping[tuple[str, str], Mark]
"""``(case id, label id)`` to the mark that a panel decided on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudications:
    """What became of earlier decisions when votes came in."""

    kept: int = 0
    """Decisions that stand in the new version."""

    lost: tuple[tuple[str, str], ...] = ()
    """``(case id, label id)`` that the votes decide again."""


class AdjudicatedMarks(NamedTuple):
    """Marks with the earlier decisions that still stand."""

    marks: Marks
    decisions: Decisions
    outcome: Adjudications


def recorded_decisions(record: CohortRecord) -> dict[tuple[str, str], Mark]:
    """Return what was decided over the votes that count now; the last one on a pair."""
    found: dict[tuple[str, str], Mark] = {}
    for payload in record.references.values():
        if "votes" in payload:
            found = {}
        for case_id, label, mark in payload.get("adjudicated", ()):
            found[case_id, label] = Mark(mark)
    return found


def decision_facts(decisions: Decisions) -> list[list[str]]:
    """Return `decisions` as the ledger holds them, sorted."""
    return sorted(
        [case, label, mark.value] for (case, label), mark in decisions.items()
    )


def find_disputed(votes: Votes, marks: Marks) -> NDArray[np.bool_]:
    """Return where readers are in dispute, shape ``(n_cases, n_labels)``.

    There is no majority, or not all who voted said the same. `marks` are what the
    votes alone say.
    """
    said = np.stack([(votes.values == c).any(axis=2) for c in VOTE_CODES.values()])
    disputed: NDArray[np.bool_] = (marks == ValueCode.NO_MAJORITY) | (
        said.sum(axis=0) > 1
    )
    return disputed


def decide_marks(
    names: tuple[Sequence[str], Sequence[str]],
    marks: Marks,
    decisions: Decisions,
    taxonomy: Taxonomy,
    *,
    no_finding_read: bool = False,
) -> Marks:
    """Return `marks` with `decisions` in place.

    "No Finding" of a case that was decided on follows from its other labels, unless it
    was decided itself or one of them is open.

    Parameters
    ----------
    names
        Case ids and label ids, for the rows and columns of `marks`.
    no_finding_read
        Leave "No Finding" as the readers said, whatever its other labels are.
    """
    rows, columns = ({name: at for at, name in enumerate(each)} for each in names)
    made = marks.copy()
    for (case_id, label), mark in decisions.items():
        made[rows[case_id], columns[label]] = CODES[mark]
    if NO_FINDING in columns and not no_finding_read:
        for case_id in {case for case, _ in decisions}:
            if (case_id, NO_FINDING) not in decisions:
                row = made[rows[case_id]]
                row[columns[NO_FINDING]] = _derive(row, names[1], taxonomy)
    return made


def keep_decisions(
    workspace: WorkspacePaths,
    before: Votes | None,
    after: Votes,
    marks: Marks,
    taxonomy: Taxonomy,
    cohort_name: str,
    *,
    no_finding_read: bool,
) -> AdjudicatedMarks:
    """Return `marks` of new votes with the decisions over the votes before that stand.

    Parameters
    ----------
    before
        The votes before, None when they cannot be believed.
    after
        The new votes.
    marks
        What the new votes alone say.
    no_finding_read
        As in `decide_marks`.

    Raises
    ------
    LedgerError
        The ledger is broken.
    """
    recorded = recorded_decisions(read_record(workspace, cohort_name))
    in_force = _in_force(workspace, cohort_name, recorded)
    disputed = find_disputed(after, marks)
    standing = {
        pair: mark
        for pair, mark in in_force.items()
        if before is not None and _untouched(before, after, disputed, pair)
    }
    named = (after.case_ids, after.labels)
    made = decide_marks(
        named, marks, standing, taxonomy, no_finding_read=no_finding_read
    )
    return AdjudicatedMarks(
        made,
        standing,
        Adjudications(
            kept=len(standing),
            lost=tuple(pair for pair in in_force if pair not in standing),
        ),
    )


def _in_force(
    workspace: WorkspacePaths, cohort_name: str, recorded: Decisions
) -> dict[tuple[str, str], Mark]:
    """Return the decisions that the newest version still shows.

    A verdict may have corrected one since. With a version that was edited or is gone
    nobody can tell, and all of them count.
    """
    if not recorded:
        return {}
    try:
        reference = read_reference(workspace, cohort_name)
        return {
            pair: mark
            for pair, mark in recorded.items()
            if reference.mark(*pair) is mark
        }
    except LedgerError:
        raise
    except DataError:
        return dict(recorded)


def _untouched(
    before: Votes, after: Votes, disputed: NDArray[np.bool_], pair: tuple[str, str]
) -> bool:
    """Whether every earlier vote on `pair` is as it was, and it is still in dispute."""
    case_id, label = pair
    if label not in after.labels:
        return False
    at = after.case_ids.index(case_id), after.labels.index(label)
    old, new = _ballots(before, case_id, label), _ballots(after, case_id, label)
    return bool(disputed[at]) and old.items() <= new.items()


def _ballots(votes: Votes, case_id: str, label: str) -> dict[str, int]:
    """Return reader to code of everyone who voted on one pair."""
    if label not in votes.labels:
        return {}
    cell = votes.values[votes.case_ids.index(case_id), votes.labels.index(label)]
    said = zip(votes.readers, cell.tolist(), strict=True)
    return {reader: code for reader, code in said if code != ValueCode.NOT_VOTED}


def _derive(row: NDArray[np.int8], labels: Sequence[str], taxonomy: Taxonomy) -> int:
    """Return the code of "No Finding" that follows from a row, or the one it has."""
    marks = {label: MARKS[int(code)] for label, code in zip(labels, row, strict=True)}
    said = tuple(Value)
    values = {name: Value(m.value) for name, m in marks.items() if m.value in said}
    derived = taxonomy.derive_no_finding(values)
    return CODES[marks[NO_FINDING] if derived is None else Mark(derived.value)]

"""Ballots: what every reader said of every case and label, and the file of it.

The votes of a cohort are read only as the ledger recorded them, sealed for a holdout,
and never lost: those that others take the place of are moved to the private folder.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loop.core.errors import DataError, LoopError, UnknownLabelError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark, Value, ValueCode
from loop.core.safe_text import format_csv, quoted
from loop.labels.cohort import (
    Cohort,
    CohortRecord,
    CohortRole,
    cohort_folder,
    read_record,
)
from loop.labels.importing.source import (
    ROLES,
    label_columns,
    read_mark,
    read_meanings,
)
from loop.labels.importing.table_files import SourceTable, frame_table, open_table
from loop.labels.reference import Marks, add_version, format_reference
from loop.labels.sealing import (
    Opening,
    is_digest_of,
    is_stored,
    label_digest,
    read_stored,
    refuse_plain,
    remove_file,
    require_opening,
    sealed_path,
    write_labels,
)
from loop.labels.taxonomy import Taxonomy, fold_name
from loop.stats.reliability import UNRATED

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("reader", "case_id", "label", "value")
VOTE_CODES: Mapping[Value, ValueCode] = {one: ValueCode[one.name] for one in Value}
_VALUES: Mapping[int, Value] = {code: value for value, code in VOTE_CODES.items()}
_CODES = {value.value: code for value, code in VOTE_CODES.items()}

_Ballot: TypeAlias = tuple[str, str, str]
"""Reader, case id and label id."""


class Turnout(NamedTuple):
    """Who voted on which case, and nothing of what was said."""

    readers: tuple[str, ...]
    case_ids: tuple[str, ...]
    voted: NDArray[np.bool_]
    """Whether there is a vote on any label; ``(n_cases, n_readers)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """What every reader said of every case and label."""

    readers: tuple[str, ...]
    """Sorted by name."""

    case_ids: tuple[str, ...]
    """All cases of the cohort, in its order, with or without votes."""

    labels: tuple[str, ...]
    """Labels that were voted on, in taxonomy order."""

    values: NDArray[np.int8]
    """Shape ``(n_cases, n_labels, n_readers)``; codes of `VOTE_CODES`, or not voted."""

    @property
    def count(self) -> int:
        """Number of votes."""
        return int((self.values != ValueCode.NOT_VOTED).sum())

    def ratings(self, label: str, *, uncertain: int = UNRATED) -> NDArray[np.int8]:
        """Return the ratings of one label as categories, ``(n_cases, n_readers)``.

        1 present, 0 absent, -1 none, as `loop.stats.reliability` takes them;
        `uncertain` is the category of uncertain votes: -1 leaves them out, 2 makes them
        a category of their own.
        """
        chosen = self.values[:, self.labels.index(label), :]
        rated = np.where(chosen == ValueCode.UNCERTAIN, uncertain, chosen)
        rated[chosen == ValueCode.NOT_VOTED] = UNRATED
        return rated.astype(np.int8)


def read_votes(
    source: Path | DataFrame,
    cohort: Cohort,
    taxonomy: Taxonomy,
    values: Mapping[str, str] | None = None,
) -> Votes:
    """Return the votes of a table: one vote a row, or one reader and case a row.

    The first has the columns reader, case_id, label and value; the second reader,
    case_id and one column per label, in which a blank cell is no vote. CSV, TSV, JSON,
    Parquet, Excel or a DataFrame; columns may be in any order, and the case id under
    any of the names it has in a table of cases.

    Parameters
    ----------
    values
        Word of a cell to what it means, ``{"yes": "present"}``.

    Raises
    ------
    DataError
        A column is missing, a case is not in the cohort, a value is unknown, a vote
        appears twice, or there is no vote; names the line.
    UnknownLabelError
        A label is not in the taxonomy; names the line.
    """
    table = _open_votes(source)
    found = _iter_votes(table, taxonomy, read_meanings(values or {}))
    return _gather(found, cohort, taxonomy, table.name)


def parse_votes(raw: bytes, cohort: Cohort, taxonomy: Taxonomy, path: Path) -> Votes:
    """Return the votes of a file that `format_votes` made; `path` is for messages.

    Raises
    ------
    DataError
        It is not such a file, a case is not in the cohort, a vote appears twice, or
        there is no vote; names the line.
    UnknownLabelError
        A label is not in the taxonomy.
    """
    found = _read_whole(raw, cohort, taxonomy)
    if found is None:
        # Line by line, to name the one that is wrong.
        found = _gather(_iter_kept(raw, taxonomy, path), cohort, taxonomy, str(path))
    return found


def parse_turnout(raw: bytes, cohort: Cohort, path: Path) -> Turnout:
    """Return who voted on what, of a file that `format_votes` made.

    Label and value, the last two cells, need no quotes there and are not looked at.

    Raises
    ------
    DataError
        It is not such a file, or a case is not in the cohort.
    """
    try:
        if b'"' in raw:
            rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
            next(rows)
            pairs = {(row[0], row[1]) for row in rows}
        else:
            lines = raw.decode("utf-8").split("\n")[1:-1]
            heads = {line.rsplit(",", 2)[0] for line in lines}
            pairs = {(head[0], head[1]) for head in (h.split(",") for h in heads)}
        readers = tuple(sorted({reader for reader, _ in pairs}))
        layers = {reader: at for at, reader in enumerate(readers)}
        places = {case: at for at, case in enumerate(cohort.case_ids)}
        voted = np.zeros((len(places), len(readers)), dtype=np.bool_)
        for reader, case in pairs:
            voted[places[case], layers[reader]] = True
    except (ValueError, IndexError, KeyError, StopIteration, csv.Error) as error:
        raise DataError(f"{path} is not a file of votes. Restore it.") from error
    return Turnout(readers, cohort.case_ids, voted)


def _read_whole(raw: bytes, cohort: Cohort, taxonomy: Taxonomy) -> Votes | None:
    """Return the votes of a file in the form it is kept in; None when it is not."""
    try:
        text = raw.decode("utf-8")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        if tuple(next(rows, ())) != COLUMNS:
            return None
        names, cases, labels, words = zip(*rows, strict=True)
    except (ValueError, csv.Error):
        return None
    readers, voted = tuple(sorted(set(names))), set(labels)
    kinds = tuple(label for label in taxonomy.ids if label in voted)
    if len(kinds) != len(voted) or not readers[0]:
        return None
    try:
        at = tuple(
            np.fromiter(map(_places(known).__getitem__, cells), np.intp, len(cells))
            for known, cells in (
                (cohort.case_ids, cases),
                (kinds, labels),
                (readers, names),
            )
        )
        codes = np.fromiter(map(_CODES.__getitem__, words), np.int8, len(words))
    except KeyError:
        return None
    values = np.full(
        (len(cohort.case_ids), len(kinds), len(readers)),
        ValueCode.NOT_VOTED,
        dtype=np.int8,
    )
    values[at] = codes
    if int((values != ValueCode.NOT_VOTED).sum()) != len(codes):
        return None
    return Votes(readers=readers, case_ids=cohort.case_ids, labels=kinds, values=values)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: at for at, name in enumerate(names)}


def _gather(
    votes: Iterable[tuple[str, _Ballot, Value]],
    cohort: Cohort,
    taxonomy: Taxonomy,
    source: str,
) -> Votes:
    """Return `votes` as a table, after checking that they fit the cohort."""
    known = {case.case_id for case in cohort.cases}
    ballots: dict[_Ballot, tuple[Value, str]] = {}
    for where, ballot, value in votes:
        if ballot[1] not in known:
            raise DataError(
                f"{where}: cohort {cohort.name!r} has no case {quoted(ballot[1])}. "
                "Correct the id, or name the cohort that was read."
            )
        if ballot in ballots:
            raise DataError(
                f"{where}: {quoted(ballot[0])} already voted on {ballot[2]} of case "
                f"{quoted(ballot[1])} at {ballots[ballot][1]}. Keep one of the two."
            )
        ballots[ballot] = (value, where)
    if not ballots:
        raise DataError(f"{source} holds no vote. Give {','.join(COLUMNS)} lines.")
    return _tabulate(ballots, cohort, taxonomy)


def format_votes(votes: Votes) -> bytes:
    """Return the file of `votes`: label ids, values spelled out, LF line ends."""
    values = votes.values.tolist()
    voted = np.argwhere(votes.values != ValueCode.NOT_VOTED).tolist()
    rows = (
        (
            votes.readers[reader],
            votes.case_ids[case],
            votes.labels[label],
            _VALUES[values[case][label][reader]],
        )
        for case, label, reader in voted
    )
    return format_csv(COLUMNS, rows, end="\n").encode("utf-8")


def _open_votes(source: Path | DataFrame) -> SourceTable:
    """Open a table of votes."""
    if not isinstance(source, Path):
        return frame_table(source)
    if not os.path.isfile(source):
        raise DataError(f"{source} does not exist or is not a file. Check the path.")
    return open_table(source, other=".csv")


class _VoteColumns(NamedTuple):
    """Which columns of a table of votes hold what."""

    reader: str
    case_id: str
    labels: Mapping[str, str]
    """Label id to its column; empty where a row is one vote."""


def _find_vote_columns(table: SourceTable, taxonomy: Taxonomy) -> _VoteColumns:
    """Return what the columns hold; without one for the label, each label has its own.

    Raises
    ------
    DataError
        A column is missing, a column is almost a label, or two are the same one.
    """
    folded = {fold_name(name): name for name in reversed(table.header)}
    ids = (folded[fold_name(a)] for a in ROLES["case_id"] if fold_name(a) in folded)
    case_id = "case_id" if "case_id" in table.header else next(ids, "case_id")
    columns = _VoteColumns("reader", case_id, {})
    if {"label", "value"} & set(table.header):
        table.require(("reader", case_id, "label", "value"))
        return columns
    others = [name for name in table.header if name not in ("reader", case_id)]
    labels = label_columns(others, taxonomy, table.name)
    if not labels or {"reader", case_id} - set(table.header):
        raise DataError(
            f"{table.name}: no table of votes. Give the columns {','.join(COLUMNS)}, "
            "one vote a row; or reader,case_id and a column per label, one reader and "
            "case a row."
        )
    return columns._replace(labels=labels)


def _iter_votes(
    table: SourceTable, taxonomy: Taxonomy, values: Mapping[str, Mark]
) -> Iterator[tuple[str, _Ballot, Value]]:
    """Yield where it is, (reader, case, label) and value of each vote."""
    columns = _find_vote_columns(table, taxonomy)
    wide = columns.labels
    rest = tuple(wide.values()) or COLUMNS[2:]
    for row in table.read((columns.reader, columns.case_id, *rest)):
        where = row.where
        reader, case_id = row.text(columns.reader), row.text(columns.case_id)
        if not reader or not case_id:
            raise DataError(f"{where}: no reader or no case id. Fill in both.")
        if not wide:
            name = row.text("label")
            try:
                label = taxonomy.find(name).id
            except UnknownLabelError as error:
                raise UnknownLabelError(f"{where}: {error}") from error
            vote = _read_vote(row.cells.get("value"), where, values)
            yield where, (reader, case_id, label), vote
        for label, name in wide.items():
            mark = read_mark(row.cells.get(name), name, where, values)
            if mark is not Mark.MISSING:
                yield where, (reader, case_id, label), _as_vote(mark, where)


def _iter_kept(
    raw: bytes, taxonomy: Taxonomy, path: Path
) -> Iterator[tuple[str, _Ballot, Value]]:
    """Yield what `_iter_votes` does, of a file in the one form it is kept in."""
    try:
        text = raw.decode("utf-8")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        if tuple(next(rows, ())) != COLUMNS:
            raise ValueError("another header")
        for reader, case_id, name, word in rows:
            ballot = reader, case_id, taxonomy.find(name).id
            yield f"{path.name}, line {rows.line_num}", ballot, Value(word)
    except UnknownLabelError as error:
        raise UnknownLabelError(
            f"{path.name}, line {rows.line_num}: votes on {name[:60]!r}, and the "
            "taxonomy has no such label any more. Put it back into "
            "labels/taxonomy.yaml; list the old name under `aliases` of the label "
            "that it became; or import the cohort again with --replace, and then the "
            "votes that shall count."
        ) from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path} is not a file of votes. Restore it.") from error


def _read_vote(cell: object, where: str, values: Mapping[str, Mark]) -> Value:
    return _as_vote(read_mark(cell, "value", where, values), where)


def _as_vote(mark: Mark, where: str) -> Value:
    if mark.value not in tuple(Value):
        raise DataError(
            f"{where}: a vote is present, absent or uncertain. Correct the value, or "
            "remove the line if the reader did not vote."
        )
    return Value(mark.value)


def _tabulate(
    ballots: Mapping[_Ballot, tuple[Value, str]],
    cohort: Cohort,
    taxonomy: Taxonomy,
) -> Votes:
    readers = tuple(sorted({reader for reader, _, _ in ballots}))
    voted = {label for _, _, label in ballots}
    labels = tuple(label for label in taxonomy.ids if label in voted)
    case_ids = cohort.case_ids
    rows, columns, layers = (
        {name: index for index, name in enumerate(names)}
        for names in (case_ids, labels, readers)
    )
    shape = (len(case_ids), len(labels), len(readers))
    values = np.full(shape, ValueCode.NOT_VOTED, dtype=np.int8)
    for (reader, case_id, label), (value, _) in ballots.items():
        values[rows[case_id], columns[label], layers[reader]] = VOTE_CODES[value]
    return Votes(readers=readers, case_ids=case_ids, labels=labels, values=values)


def votes_lock(workspace: WorkspacePaths, cohort_name: str) -> Path:
    """Lock file that whoever changes the votes of a cohort holds."""
    return workspace.open_private() / "locks" / f"votes-{cohort_name}.lock"


def votes_path(workspace: WorkspacePaths, cohort_name: str) -> Path:
    """File with the votes of a cohort."""
    return cohort_folder(workspace, cohort_name) / "votes.csv"


def read_cohort_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    taxonomy: Taxonomy,
    *,
    opening: Opening | None = None,
) -> Votes:
    """Return the votes kept with `cohort`.

    Parameters
    ----------
    opening
        What lets the votes of a holdout be read; nothing else does.

    Raises
    ------
    SealedError
        The cohort is a holdout, and `opening` does not open it.
    DataError
        There are none, the file is wrong, or not the one that the ledger recorded.
    """
    path = votes_path(workspace, cohort.name)
    record = read_record(workspace, cohort.name)
    refuse_plain(path, sealed=record.is_holdout)
    if record.is_holdout and (is_stored(path) or record.votes):
        require_opening(workspace, record, opening)
    return _read_recorded(workspace, cohort, taxonomy, record)


def read_turnout(workspace: WorkspacePaths, cohort: Cohort) -> Turnout | None:
    """Return who voted on which case, also of a holdout; None when nobody has.

    Raises
    ------
    DataError
        The file is wrong, or not the one that the ledger recorded.
    """
    record = read_record(workspace, cohort.name)
    if record.votes is None:
        return None
    raw = _read_bytes(workspace, cohort, record)
    return parse_turnout(raw, cohort, votes_path(workspace, cohort.name))


def _read_recorded(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, record: CohortRecord
) -> Votes:
    """Return the votes that the ledger recorded; whether one may is asked before."""
    raw = _read_bytes(workspace, cohort, record)
    return parse_votes(raw, cohort, taxonomy, votes_path(workspace, cohort.name))


def _read_bytes(
    workspace: WorkspacePaths, cohort: Cohort, record: CohortRecord
) -> bytes:
    """Return the file of votes, if it is the one that the ledger recorded."""
    path = votes_path(workspace, cohort.name)
    if not is_stored(path) and record.votes is None:
        raise DataError(
            f"cohort {cohort.name!r} has no readers' votes ({path} does not exist). "
            f"Add them with `ranloop cohort votes {cohort.name} FILE`."
        )
    sealed = record.is_holdout
    raw = read_stored(workspace, path, sealed=sealed)
    if raw is None or not is_digest_of(workspace, record.votes, raw):
        raise DataError(not_as_recorded(workspace, cohort))
    return raw


class StoredVotes(NamedTuple):
    """Votes that new ones are added to."""

    votes: Votes | None
    sound: bool
    """False when there is a votes file, or should be one, that cannot be believed."""


def find_kept(
    workspace: WorkspacePaths, cohort: Cohort, taxonomy: Taxonomy, new: Votes
) -> StoredVotes:
    """Return the recorded votes of `cohort`.

    An earlier try that was killed may have moved them away, or left those of `new`.
    """
    path, sealed = votes_path(workspace, cohort.name), cohort.role is CohortRole.HOLDOUT
    refuse_plain(path, sealed=sealed)
    recorded = read_record(workspace, cohort.name).votes
    if recorded is None:
        left = read_stored(workspace, path, sealed=sealed)
        return StoredVotes(None, left in (None, format_votes(new)))
    for place in (path, _replaced_path(workspace, cohort.name, recorded)):
        raw = read_stored(workspace, place, sealed=sealed)
        if raw is not None and is_digest_of(workspace, recorded, raw):
            return StoredVotes(parse_votes(raw, cohort, taxonomy, place), True)
    return StoredVotes(None, False)


def _replaced_path(workspace: WorkspacePaths, name: str, digest: str) -> Path:
    return workspace.private / "replaced" / f"{name}-votes-{digest[:12]}.csv"


def not_as_recorded(workspace: WorkspacePaths, cohort: Cohort) -> str:
    """Return the message for votes that differ from what the ledger says."""
    name = cohort.name
    path = votes_path(workspace, name)
    recorded = read_record(workspace, name).votes
    what = f"recorded with {recorded[:12]}" if recorded else "never recorded"
    sealed = cohort.role is CohortRole.HOLDOUT
    raw = read_stored(workspace, path, sealed=sealed)
    found = "is gone"
    if raw is not None:
        found = f"has the digest {label_digest(workspace, raw, sealed=sealed)[:12]}"
    return (
        f"{path} {found} and was {what} in the ledger. Restore it from version control "
        "or a backup, or give the votes of all readers that shall count with "
        f"`ranloop cohort votes {name} FILE --replace`."
    )


def write_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    votes: Votes,
    marks: Marks,
    *,
    actor: Actor,
    reason: str,
    facts: Mapping[str, Any],
) -> int:
    """Write votes and reference, both or neither; return the version's number.

    Whoever calls holds `votes_lock` and `version_lock`.

    Parameters
    ----------
    marks
        What the readers' votes come to.
    facts
        What else the ledger shall know.
    """
    raw, target = format_votes(votes), votes_path(workspace, cohort.name)
    sealed = cohort.role is CohortRole.HOLDOUT
    before = read_stored(workspace, target, sealed=sealed)
    if before is not None and before != raw:
        place = _replaced_path(workspace, cohort.name, _name(workspace, cohort, before))
        write_labels(workspace, place, before, sealed=sealed, mode=0o600)
    write_labels(workspace, target, raw, sealed=sealed)
    try:
        digest = label_digest(workspace, raw, sealed=sealed)
        return add_version(
            workspace,
            cohort,
            format_reference(cohort.case_ids, votes.labels, marks),
            actor=actor,
            reason=reason,
            facts={"votes": digest, **facts},
        )
    except LoopError:
        if before is None:
            remove_file(sealed_path(target) if sealed else target)
        else:
            write_labels(workspace, target, before, sealed=sealed)
        raise


def _name(workspace: WorkspacePaths, cohort: Cohort, raw: bytes) -> str:
    """Return the digest by which votes that others take the place of are found."""
    recorded = read_record(workspace, cohort.name).votes
    if recorded is not None and is_digest_of(workspace, recorded, raw):
        return recorded
    return label_digest(workspace, raw, sealed=cohort.role is CohortRole.HOLDOUT)

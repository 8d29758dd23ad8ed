"""Complete readings become votes, and the votes a new reference version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.records import Value, ValueCode
from loop.labels.ballots import VOTE_CODES, Turnout, Votes
from loop.labels.cohort import Cohort
from loop.labels.taxonomy import NO_FINDING, Taxonomy
from loop.labels.votes import Taking, VotesReport, preview_votes, take_votes
from loop.review.reading.answers import read_answers, read_guidelines
from loop.review.reading.assignment import (
    Assignment,
    check_reader,
    positions,
    pseudonym_of,
    voted_cases,
)
from loop.review.reading.reader_progress import (
    ReaderProgress,
    ReadingProgress,
    complete_cases,
    measure_progress,
)
from loop.run.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Whose readings become votes, and how."""

    readers: tuple[str, ...] = ()
    """Names; empty: everyone with a complete case."""

    need: int | None = None
    """Fewest equal votes, beyond over half of those who voted; None: as recorded."""

    pseudonymous: bool = False
    """Whether votes and ledger name pseudonyms, keyed with the workspace's own key."""

    replace: bool = False
    """Whether readers may lose votes that they gave before and have no more."""

    reason: str = ""
    """Why, for the ledger; nothing is published without."""

    expected: str | None = None
    """Digest of the preview that was confirmed: nothing else is published. None
    publishes whatever there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedReader:
    """What of one reader was published."""

    reader: str
    published_as: str
    """The same name, or the pseudonym."""

    complete: int
    """Cases published."""

    begun: int
    """Cases left out because a label has no value yet."""

    blind: bool
    """False: some answers came after this person's first verdict on the cohort."""

    guidelines: tuple[str, ...]
    """Beside which the answers were given, for the ledger; see `read_guidelines`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What became of the readings of a cohort, or would."""

    votes: VotesReport
    readers: tuple[PublishedReader, ...]


def publish_readings(
    workspace: WorkspacePaths,
    store: Store,
    assignment: Assignment,
    wanted: Publication,
    actor: Actor,
) -> Published:
    """Make votes of complete readings, and a new reference version of all votes.

    Only complete cases count; those begun are left out and counted. Unless readers
    label "No Finding", it is derived for each from the other labels. Published again
    after corrections, the votes of these readers take the place of their earlier ones;
    readers of other sources keep theirs. The ledger entry names the readers that were
    not blind, and the guidelines that each of those published had beside the cases.

    Raises
    ------
    ConflictError
        It would not be what `wanted` expects; nothing was changed.
    DataError
        There is no reason, nothing to publish, a reader was published under the other
        kind of name, earlier votes would be lost and `wanted` does not allow it, or
        the votes kept are not those recorded; nothing was changed.
    StoreError
        The store cannot be read; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    if not wanted.reason.strip():
        raise DataError(
            "a publication needs a reason: the ledger records it. Say why these "
            "readings become votes now."
        )
    return _publish(workspace, store, assignment, wanted, actor, take=take_votes)


def preview_publication(
    workspace: WorkspacePaths,
    store: Store,
    assignment: Assignment,
    wanted: Publication,
    actor: Actor,
) -> Published:
    """Return what `publish_readings` would do now, and nothing is changed.

    `Published.votes.digest` is what a publication that expects just this is given.

    Raises
    ------
    DataError
        It would be refused, for another cause than a missing reason.
    StoreError
        The store cannot be read.
    """
    return _publish(workspace, store, assignment, wanted, actor, take=preview_votes)


def _publish(
    workspace: WorkspacePaths,
    store: Store,
    assignment: Assignment,
    wanted: Publication,
    actor: Actor,
    *,
    take: Callable[[WorkspacePaths, Cohort, Votes, Taxonomy, Taking], VotesReport],
) -> Published:
    """Hand the complete readings to `take`, to make votes of them or only look."""
    chosen = _choose(store, assignment, wanted.readers)
    names, others = _names(workspace, [one.reader for one in chosen], wanted)
    readings = {
        names[one.reader]: _complete(store, assignment, one.reader) for one in chosen
    }
    guidelines = {
        names[one.reader]: read_guidelines(
            store, assignment, one.reader, readings[names[one.reader]]
        )
        for one in chosen
    }
    report = take(
        workspace,
        assignment.cohort,
        _tabulate(assignment, readings),
        assignment.taxonomy,
        Taking(
            need=wanted.need,
            actor=actor,
            replace=True,
            lose=wanted.replace,
            blind={names[one.reader]: one.blind for one in chosen},
            other_names=others,
            guidelines=guidelines,
            reason=wanted.reason,
            expected=wanted.expected,
        ),
    )
    return Published(
        votes=report,
        readers=tuple(
            PublishedReader(
                reader=one.reader,
                published_as=names[one.reader],
                complete=len(readings[names[one.reader]]),
                begun=one.begun,
                blind=one.blind,
                guidelines=guidelines[names[one.reader]],
            )
            for one in chosen
        ),
    )


def _choose(
    store: Store, assignment: Assignment, readers: Sequence[str]
) -> tuple[ReaderProgress, ...]:
    """Return the readers to publish, by name."""
    known = {one.reader: one for one in measure_progress(store, assignment).readers}
    names = [check_reader(name) for name in readers] or [
        name for name, one in known.items() if one.complete
    ]
    empty = [name for name in names if name not in known or not known[name].complete]
    if empty or not names:
        who = ", ".join(repr(name) for name in empty[:5]) or "anybody"
        raise DataError(
            f"cohort {assignment.cohort.name!r}: no complete case of {who} to publish. "
            "A case is complete when every label has a value; see `ranloop reading "
            f"progress {assignment.cohort.name}`."
        )
    return tuple(known[name] for name in sorted(set(names)))


def _names(
    workspace: WorkspacePaths, readers: Sequence[str], wanted: Publication
) -> tuple[dict[str, str], dict[str, str]]:
    """Return reader to published name, and that to the name not used."""
    names: dict[str, str] = {}
    others: dict[str, str] = {}
    for reader in readers:
        both = reader, pseudonym_of(workspace, reader)
        names[reader], other = reversed(both) if wanted.pseudonymous else both
        others[names[reader]] = other
    return names, others


def _complete(
    store: Store, assignment: Assignment, reader: str
) -> dict[str, dict[str, Value]]:
    """Return the complete cases of a reader, "No Finding" derived unless read."""
    taxonomy = assignment.taxonomy
    found: dict[str, dict[str, Value]] = {}
    for case_id, values in read_answers(store, assignment, reader).items():
        if len(values) == len(assignment.labels):
            derived = taxonomy.derive_no_finding(values)
            extra = {} if derived is None else {NO_FINDING: derived}
            found[case_id] = {**extra, **values}
    return found


def _tabulate(
    assignment: Assignment, readings: Mapping[str, Mapping[str, Mapping[str, Value]]]
) -> Votes:
    """Return readings as votes; a case that is not complete has none."""
    readers, labels = tuple(sorted(readings)), assignment.taxonomy.ids
    rows = positions(assignment.cohort)
    columns = {label: at for at, label in enumerate(labels)}
    shape = (len(assignment.cohort.cases), len(labels), len(readers))
    table = np.full(shape, ValueCode.NOT_VOTED, dtype=np.int8)
    for layer, reader in enumerate(readers):
        for case_id, values in readings[reader].items():
            row = rows[case_id]
            for label, value in values.items():
                table[row, columns[label], layer] = VOTE_CODES[value]
    voted = (table != ValueCode.NOT_VOTED).any(axis=(0, 2))
    return Votes(
        readers=readers,
        case_ids=assignment.cohort.case_ids,
        labels=tuple(n for n, any_ in zip(labels, voted, strict=True) if any_),
        values=table[:, voted, :],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationDryRun:
    """What would become of one reader's readings, in cases."""

    reader: str
    complete: int
    """Cases that would be published."""

    begun: int
    """Cases left out because a label has no value yet."""

    given: int
    """Cases to read: those of the reader's plan, or of the cohort."""

    given_complete: int
    """Of these: complete."""

    shared: int | None
    """Of the cases given: those of another reader as well; None without a plan."""

    blind: bool
    """False: some answers came after this person's first verdict on the cohort."""

    new: int
    """Of the complete ones: cases without a vote of this reader so far."""

    again: int
    """Of the complete ones: cases whose earlier votes would be replaced."""

    lost: int
    """Cases with a vote of this reader that are not complete: their votes would be
    lost, which publishing refuses unless it is allowed to."""

    last: str
    """When the reader answered last; UTC, ISO 8601."""


def dry_run_publication(
    workspace: WorkspacePaths,
    store: Store,
    assignment: Assignment,
    progress: ReadingProgress,
    turnout: Turnout | None,
) -> tuple[PublicationDryRun, ...]:
    """Return what publishing each reader's readings would do, by name.

    Parameters
    ----------
    progress
        How far the readers of the cohort are now.
    turnout
        Who has voted on what; None when nobody has.

    Raises
    ------
    DataError
        The key of the pseudonyms is damaged.
    StoreError
        The store cannot be read.
    """
    found = []
    for one in progress.readers:
        voted = voted_cases(workspace, turnout, one.reader)
        complete = complete_cases(store, assignment, one.reader)
        found.append(
            PublicationDryRun(
                reader=one.reader,
                complete=one.complete,
                begun=one.begun,
                given=one.given,
                given_complete=one.given_complete,
                shared=one.shared,
                blind=one.blind,
                new=len(complete - voted),
                again=len(complete & voted),
                lost=len(voted - complete),
                last=one.last,
            )
        )
    return tuple(found)

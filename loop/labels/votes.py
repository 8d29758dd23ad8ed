"""Readers' votes, and the majority that makes a reference standard of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loop.core.digests import digest_bytes, framed
from loop.core.errors import ConflictError, DataError
from loop.core.files import locked
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.users import look_key, name_key
from loop.core.records import Mark, ValueCode
from loop.labels.ballots import (
    Votes,
    find_kept,
    format_votes,
    not_as_recorded,
    read_votes,
    votes_lock,
    write_votes,
)
from loop.labels.cohort import Cohort, CohortRole, read_record, require_reports
from loop.labels.majority import (
    Adjudications,
    Decisions,
    MajorityRule,
    MarkChanges,
    Superseded,
    count_cast,
    count_superseded,
    decision_facts,
    find_untouched,
    keep_decisions,
    keep_marks,
    list_changes,
    majority,
    newest_rule,
    read_newest,
    read_rule,
)
from loop.labels.reference import (
    CODES,
    Marks,
    format_reference,
    next_number,
    version_lock,
)
from loop.labels.sealing import label_digest
from loop.labels.taxonomy import Taxonomy

SHOWN = 5
"""Readers named in a message."""


class Replaced(NamedTuple):
    """What new votes of a reader took the place of."""

    reader: str
    votes: int
    """Votes that were kept of this reader before."""

    lost: int
    """Of these: on a case and label without a new vote of this reader."""

    labels: tuple[str, ...]
    """Labels that this reader had voted on and no longer has."""


class MergedVotes(NamedTuple):
    """All votes of a cohort after some were added."""

    votes: Votes
    replaced: tuple[Replaced, ...]
    """By reader; empty when nobody had voted before."""


def merge_votes(
    kept: Votes | None,
    new: Votes,
    taxonomy: Taxonomy,
    *,
    replace: bool,
    sealed: bool,
) -> MergedVotes:
    """Return the votes of `new` and those of all other readers in `kept`.

    The same votes of the same reader once more change nothing.

    Parameters
    ----------
    kept
        Votes of the same cohort, or None without any.
    replace
        Let the new votes of a reader take the place of all that were kept of them.
    sealed
        Never tell the same votes from others: a guess would be told right or wrong.

    Raises
    ------
    DataError
        A reader has other votes in `kept`, or any where these are sealed, and
        `replace` is not set.
    """
    if kept is None:
        return MergedVotes(new, ())
    # A replaced reader may have been the only one to vote on a label.
    labels = tuple(n for n in taxonomy.ids if n in {*kept.labels, *new.labels})
    old, young = _spread(kept, labels), _spread(new, labels)
    again = [r for r in new.readers if r in kept.readers]
    changed = [r for r in again if sealed or (_of(old, r) != _of(young, r)).any()]
    if changed and not replace:
        raise DataError(_already_voted(changed, sealed=sealed))
    others = [r for r in kept.readers if r not in new.readers]
    readers = tuple(sorted((*others, *new.readers)))
    source = [young if r in new.readers else old for r in readers]
    layers = [_of(votes, r) for votes, r in zip(source, readers, strict=True)]
    merged = Votes(
        readers=readers,
        case_ids=kept.case_ids,
        labels=labels,
        values=np.stack(layers, axis=2),
    )
    replaced = tuple(_compare(old, young, reader) for reader in changed)
    return MergedVotes(_without_empty_labels(merged), replaced)


def _already_voted(readers: Sequence[str], *, sealed: bool) -> str:
    names = ", ".join(repr(name[:40]) for name in readers[:SHOWN])
    more = " and others" if len(readers) > SHOWN else ""
    how = "" if sealed else ", and otherwise than in this file"
    return (
        f"{names}{more} already voted{how}. Leave these "
        "readers out of the file (the votes of all others are kept as they are), or "
        "give all their votes and replace the earlier ones with --replace."
    )


def _spread(votes: Votes, labels: tuple[str, ...]) -> Votes:
    """Return `votes` with a column for every one of `labels`."""
    shape = (len(votes.case_ids), len(labels), len(votes.readers))
    values = np.full(shape, ValueCode.NOT_VOTED, dtype=np.int8)
    values[:, [labels.index(name) for name in votes.labels], :] = votes.values
    return Votes(
        readers=votes.readers, case_ids=votes.case_ids, labels=labels, values=values
    )


def _of(votes: Votes, reader: str) -> NDArray[np.int8]:
    """Return the votes of one reader, ``(n_cases, n_labels)``."""
    return votes.values[:, :, votes.readers.index(reader)]


def _compare(old: Votes, young: Votes, reader: str) -> Replaced:
    before, after = (
        _of(votes, reader) != ValueCode.NOT_VOTED for votes in (old, young)
    )
    gone = before.any(axis=0) & ~after.any(axis=0)
    return Replaced(
        reader,
        int(before.sum()),
        int((before & ~after).sum()),
        tuple(name for name, lost in zip(old.labels, gone, strict=True) if lost),
    )


def _without_empty_labels(votes: Votes) -> Votes:
    voted = (votes.values != ValueCode.NOT_VOTED).any(axis=(0, 2))
    return Votes(
        readers=votes.readers,
        case_ids=votes.case_ids,
        labels=tuple(n for n, kept in zip(votes.labels, voted, strict=True) if kept),
        values=votes.values[:, voted, :],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesReport:
    """What became of a file of votes."""

    cohort: str
    readers: tuple[str, ...]
    """All readers of the cohort, sorted by name."""

    added: tuple[str, ...]
    """Readers that had not voted before."""

    replaced: tuple[Replaced, ...]
    """Readers whose earlier votes were replaced, and what is lost by that."""

    discarded: bool
    """Votes kept before were not as recorded, or gone, and count no more."""

    votes: int
    """All votes of all readers."""

    rule: MajorityRule
    """What makes a reference mark."""

    reference: int
    """Number of the reference version that was made."""

    marks: Mapping[str, int]
    """Case-label pairs by mark: present, absent, uncertain, no_majority, missing;
    empty for a holdout, whose labels are sealed."""

    not_voted: tuple[str, ...]
    """Labels without a vote: this version says nothing of them, for no case."""

    superseded: Superseded | None
    """What the version before said and this one does not; None when that version was
    edited or removed, so that nothing can be counted, or is sealed."""

    changes: MarkChanges | None
    """Every mark that is another one than in the version before; None as for
    `superseded`."""

    too_few: int
    """Cases with votes in which a label has fewer readers than the rule wants."""

    adjudications: Adjudications
    """What became of a panel's decisions over the votes before."""

    not_blind: tuple[str, ...]
    """Readers known to have seen a model's output on the cohort before they voted."""

    digest: str
    """Of everything that was taken and made of it, keyed for a holdout: the same once
    more gives the same."""

    sealed: bool = False
    """Whether the cohort is a holdout: nothing is said of what was voted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """How votes are taken into those of a cohort."""

    actor: Actor
    need: int | None = None
    """Fewest equal votes, beyond over half of those who voted; None: as recorded with
    the votes before, or 1 without any. See `MajorityRule`."""

    replace: bool = False
    """Whether a reader's votes take the place of all earlier ones."""

    discard: bool = False
    """Whether to go on without the votes kept, should they not be those recorded."""

    lose: bool = True
    """Whether replacing may leave a reader without a vote on a pair voted on before."""

    blind: Mapping[str, bool] = field(default_factory=dict)
    """Of readers of whom it is known: whether they voted without seeing a model."""

    other_names: Mapping[str, str] = field(default_factory=dict)
    """Reader to the other name of the same person: nobody votes under both."""

    guidelines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of readers of whom it is known: the guidelines beside which they voted, for the
    ledger."""

    reason: str = ""
    """Why, for the ledger; empty: by which rule."""

    expected: str | None = None
    """`VotesReport.digest` of what was previewed: nothing else is taken. None takes
    whatever there is."""


def import_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    path: Path,
    taxonomy: Taxonomy,
    *,
    need: int | None,
    actor: Actor,
) -> VotesReport:
    """Add the votes of `path` to those of `cohort`; make a reference version of all.

    Readers that the file does not name keep their votes. Votes files that were kept
    before are moved to the private folder.

    Parameters
    ----------
    need
        As in `Taking`.

    Raises
    ------
    DataError
        The file is wrong, a reader has voted otherwise before, or the votes kept are
        not those recorded; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    new = read_votes(path, cohort, taxonomy)
    return take_votes(workspace, cohort, new, taxonomy, Taking(need=need, actor=actor))


def replace_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    path: Path,
    taxonomy: Taxonomy,
    *,
    need: int | None,
    actor: Actor,
) -> VotesReport:
    """Do as `import_votes`, but a reader's votes take the place of all earlier ones.

    Votes kept that are not those recorded count no more: also of other readers.

    Raises
    ------
    DataError
        The file is wrong; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    new = read_votes(path, cohort, taxonomy)
    how = Taking(need=need, actor=actor, replace=True, discard=True)
    return take_votes(workspace, cohort, new, taxonomy, how)


def take_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    new: Votes,
    taxonomy: Taxonomy,
    how: Taking,
) -> VotesReport:
    """Take votes into those of `cohort`; make a reference version of all.

    A mark changes only where a vote on its case and label was added, changed or
    taken away, or where another rule gives another mark. So corrections by verdict
    stand where nobody new has read; and a panel's earlier decisions stay where no vote
    they were made over has changed.

    Raises
    ------
    ConflictError
        `how` expects what was previewed, and it would not be that; nothing was changed.
    DataError
        A reader has voted otherwise before, votes would be lost, or those kept are
        not those recorded, and `how` does not allow it; nothing was changed.
    WriteError
        The workspace cannot be written; nothing was changed.
    """
    with _locks(workspace, cohort):
        counted = _count(workspace, cohort, new, taxonomy, how)
        report = counted.report
        if how.expected not in (None, report.digest):
            raise ConflictError(
                f"cohort {cohort.name!r}: votes, answers, reference, rule or what was "
                "chosen are no longer as they were when the marks that change were "
                "shown; nothing was published. Look at them again, and confirm."
            )
        rule = f"majority of {len(report.readers)} readers: {report.rule.words}"
        made = write_votes(
            workspace,
            cohort,
            counted.votes,
            counted.marks,
            actor=how.actor,
            reason=how.reason.strip() or rule,
            facts=counted.facts,
        )
    return replace(report, reference=made)


def preview_votes(
    workspace: WorkspacePaths,
    cohort: Cohort,
    new: Votes,
    taxonomy: Taxonomy,
    how: Taking,
) -> VotesReport:
    """Return what `take_votes` would do, and nothing is changed.

    Raises
    ------
    DataError
        It would be refused.
    WriteError
        The locks cannot be made.
    """
    with _locks(workspace, cohort):
        return _count(workspace, cohort, new, taxonomy, how).report


class _CountedVotes(NamedTuple):
    """Votes and what they make, before any of it is written."""

    votes: Votes
    marks: Marks
    facts: Mapping[str, Any]
    report: VotesReport


@contextmanager
def _locks(workspace: WorkspacePaths, cohort: Cohort) -> Iterator[None]:
    """Hold votes and reference of a cohort still."""
    with (
        locked(votes_lock(workspace, cohort.name)),
        locked(version_lock(workspace, cohort.name)),
    ):
        yield


def _count(
    workspace: WorkspacePaths,
    cohort: Cohort,
    new: Votes,
    taxonomy: Taxonomy,
    how: Taking,
) -> _CountedVotes:
    """Return all votes and what they make; whoever calls holds the locks."""
    require_reports(cohort, "a vote on labels")
    kept = find_kept(workspace, cohort, taxonomy, new)
    if not kept.sound and not how.discard:
        raise DataError(not_as_recorded(workspace, cohort))
    _refuse_second_name(kept.votes, how)
    _refuse_look_alikes(kept.votes, new)
    sealed = cohort.role is CohortRole.HOLDOUT
    votes, replaced = merge_votes(
        kept.votes, new, taxonomy, replace=how.replace, sealed=sealed
    )
    _refuse_loss(replaced, how)
    before = newest_rule(read_record(workspace, cohort.name))
    rule = read_rule(workspace, need=before.need if how.need is None else how.need)
    marks = majority(votes, rule)
    decided = keep_decisions(
        workspace,
        kept.votes,
        votes,
        marks,
        taxonomy,
        cohort.name,
        no_finding_read=rule.no_finding_read,
    )
    made, newest = decided.marks, None
    if not sealed:
        newest = read_newest(workspace, cohort)
        if kept.votes is not None and newest.reference is not None:
            untouched = find_untouched(
                kept.votes, votes, rule_before=before, rule_after=rule
            )
            made = keep_marks(
                newest.reference,
                votes.labels,
                made,
                untouched,
                no_finding_read=rule.no_finding_read,
            )
    seen = _not_blind(workspace, cohort, votes, how)
    guidelines = _guidelines(workspace, cohort, votes, new, how)
    known = kept.votes.readers if kept.votes else ()
    raw = format_reference(cohort.case_ids, votes.labels, made)
    number = next_number(workspace, cohort, raw)
    if sealed:
        # Whether the majority would change tells of the votes that are sealed.
        number = read_record(workspace, cohort.name).newest + 1
    report = VotesReport(
        cohort=cohort.name,
        readers=votes.readers,
        added=tuple(reader for reader in new.readers if reader not in known),
        replaced=replaced,
        discarded=not kept.sound,
        votes=votes.count,
        rule=rule,
        reference=number,
        marks={} if sealed else _count_marks(made),
        sealed=sealed,
        not_voted=tuple(name for name in taxonomy.ids if name not in votes.labels),
        superseded=count_superseded(newest, votes.labels, made) if newest else None,
        changes=list_changes(newest, votes, made, taxonomy.ids) if newest else None,
        too_few=_count_too_few(votes, rule),
        adjudications=Adjudications() if sealed else decided.outcome,
        not_blind=seen,
        digest=_digest(
            workspace,
            cohort,
            votes,
            raw,
            said=[rule.words, *seen, *(f"{r}: {g}" for r, g in guidelines.items())],
            how=how,
        ),
    )
    facts = _facts(votes, rule, decided.decisions, seen)
    if guidelines:
        facts["guidelines"] = guidelines
    return _CountedVotes(votes, made, facts, report)


def _count_too_few(votes: Votes, rule: MajorityRule) -> int:
    cast = count_cast(votes)
    few = (cast > 0) & (cast < rule.minimum_readers)
    return int(few.any(axis=1).sum())


def _digest(
    workspace: WorkspacePaths,
    cohort: Cohort,
    votes: Votes,
    raw: bytes,
    *,
    said: Sequence[str],
    how: Taking,
) -> str:
    """Return what tells one outcome, and what it was made over, from another.

    `said` is what the ledger will say beside votes and marks.
    """
    record = read_record(workspace, cohort.name)
    parts = [
        cohort.digest,
        str(record.votes),
        str(record.newest),
        str(record.newest_digest),
        digest_bytes(format_votes(votes)),
        digest_bytes(raw),
        *said,
        *(f"{name}={how.other_names[name]}" for name in sorted(how.other_names)),
    ]
    sealed = cohort.role is CohortRole.HOLDOUT
    return label_digest(workspace, framed(parts), sealed=sealed)


def _refuse_second_name(kept: Votes | None, how: Taking) -> None:
    for reader, other in how.other_names.items():
        if kept is not None and other in kept.readers:
            raise DataError(
                f"{reader!r} has votes as {other!r} already and would vote twice. "
                "Publish under that name: with or without --pseudonyms, as before."
            )


def _refuse_look_alikes(kept: Votes | None, new: Votes) -> None:
    """Refuse a new reader whose name looks like that of another one of the cohort.

    What was kept before is not judged: it stays as it was recorded.
    """
    known = kept.readers if kept is not None else ()
    added = [reader for reader in new.readers if reader not in known]
    seen = {key: reader for reader in known for key in _looks(reader)}
    for reader in added:
        other = next((seen[key] for key in _looks(reader) if key in seen), None)
        if other is not None:
            raise DataError(_look_alike(reader, other))
        seen.update(dict.fromkeys(_looks(reader), reader))


def _look_alike(reader: str, other: str) -> str:
    letters = sorted(f"U+{ord(char):04X}" for char in {*reader} ^ {*other})
    where = f" (they differ in {', '.join(letters[:SHOWN])})" if letters else ""
    name = repr(other[:40])
    return (
        f"the reader {reader[:40]!r} looks like the reader {name}{where}, and nobody "
        f"could tell their votes apart. If they are the same person, write {name} for "
        "both; if not, choose a name that differs in more than capitals, spaces or "
        "letters that look alike."
    )


def _looks(reader: str) -> tuple[str, ...]:
    return look_key(reader), name_key(reader)


def _refuse_loss(replaced: tuple[Replaced, ...], how: Taking) -> None:
    """Refuse to take votes away from a reader, unless that is wanted."""
    losing = [one for one in replaced if one.lost]
    if losing and not how.lose:
        names = ", ".join(f"{one.lost} of {one.reader[:40]!r}" for one in losing)
        raise DataError(
            f"votes on cases without a new vote would be lost: {names}. Complete those "
            "cases first, or confirm the loss with --replace."
        )


def _facts(
    votes: Votes, rule: MajorityRule, decisions: Decisions, not_blind: tuple[str, ...]
) -> dict[str, Any]:
    """Return what the ledger shall know of a version beside its digest."""
    facts: dict[str, Any] = {**rule.facts, "readers": len(votes.readers)}
    if decisions:
        facts["adjudicated"] = decision_facts(decisions)
    if not_blind:
        facts["not_blind"] = list(not_blind)
    return facts


def _not_blind(
    workspace: WorkspacePaths, cohort: Cohort, votes: Votes, how: Taking
) -> tuple[str, ...]:
    """Return the readers not blind: newly known, and recorded with the votes before."""
    payloads = read_record(workspace, cohort.name).references.values()
    before = [p.get("not_blind", ()) for p in payloads if "votes" in p]
    earlier = {r for r in (before[-1] if before else ()) if r not in how.blind}
    now = {reader for reader, blind in how.blind.items() if not blind}
    return tuple(reader for reader in votes.readers if reader in earlier | now)


def _guidelines(
    workspace: WorkspacePaths, cohort: Cohort, votes: Votes, new: Votes, how: Taking
) -> dict[str, list[str]]:
    """Return reader to guidelines: newly known, and recorded with the votes before."""
    payloads = read_record(workspace, cohort.name).references.values()
    before = [p.get("guidelines", {}) for p in payloads if "votes" in p]
    known = before[-1] if before else {}
    kept = {r: g for r, g in known.items() if r not in new.readers}
    kept |= how.guidelines
    return {r: list(kept[r]) for r in votes.readers if r in kept}


def _count_marks(marks: Marks) -> dict[str, int]:
    counts = Counter(marks.ravel().tolist())
    return {
        mark.value: counts[code]
        for mark, code in CODES.items()
        if mark is not Mark.NOT_CODED
    }

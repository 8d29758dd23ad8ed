"""What ``reading`` says, as text and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loop.cli.cohort_report import say_votes, votes_data
from loop.cli.console import print_table, say

if TYPE_CHECKING:
    from loop.review.reading.adjudication import Adjudicated
    from loop.review.reading.disputes import Dispute, Disputes
    from loop.review.reading.plans import ReadingPlan
    from loop.review.reading.progress import ReadingProgress
    from loop.review.reading.publication import Published
    from loop.review.reading.sheet import ReadingSheet


def say_progress(progress: ReadingProgress) -> None:
    """Print one line per reader, and what does not count."""
    if progress.readers:
        print_table(
            [
                "reader",
                "given",
                "of these complete",
                "shared",
                "complete",
                "begun",
                "answers",
                "blind",
                "last answer",
            ],
            [
                [
                    one.reader,
                    str(one.given),
                    str(one.given_complete),
                    "-" if one.shared is None else str(one.shared),
                    str(one.complete),
                    str(one.begun),
                    str(one.answers),
                    "yes" if one.blind else f"{one.not_blind} answers not",
                    one.last or "none",
                ]
                for one in progress.readers
            ],
        )
    else:
        say(f"nobody has read a case of {progress.cohort} yet")
    if any(not one.blind for one in progress.readers):
        say(
            "not blind: answered after a verdict of the same person on this cohort, so "
            "having seen a model's answers"
        )
    if progress.earlier:
        say(
            f"{progress.earlier} answers are to earlier texts under this name; they "
            "are kept and do not count"
        )


def progress_data(progress: ReadingProgress) -> dict[str, Any]:
    """Return `progress` for ``--json``."""
    return {
        **asdict(progress),
        "readers": [{**asdict(one), "blind": one.blind} for one in progress.readers],
    }


def say_plans(cohort: str, plans: Mapping[str, ReadingPlan]) -> None:
    """Print who was given how many cases."""
    from loop.review.reading.plans import count_shared

    if not plans:
        say(f"nobody was given cases of {cohort}: every reader reads all")
        return
    for name, plan in plans.items():
        say(
            f"{name}: {len(plan.case_ids)} cases of {cohort}, "
            f"{count_shared(plans, name)} of them given to another reader as well"
        )
    say("everybody else reads all cases; answers given before are kept and count")
    say(f"next: ranloop reading progress {cohort}")


def plans_data(plans: Mapping[str, ReadingPlan]) -> list[dict[str, Any]]:
    """Return reading plans for ``--json``, case ids in the order of reading."""
    return [asdict(plan) for plan in plans.values()]


def say_sheet(sheet: ReadingSheet) -> None:
    """Print a case as its reader may see it."""
    say(sheet.case_id)
    say()
    say(sheet.text)
    say()
    for label, value in sheet.answers.items():
        say(f"  {label:<28}{value.value}")
    say(f"open: {', '.join(sheet.open_labels) or 'nothing, the case is complete'}")


def sheet_data(sheet: ReadingSheet) -> dict[str, Any]:
    """Return `sheet` for ``--json``."""
    return {
        "case_id": sheet.case_id,
        "text": sheet.text,
        "answers": {label: value.value for label, value in sheet.answers.items()},
        "open_labels": list(sheet.open_labels),
    }


def say_published(published: Published, *, dry_run: bool = False) -> None:
    """Print whose readings count now, or would, and what they make."""
    if dry_run:
        say("dry run: nothing was changed; this is what publishing would make")
    for one in published.readers:
        name = one.reader if one.reader == one.published_as else "one reader"
        shown = "" if name == one.reader else f" as {one.published_as}"
        blind = "" if one.blind else "; NOT BLIND"
        say(
            f"{name}{shown}: {one.complete} complete cases published, {one.begun} "
            f"begun and left out{blind}"
        )
    votes = published.votes
    say_votes(votes)
    again = (
        f"ranloop reading publish {votes.cohort} --why REASON --expect {votes.digest}"
    )
    say(f"next: {again if dry_run else f'ranloop agreement {votes.cohort}'}")


def published_data(published: Published) -> dict[str, Any]:
    """Return `published` for ``--json``; with pseudonyms no name is in it."""
    return {
        "readers": [
            {
                "reader": one.published_as,
                "complete": one.complete,
                "begun": one.begun,
                "blind": one.blind,
            }
            for one in published.readers
        ],
        "digest": published.votes.digest,
        "votes": votes_data(published.votes),
    }


def say_disputes(disputes: Disputes) -> None:
    """Print one line per dispute, those without a majority first."""
    say(
        f"{disputes.cohort}, reference v{disputes.reference}: {len(disputes.rows)} "
        f"disputes in {disputes.pairs} pairs of {disputes.readers} readers, "
        f"{disputes.open} open"
    )
    say(f"a majority needs {disputes.rule.words}")
    if disputes.rows:
        print_table(
            ["case", "label", "present", "absent", "uncertain", "votes", "reference"],
            [_dispute_cells(row) for row in disputes.rows],
        )
        say(f"next: ranloop reading adjudicate {disputes.cohort} FILE --why REASON")


def _dispute_cells(row: Dispute) -> list[str]:
    mark = f"{row.mark.value} (panel)" if row.decided else row.mark.value
    counts = [str(number) for number in row.counts.values()]
    return [row.case_id, row.label, *counts, row.votes_say.value, mark]


def disputes_data(disputes: Disputes) -> dict[str, Any]:
    """Return `disputes` for ``--json``."""
    return {
        **asdict(disputes),
        "need": disputes.rule.need,
        "majority": disputes.rule.words,
        "open": disputes.open,
        "rows": [
            {
                **asdict(row),
                "ballots": [ballot._asdict() for ballot in row.ballots],
            }
            for row in disputes.rows
        ],
    }


def say_adjudicated(made: Adjudicated) -> None:
    """Print what became of decisions."""
    say(
        f"reference v{made.reference} of {made.cohort}: {made.decided} decisions, "
        f"{made.changed} marks changed, {made.open} disputes open"
    )
    if made.own:
        say(
            f"  {made.own} of them on pairs that the adjudicator had voted on: recorded"
        )

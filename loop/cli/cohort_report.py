"""What ``cohort import`` and ``cohort votes`` say of what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from loop.cli.console import say
from loop.core.nouns import counted
from loop.core.records import Mark
from loop.labels.dry_run import ImportDryRun
from loop.labels.expert_ratings import RatingsReport
from loop.labels.importing.importer import ImportReport
from loop.labels.importing.source import name_columns
from loop.labels.majority import MarkChanges
from loop.labels.overlap import PairReport, Shared, describe_candidates, quote_id
from loop.labels.votes import VotesReport

_SHOWN = 10
"""Pairs or labels named in a line."""

_MOST_SHIFTS = 30
"""Lines of counted changes."""

_MOST_CHANGES = 100
"""Single changes listed; the rest is counted."""


def say_import(report: ImportReport) -> None:
    """Print what became of a source."""
    say(f"cohort {report.cohort} ({report.role}, {report.format})")
    _say_size(report)
    if report.numbered:
        say("  ids         row-000001 and so on: the rows were numbered, as asked")
    patients = report.patients or "not known"
    say(f"  patients    {patients}")
    languages = ", ".join(f"{code} {n}" for code, n in report.languages.items())
    say(f"  languages   {languages}")
    if report.no_cues:
        _warn_of_languages(report)
    excluded = {
        **({"non-chest": report.non_chest} if report.non_chest else {}),
        **({} if report.references else {"empty": report.empty}),
        **report.unusable,
    }
    for reason, number in excluded.items():
        say(f"  left out    {number} {reason}{_examples(report, reason)}")
    shown = _examples(report, "duplicate text")
    say(f"  duplicates  {counted(report.duplicates, 'text')}, kept{shown}")
    if report.reference:
        say(f"  reference   v{report.reference}, from label columns or coding")
    if report.ratings:
        say_ratings(report.ratings)
    if report.unknown:
        say(f"  unknown     {_name_unknown(report.unknown)}")
    if report.missing_marks:
        say(f"  missing     {report.missing_marks} label cells, not read as absent")
    if report.unused:
        say(f"  not used    columns {name_columns(report.unused, known=True)}")
    say(f"  licence     {report.licence}")
    if report.citation:
        say(f"  cite        {report.citation}")


def _say_size(report: ImportReport) -> None:
    """Print how many cases a cohort holds, or pairs, and of what."""
    if not report.references:
        say(f"  cases       {report.cases}")
        return
    say(f"  pairs       {report.cases}, of {', '.join(report.inputs)}")
    say(f"  references  {report.references}")
    systems = (f"{name or 'not named'} {n}" for name, n in report.systems.items())
    say(f"  systems     {', '.join(systems)}")
    if report.silent:
        say(f"  silent      {report.silent} with an empty candidate, kept")


def say_ratings(report: RatingsReport) -> None:
    """Print what experts say of a cohort, or of a holdout that it is sealed."""
    if report.rated is None:
        say(f"  ratings     v{report.number} of {report.cohort}, sealed")
        return
    version = f"v{report.number} of {report.cohort}"
    say(f"  ratings     {version}, {counted(report.rated, 'pair')} rated")
    say(f"  raters      {', '.join(report.raters)}")
    scales = ", ".join(report.dimensions)
    say(f"  points      {report.ratings}{f' ({scales})' if scales else ''}")
    say(f"  errors      {report.errors} marked")


def _name_unknown(labels: Sequence[str]) -> str:
    """Return the labels that a reference says nothing of, and the way on."""
    more = len(labels) - _SHOWN
    named = ", ".join(labels[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return (
        f"{named}: the reference has no column, so no case is absent. Add a column "
        "(Open-i: a rule in the crosswalk) and import again with --replace, or add "
        "votes"
    )


def say_import_dry_run(
    found: ImportDryRun, replaced: Mapping[str, object] | None
) -> None:
    """Print what would become of a source, what it shares, and what it replaces."""
    say_import(found.report)
    for column, what in found.report.columns.items():
        say(f"  column      {column} -> {what}")
    if replaced:
        _say_replaced(replaced)
    for pair in found.overlap:
        say(f"  shared      with {pair.second}:{'' if pair.shared else ' nothing'}")
        for one in pair.shared:
            say(f"              {_shared(one)}")
        for remark in pair.not_checked:
            say(f"              not compared: {remark}")
        if alike := describe_candidates(pair):
            say(f"              {alike}")
    for name in found.unread:
        say(f"  warning     {name} could not be compared: it is not as recorded")
    if not found.separate:
        say(
            "  warning     cohorts of different roles must be separate: leave these "
            "cases out with --exclude, or use --id-prefix if ids only look alike"
        )


def _say_replaced(replaced: Mapping[str, object]) -> None:
    numbers = replaced["references"]
    versions = [f"v{number}" for number in numbers] if isinstance(numbers, list) else []
    cases = replaced["cases"]
    held = [
        counted(cases, "case")
        if isinstance(cases, int)
        else "a cohort whose file is damaged",
        f"references {', '.join(versions) or 'none'}",
        *(["readers' votes"] if replaced["votes"] else []),
    ]
    say(f"  replaces    {', '.join(held)}; all kept in .ranloop/replaced/")
    say("              runs on these cases cannot be scored if a case differs")


def _shared(one: Shared) -> str:
    """Return ``7 cases: a1, a2 = b2 ...``."""
    ids = [" = ".join(map(quote_id, dict.fromkeys(pair))) for pair in one.examples]
    more = " ..." if one.number > len(one.examples) else ""
    return f"{counted(one.number, one.kind.value)}: {', '.join(ids)}{more}"


def import_dry_run_data(
    found: ImportDryRun, votes: VotesReport | None
) -> dict[str, object]:
    """Return what an import would do for ``--json``."""
    return {
        "dry_run": True,
        **asdict(found.report),
        "votes": votes_data(votes) if votes else None,
        "separate": found.separate,
        "pairs": [pair_data(pair) for pair in found.overlap],
        "not_compared": list(found.unread),
    }


def pair_data(pair: PairReport) -> dict[str, Any]:
    """Return what two cohorts share for ``--json``."""
    alike = pair.candidates
    return {
        **asdict(pair),
        "shared": [shared._asdict() for shared in pair.shared],
        "candidates": alike._asdict() if alike else None,
    }


def _warn_of_languages(report: ImportReport) -> None:
    number = sum(report.languages[code] for code in report.no_cues)
    say(
        f"  warning     the engine rules refuses {counted(number, 'case')}: no cues "
        f"(labels/cues/<language>.yaml) for {', '.join(report.no_cues)}. If a "
        "language was guessed wrongly (und: not recognised), import again with "
        "--language and --replace"
    )


def _examples(report: ImportReport, kind: str) -> str:
    found = report.examples.get(kind, ())
    return f" ({', '.join(map(quote_id, found))})" if found else ""


def after_votes(report: VotesReport) -> str:
    """Return the command to go on with: agreement needs open votes of two readers."""
    if report.sealed:
        return f"ranloop freeze PROMPT --cohort DEV --holdout {report.cohort}"
    if len(report.readers) > 1:
        return f"ranloop agreement {report.cohort}"
    return f"ranloop run PROMPT --cohort {report.cohort}"


def say_votes(report: VotesReport) -> None:
    """Print whose votes count now, what they make, and what is lost."""
    say(
        f"reference v{report.reference} of {report.cohort}: "
        f"{counted(report.votes, 'vote')} of {counted(len(report.readers), 'reader')}"
    )
    say(f"  majority    {report.rule.words}")
    _say_readers(report)
    for mark, number in report.marks.items():
        say(f"  {mark:<12}{number}")
    if report.too_few:
        say(
            f"  {counted(report.too_few, 'case has', 'cases have')} fewer readers than "
            f"the protocol's {report.rule.minimum_readers}: no majority"
        )
    if report.changes:
        _say_changes(report.changes)
    if report.not_voted:
        one, many = "label without a vote is", "labels without a vote are"
        say(
            f"  {counted(len(report.not_voted), one, many)} missing in every case: "
            f"{', '.join(report.not_voted)}"
        )
    if report.sealed:
        say("  sealed      the labels of a holdout are not shown")
    elif report.superseded is None:
        say(
            "  what this takes from the reference before cannot be counted: its file "
            "was edited or is gone"
        )
    else:
        say(
            "  of the reference before: "
            f"{counted(report.superseded.missing, 'mark')} missing now, "
            f"{counted(report.superseded.corrections, 'correction')} by verdict undone"
        )
    _say_adjudications(report)
    if report.not_blind:
        say(f"  not blind   {', '.join(report.not_blind)}: had seen a model's answers")


def _say_changes(changes: MarkChanges) -> None:
    """Print which marks change: counted by label, then case by case, bounded."""
    if not changes.rows:
        say("  changes     no mark of the reference before")
        return
    say(
        f"  changes     {counted(len(changes.rows), 'mark')} of the reference before, "
        f"{changes.undecided} of them now undecided"
    )
    for one in changes.shifts[:_MOST_SHIFTS]:
        say(f"    {one.label}: {one.was} -> {one.becomes}, {one.marks}")
    if len(changes.shifts) > _MOST_SHIFTS:
        more = counted(len(changes.shifts) - _MOST_SHIFTS, "more such line")
        say(f"    and {more}")
    if all(row.was is Mark.MISSING for row in changes.rows):
        return
    for row in changes.rows[:_MOST_CHANGES]:
        say(f"    {row.case_id}, {row.label}: {row.was} -> {row.becomes}")
    if len(changes.rows) > _MOST_CHANGES:
        more = counted(len(changes.rows) - _MOST_CHANGES, "more mark")
        say(f"    and {more}")


def _say_adjudications(report: VotesReport) -> None:
    """Print what became of a panel's earlier decisions, if there were any."""
    outcome = report.adjudications
    if outcome.kept or outcome.lost:
        say(f"  {counted(outcome.kept, 'earlier decision')} of a panel kept")
    if outcome.lost:
        pairs = [f"{label} of {case_id}" for case_id, label in outcome.lost[:_SHOWN]]
        more = f" and {len(outcome.lost) - _SHOWN} more" * (len(outcome.lost) > _SHOWN)
        fell = len(outcome.lost)
        say(f"  {fell} fell because votes changed: {', '.join(pairs)}{more}")


def _say_readers(report: VotesReport) -> None:
    changed = [one.reader for one in report.replaced]
    kept = [r for r in report.readers if r not in (*report.added, *changed)]
    for what, readers in (("new", report.added), ("as before", kept)):
        if readers:
            say(f"  {what:<12}{', '.join(readers)}")
    for one in report.replaced:
        labels = f", and no vote any more on {', '.join(one.labels)}"
        say(
            f"  replaced    {one.reader}: {counted(one.votes, 'vote')}, {one.lost} of "
            f"them without a new one{labels if one.labels else ''}"
        )
    if report.discarded:
        say("  dropped     all votes kept before: they were not as recorded, or gone")


def votes_data(report: VotesReport) -> dict[str, object]:
    """Return `report` for ``--json``."""
    lost = report.superseded
    data = asdict(replace(report, changes=None))
    # Keyed with a key that a trial of a holdout makes and throws away.
    del data["digest"]
    return {
        **data,
        "need": report.rule.need,
        "majority": report.rule.words,
        "changes": _changes_data(report.changes),
        "replaced": [one._asdict() for one in report.replaced],
        "superseded": lost._asdict() if lost else None,
    }


def _changes_data(changes: MarkChanges | None) -> dict[str, object] | None:
    """Return which marks change; the list is bounded, the counts are not."""
    if changes is None:
        return None
    return {
        "marks": len(changes.rows),
        "undecided": changes.undecided,
        "by_label": [one._asdict() for one in changes.shifts],
        "listed": [row._asdict() for row in changes.rows[:_MOST_CHANGES]],
    }

"""What ``cohort import`` and ``cohort votes`` say of what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loop.cli.console import say

if TYPE_CHECKING:
    from loop.labels.importing.importer import ImportReport
    from loop.labels.votes import VotesReport


_SHOWN = 10
"""Pairs named in a line."""


def say_import(report: ImportReport) -> None:
    """Print what became of a source."""
    say(f"cohort {report.cohort} ({report.role}, {report.format})")
    say(f"  cases       {report.cases}")
    patients = report.patients or "not known"
    say(f"  patients    {patients}")
    languages = ", ".join(f"{code} {n}" for code, n in report.languages.items())
    say(f"  languages   {languages}")
    if report.no_cues:
        _warn_of_languages(report)
    excluded = {
        "non-chest": report.non_chest,
        "empty": report.empty,
        **report.unusable,
    }
    for reason, number in excluded.items():
        say(f"  left out    {number} {reason}{_examples(report, reason)}")
    shown = _examples(report, "duplicate text")
    say(f"  duplicates  {report.duplicates} texts, kept{shown}")
    if report.reference:
        say(f"  reference   v{report.reference}, from label columns or coding")
    if report.missing_marks:
        say(f"  missing     {report.missing_marks} label cells, not read as absent")
    if report.unused:
        say(f"  not used    columns {', '.join(report.unused)}")
    say(f"  licence     {report.licence}")
    if report.citation:
        say(f"  cite        {report.citation}")
    say("next: ranloop cohort check")


def _warn_of_languages(report: ImportReport) -> None:
    number = sum(report.languages[code] for code in report.no_cues)
    say(
        f"  warning     the engine rules refuses {number} cases: no cues (labels/cues/"
        f"<language>.yaml) for {', '.join(report.no_cues)}. If a language was guessed "
        "wrongly (und: not recognised), import again with --language and --replace"
    )


def _examples(report: ImportReport, kind: str) -> str:
    from loop.labels.overlap import quote_id

    found = report.examples.get(kind, ())
    return f" ({', '.join(map(quote_id, found))})" if found else ""


def say_votes(report: VotesReport) -> None:
    """Print whose votes count now, what they make, and what is lost."""
    of = len(report.readers)
    say(
        f"reference v{report.reference} of {report.cohort}: {report.votes} votes, "
        f"majority of {report.need} of {of} readers"
    )
    _say_readers(report)
    for mark, number in report.marks.items():
        say(f"  {mark:<12}{number}")
    if report.not_voted:
        say(
            f"  {len(report.not_voted)} labels without a vote are missing in every "
            f"case: {', '.join(report.not_voted)}"
        )
    if report.superseded is None:
        say(
            "  what this takes from the reference before cannot be counted: its file "
            "was edited or is gone"
        )
    else:
        say(
            f"  of the reference before: {report.superseded.missing} marks are missing "
            f"now, {report.superseded.corrections} corrections by verdict are undone"
        )
    _say_adjudications(report)
    say(f"next: ranloop agreement {report.cohort}")


def _say_adjudications(report: VotesReport) -> None:
    """Print what became of a panel's earlier decisions, if there were any."""
    outcome = report.adjudications
    if outcome.kept or outcome.lost:
        say(f"  {outcome.kept} earlier decisions of a panel stand")
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
            f"  replaced    {one.reader}: {one.votes} votes, {one.lost} of them "
            f"without a new one{labels if one.labels else ''}"
        )
    if report.discarded:
        say("  dropped     all votes kept before: they were not as recorded, or gone")


def votes_data(report: VotesReport) -> dict[str, object]:
    """Return `report` for ``--json``."""
    from dataclasses import asdict

    lost = report.superseded
    return {
        **asdict(report),
        "replaced": [one._asdict() for one in report.replaced],
        "superseded": lost._asdict() if lost else None,
    }

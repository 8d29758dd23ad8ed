"""The verb ``verdict``: hand in, list, withdraw and export clinicians' verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    RoleOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    own_output,
    print_json,
    say,
)
from loop.core.errors import DataError, LoopError
from loop.core.files import write_atomic
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.error_categories import read_errors
from loop.labels.taxonomy import read_taxonomy
from loop.review.status import KeptVerdict, VerdictState, judged_cohorts, read_kept
from loop.review.submit import withdraw_verdict
from loop.review.verdict_files import (
    ImportDefaults,
    dry_run_file,
    take_file,
    verdicts_file,
    verdicts_table,
)
from loop.run.store import Store, open_store

CohortOption = Annotated[
    str | None, typer.Option("--cohort", "-c", help="Cohort of the cases.")
]
StateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--state", help="open, superseded, withdrawn, addressed; may be repeated."
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", help="Only this label; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verbs = typer.Typer(
        help="Submit, list, withdraw and export clinicians' verdicts.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verbs.command("add")(add)
    verbs.command("list")(list_)
    verbs.command("withdraw")(withdraw)
    verbs.command("export")(export)
    app.add_typer(verbs, name="verdict")


def add(
    file: Annotated[Path, typer.Argument(help="Verdict file, .yaml or .csv.")],
    cohort: CohortOption = None,
    run: Annotated[
        str | None, typer.Option("--run", help="Run that was judged; or latest.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be kept; keep nothing.")
    ] = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the verdicts of a file, all or none; handing it in twice changes nothing."""
    place = open_workspace(workspace)
    occasion = ImportDefaults(acting(actor).name, cohort or "", run or "")
    if dry_run:
        _dry_run(place, file, occasion, as_json=as_json)
        return
    with open_store(place) as store:
        taken = take_file(place, store, file, occasion)
    if as_json:
        print_json({**taken._asdict(), "ids": list(taken.ids)})
        return
    on = f" on run {taken.run}" if taken.run else ""
    say(f"kept {counted(len(taken.ids), 'verdict')} on {taken.cohort}{on}:")
    for key in taken.ids:
        say(f"  {key}")


def list_(
    cohort: CohortOption = None,
    state: StateOption = None,
    label: LabelOption = None,
    comments: Annotated[
        bool, typer.Option("--comments", help="Show the reviewers' notes too.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List kept verdicts, oldest first, with what became of each."""
    place = open_workspace(workspace)
    with open_store(place) as store:
        kept = _kept(place, store, cohort, state, label)
    rows = [_row(one, comments=comments) for one in kept]
    if as_json:
        print_json({"total": len(rows), "verdicts": rows})
        return
    for name, group in groupby(rows, lambda row: row["cohort"]):
        say(f"{name}:")
        for row in group:
            for line in _lines(row):
                say(line)
    told = ", ".join(_tally(Counter(row["state"] for row in rows)))
    total = counted(len(rows), "verdict")
    say(f"{total}: {told}" if told else total)


def withdraw(
    verdict: Annotated[
        str, typer.Argument(help="Id of the verdict, or COHORT:id.", metavar="ID")
    ],
    why: Annotated[str, typer.Option("--why", help="Reason; stays in the store.")],
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "reviewer",
    as_json: JsonOption = False,
) -> None:
    """Take a verdict back; it stays in the record. Another person's needs an editor."""
    place = open_workspace(workspace)
    with open_store(place) as store:
        key = withdraw_verdict(store, verdict, acting(actor, role), why)
    cohort, _, short = key.partition(":")
    if as_json:
        print_json({"withdrawn": short, "cohort": cohort})
    else:
        say(f"withdrew verdict {short} on {cohort}")


def export(
    file: Annotated[Path, typer.Argument(help="File to write, .yaml or .csv.")],
    cohort: CohortOption = None,
    state: StateOption = None,
    label: LabelOption = None,
    notes: Annotated[
        bool, typer.Option("--notes", help="Write the reviewers' notes too.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write kept verdicts, by default the open ones, as a file to be read again.

    Notes are left out unless asked for; a verdict on no case keeps its own, which is
    its reason.
    """
    place = open_workspace(workspace)
    own_output(file, place)
    writers = {".yaml": verdicts_file, ".yml": verdicts_file, ".csv": verdicts_table}
    write = writers.get(file.suffix.lower())
    if write is None:
        raise DataError(f"{file} ends neither in .yaml nor in .csv. Name one of them.")
    with open_store(place) as store:
        kept = _kept(place, store, cohort, state or ["open"], label)
    if not kept:
        raise DataError(
            "no kept verdict fits, so there is nothing to write. See `ranloop verdict "
            "list`."
        )
    write_atomic(file, write(kept, notes=notes), mode=0o600)
    if as_json:
        print_json({"file": str(file), "verdicts": len(kept)})
    else:
        note(f"wrote {file}: {counted(len(kept), 'verdict')}")


def _dry_run(
    place: WorkspacePaths, file: Path, occasion: ImportDefaults, *, as_json: bool
) -> None:
    """Say what a verdict file holds; nothing is kept."""
    with open_store(place) as store:
        found = dry_run_file(place, store, file, occasion)
    if as_json:
        print_json(
            {"dry_run": True, **found._asdict(), "reviewers": list(found.reviewers)}
        )
        return
    say("dry run: nothing was kept")
    verdicts = counted(found.verdicts, "verdict")
    say(f"  {verdicts} on {found.cohort}, run {found.run or 'not named'}")
    say(f"  {found.verdicts - found.known} new, {found.known} known already")
    say(_wrapped("reviewers", found.reviewers))
    say(_wrapped("judgements", _tally(found.judgements)))
    say(_wrapped("labels", _tally(found.labels)))
    say("next: the same command without --dry-run")


def _wrapped(name: str, parts: Iterable[str]) -> str:
    """Return a named fact on as many lines as a terminal needs for it."""
    # Lines break between the parts only, so their own spaces are none to break at.
    text = ", ".join(part.replace(" ", "\xa0") for part in parts)
    lines = fill(text, 88, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)
    return lines.replace("\xa0", " ")


def _tally(counts: Mapping[str, int]) -> list[str]:
    return [f"{number} {name}" for name, number in counts.items()]


def _kept(
    workspace: WorkspacePaths,
    store: Store,
    cohort: str | None,
    states: Sequence[str] | None,
    labels: Sequence[str] | None,
) -> list[KeptVerdict]:
    """Return the kept verdicts that fit, cohort by cohort."""
    wanted_states = _states(states)
    names = [cohort] if cohort else judged_cohorts(store)
    wanted = {_find_label(workspace, name) for name in labels or ()}
    return [
        one
        for name in names
        for one in read_kept(store, workspace, name)
        if (not wanted or one.verdict.label in wanted)
        and (not wanted_states or one.state in wanted_states)
    ]


def _find_label(workspace: WorkspacePaths, name: str) -> str:
    """Return the id of a label, or of a category of errors."""
    taxonomy = read_taxonomy(workspace.labels)
    if taxonomy.knows(name):
        return taxonomy.find(name).id
    try:
        return read_errors(workspace.labels).find(name).id
    except LoopError:
        return taxonomy.find(name).id  # which says what it knows


def _states(names: Sequence[str] | None) -> frozenset[VerdictState]:
    try:
        return frozenset(VerdictState(name) for name in names or ())
    except ValueError as error:
        raise DataError(f"{error}. Use one of {', '.join(VerdictState)}.") from error


def _row(one: KeptVerdict, *, comments: bool) -> dict[str, Any]:
    """Return one verdict for ``--json``: everything but its wording and comment."""
    verdict, value = one.verdict, one.verdict.correct_value
    row = {
        "id": one.id,
        "cohort": one.cohort,
        "run": one.circumstances.run,
        "prompt": one.circumstances.prompt,
        "flips": one.circumstances.flips,
        "created": one.created,
        "reviewer": verdict.reviewer,
        "cases": list(verdict.case_ids),
        "label": verdict.label,
        "judgement": verdict.judgement.value,
        "severity": verdict.severity.value if verdict.severity else None,
        "context": verdict.context.value if verdict.context else None,
        "correct_value": value.value if value else None,
        "correct_counts": verdict.correct_counts,
        "edits": verdict.edits.count,
        "anchor": verdict.anchor,
        "state": one.state.value,
        "addressed_by": one.addressed_by,
        "superseded_by": one.superseded_by,
        "conflicts": list(one.conflicts),
        "withdrawn_by": one.withdrawal.actor if one.withdrawal else "",
    }
    return row | ({"comment": verdict.comment} if comments else {})


def _lines(row: Mapping[str, Any]) -> list[str]:
    """Return a verdict on lines of their own: as a row it would not fit a terminal."""
    indent = " " * (len(row["id"]) + 2)
    what = f"{row['judgement']}, {row['label']} in {_short(row['cases'])}"
    lines = [
        f"{row['id']}  {what}",
        f"{indent}{row['reviewer']}, {row['created'][:10]}: {_state_words(row)}",
    ]
    comment = row.get("comment", "").splitlines()
    return [*lines, *(f"{indent}{line}" for line in comment)]


def _state_words(row: Mapping[str, Any]) -> str:
    by = row["addressed_by"] or row["superseded_by"] or row["withdrawn_by"]
    words = f"{row['state']} by {by}" if by and row["state"] != "open" else row["state"]
    flips = f", failed in {row['flips']} draws" if row["flips"] else ""
    return f"{words}{', disputed' if row['conflicts'] else ''}{flips}"


def _short(cases: Sequence[str]) -> str:
    more = f" +{len(cases) - 1}" if len(cases) > 1 else ""
    return f"{cases[0]}{more}" if cases else "-"

"""The verb ``cohort``: import cases, check that cohorts are separate, show one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from loop.cli.cohort_vault import register as _register_vault
from loop.cli.cohort_report import (
    import_dry_run_data,
    pair_data,
    say_import,
    say_import_dry_run,
    say_votes,
    votes_data,
)
from loop.cli.cohort_shown import show
from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    print_json,
    say,
)
from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import Workspace
from loop.labels.cohort import list_cohorts, read_cohort_file
from loop.labels.dry_run import (
    VotesFile,
    dry_run_import,
    dry_run_votes,
    take_votes_file,
    trial,
)
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.kept_votes import votes_path
from loop.labels.overlap import check_cohorts, require_separate
from loop.labels.reference import list_references
from loop.labels.sealing import is_stored

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would become of it; change nothing.")
]
NeedOption = Annotated[
    int | None,
    typer.Option(
        "--need",
        min=1,
        help="Fewest equal votes, beyond over half of those who voted on the case; "
        "default: as recorded, else 1.",
    ),
]

_Import: TypeAlias = "tuple[Path, ImportOptions, VotesFile | None]"
"""What is imported, how, and the votes on it."""

_AGAIN = "the same command without --dry-run"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verbs = typer.Typer(
        help="Import, check and list cohorts of cases.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verbs.command("import")(import_)
    verbs.command("votes")(votes)
    verbs.command("check")(check)
    verbs.command("show")(show)
    _register_vault(verbs)
    app.add_typer(verbs, name="cohort")


def import_(
    source: Annotated[
        Path, typer.Argument(help="CSV, JSONL or Parquet file, or a folder of .txt.")
    ],
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the cohort.")],
    role: Annotated[
        str, typer.Option("--role", help="taxonomy, dev, holdout or external.")
    ] = "dev",
    format_: Annotated[
        str,
        typer.Option("--format", help="auto, csv, jsonl, parquet, openi or mimic."),
    ] = "auto",
    origin: Annotated[
        str, typer.Option("--source", help="Where the texts come from, in words.")
    ] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="What may be done with them, in words.")
    ] = "",
    language: Annotated[
        str, typer.Option("--language", help="ISO 639-1 code, or auto.")
    ] = "auto",
    encoding: Annotated[
        str, typer.Option("--encoding", help="auto (UTF-8, else GBK) or a codec.")
    ] = "auto",
    id_prefix: Annotated[
        str, typer.Option("--id-prefix", help="Put before every case id.")
    ] = "",
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column with the case ids.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option("--text-column", help="Column with the whole text.")
    ] = None,
    patient_column: Annotated[
        str | None, typer.Option("--patient-column", help="Column with the patients.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Case id to leave out; may be repeated."),
    ] = None,
    votes_file: Annotated[
        Path | None,
        typer.Option("--votes", help="Readers' votes: reader,case_id,label,value."),
    ] = None,
    need: NeedOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a cohort of this name.")
    ] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, for the ledger.")] = "",
    dry_run: DryRunOption = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import cases: texts into the private folder, digests and labels into the open.

    Label columns (or the Open-i MeSH coding) become reference v1; readers' votes
    become a reference by majority. With --dry-run, also what it would share with
    cohorts of other roles.
    """
    place, who = open_workspace(workspace), acting(actor)
    columns = {"case_id": id_column, "text": text_column, "patient": patient_column}
    options = ImportOptions(
        name=name,
        role=role,
        format=format_,
        source=origin,
        licence=licence,
        language=language,
        encoding=encoding,
        id_prefix=id_prefix,
        columns={role: name for role, name in columns.items() if name},
        exclude=tuple(exclude or ()),
        replace=replace,
        reason=why,
    )
    given = VotesFile(name, votes_file, need) if votes_file else None
    do = _dry_run if dry_run else _import
    do(place, (source, options, given), who, as_json=as_json)


def votes(
    name: Annotated[str, typer.Argument(help="Name of the cohort.")],
    file: Annotated[
        Path, typer.Argument(help="Readers' votes: reader,case_id,label,value.")
    ],
    need: NeedOption = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Replace all votes of readers who voted before."
        ),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, for the ledger.")] = "",
    dry_run: DryRunOption = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add readers' votes to a cohort; readers that are not in FILE keep theirs.

    The majority of those who voted on a case and label makes the next reference
    version; with --dry-run, which marks would change.
    """
    place, who = open_workspace(workspace), acting(actor)
    given = VotesFile(name, file, need, replace, why)
    do = dry_run_votes if dry_run else take_votes_file
    report = do(place, given, actor=who)
    if as_json:
        print_json({**votes_data(report), **({"dry_run": True} if dry_run else {})})
        return
    if dry_run:
        say("dry run: nothing was changed; this is what the votes would make")
    say_votes(report)
    say(f"next: {_AGAIN if dry_run else f'ranloop agreement {name}'}")


def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Cohorts to compare; default: all.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse cohorts of different roles that share a case, a patient or a text.

    Near-duplicate texts count: 5-word shingles with a Jaccard similarity of 0.8.
    """
    report = check_cohorts(open_workspace(workspace), names)
    if as_json:
        print_json(
            {
                "separate": report.separate,
                "cohorts": dict(report.cohorts),
                "pairs": [pair_data(pair) for pair in report.pairs],
            }
        )
        if not report.separate:
            raise typer.Exit(1)
        return
    for pair in report.pairs:
        for remark in pair.not_checked:
            say(f"{pair.first} and {pair.second}, not compared: {remark}")
    require_separate(report)
    compared = len(report.pairs)
    say(
        f"{len(report.cohorts)} cohorts, {compared} pairs of different roles: "
        + ("nothing is shared" if compared else "nothing to compare")
    )


def _import(place: Workspace, what: _Import, who: Actor, *, as_json: bool) -> None:
    """Import a source and the votes on it, and say what became of them."""
    source, options, given = what
    progress = ProgressBar(f"import {options.name}", quiet=as_json)
    report = import_cohort(place, source, options, actor=who, watch=progress.track)
    counted = None
    if given:
        note(f"{report.cohort}: {report.cases} cases imported; adding votes")
        counted = take_votes_file(place, given, actor=who)
    if as_json:
        result = asdict(report)
        print_json({**result, "votes": votes_data(counted) if counted else None})
        return
    say_import(report)
    if counted:
        say_votes(counted)
    say("next: ranloop cohort check")


def _dry_run(place: Workspace, what: _Import, who: Actor, *, as_json: bool) -> None:
    """Say what `_import` would do."""
    source, options, given = what
    progress = ProgressBar(f"check {options.name}", quiet=as_json)
    found = dry_run_import(place, source, options, actor=who, watch=progress.track)
    counted = None
    if given:
        with trial(place) as copy:
            import_cohort(copy, source, options, actor=who)
            counted = take_votes_file(copy, given, actor=who)
    replaced = _find_replaced(place, options.name)
    if as_json:
        print_json({**import_dry_run_data(found, counted), "replaced": replaced})
        return
    say("dry run: nothing was changed; this is what the import would make")
    say_import_dry_run(found, replaced)
    if counted:
        say_votes(counted)
    say(f"next: {_AGAIN}")


def _find_replaced(place: Workspace, name: str) -> dict[str, object] | None:
    """Return what a cohort of this name holds now; None without one."""
    if name not in list_cohorts(place):
        return None
    try:
        cases = read_cohort_file(place, name).cases
    except DataError:
        # A cohort may be replaced because its file is damaged.
        cases = None
    return {
        "cases": cases,
        "references": list(list_references(place, name)),
        "votes": is_stored(votes_path(place, name)),
    }

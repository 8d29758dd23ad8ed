"""The verb ``cohort``: import cases, check that cohorts are separate, show one."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from loop.cli.cohort_report import (
    after_votes,
    import_dry_run_data,
    pair_data,
    say_import,
    say_import_dry_run,
    say_ratings,
    say_votes,
    votes_data,
)
from loop.cli.console import (
    ActorOption,
    EncodingOption,
    IdColumnOption,
    IdPrefixOption,
    JsonOption,
    LanguageOption,
    NumberRowsOption,
    ProgressBar,
    RoleOption,
    TextColumnOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    print_json,
    print_table,
    read_policy,
    say,
)
from loop.core.errors import DataError
from loop.core.ledger import Actor, read_ledger
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.ballots import votes_path
from loop.labels.cohort import (
    CohortRecord,
    as_recorded,
    find_record,
    has_texts,
    list_cohorts,
    read_cohort,
    read_cohort_file,
    read_record,
)
from loop.labels.dry_run import (
    VotesFile,
    dry_run_import,
    dry_run_votes,
    take_votes_file,
    trial,
)
from loop.labels.expert_ratings import edited_ratings, read_ratings_of, report_of
from loop.labels.holdout import (
    label_files,
    replaced_files,
    retire_holdout,
    seal_holdout,
)
from loop.labels.importing.importer import ImportReport, import_cohort
from loop.labels.importing.rating_files import RatingFiles, take_rating_files
from loop.labels.importing.source import ImportOptions, describe_columns
from loop.labels.overlap import check_cohorts, describe_candidates, require_separate
from loop.labels.reference import edited_references, list_references, read_reference
from loop.labels.sealing import is_stored, vault_key
from loop.labels.taxonomy import read_taxonomy
from loop.labels.votes import VotesReport
from loop.review.reading.pair_ratings import (
    RatingsPublication,
    publish_ratings,
    read_rating_task,
)
from loop.run.store import open_store

NameArgument = Annotated[str, typer.Argument(help="Name of the holdout.")]

WhyOption = Annotated[str, typer.Option("--why", help="Reason, for the ledger.")]

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")
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

ValueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--value",
        metavar="WORD=VALUE",
        help="What a word in a label cell means, for example yes=present; "
        "chexpert: a blank cell is absent, as CheXbert writes it.",
    ),
]

RatingsOption = Annotated[
    Path | None,
    typer.Option(
        "--ratings", help="Experts' points: case_id,rater,dimension,points,scale."
    ),
]

ErrorsOption = Annotated[
    Path | None,
    typer.Option(
        "--errors",
        help="Errors that experts marked: case_id,rater,category,significance,finding.",
    ),
]

ScaleOption = Annotated[
    str,
    typer.Option(
        "--scale", help="Scale of points whose row names none: 1-5, or counts."
    ),
]


class _Import(NamedTuple):
    """What is imported, how, and what is added to it."""

    source: Path
    options: ImportOptions
    votes: VotesFile | None
    ratings: RatingFiles | None


_AGAIN = "the same command without --dry-run"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verbs = typer.Typer(
        help="Import, check and list cohorts of cases.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verbs.command("import")(import_)
    verbs.command("columns")(columns)
    verbs.command("votes")(votes)
    verbs.command("ratings")(ratings)
    verbs.command("check")(check)
    verbs.command("show")(show)
    verbs.command("seal")(seal)
    verbs.command("retire")(retire)
    app.add_typer(verbs, name="cohort")


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            help="CSV, JSON, Parquet or .xlsx file, or folder of .txt or of RadPref."
        ),
    ],
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the cohort.")],
    role: Annotated[
        str, typer.Option("--role", help="taxonomy, dev, holdout, external or shots.")
    ] = "dev",
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="auto, csv, jsonl (or a JSON array), parquet, excel, openi, mimic or "
            "radpref.",
        ),
    ] = "auto",
    origin: Annotated[
        str, typer.Option("--source", help="Where the texts come from, in words.")
    ] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="What may be done with them, in words.")
    ] = "",
    language: LanguageOption = "auto",
    encoding: EncodingOption = "auto",
    id_prefix: IdPrefixOption = "",
    id_column: IdColumnOption = None,
    text_column: TextColumnOption = None,
    patient_column: Annotated[
        str | None, typer.Option("--patient-column", help="Column with the patients.")
    ] = None,
    reference_column: Annotated[
        str | None,
        typer.Option("--reference-column", help="Column with the reference of a pair."),
    ] = None,
    candidate_column: Annotated[
        str | None,
        typer.Option("--candidate-column", help="Column with the candidate of a pair."),
    ] = None,
    system_column: Annotated[
        str | None,
        typer.Option("--system-column", help="Column with who wrote the candidate."),
    ] = None,
    context_column: Annotated[
        str | None,
        typer.Option(
            "--context-column", help="Column with age, sex, indication of a pair."
        ),
    ] = None,
    reference_id_column: Annotated[
        str | None,
        typer.Option("--reference-id-column", help="Column with ids of references."),
    ] = None,
    number_rows: NumberRowsOption = False,
    drop_duplicates: Annotated[
        bool,
        typer.Option(
            "--drop-duplicates",
            help="Leave out cases whose text, patient and labels came before.",
        ),
    ] = False,
    value: ValueOption = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Case id to leave out; may be repeated."),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            "--part",
            metavar="N/OF",
            help="Only one part of the source, cut by patient: 1/2 and 2/2 share none.",
        ),
    ] = "",
    votes_file: Annotated[
        Path | None,
        typer.Option("--votes", help="Readers' votes, as `cohort votes` takes them."),
    ] = None,
    need: NeedOption = None,
    ratings_file: RatingsOption = None,
    errors_file: ErrorsOption = None,
    scale: ScaleOption = "",
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
    become a reference by majority. With --dry-run, also which column is taken for
    what, and what the cohort would share with those of other roles.

    The header of a table says which column is what, whatever the case and the signs
    between words: case_id, study_id, accession_number or 检查号; text, report or
    报告内容, or findings and impression; patient, language, exam; and one column per
    label. `ranloop cohort columns` lists all of them.

    A table with reference and candidate is a cohort of pairs: a judge says what is
    wrong in the candidate. Of a pair also system, reference_id, and context, or age,
    sex and indication. A candidate may be empty, since a system may have said nothing;
    an empty reference is refused, with its row. --ratings and --errors add what
    experts say of the pairs, as `cohort ratings` does. A folder of RadPref, as
    published, is such a cohort, with its raters' points and marks.
    """
    place, who = open_workspace(workspace), acting(actor)
    named = {
        "case_id": id_column,
        "text": text_column,
        "patient": patient_column,
        "reference": reference_column,
        "candidate": candidate_column,
        "system": system_column,
        "context": context_column,
        "reference_id": reference_id_column,
    }
    options = ImportOptions(
        name=name,
        role=role,
        format=format_,
        source=origin,
        licence=licence,
        language=language,
        encoding=encoding,
        id_prefix=id_prefix,
        columns={role: name for role, name in named.items() if name},
        number_rows=number_rows,
        drop_duplicates=drop_duplicates,
        values=read_policy(value or ()),
        part=part,
        exclude=tuple(exclude or ()),
        replace=replace,
        reason=why,
    )
    given = (
        VotesFile(name, votes_file, need, values=options.values) if votes_file else None
    )
    rated = (
        RatingFiles(name, ratings_file, errors_file, scale)
        if ratings_file or errors_file
        else None
    )
    do = _dry_run if dry_run else _import
    do(place, _Import(source, options, given, rated), who, as_json=as_json)


def columns(workspace: WorkspaceOption = None) -> None:
    """List the headers that a table of cases may have, and what each is taken for."""
    place = open_workspace(workspace)
    say(describe_columns(read_taxonomy(place.labels)).rstrip())


def votes(
    name: Annotated[str, typer.Argument(help="Name of the cohort.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="Readers' votes: reader,case_id,label,value; or reader,case_id and "
            "one column per label."
        ),
    ],
    need: NeedOption = None,
    value: ValueOption = None,
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
    given = VotesFile(name, file, need, replace, why, read_policy(value or ()))
    do = dry_run_votes if dry_run else take_votes_file
    with ProgressBar(f"votes on {name}", quiet=as_json).shown():
        report = do(place, given, actor=who)
    if as_json:
        print_json({**votes_data(report), **({"dry_run": True} if dry_run else {})})
        return
    if dry_run:
        say("dry run: nothing was changed; this is what the votes would make")
    say_votes(report)
    say(f"next: {_AGAIN if dry_run else after_votes(report)}")


def ratings(
    name: Annotated[str, typer.Argument(help="Name of the cohort of pairs.")],
    ratings_file: RatingsOption = None,
    errors_file: ErrorsOption = None,
    scale: ScaleOption = "",
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace all of raters who rated before."),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, for the ledger.")] = "",
    collected: Annotated[
        bool,
        typer.Option("--collected", help="Publish what was given on the page Judges."),
    ] = False,
    raters: Annotated[
        list[str] | None,
        typer.Option("--rater", help="With --collected: only theirs; repeat."),
    ] = None,
    dry_run: DryRunOption = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add experts' ratings, and the errors they marked, to a cohort of pairs.

    Raters who are not in the files keep theirs; each call makes a version. A case id
    is that of the pair, or that of its reference beside a column system. Categories
    and significances are those of labels/errors.yaml; a row of a rater and a case in
    which both are empty says that the rater found no error. The words of a finding go
    into the private folder. Ratings of a holdout are sealed.

    With --collected the source is the workbench: all that raters gave blind on the
    page Judges, which takes --why. Their earlier ratings are replaced by it.
    """
    place, who = open_workspace(workspace), acting(actor)
    if raters and not collected:
        raise DataError("--rater goes with --collected. Leave it out, or add that.")
    if collected and (ratings_file or errors_file or scale):
        raise DataError(
            "--collected takes what is in the workbench, and files are another source. "
            "Add them with a call of their own."
        )
    with trial(place) if dry_run else nullcontext(place) as target:
        if collected:
            wanted = RatingsPublication(tuple(raters or ()), why, replace)
            task = read_rating_task(place, name)
            with open_store(place) as store:
                report = publish_ratings(target, store, task, wanted, who)
        else:
            files = RatingFiles(name, ratings_file, errors_file, scale, replace, why)
            report = take_rating_files(target, files, actor=who)
    if as_json:
        print_json({**asdict(report), **({"dry_run": True} if dry_run else {})})
        return
    if dry_run:
        say("dry run: nothing was changed; this is what the ratings would make")
    say_ratings(report)
    say(f"next: {_AGAIN if dry_run else f'ranloop cohort show {name}'}")


def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Cohorts to compare; default: all.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse cohorts of different roles that share a case, a patient or a text.

    Near-duplicate texts count: 5-word shingles with a Jaccard similarity of 0.8. A
    candidate that also stands in another cohort of pairs, while the references
    differ, is no overlap; it is noted.
    """
    place = open_workspace(workspace)
    with ProgressBar("cohort check", quiet=as_json).shown():
        report = check_cohorts(place, names)
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
        if alike := describe_candidates(pair):
            say(f"note: {alike}.")
    require_separate(report)
    compared = len(report.pairs)
    say(
        f"{counted(len(report.cohorts), 'cohort')}, "
        f"{counted(compared, 'pair')} of different roles: "
        + ("nothing is shared" if compared else "nothing to compare")
    )


def show(
    name: Annotated[
        str | None, typer.Argument(help="Cohort to show; default: list all.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a cohort: what it is, its reference versions and their marks."""
    place = open_workspace(workspace)
    if name is None:
        _list(place, as_json=as_json)
    else:
        _show(place, name, as_json=as_json)


def seal(
    name: NameArgument,
    why: WhyOption,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Encrypt the labels and votes of a holdout that lie in plain, and remove these.

    New holdouts are sealed when they are imported. Copies in version control or in
    backups are not touched.
    """
    place = open_workspace(workspace)
    made = seal_holdout(place, name, acting(actor, role), why)
    if as_json:
        print_json({"cohort": made.cohort, "files": list(made.files)})
        return
    if not made.files:
        say(f"{name}: no label lies in plain; nothing was changed")
        return
    sealed = counted(len(made.files), "file")
    say(f"{name}: {sealed} sealed, and no longer there in plain")
    for file in made.files:
        say(f"  {file}")
    say("copies in version control or in backups can still be read: remove them there")
    say("keep a backup of .ranloop/keys/vault.key elsewhere: without it they are lost")


def retire(
    name: NameArgument,
    why: WhyOption,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Give a holdout up: it becomes a cohort for development, and its labels open.

    It cannot be sealed again, and no later claim can rest on its cases.
    """
    place = open_workspace(workspace)
    made = retire_holdout(place, name, acting(actor, role), why)
    if as_json:
        data = {"openings": made.openings, "files": list(made.files), "role": "dev"}
        print_json({"cohort": made.cohort, **data})
        return
    times = counted(made.openings, "time")
    say(f"{name} is for development now; it was opened {times} before")
    for file in made.files:
        say(f"  {file} lies in plain")
    say("next: import a new holdout, with other cases and another name")


def _list(place: WorkspacePaths, *, as_json: bool) -> None:
    entries = read_ledger(place.ledger)
    rows = [
        {
            "name": about.name,
            "role": about.role.value,
            "cases": about.cases,
            "language": about.language,
            "inputs": about.inputs,
            "references": list(list_references(place, about.name)),
            "texts_here": has_texts(place, about.name),
            "as_recorded": as_recorded(about, find_record(entries, about.name)),
        }
        for about in (read_cohort_file(place, each) for each in list_cohorts(place))
    ]
    if as_json:
        print_json({"cohorts": rows})
    elif not rows:
        say("no cohort yet: import one with `ranloop cohort import FILE --name NAME`")
    else:
        header = ["cohort", "role", "cases", "language", "inputs", "references"]
        header += ["texts here", "as recorded"]
        print_table(header, [[_cell(cell) for cell in row.values()] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{number} {what}" for what, number in value.items())
    if isinstance(value, list):
        words = (f"v{one}" if isinstance(one, int) else str(one) for one in value)
        return ", ".join(words) or "none"
    return str(value)


def _show(place: WorkspacePaths, name: str, *, as_json: bool) -> None:
    about = read_cohort_file(place, name).model_dump(mode="json")
    cohort = read_cohort(place, name)
    record = read_record(place, name)
    numbers = list_references(place, name)
    state: dict[str, Any] = {
        "texts_here": has_texts(place, name),
        "patients_known": cohort.patients_known,
        "references": list(numbers),
        "ratings": sorted(record.ratings),
    }
    marks: dict[str, dict[str, int]] = {}
    if record.is_holdout:
        state |= _seal(place, name)
    else:
        state |= {"references_edited": _edited(place, name)}
        marks = _marks(place, name)
        state |= _ratings(place, record)
    state |= {"reference_digest": record.newest_digest}
    if as_json:
        print_json({**about, **state, "marks": marks})
        return
    for key, value in {**about, **state}.items():
        if value not in ("", [], {}, None):
            say(f"{key:<18}{_cell(value) if key != 'files' else _files(value)}")
    if marks:
        kinds = list(dict.fromkeys(kind for row in marks.values() for kind in row))
        rows = [
            [label, *(str(row.get(kind, 0)) for kind in kinds)]
            for label, row in marks.items()
        ]
        say()
        print_table([f"reference v{numbers[-1]}", *kinds], rows)


def _ratings(place: WorkspacePaths, record: CohortRecord) -> dict[str, Any]:
    """Return who rated what in the newest ratings, and which files were edited."""
    if not record.ratings:
        return {}
    edited = edited_ratings(place, record.name)
    if edited:
        return {"ratings_edited": list(edited)}
    found = read_ratings_of(place, record.name)
    report = report_of(found.number, found.given, read_cohort(place, record.name))
    counted = {
        "pairs": report.rated,
        "ratings": report.ratings,
        "errors": report.errors,
    }
    return {
        "raters": list(report.raters),
        "rated": counted,
        "scales": list(report.dimensions),
    }


def _edited(place: WorkspacePaths, name: str) -> list[int]:
    return list(edited_references(place, name))


def _marks(place: WorkspacePaths, name: str) -> dict[str, dict[str, int]]:
    """Return label to how often each mark stands in the newest reference."""
    if not list_references(place, name):
        return {}
    reference = read_reference(place, name)
    return {
        label: {m.value: n for m, n in reference.counts(label).items() if n}
        for label in reference.labels
    }


def _seal(place: WorkspacePaths, name: str) -> dict[str, Any]:
    """Return how the labels of a holdout lie, and whether the key to them is here."""
    plain = [path for path in label_files(place, name) if path.is_file()]
    before = [path for path in replaced_files(place, name) if path.is_file()]
    return {
        "sealed": not plain,
        "plain_copies": [
            path.relative_to(place.root).as_posix() for path in (*plain, *before)
        ],
        "key_here": vault_key(place).is_file(),
    }


def _files(files: list[dict[str, str]]) -> str:
    return ", ".join(f"{file['name']} ({file['sha256'][:12]})" for file in files)


def _import(place: WorkspacePaths, what: _Import, who: Actor, *, as_json: bool) -> None:
    """Import a source and the votes on it, and say what became of them."""
    options = what.options
    progress = ProgressBar(f"import {options.name}", quiet=as_json)
    with progress.shown():
        report = import_cohort(
            place, what.source, options, actor=who, watch=progress.track
        )
        if what.votes or what.ratings:
            more = [
                *(["votes"] if what.votes else []),
                *(["ratings"] if what.ratings else []),
            ]
            note(
                f"{report.cohort}: {counted(report.cases, 'case')} imported; adding "
                f"{' and '.join(more)}"
            )
        voted, report = _add(place, what, report, who)
    if as_json:
        result = asdict(report)
        print_json({**result, "votes": votes_data(voted) if voted else None})
        return
    say_import(report)
    if voted:
        say_votes(voted)
    say("next: ranloop cohort check")


def _add(
    place: WorkspacePaths, what: _Import, report: ImportReport, who: Actor
) -> tuple[VotesReport | None, ImportReport]:
    """Add votes and ratings to what was imported; return what became of them."""
    counted = take_votes_file(place, what.votes, actor=who) if what.votes else None
    if what.ratings is None:
        return counted, report
    rated = take_rating_files(place, what.ratings, actor=who)
    return counted, replace(report, ratings=rated)


def _dry_run(
    place: WorkspacePaths, what: _Import, who: Actor, *, as_json: bool
) -> None:
    """Say what `_import` would do."""
    options = what.options
    progress = ProgressBar(f"check {options.name}", quiet=as_json)
    with progress.shown():
        found = dry_run_import(
            place, what.source, options, actor=who, watch=progress.track
        )
        counted = None
        if what.votes or what.ratings:
            with trial(place) as copy:
                import_cohort(copy, what.source, options, actor=who)
                counted, report = _add(copy, what, found.report, who)
                found = found._replace(report=report)
    replaced = _find_replaced(place, options.name)
    if as_json:
        print_json({**import_dry_run_data(found, counted), "replaced": replaced})
        return
    say("dry run: nothing was changed; this is what the import would make")
    say_import_dry_run(found, replaced)
    if counted:
        say_votes(counted)
    say(f"next: {_AGAIN}")


def _find_replaced(place: WorkspacePaths, name: str) -> dict[str, object] | None:
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

"""The verb ``inject``: put known errors, and harmless rewriting, into reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    find_place,
    note,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.judge.injection.inject import InjectionOptions, inject_errors
from loop.judge.injection.injection_files import (
    check_injection_folder,
    read_injection_cohort,
    read_injection_file,
    write_injection,
)


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("inject")(inject)


def inject(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="New folder for the pairs. Private."),
    ],
    source: Annotated[
        Path | None,
        typer.Argument(help="File of reports, read as by cohort import."),
    ] = None,
    cohort: Annotated[
        str, typer.Option("--cohort", help="Cohort of reports, instead of a file.")
    ] = "",
    errors: Annotated[
        str,
        typer.Option(
            "--errors",
            help="Kinds: a false finding, b omission, c wrong side, d severity, "
            "e comparison added, f change dropped.",
        ),
    ] = "abcdef",
    numbers: Annotated[
        str,
        typer.Option(
            "--number",
            "-k",
            metavar="K,...",
            help="Errors in a variant, one a sentence; one variant for each number.",
        ),
    ] = "1",
    harmless: Annotated[
        bool,
        typer.Option(
            "--harmless",
            help="Also rewrite what changes nothing: synonyms, abbreviations, order, "
            "style, forms of numbers.",
        ),
    ] = False,
    negated: Annotated[
        bool,
        typer.Option(
            "--negated", help="Deny an omitted finding instead of leaving it out."
        ),
    ] = False,
    most: Annotated[
        int | None,
        typer.Option("--most", min=1, help="Variants of each kind and number at most."),
    ] = None,
    modality: Annotated[
        str, typer.Option("--modality", help="Which false findings are plausible.")
    ] = "chest_xray",
    bank: Annotated[
        Path | None,
        typer.Option("--bank", help="What is written, as labels/injection.yaml."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    language: Annotated[
        str, typer.Option("--language", help="Of a file: ISO 639-1 code, or auto.")
    ] = "auto",
    encoding: Annotated[str, typer.Option("--encoding", help="Of a file.")] = "auto",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put known errors into reports, to test judges and metrics.

    No model is asked. Each variant has errors of one kind and differs from its report
    in nothing else, which is checked; so it is known what a judge should find. The
    folder holds pairs.csv, which `judge --pairs` reads, changes.jsonl with every
    change, and inject.json with the counts. English reports only.
    """
    if bool(cohort) is (source is not None):
        raise typer.BadParameter("name a file of reports, or a cohort with --cohort")
    try:
        options = InjectionOptions(
            errors=errors,
            numbers=_read_numbers(numbers),
            harmless=harmless,
            negated=negated,
            modality=modality,
            most=most,
            seed=seed,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    place = open_workspace(workspace) if cohort else find_place(workspace)
    check_injection_folder(out, place)
    progress = ProgressBar("inject", quiet=as_json)
    with progress.shown():
        if cohort and place is not None:
            given = read_injection_cohort(place, cohort)
        else:
            given = read_injection_file(
                source or Path(), place, language=language, encoding=encoding
            )
        made = inject_errors(
            given.texts,
            options,
            languages=given.languages,
            bank=bank,
            watch=progress.part("reports", len(given.texts)),
        )
        about = write_injection(out, made, given)
    if as_json:
        print_json(about)
    else:
        _show(about, out)


def _read_numbers(words: str) -> tuple[int, ...]:
    """Return the numbers in ``"1,2,3"``."""
    parts = words.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter("-k takes numbers such as 1 or 1,2,3")
    return tuple(int(part) for part in parts)


def _show(about: Mapping[str, Any], out: Path) -> None:
    """Print what was made, and what was not."""
    source = about["source"]
    say(
        f"{about['pairs']:,} pairs from {source['cases']:,} reports of "
        f"{source['kind']} {source['name']}: {about['significant']:,} with errors, "
        f"{about['insignificant']:,} harmless"
    )
    say()
    numbers = [str(one) for one in about["options"]["numbers"]]
    numbers.sort(key=int)
    print_table(
        ("kind", *(f"k = {one}" for one in numbers), "read otherwise"),
        [
            (
                kind,
                *(f"{counts[one]:,}" for one in numbers),
                "{read_otherwise:,} of {tried:,}".format(**about["places"][kind]),
            )
            for kind, counts in about["counts"].items()
        ],
    )
    say()
    for reason, count in about["cases_unused"].items():
        say(f"note: {count:,} reports not used: {reason}")
    say(
        "note: read otherwise: places tried and left out, because the reader of "
        "findings saw more change than was made"
    )
    note(f"wrote {out}: pairs.csv, changes.jsonl, inject.json; it holds report texts")

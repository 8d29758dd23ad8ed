"""The verb ``inject``: put known errors, and harmless rewriting, into reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    UnconstrainedOption,
    WorkspaceOption,
    find_place,
    note,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.nouns import counted
from loop.judge.injection.inject import (
    Injection,
    InjectionOptions,
    UnmadeVariants,
    inject_by_model,
    inject_errors,
)
from loop.judge.injection.injection_bank import shipped_wording
from loop.judge.injection.injection_files import (
    check_injection_folder,
    read_injection_cohort,
    read_injection_file,
    write_injection,
)
from loop.judge.injection.model_injection import MOST_ATTEMPTS, ErrorWriter, ModelReport
from loop.run.asking import EngineOptions


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
    severities: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="1,2",
            help="How far off a wrong severity is: 1 clearly, 2 further; one variant "
            "for each.",
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
    wording: Annotated[
        str,
        typer.Option(
            "--wording",
            help="Other words for it: a file, or shipped for those that no judge has.",
        ),
    ] = "",
    reread: Annotated[
        bool,
        typer.Option(
            "--reread/--no-reread",
            help="Leave out what the embedded judge's reader reads otherwise; without "
            "it, that judge can be tested on it.",
        ),
    ] = True,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            "-e",
            help="Language model that writes: openai:MODEL[@URL] or vllm:MODEL[@URL].",
            show_default="none: written from the bank",
        ),
    ] = "",
    validator: Annotated[
        str,
        typer.Option(
            "--validator",
            help="Language model that looks at what was written.",
            show_default="that of --engine",
        ),
    ] = "",
    region: Annotated[
        str,
        typer.Option("--region", help="Of the body, in words; for a language model."),
    ] = "",
    allow_unconstrained: UnconstrainedOption = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    language: Annotated[
        str, typer.Option("--language", help="Of a file: ISO 639-1 code, or auto.")
    ] = "auto",
    encoding: Annotated[str, typer.Option("--encoding", help="Of a file.")] = "auto",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put known errors into reports, to test judges and metrics.

    Each variant has errors of one kind and differs from its report in nothing else,
    which is checked; so it is known what a judge should find. Without --engine no model
    is asked. With it the prompts inject_a to inject_f and rewrite are, each answer is
    checked by code and then by the prompt validate, and one that is refused is asked
    for again, five times in all. Answers are kept in the workspace, if there is one:
    what was killed goes on. The folder holds pairs.csv, which `judge --pairs` reads,
    changes.jsonl with every change, and inject.json with the counts. English reports
    only.
    """
    if bool(cohort) is (source is not None):
        raise typer.BadParameter("name a file of reports, or a cohort with --cohort")
    try:
        options = InjectionOptions(
            errors=errors,
            numbers=_read_numbers("-k", numbers),
            severities=_read_numbers("--severity", severities),
            harmless=harmless,
            negated=negated,
            modality=modality,
            most=most,
            seed=seed,
            reread=reread,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if (validator or region) and not engine:
        raise typer.BadParameter("--validator and --region are for --engine")
    if engine and (negated or wording or not reread or options.severities != (1,)):
        raise typer.BadParameter(
            "--negated, --severity, --wording and --no-reread are for injection "
            "without --engine"
        )
    place = open_workspace(workspace) if cohort else find_place(workspace)
    check_injection_folder(out, place)
    asking = EngineOptions(
        tell=note, seed=seed, allow_unconstrained=allow_unconstrained
    )
    progress = ProgressBar("inject", quiet=as_json)
    with progress.shown():
        if cohort and place is not None:
            given = read_injection_cohort(place, cohort)
        else:
            given = read_injection_file(
                source or Path(), place, language=language, encoding=encoding
            )
        if engine:
            with ErrorWriter.open(
                place, options.written, engine, validator, asking
            ) as writer:
                made = inject_by_model(
                    given.texts,
                    writer,
                    options,
                    languages=given.languages,
                    bank=bank,
                    region=region,
                    watch=progress.part("reports"),
                )
        else:
            made = inject_errors(
                given.texts,
                options,
                languages=given.languages,
                bank=bank,
                wording=_find_wording(wording),
                watch=progress.part("reports", len(given.texts)),
            )
        about = write_injection(out, made, given)
    if as_json:
        print_json(about)
    else:
        _show(about, made, out)


def _find_wording(given: str) -> Path | None:
    """Return the file of other words; None for the words of the bank."""
    if given == "shipped":
        return shipped_wording()
    return Path(given) if given else None


def _read_numbers(option: str, words: str) -> tuple[int, ...]:
    """Return the numbers in ``"1,2,3"``."""
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise typer.BadParameter(f"{option} takes numbers such as 1 or 1,2")
    return tuple(int(part) for part in parts)


def _show(about: Mapping[str, Any], made: Injection, out: Path) -> None:
    """Print what was made, and what was not."""
    source = about["source"]
    say(
        f"{counted(about['pairs'], 'pair')} from {counted(source['cases'], 'report')} "
        f"of {source['kind']} {source['name']}: {about['significant']:,} with errors, "
        f"{about['insignificant']:,} harmless"
    )
    say()
    numbers = [str(one) for one in about["options"]["numbers"]]
    numbers.sort(key=int)
    model = made.model
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
    if "further_off" in about:
        off = counted(about["further_off"], "error")
        say(f"note: {off} of kind d with a severity that is further off")
    for reason, count in about["cases_unused"].items():
        say(f"note: {counted(count, 'report')} not used: {reason}")
    tried = "places tried" if model is None else "answers"
    if made.options.reread:
        say(
            f"note: read otherwise: {tried} and left out, because the reader of "
            "findings saw more change than was made"
        )
    if model is not None:
        _show_model(model, made.left_out)
    note(f"wrote {out}: pairs.csv, changes.jsonl, inject.json; it holds report texts")


def _show_model(model: ModelReport, left_out: Sequence[UnmadeVariants]) -> None:
    """Print who wrote, how many attempts it took, and what was refused."""
    facts = model.facts
    say(f"note: written by {facts.engine}, looked at by {facts.validator}")
    say(
        f"note: {sum(model.attempts.values()):,} answers for "
        f"{sum(model.accepted.values()):,} variants, at most {MOST_ATTEMPTS} each; "
        f"{counted(model.asked, 'prompt')} asked now, {model.cached:,} answered before"
    )
    for reason, count in model.rejected.items():
        say(f"note: {counted(count, 'answer')} refused: {reason}")
    lost = Counter[str]()
    for one in left_out:
        lost[one.reason] += one.variants
    for reason, count in sorted(lost.items()):
        say(f"note: {count:,} variants left out, in the end: {reason}")

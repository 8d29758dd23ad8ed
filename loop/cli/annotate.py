"""The verb ``annotate``: labels of a whole corpus, in a folder of Parquet shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.console import (
    EncodingOption,
    IdColumnOption,
    IdPrefixOption,
    JsonOption,
    LanguageOption,
    MaxTokensOption,
    NumberRowsOption,
    ProgressBar,
    TextColumnOption,
    ThinkingOption,
    UnconstrainedOption,
    WorkspaceOption,
    find_place,
    note,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    say_wrapped,
)
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Status
from loop.documents.numbers import NOT_ESTIMABLE, count, interval, percent, share
from loop.labels.importing.source import ImportOptions
from loop.release.annotation import (
    MOST_WORKERS,
    ROWS,
    SAMPLE,
    AnnotatedCorpus,
    AnnotationOptions,
    annotate_corpus,
    estimate_annotation,
)
from loop.release.corpus_review import (
    CorpusReport,
    draw_sample,
    report_corpus,
)
from loop.release.extractors import ExtractorOptions, choose_extractor
from loop.release.load import RunRequest
from loop.run.asking import EngineOptions
from loop.run.shards import NO_TEXT, AnnotationComparison, compare_annotations
from loop.stats.intervals import Estimate


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("annotate")(annotate)


def annotate(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(help="CSV, JSONL, Parquet or .xlsx file, or folder of .txt."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the annotation. Private."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Version, e.g. extractor@v11.")
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            help="Release, with its engine, e.g. extractor-v11.",
            show_default="the newest, else the newest version",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            "-e",
            help="rules, openai:MODEL[@URL], vllm:MODEL[#ADAPTER][@URL] or "
            "chexbert:FOLDER.",
            show_default="the release's, else rules",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=MOST_WORKERS,
            help="Processes, for the engine rules; with --ray, actors. Default: one, "
            "or as many as the cluster has room for.",
        ),
    ] = None,
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Ray cluster that makes the shards: host and port of its head, auto, "
            "or local for one on this machine. Needs the extra ray.",
        ),
    ] = "",
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of a shard.")] = ROWS,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="Keep the texts beside the labels.")
    ] = False,
    id_column: IdColumnOption = None,
    text_column: TextColumnOption = None,
    number_rows: NumberRowsOption = False,
    id_prefix: IdPrefixOption = "",
    language: LanguageOption = "auto",
    encoding: EncodingOption = "auto",
    max_tokens: MaxTokensOption = None,
    thinking: ThinkingOption = "",
    allow_unconstrained: UnconstrainedOption = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only count rows, tokens and cost."),
    ] = False,
    tokens_per_second: Annotated[
        float | None,
        typer.Option(
            "--tokens-per-second",
            min=1e-9,
            help="Throughput of one GPU, for the hours that --dry-run says.",
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample",
            metavar="FILE",
            help="Only draw rows of the finished annotation for readers, with "
            "their texts.",
        ),
    ] = None,
    size: Annotated[
        int,
        typer.Option(
            "--size",
            min=2,
            help="About how many rows --sample draws; fewer where rows have several "
            "labels.",
        ),
    ] = 300,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed of --sample.")
    ] = 0,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="Only report the prevalence of each label, corrected by the sample as "
            "readers labelled it in --cohort.",
        ),
    ] = None,
    cohort: Annotated[
        str, typer.Option("--cohort", help="Cohort of the sample, for --report.")
    ] = "",
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--compare",
            metavar="FOLDER FOLDER",
            help="Only say where two annotations of one source differ.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read labels out of a whole corpus, into Parquet shards.

    Rows are read as a stream, with the columns that `cohort import` knows. The folder
    has id, status, labels, evidence, repairs and problem of each row, and no text
    unless --with-text; _annotation.json says by what it was read and how rows ended,
    and _SUCCESS is there once all are. The same command goes on with what was killed.
    No workspace is needed: the version or release may ship with ranloop.

    With --sample, rows are drawn with known chances, and their texts written as a table
    for `cohort import`. Once readers have labelled that cohort, --report says how often
    each label is right, how often it is missed, and, from both, how many rows have it.
    """
    _refuse_unused(context)
    if compare is not None:
        _compare(compare, as_json=as_json)
        return
    if report is not None:
        _report(open_workspace(workspace), report, cohort, as_json=as_json)
        return
    if source is None or (out is None and not dry_run):
        raise typer.BadParameter("name a source, and a folder with --out")
    place, folder = find_place(workspace), out or Path()
    named = {"case_id": id_column, "text": text_column}
    options = AnnotationOptions(
        reading=ImportOptions(
            name="annotate",
            role="external",
            labels=False,
            language=language,
            encoding=encoding,
            id_prefix=id_prefix,
            number_rows=number_rows,
            columns={role: column for role, column in named.items() if column},
        ),
        asking=EngineOptions(allow_unconstrained=allow_unconstrained, tell=note),
        workers=workers,
        ray=ray,
        rows=rows,
        text=with_text,
    )
    if sample is not None:
        _sample(place, source, folder, sample, size, seed, options, as_json=as_json)
        return
    chosen = choose_extractor(
        place, ExtractorOptions(version=prompt, release=release, engine=engine)
    )
    if chosen.why:
        note(chosen.why)
    # What is named here goes before what a release was asked with.
    given = {"max_tokens": max_tokens, "thinking": thinking or None}
    request = chosen.request._replace(
        parameters={
            **chosen.request.parameters,
            **{name: value for name, value in given.items() if value is not None},
        }
    )
    if dry_run:
        _estimate(place, source, request, options, tokens_per_second, as_json)
        return
    if place is not None:
        place.require_outside(folder)
    progress = ProgressBar("annotate", quiet=as_json)
    with progress.shown():
        done = annotate_corpus(
            source,
            folder,
            request,
            workspace=place,
            options=options,
            watch=lambda shards: progress.part("shards", shards),
        )
    if as_json:
        print_json({**done.manifest.model_dump(mode="json"), "shards_made": done.made})
    else:
        _show(done, folder)
    statuses = done.manifest.statuses
    if statuses.keys() - {NO_TEXT} and not statuses.get(Status.ANSWERED.value):
        raise typer.Exit(1)


_READING = {
    "id_column",
    "text_column",
    "number_rows",
    "id_prefix",
    "language",
    "encoding",
}
"""Options that say how the source is read."""

_ANYWHERE = {"workspace", "as_json"}

_MODES = {
    "dry_run": {
        *("source", "prompt", "release", "engine", "rows", "max_tokens", "thinking"),
        *("tokens_per_second", *_READING),
    },
    "sample": {"source", "out", "size", "seed", *_READING},
    "report": {"cohort"},
    "compare": set[str](),
}
"""Option that says what is done instead, to the others that it reads; at most one."""

_DOES = {
    "dry_run": "only counts",
    "sample": "only draws rows",
    "report": "reads folders",
    "compare": "reads folders",
}

_GOES_WITH = {
    "size": "sample",
    "seed": "sample",
    "cohort": "report",
    "tokens_per_second": "dry_run",
}
"""Option to the only one that it goes with."""


def _refuse_unused(context: typer.Context) -> None:
    """Refuse options that would do nothing."""
    options = {str(one.name): one.opts[0] for one in context.command.params}
    source = context.get_parameter_source
    given = [
        name for name in options if getattr(source(name), "name", "") == "COMMANDLINE"
    ]
    modes = [name for name in _MODES if name in given]
    if len(modes) > 1:
        first, second, *_ = [options[name] for name in modes]
        raise typer.BadParameter(f"give {first} or {second}, not both")
    mode = modes[0] if modes else ""
    for name in given:
        only = _GOES_WITH.get(name, "")
        if only and mode != only:
            raise typer.BadParameter(f"{options[name]} goes with {options[only]}")
        if mode and name not in {mode, *_MODES[mode], *_ANYWHERE}:
            raise typer.BadParameter(
                f"{options[mode]} {_DOES[mode]}: leave out {options[name]}"
            )


def _compare(folders: tuple[Path, Path], *, as_json: bool) -> None:
    found = compare_annotations(*folders)
    if as_json:
        print_json(_comparison_data(found))
    else:
        _show_comparison(found)


def _report(place: WorkspacePaths, folder: Path, cohort: str, *, as_json: bool) -> None:
    if not cohort:
        raise typer.BadParameter("--report needs the --cohort that readers labelled")
    found = report_corpus(place, folder, cohort)
    if as_json:
        print_json(_report_data(found))
    else:
        _show_report(found)


def _sample(
    place: WorkspacePaths | None,
    source: Path,
    folder: Path,
    target: Path,
    size: int,
    seed: int,
    options: AnnotationOptions,
    *,
    as_json: bool,
) -> None:
    if place is not None:
        own_output(target, place)
    drawn = draw_sample(
        folder, source, target, size, seed=seed, workspace=place, options=options
    )
    if as_json:
        print_json({"drawn": drawn, "file": str(target)})
    else:
        say(f"{counted(drawn, 'row')} drawn for readers, each with a known chance")
        note(f"wrote {target}, with report texts, and {folder / SAMPLE}")


def _show(done: AnnotatedCorpus, out: Path) -> None:
    told = done.manifest
    plan = told.plan
    say(
        f"{counted(told.rows, 'row')} of {told.source} by "
        f"{plan.release or plan.prompt} with {plan.engine}: "
        f"{counted(len(told.shards), 'shard')}, {done.made:,} made now"
    )
    say()
    print_table(
        ("status", "rows", "share"),
        [
            (status, count(n), percent(n / told.rows))
            for status, n in told.statuses.items()
        ],
    )
    say()
    print_table(
        ("label", "present", "uncertain", "absent", "blank"),
        [
            (
                name,
                *(
                    count(values.get(word, 0))
                    for word in ("present", "uncertain", "absent", "blank")
                ),
            )
            for name, values in told.labels.items()
        ],
    )
    say()
    if told.repeated.ids:
        say(
            f"note: {counted(told.repeated.ids, 'id')} of several rows, for example "
            f"{', '.join(told.repeated.examples[:5])}"
        )
    if told.repaired:
        say(f"note: {counted(told.repaired, 'repaired answer')}")
    for text, n in list(told.problems.items())[:5]:
        say(f"note: {counted(n, 'row')} without an answer: {text}")
    if told.failed:
        more = sum(
            n
            for status, n in told.statuses.items()
            if status not in {Status.ANSWERED.value, NO_TEXT}
        ) - len(told.failed[:5])
        rest = f" and {more:,} more" if more else ""
        say(f"note: ids of these rows: {', '.join(told.failed[:5])}{rest}")
    if plan.engine != "rules" and told.statuses.get(Status.ENGINE_FAILED):
        say("note: the same command asks once more where the engine failed")
    note(f"wrote {out}: shards, _annotation.json and _SUCCESS")


def _estimate(
    place: WorkspacePaths | None,
    source: Path,
    request: RunRequest,
    options: AnnotationOptions,
    speed: float | None,
    as_json: bool,
) -> None:
    with ProgressBar("estimate", quiet=as_json).shown():
        size, found = estimate_annotation(
            source, request, workspace=place, options=options
        )
    shape = found.chosen
    tokens = shape.prompt_tokens + shape.output_tokens
    data: dict[str, Any] = {
        "sent": 0,
        "rows": size.rows,
        "shards": size.shards,
        "asked": found.cases,
        "prompt": found.prompt,
        "engine": found.engine,
        "requests": shape.requests,
        "prompt_tokens": shape.prompt_tokens,
        "uncached_tokens": shape.uncached_tokens,
        "output_tokens": shape.output_tokens,
        "tokens": found.counter.remark,
        "output": found.expectation.basis,
        "thinking": found.thinking_remark or None,
        "cost": shape.cost,
        "currency": found.price.currency if found.price else None,
        "gpu_hours": None if speed is None else tokens / speed / 3600,
    }
    if as_json:
        print_json(data)
        return
    say(f"{found.prompt} on {source.name} with {found.engine}: NOTHING WAS SENT")
    say(f"  rows      {count(size.rows)} in {counted(size.shards, 'shard')}")
    say(f"  with text {count(found.cases)}")
    say(f"  requests  {count(shape.requests)} at most: equal texts are asked once")
    say(
        f"  tokens    {count(shape.prompt_tokens)} in prompts, of which "
        f"{count(round(shape.uncached_tokens))} are not in a prefix that a server "
        "keeps"
    )
    say(f"            {count(shape.output_tokens)} in answers; {found.counter.remark}")
    say(f"  answers   expected from {found.expectation.basis}")
    if found.thinking_remark:
        say(f"  thinking  {found.thinking_remark}")
    if shape.cost is not None and found.price is not None:
        say(f"  cost      {shape.cost:,.2f} {found.price.currency}")
    if speed is not None:
        say(f"  GPU       {tokens / speed / 3600:,.1f} hours at {speed:g} tokens/s")


def _show_comparison(found: AnnotationComparison) -> None:
    same = found.rows - found.differing
    say(
        f"{counted(found.rows, 'row')}: {count(same)} the same, "
        f"{count(found.differing)} different"
    )
    changes = [("status", found.statuses)]
    changes += [(one.label, one.changes) for one in found.labels]
    rows = [(name, words, count(n)) for name, of in changes for words, n in of.items()]
    if rows:
        say()
        print_table(("label", "change", "rows"), rows)
        say()
        say(f"note: the first that differ are {', '.join(found.examples[:5])}")


def _show_report(found: CorpusReport) -> None:
    say(
        f"{counted(found.rows, 'row')} with a text, {count(found.drawn)} drawn, held "
        f"against {found.reference}"
    )
    say()
    print_table(
        ("label", "called", "right", "missed", "prevalence", "read"),
        [
            (
                one.label,
                percent(one.called / found.rows),
                *map(_limits, (one.among_called, one.among_others, one.prevalence)),
                f"{one.reviewed[0]} + {one.reviewed[1]}",
            )
            for one in found.labels
        ],
    )
    say()
    if found.missing:
        say(
            f"note: {counted(found.missing, 'drawn row')} not in the cohort: if they "
            "differ from the others, so does the truth from these numbers"
        )
    if found.changed:
        say(
            f"note: {counted(found.changed, 'drawn row')} with another text in the "
            "cohort than was annotated: readers labelled something else, so these are "
            "not read"
        )
    if found.unanswered:
        say(
            f"note: {counted(found.unanswered, 'row')} with a text and no answer: "
            "nothing is called present there, so they count among the others"
        )
    if found.left_out:
        say_wrapped(
            "note: ",
            f"no numbers for {', '.join(found.left_out)}: the reference has no such "
            "label",
        )
    undecided = sum(one.undecided for one in found.labels)
    if undecided:
        say(
            f"note: {counted(undecided, 'cell')} that readers left uncertain or open: "
            "in no number"
        )
    not_coded = sum(one.not_coded for one in found.labels)
    if not_coded:
        say(
            f"note: {counted(not_coded, 'cell')} that the reference does not code: "
            "counted as absent"
        )
    for text in _REPORT_NOTES:
        say_wrapped("note: ", text)


_REPORT_NOTES = (
    "called: share of rows that the annotation calls present. right: share of these "
    "that readers call present. missed: share of the other rows, called absent or "
    "uncertain or not answered, that readers call present. prevalence: by both. read: "
    "rows of each kind that were read.",
    "Each row counts by 1 / its chance of being drawn. 95 % limits: "
    "Clopper-Pearson for the effective number of rows, and recovered from both for the "
    "prevalence.",
)


def _limits(found: Estimate) -> str:
    if found.value is None:
        return NOT_ESTIMABLE
    return f"{share(found.value)} {interval(found)}"


def _report_data(found: CorpusReport) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "reference": found.reference,
        "drawn": found.drawn,
        "missing": found.missing,
        "changed": found.changed,
        "unanswered": found.unanswered,
        "left_out": list(found.left_out),
        "labels": [
            {
                "label": one.label,
                "called": one.called,
                "right": one.among_called._asdict(),
                "missed": one.among_others._asdict(),
                "prevalence": one.prevalence._asdict(),
                "reviewed": list(one.reviewed),
                "undecided": one.undecided,
                "not_coded": one.not_coded,
            }
            for one in found.labels
        ],
        "notes": list(_REPORT_NOTES),
    }


def _comparison_data(found: AnnotationComparison) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "differing": found.differing,
        "statuses": dict(found.statuses),
        "labels": [
            {"label": one.label, "rows": one.rows, "changes": dict(one.changes)}
            for one in found.labels
        ],
        "examples": list(found.examples),
    }

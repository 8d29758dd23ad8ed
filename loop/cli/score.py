"""The verb ``score``: grade generated texts against references, by label and more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from loop.cli.console import (
    JsonOption,
    UnconstrainedOption,
    WorkspaceOption,
    find_place,
    material,
    note,
    print_json,
)
from loop.cli.score_inputs import (
    ScoreInputs,
    add_rated_file,
    check_given,
    join_given,
    read_metrics,
    read_points,
    read_policy,
)
from loop.cli.score_labels import ExtractorOptions, read_labels
from loop.cli.score_shown import show_metrics, show_score
from loop.cli.score_written import check_out, write_documents
from loop.labels.taxonomy import read_taxonomy
from loop.report.score.build import Counting, build_document
from loop.report.score.data import score_data
from loop.run.asking import EngineOptions
from loop.score.metric import MetricOptions
from loop.score.reading.options import ReadingOptions
from loop.score.records import Conventions, NoFinding, Uncertain
from loop.stats.confusion import ZeroDivision


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("score")(score)


def score(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Candidates, FILE or NAME=FILE each: CSV, TSV, JSON Lines, Parquet.",
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option("--reference", "-r", help="References: texts or labels."),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            "-c",
            metavar="[NAME=]FILE",
            help="The same as a FILE; once for each system.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", help="One file with columns id, reference, candidate[, system]."
        ),
    ] = None,
    radpref: Annotated[
        Path | None,
        typer.Option("--radpref", help="Folder of the RadPref data set."),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            "--ratings", help="Experts' points: columns id, system, rater, score."
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            help="Prompt version, for example extractor@v7.",
            show_default="the newest release",
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release", help="Release, for example extractor-v7; verified first."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            "-e",
            help="rules, openai:MODEL[@URL] or vllm:MODEL[@URL].",
            show_default="the release's, else rules",
        ),
    ] = None,
    also: Annotated[
        str | None,
        typer.Option(
            "--also",
            metavar="EXTRACTOR",
            help="Second extractor, a version or a release, to compare with.",
        ),
    ] = None,
    also_engine: Annotated[
        str | None,
        typer.Option(
            "--also-engine",
            help="Engine of the second extractor.",
            show_default="its release's, else rules",
        ),
    ] = None,
    bias: Annotated[
        str | None,
        typer.Option(
            "--bias",
            metavar="auto|RUN",
            help="Correct for the extractor's errors, as measured on its dev cohort.",
        ),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            show_default="all that can run",
            help="Metric or family, once for each; none: label scores only.",
        ),
    ] = None,
    bertscore_model: Annotated[
        Path | None,
        typer.Option(
            "--bertscore-model", help="Folder of a local encoder, for BERTScore."
        ),
    ] = None,
    uncertain: Annotated[
        Uncertain,
        typer.Option("--uncertain", help="Leave uncertain pairs out, or read them."),
    ] = Uncertain.EXCLUDED,
    zero_division: Annotated[
        ZeroDivision,
        typer.Option("--zero-division", help="What a label counts that nobody has."),
    ] = "skip",
    no_finding: Annotated[
        NoFinding,
        typer.Option("--no-finding", help="Derive No Finding, or read it as given."),
    ] = NoFinding.RAN,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")
    ] = 10_000,
    permutations: Annotated[
        int, typer.Option("--permutations", min=1, help="Exchanges per pair.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all draws.")] = 0,
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="WORD=VALUE",
            help="What a word in a label cell means, for example yes=present.",
        ),
    ] = None,
    duplicates: Annotated[
        Literal["refuse", "first", "last"],
        typer.Option("--duplicates", help="What to do with an id of two contents."),
    ] = "refuse",
    encoding: Annotated[str, typer.Option("--encoding", help="Of all files.")] = "auto",
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column of case ids.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option("--text-column", help="Column of texts.")
    ] = None,
    system_column: Annotated[
        str | None, typer.Option("--system-column", help="Column of system names.")
    ] = None,
    patient_column: Annotated[
        str | None, typer.Option("--patient-column", help="Column of patients.")
    ] = None,
    language: Annotated[
        str, typer.Option("--language", help="Of all cases, for example en.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for documents, figures and tables."),
    ] = None,
    list_metrics: Annotated[
        bool, typer.Option("--list", help="Show every metric and end.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score generated reports: Ran Score and text metrics.

    References and candidates are joined by id. The same extractor reads the labels of
    both, each distinct text once; files may give labels instead. Outside a workspace,
    the shipped extractor is used.
    """
    if list_metrics:
        show_metrics(as_json=as_json)
        return
    given = ScoreInputs(
        reference=reference,
        candidates=(*(files or ()), *(candidate or ())),
        pairs=pairs,
        radpref=radpref,
        ratings=ratings,
    )
    check_given(given)
    reading = ReadingOptions(
        encoding=encoding,
        id_column=id_column,
        text_column=text_column,
        system_column=system_column,
        patient_column=patient_column,
        language=language,
        duplicates=duplicates,
        values=read_policy(value or ()),
    )
    conventions = Conventions(
        uncertain=uncertain,
        zero_division=zero_division,
        no_finding=no_finding,
        reading=reading.digest,
    )
    counting = Counting(
        conventions=conventions,
        metrics=read_metrics(metric or ("all",)),
        options=MetricOptions(
            bertscore_model=bertscore_model,
            uncertain=conventions.uncertain,
            zero_division=conventions.zero_division,
            reading=conventions.reading,
        ),
        resamples=resamples,
        permutations=permutations,
        seed=seed,
    )
    place = find_place(workspace)
    if out is not None:
        check_out(out, place)
    wish = ExtractorOptions(
        version=extractor,
        release=release,
        engine=engine,
        also=also,
        also_engine=also_engine,
        bias=bias,
        asking=EngineOptions(tell=note, allow_unconstrained=allow_unconstrained),
    )
    taxonomy = read_taxonomy(material(place).labels)
    joined = join_given(given, taxonomy, reading)
    points = read_points(given)
    joined = add_rated_file(joined, given)
    read = read_labels(
        place, joined, taxonomy, wish, conventions.no_finding, quiet=as_json
    )
    document = build_document(replace(read, ratings=points), taxonomy, counting)
    if out is not None:
        write_documents(document, out, place)
    if as_json:
        print_json(score_data(document))
    else:
        show_score(document)
    if not any(one.n for one in document.score.systems):
        note(
            "nothing was scored: no label is decided on both sides of any pair. See "
            "above why, or `problems` and `cells` of the JSON."
        )
        raise typer.Exit(1)

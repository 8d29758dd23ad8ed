"""The verb ``meta-eval``: how well metrics agree with experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    WorkspaceOption,
    find_place,
    note,
    own_output,
    print_json,
    print_table,
    say,
    say_wrapped,
    write_documents,
)
from loop.cli.radjudge import evaluate_radjudge
from loop.cli.score import check_named
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.documents.numbers import interval, share, signed
from loop.documents.svg import as_file
from loop.documents.templates import shipped_templates, template_folder
from loop.judge.radjudge import TOLERANCE
from loop.release.extractors import ExtractorOptions, reads_labels, score_radpref
from loop.run.asking import EngineOptions
from loop.score.experts import documents as words
from loop.score.experts.documents import (
    agreement_svg,
    meta_data,
    render_meta_html,
    render_meta_markdown,
)
from loop.score.experts.error_agreement import ErrorAgreement
from loop.score.experts.error_counts import CountAgreement
from loop.score.experts.error_tables import (
    ErrorTable,
    read_error_counts,
    read_judge_counts,
)
from loop.score.experts.meta import (
    MetaDocument,
    MetaEvaluation,
    MetricAgreement,
    MetricComparison,
    divide_strata,
    evaluate_metrics,
    hold_errors,
)
from loop.score.experts.metric_scores import (
    ScoreTable,
    describe_scores,
    read_metric_scores,
    tabulate,
)
from loop.score.experts.radpref import RadPref, read_radpref
from loop.score.experts.ratings import Ratings, read_ratings
from loop.score.metrics.embedded_judge import count_errors
from loop.score.metrics.registry import METRICS
from loop.score.metrics.score_sheet import write_per_case
from loop.stats.correlation import Preference
from loop.stats.intervals import Estimate

_TITLE = 34

_RATED = "What experts said"

_SCORED = "What metrics say"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("meta-eval")(meta_eval)


def meta_eval(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Scores per candidate: columns id, system and one per metric.",
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            "--ratings",
            "-r",
            help="Experts' points: columns id, system, rater, score.",
            rich_help_panel=_RATED,
        ),
    ] = None,
    radpref: Annotated[
        Path | None,
        typer.Option(
            "--radpref",
            help="Folder of the RadPref data set; without scores its texts are scored.",
            rich_help_panel=_RATED,
        ),
    ] = None,
    radjudge: Annotated[
        Path | None,
        typer.Option(
            "--radjudge",
            help="RadJudge's file of rankings, for metrics and judges of --metric.",
            rich_help_panel=_RATED,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            min=0,
            help="For --radjudge: scores this close count as the same if tolerant.",
            show_default=f"{TOLERANCE:g}",
            rich_help_panel=_RATED,
        ),
    ] = None,
    errors: Annotated[
        Path | None,
        typer.Option(
            "--errors",
            help=(
                "Experts' error counts: columns id, system, rater, category, "
                "significance, count; without --ratings, metrics are held against them."
            ),
            rich_help_panel=_RATED,
        ),
    ] = None,
    strata: Annotated[
        Path | None,
        typer.Option(
            "--strata",
            help="Columns id and, say, modality: shows agreement within each.",
            rich_help_panel=_RATED,
        ),
    ] = None,
    dimension: Annotated[
        str | None,
        typer.Option(
            "--dimension",
            help="What was rated, where the file has several dimensions.",
            rich_help_panel=_RATED,
        ),
    ] = None,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--scale",
            help="Lowest and highest possible score.",
            show_default="as the file says, else as observed",
            rich_help_panel=_RATED,
        ),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores",
            "-s",
            help="The same as a file of scores; once for each.",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    counts: Annotated[
        list[Path] | None,
        typer.Option(
            "--counts",
            help=(
                "A judge's error counts, as `ranloop judge` writes counts.csv; once "
                "for each judge, for --errors or --radpref."
            ),
            rich_help_panel=_SCORED,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Metric, once for each; also a family where texts are scored.",
            show_default="all that grade",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    lower: Annotated[
        list[str] | None,
        typer.Option(
            "--lower",
            help="Metric for which lower is better, where ranloop does not know it.",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    with_context: Annotated[
        list[str] | None,
        typer.Option(
            "--with-context",
            help="For --radjudge: metric of a file that was told about the patient.",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            help="Prompt version that extracts labels from texts.",
            show_default="the newest release",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            help="Release of an extractor, for example extractor-v7.",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            "-e",
            help="Engine of the extractor; with --radjudge, of the judges.",
            show_default="the release's, else rules",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    bertscore_model: Annotated[
        Path | None,
        typer.Option(
            "--bertscore-model",
            help="Folder of a local encoder, for BERTScore.",
            rich_help_panel=_SCORED,
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")
    ] = 2000,
    permutations: Annotated[
        int, typer.Option("--permutations", min=1, help="Permutations per pair.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one HTML page.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--md", help="Write Markdown.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write the figure alone.")
    ] = None,
    per_case: Annotated[
        Path | None,
        typer.Option("--per-case", help="Write the scores of RadPref's candidates."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well each metric agrees with experts.

    Reports Kendall's tau-b, Spearman, Pearson and preferences, with intervals over
    cases, for the mean of the raters and for each rater; which of two metrics agrees
    better; and the ceiling that the raters' own agreement sets. Compares a judge's
    error counts with experts' counts. Works on RadPref or on any scores, ratings and
    counts. With --radjudge: which of its rankings each metric or judge reproduces.
    """
    paths = (*(files or ()), *(scores or ()))
    if radjudge is not None:
        place = find_place(workspace)
        _check_radjudge(
            (ratings, radpref, errors, strata, dimension, scale, counts or None),
            (extractor, release, bertscore_model, html, svg, per_case),
            metric=metric,
            paths=paths,
            of_files=bool(lower or with_context),
            asks=engine is not None,
        )
        _check_outputs([markdown] if markdown else [], [*paths, radjudge], place)
        evaluate_radjudge(
            radjudge,
            place,
            tuple(metric or ()),
            paths,
            lower=tuple(lower or ()),
            context=tuple(with_context or ()),
            engine=engine or "rules",
            tolerance=TOLERANCE if tolerance is None else tolerance,
            markdown=markdown,
            as_json=as_json,
        )
        return
    _refuse_radjudge_options(tolerance, with_context)
    _check_said(
        radpref,
        ratings=ratings,
        errors=errors,
        for_ratings=(scale, dimension) != (None, None),
        scored=bool(paths),
        counted=bool(counts),
    )
    _check_texts(paths, (extractor, release, engine, bertscore_model, per_case))
    place = find_place(workspace)
    outputs = (html, markdown, svg, per_case)
    sources = [one for one in (ratings, errors, *(counts or ())) if one is not None]
    read = [*paths, *sources, *(one for one in (radpref, strata) if one)]
    _check_outputs([one for one in outputs if one is not None], read, place)
    names, less = tuple(metric or ()), tuple(lower or ())
    progress = ProgressBar("meta-eval", quiet=as_json)
    with progress.shown():
        experts = None if errors is None else read_error_counts(errors)
        points = _read_points(radpref, ratings, experts, scale, dimension)
        texts = None
        if paths or not isinstance(points, RadPref):
            table = read_metric_scores(paths, names, less)
        else:
            wish = ExtractorOptions(
                version=extractor,
                release=release,
                engine=engine,
                asking=EngineOptions(tell=note),
            )
            check_extractor(wish, names)
            texts = score_radpref(
                points,
                place,
                metrics=names,
                extractor=wish,
                bertscore_model=bertscore_model,
                watch=progress.part("texts"),
            )
            table = describe_scores(tabulate(texts.sheet), less)
        found = evaluate_metrics(
            table,
            points,
            metrics=names,
            source=", ".join(one.name for one in (ratings, errors) if one is not None),
            files=[*sources, *paths],
            resamples=resamples,
            permutations=permutations,
            seed=seed,
        )
        if strata is not None:
            found = divide_strata(found, table, points, strata)
        if texts is not None:
            found = replace(found, notes=(*texts.notes, *found.notes))
        if isinstance(points, RadPref) and texts is not None and _judges(table):
            found = _hold_embedded(found, points)
        if isinstance(points, RadPref):
            found = _hold_counts(found, counts or (), points.errors, points.patients)
        elif experts is not None:
            found = _hold_counts(found, counts or (), experts)
        _write(found, (html, markdown, svg), place)
        if per_case is not None and texts is not None:
            write_per_case(texts.sheet, per_case)
            note(f"wrote {per_case}")
    _show(found, as_json=as_json)


def _read_points(
    radpref: Path | None,
    ratings: Path | None,
    experts: ErrorTable | None,
    scale: tuple[float, float] | None,
    dimension: str | None,
) -> Ratings | RadPref:
    """Return what experts said, errors negated where they gave no points."""
    if radpref is not None:
        return read_radpref(radpref)
    if ratings is None and experts is not None:
        return experts.as_ratings()
    return read_ratings(ratings or Path(), scale=scale, dimension=dimension)


def _judges(table: ScoreTable) -> bool:
    """Return whether a metric of the embedded judge is among those shown."""
    names = [metric.name for metric in table.metrics]
    return any(METRICS[name].family == "judge" for name in names if name in METRICS)


def _hold_embedded(found: MetaDocument, rated: RadPref) -> MetaDocument:
    """Return the document with the embedded judge's error counts of RadPref."""
    counted = count_errors(rated.references, rated.candidates)
    return hold_errors(
        found, counted, rated.errors, name="Embedded judge", patients=rated.patients
    )


def _hold_counts(
    found: MetaDocument,
    counts: Sequence[Path],
    experts: ErrorTable,
    patients: Mapping[str, str] | None = None,
) -> MetaDocument:
    """Return the document with the counts of every judge's file."""
    for path in counts:
        judged = read_judge_counts(path)
        found = hold_errors(found, judged, experts, name=path.name, patients=patients)
    return found


def check_extractor(wish: ExtractorOptions, metrics: Sequence[str]) -> None:
    """Refuse two extractors, and one that no metric needs.

    Raises
    ------
    DataError
        There is no such metric.
    typer.BadParameter
        A version and a release are named, or labels are read for no metric.
    """
    check_named(wish)
    named = (wish.version, wish.release, wish.engine) != (None, None, None)
    if named and not reads_labels(metrics):
        raise typer.BadParameter(
            "--extractor, --release and --engine read labels, which no metric named "
            "here needs: leave them out, or name a metric of labels"
        )


def show_meta(document: MetaDocument) -> None:
    """Print the metrics, the raters, and what must be known of the numbers."""
    result = document.result
    say(f"{document.source}: {words.extent(result)}")
    say()
    _show_metrics(result)
    if document.strata:
        say()
        within = [(one.metric.title, one.agreement) for one in document.strata]
        print_table(words.STRATA, words.stratum_rows(within))
        say_wrapped("", words.STRATA_SAID, hang=2)
    if result.pairs:
        say()
        _show_pairs(result)
    say()
    _show_raters(result)
    if document.counts:
        say()
        _show_counts(result, document.counts)
    say()
    best = words.against_best(result)
    if best:
        _show_best(result)
        say()
    for found in document.errors:
        show_error_agreement(found)
        say()
    for text in (words.headline(result), words.ceiling(result)):
        say_wrapped("", text, hang=2)
    for text in (*words.left_out(result), *document.notes):
        say_wrapped("", f"note: {text}", hang=2)
    for name, reason in result.unavailable:
        say_wrapped("", f"note: {name} did not run: {reason}", hang=2)


def _show_metrics(result: MetaEvaluation) -> None:
    raters = [f"rater {name}" for name in result.raters]
    header = ("metric", "n", "tau-b", "Spearman", "Pearson", *raters)
    print_table(
        header,
        [
            (
                _title(one),
                str(one.consensus.n),
                _full(one.consensus.tau_b),
                share(one.consensus.spearman.value),
                share(one.consensus.pearson.value),
                *(share(each.tau_b.value) for each in one.raters),
            )
            for one in result.metrics
        ],
        title=(
            f"agreement with the mean of the raters, {100 * result.confidence:g} % "
            "intervals over "
            f"{'cases' if result.patients is None else 'patients'}; "
            "right columns: tau-b with each rater"
        ),
    )
    for one in result.metrics:
        if remarks := words.remarks(one, result.agreement):
            say_wrapped("", f"  {one.metric.title}: {remarks}", hang=2)


def _show_pairs(result: MetaEvaluation) -> None:
    header = ("metric", "right", "wrong", "tied", "accuracy", "right", "tied", "of")
    print_table(
        header,
        [
            (
                _title(one),
                *_pair_cells(one.preference),
                _full(one.preference.accuracy),
                str(one.unanimous.right),
                str(one.unanimous.tied),
                str(one.unanimous.right + one.unanimous.wrong + one.unanimous.tied),
            )
            for one in result.metrics
        ],
        title=(
            f"which of two candidates is better: {result.pairs} pairs by the raters' "
            "mean, less those it ties and those without a value, then the "
            f"{result.unanimous} that all raters decide alike"
        ),
    )


def _pair_cells(found: Preference) -> tuple[str, str, str]:
    return (str(found.right), str(found.wrong), str(found.tied))


def _show_raters(result: MetaEvaluation) -> None:
    found = result.agreement
    rows = [
        (f"{one.first} and {one.second}", one.correlations, share(one.same))
        for one in found.pairs
    ]
    rows += [
        (f"{one.rater} and the others", one.correlations, "") for one in found.rest
    ]
    if rows:
        print_table(
            ("raters", "n", "tau-b", "Spearman", "Pearson", "same"),
            [
                (
                    name,
                    str(one.n),
                    _full(one.tau_b),
                    share(one.spearman.value),
                    share(one.pearson.value),
                    same,
                )
                for name, one, same in rows
            ],
            title="raters among themselves",
        )
    say(
        f"Krippendorff's alpha ordinal {_full(found.ordinal)}, interval "
        f"{_full(found.interval)}; ICC(2,1) {_full(found.icc)}"
    )


def _show_counts(result: MetaEvaluation, counts: tuple[CountAgreement, ...]) -> None:
    header = ("formula", "empty", *(f"rater {name}" for name in result.raters), "mean")
    print_table(
        (*header, "right", "tied"),
        [
            (
                f"{one.name}: {one.formula}",
                "" if one.empty is None else one.empty.value,
                *(f"{share(each.tau_b.value)} n {each.n}" for each in one.raters),
                share(one.tau_b),
                str(one.unanimous.right),
                str(one.unanimous.tied),
            )
            for one in counts
        ],
        title=(
            "from the raters' own counts: tau-b with the same rater's points; right "
            f"and tied of the {counts[0].unanimous.right + _rest(counts[0])} "
            "unanimous pairs"
        ),
    )


def show_error_agreement(found: ErrorAgreement) -> None:
    """Print how a judge's error counts agree with experts', and the bias."""
    header = ("errors", "judge", "experts", "F1", "one rater", "two", "rest", "bias")
    print_table(
        header,
        [
            (
                one.group.name.replace("_", " "),
                f"{one.judge.found:g}",
                f"{one.judge.expected:g}",
                _full(one.judge.f1),
                share(one.f1_each),
                share(one.f1_pairs),
                share(one.f1_rest),
                signed(one.difference.value, 2),
            )
            for one in (found.total, *found.groups, *found.categories)
        ],
        title=(
            f"{found.judge} against {found.against}; right columns: mean F1 with one "
            "rater, of two raters, of a rater with the rest; bias: judge minus experts"
        ),
    )
    bins = words.bias_bins(found)
    if bins:
        print_table(
            ("true errors", *(str(one.errors) for one in bins)),
            [
                ("candidates", *(str(one.n) for one in bins)),
                ("bias", *(signed(one.difference.value, 2) for one in bins)),
            ],
        )
    for text in words.errors_said(found)[1:]:
        say_wrapped("", text, hang=2)


def _rest(one: CountAgreement) -> int:
    return one.unanimous.wrong + one.unanimous.tied + one.unanimous.undefined


def _show_best(result: MetaEvaluation) -> None:
    titles = {one.metric.name: one.metric.title for one in result.metrics}
    print_table(
        ("best against", "tau-b", "p", "Holm", "Pearson", "Williams", "Holm"),
        [
            (
                titles[
                    one.worse
                    if one.better == result.metrics[0].metric.name
                    else one.better
                ][:_TITLE],
                signed(_of_first(result, one, one.tau_b.difference)),
                words.optional_p(one.tau_b.p),
                words.optional_p(one.p_tau_b),
                signed(_of_first(result, one, one.pearson)),
                words.optional_p(one.williams.p),
                words.optional_p(one.p_williams),
            )
            for one in words.against_best(result)
        ],
        title=(
            f"{titles[result.metrics[0].metric.name]} against the others; p: "
            "permutation and Williams"
        ),
    )


def _of_first(
    result: MetaEvaluation, one: MetricComparison, value: float | None
) -> float | None:
    """Return a difference as seen from the first metric: negative where it loses."""
    lost = one.better != result.metrics[0].metric.name
    return -value if lost and value is not None else value


def _title(one: MetricAgreement) -> str:
    return one.metric.title[:_TITLE]


def _full(found: Estimate) -> str:
    return f"{share(found.value)} {interval(found)}"


def _check_said(
    radpref: Path | None,
    *,
    ratings: Path | None,
    errors: Path | None,
    for_ratings: bool,
    scored: bool,
    counted: bool,
) -> None:
    """Refuse no file or two files of what experts said, and options without a use."""
    if (ratings is None and errors is None) == (radpref is None):
        raise typer.BadParameter(
            "name what experts said: --ratings FILE, --errors FILE or both, "
            "--radpref FOLDER or --radjudge FILE"
        )
    if radpref is None and not scored:
        raise typer.BadParameter("name a file of scores, for example per_case.csv")
    if counted and errors is None and radpref is None:
        raise typer.BadParameter(
            "--counts are compared with experts' counts: name those with --errors, or "
            "RadPref with --radpref"
        )
    if ratings is None and for_ratings:
        raise typer.BadParameter(
            "--scale and --dimension are for --ratings: leave them out"
        )


def _check_radjudge(
    others: Sequence[object],
    unused: Sequence[object],
    *,
    metric: Sequence[str] | None,
    paths: Sequence[Path],
    of_files: bool,
    asks: bool,
) -> None:
    """Refuse other sources of what experts said, and options without a use."""
    if any(one is not None for one in (*others, *unused)):
        raise typer.BadParameter(
            "--radjudge brings its own texts and rankings, and its documents are --md "
            "and --json: leave the other options out"
        )
    if of_files and not paths:
        raise typer.BadParameter(
            "--lower and --with-context describe columns of a file of scores: of what "
            "--metric names ranloop knows both. Leave them out, or name the file"
        )
    if asks and paths:
        raise typer.BadParameter(
            "--engine is for judges named with --metric, and scores of a file are not "
            "asked for again: leave one of the two out"
        )
    if not (metric or paths):
        raise typer.BadParameter(
            "name metrics and judges with --metric, or a file of scores"
        )


def _refuse_radjudge_options(*given: object) -> None:
    if any(one is not None for one in given):
        raise typer.BadParameter("--tolerance and --with-context are for --radjudge")


def _check_texts(scores: Sequence[Path], given: Sequence[object]) -> None:
    """Refuse options that would have no effect: no text is scored."""
    if scores and any(one is not None for one in given):
        raise typer.BadParameter(
            "--extractor, --release, --engine, --bertscore-model and --per-case are "
            "for scoring RadPref's texts: leave them out, or the files of scores"
        )


def _check_outputs(
    paths: Sequence[Path], read: Sequence[Path], workspace: WorkspacePaths | None
) -> None:
    """Refuse to overwrite what is read, or to write two documents to one file.

    Raises
    ------
    DataError
        It is one of those, or one of the workspace's own files.
    """
    given = {one.resolve() for one in _files_of(read)}
    taken: set[Path] = set()
    for path in paths:
        if workspace is not None:
            own_output(path, workspace)
        if path.resolve() in given:
            raise DataError(
                f"{path} is read here, and is not overwritten. Name another file."
            )
        if path.is_dir() or path.resolve() in taken:
            what = "a folder" if path.is_dir() else "named for two documents"
            raise DataError(f"{path} is {what}. Name a file for each document.")
        taken.add(path.resolve())


def _files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield every file that is named, and those in a folder that is."""
    for path in paths:
        yield path
        if path.is_dir():
            yield from (one for one in path.rglob("*") if one.is_file())


def _write(
    document: MetaDocument,
    paths: Sequence[Path | None],
    workspace: WorkspacePaths | None,
) -> None:
    """Write the documents that are wanted, and say so."""
    folder = shipped_templates() if workspace is None else template_folder(workspace)
    if not (folder / "meta_eval.html.jinja").is_file():
        # A workspace whose own templates are older than this document.
        folder = shipped_templates()
    write_documents(
        paths,
        (
            lambda: render_meta_html(document, templates=folder),
            lambda: render_meta_markdown(document, templates=folder),
            lambda: as_file(agreement_svg(document.result)),
        ),
    )


def _show(document: MetaDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(meta_data(document))
        return

    show_meta(document)

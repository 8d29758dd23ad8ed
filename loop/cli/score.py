"""The verb ``score``: grade generated texts against references, by label and more."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from loop.cli.console import (
    JsonOption,
    ProgressBar,
    UnconstrainedOption,
    WorkspaceOption,
    find_place,
    note,
    own_output,
    print_json,
    print_table,
    read_policy,
    say,
    say_wrapped,
)
from loop.core.paths import WorkspacePaths, material
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    interval,
    p_value,
    percent,
    share,
    signed,
    signed_interval,
)
from loop.documents.templates import shipped_templates, template_folder
from loop.labels.taxonomy import Taxonomy, read_taxonomy
from loop.release.extractors import ExtractorOptions, score_reports
from loop.run.asking import EngineOptions
from loop.score.documents.score_files import (
    check_folder,
    metric_data,
    metric_views,
    render_files,
    score_data,
    title_of,
    write_folder,
)
from loop.score.documents.sentences import (
    READINGS,
    WAYS,
    agreement_line,
    caution_sentences,
    count_cells,
    coverage_lines,
    extractor_name,
    interval_sentence,
    left_out_line,
    moves_sentence,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    verdict_words,
)
from loop.score.experts.radpref import read_radpref
from loop.score.experts.ratings import Ratings, read_ratings
from loop.score.joining import CandidateFile, join_files, join_pairs, join_texts
from loop.score.metrics.registry import METRICS, find
from loop.score.reading.options import ReadingOptions
from loop.score.records import Conventions, Joined, NoFinding, Uncertain
from loop.score.scoring import Counting, ScoreDocument
from loop.stats.confusion import ZeroDivision
from loop.stats.intervals import Estimate

_SIDE_BY_SIDE = 3
"""Systems in one table of metrics: more do not fit."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("score")(score)


def score(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Candidates, FILE or NAME=FILE each: CSV, TSV, JSON Lines, Parquet, "
            "Excel.",
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
            help="rules, openai:MODEL[@URL], vllm:MODEL[@URL] or chexbert:FOLDER.",
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
        typer.Option(
            "--uncertain",
            help="Uncertain values: wrong where the reference decides, left out, or "
            "read as present or absent.",
        ),
    ] = Uncertain.WRONG,
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
        int, typer.Option("--permutations", min=1, help="Permutations per pair.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="WORD=VALUE",
            help="What a word in a label cell means, for example yes=present; "
            "chexpert: a blank cell is absent, as CheXbert writes it.",
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
        bertscore_model=bertscore_model,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
    )
    place, progress = find_place(workspace), ProgressBar("score", quiet=as_json)
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
    check_named(wish)
    with progress.shown():
        joined = join_given(given, read_taxonomy(material(place).labels), reading)
        points = read_points(given)
        document = score_reports(
            add_rated_file(joined, given),
            place,
            extractor=wish,
            counting=counting,
            ratings=points,
            watch=progress.part("texts"),
        )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInputs:
    """Where the rows to score are."""

    reference: Path | None
    candidates: tuple[str, ...]
    """``FILE`` or ``NAME=FILE`` each."""

    pairs: Path | None
    radpref: Path | None
    ratings: Path | None


def check_given(given: ScoreInputs) -> None:
    """Refuse what cannot be scored together.

    Raises
    ------
    typer.BadParameter
        Nothing, half of what is needed, or two ways at once were given.
    """
    files = given.reference is not None or bool(given.candidates)
    ways = (files, given.pairs is not None, given.radpref is not None)
    if sum(ways) > 1:
        raise typer.BadParameter(
            "give references and candidates, or --pairs, or --radpref: one of the three"
        )
    if not any(ways):
        raise typer.BadParameter(
            "give candidates and their references with --reference, or --pairs FILE"
        )
    if files and given.reference is None:
        raise typer.BadParameter("name the references with --reference FILE")
    if files and not given.candidates:
        raise typer.BadParameter("name at least one file of candidates")
    if given.radpref is not None and given.ratings is not None:
        raise typer.BadParameter("--radpref brings its ratings: leave --ratings out")


def check_named(wish: ExtractorOptions) -> None:
    """Refuse two extractors in one place.

    Raises
    ------
    typer.BadParameter
        A version and a release are named.
    """
    if wish.version is not None and wish.release is not None:
        raise typer.BadParameter("name a version or a release, not both")


def read_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics that are asked for; none of them for ``none``.

    Raises
    ------
    DataError
        Nothing is called so.
    typer.BadParameter
        ``none`` and others at once.
    """
    if "none" in names:
        if len(names) > 1:
            raise typer.BadParameter(
                "--metric none cannot be combined with other metrics"
            )
        return ()
    find(names)
    return tuple(names)


def join_given(
    given: ScoreInputs, taxonomy: Taxonomy, options: ReadingOptions
) -> Joined:
    """Return the pairs, joined by id.

    Raises
    ------
    DataError
        A file is missing or malformed, or rows cannot be joined.
    """
    if given.radpref is not None:
        found = read_radpref(given.radpref)
        joined = join_texts(
            found.references,
            found.candidates,
            taxonomy,
            patients=found.patients,
            options=options,
        )
        contexts = tuple(found.contexts.get(one, "") for one in joined.case_ids)
        return replace(joined, contexts=contexts, files=found.files)
    if given.pairs is not None:
        return join_pairs(given.pairs, taxonomy, options=options)
    if given.reference is None:
        raise ValueError("there is nothing to join")
    files = [_candidate(text) for text in given.candidates]
    return join_files(given.reference, files, taxonomy, options=options)


def read_points(given: ScoreInputs) -> Ratings | None:
    """Return the experts' points; None where there are none."""
    if given.radpref is not None:
        return read_radpref(given.radpref).ratings
    return None if given.ratings is None else read_ratings(given.ratings)


def add_rated_file(joined: Joined, given: ScoreInputs) -> Joined:
    """Return `joined` with the file of points among its files, once it was read."""
    if given.ratings is None:
        return joined
    digest = hashlib.sha256(given.ratings.read_bytes()).hexdigest()
    return replace(joined, files=(*joined.files, (given.ratings.name, digest)))


def _candidate(text: str) -> CandidateFile:
    """Return a file and maybe the name of its system; a name may hold no ``=``."""
    name, sign, path = text.partition("=")
    if not sign or os.path.exists(text):
        return CandidateFile(Path(text))
    return CandidateFile(Path(path), name)


def check_out(out: Path, place: WorkspacePaths | None) -> None:
    """Refuse a folder that documents must not be written to.

    Raises
    ------
    DataError
        It is the workspace's own, or holds files of someone else.
    """
    if place is not None:
        own_output(out, place)
    check_folder(out)


def write_documents(
    document: ScoreDocument, out: Path, place: WorkspacePaths | None
) -> None:
    """Write all documents, figures and tables, or none of them, and say so.

    Raises
    ------
    WriteError
        The folder cannot be written.
    """
    templates = template_folder(place) if place else shipped_templates()
    if not (templates / "score.html.jinja").is_file():
        # A workspace whose own templates are older than this document.
        templates = shipped_templates()
    files = render_files(document, templates=templates)
    write_folder(out, files)
    note(f"wrote {len(files)} files to {out}, first of all {out / 'score.html'}")


def show_score(document: ScoreDocument) -> None:
    """Print the ranking, what sets systems apart, the metrics and what to know."""
    found = document.score
    say(f"{title_of(document)}; {extractor_name(found.extractor)}")
    say()
    _show_ranking(document)
    if found.differences:
        say()
        _show_differences(document)
    say()
    for first in range(0, len(found.systems), _SIDE_BY_SIDE):
        _show_values(document, first)
        say()
    for text in notes(document):
        say_wrapped("note: ", text)
    for one in found.systems:
        say(f"signature of {one.system}: {one.signature}")


def notes(document: ScoreDocument) -> list[str]:
    """Return what a reader must know beside the numbers, as sentences."""
    found, told = document.score, [*document.remarks]
    told += dict.fromkeys(perfect_sentence(one, found) for one in found.systems)
    told += caution_sentences(found)
    told += _left_out(document)
    told.append(moves_sentence(found))
    told += _readings(document)
    told.append(interval_sentence(found))
    told += [
        f"{one.system}: {one.ran_score.note}"
        for one in found.systems
        if one.ran_score.note
    ]
    told += coverage_lines(document)
    if document.outcomes is not None:
        told.append(f"distinct texts: {outcome_line(document.outcomes)}")
    told += [problem_line(one) for one in document.problems]
    if document.experts is not None:
        told += [agreement_line(document.experts), rated_line(document.experts)]
    if document.panel is not None:
        told.append(_panel_line(document))
    told += [
        f"{one.metric} did not run: {one.reason}" for one in document.sheet.unavailable
    ]
    return told


def _readings(document: ScoreDocument) -> list[str]:
    """Return the score under every reading of uncertain values, where it moves."""
    return [
        f"{one.system}: uncertain "
        + ", ".join(
            f"{READINGS[reading.uncertain]} {share(reading.ran_score)}"
            for reading in one.readings
        )
        for one in document.score.systems
        if len({reading.ran_score for reading in one.readings}) > 1
    ]


def _left_out(document: ScoreDocument) -> list[str]:
    """Return how many cells count, in one line where that is so for every system."""
    score = document.score
    lines = {one.system: left_out_line(one, score) for one in score.systems}
    if len(set(lines.values())) == 1:
        return [f"every system: {line}" for line in set(lines.values())]
    return [f"{name}: {line}" for name, line in lines.items()]


def _panel_line(document: ScoreDocument) -> str:
    panel = document.panel
    if panel is None:
        return ""
    rows = "; ".join(
        f"{row.system} {share(row.first.value)} and {share(row.second.value)}"
        for row in panel.systems
    )
    return (
        f"read by {panel.first.ref} with {panel.first.engine}, and by "
        f"{panel.second.ref} with {panel.second.engine}: {rows}; pairs of systems that "
        f"change places: {len(panel.swapped)}"
    )


def _show_ranking(document: ScoreDocument) -> None:
    found = document.score
    corrected = ("corrected",) if found.assumptions else ()
    header = (
        *("system", "rank", "Ran Score", "cells", "labels", "best in", "micro-F1"),
        *("macro P", "macro R", "n", "perfect", *corrected),
    )
    rows = [
        (
            f"{document.keys[one.system]} {one.system}",
            str(one.rank),
            _estimate(one.ran_score),
            percent(count_cells(one, found).share),
            f"{one.effective_labels}/{len(found.labels)}",
            percent(one.best, 0),
            _estimate(one.micro_f1),
            share(one.macro_precision),
            share(one.macro_recall),
            str(one.n),
            share(one.perfect),
            *([_estimate(one.corrected)] if corrected else []),
        )
        for one in found.systems
    ]
    print_table(header, rows)


def _show_differences(document: ScoreDocument) -> None:
    keys = document.keys
    rows = [
        (
            f"{keys[one.better]} over {keys[one.worse]}",
            f"{signed(one.difference.value)} {signed_interval(one.difference)}",
            _p(one.p),
            _p(one.p_holm),
            "all" if one.exact else "sampled",
            verdict_words(one),
        )
        for one in document.differences
    ]
    header = ("pair", "difference", "p", "Holm p", "exchanges", "at 0.05")
    print_table(header, rows)


def _show_values(document: ScoreDocument, first: int) -> None:
    """Print every metric of a few systems; with the first ones what experts say."""
    systems = document.score.systems[first : first + _SIDE_BY_SIDE]
    agreed = {}
    if document.experts is not None and first == 0:
        agreed = {one.name: one.found.tau_b for one in document.experts.metrics}
    beside = ("tau-b with experts",) if agreed else ()
    header = ("metric", *(document.keys[one.system] for one in systems), *beside)
    rows = [
        (
            f"{view.metric.name} ({view.way})",
            *(
                _estimate(one.estimate if one else None)
                for one in view.results[first : first + _SIDE_BY_SIDE]
            ),
            *([_estimate(agreed.get(view.metric.name))] if agreed else []),
        )
        for view in metric_views(document)
    ]
    print_table(header, rows)


def _estimate(one: Estimate | None) -> str:
    if one is None or one.value is None:
        return NOT_ESTIMABLE
    return (
        share(one.value) if one.low is None else f"{share(one.value)} {interval(one)}"
    )


def _p(value: float | None) -> str:
    return NOT_ESTIMABLE if value is None else p_value(value)


def show_metrics(*, as_json: bool) -> None:
    """Print every metric that there is: name, direction, range, needs, what it is."""
    if as_json:
        print_json({"metrics": [metric_data(one) for one in METRICS.values()]})
        return
    rows = [
        (one.name, one.family, range_words(one), WAYS[one.direction], one.needs or "-")
        for one in METRICS.values()
    ]
    print_table(("metric", "family", "range", "direction", "needs"), rows)
    say()
    for one in METRICS.values():
        say_wrapped(f"{one.name}: ", f"{one.title}. {one.about} {one.reference}")

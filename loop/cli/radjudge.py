"""RadJudge for ``meta-eval``: which of its rankings judges and metrics reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from loop import __version__
from loop.cli.console import (
    ProgressBar,
    note,
    print_json,
    print_table,
    say,
    say_wrapped,
    write_documents,
)
from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.safe_text import quoted
from loop.documents.templates import render_template, shipped_templates
from loop.judge.discrimination import PairScores
from loop.judge.radjudge import (
    RadJudge,
    RankingResult,
    grade_rankings,
    read_radjudge,
)
from loop.judge.radjudge_text import (
    TOTAL_HEADER,
    category_rows,
    failed_rows,
    radjudge_conventions,
    radjudge_data,
    radjudge_notes,
    total_rows,
)
from loop.release.graders import (
    GradedTexts,
    GraderOptions,
    grade_texts,
    resolve_graders,
)
from loop.run.asking import EngineOptions
from loop.score.experts.metric_scores import read_metric_scores


def evaluate_radjudge(
    path: Path,
    place: WorkspacePaths | None,
    metrics: Sequence[str],
    scores: Sequence[Path],
    *,
    lower: Sequence[str],
    context: Sequence[str],
    engine: str,
    tolerance: float,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Test metrics, judges and scores of one's own on RadJudge, and print the result.

    Parameters
    ----------
    metrics
        Metrics, families and judges; where `scores` are given, their columns.
    scores
        Files with the columns id (the test), system (the candidate) and one for each
        metric.
    lower
        Columns in which lower is better.
    context
        Columns of `scores` whose metric was told about the patient. Of a judge that is
        asked here it is known.
    engine
        Of the judges.
    """
    given = read_radjudge(path)
    with ProgressBar("meta-eval", quiet=as_json).shown():
        if scores:
            held = _read_own(given, scores, metrics, lower)
        else:
            options = GraderOptions(engine=engine, asking=EngineOptions(tell=note))
            graders = resolve_graders(place, metrics)
            columns = grade_texts(_texts(given), place, graders, options)
            held = [one.pair_scores for one in columns]
            context = [*context, *(one.name for one in columns if one.with_context)]
        unknown = [name for name in context if name not in {one.name for one in held}]
        if unknown:
            raise DataError(
                f"--with-context names {quoted(unknown[0])}, which is not measured "
                f"here. Measured are {', '.join(one.name for one in held)}."
            )
        found = [
            grade_rankings(
                given, one, tolerance=tolerance, with_context=one.name in context
            )
            for one in held
        ]
    if markdown is not None:
        _write_markdown(markdown, given, found, tolerance)
    if as_json:
        print_json(radjudge_data(given, found, tolerance=tolerance))
    else:
        _show(given, found, tolerance)


def _texts(given: RadJudge) -> GradedTexts:
    """Return each candidate beside its reference, and what is known of the patient."""
    rows = [
        (test.reference, text, test.contexts.get(name, ""))
        for test in given.tests
        for name, text in test.candidates.items()
    ]
    return GradedTexts(
        ids=tuple(f"row {row}" for row in range(len(rows))),
        references=tuple(reference for reference, _, _ in rows),
        candidates=tuple(candidate for _, candidate, _ in rows),
        contexts=tuple(context for _, _, context in rows),
    )


def _read_own(
    given: RadJudge,
    paths: Sequence[Path],
    metrics: Sequence[str],
    lower: Sequence[str],
) -> list[PairScores]:
    """Return scores from files, joined by the test's id and the candidate's name."""
    table = read_metric_scores(paths, metrics, lower)
    places = {key: place for place, key in enumerate(given.keys)}
    if not places.keys() & set(table.keys):
        raise DataError(
            f"no row of {', '.join(one.name for one in paths)} belongs to a test of "
            f"{given.source}. Put the test into column id, and the candidate into "
            "column system."
        )
    values = np.full((len(places), len(table.metrics)), np.nan)
    for row, key in enumerate(table.keys):
        if key in places:
            values[places[key]] = table.values[row]
    files = ", ".join(one.name for one in paths)
    return [
        PairScores(
            name=one.name,
            title=one.title,
            lower=one.lower,
            values=values[:, column],
            signature=one.signature or f"{one.name}|from:{files}",
        )
        for column, one in enumerate(table.metrics)
    ]


def _write_markdown(
    path: Path, given: RadJudge, found: Sequence[RankingResult], tolerance: float
) -> None:
    page = render_template(
        shipped_templates(),
        "radjudge.md.jinja",
        {
            "given": given,
            "found": list(found),
            "conventions": radjudge_conventions(tolerance),
            "header": TOTAL_HEADER,
            "rows": total_rows(found),
            "by_category": category_rows(found),
            "failed": failed_rows(given, found),
            "notes": radjudge_notes(given, found),
            "version": __version__,
        },
    )
    write_documents([path], [lambda: page])


def _show(given: RadJudge, found: Sequence[RankingResult], tolerance: float) -> None:
    titles = [one.scores.title for one in found]
    say(
        f"{len(given.tests)} tests in {len(given.categories)} categories of "
        f"{given.source}, tolerance {tolerance:g}"
    )
    say()
    print_table(TOTAL_HEADER, total_rows(found))
    say()
    print_table(("category", *titles), category_rows(found))
    say()
    told = (*radjudge_conventions(tolerance), *radjudge_notes(given, found))
    for text in told:
        say_wrapped("note: ", text)
    for one in found:
        say(f"signature of {one.scores.title}: {one.scores.signature}")

"""What the templates of a score are given, the same for HTML and Markdown."""

from __future__ import annotations

from typing import Any, NamedTuple

from loop import __version__
from loop.score.confused import Confused
from loop.score.documents.cells import Cells, count_cells, scored_words
from loop.score.documents.document import ScoreDocument, metric_rows, worst_cases
from loop.score.documents.figures import metrics_grid
from loop.score.documents.grids import (
    f1_grid,
    invented_grid,
    left_out_grid,
    missed_grid,
)
from loop.score.documents.words import (
    COMPARABLE,
    WAYS,
    agreement_line,
    caution_sentences,
    comparison_sentence,
    convention_sentences,
    coverage_lines,
    extractor_name,
    left_out_line,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    verdict_words,
)
from loop.score.metric import Metric
from loop.score.metrics.sheet import MetricResult
from loop.score.result import CaseScore, SystemScore


class SystemView(NamedTuple):
    """One system as it is shown."""

    key: str
    """Its letter."""

    score: SystemScore
    cells: Cells
    left_out: str
    """How many cells are decided, and why others are not."""

    confused: tuple[Confused, ...]
    worst: tuple[CaseScore, ...]


class MetricView(NamedTuple):
    """One metric as it is shown."""

    metric: Metric
    range: str
    way: str
    results: tuple[MetricResult | None, ...]
    """One per system, best first."""

    signatures: tuple[str, ...]
    """Different ones only: usually one for all systems."""

    notes: tuple[str, ...]


def document_variables(document: ScoreDocument) -> dict[str, Any]:
    """Return the variables of both templates."""
    score = document.score
    perfect = {
        perfect_sentence(one, score): one.perfect is not None and one.perfect >= 1
        for one in score.systems
    }
    return {
        "document": document,
        "score": score,
        "names": document.names,
        "systems": [_system(document, one) for one in score.systems],
        "title": title_of(document),
        "extractor": extractor_name(score.extractor),
        "perfect": perfect,
        "uneven": caution_sentences(score),
        "scored_words": scored_words,
        "comparable": COMPARABLE,
        "comparison": comparison_sentence(score),
        "verdicts": [verdict_words(one) for one in document.differences],
        "grids": {
            "f1": f1_grid(document),
            "missed": missed_grid(document),
            "invented": invented_grid(document),
            "left_out": left_out_grid(document),
            "metrics": metrics_grid(document),
        },
        "metrics": metric_views(document),
        "coverage": coverage_lines(document),
        "outcomes": outcome_line(document.outcomes) if document.outcomes else "",
        "problems": [problem_line(one) for one in document.problems],
        "experts": _expert_lines(document),
        "conventions": convention_sentences(score),
        "version": __version__,
    }


def title_of(document: ScoreDocument) -> str:
    """Return what was scored, for example ``"3 systems on 300 cases"``."""
    systems, cases = len(document.score.systems), document.score.n_cases
    first = document.score.systems[0].system if systems == 1 else f"{systems} systems"
    return f"{first} on {cases} case{'' if cases == 1 else 's'}"


def _system(document: ScoreDocument, one: SystemScore) -> SystemView:
    mine = tuple(each for each in document.confused if each.system == one.system)
    key, worst = document.keys[one.system], worst_cases(document.score, one)
    score = document.score
    cells, told = count_cells(one, score), left_out_line(one, score)
    return SystemView(key, one, cells, told, mine, worst)


def metric_views(document: ScoreDocument) -> list[MetricView]:
    """Return every metric that ran, as it is shown."""
    return [
        MetricView(
            metric,
            range_words(metric),
            WAYS[metric.direction],
            results,
            _once(tuple(one.signature for one in results if one)),
            _once(tuple(text for one in results if one for text in one.notes)),
        )
        for metric, results in metric_rows(document)
    ]


def _expert_lines(document: ScoreDocument) -> tuple[str, ...]:
    experts = document.experts
    return (agreement_line(experts), rated_line(experts)) if experts else ()


def _once(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))

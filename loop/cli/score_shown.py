"""A score on the terminal: ranking, differences, coverage, notes."""

from __future__ import annotations

from textwrap import wrap

from loop.cli.console import print_json, print_table, say
from loop.report.numbers import (
    NOT_ESTIMABLE,
    interval,
    p_value,
    percent,
    share,
    signed,
    signed_interval,
)
from loop.report.score.cells import count_cells
from loop.report.score.data import metric_data
from loop.report.score.document import ScoreDocument
from loop.report.score.view import metric_views, title_of
from loop.report.score.words import (
    WAYS,
    agreement_line,
    caution_sentences,
    coverage_lines,
    extractor_name,
    interval_sentence,
    left_out_line,
    outcome_line,
    perfect_sentence,
    problem_line,
    range_words,
    rated_line,
    verdict_words,
)
from loop.score.metrics.registry import METRICS
from loop.stats.intervals import Estimate

_SIDE_BY_SIDE = 3
"""Systems in one table of metrics: more do not fit."""

_COLUMNS = 100
"""Width that sentences keep to."""


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
        _say_wrapped("note: ", text)
    for one in found.systems:
        say(f"signature of {one.system}: {one.signature}")


def notes(document: ScoreDocument) -> list[str]:
    """Return what a reader must know beside the numbers, as sentences."""
    found, told = document.score, [*document.remarks]
    told += dict.fromkeys(perfect_sentence(one, found) for one in found.systems)
    told += caution_sentences(found)
    told += _left_out(document)
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


def _say_wrapped(lead: str, text: str) -> None:
    """Print `text` in lines that hang under its first word."""
    room = _COLUMNS - len(lead)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        say((" " * len(lead) if number else lead) + line)


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
        _say_wrapped(f"{one.name}: ", f"{one.title}. {one.about} {one.reference}")

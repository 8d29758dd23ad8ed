"""Judges side by side as a page, as Markdown, as a table, and as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from loop import __version__
from loop.core.nouns import counted
from loop.core.records import Status
from loop.documents.charts import CurvePoint, ShareBar, bars_svg, curve_svg
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    count,
    interval,
    p_value,
    share,
    signed,
    signed_interval,
)
from loop.documents.svg import DARK, LIGHT
from loop.documents.tables import format_rows
from loop.documents.templates import render_template, shipped_templates
from loop.judge.judge_evaluation import NOT_SHOWN
from loop.judge.judge_matrix import (
    PERMUTATIONS,
    ColumnComparison,
    ColumnScore,
    JudgeColumn,
    JudgeMatrix,
)
from loop.judge.score_bins import bins_data
from loop.score.documents.sentences import WAYS
from loop.score.experts.documents import (
    DAGGER,
    correlation_data,
    error_data,
    stratum_rows,
)
from loop.score.experts.strata import LEAST_UNITS
from loop.stats.intervals import Estimate

FORMAT: Final = "ranloop-judge-matrix-1"
"""Name of the shape; another number means that readers must look again."""

CHOSEN_ON: Final = (
    "The best column is chosen on the same pairs it is tested on: confirm a choice of "
    "judge on other pairs."
)
"""What the comparisons do not correct for."""


class JudgeRow(NamedTuple):
    """One row of the table: a number of every column."""

    name: str
    cells: tuple[str, ...]


def judge_rows(matrix: JudgeMatrix) -> list[JudgeRow]:
    """Return the rows of the table: agreement first, then outcomes, then cost."""
    rows = [
        JudgeRow(f"tau-b, {title}", tuple(_tau(one, name) for one in matrix.columns))
        for name, title in matrix.score_names
    ]
    told: tuple[tuple[str, Callable[[JudgeColumn], str]], ...] = (
        ("compared by, scored pairs", _scored),
        ("answered", lambda one: _status(one, Status.ANSWERED)),
        ("unparsed", _unparsed),
        ("engine failed", lambda one: _status(one, Status.ENGINE_FAILED)),
        ("F1 of significant errors", _f1),
        ("errors, judge minus experts", _bias),
        ("seconds a pair", _seconds),
        ("tokens a pair", _tokens),
        ("price a pair", _price),
    )
    return rows + [
        JudgeRow(name, tuple(map(words, matrix.columns))) for name, words in told
    ]


def _tau(column: JudgeColumn, name: str) -> str:
    """Return tau-b with interval and mark; a dash where there is none."""
    one = next((each for each in column.scores if each.score.name == name), None)
    return NOT_ESTIMABLE if one is None else tau_words(one)


def tau_words(one: ColumnScore) -> str:
    """Return tau-b of a score, with its interval and mark."""
    if one.agreement is None or one.agreement.found.tau_b.value is None:
        return NOT_ESTIMABLE
    found = one.agreement
    mark = "" if found.shown else DAGGER
    tau_b = found.found.tau_b
    return f"{share(tau_b.value)} {interval(tau_b)}{mark}"


def _scored(column: JudgeColumn) -> str:
    main = column.main
    if column.failure:
        return NOT_ESTIMABLE
    return "no score" if main is None else f"{main.score.title}, {count(main.n)}"


def _status(column: JudgeColumn, status: Status) -> str:
    return NOT_ESTIMABLE if column.failure else count(column.statuses[status])


def _unparsed(column: JudgeColumn) -> str:
    if column.failure or not column.pairs:
        return NOT_ESTIMABLE
    unread = column.statuses[Status.UNPARSED]
    return f"{share(unread / column.pairs)} {interval(column.unparsed)}"


def _f1(column: JudgeColumn) -> str:
    if column.errors is None:
        return NOT_ESTIMABLE
    found = column.errors.total.judge.f1
    return f"{share(found.value)} {interval(found)}"


def _bias(column: JudgeColumn) -> str:
    if column.errors is None:
        return NOT_ESTIMABLE
    found = column.errors.total.difference
    return f"{signed(found.value, 2)} {signed_interval(found, 2)}"


def _seconds(column: JudgeColumn) -> str:
    found = None if column.cost is None else column.cost.seconds_per_pair
    return NOT_ESTIMABLE if found is None else f"{found:.3f}"


def _tokens(column: JudgeColumn) -> str:
    found = None if column.cost is None else column.cost.tokens_per_pair
    return NOT_ESTIMABLE if found is None else f"{found:,.0f}"


def _price(column: JudgeColumn) -> str:
    if column.cost is None or column.cost.price_per_pair is None:
        return NOT_ESTIMABLE
    return f"{column.cost.price_per_pair:.4f} {column.cost.currency}".strip()


COMPARED: Final = ("column", "against", "tau-b, difference", "p", "Holm", "pairs")
"""Header of the table of comparisons."""


def comparison_rows(matrix: JudgeMatrix) -> list[tuple[str, ...]]:
    """Return a row for every two columns, by the keys of the columns."""
    return [
        (
            one.first,
            one.second,
            signed(one.test.difference),
            NOT_ESTIMABLE if one.test.p is None else p_value(one.test.p),
            NOT_ESTIMABLE if one.p_holm is None else p_value(one.p_holm),
            count(one.test.n),
        )
        for one in matrix.comparisons
    ]


STRATA: Final = ("by", "stratum", "column", "n", "tau-b")
"""Header of the table of strata."""


def column_strata(matrix: JudgeMatrix) -> list[tuple[str, ...]]:
    """Return a row for every stratum and column."""
    return stratum_rows(
        (column.key, one) for column in matrix.columns for one in column.strata
    )


def judge_matrix_notes(matrix: JudgeMatrix) -> list[str]:
    """Return what a reader must know about the numbers, as sentences."""
    told = [
        f"tau-b is with the mean of "
        f"{counted(matrix.raters, 'rater')} ({matrix.against}, points "
        f"{matrix.scale}). Intervals are of 95 %, by bootstrap over "
        f"{count(matrix.units)} {matrix.unit}s. Where lower is better, the sign is "
        "turned, so agreement is always positive."
    ]
    if any(DAGGER in cell for row in judge_rows(matrix) for cell in row.cells):
        told.append(f"{DAGGER}: {NOT_SHOWN.format(unit=matrix.unit)}")
    if matrix.ceiling is not None:
        told.append(
            f"Two raters have a mean tau-b of {share(matrix.ceiling)} with each other. "
            "No judge can be expected to agree with one rater more than another rater "
            "does; the mean of several raters is easier to agree with."
        )
    if matrix.comparisons:
        told.append(
            "Differences of tau-b are tested by exchanging the ranks of two columns, "
            f"{matrix.unit} by {matrix.unit}, on the pairs that both score: "
            f"{count(PERMUTATIONS)} exchanges, or all where there are fewer. p is "
            "Holm-adjusted over all comparisons "
            f"({count(len(matrix.comparisons))}). {CHOSEN_ON}"
        )
    return [*told, *_column_notes(matrix)]


def _column_notes(matrix: JudgeMatrix) -> list[str]:
    """Return what a reader must know about single columns, and about the strata."""
    told = [
        f"{one.prompt} with {one.engine}: thinking {', '.join(one.thinking)} has no "
        "effect: a test question is answered word by word as without it. Nothing was "
        "asked with it; the column without a level stands for it, too."
        for one in matrix.without_effect
    ]
    cut = [one for one in matrix.columns if one.cut_off]
    told += [
        f"{one.key}, {one.prompt} with {one.engine}: answers that were cut off at "
        f"max_tokens: {count(one.cut_off)}. Thoughts count towards it: ask with more "
        "by `ranloop run --max-tokens`, and name that run with --run."
        for one in cut
    ]
    for one in matrix.columns:
        if one.failure:
            told.append(f"{one.key}, {one.prompt} with {one.engine}: {one.failure}")
        elif not one.statuses[Status.ANSWERED]:
            told.append(
                f"{one.key}, {one.prompt} with {one.engine}: no answer can be read, so "
                "no score and no agreement is known. That is not an agreement of 0."
            )
    if any(one.statuses[Status.UNPARSED] for one in matrix.columns):
        told.append(
            "Seconds and tokens count the answers that are kept; the price includes "
            "unreadable answers that were asked for again."
        )
    used = {one.chosen for one in matrix.columns if one.chosen}
    if len(used) > 1:
        told.append(
            "Columns are compared by different scores, since not every judge has the "
            "same: their orders are compared, not their values."
        )
    if any(one.engine == "rules" for one in matrix.columns):
        told.append(
            "The engine rules is not a language model; its seconds are those of this "
            "machine."
        )
    if matrix.strata:
        told.append(
            f"Strata are those of {matrix.strata}; tau-b is of the score that columns "
            f"are compared by. Strata of fewer than {LEAST_UNITS} {matrix.unit}s have "
            "no estimate, and p is not adjusted for the number of strata."
        )
    return told


class JudgeFigures(NamedTuple):
    """The figures of one column."""

    column: JudgeColumn
    spread: Markup
    bias: Markup | None
    """None where nobody marked errors, or the judge's cannot be compared with them."""


def judge_figures(matrix: JudgeMatrix) -> list[JudgeFigures]:
    """Return the spread of scores and the bias curve of every column with scores."""
    return [
        JudgeFigures(
            one,
            Markup(spread_svg(one)),
            None if one.errors is None else Markup(bias_svg(one)),
        )
        for one in matrix.columns
        if one.bins
    ]


def spread_svg(column: JudgeColumn) -> str:
    """Return how the chosen score is spread over the pairs, as a figure."""
    main = column.main
    title = "score" if main is None else main.score.title
    bars = [
        ShareBar(
            one.label,
            one.share,
            f"{one.label}: {counted(one.n, 'pair')}, {share(one.share)}",
        )
        for one in column.bins
    ]
    name = f"{column.key} {column.prompt}, {column.engine}: share of pairs by {title}"
    return bars_svg(name, bars, title)


def bias_svg(column: JudgeColumn) -> str:
    """Return the mean of judge minus experts, by the experts' number, as a figure.

    Above the line, the judge counts more errors than the experts.
    """
    found = () if column.errors is None else column.errors.bias
    points = [
        CurvePoint(
            one.errors,
            one.difference.value,
            one.difference.low,
            one.difference.high,
            f"{one.errors} true errors, {counted(one.n, 'pair')}: "
            f"{signed(one.difference.value, 2)}",
        )
        for one in found
        if one.difference.value is not None
    ]
    name = f"{column.key} {column.prompt}, {column.engine}: bias by true errors"
    return curve_svg(
        name, points, ("significant errors by the experts", "judge minus experts")
    )


def _variables(matrix: JudgeMatrix) -> dict[str, Any]:
    return {
        "matrix": matrix,
        "rows": judge_rows(matrix),
        "compared_header": COMPARED,
        "compared": comparison_rows(matrix),
        "strata_header": STRATA,
        "strata": column_strata(matrix),
        "notes": judge_matrix_notes(matrix),
        "version": __version__,
    }


def render_judge_matrix_markdown(
    matrix: JudgeMatrix, *, templates: Path | None = None
) -> str:
    """Return the judges side by side as Markdown.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    folder = _folder(templates)
    return render_template(folder, "judge_matrix.md.jinja", _variables(matrix))


def _folder(templates: Path | None) -> Path:
    """Return the folder, or the shipped one if it is older than these documents."""
    if templates is not None and (templates / "judge_matrix.md.jinja").is_file():
        return templates
    return shipped_templates()


def render_judge_matrix_html(
    matrix: JudgeMatrix, *, templates: Path | None = None
) -> str:
    """Return the judges side by side as one HTML page, with figures.

    The page holds numbers, names and digests, and neither case text nor case ids.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = _variables(matrix) | {
        "figures": judge_figures(matrix),
        "light": LIGHT,
        "dark": DARK,
    }
    return render_template(_folder(templates), "judge_matrix.html.jinja", variables)


def render_judge_matrix_csv(matrix: JudgeMatrix) -> str:
    """Return one row per column and score, safe to open in a spreadsheet.

    A column without a score keeps one row, with empty numbers.
    """
    rows = []
    for column in matrix.columns:
        for one in column.scores or (None,):
            rows.append(dict(_csv_cells(column, one)))
    return format_rows(rows)


def _csv_cells(
    column: JudgeColumn, one: ColumnScore | None
) -> Iterator[tuple[str, object]]:
    yield from (("key", column.key), ("prompt", column.prompt))
    yield from (("engine", column.engine), ("run", column.run))
    yield ("score", one and one.score.name)
    yield ("better", one and WAYS[one.score.direction])
    yield from (("n", one and one.n), ("mean", one and one.mean))
    found = one and one.agreement
    tau_b: Estimate | None = found.found.tau_b if found else None
    yield ("tau_b", tau_b and tau_b.value)
    yield from (
        ("tau_b_low", tau_b and tau_b.low),
        ("tau_b_high", tau_b and tau_b.high),
    )
    yield from (("kendall_p", found and found.p), ("shown", found and int(found.shown)))
    yield ("spearman", found and found.found.spearman.value)
    yield ("pearson", found and found.found.pearson.value)
    yield ("compared_by", int(one is not None and one.score.name == column.chosen))
    for status in Status:
        yield (status.value, None if column.failure else column.statuses[status])
    cost = column.cost
    yield ("seconds_per_pair", cost and cost.seconds_per_pair)
    yield ("tokens_per_pair", cost and cost.tokens_per_pair)
    yield ("price_per_pair", cost and cost.price_per_pair)
    yield ("currency", cost.currency if cost else None)
    yield ("failure", column.failure)


def judge_matrix_data(matrix: JudgeMatrix) -> dict[str, Any]:
    """Return the judges side by side as JSON data; what has no meaning is null."""
    return {
        "format": FORMAT,
        "ranloop": __version__,
        "cohort": matrix.cohort,
        "synthetic": matrix.synthetic,
        "pairs": matrix.pairs,
        "against": matrix.against,
        "raters": matrix.raters,
        "scale": matrix.scale,
        "unit": matrix.unit,
        "units": matrix.units,
        "mean_tau_b_of_two_raters": matrix.ceiling,
        "columns": [_column_data(one) for one in matrix.columns],
        "comparisons": [_comparison_data(one) for one in matrix.comparisons],
        "without_effect": [
            {**one._asdict(), "thinking": list(one.thinking)}
            for one in matrix.without_effect
        ],
        "notes": judge_matrix_notes(matrix),
    }


def _column_data(column: JudgeColumn) -> dict[str, Any]:
    cost = column.cost
    return {
        "key": column.key,
        "prompt": column.prompt,
        "engine": column.engine,
        "run": column.run or None,
        "failure": column.failure or None,
        "outcomes": {one.value: n for one, n in column.statuses.items()},
        "cut_off": column.cut_off,
        "unparsed_limits": None if column.failure else list(column.unparsed),
        "compared_by": column.chosen or None,
        "scores": [
            {
                "score": one.score.name,
                "title": one.score.title,
                "direction": one.score.direction.value,
                "n": one.n,
                "mean": one.mean,
                "agreement": None
                if one.agreement is None
                else {
                    **correlation_data(one.agreement.found),
                    "kendall_p": one.agreement.p,
                    "shown": one.agreement.shown,
                },
            }
            for one in column.scores
        ],
        "spread": bins_data(column.bins),
        "errors": None if column.errors is None else error_data(column.errors),
        "strata": [
            {**one._asdict(), "tau_b": one.tau_b._asdict()} for one in column.strata
        ],
        "cost": None
        if cost is None
        else {
            **asdict(cost),
            "seconds_per_pair": cost.seconds_per_pair,
            "tokens_per_pair": cost.tokens_per_pair,
            "price_per_pair": cost.price_per_pair,
        },
    }


def _comparison_data(one: ColumnComparison) -> dict[str, Any]:
    return {
        "higher": one.first,
        "lower": one.second,
        "difference_of_tau_b": one.test.difference,
        "p": one.test.p,
        "p_holm": one.p_holm,
        "exact": one.test.exact,
        "pairs": one.test.n,
        "units": one.test.n_units,
    }

"""The evaluation as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loop.core.safe_text import format_csv, printable, shielded
from loop.evaluate.compare import Comparison
from loop.evaluate.results import Evaluation, LabelResult, certify_evaluation
from loop.evaluate.tried import Selection
from loop.report.evaluation_claim import claim_lines
from loop.report.evaluation_selection import selection_lines, selection_note
from loop.report.exclusions import EXCLUSIONS, shown_exclusions
from loop.report.templates import render_template, shipped_templates

"""Starts that a spreadsheet would read as a formula or as a new cell."""


def render_markdown(
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    *,
    selection: Selection | None = None,
    templates: Path | None = None,
) -> str:
    """Return the evaluation as a Markdown document.

    Parameters
    ----------
    comparison
        The same run against an earlier one; adds the section on what changed.
    selection
        The versions tried before it; adds the corrected score.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    variables = {
        "evaluation": evaluation,
        "comparison": comparison,
        "claim": (claim := certify_evaluation(evaluation)),
        "claim_lines": claim_lines(claim),
        "selection_lines": selection_lines(selection) if selection else (),
        "selection_note": selection_note(selection) if selection else "",
        "exclusions": shown_exclusions(evaluation),
    }
    folder = templates or shipped_templates()
    return render_template(folder, "evaluation.md.jinja", variables)


def render_csv(evaluation: Evaluation) -> str:
    """Return one row per label, safe to open in a spreadsheet.

    Text that a spreadsheet would run as a formula starts with an apostrophe; numbers
    are written as they are, and a number without meaning is an empty cell.
    """
    rows = [dict(_row(evaluation, result)) for result in evaluation.labels]
    return format_rows(rows)


def format_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of the same columns as CSV that no spreadsheet runs."""
    cells = (map(neutralise, row.values()) for row in rows)
    return format_csv(tuple(rows[0]) if rows else (), map(tuple, cells))


def neutralise(cell: object) -> str:
    """Return `cell` as text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> neutralise("=1+1"), neutralise(-0.25), neutralise(None)
    ("'=1+1", '-0.25', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return printable(shielded(cell) if isinstance(cell, str) else str(cell))


def _row(evaluation: Evaluation, result: LabelResult) -> Iterator[tuple[str, object]]:
    """Yield the cells of one label with their column names."""
    counts, gate = result.confusion, result.gate
    yield from (("label", result.label), ("name", result.name))
    yield from (("verdict", gate.verdict.value), ("n", counts.n))
    yield from (("positives", counts.positives), ("tp", counts.tp), ("fp", counts.fp))
    yield from (("fn", counts.fn), ("tn", counts.tn), ("accuracy", counts.accuracy))
    yield ("accuracy_low", result.accuracy.low if counts.n else None)
    yield ("accuracy_high", result.accuracy.high if counts.n else None)
    yield from (("precision", counts.precision), ("recall", counts.recall))
    yield from (("specificity", counts.specificity), ("npv", counts.npv))
    yield from (("f1", counts.f1), ("kappa", result.kappa.value))
    yield from (("kappa_low", result.kappa.low), ("kappa_high", result.kappa.high))
    yield ("kappa_bootstrap_low", result.kappa_bootstrap.low)
    yield ("kappa_bootstrap_high", result.kappa_bootstrap.high)
    yield ("kappa_note", result.kappa.note)
    yield from ((one.field, one.of(result)) for one in EXCLUSIONS)
    yield ("not_coded", result.not_coded)
    flips = result.flips
    yield ("draws", evaluation.stability.draws if evaluation.stability else 1)
    yield ("flipped", flips.flipped if flips else None)
    yield ("flip_cases", flips.n if flips else None)
    yield ("flip_rate_low", flips.interval.low if flips and flips.n else None)
    yield ("flip_rate_high", flips.interval.high if flips and flips.n else None)
    yield ("draws_differ", flips.disagreement if flips else None)
    yield from (("reasons", "; ".join(gate.reasons)), ("needs", gate.needs))
    yield from (("run", evaluation.run.run_id), ("signature", evaluation.signature))

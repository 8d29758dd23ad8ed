"""The evaluation as one self-contained page: no network, no script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.evaluate.compare import Comparison, LabelChange
from loop.evaluate.gates import GateVerdict
from loop.evaluate.results import Evaluation, LabelResult, certify_evaluation
from loop.evaluate.tried import Selection
from loop.report.evaluation_claim import claim_lines
from loop.report.evaluation_selection import selection_note, selection_remarks
from loop.report.exclusions import shown_exclusions
from loop.report.forest import (
    Axis,
    ForestMark,
    accuracy_axis,
    accuracy_mark,
    change_axis,
    change_mark,
    tick_labels,
)
from loop.report.templates import render_template, shipped_templates


class EvaluationRow(NamedTuple):
    """One label with its place in the forest plot."""

    result: LabelResult
    mark: ForestMark


class ChangeRow(NamedTuple):
    """One label's change with its place in the plot of changes."""

    change: LabelChange
    mark: ForestMark | None


class ForestPlot(NamedTuple):
    """An axis ready to be drawn: positions in percent."""

    axis: Axis
    ticks: tuple[tuple[float, str], ...]
    line: float
    """Position of the threshold or margin."""


def render_html(
    evaluation: Evaluation,
    comparison: Comparison | None = None,
    *,
    selection: Selection | None = None,
    templates: Path | None = None,
) -> str:
    """Return the evaluation as one HTML page.

    The page holds counts, ids and digests, never case text. Case ids are listed only
    in the comparison, and never for a holdout cohort.

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
    axis = accuracy_axis(evaluation)
    variables = {
        "evaluation": evaluation,
        "plot": _plot(axis, evaluation.protocol.accuracy),
        "rows": _label_rows(evaluation, axis),
        "verdicts": list(GateVerdict),
        "prevalence_top": _prevalence_top(evaluation),
        "exclusions": shown_exclusions(evaluation),
        "manifest": _manifest_lines(evaluation),
        "claim": (claim := certify_evaluation(evaluation)),
        "claim_lines": claim_lines(claim),
        "comparison": comparison,
        "selection": selection,
        "selection_remarks": selection_remarks(selection) if selection else (),
        "selection_note": selection_note(selection) if selection else "",
        "list_cases": evaluation.cohort.role != "holdout",
        "version": __version__,
        **_change_variables(comparison),
    }
    folder = templates or shipped_templates()
    return render_template(folder, "evaluation.html.jinja", variables)


def _label_rows(evaluation: Evaluation, axis: Axis) -> list[EvaluationRow]:
    confidence = evaluation.protocol.confidence
    return [
        EvaluationRow(result, accuracy_mark(result, axis, confidence))
        for result in evaluation.labels
    ]


def _change_variables(comparison: Comparison | None) -> dict[str, object]:
    if comparison is None:
        return {"change_plot": None, "changes": []}
    axis = change_axis(comparison)
    return {
        "change_plot": _plot(axis, -comparison.protocol.margins.accuracy, sign=True),
        "changes": [
            ChangeRow(change, change_mark(change, axis)) for change in comparison.labels
        ],
    }


def _plot(axis: Axis, line: float, *, sign: bool = False) -> ForestPlot:
    texts = tick_labels(axis.ticks, sign=sign)
    ticks = tuple(
        (axis.x(tick), text) for tick, text in zip(axis.ticks, texts, strict=True)
    )
    return ForestPlot(axis, ticks, axis.x(line))


def _prevalence_top(evaluation: Evaluation) -> float:
    """Return the prevalence that fills a bar: the highest one, at least 10 %."""
    shares = [result.confusion.prevalence or 0.0 for result in evaluation.labels]
    return max([*shares, 0.1])


def _manifest_lines(evaluation: Evaluation) -> str:
    return json.dumps(
        dict(evaluation.run.manifest), indent=2, ensure_ascii=False, default=str
    )

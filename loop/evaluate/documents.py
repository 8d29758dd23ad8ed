"""An evaluation as a page, as Markdown and as a table for a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from loop import __version__
from loop.core.records import UncertainAnswers
from loop.documents.svg import Axis, percent_axis, tick_labels
from loop.documents.tables import format_rows
from loop.documents.templates import render_template, shipped_templates
from loop.evaluate.compare import Comparison, LabelChange
from loop.evaluate.evaluation_json import claim_lines
from loop.evaluate.gates import GateVerdict
from loop.evaluate.results import Evaluation, LabelResult, certify_evaluation
from loop.evaluate.tried import Selection
from loop.evaluate.tried_text import selection_lines, selection_note, selection_remarks


class Exclusion(NamedTuple):
    """One reason why cases of a label are not scored."""

    field: str
    """Its name in `loop.evaluate.results.Exclusions`."""

    heading: str
    short: str
    """Heading where room is scarce."""

    always: bool = False
    """Whether a column of zeros is shown too."""

    def of(self, result: LabelResult) -> int:
        """Return how many cases of a label were excluded for this reason."""
        if self is HEDGED:
            return result.hedges.total
        return int(getattr(result.excluded, self.field))


HEDGED = Exclusion("hedges", "Answer uncertain, counted", "unc ans", True)
"""Uncertain answers in place of the reason, where they count and exclude nothing."""


EXCLUSIONS = (
    Exclusion("uncertain_reference", "Reference uncertain", "unc ref", True),
    Exclusion("no_majority", "No majority", "no maj"),
    Exclusion("missing", "No reference", "no ref"),
    Exclusion("not_asked", "Not asked", "not asked"),
    Exclusion("uncertain_predicted", "Answer uncertain", "unc ans", True),
    Exclusion("unparsed", "Unparsed", "unp", True),
    Exclusion("failed", "Engine failed", "fail", True),
)
"""Every reason, the reference's first; they add up to the cases not scored."""


def shown_exclusions(evaluation: Evaluation) -> tuple[Exclusion, ...]:
    """Return the columns to show: n and these add up to the cases of every label.

    But for uncertain answers that count: these are shown in their place and are in n.
    """
    counted = evaluation.protocol.policy is not UncertainAnswers.EXCLUDED
    return tuple(
        HEDGED if counted and one.field == "uncertain_predicted" else one
        for one in EXCLUSIONS
        if one.always or any(one.of(result) for result in evaluation.labels)
    )


def open_labels(evaluation: Evaluation) -> tuple[LabelResult, ...]:
    """Return the labels with cases whose reference is uncertain."""
    return tuple(one for one in evaluation.labels if sum(one.open_answers))


_TICKS = 5
_MAY_FALL_OFF = 0.1
"""Share of the labels that need not be on the axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestMark:
    """One row of a forest plot."""

    verdict: GateVerdict
    point: float | None
    """Position of the estimate; None draws no mark."""

    low: float
    high: float
    cut_low: bool = False
    """Whether the interval goes on beyond the left end."""

    cut_high: bool = False
    off: bool = False
    """Whether the estimate itself lies beyond the left end."""

    value: str = ""
    """The estimate as a number, printed next to the arrow when it is off the axis."""

    title: str = ""
    """What the row says in words, for readers who do not see it."""


def accuracy_axis(evaluation: Evaluation) -> Axis:
    """Return an axis that shows most accuracies and the threshold well, up to 1.

    A few labels far below the others may fall off its left end: they are marked
    there, instead of pressing all others into a corner.
    """
    points = sorted(
        result.confusion.accuracy
        for result in evaluation.labels
        if result.confusion.accuracy is not None
    )
    most = points[int(len(points) * _MAY_FALL_OFF) :]
    lowest = min([*most, evaluation.protocol.accuracy - 0.05])
    low = max(floor(lowest * 10 + 1e-9) / 10, 0.0)
    return percent_axis(low, 1.0, _ticks(low, 1.0))


def accuracy_mark(result: LabelResult, axis: Axis, confidence: float) -> ForestMark:
    """Return the row of one label: its accuracy and exact interval.

    What lies left of the axis is said in the title, and has an arrow at its end.
    """
    share, limits = result.confusion.accuracy, result.accuracy
    verdict = result.gate.verdict
    said = f"accuracy {share:.3f}" if share is not None else "accuracy not estimable"
    off = share is not None and axis.cuts(share)
    return ForestMark(
        verdict=verdict,
        point=None if share is None else axis.x(share),
        low=axis.x(limits.low),
        high=axis.x(limits.high),
        cut_low=axis.cuts(limits.low),
        off=off,
        value="" if share is None else f"{share:.3f}",
        title=(
            f"{result.name}: {said}, {100 * confidence:g} % interval "
            f"{limits.low:.3f} to {limits.high:.3f}"
            f"{_beyond(axis, limits.low, off=off)}, {verdict.value}"
        ),
    )


def _beyond(axis: Axis, low: float, *, off: bool) -> str:
    """Say what lies left of the axis."""
    if not axis.cuts(low):
        return ""
    what = "accuracy and interval begin" if off else "the interval begins"
    return f" ({what} left of the axis, which starts at {axis.low:.2f})"


def change_axis(comparison: Comparison) -> Axis:
    """Return a symmetric axis that holds every difference and its margin."""
    values = [comparison.protocol.margins.accuracy * 2]
    for change in comparison.labels:
        value = change.accuracy.difference.value
        if value is not None:
            values.append(abs(value))
        values.extend(_likely(change))
    reach = min(ceil(max(values) * 10 - 1e-9) / 10, 1.0)
    return percent_axis(-reach, reach, (-reach, -reach / 2, 0.0, reach / 2, reach))


def _likely(change: LabelChange) -> Iterable[float]:
    """Yield the limits that decide the axis: those over enough cases to be narrow."""
    limits = change.accuracy.interval
    if limits is not None and change.accuracy.difference.n >= 50:
        yield from (abs(limits.low), abs(limits.high))


def change_mark(change: LabelChange, axis: Axis) -> ForestMark | None:
    """Return the row of one label: its change of accuracy; None without cases."""
    limits, value = change.accuracy.interval, change.accuracy.difference.value
    if limits is None or value is None:
        return None
    return ForestMark(
        verdict=change.verdict,
        point=axis.x(value),
        low=axis.x(limits.low),
        high=axis.x(limits.high),
        cut_low=limits.low < axis.low,
        cut_high=limits.high > axis.high,
        title=(
            f"{change.name}: accuracy changed by {value:+.3f}, interval "
            f"{limits.low:+.3f} to {limits.high:+.3f}, {change.verdict.value}"
        ),
    )


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round values from `low` to `high`, at most `_TICKS` + 1 of them."""
    step = next(
        step
        for step in (0.05, 0.1, 0.2, 0.25, 0.5)
        if (high - low) / step <= _TICKS + 1e-9
    )
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return tuple(round(step * tick, 2) for tick in range(first, last + 1))


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
        "open_labels": open_labels(evaluation),
        "compared": _compared(evaluation),
    }
    folder = templates or shipped_templates()
    return render_template(folder, "evaluation.md.jinja", variables)


def render_csv(evaluation: Evaluation) -> str:
    """Return one row per label, safe to open in a spreadsheet.

    Text that a spreadsheet would run as a formula starts with an apostrophe; numbers
    are written as they are, and a number without meaning is an empty cell.
    """
    rows = [dict(_row(evaluation, place)) for place in range(len(evaluation.labels))]
    return format_rows(rows)


def _row(evaluation: Evaluation, place: int) -> Iterator[tuple[str, object]]:
    """Yield the cells of one label with their column names."""
    result = evaluation.labels[place]
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
    yield ("uncertain_answers", evaluation.protocol.policy.value)
    yield ("uncertain_of_positives", result.hedges.positives)
    yield ("uncertain_of_negatives", result.hedges.negatives)
    verdicts = {view.policy: view.verdicts[place] for view in evaluation.views}
    for policy in UncertainAnswers:
        yield (f"verdict_if_{policy.value}", verdicts[policy].value)
    for answer, number in result.open_answers._asdict().items():
        yield (f"reference_uncertain_{answer}", number)
    flips = result.flips
    yield ("draws", evaluation.stability.draws if evaluation.stability else 1)
    yield ("flipped", flips.flipped if flips else None)
    yield ("flip_cases", flips.n if flips else None)
    yield ("flip_rate_low", flips.interval.low if flips and flips.n else None)
    yield ("flip_rate_high", flips.interval.high if flips and flips.n else None)
    yield ("draws_differ", flips.disagreement if flips else None)
    yield from (("reasons", "; ".join(gate.reasons)), ("needs", gate.needs))
    yield from (("run", evaluation.run.run_id), ("signature", evaluation.signature))


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
        "verdicts": list(evaluation.verdicts),
        "prevalence_top": _prevalence_top(evaluation),
        "exclusions": shown_exclusions(evaluation),
        "open_labels": open_labels(evaluation),
        "compared": _compared(evaluation),
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


def _compared(evaluation: Evaluation) -> str:
    """Say which cases a comparison counts."""
    lost = (
        "the change of accuracy counts a right answer that became uncertain or "
        "unparsed as lost."
    )
    if evaluation.protocol.policy is UncertainAnswers.EXCLUDED:
        return (
            "F1, fixed and broken count a case where the reference and both runs "
            f"decide; {lost}"
        )
    return (
        "F1, fixed and broken count a case that the reference decides and both runs "
        "answer, an uncertain answer as the protocol says; the change of accuracy "
        "counts a right answer that became unparsed as lost."
    )


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

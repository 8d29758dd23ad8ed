"""Where the marks of a forest plot go, in percent of its width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from loop.evaluate.compare import Comparison, LabelChange
from loop.evaluate.gates import GateVerdict
from loop.evaluate.results import Evaluation, LabelResult

_EDGE = 6.0
"""Percent kept free on both sides, so that a mark at the end stays whole."""

_TICKS = 5
_MAY_FALL_OFF = 0.1
"""Share of the labels that need not be on the axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis; positions are percent of the plot's width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def x(self, value: float) -> float:
        """Return where `value` lies, held within the axis."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * share, 3)

    def cuts(self, value: float) -> bool:
        """Whether `value` lies beyond an end of the axis."""
        return not self.low - 1e-9 <= value <= self.high + 1e-9


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
    return Axis(low, 1.0, _ticks(low, 1.0))


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
    return Axis(-reach, reach, (-reach, -reach / 2, 0.0, reach / 2, reach))


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


def tick_labels(ticks: Sequence[float], *, sign: bool = False) -> tuple[str, ...]:
    """Return the ticks as text, with two decimals where one is not enough."""
    digits = 1 if all(abs(tick * 10 - round(tick * 10)) < 1e-9 for tick in ticks) else 2
    if not sign:
        return tuple(f"{tick:.{digits}f}" for tick in ticks)
    return tuple(
        f"{tick:+.{digits}f}".replace("-", "\N{MINUS SIGN}") if tick else "0"
        for tick in ticks
    )

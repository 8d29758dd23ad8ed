"""The ranking of systems as a figure, for a notebook."""

from __future__ import annotations

from io import BytesIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loop.score.records import RanScore, SystemScore
from loop.stats.intervals import Estimate

_WIDE = 7.0
"""Inches."""

_NAME = 40
"""Characters of a system's name that are shown."""


class ShownFigure(Figure):
    """A figure that a notebook shows, without pyplot and its list of open figures."""

    def _repr_png_(self) -> bytes:
        target = BytesIO()
        self.savefig(target, format="png", dpi=120)
        return target.getvalue()


def plot_ranking(ranking: RanScore) -> Figure:
    """Return the systems, best on top, each with its Ran Score and interval.

    A system whose score is undefined has a row that says so.

    Examples
    --------
    >>> from loop.score.api import ran_score
    >>> result = ran_score(["Cardiomegaly."], ["Enlarged heart."])
    >>> len(plot_ranking(result.ranking).axes[0].get_yticks())
    1
    """
    systems = ranking.systems
    figure = ShownFigure(
        figsize=(_WIDE, 1.2 + 0.35 * len(systems)), layout="constrained"
    )
    axes = figure.add_subplot()
    for row, one in enumerate(systems):
        _draw(axes, row, one.ran_score)
    # A name may hold a dollar sign, which is no formula.
    axes.set_yticks(
        range(len(systems)),
        labels=[_name_system(one) for one in systems],
        parse_math=False,
    )
    axes.set_ylim(len(systems) - 0.5, -0.6)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(_describe(ranking))
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    return figure


def _draw(axes: Axes, row: int, estimate: Estimate) -> None:
    """Draw one score with its interval, or say that there is none."""
    value, low, high, _ = estimate
    if value is None:
        axes.text(0, row, "undefined: no label counts", va="center", fontsize="small")
        return
    if low is not None and high is not None:
        axes.plot([low, high], [row, row], color="C0", linewidth=2, alpha=0.6)
    axes.plot([value], [row], "o", color="C0")
    axes.annotate(
        f"{value:.3f}",
        (value, row),
        (0, 6),
        textcoords="offset points",
        ha="center",
        fontsize="small",
    )


def _name_system(one: SystemScore) -> str:
    short = one.system if len(one.system) <= _NAME else f"{one.system[: _NAME - 3]}..."
    return f"{one.rank}. {short}"


def _describe(ranking: RanScore) -> str:
    """Return what the axis shows."""
    units = "cases" if ranking.n_patients is None else "patients"
    return (
        f"Ran Score (macro-F1), with {ranking.confidence:.0%} interval\n"
        f"({ranking.resamples:,} resamples of {units})"
    )

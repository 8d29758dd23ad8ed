"""The sentences and names of a matrix, the same in every document."""

from __future__ import annotations

from loop.evaluate.matrix.records import EngineColumn, EngineRank, Matrix
from loop.report.numbers import NOT_ESTIMABLE, share

SIGNS = {
    EngineRank.BEST: "*",
    EngineRank.LEVEL: "~",
    EngineRank.WORSE: "",
    EngineRank.UNRANKED: "?",
}
"""Marks of plain text."""

RESTS = "\N{DEGREE SIGN}"
"""In place of the best mark where it rests on uncertain answers."""

SELECTION = (
    "The best is chosen on the same cases it is tested on, and the labels are not "
    "corrected for each other: confirm a choice of engine on other cases."
)
"""What the tests against the best do not account for."""


def legend(matrix: Matrix) -> tuple[tuple[str, str], ...]:
    """Return each mark with what it means and what it does not."""
    alpha = f"{matrix.protocol.alpha:g}"
    return (
        (
            SIGNS[EngineRank.BEST],
            "best observed accuracy of the label, ties included; not a claim of "
            "significance",
        ),
        (
            RESTS,
            "best only because uncertain answers are left out: not if they counted as "
            "wrong",
        ),
        (
            SIGNS[EngineRank.LEVEL],
            "not distinguishable from the best (exact McNemar on the cases both "
            f"decide, Holm within the label, {alpha})",
        ),
        (
            SIGNS[EngineRank.UNRANKED],
            "not ranked: too few cases, positives or readable answers, or nothing to "
            "rank against",
        ),
        ("", "no mark: worse than the best by that test"),
    )


def floor_sentence(matrix: Matrix) -> str:
    """Return what the mean accuracy hides, with the number that shows it."""
    at = f"{matrix.floor.at_threshold} of {len(matrix.rows)} labels"
    return (
        "Mean accuracy hides prevalence: an engine that finds nothing in any case "
        f"would have {share(matrix.floor.accuracy)}, and {at} at "
        f"{matrix.protocol.accuracy:g}."
    )


def tally(matrix: Matrix, column: EngineColumn) -> str:
    """Return pass / fail / insufficient of one engine, for example ``"16/1/4"``."""
    if column.evaluation is None:
        return NOT_ESTIMABLE
    return "/".join(str(number) for number in matrix.verdicts(column).values())

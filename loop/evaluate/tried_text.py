"""What an evaluation says of the versions that were tried before this one."""

from __future__ import annotations

from typing import Any

from loop.documents.numbers import NOT_ESTIMABLE, count, interval, listed, share
from loop.evaluate.tried import LIMITS, Selection

_NAMED = 5
"""Most versions named one by one."""


def tried_line(selection: Selection) -> str:
    """Return how many versions were tried on the cohort."""
    tried = selection.tried
    parts = []
    if tried.searches:
        parts.append(
            f"wordings: {count(len(tried.attempts))}; candidates of searches: "
            f"{count(tried.searched)}"
        )
    if tried.uncommitted:
        parts.append(f"{tried.uncommitted} never committed")
    if tried.elsewhere:
        parts.append(
            f"{tried.elsewhere} more only with another engine or on a part of the cases"
        )
    more = f" ({'; '.join(parts)})" if parts else ""
    return f"versions tried on this cohort: {count(selection.k)}{more}"


def corrected_line(selection: Selection) -> str:
    """Return the macro-F1 as it looks, and corrected for the choice."""
    score = selection.score
    if selection.k == 1:
        return "one version was tried, so nothing was chosen and nothing is taken off"
    apparent = f"macro-F1: apparent {share(score.apparent)}"
    if selection.rescored == 1:
        return f"{apparent}, not corrected: no other version can be scored again"
    if score.corrected is None:
        return f"{apparent}, not corrected: {score.note or NOT_ESTIMABLE}"
    limits = f"({score.note})" if score.low is None else interval(score)
    return f"{apparent}, corrected for the choice {share(score.corrected)} {limits}"


def expected_line(selection: Selection) -> str:
    """Return by how much one label's accuracy would be overrated by the choice alone.

    Empty where nothing was chosen.
    """
    drop = selection.expected_drop
    if selection.k == 1 or drop is None:
        return ""
    units = f"{count(selection.score.units)} {selection.unit}s"
    return (
        f"expected drop: {100 * drop:.1f} points of one label's accuracy, if "
        f"{count(selection.k)} equally good versions with independent errors are at "
        f"{selection.accuracy:g} on {units}"
    )


def unscored_line(selection: Selection) -> str:
    """Name the versions that count as tried and could not enter the correction."""
    without = [listed(selection.unscored, _NAMED)] if selection.unscored else []
    if selection.tried.searched:
        without.append("candidates of searches")
    if not without:
        return ""
    return (
        "not in the correction, because no run of theirs can be scored: "
        f"{'; '.join(without)}"
    )


def selection_lines(selection: Selection) -> tuple[str, ...]:
    """Return everything there is to say of the choice, without full stops."""
    lines = (
        tried_line(selection),
        corrected_line(selection),
        expected_line(selection),
        unscored_line(selection),
    )
    return tuple(line for line in lines if line)


def selection_remarks(selection: Selection) -> tuple[str, ...]:
    """Return what four figures side by side leave unsaid."""
    tried = selection.tried
    lines = (
        tried_line(selection) if tried.elsewhere or tried.searches else "",
        expected_line(selection),
        unscored_line(selection),
    )
    return tuple(line for line in lines if line)


def selection_note(selection: Selection) -> str:
    """Return what the correction does not do; empty where nothing was corrected."""
    return LIMITS if selection.rescored > 1 else ""


def selection_data(selection: Selection) -> dict[str, Any]:
    """Return the versions tried and the corrected score as JSON data."""
    tried, score = selection.tried, selection.score
    return {
        "versions_tried": selection.k,
        "never_committed": tried.uncommitted,
        "elsewhere": tried.elsewhere,
        "searches": tried.searches,
        "candidates_searched": tried.searched,
        "versions": [
            {
                "version": one.ref,
                "digest": one.digest,
                "status": one.standing.value,
                "run": one.run.id if one.run else None,
            }
            for one in tried.attempts
        ],
        "rescored": selection.rescored,
        "not_rescored": list(selection.unscored),
        "macro_f1": {
            "apparent": score.apparent,
            "corrected": score.corrected,
            "low": score.low,
            "high": score.high,
            "drop": score.drop,
            "resamples": score.resamples,
            "units": score.units,
            "note": score.note,
        },
        "expected_drop_of_accuracy": selection.expected_drop,
        "expected_at_accuracy": selection.accuracy,
        "unit": selection.unit,
        "seed": selection.seed,
        "note": LIMITS,
    }

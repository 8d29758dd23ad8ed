"""What an evaluation certifies, in words and as JSON data."""

from __future__ import annotations

from typing import Any

from loop.evaluate.results import Claim
from loop.report.numbers import p_value


def claim_lines(claim: Claim) -> tuple[str, ...]:
    """Return which labels are certified, by what test, and what weakens it.

    Empty for a claim on all labels: the verdict says it all.
    """
    if claim.kind == "all":
        return ()
    names = ", ".join(
        f"{one.name} (p {p_value(one.p_holm)})" for one in claim.certified
    )
    lines = (
        f"claim on a subset: {claim.verdict.value}",
        f"certified: {len(claim.certified)} of {len(claim.labels)} labels"
        + (f": {names}" if names else ""),
        f"a label is certified when its gate passes and the exact one-sided p-value of "
        f"its accuracy, Holm-adjusted over {len(claim.labels)} labels, is at most "
        f"{claim.alpha:g}",
        claim.note,
    )
    return tuple(line for line in lines if line)


def claim_data(claim: Claim) -> dict[str, Any]:
    """Return `claim` as JSON data."""
    return {
        "kind": claim.kind,
        "alpha": claim.alpha,
        "verdict": claim.verdict.value,
        "labels": [one._asdict() for one in claim.labels],
        "note": claim.note,
    }

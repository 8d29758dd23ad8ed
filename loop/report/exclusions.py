"""The columns of cases that were not scored, the same in every document."""

from __future__ import annotations

from typing import NamedTuple

from loop.evaluate.results import Evaluation, LabelResult


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
        return int(getattr(result.excluded, self.field))


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
    """Return the columns to show: n and these add up to the cases of every label."""
    return tuple(
        one
        for one in EXCLUSIONS
        if one.always or any(one.of(result) for result in evaluation.labels)
    )
